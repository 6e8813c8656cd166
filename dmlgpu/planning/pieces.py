"""Pure: the plan of a piece of a scan, which goes on from a carry for each slice and leaves another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError
from ..layout import ceil_div
from .columns import Columns, strips_of
from .dispatch import Pass, PipelineKey, Plan
from .kernels import TABLE, Work, tile_slice_words
from .plan import plan_problem
from .policy import policy_of
from .problem import ScanProblem
from .scan import ScanPlanner
from .windows import QUAD_BYTES, SPAN_TILES, TILE, Limits

__all__ = [
    "CARRY_C",
    "CARRY_FLAGS",
    "CARRY_LAST",
    "CARRY_S",
    "CARRY_WORDS",
    "HAS_S",
    "CarryColumns",
    "CarryForm",
    "CarryNumbers",
    "CarryRows",
    "CarrySlices",
    "PiecePlan",
    "TotalsPlan",
    "first_tile",
    "max_bytes",
    "max_length",
    "max_slices",
    "moves",
    "plan_piece",
    "plan_totals",
    "without_spare_words",
]

CARRY_WORDS = 8
"""32-bit words of a slice's carry, as ``wgsl/lib/order/carry_state.wgsl`` has them."""

CARRY_S, CARRY_C, CARRY_LAST, CARRY_FLAGS = 0, 2, 4, 6
"""The words of its parts."""
HAS_S = 0x100
"""A flag, beside the number of tiles of the span."""
_SUSPECT, _FLAGS = 0, 1
"""The words of a column that come before its carry's three accumulators: see ``wgsl/lib/slices/suspects.wgsl``."""
_NUMBERS_TILE = SPAN_TILES
"""Where pieces of integers begin that go on, as all bits are in s there."""

_SLICE_WORDS = {
    "scan_rows": CARRY_WORDS,
    **dict.fromkeys(("scan_tiles", "scan_serial_tiles"), 2 * CARRY_WORDS),
}
"""Words between the carries of neighbouring slices, at the start of the scratch memory, by the kernel that writes."""

Words = NDArray[np.uint32]

_MOST_TILES = 2**19
"""Up to so many tiles a piece counts from the beginning of its slices: elements are counted in 32 bits."""

_MOST_WORDS_A_SLICE = tile_slice_words(1, 2) + 4
"""Scratch memory of a slice in a piece of a single tile, rounded up, where slices may be many. Look-backs of strips
take more, of fewer slices."""


@dataclass(frozen=True)
class CarryRows:
    """Carries of slices one after the other in scratch memory.

    Attributes
    ----------
    slices : int
        How many there are.
    slice_words : int
        Words from a slice to the next one; the slices are in C order of the batch.
    before, after : int
        The word of a slice where its carry before the piece lies, and that of the carry after it.
    """

    slices: int
    slice_words: int
    before: int
    after: int

    def words(self, carries: Words) -> Words:
        """Return what the scratch memory begins with before the piece."""
        words = np.zeros((self.slices, self.slice_words), np.uint32)
        words[:, self.before : self.before + CARRY_WORDS] = carries
        return words

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of what the scratch memory begins with."""
        return self.slices, self.slice_words

    def carries(self, words: Words) -> Words:
        """Return the carries after the piece from what the scratch memory begins with then."""
        return words[:, self.after : self.after + CARRY_WORDS].copy()


@dataclass(frozen=True)
class CarryColumns:
    """Carries of floats side by side in scratch memory, as ``wgsl/lib/slices/suspects.wgsl`` has them.

    How many tiles a column's carry has follows from its place, or else the column is one of those that
    ``wgsl/slots/slices/suspects.wgsl`` takes.

    Attributes
    ----------
    slices : int
        How many there are.
    before, after : int
        The number of the piece's first tile, and that of the first one behind it.
    """

    slices: int
    before: int
    after: int

    def words(self, carries: Words) -> Words:
        """Return what the scratch memory begins with before the piece."""
        words = np.zeros(self.shape, np.uint32)
        words[_SUSPECT] = np.where(carries[:, CARRY_FLAGS] == _flags_at(self.before), 0, self.before)
        words[_FLAGS] = carries[:, CARRY_FLAGS]
        words[_FLAGS + 1 :] = carries[:, :CARRY_FLAGS].T
        return words

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of what the scratch memory begins with."""
        return CARRY_WORDS, self.slices

    def carries(self, words: Words) -> Words:
        """Return the carries after the piece from what the scratch memory begins with then."""
        carries = np.zeros((self.slices, CARRY_WORDS), np.uint32)
        carries[:, :CARRY_FLAGS] = words[_FLAGS + 1 :].T
        carries[:, CARRY_FLAGS] = np.where(words[_SUSPECT] > 0, words[_FLAGS], _flags_at(self.after))
        return carries


@dataclass(frozen=True)
class CarryNumbers:
    """Last results of integers in scratch memory, which are all that a carry has to tell, as adjacent elements.

    Attributes
    ----------
    slices : int
        How many there are.
    itemsize : int
        Bytes of an element.
    in_strips : bool
        Whether there is a carry for each cell of them, as ``wgsl/lib/slices/suspects.wgsl`` has it; else there are four
        words for each vector, as in ``wgsl/scan_bands_exact.wgsl``.
    across : int
        How many slices are neighbours in memory, which words of strips and vectors of bands end with.
    in_cell : int
        How many slices a cell of a strip has: those of a word, or one.
    """

    slices: int
    itemsize: int
    in_strips: bool
    across: int
    in_cell: int

    def words(self, carries: Words) -> Words:
        """Return what the scratch memory begins with before the piece."""
        numbers = (
            np.ascontiguousarray(carries[:, CARRY_LAST : CARRY_LAST + 2])
            .view(np.uint64)[:, 0]
            .astype(f"u{self.itemsize}")
        )
        rows = np.zeros((self.slices // self.across, self._padded), self._kept)
        rows[:, : self.across] = numbers.reshape(rows.shape[0], self.across)
        if not self.in_strips:
            return rows.view(np.uint32).reshape(-1)
        words = np.zeros(self.shape, np.uint32)
        for first in (_FLAGS + 1, _FLAGS + 1 + CARRY_LAST):  # s and the last result
            words[first : first + self._words_each, self._cells] = rows.view(np.uint32).reshape(-1, self._words_each).T
        return words

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what the scratch memory begins with."""
        if self.in_strips:
            return CARRY_WORDS, self.slices
        return (self.slices // self.across * self._padded * self.itemsize // 4,)

    def carries(self, words: Words) -> Words:
        """Return the carries after the piece from what the scratch memory begins with then."""
        if self.in_strips:
            first = _FLAGS + 1 + CARRY_LAST
            words = np.ascontiguousarray(words[first : first + self._words_each, self._cells].T).reshape(-1)
        rows = words.view(self._kept).reshape(-1, self._padded)[:, : self.across]
        # Bits above an integer's own are without meaning.
        numbers = rows.astype(f"u{self.itemsize}").astype(np.uint64).reshape(-1, 1).view(np.uint32)
        carries = np.zeros((self.slices, CARRY_WORDS), np.uint32)
        carries[:, :CARRY_FLAGS] = np.tile(numbers, 3)
        carries[:, CARRY_FLAGS] = _flags_at(_NUMBERS_TILE)
        return carries

    @property
    def moves_of_strips(self) -> tuple[tuple[int, int, int], ...]:
        """As `moves`: the last result, and the same as s."""
        last, s, words = (number * self.slices for number in (_FLAGS + 1 + CARRY_LAST, _FLAGS + 1, self._words_each))
        return (last, last, words), (last, s, words)

    @property
    def _words_each(self) -> int:
        return max(1, self.itemsize // 4)

    @property
    def _kept(self) -> str:
        """The type of a number in scratch memory: a cell has at least a word."""
        return f"u{max(self.itemsize, 4 // self.in_cell) if self.in_strips else self.itemsize}"

    @property
    def _padded(self) -> int:
        """`across` in whole cells of strips, or vectors of bands."""
        together = self.in_cell if self.in_strips else QUAD_BYTES // self.itemsize
        return ceil_div(self.across, together) * together

    @property
    def _cells(self) -> NDArray[np.int64]:
        """The first slice of each cell."""
        rows = np.arange(0, self.slices, self.across)[:, None]
        return (rows + np.arange(0, self.across, self.in_cell)).reshape(-1)


@dataclass(frozen=True)
class CarrySlices:
    """Carries of slices side by side in scratch memory, as ``wgsl/lib/slices/kept.wgsl`` has them.

    Attributes
    ----------
    slices : int
        How many there are.
    """

    slices: int

    def words(self, carries: Words) -> Words:
        """Return what the scratch memory begins with before the piece."""
        words = np.zeros(self.shape, np.uint32)
        words[1:] = carries[:, : CARRY_FLAGS + 1].T
        return words

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of what the scratch memory begins with."""
        return 2 + CARRY_FLAGS, self.slices

    def carries(self, words: Words) -> Words:
        """Return the carries after the piece from what the scratch memory begins with then."""
        carries = np.zeros((self.slices, CARRY_WORDS), np.uint32)
        carries[:, : CARRY_FLAGS + 1] = words[1:].T
        return carries


def without_spare_words(carries: Words, accumulator_words: int) -> Words:
    """Return carries with zeros in the words that none of their parts uses, which hold what memory held before."""
    cleared = carries.reshape(-1, CARRY_WORDS).copy()
    cleared[:, CARRY_FLAGS + 1 :] = 0
    if accumulator_words == 1:
        cleared[:, 1:CARRY_FLAGS:2] = 0
    return cleared.reshape(carries.shape)


CarryForm = CarryRows | CarryColumns | CarryNumbers | CarrySlices


@dataclass(frozen=True)
class PiecePlan:
    """A plan with the form of its carries.

    Attributes
    ----------
    plan : Plan
        The passes. The contents of the scratch memory before and after them matter.
    form : CarryRows, CarryColumns, CarryNumbers or CarrySlices
        How the carries before and after them lie at its start.
    """

    plan: Plan
    form: CarryForm

    def behind(self, left: CarryForm) -> PiecePlan:
        """Return the plan of the piece behind one that has left its carries in a form.

        Floats side by side are counted on there, so that what is known of exceptional columns stays right.
        """
        form = self.form
        if not isinstance(form, CarryColumns) or not isinstance(left, CarryColumns):
            return self
        ahead = left.after - form.before
        passes = []
        for one in self.plan.passes:
            changed = one.params.copy()
            for name in ("first", "checked_first"):
                changed[name] += ahead * TILE
            passes.append(replace(one, uniforms=changed.tobytes()))
        return PiecePlan(
            replace(self.plan, passes=tuple(passes)), replace(form, before=left.after, after=form.after + ahead)
        )


def moves(left: CarryForm, taken: CarryForm) -> tuple[tuple[int, int, int], ...] | None:
    """Return how carries that a piece has left become those that the next one takes, both in scratch memory.

    Parameters
    ----------
    left : CarryRows, CarryColumns, CarryNumbers or CarrySlices
        The form of the piece that has left them.
    taken : CarryRows, CarryColumns, CarryNumbers or CarrySlices
        The form of the piece behind it.

    Returns
    -------
    tuple of (int, int, int), or None
        Copies of words: from where, to where, and how many. None where copies are not enough.
    """
    words = math.prod(taken.shape)
    if isinstance(left, CarryRows) and isinstance(taken, CarryRows) and left.shape == taken.shape:
        ahead = left.after - taken.before
        return ((max(ahead, 0), max(-ahead, 0), words - abs(ahead)),)
    if isinstance(left, CarryColumns) and isinstance(taken, CarryColumns) and left.slices == taken.slices:
        # The tiles of exceptional columns are numbers of 32 bits, and so are the elements before them.
        return ((0, 0, words),) if taken.before == left.after and taken.after <= _MOST_TILES else None
    if isinstance(left, CarryNumbers) and left == taken:
        return ((0, 0, words),) if not left.in_strips else left.moves_of_strips
    return ((0, 0, words),) if isinstance(left, CarrySlices) and left == taken else None


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
    problem: ScanProblem,
    limits: Limits,
    *,
    one_buffer: bool,
    before: int | None,
    unfinished: bool,
    slice_words: int = 0,
) -> PiecePlan:
    """Plan a scan of packed slices whose elements are a part of longer slices.

    Parameters
    ----------
    problem : ScanProblem
        The piece. It begins at a multiple of `TILE` elements of the slices, and has at most `max_slices` of them.
    limits, one_buffer
        As for `plan_problem`.
    before : int or None
        What `first_tile` returned for the carries of the elements before the piece; None if there are none.
    unfinished : bool
        Whether there are elements after it, for which a carry is left; its length is a multiple of `TILE` then.
    slice_words : int
        That of `CarryRows` which are on the device: a kernel that takes them is preferred to one that is quicker, but
        takes others, for which the host would have to wait.

    Raises
    ------
    ArgumentError
        If the device cannot bind a tile.
    """
    assert not unfinished or problem.axis.size % TILE == 0
    planner, policy = ScanPlanner(problem, limits, one_buffer), policy_of(limits)
    chunks, in_place = planner.chunks, planner.in_place
    *preferred, kernel = policy.kernels_of_pieces(problem, in_place)
    if slice_words == _SLICE_WORDS["scan_tiles"] and kernel == "rows":
        kernel = "lookback"
    for name in preferred:
        columns = None
        if name in ("slices", "strips") and slice_words:
            continue
        if name == "slices":
            slices = _plan_slices(problem, limits, one_buffer, before is not None, unfinished)
            if slices is not None:
                return slices
        elif name == "bands":
            columns = policy.bands(problem, chunks, in_place)
        else:
            columns = strips_of(problem, limits, chunks, in_place)
        if columns is not None and math.prod(columns.chunks[:-1]) >= problem.slices:
            return _plan_columns(problem, planner, columns, before, unfinished)
    plan = plan_problem(problem, limits, one_buffer=one_buffer, kernel=kernel)
    if plan.passes[-1].pipeline.kernel not in _SLICE_WORDS:  # a window that ends inside a tile
        raise ArgumentError(
            f"a scan in pieces or blocks binds whole tiles, which are {TILE * problem.element.itemsize} bytes and "
            f"more, and the device binds {limits.binding_bytes} at once: open it with a larger "
            "max-storage-buffer-binding-size"
        )
    passes = _with_flags(problem, plan.passes, 0, before is not None, unfinished)
    slice_words = _SLICE_WORDS[passes[-1].pipeline.kernel]
    if slice_words == CARRY_WORDS:
        return PiecePlan(Plan.of(passes), CarryRows(problem.slices, slice_words, 0, 0))
    # Two carries take turns: lib/tiles/state.wgsl.
    first, last = (int(one.params["carry_side"]) for one in (passes[0], passes[-1]))
    form = CarryRows(problem.slices, slice_words, CARRY_WORDS * first, CARRY_WORDS * (1 - last))
    return PiecePlan(Plan.of(passes), form)


def _plan_columns(
    problem: ScanProblem, planner: ScanPlanner, columns: Columns, before: int | None, unfinished: bool
) -> PiecePlan:
    """Plan a piece of slices side by side."""
    form: CarryForm
    if problem.is_exact:
        first = 0 if before is None else _NUMBERS_TILE
        is_strips, itemsize = columns.kernel == "scan_strips", problem.element.itemsize
        in_cell = 4 // itemsize if "element" in columns.slots else 1  # packed in words
        form = CarryNumbers(problem.slices, itemsize, is_strips, problem.across, in_cell)
    else:
        first = before or 0
        form = CarryColumns(problem.slices, first, first + problem.axis.size // TILE)
    passes = _with_flags(problem, tuple(columns.passes(planner, problem)), first, before is not None, unfinished)
    return PiecePlan(Plan.of(passes), form)


def _plan_slices(
    problem: ScanProblem, limits: Limits, one_buffer: bool, continued: bool, unfinished: bool
) -> PiecePlan | None:
    """Plan a piece with an invocation a slice, which reads each element once; None where that cannot be."""
    passes = plan_problem(problem, limits, one_buffer=one_buffer, kernel="slices").passes
    if not all(_has_one_carry(one) and one.params["count"] == problem.slices for one in passes):
        return None
    if continued or unfinished:
        passes = tuple(replace(one, pipeline=_in_windows(one.pipeline)) for one in passes)
    first_tile = int(continued)  # any but the slice's first one
    plan = Plan.of(_with_flags(problem, passes, first_tile, continued, unfinished))
    assert plan.state_bytes <= limits.binding_bytes, "fewer words a slice than other kernels take"
    return PiecePlan(plan, CarrySlices(problem.slices))


def _has_one_carry(one: Pass) -> bool:
    """Whether a pass takes and leaves the progress of slices, and not in two phases, of which each has its own."""
    key = one.pipeline
    return ("slices", "windows") in key.slots and not dict(key.constants).get("phase")


def _in_windows(key: PipelineKey) -> PipelineKey:
    """Return a pipeline that takes and leaves the progress of slices."""
    return replace(key, constants=tuple(sorted({**dict(key.constants), "in_windows": 1}.items())))


def first_tile(problem: ScanProblem, carries: Words | None) -> int | None:
    """Return what the plan of a piece has to know of the carries before it, of which there may be none.

    Of floats side by side it is the first tile, as most slices count: those without exceptional tiles, where there are
    any. A slice's count begins anew behind an exceptional tile. Behind 16 tiles it goes on as behind 32.
    """
    if carries is None:
        return None
    if problem.is_exact or not problem.is_side_by_side:
        return 0
    s, c, last = (carries[:, n : n + 2] for n in (CARRY_S, CARRY_C, CARRY_LAST))
    is_anew = (carries[:, CARRY_FLAGS] == HAS_S) & (s == last).all(axis=1) & (c == last).all(axis=1)
    counted = carries[~is_anew if not is_anew.all() else slice(None), CARRY_FLAGS]
    found, times = np.unique(counted, return_counts=True)
    flags = int(found[np.argmax(times)])
    return (flags & 0xFF) + (SPAN_TILES if flags & HAS_S else 0)


def _flags_at(tile: int) -> int:
    """Return the tiles of the span and has_s, in a carry's form, of a slice without exceptional tiles before one."""
    return tile % SPAN_TILES | (HAS_S if tile >= SPAN_TILES else 0)


@dataclass(frozen=True)
class TotalsPlan:
    """The first pass of a scan with an invocation a tile, which leaves a record of each, and their place.

    Attributes
    ----------
    plan : Plan
        The pass. Nothing is written but scratch memory.
    first_word : int
        The word of the scratch memory where the records begin: of each slice one tile after the other.
    """

    plan: Plan
    first_word: int


def plan_totals(problem: ScanProblem, limits: Limits) -> TotalsPlan:
    """Plan what becomes of whole tiles by themselves.

    Parameters
    ----------
    problem : ScanProblem
        A scan in place, as long and as wide as a piece.
    limits : Limits
        What the device can do.
    """
    assert problem.axis.size % TILE == 0
    plan = plan_problem(problem, limits, one_buffer=True, kernel="serial")
    first = plan.passes[0]
    assert first.params["count"] == problem.slices
    assert first.params["length"] == problem.axis.size, "the records of all tiles are there at once"
    return TotalsPlan(Plan((first,), plan.state_bytes), _SLICE_WORDS["scan_serial_tiles"] * problem.slices)


def _with_flags(
    problem: ScanProblem, passes: Sequence[Pass], first_tile: int, continued: bool, unfinished: bool
) -> tuple[Pass, ...]:
    """Return the passes of a piece that begins at a tile, and resumes from what came before, and leaves a carry."""
    all_params = [one.params for one in passes]
    assert all(each["count"] == problem.slices for each in all_params), "the carries of all slices are there at once"
    end = max(int(each["first"] + each["length"]) for each in all_params)
    found = []
    for one, params in zip(passes, all_params, strict=True):
        changed = params.copy()
        changed["resume"] = continued or params["first"] > 0
        changed["suspend"] = unfinished or params["first"] + params["length"] < end
        for name in ("first", "checked_first"):
            changed[name] += first_tile * TILE
        made = replace(one, uniforms=changed.tobytes())
        found.append(replace(made, state_bytes=4 * TABLE[one.pipeline.kernel].scratch_words(Work.of(made))))
    return tuple(found)
