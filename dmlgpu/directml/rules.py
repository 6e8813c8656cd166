"""The rules of an operator and its tensors, checked without a device, and the problem that a valid operator is.

What is supported differs by element type, dimension count and feature level; `DIRECTML` says where each is written. The
versions of a published page disagree: the earlier ones of the two scans list UINT16 where the later ones list INT32.
Both are in the table.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TypeAlias

from ..dtypes import ElementType, by_dml_value
from ..errors import ArrayTypeError, counted, shown
from ..layout import MAX_ELEMENTS, Layout, packed_strides
from ..planning.problem import (
    ElementwiseProblem,
    Operator,
    RoundingMode,
    ScanOptions,
    ScanProblem,
    round_problem,
    scan_problem,
)
from .constants import (
    DML_AXIS_DIRECTION,
    DML_AXIS_DIRECTION_DECREASING,
    DML_FEATURE_LEVEL,
    DML_FEATURE_LEVEL_2_1,
    DML_FEATURE_LEVEL_3_0,
    DML_FEATURE_LEVEL_3_1,
    DML_FEATURE_LEVEL_4_0,
    DML_FEATURE_LEVEL_5_0,
    DML_FEATURE_LEVEL_6_4,
    DML_OPERATOR_CUMULATIVE_PRODUCT,
    DML_OPERATOR_CUMULATIVE_SUMMATION,
    DML_OPERATOR_ELEMENT_WISE_ROUND,
    DML_OPERATOR_TYPE,
    DML_ROUNDING_MODE,
    DML_TENSOR_DATA_TYPE,
    DML_TENSOR_DATA_TYPE_FLOAT16,
    DML_TENSOR_DATA_TYPE_FLOAT32,
    DML_TENSOR_DATA_TYPE_FLOAT64,
    DML_TENSOR_DATA_TYPE_INT8,
    DML_TENSOR_DATA_TYPE_INT16,
    DML_TENSOR_DATA_TYPE_INT32,
    DML_TENSOR_DATA_TYPE_INT64,
    DML_TENSOR_DATA_TYPE_UINT8,
    DML_TENSOR_DATA_TYPE_UINT16,
    DML_TENSOR_DATA_TYPE_UINT32,
    DML_TENSOR_DATA_TYPE_UINT64,
    DML_TENSOR_DIMENSION_COUNT_MAX1,
    DML_TENSOR_FLAG_OWNED_BY_DML,
    DML_TENSOR_FLAGS,
    DML_TENSOR_TYPE_BUFFER,
)
from .fields import a_kind_of, invalid_argument
from .structs import (
    DML_BUFFER_TENSOR_DESC,
    DML_CUMULATIVE_PRODUCT_OPERATOR_DESC,
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC,
    DML_ELEMENT_WISE_ROUND_OPERATOR_DESC,
    DML_OPERATOR_DESC,
    DML_TENSOR_DESC,
    OperatorStruct,
    ScanStruct,
    least_size,
)

__all__ = [
    "DIRECTML",
    "EXTENSIONS",
    "Description",
    "Source",
    "Support",
    "ValidOperator",
    "introduced",
    "layout",
    "support",
    "validate_operator",
]

_FOUR = range(4, 5)
_ALL = range(1, DML_TENSOR_DIMENSION_COUNT_MAX1 + 1)
_FLOATS = (DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_DATA_TYPE_FLOAT16)
_SCANNED = (*_FLOATS, DML_TENSOR_DATA_TYPE_INT32, DML_TENSOR_DATA_TYPE_UINT32)
_LONG = (DML_TENSOR_DATA_TYPE_INT64, DML_TENSOR_DATA_TYPE_UINT64)
_SCANNED_HERE = (
    DML_TENSOR_DATA_TYPE_INT8,
    DML_TENSOR_DATA_TYPE_UINT8,
    DML_TENSOR_DATA_TYPE_INT16,
    DML_TENSOR_DATA_TYPE_UINT16,
    DML_TENSOR_DATA_TYPE_FLOAT64,
)


class Source(Enum):
    """Where it is written that an operator supports something."""

    PAGE = "page"
    """On the operator's page."""
    EARLIER = "earlier page"
    """On an earlier version of that page, for this level, and no longer on the later ones."""
    INFERRED = "inferred"
    """For a lower level only; each feature level has all that the ones below have."""
    OURS = "ours"
    """Nowhere: an extension of this package."""


@dataclass(frozen=True)
class Support:
    """What an operator supports from a feature level on.

    Attributes
    ----------
    level : DML_FEATURE_LEVEL
        The first level.
    types : tuple of DML_TENSOR_DATA_TYPE
        The element types.
    dimension_counts : range
        The dimension counts.
    source : Source
        Where that is written.
    """

    level: DML_FEATURE_LEVEL
    types: tuple[DML_TENSOR_DATA_TYPE, ...]
    dimension_counts: range
    source: Source


_UINT16 = (DML_TENSOR_DATA_TYPE_UINT16,)

DIRECTML: dict[DML_OPERATOR_TYPE, tuple[Support, ...]] = {
    DML_OPERATOR_CUMULATIVE_SUMMATION: (
        Support(DML_FEATURE_LEVEL_2_1, _SCANNED, _FOUR, Source.PAGE),
        Support(DML_FEATURE_LEVEL_2_1, _UINT16, _FOUR, Source.EARLIER),
        Support(DML_FEATURE_LEVEL_4_0, _SCANNED, _ALL, Source.PAGE),
        Support(DML_FEATURE_LEVEL_4_0, _UINT16, _FOUR, Source.INFERRED),
        Support(DML_FEATURE_LEVEL_5_0, _LONG, _ALL, Source.PAGE),
    ),
    DML_OPERATOR_CUMULATIVE_PRODUCT: (
        Support(DML_FEATURE_LEVEL_3_1, _SCANNED, _FOUR, Source.PAGE),
        Support(DML_FEATURE_LEVEL_3_1, _UINT16, _FOUR, Source.EARLIER),
        Support(DML_FEATURE_LEVEL_4_0, _SCANNED, _ALL, Source.PAGE),
        Support(DML_FEATURE_LEVEL_4_0, _UINT16, _ALL, Source.EARLIER),
        Support(DML_FEATURE_LEVEL_5_0, _LONG, _ALL, Source.PAGE),
        Support(DML_FEATURE_LEVEL_5_0, _UINT16, _ALL, Source.INFERRED),
    ),
    DML_OPERATOR_ELEMENT_WISE_ROUND: (
        Support(DML_FEATURE_LEVEL_2_1, _FLOATS, _FOUR, Source.PAGE),
        Support(DML_FEATURE_LEVEL_3_0, _FLOATS, _ALL, Source.PAGE),
    ),
}
"""What DirectML's pages promise."""

EXTENSIONS: dict[DML_OPERATOR_TYPE, tuple[Support, ...]] = {
    DML_OPERATOR_CUMULATIVE_SUMMATION: (Support(DML_FEATURE_LEVEL_2_1, _SCANNED_HERE, _ALL, Source.OURS),),
    DML_OPERATOR_CUMULATIVE_PRODUCT: (Support(DML_FEATURE_LEVEL_3_1, _SCANNED_HERE, _ALL, Source.OURS),),
    DML_OPERATOR_ELEMENT_WISE_ROUND: (
        Support(DML_FEATURE_LEVEL_2_1, (DML_TENSOR_DATA_TYPE_FLOAT64,), _ALL, Source.OURS),
    ),
}
"""What they do not promise and this package computes all the same."""


def introduced(operator: DML_OPERATOR_TYPE) -> DML_FEATURE_LEVEL:
    """Return the first feature level that has the operator."""
    return min(entry.level for entry in DIRECTML[operator])


def support(
    operator: DML_OPERATOR_TYPE, level: DML_FEATURE_LEVEL, *, extensions: bool
) -> dict[DML_TENSOR_DATA_TYPE, frozenset[int]]:
    """Return the dimension counts that an operator supports, for each element type, at a feature level."""
    entries = DIRECTML[operator] + (EXTENSIONS[operator] if extensions else ())
    counts: dict[DML_TENSOR_DATA_TYPE, frozenset[int]] = {}
    for entry in entries:
        if entry.level <= level:
            for kind in entry.types:
                counts[kind] = counts.get(kind, frozenset()) | frozenset(entry.dimension_counts)
    return counts


def layout(tensor: DML_BUFFER_TENSOR_DESC, offset: int = 0) -> Layout:
    """Return where the elements of a tensor lie whose first element is at `offset`, in elements."""
    strides = packed_strides(tensor.Sizes) if tensor.Strides is None else tensor.Strides
    return Layout(tensor.Sizes, strides, offset)


def _check_tensor(
    tensor: DML_TENSOR_DESC | None, where: str, supported: str
) -> tuple[DML_BUFFER_TENSOR_DESC, ElementType]:
    """Check one tensor, and return the buffer description inside and the type of its elements.

    Parameters
    ----------
    tensor : DML_TENSOR_DESC or None
        The tensor.
    where : str
        The operator and the tensor's field, for messages: ``"CUMULATIVE_SUMMATION: tensor 'InputTensor'"``.
    supported : str
        The types and dimension counts that the operator supports, for messages.
    """
    if tensor is None:
        raise invalid_argument(f"{where} is null; give it a DML_TENSOR_DESC")
    if tensor.Type != DML_TENSOR_TYPE_BUFFER:
        raise invalid_argument(f"{where} has Type {tensor.Type!r}; it must be DML_TENSOR_TYPE_BUFFER")
    desc = tensor.Desc
    if desc is None:
        raise invalid_argument(f"{where} has a null Desc; give it a DML_BUFFER_TENSOR_DESC")
    element = by_dml_value(int(desc.DataType))
    if element is None:
        raise invalid_argument(f"{where} has DataType {desc.DataType!r}; supported types are {supported}")
    if not isinstance(desc.Flags, DML_TENSOR_FLAGS):
        raise invalid_argument(f"{where} has Flags {desc.Flags:#x}; only DML_TENSOR_FLAG_OWNED_BY_DML (1) exists")
    _check_dimensions(desc, where)
    _check_bytes(desc, element, where)
    return desc, element


def _check_dimensions(tensor: DML_BUFFER_TENSOR_DESC, where: str) -> None:
    count = tensor.DimensionCount
    for field, values in (("Sizes", tensor.Sizes), ("Strides", tensor.Strides)):
        if values is not None and len(values) != count:
            found = f"{counted(len(values), 'value')} {shown(values)}"
            raise invalid_argument(
                f"{where} has DimensionCount {count} while {field} has {found}; give it exactly as many, or leave "
                "DimensionCount out"
            )
    if not 1 <= count <= DML_TENSOR_DIMENSION_COUNT_MAX1:
        raise invalid_argument(f"{where} has DimensionCount {count}; it must be 1 to {DML_TENSOR_DIMENSION_COUNT_MAX1}")
    if 0 in tensor.Sizes:
        raise invalid_argument(
            f"{where} has Sizes {tensor.Sizes}; no size may be 0: leave the operator out where a tensor has no elements"
        )
    elements = layout(tensor).count
    if elements > MAX_ELEMENTS:
        raise invalid_argument(
            f"{where} has Sizes {tensor.Sizes}, {elements} elements; at most 2^32-1 are allowed: split the tensor"
        )


def _shape(tensor: DML_BUFFER_TENSOR_DESC) -> str:
    """Return sizes and strides for messages; null strides are packed ones."""
    return f"Sizes {tensor.Sizes} and {'packed Strides' if tensor.Strides is None else f'Strides {tensor.Strides}'}"


def _check_bytes(tensor: DML_BUFFER_TENSOR_DESC, element: ElementType, where: str) -> None:
    alignment = tensor.GuaranteedBaseOffsetAlignment
    if alignment and (alignment < element.itemsize or alignment.bit_count() != 1):
        raise invalid_argument(
            f"{where} has GuaranteedBaseOffsetAlignment {alignment}; it must be 0 or a power of two of at least the "
            f"element size, {element.itemsize}"
        )
    _, end = layout(tensor).extent
    if end > MAX_ELEMENTS:
        raise invalid_argument(
            f"{where} has {_shape(tensor)}, which reach over {end} elements; the total size of a tensor, gaps between "
            "its elements included, is at most 2^32-1 elements"
        )
    total = tensor.TotalTensorSizeInBytes
    least = least_size(element.itemsize, tensor.Sizes, tensor.Strides)
    if total < least:
        raise invalid_argument(
            f"{where} has TotalTensorSizeInBytes {total} while {_shape(tensor)} need at least {least}"
        )
    if total % 4:
        raise invalid_argument(f"{where} has TotalTensorSizeInBytes {total}; it must be a multiple of 4")
    most = least_size(element.itemsize, (MAX_ELEMENTS,), None)
    if total > most:
        raise invalid_argument(
            f"{where} has TotalTensorSizeInBytes {total}; the total size of a tensor is at most 2^32-1 elements, which "
            f"are {most} bytes of {tensor.DataType!r}"
        )


def _check_output(source: DML_BUFFER_TENSOR_DESC, target: DML_BUFFER_TENSOR_DESC, where: str) -> None:
    """Check an output against its input, and what only an output must keep: each element has its own place."""
    for field in ("DataType", "DimensionCount", "Sizes"):
        expected, found = getattr(source, field), getattr(target, field)
        if expected != found:
            raise invalid_argument(
                f"{where} has {field} {found!r} while tensor 'InputTensor' has {field} {expected!r}; they must be the "
                "same"
            )
    if target.Flags == DML_TENSOR_FLAG_OWNED_BY_DML:
        raise invalid_argument(f"{where} has Flags DML_TENSOR_FLAG_OWNED_BY_DML; only an input can have it")
    if not layout(target).is_disjoint:
        wrong = "elements share memory" if _surely_overlaps(layout(target)) else "dimensions interleave"
        raise invalid_argument(
            f"{where} has {_shape(target)}, with which {wrong}; each stride of an output must step over all that the "
            "smaller ones reach, and 0 is for inputs"
        )


def _surely_overlaps(output: Layout) -> bool:
    """Whether two elements share memory that differ in one or two dimensions; it may be True of others, too."""
    dims = [(size, stride) for size, stride in zip(output.sizes, output.strides, strict=True) if size > 1]
    if any(stride == 0 for _, stride in dims):
        return True
    # x * a == y * b has the least solution x = b / gcd(a, b), y = a / gcd(a, b).
    return any(
        b // math.gcd(a, b) < m and a // math.gcd(a, b) < n for (m, a), (n, b) in itertools.combinations(dims, 2)
    )


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

    def problem(self, *, input_offset: int = 0, output_offset: int = 0) -> ScanProblem | ElementwiseProblem:
        """Return what the kernels solve.

        Parameters
        ----------
        input_offset, output_offset : int
            The position of each tensor's first element in its buffer, in elements.
        """
        source, target = layout(self.input, input_offset), layout(self.output, output_offset)
        desc = self.desc
        if isinstance(desc, DML_ELEMENT_WISE_ROUND_OPERATOR_DESC):
            return round_problem(self.element, RoundingMode(desc.RoundingMode), source, target)
        if isinstance(desc, DML_CUMULATIVE_SUMMATION_OPERATOR_DESC):
            kind, exclusive = Operator.SUM, desc.HasExclusiveSum
        else:
            kind, exclusive = Operator.PRODUCT, desc.HasExclusiveProduct
        options = ScanOptions(exclusive, reverse=desc.AxisDirection == DML_AXIS_DIRECTION_DECREASING)
        return scan_problem(self.element, kind, source, target, desc.Axis, options)

    @cached_property
    def difference_in_place(self) -> str | None:
        """What keeps the operator from working in place, for messages; None if nothing does."""
        for field, found, expected in (
            ("Strides", layout(self.output).strides, layout(self.input).strides),
            ("TotalTensorSizeInBytes", self.output.TotalTensorSizeInBytes, self.input.TotalTensorSizeInBytes),
        ):
            if found != expected:
                return f"tensor 'OutputTensor' has {field} {found} and tensor 'InputTensor' has {field} {expected}"
        return None


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
        raise invalid_argument(
            f"{name}: needs {introduced(kind)!r} while the device has {feature_level!r}; create it with a higher "
            "feature_level_cap"
        )
    supported = _listed(support(kind, feature_level, extensions=extensions))
    source, element = _check_tensor(struct.InputTensor, f"{name}: tensor 'InputTensor'", supported)
    target, _ = _check_tensor(struct.OutputTensor, f"{name}: tensor 'OutputTensor'", supported)
    _check_output(source, target, f"{name}: tensor 'OutputTensor'")
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
    for higher in sorted(one for one in DML_FEATURE_LEVEL if one > level):
        if tensor.DimensionCount in support(kind, higher, extensions=extensions).get(data_type, ()):
            message += f"; {higher!r} admits it: create the device with a higher feature_level_cap"
            raise invalid_argument(message)
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
