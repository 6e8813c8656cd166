"""Tables in .csv files: what is a header, a number and an error, and how numbers are written.

pyarrow splits lines and converts cells. Where it is more lenient than a table may be (quotes within cells, blank
lines), and to say in which line an error is, the standard library's strict reader goes through the file.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.csv

from .console import CommandError, count
from .files import reading
from .numerals import CODE, NUMBER, Pattern, numbers_of, shown, texts_of
from .table import Column, Dialect, Table, chosen_columns

__all__ = ["read_table", "write_table"]

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
        where = _Place(source, int(has_header), shown(name) if has_header and name else f"number {i + 1}")
        numbers = numbers_of(cells, where.error, only is not None, missing) if i in chosen else None
        return Column(name, cells if numbers is None else numbers)

    with ThreadPoolExecutor() as pool:  # pyarrow converts without Python's lock
        found = tuple(pool.map(column, range(len(columns))))
    table = Table(found, has_header, source.dialect)
    if not table.numeric:
        has_codes = any(CODE.fits(cells[-1].as_py()) for cells in columns)
        raise CommandError(
            f"{path} has no column of numbers; its cells are separated by {source.dialect.delimiter!r}, and a decimal "
            f"point is written as '.'{_HINT if has_codes else ''}"
        )
    return table


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
    """The text of a .csv file.

    Attributes
    ----------
    path : Path
        Its name.
    dialect : Dialect
        How it is written, as its first line tells.
    """

    def __init__(self, path: Path, content: bytes | bytearray) -> None:
        self.path = path
        self._content = content
        self._text_at = len(_BOM) if content.startswith(_BOM) else 0
        with self._text() as text:
            first = text.readline()
        bare = re.sub('"[^"]*"', "", first)
        delimiter = max(",", ";", "\t", key=bare.count)
        self.dialect = Dialect(delimiter, "\r\n" if first.endswith("\r\n") else "\n", content.startswith(_BOM))

    def _text(self) -> io.TextIOWrapper:
        return io.TextIOWrapper(self._file(len(self._content)), encoding="utf-8", newline="")

    def _file(self, end: int) -> Any:
        """Return the text, up to an end, as a file of bytes that are not copied."""
        return pyarrow.BufferReader(pyarrow.py_buffer(self._content).slice(self._text_at, end - self._text_at))

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
                    line = reader.line_num
                    if not row:
                        blank = blank or line
                        continue
                    if blank:
                        raise CommandError(f"{self.path}, line {blank} is blank; remove it")
                    if first and len(row) != cells:
                        raise CommandError(
                            f"{self.path}, line {line} has {count(len(row), 'cell')} where line {first} has {cells}"
                        )
                    first, cells = first or line, len(row)
                    yield line, row
            except csv.Error as error:
                raise CommandError(f"{self.path}, line {reader.line_num}: {error}") from None


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


# Cells


@dataclass(frozen=True)
class _Place:
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
    if table.dialect.mark:
        file.write(_BOM)
    texts = {i: _kept(column) for i, column in enumerate(table.columns) if column.numbers is None}
    names = [column.name for column in table.columns]
    text = io.StringIO(newline="")
    writer = csv.writer(
        text,
        delimiter=table.dialect.delimiter,
        lineterminator=table.dialect.line_end,
        quoting=csv.QUOTE_ALL if _is_ambiguous(table, names, texts) else csv.QUOTE_MINIMAL,
    )
    if table.header:
        writer.writerow(names)
    for start in range(0, table.rows, _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        cells = [
            texts[i][part] if column.numbers is None else texts_of(column.numbers[part])
            for i, column in enumerate(table.columns)
        ]
        writer.writerows(zip(*cells, strict=True))
        file.write(text.getvalue().encode())
        text.seek(0)
        text.truncate()
    file.write(text.getvalue().encode())


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
    others = {",", ";", "\t"} - {table.dialect.delimiter}
    return any(other in cell for cell in first for other in others) or any(
        "\r" in cell for cells in [names, *texts.values()] for cell in cells
    )
