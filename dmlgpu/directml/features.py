"""The answers of IDMLDevice::CheckFeatureSupport."""

from __future__ import annotations

from typing import TypeAlias

from ..errors import DirectMLError
from .constants import DML_FEATURE_LEVEL, DML_TENSOR_DATA_TYPE
from .feature_structs import (
    DML_FEATURE_DATA_FEATURE_LEVELS,
    DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT,
    DML_FEATURE_QUERY_FEATURE_LEVELS,
    DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT,
)
from .hresults import DXGI_ERROR_UNSUPPORTED, invalid_argument
from .support import DIRECTML, introduced, support

__all__ = ["FeatureData", "feature_levels", "tensor_data_type_support"]

FeatureData: TypeAlias = DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT | DML_FEATURE_DATA_FEATURE_LEVELS


def tensor_data_type_support(
    query: DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT, level: DML_FEATURE_LEVEL, extensions: bool, where: str
) -> DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT:
    """Answer whether one of the operators takes an element type at a feature level."""
    if not isinstance(query.DataType, DML_TENSOR_DATA_TYPE):
        raise invalid_argument(f"{where}: DataType is {query.DataType!r}, which is no DML_TENSOR_DATA_TYPE")
    return DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT(
        any(
            query.DataType in support(operator, level, extensions=extensions)
            for operator in DIRECTML
            if introduced(operator) <= level
        )
    )


def feature_levels(
    query: DML_FEATURE_QUERY_FEATURE_LEVELS, level: DML_FEATURE_LEVEL, where: str
) -> DML_FEATURE_DATA_FEATURE_LEVELS:
    """Answer the highest of some levels that is at most `level`; numbers that are no level count as too high."""
    count, levels = query.RequestedFeatureLevelCount, query.RequestedFeatureLevels
    if count != len(levels):
        raise invalid_argument(
            f"{where}: RequestedFeatureLevelCount is {count} while RequestedFeatureLevels has {len(levels)}; they must "
            "agree"
        )
    if not levels:
        raise invalid_argument(f"{where}: RequestedFeatureLevels is empty; name at least one level")
    there = [one for one in levels if isinstance(one, DML_FEATURE_LEVEL) and one <= level]
    if not there:
        asked = ", ".join(repr(one) if isinstance(one, DML_FEATURE_LEVEL) else f"{one:#x}" for one in levels)
        raise DirectMLError(
            DXGI_ERROR_UNSUPPORTED, f"{where}: RequestedFeatureLevels is {asked} while the device has {level!r}"
        )
    return DML_FEATURE_DATA_FEATURE_LEVELS(max(there))
