"""Columns of numbers that pyarrow reads without their text, wherever what it makes of them is what the text says.

pyarrow reads more than is a number here: digits behind zeros, which may be codes, 0x1F, and numbers beyond float64 as
infinity or 0. What it is given to read is searched for signs of these, which are rare; most of what it reads is decided
by the numbers themselves, and by the cells that it keeps as text.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow
import pyarrow.compute
from numpy.typing import NDArray

from ..sections import Section
from .console import CommandError
from .csv_text import BLOCK, BOM, Source, UnusualError, quotes_are_plain, read_csv
from .numerals import are_codes, are_exact, has_number, numbers_of, telling_places
from .raw_files import RawFile
from .table import Dialect

__all__ = ["usual_columns"]

_SAMPLES = 8
_SAMPLE = 1 << 11
"""Bytes of a file that are looked at in so many places, to guess what its columns are."""
_AT_ONCE = 1 << 17
"""Bytes or numbers that are looked at together: a core's own cache has room for them."""
_VANISHING_ZEROS = b"0" * 100
"""A number other than 0 that is 0 in float64 has two times as many zeros, or three digits behind an e and a minus."""


def usual_columns(
    file: RawFile,
    begin: int,
    dialect: Dialect,
    wanted: Sequence[bool],
    *,
    quotes: bool,
    named: bool,
    missing: str | None,
) -> list[Any]:
    """Return the columns of what is behind a place of an open file.

    Parameters
    ----------
    file : RawFile
        The file.
    begin : int
        Where its first row begins.
    dialect : Dialect
        How it is written.
    wanted : sequence of bool
        Of each column whether it may be one of numbers.
    quotes : bool
        Whether there may be quotes.
    named, missing
        As for `numbers_of`.

    Returns
    -------
    list
        Of each column a NumPy array of its numbers, or its cells as an array of strings.

    Raises
    ------
    UnusualError
        If it takes a closer look to say what the columns are.
    """
    size = _without_blank_lines(file, begin)
    sample = _sample(file, begin, size)
    kinds, places, searched = [pyarrow.string()] * len(wanted), {}, False
    for i, cells in enumerate(_texts(sample, dialect, len(wanted))):
        numbers = numbers_of(cells, _unusual, named, missing) if wanted[i] else None
        if numbers is not None:
            kinds[i] = pyarrow.from_numpy_dtype(numbers.dtype)
            searched |= _has_few_decimals(numbers)
        elif wanted[i]:
            places[i] = telling_places(cells)
    if all(kind == pyarrow.string() for kind in kinds):
        raise UnusualError

    def text_of(searched: bool) -> _Text:
        file.seek(begin)
        return _Text(file, size - begin, dialect.delimiter, quotes=quotes, searched=searched)

    text = text_of(searched)
    try:
        table = read_csv(pyarrow.PythonFile(text, mode="r"), kinds, dialect.delimiter, quotes=quotes, block=BLOCK)
    except pyarrow.ArrowInvalid:  # such as for lines of different lengths, and words among numbers
        raise UnusualError from None
    finally:
        text.end()
    if table.num_rows != text.lines or text.marks % 2:
        raise UnusualError  # pyarrow has lost rows, or a line ends with a carriage return, or within quotes
    texts = [(i, part) for i in range(len(kinds)) if kinds[i] == pyarrow.string() for part in _shares(table.column(i))]

    def column(i: int) -> Any:
        return table.column(i) if kinds[i] == pyarrow.string() else _decided(table.column(i).chunks, text)

    def has_numbers(part: tuple[int, Sequence[Any]]) -> bool:
        i, chunks = part
        return i in places and any(has_number(chunk, places[i]) for chunk in chunks)

    def codes_in(part: tuple[int, Sequence[Any]]) -> int:
        return sum(_codes_among(chunk, dialect.delimiter) for chunk in part[1])

    with ThreadPoolExecutor() as pool:  # NumPy and pyarrow look without Python's lock
        may_be_numbers = pool.map(has_numbers, texts)
        columns = list(pool.map(column, range(len(kinds))))
        if any(may_be_numbers):
            raise UnusualError
        arrays = [cells for cells in columns if isinstance(cells, np.ndarray)]
        if not searched and any(map(_has_integers, arrays)):
            text = text_of(searched=True)
            while text.read(BLOCK):
                pass
        if text.may_vanish and any(np.any(cells == 0) for cells in arrays if cells.dtype.kind == "f"):
            raise UnusualError
        if text.codes and text.codes != sum(pool.map(codes_in, texts)):
            raise UnusualError  # some are in numbers
    return columns


def _shares(cells: Any) -> Iterator[Sequence[Any]]:
    """Yield the chunks of a column in parts for threads."""
    many = max(1, -(-cells.num_chunks // pyarrow.cpu_count()))
    return (cells.chunks[start : start + many] for start in range(0, cells.num_chunks, many))


def _has_few_decimals(values: NDArray[Any]) -> bool:
    """Whether there are probably integers among very many numbers such as these."""
    with np.errstate(over="ignore"):
        return bool(np.any(np.round(values, 3) == values))


def _has_integers(values: NDArray[Any]) -> bool:
    """Whether any number is an integer, as 0 is."""
    return values.dtype.kind != "f" or any(np.any(np.rint(part) == part) for part in _parts(values))


def _parts(values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield parts of an array for which a core's own cache has room."""
    return (values[start : start + _AT_ONCE] for start in range(0, len(values), _AT_ONCE))


def _without_blank_lines(file: RawFile, begin: int) -> int:
    """Return where a file ends but for line ends."""
    size = file.seek(0, 2)
    start = file.seek(max(begin, size - _SAMPLE))
    text = file.read(_SAMPLE).rstrip(b"\r\n")
    if not text:
        raise UnusualError
    return start + len(text)


def _sample(file: RawFile, begin: int, size: int) -> bytes:
    """Return lines from some places."""
    lines = []
    for i in range(_SAMPLES):
        start = file.seek(begin + (size - begin) * i // _SAMPLES)
        part = file.read(min(_SAMPLE, size - start))
        first = (part.find(b"\n") + 1 or len(part)) if i else 0
        end = max(first, part.rfind(b"\n")) if start + len(part) < size else len(part)
        lines.append(part[first:end].rstrip(b"\r\n"))
    return b"\n".join(filter(None, lines))


def _texts(text: bytes, dialect: Dialect, columns: int) -> list[Any]:
    """Return columns as text."""
    try:
        found = Source(Path(), text, 1, dialect).columns()  # an error of it, which would name the file, is not shown
    except (UnicodeDecodeError, CommandError):
        raise UnusualError from None
    if len(found) != columns:
        raise UnusualError
    return found


def _unusual(row: int, problem: str) -> NoReturn:
    raise UnusualError


def _decided(chunks: Sequence[Any], text: _Text) -> NDArray[Any]:
    """Return an array of numbers; raise `UnusualError` if the text may say something else."""
    parts = [chunk.to_numpy() for chunk in chunks]
    if parts[0].dtype.kind == "f":
        for values in parts:
            if not are_exact(values) and (text.brackets or not are_exact(values[~np.isnan(values)])):
                raise UnusualError  # integers that are rounded, infinity, and nan(1)
    return np.concatenate(parts)


class _Text:
    """Lines of an open file for pyarrow to read, which are searched for what is unusual.

    pyarrow reads in a thread of its own, perhaps until `end`.

    Attributes
    ----------
    lines : int
        How many lines there are.
    marks : int
        How many quotes.
    codes : int
        How many there are of what `_codes` counts.
    may_vanish : bool
        Whether a number other than 0 may be 0 in float64.
    brackets : bool
        Whether there are any.
    """

    closed = False

    def __init__(self, file: RawFile, size: int, delimiter: str, *, quotes: bool, searched: bool) -> None:
        self.lines, self.marks, self.codes = 1, 0, 0
        self.may_vanish = self.brackets = False
        self._file, self._left, self._delimiter = file, size, delimiter
        self._before = b"\n\n"
        self._quotes, self._searched = quotes, searched
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._section = Section()

    def end(self) -> None:
        """Read nothing more."""
        with self._section:
            self._left = 0

    def read(self, size: int) -> bytes:
        """Return what comes next."""
        with self._section:
            piece = self._file.read(min(size, self._left))
            if piece:
                if self._before == b"\n\n" and piece.startswith(BOM):
                    raise UnusualError  # pyarrow would skip it
                self._left -= len(piece)
                self._check_lines(piece, min(size, csv.field_size_limit() // 2))
                self._decode(piece)
                text = b"".join((self._before, piece, b"" if self._left else b"\n"))
                self._look(text)
                self._before = text[-3:]
            return piece

    def _check_lines(self, piece: bytes, step: int) -> None:
        # Longer cells are none for the reader that goes from row to row, and pyarrow may lose a row in three pieces.
        if not all(piece.find(b"\n", place, place + step) >= 0 for place in range(0, len(piece) - step + 1, step)):
            raise UnusualError

    def _decode(self, piece: bytes) -> None:
        try:
            if not piece.isascii() or self._decoder.getstate()[0]:
                self._decoder.decode(piece, final=not self._left)
        except UnicodeDecodeError:
            raise UnusualError from None

    def _look(self, text: bytes) -> None:
        """Look at a text between two characters that were looked at before, and one that comes again."""
        characters = np.frombuffer(text, np.uint8)
        self.lines += int(np.count_nonzero(characters[2:-1] == ord("\n")))
        if self._searched:
            codes, is_small = _codes(characters, self._delimiter, powers_too=b"e" in text or b"E" in text)
            self.codes += codes
            self.may_vanish = self.may_vanish or is_small or _VANISHING_ZEROS in text
        self.brackets = self.brackets or b"(" in text
        if b'"' in text:
            if not self._quotes:
                raise UnusualError
            places = np.flatnonzero(characters[2:-1] == ord('"')) + 2
            odd = self.marks % 2
            if not quotes_are_plain(characters, places[odd::2], places[1 - odd :: 2], self._delimiter):
                raise UnusualError
            # pyarrow may cut the text behind the last line end.
            end = max(text.rfind(b"\n", 2), text.rfind(b"\r", 2))
            if (self.marks + np.searchsorted(places, end)) % 2 and end >= 2:
                raise UnusualError
            self.marks += len(places)


def _codes(characters: NDArray[np.uint8], delimiter: str, *, powers_too: bool) -> tuple[int, bool]:
    """Count what may be codes; and, if there are powers, say whether three digits follow an e and a minus.

    Counted are zeros that a digit or letter follows, and that may begin a cell, perhaps behind a sign, a space or a
    quote. Two characters before and one behind are none of the text.
    """
    count, is_small = 0, False
    for start in range(0, len(characters) - 3, _AT_ONCE):
        part = characters[start : start + _AT_ONCE + 3]
        found = part[2:-1] == ord("0")
        found &= part[3:] > ord(".")
        begins = part[:-2] < ord("-")  # line ends, spaces, quotes, plus signs, commas and tabs
        if delimiter == ";":
            found &= part[3:] != ord(";")
            begins |= part[:-2] == ord(";")
        minus = part[1:-2] == ord("-")
        powers = minus & ((part[:-3] | 32) == ord("e")) if powers_too else minus[:0]
        if powers.any() and not is_small:
            digits = characters.take(np.flatnonzero(powers)[:, None] + (start + np.arange(2, 5)), mode="clip")
            is_small = bool(np.any(np.all(digits - ord("0") < 10, axis=1)))  # wraps
        minus &= begins[:-1]
        minus |= begins[1:]
        found &= minus
        count += int(np.count_nonzero(found))
    return count, is_small


def _codes_among(cells: Any, delimiter: str) -> int:
    """Count in cells of text what `_codes` counts in the file."""
    if are_codes(cells):
        return len(cells)
    ends = pyarrow.array([0, len(cells)], pyarrow.int32())
    text = pyarrow.compute.binary_join(pyarrow.ListArray.from_arrays(ends, cells), "\n")[0].as_buffer()
    return _codes(np.frombuffer(b"".join((b"\n\n", text, b"\n")), np.uint8), delimiter, powers_too=False)[0]
