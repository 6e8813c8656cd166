"""Pure view arithmetic: how indexing, transposing, reshaping and broadcasting change a layout. No data moves."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from .errors import ArgumentError, ArrayIndexError, ArrayTypeError, AxisError
from .problem import MAX_DIMENSIONS, MAX_ELEMENTS, Layout

__all__ = ["broadcast", "check_size", "integer", "reshape", "resolve_sizes", "same_places", "take", "transpose"]


def integer(value: SupportsIndex, argument: str) -> int:
    """Return `value` as an int; `argument` is what the error calls it.

    Raises
    ------
    ArrayTypeError
        If it is a bool or no integer.
    """
    if not isinstance(value, bool | np.bool_):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise ArrayTypeError(f"{argument} is {value!r} of type {type(value).__name__}; give an integer")


def check_size(sizes: Sequence[int], argument: str = "x") -> None:
    """Raise ArgumentError if no operator takes an array of these sizes."""
    if len(sizes) > MAX_DIMENSIONS:
        raise ArgumentError(
            f"{argument} has {len(sizes)} dimensions; at most {MAX_DIMENSIONS} are supported: reshape or squeeze it"
        )
    if math.prod(sizes) > MAX_ELEMENTS:
        raise ArgumentError(
            f"{argument} has shape {tuple(sizes)} with {math.prod(sizes)} elements; at most 2^32-1 are supported: "
            "work on it in parts"
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
            places = range(*item.indices(size))
            sizes.append(len(places))
            strides.append(stride * places.step)
            offset += places.start * stride
        else:
            index = _position(item)
            if not -size <= index < size:
                raise ArrayIndexError(f"index {index} is out of range for axis {axis} of size {size}")
            offset += (index + size if index < 0 else index) * stride
        axis += 1
    return Layout(tuple(sizes), tuple(strides), offset)


def _expanded(items: tuple[Any, ...], rank: int) -> list[Any]:
    """Replace the ellipsis, or what is missing at the end, by whole slices."""
    named = sum(1 for item in items if item is not None and item is not Ellipsis)
    if named > rank:
        raise ArrayIndexError(f"{named} indices for an array of {rank} dimension{'' if rank == 1 else 's'}")
    places = [place for place, item in enumerate(items) if item is Ellipsis]
    if len(places) > 1:
        raise ArrayIndexError("an index can have only one ellipsis ('...')")
    place = places[0] if places else len(items)
    return [*items[:place], *[slice(None)] * (rank - named), *items[place + 1 :]]


def _position(item: Any) -> int:
    if not isinstance(item, bool | np.bool_):
        try:
            return operator.index(item)
        except TypeError:
            pass
    raise ArrayIndexError(
        f"an index of type {type(item).__name__} makes no view: use integers, slices, None and '...', or index the "
        "NumPy array that .numpy() returns"
    )


def transpose(layout: Layout, axes: Sequence[SupportsIndex] | None = None) -> Layout:
    """Return the layout with its axes permuted; reversed if `axes` is None.

    Raises
    ------
    AxisError
        If one of `axes` is not a dimension.
    ArgumentError
        If `axes` is no permutation.
    """
    rank = len(layout.sizes)
    chosen = [integer(axis, "axis") for axis in (range(rank - 1, -1, -1) if axes is None else axes)]
    for axis in chosen:
        if not -rank <= axis < rank:
            raise AxisError(axis, rank)
    order = [axis % rank for axis in chosen]
    if sorted(order) != list(range(rank)):
        raise ArgumentError(f"axes {tuple(chosen)} name each of the {rank} dimensions not exactly once")
    return Layout(tuple(layout.sizes[a] for a in order), tuple(layout.strides[a] for a in order), layout.offset)


def resolve_sizes(count: int, shape: Sequence[SupportsIndex]) -> tuple[int, ...]:
    """Return `shape` with the one -1 in it, if any, replaced by what makes `count` elements.

    Raises
    ------
    ArgumentError
        If the shape does not hold `count` elements.
    """
    sizes = [integer(size, "shape") for size in shape]
    known = math.prod(size for size in sizes if size != -1)
    unknown = sizes.count(-1)
    if min(sizes, default=0) < -1 or unknown > 1:
        raise ArgumentError(f"shape {tuple(sizes)} is none: sizes are 0 or more, and at most one is -1")
    if unknown and known and count % known == 0:
        sizes[sizes.index(-1)] = count // known
    elif unknown or known != count:
        raise ArgumentError(f"an array of {count} elements cannot be reshaped to {tuple(sizes)}")
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


def broadcast(layout: Layout, shape: Sequence[SupportsIndex]) -> Layout:
    """Return the layout repeated, with stride 0, to fill `shape`.

    Raises
    ------
    ArgumentError
        If a dimension is neither 1 nor the one asked for.
    """
    sizes = tuple(integer(size, "shape") for size in shape)
    added = len(sizes) - len(layout.sizes)
    fits = added >= 0 and min(sizes, default=0) >= 0
    if not fits or any(old not in (1, new) for old, new in zip(layout.sizes, sizes[added:], strict=True)):
        raise ArgumentError(f"an array of shape {layout.sizes} cannot be broadcast to {sizes}")
    kept = [
        stride if old == new else 0
        for old, new, stride in zip(layout.sizes, sizes[added:], layout.strides, strict=True)
    ]
    return Layout(sizes, (0,) * added + tuple(kept), layout.offset)
