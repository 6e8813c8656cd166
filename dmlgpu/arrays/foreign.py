"""Device arrays over a caller's own wgpu buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import DTypeLike

from ..arguments import integer, integers
from ..dtypes import by_argument
from ..errors import ArgumentError, ArrayTypeError, counted, shown
from ..layout import Layout, check_sizes, packed_strides
from ..lazy import import_runtime
from .array import DeviceArray
from .tensors import Tensor

if TYPE_CHECKING:
    from ..runtime.device import Device

__all__ = ["from_wgpu"]


def from_wgpu(
    buffer: Any,
    shape: SupportsIndex | Sequence[SupportsIndex],
    dtype: DTypeLike,
    *,
    strides: Sequence[SupportsIndex] | None = None,
    offset: SupportsIndex = 0,
    device: Device | Any = None,
) -> DeviceArray:
    """Return a DeviceArray over a caller's wgpu buffer, without a copy.

    Functions of this package read it, and write it as ``out=``, on the buffer's own device, in the order of its queue
    with the caller's submissions. The buffer stays the caller's: `DeviceArray.release` of any array over it forgets
    it for all of them, and nothing here destroys it. Bytes that belong to no element of an ``out=`` are never written.

    Parameters
    ----------
    buffer : wgpu.GPUBuffer
        With the usage STORAGE; no other is needed. It must be alive and unmapped whenever the array is used.
    shape : int or sequence of int
        Up to 8 dimensions.
    dtype : dtype
        The type of the elements, in native byte order.
    strides : sequence of int, optional
        Bytes between neighbours along each dimension, multiples of the element size; 0 and negative ones are allowed.
        C order without gaps by default.
    offset : int, optional
        The byte where element (0, 0, ...) begins, a multiple of the element size.
    device : wgpu.GPUDevice or Device, optional
        Where the buffer is; only needed with a wgpu that does not say.

    Returns
    -------
    DeviceArray

    Raises
    ------
    ArrayTypeError
        If `buffer` is no wgpu.GPUBuffer or on another device, or no element type has this dtype.
    ArgumentError
        If elements lie outside the buffer or in a last part of less than 4 bytes, a position is no multiple of the
        element size, or the buffer has no usage STORAGE or is mapped.
    ReleasedArrayError, DeviceReleasedError
        If the buffer, or its device, was destroyed.

    Examples
    --------
    >>> import numpy as np, wgpu, dmlgpu
    >>> gpu_device = dmlgpu.default_device().gpu_device
    >>> data = np.array([1, 2, 3, 4], dtype=np.int32)
    >>> usage = wgpu.BufferUsage.STORAGE
    >>> buffer = gpu_device.create_buffer_with_data(data=data, usage=usage)
    >>> x = dmlgpu.from_wgpu(buffer, (2, 2), "int32")
    >>> dmlgpu.cumulative_sum(x, axis=0, dtype="int32", out=x).numpy()
    array([[1, 2],
           [4, 6]], dtype=int32)
    """
    element = by_argument(dtype)
    if not np.dtype(dtype).isnative:
        raise ArrayTypeError(f"dtype is {np.dtype(dtype)}, which is not the native byte order: swap the buffer's bytes")
    sizes = integers(shape, "shape")
    if any(size < 0 for size in sizes):
        raise ArgumentError(f"shape is {shown(sizes)}; no size may be negative: give sizes of 0 or more")
    check_sizes(sizes, "the array")
    memory = import_runtime().wrap_buffer(buffer, device)
    if strides is None:
        steps = packed_strides(sizes)
    else:
        steps = tuple(_elements(step, element.itemsize, "a value of strides") for step in integers(strides, "strides"))
        if len(steps) != len(sizes):
            found = counted(len(steps), "value")
            raise ArgumentError(f"strides has {found} while shape has {len(sizes)}; give one a dimension")
    layout = Layout(sizes, steps, _elements(integer(offset, "offset"), element.itemsize, "offset"))
    low, high = (position * element.itemsize for position in layout.extent)
    if low < 0 or high > memory.nbytes:
        placed = "packed strides" if strides is None else f"strides {shown(strides)}"
        raise ArgumentError(
            f"elements of shape {sizes} with {placed} and offset {shown(offset)} "
            f"lie in bytes {shown(low)} to {shown(high)} while buffer has {memory.nbytes}; make them lie inside"
        )
    if high > memory.nbytes // 4 * 4:
        raise ArgumentError(
            f"elements lie in bytes {low} to {high}, and shaders take words of 4 bytes, while buffer has "
            f"{memory.nbytes}: create it with a size that is a multiple of 4"
        )
    return DeviceArray(Tensor(memory, element, layout))


def _elements(nbytes: int, itemsize: int, name: str) -> int:
    if nbytes % itemsize:
        raise ArgumentError(
            f"{name} is {shown(nbytes)} bytes, no multiple of the element size {itemsize}: give one that is"
        )
    return nbytes // itemsize
