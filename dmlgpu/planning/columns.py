"""Pure: scans of slices that are side by side in memory: in bands for software drivers, in strips for GPUs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..layout import ceil_div
from .dispatch import Pass, Planner
from .problem import Operator, Precision, ScanProblem
from .windows import QUAD_BYTES, RUN, SPAN, TILE, Limits

__all__ = ["Columns", "bands_of", "can_be_strips", "fewest_columns", "strips_of"]

_LANES = 8
"""Invocations of a workgroup: as many as a core of a CPU takes at a time. They read a stretch of a row together."""
_FEW_VECTORS, _MANY_VECTORS = 4, 8
"""Vectors of columns an invocation. The more, the more of a page is read at a visit; SwiftShader takes six seconds to
compile eight of floats, and one for four."""
_FAR = 8
"""From so many times `Limits.near_elements` on, eight vectors of floats are worth a second of compiling. Four of
float64 have as many bytes."""
_MOST_BANDS = 8
"""Of a workgroup: with more, the pages of a block's rows are forgotten before they are visited again."""
_BAND_WORDS = 17
"""Words a column of floats, see wgsl/lib/band_state.wgsl."""
_MAX_STATE_BYTES = 32 * 2**20
_MAX_ROWS = 10 * TILE
"""Rows of all bands of a workgroup in a dispatch: Mesa's software drivers end loops after 65,535 iterations, of which a
row is one, and a sixteenth and an eighth for runs and columns (docs/kernels.md)."""

_WIDE, _NARROW = 16, 4
"""Invocations of a strip beside each other, with a column each, or with two, so that few strips have as many bytes in
flight: a row of a strip is 64 bytes, or a GPU's sector of 32."""
_SECTOR_WORDS = 8
_MANY_STRIPS = 256
"""So many wide strips fill a GPU, with 16 KiB in flight each."""
_WORD_BYTES = 4
_STRIP_WORDS = 8
"""Words a column, see wgsl/lib/suspects.wgsl."""
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
        The columns of a band or a strip.
    together : int
        How many bands a workgroup has; 0 for strips.
    is_exact : bool
        Whether no tile can be exceptional.
    """

    kernel: str
    chunks: tuple[int, ...]
    access: str
    constants: Mapping[str, int]
    slots: Mapping[str, str]
    width: int
    together: int = 0
    is_exact: bool = True

    def passes(self, planner: Planner) -> Iterator[Pass]:
        """Yield the passes: each window and, of floats, what is left of exceptional columns."""
        for bound in planner.windows(self.chunks):
            fields = {}
            if self.together:
                fields["grid_width"] = ceil_div(bound.window.slices, self.width * self.together)
            yield planner.make_pass(
                self.kernel, bound, self.access, slots=self.slots, constants=self.constants, fields=fields
            )
            if not self.is_exact:
                yield planner.make_pass("scan_suspects", bound)


def bands_of(problem: ScanProblem, limits: Limits, chunks: Sequence[int], in_place: bool) -> Columns | None:
    """Return how to cut a scan into bands, or None where they do not serve.

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
    element, length = problem.element, problem.axis.size
    is_exact, columns = element.kind != "float", _columns(problem)
    if (
        not limits.software
        or problem.slices * length <= limits.near_elements
        or not _is_served(problem, limits, in_place)
    ):
        return None
    if not _is_whole(problem, columns, min(QUAD_BYTES, columns * element.itemsize)):
        return None
    room = min(_MAX_STATE_BYTES, limits.binding_bytes) // (element.itemsize if is_exact else 4 * _BAND_WORDS)
    cut = _cut(problem, chunks, room, columns)
    slices = math.prod(cut[:-1])
    if cut[-1] == 0 or slices < fewest_columns(problem):
        return None
    is_wide = limits.columns and slices >= limits.cores * _LANES * columns * _MANY_VECTORS
    if not is_exact:  # which compile slowly
        is_wide &= problem.slices * length >= _FAR * limits.near_elements and element.itemsize <= 4
    vectors = _MANY_VECTORS if is_wide else _FEW_VECTORS
    width = _LANES * columns * vectors
    together = max(1, min(_MOST_BANDS, ceil_div(slices, width) // limits.cores))
    cut[-1] = min(cut[-1], _MAX_ROWS // together // TILE * TILE)
    constants = {"vectors": vectors, "exclusive": int(problem.exclusive)}
    if is_exact:
        return Columns("scan_bands_exact", tuple(cut), "quads", constants, {}, width, together)
    access = "fours of words" if element.itemsize < 4 else "fours of quads"
    return Columns("scan_bands", tuple(cut), access, constants, {}, width, together, is_exact=False)


def fewest_columns(problem: ScanProblem) -> int:
    """Return as many columns as are worth bands: two of the narrower ones."""
    return 2 * _LANES * _FEW_VECTORS * _columns(problem)


def _columns(problem: ScanProblem) -> int:
    """Return the adjacent columns that an invocation takes at once: of integers, those of a vector of four words."""
    return 4 if problem.element.kind == "float" else QUAD_BYTES // problem.element.itemsize


def strips_of(problem: ScanProblem, limits: Limits, chunks: Sequence[int], in_place: bool) -> Columns | None:
    """Return how to cut a scan into strips, or None where they do not serve; parameters as of `bands_of`."""
    if not can_be_strips(problem, limits, in_place):
        return None
    element, in_word = problem.element, _in_word(problem)
    along = min(chunks[-1], _MAX_STRIP_ROWS)
    cut = _cut(problem, (*chunks[:-1], along), limits.binding_bytes // (4 * _STRIP_WORDS), 2 * in_word)
    if 0 in cut:
        return None
    is_halves = in_word > 1 and element.kind == "float"
    is_many = ceil_div(problem.slices * min(_WORD_BYTES, element.itemsize), _WIDE * _WORD_BYTES) >= _MANY_STRIPS
    lanes, columns = (_WIDE, 1) if is_many else (_NARROW, 2)
    slots: dict[str, str] = {}
    if is_halves:
        access, lanes, columns = "cells of halves", max(lanes, _SECTOR_WORDS), 2
    elif element.itemsize > _WORD_BYTES:
        access, columns = "cells of pairs", 1
    elif columns == 2 and _is_whole(problem, columns * in_word, columns * _WORD_BYTES):
        access = "cells of pairs"
    else:
        access = "cells of words" if in_word == 1 else "cells of packed words"
    if in_word > 1 and not is_halves:
        slots = {"element": "int_packed"}
    constants = {"lanes": lanes, "columns": columns}
    width = lanes * columns * (1 if is_halves else in_word)
    return Columns("scan_strips", tuple(cut), access, constants, slots, width, is_exact=element.kind != "float")


def can_be_strips(problem: ScanProblem, limits: Limits, in_place: bool) -> bool:
    """Whether strips can scan slices: those of less than a word only where words are whole."""
    in_word = _in_word(problem)
    return _is_served(problem, limits, in_place) and (in_word == 1 or _is_whole(problem, in_word, _WORD_BYTES))


def _in_word(problem: ScanProblem) -> int:
    """Return the adjacent columns of a word."""
    return max(1, _WORD_BYTES // problem.element.itemsize)


def _is_served(problem: ScanProblem, limits: Limits, in_place: bool) -> bool:
    """Whether columns are neither too short nor too dear, sums or products, and exceptional tiles can be read again."""
    element = problem.element
    is_dear = problem.precision is Precision.COMPENSATED or problem.is_in_words(limits.float64)
    if is_dear or problem.operator is Operator.MAXIMUM:
        return False
    return problem.axis.size > RUN and (not in_place or element.kind != "float")


def _is_whole(problem: ScanProblem, columns: int, nbytes: int) -> bool:
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


def _cut(problem: ScanProblem, chunks: Sequence[int], room: int, columns: int) -> list[int]:
    """Cut windows to whole tiles of floats, to as many columns as scratch memory has room for, and to adjacent ones."""
    cut = list(chunks)
    if cut[-1] < problem.axis.size and problem.element.kind == "float":
        cut[-1] = cut[-1] // TILE * TILE
    while math.prod(cut[:-1]) > room:
        largest = max(range(len(cut) - 1), key=lambda i: cut[i])
        cut[largest] = (cut[largest] + 1) // 2
    if problem.batch and cut[-2] < problem.batch[-1].size:
        cut[-2] = cut[-2] // columns * columns
    return cut
