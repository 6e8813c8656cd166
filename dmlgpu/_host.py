"""Where NumPy arrays come in: what is accepted, and in which order memory is copied."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .dtypes import by_dtype
from .errors import ArrayTypeError
from .problem import Layout, packed_strides

__all__ = ["host_array", "memory_order"]


def host_array(x: ArrayLike, argument: str = "x") -> NDArray[Any]:
    """Return array-like data as an ndarray, its byte order as it is.

    Raises
    ------
    ArrayTypeError
        If elements are masked, or no element type has this dtype.
    """
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        masked = np.count_nonzero(np.ma.getmaskarray(x))
        raise ArrayTypeError(
            f"{argument} is a masked array with {masked} masked elements, which cannot be left out: fill them first, "
            f"as in {argument}.filled(0)"
        )
    array = np.asarray(x)
    by_dtype(array.dtype, argument)
    return array


def memory_order(x: NDArray[Any]) -> tuple[NDArray[Any], Layout]:
    """Find how to copy an array to the device with the least work.

    Parameters
    ----------
    x : ndarray
        Of any strides, with at least one element.

    Returns
    -------
    ndarray
        A view of `x` with its axes in the order of memory, and without what is only repeated. If `x` lies in memory
        without gaps, in whatever order of axes, this view is C-contiguous.
    Layout
        Where the elements of `x` are among those of the view, counted in the view's C order.
    """
    if x.flags.c_contiguous:
        return x, Layout.packed(x.shape)
    flips = [size > 1 and stride < 0 for size, stride in zip(x.shape, x.strides, strict=True)]
    repeats = [size > 1 and stride == 0 for size, stride in zip(x.shape, x.strides, strict=True)]
    key = [
        slice(0, 1) if repeat else slice(None, None, -1 if flip else None)
        for flip, repeat in zip(flips, repeats, strict=True)
    ]
    view = x[(*key, ...)]  # the ellipsis keeps a 0-d array an array
    order = sorted(range(x.ndim), key=lambda axis: -view.strides[axis])
    view = view.transpose(order)
    strides, offset = [0] * x.ndim, 0
    for axis, stride in zip(order, packed_strides(view.shape), strict=True):
        if flips[axis]:
            offset += (x.shape[axis] - 1) * stride
        strides[axis] = 0 if repeats[axis] else -stride if flips[axis] else stride
    return view, Layout(x.shape, tuple(strides), offset)
