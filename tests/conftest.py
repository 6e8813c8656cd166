"""Devices for the suite. A missing adapter is a failure, never a skip."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dmlgpu.runtime.backend import DEFAULT_LIMITS
from dmlgpu.runtime.device import Device, default_device


@pytest.fixture(scope="session")
def device() -> Device:
    """Return the device that DMLGPU_ADAPTER chooses."""
    return default_device()


@pytest.fixture(scope="session")
def modest_device(device: Device) -> Iterator[Device]:
    """Return a device on the same adapter with WebGPU's default limits."""
    with Device(device.description, limits=DEFAULT_LIMITS) as modest:
        yield modest
