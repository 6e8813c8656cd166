"""Files: .npy arrays, the rules that all input and output files share, and replacing a file in one step."""

from __future__ import annotations

import errno
import hashlib
import io
import math
import os
import secrets
import signal
import stat
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Any, Literal, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from ..dtypes import by_dtype
from ..layout import MAX_DIMENSIONS, MAX_ELEMENTS
from .console import CommandError, count, flush, unwritable

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "SIGNALS",
    "STANDARD",
    "Format",
    "NpyHeader",
    "RawFile",
    "check_bools",
    "check_input",
    "check_length",
    "check_output",
    "check_outputs",
    "check_replaceable",
    "continuing",
    "die_of",
    "fill",
    "flush_file",
    "input_format",
    "output_format",
    "read_header",
    "read_npy",
    "reading",
    "replacing",
    "shaped",
    "standard_output",
    "write_npy",
]

Format = Literal["npy", "npz", "csv", "parquet"]

STANDARD = Path("-")
"""Stands for standard input and standard output, which hold a .npy file."""

_AT_ONCE = 1 << 24
_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 10_000
"""The longest header, which is NumPy's limit, too. That of an array of numbers has 128 bytes."""
_MOST_ELEMENTS = 1 << 58
"""NumPy has no larger arrays, also where a size of 0 leaves no element."""
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_WRITE_FLAGS = (
    os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
)  # exclusive creation follows no link
_READ_WRITE_FLAGS = _WRITE_FLAGS & ~os.O_WRONLY | os.O_RDWR
_NO_SUCH_OPERATION = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EBADF})
"""The errors by which file systems say that they cannot flush something."""

_SIGNAL_NAMES = (
    *("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGXCPU", "SIGPOLL"),
    *("SIGUSR1", "SIGUSR2", "SIGBREAK"),
)
SIGNALS = tuple(getattr(signal, name) for name in _SIGNAL_NAMES if hasattr(signal, name))
"""The signals that end a process by default, without those that report a broken program."""

_unfinished_names: set[str] = set()


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

    def readinto(self, buffer: Any) -> int:
        """Read as much as the system gives, and return how much."""
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
        """Close the descriptor, if it is this file's own."""
        if not self.closed:
            super().close()
            if self._owned:
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
    if path != STANDARD:
        check_input(path)
    elif sys.stdin is not None and sys.stdin.isatty():
        raise CommandError("- reads a .npy file from standard input, which is a terminal: send one through a pipe")
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
    if path != STANDARD:
        check_replaceable(path)
    elif sys.stdout.isatty():
        raise CommandError("-o - writes a .npy file to standard output, which is a terminal: send it through a pipe")
    return kind


def output_format(path: Path) -> Format:
    """Return the format of an output file by its name; CommandError if that has another extension."""
    return _format(path, "writes")


def _format(path: Path, verb: str) -> Format:
    if path == STANDARD:
        return "npy"
    match path.suffix.lower():
        case ".npy":
            return "npy"
        case ".npz":
            return "npz"
        case ".csv":
            return "csv"
        case ".parquet":
            return "parquet"
        case suffix:
            what = f"the extension {suffix}" if suffix else "no extension"
            raise CommandError(f"{str(path)!r} has {what}; dmlgpu {verb} .npy, .npz, .csv and .parquet files")


# Reading


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
    if path == STANDARD:
        with RawFile(0, owned=False) as file:
            try:
                yield file
            except OSError as error:
                raise CommandError(f"cannot read standard input: {error.strerror or error}") from error
        return
    check_input(path)  # opening a device can do things
    file = RawFile(os.open(path, _READ_FLAGS))
    try:
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
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror or error}") from error
    finally:
        _closed(file)


def _check_unchanged(path: Path, file: RawFile, before: os.stat_result) -> None:
    after = os.fstat(file.fileno())
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise CommandError(f"{path} changed while it was read; run this again once it is complete")


@dataclass(frozen=True)
class NpyHeader:
    """What a .npy file says of its array.

    Attributes
    ----------
    dtype : numpy.dtype
        The type of the elements, in the byte order that they have in the file.
    shape : tuple of int
        The sizes.
    is_fortran : bool
        Whether the first index changes fastest in the file.
    offset : int
        The position of the first element, counted from the file's beginning.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_fortran: bool
    offset: int

    @property
    def elements(self) -> int:
        """How many elements the array has."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """How many bytes these take."""
        return self.elements * self.dtype.itemsize


def read_npy(path: Path, memory: int | None = None) -> NDArray[Any]:
    """Read an array from a .npy file of any format version, without ever unpickling.

    Parameters
    ----------
    path : Path
        The file; `STANDARD` is standard input.
    memory : int, optional
        The bytes that the array and a result of its size may take on the host and the device together.

    Raises
    ------
    CommandError
        If the file is not a complete .npy file, its elements have no type on the device, or it is too large.
    OSError
        If it cannot be opened.
    """
    with reading(path) as file:
        header = read_header(path, file)
        check_length(path, file, header)
        if header.elements > MAX_ELEMENTS:
            raise CommandError(
                f"{path} has {header.elements} elements, and {MAX_ELEMENTS} at most can be in memory at once: give -o "
                "with a .npy file, for which an array is read and written block by block"
            )
        needed = 2 * (header.nbytes + header.elements * max(header.dtype.itemsize, 8 * (header.dtype.kind in "biu")))
        if memory is not None and needed > memory:
            raise CommandError(
                f"{path} takes {needed} bytes with its result, and --memory allows {memory}: allow more, or give -o "
                "with a .npy file, for which an array is read and written block by block"
            )
        array = np.empty(header.elements, header.dtype)
        fill(path, file, array.view(np.uint8).data)
    check_bools(path, array)
    return shaped(array, header)


def shaped(array: NDArray[Any], header: NpyHeader) -> NDArray[Any]:
    """Return elements in a file's order as the array that its header says."""
    return array.reshape(header.shape[::-1]).T if header.is_fortran else array.reshape(header.shape)


def read_header(path: Path, file: io.RawIOBase | IO[bytes]) -> NpyHeader:
    """Read the header of a .npy file up to its first element.

    Raises
    ------
    CommandError
        If it is not complete, or of an array that no operator takes.
    """
    dtype, shape, is_fortran, offset = _header(path, file)
    if dtype.hasobject:
        raise CommandError(
            f"{path} holds Python objects, which are never loaded; convert them with astype to numbers first"
        )
    by_dtype(dtype, str(path))
    if len(shape) > MAX_DIMENSIONS:
        raise CommandError(f"{path} has {len(shape)} dimensions; dmlgpu takes up to {MAX_DIMENSIONS}: reshape it")
    return NpyHeader(dtype, shape, is_fortran, offset)


def check_length(path: Path, file: io.RawIOBase, header: NpyHeader) -> None:
    """Raise CommandError if a file has fewer elements than its header says; a note says what follows them.

    Of standard input nobody knows where it ends.
    """
    if path == STANDARD:
        return
    there = os.fstat(file.fileno()).st_size - header.offset
    if there < header.nbytes:
        raise CommandError(
            f"{path} is damaged or truncated: its header announces {count(header.nbytes, 'byte')} of elements, and "
            f"{max(there, 0)} are there"
        )
    if there > header.nbytes:
        warnings.warn(
            f"{path} goes on for {count(there - header.nbytes, 'byte')} after its array, which are not read; "
            "numpy.load reads further arrays of a file one by one",
            stacklevel=2,
        )


def check_bools(path: Path, array: NDArray[Any], first: int = 0) -> None:
    """Raise CommandError if an array of bool has other bytes than 0 and 1; `first` is its place in the file."""
    if array.dtype.kind != "b":
        return
    values = array.reshape(-1).view(np.uint8)
    if np.any(values > 1):
        wrong = int(np.argmax(values > 1))
        raise CommandError(
            f"{path} is damaged: element {first + wrong} in the file's order is {values[wrong]}, where a bool is 0 or 1"
        )


def fill(path: Path, file: Any, data: memoryview) -> None:
    """Fill memory with what follows in an open file; CommandError if that is less."""
    done = 0
    while done < len(data):
        got = file.readinto(data[done:])
        if not got:
            raise CommandError(f"{path} is damaged or truncated: it ends {count(len(data) - done, 'byte')} early")
        done += got


def _read_up_to(file: io.RawIOBase | IO[bytes], most: int) -> bytes:
    pieces = b""
    while len(pieces) < most and (piece := file.read(most - len(pieces))):
        pieces += piece
    return pieces


def _header(path: Path, file: io.RawIOBase | IO[bytes]) -> tuple[np.dtype[Any], tuple[int, ...], bool, int]:
    """Return the header's contents and the position of the first element, to which the file is read."""
    head = _read_up_to(file, len(_MAGIC) + 2)
    if not head.startswith(_MAGIC):
        raise CommandError(f"{path} is not a .npy file: it does not begin with NumPy's mark")

    def damaged(why: object) -> NoReturn:
        raise CommandError(f"{path} is damaged or truncated: {why}")

    if len(head) < len(_MAGIC) + 2:
        damaged("it ends within its header")
    version, read, size = {
        1: (1, np.lib.format.read_array_header_1_0, 2),
        2: (2, np.lib.format.read_array_header_2_0, 4),
        3: (3, np.lib.format.read_array_header_2_0, 4),  # as 2, but that names of fields are UTF-8
    }.get(head[6], (0, np.lib.format.read_array_header_1_0, 2))
    if version == 0 or head[7] != 0:
        raise CommandError(f"{path} has version {head[6]}.{head[7]} of the .npy format; dmlgpu reads 1.0, 2.0 and 3.0")
    announced = _read_up_to(file, size)
    length = int.from_bytes(announced, "little")
    if length > _LONGEST_HEADER and len(announced) == size:
        damaged(f"its header has {length} bytes, and those of arrays of numbers have {_LONGEST_HEADER} at most")
    text = _read_up_to(file, length)
    if len(announced) < size or len(text) < length:
        damaged("it ends within its header")
    try:
        shape, is_fortran, dtype = read(io.BytesIO(announced + text))
    except Exception as error:  # a damaged header can raise nearly anything in NumPy's parser
        damaged(error)
    if any(type(size) is not int or size < 0 for size in shape) or math.prod(filter(None, shape)) > _MOST_ELEMENTS:
        damaged(f"its shape is {shape}")
    return dtype, shape, is_fortran, len(head) + size + length


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
        _put_in_place(path, file, name, target)


@contextmanager
def continuing(path: Path, *, resume: bool) -> Iterator[RawFile]:
    """Open a file that takes the place of `path` as that of `replacing` does, but outlives a process that is killed.

    Parameters
    ----------
    path : Path
        The file to create or replace.
    resume : bool
        Whether to open what an earlier process left, if it did; and to leave what there is if this one fails, too.

    Yields
    ------
    file
        The file, open for reading and writing, with what is there already.

    Raises
    ------
    CommandError
        As for `replacing`, and if another process is writing the same file.
    """
    with _temporary(path, resume) as (file, name, target):
        yield file
        _put_in_place(path, file, name, target)


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
        if error.errno not in _NO_SUCH_OPERATION:
            raise


def _put_in_place(path: Path, file: RawFile, name: str, target: str) -> None:
    """Give a complete file its name, and have both on the disk."""
    flush_file(file)
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
def _temporary(path: Path, resume: bool | None = None) -> Iterator[tuple[RawFile, str, str]]:
    """Create a file beside the one that it is to replace, with its owner and permissions; remove it after a failure.

    Yields the file, its name, and the name that it is for: `path`, or where that leads as a link. With `resume` True or
    False it has a name that another process finds again; with True it is what that process left, and it stays.
    """
    target, old = _target(path)
    token = secrets.token_hex(6)
    if resume is not None:
        token = hashlib.sha256(os.fsencode(os.path.basename(target))).hexdigest()[:12]
    name = os.path.join(os.path.dirname(target), f".dmlgpu-{token}.tmp")
    file = None if resume is None else _left(path, name, resume)
    with nullcontext() if resume else _unfinished(name):
        try:
            if file is None:
                # Until it has the old one's owner, nobody else may look into it.
                flags = _WRITE_FLAGS if resume is None else _READ_WRITE_FLAGS
                file = RawFile(os.open(name, flags, 0o666 if old is None else 0o600))
                if resume is not None and not _lock(file):
                    raise CommandError(_busy(path))
            if old is not None:
                _adopt(path, file, name, old)
            yield file, name, target
        except BaseException as error:
            # The temporary file's name would tell the reader nothing, unless it stays.
            left = _closed(file) if resume else _remove(file, name)
            if isinstance(error, OSError) or (left and isinstance(error, CommandError)):
                said = f"cannot write {path}: {error.strerror or error}" if isinstance(error, OSError) else str(error)
                raise CommandError(said + left) from error
            raise


def _left(path: Path, name: str, resume: bool) -> RawFile | None:
    """Return the file that an earlier process left under a name, to go on with it; remove it if that is not wanted."""
    try:
        descriptor = os.open(name, _READ_WRITE_FLAGS & ~(os.O_CREAT | os.O_EXCL) | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CommandError(f"cannot write {path}: {name} cannot be opened: {error.strerror or error}") from error
    file = RawFile(descriptor)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            raise CommandError(f"cannot write {path}: {name} is not what an earlier run left; remove it")
        if not _lock(file):
            raise CommandError(_busy(path))
        if not resume:
            os.unlink(name)
    except OSError as error:
        _closed(file)
        raise CommandError(f"cannot write {path}: {error.strerror or error}") from error
    except BaseException:
        _closed(file)
        raise
    if resume:
        return file
    _closed(file)
    return None


def _busy(path: Path) -> str:
    return f"cannot write {path}: another process is writing it in blocks; wait for its end, or write to another file"


def _lock(file: RawFile) -> bool:
    """Take the lock of a file until it is closed; False if another process has it."""
    if fcntl is None:
        return True  # Windows lets nobody remove an open file
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    return True


def _closed(file: RawFile | None) -> str:
    """Close a file that stays; return nothing to add to an error message."""
    if file is not None:
        with suppress(OSError):
            file.close()
    return ""


def _remove(file: RawFile | None, name: str) -> str:
    """Close and remove an unfinished file; return what to add to an error message if it stays."""
    _closed(file)
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


def _adopt(path: Path, file: RawFile, name: str, old: os.stat_result) -> None:
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
            signal.signal(other, _nothing)  # not SIG_IGN: of one that has come already Python would print that
    # The handler removes the files itself: an exception alone could come where nothing catches it.
    for name in list(_unfinished_names):
        with suppress(OSError):
            os.unlink(name)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    die_of(number)


def _nothing(number: int, frame: FrameType | None) -> None:
    pass


def die_of(number: int) -> None:
    """End the process by a signal, so that a shell knows why it ended; does nothing on Windows."""
    if os.name == "posix":
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
