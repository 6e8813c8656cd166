"""Devices for the suite. A missing adapter is a failure, never a skip.

With ``DMLGPU_TEST_LIMITS=default`` the whole suite runs on a device that was requested with WebGPU's default limits.
With ``--share 2/3`` only the second third of the tests that are marked `combinations` runs, and all others.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import settings

from dmlgpu.cli import console
from dmlgpu.runtime import device as device_module
from dmlgpu.runtime.device import Device, default_device

# What this machine's user has measured by `dmlgpu tune` changes no test.
os.environ["DMLGPU_TUNING"] = "off"

# No test depends on how long it takes: a busy machine makes any example slow.
settings.register_profile("without deadlines", deadline=None)
settings.load_profile("without deadlines")

# Nor do lines of progress come that no test asks for: on a slow machine one of half a minute would be among the output.
console._LINE_SECONDS = float("inf")

# A shell without job control has its background jobs ignore SIGINT and SIGQUIT, and nohup SIGHUP. The processes that
# tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
for _name in ("SIGHUP", "SIGQUIT", "SIGTERM"):
    if hasattr(signal, _name):
        signal.signal(getattr(signal, _name), signal.SIG_DFL)

DEFAULT_LIMITS: Mapping[str, int] = {
    "max-bind-groups": 4,
    "max-bindings-per-bind-group": 1000,
    "max-buffer-size": 256 * 2**20,
    "max-compute-invocations-per-workgroup": 256,
    "max-compute-workgroup-size-x": 256,
    "max-compute-workgroup-size-y": 256,
    "max-compute-workgroup-size-z": 64,
    "max-compute-workgroup-storage-size": 16_384,
    "max-compute-workgroups-per-dimension": 65_535,
    "max-dynamic-storage-buffers-per-pipeline-layout": 4,
    "max-dynamic-uniform-buffers-per-pipeline-layout": 8,
    "max-storage-buffer-binding-size": 128 * 2**20,
    "max-storage-buffers-per-shader-stage": 8,
    "max-uniform-buffer-binding-size": 65_536,
    "max-uniform-buffers-per-shader-stage": 12,
    "min-storage-buffer-offset-alignment": 256,
    "min-uniform-buffer-offset-alignment": 256,
}
"""WebGPU's default limits, as far as compute shaders go (WebGPU specification, section 3.6.2)."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--share", default="1/1", metavar="K/N", help="run only one of N parts of the combinations")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    number, _, shares = config.getoption("--share").partition("/")
    if not (number.isdecimal() and shares.isdecimal() and 1 <= int(number) <= int(shares)):
        raise pytest.UsageError(f"--share {number}/{shares} is no part, such as 1/3 to 3/3")
    combinations = [item for item in items if item.get_closest_marker("combinations")]
    left_out = [item for i, item in enumerate(combinations) if i % int(shares) != int(number) - 1]
    config.hook.pytest_deselected(items=left_out)
    out = set(left_out)
    items[:] = [item for item in items if item not in out]


@pytest.fixture(scope="session", autouse=True)
def _limits() -> None:
    """Open the default device with the limits that DMLGPU_TEST_LIMITS asks for, before any test does."""
    wanted = os.environ.get("DMLGPU_TEST_LIMITS", "")
    assert wanted in ("", "default"), f"DMLGPU_TEST_LIMITS is {wanted!r}; it is 'default' or not set"
    if wanted:
        device = Device(limits=DEFAULT_LIMITS)
        device_module._open[device.description.index] = device
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
    kept = (device_module._plan, device_module._plan_piece)
    for plans in kept:
        plans.cache_clear()
    yield
    for plans in kept:
        plans.cache_clear()
