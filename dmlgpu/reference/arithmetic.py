"""How the canonical order combines values: plainly; for products of floats; on devices that flush subnormal numbers.

`Tracing` also tells whether a subnormal number is met on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .types import FLOATS, Array

Combine = Callable[[Array, Array], Array]

_STEPS = 256
"""Steps of a left fold that are taken at once, before looking whether one of their results was subnormal."""


class Arithmetic:
    """How values are combined: as the accumulator type does."""

    def __init__(self, ufunc: np.ufunc, accumulator: np.dtype[Any]) -> None:
        self.ufunc = ufunc
        self.accumulator: np.dtype[Any] = accumulator

    def take(self, x: Array) -> Array:
        """Convert elements to the accumulator type."""
        return x.astype(self.accumulator)

    def combine(self, a: Array, b: Array) -> Array:
        """Combine members of two arrays."""
        return np.asarray(self.ufunc(a, b))

    def numbers(self, x: Array) -> Array:
        """Return the values themselves, without what is kept beside them."""
        return x

    def admit(self, x: Array) -> Array:
        """Return values as the order may use them: NaN for what makes a tile exceptional."""
        return x

    def left_fold(self, x: Array) -> Array:
        """Fold a vector from the left, keeping every step."""
        return np.asarray(self.ufunc.accumulate(x, dtype=self.accumulator))

    def absorb(self, x: Array) -> Array:
        """Fold a vector whose first member is NaN, infinity or a product's zero, as `left_fold` does."""
        return self.left_fold(x)

    def absorbed(self, s: Array, last: Array) -> bool:
        """Tell whether all later results are NaN, infinities or a product's zeros.

        Both must absorb, because `s` can overflow where the results so far have not.
        """
        u, v = self.numbers(s), self.numbers(last)
        zeros = self.ufunc is np.multiply and bool(u == 0) and bool(v == 0)
        return zeros or not (bool(np.isfinite(u)) or bool(np.isfinite(v)))


class _Flushing(Arithmetic):
    """How values are combined where zeros of the same sign replace those that are too small."""

    def flushed(self, x: Array) -> Array:
        """Return members with zeros of the same sign for those that are too small."""
        return flushed(x)

    def left_fold(self, x: Array) -> Array:
        """Fold a vector from the left, keeping every step: plainly up to each result that is too small."""
        out, operands, known = x.copy(), self.flushed(x), 1
        while known < len(x):
            before = self.flushed(out[known - 1 : known])
            steps = self.ufunc.accumulate(np.append(before, operands[known : known + _STEPS]))[1:]
            below = self.flushed(steps) != steps
            below &= ~np.isnan(steps)
            steps = steps[: int(below.argmax()) + 1] if below.any() else steps
            out[known : known + len(steps)] = self.flushed(steps)
            known += len(steps)
        return np.asarray(out)

    def absorb(self, x: Array) -> Array:
        """Fold a vector none of whose results can be too small."""
        return np.asarray(self.ufunc.accumulate(self.flushed(x)))


class Flushing(_Flushing):
    """How sums are made by devices without subnormal numbers."""

    def combine(self, a: Array, b: Array) -> Array:
        """Combine, with operands and result flushed."""
        return flushed(np.asarray(self.ufunc(flushed(a), flushed(b))))


class Products(_Flushing):
    """How products of floats are made, on every device.

    NaN stands for a value below twice the smallest normal number, and reaches every result that depends on it. Left
    folds have zeros for numbers up to the smallest normal one.
    """

    def combine(self, a: Array, b: Array) -> Array:
        """Combine, with NaN for what is too small."""
        return self.admit(np.asarray(self.ufunc(a, b)))

    def admit(self, x: Array) -> Array:
        """Return values as the order may use them: NaN for those that are too small."""
        return np.where(np.abs(x) < 2 * np.finfo(x.dtype).smallest_normal, x.dtype.type(np.nan), x)

    def flushed(self, x: Array) -> Array:
        """Return members with zeros of the same sign for those up to the smallest normal number."""
        return np.where(np.abs(x) <= np.finfo(x.dtype).smallest_normal, np.copysign(x.dtype.type(0), x), x)


class Tracing(Arithmetic):
    """How values are added, together with whether a subnormal number was met on the way."""

    def __init__(self, ufunc: np.ufunc, accumulator: np.dtype[Any]) -> None:
        super().__init__(ufunc, np.dtype([("value", accumulator), ("met", np.bool_)], align=True))

    def take(self, x: Array) -> Array:
        """Convert elements to the accumulator type, nothing met yet."""
        out = np.zeros(x.shape, self.accumulator)
        out["value"] = x
        return out

    def numbers(self, x: Array) -> Array:
        """Return the values without the notes."""
        return np.asarray(x["value"])

    def combine(self, a: Array, b: Array) -> Array:
        """Combine, and note a subnormal operand or result."""
        value = np.asarray(self.ufunc(a["value"], b["value"]))
        out = np.empty(value.shape, self.accumulator)
        out["value"] = value
        out["met"] = a["met"] | b["met"] | self._meets(a["value"], b["value"], value)
        return out

    def left_fold(self, x: Array) -> Array:
        """Fold a vector from the left, keeping every step."""
        out = x.copy()
        out["value"] = value = self.ufunc.accumulate(x["value"])
        out["met"][1:] |= self._meets(value[:-1], x["value"][1:], value[1:])
        out["met"] = np.logical_or.accumulate(out["met"])
        return np.asarray(out)

    def _meets(self, u: Array, v: Array, value: Array) -> NDArray[np.bool_]:
        """Tell where two operands or their result are subnormal."""
        return np.asarray(is_subnormal(u) | is_subnormal(v) | is_subnormal(value))

    def absorb(self, x: Array) -> Array:
        """Fold a vector that has no subnormal results, and may have subnormal elements."""
        out = np.empty_like(x)
        out["value"] = self.ufunc.accumulate(x["value"])
        out["met"] = np.logical_or.accumulate(x["met"] | is_subnormal(x["value"]))
        return out


def fold(x: Array, combine: Combine) -> Array:
    """Left fold inside each group, in place, keeping every step."""
    for j in range(1, x.shape[-1]):
        x[..., j] = combine(x[..., j - 1], x[..., j])
    return x


def is_subnormal(x: Array) -> Array:
    """Tell which members are subnormal numbers."""
    return np.asarray((np.abs(x) < np.finfo(x.dtype).smallest_normal) & (x != 0))


def flushed(x: Array) -> Array:
    """Return members with zeros of the same sign for subnormal numbers."""
    return np.where(is_subnormal(x), np.copysign(x.dtype.type(0), x), x) if x.dtype in FLOATS else x
