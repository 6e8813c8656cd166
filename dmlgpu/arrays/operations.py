"""What the functions of the NumPy face share: arguments checked, data brought together, problems run."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..arguments import choice, flag, integer
from ..dtypes import BOOL, ElementType, by_argument, by_dtype, result_type
from ..errors import ArgumentError, ArrayTypeError, AxisError, DeviceMemoryError
from ..layout import Layout, check_sizes, resolve_axis
from ..planning.problem import Operator, Precision, RoundingMode, check_precision, round_problem, scan_problem
from .array import DeviceArray
from .host import host_array, host_empty
from .tensors import Tensor, apart, assign, empty, resolve, run, upload

if TYPE_CHECKING:
    from ..runtime.device import Device

__all__ = ["round_array", "scan_array"]

_MODES = {
    "half_even": RoundingMode.HALF_EVEN,
    "toward_zero": RoundingMode.TOWARD_ZERO,
    "half_away": RoundingMode.HALF_AWAY,
}

_PRECISIONS = {precision.value: precision for precision in Precision}

_MAX_APART_BYTES = 2**30
"""Scans of more bytes from the host are done in place, which takes up to four times as long, but half the memory."""

_scan_problem = lru_cache(maxsize=256)(scan_problem)
"""Small calls are often alike, and a problem depends on nothing but its arguments."""


def scan_array(
    operator: Operator,
    x: ArrayLike | DeviceArray,
    *,
    axis: SupportsIndex | None,
    dtype: DTypeLike | None,
    include_initial: bool,
    exclusive: bool,
    reverse: bool,
    out: NDArray[Any] | DeviceArray | None,
    device: Device | str | int | None,
    precision: str = Precision.DEFAULT.value,
) -> NDArray[Any] | DeviceArray:
    """Do what `dmlgpu.cumulative_sum` says, for either operator."""
    wanted = choice(precision, "precision", _PRECISIONS)
    include_initial = flag(include_initial, "include_initial")
    exclusive = flag(exclusive, "exclusive")
    reverse = flag(reverse, "reverse")
    array = _checked(x)
    along = _scan_axis(axis, array.ndim)
    if include_initial and exclusive:
        raise ArgumentError(
            "include_initial and exclusive both put the identity first: give one; include_initial keeps the total, "
            "exclusive the length"
        )
    element = _scan_element(by_dtype(array.dtype), dtype, out)
    check_precision(wanted, operator, element)
    sizes = list(array.shape)
    sizes[along] += 1 if include_initial else 0

    def operate(source: Tensor, target: Tensor) -> None:
        body = target
        if include_initial:
            identity, body = _split(target, along, reverse)
        if body.layout.count:
            with apart(source, body) as readable:
                if readable.element is not element:
                    assign(readable, body)
                    readable = body
                problem = _scan_problem(
                    element,
                    operator,
                    readable.layout,
                    body.layout,
                    axis=along,
                    exclusive=exclusive,
                    reverse=reverse,
                    precision=wanted,
                )
                run(problem, readable, body)
        if include_initial and identity.layout.count:
            _fill(identity, operator.identity)

    return _execute(array, operate, element, tuple(sizes), out, device, in_place=False)


def round_array(
    x: ArrayLike | DeviceArray,
    *,
    mode: str,
    out: NDArray[Any] | DeviceArray | None,
    device: Device | str | int | None,
) -> NDArray[Any] | DeviceArray:
    """Do what `dmlgpu.round` says."""
    rounding = choice(mode, "mode", _MODES)
    array = _checked(x)
    element = by_dtype(array.dtype)
    if element == BOOL:
        raise ArrayTypeError(
            "x has dtype bool, which has nothing to round: convert it with astype, or leave it as it is"
        )

    def operate(source: Tensor, target: Tensor) -> None:
        with apart(source, target) as readable:
            if element.kind == "float":
                run(round_problem(element, rounding, readable.layout, target.layout), readable, target)
            elif readable.buffer is not target.buffer or not readable.layout.same_places(target.layout):
                assign(readable, target)

    if element.kind != "float" and isinstance(array, np.ndarray):  # only a copy: no reason to visit a device
        _check_device(device)
        result = host_empty(array.shape, element) if out is None else _host_out(out, element, array.shape)
        np.copyto(result, array)
        return result if out is None else out
    return _execute(array, operate, element, array.shape, out, device, in_place=True)


def _checked(x: ArrayLike | DeviceArray) -> NDArray[Any] | DeviceArray:
    array = x if isinstance(x, DeviceArray) else host_array(x)
    check_sizes(array.shape)
    return array


def _scan_axis(axis: SupportsIndex | None, rank: int) -> int:
    """Return the axis counted from the start."""
    if axis is None:
        if rank != 1:
            raise AxisError(None, rank)
        return 0
    return resolve_axis(integer(axis, "axis"), rank)


def _scan_element(source: ElementType, dtype: DTypeLike | None, out: NDArray[Any] | DeviceArray | None) -> ElementType:
    """Return the element type of the result: that of `dtype`, else of `out`, else what `source` is promoted to."""
    if dtype is None:
        if not isinstance(out, np.ndarray | DeviceArray):
            return result_type(source)
        element = by_dtype(out.dtype, "out")
        if element == BOOL:
            raise ArrayTypeError("out has dtype bool, which has no sums and products: give an out of another dtype")
        return element
    element = by_argument(dtype)
    if element == BOOL:
        raise ArrayTypeError("dtype is bool, which has no sums and products: leave it out to get int64")
    return element


def _split(target: Tensor, axis: int, reverse: bool) -> tuple[Tensor, Tensor]:
    """Return the places of the initial identity, and those of what follows it in traversal order."""
    last = target.layout.sizes[axis] - 1
    edge, rest = (slice(last, None), slice(0, last)) if reverse else (slice(0, 1), slice(1, None))
    before = (slice(None),) * axis
    return (
        Tensor(target.buffer, target.element, target.layout.take((*before, edge))),
        Tensor(target.buffer, target.element, target.layout.take((*before, rest))),
    )


def _fill(target: Tensor, value: int) -> None:
    """Write one value everywhere: a copy from one element that is repeated by strides of 0."""
    one = upload(target.device, np.full(1, value, target.element.dtype), temporary=True)
    sizes = target.layout.sizes
    try:
        assign(Tensor(one.buffer, one.element, Layout(sizes, (0,) * len(sizes))), target)
    finally:
        one.buffer.release()


def _execute(
    array: NDArray[Any] | DeviceArray,
    operate: Callable[[Tensor, Tensor], None],
    element: ElementType,
    sizes: tuple[int, ...],
    out: NDArray[Any] | DeviceArray | None,
    device: Device | str | int | None,
    *,
    in_place: bool,
) -> NDArray[Any] | DeviceArray:
    """Let `operate` work on a device and return the result as `array` came.

    `operate` gets the input and the output, which has at least one element and may overlap the input. Data of the host
    is worked on in place where that can be, if `in_place`, and else only where memory is short.
    """
    check_sizes(sizes, "the result")
    if isinstance(array, DeviceArray):
        home = _home(array, device)
        with home.section:
            array._tensor.check_live()
            result = DeviceArray(empty(home, element, sizes)) if out is None else _device_out(out, home, element, sizes)
            if result.size:
                operate(array._tensor, result._tensor)
        return result

    host = None if out is None else _host_out(out, element, sizes)
    if math.prod(sizes) == 0:
        _check_device(device)
        return host_empty(sizes, element) if out is None else out
    where = resolve(device)
    with where.batch():
        source = target = upload(where, array, temporary=True)
        try:
            possible = source.element is element and array.shape == sizes and source.layout.is_packed
            if not possible:
                target = empty(where, element, sizes, temporary=True)
            elif not in_place and source.buffer.nbytes <= _MAX_APART_BYTES:
                with suppress(DeviceMemoryError):
                    target = empty(where, element, sizes, temporary=True)
            operate(source, target)
            if host is None:
                host = host_empty(sizes, element)
            where.download(target.buffer, 0, host)  # the target is packed
        finally:
            target.buffer.release()
            source.buffer.release()
    return host if out is None else out


def _home(x: DeviceArray, device: Device | str | int | None) -> Device:
    """Return the device of `x`, which must be the one asked for."""
    if device is not None and resolve(device) is not x.device:
        raise ArgumentError(
            f"x is on the device {x.device.summary!r} while device= names {resolve(device).summary!r}: leave device= "
            "away, or move x with asarray(x, device)"
        )
    return x.device


def _check_device(device: Device | str | int | None) -> None:
    """Raise an error for a wrong device where none is needed. The default one need not even be there."""
    if device is not None:
        resolve(device)


def _device_out(
    out: NDArray[Any] | DeviceArray, home: Device, element: ElementType, sizes: tuple[int, ...]
) -> DeviceArray:
    if not isinstance(out, DeviceArray):
        raise ArrayTypeError(
            f"out is of type {type(out).__name__} while x is a DeviceArray: give a DeviceArray, or x.numpy() as x"
        )
    if out.device is not home:
        raise ArgumentError(
            f"out is on the device {out.device.summary!r} while x is on {home.summary!r}: give an out on the device of "
            "x"
        )
    _check_places(out, element, sizes)
    out._tensor.check_live()
    return out


def _host_out(out: NDArray[Any] | DeviceArray, element: ElementType, sizes: tuple[int, ...]) -> NDArray[Any]:
    """Return `out` as a plain array: a subclass may reshape and index in another way, as numpy.matrix does."""
    if not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray):
        raise ArrayTypeError(
            f"out is of type {type(out).__name__} while x is no DeviceArray: give a plain numpy.ndarray, or asarray(x) "
            "as x"
        )
    plain = np.asarray(out)
    _check_places(plain, element, sizes)
    if not plain.flags.writeable:
        raise ArgumentError("out is read-only: give an array that can be written, such as out.copy()")
    return plain


def _check_places(out: NDArray[Any] | DeviceArray, element: ElementType, sizes: tuple[int, ...]) -> None:
    """Raise an error if `out` has no place of its own for every element of the result."""
    if out.dtype != element.dtype:
        raise ArrayTypeError(
            f"out has dtype {out.dtype} while the result has {element}: give an out of {element}, in native byte order"
        )
    if out.shape != sizes:
        raise ArgumentError(f"out has shape {out.shape} while the result has {sizes}: give an out of that shape")
    # In bytes, so that strides of an ndarray which are no multiple of the element size count too.
    if out.size and not Layout((*out.shape, out.itemsize), (*out.strides, 1)).is_disjoint:
        raise ArgumentError(
            f"out has shape {out.shape} and strides of {out.strides} bytes, with which elements share memory; give "
            "every element of an output its own place"
        )
