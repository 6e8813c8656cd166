"""Tables in .csv files: what is a header, a number and an error, and how numbers are written."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from .console import CommandError, count
from .files import reading
from .table import Column, Dialect, Table

__all__ = ["read_table", "write_table"]

Header = Literal["auto", "yes", "no"]

_BOM = "\ufeff"
_ROWS_AT_ONCE = 1 << 16
_LONGEST_LINE = 1 << 24

_INTEGER = re.compile(r"[ \t]*[+-]?[0-9]+[ \t]*")
_NUMBER = re.compile(
    r"[ \t]*[+-]?([0-9]+\.?[0-9]*(e[+-]?[0-9]+)?|\.[0-9]+(e[+-]?[0-9]+)?|nan|inf|infinity)[ \t]*", re.I
)
"""What is a number: less than Python reads, which takes 1_000 and the digits of all scripts, too."""
_CODE = re.compile(r"[ \t]*[+-]?0[0-9]+[ \t]*")
"""Integers that would lose a zero if they were read as numbers: codes, most likely."""
_HINT = "; codes such as 01234 are numbers in columns that --columns names"
_SHOWN_DIGITS = 40
_MOST_DIGITS = 20
_EXACT = 2.0**53
"""Below this every integer is a float64."""
_DIGIT = re.compile("[0-9]")
_NONZERO = re.compile(r"[^eE]*[1-9]")
"""A number that is not zero: one with another digit before its exponent."""


def read_table(path: Path, header: Header = "auto", only: Sequence[str] | None = None) -> Table:
    """Read a .csv file.

    Parameters
    ----------
    path : Path
        The file, in UTF-8.
    header : {"auto", "yes", "no"}
        Whether the first line holds names; "auto" takes it for a header if no cell of it is a number.
    only : sequence of str, optional
        The names of the columns to process; the others are kept as text, whatever they hold.

    Raises
    ------
    CommandError
        If the file is not a table, or a column of numbers has a cell that is no number.
    OSError
        If it cannot be read.
    """
    rows, lines, dialect = _rows(path)
    first = rows[0]
    # Codes such as 01234 are kept as text, but they are nothing that a header would hold.
    has_header = header == "yes" or (header == "auto" and not any(_NUMBER.fullmatch(cell) for cell in first))
    body = slice(1, None) if has_header else slice(None)
    names = first if has_header else [str(i + 1) for i in range(len(first))]
    lines = lines[body]
    if not lines:
        raise CommandError(f"{path} has no rows below its header; if line 1 is data, say --header no")
    chosen = _chosen(path, names, only)
    columns = []
    for i, (name, cells) in enumerate(zip(names, zip(*rows[body], strict=True), strict=True)):
        where = _Place(path, lines, _shown(name) if has_header and name else f"number {i + 1}")
        numbers = _numbers(cells, where, named=only is not None) if i in chosen else None
        columns.append(Column(name, list(cells) if numbers is None else numbers))
    table = Table(tuple(columns), has_header, dialect)
    if not table.numeric:
        raise CommandError(
            f"{path} has no column of numbers; its cells are separated by {dialect.delimiter!r}, and a decimal point "
            f"is written as '.'{_HINT if any(map(_CODE.fullmatch, rows[-1])) else ''}"
        )
    return table


@dataclass(frozen=True)
class _Place:
    """Where a column's cells are, for messages."""

    path: Path
    lines: list[int]
    column: str

    def error(self, row: int, problem: str) -> CommandError:
        return CommandError(f"{self.path}, line {self.lines[row]}, column {self.column}: {problem}")


def _rows(path: Path) -> tuple[list[list[str]], list[int], Dialect]:
    """Read all rows, equally long, the numbers of their lines, and how the file is written."""
    rows: list[list[str]] = []
    lines: list[int] = []
    blank = 0
    read = 0
    with reading(path) as raw:
        file = io.TextIOWrapper(io.BufferedReader(raw), encoding="utf-8", newline="")
        try:
            first = file.readline(_LONGEST_LINE + 1)
            dialect = _dialect(first)
            text = _lines(path, first.removeprefix(_BOM), file)
            reader = csv.reader(text, delimiter=dialect.delimiter, strict=True)
            for row in reader:
                read = reader.line_num
                if not row:
                    blank = blank or read
                    continue
                if blank:
                    raise CommandError(f"{path}, line {blank} is blank; remove it")
                if rows and len(row) != len(rows[0]):
                    raise CommandError(
                        f"{path}, line {read} has {count(len(row), 'cell')} where line {lines[0]} has {len(rows[0])}"
                    )
                rows.append(row)
                lines.append(read)
        except csv.Error as error:
            raise CommandError(f"{path}, line {reader.line_num}: {error}") from None
        except UnicodeDecodeError:
            raise CommandError(f"{path}, after line {read}: not UTF-8 text; save the file as UTF-8") from None
    if not rows:
        raise CommandError(f"{path} holds nothing but blank lines")
    return rows, lines, dialect


def _dialect(line: str) -> Dialect:
    """Return how a file is written, as its first line tells."""
    bare = re.sub('"[^"]*"', "", line)
    delimiter = max(",", ";", "\t", key=bare.count)
    return Dialect(delimiter, "\r\n" if line.endswith("\r\n") else "\n", line.startswith(_BOM))


def _lines(path: Path, line: str, file: IO[str]) -> Iterator[str]:
    """Yield the lines of a file from the one that was read already; a line without end is not read to its end."""
    number = 1
    while line:
        if len(line) > _LONGEST_LINE:
            raise CommandError(
                f"{path}, line {number} has more than {_LONGEST_LINE} characters; it is no line of a table"
            )
        yield line
        number += 1
        line = file.readline(_LONGEST_LINE + 1)


def _chosen(path: Path, names: list[str], only: Sequence[str] | None) -> set[int]:
    """Return the positions of the columns to process."""
    if only is None:
        return set(range(len(names)))
    chosen = set()
    for name in only:
        found = [i for i, other in enumerate(names) if other == name]
        if len(found) != 1:
            what = "has no column" if not found else f"has {len(found)} columns named"
            raise CommandError(f"--columns: {path} {what} {name!r}; its columns are {', '.join(map(repr, names))}")
        chosen.add(found[0])
    return chosen


# Cells


def _numbers(cells: Sequence[str], where: _Place, *, named: bool) -> NDArray[Any] | None:
    """Convert a column's cells to integers if possible, else to float64; None if no cell is a number.

    A column that the user has named is one of numbers, whatever zeros its cells begin with.
    """
    row = _first_other(cells, named)
    if row is not None:
        if not named and not any(_is_number(cell, named) for cell in cells):
            return None
        raise where.error(row, _not_a_number(cells[row]))
    if all(map(_INTEGER.fullmatch, cells)):
        return _integers(cells, where)
    values = np.array(list(map(float, cells)), np.float64)
    # What is written as an integer is meant exactly; other numbers are rounded to the nearest float64.
    for row in np.flatnonzero(~(np.abs(values) < _EXACT)).tolist():
        cell = cells[row]
        if _INTEGER.fullmatch(cell) and not _is_exact(cell, values[row]):
            raise where.error(
                row,
                f"{_shown(cell)} has no exact float64, which other numbers of the column need; write it with a decimal "
                "point if it may be rounded, or leave the column out with --columns",
            )
        if math.isinf(values[row]) and _DIGIT.search(cell):
            raise where.error(row, f"{_shown(cell)} is beyond float64; correct it, or write inf")
    for row in np.flatnonzero(values == 0).tolist():
        if _NONZERO.match(cells[row]):
            raise where.error(row, f"{_shown(cells[row])} is too small for float64, which has 0 for it; correct it")
    return values


def _first_other(cells: Sequence[str], named: bool) -> int | None:
    """Return the first cell that is not a number, or None."""
    return next((row for row, cell in enumerate(cells) if not _is_number(cell, named)), None)


def _is_number(cell: str, named: bool) -> bool:
    return _NUMBER.fullmatch(cell) is not None and (named or _CODE.fullmatch(cell) is None)


def _not_a_number(cell: str) -> str:
    if not cell.strip():
        return "the cell is empty; fill it, with nan to carry the gap through, or use --columns"
    if _CODE.fullmatch(cell):
        return (
            f"{_shown(cell)} begins with 0, as codes do, while other cells are numbers; name the column with --columns "
            "if it holds numbers, or leave it out with --columns"
        )
    return f"{_shown(repr(cell))} is not a number; correct it, or leave the column out with --columns"


def _integers(cells: Sequence[str], where: _Place) -> NDArray[Any]:
    """Convert cells that are written as integers to int64, or to uint64 if that takes them all."""
    # No integer of 64 bits has more digits, and Python refuses to read those with very many.
    long = next(
        (row for row, cell in enumerate(cells) if len(cell) > _MOST_DIGITS and _digits(cell) > _MOST_DIGITS), None
    )
    values = [] if long is not None else [int(_trimmed(cell)) for cell in cells]
    if values:
        low, high = min(values), max(values)
        for kind in (np.int64, np.uint64):
            info = np.iinfo(kind)
            if info.min <= low and high <= info.max:
                return np.array(values, kind)
    row = next(i for i, value in enumerate(values) if not -(2**63) <= value < 2**63) if long is None else long
    raise where.error(
        row,
        f"{_shown(cells[row])} does not fit in 64 bits; write it with a decimal point, or leave the column out with "
        "--columns",
    )


def _trimmed(cell: str) -> str:
    """Return an integer without spaces and leading zeros, of which Python counts all."""
    cell = cell.strip()
    sign = cell[0] if cell[0] in "+-" else ""
    return sign + (cell[len(sign) :].lstrip("0") or "0")


def _digits(cell: str) -> int:
    return len(_trimmed(cell).lstrip("+-"))


def _is_exact(cell: str, value: float) -> bool:
    """Whether an integer is the number that it was read as."""
    return math.isfinite(value) and int(_trimmed(cell)) == int(value)


def _shown(cell: str) -> str:
    """Return a cell for a message."""
    cell = cell.strip()
    return cell if len(cell) <= _SHOWN_DIGITS else f"{cell[:20]}...{cell[-10:]} ({len(cell)} characters)"


def _texts(values: NDArray[Any]) -> list[str]:
    """Write numbers with the fewest digits that read back to the same bits."""
    if values.dtype.kind != "f":
        return [str(int(value)) for value in values.tolist()]
    if values.dtype == np.float64:
        return [repr(value) for value in values.tolist()]
    texts: list[str] = values.astype(np.str_).tolist()
    # The fewest digits for float32 identify it among float32 numbers. A reader that goes through float64 rounds twice,
    # which very rarely ends at the neighbour (7.038531e-26); such a number is written with float64's digits.
    with np.errstate(over="ignore"):
        back = np.array([float(text) for text in texts]).astype(values.dtype)
    for i in np.flatnonzero((back != values) & ~np.isnan(values)).tolist():
        texts[i] = repr(float(values[i]))
    return texts


# Writing


def write_table(file: IO[bytes], table: Table) -> None:
    """Write a table to an open file."""
    if table.dialect.mark:
        file.write(_BOM.encode())
    text = io.StringIO(newline="")
    writer = csv.writer(
        text,
        delimiter=table.dialect.delimiter,
        lineterminator=table.dialect.line_end,
        quoting=csv.QUOTE_ALL if _is_ambiguous(table) else csv.QUOTE_MINIMAL,
    )
    if table.header:
        writer.writerow([column.name for column in table.columns])
    for start in range(0, table.rows, _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        cells = [
            column.cells[part] if isinstance(column.cells, list) else _texts(column.cells[part])
            for column in table.columns
        ]
        writer.writerows(zip(*cells, strict=True))
        file.write(text.getvalue().encode())
        text.seek(0)
        text.truncate()
    file.write(text.getvalue().encode())


def _is_ambiguous(table: Table) -> bool:
    """Whether the text would be misread unless all of it is quoted.

    The writer quotes the cells that contain the delimiter, a quote or a character of the line end. A lone carriage
    return is not one of them, and another delimiter in the first line could be taken for the file's.
    """
    texts = [column.cells for column in table.columns if isinstance(column.cells, list)]
    names = [column.name for column in table.columns]
    first = names if table.header else [cells[0] for cells in texts if cells]
    others = {",", ";", "\t"} - {table.dialect.delimiter}
    return any(other in cell for cell in first for other in others) or any(
        "\r" in cell for cells in [names, *texts] for cell in cells
    )
