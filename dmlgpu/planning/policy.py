"""Pure: how kernels are chosen, on a GPU and on a CPU. The thresholds that `dmlgpu tune` measures are in `Tuning`.

`policy_of` returns one of two policies with the same methods. What was measured on software drivers, and the kernels
that only they take, stand in `SoftwarePolicy` alone; the measurements are in docs/notes/software-drivers.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

from ..errors import counted
from ..layout import ceil_div
from .columns import Columns, can_be_strips, cut_to, is_served, is_whole, staged_lanes, strip_bytes_in_flight
from .kernels import DEAR, MAX_SERIAL_STEPS, groups_of
from .problem import Precision, ScanProblem, is_side_by_side
from .tuning import Tuning
from .windows import QUAD_BYTES, RUN, TILE, Limits, SoftwareTraits, Window

__all__ = ["Choice", "GpuPolicy", "SoftwarePolicy", "policy_of"]

_FEW_COLUMNS = 512
"""As many slices side by side are worth strips: with fewer, most of a GPU would wait for a few workgroups."""
_FEW_BYTES = 2**21
"""As many bytes on their way at a time, those of 512 columns of 32 bits, are worth strips, too: a GPU needs some 25 KB
for each of dozens of processors."""
_FEW_BYTES_OF_LONG = 2**22
"""With fewer, those of 1024 columns of 32 bits, parts of long strips are worth a workgroup each. Of elements of less
than a word half as many bytes, as their parts have more to do for each. On an H200 parts of
float32 are faster than strips at 512 columns and slower at 1024 (docs/performance.md); the rest was not measured."""
_FEW_ROWS = 128
"""Up to so many rows leave half of a wide strip's invocations idle. Elements of less than a word take strips all the
same: other kernels store them by atomics."""
_NEIGHBOURS_BYTES = 16
"""With fewer bytes before a gap, such as three colours of 32 bits, neighbours share so little of a sector that going
along a slice touches fewer of them."""
_FAR_ELEMENTS = 2**20
"""With fewer elements of a few columns, all stay in a GPU's cache: there sectors cost less than more dispatches."""
_WORKGROUP: Final = 64
_LANES = 8
"""Invocations that a core of a CPU takes at a time. Those of a band read a stretch of a row together."""
_MANY_PORTIONS = 128
"""Of an invocation that goes from one short slice to the next."""
_WORD_BYTES = 4
_SECTOR_WORDS = 8
"""Of a GPU. Rows of less, where they go through workgroup memory, count as many: sectors are read whole."""
_LEAST_WITH_LAG = TILE // 2
"""With so many elements of a slice, seven more rounds of an invocation cost less than lines that are fetched twice."""

_FEW_VECTORS, _MANY_VECTORS = (1, 2, 4), 8
"""At how many places of a row an invocation of a band has columns. The more, the more of a page is read at a visit; the
fewer, the more cores have a band. SwiftShader takes six seconds to compile eight of floats, and one for four."""
_LOSS_OF_FEW = 1.25
"""So many times as long four vectors take to read as much as eight do."""
_FAR = 8
"""From so many times `SoftwareTraits.near_elements` on, eight vectors of floats are worth a second of compiling. Four
of float64 have as many bytes."""
_MOST_BANDS = 8
"""Of a workgroup: with more, the pages of a block's rows are forgotten before they are visited again."""
_FEW_OF_BAND = 24
"""With fewer columns most of the narrowest band is idle."""
_FEW_UNALIGNED = 96
"""The same of 16-bit floats whose rows begin inside words: of four, the first word and the last take an atomic."""
_FEW_ON_OTHERS = 48
"""The same of 32 and 64 bits on other drivers than lavapipe, which go down neighbouring slices more quickly."""
_LONG_ROW = 768
"""There words, which take SwiftShader twice as long as vectors, pay in rows that are pages of memory; so do 16-bit
floats whose rows begin inside words."""
_FEW_NEIGHBOURS = 8
"""With fewer columns before a gap, many of an invocation's places are empty."""
_MANY_APART = 64
"""So many times the columns of a vector are worth an invocation each where they cannot be bands."""
_CORES_A_BAND = 4
"""As many cores with an invocation a tile, which fetches a line of a cache for each element, are no quicker than
one core with a band, of which a half may be idle."""
_BAND_WORDS = 17
"""Words a column of floats, see wgsl/lib/bands/columns.wgsl."""
_MAX_STATE_BYTES = 32 * 2**20
_MAX_ROWS = 10 * TILE
"""Rows of all bands of a workgroup in a dispatch: Mesa's software drivers end loops after 65,535 iterations, of which a
row is one, and a sixteenth and an eighth for runs and columns (docs/kernels.md)."""


class Choice(NamedTuple):
    """A way to scan, and why: a sentence without its full stop, for `dmlgpu.explain`."""

    kernel: str
    why: str


@dataclass(frozen=True)
class GpuPolicy:
    """What a GPU takes."""

    limits: Limits

    kernels: ClassVar[tuple[str, ...]] = ("slices", "rows", "lookback", "reduce_then_scan", "strips", "strip_lookback")
    """The ways to scan that are ever taken."""
    copy_stride = 64
    """Vectors between those of an invocation, in kernels that only move them: neighbours read neighbours."""
    unaligned_runs: ClassVar[bool] = False
    """Whether an invocation reads and writes its runs of elements of 8 or 16 bits as words, wherever these begin."""

    @property
    def tuning(self) -> Tuning:
        """The thresholds of the device."""
        return self.limits.tuning

    def kernel(self, problem: ScanProblem, in_place: bool) -> Choice:
        """Return the way to scan slices in windows of whole tiles."""
        length, slices = problem.axis.size, problem.slices
        if self._is_strip_lookback(problem, in_place):
            return Choice(
                "strip_lookback",
                f"{slices} slices side by side are too few strips to fill a GPU: a workgroup takes a part of a strip, "
                "row by row, and looks back for what comes before it",
            )
        if self._is_strips(problem, in_place):
            return Choice(
                "strips",
                f"{slices} slices side by side are read and written row by row in strips, a workgroup each",
            )
        if length <= self.tuning.short_slice:
            return Choice("slices", _short(length, self.tuning.short_slice))
        if problem.is_side_by_side and slices >= self.tuning.many_slices and _are_many_neighbours(problem):
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
            return Choice(
                "rows", f"a slice of {counted(length, 'element')} is a single tile of at most {TILE}: a workgroup each"
            )
        few = f"{_count(slices)}, fewer than {self.tuning.many_rows}, cannot fill a GPU with a workgroup each"
        if self._reads_twice(problem):
            return Choice(
                "reduce_then_scan",
                f"{few}; more than {self.tuning.lookback_elements} elements are read twice there, a workgroup a tile, "
                "so that none waits for another",
            )
        return Choice("lookback", f"{few}: a workgroup a tile, in one pass")

    def kernels_of_pieces(self, problem: ScanProblem, in_place: bool) -> list[str]:
        """Return the ways to scan a piece, which begins and ends with a carry for each slice, the best first."""
        if self._is_strip_lookback(problem, in_place):
            return ["strip_lookback"]
        strips = ["strips"] if self._is_strips(problem, in_place) else []
        if problem.slices >= self.tuning.many_rows:
            return [*strips, "rows"]
        return [*strips, "reduce_then_scan" if self._reads_twice(problem) else "lookback"]

    def packs(self, problem: ScanProblem) -> bool:
        """Whether an invocation may take several short slices: neighbours would read far from each other."""
        return False

    def portions_of_short(self, problem: ScanProblem, portions: int) -> tuple[int, int]:
        """Return the size of workgroups for slices of a single run, and how many portions an invocation takes.

        A portion is what it takes at a time: a slice, or as many packed ones as fill whole runs.
        """
        return _WORKGROUP, 1

    def blocks(self, problem: ScanProblem) -> bool:
        """Whether a workgroup takes several short slices without gaps, by way of its memory."""
        return problem.axis.size <= self.tuning.packed_slice and not self._is_long(problem)

    def lanes_of_slices(self, slices: int) -> int:
        """Return the size of workgroups with an invocation a slice."""
        return _WORKGROUP

    def lags(self, window: Window) -> bool:
        """Whether neighbouring invocations go through a window's slices, or tiles, a run apart."""
        return False

    def bands(self, problem: ScanProblem, chunks: Sequence[int], in_place: bool) -> Columns | None:
        """Return how to cut a scan with an invocation a slice into bands of columns: not at all."""
        return None

    def _is_long(self, problem: ScanProblem) -> bool:
        """Whether the code of an element is long."""
        return problem.precision is Precision.COMPENSATED or problem.is_in_words(self.limits.float64)

    def _reads_twice(self, problem: ScanProblem) -> bool:
        """Whether few slices are read twice: none with gaps, whose sectors would be as often touched in vain.

        Nor integers and maxima, of which each tile would fold the totals of all before.
        """
        strides = {abs(problem.axis.input_stride), abs(problem.axis.output_stride)}
        is_many = problem.slices * problem.axis.size > self.tuning.lookback_elements
        return is_many and strides == {1} and not problem.is_exact

    def _is_strips(self, problem: ScanProblem, in_place: bool) -> bool:
        is_long = problem.axis.size > _FEW_ROWS or problem.element.itemsize < _WORD_BYTES
        is_many = problem.slices >= _FEW_COLUMNS or strip_bytes_in_flight(problem) >= _FEW_BYTES
        is_many |= staged_lanes(problem) > 0 and self._are_many_staged(problem)
        is_wide = problem.is_side_by_side and is_many
        # Of elements of less than a word, others store each by an atomic.
        is_narrow = problem.element.itemsize < _WORD_BYTES
        is_near = is_narrow or staged_lanes(problem) > 0 or _are_many_neighbours(problem)
        return is_long and is_wide and is_near and can_be_strips(problem, self.limits, in_place)

    def _is_strip_lookback(self, problem: ScanProblem, in_place: bool) -> bool:
        is_long = problem.axis.size > TILE and problem.slices * problem.axis.size >= _FAR_ELEMENTS
        words = problem.across * problem.element.itemsize // _WORD_BYTES
        few = _FEW_BYTES if problem.element.itemsize < _WORD_BYTES else _FEW_BYTES_OF_LONG
        is_few = strip_bytes_in_flight(problem) < few
        if staged_lanes(problem):
            words, is_few = _SECTOR_WORDS, not self._are_many_staged(problem)
        is_wide = problem.is_side_by_side and words >= self.tuning.tile_columns
        return is_long and is_wide and is_few and can_be_strips(problem, self.limits, in_place)

    def _are_many_staged(self, problem: ScanProblem) -> bool:
        """Whether there are enough strips of a few columns each, which end where a gap follows."""
        return problem.slices // problem.across >= self.tuning.enough_strips


@dataclass(frozen=True)
class SoftwarePolicy(GpuPolicy):
    """What a driver on a CPU takes."""

    kernels: ClassVar[tuple[str, ...]] = ("slices", "serial")
    copy_stride = 1
    unaligned_runs = True

    @property
    def _traits(self) -> SoftwareTraits:
        return self.limits.traits

    def kernel(self, problem: ScanProblem, in_place: bool) -> Choice:
        """Return the way to scan slices in windows of whole tiles."""
        slices, length, itemsize = problem.slices, problem.axis.size, problem.element.itemsize
        many = self._traits.cores * self.tuning.slices_a_core
        if problem.is_side_by_side and itemsize >= _WORD_BYTES and self._traits.columns and self._is_far(problem):
            # Far apart in memory, an invocation a slice pays where it takes several of them.
            are_bands = self._can_be_bands(problem, in_place)
            many = max(many, self._fewest_of_bands(problem) if are_bands else _MANY_APART * _columns(problem))
        if length <= self.tuning.short_slice:
            return Choice("slices", _short(length, self.tuning.short_slice))
        if slices >= many:
            return Choice("slices", f"{slices} slices, at least {many}, keep all cores busy with an invocation each")
        # Floats in place take two phases, and elements whose code is long about twice the time.
        few = self.tuning.few_elements >> ((in_place and not problem.is_exact) + self._is_long(problem))
        if length <= few and not self._is_far(problem):
            return Choice(
                "slices",
                f"slices of {counted(length, 'element')}, at most {few}, take an invocation each less time than more "
                "dispatches would",
            )
        return Choice(
            "serial",
            f"{_count(slices)}, fewer than {many}, of {counted(length, 'element')}: an invocation a tile, in several "
            "passes",
        )

    def kernels_of_pieces(self, problem: ScanProblem, in_place: bool) -> list[str]:
        """Return the ways to scan a piece, which begins and ends with a carry for each slice, the best first."""
        return ["bands", "slices", "serial"] if self.kernel(problem, in_place).kernel == "slices" else ["serial"]

    def packs(self, problem: ScanProblem) -> bool:
        """Whether an invocation may take several short slices: not where those of a few elements are whole vectors."""
        length = problem.axis.size
        is_vectors = length > 4 and length * problem.element.itemsize % QUAD_BYTES == 0
        return length < RUN and not is_vectors and not self._is_long(problem)

    def portions_of_short(self, problem: ScanProblem, portions: int) -> tuple[int, int]:
        """Return the size of workgroups for slices of a single run, and how many portions an invocation takes.

        Many, one after the other, take a twentieth less of the time, and only so can products be looked at afterwards:
        drivers on a CPU go through both sides of a branch, and through a loop once.
        """
        is_enough = portions >= 2 * self._traits.cores * _LANES * _MANY_PORTIONS
        return (_LANES, _MANY_PORTIONS) if is_enough and not self._is_long(problem) else (_WORKGROUP, 1)

    def blocks(self, problem: ScanProblem) -> bool:
        """Whether a workgroup takes many short slices: barriers cost more than distances in memory."""
        return False

    def lanes_of_slices(self, slices: int) -> int:
        """Return the size of workgroups with an invocation a slice."""
        return _LANES if slices <= self.tuning.few_slices else _WORKGROUP

    def lags(self, window: Window) -> bool:
        """Whether neighbouring invocations go through a window's slices, or tiles, a run apart.

        Not where they have neighbouring elements, and so the same lines of a cache, nor where the rounds in which they
        wait would be many of all.
        """
        is_apart = not is_side_by_side(window.batch, window.axis)
        return self._traits.lags and is_apart and window.axis.size >= _LEAST_WITH_LAG

    def bands(self, problem: ScanProblem, chunks: Sequence[int], in_place: bool) -> Columns | None:
        """Return how to cut a scan into bands, or None where they do not serve; parameters as of `strips_of`."""
        is_exact, columns = problem.element.kind != "float", _columns(problem)
        if not self._can_be_bands(problem, in_place):
            return None
        row_bytes = QUAD_BYTES * ceil_div(problem.across, columns) if is_exact else 4 * _BAND_WORDS * problem.across
        room = min(_MAX_STATE_BYTES, self.limits.binding_bytes) * problem.across // row_bytes
        cut = cut_to(problem, chunks, room, columns)
        slices = math.prod(cut[:-1])
        if cut[-1] == 0 or slices < self._fewest_of_bands(problem):
            return None
        groups = groups_of(slices, cut[-2], columns)
        vectors = self._vectors(problem, groups)
        access = _access_of_bands(problem)
        row_steps = columns * vectors * (DEAR if access.startswith("unaligned") else 1)
        most_rows = min(_MAX_ROWS, MAX_SERIAL_STEPS // row_steps)  # of all bands of an invocation
        together = min(_MOST_BANDS, ceil_div(groups, _LANES * vectors) // self._traits.cores, most_rows // TILE)
        together = max(1, together)
        cut[-1] = min(cut[-1], most_rows // together // TILE * TILE)
        return Columns(
            "scan_bands_exact" if is_exact else "scan_bands",
            tuple(cut),
            access,
            {"vectors": vectors, "exclusive": int(problem.exclusive)},
            {},
            _LANES * columns * vectors,
            columns,
            together,
        )

    def _vectors(self, problem: ScanProblem, groups: int) -> int:
        """Return at how many places of a row an invocation has columns: as few as leave each core a single band."""
        element, traits = problem.element, self._traits
        if element.kind == "float" and not self._is_far(problem):
            return _FEW_VECTORS[0]  # compiling takes longer than anything else
        for vectors in _FEW_VECTORS:
            if groups <= traits.cores * _LANES * vectors:
                return vectors
        is_far = problem.slices * problem.axis.size >= _FAR * traits.near_elements and element.itemsize <= _WORD_BYTES
        is_wide = traits.columns and groups >= traits.cores * _LANES * _MANY_VECTORS
        can_be_many = is_wide and (is_far or element.kind != "float")

        def rounds(vectors: int) -> int:
            """Return how many groups the core with the most bands has, by those of a band's lanes."""
            return vectors * ceil_div(ceil_div(groups, _LANES * vectors), traits.cores)

        is_quicker = rounds(_MANY_VECTORS) <= _LOSS_OF_FEW * rounds(_FEW_VECTORS[-1])
        return _MANY_VECTORS if can_be_many and is_quicker else _FEW_VECTORS[-1]

    def _can_be_bands(self, problem: ScanProblem, in_place: bool) -> bool:
        """Whether bands can scan slices, if these are enough, and are worth the time that they take to compile."""
        columns, itemsize = _columns(problem), problem.element.itemsize
        are_neighbours = is_whole(problem, 1, itemsize)
        are_full = problem.across >= _FEW_NEIGHBOURS or problem.across % columns == 0
        # Integers compile as fast as other kernels, and of less than a word others store each by an atomic.
        is_worth_it = self._is_far(problem) or problem.is_exact or itemsize < _WORD_BYTES
        access = _access_of_bands(problem)
        is_slow = access == "unaligned fours" or (itemsize >= _WORD_BYTES and access.endswith("of words"))
        if is_slow and not self._traits.columns:
            is_worth_it &= problem.across >= _LONG_ROW
        return is_worth_it and are_neighbours and are_full and is_served(problem, self.limits, in_place)

    def _fewest_of_bands(self, problem: ScanProblem) -> int:
        """Return as many columns as are worth bands: with a band for every few cores, the last perhaps narrow."""
        bands = ceil_div(self._traits.cores, _CORES_A_BAND)
        return max(self._few_of_band(problem), (bands - 1) * _LANES * _columns(problem) + 1)

    def _few_of_band(self, problem: ScanProblem) -> int:
        if _access_of_bands(problem) == "unaligned fours":
            return _FEW_UNALIGNED
        if problem.element.itemsize < _WORD_BYTES or self._traits.columns:
            return _FEW_OF_BAND
        return _FEW_ON_OTHERS

    def _is_far(self, problem: ScanProblem) -> bool:
        return problem.slices * problem.axis.size > self._traits.near_elements


def _are_many_neighbours(problem: ScanProblem) -> bool:
    """Whether slices side by side have few gaps between them."""
    return problem.across * problem.element.itemsize >= _NEIGHBOURS_BYTES


def _access_of_bands(problem: ScanProblem) -> str:
    """Return how bands read and write: groups of columns as whole vectors, or at any place."""
    itemsize, columns = problem.element.itemsize, _columns(problem)
    is_exact = problem.element.kind != "float"
    if is_whole(problem, columns, min(QUAD_BYTES, columns * itemsize)):
        return "quads" if is_exact else "fours of quads" if itemsize >= _WORD_BYTES else "fours of pairs"
    if is_whole(problem, max(1, _WORD_BYTES // itemsize), _WORD_BYTES):
        return "vectors of words" if is_exact else "fours of words"
    return "unaligned vectors" if is_exact else "unaligned fours"


def _columns(problem: ScanProblem) -> int:
    """Return the adjacent columns that an invocation takes at once: of integers, those of a vector of four words."""
    return 4 if problem.element.kind == "float" else QUAD_BYTES // problem.element.itemsize


def _count(slices: int) -> str:
    return "1 slice" if slices == 1 else f"{slices} slices"


def _short(length: int, most: int) -> str:
    return (
        f"slices of {counted(length, 'element')}, at most {most}, would leave most lanes of a workgroup idle: an "
        "invocation each"
    )


def policy_of(limits: Limits) -> GpuPolicy:
    """Return how kernels are chosen for a device."""
    return SoftwarePolicy(limits) if limits.software else GpuPolicy(limits)
