"""Whether two results have the same bits."""

from __future__ import annotations

import numpy as np

from .types import Array


def same_bits(a: Array, b: Array) -> bool:
    """Tell whether shape, element type and bits agree. Every NaN equals every NaN; -0 and 0 differ."""
    return first_difference(a, b) is None


def first_difference(a: Array, b: Array) -> str | None:
    """Return None if `same_bits`, else one line: the first index that differs, both values and their bits."""
    a, b = np.asarray(a), np.asarray(b)
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return f"{a.dtype} of shape {a.shape} against {b.dtype} of shape {b.shape}"
    a_bits, b_bits = (np.ascontiguousarray(y).reshape(-1).view(f"u{y.itemsize}") for y in (a, b))
    differs = a_bits != b_bits
    if a.dtype.kind == "f":
        differs &= ~(np.isnan(a) & np.isnan(b)).reshape(-1)
    if not differs.any():
        return None
    i = int(differs.argmax())
    one, other = (f"{y.flat[i]!s} (0x{bits[i]:0{2 * y.itemsize}x})" for y, bits in ((a, a_bits), (b, b_bits)))
    place = [int(j) for j in np.unravel_index(i, a.shape)]
    return f"{place}: {one} against {other}; {differs.sum()} of {a.size} differ"
