"""DirectML's constants and HRESULTs, with the names and values of DirectML.h.

Enumerators are there twice, as in C++: ``DML_AXIS_DIRECTION.DML_AXIS_DIRECTION_DECREASING`` and
``DML_AXIS_DIRECTION_DECREASING`` are the same object. Each enumeration is unpacked into names of the module, in its
order; iteration over flags leaves out the one that is 0, so that theirs are taken from ``__members__``.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Final


class _HeaderEnum(IntEnum):
    """An enumerator's repr is its name in the header, so that a description's repr is the code that makes it."""

    def __repr__(self) -> str:
        return self.name


class _HeaderFlags(IntFlag):
    """As `_HeaderEnum`; several flags are joined with ``|``."""

    def __repr__(self) -> str:
        return self.name or f"{type(self).__name__}({int(self)})"


class DML_TENSOR_DATA_TYPE(_HeaderEnum):
    """The type of a tensor's elements."""

    DML_TENSOR_DATA_TYPE_UNKNOWN = 0
    DML_TENSOR_DATA_TYPE_FLOAT32 = 1
    DML_TENSOR_DATA_TYPE_FLOAT16 = 2
    DML_TENSOR_DATA_TYPE_UINT32 = 3
    DML_TENSOR_DATA_TYPE_UINT16 = 4
    DML_TENSOR_DATA_TYPE_UINT8 = 5
    DML_TENSOR_DATA_TYPE_INT32 = 6
    DML_TENSOR_DATA_TYPE_INT16 = 7
    DML_TENSOR_DATA_TYPE_INT8 = 8
    DML_TENSOR_DATA_TYPE_FLOAT64 = 9
    DML_TENSOR_DATA_TYPE_UINT64 = 10
    DML_TENSOR_DATA_TYPE_INT64 = 11
    DML_TENSOR_DATA_TYPE_UINT4 = 12
    DML_TENSOR_DATA_TYPE_INT4 = 13


(
    DML_TENSOR_DATA_TYPE_UNKNOWN,
    DML_TENSOR_DATA_TYPE_FLOAT32,
    DML_TENSOR_DATA_TYPE_FLOAT16,
    DML_TENSOR_DATA_TYPE_UINT32,
    DML_TENSOR_DATA_TYPE_UINT16,
    DML_TENSOR_DATA_TYPE_UINT8,
    DML_TENSOR_DATA_TYPE_INT32,
    DML_TENSOR_DATA_TYPE_INT16,
    DML_TENSOR_DATA_TYPE_INT8,
    DML_TENSOR_DATA_TYPE_FLOAT64,
    DML_TENSOR_DATA_TYPE_UINT64,
    DML_TENSOR_DATA_TYPE_INT64,
    DML_TENSOR_DATA_TYPE_UINT4,
    DML_TENSOR_DATA_TYPE_INT4,
) = DML_TENSOR_DATA_TYPE


class DML_TENSOR_TYPE(_HeaderEnum):
    """The kind of description that a DML_TENSOR_DESC holds."""

    DML_TENSOR_TYPE_INVALID = 0
    DML_TENSOR_TYPE_BUFFER = 1


DML_TENSOR_TYPE_INVALID, DML_TENSOR_TYPE_BUFFER = DML_TENSOR_TYPE


class DML_TENSOR_FLAGS(_HeaderFlags):
    """Options of a tensor."""

    DML_TENSOR_FLAG_NONE = 0
    DML_TENSOR_FLAG_OWNED_BY_DML = 1


DML_TENSOR_FLAG_NONE, DML_TENSOR_FLAG_OWNED_BY_DML = DML_TENSOR_FLAGS.__members__.values()


class DML_OPERATOR_TYPE(_HeaderEnum):
    """The operators of this package, with DirectML's numbers."""

    DML_OPERATOR_INVALID = 0
    DML_OPERATOR_ELEMENT_WISE_ROUND = 99
    DML_OPERATOR_CUMULATIVE_SUMMATION = 105
    DML_OPERATOR_CUMULATIVE_PRODUCT = 145


(
    DML_OPERATOR_INVALID,
    DML_OPERATOR_ELEMENT_WISE_ROUND,
    DML_OPERATOR_CUMULATIVE_SUMMATION,
    DML_OPERATOR_CUMULATIVE_PRODUCT,
) = DML_OPERATOR_TYPE


class DML_AXIS_DIRECTION(_HeaderEnum):
    """The direction in which an axis is traversed."""

    DML_AXIS_DIRECTION_INCREASING = 0
    DML_AXIS_DIRECTION_DECREASING = 1


DML_AXIS_DIRECTION_INCREASING, DML_AXIS_DIRECTION_DECREASING = DML_AXIS_DIRECTION


class DML_ROUNDING_MODE(_HeaderEnum):
    """How to round to an integer; TOWARD_INFINITY rounds halves away from zero, it is no ceiling."""

    DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN = 0
    DML_ROUNDING_MODE_TOWARD_ZERO = 1
    DML_ROUNDING_MODE_TOWARD_INFINITY = 2


(
    DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN,
    DML_ROUNDING_MODE_TOWARD_ZERO,
    DML_ROUNDING_MODE_TOWARD_INFINITY,
) = DML_ROUNDING_MODE


class DML_FEATURE_LEVEL(_HeaderEnum):
    """A set of operators, types and dimension counts; each level includes the ones before."""

    DML_FEATURE_LEVEL_1_0 = 0x1000
    DML_FEATURE_LEVEL_2_0 = 0x2000
    DML_FEATURE_LEVEL_2_1 = 0x2100
    DML_FEATURE_LEVEL_3_0 = 0x3000
    DML_FEATURE_LEVEL_3_1 = 0x3100
    DML_FEATURE_LEVEL_4_0 = 0x4000
    DML_FEATURE_LEVEL_4_1 = 0x4100
    DML_FEATURE_LEVEL_5_0 = 0x5000
    DML_FEATURE_LEVEL_5_1 = 0x5100
    DML_FEATURE_LEVEL_5_2 = 0x5200
    DML_FEATURE_LEVEL_6_0 = 0x6000
    DML_FEATURE_LEVEL_6_1 = 0x6100
    DML_FEATURE_LEVEL_6_2 = 0x6200
    DML_FEATURE_LEVEL_6_3 = 0x6300
    DML_FEATURE_LEVEL_6_4 = 0x6400


(
    DML_FEATURE_LEVEL_1_0,
    DML_FEATURE_LEVEL_2_0,
    DML_FEATURE_LEVEL_2_1,
    DML_FEATURE_LEVEL_3_0,
    DML_FEATURE_LEVEL_3_1,
    DML_FEATURE_LEVEL_4_0,
    DML_FEATURE_LEVEL_4_1,
    DML_FEATURE_LEVEL_5_0,
    DML_FEATURE_LEVEL_5_1,
    DML_FEATURE_LEVEL_5_2,
    DML_FEATURE_LEVEL_6_0,
    DML_FEATURE_LEVEL_6_1,
    DML_FEATURE_LEVEL_6_2,
    DML_FEATURE_LEVEL_6_3,
    DML_FEATURE_LEVEL_6_4,
) = DML_FEATURE_LEVEL


class DML_FEATURE(_HeaderEnum):
    """What IDMLDevice::CheckFeatureSupport can be asked."""

    DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT = 0
    DML_FEATURE_FEATURE_LEVELS = 1


DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT, DML_FEATURE_FEATURE_LEVELS = DML_FEATURE


class DML_EXECUTION_FLAGS(_HeaderFlags):
    """Options of a compiled operator."""

    DML_EXECUTION_FLAG_NONE = 0
    DML_EXECUTION_FLAG_ALLOW_HALF_PRECISION_COMPUTATION = 1
    DML_EXECUTION_FLAG_DISABLE_META_COMMANDS = 2
    DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE = 4


(
    DML_EXECUTION_FLAG_NONE,
    DML_EXECUTION_FLAG_ALLOW_HALF_PRECISION_COMPUTATION,
    DML_EXECUTION_FLAG_DISABLE_META_COMMANDS,
    DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE,
) = DML_EXECUTION_FLAGS.__members__.values()


class DML_CREATE_DEVICE_FLAGS(_HeaderFlags):
    """Options of a device."""

    DML_CREATE_DEVICE_FLAG_NONE = 0
    DML_CREATE_DEVICE_FLAG_DEBUG = 1


DML_CREATE_DEVICE_FLAG_NONE, DML_CREATE_DEVICE_FLAG_DEBUG = DML_CREATE_DEVICE_FLAGS.__members__.values()


class DML_BINDING_TYPE(_HeaderEnum):
    """The kind of description that a DML_BINDING_DESC holds."""

    DML_BINDING_TYPE_NONE = 0
    DML_BINDING_TYPE_BUFFER = 1
    DML_BINDING_TYPE_BUFFER_ARRAY = 2


DML_BINDING_TYPE_NONE, DML_BINDING_TYPE_BUFFER, DML_BINDING_TYPE_BUFFER_ARRAY = DML_BINDING_TYPE

DML_TENSOR_DIMENSION_COUNT_MAX: Final = 5
"""The most dimensions of a tensor below DML_FEATURE_LEVEL_3_0."""
DML_TENSOR_DIMENSION_COUNT_MAX1: Final = 8
"""The most dimensions of a tensor from DML_FEATURE_LEVEL_3_0 on."""
DML_TEMPORARY_BUFFER_ALIGNMENT: Final = 256
"""The alignment, in bytes, of a temporary resource's offset."""
DML_PERSISTENT_BUFFER_ALIGNMENT: Final = 256
"""The alignment, in bytes, of a persistent resource's offset."""
DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT: Final = 16
"""The least alignment, in bytes, of a tensor's offset in its buffer."""

# HRESULTs are unsigned here, as they are written; in C++ they are signed, so that the same code is a negative number.
S_OK: Final = 0
"""All is well."""
E_INVALIDARG: Final = 0x80070057
"""An argument breaks a rule."""
E_OUTOFMEMORY: Final = 0x8007000E
"""The device or the host has no memory left."""
DXGI_ERROR_UNSUPPORTED: Final = 0x887A0004
"""The device lacks what was asked for."""
DXGI_ERROR_DEVICE_REMOVED: Final = 0x887A0005
"""The device was removed."""
DXGI_ERROR_INVALID_CALL: Final = 0x887A0001
"""The call is not valid in this state."""

# Type checkers read statements that assign __all__, and would hide whatever they cannot find in one. Without such a
# statement they take every name that is defined here as public, which is just what this line says.
globals()["__all__"] = [name for name in list(globals()) if name.startswith(("DML_", "S_", "E_", "DXGI_"))]
