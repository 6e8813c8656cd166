"""Between arrays on the host and tensors whose strides describe a buffer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..layout import Layout
from .hresults import invalid_argument

__all__ = ["image"]


def image(array: NDArray[Any], layout: Layout, where: str) -> NDArray[Any]:
    """Return the contents of a buffer, up to the tensor's last element, that make the tensor hold an array.

    Parameters
    ----------
    array : NDArray, shape ``layout.sizes``
        The elements.
    layout : Layout
        Where they lie. Elements that share a place, as along a dimension with stride 0, must have the same bits.
    where : str
        The operator and the tensor, for messages.

    Returns
    -------
    NDArray, 1-D
        A contiguous array of the same dtype; gaps hold zeros.

    Raises
    ------
    DirectMLError
        With E_INVALIDARG, if elements that share a place differ.
    """
    if layout.is_packed:
        return np.ascontiguousarray(array).reshape(-1)
    flat = np.zeros(layout.extent[1], array.dtype)
    placed = layout.view(flat)
    placed[...] = array
    if not layout.is_disjoint:
        bits = np.dtype(f"u{array.itemsize}")
        differs = placed.view(bits) != array.view(bits)
        if differs.any():
            index = tuple(map(int, np.unravel_index(int(differs.argmax()), differs.shape)))
            raise invalid_argument(
                f"{where} has Sizes {layout.sizes} and Strides {layout.strides}, with which elements share memory, "
                f"while array holds different values there: {array[index]!s} at {index} and {placed[index]!s}; give "
                "elements that share memory the same value"
            )
    return flat
