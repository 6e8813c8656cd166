"""How compensated sums combine values: float32 pairs that keep what rounding cuts off.

A pair (lo, hi) stands for hi + lo, where hi is the sum rounded to nearest. Two pairs are added by the algorithm
AccurateDWPlusDW of Joldes, Muller and Popescu ("Tight and rigorous error bounds for basic building blocks of
double-word arithmetic", 2017), whose relative error is below 3 u^2 / (1 - 4u) with u = 2^-24, cancellation included.
Around it: the first of the three sums for hi that is NaN or infinite is the result; a zero sum is -0 only if both
numbers are; lo is never -0, and 0 where hi is zero, infinite or NaN.
"""

from __future__ import annotations

import numpy as np

from .arithmetic import Arithmetic, flushed, is_subnormal
from .types import Array

_PAIR = [("lo", np.float32), ("hi", np.float32)]


class Compensated(Arithmetic):
    """How pairs of float32 are added."""

    def __init__(self) -> None:
        super().__init__(np.add, np.dtype(_PAIR))

    def take(self, x: Array) -> Array:
        """Convert elements to pairs."""
        out = np.zeros(x.shape, self.accumulator)
        out["hi"] = x
        return out

    def numbers(self, x: Array) -> Array:
        """Return the high parts, which are the results."""
        return np.asarray(x["hi"])

    def combine(self, a: Array, b: Array) -> Array:
        """Add members of two arrays."""
        s, s_error = self._two_sum(a["hi"], b["hi"])
        t, t_error = self._two_sum(a["lo"], b["lo"])
        v, v_error = self._fast_two_sum(s, self._plus(s_error, t))
        z, lo = self._fast_two_sum(v, self._plus(t_error, v_error))
        out = np.zeros(s.shape, self.accumulator)
        out["hi"] = np.where(np.isfinite(s), np.where(np.isfinite(v), z, v), s)
        both_zero = (s == 0) & (z == 0)
        out["hi"][both_zero] = s[both_zero]
        out["lo"] = np.where(np.isfinite(out["hi"]), lo, 0) + np.float32(0)  # -0 + 0 is 0
        return out

    def left_fold(self, x: Array) -> Array:
        """Fold a vector from the left, keeping every step: pair by pair up to the first that is not finite."""
        out = x.copy()
        for j in range(1, len(x)):
            if not np.isfinite(out["hi"][j - 1]):
                out[j - 1 :] = self.absorb(np.append(out[j - 1 : j], x[j:]))
                break
            out[j : j + 1] = self.combine(out[j - 1 : j], x[j : j + 1])
        return np.asarray(out)

    def absorb(self, x: Array) -> Array:
        """Fold a vector that begins with NaN or infinity."""
        out = np.zeros(x.shape, self.accumulator)
        out["hi"] = np.add.accumulate(x["hi"])
        return out

    def _plus(self, a: Array, b: Array) -> Array:
        """Add numbers as the device does."""
        return np.asarray(a + b)

    def _fast_two_sum(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Return the rounded sum, and what rounding cut off where `a` is 0 or at least as large as `b`."""
        total = self._plus(a, b)
        return total, self._plus(b, -self._plus(total, -a))

    def _two_sum(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Return the rounded sum and what rounding cut off."""
        swap = np.abs(a) < np.abs(b)
        return self._fast_two_sum(np.where(swap, b, a), np.where(swap, a, b))


class CompensatedFlushing(Compensated):
    """The same on devices without subnormal numbers."""

    def _plus(self, a: Array, b: Array) -> Array:
        return flushed(super()._plus(flushed(a), flushed(b)))


class CompensatedTracing(Compensated):
    """The same, together with whether one of its additions met a subnormal number on the way."""

    def __init__(self) -> None:
        super().__init__()
        self.accumulator = np.dtype([*_PAIR, ("met", np.bool_)], align=True)
        self._met: Array = np.zeros((), np.bool_)

    def combine(self, a: Array, b: Array) -> Array:
        """Add, and note a subnormal operand or result of any step."""
        self._met = np.asarray(a["met"] | b["met"])
        out = super().combine(a, b)
        out["met"] = self._met
        return out

    def absorb(self, x: Array) -> Array:
        """Fold a vector that begins with NaN or infinity, and note subnormal elements."""
        out = super().absorb(x)
        out["met"] = np.logical_or.accumulate(x["met"] | is_subnormal(x["hi"]))
        return out

    def _plus(self, a: Array, b: Array) -> Array:
        total = super()._plus(a, b)
        self._met = self._met | is_subnormal(a) | is_subnormal(b) | is_subnormal(total)
        return total
