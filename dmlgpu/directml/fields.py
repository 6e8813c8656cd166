"""Conversions of a description's fields.

A type that a C++ compiler would reject is an `ArrayTypeError` here, and a number that a field cannot hold a
`DirectMLError`. Everything else is kept for validation to judge, as a struct is only data.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from enum import Enum, IntEnum, IntFlag
from typing import Any, Final, SupportsIndex, TypeVar

import numpy as np

from ..errors import ArrayTypeError
from .hresults import invalid_argument

__all__ = ["UINT64_MAX", "assign", "to_bool", "to_enumerator", "to_uint", "to_uints"]

UINT_MAX: Final = 2**32 - 1
UINT64_MAX: Final = 2**64 - 1

Enumerator = TypeVar("Enumerator", bound=IntEnum | IntFlag)


def assign(description: object, **values: object) -> None:
    """Set the fields of a frozen dataclass that is being made."""
    for name, value in values.items():
        object.__setattr__(description, name, value)


def _index(value: Any, where: str, expected: str) -> int:
    """Return an integer's value; bool and the enumerators of other types are no integers here."""
    if not isinstance(value, (bool, np.bool_, Enum)):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise ArrayTypeError(f"{where} is {value!r} ({type(value).__name__}); give it {expected}")


def to_uint(value: SupportsIndex, where: str, maximum: int = UINT_MAX) -> int:
    """Return the value of a UINT (or, with another `maximum`, UINT64) field.

    Parameters
    ----------
    value : int
        What the caller gave.
    where : str
        The struct and the field, for messages: ``"DML_BUFFER_TENSOR_DESC: Sizes[0]"``.
    maximum : int
        The largest value that the field holds.
    """
    number = _index(value, where, "an int")
    if not 0 <= number <= maximum:
        raise invalid_argument(f"{where} is {number}; it is unsigned and holds 0 to {maximum}")
    return number


def to_uints(values: Iterable[SupportsIndex], where: str) -> tuple[int, ...]:
    """Return the values of an array of UINT."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ArrayTypeError(f"{where} is {values!r} ({type(values).__name__}); give it a sequence of ints")
    return tuple(to_uint(value, f"{where}[{i}]") for i, value in enumerate(values))


def to_bool(value: bool | SupportsIndex, where: str) -> bool:
    """Return the value of a BOOL field, which may also be written 0 or 1."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    number = _index(value, where, "True or False")
    if number not in (0, 1):
        raise invalid_argument(f"{where} is {number}; it holds True (1) or False (0)")
    return number == 1


def to_enumerator(value: Enumerator | SupportsIndex, kind: type[Enumerator], where: str) -> Enumerator | int:
    """Return the enumerator that `value` is or numbers, or the number itself if `kind` has none."""
    if isinstance(value, kind):
        return value
    number = _index(value, where, f"a {kind.__name__}")
    # A sum of flags is a combination of them all.
    known = number & sum(kind) == number if issubclass(kind, IntFlag) else number in kind.__members__.values()
    return kind(number) if known else number
