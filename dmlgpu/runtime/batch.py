"""Several runs, one submission."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .execute import Executor

if TYPE_CHECKING:
    from .gpu import Device

__all__ = ["Batch"]


class Batch:
    """Holds a device's lock, and lets what runs meanwhile wait until bytes are read or written, or until the end.

    After an error, what was not submitted is dropped. Batches don't nest.
    """

    __slots__ = ("_device", "_executor")

    def __init__(self, device: Device, executor: Executor) -> None:
        self._device = device
        self._executor = executor

    def __enter__(self) -> None:
        self._device.lock.acquire()
        try:
            self._device.check()
            self._executor.begin_batch()
        except BaseException:
            self._device.lock.release()
            raise

    def __exit__(self, kind: type[BaseException] | None, *exc_info: object) -> None:
        try:
            self._executor.end_batch(drop=kind is not None)
        finally:
            self._device.lock.release()
