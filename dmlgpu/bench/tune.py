"""Measures the thresholds between kernels: at sizes around each, both kernels on the same data, in turn."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..dtypes import by_name
from ..errors import DeviceMemoryError
from ..layout import Layout
from ..planning.dispatch import Plan
from ..planning.plan import plan_problem
from ..planning.problem import Operator, Precision, ScanOptions, ScanProblem, scan_problem
from ..planning.tuning import DEFAULTS
from ..planning.windows import Limits
from .clock import Clock, Pace, work_of
from .workloads import COPIES, elements, plan_copy

if TYPE_CHECKING:
    from ..runtime.device import Buffer, Device

__all__ = ["QUESTIONS", "Decision", "Question", "Rung", "decide", "tune"]

_SAMPLES = 5
_ELEMENTS = 2**22
"""Of the arrays, where a question is not about their number."""
_MOST_ELEMENTS = 2**26
"""Of the arrays, where it is, and where memory allows it: more than a GPU's cache holds."""
_SOFTWARE_ELEMENTS = 2**21
_ENOUGH = 1.05
"""How many times as fast another threshold must be where it differs from the default to take its place."""


@dataclass(frozen=True)
class Question:
    """A threshold, and what to measure for it.

    Attributes
    ----------
    threshold : str
        Its name in `Tuning`.
    meaning : str
        What it decides, for people.
    software : bool
        Whether it is a software driver's.
    values : tuple of int
        Where both kernels are measured.
    is_least : bool
        Whether the threshold is the first value that counts as many; else the last that counts as few.
    problem : callable
        Takes a value and the limits, and returns what to compute.
    """

    threshold: str
    meaning: str
    software: bool
    values: tuple[int, ...]
    is_least: bool
    problem: Callable[[int, Limits], ScanProblem]

    def takes(self, threshold: int, value: int) -> bool:
        """Whether a value is on the threshold's own side."""
        return value >= threshold if self.is_least else value <= threshold

    def beyond(self, value: int) -> int:
        """Return the nearest threshold that leaves a value on the other side."""
        return value + 1 if self.is_least else value - 1

    @property
    def candidates(self) -> tuple[int, ...]:
        """Thresholds that decide in all possible ways at the values."""
        ends = 2 * self.values[-1] if self.is_least else self.values[0] // 2
        return (*self.values, ends)


def _scan(shape: tuple[int, ...], axis: int, precision: Precision = Precision.DEFAULT) -> ScanProblem:
    return _scan_of(Layout.packed(shape), axis, precision)


def _scan_of(layout: Layout, axis: int = 1, precision: Precision = Precision.DEFAULT) -> ScanProblem:
    return scan_problem(by_name("float32"), Operator.SUM, layout, layout, axis, ScanOptions(precision=precision))


QUESTIONS: Sequence[Question] = (
    Question(
        "short_slice",
        "the longest slices with gaps between them that take an invocation each",
        False,
        (64, 128, 256, 512, 1024),
        False,
        lambda value, _: _scan_of(Layout((_ELEMENTS // (value + 1), value), (value + 1, 1))),
    ),
    Question(
        "packed_slice",
        "the longest slices without gaps of which a workgroup takes several",
        False,
        (256, 512, 1024, 2048),
        False,
        lambda value, _: _scan((_ELEMENTS // value, value), 1),
    ),
    Question(
        "lookback_elements",
        "the most elements of few slices whose tiles look back, rather than being read twice",
        False,
        (2**18, 2**20, 2**22, 2**24, _MOST_ELEMENTS),
        False,
        lambda value, _: _scan((value,), 0),
    ),
    Question(
        "many_rows",
        "the fewest slices with a workgroup each",
        False,
        (32, 64, 128, 256, 512),
        True,
        lambda value, _: _scan((value, _ELEMENTS // value), 1),
    ),
    Question(
        "many_slices",
        "the fewest slices side by side with an invocation each, where there are no strips",
        False,
        (1024, 2048, 4096, 8192),
        True,
        # Compensated sums: kernels that are made for columns leave them out, so that the threshold decides about them.
        lambda value, _: _scan((_ELEMENTS // value, value), 0, Precision.COMPENSATED),
    ),
    Question(
        "enough_strips",
        "the fewest strips of columns that are better than narrower ones",
        False,
        (32, 64, 128, 256, 512),
        True,
        lambda value, _: _scan((_ELEMENTS // (32 * value), 32 * value), 0),
    ),
    Question(
        "tile_columns",
        "the fewest columns side by side that are read row by row, however few they are",
        False,
        (8, 16, 64, 256),
        True,
        lambda value, _: _scan((_ELEMENTS // value, value), 0),
    ),
    Question(
        "few_elements",
        "the longest of few slices with an invocation each, in one dispatch",
        True,
        (4096, 8192, 16_384, 32_768),
        False,
        lambda value, _: _scan((value,), 0),
    ),
    Question(
        "slices_a_core",
        "the fewest slices for each core with an invocation each",
        True,
        (1, 2, 4, 8, 16),
        True,
        lambda value, limits: _scan(
            (value * limits.traits.cores, _SOFTWARE_ELEMENTS // (value * limits.traits.cores)), 1
        ),
    ),
    Question(
        "few_slices",
        "the most slices in workgroups of 8 invocations",
        True,
        (512, 1024, 2048, 4096),
        False,
        lambda value, _: _scan((value, _SOFTWARE_ELEMENTS // value), 1),
    ),
)


@dataclass(frozen=True)
class Rung:
    """Both kernels' times at a value: with the threshold's own side, and with the other; and `Pace.lag` after that."""

    value: int
    within: float
    beyond: float
    lag: float = 1.0


@dataclass(frozen=True)
class Decision:
    """What was decided about a threshold.

    Attributes
    ----------
    threshold : str
        Its name.
    default, chosen : int
        What it is without a measurement, and with it.
    gain : float
        How many times as fast the values are, by the mean, for which it decides otherwise; 1 where it is the default.
    rungs : tuple of Rung
        What was measured: none where both sides have the same plans, or there was no time left.
    """

    threshold: str
    default: int
    chosen: int
    gain: float
    rungs: tuple[Rung, ...]


def decide(question: Question, rungs: Sequence[Rung]) -> Decision:
    """Return the best threshold by what was measured; the default unless another one is clearly faster. Pure."""
    default: int = getattr(DEFAULTS, question.threshold)

    def times(threshold: int) -> list[float]:
        return [rung.within if question.takes(threshold, rung.value) else rung.beyond for rung in rungs]

    def gain(threshold: int) -> float:
        pairs = zip(times(default), times(threshold), strict=True)
        ratios = [math.log(before / after) for before, after in pairs if before != after]
        return math.exp(statistics.fmean(ratios)) if ratios else 1.0

    def total(threshold: int) -> float:
        return sum(map(math.log, times(threshold)))

    # Of equally good ones, the one nearest to the default.
    best = min(question.candidates, key=lambda t: (total(t), abs(math.log((t + 1) / (default + 1)))))
    if not rungs or gain(best) < _ENOUGH or total(best) >= total(default):
        best = default
    return Decision(question.threshold, default, best, gain(best), tuple(rungs))


def tune(device: Device, clock: Clock, seconds: float) -> Iterator[Decision]:
    """Measure every threshold of a device's kind, and yield each decision.

    Parameters
    ----------
    device : Device
        The device.
    clock : Clock
        Its clock.
    seconds : float
        No kernel is compiled or measured after so many, of which each question has an equal share of what is left.
    """
    limits, tuning, end = device.limits, DEFAULTS, time.monotonic() + seconds
    questions = [question for question in QUESTIONS if question.software == limits.software]
    least = _SOFTWARE_ELEMENTS if limits.software else _ELEMENTS
    data = elements("sum", "float32", least)
    source, target = _arrays(device, data.nbytes, data.nbytes if limits.software else 4 * _MOST_ELEMENTS)
    try:
        for begin in range(0, source.nbytes, data.nbytes):
            device.upload(source, begin, data)
        copy = plan_copy(COPIES[0], data.nbytes, limits)
        pace = Pace(clock, work_of(device, copy, source.gpu_buffer, target.gpu_buffer))
        for number, question in enumerate(questions):
            rungs = []
            share = time.monotonic() + (end - time.monotonic()) / (len(questions) - number)
            # The values that decide about all beyond them come first.
            for value in question.values[:: 1 if question.is_least else -1]:
                problem = question.problem(value, limits)
                sides = [
                    plan_problem(problem, replace(limits, tuning=replace(tuning, **{question.threshold: threshold})))
                    for threshold in (value, question.beyond(value))
                ]
                fits = max(map(_end, sides)) <= source.nbytes
                if sides[0] != sides[1] and fits and time.monotonic() < share:
                    times, lag = _times(device, clock, pace, sides, source, target, share)
                    rungs.append(Rung(value, times[0], times[1], lag))
            decision = decide(question, sorted(rungs, key=lambda rung: rung.value))
            tuning = replace(tuning, **{question.threshold: decision.chosen})
            yield decision
    finally:
        source.release()
        target.release()


def _arrays(device: Device, least: int, most: int) -> tuple[Buffer, Buffer]:
    """Return two arrays of `most` bytes, or of a quarter as often as memory has no room, down to `least`."""
    try:
        source = device.allocate(most)
        try:
            return source, device.allocate(most)
        except DeviceMemoryError:
            source.release()
            raise
    except DeviceMemoryError:
        if most <= least:
            raise
    return _arrays(device, least, max(least, most // 4))


def _end(plan: Plan) -> int:
    """Return the bytes of an array that a plan needs."""
    return max(part.end for one in plan.passes for part in (one.input, one.output) if part)


def _times(
    device: Device, clock: Clock, pace: Pace, plans: Sequence[Plan], source: Buffer, target: Buffer, until: float
) -> tuple[list[float], float]:
    """Return the median time of each plan, measured in turn, and the lag; a first run of each compiles it."""
    works = [work_of(device, plan, source.gpu_buffer, target.gpu_buffer) for plan in plans]
    for work in works:
        clock.seconds(work)
    samples, lag = pace.kept(lambda: [[clock.seconds(work) for work in works] for _ in range(_SAMPLES)], until)
    return [max(statistics.median(each), 1e-9) for each in zip(*samples, strict=True)], lag
