"""Which element types and dimension counts each operator supports, by feature level, and where that is written.

The versions of a published page disagree: the earlier ones of the two scans list UINT16 where the later ones list
INT32. Both are in the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

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

__all__ = ["DIRECTML", "EXTENSIONS", "Source", "Support", "introduced", "support"]

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
