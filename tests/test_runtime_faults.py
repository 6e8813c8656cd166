"""Every call survives a fault at every point: Ctrl-C at each line, and an error at each call into wgpu-native.

In the manner of SQLite's tests: a call is repeated with the fault at its first point, at its second, and so on until it
ends before the fault comes. After each, the same is asserted: the error is the right one, no lock is held, nothing is
mapped or recorded, what was read is as it was, and the same call right after it is right. After all of them wgpu has as
many objects as before and the pools hold as much.

The suite takes a sample of the points, ``make test-faults`` takes all. With ``DMLGPU_TEST_FAULTS=instructions`` Ctrl-C
comes at each instruction of Python instead of each line, which takes hours.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import wgpu

import dmlgpu
from dmlgpu import directml as dml
from dmlgpu import lazy, sections
from dmlgpu.errors import DeviceLostError, DmlGpuError
from dmlgpu.runtime import device as device_module
from dmlgpu.runtime import foreign, memory, transfers, wgpu_private
from dmlgpu.runtime.device import Device

from .directml_session import Session, buffer_binding
from .test_memory import state
from .test_sections import free

EVERY_INSTRUCTION = os.environ.get("DMLGPU_TEST_FAULTS") == "instructions"
EVERY_POINT = EVERY_INSTRUCTION or os.environ.get("DMLGPU_TEST_FAULTS") == "all"

X = np.arange(-40, 40, dtype=np.float32).reshape(8, 10)
LARGE = np.arange(3000, dtype=np.float32) % 17
BLOCKS = np.arange(18_000, dtype=np.float32).reshape(2, 9000) % 17
"""So large that it is on the device a block after the other, and each in pieces."""
OURS = str(Path(dmlgpu.__file__).parent) + os.sep
WGPU = str(Path(wgpu.__file__).parent) + os.sep

Record = Callable[[str, object], None]
"""pytest's ``record_property``, with which ``--junitxml=FILE -o junit_family=xunit1`` shows the number of faults."""


class World:
    """A device with arrays that calls read and write, and the calls.

    Each call returns its result and what that should be.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.x = dmlgpu.asarray(X, device)
        self.out = dmlgpu.asarray(X, device)
        self.shared = dmlgpu.asarray(LARGE, device)
        self.piece = dmlgpu.asarray(LARGE, device)
        usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
        self.foreign = device.gpu_device.create_buffer_with_data(data=X, usage=usage)
        self.session = Session(device.gpu_device)
        tensor = dml.DML_BUFFER_TENSOR_DESC(dml.DML_TENSOR_DATA_TYPE_FLOAT32, Sizes=X.shape)
        self.desc = dml.DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(tensor, tensor, 1, 0, False)
        device.subnormals()  # which is measured once
        self.bound = [self.session.buffer(X.view(np.uint8).reshape(-1)) for _ in range(2)]

    def numpy_in(self) -> Any:
        return dmlgpu.cumulative_sum(X, axis=1, device=self.device), np.cumsum(X, axis=1)

    def converted(self) -> Any:
        x = X.astype(np.int16)
        result = dmlgpu.cumulative_sum(x[::-1], axis=0, include_initial=True, out=None, device=self.device)
        return result, np.cumsum(np.insert(x[::-1].astype(np.int64), 0, 0, axis=0), axis=0)

    def in_chunks(self) -> Any:
        out = np.empty((2, LARGE.size), np.float32)[1]
        return dmlgpu.cumulative_sum(LARGE, out=out, device=self.device), np.cumsum(LARGE)

    def in_blocks(self) -> Any:
        return dmlgpu.cumulative_sum(BLOCKS, axis=1, device=self.device), np.cumsum(BLOCKS, axis=1)

    def in_pieces(self) -> Any:
        scan = dmlgpu.Scan("sum", axis=0)
        settled = [scan.push(self.piece), scan.push(self.piece)]
        scan = dmlgpu.Scan.resume(scan.state, device=self.device)
        results = [part.numpy() for part in [*settled, scan.push(self.piece)]]
        return np.concatenate([*results, scan.finish()]), np.cumsum(np.tile(LARGE, 3))

    def rounded(self) -> Any:
        return dmlgpu.round(X / 4, device=self.device), np.round(X / 4)

    def there_and_back(self) -> Any:
        return dmlgpu.asarray(LARGE[::-1], self.device)[::-1].numpy(), LARGE

    def on_the_device(self) -> Any:
        with dmlgpu.cumulative_sum(self.x.T, axis=0) as sums:
            return sums.numpy(), np.cumsum(X.T, axis=0)

    def into_out(self) -> Any:
        dmlgpu.cumulative_sum(self.x, axis=1, out=self.out)
        return self.out.numpy(), np.cumsum(X, axis=1)

    def over_itself(self) -> Any:
        self.device.upload(self.shared._tensor.buffer, 0, LARGE)
        dmlgpu.cumulative_sum(self.shared[:-1], out=self.shared[1:])
        return self.shared.numpy(), np.concatenate([LARGE[:1], np.cumsum(LARGE[:-1])])

    def packed(self) -> Any:
        return self.x[::3, ::-1].astype("float64").copy().numpy(), X[::3, ::-1]

    def awaited(self) -> Any:
        return asyncio.run(self.x.numpy_async()), X

    def wrapped(self) -> Any:
        array = dmlgpu.from_wgpu(self.foreign, X.shape, "float32")
        return dmlgpu.cumulative_sum(array, axis=0).numpy(), np.cumsum(X, axis=0)

    def recorded(self) -> Any:
        array = dmlgpu.from_wgpu(self.foreign, X.shape, "float32")
        encoder = self.device.gpu_device.create_command_encoder()
        sums = dmlgpu.cumulative_sum(array, axis=1, encoder=encoder)
        with self.device.section:  # what follows is the caller's and not under test
            self.device.gpu_device.queue.submit([encoder.finish()])
        return sums.numpy(), np.cumsum(X, axis=1)

    def directml_execute(self) -> Any:
        return dml.execute(self.desc, X, device=self.device), np.cumsum(X, axis=1)

    def directml_life_cycle(self) -> Any:
        compiled = self.session.compile(self.desc)
        initializer = self.session.device.CreateOperatorInitializer(1, [compiled])
        first, table = self.session.table(initializer), self.session.table(compiled)
        source, target = self.bound
        table.BindInputs(1, buffer_binding(source))
        table.BindOutputs(1, buffer_binding(target))
        self.session.submit((initializer, first), (compiled, table))
        with self.device.section:  # what follows is the caller's and not under test
            result = self.session.read(target).view(np.float32).reshape(X.shape).copy()
        return result, np.cumsum(X, axis=1)


CALLS = [name for name, value in vars(World).items() if not name.startswith("_") and callable(value)]


def test_the_page_counts_the_kinds_of_call() -> None:
    page = Path(__file__).parents[1] / "docs" / "reliability.md"
    assert f"| {len(CALLS)} kinds of call (" in page.read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "CHUNK", 4096)
    monkeypatch.setattr(transfers, "_SMALL", 1024)
    monkeypatch.setattr(Device, "block_bytes", 16_384)


def open_device(device: Device, kind: str) -> Device:
    """Return a device of our own: with memory that the host reaches where there is any, or without."""
    if kind == "own":
        return Device(device.description)
    return Device.wrap(device.description.adapter.request_device_sync())


@pytest.fixture(scope="module", params=["own", "staged"])
def world(request: pytest.FixtureRequest, device: Device) -> Iterator[World]:
    used = open_device(device, request.param)
    yield World(used)
    used.release()
    if not used.owned:
        used.gpu_device.destroy()


def right(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(found, expected)


def check_whole(world: World) -> None:
    """Assert that nothing is held, mapped or left over."""
    assert sections._depth == 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    device = world.device
    for section in (
        device.section,
        device_module._setting_up,
        wgpu_private._enumerating,
        lazy._importing,
    ):
        assert free(section)
    assert device._executor._recording is None
    assert not device._executor.is_recording
    assert not device._executor._batching
    pools = (device._memory.arrays, device._memory.temporaries, device._memory.upload, device._memory.readback)
    for pool in pools:
        assert all(gpu_buffer.map_state == "unmapped" for gpu_buffer in pool._idle)
    for array in (world.x, world.out, world.shared):
        assert not array.released
        assert array._tensor.buffer.gpu_buffer.map_state == "unmapped"


def settle(world: World, call: Callable[[], Any]) -> dict[str, int]:
    """Return what wgpu and the pools hold after a call that began with empty pools."""
    world.device._memory.trim()
    for _ in range(3):
        right(*call())
    # wgpu-native keeps every command buffer that is dropped before it is submitted.
    return {name: n for name, n in state(world.device).items() if name not in ("native CommandBuffer", "native total")}


def from_dmlgpu(frame: FrameType | None) -> bool:
    """Whether code of this package is on the stack."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(OURS):
            return True
        frame = frame.f_back
    return False


def asking(frame: FrameType | None) -> str:
    """Return which module of this package is nearest on the stack."""
    while frame is not None and not frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back
    return "" if frame is None else str(frame.f_globals["__name__"])


class Points:
    """Counts points and lets the fault come at one of them."""

    def __init__(self, wanted: int, fault: Callable[[], None]) -> None:
        self.wanted = wanted
        self.fault = fault
        self.count = 0
        self.what = ""

    @property
    def reached(self) -> bool:
        return self.count >= self.wanted

    def at(self, what: str) -> None:
        self.count += 1
        if self.count == self.wanted:
            self.what = what
            self.fault()


@contextmanager
def at_lines(points: Points) -> Iterator[None]:
    """Make each line of this package, and of wgpu-py when called by it, a point; or each instruction."""

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        if points.reached:
            return None
        name = frame.f_code.co_filename
        if event == "call":
            ours = name.startswith(OURS)
            if not ours and not (name.startswith(WGPU) and from_dmlgpu(frame)):
                return None
            frame.f_trace_opcodes = ours and EVERY_INSTRUCTION
            frame.f_trace_lines = not frame.f_trace_opcodes
        elif event in ("line", "opcode"):
            points.at(f"{name}:{frame.f_lineno}")
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)


@contextmanager
def at_native_calls(points: Points, *, after: bool = False) -> Iterator[None]:
    """Make each call into wgpu-native on behalf of this package a point, just before it or just after."""
    from wgpu.backends.wgpu_native._api import libf

    thread = threading.get_ident()

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            counts = threading.get_ident() == thread and from_dmlgpu(sys._getframe(1))
            what = f"{name} for {asking(sys._getframe(1))}" if counts else ""
            if counts and not after:
                points.at(what)
            result = function(*args)
            if counts and after:
                points.at(what)
            return result

        return call

    real = {name: value for name, value in vars(libf).items() if name.startswith("wgpu")}
    for name, value in real.items():
        setattr(libf, name, counted(name, value))
    try:
        yield
    finally:
        for name, value in real.items():
            setattr(libf, name, value)


_ALLOCATIONS = ("empty", "zeros", "full", "ascontiguousarray", "empty_like")


@contextmanager
def at_allocations(points: Points) -> Iterator[None]:
    """Make each of NumPy's arrays that this package makes a point."""

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def make(*args: Any, **options: Any) -> Any:
            if sys._getframe(1).f_code.co_filename.startswith(OURS):
                points.at(function.__name__)
            return function(*args, **options)

        return make

    with pytest.MonkeyPatch.context() as patch:
        for name in _ALLOCATIONS:
            patch.setattr(np, name, counted(getattr(np, name)))
        yield


def sweep(
    world: World,
    name: str,
    place: Callable[[Points], AbstractContextManager[None]],
    fault: Callable[[], None],
    errors: tuple[type[BaseException], ...],
    step: int,
    *,
    may_pass: Callable[[Points], bool] = lambda _: False,
) -> int:
    """Let a fault come at every point of a call, or every `step`-th; return how many came."""
    call = getattr(world, name)
    before = settle(world, call)
    faults, wanted = 0, 1
    while True:
        points = Points(wanted, fault)
        with ignored() as unraisable:
            try:
                with place(points):
                    right(*call())
                passed = True
            except errors:
                passed = False
        if not points.reached:
            assert passed
            break
        faults += 1
        assert not passed or unraisable or may_pass(points), f"the fault at {points.what} was lost"
        try:
            check_whole(world)
            right(*call())
            right(world.x.numpy(), X)
        except BaseException as error:
            error.add_note(f"after the fault at {points.what}, point {wanted}")
            raise
        wanted += step
    assert settle(world, call) == before
    return faults


@contextmanager
def ignored() -> Iterator[list[Any]]:
    """Collect the interrupts that Python swallows, those in finalizers."""
    found: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "unraisablehook", lambda args: found.append(repr(args.exc_value)))
        yield found
    assert all("KeyboardInterrupt" in error for error in found), found


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def invalid() -> None:
    raise wgpu.GPUValidationError("a fault of the test's")


def out_of_memory() -> None:
    raise wgpu.GPUOutOfMemoryError("a fault of the test's: no memory")


def no_memory() -> None:
    raise MemoryError("a fault of the test's")


@pytest.mark.combinations
@pytest.mark.parametrize("call", CALLS)
def test_ctrl_c_at_any_line(world: World, call: str, record_property: Record) -> None:
    # asyncio's handler cancels the task, which a task that awaits nothing any more does not notice
    faults = sweep(
        world,
        call,
        at_lines,
        interrupt,
        (KeyboardInterrupt,),
        1 if EVERY_POINT else 97,
        may_pass=lambda _: call == "awaited",
    )
    assert faults > 3
    record_property("faults", faults)


@pytest.mark.combinations
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("call", CALLS)
def test_ctrl_c_at_any_native_call(
    world: World, call: str, after: bool, record_property: Callable[[str, object], None]
) -> None:
    faults = sweep(
        world,
        call,
        lambda points: at_native_calls(points, after=after),
        interrupt,
        (KeyboardInterrupt,),
        1 if EVERY_POINT else 11,
        may_pass=lambda _: call == "awaited",
    )
    assert faults > 0
    record_property("faults", faults)


def absorbed(points: Points, fault: Callable[[], None]) -> bool:
    """Whether a call may be right although a call into wgpu-native failed."""
    name, _, module = points.what.partition(" for ")
    if module == foreign.__name__ or name == "wgpuDevicePoll":  # a question without an answer
        return True
    if module == wgpu_private.__name__ and name == "wgpuBufferUnmap":  # a mapping that is undone once more
        return True
    if name == "wgpuBufferDestroy":  # memory that goes with its object all the same
        return True
    # Where memory is short room is made, or a result takes its input's place.
    return fault is out_of_memory and name == "wgpuDeviceCreateBuffer"


@pytest.mark.combinations
@pytest.mark.parametrize("fault", [invalid, out_of_memory])
@pytest.mark.parametrize("call", CALLS)
def test_an_error_of_any_native_call(
    world: World, call: str, fault: Callable[[], None], record_property: Record
) -> None:
    faults = sweep(
        world,
        call,
        at_native_calls,
        fault,
        (DmlGpuError,),
        1 if EVERY_POINT else 11,
        may_pass=lambda points: absorbed(points, fault),
    )
    assert faults > 0
    record_property("faults", faults)


@pytest.mark.combinations
@pytest.mark.parametrize("call", [call for call in CALLS if call not in ("into_out", "directml_life_cycle")])
def test_no_memory_for_any_array_of_the_host(
    world: World, call: str, record_property: Callable[[str, object], None]
) -> None:
    faults = sweep(world, call, at_allocations, no_memory, (MemoryError,), 1)
    record_property("faults", faults)


# wgpu-native ends the process where the device is lost just before one of these, which nobody can know then. Another
# thread that calls wgpu-py's destroy() waits for the call in progress; a driver that gives up the device does not.
FATAL = ("wgpuQueueSubmit", "wgpuBufferGetMappedRange")

LOST = """
import sys, warnings
warnings.simplefilter("ignore")
import dmlgpu
from dmlgpu.runtime import memory, transfers
from tests.test_runtime_faults import lose_at_native_calls
memory.CHUNK, transfers._SMALL = 4096, 1024
kind, step, *calls = sys.argv[1:]
print(sum(lose_at_native_calls(dmlgpu.default_device(), kind, call, int(step)) for call in calls))
"""


def lose_at_native_calls(default: Device, kind: str, name: str, step: int) -> int:
    """Lose a device just before each of a call's calls into wgpu-native, or every `step`-th; return how many."""
    faults, wanted = 0, 1
    while True:
        used = open_device(default, kind)
        world = World(used)
        call = getattr(world, name)
        right(*call())
        points = Points(wanted, lambda: None)

        def lose(gpu_device: Any = used.gpu_device, points: Points = points) -> None:
            if not points.what.startswith(FATAL):
                print(points.what, file=sys.stderr, flush=True)
                type(gpu_device).destroy(gpu_device)

        points.fault = lose
        told: Exception | None = None
        try:
            with at_native_calls(points):
                right(*call())
        except (DeviceLostError, dml.DirectMLError, wgpu.GPUError) as error:
            told = error
        if isinstance(told, dml.DirectMLError):
            assert told.hresult == dml.DXGI_ERROR_DEVICE_REMOVED, told
        if isinstance(told, wgpu.GPUError):
            assert name in ("recorded", "directml_life_cycle"), told  # in which the caller finishes the encoder
        if not points.reached:
            return faults
        wanted += step
        assert sections._depth == 0
        assert free(used.section)
        if not points.what.startswith(FATAL):
            faults += 1
            with pytest.raises((DeviceLostError, dml.DirectMLError)):
                call()
        used.release()
        if kind == "staged":
            used.gpu_device.destroy()


@pytest.mark.combinations
@pytest.mark.parametrize("kind", ["own", "staged"])
def test_a_device_that_is_lost_before_any_native_call(kind: str, record_property: Record) -> None:
    """In a process of its own, which would end with it if wgpu-native did more than refuse."""
    command = [sys.executable, "-c", LOST, kind, "1" if EVERY_POINT else "47", *CALLS]
    folder = Path(__file__).parent.parent
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800, cwd=folder)
    assert run.returncode == 0, run.stderr[-3000:]
    assert int(run.stdout) >= len(CALLS)
    record_property("faults", int(run.stdout))


@pytest.mark.combinations
@pytest.mark.parametrize(
    ("place", "fault", "errors", "step"),
    [
        (at_lines, interrupt, (KeyboardInterrupt,), 211),
        (at_native_calls, invalid, (DmlGpuError,), 61),
        (at_native_calls, out_of_memory, (DmlGpuError,), 67),
    ],
)
def test_a_fault_while_the_default_device_is_opened(
    place: Callable[[Points], AbstractContextManager[None]],
    fault: Callable[[], None],
    errors: tuple[type[BaseException], ...],
    step: int,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Record,
) -> None:
    """With its first call, for which pipelines are compiled."""
    faults, wanted = 0, 1
    opened: dict[str, Device] = {}
    chosen: dict[str | int, Device] = {}
    monkeypatch.setattr(device_module, "_open", opened)
    monkeypatch.setattr(device_module, "_chosen", chosen)
    while True:
        opened.clear()  # once for all, as monkeypatch would keep each device to the end
        chosen.clear()
        points = Points(wanted, fault)
        try:
            with place(points):
                right(dmlgpu.cumulative_sum(X, axis=0), np.cumsum(X, axis=0))
            passed = True
        except errors:
            passed = False
        if not points.reached:
            assert passed
            break
        faults += 1
        assert not passed or absorbed(points, fault), f"the fault at {points.what} was lost"
        assert sections._depth == 0
        assert all(free(section) for section in list(sections._sections))
        right(dmlgpu.cumulative_sum(X, axis=0), np.cumsum(X, axis=0))
        dmlgpu.default_device().release()
        wanted += 1 if EVERY_POINT else step
    record_property("faults", faults)
