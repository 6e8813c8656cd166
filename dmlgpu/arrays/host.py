"""Input from NumPy: which arrays are accepted, and in which order their memory is copied."""

from __future__ import annotations

import math
import sys
from array import ArrayType
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..dtypes import ElementType, by_dtype, has_element_type
from ..errors import ArgumentError, ArrayTypeError, DmlGpuError, HostMemoryError, counted, said, shown, with_type
from ..layout import Layout, packed_strides

__all__ = ["host_array", "host_empty", "memory_order", "refuse_masked_chunk"]

_LARGE: Final = 4 * 2**20
"""From as many bytes on NumPy asks Linux for huge pages."""
_HUGE_PAGE: Final = 2 * 2**20
"""Where those begin and end. Up to the first such place each 4 KiB are a page of their own, which the first access has
the kernel fetch: a result of 16 MiB takes a fifth longer to fill if it does not begin there."""

_NUMBERS: Final = (bool, int, float, complex, np.generic)
_NO_NESTS: Final = (*_NUMBERS, np.ndarray, str, bytes, bytearray, memoryview, ArrayType)
"""What has no members that could be masked; looked for before the slower question whether something is a sequence."""
_WAYS: Final = ("__array__", "__array_interface__", "__array_struct__", "__buffer__")
"""How NumPy reaches elements without going through members."""
_MOST_DIMENSIONS: Final = 64
"""NumPy makes no array of lists that are deeper."""


def host_array(x: ArrayLike, argument: str = "x") -> NDArray[Any]:
    """Return array-like data as an ndarray, its byte order as it is.

    Raises
    ------
    ArrayTypeError
        If elements are masked, no element type has this dtype, or `x` is no array-like.
    ArgumentError
        If NumPy makes no array of it, as of nested lists of different lengths.
    HostMemoryError
        If there is no memory for the array.
    """
    _refuse_masked(x, argument)
    nested = _is_nest(x)
    if nested:
        _refuse_masked_members(x, argument)
    try:
        anything: Any = x
        array = np.from_dlpack(anything) if _speaks_dlpack_only(x) else np.asanyarray(x)
        if type(array) is not np.ndarray:
            _refuse_masked(array, argument)  # what an object turned into
            array = np.asarray(array)
    except (DmlGpuError, TimeoutError):  # such as that of a released DeviceArray in a list, or a signal's handler
        raise
    except Exception as error:
        if nested:
            _refuse_masked_members(x, argument, numbers=True)
        raise _no_array(x, argument, error) from error
    if nested and array.dtype.kind == "f" and np.isnan(array).any():  # such as NumPy makes of a masked number
        _refuse_masked_members(x, argument, numbers=True)
    if array is not x and array.dtype.kind == "O" and (number := _too_wide(array)) is not None:
        raise ArrayTypeError(
            f"{argument} holds {shown(number)}, which does not fit in 64 bits: give smaller integers, or floats"
        )
    if array is not x and not has_element_type(array.dtype):
        raise ArrayTypeError(
            f"{argument} has dtype {array.dtype} as a NumPy array, which has no element type on the device: {argument} "
            f"is {with_type(x)}; give numbers"
        )
    by_dtype(array.dtype, argument)
    return array


def host_empty(sizes: Sequence[int], element: ElementType) -> NDArray[Any]:
    """Return a new array that may hold anything; a large one may be a view, at a place that pages suit.

    Raises
    ------
    HostMemoryError
        If there is no memory for it.
    """
    nbytes = math.prod(sizes) * element.itemsize
    try:
        if nbytes < _LARGE or sys.platform != "linux":
            return np.empty(sizes, element.dtype)
        memory = np.empty(nbytes + _HUGE_PAGE, np.uint8)
        begin = -memory.ctypes.data % _HUGE_PAGE
        return memory[begin : begin + nbytes].view(element.dtype).reshape(sizes)
    except MemoryError as error:
        raise HostMemoryError(
            f"this process has no memory for a NumPy array of shape {tuple(sizes)} and dtype {element}: scan it "
            "in pieces with dmlgpu.Scan, or work in parts"
        ) from error


def _speaks_dlpack_only(x: Any) -> bool:
    """Whether NumPy reaches the elements through DLPack and in no other way that is as quick."""
    kind = type(x)
    return hasattr(kind, "__dlpack__") and not any(hasattr(kind, way) for way in _WAYS)


def _is_nest(x: Any) -> bool:
    """Whether NumPy makes an array of an object's members: lists, tuples and other sequences, such as a deque."""
    if isinstance(x, list | tuple):
        return True
    if isinstance(x, _NO_NESTS) or not isinstance(x, Sequence):
        return False
    return not any(hasattr(type(x), way) for way in _WAYS)


def refuse_masked_chunk(chunk: object, argument: str = "x") -> None:
    """Refuse a masked chunk of a dask array, whose masked elements `numpy.asarray` would take for numbers."""
    if isinstance(chunk, np.ma.MaskedArray):
        raise ArrayTypeError(
            f"{argument} has chunks of masked arrays, whose masked elements cannot be left out: fill them first, as in "
            f"dask.array.ma.filled({argument}, 0)"
        )


def _refuse_masked(x: Any, argument: str) -> None:
    refuse_masked_chunk(getattr(x, "_meta", None), argument)  # what a dask array has NumPy make drops the mask
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        masked = int(np.count_nonzero(np.ma.getmaskarray(x)))
        raise ArrayTypeError(
            f"{argument} is a masked array with {counted(masked, 'masked element')}, which cannot be "
            f"left out: fill {'it' if masked == 1 else 'them'} first, as in {argument}.filled(0)"
        )


def _refuse_masked_members(x: Any, argument: str, *, numbers: bool = False) -> None:
    """Refuse sequences with masked arrays in them at any depth, whose masks `numpy.asarray` would drop.

    Of what begins with a number no member has dimensions. Only with `numbers` is it looked at member by member, which
    takes longer than to make an array of it.
    """
    seen: dict[int, Any] = {}  # by id, and kept: the next object would get the id of one that is gone

    def look(x: Any, name: str, depth: int) -> None:
        try:
            go_through(x, name, depth)
        except DmlGpuError:
            raise
        except Exception:  # the sequence's own, which NumPy meets as well: others may still have masks
            return

    def go_through(x: Any, name: str, depth: int) -> None:
        first = next(iter(x), x)
        if first is x or id(x) in seen or depth > _MOST_DIMENSIONS or (not numbers and isinstance(first, _NUMBERS)):
            return
        seen[id(x)] = x
        if not numbers and set(map(type, x)) <= {list, tuple}:  # the loop would take as long as to make an array
            firsts = set(map(type, map(itemgetter(0), filter(None, x))))
            if all(issubclass(kind, _NUMBERS) for kind in firsts):
                return
        for i, part in enumerate(x):
            if isinstance(part, _NUMBERS):
                continue
            _refuse_masked(part, f"{name}[{i}]")
            if _is_nest(part):
                look(part, f"{name}[{i}]", depth + 1)

    look(x, argument, 1)


def _too_wide(array: NDArray[Any]) -> int | None:
    """Return the first integer that no type has room for, if there is one."""
    numbers = (number for number in array.ravel().tolist() if isinstance(number, int))
    return next((number for number in numbers if not -(2**63) <= number < 2**64), None)


def _no_array(x: ArrayLike, argument: str, error: Exception) -> DmlGpuError:
    """Return the error that says why `numpy.asarray` failed."""
    if isinstance(error, MemoryError):
        return HostMemoryError(f"this process has no memory for {argument} as a NumPy array: work in parts")
    kind = ArgumentError if isinstance(error, ValueError) else ArrayTypeError
    return kind(
        f"{argument} is {with_type(x)}, of which NumPy makes no array ({said(error)}): give numbers or a NumPy array"
    )


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
