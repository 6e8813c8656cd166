"""Open files: each operation is a call of `os`, and errors name what cannot be read or written."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from .console import CommandError, flush, unwritable

__all__ = [
    "AT_ONCE",
    "NO_SUCH_OPERATION",
    "STANDARD_INPUT",
    "STANDARD_OUTPUT",
    "RawFile",
    "buffered",
    "check_input",
    "close_quietly",
    "filled",
    "fingerprint",
    "flush_file",
    "reading",
    "standard_output",
    "trying_to",
]

STANDARD_INPUT, STANDARD_OUTPUT = Path("standard input"), Path("standard output")
"""What messages call them; they hold a .npy file. A file of such a name is another object."""
AT_ONCE = 1 << 24
"""The most bytes of one call, and of a piece of what is copied."""
NO_SUCH_OPERATION = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EBADF})
"""The errors by which file systems say that they cannot flush something."""

_READ_AT_ONCE = 1 << 20
"""The same where memory is filled: what is not a `RawFile` makes a copy of it."""
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)


class RawFile(io.RawIOBase):
    """An open file whose every operation is a call of `os`, so that tests can make each of them fail in turn."""

    def __init__(self, descriptor: int, *, owned: bool = True) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._owned = owned

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def writable(self) -> bool:
        """Say that it can be written, for those who know that it was opened for that."""
        return True

    def seekable(self) -> bool:
        """Say that one can seek in it, for those who know that it is no pipe."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place, and return it."""
        return os.lseek(self._descriptor, offset, whence)

    def truncate(self, size: int | None = None) -> int:
        """Have the file end there."""
        length = self.tell() if size is None else size
        os.ftruncate(self._descriptor, length)
        return length

    def read(self, size: int = -1, /) -> bytes:
        """Read as much as the system gives, but no more than `size`; all that is left if it is negative."""
        # What is inherited makes two copies of it.
        return super().read(size) or b"" if size < 0 else self._piece(size)

    def readinto(self, buffer: Any) -> int:
        """Read as much as the system gives, and return how much."""
        piece = self._piece(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def _piece(self, size: int) -> bytes:
        return os.read(self._descriptor, min(size, AT_ONCE))

    def write(self, data: Any) -> int:
        """Write all of the data, unlike the files that this stands for."""
        rest = memoryview(data).cast("B")
        while rest:
            rest = rest[os.write(self._descriptor, rest[:AT_ONCE]) :]
        return memoryview(data).nbytes

    def close(self) -> None:
        """Close the descriptor, if it is this file's own."""
        if not self.closed:
            super().close()
            if self._owned:
                os.close(self._descriptor)


class _Input(RawFile):
    """A file to read, whose errors say so also where another file is written meanwhile."""

    def __init__(self, name: str, descriptor: int, *, owned: bool = True) -> None:
        super().__init__(descriptor, owned=owned)
        self._name = name

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place, and return it; ValueError for one before the beginning, which a damaged archive may name."""
        if whence != os.SEEK_SET:  # zipfile looks whether that can be
            return super().seek(offset, whence)
        if offset < 0:
            raise ValueError(f"it names the place {offset}")
        with trying_to("read", self._name):
            return super().seek(offset)

    def _piece(self, size: int) -> bytes:
        with trying_to("read", self._name):
            return super()._piece(size)


@contextmanager
def trying_to(verb: str, what: object) -> Iterator[None]:
    """Have errors of the system, and of the library for bzip2, say what cannot be read or written."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise CommandError(f"{what} is damaged: {error}") from error
        raise CommandError(f"cannot {verb} {what}: {error.strerror or error}") from error


# Input files


@contextmanager
def reading(path: Path) -> Iterator[RawFile]:
    """Open an ordinary file, or standard input, to read it to the end.

    The file is read, not mapped: what somebody else cuts off a mapped file ends the process that looks at it.

    Raises
    ------
    CommandError
        If it is no ordinary file, cannot be read, or changes meanwhile, as far as its length and time tell.
    OSError
        If it cannot be opened.
    """
    if path is STANDARD_INPUT:
        with _Input(str(path), 0, owned=False) as file:
            yield file
        return
    check_input(path)  # opening a device can do things
    file = _Input(str(path), os.open(path, _READ_FLAGS))
    try:
        with trying_to("read", path):
            before = os.fstat(file.fileno())
            _check_ordinary(path, before)
            try:
                yield file
            except Exception:
                with suppress(OSError):  # the first error tells more
                    _check_unchanged(path, file, before)
                raise
            _check_unchanged(path, file, before)
            file.close()
    finally:
        close_quietly(file)


def _check_unchanged(path: Path, file: RawFile, before: os.stat_result) -> None:
    after = os.fstat(file.fileno())
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise CommandError(f"{path} changed while it was read; run this again once it is complete")


def check_input(path: Path) -> None:
    """Raise CommandError unless a file is an ordinary one with something in it, OSError if that cannot be seen."""
    _check_ordinary(path, os.stat(path))


def _check_ordinary(path: Path, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise CommandError(f"{path} is a directory; give a file")
    if not stat.S_ISREG(status.st_mode):
        raise CommandError(f"{path} is not an ordinary file; copy it into one")
    if status.st_size == 0:
        raise CommandError(f"{path} is empty")


def close_quietly(file: RawFile | None) -> None:
    """Close a file, if there is one, of which nobody expects anything more."""
    if file is not None:
        with suppress(OSError):
            file.close()


@contextmanager
def buffered(file: RawFile) -> Iterator[IO[bytes]]:
    """Give a file whose reads are whole; it does not close the file."""
    made = io.BufferedReader(file)
    try:
        yield made
    finally:
        made.detach()


def filled(file: Any, data: memoryview) -> int:
    """Fill memory with what follows in an open file, and return how many bytes that is: fewer at the file's end."""
    done = 0
    while done < len(data) and (got := file.readinto(data[done : done + _READ_AT_ONCE])):
        done += got
    return done


def fingerprint(file: RawFile) -> list[int | str]:
    """Return what tells a file from others: its size, its time, and a digest of its first and last bytes.

    Files that were copied or restored can have the same time, and those of a series have the same size.
    """
    status, position = os.fstat(file.fileno()), file.seek(0, os.SEEK_CUR)
    digest = hashlib.sha256()
    for place in 0, max(0, status.st_size - _READ_AT_ONCE):
        file.seek(place)
        content = bytearray(_READ_AT_ONCE)
        digest.update(content[: filled(file, memoryview(content))])
    file.seek(position)
    return [status.st_size, status.st_mtime_ns, digest.hexdigest()]


# Output


@contextmanager
def standard_output() -> Iterator[RawFile]:
    """Give standard output to write bytes to it.

    Raises
    ------
    CommandError, ReaderGoneError
        If it cannot be written to.
    """
    flush()
    try:
        with RawFile(sys.stdout.fileno(), owned=False) as file:
            yield file
    except OSError as error:
        raise unwritable(error) from error


def flush_file(file: RawFile) -> None:
    """Flush a file to the disk, if its file system can."""
    try:
        os.fsync(file.fileno())
    except OSError as error:
        if error.errno not in NO_SUCH_OPERATION:
            raise
