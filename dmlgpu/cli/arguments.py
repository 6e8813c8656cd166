"""The arguments of the command line and their help texts."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from typing import NoReturn

from ..dtypes import ELEMENT_TYPES
from .bench_arguments import add_bench
from .console import CommandError, say

__all__ = ["package_version", "parse"]

MODES = ("half_even", "toward_zero", "half_away")

_DESCRIPTION = """\
Cumulative sums, cumulative products and rounding on the GPU, for .npy and .csv files.
The results have the same bits on every device."""

_EPILOG = """\
examples:
  dmlgpu cumsum rain.csv                          show a summary of the running totals
  dmlgpu cumsum rain.csv -o totals.csv            write them
  dmlgpu cumprod growth.npy --axis 1 -o index.npy
  dmlgpu round prices.csv --mode half_away -o rounded.csv
  dmlgpu verify                                   does this device give the right bits?
  dmlgpu bench --quick                            how fast is this device?
  dmlgpu info                                     versions, adapters and drivers, for a bug report

exit status: 0 for success; 1 if info finds no usable adapter, verify a difference, bench a wrong or slower result;
2 for bad input, and for output that cannot be written, with one line that begins with 'dmlgpu: error:'

'dmlgpu COMMAND --help' says more. The environment variable DMLGPU_ADAPTER chooses a device for all commands."""

_FILES = """\
.npy files:
  Arrays of up to 8 dimensions of integers or floating-point numbers; the shape
  is kept. Python objects are never loaded.

.csv files:
  UTF-8, separated by commas, semicolons or tabs, whichever the first line has
  most of. {rows}
  A column is numeric if all its cells are numbers: int64 (uint64 where that is
  too small) if all are written as integers, else float64. Other columns, such
  as dates and names, are kept as they are. A word or an empty cell in a column
  of numbers is an error that names its line; nan is a number. Results are
  written with the fewest digits that read back to the same bits.
  Nothing is changed silently: an integer beside decimals that has no exact
  float64 and a number beyond float64 are errors. Codes such as 01234 are text,
  and numbers only if --columns names them. -0 is 0 among integers.

output files:
  A result is written beside its place, flushed to the disk and then renamed:
  the place has the old file or the new one, whatever happens. Owner and
  permissions stay. A symbolic link is followed to a file with the same
  extension. A file with several names (hard links) or of a user whose files
  this one cannot make is an error."""

_SCAN_ROWS = """Each column of numbers is processed down its rows;
  --axis 1 processes each row across its columns of numbers."""
_ROUND_ROWS = """Each column of numbers is rounded; integers stay as
  they are."""


_VERIFY = """\
Run the conformance cases on this device and compare every bit with the oracle, the definition of the results in
NumPy; probe what devices may do differently. The exit status is 0 if every case has the oracle's bits and no probe
fails, else 1."""

_VERIFY_EPILOG = """\
The devices of two machines are compared by their files of digests:
  dmlgpu verify --digest here.json           on each machine, with a name of its own
  dmlgpu verify --oracle --digest oracle.json
  dmlgpu verify --compare here.json there.json oracle.json"""


_MOST_JOBS = 16


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are exceptions, so that all errors look alike."""

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{message} (see '{self.prog} --help')")

    def _print_message(self, message: str, file: object = None) -> None:
        say(message.removesuffix("\n"))  # argparse hides that standard output cannot be written to


def package_version() -> str:
    """Return the version of dmlgpu."""
    import dmlgpu

    return dmlgpu.__version__


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments after the program's name.

    Raises
    ------
    CommandError
        If they are not valid.
    SystemExit
        After ``--help`` and ``--version``, and without a command, when help is printed; the code is 0.
    """
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help()
        parser.exit()
    return arguments


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = _Parser(prog="dmlgpu", description=_DESCRIPTION, epilog=_EPILOG, formatter_class=raw, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"dmlgpu {package_version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")

    for name, title, initial in (("cumsum", "sum", 0), ("cumprod", "product", 1)):
        scan = commands.add_parser(
            name,
            help=f"running {title} along an axis",
            description=f"The running {title} of the numbers in a file, along one axis.",
            epilog=_FILES.format(rows=_SCAN_ROWS),
            formatter_class=raw,
            allow_abbrev=False,
        )
        _add_files(scan)
        scan.add_argument(
            "--axis",
            type=int,
            metavar="N",
            help="axis to run along, counted from 0, or from the end if negative; needed for .npy files of more than "
            "one dimension; 0 (down the rows) by default for .csv files",
        )
        scan.add_argument(
            "--exclusive",
            action="store_true",
            help=f"leave each element out of its own {title}: results begin with {initial}",
        )
        scan.add_argument(
            "--reverse", action="store_true", help="start from the highest index of the axis and run to the lowest"
        )
        scan.add_argument(
            "--include-initial",
            action="store_true",
            help=f"also give the {initial} that the {title} starts from: the axis becomes one longer",
        )
        scan.add_argument(
            "--dtype",
            metavar="T",
            choices=[element.name for element in ELEMENT_TYPES],
            help="convert to this type, then compute in it: %(choices)s; by default floating-point numbers keep "
            "their type, signed integers become int64 and unsigned ones uint64",
        )
        if name == "cumsum":
            scan.add_argument(
                "--precision",
                choices=("default", "compensated"),
                default="default",
                help="compensated: carry what rounding cuts off along; only for float32 results",
            )
        _add_device(scan)
        _add_table(scan)

    rounding = commands.add_parser(
        "round",
        help="round to integers",
        description="Round the floating-point numbers in a file to integers; their type stays the same.",
        epilog=_FILES.format(rows=_ROUND_ROWS),
        formatter_class=raw,
        allow_abbrev=False,
    )
    _add_files(rounding)
    rounding.add_argument(
        "--mode",
        type=lambda text: text.replace("-", "_"),
        choices=MODES,
        default=MODES[0],
        metavar="M",
        help="half_even: to the nearest integer, halves to the even one (the default, as NumPy does); toward_zero: "
        "drop the fraction; half_away: to the nearest integer, halves away from zero",
    )
    rounding.add_argument(
        "--dtype",
        metavar="T",
        choices=[element.name for element in ELEMENT_TYPES if element.kind == "float"],
        help="convert to this floating-point type first: %(choices)s",
    )
    _add_device(rounding)
    _add_table(rounding)

    info = commands.add_parser(
        "info",
        help="versions, adapters, limits and drivers",
        description="What a bug report needs: versions, adapters, limits, features, drivers and environment.",
        allow_abbrev=False,
    )
    info.add_argument("--json", action="store_true", help="print JSON, with every limit and feature of every adapter")
    _add_device(info)

    verify = commands.add_parser(
        "verify",
        help="whether this device gives the oracle's bits",
        description=_VERIFY,
        epilog=_VERIFY_EPILOG,
        formatter_class=raw,
        allow_abbrev=False,
    )
    _add_verify(verify)
    _add_device(add_bench(commands, raw))
    return parser


def _add_verify(parser: argparse.ArgumentParser) -> None:
    _add_device(parser)
    parser.add_argument(
        "--full", action="store_true", help="run all cases, large ones too, instead of those of a minute or so"
    )
    parser.add_argument(
        "--case",
        metavar="NAME",
        action="append",
        help="run only this case, or those of the full suite that match a pattern with *; may be given several times",
    )
    parser.add_argument(
        "--share",
        metavar="K/N",
        type=_share,
        help="run only the K-th of N parts of the cases, for drivers that take long to compile",
    )
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=_jobs,
        help="share the cases among N processes; by default 2 on software adapters, which compile on one core, else 1",
    )
    parser.add_argument("--json", metavar="FILE", help="also write a report to attach to a bug report")
    parser.add_argument("--digest", metavar="FILE", help="also write the SHA-256 of every result to this file")
    parser.add_argument("--oracle", action="store_true", help="write the oracle's digests; uses no device")
    parser.add_argument(
        "--compare",
        metavar="FILE",
        nargs="+",
        help="compare files of digests and do nothing else; the exit status is 1 if they differ",
    )


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", metavar="INPUT", help="a .npy or .csv file")
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUTPUT",
        help="write the result to this .npy or .csv file (.csv: 1 or 2 dimensions), which may be the input; an "
        "existing file is replaced once the result is complete; by default a summary is printed",
    )


def _add_table(parser: argparse.ArgumentParser) -> None:
    table = parser.add_argument_group("options for .csv files")
    table.add_argument(
        "--columns",
        metavar="NAMES",
        type=_names,
        help="process only these columns, by their names separated by commas (by their numbers from "
        "1 if there is no header), and keep the others as they are",
    )
    table.add_argument(
        "--header",
        choices=("auto", "yes", "no"),
        default="auto",
        help="whether the first line is a header; auto, the default, takes it for one if no cell of it is a number",
    )


def _add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device",
        metavar="D",
        help="the adapter to use: its index, or a part of its name or backend, as 'dmlgpu info' lists them; by "
        "default DMLGPU_ADAPTER decides, else the fastest kind of adapter is taken",
    )


def _jobs(text: str) -> int:
    """Read a number of processes."""
    if text not in map(str, range(1, _MOST_JOBS + 1)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes from 1 to {_MOST_JOBS}")
    return int(text)


def _share(text: str) -> tuple[int, int]:
    """Read which of how many parts."""
    number, _, shares = text.partition("/")
    if not all(part.isascii() and part.isdigit() for part in (number, shares)) or not 1 <= int(number) <= int(shares):
        raise argparse.ArgumentTypeError(f"{text!r} is no share of the cases, such as 1/4 to 4/4")
    return int(number), int(shares)


def _names(text: str) -> list[str]:
    """Split names at commas; a name that contains a comma may be quoted as in a .csv file."""
    try:
        return next(csv.reader([text], strict=True), [])
    except csv.Error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no line of a .csv file: {error}") from None
