"""Choosing, opening and releasing devices; memory; threads and processes."""

from __future__ import annotations

import asyncio
import copy
import ctypes
import os
import pickle
import subprocess
import sys
import threading
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import _cffi_backend
import numpy as np
import pytest
from wgpu.backends.wgpu_native import extras

import dmlgpu
from dmlgpu.dtypes import by_name
from dmlgpu.errors import (
    AdapterNotFoundError,
    ArrayTypeError,
    DeviceError,
    DeviceLostError,
    DeviceLostWarning,
    DeviceMemoryError,
    DeviceReleasedError,
    NoAdapterError,
    ReleasedArrayError,
    ShaderError,
    SoftwareAdapterWarning,
)
from dmlgpu.layout import Layout
from dmlgpu.planning.dispatch import PipelineKey
from dmlgpu.planning.plan import plan_problem
from dmlgpu.planning.problem import Operator, ScanProblem, scan_problem
from dmlgpu.planning.windows import TILE
from dmlgpu.runtime import adapters, executor, wgpu_private
from dmlgpu.runtime import device as device_module
from dmlgpu.runtime.adapters import AdapterDescription, choose, devices, select_adapter
from dmlgpu.runtime.device import Device, default_device, resolve_device
from dmlgpu.runtime.pipelines import Pipelines
from dmlgpu.runtime.wgpu_private import compiles_side_by_side, implementation

from .harness import check_scan, numbers


def described(index: int, name: str, backend: str, kind: str) -> AdapterDescription:
    return AdapterDescription(
        index, f"{name} ({kind}) via {backend}", name, backend, kind, "", "", {}, frozenset(), None
    )


CPU_VULKAN = described(0, "llvmpipe", "Vulkan", "CPU")
CPU_GL = described(1, "llvmpipe", "OpenGL", "CPU")
IGPU_GL = described(2, "Iris", "OpenGL", "IntegratedGPU")
IGPU = described(3, "Iris", "Vulkan", "IntegratedGPU")
DGPU_GL = described(4, "Radeon", "OpenGL", "DiscreteGPU")
DGPU = described(5, "Radeon", "D3D12", "DiscreteGPU")
ALL = [CPU_VULKAN, CPU_GL, IGPU_GL, IGPU, DGPU_GL, DGPU]


def test_the_best_adapter_is_hardware_then_modern_then_discrete() -> None:
    remaining = list(ALL)
    order = []
    while remaining:
        best = choose(remaining, None, "device")
        order.append(best.index)
        remaining.remove(best)
    assert order == [5, 3, 4, 2, 0, 1]
    assert choose(ALL, "", "DMLGPU_ADAPTER") is DGPU


def test_a_gpu_is_used_through_vulkan_rather_than_direct3d() -> None:
    """Whose default compiler takes minutes for some kernels."""
    vulkan = described(6, "Radeon", "Vulkan", "DiscreteGPU")
    assert choose([*ALL, vulkan], None, "device") is vulkan
    assert choose([*ALL, described(7, "Iris", "Vulkan", "IntegratedGPU")], None, "device") is DGPU


@pytest.mark.parametrize(
    ("choice", "index"),
    [
        ("LLVMPIPE", 0),
        ("opengl", 1),
        ("Iris", 3),
        ("Radeon", 5),
        ("radeon (discretegpu) via opengl", 4),
        (2, 2),
        ("4", 4),
    ],
)
def test_choices(choice: str | int, index: int) -> None:
    assert choose(ALL, choice, "device").index == index


@pytest.mark.parametrize("choice", ["GeForce", 6, -1, "17"])
def test_choices_that_match_nothing(choice: str | int) -> None:
    with pytest.raises(AdapterNotFoundError, match=r"^DMLGPU_ADAPTER .*0: llvmpipe \(CPU\) via Vulkan; 1: "):
        choose(ALL, choice, "DMLGPU_ADAPTER")


@pytest.mark.parametrize(
    ("platform", "way_out"),
    [
        ("linux", "apt-get install mesa-vulkan-drivers"),
        ("darwin", "macOS 11"),
        ("win32", "driver"),
        ("other", "driver"),
    ],
)
def test_no_adapter(platform: str, way_out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(adapters, "enumerate_adapters", list)
    with pytest.raises(NoAdapterError, match=f"no WebGPU adapter is visible.*{way_out}.*dmlgpu info"):
        select_adapter()


def test_the_environment_variable_chooses_and_the_argument_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    found = devices()
    monkeypatch.setenv("DMLGPU_ADAPTER", "no such adapter")
    with pytest.raises(AdapterNotFoundError, match="DMLGPU_ADAPTER 'no such adapter' is in no adapter's summary"):
        resolve_device(None)
    last = found[-1]
    assert select_adapter(last.index) == last
    monkeypatch.setenv("DMLGPU_ADAPTER", str(last.index))
    assert select_adapter() == last
    with pytest.raises(AdapterNotFoundError, match="device 'nonsense'"):
        resolve_device("nonsense")


class TestDxc:
    """On Windows the environment names the library that compiles for Direct3D 12."""

    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
        """Return what wgpu is asked for where adapters are looked for, as on Windows."""
        found: list[dict[str, object]] = []
        monkeypatch.setattr(extras, "set_instance_extras", lambda **asked: found.append(asked))
        monkeypatch.setattr(sys, "platform", "win32")
        monkeypatch.delenv("DMLGPU_DXC", raising=False)
        return found

    def test_is_asked_for_by_its_path(
        self, asked: list[dict[str, object]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        path = str(tmp_path / "dxcompiler.dll")
        libraries = {path: SimpleNamespace(DxcCreateInstance=None)}
        monkeypatch.setattr(ctypes, "CDLL", libraries.__getitem__)
        monkeypatch.setenv("DMLGPU_DXC", path)
        wgpu_private._prepare()
        assert asked == [{"dx12_compiler": "Dxc", "dxc_path": path}]

    def test_is_left_to_wgpu_otherwise(self, asked: list[dict[str, object]], monkeypatch: pytest.MonkeyPatch) -> None:
        wgpu_private._prepare()
        monkeypatch.setenv("DMLGPU_DXC", "")
        wgpu_private._prepare()
        monkeypatch.setattr(sys, "platform", "linux")
        monkeypatch.setenv("DMLGPU_DXC", "no such file")
        wgpu_private._prepare()
        assert asked == []

    def test_is_left_to_a_program_that_has_used_wgpu_before(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert devices()
        monkeypatch.setattr(ctypes, "CDLL", lambda path: SimpleNamespace(DxcCreateInstance=None))
        with pytest.raises(RuntimeError, match="already exists"):
            extras.set_instance_extras(dx12_compiler="Dxc", dxc_path="dxcompiler.dll")
        wgpu_private._take_dxc("dxcompiler.dll")

    @pytest.mark.parametrize("library", ["no such file", _cffi_backend.__file__], ids=["none", "another library"])
    def test_what_is_none_is_refused(
        self, library: str, asked: list[dict[str, object]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """wgpu would end the process, or take the other compiler."""
        monkeypatch.setenv("DMLGPU_DXC", library)
        with pytest.raises(DeviceError, match=r"^DMLGPU_DXC is '.*', which cannot be loaded as DXC \(.*unset it$"):
            wgpu_private._prepare()
        assert asked == []


def test_adapters_are_asked_for_once() -> None:
    """Devices of two enumerations share an OpenGL context without a common lock, which ends the process."""
    assert [a.adapter for a in devices()] == [a.adapter for a in devices()]
    assert devices()[0].adapter is devices()[0].adapter


@pytest.mark.parametrize("index", range(len(devices())))
def test_devices_of_opengl_are_used_one_at_a_time(index: int) -> None:
    """They share a context, and wgpu ends the process when a thread waits for that for a second."""
    description = devices()[index]
    with Device(description) as one, Device(description) as other:
        assert (one.section is other.section) == (description.backend == "OpenGL")
        assert (one.section is device_module._setting_up) == (description.backend == "OpenGL")


def test_a_device_that_is_wrapped_already_waits_for_none_that_is_opened(device: Device) -> None:
    """A thread that holds a device's lock may open another, while a second thread wraps the first: neither waits."""
    found = []
    if device.section is device_module._setting_up:
        assert Device.wrap(device.gpu_device) is device
        return
    with device_module._setting_up:
        thread = threading.Thread(target=lambda: found.append(Device.wrap(device.gpu_device)), daemon=True)
        thread.start()
        thread.join(20)
    assert found == [device]


def test_each_adapter_is_opened_once(device: Device) -> None:
    assert resolve_device(None) is device
    assert resolve_device(device.description.index) is resolve_device(str(device.description.index))
    assert resolve_device(device) is device


def test_equal_adapters_are_two_devices(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two equal GPUs have the same summary, and may have the same driver."""
    first = replace(device.description, index=0)
    second = replace(device.description, index=1)
    monkeypatch.setattr(device_module, "_open", {})
    monkeypatch.setattr(device_module, "_chosen", {})
    monkeypatch.setattr(device_module, "select_adapter", lambda choice: (first, second)[choice])
    one, other = resolve_device(0), resolve_device(1)
    assert one is not other
    assert (one.description.index, other.description.index) == (0, 1)
    assert resolve_device(1) is other
    one.release()
    other.release()


WAY_OUT = "give a dmlgpu.Device, a wgpu.GPUDevice, an adapter's index, or a part of its summary"


@pytest.mark.parametrize("wrong", [1.5, True, object(), b"llvmpipe"])
def test_a_device_of_another_type(wrong: object) -> None:
    with pytest.raises(ArrayTypeError, match=f"device is .* of type {type(wrong).__name__}; {WAY_OUT}"):
        resolve_device(wrong)  # type: ignore[arg-type]


def test_a_wgpu_device_is_to_be_wrapped(device: Device) -> None:
    with pytest.raises(ArrayTypeError, match=r"^adapter is .*; Device\.wrap takes a wgpu\.GPUDevice$"):
        Device(device.gpu_device)  # type: ignore[arg-type]


def test_limits_that_the_adapter_does_not_have(device: Device) -> None:
    with pytest.raises(DeviceError, match="gives no device with these limits"):
        Device(device.description, limits={"max-buffer-size": 2**62})
    with pytest.raises(DeviceError, match="gives no device with these limits"):
        Device(device.description, limits={"max-nonsense": 1})


@pytest.mark.parametrize("name", sorted(adapters._NEEDED))
def test_limits_that_no_kernel_can_keep(device: Device, name: str) -> None:
    """One error that names the limit, before anything is computed; never a hang."""
    least = adapters._NEEDED[name]
    for value in {0, 1, 4, 64, least - 1}:
        if value < least:
            with pytest.raises(DeviceError, match=rf"{name} = {value}, and kernels need {least}: ask for as many"):
                Device(device.description, limits={name: value})
    gpu_device = device.description.adapter.request_device_sync(required_limits={name: 0})
    with pytest.raises(DeviceError, match=rf"{name} = 0, and kernels need"):
        Device.wrap(gpu_device)
    gpu_device.destroy()


@pytest.mark.combinations
@pytest.mark.parametrize("name", sorted(adapters._NEEDED))
def test_the_least_limits(device: Device, name: str) -> None:
    """All kernels keep to them, or say in one sentence what they need."""
    cases = [(shape, dtype) for shape in ((2, 500), (500, 2), (1, 4500)) for dtype in ("float32", "uint8")]
    with Device(device.description, limits={name: adapters._NEEDED[name]}) as least:
        for shape, dtype in cases:
            x = (np.arange(np.prod(shape)) % 7).astype(dtype).reshape(shape)
            for axis in (0, 1):
                expected = np.cumsum(x, axis=axis, dtype=dtype)
                if name != "max-compute-workgroups-per-dimension" or shape[1 - axis] <= 4 * 8:
                    y = dmlgpu.cumulative_sum(x, axis=axis, dtype=dtype, device=least)
                    assert np.array_equal(y, expected), (shape, dtype, axis)


def test_tensors_above_the_limits(device: Device) -> None:
    """One error that says what is too large; blocks of data of the host; windows, where only a binding is too small."""
    x = np.ones(2**18, np.float32)
    with Device(device.description, limits={"max-buffer-size": 2**19}) as small:
        with pytest.raises(DeviceMemoryError, match="1048576 bytes is larger than the device's largest buffer"):
            dmlgpu.asarray(x, device=small)
        with pytest.raises(DeviceMemoryError, match="1048576 bytes is larger than the device's largest buffer"):
            dmlgpu.cumulative_sum(x.reshape(512, 512).T, axis=0, device=small)
        assert np.array_equal(dmlgpu.cumulative_sum(x, device=small), np.arange(1, 2**18 + 1))
    with Device(device.description, limits={"max-storage-buffer-binding-size": 2**16}) as small:
        assert np.array_equal(dmlgpu.cumulative_sum(x, device=small), np.arange(1, 2**18 + 1))


def test_uniforms_that_no_single_buffer_has_room_for(device: Device) -> None:
    """Passes that a caller's encoder takes all at once."""
    limits = {"max-buffer-size": 2**17, "max-storage-buffer-binding-size": 768}
    x = np.ones((60, 60), np.float32)  # a pass for each element
    with Device(device.description, limits=limits) as small:
        array, out = dmlgpu.asarray(x, device=small), dmlgpu.asarray(np.zeros_like(x), device=small)
        encoder = small.gpu_device.create_command_encoder()
        dmlgpu.cumulative_sum(array, axis=0, out=out, encoder=encoder)
        small.gpu_device.queue.submit([encoder.finish()])
        assert np.array_equal(out.numpy(), np.cumsum(x, axis=0))


@pytest.mark.parametrize("limit", ["bytes", "workgroups"])
@pytest.mark.parametrize("dtype", ["float32", "uint8", "int64"])
def test_tensors_at_the_limits(device: Device, dtype: str, limit: str) -> None:
    """One element less than a limit, as much, and one more; with bindings, with buffers, and with workgroups."""
    size = np.dtype(dtype).itemsize
    binding, buffer, workgroups = 2**14, 2**18, 8
    if limit == "bytes":
        limits = {"max-storage-buffer-binding-size": binding, "max-buffer-size": buffer}
        counts = [edge // size + more for edge in (binding, 2 * binding, buffer) for more in (-1, 0, 1)]
    else:
        limits = {"max-compute-workgroups-per-dimension": workgroups, "max-buffer-size": buffer}
        counts = [workgroups * lanes + more for lanes in (1, 16, 256) for more in (-1, 0, 1)]
    with Device(device.description, limits=limits) as small:
        for count in counts:
            x = (np.arange(count) % 5).astype(dtype)
            calls = [
                (lambda x=x: dmlgpu.cumulative_sum(x, dtype=dtype, device=small), np.cumsum(x, dtype=dtype), True),
                (lambda x=x: dmlgpu.cumulative_sum(x[:, None], axis=1, dtype=dtype, device=small), x[:, None], True),
                (lambda x=x: dmlgpu.asarray(x, small).numpy(), x, False),
            ]
            for call, expected, in_blocks in calls:
                if in_blocks or count * size <= buffer:
                    np.testing.assert_array_equal(call(), expected, str(count))
                else:
                    with pytest.raises(DeviceMemoryError, match="is larger than the device's largest buffer"):
                        call()
        assert small.allocate(buffer).nbytes == buffer
        with pytest.raises(DeviceMemoryError, match="is larger than the device's largest buffer"):
            small.allocate(buffer + 1)


def test_a_software_adapter_warns_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapters, "_warned", False)
    with pytest.warns(SoftwareAdapterWarning, match="computing on the CPU: llvmpipe"):
        adapters.warn_of_software(CPU_VULKAN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adapters.warn_of_software(CPU_VULKAN)


def test_the_warning_names_the_callers_line(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    software = replace(device.description, adapter_type="CPU")
    monkeypatch.setattr(adapters, "_warned", False)
    with pytest.warns(SoftwareAdapterWarning) as caught, Device(software):
        pass
    assert [warning.filename for warning in caught] == [__file__]


def small_problem() -> ScanProblem:
    layout = Layout.packed((8,))
    return scan_problem(by_name("float32"), Operator.SUM, layout, layout, axis=0)


def test_a_released_device(device: Device) -> None:
    with Device(device.description) as other:
        memory = other.allocate(32)
        other.run(small_problem(), memory, memory)
        assert not other.released
    other.release()
    assert other.released
    assert memory.released
    assert "(released)" in repr(other)
    for use in (
        lambda: other.allocate(4),
        lambda: other.run(small_problem(), memory, memory),
        lambda: other.upload(memory, 0, np.zeros(1, np.float32)),
        lambda: other.download(memory, 0, np.zeros(1, np.float32)),
    ):
        with pytest.raises(
            DeviceReleasedError, match=r"cannot be used any longer; open another with dmlgpu\.Device\(\)"
        ):
            use()
    memory.release()
    check_scan(device, numbers((10,), np.float32), "sum", 0)


def test_released_memory(device: Device) -> None:
    memory, other = device.allocate(32), device.allocate(32)
    memory.release()
    memory.release()
    for source, target in ((memory, other), (other, memory)):
        with pytest.raises(ReleasedArrayError, match="memory was released"):
            device.run(small_problem(), source, target)
    with pytest.raises(ReleasedArrayError, match="memory was released"):
        device.download(memory, 0, np.zeros(1, np.float32))
    device.run(small_problem(), other, other)


def test_memory_of_another_device(device: Device, modest_device: Device) -> None:
    here, there = device.allocate(32), modest_device.allocate(32)
    with pytest.raises(ArrayTypeError, match="copy it there through NumPy"):
        device.run(small_problem(), here, there)
    device.run(small_problem(), here, here)


def test_more_memory_than_a_buffer_can_have(device: Device, modest_device: Device) -> None:
    with pytest.raises(DeviceMemoryError, match=r"1099511627776 bytes is larger than the device's largest buffer"):
        device.allocate(2**40)
    with pytest.raises(DeviceMemoryError, match=r"\(268435456 bytes\): scan it in pieces .*docs/large\.md"):
        modest_device.allocate(2**28 + 1)
    assert modest_device.allocate(2**28).nbytes == 2**28
    check_scan(modest_device, numbers((10,), np.float32), "sum", 0)


@pytest.mark.parametrize("nbytes", [1, 2, 3, 4, 5, 4099])
@pytest.mark.parametrize("offset", [0, 4, 8])
def test_bytes_there_and_back(device: Device, nbytes: int, offset: int) -> None:
    data = np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8)
    memory = device.allocate(nbytes + 20)
    device.upload(memory, offset, data)
    for skip in range(min(nbytes, 4)):
        out = np.empty(nbytes - skip, np.uint8)
        device.download(memory, offset + skip, out)
        assert out.tobytes() == data[skip:].tobytes()
    device.upload(memory, 0, np.zeros(0, np.uint8))
    device.download(memory, 0, np.zeros(0, np.uint8))


def test_transfers_larger_than_the_staging_memory(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dmlgpu.runtime.memory.CHUNK", 4096)
    data = np.random.default_rng(0).integers(0, 256, 50_001, np.uint8)
    memory = device.allocate(data.nbytes)
    device.upload(memory, 0, data)
    out = np.empty(data.nbytes - 3, np.uint8)
    device.download(memory, 3, out)
    assert out.tobytes() == data[3:].tobytes()


def test_reading_back_without_blocking_the_event_loop(device: Device) -> None:
    data = np.arange(1001, dtype=np.uint16)
    memory = device.allocate(data.nbytes)
    device.upload(memory, 0, data)

    async def read() -> list[bytes]:
        outs = [np.empty(1000, np.uint16) for _ in range(3)]
        await asyncio.gather(*(device.download_async(memory, 2, out) for out in outs))
        return [out.tobytes() for out in outs]

    assert asyncio.run(read()) == [data[1:].tobytes()] * 3


def test_memory_begins_as_zero(device: Device) -> None:
    out = np.ones(100, np.uint32)
    device.download(device.allocate(400), 0, out)
    assert not out.any()


def test_threads_share_a_device(device: Device) -> None:
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for i in range(5):
                check_scan(device, numbers((7, 300 + i), np.float32, seed=seed), "sum", 1)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_device_cannot_be_pickled(device: Device) -> None:
    for use in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(ArrayTypeError, match="cannot be copied or pickled; open one in each process"):
            use(device)


FORK = """
import os, threading, warnings
warnings.simplefilter("ignore")
import dmlgpu
device = dmlgpu.default_device()
array = dmlgpu.asarray([1.5])
# Another thread is in the middle of a call.
locked, held = threading.Event(), threading.Event()
def work():
    with device.lock:
        locked.set()
        held.wait()
threading.Thread(target=work).start()
locked.wait()
child = os.fork()
if child == 0:
    for use in (
        lambda: device.allocate(4),
        lambda: dmlgpu.cumulative_sum([1]),
        lambda: dmlgpu.cumulative_sum([1], device=device),
        lambda: array.numpy(),
        lambda: dmlgpu.round(array),
        lambda: dmlgpu.Device(),
        lambda: dmlgpu.devices(),
    ):
        try:
            use()
            os._exit(8)
        except dmlgpu.errors.DeviceReleasedError as error:
            if "does not survive os.fork" not in str(error) or not device.released:
                os._exit(9)
    del array
    device.release()
    os._exit(7)
held.set()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="os.fork exists on POSIX systems only")
def test_a_forked_child_is_told_so() -> None:
    run = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True, timeout=120)
    assert run.stdout.strip() == "7"


FORK_WHILE_OPENING = """
import os, sys, threading, warnings
warnings.simplefilter("ignore")
import numpy as np
import dmlgpu
from dmlgpu import lazy
stage = sys.argv[1]
begun, forking, forked = threading.Event(), threading.Event(), threading.Event()
os.register_at_fork(before=forking.set, after_in_parent=forked.set)  # the last one registered is the first to run

def in_the_middle(until, function):
    def slow(*args, **options):
        begun.set()
        until.wait()
        return function(*args, **options)
    return slow

def work():
    if stage == "import":
        lazy.import_runtime()
    else:
        dmlgpu.cumulative_sum([1])

if stage == "import":
    class Finder:
        def find_spec(name, path, target=None):
            if name == "wgpu":
                in_the_middle(forking, list)()
    sys.meta_path.insert(0, Finder)
else:
    import wgpu
    from wgpu.backends.wgpu_native import _api
    owner, name = {
        "adapters": (type(wgpu.gpu), "enumerate_adapters_sync"),
        "device": (_api.GPUAdapter, "request_device_sync"),
        "pipeline": (_api.GPUDevice, "create_compute_pipeline"),
        "submission": (_api.GPUQueue, "submit"),
        "mapping": (_api.GPUBuffer, "map_async"),
    }[stage]
    setattr(owner, name, in_the_middle(forked, getattr(owner, name)))
thread = threading.Thread(target=work)
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    import faulthandler
    faulthandler.dump_traceback_later(60, exit=True)
    for use in (
        lambda: dmlgpu.cumulative_sum([1]),
        lambda: dmlgpu.asarray([1]),
        lambda: dmlgpu.Device(),
        lambda: dmlgpu.devices(),
        lambda: dmlgpu.directml.DMLCreateDevice(),
    ):
        try:
            use()
            said = "works"
        except dmlgpu.errors.DeviceReleasedError as error:
            said = "refused" if "does not survive os.fork" in str(error) else str(error)
        except dmlgpu.errors.DirectMLError as error:
            said = "refused" if "does not survive os.fork" in str(error) else str(error)
        if said != ("works" if stage == "import" else "refused"):
            sys.exit(said)
    sys.exit(7)
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), dmlgpu.cumulative_sum([1, 2]).tolist())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="os.fork exists on POSIX systems only")
@pytest.mark.parametrize("stage", ["import", "adapters", "device", "pipeline", "submission", "mapping"])
def test_a_child_that_is_forked_while_another_thread_opens_a_device(stage: str) -> None:
    """It finds no lock taken; one whose parent had only imported wgpu uses the GPU itself."""
    command = [sys.executable, "-c", FORK_WHILE_OPENING, stage]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert run.stdout.strip() == "7 [1, 3]", run.stderr[-3000:]


FORKED_END = """
import gc, os, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
import dmlgpu
from dmlgpu.runtime import device as runtime
device, own = dmlgpu.default_device(), dmlgpu.Device()
array = dmlgpu.asarray(np.ones(100_000, np.float32))
dmlgpu.cumulative_sum(array).numpy()
child = os.fork()
if child == 0:
    import faulthandler
    faulthandler.dump_traceback_later(60, exit=True)
    if sys.argv[1] == "release":
        for used in (array, device, own):
            used.release()
    elif sys.argv[1] == "collect":
        runtime._open.clear()
        runtime._chosen.clear()
        del array, device, own
        gc.collect()
    elif sys.argv[1] == "error":
        array.numpy()
    print("printed")
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), array.numpy()[-1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="os.fork exists on POSIX systems only")
@pytest.mark.parametrize(("act", "status"), [("exit", 7), ("release", 7), ("collect", 7), ("error", 1)])
def test_a_forked_child_ends_as_any_process(act: str, status: int) -> None:
    """What a driver does at the end of a process it cannot do in a child, which lacks the driver's threads."""
    run = subprocess.run(
        [sys.executable, "-c", FORKED_END, act], capture_output=True, text=True, check=True, timeout=120
    )
    assert run.stdout.splitlines() == (["printed"] if status == 7 else []) + [f"{status} 1.0"]


LOST = """
import sys, warnings
warnings.simplefilter("ignore")
import numpy as np
import dmlgpu
from dmlgpu.errors import DeviceReleasedError
x = np.ones((300, 40), np.float32)
adapter = dmlgpu.default_device().description
for wrapped, told in ((False, False), (False, True), (True, False), (True, True)):
    for order in range(4):
        if wrapped:
            device = dmlgpu.Device.wrap(adapter.adapter.request_device_sync())
        else:
            device = dmlgpu.Device(adapter)
        array = dmlgpu.asarray(x, device)
        if order % 2:
            dmlgpu.cumulative_sum(x, axis=0, device=device)
        other = dmlgpu.asarray(x, device)
        if told:
            device.gpu_device.destroy()
        else:  # as if the driver had given it up
            type(device.gpu_device).destroy(device.gpu_device)
        if order >= 2:
            other.release()
            device.release()
        for use in (
            lambda: dmlgpu.asarray(x, device),
            lambda: array.numpy(),
            lambda: dmlgpu.cumulative_sum(array, axis=0),
            lambda: dmlgpu.cumulative_sum(x, axis=0, device=device),
            lambda: device.allocate(4),
        ):
            try:
                use()
                sys.exit("nothing was raised")
            except DeviceReleasedError:
                pass
        array.release()
        del other
        device.release()
print("alive")
"""


def test_a_device_destroyed_below_ends_no_process() -> None:
    run = subprocess.run([sys.executable, "-c", LOST], capture_output=True, text=True, check=False, timeout=120)
    assert (run.stdout, run.returncode) == ("alive\n", 0), run.stderr[-2000:]


@pytest.mark.parametrize("told", [True, False])
def test_a_lost_default_device_is_replaced(told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once where it is destroyed by wgpu-py's ``destroy``, else as soon as a call has found out."""
    monkeypatch.setattr(device_module, "_open", {})
    monkeypatch.setattr(device_module, "_chosen", {})
    lost = default_device()
    assert resolve_device(lost.description.index) is lost
    array, x = dmlgpu.asarray([1.5, 2.5]), np.arange(1000.0)
    if told:
        lost.gpu_device.destroy()
    else:
        type(lost.gpu_device).destroy(lost.gpu_device)
        with pytest.raises(DeviceLostError, match="was destroyed or lost, and its arrays with it: open another"):
            dmlgpu.cumulative_sum(x)
    with pytest.warns(DeviceLostWarning, match="another one is opened on the adapter; arrays that were on") as caught:
        result = dmlgpu.cumulative_sum(x)
    assert [warning.filename for warning in caught] == [__file__]
    np.testing.assert_array_equal(result, np.cumsum(x))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fresh = default_device()
        assert resolve_device(lost.description.index) is fresh is not lost
        np.testing.assert_array_equal(dmlgpu.cumulative_sum(x), np.cumsum(x))
    assert "(lost)" in repr(lost)
    assert array.released
    assert "released" in repr(array)
    for use in (array.numpy, lambda: dmlgpu.round(array), lambda: array[1:].numpy(), lambda: lost.allocate(4)):
        with pytest.raises(DeviceLostError, match="its arrays with it: open another"):
            use()
    lost.release()
    lost.release()
    fresh.release()


def test_a_warning_that_is_an_error_comes_after_the_device_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_module, "_open", {})
    monkeypatch.setattr(device_module, "_chosen", {})
    default_device().gpu_device.destroy()
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeviceLostWarning)
        with pytest.raises(DeviceLostWarning):
            dmlgpu.cumulative_sum([1, 2])
        assert dmlgpu.cumulative_sum([1, 2]).tolist() == [1, 3]
    default_device().release()


def test_pipelines_are_compiled_once(device: Device) -> None:
    x = numbers((3, 301), np.int32)  # neither vectors nor parts of words, which decreasing scans do not have
    check_scan(device, x, "sum", 1)
    compiled = device.pipelines.compiled
    check_scan(device, x, "sum", 1, reverse=True, exclusive=True)
    check_scan(device, x.T.copy(), "sum", 0)
    assert device.pipelines.compiled == compiled


def test_pipelines_of_a_plan_are_compiled_at_the_same_time(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """By threads, of which each waits for another one here; by the calling thread where the backend allows no more."""
    layout = Layout.packed((3, 5 * TILE))
    problem = scan_problem(by_name("float32"), Operator.SUM, layout, layout, 1)
    keys = list(dict.fromkeys(one.pipeline for one in plan_problem(problem, device.limits, kernel="serial").passes))
    assert len(keys) == 4
    pipelines = Pipelines(device.gpu_device)
    compile_one, pair, threads = pipelines._compile, threading.Barrier(2), set()

    def compile_noted(key: PipelineKey) -> None:
        threads.add(threading.get_ident())
        if compiles_side_by_side(device.gpu_device):
            pair.wait(20)
        compile_one(key)

    monkeypatch.setattr(pipelines, "_compile", compile_noted)
    found = pipelines.get_all([*keys, keys[0]])
    assert found == [pipelines.get(key) for key in [*keys, keys[0]]]
    assert pipelines.compiled == 4
    is_native = "OpenGL" not in device.summary and implementation().startswith("wgpu-native")
    assert (threading.get_ident() not in threads) == is_native


def test_errors_of_compilers_in_threads_reach_the_caller(device: Device) -> None:
    pipelines = Pipelines(device.gpu_device)
    good = PipelineKey("scan_carries", (("element", "f32"),), (("product", 0),))
    for bad in (PipelineKey("nonesuch", (), ()), replace(good, constants=(("nonesuch", 1),))):
        with pytest.raises(ShaderError, match="nonesuch"):
            pipelines.get_all([good, bad])
        assert pipelines.get(good) is pipelines.get_all([good])[0]


def test_long_plans_are_cut_into_submissions(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0
    real = executor.submit

    def counting(gpu_device: object, command_buffers: list[object]) -> None:
        nonlocal count
        count += 1
        real(gpu_device, command_buffers)

    monkeypatch.setattr("dmlgpu.runtime.executor.submit", counting)
    monkeypatch.setattr(device, "limits", replace(device.limits, binding_bytes=4096, dispatch_elements=5000))
    check_scan(device, numbers((20_000,), np.float32), "sum", 0)
    assert count >= 4


def test_one_place_submits() -> None:
    """An error inside queue.submit ends the process, so one function holds the only call."""
    from dmlgpu import shaders

    package = shaders.folder().parent / "dmlgpu"
    calls = [path.name for path in package.rglob("*.py") for _ in range(path.read_text().count("queue.submit("))]
    assert calls == ["executor.py"]
