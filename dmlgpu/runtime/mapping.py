"""Mapping a buffer's memory into this process, and never leaving it half mapped.

A buffer that is mapped, or about to be, ends the process when it is submitted. So a mapping that was begun is waited
for and undone whatever happens meanwhile: Ctrl-C takes effect after that.
"""

from __future__ import annotations

from typing import Any

from ..errors import DeviceError

__all__ = ["mapped", "no_access"]


def no_access(error: Exception) -> DeviceError:
    """Return the error for a mapping that failed."""
    return DeviceError(f"the device gives no access to its memory: {error}; open another one with dmlgpu.Device()")


class mapped:
    """Wait for a mapping that was begun, and undo it at the end of the block.

    Parameters
    ----------
    gpu_buffer : wgpu.GPUBuffer
        What is being mapped.
    promise : wgpu.GPUPromise
        What ``map_async`` returned.

    Raises
    ------
    DeviceError
        If the device does not give access to its memory, being lost for instance.
    """

    __slots__ = ("_gpu_buffer", "_promise")

    def __init__(self, gpu_buffer: Any, promise: Any) -> None:
        self._gpu_buffer = gpu_buffer
        self._promise = promise

    def __enter__(self) -> None:
        try:
            _wait(self._promise)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exc_info: object) -> None:
        if self._gpu_buffer.map_state == "mapped":
            self._gpu_buffer.unmap()


def _wait(promise: Any) -> None:
    interruption: BaseException | None = None
    while True:
        try:
            promise.sync_wait()
            break
        except Exception as error:
            raise no_access(error) from error
        except BaseException as error:  # KeyboardInterrupt: the device is done in a moment
            interruption = error
    if interruption is not None:
        raise interruption
