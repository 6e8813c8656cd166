"""Tables larger than memory: blocks of rows are read, their columns of numbers computed, and written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow

from ..planning.windows import TILE
from .console import Progress, note
from .pipeline import reading_ahead, writing_behind
from .raw_files import RawFile
from .records import SLOT, Keeper, Output
from .replacement import continuing, replacing
from .stream import Task, writing
from .table import size_of_table

__all__ = ["Blocks", "Cells", "Place", "Sink", "Text", "Writer", "stream_table", "stream_text"]

Cells = Any
"""Of a column: an array of numbers, or a pyarrow.ChunkedArray of what is kept."""
Writer = Callable[[Sequence[Cells]], None]
"""Writes rows, given as the cells of each column."""


class Sink(Protocol):
    """Where a table is written, from its beginning to its end."""

    def write(self, data: bytes, /) -> int:
        """Write what comes next."""


@dataclass(frozen=True)
class Place:
    """Where a block of rows begins in its file: the byte, and the lines and the rows before it."""

    byte: int = 0
    lines: int = 0
    rows: int = 0


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

    def blocks(self, place: Place) -> Iterator[tuple[Place, Sequence[Cells]]]:
        """Yield rows, one block after the other, from one of the places that were yielded before or the beginning."""

    def writer(
        self, file: Sink, types: Mapping[int, np.dtype[Any]], *, head: bool, identity: bool
    ) -> AbstractContextManager[Writer]:
        """Return what writes a table like this one, whose columns of numbers have other types.

        Parameters
        ----------
        file : Sink
            Where to write.
        types : mapping of int to numpy.dtype
            The types of the columns of numbers, by their positions.
        head : bool
            Whether to write what comes before the rows.
        identity : bool
            Whether the first row of the result is none of this table.
        """


class Text(Blocks, Protocol):
    """A table whose results can be gone on with, because each row is text behind that of the row before.

    Attributes
    ----------
    fingerprint : list of int or str
        What changes when the file does.
    most_bytes : int
        So many that no text of a table like this one with other numbers is longer.
    """

    fingerprint: list[int | str]
    most_bytes: int


@dataclass(frozen=True)
class _Done:
    """How far a table is done: the results of so many rows, and the place of the block that has the next one."""

    rows: int = 0
    place: Place = Place()
    states: Sequence[bytes] = ()


def stream_table(source: AbstractContextManager[Blocks], target: Path, task: Task) -> str:
    """Compute the columns of numbers of a table some rows at a time, and write them with the others to another file.

    Parameters
    ----------
    source : context manager of Blocks
        The table.
    target : Path
        Where to write.
    task : Task
        What to compute, down the columns.

    Returns
    -------
    str
        How many rows and columns there are.
    """
    with replacing(target) as file, source as table:
        work = _Work(table, task, _types(table, task), _Done())
        with writing(target):
            _stream(table, file, work, Place(), None)
    return _described(table, task)


def stream_text(source: AbstractContextManager[Text], target: Path, task: Task, resume: bool) -> str:
    """Compute a table as `stream_table` does, in a way that can be gone on with after a kill.

    Parameters
    ----------
    source, target, task
        As for `stream_table`.
    resume : bool
        As for `stream`.
    """
    with continuing(target, resume=resume) as file, source as table, writing(target):
        types = _types(table, task)
        kept = _Kept(file, table, types, task)
        done = kept.begin(target, resume)
        if done.rows:
            note(f"going on after {100 * done.rows // table.rows} % of {table.path}")
        _stream(table, kept, _Work(table, task, types, done), done.place, kept)
        kept.end()
    return _described(table, task)


def _described(table: Blocks, task: Task) -> str:
    return size_of_table(table.rows + (task.initial is not None), table.columns, table.columns - len(table.numbers))


def _types(table: Blocks, task: Task) -> dict[int, np.dtype[Any]]:
    """Return the types of results; raise the errors that options have."""
    return {i: task.compute(np.empty((0, 1, 1), dtype), 1).dtype for i, dtype in table.numbers.items()}


def _stream(table: Blocks, file: Sink, work: _Work, begin: Place, kept: _Kept | None) -> None:
    """Read, compute and write the blocks from one on."""
    places: list[Place] = []

    def write(step: Sequence[Cells] | _Done) -> None:
        if not isinstance(step, _Done):
            write_rows(step)
        elif kept is not None:
            kept.keep(step)

    with (
        Progress(table.size, "byte", table.size * work.rows // table.rows) as progress,
        table.writer(file, work.types, head=not work.rows, identity=work.task.initial is not None) as write_rows,
        reading_ahead(table.blocks(begin)) as following,
        writing_behind(write) as put,
    ):
        for place, columns in following:
            places.append(place)
            for rows in work.push([cells[max(work.rows - place.rows, 0) :] for cells in columns]):
                put(rows)
                del rows
            while len(places) > 1 and places[1].rows <= work.rows:
                del places[0]
            if kept is not None and work.rows and kept.keeper.is_due():
                put(_Done(work.rows, places[0], work.states))
            progress.show(table.size * work.rows // table.rows, str(table.path))
            del columns  # before the wait for the next block
        for rows in work.finish():
            put(rows)


class _Kept:
    """A result that grows at its end, with records of how far it is done behind the most that it can come to."""

    def __init__(self, file: RawFile, table: Text, types: Mapping[int, np.dtype[Any]], task: Task) -> None:
        self._file, self._output, self._size = file, Output(file), 0
        self._records_at = table.most_bytes
        output = [[i, str(dtype)] for i, dtype in sorted(types.items())]
        fingerprint = {"input": table.fingerprint, "output": output, "options": dict(task.options)}
        self.keeper = Keeper(fingerprint, self._records_at)

    def begin(self, target: Path, resume: bool) -> _Done:
        """Find out how far it is done; make room for records if it is new."""
        records_at = self._file.seek(0, os.SEEK_END) - 2 * SLOT
        left = self.keeper.last(target, self._file, records_at) if resume and records_at > 0 else None
        if left is not None:
            place, states = left
            self._size = place["written"]
            ends = list(accumulate(place["states"], initial=0))
            return _Done(place["rows"], Place(**place["place"]), [states[a:b] for a, b in pairwise(ends)])
        self._file.truncate(0)
        with suppress(OSError):  # as where no file may be as long
            self._file.truncate(self._records_at + 2 * SLOT)
        return _Done()

    def write(self, data: bytes) -> int:
        """Write what comes next."""
        self._output.write(self._size, memoryview(data))
        self._size += len(data)
        return len(data)

    def keep(self, done: _Done) -> None:
        """Make a record once all that was written is on the disk."""
        assert self._size <= self._records_at
        place = {"rows": done.rows, "place": asdict(done.place), "written": self._size}
        record = self.keeper.record(place | {"states": [*map(len, done.states)]}, b"".join(done.states))
        if record is not None:
            self._output.keep(record)

    def end(self) -> None:
        """Have the file end where the result does."""
        self._file.truncate(self._size)


class _Work:
    """Computes the columns of each type together; rows wait until those of a tile are there, on which results depend.

    Attributes
    ----------
    task : Task
        What to compute.
    types : mapping of int to numpy.dtype
        The types of results, by the positions of their columns.
    rows : int
        How many rows are done.
    """

    def __init__(self, table: Blocks, task: Task, types: Mapping[int, np.dtype[Any]], done: _Done) -> None:
        self.task, self.types = task, types
        kinds = sorted(set(table.numbers.values()), key=str)
        self._groups = [[i for i, dtype in table.numbers.items() if dtype == each] for each in kinds]
        states: Sequence[bytes | None] = done.states or [None] * len(self._groups)
        self._scans = [task.scan(state) for state in states] if task.scan else None
        self._step = TILE if task.scan else 1
        self._waiting: Sequence[Cells] | None = None
        self._initial = None if done.rows else task.initial
        self.rows = done.rows

    @property
    def states(self) -> list[bytes]:
        """The states of the scans, which no row waits for."""
        return [scan.state for scan in self._scans or ()]

    def push(self, columns: Sequence[Cells]) -> Iterator[Sequence[Cells]]:
        """Yield the results that a block settles."""
        if self._initial is not None:
            yield self._first(columns, self._initial)
            self._initial = None
        if self._waiting is not None:
            columns = [_joined(*cells) for cells in zip(self._waiting, columns, strict=True)]
        many = len(columns[0]) // self._step * self._step
        self._waiting = [_rest(cells, many) for cells in columns]
        if many:
            self.rows += many
            yield self._results([cells[:many] for cells in columns], last=False)

    def finish(self) -> Iterator[Sequence[Cells]]:
        """Yield the results that are left."""
        if self._waiting is not None and len(self._waiting[0]):
            yield self._results(self._waiting, last=True)

    def _results(self, columns: Sequence[Cells], *, last: bool) -> Sequence[Cells]:
        results = list(columns)
        for k, group in enumerate(self._groups):
            stacked = np.column_stack([columns[i] for i in group])[None]
            if self._scans is None:
                made = self.task.compute(stacked, 1)
            else:
                pushed = self._scans[k].push(stacked)
                assert isinstance(pushed, np.ndarray)
                made = np.concatenate([pushed, self._scans[k].finish()], axis=1) if last else pushed
            for i, column in zip(group, made[0].T, strict=True):
                results[i] = column
        return results

    def _first(self, columns: Sequence[Cells], initial: int) -> Sequence[Cells]:
        """Return the row of the identity, in which cells that are kept are empty."""
        row: list[Cells] = []
        for i, cells in enumerate(columns):
            if i in self.types:
                row.append(np.full(1, initial, self.types[i]))
            else:
                row.append(pyarrow.chunked_array([pyarrow.nulls(1, cells.type)]))
        return row


def _joined(before: Cells, after: Cells) -> Cells:
    if isinstance(after, np.ndarray):
        return np.concatenate([before, after])
    return pyarrow.chunked_array([*before.chunks, *after.chunks], after.type)


def _rest(cells: Cells, first: int) -> Cells:
    """Return the cells from one on, without the memory of numbers before it."""
    return cells[first:].copy() if isinstance(cells, np.ndarray) else cells[first:]
