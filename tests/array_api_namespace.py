"""NumPy's namespace of the Python array API, whose scans and rounding dmlgpu computes on a device.

`test_array_api.py` uses it, and the array API's own suite, which that runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import dmlgpu

__all__ = ["cumulative_prod", "cumulative_sum", "round"]

__array_api_version__ = "2024.12"

Array = NDArray[Any]


def __getattr__(name: str) -> Any:
    return getattr(np, name)


def cumulative_sum(x: Array, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Array:
    return np.asarray(dmlgpu.cumulative_sum(dmlgpu.asarray(x), axis=axis, dtype=dtype, include_initial=include_initial))


def cumulative_prod(x: Array, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Array:
    return np.asarray(
        dmlgpu.cumulative_prod(dmlgpu.asarray(x), axis=axis, dtype=dtype, include_initial=include_initial)
    )


def round(x: Array, /) -> Array:
    return np.asarray(dmlgpu.round(dmlgpu.asarray(x)))
