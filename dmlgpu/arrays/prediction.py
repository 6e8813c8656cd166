"""What the chunks of a slice will go on from, worked out in NumPy from records of their tiles.

It is a prediction: devices may flush subnormal numbers, and an exceptional tile's last result is a fold that its record
does not have. A wrong one costs time and no bits, because chunked.py compares each with what the chunk before led to.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..layout import ceil_div
from ..planning.pieces import CARRY_C, CARRY_FLAGS, CARRY_LAST, CARRY_S, CARRY_WORDS, HAS_S
from ..planning.problem import Operator, Precision
from ..planning.windows import SPAN_TILES
from ..reference.arithmetic import Arithmetic, Products
from ..reference.compensated import Compensated
from .pieces import PieceKind

__all__ = ["is_same_carry", "predicted"]

Words = NDArray[np.uint32]
Values = NDArray[Any]
"""Accumulators."""

_TOTAL, _P, _H, _R = 0, 1, 2, 3
"""The accumulators of a tile's record, as ``wgsl/lib/tiles/state.wgsl`` has them."""
_LARGEST, _CLASS, _SMALLEST = -4, -2, -1
"""The words at its end."""
_HAS_INFINITY, _HAS_OTHER, _HAS_NAN, _IS_NEGATIVE = 1, 2, 4, 8
"""The bits of a tile's class, as ``wgsl/lib/order/classes.wgsl`` has them."""
_FEW_TILES = 4 * SPAN_TILES
"""To look at first behind an exceptional tile, as another may follow soon."""


def predicted(kind: PieceKind, records: Sequence[Words]) -> list[Words]:
    """Return the carries of slices after each chunk.

    Parameters
    ----------
    kind : PieceKind
        What is computed.
    records : sequence of ndarray of uint32
        Of each chunk, in traversal order, the records of its tiles: (slices, tiles, words).

    Returns
    -------
    list of ndarray of uint32
        Of each chunk the carry of each slice behind it: (slices, words).
    """
    ends = list(itertools.accumulate(each.shape[1] for each in records))
    with np.errstate(all="ignore"):
        return _Prediction(kind, np.concatenate(records, axis=1), ends).carries()


def is_same_carry(kind: PieceKind, a: Words, b: Words) -> bool:
    """Whether two carries lead to the same results: words that are not in use may differ."""
    a, b = a.reshape(-1, CARRY_WORDS), b.reshape(-1, CARRY_WORDS)
    words = kind.accumulator_words
    if kind.element.kind != "float":
        used = (1 << min(32, 8 * kind.element.itemsize)) - 1  # of each word; sums modulo a power of two
        return not np.any((a ^ b)[:, CARRY_LAST : CARRY_LAST + words] & np.uint32(used))
    has_c, has_s = a[:, CARRY_FLAGS] & 0xFF != 0, a[:, CARRY_FLAGS] & HAS_S != 0
    return bool(
        np.array_equal(a[:, CARRY_FLAGS], b[:, CARRY_FLAGS])
        and np.array_equal(a[:, CARRY_LAST : CARRY_LAST + words], b[:, CARRY_LAST : CARRY_LAST + words])
        and np.array_equal(a[has_c][:, CARRY_C : CARRY_C + words], b[has_c][:, CARRY_C : CARRY_C + words])
        and np.array_equal(a[has_s][:, CARRY_S : CARRY_S + words], b[has_s][:, CARRY_S : CARRY_S + words])
    )


@dataclass(frozen=True)
class _Stretch:
    """Slices of which a span begins at the same tile.

    Attributes
    ----------
    first : int
        The tile.
    slices : ndarray of int
        Which slices.
    s : ndarray, optional
        The fold of all spans before; None at the beginning of slices.
    last : ndarray
        The results before, or the identity.
    most : int
        The tiles to look at, in whole spans.
    """

    first: int
    slices: NDArray[np.intp]
    s: Values | None
    last: Values
    most: int


class _Prediction:
    """Follows the tiles of slices: whole stretches at once, up to each slice's next exceptional tile."""

    def __init__(self, kind: PieceKind, records: Words, ends: Sequence[int]) -> None:
        self._records = np.moveaxis(records, 1, 0)
        self._tiles, self._slices = self._records.shape[:2]
        self._ends = ends
        self._is_product = kind.operator is Operator.PRODUCT
        self._is_exact = kind.element.kind != "float"
        dtype = np.dtype(("u" if self._is_exact else "f") + str(kind.element.accumulator_size))
        self._number = dtype
        if kind.options.precision is Precision.COMPENSATED:
            self._arithmetic: Arithmetic = Compensated()
        elif self._is_product and not self._is_exact:
            self._arithmetic = Products(np.multiply, dtype)
        else:
            self._arithmetic = Arithmetic(np.multiply if self._is_product else np.add, dtype)
        self._found = [np.zeros((self._slices, CARRY_WORDS), np.uint32) for _ in ends]

    def carries(self) -> list[Words]:
        """Return those behind each chunk."""
        identity = self._values(np.full(self._slices, int(self._is_product), self._number))
        todo = [_Stretch(0, np.arange(self._slices), None, identity, ceil_div(self._tiles, 16) * 16)]
        while todo:
            todo += self._follow(todo.pop())
        return self._found

    def _follow(self, stretch: _Stretch) -> Iterator[_Stretch]:
        """Note the carries of a stretch up to each slice's first exceptional tile, and yield what follows."""
        combine = self._arithmetic.combine
        n = min(stretch.most, self._tiles - stretch.first)
        if n == 0:
            return
        part = self._records[stretch.first : stretch.first + n, stretch.slices]
        c = self._folds_of_tiles(self._accumulators(part, _TOTAL))
        s = self._folds_of_spans(stretch.s, c[SPAN_TILES - 1 :: SPAN_TILES][: n // SPAN_TILES])
        ends = self._accumulators(part, _P)
        bases = self._bases(stretch.s, s, c, n)
        ends[n - len(bases) :] = combine(bases, ends[n - len(bases) :])
        ends = combine(combine(ends, self._accumulators(part, _H)), self._accumulators(part, _R))
        ordinary = self._ordinary(part, bases, ends)
        for number, end in enumerate(self._ends):
            done = end - stretch.first
            if 0 < done <= n:
                full = done // SPAN_TILES
                before = s[full - 1] if full else stretch.s
                self._note(number, stretch.slices, ordinary >= done, before, c[done - 1], ends[done - 1], done)
        whole = ordinary == n
        if whole.any() and stretch.first + n < self._tiles:
            yield _Stretch(stretch.first + n, stretch.slices[whole], s[-1][whole], ends[-1][whole], 2 * stretch.most)
        for tile in np.unique(ordinary[~whole]).tolist():
            some = ordinary == tile
            last = (stretch.last if tile == 0 else ends[tile - 1])[some]
            result = self._exceptional(part[tile, some], last, ends[tile][some])
            yield from self._behind(stretch.first + tile + 1, stretch.slices[some], result)

    def _behind(self, first: int, slices: NDArray[np.intp], last: Values) -> Iterator[_Stretch]:
        """Note the carries behind exceptional tiles where only classes count, and yield the other slices."""
        numbers = self._arithmetic.numbers(last)
        absorbed = ~np.isfinite(numbers) | (self._is_product & (numbers == 0))
        classes = self._stand_ins(self._records[first:, slices[absorbed]])
        lasts = self._arithmetic.ufunc.accumulate(np.concatenate([numbers[None, absorbed], classes]))
        for number, end in enumerate(self._ends):
            if end >= first:
                value = self._values(lasts[end - first])
                self._note(number, slices[absorbed], np.ones(len(value), np.bool_), value, value, value, 0)
            if end == first:
                self._note(number, slices, ~absorbed, last, last, last, 0)
        if not absorbed.all():
            yield _Stretch(first, slices[~absorbed], last[~absorbed], last[~absorbed], _FEW_TILES)

    def _note(
        self,
        number: int,
        slices: NDArray[np.intp],
        which: NDArray[np.bool_],
        s: Values | None,
        c: Values,
        last: Values,
        done: int,
    ) -> None:
        """Note the carry behind a chunk, of which slices, so many tiles after a span began."""
        made = np.zeros((int(which.sum()), CARRY_WORDS), np.uint32)
        made[:, CARRY_C:CARRY_LAST] = self._words(c[which])
        made[:, CARRY_LAST:CARRY_FLAGS] = self._words(last[which])
        made[:, CARRY_FLAGS] = done % SPAN_TILES
        if s is not None:
            made[:, CARRY_S:CARRY_C] = self._words(s[which])
            made[:, CARRY_FLAGS] |= HAS_S
        self._found[number][slices[which]] = made

    def _folds_of_tiles(self, totals: Values) -> Values:
        """Return the fold of the tiles of each span, up to and including each tile."""
        n, slices = totals.shape
        spans = ceil_div(n, SPAN_TILES)
        padded = np.zeros((spans * SPAN_TILES, slices), totals.dtype)
        padded[:n] = totals
        c: Values = padded.reshape(spans, SPAN_TILES, slices)
        for j in range(1, SPAN_TILES):
            c[:, j] = self._arithmetic.combine(c[:, j - 1], c[:, j])
        return c.reshape(spans * SPAN_TILES, slices)

    def _folds_of_spans(self, before: Values | None, totals: Values) -> Values:
        """Return the fold of all spans, up to and including each whole one of a stretch."""
        if before is not None:
            totals = np.concatenate([self._arithmetic.admit(before)[None], totals])
        if isinstance(self._arithmetic, Compensated):
            s = totals.copy()
            for u in range(1, len(s)):
                s[u] = self._arithmetic.combine(s[u - 1], s[u])
        else:
            s = self._arithmetic.ufunc.accumulate(totals)
            if isinstance(self._arithmetic, Products):  # what was out of range once stays so
                s[np.logical_or.accumulate(np.isnan(self._arithmetic.admit(s)))] = np.nan
        return s if before is None else s[1:]

    def _bases(self, before: Values | None, s: Values, c: Values, n: int) -> Values:
        """Return what the results of each of n tiles begin with; at the beginning of slices not of the first."""
        spans = len(c) // SPAN_TILES
        starts = np.concatenate([c[:1] if before is None else before[None], s])[:spans]
        bases = np.empty_like(c).reshape(spans, SPAN_TILES, -1)
        bases[:, 0] = self._arithmetic.admit(starts)
        within = c.reshape(bases.shape)[:, :-1]
        bases[:, 1:] = self._arithmetic.combine(starts[:, None], within)
        if before is None:
            bases[0, 1:] = within[0]
        return bases.reshape(c.shape)[int(before is None) : n]

    def _ordinary(self, part: Words, bases: Values, ends: Values) -> NDArray[np.intp]:
        """Return how many tiles of each slice of a stretch come before its first exceptional one."""
        n = len(part)
        if self._is_exact:
            return np.full(part.shape[1], n, np.intp)
        top = np.uint32(0x7FF00000 if self._number.itemsize == 8 else 0x7F800000)
        wrong = ~np.isfinite(self._arithmetic.numbers(ends)) | (part[..., _LARGEST] >= top)
        if self._is_product:
            limits = np.finfo(self._number)
            reach = np.abs(self._arithmetic.numbers(bases))
            least, most = (self._magnitudes(part[n - len(bases) :, :, word]) for word in (_SMALLEST, _LARGEST))
            wrong[n - len(bases) :] |= (reach * least < 2 * limits.smallest_normal) | np.isinf(reach * most)
            if len(bases) < n:
                wrong[0] |= self._magnitudes(part[0, :, _SMALLEST]) < 2 * limits.smallest_normal
        return np.where(wrong.any(axis=0), wrong.argmax(axis=0), n)

    def _exceptional(self, part: Words, last: Values, end: Values) -> Values:
        """Return the last results of exceptional tiles, as left folds most likely have them."""
        numbers, results = self._arithmetic.numbers(last), self._arithmetic.numbers(end)
        stand_ins = self._stand_ins(part)
        special = part[:, _CLASS] & (_HAS_INFINITY | _HAS_OTHER | _HAS_NAN) != 0
        if not self._is_product:
            is_both = part[:, _CLASS] & (_HAS_INFINITY | _HAS_OTHER | _HAS_NAN) == _HAS_INFINITY | _HAS_OTHER
            both = np.where(is_both, self._number.type(np.inf), self._number.type(0))
            # Infinity minus infinity has the bits that this processor gives it, where the device is a program on it.
            folded = np.where(is_both, both - both, numbers + stand_ins)
            return self._values(np.where(special, folded, results))
        sign = np.sign(numbers * stand_ins)
        total = np.abs(self._arithmetic.numbers(self._accumulators(part, _TOTAL)).astype(np.longdouble))
        limits = np.finfo(self._number)
        is_small = self._magnitudes(part[:, _SMALLEST]) < 2 * limits.smallest_normal
        total = np.where(np.isnan(total), np.where(is_small, 0, np.inf), total)
        reach = np.abs(numbers.astype(np.longdouble)) * total
        guess = np.where(reach <= limits.smallest_normal, 0, np.where(reach > limits.max, np.inf, np.abs(results)))
        return np.where(special, numbers * stand_ins, np.copysign(guess, sign)).astype(self._number)

    def _stand_ins(self, part: Words) -> Values:
        """Return what stands for tiles where only the classes of their elements count."""
        bits = part[..., _CLASS]
        value = np.full(bits.shape, int(self._is_product), self._number)
        value[bits & _HAS_OTHER != 0] = 0 if self._is_product else -np.inf
        value[bits & _HAS_INFINITY != 0] = np.inf
        both = _HAS_INFINITY | _HAS_OTHER
        value[(bits & _HAS_NAN != 0) | (bits & both == both)] = np.nan
        return np.where(bits & _IS_NEGATIVE != 0, -value, value)

    def _magnitudes(self, words: Words) -> Values:
        """Return the numbers of which these are the top words, without what is in the others."""
        if self._number.itemsize == 4:
            return np.ascontiguousarray(words).view(self._number)
        return (words.astype(np.uint64) << np.uint64(32)).view(self._number)

    def _values(self, numbers: Values) -> Values:
        """Return accumulators of numbers."""
        return self._arithmetic.take(numbers)

    def _accumulators(self, part: Words, number: int) -> Values:
        """Return an accumulator of each record, a copy."""
        dtype = self._arithmetic.accumulator
        wide = dtype.itemsize // 4
        words = np.ascontiguousarray(part[..., number * wide : (number + 1) * wide])
        return words.view(dtype)[..., 0]

    def _words(self, values: Values) -> Words:
        """Return accumulators as two words each."""
        words = np.zeros((len(values), 2), np.uint32)
        used = values.dtype.itemsize // 4
        words[:, :used] = np.ascontiguousarray(values).view(np.uint32).reshape(len(values), used)
        return words
