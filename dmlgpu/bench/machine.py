"""The machine that a benchmark ran on: what must agree for two results to be comparable."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..runtime.device import Device
    from .clock import Clock

__all__ = ["LIMITS", "header", "machine"]

LIMITS = (
    "max-buffer-size",
    "max-storage-buffer-binding-size",
    "min-storage-buffer-offset-alignment",
    "max-compute-workgroups-per-dimension",
    "max-compute-invocations-per-workgroup",
    "max-compute-workgroup-storage-size",
)


def machine() -> dict[str, Any]:
    """Return what describes the computer, as values that JSON can hold, without anything that tells whose it is."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "memory_gib": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if os.path.exists(cpuinfo):
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() in ("model name", "Model"):
                return value.strip()
    return platform.processor() or "unknown processor"


def _memory() -> int | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        return None


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # a source tree on the path, not installed
        return "unknown"


def header(device: Device, clock: Clock, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what one must know about a run: device, driver, backend, limits, machine, versions and options."""
    from ..runtime.wgpu_private import native_version

    description = device.description
    return {
        "device": {
            "summary": device.summary,
            "driver": description.driver,
            "backend": description.backend,
            "software": description.is_software,
            "limits": {name: int(device.gpu_device.limits[name]) for name in LIMITS},
        },
        "machine": machine(),
        "versions": {
            "dmlgpu": _version("dmlgpu"),
            "wgpu": _version("wgpu"),
            "wgpu-native": native_version(),
            "numpy": _version("numpy"),
            "python": platform.python_version(),
        },
        "clock": clock.kind,
        "clock_reason": clock.reason,
        "options": dict(options),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
