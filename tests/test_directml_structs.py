"""DirectML's descriptions as values: fields, order, defaults, conversions, types."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlgpu import directml as dml
from dmlgpu.errors import ArrayTypeError, DirectMLError, FrozenFieldError
from dmlgpu.layout import Layout

from .directml_session import slips

FIELDS = {
    "DML_BUFFER_TENSOR_DESC": [
        "DataType",
        "Flags",
        "DimensionCount",
        "Sizes",
        "Strides",
        "TotalTensorSizeInBytes",
        "GuaranteedBaseOffsetAlignment",
    ],
    "DML_TENSOR_DESC": ["Type", "Desc"],
    "DML_OPERATOR_DESC": ["Type", "Desc"],
    "DML_CUMULATIVE_SUMMATION_OPERATOR_DESC": [
        "InputTensor",
        "OutputTensor",
        "Axis",
        "AxisDirection",
        "HasExclusiveSum",
    ],
    "DML_CUMULATIVE_PRODUCT_OPERATOR_DESC": [
        "InputTensor",
        "OutputTensor",
        "Axis",
        "AxisDirection",
        "HasExclusiveProduct",
    ],
    "DML_ELEMENT_WISE_ROUND_OPERATOR_DESC": ["InputTensor", "OutputTensor", "RoundingMode"],
}
F32 = dml.DML_TENSOR_DATA_TYPE_FLOAT32


def tensor(**fields: Any) -> dml.DML_BUFFER_TENSOR_DESC:
    return dml.DML_BUFFER_TENSOR_DESC(**{"DataType": F32, "Sizes": (2, 3), **fields})


def samples() -> list[Any]:
    t = tensor(Strides=(4, 1))
    d = dml.DML_TENSOR_DESC(dml.DML_TENSOR_TYPE_BUFFER, t)
    scan = dml.DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(d, d, 1, dml.DML_AXIS_DIRECTION_DECREASING, True)
    return [
        t,
        d,
        scan,
        dml.DML_CUMULATIVE_PRODUCT_OPERATOR_DESC(d, d, 0),
        dml.DML_ELEMENT_WISE_ROUND_OPERATOR_DESC(d, d, dml.DML_ROUNDING_MODE_TOWARD_ZERO),
        dml.DML_OPERATOR_DESC(dml.DML_OPERATOR_CUMULATIVE_SUMMATION, scan),
    ]


@pytest.mark.parametrize("name", FIELDS)
def test_fields_are_the_headers_in_its_order(name: str) -> None:
    assert [field.name for field in dataclasses.fields(getattr(dml, name))] == FIELDS[name]


@pytest.mark.parametrize("value", samples(), ids=lambda value: type(value).__name__)
def test_descriptions_are_values(value: Any) -> None:
    fields = [getattr(value, field.name) for field in dataclasses.fields(value)]
    again = type(value)(*fields)
    assert again == value
    assert hash(again) == hash(value)
    assert type(value)(**dict(zip(FIELDS[type(value).__name__], fields, strict=True))) == value
    assert dataclasses.replace(value) == value
    assert copy.deepcopy(value) == value
    assert pickle.loads(pickle.dumps(value)) == value
    assert eval(repr(value), vars(dml)) == value
    for field in dataclasses.fields(value):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, field.name, None)


def test_buffer_description_in_the_order_of_an_aggregate_initialisation() -> None:
    t = dml.DML_BUFFER_TENSOR_DESC(
        dml.DML_TENSOR_DATA_TYPE_FLOAT16, dml.DML_TENSOR_FLAG_OWNED_BY_DML, 4, [1, 1, 3, 4], None, 24, 16
    )
    assert t.DataType is dml.DML_TENSOR_DATA_TYPE_FLOAT16
    assert t.Flags is dml.DML_TENSOR_FLAG_OWNED_BY_DML
    assert t.DimensionCount == 4
    assert t.Sizes == (1, 1, 3, 4)
    assert t.Strides is None
    assert t.TotalTensorSizeInBytes == 24
    assert t.GuaranteedBaseOffsetAlignment == 16


def test_defaults_are_computed() -> None:
    t = dml.DML_BUFFER_TENSOR_DESC(DataType=dml.DML_TENSOR_DATA_TYPE_INT8, Sizes=(3, 5), Strides=(8, 1))
    assert t.Flags is dml.DML_TENSOR_FLAG_NONE
    assert t.DimensionCount == 2
    assert t.TotalTensorSizeInBytes == 24  # 2 * 8 + 4 + 1 = 21 bytes
    assert t.GuaranteedBaseOffsetAlignment == 0


def test_operator_defaults_are_zero_as_in_an_aggregate_initialisation() -> None:
    t = tensor()
    total = dml.DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(t, t, 1)
    assert total.AxisDirection is dml.DML_AXIS_DIRECTION_INCREASING
    assert total.HasExclusiveSum is False
    product = dml.DML_CUMULATIVE_PRODUCT_OPERATOR_DESC(t, t, 1)
    assert product.AxisDirection is dml.DML_AXIS_DIRECTION_INCREASING
    assert product.HasExclusiveProduct is False
    rounded = dml.DML_ELEMENT_WISE_ROUND_OPERATOR_DESC(t, t)
    assert rounded.RoundingMode is dml.DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN


def test_a_buffer_description_stands_for_its_tensor() -> None:
    t = tensor()
    wrapped = dml.DML_TENSOR_DESC(dml.DML_TENSOR_TYPE_BUFFER, t)
    for kind, rest in (
        (dml.DML_CUMULATIVE_SUMMATION_OPERATOR_DESC, (0,)),
        (dml.DML_CUMULATIVE_PRODUCT_OPERATOR_DESC, (0,)),
        (dml.DML_ELEMENT_WISE_ROUND_OPERATOR_DESC, ()),
    ):
        assert kind(t, t, *rest) == kind(wrapped, wrapped, *rest)
        assert kind(t, t, *rest).InputTensor == wrapped


def test_integers_of_numpy_and_any_sequence_become_plain_tuples() -> None:
    t = tensor(Sizes=np.array([2, 3], dtype=np.uint8), Strides=iter([np.int64(3), 1]), DimensionCount=np.uint32(2))
    assert t == tensor(Strides=(3, 1))
    assert [type(value) for value in (*t.Sizes, *(t.Strides or ()), t.DimensionCount)] == [int] * 5


def test_numbers_become_enumerators_and_unknown_numbers_stay() -> None:
    t = tensor(DataType=1, Flags=1)
    assert t.DataType is F32
    assert t.Flags is dml.DML_TENSOR_FLAG_OWNED_BY_DML
    assert tensor(DataType=99).DataType == 99
    assert not isinstance(tensor(DataType=-1).DataType, dml.DML_TENSOR_DATA_TYPE)
    for flags in (2, 3, -1):
        assert tensor(Flags=flags).Flags == flags
        assert not isinstance(tensor(Flags=flags).Flags, dml.DML_TENSOR_FLAGS)
    assert dml.DML_TENSOR_DESC(7, None).Type == 7
    assert dml.DML_OPERATOR_DESC(1, None).Type == 1


@pytest.mark.parametrize(("given_value", "kept"), [(True, True), (np.False_, False), (1, True), (0, False)])
def test_bool_fields(given_value: Any, kept: bool) -> None:
    t = tensor()
    assert dml.DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(t, t, 0, 0, given_value).HasExclusiveSum is kept
    assert dml.DML_CUMULATIVE_PRODUCT_OPERATOR_DESC(t, t, 0, 0, given_value).HasExclusiveProduct is kept


@pytest.mark.parametrize(
    "fields",
    [
        {"DataType": 0},
        {"DataType": 12},
        {"DataType": 99},
        {"Sizes": ()},
        {"Sizes": (2, 0)},
        {"Sizes": (1,) * 9},
        {"DimensionCount": 3},
        {"Strides": (1,)},
        {"Sizes": [2**32 - 1] * 2, "Strides": [2**32 - 1] * 2},  # more than a UINT64 holds
    ],
    ids=str,
)
def test_a_size_that_cannot_be_computed_is_0(fields: dict[str, Any]) -> None:
    t = tensor(**fields)
    assert t.TotalTensorSizeInBytes == 0
    assert dataclasses.replace(t) == t


T = tensor()
WRONG_TYPES = [
    (lambda: tensor(DataType="float32"), r"DataType is 'float32' \(str\); give it a DML_TENSOR_DATA_TYPE"),
    (lambda: tensor(DataType=np.float32), r"DataType is <class 'numpy.float32'>"),
    (lambda: tensor(DataType=1.0), r"DataType is 1.0 \(float\)"),
    (lambda: tensor(DataType=True), r"DataType is True \(bool\)"),
    (lambda: tensor(DataType=dml.DML_TENSOR_TYPE_BUFFER), r"DataType is DML_TENSOR_TYPE_BUFFER \(DML_TENSOR_TYPE\)"),
    (lambda: tensor(Flags=None), r"Flags is None; give it a DML_TENSOR_FLAGS"),
    (lambda: tensor(Flags=dml.DML_EXECUTION_FLAG_NONE), r"Flags is DML_EXECUTION_FLAG_NONE"),
    (lambda: tensor(DimensionCount=2.0), r"DimensionCount is 2.0 \(float\); give it an int"),
    (lambda: tensor(DimensionCount=True), r"DimensionCount is True \(bool\)"),
    (lambda: tensor(Sizes=None), r"Sizes is None; give it a sequence of ints"),
    (lambda: tensor(Sizes=6), r"Sizes is an int; give it a sequence of ints"),
    (lambda: tensor(Sizes="23"), r"Sizes is a str"),
    (lambda: tensor(Sizes=b"23"), r"Sizes is a bytes"),
    (lambda: tensor(Sizes=bytearray(b"23")), r"Sizes is a bytearray"),
    (lambda: tensor(Sizes={3, 2}), r"Sizes is a set"),  # no order
    (lambda: tensor(Sizes={2: 3}), r"Sizes is a dict"),
    (lambda: tensor(Sizes=np.array(3)), r"Sizes is an ndarray"),
    (lambda: tensor(Sizes=np.uint8(3)), r"Sizes is a uint8"),
    (lambda: tensor(Sizes=(2, 3.0)), r"Sizes\[1\] is 3.0 \(float\)"),
    (lambda: tensor(Sizes=(True, 3)), r"Sizes\[0\] is True \(bool\)"),
    (lambda: tensor(Sizes=np.array([2.0, 3.0])), r"Sizes\[0\] is .*2.0"),
    (lambda: tensor(Sizes=np.array([True, True])), r"Sizes\[0\] is .*True"),
    (lambda: tensor(Strides=(3, None)), r"Strides\[1\] is None"),
    (lambda: tensor(Strides=3), r"Strides is an int"),
    (lambda: tensor(TotalTensorSizeInBytes=24.0), r"TotalTensorSizeInBytes is 24.0 \(float\)"),
    (lambda: tensor(GuaranteedBaseOffsetAlignment=None), r"GuaranteedBaseOffsetAlignment is None"),
    (lambda: dml.DML_TENSOR_DESC("BUFFER", T), r"DML_TENSOR_DESC: Type is 'BUFFER'"),
    (lambda: dml.DML_TENSOR_DESC(1, (2, 3)), r"DML_TENSOR_DESC: Desc is a tuple; give it a DML_BUFFER_TENSOR_DESC"),
    (lambda: dml.DML_OPERATOR_DESC("sum", None), r"DML_OPERATOR_DESC: Type is 'sum'"),
    (lambda: dml.DML_OPERATOR_DESC(105, T), r"DML_OPERATOR_DESC: Desc is a DML_BUFFER_TENSOR_DESC"),
    (lambda: dml.DML_CUMULATIVE_SUMMATION_OPERATOR_DESC((2, 3), T, 0), r"InputTensor is a tuple; give it a DML_TENSO"),
    (lambda: dml.DML_CUMULATIVE_PRODUCT_OPERATOR_DESC(T, 1, 0), r"OutputTensor is an int; give it a"),
    (lambda: dml.DML_ELEMENT_WISE_ROUND_OPERATOR_DESC(T, "y"), r"OutputTensor is a str"),
    (lambda: dml.DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(T, T, 1.0), r"Axis is 1.0 \(float\)"),
    (lambda: dml.DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(T, T, None), r"Axis is None"),
    (lambda: dml.DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(T, T, dml.DML_AXIS_DIRECTION_DECREASING), r"Axis is DML_AXIS"),
    (lambda: dml.DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(T, T, 0, True), r"AxisDirection is True"),
    (lambda: dml.DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(T, T, 0, 0, "no"), r"HasExclusiveSum is 'no' \(str\)"),
    (lambda: dml.DML_CUMULATIVE_PRODUCT_OPERATOR_DESC(T, T, 0, 0, None), r"HasExclusiveProduct is None"),
    (lambda: dml.DML_CUMULATIVE_PRODUCT_OPERATOR_DESC(T, T, 0, 0, 1.0), r"HasExclusiveProduct is 1.0"),
    (
        lambda: dml.DML_CUMULATIVE_PRODUCT_OPERATOR_DESC(T, T, 0, 0, dml.DML_AXIS_DIRECTION_DECREASING),
        r"HasExclusiveProduct is DML_AXIS_DIRECTION_DECREASING",
    ),
    (lambda: dml.DML_ELEMENT_WISE_ROUND_OPERATOR_DESC(T, T, "even"), r"RoundingMode is 'even'"),
    (
        lambda: dml.DML_ELEMENT_WISE_ROUND_OPERATOR_DESC(T, T, dml.DML_AXIS_DIRECTION_INCREASING),
        r"RoundingMode is DML_AXIS_DIRECTION_INCREASING",
    ),
]


@pytest.mark.parametrize(("make", "message"), WRONG_TYPES, ids=[message for _, message in WRONG_TYPES])
def test_wrong_types_raise_when_a_description_is_made(make: Any, message: str) -> None:
    with pytest.raises(ArrayTypeError, match=message) as caught:
        make()
    assert not slips(str(caught.value))


OUT_OF_RANGE = [
    (lambda: tensor(Sizes=(2, -3)), r"DML_BUFFER_TENSOR_DESC: Sizes\[1\] is -3; it is unsigned.* 0 to 4294967295"),
    (lambda: tensor(Sizes=(2**32, 3)), r"Sizes\[0\] is 4294967296"),
    (lambda: tensor(Strides=(-3, 1)), r"Strides\[0\] is -3"),
    (lambda: tensor(Strides=(3, 2**32)), r"Strides\[1\] is 4294967296"),
    (lambda: tensor(DimensionCount=-1), r"DimensionCount is -1"),
    (lambda: tensor(TotalTensorSizeInBytes=-4), r"TotalTensorSizeInBytes is -4; .* 0 to 18446744073709551615"),
    (lambda: tensor(TotalTensorSizeInBytes=2**64), r"TotalTensorSizeInBytes is 18446744073709551616"),
    (lambda: tensor(GuaranteedBaseOffsetAlignment=-16), r"GuaranteedBaseOffsetAlignment is -16"),
    (lambda: dml.DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(T, T, -1), r"Axis is -1; it is unsigned"),
    (lambda: dml.DML_CUMULATIVE_PRODUCT_OPERATOR_DESC(T, T, 2**32), r"Axis is 4294967296"),
    (lambda: dml.DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(T, T, 0, 0, 2), r"HasExclusiveSum is 2; it holds True \(1\)"),
    (lambda: dml.DML_CUMULATIVE_PRODUCT_OPERATOR_DESC(T, T, 0, 0, -1), r"HasExclusiveProduct is -1"),
]


@pytest.mark.parametrize(("make", "message"), OUT_OF_RANGE, ids=[message for _, message in OUT_OF_RANGE])
def test_numbers_that_a_field_cannot_hold(make: Any, message: str) -> None:
    with pytest.raises(DirectMLError, match=message) as caught:
        make()
    assert caught.value.hresult == dml.E_INVALIDARG


@pytest.mark.parametrize("value", samples(), ids=lambda value: type(value).__name__)
def test_a_field_that_is_set_says_what_to_do_instead(value: Any) -> None:
    """As in a port of ``DML_X desc = {}; desc.Axis = 1;``."""
    before, kind = dataclasses.replace(value), type(value).__name__
    for field in dataclasses.fields(value):
        for action, new in ((lambda: setattr(value, field.name, 1), "1"), (lambda: delattr(value, field.name), "...")):  # noqa: B023
            with pytest.raises(FrozenFieldError) as caught:
                action()
            assert str(caught.value) == (
                f"{kind}: {field.name} cannot be changed, since descriptions are immutable; give {field.name}={new} to "
                f"the constructor, or make a changed copy with dataclasses.replace(desc, {field.name}={new})"
            )
    with pytest.raises(FrozenFieldError) as caught:
        value.Axes = 1
    names = ", ".join(FIELDS[kind])
    assert str(caught.value) == f"{kind} has no field Axes; its fields are {names}"
    assert value == before


def test_a_struct_that_is_made_empty_says_what_to_do_instead() -> None:
    """As in a port of ``DML_X desc = {};``."""
    sum_desc: Any = dml.DML_CUMULATIVE_SUMMATION_OPERATOR_DESC
    rest = "give the constructor all fields at once, as none can be set later: InputTensor, OutputTensor, Axis, "
    for make, wrong in (
        (sum_desc, "missing a required argument: 'InputTensor'"),
        (lambda: sum_desc(T, T), "missing a required argument: 'Axis'"),
        (lambda: sum_desc(T, T, axis=0), "missing a required argument: 'Axis'"),
        (lambda: sum_desc(T, T, 0, Exclusive=True), "got an unexpected keyword argument 'Exclusive'"),
        (lambda: sum_desc(T, T, 0, 0, False, 1), "too many positional arguments"),
        (lambda: dataclasses.replace(sum_desc(T, T, 0), Name=1), "got an unexpected keyword argument 'Name'"),
    ):
        with pytest.raises(ArrayTypeError) as caught:
            make()
        assert str(caught.value).startswith(f"DML_CUMULATIVE_SUMMATION_OPERATOR_DESC: {wrong}; {rest}")
    assert list(inspect.signature(sum_desc).parameters) == FIELDS["DML_CUMULATIVE_SUMMATION_OPERATOR_DESC"]


def test_every_struct_says_so() -> None:
    structs = [kind for kind in vars(dml).values() if isinstance(kind, type) and dataclasses.is_dataclass(kind)]
    assert len(structs) == 15
    for kind in structs:
        name = dataclasses.fields(kind)[0].name
        with pytest.raises(FrozenFieldError, match=f"{kind.__name__}: {name} cannot be changed.*replace"):
            setattr(object.__new__(kind), name, 1)
        with pytest.raises(
            ArrayTypeError, match=f"{kind.__name__}: .*argument.*; give the constructor all fields at on"
        ):
            kind(nonsense=1)


def test_what_the_error_says_to_do_works() -> None:
    desc = dml.DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(tensor(), tensor(), 0)
    assert dataclasses.replace(desc, Axis=1) == dml.DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(tensor(), tensor(), Axis=1)
    again = dataclasses.replace(tensor(), Sizes=(4, 5, 6), DimensionCount=None, TotalTensorSizeInBytes=None)
    assert again == tensor(Sizes=(4, 5, 6))


def test_calculated_size() -> None:
    assert dml.DMLCalcBufferTensorSize(F32, 2, (3, 4), None) == 48
    assert dml.DMLCalcBufferTensorSize(F32, 2, (3, 4)) == 48
    assert dml.DMLCalcBufferTensorSize(dml.DML_TENSOR_DATA_TYPE_UINT8, 1, [5]) == 8
    assert dml.DMLCalcBufferTensorSize(dml.DML_TENSOR_DATA_TYPE_FLOAT64, 2, (3, 4), (0, 2)) == 56
    assert dml.DMLCalcBufferTensorSize(10, 1, (1,), (77,)) == 8


def test_calculated_size_does_not_wrap() -> None:
    # 32-bit arithmetic gives 0 * 65537 + 1 = 1 element here.
    assert dml.DMLCalcBufferTensorSize(F32, 2, (65537, 65537), (65536, 0)) == (65536 * 65536 + 1) * 4
    assert dml.DMLCalcBufferTensorSize(F32, 1, (2**32 - 1,)) == (2**32 - 1) * 4


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 30)), min_size=1, max_size=8),
    st.sampled_from([(1, 4), (2, 2), (9, 8), (8, 1)]),
)
def test_calculated_size_reaches_the_last_element(dims: list[tuple[int, int]], kind: tuple[int, int]) -> None:
    sizes, strides = zip(*dims, strict=True)
    data_type, itemsize = kind
    size = dml.DMLCalcBufferTensorSize(data_type, len(sizes), sizes, strides)
    end = (Layout(sizes, strides).extent[1]) * itemsize
    assert size % 4 == 0
    assert 0 <= size - end < 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1, (3,)), r"dataType is DML_TENSOR_DATA_TYPE_UNKNOWN, which has no element size"),
        ((12, 1, (3,)), r"dataType is DML_TENSOR_DATA_TYPE_UINT4"),
        ((77, 1, (3,)), r"dataType is 77"),
        ((1, 2, (3,)), r"dimensionCount is 2 while sizes has 1 value \(3,\); give it exactly as many"),
        ((1, 1, (3,), (1, 1)), r"dimensionCount is 1 while strides has 2 values \(1, 1\)"),
        ((1, 0, ()), r"dimensionCount is 0; it must be 1 to 8"),
        ((1, 9, [1] * 9), r"dimensionCount is 9; it must be 1 to 8"),
        ((1, 2, (3, 0)), r"sizes is \(3, 0\); no size may be 0"),
        ((1, 1, (-3,)), r"sizes\[0\] is -3"),
    ],
)
def test_calculated_size_of_a_wrong_tensor(arguments: Any, message: str) -> None:
    with pytest.raises(DirectMLError, match="DMLCalcBufferTensorSize: " + message) as caught:
        dml.DMLCalcBufferTensorSize(*arguments)
    assert caught.value.hresult == dml.E_INVALIDARG


def test_slips_of_messages_are_found() -> None:
    """The check that every test of a message makes."""
    assert slips("the operator has 1 inputs while 1 are bound") == ["1 inputs", "1 are"]
    assert slips("op is a IDMLOperator; give it an str, not a ndarray") == ["a IDMLOperator", "a ndarray", "an str"]
    assert slips("Strides None need 4 bytes; Axis is None") == ["None"]
    assert not slips("an int, an ndarray, a uint8, 1 input, 2 inputs, at most 2^32-1 elements, 11 bytes; Axis is None")
