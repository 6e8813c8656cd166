"""Pure: what is legal for each kernel, and what follows from its work: one row a kernel.

A row is read three times. Planning takes from it which slots and constants a pipeline has, how many workgroups a
dispatch needs and how much scratch memory it binds; `serial_steps` how long it may take; and `check_pass` holds a
finished pass to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ..layout import ceil_div
from .params import scalars
from .windows import BLOCK, QUAD_BYTES, RUN, SPAN_TILES, TILE

if TYPE_CHECKING:
    from .dispatch import Pass

__all__ = [
    "ACCESS",
    "BEFORE_LOOKBACK",
    "BEHIND_LOOKBACK",
    "CHECK",
    "DEAR_ELEMENTS",
    "DIRECT",
    "FOLD",
    "LEAVES_ALL",
    "LOOKBACK_HEADER_WORDS",
    "MAX_SERIAL_STEPS",
    "OF_STRIPS",
    "REPAIR",
    "TABLE",
    "TRY",
    "WRITE",
    "Kernel",
    "Work",
    "block_slices",
    "check_pass",
    "groups_of",
    "lookback_slice_words",
    "part_rows",
    "portion_slices",
    "progress_words",
    "serial_steps",
    "strip_lookback_slice_words",
    "strip_parts",
    "tile_record_words",
    "tile_slice_words",
    "unit_elements",
]

DIRECT, CHECK, TRY, WRITE, REPAIR, FOLD = range(6)
"""The phases of scan_slices.wgsl."""
MAX_SERIAL_STEPS = 5 * 2**20
"""The most that `serial_steps` may be, whatever the data: half a second at 100 ns a step, which is slow for a GPU;
watchdogs wait for 2 seconds and more."""
DEAR: Final = 4
"""Steps of an element whose combination takes dozens of operations, or which is stored by an atomic operation."""
DEAR_ELEMENTS: Final = ("f64_words", "f32_compensated")
"""The pieces of elements whose combination takes dozens of operations."""
_NEAR = 8
"""Elements in workgroup memory that count as one step: it is at hand in some ten cycles, other memory in hundreds."""
_MOST_PARTS = 8
"""Of a tile of floats, as MOST_PARTS of wgsl/lib/strips/posts.wgsl."""
_TILES_TOGETHER = 8
"""Of a workgroup of scan_tiles, if it is not told otherwise."""


def progress_words(by_carry: bool, in_place: bool = False) -> int:
    """Return the words a slice that scan_slices.wgsl keeps between windows, with one between phases.

    Parameters
    ----------
    by_carry : bool
        Whether a carry is enough: where windows end with tiles, and of left folds and integers, wherever they end.
    in_place : bool
        Whether two phases each keep theirs.
    """
    return 1 + (7 if by_carry else 48) * (1 + in_place)


@dataclass(frozen=True)
class Access:
    """A way to read and write elements: the pieces that belong together, and the elements' widths in logarithms."""

    output: str
    slots: Mapping[str, str]
    widths: Container[int]


ACCESS: Final = {
    "packed": Access("packed", {"run_access": "strided"}, (3, 4)),
    "words": Access("words", {"run_access": "strided"}, (5, 6)),
    "quads": Access("quads", {"run_access": "quads", "vector": "quads"}, range(3, 7)),
    "unaligned runs": Access("packed", {"run_access": "packed"}, (3, 4)),
    "cells of words": Access("words", {"cells": "words"}, (3, 4, 5)),
    "cells of halves": Access("words", {"cells": "halves"}, (4,)),
    "cells of unaligned words": Access("packed", {"cells": "unaligned"}, (3, 4)),
    "cells of unaligned halves": Access("packed", {"cells": "unaligned_halves"}, (4,)),
    "cells of pairs": Access("pairs", {"cells": "pairs"}, range(3, 7)),
    "cells of few columns": Access("words", {"cells": "staged"}, (5,)),
    "cells of few packed columns": Access("packed", {"cells": "staged"}, (3, 4)),
    "cells of few wide columns": Access("pairs", {"cells": "staged_pairs"}, (6,)),
    "stage of words": Access("quads", {"stage": "words", "units": "vectors"}, (5, 6)),
    "stage of packed words": Access("quads", {"stage": "packed", "units": "vectors"}, (3, 4)),
    "stage of elements": Access("words", {"stage": "words", "units": "elements"}, (5, 6)),
    "fours of pairs": Access("pairs", {"fours": "pairs"}, (4,)),
    "fours of quads": Access("quads", {"fours": "quads"}, (5, 6)),
    "fours of words": Access("words", {"fours": "words"}, (4, 5, 6)),
    "unaligned fours": Access("packed", {"fours": "packed"}, (4,)),
    "vectors of words": Access("words", {"vector": "words"}, range(3, 7)),
    "unaligned vectors": Access("packed", {"vector": "packed"}, (3, 4)),
}
"""By element, where those of less than a word are packed; by vectors, also of many slices at once; a word or four
elements of adjacent slices; or whole rows of a few."""

_ELEMENTS: Final = {
    "int": range(3, 6),
    "int_packed": (3, 4),
    "int64": (6,),
    "f16": (4,),
    "f32": (5,),
    "f32_compensated": (5,),
    "f64": (6,),
    "f64_words": (6,),
    "max": range(3, 6),
    "max64": (6,),
}
"""For each piece of the slot <element> the widths of its elements, as logarithms of bits."""
_FLOATS: Final = ("f16", "f32", "f64")
"""The pieces whose operations can be hidden from the compiler."""
_IN_CELLS: Final = ("int", "int_packed", "int64", *_FLOATS)
"""The pieces that strips take."""
_EXACT: Final = ("int", "int64", "max", "max64")
"""The pieces whose operations give the same bits in any order."""


@dataclass(frozen=True)
class Work:
    """What a dispatch has to do: the values that its grid, its scratch memory and its duration follow from."""

    fields: Mapping[str, int]
    constants: Mapping[str, int]
    slots: Mapping[str, str]

    @classmethod
    def of(cls, one: Pass) -> Work:
        """Return the work of a pass."""
        return cls(scalars(one.uniforms), dict(one.pipeline.constants), dict(one.pipeline.slots))

    @property
    def count(self) -> int:
        """The slices, or the elements of elementwise kernels."""
        return self.fields["count"]

    @property
    def tiles(self) -> int:
        """The tiles of a slice."""
        return self.fields["tiles"]

    @property
    def in_cell(self) -> int:
        """The slices that an invocation of a strip has as one: the integers of a word."""
        is_single = self.is_staged or self.slots["cells"].endswith("halves")
        return 1 if is_single else 32 >> min(5, self.constants["output_log2_bits"])

    @property
    def is_unaligned(self) -> bool:
        """Whether it is strips or bands whose words begin anywhere in words of memory."""
        is_strips = self.slots.get("cells", "").startswith("unaligned")
        return is_strips or "packed" in (self.slots.get("fours"), self.slots.get("vector"))

    @property
    def is_staged(self) -> bool:
        """Whether it is strips of a few columns without gaps, which have whole rows of memory."""
        return self.slots.get("cells", "").startswith("staged")

    @property
    def has_unaligned_runs(self) -> bool:
        """Whether an invocation has runs whose words begin anywhere in words of memory."""
        return self.slots.get("run_access") == "packed"

    @property
    def all_tiles(self) -> int:
        """The tiles of all slices."""
        return self.count * self.tiles

    @property
    def in_group(self) -> int:
        """The adjacent columns that an invocation of a band takes at a place: of integers, those of four words."""
        return 4 if "fours" in self.slots else 128 >> self.constants["output_log2_bits"]

    @property
    def groups(self) -> int:
        """How many places there are for them."""
        return groups_of(self.count, self.fields["across"], self.in_group)

    @property
    def length(self) -> int:
        """The elements of a slice."""
        return self.fields["length"]

    @property
    def element(self) -> str:
        """The piece for the element type."""
        return self.slots["element"]

    @property
    def accumulator_words(self) -> int:
        """32-bit words of an accumulator."""
        return 2 if "64" in self.element or self.element == "f32_compensated" else 1

    @property
    def folds(self) -> int:
        """How often an element is combined: a tile that turns out to be exceptional is folded again."""
        return 1 if self.is_exact else 2

    @property
    def is_exact(self) -> bool:
        """Whether operations give the same bits in any order."""
        return self.element in (*_EXACT, "int_packed")

    @property
    def lane_steps(self) -> int:
        """The steps of an invocation in a tile: its elements, and the totals of the others."""
        return 2 * RUN

    @property
    def tile_steps(self) -> int:
        """The same where an invocation may fold the whole tile again."""
        return self.lane_steps + (self.folds - 1) * min(self.length, TILE)


_Count = Callable[[Work], int]


@dataclass(frozen=True)
class Kernel:
    """The row of a kernel.

    Attributes
    ----------
    slots : tuple of str
        The slots that its text asks for.
    steps : callable
        Returns the most elements and scratch values that one invocation goes through one after the other.
    workgroups : callable or None
        Returns how many workgroups the work takes; None where the plan decides, by its field ``grid_width``.
    scratch_words : callable
        Returns the 32-bit words of scratch memory that it binds; 0 for kernels without.
    constants : mapping of str to container of int
        The legal values of its constants.
    optional : mapping of str to container of int
        The same of those that it can be without.
    accesses : tuple of str
        The ways of `ACCESS` to read and write.
    pieces : mapping of str to tuple of str
        The pieces that may fill slots where not all may that there are.
    rule : callable
        Returns whether constants and pieces go together that are each legal by themselves.
    """

    slots: tuple[str, ...]
    steps: _Count
    workgroups: _Count | None
    scratch_words: _Count = lambda _: 0
    constants: Mapping[str, Container[int]] = field(default_factory=dict)
    optional: Mapping[str, Container[int]] = field(default_factory=dict)
    accesses: tuple[str, ...] = ("packed", "words", "quads", "unaligned runs")
    pieces: Mapping[str, Container[str]] = field(default_factory=dict)
    rule: Callable[[Work], bool] = lambda _: True

    def takes(self, constant: str) -> bool:
        """Whether its text has this constant."""
        if constant in ("opaque", *_ORDER):
            return "product" in self.constants
        return constant in self.constants or constant in self.optional


_BOOL: Final = (0, 1)
_WIDTHS: Final = {"input_log2_bits": range(3, 7), "output_log2_bits": range(3, 7)}
_SCAN: Final = {"product": _BOOL, "flat": _BOOL, **_WIDTHS}
_ORDER: Final = {"sign_bit": (0, 1 << 7, 1 << 15, 1 << 31), "infinity": (0, 0x7C00, 0x7F800000, 0x7FF00000)}
_TENSORS: Final = ("input", "output", "element")
_RUNS: Final = (*_TENSORS, "run_access", "run")
_TILES: Final = ("runs", "staged", "strided")
"""The pieces for a tile by 256 invocations."""
_RUNS_OF_TILES: Final = {"staged": "quads", "strided": "strided"}
"""The pieces of <run_access> that they go with, where not with any."""
_ANY_SIZE: Final = range(2**32)
_BY_ELEMENT: Final = ("packed", "words")


def _progress_words(work: Work) -> int:
    """Words of what is kept between windows, or between the phases of one: else a token. Or what others have left."""
    if work.slots["slices"] == "suspects":
        return _column_words(work)
    phase = work.constants["phase"]
    if work.constants["in_windows"]:
        first, end = work.fields["first"], work.fields["first"] + work.length
        is_cut = first % TILE > 0 or (work.fields["suspend"] == 1 and end % TILE > 0)
        return work.count * progress_words(work.is_exact or phase == FOLD or not is_cut, phase in (CHECK, WRITE))
    return work.count if phase else 1


def _are_slices(work: Work) -> bool:
    """Whether what scan_slices takes and how go together.

    A window begins with a run and ends with one or its slice, or is said to be inside one: then it has 1, 2, 4 or 8
    elements, or ends its slice.
    """
    if work.slots["slices"] == "suspects":
        is_direct = work.constants["phase"] == DIRECT and not work.constants["inside_runs"]
        is_by_element = work.slots["run_access"] == "strided"
        return is_direct and is_by_element and "in_windows" not in work.constants and work.element in _FLOATS
    if "in_windows" not in work.constants:
        return False
    begin, length = work.fields["first"] % RUN, work.length
    if work.constants["inside_runs"]:
        is_known = work.fields["suspend"] == 0 or length in (1, 2, 4, 8)
        return is_known and begin + length <= RUN and work.constants["phase"] != DIRECT
    return begin == 0 and (work.fields["suspend"] == 0 or length % RUN == 0)


def tile_record_words(accumulator_words: int) -> int:
    """Return the words of a tile's record, as lib/tiles/state.wgsl has them."""
    return 6 * accumulator_words + 4


def tile_slice_words(tiles: int, accumulator_words: int) -> int:
    """Return the words of a slice's carries and of the records of its tiles, as lib/tiles/state.wgsl has them."""
    return 16 + tile_record_words(accumulator_words) * tiles


def _tile_words(work: Work) -> int:
    return work.count * tile_slice_words(work.tiles, work.accumulator_words)


LOOKBACK_HEADER_WORDS = 2
BEHIND_LOOKBACK, BEFORE_LOOKBACK = 1, 2
"""Values of the uniform ``lookback``, as lib/tiles/state.wgsl has them."""
OF_STRIPS, OF_WHOLE_TILES = 4, 8
"""What is added to them where it is scan_strip_lookback, and where its parts are whole tiles."""
LEAVES_ALL = 16
"""Their value where scan_lookback waits for nobody and leaves all tiles."""


def lookback_slice_words(tiles: int, accumulator_words: int, is_exact: bool, exclusive: int) -> int:
    """Return the words of a slice's records for tiles and spans, as lib/lookback/records.wgsl has them.

    Parameters
    ----------
    tiles : int
        Of the slice, in the window.
    accumulator_words : int
        32-bit words of an accumulator, each of which takes two in a record.
    is_exact : bool
        Whether no tile can be exceptional.
    exclusive : int
        1 where the last result before a tile matters, else 0.
    """
    halves = 2 * accumulator_words
    ends = 0 if is_exact else halves * exclusive
    tile = halves if is_exact else halves + 2 + 3 * ends
    left = 0 if is_exact else 1
    return left + tile * tiles + (2 * halves + 3 + ends) * _spans_of(tiles)


def strip_lookback_slice_words(
    tiles: int, accumulator_words: int, is_exact: bool, exclusive: int, has_blocks: bool = True
) -> int:
    """Return the words of a slice's records for blocks, tiles and spans, as lib/strips/posts.wgsl has them.

    Parameters
    ----------
    tiles, accumulator_words, is_exact, exclusive
        As of `lookback_slice_words`. Of integers, the parts of tiles count as tiles.
    has_blocks : bool
        Whether a tile has several parts.
    """
    halves = 2 * accumulator_words
    of_tile = TILE // BLOCK + exclusive * _MOST_PARTS if has_blocks else exclusive
    blocks = 0 if is_exact else halves * of_tile * tiles
    return 1 + blocks + halves * tiles + 2 * halves * _spans_of(tiles)


def _spans_of(tiles: int) -> int:
    """Return as many spans as so many tiles can lie in: the first and the last may be in part outside the window."""
    return ceil_div(tiles + SPAN_TILES - 1, SPAN_TILES)


def _lookback_words(work: Work) -> int:
    known = (work.tiles, work.accumulator_words, work.folds == 1, work.fields["exclusive"])
    lookback = work.fields["lookback"]
    if _leaves_all(work):
        return _tile_words(work)
    of_slice = lookback_slice_words(*known)
    if lookback & OF_STRIPS:
        of_slice = strip_lookback_slice_words(*known, not lookback & OF_WHOLE_TILES)
    return _tile_words(work) + LOOKBACK_HEADER_WORDS + of_slice * work.count


def _leaves_all(work: Work) -> bool:
    return work.fields["lookback"] == LEAVES_ALL


def _tiles_together(work: Work) -> int:
    """Return how many tiles a workgroup of scan_tiles takes."""
    return work.constants.get("together", _TILES_TOGETHER)


def _tile_or_lookback_words(work: Work) -> int:
    return _lookback_words(work) if work.fields["lookback"] else _tile_words(work)


def _base_steps(work: Work, at_once: int) -> int:
    # Twice over the tiles of a span, and in between over the spans that a workgroup takes at once.
    span, spans = SPAN_TILES, ceil_div(work.tiles, SPAN_TILES) + 1
    return ceil_div(spans, at_once) * (2 * span + at_once)


_MOST_FINDS = 33
"""How often a turn finds what tiles begin with, at most, as lib/tiles/turn.wgsl has it."""


def _repair_steps(work: Work) -> int:
    """Return the steps of a turn, whose tiles may each be folded again by one invocation."""
    of_tile = work.lane_steps + ceil_div(TILE, _NEAR) if work.constants["together"] else work.tile_steps
    # The classes of what is left come in shares, of which each goes on from those before.
    classes = 2 * ceil_div(work.tiles, 256) + 256
    return _MOST_FINDS * _base_steps(work, 256) + of_tile * work.fields["turn_tiles"] + classes


def groups_of(columns: int, across: int, in_group: int) -> int:
    """Return how many groups of adjacent columns there are; each row of so many neighbours has groups of its own."""
    return columns // across * ceil_div(across, in_group)


def _band_steps(work: Work) -> int:
    vectors = work.constants["vectors"]
    bands = ceil_div(work.groups, 8 * vectors * work.fields["grid_width"])
    return work.in_group * vectors * work.length * bands


def _band_words(work: Work) -> int:
    return 17 * work.count


def _column_words(work: Work) -> int:
    # As lib/slices/suspects.wgsl has them; of integers only between windows, and a token otherwise.
    is_cut = work.fields["resume"] or work.fields["suspend"]
    if is_cut or (work.folds == 2 and work.length > TILE):
        return 8 * work.count
    return work.count if work.folds == 2 else 1


def _strip_steps(work: Work) -> int:
    return _rows_of_strip_steps(work, work.length)


def _rows_of_strip_steps(work: Work, rows: int) -> int:
    # A run of each stretch, of one or two columns, and the totals that Hillis-Steele and the blocks look at.
    blocks = RUN // work.constants["lanes"]
    return work.constants["columns"] * (RUN + 8 + blocks) * ceil_div(rows, 256 * blocks)


def _strip_total_steps(work: Work) -> int:
    return _rows_of_strip_steps(work, min(work.length, TILE)) + 4


def part_rows(lanes: int) -> int:
    """Return the rows of a workgroup's part of a strip that has so many invocations beside each other."""
    return BLOCK * RUN // lanes


def strip_parts(work: Work) -> int:
    """Return the workgroups of scan_strip_lookback: one for each part of each strip."""
    return _strips(work) * ceil_div(work.length, part_rows(work.constants["lanes"]))


def _strip_part_steps(work: Work) -> int:
    # A run, and totals of blocks, of tiles and of spans, which one invocation folds; of integers also what is kept of
    # each slice of a word.
    return _rows_of_strip_steps(work, RUN) + 3 * RUN + 3 * work.in_cell


def _strips(work: Work) -> int:
    width = work.constants["lanes"] * work.constants["columns"] * work.in_cell
    # Words that begin anywhere end with the slices that are neighbours, and so do staged rows; others go on.
    across = work.fields["across"] if work.is_unaligned or work.is_staged else work.count
    return work.count // across * ceil_div(across, width)


def _tiles_of_strips(work: Work) -> int:
    return _strips(work) * work.tiles


def _kernel_of_strips(
    workgroups: _Count,
    scratch_words: _Count,
    steps: _Count,
    *,
    elements: tuple[str, ...],
    lanes: tuple[int, ...] = (1, 2, 4, 8),
    **optional: Container[int],
) -> Kernel:
    """Return the row of a kernel that reads strips, which differ in what is a workgroup's and what they keep."""
    return Kernel(
        slots=(*_TENSORS, "cells", "run"),
        accesses=tuple(name for name in ACCESS if name.startswith("cells")),
        pieces={"element": elements, "run": ("written",)},
        constants={**_SCAN, "lanes": lanes, "columns": (1, 2)},
        optional=optional,
        workgroups=workgroups,
        scratch_words=scratch_words,
        steps=steps,
        rule=_are_strips,
    )


def _are_strips(work: Work) -> bool:
    """Whether strips are as wide as their rows are read: staged ones as wide as a row, others by sectors."""
    lanes, columns = work.constants["lanes"], work.constants["columns"]
    if not work.is_staged:
        return lanes >= 4
    across, length = work.fields["across"], work.length
    strides = [work.fields[f"{tensor}_axis_stride"] for tensor in ("input", "output")]
    has_whole_rows = length == 1 or all(stride in (across, 2**32 - across) for stride in strides)
    width = lanes * columns
    is_fitting = columns == (1 if work.constants["output_log2_bits"] == 6 else 2) and width // 2 < across <= width <= 16
    return is_fitting and has_whole_rows


def _short_steps(work: Work) -> int:
    runs, together = work.constants["runs"], work.constants["together"]
    # One more where a product turns out to have a tiny value. The last run is read as a whole.
    return work.length if together == 1 and not runs else RUN * max(1, runs) * (together + work.folds - 1)


def portion_slices(work: Work) -> int:
    """Return how many slices an invocation of scan_short takes at a time: one, or as many as fill whole runs."""
    runs = work.constants["runs"]
    return runs * RUN // work.length if runs else 1


def unit_elements(work: Work) -> int:
    """Return how many elements a word or vector of elementwise_units has."""
    return _unit_bits(work) >> work.constants["input_log2_bits"]


def _unit_bits(work: Work) -> int:
    return 8 * QUAD_BYTES if work.slots["output"] == "quads" else 32


_FUNCTIONS: Final[Mapping[str, Mapping[str, Container[int]]]] = {
    "round": {"mantissa_bits": (10, 23), "exponent_bias": (15, 127)},
    "convert": {
        **{f"{tensor}_kind": range(5) for tensor in ("input", "output")},
        **{f"{tensor}_mantissa_bits": (10, 23, 52) for tensor in ("input", "output")},
        **{f"{tensor}_exponent_bias": (15, 127, 1023) for tensor in ("input", "output")},
    },
    "copy": {},
}
"""The constants of the pieces of the slot <function>; kinds are needed, and formats where an element is a float."""


def _has_constants_of_function(work: Work) -> bool:
    own = _FUNCTIONS[work.slots["function"]]
    others = {name for constants in _FUNCTIONS.values() for name in constants} - own.keys()
    needed = {name for name in own if name.endswith("_kind")}
    return needed <= work.constants.keys() and not others & work.constants.keys()


def _are_units(work: Work) -> bool:
    """Whether what elementwise_units does goes with its units: roundings are of vectors."""
    is_vector = _unit_bits(work) == 8 * QUAD_BYTES
    return _has_constants_of_function(work) and (is_vector or work.slots["function"] == "copy")


def block_slices(work: Work) -> int:
    """Return how many slices a workgroup of scan_blocks takes: those that its invocations have runs for."""
    lanes, length = work.constants["lanes"], work.length
    if work.constants["single"]:
        return lanes * (RUN // length)
    if work.slots["units"] == "elements":
        return lanes // ceil_div(length, RUN)
    whole = QUAD_BYTES // math.gcd(length << work.constants["input_log2_bits"] >> 3, QUAD_BYTES)
    return lanes // ceil_div(length, RUN) // whole * whole


def _block_steps(work: Work) -> int:
    if work.constants["single"]:
        return RUN
    # A run, the totals that Hillis-Steele looks at, and those of the blocks before the last one. A left fold, and the
    # classes of a run twice and of those before it.
    again = work.length + 2 * RUN + work.length // RUN
    return RUN + 7 + ceil_div(work.length, BLOCK) + (work.folds - 1) * again


TABLE: Final[Mapping[str, Kernel]] = {
    "scan_short": Kernel(
        slots=_RUNS,
        constants={**_SCAN, "slice_length": range(RUN + 1), "runs": range(RUN), "lanes": (8, 64), "together": (1, 128)},
        workgroups=lambda w: ceil_div(w.count, portion_slices(w) * w.constants["lanes"] * w.constants["together"]),
        scratch_words=lambda _: 1,
        steps=_short_steps,
        rule=lambda w: not w.constants["runs"] or (w.slots["run_access"] == "quads" and w.slots["run"] == "written"),
    ),
    "scan_blocks": Kernel(
        slots=(*_TENSORS, "stage", "units", "run"),
        accesses=("stage of words", "stage of packed words", "stage of elements"),
        pieces={"element": (*_EXACT, *_FLOATS), "run": ("written",)},
        constants={**_SCAN, "lanes": (64, 128, 256), "single": _BOOL, "several": _BOOL, "decreasing": _BOOL},
        workgroups=lambda w: ceil_div(w.count, block_slices(w)),
        scratch_words=lambda _: 1,
        steps=_block_steps,
    ),
    "scan_slices": Kernel(
        slots=(*_RUNS, "slices"),
        pieces={"slices": ("windows", "suspects")},
        constants={**_SCAN, "phase": range(6), "inside_runs": _BOOL, "lanes": (8, 64), "lags": _BOOL},
        optional={"in_windows": _BOOL},
        workgroups=lambda w: ceil_div(w.count, w.constants["lanes"]),
        scratch_words=_progress_words,
        steps=lambda w: w.folds * w.length,
        rule=_are_slices,
    ),
    "scan_bands": Kernel(
        slots=(*_TENSORS, "fours"),
        accesses=("fours of pairs", "fours of quads", "fours of words", "unaligned fours"),
        pieces={"element": _FLOATS},
        constants={**_SCAN, "vectors": (1, 2, 4, 8), "exclusive": _BOOL},
        workgroups=None,
        scratch_words=_band_words,
        steps=_band_steps,
    ),
    "scan_bands_exact": Kernel(
        slots=(*_TENSORS, "vector"),  # its text is the same for every <element>, which tells scans from other kernels
        accesses=("quads", "vectors of words", "unaligned vectors"),
        pieces={"element": ("int", "int64")},
        constants={**_SCAN, "vectors": (1, 2, 4, 8)},
        workgroups=None,
        scratch_words=lambda w: QUAD_BYTES // 4 * w.groups,
        steps=_band_steps,
    ),
    "scan_strips": _kernel_of_strips(_strips, _column_words, _strip_steps, elements=_IN_CELLS, lanes=(1, 2, 4, 8, 16)),
    "scan_strip_lookback": _kernel_of_strips(
        strip_parts,
        _lookback_words,
        _strip_part_steps,
        elements=_IN_CELLS,
        patience=_ANY_SIZE,
        withhold_every=_ANY_SIZE,
    ),
    "scan_strip_totals": _kernel_of_strips(_tiles_of_strips, _lookback_words, _strip_total_steps, elements=_FLOATS),
    "scan_rows": Kernel(
        slots=(*_RUNS, "tile"),
        pieces={"tile": _TILES},
        constants=_SCAN,
        workgroups=lambda w: w.count,
        scratch_words=lambda w: 8 * w.count if w.fields["resume"] or w.fields["suspend"] else 1,
        steps=lambda w: w.tile_steps * w.tiles,
    ),
    "scan_lookback": Kernel(
        slots=(*_RUNS, "tile"),
        pieces={"tile": _TILES},
        constants=_SCAN,
        optional={"patience": _ANY_SIZE, "withhold_every": _ANY_SIZE},
        rule=lambda w: (w.constants.get("patience") == 0) == _leaves_all(w),
        workgroups=lambda w: w.all_tiles,
        scratch_words=_lookback_words,
        # The elements of a tile, and the totals of its span's tiles and of spans before it.
        steps=lambda w: w.lane_steps + SPAN_TILES + 64,
    ),
    "scan_serial_totals": Kernel(
        slots=_RUNS,
        constants=_SCAN,
        workgroups=lambda w: ceil_div(w.all_tiles, 8),
        scratch_words=_tile_words,
        steps=lambda w: min(w.length, TILE),
    ),
    "scan_carries": Kernel(
        slots=("element",),
        constants={"product": _BOOL},
        workgroups=lambda w: w.count,
        scratch_words=_tile_words,
        steps=lambda w: _base_steps(w, 64),
    ),
    "scan_repair": Kernel(
        slots=(*_RUNS, "tile"),
        pieces={"tile": _TILES, "element": ("f16", "f32", "f32_compensated", "f64", "f64_words")},
        constants={**_SCAN, "together": _BOOL},
        workgroups=lambda w: w.count,
        scratch_words=_tile_or_lookback_words,
        steps=_repair_steps,
    ),
    "scan_tiles": Kernel(
        slots=(*_RUNS, "tile"),
        pieces={"tile": _TILES},
        constants=_SCAN,
        optional={"tile_elements": (512, 1024, 2048), "together": (1,)},
        rule=lambda w: ("together" in w.constants) == _leaves_all(w),
        workgroups=lambda w: ceil_div(w.all_tiles, _tiles_together(w)),
        scratch_words=_tile_or_lookback_words,
        # Of integers the totals of all tiles before, in shares that one invocation joins.
        steps=lambda w: _tiles_together(w) * (w.lane_steps + w.is_exact * (ceil_div(w.tiles, 256) + 256)),
    ),
    "scan_serial_tiles": Kernel(
        slots=_RUNS,
        constants={**_SCAN, "lags": _BOOL},
        workgroups=lambda w: ceil_div(w.all_tiles, 8),
        scratch_words=_tile_words,
        steps=lambda w: min(w.length, TILE),
    ),
    "elementwise": Kernel(
        slots=("input", "output", "function"),
        accesses=_BY_ELEMENT,
        pieces={"function": ("round", "convert")},
        constants={"flat": _BOOL, **_WIDTHS},
        optional={name: values for function in ("round", "convert") for name, values in _FUNCTIONS[function].items()},
        workgroups=lambda w: ceil_div(w.count, 64),
        steps=lambda _: 1,
        rule=_has_constants_of_function,
    ),
    "elementwise_units": Kernel(
        slots=("input", "output", "function"),
        accesses=("words", "quads"),
        pieces={"function": ("round", "copy")},
        constants={"stride": (1, 64), "units": (1, 4, 16), **_WIDTHS},
        optional=_FUNCTIONS["round"],
        workgroups=lambda w: ceil_div(w.count, 64 * w.constants["units"] * unit_elements(w)),
        steps=lambda w: w.constants["units"] * unit_elements(w),
        rule=_are_units,
    ),
}


def serial_steps(one: Pass) -> int:
    """Return the most elements and scratch values that one invocation of a dispatch goes through one after the other.

    With those that it waits for in other invocations of its workgroup. The data are the worst there are: every tile is
    exceptional, which means a left fold by one invocation. Elements that take long count for several.
    """
    work = Work.of(one)
    is_dear = work.slots.get("element") in DEAR_ELEMENTS or (
        work.slots.get("output") == "packed" and "element" in work.slots
    )
    return TABLE[one.pipeline.kernel].steps(work) * (DEAR if is_dear else 1)


def check_pass(one: Pass) -> None:
    """Hold a pass to the row of its kernel.

    Raises
    ------
    ValueError
        If its slots, constants, grid or scratch memory are not what the row allows.
    """
    kernel, work = TABLE[one.pipeline.kernel], Work.of(one)
    faults = [*_faults_of_slots(kernel, work), *_faults_of_constants(kernel, work)]
    width, rows, _ = one.grid
    workgroups = width * rows if kernel.workgroups is None else kernel.workgroups(work)
    if width != work.fields["grid_width"] or width != ceil_div(workgroups, rows) or (rows - 1) * width >= workgroups:
        faults.append(f"grid {one.grid} for {workgroups} workgroups")
    if one.state_bytes != 4 * kernel.scratch_words(work):
        faults.append(f"{one.state_bytes} bytes of scratch memory instead of {4 * kernel.scratch_words(work)}")
    if not faults and not kernel.rule(work):
        faults.append(f"constants and pieces that do not go together: {work.constants}, {work.slots}")
    steps = tuple(int(one.params[f"{tensor}_strides"][0]) for tensor in ("input", "output"))
    needs_neighbours = work.is_unaligned or work.is_staged or "vectors" in work.constants
    if needs_neighbours and work.fields["across"] > 1 and steps != (1, 1):
        faults.append(f"rows of {work.fields['across']} columns that are {steps} apart")
    if faults:
        raise ValueError(f"{one.pipeline.kernel} with {'; '.join(faults)}")


def _faults_of_slots(kernel: Kernel, work: Work) -> list[str]:
    slots, faults = work.slots, []
    if set(slots) != set(kernel.slots):
        faults.append(f"slots {sorted(slots)} instead of {sorted(kernel.slots)}")
    faults += [f"{slots[slot]} in <{slot}>" for slot, pieces in kernel.pieces.items() if slots.get(slot) not in pieces]
    if "output" in slots and not any(_is_access(ACCESS[name], work) for name in kernel.accesses):
        faults.append(f"pieces that do not belong together: {dict(slots)}")
    runs = slots.get("run_access")
    if runs != _RUNS_OF_TILES.get(slots.get("tile", ""), runs):
        faults.append(f"a {slots['tile']} tile of runs that are {runs}")
    if "element" in slots:
        widths = _ELEMENTS.get(work.element, ())
        if work.constants.get("input_log2_bits", max(widths, default=None)) not in widths:
            faults.append(f"elements of 2^{work.constants.get('input_log2_bits')} bits as {work.element}")
        if slots.get("run", "") == ("written" if work.element == "f64_words" else "loops"):
            faults.append(f"a run of {work.element} that is {slots['run']}")
    return faults


def _is_access(access: Access, work: Work) -> bool:
    slots = work.slots
    return (
        slots["output"] == access.output
        and slots.get("input") in ("separate", "shared", "in_output")
        and all(slots[slot] == piece for slot, piece in access.slots.items() if slot in slots)
        and work.constants.get("output_log2_bits") in access.widths
    )


def _faults_of_constants(kernel: Kernel, work: Work) -> list[str]:
    allowed = {**kernel.constants, **kernel.optional}
    needed = set(kernel.constants)
    if work.slots.get("element") in _FLOATS and kernel.takes("opaque"):
        allowed["opaque"] = _BOOL
        needed.add("opaque")
    if work.slots.get("element") in ("max", "max64") and kernel.takes("sign_bit"):
        allowed |= _ORDER
        needed |= set(_ORDER)
    faults = [f"no constant {name}" for name in sorted(needed - set(work.constants))]
    for name, value in work.constants.items():
        if value not in allowed.get(name, ()):
            faults.append(f"{name} = {value}")
    return faults
