"""The placement of a case's tensors in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ..layout import Layout, packed_strides

__all__ = ["BROADCASTS", "LAYOUTS", "RELATIONS", "Placement"]

LAYOUTS = ("packed", "offset", "padded", "transposed", "reversed")
"""packed: no gaps, C order. offset: packed, beginning within a word and beyond a binding's alignment. padded: gaps
after every dimension. transposed: the dimensions in memory in reverse order, with a gap. reversed: every stride
negative."""

BROADCASTS = ("broadcast", "broadcast_axis")
"""Inputs only. broadcast: stride 0 along all dimensions but the axis (the last where there is none); broadcast_axis:
stride 0 along the axis."""

RELATIONS = ("to", "beside")
"""to: input and output in two buffers; beside: in one buffer, the output after the input."""

_SOURCE_OFFSET, _TARGET_OFFSET = 1003, 517
_GAP_BYTES = 512


@dataclass(frozen=True)
class Placement:
    """The layouts of input and output.

    Attributes
    ----------
    source : str
        One of `LAYOUTS` or `BROADCASTS`.
    relation : str
        One of `RELATIONS`, or "in-place": the output takes the input's place.
    target : str
        One of `LAYOUTS`; the same as `source` in place.
    """

    source: str = "packed"
    relation: str = "to"
    target: str = "packed"

    @classmethod
    def in_place(cls, layout: str) -> Placement:
        """Return the placement of input and output in the same place."""
        return cls(layout, "in-place", layout)

    def __str__(self) -> str:
        if self.relation == "in-place":
            return f"{self.source}-in-place"
        return f"{self.source}-{self.relation}-{self.target}"

    @classmethod
    def parse(cls, text: str) -> Placement:
        """Return the placement with this text.

        Raises
        ------
        ValueError
            If there is none.
        """
        source, _, rest = text.partition("-")
        if rest == "in-place" and source in LAYOUTS:
            return cls.in_place(source)
        relation, _, target = rest.partition("-")
        if source in (*LAYOUTS, *BROADCASTS) and relation in RELATIONS and target in LAYOUTS:
            return cls(source, relation, target)
        raise ValueError(
            f"{text!r} is no placement; one is LAYOUT-in-place, SOURCE-to-TARGET or SOURCE-beside-TARGET, of "
            f"{', '.join((*LAYOUTS, *BROADCASTS))}"
        )

    def broadcast_dimensions(self, ndim: int, axis: int) -> tuple[int, ...]:
        """Return the dimensions along which all elements of the input are the same one."""
        if self.source == "broadcast_axis":
            return (axis,)
        return tuple(i for i in range(ndim) if i != axis) if self.source == "broadcast" else ()

    def layouts(self, sizes: tuple[int, ...], axis: int, itemsizes: tuple[int, int]) -> tuple[Layout, Layout]:
        """Return where input and output lie; in place they are the same object.

        Parameters
        ----------
        sizes : tuple of int
            The sizes of both tensors.
        axis : int
            The dimension that "broadcast" keeps and "broadcast_axis" does not.
        itemsizes : (int, int)
            Bytes of an element of input and output; the same where both are in one buffer.
        """
        repeated = self.broadcast_dimensions(len(sizes), axis)
        if repeated or self.source in BROADCASTS:
            stored = [1 if i in repeated else size for i, size in enumerate(sizes)]
            strides = [0 if i in repeated else stride for i, stride in enumerate(packed_strides(stored))]
            source = Layout(sizes, tuple(strides), 2)
        else:
            source = _layout(self.source, sizes, _SOURCE_OFFSET)
        if self.relation == "in-place":
            return source, source
        target = _layout(self.target, sizes, _TARGET_OFFSET)
        if self.relation == "beside":
            target = replace(target, offset=target.offset + source.extent[1] + _GAP_BYTES // itemsizes[1])
        return source, target


def _layout(name: str, sizes: tuple[int, ...], offset: int) -> Layout:
    if name == "offset":
        return Layout.packed(sizes, offset)
    if name == "padded":
        return Layout(sizes, packed_strides([*(size + 1 for size in sizes[:-1]), sizes[-1] + 3]), 1)
    if name == "transposed":
        strides = packed_strides([sizes[i] + (i == 0) for i in reversed(range(len(sizes)))])
        return Layout(sizes, strides[::-1], 5)
    if name == "reversed":
        return Layout(sizes, tuple(-stride for stride in packed_strides(sizes)), math.prod(sizes) - 1 + 7)
    return Layout.packed(sizes)
