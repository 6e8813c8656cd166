"""Opening a device on an adapter."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any

import wgpu

from ..dtypes import by_name
from ..errors import DeviceError, SoftwareAdapterWarning
from ..windows import DISPATCH_ELEMENTS, SOFTWARE_DISPATCH_ELEMENTS, Limits
from .adapters import AdapterDescription
from .backend import MAPPABLE_FEATURE
from .cores import usable_cores

__all__ = ["limits_of", "open_adapter", "warn_of_software"]

_FLOAT64_FEATURES = by_name("float64").features

_warned = False


def open_adapter(adapter: AdapterDescription, limits: Mapping[str, int] | None) -> Any:
    """Return a wgpu device with the features that are of use, and the limits asked for or all that there are.

    Raises
    ------
    DeviceError
        If the adapter gives no device with these limits.
    """
    mappable = (MAPPABLE_FEATURE,) if adapter.shares_memory else ()
    wanted = (*_FLOAT64_FEATURES, *mappable, "timestamp-query")
    features = [feature for feature in wanted if feature in adapter.features]
    try:
        return adapter.adapter.request_device_sync(required_features=features, required_limits=dict(limits or {}))
    except (wgpu.GPUError, RuntimeError, KeyError, ValueError) as error:
        raise DeviceError(f"the adapter {adapter.summary!r} gives no device with these limits: {error}") from error


def limits_of(gpu_device: Any, adapter: AdapterDescription) -> Limits:
    """Return what plans must know of a device."""
    granted = gpu_device.limits
    return Limits(
        binding_bytes=granted["max-storage-buffer-binding-size"] // 4 * 4,
        offset_alignment=granted["min-storage-buffer-offset-alignment"],
        workgroups=granted["max-compute-workgroups-per-dimension"],
        software=adapter.is_software,
        cores=usable_cores(),
        blocks=adapter.is_software and adapter.backend == "Vulkan",  # Mesa compiles them for OpenGL for 40 s
        columns=adapter.is_lavapipe,
        dispatch_elements=SOFTWARE_DISPATCH_ELEMENTS if adapter.is_software else DISPATCH_ELEMENTS,
        float64=all(feature in gpu_device.features for feature in _FLOAT64_FEATURES),
    )


def warn_of_software(adapter: AdapterDescription) -> None:
    """Warn once that results are computed on the CPU, at the line that called this package."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"computing on the CPU: {adapter.summary} is a software adapter (same results, less speed)",
            SoftwareAdapterWarning,
            stacklevel=_callers_level(),
        )


def _callers_level() -> int:
    """Return the stacklevel, for `warnings.warn` in the function that asks, of the first line outside this package."""
    package = __name__.partition(".")[0]
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        level, frame = level + 1, frame.f_back
    return level
