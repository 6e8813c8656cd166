"""Cases that the conformance suite lacks: the data of tests that aim at a part of a shader."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dmlgpu import reference
from dmlgpu.bench.workloads import Copy
from dmlgpu.conformance import Case, ConvertCase, Placement, ScanCase
from dmlgpu.conformance.probes import hard_pairs
from dmlgpu.layout import Layout
from dmlgpu.planning.problem import Precision, ScanProblem

from ..harness import numbers
from ..near_underflow import (
    KINDS,
    KINDS_IN_BLOCKS,
    climbing_products,
    falling,
    in_few_blocks,
    infinity_times_small,
    lone_peaks,
    near_underflow,
    peaks_of_products,
    s_of_a_window,
    smallest_normals,
)
from ..test_compensated import borders, wide
from ..test_exceptional import (
    LEAVING,
    SUMS_LEAVING,
    barely,
    behind,
    beside,
    cancelling,
    early_infinity,
    edge,
    ending,
    every_other,
    halves,
    handing_on,
    late,
    leaving,
    loud,
    nearly_zero,
    overflowing_span,
    peaks,
    recovering,
    strewn,
    strewn_with_classes,
    twice,
    underflow,
)
from ..test_float64_words import apart, halfway
from ..test_repair import EVENTS, PATTERNS, of_fills, with_events
from ..test_scan_kernels import half_subnormals

__all__ = ["BytesCase", "CopyCase", "OwnScanCase", "own_scan"]

PACKED = Placement()


def _events(shape: tuple[int, ...], dtype: str, operator: str) -> NDArray[Any]:
    """Return what test_exceptional.py has: a slice for each event around each border of runs, blocks, tiles, spans."""
    return strewn(shape[-1], operator, dtype)[: shape[0]]


def _late_events(shape: tuple[int, ...], dtype: str, operator: str) -> NDArray[Any]:
    return strewn(shape[-1], operator, dtype, first=4095)[-shape[0] :]


def _cancelling(shape: tuple[int, ...], _: str, __: str) -> NDArray[Any]:
    first = cancelling(shape[-1])
    if len(shape) == 1:
        return first
    others = strewn(shape[-1], "sum")
    return np.stack([first, *(others[33 * row % 45] for row in range(1, shape[0]))])


def opposites(x: NDArray[Any]) -> NDArray[Any]:
    """Return pairs of numbers whose sum is 0."""
    return np.stack([x, -x], axis=1)


def _apart() -> NDArray[np.float64]:
    pairs = [np.stack(apart(1023, distance), axis=1) for distance in (1, 31, 33, 52, 53, 54)]
    return np.concatenate(pairs).view(np.float64)


def _ending(shape: tuple[int, ...], _: str, __: str) -> NDArray[Any]:
    return np.resize(ending(shape[1]), shape)


def _between(shape: tuple[int, ...], dtype: str, operator: str) -> NDArray[Any]:
    """Return slices with an event each, between slices that have none."""
    x = np.repeat(strewn(shape[1], operator, dtype), 2, axis=0)
    x[1::2] = numbers((len(x) // 2, shape[1]), dtype, operator)
    return np.resize(x, shape)


def _behind_others(shape: tuple[int, ...], _: str, __: str) -> NDArray[Any]:
    """Return slices of which the first of each row, but of the first row, has a run that overflows by itself."""
    x = numbers(shape, "float32")
    for i, value in ((327, -3e38), (336, 3e38), (337, 3e38), (360, -3e38)):
        x[1:, i, 0] = value
    return x


def _odd(shape: tuple[int, ...], dtype: str, _: str) -> NDArray[Any]:
    """Return integers whose products never vanish."""
    x = numbers(shape, dtype)
    x |= 1
    return x


def _near(kind: str) -> Callable[[tuple[int, ...], str, str], NDArray[Any]]:
    """Return what makes slices of a kind, along the longer axis."""

    def make(shape: tuple[int, ...], dtype: str, _: str) -> NDArray[Any]:
        x = near_underflow(kind, dtype, min(shape))
        return x if shape[0] < shape[1] else np.ascontiguousarray(x.T)

    return make


def _few_blocks(kind: str) -> Callable[[tuple[int, ...], str, str], NDArray[Any]]:
    return lambda shape, dtype, _: in_few_blocks(kind, dtype, shape[0], shape[1])


def _leaving(way: str) -> Callable[[tuple[int, ...], str, str], NDArray[Any]]:
    return lambda shape, _, __: leaving(way, shape[0])


def _with_events(kind: str, pattern: str) -> Callable[[tuple[int, ...], str, str], NDArray[Any]]:
    return lambda shape, _, __: with_events(kind, PATTERNS[pattern], *shape)


def _of_fills(number: int) -> Callable[[tuple[int, ...], str, str], NDArray[Any]]:
    return lambda _, __, ___: of_fills(number)


_FAMILIES: dict[str, Callable[[tuple[int, ...], str, str], NDArray[Any]]] = {
    "early_infinity": lambda shape, _, operator: early_infinity(shape[0] // 4096, operator),
    "events": _events,
    "late_events": _late_events,
    "between": _between,
    "few classes": lambda shape, dtype, operator: strewn_with_classes(shape, operator, dtype, 0.003),
    "many classes": lambda shape, dtype, operator: strewn_with_classes(shape, operator, dtype, 0.1),
    **{f"few blocks {kind}": _few_blocks(kind) for kind in KINDS_IN_BLOCKS},
    "barely": lambda shape, _, __: barely(shape[-1]),
    "behind": lambda _, dtype, operator: behind(operator, dtype),
    "behind others": _behind_others,
    "beside": lambda shape, dtype, operator: np.tile(beside(shape[0], operator, dtype), 2)[:, : shape[1]],
    "opposites": lambda shape, dtype, _: opposites(numbers((shape[0],), dtype)),
    "overflowing_span": lambda shape, _, __: overflowing_span(shape[0] // 4096),
    "pairs": lambda shape, _, __: borders(shape[1]),
    "loud": lambda shape, _, __: loud(shape[0] // 4096),
    "recovering": lambda shape, _, __: recovering(shape[0] // 4096),
    "ties": lambda _, __, ___: half_subnormals(),
    "cancelling": _cancelling,
    "edge": lambda _, dtype, __: edge(dtype),
    "twice": lambda _, dtype, operator: twice(operator, dtype),
    "underflow": lambda _, __, ___: underflow(),
    "ending": _ending,
    "apart": lambda _, __, ___: _apart(),
    "nearly_zero": lambda shape, _, __: nearly_zero(shape[1]),
    "every_other": lambda shape, dtype, _: every_other(shape[1], dtype),
    "falling": lambda shape, _, __: falling(*shape),
    "falling_beside": lambda shape, _, __: np.ascontiguousarray(falling(*shape[::-1]).T),
    "infinity_times_small": lambda _, __, ___: infinity_times_small(),
    "halfway": lambda _, __, ___: halfway(),
    "halves": lambda shape, _, __: halves(shape[0]),
    "late": lambda shape, dtype, operator: late(shape[0], operator, dtype),
    "handing_on": lambda shape, _, __: handing_on(shape[0]),
    "peaks": lambda shape, _, __: peaks(shape[1]),
    "hard": lambda _, dtype, operator: hard_pairs(dtype, operator),
    "negative_zeros": lambda shape, dtype, _: np.full(shape, -0.0, dtype),
    "lengths": numbers,
    "numbers": numbers,
    "odd": _odd,
    "wide": lambda shape, _, __: wide(shape),
    "smallest_normals": lambda shape, dtype, _: smallest_normals(dtype, *shape),
    "climbing_products": lambda _, dtype, __: climbing_products(dtype),
    "lone_peaks": lambda shape, dtype, _: lone_peaks(dtype, *shape),
    "peaks_of_products": lambda _, dtype, __: peaks_of_products(dtype),
    **{f"near {kind}": _near(kind) for kind in KINDS},
    "s of a window": lambda shape, dtype, _: s_of_a_window(dtype, shape[0]),
    **{way: _leaving(way) for way in (*LEAVING, *SUMS_LEAVING, "late infinity")},
    **{f"{kind} in {pattern}": _with_events(kind, pattern) for kind in EVENTS for pattern in PATTERNS},
    **{f"{number} fills": _of_fills(number) for number in (13, 34, 35)},
}


@cache
def _data(family: str, shape: tuple[int, ...], dtype: str, operator: str) -> NDArray[Any]:
    return _FAMILIES[family](shape, dtype, operator)


@dataclass(frozen=True)
class OwnScanCase(ScanCase):
    """A scan of one of the families here, perhaps compensated, perhaps with elements far apart.

    Attributes
    ----------
    compensated : bool
        As for `dmlgpu.reference.cumulative`.
    far : tuple of int
        The distance of a slice's elements in the input and the output; (0, 0) leaves it to the placement.
    beside : tuple of int
        The shape of the family's slices, where they are side by side here.
    """

    compensated: bool = False
    far: tuple[int, int] = (0, 0)
    beside: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        more = [".compensated"] * self.compensated + [f".far{self.far}"] * any(self.far)
        return "".join([super().name, *more])

    def x(self) -> NDArray[Any]:
        if self.beside:
            slices = _data(self.family, self.beside, self.dtype, self.operator)
            return np.ascontiguousarray(np.atleast_2d(slices).T)
        return _data(self.family, self.shape, self.dtype, self.operator)

    def layouts(self) -> tuple[Layout, Layout]:
        if not any(self.far):
            return super().layouts()
        ones = (1,) * (len(self.shape) - 1)
        source, target = (Layout(self.shape, (stride, *ones)) for stride in self.far)
        return source, target

    def problem(self) -> ScanProblem:
        precision = Precision.COMPENSATED if self.compensated else Precision.DEFAULT
        return replace(super().problem(), precision=precision)

    def _compute(self, flush: bool) -> NDArray[Any]:
        return reference.cumulative(
            self.x(),
            self.operator,
            axis=self.axis,
            exclusive=self.exclusive,
            reverse=self.reverse,
            flush=flush,
            compensated=self.compensated,
        )


@dataclass(frozen=True)
class OutputFirst(Placement):
    """Both tensors in one buffer, the output first: what is written past its end is noticed."""

    def layouts(self, sizes: tuple[int, ...], axis: int, itemsizes: tuple[int, int]) -> tuple[Layout, Layout]:
        source, target = Placement(self.source, "to", self.target).layouts(sizes, axis, itemsizes)
        gap = 128 // itemsizes[1]  # keeps vectors of 16 bytes aligned
        return replace(source, offset=source.offset + (-(-target.extent[1] // gap) + 1) * gap), target

    def __str__(self) -> str:
        return f"{self.source}-behind-{self.target}"


OUTPUT_FIRST = OutputFirst("packed", "beside", "packed")


def own_scan(
    family: str,
    dtype: str,
    operator: str,
    shape: tuple[int, ...],
    axis: int,
    way: str,
    *,
    both: bool = False,
    exclusive: bool = False,
    placement: Placement = PACKED,
    **more: Any,
) -> OwnScanCase:
    """Return a case; `both` for exclusive and reverse. Where `shape` asks for more slices than there are, it is cut.

    Slices along the last axis are side by side for tiles of strips.
    """
    shape = _data(family, shape, dtype, operator).shape
    if way == "strip_lookback" and axis == len(shape) - 1 and len(shape) < 3:
        more["beside"] = shape
        shape, axis = (shape[-1], math.prod(shape[:-1])), 0
    return OwnScanCase(dtype, shape, placement, family, operator, axis, both or exclusive, both, way, **more)


@dataclass(frozen=True)
class BytesCase(ConvertCase):
    """As tests/test_elementwise_kernels.py::test_every_byte_but_zero_is_true."""

    def x(self) -> NDArray[Any]:
        return np.arange(256, dtype=np.uint8).view(np.bool_)

    def _compute(self, flush: bool) -> NDArray[Any]:
        return (np.arange(256, dtype=np.uint8) != 0).astype(self.to)


@dataclass(frozen=True)
class CopyCase(Case):
    """A benchmark's copy; `dmlgpu.bench.workloads` has the plan of it."""

    copy: Copy

    @property
    def name(self) -> str:
        return f"copy.{self.copy.name}.{self.shape[0]}"

    @property
    def column(self) -> str:
        return "copy"

    def _compute(self, flush: bool) -> NDArray[Any]:
        return self.x()
