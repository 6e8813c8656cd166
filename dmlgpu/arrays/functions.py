"""The NumPy face: cumulative sums, cumulative products and rounding, in the array API's terms."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, SupportsIndex, cast, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..arguments import choice, flag, integer, one_positional
from ..dtypes import BOOL, ElementType, by_argument, by_dtype, by_out, result_type
from ..errors import ArgumentError, ArrayTypeError, AxisError, DeviceMemoryError, with_type
from ..layout import Layout, check_sizes, resolve_axis
from ..lazy import resolve_device
from ..planning.problem import (
    MODES,
    Operator,
    Precision,
    ScanOptions,
    check_precision,
    round_problem,
    scan_problem,
)
from .array import DeviceArray
from .blocks import blocks
from .host import host_array, host_empty
from .tensors import Tensor, assign, copied_if_overlapping, empty, run, upload

if TYPE_CHECKING:
    from ..runtime.device import Device

__all__ = ["cumulative_prod", "cumulative_sum", "kept_problem", "round", "scan_dtype", "scan_element"]

PrecisionName = Literal["default", "compensated"]
ModeName = Literal["half_even", "toward_zero", "half_away"]

_MAX_APART_BYTES = 2**30
"""Scans of more bytes from the host that are not cut run in place, which takes up to four times as long but half the
memory."""

_MAX_BLOCKS = 4
"""Data of the host that is larger than so many blocks is on the device a block after the other: so is other data for
which the device has no room."""

# DeviceArray has __array__ and is array-like too; the first overload that fits is the one that counts.


@overload
def cumulative_sum(
    x: DeviceArray,
    /,
    *,
    axis: SupportsIndex | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
    exclusive: bool = False,
    reverse: bool = False,
    out: DeviceArray | None = None,
    device: Device | str | int | None = None,
    encoder: Any = None,
    precision: PrecisionName = "default",
    monotone: bool = False,
) -> DeviceArray: ...


@overload
def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: SupportsIndex | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
    exclusive: bool = False,
    reverse: bool = False,
    out: NDArray[Any] | None = None,
    device: Device | str | int | None = None,
    precision: PrecisionName = "default",
    monotone: bool = False,
) -> NDArray[Any]: ...


@one_positional("axis=1")
def cumulative_sum(
    x: ArrayLike | DeviceArray,
    /,
    *,
    axis: SupportsIndex | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
    exclusive: bool = False,
    reverse: bool = False,
    out: NDArray[Any] | DeviceArray | None = None,
    device: Device | str | int | None = None,
    encoder: Any = None,
    precision: PrecisionName = "default",
    monotone: bool = False,
) -> NDArray[Any] | DeviceArray:
    """Return the cumulative sum of the elements along an axis.

    Floating-point sums are taken in a fixed order: the bits of a slice's result depend on that slice's elements and
    the direction only, not on the device, the batch, the axis or the strides. float16 is summed in float32 and
    rounded once. Integers wrap.

    Parameters
    ----------
    x : array_like or DeviceArray
        Of 1 to 8 dimensions and at most 2**32 - 1 elements; bool, integers of 8 to 64 bits, float16, float32 or
        float64, in any byte order and with any strides. It may be empty. Masked arrays are taken only without masked
        elements. A dask array gives a dask array of the same chunks, with the bits of one call on the whole.
    axis : int, optional
        The axis to sum along, counted from the end if negative. It may be left out where `x` has 1 dimension.
    dtype : dtype, optional
        The type of the result, to which `x` is converted first, as `DeviceArray.astype` does. By default that of `out`;
        without one int64 for bool and signed integers, uint64 for unsigned integers, and the type of `x` for
        floating-point numbers.
    include_initial : bool, default False
        Whether to put the identity, 0, before the first element in traversal order, which makes the axis longer by
        one. Not together with `exclusive`.
    exclusive : bool, default False
        Whether to leave each element out of its own sum. The first in traversal order is then 0.
    reverse : bool, default False
        Whether to sum from the highest index to the lowest.
    out : ndarray or DeviceArray, optional
        Where to put the result: of the same kind as `x`, with the result's shape and dtype. Without `dtype`, elements
        are converted to the dtype of `out` before they are combined: floats lose their fractions where it is one of
        integers, while NumPy cuts sums. Any strides will do with which, in order of their size, each dimension steps
        over all that the finer ones reach; what lies between the elements is left as it is. It may overlap `x`.
    device : Device, str, int or None
        An open device, or which adapter to open: part of its summary, or its index. None is the device of `x`, or
        the default device.
    encoder : wgpu.GPUCommandEncoder or wgpu.GPUComputePassEncoder, optional
        Only for a DeviceArray `x`: where to record the work, instead of running it. The encoder, or the open pass of
        one, is of the device of `x`. The result is there when the caller has submitted the commands; see
        docs/runtime.md.
    precision : {"default", "compensated"}
        Only for results of float32: "compensated" carries what rounding cuts off along, in pairs of float32 with 48
        bits. Results are then within 2 units in the last place of the exact sums unless these cancel to less than
        2**-14 of the sum of magnitudes, for up to 10**7 elements; the promise of same bits holds too.
    monotone : bool, default False
        Whether each result is the largest sum so far, in the direction of the scan. So results never decrease; those of
        elements that are not negative change only where rounding made a sum smaller than one before it. -0 counts as
        smaller than 0, and NaN as larger than every number: it stays. With `exclusive` or `include_initial`, 0 comes
        before these results, also where they are negative.

    Returns
    -------
    ndarray or DeviceArray
        `out` if given. Otherwise a new C-ordered array: an ndarray for array_like `x`, and for a DeviceArray a
        DeviceArray on the same device, with no transfer.

    Raises
    ------
    AxisError
        If `axis` is out of range, or left out where `x` has not 1 dimension.
    ArrayTypeError
        If an argument has a type that does not fit: flags are ``bool`` or ``numpy.bool_``, nothing else.
    ArgumentError
        If an argument has a value that does not fit, or `precision` is not for the type of the result.
    DeviceMemoryError, HostMemoryError
        If an array is larger than the device, or this process, has room for.

    Examples
    --------
    >>> import numpy as np, dmlgpu
    >>> x = np.array([[1, 2, 3], [4, 5, 6]])
    >>> dmlgpu.cumulative_sum(x, axis=1)
    array([[ 1,  3,  6],
           [ 4,  9, 15]])
    >>> dmlgpu.cumulative_sum(x, axis=0, exclusive=True, reverse=True)
    array([[4, 5, 6],
           [0, 0, 0]])
    >>> dmlgpu.cumulative_sum([0.5, 0.25], dtype="float32", include_initial=True)
    array([0.  , 0.5 , 0.75], dtype=float32)
    >>> x = np.array([1e8, 1, 1, -1e8], dtype=np.float32)
    >>> dmlgpu.cumulative_sum(x)[-1], dmlgpu.cumulative_sum(x, precision="compensated")[-1]
    (np.float32(0.0), np.float32(2.0))
    >>> x = np.zeros(49, dtype=np.float32)
    >>> x[[0, 16, 32]] = 1, 2**-23.7, 2**-23.9
    >>> dmlgpu.cumulative_sum(x)[-2:], dmlgpu.cumulative_sum(x, monotone=True)[-2:]
    (array([1.0000002, 1.0000001], dtype=float32), array([1.0000002, 1.0000002], dtype=float32))
    """
    options = ScanOptions.checked(exclusive, reverse, precision, monotone)
    return _scan(_Scan.of(Operator.SUM, options, include_initial), x, axis, dtype, _Where(out, device, encoder))


@overload
def cumulative_prod(
    x: DeviceArray,
    /,
    *,
    axis: SupportsIndex | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
    exclusive: bool = False,
    reverse: bool = False,
    out: DeviceArray | None = None,
    device: Device | str | int | None = None,
    encoder: Any = None,
) -> DeviceArray: ...


@overload
def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: SupportsIndex | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
    exclusive: bool = False,
    reverse: bool = False,
    out: NDArray[Any] | None = None,
    device: Device | str | int | None = None,
) -> NDArray[Any]: ...


@one_positional("axis=1")
def cumulative_prod(
    x: ArrayLike | DeviceArray,
    /,
    *,
    axis: SupportsIndex | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
    exclusive: bool = False,
    reverse: bool = False,
    out: NDArray[Any] | DeviceArray | None = None,
    device: Device | str | int | None = None,
    encoder: Any = None,
) -> NDArray[Any] | DeviceArray:
    """Return the cumulative product of the elements along an axis.

    The order of multiplications is as fixed as that of `cumulative_sum`, with the same promise. float16 is multiplied
    in float32 and rounded once. Integers wrap.

    Parameters
    ----------
    x : array_like or DeviceArray
        As in `cumulative_sum`.
    axis : int, optional
        The axis to multiply along, counted from the end if negative. It may be left out where `x` has 1 dimension.
    dtype : dtype, optional
        The type of the result, to which `x` is converted first, as `DeviceArray.astype` does. By default that of `out`;
        without one int64 for bool and signed integers, uint64 for unsigned integers, and the type of `x` for
        floating-point numbers.
    include_initial : bool, default False
        Whether to put the identity, 1, before the first element in traversal order, which makes the axis longer by
        one. Not together with `exclusive`.
    exclusive : bool, default False
        Whether to leave each element out of its own product. The first in traversal order is then 1.
    reverse : bool, default False
        Whether to multiply from the highest index to the lowest.
    out, device, encoder
        As in `cumulative_sum`.

    Returns
    -------
    ndarray or DeviceArray
        `out` if given. Otherwise a new C-ordered array: an ndarray for array_like `x`, and for a DeviceArray a
        DeviceArray on the same device, with no transfer.

    Raises
    ------
    AxisError, ArrayTypeError, ArgumentError, DeviceMemoryError, HostMemoryError
        As in `cumulative_sum`.

    Examples
    --------
    >>> import numpy as np, dmlgpu
    >>> dmlgpu.cumulative_prod([1, 2, 3, 4])
    array([ 1,  2,  6, 24])
    >>> returns = np.array([0.5, -0.5, 1.0], dtype=np.float32)
    >>> dmlgpu.cumulative_prod(1 + returns, include_initial=True)
    array([1.  , 1.5 , 0.75, 1.5 ], dtype=float32)
    """
    options = ScanOptions.checked(exclusive, reverse)
    return _scan(_Scan.of(Operator.PRODUCT, options, include_initial), x, axis, dtype, _Where(out, device, encoder))


@overload
def round(
    x: DeviceArray,
    /,
    *,
    mode: ModeName = "half_even",
    out: DeviceArray | None = None,
    device: Device | str | int | None = None,
    encoder: Any = None,
) -> DeviceArray: ...


@overload
def round(
    x: ArrayLike,
    /,
    *,
    mode: ModeName = "half_even",
    out: NDArray[Any] | None = None,
    device: Device | str | int | None = None,
) -> NDArray[Any]: ...


@one_positional("mode='half_even'")
def round(
    x: ArrayLike | DeviceArray,
    /,
    *,
    mode: ModeName = "half_even",
    out: NDArray[Any] | DeviceArray | None = None,
    device: Device | str | int | None = None,
    encoder: Any = None,
) -> NDArray[Any] | DeviceArray:
    """Round every element to an integer.

    The same bits everywhere: NaN and infinities stay as they are, and what rounds to zero keeps its sign.

    Parameters
    ----------
    x : array_like or DeviceArray
        Of any shape up to 8 dimensions; float16, float32 or float64, or integers, of which a copy is returned.
        float64 is rounded on every device.
    mode : {"half_even", "toward_zero", "half_away"}
        "half_even" rounds to the nearest integer, halves to the even one (DirectML's HALVES_TO_NEAREST_EVEN);
        "toward_zero" drops the fraction (TOWARD_ZERO); "half_away" rounds to the nearest, halves away from zero
        (TOWARD_INFINITY).
    out, device, encoder
        As in `cumulative_sum`.

    Returns
    -------
    ndarray or DeviceArray
        `out` if given. Otherwise a new C-ordered array with the shape and dtype of `x`: an ndarray for array_like `x`
        (of shape () too, where `numpy.round` gives a scalar), and for a DeviceArray a DeviceArray on the same device.

    Raises
    ------
    ArrayTypeError
        If `x` is of bool, or an argument has a type that does not fit.
    ArgumentError
        If `mode` is none of the three, or another argument has a value that does not fit.
    DeviceMemoryError, HostMemoryError
        If an array is larger than the device, or this process, has room for.

    Examples
    --------
    >>> import dmlgpu
    >>> dmlgpu.round([-2.5, -0.4, 1.5, 2.5])
    array([-2., -0.,  2.,  2.])
    >>> dmlgpu.round([-2.5, -0.4, 1.5, 2.5], mode="half_away")
    array([-3., -0.,  2.,  3.])
    """
    rounding = choice(mode, "mode", MODES)
    _check_encoder(encoder, x)
    if _is_dask(x):
        from .chunked import round_chunks

        later = cast("NDArray[Any]", round_chunks(x, mode, out, device))
        _check_roundable(by_dtype(later.dtype, "x"))
        return later
    array = _checked(x)
    element = by_dtype(array.dtype)
    _check_roundable(element)

    def operate(source: Tensor, target: Tensor) -> None:
        with copied_if_overlapping(source, target) as readable:
            if element.kind == "float":
                run(round_problem(element, rounding, readable.layout, target.layout), readable, target)
            elif readable.buffer is not target.buffer or not readable.layout.same_places(target.layout):
                assign(readable, target)

    result = _Result(element, array.shape, _Where(out, device, encoder))
    if element.kind != "float" and isinstance(array, np.ndarray):  # only a copy: no reason to visit a device
        _check_device(device)
        host = _host_out(result)
        np.copyto(host, array)
        return host if out is None else out
    return _execute(array, _Way(operate), result)


def _check_roundable(element: ElementType) -> None:
    if element == BOOL:
        raise ArrayTypeError(
            "x has dtype bool, which has nothing to round: convert it with astype, or leave it as it is"
        )


class _Where(NamedTuple):
    """Where a call computes, and where its result goes: arguments of a caller, not checked yet."""

    out: NDArray[Any] | DeviceArray | None
    device: Device | str | int | None
    encoder: Any


def _check_encoder(encoder: Any, x: object) -> None:
    """Raise an error for an encoder with data that is not on its device."""
    if encoder is not None and not isinstance(x, DeviceArray):
        raise ArrayTypeError(
            f"encoder records work on arrays of its device while x is {with_type(x)}: give a DeviceArray, made by "
            "from_wgpu or asarray, or leave encoder= away"
        )


class _Scan(NamedTuple):
    """The arguments of a scan that do not depend on its data."""

    operator: Operator
    options: ScanOptions
    include_initial: bool

    @classmethod
    def of(cls, operator: Operator, options: ScanOptions, include_initial: bool) -> _Scan:
        """Return the arguments with the last one of a caller, checked."""
        scan = cls(operator, options, flag(include_initial, "include_initial"))
        if scan.include_initial and options.exclusive:
            raise ArgumentError(
                "include_initial and exclusive both put the identity first: give one; include_initial keeps the total, "
                "exclusive the length"
            )
        return scan


kept_problem = lru_cache(maxsize=256)(scan_problem)
"""Small calls are often alike."""


def _scan(
    scan: _Scan,
    x: ArrayLike | DeviceArray,
    axis: SupportsIndex | None,
    dtype: DTypeLike | None,
    where: _Where,
) -> NDArray[Any] | DeviceArray:
    """Scan as `cumulative_sum` documents, by either operator."""
    _check_encoder(where.encoder, x)
    if _is_dask(x):
        return cast("NDArray[Any]", _scan_dask(scan, x, axis, dtype, where.out, where.device))
    array = _checked(x)
    along = _scan_axis(axis, array.ndim)
    element = scan_element(scan.operator, scan.options.precision, by_dtype(array.dtype), dtype, where.out)
    sizes = list(array.shape)
    sizes[along] += 1 if scan.include_initial else 0

    def operate(source: Tensor, target: Tensor) -> None:
        body = target
        if scan.include_initial:
            identity, body = _split(target, along, scan.options.reverse)
        if body.layout.count:
            with copied_if_overlapping(source, body) as readable:
                if readable.element is not element:
                    assign(readable, body)
                    readable = body
                layouts = readable.layout, body.layout
                run(kept_problem(element, scan.operator, *layouts, along, scan.options), readable, body)
        if scan.include_initial and identity.layout.count:
            _fill(identity, scan.operator.identity)

    def in_pieces(host: NDArray[Any], made: NDArray[Any], device: Device) -> None:
        from .pieces import PieceKind, scan_pieces

        body = made
        if scan.include_initial:
            edge, rest = _edge(made.shape[along], scan.options.reverse)
            before = (slice(None),) * along
            made[(*before, edge)] = scan.operator.identity
            body = made[(*before, rest)]
        others = (*host.shape[:along], 0, *host.shape[along + 1 :])
        kind = PieceKind(scan.operator, scan.options, along, others, by_dtype(host.dtype), element)
        scan_pieces(kind, device, host, body, device.block_bytes)

    way = _Way(operate, along, in_pieces)
    return _execute(array, way, _Result(element, tuple(sizes), where))


def _is_dask(x: object) -> bool:
    """Whether `x` is a dask array, without importing dask."""
    return type(x).__module__.partition(".")[0] == "dask" and hasattr(type(x), "__dask_graph__")


def _scan_dask(scan: _Scan, x: Any, axis: SupportsIndex | None, dtype: DTypeLike | None, out: Any, device: Any) -> Any:
    """Do it for a dask array, later."""
    from .chunked import check_chunks, scan_chunks
    from .pieces import PieceKind

    check_chunks(x, device)
    along = _scan_axis(axis, x.ndim)
    source = by_dtype(x.dtype, "x")
    element = scan_element(scan.operator, scan.options.precision, source, dtype, None)
    sizes = (*x.shape[:along], 0, *x.shape[along + 1 :])
    kind = PieceKind(scan.operator, scan.options, along, sizes, source, element)
    return scan_chunks(x, kind, scan.include_initial, out, device)


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


def scan_element(
    operator: Operator,
    precision: Precision,
    source: ElementType,
    dtype: DTypeLike | None,
    out: NDArray[Any] | DeviceArray | None,
) -> ElementType:
    """Return the element type of the result, which the precision is for: before any data is on its way, or for none."""
    element = _element_of(source, dtype, out)
    check_precision(precision, operator, element)
    return element


def _element_of(source: ElementType, dtype: DTypeLike | None, out: NDArray[Any] | DeviceArray | None) -> ElementType:
    """Return the element type that is asked for: that of `dtype`, else of `out`, else what `source` is promoted to."""
    if dtype is None:
        if not isinstance(out, np.ndarray | DeviceArray):
            return result_type(source)
        element = by_out(out.dtype)
        if element == BOOL:
            raise ArrayTypeError("out has dtype bool, which has no sums and products: give an out of another dtype")
        return element
    return scan_dtype(dtype)


def scan_dtype(dtype: DTypeLike) -> ElementType:
    """Return the element type that the argument `dtype` of a scan names."""
    element = by_argument(dtype, computed=True)
    if element == BOOL:
        raise ArrayTypeError("dtype is bool, which has no sums and products: leave it out to get int64")
    return element


def _split(target: Tensor, axis: int, reverse: bool) -> tuple[Tensor, Tensor]:
    """Return the places of the initial identity, and those of what follows it in traversal order."""
    edge, rest = _edge(target.layout.sizes[axis], reverse)
    before = (slice(None),) * axis
    return (
        Tensor(target.buffer, target.element, target.layout.take((*before, edge))),
        Tensor(target.buffer, target.element, target.layout.take((*before, rest))),
    )


def _edge(length: int, reverse: bool) -> tuple[slice, slice]:
    """Return where the initial identity is along an axis of results, and where the others are."""
    return (slice(length - 1, None), slice(0, length - 1)) if reverse else (slice(0, 1), slice(1, None))


def _fill(target: Tensor, value: int) -> None:
    """Write one value everywhere: a copy from one element that is repeated by strides of 0."""
    one = upload(target.device, np.full(1, value, target.element.dtype), temporary=True)
    sizes = target.layout.sizes
    try:
        assign(Tensor(one.buffer, one.element, Layout(sizes, (0,) * len(sizes))), target)
    finally:
        one.buffer.release()


class _Result(NamedTuple):
    """What a call returns: elements of a type, and where they are computed and put."""

    element: ElementType
    sizes: tuple[int, ...]
    where: _Where


class _Way(NamedTuple):
    """How a call computes its result."""

    operate: Callable[[Tensor, Tensor], None]
    """Gets the input and the output, which has at least one element and may overlap the input."""
    axis: int | None = None
    """The axis along which a result depends on what comes before; None if each is by itself. Such data of the host is
    worked on in place where that can be; other only where memory is short."""
    in_pieces: Callable[[NDArray[Any], NDArray[Any], Device], None] | None = None
    """Computes C-ordered data of the host too large to be on the device at once, a part of the axis after the other."""


def _execute(array: NDArray[Any] | DeviceArray, way: _Way, result: _Result) -> NDArray[Any] | DeviceArray:
    """Compute on a device and return the result as `array` came."""
    check_sizes(result.sizes, "the result")
    if isinstance(array, DeviceArray):
        device = _device_of(array, result.where.device)
        encoder = result.where.encoder
        with device.section if encoder is None else device.recording(encoder):
            array._tensor.check_live()
            made = _device_out(result, device)
            if made.size:
                way.operate(array._tensor, made._tensor)
        return made
    host = None if result.where.out is None else _host_out(result)
    if math.prod(result.sizes):
        host = _on_host_data(array, way, result, host)
    else:
        _check_device(result.where.device)
        host = _host_out(result) if host is None else host
    return host if result.where.out is None else result.where.out


def _on_host_data(array: NDArray[Any], way: _Way, result: _Result, host: NDArray[Any] | None) -> NDArray[Any]:
    """Compute data of the host into `host` or a new array: at once, or a block after the other if it is large."""
    device, element, sizes = resolve_device(result.where.device), result.element, result.sizes
    itemsize = max(array.itemsize, element.itemsize)
    is_apart = host is None or (host.flags.c_contiguous and not np.may_share_memory(array, host))
    nbytes = math.prod(sizes) * itemsize
    can_be_cut = is_apart and array.size > 0 and array.flags.c_contiguous and nbytes > device.block_bytes
    if not can_be_cut or nbytes <= _MAX_BLOCKS * device.block_bytes:
        try:
            return _on_device(device, array, way, element, sizes, host)
        except DeviceMemoryError as error:
            if not can_be_cut and nbytes > device.block_bytes:
                raise _as_a_whole(error, array, host) from error
            if not can_be_cut:
                raise
    if host is None:
        host = host_empty(sizes, element)
    for place in blocks(sizes, way.axis, itemsize, device.block_bytes):
        part, target = array[place], host[place]
        if way.in_pieces is not None and target.size * itemsize > device.block_bytes:
            way.in_pieces(part, target, device)
        else:
            _on_device(device, part, way, element, target.shape, target)
    return host


def _as_a_whole(error: DeviceMemoryError, array: NDArray[Any], host: NDArray[Any] | None) -> DeviceMemoryError:
    """Return an error that says why data of the host was not cut to what the device has room for."""
    found, _, _ = str(error).partition(": ")
    if not array.flags.c_contiguous:
        reason, way_out = f"x has strides of {array.strides} bytes", "give numpy.ascontiguousarray(x)"
    elif host is not None and not host.flags.c_contiguous:
        reason, way_out = f"out has strides of {host.strides} bytes", "give a C-ordered out"
    elif host is not None and np.may_share_memory(array, host):
        reason, way_out = "out shares memory with x", "give an out with memory of its own"
    else:
        return error
    return DeviceMemoryError(f"{found}, and {reason}, so that it is not cut to blocks: {way_out}")


def _on_device(
    device: Device,
    array: NDArray[Any],
    way: _Way,
    element: ElementType,
    sizes: tuple[int, ...],
    host: NDArray[Any] | None,
) -> NDArray[Any]:
    """Copy an array to the device, compute there, and read the result back into `host` or a new array."""
    with device.batch():
        source = target = upload(device, array, temporary=True)
        try:
            possible = source.element is element and array.shape == sizes and source.layout.is_packed
            if not possible:
                target = empty(device, element, sizes, temporary=True)
            elif way.axis is not None and source.buffer.nbytes <= _MAX_APART_BYTES:
                with suppress(DeviceMemoryError):
                    target = empty(device, element, sizes, temporary=True)
            way.operate(source, target)
            if host is None:
                host = host_empty(sizes, element)
            device.download(target.buffer, 0, host)  # the target is packed
        finally:
            target.buffer.release()
            source.buffer.release()
    return host


def _device_of(x: DeviceArray, device: Device | str | int | None) -> Device:
    """Return the device of `x`, which must be the one asked for."""
    asked = x.device if device is None else resolve_device(device)
    if asked is not x.device:
        raise ArgumentError(
            f"x is on the device {x.device.label} while device= names {asked.label}: leave device= away, or "
            "move x with asarray(x, device)"
        )
    return asked


def _check_device(device: Device | str | int | None) -> None:
    """Raise an error for a wrong device where none is needed. The default one need not even be there."""
    if device is not None:
        resolve_device(device)


def _device_out(result: _Result, device: Device) -> DeviceArray:
    """Return `out`, or a new array."""
    out: object = result.where.out
    if out is None:
        return DeviceArray(empty(device, result.element, result.sizes))
    if not isinstance(out, DeviceArray):
        other_way = ", or x.numpy() as x" if isinstance(out, np.ndarray) else ""
        raise ArrayTypeError(
            f"out is of type {type(out).__name__} while x is a DeviceArray: give a DeviceArray{other_way}"
        )
    if out.device is not device:
        raise ArgumentError(
            f"out is on the device {out.device.label} while x is on {device.label}: give an out on the device of x"
        )
    _check_places(out, result)
    out._tensor.check_live()
    return out


def _host_out(result: _Result) -> NDArray[Any]:
    """Return `out` as a plain array, as a subclass may index in another way as numpy.matrix does; or a new array."""
    out = result.where.out
    if out is None:
        return host_empty(result.sizes, result.element)
    if not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray):
        other_way = ", or asarray(x) as x" if isinstance(out, DeviceArray) else ""
        raise ArrayTypeError(
            f"out is of type {type(out).__name__} while x is no DeviceArray: give a plain numpy.ndarray{other_way}"
        )
    plain = np.asarray(out)
    _check_places(plain, result)
    if not plain.flags.writeable:
        raise ArgumentError("out is read-only: give an array that can be written, such as out.copy()")
    return plain


def _check_places(out: NDArray[Any] | DeviceArray, result: _Result) -> None:
    """Raise an error if `out` has no place of its own for every element of the result."""
    if out.dtype != result.element.dtype:
        raise ArrayTypeError(
            f"out has dtype {out.dtype} while the result has {result.element}: give an out of {result.element}, in "
            "native byte order"
        )
    if out.shape != result.sizes:
        raise ArgumentError(f"out has shape {out.shape} while the result has {result.sizes}: give an out of that shape")
    # In bytes, so that strides of an ndarray which are no multiple of the element size count too.
    if out.size and not Layout((*out.shape, out.itemsize), (*out.strides, 1)).is_disjoint:
        raise ArgumentError(
            f"out has shape {out.shape} and strides of {out.strides} bytes, with which elements may share memory; "
            "give every element its own place, each dimension stepping over all that the finer ones reach"
        )
