"""DirectML's rules: each broken once, by feature level, and the way from a valid description to a problem."""

from __future__ import annotations

import itertools
import pickle
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmlgpu import directml as dml
from dmlgpu.directml.rules import DIRECTML, EXTENSIONS, Source, validate_operator
from dmlgpu.dtypes import ELEMENT_TYPES, by_name
from dmlgpu.errors import ArrayTypeError, DirectMLError
from dmlgpu.layout import Layout
from dmlgpu.planning.problem import Dimension, Operator, RoundingMode, ScanOptions, round_problem, scan_problem

from .directml_descriptions import PRODUCT, ROUND, SUM, descriptions, structs

F32 = dml.DML_TENSOR_DATA_TYPE_FLOAT32
F16 = dml.DML_TENSOR_DATA_TYPE_FLOAT16
I32 = dml.DML_TENSOR_DATA_TYPE_INT32
I64 = dml.DML_TENSOR_DATA_TYPE_INT64
U8 = dml.DML_TENSOR_DATA_TYPE_UINT8
OWNED = dml.DML_TENSOR_FLAG_OWNED_BY_DML


def tensor(**fields: Any) -> dml.DML_BUFFER_TENSOR_DESC:
    return dml.DML_BUFFER_TENSOR_DESC(**{"DataType": F32, "Sizes": (2, 3), **fields})


def tensors(**fields: Any) -> dict[str, dml.DML_BUFFER_TENSOR_DESC]:
    """An input and an output that are alike."""
    return {"InputTensor": tensor(**fields), "OutputTensor": tensor(**fields)}


def total(**fields: Any) -> dml.DML_CUMULATIVE_SUMMATION_OPERATOR_DESC:
    """A cumulative sum of FLOAT32 (2, 3) along axis 1 but for `fields`."""
    return SUM(**{**tensors(), "Axis": 1, **fields})


def product(**fields: Any) -> dml.DML_CUMULATIVE_PRODUCT_OPERATOR_DESC:
    return PRODUCT(**{**tensors(), "Axis": 1, **fields})


def rounded(**fields: Any) -> dml.DML_ELEMENT_WISE_ROUND_OPERATOR_DESC:
    return ROUND(**{**tensors(), **fields})


# What is wrong, and a pattern for the message after the operator's name. Each row breaks one rule.
INVALID: list[tuple[Any, str]] = [
    # The tensor and its kind
    (total(InputTensor=None), r"CUMULATIVE_SUMMATION: tensor 'InputTensor' is null"),
    (total(OutputTensor=None), r"CUMULATIVE_SUMMATION: tensor 'OutputTensor' is null"),
    (product(InputTensor=None), r"CUMULATIVE_PRODUCT: tensor 'InputTensor' is null"),
    (rounded(OutputTensor=None), r"ELEMENT_WISE_ROUND: tensor 'OutputTensor' is null"),
    (total(InputTensor=dml.DML_TENSOR_DESC(0, tensor())), r"'InputTensor' has Type DML_TENSOR_TYPE_INVALID; .*_BUFFER"),
    (total(OutputTensor=dml.DML_TENSOR_DESC(0, tensor())), r"'OutputTensor' has Type DML_TENSOR_TYPE_INVALID"),
    (total(InputTensor=dml.DML_TENSOR_DESC(2, tensor())), r"'InputTensor' has Type 2; .*DML_TENSOR_TYPE_BUFFER"),
    (rounded(InputTensor=dml.DML_TENSOR_DESC(1, None)), r"ROUND: tensor 'InputTensor' has a null Desc"),
    (product(OutputTensor=dml.DML_TENSOR_DESC(1, None)), r"PRODUCT: tensor 'OutputTensor' has a null Desc"),
    # DataType
    (total(**tensors(DataType=0)), r"'InputTensor' has DataType DML_TENSOR_DATA_TYPE_UNKNOWN; supported types are DML"),
    (total(OutputTensor=tensor(DataType=0)), r"'OutputTensor' has DataType DML_TENSOR_DATA_TYPE_UNKNOWN"),
    (product(**tensors(DataType=12)), r"'InputTensor' has DataType DML_TENSOR_DATA_TYPE_UINT4"),
    (rounded(**tensors(DataType=13)), r"'InputTensor' has DataType DML_TENSOR_DATA_TYPE_INT4"),
    (total(**tensors(DataType=14)), r"'InputTensor' has DataType 14;"),
    (total(**tensors(DataType=-1)), r"'InputTensor' has DataType -1;"),
    (
        total(OutputTensor=tensor(DataType=F16)),
        r"SUMMATION: tensor 'OutputTensor' has DataType .*_FLOAT16 while tensor 'InputTensor' has DataType .*_FLOAT32",
    ),
    (product(InputTensor=tensor(DataType=I32)), r"'OutputTensor' has .*_FLOAT32 while .*'InputTensor' has .*_INT32"),
    (rounded(OutputTensor=tensor(DataType=I32)), r"'OutputTensor' has .*_INT32 while .*'InputTensor' has .*_FLOAT32"),
    # Flags
    (total(InputTensor=tensor(Flags=2)), r"'InputTensor' has Flags 0x2; only DML_TENSOR_FLAG_OWNED_BY_DML"),
    (total(InputTensor=tensor(Flags=-1)), r"'InputTensor' has Flags -0x1"),
    (rounded(OutputTensor=tensor(Flags=3)), r"'OutputTensor' has Flags 0x3"),
    (total(OutputTensor=tensor(Flags=OWNED)), r"'OutputTensor' has Flags DML_TENSOR_FLAG_OWNED_BY_DML; only an input"),
    (product(OutputTensor=tensor(Flags=OWNED)), r"'OutputTensor' has Flags DML_TENSOR_FLAG_OWNED_BY_DML"),
    (rounded(**tensors(Flags=OWNED)), r"'OutputTensor' has Flags DML_TENSOR_FLAG_OWNED_BY_DML"),
    # DimensionCount, Sizes, Strides
    (total(**tensors(Sizes=())), r"'InputTensor' has DimensionCount 0; it must be 1 to 8"),
    (rounded(**tensors(Sizes=())), r"'InputTensor' has DimensionCount 0"),
    (total(**tensors(Sizes=(1,) * 9)), r"'InputTensor' has DimensionCount 9; it must be 1 to 8"),
    (rounded(OutputTensor=tensor(Sizes=(1,) * 9)), r"'OutputTensor' has DimensionCount 9"),
    (total(**tensors(DimensionCount=3)), r"'InputTensor' has DimensionCount 3 while Sizes has 2 values \(2, 3\)"),
    (total(**tensors(DimensionCount=0)), r"'InputTensor' has DimensionCount 0 while Sizes has 2 values"),
    (total(**tensors(DimensionCount=1)), r"'InputTensor' has DimensionCount 1 while Sizes has 2 values"),
    (
        total(InputTensor=tensor(Strides=(1,))),
        r"'InputTensor' has DimensionCount 2 while Strides has 1 value \(1,\); give it exactly as many, or leave Dim",
    ),
    (total(OutputTensor=tensor(Strides=())), r"'OutputTensor' has DimensionCount 2 while Strides has 0 values"),
    (rounded(OutputTensor=tensor(Strides=(6, 3, 1))), r"'OutputTensor' has DimensionCount 2 while Strides has 3"),
    (total(**tensors(Sizes=(2, 0))), r"'InputTensor' has Sizes \(2, 0\); no size may be 0"),
    (product(**tensors(Sizes=(0,)), Axis=0), r"'InputTensor' has Sizes \(0,\); no size may be 0"),
    (rounded(OutputTensor=tensor(Sizes=(0, 3))), r"'OutputTensor' has Sizes \(0, 3\); no size may be 0"),
    (total(**tensors(Sizes=(2**16, 2**16))), r"'InputTensor' has Sizes .*, 4294967296 elements; at most 2\^32-1"),
    (total(**tensors(Sizes=(2**32 - 1, 2))), r"'InputTensor' has Sizes .*, 8589934590 elements"),
    (rounded(**tensors(Sizes=(2**31, 1, 2), Strides=(0, 0, 0))), r"4294967296 elements; at most 2\^32-1"),
    # The total size: gaps count, between elements and behind them
    (
        total(InputTensor=tensor(Strides=(2**32 - 3, 1))),
        r"Strides \(4294967293, 1\), which reach over 4294967296 elements; the total size of a tensor, gaps between",
    ),
    (product(OutputTensor=tensor(Strides=(1, 2**31))), r"'OutputTensor' has .*, which reach over 4294967298 elements"),
    (rounded(**tensors(DataType=F16, Sizes=(2, 1), Strides=(2**32 - 1, 0))), r"which reach over 4294967296 elements"),
    (total(**tensors(DataType=U8, Sizes=(2**16, 2), Strides=(2**16, 2**16))), r"reach over 4294967297 elements"),
    (
        rounded(InputTensor=tensor(Sizes=(2**29,), Strides=(2**32 - 1,)), OutputTensor=tensor(Sizes=(2**29,))),
        r"ROUND: tensor 'InputTensor' has Sizes \(536870912,\) and Strides .* reach over 2305843004381855746 elements",
    ),
    (
        total(InputTensor=tensor(Sizes=(2**31, 1), Strides=(2**32 - 1, 1), TotalTensorSizeInBytes=2**34)),
        r"'InputTensor' has Sizes .*, which reach over 9223372030412324866 elements",
    ),
    (
        total(InputTensor=tensor(TotalTensorSizeInBytes=2**34)),
        r"17179869184; the total size .* at most 2\^32-1 elements, which are 17179869180 bytes of .*_FLOAT32$",
    ),
    (
        rounded(OutputTensor=tensor(TotalTensorSizeInBytes=2**64 - 4)),
        r"'OutputTensor' has .* 18446744073709551612; the t",
    ),
    (total(**tensors(DataType=U8, TotalTensorSizeInBytes=2**32 + 4)), r"which are 4294967296 bytes of .*_UINT8"),
    (product(**tensors(DataType=I64, TotalTensorSizeInBytes=2**35)), r"which are 34359738360 bytes of .*_INT64"),
    (
        total(OutputTensor=tensor(Sizes=(3, 2))),
        r"'OutputTensor' has Sizes \(3, 2\) while tensor 'InputTensor' has Sizes \(2, 3\); they must be the same",
    ),
    (rounded(OutputTensor=tensor(Sizes=(1, 3))), r"'OutputTensor' has Sizes \(1, 3\) while .* \(2, 3\)"),
    (
        total(OutputTensor=tensor(Sizes=(2, 3, 1))),
        r"'OutputTensor' has DimensionCount 3 while tensor 'InputTensor' has DimensionCount 2; they must be the same",
    ),
    (product(InputTensor=tensor(Sizes=(6,))), r"'OutputTensor' has DimensionCount 2 while .* DimensionCount 1"),
    # Output strides
    (
        total(OutputTensor=tensor(Strides=(0, 1))),
        r"'OutputTensor' has Sizes \(2, 3\) and Strides \(0, 1\), with which elements share memory",
    ),
    (total(OutputTensor=tensor(Strides=(3, 0))), r"'OutputTensor' has .* Strides \(3, 0\), with which"),
    (product(OutputTensor=tensor(Strides=(2, 1))), r"'OutputTensor' has .* Strides \(2, 1\), with which"),
    (rounded(OutputTensor=tensor(Strides=(1, 1))), r"'OutputTensor' has .* Strides \(1, 1\), with which"),
    (rounded(OutputTensor=tensor(Strides=(0, 0))), r"'OutputTensor' has .* Strides \(0, 0\), with which"),
    (
        total(**tensors(Sizes=(2, 3), Strides=(4, 2))),
        r"'OutputTensor' has .* Strides \(4, 2\), with which elements share",
    ),
    # Interleaved outputs, some of which share memory in three dimensions together
    (
        total(**tensors(Sizes=(3, 2), Strides=(2, 3))),
        r"Strides \(2, 3\), with which dimensions interleave; each stride of an output must step over all",
    ),
    (rounded(**tensors(Sizes=(2, 2, 2), Strides=(2, 3, 5))), r"Strides \(2, 3, 5\), with which dimensions interleave"),
    (product(**tensors(Sizes=(3, 2, 1), Strides=(2, 3, 0))), r"Strides \(2, 3, 0\), with which dimensions interleave"),
    (total(**tensors(Sizes=(3, 2), Strides=(6, 7))), r"Strides \(6, 7\), with which dimensions interleave"),
    (total(**tensors(Sizes=(8, 7), Strides=(6, 7))), r"Strides \(6, 7\), with which elements share memory"),
    # TotalTensorSizeInBytes
    (
        total(InputTensor=tensor(TotalTensorSizeInBytes=20)),
        r"'InputTensor' has TotalTensorSizeInBytes 20 while Sizes \(2, 3\) and packed Strides need at least 24$",
    ),
    (total(OutputTensor=tensor(TotalTensorSizeInBytes=0)), r"'OutputTensor' has TotalTensorSizeInBytes 0 while"),
    (
        rounded(InputTensor=tensor(Strides=(4, 1), TotalTensorSizeInBytes=24)),
        r"'InputTensor' has TotalTensorSizeInBytes 24 while Sizes \(2, 3\) and Strides \(4, 1\) need at least 28",
    ),
    (total(InputTensor=tensor(TotalTensorSizeInBytes=26)), r"'InputTensor' has .* 26; it must be a multiple of 4"),
    (product(OutputTensor=tensor(TotalTensorSizeInBytes=2**64 - 1)), r"'OutputTensor' has .*; it must be a multiple"),
    (
        rounded(**tensors(DataType=F16, Sizes=(3,), TotalTensorSizeInBytes=6)),
        r"'InputTensor' has TotalTensorSizeInBytes 6 while Sizes \(3,\) and packed Strides need at least 8",
    ),
    # 32-bit arithmetic would find room for this.
    (
        total(InputTensor=tensor(Sizes=(32769, 2), Strides=(32768, 0), TotalTensorSizeInBytes=4)),
        r"'InputTensor' has TotalTensorSizeInBytes 4 while .* need at least 4294967300",
    ),
    # GuaranteedBaseOffsetAlignment
    (
        total(InputTensor=tensor(GuaranteedBaseOffsetAlignment=2)),
        r"'InputTensor' has GuaranteedBaseOffsetAlignment 2; it must be 0 or a power of two of at least .* size, 4",
    ),
    (total(OutputTensor=tensor(GuaranteedBaseOffsetAlignment=12)), r"'OutputTensor' has Guarant.* 12; it must be 0"),
    (product(InputTensor=tensor(GuaranteedBaseOffsetAlignment=2**32 - 1)), r"'InputTensor' has Guarant.* 4294967295;"),
    (rounded(**tensors(DataType=F16, GuaranteedBaseOffsetAlignment=1)), r"has Guarant.* 1; .* size, 2"),
    # Axis, AxisDirection, RoundingMode
    (
        total(Axis=2),
        r"CUMULATIVE_SUMMATION: Axis is 2 while tensor 'InputTensor' has DimensionCount 2; Axis must be less",
    ),
    (product(Axis=2**32 - 1), r"CUMULATIVE_PRODUCT: Axis is 4294967295 while .* DimensionCount 2"),
    (total(AxisDirection=2), r"CUMULATIVE_SUMMATION: AxisDirection is 2; it must be one of DML_AXIS_DIRECTION_INCREA"),
    (product(AxisDirection=-1), r"CUMULATIVE_PRODUCT: AxisDirection is -1; it must be one of"),
    (rounded(RoundingMode=3), r"ELEMENT_WISE_ROUND: RoundingMode is 3; it must be one of DML_ROUNDING_MODE_HALVES"),
    (rounded(RoundingMode=-1), r"ELEMENT_WISE_ROUND: RoundingMode is -1"),
    # DML_OPERATOR_DESC
    (dml.DML_OPERATOR_DESC(0, total()), r"DML_OPERATOR_DESC: Type is DML_OPERATOR_INVALID; the operators here are DML"),
    (dml.DML_OPERATOR_DESC(1, rounded()), r"DML_OPERATOR_DESC: Type is 1; the operators here are"),
    (dml.DML_OPERATOR_DESC(105, None), r"Type is DML_OPERATOR_CUMULATIVE_SUMMATION while Desc is null"),
    (
        dml.DML_OPERATOR_DESC(dml.DML_OPERATOR_CUMULATIVE_SUMMATION, product()),
        r"Type is DML_OPERATOR_CUMULATIVE_SUMMATION while Desc is a DML_CUMULATIVE_PRODUCT_OPERATOR_DESC; they must",
    ),
    (dml.DML_OPERATOR_DESC(99, total()), r"Type is DML_OPERATOR_ELEMENT_WISE_ROUND while Desc is a DML_CUMULATIVE_SUM"),
    (dml.DML_OPERATOR_DESC(105, total(Axis=7)), r"CUMULATIVE_SUMMATION: Axis is 7 while"),
    # Types that no extension adds
    (rounded(**tensors(DataType=I32)), r"ROUND: tensor 'InputTensor' has DataType DML_TENSOR_DATA_TYPE_INT32 with Dim"),
    (rounded(**tensors(DataType=U8)), r"has DataType DML_TENSOR_DATA_TYPE_UINT8 with DimensionCount 2 while DML_FEAT"),
    (rounded(**tensors(DataType=11)), r"has DataType DML_TENSOR_DATA_TYPE_INT64 with DimensionCount 2 while DML_FEAT"),
]


@pytest.mark.parametrize(("desc", "message"), INVALID, ids=[f"{i}-{m}" for i, (_, m) in enumerate(INVALID)])
def test_a_broken_rule_is_invalid(desc: Any, message: str) -> None:
    with pytest.raises(DirectMLError, match=message) as caught:
        validate_operator(desc, extensions=True)
    assert caught.value.hresult == dml.E_INVALIDARG


@pytest.mark.parametrize(
    ("desc", "kind"),
    [
        (None, "None"),
        (105, "an int"),
        (tensor(), "a DML_BUFFER_TENSOR_DESC"),
        ("sum", "a str"),
        (dml.DML_TENSOR_DESC(1, tensor()), "a DML_TENSOR_DESC"),
    ],
    ids=repr,
)
def test_what_is_no_description_is_a_type_error(desc: Any, kind: str) -> None:
    with pytest.raises(ArrayTypeError, match=f"^desc is {kind}; give a DML_OPERATOR_DESC"):
        validate_operator(desc)


VALID = [
    total(),
    product(Axis=0, AxisDirection=1, HasExclusiveProduct=True),
    rounded(RoundingMode=2),
    dml.DML_OPERATOR_DESC(105, total()),
    dml.DML_OPERATOR_DESC(145, product()),
    dml.DML_OPERATOR_DESC(99, rounded()),
    total(InputTensor=tensor(Flags=OWNED)),
    total(InputTensor=tensor(Strides=(0, 0))),  # broadcast, the axis too
    total(InputTensor=tensor(Strides=(1, 1))),  # overlapping windows
    total(InputTensor=tensor(Strides=(0, 1))),
    total(OutputTensor=tensor(Strides=(1, 2))),  # transposed
    total(OutputTensor=tensor(Strides=(4, 1))),  # padded
    total(**tensors(Sizes=(1, 3), Strides=(0, 1))),  # stride 0 on a dimension of size 1
    total(**tensors(Sizes=(1,) * 8), Axis=7),
    total(**tensors(Sizes=(2**32 - 1,)), Axis=0),
    total(**tensors(GuaranteedBaseOffsetAlignment=2**31)),
    total(**tensors(TotalTensorSizeInBytes=2**34 - 4)),  # as many bytes as 2^32 - 1 elements
    rounded(InputTensor=tensor(Sizes=(2**32 - 1,), Strides=(0,)), OutputTensor=tensor(Sizes=(2**32 - 1,))),
    total(**tensors(Sizes=(2, 3), Strides=(2**32 - 4, 1))),  # the last element is the last that there may be
    total(**tensors(Sizes=(2, 1), Strides=(2**32 - 2, 2**32 - 1))),  # a stride that is never stepped
]


@pytest.mark.parametrize("desc", VALID, ids=range(len(VALID)))
def test_what_the_rules_allow_is_valid(desc: Any) -> None:
    operator = validate_operator(desc)
    struct = desc.Desc if isinstance(desc, dml.DML_OPERATOR_DESC) else desc
    assert operator.desc is struct
    assert operator.input is struct.InputTensor.Desc
    assert operator.output is struct.OutputTensor.Desc
    assert operator.element == by_name("float32")


# Feature levels: operator, type, dimension counts from level to level, as the reference pages have them.
NEVER = 0x7000
SCANNED = {"FLOAT32", "FLOAT16", "INT32", "UINT32"}


def first_level(operator: str, data_type: str, count: int, *, extensions: bool) -> int:
    """The level from which on a type is supported, written out independently of the table under test."""
    if operator == "ELEMENT_WISE_ROUND":
        if data_type in ("FLOAT32", "FLOAT16"):
            return 0x2100 if count == 4 else 0x3000
        return 0x2100 if data_type == "FLOAT64" and extensions else NEVER
    first = 0x2100 if operator == "CUMULATIVE_SUMMATION" else 0x3100
    if data_type in SCANNED or (data_type == "UINT16" and count == 4):
        return first if count == 4 else 0x4000
    if data_type == "UINT16" and operator == "CUMULATIVE_PRODUCT" and not extensions:
        return 0x4000
    if data_type in ("INT64", "UINT64"):
        return 0x5000
    return first if extensions else NEVER


@pytest.mark.parametrize("extensions", [False, True])
@pytest.mark.parametrize("level", dml.DML_FEATURE_LEVEL, ids=lambda level: level.name)
@pytest.mark.parametrize("operator", [total, product, rounded], ids=["sum", "product", "round"])
def test_feature_levels(operator: Any, level: dml.DML_FEATURE_LEVEL, extensions: bool) -> None:
    name = re.sub("^DML_|_OPERATOR_DESC$", "", type(operator()).__name__)
    for element in ELEMENT_TYPES:
        data_type = element.name.upper()
        for count in range(1, 9):
            axis = {} if operator is rounded else {"Axis": 0}
            desc = operator(**tensors(DataType=element.dml_value, Sizes=(2,) * count), **axis)
            if level >= first_level(name, data_type, count, extensions=extensions):
                assert validate_operator(desc, feature_level=level, extensions=extensions).element == element
            else:
                with pytest.raises(DirectMLError, match=level.name) as caught:
                    validate_operator(desc, feature_level=level, extensions=extensions)
                assert caught.value.hresult == dml.E_INVALIDARG


def test_the_tables_cover_the_operators_and_share_nothing() -> None:
    assert set(DIRECTML) == set(EXTENSIONS) == set(dml.DML_OPERATOR_TYPE) - {dml.DML_OPERATOR_INVALID}
    for operator, entries in EXTENSIONS.items():
        promised = {(t, n) for entry in DIRECTML[operator] for t in entry.types for n in entry.dimension_counts}
        added = {(t, n) for entry in entries for t in entry.types for n in entry.dimension_counts}
        assert added - promised
        if operator != dml.DML_OPERATOR_ELEMENT_WISE_ROUND:
            # The extension fills what UINT16 lacks: other counts than four, for products below level 4_0 only.
            counts = {4} if operator == dml.DML_OPERATOR_CUMULATIVE_SUMMATION else set(range(1, 9))
            assert added & promised == {(dml.DML_TENSOR_DATA_TYPE_UINT16, count) for count in counts}


def test_what_is_inferred_adds_nothing() -> None:
    """A row that is inferred repeats what a lower level has, and a row with another source adds something."""
    for entries in DIRECTML.values():
        for entry in entries:
            below = {
                (kind, count)
                for one in entries
                for kind in one.types
                for count in one.dimension_counts
                if one.level < entry.level
            }
            own = {(kind, count) for kind in entry.types for count in entry.dimension_counts}
            assert (own <= below) == (entry.source is Source.INFERRED), entry
            assert entry.source is not Source.OURS
    assert all(entry.source is Source.OURS for entries in EXTENSIONS.values() for entry in entries)


@pytest.mark.parametrize(
    ("desc", "level", "extensions"),
    [
        (rounded(**tensors(DataType=0)), dml.DML_FEATURE_LEVEL_6_4, False),
        (rounded(**tensors(DataType=12)), dml.DML_FEATURE_LEVEL_2_1, True),
        (total(**tensors(DataType=14)), dml.DML_FEATURE_LEVEL_3_0, False),
        (product(**tensors(DataType=13)), dml.DML_FEATURE_LEVEL_6_4, True),
        (product(InputTensor=tensor(), OutputTensor=tensor(DataType=0)), dml.DML_FEATURE_LEVEL_4_0, False),
    ],
    ids=range(5),
)
def test_supported_types_are_those_of_the_operator_at_the_level(
    desc: Any, level: dml.DML_FEATURE_LEVEL, extensions: bool
) -> None:
    """The list of a message names every type that the operator takes there, and none that it does not."""
    with pytest.raises(DirectMLError) as caught:
        validate_operator(desc, feature_level=level, extensions=extensions)
    listed = set(re.findall(r"DML_TENSOR_DATA_TYPE_\w+", str(caught.value).partition("; supported types are ")[2]))
    name = re.sub("^DML_|_OPERATOR_DESC$", "", type(desc).__name__)
    supported = {
        f"DML_TENSOR_DATA_TYPE_{element.name.upper()}"
        for element in ELEMENT_TYPES
        if any(level >= first_level(name, element.name.upper(), n, extensions=extensions) for n in range(1, 9))
    }
    assert listed == supported


def test_messages_of_feature_levels() -> None:
    with pytest.raises(DirectMLError) as caught:
        validate_operator(product(), feature_level=dml.DML_FEATURE_LEVEL_3_0)
    assert str(caught.value) == (
        "CUMULATIVE_PRODUCT: needs DML_FEATURE_LEVEL_3_1 while the device has DML_FEATURE_LEVEL_3_0; create it with a "
        "higher feature_level_cap"
    )
    with pytest.raises(DirectMLError) as caught:
        validate_operator(total(**tensors(DataType=U8)))
    assert str(caught.value) == (
        "CUMULATIVE_SUMMATION: tensor 'InputTensor' has DataType DML_TENSOR_DATA_TYPE_UINT8 with DimensionCount 2 "
        "while DML_FEATURE_LEVEL_6_4 supports DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_DATA_TYPE_FLOAT16, "
        "DML_TENSOR_DATA_TYPE_INT32, DML_TENSOR_DATA_TYPE_UINT32, DML_TENSOR_DATA_TYPE_INT64, "
        "DML_TENSOR_DATA_TYPE_UINT64 with 1 to 8 dimensions and DML_TENSOR_DATA_TYPE_UINT16 with 4 dimensions; "
        "extensions=True admits it"
    )


# From a valid description to a problem


def test_scan_becomes_a_problem() -> None:
    desc = total(InputTensor=tensor(Strides=(0, 2)), OutputTensor=tensor(Strides=(1, 2)), HasExclusiveSum=True)
    problem = validate_operator(desc).problem(input_offset=7, output_offset=100)
    assert problem == scan_problem(
        by_name("float32"),
        Operator.SUM,
        Layout((2, 3), (0, 2), 7),
        Layout((2, 3), (1, 2), 100),
        1,
        ScanOptions(exclusive=True),
    )


def test_decreasing_product_becomes_a_reverse_problem() -> None:
    desc = product(Axis=0, AxisDirection=dml.DML_AXIS_DIRECTION_DECREASING)
    problem = validate_operator(desc).problem()
    packed = Layout.packed((2, 3))
    assert problem == scan_problem(by_name("float32"), Operator.PRODUCT, packed, packed, 0, ScanOptions(reverse=True))
    assert problem.axis == Dimension(2, -3, -3)


@pytest.mark.parametrize("mode", dml.DML_ROUNDING_MODE, ids=lambda mode: mode.name)
def test_round_becomes_a_problem(mode: dml.DML_ROUNDING_MODE) -> None:
    operator = validate_operator(rounded(InputTensor=tensor(Strides=(4, 1)), RoundingMode=mode))
    assert operator.problem(output_offset=3) == round_problem(
        by_name("float32"), RoundingMode(int(mode)), Layout((2, 3), (4, 1)), Layout.packed((2, 3), 3)
    )


# Whatever a struct holds, validation says yes or E_INVALIDARG, and a yes can be mapped.


@settings(max_examples=300)
@given(descriptions(structs()), st.sampled_from(list(dml.DML_FEATURE_LEVEL)), st.booleans())
def test_any_description_is_valid_or_invalid(desc: Any, level: dml.DML_FEATURE_LEVEL, extensions: bool) -> None:
    broken: DirectMLError | None = None
    try:
        problem = validate_operator(desc, feature_level=level, extensions=extensions).problem()
    except DirectMLError as error:
        broken = error
    if broken is None:
        assert problem.input_offset >= 0
    else:
        assert broken.hresult == dml.E_INVALIDARG
        assert re.match(r"(DML_OPERATOR_DESC|CUMULATIVE_(SUMMATION|PRODUCT)|ELEMENT_WISE_ROUND): ", str(broken))


@settings(max_examples=500)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 12)), min_size=1, max_size=4))
def test_an_output_is_said_to_share_memory_only_if_it_does(dims: list[tuple[int, int]]) -> None:
    """Of every refused layout, by counting the places of its elements."""
    sizes, strides = zip(*dims, strict=True)
    places = [sum(map(int.__mul__, index, strides)) for index in itertools.product(*map(range, sizes))]
    shares = len(set(places)) < len(places)
    t = tensor(Sizes=sizes, Strides=strides)
    message = ""
    try:
        validate_operator(rounded(InputTensor=tensor(Sizes=sizes), OutputTensor=t))
    except DirectMLError as error:
        message = str(error)
    said = "elements share memory" in message
    assert said or not message or "dimensions interleave" in message
    assert shares or not said
    assert message or not shares
    # Two dimensions are decided; of more, what only three of them do together is said to interleave.
    assert said or not shares or sum(size > 1 for size in sizes) > 2


def test_messages_name_both_tensors_and_both_values() -> None:
    with pytest.raises(DirectMLError) as caught:
        validate_operator(total(OutputTensor=tensor(DataType=F16)))
    assert str(caught.value) == (
        "CUMULATIVE_SUMMATION: tensor 'OutputTensor' has DataType DML_TENSOR_DATA_TYPE_FLOAT16 while tensor "
        "'InputTensor' has DataType DML_TENSOR_DATA_TYPE_FLOAT32; they must be the same"
    )


def test_an_error_survives_pickling() -> None:
    with pytest.raises(DirectMLError) as caught:
        validate_operator(total(Axis=9))
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.hresult) == (DirectMLError, str(caught.value), dml.E_INVALIDARG)
