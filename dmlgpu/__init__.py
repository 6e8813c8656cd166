"""DirectML's cumulative sum, cumulative product and rounding as WebGPU shaders, with results defined to the bit.

Importing this package opens no device and does not import wgpu; the first call that needs a device does both.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import errors
from .arrays.array import DeviceArray, asarray
from .arrays.foreign import from_wgpu
from .arrays.functions import cumulative_prod, cumulative_sum, round
from .errors import DmlGpuError, SoftwareAdapterWarning
from .lazy import import_runtime

if TYPE_CHECKING:
    from . import directml
    from .arrays.explained import explain
    from .arrays.pieces import Scan
    from .runtime.device import Device, default_device, devices

    __version__: str

__all__ = [
    "Device",
    "DeviceArray",
    "DmlGpuError",
    "Scan",
    "SoftwareAdapterWarning",
    "__version__",
    "asarray",
    "cumulative_prod",
    "cumulative_sum",
    "default_device",
    "devices",
    "directml",
    "errors",
    "explain",
    "from_wgpu",
    "round",
]


_INSTEAD = {
    "array": "dmlgpu.asarray",
    "ndarray": "dmlgpu.DeviceArray",
    "cumsum": "dmlgpu.cumulative_sum, or numpy.cumsum on a DeviceArray",
    "cumprod": "dmlgpu.cumulative_prod, or numpy.cumprod on a DeviceArray",
    "around": "dmlgpu.round",
    "rint": "dmlgpu.round",
    "trunc": "dmlgpu.round with mode='toward_zero'",
}
"""What people try who know NumPy, and what does it here."""


def __getattr__(name: str) -> Any:
    """Import what is too costly to import with the package when it is first asked for."""
    value: Any
    if name in ("Device", "default_device", "devices"):
        value = getattr(import_runtime(), name)
    elif name == "Scan":
        value = importlib.import_module(".arrays.pieces", __name__).Scan
    elif name == "explain":
        value = importlib.import_module(".arrays.explained", __name__).explain
    elif name == "directml":
        return importlib.import_module(".directml", __name__)
    elif name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            value = version(__name__)
        except PackageNotFoundError:  # a source tree on the path, not installed
            value = "unknown"
    elif name in _INSTEAD:
        raise AttributeError(f"module {__name__!r} has no {name}: use {_INSTEAD[name]}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
