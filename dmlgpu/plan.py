"""Pure: a problem and a device's limits in, the passes of a dispatch out. Knows no wgpu."""

from __future__ import annotations

from collections.abc import Sequence

from .dtypes import ElementType
from .passes import Plan, bind, make_pass
from .problem import Dimension, ElementwiseProblem, ScanProblem
from .scans import KERNELS, scan_passes
from .windows import Limits, Window, chunk_sizes, windows

__all__ = [
    "KERNELS",
    "any_placement",
    "is_in_place",
    "plan_elementwise",
    "plan_problem",
    "plan_scan",
    "plans_of_any_placement",
]

_ELEMENTS_A_WORKGROUP = 64
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

    Plans made with them have the same windows for every placement; see `plans_of_any_placement`.
    """
    window, elements = _whole(problem)
    # Half a binding for each tensor, should both lie so near that they share one.
    capacity = limits.binding_bytes // 2 - (limits.offset_alignment + 4)
    itemsizes = (elements[0].itemsize, elements[1].itemsize)
    return chunk_sizes((*window.batch, window.axis), itemsizes, capacity, limits.dispatch_elements)


def plans_of_any_placement(problem: ScanProblem | ElementwiseProblem, limits: Limits) -> list[Plan]:
    """Return a plan for each way in which the two tensors may lie, in windows of `any_placement`.

    Parameters
    ----------
    problem : ScanProblem or ElementwiseProblem
        What to compute.
    limits : Limits
        What the device can do.

    Returns
    -------
    list of Plan
        For two buffers and, if the layouts allow it, in place. Which one needs more scratch memory differs.
    """
    chunks = any_placement(problem, limits)
    placements = (False, True) if is_in_place(problem) else (False,)
    return [plan_problem(problem, limits, one_buffer=one_buffer, chunks=chunks) for one_buffer in placements]


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
    kernel : str, optional
        Force one of `KERNELS`, for tests and benchmarks; windows that cannot hold whole tiles take "slices" all the
        same, and so do tensors in place where "chain" is asked for.
    chunks : sequence of int, optional
        The sizes of windows that `any_placement` returned; by default the largest for this placement.

    Returns
    -------
    Plan
        The passes, none of which depends on anything but the arguments.
    """
    chunks = _chunks(problem, limits, one_buffer) if chunks is None else list(chunks)
    in_place = one_buffer and is_in_place(problem)
    passes = tuple(scan_passes(problem, limits, chunks, one_buffer=one_buffer, in_place=in_place, kernel=kernel))
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


def _float_constants(element: ElementType, prefix: str = "") -> dict[str, int]:
    if element.kind != "float":
        return {}
    mantissa_bits, bias = _FLOAT_FORMATS[element.name]
    return {f"{prefix}mantissa_bits": mantissa_bits, f"{prefix}exponent_bias": bias}
