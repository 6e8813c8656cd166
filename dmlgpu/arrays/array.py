"""Data that stays on the GPU, and its strided views."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..arguments import flag, integer, integers
from ..dtypes import BOOL, by_argument
from ..errors import ArgumentError, ArrayTypeError, DmlGpuError, SharedMemoryError, said, shown, with_type
from ..layout import Layout, check_sizes
from ..lazy import resolve_device
from .host import host_array
from .protocols import READ_BACK, call_numpy_function, call_numpy_ufunc
from .tensors import Tensor, download, download_async, packed, upload

if TYPE_CHECKING:
    from ..runtime.device import Device

__all__ = ["DeviceArray", "asarray"]


_SHOWN = 3
"""The number of elements that a repr shows from either end."""

_INSTEAD = {
    "cumsum": "use dmlgpu.cumulative_sum, or numpy.cumsum",
    "cumprod": "use dmlgpu.cumulative_prod, or numpy.cumprod",
    "round": "use dmlgpu.round, or numpy.round",
    "flatten": "use copy().reshape(-1)",
    "ravel": "use reshape(-1)",
    "squeeze": "use reshape, or an index of 0",
    "swapaxes": "use transpose",
}
"""Methods of NumPy's arrays that people try, and what does it here."""


def _refusal(what: str, way_out: str) -> Callable[..., NoReturn]:
    """Return a special method that only raises an error, which says why and what to do instead."""

    def refuse(self: DeviceArray, *operands: object) -> NoReturn:
        raise ArrayTypeError(f"a DeviceArray {what}: {way_out}")

    return refuse


def _no_operator(sign: str) -> Callable[..., NoReturn]:
    return _refusal(f"has no operator {sign}", f"{READ_BACK}, or use the functions of dmlgpu")


def _no_comparison(sign: str) -> Callable[..., NoReturn]:
    way_out = "compare what .numpy() returns, or use `is` to ask whether two are the same object"
    return _refusal(f"is not compared with {sign}", way_out)


class DeviceArray:
    """An array in a device's memory, or a strided view of one.

    Made by `asarray` and by the functions of this package, never called directly. The operations below make views or
    work on the device; nothing is read back but by `numpy`, `numpy_async`, `tolist`, `item`, a repr (a few elements)
    and what calls ``__array__`` or ``__dlpack__``, such as ``numpy.asarray(array)``. NumPy's cumsum, cumprod,
    cumulative_sum, cumulative_prod, round, rint, trunc, add.accumulate and multiply.accumulate run on the device, with
    its bits; its other functions are refused. Views share the memory of the array they come from. There are no
    arithmetic, comparisons, hashes and assignment to elements: compute with the array that `numpy` returns, and write
    through ``out=`` of a function.

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
        if not isinstance(tensor, Tensor):
            raise ArrayTypeError(f"tensor is {with_type(tensor)}; make a DeviceArray with dmlgpu.asarray")
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
        """Bytes of an element."""
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
        with self.device.section:
            self._tensor.buffer.release()

    def __enter__(self) -> Self:
        self._tensor.check_live()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.release()

    @property
    def T(self) -> DeviceArray:  # noqa: N802 (NumPy's name)
        """The view with its axes reversed."""
        return self.transpose()

    @property
    def mT(self) -> DeviceArray:  # noqa: N802 (the array API's name)
        """The view with its last two axes swapped."""
        if self.ndim < 2:
            raise ArgumentError(f"an array of shape {self.shape} has no matrices to transpose: give it 2 dimensions")
        return self.transpose(*range(self.ndim - 2), self.ndim - 1, self.ndim - 2)

    def transpose(self, *axes: Any) -> DeviceArray:
        """Return a view with the axes permuted.

        Parameters
        ----------
        *axes : int, or one tuple of int
            For each axis of the view, the axis of this array; reversed if none is given.

        Raises
        ------
        ArrayTypeError
            If an axis is no integer.
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
        reverse = not axes or (len(axes) == 1 and axes[0] is None)
        return self._view(self._tensor.layout.transpose(None if reverse else _one_tuple(axes, "axes")))

    def reshape(self, *shape: Any) -> DeviceArray:
        """Return the elements, in C order, with another shape.

        The result is a view where strides can express it, otherwise a copy made on the device.

        Parameters
        ----------
        *shape : int, or one tuple of int
            The new shape; one size may be -1 and is computed.

        Raises
        ------
        ArrayTypeError
            If a size is no integer.
        ArgumentError
            If the shape does not hold the same number of elements.

        Examples
        --------
        >>> import numpy as np, dmlgpu
        >>> dmlgpu.asarray(np.arange(6)).reshape(2, -1).numpy()
        array([[0, 1, 2],
               [3, 4, 5]])
        """
        sizes = _one_tuple(shape, "shape")
        layout = self._tensor.layout.reshape(sizes)
        return self.copy().reshape(sizes) if layout is None else self._view(layout)

    def broadcast_to(self, shape: int | Sequence[SupportsIndex]) -> DeviceArray:
        """Return a view that repeats this array to fill a shape, by NumPy's broadcasting rules.

        Parameters
        ----------
        shape : int or sequence of int
            The shape of the view. Repeated dimensions get stride 0 and take no memory.

        Raises
        ------
        ArrayTypeError
            If a size is no integer.
        ArgumentError
            If a dimension is neither 1 nor the size asked for.

        Examples
        --------
        >>> import dmlgpu
        >>> ones = dmlgpu.asarray(1).broadcast_to(5)
        >>> dmlgpu.cumulative_sum(ones).numpy()
        array([1, 2, 3, 4, 5])
        """
        return self._view(self._tensor.layout.broadcast(integers(shape, "shape")))

    def __getitem__(self, key: Any) -> DeviceArray:
        return self._view(self._tensor.layout.take(key))

    def _view(self, layout: Layout) -> DeviceArray:
        self._tensor.check_live()
        check_sizes(layout.sizes, "the view")
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
        element = by_argument(dtype, computed=self._tensor.element != BOOL)
        if element == BOOL != self._tensor.element:
            raise ArrayTypeError(
                f"dtype is bool, to which {self.dtype} does not convert on the device: compare .numpy() with 0"
            )
        if not flag(copy, "copy") and element == self._tensor.element:
            return self
        return DeviceArray(packed(self._tensor, element))

    def numpy(self) -> NDArray[Any]:
        """Read the elements back into a new, C-contiguous NumPy array.

        A view with gaps or another order is packed on the device first, unless it spans 64 KiB or less.

        Raises
        ------
        ReleasedArrayError, DeviceReleasedError
            If the array's memory was released, or, where there are elements to read, its device.
        HostMemoryError
            If this process has no room for it, as for a view that repeats elements.

        Examples
        --------
        >>> import dmlgpu
        >>> dmlgpu.asarray([3, 1, 2])[::-1].numpy()
        array([2, 1, 3])
        """
        return download(self._tensor)

    def tolist(self) -> Any:
        """Read the elements back into nested lists of Python's numbers; one number for an array of 0 dimensions.

        Raises
        ------
        ReleasedArrayError, DeviceReleasedError, HostMemoryError
            As `numpy`.

        Examples
        --------
        >>> import dmlgpu
        >>> dmlgpu.cumulative_sum(dmlgpu.asarray([3, 1, 2])).tolist()
        [3, 4, 6]
        """
        return self.numpy().tolist()

    def item(self) -> Any:
        """Read the only element back as a Python number.

        Raises
        ------
        ArgumentError
            If there are several elements, or none.
        ReleasedArrayError, DeviceReleasedError
            As `numpy`.

        Examples
        --------
        >>> import dmlgpu
        >>> dmlgpu.cumulative_sum(dmlgpu.asarray([3, 1, 2]))[-1].item()
        6
        """
        if self.size != 1:
            raise ArgumentError(f"the array has {self.size} elements, and item() takes one: index the array first")
        return self.numpy().item()

    def to_device(self, device: Device | str | int, /, *, stream: None = None) -> DeviceArray:
        """Return the elements on a device: this array if they are there, else a copy through the host.

        Parameters
        ----------
        device : Device, str or int
            As for `asarray`.
        stream : None
            There are no streams; the argument is the array API's.

        Raises
        ------
        ArrayTypeError
            If an argument has another type.
        NoAdapterError, AdapterNotFoundError
            If there is no such device.

        Examples
        --------
        >>> import dmlgpu
        >>> x = dmlgpu.asarray([1.5])
        >>> x.to_device(x.device) is x
        True
        """
        if stream is not None:
            raise ArrayTypeError(f"stream is {with_type(stream)}; devices here have no streams: leave it out")
        if device is None:
            raise ArrayTypeError(
                "device is None; give a dmlgpu.Device, a wgpu.GPUDevice, an adapter's index, or a part of its summary"
            )
        return asarray(self, device)

    async def numpy_async(self) -> NDArray[Any]:
        """Read the elements back as `numpy` does, leaving the event loop free meanwhile.

        What is read is decided when the coroutine starts to run; neither change nor release the array until it ends.

        Raises
        ------
        ReleasedArrayError, DeviceReleasedError, HostMemoryError
            As `numpy`.
        EventLoopError
            If no event loop runs.

        Examples
        --------
        >>> import asyncio, dmlgpu
        >>> asyncio.run(dmlgpu.asarray([3, 1, 2]).numpy_async())
        array([3, 1, 2])
        """
        return await download_async(self._tensor)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is not None and not flag(copy, "copy"):
            raise ArgumentError(
                "copy is False, which asks for a NumPy array that shares the device's memory, as none can: leave it out"
            )
        host = self.numpy()
        if dtype is None:
            return host
        try:
            return host.astype(dtype, copy=False)
        except Exception as error:
            raise ArrayTypeError(
                f"dtype is {with_type(dtype)}, to which NumPy does not convert {self.dtype} ({said(error)}): convert "
                "what .numpy() returns"
            ) from error

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        # Without this NumPy's operators would read the array back, unasked.
        return call_numpy_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        return call_numpy_function(func, args, kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # kDLCPU: what __dlpack__ gives

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Read the elements back into new memory of the host, and return it as a DLPack capsule."""
        if stream is not None:
            raise ArrayTypeError(f"stream is {with_type(stream)}; memory of the host has no streams: leave it out")
        if copy is not None and not flag(copy, "copy"):
            raise SharedMemoryError(
                "copy is False, and the device's memory cannot be shared with the host: leave it out"
            )
        if max_version is not None:
            max_version = _pair(max_version, "max_version", "give a version of DLPack, such as (1, 0)")
            if not all(0 <= number < 2**31 for number in max_version):
                raise ArgumentError(
                    f"max_version is {shown(max_version)}, and versions of DLPack have numbers from 0 to 2147483647: "
                    "give (1, 0), or leave it out"
                )
        if dl_device is not None and _pair(dl_device, "dl_device", "give (1, 0), memory of the host") != (1, 0):
            raise SharedMemoryError(
                f"dl_device is {shown(dl_device)}, and elements are handed over in memory of the host, (1, 0): "
                "leave it out"
            )
        return self.numpy().__dlpack__(max_version=max_version)

    def __len__(self) -> int:
        if self.ndim == 0:
            raise ArrayTypeError("an array of 0 dimensions has no len(): its size is 1")
        return self.shape[0]

    def __iter__(self) -> Iterator[DeviceArray]:
        if self.ndim == 0:
            raise ArrayTypeError("an array of 0 dimensions cannot be iterated over: use reshape(1)")
        return (self[i] for i in range(len(self)))

    if not TYPE_CHECKING:  # with it, type checkers would know every name

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_") or not hasattr(np.ndarray, name):
                raise AttributeError(f"'DeviceArray' object has no attribute {name!r}", name=name, obj=self)
            raise AttributeError(f"a DeviceArray has no {name}: {_INSTEAD.get(name, READ_BACK)}")

    __eq__ = _no_comparison("==")
    __ne__ = _no_comparison("!=")
    __lt__ = _no_comparison("<")
    __le__ = _no_comparison("<=")
    __gt__ = _no_comparison(">")
    __ge__ = _no_comparison(">=")
    __contains__ = _refusal("is not searched with `in`", f"{READ_BACK}; any(y is x for y in ...) looks for an array")
    __hash__ = _refusal("has no hash, as its elements can change", "use id(array) as a key")
    __bool__ = _refusal("has no truth value", "test .size, or the NumPy array that .numpy() returns")
    __int__ = __float__ = __complex__ = __index__ = _refusal("is no number", "read one back with .item()")
    __round__ = _refusal("has no __round__", "use dmlgpu.round")
    __setitem__ = _refusal("has no assignment to elements", "write through out= of a function, such as dmlgpu.round")
    __delitem__ = _refusal("has a fixed shape", "leave elements out with a slice")

    def __format__(self, spec: str) -> str:
        if spec:
            raise ArrayTypeError(f"a DeviceArray has no format {shown(spec)}: {READ_BACK}")
        return repr(self)

    __reduce_ex__ = _refusal("cannot be pickled or sent to another process", "send .numpy() instead")
    __add__ = __radd__ = _no_operator("+")
    __sub__ = __rsub__ = _no_operator("-")
    __mul__ = __rmul__ = _no_operator("*")
    __matmul__ = __rmatmul__ = _no_operator("@")
    __truediv__ = __rtruediv__ = _no_operator("/")
    __floordiv__ = __rfloordiv__ = _no_operator("//")
    __mod__ = __rmod__ = _no_operator("%")
    __divmod__ = __rdivmod__ = _no_operator("divmod()")
    __pow__ = __rpow__ = _no_operator("**")
    __lshift__ = __rlshift__ = _no_operator("<<")
    __rshift__ = __rrshift__ = _no_operator(">>")
    __and__ = __rand__ = _no_operator("&")
    __or__ = __ror__ = _no_operator("|")
    __xor__ = __rxor__ = _no_operator("^")
    __neg__ = _no_operator("-")
    __pos__ = _no_operator("+")
    __abs__ = _no_operator("abs()")
    __invert__ = _no_operator("~")

    def __repr__(self) -> str:
        about = f"shape={self.shape}, dtype={self.dtype}, device={self.device.label}"
        if self.released:
            return f"DeviceArray({about}, released)"
        try:
            values = self._some_values()
        except DmlGpuError:  # of a device that was lost or released: a repr never fails
            return f"DeviceArray({about})"
        return f"DeviceArray({values}, {about})"

    def _some_values(self) -> str:
        """Read a few elements and write them: all of a small array, else the first and the last in C order."""
        if self.size <= 2 * _SHOWN:
            return _written(self.numpy(), ", ").replace("\n", "")
        numbers = [*range(_SHOWN), *range(self.size - _SHOWN, self.size)]
        with self.device.section:
            some = [self[tuple(map(int, np.unravel_index(i, self.shape)))].numpy() for i in numbers]
        # Separated by what no formatter of NumPy's print options writes.
        texts = [text.strip() for text in _written(np.array(some), "\0")[1:-1].split("\0")]
        return f"[{', '.join(texts[:_SHOWN])}, ..., {', '.join(texts[_SHOWN:])}]"


def _written(x: NDArray[Any], separator: str) -> str:
    """Write all elements of a few, however short NumPy's print options want arrays and lines to be."""
    return np.array2string(x, separator=separator, threshold=sys.maxsize, max_line_width=sys.maxsize)


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
        If `x` has too many dimensions or elements, or NumPy makes no array of it.
    ReleasedArrayError
        If `x` is a DeviceArray whose memory was released.
    DeviceMemoryError, HostMemoryError
        If `x` is larger than the device, or this process, has room for.

    Examples
    --------
    >>> import numpy as np, dmlgpu
    >>> x = dmlgpu.asarray(np.array([1.5, 2.5], dtype=np.float32))
    >>> dmlgpu.round(dmlgpu.cumulative_sum(x)).numpy()
    array([2., 4.], dtype=float32)
    """
    if isinstance(x, DeviceArray):
        if device is None or resolve_device(device) is x.device:
            x._tensor.check_live()
            x.device.check()
            return x
        return DeviceArray(upload(resolve_device(device), x.numpy()))
    array = host_array(x)
    check_sizes(array.shape)
    return DeviceArray(upload(resolve_device(device), array))


def _pair(value: object, argument: str, way_out: str) -> tuple[int, int]:
    """Return a tuple of two integers, such as a version of DLPack."""
    match value:
        case (SupportsIndex() as first, SupportsIndex() as second) if not isinstance(value, str | bytes):
            return integer(first, argument, way_out), integer(second, argument, way_out)
    raise ArrayTypeError(f"{argument} is {with_type(value)}; {way_out}")


def _one_tuple(arguments: tuple[Any, ...], name: str) -> tuple[int, ...]:
    """Let ``f((2, 3))`` and ``f(2, 3)`` mean the same."""
    return integers(arguments[0] if len(arguments) == 1 else arguments, name)
