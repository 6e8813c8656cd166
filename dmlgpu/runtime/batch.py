"""Several runs, one submission."""

from __future__ import annotations

from types import TracebackType

from .executor import Executor
from .lifetime import Lifetime, Use

__all__ = ["Batch"]


class Batch(Use):
    """Uses a device, and lets what runs meanwhile wait until bytes are read or written, or until the end.

    After an error, what was not submitted is dropped. Batches don't nest.
    """

    __slots__ = ("_executor",)

    def __init__(self, lifetime: Lifetime, executor: Executor) -> None:
        super().__init__(lifetime)
        self._executor = executor

    def __enter__(self) -> None:
        super().__enter__()
        self._executor.begin_batch()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._executor.end_batch(drop=kind is not None)
        except BaseException as late:
            super().__exit__(type(late), late, late.__traceback__)
            raise
        super().__exit__(kind, error, trace)
