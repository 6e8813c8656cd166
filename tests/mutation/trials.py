"""What an altered shader is tried on: a case, run as a plan over buffers of noise and compared with the reference."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import numpy as np
import wgpu
from numpy.typing import NDArray

from dmlgpu import reference, shaders
from dmlgpu.bench.workloads import plan_copy
from dmlgpu.conformance import Case
from dmlgpu.conformance.elements import random_words
from dmlgpu.planning import scan
from dmlgpu.planning.dispatch import PipelineKey, Plan
from dmlgpu.planning.plan import plan_problem
from dmlgpu.planning.problem import ScanProblem
from dmlgpu.planning.scan import ScanPlanner
from dmlgpu.runtime.device import Device

from ..harness import StripPosts, changed, run_strips_without, run_without, without_repairs
from .cases import CopyCase

__all__ = ["Trial", "files_of"]

_OF_RUNS = ("repairs", "without")
"""What is different in how a plan runs, and not in the plan of the limits."""


@dataclass
class Trial:
    """A case, and what came of it with the shaders as they are.

    Attributes
    ----------
    case : Case
        The case.
    changes : dict
        What is different in the device's `Limits`; or ``window`` and ``withhold_every``, for `ScanPlanner` alone: how
        many elements a window has, and which workgroups keep what others wait for to themselves; or constants of
        `dmlgpu.planning.scan`; or ``repairs``, false for `without_repairs`, and ``without``, the posts for
        `run_without` or `run_strips_without`.
    is_special : bool
        Whether it was made for what most cases do not reach, and comes before them.
    pipelines : frozenset of PipelineKey
        What it runs.
    files : frozenset of str
        The shader files that those are made of.
    """

    case: Case
    changes: dict[str, Any]
    is_special: bool = False
    pipelines: frozenset[PipelineKey] = frozenset()
    files: frozenset[str] = frozenset()
    _plan: Plan = field(default=Plan((), 0), repr=False)
    _memory: tuple[NDArray[Any], NDArray[Any] | None] | None = field(default=None, repr=False)
    _expected: NDArray[np.uint8] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        changes = ", ".join(f"{name}={value}" for name, value in self.changes.items())
        return f"{self.case.name} with {changes}" if changes else self.case.name

    @property
    def is_new(self) -> bool:
        """Whether it has not run with the shaders as they are."""
        return self._expected is None

    def plan(self, device: Device) -> None:
        """Plan it for a device, which also tells which pipelines and files it uses."""
        self._plan = self._planned(device)
        self.pipelines = frozenset(one.pipeline for one in self._plan.passes)
        self.files = frozenset().union(*map(files_of, self.pipelines))

    def _planned(self, device: Device) -> Plan:
        if isinstance(self.case, CopyCase):
            return plan_copy(self.case.copy, self.case.x().nbytes, replace(device.limits, **self.changes))
        constants = {name: value for name, value in self.changes.items() if name.startswith("_")}
        others = {n: v for n, v in self.changes.items() if n not in constants and n not in _OF_RUNS}
        with ExitStack() as stack:
            for name, value in constants.items():
                stack.enter_context(mock.patch.object(scan, name, value))
            plan = self._planned_scan_or_other(device, others)
        if self.changes.get("repairs", True):
            return plan
        return without_repairs(plan, at_once="without" in self.changes)

    def _planned_scan_or_other(self, device: Device, changes: dict[str, Any]) -> Plan:
        problem = self.case.problem()
        one_buffer = self.case.placement.relation != "to"
        if "window" in changes:
            assert isinstance(problem, ScanProblem)
            chunks = (*(one.size for one in problem.batch), changes["window"])
            every = changes.get("withhold_every", 0)
            limits = device.limits if every else replace(device.limits, software=False)  # long windows, too
            return Plan.of(ScanPlanner(problem, limits, one_buffer, chunks).passes(self.case.kernel, every))
        limits = changed(device.limits, **changes)
        return plan_problem(problem, limits, one_buffer=one_buffer, kernel=self.case.kernel)

    def caught(self, device: Device) -> bool:
        """Run it, and return whether the result, or memory beside it, is not as it should be.

        The first run is with the shaders as they are; it asserts that the result is the reference's.
        """
        after, written = self._run(device)
        if self._expected is None:
            flush = self.case.flushes(device.subnormals())
            difference = reference.first_difference(written.copy(), self.case.expected(flush))
            assert difference is None, f"{self} is wrong as it is: {difference}"
            self._expected = after.view(np.uint8).copy()
            return False
        if after.tobytes() == self._expected.tobytes():
            return False
        if written.dtype.kind != "f":
            return True
        expected = self._expected.view(after.dtype)
        right = self.case.layouts()[1].view(expected)
        if not reference.same_bits(written.copy(), right.copy()):
            return True
        right = right.copy()
        written[...] = right  # a NaN may be another one
        return after.tobytes() != self._expected.tobytes()

    def _run(self, device: Device) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the output's buffer, and the result in it."""
        host_input, host_output = self._host()
        after = np.empty_like(host_input if host_output is None else host_output)
        memory = []
        with device.lock:
            try:
                for host in (host_input, host_output):
                    if host is not None:
                        memory.append(device.allocate(host.nbytes))
                        device.upload(memory[-1], 0, host)
                self._dirty_scratch(device)
                source, target = memory[0].gpu_buffer, memory[-1].gpu_buffer
                posts = self.changes.get("without")
                if isinstance(posts, StripPosts):
                    run_strips_without(posts, device, self._plan, source, target)
                elif posts is not None:
                    run_without(posts, device, self._plan, source, target)
                else:
                    device._executor.run(self._plan, source, target, device.limits.dispatch_elements)
                device.download(memory[-1], 0, after)
            finally:
                for buffer in memory:
                    buffer.release()
        return after, self.case.layouts()[1].view(after)

    def _dirty_scratch(self, device: Device) -> None:
        """Leave noise, and small numbers, where a plan expects nothing.

        All are odd: the marks of what is written are lowest bits.
        """
        size, executor = self._plan.state_bytes, device._executor
        if not size:
            return
        usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_DST
        scratch = executor._scratch
        if scratch is None or scratch.size < size or scratch.usage != usage:
            if scratch is not None:
                scratch.destroy()
            executor._scratch = device.gpu_device.create_buffer(label="scratch", size=-(-size // 4) * 4, usage=usage)
        words = random_words(-(-size // 8), "scratch").view(np.uint32) | np.uint32(1)
        words[::3] = 1
        executor.write(executor._scratch, 0, words[: size // 4])
        executor._zeros.forget()  # nor does the runtime know of it

    def _host(self) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return what the buffers hold before: the elements, and noise around them."""
        if self._memory is None:
            source, target = self.case.layouts()
            x = self.case.x()
            one_buffer = self.case.placement.relation != "to"
            ends = [source.extent[1], target.extent[1]]
            host_input = _noise(max(ends) if one_buffer else ends[0], x.dtype, "input")
            source.view(host_input)[...] = x
            self._memory = host_input, None if one_buffer else _noise(ends[1], self.case.result_type.dtype, "output")
        return self._memory


def _noise(elements: int, dtype: np.dtype[Any], name: str) -> NDArray[Any]:
    words = -(-(elements + 3) * dtype.itemsize // 8)
    return random_words(words, "mutation", name).view(np.uint8)[: 8 * words].view(dtype)


_files: dict[tuple[str, tuple[tuple[str, str], ...]], frozenset[str]] = {}


def files_of(key: PipelineKey) -> frozenset[str]:
    """Return the shader files that a pipeline is made of."""
    made_of = (key.kernel, key.slots)
    if made_of not in _files:
        _files[made_of] = frozenset(line.file for line in shaders.resolve(key.kernel, dict(key.slots)).lines)
    return _files[made_of]
