"""Stand-ins for what Windows has and Linux has not, so that code for it runs in these tests."""

from __future__ import annotations

import errno
import os
from types import SimpleNamespace
from typing import Any

import pytest

from dmlgpu.cli import locks


class Msvcrt:
    """Stands for the module `msvcrt`: locks bytes from the position of a file on, for one open file at a time."""

    LK_NBLCK = 2

    def __init__(self, refusal: int | None = None) -> None:
        self.places: list[int] = []
        self._refusal = refusal
        self._holders: dict[tuple[int, int, int], int] = {}

    def locking(self, descriptor: int, mode: int, nbytes: int) -> None:
        """Lock a byte, as `_locking` of the C library does."""
        assert (mode, nbytes) == (self.LK_NBLCK, 1)
        if self._refusal is not None:
            raise OSError(self._refusal, os.strerror(self._refusal))
        place = os.lseek(descriptor, 0, os.SEEK_CUR)
        self.places.append(place)
        key = (*_identity(descriptor), place)
        holder = self._holders.get(key)
        if holder is not None and holder != descriptor and _identity(holder) == key[:2]:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        self._holders[key] = descriptor


def _identity(descriptor: int) -> tuple[int, int]:
    """Return what tells an open file from others; of a closed one nothing does."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return (-1, -1)
    return status.st_dev, status.st_ino


def with_locks_of_windows(patch: pytest.MonkeyPatch, msvcrt: Msvcrt | None) -> None:
    """Have files locked as Windows does, or not at all."""
    patch.setattr(locks, "_fcntl", None)
    patch.setattr(locks, "_msvcrt", msvcrt)


def os_of_windows(**functions: Any) -> SimpleNamespace:
    """Return an `os` that says that it is Windows', with some functions in the place of others."""
    return SimpleNamespace(**vars(os) | {"name": "nt"} | functions)
