"""The NumPy face a second time, in NumPy alone: what it takes, what it refuses, and what it returns.

Written from the documentation, not from the package; it checks everything first and does the obvious thing then.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

import dmlgpu
from dmlgpu import reference
from dmlgpu.runtime.adapters import select_adapter

NUMBERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)] + ["float16", "float32", "float64"]
LARGEST = 1 << 20
"""Elements of the largest array that a program may compute, so that none takes long."""


class RefusedError(Exception):
    """The package raises an error of its own."""


class TooLargeError(Exception):
    """The package would compute too long."""


class CalledWronglyError(Exception):
    """Python finds no such parameter, or misses one."""


def refusing(call: Callable[..., Any]) -> Callable[..., Any]:
    """Make every error a refusal: the arguments are at fault."""
    signature = inspect.signature(call)

    @functools.wraps(call)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise CalledWronglyError from error
        try:
            return call(*args, **kwargs)
        except (RefusedError, TooLargeError):
            raise
        except Exception as error:
            raise RefusedError from error

    return called


def check(condition: object) -> None:
    if not condition:
        raise RefusedError


def flag(value: Any) -> bool:
    check(type(value) in (bool, np.bool_))
    return bool(value)


def integer(value: Any) -> int:
    check(type(value) not in (bool, np.bool_))
    return operator.index(value)


def integers(value: Any) -> tuple[int, ...]:
    if isinstance(value, np.ndarray) and value.ndim == 1:
        check(value.dtype.kind in "iu")
        return tuple(value.tolist())
    if isinstance(value, str | bytes | bytearray):
        raise RefusedError
    if isinstance(value, Sequence):
        return tuple(integer(item) for item in value)
    return (integer(value),)


def element(dtype: Any, *, boolean: bool = False) -> np.dtype[Any]:
    check(dtype is not None)
    found = np.dtype(dtype)
    check(found.kind in "biuf" and found.name in [*NUMBERS, *(["bool"] if boolean else [])])
    return np.dtype(found.name)


def check_shape(shape: Sequence[int]) -> None:
    check(len(shape) <= 8)
    whole = 1
    for size in shape:
        check(size >= 0)
        whole *= size or 1
    check(whole < 2**32)
    if 0 not in shape and whole > LARGEST:
        raise TooLargeError


class Memory:
    """What the views of an array share."""

    released = False


class Array:
    """A DeviceArray."""

    def __init__(self, data: np.ndarray[Any, Any], memory: Memory | None = None) -> None:
        self.data = data
        self.memory = Memory() if memory is None else memory

    shape = property(lambda self: self.data.shape)
    dtype = property(lambda self: self.data.dtype)
    ndim = property(lambda self: self.data.ndim)
    size = property(lambda self: self.data.size)
    itemsize = property(lambda self: self.data.itemsize)
    nbytes = property(lambda self: self.data.nbytes)
    released = property(lambda self: self.memory.released)
    T = property(lambda self: self.transpose())

    def release(self) -> None:
        self.memory.released = True

    def __enter__(self) -> Array:
        check(not self.released)
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def view(self, data: np.ndarray[Any, Any]) -> Array:
        check(not self.released)
        check(data.ndim <= 8)
        check(np.prod([size or 1 for size in data.shape], dtype=object) < 2**32)
        return Array(data, self.memory)

    @refusing
    def transpose(self, *axes: Any) -> Array:
        if not axes or (len(axes) == 1 and axes[0] is None):
            return self.view(self.data.transpose())
        return self.view(self.data.transpose(integers(axes[0] if len(axes) == 1 else axes)))

    @refusing
    def reshape(self, *shape: Any) -> Array:
        sizes = integers(shape[0] if len(shape) == 1 else shape)
        check(min(sizes, default=0) >= -1)
        check(np.prod([size or 1 for size in sizes], dtype=object) < 2**32)
        if self.size > LARGEST:
            raise TooLargeError
        result = self.data.reshape(sizes)
        shares = self.size == 0 or np.may_share_memory(result, self.data)
        return self.view(result) if shares else Array(self.view(result).data)

    @refusing
    def broadcast_to(self, shape: Any) -> Array:
        sizes = integers(shape)
        check(np.prod([size or 1 for size in sizes], dtype=object) < 2**32)
        strides = np.broadcast_to(self.data, sizes).strides
        return self.view(as_strided(self.data, sizes, strides))

    @refusing
    def __getitem__(self, key: Any) -> Array:
        items = []
        for item in key if isinstance(key, tuple) else (key,):
            if item is None or item is ...:
                items.append(item)
            elif isinstance(item, slice):
                items.append(slice(*(p if p is None else integer(p) for p in (item.start, item.stop, item.step))))
            else:
                items.append(integer(item))
        return self.view(self.data[(*items, *(() if ... in items else (...,)))])

    @refusing
    def astype(self, dtype: Any, *, copy: Any = True) -> Array:
        target = element(dtype, boolean=True)
        check(target != np.bool_ or self.dtype == np.bool_)
        check(not self.released)
        if not flag(copy) and target == self.dtype:
            return self
        check_shape(self.shape)
        return Array(convert(self.data, target))

    @refusing
    def copy(self) -> Array:
        return self.astype(self.dtype)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> Array:
        return self.copy()

    @refusing
    def numpy(self) -> np.ndarray[Any, Any]:
        check(not self.released)
        check_shape(self.shape)
        return self.data.copy(order="C")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        check(copy is None or flag(copy))
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __len__(self) -> int:
        check(self.ndim)
        return len(self.data)

    def __iter__(self) -> Any:
        check(self.ndim)
        return (self[i] for i in range(len(self)))

    def refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise RefusedError

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = __bool__ = __contains__ = refuse
    __add__ = __radd__ = __sub__ = __mul__ = __rmul__ = __neg__ = __abs__ = __matmul__ = refuse
    __int__ = __float__ = __index__ = __setitem__ = __round__ = __array_ufunc__ = __reduce_ex__ = refuse


def convert(x: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    native = x.astype(x.dtype.newbyteorder("="))
    return native.copy() if native.dtype == dtype else reference.convert(native, dtype)


def host(x: Any) -> np.ndarray[Any, Any]:
    """Return array-like data, or refuse it."""
    for part in (x, *(x if isinstance(x, list) and x and isinstance(x[0], np.ndarray) else ())):
        check(not (isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part)))
    array = np.asarray(x)
    element(array.dtype, boolean=True)
    check_shape(array.shape)
    return array


def is_disjoint(x: np.ndarray[Any, Any]) -> bool:
    """Whether no two elements share memory."""
    places = np.zeros(x.shape, np.int64)
    for axis, stride in enumerate(x.strides):
        places += (np.arange(x.shape[axis]) * stride).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    return bool((np.diff(np.sort(places.ravel())) >= x.itemsize).all())


@dataclass(eq=False)
class Bytes:
    """A caller's wgpu buffer."""

    data: bytearray


def contents() -> bytearray:
    """Return bytes that make ordinary numbers of every type."""
    return bytearray(0x40 + i % 3 for i in range(64))


class Face:
    """The public functions.

    Parameters
    ----------
    device : Device
        What stands for the device of all arrays.
    """

    def __init__(self, device: dmlgpu.Device) -> None:
        self.device = device
        self.buffers: dict[int, tuple[Bytes, Memory]] = {}

    def buffer(self, i: int) -> Bytes:
        """Return a caller's buffer."""
        return self.buffers.setdefault(i, (Bytes(contents()), Memory()))[0]

    @refusing
    def from_wgpu(self, buffer, shape, dtype, *, strides=None, offset=0, device=None):
        check(isinstance(buffer, Bytes))
        self.check_device(device)
        target = element(dtype, boolean=True)
        check(np.dtype(dtype).isnative)
        sizes = integers(shape)
        check(min(sizes, default=0) >= 0)
        check_shape(sizes)
        packed = tuple(target.itemsize * math.prod(sizes[i + 1 :]) for i in range(len(sizes)))
        steps = packed if strides is None else integers(strides)
        start = integer(offset)
        check(len(steps) == len(sizes) and not any(byte % target.itemsize for byte in (*steps, start)))
        check(0 <= start <= len(buffer.data))
        i = next(i for i, (known, _) in self.buffers.items() if known is buffer)
        if self.buffers[i][1].released:
            self.buffers[i] = (buffer, Memory())
        if 0 in sizes:
            return Array(np.empty(sizes, target), self.buffers[i][1])
        return Array(np.ndarray(sizes, target, buffer.data, start, steps), self.buffers[i][1])

    def check_device(self, device: Any) -> None:
        if device is None or device is self.device:
            return
        index = integer(select_adapter("").index if isinstance(device, str) and device == "" else device)
        if index != self.device.description.index and 0 <= index < len(dmlgpu.devices()):
            raise TooLargeError  # it would open another device
        check(index == self.device.description.index)

    @refusing
    def asarray(self, x: Any, device: Any = None) -> Array:
        self.check_device(device)
        if isinstance(x, Array):
            check(not x.released)
            return x
        array = host(x)
        return Array(array.astype(array.dtype.newbyteorder("="), order="C").copy())

    def input(self, x: Any, device: Any) -> np.ndarray[Any, Any]:
        self.check_device(device)
        if isinstance(x, Array):
            check(not x.released)
            check_shape(x.shape)
            return x.data
        return host(x)

    def output(self, x: Any, out: Any, result: np.ndarray[Any, Any]) -> Any:
        """Return the result as `x` came, or write it to `out`."""
        if out is None:
            return Array(result) if isinstance(x, Array) else result
        check(isinstance(out, Array if isinstance(x, Array) else np.ndarray))
        check(not isinstance(out, np.ma.MaskedArray))
        place = out.data if isinstance(out, Array) else np.asarray(out)
        check(place.dtype == result.dtype and place.shape == result.shape and is_disjoint(place))
        check(not out.released if isinstance(out, Array) else place.flags.writeable)
        place[...] = result
        return out

    @refusing
    def cumulative_sum(
        self, x, /, *, axis=None, dtype=None, include_initial=False, exclusive=False, reverse=False, out=None,
        device=None, precision="default", monotone=False,
    ):  # fmt: skip
        check(isinstance(precision, str) and precision in ("default", "compensated"))
        sums = {"compensated": bool(precision == "compensated"), "monotone": flag(monotone)}
        return self.scan("sum", x, axis, dtype, include_initial, exclusive, reverse, out, device, **sums)

    @refusing
    def cumulative_prod(
        self, x, /, *, axis=None, dtype=None, include_initial=False, exclusive=False, reverse=False, out=None,
        device=None,
    ):  # fmt: skip
        return self.scan("product", x, axis, dtype, include_initial, exclusive, reverse, out, device)

    def scan(self, kind, x, axis, dtype, include_initial, exclusive, reverse, out, device, **sums):
        initial, exclusive, reverse = flag(include_initial), flag(exclusive), flag(reverse)
        check(not (initial and exclusive))
        data = self.input(x, device)
        check(data.ndim > 0 and (axis is not None or data.ndim == 1))
        along = 0 if axis is None else integer(axis)
        check(-data.ndim <= along < data.ndim)
        along %= data.ndim
        if dtype is not None:
            target = element(dtype)
        elif isinstance(out, np.ndarray | Array):
            target = element(out.dtype)
        else:
            target = np.dtype({"b": "int64", "i": "int64", "u": "uint64"}.get(data.dtype.kind, data.dtype.name))
        check(not sums.get("compensated") or target == np.float32)
        sizes = [size + (initial and i == along) for i, size in enumerate(data.shape)]
        check_shape(sizes)
        result = np.full(sizes, reference.identity(kind, target), target)
        if data.size:
            order = {"axis": along, "exclusive": exclusive, "reverse": reverse}
            scanned = reference.cumulative(convert(data, target), kind, **order, **sums)
            first = 0 if reverse else int(initial)
            result[(slice(None),) * along + (slice(first, first + data.shape[along]),)] = scanned
        return self.output(x, out, result)

    @refusing
    def round(self, x: Any, /, *, mode: Any = "half_even", out: Any = None, device: Any = None) -> Any:
        check(isinstance(mode, str) and mode in ("half_even", "toward_zero", "half_away"))
        data = self.input(x, device)
        check(data.dtype != np.bool_)
        native = convert(data, np.dtype(data.dtype.name))
        return self.output(x, out, reference.round(native, str(mode)) if native.dtype.kind == "f" else native)
