"""Buffers, made anew or used again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import wgpu

from ..errors import DeviceMemoryError, shown

__all__ = ["Pool", "create_buffer", "is_out_of_memory", "size_class"]

_MAX_IDLE = 32
"""Idle buffers of a pool at most, however small."""


def is_out_of_memory(error: wgpu.GPUError) -> bool:
    """Whether an error says that memory is exhausted: some drivers' do not come as the type of that name."""
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
        The bytes that it shall have where the device allows so many.
    mapped : bool
        Whether it is mapped for writing.

    Raises
    ------
    DeviceMemoryError
        If the device's largest buffer is smaller, or its memory is exhausted.
    """
    limit: int = gpu_device.limits["max-buffer-size"] // 4 * 4
    size = max(-(-nbytes // 4) * 4, min(size, limit), 16)
    if size > limit:
        raise DeviceMemoryError(
            f"an array of {shown(nbytes)} bytes is larger than the device's largest buffer ({limit} bytes): split it, "
            "or choose another device"
        )
    try:
        return gpu_device.create_buffer(size=size, usage=usage, mapped_at_creation=mapped)
    except wgpu.GPUError as error:
        if not is_out_of_memory(error):
            raise
        raise DeviceMemoryError(
            f"the device has no room for {nbytes} bytes: release arrays that are no longer needed"
        ) from error


def size_class(nbytes: int) -> int:
    """Return the size of the pooled buffer that serves a request: few sizes, each at most an eighth too large."""
    step = max(256, 1 << max(0, nbytes.bit_length() - 4))
    return -(-nbytes // step) * step


class Pool:
    """Idle wgpu buffers of one usage, used under the device's lock.

    A buffer belongs to the pool while it is idle, and to who took it otherwise; what is never given back is garbage
    collected like any other wgpu buffer. It holds what its last user left in it.

    Parameters
    ----------
    gpu_device : wgpu.GPUDevice
        Where the buffers are.
    usage : int
        Their usage.
    max_idle_bytes : int
        The bytes of idle buffers at most; those idle for longest are destroyed first.
    forget : callable, optional
        Called with each buffer before it is destroyed, so that nothing refers to it any longer.

    Attributes
    ----------
    created : int
        How many buffers were made because none fitted.
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
