"""Devices: open ones, and which one a call means."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Mapping
from types import TracebackType
from typing import Any, NoReturn

import numpy as np
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
from ..plan import plan_elementwise, plan_scan
from ..problem import ElementwiseProblem, Layout, Operator, ScanProblem, scan_problem
from ..windows import DISPATCH_ELEMENTS, SOFTWARE_DISPATCH_ELEMENTS, Limits
from .adapters import ENVIRONMENT_VARIABLE, AdapterDescription, devices, select_adapter
from .execute import Executor
from .memory import Buffer, Readback, Staging, read, write
from .pipelines import Pipelines

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
        features = [feature for feature in _WANTED_FEATURES if feature in chosen.features]
        try:
            self.gpu_device: Any = chosen.adapter.request_device_sync(
                required_features=features, required_limits=dict(limits or {})
            )
        except (wgpu.GPUError, RuntimeError, KeyError, ValueError) as error:
            raise DeviceError(f"the adapter {chosen.summary!r} gives no device with these limits: {error}") from error
        self.description = chosen
        self.lock = threading.RLock()
        self._process = os.getpid()
        self._released = False
        granted = self.gpu_device.limits
        self.limits = Limits(
            binding_bytes=granted["max-storage-buffer-binding-size"] // 4 * 4,
            offset_alignment=granted["min-storage-buffer-offset-alignment"],
            workgroups=granted["max-compute-workgroups-per-dimension"],
            software=chosen.is_software,
            dispatch_elements=SOFTWARE_DISPATCH_ELEMENTS if chosen.is_software else DISPATCH_ELEMENTS,
            float64=all(feature in self.gpu_device.features for feature in _WANTED_FEATURES),
        )
        self._executor = Executor(self.gpu_device)
        self._staging = Staging(self.gpu_device)
        self._subnormals: dict[str, bool] | None = None
        if chosen.is_software:
            _warn_of_software(chosen)

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
        """Give back the device and the memory of all its arrays. May be called again."""
        with self.lock:
            if not self.released:
                self._released = True
                self.gpu_device.destroy()

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
            one_buffer = source is target
            if isinstance(problem, ScanProblem):
                plan = plan_scan(problem, self.limits, one_buffer=one_buffer, kernel=kernel)
            else:
                plan = plan_elementwise(problem, self.limits, one_buffer=one_buffer)
            self._executor.run(plan, source.gpu_buffer, target.gpu_buffer, self.limits.dispatch_elements)

    def subnormals(self) -> Mapping[str, bool]:
        """Whether float32 subnormals survive sums and products, as measured once on the device.

        Returns
        -------
        mapping of str to bool
            For ``"sum"`` and ``"product"``, whether neither operands nor results are flushed to zero.
        """
        if self._subnormals is None:
            smallest = np.float32(2.0**-126)
            cases = {
                "sum": np.array([[1.5 * smallest, -smallest], [0.5 * smallest, 0.5 * smallest]], np.float32),
                "product": np.array([[smallest, 0.5], [0.5 * smallest, 2.0]], np.float32),
            }
            self._subnormals = {
                name: bool(np.all(self._scan_rows(Operator(name), x)[:, 1] != 0)) for name, x in cases.items()
            }
        return self._subnormals

    def _scan_rows(self, operator: Operator, x: NDArray[np.float32]) -> NDArray[np.float32]:
        layout = Layout.packed(x.shape)
        problem = scan_problem(by_name("float32"), operator, layout, layout, axis=1)
        buffer = self.allocate(x.nbytes)
        out = np.empty_like(x)
        with self.lock:
            self.upload(buffer, 0, x)
            self.run(problem, buffer, buffer)
            self.download(buffer, 0, out)
            buffer.release()
        return out

    def _check(self, *buffers: Buffer) -> None:
        """Refuse what wgpu would panic on, or wait for forever."""
        if self._process != os.getpid():
            raise DeviceReleasedError(
                f"{self!r} was opened by process {self._process}; a GPU does not survive os.fork: start processes "
                "with multiprocessing's 'spawn' method and open a device in each"
            )
        if self._released:
            raise DeviceReleasedError(f"{self!r} cannot be used any longer; open another with dmlgpu.Device()")
        for buffer in buffers:
            if buffer.device is not self:
                raise ArrayTypeError(f"the array is on {buffer.device!r}, not on {self!r}; copy it there through NumPy")
            if buffer.released:
                raise ReleasedArrayError("the array's memory was released")


_open: dict[str, Device] = {}
_chosen: dict[str, Device] = {}
_open_lock = threading.Lock()
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


def resolve_device(device: Device | str | int | None) -> Device:
    """Return the device that an argument ``device=`` means; each adapter named is opened once.

    Raises
    ------
    ArrayTypeError
        If `device` is of another type.
    """
    if isinstance(device, Device):
        return device
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
