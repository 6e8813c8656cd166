"""Opening a device on an adapter."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any

import wgpu

from ..arguments import instance, integer
from ..dtypes import by_name
from ..errors import (
    ArgumentError,
    ArrayTypeError,
    DeviceError,
    DeviceLostWarning,
    SoftwareAdapterWarning,
    said,
    shown,
    with_type,
)
from ..planning.windows import DISPATCH_ELEMENTS, SOFTWARE_DISPATCH_ELEMENTS, Limits
from .adapters import AdapterDescription
from .cores import usable_cores
from .wgpu_private import MAPPABLE_FEATURE, claim_process

__all__ = ["limits_of", "open_adapter", "warn_of_loss", "warn_of_software"]

_FLOAT64_FEATURES = by_name("float64").features

_NEEDED = {
    "max-bind-groups": 1,
    "max-bindings-per-bind-group": 4,
    "max-buffer-size": 2**17,  # the uniforms of many passes
    "max-compute-invocations-per-workgroup": 256,
    "max-compute-workgroup-size-x": 256,
    "max-compute-workgroup-size-y": 1,
    "max-compute-workgroup-size-z": 1,
    "max-compute-workgroup-storage-size": 16_384,
    "max-compute-workgroups-per-dimension": 2,
    "max-storage-buffer-binding-size": 3 * 256,  # with the largest alignment that WebGPU has
    "max-storage-buffers-per-shader-stage": 3,
    "max-uniform-buffer-binding-size": 176,
    "max-uniform-buffers-per-shader-stage": 1,
}
"""The least limits that every kernel can keep to; WebGPU's defaults are more."""

_warned = False


def open_adapter(adapter: AdapterDescription, limits: Mapping[str, int] | None) -> Any:
    """Return a wgpu device with the features that are of use, and the limits asked for or all that there are.

    Raises
    ------
    ArrayTypeError, ArgumentError
        If `limits` is no mapping of names to integers of 0 or more.
    DeviceError
        If the adapter gives no device with these limits.
    """
    instance(adapter.adapter, "the adapter of the description", wgpu.GPUAdapter, "take it from dmlgpu.devices()")
    granted = _check_limits({} if limits is None else limits)
    claim_process()
    mappable = (MAPPABLE_FEATURE,) if adapter.shares_memory else ()
    wanted = (*_FLOAT64_FEATURES, *mappable, "timestamp-query")
    features = [feature for feature in wanted if feature in adapter.features]
    try:
        gpu_device = adapter.adapter.request_device_sync(required_features=features, required_limits=granted)
    except (wgpu.GPUError, RuntimeError, KeyError, ValueError, OverflowError) as error:
        raise DeviceError(
            f"the adapter {adapter.summary!r} gives no device with these limits, {shown(granted)}: {said(error)}; the "
            "adapter's own are in dmlgpu.devices()[...].limits"
        ) from error
    try:
        limits_of(gpu_device, adapter)
    except DeviceError:
        gpu_device.destroy()
        raise
    return gpu_device


def _check_limits(limits: Mapping[str, int]) -> dict[str, int]:
    way_out = "give a mapping of wgpu's names to integers, such as {'max-buffer-size': 2**28}"
    instance(limits, "limits", Mapping, way_out)
    try:
        items = list(limits.items())
    except Exception as error:
        raise ArrayTypeError(f"limits is {with_type(limits)}, which cannot be read; {way_out}") from error
    checked = {}
    for name, value in items:
        instance(name, "a name in limits", str, way_out)
        argument = f"the value of {shown(name)} in limits"
        checked[name] = integer(value, argument)
        if checked[name] < 0:
            raise ArgumentError(f"{argument} is {shown(checked[name])}; give 0 or more")
    return checked


def limits_of(gpu_device: Any, adapter: AdapterDescription) -> Limits:
    """Return what plans must know of a device.

    Raises
    ------
    DeviceError
        If it was requested with limits that no kernel can keep to.
    """
    granted = gpu_device.limits
    for name, least in _NEEDED.items():
        if granted[name] < least:
            raise DeviceError(
                f"the device was requested with {name} = {granted[name]}, and kernels need {least}: ask for as many, "
                "or leave that limit out"
            )
    return Limits(
        binding_bytes=min(granted["max-storage-buffer-binding-size"], granted["max-buffer-size"]),
        offset_alignment=granted["min-storage-buffer-offset-alignment"],
        workgroups=granted["max-compute-workgroups-per-dimension"],
        rows=granted["max-compute-workgroups-per-dimension"],
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


def warn_of_loss(summary: str) -> None:
    """Warn that another device takes the place of a lost one, at the line that called this package."""
    warnings.warn(
        f"the device {summary!r} was destroyed or lost, and another one is opened on the adapter; arrays that were on "
        "it are gone",
        DeviceLostWarning,
        stacklevel=_callers_level(),
    )


def _callers_level() -> int:
    """Return the stacklevel, for `warnings.warn` in the function that asks, of the first line outside this package."""
    package = __name__.partition(".")[0]
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        level, frame = level + 1, frame.f_back
    return level
