"""The process that tries alterations: apart, because an altered shader may hang or end it."""

from __future__ import annotations

import tempfile
import threading
import time
import traceback
import warnings
from dataclasses import astuple, dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType

from .alterations import Alteration
from .bench import Bench, Outcome

__all__ = ["Worker"]

_SECONDS = 60.0
"""Of processor time, of all threads: a trial that takes more hangs; none takes a second with the shaders as they are.
What else the machine has to do does not count."""
_LONGEST_SILENCE = 600.0
"""Seconds by the clock without a word from the process: it is stopped, which is no alteration's doing."""


@dataclass(frozen=True)
class Progress:
    """The processor time of the process so far, and whether a trial begins."""

    seconds: float
    begins: bool


@dataclass
class Watch:
    """How much processor time a trial has taken."""

    begun: float | None = None

    def is_over(self, progress: Progress) -> bool:
        """Whether the trial has taken so much that it hangs."""
        if progress.begins or self.begun is None:
            self.begun = progress.seconds
        return progress.seconds - self.begun > _SECONDS


def serve(connection: Connection, patience: float) -> None:
    """Answer each alteration with its outcome, and say each second, and before each trial, how far it is."""
    warnings.simplefilter("ignore")
    from dmlgpu.runtime.device import default_device

    lock = threading.Lock()

    def send(answer: object) -> None:
        with lock:
            connection.send(answer)

    def tell() -> None:
        while True:
            time.sleep(1)
            send(Progress(time.process_time(), begins=False))

    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(default_device(), Path(folder) / "wgsl", patience=patience)
        send(bench.device.summary)
        threading.Thread(target=tell, daemon=True).start()
        while (alteration := connection.recv()) is not None:
            try:
                outcome = bench.try_out(alteration, lambda: send(Progress(time.process_time(), begins=True)))
                send(astuple(outcome))
            except Exception:  # whatever it is, whoever waits must not take it for the alteration's doing
                send(traceback.format_exc())


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
            If the bench itself fails, or stands still.
        """
        self._connection.send(alteration)
        watch = Watch()
        while True:
            state = "timed out"
            try:
                if not self._connection.poll(_LONGEST_SILENCE):
                    raise RuntimeError(f"{alteration} cannot be tried: the process says nothing")
                answer = self._connection.recv()
                if isinstance(answer, str):
                    raise RuntimeError(f"{alteration} cannot be tried: {answer}")
                if not isinstance(answer, Progress):
                    return Outcome(*answer)
                if not watch.is_over(answer):
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
