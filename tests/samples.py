"""Elements to compute with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dmlgpu.dtypes import ELEMENT_TYPES

DTYPES = [element.name for element in ELEMENT_TYPES]


def every_kind(dtype: str, shape: tuple[int, ...], seed: int = 0) -> NDArray[Any]:
    """Return integers of all magnitudes, or floating-point numbers with special ones, no subnormals, among them."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        info = np.iinfo(dtype)
        return np.asarray(rng.integers(info.min, info.max, shape, dtype, endpoint=True))
    x = rng.normal(0, 1000, shape).astype(dtype)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, -2.5, np.finfo(dtype).max], dtype)
    return np.where(rng.random(shape) < 0.2, rng.choice(special, shape), x).astype(dtype)


def tame(dtype: str, shape: tuple[int, ...], seed: int = 0) -> NDArray[Any]:
    """Return integers of all magnitudes, or floating-point numbers whose products stay normal for a while."""
    if np.dtype(dtype).kind != "f":
        return every_kind(dtype, shape, seed)
    rng = np.random.default_rng(seed)
    return np.asarray(rng.choice([-1, 1], shape) * rng.uniform(0.5, 1.7, shape)).astype(dtype)
