"""Open devices: work on a device, its end, and the choice of the device that a call means."""

from __future__ import annotations

import math
import os
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import RLock
from types import TracebackType
from typing import Any, NoReturn, Self

import numpy as np
import wgpu
from numpy.typing import NDArray

from ..arguments import choice, count, flag, instance
from ..dtypes import by_dtype
from ..errors import (
    ArgumentError,
    ArrayTypeError,
    DeviceError,
    DeviceLostError,
    DeviceMemoryError,
    DeviceReleasedError,
    DmlGpuError,
    EventLoopError,
    ReleasedArrayError,
    said,
    shown,
    with_type,
)
from ..layout import ceil_div
from ..planning.dispatch import Plan
from ..planning.kernels import tile_record_words
from ..planning.pieces import (
    CarryForm,
    CarryRows,
    PiecePlan,
    first_tile,
    moves,
    plan_piece,
    plan_totals,
)
from ..planning.plan import KERNELS, plan_problem
from ..planning.problem import ElementwiseProblem, ScanProblem
from ..planning.windows import TILE
from ..sections import Section
from . import wgpu_private
from .adapters import (
    ENVIRONMENT_VARIABLE,
    AdapterDescription,
    check_choice,
    describe,
    devices,
    limits_of,
    open_adapter,
    select_adapter,
    warn_of_loss,
    warn_of_software,
)
from .executor import Bound, Copy, Executor
from .foreign import Fault, Liveness
from .measured import measure_subnormals
from .memory import Buffer, Memory, is_out_of_memory
from .pipelines import Pipelines
from .transfers import Transfers, fill
from .tuned import stored_tuning
from .wgpu_private import check_process, claim_process, companion_of, end_calls_before_destroy, owner_of, set_companion

__all__ = [
    "Buffer",
    "Carried",
    "Device",
    "default_device",
    "devices",
    "resolve_device",
    "select_adapter",
    "wrap_buffer",
]

_setting_up = Section()
"""Held while a device is opened, and in all that uses one of OpenGL: these share a context in wgpu, which ends the
process when a thread waits for it for a second."""
_opened: Counter[str] = Counter()
"""How many devices there have been, by their adapter's summary."""

_BLOCK_BYTES = 32 * 2**20
_BINDING_ALIGNMENT = 256
"""The most that a device asks of the place where a binding begins."""
_PROBLEMS = ScanProblem | ElementwiseProblem
_KERNELS = {kernel: kernel for kernel in KERNELS}
_ENCODERS = wgpu.GPUCommandEncoder | wgpu.GPUComputePassEncoder

_plan = lru_cache(maxsize=256)(plan_problem)
_plan_piece = lru_cache(maxsize=256)(plan_piece)
"""Plans are kept, because a plan depends on its arguments alone, and the executor recognises the same object."""


def named(error: wgpu.GPUError, summary: str) -> DmlGpuError:
    """Return this package's error for an error of wgpu on a device that is not lost."""
    if is_out_of_memory(error):
        return DeviceMemoryError(
            f"the device {summary!r} is out of memory: {said(error)}; release arrays that are no longer needed, or "
            "scan in pieces with dmlgpu.Scan (docs/large.md)"
        )
    return DeviceError(
        f"wgpu refuses what the device {summary!r} is to do, which is a mistake of this package, of wgpu or of the "
        f"driver: {said(error)}"
    )


class Device:
    """An open device: where arrays live and operators run.

    Parameters
    ----------
    adapter : str, int, AdapterDescription or None
        A substring of the adapter's summary, its index, or a description from `devices`; None for what
        ``DMLGPU_ADAPTER`` names, else the best adapter.
    limits : mapping of str to int, optional
        Limits to ask for by wgpu's names, such as ``{"max-buffer-size": 2**28}``; by default all that the adapter has.

    Attributes
    ----------
    description : AdapterDescription
        The adapter.
    gpu_device : wgpu.GPUDevice
        The wgpu device.
    lock : threading.RLock
        Held while a call records, submits and reads back; hold it to make several calls one.
    owned : bool
        Whether `release` destroys `gpu_device`: not if it is a caller's, see `wrap`.

    Raises
    ------
    NoAdapterError, AdapterNotFoundError
        If there is no such adapter.
    ArrayTypeError, ArgumentError
        If `adapter` or `limits` is none of these.
    DeviceError
        If the adapter gives no device with these limits.

    Warns
    -----
    SoftwareAdapterWarning
        Once, if the adapter computes on the CPU.

    Examples
    --------
    >>> import dmlgpu
    >>> with dmlgpu.Device() as device:
    ...     print(dmlgpu.cumulative_sum([1.0, 2.0, 3.0], dtype="float32", device=device))
    [1. 3. 6.]
    """

    def __init__(
        self, adapter: str | int | AdapterDescription | None = None, *, limits: Mapping[str, int] | None = None
    ) -> None:
        way_out = (
            "give a part of an adapter's summary, its index, or a description from dmlgpu.devices(); Device.wrap takes "
            "a wgpu.GPUDevice"
        )
        chosen = (
            adapter
            if isinstance(adapter, AdapterDescription)
            else select_adapter(check_choice(adapter, "adapter", way_out))
        )
        with _setting_up:
            gpu_device = open_adapter(chosen, limits)
            try:
                self._set_up(gpu_device, chosen, owned=True)
            except wgpu.GPUError as error:
                gpu_device.destroy()
                raise named(error, chosen.summary) from error
        if chosen.is_software:
            warn_of_software(chosen)

    def _set_up(self, gpu_device: Any, description: AdapterDescription, *, owned: bool) -> None:
        self.gpu_device: Any = gpu_device
        self.description = description
        self.owned = owned
        self.limits = replace(limits_of(gpu_device, description), tuning=stored_tuning(description))
        self.section = _setting_up if description.backend == "OpenGL" else Section()
        self._process = os.getpid()
        self._released = False
        self._lost = False
        _opened[description.summary] += 1
        self._number = _opened[description.summary]
        self._liveness = Liveness(gpu_device)
        self._wrapped: weakref.WeakValueDictionary[int, Buffer] = weakref.WeakValueDictionary()
        end_calls_before_destroy(gpu_device, self)
        wgpu_private.have_polls_wait(gpu_device)
        self._executor = Executor(gpu_device)
        self._memory = Memory(gpu_device, self._executor.forget, direct=description.is_software)
        self._transfers = Transfers(gpu_device, self._executor, self._memory, self.lost)
        self._subnormals: dict[str, bool] | None = None
        # A caller's device keeps its Device, with all that is compiled, as long as it lives.
        set_companion(gpu_device, weakref.ref(self) if owned else lambda: self)

    @classmethod
    def wrap(cls, gpu_device: Any) -> Device:
        """Return the Device over a caller's wgpu.GPUDevice, which stays the caller's.

        Everything then happens on that device and its queue, so that buffers can be shared with it, see
        `dmlgpu.from_wgpu`. Features and limits are those it was requested with; nothing is required of it. Wrapping a
        device again gives the same Device. `release` forgets the device and does not destroy it.

        Parameters
        ----------
        gpu_device : wgpu.GPUDevice
            The device.

        Raises
        ------
        ArrayTypeError
            If it is something else.
        DeviceReleasedError
            If it was destroyed or lost, or a parent process has used it.

        Examples
        --------
        >>> import dmlgpu
        >>> gpu_device = dmlgpu.devices()[0].adapter.request_device_sync()
        >>> device = dmlgpu.Device.wrap(gpu_device)
        >>> print(dmlgpu.cumulative_sum([1, 2, 3], device=device))
        [1 3 6]
        """
        instance(gpu_device, "gpu_device", wgpu.GPUDevice, "give a wgpu.GPUDevice")
        claim_process()
        found: Device | None = companion_of(gpu_device)
        if found is None or found._released:
            with _setting_up:
                found = companion_of(gpu_device)
                if found is None or found._released:
                    return cls._wrap_anew(gpu_device)
        if found.released:
            found.check()  # which says why
        return found

    @classmethod
    def _wrap_anew(cls, gpu_device: Any) -> Device:
        made = cls.__new__(cls)
        try:
            made._set_up(gpu_device, describe(-1, gpu_device.adapter), owned=False)
        except wgpu.GPUError as error:
            if "lost" in str(error):
                raise DeviceLostError(f"the wgpu device cannot be used: {said(error)}; wrap another one") from error
            raise named(error, gpu_device.adapter.summary) from error
        return made

    @property
    def lock(self) -> RLock:
        """Held while a call records, submits and reads back; hold it to make several calls one.

        Not around pushes to a `Scan` to which other threads push, as each could wait for the other.
        """
        return self.section.lock

    @property
    def summary(self) -> str:
        """The adapter's one-line summary, as wgpu gives it."""
        return self.description.summary

    @property
    def label(self) -> str:
        """What messages call the device: its summary in quotes, with a number from its adapter's second device on."""
        return repr(self.summary) if self._number == 1 else f"{self.summary!r} #{self._number}"

    @property
    def implementation(self) -> str:
        """The implementation of WebGPU that the device uses, with its version."""
        return wgpu_private.implementation()

    @property
    def released(self) -> bool:
        """Whether `release` was called, the device is known to be lost, or another process than this one opened it."""
        return self._released or self._lost or self.forked

    @property
    def is_lost(self) -> bool:
        """Whether the device is known to be lost; `lost` asks wgpu."""
        return self._lost and not self._released

    @property
    def forked(self) -> bool:
        """Whether another process than this one opened the device. wgpu does not work on it here."""
        return self._process != os.getpid()

    def __repr__(self) -> str:
        state = " (lost)" if self._lost else " (released)" if self.released else ""
        return f"<dmlgpu.Device {self.label}{state}>"

    def __reduce__(self) -> NoReturn:
        raise ArrayTypeError(
            "a dmlgpu.Device cannot be copied or pickled; open one in each process with dmlgpu.Device()"
        )

    def __enter__(self) -> Self:
        self.check()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def release(self) -> None:
        """Give back the device and the memory of all its arrays; a caller's device stays. May be called again."""
        with self.section:
            if not self._released and not self.forked:
                self._released = True
                try:
                    self._executor.release()
                    self._memory.close()
                finally:
                    if self.owned:
                        self.gpu_device.destroy()

    def mark_lost(self) -> None:
        """Remember that the device is being destroyed, so that no call waits for it."""
        self._lost = not self._released

    def end_waits(self) -> None:
        """End what awaits the device, which is destroyed."""
        transfers = getattr(self, "_transfers", None)  # not there while the device is being set up
        if transfers is not None:
            transfers.end_waits()

    def lost(self) -> bool:
        """Whether the device cannot be used any longer: released, destroyed below, or given up by the driver."""
        with self.section:
            if not self.released and self._liveness.lost():
                self._lost = True
            return self.released

    def fault(self, gpu_buffer: Any) -> Fault | None:
        """Return why a caller's wgpu.GPUBuffer cannot be used on this device now, or None if it can."""
        with self.section:
            return self._liveness.fault(gpu_buffer)

    def wrap_buffer(self, gpu_buffer: Any) -> Buffer:
        """Return the memory that is a caller's wgpu.GPUBuffer; the same for the same buffer.

        Raises
        ------
        ArrayTypeError
            If it is no buffer of this device.
        ArgumentError
            If it lacks the usage STORAGE or is mapped.
        ReleasedArrayError, DeviceReleasedError
            If the buffer, or the device, was destroyed.
        """
        with self.use():
            self._liveness.check(gpu_buffer)
            found = self._wrapped.get(id(gpu_buffer))
            if found is None or found.released:
                found = self._wrapped[id(gpu_buffer)] = Buffer(self, gpu_buffer.size, gpu_buffer, owned=False)
            return found

    def use(self, *buffers: Buffer) -> Use:
        """Return the context in which to use the device and buffers, see `Use`."""
        return Use(self, buffers)

    def check(self, *buffers: Buffer) -> None:
        """Raise an error where wgpu would panic, or wait for ever."""
        if self._process != os.getpid():
            raise DeviceReleasedError(
                f"{self!r} was opened by process {self._process}; a GPU does not survive os.fork: start processes "
                "with multiprocessing's 'spawn' method and open a device in each"
            )
        if self._released:
            raise DeviceReleasedError(f"{self!r} cannot be used any longer; open another with dmlgpu.Device()")
        if self._lost or (not self.owned and self.lost()):
            raise DeviceLostError(
                f"the wgpu device of {self!r} was destroyed or lost, and its arrays with it: "
                f"{'open another with dmlgpu.Device()' if self.owned else 'wrap another one'} and make them anew"
            )
        for buffer in buffers:
            instance(buffer, "buffer", Buffer, "give what allocate returned")
            if buffer.device is not self:
                raise ArrayTypeError(f"the array is on {buffer.device!r}, not on {self!r}; copy it there through NumPy")
            if buffer.gpu_buffer is None:
                raise ReleasedArrayError(
                    "the array's memory was released: make a new array, and release it after its use"
                )
            if not buffer.owned:
                self._liveness.check(buffer.gpu_buffer)
            else:
                buffer.end_mapping()

    @property
    def pipelines(self) -> Pipelines:
        """The compiled pipelines."""
        return self._executor.pipelines

    def allocate(self, nbytes: int) -> Buffer:
        """Return zero-filled memory.

        Raises
        ------
        ArrayTypeError, ArgumentError
            If `nbytes` is no integer of 0 or more.
        DeviceMemoryError
            If it is more than the device's largest buffer, or its memory is exhausted.
        """
        size = count(nbytes, "nbytes")
        with self.use():
            return self._memory.fresh(self, size)

    def recycled(self, nbytes: int, *, temporary: bool = False) -> Buffer:
        """Return memory that may hold anything, as `allocate`.

        Memory for the duration of a call is `temporary`: what is prepared for it is kept for the next call. While work
        is recorded for a caller, see `recording`, all of it is new.
        """
        size, short_lived = count(nbytes, "nbytes"), flag(temporary, "temporary")
        with self.use():
            if self._executor.is_recording:
                return self._memory.recorded(self, size)
            return self._memory.temporary(self, size) if short_lived else self._memory.array(self, size)

    def allocate_filled(self, data: NDArray[Any]) -> Buffer:
        """Return memory that begins with an array's elements, in C order and native byte order; as `allocate`."""
        data = _plain(data, "data")
        with self.use():
            buffer, is_mapped = self._memory.to_fill(self, data.nbytes)
            if is_mapped:
                fill(buffer.gpu_buffer, data)
                buffer.gpu_buffer.unmap()
            else:
                self.upload(buffer, 0, data)
            return buffer

    def upload(self, buffer: Buffer, offset: int, data: NDArray[Any]) -> None:
        """Write an array's elements, in C order and native byte order, to a buffer.

        Parameters
        ----------
        buffer : Buffer
            Of this device.
        offset : int
            In bytes, a multiple of 4.
        data : ndarray
            Of any strides and byte order. Its bytes, rounded up to a multiple of 4 with zeros, must fit.

        Raises
        ------
        ArrayTypeError, ArgumentError
            If an argument is of another type, or `data` does not fit.
        """
        data = _plain(data, "data")
        start = _check_range(buffer, offset, data, "data", multiple=4)
        if data.size:
            with self.use(buffer):
                self._transfers.write(buffer, start, data)

    def upload_by(self, buffer: Buffer, nbytes: int, write: Callable[[NDArray[np.uint8]], None]) -> None:
        """Have a function write the first bytes of a buffer, such as those of several arrays; raises as `upload`."""
        with self.use(buffer):
            self._transfers.write_by(buffer, nbytes, write)

    def download(self, buffer: Buffer, offset: int, out: NDArray[Any]) -> None:
        """Fill an array of any strides, in C order, with the bytes of a buffer from `offset` on; raises as `upload`."""
        out, start = _room(buffer, offset, out)
        if out.size:
            with self.use(buffer):
                self._transfers.read(buffer, (start, out))

    async def download_async(self, buffer: Buffer, offset: int, out: NDArray[Any]) -> None:
        """Fill a C-contiguous array as `download` does, without blocking the event loop."""
        out, start = _room(buffer, offset, out)
        if not out.flags.c_contiguous:
            raise ArgumentError(
                f"out has strides of {out.strides} bytes: give a C-contiguous array, such as out.copy()"
            )
        if sys.get_asyncgen_hooks().firstiter is None:  # which every event loop sets, and by which wgpu finds it
            raise EventLoopError("no event loop runs to wait in: use asyncio.run, or read without waiting, as .numpy()")
        if out.size:
            await self._transfers.read_async(self.use, self.section, buffer, start, out)

    @property
    def block_bytes(self) -> int:
        """How many bytes of a large array of the host are best on the device at a time.

        Where host and device share their memory, few: new memory costs the host more than computing. Elsewhere more, as
        copies of a block are not at work while the device computes it.
        """
        largest: int = self.gpu_device.limits["max-buffer-size"]
        return min(_BLOCK_BYTES if self._memory.direct else 8 * _BLOCK_BYTES, largest // 4)

    def copy(self, source: Buffer, target: Buffer, parts: Sequence[tuple[int, int, int]]) -> None:
        """Copy bytes on the device.

        Parameters
        ----------
        source, target : Buffer
            Two of this device; bytes of the first one can be copied, see `Buffer.readable`.
        parts : sequence of (int, int, int)
            Where the bytes are, where they go, and how many: multiples of 4.
        """
        with self.use(source, target):
            for start, end, nbytes in parts:
                self._executor.copy(source.gpu_buffer, start, target.gpu_buffer, end, nbytes)
            self._executor.flush()

    def batch(self) -> Batch:
        """Return a context that makes what runs over temporaries in it as few submissions as can be, see `Batch`."""
        return Batch(self)

    def recording(self, encoder: Any) -> Recorded:
        """Return a context that has what runs in it recorded into a caller's encoder, see `Recorded`.

        Parameters
        ----------
        encoder : wgpu.GPUCommandEncoder or wgpu.GPUComputePassEncoder
            Of this device.

        Raises
        ------
        ArrayTypeError, ArgumentError
            If it is something else, or another device's.
        """
        instance(encoder, "encoder", _ENCODERS, "give a wgpu.GPUCommandEncoder, or a wgpu.GPUComputePassEncoder")
        owner = owner_of(encoder)
        if owner is not None and owner is not self.gpu_device:
            try:
                there = f"the device {Device.wrap(owner).label}"
            except DeviceError:
                there = "another device, which was lost,"
            raise ArgumentError(
                f"encoder is of {there} while the array is on {self.label}: give an encoder of the array's device"
            )
        return Recorded(self, encoder)

    def run(
        self,
        problem: ScanProblem | ElementwiseProblem,
        source: Buffer,
        target: Buffer,
        *,
        kernel: str | None = None,
    ) -> None:
        """Run an operator.

        Parameters
        ----------
        problem : ScanProblem or ElementwiseProblem
            What to compute, with positions counted from the start of the buffers.
        source, target : Buffer
            Of this device. Where they are the same, input and output must be in place (the same position for every
            element) or not overlap.
        kernel : str, optional
            Force one of `dmlgpu.planning.plan.KERNELS`, for tests and benchmarks.

        Raises
        ------
        DeviceReleasedError, ReleasedArrayError
            If the device or a buffer is gone.
        ArrayTypeError, ArgumentError
            If an argument is of another type, or `kernel` is none.
        """
        instance(problem, "problem", _PROBLEMS, "make one with dmlgpu.planning.problem")
        for buffer, name in ((source, "source"), (target, "target")):
            instance(buffer, name, Buffer, "give what allocate returned")
        if kernel is not None:
            choice(kernel, "kernel", _KERNELS)
        with self.use(source, target):
            if self._executor.is_recording:
                source.leave_to_wgpu()
                target.leave_to_wgpu()
            one_buffer = source.gpu_buffer is target.gpu_buffer
            plan = _plan(problem, self.limits, one_buffer=one_buffer, kernel=kernel)
            self._executor.run(
                plan,
                source.gpu_buffer,
                target.gpu_buffer,
                self.limits.dispatch_elements,
                keep=source.temporary and target.temporary,
            )

    def run_piece(
        self,
        problem: ScanProblem,
        source: Buffer,
        target: Buffer | None,
        carries: NDArray[np.uint32] | Carried | None,
        *,
        unfinished: bool,
        out: NDArray[Any] | None = None,
        stay: bool = False,
    ) -> NDArray[np.uint32] | Carried | None:
        """Run a scan over a piece of longer slices.

        Parameters
        ----------
        problem, source, target
            As in `run`, with what `dmlgpu.planning.pieces.plan_piece` says of pieces. Without a target, packed results
            go to temporary memory, from which they and the carries are read at once.
        carries : ndarray of uint32, shape (slices, CARRY_WORDS), Carried, or None
            What the piece before it returned; None for the first.
        unfinished : bool
            Whether a piece follows.
        out : ndarray, optional
            An array to fill, in C order, with the results from the beginning of their memory on.
        stay : bool
            Whether the carries after it stay on the device, so that nothing waits for it.

        Returns
        -------
        ndarray of uint32, shape (slices, CARRY_WORDS), Carried, or None
            What the piece after it takes; None if there is none.

        Raises
        ------
        DeviceReleasedError, ReleasedArrayError
            If the device or a buffer is gone.
        """
        kept = carries.buffer if isinstance(carries, Carried) else None
        with self.use(source, *(buffer for buffer in (target, kept) if buffer is not None)):
            one_buffer = target is not None and source.gpu_buffer is target.gpu_buffer
            piece, carries = self._plan_behind(problem, carries, one_buffer=one_buffer, unfinished=unfinished)
            result_bytes = problem.slices * problem.axis.size * problem.element.itemsize
            start = ceil_div(result_bytes, _BINDING_ALIGNMENT) * _BINDING_ALIGNMENT if target is None else 0
            own = self._memory.temporary(self, start + piece.plan.state_bytes)
            results = own if target is None else target
            try:
                if isinstance(carries, np.ndarray):
                    self._transfers.write(own, start, piece.form.words(carries))
                after = Carried.room(self, piece.form) if stay and unfinished else None
                before_run = carries.copies_to(own, start, piece.form) if isinstance(carries, Carried) else ()
                after_run = () if after is None else after.copies_from(own, start)
                self._executor.run(
                    piece.plan,
                    source.gpu_buffer,
                    results.gpu_buffer,
                    self.limits.dispatch_elements,
                    keep=source.temporary and results.temporary,
                    scratch=(own.gpu_buffer, start),
                    copies=(before_run, after_run),
                )
                words = np.empty(piece.form.shape, np.uint32) if unfinished and not stay else None
                wanted = [] if out is None else [(0, out)]
                carried = [] if words is None else [(start, words)]
                if target is None:
                    self._transfers.read(own, *wanted, *carried)
                else:
                    self._transfers.read(target, *wanted)
                    self._transfers.read(own, *carried)
                return after if words is None else piece.form.carries(words)
            finally:
                own.release()

    def _plan_behind(
        self,
        problem: ScanProblem,
        carries: NDArray[np.uint32] | Carried | None,
        *,
        one_buffer: bool,
        unfinished: bool,
    ) -> tuple[PiecePlan, NDArray[np.uint32] | Carried | None]:
        """Return the plan of a piece, and the carries before it, which leave the device only where they must."""
        if isinstance(carries, Carried):
            words = carries.form.slice_words if isinstance(carries.form, CarryRows) else 0
            plan = _plan_piece(
                problem, self.limits, one_buffer=one_buffer, before=1, unfinished=unfinished, slice_words=words
            ).behind(carries.form)
            if moves(carries.form, plan.form) is not None:
                return plan, carries
            carries = carries.read()
        before = first_tile(problem, carries)
        plan = _plan_piece(problem, self.limits, one_buffer=one_buffer, before=before, unfinished=unfinished)
        return plan, carries

    def run_totals(self, problem: ScanProblem, source: Buffer) -> NDArray[np.uint32]:
        """Return the records of whole tiles of a piece.

        Parameters
        ----------
        problem, source
            As in `run`, in place, with what `dmlgpu.planning.pieces.plan_totals` says.

        Returns
        -------
        ndarray of uint32, shape (slices, tiles, words)
            What ``wgsl/lib/tiles/state.wgsl`` says of each tile, in traversal order: `tile_record_words` each.

        Raises
        ------
        DeviceReleasedError, ReleasedArrayError
            If the device or the buffer is gone.
        """
        with self.use(source):
            totals = plan_totals(problem, self.limits)
            scratch = self._memory.temporary(self, totals.plan.state_bytes)
            try:
                data, most = source.gpu_buffer, self.limits.dispatch_elements
                self._executor.run(totals.plan, data, data, most, scratch=(scratch.gpu_buffer, 0))
                words = tile_record_words(problem.accumulator_words)
                records = np.empty((problem.slices, problem.axis.size // TILE, words), np.uint32)
                self._transfers.read(scratch, (4 * totals.first_word, records))
                return records
            finally:
                scratch.release()

    def compile(self, plan: Plan) -> None:
        """Compile the pipelines of a plan, so that binding it does not have to."""
        instance(plan, "plan", Plan, "make one with dmlgpu.planning.plan")
        with self.section:
            self.pipelines.get_all(planned.pipeline for planned in plan.passes)

    def bind(
        self,
        problem: ScanProblem | ElementwiseProblem,
        source: Any,
        target: Any,
        *,
        chunks: Sequence[int],
        scratch: tuple[Any, int] | None = None,
    ) -> Bound:
        """Prepare an operator over a caller's buffers, to be recorded into a caller's encoder.

        Parameters
        ----------
        problem : ScanProblem or ElementwiseProblem
            As in `run`.
        source, target : wgpu.GPUBuffer
            Of this device, without a `fault`.
        chunks : sequence of int
            As `dmlgpu.planning.plan.any_placement` returned for the problem.
        scratch : (wgpu.GPUBuffer, int), optional
            A buffer and the offset in bytes, a multiple of 256, from which the plan's ``scratch_bytes`` are free; they
            meet neither tensor.
        """
        with self.use():
            plan = plan_problem(problem, self.limits, one_buffer=source is target, chunks=chunks)
            return self._executor.bind(plan, source, target, scratch)

    def subnormals(self) -> Mapping[str, bool]:
        """Whether float32 subnormals survive sums and products, as measured once on the device.

        Returns
        -------
        mapping of str to bool
            For ``"sum"`` and ``"product"``, whether neither operands nor results are flushed to zero.
        """
        if self._subnormals is None:
            self._subnormals = measure_subnormals(self)
        return self._subnormals


@dataclass(frozen=True)
class Carried:
    """Carries that a piece of slices has left on a device.

    Attributes
    ----------
    buffer : Buffer
        Memory that begins with them, as scratch memory does.
    form : CarryRows, CarryColumns, CarryNumbers or CarrySlices
        How they lie there.
    """

    buffer: Buffer
    form: CarryForm

    @classmethod
    def room(cls, device: Device, form: CarryForm) -> Carried:
        """Return memory for carries."""
        return cls(device.recycled(4 * math.prod(form.shape)), form)

    def copies_from(self, scratch: Buffer, start: int) -> Sequence[Copy]:
        """Return the copies of carries that a piece has left at an offset of its scratch memory."""
        return ((scratch.gpu_buffer, start, self.buffer.gpu_buffer, 0, 4 * math.prod(self.form.shape)),)

    def copies_to(self, scratch: Buffer, start: int, form: CarryForm) -> Sequence[Copy]:
        """Return the copies to an offset of scratch memory, for a piece that takes carries in a form `moves` allows."""
        found = moves(self.form, form)
        assert found is not None
        return [
            (self.buffer.gpu_buffer, 4 * source, scratch.gpu_buffer, start + 4 * target, 4 * words)
            for source, target, words in found
        ]

    def read(self) -> NDArray[np.uint32]:
        """Return the carries of each slice, when the device has come so far."""
        words = np.empty(self.form.shape, np.uint32)
        self.buffer.device.download(self.buffer, 0, words)
        return self.form.carries(words)


class Use:
    """A device's section after a `check`; gives errors of wgpu a name of this package, above all that of a lost device.

    It is a class because generators would cost a small call some ten microseconds.
    """

    __slots__ = ("_buffers", "_device")

    def __init__(self, device: Device, buffers: tuple[Buffer, ...] = ()) -> None:
        self._device = device
        self._buffers = buffers

    def __enter__(self) -> None:
        self._device.section.__enter__()
        try:
            self._device.check(*self._buffers)
        except BaseException:
            self._device.section.__exit__()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if isinstance(error, Exception):
                self._rename(error)
        finally:
            self._device.section.__exit__()

    def _rename(self, error: Exception) -> None:
        # Whatever the error is, as wgpu-py's are of many types where the device is lost.
        if self._device.lost() and not isinstance(error, DeviceReleasedError):
            self._device.check()
        if isinstance(error, wgpu.GPUError):
            raise named(error, self._device.summary) from error


class Recorded(Use):
    """Uses a device, and has what runs meanwhile recorded into a caller's encoder; nothing of it is submitted.

    Memory that it uses is left to wgpu, see `Buffer.leave_to_wgpu`: when the caller submits is not known.
    """

    __slots__ = ("_encoder", "_executor")

    def __init__(self, device: Device, encoder: Any) -> None:
        super().__init__(device)
        self._encoder, self._executor = encoder, device._executor

    def __enter__(self) -> None:
        super().__enter__()
        try:
            self._executor.begin_recording(self._encoder)
        except BaseException as error:
            super().__exit__(type(error), error, error.__traceback__)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._executor.end_recording()
        super().__exit__(kind, error, trace)


class Batch(Use):
    """Uses a device, and lets what runs meanwhile wait until bytes are read or written, or until the end.

    After an error, what was not submitted is dropped. Batches don't nest.
    """

    __slots__ = ("_executor",)

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._executor = device._executor

    def __enter__(self) -> None:
        super().__enter__()
        self._executor.begin_batch()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._executor.end_batch(drop=kind is not None)
        except BaseException as late:
            super().__exit__(type(late), late, late.__traceback__)
            raise
        super().__exit__(kind, error, trace)


def _plain(x: NDArray[Any], argument: str) -> NDArray[Any]:
    """Return an array of numbers as a plain ndarray: subclasses, such as numpy.matrix, may reshape in another way."""
    instance(x, argument, np.ndarray, "give a numpy.ndarray")
    if isinstance(x, np.ma.MaskedArray):
        raise ArrayTypeError(f"{argument} is {with_type(x)}; give a plain numpy.ndarray, such as {argument}.filled(0)")
    by_dtype(x.dtype, argument)
    return np.asarray(x)


def _check_range(buffer: Buffer, offset: int, x: NDArray[Any], argument: str, *, multiple: int = 1) -> int:
    """Return the offset of an array's bytes, which must lie in a buffer."""
    instance(buffer, "buffer", Buffer, "give what allocate returned")
    start = count(offset, "offset")
    if start % multiple:
        raise ArgumentError(f"offset is {shown(start)}; give a multiple of {multiple}")
    if start + x.nbytes > ceil_div(buffer.nbytes, multiple) * multiple:
        raise ArgumentError(
            f"{argument} has {x.nbytes} bytes, which with offset {shown(start)} end outside the {buffer.nbytes} of "
            "buffer: give less, or a larger buffer"
        )
    return start


def _room(buffer: Buffer, offset: int, out: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Return `out` as a plain array, and the offset of what it is to be filled with."""
    plain = _plain(out, "out")
    if not plain.flags.writeable:
        raise ArgumentError("out is read-only: give an array that can be written, such as out.copy()")
    return plain, _check_range(buffer, offset, plain, "out")


_open: dict[int, Device] = {}
"""By the adapter's index: two equal GPUs have one summary."""
_chosen: dict[str | int, Device] = {}


def default_device() -> Device:
    """Return the device that calls without ``device=`` use, opened when first asked for.

    It is what ``DMLGPU_ADAPTER`` names (a substring of an adapter's summary, or its index), else the best adapter.

    Raises
    ------
    NoAdapterError, AdapterNotFoundError
        If there is no such adapter.
    """
    return resolve_device(None)


def resolve_device(device: Any) -> Device:
    """Return the device that an argument ``device=`` means; each adapter named is opened once, and anew if lost.

    Parameters
    ----------
    device : Device, wgpu.GPUDevice, str, int or None
        A device, or which adapter to open.

    Raises
    ------
    ArrayTypeError
        If `device` is of another type.
    DeviceReleasedError
        If this process was forked from one that has used a device.

    Warns
    -----
    DeviceLostWarning
        If the device was lost and another one is opened in its place.
    """
    if isinstance(device, Device):
        return device
    if isinstance(device, wgpu.GPUDevice):
        return Device.wrap(device)
    way_out = "give a dmlgpu.Device, a wgpu.GPUDevice, an adapter's index, or a part of its summary"
    wanted = check_choice(device, "device", way_out)
    choice = os.environ.get(ENVIRONMENT_VARIABLE, "") if wanted is None else wanted
    found = _chosen.get(choice)
    if found is not None and not found.released:
        return found
    check_process()  # before a lock that another thread may have held when this process was forked
    lost = None
    with _setting_up:
        # wgpu takes long to list its adapters, so a choice is kept.
        found = _chosen.get(choice)
        if found is None or found.released:
            adapter = select_adapter(wanted)
            found = before = _open.get(adapter.index)
            if found is None or found.released:
                found = _open[adapter.index] = Device(adapter)
                lost = before
            _chosen[choice] = found
    if lost is not None and lost.is_lost:
        warn_of_loss(lost.summary)
    return found


def wrap_buffer(gpu_buffer: Any, device: Any = None) -> Buffer:
    """Return the memory that is a caller's wgpu.GPUBuffer, on a device or, with None, on the one it says it is on.

    Raises
    ------
    ArrayTypeError
        If it says nothing; and as `Device.wrap_buffer`.
    """
    if device is None:
        device = owner_of(gpu_buffer)
        if device is None:
            raise ArrayTypeError(f"buffer is {with_type(gpu_buffer)} that names no wgpu device; give a wgpu.GPUBuffer")
    return resolve_device(device).wrap_buffer(gpu_buffer)
