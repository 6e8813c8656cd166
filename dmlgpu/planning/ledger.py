"""Pure: what a pass moves through memory, worked out from its uniforms: one row a kernel.

`figures_of` returns the figures. A test records what the shaders access on a device, and compares: a row that is wrong
fails. Figures are those of ordinary data, of which no tile is exceptional.

Bytes of tensors are those of the elements, each time that a workgroup reads or writes them; what it accesses again at
once is in a cache. Scratch memory counts once a workgroup. A sector is 32 bytes: GPUs move no less.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, product
from typing import Final

import numpy as np

from ..layout import ceil_div
from .dispatch import Pass
from .kernels import (
    BEFORE_LOOKBACK,
    CHECK,
    FOLD,
    LEAVES_ALL,
    OF_STRIPS,
    REPAIR,
    TABLE,
    TRY,
    WRITE,
    Work,
    block_slices,
    part_rows,
    portion_slices,
    strip_parts,
    tile_slice_words,
    unit_elements,
)
from .windows import BLOCK, QUAD_BYTES, RUN, SPAN_TILES, TILE

__all__ = ["SECTOR_BYTES", "SUBGROUP", "Figures", "figures_of"]

SUBGROUP = 32
"""Lanes that access memory together: a warp of NVIDIA's, a wave32 of AMD's, a SIMD-group of Apple's."""
SECTOR_BYTES = 32
_WORD_BYTES = 4
_VECTORS: Final = {"quads": QUAD_BYTES, "pairs": 2 * _WORD_BYTES}
"""The bytes of an access by the piece in <output>, where that is not a word."""
_FEW_SPANS = 4
_FEW_STRIP_SPANS = 2
"""At which scan_lookback looks at first, and scan_strip_lookback."""
_TURNS = 4
"""Of a stretch of a strip, as slots/cells/staged.wgsl has it."""
_LEVELS = (1, 2, 4, 8)
"""Strides of a block's steps, of which scan_slices keeps as many runs each."""
_SAMPLE = 2 * RUN
"""Elements of a slice whose accesses are looked at: places repeat their alignment to a sector after as many."""

_Count = Callable[[Work], int]
_Words = Callable[[Work], tuple[int, int]]
_Starts = Callable[[Work], Iterator[tuple[int, int]]]


@dataclass(frozen=True)
class Sectors:
    """The sectors of a subgroup's accesses.

    Attributes
    ----------
    touched : float
        Sectors an access, by the mean.
    least : float
        As many as its bytes would take without gaps.
    """

    touched: float
    least: float


@dataclass(frozen=True)
class Figures:
    """What a pass moves.

    Attributes
    ----------
    lanes : int
        Invocations of a workgroup.
    workgroups : int
        In the grid.
    bytes_read, bytes_written : int
        Of tensors and scratch memory.
    read_sectors, write_sectors : Sectors or None
        Of the first subgroup's accesses to the input and to the output; None where there are none.
    lane_bytes : int
        What an invocation loads of the input before it uses any of it.
    workgroup_bytes : int
        What those invocations of a workgroup load so that have any: no more than its share of all elements.
    serial_links : int
        The most elements and scratch values that one invocation goes through one after the other, with those that it
        waits for in others of its workgroup.
    """

    lanes: int
    workgroups: int
    bytes_read: int
    bytes_written: int
    read_sectors: Sectors | None
    write_sectors: Sectors | None
    lane_bytes: int
    workgroup_bytes: int
    serial_links: int

    @property
    def invocations(self) -> int:
        """Invocations of all workgroups."""
        return self.lanes * self.workgroups


@dataclass(frozen=True)
class _Entry:
    """The row of a kernel.

    Attributes
    ----------
    lanes : callable
        Returns the invocations of a workgroup.
    starts : callable or None
        Yields for the invocations of workgroup 0 the slice (or element) and the element of it that they begin with;
        None for kernels that access no tensor on ordinary data.
    writes : callable
        Returns how often an element is written; it is read once.
    words : callable
        Returns how many words of scratch memory are read and written.
    ahead : callable
        Returns how many elements an invocation loads before it uses any.
    span : callable
        Returns where an invocation's elements end, counted as in `starts`.
    links : callable, optional
        Returns the serial links; by default the steps of the kernel's row in `TABLE`.
    """

    lanes: _Count
    starts: _Starts | None
    writes: _Count = lambda _: 1
    words: _Words = lambda _: (0, 0)
    ahead: _Count = lambda w: min(RUN, w.length)
    span: _Count = lambda w: w.length
    links: _Count | None = None


def _carry_words(work: Work) -> int:
    return 3 * work.accumulator_words + 1


def _slices(lanes: int, work: Work, together: int = 1) -> Iterator[tuple[int, int]]:
    return ((lane * together, 0) for lane in range(lanes) if lane * together < work.count)


def _tiles(work: Work) -> Iterator[tuple[int, int]]:
    apart = {"runs": RUN, "staged": _in_quad(work), "strided": 1}[work.slots["tile"]]
    return ((0, first) for first in range(0, min(TILE, work.length), apart))


def _of_tile(work: Work) -> int:
    """Return the elements of a tile that an invocation loads before it uses any."""
    if work.slots["tile"] == "runs":
        return min(RUN, work.length)
    at_once = _in_quad(work) if work.slots["tile"] == "staged" else 1
    return at_once * ceil_div(min(TILE, work.length), 256 * at_once)


def _stored_at_once(work: Work) -> int:
    """Return how many elements neighbours write at once: those of a word, where a tile has no gaps, else 1.

    The words at the ends of a turn of a tile or strip, which its neighbours may share, are taken for whole: 1 in 512 is
    not.
    """
    is_dense = work.fields["output_axis_stride"] in (1, 2**32 - 1)
    is_turned = work.is_staged or (work.slots.get("tile") == "strided" and is_dense)
    return 32 >> min(5, work.constants["output_log2_bits"]) if is_turned else 1


def _stretch(work: Work) -> int:
    """Return the elements of the slices that a workgroup of scan_blocks takes."""
    return min(work.count, block_slices(work)) * work.length


def _units_of_blocks(work: Work) -> Iterator[tuple[int, int]]:
    apart = _in_unit_of_blocks(work)
    return ((0, lane * apart) for lane in range(min(work.constants["lanes"], _stretch(work) // apart)))


def _in_unit_of_blocks(work: Work) -> int:
    return 1 if work.slots["units"] == "elements" else _in_quad(work)


def _in_quad(work: Work) -> int:
    return QUAD_BYTES * 8 >> work.constants["input_log2_bits"]


def _serial_tiles(work: Work) -> Iterator[tuple[int, int]]:
    for number in range(min(8, work.all_tiles)):
        slice_, tile = divmod(number, work.tiles)
        if work.fields["side_by_side"]:
            tile, slice_ = divmod(number, work.count)
        yield slice_, tile * TILE


def _band(work: Work) -> Iterator[tuple[int, int]]:
    of_row = ceil_div(work.fields["across"], work.in_group)
    places = (divmod(number, of_row) for number in range(min(8, work.groups)))
    return ((row * work.fields["across"] + within * work.in_group, 0) for row, within in places)


def _progress(work: Work) -> tuple[int, int]:
    """Return the words of what goes from window to window and from phase to phase."""
    phase, carry = work.constants["phase"], 3 * work.accumulator_words + 1
    first, end = work.fields["first"], work.fields["first"] + work.length
    if work.is_exact or phase == FOLD:
        read, written = work.accumulator_words, carry if end % TILE == 0 else work.accumulator_words
    else:
        read = carry * (first >= TILE) + (_fetched_inside_a_tile(work) if first % TILE else 0)
        written = _kept_inside_a_tile(work) if end % TILE else carry
    slices = work.count * work.constants["in_windows"]
    told = work.count if phase == WRITE and work.folds == 2 else 0
    tells = work.count if phase in (CHECK, TRY) and (work.fields["suspend"] == 0 or end % TILE == 0) else 0
    return read * slices * work.fields["resume"] + told, written * slices * work.fields["suspend"] + tells


def _fetched_inside_a_tile(work: Work) -> int:
    """Return the words that a slice fetches where a window begins, as resume of wgsl/lib/slices/kept.wgsl does."""
    phase, i, runs = work.constants["phase"], work.fields["first"] % TILE, work.fields["first"] // RUN % RUN
    values = 1 + (phase == CHECK) + (i % RUN > 0) + (i >= RUN) + (i >= BLOCK)
    # Of the last `level` runs, those from the one on that the first run to end in the window needs.
    values += sum(max(0, min(level, runs) - max(0, level - _runs_within(work))) for level in _LEVELS)
    return work.accumulator_words * values + (phase < WRITE)


def _kept_inside_a_tile(work: Work) -> int:
    """Return the words that a slice keeps where a window ends, as suspend of the same file does."""
    phase, first, end = work.constants["phase"], work.fields["first"], work.fields["first"] + work.length
    within = _runs_within(work)
    values = 1 + (phase == CHECK) + (end % RUN > 0) + (within > 0) + (end // BLOCK > first // BLOCK)
    values += sum(min(level, end // RUN % RUN, within) for level in _LEVELS)
    return work.accumulator_words * values + (phase < WRITE)


def _runs_within(work: Work) -> int:
    """Return how many runs end in a window."""
    return (work.fields["first"] + work.length) // RUN - work.fields["first"] // RUN


def _carries(work: Work) -> tuple[int, int]:
    words = work.count * _carry_words(work)
    return words * work.fields["resume"], words * work.fields["suspend"]


def _total_words(work: Work) -> tuple[int, int]:
    return 0, (4 * work.accumulator_words + 4) * work.all_tiles


def _carry_over_words(work: Work) -> tuple[int, int]:
    wide = work.accumulator_words
    of_tile = 4 * wide + (3 if work.folds == 2 else 0)
    read = of_tile * work.all_tiles + (wide + _carry_words(work) * work.fields["resume"]) * work.count
    return read, 2 * wide * work.all_tiles + (_carry_words(work) + 2) * work.count


def _lookback_words(work: Work) -> tuple[int, int]:
    """Return the words where each tile finds the prefix of the span before its own at once."""
    wide, is_float = work.accumulator_words, int(work.folds == 2)
    number = work.fields["first"] // TILE % RUN + np.arange(work.tiles)
    span, before = number // RUN, np.where(number < RUN, np.arange(work.tiles), number % RUN)
    ends = 2 * wide * is_float * work.fields["exclusive"]
    total = 2 * wide + 2 * is_float
    carry = _carry_words(work)
    # The ticket, and the class, which says that the tile is written; totals of tiles; flags and prefix of spans.
    read = 2 * work.tiles + carry * work.fields["resume"] * work.tiles
    read += int((total * before + 3 * ends * (before > 0)).sum())
    read += int(np.where(span > 0, np.minimum(span, _FEW_SPANS) + 2 * wide, 0).sum())
    read += ends * int(((before == 0) & (span > 0)).sum())
    written = (2 + total + 3 * ends + wide + 3 * (wide + 1) * is_float) * work.tiles
    written += (total + 2 * wide + 1 + ends) * int((number % RUN == RUN - 1).sum()) + carry * work.fields["suspend"]
    return read * work.count, written * work.count


def _tile_words(work: Work) -> tuple[int, int]:
    """Return the words of whether tiles are written, of floats one for all of a slice's, and of what is cleared."""
    kept = work.count * tile_slice_words(work.tiles, work.accumulator_words)
    cleared = TABLE["scan_tiles"].scratch_words(work) - kept
    told = work.all_tiles
    if work.folds == 2:
        told = _slices_of_tiles(work, side_by_side=bool(work.fields["lookback"] & OF_STRIPS))
    return 0 if work.fields["lookback"] & BEFORE_LOOKBACK else told, cleared


def _slices_of_tiles(work: Work, *, side_by_side: bool) -> int:
    """Return the slices of all workgroups that take 8 tiles each: those of slices in turn, or slice after slice."""
    if side_by_side:
        workgroups, rest = divmod(work.all_tiles, 8)
        return workgroups * min(work.count, 8) + min(work.count, rest)
    # A workgroup has one slice more than slices begin inside it.
    at_edges = (work.count - 1) // (8 // math.gcd(work.tiles, 8))
    return ceil_div(work.all_tiles, 8) + work.count - 1 - at_edges


def _repair_words(work: Work) -> tuple[int, int]:
    """Return the words of which tiles of slices are left, or may be exceptional."""
    is_told = work.fields["lookback"] and not work.fields["turn_first"]
    return work.count, work.count if is_told else 0


def _reduced_words(work: Work) -> tuple[int, int]:
    """Return the words of what tiles begin with, and of what the passes behind need of each."""
    of_tile = 4 * work.accumulator_words + 4
    return _carry_words(work) * work.fields["resume"] * work.all_tiles, of_tile * work.all_tiles


def _words_of_bases(work: Work) -> tuple[int, int]:
    """Return the words of what each tile begins with, which the first turn works out."""
    if work.fields["turn_first"]:
        return work.count, 0
    read, written = _carry_over_words(work)
    return read + work.count, written


def _links_of_bases(work: Work) -> int:
    """Return the links of a slice's bases: twice the tiles of a span, for each 256 spans, and all spans in between."""
    in_span = SPAN_TILES
    spans = ceil_div(work.tiles + work.fields["first"] // TILE % in_span, in_span)
    return 1 if work.fields["turn_first"] else 2 * min(in_span, work.tiles) * ceil_div(spans, 256) + spans


def _scanned_words(work: Work) -> tuple[int, int]:
    """Return the words of which tiles are left, what a tile goes on from, and the last result before it."""
    wide = work.accumulator_words
    of_tile = 3 + wide + _carry_words(work) * work.fields["resume"]
    return of_tile * work.all_tiles + wide * (work.all_tiles - work.count), 0


def _serial_tile_words(work: Work) -> tuple[int, int]:
    wide, slices = work.accumulator_words, _slices_of_tiles(work, side_by_side=bool(work.fields["side_by_side"]))
    of_slice = (2 if work.folds == 2 else 0) + _carry_words(work) * work.fields["resume"]
    return of_slice * slices + 2 * wide * work.all_tiles - wide * work.count, 0


def _band_words(work: Work) -> tuple[int, int]:
    """Return the words of columns of floats: what the next block begins with, and the carry."""
    wide, first, length = work.accumulator_words, work.fields["first"], work.length
    last = first + (length - 1) // BLOCK * BLOCK  # the element that the last block begins with
    goes_on, in_tiles, ends = last > 0, last >= TILE, (first + length) // TILE > first // TILE
    tile_ends = (first + length) % TILE == 0
    unfinished = not tile_ends or length > BLOCK
    read = 2 * wide + wide * goes_on + wide * (goes_on or ends) + 1 + (3 * wide + 1) * in_tiles
    written = 3 * wide + 2 + 3 * wide * ends + wide * unfinished
    return read * work.count, written * work.count


def _exact_band_words(work: Work) -> tuple[int, int]:
    row = QUAD_BYTES // 4 * work.groups
    return row * (work.fields["first"] > 0 or work.length > BLOCK), row


def _band_links(work: Work) -> int:
    bands = ceil_div(work.groups, 8 * work.constants["vectors"] * work.fields["grid_width"])
    return work.length * bands


def _strip(work: Work) -> Iterator[tuple[int, int]]:
    lanes, apart = work.constants["lanes"], _across(work)
    if work.is_staged:
        across = work.fields["across"]
        yield from ((number % across, number // across) for number in range(min(256, across * work.length)))
        return
    for lane in range(256):
        slice_, first = lane % lanes * apart, RUN * (lane // lanes)
        if slice_ < work.count and first < work.length:
            yield slice_, first


def _of_strip(work: Work) -> int:
    """Return the elements of a stretch that an invocation of a strip loads before it uses any."""
    if work.is_staged:
        return ceil_div(RUN * work.fields["across"], work.constants["lanes"])
    return RUN * work.constants["columns"] * work.in_cell


def _row_words(one: Pass, tensor: str) -> tuple[int, int]:
    """Return how many words strips or bands have in rows that begin anywhere, and how many of these take an atomic.

    A word in which one row ends and the next one begins counts for both.
    """
    work, params = Work.of(one), one.params
    in_word, across = 32 >> work.constants[f"{tensor}_log2_bits"], work.fields["across"]
    if "vectors" in work.constants:  # each invocation has a part of the words at its ends
        own, width = work.in_group, 8 * work.constants["vectors"] * work.in_group
    else:
        own = width = work.constants["lanes"] * in_word
    dims = zip(params["sizes"].tolist(), params[f"{tensor}_strides"].tolist(), strict=True)
    along = (work.length, int(params[f"{tensor}_axis_stride"]))
    rows = _beginnings(int(params[f"{tensor}_offset"]), [along, *list(dims)[1 : work.fields["rank"]]], in_word)
    found = shared = 0
    for begin, times in rows.items():
        for elements, strips in ((width, across // width), (across % width, 1)):
            end = begin + elements
            words = ceil_div(end, in_word)
            of_others = min(words, (begin > 0) * ceil_div(elements, own) + (end % in_word > 0))
            if elements:
                found, shared = found + times * strips * words, shared + times * strips * of_others
    return found, shared


def _run_words(one: Pass, tensor: str) -> tuple[int, int]:
    """Return the same of slices whose runs begin anywhere: each run has a part of the words at its ends.

    A word in which one invocation's tile ends and another's begins counts for both; that of slices without a gap
    between them once.
    """
    work, params = Work.of(one), one.params
    in_word = 32 >> work.constants[f"{tensor}_log2_bits"]
    dims = list(zip(params["sizes"].tolist(), params[f"{tensor}_strides"].tolist(), strict=True))[: work.fields["rank"]]
    offset = int(params[f"{tensor}_offset"])
    tiles = work.tiles if _row_of(one).starts is _serial_tiles else 1
    last = work.length - (tiles - 1) * TILE
    found = shared = 0
    for begin, times in _beginnings(offset, dims, in_word).items():
        for length, parts in ((TILE, tiles - 1), (last, 1)):
            end = begin + length
            inner = (ceil_div(length, RUN) - 1) * (begin > 0)
            found += times * parts * ceil_div(end, in_word)
            shared += times * parts * min(ceil_div(end, in_word), (begin > 0) + (end % in_word > 0) + inner)
    if dims and dims[0][1] == work.length:  # all but the last of a row have a neighbour
        others = _beginnings(offset, [(dims[0][0] - 1, work.length), *dims[1:]], in_word)
        both = sum(times for begin, times in others.items() if (begin + work.length) % in_word)
        found, shared = found - both, shared - both
    return found, shared


def _beginnings(offset: int, dims: Sequence[tuple[int, int]], in_word: int) -> dict[int, int]:
    """Return how many of all places of these sizes and strides are at which element of a word."""
    found: dict[int, int] = {offset % in_word: 1}
    for size, stride in dims:
        before, found = found, defaultdict[int, int](int)
        for (begin, times), i in product(before.items(), range(min(size, in_word))):
            found[(begin + i * stride) % in_word] += times * ceil_div(size - i, in_word)
    return found


def _strip_words(work: Work) -> tuple[int, int]:
    """Return the words of which tiles are exceptional, and of carries between windows."""
    told = work.count if work.folds == 2 else 0
    carries = 3 * work.accumulator_words * work.count // work.in_cell
    return (told + carries) * work.fields["resume"], told + carries * work.fields["suspend"]


def _strip_lookback_words(work: Work) -> tuple[int, int]:
    """Return the words where each part finds the prefixes of the spans that it looks at first."""
    halves, slices, rows = 2 * work.accumulator_words, work.count, part_rows(work.constants["lanes"])
    is_float, across = int(work.folds == 2), work.fields["across"] if work.is_unaligned else work.count
    cells = work.count // across * ceil_div(across, work.in_cell)
    number = np.arange(ceil_div(work.length, rows))
    of_tile = TILE // rows if is_float else 1
    blocks = rows // BLOCK * is_float * (rows < TILE)
    tile = number // of_tile
    # Of integers, windows begin with a span.
    tiles = tile + work.fields["first"] // TILE % RUN * is_float
    before = np.where(tiles < RUN, tile, tiles % RUN)
    is_last, ends = (number + 1) % of_tile == 0, is_float * work.fields["exclusive"]
    found = number % of_tile * blocks + before + np.minimum(tiles // RUN, _FEW_STRIP_SPANS) + ends * (number > 0)
    posted = blocks + is_last + 2 * (is_last & (tiles % RUN == RUN - 1)) + ends
    tickets = strip_parts(work)
    carries = 3 * work.accumulator_words * slices
    kept = (work.accumulator_words + 1) * slices * len(number)
    if is_float:  # whole tiles leave their records
        kept = (4 * work.accumulator_words + 4) * slices * len(number) * (rows == TILE)
    read = tickets + cells * halves * int(found.sum()) + (carries + cells) * work.fields["resume"] * len(number)
    return read, tickets + cells * halves * int(posted.sum()) + kept + (carries + slices) * work.fields["suspend"]


def _units(work: Work) -> Iterator[tuple[int, int]]:
    of_unit = unit_elements(work)
    step = of_unit * (work.constants["units"] if work.constants["stride"] == 1 else 1)
    return ((first, 0) for first in range(0, 64 * step, step) if first < work.count)


_ROWS: Final[Mapping[str, _Entry]] = {
    "scan_short": _Entry(
        lanes=lambda w: w.constants["lanes"],
        starts=lambda w: _slices(w.constants["lanes"], w, portion_slices(w)),
        ahead=lambda w: RUN if w.constants["runs"] else w.length,
        span=lambda w: w.constants["runs"] * RUN or w.length,
    ),
    "scan_blocks": _Entry(
        lanes=lambda w: w.constants["lanes"],
        starts=_units_of_blocks,
        ahead=lambda w: _in_unit_of_blocks(w) * ceil_div(_stretch(w) // _in_unit_of_blocks(w), w.constants["lanes"]),
        span=_stretch,
    ),
    "scan_slices": _Entry(
        lanes=lambda w: w.constants["lanes"],
        starts=lambda w: _slices(w.constants["lanes"], w),
        writes=lambda w: w.constants["phase"] != CHECK,
        words=_progress,
    ),
    "scan_bands": _Entry(
        lanes=lambda _: 8, starts=_band, words=_band_words, ahead=lambda w: w.in_group, links=_band_links
    ),
    "scan_bands_exact": _Entry(
        lanes=lambda _: 8, starts=_band, words=_exact_band_words, ahead=lambda w: w.in_group, links=_band_links
    ),
    "scan_strips": _Entry(
        lanes=lambda _: 256,
        starts=_strip,
        words=_strip_words,
        ahead=_of_strip,
    ),
    "scan_strip_lookback": _Entry(
        lanes=lambda _: 256,
        starts=_strip,
        words=_strip_lookback_words,
        ahead=_of_strip,
        span=lambda w: min(part_rows(w.constants["lanes"]), w.length),
    ),
    "scan_strip_totals": _Entry(lanes=lambda _: 256, starts=None, words=lambda w: (w.all_tiles, 0), links=lambda _: 1),
    "scan_rows": _Entry(lanes=lambda _: 256, starts=_tiles, words=_carries, ahead=_of_tile),
    "scan_lookback": _Entry(lanes=lambda _: 256, starts=_tiles, words=_lookback_words, ahead=_of_tile),
    "scan_serial_totals": _Entry(lanes=lambda _: 8, starts=_serial_tiles, writes=lambda _: 0, words=_total_words),
    "scan_carries": _Entry(lanes=lambda _: 64, starts=None, words=_carry_over_words),
    "scan_repair": _Entry(lanes=lambda _: 256, starts=None, words=_repair_words, links=lambda _: 1),
    "scan_tiles": _Entry(lanes=lambda _: 256, starts=None, words=_tile_words, links=lambda _: 1),
    "scan_serial_tiles": _Entry(lanes=lambda _: 8, starts=_serial_tiles, words=_serial_tile_words),
    "elementwise": _Entry(lanes=lambda _: 64, starts=lambda w: _slices(64, w), ahead=lambda _: 1),
    "elementwise_units": _Entry(
        lanes=lambda _: 64,
        starts=_units,
        ahead=lambda w: (4 if w.constants["units"] == 4 else 1) * unit_elements(w),
    ),
}


_ROWS_IF_ALL_ARE_LEFT: Final[Mapping[str, _Entry]] = {
    "scan_lookback": _Entry(
        lanes=lambda _: 256,
        starts=_tiles,
        writes=lambda _: 0,
        words=_reduced_words,
        ahead=_of_tile,
        links=lambda w: w.lane_steps,
    ),
    "scan_repair": _Entry(
        lanes=lambda _: 256,
        starts=None,
        words=_words_of_bases,
        links=_links_of_bases,
    ),
    "scan_tiles": _Entry(lanes=lambda _: 256, starts=_tiles, words=_scanned_words, ahead=_of_tile),
}
"""Of kernels that leave all tiles, or find them left."""

_LEFT: Final = _Entry(
    lanes=lambda w: w.constants["lanes"], starts=None, words=lambda w: (w.count, 0), links=lambda _: 1
)
"""Of scan_slices over what others have left."""


def _row_of(one: Pass) -> _Entry:
    kernel, work = one.pipeline.kernel, Work.of(one)
    if work.slots.get("slices") == "suspects" or work.constants.get("phase") == REPAIR:
        return _LEFT
    return _ROWS_IF_ALL_ARE_LEFT[kernel] if work.fields["lookback"] == LEAVES_ALL else _ROWS[kernel]


def figures_of(one: Pass) -> Figures:
    """Return what a pass moves on ordinary data."""
    work = Work.of(one)
    row = _row_of(one)
    kernel = TABLE[one.pipeline.kernel]
    workgroups = one.grid[0] * one.grid[1]
    state_read, state_written = row.words(work)
    read, written, lane_bytes, workgroup_bytes = _WORD_BYTES * state_read, _WORD_BYTES * state_written, 0, 0
    sectors: tuple[Sectors | None, Sectors | None] = (None, None)
    if row.starts is not None:
        of_elements = _bytes_of_tensors(one, row, work)
        read, written = read + of_elements[0], written + of_elements[1]
        itemsize = 1 << work.constants["input_log2_bits"] >> 3
        lane_bytes = row.ahead(work) * itemsize
        lanes = len(list(islice(row.starts(work), row.lanes(work))))
        workgroup_bytes = min(lanes * lane_bytes, one.elements * itemsize // workgroups)
        sectors = _sectors(one)
        if not row.writes(work):
            sectors = (sectors[0], None)
    steps = row.links or kernel.steps
    return Figures(
        lanes=row.lanes(work),
        workgroups=workgroups,
        bytes_read=read,
        bytes_written=written,
        read_sectors=sectors[0],
        write_sectors=sectors[1],
        lane_bytes=lane_bytes,
        workgroup_bytes=workgroup_bytes,
        serial_links=steps(_Ordinary(work.fields, work.constants, work.slots)),
    )


def _bytes_of_tensors(one: Pass, row: _Entry, work: Work) -> tuple[int, int]:
    """Return the bytes of tensors that a pass reads and writes, those among them that others have a part of, too."""
    if work.is_unaligned or work.has_unaligned_runs:
        words_of = _row_words if work.is_unaligned else _run_words
        words, shared = words_of(one, "output")
        read = _WORD_BYTES * words_of(one, "input")[0]
        written, put_in = (_WORD_BYTES * row.writes(work) * n for n in (words, shared))
    else:
        itemsizes = [1 << work.constants[f"{tensor}_log2_bits"] >> 3 for tensor in ("input", "output")]
        read = one.elements * itemsizes[0]
        written = row.writes(work) * one.elements * itemsizes[1]
        put_in = written if work.slots["output"] == "packed" and _stored_at_once(work) == 1 else 0
    if work.slots["input"] == "in_output":
        return read, written
    return read + put_in, written  # the words that elements are put into are read, too


class _Ordinary(Work):
    """The work of a pass over data of which no tile is folded again."""

    @property
    def folds(self) -> int:
        return 1


def _sectors(one: Pass) -> tuple[Sectors | None, Sectors | None]:
    """Return the sectors of the first subgroup's accesses to input and output."""
    params = one.params.copy()
    ranges = (one.input or one.output, one.output)
    for name, part, bits in zip(("input", "output"), ranges, _log2_bits(one), strict=True):
        assert part is not None
        # Places count from the binding; a sector from the buffer. Whole sectors make no difference.
        place = int(params[f"{name}_offset"]) + (part.offset << 3 >> bits)
        params[f"{name}_offset"] = place % (SECTOR_BYTES << 3 >> bits)
    params["first"] = 0
    return _sectors_of(replace(one, uniforms=params.tobytes(), input=None, output=None, elements=0))


def _log2_bits(one: Pass) -> tuple[int, int]:
    constants = dict(one.pipeline.constants)
    return constants["input_log2_bits"], constants["output_log2_bits"]


@lru_cache(maxsize=1024)
def _sectors_of(one: Pass) -> tuple[Sectors | None, Sectors | None]:
    row, work = _row_of(one), Work.of(one)
    assert row.starts is not None
    starts = list(islice(row.starts(work), SUBGROUP))
    # Neighbours in a slice end where the next one begins.
    apart = starts[1][1] - starts[0][1] if len(starts) > 1 and starts[0][0] == starts[1][0] else _SAMPLE
    around = _Surroundings(work, one.params, starts, min(apart, _SAMPLE), row.span(work))
    return around.sectors("input"), around.sectors("output")


@dataclass(frozen=True)
class _Surroundings:
    """The accesses of a subgroup: where its lanes begin, how many elements each goes, and where slices end."""

    work: Work
    params: np.void
    starts: Sequence[tuple[int, int]]
    elements: int
    end: int

    def sectors(self, tensor: str) -> Sectors:
        """Return the sectors of the accesses to a tensor."""
        accesses = touched = least = 0
        for places, nbytes in self._accesses(tensor):
            accesses += 1
            touched += len({place // SECTOR_BYTES for place in places})
            least += ceil_div(len(places) * nbytes, SECTOR_BYTES)
        return Sectors(touched / accesses, least / accesses)

    def _accesses(self, tensor: str) -> Iterator[tuple[list[int], int]]:
        """Yield for each access the lanes' places in bytes, and how many bytes a lane wants of it."""
        if self.work.is_staged:
            yield self._of_stage(tensor)
            return
        slots, itemsize = self.work.slots, 1 << self.work.constants[f"{tensor}_log2_bits"] >> 3
        unit = _VECTORS.get(slots["output"], _WORD_BYTES)
        across = _across(self.work)
        # By vectors or words along the slice, by an element, or by adjacent slices.
        step = unit // itemsize if (unit == QUAD_BYTES and across == 1) or self.work.has_unaligned_runs else 1
        nbytes = across * step * itemsize
        along = _stored_at_once(self.work) if tensor == "output" else 1
        nbytes *= along
        stride = _signed(int(self.params[f"{tensor}_axis_stride"]))
        starts = [(slice_, first * along) for slice_, first in self.starts]
        cells = [
            [self._place(tensor, slice_ + cell) + first * stride for slice_, first in starts]
            for cell in _cells(self.work)
        ]
        for j, bases in product(range(0, self.elements, step), cells):
            there = [base for base, (_, first) in zip(bases, starts, strict=True) if first + j < self.end]
            for part in range(0, nbytes if there else 0, unit):
                yield [(base + j * stride) * itemsize // unit * unit + part for base in there], min(nbytes, unit)

    def _of_stage(self, tensor: str) -> tuple[list[int], int]:
        """Return the same of the elements or words of a turn, in the order of memory: all accesses are alike."""
        work, itemsize = self.work, 1 << self.work.constants[f"{tensor}_log2_bits"] >> 3
        along = _stored_at_once(work) if tensor == "output" else 1
        stride = _signed(int(self.params[f"{tensor}_axis_stride"]))
        rows = min(work.length, part_rows(work.constants["lanes"]) // _TURNS)
        low = self._place(tensor, 0) + min(0, (rows - 1) * stride)
        numbers = range(0, min(SUBGROUP * along, rows * work.fields["across"]), along)
        unit = max(itemsize, _WORD_BYTES)
        return [(low + n) * itemsize // unit * unit for n in numbers], along * itemsize

    def _place(self, tensor: str, number: int) -> int:
        """Return where a slice begins, as place_of of wgsl/lib/params.wgsl does."""
        params = self.params
        place = int(params[f"{tensor}_offset"])
        for size, stride in zip(params["sizes"], params[f"{tensor}_strides"], strict=True):
            if size == 0:
                break
            number, coordinate = divmod(number, int(size))
            place += coordinate * _signed(int(stride))
        return place


def _across(work: Work) -> int:
    """Return how many adjacent slices an invocation accesses together."""
    if "vectors" in work.constants:
        return work.in_group
    if "cells" in work.slots:
        return work.in_cell * (1 if work.slots["cells"] == "words" else work.constants["columns"])
    return 1


def _cells(work: Work) -> tuple[int, ...]:
    """Return how many slices from its first one those are that an invocation has beside it, not adjacent."""
    if work.slots.get("cells") == "words" and work.constants["columns"] == 2:
        return 0, work.constants["lanes"] * work.in_cell
    return (0,)


def _signed(word: int) -> int:
    return word - 2**32 if word >= 2**31 else word
