"""Pure: what a dispatch is made of, and how one window of a problem becomes one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ..dtypes import ElementType
from ..errors import ArgumentError
from .params import PARAMS, uniforms
from .windows import QUAD_BYTES, RUN, SPAN, TILE, Limits, Range, Window, byte_range

__all__ = [
    "MAX_SERIAL_STEPS",
    "Bindings",
    "Pass",
    "PipelineKey",
    "Plan",
    "bind",
    "grid_of",
    "make_pass",
    "serial_steps",
    "writable_input",
]

MAX_SERIAL_STEPS = 5 * 2**20
"""The most that `serial_steps` may be, whatever the data: half a second at 100 ns a step, which is slow for a GPU;
watchdogs wait for 2 seconds and more."""
_DEAR = 4
"""Steps of an element whose combination takes dozens of operations, or which is stored by an atomic operation."""

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

    @property
    def bindings(self) -> dict[int, str]:
        """The types of its bindings, in WebGPU's words, by number: uniforms, input, output and state."""
        slots = dict(self.slots)
        found = {0: "uniform"}
        if "input" in slots:  # else the kernel only uses the state
            if not slots["input"].startswith("in_output"):
                found[1] = "read-only-storage" if slots["input"].startswith("separate") else "storage"
            found[2] = "storage"
        if "element" in slots:
            found[3] = "storage"  # scans have state
        return found


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

    @property
    def params(self) -> np.void:
        """The uniforms by name, as `PARAMS` has them."""
        record: np.void = np.frombuffer(self.uniforms, PARAMS)[0]
        return record


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
    align = limits.binding_alignment
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
    """Return a grid of at least `workgroups`, in rows where one dimension cannot hold them.

    Raises
    ------
    ArgumentError
        If two dimensions cannot hold them.
    """
    rows = -(-workgroups // limits.workgroups)
    if rows > limits.rows:
        raise ArgumentError(
            f"a dispatch needs {workgroups} workgroups, and the device allows {limits.workgroups} times {limits.rows}: "
            "allow more, split the arrays, or choose another device"
        )
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
    state_bytes: int = 0,
    **fields: int,
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
    state_bytes : int
        Scratch memory that the kernel binds.
    **fields : int
        The fields of `PARAMS` that do not follow from the window.
    """
    bindings = bind(window, elements, one_buffer, limits)
    slots = {"input": bindings.slot, "output": "packed" if elements[1].itemsize < 4 else "words"}
    slots |= more_slots or {}
    if "quads" in (slots.get("reads"), slots.get("fours")):
        slots["input"] += "_quads"
        slots["output"] = "quads"
    elif "words" in (slots.get("rows"), slots.get("fours")):
        slots["output"] = "owned"
    grid = grid_of(workgroups, limits)
    inner_first = window.batch[::-1]
    params = uniforms(
        sizes=[d.size for d in inner_first],
        input_strides=[d.input_stride for d in inner_first],
        output_strides=[d.output_stride for d in inner_first],
        rank=len(window.batch),
        count=window.slices,
        input_offset=window.input_offset - bindings.input.offset // elements[0].itemsize,
        output_offset=window.output_offset - bindings.output.offset // elements[1].itemsize,
        length=window.axis.size,
        first=window.first,
        input_axis_stride=window.axis.input_stride,
        output_axis_stride=window.axis.output_stride,
        resume=window.first > 0,
        suspend=not window.last,
        grid_width=grid[0],
        **fields,
    )
    return Pass(
        PipelineKey(kernel, tuple(sorted(slots.items())), tuple(sorted(constants.items()))),
        params,
        grid,
        None if bindings.slot == "in_output" else bindings.input,
        bindings.output,
        state_bytes,
        window.elements,
    )


def serial_steps(one: Pass) -> int:
    """Return the most elements and scratch values that one invocation of a dispatch goes through one after the other.

    With those that it waits for in other invocations of its workgroup, or in a chain in other workgroups. The data are
    the worst there are: every tile is exceptional, which means a left fold by one invocation. Elements that take long
    count for several.
    """
    length, tiles, turn_tiles = (int(one.params[name]) for name in ("length", "tiles", "turn_tiles"))
    constants, slots = dict(one.pipeline.constants), dict(one.pipeline.slots)
    kernel, element = one.pipeline.kernel, slots.get("element", "int")
    folds = 1 if element.startswith("int") else 2  # a tile that turns out to be exceptional is folded again
    lane = 256 if slots.get("tile") == "blocks" else RUN
    tile = lane + RUN + (folds - 1) * min(length, TILE)
    columns = (4 if folds == 2 else 128 >> constants.get("output_log2_bits", 5)) * constants.get("vectors", 1)
    bands = -(-int(one.params["count"]) // (8 * columns * one.grid[0]))
    span, spans = SPAN // TILE, -(-tiles // (SPAN // TILE)) + 1
    steps = {
        "copy": constants.get("units", 1),
        "convert": 1,
        "round": 1,
        "round_quads": 4 * QUAD_BYTES,
        "scan_short": length,
        "scan_packed": RUN * constants.get("runs", 1),
        "scan_slices": folds * length,
        "scan_bands": columns * length * bands,
        "scan_bands_exact": columns * length * bands,
        "scan_bands_repair": folds * length,
        "scan_columns": folds * length * constants.get("columns", 1),
        "scan_elements": folds * length,
        "scan_rows": tile * tiles,
        "scan_chain_clear": RUN,
        # An invocation works out the tiles before its own, if nobody hands the carry on.
        "scan_chain": (lane + RUN + min(length, TILE)) * tiles,
        "scan_tile_totals": lane + RUN,
        "scan_serial_totals": min(length, TILE),
        # Twice over the tiles of a span, and in between over 64 spans.
        "scan_carries": -(-spans // 64) * (2 * span + 64),
        # The tiles of a turn; or the classes of what is left, in shares of which each goes on from those before.
        "scan_repair": tile * turn_tiles + 2 * -(-tiles // 256) + 256,
        "scan_tiles": lane + RUN,
        "scan_serial_tiles": min(length, TILE),
    }[kernel]
    is_dear = element in ("f64_words", "f32_compensated") or slots.get("output") == "packed"
    return steps * (_DEAR if is_dear and kernel not in ("copy", "convert", "round") else 1)


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
