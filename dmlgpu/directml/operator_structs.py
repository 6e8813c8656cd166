"""DirectML's descriptions of operators, field for field.

As the descriptions of tensors, they are immutable values; `dmlgpu.directml.operator_rules` checks the rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import SupportsIndex, TypeAlias

from ..errors import ArrayTypeError
from .constants import (
    DML_AXIS_DIRECTION,
    DML_AXIS_DIRECTION_INCREASING,
    DML_OPERATOR_TYPE,
    DML_ROUNDING_MODE,
    DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN,
    DML_TENSOR_TYPE_BUFFER,
)
from .fields import a_kind_of, assign, frozen, to_bool, to_enumerator, to_uint
from .tensor_structs import DML_BUFFER_TENSOR_DESC, DML_TENSOR_DESC

__all__ = [
    "DML_CUMULATIVE_PRODUCT_OPERATOR_DESC",
    "DML_CUMULATIVE_SUMMATION_OPERATOR_DESC",
    "DML_ELEMENT_WISE_ROUND_OPERATOR_DESC",
    "DML_OPERATOR_DESC",
]


Tensor: TypeAlias = DML_TENSOR_DESC | DML_BUFFER_TENSOR_DESC | None


def _tensor(value: Tensor, where: str) -> DML_TENSOR_DESC | None:
    """Return the value of a tensor field; a buffer description stands for the tensor it describes."""
    if isinstance(value, DML_BUFFER_TENSOR_DESC):
        return DML_TENSOR_DESC(DML_TENSOR_TYPE_BUFFER, value)
    if not isinstance(value, DML_TENSOR_DESC | None):
        raise ArrayTypeError(f"{where} is {a_kind_of(value)}; give it a DML_TENSOR_DESC or a DML_BUFFER_TENSOR_DESC")
    return value


@frozen
@dataclass(frozen=True, init=False)
class DML_CUMULATIVE_SUMMATION_OPERATOR_DESC:
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

    InputTensor: DML_TENSOR_DESC | None
    OutputTensor: DML_TENSOR_DESC | None
    Axis: int
    AxisDirection: DML_AXIS_DIRECTION | int
    HasExclusiveSum: bool

    def __init__(
        self,
        InputTensor: Tensor,
        OutputTensor: Tensor,
        Axis: SupportsIndex,
        AxisDirection: DML_AXIS_DIRECTION | int = DML_AXIS_DIRECTION_INCREASING,
        HasExclusiveSum: bool | SupportsIndex = False,
    ) -> None:
        here = "DML_CUMULATIVE_SUMMATION_OPERATOR_DESC"
        assign(
            self,
            InputTensor=_tensor(InputTensor, f"{here}: InputTensor"),
            OutputTensor=_tensor(OutputTensor, f"{here}: OutputTensor"),
            Axis=to_uint(Axis, f"{here}: Axis"),
            AxisDirection=to_enumerator(AxisDirection, DML_AXIS_DIRECTION, f"{here}: AxisDirection"),
            HasExclusiveSum=to_bool(HasExclusiveSum, f"{here}: HasExclusiveSum"),
        )


@frozen
@dataclass(frozen=True, init=False)
class DML_CUMULATIVE_PRODUCT_OPERATOR_DESC:
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

    InputTensor: DML_TENSOR_DESC | None
    OutputTensor: DML_TENSOR_DESC | None
    Axis: int
    AxisDirection: DML_AXIS_DIRECTION | int
    HasExclusiveProduct: bool

    def __init__(
        self,
        InputTensor: Tensor,
        OutputTensor: Tensor,
        Axis: SupportsIndex,
        AxisDirection: DML_AXIS_DIRECTION | int = DML_AXIS_DIRECTION_INCREASING,
        HasExclusiveProduct: bool | SupportsIndex = False,
    ) -> None:
        here = "DML_CUMULATIVE_PRODUCT_OPERATOR_DESC"
        assign(
            self,
            InputTensor=_tensor(InputTensor, f"{here}: InputTensor"),
            OutputTensor=_tensor(OutputTensor, f"{here}: OutputTensor"),
            Axis=to_uint(Axis, f"{here}: Axis"),
            AxisDirection=to_enumerator(AxisDirection, DML_AXIS_DIRECTION, f"{here}: AxisDirection"),
            HasExclusiveProduct=to_bool(HasExclusiveProduct, f"{here}: HasExclusiveProduct"),
        )


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
    Desc : DML_..._OPERATOR_DESC or None
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
