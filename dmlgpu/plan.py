"""Pure: a problem and a device's limits in, the passes of a dispatch out. Knows no wgpu."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from .dtypes import ElementType
from .passes import Pass, Plan, bind, make_pass
from .problem import Dimension, ElementwiseProblem, Operator, ScanProblem
from .windows import SPAN, Limits, Window, chunk_sizes, windows

__all__ = ["KERNELS", "any_placement", "is_in_place", "plan_elementwise", "plan_problem", "plan_scan"]

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

_SHORT_SLICE = 256
"""Slices up to this length are scanned by an invocation each: a workgroup's lanes would be mostly idle."""
_MANY_SLICES = 4096
"""As many slices side by side fill a device with an invocation each, and their memory accesses coalesce."""
_MANY_SLICES_IN_SOFTWARE = 128
"""As many slices fill a CPU with an invocation each, without the barriers that cost it much."""

_FLOAT_FORMATS = {"float16": (10, 15), "float32": (23, 127), "float64": (52, 1023)}
"""Mantissa bits and exponent bias."""

_KINDS = {"bool": 1, "uint": 2, "int": 3, "float": 4}
"""The kinds of convert.wgsl; 0 copies bits."""

_NO_AXIS = Dimension(1, 0, 0)


def is_in_place(problem: ScanProblem | ElementwiseProblem) -> bool:
    """Whether every element's input and output have the same position, if both are in one buffer."""
    window, (source, target) = _whole(problem)
    same_size = source.itemsize == target.itemsize
    return (
        same_size
        and problem.input_offset == problem.output_offset
        and all(
            dimension.size == 1 or dimension.input_stride == dimension.output_stride
            for dimension in (*window.batch, window.axis)
        )
    )


def any_placement(problem: ScanProblem | ElementwiseProblem, limits: Limits) -> list[int]:
    """Return sizes of windows that fit wherever the two tensors lie, in one buffer or two.

    A plan made with them needs the same scratch memory for every placement, so that it can be told beforehand.
    """
    window, elements = _whole(problem)
    # Half a binding for each tensor, should both lie so near that they share one.
    capacity = limits.binding_bytes // 2 - (limits.offset_alignment + 4)
    itemsizes = (elements[0].itemsize, elements[1].itemsize)
    return chunk_sizes((*window.batch, window.axis), itemsizes, capacity, limits.dispatch_elements)


def plan_scan(
    problem: ScanProblem,
    limits: Limits,
    *,
    one_buffer: bool = False,
    kernel: str | None = None,
    chunks: Sequence[int] | None = None,
) -> Plan:
    """Choose kernels and windows for a scan.

    Parameters
    ----------
    problem : ScanProblem
        What to compute.
    limits : Limits
        What the device can do.
    one_buffer : bool
        Whether input and output are in one buffer. They must then be in place, or not overlap.
    kernel : {None, "slices", "tiles"}
        Force a kernel, for tests and benchmarks; windows that cannot hold whole spans take "slices" all the same.
    chunks : sequence of int, optional
        The sizes of windows that `any_placement` returned; by default the largest for this placement.

    Returns
    -------
    Plan
        The passes, none of which depends on anything but the arguments.
    """
    chunks = _chunks(problem, limits, one_buffer) if chunks is None else list(chunks)
    if chunks[-1] < problem.axis.size and chunks[-1] % SPAN:
        kernel = "slices"
    kernel = kernel or _choose_kernel(problem, limits)
    if kernel == "slices":
        chunks[-1] = min(chunks[-1], _MAX_SERIAL)
    if kernel == "slices" and chunks[-1] < problem.axis.size:
        while math.prod(chunks[:-1]) * _PROGRESS * problem.element.accumulator_size > _MAX_PROGRESS_BYTES:
            largest = max(range(len(chunks) - 1), key=lambda i: chunks[i])
            chunks[largest] = (chunks[largest] + 1) // 2

    make = _slices_passes if kernel == "slices" else _tiles_passes
    offsets = (problem.input_offset, problem.output_offset)
    passes = tuple(
        one
        for window in windows(problem.batch, problem.axis, offsets, chunks)
        for one in make(problem, window, limits, one_buffer)
    )
    return Plan(passes, max(one.state_bytes for one in passes))


def plan_elementwise(
    problem: ElementwiseProblem, limits: Limits, *, one_buffer: bool = False, chunks: Sequence[int] | None = None
) -> Plan:
    """Choose windows for a rounding or a conversion; parameters and result as for `plan_scan`."""
    source, target = problem.source, problem.target
    constants = {"input_log2_bits": source.log2_bits, "output_log2_bits": target.log2_bits}
    if problem.mode is not None:
        kernel, mode = "round", problem.mode.value
        if source.itemsize < 8:
            constants |= _float_constants(source)
    else:
        kernel, mode = "convert", 0
        same = source == target
        constants |= _float_constants(source, "input_") | _float_constants(target, "output_")
        constants["input_kind"] = 0 if same else _KINDS[source.kind]
        constants["output_kind"] = 0 if same else _KINDS[target.kind]
    constants["flat"] = int(len(problem.dimensions) <= 1)
    offsets = (problem.input_offset, problem.output_offset)
    chunks = _chunks(problem, limits, one_buffer) if chunks is None else chunks
    passes = tuple(
        make_pass(
            kernel,
            constants,
            window,
            (source, target),
            -(-window.elements // _ELEMENTS_A_WORKGROUP),
            limits,
            one_buffer=one_buffer,
            mode=mode,
        )
        for window in windows(problem.dimensions, _NO_AXIS, offsets, chunks)
    )
    return Plan(passes, 0)


def plan_problem(
    problem: ScanProblem | ElementwiseProblem,
    limits: Limits,
    *,
    one_buffer: bool = False,
    kernel: str | None = None,
    chunks: Sequence[int] | None = None,
) -> Plan:
    """Plan a problem of either kind; parameters and result as for `plan_scan`."""
    if isinstance(problem, ScanProblem):
        return plan_scan(problem, limits, one_buffer=one_buffer, kernel=kernel, chunks=chunks)
    return plan_elementwise(problem, limits, one_buffer=one_buffer, chunks=chunks)


def _whole(problem: ScanProblem | ElementwiseProblem) -> tuple[Window, tuple[ElementType, ElementType]]:
    """Return the window that holds the whole problem, and the types of input and output."""
    offsets = (problem.input_offset, problem.output_offset)
    if isinstance(problem, ScanProblem):
        return Window(problem.batch, problem.axis, 0, True, *offsets), (problem.element, problem.element)
    return Window(problem.dimensions, _NO_AXIS, 0, True, *offsets), (problem.source, problem.target)


def _chunks(problem: ScanProblem | ElementwiseProblem, limits: Limits, one_buffer: bool) -> list[int]:
    """Return the sizes of windows: the whole problem where it fits."""
    window, elements = _whole(problem)
    bindings = bind(window, elements, one_buffer, limits)
    capacity = limits.binding_bytes
    if max(bindings.input.size, bindings.output.size) > capacity:
        if one_buffer and not is_in_place(problem):
            capacity //= 2  # so that one binding holds both where two would meet
        # A window's range begins and ends anywhere within the alignment.
        capacity -= limits.offset_alignment + 4
    itemsizes = (elements[0].itemsize, elements[1].itemsize)
    return chunk_sizes((*window.batch, window.axis), itemsizes, capacity, limits.dispatch_elements)


def _choose_kernel(problem: ScanProblem, limits: Limits) -> str:
    if problem.axis.size <= _SHORT_SLICE or (limits.software and problem.slices >= _MANY_SLICES_IN_SOFTWARE):
        return "slices"
    side_by_side = problem.batch and abs(problem.batch[-1].output_stride) < abs(problem.axis.output_stride)
    return "slices" if side_by_side and problem.slices >= _MANY_SLICES else "tiles"


def _float_constants(element: ElementType, prefix: str = "") -> dict[str, int]:
    if element.kind != "float":
        return {}
    mantissa_bits, bias = _FLOAT_FORMATS[element.name]
    return {f"{prefix}mantissa_bits": mantissa_bits, f"{prefix}exponent_bias": bias}


def _scan_pass(
    kernel: str,
    problem: ScanProblem,
    window: Window,
    workgroups: int,
    limits: Limits,
    one_buffer: bool,
    *,
    tiles: int = 0,
    state: int,
) -> Pass:
    """Return a pass of a scan; `state` counts accumulators."""
    element = problem.element
    constants = {
        "input_log2_bits": element.log2_bits,
        "output_log2_bits": element.log2_bits,
        "product": int(problem.operator is Operator.PRODUCT),
    }
    in_words = element.format == "f64" and not limits.float64
    if element.kind == "float" and not in_words:
        constants["opaque"] = int(limits.opaque)
    return make_pass(
        kernel,
        constants,
        window,
        (element, element),
        workgroups,
        limits,
        one_buffer=one_buffer,
        element_slot="f64_words" if in_words else element.format,
        tiles=tiles,
        exclusive=problem.exclusive,
        state_bytes=state * element.accumulator_size,
    )


def _slices_passes(problem: ScanProblem, window: Window, limits: Limits, one_buffer: bool) -> Iterator[Pass]:
    workgroups = -(-window.slices // _SLICES_A_WORKGROUP)
    whole = window.first == 0 and window.last
    state = 1 if whole else _PROGRESS * window.slices
    yield _scan_pass("scan_slices", problem, window, workgroups, limits, one_buffer, state=state)


def _tiles_passes(problem: ScanProblem, window: Window, limits: Limits, one_buffer: bool) -> Iterator[Pass]:
    tiles = -(-window.axis.size // _TILE)
    by_tile = window.slices * tiles
    if tiles == 1 and window.first == 0 and window.last:
        yield _scan_pass("scan_tiles", problem, window, by_tile, limits, one_buffer, tiles=tiles, state=1)
        return
    state = 3 * window.slices + 4 * by_tile
    kernels = (("scan_tile_totals", by_tile), ("scan_carries", window.slices), ("scan_tiles", by_tile))
    for kernel, workgroups in kernels:
        yield _scan_pass(kernel, problem, window, workgroups, limits, one_buffer, tiles=tiles, state=state)
