"""The table of element types: DirectML value, NumPy dtype, shader piece, accumulator and wgpu features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from .errors import ArrayTypeError, with_type

__all__ = [
    "BOOL",
    "ELEMENT_TYPES",
    "ElementType",
    "by_argument",
    "by_dml_value",
    "by_dtype",
    "by_name",
    "by_out",
    "has_element_type",
    "result_type",
]

Kind = Literal["bool", "int", "uint", "float"]
Format = Literal["int", "int64", "f16", "f32", "f64"]


@dataclass(frozen=True)
class ElementType:
    """An element type of tensors.

    Attributes
    ----------
    name : str
        NumPy's name, such as ``"float16"``.
    dml_value : int
        The value of DML_TENSOR_DATA_TYPE; 0 (UNKNOWN) for bool, which DirectML lacks.
    kind : {"bool", "int", "uint", "float"}
        Family.
    itemsize : int
        Bytes of an element: 1, 2, 4 or 8.
    format : {"int", "int64", "f16", "f32", "f64"}
        The shader piece ``wgsl/slots/element/<format>.wgsl`` that decodes, combines and encodes elements.
        Signed and unsigned integers share one, because sums and products wrap alike. Where the device lacks
        `features`, ``f64_words.wgsl`` does the work of ``f64.wgsl``.
    accumulator_size : int
        Bytes of the shader's accumulator type, which is also the unit of scratch memory.
    features : tuple of str
        The wgpu features that scans of this type use where the device has all of them. None is required.
    """

    name: str
    dml_value: int
    kind: Kind
    itemsize: int
    format: Format
    accumulator_size: int
    features: tuple[str, ...] = ()

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype, in native byte order."""
        return np.dtype(self.name)

    @property
    def log2_bits(self) -> int:
        """The base-2 logarithm of the element's width in bits: 3, 4, 5 or 6."""
        return (self.itemsize * 8).bit_length() - 1

    def __str__(self) -> str:
        return self.name


BOOL = ElementType("bool", 0, "bool", 1, "int", 4)

ELEMENT_TYPES: tuple[ElementType, ...] = (
    ElementType("float32", 1, "float", 4, "f32", 4),
    ElementType("float16", 2, "float", 2, "f16", 4),
    ElementType("uint32", 3, "uint", 4, "int", 4),
    ElementType("uint16", 4, "uint", 2, "int", 4),
    ElementType("uint8", 5, "uint", 1, "int", 4),
    ElementType("int32", 6, "int", 4, "int", 4),
    ElementType("int16", 7, "int", 2, "int", 4),
    ElementType("int8", 8, "int", 1, "int", 4),
    ElementType("float64", 9, "float", 8, "f64", 8, ("shader-f64", "shader-int64")),
    ElementType("uint64", 10, "uint", 8, "int64", 8),
    ElementType("int64", 11, "int", 8, "int64", 8),
)
"""The types that operators compute in, in the order of DML_TENSOR_DATA_TYPE."""

_BY_NAME = {element.name: element for element in (*ELEMENT_TYPES, BOOL)}
_NAMES = ", ".join(_BY_NAME)
_COMPUTED = ", ".join(element.name for element in ELEMENT_TYPES)
_BY_DTYPE = {np.dtype(name): element for name, element in _BY_NAME.items()}
_BY_DTYPE |= {dtype.newbyteorder("S"): element for dtype, element in _BY_DTYPE.items()}
_BY_DML_VALUE = {element.dml_value: element for element in ELEMENT_TYPES}


def by_name(name: str) -> ElementType:
    """Return the element type with NumPy's name `name`, bool included."""
    return _BY_NAME[name]


def by_dml_value(value: int) -> ElementType | None:
    """Return the element type of a DML_TENSOR_DATA_TYPE value, or None if there is none."""
    return _BY_DML_VALUE.get(value)


def by_dtype(dtype: DTypeLike, argument: str = "x") -> ElementType:
    """Return the element type of an array with a NumPy dtype, bool included.

    Parameters
    ----------
    dtype : DTypeLike
        Anything that ``numpy.dtype`` accepts; the byte order does not matter.
    argument : str
        The name that an error message uses.

    Raises
    ------
    ArrayTypeError
        If no element type has this dtype, as for complex numbers and objects.
    """
    resolved = np.dtype(dtype)
    found = _BY_DTYPE.get(resolved)
    if found is None:
        raise ArrayTypeError(
            f"{argument} has dtype {resolved}, which has no element type on the device: give one of {_NAMES}"
        )
    return found


def has_element_type(dtype: np.dtype[Any]) -> bool:
    """Whether `by_dtype` finds one."""
    return dtype in _BY_DTYPE


def by_out(dtype: np.dtype[Any]) -> ElementType:
    """Return the element type of an argument `out`, bool included.

    Raises
    ------
    ArrayTypeError
        If no element type has this dtype.
    """
    found = _BY_DTYPE.get(dtype)
    if found is None:
        raise ArrayTypeError(
            f"out has dtype {dtype}, which has no element type on the device: give an out of one of {_COMPUTED}"
        )
    return found


def by_argument(dtype: DTypeLike, *, computed: bool = False) -> ElementType:
    """Return the element type that the argument `dtype` names, bool included.

    Parameters
    ----------
    dtype : DTypeLike
        Anything that ``numpy.dtype`` accepts but None, which would mean float64; the byte order does not matter.
    computed : bool
        Whether the caller refuses bool, so that no message offers it.

    Raises
    ------
    ArrayTypeError
        If it is no dtype, or no element type has it, as for complex numbers and objects.
    """
    names = _COMPUTED if computed else _NAMES
    cause: Exception | None = None
    resolved: np.dtype[Any] | None = None
    if dtype is not None:
        try:
            resolved = np.dtype(dtype)
        except Exception as error:
            cause = error
    if resolved is None:
        raise ArrayTypeError(f"dtype is {with_type(dtype)}, which is no dtype: give one of {names}") from cause
    found = _BY_DTYPE.get(resolved)
    if found is None:
        raise ArrayTypeError(f"dtype is {resolved}, which has no element type on the device: give one of {names}")
    return found


def result_type(element: ElementType) -> ElementType:
    """Return the default result type of a scan: the array API's promotion, the same on every system.

    bool and signed integers give int64, unsigned integers uint64, floating-point types themselves.
    """
    if element.kind == "float":
        return element
    return _BY_NAME["uint64" if element.kind == "uint" else "int64"]
