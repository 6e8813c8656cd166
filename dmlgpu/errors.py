"""Every exception and warning of the package; each message says what to do next."""

from __future__ import annotations

import dataclasses
import reprlib

import numpy as np

__all__ = [
    "AdapterNotFoundError",
    "ArgumentError",
    "ArrayIndexError",
    "ArrayTypeError",
    "AxisError",
    "DeviceError",
    "DeviceLostError",
    "DeviceLostWarning",
    "DeviceMemoryError",
    "DeviceReleasedError",
    "DirectMLError",
    "DmlGpuError",
    "EventLoopError",
    "FrozenFieldError",
    "HostMemoryError",
    "NoAdapterError",
    "ReleasedArrayError",
    "ShaderError",
    "SharedMemoryError",
    "SoftwareAdapterWarning",
    "TuningWarning",
]

_MAX_BITS = 256
"""Bits of the longest integer that a message spells out: Python refuses to write integers of 4,300 digits."""

_MAX_TEXT = 300
"""The most characters of another library's message that a message of this package repeats."""


class _Short(reprlib.Repr):
    """Writes a value in a few words, whatever its own ``repr`` does."""

    def __init__(self) -> None:
        super().__init__()
        self.maxtuple = self.maxlist = 10
        self.maxstring = self.maxother = 80

    def repr_int(self, x: int, level: int) -> str:
        if x.bit_length() <= _MAX_BITS:
            return repr(x)
        return f"an integer of some {x.bit_length() * 30103 // 100000 + 1} digits"


_short = _Short()


def shown(value: object) -> str:
    """Return a value for a message: short, on one line, and without an error."""
    return " ".join(_short.repr(value).split())


def said(error: BaseException) -> str:
    """Return what another library's error says, for a message: short, on one line, and without an error."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = ""
    return text if 0 < len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}..." if text else type(error).__name__


def with_type(value: object) -> str:
    """Return a value and its type for a message."""
    return f"{shown(value)} of type {type(value).__name__}"


def counted(number: int, noun: str) -> str:
    """Return a number of things, as in '1 row' and '2 rows'."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class DmlGpuError(Exception):
    """Base class of all exceptions raised on purpose by this package."""


class ArgumentError(DmlGpuError, ValueError):
    """An argument has a value that the operator cannot take."""


class SharedMemoryError(ArgumentError, BufferError):
    """An argument asks for elements without a copy, while memory of a device cannot be shared with the host."""


class ArrayTypeError(DmlGpuError, TypeError):
    """An argument has a type, or an array an element type, that the operator cannot take."""


class ArrayIndexError(DmlGpuError, IndexError):
    """An index is outside a device array, or of a kind that a view cannot be made with."""


class AxisError(DmlGpuError, np.exceptions.AxisError):
    """The axis is outside the array's dimensions, or is left out where an array has more than one.

    Parameters
    ----------
    axis : int or None
        The axis asked for.
    ndim : int
        The number of dimensions of the array.
    message : str, optional
        What is wrong, where the axis is not an argument of the call.
    """

    def __init__(self, axis: int | None, ndim: int, message: str | None = None) -> None:
        if ndim == 0:
            said_of_argument = "an array of 0 dimensions has no axis: give x.reshape(1), or [x] if it is a number"
        elif axis is None:
            said_of_argument = (
                f"axis=None needs an array of 1 dimension, and this has {ndim}: give an axis, or x.reshape(-1) to scan "
                "over all elements"
            )
        else:
            count = counted(ndim, "dimension")
            said_of_argument = f"axis {shown(axis)} is out of range for an array of {count}: give {-ndim} to {ndim - 1}"
        self._message = said_of_argument if message is None else message
        # NumPy's class formats its own message unless it is given one as its only argument.
        super().__init__(self._message)
        self.axis = axis
        self.ndim = ndim
        self.args = (axis, ndim, message)  # what unpickling calls the class with

    def __str__(self) -> str:
        return self._message


class FrozenFieldError(DmlGpuError, dataclasses.FrozenInstanceError):
    """Code tried to set or delete a field of a DirectML description; descriptions are immutable."""


class DeviceError(DmlGpuError, RuntimeError):
    """A device cannot be opened, or cannot be used any longer."""


class NoAdapterError(DeviceError):
    """No WebGPU adapter is visible to this process."""


class AdapterNotFoundError(DeviceError, ValueError):
    """No adapter matches what ``device=`` or ``DMLGPU_ADAPTER`` names."""


class DeviceReleasedError(DeviceError):
    """The device was released or lost, or belongs to another process."""


class DeviceLostError(DeviceReleasedError):
    """The wgpu device was destroyed, or the driver gave it up."""


class ReleasedArrayError(DeviceError):
    """The memory of a device array was released."""


class DeviceMemoryError(DmlGpuError, MemoryError):
    """An array is larger than a buffer of the device can be, or the device is out of memory."""


class EventLoopError(DmlGpuError, RuntimeError):
    """A coroutine was awaited where no event loop runs."""


class HostMemoryError(DmlGpuError, MemoryError):
    """There is no memory in this process for a NumPy array."""


class ShaderError(DmlGpuError, RuntimeError):
    """A WGSL file or import is missing, or a shader does not compile."""


class DirectMLError(DmlGpuError, ValueError):
    """A DirectML rule is violated.

    Parameters
    ----------
    hresult : int
        The HRESULT that DirectML documents for the violation, such as ``E_INVALIDARG``.
    message : str
        What is wrong, in the manner of DirectML's debug layer.

    Attributes
    ----------
    hresult : int
        As given.
    """

    def __init__(self, hresult: int, message: str) -> None:
        super().__init__(hresult, message)  # what unpickling calls the class with
        self.hresult = hresult

    def __str__(self) -> str:
        return str(self.args[1])


class SoftwareAdapterWarning(UserWarning):
    """The chosen adapter computes on the CPU: the results are the same, but slower."""


class TuningWarning(UserWarning):
    """What `dmlgpu tune` has stored is damaged, and is left out."""


class DeviceLostWarning(UserWarning):
    """The default device was lost, and another one took its place."""
