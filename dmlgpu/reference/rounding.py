"""The rounding modes, by integer arithmetic on the bit pattern."""

from __future__ import annotations

from typing import Any

import numpy as np

from .types import CHUNK, FLOATS, Array, checked


def round(x: Array, mode: str) -> Array:
    """Round to integers by integer arithmetic on the bit pattern.

    What rounds to zero keeps its sign. Infinities, NaN with its payload, and integers are copied.

    Parameters
    ----------
    x : ndarray
        Of any shape, otherwise as in `cumulative`.
    mode : {"half_even", "toward_zero", "half_away"}
        Halves go to the even neighbour or away from zero; "toward_zero" drops every fraction.
    """
    if mode not in ("half_even", "toward_zero", "half_away"):
        raise ValueError(f"mode is {mode!r}, not 'half_even', 'toward_zero' or 'half_away'")
    out = np.array(checked(x), order="C")
    if out.dtype in FLOATS:
        bits = out.reshape(-1).view(f"u{out.itemsize}")
        for start in range(0, bits.size, CHUNK):
            piece = bits[start : start + CHUNK]
            sign = piece & (1 << (8 * out.itemsize - 1))
            piece[:] = sign | _rounded_magnitude(piece ^ sign, np.finfo(out.dtype), mode)
    return out


def _rounded_magnitude(bits: Array, info: np.finfo[Any], mode: str) -> Array:
    """Round the bit patterns of numbers without sign."""
    width, bias = info.nmant, info.maxexp - 1
    exponent = bits >> width
    # From 1 on: add what makes the integer part one more if due (a carry may run into the exponent, rightly),
    # then drop the fraction. Between 1 and 2 the lowest bit before the fraction is the biased exponent's, 1.
    dropped = bias + width - np.clip(exponent, bias, bias + width - 1)
    unit = np.left_shift(bits.dtype.type(1), dropped)
    odd = (bits >> dropped) & 1
    more = {"half_even": (unit >> 1) - 1 + odd, "toward_zero": unit & 0, "half_away": unit >> 1}[mode]
    rounded = (bits + more) & ~(unit - 1)
    # Below 1: 0 or 1. Where no bit is a fraction, infinity and NaN included: unchanged.
    half, one = bits.dtype.type((bias - 1) << width), bits.dtype.type(bias << width)
    to_one = {"half_even": bits > half, "toward_zero": bits >= one, "half_away": bits >= half}[mode]
    return np.where(exponent < bias, to_one * one, np.where(exponent < bias + width, rounded, bits))
