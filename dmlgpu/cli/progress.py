"""A progress bar on standard error, where that is a terminal."""

from __future__ import annotations

import shutil
import sys
import time
from types import TracebackType

__all__ = ["Progress"]

_WIDTH = 30
_SECONDS = 0.1


class Progress:
    """A bar that shows how much is done, and disappears at the end.

    Parameters
    ----------
    total : int
        The steps until the end.
    """

    def __init__(self, total: int) -> None:
        self._total = max(total, 1)
        self._shown = sys.stderr.isatty()
        self._next = 0.0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

    def clear(self) -> None:
        """Make room for a line of output; the next `show` brings the bar back."""
        self._write("\r\x1b[K")
        self._next = 0.0

    def show(self, done: int, what: str) -> None:
        """Show how many steps are done, and what comes next."""
        if self._shown and time.monotonic() >= self._next:
            self._next = time.monotonic() + _SECONDS
            filled = _WIDTH * done // self._total
            bar = "#" * filled + "-" * (_WIDTH - filled)
            line = f"[{bar}] {done} of {self._total}  {what}"
            self._write(f"\r{line[: shutil.get_terminal_size().columns - 1]}\x1b[K")  # a line that wraps would stay

    def _write(self, text: str) -> None:
        if self._shown:
            sys.stderr.write(text)
            sys.stderr.flush()
