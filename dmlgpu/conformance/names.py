"""From a case's name back to the case."""

from __future__ import annotations

import math

from ..dtypes import ELEMENT_TYPES
from ..errors import ArgumentError
from ..layout import MAX_DIMENSIONS
from ..planning.plan import KERNELS
from .cases import MODES, Case, ConvertCase, RoundCase, ScanCase
from .elements import FAMILIES
from .placement import Placement

__all__ = ["parse"]

_MAX_ELEMENTS = 2**27
_TYPES = tuple(element.name for element in ELEMENT_TYPES)
_FLOATS = tuple(element.name for element in ELEMENT_TYPES if element.kind == "float")
_SCANS = ("sum", "product", "compensated")
_IN_ORDER = {"inclusive": False, "exclusive": True, "increasing": False, "decreasing": True}


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
    raise ValueError("it has not the fields of a sum, product, compensated sum, round or convert")


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
