"""``dmlgpu bench``: measures how fast a device is, and whether it became faster."""

from __future__ import annotations

import math
import os
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..bench.comparison import ENOUGH, compare, measured, render
from ..bench.comparison import heading as heading_of
from ..bench.results import Report, Result, read_report
from ..bench.rows import AXES, Row, default_rows, parse_axis, quick_rows, rows_of
from ..bench.tables import closing, header_lines, heading, lines, markdown, wrapped
from ..errors import counted
from .console import CommandError, Progress, flush, note, one_line, say, warn
from .files import check_outputs
from .raw_files import check_input
from .replacement import replacing

if TYPE_CHECKING:
    from ..runtime.device import Device

__all__ = ["add_arguments", "run"]

_DESCRIPTION = """\
Measure the operators on this device: the time on the device as a share of a
copy of the same bytes, measured in turn with it; the whole call, NumPy in and
NumPy out, against NumPy; and every result against the reference, bit for bit.
The exit status is 1 if any result is wrong.

examples:
  dmlgpu bench --quick                          seconds, instead of minutes
  dmlgpu bench --axis type=float16,int64 --axis shape=2^24,4096x4096
  dmlgpu bench --json before.json               then change something, then
  dmlgpu bench --json after.json
  dmlgpu bench compare before.json after.json   what became faster or slower
  dmlgpu bench --json before.json --resume      the rest, after Ctrl-C"""

_EPILOG = """\
--list says which axes and values there are, and which rows a run would measure.

columns: ms on the device; noise, the interquartile range by the median; 'of
copy', the time of the fastest copy kernel by the row's, 1 being as fast; 'x
NumPy', NumPy's time by the whole call's. Ratios are medians of samples taken in
turn. --json, --csv and --md have more columns. They are written anew after
every row, so that what ends a run early leaves what was measured."""

_COMPARE = """\
Say for every row that two results share whether it is the SAME, FASTER or
SLOWER: by its share of the copy, which was measured in turn with it, so that a
machine that is slower today matters little. A row has changed if the intervals
that hold the medians with 95 % do not meet, and the change is above 3 %. The
exit status is 1 if an operator is SLOWER, or WRONG: not the reference's bits.

examples:
  dmlgpu bench compare before.json after.json
  dmlgpu bench compare here.json there.json --across-machines"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
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
        type=count_of,
        default=7,
        help="samples of each row at least; %(default)s by default",
    )
    how.add_argument(
        "--max-noise",
        metavar="PERCENT",
        type=positive_of,
        default=10.0,
        help="take more samples while the noise is above this, and warn if it stays so; %(default)g by default",
    )
    how.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=positive_of,
        default=20.0,
        help="take no more samples of a row after this time; %(default)g by default",
    )
    how.add_argument("--wall", action="store_true", help="use the host's clock even if the device has timestamps")
    how.add_argument(
        "--device-only", action="store_true", help="leave out the whole call with its transfers, and NumPy"
    )
    out = parser.add_argument_group("where results go")
    out.add_argument("--show-copies", action="store_true", help="list all ways to copy, too, behind the operators")
    out.add_argument("--json", metavar="FILE", help="all samples, for 'dmlgpu bench compare'")
    out.add_argument(
        "--resume",
        action="store_true",
        help="go on with the file of --json: measure only the rows that an interrupted run has left",
    )
    out.add_argument("--csv", metavar="FILE", help="a table for spreadsheets, in seconds")
    out.add_argument("--md", metavar="FILE", help="a table in Markdown")

    _add_comparison(parser)


def _add_comparison(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="compare OLD NEW", title="other uses")
    comparison = actions.add_parser(
        "compare",
        help="compare two results that --json wrote",
        description=_COMPARE,
        formatter_class=parser.formatter_class,
        allow_abbrev=False,
    )
    comparison.add_argument("old", metavar="OLD", help="the earlier result")
    comparison.add_argument("new", metavar="NEW", help="the later result")
    comparison.add_argument(
        "--across-machines", action="store_true", help="compare shares of the copy although the machines differ"
    )
    comparison.add_argument("--show-copies", action="store_true", help="list the ways to copy, too")


def count_of(text: str) -> int:
    """Read a number of samples."""
    if not text.isascii() or not text.isdecimal() or len(text) > 5 or not 1 <= int(text) <= 10_000:
        raise ArgumentTypeError(f"{text!r} is not a whole number from 1 to 10000")
    return int(text)


def positive_of(text: str) -> float:
    """Read a number above 0, such as one of seconds."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def run(arguments: Namespace) -> int:
    """Measure, list, or compare; return the exit status."""
    if arguments.action == "compare":
        return _compare(arguments)
    rows = _chosen(arguments)
    if arguments.list:
        _list(rows)
        return 0
    outputs = check_outputs({f"--{kind}": getattr(arguments, kind) for kind in _KINDS})
    unfinished = _unfinished(arguments)
    from ..runtime.device import resolve_device

    report = _measure(resolve_device(arguments.device), rows, arguments, outputs, unfinished)
    if outputs:
        say("")
    for path in outputs.values():
        say(f"wrote {one_line(path)}: {counted(len(rows), 'row')} and {len(report.results) - len(rows)} ways to copy")
    wrong = [result for result in report.results if result.difference is not None]
    if wrong:
        rows_of_it = counted(len(wrong), "row")
        warn(f"{rows_of_it} without the reference's bits, the first {wrong[0].row.name}: {wrong[0].difference}")
    return 1 if wrong else 0


def _chosen(arguments: Namespace) -> list[Row]:
    if arguments.axis is None:
        return quick_rows() if arguments.quick else default_rows()
    if arguments.quick:
        raise CommandError("--axis chooses rows, and --quick has its own: give one of the two")
    chosen: dict[str, tuple[object, ...]] = {}
    for text in arguments.axis:
        name, values = parse_axis(text)
        if name in chosen:
            raise CommandError(f"--axis {name} is given twice: separate its values by commas")
        chosen[name] = values
    return rows_of(chosen)


def _unfinished(arguments: Namespace) -> Report | None:
    """Return the results that ``--resume`` goes on with."""
    if not arguments.resume:
        return None
    if arguments.json is None:
        raise CommandError("--resume goes on with the file of --json FILE: name it")
    if not os.path.exists(arguments.json):
        raise CommandError(f"--resume: {arguments.json} is not there to go on with; leave --resume out to begin")
    return _read(Path(arguments.json))


def _list(rows: Sequence[Row]) -> None:
    say("axes and their values:")
    for name, (values, _) in AXES.items():
        say(f"  {name:12} {values}")
    say(f"\n{counted(len(rows), 'row')}, and behind each type and size the ways to copy as many bytes:")
    for row in rows:
        say(f"  {row.name}")


def _measure(
    device: Device, rows: Sequence[Row], arguments: Namespace, outputs: Mapping[str, Path], unfinished: Report | None
) -> Report:
    """Measure rows, but for those of an unfinished run; print and save each as it comes."""
    from ..bench.machine import header
    from ..bench.runner import Options, Runner

    options = Options(
        min_samples=arguments.min_samples,
        max_noise=arguments.max_noise / 100,
        timeout=arguments.timeout,
        whole=not arguments.device_only,
    )
    runner = Runner(device, options, timestamps=not arguments.wall)
    about = header(device, runner.clock, vars(options))
    results = {} if unfinished is None else {one.row: one for one in measured(unfinished, about, rows)}
    left = [row for row in rows if row not in results]
    for label, text in header_lines(about):
        if label != "limits":
            say(wrapped(text, f"{label:9} ", 10))
    if unfinished is not None:
        say(f"\n{len(rows) - len(left)} of {counted(len(rows), 'row')} are in {one_line(arguments.json)}")
    say(f"\n{heading()}")
    for result in results.values():
        if result.row.operator != "copy":
            say(lines(result))
    with Progress(len(left) + len({(row.type, row.elements) for row in left}), "row") as progress:
        done: dict[Row, None] = {}

        def begin(row: Row, phase: str) -> None:
            done[row] = None
            progress.show(len(done) - 1, f"{phase} {row.name}", at_once=True)

        try:
            for result in runner.run(left, begin):
                results[result.row] = result
                progress.clear()
                if result.row.operator != "copy":
                    say(lines(result))
                    flush()  # what ends the process early may not
                _save(Report(about, list(results.values())), outputs)
        except KeyboardInterrupt:
            if "--json" in outputs and results:
                there = sum(row in results for row in rows)
                note(f"{outputs['--json']} has {there} of {counted(len(rows), 'row')}; --resume measures the others")
            raise
    _close(list(results.values()), show_copies=arguments.show_copies)
    return Report(about, list(results.values()))


def _save(report: Report, outputs: Mapping[str, Path]) -> None:
    for option, path in outputs.items():
        with replacing(path) as file:
            file.write(_KINDS[option.removeprefix("--")](report).encode())


_KINDS: Mapping[str, Callable[[Report], str]] = {
    "json": lambda report: report.json() + "\n",
    "csv": Report.csv,
    "md": markdown,
}
"""What the files of the options hold."""


def _close(results: Sequence[Result], *, show_copies: bool) -> None:
    """Say what there is to say of all results together."""
    from ..bench.runner import REASONS

    shown = [result for result in results if show_copies or result.row.operator != "copy" or result.difference]
    for result in shown:
        if result.row.operator == "copy":
            say(lines(result))
    say(f"\n{closing(results)}")
    # The fastest copies are in all shares.
    shown += [result for result in results if result not in shown and result.row.kernel == result.copy]
    for reason, meaning in REASONS.items():
        rows_of_it = [
            f"{result.row.name} ({warning.partition(': ')[2]})"
            for result in shown
            for warning in result.warnings
            if warning.startswith(f"{reason}: ")
        ]
        if rows_of_it:
            warn(f"{reason}: {', '.join(rows_of_it)}; {meaning}")


def _compare(arguments: Namespace) -> int:
    old, new = (_read(Path(name)) for name in (arguments.old, arguments.new))
    changes = compare(old, new, across_machines=arguments.across_machines)
    for label, name, report in (("old", arguments.old, old), ("new", arguments.new, new)):
        say(wrapped(heading_of(one_line(name), report), f"{label}  ", 5))
    say(f"\n{render(changes, show_copies=arguments.show_copies)}")
    alone = [len({one.row for one in a.results} - {one.row for one in b.results}) for a, b in ((old, new), (new, old))]
    if any(alone):
        say(f"not compared: {counted(alone[0], 'row')} of old alone, {counted(alone[1], 'row')} of new alone")
    few = min(len(result.seconds) for report in (old, new) for result in report.results)
    if few < ENOUGH:
        note(f"with fewer than {ENOUGH} samples of a row ({few} here) its verdict is less sure than 95 %")
    return 1 if any(change.matters for change in changes) else 0


def _read(path: Path) -> Report:
    check_input(path)
    return read_report(path)
