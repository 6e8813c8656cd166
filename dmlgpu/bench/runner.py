"""Measures rows on a device."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import reference
from ..arrays.array import asarray
from ..dtypes import by_name
from ..layout import Layout
from ..planning.plan import plan_problem
from ..planning.problem import (
    ElementwiseProblem,
    Operator,
    RoundingMode,
    ScanOptions,
    ScanProblem,
    round_problem,
    scan_problem,
)
from ..runtime.executor import submit
from .clock import LAGGING, BufferCopy, Clock, Pace, Work, work_of
from .results import Result, ratios, summarize
from .rows import AUTO, Row
from .workloads import COPIES, Data, numpy_call, own_call, padded, plan_copy

if TYPE_CHECKING:
    from ..runtime.device import Buffer, Device

__all__ = ["BUFFER_COPY", "MEMCPY", "REASONS", "Options", "Runner", "clear", "problem_of"]

Begin = Callable[[Row, str], None]

BUFFER_COPY = "buffer-to-buffer"
MEMCPY = "memcpy"
_MOST_SAMPLES = 10
"""The most samples that are taken to get below `max_noise`, as a multiple of `min_samples`."""
_SHORTEST = {"gpu": 50e-6, "wall": 2e-3}
"""Seconds below which a time is too short to trust: timestamps have resolutions of up to a microsecond, and wall time
contains submission and waiting."""
_SLOWER = 1.3
"""How much slower a copy may become during a run before a warning says that the machine is busy or throttled."""

REASONS = {
    "noisy": "noise (interquartile range / median) exceeds --max-noise: close other programs",
    "few samples": "the --timeout came before --min-samples",
    "too short": "the time is near the clock's resolution: use more elements",
    "slow clock": "the GPU's processors took so many times as long as at their fastest, and copies lose less by that: "
    "times and shares are those of a slow GPU",
    "throttled": "the copy took so many times as long as at the start of its group, so the machine was busy or "
    "throttled: shares of the copy allow for that, times do not",
}
"""The meanings of the words that a result's warnings begin with."""


@dataclass(frozen=True)
class Options:
    """How to measure.

    Attributes
    ----------
    min_samples : int
        The fewest samples of a row.
    max_noise : float
        The noise (interquartile range / median) above which sampling goes on, with a warning if it stays above.
    timeout : float
        Seconds after which a row gets no more samples.
    whole : bool
        Whether to measure the whole call, too, and NumPy.
    """

    min_samples: int = 7
    max_noise: float = 0.1
    timeout: float = 30.0
    whole: bool = True


def problem_of(row: Row) -> ScanProblem | ElementwiseProblem:
    """Return the problem of a row over packed tensors."""
    element, layout = by_name(row.type), Layout.packed(row.shape)
    if row.axis is None:
        return round_problem(element, RoundingMode.HALF_EVEN, layout, layout)
    return scan_problem(element, Operator(row.operator), layout, layout, row.axis, ScanOptions(**row.options))


def clear(device: Device, buffer: Buffer) -> None:
    """Fill a buffer with zeros, so that results of an earlier row are not taken for those of the next one."""
    with device.section:
        encoder = device.gpu_device.create_command_encoder()
        encoder.clear_buffer(buffer.gpu_buffer)
        submit(device.gpu_device, [encoder.finish()])


@dataclass
class _Group:
    """Rows of one type and size share buffers and copies."""

    source: Buffer
    target: Buffer
    nbytes: int
    pace: Pace
    copies: dict[str, Work | BufferCopy] = field(default_factory=dict)
    fastest: str = ""
    copy_median: float = 0.0


class Runner:
    """Measures rows on a device.

    Parameters
    ----------
    device : Device
        The device.
    options : Options
        How to measure.
    timestamps : bool
        Whether to use the device's timestamps if it has any.
    """

    def __init__(self, device: Device, options: Options, *, timestamps: bool = True) -> None:
        self.device = device
        self.options = options
        self.clock = Clock(device, timestamps=timestamps)
        self._data = Data()

    def run(self, rows: Iterable[Row], begin: Begin = lambda row, phase: None) -> Iterator[Result]:
        """Yield the results of rows, each group of equal type and size behind those of its copies.

        Parameters
        ----------
        rows : iterable of Row
            What to measure.
        begin : callable
            Called with each row, and "compiling", "checking" and "measuring" before each of these.
        """

        def size(row: Row) -> tuple[str, int]:
            return row.type, row.elements

        ordered = list(rows)
        first: dict[tuple[str, int], int] = {}
        for number, row in enumerate(ordered):
            first.setdefault(size(row), number)
        for (kind, count), members in groupby(sorted(ordered, key=lambda row: first[size(row)]), key=size):
            copy = Row("copy", kind, (count,))
            with ExitStack() as stack:
                begin(copy, "compiling")
                group = self._group(copy, stack)
                yield from self._copies(copy, group, partial(begin, copy))
                # Rows with the same input follow each other, so that it is generated once.
                for row in sorted(members, key=lambda row: row.operator):
                    yield self._row(row, group, partial(begin, row))

    def _group(self, copy: Row, stack: ExitStack) -> _Group:
        nbytes = copy.elements * copy.itemsize
        buffers = []
        for _ in range(2):
            buffers.append(self.device.allocate(padded(nbytes)))
            stack.callback(buffers[-1].release)
        source, target = (buffer.gpu_buffer for buffer in buffers)
        plans = {way.name: plan_copy(way, nbytes, self.device.limits, copy.itemsize) for way in COPIES}
        works = {name: work_of(self.device, plan, source, target) for name, plan in plans.items()}
        group = _Group(buffers[0], buffers[1], nbytes, Pace(self.clock, works[COPIES[0].name]), {**works})
        group.copies[BUFFER_COPY] = BufferCopy(source, target, padded(nbytes))
        return group

    def _copies(self, copy: Row, group: _Group, begin: Callable[[str], None]) -> Iterator[Result]:
        """Measure all ways to copy, in turn, and remember the fastest kernel."""
        begin("checking")
        x = self._data.input(copy)
        self.device.upload(group.source, 0, np.ascontiguousarray(x))
        host = np.empty_like(x)

        def memcpy() -> float:
            started = time.perf_counter()
            np.copyto(host, x)
            return time.perf_counter() - started

        differences: dict[str, str | None] = {}
        for name, work in group.copies.items():
            clear(self.device, group.target)
            self.clock.seconds(work)
            differences[name] = self._difference(group, x, x)
        begin("measuring")
        takers = [_taker(self.clock, work) for work in group.copies.values()]
        names = [*group.copies, MEMCPY]
        samples, lag = self._paced(group, takers, noise_of=0)
        samples.append([memcpy() for _ in samples[0]])  # by itself: the device would wait for the host
        medians = {name: summarize(taken).median for name, taken in zip(names, samples, strict=True)}
        group.fastest = min((way.name for way in COPIES), key=lambda name: medians[name])
        group.copy_median = medians[group.fastest]
        fastest = samples[names.index(group.fastest)]
        for name, taken in zip(names, samples, strict=True):
            row = replace(copy, kernel=name)
            result = Result(row, taken, group.fastest, fastest, [name], difference=differences.get(name))
            yield replace(result, warnings=self._warnings(result, group, lag, wall=name == MEMCPY))

    def _row(self, row: Row, group: _Group, begin: Callable[[str], None]) -> Result:
        begin("compiling")
        x = np.ascontiguousarray(self._data.input(row))
        self.device.upload(group.source, 0, x)
        clear(self.device, group.target)
        plan = plan_problem(problem_of(row), self.device.limits, kernel=None if row.kernel == AUTO else row.kernel)
        work = work_of(self.device, plan, group.source.gpu_buffer, group.target.gpu_buffer)
        self.clock.seconds(work)  # warm, and checked before a copy writes to the same place
        begin("checking")
        difference = self._difference(group, x, self._data.expected(row))
        begin("measuring")
        takers = [_taker(self.clock, one) for one in (group.copies[group.fastest], work)]
        (copied, seconds), lag = self._paced(group, takers)
        result = Result(row, seconds, group.fastest, copied, _dispatches(work))
        if self.options.whole and row.kernel == AUTO:
            result, wrong = self._whole(result, x)
            difference = difference or wrong
        result = replace(result, difference=difference)
        return replace(result, warnings=self._warnings(result, group, lag))

    def _difference(self, group: _Group, x: Any, expected: Any) -> str | None:
        out = np.empty_like(x)
        self.device.download(group.target, 0, out)
        return reference.first_difference(out, expected)

    def _whole(self, result: Result, x: Any) -> tuple[Result, str | None]:
        """Measure whole calls, NumPy in and NumPy out, and their parts."""
        row, device = result.row, self.device
        ours, theirs = own_call(row, device), numpy_call(row)
        there = asarray(x, device)
        found = ours(x)

        def upload() -> None:
            array = asarray(x, device)
            array.reshape(-1)[:1].numpy()  # the upload is complete when the first element can be read back
            array.release()

        takers = [_timed(call) for call in (lambda: theirs(x), lambda: ours(x), upload, there.numpy)]
        numpy, whole, up, down = self._sample(takers, noise_of=1)
        there.release()
        difference = reference.first_difference(np.asarray(found), self._data.expected(row))
        return replace(result, numpy=numpy, whole=whole, upload=up, download=down), difference

    def _paced(
        self, group: _Group, takers: Sequence[Callable[[], float]], noise_of: int | None = None
    ) -> tuple[list[list[float]], float]:
        """Take samples while the GPU is at its fastest, twice if it slows down; return them, and how slow it was."""
        until = time.monotonic() + self.options.timeout
        return group.pace.kept(lambda: self._sample(takers, noise_of, until), until)

    def _sample(
        self, takers: Sequence[Callable[[], float]], noise_of: int | None = None, until: float | None = None
    ) -> list[list[float]]:
        """Take samples in turn until there are enough, the noise is low enough, or the time is over.

        The noise is that of one series, or of the ratios of the first two.
        """
        options = self.options
        samples: list[list[float]] = [[] for _ in takers]
        end = time.monotonic() + options.timeout if until is None else until
        while True:
            for take, taken in zip(takers, samples, strict=True):
                taken.append(take())
            series = ratios(samples[0], samples[1]) if noise_of is None else samples[noise_of]
            enough = len(series) >= options.min_samples
            calm = enough and summarize(series).noise <= options.max_noise
            over = time.monotonic() >= end
            if calm or over or len(series) >= _MOST_SAMPLES * options.min_samples:
                return samples

    def _warnings(self, result: Result, group: _Group, lag: float, *, wall: bool = False) -> list[str]:
        options, found = self.options, []
        kind = "wall" if wall else self.clock.kind
        if result.noise > options.max_noise:
            found.append(f"noisy: {100 * result.noise:.0f} %")
        if len(result.seconds) < options.min_samples:
            found.append(f"few samples: {len(result.seconds)} of {options.min_samples}")
        if result.time.median < _SHORTEST[kind]:
            found.append(f"too short: {1e6 * result.time.median:.3g} us")
        if lag > LAGGING and not wall:
            found.append(f"slow clock: {lag:.2f} x")
        drift = summarize(result.copy_seconds).median / group.copy_median if result.copy_seconds else 1.0
        if drift > _SLOWER:
            found.append(f"throttled: {drift:.2f} x")
        return found


def _taker(clock: Clock, work: Work | BufferCopy) -> Callable[[], float]:
    return lambda: clock.seconds(work)


def _timed(call: Callable[[], object]) -> Callable[[], float]:
    def take() -> float:
        started = time.perf_counter()
        call()
        return time.perf_counter() - started

    return take


def _dispatches(work: Work) -> list[str]:
    names = [step.planned.pipeline.kernel for batch in work.batches for step in batch]
    runs = [(name, len(list(some))) for name, some in groupby(names)]
    return [name if count == 1 else f"{count} x {name}" for name, count in runs]
