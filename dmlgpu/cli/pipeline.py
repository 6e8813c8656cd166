"""Blocks of data are read, computed and written at the same time: one is read ahead, and one is written behind."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TypeVar

from ..waiting import outcome
from .signals import raise_interrupt

__all__ = ["reading_ahead", "writing_behind"]

_T = TypeVar("_T")


@contextmanager
def reading_ahead(blocks: Iterator[_T], *, waits: bool = True) -> Iterator[Iterator[_T]]:
    """Give what an iterator gives, of which a thread makes the next one meanwhile.

    Parameters
    ----------
    blocks : iterator
        Reads a block for each that is taken; only the thread uses it.
    waits : bool, optional
        Whether reading ends by itself, as from a disk; a pipe may keep it for ever.
    """
    with _Worker("dmlgpu-reader", waits=waits) as worker:
        yield _ahead(worker, blocks)


def _ahead(worker: _Worker, blocks: Iterator[_T]) -> Iterator[_T]:
    read = worker.submit(next, blocks, None)
    while (block := outcome(read)) is not None:
        raise_interrupt()  # nobody waits for the last block
        read = worker.submit(next, blocks, None)
        yield block
        del block  # before the wait for the next one


@contextmanager
def writing_behind(write: Callable[[_T], None], *, waits: bool = True) -> Iterator[Callable[[_T], None]]:
    """Give a function that has a thread write a block, and returns once the one before is written.

    Its errors are those of earlier blocks; the end of the context has those of the last one.

    Parameters
    ----------
    write : callable
        Writes a block; only the thread calls it.
    waits : bool, optional
        Whether writing ends by itself, as to a disk, and not as to a pipe.
    """
    written: Future[None] | None = None

    def put(block: _T) -> None:
        nonlocal written
        if written is not None:
            outcome(written)
        written = worker.submit(write, block)

    with _Worker("dmlgpu-writer", waits=waits) as worker:
        yield put
        if written is not None:
            outcome(written)


class _Worker:
    """A thread that does one task after the other.

    Parameters
    ----------
    name : str
        The thread's.
    waits : bool
        Whether to wait for its task at the end of a context that fails.
    """

    def __init__(self, name: str, *, waits: bool) -> None:
        self._waits = waits
        self._tasks: queue.SimpleQueue[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]] | None] = (
            queue.SimpleQueue()
        )
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def __enter__(self) -> _Worker:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tasks.put(None)
        if kind is None or self._waits:
            self._thread.join()

    def submit(self, do: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Have something done, and return its outcome."""
        future: Future[Any] = Future()
        self._tasks.put((future, do, arguments))
        return future

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, do, arguments = task
            try:
                future.set_result(do(*arguments))
            except BaseException as error:
                future.set_exception(error)
            del task, future, do, arguments  # a block is freed before the next one comes
