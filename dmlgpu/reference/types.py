"""The element types of the reference, and the operators on them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]

FLOATS = [np.dtype(f"float{bits}") for bits in (16, 32, 64)]
TYPES = FLOATS + [np.dtype(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
CHUNK = 4 * 65536
"""The elements worked on at a time, about: few enough to bound memory and to stay in cache."""

_OPERATORS = {"sum": np.add, "product": np.multiply}


def checked(x: Array) -> Array:
    """Return `x` if its dtype is an element type's."""
    if np.asarray(x).dtype not in TYPES:
        raise TypeError(f"no element type has dtype {np.asarray(x).dtype}")
    return np.asarray(x)


def combination(operator: str) -> np.ufunc:
    """Return what combines two values."""
    if operator not in _OPERATORS:
        raise ValueError(f"operator is {operator!r}, not 'sum' or 'product'")
    return _OPERATORS[operator]


def accumulator(x: Array) -> np.dtype[Any]:
    """Return the type that the elements of `x` are combined in."""
    return np.dtype(np.float32) if x.dtype == np.float16 else x.dtype


def identity(operator: str, dtype: DTypeLike) -> Any:
    """Return an operator's identity, 0 or 1, as a scalar of the element type."""
    return np.dtype(dtype).type(combination(operator).identity)
