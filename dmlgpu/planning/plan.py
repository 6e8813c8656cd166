"""Pure: a problem and a device's limits in, the passes of a dispatch out. Knows no wgpu."""

from __future__ import annotations

from collections.abc import Sequence

from ..dtypes import ElementType
from .dispatch import Plan, bind
from .elementwise import NO_AXIS, elementwise_passes
from .problem import ElementwiseProblem, ScanProblem
from .scan import KERNELS, scan_passes
from .windows import Limits, Window, chunk_sizes

__all__ = [
    "KERNELS",
    "any_placement",
    "is_in_place",
    "plan_elementwise",
    "plan_problem",
    "plan_scan",
    "plans_of_any_placement",
]


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
    capacity = limits.binding_bytes // 2 - (limits.binding_alignment + 4)
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
    """Choose kernels and windows for a rounding or a conversion; parameters and result as for `plan_scan`."""
    chunks = _chunks(problem, limits, one_buffer) if chunks is None else chunks
    return Plan(tuple(elementwise_passes(problem, limits, chunks, one_buffer=one_buffer)), 0)


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
    return Window(problem.dimensions, NO_AXIS, 0, True, *offsets), (problem.source, problem.target)


def _chunks(problem: ScanProblem | ElementwiseProblem, limits: Limits, one_buffer: bool) -> list[int]:
    """Return the sizes of windows: the whole problem where it fits."""
    window, elements = _whole(problem)
    bindings = bind(window, elements, one_buffer, limits)
    capacity = limits.binding_bytes
    if max(bindings.input.size, bindings.output.size) > capacity:
        if one_buffer and not is_in_place(problem):
            capacity //= 2  # so that one binding holds both where two would meet
        # A window's range begins and ends anywhere within the alignment.
        capacity -= limits.binding_alignment + 4
    itemsizes = (elements[0].itemsize, elements[1].itemsize)
    return chunk_sizes((*window.batch, window.axis), itemsizes, capacity, limits.dispatch_elements)
