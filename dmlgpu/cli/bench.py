"""``dmlgpu bench``: how fast a device is, and whether it became faster."""

from __future__ import annotations

import textwrap
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..bench.comparison import ENOUGH, compare, render
from ..bench.results import Report, Result, cells, header_lines, read_report
from ..bench.rows import AXES, Row, default_rows, parse_axis, quick_rows, rows_of
from .console import CommandError, count, note, one_line, say, warn
from .files import check_input, check_outputs, replacing
from .progress import Progress

if TYPE_CHECKING:
    from ..runtime.device import Device

__all__ = ["run_bench"]

_HEADINGS = ("ms", "noise", "G/s", "of copy", "whole ms", "upload", "download", "x NumPy", "result")
_WIDTHS = (8, 6, 7, 7, 8, 7, 8, 7, 0)
_WIDTH = 110


def run_bench(arguments: Namespace) -> int:
    """Measure, list, or compare; return the exit status."""
    if arguments.action == "compare":
        return _compare(arguments)
    rows = _chosen(arguments)
    if arguments.list:
        _list(rows)
        return 0
    outputs = check_outputs({f"--{kind}": getattr(arguments, kind) for kind in ("json", "csv", "md")})
    from ..runtime.device import resolve_device

    report = _measure(resolve_device(arguments.device), rows, arguments)
    for option, path in outputs.items():
        text = {"--json": report.json, "--csv": report.csv, "--md": report.markdown}[option]()
        with replacing(path) as file:
            file.write(text.encode() + (b"\n" if option == "--json" else b""))
        say(f"wrote {one_line(path)}: {count(len(report.results), 'row')}")
    wrong = [result for result in report.results if result.difference is not None]
    if wrong:
        rows_of_it = count(len(wrong), "row")
        warn(f"{rows_of_it} without the oracle's bits, the first {wrong[0].row.name}: {wrong[0].difference}")
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


def _list(rows: Sequence[Row]) -> None:
    say("axes and their values:")
    for name, (values, _) in AXES.items():
        say(f"  {name:12} {values}")
    say(f"\n{count(len(rows), 'row')}, and behind each type and size the ways to copy as many bytes:")
    for row in rows:
        say(f"  {row.name}")


def _measure(device: Device, rows: Sequence[Row], arguments: Namespace) -> Report:
    from ..bench.machine import header
    from ..bench.runner import REASONS, Options, Runner

    options = Options(
        min_samples=arguments.min_samples,
        max_noise=arguments.max_noise / 100,
        timeout=arguments.timeout,
        whole=not arguments.device_only,
    )
    runner = Runner(device, options, timestamps=not arguments.wall)
    about = header(device, runner.clock, vars(options))
    for label, text in header_lines(about):
        say(textwrap.fill(text, _WIDTH, initial_indent=f"{label:9} ", subsequent_indent=" " * 10))
    width = max(len(row.name) for row in rows) + 12
    say(f"\n{'':{width}} {_aligned(_HEADINGS)}")
    results: list[Result] = []
    groups = {(row.type, row.elements) for row in rows}
    with Progress(len(rows) + len(groups)) as progress:
        done = 0

        def begin(row: Row) -> None:
            nonlocal done
            progress.show(done, row.name)
            done += 1

        for result in runner.run(rows, begin):
            results.append(result)
            progress.clear()
            say(_line(result, width))
    for reason, meaning in REASONS.items():
        rows_of_it = [
            f"{result.row.name} ({warning.partition(': ')[2]})"
            for result in results
            for warning in result.warnings
            if warning.startswith(f"{reason}: ")
        ]
        if rows_of_it:
            warn(f"{reason}: {', '.join(rows_of_it)}; {meaning}")
    return Report(about, results)


def _aligned(texts: Sequence[str]) -> str:
    return " ".join(f"{text:>{width}}" if width else text for text, width in zip(texts, _WIDTHS, strict=True))


def _line(result: Result, width: int) -> str:
    name, milliseconds, noise, rate, _, *rest = cells(result)
    return f"{name:{width}} {_aligned((milliseconds, noise, rate, *rest))}"


def _compare(arguments: Namespace) -> int:
    old, new = (_read(Path(name)) for name in (arguments.old, arguments.new))
    changes = compare(old, new, across_machines=arguments.across_machines)
    say(render(changes))
    few = min(len(result.seconds) for report in (old, new) for result in report.results)
    if few < ENOUGH:
        note(f"with fewer than {ENOUGH} samples of a row ({few} here) its verdict is less sure than 95 %")
    return 1 if any(change.matters for change in changes) else 0


def _read(path: Path) -> Report:
    check_input(path)
    return read_report(path)
