"""Copies between arrays of this process, by several threads where they are large.

One core cannot use all of a machine's bandwidth, nor get new pages from the system as fast as two.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
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
    work = _Work(list(_pieces(target, source)))
    try:
        for _ in range(helpers):
            _threads().submit(work.help)
        while (piece := work.take()) is not None:
            np.copyto(*piece)
    finally:
        work.end()


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
    """Pieces that the caller and its helpers take, and who is still at one."""

    def __init__(self, pieces: list[_Piece]) -> None:
        self._pieces = pieces
        self._changed = threading.Condition()
        self._helping = 0
        self._error: BaseException | None = None

    def take(self) -> _Piece | None:
        """Return a piece that nobody has taken yet, or None."""
        with self._changed:
            return self._pieces.pop() if self._pieces else None

    def help(self) -> None:
        """Copy pieces in another thread until none are left."""
        with self._changed:
            self._helping += 1
        try:
            while (piece := self.take()) is not None:
                np.copyto(*piece)
        except BaseException as error:
            self._error = error
        finally:
            with self._changed:
                self._helping -= 1
                self._changed.notify_all()

    def end(self) -> None:
        """Wait until no helper is at work; Ctrl-C takes effect after that."""
        interruption: BaseException | None = None
        while True:
            try:
                with self._changed:
                    self._pieces.clear()
                    self._changed.wait_for(lambda: self._helping == 0)
                break
            except BaseException as error:
                interruption = error
        if interruption is not None:
            raise interruption
        if self._error is not None:
            raise self._error
