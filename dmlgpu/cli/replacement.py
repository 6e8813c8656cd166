"""Replacing a file in one step: a new one is written beside it, and takes its name once it is complete."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, cast

from .console import CommandError
from .locks import lock
from .raw_files import NO_SUCH_OPERATION, RawFile, close_quietly, flush_file, trying_to
from .signals import removed_by_signals

__all__ = ["check_replaceable", "continuing", "replacing"]

_WRITE_FLAGS = (
    os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
)  # exclusive creation follows no link
_READ_WRITE_FLAGS = _WRITE_FLAGS & ~os.O_WRONLY | os.O_RDWR

_PATIENCE_SECONDS = 2.0
"""How long Windows is asked to rename a file: it refuses while any other program has the old one open."""
_LOOK_SECONDS = 0.05


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


def _put_in_place(path: Path, file: RawFile, name: str, target: str) -> None:
    """Give a complete file its name, and have both on the disk."""
    flush_file(file)
    file.close()
    _rename(name, target)
    try:
        _flush_folder(os.path.dirname(target))
    except OSError as error:
        raise CommandError(
            f"{path} is written, but may not survive a power failure: its folder cannot be flushed to the disk: "
            f"{error.strerror or error}"
        ) from error


def _rename(name: str, target: str) -> None:
    """Give a file the name of another one, which goes; Windows is asked again while a reader or a scanner has that."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            os.replace(name, target)
        except PermissionError:
            if os.name == "posix" or time.monotonic() >= until:
                raise
            time.sleep(_LOOK_SECONDS)
        else:
            return


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
        if error.errno not in NO_SUCH_OPERATION:
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
    with nullcontext() if resume else removed_by_signals(name):
        try:
            if file is None:
                # Until it has the old one's owner, nobody else may look into it.
                flags = _WRITE_FLAGS if resume is None else _READ_WRITE_FLAGS
                file = RawFile(os.open(name, flags, 0o666 if old is None else 0o600))
                if resume is not None and not lock(file.fileno()):
                    raise CommandError(_busy(path))
            if old is not None:
                _adopt(path, file, name, old)
            yield file, name, target
        except BaseException as error:
            # The temporary file's name would tell the reader nothing, unless it stays.
            close_quietly(file)
            left = "" if resume else _remove(name)
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
        with trying_to("write", path):
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
                raise CommandError(f"cannot write {path}: {name} is not what an earlier run left; remove it")
            if not lock(file.fileno()):
                raise CommandError(_busy(path))
            if not resume:
                _remove_locked(path, file, name)
    except BaseException:
        close_quietly(file)
        raise
    if resume:
        return file
    close_quietly(file)
    return None


def _remove_locked(path: Path, file: RawFile, name: str) -> None:
    """Remove a file whose lock this process has."""
    if os.name == "posix":
        os.unlink(name)  # under the lock: nobody else finds it any more
        return
    file.close()  # Windows removes no file that is open, be it here or in a process that has come meanwhile
    try:
        os.unlink(name)
    except FileNotFoundError:
        pass
    except PermissionError:
        raise CommandError(_busy(path)) from None


def _busy(path: Path) -> str:
    return f"cannot write {path}: another process is writing it in blocks; wait for its end, or write to another file"


def _remove(name: str) -> str:
    """Remove an unfinished file; return what to add to an error message if it stays."""
    try:
        os.unlink(name)
    except FileNotFoundError:
        pass
    except OSError as error:
        return f"; {name} is left, which could not be removed: {error.strerror or error}"
    return ""


def _target(path: Path) -> tuple[str, os.stat_result | None]:
    """Return the file that a path leads to, which may be created or replaced, and its status if it exists."""
    old = None
    with trying_to("write", path), suppress(FileNotFoundError):
        old = os.stat(path)
    try:
        target = os.path.realpath(path)
    except FileNotFoundError:  # from the working directory, which begins the path
        raise CommandError(
            f"cannot write {path}: the working directory has been removed; change to another one, or give a name that "
            "begins at the root"
        ) from None
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
