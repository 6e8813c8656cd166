"""A caller's own wgpu device, buffers and encoder: nothing copied, nothing destroyed, one order with its work."""

from __future__ import annotations

import gc
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
from dmlgpu.dtypes import ELEMENT_TYPES
from dmlgpu.errors import ArgumentError, ArrayTypeError, DeviceReleasedError, DirectMLError, ReleasedArrayError

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
    misses = dmlgpu.Device.wrap(gpu).pipelines.misses
    gc.collect()
    check_works(gpu)
    assert dmlgpu.Device.wrap(gpu).pipelines.misses == misses


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
    ({"shape": 17}, ArgumentError, r"lie in bytes 0 to 68 while buffer has 64"),
    ({"shape": (4, 5)}, ArgumentError, r"lie in bytes 0 to 80 while buffer has 64"),
    ({"offset": 52}, ArgumentError, r"lie in bytes 52 to 68 while buffer has 64"),
    ({"offset": -4}, ArgumentError, r"lie in bytes -4 to 12"),
    ({"offset": 2}, ArgumentError, r"offset has 2 bytes, no multiple of the element size 4"),
    ({"offset": 1.0}, ArrayTypeError, r"offset is 1.0 of type float"),
    ({"strides": (24,)}, ArgumentError, r"lie in bytes 0 to 76 while buffer has 64"),
    ({"strides": (-4,)}, ArgumentError, r"lie in bytes -12 to 4"),
    ({"strides": (2,)}, ArgumentError, r"strides has 2 bytes, no multiple"),
    ({"strides": (16, 4)}, ArgumentError, r"strides has 2 values while shape has 1"),
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


def test_directml_shares_the_array_faces_device(gpu: Any, device: dmlgpu.Device) -> None:
    assert dml.DMLCreateDevice(gpu).GetParentDevice() is gpu
    assert dml.DMLCreateDevice(dmlgpu.Device.wrap(gpu)).GetParentDevice() is gpu
    assert dml.DMLCreateDevice(device).GetParentDevice() is device.gpu_device
    with pytest.raises(DirectMLError, match="null"):
        dml.DMLCreateDevice(gpu).CreateOperator(None)
