"""Critical sections: one thread at a time is in them, and no signal interrupts them half-way.

Ctrl-C raises `KeyboardInterrupt` between any two instructions of the main thread. In a section it waits: signals that
Python handles are noted, and their handlers run at the section's end, or where `let_interrupts_through` is called
because everything can be undone there. So nothing in a section has to be written with interrupts in mind.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from threading import get_ident
from types import FrameType
from typing import Any

__all__ = ["TICK", "Section", "let_interrupts_through"]

TICK = 0.05
"""Seconds between two looks of a waiting thread for interrupts, and for whether what it waits for can still come."""

_SIGNALS = tuple(
    int(getattr(signal, name))
    for name in ("SIGINT", "SIGBREAK", "SIGTERM", "SIGHUP", "SIGALRM")
    if hasattr(signal, name)
)
"""Signals whose handlers raise exceptions. SIGINT is the first to be deferred and the last to be let go."""
_RELEASED = _SIGNALS[::-1]

try:  # these are quicker than those of signal, which spend microseconds on turning numbers into enumerations
    from _signal import getsignal as _getsignal  # type: ignore[import-not-found]
    from _signal import signal as _set_signal
except ImportError:
    _getsignal, _set_signal = signal.getsignal, signal.signal

# All of these belong to the main thread, the only one in which Python runs signal handlers.
_main = threading.main_thread().ident
_depth = 0
_noted: list[int] = []
_handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}


def _note(signum: int, _frame: FrameType | None) -> None:
    """Stand in for a signal's handler during a section."""
    _noted.append(signum)


def _defer() -> None:
    _noted.clear()
    for signum in _SIGNALS:
        handler = _getsignal(signum)
        if callable(handler) and handler is not _note:
            _handlers[signum] = handler
            _set_signal(signum, _note)


def _restore() -> None:
    for signum in _RELEASED:
        if _getsignal(signum) is _note:
            _set_signal(signum, _handlers[signum])


def _resume() -> None:
    global _depth
    if get_ident() == _main:
        _depth -= 1
        if not _depth:
            _restore()
            if _noted:
                _call_handlers()


def _call_handlers() -> None:
    """Run the handlers of the signals that were noted, all of them even if one raises an exception."""
    signum = _noted.pop(0)
    while signum in _noted:
        _noted.remove(signum)
    try:
        _handlers[signum](signum, sys._getframe(1))
    finally:
        if _noted:
            _call_handlers()


def let_interrupts_through() -> None:
    """Run the handlers that wait. To be called in sections, where an exception leaves nothing half done."""
    if _noted and get_ident() == _main:
        _call_handlers()


class Section:
    """A re-entrant context that one thread is in at a time, and that no signal interrupts.

    Waiting for another thread to leave it can be interrupted.

    Attributes
    ----------
    lock : threading.RLock
        Held in the section. A thread that holds it outside a section keeps others out, and can be interrupted.
    """

    __slots__ = ("__weakref__", "lock")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        _sections.add(self)

    def __enter__(self) -> None:
        global _depth
        if get_ident() == _main:
            if not _depth:
                _defer()
            _depth += 1
        if not self.lock.acquire(False):
            try:
                while not self.lock.acquire(timeout=TICK):
                    let_interrupts_through()
            except BaseException:
                _resume()
                raise

    def __exit__(self, *exc_info: object) -> None:
        self.lock.release()
        _resume()


_sections: weakref.WeakSet[Section] = weakref.WeakSet()


def _renew() -> None:
    """Make a forked child's sections those of its only thread: others of its parent may have been in them."""
    global _main, _depth
    for section in list(_sections):
        if not section.lock._is_owned():  # type: ignore[attr-defined]
            section.lock = threading.RLock()
    if get_ident() != _main:
        _main, _depth = get_ident(), 0
        with suppress(ValueError):
            _restore()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
