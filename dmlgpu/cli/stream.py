"""Arrays larger than memory: blocks of a .npy file are read, computed and written at the same time."""

from __future__ import annotations

import io
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.pieces import Scan
from ..errors import counted
from ..planning.windows import TILE
from .console import CommandError, Progress, note, unwritable
from .npy_files import NpyHeader, check_bools, check_length, read_header
from .pipeline import reading_ahead, writing_behind
from .raw_files import (
    AT_ONCE,
    STANDARD_INPUT,
    STANDARD_OUTPUT,
    RawFile,
    filled,
    fingerprint,
    reading,
    standard_output,
    trying_to,
)
from .records import Keeper, Output, Record
from .replacement import continuing

__all__ = ["Block", "Cube", "Place", "Task", "block_elements", "pass_through", "stream", "writing"]

_MOST_COLUMNS = 1 << 15
"""Slices whose pieces are scanned together at most, so that their state fits into a record."""
_MOST_BYTES = 1 << 28
"""Of a block: larger ones gain nothing."""


@dataclass(frozen=True)
class Task:
    """What becomes of an array.

    Attributes
    ----------
    compute : callable
        Does it to an array that has whole slices along an axis, or None for all of its elements as they are.
    scan : callable or None
        Returns a scan that takes slices in pieces, from its state if it goes on; None where elements have nothing to do
        with each other.
    reverse : bool
        Whether it goes from the end of the axis.
    initial : int, optional
        What is put before the first result in traversal order.
    options : mapping
        All on which the result depends but the input.
    """

    compute: Callable[[NDArray[Any], int | None], NDArray[Any]]
    scan: Callable[[bytes | None], Scan] | None
    reverse: bool
    initial: int | None
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Place:
    """How far it is done: all of the first outer indices and columns, and so many rows of the next columns."""

    outer: int = 0
    column: int = 0
    width: int = 0
    row: int = 0


@dataclass(frozen=True)
class Block:
    """Some outer indices, rows in traversal order, and columns, each from the first to before the last."""

    outer: tuple[int, int]
    rows: tuple[int, int]
    columns: tuple[int, int]

    @property
    def shape(self) -> tuple[int, int, int]:
        """How many there are of each."""
        outer, rows, columns = (last - first for first, last in (self.outer, self.rows, self.columns))
        return outer, rows, columns


@dataclass(frozen=True)
class Cube:
    """The shape of an array in a file's order, with the dimensions before and after the axis as one each."""

    outer: int
    length: int
    inner: int

    @property
    def elements(self) -> int:
        """How many there are."""
        return self.outer * self.length * self.inner

    def blocks(self, most: int, place: Place) -> Iterator[Block]:
        """Cut what is left into blocks of about so many elements: whole slices, else whole tiles of slices."""
        outer, column, width, row = place.outer, place.column, place.width, place.row
        slab = self.length * self.inner
        while outer < self.outer:
            if column == row == 0 and slab <= most:
                end = min(self.outer, outer + most // max(slab, 1))
                yield Block((outer, end), (0, self.length), (0, self.inner))
                outer = end
                continue
            if row == 0:
                width = min(self.inner - column, _MOST_COLUMNS, max(1, most // min(self.length, TILE)))
            rows = most // width
            last = self.length if self.length - row <= rows else row + max(rows // TILE, 1) * TILE
            block = Block((outer, outer + 1), (row, min(last, self.length)), (column, column + width))
            yield block
            after = self.after(block)
            outer, column, row = after.outer, after.column, after.row

    def after(self, block: Block) -> Place:
        """Return how far it is done once a block is, which came next."""
        if block.rows[1] < self.length:
            return Place(block.outer[0], block.columns[0], block.shape[2], block.rows[1])
        if block.columns[1] < self.inner:
            return Place(block.outer[0], block.columns[1])
        return Place(block.outer[1])

    def done(self, place: Place) -> int:
        """Return how many elements are done."""
        return (place.outer * self.inner + place.column) * self.length + place.row * place.width

    def is_sequential(self, most: int, reverse: bool) -> bool:
        """Whether the blocks follow each other as their elements do in the file."""
        if self.length * self.inner <= most:
            return True
        return not reverse and min(self.length, TILE) * self.inner <= most and self.inner <= _MOST_COLUMNS

    def runs(self, block: Block, reverse: bool) -> Iterator[tuple[int, int]]:
        """Yield where each part of a block that lies in one piece begins, and its length, in the block's own order."""
        first, last = block.rows
        if reverse:
            first, last = self.length - last, self.length - first
        left, right = block.columns
        if block.shape[1:] == (self.length, self.inner):
            slab = self.length * self.inner
            yield block.outer[0] * slab, block.shape[0] * slab
            return
        for outer in range(*block.outer):
            if (left, right) == (0, self.inner):
                yield (outer * self.length + first) * self.inner, (last - first) * self.inner
            else:
                for row in range(first, last):
                    yield (outer * self.length + row) * self.inner + left, right - left


def block_elements(memory: int, source: np.dtype[Any], result: np.dtype[Any]) -> int:
    """Return how many elements a block may have: five of its inputs and outputs fit into the memory.

    Two are there on the host, of which one is read ahead and one written behind; one on the device; and one in the
    memory that transfers go through. The fifth is for what allocators keep.
    """
    sizes = source.itemsize, result.itemsize
    return max(1, min(memory // (5 * sum(sizes)), _MOST_BYTES // max(sizes)))


def stream(
    source: Path,
    target: Path,
    along: Callable[[tuple[int, ...], np.dtype[Any]], int | None],
    task: Task,
    memory: int,
    resume: bool,
) -> str:
    """Compute an array of a .npy file block by block, and write it to another one.

    Parameters
    ----------
    source, target : Path
        The files; perhaps `STANDARD_INPUT` and `STANDARD_OUTPUT`.
    along : callable
        Returns the axis of an array of a shape and a type; None where elements have nothing to do with each other.
    task : Task
        What to compute.
    memory : int
        The bytes to take at most, on host and device together.
    resume : bool
        Whether to go on with what an earlier process left, and to leave what is done if this one fails.

    Returns
    -------
    str
        The type and shape of the result.
    """
    with ExitStack() as outputs, ExitStack() as opened:  # the input has been looked at once more when the output ends
        file = opened.enter_context(reading(source))
        header = read_header(source, file)
        check_length(source, file, header)
        job = _Job(source, header, along(header.shape, header.dtype), task, memory)
        if source is STANDARD_INPUT and not job.cube.is_sequential(job.most, task.reverse):
            job.open_input(_spooled(opened, source, file, header), 0, waits=True)
        else:
            job.open_input(file, header.offset, waits=source is not STANDARD_INPUT)
        opened.enter_context(writing(target))  # what is read says so itself
        if target is STANDARD_OUTPUT:
            job.run_in_order(outputs.enter_context(standard_output()), waits=False)
            return f"{job.dtype} {job.shape}"
        unfinished = outputs.enter_context(continuing(target, resume=resume))
        keeper = Keeper(job.fingerprint(file), job.end)
        left = keeper.last(target, unfinished, _end_of_elements(target, unfinished)) if resume else None
        place, state = (Place(), b"") if left is None else (Place(**left[0]), left[1])
        unfinished.seek(0)
        job.run(Output(unfinished, job.head), place, state or None, keeper)
        unfinished.truncate(job.end)
    return f"{job.dtype} {job.shape}"


def pass_through(
    source: Path,
    file: IO[bytes],
    header: NpyHeader,
    output: IO[bytes],
    along: Callable[[tuple[int, ...], np.dtype[Any]], int | None],
    task: Task,
    memory: int,
) -> str:
    """Compute an array whose elements can only be read and written one after the other; as `stream`.

    Parameters
    ----------
    source : Path
        What messages call it.
    file : file
        Where the array's elements come next.
    header : NpyHeader
        What came before them.
    output : file
        Where a .npy file is written.
    along, task, memory
        As for `stream`.
    """
    job = _Job(source, header, along(header.shape, header.dtype), task, memory)
    with ExitStack() as opened:
        in_order = job.cube.is_sequential(job.most, task.reverse)
        job.open_input(file if in_order else _spooled(opened, source, file, header), 0, waits=True)
        job.run_in_order(output)
    return f"{job.dtype} {job.shape}"


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Have errors of the system say what cannot be written."""
    try:
        yield
    except OSError as error:
        if target is STANDARD_OUTPUT:
            raise unwritable(error) from error
        raise CommandError(f"cannot write {target}: {error.strerror or error}") from error


@contextmanager
def _spool() -> Iterator[RawFile]:
    """Give a file without a name, for what is not read or written in its order."""
    with ExitStack() as opened:
        try:
            temporary = opened.enter_context(tempfile.TemporaryFile())
        except OSError as error:
            raise _Spool.full(error) from error
        with _Spool(temporary.fileno(), owned=False) as file:
            yield file


class _Spool(RawFile):
    """A file whose errors say what it is."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise self.full(error) from error

    def _piece(self, size: int) -> bytes:
        with trying_to("read", f"a temporary file in {tempfile.gettempdir()}"):
            return super()._piece(size)

    @staticmethod
    def full(error: OSError) -> CommandError:
        return CommandError(
            f"cannot write a temporary file in {tempfile.gettempdir()}: {error.strerror or error}; name another folder "
            "with the environment variable TMPDIR, or give files instead of -"
        )


def _spooled(opened: ExitStack, source: Path, file: RawFile | IO[bytes], header: NpyHeader) -> RawFile:
    """Copy the elements that come next into a file in which one can seek."""
    spool = opened.enter_context(_spool())
    left = header.nbytes
    while left:
        with trying_to("read", source):
            piece = file.read(min(left, AT_ONCE))
        if not piece:
            raise CommandError(f"{source} is damaged or truncated: it ends {counted(left, 'byte')} early")
        spool.write(piece)
        left -= len(piece)
    spool.seek(0)
    return spool


class _Job:
    """One array, block by block."""

    def __init__(self, source: Path, header: NpyHeader, axis: int | None, task: Task, memory: int) -> None:
        self.source, self.header, self.task = source, header, task
        is_fortran = header.is_fortran and sum(size > 1 for size in header.shape) > 1
        shape = header.shape[::-1] if is_fortran else header.shape
        if axis is None:
            self.cube = Cube(header.elements, 1, 1)
        else:
            along = len(shape) - 1 - axis if is_fortran else axis
            self.cube = Cube(math.prod(shape[:along]), shape[along], math.prod(shape[along + 1 :]))
        more = 0 if task.initial is None else 1
        self.results = replace(self.cube, length=self.cube.length + more)
        sizes = list(header.shape)
        if axis is not None:
            sizes[axis] += more
        # Of no element: for the type of the result, and for errors in options.
        self.dtype = task.compute(np.empty((0, 1, 1), header.dtype), 1).dtype
        self.most = block_elements(memory, header.dtype, self.dtype)
        self.shape, self._is_fortran = tuple(sizes), is_fortran
        self.head = _head_bytes(self.dtype, is_fortran, self.shape)
        self.end = len(self.head) + math.prod(sizes) * self.dtype.itemsize
        self._scan: Scan | None = None

    def open_input(self, file: RawFile | IO[bytes], start: int, *, waits: bool) -> None:
        """Say where the elements are, which are next in the file, and whether reading ends by itself."""
        self._file: Any = file
        self._start, self._position, self._waits = start, start, waits

    def fingerprint(self, file: RawFile) -> dict[str, Any]:
        """Return what must be the same for a process that goes on."""
        found: list[int | str] = []
        if self.source is not STANDARD_INPUT:  # with which no process goes on
            with trying_to("read", self.source):
                found = fingerprint(file)
        return {
            "input": [*found, str(self.header.dtype)],
            "output": [str(self.dtype), self._is_fortran, list(self.shape)],
            "options": dict(self.task.options),
        }

    def run_in_order(self, file: RawFile | IO[bytes], *, waits: bool = True) -> None:
        """Compute all blocks, for a file in which one cannot seek."""
        if self.cube.is_sequential(self.most, self.task.reverse):
            self.run(Output(file, self.head, waits=waits), Place(), None)
            return
        with _spool() as spool:
            self.run(Output(spool, self.head), Place(), None)
            spool.seek(0)
            while piece := spool.read(AT_ONCE):
                file.write(piece)

    def run(self, output: Output, place: Place, state: bytes | None, keeper: Keeper | None = None) -> None:
        """Compute all blocks from a place on."""
        if state is not None:
            assert self.task.scan is not None
            self._scan = self.task.scan(state)
        itemsize = self.header.dtype.itemsize
        total, begin = self.cube.elements * itemsize, self.cube.done(place) * itemsize
        if begin:
            note(f"going on after {100 * begin // total} % of {self.source}")
        blocks = ((block, self._read(block)) for block in self.cube.blocks(self.most, place))
        with (
            Progress(total, "byte", begin) as progress,
            reading_ahead(blocks, waits=self._waits) as following,
            writing_behind(partial(self._write, output), waits=output.waits) as write,
        ):
            for block, array in following:
                parts = self._compute(block, array)
                place = self.cube.after(block)
                record = None
                if keeper is not None and keeper.is_due():
                    within = b"" if place.row == 0 or self._scan is None else self._scan.state
                    record = keeper.record(asdict(place), within)
                write((parts, record))
                progress.show(self.cube.done(place) * itemsize, str(self.source))
                del array, parts  # before the wait for the next block

    def _read(self, block: Block) -> NDArray[Any]:
        """Read a block; done by one thread, which alone has the file."""
        array = np.empty(block.shape, self.header.dtype)
        data = array.reshape(-1).view(np.uint8).data
        itemsize, done = array.itemsize, 0
        for first, elements in self.cube.runs(block, self.task.reverse):
            end = done + elements * itemsize
            with trying_to("read", self.source):
                self._read_at(self._start + first * itemsize, data[done:end])
            check_bools(self.source, array.reshape(-1)[done // itemsize : end // itemsize], first)
            done = end
        return array

    def _read_at(self, offset: int, data: memoryview) -> None:
        if offset != self._position:
            self._file.seek(offset)
        if (done := filled(self._file, data)) < len(data):
            raise CommandError(
                f"{self.source} is damaged or truncated: it ends {counted(len(data) - done, 'byte')} early, or more"
            )
        self._position = offset + done

    def _compute(self, block: Block, array: NDArray[Any]) -> list[tuple[Block, NDArray[Any]]]:
        """Return the results that a block settles, and where they belong."""
        if block.rows == (0, self.cube.length):
            return [(replace(block, rows=(0, self.results.length)), self.task.compute(array, 1))]
        parts: list[NDArray[Any]] = []
        more = self.results.length - self.cube.length
        row = block.rows[0] + more
        if block.rows[0] == 0:
            assert self.task.scan is not None
            self._scan = self.task.scan(None)
            if self.task.initial is not None:
                row = 0
                parts.append(np.full((1, 1, block.shape[2]), self.task.initial, self.dtype))
        assert self._scan is not None
        settled = self._scan.push(array)
        assert isinstance(settled, np.ndarray)
        parts.append(settled)
        if block.rows[1] == self.cube.length:
            parts.append(self._scan.finish())
            self._scan = None
        placed = []
        for part in parts:
            placed.append((replace(block, rows=(row, row + part.shape[1])), part))
            row += part.shape[1]
        return placed

    def _write(self, output: Output, results: tuple[list[tuple[Block, NDArray[Any]]], Record | None]) -> None:
        """Write results; done by one thread, which alone has the file."""
        parts, record = results
        for block, part in parts:
            data = np.ascontiguousarray(part).reshape(-1).view(np.uint8).data
            done = 0
            for first, elements in self.results.runs(block, self.task.reverse):
                end = done + elements * part.itemsize
                output.write(first * part.itemsize, data[done:end])
                done = end
        if record is not None:
            output.keep(record)


def _head_bytes(dtype: np.dtype[Any], is_fortran: bool, shape: tuple[int, ...]) -> bytes:
    """Return the header of a .npy file."""
    made = io.BytesIO()
    descr = np.lib.format.dtype_to_descr(dtype)
    np.lib.format.write_array_header_1_0(made, {"descr": descr, "fortran_order": is_fortran, "shape": shape})
    return made.getvalue()


def _end_of_elements(target: Path, file: RawFile) -> int:
    """Return where the elements of an unfinished file end by its header; 0 if it is new, or was not even begun."""
    try:
        header = read_header(target, file)
    except CommandError:
        return 0
    return header.offset + header.nbytes
