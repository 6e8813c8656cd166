"""The verdict of ``dmlgpu verify``, for people and for bug reports."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import dmlgpu

from ..bench.tables import WIDTH, wrapped
from ..conformance import Outcome, Probe
from ..errors import counted
from .console import GAP, columns

if TYPE_CHECKING:
    from ..runtime.device import Device

__all__ = ["Verdict", "driver_of", "reproduction"]

_SHOWN = 10
_DAWN = ", through Dawn "
_PAGE = ", through a page in "
_SIGNS = {True: "ok", False: "FAILED", None: "--"}


def reproduction(device: str, case: str, driver: str = "") -> str:
    """Return the one line that runs a case on a device again; `driver` is what `driver_of` says of it."""
    if _PAGE in driver:
        return f"python scripts/in_browser.py --case {_quoted(case)}"
    file = os.environ.get("VK_DRIVER_FILES")
    # No line for both shells of Windows can begin with a variable.
    prefix = f"VK_DRIVER_FILES={_quoted(file)} " if file and os.name == "posix" else ""
    if _DAWN in driver:
        prefix += "python scripts/on_dawn.py "
    return f"{prefix}dmlgpu verify --device {_quoted(device)} --case {_quoted(case)}"


def _quoted(argument: str) -> str:
    """Return an argument as this system's shells take it: those of Windows know no single quotes, or not all."""
    return shlex.quote(argument) if os.name == "posix" else subprocess.list2cmdline([argument])


def driver_of(device: Device) -> str:
    """Return the driver of a device as it names itself, and what lies between it and wgpu's API."""
    return f"{device.description.driver or 'unnamed driver'}, through {device.implementation}"


@dataclass(frozen=True)
class Verdict:
    """The findings of a run.

    Attributes
    ----------
    device : str
        The adapter's summary.
    planned : int
        The number of cases that were to run.
    probes : sequence of Probe
        What the probes found.
    outcomes : sequence of Outcome
        What came of the cases that ran.
    seconds : float
        The time it took.
    stopped : str or None
        Why not all cases ran.
    driver : str
        What `driver_of` says.
    left_out : sequence of str
        Kernels of which no case ran, because they are never taken on the device.
    """

    device: str
    planned: int
    probes: Sequence[Probe]
    outcomes: Sequence[Outcome]
    seconds: float
    stopped: str | None = None
    driver: str = ""
    left_out: Sequence[str] = ()

    @property
    def different(self) -> list[Outcome]:
        """The cases that do not have the reference's bits."""
        return [outcome for outcome in self.outcomes if outcome.difference is not None]

    @property
    def passed(self) -> bool:
        """Whether every case has the reference's bits and no probe failed."""
        failed = any(probe.passed is False for probe in self.probes)
        return not failed and not self.different and self.stopped is None

    def cells(self) -> dict[str, dict[str, tuple[int, int]]]:
        """Return, by element type and by operator and kernel, the cases with the reference's bits and all cases."""
        table: dict[str, dict[str, tuple[int, int]]] = {}
        for outcome in self.outcomes:
            row = table.setdefault(outcome.case.dtype, {})
            right, every = row.get(outcome.case.column, (0, 0))
            row[outcome.case.column] = (right + (outcome.difference is None), every + 1)
        return table

    def render(self) -> str:
        """Return the verdict as text for people; names of cases and commands alone may be longer than a line."""
        lines = [wrapped(f"dmlgpu {dmlgpu.__version__} on {self.device}", indent=2)]
        lines += [wrapped(f"driver: {self.driver}", indent=2), ""] if self.driver else [""]
        if self.probes:
            width = max(len(probe.name) for probe in self.probes)
            for probe in self.probes:
                label = f"  {_SIGNS[probe.passed]:<6}  {probe.name:<{width}}  "
                lines.append(wrapped(probe.finding, label, len(label)))
            lines.append("")
        lines += [*self._tables(), ""]
        different = self.different
        for outcome in self._shown():
            lines += [outcome.case.name, wrapped(outcome.difference or "", "  ", 2)]
            lines += [f"  {reproduction(self.device, outcome.case.name, self.driver)}"]
        if len(different) > len(self._shown()):
            lines.append(f"and {counted(len(different) - len(self._shown()), 'more case')}, which --json FILE lists")
        if self.stopped is not None:
            left = f"{self.planned - len(self.outcomes)} of {self.planned} cases did not run"
            lines.append(wrapped(f"{self.stopped}; {left}"))
        if self.left_out:
            kernels = ", ".join(self.left_out)
            lines.append(wrapped(f"not run: kernels that are never taken on this device ({kernels}): --every-kernel"))
        failed = [probe.name for probe in self.probes if probe.passed is False]
        if failed:
            lines.append(wrapped(f"failed probes: {', '.join(failed)}"))
        right = len(self.outcomes) - len(different)
        of = "case has" if len(self.outcomes) == 1 else "cases have"
        summary = f"{right} of {len(self.outcomes)} {of} the reference's bits ({self.seconds:.0f} s)"
        return "\n".join([*lines, f"{'PASSED' if self.passed else 'FAILED'}: {summary}"])

    def _shown(self) -> list[Outcome]:
        """Return the first different case of each operator, kernel and type, as far as there is room."""
        first: dict[tuple[str, str], Outcome] = {}
        for outcome in self.different:
            first.setdefault((outcome.case.column, outcome.case.dtype), outcome)
        return list(first.values())[:_SHOWN]

    def _tables(self) -> list[str]:
        """Return a table for each operator with its kernels, and one for those without; cut where they are too wide."""
        table = self.cells()
        kernels: dict[str, dict[str, str]] = {"sum": {}, "product": {}, "": {}}
        for name in sorted(
            {outcome.case.column for outcome in self.outcomes}, key=lambda name: (name == "convert", name)
        ):
            operator, _, kernel = name.rpartition(" ")
            kernels[operator][name] = kernel
        lines = ["cases with the reference's bits, by operator, type (of the input) and kernel"]
        for operator, named in kernels.items():
            rows = {dtype: cells for dtype, cells in table.items() if not named.keys().isdisjoint(cells)}
            found = [[operator, *rows]]
            for name, kernel in named.items():
                found.append([kernel, *(_cell(cells.get(name)) for cells in rows.values())])
            for part in _side_by_side(found) if rows else ():
                lines += ["", *columns(part, right=True)]
        return lines

    def json(self, information: Mapping[str, Any]) -> str:
        """Return all that was found, with what ``dmlgpu info --json`` says, as JSON."""
        return json.dumps(self.as_dict() | {"info": information}, indent=1)

    def as_dict(self) -> dict[str, Any]:
        """Return all that was found as values that JSON can hold."""
        return {
            "passed": self.passed,
            "device": self.device,
            "driver": self.driver,
            "seconds": round(self.seconds, 1),
            "probes": [asdict(probe) for probe in self.probes],
            "cases": len(self.outcomes),
            "stopped": self.stopped,
            "left_out": list(self.left_out),
            "verdicts": [
                {"type": dtype, "operator": column, "cases": every, "different": every - right}
                for dtype, cells in self.cells().items()
                for column, (right, every) in cells.items()
            ],
            "differences": [
                {
                    "case": outcome.case.name,
                    "difference": outcome.difference,
                    "reproduce": reproduction(self.device, outcome.case.name, self.driver),
                }
                for outcome in self.different
            ],
        }


def _side_by_side(columns_: Sequence[Sequence[str]]) -> Iterator[list[tuple[str, ...]]]:
    """Yield the rows of tables that are no wider than a line, each of which begins with the first of the columns."""
    first, *others = columns_
    part = [first]
    for column in others:
        widths = [max(map(len, one)) + GAP for one in (*part, column)]
        if len(part) > 1 and sum(widths) - GAP > WIDTH:
            yield list(zip(*part, strict=True))
            part = [first]
        part.append(column)
    yield list(zip(*part, strict=True))


def _cell(found: tuple[int, int] | None) -> str:
    """Write how many cases are right, and of how many if some are not."""
    if found is None:
        return "-"
    right, every = found
    return str(every) if right == every else f"{right} of {every}"
