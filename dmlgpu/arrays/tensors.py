"""Strided elements in a device's buffer, and how they are made, moved and read back. Below every public array."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..dtypes import ElementType, by_dtype
from ..errors import ReleasedArrayError
from ..layout import Layout, overlap
from ..planning.problem import ElementwiseProblem, ScanProblem, convert_problem
from .host import host_empty, memory_order

if TYPE_CHECKING:
    from ..runtime.device import Buffer, Device

__all__ = [
    "Tensor",
    "assign",
    "copied_if_overlapping",
    "copy",
    "download",
    "download_async",
    "empty",
    "packed",
    "run",
    "upload",
]

_WHOLE_EXTENT = 1 << 16
"""Views of up to so many bytes are read back with their gaps, which is quicker than packing them on the device."""


_MOST_STRETCHES = 64
"""Up to so many stretches of memory are copied as bytes, each by a command of its own."""


@dataclass(frozen=True, eq=False)
class Tensor:
    """Elements of one type in a buffer.

    Attributes
    ----------
    buffer : Buffer
        The memory, which views share.
    element : ElementType
        The type of the elements; in a caller's buffer, others may have another.
    layout : Layout
        Where the elements lie.
    """

    buffer: Buffer
    element: ElementType
    layout: Layout

    @property
    def device(self) -> Device:
        """The device that holds the memory."""
        return self.buffer.device

    def check_live(self) -> None:
        """Raise ReleasedArrayError if the memory was released. A released device reports itself when it is used."""
        if self.buffer.released and not self.device.released:
            raise ReleasedArrayError(
                f"the memory of this array of shape {self.layout.sizes} was released: make a new one, and call "
                "release() only after the last use of the array and its views"
            )


def empty(device: Device, element: ElementType, sizes: tuple[int, ...], *, temporary: bool = False) -> Tensor:
    """Allocate a packed tensor, which may hold anything; a temporary one is released before the call returns."""
    layout = Layout.packed(sizes)
    nbytes = max(1, layout.count * element.itemsize)
    return Tensor(device.recycled(nbytes, temporary=temporary), element, layout)


def upload(device: Device, x: NDArray[Any], *, temporary: bool = False) -> Tensor:
    """Copy an ndarray that `host_array` accepted to the device, keeping its order in memory."""
    element = by_dtype(x.dtype)
    if x.size == 0:
        return empty(device, element, x.shape, temporary=temporary)
    view, layout = memory_order(x)
    if not temporary:
        return Tensor(device.allocate_filled(view), element, layout)
    buffer = device.recycled(view.nbytes, temporary=True)
    try:
        device.upload(buffer, 0, view)
    except BaseException:
        buffer.release()
        raise
    return Tensor(buffer, element, layout)


def run(problem: ScanProblem | ElementwiseProblem, source: Tensor, target: Tensor) -> None:
    """Run a problem that was made from the layouts of these tensors, both of at least one element."""
    source.check_live()
    target.check_live()
    target.device.run(problem, source.buffer, target.buffer)


def assign(source: Tensor, target: Tensor) -> None:
    """Copy or convert every element of `source` to its place in `target`, which must not overlap it."""
    if target.layout.count:
        run(convert_problem(source.element, target.element, source.layout, target.layout), source, target)


def copy(source: Tensor, target: Tensor) -> None:
    """Copy every element of `source` to its place in `target`, of the same type, shape and device, and other memory.

    As bytes where each index of the first dimension has a stretch of memory in both, which on lavapipe takes a fifth of
    the time; by `assign` elsewhere.
    """
    count, *others = source.layout.sizes
    nbytes = math.prod(others) * source.element.itemsize
    starts = [_stretches(one) for one in (source, target)]
    if None in starts or nbytes % 4 or count > _MOST_STRETCHES or not source.buffer.readable:
        assign(source, target)
    elif nbytes:
        source.check_live()
        parts = [(start, end, nbytes) for start, end in zip(*starts, strict=True)]
        source.device.copy(source.buffer, target.buffer, parts)


def _stretches(tensor: Tensor) -> list[int] | None:
    """Return the bytes where indexes of the first dimension begin; None where not all are stretches of whole words."""
    layout, itemsize = tensor.layout, tensor.element.itemsize
    others = Layout(layout.sizes[1:], layout.strides[1:])
    if not others.is_packed:
        return None
    starts = [itemsize * (layout.offset + n * layout.strides[0]) for n in range(layout.sizes[0])]
    return None if any(start % 4 for start in starts) else starts


def packed(source: Tensor, element: ElementType, *, temporary: bool = False) -> Tensor:
    """Return a packed copy, converted to `element`."""
    with source.device.section:
        source.check_live()
        target = empty(source.device, element, source.layout.sizes, temporary=temporary)
        assign(source, target)
    return target


def copied_if_overlapping(source: Tensor, target: Tensor) -> AbstractContextManager[Tensor]:
    """Give `source`, or a temporary copy of it if an operator that writes `target` would overwrite what it reads."""
    if source is not target and source.buffer is target.buffer:
        read, written = (tensor.layout.in_bytes(tensor.element.itemsize) for tensor in (source, target))
        if overlap(read, written) and not read.same_places(written):
            return _copied(source)
    return nullcontext(source)


@contextmanager
def _copied(source: Tensor) -> Iterator[Tensor]:
    """Give a temporary, packed copy."""
    copy = packed(source, source.element, temporary=True)
    try:
        yield copy
    finally:
        copy.buffer.release()


def download(source: Tensor) -> NDArray[Any]:
    """Read a tensor back into a new C-contiguous array."""
    source.check_live()
    if source.layout.count == 0:
        return host_empty(source.layout.sizes, source.element)
    if source.layout.is_packed and source.buffer.readable:
        out = host_empty(source.layout.sizes, source.element)
        source.device.download(source.buffer, source.layout.offset * source.element.itemsize, out)
        return out
    with source.device.section, _readable(source) as readable:
        start, landing, view = _landing(readable)
        readable.device.download(readable.buffer, start, landing)
    return _contiguous(view)


async def download_async(source: Tensor) -> NDArray[Any]:
    """Read a tensor back as `download` does, without blocking the event loop.

    The device is not locked while waiting: another task of this thread would pass the lock, other threads would wait.
    """
    source.check_live()
    if source.layout.count == 0:
        return host_empty(source.layout.sizes, source.element)
    with _readable(source) as readable:
        start, landing, view = _landing(readable)
        await readable.device.download_async(readable.buffer, start, landing)
    return _contiguous(view)


def _readable(source: Tensor) -> AbstractContextManager[Tensor]:
    """Give a tensor of the same elements that is worth downloading with all that lies between them."""
    low, high = source.layout.extent
    small = (high - low) * source.element.itemsize <= _WHOLE_EXTENT
    if source.buffer.readable and (small or source.layout.is_packed or high - low < source.layout.count):
        return nullcontext(source)
    return _copied(source)


def _landing(source: Tensor) -> tuple[int, NDArray[Any], NDArray[Any]]:
    """Return the byte to download from, an array to download into, and where the elements are in it."""
    layout = source.layout
    low, high = layout.extent
    landing = host_empty((high - low,), source.element)
    return low * source.element.itemsize, landing, replace(layout, offset=layout.offset - low).view(landing)


def _contiguous(view: NDArray[Any]) -> NDArray[Any]:
    if view.flags.c_contiguous:
        return view
    result = host_empty(view.shape, by_dtype(view.dtype))
    np.copyto(result, view)
    return result
