"""Memory on a device: arrays', and what calls use for a moment."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import wgpu

from ..errors import DeviceMemoryError, ReleasedArrayError
from .executor import Executor
from .pool import Pool, create_buffer, is_out_of_memory
from .wgpu_private import MAPPABLE_FEATURE, cancel_mapping

if TYPE_CHECKING:
    from .gpu import Device

__all__ = ["CHUNK", "Buffer", "Memory", "is_out_of_memory"]

CHUNK = 16 * 2**20
"""Bytes of a staging buffer at most. Twice as many are in flight between host and device."""

_MAX_IDLE_ARRAYS = 256 * 2**20
_MAX_IDLE_TEMPORARIES = 256 * 2**20
_MAX_IDLE_STAGING = 4 * CHUNK

_STORAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
_MAPPABLE = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.MAP_WRITE
_UPLOAD = wgpu.BufferUsage.MAP_WRITE | wgpu.BufferUsage.COPY_SRC
_READBACK = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST


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
        Whether what is prepared for the memory is worth keeping, because it goes back to its pool soon.

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
        self._finalizer: Any = None
        if pool is not None and not temporary:
            # It refers to the wgpu buffer, which thus is no garbage when this object is, as it may be in __del__.
            self._finalizer = weakref.finalize(self, pool.offer, gpu_buffer)
            self._finalizer.atexit = False

    @property
    def released(self) -> bool:
        """Whether the memory is gone, by `release` or with its device."""
        return self._gpu_buffer is None or self.device.released

    @property
    def gpu_buffer(self) -> Any:
        """The wgpu buffer; only to be used under the device's lock, after a check of `released`."""
        return self._gpu_buffer

    @property
    def readable(self) -> bool:
        """Whether bytes can be copied from it to the host; a caller's buffer may lack the usage COPY_SRC."""
        return self.owned or bool(self._gpu_buffer.usage & wgpu.BufferUsage.COPY_SRC)

    @property
    def mappable(self) -> bool:
        """Whether the host reaches the memory directly. A caller's buffer is never mapped, whatever its usage."""
        return self.owned and self._gpu_buffer.usage & _MAPPABLE == _MAPPABLE

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
            if self._finalizer is not None:
                self._finalizer.detach()
            if gpu_buffer is not None and self._pool is not None and not self.device.forked:
                self._pool.give(gpu_buffer)


class Memory:
    """Makes the buffers of a device, under its lock.

    Parameters
    ----------
    gpu_device : wgpu.GPUDevice
        Where.
    executor : Executor
        Submits what refers to a buffer before that is destroyed.
    direct : bool
        Whether arrays' memory shall be reachable from the host, where the device was requested with what that takes:
        good where host and device share their memory, bad where each access from the host crosses a bus.

    Attributes
    ----------
    arrays : Pool
        Memory of arrays.
    temporaries : Pool
        Memory for the duration of a call.
    upload, readback : Pool
        Staging memory, mappable for writing and for reading.
    """

    def __init__(self, gpu_device: Any, executor: Executor, *, direct: bool) -> None:
        self._gpu_device = gpu_device
        self.direct = direct and MAPPABLE_FEATURE in gpu_device.features
        self._usage = _STORAGE | _MAPPABLE if self.direct else _STORAGE
        self.arrays = Pool(gpu_device, self._usage, _MAX_IDLE_ARRAYS, executor.forget)
        self.temporaries = Pool(gpu_device, self._usage, _MAX_IDLE_TEMPORARIES, executor.forget)
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
        gpu_buffer = self.temporaries.take_idle(nbytes)
        if gpu_buffer is None:
            gpu_buffer = self._make_room(lambda: self.temporaries.create(nbytes))
        return Buffer(device, nbytes, gpu_buffer, self.temporaries, temporary=True)

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
