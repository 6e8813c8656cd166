"""Pure: the ways to copy memory that a benchmark compares with, as plans of ``wgsl/copy.wgsl``. Knows no wgpu."""

from __future__ import annotations

from dataclasses import dataclass

from ..layout import ceil_div
from ..planning.dispatch import Pass, PipelineKey, Plan, grid_of
from ..planning.params import uniforms
from ..planning.windows import Limits, Range

__all__ = ["COPIES", "GRAIN", "Copy", "padded", "plan_copy"]

GRAIN = 4096
"""The size of a copy is a multiple of these bytes, so that every way copies them by whole workgroups."""


@dataclass(frozen=True)
class Copy:
    """A way to copy with a kernel.

    Attributes
    ----------
    name : str
        What it is called in results.
    unit : {"word", "vec4"}
        What an invocation reads and writes at once: 4 or 16 bytes.
    units : int
        How many of them an invocation copies.
    stride : int
        The distance from one unit of an invocation to the next, in units: 1, or the 64 invocations of a workgroup.
    """

    name: str
    unit: str
    units: int
    stride: int

    @property
    def workgroup_bytes(self) -> int:
        """The bytes that a workgroup copies."""
        return 64 * self.units * (16 if self.unit == "vec4" else 4)


COPIES = (
    Copy("word", "word", 1, 1),
    Copy("vec4", "vec4", 1, 1),
    Copy("vec4-strided", "vec4", 4, 64),
    Copy("vec4-contiguous", "vec4", 4, 1),
    Copy("word-contiguous", "word", 16, 1),
)
"""One word an invocation; one vector; four vectors at the distance of a workgroup; four vectors in a row; sixteen words
in a row."""


def padded(nbytes: int) -> int:
    """Return the size of the buffers in which `nbytes` bytes are copied."""
    return ceil_div(nbytes, GRAIN) * GRAIN


def plan_copy(copy: Copy, nbytes: int, limits: Limits, itemsize: int = 4) -> Plan:
    """Return the dispatches that copy the first `nbytes` bytes of a buffer, rounded up with `padded`, to another.

    Parameters
    ----------
    copy : Copy
        The way.
    nbytes : int
        At least 1.
    limits : Limits
        What the device can do.
    itemsize : int
        Bytes of the elements that count for the limit on a dispatch's elements.

    Examples
    --------
    >>> from dmlgpu.bench.copying import COPIES, plan_copy
    >>> from dmlgpu.planning.windows import Limits
    >>> [one.grid for one in plan_copy(COPIES[0], 2**20, Limits()).passes]
    [(4096, 1, 1)]
    """
    total = padded(nbytes)
    grain = max(GRAIN, limits.offset_alignment)
    step = max(grain, min(limits.binding_bytes, limits.dispatch_elements * itemsize) // grain * grain)
    return Plan(tuple(_pass(copy, Range(i, min(step, total - i)), limits, itemsize) for i in range(0, total, step)), 0)


def _pass(copy: Copy, part: Range, limits: Limits, itemsize: int) -> Pass:
    grid = grid_of(ceil_div(part.size, copy.workgroup_bytes), limits)
    params = uniforms(count=part.size // (16 if copy.unit == "vec4" else 4), grid_width=grid[0])
    # "separate" is how the pipeline learns that there is an input, in a buffer of its own.
    slots = (("input", "separate"), ("unit", copy.unit))
    key = PipelineKey("copy", slots, (("stride", copy.stride), ("units", copy.units)))
    return Pass(key, params, grid, part, part, 0, part.size // itemsize)
