"""Runs cases on a device, in one process or several, and compares with the reference."""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.synchronize import Event
from operator import itemgetter
from signal import SIG_IGN, SIGINT, signal
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .. import reference
from ..errors import DeviceReleasedError, SoftwareAdapterWarning
from ..layout import ceil_div
from ..waiting import as_they_end
from .cases import Case
from .elements import random_words

if TYPE_CHECKING:
    from ..runtime.device import Device

__all__ = ["Outcome", "check", "checking", "compute", "digest", "reference_outcome", "share"]


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
        What is wrong: the first element that differs from the reference's with both bit patterns, a write beside the
        output, or an error; None if nothing is.
    """

    case: Case
    digest: str | None
    difference: str | None


def check(device: Device, case: Case, keeps: Mapping[str, bool]) -> Outcome:
    """Run a case on a device and compare bit for bit with the reference.

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
        difference = f"at {index} the device has {one}, the reference {rest}"
    found = None if case.meets_subnormals() else digest(result)
    return Outcome(case, found, difference or stray)


@contextmanager
def checking(
    device: Device, cases: Sequence[Case], keeps: Mapping[str, bool], *, processes: int = 1
) -> Generator[Iterator[tuple[int, Outcome]], None, None]:
    """Check cases while the context lasts.

    Parameters
    ----------
    device, cases, keeps
        As for `check`.
    processes : int
        With more than one, so many processes open the adapter and share the cases, from when the context is entered:
        software drivers compile a shader on one core. Cases of one format, operator and kernel go to one process, which
        compiles what they share once.

    Yields
    ------
    iterator of (int, Outcome)
        The case's position in `cases`, and its outcome, as they come.

    Raises
    ------
    DeviceReleasedError
        By the iterator, after the outcome of a case in which the device was lost.
    concurrent.futures.process.BrokenProcessPool
        By the iterator, if one of several processes ended.
    """
    if processes == 1:
        yield _in_turn(device, cases, keeps)
        return
    # What takes longest to compile comes first, so that no process is left with it at the end.
    in_order = sorted(_groups(cases), key=lambda group: not group[0][1].column.endswith("compensated"))
    context = get_context("spawn")  # a device does not survive a fork
    with _silent_tracker():
        stop = context.Event()  # the first semaphore starts the tracker
    pool = ProcessPoolExecutor(processes, context, initializer=_open, initargs=(device.description.index, stop))
    try:
        yield _as_they_come([pool.submit(_check_group, group, dict(keeps)) for group in in_order])
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


@contextmanager
def _silent_tracker() -> Iterator[None]:
    """Let Python's tracker of semaphores start without its warning of those that it removes, as an option of Python.

    It removes them where a signal ends this process, which leaves nothing to tell. A handler of signals instead would
    wait for drivers that hang.
    """
    option = "ignore:resource_tracker:UserWarning"
    sys.warnoptions.append(option)
    try:
        yield
    finally:
        sys.warnoptions.remove(option)


def share(cases: Sequence[Case], number: int, shares: int) -> list[Case]:
    """Return one of several parts of the cases, for drivers that take long to compile: the first has number 0.

    Cases of one format, operator and kernel are in one part, as they have shaders in common. A hash says in which, so
    that none has all of one kernel.
    """
    mixed = sorted(_groups(cases), key=lambda group: hashlib.sha256(group[0][1].name.encode()).digest())
    chosen = sorted((one for group in mixed[number::shares] for one in group), key=itemgetter(0))
    return [case for _, case in chosen]


def _groups(cases: Sequence[Case]) -> list[list[tuple[int, Case]]]:
    """Return the cases of each format, operator and kernel, with their positions in `cases`."""
    groups: dict[tuple[str, str], list[tuple[int, Case]]] = defaultdict(list)
    for number, case in enumerate(cases):
        groups[case.column, _format(case.dtype)].append((number, case))
    return list(groups.values())


def _in_turn(device: Device, cases: Sequence[Case], keeps: Mapping[str, bool]) -> Iterator[tuple[int, Outcome]]:
    for number, case in enumerate(cases):
        outcome = check(device, case, keeps)
        yield number, outcome
        if _is_lost(device, outcome):
            raise _lost_in(case)


def _as_they_come(futures: Sequence[Future[_Found]]) -> Iterator[tuple[int, Outcome]]:
    for future in as_they_end(futures):
        found, is_lost = future.result()
        yield from found
        if is_lost:
            raise _lost_in(found[-1][1].case)


def _format(dtype: str) -> str:
    """Return what kernels know of a type: signed and unsigned integers are the same to them."""
    return dtype.removeprefix("u")


def _is_lost(device: Device, outcome: Outcome) -> bool:
    return outcome.digest is None and outcome.difference is not None and device.lost()


def _lost_in(case: Case) -> DeviceReleasedError:
    return DeviceReleasedError(f"the device was lost in the case {case.name}")


class _Worker(NamedTuple):
    """What one of several processes has: its device, and whether it should stop."""

    device: Device
    stop: Event


_worker: _Worker | None = None

_Found: TypeAlias = tuple[list[tuple[int, Outcome]], bool]
"""Outcomes, and whether the device was lost in the last of them."""


def _open(index: int, stop: Event) -> None:
    from ..runtime.device import Device

    global _worker
    signal(SIGINT, SIG_IGN)  # it is the parent's to stop
    Thread(target=_end_with_parent, daemon=True).start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SoftwareAdapterWarning)  # the parent has warned
        _worker = _Worker(Device(index), stop)


def _end_with_parent() -> None:
    """End this process when its parent has ended, however that came: nobody would stop it."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _check_group(group: Sequence[tuple[int, Case]], keeps: Mapping[str, bool]) -> _Found:
    assert _worker is not None
    found: list[tuple[int, Outcome]] = []
    for number, case in group:
        if _worker.stop.is_set():
            break
        found.append((number, check(_worker.device, case, keeps)))
        if _is_lost(_worker.device, found[-1][1]):
            return found, True
    return found, False


def reference_outcome(case: Case) -> Outcome:
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
    source.view(host_input)[...] = x
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
    written = target.view(after)
    result = written.copy()
    written[...] = target.view(before)
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


def _noise(elements: int, dtype: np.dtype[Any], name: str) -> NDArray[Any]:
    """Return memory for so many elements and some after them, filled with noise."""
    words = ceil_div((elements + 3) * dtype.itemsize, 8)
    return random_words(words, "noise", name).view(np.uint8)[: 8 * words].view(dtype)
