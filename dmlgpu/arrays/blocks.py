"""Pure: how a large array of the host is cut into blocks, which are on a device one after the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

__all__ = ["blocks"]

_LEAST_ROW: Final = 4096
"""The fewest bytes of neighbours that are worth a copy of their own."""


def blocks(sizes: Sequence[int], axis: int | None, itemsize: int, most: int) -> Iterator[tuple[slice, ...]]:
    """Yield the places of blocks of whole slices that a C-ordered array consists of.

    Parameters
    ----------
    sizes : sequence of int
        The array's shape.
    axis : int or None
        The axis along which results depend on what comes before; None if each is by itself.
    itemsize : int
        Bytes of an element.
    most : int
        The bytes of a block. One that can only be cut along the axis has more, and is C-contiguous.

    Examples
    --------
    >>> list(blocks((4, 1000), 1, 4, 8000))
    [(slice(0, 2, None), slice(None, None, None)), (slice(2, 4, None), slice(None, None, None))]
    >>> list(blocks((4000, 3), 0, 4, 8000))
    [(slice(None, None, None), slice(None, None, None))]
    """
    nbytes = math.prod(sizes) * itemsize
    dimensions = [i for i, size in enumerate(sizes) if size > 1]
    is_inside = dimensions[:1] == [axis]  # a block is a part of each row along the axis
    dimension = dimensions[is_inside] if len(dimensions) > is_inside else None
    is_narrow = is_inside and axis is not None and most // sizes[axis] < _LEAST_ROW
    if nbytes <= most or dimension is None or is_narrow:
        yield (slice(None),) * len(sizes)
        return
    size, before, after = sizes[dimension], sizes[:dimension], sizes[dimension + 1 :]
    step = max(1, most * size // nbytes)
    for begin in range(0, size, step):
        end = min(begin + step, size)
        for place in blocks((*before, end - begin, *after), axis, itemsize, most):
            yield (*place[:dimension], slice(begin, end), *place[dimension + 1 :])
