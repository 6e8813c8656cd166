"""The cases of the conformance suite. A case's name says everything about it.

::

    sum.float32.2x4097.axis1.inclusive.increasing.packed-to-packed.lookback.plain
    compensated.float32.2x4097.axis1.inclusive.increasing.packed-to-packed.lookback.plain
    monotone.float32.2x4097.axis1.inclusive.increasing.packed-to-packed.lookback.plain
    round.float16.half_even.65536.packed-to-packed.patterns
    convert.float32-to-int8.8192.packed-to-packed.patterns

A scan's name has the operator, element type, shape, axis, exclusivity, direction, placement (`Placement`), kernel
("auto" for the plan's choice) and family of elements (`elements.FAMILIES`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import reference
from ..dtypes import ELEMENT_TYPES, ElementType, by_name
from ..errors import ArgumentError
from ..layout import MAX_DIMENSIONS, Layout
from ..planning.plan import KERNELS
from ..planning.problem import (
    MODES,
    ElementwiseProblem,
    Operator,
    Precision,
    ScanOptions,
    ScanProblem,
    convert_problem,
    round_problem,
    scan_problem,
)
from .elements import FAMILIES, elements
from .placement import BROADCASTS, Placement

__all__ = ["Case", "ConvertCase", "RoundCase", "ScanCase", "parse"]

_MAX_ELEMENTS = 2**27
"""The most elements of a case that `parse` makes: NumPy computes the reference."""
_TYPES = tuple(element.name for element in ELEMENT_TYPES)
_FLOATS = tuple(element.name for element in ELEMENT_TYPES if element.kind == "float")
_SCANS = ("sum", "product", "compensated", "monotone")
_IN_ORDER = {"inclusive": False, "exclusive": True, "increasing": False, "decreasing": True}


@dataclass(frozen=True)
class Case:
    """The base class of cases.

    Attributes
    ----------
    dtype : str
        The element type of the input.
    shape : tuple of int
        The sizes of both tensors.
    placement : Placement
        Where the tensors lie in memory.
    family : str
        The elements' family.
    """

    dtype: str
    shape: tuple[int, ...]
    placement: Placement
    family: str

    @property
    def name(self) -> str:
        """The case's name, which `parse` reads."""
        raise NotImplementedError

    @property
    def column(self) -> str:
        """The column of the verdict: an operator and the kernel that is forced."""
        raise NotImplementedError

    @property
    def result_type(self) -> ElementType:
        """The element type of the output."""
        return by_name(self.dtype)

    @property
    def along(self) -> int:
        """The axis, or the last dimension where there is none."""
        return len(self.shape) - 1

    @property
    def kernel(self) -> str | None:
        """The kernel that is forced, if any."""
        return None

    def layouts(self) -> tuple[Layout, Layout]:
        """Return where input and output lie; the same object if in place."""
        sizes = by_name(self.dtype).itemsize, self.result_type.itemsize
        return self.placement.layouts(self.shape, self.along, sizes)

    def problem(self) -> ScanProblem | ElementwiseProblem:
        """Return the problem that a device solves."""
        raise NotImplementedError

    def x(self) -> NDArray[Any]:
        """Return the input, of the case's shape; dimensions that are broadcast have strides of 0."""
        return self._broadcast(elements(self.family, self.dtype, self.shape))

    def flushes(self, keeps: Mapping[str, bool]) -> bool:
        """Whether the reference must flush subnormals for a device, which keeps them in these operators or does not."""
        del keeps
        return False

    def expected(self, flush: bool = False) -> NDArray[Any]:
        """Return the reference's result, read-only."""
        return _expected(self._essence(), flush)

    def meets_subnormals(self) -> bool:
        """Whether devices that flush subnormals may differ from devices that keep them."""
        return False

    def _essence(self) -> Case:
        """Return a case with the same result and the default placement and kernel."""
        source = self.placement.source if self.placement.source in BROADCASTS else "packed"
        return replace(self, placement=Placement(source))

    def _broadcast(self, x: NDArray[Any]) -> NDArray[Any]:
        for dimension in self.placement.broadcast_dimensions(x.ndim, self.along):
            x = x.take([0], dimension)
        return np.broadcast_to(x, self.shape)

    def _compute(self, flush: bool) -> NDArray[Any]:
        raise NotImplementedError


@dataclass(frozen=True)
class ScanCase(Case):
    """A cumulative sum or product.

    Attributes
    ----------
    operator : {"sum", "product", "compensated", "monotone"}
        The operator; "compensated" is for compensated sums, which are of float32, and "monotone" for monotone sums.
    axis : int
        The axis, from 0.
    exclusive, reverse : bool
        As for `dmlgpu.planning.problem.ScanOptions`.
    way : str
        The kernel that is forced, or "auto".
    """

    operator: str
    axis: int
    exclusive: bool
    reverse: bool
    way: str

    @property
    def name(self) -> str:  # noqa: D102 - inherited
        exclusivity = "exclusive" if self.exclusive else "inclusive"
        direction = "decreasing" if self.reverse else "increasing"
        fields = [self.operator, self.dtype, _text(self.shape), f"axis{self.axis}", exclusivity, direction]
        return ".".join([*fields, str(self.placement), self.way, self.family])

    @property
    def column(self) -> str:  # noqa: D102
        return f"{self.operator} {self.way}" if self.operator == self._base else f"sum {self.operator}"

    @property
    def along(self) -> int:  # noqa: D102
        return self.axis

    @property
    def kernel(self) -> str | None:  # noqa: D102
        return None if self.way == "auto" else self.way

    def problem(self) -> ScanProblem:  # noqa: D102
        precision = Precision.COMPENSATED if self._compensated else Precision.DEFAULT
        options = ScanOptions(self.exclusive, self.reverse, precision, self._monotone)
        return scan_problem(by_name(self.dtype), Operator(self._base), *self.layouts(), self.axis, options)

    def x(self) -> NDArray[Any]:  # noqa: D102
        return self._broadcast(elements(self.family, self.dtype, self.shape, self._base))

    def flushes(self, keeps: Mapping[str, bool]) -> bool:  # noqa: D102
        # float64 keeps subnormals on every device; float16 is accumulated in float32.
        return self.dtype in ("float16", "float32") and not keeps[self._base]

    def meets_subnormals(self) -> bool:  # noqa: D102
        return _meets_subnormals(self._essence())

    @property
    def _compensated(self) -> bool:
        return self.operator == "compensated"

    @property
    def _monotone(self) -> bool:
        return self.operator == "monotone"

    @property
    def _base(self) -> str:
        """The operator, without options of a sum."""
        return "sum" if self._compensated or self._monotone else self.operator

    def _essence(self) -> ScanCase:
        source = self.placement.source if self.placement.source in BROADCASTS else "packed"
        return replace(self, placement=Placement(source), way="auto")

    def _compute(self, flush: bool) -> NDArray[Any]:
        return reference.cumulative(self.x(), self._base, flush=flush, monotone=self._monotone, **self._options())

    def _options(self) -> dict[str, Any]:
        """Return what the order of the reference follows from, besides the elements and the operator."""
        return {
            "axis": self.axis,
            "exclusive": self.exclusive,
            "reverse": self.reverse,
            "compensated": self._compensated,
        }


@dataclass(frozen=True)
class RoundCase(Case):
    """A rounding; `mode` is a key of `MODES`."""

    mode: str

    @property
    def name(self) -> str:  # noqa: D102
        return ".".join(["round", self.dtype, self.mode, _text(self.shape), str(self.placement), self.family])

    @property
    def column(self) -> str:  # noqa: D102
        return "round"

    def problem(self) -> ElementwiseProblem:  # noqa: D102
        return round_problem(by_name(self.dtype), MODES[self.mode], *self.layouts())

    def _compute(self, flush: bool) -> NDArray[Any]:
        return reference.round(self.x(), self.mode)


@dataclass(frozen=True)
class ConvertCase(Case):
    """A conversion; `to` is the element type of the result."""

    to: str

    @property
    def name(self) -> str:  # noqa: D102
        types = f"{self.dtype}-to-{self.to}"
        return ".".join(["convert", types, _text(self.shape), str(self.placement), self.family])

    @property
    def column(self) -> str:  # noqa: D102
        return "convert"

    @property
    def result_type(self) -> ElementType:  # noqa: D102
        return by_name(self.to)

    def problem(self) -> ElementwiseProblem:  # noqa: D102
        return convert_problem(by_name(self.dtype), by_name(self.to), *self.layouts())

    def _compute(self, flush: bool) -> NDArray[Any]:
        return reference.convert(self.x(), self.to)


@lru_cache(maxsize=16)
def _expected(case: Case, flush: bool) -> NDArray[Any]:
    result = case._compute(flush)
    result.setflags(write=False)
    return result


@lru_cache(maxsize=16)
def _meets_subnormals(case: ScanCase) -> bool:
    return bool(reference.meets_subnormals(case.x(), case._base, **case._options()).any())


def _text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def parse(name: str) -> Case:
    """Return the case with this name, which need not be one of the suite's.

    Raises
    ------
    ArgumentError
        If the name is not a case's.

    Examples
    --------
    >>> from dmlgpu.conformance import parse
    >>> parse("sum.int8.3x17.axis1.inclusive.increasing.packed-to-packed.auto.plain").expected().shape
    (3, 17)
    """
    try:
        case = _parse(name.split("."))
        if case.name != name:
            raise ValueError(f"it would be {case.name}")
    except ValueError as error:
        raise ArgumentError(f"there is no case {name!r}: {error}; docs/portability.md shows what names hold") from None
    return case


def _parse(fields: list[str]) -> Case:
    match fields:
        case [operator, dtype, shape, axis, exclusivity, direction, placement, way, family] if operator in _SCANS:
            types = ("float32",) if operator == "compensated" else _TYPES
            common = _common(dtype, types, shape, placement, family)
            axes = [f"axis{i}" for i in range(len(common[1]))]
            _one_of("axis", axis, axes)
            _one_of("exclusivity", exclusivity, ("inclusive", "exclusive"))
            _one_of("direction", direction, ("increasing", "decreasing"))
            _one_of("kernel", way, ("auto", *KERNELS))
            order = _IN_ORDER[exclusivity], _IN_ORDER[direction]
            return ScanCase(*common, operator, axes.index(axis), *order, way)
        case ["round", dtype, mode, shape, placement, family]:
            return RoundCase(*_common(dtype, _FLOATS, shape, placement, family), _one_of("mode", mode, tuple(MODES)))
        case ["convert", types, shape, placement, family]:
            source, _, to = types.partition("-to-")
            common = _common(source, (*_TYPES, "bool"), shape, placement, family)
            if common[2].relation != "to":
                raise ValueError("a conversion has two buffers")
            return ConvertCase(*common, _one_of("type", to, _TYPES))
    raise ValueError("it has not the fields of a sum, product, compensated or monotone sum, round or convert")


def _common(
    dtype: str, types: tuple[str, ...], shape: str, placement: str, family: str
) -> tuple[str, tuple[int, ...], Placement, str]:
    _one_of("type", dtype, types)
    parts = shape.split("x")
    if not all(part.isascii() and part.isdecimal() for part in parts) or len(parts) > MAX_DIMENSIONS:
        raise ValueError(f"{shape!r} is no shape of 1 to {MAX_DIMENSIONS} dimensions, such as 2x4097")
    if any(len(part) > 10 for part in parts) or not 0 < math.prod(map(int, parts)) <= _MAX_ELEMENTS:
        raise ValueError(f"the shape {shape} has not 1 to {_MAX_ELEMENTS} elements")
    return dtype, tuple(map(int, parts)), Placement.parse(placement), _one_of("family", family, FAMILIES)


def _one_of(what: str, value: str, values: tuple[str, ...] | list[str]) -> str:
    if value not in values:
        raise ValueError(f"{value!r} is no {what}; there are {', '.join(values)}")
    return value
