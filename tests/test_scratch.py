"""Scratch memory that a look-back leaves zero for the next one, and clears only where it may hold anything else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dmlgpu
from dmlgpu import dtypes, reference
from dmlgpu.layout import Layout
from dmlgpu.planning.dispatch import Pass, PipelineKey, Plan
from dmlgpu.planning.plan import plan_problem
from dmlgpu.planning.problem import Operator, ScanOptions, ScanProblem, scan_problem
from dmlgpu.planning.scan import ScanPlanner
from dmlgpu.planning.windows import TILE, Limits, Range
from dmlgpu.runtime import executor
from dmlgpu.runtime.device import Device
from dmlgpu.runtime.executor import Step, Zeros

from .harness import expected_scan, numbers


def look_back(x: NDArray[Any], operator: str = "sum", *, exclusive: bool = False, axis: int = 1) -> ScanProblem:
    layout = Layout.packed(x.shape)
    options = ScanOptions(exclusive=exclusive)
    return scan_problem(dtypes.by_dtype(x.dtype), Operator(operator), layout, layout, axis, options)


class Memory:
    """A model of scratch memory: dispatches write to all that they bind, but what they clear."""

    def __init__(self) -> None:
        self.words = np.ones(64, bool)

    def run(self, step: Step) -> None:
        if not step.planned.only_clears:
            self.words[: step.planned.state_bytes] = True
        if step.planned.cleared is not None:
            self.words[step.planned.cleared.offset : step.planned.cleared.end] = False

    def is_zero(self, part: Range) -> bool:
        return not self.words[part.offset : part.end].any()


def scan_of(kept: int, end: int) -> list[Step]:
    """Return the steps of a look-back whose tiles take the first `kept` bytes of `end`."""
    part = Range(kept, end - kept)

    return [step_of(end, part, True), step_of(end), step_of(end), step_of(end, part)]


def step_of(state_bytes: int, cleared: Range | None = None, only_clears: bool = False) -> Step:
    planned = Pass(PipelineKey("any", (), ()), b"", (1, 1, 1), None, None, state_bytes, 0, cleared, only_clears)
    return Step(planned, None, None)


def test_what_is_left_out_would_clear_nothing_but_zeros() -> None:
    random, left_out = Random(3), 0
    for _ in range(300):
        zeros, memory = Zeros(), Memory()
        sizes = [sorted(random.sample(range(64), 2)) for _ in range(3)]
        for _ in range(30):
            if random.random() < 0.1:
                zeros.forget()
                memory.words[:] = True
            steps = scan_of(*random.choice(sizes))
            if random.random() < 0.3:  # another kind of scan
                steps = [step_of(random.randrange(64))]
            recorded = [id(step) for step in zeros.needed(steps)]
            for step in steps:
                if id(step) in recorded:
                    if len(steps) > 1 and step is steps[1]:
                        assert memory.is_zero(steps[0].planned.cleared or Range(0, 64)), "it begins with zeros"
                    memory.run(step)
                else:
                    assert step.planned.only_clears
                    assert step.planned.cleared is not None
                    assert memory.is_zero(step.planned.cleared)
                    left_out += 1
    assert left_out > 1000, "as a scan that follows one like it needs no clearing"


def test_the_same_scan_again_clears_nothing() -> None:
    zeros, steps = Zeros(), scan_of(20, 50)
    assert list(zeros.needed(steps)) == steps
    assert list(zeros.needed(steps)) == steps[1:]
    assert list(zeros.needed(scan_of(30, 40))) == scan_of(30, 40)[1:], "its part lies within that of the other"
    assert list(zeros.needed(steps)) == steps, "whose tiles have lain where this one wants zeros"


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int64"])
def test_the_first_pass_and_the_last_clear_all_that_workgroups_hand_on(dtype: str) -> None:
    """To the end of what they bind, from the end of the tiles' words."""
    for shape, exclusive in (((1, 9 * TILE), False), ((7, 5000), True), ((3, 20 * TILE), True)):
        problem = look_back(np.zeros(shape, dtype), exclusive=exclusive)
        first, second, *_, last = plan_problem(problem, Limits()).passes
        assert second.pipeline.kernel == "scan_lookback"
        assert (first.only_clears, last.only_clears) == (True, False)
        assert first.pipeline == last.pipeline, "so that clearing takes no pipeline of its own"
        of_tile = 16 if dtype == "int64" else 10
        kept = 4 * shape[0] * (16 + of_tile * -(-shape[1] // TILE))
        assert first.cleared == last.cleared == Range(kept, first.state_bytes - kept)
        assert first.state_bytes == second.state_bytes == last.state_bytes


def left_over(device: Device, plan: Plan, x: NDArray[Any], *, in_place: bool, axis: int = 1) -> NDArray[np.uint32]:
    """Run a plan in memory full of ones; return what is in its scratch memory behind it."""
    with device.lock:
        source = device.allocate(x.nbytes)
        target = source if in_place else device.allocate(x.nbytes)
        scratch = device.allocate(plan.state_bytes)
        words = np.full(plan.state_bytes // 4, 0xFFFFFFFF, np.uint32)
        device.upload(scratch, 0, words)
        device.upload(source, 0, x)
        buffers = (source.gpu_buffer, target.gpu_buffer)
        device._executor.run(plan, *buffers, device.limits.dispatch_elements, scratch=(scratch.gpu_buffer, 0))
        device.download(scratch, 0, words)
        got = np.empty_like(x)
        device.download(target, 0, got)
        for memory in {source, target, scratch}:
            memory.release()
    assert reference.first_difference(got, expected_scan(device, x, "sum", axis)) is None
    return words


@pytest.mark.parametrize("withhold_every", [0, 3])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int64"])
def test_a_look_back_leaves_zeros(device: Device, dtype: str, withhold_every: int) -> None:
    """Also where it leaves tiles: because they are exceptional, or because others keep what they have."""
    for shape, in_place in (((2, 19 * TILE + 5), False), ((5, TILE + 1), True), ((300, TILE + 7), False)):
        x = numbers(shape, dtype)
        if x.dtype.kind == "f":
            x[1::2, 3] = np.inf
        planner = ScanPlanner(look_back(x), device.limits, in_place, chunks=x.shape)
        plan = Plan.of(planner.passes("lookback", withhold_every))
        words = left_over(device, plan, x, in_place=in_place)
        part = plan.passes[-1].cleared
        assert part is not None
        assert not words[part.offset // 4 : part.end // 4].any()


@pytest.mark.parametrize("withhold_every", [0, 3])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int64", "uint8"])
def test_a_look_back_of_strips_leaves_zeros(device: Device, dtype: str, withhold_every: int) -> None:
    """The same with parts of strips."""
    for shape in ((19 * TILE + 5, 8), (TILE + 1, 36), (18 * TILE + 5, 2), (TILE + 1, 3)):
        x = numbers(shape, dtype)
        if x.dtype.kind == "f":
            x[3, 1::2] = np.inf
        in_place = x.dtype.kind != "f"
        planner = ScanPlanner(look_back(x, axis=0), device.limits, in_place, chunks=shape[::-1])
        plan = Plan.of(planner.passes("strip_lookback", withhold_every))
        assert {"scan_strip_lookback", "scan_tiles"} <= {one.pipeline.kernel for one in plan.passes}
        words = left_over(device, plan, x, in_place=in_place, axis=0)
        part = plan.passes[-1].cleared
        assert part is not None
        assert not words[part.offset // 4 : part.end // 4].any()


@contextmanager
def dispatched(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Note of each dispatch whether it only clears."""
    found: list[bool] = []
    real = executor.Recording.dispatch

    def dispatch(self: executor.Recording, step: Step) -> None:
        found.append(step.planned.only_clears)
        real(self, step)

    with monkeypatch.context() as patch:
        patch.setattr(executor.Recording, "dispatch", dispatch)
        yield found


class TestSharedMemory:
    """The scratch memory that all scans of a device share."""

    def run(self, device: Device, plan: Plan, x: NDArray[Any]) -> None:
        with device.lock:
            source, target = device.allocate(x.nbytes), device.allocate(x.nbytes)
            device.upload(source, 0, x)
            buffers = (source.gpu_buffer, target.gpu_buffer)
            device._executor.run(plan, *buffers, device.limits.dispatch_elements)
            got = np.empty_like(x)
            device.download(target, 0, got)
            source.release()
            target.release()
        assert reference.first_difference(got, expected_scan(device, x, "sum", 1)) is None

    def plan(self, device: Device, x: NDArray[Any], kernel: str = "lookback") -> Plan:
        return plan_problem(look_back(x), device.limits, kernel=kernel)

    def test_scans_of_a_kind_clear_once(self, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whatever else runs in between is seen, and what an exceptional slice leaves is gone."""
        x = numbers((2, 20 * TILE), "float32")
        exceptional = x.copy()
        exceptional[0, 5 * TILE] = np.inf
        plan, longer = self.plan(device, x), numbers((1, 100 * TILE), "float32")
        for other in ("serial", "lookback"):
            self.run(device, self.plan(device, longer, other), longer)
            clears = []
            for values in (x, exceptional, x, exceptional):
                with dispatched(monkeypatch) as found:
                    self.run(device, plan, values)
                clears.append(sum(found))
                assert len(found) == len(plan.passes) - (not clears[-1])
            assert clears == [1, 0, 0, 0]

    def test_what_was_dropped_is_not_counted_on(self, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
        x = numbers((1, 10 * TILE), "int32")
        plan = self.plan(device, x)
        self.run(device, plan, x)

        def fail(self: Any, *_: Any) -> None:
            raise RuntimeError("no")

        with monkeypatch.context() as patch:
            patch.setattr(executor.Recording, "finish", fail)
            with pytest.raises(RuntimeError, match="no"):
                self.run(device, plan, x)
        with dispatched(monkeypatch) as found:
            self.run(device, plan, x)
        assert sum(found) == 1
        with device.lock:
            device._executor.begin_batch()
            device._executor.end_batch(drop=True)
        with dispatched(monkeypatch) as found:
            self.run(device, plan, x)
        assert sum(found) == 1

    def test_larger_memory_is_new(self, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
        x = numbers((1, 10 * TILE), "int32")
        plan = self.plan(device, x)
        self.run(device, plan, x)
        device._executor._scratch_of(device._executor._scratch.size + 4)
        with dispatched(monkeypatch) as found:
            self.run(device, plan, x)
        assert sum(found) == 1


def test_a_benchmark_measures_what_runs_each_time(device: Device) -> None:
    from dmlgpu.bench.clock import work_of

    x = numbers((1, 10 * TILE), "float32")
    plan = plan_problem(look_back(x), device.limits, kernel="lookback")
    buffers = [device.allocate(x.nbytes) for _ in range(2)]
    work = work_of(device, plan, *(buffer.gpu_buffer for buffer in buffers))
    (steps,) = work.batches
    assert [step.planned.only_clears for step in steps] == [False] * (len(plan.passes) - 1)
    for buffer in buffers:
        buffer.release()


def test_explain_says_which_pass_runs_the_first_time_only() -> None:
    found = dmlgpu.explain("cumsum", 2**20, dtype="int32", profile="h200")
    assert [one.first_time_only for one in found.passes] == [True, False, False]
    assert found.passes[0].purpose == "Clears what workgroups of a look-back hand to each other"
    assert found.as_dict()["passes"][0]["first_time_only"] is True
    assert found.dispatches == found.as_dict()["dispatches"] == len(found.repeated) == 2
