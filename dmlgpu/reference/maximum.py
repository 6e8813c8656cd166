"""The largest result so far, of which monotone sums consist."""

from __future__ import annotations

import numpy as np

from .types import FLOATS, Array

__all__ = ["running_maximum"]


def running_maximum(x: Array) -> Array:
    """Return the largest element so far along the last axis.

    Floats are ordered as by the operation maximum of IEEE 754-2019: 0 is larger than -0, and NaN than every number. So
    a NaN stays, and as a maximum never rounds, every order of operations has the same results.
    """
    if x.shape[-1] == 0:
        return x.copy()
    out = np.asarray(np.maximum.accumulate(x, axis=-1))
    if x.dtype in FLOATS:  # which of two zeros NumPy takes is open
        met = np.logical_or.accumulate((x == 0) & ~np.signbit(x), axis=-1)
        zeros = np.where(met, x.dtype.type(0), -x.dtype.type(0))
        out = np.where(out == 0, zeros, out)
    return out
