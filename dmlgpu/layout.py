"""Where the elements of a tensor lie in a buffer, and how indexing, transposing and reshaping change that.

No data moves. Strides and offsets count elements, may be negative, and are exact Python integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arguments import integer
from .errors import ArgumentError, ArrayIndexError, AxisError, counted, shown

__all__ = [
    "MAX_DIMENSIONS",
    "MAX_ELEMENTS",
    "Layout",
    "ceil_div",
    "check_sizes",
    "overlap",
    "packed_strides",
    "resolve_axis",
]

MAX_DIMENSIONS = 8
MAX_ELEMENTS = 2**32 - 1


def ceil_div(a: int, b: int) -> int:
    """Return the quotient of two integers, rounded up."""
    return -(-a // b)


def resolve_axis(axis: int, rank: int) -> int:
    """Return an axis of an array of `rank` dimensions counted from the start.

    Raises
    ------
    AxisError
        If it is outside them.
    """
    if not -rank <= axis < rank:
        raise AxisError(axis, rank)
    return axis % rank


def packed_strides(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, in elements, of a tensor without gaps in C order."""
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def check_sizes(sizes: Sequence[int], argument: str = "x") -> None:
    """Raise ArgumentError if no operator takes an array of these sizes."""
    if len(sizes) > MAX_DIMENSIONS:
        raise ArgumentError(
            f"{argument} has {len(sizes)} dimensions; at most {MAX_DIMENSIONS} are supported: reshape or squeeze it"
        )
    count = math.prod(sizes)
    if count > MAX_ELEMENTS:
        shape = shown(tuple(sizes))
        subject = f"shape {shape} has" if argument == "shape" else f"{argument} has shape {shape} with"
        raise ArgumentError(
            f"{subject} {shown(count)} elements; at most 2^32-1 are supported: "
            "scan it in pieces with dmlgpu.Scan, or work on it in parts"
        )
    if not count and math.prod(size for size in sizes if size) > MAX_ELEMENTS:
        raise ArgumentError(
            f"{argument} is empty, but its shape {shown(tuple(sizes))} has sizes other than 0 that multiply to more "
            "than 2^32-1: give it smaller ones"
        )


@dataclass(frozen=True)
class Layout:
    """Where the elements of a tensor lie in a buffer.

    Attributes
    ----------
    sizes : tuple of int
        The length of each dimension, outermost first.
    strides : tuple of int
        The distance, in elements, between neighbours along each dimension; 0 and negative values are allowed.
    offset : int
        The position of element (0, 0, ...), in elements from the start of the buffer.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @classmethod
    def packed(cls, sizes: Sequence[int], offset: int = 0) -> Layout:
        """Return the layout without gaps in C order."""
        return cls(tuple(sizes), packed_strides(sizes), offset)

    @property
    def count(self) -> int:
        """The number of elements."""
        return math.prod(self.sizes)

    @property
    def extent(self) -> tuple[int, int]:
        """The positions of the lowest element and of the one after the highest; (offset, offset) if empty."""
        if self.count == 0:
            return self.offset, self.offset
        reaches = [(size - 1) * stride for size, stride in zip(self.sizes, self.strides, strict=True)]
        low = self.offset + sum(reach for reach in reaches if reach < 0)
        high = self.offset + sum(reach for reach in reaches if reach > 0)
        return low, high + 1

    @property
    def is_packed(self) -> bool:
        """Whether the elements follow each other in C order without gaps."""
        expected = packed_strides(self.sizes)
        return all(
            size == 1 or stride == packed
            for size, stride, packed in zip(self.sizes, self.strides, expected, strict=True)
        )

    @property
    def is_disjoint(self) -> bool:
        """Whether it is certain that no two elements share a position.

        Sorted by stride, each dimension must step over all that the finer ones reach. Every layout that slicing and
        transposing a packed tensor can make passes; an interleaving that is disjoint by arithmetic alone does not.
        """
        dims = sorted((abs(t), s) for s, t in zip(self.sizes, self.strides, strict=True) if s > 1)
        reach = 0
        for stride, size in dims:
            if stride <= reach:
                return False
            reach += (size - 1) * stride
        return True

    def in_bytes(self, itemsize: int) -> Layout:
        """Return the layout of the elements' bytes, so that tensors of different types can be compared."""
        strides = (*(stride * itemsize for stride in self.strides), 1)
        return Layout((*self.sizes, itemsize), strides, self.offset * itemsize)

    def view(self, data: NDArray[Any]) -> NDArray[Any]:
        """Return the elements of this layout in an array of 1 dimension without gaps, as a view of it."""
        strides = tuple(stride * data.itemsize for stride in self.strides)
        return np.ndarray(self.sizes, data.dtype, data, self.offset * data.itemsize, strides)

    def same_places(self, other: Layout) -> bool:
        """Whether every element has the same position in both. Strides of dimensions of size 1 do not matter."""
        strides = zip(self.sizes, self.strides, other.strides, strict=True) if self.sizes == other.sizes else ()
        same = self.sizes == other.sizes and self.offset == other.offset
        return same and all(size == 1 or a == b for size, a, b in strides)

    def take(self, key: Any) -> Layout:
        """Return the layout of ``array[key]``.

        Parameters
        ----------
        key : int, slice, None, Ellipsis, or a tuple of these
            A basic index, as in NumPy.

        Raises
        ------
        ArrayIndexError
            If there are too many indices, one is out of range, or one is of another kind.
        """
        rank = len(self.sizes)
        items = _expanded(key if isinstance(key, tuple) else (key,), rank)
        sizes: list[int] = []
        strides: list[int] = []
        offset = self.offset
        axis = 0
        for item in items:
            if item is None:
                sizes.append(1)
                strides.append(0)
                continue
            size, stride = self.sizes[axis], self.strides[axis]
            if isinstance(item, slice):
                places = _places(item, size)
                sizes.append(len(places))
                strides.append(stride * places.step if len(places) > 1 else stride)  # the step may be enormous
                offset += places.start * stride
            else:
                index = _position(item)
                if not -size <= index < size:
                    reach = f"give {-size} to {size - 1}" if size else "it has no element"
                    raise ArrayIndexError(
                        f"index {shown(index)} is out of range for axis {axis} of size {size}: {reach}"
                    )
                offset += (index + size if index < 0 else index) * stride
            axis += 1
        return Layout(tuple(sizes), tuple(strides), offset)

    def transpose(self, axes: Sequence[int] | None = None) -> Layout:
        """Return the layout with its axes permuted; reversed if `axes` is None.

        Raises
        ------
        AxisError
            If one of `axes` is not a dimension.
        ArgumentError
            If `axes` is no permutation.
        """
        rank = len(self.sizes)
        chosen = tuple(range(rank - 1, -1, -1) if axes is None else axes)
        order = [resolve_axis(axis, rank) for axis in chosen]
        if sorted(order) != list(range(rank)):
            count = counted(rank, "dimension")
            raise ArgumentError(f"axes is {shown(chosen)} for an array of {count}: name each exactly once")
        return Layout(tuple(self.sizes[a] for a in order), tuple(self.strides[a] for a in order), self.offset)

    def reshape(self, shape: Sequence[int]) -> Layout | None:
        """Return the layout with other sizes of the same count, or None where that needs a copy.

        Parameters
        ----------
        shape : sequence of int
            The sizes; one of them may be -1, which stands for what the others leave of the count.

        Raises
        ------
        ArgumentError
            If the shape does not hold as many elements.
        """
        sizes = _sizes_of(self.count, shape)
        if self.count == 0:
            return Layout.packed(sizes, self.offset)
        # Merge dimensions that are walked as one, then cut the new sizes from them, from the innermost outwards.
        merged: list[tuple[int, int]] = []
        for size, stride in zip(self.sizes, self.strides, strict=True):
            if size == 1:
                continue
            if merged and merged[-1][1] == stride * size:
                merged[-1] = (merged[-1][0] * size, stride)
            else:
                merged.append((size, stride))
        strides: list[int] = []
        left, stride = 1, 1
        for size in reversed(sizes):
            if size != 1 and left == 1:
                left, stride = merged.pop()
            if left % size:
                return None
            strides.append(stride)
            left //= size
            stride *= size
        return Layout(sizes, tuple(reversed(strides)), self.offset)

    def broadcast(self, sizes: tuple[int, ...]) -> Layout:
        """Return the layout repeated, with stride 0, to fill a shape.

        Raises
        ------
        ArgumentError
            If a dimension is neither 1 nor the one asked for.
        """
        added = len(sizes) - len(self.sizes)
        fits = added >= 0 and min(sizes, default=0) >= 0
        if not fits or any(old not in (1, new) for old, new in zip(self.sizes, sizes[added:], strict=True)):
            raise ArgumentError(
                f"shape is {shown(sizes)}, to which an array of shape {self.sizes} cannot be broadcast: sizes, counted "
                "from the last, must be the same or 1 in the array"
            )
        kept = [
            stride if old == new else 0
            for old, new, stride in zip(self.sizes, sizes[added:], self.strides, strict=True)
        ]
        return Layout(sizes, (0,) * added + tuple(kept), self.offset)


def overlap(a: Layout, b: Layout) -> bool:
    """Whether the extents of two layouts of one buffer meet."""
    (a_low, a_high), (b_low, b_high) = a.extent, b.extent
    return a_low < b_high and b_low < a_high


def _expanded(items: tuple[Any, ...], rank: int) -> list[Any]:
    """Replace the ellipsis, or what is missing at the end, by whole slices."""
    named = sum(1 for item in items if item is not None and item is not Ellipsis)
    if named > rank:
        raise ArrayIndexError(
            f"{named} indices for an array of {counted(rank, 'dimension')}: give one a dimension at most"
        )
    places = [place for place, item in enumerate(items) if item is Ellipsis]
    if len(places) > 1:
        raise ArrayIndexError(f"an index has {len(places)} ellipses ('...'): give one, and ':' in place of the others")
    place = places[0] if places else len(items)
    return [*items[:place], *[slice(None)] * (rank - named), *items[place + 1 :]]


def _places(item: slice, size: int) -> range:
    """Return the indices that a slice selects."""
    way_out = "give an integer or leave it out"
    start, stop, step = (
        None if value is None else integer(value, f"a slice's {name}", way_out, error=ArrayIndexError)
        for name, value in (("start", item.start), ("stop", item.stop), ("step", item.step))
    )
    if step == 0:
        raise ArrayIndexError("a slice's step is 0: give another one, such as 1 or -1")
    return range(*slice(start, stop, step).indices(size))


def _position(item: Any) -> int:
    way_out = (
        "only integers, slices, None and '...' make views: use these, or index the NumPy array that .numpy() returns"
    )
    return integer(item, "an index", way_out, error=ArrayIndexError)


def _sizes_of(count: int, shape: Sequence[int]) -> tuple[int, ...]:
    """Return `shape` with its -1, if there is one, replaced by the size that makes `count` elements."""
    sizes = list(shape)
    known = math.prod(size for size in sizes if size != -1)
    unknown = sizes.count(-1)
    if min(sizes, default=0) < -1 or unknown > 1:
        raise ArgumentError(f"shape is {shown(tuple(sizes))}; give sizes of 0 or more, and -1 for at most one of them")
    if unknown and known and count % known == 0:
        sizes[sizes.index(-1)] = count // known
    elif unknown or known != count:
        raise ArgumentError(
            f"shape is {shown(tuple(sizes))} for an array of {counted(count, 'element')}: give sizes that multiply to "
            f"{count}"
        )
    return tuple(sizes)
