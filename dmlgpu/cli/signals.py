"""Signals that end a process: unfinished files are removed before."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

__all__ = ["SIGNALS", "die_of", "raise_interrupt", "removed_by_signals"]

_SIGNAL_NAMES = (
    *("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGXCPU", "SIGPOLL"),
    *("SIGUSR1", "SIGUSR2", "SIGBREAK"),
)
SIGNALS = tuple(getattr(signal, name) for name in _SIGNAL_NAMES if hasattr(signal, name))
"""The signals that end a process by default, without those that report a broken program."""

_unfinished_names: set[str] = set()
_interrupted: set[str] = set()
"""Those whose removal an interrupt began."""


@contextmanager
def removed_by_signals(name: str) -> Iterator[None]:
    """Remove a file if a signal ends the process while the context lasts.

    Outside the context signals do what they always did: a driver that hangs can be ended. A signal that is ignored, as
    under nohup, stays ignored.

    Parameters
    ----------
    name : str
        The file, which need not exist yet.
    """
    previous: dict[int, Any] = {}
    _unfinished_names.add(name)
    try:
        if threading.current_thread() is threading.main_thread():  # no other may say what signals do
            for number in SIGNALS:
                if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                    previous[number] = signal.signal(number, _end)
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        _unfinished_names.discard(name)
        if name in _interrupted:
            _interrupted.discard(name)
            raise KeyboardInterrupt


def _end(number: int, frame: FrameType | None) -> None:
    for other in SIGNALS:  # one is enough
        if signal.getsignal(other) is _end:
            signal.signal(other, _nothing)  # not SIG_IGN: of one that has come already Python would print that
    # The handler removes the files itself: an exception alone could come where nothing catches it.
    for name in list(_unfinished_names):
        with suppress(OSError):
            os.unlink(name)
    # Windows lets no process end by a signal, and removes no file that is open: there the context that has it does.
    if number == signal.SIGINT or os.name != "posix":
        _interrupted.update(_unfinished_names)
        raise KeyboardInterrupt
    die_of(number)


def raise_interrupt() -> None:
    """Raise KeyboardInterrupt again if it came before: C code that calls Python may lose exceptions of signals."""
    if _interrupted:
        raise KeyboardInterrupt


def _nothing(number: int, frame: FrameType | None) -> None:
    pass


def die_of(number: int) -> None:
    """End the process by a signal, so that a shell knows why it ended; does nothing on Windows."""
    if os.name == "posix":
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
