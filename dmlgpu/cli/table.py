"""Tables: columns of numbers to process, and columns of anything else, which are kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import counted
from .console import CommandError

__all__ = ["Column", "Dialect", "Table", "array_table", "chosen_columns", "size_of_table"]


@dataclass(frozen=True)
class Dialect:
    """How a file is written, so that the result is written in the same way.

    Attributes
    ----------
    delimiter : str
        What separates cells.
    line_end : str
        What ends lines.
    mark : bool
        Whether the file begins with a byte order mark, which spreadsheets ask for.
    schema : pyarrow.Schema, optional
        What a .parquet file says of its columns, and besides them, such as which of them is pandas' index.
    """

    delimiter: str = ","
    line_end: str = "\n"
    mark: bool = False
    schema: Any = None


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    name : str
        The header's cell, or the column's number from 1 where there is none.
    cells : NDArray, list of str or pyarrow.ChunkedArray
        An array of numbers to process, or what is kept: text, or a column of a file as pyarrow has read it.
    """

    name: str
    cells: Any

    @property
    def numbers(self) -> NDArray[Any] | None:
        """The numbers, or None for what is kept."""
        return self.cells if isinstance(self.cells, np.ndarray) else None

    @property
    def is_text(self) -> bool:
        """Whether it is kept, and text."""
        return isinstance(self.cells, list) or (self.numbers is None and str(self.cells.type) == "string")


def size_of_table(rows: int, columns: int, kept: int) -> str:
    """Say how large a table is, and how many of its columns are no numbers to process.

    Examples
    --------
    >>> size_of_table(3, 1, 0), size_of_table(1, 4, 2)
    ('3 rows of 1 column', '1 row of 4 columns, 2 of them kept as they are')
    """
    size = f"{counted(rows, 'row')} of {counted(columns, 'column')}"
    return f"{size}, {kept} of them kept as {'it is' if kept == 1 else 'they are'}" if kept else size


@dataclass(frozen=True)
class Table:
    """The contents of a .csv or .parquet file.

    Attributes
    ----------
    columns : tuple of Column
        All columns, with equally many cells.
    header : bool
        Whether the first line holds the columns' names.
    dialect : Dialect
        How the file is written.
    """

    columns: tuple[Column, ...]
    header: bool
    dialect: Dialect = field(default_factory=Dialect)

    @property
    def rows(self) -> int:
        """The number of rows, without the header."""
        return len(self.columns[0].cells)

    @property
    def numeric(self) -> list[int]:
        """The positions of the columns of numbers."""
        return [i for i, column in enumerate(self.columns) if column.numbers is not None]

    def with_numbers(self, arrays: Iterable[NDArray[Any]]) -> Table:
        """Return the table with other numbers in its columns of numbers."""
        columns = list(self.columns)
        for i, array in zip(self.numeric, arrays, strict=True):
            columns[i] = replace(columns[i], cells=array)
        return replace(self, columns=tuple(columns))

    def with_gap(self, first: bool) -> Table:
        """Return the table with an empty cell added to the columns that are kept, as the first or the last."""
        columns = [
            replace(column, cells=_with_gap(column.cells, first)) if column.numbers is None else column
            for column in self.columns
        ]
        return replace(self, columns=tuple(columns))

    def stacked(self, task: str, way_out: str) -> NDArray[Any]:
        """Return the columns of numbers as one array of shape (rows, columns) and a type that holds them all.

        Parameters
        ----------
        task : str
            What it is for, as errors begin.
        way_out : str
            What to do instead, as errors end.

        Raises
        ------
        CommandError
            If integers would lose digits in a floating-point type.
        """
        arrays = [(self.columns[i].name, self.columns[i].numbers) for i in self.numeric]
        present = [array for _, array in arrays if array is not None]
        common = np.result_type(*present)
        for name, array in arrays:
            if array is not None and array.dtype.kind in "iu" and common.kind == "f":
                lost = np.flatnonzero(~_fitting(array, common))
                if lost.size:
                    raise CommandError(
                        f"{task}: column {name!r}, row {lost[0] + 1}: {array[lost[0]]} has no exact {common}, the "
                        f"type that all columns would have; {way_out}"
                    )
        return np.column_stack([array.astype(common, copy=False) for array in present])


def _fitting(integers: NDArray[Any], common: np.dtype[Any]) -> NDArray[np.bool_]:
    """Return which integers survive a conversion to `common` and back."""
    converted = integers.astype(common).astype(np.float64)
    # A value that was rounded up to 2^63 or 2^64 would overflow on the way back.
    inside = converted < float(np.iinfo(integers.dtype).max) + 1
    result: NDArray[np.bool_] = np.where(inside, converted, 0).astype(integers.dtype) == integers
    return result & inside


def _with_gap(cells: Any, first: bool) -> Any:
    if isinstance(cells, list):
        return ["", *cells] if first else [*cells, ""]
    import pyarrow  # has made the cells

    gap = pyarrow.nulls(1, cells.type)
    return pyarrow.chunked_array([gap, *cells.chunks] if first else [*cells.chunks, gap])


def chosen_columns(path: Path, names: Sequence[str], only: Sequence[str] | None) -> set[int]:
    """Return the positions of the columns to process, which `only` names, with or without the spaces around a name."""
    if only is None:
        return set(range(len(names)))
    chosen = set()
    for name in only:
        found = [i for i, other in enumerate(names) if other == name]
        found = found or [i for i, other in enumerate(names) if other.strip() == name.strip()]
        if len(found) != 1:
            what = "has no column" if not found else f"has {len(found)} columns named"
            raise CommandError(f"--columns: {path} {what} {name!r}; its columns are {', '.join(map(repr, names))}")
        chosen.add(found[0])
    return chosen


def array_table(array: NDArray[Any], extension: str = ".csv") -> Table:
    """Return a table without a header of an array of one dimension (one column) or two (rows and columns).

    Parameters
    ----------
    array : NDArray
        The array.
    extension : str
        That of the file that it is for, for the message.

    Raises
    ------
    CommandError
        If there are no columns, or, for a .csv file, no rows.
    """
    columns = array[:, np.newaxis] if array.ndim == 1 else array
    if extension == ".csv" and not len(columns):
        raise CommandError(
            f"the result has shape {array.shape}: without a header and rows nothing of it would be in a .csv file; "
            "write .npy or .parquet"
        )
    if columns.shape[1] == 0:
        raise CommandError(
            f"the result has shape {array.shape}: a {extension} file needs at least one column; write .npy"
        )
    return Table(tuple(Column(str(i + 1), columns[:, i]) for i in range(columns.shape[1])), header=False)
