"""What all faces meet in: a validated operator over two strided tensors, its dimensions collapsed.

Nothing here knows a device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, NamedTuple, Self, SupportsIndex

from numpy.typing import DTypeLike

from ..arguments import choice, flag, integer, integers
from ..dtypes import BOOL, ElementType, by_argument
from ..errors import ArgumentError, shown
from ..layout import Layout, check_sizes, resolve_axis

__all__ = [
    "MODES",
    "OPERATORS",
    "PLAIN",
    "PRECISIONS",
    "Dimension",
    "ElementwiseProblem",
    "Operator",
    "Precision",
    "RoundingMode",
    "ScanOptions",
    "ScanProblem",
    "accumulator_words",
    "check_monotone",
    "check_precision",
    "convert_problem",
    "in_a_row",
    "is_side_by_side",
    "problem_of",
    "round_problem",
    "scan_problem",
]


class Operator(Enum):
    """The associative operator of a scan."""

    SUM = "sum"
    PRODUCT = "product"
    MAXIMUM = "maximum"
    """Of the results of a monotone sum. No face has it by itself."""

    @property
    def identity(self) -> int:
        """What an exclusive scan puts first: 0 or 1."""
        return 1 if self is Operator.PRODUCT else 0


class Precision(Enum):
    """What a scan accumulates in."""

    DEFAULT = "default"
    """The accumulator of the element type."""
    COMPENSATED = "compensated"
    """Pairs of float32 that keep what rounding cuts off; for sums of float32."""


class RoundingMode(Enum):
    """How to round to an integer; the values are those of DML_ROUNDING_MODE."""

    HALF_EVEN = 0
    TOWARD_ZERO = 1
    HALF_AWAY = 2


OPERATORS: Final = {"cumsum": Operator.SUM, "cumprod": Operator.PRODUCT, "round": None}
"""The names of operators on the command line; rounding has no operator of a scan."""
MODES: Final = {mode.name.lower(): mode for mode in RoundingMode}
PRECISIONS: Final = {precision.value: precision for precision in Precision}


class ScanOptions(NamedTuple):  # which is made and hashed quicker than a dataclass
    """The options of a cumulative operator that all faces have.

    Attributes
    ----------
    exclusive : bool
        Whether each result leaves its own element out; the first in traversal order is then the identity.
    reverse : bool
        Whether to traverse the axis from its highest index to its lowest.
    precision : Precision
        What to accumulate in.
    monotone : bool
        Whether each result is the largest sum so far; with `exclusive`, the identity comes before these.
    """

    exclusive: bool = False
    reverse: bool = False
    precision: Precision = Precision.DEFAULT
    monotone: bool = False

    @classmethod
    def checked(
        cls, exclusive: bool, reverse: bool, precision: str = Precision.DEFAULT.value, monotone: bool = False
    ) -> Self:
        """Return the options that a caller gives.

        Raises
        ------
        ArgumentError, ArrayTypeError
            If one has a value or a type that does not fit.
        """
        return cls(
            flag(exclusive, "exclusive"),
            flag(reverse, "reverse"),
            choice(precision, "precision", PRECISIONS),
            flag(monotone, "monotone"),
        )


PLAIN: Final = ScanOptions()
"""What every option is by default."""


@dataclass(frozen=True)
class Dimension:
    """A dimension that input and output share.

    Attributes
    ----------
    size : int
        Its length.
    input_stride, output_stride : int
        The distance between neighbours in each tensor, in elements.
    """

    size: int
    input_stride: int
    output_stride: int


def is_side_by_side(batch: Sequence[Dimension], axis: Dimension) -> bool:
    """Whether neighbours in memory belong to different slices, of a problem or of a part of it."""
    return bool(batch) and abs(batch[-1].output_stride) < abs(axis.output_stride)


def in_a_row(batch: Sequence[Dimension]) -> int:
    """Return how many slices of a window follow each other without any gap.

    A window that is a single column wide has lost the dimension of columns: its innermost one is another.
    """
    is_dense = bool(batch) and (batch[-1].input_stride, batch[-1].output_stride) == (1, 1)
    return batch[-1].size if is_dense else 1


@dataclass(frozen=True)
class ScanProblem:
    """A cumulative operator, ready to be planned.

    Attributes
    ----------
    element : ElementType
        The type of both tensors.
    operator : Operator
        Sum or product.
    exclusive : bool
        Whether each result leaves its own element out.
    batch : tuple of Dimension
        The dimensions other than the axis, merged where both tensors allow and without size 1, ordered so that the
        last has the smallest output stride.
    axis : Dimension
        The scan axis in traversal order: a decreasing scan has its strides negated.
    input_offset, output_offset : int
        The position of the first element in traversal order of the first slice, in elements.
    precision : Precision
        What to accumulate in.
    monotone : bool
        Whether each result is the largest sum so far: `maxima` over the results of `sums`.
    """

    element: ElementType
    operator: Operator
    exclusive: bool
    batch: tuple[Dimension, ...]
    axis: Dimension
    input_offset: int
    output_offset: int
    precision: Precision = Precision.DEFAULT
    monotone: bool = False

    @property
    def sums(self) -> ScanProblem:
        """The first part of a monotone sum: the inclusive sums."""
        return replace(self, exclusive=False, monotone=False)

    @property
    def maxima(self) -> ScanProblem:
        """The second part: the running maximum of what `sums` wrote, in its place."""

        def in_place(dimension: Dimension) -> Dimension:
            return replace(dimension, input_stride=dimension.output_stride)

        return ScanProblem(
            self.element,
            Operator.MAXIMUM,
            self.exclusive,
            tuple(map(in_place, self.batch)),
            in_place(self.axis),
            self.output_offset,
            self.output_offset,
        )

    @property
    def is_exact(self) -> bool:
        """Whether any order of operations has the same bits."""
        return self.element.kind != "float" or self.operator is Operator.MAXIMUM

    @property
    def is_side_by_side(self) -> bool:
        """Whether neighbours in memory belong to different slices."""
        return is_side_by_side(self.batch, self.axis)

    @property
    def across(self) -> int:
        """How many slices are neighbours in memory before a gap, where slices are side by side."""
        return self.batch[-1].size if self.batch else 1

    def is_in_words(self, float64: bool) -> bool:
        """Whether elements are computed on 32-bit words, for a device that may have 64-bit floats."""
        return self.element.format == "f64" and not float64 and not self.is_exact

    @property
    def source(self) -> ElementType:
        """The type of the input."""
        return self.element

    @property
    def target(self) -> ElementType:
        """The type of the output."""
        return self.element

    @property
    def accumulator_words(self) -> int:
        """32-bit words of the accumulator."""
        return accumulator_words(self.element, self.precision)

    @property
    def slices(self) -> int:
        """The number of slices."""
        return math.prod(dimension.size for dimension in self.batch)


@dataclass(frozen=True)
class ElementwiseProblem:
    """A rounding or a conversion, ready to be planned.

    Attributes
    ----------
    source, target : ElementType
        The types of input and output; a copy where they are the same and there is no mode.
    mode : RoundingMode or None
        The rounding mode, or None for a conversion.
    dimensions : tuple of Dimension
        All dimensions, merged and ordered as in `ScanProblem.batch`.
    input_offset, output_offset : int
        The position of the first element, in elements.
    """

    source: ElementType
    target: ElementType
    mode: RoundingMode | None
    dimensions: tuple[Dimension, ...]
    input_offset: int
    output_offset: int

    @property
    def batch(self) -> tuple[Dimension, ...]:
        """All dimensions, as if each element were a slice."""
        return self.dimensions

    @property
    def axis(self) -> Dimension:
        """An axis of one element."""
        return Dimension(1, 0, 0)


def _collapse(dimensions: list[Dimension]) -> tuple[Dimension, ...]:
    """Drop dimensions of size 1, order by output stride, merge those that both tensors walk as one."""
    ordered = sorted(
        (d for d in dimensions if d.size != 1), key=lambda d: (-abs(d.output_stride), -abs(d.input_stride))
    )
    merged: list[Dimension] = []
    for inner in ordered:
        if merged:
            outer = merged[-1]
            if (
                outer.input_stride == inner.input_stride * inner.size
                and outer.output_stride == inner.output_stride * inner.size
            ):
                merged[-1] = Dimension(outer.size * inner.size, inner.input_stride, inner.output_stride)
                continue
        merged.append(inner)
    return tuple(merged)


def _pair(source: Layout, target: Layout) -> list[Dimension]:
    """Check what every operator asks of its two tensors and return their dimensions side by side."""
    if source.sizes != target.sizes:
        raise ArgumentError(
            f"input has sizes {source.sizes} while output has sizes {target.sizes}; they must be the same"
        )
    check_sizes(source.sizes, "input")
    if not target.is_disjoint:
        raise ArgumentError(
            f"output has sizes {target.sizes} and strides {target.strides}, with which elements share memory; give "
            "every element of an output its own place"
        )
    return [Dimension(size, i, o) for size, i, o in zip(source.sizes, source.strides, target.strides, strict=True)]


def scan_problem(
    element: ElementType,
    operator: Operator,
    source: Layout,
    target: Layout,
    axis: int,
    options: ScanOptions = PLAIN,
) -> ScanProblem:
    """Validate and collapse a cumulative operator.

    Parameters
    ----------
    element : ElementType
        The type of both tensors.
    operator : Operator
        Sum or product.
    source, target : Layout
        Input and output, of the same sizes, with 1 to 8 dimensions and at least one element.
    axis : int
        The axis to scan along, counted from the end if negative.
    options : ScanOptions
        How to scan.

    Raises
    ------
    AxisError
        If `axis` is not a dimension.
    ArgumentError
        If the sizes differ, there are too many dimensions or elements, elements of the output share memory, the
        precision is not for this operator and type, or `monotone` not for this operator.
    """
    check_precision(options.precision, operator, element)
    check_monotone(options.monotone, operator)
    dims = _pair(source, target)
    along = dims.pop(resolve_axis(axis, len(dims)))
    input_offset, output_offset = source.offset, target.offset
    if options.reverse:
        input_offset += (along.size - 1) * along.input_stride
        output_offset += (along.size - 1) * along.output_stride
        along = Dimension(along.size, -along.input_stride, -along.output_stride)
    return ScanProblem(
        element,
        operator,
        options.exclusive,
        _collapse(dims),
        along,
        input_offset,
        output_offset,
        options.precision,
        options.monotone,
    )


def check_monotone(monotone: bool, operator: Operator) -> None:
    """Raise an error if results that never decrease are asked for, and not of a sum.

    Raises
    ------
    ArgumentError
        If so.
    """
    if monotone and operator is not Operator.SUM:
        raise ArgumentError(f"monotone is True, which is for sums, while operator is {operator.value!r}: leave it out")


def accumulator_words(element: ElementType, precision: Precision) -> int:
    """Return the 32-bit words of an accumulator: a compensated one is a pair."""
    return 2 if precision is Precision.COMPENSATED else element.accumulator_size // 4


def check_precision(precision: Precision, operator: Operator, element: ElementType | None) -> None:
    """Raise an error if a precision is not for this operator and type, if that is known.

    Raises
    ------
    ArgumentError
        If it is compensated, and the scan is not a sum of float32.
    """
    if precision is Precision.DEFAULT or (operator is Operator.SUM and (element is None or element.name == "float32")):
        return
    if element is None or operator is not Operator.SUM:
        way_out = "leave it out, or compute in float64"
    elif element.name == "float64":
        way_out = "leave it out, as float64 has more digits than float32 has with it"
    elif element.kind == "float":
        way_out = "add dtype='float32', or leave it out"
    else:
        way_out = "leave it out, as sums of integers are exact"
    raise ArgumentError(
        f"precision is {precision.value!r}, which is for sums of float32, while this is a {operator.value}"
        f"{'' if element is None else f' of {element}'}: {way_out}"
    )


def round_problem(element: ElementType, mode: RoundingMode, source: Layout, target: Layout) -> ElementwiseProblem:
    """Validate and collapse a rounding of floating-point elements.

    Raises
    ------
    ArgumentError
        As `scan_problem`.
    """
    dims = _collapse(_pair(source, target))
    return ElementwiseProblem(element, element, mode, dims, source.offset, target.offset)


def convert_problem(
    source_element: ElementType, target_element: ElementType, source: Layout, target: Layout
) -> ElementwiseProblem:
    """Validate and collapse a conversion, or a strided copy where both types are the same.

    Raises
    ------
    ArgumentError
        As `scan_problem`.
    """
    dims = _collapse(_pair(source, target))
    return ElementwiseProblem(source_element, target_element, None, dims, source.offset, target.offset)


def problem_of(
    operator: str,
    shape: SupportsIndex | Sequence[SupportsIndex],
    axis: SupportsIndex | None = None,
    dtype: DTypeLike = "float32",
    options: ScanOptions = PLAIN,
    mode: str = "half_even",
) -> tuple[ScanProblem | ElementwiseProblem, tuple[int, ...], int | None]:
    """Return the problem that arguments mean, its shape, and its axis counted from 0; arguments as `dmlgpu.explain`.

    Raises
    ------
    ArgumentError, ArrayTypeError, AxisError
        If they mean none.
    """
    kind = choice(operator, "operator", OPERATORS)
    sizes = integers(shape, "shape")
    element = by_argument(dtype, computed=True)
    rounding = choice(mode, "mode", MODES)
    if any(size < 1 for size in sizes):
        raise ArgumentError(
            f"shape is {shown(sizes)}; give sizes of 1 or more: nothing is dispatched for an empty array"
        )
    check_sizes(sizes, "shape")
    layout = Layout.packed(sizes)
    if kind is None:
        _check_rounding(element, axis, options)
        return round_problem(element, rounding, layout, layout), sizes, None
    if mode != "half_even":
        raise ArgumentError(f"mode is for roundings, and operator is {operator!r}: leave it out")
    if element is BOOL:
        raise ArgumentError("dtype is bool, which scans convert to int64: give the type they compute in")
    if not sizes:
        raise ArgumentError(f"shape is (), which has no axis to scan along: give {operator} one dimension or more")
    if axis is None and len(sizes) > 1:
        raise ArgumentError(
            f"axis is None, and shape {shown(sizes)} has {len(sizes)} dimensions: give 0 to {len(sizes) - 1}"
        )
    along = 0 if axis is None else integer(axis, "axis", "give an integer, or None for one dimension")
    problem = scan_problem(element, kind, layout, layout, along, options)
    return problem, sizes, along % len(sizes)


def _check_rounding(element: ElementType, axis: SupportsIndex | None, options: ScanOptions) -> None:
    """Refuse elements that have nothing to round, and arguments of scans."""
    if element.kind != "float":
        raise ArgumentError(f"dtype is {element}, whose elements round to themselves: give a floating-point type")
    given = ["axis"] if axis is not None else []
    given += [name for name, value in options._asdict().items() if value != getattr(PLAIN, name)]
    if given:
        raise ArgumentError(f"{given[0]} is for scans, and operator is 'round': leave it out")
