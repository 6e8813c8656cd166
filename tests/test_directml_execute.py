"""`dml.execute`: the pages' examples, every type and layout against the reference, and arrays that do not fit."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import dmlgpu
from dmlgpu import directml as dml
from dmlgpu import reference
from dmlgpu.directml.execute import image
from dmlgpu.directml.rules import layout
from dmlgpu.dtypes import ELEMENT_TYPES, by_name
from dmlgpu.errors import (
    AdapterNotFoundError,
    ArrayTypeError,
    DeviceMemoryError,
    DeviceReleasedError,
    DirectMLError,
)

from .directml_descriptions import PRODUCT, ROUND, SUM, arrays, descriptions, structs, valid_structs

if TYPE_CHECKING:
    from dmlgpu import Device

DATA = Path(__file__).parent / "data"
EXAMPLES = json.loads((DATA / "examples.json").read_text(encoding="utf-8"))
ROUNDING_CASES = json.loads((DATA / "rounding_cases.json").read_text(encoding="utf-8"))

SCANS = {"sum": SUM, "product": PRODUCT}
MODES = {
    "half_even": dml.DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN,
    "toward_zero": dml.DML_ROUNDING_MODE_TOWARD_ZERO,
    "half_away": dml.DML_ROUNDING_MODE_TOWARD_INFINITY,
}


def tensor(sizes: Any, dtype: str = "float32", **fields: Any) -> dml.DML_BUFFER_TENSOR_DESC:
    return dml.DML_BUFFER_TENSOR_DESC(DataType=by_name(dtype).dml_value, Sizes=sizes, **fields)


def check_works(device: Device) -> None:
    """Show that the device computes: what every test of an error ends with."""
    t = tensor((3,), "int32")
    y = dml.execute(SUM(t, t, 0), np.array([1, 2, 3], np.int32), device=device)
    assert y.tolist() == [1, 3, 6]


@pytest.mark.parametrize("wrapped", [False, True], ids=["struct", "operator"])
@pytest.mark.parametrize(
    "example",
    EXAMPLES["examples"],
    ids=lambda e: f"{e['operator']}-{e['axis']}-{e['axis_direction']}-{e['exclusive']}",
)
def test_examples_of_the_reference_pages(device: Device, example: dict[str, Any], wrapped: bool) -> None:
    t = dml.DML_TENSOR_DESC(dml.DML_TENSOR_TYPE_BUFFER, tensor(EXAMPLES["sizes"]))
    operator = getattr(dml, f"DML_{example['operator']}_OPERATOR_DESC")
    direction = getattr(dml, f"DML_AXIS_DIRECTION_{example['axis_direction']}")
    desc = operator(t, t, example["axis"], direction, example["exclusive"])
    if wrapped:
        desc = dml.DML_OPERATOR_DESC(getattr(dml, f"DML_OPERATOR_{example['operator']}"), desc)
    y = dml.execute(desc, np.array(EXAMPLES["input"], np.float32), device=device)
    assert y.dtype == np.float32
    assert y.tolist() == example["expected"]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("half_even", [-2, -2, -2, -1, 0, 1, 2, 2, 2]),
        ("toward_zero", [-2, -1, -1, -1, 0, 1, 1, 1, 2]),
        ("half_away", [-3, -2, -2, -1, 0, 1, 2, 2, 3]),
    ],
)
def test_rounding_table_of_the_reference_page(device: Device, mode: str, expected: list[float], dtype: str) -> None:
    x = np.array([[-2.5, -1.75, -1.5], [-1.25, 0, 1.25], [1.5, 1.75, 2.5]], dtype)
    t = tensor((1, 1, 3, 3), dtype)
    y = dml.execute(ROUND(t, t, MODES[mode]), x.reshape(1, 1, 3, 3), device=device)
    assert y.reshape(-1).tolist() == expected


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("mode", "key"), [("half_even", "even"), ("toward_zero", "zero"), ("half_away", "inf")])
def test_rounding_cases(device: Device, dtype: str, mode: str, key: str) -> None:
    bits = f"u{np.dtype(dtype).itemsize}"
    cases = ROUNDING_CASES[dtype]
    x, expected = (np.array([int(case[k], 16) for case in cases], bits).view(dtype) for k in ("input_bits", key))
    t = tensor(x.shape, dtype)
    y = dml.execute(ROUND(t, t, MODES[mode]), x, device=device)
    assert reference.first_difference(y, expected) is None


@pytest.mark.parametrize("element", ELEMENT_TYPES, ids=str)
@pytest.mark.parametrize("operator", SCANS)
def test_every_type_scans(device: Device, operator: str, element: Any) -> None:
    x = np.arange(1, 61).reshape(3, 4, 5).astype(element.dtype)
    t = tensor(x.shape, element.name)
    desc = SCANS[operator](t, t, 1, dml.DML_AXIS_DIRECTION_DECREASING, True)
    y = dml.execute(desc, x, device=device)
    expected = reference.cumulative(x, operator, axis=1, exclusive=True, reverse=True)
    assert reference.first_difference(y, expected) is None


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_every_type_rounds(device: Device, mode: str, dtype: str) -> None:
    x = np.linspace(-8, 8, 65, dtype=dtype)
    t = tensor(x.shape, dtype)
    y = dml.execute(ROUND(t, t, MODES[mode]), x, device=device)
    assert reference.first_difference(y, reference.round(x, mode)) is None


def test_the_result_is_new_and_packed_and_the_array_untouched(device: Device) -> None:
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    x = base[::2, ::-2]
    x.flags.writeable = False
    before = base.copy()
    y = dml.execute(SUM(tensor((2, 3), Strides=(8, 2)), tensor((2, 3), Strides=(1, 3)), 1), x, device=device)
    assert y.tolist() == np.cumsum(x, axis=1).tolist()
    assert y.flags.c_contiguous
    assert y.flags.writeable
    assert (base == before).all()


def test_the_programs_of_the_guide_run(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (Path(__file__).parents[1] / "docs" / "directml.md").read_text(encoding="utf-8")
    programs = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    assert len(programs) == 5
    results = []
    monkeypatch.setattr("dmlgpu.runtime.device.resolve_device", lambda _: device)
    for program in programs:
        names: dict[str, Any] = {}
        exec(program, names)
        results += [names["y"].shape] if "y" in names else []
    assert results == [(1, 1, 3, 4)] * 3


def test_on_a_device_with_webgpus_default_limits(modest_device: Device) -> None:
    x = np.arange(300 * 3, dtype=np.int16).reshape(300, 3)
    source, target = tensor(x.shape, "int16", Strides=(1, 301)), tensor(x.shape, "int16", Strides=(5, 1))
    y = dml.execute(SUM(source, target, 0), x, device=modest_device)
    assert reference.first_difference(y, reference.cumulative(x, "sum", axis=0)) is None


def test_a_released_device_is_refused(device: Device) -> None:
    other = dmlgpu.Device(device.description)
    other.release()
    t = tensor((2, 3))
    with pytest.raises(DeviceReleasedError):
        dml.execute(SUM(t, t, 0), np.zeros((2, 3), np.float32), device=other)
    check_works(device)


def test_a_device_is_chosen_by_name(device: Device) -> None:
    t = tensor((3,), "int32")
    assert dml.execute(SUM(t, t, 0), np.array([1, 2, 3], np.int32), device=device.summary).tolist() == [1, 3, 6]
    with pytest.raises(AdapterNotFoundError, match="no such adapter"):
        dml.execute(SUM(t, t, 0), np.array([1, 2, 3], np.int32), device="no such adapter")


# Semantics, in values that any order of operations gives

INF, NOT = np.inf, np.nan


@pytest.mark.parametrize(
    ("kind", "x", "exclusive"),
    [
        (SUM, [INF, 1, 2], [0, INF, INF]),
        (SUM, [1, -INF, 2, INF], [0, 1, -INF, -INF]),
        (SUM, [1, NOT, 2], [0, 1, NOT]),
        (SUM, [3e38, 3e38, -3e38], [0, 3e38, INF]),
        (PRODUCT, [0, 5, 2], [1, 0, 0]),
        (PRODUCT, [INF, 0, 2], [1, INF, NOT]),
        (PRODUCT, [2, NOT, 0], [1, 2, NOT]),
        (PRODUCT, [-0.0, 2, -3], [1, -0.0, -0.0]),
    ],
)
@pytest.mark.parametrize("direction", dml.DML_AXIS_DIRECTION, ids=lambda d: d.name[19:])
def test_an_exclusive_scan_is_no_inclusive_one_taken_back(
    device: Device, kind: Any, x: list[float], exclusive: list[float], direction: dml.DML_AXIS_DIRECTION
) -> None:
    """The identity comes first in the axis direction; subtracting or dividing would give NaN for these."""
    step = -1 if direction == dml.DML_AXIS_DIRECTION_DECREASING else 1
    t = tensor((len(x),))
    y = dml.execute(kind(t, t, 0, direction, True), np.array(x, np.float32)[::step], device=device)
    assert reference.first_difference(y, np.array(exclusive, np.float32)[::step].copy()) is None


@pytest.mark.parametrize("kind", [SUM, PRODUCT])
def test_an_axis_of_size_1(device: Device, kind: Any) -> None:
    """Inclusive copies, bit for bit; exclusive fills with the identity."""
    x = np.array([[-0.0], [NOT], [-INF], [7.5], [1e-40]], np.float32)
    t = tensor(x.shape)
    assert dml.execute(kind(t, t, 1), x, device=device).view(np.uint32).tolist() == x.view(np.uint32).tolist()
    identity = 0.0 if kind is SUM else 1.0
    for direction in dml.DML_AXIS_DIRECTION:
        y = dml.execute(kind(t, t, 1, direction, True), x, device=device)
        assert reference.first_difference(y, np.full_like(x, identity)) is None


@pytest.mark.parametrize("element", [e for e in ELEMENT_TYPES if e.kind in ("int", "uint")], ids=str)
def test_integers_wrap(device: Device, element: Any) -> None:
    least, most = int(np.iinfo(element.dtype).min), int(np.iinfo(element.dtype).max)
    t = tensor((4,), element.name)
    x = np.array([most, 1, most, 2], element.dtype)
    mask = 2 ** (8 * element.itemsize) - 1
    totals = [most, most + 1, 2 * most + 1, 2 * most + 3]
    products = [most, most, most * most, 2 * most * most]
    for kind, exact in ((SUM, totals), (PRODUCT, products)):
        wrapped = [((value - least) & mask) + least for value in exact]
        assert dml.execute(kind(t, t, 0), x, device=device).tolist() == wrapped


def test_float16_is_computed_in_float32_and_rounded_once(device: Device) -> None:
    t = tensor((4,), "float16")
    total = dml.execute(SUM(t, t, 0), np.array([2048, 1, 1, 65000], np.float16), device=device)
    assert total.tolist() == [2048, 2048, 2050, INF]  # in float16 2048 + 1 + 1 is 2048
    product = dml.execute(PRODUCT(t, t, 0), np.array([256, 256, 2**-8, 3], np.float16), device=device)
    assert product.tolist() == [256, INF, 256, 768]


# Strides


def test_broadcast_input_along_the_axis_is_the_element_n_times(device: Device) -> None:
    t = tensor((2, 5), "int32", Strides=(1, 0))
    x = np.broadcast_to(np.array([[3], [-4]], np.int32), (2, 5))
    y = dml.execute(SUM(t, tensor((2, 5), "int32"), 1), x, device=device)
    assert y.tolist() == [[3, 6, 9, 12, 15], [-4, -8, -12, -16, -20]]


def test_broadcast_input_across_slices(device: Device) -> None:
    t = tensor((3, 2, 2), "uint8", Strides=(0, 2, 1))
    x = np.array([[[1, 2], [3, 4]]] * 3, np.uint8)
    y = dml.execute(PRODUCT(t, tensor((3, 2, 2), "uint8"), 2), x, device=device)
    assert y.tolist() == [[[1, 2], [3, 12]]] * 3


def test_overlapping_windows(device: Device) -> None:
    t = tensor((4, 3), Strides=(1, 1))
    x = np.lib.stride_tricks.sliding_window_view(np.arange(6, dtype=np.float32), 3)
    y = dml.execute(SUM(t, tensor((4, 3)), 1), x, device=device)
    assert y.tolist() == np.cumsum(x, axis=1).tolist()


NAN, OTHER_NAN = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)


@pytest.mark.parametrize(
    ("strides", "rows", "message"),
    [
        ((0, 1), [[1, 2], [1, 3]], r"array holds different values there: 2.0 at \(0, 1\) and 3.0"),
        ((1, 0), [[1, 1], [2, 3]], r"Strides \(1, 0\), with which elements share memory, while array holds different"),
        ((1, 1), [[1, 2], [3, 4]], r"at \(0, 1\) and"),
        ((0, 1), [[0.0, 1], [-0.0, 1]], r"0.0 at \(0, 0\) and -0.0"),
        ((0, 1), [[NAN, 1], [OTHER_NAN, 1]], r"nan at \(0, 0\) and nan"),
    ],
)
def test_elements_that_share_memory_must_be_equal(device: Device, strides: Any, rows: Any, message: str) -> None:
    desc = ROUND(tensor((2, 2), Strides=strides), tensor((2, 2)))
    with pytest.raises(DirectMLError, match=r"ROUND: tensor 'InputTensor' has Sizes \(2, 2\).*" + message) as caught:
        dml.execute(desc, np.array(rows, np.float32), device=device)
    assert caught.value.hresult == dml.E_INVALIDARG
    check_works(device)


def test_an_input_owned_by_directml_is_initialised_and_executed_at_once(device: Device) -> None:
    t = tensor((3,), Flags=dml.DML_TENSOR_FLAG_OWNED_BY_DML)
    y = dml.execute(SUM(t, tensor((3,)), 0), np.array([1, 2, 3], np.float32), device=device)
    assert y.tolist() == [1, 3, 6]


def test_more_room_than_needed(device: Device) -> None:
    t = tensor((5,), "int8", TotalTensorSizeInBytes=400, GuaranteedBaseOffsetAlignment=64)
    u = tensor((5,), "int8", TotalTensorSizeInBytes=4000)
    x = np.array([100, 100, 100, -1, 7], np.int8)
    for desc in (SUM(t, u, 0), SUM(u, t, 0), SUM(t, t, 0)):
        assert dml.execute(desc, x, device=device).tolist() == [100, -56, 44, 43, 50]


# What does not fit

X = np.zeros((2, 3), np.float32)
UNFIT: list[tuple[Any, str]] = [
    (X.astype(np.float64), r"array has dtype float64 while tensor 'InputTensor' has DataType .*_FLOAT32, which"),
    (X.astype(np.float16), r"array has dtype float16 while"),
    (X.astype(np.int32), r"array has dtype int32 while"),
    (X.astype(bool), r"array has dtype bool while"),
    (X.astype(np.complex64), r"array has dtype complex64 while"),
    (X.astype(object), r"array has dtype object while"),
    (X.astype(">f4" if np.little_endian else "<f4"), r"array has dtype [<>]f4 while"),
    (X.view("V4"), r"array has dtype \|V4 while"),
    (X[0], r"array has shape \(3,\) while tensor 'InputTensor' has Sizes \(2, 3\); they must be the same"),
    (X.T, r"array has shape \(3, 2\) while"),
    (X[None], r"array has shape \(1, 2, 3\) while"),
    (X[:1], r"array has shape \(1, 3\) while"),
    (X[:0], r"array has shape \(0, 3\) while"),
    (X[0, 0:1].reshape(()), r"array has shape \(\) while"),
]


@pytest.mark.parametrize(("array", "message"), UNFIT, ids=[message for _, message in UNFIT])
def test_arrays_that_are_not_what_the_tensor_describes(device: Device, array: Any, message: str) -> None:
    t = tensor((2, 3))
    for desc, name in ((SUM(t, t, 0), "SUMMATION"), (ROUND(t, t), "ROUND")):
        with pytest.raises(DirectMLError, match=f"{name}: {message}") as caught:
            dml.execute(desc, array, device=device)
        assert caught.value.hresult == dml.E_INVALIDARG
    check_works(device)


@pytest.mark.parametrize("array", [[[0.0] * 3] * 2, None, np.float32(1), "x"], ids=repr)
def test_what_is_no_array_is_a_type_error(device: Device, array: Any) -> None:
    with pytest.raises(ArrayTypeError, match=r"array is (a \w+|None); give a NumPy array, such as numpy.asarray"):
        dml.execute(SUM(tensor((2, 3)), tensor((2, 3)), 0), array, device=device)
    check_works(device)


def test_masked_elements_are_refused(device: Device) -> None:
    with pytest.raises(ArrayTypeError, match="masked"):
        dml.execute(SUM(tensor((2, 3)), tensor((2, 3)), 0), np.ma.masked_array(X, mask=True), device=device)
    check_works(device)


def test_broken_rules_reach_no_device() -> None:
    with pytest.raises(DirectMLError, match="Axis is 2 while"):
        dml.execute(SUM(tensor((2, 3)), tensor((2, 3)), 2), X, device="no such adapter")


@pytest.mark.parametrize("total", [2**34 - 4, 2**28 + 4])
def test_tensors_larger_than_any_buffer(modest_device: Device, total: int) -> None:
    small, large = tensor((2, 3)), tensor((2, 3), TotalTensorSizeInBytes=total)
    for source, target in ((small, large), (large, small), (large, large)):
        with pytest.raises(DeviceMemoryError, match=str(total)):
            dml.execute(SUM(source, target, 0), X, device=modest_device)
    check_works(modest_device)


def test_gaps_larger_than_any_buffer(modest_device: Device) -> None:
    sizes = (3,) * 8
    source = tensor(sizes, "int64", Strides=[2**28 - 1] * 8)
    with pytest.raises(DeviceMemoryError, match=str(8 * (16 * (2**28 - 1) + 1))):
        dml.execute(SUM(source, tensor(sizes, "int64"), 0), np.zeros(sizes, np.int64), device=modest_device)
    check_works(modest_device)


@pytest.mark.parametrize("fields", [{"Strides": [2**32 - 1] * 8}, {"TotalTensorSizeInBytes": 2**35}], ids=str)
def test_tensors_larger_than_directml_allows(device: Device, fields: dict[str, Any]) -> None:
    sizes = (3,) * 8
    source = tensor(sizes, "int64", **fields)
    with pytest.raises(DirectMLError, match="total size of a tensor"):
        dml.execute(SUM(source, tensor(sizes, "int64"), 0), np.zeros(sizes, np.int64), device=device)
    check_works(device)


# Everything against the reference

MODE_NAMES = list(MODES)


def expected_result(struct: Any, x: NDArray[Any]) -> NDArray[Any]:
    """What a valid struct asks for."""
    if isinstance(struct, ROUND):
        return reference.round(x, MODE_NAMES[struct.RoundingMode])
    operator, exclusive = (
        ("sum", struct.HasExclusiveSum)
        if isinstance(struct, SUM)
        else (
            "product",
            struct.HasExclusiveProduct,
        )
    )
    return reference.cumulative(x, operator, axis=struct.Axis, exclusive=exclusive, reverse=struct.AxisDirection == 1)


def run(device: Device, desc: Any, x: NDArray[Any]) -> NDArray[Any] | DirectMLError:
    """The result or the broken rule."""
    try:
        return dml.execute(desc, x, device=device)
    except DirectMLError as error:
        return error


def check(struct: Any, x: NDArray[Any], result: NDArray[Any]) -> None:
    assert result.flags.c_contiguous
    assert reference.first_difference(result, expected_result(struct, x)) is None


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_any_valid_description_gives_the_references_bits(device: Device, data: st.DataObject) -> None:
    desc = data.draw(descriptions(valid_structs()))
    struct = desc.Desc if isinstance(desc, dml.DML_OPERATOR_DESC) else desc
    x = data.draw(arrays(struct))
    result = run(device, desc, x)
    assert not isinstance(result, DirectMLError)
    check(struct, x, result)


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_any_other_description_gives_an_error_or_the_references_bits(device: Device, data: st.DataObject) -> None:
    struct = data.draw(structs())
    x = data.draw(arrays(struct))
    result = run(device, struct, x)
    if isinstance(result, DirectMLError):
        assert result.hresult == dml.E_INVALIDARG
        assert re.match(r"(CUMULATIVE_SUMMATION|CUMULATIVE_PRODUCT|ELEMENT_WISE_ROUND): ", str(result))
    else:
        check(struct, x, result)


# Between arrays and buffers, without a device


def test_image_of_a_padded_transposed_tensor() -> None:
    where = layout(tensor((2, 3), Strides=(1, 4)))
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    flat = image(x, where, "")
    assert flat.tolist() == [1, 4, 0, 0, 2, 5, 0, 0, 3, 6]
    assert where.view(flat).tolist() == x.tolist()


def test_image_of_a_packed_tensor_copies_nothing() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.shares_memory(image(x, layout(tensor((2, 3))), ""), x)
    assert image(x.T, layout(tensor((3, 2))), "").tolist() == [0, 3, 1, 4, 2, 5]
