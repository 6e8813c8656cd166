"""Pure: what a dispatch is made of, and how one window of a problem becomes one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from .dtypes import ElementType
from .windows import Limits, Range, Window, byte_range

__all__ = ["Bindings", "Pass", "PipelineKey", "Plan", "bind", "grid_of", "make_pass", "writable_input"]

_TOKEN_BYTES = 8
"""The largest accumulator: a scan that keeps nothing between passes binds one, because its kernel names the binding."""


@dataclass(frozen=True)
class PipelineKey:
    """What a pipeline is made of.

    Attributes
    ----------
    kernel : str
        A file of ``wgsl/``.
    slots : tuple of (str, str)
        The pieces that fill its slots, see `dmlgpu.shaders.resolve`.
    constants : tuple of (str, int)
        The values of its override constants.
    """

    kernel: str
    slots: tuple[tuple[str, str], ...]
    constants: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Pass:
    """One dispatch.

    Attributes
    ----------
    pipeline : PipelineKey
        What to run.
    uniforms : bytes
        The struct Params of ``wgsl/lib/params.wgsl``.
    grid : tuple of int
        Workgroups in x, y and z.
    input, output : Range or None
        The parts of the buffers to bind; no input where it lies in the output's binding, and neither for a kernel that
        only uses the scratch buffer.
    state_bytes : int
        The part of the scratch buffer to bind, from its start; 0 for kernels without.
    elements : int
        The elements it works on.
    """

    pipeline: PipelineKey
    uniforms: bytes
    grid: tuple[int, int, int]
    input: Range | None
    output: Range | None
    state_bytes: int
    elements: int


@dataclass(frozen=True)
class Plan:
    """The passes of an operator, to run in order.

    Attributes
    ----------
    passes : tuple of Pass
        In order.
    state_bytes : int
        The size of the scratch buffer that they share; its contents before and after don't matter.
    """

    passes: tuple[Pass, ...]
    state_bytes: int

    @property
    def scratch_bytes(self) -> int:
        """The bytes of `state_bytes` that the passes really use: 0 where the binding is there for its name's sake."""
        return 0 if self.state_bytes <= _TOKEN_BYTES else self.state_bytes


@dataclass(frozen=True)
class Bindings:
    """How a window's tensors are bound.

    Attributes
    ----------
    slot : {"separate", "shared", "in_output"}
        The piece that fills the slot <input>: two buffers, two parts of one buffer, or one part for both.
    input, output : Range
        The parts of the buffers; the same for "in_output".
    """

    slot: str
    input: Range
    output: Range


def bind(window: Window, elements: tuple[ElementType, ElementType], one_buffer: bool, limits: Limits) -> Bindings:
    """Return how to bind a window's input and output, which may be in one buffer."""
    dims = (*window.batch, window.axis)
    align = limits.offset_alignment
    read = byte_range(window.input_offset, [(d.size, d.input_stride) for d in dims], elements[0].itemsize, align)
    written = byte_range(window.output_offset, [(d.size, d.output_stride) for d in dims], elements[1].itemsize, align)
    if not one_buffer:
        return Bindings("separate", read, written)
    if read.end <= written.offset or written.end <= read.offset:
        return Bindings("shared", read, written)
    start = min(read.offset, written.offset)
    union = Range(start, max(read.end, written.end) - start)
    return Bindings("in_output", union, union)


def grid_of(workgroups: int, limits: Limits) -> tuple[int, int, int]:
    """Return a grid of at least `workgroups`, in rows where one dimension cannot hold them."""
    rows = -(-workgroups // limits.workgroups)
    return -(-workgroups // rows), rows, 1


def make_pass(
    kernel: str,
    constants: Mapping[str, int],
    window: Window,
    elements: tuple[ElementType, ElementType],
    workgroups: int,
    limits: Limits,
    *,
    one_buffer: bool,
    more_slots: Mapping[str, str] | None = None,
    phase: int = 0,
    group: int = 0,
    turn: int = 0,
    side_by_side: bool = False,
    tiles: int = 0,
    exclusive: bool = False,
    mode: int = 0,
    state_bytes: int = 0,
) -> Pass:
    """Return the dispatch of a kernel over a window.

    Parameters
    ----------
    kernel, constants
        As in `PipelineKey`.
    window : Window
        What to work on.
    elements : (ElementType, ElementType)
        The types of input and output.
    workgroups : int
        How many the kernel needs.
    limits : Limits
        What the device can do.
    one_buffer : bool
        Whether input and output are in one buffer.
    more_slots : mapping of str to str, optional
        The pieces that fill the kernel's slots other than <input> and <output>.
    phase, group, turn, side_by_side, tiles, exclusive, mode
        Fields of Params.
    state_bytes : int
        Scratch memory that the kernel binds.
    """
    bindings = bind(window, elements, one_buffer, limits)
    slots = {"input": bindings.slot, "output": "packed" if elements[1].itemsize < 4 else "words"}
    slots |= more_slots or {}
    if slots.get("reads") == "quads":
        slots["input"] += "_quads"
        slots["output"] = "quads"
    elif slots.get("rows") == "quads":
        slots["input"] += "_quads"
        slots["output"] = "owned_quads"
    elif slots.get("rows") == "words":
        slots["output"] = "owned"
    grid = grid_of(workgroups, limits)
    inner_first = window.batch[::-1]
    uniforms = np.zeros(44, np.uint32)
    for row, values in enumerate(
        (
            [d.size for d in inner_first],
            [d.input_stride for d in inner_first],
            [d.output_stride for d in inner_first],
        )
    ):
        uniforms[8 * row : 8 * row + len(values)] = [value % 2**32 for value in values]
    scalars = (
        len(window.batch),
        window.slices,
        window.input_offset - bindings.input.offset // elements[0].itemsize,
        window.output_offset - bindings.output.offset // elements[1].itemsize,
        window.axis.size,
        window.first,
        window.axis.input_stride,
        window.axis.output_stride,
        tiles,
        exclusive,
        window.first > 0,
        not window.last,
        grid[0],
        mode,
        0,
        phase,
        group,
        turn,
        side_by_side,
    )
    uniforms[24:43] = [value % 2**32 for value in scalars]
    return Pass(
        PipelineKey(kernel, tuple(sorted(slots.items())), tuple(sorted(constants.items()))),
        uniforms.tobytes(),
        grid,
        None if bindings.slot == "in_output" else bindings.input,
        bindings.output,
        state_bytes,
        window.elements,
    )


def writable_input(plan: Plan) -> Plan:
    """Return a plan for two buffers with the input bound read_write.

    WebGPU tracks usage by buffer, so that an input needs this where its buffer holds the scratch memory too.
    """
    return Plan(tuple(_writable_input(one) for one in plan.passes), plan.state_bytes)


def _writable_input(one: Pass) -> Pass:
    slots = tuple(
        ("input", slot[1].replace("separate", "shared")) if slot[0] == "input" else slot for slot in one.pipeline.slots
    )
    return replace(one, pipeline=replace(one.pipeline, slots=slots))
