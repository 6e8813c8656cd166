"""Where the elements of a tensor lie in a buffer.

Strides and offsets count elements, may be negative, and are exact Python integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["MAX_DIMENSIONS", "MAX_ELEMENTS", "Layout", "ceil_div", "overlap", "packed_strides"]

MAX_DIMENSIONS = 8
MAX_ELEMENTS = 2**32 - 1


def ceil_div(a: int, b: int) -> int:
    """Return the quotient of two integers, rounded up."""
    return -(-a // b)


def packed_strides(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, in elements, of a tensor without gaps in C order."""
    return tuple(math.prod(sizes[i + 1 :]) for i in range(len(sizes)))


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


def overlap(a: Layout, b: Layout) -> bool:
    """Whether the extents of two layouts of one buffer meet."""
    (a_low, a_high), (b_low, b_high) = a.extent, b.extent
    return a_low < b_high and b_low < a_high
