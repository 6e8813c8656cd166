"""What IDMLDevice::CheckFeatureSupport takes and returns, field for field."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import SupportsIndex

from .constants import DML_FEATURE_LEVEL, DML_TENSOR_DATA_TYPE
from .fields import assign, frozen, to_enumerator, to_items, to_uint

__all__ = [
    "DML_FEATURE_DATA_FEATURE_LEVELS",
    "DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT",
    "DML_FEATURE_QUERY_FEATURE_LEVELS",
    "DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT",
]


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
