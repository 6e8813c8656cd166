"""The process that tries alterations: apart, because an altered shader may hang or end it."""

from __future__ import annotations

import tempfile
import traceback
import warnings
from dataclasses import astuple
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType

from .alterations import Alteration
from .bench import Bench, Outcome

__all__ = ["Worker"]

_SECONDS = 60.0
"""A trial that takes longer hangs; none takes a second with the shaders as they are."""


def serve(connection: Connection, patience: float) -> None:
    """Answer each alteration with its outcome, and say before each trial that it is alive."""
    warnings.simplefilter("ignore")
    from dmlgpu.runtime.device import default_device

    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(default_device(), Path(folder) / "wgsl", patience=patience)
        connection.send(bench.device.summary)
        while (alteration := connection.recv()) is not None:
            try:
                connection.send(astuple(bench.try_out(alteration, lambda: connection.send(None))))
            except Exception:  # whatever it is, whoever waits must not take it for the alteration's doing
                connection.send(traceback.format_exc())


class Worker:
    """A process that tries alterations, started anew when one of them ends it.

    Attributes
    ----------
    device : str
        The summary of its adapter.
    patience : float
        The bench's.
    """

    def __init__(self, patience: float = 1.0) -> None:
        self.patience = patience
        self._start()

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def try_out(self, alteration: Alteration) -> Outcome:
        """Return what comes of an alteration: as the bench says, or "timed out", or "ended the process".

        Raises
        ------
        RuntimeError
            If the bench itself fails.
        """
        self._connection.send(alteration)
        while True:
            state = "timed out"
            try:
                if self._connection.poll(_SECONDS):
                    answer = self._connection.recv()
                    if isinstance(answer, str):
                        raise RuntimeError(f"{alteration} cannot be tried: {answer}")
                    if answer is not None:
                        return Outcome(*answer)
                    continue
            except (EOFError, ConnectionResetError):
                state = "ended the process"
            self._stop()
            self._start()
            return Outcome(state, "", _SECONDS)

    def _start(self) -> None:
        context = get_context("spawn")  # a GPU does not survive a fork
        self._connection, other = context.Pipe()
        self._process = context.Process(target=serve, args=(other, self.patience), daemon=True)
        self._process.start()
        other.close()
        self.device: str = self._connection.recv()

    def _stop(self) -> None:
        self._process.kill()
        self._process.join()
        self._connection.close()
