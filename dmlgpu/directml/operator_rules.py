"""The rules of an operator description, checked without a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ..dtypes import ElementType
from ..errors import ArrayTypeError
from .constants import (
    DML_AXIS_DIRECTION,
    DML_FEATURE_LEVEL,
    DML_FEATURE_LEVEL_6_4,
    DML_OPERATOR_CUMULATIVE_PRODUCT,
    DML_OPERATOR_CUMULATIVE_SUMMATION,
    DML_OPERATOR_ELEMENT_WISE_ROUND,
    DML_OPERATOR_TYPE,
    DML_ROUNDING_MODE,
    DML_TENSOR_DATA_TYPE,
)
from .fields import a_kind_of
from .hresults import invalid_argument
from .operator_structs import (
    DML_CUMULATIVE_PRODUCT_OPERATOR_DESC,
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC,
    DML_ELEMENT_WISE_ROUND_OPERATOR_DESC,
    DML_OPERATOR_DESC,
    OperatorStruct,
    ScanStruct,
)
from .support import introduced, support
from .tensor_rules import check_output, check_same, check_tensor
from .tensor_structs import DML_BUFFER_TENSOR_DESC

__all__ = ["Description", "ValidOperator", "validate_operator"]

Description: TypeAlias = DML_OPERATOR_DESC | OperatorStruct

_STRUCTS: dict[type[OperatorStruct], DML_OPERATOR_TYPE] = {
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC: DML_OPERATOR_CUMULATIVE_SUMMATION,
    DML_CUMULATIVE_PRODUCT_OPERATOR_DESC: DML_OPERATOR_CUMULATIVE_PRODUCT,
    DML_ELEMENT_WISE_ROUND_OPERATOR_DESC: DML_OPERATOR_ELEMENT_WISE_ROUND,
}


@dataclass(frozen=True)
class ValidOperator:
    """An operator description that keeps all rules.

    Attributes
    ----------
    name : str
        The operator, as messages call it: ``"CUMULATIVE_SUMMATION"``.
    desc : DML_..._OPERATOR_DESC
        The operator's struct.
    input, output : DML_BUFFER_TENSOR_DESC
        Its tensors.
    element : ElementType
        The type of both tensors' elements.
    """

    name: str
    desc: OperatorStruct
    input: DML_BUFFER_TENSOR_DESC
    output: DML_BUFFER_TENSOR_DESC
    element: ElementType


def validate_operator(
    desc: Description,
    *,
    feature_level: DML_FEATURE_LEVEL = DML_FEATURE_LEVEL_6_4,
    extensions: bool = False,
) -> ValidOperator:
    """Check an operator description as IDMLDevice::CreateOperator would.

    Parameters
    ----------
    desc : DML_OPERATOR_DESC or DML_..._OPERATOR_DESC
        The operator; its own struct is enough.
    feature_level : DML_FEATURE_LEVEL
        The level whose element types and dimension counts are allowed.
    extensions : bool
        Whether to allow, too, what no level of DirectML promises and this package computes.

    Returns
    -------
    ValidOperator
        The operator with its tensors unwrapped.

    Raises
    ------
    DirectMLError
        With E_INVALIDARG and a message that names the tensors and both values.
    ArrayTypeError
        If `desc` is no description.
    """
    struct = _unwrap(desc)
    kind = _STRUCTS[type(struct)]
    name = _short(kind)
    if feature_level < introduced(kind):
        raise invalid_argument(f"{name}: needs {introduced(kind)!r} while the device has {feature_level!r}")
    supported = _listed(support(kind, feature_level, extensions=extensions))
    source, element = check_tensor(struct.InputTensor, "InputTensor", name, supported)
    target, _ = check_tensor(struct.OutputTensor, "OutputTensor", name, supported)
    check_same(source, target, name)
    check_output(target, name)
    if isinstance(struct, DML_ELEMENT_WISE_ROUND_OPERATOR_DESC):
        _check_enumerator(struct.RoundingMode, DML_ROUNDING_MODE, f"{name}: RoundingMode")
    else:
        _check_axis(struct, source.DimensionCount, name)
    _check_support(kind, source, feature_level, extensions=extensions)
    return ValidOperator(name, struct, source, target, element)


def _short(kind: DML_OPERATOR_TYPE) -> str:
    return kind.name.removeprefix("DML_OPERATOR_")


def _unwrap(desc: Description) -> OperatorStruct:
    """Return an operator's own struct."""
    if isinstance(desc, OperatorStruct):
        return desc
    if not isinstance(desc, DML_OPERATOR_DESC):
        raise ArrayTypeError(
            f"desc is {a_kind_of(desc)}; give a DML_OPERATOR_DESC or an operator's struct, such as "
            "DML_CUMULATIVE_SUMMATION_OPERATOR_DESC"
        )
    if desc.Type not in _STRUCTS.values():
        known = ", ".join(map(repr, _STRUCTS.values()))
        raise invalid_argument(f"DML_OPERATOR_DESC: Type is {desc.Type!r}; the operators here are {known}")
    if desc.Desc is None:
        raise invalid_argument(f"DML_OPERATOR_DESC: Type is {desc.Type!r} while Desc is null; give it its struct")
    if _STRUCTS[type(desc.Desc)] != desc.Type:
        raise invalid_argument(
            f"DML_OPERATOR_DESC: Type is {desc.Type!r} while Desc is {a_kind_of(desc.Desc)}; they must agree"
        )
    return desc.Desc


def _check_enumerator(value: int, kind: type[DML_AXIS_DIRECTION] | type[DML_ROUNDING_MODE], where: str) -> None:
    if not isinstance(value, kind):
        raise invalid_argument(f"{where} is {value!r}; it must be one of {', '.join(map(repr, kind))}")


def _check_axis(struct: ScanStruct, dimension_count: int, name: str) -> None:
    if struct.Axis >= dimension_count:
        raise invalid_argument(
            f"{name}: Axis is {struct.Axis} while tensor 'InputTensor' has DimensionCount {dimension_count}; Axis must "
            "be less than DimensionCount"
        )
    _check_enumerator(struct.AxisDirection, DML_AXIS_DIRECTION, f"{name}: AxisDirection")


def _check_support(
    kind: DML_OPERATOR_TYPE, tensor: DML_BUFFER_TENSOR_DESC, level: DML_FEATURE_LEVEL, *, extensions: bool
) -> None:
    data_type = DML_TENSOR_DATA_TYPE(tensor.DataType)
    supported = support(kind, level, extensions=extensions)
    if tensor.DimensionCount in supported.get(data_type, ()):
        return
    message = (
        f"{_short(kind)}: tensor 'InputTensor' has DataType {data_type!r} with DimensionCount {tensor.DimensionCount} "
        f"while {level!r} supports {_listed(supported)}"
    )
    if tensor.DimensionCount in support(kind, level, extensions=True).get(data_type, ()):
        message += "; extensions=True admits it"
    raise invalid_argument(message)


def _listed(supported: dict[DML_TENSOR_DATA_TYPE, frozenset[int]]) -> str:
    """Return supported types in words, grouped by their dimension counts."""
    groups: dict[frozenset[int], list[str]] = {}
    for kind, counts in supported.items():
        groups.setdefault(counts, []).append(repr(kind))
    return " and ".join(
        f"{', '.join(kinds)} with {min(counts)}{f' to {max(counts)}' if len(counts) > 1 else ''} dimensions"
        for counts, kinds in groups.items()
    )
