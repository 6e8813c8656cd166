"""The one place for private and version-specific names of wgpu, each with a fallback."""

from __future__ import annotations

import os
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import numpy as np
import wgpu
from numpy.typing import NDArray

from ..errors import DeviceError, DeviceReleasedError, said, shown
from ..sections import Section

__all__ = [
    "MAPPABLE_FEATURE",
    "abandon",
    "ask_for_news",
    "cancel_mapping",
    "check_process",
    "claim_process",
    "companion_of",
    "end_calls_before_destroy",
    "enumerate_adapters",
    "fill_mapped",
    "have_polls_wait",
    "implementation",
    "map_submitted",
    "native_version",
    "owner_of",
    "parse_c_types",
    "reject",
    "set_companion",
    "settled",
    "timestamp_period",
]

_DXC_VARIABLE = "DMLGPU_DXC"
"""The environment variable with the path of ``dxcompiler.dll``, which compiles for Direct3D 12 faster than FXC does."""
MAPPABLE_FEATURE = "mappable-primary-buffers"
"""wgpu-native's feature that lets a storage buffer be mapped; elsewhere only staging buffers can be."""


@contextmanager
def _quiet_windowing() -> Iterator[None]:
    """Give the windowing libraries that the OpenGL backend probes the folder they complain about on stderr."""
    if os.name != "posix" or os.environ.get("XDG_RUNTIME_DIR"):
        yield
        return
    os.environ["XDG_RUNTIME_DIR"] = tempfile.gettempdir()
    try:
        yield
    finally:
        os.environ.pop("XDG_RUNTIME_DIR", None)


_adapters: list[wgpu.GPUAdapter] = []
_enumerating = Section()
_process = 0
"""The process that has asked wgpu for adapters or was given a device, or 0 if none has."""


def check_process() -> None:
    """Refuse to use what a parent process opened: adapters and drivers' threads do not survive a fork.

    Raises
    ------
    DeviceReleasedError
        In a child of a process that has asked for adapters, or is just doing so in another thread.
    """
    if _process not in (0, os.getpid()):
        raise DeviceReleasedError(
            f"process {_process}, from which this one was forked, has used the GPU, which does not survive os.fork: "
            "start processes with multiprocessing's 'spawn' method and open a device in each"
        )


def claim_process() -> None:
    """Say that this process is about to use the GPU, so that children forked from now on cannot; `check_process`."""
    global _process
    check_process()
    _process = os.getpid()


def _let_go() -> None:
    """Have a forked child leave alone what is its parent's: the threads of the drivers are not there to answer.

    Objects that end would wait for them for ever, and so would handlers that drivers have registered with the C library
    to be called at the end of the process, or they crash. So nothing native ends with its object, and the C library's
    handlers end with this one, which skips theirs.
    """
    if _process in (0, os.getpid()):
        return
    with suppress(ImportError, AttributeError):
        from wgpu.backends.wgpu_native import _api

        for native in (_api.GPUObjectBase, _api.GPUDevice, _api.GPUAdapter):
            native._release = _release_nothing
    with suppress(ImportError, AttributeError, OSError):
        import ctypes

        library = ctypes.CDLL(None)
        library.on_exit(library._exit, None)  # only glibc has this; called last, with the exit status
        library.on_exit(library.fcloseall, None)  # called first


def _release_nothing(_native: object) -> None:
    """Stand in for what ends a native object."""


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


def enumerate_adapters() -> list[wgpu.GPUAdapter]:
    """Return the adapters that wgpu sees, in its order, as they were when first asked for.

    wgpu's OpenGL backend has one context for all adapters but a lock for each enumeration's: devices of two
    enumerations, or an enumeration beside a device, can meet in the context, and that ends the process.
    """
    claim_process()
    with _enumerating:
        if not _adapters:
            _prepare()
            try:
                with _quiet_windowing():
                    _adapters.extend(wgpu.gpu.enumerate_adapters_sync())
            except wgpu.GPUError as error:
                raise DeviceError(f"wgpu gives no list of adapters: {said(error)}; try again") from error
        return list(_adapters)


def _prepare() -> None:
    """Save wgpu-py time where it runs on wgpu-native, and have it compile with DXC if that is asked for."""
    with suppress(ImportError):
        from wgpu.backends.wgpu_native import ffi

        parse_c_types(ffi)
        if sys.platform == "win32":
            _take_dxc(os.environ.get(_DXC_VARIABLE))


def _take_dxc(path: str | None) -> None:
    """Have wgpu compile with DXC on Direct3D 12; wgpu-py has no other way to name a library, and takes FXC."""
    if not path:
        return
    import ctypes

    from wgpu.backends.wgpu_native.extras import set_instance_extras

    try:
        _ = ctypes.CDLL(path).DxcCreateInstance  # wgpu may end the process where there is none
    except (OSError, AttributeError) as error:
        raise DeviceError(
            f"{_DXC_VARIABLE} is {shown(path)}, which cannot be loaded as DXC ({said(error)}): give the path of "
            "dxcompiler.dll, or unset it"
        ) from error
    with suppress(RuntimeError):  # the program has used wgpu already, and has chosen itself
        set_instance_extras(dx12_compiler="Dxc", dxc_path=path)


def native_version() -> str:
    """Return the version of wgpu-native, or "unknown" where wgpu does not say."""
    try:
        from wgpu.backends.wgpu_native import lib_version_info
    except ImportError:
        return "unknown"
    return ".".join(str(part) for part in lib_version_info)


def implementation() -> str:
    """Return the name and version of the implementation of wgpu's API: "Dawn" where the tests have put it in place."""
    dawn = type(wgpu.gpu).__module__.startswith("wgpudawn")
    return f"{'Dawn' if dawn else 'wgpu-native'} {native_version()}"


def compiles_side_by_side(gpu_device: Any) -> bool:
    """Whether threads may compile for a wgpu.GPUDevice at the same time.

    Not for OpenGL: wgpu-native ends the process where a thread waits a second for another's compiler. Dawn takes calls
    of one thread at a time.
    """
    is_native = type(gpu_device).__module__.startswith("wgpu.backends.wgpu_native")
    return is_native and gpu_device.adapter.info["backend_type"] != "OpenGL"


def owner_of(gpu_object: Any) -> Any:
    """Return the wgpu.GPUDevice that a buffer or an encoder belongs to, or None where wgpu does not say."""
    return getattr(gpu_object, "_device", None)


def end_calls_before_destroy(gpu_device: Any, device: Any) -> None:
    """Have ``destroy`` of a wgpu.GPUDevice wait for calls in progress on it, and end those that wait for the device.

    Reading mapped memory of a destroyed device, and submitting to it, would end the process.

    Parameters
    ----------
    gpu_device : wgpu.GPUDevice
        The device.
    device : Device
        Its `section`, `mark_lost` and `end_waits`. It is not kept alive.
    """
    get_gpu_device, get_device = weakref.ref(gpu_device), weakref.ref(device)

    def destroy() -> None:
        gpu_device: Any = get_gpu_device()
        device: Any = get_device()
        if device is None:
            type(gpu_device).destroy(gpu_device)
            return
        device.mark_lost()
        with device.section:
            type(gpu_device).destroy(gpu_device)
            ask_for_news(gpu_device)  # so that promises which are awaited are settled
            device.end_waits()

    with suppress(AttributeError):  # a device that takes no attributes is destroyed as it is
        gpu_device.destroy = destroy


_COMPANION = "_dmlgpu_companion"


def set_companion(gpu_device: Any, get: Callable[[], Any]) -> None:
    """Let `companion_of` return what `get` returns, for as long as the wgpu.GPUDevice lives."""
    with suppress(AttributeError):  # a device that takes no attributes is wrapped anew by each call
        setattr(gpu_device, _COMPANION, get)


def companion_of(gpu_device: Any) -> Any:
    """Return what belongs to a wgpu.GPUDevice, or None."""
    get = getattr(gpu_device, _COMPANION, None)
    return None if get is None else get()


_GATE = "_dmlgpu_gate"
_NO_GATE = nullcontext()


def have_polls_wait(gpu_device: Any) -> None:
    """Have the thread in which wgpu-py polls a wgpu.GPUDevice wait while a mapping is begun.

    wgpu-py wakes it before wgpu-native knows of the mapping. Until then it would poll an idle device without a pause,
    and so keep Python's lock from the thread that begins the mapping, up to ``sys.getswitchinterval()``: 5 ms.
    """
    if hasattr(gpu_device, _GATE):
        return
    gate = Section()

    def poll_later(block: bool) -> None:
        with gate:
            pass
        poll(block)

    with suppress(AttributeError):  # a wgpu without these names polls as it does
        poll, poller = gpu_device._poller._poll_func, gpu_device._poller
        setattr(gpu_device, _GATE, gate)
        poller._poll_func = poll_later


def map_submitted(gpu_buffer: Any, offset: int, size: int) -> Any:
    """Begin to map a range for reading, for what is submitted already; return wgpu's promise.

    wgpu-py submits an empty command buffer before it maps for reading, which takes a quarter of a small call, unless
    it is told by a name of its own that there is nothing to submit.
    """
    try:
        return _begin_mapping(gpu_buffer, "READ_NOSYNC", offset, size)
    except (KeyError, TypeError, ValueError):  # a wgpu without that name has refused it before doing anything
        return _begin_mapping(gpu_buffer, wgpu.MapMode.READ, offset, size)


def map_to_write(gpu_buffer: Any, offset: int, size: int) -> Any:
    """Begin to map a range for writing; return wgpu's promise."""
    return _begin_mapping(gpu_buffer, wgpu.MapMode.WRITE, offset, size)


def _begin_mapping(gpu_buffer: Any, mode: Any, offset: int, size: int) -> Any:
    try:
        with getattr(owner_of(gpu_buffer), _GATE, _NO_GATE):
            return gpu_buffer.map_async(mode, offset, size)
    except BaseException:
        # wgpu-py takes it for pending now, and keeps its promise, which refers to the buffer, for ever.
        for promise in list(getattr(wgpu.GPUPromise, "_UNRESOLVED", ())):
            cells = getattr(promise._handler, "__closure__", None) or ()
            if any(cell.cell_contents is gpu_buffer for cell in cells):
                abandon(promise)
                promise._wgpu_set_error("the mapping was not begun")
        cancel_mapping(owner_of(gpu_buffer), gpu_buffer, None)
        raise


def settled(promise: Any, seconds: float) -> bool:
    """Wait until wgpu has fulfilled or rejected a promise, or the time is over; return whether it has.

    wgpu-py's own waiting has no end where its thread that asks wgpu-native for news has ended, as with a lost device.
    """
    event = getattr(promise, "_thread_event", None)
    if event is None or type(promise).__module__ != "wgpu.backends.wgpu_native._api":
        with suppress(Exception):  # who asks for the result gets the error
            promise.sync_wait()
        return True
    return bool(event.wait(seconds))


def ask_for_news(gpu_device: Any) -> None:
    """Have wgpu-native settle what promises it can, in case wgpu-py's thread that asks it has ended."""
    with suppress(AttributeError, wgpu.GPUError):
        gpu_device._poll()


def reject(promise: Any, reason: str) -> None:
    """Have a promise that is pending raise RuntimeError to who awaits it; what wgpu says of it later is ignored."""
    with suppress(AttributeError):
        if promise._state == "pending":
            _callbacks.append(promise._keepalive)
            promise._wgpu_set_error(RuntimeError(reason))


_callbacks: list[Any] = []
"""What wgpu-native may call as long as the process lives: a rejected promise forgets its callback."""


def cancel_mapping(gpu_device: Any, gpu_buffer: Any, promise: Any) -> None:
    """Undo a mapping that was begun, whether wgpu is done with it or not; the buffer is as before then.

    The promise is None where ``map_async`` has returned none. Where the private names are missing the buffer is
    destroyed, since submitting it would end the process.
    """
    if promise is not None:
        abandon(promise)
    try:
        from wgpu.backends.wgpu_native._api import libf

        unmap = libf.wgpuBufferUnmap
    except (ImportError, AttributeError):
        gpu_buffer.destroy()
        return
    try:
        unmap(gpu_buffer._internal)
    except wgpu.GPUError:  # the memory is gone with its device, or wgpu's thread is in the middle of mapping it
        ask_for_news(gpu_device)
        if promise is not None:
            settled(promise, 1)
        try:
            unmap(gpu_buffer._internal)
        except wgpu.GPUError as error:
            if "not mapped" not in str(error):
                gpu_buffer.destroy()  # and it stays marked as mapped, so that nobody uses it
                return
    gpu_buffer._release_memoryviews()
    gpu_buffer._mapped_status = 0, 0, 0
    gpu_buffer._map_state = "unmapped"


def abandon(promise: Any) -> None:
    """Have a promise that nobody awaits any more do nothing and tell nobody when it resolves.

    It would tell the event loop in which it was made, which may be closed by then: an error in wgpu's thread, which
    Python prints. And it would take the buffer for mapped.
    """
    promise._call_soon_threadsafe = _tell_nobody
    promise._handler = None


def _tell_nobody(*_: object) -> None:
    """Stand in for an event loop's ``call_soon_threadsafe``."""


def fill_mapped(gpu_buffer: Any, offset: int, size: int, fill: Callable[[NDArray[np.uint8]], None]) -> None:
    """Let `fill` write the bytes of a range that is mapped for writing: in place, where wgpu-py gives access to it."""
    mapped_range = getattr(gpu_buffer, "_experimental_get_mapped_range", None)
    if mapped_range is not None:
        fill(np.frombuffer(mapped_range(offset, size), np.uint8))
    else:
        data = np.zeros(size, np.uint8)
        fill(data)
        gpu_buffer.write_mapped(data, offset)


def timestamp_period(gpu_device: Any) -> float | None:
    """Return the seconds of a tick of timestamp queries, or None where there are none or wgpu does not say."""
    if "timestamp-query" not in gpu_device.features:
        return None
    try:
        from wgpu.backends.wgpu_native import lib

        nanoseconds = float(lib.wgpuQueueGetTimestampPeriod(gpu_device.queue._internal))
    except (ImportError, AttributeError, TypeError):  # wgpu-py wraps neither the function nor the pointer
        return None
    return nanoseconds * 1e-9 if nanoseconds > 0 else None


_STRUCTS = [
    "AdapterInfo",
    "BindGroupDescriptor",
    "BindGroupEntry",
    "BindGroupLayoutDescriptor",
    "BindGroupLayoutEntry",
    "BufferBindingLayout",
    "BufferDescriptor",
    "BufferMapCallbackInfo",
    "ChainedStruct",
    "CommandBufferDescriptor",
    "CommandEncoderDescriptor",
    "ComputePassDescriptor",
    "ComputePipelineDescriptor",
    "ComputeState",
    "ConstantEntry",
    "DeviceDescriptor",
    "DeviceExtras",
    "DeviceLostCallbackInfo",
    "InstanceDescriptor",
    "Limits",
    "NativeLimits",
    "PipelineLayoutDescriptor",
    "QueueDescriptor",
    "RequestDeviceCallbackInfo",
    "ShaderModuleDescriptor",
    "ShaderSourceWGSL",
    "UncapturedErrorCallbackInfo",
]
_ARRAYS = [
    "Adapter",
    "BindGroupEntry",
    "BindGroupLayout",
    "BindGroupLayoutEntry",
    "CommandBuffer",
    "ConstantEntry",
    "FeatureName",
]
_FUNCTIONS = (
    "(WGPUDevice const *, WGPUDeviceLostReason, WGPUStringView, void *, void *)",
    "(WGPUDevice const *, WGPUErrorType, WGPUStringView, void *, void *)",
    "(WGPUMapAsyncStatus, WGPUStringView, void *, void *)",
    "(WGPURequestDeviceStatus, WGPUDevice, WGPUStringView, void *, void *)",
)


def _item(pointer: Any) -> tuple[Any, bool]:
    return pointer.item, False


def _itself(ctype: Any) -> tuple[Any, bool]:
    return ctype, False


def _function(pointer: Any) -> tuple[Any, bool]:
    return pointer, True


_TYPES: dict[str, tuple[str, Callable[[Any], tuple[Any, bool]]]] = {
    **{f"WGPU{name} *": (f"WGPU{name} *", _itself) for name in _STRUCTS},
    "WGPUChainedStruct * ": ("WGPUChainedStruct *", _itself),
    # An array as a parameter would be a pointer to its element, and a function one to itself.
    **{f"WGPU{name}[]": (f"WGPU{name}(*)[]", _item) for name in _ARRAYS},
    **{f"{name} []": (f"{name}(*)[]", _item) for name in ("char", "uint8_t", "uint32_t")},
    **{name: (name, _itself) for name in ("intptr_t", "uintptr_t", "uint8_t *")},
    **{f"void{parameters}": (f"void(*){parameters}", _function) for parameters in _FUNCTIONS},
}
"""For each type as wgpu-py writes it: a parameter that says the same, and what cffi keeps of that."""


def parse_c_types(ffi: Any) -> bool:
    """Parse, as the parameters of one function, the types that wgpu-py asks for up to a first result.

    cffi parses all of wgpu's type names anew, which takes some 12 ms, for each type that it sees for the first time.

    Parameters
    ----------
    ffi : cffi.FFI
        wgpu-py's.

    Returns
    -------
    bool
        Whether that was possible. If not, nothing has changed: a wgpu without one of the types, or a cffi that keeps
        types elsewhere, parses them one by one.
    """
    try:
        kept = ffi._parsed_types
        parameters = ffi.typeof(f"void(*)({', '.join(parameter for parameter, _ in _TYPES.values())})").args
        parsed = {name: entry(ctype) for (name, (_, entry)), ctype in zip(_TYPES.items(), parameters, strict=True)}
        for name, value in parsed.items():
            kept.setdefault(name, value)
    except Exception:  # cffi's errors for C are of many kinds, and none of them matters here
        return False
    return True
