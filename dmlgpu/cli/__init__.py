"""The command line: ``dmlgpu info``, ``cumsum``, ``cumprod``, ``round``, ``verify`` and ``bench``.

Standard output carries the result, standard error one line that begins with ``dmlgpu: error:`` or lines that begin
with ``dmlgpu: note:`` or ``dmlgpu: warning:``. The exit status is 0 for success, 1 for ``dmlgpu info`` on a system
without a usable adapter, for ``dmlgpu verify`` where anything differs and for ``dmlgpu bench`` where a result is wrong
or slower, 2 for bad input and 130 for an interrupt.
"""

from __future__ import annotations

import os
import sys
import warnings

from ..errors import DmlGpuError
from .arguments import parse
from .console import complain, note

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : list of str, optional
        The arguments after the program's name; by default those that the process was started with.

    Returns
    -------
    int
        The exit status.

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
    return status


def _guarded(argv: list[str] | None) -> int:
    """Run the command and turn every foreseen failure into one line and a status."""
    try:
        status = _run(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of a pipe, such as head, has seen enough. The interpreter flushes once more when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except SystemExit as stop:  # how argparse ends --help and --version
        return int(stop.code or 0)
    except KeyboardInterrupt:
        complain("interrupted")
        return 130
    except OSError as error:
        subject = "" if error.filename is None else f"{error.filename}: "
        complain(f"{subject}{error.strerror or error}")
    except DmlGpuError as error:
        complain(str(error))
    except MemoryError as error:
        complain(f"not enough memory: {error}" if str(error) else "not enough memory")
    else:
        return status
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
