"""Pure: scans of slices that are side by side in memory: in bands for software drivers, in strips for GPUs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..layout import ceil_div
from .dispatch import Pass, Planner
from .kernels import DIRECT, LOOKBACK_HEADER_WORDS, groups_of, part_rows, strip_lookback_slice_words, tile_slice_words
from .problem import Operator, Precision, ScanProblem, in_a_row
from .windows import RUN, SPAN, TILE, Limits

__all__ = [
    "Columns",
    "can_be_strips",
    "cut_to",
    "is_served",
    "is_whole",
    "staged_lanes",
    "strip_bytes_in_flight",
    "strip_lookback_of",
    "strips_of",
]

_WIDE, _SECTOR_WORDS, _NARROW = 16, 8, 4
"""Invocations of a strip beside each other, with one or two columns each. What is beside them in a row is read at once:
a GPU's sector is 32 bytes, and its memory's least access may be 64."""
_SECTOR_BYTES = 32
_MOST_STAGED = 16
"""Columns of a row that goes through workgroup memory: two for each of 8 invocations beside each other."""
_FEW_RUNS = 64
"""With fewer of the 256 runs of a stretch, staged strips would leave more than three quarters of invocations idle."""
_WORD_BYTES = 4
_STRIP_WORDS = 8
"""Words a column, see wgsl/lib/slices/suspects.wgsl."""
_MAX_STRIP_ROWS = 2 * SPAN
"""Of a window: the second pass has an invocation go through a column, as scan_slices does."""


@dataclass(frozen=True)
class Columns:
    """How a scan is cut into windows of columns, and what scans them.

    Attributes
    ----------
    kernel : str
        What takes all columns.
    chunks : tuple of int
        The sizes of windows.
    access : str
        A name in `kernels.ACCESS`.
    constants : mapping of str to int
        What the kernel's pipelines have besides those of all passes.
    slots : mapping of str to str
        The same for pieces.
    width : int
        Of bands: their columns, at most; 0 for strips.
    in_group : int
        Of bands: how many adjacent columns an invocation takes at a place.
    together : int
        How many bands a workgroup has.
    """

    kernel: str
    chunks: tuple[int, ...]
    access: str
    constants: Mapping[str, int]
    slots: Mapping[str, str]
    width: int = 0
    in_group: int = 0
    together: int = 1

    def passes(self, planner: Planner, problem: ScanProblem) -> Iterator[Pass]:
        """Yield the passes: each window and, of floats, what is left of exceptional columns."""
        for bound in planner.windows(self.chunks):
            fields = {}
            if self.width:
                groups = groups_of(bound.window.slices, in_a_row(bound.window.batch), self.in_group)
                fields["grid_width"] = ceil_div(groups, self.width // self.in_group * self.together)
            yield planner.make_pass(
                self.kernel, bound, self.access, slots=self.slots, constants=self.constants, fields=fields
            )
            if not problem.is_exact:
                yield planner.make_pass(
                    "scan_slices",
                    bound,
                    slots={"slices": "suspects"},
                    constants={"phase": DIRECT, "inside_runs": 0, "lanes": 64, "lags": 0},
                    why="columns from an exceptional tile on, of which ordinary data have none",
                )


def strips_of(problem: ScanProblem, limits: Limits, chunks: Sequence[int], in_place: bool) -> Columns | None:
    """Return how to cut a scan into strips, or None where they do not serve.

    Parameters
    ----------
    problem : ScanProblem
        What to compute.
    limits : Limits
        What the device can do.
    chunks : sequence of int
        The sizes of windows that fit.
    in_place : bool
        Whether results take the places of elements: those of exceptional tiles are read again.
    """
    if not can_be_strips(problem, limits, in_place):
        return None
    in_word = _in_word(problem)
    along = min(chunks[-1], _MAX_STRIP_ROWS)
    cut = cut_to(problem, (*chunks[:-1], along), limits.binding_bytes // (4 * _STRIP_WORDS), 2 * in_word)
    lanes, columns = _shape_of_strips(problem, limits.tuning.enough_strips)
    if cut[-1] < problem.axis.size and cut[-1] % TILE:  # of integers, which go on from their last result
        cut[-1] -= cut[-1] % part_rows(lanes)
    if 0 in cut or _is_torn(problem, cut):
        return None
    return _strips("scan_strips", problem, cut, lanes, columns)


def strip_bytes_in_flight(problem: ScanProblem) -> int:
    """Return how many bytes the narrowest strips load before they use any: the stretches of their rows."""
    lanes = staged_lanes(problem) or (_SECTOR_WORDS if _is_thin(problem) else _NARROW)
    rows = min(problem.axis.size, 256 * RUN // lanes)
    return problem.slices * problem.element.itemsize * rows


def strip_lookback_of(problem: ScanProblem, limits: Limits, chunks: Sequence[int], in_place: bool) -> Columns | None:
    """Return how to cut a scan into strips whose parts have a workgroup each, or None; parameters as of `strips_of`."""
    if not can_be_strips(problem, limits, in_place):
        return None
    is_exact = problem.element.kind != "float"
    tiles = ceil_div(min(chunks[-1], problem.axis.size), part_rows(_SECTOR_WORDS) if is_exact else TILE)
    wide = problem.accumulator_words
    of_records = strip_lookback_slice_words(tiles, wide, is_exact, int(problem.exclusive))
    room = (limits.binding_bytes // 4 - LOOKBACK_HEADER_WORDS) // (tile_slice_words(tiles, wide) + of_records)
    cut = cut_to(problem, chunks, room, 2 * _in_word(problem))
    if 0 in cut or _is_torn(problem, cut) or (cut[-1] < problem.axis.size and cut[-1] % TILE):
        return None
    # Each part looks at what others have posted. Narrow strips have longer parts, which the order of floats divides.
    shapes = [shape for shape in _shapes(problem) if shape[0] <= _SECTOR_WORDS]
    is_long = is_exact and problem.element.itemsize <= _WORD_BYTES
    is_narrow = is_long or 2 * problem.across <= _width(problem, *shapes[0])
    return _strips("scan_strip_lookback", problem, cut, *shapes[-1 if is_narrow else 0])


def _shapes(problem: ScanProblem) -> list[tuple[int, int]]:
    """Return the invocations beside each other, and the columns of each, that a strip can have, the widest first."""
    if staged_lanes(problem):
        return [(staged_lanes(problem), 1 if problem.element.itemsize > _WORD_BYTES else 2)]
    all_lanes = (_WIDE, _SECTOR_WORDS) if _is_thin(problem) else (_WIDE, _SECTOR_WORDS, _NARROW)
    is_single = problem.element.itemsize > _WORD_BYTES or not (_is_aligned(problem) or _is_halves(problem))
    return [(lanes, 1 if is_single else 2) for lanes in all_lanes]


def _shape_of_strips(problem: ScanProblem, enough: int) -> tuple[int, int]:
    """Return the widest shape of which there are enough strips, or the narrowest."""
    shapes = _shapes(problem)
    many = 2 * enough if _is_thin(problem) else enough
    for lanes, columns in shapes:
        if _strip_count(problem, _width(problem, lanes, columns)) >= many:
            return lanes, columns
    return shapes[-1]


def _width(problem: ScanProblem, lanes: int, columns: int) -> int:
    """Return the slices of a strip."""
    is_single = _is_halves(problem) or staged_lanes(problem)
    return lanes * columns * (1 if is_single else _in_word(problem))


def _strip_count(problem: ScanProblem, width: int) -> int:
    """Return how many strips slices make; those that are not aligned end with each row of neighbours."""
    across = problem.slices if _is_aligned(problem) else problem.across
    return problem.slices // across * ceil_div(across, width)


def _strips(kernel: str, problem: ScanProblem, chunks: Sequence[int], lanes: int, columns: int) -> Columns:
    element, in_word = problem.element, _in_word(problem)
    is_halves, is_aligned = _is_halves(problem), _is_aligned(problem)
    slots: dict[str, str] = {}
    if staged_lanes(problem):
        which = "wide " if element.itemsize > _WORD_BYTES else "packed " if in_word > 1 else ""
        access, in_word = f"cells of few {which}columns", 1
    elif is_halves:
        access = "cells of halves" if is_aligned else "cells of unaligned halves"
    elif not is_aligned:
        access = "cells of unaligned words"
    elif element.itemsize > _WORD_BYTES or (columns == 2 and is_whole(problem, 2 * in_word, 2 * _WORD_BYTES)):
        access = "cells of pairs"
    else:
        access = "cells of words"
    if in_word > 1 and not is_halves:
        slots = {"element": "int_packed"}
    constants = {"lanes": lanes, "columns": columns}
    return Columns(kernel, tuple(chunks), access, constants, slots)


def _is_thin(problem: ScanProblem) -> bool:
    """Whether an invocation takes a word of a row, not two: strips have half as many bytes on their way."""
    return _is_halves(problem) or not _is_aligned(problem)


def _is_halves(problem: ScanProblem) -> bool:
    return problem.element.kind == "float" and _in_word(problem) > 1


def _is_aligned(problem: ScanProblem) -> bool:
    """Whether the columns of a word lie in a word of memory."""
    in_word = _in_word(problem)
    return in_word == 1 or is_whole(problem, in_word, _WORD_BYTES)


def can_be_strips(problem: ScanProblem, limits: Limits, in_place: bool) -> bool:
    """Whether strips can scan slices: those of less than a word where words are whole, or rows are sectors at least."""
    in_word = _in_word(problem)
    if not is_served(problem, limits, in_place):
        return False
    if _is_aligned(problem) or staged_lanes(problem):
        return True
    return is_whole(problem, 1, problem.element.itemsize) and problem.across >= _SECTOR_WORDS * in_word


def staged_lanes(problem: ScanProblem) -> int:
    """Return the invocations beside each other of strips whose rows go through workgroup memory; 0 if they do not.

    Rows are less than a sector, and follow each other without gaps in both tensors, in either direction.
    """
    across, itemsize = problem.across, problem.element.itemsize
    if across * itemsize >= _SECTOR_BYTES or not 1 < across <= _MOST_STAGED:
        return 0
    lanes = 2 ** (across - 1).bit_length() // (1 if itemsize > _WORD_BYTES else 2)
    is_dense = abs(problem.axis.input_stride) == abs(problem.axis.output_stride) == across
    is_long = problem.axis.size * lanes >= _FEW_RUNS * RUN
    return lanes if is_long and is_dense and is_whole(problem, 1, itemsize) else 0


def _is_torn(problem: ScanProblem, cut: Sequence[int]) -> bool:
    """Whether windows have parts of rows that are staged as a whole."""
    return staged_lanes(problem) > 0 and cut[-2] < problem.across


def _in_word(problem: ScanProblem) -> int:
    """Return the adjacent columns of a word."""
    return max(1, _WORD_BYTES // problem.element.itemsize)


def is_served(problem: ScanProblem, limits: Limits, in_place: bool) -> bool:
    """Whether columns are neither too short nor too dear, sums or products, and exceptional tiles can be read again."""
    element = problem.element
    is_dear = problem.precision is Precision.COMPENSATED or problem.is_in_words(limits.float64)
    if is_dear or problem.operator is Operator.MAXIMUM:
        return False
    return problem.axis.size > RUN and (not in_place or element.kind != "float")


def is_whole(problem: ScanProblem, columns: int, nbytes: int) -> bool:
    """Whether so many adjacent columns, at multiples of so many bytes, are neighbours in both tensors."""
    if not problem.batch:
        return False
    *outer, inner = problem.batch
    places = (
        problem.input_offset,
        problem.output_offset,
        *(n for d in (*outer, problem.axis) for n in (d.input_stride, d.output_stride)),
    )
    is_aligned = inner.size % columns == 0 and all(n * problem.element.itemsize % nbytes == 0 for n in places)
    return (inner.input_stride, inner.output_stride) == (1, 1) and is_aligned


def cut_to(problem: ScanProblem, chunks: Sequence[int], room: int, columns: int) -> list[int]:
    """Cut windows to whole tiles of floats, to as many columns as scratch memory has room for, and to adjacent ones.

    The sizes are 0 where there is room for none.
    """
    if room < 1:
        return [0] * len(chunks)
    cut = list(chunks)
    if cut[-1] < problem.axis.size and problem.element.kind == "float":
        cut[-1] = cut[-1] // TILE * TILE
    while math.prod(cut[:-1]) > room:
        largest = max(range(len(cut) - 1), key=lambda i: cut[i])
        cut[largest] = (cut[largest] + 1) // 2
    if problem.batch and cut[-2] < problem.batch[-1].size:
        cut[-2] = cut[-2] // columns * columns
    return cut
