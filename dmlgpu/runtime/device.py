"""Devices: open ones, and which one a call means."""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, NoReturn

import wgpu
from numpy.typing import NDArray

from ..dtypes import by_name
from ..errors import (
    ArrayTypeError,
    DeviceError,
    DeviceReleasedError,
    ReleasedArrayError,
    SoftwareAdapterWarning,
)
from ..passes import Plan
from ..plan import plan_problem
from ..problem import ElementwiseProblem, ScanProblem
from ..windows import DISPATCH_ELEMENTS, SOFTWARE_DISPATCH_ELEMENTS, Limits
from .adapters import ENVIRONMENT_VARIABLE, AdapterDescription, describe, devices, select_adapter
from .backend import companion_of, set_companion
from .execute import Bound, Executor
from .liveness import Fault, Liveness
from .memory import Buffer, Readback, Staging, read, write
from .pipelines import Pipelines
from .probes import measure_subnormals

__all__ = ["Buffer", "Device", "default_device", "devices", "resolve_device", "select_adapter"]

_WANTED_FEATURES = by_name("float64").features


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
        The device below.
    lock : threading.RLock
        Held while a call records, submits and reads back; hold it to make several calls one.
    owned : bool
        Whether `release` destroys `gpu_device`: not if it is a caller's, see `wrap`.

    Raises
    ------
    NoAdapterError, AdapterNotFoundError
        If there is no such adapter.
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
        chosen = adapter if isinstance(adapter, AdapterDescription) else select_adapter(adapter)
        features = [feature for feature in (*_WANTED_FEATURES, "timestamp-query") if feature in chosen.features]
        try:
            gpu_device = chosen.adapter.request_device_sync(
                required_features=features, required_limits=dict(limits or {})
            )
        except (wgpu.GPUError, RuntimeError, KeyError, ValueError) as error:
            raise DeviceError(f"the adapter {chosen.summary!r} gives no device with these limits: {error}") from error
        self._set_up(gpu_device, chosen, owned=True)
        if chosen.is_software:
            _warn_of_software(chosen)

    def _set_up(self, gpu_device: Any, description: AdapterDescription, *, owned: bool) -> None:
        self.gpu_device: Any = gpu_device
        self.description = description
        self.owned = owned
        self.lock = threading.RLock()
        self._process = os.getpid()
        self._released = False
        granted = gpu_device.limits
        self.limits = Limits(
            binding_bytes=granted["max-storage-buffer-binding-size"] // 4 * 4,
            offset_alignment=granted["min-storage-buffer-offset-alignment"],
            workgroups=granted["max-compute-workgroups-per-dimension"],
            software=description.is_software,
            dispatch_elements=SOFTWARE_DISPATCH_ELEMENTS if description.is_software else DISPATCH_ELEMENTS,
            float64=all(feature in gpu_device.features for feature in _WANTED_FEATURES),
        )
        self._executor = Executor(gpu_device)
        self._staging = Staging(gpu_device)
        self._liveness = Liveness(gpu_device)
        self._wrapped: weakref.WeakValueDictionary[int, Buffer] = weakref.WeakValueDictionary()
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
            If it was destroyed or lost.

        Examples
        --------
        >>> import dmlgpu
        >>> gpu_device = dmlgpu.devices()[0].adapter.request_device_sync()
        >>> device = dmlgpu.Device.wrap(gpu_device)
        >>> print(dmlgpu.cumulative_sum([1, 2, 3], device=device))
        [1 3 6]
        """
        if not isinstance(gpu_device, wgpu.GPUDevice):
            raise ArrayTypeError(f"gpu_device is a {type(gpu_device).__name__}; give a wgpu.GPUDevice")
        with _wrap_lock:
            found: Device | None = companion_of(gpu_device)
            if found is None or found.released:
                found = cls.__new__(cls)
                try:
                    found._set_up(gpu_device, describe(-1, gpu_device.adapter), owned=False)
                except wgpu.GPUError as error:
                    raise DeviceReleasedError(f"the wgpu device cannot be used: {error}") from error
        return found

    @property
    def summary(self) -> str:
        """The adapter's one-line summary, as wgpu gives it."""
        return self.description.summary

    @property
    def pipelines(self) -> Pipelines:
        """The compiled pipelines."""
        return self._executor.pipelines

    @property
    def released(self) -> bool:
        """Whether `release` was called, or the device was opened by another process than this one."""
        return self._released or self._process != os.getpid()

    def __repr__(self) -> str:
        return f"<dmlgpu.Device {self.summary!r}{' (released)' if self.released else ''}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a dmlgpu.Device cannot be pickled; open one in each process with dmlgpu.Device()")

    def __enter__(self) -> Device:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def release(self) -> None:
        """Give back the device and the memory of all its arrays; a caller's device stays. May be called again."""
        with self.lock:
            if not self.released:
                self._released = True
                if self.owned:
                    self.gpu_device.destroy()

    def lost(self) -> bool:
        """Whether the device cannot be used any longer: released, destroyed below, or given up by the driver."""
        with self.lock:
            return self.released or self._liveness.lost()

    def fault(self, gpu_buffer: Any) -> Fault | None:
        """Return why a caller's wgpu.GPUBuffer cannot be used on this device now, or None if it can."""
        with self.lock:
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
        with self.lock:
            self._check()
            self._liveness.check(gpu_buffer)
            found = self._wrapped.get(id(gpu_buffer))
            if found is None or found.released:
                found = self._wrapped[id(gpu_buffer)] = Buffer(self, gpu_buffer.size, gpu_buffer)
            return found

    def allocate(self, nbytes: int) -> Buffer:
        """Return zero-filled memory.

        Raises
        ------
        DeviceMemoryError
            If it is more than the device's largest buffer, or its memory is exhausted.
        """
        with self.lock:
            self._check()
            return Buffer(self, nbytes)

    def upload(self, buffer: Buffer, offset: int, data: NDArray[Any]) -> None:
        """Write a C-contiguous array's bytes to a buffer.

        Parameters
        ----------
        buffer : Buffer
            Of this device.
        offset : int
            In bytes, a multiple of 4.
        data : ndarray
            Its bytes, rounded up to a multiple of 4 with zeros, must fit.
        """
        if data.size:
            with self.lock:
                self._check(buffer)
                write(self.gpu_device, buffer.gpu_buffer, offset, data)

    def download(self, buffer: Buffer, offset: int, out: NDArray[Any]) -> None:
        """Fill a C-contiguous array with the bytes of a buffer from `offset` on."""
        if out.size:
            with self.lock:
                self._check(buffer)
                read(self.gpu_device, self._staging, buffer.gpu_buffer, offset, out)

    async def download_async(self, buffer: Buffer, offset: int, out: NDArray[Any]) -> None:
        """Do as `download` without blocking the event loop."""
        if out.size:
            with self.lock:
                self._check(buffer)
                readback = Readback(self.gpu_device, buffer.gpu_buffer, offset, out.nbytes)
            await readback.into(out)

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
        kernel : {None, "slices", "tiles"}
            Force the way to scan, for tests and benchmarks.

        Raises
        ------
        DeviceReleasedError, ReleasedArrayError
            If the device or a buffer is gone.
        """
        with self.lock:
            self._check(source, target)
            one_buffer = source.gpu_buffer is target.gpu_buffer
            plan = plan_problem(problem, self.limits, one_buffer=one_buffer, kernel=kernel)
            self._executor.run(plan, source.gpu_buffer, target.gpu_buffer, self.limits.dispatch_elements)

    def compile(self, plan: Plan) -> None:
        """Compile the pipelines of a plan, so that binding it does not have to."""
        with self.lock:
            for one in plan.passes:
                self.pipelines.get(one.pipeline)

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
            As `dmlgpu.plan.any_placement` returned for the problem.
        scratch : (wgpu.GPUBuffer, int), optional
            A buffer and the offset in bytes, a multiple of 256, from which the plan's ``scratch_bytes`` are free; they
            meet neither tensor.
        """
        with self.lock:
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

    def _check(self, *buffers: Buffer) -> None:
        """Refuse what wgpu would panic on, or wait for forever."""
        if self._process != os.getpid():
            raise DeviceReleasedError(
                f"{self!r} was opened by process {self._process}; a GPU does not survive os.fork: start processes "
                "with multiprocessing's 'spawn' method and open a device in each"
            )
        if self._released:
            raise DeviceReleasedError(f"{self!r} cannot be used any longer; open another with dmlgpu.Device()")
        if not self.owned and self._liveness.lost():
            raise DeviceReleasedError(f"the wgpu device of {self!r} was destroyed or lost; wrap another one")
        for buffer in buffers:
            if buffer.device is not self:
                raise ArrayTypeError(f"the array is on {buffer.device!r}, not on {self!r}; copy it there through NumPy")
            if buffer.released:
                raise ReleasedArrayError("the array's memory was released")
            if not buffer.owned:
                self._liveness.check(buffer.gpu_buffer)


_open: dict[str, Device] = {}
_chosen: dict[str, Device] = {}
_open_lock = threading.Lock()
_wrap_lock = threading.Lock()
_warned = False


def _warn_of_software(adapter: AdapterDescription) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"computing on the CPU: {adapter.summary} is a software adapter (same results, less speed)",
            SoftwareAdapterWarning,
            stacklevel=4,
        )


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
    """Return the device that an argument ``device=`` means; each adapter named is opened once.

    Parameters
    ----------
    device : Device, wgpu.GPUDevice, str, int or None
        A device, or which adapter to open.

    Raises
    ------
    ArrayTypeError
        If `device` is of another type.
    """
    if isinstance(device, Device):
        return device
    if isinstance(device, wgpu.GPUDevice):
        return Device.wrap(device)
    if device is not None and (isinstance(device, bool) or not isinstance(device, str | int)):
        raise ArrayTypeError(
            f"device is a {type(device).__name__}; give a dmlgpu.Device, an adapter's index, or a part of its summary"
        )
    choice = os.environ.get(ENVIRONMENT_VARIABLE, "") if device is None else str(device)
    with _open_lock:
        # Asking wgpu for its adapters takes long, so a choice made once is kept.
        found = _chosen.get(choice)
        if found is None or found.released:
            adapter = select_adapter(device)
            found = _open.get(adapter.summary)
            if found is None or found.released:
                found = _open[adapter.summary] = Device(adapter)
            _chosen[choice] = found
        return found
