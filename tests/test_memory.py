"""Thousands of calls leave nothing behind: resident size, wgpu's objects and the pools stay as they are.

``DMLGPU_MEMORY_CALLS=10000`` makes ten thousand calls of each kind.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import wgpu

import dmlgpu
from dmlgpu.errors import ArgumentError
from dmlgpu.runtime.device import Device

CALLS = int(os.environ.get("DMLGPU_MEMORY_CALLS", "300"))

X = np.random.default_rng(0).standard_normal((40, 50)).astype(np.float32)


def resident() -> int:
    """Return the bytes of this process that are in memory, or 0 where the system does not tell as simply."""
    if not sys.platform.startswith("linux"):
        return 0
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def state(device: Device) -> dict[str, int]:
    """Return how many objects of each kind wgpu has, and how much the pools hold."""
    gc.collect()
    objects = {name: entry["count"] for name, entry in wgpu.diagnostics.object_counts.get_dict().items()}
    native = {
        f"native {name}": entry["count"] for name, entry in wgpu.diagnostics.wgpu_native_counts.get_dict().items()
    }
    memory = device._memory
    pools = {name: getattr(memory, name).idle_bytes for name in ("arrays", "temporaries", "upload", "readback")}
    return objects | native | pools


def scan(device: Device) -> None:
    dmlgpu.cumulative_sum(X, axis=1, device=device)


def scan_into(device: Device) -> None:
    dmlgpu.cumulative_sum(X, axis=0, out=np.empty_like(X), device=device)


def convert(device: Device) -> None:
    dmlgpu.cumulative_prod(X[::-1, ::2], axis=0, dtype="float64", include_initial=True, device=device)


def arrays(device: Device) -> None:
    array = dmlgpu.asarray(X, device)
    dmlgpu.round(dmlgpu.cumulative_sum(array.T, axis=0)[1:]).numpy()


def released(device: Device) -> None:
    with dmlgpu.asarray(X, device) as array:
        dmlgpu.cumulative_sum(array, axis=1, out=array)


def pieces(device: Device) -> None:
    scan = dmlgpu.Scan("sum", axis=0)
    for _ in range(3):
        scan.push(dmlgpu.asarray(np.ones((3000, 2), np.float32), device))
    scan.finish()


def errors(device: Device) -> None:
    with dmlgpu.asarray(X, device) as array, pytest.raises(ArgumentError):
        dmlgpu.cumulative_sum(array, axis=1, out=array[1:])


@pytest.mark.combinations
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems say in other ways what memory is used")
@pytest.mark.parametrize("call", [scan, scan_into, convert, arrays, released, pieces, errors])
def test_calls_leave_nothing_behind(device: Device, call: Callable[[Device], None]) -> None:
    for _ in range(50):
        call(device)
    before, growth = state(device), []
    for _ in range(3):  # a leak shows in each; a driver or an allocator that takes memory once does not
        size = resident()
        for _ in range(CALLS):
            call(device)
        growth.append(resident() - size)
        assert state(device) == before
    # A leak of 4 KiB a call would show; allocators may keep some.
    assert min(growth) < 2**20 + 1024 * CALLS


def test_calls_of_ever_new_sizes_are_bounded(device: Device) -> None:
    """Nothing is kept for each size that was ever seen."""
    sizes = range(1000, 1000 + 7 * CALLS, 7)
    for n in sizes[: len(sizes) // 2]:
        dmlgpu.cumulative_sum(np.ones(n, np.float32), device=device)
    before = state(device)
    for n in sizes[len(sizes) // 2 :]:
        dmlgpu.cumulative_sum(np.ones(n, np.float32), device=device)
    after = state(device)
    for name in ("BindGroup", "Buffer"):
        assert after[name] <= before[name] + 40  # the kept plans and the pools fill up
    assert device._memory.temporaries.idle_bytes <= 256 * 2**20
    assert len(device._executor._kept) <= 64


def test_large_transfers_stage_little(device: Device) -> None:
    gpu_device = device.description.adapter.request_device_sync()
    other = Device.wrap(gpu_device)
    x = np.ones(20 * 2**20, np.uint8)
    try:
        np.testing.assert_array_equal(dmlgpu.asarray(x, other).numpy(), x)
        for pool in (other._memory.upload, other._memory.readback):
            assert pool.created == 2
            assert pool.idle_bytes <= 2 * 16 * 2**20
    finally:
        other.release()
        gpu_device.destroy()
    assert other._memory.upload.idle_bytes == 0
    assert other._memory.arrays.idle_bytes == 0
