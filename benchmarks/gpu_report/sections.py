"""What a report measures. Each section is a generator that yields all it has found so far, so that a stop keeps it."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

import dmlgpu
from dmlgpu.bench.clock import Clock
from dmlgpu.bench.machine import machine
from dmlgpu.bench.results import Result, ratios, summarize
from dmlgpu.bench.rows import Row
from dmlgpu.bench.runner import Options, Runner
from dmlgpu.bench.tune import tune
from dmlgpu.cli.verify import jobs_on, never_taken, taken_cases, verified
from dmlgpu.conformance import share, suite
from dmlgpu.runtime.adapters import ENVIRONMENT_VARIABLE
from dmlgpu.runtime.device import Device

from ..peers.resident import RESIDENT
from ..peers.team import Team, environment
from .kernels import compared
from .rows import classes, groups, kernel_rows, peer_rows, sizes

__all__ = ["SECTIONS", "Section", "Task"]

Found = dict[str, Any]
Steps = Generator[Found, None, None]

_PARTS = 8
"""The cases come in so many mixed parts, so that those which are left out for time are of all kinds."""
_OPTIONS = Options(min_samples=5, timeout=3.0, whole=False)
_HOST_COPIES = 6
"""Arrays of a row's size that the host holds at a time: input, reference, result and what they are made of."""
_TUNE_SECONDS = 40.0
_PEER_SAMPLES = 9
_PEER_SECONDS = 5.0
_NAMES = {"sum": "cumsum", "product": "cumprod", "round": "round"}


@dataclass(frozen=True)
class Task:
    """What a section is given.

    Attributes
    ----------
    device : Device
        Opened for this section.
    most : int
        Elements of the largest array.
    seconds : float
        After so many nothing new begins, but for the first row.
    say : callable
        Takes a line about what comes next.
    jobs : int or None
        How many processes share the cases of `verify`; by default as many as ``dmlgpu verify`` has.
    """

    device: Device
    most: int
    seconds: float
    say: Callable[[str], None]
    jobs: int | None = None


def _verify(task: Task) -> Steps:
    cases = taken_cases(task.device, suite())
    task.say(f"{len(cases)} cases")
    mixed = [case for part in range(_PARTS) for case in share(cases, part, _PARTS)]
    jobs = jobs_on(task.device, len(mixed), task.jobs)
    verdict = verified(task.device, mixed, probing=True, jobs=jobs, seconds=task.seconds)
    # How to run a case again would have the path of a driver file in it.
    differences = [{"case": one.case.name, "difference": one.difference} for one in verdict.different]
    left_out = {"left_out": never_taken(task.device)}
    yield verdict.as_dict() | left_out | {"planned": len(mixed), "processes": jobs, "differences": differences}


def _rows(task: Task) -> Steps:
    """Measure rows on the device, and say by the ledger how much of a copy's bandwidth they use."""
    begun = time.monotonic()
    classed, sized, planned = classes(task.most), set(sizes(task.most)), groups(task.most)
    total = sum(map(len, planned))
    runner = Runner(task.device, _OPTIONS)
    rows: list[Found] = []
    failed: list[Found] = []
    found: Found = {"planned": total, "rows": rows, "failed": failed}
    memory = machine()["memory_gib"]
    current = [planned[0][0]]

    def begin(row: Row, phase: str) -> None:
        current[0] = row
        if phase == "compiling":
            task.say(f"{len(rows) + len(failed)} of {total}: {row.name}")

    def fail(members: Sequence[Row], reason: str) -> None:
        failed.extend({"name": row.name, "error": reason} for row in members)

    for members in planned:
        left = list(members)
        needed = _HOST_COPIES * left[0].elements * left[0].itemsize / 2**30
        if memory is not None and needed > memory:
            fail(left, f"needs {needed:.0f} GiB of the computer's memory, which has {memory}")
            left.clear()
        while left:
            if rows and time.monotonic() - begun > task.seconds:
                return
            try:
                with closing(_measured(runner, left, begin)) as results:
                    for result in results:
                        left.remove(result.row)
                        uses = {"class": classed.get(result.row), "size": result.row in sized}
                        rows.append(_entry(result, task.device) | uses)
                        yield found
                        if time.monotonic() - begun > task.seconds:
                            break
            except Exception as error:  # whatever a driver makes of a row: the others still tell something
                lost = [current[0]] if current[0] in left else left  # without copies, none of these can be measured
                fail(lost, _said(error))
                left = [row for row in left if row not in lost]
                yield found


def _measured(runner: Runner, rows: Sequence[Row], begin: Callable[[Row, str], None]) -> Generator[Result, None, None]:
    for result in runner.run(rows, begin):
        if result.row.operator != "copy":
            yield result


def _entry(result: Result, device: Device) -> Found:
    """Return a row as values that JSON can hold, with what the ledger says of it."""
    row, time_ = result.row, result.time
    explained = dmlgpu.explain(_NAMES[row.operator], row.shape, axis=row.axis, dtype=row.type, device=device)
    share_ = result.share or 0.0
    return {
        "name": row.name,
        "row": asdict(row),
        "seconds": time_.median,
        "noise": result.noise,
        "bytes_per_s": row.bytes_moved / time_.median,
        "share": share_,
        "traffic": explained.traffic,
        "ledger_share": explained.traffic * share_,
        "sectors": explained.sectors,
        "serial_links": explained.serial_links,
        "dispatches": result.dispatches,
        "difference": result.difference,
        "warnings": result.warnings,
        "copy": result.copy,
        "samples": result.seconds,
        "copy_samples": result.copy_seconds,
    }


def _tune(task: Task) -> Steps:
    clock = Clock(task.device)
    decisions: list[Found] = []
    found: Found = {"clock": clock.kind, "decisions": decisions}
    task.say("thresholds between kernels")
    for decision in tune(task.device, clock, min(_TUNE_SECONDS, task.seconds)):
        decisions.append(asdict(decision))
        yield found


def _kernels(task: Task) -> Steps:
    begun = time.monotonic()
    clock = Clock(task.device)
    planned = kernel_rows(task.most)
    rows: list[Found] = []
    found: Found = {"clock": clock.kind, "planned": len(planned), "rows": rows}
    task.say("every kernel")
    for row in compared(task.device, planned, clock):
        rows.append(row)
        yield found
        if time.monotonic() - begun > task.seconds:
            return


def _peers(task: Task) -> Steps:
    """Measure other libraries in turn with this one, data staying on the GPU."""
    begun = time.monotonic()
    rows: list[Found] = []
    planned = peer_rows(min(task.most, 2**26))
    found: Found = {"planned": len(planned), "rows": rows}
    task.say(f"loading {', '.join(RESIDENT)}")
    index = str(task.device.description.index)
    with environment({ENVIRONMENT_VARIABLE: index}), Team([*RESIDENT]) as team:
        found["missing"] = dict(team.missing)
        found["versions"] = {name: RESIDENT[name].version() for name in team.names}
        yield found
        if team.names in ([], [next(iter(RESIDENT))]):
            return  # alone, this library is in the rows
        for number, row in enumerate(planned):
            if time.monotonic() - begun > task.seconds:
                return
            task.say(f"{number} of {len(planned)}: {row.name}")
            measured = team.measure(row, _PEER_SAMPLES, _PEER_SECONDS)
            samples = {name: one.seconds for name, one in measured.items() if one.failure is None}
            own = samples.get("dmlgpu-resident", [])
            rows.append(
                {
                    "name": row.name,
                    "samples": samples,
                    "failed": {name: one.failure for name, one in measured.items() if one.failure is not None},
                    "times_ours": {
                        name: summarize(ratios(theirs[: len(own)], own[: len(theirs)])).median
                        for name, theirs in samples.items()
                        if own
                    },
                }
            )
            yield found


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"


@dataclass(frozen=True)
class Section:
    """A section.

    Attributes
    ----------
    run : callable
        Takes a `Task` and yields what it has found.
    weight : int
        Its share of the time that is left, by the weights of the sections that are left.
    """

    run: Callable[[Task], Steps]
    weight: int


SECTIONS: Mapping[str, Section] = {
    "verify": Section(_verify, 3),
    "rows": Section(_rows, 6),
    "tune": Section(_tune, 1),
    "kernels": Section(_kernels, 1),
    "peers": Section(_peers, 1),
}
