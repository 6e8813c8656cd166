"""Whether a device can be used, and its end."""

from __future__ import annotations

import os
import weakref
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self, cast

import wgpu

from ..arguments import instance
from ..errors import (
    ArrayTypeError,
    DeviceError,
    DeviceLostError,
    DeviceMemoryError,
    DeviceReleasedError,
    DmlGpuError,
    ReleasedArrayError,
    said,
)
from ..sections import Section
from . import wgpu_private
from .adapters import AdapterDescription
from .liveness import Fault, Liveness
from .memory import Buffer, is_out_of_memory
from .wgpu_private import end_calls_before_destroy

if TYPE_CHECKING:
    from .gpu import Device

__all__ = ["Lifetime", "Use", "named"]


def named(error: wgpu.GPUError, summary: str) -> DmlGpuError:
    """Return this package's error for one of wgpu's on a device that is not lost."""
    if is_out_of_memory(error):
        return DeviceMemoryError(
            f"the device {summary!r} is out of memory: {said(error)}; release arrays that are no longer needed"
        )
    return DeviceError(
        f"wgpu refuses what the device {summary!r} is to do, which is a mistake of this package, of wgpu or of the "
        f"driver: {said(error)}"
    )


class Use:
    """A device's section after a `check`; gives errors of wgpu a name of this package, above all that of a lost device.

    It is a class because generators would cost a small call some ten microseconds.
    """

    __slots__ = ("_buffers", "_lifetime")

    def __init__(self, lifetime: Lifetime, buffers: tuple[Buffer, ...] = ()) -> None:
        self._lifetime = lifetime
        self._buffers = buffers

    def __enter__(self) -> None:
        self._lifetime.section.__enter__()
        try:
            self._lifetime.check(*self._buffers)
        except BaseException:
            self._lifetime.section.__exit__()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if isinstance(error, Exception):
                self._rename(error)
        finally:
            self._lifetime.section.__exit__()

    def _rename(self, error: Exception) -> None:
        # Whatever the error is, as wgpu-py's are of many types where the device is lost.
        if self._lifetime.lost() and not isinstance(error, DeviceReleasedError):
            self._lifetime.check()
        if isinstance(error, wgpu.GPUError):
            raise named(error, self._lifetime.summary) from error


class Lifetime:
    """What `Device` is apart from its work: whose it is, which process opened it, and whether it still works."""

    def _begin(self, gpu_device: Any, description: AdapterDescription, *, owned: bool) -> None:
        self.gpu_device: Any = gpu_device
        self.description = description
        self.owned = owned
        self.section = Section()
        self._process = os.getpid()
        self._released = False
        self._lost = False
        self._liveness = Liveness(gpu_device)
        self._wrapped: weakref.WeakValueDictionary[int, Buffer] = weakref.WeakValueDictionary()
        end_calls_before_destroy(gpu_device, self)

    @property
    def lock(self) -> RLock:
        """Held while a call records, submits and reads back; hold it to make several calls one."""
        return self.section.lock

    @property
    def summary(self) -> str:
        """The adapter's one-line summary, as wgpu gives it."""
        return self.description.summary

    @property
    def implementation(self) -> str:
        """The implementation of WebGPU below, with its version."""
        return wgpu_private.implementation()

    @property
    def released(self) -> bool:
        """Whether `release` was called, the device is known to be lost, or another process than this one opened it."""
        return self._released or self._lost or self.forked

    @property
    def is_lost(self) -> bool:
        """Whether the device is known to be lost; `lost` asks wgpu."""
        return self._lost and not self._released

    @property
    def forked(self) -> bool:
        """Whether the device was opened by another process than this one, where nothing below works any longer."""
        return self._process != os.getpid()

    def __repr__(self) -> str:
        state = " (lost)" if self._lost else " (released)" if self.released else ""
        return f"<dmlgpu.Device {self.summary!r}{state}>"

    def __reduce__(self) -> NoReturn:
        raise ArrayTypeError(
            "a dmlgpu.Device cannot be copied or pickled; open one in each process with dmlgpu.Device()"
        )

    def __enter__(self) -> Self:
        self.check()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def release(self) -> None:
        """Give back the device and the memory of all its arrays; a caller's device stays. May be called again."""
        with self.section:
            if not self._released and not self.forked:
                self._released = True
                try:
                    self._end()
                finally:
                    if self.owned:
                        self.gpu_device.destroy()

    def mark_lost(self) -> None:
        """Remember that the device is being destroyed, so that nobody waits for it."""
        self._lost = not self._released

    def _end(self) -> None:
        """Give back what the device keeps for its work."""

    def lost(self) -> bool:
        """Whether the device cannot be used any longer: released, destroyed below, or given up by the driver."""
        with self.section:
            if not self.released and self._liveness.lost():
                self._lost = True
            return self.released

    def fault(self, gpu_buffer: Any) -> Fault | None:
        """Return why a caller's wgpu.GPUBuffer cannot be used on this device now, or None if it can."""
        with self.section:
            return self._liveness.fault(gpu_buffer)

    def wrap_buffer(self, gpu_buffer: Any) -> Buffer:
        """Return the memory that is a caller's wgpu.GPUBuffer; the same for the same buffer.

        Raises
        ------
        ArrayTypeError
            If it is no buffer of this device.
        ArgumentError
            If it lacks the usage STORAGE or is mapped.
        ReleasedArrayError, DeviceReleasedError
            If the buffer, or the device, was destroyed.
        """
        with self.use():
            self._liveness.check(gpu_buffer)
            found = self._wrapped.get(id(gpu_buffer))
            if found is None or found.released:
                found = self._wrapped[id(gpu_buffer)] = Buffer(
                    cast("Device", self), gpu_buffer.size, gpu_buffer, owned=False
                )
            return found

    def use(self, *buffers: Buffer) -> Use:
        """Return the context in which to use the device and buffers, see `Use`."""
        return Use(self, buffers)

    def check(self, *buffers: Buffer) -> None:
        """Refuse what wgpu would panic on, or wait for forever."""
        if self._process != os.getpid():
            raise DeviceReleasedError(
                f"{self!r} was opened by process {self._process}; a GPU does not survive os.fork: start processes "
                "with multiprocessing's 'spawn' method and open a device in each"
            )
        if self._released:
            raise DeviceReleasedError(f"{self!r} cannot be used any longer; open another with dmlgpu.Device()")
        if self._lost or (not self.owned and self.lost()):
            raise DeviceLostError(
                f"the wgpu device of {self!r} was destroyed or lost, and its arrays with it: "
                f"{'open another with dmlgpu.Device()' if self.owned else 'wrap another one'} and make them anew"
            )
        for buffer in buffers:
            instance(buffer, "buffer", Buffer, "give what allocate returned")
            if buffer.device is not self:
                raise ArrayTypeError(f"the array is on {buffer.device!r}, not on {self!r}; copy it there through NumPy")
            if buffer.gpu_buffer is None:
                raise ReleasedArrayError(
                    "the array's memory was released: make a new array, and release it after its use"
                )
            if not buffer.owned:
                self._liveness.check(buffer.gpu_buffer)
            else:
                buffer.end_mapping()
