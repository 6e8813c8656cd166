"""Arrays larger than memory: blocks of a .npy file are read, computed and written at the same time."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.pieces import Scan
from ..planning.windows import TILE
from .console import CommandError, Progress, count, note, unwritable
from .npy_files import NpyHeader, check_bools, check_length, read_header
from .pipeline import reading_ahead, writing_behind
from .raw_files import AT_ONCE, STANDARD, RawFile, filled, flush_file, reading, standard_output, trying_to
from .replacement import continuing

__all__ = ["Block", "Cube", "Place", "Task", "block_elements", "pass_through", "stream", "writing"]

CHECKPOINT_SECONDS = 5.0
"""Between two records of how far the result is safely written."""

_MOST_COLUMNS = 1 << 15
"""Slices whose pieces are scanned together at most, so that their state fits into a record."""
_MOST_BYTES = 1 << 28
"""Of a block: larger ones gain nothing."""
_SLOT = 1 << 22
"""Bytes from a record to the other one, behind the elements of the unfinished file."""
_MAGIC = b"dmlgpu records 1"
_DIGEST_BYTES = 32


@dataclass(frozen=True)
class Task:
    """What becomes of an array.

    Attributes
    ----------
    compute : callable
        Does it to an array that has whole slices along an axis, or None for all of its elements as they are.
    scan : callable
        Returns a scan that takes slices in pieces, from its state if it goes on.
    reverse : bool
        Whether it goes from the end of the axis.
    initial : int, optional
        What is put before the first result in traversal order.
    options : mapping
        All on which the result depends but the input.
    """

    compute: Callable[[NDArray[Any], int | None], NDArray[Any]]
    scan: Callable[[bytes | None], Scan]
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
    """Return how many elements a block may have: four of its inputs and outputs are there, on host and device."""
    sizes = source.itemsize, result.itemsize
    return max(1, min(memory // (4 * sum(sizes)), _MOST_BYTES // max(sizes)))


def stream(
    source: Path,
    target: Path,
    along: Callable[[tuple[int, ...]], int | None],
    task: Task,
    memory: int,
    resume: bool,
) -> str:
    """Compute an array of a .npy file block by block, and write it to another one.

    Parameters
    ----------
    source, target : Path
        The files; `STANDARD` is standard input or output.
    along : callable
        Returns the axis of an array of a shape; None where elements have nothing to do with each other.
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
        job = _Job(source, header, along(header.shape), task, memory)
        if source == STANDARD and not job.cube.is_sequential(job.most, task.reverse):
            job.open_input(_spooled(opened, source, file, header), 0, waits=True)
        else:
            job.open_input(file, header.offset, waits=source != STANDARD)
        opened.enter_context(writing(target))  # what is read says so itself
        if target == STANDARD:
            output = outputs.enter_context(standard_output())
            if job.cube.is_sequential(job.most, task.reverse):
                job.run(_Output(output, job.head, waits=False), Place(), None)
            else:
                spool = opened.enter_context(_spool())
                job.run(_Output(spool, job.head), Place(), None)
                _copy(spool, output)
            return f"{job.dtype} {job.shape}"
        unfinished = outputs.enter_context(continuing(target, resume=resume))
        keeper = _Keeper(job.fingerprint(file))
        place, state = keeper.last(target, unfinished) if resume else (Place(), None)
        unfinished.seek(0)
        job.run(_Output(unfinished, job.head), place, state, keeper)
        unfinished.truncate(job.end)
    return f"{job.dtype} {job.shape}"


def pass_through(
    source: Path,
    file: IO[bytes],
    header: NpyHeader,
    output: IO[bytes],
    along: Callable[[tuple[int, ...]], int | None],
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
    job = _Job(source, header, along(header.shape), task, memory)
    with ExitStack() as opened:
        if job.cube.is_sequential(job.most, task.reverse):
            job.open_input(file, 0, waits=True)
            job.run(_Output(output, job.head), Place(), None)
        else:
            job.open_input(_spooled(opened, source, file, header), 0, waits=True)
            spool = opened.enter_context(_spool())
            job.run(_Output(spool, job.head), Place(), None)
            _copy(spool, output)
    return f"{job.dtype} {job.shape}"


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Have errors of the system say what cannot be written."""
    try:
        yield
    except OSError as error:
        if target == STANDARD:
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
            raise CommandError(f"{source} is damaged or truncated: it ends {count(left, 'byte')} early")
        spool.write(piece)
        left -= len(piece)
    spool.seek(0)
    return spool


def _copy(spool: RawFile, output: RawFile | IO[bytes]) -> None:
    spool.seek(0)
    while piece := spool.read(AT_ONCE):
        output.write(piece)


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
        self.head = {
            "descr": np.lib.format.dtype_to_descr(self.dtype),
            "fortran_order": is_fortran,
            "shape": tuple(sizes),
        }
        self.shape = tuple(sizes)
        self.end = len(_head_bytes(self.head)) + math.prod(sizes) * self.dtype.itemsize
        self._scan: Scan | None = None

    def open_input(self, file: RawFile | IO[bytes], start: int, *, waits: bool) -> None:
        """Say where the elements are, which are next in the file, and whether reading ends by itself."""
        self._file: Any = file
        self._start, self._position, self._waits = start, start, waits

    def fingerprint(self, file: RawFile) -> dict[str, Any]:
        """Return what must be the same for a process that goes on."""
        status = os.fstat(file.fileno())
        return {
            "input": [status.st_size, status.st_mtime_ns, str(self.header.dtype)],
            "output": [str(self.dtype), self.head["fortran_order"], list(self.shape)],
            "options": dict(self.task.options),
        }

    def run(self, output: _Output, place: Place, state: bytes | None, keeper: _Keeper | None = None) -> None:
        """Compute all blocks from a place on."""
        if state is not None:
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
                write((parts, None if keeper is None else keeper.record(self.end, place, self._scan)))
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
                f"{self.source} is damaged or truncated: it ends {count(len(data) - done, 'byte')} early, or more"
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

    def _write(self, output: _Output, results: tuple[list[tuple[Block, NDArray[Any]]], _Record | None]) -> None:
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


@dataclass(frozen=True)
class _Record:
    """How far a result is done, and where that is written."""

    offset: int
    content: bytes


class _Keeper:
    """Makes records of how far a result is done, behind its elements in the unfinished file, and finds the last one.

    A record is written once all that it tells of is on the disk, and never over the one before it.

    Parameters
    ----------
    fingerprint : mapping
        What must be the same for a process that goes on.
    """

    def __init__(self, fingerprint: Mapping[str, Any]) -> None:
        self._fingerprint = json.loads(json.dumps(fingerprint))
        self._number = 0
        self._next = time.monotonic() + CHECKPOINT_SECONDS

    def record(self, end: int, place: Place, scan: Scan | None) -> _Record | None:
        """Return a record for a file whose elements end there, if it is time for one."""
        if time.monotonic() < self._next:
            return None
        self._next = time.monotonic() + CHECKPOINT_SECONDS
        self._number += 1
        state = b"" if place.row == 0 or scan is None else scan.state
        told = {"number": self._number, "place": asdict(place), "state": len(state), **self._fingerprint}
        body = json.dumps(told).encode() + b"\n" + state
        content = _MAGIC + len(body).to_bytes(8, "little") + body
        assert len(content) + _DIGEST_BYTES <= _SLOT
        return _Record(end + self._number % 2 * _SLOT, content + hashlib.sha256(content).digest())

    def last(self, target: Path, file: RawFile) -> tuple[Place, bytes | None]:
        """Return how far an unfinished file is done, and the state of the scan of what is not; the beginning if new.

        Raises
        ------
        CommandError
            If it is of another input or of other options.
        """
        try:
            header = read_header(target, file)
        except CommandError:  # it is new, or was not even begun
            return Place(), None
        found = []
        for slot in range(2):
            file.seek(header.offset + header.nbytes + slot * _SLOT)
            found += _unpacked(file)
        if not found:
            return Place(), None
        told, state = max(found, key=lambda one: int(one[0]["number"]))
        self._check(target, told)
        self._number = told["number"]
        return Place(**told["place"]), state or None

    def _check(self, target: Path, told: Mapping[str, Any]) -> None:
        for name, value in self._fingerprint["options"].items():
            before = told["options"].get(name)
            if before != value:
                raise CommandError(
                    f"--resume cannot go on with {target}: what is there of it was made with {name} {before}, and this "
                    f"run has {name} {value}; give the same options, or leave --resume out to start again"
                )
        if told["input"] != self._fingerprint["input"] or told["output"] != self._fingerprint["output"]:
            raise CommandError(
                f"--resume cannot go on with {target}: its input has changed since; leave --resume out to start again"
            )


def _unpacked(file: RawFile) -> list[tuple[dict[str, Any], bytes]]:
    """Return the record at a file's position, or none."""
    content = bytearray(_SLOT)
    filled(file, memoryview(content))
    head = len(_MAGIC) + 8
    end = head + int.from_bytes(content[len(_MAGIC) : head], "little")
    digest = bytes(content[end : end + _DIGEST_BYTES])
    if not content.startswith(_MAGIC) or hashlib.sha256(content[:end]).digest() != digest:
        return []
    told, _, state = bytes(content[head:end]).partition(b"\n")
    return [(json.loads(told), state)]


def _head_bytes(head: Mapping[str, Any]) -> bytes:
    """Return the header of a .npy file."""
    made = io.BytesIO()
    np.lib.format.write_array_header_1_0(made, dict(head))
    return made.getvalue()


class _Output:
    """A .npy file that is written, in any order if one can seek in it.

    Parameters
    ----------
    file : file
        Where the header is written now.
    head : mapping
        What the header says.
    waits : bool, optional
        Whether what is being written ends by itself, as on a disk, and not as in a pipe.
    """

    def __init__(self, file: Any, head: Mapping[str, Any], *, waits: bool = True) -> None:
        self.waits = waits
        content = _head_bytes(head)
        file.write(content)
        self._file, self._start, self._position = file, len(content), len(content)

    def write(self, offset: int, data: memoryview) -> None:
        """Write bytes of elements at their place."""
        if self._start + offset != self._position:
            self._file.seek(self._start + offset)
        self._file.write(data)
        self._position = self._start + offset + len(data)

    def keep(self, record: _Record) -> None:
        """Have all that was written on the disk, and then a record of it."""
        flush_file(self._file)
        self._position = -1
        with suppress(OSError):  # as where the disk has room for the result, and for nothing else
            self._file.seek(record.offset)
            self._file.write(record.content)
        flush_file(self._file)
