"""Pure: results for people, as a table in Markdown and as lines for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .results import Report, Result, summarize

__all__ = ["COLUMNS", "WIDTH", "cells", "closing", "figure", "header_lines", "heading", "lines", "markdown", "wrapped"]

COLUMNS = (
    *("what", "ms", "noise", "G elements/s", "GB/s", "of copy", "whole call, ms", "upload", "download", "x NumPy"),
    "result",
)
"""The columns in Markdown."""

WIDTH = 80
"""That of terminals, and of what is copied into messages."""
_NAME = 33
_HEADINGS = ("ms", "noise", "GB/s", "of copy", "whole ms", "x NumPy")
_WIDTHS = (9, 6, 7, 8, 9, 8)
"""Of the columns behind the name, each with a space before it."""
_LONG = 8
"""The longest figures in sentences."""


def header_lines(header: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the header for people, as labels and texts."""
    device, machine = header["device"], header["machine"]
    limits = ", ".join(f"{name} {value}" for name, value in device["limits"].items())
    memory = f", {machine['memory_gib']} GiB" if machine["memory_gib"] else ""
    found = [
        ("device", f"{device['summary']}{', software' if device['software'] else ''}"),
        ("driver", device["driver"] or "unknown"),
        ("limits", limits),
        ("machine", f"{machine['processor']}, {machine['cores']} cores{memory}, {machine['system']}"),
        ("versions", ", ".join(f"{name} {value}" for name, value in header["versions"].items())),
        ("times", "GPU timestamps" if header["clock"] == "gpu" else f"wall clock: {header['clock_reason']}"),
    ]
    return [(label, str(text)) for label, text in found]


def cells(result: Result) -> list[str]:
    """Return a row in Markdown, for `COLUMNS`."""
    row, time = result.row, result.time

    def number(value: float | None, places: int = 2) -> str:
        return "" if value is None else f"{value:.{places}f}"

    def milliseconds(samples: Sequence[float]) -> str:
        return f"{1e3 * summarize(samples).median:.3g}" if samples else ""

    return [
        row.name,
        f"{1e3 * time.median:.4g}",
        f"{100 * result.noise:.0f} %",
        f"{row.elements / time.median / 1e9:.3g}",
        f"{row.bytes_moved / time.median / 1e9:.3g}",
        number(result.share),
        *(milliseconds(samples) for samples in (result.whole, result.upload, result.download)),
        number(result.speedup),
        "same bits" if result.difference is None else f"WRONG: {result.difference}",
    ]


def markdown(report: Report) -> str:
    """Return the header and a table in Markdown."""
    text = [f"{label}: {text}  " for label, text in header_lines(report.header)]
    text += ["", f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
    text += [f"| {' | '.join(cell.replace('|', '/') for cell in cells(result))} |" for result in report.results]
    notes = [f"- {result.row.name}: {warning}" for result in report.results for warning in result.warnings]
    return "\n".join([*text, *(["", "Warnings:", "", *notes] if notes else [])]) + "\n"


# Lines


def wrapped(text: str, label: str = "", indent: int = 0) -> str:
    """Return text behind a label as lines of `WIDTH`, of which all but the first are indented."""
    return textwrap.fill(text, WIDTH, initial_indent=label, subsequent_indent=" " * indent, break_on_hyphens=False)


def heading() -> str:
    """Return the line above those of `lines`."""
    return f"{'':{_NAME}}{_aligned(_HEADINGS)}"


def lines(result: Result) -> str:
    """Return a result as a line, or as several where its name is long or its bits are wrong."""
    speed = result.row.bytes_moved / result.time.median / 1e9
    whole = 1e3 * summarize(result.whole).median if result.whole else None
    noise = f"{min(100 * result.noise, 999):.0f} %"

    def cell(value: float | None, column: int, places: int | None = None) -> str:
        return "" if value is None else figure(value, _WIDTHS[column] - 1, places)

    times = cell(1e3 * result.time.median, 0), noise, cell(speed, 2)
    numbers = _aligned((*times, cell(result.share, 3, 2), cell(whole, 4), cell(result.speedup, 5, 2)))
    name = result.row.name
    found = [f"{name:{_NAME}}{numbers}" if len(name) <= _NAME else f"{wrapped(name)}\n{'':{_NAME}}{numbers}"]
    if result.difference is not None:
        found.append(wrapped(f"WRONG: {result.difference}", "  ", 4))
    return "\n".join(found)


def _aligned(texts: Sequence[str]) -> str:
    return "".join(f"{text:>{width}}" for text, width in zip(texts, _WIDTHS, strict=True)).rstrip()


def figure(value: float, width: int, places: int | None = None) -> str:
    """Write a number in at most `width` characters, 5 or more.

    Parameters
    ----------
    value : float
        Not negative.
    width : int
        Where it takes more, it gets fewer digits.
    places : int, optional
        Digits behind the point; by default three digits in all, or those before the point if they are more.

    Examples
    --------
    >>> from dmlgpu.bench.tables import figure
    >>> figure(0.0123456, 6), figure(0.000123456, 6), figure(123456789.0, 8), figure(0.5, 5, 2)
    ('0.0123', '1e-04', '1.2e+08', '0.50')
    """
    whole = f"{value:.0f}"
    usual = f"{value:.{places}f}" if places is not None else whole if value >= 100 else f"{value:#.3g}"
    shorter = [whole] if value >= 100 else []
    texts = [usual, *shorter, f"{value:.1e}", f"{value:.0e}"]
    return next((text for text in texts if len(text) <= width), texts[-1])


def closing(results: Sequence[Result]) -> str:
    """Return what the results say in short: the ceiling in a line, then a sentence or two about the operators."""
    found = []
    fastest = [result for result in results if result.row.operator == "copy" and result.row.kernel == result.copy]
    if fastest:
        speeds = sorted(result.row.bytes_moved / result.time.median / 1e9 for result in fastest)
        range_of_them = " to ".join(dict.fromkeys(figure(speed, _LONG) for speed in (speeds[0], speeds[-1])))
        found.append(wrapped(f"copies: {range_of_them} GB/s, the fastest for each type and size (--show-copies)"))
    rows = [result for result in results if result.row.operator != "copy"]
    if rows:
        found += ["", wrapped(_sentences(rows))]
    return "\n".join(found)


def _sentences(rows: Sequence[Result]) -> str:
    many = f"The median of {len(rows)} rows reaches" if len(rows) > 1 else "The row reaches"
    slowest = min(rows, key=lambda result: result.share or 0)
    said = [f"{many} {_middle(rows, lambda result: result.share)} of a copy's speed"]
    if any(result.whole for result in rows):
        said.append(f"whole calls {_middle(rows, lambda result: result.speedup)} times NumPy's")
    wrong = sum(result.difference is not None for result in rows)
    bits = f"{wrong} of {len(rows)} do NOT have the reference's bits" if wrong else "all have the reference's bits"
    end = f" The slowest by its share of a copy is {slowest.row.name}." if len(rows) > 1 else ""
    return f"{', '.join(said)}; {bits}.{end}"


def _middle(rows: Sequence[Result], of: Callable[[Result], float | None]) -> str:
    """Write the median of some values, and their range where there are several."""
    values = [value for value in map(of, rows) if value is not None]
    middle, least, most = (figure(one, _LONG, 2) for one in (summarize(values).median, min(values), max(values)))
    return middle if len(values) == 1 else f"{middle} ({least} to {most})"
