"""Conversions of a description's fields, and the errors and words of all messages.

A type that a C++ compiler would reject is an `ArrayTypeError` here, and a number that a field cannot hold a
`DirectMLError`. Everything else is kept for validation to judge, as a struct is only data.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Iterable, Mapping, Set
from enum import Enum, IntEnum, IntFlag
from itertools import islice
from typing import Any, Final, NoReturn, SupportsIndex, TypeVar

import numpy as np

from ..arguments import integer
from ..errors import ArrayTypeError, DirectMLError, FrozenFieldError, shown
from .constants import DXGI_ERROR_INVALID_CALL, E_INVALIDARG, E_OUTOFMEMORY

__all__ = [
    "UINT64_MAX",
    "a_kind_of",
    "assign",
    "frozen",
    "invalid_argument",
    "invalid_call",
    "out_of_memory",
    "to_bool",
    "to_counted_structs",
    "to_enumerator",
    "to_items",
    "to_structs",
    "to_uint",
    "to_uints",
    "with_article",
]

UINT_MAX: Final = 2**32 - 1
UINT64_MAX: Final = 2**64 - 1
_ENUM_MIN: Final = -(2**31)
"""The least value of an enumeration's underlying type; the largest is `UINT_MAX`, as flags are unsigned."""
_MAX_ITEMS: Final = 2**16
_LONG: Final = 50
"""The most characters of a value that an error repeats twice."""

Enumerator = TypeVar("Enumerator", bound=IntEnum | IntFlag)
Struct = TypeVar("Struct")


def invalid_argument(message: str) -> DirectMLError:
    """Return the error of a broken rule."""
    return DirectMLError(E_INVALIDARG, message)


def out_of_memory(message: str) -> DirectMLError:
    """Return the error of a tensor or resource that no buffer of the device can hold."""
    return DirectMLError(E_OUTOFMEMORY, message)


def invalid_call(message: str) -> DirectMLError:
    """Return the error of a call that comes at the wrong time."""
    return DirectMLError(DXGI_ERROR_INVALID_CALL, message)


def a_kind_of(value: object) -> str:
    """Return a value's type for a message, with its article: ``"an int"``, ``"a str"``; ``"None"`` for None."""
    return "None" if value is None else with_article(type(value).__name__)


def with_article(name: str) -> str:
    """Return a type's name with the article that it is spoken with."""
    # A name with u is a "uint", a "UINT" or a "ufunc"; "ndarray" is spelt out at its beginning.
    return f"{'an' if name[:1] in tuple('aeioAEIO') or name == 'ndarray' else 'a'} {name}"


def frozen(kind: type[Struct]) -> type[Struct]:
    """Let a frozen dataclass say what to do instead when it is made without its fields, or one is set or deleted."""
    make: Any = vars(kind)["__init__"]
    signature = inspect.signature(make)

    @functools.wraps(make)
    def init(self: object, *values: object, **named: object) -> None:
        try:
            signature.bind(self, *values, **named)
        except TypeError as error:
            names = ", ".join(list(signature.parameters)[1:])
            raise ArrayTypeError(
                f"{kind.__name__}: {error}; give the constructor all fields at once, as none can be set later: {names}"
            ) from None
        make(self, *values, **named)

    def refuse(self: object, name: str, value: object = dataclasses.MISSING) -> NoReturn:
        here = kind.__name__
        names = [field.name for field in dataclasses.fields(self)]  # type: ignore[arg-type]
        if name not in names:
            raise FrozenFieldError(f"{here} has no field {name}; its fields are {', '.join(names)}")
        is_code = value is None or (isinstance(value, (int, str, tuple, list)) and len(shown(value)) <= _LONG)
        new = shown(value) if is_code else "..."
        raise FrozenFieldError(
            f"{here}: {name} cannot be changed, since descriptions are immutable; give {name}={new} to the "
            f"constructor, or make a changed copy with dataclasses.replace(desc, {name}={new})"
        )

    for name, method in (("__init__", init), ("__setattr__", refuse), ("__delattr__", refuse)):
        type.__setattr__(kind, name, method)
    return kind


def assign(description: object, **values: object) -> None:
    """Set the fields of a frozen dataclass that is being made."""
    for name, value in values.items():
        object.__setattr__(description, name, value)


def _index(value: Any, where: str, expected: str) -> int:
    """Return an integer's value; bool and the enumerators of other types are no integers here."""
    cause: BaseException | None = None
    if not isinstance(value, Enum):
        try:
            return int.__int__(integer(value, where))  # a plain int of a subclass, too
        except ArrayTypeError as error:
            cause = error.__cause__
    found = "None" if value is None else f"{shown(value)} ({type(value).__name__})"
    raise ArrayTypeError(f"{where} is {found}; give it {expected}") from cause


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
        raise invalid_argument(f"{where} is {shown(number)}; it is unsigned and holds 0 to {maximum}")
    return number


def to_items(values: Any, where: str, of: str) -> tuple[Any, ...]:
    """Return the values of an array: of anything that has an order and an end.

    Parameters
    ----------
    values : iterable
        What the caller gave.
    where : str
        The struct or call and the field, for messages.
    of : str
        The kind of its members, for messages: ``"ints"``.
    """
    cause: Exception | None = None
    items: tuple[Any, ...] | None = None
    if not isinstance(values, (str, bytes, bytearray, Mapping, Set)):
        try:
            items = tuple(islice(values, _MAX_ITEMS + 1))
        except Exception as error:  # a foreign type may raise anything
            cause = error
    if items is None:
        raise ArrayTypeError(f"{where} is {a_kind_of(values)}; give it a sequence of {of}") from cause
    if len(items) > _MAX_ITEMS:
        raise invalid_argument(f"{where} has more than {_MAX_ITEMS} values; give it no more")
    return items


def to_uints(values: Iterable[SupportsIndex], where: str) -> tuple[int, ...]:
    """Return the values of an array of UINT."""
    return tuple(to_uint(value, f"{where}[{i}]") for i, value in enumerate(to_items(values, where, "ints")))


def to_structs(values: Any, kind: type[Any], where: str) -> tuple[Any, ...]:
    """Return the value of an array of structs. None is an empty array, and one struct stands for an array of one."""
    if values is None:
        return ()
    if isinstance(values, kind):
        return (values,)
    structs = to_items(values, where, kind.__name__)
    for i, value in enumerate(structs):
        if not isinstance(value, kind):
            raise ArrayTypeError(f"{where}[{i}] is {a_kind_of(value)}; give it {with_article(kind.__name__)}")
    return structs


def to_counted_structs(count: SupportsIndex, values: Any, kind: type[Struct], where: str) -> tuple[Struct, ...]:
    """Return the value of an array of structs that is given with its length; `where` ends with the struct's name."""
    structs = to_structs(values, kind, f"{where}s")
    number = to_uint(count, f"{where}Count")
    if number != len(structs):
        name = where.rpartition(" ")[2]
        raise invalid_argument(f"{where}Count is {number} while {name}s has {len(structs)}; they must agree")
    return structs


def to_bool(value: bool | SupportsIndex, where: str) -> bool:
    """Return the value of a BOOL field, which may also be written 0 or 1."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    number = _index(value, where, "True or False")
    if number not in (0, 1):
        raise invalid_argument(f"{where} is {shown(number)}; it holds True (1) or False (0)")
    return number == 1


def to_enumerator(value: Enumerator | SupportsIndex, kind: type[Enumerator], where: str) -> Enumerator | int:
    """Return the enumerator that `value` is or numbers, or the number itself if `kind` has none."""
    if isinstance(value, kind):
        return value
    number = _index(value, where, with_article(kind.__name__))
    if not _ENUM_MIN <= number <= UINT_MAX:
        raise invalid_argument(f"{where} is {shown(number)}; {with_article(kind.__name__)} holds 32 bits")
    # A sum of flags is a combination of them all.
    known = number & sum(kind) == number if issubclass(kind, IntFlag) else number in kind.__members__.values()
    return kind(number) if known else number
