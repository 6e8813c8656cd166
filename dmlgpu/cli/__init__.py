"""The command line: ``dmlgpu info``, ``cumsum``, ``cumprod``, ``round``, ``verify`` and ``bench``.

Standard output carries the result, standard error one line that begins with ``dmlgpu: error:`` or lines that begin
with ``dmlgpu: note:`` or ``dmlgpu: warning:``. The exit status is 0 for success, 1 for ``dmlgpu info`` on a system
without a usable adapter, for ``dmlgpu verify`` where anything differs and for ``dmlgpu bench`` where a result is wrong
or slower, 2 for bad input and for output that cannot be written. A process that is interrupted, ended by a signal or
left by the reader of its output dies of that signal (SIGINT, SIGPIPE, ...), which shells show as 130, 141, ...
"""

from __future__ import annotations

import signal
import sys
import warnings
from contextlib import suppress

from ..errors import DmlGpuError
from .arguments import parse
from .console import CommandError, ReaderGoneError, complain, flush, note, open_streams
from .unfinished import die_of

__all__ = ["main"]

_INTERRUPTED = 128 + signal.SIGINT
_READER_GONE = 128 + getattr(signal, "SIGPIPE", 13)  # Windows has no such signal


def main(argv: list[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : list of str, optional
        The arguments after the program's name; by default those that the process was started with.

    Returns
    -------
    int
        The exit status; 128 and a signal's number if that is what ended it. Without `argv` the process dies of the
        signal instead.

    Examples
    --------
    >>> from dmlgpu.cli import main
    >>> main(["round", "missing.npy"])
    2
    """
    # Notes wait for the outcome: bad input ends with exactly one line, whatever was noticed on the way to it.
    with warnings.catch_warnings(record=True) as caught:
        status = _guarded(argv)
    if status in (0, 1):
        for warning in caught:
            note(str(warning.message))
    if argv is None and status > 128:
        die_of(status - 128)
    return status


def _guarded(argv: list[str] | None) -> int:
    """Run the command and turn every foreseen failure into one line and a status."""
    try:
        open_streams()
        try:
            status = _run(argv)
        except SystemExit as stop:  # how argparse ends --help and --version
            status = int(stop.code or 0)
        flush()
    except ReaderGoneError:  # such as head, when it has seen enough
        return _READER_GONE
    except KeyboardInterrupt:
        if argv is None:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second one ends the process as it is
        complain("interrupted")
        return _INTERRUPTED
    except OSError as error:
        subject = "" if error.filename is None else f"{error.filename}: "
        complain(f"{subject}{error.strerror or error}")
    except DmlGpuError as error:
        complain(str(error))
    except MemoryError as error:
        complain(f"not enough memory: {error}" if str(error) else "not enough memory")
    else:
        return status
    with suppress(CommandError, ReaderGoneError):  # one line is enough
        flush()
    return 2


def _run(argv: list[str] | None) -> int:
    """Parse the arguments and run the subcommand, importing no more than it needs."""
    arguments = parse(sys.argv[1:] if argv is None else argv)
    if arguments.command == "info":
        from .info import run_info

        return run_info(arguments)
    if arguments.command == "verify":
        from .verify import run_verify

        return run_verify(arguments)
    if arguments.command == "bench":
        from .bench import run_bench

        return run_bench(arguments)
    from .operators import run_operator

    return run_operator(arguments)
