"""Pure: cuts a problem into windows that a device's bindings can hold.

A window is a box of the problem's dimensions. The windows of one set of slices follow each other along the axis, so
that a scan can carry its state from one to the next.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from ..errors import ArgumentError, shown
from ..layout import ceil_div
from .problem import Dimension
from .tuning import DEFAULTS, Tuning

__all__ = [
    "BLOCK",
    "MAX_BINDING_BYTES",
    "MAX_WINDOWS",
    "MIN_BINDING_BYTES",
    "MIN_WORKGROUPS",
    "QUAD_BYTES",
    "RUN",
    "SPAN",
    "SPAN_TILES",
    "TILE",
    "Limits",
    "Range",
    "SoftwareTraits",
    "Window",
    "byte_range",
    "chunk_sizes",
    "windows",
]

RUN, BLOCK, TILE, SPAN = 16, 256, 4096, 65_536
"""Elements of a run, a block, a tile and a span of the canonical order: where the axis is cut, whole ones keep the
carried state small."""
SPAN_TILES = SPAN // TILE

QUAD_BYTES = 16
"""Bytes of a vector of four words, which neighbours in memory are read and written by."""

DISPATCH_ELEMENTS = 2**28
"""Elements of one dispatch and of one submission at most, so that none runs into a watchdog on a modest GPU."""
SOFTWARE_DISPATCH_ELEMENTS = 2**24
"""The same on a CPU: wgpu's OpenGL backend ends the process if a thread waits 6 seconds for
another's submission (1 second on Windows)."""

_ADJACENT = 64
"""Rows of neighbouring slices are cut at multiples of as many: sectors and words stay whole."""
MAX_BINDING_BYTES = 2**32 - 4
"""What shaders address: a place is 32 bits, and its last word ends here."""
MIN_BINDING_BYTES = 512
"""What the scratch memory of a slice takes, or some elements with the alignment of their binding."""
MAX_WINDOWS = 2**20
"""Of a plan; it would take minutes to make one of more."""
MAX_ALIGNMENT = 2048
MIN_WORKGROUPS = 1
"""In a dimension of a grid."""


@dataclass(frozen=True)
class SoftwareTraits:
    """What a driver on a CPU is like, as far as `software.SoftwarePolicy` depends on it.

    Attributes
    ----------
    cores : int
        How many workgroups it computes at a time.
    columns : bool
        Whether an invocation takes many slices that are side by side, where that compiles in a few seconds
        (docs/kernels.md).
    near_elements : int
        Up to so many elements of a tensor are near, in caches and in pages that are known, in whatever order they are
        visited.
    lags : bool
        Whether 8 invocations at a time, each at the same place of a row or tile, would be short of lines in a cache
        (docs/kernels.md).

    Raises
    ------
    ArgumentError
        If there is no core.
    """

    cores: int = 2
    columns: bool = False
    near_elements: int = 2**19
    lags: bool = False

    def __post_init__(self) -> None:
        if self.cores < 1:
            raise ArgumentError(f"cores is {shown(self.cores)}, and plans need at least 1 cores: allow more")


SOFTWARE_TRAITS = SoftwareTraits()


@dataclass(frozen=True)
class Limits:
    """What a plan must know of a device.

    Attributes
    ----------
    binding_bytes : int
        The size of the largest storage binding, in bytes; of one that is larger, plans use `MAX_BINDING_BYTES`.
    offset_alignment : int
        The offset of a storage binding is a multiple of this many bytes, a power of two.
    workgroups : int
        The most workgroups in one dimension of a grid.
    software : bool
        Whether the adapter computes on the CPU.
    traits : SoftwareTraits
        What its driver is like, if it does.
    dispatch_elements : int
        The most elements of a dispatch, and of a submission.
    opaque : bool
        Whether the float operations of the order are hidden from the compiler, which costs nothing measurable
        (docs/kernels.md).
    float64 : bool
        Whether the device has 64-bit floats; without them float64 is computed on 32-bit words, with the same bits.
    rows : int
        The most workgroups in the second dimension of a grid.
    tuning : Tuning
        The thresholds between kernels.

    Raises
    ------
    ArgumentError
        If no plan can keep to a limit.
    """

    binding_bytes: int = 128 * 2**20
    offset_alignment: int = 256
    workgroups: int = 65_535
    software: bool = False
    traits: SoftwareTraits = SOFTWARE_TRAITS
    dispatch_elements: int = DISPATCH_ELEMENTS
    opaque: bool = True
    float64: bool = False
    rows: int = 65_535
    tuning: Tuning = DEFAULTS

    def __post_init__(self) -> None:
        align = self.offset_alignment
        if not 1 <= align <= MAX_ALIGNMENT or align & (align - 1):
            raise ArgumentError(
                f"offset_alignment is {shown(align)}, and must be a power of two up to {MAX_ALIGNMENT}: allow such "
                "offsets, or choose another device"
            )
        for name, least, of_what in (
            ("binding_bytes", max(MIN_BINDING_BYTES, 3 * align), "bytes of storage that a shader can bind"),
            ("workgroups", MIN_WORKGROUPS, "workgroups in a dimension of a grid"),
            ("rows", MIN_WORKGROUPS, "workgroups in a dimension of a grid"),
            ("dispatch_elements", 1, "elements in a dispatch"),
        ):
            value = getattr(self, name)
            if value < least:
                raise ArgumentError(
                    f"{name} is {shown(value)}, and plans need at least {least} {of_what}: allow more, or choose "
                    "another device"
                )
        object.__setattr__(self, "binding_bytes", min(self.binding_bytes, MAX_BINDING_BYTES) // 4 * 4)

    @property
    def binding_alignment(self) -> int:
        """The offsets of bindings in plans are multiples of this: of vectors and of all elements, too."""
        return max(QUAD_BYTES, self.offset_alignment)


@dataclass(frozen=True)
class Range:
    """A part of a buffer, in bytes."""

    offset: int
    size: int

    @property
    def end(self) -> int:
        """The byte after the last."""
        return self.offset + self.size


@dataclass(frozen=True)
class Window:
    """A box of a problem.

    Attributes
    ----------
    batch : tuple of Dimension
        As in the problem, with sizes cut.
    axis : Dimension
        The axis, with its size cut; of size 1 in elementwise problems.
    first : int
        The elements of the axis before the window.
    last : bool
        Whether the window ends its slices.
    input_offset, output_offset : int
        The position of the window's first element in each buffer, in elements.
    """

    batch: tuple[Dimension, ...]
    axis: Dimension
    first: int
    last: bool
    input_offset: int
    output_offset: int

    @property
    def slices(self) -> int:
        """The number of slices that pass through the window."""
        return math.prod(dimension.size for dimension in self.batch)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The length of each dimension, the axis last."""
        return (*(dimension.size for dimension in self.batch), self.axis.size)

    @property
    def elements(self) -> int:
        """The number of elements of the window."""
        return self.slices * self.axis.size


def byte_range(offset: int, dims: Sequence[tuple[int, int]], itemsize: int, alignment: int) -> Range:
    """Return the smallest bindable part of a buffer that holds a strided box.

    Parameters
    ----------
    offset : int
        The position of the first element, in elements.
    dims : sequence of (size, stride)
        In elements.
    itemsize : int
        Bytes an element.
    alignment : int
        The offset is a multiple of this many bytes; the size is a multiple of 4.
    """
    low = offset + sum((size - 1) * stride for size, stride in dims if stride < 0)
    high = offset + sum((size - 1) * stride for size, stride in dims if stride > 0) + 1
    start = low * itemsize // alignment * alignment
    return Range(start, ceil_div(high * itemsize, 4) * 4 - start)


def chunk_sizes(
    dims: Sequence[Dimension], itemsizes: tuple[int, int], capacity: int, max_elements: int = DISPATCH_ELEMENTS
) -> list[int]:
    """Return the size to cut each dimension to, so that every window of either tensor spans at most `capacity` bytes.

    Parameters
    ----------
    dims : sequence of Dimension
        The batch dimensions and, last, the axis, which is cut at multiples of `SPAN`, `TILE` or `RUN`, the largest
        of them that it is longer than. To have fewer elements, windows are cut between slices or at whole tiles, where
        that is possible.
    itemsizes : (int, int)
        Bytes an element of input and output.
    capacity : int
        Bytes; at least one element.
    max_elements : int
        The most elements of a window; at least one.
    """
    assert capacity >= max(itemsizes)
    assert max_elements >= 1
    chunks = [dimension.size for dimension in dims]
    strides = (
        [abs(dimension.input_stride) * itemsizes[0] for dimension in dims],
        [abs(dimension.output_stride) * itemsizes[1] for dimension in dims],
    )

    def reach(tensor: int, i: int) -> int:
        return (chunks[i] - 1) * strides[tensor][i]

    def is_inner(i: int) -> bool:
        return max(by[i] for by in strides) <= max(by[axis] for by in strides)

    def halve(i: int) -> None:
        half = (chunks[i] + 1) // 2
        units = (SPAN, TILE, RUN) if i == axis else (_ADJACENT,) * is_inner(i)
        unit = next((u for u in units if u < chunks[i]), 1)
        chunks[i] = ceil_div(half, unit) * unit

    def outermost_or_longest() -> int:
        outer = [i for i in range(axis) if chunks[i] > 1 and not is_inner(i)]
        if outer:
            return max(outer, key=lambda i: max(reach(0, i), reach(1, i)))
        others = [i for i in indices if chunks[i] > (TILE if i == axis else 1)]
        return max(others or [axis], key=lambda i: chunks[i])

    indices, axis = range(len(chunks)), len(chunks) - 1
    for tensor in (0, 1):
        while sum(reach(tensor, i) for i in indices) + itemsizes[tensor] > capacity:
            halve(max(indices, key=lambda i: reach(tensor, i)))
    while math.prod(chunks) > max_elements:
        halve(outermost_or_longest())
    return chunks


def windows(
    batch: Sequence[Dimension], axis: Dimension, offsets: tuple[int, int], chunks: Sequence[int]
) -> Iterator[Window]:
    """Yield the windows of a problem: for each box of slices, its windows along the axis in traversal order.

    Parameters
    ----------
    batch, axis : sequence of Dimension, Dimension
        The problem's dimensions.
    offsets : (int, int)
        The position of the first element in input and output, in elements.
    chunks : sequence of int
        What `chunk_sizes` returned for ``[*batch, axis]``.

    Raises
    ------
    ArgumentError
        If there are more than `MAX_WINDOWS`.
    """
    dims = (*batch, axis)
    starts = [range(0, dimension.size, chunk) for dimension, chunk in zip(dims, chunks, strict=True)]
    count = math.prod(len(along) for along in starts)
    if count > MAX_WINDOWS:
        raise ArgumentError(
            f"the arrays would have to be cut into {count} parts that the device can bind, and at most {MAX_WINDOWS} "
            "are supported: scan in pieces with dmlgpu.Scan, lay the elements closer together, or choose another device"
        )
    for corner in product(*starts):
        cut = [
            Dimension(min(chunk, dimension.size - start), dimension.input_stride, dimension.output_stride)
            for dimension, chunk, start in zip(dims, chunks, corner, strict=True)
        ]
        yield Window(
            batch=tuple(dimension for dimension in cut[:-1] if dimension.size > 1),
            axis=cut[-1],
            first=corner[-1],
            last=corner[-1] + cut[-1].size == axis.size,
            input_offset=offsets[0] + sum(s * d.input_stride for s, d in zip(corner, dims, strict=True)),
            output_offset=offsets[1] + sum(s * d.output_stride for s, d in zip(corner, dims, strict=True)),
        )
