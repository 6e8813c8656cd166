"""The rules that one tensor, or an input and an output together, must keep."""

from __future__ import annotations

import math

from ..dtypes import ELEMENT_TYPES, ElementType, by_dml_value
from ..errors import DirectMLError
from ..problem import MAX_ELEMENTS, Layout, packed_strides
from .constants import (
    DML_TENSOR_DATA_TYPE,
    DML_TENSOR_DIMENSION_COUNT_MAX1,
    DML_TENSOR_FLAG_OWNED_BY_DML,
    DML_TENSOR_FLAGS,
    DML_TENSOR_TYPE_BUFFER,
)
from .fields import UINT64_MAX
from .hresults import invalid_argument
from .tensor_structs import DML_BUFFER_TENSOR_DESC, DML_TENSOR_DESC, least_size

__all__ = ["check_output", "check_same", "check_tensor", "layout"]


def layout(tensor: DML_BUFFER_TENSOR_DESC, offset: int = 0) -> Layout:
    """Return where the elements of a tensor lie whose first element is at `offset`, in elements."""
    strides = packed_strides(tensor.Sizes) if tensor.Strides is None else tensor.Strides
    return Layout(tensor.Sizes, strides, offset)


def _broken(operator: str, name: str, message: str) -> DirectMLError:
    return invalid_argument(f"{operator}: tensor '{name}' {message}")


def check_tensor(
    tensor: DML_TENSOR_DESC | None, name: str, operator: str
) -> tuple[DML_BUFFER_TENSOR_DESC, ElementType]:
    """Check one tensor.

    Parameters
    ----------
    tensor : DML_TENSOR_DESC or None
        The tensor.
    name : str
        Its field, for messages: ``"InputTensor"``.
    operator : str
        The operator, for messages: ``"CUMULATIVE_SUMMATION"``.

    Returns
    -------
    tuple
        The buffer description inside and the type of its elements.

    Raises
    ------
    DirectMLError
        With E_INVALIDARG.
    """
    if tensor is None:
        raise _broken(operator, name, "is null; give it a DML_TENSOR_DESC")
    if tensor.Type != DML_TENSOR_TYPE_BUFFER:
        raise _broken(operator, name, f"has Type {tensor.Type!r}; it must be DML_TENSOR_TYPE_BUFFER")
    if tensor.Desc is None:
        raise _broken(operator, name, "has a null Desc; give it a DML_BUFFER_TENSOR_DESC")
    element = by_dml_value(int(tensor.Desc.DataType))
    if element is None:
        known = ", ".join(repr(DML_TENSOR_DATA_TYPE(e.dml_value)) for e in ELEMENT_TYPES)
        raise _broken(operator, name, f"has DataType {tensor.Desc.DataType!r}; supported types are {known}")
    if not isinstance(tensor.Desc.Flags, DML_TENSOR_FLAGS):
        raise _broken(operator, name, f"has Flags {tensor.Desc.Flags:#x}; only DML_TENSOR_FLAG_OWNED_BY_DML (1) exists")
    _check_dimensions(tensor.Desc, name, operator)
    _check_bytes(tensor.Desc, element, name, operator)
    return tensor.Desc, element


def _check_dimensions(tensor: DML_BUFFER_TENSOR_DESC, name: str, operator: str) -> None:
    count = tensor.DimensionCount
    for field, values in (("Sizes", tensor.Sizes), ("Strides", tensor.Strides)):
        if values is not None and len(values) != count:
            raise _broken(operator, name, f"has DimensionCount {count} while {field} has {len(values)} values {values}")
    if not 1 <= count <= DML_TENSOR_DIMENSION_COUNT_MAX1:
        raise _broken(operator, name, f"has DimensionCount {count}; it must be 1 to {DML_TENSOR_DIMENSION_COUNT_MAX1}")
    if 0 in tensor.Sizes:
        raise _broken(operator, name, f"has Sizes {tensor.Sizes}; no size may be 0")
    elements = math.prod(tensor.Sizes)
    if elements > MAX_ELEMENTS:
        raise _broken(operator, name, f"has Sizes {tensor.Sizes}, {elements} elements; at most 2^32-1 are allowed")


def _check_bytes(tensor: DML_BUFFER_TENSOR_DESC, element: ElementType, name: str, operator: str) -> None:
    alignment = tensor.GuaranteedBaseOffsetAlignment
    if alignment and (alignment < element.itemsize or alignment.bit_count() != 1):
        raise _broken(
            operator,
            name,
            f"has GuaranteedBaseOffsetAlignment {alignment}; it must be 0 or a power of two of at least the element "
            f"size, {element.itemsize}",
        )
    total = tensor.TotalTensorSizeInBytes
    least = least_size(element.itemsize, tensor.Sizes, tensor.Strides)
    if least > UINT64_MAX:
        raise _broken(
            operator,
            name,
            f"has Sizes {tensor.Sizes} and Strides {tensor.Strides}, which need {least} bytes; "
            f"TotalTensorSizeInBytes holds at most {UINT64_MAX}",
        )
    if total < least:
        raise _broken(
            operator,
            name,
            f"has TotalTensorSizeInBytes {total} while Sizes {tensor.Sizes} and Strides {tensor.Strides} need at "
            f"least {least}",
        )
    if total % 4:
        raise _broken(operator, name, f"has TotalTensorSizeInBytes {total}; it must be a multiple of 4")


def check_same(source: DML_BUFFER_TENSOR_DESC, target: DML_BUFFER_TENSOR_DESC, operator: str) -> None:
    """Check what input and output must share: DataType, DimensionCount and Sizes."""
    for field in ("DataType", "DimensionCount", "Sizes"):
        expected, found = getattr(source, field), getattr(target, field)
        if expected != found:
            raise _broken(
                operator,
                "OutputTensor",
                f"has {field} {found!r} while tensor 'InputTensor' has {field} {expected!r}; they must be the same",
            )


def check_output(tensor: DML_BUFFER_TENSOR_DESC, operator: str) -> None:
    """Check what only an output must keep: it is the caller's, and each element has its own place."""
    if tensor.Flags == DML_TENSOR_FLAG_OWNED_BY_DML:
        raise _broken(operator, "OutputTensor", "has Flags DML_TENSOR_FLAG_OWNED_BY_DML; only an input can have it")
    if not layout(tensor).is_disjoint:
        raise _broken(
            operator,
            "OutputTensor",
            f"has Sizes {tensor.Sizes} and Strides {tensor.Strides}, with which elements share memory; each stride "
            "must step over all that the smaller ones reach, and 0 is for inputs",
        )
