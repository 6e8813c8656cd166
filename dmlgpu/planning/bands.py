"""Pure: scans in bands of columns, for software drivers and slices that are side by side in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..layout import ceil_div
from .dispatch import Pass, Planner
from .problem import Operator, Precision, ScanProblem
from .windows import QUAD_BYTES, RUN, TILE, Limits

__all__ = ["Bands", "bands_of", "fewest_columns"]

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
_STATE_WORDS = 17
"""Words a column of floats, see wgsl/lib/band_state.wgsl."""
_MAX_STATE_BYTES = 32 * 2**20
_MAX_ROWS = 10 * TILE
"""Rows of all bands of a workgroup in a dispatch: Mesa's software drivers end loops after 65,535 iterations, of which a
row is one, and a sixteenth and an eighth for runs and columns (docs/kernels.md)."""


@dataclass(frozen=True)
class Bands:
    """How a scan is cut into bands.

    Attributes
    ----------
    problem : ScanProblem
        What to compute.
    limits : Limits
        What the device can do.
    chunks : tuple of int
        The sizes of windows.
    columns : int
        Adjacent columns that an invocation takes at once.
    vectors : int
        How many times it does.
    """

    problem: ScanProblem
    limits: Limits
    chunks: tuple[int, ...]
    columns: int
    vectors: int

    @property
    def width(self) -> int:
        """The columns of a band."""
        return _LANES * self.columns * self.vectors

    @property
    def is_exact(self) -> bool:
        """Whether the elements are integers."""
        return self.problem.element.kind != "float"

    def passes(self, planner: Planner) -> Iterator[Pass]:
        """Yield the passes: each window in bands and, of floats, what they leave of exceptional columns."""
        bands = ceil_div(math.prod(self.chunks[:-1]), self.width)
        together = max(1, min(_MOST_BANDS, bands // self.limits.cores))
        *batch, along = self.chunks
        constants = {"vectors": self.vectors, "exclusive": int(self.problem.exclusive)}
        access = "fours of words" if self.problem.element.itemsize < 4 else "fours of quads"
        for bound in planner.windows((*batch, min(along, _MAX_ROWS // together // TILE * TILE))):
            fields = {"grid_width": ceil_div(bound.window.slices, self.width * together)}
            if self.is_exact:
                yield planner.make_pass("scan_bands_exact", bound, "quads", constants=constants, fields=fields)
                continue
            yield planner.make_pass("scan_bands", bound, access, constants=constants, fields=fields)
            yield planner.make_pass("scan_bands_repair", bound)


def _columns(problem: ScanProblem) -> int:
    """Return the adjacent columns that an invocation takes at once: of integers, those of a vector of four words."""
    return 4 if problem.element.kind == "float" else QUAD_BYTES // problem.element.itemsize


def fewest_columns(problem: ScanProblem) -> int:
    """Return as many columns as are worth bands: two of the narrower ones."""
    return 2 * _LANES * _FEW_VECTORS * _columns(problem)


def bands_of(problem: ScanProblem, limits: Limits, chunks: Sequence[int], in_place: bool) -> Bands | None:
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
    element, axis, batch = problem.element, problem.axis, problem.batch
    is_exact = element.kind != "float"
    is_dear = problem.precision is Precision.COMPENSATED or problem.is_in_words(limits.float64)
    is_other = is_dear or problem.operator is Operator.MAXIMUM
    if not limits.software or is_other or axis.size <= RUN or not batch or (in_place and not is_exact):
        return None
    if problem.slices * axis.size <= limits.near_elements:
        return None
    columns = _columns(problem)
    inner, unit = batch[-1], min(QUAD_BYTES, columns * element.itemsize)
    places = (
        problem.input_offset,
        problem.output_offset,
        *(n for d in (*batch[:-1], axis) for n in (d.input_stride, d.output_stride)),
    )
    is_aligned = inner.size % columns == 0 and all(n * element.itemsize % unit == 0 for n in places)
    if (inner.input_stride, inner.output_stride) != (1, 1) or not is_aligned:
        return None
    cut = list(chunks)
    if cut[-1] < axis.size and not is_exact:
        cut[-1] = cut[-1] // TILE * TILE
    state = element.itemsize if is_exact else 4 * _STATE_WORDS
    most = min(_MAX_STATE_BYTES, limits.binding_bytes) // state
    while math.prod(cut[:-1]) > most:
        largest = max(range(len(cut) - 1), key=lambda i: cut[i])
        cut[largest] = (cut[largest] + 1) // 2
    if cut[-2] < inner.size:
        cut[-2] = cut[-2] // columns * columns
    slices = math.prod(cut[:-1])
    if cut[-1] == 0 or slices < fewest_columns(problem):
        return None
    is_wide = limits.columns and slices >= limits.cores * _LANES * columns * _MANY_VECTORS
    if not is_exact:  # which compile slowly
        is_wide &= problem.slices * axis.size >= _FAR * limits.near_elements and element.itemsize <= 4
    return Bands(problem, limits, tuple(cut), columns, _MANY_VECTORS if is_wide else _FEW_VECTORS)
