"""Pure: the plan of a piece of a scan, which goes on from a carry for each slice and leaves another."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .dispatch import Pass, Plan
from .plan import plan_problem
from .problem import ScanProblem
from .software import policy_of
from .windows import TILE, Limits

__all__ = ["CARRY_WORDS", "PiecePlan", "max_bytes", "max_length", "max_slices", "plan_piece"]

CARRY_WORDS = 8
"""32-bit words of a slice's carry, as ``wgsl/lib/carry_state.wgsl`` has them."""

_SLICE_WORDS = {"scan_rows": CARRY_WORDS, "scan_tiles": 2 * CARRY_WORDS, "scan_serial_tiles": 2 * CARRY_WORDS}
"""Words between the carries of neighbouring slices, at the start of the scratch memory, by the kernel that writes."""

_MOST_WORDS_A_SLICE = 2 * CARRY_WORDS + 12 + 4
"""Scratch memory of a slice in a piece of a single tile, rounded up."""


@dataclass(frozen=True)
class PiecePlan:
    """A plan with the place of its carries.

    Attributes
    ----------
    plan : Plan
        The passes. The contents of the scratch memory before and after them matter.
    slice_words : int
        Words of the scratch memory from a slice to the next one; the slices are in C order of the batch.
    before, after : int
        The word of a slice where its carry before the piece lies, and that of the carry after it.
    """

    plan: Plan
    slice_words: int
    before: int
    after: int


def max_bytes(limits: Limits) -> int:
    """Return how far the elements of a piece may lie apart, so that one window holds all of them."""
    return limits.binding_bytes // 2 - limits.binding_alignment - 4


def max_slices(limits: Limits, itemsize: int) -> int:
    """Return how many packed slices a piece may have, with a tile of each."""
    by_scratch = limits.binding_bytes // (4 * _MOST_WORDS_A_SLICE)
    return max(1, min(by_scratch, _max_elements(limits, itemsize) // TILE))


def max_length(limits: Limits, itemsize: int, slices: int) -> int:
    """Return how long, in whole tiles, a piece of so many slices may be."""
    return max(1, _max_elements(limits, itemsize) // slices // TILE) * TILE


def _max_elements(limits: Limits, itemsize: int) -> int:
    return min(max_bytes(limits) // itemsize, limits.dispatch_elements)


def plan_piece(
    problem: ScanProblem, limits: Limits, *, one_buffer: bool, continued: bool, unfinished: bool
) -> PiecePlan:
    """Plan a scan of packed slices whose elements are a part of longer slices.

    Parameters
    ----------
    problem : ScanProblem
        The piece. It begins at a multiple of `TILE` elements of the slices, and has at most `max_slices` of them.
    limits, one_buffer
        As for `plan_problem`.
    continued : bool
        Whether the slices have elements before the piece, from which a carry comes.
    unfinished : bool
        Whether they have elements after it, for which a carry is left; its length is a multiple of `TILE` then.
    """
    assert not unfinished or problem.axis.size % TILE == 0
    kernel = policy_of(limits).kernel_of_pieces(problem.slices)
    plan = plan_problem(problem, limits, one_buffer=one_buffer, kernel=kernel)
    params = [one.params for one in plan.passes]
    assert all(each["count"] == problem.slices for each in params), "the carries of all slices are there at once"
    ends = {int(each["first"] + each["length"]) for each in params}
    passes = tuple(
        _with_flags(one, continued or each["first"] > 0, unfinished or each["first"] + each["length"] < max(ends))
        for one, each in zip(plan.passes, params, strict=True)
    )
    writer = plan.passes[-1].pipeline.kernel
    slice_words = _SLICE_WORDS[writer]
    state_bytes = max(plan.state_bytes, 4 * slice_words * problem.slices)
    if slice_words == CARRY_WORDS:
        passes = tuple(replace(one, state_bytes=max(one.state_bytes, state_bytes)) for one in passes)
        return PiecePlan(Plan(passes, state_bytes), slice_words, 0, 0)
    # Two carries take turns: lib/tile_state.wgsl.
    first, last = int(params[0]["carry_side"]), int(params[-1]["carry_side"])
    return PiecePlan(Plan(passes, state_bytes), slice_words, CARRY_WORDS * first, CARRY_WORDS * (1 - last))


def _with_flags(one: Pass, resume: bool, suspend: bool) -> Pass:
    params = one.params.copy()
    params["resume"], params["suspend"] = resume, suspend
    return replace(one, uniforms=params.tobytes())
