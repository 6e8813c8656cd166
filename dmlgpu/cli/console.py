"""Messages, tables and progress of the command line, and the standard streams they go to.

On terminals rich lays out tables and progress bars, if it is installed; all else is plain lines.
"""

from __future__ import annotations

import errno
import io
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO, Any

from ..errors import DmlGpuError, counted

__all__ = [
    "GAP",
    "CommandError",
    "Progress",
    "ReaderGoneError",
    "columns",
    "complain",
    "flush",
    "is_of_threads",
    "note",
    "one_line",
    "open_streams",
    "say",
    "silence",
    "unwritable",
    "warn",
]

_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f]")  # all but the line feed

GAP = 2
"""Spaces between columns."""
_BAR_SECONDS = 0.1
_LINE_SECONDS = 30.0
_WORTH_SAYING = 20
"""The fewest steps of which a line tells at once that they have begun."""

_LONGEST = 2000
"""The most characters of a message: files and arguments have names and values of any length."""


class CommandError(DmlGpuError):
    """The arguments ask for something that cannot be done, or a file does not hold what it should."""


def is_of_threads(error: BaseException) -> bool:
    """Whether Python says by an error that the system starts no thread; it has no class of its own for that."""
    return isinstance(error, RuntimeError) and "start new thread" in str(error)


class ReaderGoneError(Exception):
    """The reader of standard output has gone."""


def open_streams() -> None:
    """Have something in the place of each standard stream that the process was started without.

    Otherwise the next file that is opened would get the stream's number, and with it whatever a library prints; and
    `print` would write to standard output what is for a closed standard error.

    Raises
    ------
    CommandError
        If standard output is closed.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # For reading: a library that writes to standard output gets an error, as without any stream.
            os.open(os.devnull, os.O_RDONLY if number == 1 else os.O_RDWR)  # takes the lowest number
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for as long as the process lasts
    if sys.stdout is None:
        raise CommandError("standard output is closed; send it to a file, or to /dev/null if it does not matter")


def one_line(text: object) -> str:
    """Return a name of a file or a column as one line without control characters, which become escapes."""
    return _CONTROL.sub(_escape, str(text)).replace("\n", "\\n")


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def say(text: str) -> None:
    """Print to standard output; control characters and those that its encoding lacks are shown as escapes.

    Raises
    ------
    CommandError, ReaderGoneError
        If it cannot be written to.
    """
    encoding = sys.stdout.encoding or "utf-8"
    text = _CONTROL.sub(_escape, text).encode(encoding, "backslashreplace").decode(encoding)
    try:
        print(text)
    except OSError as error:
        raise unwritable(error) from error


def flush() -> None:
    """Write what standard output has not written yet.

    Raises
    ------
    CommandError, ReaderGoneError
        If it cannot be written to.
    """
    if sys.stdout is None:
        return  # closed: `open_streams` has said so
    try:
        sys.stdout.flush()
    except OSError as error:
        raise unwritable(error) from error


def unwritable(error: OSError) -> Exception:
    """Return the error that says why standard output cannot be written to; discard what it still holds."""
    is_gone = isinstance(error, BrokenPipeError) or (error.errno == errno.EINVAL and _is_pipe_of_windows(sys.stdout))
    silence(sys.stdout)
    if is_gone:
        return ReaderGoneError()
    return CommandError(f"cannot write to standard output: {error.strerror or error}")


def _is_pipe_of_windows(stream: IO[Any]) -> bool:
    """Whether a stream is a pipe on Windows, which calls it an invalid argument to write to one without a reader."""
    with suppress(OSError, ValueError):
        return os.name != "posix" and stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode)
    return False


def silence(stream: IO[Any]) -> None:
    """Discard what a stream holds and all that follows: the interpreter flushes once more at its end."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def complain(message: str) -> None:
    """Print an error as one line on standard error."""
    _tell("error", message)


def note(message: str) -> None:
    """Print something worth knowing as one line on standard error."""
    _tell("note", message)


def warn(message: str) -> None:
    """Print a warning about doubtful results as one line on standard error."""
    _tell("warning", message)


def _tell(kind: str, message: str) -> None:
    # Messages of the library, and names of files, may span lines.
    line = _CONTROL.sub(_escape, " ".join(message.split()))
    if len(line) > _LONGEST:
        line = f"{line[: _LONGEST // 2]} ... {line[-_LONGEST // 2 :]}"
    try:
        print(f"dmlgpu: {kind}: {line}", file=sys.stderr, flush=True)
    except OSError:
        silence(sys.stderr)  # there is nowhere left to say it; the exit status tells


# Tables and progress


def columns(rows: Sequence[Sequence[str]], *, right: bool = False) -> list[str]:
    """Return rows of cells as lines with the columns aligned; on a terminal they are folded to its width.

    Parameters
    ----------
    rows : sequence of sequence of str
        The cells, equally many in each row.
    right : bool
        Align all columns but the first to the right.
    """
    rows = [[one_line(cell) for cell in row] for row in rows]
    if sys.stdout is not None and sys.stdout.isatty():
        with suppress(ImportError):
            return _folded(rows, right)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if right and i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((" " * GAP).join(cells).rstrip())
    return lines


def _folded(rows: Sequence[Sequence[str]], right: bool, width: int | None = None) -> list[str]:
    """Lay out rows as `columns` does, by rich; the width is the terminal's by default."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, GAP, 0, 0))
    for i in range(len(rows[0])):
        table.add_column(justify="right" if right and i else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    text = io.StringIO()
    Console(file=text, width=width, color_system=None).print(table)
    return [line.rstrip() for line in text.getvalue().splitlines()]


class Progress:
    """How much is done: a bar on standard error that disappears at the end; a line now and then where there is none.

    Parameters
    ----------
    total : int
        The steps until the end.
    noun : str
        What a step is, as lines say it; of bytes the rate is shown, too.
    begin : int, optional
        The steps that were done before.
    """

    def __init__(self, total: int, noun: str, begin: int = 0) -> None:
        self._total, self._noun, self._begin = total, noun, begin
        self._data = noun == "byte"
        self._bar: Any = None
        self._next = 0.0
        self._started = time.monotonic()
        # Who runs this in a shell's loop wants no line of a few steps, nor of a few bytes.
        soon = total >= _WORTH_SAYING and not self._data
        self._next_line = self._started + (0.0 if soon else _LINE_SECONDS)
        if sys.stderr.isatty():
            with suppress(ImportError):
                self._bar = _bar(total, begin, self._data)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

    def clear(self) -> None:
        """Make room for a line of output; the next `show` brings the bar back."""
        if self._bar is not None:
            self._draw(self._bar.stop)
            self._next = 0.0

    def show(self, done: int, what: str, *, at_once: bool = False) -> None:
        """Show how many steps are done, and what comes next; a bar shows at once what may take long."""
        now = time.monotonic()
        if self._bar is None:
            if now >= self._next_line:
                self._next_line = now + _LINE_SECONDS
                note(f"{self._amount(done, now)}{self._left(done, now)}: {what}")
            return
        if now < self._next and not at_once:
            return
        self._next = now + _BAR_SECONDS
        self._bar.update(self._bar.task_ids[0], completed=done, description=one_line(what))

        def draw() -> None:
            if not self._bar.live.is_started:
                self._bar.start()
                self._bar.console.show_cursor(True)  # a signal that ends the process would leave none
            self._bar.refresh()

        self._draw(draw)

    def _amount(self, done: int, now: float) -> str:
        """Say how much is done, and of bytes how many a second."""
        if not self._data:
            return f"{done} of {counted(self._total, self._noun)}"
        rate = (done - self._begin) / max(now - self._started, 1e-9)
        return f"{done / 1e6:.0f} of {self._total / 1e6:.0f} MB, {rate / 1e6:.0f} MB/s"

    def _left(self, done: int, now: float) -> str:
        """Say how much time is left if the other steps take as long as those that are done."""
        if done <= self._begin:
            return ""
        seconds = (now - self._started) * (self._total - done) / (done - self._begin)
        return f", about {seconds:.0f} s left" if seconds < 100 else f", about {seconds / 60:.0f} min left"

    def _draw(self, draw: Callable[[], object]) -> None:
        try:
            draw()
        except OSError:  # the terminal is gone
            self._bar = None


def _bar(total: int, begin: int, data: bool) -> Any:
    from rich import progress
    from rich.console import Console
    from rich.table import Column

    name = progress.TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, ratio=1))
    amount: list[progress.ProgressColumn] = [progress.TextColumn("{task.completed} of {task.total}")]
    if data:
        amount = [progress.DownloadColumn(), progress.TransferSpeedColumn()]
    bar = progress.Progress(
        progress.BarColumn(20),
        *amount,
        progress.TimeRemainingColumn(elapsed_when_finished=True),
        name,
        console=Console(stderr=True),
        auto_refresh=False,  # no thread
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        expand=True,
    )
    bar.add_task("", total=max(total, 1), completed=begin)
    return bar
