"""Whether a device can be used, and its end."""

from __future__ import annotations

import os
import threading
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self, cast

from .._arguments import instance
from ..errors import ArrayTypeError, DeviceReleasedError, ReleasedArrayError
from .adapters import AdapterDescription
from .liveness import Fault, Liveness
from .memory import Buffer

if TYPE_CHECKING:
    from .gpu import Device

__all__ = ["Lifetime", "Use"]


_begun: weakref.WeakSet[Lifetime] = weakref.WeakSet()


def _renew_locks() -> None:
    """Let a forked child reach the check that refuses it, though a thread of its parent held a lock."""
    for lifetime in _begun:
        lifetime.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


class Use:
    """Holds a device's lock after a `check`, and names a device that turns out to be lost.

    It is a class because generators would cost a small call some ten microseconds.
    """

    __slots__ = ("_buffers", "_lifetime")

    def __init__(self, lifetime: Lifetime, buffers: tuple[Buffer, ...] = ()) -> None:
        self._lifetime = lifetime
        self._buffers = buffers

    def __enter__(self) -> None:
        self._lifetime.lock.acquire()
        try:
            self._lifetime.check(*self._buffers)
        except BaseException:
            self._lifetime.lock.release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # Any error: wgpu-py's are of many types then.
            if isinstance(error, Exception) and self._lifetime.lost():
                raise DeviceReleasedError(
                    f"the wgpu device of {self._lifetime!r} was destroyed, or the driver gave it up; open another with "
                    "dmlgpu.Device()"
                ) from error
        finally:
            self._lifetime.lock.release()


class Lifetime:
    """What `Device` is apart from its work: whose it is, which process opened it, and whether it still works."""

    def _begin(self, gpu_device: Any, description: AdapterDescription, *, owned: bool) -> None:
        self.gpu_device: Any = gpu_device
        self.description = description
        self.owned = owned
        self.lock = threading.RLock()
        self._process = os.getpid()
        self._released = False
        self._liveness = Liveness(gpu_device)
        self._wrapped: weakref.WeakValueDictionary[int, Buffer] = weakref.WeakValueDictionary()
        _begun.add(self)

    @property
    def summary(self) -> str:
        """The adapter's one-line summary, as wgpu gives it."""
        return self.description.summary

    @property
    def released(self) -> bool:
        """Whether `release` was called, or the device was opened by another process than this one."""
        return self._released or self.forked

    @property
    def forked(self) -> bool:
        """Whether the device was opened by another process than this one, where nothing below works any longer."""
        return self._process != os.getpid()

    def __repr__(self) -> str:
        return f"<dmlgpu.Device {self.summary!r}{' (released)' if self.released else ''}>"

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
        with self.lock:
            if not self.released:
                self._released = True
                self._end()
                if self.owned:
                    self.gpu_device.destroy()

    def _end(self) -> None:
        """Give back what the device keeps for its work."""

    def lost(self) -> bool:
        """Whether the device cannot be used any longer: released, destroyed below, or given up by the driver."""
        with self.lock:
            return self.released or self._liveness.lost()

    def fault(self, gpu_buffer: Any) -> Fault | None:
        """Return why a caller's wgpu.GPUBuffer cannot be used on this device now, or None if it can."""
        with self.lock:
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
        if not self.owned and self._liveness.lost():
            raise DeviceReleasedError(f"the wgpu device of {self!r} was destroyed or lost; wrap another one")
        for buffer in buffers:
            instance(buffer, "buffer", Buffer, "give what allocate returned")
            if buffer.device is not self:
                raise ArrayTypeError(f"the array is on {buffer.device!r}, not on {self!r}; copy it there through NumPy")
            if buffer.gpu_buffer is None:
                raise ReleasedArrayError("the array's memory was released")
            if not buffer.owned:
                self._liveness.check(buffer.gpu_buffer)
            else:
                buffer.end_mapping()
