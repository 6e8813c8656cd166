"""Which adapters there are, and which one to open."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..arguments import integer
from ..errors import AdapterNotFoundError, NoAdapterError, shown
from .wgpu_private import enumerate_adapters

__all__ = ["ENVIRONMENT_VARIABLE", "AdapterDescription", "check_choice", "choose", "devices", "select_adapter"]

ENVIRONMENT_VARIABLE = "DMLGPU_ADAPTER"

_BACKENDS = ("Vulkan", "Metal", "D3D12", "OpenGL")
_TYPES = ("DiscreteGPU", "IntegratedGPU", "VirtualGPU", "Unknown", "CPU")

_MAX_INDEX_DIGITS = 20
"""No adapter's index is written with more, spaces included."""

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
    def shares_memory(self) -> bool:
        """Whether its memory is the host's, so that buffers can be mapped without crossing a bus at each access."""
        return self.adapter_type in ("CPU", "IntegratedGPU")

    @property
    def is_lavapipe(self) -> bool:
        """Whether it is Mesa's software Vulkan."""
        return self.is_software and self.backend == "Vulkan" and "llvmpipe" in self.summary


def devices() -> list[AdapterDescription]:
    """Return what devices can be opened on, in wgpu's order.

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
    """Return what wgpu says of an adapter."""
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
    """Return what chooses an adapter as a plain str or int, or None.

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
        What there is.
    choice : str, int or None
        A substring of a summary in any case, an index (also as a string of digits), or None for the best: hardware
        before software, then Vulkan, Metal and D3D12 before OpenGL, then discrete before integrated.
    origin : str
        Where the choice comes from, for messages.

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
            key=lambda a: (a.is_software, a.backend == "OpenGL", _rank(_TYPES, a.adapter_type), a.index),
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
