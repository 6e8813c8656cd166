"""Measures how long dispatches take: by the device's own timestamps, or by the host's clock where it has none."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import wgpu
from numpy.typing import NDArray

from ..errors import DeviceError, counted
from ..layout import ceil_div
from ..planning.dispatch import Plan
from ..runtime.executor import Step, Zeros, submit
from ..runtime.transfers import mapped
from ..runtime.wgpu_private import map_submitted, timestamp_period
from .touch import Touch

if TYPE_CHECKING:
    from ..runtime.device import Device

__all__ = ["LAGGING", "BufferCopy", "Clock", "Pace", "Work", "elapsed", "work_of"]

_MAX_SPANS = 2000
"""The most dispatches that are measured at once: a query set holds 4096 timestamps, two for each."""
_BUSY_SECONDS = 0.01
"""How much work is submitted at once to keep a GPU busy: more than its host takes to submit it."""
_MOST_TIMES = 512
"""How often it is repeated for that, at most."""
_CALM_SECONDS = 0.5
"""A GPU that has become no faster for so long is at its fastest."""
_MOST_SECONDS = 4.0
"""How long it is kept busy, at most."""
_FASTER, _AS_FAST = 0.99, 1.03
"""Times, by the best so far, that count as faster, and as just as fast: some hundredths are noise."""
LAGGING = 1.1
"""A GPU that takes more than so many times as long as at its fastest has slowed down."""
_TRIES = 5
"""How often work is measured before wrong timestamps are an error: macOS 26 loses some (gfx-rs/wgpu#9414)."""
Measured = TypeVar("Measured")
Span: TypeAlias = Callable[[int], dict[str, Any]]
"""Gives the descriptor of the n-th compute pass that has timestamps."""
_QUERIES = wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC
_MAPPED = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST


@dataclass(frozen=True)
class Work:
    """Dispatches with their buffers chosen, in submissions that are not too long for the device.

    Attributes
    ----------
    batches : tuple of tuple
        The steps of each submission.
    kept : tuple
        The wgpu buffers that the steps use.
    """

    batches: tuple[tuple[Step, ...], ...]
    kept: tuple[Any, ...] = ()

    @property
    def spans(self) -> int:
        """The number of stretches of time that are measured and added up."""
        return len(self.batches)

    def record(self, encoders: Callable[[], Any], span: Span, touch: Touch) -> None:
        """Record each submission into an encoder of its own, with its timestamps."""
        for number, steps in enumerate(self.batches):
            compute = encoders().begin_compute_pass(**span(number))
            for step in steps:
                step.record(compute)
            compute.end()


@dataclass(frozen=True)
class BufferCopy:
    """The device's own copy from buffer to buffer.

    Attributes
    ----------
    source, target : wgpu.GPUBuffer
        The buffers.
    nbytes : int
        How much to copy.
    """

    source: Any
    target: Any
    nbytes: int

    spans = 1  # a class attribute: one submission

    def record(self, encoders: Callable[[], Any], span: Span, touch: Touch) -> None:
        """Record the copy between the ends of two passes: only passes have timestamps everywhere."""
        encoder = encoders()
        stamps = span(0).get("timestamp_writes")

        def stamp(number: int) -> None:
            if stamps is not None:
                end = {"query_set": stamps["query_set"], "end_of_pass_write_index": number}
                compute = encoder.begin_compute_pass(timestamp_writes=end)
                touch.record(compute, self.target)
                compute.end()

        stamp(0)
        encoder.copy_buffer_to_buffer(self.source, 0, self.target, 0, self.nbytes)
        stamp(1)


@dataclass(frozen=True)
class _Trial:
    """One small dispatch, which shows whether timestamps can be trusted."""

    gpu_buffer: Any

    spans = 1  # a class attribute: one submission

    def record(self, encoders: Callable[[], Any], span: Span, touch: Touch) -> None:
        """Record it with its timestamps."""
        compute = encoders().begin_compute_pass(**span(0))
        touch.record(compute, self.gpu_buffer)
        compute.end()


def work_of(device: Device, plan: Plan, source: Any, target: Any) -> Work:
    """Return a plan over two wgpu buffers, ready to be measured, with memory for its state."""
    with device.section:
        kept: tuple[Any, ...] = ()
        scratch = None
        if plan.state_bytes:
            size = max(256, ceil_div(plan.state_bytes, 16) * 16)
            scratch = (device.gpu_device.create_buffer(size=size, usage=wgpu.BufferUsage.STORAGE), 0)
            kept = (scratch[0],)
        steps = _repeated(device._executor.bind(plan, source, target, scratch).steps)
    batches: list[list[Step]] = [[]]
    elements = 0
    for step in steps:
        if batches[-1] and elements + step.planned.elements > device.limits.dispatch_elements:
            batches.append([])
            elements = 0
        batches[-1].append(step)
        elements += step.planned.elements
    return Work(tuple(tuple(batch) for batch in batches), kept)


def _repeated(steps: Sequence[Step]) -> list[Step]:
    """Return those that run each time but the first, as in `Executor.run`. New memory is zero, so they do that time."""
    zeros = Zeros()
    deque(zeros.needed(steps), maxlen=0)
    return list(zeros.needed(steps))


def elapsed(stamps: NDArray[np.uint64]) -> int:
    """Return the ticks between the two timestamps of each span, added up; at least one, as no work takes no time.

    Raises
    ------
    DeviceError
        If a timestamp is 0, or the second one of a span is before the first.

    Examples
    --------
    >>> elapsed(np.array([5, 9, 20, 26], np.uint64)), elapsed(np.array([7, 7], np.uint64))
    (10, 1)
    """
    wrong = _wrong(stamps)
    if wrong.size:
        raise DeviceError(
            f"timestamps of the device are 0 or run backwards for {wrong.size // 2} of "
            f"{counted(stamps.size // 2, 'span')}, such as {wrong[0]} and {wrong[1]}, so it cannot say how long work "
            "takes: use the host's clock (--wall)"
        )
    return max(1, int(np.sum(stamps[1::2] - stamps[::2])))


def _wrong(stamps: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the timestamps of the spans that cannot be: one is 0, or the second is before the first."""
    pairs = stamps.reshape(-1, 2)
    wrong: NDArray[np.uint64] = pairs[(pairs[:, 0] == 0) | (pairs[:, 1] < pairs[:, 0])]
    return wrong.reshape(-1)


class Clock:
    """Measures work on a device.

    Parameters
    ----------
    device : Device
        Where the work runs.
    timestamps : bool
        Whether to use the device's timestamps if it has any.

    Attributes
    ----------
    kind : {"gpu", "wall"}
        The clock. "gpu" measures from the beginning of the first to the end of the last dispatch of each submission,
        added up; "wall" from before the submission until the host knows that all is done.
    reason : str or None
        Why the clock is "wall".
    """

    def __init__(self, device: Device, *, timestamps: bool = True) -> None:
        self._device = device
        self._gpu_device = device.gpu_device
        self._period = timestamp_period(self._gpu_device) if timestamps else None
        self._queries: Any = None
        self._spans = 0
        self._resolved = self._gpu_device.create_buffer(size=16 * _MAX_SPANS, usage=_QUERIES)
        self._mapped = self._gpu_device.create_buffer(size=16 * _MAX_SPANS, usage=_MAPPED)
        self._touch = Touch(self._gpu_device)
        problem = self._problem(timestamps)
        if problem is not None:
            self._period = None
        self.kind = "wall" if self._period is None else "gpu"
        self.reason = None if problem is None else f"{problem}: times are the host's, with submission and waiting"

    def _problem(self, timestamps: bool) -> str | None:
        """Say why timestamps are not used, if they are not: those of macOS 26 are 0, all or some of them."""
        if self._period is None:
            return "the device has no timestamps" if timestamps else "timestamps were not asked for"
        trial = _Trial(self._gpu_device.create_buffer(size=16, usage=wgpu.BufferUsage.STORAGE))
        is_wrong = _wrong(self._run(trial)[1]).size > 0
        return "the device's timestamps of a dispatch are 0 or run backwards" if is_wrong else None

    @property
    def is_of_gpu(self) -> bool:
        """Whether the clock is a GPU's own."""
        return self.kind == "gpu" and not self._device.description.is_software

    def seconds(self, work: Work | BufferCopy) -> float:
        """Run the work once and return how long it took; once more where timestamps are wrong.

        Raises
        ------
        DeviceError
            If they are wrong time and again.
        """
        wall, ticks = self._measured(work)
        return wall if self._period is None else elapsed(ticks) * self._period

    def each(self, work: Work) -> list[float]:
        """Run the work once, a submission for each dispatch, and return how long each took.

        By the device's own clock: empty where it has none. `seconds` is what they take together, which may be less, and
        has the same errors.
        """
        steps = tuple((step,) for batch in work.batches for step in batch)
        if self._period is None or not 0 < len(steps) <= _MAX_SPANS:
            return []
        ticks = self._measured(Work(steps, work.kept))[1]
        return [elapsed(pair) * self._period for pair in ticks.reshape(-1, 2)]

    def _measured(self, work: Work | BufferCopy) -> tuple[float, NDArray[np.uint64]]:
        """Run the work as `_run` does, again while its timestamps are wrong; the last ones may be, too."""
        for _ in range(_TRIES):
            wall, ticks = self._run(work)
            if self._period is None or not _wrong(ticks).size:
                break
        return wall, ticks

    def _run(self, work: Work | BufferCopy | _Trial) -> tuple[float, NDArray[np.uint64]]:
        """Run the work once; return the host's seconds, and the device's timestamps, or any two where it has none."""
        gpu_device = self._gpu_device
        with self._device.section:
            begun: list[Any] = []

            def encoder() -> Any:
                begun.append(gpu_device.create_command_encoder())
                return begun[-1]

            work.record(encoder, self._span(min(work.spans, _MAX_SPANS)), self._touch)
            nbytes = 16
            if self._period is not None:
                nbytes = 16 * min(work.spans, _MAX_SPANS)
                begun[-1].resolve_query_set(self._queries, 0, nbytes // 8, self._resolved, 0)
            begun[-1].copy_buffer_to_buffer(self._resolved, 0, self._mapped, 0, nbytes)
            commands = [one.finish() for one in begun]
            started = time.perf_counter()
            for command in commands:
                submit(gpu_device, [command])
            promise = map_submitted(self._mapped, 0, nbytes)
            with mapped(gpu_device, self._mapped, promise, self._device.lost):
                wall = time.perf_counter() - started
                ticks = np.frombuffer(self._mapped.read_mapped(0, nbytes), np.uint64).copy()
        return wall, ticks

    def _span(self, spans: int) -> Span:
        """Return the descriptor that gives the n-th compute pass its timestamps."""
        if self._period is None:
            return lambda number: {}
        if self._spans < spans:
            self._queries = self._gpu_device.create_query_set(type="timestamp", count=2 * spans)
            self._spans = spans
        queries = self._queries

        def stamps(number: int) -> dict[str, Any]:
            place = {"beginning_of_pass_write_index": 2 * number, "end_of_pass_write_index": 2 * number + 1}
            return {"timestamp_writes": {"query_set": queries, **place}} if number < spans else {}

        return stamps


class Pace:
    """How fast a GPU's processors go: drivers slow down those of a GPU that waits for its host now and then.

    A copy shows that less than what has more to do for each byte, so shares of a copy are wrong then, too. On software
    devices, and where there are no timestamps, nothing is done about it.

    Parameters
    ----------
    clock : Clock
        What measures.
    work : Work
        Work that waits for processors rather than for memory, such as a copy of a word by each invocation.
    """

    def __init__(self, clock: Clock, work: Work) -> None:
        self._clock = clock
        self._work = work
        self._times = 1
        self._best = 0.0

    def rise(self) -> None:
        """Keep the GPU busy until it is as fast as it has been, or becomes no faster."""
        if not self._clock.is_of_gpu:
            return
        is_known = self._best > 0.0
        begun = faster = time.monotonic()
        while time.monotonic() - begun < _MOST_SECONDS and time.monotonic() - faster < _CALM_SECONDS:
            took = self._once()
            if is_known and took <= _AS_FAST * self._best:
                return
            if self._best == 0.0 or took < _FASTER * self._best:
                self._best, faster = took, time.monotonic()
            # By and by: the first time may be wrong, and a submission must not be too long for the device.
            if took * self._times < _BUSY_SECONDS / 2 and self._times < _MOST_TIMES:
                self._times *= 2

    def kept(self, measure: Callable[[], Measured], until: float = math.inf) -> tuple[Measured, float]:
        """Measure while the GPU is at its fastest, and once more if it slows down before a time of `time.monotonic`.

        Returns
        -------
        tuple
            What `measure` returned last, and the `lag` after it.
        """
        for _ in range(2):
            self.rise()
            found = measure()
            lag = self.lag()
            if lag <= LAGGING or time.monotonic() >= until:
                break
        return found, lag

    def lag(self) -> float:
        """Return how many times as long the work takes as when the GPU was at its fastest."""
        if not self._clock.is_of_gpu or self._best == 0.0:
            return 1.0
        return min(self._once() for _ in range(3)) / self._best

    def _once(self) -> float:
        """Return how long the work takes, as part of a submission that repeats it."""
        batches = tuple(batch * self._times for batch in self._work.batches)
        return self._clock.seconds(Work(batches, self._work.kept)) / self._times
