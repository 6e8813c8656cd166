"""The arguments of ``dmlgpu bench`` and their help texts."""

from __future__ import annotations

import argparse
import math
from typing import Any

__all__ = ["add_bench"]

_DESCRIPTION = """\
Measure the operators on this device: the time on the device as a share of a copy of the same bytes, measured in turn
with it; the whole call, NumPy in and NumPy out, against NumPy; and every result against the oracle, bit for bit.
The exit status is 1 if any result is wrong."""

_EPILOG = """\
examples:
  dmlgpu bench --quick                                      seconds, instead of minutes
  dmlgpu bench --axis type=float16,int64 --axis shape=2^24,4096x4096 --axis axis=first,last
  dmlgpu bench --json before.json                           then change something, then
  dmlgpu bench --json after.json
  dmlgpu bench compare before.json after.json               what became faster or slower, beyond the noise

--list says which axes and values there are, and which rows a run would measure. Columns: noise is the interquartile
range by the median; 'of copy' the copy kernel's time by the row's, 1 being as fast as the fastest copy; 'x NumPy'
NumPy's time by the whole call's. Ratios are medians of samples taken in turn."""

_COMPARE = """\
Say for every row that two results share whether it is the SAME, FASTER or SLOWER: by its share of the copy, which
was measured in turn with it, so that a machine that is slower today matters little. A row has changed if the
intervals that hold the medians with 95 % do not meet, and the change is above 3 %. The exit status is 1 if an
operator is SLOWER, or WRONG: not the oracle's bits."""


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 5 or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 10000")
    return int(text)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def add_bench(commands: Any, formatter: Any) -> argparse.ArgumentParser:
    """Add the command to the others; return its parser."""
    shared = {"formatter_class": formatter, "allow_abbrev": False}
    parser: argparse.ArgumentParser = commands.add_parser(
        "bench",
        help="how fast this device is, against a copy and NumPy",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        **shared,
    )
    choice = parser.add_argument_group("what to measure")
    choice.add_argument("--quick", action="store_true", help="a few small rows in seconds, instead of minutes")
    choice.add_argument(
        "--axis",
        metavar="NAME=VALUES",
        action="append",
        help="measure these values of an axis, separated by commas; may be given several times: all combinations are "
        "measured, with the usual value of the other axes",
    )
    choice.add_argument("--list", action="store_true", help="list the axes and the rows, and measure nothing")
    how = parser.add_argument_group("how to measure")
    how.add_argument(
        "--min-samples",
        metavar="N",
        type=_count,
        default=7,
        help="samples of each row at least; %(default)s by default",
    )
    how.add_argument(
        "--max-noise",
        metavar="PERCENT",
        type=_positive,
        default=10.0,
        help="take more samples while the noise is above this, and warn if it stays so; %(default)g by default",
    )
    how.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_positive,
        default=20.0,
        help="take no more samples of a row after this time; %(default)g by default",
    )
    how.add_argument("--wall", action="store_true", help="use the host's clock even if the device has timestamps")
    how.add_argument(
        "--device-only", action="store_true", help="leave out the whole call with its transfers, and NumPy"
    )
    out = parser.add_argument_group("where results go, besides standard output")
    out.add_argument("--json", metavar="FILE", help="all samples, for 'dmlgpu bench compare'")
    out.add_argument("--csv", metavar="FILE", help="a table for spreadsheets, in seconds")
    out.add_argument("--md", metavar="FILE", help="a table in Markdown")

    actions = parser.add_subparsers(dest="action", metavar="compare OLD NEW", title="other uses")
    compare = actions.add_parser(
        "compare", help="compare two results that --json wrote", description=_COMPARE, **shared
    )
    compare.add_argument("old", metavar="OLD", help="the earlier result")
    compare.add_argument("new", metavar="NEW", help="the later result")
    compare.add_argument(
        "--across-machines", action="store_true", help="compare shares of the copy although the machines differ"
    )
    return parser
