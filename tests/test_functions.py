"""The NumPy face: types, axes, initial elements, outputs and errors of the three functions."""

from __future__ import annotations

import inspect
import itertools
import threading
from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

import dmlgpu
from dmlgpu import reference
from dmlgpu.arrays import functions
from dmlgpu.errors import (
    AdapterNotFoundError,
    ArgumentError,
    ArrayTypeError,
    AxisError,
    DeviceMemoryError,
    DmlGpuError,
)
from dmlgpu.planning import problem

from .samples import DTYPES, every_kind, tame
from .views import view_steps

SCANS = {"sum": dmlgpu.cumulative_sum, "product": dmlgpu.cumulative_prod}
MODES = ["half_even", "toward_zero", "half_away"]

PROMOTION = {
    "bool": "int64",
    "int8": "int64",
    "int16": "int64",
    "int32": "int64",
    "int64": "int64",
    "uint8": "uint64",
    "uint16": "uint64",
    "uint32": "uint64",
    "uint64": "uint64",
    "float16": "float16",
    "float32": "float32",
    "float64": "float64",
}


def same(result: Any, expected: NDArray[Any]) -> None:
    """Check type, shape and bits, whatever kind of array the result is."""
    host = result.numpy() if isinstance(result, dmlgpu.DeviceArray) else result
    assert type(host) is np.ndarray
    assert reference.first_difference(host, expected) is None


def with_initial(scanned: NDArray[Any], operator: str, axis: int, reverse: bool) -> NDArray[Any]:
    first = np.full_like(
        scanned.take([0] if scanned.shape[axis] else [], axis), reference.identity(operator, scanned.dtype)
    )
    return np.concatenate([scanned, first] if reverse else [first, scanned], axis)


# Types


@pytest.mark.parametrize("kind", [np.asarray, dmlgpu.asarray])
@pytest.mark.parametrize("operator", SCANS)
@pytest.mark.parametrize(("dtype", "promoted"), PROMOTION.items())
def test_promotion(device: dmlgpu.Device, operator: str, dtype: str, promoted: str, kind: Any) -> None:
    x = tame(dtype, (3, 40))
    given = kind(x) if kind is np.asarray else kind(x, device)
    expected = reference.cumulative(reference.convert(x, promoted), operator, axis=1)
    same(SCANS[operator](given, axis=1, device=device), expected)


@pytest.mark.parametrize("source", PROMOTION)
@pytest.mark.parametrize("target", DTYPES)
def test_dtype(device: dmlgpu.Device, source: str, target: str) -> None:
    x = every_kind(source, (200,))
    x = x[np.isfinite(x)] if np.dtype(target).kind == "f" else x
    if np.dtype(target).kind == "f" and np.dtype(source).kind != "f":
        x = x // 2**40 if x.itemsize == 8 else x  # large sums of float16 are infinite, which is tested elsewhere
    expected = reference.cumulative(reference.convert(x, target), "sum", axis=0)
    same(dmlgpu.cumulative_sum(x, dtype=target, device=device), expected)


@pytest.mark.parametrize("dtype", [">i2", ">u4", ">i8", ">f2", ">f4"])
def test_byte_order(device: dmlgpu.Device, dtype: str) -> None:
    x = np.arange(-3, 40).astype(dtype)
    native = x.astype(x.dtype.newbyteorder("="))
    same(dmlgpu.cumulative_sum(x, device=device), dmlgpu.cumulative_sum(native, device=device))
    same(dmlgpu.round(x, device=device), native)
    same(dmlgpu.cumulative_sum(native, dtype=dtype, device=device), np.cumsum(native).astype(native.dtype))


@pytest.mark.parametrize(
    "x",
    [
        [1, 2, 3],
        (True, False, True),
        range(4),
        np.ma.masked_array([1, 2, 3], mask=False),
        np.array([1, 2, 3]).view(type("Named", (np.ndarray,), {})),
    ],
)
def test_array_likes(device: dmlgpu.Device, x: Any) -> None:
    same(dmlgpu.cumulative_sum(x, device=device), np.cumsum(np.asarray(x), dtype=np.int64))


def test_a_matrix_gives_an_array(device: dmlgpu.Device) -> None:
    x = np.arange(6).reshape(2, 3).view(np.matrix)
    same(dmlgpu.cumulative_sum(x, axis=1, device=device), np.cumsum(np.asarray(x), 1))


# Axes, direction, initial element


@pytest.mark.parametrize("operator", SCANS)
@pytest.mark.parametrize("axis", range(-4, 4))
@pytest.mark.parametrize(("exclusive", "reverse"), [*itertools.product([False, True], repeat=2)])
def test_axes(device: dmlgpu.Device, operator: str, axis: int, exclusive: bool, reverse: bool) -> None:
    x = tame("float32", (3, 18, 1, 5))
    expected = reference.cumulative(x, operator, axis=axis, exclusive=exclusive, reverse=reverse)
    options = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
    same(SCANS[operator](x, **options, device=device), expected)
    same(SCANS[operator](dmlgpu.asarray(x, device), **options), expected)


def test_axis_may_be_any_integer_and_left_out_for_one_dimension(device: dmlgpu.Device) -> None:
    x = np.arange(5)
    for axis in (None, 0, -1, np.int8(0), np.array(0)):
        same(dmlgpu.cumulative_sum(x, axis=axis, device=device), np.cumsum(x))


@pytest.mark.parametrize("dtype", ["float16", "int8", "int64", "uint16"])
@pytest.mark.parametrize("operator", SCANS)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("reverse", [False, True])
def test_include_initial(device: dmlgpu.Device, dtype: str, operator: str, axis: int, reverse: bool) -> None:
    x = tame(dtype, (3, 17, 4))
    expected = with_initial(reference.cumulative(x, operator, axis=axis, reverse=reverse), operator, axis, reverse)
    options = {"axis": axis, "dtype": dtype, "reverse": reverse, "include_initial": True}
    same(SCANS[operator](x, **options, device=device), expected)
    same(SCANS[operator](dmlgpu.asarray(x, device), **options), expected)
    out = np.zeros(expected.shape, dtype)
    assert SCANS[operator](x, **options, out=out, device=device) is out
    same(out, expected)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (2, 0, 3), (0, 0)])
@pytest.mark.parametrize("operator", SCANS)
@pytest.mark.parametrize("dtype", ["int16", "float64"])
def test_empty_arrays(device: dmlgpu.Device, shape: tuple[int, ...], operator: str, dtype: str) -> None:
    x, promoted = np.empty(shape, dtype), PROMOTION[dtype]
    for axis, initial, on_device in itertools.product(range(len(shape)), (False, True), (False, True)):
        sizes = tuple(size + (initial and i == axis) for i, size in enumerate(shape))
        given, out = x, np.empty(sizes, promoted)
        if on_device:
            given, out = dmlgpu.asarray(given, device), dmlgpu.asarray(out, device)
        options = {"axis": axis, "include_initial": initial, "device": device}
        expected = np.full(sizes, reference.identity(operator, promoted))
        same(SCANS[operator](given, **options), expected)
        assert SCANS[operator](given, **options, out=out) is out
        same(out, expected)


@pytest.mark.parametrize("mode", MODES)
def test_rounding_an_empty_array(device: dmlgpu.Device, mode: str) -> None:
    x = np.empty((2, 0), np.float32)
    same(dmlgpu.round(x, mode=mode, device=device), x)
    same(dmlgpu.round(dmlgpu.asarray(x, device), mode=mode), x)


# Views


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_scans_of_random_views(device: dmlgpu.Device, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(DTYPES))
    operator = data.draw(st.sampled_from(list(SCANS)))
    x = tame(
        dtype, data.draw(array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=7)), data.draw(st.integers(0, 9))
    )
    array = dmlgpu.asarray(x, device)
    for step in data.draw(view_steps(x.shape)):
        x, array = step(x), step(array)
    if x.ndim == 0:
        x, array = x.reshape(1), array.reshape(1)
    options = {
        "axis": data.draw(st.integers(-x.ndim, x.ndim - 1)),
        "exclusive": data.draw(st.booleans()),
        "reverse": data.draw(st.booleans()),
    }
    expected = reference.cumulative(x, operator, **options)
    same(SCANS[operator](array, dtype=dtype, **options), expected)
    same(SCANS[operator](x, dtype=dtype, **options, device=device), expected)


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_rounding_of_random_views(device: dmlgpu.Device, data: st.DataObject) -> None:
    dtype, mode = data.draw(st.sampled_from(DTYPES)), data.draw(st.sampled_from(MODES))
    x = every_kind(dtype, data.draw(array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=7)))
    array = dmlgpu.asarray(x, device)
    for step in data.draw(view_steps(x.shape)):
        x, array = step(x), step(array)
    expected = reference.round(x, mode)
    same(dmlgpu.round(array, mode=mode), expected)
    same(dmlgpu.round(x, mode=mode, device=device), expected)


@pytest.mark.parametrize("view", [lambda x: x.T, lambda x: x[::-1], lambda x: x[:, None], lambda x: x[1:, ::3]])
def test_larger_views(device: dmlgpu.Device, view: Any) -> None:
    x = tame("float16", (300, 301))
    for axis in range(view(x).ndim):
        expected = reference.cumulative(view(x), "sum", axis=axis)
        same(dmlgpu.cumulative_sum(view(dmlgpu.asarray(x, device)), axis=axis), expected)
        same(dmlgpu.cumulative_sum(view(x), axis=axis, device=device), expected)


# out=


def gapped(dtype: str, shape: tuple[int, ...]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Memory full of a pattern, and a writable view of it with gaps, negative and transposed strides."""
    memory = np.full((2 * shape[1] + 1, 3 * shape[0] + 2), 85, dtype)
    return memory, memory[1::2, 1::3][: shape[1], : shape[0]].T[::-1]


@pytest.mark.parametrize("dtype", DTYPES)
def test_out_ndarray_with_gaps(device: dmlgpu.Device, dtype: str) -> None:
    x = tame(dtype, (5, 20))
    memory, out = gapped(dtype, x.shape)
    before = memory.copy()
    assert dmlgpu.round(x, out=out, device=device) is out
    same(np.array(out), reference.round(x, "half_even"))
    assert dmlgpu.cumulative_sum(x, axis=1, dtype=dtype, out=out, device=device) is out
    same(np.array(out), reference.cumulative(x, "sum", axis=1))
    out[...] = 85
    np.testing.assert_array_equal(memory, before)


@pytest.mark.parametrize("dtype", DTYPES)
def test_out_device_array_with_gaps(device: dmlgpu.Device, dtype: str) -> None:
    x = tame(dtype, (5, 20))
    memory, expected = gapped(dtype, x.shape)
    there = dmlgpu.asarray(memory, device)
    out = there[1::2, 1::3][: x.shape[1], : x.shape[0]].T[::-1]
    given = dmlgpu.asarray(x, device)
    assert dmlgpu.round(given, out=out) is out
    expected[...] = reference.round(x, "half_even")
    same(there, memory)
    assert dmlgpu.cumulative_sum(given, axis=1, dtype=dtype, out=out, reverse=True) is out
    expected[...] = reference.cumulative(x, "sum", axis=1, reverse=True)
    same(there, memory)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float32", "int64"])
@pytest.mark.parametrize("shift", [0, 1, 2, 3, 5, 40, 60])
@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("initial", [False, True])
def test_out_that_overlaps(device: dmlgpu.Device, dtype: str, shift: int, swap: bool, initial: bool) -> None:
    memory = tame(dtype, (130,))
    places = [slice(3, 43), slice(3 + shift, 43 + shift + initial)]
    if swap:
        places = [slice(3 + shift, 43 + shift), slice(3, 43 + initial)]
    read, written = places
    scanned = reference.cumulative(memory[read], "sum", axis=0)
    expected = memory.copy()
    expected[written] = with_initial(scanned, "sum", 0, False) if initial else scanned

    there = dmlgpu.asarray(memory, device)
    dmlgpu.cumulative_sum(there[read], dtype=dtype, include_initial=initial, out=there[written])
    same(there, expected)
    dmlgpu.cumulative_sum(memory[read], dtype=dtype, include_initial=initial, out=memory[written], device=device)
    same(memory, expected)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
@pytest.mark.parametrize(
    ("read", "written"),
    [
        (lambda x: x, lambda x: x),
        (lambda x: x, lambda x: x[::-1]),
        (lambda x: x, lambda x: x.T),
        (lambda x: x[:, ::2], lambda x: x[:, 1::2]),
        (lambda x: x[::-1, ::2], lambda x: x[::-1, ::2]),
        (lambda x: x[2:3], lambda x: x[2:3][::-1]),
        (lambda x: x[:6], lambda x: x[6:]),
        (lambda x: x[1:], lambda x: x[:-1]),
        (lambda x: x[0], lambda x: x[:, 0]),
    ],
)
def test_out_that_overlaps_in_two_dimensions(device: dmlgpu.Device, dtype: str, read: Any, written: Any) -> None:
    start = tame(dtype, (12, 12))
    there, memory = dmlgpu.asarray(start, device), start.copy()
    calls: list[tuple[Any, Any]] = [
        (lambda x: reference.cumulative(x, "sum", axis=-1), lambda x, **k: dmlgpu.cumulative_sum(x, axis=-1, **k)),
        (lambda x: reference.cumulative(x, "product", axis=0), lambda x, **k: dmlgpu.cumulative_prod(x, axis=0, **k)),
        (lambda x: reference.round(x, "half_away"), lambda x, **k: dmlgpu.round(x, mode="half_away", **k)),
    ]
    for on_numpy, call in calls:
        there, memory, expected = dmlgpu.asarray(start, device), start.copy(), start.copy()
        written(expected)[...] = on_numpy(read(start))
        keep = {} if call is calls[2][1] else {"dtype": dtype}
        call(read(there), out=written(there), **keep)
        same(there, expected)
        call(read(memory), out=written(memory), device=device, **keep)
        same(memory, expected)


def test_out_of_another_type_than_x(device: dmlgpu.Device) -> None:
    x = tame("int8", (6, 30))
    expected = reference.cumulative(x.astype(np.int64), "product", axis=1)
    out = np.zeros((30, 6), np.int64).T
    assert dmlgpu.cumulative_prod(x, axis=1, out=out, device=device) is out
    same(np.ascontiguousarray(out), expected)
    there = dmlgpu.asarray(np.zeros((30, 12), np.int64), device)
    dmlgpu.cumulative_prod(dmlgpu.asarray(x, device), axis=1, out=there.T[::2])
    same(there.T[::2], expected)
    same(there.T[1::2], np.zeros_like(expected))


@pytest.mark.parametrize("kind", [np.asarray, dmlgpu.asarray])
@pytest.mark.parametrize("target", DTYPES)
@pytest.mark.parametrize("source", ["bool", "int8", "uint16", "float32"])
def test_out_decides_the_type(device: dmlgpu.Device, source: str, target: str, kind: Any) -> None:
    """Without a dtype the result has that of out, as in NumPy."""
    x = tame(source, (5, 20))
    given, out = x, np.zeros(x.shape, target)
    if kind is dmlgpu.asarray:
        given, out = kind(x, device), kind(out, device)
    assert dmlgpu.cumulative_sum(given, axis=1, out=out, device=device) is out
    same(out, reference.cumulative(reference.convert(x, target), "sum", axis=1))
    with pytest.raises(
        ArrayTypeError, match=f"out has dtype {target} while the result has (int|uint)[0-9]+: give an out of"
    ):
        dmlgpu.cumulative_sum(given, axis=1, out=out, dtype="uint32" if target == "int32" else "int32", device=device)


@pytest.mark.parametrize("big", [False, True])
def test_out_of_a_subclass(device: dmlgpu.Device, big: bool) -> None:
    """A matrix reshapes to two dimensions, whatever it is asked for."""
    x = tame("float32", (2000, 600) if big else (3, 4))
    for out in (np.zeros(x.shape, x.dtype).view(np.matrix), np.zeros(x.shape[::-1], x.dtype).view(np.matrix).T):
        assert dmlgpu.cumulative_sum(x, axis=0, out=out, device=device) is out
        same(np.array(out), reference.cumulative(x, "sum", axis=0))


def test_out_that_is_misaligned(device: dmlgpu.Device) -> None:
    out = np.zeros(4 * 10 + 1, np.uint8)[1:].view(np.float32)
    assert not out.flags.aligned
    dmlgpu.cumulative_sum(np.ones(10, np.float32), out=out, device=device)
    np.testing.assert_array_equal(out, np.arange(1, 11))
    dmlgpu.cumulative_sum(out, out=out, reverse=True, device=device)
    np.testing.assert_array_equal(out, np.cumsum(np.arange(1, 11)[::-1])[::-1])


# Rounding


@pytest.mark.parametrize("kind", [np.asarray, dmlgpu.asarray])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_round(device: dmlgpu.Device, dtype: str, mode: str, kind: Any) -> None:
    x = np.concatenate([every_kind(dtype, (400,)), np.arange(-20, 20, dtype="f4").astype(dtype)])
    if np.dtype(dtype).kind == "f":
        x = np.concatenate([x, np.arange(-8, 8, 0.25).astype(dtype)])
    given = kind(x) if kind is np.asarray else kind(x, device)
    same(dmlgpu.round(given, mode=mode, device=device), reference.round(x, mode))


@pytest.mark.parametrize("kind", [np.asarray, dmlgpu.asarray])
@pytest.mark.parametrize("x", [np.float32(2.5), np.array(-0.25), np.array(7, np.int8), np.float16(3.5)])
def test_round_keeps_shape(device: dmlgpu.Device, x: Any, kind: Any) -> None:
    given = kind(x) if kind is np.asarray else kind(x, device)
    same(dmlgpu.round(given, device=device), np.asarray(np.round(x)))
    assert dmlgpu.round(given, device=device).shape == ()


def test_round_of_a_scalar(device: dmlgpu.Device) -> None:
    same(dmlgpu.round(2.5, mode="half_away", device=device), np.array(3.0))
    same(dmlgpu.round(7, device=device), np.array(7))


def test_round_of_integers_is_a_copy(device: dmlgpu.Device) -> None:
    x = np.arange(4)
    assert not np.shares_memory(dmlgpu.round(x), x)
    there = dmlgpu.asarray(x, device)
    rounded = dmlgpu.round(there)
    there.release()
    same(rounded, x)
    out = x[::-1]
    dmlgpu.round(x, out=out)
    same(x, np.array([3, 2, 1, 0]))


# Devices


def test_no_transfer_for_device_arrays(device: dmlgpu.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    x = dmlgpu.asarray(tame("float32", (30, 40)), device)

    def fail(*args: object) -> None:
        raise AssertionError("a transfer")

    with monkeypatch.context() as patched:
        patched.setattr(type(device), "upload", fail)
        patched.setattr(type(device), "download", fail)
        scanned = dmlgpu.cumulative_sum(x.T[::2], axis=0, reverse=True)
        converted = dmlgpu.cumulative_prod(x[0], dtype="int16")
        rounded = dmlgpu.round(scanned, mode="toward_zero")
        dmlgpu.round(rounded, out=rounded)
    assert all(array.device is device for array in (scanned, converted, rounded))
    expected = reference.cumulative(x.numpy().T[::2], "sum", axis=0, reverse=True)
    same(rounded, reference.round(expected, "toward_zero"))


def test_the_default_device_is_used(device: dmlgpu.Device) -> None:
    assert dmlgpu.cumulative_sum([1, 2]).tolist() == [1, 3]
    assert dmlgpu.asarray([1, 2]).device is dmlgpu.default_device()


def test_a_device_by_name(device: dmlgpu.Device) -> None:
    array = dmlgpu.asarray([1, 2, 3], device=device.summary)
    assert array.device.summary == device.summary
    assert dmlgpu.cumulative_sum(array, device=device.summary).numpy().tolist() == [1, 3, 6]


def test_threads_share_a_device(device: dmlgpu.Device) -> None:
    inputs = [tame("float32", (50, 60 + i), seed=i) for i in range(4)]
    results: dict[int, list[NDArray[Any]]] = {i: [] for i in range(4)}

    def work(i: int) -> None:
        there = dmlgpu.asarray(inputs[i], device)
        for _ in range(5):
            results[i].append(dmlgpu.cumulative_sum(inputs[i], axis=0, device=device))
            results[i].append(dmlgpu.cumulative_sum(there.T, axis=1).T.numpy())

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, x in enumerate(inputs):
        assert len(results[i]) == 10
        for result in results[i]:
            same(result, reference.cumulative(x, "sum", axis=0))


# Bad input. `d` is the device; every call is followed by a good one.

ONES = np.ones((2, 3), np.float32)


def locked() -> NDArray[Any]:
    out = np.zeros((2, 3), np.float32)
    out.flags.writeable = False
    return out


class Objects:
    """As a column of pandas with elements of any type: small integers that are Python objects."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return np.array([1, 2], dtype=object)


BAD: list[tuple[str, Callable[[Any], Any], type[Exception], str]] = [
    (
        "integers too wide for a type",
        lambda d: dmlgpu.cumulative_sum([1, 2**70], device=d),
        ArrayTypeError,
        "^x holds 1180591620717411303424, which does not fit in 64 bits: give smaller integers, or floats$",
    ),
    (
        "integers as objects",
        lambda d: dmlgpu.cumulative_sum(Objects(), device=d),
        ArrayTypeError,
        "^x has dtype object as a NumPy array, which has no element type on the device",
    ),
    ("axis out of range", lambda d: dmlgpu.cumulative_sum(ONES, axis=2, device=d), AxisError, "axis 2 .* -2 to 1"),
    ("axis below range", lambda d: dmlgpu.cumulative_prod(ONES, axis=-3, device=d), AxisError, "axis -3"),
    ("axis of a device array", lambda d: dmlgpu.cumulative_sum(dmlgpu.asarray(ONES, d), axis=2), AxisError, "axis 2"),
    ("no axis for two dimensions", lambda d: dmlgpu.cumulative_sum(ONES, device=d), AxisError, r"reshape\(-1\)"),
    ("a scalar", lambda d: dmlgpu.cumulative_sum(1.0, device=d), AxisError, r"reshape\(1\)"),
    ("a scalar with an axis", lambda d: dmlgpu.cumulative_prod(1, axis=0, device=d), AxisError, r"reshape\(1\)"),
    ("axis of a wrong type", lambda d: dmlgpu.cumulative_sum(ONES, axis=1.0, device=d), ArrayTypeError, "axis is 1.0"),
    ("axis True", lambda d: dmlgpu.cumulative_sum(ONES, axis=True, device=d), ArrayTypeError, "axis is True"),
    (
        "include_initial with exclusive",
        lambda d: dmlgpu.cumulative_sum(ONES, axis=0, include_initial=True, exclusive=True, device=d),
        ArgumentError,
        "include_initial",
    ),
    ("complex", lambda d: dmlgpu.cumulative_sum([1j], device=d), ArrayTypeError, "x has dtype complex128"),
    ("objects", lambda d: dmlgpu.cumulative_sum([None], device=d), ArrayTypeError, "x has dtype object"),
    ("text", lambda d: dmlgpu.round("1.5", device=d), ArrayTypeError, "x has dtype <U3"),
    ("ragged", lambda d: dmlgpu.cumulative_sum([[1], [1, 2]], device=d), ValueError, "inhomogeneous"),
    (
        "masked",
        lambda d: dmlgpu.cumulative_sum(np.ma.masked_array([1, 2], [0, 1]), device=d),
        ArrayTypeError,
        r"1 masked element, .*x\.filled",
    ),
    ("dtype bool", lambda d: dmlgpu.cumulative_sum([1], dtype=bool, device=d), ArrayTypeError, "dtype is bool"),
    (
        "dtype complex",
        lambda d: dmlgpu.cumulative_sum([1], dtype="complex64", device=d),
        ArrayTypeError,
        "dtype is complex64",
    ),
    ("dtype unknown", lambda d: dmlgpu.cumulative_sum([1], dtype="float33", device=d), TypeError, "float33"),
    ("rounding bool", lambda d: dmlgpu.round([True], device=d), ArrayTypeError, "bool"),
    ("rounding a bool device array", lambda d: dmlgpu.round(dmlgpu.asarray([True], d)), ArrayTypeError, "bool"),
    (
        "unknown mode",
        lambda d: dmlgpu.round(ONES, mode="up", device=d),
        ArgumentError,
        "'up'.*'half_even', 'toward_zero', 'half_away'",
    ),
    ("mode of a wrong type", lambda d: dmlgpu.round(ONES, mode=[], device=d), ArrayTypeError, "half_even"),
    ("nine dimensions", lambda d: dmlgpu.round(np.ones((1,) * 9), device=d), ArgumentError, "9 dimensions; at most 8"),
    (
        "more than 2^32-1 elements",
        lambda d: dmlgpu.cumulative_sum(np.broadcast_to(np.int8(1), 2**32), device=d),
        ArgumentError,
        r"4294967296 elements; at most 2\^32-1",
    ),
    (
        "more than the device's memory",
        lambda d: dmlgpu.cumulative_sum(np.broadcast_to(np.int8(1), 2**32 - 1), device=d),
        DeviceMemoryError,
        "34359738360 bytes",
    ),
    (
        "a view larger than the device's memory",
        lambda d: dmlgpu.round(dmlgpu.asarray(1.0, d).broadcast_to(2**32 - 1)),
        DeviceMemoryError,
        "34359738360 bytes",
    ),
    (
        "bool out",
        lambda d: dmlgpu.cumulative_sum(ONES, axis=0, out=np.zeros((2, 3), bool), device=d),
        ArrayTypeError,
        "out has dtype bool",
    ),
    (
        "complex out",
        lambda d: dmlgpu.cumulative_sum(ONES, axis=0, out=np.zeros((2, 3), complex), device=d),
        ArrayTypeError,
        "out has dtype complex128",
    ),
    ("out of a wrong type", lambda d: dmlgpu.round(ONES, out=[0.0], device=d), ArrayTypeError, "out is of type list"),
    (
        "out of a wrong dtype",
        lambda d: dmlgpu.round(ONES, out=np.zeros((2, 3)), device=d),
        ArrayTypeError,
        "out has dtype float64 .* float32",
    ),
    (
        "out in another byte order",
        lambda d: dmlgpu.round(ONES, out=np.zeros((2, 3), ">f4"), device=d),
        ArrayTypeError,
        "out has dtype >f4 while .* native byte order",
    ),
    (
        "out of a wrong shape",
        lambda d: dmlgpu.round(ONES, out=np.zeros((3, 2), "f4"), device=d),
        ArgumentError,
        r"out has shape \(3, 2\) .* \(2, 3\)",
    ),
    (
        "out without place for the initial element",
        lambda d: dmlgpu.cumulative_sum(ONES, axis=1, include_initial=True, out=np.zeros((2, 3), "f4"), device=d),
        ArgumentError,
        r"out has shape \(2, 3\) .* \(2, 4\)",
    ),
    ("read-only out", lambda d: dmlgpu.round(ONES, out=locked(), device=d), ArgumentError, "out is read-only"),
    (
        "read-only out for integers",
        lambda d: dmlgpu.round([1], out=np.broadcast_to(1, 1), device=d),
        ArgumentError,
        "out is read-only",
    ),
    (
        "masked out",
        lambda d: dmlgpu.round(ONES, out=np.ma.masked_array(ONES, mask=True), device=d),
        ArrayTypeError,
        "MaskedArray",
    ),
    (
        "out whose elements share memory",
        lambda d: dmlgpu.round(ONES, out=as_strided(np.zeros(9, "f4"), (2, 3), (4, 4)), device=d),
        ArgumentError,
        "share memory",
    ),
    (
        "broadcast out",
        lambda d: dmlgpu.round(dmlgpu.asarray(ONES, d), out=dmlgpu.asarray(ONES[0], d).broadcast_to((2, 3))),
        ArgumentError,
        "share memory",
    ),
    (
        "a device array into an ndarray",
        lambda d: dmlgpu.round(dmlgpu.asarray(ONES, d), out=np.zeros((2, 3), "f4")),
        ArrayTypeError,
        "out is of type ndarray",
    ),
    (
        "an ndarray into a device array",
        lambda d: dmlgpu.round(ONES, out=dmlgpu.asarray(ONES, d), device=d),
        ArrayTypeError,
        "out is of type DeviceArray",
    ),
    (
        "an unknown device",
        lambda d: dmlgpu.round(ONES, device="no such adapter"),
        AdapterNotFoundError,
        "no such adapter",
    ),
    (
        "an unknown device for nothing",
        lambda d: dmlgpu.round([], device="no such adapter"),
        AdapterNotFoundError,
        "no such",
    ),
    (
        "an unknown device for integers",
        lambda d: dmlgpu.round([1], device="no such adapter"),
        AdapterNotFoundError,
        "no s",
    ),
    ("device of a wrong type", lambda d: dmlgpu.round(ONES, device=1.5), ArrayTypeError, "device"),
]


@pytest.mark.parametrize(("call", "error", "text"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_bad_input(device: dmlgpu.Device, call: Callable[[Any], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text) as caught:
        call(device)
    assert isinstance(caught.value, DmlGpuError) or error in (TypeError, ValueError)
    same(dmlgpu.cumulative_sum(ONES, axis=1, device=device), np.cumsum(ONES, 1))


def test_editors_are_told_the_names_of_modes_and_precisions() -> None:
    """Parameters are annotated with a Literal that has exactly the names that are taken."""
    for call, name, choices in (
        (dmlgpu.round, "mode", problem.MODES),
        (dmlgpu.cumulative_sum, "precision", problem.PRECISIONS),
        (dmlgpu.Scan, "precision", problem.PRECISIONS),
    ):
        annotation = inspect.signature(call).parameters[name].annotation
        named = getattr(functions, annotation)
        assert get_origin(named) is Literal
        assert get_args(named) == tuple(choices)


TYPES = "float32, float16, uint32, uint16, uint8, int32, int16, int8, float64, uint64, int64$"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda d: dmlgpu.cumulative_sum([1.0], out=np.zeros(1, complex), device=d), rf"give an out of one of {TYPES}"),
        (lambda d: dmlgpu.cumulative_sum([1.0], out=np.zeros(1, object), device=d), rf"give an out of one of {TYPES}"),
        (lambda d: dmlgpu.cumulative_sum([1.0], dtype=complex, device=d), rf"on the device: give one of {TYPES}"),
        (lambda d: dmlgpu.cumulative_prod([1.0], dtype="no", device=d), rf"no dtype: give one of {TYPES}"),
        (lambda d: dmlgpu.Scan("sum", axis=0, dtype=complex, device=d), rf"on the device: give one of {TYPES}"),
        (lambda d: dmlgpu.asarray([1.0], d).astype(complex), rf"on the device: give one of {TYPES}"),
        (lambda d: dmlgpu.asarray([True], d).astype(complex), r"on the device: give one of .*, bool$"),
        (lambda d: dmlgpu.round([1.0], out=[0.0], device=d), r"no DeviceArray: give a plain numpy\.ndarray$"),
        (
            lambda d: dmlgpu.round([1.0], out=dmlgpu.asarray([1.0], d), device=d),
            r"no DeviceArray: give a plain numpy\.ndarray, or asarray\(x\) as x$",
        ),
        (lambda d: dmlgpu.round(dmlgpu.asarray([1.0], d), out=[0.0]), r"a DeviceArray: give a DeviceArray$"),
        (
            lambda d: dmlgpu.round(dmlgpu.asarray([1.0], d), out=np.zeros(1)),
            r"a DeviceArray: give a DeviceArray, or x\.numpy\(\) as x$",
        ),
    ],
)
def test_ways_out_of_wrong_types_are_some(device: dmlgpu.Device, call: Callable[[Any], Any], text: str) -> None:
    with pytest.raises(ArrayTypeError, match=text):
        call(device)


def test_axis_errors_are_those_of_numpy(device: dmlgpu.Device) -> None:
    for axis in (5, None):
        with pytest.raises(np.exceptions.AxisError) as caught:
            dmlgpu.cumulative_sum(ONES, axis=axis, device=device)
        assert isinstance(caught.value, ValueError)
        assert isinstance(caught.value, IndexError)
