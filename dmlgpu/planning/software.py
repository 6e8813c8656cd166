"""Pure: how kernels are chosen, on a GPU and on a CPU. The thresholds that `dmlgpu tune` measures are in `Tuning`.

`policy_of` returns one of two policies with the same methods. What was measured on software drivers, and the kernels
that only they take, stand in `SoftwarePolicy` alone; the measurements are in docs/notes/software-drivers.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

from .columns import can_be_strips, fewest_columns
from .problem import Precision, ScanProblem
from .tuning import Tuning
from .windows import QUAD_BYTES, RUN, TILE, Limits

__all__ = ["Choice", "GpuPolicy", "SoftwarePolicy", "policy_of"]

_FEW_COLUMNS = 512
"""As many slices side by side are worth strips: with fewer, most of a GPU would wait for a few workgroups."""
_FEW_ROWS = 128
"""Up to so many rows leave half of a strip's invocations idle. Elements of less than a word take strips all the same:
other kernels store them by atomics."""
_WORKGROUP: Final = 64
_LANES = 8
"""Invocations that a core of a CPU takes at a time."""
_WORD_BYTES = 4


class Choice(NamedTuple):
    """A way to scan, and why: a sentence without its full stop, for `dmlgpu.explain`."""

    kernel: str
    why: str


@dataclass(frozen=True)
class GpuPolicy:
    """What a GPU takes."""

    limits: Limits

    copy_stride = 64
    """Vectors between those of an invocation, in kernels that only move them: neighbours read neighbours."""
    least_columns: ClassVar[int | None] = None
    """So many times the slices of a word make an invocation for each word worth it, where it is at all."""

    @property
    def tuning(self) -> Tuning:
        """The thresholds of the device."""
        return self.limits.tuning

    def kernel(self, problem: ScanProblem, in_place: bool) -> Choice:
        """Return the way to scan slices in windows of whole tiles."""
        length, slices = problem.axis.size, problem.slices
        if self._is_strips(problem, in_place):
            return Choice(
                "strips",
                f"{slices} slices side by side, at least {_FEW_COLUMNS}, are read and written row by row in strips, a "
                "workgroup each",
            )
        if length <= self.tuning.short_slice:
            return Choice("slices", _short(length, self.tuning.short_slice))
        if problem.is_side_by_side and slices >= self.tuning.many_slices:
            return Choice(
                "slices",
                f"{slices} slices side by side, at least {self.tuning.many_slices}, fill a GPU with an invocation "
                "each, whose neighbours read neighbours",
            )
        if slices >= self.tuning.many_rows:
            return Choice(
                "rows", f"{slices} slices, at least {self.tuning.many_rows}, fill a GPU with a workgroup each"
            )
        if length <= TILE:
            return Choice("rows", f"a slice of {length} elements is a single tile of at most {TILE}: a workgroup each")
        return Choice(
            "lookback",
            f"{_count(slices)}, fewer than {self.tuning.many_rows}, cannot fill a GPU with a workgroup each: a "
            "workgroup a tile, in one pass",
        )

    def kernels_of_pieces(self, problem: ScanProblem, in_place: bool) -> list[str]:
        """Return the ways to scan a piece, which begins and ends with a carry for each slice, the best first."""
        strips = ["strips"] if self._is_strips(problem, in_place) else []
        return [*strips, "rows" if problem.slices >= self.tuning.many_rows else "lookback"]

    def packs(self, problem: ScanProblem) -> bool:
        """Whether an invocation may take several short slices: neighbours would read far from each other."""
        return False

    def lanes_of_slices(self, slices: int) -> int:
        """Return the size of workgroups with an invocation a slice."""
        return _WORKGROUP

    def lanes_of_columns(self, invocations: int) -> int:
        """Return the size of workgroups that walk down rows."""
        return _WORKGROUP

    def tile(self, problem: ScanProblem) -> str:
        """Return the piece for a tile of a chain."""
        return "runs"

    def _is_strips(self, problem: ScanProblem, in_place: bool) -> bool:
        is_long = problem.axis.size > _FEW_ROWS or problem.element.itemsize < _WORD_BYTES
        is_wide = problem.is_side_by_side and problem.slices >= _FEW_COLUMNS
        return is_long and is_wide and can_be_strips(problem, self.limits, in_place)


@dataclass(frozen=True)
class SoftwarePolicy(GpuPolicy):
    """What a driver on a CPU takes."""

    copy_stride = 1
    least_columns: ClassVar[int | None] = _WORKGROUP

    def kernel(self, problem: ScanProblem, in_place: bool) -> Choice:
        """Return the way to scan slices in windows of whole tiles."""
        slices, length, itemsize = problem.slices, problem.axis.size, problem.element.itemsize
        many = self.limits.cores * self.tuning.slices_a_core
        if problem.is_side_by_side and itemsize >= _WORD_BYTES and self.limits.columns and self._is_far(problem):
            # Far apart in memory, an invocation a slice pays where it takes several of them.
            many = max(many, fewest_columns(problem))
        if length <= self.tuning.short_slice:
            return Choice("slices", _short(length, self.tuning.short_slice))
        if slices >= many:
            return Choice("slices", f"{slices} slices, at least {many}, keep all cores busy with an invocation each")
        if slices * length <= self.tuning.few_elements:
            return Choice(
                "slices",
                f"{slices * length} elements, at most {self.tuning.few_elements}, take less time than a second "
                "dispatch",
            )
        if in_place:
            return Choice(
                "serial", "few long slices in place, which a chain could not read again: an invocation a tile"
            )
        if slices * length >= self.tuning.many_elements:
            return Choice(
                "serial",
                f"few slices of {slices * length} elements, at least {self.tuning.many_elements}: an invocation a "
                "tile, in several passes, takes less time than a chain",
            )
        return Choice(
            "chain",
            f"few slices of {slices * length} elements, fewer than {self.tuning.many_elements}: a workgroup a tile, in "
            "one pass",
        )

    def kernels_of_pieces(self, problem: ScanProblem, in_place: bool) -> list[str]:
        """Return the ways to scan a piece, which begins and ends with a carry for each slice, the best first."""
        return ["bands", "serial"] if self.kernel(problem, in_place).kernel == "slices" else ["serial"]

    def packs(self, problem: ScanProblem) -> bool:
        """Whether an invocation may take several short slices: not where those of a few elements are whole vectors."""
        length = problem.axis.size
        is_vectors = length > 4 and length * problem.element.itemsize % QUAD_BYTES == 0
        return length < RUN and not is_vectors and not self._is_long(problem)

    def lanes_of_slices(self, slices: int) -> int:
        """Return the size of workgroups with an invocation a slice."""
        return _LANES if slices <= self.tuning.few_slices else _WORKGROUP

    def lanes_of_columns(self, invocations: int) -> int:
        """Return the size of workgroups that walk down rows: the larger, the fewer visits to a page of memory."""
        wide = (lanes for lanes in (4 * _WORKGROUP, 2 * _WORKGROUP) if invocations >= 2 * self.limits.cores * lanes)
        return next(wide, _WORKGROUP)

    def tile(self, problem: ScanProblem) -> str:
        """Return the piece for a tile of a chain: blocks, where they are not too much code."""
        compensated = problem.precision is Precision.COMPENSATED
        too_much = compensated or (self.limits.columns and problem.is_in_words(self.limits.float64))
        return "blocks" if self.limits.blocks and not too_much else "runs"

    def _is_far(self, problem: ScanProblem) -> bool:
        return problem.slices * problem.axis.size > self.limits.near_elements

    def _is_long(self, problem: ScanProblem) -> bool:
        """Whether the code of an element is long."""
        return problem.precision is Precision.COMPENSATED or problem.is_in_words(self.limits.float64)


def _count(slices: int) -> str:
    return "1 slice" if slices == 1 else f"{slices} slices"


def _short(length: int, most: int) -> str:
    return (
        f"slices of {length} elements, at most {most}, would leave most lanes of a workgroup idle: an invocation each"
    )


def policy_of(limits: Limits) -> GpuPolicy:
    """Return how kernels are chosen for a device."""
    return SoftwarePolicy(limits) if limits.software else GpuPolicy(limits)
