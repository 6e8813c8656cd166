"""Every field of every struct and every argument of every call, given every odd kind of value: taken, or refused.

What refuses it is an error of this package that names the argument, and the device goes on. The calls and their
parameters come from `inspect`, so that a new one without a row here fails.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
import pytest

import dmlgpu
from dmlgpu import directml as dml
from dmlgpu.errors import ArrayTypeError, DirectMLError, DmlGpuError

from .directml_descriptions import PRODUCT, ROUND, SUM
from .directml_session import NONE, Session, array_binding, buffer_binding
from .test_arguments import ODD

F32 = dml.DML_TENSOR_DATA_TYPE_FLOAT32
T = dml.DML_BUFFER_TENSOR_DESC(F32, Sizes=(1, 1, 2, 3))
OTHERS: dict[str, Callable[[dmlgpu.Device], Any]] = {
    "no end": lambda d: count(),
    "an enumerator of another type": lambda d: dml.DML_BINDING_TYPE_BUFFER,
    "a nameless type": lambda d: type("", (), {})(),
    "text for a number": lambda d: "%d",
    "a struct": lambda d: T,
    "a list of structs": lambda d: [T, None],
    "2**32": lambda d: 2**32,
    "2**64": lambda d: 2**64,
}
VALUES = ODD | OTHERS


@pytest.fixture(scope="module")
def gpu(device: dmlgpu.Device) -> Iterator[Any]:
    made = device.description.adapter.request_device_sync()
    yield made
    made.destroy()


# Structs: the values of a valid one of each kind


def structs(buffer: Any = None, dispatchable: Any = None) -> list[Any]:
    wrapped = dml.DML_TENSOR_DESC(dml.DML_TENSOR_TYPE_BUFFER, T)
    one = dml.DML_BUFFER_BINDING(buffer, 0, 24)
    return [
        T,
        wrapped,
        SUM(T, T, 3),
        PRODUCT(T, T, 3),
        ROUND(T, T),
        dml.DML_OPERATOR_DESC(dml.DML_OPERATOR_ELEMENT_WISE_ROUND, ROUND(T, T)),
        one,
        dml.DML_BUFFER_ARRAY_BINDING(1, [one]),
        dml.DML_BINDING_DESC(dml.DML_BINDING_TYPE_BUFFER, one),
        dml.DML_BINDING_TABLE_DESC(dispatchable, 0, 0, 2),
        dml.DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT(F32),
        dml.DML_FEATURE_QUERY_FEATURE_LEVELS(1, [dml.DML_FEATURE_LEVEL_5_0]),
    ]


ANSWERS = {
    "DML_BINDING_PROPERTIES",
    "DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT",
    "DML_FEATURE_DATA_FEATURE_LEVELS",
}
"""Structs that calls return; what a caller makes of them goes nowhere."""


def test_every_struct_is_here() -> None:
    kinds = {kind.__name__ for kind in vars(dml).values() if isinstance(kind, type) and dataclasses.is_dataclass(kind)}
    assert {type(struct).__name__ for struct in structs()} | ANSWERS == kinds


class Uses:
    """What a description is for: every call that takes one."""

    def __init__(self, gpu: Any) -> None:
        self.session = Session(gpu, extensions=True)
        self.buffer = self.session.buffer(np.zeros(1024, np.uint8))
        self.compiled = self.session.compile(SUM(T, T, 3))
        self.owned = self.session.compile(SUM(dataclasses.replace(T, Flags=1), T, 3))
        self.initializer = self.session.device.CreateOperatorInitializer(2, [self.compiled, self.owned])

    def all(self, struct: Any) -> list[Callable[[], Any]]:
        device = self.session.device
        table, first = self.session.table(self.compiled), self.session.table(self.initializer)
        binding = dml.DML_BINDING_DESC
        if isinstance(struct, dml.DML_BUFFER_TENSOR_DESC):
            return [
                lambda: device.CreateOperator(SUM(struct, struct, 0)),
                lambda: device.CreateOperator(ROUND(T, struct)),
            ]
        if isinstance(struct, dml.DML_TENSOR_DESC):
            return [lambda: device.CreateOperator(PRODUCT(struct, struct, 0))]
        if isinstance(struct, (SUM, PRODUCT, ROUND, dml.DML_OPERATOR_DESC)):
            return [
                lambda: device.CreateOperator(struct),
                lambda: dml.execute(struct, np.zeros((1, 1, 2, 3), np.float32)),
            ]
        if isinstance(struct, dml.DML_BUFFER_BINDING):
            return [
                lambda: table.BindInputs(1, binding(dml.DML_BINDING_TYPE_BUFFER, struct)),
                lambda: first.BindInputs(2, [NONE, array_binding(struct)]),
            ]
        if isinstance(struct, dml.DML_BUFFER_ARRAY_BINDING):
            return [lambda: first.BindInputs(2, [NONE, binding(dml.DML_BINDING_TYPE_BUFFER_ARRAY, struct)])]
        if isinstance(struct, dml.DML_BINDING_DESC):
            return [
                lambda: table.BindInputs(1, struct),
                lambda: table.BindOutputs(1, struct),
                lambda: table.BindTemporaryResource(struct),
                lambda: table.BindPersistentResource(struct),
                lambda: first.BindInputs(2, [struct, struct]),
                lambda: first.BindOutputs(2, [struct, struct]),
            ]
        if isinstance(struct, dml.DML_BINDING_TABLE_DESC):
            return [lambda: device.CreateBindingTable(struct), lambda: table.Reset(struct)]
        feature = isinstance(struct, dml.DML_FEATURE_QUERY_FEATURE_LEVELS)
        return [lambda: device.CheckFeatureSupport(dml.DML_FEATURE(int(feature)), struct)]


def refusal(call: Callable[[], Any]) -> DmlGpuError | None:
    """Return the error of this package that a call ends with; any other goes on to the test."""
    try:
        call()
    except DmlGpuError as error:
        return error
    return None


@pytest.mark.parametrize("index", range(12), ids=[type(struct).__name__ for struct in structs()])
def test_every_field(gpu: Any, device: dmlgpu.Device, index: int) -> None:
    """Refused when the struct is made, by an error that names the field, or when it is used; or taken."""
    uses = Uses(gpu)
    valid = structs(uses.buffer, uses.compiled)[index]
    for field in dataclasses.fields(valid):
        refused = 0
        for name, make in VALUES.items():
            made: list[Any] = []
            change = {field.name: make(device)}
            error = refusal(lambda made=made, change=change: made.append(dataclasses.replace(valid, **change)))
            if error is not None:
                assert isinstance(error, (ArrayTypeError, DirectMLError)), (field.name, name)
                assert re.match(rf"{type(valid).__name__}: {field.name}\b", str(error)), (field.name, name, str(error))
            errors = [error] if error is not None else [refusal(use) for use in uses.all(made[0])]
            assert all(len(str(one)) < 1000 for one in errors), (field.name, name)
            refused += any(errors)
        assert (refused > 0) == (field.name not in ("CPUDescriptorHandle", "GPUDescriptorHandle")), field.name


# Calls


CALLS: dict[str, Callable[[Uses], tuple[Callable[..., Any], list[Any]]]] = {
    "DMLCalcBufferTensorSize": lambda u: (dml.DMLCalcBufferTensorSize, [F32, 2, (2, 3), (3, 1)]),
    "DMLCreateDevice": lambda u: (dml.DMLCreateDevice, [u.session.gpu, 0]),
    "DMLCreateDevice1": lambda u: (dml.DMLCreateDevice1, [u.session.gpu, 0, dml.DML_FEATURE_LEVEL_2_0]),
    "execute": lambda u: (dml.execute, [SUM(T, T, 3), np.zeros((1, 1, 2, 3), np.float32)]),
    "IDMLObject.SetName": lambda u: (u.compiled.SetName, ["name"]),
    "IDMLDevice.CheckFeatureSupport": lambda u: (
        u.session.device.CheckFeatureSupport,
        [dml.DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT, dml.DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT(F32)],
    ),
    "IDMLDevice.CreateOperator": lambda u: (u.session.device.CreateOperator, [SUM(T, T, 3)]),
    "IDMLDevice.CompileOperator": lambda u: (
        u.session.device.CompileOperator,
        [u.session.device.CreateOperator(SUM(T, T, 3)), 0],
    ),
    "IDMLDevice.CreateOperatorInitializer": lambda u: (
        u.session.device.CreateOperatorInitializer,
        [1, [u.compiled]],
    ),
    "IDMLDevice.CreateBindingTable": lambda u: (
        u.session.device.CreateBindingTable,
        [dml.DML_BINDING_TABLE_DESC(u.compiled)],
    ),
    "IDMLOperatorInitializer.Reset": lambda u: (
        u.session.device.CreateOperatorInitializer().Reset,
        [1, [u.compiled]],
    ),
    "IDMLBindingTable.Reset": lambda u: (
        u.session.device.CreateBindingTable().Reset,
        [dml.DML_BINDING_TABLE_DESC(u.compiled)],
    ),
    "IDMLBindingTable.BindInputs": lambda u: (u.session.table(u.compiled).BindInputs, [1, [buffer_binding(u.buffer)]]),
    "IDMLBindingTable.BindOutputs": lambda u: (
        u.session.table(u.compiled).BindOutputs,
        [1, [buffer_binding(u.buffer)]],
    ),
    "IDMLBindingTable.BindTemporaryResource": lambda u: (u.session.table(u.compiled).BindTemporaryResource, [NONE]),
    "IDMLBindingTable.BindPersistentResource": lambda u: (u.session.table(u.compiled).BindPersistentResource, [NONE]),
    "IDMLCommandRecorder.RecordDispatch": lambda u: (
        u.session.recorder.RecordDispatch,
        [u.session.gpu.create_command_encoder(), *recordable(u)],
    ),
}


def recordable(uses: Uses) -> list[Any]:
    initializer = uses.session.device.CreateOperatorInitializer(1, [uses.compiled])
    return [initializer, uses.session.table(initializer)]


def parameters(call: Any) -> list[str]:
    return [name for name in inspect.signature(call).parameters if name != "self"]


def test_every_call_with_arguments_is_here() -> None:
    functions = {name: getattr(dml, name) for name in dml.__all__ if inspect.isfunction(getattr(dml, name))}
    methods = {
        f"{name}.{method}": call
        for name in dml.__all__
        if name.startswith("IDML")
        for method, call in vars(getattr(dml, name)).items()
        if not method.startswith("_") and inspect.isfunction(call)
    }
    assert set(CALLS) == {name for name, call in (functions | methods).items() if parameters(call)}


@pytest.mark.parametrize("name", CALLS)
def test_every_argument(gpu: Any, device: dmlgpu.Device, name: str) -> None:
    """Taken, or refused by an error of this package; and the right arguments are taken before and after."""
    uses = Uses(gpu)
    call, right = CALLS[name](uses)
    call(*right)
    for parameter in parameters(call):
        if parameter == "device":
            continue  # tests/test_arguments.py has what device= takes
        refused = 0
        for odd, make in VALUES.items():
            call, right = CALLS[name](uses)
            arguments = dict(zip(parameters(call), right, strict=False)) | {parameter: make(device)}
            error = refusal(lambda call=call, arguments=arguments: call(**arguments))
            assert error is None or len(str(error)) < 1000, (parameter, odd)
            refused += error is not None
        assert refused, parameter
    call, right = CALLS[name](uses)
    call(*right)
    assert uses.session.device.GetDeviceRemovedReason() == dml.S_OK


def test_flags_are_booleans() -> None:
    """What DirectML's BOOL holds: True, False, 1 and 0. ONNX Runtime gives it an integer attribute."""
    for value, meant in ((True, True), (np.False_, False), (1, True), (np.int64(0), False)):
        for struct in (SUM(T, T, 3, 0, value), PRODUCT(T, T, 3, 0, value)):
            assert (struct.HasExclusiveSum if isinstance(struct, SUM) else struct.HasExclusiveProduct) is meant
    for value in (2, -1, 10**5000):
        with pytest.raises(DirectMLError, match=r"HasExclusiveSum is .*; it holds True \(1\) or False \(0\)") as caught:
            SUM(T, T, 3, 0, value)
        assert caught.value.hresult == dml.E_INVALIDARG
    for odd in (None, 1.0, "1", "", [], dml.DML_AXIS_DIRECTION_DECREASING):
        with pytest.raises(ArrayTypeError, match=r"HasExclusiveProduct is .*; give it True or False"):
            PRODUCT(T, T, 3, 0, odd)  # type: ignore[arg-type]


def test_numbers_are_kept_as_plain_ints() -> None:
    class Lying(int):
        def __index__(self) -> int:
            return 1

    desc = SUM(dataclasses.replace(T, GuaranteedBaseOffsetAlignment=np.uint16(16)), T, Lying(3))
    assert type(desc.Axis) is int
    assert desc.Axis == 3
    assert desc.InputTensor is not None
    assert desc.InputTensor.Desc is not None
    assert type(desc.InputTensor.Desc.GuaranteedBaseOffsetAlignment) is int
