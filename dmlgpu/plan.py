"""Pure: a problem and a device's limits in, the passes of a dispatch out. Knows no wgpu."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .dtypes import ElementType
from .problem import Dimension, ElementwiseProblem, Operator, ScanProblem
from .windows import SPAN, Limits, Range, Window, byte_range, chunk_sizes, windows

__all__ = ["KERNELS", "Pass", "PipelineKey", "Plan", "fits_one_binding", "is_in_place", "plan_elementwise", "plan_scan"]

KERNELS = ("slices", "tiles")
"""The ways to scan: an invocation a slice, or a workgroup a tile."""

_TILE = 4096
_SLICES_A_WORKGROUP = 64
_ELEMENTS_A_WORKGROUP = 64
_PROGRESS = 20
"""Accumulators a slice that scan_slices.wgsl carries between windows."""
_MAX_PROGRESS_BYTES = 32 * 2**20

_MAX_SERIAL = 16_384
"""Elements that one invocation works through in one dispatch. Mesa's software drivers end every loop of an invocation
after 65,535 iterations, inner loops counted, and leave the rest of the results unwritten (docs/kernels.md)."""

_SHORT_SLICE = 64
"""Slices up to this length are scanned by an invocation each: a workgroup's lanes would be mostly idle."""
_MANY_SLICES = 4096
"""As many slices side by side fill a device with an invocation each, and their memory accesses coalesce."""

_FLOAT_FORMATS = {"float16": (10, 15), "float32": (23, 127), "float64": (52, 1023)}
"""Mantissa bits and exponent bias."""


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
    input, output : Range or None, Range
        The parts of the buffers to bind; no input where it lies in the output's binding.
    state_bytes : int
        The part of the scratch buffer to bind, from its start; 0 for kernels without.
    elements : int
        The elements it works on.
    """

    pipeline: PipelineKey
    uniforms: bytes
    grid: tuple[int, int, int]
    input: Range | None
    output: Range
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
        The size of the scratch buffer that they share.
    """

    passes: tuple[Pass, ...]
    state_bytes: int


def is_in_place(problem: ScanProblem | ElementwiseProblem) -> bool:
    """Whether every element's input and output have the same position, if both are in one buffer."""
    return problem.input_offset == problem.output_offset and all(
        dimension.input_stride == dimension.output_stride for dimension in _dimensions(problem)
    )


def fits_one_binding(problem: ScanProblem | ElementwiseProblem, limits: Limits) -> bool:
    """Whether one binding can hold input and output at once, if both are in one buffer but apart."""
    window = _whole(problem)
    return _ranges(window, *_elements(problem), True, limits)[1].size <= limits.binding_bytes


def plan_scan(problem: ScanProblem, limits: Limits, *, one_buffer: bool = False, kernel: str | None = None) -> Plan:
    """Choose kernels and windows for a scan.

    Parameters
    ----------
    problem : ScanProblem
        What to compute.
    limits : Limits
        What the device can do.
    one_buffer : bool
        Whether input and output are in one buffer. They must then be in place, or fit one binding.
    kernel : {None, "slices", "tiles"}
        Force a kernel, for tests and benchmarks; windows that cannot hold whole spans take "slices" all the same.

    Returns
    -------
    Plan
        The passes, none of which depends on anything but `problem` and `limits`.
    """
    element = problem.element
    chunks = _chunks(problem, limits, one_buffer)
    if chunks[-1] < problem.axis.size and chunks[-1] % SPAN:
        kernel = "slices"
    kernel = kernel or _choose_kernel(problem, limits)
    if kernel == "slices":
        chunks[-1] = min(chunks[-1], _MAX_SERIAL)
    if kernel == "slices" and chunks[-1] < problem.axis.size:
        while math.prod(chunks[:-1]) * _PROGRESS * element.accumulator_size > _MAX_PROGRESS_BYTES:
            largest = max(range(len(chunks) - 1), key=lambda i: chunks[i])
            chunks[largest] = (chunks[largest] + 1) // 2

    passes: list[Pass] = []
    for window in windows(problem.batch, problem.axis, (problem.input_offset, problem.output_offset), chunks):
        make = _slices_passes if kernel == "slices" else _tiles_passes
        passes.extend(make(problem, window, limits, one_buffer))
    return Plan(tuple(passes), max(p.state_bytes for p in passes))


def plan_elementwise(problem: ElementwiseProblem, limits: Limits, *, one_buffer: bool = False) -> Plan:
    """Choose windows for a rounding or a conversion; parameters as in `plan_scan`."""
    source, target = problem.source, problem.target
    constants = {"input_log2_bits": source.log2_bits, "output_log2_bits": target.log2_bits}
    mode = 0
    if problem.mode is not None:
        kernel, mode = "round", problem.mode.value
        if source.itemsize < 8:
            constants |= _float_constants("", source)
    else:
        kernel = "convert"
        constants |= _float_constants("input_", source) | _float_constants("output_", target)
        constants |= {"input_kind": 0, "output_kind": 0}
        if source != target:
            constants |= {"input_kind": _kind(source), "output_kind": _kind(target)}
    passes = []
    chunks = _chunks(problem, limits, one_buffer)
    offsets = (problem.input_offset, problem.output_offset)
    for window in windows(problem.dimensions, _NO_AXIS, offsets, chunks):
        key = _key(kernel, source, target, constants, one_buffer, scan=False)
        grid = _grid(-(-window.elements // _ELEMENTS_A_WORKGROUP), limits)
        passes.append(_pass(key, window, (source, target), grid, limits, one_buffer, mode=mode))
    return Plan(tuple(passes), 0)


_NO_AXIS = Dimension(1, 0, 0)


def _dimensions(problem: ScanProblem | ElementwiseProblem) -> tuple[Dimension, ...]:
    if isinstance(problem, ScanProblem):
        return (*problem.batch, problem.axis) if problem.axis.size > 1 else problem.batch
    return problem.dimensions


def _elements(problem: ScanProblem | ElementwiseProblem) -> tuple[ElementType, ElementType]:
    if isinstance(problem, ScanProblem):
        return problem.element, problem.element
    return problem.source, problem.target


def _whole(problem: ScanProblem | ElementwiseProblem) -> Window:
    batch, axis = (problem.batch, problem.axis) if isinstance(problem, ScanProblem) else (problem.dimensions, _NO_AXIS)
    return Window(batch, axis, 0, True, problem.input_offset, problem.output_offset)


def _ranges(
    window: Window, source: ElementType, target: ElementType, one_buffer: bool, limits: Limits
) -> tuple[Range, Range]:
    """Return what to bind for a window; the same range twice where both tensors are in one buffer."""
    dims = (*window.batch, window.axis)
    align = limits.offset_alignment
    read = byte_range(window.input_offset, [(d.size, d.input_stride) for d in dims], source.itemsize, align)
    written = byte_range(window.output_offset, [(d.size, d.output_stride) for d in dims], target.itemsize, align)
    if one_buffer:
        start = min(read.offset, written.offset)
        end = max(read.offset + read.size, written.offset + written.size)
        read = written = Range(start, end - start)
    return read, written


def _chunks(problem: ScanProblem | ElementwiseProblem, limits: Limits, one_buffer: bool) -> list[int]:
    """Return the sizes of windows: the whole problem where it fits."""
    window = _whole(problem)
    elements = _elements(problem)
    dims = (*window.batch, window.axis)
    # A window's range begins and ends anywhere within the alignment.
    capacity = limits.binding_bytes - limits.offset_alignment - 4
    if all(part.size <= limits.binding_bytes for part in _ranges(window, *elements, one_buffer, limits)):
        capacity = limits.binding_bytes
    elif one_buffer and not is_in_place(problem):
        raise ValueError("input and output are apart in one buffer and do not fit one binding")
    return chunk_sizes(dims, (elements[0].itemsize, elements[1].itemsize), capacity)


def _choose_kernel(problem: ScanProblem, limits: Limits) -> str:
    length = problem.axis.size
    if length <= _SHORT_SLICE:
        return "slices"
    side_by_side = problem.batch and abs(problem.batch[-1].output_stride) < abs(problem.axis.output_stride)
    return "slices" if side_by_side and problem.slices >= _MANY_SLICES else "tiles"


def _grid(workgroups: int, limits: Limits) -> tuple[int, int, int]:
    """Return a grid of at least `workgroups`, in rows where one dimension cannot hold them."""
    rows = -(-workgroups // limits.workgroups)
    return -(-workgroups // rows), rows, 1


def _kind(element: ElementType) -> int:
    return {"bool": 1, "uint": 2, "int": 3, "float": 4}[element.kind]


def _float_constants(prefix: str, element: ElementType) -> dict[str, int]:
    if element.kind != "float":
        return {}
    mantissa_bits, bias = _FLOAT_FORMATS[element.name]
    return {f"{prefix}mantissa_bits": mantissa_bits, f"{prefix}exponent_bias": bias}


def _key(
    kernel: str, source: ElementType, target: ElementType, constants: dict[str, int], one_buffer: bool, *, scan: bool
) -> PipelineKey:
    slots = {
        "input": "in_output" if one_buffer else "separate",
        "output": "packed" if target.itemsize < 4 else "words",
    }
    if scan:
        slots["element"] = target.format
    return PipelineKey(kernel, tuple(sorted(slots.items())), tuple(sorted(constants.items())))


def _pass(
    key: PipelineKey,
    window: Window,
    elements: tuple[ElementType, ElementType],
    grid: tuple[int, int, int],
    limits: Limits,
    one_buffer: bool,
    *,
    tiles: int = 0,
    exclusive: bool = False,
    resume: bool = False,
    suspend: bool = False,
    mode: int = 0,
    state_bytes: int = 0,
) -> Pass:
    read, written = _ranges(window, *elements, one_buffer, limits)
    inner_first = window.batch[::-1]
    uniforms = np.zeros(40, np.uint32)
    for row, values in enumerate(
        (
            [d.size for d in inner_first],
            [d.input_stride for d in inner_first],
            [d.output_stride for d in inner_first],
        )
    ):
        uniforms[8 * row : 8 * row + len(values)] = [value % 2**32 for value in values]
    uniforms[24:39] = [
        value % 2**32
        for value in (
            len(window.batch),
            window.slices,
            window.input_offset - read.offset // elements[0].itemsize,
            window.output_offset - written.offset // elements[1].itemsize,
            window.axis.size,
            window.first,
            window.axis.input_stride,
            window.axis.output_stride,
            tiles,
            exclusive,
            resume,
            suspend,
            grid[0],
            mode,
            0,
        )
    ]
    return Pass(key, uniforms.tobytes(), grid, None if one_buffer else read, written, state_bytes, window.elements)


def _scan_constants(problem: ScanProblem, limits: Limits) -> dict[str, int]:
    element = problem.element
    constants = {
        "input_log2_bits": element.log2_bits,
        "output_log2_bits": element.log2_bits,
        "product": int(problem.operator is Operator.PRODUCT),
    }
    if element.kind == "float":
        constants["opaque"] = int(limits.opaque)
    return constants


def _slices_passes(problem: ScanProblem, window: Window, limits: Limits, one_buffer: bool) -> Iterator[Pass]:
    element = problem.element
    key = _key("scan_slices", element, element, _scan_constants(problem, limits), one_buffer, scan=True)
    state = _PROGRESS * window.slices if window.first > 0 or not window.last else 1
    yield _pass(
        key,
        window,
        (element, element),
        _grid(-(-window.slices // _SLICES_A_WORKGROUP), limits),
        limits,
        one_buffer,
        exclusive=problem.exclusive,
        resume=window.first > 0,
        suspend=not window.last,
        state_bytes=state * element.accumulator_size,
    )


def _tiles_passes(problem: ScanProblem, window: Window, limits: Limits, one_buffer: bool) -> Iterator[Pass]:
    element = problem.element
    tiles = -(-window.axis.size // _TILE)
    state = (3 * window.slices + 4 * window.slices * tiles) * element.accumulator_size
    by_tile = _grid(window.slices * tiles, limits)
    by_slice = _grid(window.slices, limits)
    one_tile = tiles == 1 and window.first == 0 and window.last
    for kernel, grid in (("scan_tile_totals", by_tile), ("scan_carries", by_slice), ("scan_tiles", by_tile)):
        if one_tile and kernel != "scan_tiles":
            continue
        yield _pass(
            _key(kernel, element, element, _scan_constants(problem, limits), one_buffer, scan=True),
            window,
            (element, element),
            grid,
            limits,
            one_buffer,
            tiles=tiles,
            exclusive=problem.exclusive,
            resume=window.first > 0,
            suspend=not window.last,
            state_bytes=element.accumulator_size if one_tile else state,
        )
