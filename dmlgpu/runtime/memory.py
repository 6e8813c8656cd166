"""Buffers, and the way of bytes between NumPy and the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import wgpu
from numpy.typing import NDArray

from ..errors import DeviceMemoryError
from .execute import submit

if TYPE_CHECKING:
    from .device import Device

__all__ = ["CHUNK", "Buffer", "Staging", "create_buffer", "is_out_of_memory", "read", "write"]

CHUNK = 64 * 2**20
"""Bytes in flight between host and device at most."""

_STORAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
_READBACK = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST


def _round_up(nbytes: int) -> int:
    return max(-(-nbytes // 4) * 4, 16)


def is_out_of_memory(error: wgpu.GPUError) -> bool:
    """Whether an error says that memory is exhausted: some drivers' do not come as the type of that name."""
    return isinstance(error, wgpu.GPUOutOfMemoryError) or "memory" in str(error).casefold()


def create_buffer(gpu_device: Any, nbytes: int, usage: int = _STORAGE) -> Any:
    """Return a zero-filled wgpu buffer of at least `nbytes` bytes, a multiple of 4.

    Raises
    ------
    DeviceMemoryError
        If the device's largest buffer is smaller, or its memory is exhausted.
    """
    limit = gpu_device.limits["max-buffer-size"]
    size = _round_up(nbytes)
    if size > limit:
        raise DeviceMemoryError(
            f"an array of {nbytes} bytes is larger than the device's largest buffer ({limit} bytes): split it, or "
            "choose another device"
        )
    try:
        return gpu_device.create_buffer(size=size, usage=usage)
    except wgpu.GPUError as error:
        if not is_out_of_memory(error):
            raise
        raise DeviceMemoryError(
            f"the device has no room for {nbytes} bytes: release arrays that are no longer needed"
        ) from error


class Buffer:
    """Memory on a device, of this package or of the caller's.

    Parameters
    ----------
    device : Device
        Where it is.
    nbytes : int
        Its size in bytes.
    gpu_buffer : wgpu.GPUBuffer, optional
        The caller's buffer, which stays the caller's; a new one by default.

    Attributes
    ----------
    device, nbytes
        As given.
    owned : bool
        Whether the memory is this package's: a caller's buffer is never destroyed, and may be destroyed any time.
    """

    def __init__(self, device: Device, nbytes: int, gpu_buffer: Any = None) -> None:
        self.device = device
        self.nbytes = nbytes
        self.owned = gpu_buffer is None
        self._gpu_buffer: Any = create_buffer(device.gpu_device, nbytes) if gpu_buffer is None else gpu_buffer

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

    def release(self) -> None:
        """Give the memory back, or forget the caller's buffer. May be called again."""
        with self.device.lock:
            if self._gpu_buffer is not None:
                if self.owned:
                    self._gpu_buffer.destroy()
                self._gpu_buffer = None


class Staging:
    """A reused buffer for reading back."""

    def __init__(self, gpu_device: Any) -> None:
        self._gpu_device = gpu_device
        self._buffer: Any = None

    def get(self, nbytes: int) -> Any:
        """Return a mappable buffer of at least `nbytes` bytes (at most `CHUNK`)."""
        if self._buffer is None or self._buffer.size < nbytes:
            if self._buffer is not None:
                self._buffer.destroy()
            self._buffer = create_buffer(self._gpu_device, min(CHUNK, 1 << (nbytes - 1).bit_length()), _READBACK)
        return self._buffer


def _bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


def write(gpu_device: Any, buffer: Any, offset: int, data: NDArray[Any]) -> None:
    """Write a C-contiguous array's bytes at a multiple of 4 bytes; bytes up to the next multiple of 4 become 0."""
    source = _bytes_of(data)
    for start in range(0, source.size, CHUNK):
        part = source[start : start + CHUNK]
        whole = part.size // 4 * 4
        if whole:
            gpu_device.queue.write_buffer(buffer, offset + start, part, 0, whole)
        if whole < part.size:
            tail = np.zeros(4, np.uint8)
            tail[: part.size - whole] = part[whole:]
            gpu_device.queue.write_buffer(buffer, offset + start + whole, tail)
        if start + CHUNK < source.size:
            submit(gpu_device, [])  # lets wgpu reuse its staging memory


def _stage(gpu_device: Any, buffer: Any, offset: int, staging: Any, nbytes: int) -> int:
    """Copy from the multiple of 4 at or before `offset` into a staging buffer; return the bytes skipped."""
    skip = offset % 4
    encoder = gpu_device.create_command_encoder()
    encoder.copy_buffer_to_buffer(buffer, offset - skip, staging, 0, -(-(nbytes + skip) // 4) * 4)
    submit(gpu_device, [encoder.finish()])
    return skip


def _take(staging: Any, skip: int, target: NDArray[np.uint8]) -> None:
    mapped = staging.read_mapped(0, -(-(target.size + skip) // 4) * 4, copy=False)
    target[:] = np.frombuffer(mapped, np.uint8)[skip : skip + target.size]


def read(gpu_device: Any, staging: Staging, buffer: Any, offset: int, out: NDArray[Any]) -> None:
    """Fill a C-contiguous array with a buffer's bytes from `offset` on."""
    target = _bytes_of(out)
    step = CHUNK - 4
    for start in range(0, target.size, step):
        part = target[start : start + step]
        stage = staging.get(part.size + 4)
        skip = _stage(gpu_device, buffer, offset + start, stage, part.size)
        stage.map_sync(wgpu.MapMode.READ)
        try:
            _take(stage, skip, part)
        finally:
            stage.unmap()


class Readback:
    """A copy of a buffer's bytes under way to the host."""

    def __init__(self, gpu_device: Any, buffer: Any, offset: int, nbytes: int) -> None:
        self._nbytes = nbytes
        self._staging = create_buffer(gpu_device, nbytes + 4, _READBACK)
        self._skip = _stage(gpu_device, buffer, offset, self._staging, nbytes)

    async def into(self, out: NDArray[Any]) -> None:
        """Wait without blocking the event loop, then fill a C-contiguous array."""
        await self._staging.map_async(wgpu.MapMode.READ)
        _take(self._staging, self._skip, _bytes_of(out))
        self._staging.unmap()
        self._staging.destroy()
