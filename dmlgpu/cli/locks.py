"""Locks that keep other processes away, on POSIX and on Windows; the system lets them go when a process ends."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["alone_in", "lock"]


def _if_there(name: str) -> Any:
    """Return a module of the standard library, or None on systems that have none of that name."""
    with suppress(ImportError):
        return import_module(name)
    return None


_fcntl = _if_there("fcntl")
"""POSIX has it."""
_msvcrt = _if_there("msvcrt")
"""Windows has it."""

_PLACE = 1 << 43
"""The byte that a lock of Windows covers: nobody else may read or write it, so it is far behind all data."""
_LOOK_SECONDS = 0.05
_MOST_SECONDS = 30.0
"""How long Windows is asked for a lock: it gives one error for a lock that is taken and for one that it refuses."""


def lock(descriptor: int) -> bool:
    """Take the lock of an open file until it is closed; False if another process has it.

    True also where the file system has no locks.
    """
    if _fcntl is None:
        return _lock_byte(descriptor)
    try:
        _fcntl.flock(descriptor, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait until no other process is in such a block of this folder, where the system has locks.

    Windows opens no folders: there the lock is that of a file named `lock` in it, which stays.
    """
    descriptor = None
    with suppress(OSError):  # a file system without locks, or a folder that nobody may list
        if _fcntl is not None:
            descriptor = os.open(folder, os.O_RDONLY)
            _fcntl.flock(descriptor, _fcntl.LOCK_EX)
        elif _msvcrt is not None:
            descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
            until = time.monotonic() + _MOST_SECONDS
            while not _lock_byte(descriptor) and time.monotonic() < until:
                time.sleep(_LOOK_SECONDS)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _lock_byte(descriptor: int) -> bool:
    """Take the lock of a file on Windows, which locks bytes from the file's position on."""
    if _msvcrt is None:
        return True
    try:
        position = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.lseek(descriptor, _PLACE, os.SEEK_SET)
        try:
            _msvcrt.locking(descriptor, _msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(descriptor, position, os.SEEK_SET)
    except PermissionError:
        return False
    except OSError:
        return True
    return True
