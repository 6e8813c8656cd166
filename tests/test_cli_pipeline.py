"""Reading ahead and writing behind: what goes on at the same time, and where errors appear. Without a device."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlgpu.cli.console import CommandError
from dmlgpu.cli.pipeline import reading_ahead, writing_behind
from dmlgpu.cli.signals import raise_interrupt, removed_by_signals
from dmlgpu.cli.stream import Task
from dmlgpu.cli.table_stream import Place, Sink, stream_table

LONG = 60.0
"""Seconds after which something does not come any more."""


def threads() -> list[str]:
    """Return the names of the threads that read and write."""
    return [thread.name for thread in threading.enumerate() if thread.name in ("dmlgpu-reader", "dmlgpu-writer")]


def test_the_next_block_is_read_while_one_is_used() -> None:
    read = [threading.Event() for _ in range(4)]

    def blocks() -> Iterator[int]:
        for i, event in enumerate(read):
            event.set()
            yield i

    with reading_ahead(blocks()) as following:
        seen = []
        for i in following:
            assert all(event.wait(LONG) for event in read[: i + 2])
            assert not any(event.is_set() for event in read[i + 2 :])
            seen.append(i)
    assert seen == [0, 1, 2, 3]
    assert threads() == []


def test_one_block_is_written_while_the_next_one_is_made() -> None:
    may_write, written = threading.Event(), []

    def write(block: int) -> None:
        assert may_write.wait(LONG)
        written.append((block, threading.current_thread().name))

    with writing_behind(write) as put:
        put(0)  # returns before it is written
        assert written == []
        may_write.set()
        put(1)
        assert written[0] == (0, "dmlgpu-writer")
    assert [block for block, _ in written] == [0, 1]
    assert threads() == []


def test_an_error_of_reading_comes_in_its_turn() -> None:
    def blocks() -> Iterator[int]:
        yield 0
        raise CommandError("no more")

    seen = []

    def use() -> None:
        with reading_ahead(blocks()) as following:
            for block in following:
                seen.append(block)

    with pytest.raises(CommandError, match="no more"):
        use()
    assert seen == [0]
    assert threads() == []


@pytest.mark.parametrize("last", [False, True])
def test_an_error_of_writing_comes_with_the_next_block_or_at_the_end(last: bool) -> None:
    def write(block: int) -> None:
        if block == 1:
            raise OSError(28, "No space left on device")

    reached = []

    def use() -> None:
        with writing_behind(write) as put:
            for block in range(2 if last else 9):
                put(block)
                reached.append(block)

    with pytest.raises(OSError, match="No space left"):
        use()
    assert reached == [0, 1]
    assert threads() == []


@pytest.mark.parametrize("waits", [False, True])
def test_what_never_ends_is_not_waited_for(waits: bool) -> None:
    """As reading from a pipe does not; what is being read from a disk is read first."""
    goes_on, began, ended = threading.Event(), threading.Event(), []

    def blocks() -> Iterator[int]:
        yield 0
        began.set()
        assert goes_on.wait(LONG)
        ended.append(True)
        yield 1

    def use() -> None:
        with reading_ahead(blocks(), waits=waits) as following:
            assert next(following) == 0
            assert began.wait(LONG)
            if waits:
                goes_on.set()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        use()
    assert ended == [True] * waits
    goes_on.set()
    for thread in threading.enumerate():
        if thread.name == "dmlgpu-reader":
            thread.join(LONG)
    assert threads() == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals")
@pytest.mark.parametrize("blocks", [0, 9])
def test_an_interrupt_that_is_lost_comes_again(tmp_path: Path, blocks: int) -> None:
    """With the next block, or where the file would be complete."""
    seen, lost = [], []

    def use() -> None:
        with removed_by_signals(str(tmp_path / "x")), reading_ahead(iter(range(blocks))) as following:
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt as error:  # as C code does
                lost.append(error)
            seen.extend(following)

    with pytest.raises(KeyboardInterrupt) as raised:
        use()
    assert len(lost) == 1
    assert raised.value is not lost[0]
    assert seen == []
    raise_interrupt()  # it was raised, and that is all
    assert threads() == []


class Rows:
    """A table of three blocks of one row, which is read, computed and written at the same time or not at all."""

    path, size, rows, columns = Path("x.csv"), 24, 3, 1
    numbers: Mapping[int, np.dtype[Any]] = {0: np.dtype(np.float64)}

    def __init__(self) -> None:
        self.read, self.computed = ([threading.Event() for _ in range(3)] for _ in range(2))
        self.written: list[float] = []

    def blocks(self, place: Place) -> Iterator[tuple[Place, Sequence[Any]]]:
        for i in range(3):
            self.read[i].set()
            yield Place(rows=i), [np.array([float(i)])]

    def compute(self, array: np.ndarray, axis: int | None) -> np.ndarray:
        if array.size:
            i = int(array.item())
            assert self.read[min(i + 1, 2)].wait(LONG)
            self.computed[i].set()
        return array

    @contextmanager
    def writer(self, file: Sink, types: Mapping[int, np.dtype[Any]], *, head: bool, identity: bool) -> Iterator[Any]:
        def write(columns: Sequence[Any]) -> None:
            i = int(columns[0].item())
            assert self.computed[min(i + 1, 2)].wait(LONG)
            self.written.append(i)

        yield write


def test_a_table_is_read_computed_and_written_at_the_same_time(tmp_path: Path) -> None:
    """Each block is computed only once the next one is read, and written only once the next one is computed."""
    table = Rows()
    task = Task(table.compute, None, False, None, {})
    assert stream_table(nullcontext(table), tmp_path / "y.csv", task) == "3 rows of 1 column"
    assert table.written == [0, 1, 2]
    assert threads() == []
