"""Columns of numbers that pyarrow may read without their text, because a closer look would find the same."""

from __future__ import annotations

import csv
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from .csv_text import BLOCK, BOM, Pieces, UnusualError, quotes_are_plain, read_csv
from .numerals import LETTERS, are_exact, odd_beginnings
from .raw_files import RawFile

__all__ = ["usual_columns"]

_SAMPLES = 16
_SAMPLE = 1 << 12
"""Bytes of a file that are looked at in so many places, to guess what its columns are."""
_AT_ONCE = 1 << 17
"""Bytes of a text that are compared at once: a core's own cache has room for them."""
_VANISHING_ZEROS = b"0" * 200
"""A number other than 0 that is 0 in float64 has so many zeros, or three digits behind an e and a minus."""
_SIGNS_OF_VANISHING = (_VANISHING_ZEROS, b"e", b"E", b"(")
"""One of these is in every text in which `_look_again` finds something."""


def usual_columns(
    file: RawFile, begin: int, size: int, delimiter: str, *, quotes: bool, wanted: Collection[int], columns: int
) -> list[Any]:
    """Return the columns of what is behind a place of an open file.

    pyarrow also reads what is no number here, such as digits behind zeros, which may be codes: no cell of a column of
    numbers may begin as these do. As the cells' text is not kept, all of it is searched for beginnings of this kind
    when pyarrow asks for it, and as many must be among the cells that are kept as text.

    Parameters
    ----------
    file : RawFile
        The file.
    begin : int
        Where its first row begins.
    size : int
        How long it is.
    delimiter : str
        What separates cells.
    quotes : bool
        Whether there may be quotes.
    wanted : collection of int
        The columns that may be numbers.
    columns : int
        How many there are.

    Returns
    -------
    list
        Of each column a NumPy array of its numbers, or its cells as an array of strings, some of which may be numbers,
        too.

    Raises
    ------
    UnusualError
        If it takes a closer look to say what the columns are.
    """
    kinds = _kinds(file, begin, size, delimiter, quotes, columns)
    kinds = [kind if i in wanted else pyarrow.string() for i, kind in enumerate(kinds)]
    if all(kind == pyarrow.string() for kind in kinds):
        raise UnusualError
    search = _Search(delimiter, quotes)
    file.seek(begin)
    pieces = Pieces(file, search.look)
    try:
        table = read_csv(pyarrow.PythonFile(pieces, mode="r"), kinds, delimiter, quotes=quotes, lines=True, block=BLOCK)
    except pyarrow.ArrowInvalid:  # such as for lines of different lengths, and words among numbers
        raise UnusualError from None
    finally:
        pieces.end()
    texts = [table.column(i) for i, kind in enumerate(kinds) if kind == pyarrow.string()]
    if table.num_rows != search.lines:
        raise UnusualError  # pyarrow has lost rows, or a line feed is within quotes
    if search.odd and search.odd != sum(odd_beginnings(chunk) for cells in texts for chunk in cells.chunks):
        raise UnusualError
    with ThreadPoolExecutor() as pool:
        found = [*pool.map(_usual_column, table.columns)]
    if search.may_vanish and any(may_differ for _, may_differ in found):
        file.seek(begin)
        again = Pieces(file, _look_again)
        while again.read():
            pass
    return [cells for cells, _ in found]


def _usual_column(cells: Any) -> tuple[Any, bool]:
    """Return text, or an array of numbers, and whether these have 0 or NaN, which may stand there as something else."""
    if cells.type == pyarrow.string():
        return cells, False
    numbers = np.concatenate([chunk.to_numpy() for chunk in cells.chunks])
    if cells.type == pyarrow.int64():
        return numbers, False
    if are_exact(numbers):
        return numbers, bool(np.count_nonzero(numbers) < len(numbers))
    if are_exact(numbers[~np.isnan(numbers)]):
        return numbers, True
    raise UnusualError  # integers that are rounded, and infinity


def _kinds(file: RawFile, begin: int, size: int, delimiter: str, quotes: bool, columns: int) -> list[Any]:
    """Guess the types of all columns from lines at some places."""
    lines = []
    for i in range(_SAMPLES):
        start = file.seek(begin + (size - begin) * i // _SAMPLES)
        part = file.read(_SAMPLE)
        first = part.find(b"\n") + 1 if i else 0
        end = part.rfind(b"\n") if start + len(part) < size else len(part)
        lines.append(part[first:end].rstrip(b"\r\n"))
    text = b"\n".join(filter(None, lines))

    def read(kinds: list[Any] | int) -> Any:
        return read_csv(pyarrow.BufferReader(text), kinds, delimiter, quotes=quotes, lines=True, block=len(text) + 1)

    try:
        guessed, cells = read(columns).schema.types, read([pyarrow.string()] * columns).columns
    except pyarrow.ArrowInvalid:
        raise UnusualError from None
    known = (pyarrow.int64(), pyarrow.float64())
    return [
        kind if kind in known and not any(map(odd_beginnings, each.chunks)) else pyarrow.string()
        for kind, each in zip(guessed, cells, strict=True)
    ]


class _Search:
    """Looks for what is unusual in the pieces of a text.

    Attributes
    ----------
    lines : int
        How many lines there were.
    odd : int
        How many cells begin as `odd_beginnings` says. Some that are within quotes may be counted, too.
    may_vanish : bool
        Whether `_look_again` may find something.
    """

    def __init__(self, delimiter: str, quotes: bool) -> None:
        self.lines = self.odd = 0
        self.may_vanish = False
        self._delimiter, self._quotes = delimiter, quotes
        self._signs = [sign for sign in b"+ \t" if sign != ord(delimiter)]
        self._memory = np.empty((4, _AT_ONCE + 1), np.bool_)

    def look(self, text: bytes, size: int) -> None:
        """Look at lines behind two line feeds; raise `UnusualError` for what a closer look is for."""
        characters = np.frombuffer(text, np.uint8, size)
        if not text.isascii():
            self._check_encoding(text[:size])
        self.may_vanish = self.may_vanish or any(sign in text for sign in _SIGNS_OF_VANISHING)
        has_returns = text.find(b"\r", 0, size) >= 0
        step = csv.field_size_limit() // 2  # longer cells are none for the reader that goes from row to row
        if not all(text.find(b"\n", place, place + step) >= 0 for place in range(0, size - step, step)):
            raise UnusualError
        quotes = None
        if text.find(b'"', 0, size) >= 0:
            quotes = np.flatnonzero(characters == ord('"'))
            if not self._quotes or not quotes_are_plain(characters, quotes, self._delimiter):
                raise UnusualError
        for start in range(0, size - 3, _AT_ONCE):
            part = characters[start : min(size, start + _AT_ONCE + 3)]
            before, first, behind = part[1:-2], part[2:-1], part[3:]
            borders, odd, begins, some = self._memory[:, : len(first) + 1]
            odd, begins = odd[1:], begins[1:]
            np.equal(part[:-2], ord("\n"), out=borders)
            self.lines += int(np.count_nonzero(borders[1:]))
            for border in (self._delimiter, '"')[: 1 if quotes is None else 2]:
                borders |= np.equal(part[:-2], ord(border), out=some)
            np.equal(before, ord("-"), out=begins)
            begins &= borders[:-1]
            begins |= borders[1:]
            np.equal(first, ord("0"), out=odd)
            odd &= np.greater(behind, ord("."), out=some[1:])  # but for semicolons, digits and letters
            odd &= begins
            if self._delimiter == ";":
                odd &= behind != ord(";")
            for sign in self._signs:
                if text.find(sign, start + 2, start + len(part) - 1) >= 0:
                    odd |= borders[1:] & (first == sign) & (behind < LETTERS)
            if has_returns and np.any((first == ord("\r")) & (behind != ord("\n"))):
                raise UnusualError
            if quotes is None:
                self.odd += int(np.count_nonzero(odd))
            elif odd.any():
                self.odd += _outside(characters, np.flatnonzero(odd) + (start + 2), quotes)

    def _check_encoding(self, text: bytes) -> None:
        if not self.lines and text.startswith(BOM, 2):
            raise UnusualError  # pyarrow would skip it
        try:
            text.decode()
        except UnicodeDecodeError:
            raise UnusualError from None


def _outside(characters: NDArray[np.uint8], at: NDArray[np.intp], quotes: NDArray[np.intp]) -> int:
    """Count the places whose border is no delimiter within quotes."""
    before = characters.take(at - 1)
    before = np.where(before == ord("-"), characters.take(at - 2), before)
    return int(np.count_nonzero((before == ord('"')) | (np.searchsorted(quotes, at) % 2 == 0)))


def _look_again(text: bytes, size: int) -> None:
    """Raise `UnusualError` if a number other than 0 may be 0 in float64, or NaN be written as nan(1)."""
    if text.find(_VANISHING_ZEROS, 0, size) >= 0:
        raise UnusualError
    if text.find(b"(", 0, size) >= 0 and max(text.find(b"n(", 0, size), text.find(b"N(", 0, size)) >= 0:
        raise UnusualError
    characters = np.frombuffer(text, np.uint8, size)
    for letter in b"eE" if size > 5 else b"":
        if text.find(letter, 0, size) >= 0:
            at = np.flatnonzero((characters[1:-3] == ord("-")) & (characters[:-4] == letter))
            digits = characters[at[:, None] + (2, 3, 4)] - ord("0")  # wraps
            if np.any(np.all(digits < 10, axis=1)):
                raise UnusualError
