"""Pure: a problem and a device's limits in, the passes of a dispatch out. Knows no wgpu."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from .dispatch import Pass, Plan, any_placement, is_in_place
from .elementwise import ElementwisePlanner
from .problem import ElementwiseProblem, ScanProblem
from .scan import EVERYWHERE, KERNELS, ScanPlanner
from .windows import Limits

__all__ = [
    "EVERYWHERE",
    "KERNELS",
    "any_placement",
    "is_in_place",
    "passes_of",
    "plan_problem",
    "plans_of_any_placement",
]


def passes_of(
    problem: ScanProblem | ElementwiseProblem,
    limits: Limits,
    *,
    one_buffer: bool = False,
    kernel: str | None = None,
    chunks: Sequence[int] | None = None,
) -> Iterator[Pass]:
    """Choose kernels and windows for a problem, and yield its passes, in order; parameters as for `plan_problem`."""
    if not isinstance(problem, ScanProblem):
        return ElementwisePlanner(problem, limits, one_buffer, chunks).passes()
    if not problem.monotone:
        return ScanPlanner(problem, limits, one_buffer, chunks).passes(kernel)
    return chain(
        ScanPlanner(problem.sums, limits, one_buffer, chunks).passes(kernel),
        ScanPlanner(problem.maxima, limits, True, chunks).passes(kernel),
    )


def plan_problem(
    problem: ScanProblem | ElementwiseProblem,
    limits: Limits,
    *,
    one_buffer: bool = False,
    kernel: str | None = None,
    chunks: Sequence[int] | None = None,
) -> Plan:
    """Choose kernels and windows for a problem.

    Parameters
    ----------
    problem : ScanProblem or ElementwiseProblem
        What to compute.
    limits : Limits
        What the device can do.
    one_buffer : bool
        Whether input and output are in one buffer. They must then be in place, or not overlap.
    kernel : str, optional
        Of a scan: force one of `KERNELS`, for tests and benchmarks; windows that cannot hold whole tiles take "slices"
        all the same.
    chunks : sequence of int, optional
        The sizes of windows that `any_placement` returned; by default the largest for this placement.

    Returns
    -------
    Plan
        The passes, none of which depends on anything but the arguments.
    """
    return Plan.of(passes_of(problem, limits, one_buffer=one_buffer, kernel=kernel, chunks=chunks))


def plans_of_any_placement(problem: ScanProblem | ElementwiseProblem, limits: Limits) -> list[Plan]:
    """Return a plan for each way in which the two tensors may lie, in windows of `any_placement`.

    For two buffers and, if the layouts allow it, in place. Which one needs more scratch memory differs.
    """
    chunks = any_placement(problem, limits)
    placements = (False, True) if is_in_place(problem) else (False,)
    return [plan_problem(problem, limits, one_buffer=one_buffer, chunks=chunks) for one_buffer in placements]
