"""Runs a case on a device, and compares with the oracle."""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from .. import reference
from ..problem import Layout
from .cases import Case
from .elements import random_words

if TYPE_CHECKING:
    from ..runtime.device import Device

__all__ = ["Outcome", "check", "check_all", "compute", "digest", "oracle_outcome"]


@dataclass(frozen=True)
class Outcome:
    """What came of a case.

    Attributes
    ----------
    case : Case
        The case.
    digest : str or None
        `digest` of the result; None where the case meets a subnormal number, or gave no result.
    difference : str or None
        What is wrong: the first element that differs from the oracle's with both bit patterns, a write beside the
        output, or an error; None if nothing is.
    """

    case: Case
    digest: str | None
    difference: str | None


def check(device: Device, case: Case, keeps: Mapping[str, bool]) -> Outcome:
    """Run a case on a device and compare bit for bit with the oracle.

    Parameters
    ----------
    device : Device
        The device.
    case : Case
        The case.
    keeps : mapping of str to bool
        What `Device.subnormals` says.
    """
    expected = case.expected(case.flushes(keeps))
    try:
        result, stray = compute(device, case)
    except Exception as error:  # whatever a driver makes of a shader: the other cases still tell something
        return Outcome(case, None, f"{type(error).__name__}: {' '.join(str(error).split())}")
    difference = reference.first_difference(result, expected)
    if difference is not None:
        index, _, rest = difference.partition(": ")
        one, _, rest = rest.partition(" against ")
        difference = f"at {index} the device has {one}, the oracle {rest}"
    found = None if case.meets_subnormals() else digest(result)
    return Outcome(case, found, difference or stray)


def check_all(
    devices: Sequence[Device], cases: Sequence[Case], keeps: Mapping[str, bool]
) -> Generator[tuple[int, Outcome], None, None]:
    """Check cases on one device, or side by side on several of one adapter; yield outcomes as they come.

    Software drivers compile a shader on one core, so that two devices take little more than half the time. Cases of
    one operator, type and kernel go to one device, which compiles what they share once.

    Yields
    ------
    (int, Outcome)
        The case's position in `cases`, and its outcome.
    """
    if len(devices) == 1:
        yield from ((number, check(devices[0], case, keeps)) for number, case in enumerate(cases))
        return
    groups = defaultdict(list)
    for number, case in enumerate(cases):
        groups[case.column, case.dtype].append(number)
    # Chains take longest to compile: they come first, so that no device is left with one at the end.
    waiting = deque(sorted(groups.values(), key=lambda group: not cases[group[0]].column.endswith("chain")))
    found: SimpleQueue[tuple[int, Outcome] | None] = SimpleQueue()
    stop = Event()

    def work(device: Device) -> None:
        try:
            while (group := _next(waiting)) is not None:
                for number in group:
                    if stop.is_set():
                        return
                    found.put((number, check(device, cases[number], keeps)))
        finally:
            found.put(None)

    with ThreadPoolExecutor(len(devices)) as pool:
        workers = [pool.submit(work, device) for device in devices]
        try:
            running = len(devices)
            while running:
                one = found.get()
                if one is None:
                    running -= 1
                else:
                    yield one
        finally:
            stop.set()
        for worker in workers:
            worker.result()


def _next(waiting: deque[list[int]]) -> list[int] | None:
    try:
        return waiting.popleft()
    except IndexError:
        return None


def oracle_outcome(case: Case) -> Outcome:
    """Return the outcome that every device should have."""
    return Outcome(case, None if case.meets_subnormals() else digest(case.expected()), None)


def compute(device: Device, case: Case) -> tuple[NDArray[Any], str | None]:
    """Run a case on a device.

    Returns
    -------
    (ndarray, str or None)
        The result, and what is wrong if anything but the output's elements was written.
    """
    source, target = case.layouts()
    one_buffer = case.placement.relation != "to"
    problem = case.problem()
    x = case.x()
    elements = max(source.extent[1], target.extent[1]) if one_buffer else source.extent[1]
    host_input = _noise(elements, x.dtype, "input")
    _view(host_input, source)[...] = x
    before = host_input if one_buffer else _noise(target.extent[1], case.result_type.dtype, "output")
    after = np.empty_like(before)
    memory = []
    with device.lock:
        try:
            memory.append(device.allocate(host_input.nbytes))
            device.upload(memory[0], 0, host_input)
            if not one_buffer:
                memory.append(device.allocate(before.nbytes))
                device.upload(memory[1], 0, before)
            device.run(problem, memory[0], memory[-1], kernel=case.kernel)
            device.download(memory[-1], 0, after)
        finally:
            for buffer in memory:
                buffer.release()
    written = _view(after, target)
    result = written.copy()
    written[...] = _view(before, target)
    stray = np.flatnonzero(after.view(np.uint8) != before.view(np.uint8))
    if not stray.size:
        return result, None
    where = f"byte {stray[0]} of a buffer of {after.nbytes}"
    return result, f"memory beside the output's elements was written: {where}, and {stray.size - 1} more"


def digest(result: NDArray[Any]) -> str:
    """Return the SHA-256 of a result's bytes, little-endian, in C order, with every NaN as one pattern."""
    data = np.ascontiguousarray(result)
    if data.dtype.kind == "f":
        bits, mantissa_bits = data.view(f"u{data.itemsize}"), np.finfo(data.dtype).nmant
        quiet = (1 << (8 * data.itemsize - 1)) - (1 << (mantissa_bits - 1))  # exponent and first mantissa bit
        data = np.where(np.isnan(data), bits.dtype.type(quiet), bits)
    return hashlib.sha256(data.astype(data.dtype.newbyteorder("<"), copy=False).tobytes()).hexdigest()


def _view(memory: NDArray[Any], layout: Layout) -> NDArray[Any]:
    """Return a layout's elements in memory."""
    strides = [stride * memory.itemsize for stride in layout.strides]
    return as_strided(memory[layout.offset :], layout.sizes, strides)


def _noise(elements: int, dtype: np.dtype[Any], name: str) -> NDArray[Any]:
    """Return memory for so many elements and some after them, filled with noise."""
    words = -(-(elements + 3) * dtype.itemsize // 8)
    return random_words(words, "noise", name).view(np.uint8)[: 8 * words].view(dtype)
