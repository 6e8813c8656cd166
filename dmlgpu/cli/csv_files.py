"""Tables in .csv files: what is a header, a number and an error, and how numbers are written."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from .console import CommandError, count
from .table import Column, Dialect, Table

__all__ = ["read_table", "write_table"]

Header = Literal["auto", "yes", "no"]

_BOM = b"\xef\xbb\xbf"
_ROWS_AT_ONCE = 1 << 16


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
    dialect = _dialect(path)
    rows, lines = _rows(path, dialect)
    first = rows[0]
    has_header = header == "yes" or (header == "auto" and not any(_is_number(cell) for cell in first))
    body = slice(1, None) if has_header else slice(None)
    names = first if has_header else [str(i + 1) for i in range(len(first))]
    lines = lines[body]
    if not lines:
        raise CommandError(f"{path} has no rows below its header; if line 1 is data, say --header no")
    chosen = _chosen(path, names, only)
    columns = []
    for i, (name, cells) in enumerate(zip(names, zip(*rows[body], strict=True), strict=True)):
        where = _Place(path, lines, name if has_header and name else f"number {i + 1}")
        numbers = _numbers(cells, where, required=only is not None) if i in chosen else None
        columns.append(Column(name, list(cells) if numbers is None else numbers))
    table = Table(tuple(columns), has_header, dialect)
    if not table.numeric:
        raise CommandError(
            f"{path} has no column of numbers; its cells are separated by {dialect.delimiter!r}, and a decimal point "
            "is written as '.'"
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


def _dialect(path: Path) -> Dialect:
    """Read the first line's separator and end."""
    with path.open("rb") as file:
        line = file.readline()
    bare = re.sub(rb'"[^"]*"', b"", line)
    delimiter = max(b",", b";", b"\t", key=bare.count).decode()
    return Dialect(delimiter, "\r\n" if line.endswith(b"\r\n") else "\n", line.startswith(_BOM))


def _rows(path: Path, dialect: Dialect) -> tuple[list[list[str]], list[int]]:
    """Read all rows, equally long, and the numbers of their lines."""
    rows: list[list[str]] = []
    lines: list[int] = []
    blank = 0
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=dialect.delimiter, strict=True)
        try:
            for row in reader:
                if not row:
                    blank = blank or reader.line_num
                    continue
                if blank:
                    raise CommandError(f"{path}, line {blank} is blank; remove it")
                if rows and len(row) != len(rows[0]):
                    raise CommandError(
                        f"{path}, line {reader.line_num} has {count(len(row), 'cell')} where line {lines[0]} has "
                        f"{len(rows[0])}"
                    )
                rows.append(row)
                lines.append(reader.line_num)
        except csv.Error as error:
            raise CommandError(f"{path}, line {reader.line_num}: {error}") from None
        except UnicodeDecodeError:
            raise CommandError(
                f"{path}, after line {reader.line_num}: not UTF-8 text; save the file as UTF-8"
            ) from None
    if not rows:
        raise CommandError(f"{path} holds nothing but blank lines")
    return rows, lines


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


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python takes 1_000 for a number; other programs do not.


def _numbers(cells: Sequence[str], where: _Place, *, required: bool) -> NDArray[Any] | None:
    """Convert a column's cells to integers if possible, else to float64; None if no cell is a number."""
    values: list[int] | list[float]
    try:
        values = list(map(int, cells))
    except ValueError:
        try:
            values = list(map(float, cells))
        except ValueError:
            values = []
    if not values or any("_" in cell for cell in cells):
        valid = [_is_number(cell) for cell in cells]
        if not any(valid) and not required:
            return None
        row = valid.index(False)
        cell = cells[row]
        if cell.strip():
            raise where.error(row, f"{cell!r} is not a number; correct it, or leave the column out with --columns")
        raise where.error(row, "the cell is empty; fill it, with nan to carry the gap through, or use --columns")
    if isinstance(values[0], float):
        return np.array(values, np.float64)
    low, high = min(values), max(values)
    for kind in (np.int64, np.uint64):
        info = np.iinfo(kind)
        if info.min <= low and high <= info.max:
            return np.array(values, kind)
    row = next(i for i, value in enumerate(values) if not -(2**63) <= value < 2**63)
    raise where.error(
        row,
        f"{cells[row]} does not fit in 64 bits; write it with a decimal point, or leave the column out with --columns",
    )


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
        file.write(_BOM)
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=False)
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
    text.flush()
    text.detach()  # the file stays open for its owner


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
