"""What the command line says, one line at a time, and the streams it says it on."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from typing import IO, Any

from ..errors import DmlGpuError

__all__ = [
    "CommandError",
    "ReaderGoneError",
    "complain",
    "count",
    "flush",
    "note",
    "one_line",
    "open_streams",
    "say",
    "silence",
    "warn",
]

_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f]")  # all but the line feed

_LONGEST = 2000
"""Characters of a message: files and arguments have names and values of any length."""


class CommandError(DmlGpuError):
    """The command line asks for something that cannot be done, or a file does not hold what it should."""


class ReaderGoneError(Exception):
    """Nobody reads standard output any longer."""


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


def count(number: int, noun: str) -> str:
    """Return a number and its noun, as in '1 row' and '2 rows'."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


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
        raise _unwritable(error) from error


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
        raise _unwritable(error) from error


def _unwritable(error: OSError) -> Exception:
    silence(sys.stdout)
    if isinstance(error, BrokenPipeError):
        return ReaderGoneError()
    return CommandError(f"cannot write to standard output: {error.strerror or error}")


def silence(stream: IO[Any]) -> None:
    """Send what a stream still holds, and all that follows, nowhere: the interpreter flushes once more at its end."""
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
    """Print what makes results doubtful as one line on standard error."""
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
