"""Pure view arithmetic: how indexing, transposing, reshaping and broadcasting change a layout. No data moves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..arguments import integer
from ..errors import ArgumentError, ArrayIndexError, AxisError, shown
from ..layout import MAX_DIMENSIONS, MAX_ELEMENTS, Layout

__all__ = ["broadcast", "check_size", "reshape", "resolve_sizes", "same_places", "take", "transpose"]


def check_size(sizes: Sequence[int], argument: str = "x") -> None:
    """Raise ArgumentError if no operator takes an array of these sizes."""
    if len(sizes) > MAX_DIMENSIONS:
        raise ArgumentError(
            f"{argument} has {len(sizes)} dimensions; at most {MAX_DIMENSIONS} are supported: reshape or squeeze it"
        )
    if math.prod(sizes) > MAX_ELEMENTS:
        raise ArgumentError(
            f"{argument} has shape {shown(tuple(sizes))} with {shown(math.prod(sizes))} elements; at most 2^32-1 are "
            "supported: work on it in parts"
        )
    if math.prod(size for size in sizes if size) > MAX_ELEMENTS:
        raise ArgumentError(
            f"{argument} is empty, but its shape {shown(tuple(sizes))} has sizes other than 0 that multiply to more "
            "than 2^32-1: give it smaller ones"
        )


def same_places(a: Layout, b: Layout) -> bool:
    """Whether every element has the same position in both; strides of dimensions of size 1 don't matter."""
    strides = zip(a.sizes, a.strides, b.strides, strict=True) if a.sizes == b.sizes else ()
    return a.sizes == b.sizes and a.offset == b.offset and all(size == 1 or i == o for size, i, o in strides)


def take(layout: Layout, key: Any) -> Layout:
    """Return the layout of ``array[key]``.

    Parameters
    ----------
    layout : Layout
        The layout of the array.
    key : int, slice, None, Ellipsis, or a tuple of these
        A basic index, as in NumPy.

    Raises
    ------
    ArrayIndexError
        If there are too many indices, one is out of range, or one is of another kind.
    """
    rank = len(layout.sizes)
    items = _expanded(key if isinstance(key, tuple) else (key,), rank)
    sizes: list[int] = []
    strides: list[int] = []
    offset = layout.offset
    axis = 0
    for item in items:
        if item is None:
            sizes.append(1)
            strides.append(0)
            continue
        size, stride = layout.sizes[axis], layout.strides[axis]
        if isinstance(item, slice):
            places = _places(item, size)
            sizes.append(len(places))
            strides.append(stride * places.step if len(places) > 1 else stride)  # the step may be enormous
            offset += places.start * stride
        else:
            index = _position(item)
            if not -size <= index < size:
                reach = f"give {-size} to {size - 1}" if size else "it has no element"
                raise ArrayIndexError(f"index {shown(index)} is out of range for axis {axis} of size {size}: {reach}")
            offset += (index + size if index < 0 else index) * stride
        axis += 1
    return Layout(tuple(sizes), tuple(strides), offset)


def _expanded(items: tuple[Any, ...], rank: int) -> list[Any]:
    """Replace the ellipsis, or what is missing at the end, by whole slices."""
    named = sum(1 for item in items if item is not None and item is not Ellipsis)
    if named > rank:
        raise ArrayIndexError(
            f"{named} indices for an array of {rank} dimension{'' if rank == 1 else 's'}: give one a dimension at most"
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


def transpose(layout: Layout, axes: Sequence[int] | None = None) -> Layout:
    """Return the layout with its axes permuted; reversed if `axes` is None.

    Raises
    ------
    AxisError
        If one of `axes` is not a dimension.
    ArgumentError
        If `axes` is no permutation.
    """
    rank = len(layout.sizes)
    chosen = tuple(range(rank - 1, -1, -1) if axes is None else axes)
    for axis in chosen:
        if not -rank <= axis < rank:
            raise AxisError(axis, rank)
    order = [axis % rank for axis in chosen]
    if sorted(order) != list(range(rank)):
        count = f"{rank} dimension{'' if rank == 1 else 's'}"
        raise ArgumentError(f"axes is {shown(chosen)} for an array of {count}: name each exactly once")
    return Layout(tuple(layout.sizes[a] for a in order), tuple(layout.strides[a] for a in order), layout.offset)


def resolve_sizes(count: int, shape: Sequence[int]) -> tuple[int, ...]:
    """Return `shape` with the one -1 in it, if any, replaced by what makes `count` elements.

    Raises
    ------
    ArgumentError
        If the shape does not hold `count` elements.
    """
    sizes = list(shape)
    known = math.prod(size for size in sizes if size != -1)
    unknown = sizes.count(-1)
    if min(sizes, default=0) < -1 or unknown > 1:
        raise ArgumentError(f"shape is {shown(tuple(sizes))}; give sizes of 0 or more, and -1 for at most one of them")
    if unknown and known and count % known == 0:
        sizes[sizes.index(-1)] = count // known
    elif unknown or known != count:
        raise ArgumentError(
            f"shape is {shown(tuple(sizes))} for an array of {count} elements: give sizes that multiply to {count}"
        )
    return tuple(sizes)


def reshape(layout: Layout, sizes: tuple[int, ...]) -> Layout | None:
    """Return the layout with other sizes of the same count, or None where that needs a copy."""
    if layout.count == 0:
        return Layout.packed(sizes, layout.offset)
    # Merge what is walked as one, then cut pieces off, from the innermost outwards; no piece may span two.
    merged: list[tuple[int, int]] = []
    for size, stride in zip(layout.sizes, layout.strides, strict=True):
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
    return Layout(sizes, tuple(reversed(strides)), layout.offset)


def broadcast(layout: Layout, sizes: tuple[int, ...]) -> Layout:
    """Return the layout repeated, with stride 0, to fill a shape.

    Raises
    ------
    ArgumentError
        If a dimension is neither 1 nor the one asked for.
    """
    added = len(sizes) - len(layout.sizes)
    fits = added >= 0 and min(sizes, default=0) >= 0
    if not fits or any(old not in (1, new) for old, new in zip(layout.sizes, sizes[added:], strict=True)):
        raise ArgumentError(
            f"shape is {shown(sizes)}, to which an array of shape {layout.sizes} cannot be broadcast: sizes, counted "
            "from the last, must be the same or 1 in the array"
        )
    kept = [
        stride if old == new else 0
        for old, new, stride in zip(layout.sizes, sizes[added:], layout.strides, strict=True)
    ]
    return Layout(sizes, (0,) * added + tuple(kept), layout.offset)
