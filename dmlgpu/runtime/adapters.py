"""Which adapters there are, which one to open, and opening a device on it."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import wgpu

from ..arguments import count, instance, integer
from ..dtypes import by_name
from ..errors import (
    AdapterNotFoundError,
    ArrayTypeError,
    DeviceError,
    DeviceLostWarning,
    NoAdapterError,
    SoftwareAdapterWarning,
    said,
    shown,
    with_type,
)
from ..planning.params import PARAMS
from ..planning.windows import DISPATCH_ELEMENTS, SOFTWARE_DISPATCH_ELEMENTS, Limits, SoftwareTraits
from .measured import usable_cores
from .wgpu_private import MAPPABLE_FEATURE, claim_process, enumerate_adapters

__all__ = [
    "ENVIRONMENT_VARIABLE",
    "AdapterDescription",
    "check_choice",
    "choose",
    "describe",
    "devices",
    "limits_of",
    "open_adapter",
    "select_adapter",
    "warn_of_loss",
    "warn_of_software",
]

ENVIRONMENT_VARIABLE = "DMLGPU_ADAPTER"

_BACKENDS = ("Vulkan", "Metal", "D3D12", "OpenGL")
_TYPES = ("DiscreteGPU", "IntegratedGPU", "VirtualGPU", "Unknown", "CPU")

_MAX_INDEX_DIGITS = 20
"""The most characters of an adapter's index, spaces included."""

_HELP = {
    "linux": (
        "install your GPU's Vulkan driver (for Mesa and for software Vulkan on Debian or Ubuntu: "
        "sudo apt-get install mesa-vulkan-drivers)"
    ),
    "darwin": "Metal needs macOS 11 or later, and a session that may use the GPU",
    "win32": "install your GPU vendor's driver; Direct3D 12 or Vulkan must be available",
}


@dataclass(frozen=True)
class AdapterDescription:
    """An adapter that a device can be opened on.

    Attributes
    ----------
    index : int
        Its number in wgpu's order, usable as ``device=`` and as ``DMLGPU_ADAPTER``.
    summary : str
        wgpu's one-line summary: name, type and backend.
    name, backend, adapter_type, vendor, driver : str
        As the driver gives them; backend is "Vulkan", "Metal", "D3D12" or "OpenGL".
    limits : mapping of str to int
        wgpu's limits, names with dashes; sizes in bytes.
    features : frozenset of str
        wgpu's features.
    """

    index: int
    summary: str
    name: str
    backend: str
    adapter_type: str
    vendor: str
    driver: str
    limits: Mapping[str, int] = field(repr=False)
    features: frozenset[str] = field(repr=False)
    adapter: Any = field(repr=False, compare=False)

    @property
    def is_software(self) -> bool:
        """Whether it computes on the CPU."""
        return self.adapter_type == "CPU"

    @property
    def is_lavapipe(self) -> bool:
        """Whether it is Mesa's software Vulkan."""
        return self.is_software and self.backend == "Vulkan" and "llvmpipe" in self.summary


def devices() -> list[AdapterDescription]:
    """Return the adapters that devices can be opened on, in wgpu's order.

    Returns
    -------
    list of AdapterDescription
        Empty where no adapter is visible.

    Examples
    --------
    >>> import dmlgpu
    >>> all(adapter.summary for adapter in dmlgpu.devices())
    True
    """
    return [describe(index, adapter) for index, adapter in enumerate(enumerate_adapters())]


def describe(index: int, adapter: Any) -> AdapterDescription:
    """Return wgpu's description of an adapter."""
    info = adapter.info
    return AdapterDescription(
        index=index,
        summary=adapter.summary,
        name=info["device"],
        backend=info["backend_type"],
        adapter_type=info["adapter_type"],
        vendor=info["vendor"],
        driver=info["description"],
        limits={name: int(value) for name, value in adapter.limits.items()},
        features=frozenset(adapter.features),
        adapter=adapter,
    )


def _rank(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else len(names)


def check_choice(choice: Any, argument: str, way_out: str) -> str | int | None:
    """Return the choice of an adapter as a plain str or int, or None.

    Raises
    ------
    ArrayTypeError
        If it is of another type; `argument` is what the error calls it, `way_out` what it says to do.
    """
    if choice is None:
        return None
    return str.__str__(choice) if isinstance(choice, str) else integer(choice, argument, way_out)


def choose(adapters: Sequence[AdapterDescription], choice: str | int | None, origin: str) -> AdapterDescription:
    """Return the adapter that a choice names, or the best one. Pure.

    Parameters
    ----------
    adapters : sequence of AdapterDescription
        The adapters there are.
    choice : str, int or None
        A substring of a summary in any case, an index (also as a string of digits), or None for the best: hardware
        before software, then Vulkan, Metal and D3D12 before OpenGL, then discrete before integrated, then Vulkan before
        D3D12, whose compiler takes long (docs/fxc.md).
    origin : str
        The source of the choice, for messages.

    Raises
    ------
    NoAdapterError
        If there is no adapter at all.
    AdapterNotFoundError
        If none matches.
    """
    if not adapters:
        way_out = _HELP.get(sys.platform, "install a Vulkan driver for your GPU")
        raise NoAdapterError(f"no WebGPU adapter is visible to this process: {way_out}; `dmlgpu info` shows details")
    if choice is None or choice == "":
        return min(
            adapters,
            key=lambda a: (
                a.is_software,
                a.backend == "OpenGL",
                _rank(_TYPES, a.adapter_type),
                _rank(_BACKENDS, a.backend),
                a.index,
            ),
        )
    available = "; ".join(f"{adapter.index}: {adapter.summary}" for adapter in adapters)
    if isinstance(choice, int) or choice.strip().isdecimal():
        # Python refuses to read integers of 4,300 digits.
        index = int(choice) if isinstance(choice, int) or len(choice) <= _MAX_INDEX_DIGITS else None
        if index is None or not 0 <= index < len(adapters):
            named = shown(choice if index is None else index)
            raise AdapterNotFoundError(f"{origin} {named} is not the index of an adapter; there are: {available}")
        return adapters[index]
    matches = [adapter for adapter in adapters if choice.casefold() in adapter.summary.casefold()]
    if not matches:
        raise AdapterNotFoundError(f"{origin} {shown(choice)} is in no adapter's summary; there are: {available}")
    return min(matches, key=lambda a: (_rank(_BACKENDS, a.backend), a.index))


def select_adapter(choice: str | int | None = None) -> AdapterDescription:
    """Return the adapter for ``device=choice``, for ``DMLGPU_ADAPTER`` where there is no choice, else the best one.

    Raises
    ------
    NoAdapterError, AdapterNotFoundError
        As `choose`.
    """
    if choice is not None:
        return choose(devices(), choice, "device")
    return choose(devices(), os.environ.get(ENVIRONMENT_VARIABLE), ENVIRONMENT_VARIABLE)


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
    "max-uniform-buffer-binding-size": PARAMS.itemsize,
    "max-uniform-buffers-per-shader-stage": 1,
}
"""The least limits that every kernel can keep to. WebGPU's defaults are larger."""

_warned = False


def open_adapter(adapter: AdapterDescription, limits: Mapping[str, int] | None) -> Any:
    """Return a wgpu device with the features that kernels use, and with the limits asked for, else all.

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
    # Not of an integrated GPU: what the host can map for writing it may read very slowly (docs/runtime.md).
    mappable = (MAPPABLE_FEATURE,) if adapter.is_software else ()
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
        checked[name] = count(value, f"the value of {shown(name)} in limits")
    return checked


def limits_of(gpu_device: Any, adapter: AdapterDescription) -> Limits:
    """Return the limits that plans keep to on a device.

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
        traits=SoftwareTraits(cores=usable_cores(), columns=adapter.is_lavapipe, lags=adapter.is_lavapipe),
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
            stacklevel=callers_level(),
        )


def warn_of_loss(summary: str) -> None:
    """Warn that another device takes the place of a lost one, at the line that called this package."""
    warnings.warn(
        f"the device {summary!r} was destroyed or lost, and another one is opened on the adapter; arrays that were on "
        "it are gone",
        DeviceLostWarning,
        stacklevel=callers_level(),
    )


def callers_level() -> int:
    """Return the stacklevel, for `warnings.warn` in the function that asks, of the first line outside this package."""
    package = __name__.partition(".")[0]
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        level, frame = level + 1, frame.f_back
    return level
