"""What every kernel makes of the same rows, dispatch by dispatch: whether plans take the fastest one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dmlgpu import reference
from dmlgpu.bench.clock import Clock, Pace, Work, work_of
from dmlgpu.bench.results import ratios, summarize
from dmlgpu.bench.rows import Row
from dmlgpu.bench.runner import clear, problem_of
from dmlgpu.bench.workloads import COPIES, Data, padded, plan_copy
from dmlgpu.errors import said
from dmlgpu.planning.dispatch import Plan
from dmlgpu.planning.kernels import serial_steps
from dmlgpu.planning.plan import plan_problem
from dmlgpu.planning.policy import policy_of
from dmlgpu.planning.windows import TILE, Limits
from dmlgpu.runtime.device import Buffer, Device

__all__ = ["compared", "ways"]

Found = dict[str, Any]

_SAMPLES = 5
_FAR_SLOWER = 10.0
"""What takes so many times as long as the chosen kernel at first is not measured again."""
_MOST_STEPS = 2**17
"""Elements that an invocation may go through one after the other: kernels that make few of them do a slice's work are
left out, as nobody would take them and a driver's watchdog might end them."""
_BY_TILES = ("lookback", "reduce_then_scan", "serial", "strip_lookback")
"""Ways that cut slices into tiles."""
_SHAPES = {"widest": 0, "narrowest": 2**32}
"""Strips, by how many are enough."""
_MOST_SPANS = 64
"""Dispatches whose times are told apart."""


def ways(row: Row, limits: Limits) -> dict[str, Plan]:
    """Return the plan that a row has, as "chosen", and those of other kernels that the device's plans ever take.

    Kernels that would do the same, or would take far too long, are left out, and those that cut slices into tiles where
    a slice is one. Strips also come as wide and as narrow as there are.
    """
    problem = problem_of(row)
    found = {"chosen": plan_problem(problem, limits)}
    for kernel in policy_of(limits).kernels:
        if kernel in _BY_TILES and problem.axis.size <= TILE:
            continue
        shapes = {kernel: limits.tuning}
        if kernel == "strips":
            shapes |= {f"{kernel}, {how}": replace(limits.tuning, enough_strips=few) for how, few in _SHAPES.items()}
        for name, tuning in shapes.items():
            plan = plan_problem(problem, replace(limits, tuning=tuning), kernel=kernel)
            if plan not in found.values() and _longest(plan) <= _MOST_STEPS:
                found[name] = plan
    return found


def _longest(plan: Plan) -> int:
    """Return the elements of one invocation, without dispatches that ordinary data leave empty."""
    return sum(
        serial_steps(one)
        for one in plan.passes
        if one.pipeline.kernel == "scan_slices" and dict(one.pipeline.slots)["slices"] == "windows"
    )


def compared(device: Device, rows: Sequence[Row], clock: Clock) -> Iterator[Found]:
    """Measure each row with every kernel, in turn, and yield what was found about it."""
    data = Data()
    for row in rows:
        x = np.ascontiguousarray(data.input(row))
        source, target = (device.allocate(padded(x.nbytes)) for _ in range(2))
        try:
            device.upload(source, 0, x)
            works = {
                name: work_of(device, plan, source.gpu_buffer, target.gpu_buffer)
                for name, plan in ways(row, device.limits).items()
            }
            copy = plan_copy(COPIES[0], x.nbytes, device.limits, x.itemsize)
            pace = Pace(clock, work_of(device, copy, source.gpu_buffer, target.gpu_buffer))
            found = {}
            for name, work in works.items():
                clear(device, target)
                found[name] = _first(clock, pace, work, device, target, data.expected(row))
            lag = _sample(clock, pace, works, found)
            yield {"name": row.name, "lag": lag, "kernels": [{"kernel": name} | one for name, one in found.items()]}
        finally:
            source.release()
            target.release()


def _first(clock: Clock, pace: Pace, work: Work, device: Device, target: Buffer, expected: NDArray[Any]) -> Found:
    """Run a way for the first time, and check its bits; whatever breaks is told, and the other ways go on."""
    entry: Found = {"seconds": None, "times_chosen": None, "dispatches": [], "difference": None, "failed": None}
    names = [step.planned.pipeline.kernel for batch in work.batches for step in batch]
    try:
        clock.seconds(work)
        out = np.empty_like(expected)
        device.download(target, 0, out)
        entry["difference"] = reference.first_difference(out, expected)
        pace.rise()
        entry["seconds"] = clock.seconds(work)
        each: list[float] | list[None] = clock.each(work) if len(names) <= _MOST_SPANS else []
        parts = zip(names, each or [None] * len(names), strict=True)
        entry["dispatches"] = [{"kernel": name, "seconds": seconds} for name, seconds in parts]
    except Exception as error:
        entry["failed"] = f"{type(error).__name__}: {said(error)}"
    return entry


def _sample(clock: Clock, pace: Pace, works: Mapping[str, Work], found: Mapping[str, Found]) -> float:
    """Measure in turn those that are not far slower than the chosen one; return the lag of the GPU's clock."""
    once = found["chosen"]["seconds"]
    if once is None:
        return 1.0
    names = [name for name in works if (found[name]["seconds"] or np.inf) <= _FAR_SLOWER * once]
    samples, lag = pace.kept(lambda: [[clock.seconds(works[name]) for name in names] for _ in range(_SAMPLES)])
    taken = dict(zip(names, map(list, zip(*samples, strict=True)), strict=True))
    for name, entry in found.items():
        if name in taken:
            entry["seconds"] = median(taken[name])
            entry["times_chosen"] = summarize(ratios(taken[name], taken["chosen"])).median
        elif entry["seconds"] is not None:
            entry["times_chosen"] = entry["seconds"] / once
    return lag
