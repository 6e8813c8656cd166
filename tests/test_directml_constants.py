"""DirectML's constants: every name and value of DirectML.h that the three operators meet."""

from __future__ import annotations

import enum
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import assert_type

import numpy as np
import pytest

from dmlgpu import directml as dml
from dmlgpu.directml import constants
from dmlgpu.dtypes import ELEMENT_TYPES
from dmlgpu.planning.problem import RoundingMode

# enumeration -> (prefix of its enumerators, names and values)
ENUMERATIONS: dict[str, tuple[str, dict[str, int]]] = {
    "DML_TENSOR_DATA_TYPE": (
        "DML_TENSOR_DATA_TYPE_",
        {
            "UNKNOWN": 0,
            "FLOAT32": 1,
            "FLOAT16": 2,
            "UINT32": 3,
            "UINT16": 4,
            "UINT8": 5,
            "INT32": 6,
            "INT16": 7,
            "INT8": 8,
            "FLOAT64": 9,
            "UINT64": 10,
            "INT64": 11,
            "UINT4": 12,
            "INT4": 13,
        },
    ),
    "DML_TENSOR_TYPE": ("DML_TENSOR_TYPE_", {"INVALID": 0, "BUFFER": 1}),
    "DML_TENSOR_FLAGS": ("DML_TENSOR_FLAG_", {"NONE": 0, "OWNED_BY_DML": 1}),
    "DML_OPERATOR_TYPE": (
        "DML_OPERATOR_",
        {"INVALID": 0, "ELEMENT_WISE_ROUND": 99, "CUMULATIVE_SUMMATION": 105, "CUMULATIVE_PRODUCT": 145},
    ),
    "DML_AXIS_DIRECTION": ("DML_AXIS_DIRECTION_", {"INCREASING": 0, "DECREASING": 1}),
    "DML_ROUNDING_MODE": (
        "DML_ROUNDING_MODE_",
        {"HALVES_TO_NEAREST_EVEN": 0, "TOWARD_ZERO": 1, "TOWARD_INFINITY": 2},
    ),
    "DML_FEATURE_LEVEL": (
        "DML_FEATURE_LEVEL_",
        {
            "1_0": 0x1000,
            "2_0": 0x2000,
            "2_1": 0x2100,
            "3_0": 0x3000,
            "3_1": 0x3100,
            "4_0": 0x4000,
            "4_1": 0x4100,
            "5_0": 0x5000,
            "5_1": 0x5100,
            "5_2": 0x5200,
            "6_0": 0x6000,
            "6_1": 0x6100,
            "6_2": 0x6200,
            "6_3": 0x6300,
            "6_4": 0x6400,
        },
    ),
    "DML_FEATURE": ("DML_FEATURE_", {"TENSOR_DATA_TYPE_SUPPORT": 0, "FEATURE_LEVELS": 1}),
    "DML_EXECUTION_FLAGS": (
        "DML_EXECUTION_FLAG_",
        {"NONE": 0, "ALLOW_HALF_PRECISION_COMPUTATION": 1, "DISABLE_META_COMMANDS": 2, "DESCRIPTORS_VOLATILE": 4},
    ),
    "DML_CREATE_DEVICE_FLAGS": ("DML_CREATE_DEVICE_FLAG_", {"NONE": 0, "DEBUG": 1}),
    "DML_BINDING_TYPE": ("DML_BINDING_TYPE_", {"NONE": 0, "BUFFER": 1, "BUFFER_ARRAY": 2}),
}

MACROS = {
    "DML_TENSOR_DIMENSION_COUNT_MAX": 5,
    "DML_TENSOR_DIMENSION_COUNT_MAX1": 8,
    "DML_TEMPORARY_BUFFER_ALIGNMENT": 256,
    "DML_PERSISTENT_BUFFER_ALIGNMENT": 256,
    "DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT": 16,
    "S_OK": 0,
    "E_INVALIDARG": 0x80070057,
    "E_OUTOFMEMORY": 0x8007000E,
    "DXGI_ERROR_UNSUPPORTED": 0x887A0004,
    "DXGI_ERROR_DEVICE_REMOVED": 0x887A0005,
    "DXGI_ERROR_INVALID_CALL": 0x887A0001,
}


@pytest.mark.parametrize("name", ENUMERATIONS)
def test_enumeration_has_the_headers_names_and_values(name: str) -> None:
    prefix, expected = ENUMERATIONS[name]
    enumeration = getattr(dml, name)
    assert {member: int(value) for member, value in enumeration.__members__.items()} == {
        prefix + short: value for short, value in expected.items()
    }
    flags = name.endswith("_FLAGS")
    assert issubclass(enumeration, enum.IntFlag if flags else enum.IntEnum)


@pytest.mark.parametrize("name", ENUMERATIONS)
def test_every_enumerator_is_a_name_of_the_module(name: str) -> None:
    for member, value in getattr(dml, name).__members__.items():
        assert getattr(dml, member) is value
        assert member in dml.__all__
        assert repr(value) == member


@pytest.mark.parametrize("name", MACROS)
def test_macro(name: str) -> None:
    assert getattr(dml, name) == MACROS[name]
    assert name in dml.__all__


def test_nothing_else_is_defined() -> None:
    defined = {name for name in vars(constants) if re.match(r"(DML|S|E|DXGI)_", name)}
    enumerators = {prefix + short for prefix, members in ENUMERATIONS.values() for short in members}
    expected = set(ENUMERATIONS) | enumerators | set(MACROS)
    assert defined == expected
    assert set(vars(constants)["__all__"]) == expected


def test_all_is_complete_and_unique() -> None:
    assert len(dml.__all__) == len(set(dml.__all__))
    assert all(hasattr(dml, name) for name in dml.__all__)


def test_element_types_agree_with_the_data_types() -> None:
    for element in ELEMENT_TYPES:
        value = dml.DML_TENSOR_DATA_TYPE(element.dml_value)
        assert value.name == f"DML_TENSOR_DATA_TYPE_{np.dtype(element.name).name.upper()}"


def test_rounding_modes_agree_with_the_kernels() -> None:
    assert [mode.value for mode in RoundingMode] == [int(mode) for mode in dml.DML_ROUNDING_MODE]


def test_flags_combine_and_print_as_code() -> None:
    both = dml.DML_EXECUTION_FLAG_DISABLE_META_COMMANDS | dml.DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE
    assert_type(both, dml.DML_EXECUTION_FLAGS)  # that type checkers know the module's names, `make lint` checks
    assert both == 6
    assert eval(repr(both), vars(dml)) == both


def test_feature_levels_are_ordered() -> None:
    levels = list(dml.DML_FEATURE_LEVEL)
    assert levels == sorted(levels)
    assert dml.DML_FEATURE_LEVEL_2_1 < dml.DML_FEATURE_LEVEL_3_0


def test_constants_pickle() -> None:
    value = assert_type(dml.DML_TENSOR_DATA_TYPE_FLOAT16, dml.DML_TENSOR_DATA_TYPE)
    assert pickle.loads(pickle.dumps(value)) is value


def test_importing_opens_no_device() -> None:
    code = "import sys; from dmlgpu import directml; sys.exit('wgpu' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_public_name_is_documented() -> None:
    guide = (Path(__file__).parents[1] / "docs" / "directml.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`(\w+)`", guide))
    assert set(dml.__all__) - documented == set()
    for prefix, members in ENUMERATIONS.values():
        for short, value in members.items():
            number = f"0x{value:04X}" if prefix == "DML_FEATURE_LEVEL_" else str(value)
            assert f"`{prefix}{short}` {number}" in guide
