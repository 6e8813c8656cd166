"""A caller's own wgpu device, buffers and encoder: nothing copied, nothing destroyed, one order with its work."""

from __future__ import annotations

import asyncio
import gc
import re
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import wgpu
from numpy.typing import NDArray

import dmlgpu
from dmlgpu import directml as dml
from dmlgpu import reference
from dmlgpu.dtypes import ELEMENT_TYPES, by_name
from dmlgpu.errors import ArgumentError, ArrayTypeError, DeviceReleasedError, DirectMLError, ReleasedArrayError
from dmlgpu.layout import Layout
from dmlgpu.planning.problem import Operator, scan_problem

from .harness import numbers

STORAGE = wgpu.BufferUsage.STORAGE
COPIES = wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST


@pytest.fixture(scope="module")
def gpu(device: dmlgpu.Device) -> Iterator[Any]:
    """Return a wgpu device that is not this package's, with none of the features it would like."""
    gpu_device = device.description.adapter.request_device_sync()
    yield gpu_device
    gpu_device.destroy()


def buffer_of(gpu: Any, data: NDArray[Any], usage: int = STORAGE | COPIES) -> Any:
    nbytes = -(-data.nbytes // 4) * 4
    buffer = gpu.create_buffer(size=nbytes, usage=usage | wgpu.BufferUsage.COPY_DST)
    gpu.queue.write_buffer(buffer, 0, data.tobytes().ljust(nbytes, b"\0"))
    return buffer


def contents(gpu: Any, buffer: Any) -> NDArray[np.uint8]:
    return np.frombuffer(gpu.queue.read_buffer(buffer), np.uint8)


def check_works(gpu: Any) -> None:
    """Show that the caller's device computes: what every test of an error ends with."""
    assert dmlgpu.cumulative_sum([1, 2, 3], device=gpu).tolist() == [1, 3, 6]


# The device


def test_a_wgpu_device_is_wrapped_once(gpu: Any) -> None:
    device = dmlgpu.Device.wrap(gpu)
    assert device.gpu_device is gpu
    assert not device.owned
    assert dmlgpu.Device.wrap(gpu) is device
    x = dmlgpu.asarray([3, 1, 2], device=gpu)
    assert x.device is device
    assert dmlgpu.cumulative_sum(x).device is device
    assert dmlgpu.cumulative_sum(x, device=gpu).numpy().tolist() == [3, 4, 6]
    assert device.summary == gpu.adapter.summary


def test_pipelines_outlive_a_call(gpu: Any) -> None:
    check_works(gpu)
    compiled = dmlgpu.Device.wrap(gpu).pipelines.compiled
    gc.collect()
    check_works(gpu)
    assert dmlgpu.Device.wrap(gpu).pipelines.compiled == compiled


def test_an_own_device_is_wrapped_as_itself(device: dmlgpu.Device) -> None:
    assert dmlgpu.Device.wrap(device.gpu_device) is device
    assert device.owned


def test_nothing_keeps_a_dropped_device_alive(device: dmlgpu.Device) -> None:
    gpu_device = device.description.adapter.request_device_sync()
    dmlgpu.cumulative_sum([1, 2], device=gpu_device)
    alive = weakref.ref(gpu_device)
    del gpu_device
    gc.collect()
    assert alive() is None


def test_release_leaves_the_callers_device_alone(gpu: Any) -> None:
    device = dmlgpu.Device.wrap(gpu)
    x = dmlgpu.asarray([1, 2], device=device)
    device.release()
    assert device.released
    assert x.released
    with pytest.raises(DeviceReleasedError):
        dmlgpu.cumulative_sum(x)
    assert contents(gpu, buffer_of(gpu, np.arange(4, dtype=np.uint8))).tolist() == [0, 1, 2, 3]
    assert dmlgpu.Device.wrap(gpu) is not device
    check_works(gpu)


def test_a_destroyed_device_is_an_error_and_no_abort(device: dmlgpu.Device) -> None:
    gpu_device = device.description.adapter.request_device_sync()
    x = dmlgpu.asarray([1, 2], device=gpu_device)
    buffer = buffer_of(gpu_device, np.zeros(4, np.float32))
    y = dmlgpu.from_wgpu(buffer, 4, "float32")
    gpu_device.destroy()
    for use in (
        lambda: dmlgpu.cumulative_sum(x),
        lambda: dmlgpu.cumulative_sum(y),
        x.numpy,
        y.numpy,
        lambda: dmlgpu.asarray([1], device=gpu_device),
        lambda: dmlgpu.from_wgpu(buffer, 4, "float32"),
    ):
        with pytest.raises(DeviceReleasedError, match="was destroyed or lost"):
            use()


def test_a_released_array_of_a_destroyed_device(device: dmlgpu.Device) -> None:
    gpu_device = device.description.adapter.request_device_sync()
    buffer = buffer_of(gpu_device, np.zeros(4, np.float32))
    x, one = dmlgpu.from_wgpu(buffer, 4, "float32"), dmlgpu.from_wgpu(buffer, 1, "float32")
    views = [x, x[::-1], x[::2]]
    x.release()
    one.release()
    with pytest.raises(ReleasedArrayError, match="was released: make a new one"):
        x.numpy()
    gpu_device.destroy()
    for array in views:
        for use in (
            array.copy,
            array.numpy,
            array.tolist,
            array[:1].item,
            one.item,
            lambda array=array: np.asarray(array),
            lambda array=array: np.from_dlpack(array),
            lambda array=array: asyncio.run(array.numpy_async()),
            lambda array=array: dmlgpu.cumulative_sum(array),
        ):
            with pytest.raises(DeviceReleasedError, match="was destroyed or lost"):
                use()
        assert "released" in repr(array)


def test_a_destroyed_device_cannot_be_wrapped(device: dmlgpu.Device) -> None:
    gpu_device = device.description.adapter.request_device_sync()
    gpu_device.destroy()
    with pytest.raises(DeviceReleasedError, match="the wgpu device cannot be used"):
        dmlgpu.Device.wrap(gpu_device)


def test_what_is_no_device(gpu: Any) -> None:
    with pytest.raises(ArrayTypeError, match=r"gpu_device is .* of type str; give a wgpu\.GPUDevice"):
        dmlgpu.Device.wrap("llvmpipe")
    check_works(gpu)


@pytest.mark.parametrize("element", ELEMENT_TYPES, ids=str)
def test_every_type_on_a_device_without_features(gpu: Any, device: dmlgpu.Device, element: Any) -> None:
    x = numbers((3, 5000), element.dtype)
    flush = element.kind == "float" and not device.subnormals()["sum"]
    y = dmlgpu.cumulative_sum(x, axis=1, dtype=element.dtype, device=gpu)
    assert reference.first_difference(y, reference.cumulative(x, "sum", axis=1, flush=flush)) is None


# Buffers


@pytest.mark.parametrize("element", ELEMENT_TYPES, ids=str)
def test_a_buffer_is_read_and_written_where_it_is(gpu: Any, element: Any) -> None:
    """Every other column of a matrix with a margin, summed into the columns between, in one buffer."""
    before = numbers((40,), element.dtype, seed=3)
    buffer = buffer_of(gpu, before)
    size = element.itemsize
    strides = (8 * size, 2 * size)
    x = dmlgpu.from_wgpu(buffer, (3, 3), element.dtype, strides=strides, offset=5 * size)
    y = dmlgpu.from_wgpu(buffer, (3, 3), element.dtype, strides=strides, offset=6 * size)
    assert x.strides == strides
    assert dmlgpu.cumulative_sum(x, axis=0, dtype=element.dtype, out=y) is y
    places = [[5 + 8 * i + 2 * j for j in range(3)] for i in range(3)]
    expected = before.copy()
    expected[np.array(places) + 1] = reference.cumulative(before[places], "sum", axis=0)
    after = contents(gpu, buffer)[: before.nbytes]
    assert after.tobytes() == expected.tobytes()
    assert x.numpy().tobytes() == before[places].tobytes()


def test_in_place_through_two_arrays_over_one_buffer(gpu: Any) -> None:
    buffer = buffer_of(gpu, np.arange(6, dtype=np.int64))
    x, y = (dmlgpu.from_wgpu(buffer, (6,), "int64") for _ in range(2))
    dmlgpu.cumulative_sum(x, out=y)
    assert contents(gpu, buffer).view(np.int64).tolist() == [0, 1, 3, 6, 10, 15]
    dmlgpu.cumulative_sum(x[::-1], out=y)  # overlaps in another order: as if x were copied first
    assert x.numpy().tolist() == [15, 25, 31, 34, 35, 35]


def test_negative_strides_broadcasts_and_empty_arrays(gpu: Any) -> None:
    buffer = buffer_of(gpu, np.arange(6, dtype=np.float32))
    backwards = dmlgpu.from_wgpu(buffer, (2, 3), "float32", strides=(-12, -4), offset=20)
    assert backwards.numpy().tolist() == [[5, 4, 3], [2, 1, 0]]
    repeated = dmlgpu.from_wgpu(buffer, 4, "float32", strides=(0,), offset=8)
    assert dmlgpu.cumulative_sum(repeated).numpy().tolist() == [2, 4, 6, 8]
    assert dmlgpu.cumulative_sum(dmlgpu.from_wgpu(buffer, 0, "float32", offset=24)).numpy().tolist() == []
    assert dmlgpu.from_wgpu(buffer, (), "float32", offset=4).numpy() == 1


@pytest.mark.parametrize("narrow_first", [False, True])
def test_two_types_in_one_buffer_that_overlap(gpu: Any, narrow_first: bool) -> None:
    """Conversion writes over its own input, at other places: the input is copied before."""
    data = np.arange(100, dtype=np.int16)
    start = 0 if narrow_first else 200
    memory = np.zeros(800, np.uint8)
    memory[start : start + 200] = data.view(np.uint8)
    buffer = buffer_of(gpu, memory)
    x = dmlgpu.from_wgpu(buffer, 100, "int16", offset=start)
    y = dmlgpu.from_wgpu(buffer, 100, "int32")
    dmlgpu.cumulative_sum(x, dtype="int32", out=y)
    assert y.numpy().tolist() == np.cumsum(data, dtype=np.int32).tolist()
    assert not contents(gpu, buffer)[400:].any()


@pytest.mark.parametrize("shape", [(5,), (70, 70)])
def test_a_buffer_without_copies_can_be_read_back(gpu: Any, shape: tuple[int, ...]) -> None:
    """The usage STORAGE is enough: it is copied by a shader."""
    data = numbers(shape, np.float32)
    buffer = gpu.create_buffer_with_data(data=data, usage=STORAGE)
    x = dmlgpu.from_wgpu(buffer, shape, "float32")
    assert x.numpy().tobytes() == data.tobytes()
    assert x[..., ::-1].numpy().tobytes() == data[..., ::-1].tobytes()
    with pytest.raises(wgpu.GPUError):
        gpu.queue.read_buffer(buffer)


def test_release_forgets_a_buffer_and_leaves_it_alone(gpu: Any) -> None:
    buffer = buffer_of(gpu, np.arange(4, dtype=np.int32))
    x = dmlgpu.from_wgpu(buffer, 4, "int32")
    same = dmlgpu.from_wgpu(buffer, 2, "int32", offset=8)
    with x:
        pass
    assert x.released
    assert same.released
    with pytest.raises(ReleasedArrayError):
        same.numpy()
    assert dmlgpu.from_wgpu(buffer, 4, "int32").numpy().tolist() == [0, 1, 2, 3]


def test_a_buffer_destroyed_or_mapped_later(gpu: Any) -> None:
    buffer = buffer_of(gpu, np.arange(4, dtype=np.int32))
    x = dmlgpu.from_wgpu(buffer, 4, "int32")
    good = dmlgpu.from_wgpu(buffer_of(gpu, np.arange(4, dtype=np.int32)), 4, "int32")
    buffer.destroy()
    uses = [
        x.numpy,
        lambda: dmlgpu.cumulative_sum(x),
        lambda: dmlgpu.cumulative_sum(good, dtype="int32", out=x),
        lambda: dmlgpu.from_wgpu(buffer, 4, "int32"),
    ]
    for use in uses:
        with pytest.raises(ReleasedArrayError, match="the wgpu buffer was destroyed"):
            use()
    mapped = gpu.create_buffer(size=16, usage=STORAGE, mapped_at_creation=True)
    with pytest.raises(ArgumentError, match=r"has map_state 'mapped'; call its unmap\(\) first"):
        dmlgpu.from_wgpu(mapped, 4, "int32")
    mapped.unmap()
    assert dmlgpu.from_wgpu(mapped, 4, "int32").numpy().tolist() == [0] * 4
    assert dmlgpu.cumulative_sum(good).numpy().tolist() == [0, 1, 3, 6]
    check_works(gpu)


# What is wrong, what from_wgpu is given instead of a buffer of 64 bytes and (4,) float32, and the error.
WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"shape": 17}, ArgumentError, r"with packed strides and offset 0 lie in bytes 0 to 68 while buffer has 64"),
    ({"shape": (4, 5)}, ArgumentError, r"lie in bytes 0 to 80 while buffer has 64"),
    ({"offset": 52}, ArgumentError, r"lie in bytes 52 to 68 while buffer has 64"),
    ({"offset": -4}, ArgumentError, r"lie in bytes -4 to 12"),
    ({"offset": 2}, ArgumentError, r"^offset is 2 bytes, no multiple of the element size 4: give"),
    ({"offset": 1.0}, ArrayTypeError, r"offset is 1.0 of type float"),
    ({"strides": (24,)}, ArgumentError, r"lie in bytes 0 to 76 while buffer has 64"),
    ({"strides": (-4,)}, ArgumentError, r"lie in bytes -12 to 4"),
    ({"strides": (2,)}, ArgumentError, r"^a value of strides is 2 bytes, no multiple"),
    ({"strides": (16, 4)}, ArgumentError, r"strides has 2 values while shape has 1"),
    ({"shape": (2, 2), "strides": 8}, ArgumentError, r"strides has 1 value while shape has 2"),
    ({"strides": (True,)}, ArrayTypeError, r"strides is True"),
    ({"strides": (2**40,)}, ArgumentError, r"lie in bytes 0 to 3298534883332"),
    ({"shape": -1}, ArgumentError, r"no size may be negative"),
    ({"shape": 1.5}, ArrayTypeError, r"shape is 1.5"),
    ({"shape": (1,) * 9}, ArgumentError, r"has 9 dimensions"),
    ({"shape": (2**16, 2**16), "strides": (0, 0)}, ArgumentError, r"4294967296 elements"),
    (
        {"dtype": "complex64"},
        ArrayTypeError,
        r"dtype is complex64, which has no element type on the device: give one of float32",
    ),
    ({"dtype": object}, ArrayTypeError, r"dtype is object"),
    ({"dtype": np.dtype("f4").newbyteorder()}, ArrayTypeError, r"not the native byte order"),
    ({"buffer": None}, ArrayTypeError, r"buffer is None of type NoneType that names no wgpu device"),
    ({"buffer": b"1234"}, ArrayTypeError, r"buffer is b'1234' of type bytes that names no wgpu device"),
    ({"device": 1.5}, ArrayTypeError, r"device is 1.5 of type float"),
]


@pytest.mark.parametrize(("change", "error", "message"), WRONG, ids=[str(change) for change, _, _ in WRONG])
def test_wrong_arguments(gpu: Any, change: dict[str, Any], error: type[Exception], message: str) -> None:
    buffer = buffer_of(gpu, np.arange(16, dtype=np.float32))
    given = {"buffer": buffer, "shape": 4, "dtype": "float32"} | change
    with pytest.raises(error, match=message):
        dmlgpu.from_wgpu(**given)
    assert contents(gpu, buffer).view(np.float32).tolist() == list(range(16))
    check_works(gpu)


@pytest.mark.parametrize(("dtype", "size", "length"), [("uint8", 7, 7), ("uint8", 5001, 5001), ("float16", 6, 3)])
def test_a_buffer_that_ends_inside_a_word(gpu: Any, dtype: str, size: int, length: int) -> None:
    """Its last elements are refused, and those before are taken."""
    buffer = gpu.create_buffer(size=size, usage=STORAGE)
    with pytest.raises(ArgumentError, match=f"elements lie in bytes 0 to {size}, .* a size that is a multiple of 4"):
        dmlgpu.from_wgpu(buffer, length, dtype)
    before = dmlgpu.from_wgpu(buffer, length - size % 4 // np.dtype(dtype).itemsize, dtype)
    assert not dmlgpu.cumulative_sum(before, dtype=dtype).numpy().any()


def test_a_buffer_of_another_kind_or_device(gpu: Any, device: dmlgpu.Device) -> None:
    with pytest.raises(ArgumentError, match=r"has usage UNIFORM; create it with wgpu.BufferUsage.STORAGE too"):
        dmlgpu.from_wgpu(gpu.create_buffer(size=64, usage=wgpu.BufferUsage.UNIFORM), 4, "int32")
    elsewhere = device.gpu_device.create_buffer(size=64, usage=STORAGE)
    with pytest.raises(ArrayTypeError, match="belongs to another wgpu device"):
        dmlgpu.from_wgpu(elsewhere, 4, "int32", device=gpu)
    here = dmlgpu.from_wgpu(gpu.create_buffer(size=64, usage=STORAGE), 4, "int32", device=gpu)
    with pytest.raises(ArgumentError, match="give an out on the device of x"):
        dmlgpu.cumulative_sum(here, dtype="int32", out=dmlgpu.from_wgpu(elsewhere, 4, "int32"))
    check_works(gpu)


# One order with the caller's own work

SCALE = """
@group(0) @binding(0) var<storage, read_write> data: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&data)) { data[id.x] = data[id.x] * FACTOR + 1.0; }
}
"""


class Scale:
    """A compute pass of the caller's: data * factor + 1, in place."""

    def __init__(self, gpu: Any, buffer: Any, factor: float) -> None:
        code = SCALE.replace("FACTOR", str(factor))
        module = gpu.create_shader_module(code=code)
        self.pipeline = gpu.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})
        layout = self.pipeline.get_bind_group_layout(0)
        resource = {"buffer": buffer, "offset": 0, "size": buffer.size}
        self.group = gpu.create_bind_group(layout=layout, entries=[{"binding": 0, "resource": resource}])
        self.workgroups = -(-buffer.size // 4 // 64)

    def record(self, encoder: Any) -> None:
        compute = encoder.begin_compute_pass()
        compute.set_pipeline(self.pipeline)
        compute.set_bind_group(0, self.group)
        compute.dispatch_workgroups(self.workgroups)
        compute.end()


@pytest.mark.parametrize("size", [1000, 70_000])
def test_a_scan_between_passes_of_the_caller_in_one_submission(gpu: Any, size: int) -> None:
    x = np.arange(size, dtype=np.float32) % 7
    source, target = buffer_of(gpu, x), buffer_of(gpu, np.zeros_like(x))
    before, after = Scale(gpu, source, 2.0), Scale(gpu, target, 0.5)
    device = dml.DMLCreateDevice(gpu)
    t = dml.DML_BUFFER_TENSOR_DESC(dml.DML_TENSOR_DATA_TYPE_FLOAT32, Sizes=(size,))
    operator = device.CompileOperator(device.CreateOperator(dml.DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(t, t, 0)))
    table = device.CreateBindingTable(dml.DML_BINDING_TABLE_DESC(operator))
    table.BindInputs(1, dml.DML_BINDING_DESC(dml.DML_BINDING_TYPE_BUFFER, dml.DML_BUFFER_BINDING(source)))
    table.BindOutputs(1, dml.DML_BINDING_DESC(dml.DML_BINDING_TYPE_BUFFER, dml.DML_BUFFER_BINDING(target)))
    scratch = operator.GetBindingProperties().TemporaryResourceSize
    if scratch:
        temporary = gpu.create_buffer(size=scratch, usage=STORAGE)
        table.BindTemporaryResource(
            dml.DML_BINDING_DESC(dml.DML_BINDING_TYPE_BUFFER, dml.DML_BUFFER_BINDING(temporary))
        )
    encoder = gpu.create_command_encoder()
    before.record(encoder)
    device.CreateCommandRecorder().RecordDispatch(encoder, operator, table)
    after.record(encoder)
    gpu.queue.submit([encoder.finish()])
    scanned = reference.cumulative(x * np.float32(2) + np.float32(1), "sum", axis=0)
    expected = scanned * np.float32(0.5) + np.float32(1)
    assert contents(gpu, target).view(np.float32).tobytes() == expected.tobytes()


def test_array_functions_between_submissions_of_the_caller(gpu: Any) -> None:
    x = np.arange(300, dtype=np.float32)
    buffer = buffer_of(gpu, x)
    scale = Scale(gpu, buffer, 2.0)
    array = dmlgpu.from_wgpu(buffer, 300, "float32")
    expected = x
    for _ in range(3):
        encoder = gpu.create_command_encoder()
        scale.record(encoder)
        gpu.queue.submit([encoder.finish()])
        dmlgpu.cumulative_sum(array, reverse=True, out=array)
        expected = reference.cumulative(expected * np.float32(2) + np.float32(1), "sum", axis=0, reverse=True)
    assert array.numpy().tobytes() == expected.tobytes()
    assert contents(gpu, buffer).view(np.float32).tobytes() == expected.tobytes()


# Recorded into the caller's encoder


@pytest.fixture
def submissions(monkeypatch: pytest.MonkeyPatch, gpu: Any) -> list[int]:
    """Return a list that gets an element for each submission to the caller's device."""
    made: list[int] = []
    submit = gpu.queue.submit

    def counted(command_buffers: list[Any]) -> Any:
        made.append(len(command_buffers))
        return submit(command_buffers)

    monkeypatch.setattr(gpu.queue, "submit", counted)
    return made


RECORDED: list[tuple[str, Any, dict[str, Any], Any]] = [
    ("cumulative_sum", "float32", {"axis": 1}, lambda x: reference.cumulative(x, "sum", axis=1)),
    (
        "cumulative_sum",
        "float32",
        {"axis": 0, "exclusive": True, "reverse": True},
        lambda x: reference.cumulative(x, "sum", axis=0, exclusive=True, reverse=True),
    ),
    (
        "cumulative_sum",
        "float32",
        {"axis": 1, "monotone": True, "exclusive": True},
        lambda x: reference.cumulative(x, "sum", axis=1, exclusive=True, monotone=True),
    ),
    ("cumulative_sum", "int16", {"axis": 1}, lambda x: np.cumsum(x, axis=1, dtype=np.int64)),  # which is converted
    (
        "cumulative_sum",
        "int32",
        {"axis": 1, "dtype": "int32", "include_initial": True},
        lambda x: np.insert(np.cumsum(x, axis=1, dtype=np.int32), 0, 0, axis=1),
    ),
    ("cumulative_prod", "float32", {"axis": 1}, lambda x: reference.cumulative(x, "product", axis=1)),
    ("round", "float32", {"mode": "half_away"}, lambda x: reference.round(x, "half_away")),
    ("round", "int8", {}, lambda x: x),  # a copy
]


@pytest.mark.parametrize("in_a_pass", [False, True])
@pytest.mark.parametrize("shape", [(2, 30), (3, 9000), (1, 70_000)])
@pytest.mark.parametrize(("name", "dtype", "options", "expected"), RECORDED)
def test_what_is_recorded_runs_when_the_caller_submits(
    gpu: Any,
    submissions: list[int],
    name: str,
    dtype: str,
    options: dict[str, Any],
    expected: Any,
    shape: tuple[int, ...],
    in_a_pass: bool,
) -> None:
    x = numbers(shape, np.dtype(dtype))
    result = np.asarray(expected(x))
    source = dmlgpu.from_wgpu(buffer_of(gpu, x), shape, dtype)
    target = buffer_of(gpu, np.full(result.shape, 7, result.dtype))
    out = dmlgpu.from_wgpu(target, result.shape, result.dtype)
    encoder = gpu.create_command_encoder()
    into = encoder.begin_compute_pass() if in_a_pass else encoder
    function = getattr(dmlgpu, name)
    assert function(source, **options, out=out, encoder=into) is out
    new = function(source, **options, encoder=into)
    if in_a_pass:
        into.end()
    assert submissions == []
    command_buffer = encoder.finish()
    assert contents(gpu, target)[: result.nbytes].tobytes() == np.full(result.shape, 7, result.dtype).tobytes()
    submissions.clear()  # of reading back
    gpu.queue.submit([command_buffer])
    assert submissions == [1]
    assert contents(gpu, target)[: result.nbytes].tobytes() == result.tobytes()
    assert new.numpy().tobytes() == result.tobytes()


@pytest.mark.parametrize("in_a_pass", [False, True])
def test_recordings_into_one_encoder_read_each_others_results(
    gpu: Any, submissions: list[int], in_a_pass: bool
) -> None:
    x = numbers((4, 5000), np.dtype(np.float32))
    buffer = buffer_of(gpu, x)
    array = dmlgpu.from_wgpu(buffer, x.shape, "float32")
    before, after = Scale(gpu, buffer, 2.0), Scale(gpu, buffer, 0.5)
    encoder = gpu.create_command_encoder()
    before.record(encoder)
    into = encoder.begin_compute_pass() if in_a_pass else encoder
    rows = dmlgpu.cumulative_sum(array, axis=1, encoder=into)
    both = dmlgpu.cumulative_sum(rows[:, ::-1], axis=0, exclusive=True, encoder=into)
    dmlgpu.round(both, out=array, encoder=into)
    if in_a_pass:
        into.end()
    after.record(encoder)
    assert submissions == []
    gpu.queue.submit([encoder.finish()])
    expected = reference.cumulative(x * np.float32(2) + np.float32(1), "sum", axis=1)
    expected = reference.cumulative(expected[:, ::-1], "sum", axis=0, exclusive=True)
    assert both.numpy().tobytes() == expected.tobytes()
    expected = reference.round(expected, "half_even") * np.float32(0.5) + np.float32(1)
    assert contents(gpu, buffer).view(np.float32).tobytes() == expected.tobytes()


def test_a_recorded_result_may_overlap_its_input(gpu: Any) -> None:
    x = np.arange(6000, dtype=np.int32)
    buffer = buffer_of(gpu, x)
    encoder = gpu.create_command_encoder()
    source, out = (dmlgpu.from_wgpu(buffer, 5000, "int32", offset=4 * start) for start in (0, 1000))
    dmlgpu.cumulative_sum(source, out=out, encoder=encoder)
    gpu.queue.submit([encoder.finish()])
    assert contents(gpu, buffer).view(np.int32)[1000:].tolist() == np.cumsum(x[:5000]).tolist()


@pytest.mark.parametrize("own", [False, True])
def test_memory_that_was_recorded_waits_for_the_submission(gpu: Any, device: dmlgpu.Device, own: bool) -> None:
    """Dropped, released or given to other arrays: nothing of it reaches the commands."""
    where = device if own else dmlgpu.Device.wrap(gpu)
    x = numbers((20_000,), np.dtype(np.float32))
    target = buffer_of(where.gpu_device, np.zeros_like(x))
    source = dmlgpu.asarray(x, where)
    encoder = where.gpu_device.create_command_encoder()
    dropped = dmlgpu.cumulative_sum(source, encoder=encoder)
    dmlgpu.round(dropped, out=dmlgpu.from_wgpu(target, x.shape, "float32", device=where), encoder=encoder)
    source.numpy()  # which maps memory that is not recorded
    source.release()
    del dropped
    gc.collect()
    for _ in range(3):
        other = dmlgpu.asarray(np.full_like(x, 9), where)
        assert dmlgpu.cumulative_sum(other)[-1].numpy() == 9 * 20_000
    dmlgpu.cumulative_sum(np.full_like(x, 9), device=where)
    where.gpu_device.queue.submit([encoder.finish()])
    expected = reference.round(reference.cumulative(x, "sum", axis=0), "half_even")
    assert contents(where.gpu_device, target).view(np.float32).tobytes() == expected.tobytes()


def test_what_a_batch_has_not_submitted_yet_comes_first(gpu: Any) -> None:
    device = dmlgpu.Device.wrap(gpu)
    x = numbers((3000,), np.dtype(np.float32))
    layout = Layout.packed(x.shape)
    problem = scan_problem(by_name("float32"), Operator.SUM, layout, layout, axis=0)
    target = device.wrap_buffer(buffer_of(gpu, np.zeros_like(x)))
    encoder = gpu.create_command_encoder()
    with device.batch():
        temporary = device.recycled(x.nbytes, temporary=True)
        device.upload(temporary, 0, x)
        device.run(problem, temporary, temporary)
        with device.recording(encoder):
            device.run(problem, temporary, target)
        gpu.queue.submit([encoder.finish()])
    expected = reference.cumulative(reference.cumulative(x, "sum", axis=0), "sum", axis=0)
    assert contents(gpu, target.gpu_buffer).view(np.float32).tobytes() == expected.tobytes()


def test_an_encoder_that_is_never_submitted_changes_nothing(gpu: Any) -> None:
    data = np.arange(5000, dtype=np.int32)
    buffer = buffer_of(gpu, data)
    array = dmlgpu.from_wgpu(buffer, 5000, "int32")
    for _ in range(200):
        dmlgpu.cumulative_sum(array, dtype="int32", out=array, encoder=gpu.create_command_encoder())
    assert contents(gpu, buffer).view(np.int32).tolist() == data.tolist()
    check_works(gpu)


def test_nothing_is_recorded_for_an_empty_array(gpu: Any) -> None:
    empty = dmlgpu.asarray(np.zeros((0, 3), np.float32), gpu)
    encoder = gpu.create_command_encoder()
    assert dmlgpu.cumulative_sum(empty, axis=1, encoder=encoder).shape == (0, 3)
    gpu.queue.submit([encoder.finish()])


def test_an_encoder_that_cannot_be_recorded_into(gpu: Any, submissions: list[int]) -> None:
    buffer = buffer_of(gpu, np.arange(4, dtype=np.int32))
    x = dmlgpu.from_wgpu(buffer, 4, "int32")
    finished = gpu.create_command_encoder()
    ended = finished.begin_compute_pass()
    ended.end()
    finished.finish()
    for encoder, message in (
        (finished, "encoder is finished or has an open pass, and takes no commands: give a new one"),
        (ended, "encoder is a pass that has ended, and takes no commands: give a new one"),
    ):
        with pytest.raises(ArgumentError, match=message) as caught:
            dmlgpu.cumulative_sum(x, dtype="int32", out=x, encoder=encoder)
        assert "\n" not in str(caught.value)
    for wrong in ("encoder", gpu, gpu.create_command_encoder().finish()):
        with pytest.raises(ArrayTypeError, match=r"encoder is .* give a wgpu.GPUCommandEncoder"):
            dmlgpu.cumulative_sum(x, encoder=wrong)
    assert submissions == []
    assert x.numpy().tolist() == [0, 1, 2, 3]
    check_works(gpu)


@pytest.mark.parametrize("is_ended", [False, True])
def test_an_encoder_with_an_open_pass_is_refused_and_cannot_be_finished(
    gpu: Any, submissions: list[int], is_ended: bool
) -> None:
    """As docs/runtime.md says: wgpu refuses what comes after, and nothing of it runs; other encoders go on."""
    buffer = buffer_of(gpu, np.arange(4, dtype=np.int32))
    x = dmlgpu.from_wgpu(buffer, 4, "int32")
    other = gpu.create_command_encoder()
    dmlgpu.cumulative_sum(x, dtype="int32", out=x, encoder=other)
    encoder = gpu.create_command_encoder()
    dmlgpu.cumulative_sum(x, dtype="int32", out=x, encoder=encoder)
    opened = encoder.begin_compute_pass()
    with pytest.raises(
        ArgumentError, match=r"encoder is finished or has an open pass, .* give a new one, or its open pass"
    ):
        dmlgpu.cumulative_sum(x, dtype="int32", out=x, encoder=encoder)
    if is_ended:
        opened.end()
    with pytest.raises(wgpu.GPUError):
        encoder.finish()
    assert submissions == []
    assert x.numpy().tolist() == [0, 1, 2, 3]
    submissions.clear()
    gpu.queue.submit([other.finish()])
    assert x.numpy().tolist() == [0, 1, 3, 6]
    check_works(gpu)


@pytest.mark.parametrize("function", [dmlgpu.cumulative_sum, dmlgpu.cumulative_prod, dmlgpu.round])
@pytest.mark.parametrize("x", [[1.5, 2.5], np.ones(3), np.ones(3, np.int32)], ids=["list", "float", "int"])
def test_data_of_the_host_cannot_be_recorded(gpu: Any, function: Any, x: Any) -> None:
    with pytest.raises(ArrayTypeError, match=r"encoder records work on arrays of its device while x is .* from_wgpu"):
        function(x, encoder=gpu.create_command_encoder())


def test_a_destroyed_buffer_or_device_is_an_error_and_no_abort(device: dmlgpu.Device) -> None:
    gpu_device = device.description.adapter.request_device_sync()
    buffer = buffer_of(gpu_device, np.zeros(4, np.float32))
    x = dmlgpu.from_wgpu(buffer, 4, "float32")
    good = dmlgpu.from_wgpu(buffer_of(gpu_device, np.zeros(4, np.float32)), 4, "float32")
    encoder = gpu_device.create_command_encoder()
    buffer.destroy()
    with pytest.raises(ReleasedArrayError, match="the wgpu buffer was destroyed"):
        dmlgpu.cumulative_sum(good, out=x, encoder=encoder)
    gpu_device.destroy()
    with pytest.raises(DeviceReleasedError, match="was destroyed or lost"):
        dmlgpu.cumulative_sum(good, encoder=encoder)


def test_two_devices_of_one_adapter_are_told_apart(gpu: Any, device: dmlgpu.Device) -> None:
    here, there = dmlgpu.Device.wrap(gpu), dmlgpu.Device(device.description)
    labels = [here.label, there.label, device.label]
    assert len(set(labels)) == 3
    assert all(label.startswith(repr(device.summary)) for label in labels)
    assert repr(there) == f"<dmlgpu.Device {there.label}>"
    x, other = dmlgpu.asarray([1, 2, 3], here), dmlgpu.asarray([1, 2, 3], there)
    assert x.__repr__().endswith(f"device={here.label})")
    encoder = there.gpu_device.create_command_encoder()
    calls = {
        f"encoder is of the device {there.label} while the array is on {here.label}": {"encoder": encoder},
        f"out is on the device {there.label} while x is on {here.label}": {"out": other},
        f"x is on the device {here.label} while device= names {there.label}": {"device": there},
    }
    for message, options in calls.items():
        with pytest.raises(ArgumentError, match=re.escape(message)):
            dmlgpu.cumulative_sum(x, **options)
    scan = dmlgpu.Scan("sum", axis=0, device=there)
    with pytest.raises(ArgumentError, match=re.escape(f"{here.label} while device= names {there.label}")):
        scan.push(x)
    with pytest.raises(ArrayTypeError, match=re.escape(f"{here!r}, not on {there!r}")):
        there.check(x._tensor.buffer)
    there.release()
    check_works(gpu)


def test_directml_shares_the_array_faces_device(gpu: Any, device: dmlgpu.Device) -> None:
    assert dml.DMLCreateDevice(gpu).GetParentDevice() is gpu
    assert dml.DMLCreateDevice(dmlgpu.Device.wrap(gpu)).GetParentDevice() is gpu
    assert dml.DMLCreateDevice(device).GetParentDevice() is device.gpu_device
    with pytest.raises(DirectMLError, match="null"):
        dml.DMLCreateDevice(gpu).CreateOperator(None)


def test_writes_behind_many_recorded_ones_are_submitted(gpu: Any) -> None:
    """Else wgpu keeps the memory of each until something else is."""
    device = dmlgpu.Device.wrap(gpu)
    x = dmlgpu.asarray(np.arange(64, dtype=np.uint32), device)
    out = dmlgpu.asarray(np.zeros(65, np.uint32), device)
    encoder = gpu.create_command_encoder()
    for _ in range(70):
        dmlgpu.cumulative_sum(x, out=out, include_initial=True, encoder=encoder)
    for _ in range(3):
        dmlgpu.asarray(np.zeros(64, np.uint32), device).release()
    assert device._executor._written <= 64
    gpu.queue.submit([encoder.finish()])
    assert out.numpy()[-1] == 63 * 32
