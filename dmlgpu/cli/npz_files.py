"""Arrays in .npz files: .npy files in a zip archive, each compressed or not."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .console import CommandError, count
from .files import RawFile, check_bools, fill, read_header, reading, shaped, write_npy

__all__ = ["Archive", "read_archive", "write_archive"]


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
    with reading(path) as file, _buffered(file) as buffered:
        try:
            with zipfile.ZipFile(buffered) as archive:
                members = archive.infolist()
                size = sum(member.file_size for member in members)
                if memory is not None and size > memory:
                    raise CommandError(
                        f"{path} holds {size} bytes of arrays, is read whole, and --memory allows {memory}: allow "
                        "more, or give the arrays as .npy files, which go block by block"
                    )
                for member in members:
                    name = member.filename.removesuffix(".npy")
                    if name == member.filename or name in arrays:
                        raise CommandError(
                            f"{path} holds {member.filename!r}, which is no array with a name of its own"
                        )
                    with archive.open(member) as content:
                        arrays[name] = _array(path / member.filename, content, member.file_size)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
            if isinstance(error, CommandError):
                raise
            raise CommandError(f"{path} is damaged, or not a .npz file that can be read: {error}") from None
    if not arrays:
        raise CommandError(f"{path} holds no array")
    return Archive(arrays, members[0].compress_type)


@contextmanager
def _buffered(file: RawFile) -> Iterator[IO[bytes]]:
    """Give a file whose reads are whole; it does not close the file."""
    buffered = io.BufferedReader(file)
    try:
        yield buffered
    finally:
        buffered.detach()


def _array(path: Path, content: IO[bytes], size: int) -> NDArray[Any]:
    header = read_header(path, content)
    if size - header.offset != header.nbytes:
        raise CommandError(
            f"{path} is damaged: its header announces {count(header.nbytes, 'byte')} of elements, and "
            f"{max(size - header.offset, 0)} are there"
        )
    array = np.empty(header.elements, header.dtype)
    fill(path, content, array.view(np.uint8).data)
    content.read(1)  # whose end has the checksum looked at
    check_bools(path, array)
    return shaped(array, header)


def write_archive(file: IO[bytes], archive: Archive) -> None:
    """Write arrays to an open .npz file."""
    with zipfile.ZipFile(file, "w", archive.compression) as written:
        for name, array in archive.arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy")
            member.compress_type = archive.compression
            with written.open(member, "w", force_zip64=True) as content:
                write_npy(content, array)
