"""Every rule of the life cycle broken, one at a time: HRESULT, message, a device that works, buffers untouched."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import wgpu

import dmlgpu
from dmlgpu import directml as dml
from dmlgpu.errors import AdapterNotFoundError, ArrayTypeError, DeviceError, DirectMLError
from dmlgpu.runtime import adapters

from .directml_descriptions import PRODUCT, ROUND, SUM
from .directml_session import NONE, STORAGE, Place, Session, array_binding, buffer_binding, slips
from .test_directml_validation import INVALID

F32, F16, I64 = dml.DML_TENSOR_DATA_TYPE_FLOAT32, dml.DML_TENSOR_DATA_TYPE_FLOAT16, dml.DML_TENSOR_DATA_TYPE_INT64
INT8, UINT16, F64 = (
    dml.DML_TENSOR_DATA_TYPE_INT8,
    dml.DML_TENSOR_DATA_TYPE_UINT16,
    dml.DML_TENSOR_DATA_TYPE_FLOAT64,
)
OWNED = dml.DML_TENSOR_FLAG_OWNED_BY_DML
UPLOAD = wgpu.BufferUsage.MAP_WRITE | wgpu.BufferUsage.COPY_SRC
READBACK = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST
BUFFER, ARRAY = dml.DML_BINDING_TYPE_BUFFER, dml.DML_BINDING_TYPE_BUFFER_ARRAY
DATA_TYPE, LEVELS = dml.DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT, dml.DML_FEATURE_FEATURE_LEVELS


def tensor(sizes: Any = (1, 1, 3, 4), kind: Any = F32, **fields: Any) -> dml.DML_BUFFER_TENSOR_DESC:
    return dml.DML_BUFFER_TENSOR_DESC(kind, Sizes=sizes, **fields)


def summation(sizes: Any = (1, 1, 3, 4), kind: Any = F32, axis: int = 0, **fields: Any) -> Any:
    """A sum whose input has `fields`."""
    return SUM(tensor(sizes, kind, **fields), tensor(sizes, kind), axis)


class World:
    """Devices, operators, tables and buffers, of which every test breaks one rule."""

    def __init__(self, gpu: Any, other_gpu: Any, modest_gpu: Any) -> None:
        self.gpu, self.other_gpu = gpu, other_gpu
        self.debug = Session(gpu, extensions=True)
        self.plain = Session(gpu, 0)
        self.elsewhere = Session(other_gpu)
        self.modest = Session(modest_gpu)  # buffers of 256 MiB
        self.device = self.debug.device
        self.sum = self.debug.compile(summation())
        self.scratchy = self.debug.compile(summation((9001,)))
        self.owned = self.debug.compile(summation((3,), Flags=OWNED))
        self.aligned = self.debug.compile(summation((3,), GuaranteedBaseOffsetAlignment=64))
        self.crossed = self.debug.compile(SUM(tensor((3, 4), Strides=(1, 3)), tensor((3, 4)), 0))
        self.longer = self.debug.compile(SUM(tensor(), tensor(TotalTensorSizeInBytes=52), 0))
        # Strides that are never stepped must be the same, too.
        self.one_row = self.debug.compile(SUM(tensor((1, 3, 4), Strides=(0, 4, 1)), tensor((1, 3, 4)), 1))
        self.late = self.debug.compile(summation((9001,)), dml.DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE)
        self.late_owned = self.debug.compile(
            summation((3,), Flags=OWNED), dml.DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE | 3
        )
        self.images = [np.random.default_rng(i).integers(0, 256, 2**17, np.uint8) for i in range(3)]
        self.a, self.b, self.c = (self.debug.buffer(image) for image in self.images)
        self.scratch = self.scratchy.GetBindingProperties().TemporaryResourceSize

    def table(self, dispatchable: Any) -> Any:
        return self.debug.table(dispatchable)

    def initializer(self, *operators: Any) -> Any:
        return self.device.CreateOperatorInitializer(len(operators), operators)

    def initialize(self, *operators: Any) -> None:
        """Record the initialization of operators that own nothing, and drop it."""
        initializer = self.initializer(*operators)
        self.debug.recorder.RecordDispatch(self.encoder(), initializer, self.table(initializer))

    def encoder(self) -> Any:
        return self.gpu.create_command_encoder()

    def record(self, dispatchable: Any, table: Any) -> None:
        self.debug.recorder.RecordDispatch(self.encoder(), dispatchable, table)

    def bound(self, dispatchable: Any, *without: str, **ranges: Any) -> Any:
        """A table with everything bound to ranges (buffer, offset, size), but for what is left out."""
        self.initialize(self.sum, self.scratchy, self.aligned, self.crossed, self.longer, self.one_row, self.late)
        given = {"input": (self.a, 0, 40_960), "output": (self.b, 0, 40_960)} | ranges
        if dispatchable in (self.scratchy, self.late):
            given.setdefault("temporary", (self.c, 0, self.scratch))
        table = self.table(dispatchable)
        methods = {
            "input": lambda desc: table.BindInputs(1, desc),
            "output": lambda desc: table.BindOutputs(1, desc),
            "temporary": table.BindTemporaryResource,
            "persistent": table.BindPersistentResource,
        }
        for role, one in given.items():
            if role not in without:
                methods[role](buffer_binding(*one))
        return table

    def execute(self, dispatchable: Any, *without: str, **ranges: Any) -> None:
        self.record(dispatchable, self.bound(dispatchable, *without, **ranges))

    def initialize_owned(self, inputs: Any, outputs: Any, count: int = 1) -> None:
        initializer = self.initializer(*[self.owned] * count)
        table = self.table(initializer)
        table.BindInputs(len(inputs), inputs)
        table.BindOutputs(len(outputs), outputs)
        self.record(initializer, table)

    def bad_buffer(self, **options: Any) -> Any:
        return self.gpu.create_buffer(**{"size": 2**17, "usage": STORAGE} | options)

    def destroyed(self) -> Any:
        buffer = self.bad_buffer()
        buffer.destroy()
        return buffer

    def check(self) -> None:
        """Assert that buffers are as they were and that the devices compute."""
        for buffer, image in zip((self.a, self.b, self.c), self.images, strict=True):
            assert self.debug.read(buffer).tobytes() == image.tobytes(), "a buffer was written"
        t = tensor((3,), dml.DML_TENSOR_DATA_TYPE_INT32)
        self.debug.check(
            SUM(t, t, 0), np.array([1, 2, 3], np.int32), {"input": Place(0, 0, 12), "output": Place(0, 16, 12)}, [32]
        )
        assert self.device.GetDeviceRemovedReason() == dml.S_OK


@pytest.fixture(scope="module")
def gpus(device: dmlgpu.Device) -> Iterator[list[Any]]:
    adapter = device.description.adapter
    found = [adapter.request_device_sync() for _ in range(2)]
    found.append(adapter.request_device_sync(required_limits={"max-buffer-size": 2**28}))
    yield found
    for gpu in found:
        gpu.destroy()


@pytest.fixture(scope="module")
def shared_world(gpus: list[Any]) -> World:
    return World(*gpus)


@pytest.fixture
def world(shared_world: World) -> Iterator[World]:
    yield shared_world
    shared_world.check()


def create(*arguments: Any, **options: Any) -> Callable[[World], Any]:
    return lambda w: dml.DMLCreateDevice1(w.gpu, *arguments, **options)


def operator_at(level: Any, desc: Any, **options: Any) -> Callable[[World], Any]:
    return lambda w: dml.DMLCreateDevice(w.gpu, feature_level_cap=level, **options).CreateOperator(desc)


def ask(feature: Any, query: Any) -> Callable[[World], Any]:
    return lambda w: w.device.CheckFeatureSupport(feature, query)


def bind(method: str, dispatchable: str, *arguments: Any) -> Callable[[World], Any]:
    """Call a method of a table; arguments that are functions are asked for their value."""

    def call(w: World) -> None:
        table = w.table(getattr(w, dispatchable))
        getattr(table, method)(*[one(w) if callable(one) else one for one in arguments])

    return call


def bind_initializer(method: str, operators: str, *arguments: Any) -> Callable[[World], Any]:
    def call(w: World) -> None:
        table = w.table(w.initializer(*[getattr(w, name) for name in operators.split()]))
        getattr(table, method)(*[one(w) if callable(one) else one for one in arguments])

    return call


def on(name: str, offset: int = 0, size: int | None = 40_960) -> Callable[[World], Any]:
    return lambda w: buffer_binding(getattr(w, name), offset, size)


def of(make: Callable[[World], Any], offset: int = 0, size: int | None = 48) -> Callable[[World], Any]:
    return lambda w: buffer_binding(make(w), offset, size)


def in_array(name: str | None, offset: int = 0, size: int = 12) -> Callable[[World], Any]:
    return lambda w: array_binding(dml.DML_BUFFER_BINDING(name and getattr(w, name), offset, size))


def levels(*numbers: Any, count: int | None = None) -> Any:
    return dml.DML_FEATURE_QUERY_FEATURE_LEVELS(count, numbers)


def reset_initializer(w: World) -> None:
    initializer = w.initializer(w.owned)
    table = w.table(initializer)
    initializer.Reset(1, [w.sum])
    table.BindInputs(1, NONE)


def record_reset_initializer(w: World) -> None:
    initializer = w.initializer(w.sum)
    table = w.table(initializer)
    initializer.Reset(0, None)
    w.record(initializer, table)


def with_open_pass(w: World) -> None:
    encoder = w.encoder()
    compute = encoder.begin_compute_pass()
    try:
        w.debug.recorder.RecordDispatch(encoder, w.sum, w.bound(w.sum))
    finally:
        compute.end()


def finished(w: World) -> None:
    encoder = w.encoder()
    encoder.finish()
    w.debug.recorder.RecordDispatch(encoder, w.sum, w.bound(w.sum))


def finished_for_nothing(w: World) -> None:
    """An initializer that has nothing to record."""
    encoder, initializer = w.encoder(), w.debug.device.CreateOperatorInitializer(1, w.sum)
    encoder.finish()
    table = w.debug.device.CreateBindingTable(dml.DML_BINDING_TABLE_DESC(initializer))
    w.debug.recorder.RecordDispatch(encoder, initializer, table)


def changed_later(change: Callable[[Any], Any], role: str) -> Callable[[World], Any]:
    def call(w: World) -> None:
        buffer = w.bad_buffer(usage=STORAGE)
        table = w.bound(w.scratchy, **{role: (buffer, 0, 2**17)})
        w.record(w.scratchy, table)
        change(buffer)
        w.record(w.scratchy, table)

    return call


def other_persistent(w: World) -> None:
    persistent = buffer_binding(w.bad_buffer(), 0, 256)
    operator = w.debug.compile(summation((3,), Flags=OWNED))
    initializer = w.initializer(operator)
    table = w.table(initializer)
    table.BindInputs(1, in_array("a")(w))
    table.BindOutputs(1, persistent)
    w.record(initializer, table)
    table = w.table(operator)
    table.BindInputs(1, NONE)
    table.BindOutputs(1, buffer_binding(w.bad_buffer(), 0, 48))
    table.BindPersistentResource(buffer_binding(w.bad_buffer(), 0, 256))
    w.record(operator, table)


def persistent_meets(output_offset: int) -> Callable[[World], Any]:
    def call(w: World) -> None:
        memory = w.bad_buffer()
        initializer = w.initializer(w.owned)
        table = w.table(initializer)
        table.BindInputs(1, in_array("a")(w))
        table.BindOutputs(1, buffer_binding(memory, 256, 256))
        w.record(initializer, table)
        table = w.table(w.owned)
        table.BindInputs(1, NONE)
        table.BindOutputs(1, buffer_binding(memory, output_offset, 32))
        table.BindPersistentResource(buffer_binding(memory, 256, 256))
        w.record(w.owned, table)

    return call


def never_initialized(w: World) -> None:
    operator = w.debug.compile(summation((5,)))
    w.record(operator, w.bound(operator))


class Tensor:
    """An array of another library, whose size is a method."""

    def size(self) -> int:
        raise AssertionError


def bind_late(method: str, *arguments: Any) -> Callable[[World], Any]:
    """Bind after a table was recorded, with late binding asked for."""

    def call(w: World) -> None:
        table = w.bound(w.late)
        w.record(w.late, table)
        getattr(table, method)(*[one(w) if callable(one) else one for one in arguments])

    return call


E_INVALIDARG, INVALID_CALL = dml.E_INVALIDARG, dml.DXGI_ERROR_INVALID_CALL
UNSUPPORTED = dml.DXGI_ERROR_UNSUPPORTED
INPUTS, OUTPUTS = "BindInputs", "BindOutputs"
TEMPORARY, PERSISTENT = "BindTemporaryResource", "BindPersistentResource"

# What breaks a rule, the HRESULT, and a pattern for the message.
ROWS: list[tuple[Callable[[World], Any], int, str]] = [
    # Devices
    (create(0, 0x7000), UNSUPPORTED, r"minimumFeatureLevel is 0x7000 while the device has DML_FEATURE_LEVEL_6_4"),
    (create(0, 0x6401), UNSUPPORTED, r"minimumFeatureLevel is 0x6401 while the device has DML_FEATURE_LEVEL_6_4"),
    (create(0, 0x1234), E_INVALIDARG, r"minimumFeatureLevel is 0x1234; it must be a DML_FEATURE_LEVEL"),
    (create(0, 0), E_INVALIDARG, r"minimumFeatureLevel is 0x0; it must be a DML_FEATURE_LEVEL"),
    (create(2), E_INVALIDARG, r"flags is 0x2; only DML_CREATE_DEVICE_FLAG_DEBUG"),
    (create(3), E_INVALIDARG, r"flags is 0x3"),
    (create(-1), E_INVALIDARG, r"flags is -0x1"),
    (create(0, 0x1000, feature_level_cap=0x6500), E_INVALIDARG, r"feature_level_cap is 0x6500; it must be"),
    (
        create(0, 0x5000, feature_level_cap=0x4000),
        UNSUPPORTED,
        r"minimumFeatureLevel is DML_FEATURE_LEVEL_5_0 while the device has DML_FEATURE_LEVEL_4_0",
    ),
    # Features
    (ask(2, levels(0x1000)), UNSUPPORTED, r"feature is 2, which is no DML_FEATURE"),
    (ask(-1, None), UNSUPPORTED, r"feature is -1"),
    (ask(DATA_TYPE, None), E_INVALIDARG, r"_DATA_TYPE_SUPPORT while featureQueryData is null; they must agree"),
    (ask(DATA_TYPE, levels(0x1000)), E_INVALIDARG, r"featureQueryData is a DML_FEATURE_QUERY_FEATURE_LEVELS"),
    (
        ask(LEVELS, dml.DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT(F32)),
        E_INVALIDARG,
        r"DML_FEATURE_FEATURE_LEVELS while featureQueryData is a DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT",
    ),
    (ask(DATA_TYPE, dml.DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT(14)), E_INVALIDARG, r"DataType is 14, which is no"),
    (ask(LEVELS, levels()), E_INVALIDARG, r"RequestedFeatureLevels is empty"),
    (ask(LEVELS, levels(0x1000, count=2)), E_INVALIDARG, r"Count is 2 while RequestedFeatureLevels has 1; they must"),
    (ask(LEVELS, levels(0x1000, count=0)), E_INVALIDARG, r"Count is 0 while RequestedFeatureLevels has 1"),
    (ask(LEVELS, levels(0x7000)), UNSUPPORTED, r"RequestedFeatureLevels is 0x7000 while the device has DML_FEATURE_"),
    # Feature levels of operators
    (operator_at(0x2000, summation()), E_INVALIDARG, r"needs DML_FEATURE_LEVEL_2_1 while the device has .*_2_0"),
    (operator_at(0x3000, PRODUCT(tensor(), tensor(), 0)), E_INVALIDARG, r"PRODUCT: needs .*_3_1 while .*_3_0"),
    (operator_at(0x1000, ROUND(tensor(), tensor())), E_INVALIDARG, r"ROUND: needs .*_2_1 while .*_1_0"),
    (operator_at(0x3100, summation((3,))), E_INVALIDARG, r"FLOAT32 with DimensionCount 1 while .*_3_1 supports .* 4 d"),
    (operator_at(0x2100, summation((1,) * 5)), E_INVALIDARG, r"DimensionCount 5 while DML_FEATURE_LEVEL_2_1"),
    (operator_at(0x2100, ROUND(tensor((3,)), tensor((3,)))), E_INVALIDARG, r"ROUND: .* DimensionCount 1 while .*_2_1"),
    (operator_at(0x4100, summation(kind=I64)), E_INVALIDARG, r"DataType .*_INT64 with DimensionCount 4 while .*_4_1"),
    (
        operator_at(0x6400, summation(kind=INT8)),
        E_INVALIDARG,
        r"INT8 with .* while .*_6_4.*; extensions=True admits it",
    ),
    (operator_at(0x6400, summation(kind=F64)), E_INVALIDARG, r"FLOAT64 with .*; extensions=True admits it"),
    (operator_at(0x6400, summation((3,), UINT16)), E_INVALIDARG, r"UINT16 with DimensionCount 1 while .*; extensions="),
    (operator_at(0x2000, summation(kind=INT8), extensions=True), E_INVALIDARG, r"needs DML_FEATURE_LEVEL_2_1"),
    (operator_at(0x4100, summation(kind=I64), extensions=True), E_INVALIDARG, r"INT64 with DimensionCount 4 while"),
    # Operators and compiled operators
    (lambda w: w.device.CreateOperator(None), E_INVALIDARG, r"CreateOperator: desc is null"),
    (lambda w: w.device.CompileOperator(None), E_INVALIDARG, r"CompileOperator: op is null"),
    (
        lambda w: w.device.CompileOperator(w.plain.device.CreateOperator(summation())),
        E_INVALIDARG,
        r"CompileOperator: op was made by another IDMLDevice",
    ),
    (lambda w: w.debug.compile(summation(), 8), E_INVALIDARG, r"CompileOperator: flags is 0x8; it must be a comb"),
    (lambda w: w.debug.compile(summation(), -1), E_INVALIDARG, r"CompileOperator: flags is -0x1"),
    (
        lambda w: w.modest.compile(summation(TotalTensorSizeInBytes=2**28 + 4)),
        dml.E_OUTOFMEMORY,
        r"tensor 'InputTensor' has TotalTensorSizeInBytes 268435460 while the largest buffer .* 268435456 ",
    ),
    (
        lambda w: w.modest.compile(SUM(tensor((3,)), tensor((3,), TotalTensorSizeInBytes=2**34 - 4), 0)),
        dml.E_OUTOFMEMORY,
        r"tensor 'OutputTensor' has TotalTensorSizeInBytes 17179869180 while",
    ),
    # Initializers
    (
        lambda w: w.device.CreateOperatorInitializer(2, [w.sum]),
        E_INVALIDARG,
        r"operatorCount is 2 while operators has 1",
    ),
    (lambda w: w.device.CreateOperatorInitializer(1, None), E_INVALIDARG, r"operatorCount is 1 while operators has 0"),
    (lambda w: w.device.CreateOperatorInitializer(-1, []), E_INVALIDARG, r"operatorCount is -1; it is unsigned"),
    (
        lambda w: w.plain.device.CreateOperatorInitializer(2, [w.plain.compile(summation()), w.sum]),
        E_INVALIDARG,
        r"operators\[1\] was made by another IDMLDevice",
    ),
    (
        lambda w: w.initializer(w.sum).Reset(0, [w.sum]),
        E_INVALIDARG,
        r"Reset: operatorCount is 0 while operators has 1",
    ),
    (
        lambda w: w.initializer().Reset(1, [w.plain.compile(summation())]),
        E_INVALIDARG,
        r"Reset: operators\[0\] was made by another IDMLDevice",
    ),
    (reset_initializer, INVALID_CALL, r"BindInputs: IDMLOperatorInitializer was reset after the table was made for it"),
    (record_reset_initializer, INVALID_CALL, r"RecordDispatch: IDMLOperatorInitializer was reset after the table"),
    # Tables
    (lambda w: w.table(None), E_INVALIDARG, r"CreateBindingTable: Dispatchable is null"),
    (
        lambda w: w.table(w.sum).Reset(dml.DML_BINDING_TABLE_DESC(None)),
        E_INVALIDARG,
        r"IDMLBindingTable::Reset: Dispatchable is null",
    ),
    (
        lambda w: w.device.CreateBindingTable(dml.DML_BINDING_TABLE_DESC(w.sum, SizeInDescriptors=1)),
        E_INVALIDARG,
        r"SizeInDescriptors is 1 while CUMULATIVE_SUMMATION has RequiredDescriptorCount 2",
    ),
    (
        lambda w: w.table(w.sum).Reset(dml.DML_BINDING_TABLE_DESC(w.scratchy, None, None, 2)),
        E_INVALIDARG,
        r"SizeInDescriptors is 2 while CUMULATIVE_SUMMATION has RequiredDescriptorCount 3",
    ),
    (
        lambda w: w.device.CreateBindingTable(dml.DML_BINDING_TABLE_DESC(w.initializer(w.owned), None, None, 0)),
        E_INVALIDARG,
        r"SizeInDescriptors is 0 while IDMLOperatorInitializer has RequiredDescriptorCount 2",
    ),
    (lambda w: w.plain.table(w.sum), E_INVALIDARG, r"Dispatchable was made by another IDMLDevice"),
    (lambda w: w.plain.table(w.initializer()), E_INVALIDARG, r"Dispatchable was made by another IDMLDevice"),
    (
        lambda w: w.device.CreateBindingTable().BindInputs(0, None),
        INVALID_CALL,
        r"BindInputs: the table has no dispatchable; call IDMLBindingTable::Reset with one",
    ),
    (lambda w: w.device.CreateBindingTable().BindOutputs(0, None), INVALID_CALL, r"BindOutputs: the table has no"),
    (lambda w: w.device.CreateBindingTable().BindTemporaryResource(None), INVALID_CALL, r"the table has no dispatch"),
    (lambda w: w.device.CreateBindingTable().BindPersistentResource(None), INVALID_CALL, r"the table has no dispatch"),
    # Counts
    (
        bind(INPUTS, "sum", 2, lambda w: [on("a")(w)]),
        E_INVALIDARG,
        r"BindInputs: bindingCount is 2 while bindings has 1",
    ),
    (bind(INPUTS, "sum", 0, on("a")), E_INVALIDARG, r"bindingCount is 0 while bindings has 1"),
    (bind(INPUTS, "sum", 1, None), E_INVALIDARG, r"bindingCount is 1 while bindings has 0"),
    (
        bind(INPUTS, "sum", 2, lambda w: [on("a")(w)] * 2),
        E_INVALIDARG,
        r"BindInputs: CUMULATIVE_SUMMATION has 1 input while 2 are bound; they must be as many",
    ),
    (bind(OUTPUTS, "sum", 2, lambda w: [on("b")(w)] * 2), E_INVALIDARG, r"has 1 output while 2 are bound"),
    (bind(OUTPUTS, "sum", 1, []), E_INVALIDARG, r"BindOutputs: bindingCount is 1 while bindings has 0"),
    (bind_initializer(INPUTS, "sum owned", 1, [NONE]), E_INVALIDARG, r"has 2 operators while 1 is bound"),
    (bind_initializer(OUTPUTS, "sum", 2, [NONE, NONE]), E_INVALIDARG, r"has 1 operator while 2 are bound"),
    # Types of bindings
    (
        bind(INPUTS, "sum", 1, NONE),
        E_INVALIDARG,
        r"BindInputs: CUMULATIVE_SUMMATION: tensor 'InputTensor' has a binding of Type DML_BINDING_TYPE_NONE; it must",
    ),
    (bind(OUTPUTS, "sum", 1, NONE), E_INVALIDARG, r"'OutputTensor' has a binding of Type DML_BINDING_TYPE_NONE; it m"),
    (
        bind(INPUTS, "sum", 1, in_array("a")),
        E_INVALIDARG,
        r"Type DML_BINDING_TYPE_BUFFER_ARRAY; .* _?DML_BINDING_TYPE_B",
    ),
    (bind(OUTPUTS, "sum", 1, in_array("b")), E_INVALIDARG, r"'OutputTensor' has a binding of Type .*_BUFFER_ARRAY;"),
    (bind(INPUTS, "sum", 1, dml.DML_BINDING_DESC(3, None)), E_INVALIDARG, r"has a binding of Type 3; it must be DML_B"),
    (bind(OUTPUTS, "sum", 1, dml.DML_BINDING_DESC(-1, None)), E_INVALIDARG, r"has a binding of Type -1;"),
    (
        bind(INPUTS, "sum", 1, dml.DML_BINDING_DESC(BUFFER, None)),
        E_INVALIDARG,
        r"Type DML_BINDING_TYPE_BUFFER while its Desc is null, not a DML_BUFFER_BINDING",
    ),
    (
        bind(INPUTS, "sum", 1, dml.DML_BINDING_DESC(BUFFER, dml.DML_BUFFER_ARRAY_BINDING())),
        E_INVALIDARG,
        r"TYPE_BUFFER while its Desc is a DML_BUFFER_ARRAY_BINDING, not a DML_BUFFER_BINDING",
    ),
    (
        bind(TEMPORARY, "sum", in_array("a")),
        E_INVALIDARG,
        r"the temporary resource has a binding of Type .*_BUFFER_ARRAY",
    ),
    (
        bind(PERSISTENT, "sum", in_array("a")),
        E_INVALIDARG,
        r"the persistent resource has a binding of Type .*_ARRAY; i",
    ),
    (
        bind(TEMPORARY, "sum", dml.DML_BINDING_DESC(0, dml.DML_BUFFER_BINDING(None))),
        E_INVALIDARG,
        r"Type DML_BINDING_TYPE_NONE while its Desc is a DML_BUFFER_BINDING, not null",
    ),
    (bind(TEMPORARY, "scratchy", dml.DML_BINDING_DESC(7)), E_INVALIDARG, r"temporary resource has a binding of Type 7"),
    (
        bind_initializer(INPUTS, "owned", 1, on("a")),
        E_INVALIDARG,
        r"operator 0, .* binding of Type DML_BINDING_TYPE_BUF",
    ),
    (
        bind_initializer(OUTPUTS, "owned", 1, in_array("a")),
        E_INVALIDARG,
        r"its persistent resource has a binding of Ty",
    ),
    # Buffers
    (bind(INPUTS, "sum", 1, of(lambda w: None)), E_INVALIDARG, r"'InputTensor' has a binding with a null Buffer"),
    (bind(OUTPUTS, "sum", 1, of(lambda w: None)), E_INVALIDARG, r"'OutputTensor' has a binding with a null Buffer"),
    (
        bind(TEMPORARY, "scratchy", of(lambda w: None)),
        E_INVALIDARG,
        r"temporary resource has a binding with a null Buf",
    ),
    (bind(INPUTS, "sum", 1, of(lambda w: w.destroyed())), E_INVALIDARG, r"'InputTensor': Buffer was destroyed"),
    (bind(OUTPUTS, "sum", 1, of(lambda w: w.destroyed())), E_INVALIDARG, r"'OutputTensor': Buffer was destroyed"),
    (bind(TEMPORARY, "scratchy", of(lambda w: w.destroyed())), E_INVALIDARG, r"temporary resource: Buffer was destroy"),
    (
        bind(PERSISTENT, "owned", of(lambda w: w.destroyed())),
        E_INVALIDARG,
        r"persistent resource: Buffer was destroyed",
    ),
    (
        bind(INPUTS, "sum", 1, of(lambda w: w.bad_buffer(mapped_at_creation=True))),
        E_INVALIDARG,
        r"'InputTensor': Buffer has map_state 'mapped'; call its unmap",
    ),
    (
        bind(OUTPUTS, "sum", 1, of(lambda w: w.bad_buffer(mapped_at_creation=True))),
        E_INVALIDARG,
        r"'OutputTensor': Buffer has map_state 'mapped'",
    ),
    (
        bind(INPUTS, "sum", 1, of(lambda w: w.bad_buffer(usage=wgpu.BufferUsage.COPY_DST))),
        E_INVALIDARG,
        r"'InputTensor': Buffer has usage COPY_DST; create it with wgpu.BufferUsage.STORAGE too",
    ),
    (
        bind(OUTPUTS, "sum", 1, of(lambda w: w.bad_buffer(usage=wgpu.BufferUsage.UNIFORM))),
        E_INVALIDARG,
        r"'OutputTensor': Buffer has usage UNIFORM",
    ),
    # An upload heap and a readback heap, as they are in WebGPU
    (
        bind_initializer(
            INPUTS, "owned", 1, lambda w: array_binding(dml.DML_BUFFER_BINDING(w.bad_buffer(usage=UPLOAD)))
        ),
        E_INVALIDARG,
        r"Buffer has usage COPY_SRC \| MAP_WRITE; copy it to or from one with wgpu.BufferUsage.STORAGE, as mappable",
    ),
    (
        bind(OUTPUTS, "sum", 1, of(lambda w: w.bad_buffer(usage=READBACK))),
        E_INVALIDARG,
        r"Buffer has usage COPY_DST \| MAP_READ; copy it to or from one with wgpu.BufferUsage.STORAGE",
    ),
    (
        bind(TEMPORARY, "scratchy", of(lambda w: w.bad_buffer(usage=wgpu.BufferUsage.COPY_SRC))),
        E_INVALIDARG,
        r"temporary resource: Buffer has usage COPY_SRC",
    ),
    (
        bind(INPUTS, "sum", 1, of(lambda w: w.other_gpu.create_buffer(size=64, usage=STORAGE))),
        E_INVALIDARG,
        r"'InputTensor': Buffer belongs to another wgpu device",
    ),
    (
        bind(PERSISTENT, "owned", of(lambda w: w.other_gpu.create_buffer(size=256, usage=STORAGE), 0, 256)),
        E_INVALIDARG,
        r"persistent resource: Buffer belongs to another wgpu device",
    ),
    (
        bind_initializer(INPUTS, "owned", 1, in_array(None)),
        E_INVALIDARG,
        r"tensor 'InputTensor' has a binding with a nul",
    ),
    # Offsets
    (bind(INPUTS, "sum", 1, on("a", 4, 48)), E_INVALIDARG, r"binding with Offset 4; it must be a multiple of 16"),
    (bind(INPUTS, "sum", 1, on("a", 8, 48)), E_INVALIDARG, r"Offset 8; it must be a multiple of 16"),
    (bind(OUTPUTS, "sum", 1, on("b", 1, 48)), E_INVALIDARG, r"'OutputTensor' has a binding with Offset 1; .* of 16"),
    (bind(INPUTS, "aligned", 1, on("a", 16, 48)), E_INVALIDARG, r"Offset 16; it must be a multiple of 64"),
    (bind(INPUTS, "aligned", 1, on("a", 96, 48)), E_INVALIDARG, r"Offset 96; it must be a multiple of 64"),
    (
        bind(TEMPORARY, "scratchy", on("c", 16)),
        E_INVALIDARG,
        r"temporary resource has .* Offset 16; .* multiple of 256",
    ),
    (bind(TEMPORARY, "scratchy", on("c", 128)), E_INVALIDARG, r"Offset 128; it must be a multiple of 256"),
    (bind(TEMPORARY, "sum", on("c", 128)), E_INVALIDARG, r"Offset 128; it must be a multiple of 256"),
    (bind(PERSISTENT, "owned", on("c", 64)), E_INVALIDARG, r"persistent resource has .* Offset 64; .* multiple of 256"),
    (
        bind_initializer(OUTPUTS, "owned", 1, on("c", 32)),
        E_INVALIDARG,
        r"its persistent resource .* Offset 32; .* of 256",
    ),
    (
        bind_initializer(INPUTS, "owned", 1, in_array("a", 12)),
        E_INVALIDARG,
        r"'InputTensor' has .* Offset 12; .* of 16",
    ),
    (lambda w: on("a", -16)(w), E_INVALIDARG, r"DML_BUFFER_BINDING: Offset is -16; it is unsigned"),
    (lambda w: on("a", 2**64)(w), E_INVALIDARG, r"DML_BUFFER_BINDING: Offset is 18446744073709551616"),
    (lambda w: on("a", 0, -1)(w), E_INVALIDARG, r"DML_BUFFER_BINDING: SizeInBytes is -1"),
    # Ranges
    (
        bind(INPUTS, "sum", 1, on("a", 0, 44)),
        E_INVALIDARG,
        r"'InputTensor' has a binding with SizeInBytes 44 while its TotalTensorSizeInBytes is 48; the range must be at",
    ),
    (bind(OUTPUTS, "sum", 1, on("b", 0, 0)), E_INVALIDARG, r"'OutputTensor' has .* SizeInBytes 0 while .* is 48"),
    (
        bind(INPUTS, "sum", 1, on("a", 2**17 - 32, 48)),
        E_INVALIDARG,
        r"Offset 131040 and SizeInBytes 48, which end at 131088, while its Buffer has 131072 bytes",
    ),
    (bind(OUTPUTS, "sum", 1, on("b", 0, 2**17 + 1)), E_INVALIDARG, r"end at 131073, while its Buffer has 131072"),
    (
        bind(INPUTS, "sum", 1, of(lambda w: w.bad_buffer(size=1), 0, 48)),
        E_INVALIDARG,
        r"Buffer has size 1; create one of at least 4 bytes",
    ),
    (bind(INPUTS, "sum", 1, on("a", 2**64 - 16, 48)), E_INVALIDARG, r"end at 18446744073709551648, while"),
    (bind(INPUTS, "sum", 1, on("a", 2**32, 48)), E_INVALIDARG, r"Offset 4294967296 and SizeInBytes 48, which end at"),
    (bind(INPUTS, "sum", 1, on("a", 2**17, None)), E_INVALIDARG, r"SizeInBytes 0 while its TotalTensorSizeInBytes is"),
    (bind(TEMPORARY, "scratchy", on("c", 0, 4)), E_INVALIDARG, r"SizeInBytes 4 while its TemporaryResourceSize is \d+"),
    (bind(TEMPORARY, "scratchy", on("c", 2**17, 256)), E_INVALIDARG, r"temporary resource .* end at 131328, while its"),
    (
        bind(PERSISTENT, "owned", on("c", 0, 255)),
        E_INVALIDARG,
        r"SizeInBytes 255 while its PersistentResourceSize is 256",
    ),
    (bind(PERSISTENT, "owned", on("c", 2**17, 256)), E_INVALIDARG, r"persistent resource .* end at 131328, while its"),
    (
        bind_initializer(OUTPUTS, "owned", 1, on("c", 0, 12)),
        E_INVALIDARG,
        r"12 while its PersistentResourceSize is 256",
    ),
    (
        bind_initializer(INPUTS, "owned", 1, in_array("a", 0, 8)),
        E_INVALIDARG,
        r"8 while its TotalTensorSizeInBytes is 12",
    ),
    # Resources that are needed, or not
    (
        bind(TEMPORARY, "scratchy", None),
        E_INVALIDARG,
        r"the temporary resource has no binding while TemporaryResourceSiz",
    ),
    (bind(TEMPORARY, "scratchy", NONE), E_INVALIDARG, r"the temporary resource has no binding while"),
    (
        bind(PERSISTENT, "owned", None),
        E_INVALIDARG,
        r"the persistent resource has no binding while PersistentResourceSi",
    ),
    (bind(PERSISTENT, "owned", NONE), E_INVALIDARG, r"the persistent resource has no binding while .* is 256"),
    (
        bind_initializer(OUTPUTS, "owned", 1, NONE),
        E_INVALIDARG,
        r"its persistent resource has a binding of Type .*_NONE",
    ),
    (
        bind_initializer(OUTPUTS, "sum", 1, on("c")),
        E_INVALIDARG,
        r"\(PersistentResourceSize 0\) has a binding of Type DML",
    ),
    # Inputs that DirectML owns
    (
        bind(INPUTS, "owned", 1, on("a")),
        E_INVALIDARG,
        r"'InputTensor' has Flags DML_TENSOR_FLAG_OWNED_BY_DML while its binding has Type DML_BINDING_TYPE_BUFFER; bi",
    ),
    (bind(INPUTS, "owned", 1, in_array("a")), E_INVALIDARG, r"OWNED_BY_DML while its binding has Type .*_BUFFER_ARRAY"),
    (
        bind_initializer(INPUTS, "owned", 1, NONE),
        E_INVALIDARG,
        r"operator 0, CUMULATIVE_SUMMATION, tensor 'InputTensor' ",
    ),
    (
        bind_initializer(INPUTS, "owned", 1, array_binding()),
        E_INVALIDARG,
        r"OWNED_BY_DML while nothing is bound; bind it",
    ),
    (
        bind_initializer(INPUTS, "sum owned", 2, lambda w: [in_array("a")(w)] * 2),
        E_INVALIDARG,
        r"operator 0, .*'InputTensor' has Flags DML_TENSOR_FLAG_NONE while a buffer is bound; only a tensor with DML_",
    ),
    (
        bind_initializer(INPUTS, "owned", 1, array_binding(*[dml.DML_BUFFER_BINDING(None, 0, 0)] * 2)),
        E_INVALIDARG,
        r"operator 0, CUMULATIVE_SUMMATION has 1 input while 2 are bound",
    ),
    (
        bind_initializer(INPUTS, "owned", 1, dml.DML_BINDING_DESC(ARRAY, dml.DML_BUFFER_ARRAY_BINDING(2, ()))),
        E_INVALIDARG,
        r"DML_BUFFER_ARRAY_BINDING with BindingCount 2 while Bindings has 0; they must agree",
    ),
    (
        lambda w: w.initialize_owned([in_array("a")(w)], [on("a", 256, 256)(w)]),
        E_INVALIDARG,
        r"an initializer's inputs and outputs must be in different buffers",
    ),
    (
        lambda w: w.initialize_owned([in_array("a")(w)] * 2, [on("c", 0, 512)(w), on("c", 256, 256)(w)], 2),
        E_INVALIDARG,
        r"bytes 256 to 512 while .* bytes 0 to 512 of the same buffer; persistent resources must not share a byte",
    ),
    # Bindings that meet
    (
        lambda w: w.execute(w.sum, input=(w.a, 0, 48), output=(w.a, 32, 48)),
        E_INVALIDARG,
        r"'OutputTensor' is bound to bytes 32 to 80 while tensor 'InputTensor' is bound to bytes 0 to 48 of the same ",
    ),
    (
        lambda w: w.execute(w.sum, input=(w.a, 48, 48), output=(w.a, 32, 48)),
        E_INVALIDARG,
        r"they must be identical, for work in place, or share no byte",
    ),
    (
        lambda w: w.execute(w.sum, input=(w.a, 0, 48), output=(w.a, 0, 64)),
        E_INVALIDARG,
        r"bytes 0 to 64 while tensor 'InputTensor' is bound to bytes 0 to 48 .* they must be identical",
    ),
    (
        lambda w: w.execute(w.crossed, input=(w.a, 0, 48), output=(w.a, 0, 48)),
        E_INVALIDARG,
        r"\(bytes 0 to 48 of one buffer\) while tensor 'OutputTensor' has Strides \(4, 1\) and .* Strides \(1, 3\)",
    ),
    (
        lambda w: w.execute(w.longer, input=(w.a, 0, 64), output=(w.a, 0, 64)),
        E_INVALIDARG,
        r"'OutputTensor' has TotalTensorSizeInBytes 52 and tensor 'InputTensor' has TotalTensorSizeInBytes 48; work",
    ),
    (
        lambda w: w.execute(w.one_row, input=(w.a, 0, 48), output=(w.a, 0, 48)),
        E_INVALIDARG,
        r"'OutputTensor' has Strides \(12, 4, 1\) and .* has Strides \(0, 4, 1\); work in place needs the same Strides",
    ),
    (
        lambda w: w.execute(w.scratchy, temporary=(w.a, 0, w.scratch)),
        E_INVALIDARG,
        r"the temporary resource is bound to bytes 0 to \d+ while tensor 'InputTensor' is bound to bytes 0 to 40960",
    ),
    (
        lambda w: w.execute(w.scratchy, temporary=(w.b, 40_704, w.scratch)),
        E_INVALIDARG,
        r"the temporary resource is bound to bytes 40704 to \d+ while tensor 'OutputTensor' is bound to bytes 0 to 40",
    ),
    (
        lambda w: w.execute(w.sum, temporary=(w.b, 0, 256)),
        E_INVALIDARG,
        r"the temporary resource must not share a byte with it",
    ),
    (
        lambda w: w.execute(w.sum, persistent=(w.b, 256, 256)),
        E_INVALIDARG,
        r"the persistent resource is bound to bytes 256 to 512 while tensor 'OutputTensor' is",
    ),
    (
        lambda w: w.execute(w.sum, temporary=(w.c, 256, 256), persistent=(w.c, 0, 512)),
        E_INVALIDARG,
        r"the temporary resource is bound to bytes 256 to 512 while|the persistent resource is bound to bytes 0 to 51",
    ),
    (
        persistent_meets(240),
        E_INVALIDARG,
        r"persistent resource is bound to bytes 256 to 512 while tensor 'OutputTensor'",
    ),
    (persistent_meets(496), E_INVALIDARG, r"'OutputTensor' is bound to bytes 496 to 528 of the same buffer"),
    # Recording
    (
        lambda w: w.execute(w.sum, "input"),
        E_INVALIDARG,
        r"has no inputs bound; call IDMLBindingTable::BindInputs first",
    ),
    (lambda w: w.execute(w.sum, "output"), E_INVALIDARG, r"has no outputs bound; call IDMLBindingTable::BindOutputs"),
    (
        lambda w: w.execute(w.scratchy, "temporary"),
        E_INVALIDARG,
        r"has no temporary resource bound; call .*BindTemporary",
    ),
    (lambda w: w.execute(w.owned, "input"), E_INVALIDARG, r"has no persistent resource bound; call .*BindPersistent"),
    (
        lambda w: w.record(*[w.initializer(w.owned)] * 1, w.table(w.owned)),
        E_INVALIDARG,
        r"dispatchable is IDMLOperatorInitializer while bindings was made for CUMULATIVE_SUMMATION; call IDMLBindingT",
    ),
    (
        lambda w: w.record(w.sum, w.table(w.scratchy)),
        E_INVALIDARG,
        r"dispatchable is CUMULATIVE_SUMMATION while bindings was made for another CUMULATIVE_SUMMATION; call",
    ),
    (lambda w: w.record(w.sum, w.device.CreateBindingTable()), E_INVALIDARG, r"bindings was made for no dispatchable"),
    (lambda w: w.record(None, w.table(w.sum)), E_INVALIDARG, r"RecordDispatch: dispatchable is null"),
    (lambda w: w.record(w.sum, None), E_INVALIDARG, r"RecordDispatch: bindings is null"),
    (
        lambda w: w.debug.recorder.RecordDispatch(None, w.sum, w.table(w.sum)),
        E_INVALIDARG,
        r"RecordDispatch: commandList is null",
    ),
    (
        lambda w: w.debug.recorder.RecordDispatch(w.other_gpu.create_command_encoder(), w.sum, w.bound(w.sum)),
        E_INVALIDARG,
        r"commandList belongs to another wgpu device",
    ),
    (
        lambda w: w.plain.recorder.RecordDispatch(w.encoder(), w.sum, w.bound(w.sum)),
        E_INVALIDARG,
        r"dispatchable was made by another IDMLDevice",
    ),
    (
        lambda w: w.record(w.sum, w.plain.table(w.plain.compile(summation()))),
        E_INVALIDARG,
        r"bindings was made by another",
    ),
    (finished_for_nothing, INVALID_CALL, r"commandList takes no commands; it must not be finished or inside a pass"),
    (finished, INVALID_CALL, r"commandList takes no commands; it must not be finished or inside a pass: [^\n]*ended"),
    (with_open_pass, INVALID_CALL, r"commandList takes no commands; .*locked"),
    (changed_later(lambda b: b.destroy(), "input"), E_INVALIDARG, r"tensor 'InputTensor': Buffer was destroyed"),
    (changed_later(lambda b: b.destroy(), "output"), E_INVALIDARG, r"tensor 'OutputTensor': Buffer was destroyed"),
    (changed_later(lambda b: b.destroy(), "temporary"), E_INVALIDARG, r"the temporary resource: Buffer was destroyed"),
    (
        lambda w: w.record(w.initializer(w.owned), w.table(w.initializer(w.owned))),
        E_INVALIDARG,
        r"dispatchable is IDMLOperatorInitializer while bindings was made for another IDMLOperatorInitializer; call",
    ),
    (lambda w: (lambda i: w.record(i, w.table(i)))(w.initializer(w.owned)), E_INVALIDARG, r"has no inputs bound; call"),
    # The debug layer
    (never_initialized, INVALID_CALL, r"CUMULATIVE_SUMMATION is not initialized; record its IDMLOperatorInitializer"),
    (other_persistent, E_INVALIDARG, r"is not one that an IDMLOperatorInitializer was recorded for; bind that one"),
    # Late binding
    (
        bind_late(INPUTS, 1, on("a")),
        INVALID_CALL,
        r"BindInputs: CUMULATIVE_SUMMATION was compiled with .*_VOLATILE and rec",
    ),
    (
        bind_late(OUTPUTS, 1, on("b")),
        INVALID_CALL,
        r"BindOutputs: .* while WebGPU freezes bindings in RecordDispatch, so",
    ),
    (
        bind_late(TEMPORARY, on("c")),
        INVALID_CALL,
        r"BindTemporaryResource: .*; call IDMLBindingTable::Reset, bind and rec",
    ),
    (
        bind_late(PERSISTENT, None),
        INVALID_CALL,
        r"BindPersistentResource: .* bind and record again, or compile without th",
    ),
    (bind_late(INPUTS, 0, None), INVALID_CALL, r"BindInputs: CUMULATIVE_SUMMATION was compiled with .*_VOLATILE"),
    (
        lambda w: w.execute(w.late, "input"),
        E_INVALIDARG,
        r"has no inputs bound; call .*BindInputs first, as WebGPU cannot bind late \(DML_EXECUTION_FLAG_DESCR",
    ),
    (
        lambda w: w.execute(w.late, "output"),
        E_INVALIDARG,
        r"has no outputs bound; .* first, as WebGPU cannot bind late",
    ),
    (
        lambda w: w.execute(w.late, "temporary"),
        E_INVALIDARG,
        r"no temporary resource bound; .* first, as WebGPU cannot",
    ),
    (
        lambda w: w.execute(w.late_owned, "input"),
        E_INVALIDARG,
        r"no persistent resource bound; .* first, as WebGPU cannot bind",
    ),
    (
        lambda w: w.execute(w.sum, "input"),
        E_INVALIDARG,
        r"has no inputs bound; call IDMLBindingTable::BindInputs first$",
    ),
]


@pytest.mark.parametrize(("action", "hresult", "message"), ROWS, ids=[f"{i}-{row[2]}" for i, row in enumerate(ROWS)])
def test_a_broken_rule(world: World, action: Callable[[World], Any], hresult: int, message: str) -> None:
    with pytest.raises(DirectMLError, match=re.compile(message, re.DOTALL)) as caught:
        action(world)
    assert caught.value.hresult == hresult
    assert not slips(str(caught.value))


@pytest.mark.parametrize(("desc", "message"), INVALID, ids=[f"{i}-{m}" for i, (_, m) in enumerate(INVALID)])
def test_a_broken_rule_of_a_description(world: World, desc: Any, message: str) -> None:
    with pytest.raises(DirectMLError, match=message) as caught:
        world.device.CreateOperator(desc)
    assert caught.value.hresult == dml.E_INVALIDARG
    assert not slips(str(caught.value))


def test_enough_rules_are_broken() -> None:
    assert len(ROWS) + len(INVALID) > 230


# What a C++ compiler would not take.
TYPES: list[tuple[Callable[[World], Any], str]] = [
    (create("debug"), r"flags is 'debug' \(str\)"),
    (create(True), r"flags is True"),
    (create(0, 2.0), r"minimumFeatureLevel is 2.0"),
    (create(0, 0x1000, extensions=1), r"extensions is an int; give it True or False"),
    (lambda w: dml.DMLCreateDevice(2.5), r"device is 2.5 of type float"),
    (lambda w: w.device.CreateOperator(tensor()), r"desc is a DML_BUFFER_TENSOR_DESC; give a DML_OPERATOR_DESC"),
    (
        lambda w: w.device.CompileOperator(summation()),
        r"op is a DML_CUMULATIVE_SUMMATION_OPERATOR_DESC; give it an IDML",
    ),
    (lambda w: w.debug.compile(summation(), 0.5), r"flags is 0.5"),
    (
        lambda w: w.device.CreateOperatorInitializer(1, [w.device]),
        r"operators\[0\] is an IDMLDevice; give it an IDMLComp",
    ),
    (lambda w: w.device.CreateOperatorInitializer(1, 5), r"operators is an int; give it a sequence of IDMLCompiledOpe"),
    (lambda w: w.device.CreateOperatorInitializer(1.0, [w.sum]), r"operatorCount is 1.0"),
    (lambda w: w.device.CreateBindingTable(w.sum), r"desc is an IDMLCompiledOperator; give it a DML_BINDING_TABLE"),
    (lambda w: w.table(w.debug.recorder), r"Dispatchable is an IDMLCommandRecorder; give it an IDMLCompiledO"),
    (lambda w: dml.DML_BINDING_TABLE_DESC(w.sum, None, None, "2"), r"SizeInDescriptors is '2'"),
    (bind(INPUTS, "sum", 1, lambda w: [w.a]), r"BindInputs: bindings\[0\] is a GPUBuffer; give it a DML_BINDING_DESC"),
    (
        bind(INPUTS, "sum", 1, lambda w: dml.DML_BUFFER_BINDING(w.a)),
        r"bindings is a DML_BUFFER_BINDING; give it a sequ",
    ),
    (bind(OUTPUTS, "sum", "1", on("b")), r"bindingCount is '1'"),
    (
        bind(TEMPORARY, "sum", lambda w: w.a),
        r"BindTemporaryResource: binding is a GPUBuffer; give it a DML_BINDING_DESC",
    ),
    (bind(INPUTS, "sum", 1, of(lambda w: bytearray(48))), r"Buffer is a bytearray; give it a wgpu.GPUBuffer"),
    (bind(INPUTS, "sum", 1, of(lambda w: w.gpu)), r"Buffer is a GPUDevice; give it a wgpu.GPUBuffer"),
    (bind(OUTPUTS, "sum", 1, of(lambda w: 7)), r"Buffer is an int; give it a wgpu.GPUBuffer"),
    # An array of another library has a method of that name.
    (
        bind(OUTPUTS, "sum", 1, of(lambda w: "7".__class__("x").join, 0, None)),
        r"Buffer is a builtin_function_or_method",
    ),
    (lambda w: dml.DML_BUFFER_BINDING(w.a, 1.5), r"DML_BUFFER_BINDING: Offset is 1.5"),
    (
        lambda w: dml.DML_BINDING_DESC(BUFFER, w.a),
        r"DML_BINDING_DESC: Desc is a GPUBuffer; give it a DML_BUFFER_BINDING",
    ),
    (lambda w: dml.DML_BINDING_DESC("BUFFER", None), r"DML_BINDING_DESC: Type is 'BUFFER'"),
    (lambda w: dml.DML_BUFFER_ARRAY_BINDING(1, [w.a]), r"Bindings\[0\] is a GPUBuffer; give it a DML_BUFFER_BINDING"),
    (ask("levels", None), r"feature is 'levels'"),
    (lambda w: dml.DML_FEATURE_QUERY_FEATURE_LEVELS(1, 0x1000), r"RequestedFeatureLevels is an int; give it a sequenc"),
    (lambda w: dml.DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT("F32"), r"DataType is 'F32'"),
    (
        lambda w: w.debug.recorder.RecordDispatch(w.gpu, w.sum, w.table(w.sum)),
        r"commandList is a GPUDevice; give it a ",
    ),
    (lambda w: w.record(w.device, w.table(w.sum)), r"dispatchable is an IDMLDevice; give it an IDMLDispatchable"),
    (lambda w: w.record(w.sum, w.sum), r"bindings is an IDMLCompiledOperator; give it an IDMLBindingTable"),
    (lambda w: w.sum.SetName(5), r"SetName: name is an int; give it a str"),
]


@pytest.mark.parametrize(("action", "message"), TYPES, ids=[f"{i}-{row[1]}" for i, row in enumerate(TYPES)])
def test_a_wrong_type(world: World, action: Callable[[World], Any], message: str) -> None:
    with pytest.raises(ArrayTypeError, match=message) as caught:
        action(world)
    assert not slips(str(caught.value))


def test_a_failed_binding_leaves_the_table_as_it_was(world: World) -> None:
    target = world.debug.buffer(np.zeros(48, np.uint8))
    source = world.debug.buffer(np.ones(12, np.float32).view(np.uint8))
    table = world.bound(world.sum, input=(source, 0, 48), output=(target, 0, 48))
    for action in (
        lambda: table.BindInputs(1, buffer_binding(world.a, 8, 48)),
        lambda: table.BindOutputs(1, NONE),
        lambda: table.Reset(dml.DML_BINDING_TABLE_DESC(world.sum, None, None, 0)),
    ):
        with pytest.raises(DirectMLError):
            action()
    world.debug.submit((world.sum, table))
    assert world.debug.read(target).view(np.float32).tolist() == [1] * 12


def test_messages_carry_names(world: World) -> None:
    operator = world.device.CreateOperator(summation())
    operator.SetName("running total")
    compiled = world.device.CompileOperator(operator)
    with pytest.raises(DirectMLError, match=r"CUMULATIVE_SUMMATION 'running total': tensor 'InputTensor' has a bind"):
        world.table(compiled).BindInputs(1, NONE)


REMOVED: list[Callable[[World], Any]] = [
    lambda w: w.device.CreateOperator(summation()),
    lambda w: w.device.CompileOperator(None),
    lambda w: w.device.CheckFeatureSupport(LEVELS, levels(0x1000)),
    lambda w: w.device.CreateOperatorInitializer(),
    lambda w: w.device.CreateBindingTable(),
    lambda w: w.device.CreateCommandRecorder(),
    lambda w: w.kept_table.BindInputs(0, None),
    lambda w: w.kept_table.BindOutputs(0, None),
    lambda w: w.kept_table.BindTemporaryResource(None),
    lambda w: w.kept_table.BindPersistentResource(None),
    lambda w: w.kept_table.Reset(),
    lambda w: w.kept_initializer.Reset(0, None),
    lambda w: w.debug.recorder.RecordDispatch(w.kept_encoder, w.sum, w.kept_table),
    lambda w: dml.DMLCreateDevice(w.gpu),
]


@pytest.mark.parametrize("way", ["destroyed", "released"])
def test_a_removed_device(device: dmlgpu.Device, way: str) -> None:
    gpu = device.description.adapter.request_device_sync()
    w: Any = World(gpu, device.gpu_device, device.gpu_device)
    w.kept_table, w.kept_initializer, w.kept_encoder = w.table(w.sum), w.initializer(), w.encoder()
    assert w.device.GetDeviceRemovedReason() == dml.S_OK
    if way == "destroyed":
        gpu.destroy()
    else:
        dmlgpu.Device.wrap(gpu).release()
    assert w.device.GetDeviceRemovedReason() == dml.DXGI_ERROR_DEVICE_REMOVED
    for action in REMOVED[: None if way == "destroyed" else -1]:
        with pytest.raises(DirectMLError) as caught:
            action(w)
        assert caught.value.hresult == dml.DXGI_ERROR_DEVICE_REMOVED
    assert w.device.GetParentDevice() is gpu
    w.device.SetName("gone")


@pytest.mark.parametrize("name", sorted(adapters._NEEDED))
def test_devices_whose_limits_no_kernel_can_keep(device: dmlgpu.Device, name: str) -> None:
    gpu = device.description.adapter.request_device_sync(required_limits={name: 0})
    for create_device in (dml.DMLCreateDevice, dml.DMLCreateDevice1):
        expected = rf"^{create_device.__name__}: .*{name} = 0, and kernels need"
        with pytest.raises(DirectMLError, match=expected) as caught:
            create_device(gpu)
        assert caught.value.hresult == UNSUPPORTED
    gpu.destroy()
    with pytest.raises(AdapterNotFoundError):
        dml.DMLCreateDevice("no such adapter")


def test_an_adapter_that_cannot_be_opened_now_is_not_called_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(device: object) -> None:
        raise DeviceError("wgpu gives no list of adapters: busy; try again")

    monkeypatch.setattr("dmlgpu.directml.idml_device.resolve_device", busy)
    for device in (None, "llvmpipe", 0):
        with pytest.raises(DeviceError, match="try again"):
            dml.DMLCreateDevice(device)
