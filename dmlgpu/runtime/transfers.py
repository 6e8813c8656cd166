"""Transfers between NumPy and the device (docs/runtime.md).

A buffer that is mapped, or about to be, ends the process when it is submitted. So a mapping that was begun is undone
whatever happens meanwhile, and all of this happens in a `Section`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DeviceError, DeviceLostError
from ..layout import ceil_div
from ..sections import TICK, let_interrupts_through
from . import memory
from .executor import Executor
from .measured import usable_cores
from .memory import Buffer, Memory, Pool
from .wgpu_private import ask_for_news, cancel_mapping, fill_mapped, map_submitted, map_to_write, reject, settled

__all__ = ["Transfers", "copy_array", "fill"]

_SMALL = 256 * 2**10
"""Uploads up to this size use `queue.write_buffer`; mapping would stall until the device is idle."""
_PIECE_BYTES = 4 * 2**20
"""The bytes that a thread copies at a time. Starting a thread costs as much as copying a tenth of them."""
_MAX_THREADS = 4
"""The most threads that copy: so many use the bandwidth of any usual machine."""

_Piece = tuple[NDArray[Any], NDArray[Any]]
_Part = tuple[int, NDArray[Any]]
"""An offset in a buffer, and the array that is to be filled from there on."""


def _whole_words(nbytes: int) -> int:
    """Return as many bytes, or up to 3 more."""
    return ceil_div(nbytes, 4) * 4


def _native(data: NDArray[Any]) -> np.dtype[Any]:
    return data.dtype.newbyteorder("=")


def _contiguous_bytes(data: NDArray[Any]) -> NDArray[np.uint8]:
    """Return an array's elements as native bytes in C order, without a copy where they lie so."""
    return np.ascontiguousarray(data, _native(data)).reshape(-1).view(np.uint8)


def _put(target: NDArray[np.uint8], data: NDArray[Any]) -> None:
    """Write an array's elements as native bytes in C order."""
    copy_array(target.view(_native(data)).reshape(data.shape), data)


def fill(gpu_buffer: Any, data: NDArray[Any]) -> None:
    """Write an array to the start of a buffer that is mapped for writing."""
    _fill_padded(gpu_buffer, 0, data.nbytes, lambda target: _put(target, data))


def _fill_padded(gpu_buffer: Any, offset: int, nbytes: int, write: Callable[[NDArray[np.uint8]], None]) -> None:
    """Have `write` write some bytes of a buffer that is mapped for writing, and zeros after them up to whole words."""

    def write_all(target: NDArray[np.uint8]) -> None:
        write(target[:nbytes])
        target[nbytes:] = 0

    fill_mapped(gpu_buffer, offset, _whole_words(nbytes), write_all)


class Transfers:
    """Copies between NumPy arrays and buffers that are alive, under the device's lock."""

    def __init__(self, gpu_device: Any, executor: Executor, pools: Memory, lost: Callable[[], bool]) -> None:
        self._gpu_device = gpu_device
        self._executor = executor
        self._pools = pools
        self._lost = lost
        self._awaited: set[Any] = set()
        self._largest: int = gpu_device.limits["max-buffer-size"] // 8 * 8

    @property
    def _chunk(self) -> int:
        """The most bytes of a staging buffer."""
        return min(memory.CHUNK, self._largest)

    def write(self, buffer: Buffer, offset: int, data: NDArray[Any]) -> None:
        """Write an array's elements, in C order, at a multiple of 4 bytes; see `Device.upload`."""
        if data.nbytes <= _SMALL:
            self._write_small(buffer.gpu_buffer, offset, _contiguous_bytes(data))
        elif buffer.mappable and offset % 8 == 0:
            self._write_mapped(buffer.gpu_buffer, offset, data.nbytes, lambda target: _put(target, data))
        else:
            self._write_staged(buffer.gpu_buffer, offset, _contiguous_bytes(data))

    def write_by(self, buffer: Buffer, nbytes: int, write: Callable[[NDArray[np.uint8]], None]) -> None:
        """Have `write` write the first bytes of a buffer, where they are or, if the host has no access, elsewhere."""
        if nbytes > _SMALL and buffer.mappable:
            self._write_mapped(buffer.gpu_buffer, 0, nbytes, write)
            return
        data = np.empty(nbytes, np.uint8)
        write(data)
        self.write(buffer, 0, data)

    def read(self, buffer: Buffer, *parts: _Part) -> None:
        """Fill arrays, in C order, each with the bytes from an offset on; offsets increase."""
        if buffer.mappable:
            if parts:
                self._read_mapped(buffer.gpu_buffer, parts)
            return
        for offset, out in parts:
            packed = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
            self._read_staged(buffer.gpu_buffer, offset, packed.reshape(-1).view(np.uint8))
            if packed is not out:
                np.copyto(out, packed)

    def _write_small(self, gpu_buffer: Any, offset: int, source: NDArray[np.uint8]) -> None:
        if source.size % 4:
            padded = np.zeros(_whole_words(source.size), np.uint8)
            padded[: source.size] = source
            source = padded
        self._executor.write(gpu_buffer, offset, source)

    def _write_mapped(
        self, gpu_buffer: Any, offset: int, nbytes: int, write: Callable[[NDArray[np.uint8]], None]
    ) -> None:
        self._executor.flush()
        with self._mapped(gpu_buffer, map_to_write(gpu_buffer, offset, _whole_words(nbytes))):
            _fill_padded(gpu_buffer, offset, nbytes, write)

    def _read_mapped(self, gpu_buffer: Any, parts: Sequence[_Part]) -> None:
        self._executor.flush()
        start = parts[0][0] // 8 * 8
        size = _whole_words(parts[-1][0] + parts[-1][1].nbytes) - start
        with self._mapped(gpu_buffer, map_submitted(gpu_buffer, start, size)):
            source = _mapped_bytes(gpu_buffer, start, size)
            for offset, out in parts:
                copy_array(out, source[offset - start :][: out.nbytes].view(out.dtype).reshape(out.shape))

    # The device copies from or to one staging buffer while the host fills or empties another.

    def _write_staged(self, gpu_buffer: Any, offset: int, source: NDArray[np.uint8]) -> None:
        chunk = self._chunk
        with _stages(self._pools.upload, source.size, chunk) as stages:
            for i, start in enumerate(range(0, source.size, chunk)):
                part = source[start : start + chunk]
                stage = stages[i % len(stages)]
                with self._mapped(stage, map_to_write(stage, 0, _whole_words(part.size))):
                    fill(stage, part)
                self._executor.copy(stage, 0, gpu_buffer, offset + start, _whole_words(part.size))
                self._executor.flush()

    def _read_staged(self, gpu_buffer: Any, offset: int, target: NDArray[np.uint8]) -> None:
        chunk = self._chunk - 4
        begun: deque[tuple[_Readback, NDArray[np.uint8]]] = deque()
        with _stages(self._pools.readback, target.size + 4, self._chunk) as stages:
            try:
                for i, start in enumerate(range(0, target.size, chunk)):
                    if len(begun) == len(stages):
                        self._finish(*begun.popleft())
                    part = target[start : start + chunk]
                    begun.append((self._begin(gpu_buffer, offset + start, part.size, stages[i % len(stages)]), part))
                while begun:
                    self._finish(*begun.popleft())
            finally:
                for unfinished, _ in begun:
                    cancel_mapping(self._gpu_device, unfinished.stage, unfinished.promise)

    def _begin(self, gpu_buffer: Any, offset: int, nbytes: int, stage: Any) -> _Readback:
        """Submit a copy to a staging buffer, with all that was recorded, and begin to map that."""
        skip = offset % 4
        size = _whole_words(skip + nbytes)
        self._executor.copy(gpu_buffer, offset - skip, stage, 0, size)
        self._executor.flush()
        return _Readback(stage, map_submitted(stage, 0, size), skip)

    def _finish(self, begun: _Readback, target: NDArray[np.uint8]) -> None:
        with self._mapped(begun.stage, begun.promise):
            begun.take(target)

    def _mapped(self, gpu_buffer: Any, promise: Any) -> mapped:
        return mapped(self._gpu_device, gpu_buffer, promise, self._lost)

    def end_waits(self) -> None:
        """End what awaits a mapping, because the device is destroyed: wgpu may never tell of it."""
        for promise in list(self._awaited):
            reject(promise, "the device was destroyed")

    async def read_async(
        self,
        use: Callable[..., AbstractContextManager[None]],
        section: AbstractContextManager[None],
        buffer: Buffer,
        offset: int,
        out: NDArray[Any],
    ) -> None:
        """Fill an array as `read` does, without blocking the event loop; `out` is C-contiguous.

        The memory itself is never mapped here: meanwhile other tasks may run what uses it. The device is used in the
        contexts that `use` returns, and not locked while waiting; `section` is its section.
        """
        target = out.reshape(-1).view(np.uint8)
        chunk = self._chunk - 4
        for start in range(0, target.size, chunk):
            part = target[start : start + chunk]
            stage, promise = None, None
            try:
                with use(buffer):
                    stage = self._pools.readback.take(part.size + 4)
                    begun = self._begin(buffer.gpu_buffer, offset + start, part.size, stage)
                    promise = begun.promise
                self._awaited.add(promise)
                try:
                    await promise
                except RuntimeError as error:
                    with use():  # which says so where the device is lost
                        raise no_access(error) from error
                finally:
                    self._awaited.discard(promise)
                with use():
                    check_access(self._lost)
                    begun.take(part)
            finally:
                with section:
                    if stage is not None:
                        cancel_mapping(self._gpu_device, stage, promise)
                        self._pools.readback.give(stage)


@dataclass(frozen=True)
class _Readback:
    """A copy to a staging buffer that is under way, and whose buffer is being mapped."""

    stage: Any
    promise: Any
    skip: int

    def take(self, target: NDArray[np.uint8]) -> None:
        copy_array(
            target, _mapped_bytes(self.stage, 0, _whole_words(self.skip + target.size))[self.skip :][: target.size]
        )


def _mapped_bytes(gpu_buffer: Any, offset: int, size: int) -> NDArray[np.uint8]:
    """Return the bytes of a range that is mapped for reading, to be used only while it is."""
    return np.frombuffer(gpu_buffer.read_mapped(offset, size, copy=False), np.uint8)


@contextmanager
def _stages(pool: Pool, nbytes: int, chunk: int) -> Iterator[list[Any]]:
    """Take one staging buffer, or two where there is more than one chunk, and give them back."""
    stages: list[Any] = []
    try:
        stages.append(pool.take(min(nbytes, chunk)))
        if nbytes > chunk:
            stages.append(pool.take(chunk))
        yield stages
    finally:
        for stage in stages:
            pool.give(stage)


def no_access(error: Exception) -> DeviceError:
    """Return the error for a mapping that failed."""
    return DeviceError(f"the device gives no access to its memory: {error}; open another one with dmlgpu.Device()")


def check_access(lost: Callable[[], bool]) -> None:
    """Raise an error if the device is lost: asking for its memory would end the process."""
    if lost():
        raise DeviceLostError(
            "the wgpu device was destroyed or lost while its memory was awaited; open another with dmlgpu.Device()"
        )


class mapped:
    """Wait for a mapping that was begun, and undo it at the end of the block.

    Parameters
    ----------
    gpu_device : wgpu.GPUDevice
        Where the buffer is.
    gpu_buffer : wgpu.GPUBuffer
        What is being mapped.
    promise : wgpu.GPUPromise
        What ``map_async`` returned.
    lost : callable
        Whether the device is lost, so that there is nothing to wait for.

    Raises
    ------
    DeviceError
        If the device does not give access to its memory, being lost for instance.
    """

    __slots__ = ("_gpu_buffer", "_gpu_device", "_lost", "_promise")

    def __init__(self, gpu_device: Any, gpu_buffer: Any, promise: Any, lost: Callable[[], bool]) -> None:
        self._gpu_device = gpu_device
        self._gpu_buffer = gpu_buffer
        self._promise = promise
        self._lost = lost

    def __enter__(self) -> None:
        try:
            self._wait()
        except BaseException:
            cancel_mapping(self._gpu_device, self._gpu_buffer, self._promise)
            raise

    def __exit__(self, *exc_info: object) -> None:
        if self._gpu_buffer.map_state == "mapped":
            try:
                self._gpu_buffer.unmap()
            except BaseException:
                cancel_mapping(self._gpu_device, self._gpu_buffer, self._promise)
                raise

    def _wait(self) -> None:
        let_interrupts_through()
        while not settled(self._promise, TICK):
            let_interrupts_through()
            check_access(self._lost)
            ask_for_news(self._gpu_device)
        try:
            self._promise.sync_wait()
        except Exception as error:
            raise no_access(error) from error


def copy_array(target: NDArray[Any], source: NDArray[Any]) -> None:
    """Copy the elements of `source` to `target`, an array of the same shape and type in other memory.

    Large arrays are copied by several threads: one core cannot use all of a machine's bandwidth, nor get new pages from
    the system as fast as two.

    When this returns or raises, no thread reads or writes the arrays any more: their memory may be unmapped then.
    """
    helpers = min(_MAX_THREADS, usable_cores(), source.nbytes // _PIECE_BYTES) - 1
    if helpers < 1:
        np.copyto(target, source)
        return
    work = _Work(_pieces(target, source))
    interruption: BaseException | None = None
    try:
        work.call_helpers(helpers)
        work.do()
    finally:
        # Not a call: Ctrl-C may take effect where a function begins, and here nothing must come between.
        while True:
            try:
                work.pieces.clear()
                while work.helping:
                    work.done.get()
                break
            except BaseException as error:
                interruption = error
        if interruption is not None:
            raise interruption
    if work.error is not None:
        raise work.error


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MAX_THREADS - 1, thread_name_prefix="dmlgpu-copy")


def _pieces(target: NDArray[Any], source: NDArray[Any]) -> Iterator[_Piece]:
    """Yield parts of the arrays of some `_PIECE_BYTES` each."""
    if target.flags.c_contiguous and source.flags.c_contiguous:
        target, source = target.reshape(-1), source.reshape(-1)
    axis = max(range(target.ndim), key=lambda n: abs(target.strides[n]) if target.shape[n] > 1 else 0)
    target, source = np.moveaxis(target, axis, 0), np.moveaxis(source, axis, 0)
    step = max(1, len(target) * _PIECE_BYTES // target.nbytes)
    for start in range(0, len(target), step):
        yield target[start : start + step], source[start : start + step]


class _Work:
    """The pieces that the caller and its helpers take, and the helpers that are still at work.

    There is no lock that an interruption could leave taken: a helper says that it is at work, then looks for a piece;
    the caller takes the pieces away, then waits while someone is at work.
    """

    def __init__(self, pieces: Iterable[_Piece]) -> None:
        self.pieces = deque(pieces)
        self.helping: list[object] = []
        self.done: SimpleQueue[None] = SimpleQueue()
        self.error: BaseException | None = None

    def call_helpers(self, count: int) -> None:
        """Start other threads that help; none if the process ends or may have no more threads."""
        try:
            for _ in range(count):
                _threads().submit(self.help)
        except RuntimeError:
            return

    def do(self) -> None:
        """Copy pieces until none are left."""
        while True:
            try:
                piece = self.pieces.popleft()
            except IndexError:
                return
            np.copyto(*piece)

    def help(self) -> None:
        """Copy pieces in another thread."""
        token = object()
        self.helping.append(token)
        try:
            self.do()
        except BaseException as error:
            self.error = error
        finally:
            self.helping.remove(token)
            self.done.put(None)
