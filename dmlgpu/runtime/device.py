"""Which device a call means, and the names of this package that the faces use."""

from __future__ import annotations

import os
from typing import Any

import wgpu

from ..sections import Section
from .adapters import ENVIRONMENT_VARIABLE, check_choice, devices, select_adapter
from .gpu import Device
from .memory import Buffer
from .opening import warn_of_loss
from .wgpu_private import check_process

__all__ = ["Buffer", "Device", "default_device", "devices", "resolve_device", "select_adapter"]

_open: dict[str, Device] = {}
_chosen: dict[str | int, Device] = {}
_opening = Section()


def default_device() -> Device:
    """Return the device that calls without ``device=`` use, opened when first asked for.

    It is what ``DMLGPU_ADAPTER`` names (a substring of an adapter's summary, or its index), else the best adapter.

    Raises
    ------
    NoAdapterError, AdapterNotFoundError
        If there is no such adapter.
    """
    return resolve_device(None)


def resolve_device(device: Any) -> Device:
    """Return the device that an argument ``device=`` means; each adapter named is opened once, and anew if lost.

    Parameters
    ----------
    device : Device, wgpu.GPUDevice, str, int or None
        A device, or which adapter to open.

    Raises
    ------
    ArrayTypeError
        If `device` is of another type.
    DeviceReleasedError
        If this process was forked from one that has used a device.

    Warns
    -----
    DeviceLostWarning
        If the device was lost and another one is opened in its place.
    """
    if isinstance(device, Device):
        return device
    if isinstance(device, wgpu.GPUDevice):
        return Device.wrap(device)
    wanted = check_choice(device, "device", "give a dmlgpu.Device, an adapter's index, or a part of its summary")
    choice = os.environ.get(ENVIRONMENT_VARIABLE, "") if wanted is None else wanted
    found = _chosen.get(choice)
    if found is not None and not found.released:
        return found
    check_process()  # before a lock that another thread may have held when this process was forked
    lost = None
    with _opening:
        # Asking wgpu for its adapters takes long, so a choice made once is kept.
        found = _chosen.get(choice)
        if found is None or found.released:
            adapter = select_adapter(wanted)
            found = before = _open.get(adapter.summary)
            if found is None or found.released:
                found = _open[adapter.summary] = Device(adapter)
                lost = before
            _chosen[choice] = found
    if lost is not None and lost.is_lost:
        warn_of_loss(lost.summary)
    return found
