"""Tables in .csv files: what is a header, a number and an error, and how numbers are written.

`csv_text` splits lines, `csv_numbers` reads usual numbers, and `numerals` says what else is one.
"""

from __future__ import annotations

import csv
import io
import os
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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

from .console import CommandError
from .csv_numbers import usual_columns
from .csv_text import BLOCK, BOM, LONGEST_LINE, Source, UnusualError, content_of, not_utf8, wide_encoding
from .numerals import (
    CODE,
    NUMBER,
    Error,
    Pattern,
    floats_of,
    numbers_of,
    of_missing,
    other_than_number,
    shown,
    texts_of,
    too_wide,
)
from .pipeline import reading_ahead
from .raw_files import RawFile, fingerprint, reading, trying_to
from .table import Column, Dialect, Table, chosen_columns
from .table_stream import Cells, Place, Sink, Text, Writer

__all__ = ["open_blocks", "read_table", "whole_bytes", "write_table"]

Header = Literal["auto", "yes", "no"]

_ROWS_AT_ONCE = 1 << 16

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
    with reading(path) as file:
        try:
            table = _usual(path, file, header, only, missing)
        except UnusualError:
            file.seek(0)
            table = _closely(Source(path, content_of(path, file)), header, only, missing)
    return table


def _usual(path: Path, file: RawFile, header: Header, only: Sequence[str] | None, missing: str | None) -> Table:
    """Read columns of numbers without their text; raise `UnusualError` if that takes a closer look."""
    text = file.read(BLOCK)
    size = os.fstat(file.fileno()).st_size
    line = text[: text.find(b"\n") + 1 or size]
    if len(line) == BLOCK or wide_encoding(text) or b"\r" in line.removesuffix(b"\n").removesuffix(b"\r"):
        raise UnusualError
    try:
        line.decode()
        source = Source(path, line)
        if not source.begins_with_a_row or not source.has_plain_quotes:
            raise UnusualError
        first = source.first_row()
        has_header = _is_header(first, header)
        if has_header is None:
            raise UnusualError
        names = _names(first, has_header)
        wanted = chosen_columns(path, names, only)
    except (UnicodeDecodeError, CommandError):  # said when the other lines are known to be right
        raise UnusualError from None
    columns = usual_columns(
        file,
        len(line) if has_header else source.begin,
        source.dialect,
        [i in wanted for i in range(len(first))],
        quotes=b'"' in text,
        named=only is not None,
        missing=missing,
    )
    return Table(tuple(map(Column, names, columns)), has_header, source.dialect)


def _closely(source: Source, header: Header, only: Sequence[str] | None, missing: str | None) -> Table:
    """Read columns as text, and convert those that are numbers."""
    has_header, names, columns = _split(source, header)
    if not len(columns[0]):
        raise CommandError(f"{source.path} has no rows below its header; if line 1 is data, say --header no")
    wanted = chosen_columns(source.path, names, only)

    def error(i: int) -> Error:
        name = shown(names[i]) if has_header and names[i] else f"number {i + 1}"
        return _Cell(source, int(has_header), name).error

    table = Table(_converted(columns, names, wanted, error, only, missing), has_header, source.dialect)
    if not table.numeric:
        raise _no_numbers(source, columns)
    return table


def _converted(
    columns: Sequence[Any],
    names: Sequence[str],
    wanted: Collection[int],
    error: Callable[[int], Error],
    only: Sequence[str] | None,
    missing: str | None,
) -> tuple[Column, ...]:
    """Convert the columns that are numbers."""

    def column(i: int) -> Column:
        cells = columns[i]
        numbers = numbers_of(cells, error(i), only is not None, missing) if i in wanted else None
        return Column(names[i], cells if numbers is None else numbers)

    with ThreadPoolExecutor() as pool:  # pyarrow converts without Python's lock
        return tuple(pool.map(column, range(len(columns))))


_Columns = tuple[bool, Sequence[str], Sequence[Any]]
"""Whether there is a header, the columns' names, and their cells below it."""


def _split(source: Source, header: Header) -> _Columns:
    """Return the columns as text."""
    columns = source.columns()
    first = [cells[0].as_py() for cells in columns]
    has_header = _is_header(first, header)
    if has_header is None:
        has_header = _has_numbers_for_names(first, columns)
        if has_header:
            warnings.warn(
                f"{source.path}: line 1 is taken for a header, with the names {', '.join(map(shown, first))}; --header "
                "no takes it for data",
                stacklevel=3,
            )
    return has_header, _names(first, has_header), [cells.slice(int(has_header)) for cells in columns]


def _is_header(first: Sequence[str], header: Header) -> bool | None:
    """Whether a first line holds names; None where that follows from all other lines."""
    # Codes such as 01234 are kept as text, but they are nothing that a header would hold.
    numbers = [NUMBER.fits(cell) for cell in first]
    if header == "auto" and any(numbers) and not all(numbers):
        return None
    return header == "yes" or (header == "auto" and not any(numbers))


def _names(first: Sequence[str], has_header: bool) -> Sequence[str]:
    return first if has_header else [str(i + 1) for i in range(len(first))]


def _no_numbers(source: Source, columns: Sequence[Any]) -> CommandError:
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


# How much memory a table takes


_CELL_BYTES = 48
"""Of a cell, about: its number, beside those of other columns and on the device, and its result on both."""
_LOOKED_INTO = 1 << 20
"""Bytes of a file that tell how long its cells are."""


def whole_bytes(path: Path, only: Sequence[str] | None = None) -> int:
    """Return how many bytes it takes to read a .csv file whole and compute it, about.

    Cells are taken to be as long as at the file's beginning, and to take as much where they are text. So it does not
    matter which columns `only` names, as it does in .parquet files.

    Raises
    ------
    CommandError, OSError
        As `dmlgpu.cli.raw_files.reading`.
    """
    del only
    with reading(path) as file:
        return _whole_bytes_of(file)


def _whole_bytes_of(file: RawFile) -> int:
    """Return `whole_bytes` of a file at its beginning."""
    text, size = file.read(_LOOKED_INTO), os.fstat(file.fileno()).st_size
    cells = text.count(b"\n") + max(map(text.count, (b",", b";", b"\t")))
    return size + _CELL_BYTES * (cells * size // max(1, len(text)))


# Some rows at a time


_SHARE = 64
"""Parts of the memory, of which a block of text takes one: cells, their numbers on host and device, and results as text
take many times its bytes."""
_WHOLE_SHARE = 16
"""The same of what a block would take by itself, which is more where cells have few characters."""
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
        size = os.fstat(file.fileno()).st_size
        block = min(memory // _SHARE, memory * size // (_WHOLE_SHARE * max(1, _whole_bytes_of(file))))
        yield _CsvBlocks(path, file, max(_LEAST_BLOCK, block), header, only, missing)


class _CsvBlocks:
    """A .csv file whose columns of numbers are those that `read_table` finds."""

    def __init__(
        self, path: Path, file: RawFile, most: int, header: Header, only: Sequence[str] | None, missing: str | None
    ) -> None:
        self.path, self.size = path, os.fstat(file.fileno()).st_size
        with trying_to("read", path):
            self.fingerprint = fingerprint(file)
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
                    found = [_Kind(missing) for _ in columns]
                cells = self._below_header(columns)
                self.rows += len(cells[0])
                for i in self._chosen:
                    found[i].see(cells[i], self._cell(source, i), self._named)
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
        self.most_bytes = len(BOM) + 2 * self.size + 40 * self.columns * (self.rows + 2)

    def _begin(self, columns: Sequence[Any], header: Header, only: Sequence[str] | None) -> None:
        """Find out what the first line is."""
        first = [cells[0].as_py() for cells in columns]
        has_header = _is_header(first, header)
        if has_header is None:
            raise CommandError(
                f"{self.path}: line 1 has numbers and words, and whether it is a header follows from all other lines, "
                "which are not in memory together with this --memory, or --resume; say --header yes or --header no"
            )
        self._header, self._first, self._names = has_header, first, _names(first, has_header)
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

    def _cell(self, source: Source, i: int) -> _Cell:
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
    def writer(self, file: Sink, types: Mapping[int, np.dtype[Any]], *, head: bool, identity: bool) -> Iterator[Writer]:
        """Return what writes a table like this one."""
        assert self._dialect is not None
        first = self._first
        if not self._header:
            first = [] if identity else [cell for i, cell in enumerate(first) if i not in types]
        quoted = self._has_returns or _looks_otherwise(first, self._dialect)
        dialect = self._dialect if head else replace(self._dialect, mark=False)
        rows = _Rows(file, dialect, self._names if self._header and head else None, quoted)
        yield lambda columns: rows.write(
            [texts_of(cells) if isinstance(cells, np.ndarray) else cells.fill_null("").to_pylist() for cells in columns]
        )

    def _sources(self, place: Place) -> Iterator[tuple[int, Source, list[Any]]]:
        """Read all lines from a place on, and yield where blocks of whole ones begin, their text and their columns."""
        with trying_to("read", self.path):
            self._file.seek(place.byte)
        byte, lines, rest, ended = place.byte, place.lines, b"", False
        while not ended:
            with trying_to("read", self.path):
                piece = self._file.read(self._most) or b""
            ended = not piece
            rest += piece
            if not lines and wide_encoding(rest[:4]):
                raise not_utf8(self.path, 0, rest[:4], 0)
            end = len(rest) if ended else _end_of_lines(rest)
            if not end and len(rest) > LONGEST_LINE:
                raise CommandError(
                    f"{self.path}, line {lines + 1} has more than {LONGEST_LINE} bytes; it is no line of a table"
                )
            text, rest = rest[:end], rest[end:]
            if not text.strip(b"\r\n"):
                continue  # blank lines at the end, of which nothing follows
            try:
                if not text.isascii():
                    text.decode()
            except UnicodeDecodeError as error:
                line = lines + text.count(b"\n", 0, error.start) + 1
                raise not_utf8(self.path, line, text[:4], text[error.start]) from None
            source = Source(self.path, text, lines, self._dialect)
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
                raise source.ragged(lines + 1, len(columns), 1, self.columns)
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

    def __init__(self, missing: str | None) -> None:
        self._missing = missing
        self._words: CommandError | None = None
        self._is_number = self._is_float = self._is_negative = False
        self._wide: CommandError | None = None
        self._unsigned: CommandError | None = None
        self._empty: _Kind | CommandError | None = None

    def see(self, cells: Any, place: _Cell, named: bool) -> None:
        """Look at the cells of a block."""
        if not len(cells):
            return

        def error(row: int, problem: str) -> CommandError:
            made = place.error(row, problem)
            return _TooWideError(str(made)) if "does not fit in 64 bits" in problem else made

        try:
            values = numbers_of(cells, error, named, self._missing)
            if values is None:
                word = other_than_number(cells, self._missing)
                if word is None and self._empty is None:  # all are empty: numbers, if another block has one
                    self._empty = self._of_empty(cells, place)
                elif word is not None and self._words is None:
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
            cell = cells[row].as_py()
            if self._missing is None or cell.strip(" \t"):
                self._unsigned = place.error(row, too_wide(cell))
            else:
                self._unsigned = place.error(row, of_missing(self._missing, too_wide(self._missing)))

    def _of_empty(self, cells: Any, place: _Cell) -> _Kind | CommandError:
        """Return what an empty cell is, or why it cannot be a number."""
        kind = _Kind(self._missing)
        try:
            kind.see(cells.slice(0, 1), place, named=True)
        except CommandError as wrong:
            return wrong
        return kind

    def _add(self, other: _Kind | CommandError) -> None:
        if isinstance(other, CommandError):
            raise other
        self._is_float |= other._is_float
        self._is_negative |= other._is_negative
        self._wide = self._wide or other._wide
        self._unsigned = self._unsigned or other._unsigned

    def dtype(self) -> np.dtype[Any] | None:
        """Return the type of all cells, or None if none is a number."""
        if not self._is_number:
            return None
        if self._words is not None:
            raise self._words
        if self._empty is not None:
            self._add(self._empty)
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

    source: Source
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

    def __init__(self, file: Sink, dialect: Dialect, header: Sequence[str] | None, quoted: bool) -> None:
        self._file, self._text = file, io.StringIO(newline="")
        self._dialect, self._quoted = dialect, quoted
        self._writer = csv.writer(
            self._text,
            delimiter=dialect.delimiter,
            lineterminator=dialect.line_end,
            quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL,
        )
        if dialect.mark:
            file.write(BOM)
        if header is not None:
            self.write([[name] for name in header])

    def write(self, columns: Sequence[Sequence[str]]) -> None:
        """Write the cells of columns."""
        text = self._plainly(columns)
        if text is not None:
            self._file.write(text.encode())
            return
        self._writer.writerows(zip(*columns, strict=True))
        self._file.write(self._text.getvalue().encode())
        self._text.seek(0)
        self._text.truncate()

    def _plainly(self, columns: Sequence[Sequence[str]]) -> str | None:
        """Return the text of rows of which no cell has quotes around it; None where the writer may put some."""
        if self._quoted or not columns or not len(columns[0]) or (len(columns) == 1 and "" in columns[0]):
            return None
        delimiter, line_end, rows = self._dialect.delimiter, self._dialect.line_end, len(columns[0])
        lines = columns[0] if len(columns) == 1 else map(delimiter.join, zip(*columns, strict=True))
        text = line_end.join(lines) + line_end
        ends = text.count("\n"), text.count("\r")
        if (
            text.count(delimiter) > rows * (len(columns) - 1)
            or '"' in text
            or ends != (rows, rows * (len(line_end) - 1))
        ):
            return None
        return text


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
