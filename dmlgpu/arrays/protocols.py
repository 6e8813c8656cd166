"""NumPy's functions on arrays of a device: which of them run there, by which rules, and what the others say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import DTypeLike

from ..arguments import integer
from ..errors import ArgumentError, ArrayTypeError, shown
from .host import host_array

__all__ = ["READ_BACK", "call_numpy_function", "call_numpy_ufunc"]

READ_BACK = "read the elements back with .numpy() first"
_ON_DEVICE = (
    "cumsum, cumprod, cumulative_sum, cumulative_prod, round, rint, trunc, add.accumulate and multiply.accumulate of "
    "numpy run on the device"
)


def call_numpy_function(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Do what NumPy's `function` means for arguments of which one is a DeviceArray.

    Parameters
    ----------
    function : callable
        A public function of NumPy, as ``__array_function__`` is given it.
    args, kwargs
        Its arguments, which fit its signature.

    Raises
    ------
    ArrayTypeError
        If the function does not run on a device.
    """
    ours = _functions().get(function)
    if ours is None:
        raise ArrayTypeError(
            f"{function.__module__}.{function.__name__} does not work on a DeviceArray: {READ_BACK}; {_ON_DEVICE}"
        )
    return ours(*args, **kwargs)


def call_numpy_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Do what a ufunc of NumPy, or one of its methods, means for arguments of which one is a DeviceArray.

    Parameters
    ----------
    ufunc, method, inputs, kwargs
        As ``__array_ufunc__`` is given them.

    Raises
    ------
    ArrayTypeError
        If it does not run on a device, or not with these arguments.
    """
    called = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    ours = _ufuncs().get((ufunc, method))
    if ours is None:
        raise ArrayTypeError(f"numpy.{called} does not work on a DeviceArray: {READ_BACK}; {_ON_DEVICE}")
    taken, allowed = dict(kwargs), _UFUNC_ARGUMENTS[method]
    if unknown := [name for name in taken if name not in allowed]:
        raise ArrayTypeError(
            f"numpy.{called} takes no {' and no '.join(unknown)} for a DeviceArray, only {', '.join(allowed)}: leave "
            f"{'it' if len(unknown) == 1 else 'them'} out, or {READ_BACK}"
        )
    if "out" in taken:
        (taken["out"],) = taken["out"]  # NumPy gives a tuple, one for each result
        if method == "accumulate" and taken.get("dtype") is None:
            _check_accumulated(called, inputs[0], taken["out"])
    return ours(*inputs, **taken)


def _check_accumulated(called: str, x: Any, out: Any) -> None:
    """Refuse what NumPy would accumulate in the type of `x` and then convert; a device computes in that of `out`."""
    ours, theirs = getattr(x, "dtype", None), getattr(out, "dtype", None)
    if (
        isinstance(ours, np.dtype)
        and isinstance(theirs, np.dtype)
        and "f" in (ours.kind, theirs.kind)
        and ours != theirs
    ):
        raise ArrayTypeError(
            f"out has dtype {theirs} and x {ours}, in which numpy.{called} would accumulate before it converts: give "
            f"an out of {ours}, or dtype={theirs.name!r} to accumulate in that"
        )


_UFUNC_ARGUMENTS: Mapping[str, Sequence[str]] = {"__call__": ("out",), "accumulate": ("axis", "dtype", "out")}


@cache
def _ufuncs() -> dict[tuple[np.ufunc, str], Callable[..., Any]]:
    """Return what stands for NumPy's ufuncs, by method."""
    from .functions import cumulative_prod, cumulative_sum, round

    def rint(x: Any, out: Any = None) -> Any:
        kind = getattr(x, "dtype", None)
        if isinstance(kind, np.dtype) and kind.kind in "iu":
            raise ArrayTypeError(
                f"numpy.rint would make floats of {kind}, whose elements are integers: use numpy.round"
            )
        return round(x, out=out)

    return {
        (np.add, "accumulate"): lambda x, axis=0, dtype=None, out=None: cumulative_sum(
            x, axis=axis, dtype=dtype, out=out
        ),
        (np.multiply, "accumulate"): lambda x, axis=0, dtype=None, out=None: cumulative_prod(
            x, axis=axis, dtype=dtype, out=out
        ),
        (np.rint, "__call__"): rint,
        (np.trunc, "__call__"): lambda x, out=None: round(x, mode="toward_zero", out=out),
    }


@cache
def _functions() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Return what stands for NumPy's functions; `functions` itself builds on arrays."""
    from .functions import cumulative_prod, cumulative_sum, round

    def cumsum(a: Any, axis: SupportsIndex | None = None, dtype: DTypeLike | None = None, out: Any = None) -> Any:
        return cumulative_sum(_flat(a, axis), axis=0 if axis is None else axis, dtype=dtype, out=out)

    def cumprod(a: Any, axis: SupportsIndex | None = None, dtype: DTypeLike | None = None, out: Any = None) -> Any:
        return cumulative_prod(_flat(a, axis), axis=0 if axis is None else axis, dtype=dtype, out=out)

    def rounded(a: Any, decimals: SupportsIndex = 0, out: Any = None) -> Any:
        if integer(decimals, "decimals") != 0:
            raise ArgumentError(
                f"decimals is {shown(decimals)}, and a device rounds to integers only: scale the elements before and "
                "after, or round what .numpy() returns"
            )
        return round(a, out=out)

    return {
        np.cumsum: cumsum,
        np.cumprod: cumprod,
        np.cumulative_sum: cumulative_sum,
        np.cumulative_prod: cumulative_prod,
        np.round: rounded,
        np.around: rounded,
    }


def _flat(a: Any, axis: SupportsIndex | None) -> Any:
    """Return what NumPy scans: all elements in C order where `axis` is None, and a number as a slice of one."""
    if axis is not None and getattr(a, "ndim", None) != 0:
        return a
    array = a if hasattr(a, "reshape") else host_array(a)  # a list or a number, where `out` is the DeviceArray
    return array.reshape(-1)
