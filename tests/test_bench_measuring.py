"""The ways to copy, the clock, and what samples say."""

from __future__ import annotations

import signal
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dmlgpu.bench import clock as clock_module
from dmlgpu.bench import runner as runner_module
from dmlgpu.bench.clock import BufferCopy, Clock, Pace, Work, work_of
from dmlgpu.bench.results import median_interval, ratios, summarize
from dmlgpu.bench.rows import Row
from dmlgpu.bench.runner import Options, Runner
from dmlgpu.bench.workloads import COPIES, GRAIN, Copy, padded, plan_copy
from dmlgpu.dtypes import by_name
from dmlgpu.errors import DeviceError
from dmlgpu.layout import Layout
from dmlgpu.planning.plan import plan_problem
from dmlgpu.planning.problem import Operator, scan_problem
from dmlgpu.planning.windows import Limits
from dmlgpu.runtime.device import Device


class TestCopies:
    def test_there_are_enough_of_them(self) -> None:
        assert len({(copy.unit, copy.units, copy.stride) for copy in COPIES}) >= 4
        assert all(GRAIN % copy.workgroup_bytes == 0 for copy in COPIES)

    @pytest.mark.parametrize("copy", COPIES, ids=lambda copy: copy.name)
    def test_large_copies_are_cut(self, copy: Copy) -> None:
        limits = Limits(binding_bytes=2**20 + 4, dispatch_elements=2**30)
        plan = plan_copy(copy, 5 * 2**20 + 1, limits)
        assert [one.output.offset for one in plan.passes] == [i * 2**20 for i in range(6)]
        assert sum(one.output.size for one in plan.passes) == padded(5 * 2**20 + 1)
        assert all(one.input == one.output for one in plan.passes)
        small = plan_copy(copy, 2**20, Limits(dispatch_elements=2**15), itemsize=2)
        assert {one.elements for one in small.passes} == {2**15}

    @pytest.mark.parametrize("copy", COPIES, ids=lambda copy: copy.name)
    @pytest.mark.parametrize("nbytes", [4, 4096, 4100, 300_000])
    def test_every_byte_arrives(self, device: Device, copy: Copy, nbytes: int) -> None:
        x = np.random.default_rng(nbytes).integers(0, 256, padded(nbytes), np.uint8)
        source, target = device.allocate(x.nbytes), device.allocate(x.nbytes)
        device.upload(source, 0, x)
        plan = plan_copy(copy, nbytes, Limits(binding_bytes=2**17, offset_alignment=256))
        assert Clock(device).seconds(work_of(device, plan, source.gpu_buffer, target.gpu_buffer)) > 0
        out = np.zeros_like(x)
        device.download(target, 0, out)
        np.testing.assert_array_equal(out, x)
        source.release()
        target.release()


def stamped(monkeypatch: pytest.MonkeyPatch, stamps: list[tuple[int, ...]]) -> list[Any]:
    """Have a device's timestamps be these in turn, then the last ones; give the work of each run. Nothing runs."""
    runs: list[Any] = []

    def run(clock: Clock, work: Any) -> Any:
        runs.append(work)
        return 1.0, np.array(stamps[min(len(runs), len(stamps)) - 1], np.uint64)

    monkeypatch.setattr(clock_module, "timestamp_period", lambda gpu_device: 1e-9)
    monkeypatch.setattr(Clock, "_run", run)
    return runs


class TestClock:
    def test_a_device_with_timestamps(self, device: Device) -> None:
        clock = Clock(device)
        has = "timestamp-query" in device.gpu_device.features
        assert clock.kind == ("gpu" if has else "wall")
        assert (clock.reason is None) == has

    def test_a_device_without_timestamps_says_so(self, modest_device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("dmlgpu.bench.clock.timestamp_period", lambda gpu_device: None)
        clock = Clock(modest_device)
        assert clock.kind == "wall"
        assert clock.reason is not None
        assert clock.reason.startswith("the device has no timestamps: times are the host's")
        source, target = (modest_device.allocate(GRAIN).gpu_buffer for _ in range(2))
        assert clock.seconds(BufferCopy(source, target, GRAIN)) > 0
        assert clock.seconds(work_of(modest_device, plan_copy(COPIES[0], 64, Limits()), source, target)) > 0

    def test_timestamps_can_be_refused(self, device: Device) -> None:
        clock = Clock(device, timestamps=False)
        assert clock.kind == "wall"
        assert clock.reason is not None
        assert clock.reason.startswith("timestamps were not asked for")

    @pytest.mark.parametrize("stamps", [(0, 0), (0, 5), (5, 0), (9, 5)])
    def test_a_device_with_wrong_timestamps_says_so(
        self, stamps: tuple[int, int], device: Device, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As Metal does for passes without a dispatch, and macOS 26 for any."""
        stamped(monkeypatch, [stamps])
        clock = Clock(device)
        assert clock.kind == "wall"
        assert clock.reason == (
            "the device's timestamps of a dispatch are 0 or run backwards: times are the host's, with submission and "
            "waiting"
        )
        stamped(monkeypatch, [(5, 5)])
        assert Clock(device).kind == "gpu"

    def test_wrong_timestamps_are_taken_again(self, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
        stamped(monkeypatch, [(1, 2)])
        clock, work = Clock(device), Work(((ONE_STEP,), (ONE_STEP,)))
        runs = stamped(monkeypatch, [(1, 4, 0, 0), (9, 4, 9, 9), (1, 4, 5, 9)])
        assert clock.seconds(work) == pytest.approx(7e-9)
        assert len(runs) == 3
        stamped(monkeypatch, [(0, 4, 5, 9), (1, 4, 5, 9)])
        assert clock.each(work) == pytest.approx([3e-9, 4e-9])

    def test_timestamps_that_stay_wrong_are_an_error(self, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
        stamped(monkeypatch, [(1, 2)])
        clock, work = Clock(device), Work(((ONE_STEP,), (ONE_STEP,)))
        message = (
            "timestamps of the device are 0 or run backwards for 1 of [12] spans?, such as 0 and 4, so it cannot say "
            r"how long work takes: use the host's clock \(--wall\)"
        )
        for measure in clock.seconds, clock.each:
            runs = stamped(monkeypatch, [(0, 4, 5, 9)])
            with pytest.raises(DeviceError, match=message):
                measure(work)
            assert len(runs) == clock_module._TRIES

    @pytest.mark.parametrize("is_copy", [False, True])
    def test_no_pass_with_timestamps_is_empty(
        self, is_copy: bool, device: Device, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        source, target = (device.allocate(GRAIN) for _ in range(2))
        passes: list[list[str]] = []
        encoders = type(device.gpu_device.create_command_encoder())
        begin = encoders.begin_compute_pass

        def noted(encoder: Any, **options: Any) -> Any:
            compute = begin(encoder, **options)
            passes.append(["stamps"] * ("timestamp_writes" in options))
            dispatch = compute.dispatch_workgroups
            compute.dispatch_workgroups = lambda *grid: (passes[-1].append("dispatch"), dispatch(*grid))
            return compute

        monkeypatch.setattr(encoders, "begin_compute_pass", noted)
        clock = Clock(device)
        work: Any = BufferCopy(source.gpu_buffer, target.gpu_buffer, GRAIN)
        if not is_copy:
            work = work_of(device, plan_copy(COPIES[0], GRAIN, Limits()), source.gpu_buffer, target.gpu_buffer)
        clock.seconds(work)
        stamps = ["stamps"] * (clock.kind == "gpu")
        assert passes == [[*stamps, "dispatch"]] * (len(stamps) * (1 + 2 * is_copy) + (not is_copy))
        source.release()
        target.release()

    def test_the_devices_own_copy_copies(self, device: Device) -> None:
        x, out = np.arange(1, 17, dtype=np.uint32), np.empty(16, np.uint32)
        source, target = (device.allocate(64) for _ in range(2))
        device.upload(source, 0, x)
        assert Clock(device).seconds(BufferCopy(source.gpu_buffer, target.gpu_buffer, 64)) > 0
        device.download(target, 0, out)
        np.testing.assert_array_equal(out, x)
        source.release()
        target.release()

    @pytest.mark.parametrize("look", [1, 2], ids=["submitting", "reading"])
    def test_an_interrupt_leaves_it_usable(self, device: Device, monkeypatch: pytest.MonkeyPatch, look: int) -> None:
        source, target = (device.allocate(64) for _ in range(2))
        clock, copy, looks = Clock(device), BufferCopy(source.gpu_buffer, target.gpu_buffer, 64), 0

        def interrupted() -> float:
            nonlocal looks
            looks += 1
            if looks == look:
                signal.raise_signal(signal.SIGINT)
            return time.monotonic()

        monkeypatch.setattr("dmlgpu.bench.clock.time", SimpleNamespace(perf_counter=interrupted))
        with pytest.raises(KeyboardInterrupt):
            clock.seconds(copy)
        assert clock._mapped.map_state == "unmapped"
        assert clock.seconds(copy) > 0
        source.release()
        target.release()

    def test_plans_with_state_in_several_submissions(self, device: Device) -> None:
        x = np.arange(300_000, dtype=np.int32)
        layout = Layout.packed(x.shape)
        problem = scan_problem(by_name("int32"), Operator.SUM, layout, layout, axis=0)
        source, target = device.allocate(x.nbytes), device.allocate(x.nbytes)
        device.upload(source, 0, x)
        plan = plan_problem(problem, Limits(binding_bytes=2**20 - 256))
        work = work_of(device, plan, source.gpu_buffer, target.gpu_buffer)
        assert sum(map(len, work.batches)) == len(plan.passes) > 1
        copy = BufferCopy(source.gpu_buffer, target.gpu_buffer, x.nbytes)
        clock = Clock(device)
        copied, scanned = ([clock.seconds(one) for _ in range(2)] for one in (copy, work))
        assert len(copied) == len(scanned) == 2
        each = clock.each(work)
        assert len(each) == (len(plan.passes) if clock.kind == "gpu" else 0)
        assert all(seconds > 0 for seconds in each)
        out = np.zeros_like(x)
        device.download(target, 0, out)
        np.testing.assert_array_equal(out, np.cumsum(x, dtype=np.int32))
        source.release()
        target.release()


ONE_STEP: Any = (None,)


class Governed(Clock):
    """The clock of a GPU whose driver speeds it up while it is busy, down to its fastest, and never otherwise."""

    is_of_gpu = True

    def __init__(self, slowness: float, fastest: float = 1.0, step: float = 0.1) -> None:
        self.slowness, self.fastest, self.step = slowness, fastest, step
        self.now, self.runs = 0.0, 0

    def seconds(self, work: Any) -> float:
        steps = len(work.batches[0])
        took = 0.0001 * self.slowness * steps + 0.0005  # a submission costs something by itself
        self.now += took + 0.001
        self.runs += 1
        if steps > 1:
            self.slowness = max(self.fastest, self.slowness - self.step)
        return took


def governed(clock: Governed, monkeypatch: pytest.MonkeyPatch) -> Pace:
    monkeypatch.setattr(clock_module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return Pace(clock, Work((ONE_STEP,)))


class TestPace:
    def test_a_slow_gpu_is_kept_busy_until_it_is_fast(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = Governed(3.0)
        pace = governed(clock, monkeypatch)
        pace.rise()
        assert clock.slowness == 1.0
        assert pace.lag() == pytest.approx(1.0)
        assert clock_module._CALM_SECONDS <= clock.now < clock_module._MOST_SECONDS

    def test_a_fast_one_is_not_kept(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = Governed(1.0)
        pace = governed(clock, monkeypatch)
        pace.rise()
        runs = clock.runs
        pace.rise()
        assert clock.runs == runs + 1
        assert pace.lag() == pytest.approx(1.0)

    def test_one_that_slows_down_is_sped_up_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = Governed(2.0)
        pace = governed(clock, monkeypatch)
        pace.rise()
        clock.slowness, clock.step = 1.8, 0.0
        assert 1.5 < pace.lag() < 1.8
        clock.step = 0.1
        pace.rise()
        assert pace.lag() == pytest.approx(1.0, rel=0.05)

    @pytest.mark.parametrize(("slow_tries", "tries"), [(0, 1), (1, 2), (2, 2)])
    def test_what_a_slow_gpu_does_is_measured_twice(
        self, slow_tries: int, tries: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock = Governed(1.0)
        pace = governed(clock, monkeypatch)
        measured: list[float] = []

        def measure() -> int:
            measured.append(clock.slowness)
            clock.slowness, clock.step = (1.5, 0.0) if len(measured) <= slow_tries else (1.0, 0.1)
            return len(measured)

        monkeypatch.setattr(pace, "rise", lambda rise=pace.rise: (setattr(clock, "step", 0.1), rise()))
        found, lag = pace.kept(measure)
        assert measured == pytest.approx([1.0] * tries)
        assert found == tries
        assert (lag > clock_module.LAGGING) == (slow_tries == 2)
        assert pace.kept(measure, until=clock.now)[0] == tries + 1  # the time is over

    @pytest.mark.parametrize("step", [0.0, 0.001])
    def test_one_that_stays_slow_is_given_up(self, step: float, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = Governed(1.0)
        pace = governed(clock, monkeypatch)
        pace.rise()
        clock.slowness, clock.step, began = 5.0, step, clock.now
        pace.rise()
        assert clock.now - began <= clock_module._MOST_SECONDS + 0.1
        assert pace.lag() > 2

    def test_no_submission_is_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Even where the first time was wrong."""
        clock = Governed(1.0)
        pace = governed(clock, monkeypatch)
        times = iter([1e-9])
        longest, seconds = [0.0], clock.seconds

        def measured(work: Any) -> float:
            took = next(times, None) or seconds(work)
            longest[0] = max(longest[0], 0.0001 * len(work.batches[0]))
            return took

        monkeypatch.setattr(clock, "seconds", measured)
        pace.rise()
        assert clock_module._BUSY_SECONDS / 4 < longest[0] <= clock_module._BUSY_SECONDS

    @pytest.mark.parametrize("timestamps", [False, True])
    def test_software_and_hosts_have_no_pace(self, timestamps: bool, device: Device) -> None:
        clock = Clock(device, timestamps=timestamps)
        assert clock.is_of_gpu == (timestamps and not device.description.is_software)
        if not clock.is_of_gpu:
            pace = Pace(clock, Work(()))  # which would not run
            pace.rise()
            assert pace.lag() == 1

    @pytest.mark.parametrize(("lags", "tries"), [((1.0,), 1), ((1.5, 1.0), 2), ((1.5, 1.4), 2)])
    def test_rows_of_a_slow_gpu_are_measured_twice(
        self, lags: tuple[float, ...], tries: int, device: Device, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What stays slow is told; what was slow once is forgotten."""
        found: list[float] = []

        def lag(_: Pace) -> float:
            found.append(lags[len(found) % len(lags)])
            return found[-1]

        monkeypatch.setattr(Pace, "lag", lag)
        runner = Runner(device, Options(min_samples=1, max_noise=1e9, whole=False))
        results = [*runner.run([Row("sum", "float32", (4096,), 0)])]
        assert len(found) == 2 * tries  # of the copies, and of the row
        slow = f"slow clock: {lags[-1]:.2f} x"
        assert "slow clock" in runner_module.REASONS
        for result in results:
            is_slow = lags[-1] > 1.1 and result.row.kernel != runner_module.MEMCPY
            assert (slow in result.warnings) == is_slow


class TestSamples:
    def test_a_summary(self) -> None:
        summary = summarize([4.0, 1.0, 2.0, 3.0, 100.0])
        assert (summary.median, summary.minimum, summary.count) == (3.0, 1.0, 5)
        assert summary.noise == pytest.approx(2 / 3)

    def test_ratios_are_taken_pair_by_pair(self) -> None:
        assert ratios([2.0, 30.0], [1.0, 10.0]) == [2.0, 3.0]
        with pytest.raises(ValueError, match="zip"):
            ratios([1.0], [1.0, 2.0])

    @pytest.mark.parametrize(("count", "cut"), [(1, 0), (5, 0), (7, 0), (9, 1), (20, 5), (100, 39)])
    def test_the_interval_of_a_median(self, count: int, cut: int) -> None:
        """The ranks of the sign test's tables."""
        values = [float(i) for i in range(count)]
        assert median_interval(values[::-1]) == (float(cut), float(count - 1 - cut))

    def test_the_interval_covers_as_often_as_it_says(self) -> None:
        rng = np.random.default_rng(0)
        hits = 0
        for _ in range(2000):
            low, high = median_interval(list(rng.exponential(size=25)))
            hits += low <= np.log(2) <= high
        assert hits >= 0.95 * 2000
