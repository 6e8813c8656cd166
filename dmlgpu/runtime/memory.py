"""Memory on a device: that of arrays, temporaries, staging buffers, and the pools they come from."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import wgpu

from ..errors import DeviceMemoryError, ReleasedArrayError, shown
from ..layout import ceil_div
from .wgpu_private import MAPPABLE_FEATURE, cancel_mapping

if TYPE_CHECKING:
    from .device import Device

__all__ = ["CHUNK", "Buffer", "Memory", "Pool", "create_buffer", "is_out_of_memory", "size_class"]

CHUNK = 16 * 2**20
"""The most bytes of a staging buffer. Twice as many are in flight between host and device."""

_MAX_IDLE_ARRAYS = 256 * 2**20
_MAX_IDLE_TEMPORARIES = 256 * 2**20
_MAX_IDLE_STAGING = 4 * CHUNK

_STORAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
_MAPPABLE = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.MAP_WRITE
_UPLOAD = wgpu.BufferUsage.MAP_WRITE | wgpu.BufferUsage.COPY_SRC
_READBACK = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST

_MAX_IDLE = 32
"""The most idle buffers of a pool, however small."""


def is_out_of_memory(error: wgpu.GPUError) -> bool:
    """Whether an error says that memory is exhausted. Some drivers raise it as another type than that of this name."""
    return isinstance(error, wgpu.GPUOutOfMemoryError) or "memory" in str(error).casefold()


def create_buffer(gpu_device: Any, nbytes: int, usage: int, *, size: int = 0, mapped: bool = False) -> Any:
    """Return a zero-filled wgpu buffer.

    Parameters
    ----------
    gpu_device : wgpu.GPUDevice
        Where.
    nbytes : int
        The bytes that are needed; the buffer's size is a multiple of 4.
    usage : int
        wgpu's usage.
    size : int, optional
        The size that it gets if the device allows it.
    mapped : bool
        Whether it is mapped for writing.

    Raises
    ------
    DeviceMemoryError
        If the device's largest buffer is smaller, or its memory is exhausted.
    """
    limit: int = gpu_device.limits["max-buffer-size"] // 4 * 4
    size = max(ceil_div(nbytes, 4) * 4, min(size, limit), 16)
    if size > limit:
        raise DeviceMemoryError(
            f"an array of {shown(nbytes)} bytes is larger than the device's largest buffer ({limit} bytes): scan it "
            "in pieces with dmlgpu.Scan (docs/large.md), work on it in parts, or choose another device"
        )
    try:
        return gpu_device.create_buffer(size=size, usage=usage, mapped_at_creation=mapped)
    except wgpu.GPUError as error:
        if not is_out_of_memory(error):
            raise
        raise DeviceMemoryError(
            f"the device has no room for {nbytes} bytes: release arrays that are no longer needed, or scan in pieces "
            "with dmlgpu.Scan (docs/large.md)"
        ) from error


def size_class(nbytes: int) -> int:
    """Return the size of the pooled buffer that serves a request: few sizes, each at most an eighth too large."""
    step = max(256, 1 << max(0, nbytes.bit_length() - 4))
    return ceil_div(nbytes, step) * step


class Pool:
    """Idle wgpu buffers of one usage, used under the device's lock.

    A buffer belongs to the pool while it is idle, and otherwise to the caller who took it. A buffer that is never given
    back is garbage collected like any other wgpu buffer. A buffer holds what its last user left in it.

    Parameters
    ----------
    gpu_device : wgpu.GPUDevice
        Where the buffers are.
    usage : int
        Their usage.
    max_idle_bytes : int
        The most bytes of idle buffers; those idle for longest are destroyed first.
    forget : callable, optional
        Called with each buffer before it is destroyed, so that nothing refers to it any longer.

    Attributes
    ----------
    created : int
        The number of buffers that were made because none fitted.
    """

    def __init__(
        self, gpu_device: Any, usage: int, max_idle_bytes: int, forget: Callable[[Any], None] = lambda _: None
    ) -> None:
        self._gpu_device = gpu_device
        self._usage = usage
        self._max_idle_bytes = max_idle_bytes
        self._forget = forget
        self._idle: list[Any] = []
        self.created = 0

    @property
    def idle_bytes(self) -> int:
        """The bytes of the idle buffers."""
        return sum(gpu_buffer.size for gpu_buffer in self._idle)

    def take(self, nbytes: int) -> Any:
        """Return a buffer of at least `nbytes` bytes.

        Raises
        ------
        DeviceMemoryError
            As `create_buffer`.
        """
        idle = self.take_idle(nbytes)
        return self.create(nbytes) if idle is None else idle

    def take_idle(self, nbytes: int) -> Any:
        """Return an idle buffer of at least `nbytes` bytes, or None if there is none that is not much larger."""
        size = size_class(nbytes)
        for i in range(len(self._idle) - 1, -1, -1):  # the one used last is the likeliest to be in a cache
            if nbytes <= self._idle[i].size <= size:
                return self._idle.pop(i)
        return None

    def create(self, nbytes: int, *, mapped: bool = False) -> Any:
        """Return a new buffer, mapped for writing if asked for; as `take`."""
        self.created += 1
        return create_buffer(self._gpu_device, nbytes, self._usage, size=size_class(nbytes), mapped=mapped)

    def give(self, gpu_buffer: Any) -> None:
        """Take a buffer back. One that an error left mapped is destroyed: submitting it would end the process."""
        if gpu_buffer.map_state != "unmapped" or gpu_buffer.size > self._max_idle_bytes:
            self.destroy(gpu_buffer)
        else:
            self._idle.append(gpu_buffer)
            self._trim(self._max_idle_bytes)

    def close(self) -> None:
        """Destroy the idle buffers, and from now on all that come back."""
        self._max_idle_bytes = 0
        self.clear()

    def offer(self, gpu_buffer: Any) -> None:
        """Take a buffer back if there is room for it.

        The garbage collector calls this, in the middle of anything: no lock is taken and nothing is destroyed.
        """
        fits = len(self._idle) < _MAX_IDLE and self.idle_bytes + gpu_buffer.size <= self._max_idle_bytes
        if fits and gpu_buffer.map_state == "unmapped":
            self._idle.append(gpu_buffer)

    def clear(self) -> None:
        """Destroy the idle buffers."""
        self._trim(0)

    def _trim(self, max_bytes: int) -> None:
        while self._idle and (len(self._idle) > _MAX_IDLE or self.idle_bytes > max_bytes):
            self.destroy(self._idle.pop(0))

    def destroy(self, gpu_buffer: Any) -> None:
        """Destroy a buffer that was taken."""
        self._forget(gpu_buffer)
        with suppress(wgpu.GPUError):  # its memory goes when the object does, then
            gpu_buffer.destroy()


class Buffer:
    """Memory on a device, of this package or of the caller's.

    Parameters
    ----------
    device : Device
        Where it is.
    nbytes : int
        Its size in bytes.
    gpu_buffer : wgpu.GPUBuffer
        The memory.
    pool : Pool, optional
        Where `gpu_buffer` goes when it is no longer used.
    owned : bool
        Whether the memory is this package's: a caller's buffer is never destroyed, and may be destroyed any time.
    temporary : bool
        True for memory that lives for one call. Its bind groups are cached, because the next call is likely to reuse
        the buffer.

    Attributes
    ----------
    device, nbytes, owned, temporary
        As given.
    """

    def __init__(
        self,
        device: Device,
        nbytes: int,
        gpu_buffer: Any,
        pool: Pool | None = None,
        *,
        owned: bool = True,
        temporary: bool = False,
    ) -> None:
        self.device = device
        self.nbytes = nbytes
        self.owned = owned
        self.temporary = temporary
        self._gpu_buffer: Any = gpu_buffer
        self._pool = pool
        self._is_recorded = False
        self._finalizer: Any = None
        if pool is not None and not temporary:
            # It refers to the wgpu buffer, which thus is no garbage when this object is, as it may be in __del__.
            self._finalizer = weakref.finalize(self, pool.offer, gpu_buffer)
            self._finalizer.atexit = False

    @property
    def released(self) -> bool:
        """Whether the memory is gone: by `release`, with its device, or to the pool.

        Of an object in a cycle the garbage collector calls the finalizer, which gives the memory back, before it calls
        ``__del__`` of what refers to the object.
        """
        return self._gpu_buffer is None or self._is_collected() or self.device.released

    def _is_collected(self) -> bool:
        return self._finalizer is not None and not self._finalizer.alive

    @property
    def gpu_buffer(self) -> Any:
        """The wgpu buffer; only to be used under the device's lock, after a check of `released`."""
        return self._gpu_buffer

    @property
    def readable(self) -> bool:
        """Whether bytes can be copied from it to the host; a caller's buffer may lack the usage COPY_SRC.

        True for a released one, so that the copy is tried and says what is wrong.
        """
        gpu_buffer = self._gpu_buffer  # another thread may release it
        return self.owned or gpu_buffer is None or bool(gpu_buffer.usage & wgpu.BufferUsage.COPY_SRC)

    @property
    def mappable(self) -> bool:
        """Whether the host reaches the memory directly. Memory that a caller's submission may use is never mapped."""
        return self.owned and not self._is_recorded and self._gpu_buffer.usage & _MAPPABLE == _MAPPABLE

    def leave_to_wgpu(self) -> None:
        """Never pool, map or destroy the memory from now on: a caller will submit commands that use it, any time.

        wgpu keeps the memory as long as this object or such commands do.
        """
        finalizer, self._finalizer = self._finalizer, None
        if finalizer is not None:
            finalizer.detach()
        self._pool, self.temporary, self._is_recorded = None, False, True

    def end_mapping(self) -> None:
        """Undo what an error inside wgpu, or another who mapped the buffer, has left: submitting it would panic."""
        if self._gpu_buffer.map_state != "unmapped":
            cancel_mapping(self.device.gpu_device, self._gpu_buffer, None)
            if self._gpu_buffer.map_state != "unmapped":  # a wgpu without the private names
                self.release()
                raise ReleasedArrayError("the array's memory was lost when a transfer of it failed; make it anew")

    def release(self) -> None:
        """Give the memory back, or forget the caller's buffer. May be called again."""
        with self.device.section:
            gpu_buffer, self._gpu_buffer = self._gpu_buffer, None
            finalizer, self._finalizer = self._finalizer, None
            if finalizer is not None and finalizer.detach() is None:
                return  # the pool has it back already
            if gpu_buffer is not None and self._pool is not None and not self.device.forked:
                self._pool.give(gpu_buffer)


class Memory:
    """Makes the buffers of a device, under its lock.

    Parameters
    ----------
    gpu_device : wgpu.GPUDevice
        Where.
    forget : callable
        Called with each array's buffer before it is destroyed, so that nothing refers to it any longer.
    direct : bool
        Whether arrays' memory shall be reachable from the host, where the device was requested with what that takes:
        good where the device is a CPU; on a GPU the host's accesses may cross a bus, or go past its caches.

    Attributes
    ----------
    arrays : Pool
        Memory of arrays.
    temporaries : Pool
        Memory for the duration of a call.
    upload, readback : Pool
        Staging memory, mappable for writing and for reading.
    """

    def __init__(self, gpu_device: Any, forget: Callable[[Any], None], *, direct: bool) -> None:
        self._gpu_device = gpu_device
        self.direct = direct and MAPPABLE_FEATURE in gpu_device.features
        self._usage = _STORAGE | _MAPPABLE if self.direct else _STORAGE
        self.arrays = Pool(gpu_device, self._usage, _MAX_IDLE_ARRAYS, forget)
        self.temporaries = Pool(gpu_device, self._usage, _MAX_IDLE_TEMPORARIES, forget)
        self.upload = Pool(gpu_device, _UPLOAD, _MAX_IDLE_STAGING)
        self.readback = Pool(gpu_device, _READBACK, _MAX_IDLE_STAGING)

    def fresh(self, device: Device, nbytes: int) -> Buffer:
        """Return zero-filled memory."""
        return self._array(device, nbytes, lambda: create_buffer(self._gpu_device, nbytes, self._usage))

    def array(self, device: Device, nbytes: int) -> Buffer:
        """Return memory that may hold anything."""
        return self._array(device, nbytes, lambda: self.arrays.take(nbytes))

    def to_fill(self, device: Device, nbytes: int) -> tuple[Buffer, bool]:
        """Return memory to be filled from the host, and whether it is mapped for writing already.

        Mapping new memory when it is made spares filling it with zeros and waiting.
        """
        idle = self.arrays.take_idle(nbytes)
        if idle is not None:
            return Buffer(device, nbytes, idle, self.arrays), False
        mapped = self.direct and nbytes > 0
        make = lambda: self.arrays.create(nbytes, mapped=mapped)  # noqa: E731
        return self._array(device, nbytes, make), mapped

    def temporary(self, device: Device, nbytes: int) -> Buffer:
        """Return memory that may hold anything, for the duration of a call."""
        gpu_buffer = self._make_room(lambda: self.temporaries.take(nbytes))
        return Buffer(device, nbytes, gpu_buffer, self.temporaries, temporary=True)

    def recorded(self, device: Device, nbytes: int) -> Buffer:
        """Return zero-filled memory for commands that a caller submits."""
        gpu_buffer = self._make_room(lambda: create_buffer(self._gpu_device, nbytes, _STORAGE))
        buffer = Buffer(device, nbytes, gpu_buffer)
        buffer.leave_to_wgpu()
        return buffer

    def trim(self) -> None:
        """Destroy the idle buffers."""
        for pool in (self.arrays, self.temporaries, self.upload, self.readback):
            pool.clear()

    def close(self) -> None:
        """Destroy the idle buffers, and from now on all that come back."""
        for pool in (self.arrays, self.temporaries, self.upload, self.readback):
            pool.close()

    def _array(self, device: Device, nbytes: int, make: Callable[[], Any]) -> Buffer:
        return Buffer(device, nbytes, self._make_room(make), self.arrays)

    def _make_room(self, make: Callable[[], Any]) -> Any:
        try:
            return make()
        except DeviceMemoryError:
            self.trim()
            return make()
