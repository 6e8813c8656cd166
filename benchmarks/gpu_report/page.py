"""Pure: a report as a page in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from dmlgpu.bench.clock import LAGGING
from dmlgpu.bench.tables import header_lines
from dmlgpu.errors import counted

from .rows import classes

__all__ = ["is_wrong", "markdown"]

Found = Mapping[str, Any]
GOAL = 0.9
"""The share of a copy's speed that every row should reach on a GPU."""
_FASTER = 0.95
"""Another kernel is clearly faster where it takes less than so much of the chosen one's time."""


def is_wrong(content: Found) -> bool:
    """Whether a result is not the reference's, or a section or a row failed."""
    sections = content["sections"]
    if any(section["error"] for section in sections.values()):
        return True
    verdict, rows = _found(content, "verify"), _found(content, "rows")
    ways = (way for row in _found(content, "kernels").get("rows", ()) for way in row["kernels"])
    if any(way["difference"] or way["failed"] for way in ways):
        return True
    cases = bool(verdict) and bool(verdict["differences"] or any(one["passed"] is False for one in verdict["probes"]))
    return cases or any(row["difference"] for row in rows.get("rows", ())) or bool(rows.get("failed"))


def markdown(content: Found) -> str:
    """Return a report as a page."""
    about = content["header"]
    lines = [f"# {about['device']['summary']}", ""]
    if about["device"]["software"]:
        lines += ["**A software device.** What it shows is no measure of a GPU; arrays are smaller than there.", ""]
    lines += [f"- {line}" for line in _summary(content)]
    lines += [""]
    for label, text in header_lines(about):
        lines.append(f"{label}: {text}  ")
    lines += [f"features: {', '.join(about['device']['features'])}  "]
    lines += [f"thresholds: {', '.join(f'{name} {value}' for name, value in about['tuning'].items())}  "]
    lines += [f"largest array: {about['options']['most_elements']} elements  ", f"time: {about['time']}"]
    for name, write in _SECTIONS.items():
        if name not in content["sections"]:
            continue
        section = content["sections"][name]
        lines += ["", f"## {_TITLES[name]}", ""]
        if section["error"]:
            lines += [f"**Failed**: {section['error']}", ""]
        if section["found"]:
            lines += write(section["found"])
    return "\n".join(lines) + "\n"


def _found(content: Found, name: str) -> Found:
    found: Found = (content["sections"].get(name) or {}).get("found") or {}
    return found


def _summary(content: Found) -> Iterator[str]:
    end = "" if content["finished"] else ", **stopped early**"
    yield f"{content['seconds']:.0f} s of {content['budget_seconds']:.0f}{end}"
    for name, section in content["sections"].items():
        if section["error"]:
            yield f"**{_TITLES[name]} failed**: {section['error']}"
    if verdict := _found(content, "verify"):
        yield _cases(verdict)
    rows = _found(content, "rows").get("rows", ())
    classed = [row for row in rows if row["class"]]
    if classed:
        shares = [row["share"] for row in classed]
        reached = sum(one >= GOAL for one in shares)
        yield (
            f"{reached} of {len(classed)} problem classes reach {GOAL} of a copy's speed; the median is "
            f"{median(shares):.2f}, the least {min(shares):.2f}"
        )
    if rows:
        wrong = sum(row["difference"] is not None for row in rows)
        yield f"{len(rows) - wrong} of {len(rows)} measured rows have the reference's bits"
    decisions = _found(content, "tune").get("decisions", ())
    changed = [one for one in decisions if one["chosen"] != one["default"]]
    if decisions:
        yield f"tune would change {len(changed)} of {len(decisions)} thresholds"
    ways = [row["kernels"] for row in _found(content, "kernels").get("rows", ())]
    if ways:
        right = [[one for one in each if not (one["difference"] or one["failed"])] for each in ways]
        slower = sum(any((one["times_chosen"] or 1) < _FASTER for one in each) for each in right)
        yield f"another kernel is clearly faster for {slower} of {len(ways)} rows"
    peers = _found(content, "peers")
    if peers:
        measured = [name for name in peers["versions"] if name != "dmlgpu-resident"]
        yield f"other libraries on the GPU: {', '.join(measured) or 'none'}"


def _cases(verdict: Found) -> str:
    ran, wrong = verdict["cases"], sum(one["different"] for one in verdict["verdicts"])
    left = f"; {verdict['planned'] - ran} did not run: {verdict['stopped']}" if verdict["stopped"] else ""
    failed = [one["name"] for one in verdict["probes"] if one["passed"] is False]
    probes = f"; **failed probes**: {', '.join(failed)}" if failed else ""
    return f"{ran - wrong} of {ran} cases have the reference's bits{left}{probes}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    def line(cells: Sequence[object]) -> str:
        return f"| {' | '.join(str(cell).replace('|', '/') for cell in cells)} |"

    return [line(heads), f"|{'---|' * len(heads)}", *map(line, rows)]


def _number(value: float | None, places: int = 2) -> str:
    return "" if value is None else f"{value:.{places}f}"


def _verify(found: Found) -> list[str]:
    lines = [f"{_cases(found)} ({found['seconds']:.0f} s, {counted(found['processes'], 'case')} at a time)", ""]
    signs = {True: "ok", False: "**FAILED**", None: "--"}
    lines += _table(("probe", "", "finding"), [(p["name"], signs[p["passed"]], p["finding"]) for p in found["probes"]])
    if found["differences"]:
        lines += ["", "Differences:", ""]
        lines += [f"- `{one['case']}`: {one['difference']}" for one in found["differences"][:20]]
    return lines


_ROW_NOTES = """\
`of copy` is the time of the fastest copy kernel of the same bytes, measured in turn, by the row's. `traffic` is what
the ledger says that the row moves, by what a copy moves. `bytes of copy` is their product: the bytes a second that the
row moves, by those of the copy. There 1 is a row that waits for nothing but memory."""
_ROW_HEADS = ("ms", "noise", "GB/s", "of copy", "traffic", "bytes of copy", "sectors", "links", "dispatches", "bits")


def _row(row: Found) -> list[str]:
    bits = "same" if row["difference"] is None else f"**WRONG**: {row['difference']}"
    return [
        f"{1e3 * row['seconds']:.4g}",
        f"{100 * row['noise']:.0f} %",
        f"{row['bytes_per_s'] / 1e9:.4g}",
        _number(row["share"]),
        _number(row["traffic"], 3),
        _number(row["ledger_share"]),
        _number(row["sectors"]),
        str(row["serial_links"]),
        " + ".join(row["dispatches"]),
        bits,
    ]


def _rows(found: Found) -> list[str]:
    rows = found["rows"]
    lines = [_ROW_NOTES, ""]
    measured = len(rows) + len(found["failed"])
    if measured < found["planned"]:
        lines += [f"{found['planned'] - measured} of {found['planned']} rows were not begun: the time was over.", ""]
    lines += ["### Problem classes", ""]
    order = [*classes(2**32).values()]
    classed = sorted((row for row in rows if row["class"]), key=lambda row: order.index(row["class"]))
    names = [row["class"] if row["class"] == row["name"] else f"{row['class']}, as {row['name']}" for row in classed]
    lines += _table(("class", *_ROW_HEADS), [(n, *_row(row)) for n, row in zip(names, classed, strict=True)])
    lines += ["", "### Sizes", ""]
    sized = sorted((row for row in rows if row["size"]), key=lambda row: (row["row"]["operator"], row["row"]["shape"]))
    lines += _table(("row", *_ROW_HEADS), [(row["name"], *_row(row)) for row in sized])
    if found["failed"]:
        lines += ["", "### Rows that failed", ""]
        lines += _table(("row", "why"), [(one["name"], one["error"]) for one in found["failed"]])
    warned = [(row["name"], text) for row in rows for text in row["warnings"]]
    if warned:
        lines += ["", "### Warnings", "", *_table(("row", "warning"), warned)]
    return lines


def _tune(found: Found) -> list[str]:
    rows = [
        (
            one["threshold"],
            one["default"],
            one["chosen"],
            f"{one['gain']:.2f} times as fast" if one["chosen"] != one["default"] else "",
            "; ".join(map(_rung, one["rungs"])) or "not",
        )
        for one in found["decisions"]
    ]
    heads = "threshold", "default", "chosen", "gain", "size: ms by the kernel below the threshold, by the one above"
    return [
        f"Nothing was kept. By the {'device' if found['clock'] == 'gpu' else 'host'}'s clock.",
        "",
        *_table(heads, rows),
    ]


def _rung(found: Found) -> str:
    times = f"{found['value']}: {1e3 * found['within']:.3g}, {1e3 * found['beyond']:.3g}"
    return times + _slow_clock(found)


def _slow_clock(found: Found) -> str:
    """Return that a GPU had slowed down while something was measured, if so."""
    lag = found.get("lag", 1.0)
    return f" (slow clock: {lag:.2f} x)" if lag > LAGGING else ""


_KERNEL_NOTES = """\
`of chosen` is the time of the row by that of the plan's own choice, measured in turn. By the device's clock each
dispatch is also measured alone, of up to 64. Ways that would have an invocation go through more than 131,072 elements
are left out."""


def _kernels(found: Found) -> list[str]:
    def cells(row: Found, way: Found) -> list[str]:
        bits = f"**WRONG**: {way['difference']}" if way["difference"] else "same"
        each = [part["seconds"] for part in way["dispatches"]]
        return [
            row["name"] + _slow_clock(row),
            way["kernel"],
            "" if way["seconds"] is None else f"{1e3 * way['seconds']:.4g}",
            _number(way["times_chosen"]),
            ", ".join(dict.fromkeys(part["kernel"] for part in way["dispatches"])),
            "" if None in each else " + ".join(f"{1e3 * seconds:.3g}" for seconds in each),
            f"**failed**: {way['failed']}" if way["failed"] else bits,
        ]

    lines = [_KERNEL_NOTES, f"Times are ms, by the {'device' if found['clock'] == 'gpu' else 'host'}'s clock.", ""]
    if (missing := found["planned"] - len(found["rows"])) > 0:
        lines += [f"{missing} of {found['planned']} rows were not begun: the time was over.", ""]
    heads = "row", "way", "ms", "of chosen", "kernels", "ms of each", "bits"
    return lines + _table(heads, [cells(row, way) for row in found["rows"] for way in row["kernels"]])


def _peers(found: Found) -> list[str]:
    lines = [f"- {name} is left out: {reason}" for name, reason in found["missing"].items()]
    lines += [f"- {name}: {version or 'unknown version'}" for name, version in found["versions"].items()]
    if not found["rows"]:
        return lines
    names = list(found["versions"])

    def cell(row: Found, name: str) -> str:
        if name not in row["samples"]:
            return str(row["failed"].get(name, ""))
        text = f"{1e3 * median(row['samples'][name]):.4g}"
        return text if name == "dmlgpu-resident" else f"{text} ({_number(row['times_ours'].get(name))})"

    lines += [
        "",
        "Data stays on the GPU; by its clock, in turn: ms, and in brackets how many times as long as dmlgpu.",
        "",
    ]
    return lines + _table(
        ("row", *names), [(row["name"], *(cell(row, name) for name in names)) for row in found["rows"]]
    )


_SECTIONS: Mapping[str, Callable[[Found], list[str]]] = {
    "verify": _verify,
    "rows": _rows,
    "tune": _tune,
    "kernels": _kernels,
    "peers": _peers,
}
_TITLES = {
    "verify": "The reference's bits",
    "rows": "Rows against a copy, and what the ledger says",
    "tune": "What tuning would change",
    "kernels": "The same rows by other kernels",
    "peers": "Other libraries on the same GPU",
}
