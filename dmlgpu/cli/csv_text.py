"""The text of .csv files: its encoding, its rows and its columns.

pyarrow splits lines. Where it is more lenient than a table may be (quotes within cells, blank lines), and to say in
which line an error is, the standard library's strict reader goes through the text.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.csv
from numpy.typing import NDArray

from ..errors import counted
from .console import CommandError
from .raw_files import RawFile
from .table import Dialect

__all__ = [
    "BLOCK",
    "BOM",
    "LONGEST_LINE",
    "Source",
    "UnusualError",
    "content_of",
    "not_utf8",
    "quotes_are_plain",
    "read_csv",
    "wide_encoding",
]

BOM = b"\xef\xbb\xbf"
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
_QUOTES = "end quoted cells with a quote, and write a quote within one twice"
_SHORTER = "shorten the cell, or end it with a quote if it begins with one"
LONGEST_LINE = 1 << 24
_LARGEST_BLOCK = 2**31 - 1
BLOCK = 1 << 20
"""The bytes that pyarrow reads at once where it may cut the text into blocks. No row may lie in three of them."""


def content_of(path: Path, file: RawFile) -> bytearray:
    """Return the text of an open file, which is UTF-8. A line that is too long is not read to its end."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    content = bytearray()
    unfinished = 0  # bytes of the line that the content ends in
    piece = b"the file's"
    while piece:
        piece = file.read(_AT_ONCE) or b""
        content += piece
        try:
            if not piece.isascii() or decoder.getstate()[0]:
                decoder.decode(piece, final=not piece)
        except UnicodeDecodeError as error:
            before = content[: len(content) - len(error.object) + error.start]
            line_ends = before.count(b"\n") + before.count(b"\r") - before.count(b"\r\n")
            raise not_utf8(path, line_ends + 1, content[:4], error.object[error.start]) from None
        if len(content) == len(piece) and wide_encoding(piece):
            raise not_utf8(path, 0, piece, 0)
        last = piece.rfind(b"\n")
        last = max(last, piece.rfind(b"\r", last + 1))
        unfinished = len(piece) - 1 - last + (unfinished if last < 0 else 0)
        if unfinished > LONGEST_LINE:
            lines = content.count(b"\n")
            raise CommandError(f"{path}, line {lines + 1} has more than {LONGEST_LINE} bytes; it is no line of a table")
    return content


def wide_encoding(start: bytes | bytearray) -> str | None:
    """Return the encoding of two or four bytes a character that a file's first bytes tell, or None."""
    for mark, name in _WIDE_MARKS.items():
        if start.startswith(mark):
            return name
    if len(start) >= 4 and start[0] and start[2] and not start[1] and not start[3]:
        return "UTF-16LE"
    if len(start) >= 4 and not start[0] and not start[2] and start[1] and start[3]:
        return "UTF-16BE"
    return None


def not_utf8(path: Path, line: int, start: bytes | bytearray, byte: int) -> CommandError:
    """Return an error that names the encoding that a file most likely has."""
    wide = wide_encoding(start)
    if wide is not None:
        return CommandError(f"{path}: not UTF-8 text but {wide}, as its first bytes tell; {_CONVERT.format(wide)}")
    character = bytes([byte]).decode(_NARROW, "replace")
    where = f"{path}, line {line}: not UTF-8 text"
    if character == "\ufffd":
        return CommandError(
            f"{where}: the byte 0x{byte:02X} begins no character; save the file as UTF-8, in the program that wrote it"
        )
    return CommandError(
        f"{where} but most likely {_NARROW}, in which the byte 0x{byte:02X} is {character!r}; "
        f"{_CONVERT.format(_NARROW)}"
    )


def _first_row(text: io.TextIOWrapper) -> str:
    """Return a text's first row, which has line ends where quotes are around them."""
    lines = [text.readline()]
    quotes, length = lines[0].count('"'), len(lines[0])
    while quotes % 2:
        line = text.readline()
        quotes, length = quotes + line.count('"'), length + len(line)
        if not line or length > LONGEST_LINE:
            return lines[0]  # the quote is around nothing
        lines.append(line)
    return "".join(lines)


class Source:
    """The text of a .csv file, or a part of it.

    Attributes
    ----------
    path : Path
        Its name.
    content : bytes or bytearray
        The text, perhaps behind a mark.
    begin, end : int
        Where it begins, and where it ends but for line ends.
    lines_before : int
        How many lines of the file are before the text.
    dialect : Dialect
        How it is written, as its first line tells.
    has_quotes, has_returns : bool
        Whether there are quotes and carriage returns. Where there are none, every line feed ends a row, and nothing
        else does.
    """

    def __init__(
        self, path: Path, content: bytes | bytearray, lines_before: int = 0, dialect: Dialect | None = None
    ) -> None:
        self.path, self.content, self.lines_before = path, content, lines_before
        self.begin = len(BOM) if content.startswith(BOM) and not lines_before else 0
        self.end = len(content)
        while self.end > self.begin and content[self.end - 1] in b"\r\n":
            self.end -= 1
        self.has_quotes = self.has_returns = False
        for start in range(0, len(content), _AT_ONCE):
            stop = start + _AT_ONCE
            self.has_quotes = self.has_quotes or content.find(b'"', start, stop) >= 0
            self.has_returns = self.has_returns or content.find(b"\r", start, stop) >= 0
        self.dialect = dialect or self._dialect()

    def _dialect(self) -> Dialect:
        with self._text() as text:
            first = _first_row(text)
        bare = re.sub('"[^"]*"', "", first)
        delimiter = max(",", ";", "\t", key=bare.count)
        return Dialect(delimiter, "\r\n" if first.endswith("\r\n") else "\n", self.content.startswith(BOM))

    def _text(self) -> io.TextIOWrapper:
        return io.TextIOWrapper(self._file(len(self.content)), encoding="utf-8", newline="")

    def _file(self, end: int) -> Any:
        """Return the text, up to an end, as a file of bytes that are not copied."""
        return pyarrow.BufferReader(pyarrow.py_buffer(self.content).slice(self.begin, end - self.begin))

    @property
    def is_plain(self) -> bool:
        """Whether pyarrow may cut the text at line feeds, and use all cores."""
        return not self.has_quotes and not self.has_returns

    @property
    def has_plain_quotes(self) -> bool:
        """Whether quotes are nowhere but around cells."""
        if not self.has_quotes:
            return True
        characters = np.frombuffer(b"\n" + self.content[self.begin :] + b"\n", np.uint8)
        places = np.flatnonzero(characters == ord('"'))
        return places.size % 2 == 0 and quotes_are_plain(characters, places[::2], places[1::2], self.dialect.delimiter)

    @property
    def may_have_returns(self) -> bool:
        """Whether a cell may have a carriage return: without quotes they end lines."""
        return self.has_quotes and self.has_returns

    @property
    def begins_with_a_row(self) -> bool:
        """Whether there is any text, and no blank line before it."""
        return self.end > self.begin and self.content[self.begin] not in b"\r\n"

    def first_row(self) -> list[str]:
        """Return the cells of the first row."""
        return next(self.rows())[1]

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
        if not self.begins_with_a_row or not self.has_plain_quotes:
            return None
        try:
            table = read_csv(
                self._file(self.end),
                [pyarrow.string()] * len(self.first_row()),
                self.dialect.delimiter,
                quotes=self.has_quotes,
                block=min(self.end - self.begin + 1, BLOCK if self.is_plain else _LARGEST_BLOCK),
            )
        except pyarrow.ArrowInvalid:  # such as for lines of different lengths
            return None
        lengths = [pyarrow.compute.binary_length(cells) for cells in table.columns]
        extremes = [pyarrow.compute.min_max(of_cells).as_py() for of_cells in lengths]
        separators = table.num_rows * table.num_columns - 1
        if self.is_plain and sum(map(_total, lengths)) + separators != self.end - self.begin:
            return None  # pyarrow has lost rows of very small blocks
        if max(extreme["max"] for extreme in extremes) > csv.field_size_limit():
            return None
        if not any(extreme["min"] for extreme in extremes):
            without_text = np.all([of_cells.to_numpy() == 0 for of_cells in lengths], axis=0)
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
                        raise self.ragged(line, len(row), first, cells)
                    first, cells = first or (1 if self.lines_before else line), len(row)
                    yield line, row
            except csv.Error as error:
                why = str(error).replace("unexpected end of data", "the text ends within a quoted cell")
                way = _SHORTER if "limit" in why else _QUOTES
                raise CommandError(f"{self.path}, line {self.lines_before + reader.line_num}: {why}; {way}") from None

    def ragged(self, line: int, cells: int, other: int, others: int) -> CommandError:
        """Return an error that says that two lines have different lengths."""
        return CommandError(
            f"{self.path}, line {line} has {counted(cells, 'cell')} where line {other} has {others}; give both as "
            f"many, and cells that contain {self.dialect.delimiter!r} quotes around them"
        )


def _total(lengths: Any) -> int:
    """Return the sum of the lengths of a column's cells; some file has a column, but no row."""
    return pyarrow.compute.sum(lengths).as_py() or 0


def quotes_are_plain(
    characters: NDArray[np.uint8], opening: NDArray[np.intp], closing: NDArray[np.intp], delimiter: str
) -> bool:
    """Whether every quote begins or ends a cell, or is one of two in a row within a quoted cell.

    Where that holds up to a quote, quotes before it open and close in turn: so it suffices that what is before each
    first one, and behind each second one, is the border of a cell or another quote.

    Parameters
    ----------
    characters : NDArray
        A text, from the character before its first quote to that behind its last one.
    opening, closing : NDArray
        Where its first and its second quotes are.
    delimiter : str
        What separates cells.
    """
    borders = np.zeros(256, np.bool_)
    borders[[*f'{delimiter}\r\n"'.encode()]] = True
    return all(borders.take(characters.take(places)).all() for places in (opening - 1, closing + 1))


def read_csv(text: Any, kinds: Sequence[Any], delimiter: str, *, quotes: bool, block: int) -> Any:
    """Return a table of the columns as pyarrow splits and converts them; what it loses is for the caller to see.

    Parameters
    ----------
    text : file
        What to read.
    kinds : sequence of pyarrow.DataType
        The types of all columns.
    delimiter : str
        What separates cells.
    quotes : bool
        Whether there may be quotes; without any, pyarrow is quicker if it need not look.
    block : int
        How many bytes to read at once. pyarrow cuts the text behind the last line feed of them, where a row must end.

    Raises
    ------
    pyarrow.ArrowInvalid
        If lines have different lengths, or a cell does not have its type.
    """
    # pyarrow's handlers have a thread take note of a signal, perhaps after the call, and then it is lost.
    pyarrow.enable_signal_handlers(False)
    names = [str(i) for i in range(len(kinds))]
    return pyarrow.csv.read_csv(
        text,
        pyarrow.csv.ReadOptions(column_names=names, block_size=block),
        pyarrow.csv.ParseOptions(
            delimiter=delimiter,
            quote_char='"' if quotes else False,
            ignore_empty_lines=False,
        ),
        pyarrow.csv.ConvertOptions(
            check_utf8=False,
            strings_can_be_null=False,
            null_values=[],
            column_types=dict(zip(names, kinds, strict=True)),
        ),
    )


class UnusualError(Exception):
    """Says that it takes a closer look to read a file."""
