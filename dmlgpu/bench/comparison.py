"""Pure: whether a later run is faster or slower than an earlier one, beyond their noise; whether it goes on with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ArgumentError
from .results import Report, Result, median_interval, summarize
from .rows import Row
from .tables import figure, wrapped

__all__ = ["ENOUGH", "Change", "compare", "heading", "measured", "other_machine", "render"]

SMALLEST = 0.03
"""Smaller changes do not count, however certain: layouts of memory and of code cause as much by chance."""

ENOUGH = 6
"""The fewest samples whose range holds the median with 95 %."""

_NAME = 33
_FACTOR, _SHARE = 6, 5
"""The longest factors and shares, with which lines have 79 columns."""


@dataclass(frozen=True)
class Change:
    """How a row changed.

    Attributes
    ----------
    row : Row
        The row.
    verdict : {"SAME", "FASTER", "SLOWER", "WRONG"}
        WRONG if the new result does not have the reference's bits.
    factor : float
        How many times as fast the new one is.
    old, new : (float, float)
        The intervals of the medians: of shares of the copy, or of seconds for copies themselves.
    """

    row: Row
    verdict: str
    factor: float
    old: tuple[float, float]
    new: tuple[float, float]

    @property
    def matters(self) -> bool:
        """Whether the code made it worse. A copy's time tells about the machine only."""
        return self.verdict == "WRONG" or (self.verdict == "SLOWER" and self.row.operator != "copy")


def _speeds(result: Result) -> Sequence[float]:
    # A share of a copy, measured in turn, holds on a machine that is slower today. A copy itself has only its time.
    return [1 / seconds for seconds in result.seconds] if result.row.operator == "copy" else result.shares


def compare(old: Report, new: Report, *, across_machines: bool = False) -> list[Change]:
    """Compare the rows that two reports share.

    A row is FASTER or SLOWER if the intervals that hold the medians with 95 % do not meet, and the medians differ by
    more than 3 %.

    Parameters
    ----------
    old, new : Report
        What to compare.
    across_machines : bool
        Whether to compare shares of the copy although the machines differ; copies are then left out.

    Raises
    ------
    ArgumentError
        If they are of different machines, or share no row.
    """
    difference = other_machine(old.header, new.header)
    if difference is not None and not across_machines:
        raise ArgumentError(
            f"the results are of different machines: {difference}; measure both on one, or give --across-machines to "
            "compare shares of each machine's own copy"
        )
    before = {result.row: result for result in old.results}
    changes = []
    for result in new.results:
        if result.row in before and not (difference and result.row.operator == "copy"):
            changes.append(_change(before[result.row], result))
    if not changes:
        raise ArgumentError("the two results share no row: measure both with the same options")
    return changes


def other_machine(old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    """Return the difference between two headers that makes their times incomparable, or None.

    Examples
    --------
    >>> from dmlgpu.bench.comparison import other_machine
    >>> here = {"machine": {"cores": 2}, "device": {"summary": "a GPU"}, "clock": "gpu"}
    >>> other_machine(here, here | {"clock": "wall"})
    "clock is 'gpu' in the one and 'wall' in the other"
    """
    pairs = [(name, old["machine"].get(name), new["machine"].get(name)) for name in old["machine"]]
    pairs += [("device", old["device"]["summary"], new["device"]["summary"]), ("clock", old["clock"], new["clock"])]
    different = [
        f"{name} is {one!r} in the one and {other!r} in the other" for name, one, other in pairs if one != other
    ]
    return ", ".join(different) or None


def _change(old: Result, new: Result) -> Change:
    one, other = _speeds(old), _speeds(new)
    factor = summarize(other).median / summarize(one).median
    was, now = median_interval(one), median_interval(other)
    apart = was[1] < now[0] or now[1] < was[0]
    verdict = "SAME"
    if new.difference is not None:
        verdict = "WRONG"
    elif apart and abs(factor - 1) > SMALLEST:
        verdict = "FASTER" if factor > 1 else "SLOWER"
    return Change(new.row, verdict, factor, was, now)


def measured(old: Report, header: Mapping[str, Any], rows: Sequence[Row]) -> list[Result]:
    """Return the results of a run that did not finish, with which a run of these rows goes on.

    Parameters
    ----------
    old : Report
        The run that did not finish.
    header : mapping
        That of the run that goes on.
    rows : sequence of Row
        What it is to measure.

    Raises
    ------
    ArgumentError
        If the two are of different machines, versions, options or rows.
    """
    difference = other_machine(old.header, header)
    for name in ("versions", "options"):
        if difference is None and old.header.get(name) != header[name]:
            difference = f"{name} are {old.header.get(name)} in the one and {header[name]} in the other"
    other = [result.row.name for result in old.results if result.row.operator != "copy" and result.row not in rows]
    if difference is None and other:
        difference = f"it has {other[0]}, which is none of these rows"
    if difference is not None:
        raise ArgumentError(
            f"--resume: the unfinished run is another one: {difference}; leave --resume out to begin anew"
        )
    return list(old.results)


def heading(name: str, report: Report) -> str:
    """Return what `compare` compares, in a line: a file's name, when, where and with which dmlgpu it was measured."""
    header = report.header
    versions = header["versions"] if isinstance(header["versions"], dict) else {}
    about = [name, str(header.get("time", "")), f"dmlgpu {versions.get('dmlgpu', 'unknown')}"]
    return ", ".join(filter(None, [*about, str(header["device"]["summary"])]))


def render(changes: Sequence[Change], *, show_copies: bool = False) -> str:
    """Return the changes as a table for people, and the verdicts counted, those by which `compare` decides first.

    Parameters
    ----------
    changes : sequence of Change
        What `compare` found.
    show_copies : bool
        Whether to list copies, too.
    """
    copies = [change for change in changes if change.row.operator == "copy"]
    operators = [change for change in changes if change.row.operator != "copy"]
    lines = [f"{'':{_NAME}} {'verdict':7} {'speed':>8}   of copy, old -> new"]
    for change in [*operators, *(copies if show_copies else [])]:
        name = change.row.name
        detail = ""
        if change.row.operator != "copy":
            a, b, c, d = (figure(one, _SHARE, 2) for one in (*change.old, *change.new))
            detail = f"   {a}-{b} -> {c}-{d}"
        numbers = f" {change.verdict:7} {figure(change.factor, _FACTOR, 2):>{_FACTOR}} x{detail}"
        lines.append(f"{name:{_NAME}}{numbers}" if len(name) <= _NAME else f"{wrapped(name)}\n{'':{_NAME}}{numbers}")
    lines.append("")
    if operators:
        lines.append(wrapped(f"{_count(operators)}: operators by their shares of a copy, which decide"))
    if copies:
        lines.append(wrapped(f"{_count(copies)}: copies by their times, which tell of the machine"))
    return "\n".join(lines)


def _count(changes: Sequence[Change]) -> str:
    counts = {verdict: sum(c.verdict == verdict for c in changes) for verdict in ("SAME", "FASTER", "SLOWER", "WRONG")}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count or verdict != "WRONG")
