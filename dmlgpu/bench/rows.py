"""Pure: what can be measured. A row is one point of seven axes; a run measures some rows."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from ..dtypes import ELEMENT_TYPES, by_name
from ..errors import ArgumentError
from ..layout import MAX_DIMENSIONS, MAX_ELEMENTS
from ..planning.plan import KERNELS

__all__ = ["AXES", "OPERATORS", "Row", "default_rows", "parse_axis", "quick_rows", "rows_of", "shape_text"]

OPERATORS = ("sum", "product", "round")
DIRECTIONS = ("increasing", "decreasing")
EXCLUSIVITIES = ("inclusive", "exclusive")
AUTO = "auto"
"""The kernel that the plan chooses."""
PLACES = ("first", "middle", "last")


@dataclass(frozen=True)
class Row:
    """What one row of a benchmark measures.

    Attributes
    ----------
    operator : str
        "sum", "product", "round" (halves to even), or "copy" for the ceilings.
    type : str
        The element type.
    shape : tuple of int
        Of input and output.
    axis : int or None
        The axis, counted from 0; None for rounding and copies.
    direction, exclusivity : str
        Of scans.
    kernel : str
        "auto" for the plan's choice, one of `dmlgpu.planning.plan.KERNELS`, or the way of a copy.
    """

    operator: str
    type: str
    shape: tuple[int, ...]
    axis: int | None = None
    direction: str = DIRECTIONS[0]
    exclusivity: str = EXCLUSIVITIES[0]
    kernel: str = AUTO

    @property
    def elements(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return by_name(self.type).itemsize

    @property
    def bytes_moved(self) -> int:
        """The least bytes to move: each element is read once and written once."""
        return 2 * self.elements * self.itemsize

    @property
    def slices(self) -> int:
        """The number of slices of a scan."""
        return 1 if self.axis is None else self.elements // self.shape[self.axis]

    @property
    def options(self) -> dict[str, Any]:
        """The options of a scan, by the names that `cumulative_sum` gives them."""
        return {"exclusive": self.exclusivity == "exclusive", "reverse": self.direction == "decreasing"}

    @property
    def is_scan(self) -> bool:
        """Whether it is a cumulative sum or product."""
        return self.operator in ("sum", "product")

    @property
    def name(self) -> str:
        """A short name, which leaves out usual values."""
        words = [self.operator, self.type, shape_text(self.shape)]
        if self.axis is not None:
            words.append(f"axis {self.axis}")
        usual = (DIRECTIONS[0], EXCLUSIVITIES[0], AUTO)
        words += [word for word in (self.direction, self.exclusivity, self.kernel) if word not in usual]
        return " ".join(words)


def shape_text(shape: Sequence[int]) -> str:
    """Return a shape as it is written in options and tables; large powers of two as such.

    Examples
    --------
    >>> from dmlgpu.bench.rows import shape_text
    >>> shape_text((4096, 3, 1048576))
    '4096x3x2^20'
    """
    return "x".join(f"2^{n.bit_length() - 1}" if n >= 2**14 and n & (n - 1) == 0 else str(n) for n in shape)


def _shape(text: str) -> tuple[int, ...]:
    sizes = []
    for part in text.split("x"):
        match = re.fullmatch(r"(\d{1,40})(?:\^(\d{1,2}))?", part)
        if match is None or int(match[1]) == 0:
            raise ArgumentError(f"{text!r} is no shape: write sizes of at least 1 with an x between, as in 16x2^20")
        sizes.append(int(match[1]) ** int(match[2] or 1))
    if len(sizes) > MAX_DIMENSIONS or math.prod(sizes) > MAX_ELEMENTS:
        raise ArgumentError(f"{text!r} is too large: at most {MAX_DIMENSIONS} dimensions and 2^32-1 elements")
    return tuple(sizes)


def _place(text: str) -> int | str:
    if text in PLACES:
        return text
    if re.fullmatch(r"-?\d", text):
        return int(text)
    raise ArgumentError(f"{text!r} is no axis: give a number or {', '.join(PLACES)}")


def _one_of(name: str, values: Sequence[str]) -> Callable[[str], str]:
    def check(text: str) -> str:
        if text not in values:
            raise ArgumentError(f"the axis {name!r} has no value {text!r}; it has {', '.join(values)}")
        return text

    return check


AXES: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "operator": (", ".join(OPERATORS), _one_of("operator", OPERATORS)),
    "type": (", ".join(e.name for e in ELEMENT_TYPES), _one_of("type", [e.name for e in ELEMENT_TYPES])),
    "shape": ("sizes such as 2^24, 4096x4096 or 16x2^20", _shape),
    "axis": (f"a number, or {', '.join(PLACES)}", _place),
    "direction": (", ".join(DIRECTIONS), _one_of("direction", DIRECTIONS)),
    "exclusivity": (", ".join(EXCLUSIVITIES), _one_of("exclusivity", EXCLUSIVITIES)),
    "kernel": (", ".join((AUTO, *KERNELS)), _one_of("kernel", (AUTO, *KERNELS))),
}
"""The axes by name: a text that says which values there are, and a function that reads one."""

_USUAL: Mapping[str, tuple[object, ...]] = {
    "operator": ("sum",),
    "type": ("float32",),
    "shape": ((2**22,), (2048, 2048)),
    "axis": ("last",),
    "direction": (DIRECTIONS[0],),
    "exclusivity": (EXCLUSIVITIES[0],),
    "kernel": (AUTO,),
}


def parse_axis(text: str) -> tuple[str, tuple[object, ...]]:
    """Return what ``--axis NAME=VALUES`` means: the axis and its values.

    Raises
    ------
    ArgumentError
        If there is no such axis or value.

    Examples
    --------
    >>> from dmlgpu.bench.rows import parse_axis
    >>> parse_axis("shape=2^10,3x4")
    ('shape', ((1024,), (3, 4)))
    """
    name, equals, values = text.partition("=")
    if not equals:
        raise ArgumentError(f"{text!r} has no values; write NAME=VALUE or NAME=VALUE,VALUE")
    if name not in AXES:
        raise ArgumentError(f"there is no axis {name!r}; there are {', '.join(AXES)}")
    read = AXES[name][1]
    return name, tuple(dict.fromkeys(read(value.strip()) for value in values.split(",")))


def _index(place: int | str, rank: int) -> int | None:
    """Return an axis counted from 0, or None where a shape has no such axis."""
    if isinstance(place, str):
        return {"first": 0, "middle": rank // 2, "last": rank - 1}[place]
    return place % rank if -rank <= place < rank else None


def rows_of(chosen: Mapping[str, Sequence[object]]) -> list[Row]:
    """Return the rows of all combinations of values; an axis that is not chosen has its usual value.

    Combinations without a meaning are left out: an axis that a shape does not have, a direction of rounding.

    Raises
    ------
    ArgumentError
        If nothing is left.
    """
    values = {name: chosen.get(name, _USUAL[name]) for name in AXES}
    rows: dict[Row, None] = {}
    for operator, kind, shape, place, direction, exclusivity, kernel in product(*values.values()):
        assert isinstance(shape, tuple)
        assert isinstance(place, int | str)
        if operator == "round":
            if by_name(str(kind)).kind == "float":
                rows[Row("round", str(kind), shape)] = None
            continue
        axis = _index(place, len(shape))
        if axis is not None:
            rows[Row(str(operator), str(kind), shape, axis, str(direction), str(exclusivity), str(kernel))] = None
    if not rows:
        raise ArgumentError("these values leave no row: no shape has the axis, or only integers are to be rounded")
    return list(rows)


def _scans(*shapes: tuple[tuple[int, ...], int], types: Sequence[str] = ("float32",)) -> Iterator[Row]:
    for kind, (shape, axis) in product(types, shapes):
        yield Row("sum", kind, shape, axis)


def quick_rows() -> list[Row]:
    """Return rows that take seconds: every kind of shape, small."""
    return [
        *_scans(((2**18,), 0), ((16, 2**14), 1), ((512, 512), 0), ((64, 64, 64), 1), ((2**14, 16), 1), ((2**16, 2), 0)),
        Row("product", "int64", (512, 512), 1),
        Row("sum", "float16", (512, 512), 1, "decreasing", "exclusive"),
        Row("round", "float32", (2**18,)),
    ]


LONG = (((2**24,), 0), ((16, 2**20), 1), ((4096, 4096), 1), ((4096, 4096), 0), ((256, 256, 256), 1))
"""The shapes whose sums should reach 0.8 of a copy's speed."""
THIN = (((2**20, 16), 1), ((2**20, 2), 0), ((2**22, 3), 1))
"""The shapes whose sums should reach 0.5 of it."""
PHOTOGRAPH = (4000, 3000)
"""Twelve megapixels of 8 bits, upright: rows that are whole words, but no whole vectors of 16 bytes."""
_PACKED = ("float16", "int32", "uint8", "int64")


def default_rows() -> list[Row]:
    """Return the rows that the goals name, and enough of the rest to see what else matters."""
    return [
        *_scans(*LONG, *THIN),
        *_scans(LONG[0], LONG[2], LONG[3], THIN[0], types=_PACKED),
        Row("sum", "uint8", PHOTOGRAPH, 0),
        *(Row("round", kind, (2**24,)) for kind in ("float32", "float16", "float64")),
        Row("product", "float32", (2**24,), 0),
        Row("product", "float32", (4096, 4096), 0),
        Row("sum", "float32", (2**24,), 0, exclusivity="exclusive"),
        Row("sum", "float32", (4096, 4096), 1, direction="decreasing"),
        Row("sum", "float64", (2048, 4096), 1),
    ]
