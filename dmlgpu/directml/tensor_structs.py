"""DirectML's descriptions of tensors, field for field.

They are immutable values: two with the same fields are equal. Fields may be given by name or in the header's order.
Making one checks types only; `dmlgpu.directml.tensor_rules` checks the rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import SupportsIndex

from ..dtypes import by_dml_value
from ..errors import ArrayTypeError, DirectMLError, shown
from ..layout import Layout, packed_strides
from .constants import (
    DML_TENSOR_DATA_TYPE,
    DML_TENSOR_DIMENSION_COUNT_MAX1,
    DML_TENSOR_FLAG_NONE,
    DML_TENSOR_FLAGS,
    DML_TENSOR_TYPE,
)
from .fields import UINT64_MAX, a_kind_of, assign, counted, frozen, to_enumerator, to_uint, to_uints
from .hresults import invalid_argument

__all__ = ["DML_BUFFER_TENSOR_DESC", "DML_TENSOR_DESC", "DMLCalcBufferTensorSize"]


def least_size(itemsize: int, sizes: tuple[int, ...], strides: tuple[int, ...] | None) -> int:
    """Return the bytes up to the end of the last element, rounded up to a multiple of 4; no size may be 0."""
    _, end = Layout(sizes, packed_strides(sizes) if strides is None else strides).extent
    return (end * itemsize + 3) // 4 * 4


def DMLCalcBufferTensorSize(  # noqa: N802
    dataType: DML_TENSOR_DATA_TYPE | int,
    dimensionCount: SupportsIndex,
    sizes: Iterable[SupportsIndex],
    strides: Iterable[SupportsIndex] | None = None,
) -> int:
    """Return the least TotalTensorSizeInBytes of a tensor.

    The helper of this name in DirectML's documentation wraps at 32 bits; this one is exact for any sizes and strides.

    Parameters
    ----------
    dataType : DML_TENSOR_DATA_TYPE
        The type of the elements; UNKNOWN and the 4-bit types have no size here.
    dimensionCount : int
        The number of dimensions, which is that of `sizes` and `strides`.
    sizes : sequence of int
        The length of each dimension, 1 or more.
    strides : sequence of int, optional
        The distance between neighbours along each dimension, in elements; packed if None.

    Returns
    -------
    int
        Bytes, a multiple of 4.

    Raises
    ------
    DirectMLError
        With E_INVALIDARG, if the type has no size, the numbers of values disagree, there are no dimensions or more
        than 8, or a size is 0.
    ArrayTypeError
        If an argument has another type.

    Examples
    --------
    >>> from dmlgpu import directml as dml
    >>> dml.DMLCalcBufferTensorSize(dml.DML_TENSOR_DATA_TYPE_FLOAT16, 2, (3, 5), (8, 1))
    44
    """
    kind = to_enumerator(dataType, DML_TENSOR_DATA_TYPE, "DMLCalcBufferTensorSize: dataType")
    count = to_uint(dimensionCount, "DMLCalcBufferTensorSize: dimensionCount")
    lengths = to_uints(sizes, "DMLCalcBufferTensorSize: sizes")
    steps = None if strides is None else to_uints(strides, "DMLCalcBufferTensorSize: strides")
    element = by_dml_value(int(kind))
    if element is None:
        raise invalid_argument(f"DMLCalcBufferTensorSize: dataType is {kind!r}, which has no element size here")
    for name, values in (("sizes", lengths), ("strides", steps)):
        if values is not None and len(values) != count:
            raise invalid_argument(
                f"DMLCalcBufferTensorSize: dimensionCount is {count} while {name} has {counted(len(values), 'value')} "
                f"{shown(values)}; give it exactly as many"
            )
    if not 1 <= count <= DML_TENSOR_DIMENSION_COUNT_MAX1:
        raise invalid_argument(f"DMLCalcBufferTensorSize: dimensionCount is {count}; it must be 1 to 8")
    if 0 in lengths:
        raise invalid_argument(f"DMLCalcBufferTensorSize: sizes is {lengths}; no size may be 0")
    return least_size(element.itemsize, lengths, steps)


def _default_size(
    data_type: DML_TENSOR_DATA_TYPE | int, count: int, sizes: tuple[int, ...], strides: tuple[int, ...] | None
) -> int:
    """Return the least TotalTensorSizeInBytes, or 0 where there is none: validation names the field at fault."""
    try:
        total = DMLCalcBufferTensorSize(data_type, count, sizes, strides)
    except DirectMLError:
        return 0
    return total if total <= UINT64_MAX else 0


@frozen
@dataclass(frozen=True, init=False)
class DML_BUFFER_TENSOR_DESC:
    """The type and the layout of a tensor in a buffer.

    Parameters
    ----------
    DataType : DML_TENSOR_DATA_TYPE
        The type of the elements.
    Flags : DML_TENSOR_FLAGS, optional
        DML_TENSOR_FLAG_NONE by default.
    DimensionCount : int, optional
        The number of dimensions, 1 to 8; that of `Sizes` by default.
    Sizes : sequence of int
        The length of each dimension, outermost first.
    Strides : sequence of int, optional
        The distance between neighbours along each dimension, in elements: 0 broadcasts an input, more than the packed
        stride leaves gaps. None, the default, is packed.
    TotalTensorSizeInBytes : int, optional
        The bytes that the tensor may occupy, a multiple of 4; by default the least, see `DMLCalcBufferTensorSize`.
    GuaranteedBaseOffsetAlignment : int, optional
        0, the default, or a power of two of at least the element size, in bytes.

    Raises
    ------
    ArrayTypeError
        If a value has a type that the field cannot take; bool is no integer.
    DirectMLError
        With E_INVALIDARG, if a number is negative or too large for the field.

    Examples
    --------
    >>> from dmlgpu import directml as dml
    >>> dml.DML_BUFFER_TENSOR_DESC(dml.DML_TENSOR_DATA_TYPE_FLOAT32, Sizes=(3, 4)).TotalTensorSizeInBytes
    48
    """

    DataType: DML_TENSOR_DATA_TYPE | int
    Flags: DML_TENSOR_FLAGS | int
    DimensionCount: int
    Sizes: tuple[int, ...]
    Strides: tuple[int, ...] | None
    TotalTensorSizeInBytes: int
    GuaranteedBaseOffsetAlignment: int

    def __init__(
        self,
        DataType: DML_TENSOR_DATA_TYPE | int,
        Flags: DML_TENSOR_FLAGS | int = DML_TENSOR_FLAG_NONE,
        DimensionCount: SupportsIndex | None = None,
        Sizes: Iterable[SupportsIndex] = (),
        Strides: Iterable[SupportsIndex] | None = None,
        TotalTensorSizeInBytes: SupportsIndex | None = None,
        GuaranteedBaseOffsetAlignment: SupportsIndex = 0,
    ) -> None:
        here = "DML_BUFFER_TENSOR_DESC"
        data_type = to_enumerator(DataType, DML_TENSOR_DATA_TYPE, f"{here}: DataType")
        sizes = to_uints(Sizes, f"{here}: Sizes")
        strides = None if Strides is None else to_uints(Strides, f"{here}: Strides")
        count = len(sizes) if DimensionCount is None else to_uint(DimensionCount, f"{here}: DimensionCount")
        if TotalTensorSizeInBytes is None:
            total = _default_size(data_type, count, sizes, strides)
        else:
            total = to_uint(TotalTensorSizeInBytes, f"{here}: TotalTensorSizeInBytes", UINT64_MAX)
        assign(
            self,
            DataType=data_type,
            Flags=to_enumerator(Flags, DML_TENSOR_FLAGS, f"{here}: Flags"),
            DimensionCount=count,
            Sizes=sizes,
            Strides=strides,
            TotalTensorSizeInBytes=total,
            GuaranteedBaseOffsetAlignment=to_uint(
                GuaranteedBaseOffsetAlignment, f"{here}: GuaranteedBaseOffsetAlignment"
            ),
        )


@frozen
@dataclass(frozen=True, init=False)
class DML_TENSOR_DESC:
    """A tensor of some kind; buffers are the only kind there is.

    Parameters
    ----------
    Type : DML_TENSOR_TYPE
        DML_TENSOR_TYPE_BUFFER.
    Desc : DML_BUFFER_TENSOR_DESC or None
        The description; None is a null pointer, which validation refuses.
    """

    Type: DML_TENSOR_TYPE | int
    Desc: DML_BUFFER_TENSOR_DESC | None

    def __init__(self, Type: DML_TENSOR_TYPE | int, Desc: DML_BUFFER_TENSOR_DESC | None) -> None:
        if not isinstance(Desc, DML_BUFFER_TENSOR_DESC | None):
            raise ArrayTypeError(f"DML_TENSOR_DESC: Desc is {a_kind_of(Desc)}; give it a DML_BUFFER_TENSOR_DESC")
        assign(self, Type=to_enumerator(Type, DML_TENSOR_TYPE, "DML_TENSOR_DESC: Type"), Desc=Desc)
