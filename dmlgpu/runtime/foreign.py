"""Checks of a caller's device and buffers, which find first what wgpu would end the process on.

A destroyed buffer that a recorded command refers to makes ``queue.submit`` abort. wgpu does not say whether a buffer is
destroyed, but making a bind group with it fails then, and costs some ten microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import wgpu

from ..errors import (
    ArgumentError,
    ArrayTypeError,
    DeviceLostError,
    DmlGpuError,
    ReleasedArrayError,
    said,
    with_type,
)
from .wgpu_private import owner_of

__all__ = ["Fault", "FaultKind", "Liveness"]


class FaultKind(Enum):
    """The kinds of faults of a buffer."""

    TYPE = "type"
    DEVICE = "device"
    USAGE = "usage"
    MAPPED = "mapped"
    DESTROYED = "destroyed"
    LOST = "lost"
    OTHER = "other"


@dataclass(frozen=True)
class Fault:
    """Why a buffer cannot be used.

    Attributes
    ----------
    kind : FaultKind
        What is wrong.
    text : str
        The same in words that follow "the buffer": ``"was destroyed"``, and the way out.
    """

    kind: FaultKind
    text: str


_ERRORS: dict[FaultKind, type[DmlGpuError]] = {
    FaultKind.TYPE: ArrayTypeError,
    FaultKind.DEVICE: ArrayTypeError,
    FaultKind.USAGE: ArgumentError,
    FaultKind.MAPPED: ArgumentError,
    FaultKind.DESTROYED: ReleasedArrayError,
    FaultKind.LOST: DeviceLostError,
    FaultKind.OTHER: ArgumentError,
}


def _usage_names(usage: int) -> str:
    names = [name for name in dir(wgpu.BufferUsage) if name.isupper() and usage & getattr(wgpu.BufferUsage, name)]
    return " | ".join(names) or "0"


class Liveness:
    """Asks wgpu about a device and its buffers."""

    def __init__(self, gpu_device: Any) -> None:
        self._gpu_device = gpu_device
        entry = {"binding": 0, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": "storage"}}
        self._one_buffer = gpu_device.create_bind_group_layout(entries=[entry])
        self._nothing = gpu_device.create_bind_group_layout(entries=[])

    def lost(self) -> bool:
        """Whether the device was destroyed, or the driver gave it up."""
        try:
            self._gpu_device.create_bind_group(layout=self._nothing, entries=[])
        except wgpu.GPUError as error:
            return "lost" in str(error)  # and not out of memory, say
        return False

    def check(self, buffer: Any) -> None:
        """Raise the array face's error for the `fault` of a buffer, if it has one."""
        fault = self.fault(buffer)
        if fault is not None:
            raise _ERRORS[fault.kind](f"the wgpu buffer {fault.text}")

    def fault(self, buffer: Any) -> Fault | None:
        """Return why a buffer cannot be a storage buffer of the device now, or None if it can."""
        if not isinstance(buffer, wgpu.GPUBuffer):
            return Fault(FaultKind.TYPE, f"is {with_type(buffer)}; give a wgpu.GPUBuffer")
        owner = owner_of(buffer)
        if owner is not None and owner is not self._gpu_device:
            return Fault(FaultKind.DEVICE, "belongs to another wgpu device; copy it there, or use its own device")
        if not buffer.usage & wgpu.BufferUsage.STORAGE:
            way_out = "create it with wgpu.BufferUsage.STORAGE too"
            if buffer.usage & (wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.MAP_WRITE):
                # Most devices make no mappable buffer with that usage.
                way_out = "copy it to or from one with wgpu.BufferUsage.STORAGE, as mappable buffers can only be copied"
            return Fault(FaultKind.USAGE, f"has usage {_usage_names(buffer.usage)}; {way_out}")
        if buffer.map_state != "unmapped":
            return Fault(FaultKind.MAPPED, f"has map_state {buffer.map_state!r}; call its unmap() first")
        if buffer.size < 4:
            return Fault(FaultKind.OTHER, f"has size {buffer.size}; create one of at least 4 bytes")
        try:
            resource = {"buffer": buffer, "offset": 0, "size": 4}
            self._gpu_device.create_bind_group(layout=self._one_buffer, entries=[{"binding": 0, "resource": resource}])
        except wgpu.GPUError as error:
            if self.lost():
                return Fault(FaultKind.LOST, "is on a device that was destroyed or lost; create it on another one")
            if "destroyed" in str(error):
                return Fault(FaultKind.DESTROYED, "was destroyed; create another one")
            return Fault(FaultKind.OTHER, f"cannot be bound: {said(error)}")
        return None
