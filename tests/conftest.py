"""Devices for the suite. A missing adapter is a failure, never a skip.

With ``DMLGPU_TEST_LIMITS=default`` the whole suite runs on a device that was requested with WebGPU's default limits.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from dmlgpu.runtime import device as device_module
from dmlgpu.runtime.device import Device, default_device
from dmlgpu.runtime.wgpu_private import DEFAULT_LIMITS

# What this machine's user has measured by `dmlgpu tune` changes no test.
os.environ["DMLGPU_TUNING"] = "off"

# A shell without job control has its background jobs ignore SIGINT and SIGQUIT, and nohup SIGHUP. The processes that
# tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
for _name in ("SIGHUP", "SIGQUIT", "SIGTERM"):
    if hasattr(signal, _name):
        signal.signal(getattr(signal, _name), signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def _limits() -> None:
    """Open the default device with the limits that DMLGPU_TEST_LIMITS asks for, before any test does."""
    wanted = os.environ.get("DMLGPU_TEST_LIMITS", "")
    assert wanted in ("", "default"), f"DMLGPU_TEST_LIMITS is {wanted!r}; it is 'default' or not set"
    if wanted:
        device = Device(limits=DEFAULT_LIMITS)
        device_module._open[device.summary] = device
        assert default_device() is device


@pytest.fixture(scope="session")
def device() -> Device:
    """Return the device that DMLGPU_ADAPTER chooses."""
    return default_device()


@pytest.fixture(scope="session")
def modest_device(device: Device) -> Iterator[Device]:
    """Return a device on the same adapter with WebGPU's default limits."""
    with Device(device.description, limits=DEFAULT_LIMITS) as modest:
        yield modest


@pytest.fixture
def fresh_plans() -> Iterator[None]:
    """Have the device plan anew, for a test that changes constants which plans depend on."""
    device_module._plan.cache_clear()
    yield
    device_module._plan.cache_clear()
