"""Files: .npy arrays, the rules that all input and output files share, and replacing a file in one step."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..dtypes import by_dtype
from .console import CommandError

__all__ = ["Format", "check_output", "input_format", "read_npy", "replacing", "write_npy"]

Format = Literal["npy", "csv"]

MAP_FROM_BYTES = 1 << 24
"""Arrays from this size on are read from the mapped file; smaller ones are copied to memory first."""

_MAGIC = b"\x93NUMPY"


def input_format(path: Path) -> Format:
    """Return the format of an input file by its name, after checking that it is a file with something in it.

    Raises
    ------
    CommandError
        If it is a directory, a device, empty, or has another extension.
    OSError
        If it cannot be opened.
    """
    kind = _format(path, "reads")
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise CommandError(f"{path} is a directory; give a file")
    if not stat.S_ISREG(status.st_mode):
        raise CommandError(f"{path} is not an ordinary file; copy it into one")
    if status.st_size == 0:
        raise CommandError(f"{path} is empty")
    return kind


def check_output(path: Path) -> Format:
    """Return the format of an output file by its name, after checking what can be checked before the work.

    Raises
    ------
    CommandError
        If it has another extension, is not an ordinary file, or its folder does not exist.
    """
    kind = _format(path, "writes")
    if path.exists() and not path.is_file():
        raise CommandError(f"cannot write {path}: it exists and is not an ordinary file")
    folder = _real(path).parent
    if not folder.is_dir():
        raise CommandError(f"cannot write {path}: {folder} is not a folder; create it first")
    return kind


def _real(path: Path) -> Path:
    """Follow symbolic links; unlike Path.resolve, a loop of links is left for the file system to report."""
    return Path(os.path.realpath(path))


def _format(path: Path, verb: str) -> Format:
    match path.suffix.lower():
        case ".npy":
            return "npy"
        case ".csv":
            return "csv"
        case suffix:
            what = f"the extension {suffix}" if suffix else "no extension"
            raise CommandError(f"{str(path)!r} has {what}; dmlgpu {verb} .npy and .csv files")


def read_npy(path: Path) -> NDArray[Any]:
    """Read an array from a .npy file of any format version, without ever unpickling.

    Large arrays stay in the file and are mapped, so that their elements go to the device without a copy in between.

    Raises
    ------
    CommandError
        If the file is not a complete .npy file or its elements have no type on the device.
    OSError
        If it cannot be read.
    """
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise CommandError(f"{path} is not a .npy file: it does not begin with NumPy's mark")
    try:
        # Mapping also compares the header's shape with the file's length before any memory is taken for it.
        mapped = np.lib.format.open_memmap(path, mode="r")
    except OSError:
        raise
    except Exception as error:  # a damaged header can raise nearly anything in NumPy's parser
        if "Python objects" in str(error):
            raise CommandError(
                f"{path} holds Python objects, which are never loaded; convert them with astype to numbers first"
            ) from None
        raise CommandError(f"{path} is damaged or truncated: {error}") from None
    by_dtype(mapped.dtype, str(path))
    if mapped.nbytes < MAP_FROM_BYTES:
        return np.array(mapped, subok=False)
    return mapped.view(np.ndarray)


def write_npy(file: IO[bytes], array: NDArray[Any]) -> None:
    """Write an array to an open .npy file."""
    np.lib.format.write_array(file, array, allow_pickle=False)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file that takes the place of `path` once it is complete.

    Until the block ends, `path` stays as it was; if the block fails, for good. An existing file's permissions are
    kept, a new one gets those that the umask allows, and a symbolic link keeps pointing where it did.

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
    OSError
        If the file cannot be created, written or renamed.
    """
    target = _real(path)
    temporary = target.with_name(f".dmlgpu-{secrets.token_hex(6)}.tmp")
    try:
        with temporary.open("xb") as file:
            if target.exists():
                os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
            yield file
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            # The temporary file's name would tell the reader nothing.
            raise CommandError(f"cannot write {path}: {error.strerror or error}") from error
        raise
