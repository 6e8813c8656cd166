"""The command line: ``dmlgpu`` and a command, such as ``dmlgpu cumsum``.

Standard output carries the result, standard error one line that begins with ``dmlgpu: error:`` or lines that begin
with ``dmlgpu: note:`` or ``dmlgpu: warning:``. The exit status is 0 for success, 1 for ``dmlgpu info`` on a system
without a usable adapter, for ``dmlgpu verify`` where anything differs and for ``dmlgpu bench`` where a result is wrong
or slower, 2 for bad input and for output that cannot be written. A process that is interrupted, ended by a signal or
left by the reader of its output dies of that signal (SIGINT, SIGPIPE, ...), which shells show as 130, 141, ...
"""

from __future__ import annotations

import argparse
import signal
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import NoReturn

import dmlgpu

from ..errors import DmlGpuError
from .console import CommandError, ReaderGoneError, complain, flush, is_of_threads, note, open_streams, say
from .signals import die_of

__all__ = ["main", "parse"]

_COMMANDS = {
    "cumsum": ("operators", "running sum along an axis"),
    "cumprod": ("operators", "running product along an axis"),
    "round": ("operators", "round to integers"),
    "info": ("info", "versions, adapters, limits and drivers"),
    "verify": ("verify", "whether this device gives the reference's bits"),
    "bench": ("bench", "how fast this device is, against a copy and NumPy"),
    "tune": ("tune", "measure which kernels are fastest here, for later calls"),
    "explain": ("explain", "what an operator would do, and what it moves"),
    "export": ("export", "an operator's plan and shaders, for programs in other languages"),
}
"""The commands: the module that has ``add_arguments(parser)`` and ``run(arguments)``, and a line of help.

A module with a ``DEFAULT_DEVICE`` says what takes the place of ``--device``.
"""

_DESCRIPTION = """\
Cumulative sums, cumulative products and rounding on the GPU, for .npy, .npz,
.csv and .parquet files. The results have the same bits on every device.

examples:
  dmlgpu cumsum rain.csv                          show the running totals
  dmlgpu cumsum rain.csv -o totals.csv            write them
  dmlgpu cumprod growth.npy --axis 1 -o index.npy
  dmlgpu round prices.csv --mode half_away -o rounded.csv
  dmlgpu verify                                   are this device's bits right?
  dmlgpu bench --quick                            how fast is this device?
  dmlgpu explain cumsum --shape 4096x4096 --axis 0 --profile h200
  dmlgpu export cumsum --shape 2^20 -o offsets    the shaders, for JavaScript
  dmlgpu info                                     for a bug report"""

_EPILOG = """\
'dmlgpu COMMAND --help' says more. The environment variable DMLGPU_ADAPTER
chooses a device for all commands.

exit status: 0 for success; 1 if info finds no usable adapter, verify a
difference, bench a wrong or slower result; 2 for bad input, and for output that
cannot be written, with one line that begins with 'dmlgpu: error:'"""

_HELP_WIDTH = 80
"""The width of all help, whatever the terminal's: the examples have it, too."""

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
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] == "dmlgpu":  # a mistake of ours
            raise
        complain(f"{error.name} cannot be imported ({error}): install dmlgpu anew, with all that it needs")
    except Warning as error:
        complain(f"{error} (a warning, which -W error or PYTHONWARNINGS makes an error)")
    except RuntimeError as error:
        if not is_of_threads(error):
            raise
        complain("the system starts no more threads: end other programs, or allow this one more memory or processes")
    except MemoryError as error:
        complain(f"not enough memory: {error}" if str(error) else "not enough memory")
    else:
        return status
    with suppress(CommandError, ReaderGoneError):  # one line is enough
        flush()
    return 2


def _run(argv: list[str] | None) -> int:
    arguments = parse(sys.argv[1:] if argv is None else argv)
    return int(arguments.run(arguments))


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are exceptions, so that all errors look alike."""

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{message} (see '{self.prog} --help')")

    def _print_message(self, message: str, file: object = None) -> None:
        say(message.removesuffix("\n"))  # argparse hides that standard output cannot be written to


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments after the program's name.

    Parameters
    ----------
    argv : sequence of str
        The arguments.

    Returns
    -------
    argparse.Namespace
        What was given; ``command`` is the command's name, and ``run`` the function of the arguments that runs it.

    Raises
    ------
    CommandError
        If they are not valid.
    SystemExit
        After ``--help`` and ``--version``, and without a command, when help is printed; the code is 0.
    """
    raw = partial(argparse.RawDescriptionHelpFormatter, width=_HELP_WIDTH)
    parser = _Parser(prog="dmlgpu", description=_DESCRIPTION, epilog=_EPILOG, formatter_class=raw, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"dmlgpu {dmlgpu.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    given = next((word for word in argv if not word.startswith("-")), None)
    for name, (module, summary) in _COMMANDS.items():
        command = commands.add_parser(name, help=summary, formatter_class=raw, allow_abbrev=False)
        if name == given:  # the others' modules stay out: they cost time to import
            _add_command(command, module)
    if argv and argv[0].startswith("-") and argv[0] not in ("-", "--", "-h", "--help", "--version"):
        parser.error(f"unrecognized arguments: {argv[0]}; options come behind the command")
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:  # the help of the command lists what it takes
        commands.choices.get(arguments.command, parser).error(f"unrecognized arguments: {' '.join(unknown)}")
    if arguments.command is None:
        parser.print_help()
        parser.exit()
    return arguments


def _add_command(parser: argparse.ArgumentParser, module: str) -> None:
    owner = import_module(f".{module}", __name__)
    default = "DMLGPU_ADAPTER decides, else the fastest kind of adapter is taken"
    parser.add_argument(
        "--device",
        metavar="D",
        help="the adapter to use: its index, or a part of its name or backend, as 'dmlgpu info' lists them; by "
        f"default {getattr(owner, 'DEFAULT_DEVICE', default)}",
    )
    owner.add_arguments(parser)
    parser.set_defaults(run=owner.run)
