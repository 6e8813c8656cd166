"""Mapping a buffer's memory into this process, and never leaving it half mapped.

A buffer that is mapped, or about to be, ends the process when it is submitted. So a mapping that was begun is undone
whatever happens meanwhile, and all of this happens in a `Section`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import DeviceError, DeviceLostError
from ..sections import TICK, let_interrupts_through
from .wgpu_private import ask_for_news, cancel_mapping, settled

__all__ = ["check_access", "mapped", "no_access"]


def no_access(error: Exception) -> DeviceError:
    """Return the error for a mapping that failed."""
    return DeviceError(f"the device gives no access to its memory: {error}; open another one with dmlgpu.Device()")


def check_access(lost: Callable[[], bool]) -> None:
    """Raise an error if the device is lost: asking for its memory would end the process."""
    if lost():
        raise DeviceLostError(
            "the wgpu device was destroyed or lost while its memory was awaited; open another with dmlgpu.Device()"
        )


class mapped:
    """Wait for a mapping that was begun, and undo it at the end of the block.

    Parameters
    ----------
    gpu_device : wgpu.GPUDevice
        Where the buffer is.
    gpu_buffer : wgpu.GPUBuffer
        What is being mapped.
    promise : wgpu.GPUPromise
        What ``map_async`` returned.
    lost : callable
        Whether the device is lost, so that there is nothing to wait for.

    Raises
    ------
    DeviceError
        If the device does not give access to its memory, being lost for instance.
    """

    __slots__ = ("_gpu_buffer", "_gpu_device", "_lost", "_promise")

    def __init__(self, gpu_device: Any, gpu_buffer: Any, promise: Any, lost: Callable[[], bool]) -> None:
        self._gpu_device = gpu_device
        self._gpu_buffer = gpu_buffer
        self._promise = promise
        self._lost = lost

    def __enter__(self) -> None:
        try:
            self._wait()
        except BaseException:
            cancel_mapping(self._gpu_device, self._gpu_buffer, self._promise)
            raise

    def __exit__(self, *exc_info: object) -> None:
        if self._gpu_buffer.map_state == "mapped":
            try:
                self._gpu_buffer.unmap()
            except BaseException:
                cancel_mapping(self._gpu_device, self._gpu_buffer, self._promise)
                raise

    def _wait(self) -> None:
        let_interrupts_through()
        while not settled(self._promise, TICK):
            let_interrupts_through()
            check_access(self._lost)
            ask_for_news(self._gpu_device)
        try:
            self._promise.sync_wait()
        except Exception as error:
            raise no_access(error) from error
