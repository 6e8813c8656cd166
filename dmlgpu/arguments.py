"""Checks of public arguments: flags, integers, shapes, choices."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import UnionType
from typing import Any, ParamSpec, SupportsIndex, TypeVar

import numpy as np

from .errors import ArgumentError, ArrayTypeError, DmlGpuError, shown, with_type

__all__ = ["choice", "count", "flag", "instance", "integer", "integers", "one_positional"]

_T = TypeVar("_T")
_P = ParamSpec("_P")

_MAX_INTEGERS = 64
"""More values than any shape has, NumPy's included. A longer sequence may be too long to read."""


def flag(value: bool | np.bool_, argument: str) -> bool:
    """Return `value` as a bool; `argument` is what the error calls it.

    Raises
    ------
    ArrayTypeError
        If it is anything but a bool or a numpy.bool_: what an integer or a string was meant to say is a guess.
    """
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise ArrayTypeError(f"{argument} is {with_type(value)}; give True or False")


def instance(value: object, argument: str, kind: type | UnionType, way_out: str) -> None:
    """Raise ArrayTypeError if `value` is not of a type, or of one of several."""
    if not isinstance(value, kind):
        raise ArrayTypeError(f"{argument} is {with_type(value)}; {way_out}")


def integer(
    value: SupportsIndex, argument: str, way_out: str = "give an integer", *, error: type[DmlGpuError] = ArrayTypeError
) -> int:
    """Return `value` as an int.

    Parameters
    ----------
    value : SupportsIndex
        Of any type that Python takes as an index, but bool.
    argument : str
        What the error calls it.
    way_out : str
        What the error says to do.
    error : type
        What is raised if it is a bool or no integer, or its ``__index__`` fails.
    """
    cause: Exception | None = None
    if not isinstance(value, bool | np.bool_):
        try:
            return operator.index(value)
        except Exception as failure:
            cause = failure
    raise error(f"{argument} is {with_type(value)}; {way_out}") from cause


def count(value: SupportsIndex, argument: str) -> int:
    """Return an integer of 0 or more.

    Raises
    ------
    ArrayTypeError
        If it is no integer.
    ArgumentError
        If it is negative.
    """
    number = integer(value, argument)
    if number < 0:
        raise ArgumentError(f"{argument} is {shown(number)}; give 0 or more")
    return number


def integers(value: SupportsIndex | Sequence[SupportsIndex], argument: str) -> tuple[int, ...]:
    """Return an integer or a sequence of integers, such as a shape, as a tuple.

    Raises
    ------
    ArrayTypeError
        If it is neither. Text and bytes are no sequences of integers, and sets have no order.
    """
    way_out = "give an integer or a sequence of integers"
    is_array = isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iu"
    if not is_array and not isinstance(value, Sequence):
        return (integer(value, argument, way_out),)
    if isinstance(value, str | bytes | bytearray):
        raise ArrayTypeError(f"{argument} is {with_type(value)}; {way_out}")
    values: Any = value
    try:
        length = len(values)
        items = tuple(values) if length <= _MAX_INTEGERS else ()
    except Exception as error:
        raise ArrayTypeError(f"{argument} is {with_type(value)}, which cannot be read; {way_out}") from error
    if length > _MAX_INTEGERS:
        raise ArgumentError(f"{argument} has {length} values; arrays have 8 dimensions at most: give one a dimension")
    return tuple(integer(item, f"a value of {argument}") for item in items)


def choice(value: str, argument: str, options: Mapping[str, _T]) -> _T:
    """Return what a name stands for.

    Raises
    ------
    ArrayTypeError
        If `value` is no string.
    ArgumentError
        If it is none of the names.
    """
    if not isinstance(value, str):
        raise ArrayTypeError(f"{argument} is {with_type(value)}; it is one of {', '.join(map(repr, options))}")
    for name, meaning in options.items():  # equality: the hash of a subclass may be anything
        if str.__eq__(name, value) is True:
            return meaning
    raise ArgumentError(f"{argument} is {shown(value)}; it is one of {', '.join(map(repr, options))}")


def one_positional(example: str) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Return a decorator for functions of `x` and named arguments, which refuses a second positional argument.

    Parameters
    ----------
    example : str
        An argument as it is to be given, such as ``"axis=1"``.
    """

    def decorate(function: Callable[_P, _T]) -> Callable[_P, _T]:
        @wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            if len(args) > 1:
                raise ArrayTypeError(
                    f"{function.__name__} takes one positional argument, x, and got {len(args)}: give the others by "
                    f"name, as in {example}"
                )
            return function(*args, **kwargs)

        return call

    return decorate
