"""Which element types and dimension counts each operator supports, by feature level.

The published pages disagree on two scans' first level: older ones list UINT16 where newer ones list INT32. Both are in
the table.
"""

from __future__ import annotations

from dataclasses import dataclass

from .constants import (
    DML_FEATURE_LEVEL,
    DML_FEATURE_LEVEL_2_1,
    DML_FEATURE_LEVEL_3_0,
    DML_FEATURE_LEVEL_3_1,
    DML_FEATURE_LEVEL_4_0,
    DML_FEATURE_LEVEL_5_0,
    DML_OPERATOR_CUMULATIVE_PRODUCT,
    DML_OPERATOR_CUMULATIVE_SUMMATION,
    DML_OPERATOR_ELEMENT_WISE_ROUND,
    DML_OPERATOR_TYPE,
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
)

__all__ = ["DIRECTML", "EXTENSIONS", "Support", "introduced", "support"]

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
    """

    level: DML_FEATURE_LEVEL
    types: tuple[DML_TENSOR_DATA_TYPE, ...]
    dimension_counts: range


def _scan(first: DML_FEATURE_LEVEL) -> tuple[Support, ...]:
    return (
        Support(first, (*_SCANNED, DML_TENSOR_DATA_TYPE_UINT16), _FOUR),
        Support(DML_FEATURE_LEVEL_4_0, _SCANNED, _ALL),
        Support(DML_FEATURE_LEVEL_5_0, _LONG, _ALL),
    )


DIRECTML: dict[DML_OPERATOR_TYPE, tuple[Support, ...]] = {
    DML_OPERATOR_CUMULATIVE_SUMMATION: _scan(DML_FEATURE_LEVEL_2_1),
    DML_OPERATOR_CUMULATIVE_PRODUCT: _scan(DML_FEATURE_LEVEL_3_1),
    DML_OPERATOR_ELEMENT_WISE_ROUND: (
        Support(DML_FEATURE_LEVEL_2_1, _FLOATS, _FOUR),
        Support(DML_FEATURE_LEVEL_3_0, _FLOATS, _ALL),
    ),
}
"""What DirectML's pages promise."""

EXTENSIONS: dict[DML_OPERATOR_TYPE, tuple[Support, ...]] = {
    DML_OPERATOR_CUMULATIVE_SUMMATION: (Support(DML_FEATURE_LEVEL_2_1, _SCANNED_HERE, _ALL),),
    DML_OPERATOR_CUMULATIVE_PRODUCT: (Support(DML_FEATURE_LEVEL_3_1, _SCANNED_HERE, _ALL),),
    DML_OPERATOR_ELEMENT_WISE_ROUND: (Support(DML_FEATURE_LEVEL_2_1, (DML_TENSOR_DATA_TYPE_FLOAT64,), _ALL),),
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
