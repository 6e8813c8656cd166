"""Arrays in .npz files: .npy files in a zip archive, each compressed or not."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DmlGpuError, counted
from .console import CommandError, is_of_threads
from .npy_files import NpyHeader, check_bools, fill, read_header, shaped, write_npy
from .raw_files import buffered, reading, trying_to
from .replacement import replacing

if TYPE_CHECKING:
    from .stream import Task

try:
    from lzma import LZMAError
except ImportError:  # of a Python that was built without it; then zipfile says so for a member that needs it

    class LZMAError(Exception):  # type: ignore[no-redef]
        """Nothing raises this."""


__all__ = ["Archive", "archive_bytes", "read_archive", "stream_archive", "write_archive"]


_DAMAGE = (zipfile.BadZipFile, zlib.error, LZMAError, EOFError, NotImplementedError, RuntimeError, ValueError)
"""What zipfile raises where an archive is not what it says."""


@dataclass(frozen=True)
class Archive:
    """The contents of a .npz file.

    Attributes
    ----------
    arrays : mapping of str to NDArray
        The arrays by their names.
    compression : int
        How the first one is compressed, as `zipfile` counts.
    """

    arrays: Mapping[str, NDArray[Any]]
    compression: int


def read_archive(path: Path, memory: int | None = None) -> Archive:
    """Read all arrays of a .npz file.

    Parameters
    ----------
    path : Path
        The file.
    memory : int, optional
        The bytes that the arrays may have together.

    Raises
    ------
    CommandError
        If the file is no complete .npz file, or holds something else than arrays that have a type on the device.
    OSError
        If it cannot be opened.
    """
    arrays: dict[str, NDArray[Any]] = {}
    with _opened(path) as archive:
        members = archive.infolist()
        size = sum(member.file_size for member in members)
        if memory is not None and size > memory:
            raise CommandError(
                f"{path} holds {size} bytes of arrays, is read whole for a summary, and --memory allows {memory}: "
                "allow more, or give -o with a .npz file, for which each array is read and written block by block"
            )
        for name, member in _named(path, members):
            with archive.open(member) as content:
                arrays[name] = _array(path / member.filename, content, member.file_size)
    return Archive(arrays, members[0].compress_type)


def archive_bytes(path: Path) -> int:
    """Return how many bytes the arrays of a .npz file have together.

    Raises
    ------
    CommandError, OSError
        If it cannot be read.
    """
    with _opened(path) as archive:
        return sum(member.file_size for member in archive.infolist())


def stream_archive(
    source: Path,
    target: Path,
    along: Callable[[Path, tuple[int, ...], np.dtype[Any]], int | None],
    task: Task,
    memory: int,
) -> str:
    """Compute each array of a .npz file block by block, and write them to another one.

    Parameters
    ----------
    source, target : Path
        The files.
    along : callable
        Returns the axis of an array by name, shape and type; None where elements have nothing to do with each other.
    task : Task
        What to compute.
    memory : int
        The bytes to take at most, on host and device together.

    Returns
    -------
    str
        How many arrays there are.

    Raises
    ------
    CommandError
        As for `read_archive`, and if the result cannot be written.
    """
    from .stream import pass_through, writing

    with replacing(target) as output, _opened(source) as archive, writing(target):
        members = archive.infolist()
        with zipfile.ZipFile(output, "w", members[0].compress_type if members else zipfile.ZIP_STORED) as written:
            for name, member in _named(source, members):
                path = source / member.filename
                with archive.open(member) as content:
                    with trying_to("read", path):
                        header = _header(path, content, member.file_size)
                    with written.open(_member(name, written.compression), "w", force_zip64=True) as result:
                        pass_through(path, content, header, result, partial(along, path), task, memory)
                    with trying_to("read", path):
                        content.read(1)  # whose end has the checksum looked at
    return counted(len(members), "array")


def _named(path: Path, members: Sequence[zipfile.ZipInfo]) -> Iterator[tuple[str, zipfile.ZipInfo]]:
    """Yield the members with the names of their arrays."""
    names = set()
    for member in members:
        name = member.filename.removesuffix(".npy")
        if name == member.filename or name in names:
            raise CommandError(f"{path} holds {member.filename!r}, which is no array with a name of its own")
        names.add(name)
        yield name, member
    if not names:
        raise CommandError(f"{path} holds no array")


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a .npz file to read it, and have errors say that it is damaged."""
    with reading(path) as file, buffered(file) as content:
        try:
            with zipfile.ZipFile(content) as archive:
                yield archive
        except _DAMAGE as error:
            if isinstance(error, DmlGpuError) or is_of_threads(error):
                raise
            if isinstance(error.__context__, OSError):  # which zipfile takes for another kind of file
                raise CommandError(f"cannot read {path}: {error.__context__.strerror or error.__context__}") from error
            raise CommandError(f"{path} is damaged, or not a .npz file that can be read: {error}") from None


def _header(path: Path, content: IO[bytes], size: int) -> NpyHeader:
    header = read_header(path, content)
    if size - header.offset != header.nbytes:
        raise CommandError(
            f"{path} is damaged: its header announces {counted(header.nbytes, 'byte')} of elements, and "
            f"{max(size - header.offset, 0)} are there"
        )
    return header


def _array(path: Path, content: IO[bytes], size: int) -> NDArray[Any]:
    header = _header(path, content, size)
    array = np.empty(header.elements, header.dtype)
    fill(path, content, array.view(np.uint8).data)
    content.read(1)  # whose end has the checksum looked at
    check_bools(path, array)
    return shaped(array, header)


def write_archive(file: IO[bytes], archive: Archive) -> None:
    """Write arrays to an open .npz file."""
    with zipfile.ZipFile(file, "w", archive.compression) as written:
        for name, array in archive.arrays.items():
            with written.open(_member(name, archive.compression), "w", force_zip64=True) as content:
                write_npy(content, array)


def _member(name: str, compression: int) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(f"{name}.npy")
    member.compress_type = compression
    return member
