"""The rules that one tensor, or an input and an output together, must keep."""

from __future__ import annotations

import itertools
import math

from ..dtypes import ElementType, by_dml_value
from ..errors import DirectMLError, shown
from ..layout import MAX_ELEMENTS, Layout, packed_strides
from .constants import (
    DML_TENSOR_DIMENSION_COUNT_MAX1,
    DML_TENSOR_FLAG_OWNED_BY_DML,
    DML_TENSOR_FLAGS,
    DML_TENSOR_TYPE_BUFFER,
)
from .fields import counted
from .hresults import invalid_argument
from .tensor_structs import DML_BUFFER_TENSOR_DESC, DML_TENSOR_DESC, least_size

__all__ = ["check_output", "check_same", "check_tensor", "difference_in_place", "layout"]


def layout(tensor: DML_BUFFER_TENSOR_DESC, offset: int = 0) -> Layout:
    """Return where the elements of a tensor lie whose first element is at `offset`, in elements."""
    strides = packed_strides(tensor.Sizes) if tensor.Strides is None else tensor.Strides
    return Layout(tensor.Sizes, strides, offset)


def _broken(operator: str, name: str, message: str) -> DirectMLError:
    return invalid_argument(f"{operator}: tensor '{name}' {message}")


def check_tensor(
    tensor: DML_TENSOR_DESC | None, name: str, operator: str, supported: str
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
    supported : str
        The types and dimension counts that the operator supports, for messages.

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
        raise _broken(operator, name, f"has DataType {tensor.Desc.DataType!r}; supported types are {supported}")
    if not isinstance(tensor.Desc.Flags, DML_TENSOR_FLAGS):
        raise _broken(operator, name, f"has Flags {tensor.Desc.Flags:#x}; only DML_TENSOR_FLAG_OWNED_BY_DML (1) exists")
    _check_dimensions(tensor.Desc, name, operator)
    _check_bytes(tensor.Desc, element, name, operator)
    return tensor.Desc, element


def _check_dimensions(tensor: DML_BUFFER_TENSOR_DESC, name: str, operator: str) -> None:
    count = tensor.DimensionCount
    for field, values in (("Sizes", tensor.Sizes), ("Strides", tensor.Strides)):
        if values is not None and len(values) != count:
            found = f"{counted(len(values), 'value')} {shown(values)}"
            raise _broken(
                operator,
                name,
                f"has DimensionCount {count} while {field} has {found}; give it exactly as many, or leave "
                "DimensionCount out",
            )
    if not 1 <= count <= DML_TENSOR_DIMENSION_COUNT_MAX1:
        raise _broken(operator, name, f"has DimensionCount {count}; it must be 1 to {DML_TENSOR_DIMENSION_COUNT_MAX1}")
    if 0 in tensor.Sizes:
        raise _broken(operator, name, f"has Sizes {tensor.Sizes}; no size may be 0")
    elements = math.prod(tensor.Sizes)
    if elements > MAX_ELEMENTS:
        raise _broken(operator, name, f"has Sizes {tensor.Sizes}, {elements} elements; at most 2^32-1 are allowed")


def _shape(tensor: DML_BUFFER_TENSOR_DESC) -> str:
    """Return sizes and strides for messages; null strides are packed ones."""
    return f"Sizes {tensor.Sizes} and {'packed Strides' if tensor.Strides is None else f'Strides {tensor.Strides}'}"


def _check_bytes(tensor: DML_BUFFER_TENSOR_DESC, element: ElementType, name: str, operator: str) -> None:
    alignment = tensor.GuaranteedBaseOffsetAlignment
    if alignment and (alignment < element.itemsize or alignment.bit_count() != 1):
        raise _broken(
            operator,
            name,
            f"has GuaranteedBaseOffsetAlignment {alignment}; it must be 0 or a power of two of at least the element "
            f"size, {element.itemsize}",
        )
    _, end = layout(tensor).extent
    if end > MAX_ELEMENTS:
        raise _broken(
            operator,
            name,
            f"has {_shape(tensor)}, which reach over {end} elements; the total size of a tensor, gaps between its "
            "elements included, is at most 2^32-1 elements",
        )
    total = tensor.TotalTensorSizeInBytes
    least = least_size(element.itemsize, tensor.Sizes, tensor.Strides)
    if total < least:
        raise _broken(
            operator, name, f"has TotalTensorSizeInBytes {total} while {_shape(tensor)} need at least {least}"
        )
    if total % 4:
        raise _broken(operator, name, f"has TotalTensorSizeInBytes {total}; it must be a multiple of 4")
    most = least_size(element.itemsize, (MAX_ELEMENTS,), None)
    if total > most:
        raise _broken(
            operator,
            name,
            f"has TotalTensorSizeInBytes {total}; the total size of a tensor is at most 2^32-1 elements, which are "
            f"{most} bytes of {tensor.DataType!r}",
        )


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
        wrong = "elements share memory" if _surely_overlaps(tensor) else "dimensions interleave"
        raise _broken(
            operator,
            "OutputTensor",
            f"has {_shape(tensor)}, with which {wrong}; each stride of an output must step over all that the smaller "
            "ones reach, and 0 is for inputs",
        )


def _surely_overlaps(tensor: DML_BUFFER_TENSOR_DESC) -> bool:
    """Whether two elements share memory that differ in one or two dimensions; it may be True of others, too."""
    dims = [(size, stride) for size, stride in zip(tensor.Sizes, layout(tensor).strides, strict=True) if size > 1]
    if any(stride == 0 for _, stride in dims):
        return True
    # x * a == y * b has the least solution x = b / gcd(a, b), y = a / gcd(a, b).
    return any(
        b // math.gcd(a, b) < m and a // math.gcd(a, b) < n for (m, a), (n, b) in itertools.combinations(dims, 2)
    )


def difference_in_place(source: DML_BUFFER_TENSOR_DESC, target: DML_BUFFER_TENSOR_DESC) -> str | None:
    """Return, for messages, what keeps an operator from working in place; None if nothing does."""
    for field, found, expected in (
        ("Strides", layout(target).strides, layout(source).strides),
        ("TotalTensorSizeInBytes", target.TotalTensorSizeInBytes, source.TotalTensorSizeInBytes),
    ):
        if found != expected:
            return f"tensor 'OutputTensor' has {field} {found} and tensor 'InputTensor' has {field} {expected}"
    return None
