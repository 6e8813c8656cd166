"""DirectML's structs, field for field: descriptions of tensors, operators and bindings, and what features are asked.

They are immutable values: two with the same fields are equal. Fields may be given by name or in the header's order.
Making one checks types only. The rules are checked where a struct is used: `rules` has those of operators and their
tensors, `bindings` those of bindings. In the place of ID3D12Resource are wgpu's buffers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

from ..dtypes import by_dml_value
from ..errors import ArrayTypeError, DirectMLError, counted, shown
from ..layout import Layout, ceil_div, packed_strides
from .constants import (
    DML_AXIS_DIRECTION,
    DML_AXIS_DIRECTION_INCREASING,
    DML_BINDING_TYPE,
    DML_FEATURE_LEVEL,
    DML_OPERATOR_TYPE,
    DML_ROUNDING_MODE,
    DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN,
    DML_TENSOR_DATA_TYPE,
    DML_TENSOR_DIMENSION_COUNT_MAX1,
    DML_TENSOR_FLAG_NONE,
    DML_TENSOR_FLAGS,
    DML_TENSOR_TYPE,
    DML_TENSOR_TYPE_BUFFER,
)
from .fields import (
    UINT64_MAX,
    a_kind_of,
    assign,
    frozen,
    invalid_argument,
    to_bool,
    to_enumerator,
    to_items,
    to_structs,
    to_uint,
    to_uints,
)

if TYPE_CHECKING:
    from .operators import IDMLDispatchable

__all__ = [
    "DML_BINDING_DESC",
    "DML_BINDING_PROPERTIES",
    "DML_BINDING_TABLE_DESC",
    "DML_BUFFER_ARRAY_BINDING",
    "DML_BUFFER_BINDING",
    "DML_BUFFER_TENSOR_DESC",
    "DML_CUMULATIVE_PRODUCT_OPERATOR_DESC",
    "DML_CUMULATIVE_SUMMATION_OPERATOR_DESC",
    "DML_ELEMENT_WISE_ROUND_OPERATOR_DESC",
    "DML_FEATURE_DATA_FEATURE_LEVELS",
    "DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT",
    "DML_FEATURE_QUERY_FEATURE_LEVELS",
    "DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT",
    "DML_OPERATOR_DESC",
    "DML_TENSOR_DESC",
    "DMLCalcBufferTensorSize",
]


def least_size(itemsize: int, sizes: tuple[int, ...], strides: tuple[int, ...] | None) -> int:
    """Return the bytes up to the end of the last element, rounded up to a multiple of 4; no size may be 0."""
    _, end = Layout(sizes, packed_strides(sizes) if strides is None else strides).extent
    return ceil_div(end * itemsize, 4) * 4


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
        raise invalid_argument(
            f"DMLCalcBufferTensorSize: sizes is {lengths}; no size may be 0: a tensor without elements needs no buffer"
        )
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


Tensor: TypeAlias = DML_TENSOR_DESC | DML_BUFFER_TENSOR_DESC | None


def _tensor(value: Tensor, where: str) -> DML_TENSOR_DESC | None:
    """Return the value of a tensor field; a buffer description stands for the tensor it describes."""
    if isinstance(value, DML_BUFFER_TENSOR_DESC):
        return DML_TENSOR_DESC(DML_TENSOR_TYPE_BUFFER, value)
    if not isinstance(value, DML_TENSOR_DESC | None):
        raise ArrayTypeError(f"{where} is {a_kind_of(value)}; give it a DML_TENSOR_DESC or a DML_BUFFER_TENSOR_DESC")
    return value


@dataclass(frozen=True, init=False)
class _Scan:
    """What the two cumulative operators share: all fields but the last."""

    InputTensor: DML_TENSOR_DESC | None
    OutputTensor: DML_TENSOR_DESC | None
    Axis: int
    AxisDirection: DML_AXIS_DIRECTION | int

    def _set(
        self, tensors: tuple[Tensor, Tensor], axis: SupportsIndex, direction: DML_AXIS_DIRECTION | int, **exclusive: Any
    ) -> None:
        """Set the fields of a struct that is being made; the last one has a name of its own."""
        here = type(self).__name__
        ((last, is_exclusive),) = exclusive.items()
        assign(
            self,
            InputTensor=_tensor(tensors[0], f"{here}: InputTensor"),
            OutputTensor=_tensor(tensors[1], f"{here}: OutputTensor"),
            Axis=to_uint(axis, f"{here}: Axis"),
            AxisDirection=to_enumerator(direction, DML_AXIS_DIRECTION, f"{here}: AxisDirection"),
            **{last: to_bool(is_exclusive, f"{here}: {last}")},
        )


@frozen
@dataclass(frozen=True, init=False)
class DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(_Scan):
    """The sums of an axis's elements up to each of them.

    Parameters
    ----------
    InputTensor, OutputTensor : DML_TENSOR_DESC or DML_BUFFER_TENSOR_DESC
        Tensors of the same type and sizes; strides may differ. A buffer description is wrapped in a DML_TENSOR_DESC.
    Axis : int
        The dimension to sum along, counted from 0; there are no negative axes.
    AxisDirection : DML_AXIS_DIRECTION, optional
        DML_AXIS_DIRECTION_INCREASING by default.
    HasExclusiveSum : bool, optional
        Whether each sum leaves its own element out; the first in the axis direction is then 0.

    Raises
    ------
    ArrayTypeError
        If a value has a type that the field cannot take.
    DirectMLError
        With E_INVALIDARG, if `Axis` is negative or too large for the field.
    """

    HasExclusiveSum: bool

    def __init__(
        self,
        InputTensor: Tensor,
        OutputTensor: Tensor,
        Axis: SupportsIndex,
        AxisDirection: DML_AXIS_DIRECTION | int = DML_AXIS_DIRECTION_INCREASING,
        HasExclusiveSum: bool | SupportsIndex = False,
    ) -> None:
        self._set((InputTensor, OutputTensor), Axis, AxisDirection, HasExclusiveSum=HasExclusiveSum)


@frozen
@dataclass(frozen=True, init=False)
class DML_CUMULATIVE_PRODUCT_OPERATOR_DESC(_Scan):
    """The products of an axis's elements up to each of them.

    Parameters
    ----------
    InputTensor, OutputTensor, Axis, AxisDirection
        As in `DML_CUMULATIVE_SUMMATION_OPERATOR_DESC`.
    HasExclusiveProduct : bool, optional
        Whether each product leaves its own element out; the first in the axis direction is then 1.

    Raises
    ------
    ArrayTypeError, DirectMLError
        As `DML_CUMULATIVE_SUMMATION_OPERATOR_DESC`.
    """

    HasExclusiveProduct: bool

    def __init__(
        self,
        InputTensor: Tensor,
        OutputTensor: Tensor,
        Axis: SupportsIndex,
        AxisDirection: DML_AXIS_DIRECTION | int = DML_AXIS_DIRECTION_INCREASING,
        HasExclusiveProduct: bool | SupportsIndex = False,
    ) -> None:
        self._set((InputTensor, OutputTensor), Axis, AxisDirection, HasExclusiveProduct=HasExclusiveProduct)


@frozen
@dataclass(frozen=True, init=False)
class DML_ELEMENT_WISE_ROUND_OPERATOR_DESC:
    """Each element rounded to an integer.

    Parameters
    ----------
    InputTensor, OutputTensor : DML_TENSOR_DESC or DML_BUFFER_TENSOR_DESC
        Tensors of the same floating-point type and sizes; strides may differ.
    RoundingMode : DML_ROUNDING_MODE, optional
        DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN by default.

    Raises
    ------
    ArrayTypeError
        If a value has a type that the field cannot take.
    """

    InputTensor: DML_TENSOR_DESC | None
    OutputTensor: DML_TENSOR_DESC | None
    RoundingMode: DML_ROUNDING_MODE | int

    def __init__(
        self,
        InputTensor: Tensor,
        OutputTensor: Tensor,
        RoundingMode: DML_ROUNDING_MODE | int = DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN,
    ) -> None:
        here = "DML_ELEMENT_WISE_ROUND_OPERATOR_DESC"
        assign(
            self,
            InputTensor=_tensor(InputTensor, f"{here}: InputTensor"),
            OutputTensor=_tensor(OutputTensor, f"{here}: OutputTensor"),
            RoundingMode=to_enumerator(RoundingMode, DML_ROUNDING_MODE, f"{here}: RoundingMode"),
        )


ScanStruct: TypeAlias = DML_CUMULATIVE_SUMMATION_OPERATOR_DESC | DML_CUMULATIVE_PRODUCT_OPERATOR_DESC
OperatorStruct: TypeAlias = ScanStruct | DML_ELEMENT_WISE_ROUND_OPERATOR_DESC


@frozen
@dataclass(frozen=True, init=False)
class DML_OPERATOR_DESC:
    """An operator of some kind.

    Parameters
    ----------
    Type : DML_OPERATOR_TYPE
        Which operator.
    Desc : ``DML_..._OPERATOR_DESC`` or None
        The struct that belongs to `Type`; None is a null pointer, which validation refuses.
    """

    Type: DML_OPERATOR_TYPE | int
    Desc: OperatorStruct | None

    def __init__(self, Type: DML_OPERATOR_TYPE | int, Desc: OperatorStruct | None) -> None:
        if not isinstance(Desc, OperatorStruct | None):
            raise ArrayTypeError(
                f"DML_OPERATOR_DESC: Desc is {a_kind_of(Desc)}; give it the struct of its operator, such as "
                "DML_CUMULATIVE_SUMMATION_OPERATOR_DESC"
            )
        assign(self, Type=to_enumerator(Type, DML_OPERATOR_TYPE, "DML_OPERATOR_DESC: Type"), Desc=Desc)


def _size_of(buffer: Any) -> int:
    """Return a buffer's size; 0 for anything else, which is refused where it is bound."""
    try:
        size = buffer.size
    except Exception:  # whatever a foreign type raises
        return 0
    return size if isinstance(size, int) else 0


@frozen
@dataclass(frozen=True, init=False)
class DML_BUFFER_BINDING:
    """A range of a buffer.

    Parameters
    ----------
    Buffer : wgpu.GPUBuffer or None
        The buffer, with the usage STORAGE; None is a null pointer, which says "no binding". What it is, is checked when
        it is bound.
    Offset : int, optional
        The first byte of the range, 0 by default.
    SizeInBytes : int, optional
        The size of the range; by default all from `Offset` to the buffer's end.

    Raises
    ------
    ArrayTypeError
        If a value has a type that the field cannot take.
    DirectMLError
        With E_INVALIDARG, if a number is negative or too large for the field.
    """

    Buffer: Any
    Offset: int
    SizeInBytes: int

    def __init__(self, Buffer: Any, Offset: SupportsIndex = 0, SizeInBytes: SupportsIndex | None = None) -> None:
        here = "DML_BUFFER_BINDING"
        offset = to_uint(Offset, f"{here}: Offset", UINT64_MAX)
        if SizeInBytes is None:
            size = max(0, _size_of(Buffer) - offset)
        else:
            size = to_uint(SizeInBytes, f"{here}: SizeInBytes", UINT64_MAX)
        assign(self, Buffer=Buffer, Offset=offset, SizeInBytes=size)


@frozen
@dataclass(frozen=True, init=False)
class DML_BUFFER_ARRAY_BINDING:
    """The bindings of an operator's inputs, for its initializer.

    Parameters
    ----------
    BindingCount : int, optional
        The number of bindings; that of `Bindings` by default.
    Bindings : sequence of DML_BUFFER_BINDING
        One for each input; where nothing is bound, ``DML_BUFFER_BINDING(None, 0, 0)``.
    """

    BindingCount: int
    Bindings: tuple[DML_BUFFER_BINDING, ...]

    def __init__(
        self, BindingCount: SupportsIndex | None = None, Bindings: Iterable[DML_BUFFER_BINDING] | None = ()
    ) -> None:
        here = "DML_BUFFER_ARRAY_BINDING"
        bindings = to_structs(Bindings, DML_BUFFER_BINDING, f"{here}: Bindings")
        count = len(bindings) if BindingCount is None else to_uint(BindingCount, f"{here}: BindingCount")
        assign(self, BindingCount=count, Bindings=bindings)


BindingStruct: TypeAlias = DML_BUFFER_BINDING | DML_BUFFER_ARRAY_BINDING


@frozen
@dataclass(frozen=True, init=False)
class DML_BINDING_DESC:
    """A binding of some kind.

    Parameters
    ----------
    Type : DML_BINDING_TYPE
        Which kind.
    Desc : DML_BUFFER_BINDING, DML_BUFFER_ARRAY_BINDING or None
        The struct that belongs to `Type`; None for DML_BINDING_TYPE_NONE.
    """

    Type: DML_BINDING_TYPE | int
    Desc: BindingStruct | None

    def __init__(self, Type: DML_BINDING_TYPE | int, Desc: BindingStruct | None = None) -> None:
        if not isinstance(Desc, BindingStruct | None):
            raise ArrayTypeError(
                f"DML_BINDING_DESC: Desc is {a_kind_of(Desc)}; give it a DML_BUFFER_BINDING or a "
                "DML_BUFFER_ARRAY_BINDING"
            )
        assign(self, Type=to_enumerator(Type, DML_BINDING_TYPE, "DML_BINDING_DESC: Type"), Desc=Desc)


@frozen
@dataclass(frozen=True, init=False)
class DML_BINDING_TABLE_DESC:
    """What a binding table is for.

    Parameters
    ----------
    Dispatchable : IDMLDispatchable
        A compiled operator, or an operator initializer.
    CPUDescriptorHandle, GPUDescriptorHandle : object, optional
        wgpu has no descriptor heaps: kept, and not looked at.
    SizeInDescriptors : int, optional
        At least the RequiredDescriptorCount of `Dispatchable`, which is also the default.
    """

    Dispatchable: IDMLDispatchable | None
    CPUDescriptorHandle: object
    GPUDescriptorHandle: object
    SizeInDescriptors: int | None

    def __init__(
        self,
        Dispatchable: IDMLDispatchable | None,
        CPUDescriptorHandle: object = None,
        GPUDescriptorHandle: object = None,
        SizeInDescriptors: SupportsIndex | None = None,
    ) -> None:
        size = None
        if SizeInDescriptors is not None:
            size = to_uint(SizeInDescriptors, "DML_BINDING_TABLE_DESC: SizeInDescriptors")
        assign(
            self,
            Dispatchable=Dispatchable,
            CPUDescriptorHandle=CPUDescriptorHandle,
            GPUDescriptorHandle=GPUDescriptorHandle,
            SizeInDescriptors=size,
        )


@frozen
@dataclass(frozen=True)
class DML_BINDING_PROPERTIES:
    """What IDMLDispatchable::GetBindingProperties returns.

    Attributes
    ----------
    RequiredDescriptorCount : int
        The bindings that a table of the dispatchable holds.
    TemporaryResourceSize, PersistentResourceSize : int
        Bytes, multiples of 256; 0 where none is needed. They hold for every legal binding.
    """

    RequiredDescriptorCount: int
    TemporaryResourceSize: int
    PersistentResourceSize: int


@frozen
@dataclass(frozen=True, init=False)
class DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT:
    """Asks whether tensors may have an element type."""

    DataType: DML_TENSOR_DATA_TYPE | int

    def __init__(self, DataType: DML_TENSOR_DATA_TYPE | int) -> None:
        where = "DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT: DataType"
        assign(self, DataType=to_enumerator(DataType, DML_TENSOR_DATA_TYPE, where))


@frozen
@dataclass(frozen=True)
class DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT:
    """Whether at least one operator here takes the type on this device."""

    IsSupported: bool


@frozen
@dataclass(frozen=True, init=False)
class DML_FEATURE_QUERY_FEATURE_LEVELS:
    """Asks for the highest of some feature levels.

    Parameters
    ----------
    RequestedFeatureLevelCount : int, optional
        The number of levels; that of `RequestedFeatureLevels` by default.
    RequestedFeatureLevels : sequence of DML_FEATURE_LEVEL
        The levels.
    """

    RequestedFeatureLevelCount: int
    RequestedFeatureLevels: tuple[DML_FEATURE_LEVEL | int, ...]

    def __init__(
        self,
        RequestedFeatureLevelCount: SupportsIndex | None = None,
        RequestedFeatureLevels: Iterable[DML_FEATURE_LEVEL | int] = (),
    ) -> None:
        here = "DML_FEATURE_QUERY_FEATURE_LEVELS"
        where = f"{here}: RequestedFeatureLevels"
        levels = tuple(
            to_enumerator(level, DML_FEATURE_LEVEL, f"{where}[{i}]")
            for i, level in enumerate(to_items(RequestedFeatureLevels, where, "DML_FEATURE_LEVEL"))
        )
        count = (
            len(levels)
            if RequestedFeatureLevelCount is None
            else to_uint(RequestedFeatureLevelCount, f"{here}: RequestedFeatureLevelCount")
        )
        assign(self, RequestedFeatureLevelCount=count, RequestedFeatureLevels=levels)


@frozen
@dataclass(frozen=True)
class DML_FEATURE_DATA_FEATURE_LEVELS:
    """The highest of the levels asked for that the device has."""

    MaxSupportedFeatureLevel: DML_FEATURE_LEVEL
