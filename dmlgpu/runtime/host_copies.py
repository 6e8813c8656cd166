"""Copies between arrays of this process, by several threads where they are large.

One core cannot use all of a machine's bandwidth, nor get new pages from the system as fast as two.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cores import usable_cores

__all__ = ["copy_array"]

_PIECE_BYTES = 4 * 2**20
"""What a thread copies at a time: starting one costs as much as copying a tenth of this."""
_MAX_THREADS = 4
"""As many use the bandwidth of any usual machine."""

_Piece = tuple[NDArray[Any], NDArray[Any]]


def copy_array(target: NDArray[Any], source: NDArray[Any]) -> None:
    """Copy the elements of `source` to `target`, an array of the same shape and type in other memory.

    When this returns or raises, nobody reads or writes the arrays any more: their memory may be unmapped then.
    """
    helpers = min(_MAX_THREADS, usable_cores(), source.nbytes // _PIECE_BYTES) - 1
    if helpers < 1:
        np.copyto(target, source)
        return
    work = _Work(_pieces(target, source))
    interruption: BaseException | None = None
    try:
        work.call_helpers(helpers)
        work.do()
    finally:
        # Not a call: Ctrl-C may take effect where a function begins, and here nothing must come between.
        while True:
            try:
                work.pieces.clear()
                while work.helping:
                    work.done.get()
                break
            except BaseException as error:
                interruption = error
        if interruption is not None:
            raise interruption
    if work.error is not None:
        raise work.error


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MAX_THREADS - 1, thread_name_prefix="dmlgpu-copy")


def _pieces(target: NDArray[Any], source: NDArray[Any]) -> Iterator[_Piece]:
    """Yield parts of the arrays of some `_PIECE_BYTES` each."""
    if target.flags.c_contiguous and source.flags.c_contiguous:
        target, source = target.reshape(-1), source.reshape(-1)
    axis = max(range(target.ndim), key=lambda n: abs(target.strides[n]) if target.shape[n] > 1 else 0)
    target, source = np.moveaxis(target, axis, 0), np.moveaxis(source, axis, 0)
    step = max(1, len(target) * _PIECE_BYTES // target.nbytes)
    for start in range(0, len(target), step):
        yield target[start : start + step], source[start : start + step]


class _Work:
    """Pieces that the caller and its helpers take, and who is still at one.

    There is no lock that an interruption could leave taken: a helper says that it is at work, then looks for a piece;
    the caller takes the pieces away, then waits while someone is at work.
    """

    def __init__(self, pieces: Iterable[_Piece]) -> None:
        self.pieces = deque(pieces)
        self.helping: list[object] = []
        self.done: SimpleQueue[None] = SimpleQueue()
        self.error: BaseException | None = None

    def call_helpers(self, count: int) -> None:
        """Have other threads help: none, where the process ends, or may have no more of them."""
        try:
            for _ in range(count):
                _threads().submit(self.help)
        except RuntimeError:
            return

    def do(self) -> None:
        """Copy pieces until none are left."""
        while True:
            try:
                piece = self.pieces.popleft()
            except IndexError:
                return
            np.copyto(*piece)

    def help(self) -> None:
        """Do so in another thread."""
        token = object()
        self.helping.append(token)
        try:
            self.do()
        except BaseException as error:
            self.error = error
        finally:
            self.helping.remove(token)
            self.done.put(None)
