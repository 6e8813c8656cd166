"""Waiting for what other threads and processes do, in a way that Ctrl-C ends on every system.

Python before 3.14 on Windows notices Ctrl-C only once a wait of the main thread is over, so none lasts for long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TypeVar

from .sections import TICK

__all__ = ["as_they_end", "outcome"]

_T = TypeVar("_T")


def outcome(future: Future[_T]) -> _T:
    """Wait for a future, and return what came of it or raise its error."""
    for _ in as_they_end([future]):
        pass
    return future.result()


def as_they_end(futures: Iterable[Future[_T]]) -> Iterator[Future[_T]]:
    """Yield futures as they end. Nothing takes longer for it: a wait is over once one of them ends."""
    pending = set(futures)
    while pending:
        done, pending = wait(pending, TICK, FIRST_COMPLETED)
        yield from done
