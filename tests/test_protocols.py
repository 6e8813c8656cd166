"""NumPy's functions, DLPack and the array API's small methods on arrays of a device."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dmlgpu
from dmlgpu import reference
from dmlgpu.errors import ArgumentError, ArrayTypeError, AxisError, SharedMemoryError

RANDOM = np.random.default_rng(5)
X = RANDOM.standard_normal((3, 70, 40)).astype(np.float32)
DTYPES = ["bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "float64"]


def bits(x: np.ndarray[Any, Any]) -> bytes:
    return np.ascontiguousarray(x).tobytes()


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cumulative_sum", "cumulative_prod"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_numpy_scans_run_on_the_device_with_its_bits(device: dmlgpu.Device, name: str, axis: int) -> None:
    x = dmlgpu.asarray(X, device)
    found = getattr(np, name)(x, axis=axis)
    ours = dmlgpu.cumulative_sum if "sum" in name else dmlgpu.cumulative_prod
    assert isinstance(found, dmlgpu.DeviceArray)
    assert found.device is device
    assert bits(found.numpy()) == bits(ours(x, axis=axis).numpy())
    if "sum" in name and axis == 1:  # not NumPy's own bits, which come from another order
        assert bits(found.numpy()) != bits(np.cumsum(X, axis=1))


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_types_and_shapes_are_those_of_numpy(device: dmlgpu.Device, name: str, dtype: str) -> None:
    x = np.array([[1, 0, 3], [2, 1, 1]]).astype(dtype)
    scan = getattr(np, name)
    for axis in (None, 0, 1, -2):
        expected = scan(x, axis=axis)
        found = scan(dmlgpu.asarray(x, device), axis=axis)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(found.numpy(), expected)


def test_axis_none_flattens_in_c_order_as_numpy_does(device: dmlgpu.Device) -> None:
    x = np.arange(24).reshape(2, 3, 4)
    on_device = dmlgpu.asarray(x, device)
    for view in (lambda a: a, lambda a: a.T, lambda a: a[:, ::-1, 1:]):
        np.testing.assert_array_equal(np.cumsum(view(on_device)).numpy(), np.cumsum(view(x)))
    with pytest.raises(AxisError, match=r"axis=None needs an array of 1 dimension"):  # the array API's rule
        np.cumulative_sum(on_device)
    np.testing.assert_array_equal(
        np.cumulative_sum(on_device, axis=0, include_initial=True).numpy(),
        np.cumulative_sum(x, axis=0, include_initial=True),
    )


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_no_dimensions_are_a_slice_of_one_as_in_numpy(device: dmlgpu.Device, name: str) -> None:
    scan, number = getattr(np, name), dmlgpu.asarray(np.float32(2.5), device)
    for axis in (None, 0, -1):
        assert scan(number, axis=axis).tolist() == scan(np.float32(2.5), axis=axis).tolist() == [2.5]
    with pytest.raises(AxisError, match=r"^axis 1 is out of range"):
        scan(number, axis=1)


def test_out_and_dtype_of_numpy_functions(device: dmlgpu.Device) -> None:
    x = dmlgpu.asarray(np.array([100, 100, 100], np.int8), device)
    out = dmlgpu.asarray(np.zeros(3, np.int8), device)
    assert np.cumsum(x, out=out) is out
    np.testing.assert_array_equal(out.numpy(), np.cumsum(np.array([100, 100, 100], np.int8), out=np.zeros(3, np.int8)))
    assert np.cumsum(x, dtype="float64").dtype == np.float64
    assert np.cumsum(x, 0, np.int32).tolist() == [100, 200, 300]
    with pytest.raises(ArrayTypeError, match=r"^out is of type DeviceArray while x is no DeviceArray"):
        np.cumsum(np.zeros(3, np.int8), out=out)  # type: ignore[call-overload]


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cumulative_sum", "cumulative_prod", "round"])
@pytest.mark.parametrize("x", [[1.0, 2.0], (1.0, 2.0), 1.0, np.float32(1), np.zeros(2), [[1.0], [2.0]]], ids=repr)
def test_data_of_the_host_with_an_out_on_the_device(device: dmlgpu.Device, name: str, x: Any) -> None:
    out = dmlgpu.asarray(np.zeros(2), device)
    expected = r"^(out is of type DeviceArray while x is no DeviceArray|axis|an array of 0 dimensions has no axis)"
    with pytest.raises((ArrayTypeError, AxisError), match=expected):
        getattr(np, name)(x, out=out)
    if name in ("cumsum", "cumprod"):
        with pytest.raises(ArrayTypeError, match=r"^out is of type DeviceArray"):
            getattr(np, name)(x, out=out)


def test_rounding(device: dmlgpu.Device) -> None:
    x = np.array([-2.5, -0.4, 0.5, 1.5, np.nan, -np.inf], np.float32)
    for function in (np.round, np.around):
        found = function(dmlgpu.asarray(x, device))
        assert bits(found.numpy()) == bits(np.round(x)) == bits(reference.round(x, "half_even"))
        assert bits(function(dmlgpu.asarray(x, device), decimals=0).numpy()) == bits(np.round(x))
        for decimals in (2, -1):
            with pytest.raises(ArgumentError, match=rf"^decimals is {decimals}, and a device rounds to integers only"):
                function(dmlgpu.asarray(x, device), decimals)
    assert np.round(dmlgpu.asarray([3, 4], device)).tolist() == [3, 4]


ACCUMULATED = ["?", "i1", "u1", "i2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]


@pytest.mark.parametrize("ufunc", [np.add, np.multiply], ids=["add", "multiply"])
@pytest.mark.parametrize("kind", ACCUMULATED)
def test_accumulate_of_ufuncs(device: dmlgpu.Device, ufunc: np.ufunc, kind: str) -> None:
    x = np.array([[100, 100, 2], [3, 4, 0]]).astype(kind)
    there = dmlgpu.asarray(x, device)
    for axis in (0, 1, -1):
        expected = ufunc.accumulate(x, axis)
        found = ufunc.accumulate(there, axis)
        assert found.dtype == expected.dtype
        assert bits(found.numpy()) == bits(expected)
    assert bits(ufunc.accumulate(there).numpy()) == bits(ufunc.accumulate(x))
    assert ufunc.accumulate(there, dtype=np.float64).dtype == np.float64
    expected = np.zeros(x.shape, x.dtype if kind != "?" else np.int64)
    out = dmlgpu.asarray(expected, device)
    assert ufunc.accumulate(there, 1, out=out) is out
    assert bits(out.numpy()) == bits(ufunc.accumulate(x, 1, out=expected))


def test_accumulate_into_another_type(device: dmlgpu.Device) -> None:
    x = np.array([[1.5, 2.5, 3.5], [4.5, 5.5, 6.5]], np.float32)
    there, integers = dmlgpu.asarray(x, device), dmlgpu.asarray(np.zeros(x.shape, np.int32), device)
    with pytest.raises(ArrayTypeError, match=r"^out has dtype int32 and x float32, in which numpy\.add\.accum.*int32"):
        np.add.accumulate(there, out=integers)
    with pytest.raises(ArrayTypeError, match=r"^out has dtype float32 and x int32, in which numpy\.multiply\.acc"):
        np.multiply.accumulate(integers, out=there)
    assert np.add.accumulate(there, dtype=np.int32, out=integers) is integers
    assert integers.tolist() == [[1, 2, 3], [5, 7, 9]]
    wide = dmlgpu.asarray(np.zeros(3, np.int64), device)
    assert np.add.accumulate(dmlgpu.asarray(np.array([100, 100, 100], np.int8), device), out=wide).tolist() == [
        100,
        200,
        300,
    ]


def test_ufuncs_that_round(device: dmlgpu.Device) -> None:
    x = np.array([-2.5, -0.4, 0.5, 1.5, np.nan, -np.inf], np.float32)
    there = dmlgpu.asarray(x, device)
    for ufunc in (np.rint, np.trunc):
        out = dmlgpu.asarray(np.zeros_like(x), device)
        assert bits(ufunc(there).numpy()) == bits(ufunc(x))
        assert ufunc(there, out=out) is out
        assert bits(out.numpy()) == bits(ufunc(x))
    integers = dmlgpu.asarray(np.array([3, -4]), device)
    assert np.trunc(integers).dtype == np.trunc(np.array([3])).dtype == np.int64
    with pytest.raises(ArrayTypeError, match=r"^numpy\.rint would make floats of int64.*: use numpy\.round$"):
        np.rint(integers)
    with pytest.raises(ArrayTypeError, match="bool"):
        np.rint(dmlgpu.asarray([True], device))


def test_arguments_of_ufuncs(device: dmlgpu.Device) -> None:
    there = dmlgpu.asarray(X, device)
    with pytest.raises(ArrayTypeError, match=r"^numpy\.rint takes no where for a DeviceArray, only out: leave it out"):
        np.rint(there, where=X > 0)
    with pytest.raises(ArrayTypeError, match=r"^numpy\.trunc takes no (dtype|order) and no (dtype|order) for a .*them"):
        np.trunc(there, dtype="f8", order="F")
    with pytest.raises(AxisError, match=r"^axis 7 is out of range"):
        np.add.accumulate(there, 7)
    for x in (X, [1.0, 2.0]):
        for call in (np.rint, np.trunc, np.add.accumulate):
            with pytest.raises((ArrayTypeError, AxisError), match=r"^out is of type DeviceArray while x is no"):
                call(x, out=there)  # type: ignore[operator]


REFUSED: list[Callable[[Any], Any]] = [
    np.sum,
    np.diff,
    np.fft.fft,
    np.linalg.norm,
    np.shape,
    np.nancumsum,
    lambda x: np.concatenate([x, x]),
    lambda x: np.where(X > 0, X, x),
    lambda x: np.add(x, 1),
    lambda x: np.add(X, x),
    np.add.reduce,
    np.maximum.accumulate,
    np.floor,
]


@pytest.mark.parametrize("call", REFUSED)
def test_other_functions_are_refused_with_a_way_out(
    device: dmlgpu.Device, call: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They once ran on the CPU, unasked and with other bits."""
    x = dmlgpu.asarray(X, device)
    monkeypatch.setattr(type(device), "download", None)
    with pytest.raises(
        ArrayTypeError, match=r"^numpy\.[a-z.]+ does not work on a DeviceArray: read .* with \.numpy\(\)"
    ):
        call(x)


def test_asarray_of_numpy_still_reads_back(device: dmlgpu.Device) -> None:
    x = dmlgpu.asarray(X, device)
    for read in (np.asarray, np.array, np.ascontiguousarray):
        assert bits(read(x)) == bits(X)
    np.testing.assert_array_equal(x, X)


# DLPack


class OnlyDlpack:
    """What has elements for DLPack and for nothing else."""

    def __init__(self, x: np.ndarray[Any, Any]) -> None:
        self.x = x

    def __dlpack__(self, **options: Any) -> Any:
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.x.__dlpack_device__()


class OnAnotherDevice(OnlyDlpack):
    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("the elements are on another GPU")


def test_dlpack_out(device: dmlgpu.Device) -> None:
    x = dmlgpu.asarray(X, device)
    copy = np.from_dlpack(x.transpose(2, 0, 1)[::2])
    assert bits(copy) == bits(X.transpose(2, 0, 1)[::2])
    assert x.__dlpack_device__() == np.zeros(1).__dlpack_device__() == (1, 0)
    for options, text in (({"copy": False}, "copy is False"), ({"dl_device": (2, 0)}, r"dl_device is \(2, 0\)")):
        with pytest.raises(SharedMemoryError, match=f"^{text}, and "):
            x.__dlpack__(**options)  # type: ignore[arg-type]
        assert issubclass(SharedMemoryError, BufferError)  # which the protocol asks for
    with pytest.raises(ArrayTypeError, match=r"^stream is 1 of type int"):
        x.__dlpack__(stream=1)
    for options in ({"max_version": (1, 0), "dl_device": (1, 0), "copy": True}, {"max_version": [np.int64(1), 0]}):
        assert x.__dlpack__(**options) is not None  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["a", "10", 1, 1.5, (1,), (1, 0, 0), (1.5, 0), ("1", 0), {1, 0}], ids=repr)
@pytest.mark.parametrize("name", ["max_version", "dl_device"])
def test_dlpack_takes_pairs_of_integers(device: dmlgpu.Device, name: str, value: object) -> None:
    x = dmlgpu.asarray(X, device)
    with pytest.raises(ArrayTypeError, match=rf"^{name} is {re.escape(repr(value))} of type .*; give .*\(1, 0\)"):
        x.__dlpack__(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [(-1, 0), (1, 2**70)], ids=repr)
def test_dlpack_versions_have_limits(device: dmlgpu.Device, value: tuple[int, int]) -> None:
    with pytest.raises(ArgumentError, match=rf"^max_version is {re.escape(repr(value))}, and .* 2147483647: give "):
        dmlgpu.asarray(X, device).__dlpack__(max_version=value)


def test_dlpack_in(device: dmlgpu.Device) -> None:
    x = dmlgpu.asarray(OnlyDlpack(X[:, ::2]), device)  # type: ignore[arg-type]
    assert bits(x.numpy()) == bits(X[:, ::2])
    assert bits(dmlgpu.cumulative_sum(OnlyDlpack(X), axis=0, device=device)) == bits(  # type: ignore[call-overload]
        dmlgpu.cumulative_sum(X, axis=0, device=device)
    )
    with pytest.raises(
        ArrayTypeError, match=r"^x is .* of which NumPy makes no array \(the elements are on another GPU\)"
    ):
        dmlgpu.asarray(OnAnotherDevice(X), device)  # type: ignore[arg-type]


# Small methods of NumPy and the array API


def test_reading_a_few_elements(device: dmlgpu.Device) -> None:
    x = dmlgpu.asarray(X, device)
    assert x[1, 2].tolist() == X[1, 2].tolist()
    assert x[1, 2, 3].tolist() == x[1, 2, 3].item() == X[1, 2, 3].item()
    assert isinstance(dmlgpu.asarray([7], device).item(), int)
    with pytest.raises(ArgumentError, match=r"^the array has 8400 elements, and item\(\) takes one: index the array"):
        x.item()
    with pytest.raises(ArgumentError, match=r"^the array has 0 elements"):
        x[:0].item()


def test_matrices_are_transposed(device: dmlgpu.Device) -> None:
    x = dmlgpu.asarray(X, device)
    assert bits(x.mT.numpy()) == bits(X.swapaxes(1, 2))
    with pytest.raises(ArgumentError, match=r"^an array of shape \(40,\) has no matrices"):
        _ = x[0, 0].mT


def test_to_device(device: dmlgpu.Device) -> None:
    x = dmlgpu.asarray(X, device)
    assert x.to_device(device) is x
    with dmlgpu.Device(device.description) as other:
        there = x.to_device(other)
        assert there.device is other
        assert bits(there.numpy()) == bits(X)
    with pytest.raises(ArrayTypeError, match=r"^device is None"):
        x.to_device(None)  # type: ignore[arg-type]
    with pytest.raises(ArrayTypeError, match=r"^stream is 'a stream' of type str"):
        x.to_device(device, stream="a stream")  # type: ignore[arg-type]


def test_a_repr_shows_a_few_values(device: dmlgpu.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    about = f"dtype=int64, device={device.label}"
    assert repr(dmlgpu.asarray([[1, 2], [3, 4]], device)) == f"DeviceArray([[1, 2], [3, 4]], shape=(2, 2), {about})"
    assert repr(dmlgpu.asarray(5, device)) == f"DeviceArray(5, shape=(), {about})"
    assert repr(dmlgpu.asarray(np.zeros((0, 3), np.int64), device)) == f"DeviceArray([], shape=(0, 3), {about})"
    x = dmlgpu.asarray(np.arange(10**6).reshape(1000, 1000), device)
    downloaded = []
    read = type(device).download
    monkeypatch.setattr(
        type(device), "download", lambda self, b, o, out: (downloaded.append(out.nbytes), read(self, b, o, out))
    )
    shown = f"DeviceArray([999999, 998999, 997999, ..., 2000, 1000, 0], shape=(1000, 1000), {about})"
    assert repr(x[::-1, ::-1].T) == shown
    assert sum(downloaded) <= 6 * 8
    x.release()
    assert repr(x) == f"DeviceArray(shape=(1000, 1000), {about}, released)"


def test_a_repr_of_an_array_of_a_lost_device_is_no_error(device: dmlgpu.Device) -> None:
    with dmlgpu.Device(device.description) as other:
        x = dmlgpu.asarray([1.5], other)
    assert repr(x).startswith("DeviceArray(shape=(1,), dtype=float64, ")


# What people try first


@pytest.mark.parametrize(
    ("name", "instead"),
    [("array", "dmlgpu.asarray"), ("cumsum", "dmlgpu.cumulative_sum"), ("cumprod", "dmlgpu.cumulative_prod")],
)
def test_names_of_numpy_say_what_to_use(name: str, instead: str) -> None:
    with pytest.raises(AttributeError, match=rf"^module 'dmlgpu' has no {name}: use {instead}"):
        getattr(dmlgpu, name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cumsum", "a DeviceArray has no cumsum: use dmlgpu.cumulative_sum, or numpy.cumsum"),
        ("ravel", r"a DeviceArray has no ravel: use reshape\(-1\)"),
        ("sum", r"a DeviceArray has no sum: read the elements back with .numpy\(\) first"),
        ("shpae", "'DeviceArray' object has no attribute 'shpae'"),
        ("__array_interface__", "'DeviceArray' object has no attribute '__array_interface__'"),
    ],
)
def test_methods_of_numpy_say_what_to_use(device: dmlgpu.Device, name: str, message: str) -> None:
    x = dmlgpu.asarray([1.5], device)
    assert not hasattr(x, name)
    with pytest.raises(AttributeError, match=f"^{message}$"):
        getattr(x, name)


def test_what_arrays_are_to_use_instead_is_there(device: dmlgpu.Device) -> None:
    x = dmlgpu.asarray([[1.5, 2.5]], device)
    assert x.copy().reshape(-1).shape == x.reshape(-1).shape == x[0].shape == (2,)
    assert x.transpose().shape == (2, 1)


def test_completion_shows_public_names_only() -> None:
    assert dir(dmlgpu) == sorted(dmlgpu.__all__)
    assert all(hasattr(dmlgpu, name) for name in dir(dmlgpu))


@pytest.mark.parametrize("scan", [dmlgpu.cumulative_sum, dmlgpu.cumulative_prod])
def test_a_positional_axis_is_told_its_name(device: dmlgpu.Device, scan: Any) -> None:
    with pytest.raises(ArrayTypeError, match=rf"^{scan.__name__} takes one positional argument, x, .* as in axis=1$"):
        scan(X, 1)
    with pytest.raises(ArrayTypeError, match=r"^round takes one positional argument, x, .* as in mode='half_even'$"):
        dmlgpu.round(X, 2)  # type: ignore[call-overload]
