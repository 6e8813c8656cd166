"""Tables in .csv files: what is a header, a number and an error, and how numbers are written.

pyarrow splits lines and converts cells. Where it is more lenient than a table may be (quotes within cells, blank
lines), and to say in which line an error is, the standard library's strict reader goes through the file.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.csv

from .console import CommandError, count
from .numerals import CODE, NUMBER, Pattern, floats_of, numbers_of, other_than_number, shown, texts_of, too_wide
from .pipeline import reading_ahead
from .raw_files import RawFile, reading, trying_to
from .table import Column, Dialect, Table, chosen_columns
from .table_stream import Cells, Place, Text, Writer

__all__ = ["open_blocks", "read_table", "write_table"]

Header = Literal["auto", "yes", "no"]

_BOM = b"\xef\xbb\xbf"
_WIDE_MARKS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
"""The first bytes of other encodings, the longer ones first."""
_NARROW = "Windows-1252"
_CONVERT = "save it as UTF-8, or convert it: iconv -f {} -t UTF-8"
_AT_ONCE = 1 << 18
"""Bytes of a file that are looked at together: as many as a core's own cache has room for."""
_ROWS_AT_ONCE = 1 << 16
_LONGEST_LINE = 1 << 24
_LARGEST_BLOCK = 2**31 - 1
_BLOCK = 1 << 22
"""The bytes that pyarrow reads at once where it may cut the text into blocks. No row may lie in three of them."""


_NAME = Pattern(r"[ \t]*[1-9][0-9]*[ \t]*")
"""The numbers that may be names of columns, such as 2019."""
_YEAR = Pattern(r"[ \t]*[12][0-9]{3}[ \t]*")
_GAPS = frozenset(map(str.lower, (*pyarrow.csv.ConvertOptions().null_values, "none", "-", "--", "?")))
"""What files say where a number is missing. None of it is a name."""
_HINT = "; codes such as 01234 are numbers in columns that --columns names"


def read_table(
    path: Path, header: Header = "auto", only: Sequence[str] | None = None, missing: str | None = None
) -> Table:
    """Read a .csv file.

    Parameters
    ----------
    path : Path
        The file, in UTF-8.
    header : {"auto", "yes", "no"}
        Whether the first line holds names; "auto" takes it for a header if no cell of it is a number, and, with a
        warning, if its numbers look like names (`_has_numbers_for_names`).
    only : sequence of str, optional
        The names of the columns to process; the others are kept as text, whatever they hold.
    missing : str, optional
        The number that empty cells in columns of numbers stand for; by default they are errors.

    Raises
    ------
    CommandError
        If the file is not a table, or a column of numbers has a cell that is no number.
    OSError
        If it cannot be read.
    """
    source = _Source(path, _content(path))
    columns = source.columns()
    first = [cells[0].as_py() for cells in columns]
    # Codes such as 01234 are kept as text, but they are nothing that a header would hold.
    has_header = header == "yes" or (header == "auto" and not any(map(NUMBER.fits, first)))
    if header == "auto" and not has_header and _has_numbers_for_names(first, columns):
        has_header = True
        warnings.warn(
            f"{path}: line 1 is taken for a header, with the names {', '.join(map(shown, first))}; --header no takes "
            "it for data",
            stacklevel=2,
        )
    names = first if has_header else [str(i + 1) for i in range(len(first))]
    if has_header:
        columns = [cells.slice(1) for cells in columns]
    if not len(columns[0]):
        raise CommandError(f"{path} has no rows below its header; if line 1 is data, say --header no")
    chosen = chosen_columns(path, names, only)

    def column(i: int) -> Column:
        name, cells = names[i], columns[i]
        where = _Cell(source, int(has_header), shown(name) if has_header and name else f"number {i + 1}")
        numbers = numbers_of(cells, where.error, only is not None, missing) if i in chosen else None
        return Column(name, cells if numbers is None else numbers)

    with ThreadPoolExecutor() as pool:  # pyarrow converts without Python's lock
        found = tuple(pool.map(column, range(len(columns))))
    table = Table(found, has_header, source.dialect)
    if not table.numeric:
        raise _no_numbers(source, columns)
    return table


def _no_numbers(source: _Source, columns: Sequence[Any]) -> CommandError:
    has_codes = any(CODE.fits(cells[-1].as_py()) for cells in columns)
    return CommandError(
        f"{source.path} has no column of numbers; its cells are separated by {source.dialect.delimiter!r}, and a "
        f"decimal point is written as '.'{_HINT if has_codes else ''}"
    )


def _has_numbers_for_names(first: Sequence[str], columns: Sequence[Any]) -> bool:
    """Whether a first line in which numbers stand beside words is a header, as far as the lines below tell.

    Its numbers must be such as 2019, and no name may be there twice. Then either a word stands above nothing but
    numbers, among which it would be an error; or two numbers or more are years that rise, above other numbers.
    """
    names = [cell.strip() for cell in first]
    numbers = [i for i, name in enumerate(names) if NUMBER.fits(name)]
    words = [i for i in range(len(names)) if i not in numbers]
    below = [cells.slice(1) for cells in columns]
    if (
        not len(below[0])
        or not words
        or not all(_NAME.fits(names[i]) for i in numbers)
        or any(names[i].lower() in _GAPS for i in words)
        or len(set(names)) < len(names)
    ):
        return False

    def all_below(pattern: Pattern, places: Sequence[int]) -> bool:
        return all(pyarrow.compute.all(pattern.fit(below[i])).as_py() for i in places)

    if any(all_below(NUMBER, [i]) for i in words):
        return True
    years = [int(names[i]) for i in numbers if _YEAR.fits(names[i])]
    rising = len(years) == len(numbers) > 1 and all(one < other for one, other in pairwise(years))
    return rising and all_below(NUMBER, numbers) and not all_below(_YEAR, numbers)


def _content(path: Path) -> bytearray:
    """Return the text of a file, which is UTF-8. A line that is too long is not read to its end."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    content = bytearray()
    unfinished = 0  # bytes of the line that the content ends in
    with reading(path) as file:
        piece = b"the file's"
        while piece:
            piece = file.read(_AT_ONCE) or b""
            content += piece
            try:
                if not piece.isascii() or decoder.getstate()[0]:
                    decoder.decode(piece, final=not piece)
            except UnicodeDecodeError as error:
                read = content.count(b"\n") - error.object.count(b"\n", error.start)
                raise _not_utf8(path, read, content[:4], error.object[error.start]) from None
            if len(content) == len(piece) and _wide_encoding(piece):
                raise _not_utf8(path, 0, piece, 0)
            last = max(piece.rfind(b"\n"), piece.rfind(b"\r"))
            unfinished = len(piece) - 1 - last + (unfinished if last < 0 else 0)
            if unfinished > _LONGEST_LINE:
                lines = content.count(b"\n")
                raise CommandError(
                    f"{path}, line {lines + 1} has more than {_LONGEST_LINE} bytes; it is no line of a table"
                )
    return content


def _wide_encoding(start: bytes | bytearray) -> str | None:
    """Return the encoding of two or four bytes a character that a file's first bytes tell, or None."""
    for mark, name in _WIDE_MARKS.items():
        if start.startswith(mark):
            return name
    if len(start) >= 4 and start[0] and start[2] and not start[1] and not start[3]:
        return "UTF-16LE"
    if len(start) >= 4 and not start[0] and not start[2] and start[1] and start[3]:
        return "UTF-16BE"
    return None


def _not_utf8(path: Path, lines: int, start: bytes | bytearray, byte: int) -> CommandError:
    """Return an error that names the encoding that a file most likely has."""
    wide = _wide_encoding(start)
    if wide is not None:
        return CommandError(f"{path}: not UTF-8 text but {wide}, as its first bytes tell; {_CONVERT.format(wide)}")
    character = bytes([byte]).decode(_NARROW, "replace")
    where = f"{path}, after line {lines}: not UTF-8 text"
    if character == "\ufffd":
        return CommandError(
            f"{where}: the byte 0x{byte:02X} begins no character; save the file as UTF-8, in the program that wrote it"
        )
    return CommandError(
        f"{where} but most likely {_NARROW}, in which the byte 0x{byte:02X} is {character!r}; "
        f"{_CONVERT.format(_NARROW)}"
    )


class _Source:
    """The text of a .csv file, or a part of it.

    Attributes
    ----------
    path : Path
        Its name.
    lines_before : int
        How many lines of the file are before the text.
    dialect : Dialect
        How it is written, as its first line tells.
    """

    def __init__(
        self, path: Path, content: bytes | bytearray, lines_before: int = 0, dialect: Dialect | None = None
    ) -> None:
        self.path = path
        self._content, self.lines_before = content, lines_before
        self._text_at = len(_BOM) if content.startswith(_BOM) and not lines_before else 0
        self.dialect = dialect or self._dialect()

    def _dialect(self) -> Dialect:
        with self._text() as text:
            first = text.readline()
        bare = re.sub('"[^"]*"', "", first)
        delimiter = max(",", ";", "\t", key=bare.count)
        return Dialect(delimiter, "\r\n" if first.endswith("\r\n") else "\n", self._content.startswith(_BOM))

    def _text(self) -> io.TextIOWrapper:
        return io.TextIOWrapper(self._file(len(self._content)), encoding="utf-8", newline="")

    def _file(self, end: int) -> Any:
        """Return the text, up to an end, as a file of bytes that are not copied."""
        return pyarrow.BufferReader(pyarrow.py_buffer(self._content).slice(self._text_at, end - self._text_at))

    @property
    def has_plain_quotes(self) -> bool:
        """Whether quotes are nowhere but around cells."""
        return _quotes_are_plain(self._content, self._text_at, self.dialect.delimiter)

    @property
    def may_have_returns(self) -> bool:
        """Whether a cell may have a carriage return: without quotes they end lines."""
        return b'"' in self._content and b"\r" in self._content

    def columns(self) -> list[Any]:
        """Return the columns as arrays of strings, with the header's cells if there is one."""
        found = self._split()
        if found is not None:
            return found
        rows = [row for _, row in self.rows()]
        if not rows:
            raise CommandError(f"{self.path} holds nothing but blank lines")
        return [pyarrow.chunked_array([cells], pyarrow.string()) for cells in zip(*rows, strict=True)]

    def _split(self) -> list[Any] | None:
        """Return the columns as pyarrow splits them, or None if that is not surely as `rows` does."""
        content, end = self._content, len(self._content)
        while end > self._text_at and content[end - 1] in b"\r\n":
            end -= 1
        if end == self._text_at or content[self._text_at] in b"\r\n":
            return None
        if not _quotes_are_plain(content, self._text_at, self.dialect.delimiter):
            return None
        names = [str(i) for i in range(len(next(self.rows())[1]))]
        # Where every line feed ends a row, and nothing else does, pyarrow may cut there, and use all cores.
        may_cut = b'"' not in content and b"\r" not in content
        block = _BLOCK if may_cut else _LARGEST_BLOCK
        try:
            table = pyarrow.csv.read_csv(
                self._file(end),
                pyarrow.csv.ReadOptions(column_names=names, block_size=min(end + 1, block)),
                pyarrow.csv.ParseOptions(
                    delimiter=self.dialect.delimiter, newlines_in_values=not may_cut, ignore_empty_lines=False
                ),
                pyarrow.csv.ConvertOptions(
                    check_utf8=False, strings_can_be_null=False, column_types=dict.fromkeys(names, pyarrow.string())
                ),
            )
        except pyarrow.ArrowInvalid:  # such as for lines of different lengths
            return None
        lengths = [pyarrow.compute.binary_length(cells) for cells in table.columns]
        extremes = [pyarrow.compute.min_max(of_cells).as_py() for of_cells in lengths]
        separators = table.num_rows * table.num_columns - 1
        if may_cut and sum(map(_total, lengths)) + separators != end - self._text_at:
            return None  # pyarrow has lost rows of very small blocks
        if max(extreme["max"] for extreme in extremes) > csv.field_size_limit():
            return None
        if not any(extreme["min"] for extreme in extremes):
            without_text = np.logical_and.reduce([of_cells.to_numpy() == 0 for of_cells in lengths])
            if without_text.any():  # which is what pyarrow makes of blank lines, too
                return None
        return list(table.columns)

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield all rows, each with its line's number, and raise for the first that no table has."""
        blank = first = cells = 0
        with self._text() as text:
            reader = csv.reader(text, delimiter=self.dialect.delimiter, strict=True)
            try:
                for row in reader:
                    line = self.lines_before + reader.line_num
                    if not row:
                        blank = blank or line
                        continue
                    if blank:
                        raise CommandError(f"{self.path}, line {blank} is blank; remove it")
                    if first and len(row) != cells:
                        raise CommandError(
                            f"{self.path}, line {line} has {count(len(row), 'cell')} where line {first} has {cells}"
                        )
                    first, cells = first or (1 if self.lines_before else line), len(row)
                    yield line, row
            except csv.Error as error:
                raise CommandError(f"{self.path}, line {self.lines_before + reader.line_num}: {error}") from None


def _total(lengths: Any) -> int:
    """Return the sum of the lengths of a column's cells; some file has a column, but no row."""
    return pyarrow.compute.sum(lengths).as_py() or 0


def _quotes_are_plain(content: bytes | bytearray, start: int, delimiter: str) -> bool:
    """Whether every quote begins or ends a cell, or is one of two in a row within a quoted cell.

    Where that holds up to a quote, quotes before it open and close in turn: so it suffices that what is before each
    first one, and behind each second one, is the border of a cell or another quote.
    """
    if b'"' not in content:
        return True
    characters = np.frombuffer(b"\n" + content[start:] + b"\n", np.uint8)
    places = np.flatnonzero(characters == ord('"'))
    borders = np.frombuffer(f'{delimiter}\r\n"'.encode(), np.uint8)
    beside = np.concatenate([characters[places[::2] - 1], characters[places[1::2] + 1]])
    return places.size % 2 == 0 and bool(np.isin(beside, borders).all())


# Some rows at a time


_SHARE = 64
"""Parts of the memory, of which a block of text takes one: cells, their numbers on host and device, and results as text
take many times its bytes."""
_LEAST_BLOCK = 1 << 14
"""The fewest bytes of a block, whatever the memory."""


@contextmanager
def open_blocks(
    path: Path, memory: int, header: Header, only: Sequence[str] | None, missing: str | None
) -> Iterator[Text]:
    """Open a .csv file to read some rows at a time, for so many bytes of memory; else as `read_table`.

    All of it is read once before, because what a column is follows from all of its cells.

    Raises
    ------
    CommandError
        As for `read_table`, and if whether the first line is a header follows from all others.
    """
    with reading(path) as file:
        yield _CsvBlocks(path, file, max(_LEAST_BLOCK, memory // _SHARE), header, only, missing)


class _CsvBlocks:
    """A .csv file whose columns of numbers are those that `read_table` finds."""

    def __init__(
        self, path: Path, file: RawFile, most: int, header: Header, only: Sequence[str] | None, missing: str | None
    ) -> None:
        status = os.fstat(file.fileno())
        self.path, self.size, self.fingerprint = path, status.st_size, (status.st_size, status.st_mtime_ns)
        self._file, self._most, self._missing = file, most, missing
        self._named = only is not None
        self.rows = 0
        self._dialect: Dialect | None = None
        self._has_returns = False
        found: list[_Kind] = []
        with reading_ahead(self._sources(Place())) as following:
            for _, source, columns in following:
                if not found:
                    self._begin(columns, header, only)
                    found = [_Kind() for _ in columns]
                cells = self._below_header(columns)
                self.rows += len(cells[0])
                for i in self._chosen:
                    found[i].see(cells[i], self._cell(source, i), self._named, missing)
                if source.may_have_returns:
                    fit = (pyarrow.compute.any(pyarrow.compute.match_substring(each, "\r")) for each in columns)
                    self._has_returns |= any(some.as_py() for some in fit)
                last = source, cells
        if not found:
            raise CommandError(f"{path} holds nothing but blank lines")
        if not self.rows:
            raise CommandError(f"{path} has no rows below its header; if line 1 is data, say --header no")
        types = {i: found[i].dtype() for i in sorted(self._chosen)}
        self.numbers: Mapping[int, np.dtype[Any]] = {i: dtype for i, dtype in types.items() if dtype is not None}
        if not self.numbers:
            raise _no_numbers(*last)
        # Text may get quotes around it, and twice as many within; numbers have up to 24 characters.
        self.most_bytes = len(_BOM) + 2 * self.size + 40 * self.columns * (self.rows + 2)

    def _begin(self, columns: Sequence[Any], header: Header, only: Sequence[str] | None) -> None:
        """Find out what the first line is."""
        first = [cells[0].as_py() for cells in columns]
        numbers = [NUMBER.fits(cell) for cell in first]
        if header == "auto" and any(numbers) and not all(numbers):
            raise CommandError(
                f"{self.path}: line 1 has numbers and words, and whether it is a header follows from all other lines, "
                "which are not in memory together with this --memory, or --resume; say --header yes or --header no"
            )
        self._header = header == "yes" or (header == "auto" and not any(numbers))
        self._first, self._names = first, first if self._header else [str(i + 1) for i in range(len(first))]
        self._chosen = chosen_columns(self.path, self._names, only)
        self._first_line = True

    def _below_header(self, columns: Sequence[Any]) -> Sequence[Any]:
        if self._header and self._first_line:
            columns = [cells.slice(1) for cells in columns]
            self._skipped = 1
        else:
            self._skipped = 0
        self._first_line = False
        return columns

    def _cell(self, source: _Source, i: int) -> _Cell:
        name = self._names[i]
        return _Cell(source, self._skipped, shown(name) if self._header and name else f"number {i + 1}")

    def blocks(self, place: Place) -> Iterator[tuple[Place, Sequence[Cells]]]:
        """Yield rows, one block after the other, from one of the places that were yielded before or the beginning."""
        self._first_line = place.byte == 0
        rows = place.rows
        for byte, source, columns in self._sources(place):
            cells = list(self._below_header(columns))
            if not len(cells[0]):
                continue
            here = Place(byte, source.lines_before, rows)
            rows += len(cells[0])
            for i, dtype in self.numbers.items():
                error = self._cell(source, i).error
                if dtype.kind == "f":
                    cells[i] = floats_of(cells[i], error, self._missing)
                else:
                    found = numbers_of(cells[i], error, True, self._missing)
                    assert found is not None
                    cells[i] = found.astype(dtype)
            yield here, cells

    @contextmanager
    def writer(
        self, file: IO[bytes], types: Mapping[int, np.dtype[Any]], *, head: bool, identity: bool
    ) -> Iterator[Writer]:
        """Return what writes a table like this one."""
        assert self._dialect is not None
        first = self._first
        if not self._header:
            first = [] if identity else [cell for i, cell in enumerate(first) if i not in types]
        quoted = self._has_returns or _looks_otherwise(first, self._dialect)
        dialect = self._dialect if head else replace(self._dialect, mark=False)
        rows = _Rows(file, dialect, self._names if self._header and head else None, quoted)
        yield lambda columns: rows.write(
            [texts_of(cells) if isinstance(cells, np.ndarray) else cells.to_pylist() for cells in columns]
        )

    def _sources(self, place: Place) -> Iterator[tuple[int, _Source, list[Any]]]:
        """Read all lines from a place on, and yield where blocks of whole ones begin, their text and their columns."""
        with trying_to("read", self.path):
            self._file.seek(place.byte)
        byte, lines, rest, ended = place.byte, place.lines, b"", False
        while not ended:
            with trying_to("read", self.path):
                piece = self._file.read(self._most) or b""
            ended = not piece
            rest += piece
            if not lines and _wide_encoding(rest[:4]):
                raise _not_utf8(self.path, 0, rest[:4], 0)
            end = len(rest) if ended else _end_of_lines(rest)
            if not end and len(rest) > _LONGEST_LINE:
                raise CommandError(
                    f"{self.path}, line {lines + 1} has more than {_LONGEST_LINE} bytes; it is no line of a table"
                )
            text, rest = rest[:end], rest[end:]
            if not text.strip(b"\r\n"):
                continue  # blank lines at the end, of which nothing follows
            try:
                if not text.isascii():
                    text.decode()
            except UnicodeDecodeError as error:
                read = lines + text.count(b"\n", 0, error.start)
                raise _not_utf8(self.path, read, text[:4], text[error.start]) from None
            source = _Source(self.path, text, lines, self._dialect)
            if not source.has_plain_quotes:
                raise CommandError(
                    f"{self.path} has quotes within cells between lines {lines + 1} and {lines + text.count(10)}, so "
                    "that rows are found only one after the other, with all of it in memory: allow more with --memory, "
                    "and leave --resume out"
                )
            columns = source.columns()
            if self._dialect is None:
                self._dialect, self.columns = source.dialect, len(columns)
            if len(columns) != self.columns:
                raise CommandError(
                    f"{self.path}, line {lines + 1} has {count(len(columns), 'cell')} where line 1 has {self.columns}"
                )
            yield byte, source, columns
            byte, lines = byte + len(text), lines + text.count(b"\n")


def _end_of_lines(text: bytes) -> int:
    """Return where the last whole line ends that a row may end with, before blank lines; 0 if there is none."""
    if b'"' in text:
        characters = np.frombuffer(text, np.uint8)
        ends, quotes = np.flatnonzero(characters == 10), np.flatnonzero(characters == ord('"'))
        outside = ends[np.searchsorted(quotes, ends) % 2 == 0]
        end = int(outside[-1]) + 1 if outside.size else 0
    else:
        end = text.rfind(b"\n") + 1
    kept = len(text[:end].rstrip(b"\r\n"))
    return kept + (2 if text[kept : kept + 2] == b"\r\n" else 1) if kept else 0


class _Kind:
    """What a column is, from what its cells are in one block after the other."""

    def __init__(self) -> None:
        self._words: CommandError | None = None
        self._is_number = self._is_float = self._is_negative = False
        self._wide: CommandError | None = None
        self._unsigned: CommandError | None = None

    def see(self, cells: Any, place: _Cell, named: bool, missing: str | None) -> None:
        """Look at the cells of a block."""
        if not len(cells):
            return

        def error(row: int, problem: str) -> CommandError:
            made = place.error(row, problem)
            return _TooWideError(str(made)) if "does not fit in 64 bits" in problem else made

        try:
            values = numbers_of(cells, error, named, missing)
            if values is None:
                word = other_than_number(cells, missing)
                if word is None:  # all are empty, and stand for a number
                    values = numbers_of(cells, error, True, missing)
                elif self._words is None:
                    self._words = place.error(*word)
        except _TooWideError as wide:
            self._is_number, self._wide = True, self._wide or wide
            return
        except CommandError as wrong:
            raise (self._words or wrong) from None  # the first word among the column's numbers
        if values is None:
            return
        self._is_number = True
        self._is_float |= values.dtype.kind == "f"
        self._is_negative |= values.dtype.kind == "i" and bool(values.min() < 0)
        if values.dtype.kind == "u" and self._unsigned is None:
            row = int(np.argmax(values > np.iinfo(np.int64).max))
            self._unsigned = place.error(row, too_wide(cells[row].as_py()))

    def dtype(self) -> np.dtype[Any] | None:
        """Return the type of all cells, or None if none is a number."""
        if not self._is_number:
            return None
        if self._words is not None:
            raise self._words
        if self._is_float:
            return np.dtype(np.float64)
        if self._wide is not None:
            raise self._wide
        if self._unsigned is not None and self._is_negative:
            raise self._unsigned
        return np.dtype(np.int64 if self._unsigned is None else np.uint64)


class _TooWideError(CommandError):
    """An integer has no type, which matters where all others are integers, too."""


# Cells


@dataclass(frozen=True)
class _Cell:
    """The place of a column's cells, for messages."""

    source: _Source
    first_row: int
    column: str

    def error(self, row: int, problem: str) -> CommandError:
        line, _ = next(islice(self.source.rows(), self.first_row + row, None))
        return CommandError(f"{self.source.path}, line {line}, column {self.column}: {problem}")


# Writing


def write_table(file: IO[bytes], table: Table) -> None:
    """Write a table to an open file; columns that came from a .parquet file become text.

    Raises
    ------
    CommandError
        If such a column has a type without text.
    """
    texts = {i: _kept(column) for i, column in enumerate(table.columns) if column.numbers is None}
    names = [column.name for column in table.columns]
    rows = _Rows(file, table.dialect, names if table.header else None, _is_ambiguous(table, names, texts))
    for start in range(0, table.rows, _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        rows.write(
            [
                texts[i][part] if column.numbers is None else texts_of(column.numbers[part])
                for i, column in enumerate(table.columns)
            ]
        )


class _Rows:
    """Writes rows of text, after the mark and the header if there are any."""

    def __init__(self, file: IO[bytes], dialect: Dialect, header: Sequence[str] | None, quoted: bool) -> None:
        self._file, self._text = file, io.StringIO(newline="")
        self._writer = csv.writer(
            self._text,
            delimiter=dialect.delimiter,
            lineterminator=dialect.line_end,
            quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL,
        )
        if dialect.mark:
            file.write(_BOM)
        if header is not None:
            self.write([[name] for name in header])

    def write(self, columns: Sequence[Sequence[str]]) -> None:
        """Write the cells of columns."""
        self._writer.writerows(zip(*columns, strict=True))
        self._file.write(self._text.getvalue().encode())
        self._text.seek(0)
        self._text.truncate()


def _kept(column: Column) -> list[str]:
    """Return the cells of a column that was not processed, as text."""
    if isinstance(column.cells, list):
        return column.cells
    try:
        cells: list[str | None] = column.cells.cast(pyarrow.string()).to_pylist()
    except pyarrow.ArrowException:
        raise CommandError(
            f"column {column.name!r} has the type {column.cells.type}, no text for a .csv file; write .parquet"
        ) from None
    return [cell or "" for cell in cells]


def _is_ambiguous(table: Table, names: Sequence[str], texts: Mapping[int, list[str]]) -> bool:
    """Whether the text would be misread unless all of it is quoted.

    The writer quotes the cells that contain the delimiter, a quote or a character of the line end. A lone carriage
    return is not one of them, and another delimiter in the first line could be taken for the file's.
    """
    first = names if table.header else [cells[0] for cells in texts.values() if cells]
    return _looks_otherwise(first, table.dialect) or any(
        "\r" in cell for cells in [names, *texts.values()] for cell in cells
    )


def _looks_otherwise(first: Sequence[str], dialect: Dialect) -> bool:
    """Whether another delimiter in the cells of the first line could be taken for the file's."""
    others = {",", ";", "\t"} - {dialect.delimiter}
    return any(other in cell for cell in first for other in others)
