"""The NumPy face: cumulative sums, cumulative products and rounding, in the array API's terms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..planning.problem import Operator
from .array import DeviceArray
from .operations import round_array, scan_array

if TYPE_CHECKING:
    from ..runtime.device import Device

__all__ = ["cumulative_prod", "cumulative_sum", "round"]

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
    precision: str = "default",
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
    precision: str = "default",
) -> NDArray[Any]: ...


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
    precision: str = "default",
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
        elements.
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
        Where to put the result: of the same kind as `x`, with the result's dtype and shape. Any strides will do that
        give each element its own place; what lies between the elements is left as it is. It may overlap `x`.
    device : Device, str, int or None
        An open device, or which adapter to open: part of its summary, or its index. None is the device of `x`, or
        the default device.
    precision : {"default", "compensated"}
        Only for results of float32: "compensated" carries what rounding cuts off along, in pairs of float32 with 48
        bits. Results are then within 2 units in the last place of the exact sums unless these cancel to less than
        2**-14 of the sum of magnitudes, for up to 10**7 elements; the promise of same bits holds too.

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
        If an argument has a type that does not fit: flags are bool or numpy.bool_, nothing else.
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
    """
    return scan_array(
        Operator.SUM,
        x,
        axis=axis,
        dtype=dtype,
        include_initial=include_initial,
        exclusive=exclusive,
        reverse=reverse,
        out=out,
        device=device,
        precision=precision,
    )


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
    out, device
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
    return scan_array(
        Operator.PRODUCT,
        x,
        axis=axis,
        dtype=dtype,
        include_initial=include_initial,
        exclusive=exclusive,
        reverse=reverse,
        out=out,
        device=device,
    )


@overload
def round(
    x: DeviceArray,
    /,
    *,
    mode: str = "half_even",
    out: DeviceArray | None = None,
    device: Device | str | int | None = None,
) -> DeviceArray: ...


@overload
def round(
    x: ArrayLike,
    /,
    *,
    mode: str = "half_even",
    out: NDArray[Any] | None = None,
    device: Device | str | int | None = None,
) -> NDArray[Any]: ...


def round(
    x: ArrayLike | DeviceArray,
    /,
    *,
    mode: str = "half_even",
    out: NDArray[Any] | DeviceArray | None = None,
    device: Device | str | int | None = None,
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
    out, device
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
    return round_array(x, mode=mode, out=out, device=device)
