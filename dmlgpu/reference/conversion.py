"""Conversions between element types, with one answer where C leaves it open."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from .types import FLOATS, TYPES, Array, accumulator, checked


def convert(x: Array, dtype: DTypeLike) -> Array:
    """Convert the element type as ``astype`` would, with one answer where C leaves it open.

    Floating-point numbers beyond an integer type's limits give the limit, and NaN gives 0.

    Parameters
    ----------
    x : ndarray
        bool, where any byte but 0 counts as 1, or as in `cumulative`; of any shape.
    dtype : DTypeLike
        Any element type but bool.
    """
    x, target = np.asarray(x), np.dtype(dtype)
    if target not in TYPES:
        raise TypeError(f"no conversion to {target}")
    x = checked((x.view(np.uint8) != 0).astype(np.uint8) if x.dtype == np.bool_ else x)
    with np.errstate(all="ignore"):
        if x.dtype not in FLOATS or target in FLOATS:
            return x.astype(target)
        limits, whole = np.iinfo(target), np.trunc(x.astype(accumulator(x)))
        below, above = whole < float(limits.min), whole >= float(limits.max + 1)
        out = np.where(below | above | np.isnan(whole), 0, whole).astype(target)
        return np.where(below, target.type(limits.min), np.where(above, target.type(limits.max), out))
