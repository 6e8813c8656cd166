"""Arrays in .npy files: the header, and the elements behind it."""

from __future__ import annotations

import io
import math
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..dtypes import by_dtype
from ..errors import counted
from ..layout import MAX_DIMENSIONS, MAX_ELEMENTS
from .console import CommandError
from .raw_files import AT_ONCE, STANDARD_INPUT, filled, reading

__all__ = ["NpyHeader", "check_bools", "check_length", "fill", "read_header", "read_npy", "shaped", "write_npy"]

_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 10_000
"""The longest header, which is NumPy's limit, too. That of an array of numbers has 128 bytes."""
_MOST_ELEMENTS = 1 << 58
"""NumPy has no larger arrays, also where a size of 0 leaves no element."""


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
        The file, or `STANDARD_INPUT`.
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
    if path is STANDARD_INPUT:
        return
    there = os.fstat(file.fileno()).st_size - header.offset
    if there < header.nbytes:
        raise CommandError(
            f"{path} is damaged or truncated: its header announces {counted(header.nbytes, 'byte')} of elements, and "
            f"{max(there, 0)} are there"
        )
    if there > header.nbytes:
        warnings.warn(
            f"{path} goes on for {counted(there - header.nbytes, 'byte')} after its array, which are not read; "
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
    if (done := filled(file, data)) < len(data):
        raise CommandError(f"{path} is damaged or truncated: it ends {counted(len(data) - done, 'byte')} early")


def _read_up_to(file: io.RawIOBase | IO[bytes], most: int) -> bytes:
    pieces = b""
    while len(pieces) < most and (piece := file.read(most - len(pieces))):
        pieces += piece
    return pieces


def _header(path: Path, file: io.RawIOBase | IO[bytes]) -> tuple[np.dtype[Any], tuple[int, ...], bool, int]:
    """Return the header's contents and the position of the first element, to which the file is read."""
    head = _read_up_to(file, len(_MAGIC) + 2)
    if not head:
        if path is STANDARD_INPUT:
            raise CommandError(f"{path} is empty or closed: send a .npy file through a pipe, or give its name")
        raise CommandError(f"{path} is empty")
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


def write_npy(file: IO[bytes], array: NDArray[Any]) -> None:
    """Write an array to an open .npy file."""
    header = np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(file, header)
    # NumPy would write the elements by C's stdio, whose errors do not say what went wrong.
    flat = np.ascontiguousarray(array.T if header["fortran_order"] else array).reshape(-1).view(np.uint8)
    for start in range(0, flat.size, AT_ONCE):
        file.write(flat[start : start + AT_ONCE].data)
