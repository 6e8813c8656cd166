"""What an altered shader is tried on: the conformance cases, and some of them again with a device's limits changed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from dmlgpu import reference, shaders
from dmlgpu.conformance import Case, ConvertCase, Placement, ScanCase, parse, suite
from dmlgpu.conformance.elements import random_words
from dmlgpu.conformance.probes import hard_pairs
from dmlgpu.passes import PipelineKey
from dmlgpu.plan import KERNELS, plan_problem
from dmlgpu.problem import Layout
from dmlgpu.runtime.device import Device

__all__ = ["Trial", "trials"]

_MOST_ELEMENTS = 140_000


@dataclass
class Trial:
    """A case, and what came of it with the shaders as they are.

    Attributes
    ----------
    case : Case
        The case.
    changes : dict
        What is different in the device's `Limits`.
    pipelines : frozenset of PipelineKey
        What it runs.
    files : frozenset of str
        The shader files that those are made of.
    """

    case: Case
    changes: dict[str, Any]
    pipelines: frozenset[PipelineKey] = frozenset()
    files: frozenset[str] = frozenset()
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
        """Find out which pipelines and files it uses."""
        one_buffer = self.case.placement.relation != "to"
        limits = replace(device.limits, **self.changes)
        plan = plan_problem(self.case.problem(), limits, one_buffer=one_buffer, kernel=self.case.kernel)
        self.pipelines = frozenset(one.pipeline for one in plan.passes)
        self.files = frozenset().union(*map(files_of, self.pipelines))

    def caught(self, device: Device) -> bool:
        """Run it, and return whether the result, or memory beside it, is not as it should be.

        The first run is with the shaders as they are; it asserts that the result is the oracle's.
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
        right = _view(expected, self.case.layouts()[1])
        if not reference.same_bits(written.copy(), right.copy()):
            return True
        right = right.copy()
        written[...] = right  # a NaN may be another one
        return after.tobytes() != self._expected.tobytes()

    def _run(self, device: Device) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the output's buffer, and the result in it."""
        host_input, host_output = self._host()
        after = np.empty_like(host_input if host_output is None else host_output)
        limits, memory = device.limits, []
        with device.lock:
            try:
                device.limits = replace(limits, **self.changes)
                for host in (host_input, host_output):
                    if host is not None:
                        memory.append(device.allocate(host.nbytes))
                        device.upload(memory[-1], 0, host)
                device.run(self.case.problem(), memory[0], memory[-1], kernel=self.case.kernel)
                device.download(memory[-1], 0, after)
            finally:
                device.limits = limits
                for buffer in memory:
                    buffer.release()
        return after, _view(after, self.case.layouts()[1])

    def _host(self) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return what the buffers hold before: the elements, and noise around them."""
        if self._memory is None:
            source, target = self.case.layouts()
            x = self.case.x()
            one_buffer = self.case.placement.relation != "to"
            ends = [source.extent[1], target.extent[1]]
            host_input = _noise(max(ends) if one_buffer else ends[0], x.dtype, "input")
            _view(host_input, source)[...] = x
            self._memory = host_input, None if one_buffer else _noise(ends[1], self.case.result_type.dtype, "output")
        return self._memory


def _noise(elements: int, dtype: np.dtype[Any], name: str) -> NDArray[Any]:
    words = -(-(elements + 3) * dtype.itemsize // 8)
    return random_words(words, "mutation", name).view(np.uint8)[: 8 * words].view(dtype)


def _view(memory: NDArray[Any], layout: Layout) -> NDArray[Any]:
    strides = [stride * memory.itemsize for stride in layout.strides]
    return as_strided(memory[layout.offset :], layout.sizes, strides)


_files: dict[tuple[str, tuple[tuple[str, str], ...]], frozenset[str]] = {}


def files_of(key: PipelineKey) -> frozenset[str]:
    """Return the shader files that a pipeline is made of."""
    made_of = (key.kernel, key.slots)
    if made_of not in _files:
        _files[made_of] = frozenset(line.file for line in shaders.resolve(key.kernel, dict(key.slots)).lines)
    return _files[made_of]


def trials(device: Device) -> list[Trial]:
    """Return the trials, planned for a device."""
    found = [Trial(case, changes) for case, changes in _cases(device)]
    for trial in found:
        trial.plan(device)
    return found


def _cases(device: Device) -> Iterator[tuple[Case, dict[str, Any]]]:
    cases = [case for case in suite() if math.prod(case.shape) <= _MOST_ELEMENTS]
    yield from ((case, {}) for case in cases)
    for number, case in enumerate(cases):
        if case.dtype == "float64" and case.column.startswith(("sum", "product")) and device.limits.float64:
            yield case, {"float64": False}
        if case.dtype.startswith("float") and case.column.startswith(("sum", "product")) and number % 7 == 0:
            yield case, {"opaque": False}
        if number % 11 == 0:
            yield case, {"workgroups": 3}
    for case in _extra():
        yield case, {}
        if case.dtype == "float64" and device.limits.float64:
            yield case, {"float64": False}
    yield from _windowed()


@dataclass(frozen=True)
class _HalfTies(ScanCase):
    """As tests/test_scan_kernels.py::test_half_subnormals_are_rounded_to_even."""

    def x(self) -> NDArray[Any]:
        x = np.full(self.shape, 0.5, np.float16)
        x[:, 0] = np.arange(1, len(x) + 1, dtype=np.uint16).view(np.float16)
        return x


@dataclass(frozen=True)
class _HardPairs(ScanCase):
    """As the probes of addition and multiplication."""

    def x(self) -> NDArray[Any]:
        return hard_pairs(self.dtype, self.operator)


@dataclass(frozen=True)
class _Bytes(ConvertCase):
    """As tests/test_elementwise_kernels.py::test_every_byte_but_zero_is_true."""

    def x(self) -> NDArray[Any]:
        return np.arange(256, dtype=np.uint8).view(np.bool_)

    def _compute(self, flush: bool) -> NDArray[Any]:
        return (np.arange(256, dtype=np.uint8) != 0).astype(self.to)


def _extra() -> Iterator[Case]:
    """What tests have beyond the conformance suite."""
    packed = Placement()
    for way in KERNELS:
        yield _HalfTies("float16", (2047, 2), packed, "ties", "product", 1, False, False, way)
    for dtype, operator in product(("float32", "float64"), ("sum", "product")):
        shape = hard_pairs(dtype, operator).shape
        yield _HardPairs(dtype, shape, packed, "hard", operator, 1, False, False, "slices")
    for to in ("int8", "uint64", "float16", "float64"):
        yield _Bytes("bool", (256,), packed, "bytes", to)


def _windowed() -> Iterator[tuple[Case, dict[str, Any]]]:
    """Tensors larger than a binding, as in tests/test_scan_kernels.py."""
    shapes = [
        ("150003", 0, "float32"),
        ("140001x2", 0, "int32"),
        ("2x70000", 1, "float32"),
        ("70000", 0, "uint8"),
        ("3x40001", 1, "float16"),
        ("7x30x100", 1, "int64"),
    ]
    orders = ("sum inclusive.increasing", "product exclusive.decreasing", "sum exclusive.increasing")
    for (shape, axis, dtype), order, way in product(shapes, orders, KERNELS):
        operator, rest = order.split()
        for family in ("plain", "special") if dtype == "float32" else ("plain",):
            name = f"{operator}.{dtype}.{shape}.axis{axis}.{rest}.packed-to-packed.{way}.{family}"
            yield from ((parse(name), {"binding_bytes": binding}) for binding in (4096, 70_000, 300_000))
    yield parse("round.float32.half_even.4097.packed-to-packed.plain"), {"binding_bytes": 4096}
    yield parse("convert.int32-to-float16.8192.packed-to-packed.patterns"), {"binding_bytes": 4096}
