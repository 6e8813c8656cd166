"""DirectML's objects from device to dispatch: what each does when all is well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dmlgpu
from dmlgpu import directml as dml
from dmlgpu import reference
from dmlgpu.directml.rules import DIRECTML, EXTENSIONS
from dmlgpu.errors import DirectMLError

from .directml_descriptions import PRODUCT, ROUND, SUM
from .directml_session import NONE, STORAGE, Place, Session, array_binding, buffer_binding

F32 = dml.DML_TENSOR_DATA_TYPE_FLOAT32
LEVELS = list(dml.DML_FEATURE_LEVEL)


@pytest.fixture(scope="module")
def gpu(device: dmlgpu.Device) -> Iterator[Any]:
    made = device.description.adapter.request_device_sync()
    yield made
    made.destroy()


@pytest.fixture(scope="module")
def session(gpu: Any) -> Session:
    return Session(gpu)


def tensor(*sizes: int, **fields: Any) -> dml.DML_BUFFER_TENSOR_DESC:
    return dml.DML_BUFFER_TENSOR_DESC(fields.pop("DataType", F32), Sizes=sizes, **fields)


def floats(session: Session, buffer: Any) -> list[float]:
    return session.read(buffer).view(np.float32).tolist()


def upload(session: Session, x: Any) -> Any:
    return session.buffer(np.asarray(x, np.float32).view(np.uint8))


def executable(session: Session, struct: Any, source: Any, target: Any) -> tuple[Any, Any]:
    """An initialized operator that needs no scratch, and its table."""
    compiled = session.compile(struct)
    initializer = session.device.CreateOperatorInitializer(1, compiled)
    session.submit((initializer, session.table(initializer)))
    table = session.table(compiled)
    table.BindInputs(1, [buffer_binding(source)])
    table.BindOutputs(1, [buffer_binding(target)])
    return compiled, table


# Devices and features


def test_the_minimum_feature_level_is_a_check_and_no_cap(gpu: Any) -> None:
    for level in LEVELS:
        device = dml.DMLCreateDevice1(gpu, dml.DML_CREATE_DEVICE_FLAG_NONE, level)
        t = tensor(3, DataType=dml.DML_TENSOR_DATA_TYPE_INT64)
        assert isinstance(device.CreateOperator(SUM(t, t, 0)), dml.IDMLOperator)
        query = dml.DML_FEATURE_QUERY_FEATURE_LEVELS(len(LEVELS), LEVELS)
        answer = device.CheckFeatureSupport(dml.DML_FEATURE_FEATURE_LEVELS, query)
        assert answer.MaxSupportedFeatureLevel == dml.DML_FEATURE_LEVEL_6_4


@pytest.mark.parametrize("cap", LEVELS, ids=lambda level: level.name[18:])
@pytest.mark.parametrize("extensions", [False, True])
def test_a_cap_answers_by_that_levels_table(gpu: Any, cap: dml.DML_FEATURE_LEVEL, extensions: bool) -> None:
    """Every operator, type and dimension count, against the rows of the published tables."""
    device = dml.DMLCreateDevice1(gpu, 0, cap, feature_level_cap=cap, extensions=extensions)
    structs = {"SUMMATION": SUM, "PRODUCT": PRODUCT, "ROUND": ROUND}
    supported: set[int] = set()
    for kind, entries in DIRECTML.items():
        struct = next(structs[name] for name in structs if name in kind.name)
        exists = cap >= min(entry.level for entry in entries)
        rows = [*entries, *(EXTENSIONS[kind] if extensions else ())]
        for data_type in list(dml.DML_TENSOR_DATA_TYPE)[1:12]:
            for count in range(1, 9):
                t = tensor(*(1,) * count, DataType=data_type)
                desc = struct(t, t) if struct is ROUND else struct(t, t, 0)
                expected = exists and any(
                    row.level <= cap and data_type in row.types and count in row.dimension_counts for row in rows
                )
                if expected:
                    device.CreateOperator(desc)
                    supported.add(data_type)
                else:
                    with pytest.raises(DirectMLError) as caught:
                        device.CreateOperator(desc)
                    assert caught.value.hresult == dml.E_INVALIDARG
    for data_type in dml.DML_TENSOR_DATA_TYPE:
        query = dml.DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT(data_type)
        answer = device.CheckFeatureSupport(dml.DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT, query)
        assert answer.IsSupported == (data_type in supported)
    query = dml.DML_FEATURE_QUERY_FEATURE_LEVELS(RequestedFeatureLevels=[0x7000, *LEVELS])
    assert device.CheckFeatureSupport(dml.DML_FEATURE_FEATURE_LEVELS, query).MaxSupportedFeatureLevel == cap


def test_devices_of_the_array_face(device: dmlgpu.Device, gpu: Any) -> None:
    assert dml.DMLCreateDevice().GetParentDevice() is dmlgpu.default_device().gpu_device
    assert dml.DMLCreateDevice(device).GetParentDevice() is device.gpu_device
    assert dml.DMLCreateDevice(gpu).GetParentDevice() is gpu


def test_objects_know_their_device_and_take_names(session: Session) -> None:
    operator = session.device.CreateOperator(SUM(tensor(3), tensor(3), 0))
    compiled = session.device.CompileOperator(operator)
    children = [
        operator,
        compiled,
        session.device.CreateOperatorInitializer(),
        session.device.CreateCommandRecorder(),
        session.device.CreateBindingTable(),
    ]
    for child in [*children, session.device]:
        assert isinstance(child, dml.IDMLObject)
        child.SetName("seven")
        assert "'seven'" in repr(child)
        child.SetName(None)
        assert child.Name is None
    for child in children:
        assert child.GetDevice() is session.device
        assert isinstance(child, dml.IDMLDeviceChild)


@pytest.mark.parametrize("flags", range(8))
def test_execution_flags_change_no_result(session: Session, flags: int) -> None:
    source, target = upload(session, [1, 2, 3]), upload(session, [0, 0, 0])
    compiled = session.compile(SUM(tensor(3), tensor(3), 0), flags)
    initializer = session.device.CreateOperatorInitializer(1, [compiled])
    table = session.table(compiled)
    table.BindInputs(1, buffer_binding(source))
    table.BindOutputs(1, buffer_binding(target))
    session.submit((initializer, session.table(initializer)), (compiled, table))
    assert floats(session, target) == [1, 3, 6]
    # ALLOW_HALF_PRECISION_COMPUTATION would allow 2048 at the end.
    half = tensor(3, DataType=dml.DML_TENSOR_DATA_TYPE_FLOAT16)
    compiled = session.compile(SUM(half, half, 0), flags)
    initializer = session.device.CreateOperatorInitializer(1, [compiled])
    table = session.table(compiled)
    source = session.buffer(np.array([2048, 1, 1, 0], np.float16).view(np.uint8))
    table.BindInputs(1, buffer_binding(source))
    table.BindOutputs(1, buffer_binding(target))
    session.submit((initializer, session.table(initializer)), (compiled, table))
    assert session.read(target).view(np.float16)[:3].tolist() == [2048, 2048, 2050]


# Recording


class Counter:
    """Counts calls of a method of an object."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        self.count = 0
        real = getattr(owner, name)

        def counting(*arguments: Any, **options: Any) -> Any:
            self.count += 1
            return real(*arguments, **options)

        monkeypatch.setattr(owner, name, counting)


def test_recording_again_allocates_nothing_and_submits_nothing(
    session: Session, gpu: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 9001
    source, target = upload(session, np.ones(size)), upload(session, np.zeros(size))
    compiled, table = executable(session, SUM(tensor(size), tensor(size), 0), source, target)
    scratch = gpu.create_buffer(size=compiled.GetBindingProperties().TemporaryResourceSize, usage=STORAGE)
    table.BindTemporaryResource(buffer_binding(scratch))
    session.recorder.RecordDispatch(gpu.create_command_encoder(), compiled, table)
    buffers = Counter(monkeypatch, gpu, "create_buffer")
    pipelines = Counter(monkeypatch, gpu, "create_compute_pipeline")
    writes = Counter(monkeypatch, gpu.queue, "write_buffer")
    submissions = Counter(monkeypatch, gpu.queue, "submit")
    command_buffers = []
    for _ in range(3):
        encoder = gpu.create_command_encoder()
        session.recorder.RecordDispatch(encoder, compiled, table)
        session.recorder.RecordDispatch(encoder, compiled, table)
        command_buffers.append(encoder.finish())
    assert (buffers.count, pipelines.count, writes.count, submissions.count) == (0, 0, 0, 0)
    gpu.queue.submit(command_buffers)
    assert floats(session, target) == list(range(1, size + 1))


def test_one_table_rebound_between_records_of_one_encoder(session: Session, gpu: Any) -> None:
    """Ping-pong: what is recorded keeps the bindings of its moment, uniforms too."""
    x = np.arange(1, 6, dtype=np.float32)
    memory = upload(session, np.concatenate([x, np.zeros(59, np.float32)]))
    compiled = session.compile(SUM(tensor(5), tensor(5), 0))
    initializer = session.device.CreateOperatorInitializer(1, [compiled])
    session.submit((initializer, session.table(initializer)))
    table = session.table(compiled)
    encoder = gpu.create_command_encoder()
    for i in range(6):
        table.BindInputs(1, buffer_binding(memory, 32 * i, 20))
        table.BindOutputs(1, buffer_binding(memory, 32 * (i + 1), 20))
        session.recorder.RecordDispatch(encoder, compiled, table)
        x = reference.cumulative(x, "sum", axis=0)
    table.Reset()
    gpu.queue.submit([encoder.finish()])
    assert floats(session, memory)[48:53] == x.tolist()


@pytest.mark.parametrize("flags", range(8))
def test_only_late_binding_is_refused(session: Session, gpu: Any, flags: int) -> None:
    """With DESCRIPTORS_VOLATILE, and only then, a recorded table takes no binding before a Reset."""
    volatile = bool(flags & dml.DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE)
    a, b, c = upload(session, [1, 2, 3]), upload(session, [0, 0, 0]), upload(session, [5, 6, 7])
    compiled = session.compile(SUM(tensor(3), tensor(3), 0), flags)
    initializer = session.device.CreateOperatorInitializer(1, [compiled])
    first = session.table(initializer)
    session.submit((initializer, first))
    first.BindInputs(1, NONE)  # the flag is the operator's, not its initializer's
    table, other = session.table(compiled), session.table(compiled)
    table.BindInputs(1, buffer_binding(c))
    table.BindInputs(1, buffer_binding(a))  # until something is recorded, bindings may change
    with pytest.raises(DirectMLError, match="has no outputs bound"):
        session.submit((compiled, table))
    table.BindOutputs(1, buffer_binding(c))  # nothing was recorded by the call that failed
    table.BindOutputs(1, buffer_binding(b))
    encoder = gpu.create_command_encoder()
    session.recorder.RecordDispatch(encoder, compiled, table)
    session.recorder.RecordDispatch(encoder, compiled, table)  # the same bindings, again
    for bind in (
        lambda: table.BindInputs(1, buffer_binding(c)),
        lambda: table.BindInputs(0, None),
        lambda: table.BindOutputs(1, buffer_binding(c)),
        lambda: table.BindTemporaryResource(None),
        lambda: table.BindPersistentResource(NONE),
    ):
        if volatile:
            with pytest.raises(DirectMLError, match="WebGPU freezes bindings in RecordDispatch") as caught:
                bind()
            assert caught.value.hresult == dml.DXGI_ERROR_INVALID_CALL
        else:
            bind()
    other.BindInputs(1, buffer_binding(c))  # each table by itself
    table.Reset(dml.DML_BINDING_TABLE_DESC(compiled))
    table.BindInputs(1, buffer_binding(c))
    table.BindOutputs(1, buffer_binding(a))
    session.recorder.RecordDispatch(encoder, compiled, table)
    gpu.queue.submit([encoder.finish()])
    assert [floats(session, buffer) for buffer in (a, b, c)] == [[5, 11, 18], [1, 3, 6], [5, 6, 7]]


STEPS = st.one_of(
    st.tuples(st.sampled_from(["input", "output"]), st.integers(0, 2)),
    st.tuples(st.sampled_from(["input", "output"]), st.none()),
    st.sampled_from([("reset", None), ("record", None), ("record", None)]),
)


@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
@given(volatile=st.booleans(), steps=st.lists(STEPS, max_size=12))
def test_any_order_of_binding_and_recording(
    session: Session, gpu: Any, volatile: bool, steps: list[tuple[str, int | None]]
) -> None:
    """Against a model: what is recorded keeps its bindings; only DESCRIPTORS_VOLATILE forbids others before a Reset."""
    int32 = tensor(4, DataType=dml.DML_TENSOR_DATA_TYPE_INT32)
    compiled = session.compile(SUM(int32, int32, 0), 4 if volatile else 0)
    initializer = initializer_of(session, compiled)
    session.submit((initializer, session.table(initializer)))
    contents = [np.arange(1, 5, dtype=np.int32) * 10**i for i in range(3)]
    buffers = [session.buffer(values.view(np.uint8)) for values in contents]
    table, encoder = session.table(compiled), gpu.create_command_encoder()
    bound: dict[str, int | None] = {"input": None, "output": None}
    recorded = False
    for step, which in steps:
        expected = None
        if step == "reset":
            table.Reset(dml.DML_BINDING_TABLE_DESC(compiled))
            bound, recorded = {"input": None, "output": None}, False
            continue
        if step == "record":
            source, target = bound["input"], bound["output"]
            if source is None or target is None:
                expected = dml.E_INVALIDARG
            else:
                contents[target] = np.cumsum(contents[source], dtype=np.int32)
                recorded = True
            call = lambda: session.recorder.RecordDispatch(encoder, compiled, table)  # noqa: E731
        else:
            method = table.BindInputs if step == "input" else table.BindOutputs
            call = lambda: method(*((0, None) if which is None else (1, buffer_binding(buffers[which]))))  # noqa: B023, E731
            if volatile and recorded:
                expected = dml.DXGI_ERROR_INVALID_CALL
            else:
                bound[step] = which
        if expected is None:
            call()
        else:
            with pytest.raises(DirectMLError) as caught:
                call()
            assert caught.value.hresult == expected
    gpu.queue.submit([encoder.finish()])
    for buffer, values in zip(buffers, contents, strict=True):
        assert session.read(buffer).view(np.int32).tolist() == values.tolist()


def test_a_probe_for_all_types_needs_the_extensions(gpu: Any) -> None:
    """TensorFlow's plugin takes no device without these eight; ONNX Runtime makes a mask of all, UNKNOWN included."""
    types = dml.DML_TENSOR_DATA_TYPE
    names = ["FLOAT32", "FLOAT16", "UINT32", "UINT16", "UINT8", "INT32", "INT16", "INT8"]

    def supported(device: dml.IDMLDevice) -> list[str]:
        return [
            kind.name.removeprefix("DML_TENSOR_DATA_TYPE_")
            for kind in types
            if device.CheckFeatureSupport(
                dml.DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT, dml.DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT(kind)
            ).IsSupported
        ]

    plain, extended = supported(dml.DMLCreateDevice(gpu)), supported(dml.DMLCreateDevice(gpu, extensions=True))
    assert set(names) - set(plain) == {"UINT8", "INT16", "INT8"}
    assert set(names) <= set(extended)
    assert set(extended) == {kind.name.removeprefix("DML_TENSOR_DATA_TYPE_") for kind in types} - {
        "UNKNOWN",
        "UINT4",
        "INT4",
    }


def test_a_dropped_table_and_its_buffers_are_kept_by_what_was_recorded(session: Session, gpu: Any) -> None:
    source, target = upload(session, [1, 2, 3]), upload(session, [0, 0, 0])
    compiled, table = executable(session, SUM(tensor(3), tensor(3), 0), source, target)
    encoder = gpu.create_command_encoder()
    session.recorder.RecordDispatch(encoder, compiled, table)
    del compiled, table, source
    gpu.queue.submit([encoder.finish()])
    assert floats(session, target) == [1, 3, 6]


def test_dispatches_of_different_operators_in_one_submission(session: Session) -> None:
    x = np.array([0.5, 1.5, 2.5, 3.5], np.float32)
    a, b = upload(session, x), upload(session, np.zeros(4))
    steps = [
        executable(session, ROUND(tensor(4), tensor(4), 2), a, b),
        executable(session, SUM(tensor(4), tensor(4), 0), b, a),
        executable(session, PRODUCT(tensor(4), tensor(4), 0, 1, True), a, b),
    ]
    session.submit(*steps)
    assert floats(session, a) == [1, 3, 6, 10]
    assert floats(session, b) == [180, 60, 10, 1]


def test_what_is_not_needed_may_be_bound(session: Session, gpu: Any) -> None:
    """Ported programs bind the larger of two temporary resources to both dispatchables."""
    source, target = upload(session, [1, 2, 3]), upload(session, [0, 0, 0])
    compiled, table = executable(session, SUM(tensor(3), tensor(3), 0), source, target)
    spare = gpu.create_buffer(size=512, usage=STORAGE)
    table.BindTemporaryResource(buffer_binding(spare))
    table.BindPersistentResource(buffer_binding(spare))
    with pytest.raises(DirectMLError, match="temporary resource"):
        session.submit((compiled, table))
    table.BindPersistentResource(NONE)
    session.submit((compiled, table))
    table.BindTemporaryResource(None)
    session.submit((compiled, table))
    assert floats(session, target) == [1, 3, 6]


NULL = dml.DML_BINDING_DESC(dml.DML_BINDING_TYPE_BUFFER, dml.DML_BUFFER_BINDING(None, 0, 0))


def test_a_null_buffer_says_no_binding(session: Session, gpu: Any) -> None:
    """Where nothing is needed, a binding of a null buffer is as good as none."""
    source, target = upload(session, [1, 2, 3]), upload(session, [0, 0, 0])
    compiled, table = executable(session, SUM(tensor(3), tensor(3), 0), source, target)
    table.BindTemporaryResource(NULL)
    table.BindPersistentResource(NULL)
    session.submit((compiled, table))
    assert floats(session, target) == [1, 3, 6]
    owned = session.compile(SUM(tensor(3, Flags=dml.DML_TENSOR_FLAG_OWNED_BY_DML), tensor(3), 0))
    memory = gpu.create_buffer(size=256, usage=STORAGE)
    initializer = initializer_of(session, compiled, owned)
    first = session.table(initializer)
    first.BindInputs(2, [NONE, array_binding(dml.DML_BUFFER_BINDING(source))])
    first.BindOutputs(2, [NULL, buffer_binding(memory)])
    second = session.table(owned)
    second.BindInputs(1, NULL)
    second.BindOutputs(1, buffer_binding(target))
    second.BindPersistentResource(buffer_binding(memory))
    with pytest.raises(DirectMLError, match="has a binding with a null Buffer"):
        second.BindPersistentResource(NULL)
    with pytest.raises(
        DirectMLError, match="binding of Type DML_BINDING_TYPE_NONE while its Desc is a DML_BUFFER_BIND"
    ):
        second.BindInputs(1, dml.DML_BINDING_DESC(dml.DML_BINDING_TYPE_NONE, dml.DML_BUFFER_BINDING(source)))
    session.submit((initializer, first), (owned, second))
    assert floats(session, target) == [1, 3, 6]


def test_bindings_are_undone_by_a_count_of_0(session: Session) -> None:
    source, target = upload(session, [1, 2, 3]), upload(session, [0, 0, 0])
    compiled, table = executable(session, SUM(tensor(3), tensor(3), 0), source, target)
    for method, what in ((table.BindInputs, "inputs"), (table.BindOutputs, "outputs")):
        method(0, None)
        with pytest.raises(DirectMLError, match=f"has no {what} bound"):
            session.submit((compiled, table))
        method(1, buffer_binding(source if what == "inputs" else target))
    session.submit((compiled, table))
    assert floats(session, target) == [1, 3, 6]


def test_a_table_is_as_large_as_it_is_told(session: Session) -> None:
    compiled = session.compile(SUM(tensor(3), tensor(3), 0))
    table = session.device.CreateBindingTable()
    for size in (None, 2, 1000):
        table.Reset(dml.DML_BINDING_TABLE_DESC(compiled, 0, 0, size))
        table.BindInputs(1, buffer_binding(upload(session, [1, 2, 3])))
    assert compiled.GetBindingProperties() == dml.DML_BINDING_PROPERTIES(2, 0, 0)


def initializer_of(session: Session, *operators: Any) -> Any:
    return session.device.CreateOperatorInitializer(len(operators), operators)


# Initialization


def test_without_the_debug_flag_nothing_asks_for_an_initialization(gpu: Any) -> None:
    plain = Session(gpu, dml.DML_CREATE_DEVICE_FLAG_NONE)
    source, target = upload(plain, [1, 2, 3]), upload(plain, [0, 0, 0])
    compiled = plain.compile(SUM(tensor(3), tensor(3), 0))
    table = plain.table(compiled)
    table.BindInputs(1, buffer_binding(source))
    table.BindOutputs(1, buffer_binding(target))
    plain.submit((compiled, table))
    assert floats(plain, target) == [1, 3, 6]


def test_an_initializer_without_operators_records_nothing(session: Session) -> None:
    initializer = session.device.CreateOperatorInitializer()
    table = session.table(initializer)
    session.submit((initializer, table))
    properties = initializer.GetBindingProperties()
    assert properties == dml.DML_BINDING_PROPERTIES(0, 0, 0)


def test_owned_inputs_outlive_their_source(session: Session, gpu: Any) -> None:
    """Several operators in one initializer, one without anything to own; two persistent resources in one buffer."""
    owned = dml.DML_TENSOR_FLAG_OWNED_BY_DML
    structs = [
        SUM(tensor(3, Flags=owned), tensor(3), 0),
        SUM(tensor(3), tensor(3), 0),
        PRODUCT(tensor(3, Flags=owned), tensor(3), 0),
    ]
    operators = [session.compile(struct) for struct in structs]
    assert [one.GetBindingProperties().PersistentResourceSize for one in operators] == [256, 0, 256]
    initializer = session.device.CreateOperatorInitializer()
    initializer.Reset(3, operators)
    assert initializer.GetBindingProperties().RequiredDescriptorCount == 4
    sources = [upload(session, [1, 2, 3]), upload(session, [2, 3, 4])]
    memory = gpu.create_buffer(size=512, usage=STORAGE)
    table = session.table(initializer)
    table.BindInputs(
        3,
        [
            array_binding(dml.DML_BUFFER_BINDING(sources[0], 0, 12)),
            array_binding(dml.DML_BUFFER_BINDING(None, 0, 0)),
            array_binding(dml.DML_BUFFER_BINDING(sources[1], 0, 12)),
        ],
    )
    table.BindOutputs(3, [buffer_binding(memory, 0, 256), NONE, buffer_binding(memory, 256, 256)])
    session.submit((initializer, table))
    gpu.queue.write_buffer(sources[0], 0, np.zeros(3, np.float32))
    sources[1].destroy()
    for operator, offset, expected in ((operators[0], 0, [1, 3, 6]), (operators[2], 256, [2, 6, 24])):
        target = upload(session, [0, 0, 0])
        table = session.table(operator)
        table.BindOutputs(1, buffer_binding(target))
        table.BindPersistentResource(buffer_binding(memory, offset, 256))
        for _ in range(2):  # the persistent resource is not used up
            session.submit((operator, table))
            assert floats(session, target) == expected


def test_an_initializer_with_nothing_to_own_needs_no_bindings(session: Session) -> None:
    compiled = session.compile(SUM(tensor(3), tensor(3), 0))
    initializer = initializer_of(session, compiled, compiled)
    table = session.table(initializer)
    session.submit((initializer, table))
    table.BindInputs(2, [NONE, array_binding()])
    table.BindOutputs(2, [NONE, NONE])
    table.BindTemporaryResource(None)
    table.BindPersistentResource(NONE)
    session.submit((initializer, table))
    assert initializer.GetBindingProperties() == dml.DML_BINDING_PROPERTIES(0, 0, 0)


@pytest.mark.parametrize("flags", [dml.DML_CREATE_DEVICE_FLAG_NONE, dml.DML_CREATE_DEVICE_FLAG_DEBUG])
def test_an_initialization_that_is_recorded_often_takes_no_memory(gpu: Any, flags: int) -> None:
    session = Session(gpu, flags)
    compiled = session.compile(SUM(tensor(3, Flags=dml.DML_TENSOR_FLAG_OWNED_BY_DML), tensor(3), 0))
    initializer, memory = initializer_of(session, compiled), gpu.create_buffer(size=512, usage=STORAGE)
    for offset in (0, 256, 0):
        table = session.table(initializer)
        table.BindInputs(1, array_binding(dml.DML_BUFFER_BINDING(upload(session, [1, 2, 3]), 0, 12)))
        table.BindOutputs(1, buffer_binding(memory, offset, 256))
        for _ in range(20):
            session.submit((initializer, table))
    assert len(compiled._filled) <= 2  # places


def test_initialization_and_execution_in_one_encoder(session: Session) -> None:
    source = tensor(5, Flags=dml.DML_TENSOR_FLAG_OWNED_BY_DML)
    x = np.arange(5, dtype=np.float32)
    places = {"source": Place(0, 16, 20), "persistent": Place(1, 0, 256), "output": Place(1, 256, 20)}
    session.check(SUM(source, tensor(5), 0, 1), x, places, [64, 280])
    assert session.device.GetDeviceRemovedReason() == dml.S_OK


@pytest.mark.parametrize("shape", [(70, 5000), (2, 9000), (5000, 3), (300, 40)])
def test_the_temporary_resource_suffices_for_two_buffers_and_in_place(session: Session, shape: tuple[int, int]) -> None:
    """In place another kernel may run, which needs other scratch memory."""
    described = tensor(*shape)
    struct = SUM(described, described, 1 if shape[0] < 1000 else 0)
    needed = session.compile(struct).GetBindingProperties().TemporaryResourceSize
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x[-1, -1] = np.inf
    sizes = [x.nbytes, x.nbytes, max(16, needed)]
    places = {"input": Place(0, 0, x.nbytes), "output": Place(1, 0, x.nbytes)}
    if needed:
        places["temporary"] = Place(2, 0, needed)
    session.check(struct, x, places, sizes)
    session.check(struct, x, places | {"output": Place(0, 0, x.nbytes)}, sizes)
