"""Tables larger than memory: blocks of rows are read, their columns of numbers computed, and written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import pyarrow
from numpy.typing import NDArray

from .console import Progress, count
from .pipeline import reading_ahead, writing_behind
from .replacement import replacing
from .stream import Task, writing

__all__ = ["Blocks", "Cells", "Writer", "stream_table"]

Cells = Any
"""Of a column: an array of numbers, or a pyarrow.ChunkedArray of what is kept."""
Writer = Callable[[Sequence[Cells]], None]
"""Writes rows, given as the cells of each column."""


class Blocks(Protocol):
    """A table in a file that is read some rows at a time.

    Attributes
    ----------
    path : Path
        The file.
    size : int
        The file's bytes.
    rows : int
        How many rows there are.
    columns : int
        How many columns there are.
    numbers : mapping of int to numpy.dtype
        The types of the columns of numbers, by their positions.
    """

    path: Path
    size: int
    rows: int
    columns: int
    numbers: Mapping[int, np.dtype[Any]]

    def blocks(self) -> Iterator[Sequence[Cells]]:
        """Yield rows, one block after the other."""

    def writer(self, file: IO[bytes], types: Mapping[int, np.dtype[Any]]) -> AbstractContextManager[Writer]:
        """Return what writes a table like this one, whose columns of numbers have other types."""


def stream_table(source: AbstractContextManager[Blocks], target: Path, task: Task, scans: bool) -> str:
    """Compute the columns of numbers of a table some rows at a time, and write them with the others to another file.

    Parameters
    ----------
    source : context manager of Blocks
        The table.
    target : Path
        Where to write.
    task : Task
        What to compute, down the columns.
    scans : bool
        Whether it is a scan, and not done to each number by itself.

    Returns
    -------
    str
        How many rows and columns there are.
    """
    with replacing(target) as file, source as table:
        # Of no element: for the type of the result, and for errors in options.
        types = {i: task.compute(np.empty((0, 1, 1), dtype), 1).dtype for i, dtype in table.numbers.items()}
        work = _Scans(table, task) if scans else _Roundings(table, task)
        read = written = 0
        with (
            Progress(table.size, "byte") as progress,
            writing(target),
            table.writer(file, types) as write,
            reading_ahead(table.blocks()) as following,
            writing_behind(write) as put,
        ):
            for columns in following:
                read += len(columns[0])
                for done in work.push(columns):
                    written += len(done[0])
                    put(done)
                progress.show(table.size * read // table.rows, str(table.path))
                del columns, done  # before the wait for the next block
            for done in work.finish():
                written += len(done[0])
                put(done)
    return f"{count(written, 'row')} of {count(table.columns, 'column')}"


class _Roundings:
    """Computes each number by itself."""

    def __init__(self, table: Blocks, task: Task) -> None:
        self._task, self._groups = task, _groups(table)

    def push(self, columns: Sequence[Cells]) -> Iterator[Sequence[Cells]]:
        """Yield the results of a block."""
        results = list(columns)
        for group in self._groups:
            made = self._task.compute(_stacked(columns, group), 1)
            for i, column in zip(group, made[0].T, strict=True):
                results[i] = column
        yield results

    def finish(self) -> Iterator[Sequence[Cells]]:
        """Yield what is left, which is nothing."""
        return iter(())


class _Scans:
    """Scans the columns of each type together. Other cells wait until the results of their rows are settled."""

    def __init__(self, table: Blocks, task: Task) -> None:
        self._groups = _groups(table)
        self._types = table.numbers
        self._scans = [task.scan(None) for _ in self._groups]
        self._waiting: dict[int, Any] = {}
        self._initial, self._columns = task.initial, table.columns
        self._has_begun = False

    def push(self, columns: Sequence[Cells]) -> Iterator[Sequence[Cells]]:
        """Yield the rows that a block settles."""
        for i in range(self._columns):
            if i not in self._types:
                before = self._waiting.get(i)
                chunks = columns[i].chunks if before is None else [*before.chunks, *columns[i].chunks]
                self._waiting[i] = pyarrow.chunked_array(chunks, columns[i].type)
        settled = [scan.push(_stacked(columns, group)) for group, scan in zip(self._groups, self._scans, strict=True)]
        if self._initial is not None and not self._has_begun:
            yield self._first(settled)
        self._has_begun = True
        yield self._rows(settled)

    def finish(self) -> Iterator[Sequence[Cells]]:
        """Yield the rows that are left."""
        yield self._rows([scan.finish() for scan in self._scans])

    def _first(self, settled: Sequence[Any]) -> Sequence[Cells]:
        """Return the row of the identity, in which other cells are empty."""
        row: list[Cells] = [None] * self._columns
        for group, results in zip(self._groups, settled, strict=True):
            for i in group:
                row[i] = np.full(1, self._initial, results.dtype)
        for i, cells in self._waiting.items():
            gap = pyarrow.nulls(1, cells.type) if cells.type != pyarrow.string() else pyarrow.array([""])
            row[i] = pyarrow.chunked_array([gap])
        return row

    def _rows(self, settled: Sequence[Any]) -> Sequence[Cells]:
        rows: list[Cells] = [None] * self._columns
        many = settled[0].shape[1]
        for group, results in zip(self._groups, settled, strict=True):
            for i, column in zip(group, results[0].T, strict=True):
                rows[i] = column
        for i, cells in self._waiting.items():
            rows[i], self._waiting[i] = cells.slice(0, many), cells.slice(many)
        return rows


def _groups(table: Blocks) -> list[list[int]]:
    """Return the positions of the columns of numbers, those of each type together."""
    types = sorted(set(table.numbers.values()), key=str)
    return [[i for i, dtype in table.numbers.items() if dtype == each] for each in types]


def _stacked(columns: Sequence[Cells], group: Sequence[int]) -> NDArray[Any]:
    """Return columns as one array of shape (1, rows, columns)."""
    return np.column_stack([columns[i] for i in group])[None]
