"""Files: .npy arrays, the rules that all input and output files share, and replacing a file in one step."""

from __future__ import annotations

import errno
import io
import math
import os
import secrets
import signal
import stat
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO, Any, Literal, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from ..dtypes import by_dtype
from ..layout import MAX_DIMENSIONS, MAX_ELEMENTS
from .console import CommandError, count

__all__ = [
    "SIGNALS",
    "Format",
    "check_input",
    "check_output",
    "check_outputs",
    "check_replaceable",
    "die_of",
    "input_format",
    "output_format",
    "read_npy",
    "reading",
    "replacing",
    "write_npy",
]

Format = Literal["npy", "csv", "parquet"]

_AT_ONCE = 1 << 24
_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 10_000
"""The longest header, which is NumPy's limit, too. That of an array of numbers has 128 bytes."""
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_WRITE_FLAGS = (
    os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
)  # exclusive creation follows no link
_NO_SUCH_OPERATION = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EBADF})
"""The errors by which file systems say that they cannot flush something."""

_SIGNAL_NAMES = (
    *("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGXCPU", "SIGPOLL"),
    *("SIGUSR1", "SIGUSR2", "SIGBREAK"),
)
SIGNALS = tuple(getattr(signal, name) for name in _SIGNAL_NAMES if hasattr(signal, name))
"""The signals that end a process by default, without those that report a broken program."""

_unfinished_names: set[str] = set()


class _Raw(io.RawIOBase):
    """An open file whose every operation is a call of `os`, so that tests can make each of them fail in turn."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = os.read(self._descriptor, min(len(buffer), _AT_ONCE))
        buffer[: len(piece)] = piece
        return len(piece)

    def write(self, data: Any) -> int:
        """Write all of the data, unlike the files that this stands for."""
        rest = memoryview(data).cast("B")
        while rest:
            rest = rest[os.write(self._descriptor, rest[:_AT_ONCE]) :]
        return memoryview(data).nbytes

    def close(self) -> None:
        if not self.closed:
            super().close()
            os.close(self._descriptor)


# Names


def input_format(path: Path) -> Format:
    """Return the format of an input file by its name, after checking that it is a file with something in it.

    Raises
    ------
    CommandError
        If it is a directory, a device, empty, or has another extension.
    OSError
        If it cannot be looked at.
    """
    kind = _format(path, "reads")
    check_input(path)
    return kind


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


def check_output(path: Path) -> Format:
    """Return the format of an output file by its name, after checking what can be checked before the work.

    Raises
    ------
    CommandError
        If it has another extension, or as for `check_replaceable`.
    """
    kind = output_format(path)
    check_replaceable(path)
    return kind


def output_format(path: Path) -> Format:
    """Return the format of an output file by its name; CommandError if that has another extension."""
    return _format(path, "writes")


def _format(path: Path, verb: str) -> Format:
    match path.suffix.lower():
        case ".npy":
            return "npy"
        case ".csv":
            return "csv"
        case ".parquet":
            return "parquet"
        case suffix:
            what = f"the extension {suffix}" if suffix else "no extension"
            raise CommandError(f"{str(path)!r} has {what}; dmlgpu {verb} .npy, .csv and .parquet files")


# Reading


@contextmanager
def reading(path: Path) -> Iterator[io.RawIOBase]:
    """Open an ordinary file to read it whole.

    The file is read, not mapped: what somebody else cuts off a mapped file ends the process that looks at it.

    Raises
    ------
    CommandError
        If it is no ordinary file, cannot be read, or changes meanwhile, as far as its length and time tell.
    OSError
        If it cannot be opened.
    """
    check_input(path)  # opening a device can do things
    with _Raw(os.open(path, _READ_FLAGS)) as file:
        try:
            before = os.fstat(file.fileno())
            _check_ordinary(path, before)
            try:
                yield file
            finally:
                after = os.fstat(file.fileno())
                if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
                    raise CommandError(f"{path} changed while it was read; run this again once it is complete")
        except OSError as error:
            raise CommandError(f"cannot read {path}: {error.strerror or error}") from error


def read_npy(path: Path) -> NDArray[Any]:
    """Read an array from a .npy file of any format version, without ever unpickling.

    Raises
    ------
    CommandError
        If the file is not a complete .npy file or its elements have no type on the device.
    OSError
        If it cannot be opened.
    """
    with reading(path) as file:
        head = _read_up_to(file, len(_MAGIC) + 6 + _LONGEST_HEADER)
        dtype, shape, is_fortran, offset = _header(path, head)
        if dtype.hasobject:
            raise CommandError(
                f"{path} holds Python objects, which are never loaded; convert them with astype to numbers first"
            )
        by_dtype(dtype, str(path))
        if len(shape) > MAX_DIMENSIONS:
            raise CommandError(f"{path} has {len(shape)} dimensions; dmlgpu takes up to {MAX_DIMENSIONS}: reshape it")
        needed = math.prod(shape) * dtype.itemsize
        there = os.fstat(file.fileno()).st_size - offset
        if there < needed:
            raise CommandError(
                f"{path} is damaged or truncated: its header announces {count(needed, 'byte')} of elements, and "
                f"{max(there, 0)} are there"
            )
        if math.prod(shape) > MAX_ELEMENTS:
            raise CommandError(f"{path} has {math.prod(shape)} elements; dmlgpu takes up to {MAX_ELEMENTS}: split it")
        array = np.empty(math.prod(shape), dtype)
        _fill(path, file, array.view(np.uint8).data, head[offset : offset + needed])
    if dtype.kind == "b" and np.any(array.view(np.uint8) > 1):
        wrong = int(np.argmax(array.view(np.uint8) > 1))
        raise CommandError(
            f"{path} is damaged: element {wrong} in the file's order is {array.view(np.uint8)[wrong]}, where a bool is "
            "0 or 1"
        )
    try:
        shaped = array.reshape(shape[::-1]).T if is_fortran else array.reshape(shape)
    except (ValueError, OverflowError) as error:  # no elements in dimensions that are too large
        raise CommandError(f"{path} is damaged: {error}") from None
    if there > needed:
        warnings.warn(
            f"{path} goes on for {count(there - needed, 'byte')} after its array, which are not read; numpy.load "
            "reads further arrays of a file one by one",
            stacklevel=2,
        )
    return shaped


def _fill(path: Path, file: io.RawIOBase, data: memoryview, known: bytes) -> None:
    """Fill memory with what is known of a file already, and then with what follows in it."""
    data[: len(known)] = known
    done = len(known)
    while done < len(data):
        got = file.readinto(data[done:])
        if not got:
            raise CommandError(f"{path} is damaged or truncated: it ends {count(len(data) - done, 'byte')} early")
        done += got


def _read_up_to(file: io.RawIOBase, most: int) -> bytes:
    pieces = b""
    while len(pieces) < most and (piece := file.read(most - len(pieces))):
        pieces += piece
    return pieces


def _header(path: Path, head: bytes) -> tuple[np.dtype[Any], tuple[int, ...], bool, int]:
    """Return the header's contents and the position of the first element."""
    if not head.startswith(_MAGIC):
        raise CommandError(f"{path} is not a .npy file: it does not begin with NumPy's mark")

    def damaged(why: object) -> NoReturn:
        raise CommandError(f"{path} is damaged or truncated: {why}")

    if len(head) < len(_MAGIC) + 6:
        damaged("it ends within its header")
    version, read, size = {
        1: (1, np.lib.format.read_array_header_1_0, 2),
        2: (2, np.lib.format.read_array_header_2_0, 4),
        3: (3, np.lib.format.read_array_header_2_0, 4),  # as 2, but that names of fields are UTF-8
    }.get(head[6], (0, np.lib.format.read_array_header_1_0, 2))
    if version == 0 or head[7] != 0:
        raise CommandError(f"{path} has version {head[6]}.{head[7]} of the .npy format; dmlgpu reads 1.0, 2.0 and 3.0")
    length = int.from_bytes(head[8 : 8 + size], "little")
    offset = 8 + size + length
    if length > _LONGEST_HEADER:
        damaged(f"its header has {length} bytes, and those of arrays of numbers have {_LONGEST_HEADER} at most")
    if len(head) < offset:
        damaged("it ends within its header")
    try:
        shape, is_fortran, dtype = read(io.BytesIO(head[8:offset]))
    except Exception as error:  # a damaged header can raise nearly anything in NumPy's parser
        damaged(error)
    if any(type(size) is not int or size < 0 for size in shape):
        damaged(f"its shape is {shape}")
    return dtype, shape, is_fortran, offset


# Writing


def write_npy(file: IO[bytes], array: NDArray[Any]) -> None:
    """Write an array to an open .npy file."""
    header = np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(file, header)
    # NumPy would write the elements by C's stdio, whose errors do not say what went wrong.
    flat = np.ascontiguousarray(array.T if header["fortran_order"] else array).reshape(-1).view(np.uint8)
    for start in range(0, flat.size, _AT_ONCE):
        file.write(flat[start : start + _AT_ONCE].data)


def check_replaceable(path: Path) -> None:
    """Make sure, as far as that can be before the work, that a file can be created or replaced.

    Raises
    ------
    CommandError
        As `replacing` would.
    """
    with _temporary(path) as (file, name, _):
        file.close()
        os.unlink(name)


def check_outputs(options: Mapping[str, str | None]) -> dict[str, Path]:
    """Return the output files that options name, after `check_replaceable` and that none is named twice.

    Parameters
    ----------
    options : mapping of str to str or None
        The files by the options that name them.
    """
    paths = {option: Path(name) for option, name in options.items() if name is not None}
    options_of: dict[str, str] = {}
    for option, path in paths.items():
        check_replaceable(path)
        other = options_of.setdefault(os.path.realpath(path), option)
        if other != option:
            raise CommandError(f"{other} and {option} both name {path}: give each a file of its own")
    return paths


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file that takes the place of `path` once it is complete and on the disk.

    Until the block ends, `path` stays as it was; if the block fails, for good. An existing file's permissions and owner
    are kept, a new one gets those that the umask allows, and a symbolic link keeps pointing where it did.

    Parameters
    ----------
    path : Path
        The file to create or replace.

    Yields
    ------
    file
        The new file, open for writing bytes, in the same folder.

    Raises
    ------
    CommandError
        If the file cannot be created, written or renamed, or is one that replacing would do harm to: one with several
        names, of another user, write-protected, no ordinary file, or a link to a file of another kind.
    """
    with _temporary(path) as (file, name, target):
        yield cast(IO[bytes], file)
        try:
            os.fsync(file.fileno())
        except OSError as error:
            if error.errno not in _NO_SUCH_OPERATION:
                raise
        file.close()
        os.replace(name, target)
        try:
            _flush_folder(os.path.dirname(target))
        except OSError as error:
            raise CommandError(
                f"{path} is written, but may not survive a power failure: its folder cannot be flushed to the disk: "
                f"{error.strerror or error}"
            ) from error


def _flush_folder(folder: str) -> None:
    """Flush a folder, so that a new name in it is on the disk."""
    if os.name != "posix":
        return  # Windows opens no folders
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        return  # one may write to it, but not look at it
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SUCH_OPERATION:
            raise
    finally:
        os.close(descriptor)


@contextmanager
def _temporary(path: Path) -> Iterator[tuple[_Raw, str, str]]:
    """Create a file beside the one that it is to replace, with its owner and permissions; remove it after a failure.

    Yields the file, its name, and the name that it is for: `path`, or where that leads as a link.
    """
    target, old = _target(path)
    name = os.path.join(os.path.dirname(target), f".dmlgpu-{secrets.token_hex(6)}.tmp")
    file = None
    with _unfinished(name):
        try:
            # Until it has the old one's owner, nobody else may look into it.
            file = _Raw(os.open(name, _WRITE_FLAGS, 0o666 if old is None else 0o600))
            if old is not None:
                _adopt(path, file, name, old)
            yield file, name, target
        except BaseException as error:
            # The temporary file's name would tell the reader nothing, unless it stays.
            left = _remove(file, name)
            if isinstance(error, OSError) or (left and isinstance(error, CommandError)):
                said = f"cannot write {path}: {error.strerror or error}" if isinstance(error, OSError) else str(error)
                raise CommandError(said + left) from error
            raise


def _remove(file: _Raw | None, name: str) -> str:
    """Close and remove an unfinished file; return what to add to an error message if it stays."""
    if file is not None:
        with suppress(OSError):
            file.close()
    try:
        os.unlink(name)
    except FileNotFoundError:
        pass
    except OSError as error:
        return f"; {name} is left, which could not be removed: {error.strerror or error}"
    return ""


def _target(path: Path) -> tuple[str, os.stat_result | None]:
    """Return the file that a path leads to, which may be created or replaced, and its status if it exists."""
    try:
        old = os.stat(path)
    except FileNotFoundError:
        old = None
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror or error}") from error
    target = os.path.realpath(path)
    if old is not None and not stat.S_ISREG(old.st_mode):
        raise CommandError(f"cannot write {path}: it exists and is not an ordinary file")
    if os.path.islink(path) and os.path.splitext(target)[1].lower() != path.suffix.lower():
        raise CommandError(f"cannot write {path}: it is a link to {target}, which is no {path.suffix} file; remove it")
    if not os.path.isdir(os.path.dirname(target)):
        folder = os.path.dirname(target) if os.path.islink(path) else path.parent
        raise CommandError(f"cannot write {path}: {folder} is not a folder; create it first")
    if old is not None and old.st_nlink > 1:
        raise CommandError(
            f"cannot write {path}: it has {old.st_nlink} names (hard links), and only this one would get the new "
            "content; write to another file, or remove this name first"
        )
    if old is not None and not os.access(target, os.W_OK):
        raise CommandError(f"cannot write {path}: it is write-protected; make it writable, or write to another file")
    return target, old


def _adopt(path: Path, file: _Raw, name: str, old: os.stat_result) -> None:
    """Give a new file the owner and permissions of the old one."""
    new = os.fstat(file.fileno())
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(file.fileno(), old.st_uid, old.st_gid)
        except PermissionError:
            raise CommandError(
                f"cannot write {path}: it belongs to user {old.st_uid} and group {old.st_gid}, which the system does "
                "not let this user give to the new file; write to another file, or remove this one first"
            ) from None
    if stat.S_IMODE(new.st_mode) != stat.S_IMODE(old.st_mode):
        if os.name == "posix":
            os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
        else:
            os.chmod(name, stat.S_IMODE(old.st_mode))


# Signals


@contextmanager
def _unfinished(name: str) -> Iterator[None]:
    """Remove a file if a signal ends the process while the context lasts.

    Outside the context signals do what they always did: a driver that hangs can be ended. A signal that is ignored, as
    under nohup, stays ignored.

    Parameters
    ----------
    name : str
        The file, which need not exist yet.
    """
    previous: dict[int, Any] = {}
    _unfinished_names.add(name)
    try:
        if threading.current_thread() is threading.main_thread():  # no other may say what signals do
            for number in SIGNALS:
                if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                    previous[number] = signal.signal(number, _end)
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        _unfinished_names.discard(name)


def _end(number: int, frame: FrameType | None) -> None:
    for other in SIGNALS:  # one is enough
        if signal.getsignal(other) is _end:
            signal.signal(other, signal.SIG_IGN)
    # The handler removes the files itself: an exception alone could come where nothing catches it.
    for name in list(_unfinished_names):
        with suppress(OSError):
            os.unlink(name)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    die_of(number)


def die_of(number: int) -> None:
    """End the process by a signal, so that a shell knows why it ended; does nothing on Windows."""
    if os.name == "posix":
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
