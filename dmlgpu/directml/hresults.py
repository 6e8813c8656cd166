"""The HRESULTs that a `DirectMLError` carries.

They are unsigned, as they are written; a C++ HRESULT is signed, so that the same code is a negative number there.
"""

from __future__ import annotations

from typing import Final

from ..errors import DirectMLError

__all__ = [
    "DXGI_ERROR_DEVICE_REMOVED",
    "DXGI_ERROR_INVALID_CALL",
    "DXGI_ERROR_UNSUPPORTED",
    "E_INVALIDARG",
    "E_OUTOFMEMORY",
    "S_OK",
]

S_OK: Final = 0
"""All is well."""

E_INVALIDARG: Final = 0x80070057
"""An argument breaks a rule."""
E_OUTOFMEMORY: Final = 0x8007000E
"""The device or the host has no memory left."""
DXGI_ERROR_UNSUPPORTED: Final = 0x887A0004
"""The device lacks what was asked for."""
DXGI_ERROR_DEVICE_REMOVED: Final = 0x887A0005
"""The device was removed."""
DXGI_ERROR_INVALID_CALL: Final = 0x887A0001
"""The call is not valid in this state."""


def invalid_argument(message: str) -> DirectMLError:
    """Return the error of a broken rule."""
    return DirectMLError(E_INVALIDARG, message)


def out_of_memory(message: str) -> DirectMLError:
    """Return the error of something that no buffer of the device holds."""
    return DirectMLError(E_OUTOFMEMORY, message)


def invalid_call(message: str) -> DirectMLError:
    """Return the error of a call that comes at the wrong time."""
    return DirectMLError(DXGI_ERROR_INVALID_CALL, message)
