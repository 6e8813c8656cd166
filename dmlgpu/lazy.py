"""The way to `dmlgpu.runtime`, which imports wgpu and is not imported before a device is needed."""

from __future__ import annotations

import os
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

from .sections import Section

if TYPE_CHECKING:
    from .runtime.device import Device

__all__ = ["import_runtime", "resolve_device"]

_importing = Section()


@cache
def import_runtime() -> ModuleType:
    """Return the module `dmlgpu.runtime.device`, imported by one thread at a time."""
    with _importing:
        from .runtime import device
    return device


if hasattr(os, "register_at_fork"):
    # A child that was forked in the middle of an import would wait for its end for ever.
    os.register_at_fork(
        before=_importing.lock.acquire,
        after_in_parent=_importing.lock.release,
        after_in_child=_importing.lock.release,
    )


def resolve_device(device: Device | str | int | None) -> Device:
    """Return the open device that an argument ``device=`` means."""
    found: Device = import_runtime().resolve_device(device)
    return found
