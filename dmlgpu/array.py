"""Data that stays on the GPU, and its strided views."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import _views
from ._host import host_array
from ._tensors import Tensor, download, download_async, packed, resolve, upload
from .dtypes import BOOL, by_dtype
from .errors import ArgumentError, ArrayTypeError
from .problem import Layout

if TYPE_CHECKING:
    from .runtime.device import Device

__all__ = ["DeviceArray", "asarray"]


class DeviceArray:
    """An array in a device's memory, or a strided view of one.

    Made by `asarray` and by the functions of this package, never called directly. The operations below make views or
    work on the device; nothing is read back but by `numpy`, `numpy_async` and what calls ``__array__``, such as
    ``numpy.asarray(array)``. Views share the memory of the array they come from. There is no arithmetic and no
    assignment to elements: write through ``out=`` of a function.

    A DeviceArray can be used as a context manager, which releases it at the end.

    Examples
    --------
    >>> import dmlgpu
    >>> x = dmlgpu.asarray([[1, 2, 3], [4, 5, 6]])
    >>> dmlgpu.cumulative_sum(x.T[::-1], axis=0).numpy()
    array([[ 3,  6],
           [ 5, 11],
           [ 6, 15]])
    """

    __slots__ = ("__weakref__", "_tensor")

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""
        return self._tensor.layout.sizes

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type, in native byte order."""
        return self._tensor.element.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._tensor.layout.sizes)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._tensor.layout.count

    @property
    def itemsize(self) -> int:
        """Bytes an element."""
        return self._tensor.element.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements; a view that repeats elements counts every repetition."""
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes between neighbours along each dimension."""
        return tuple(stride * self.itemsize for stride in self._tensor.layout.strides)

    @property
    def device(self) -> Device:
        """The device that holds the memory."""
        return self._tensor.buffer.device

    @property
    def released(self) -> bool:
        """Whether the memory was given back, by `release` of this array or of one that shares its memory."""
        return self._tensor.buffer.released

    def release(self) -> None:
        """Give the memory back now, for all arrays that share it; using one of them later is an error.

        Without this the memory goes back when the last array that shares it is garbage collected.
        """
        with self.device.lock:
            self._tensor.buffer.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.release()

    @property
    def T(self) -> DeviceArray:  # noqa: N802 (NumPy's name)
        """The view with its axes reversed."""
        return self.transpose()

    def transpose(self, *axes: Any) -> DeviceArray:
        """Return a view with the axes permuted.

        Parameters
        ----------
        *axes : int, or one tuple of int
            For each axis of the view, the axis of this array; reversed if none is given.

        Raises
        ------
        AxisError
            If an axis is out of range.
        ArgumentError
            If the axes are no permutation.

        Examples
        --------
        >>> import numpy as np, dmlgpu
        >>> dmlgpu.asarray(np.zeros((2, 3, 4))).transpose(1, 2, 0).shape
        (3, 4, 2)
        """
        reverse = not axes or axes[0] is None
        return self._view(_views.transpose(self._tensor.layout, None if reverse else _one_tuple(axes)))

    def reshape(self, *shape: Any) -> DeviceArray:
        """Return the elements, in C order, with another shape.

        The result is a view where strides can express it, otherwise a copy made on the device.

        Parameters
        ----------
        *shape : int, or one tuple of int
            The new shape; one size may be -1 and is computed.

        Raises
        ------
        ArgumentError
            If the shape does not hold the same number of elements.

        Examples
        --------
        >>> import numpy as np, dmlgpu
        >>> dmlgpu.asarray(np.arange(6)).reshape(2, -1).numpy()
        array([[0, 1, 2],
               [3, 4, 5]])
        """
        sizes = _views.resolve_sizes(self.size, _one_tuple(shape))
        layout = _views.reshape(self._tensor.layout, sizes)
        return self.copy().reshape(sizes) if layout is None else self._view(layout)

    def broadcast_to(self, shape: int | Sequence[SupportsIndex]) -> DeviceArray:
        """Return a view that repeats this array to fill a shape, by NumPy's broadcasting rules.

        Parameters
        ----------
        shape : int or sequence of int
            The shape of the view. Repeated dimensions get stride 0 and take no memory.

        Raises
        ------
        ArgumentError
            If a dimension is neither 1 nor the size asked for.

        Examples
        --------
        >>> import dmlgpu
        >>> ones = dmlgpu.asarray(1).broadcast_to(5)
        >>> dmlgpu.cumulative_sum(ones).numpy()
        array([1, 2, 3, 4, 5])
        """
        sizes = shape if isinstance(shape, Sequence) else (shape,)
        return self._view(_views.broadcast(self._tensor.layout, sizes))

    def __getitem__(self, key: Any) -> DeviceArray:
        return self._view(_views.take(self._tensor.layout, key))

    def _view(self, layout: Layout) -> DeviceArray:
        self._tensor.check_live()
        _views.check_size(layout.sizes, "the view")
        return DeviceArray(Tensor(self._tensor.buffer, self._tensor.element, layout))

    def copy(self) -> DeviceArray:
        """Return a copy with memory of its own, in C order without gaps, made on the device."""
        return self.astype(self.dtype)

    __copy__ = copy

    def __deepcopy__(self, memo: object) -> DeviceArray:
        return self.copy()

    def astype(self, dtype: DTypeLike, *, copy: bool = True) -> DeviceArray:
        """Return the elements converted to another type, on the device.

        The result is the same on every device. It is ``numpy.ndarray.astype``'s wherever C defines that; floats
        beyond an integer type's range give its nearest limit, and NaN gives 0.

        Parameters
        ----------
        dtype : DTypeLike
            The new element type; bool only for an array of bool.
        copy : bool
            False returns this array itself if it has the dtype already.

        Raises
        ------
        ArrayTypeError
            If no element type has this dtype, or it is bool and this array's is not.

        Examples
        --------
        >>> import dmlgpu
        >>> dmlgpu.asarray([1.5, -2.5]).astype("int32").numpy()
        array([ 1, -2], dtype=int32)
        """
        element = by_dtype(dtype, "dtype")
        if element == BOOL != self._tensor.element:
            raise ArrayTypeError(f"{self.dtype} does not convert to bool on the device: compare .numpy() with 0")
        if not copy and element == self._tensor.element:
            return self
        return DeviceArray(packed(self._tensor, element))

    def numpy(self) -> NDArray[Any]:
        """Read the elements back into a new, C-contiguous NumPy array.

        A view with gaps or another order is packed on the device first, unless it spans 64 KiB or less.

        Raises
        ------
        ReleasedArrayError, DeviceReleasedError
            If the array's memory, or its device, was released.

        Examples
        --------
        >>> import dmlgpu
        >>> dmlgpu.asarray([3, 1, 2])[::-1].numpy()
        array([2, 1, 3])
        """
        return download(self._tensor)

    async def numpy_async(self) -> NDArray[Any]:
        """Read the elements back as `numpy` does, leaving the event loop free meanwhile.

        What is read is decided when the coroutine starts to run; neither change nor release the array until it ends.

        Raises
        ------
        ReleasedArrayError, DeviceReleasedError
            If the array's memory, or its device, was released.

        Examples
        --------
        >>> import asyncio, dmlgpu
        >>> asyncio.run(dmlgpu.asarray([3, 1, 2]).numpy_async())
        array([3, 1, 2])
        """
        return await download_async(self._tensor)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ArgumentError("copy=False asks for a NumPy array that shares the device's memory, which none can")
        host = self.numpy()
        return host if dtype is None else host.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> NoReturn:
        # Without this NumPy's operators would read the array back, unasked.
        raise ArrayTypeError(
            f"numpy.{ufunc.__name__} does not work on a DeviceArray: use .numpy() to read it back first"
        )

    def __len__(self) -> int:
        if self.ndim == 0:
            raise ArrayTypeError("an array of 0 dimensions has no len()")
        return self.shape[0]

    def __iter__(self) -> Iterator[DeviceArray]:
        if self.ndim == 0:
            raise ArrayTypeError("an array of 0 dimensions cannot be iterated over")
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> NoReturn:
        raise ArrayTypeError("a DeviceArray has no truth value: test .size, or the NumPy array that .numpy() returns")

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise ArrayTypeError("a DeviceArray cannot be pickled or sent to another process: send .numpy() instead")

    def __repr__(self) -> str:
        state = ", released" if self.released else ""
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, device={self.device.summary!r}{state})"


def asarray(x: ArrayLike | DeviceArray, /, device: Device | str | int | None = None) -> DeviceArray:
    """Copy an array to a device.

    Parameters
    ----------
    x : array_like or DeviceArray
        Data of any shape up to 8 dimensions, of bool, an integer type or float16, float32 or float64, in any byte
        order. The memory order of a NumPy array is kept, and what it repeats (stride 0) is copied once. Masked
        arrays are taken only without masked elements.
    device : Device, str, int or None
        An open device, or which adapter to open: part of its summary, or its index. None is the default device, or
        the one that holds `x` already.

    Returns
    -------
    DeviceArray
        `x` itself if it is a DeviceArray of this device; one of another device is copied through the host.

    Raises
    ------
    ArrayTypeError
        If no element type has the dtype of `x`, such as complex numbers and objects, or elements are masked.
    ArgumentError
        If `x` has too many dimensions or elements.
    DeviceMemoryError
        If `x` is larger than the device allows.

    Examples
    --------
    >>> import numpy as np, dmlgpu
    >>> x = dmlgpu.asarray(np.array([1.5, 2.5], dtype=np.float32))
    >>> dmlgpu.round(dmlgpu.cumulative_sum(x)).numpy()
    array([2., 4.], dtype=float32)
    """
    if isinstance(x, DeviceArray):
        if device is None or resolve(device) is x.device:
            return x
        return DeviceArray(upload(resolve(device), x.numpy()))
    array = host_array(x)
    _views.check_size(array.shape)
    return DeviceArray(upload(resolve(device), array))


def _one_tuple(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Let ``f((2, 3))`` and ``f(2, 3)`` mean the same."""
    first = arguments[0] if len(arguments) == 1 else None
    return tuple(first) if isinstance(first, Sequence) else arguments
