"""What is measured: inputs that are the same in every run, what must come out, calls, and the copies to compare with.

Knows no wgpu.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import reference
from ..arrays import functions
from ..layout import ceil_div
from ..planning.dispatch import Pass, PipelineKey, Plan, grid_of
from ..planning.params import uniforms
from ..planning.windows import Limits, Range
from .rows import Row

__all__ = ["COPIES", "GRAIN", "Copy", "Data", "elements", "numpy_call", "own_call", "padded", "plan_copy"]

Array = NDArray[Any]


def elements(operator: str, kind: str, count: int) -> Array:
    """Return elements whose sums and products meet neither subnormals nor infinities, at any length up to 2^28.

    For sums they are uniform in [-1, 1), multiples of 2^-24 or of the type's spacing. For products they are so near to
    1 that the products are, too. Integers are any; odd for products, which would become 0 otherwise.
    """
    dtype = np.dtype(kind)
    rng = np.random.default_rng(0)
    if dtype.kind == "f":
        x: Array = rng.random(count, np.float64 if dtype.itemsize == 8 else np.float32)
        if operator == "product":
            x -= 0.5
            x *= 2.0**-8 if dtype.itemsize == 2 else 2.0**-10
            x += 1
        else:
            x *= 2
            x -= 1
            if operator == "round":
                x *= 1000
        return x.astype(dtype, copy=False)
    info = np.iinfo(dtype)
    integers: Array = rng.integers(info.min, info.max, count, dtype, endpoint=True)
    return integers | dtype.type(1) if operator == "product" else integers


class Data:
    """Inputs and expected results. The last used ones are kept, because rows that share them follow each other."""

    def __init__(self) -> None:
        self._inputs: dict[tuple[str, str, int], Array] = {}
        self._expected: dict[tuple[object, ...], Array] = {}

    def input(self, row: Row) -> Array:
        """Return a row's input, read-only."""
        key = ("sum" if row.operator == "copy" else row.operator, row.type, row.elements)
        if key not in self._inputs:
            self._inputs.clear()
            x = elements(*key)
            x.flags.writeable = False
            self._inputs[key] = x
        return self._inputs[key].reshape(row.shape)

    def expected(self, row: Row) -> Array:
        """Return the reference's result for a row."""
        key = (row.operator, row.type, row.shape, row.axis, row.direction, row.exclusivity)
        if key not in self._expected:
            self._expected.clear()
            x = self.input(row)
            if row.axis is None:
                self._expected[key] = reference.round(x, "half_even")
            else:
                self._expected[key] = reference.cumulative(x, row.operator, axis=row.axis, **row.options)
        return self._expected[key]


def numpy_call(row: Row) -> Callable[[Array], Array]:
    """Return a function that computes a row by NumPy."""
    if row.axis is None:
        return np.rint
    axis, kind = row.axis, np.dtype(row.type)
    accumulate: Callable[..., Array] = np.cumsum if row.operator == "sum" else np.cumprod
    turn = (slice(None),) * axis + (slice(None, None, -1),)

    def inclusive(x: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(accumulate(x, axis=axis, dtype=kind))

    def exclusive(x: Array) -> Array:
        out = np.empty(x.shape, kind)
        before = (slice(None),) * axis
        out[(*before, slice(0, 1))] = 0 if row.operator == "sum" else 1
        with np.errstate(all="ignore"):
            accumulate(x[(*before, slice(None, -1))], axis=axis, dtype=kind, out=out[(*before, slice(1, None))])
        return out

    forward = exclusive if row.options["exclusive"] else inclusive
    return (lambda x: forward(x[turn])[turn]) if row.options["reverse"] else forward


def own_call(row: Row, device: Any) -> Callable[[Any], Any]:
    """Return a function that computes a row by this package, NumPy in and NumPy out."""
    if row.axis is None:
        return lambda x: functions.round(x, device=device)
    function = functions.cumulative_sum if row.operator == "sum" else functions.cumulative_prod
    return lambda x: function(x, axis=row.axis, dtype=row.type, device=device, **row.options)


# Copies

GRAIN = 4096
"""The size of a copy is a multiple of these bytes, so that every way copies them by whole workgroups."""


@dataclass(frozen=True)
class Copy:
    """A way to copy with a kernel.

    Attributes
    ----------
    name : str
        What it is called in results.
    unit : {"words", "quads"}
        What an invocation reads and writes at once: the piece of the slot ``<output>``, for 4 or 16 bytes.
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
    def unit_bytes(self) -> int:
        """The bytes of a unit."""
        return {"words": 4, "quads": 16}[self.unit]

    @property
    def workgroup_bytes(self) -> int:
        """The bytes that a workgroup copies."""
        return 64 * self.units * self.unit_bytes


COPIES = (
    Copy("word", "words", 1, 1),
    Copy("vec4", "quads", 1, 1),
    Copy("vec4-strided", "quads", 4, 64),
    Copy("vec4-contiguous", "quads", 4, 1),
    Copy("word-contiguous", "words", 16, 1),
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
    >>> from dmlgpu.bench.workloads import COPIES, plan_copy
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
    params = uniforms(count=part.size // 4, grid_width=grid[0])
    slots = (("function", "copy"), ("input", "separate"), ("output", copy.unit))
    widths = (("input_log2_bits", 5), ("output_log2_bits", 5))
    key = PipelineKey("elementwise_units", slots, (*widths, ("stride", copy.stride), ("units", copy.units)))
    return Pass(key, params, grid, part, part, 0, part.size // itemsize)
