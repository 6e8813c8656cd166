"""What the command line says, one line at a time."""

from __future__ import annotations

import sys

from ..errors import DmlGpuError

__all__ = ["CommandError", "complain", "count", "note", "say", "warn"]


class CommandError(DmlGpuError):
    """The command line asks for something that cannot be done, or a file does not hold what it should."""


def count(number: int, noun: str) -> str:
    """Return a number and its noun, as in '1 row' and '2 rows'."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def say(text: str) -> None:
    """Print to standard output; characters that the terminal's encoding lacks are shown as escapes."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding))


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
    print(f"dmlgpu: {kind}: {' '.join(message.split())}", file=sys.stderr)
