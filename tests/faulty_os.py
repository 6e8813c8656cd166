"""An `os` for the command line's files in which a chosen call fails, or is where a signal arrives."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dmlgpu.cli import files, locks, npy_files, raw_files, replacement, signals

FILE_MODULES = (files, locks, npy_files, raw_files, replacement, signals)
"""All that make calls for the command line's files."""

ERRORS = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ESTALE),
    *(errno.ENOMEM, errno.EMFILE, errno.EFBIG, errno.EINVAL, errno.ENOTSUP),
)
"""What a file system may answer to any call."""


class FaultyOs:
    """Stands for the module `os`; every function that is called through it is counted.

    Parameters
    ----------
    fault : callable
        Called with the call's number and name; the fault is what it raises, or does. Where it returns True, the call
        is made first, or of a write its first half.
    most : int, optional
        The bytes that a read or a write handles at most.
    """

    def __init__(self, fault: Callable[[int, str, bool], None], most: int = 1 << 30) -> None:
        self.calls: list[str] = []
        self._fault = fault
        self._most = most
        self._turn = threading.RLock()  # of threads; a signal may come within

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if not callable(real) or isinstance(real, type):
            return real

        def call(*arguments: Any) -> Any:
            with self._turn:
                number = len(self.calls)
                self.calls.append(name)
            self._fault(number, name, False)
            if name == "read":
                arguments = (arguments[0], min(arguments[1], self._most))
            elif name == "write":
                arguments = (arguments[0], arguments[1][: self._most])
            try:
                result = real(*arguments)
            except OSError:
                self._fault(number, name, True)
                raise
            self._fault(number, name, True)
            return result

        return call


def failing(first: int, last: int, code: int) -> Callable[[int, str, bool], None]:
    """Return a fault: an error of the calls from the first to the last."""

    def fault(number: int, name: str, made: bool) -> None:
        # A failed close has closed all the same, and what cannot be removed because it is not there is not there.
        takes_effect = name == "close" or (name == "unlink" and code == errno.ENOENT)
        if first <= number <= last and made == takes_effect:
            raise OSError(code, os.strerror(code))

    return fault


def patch_os(patch: pytest.MonkeyPatch, stand_in: Any) -> None:
    """Have the command line's files make their calls of another `os`."""
    for module in FILE_MODULES:
        patch.setattr(module, "os", stand_in)


def leftovers(folder: Path) -> list[Path]:
    """Return the temporary files in a folder and in those below."""
    return sorted(folder.rglob(".dmlgpu-*"))
