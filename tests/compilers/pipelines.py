"""Every pipeline that a plan for a GPU can take, found by planning a problem of each kind. Pure: no device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product

from dmlgpu.dtypes import BOOL, ELEMENT_TYPES, ElementType, by_name
from dmlgpu.layout import Layout
from dmlgpu.planning.dispatch import PipelineKey
from dmlgpu.planning.pieces import plan_totals
from dmlgpu.planning.plan import plan_problem
from dmlgpu.planning.problem import (
    Operator,
    Precision,
    RoundingMode,
    ScanOptions,
    ScanProblem,
    convert_problem,
    round_problem,
    scan_problem,
)
from dmlgpu.planning.windows import TILE, Limits

__all__ = ["gpu_pipelines"]

_LIMITS = Limits(binding_bytes=2**29, offset_alignment=256)
"""A GPU with small bindings: what does not fit into one takes windows, and there are pipelines for these alone."""

_GAP = 64
"""Elements: a multiple of 16 bytes for every type."""

_Shape = tuple[tuple[int, ...], tuple[int, ...], int]
"""Sizes, strides and the axis."""


@cache
def gpu_pipelines() -> frozenset[PipelineKey]:
    """Return every pipeline that a plan can ask for where a GPU computes, with 64-bit floats of its own and without."""
    return frozenset((*_of_scans(), *_of_maxima(), *_of_totals(), *_of_roundings(), *_of_conversions()))


def _placements(
    sizes: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> Iterator[tuple[Layout, Layout, bool]]:
    """Yield where input and output can lie, and whether they are in one buffer."""
    packed = Layout(sizes, strides)
    yield packed, packed, False
    yield packed, packed, True
    end = packed.extent[1]
    yield packed, Layout(sizes, strides, _LIMITS.offset_alignment * end), True
    # So near that they share a binding: the input ends in the middle of where one can begin, the output begins behind.
    shift = (_LIMITS.offset_alignment // 2 - end * itemsize) % _LIMITS.offset_alignment // 16 * 16 // itemsize
    near = shift + end
    yield Layout(sizes, strides, shift), Layout(sizes, strides, near + -near % (16 // itemsize)), True


def _slices(count: int, length: int, pitch: int) -> Iterator[_Shape]:
    """Yield slices of neighbours in memory, `pitch` from one to the next, in one batch dimension and in two."""
    yield (count, length), (pitch, 1), 1
    yield (count // 2, 2, length), (2 * pitch + _GAP, pitch, 1), 2


def _rows(count: int, length: int, pitch: int) -> Iterator[_Shape]:
    """Yield slices side by side, `pitch` from one row to the next, in one batch dimension and in two."""
    yield (length, count), (pitch, 1), 0
    half = count // 2
    yield (length, 2, half), (pitch, half + -half % _GAP + _GAP, 1), 0


def _scan_shapes(itemsize: int) -> Iterator[_Shape]:
    for length in range(1, 17):
        many = 2**16 // length // 2 * 2 + 2  # so many that a pipeline knows their length
        for count, pitch in product((4, many), (_GAP, _GAP + 1)):
            yield from _slices(count, length, pitch)
    for length in (3, 16, 90, 300):  # without gaps
        yield from _slices(2**16 // length // 16 * 16 + 16, length, length)
    yield from _slices(4, 256, 256 + _GAP)
    for count, length in ((4, 256), (256, 4096), (4, 8192)):  # scan_slices, scan_rows, tiles
        for pitch in (length, length + 1):
            yield from _slices(count, length, pitch)
    # Side by side, in strips of every width, of words that are whole or not, or whole but not in pairs, with a stretch,
    # a tile or more in a binding.
    in_word = max(1, 4 // itemsize)
    strips = [count * in_word + more for count in (2**9, 2**10, 2**11, 2**12, 2**13) for more in (0, 2)]
    few, fewer = 64 * in_word, 24 * in_word  # whose tiles have a workgroup each
    for count, length in (*product(strips, (200, 300, 40_000)), (few, 2**18 + 9), (fewer, 50_000)):
        yield from _rows(count, length, count + -count % _GAP + 2 * _GAP)
        yield from _rows(count, length, count + 2 * _GAP + in_word)
        yield from _rows(count, length, count + 2 * _GAP + 1)
    yield (2**18, 4), (_GAP, 1), 0  # which are a sector of 64 bits, with gaps
    # Rows of less than a sector, of one array, of a few and of many.
    for width in (2, 3, 7, 12):
        yield (2**20, width), (width, 1), 0
        for count, length in ((2, 2**19), (200, 2**10)):
            yield (count, length, width), ((length + 1) * width, width, 1), 1
    # So far apart that a binding holds less than a tile, or than a run.
    for rows, length in ((2000, 3000), (40, 60), (40, 100), (9, 15), (9, 30)):
        yield from _rows(4, length, _LIMITS.binding_bytes // itemsize // rows)
        yield (length,), (_LIMITS.binding_bytes // itemsize // rows,), 0


def _shifted(itemsize: int) -> Iterator[tuple[Layout, Layout, bool]]:
    """Yield slices without gaps that begin inside a vector, of a run, of a block and of more."""
    for length in (9, 129, 513):
        sizes = (2**16 // length + 1, length)
        first = Layout.packed(sizes, 1)
        end = first.extent[1]
        yield first, first, False
        yield first, first, True
        yield first, Layout.packed(sizes, _LIMITS.offset_alignment * end + 1), True
        yield first, Layout.packed(sizes, end + (end * itemsize % _LIMITS.offset_alignment == 0)), True


def _turned() -> Iterator[tuple[Layout, Layout, bool]]:
    """Yield slices that are written side by side and read one after the other, in windows of some of each."""
    sizes = (8192, 70_000)
    first, end = Layout.packed(sizes), 8192 * 70_000
    yield first, Layout(sizes, (1, 8192)), False
    yield first, Layout(sizes, (1, 8192), _LIMITS.offset_alignment * end), True


def _arithmetic() -> Iterator[tuple[ElementType, Operator, Precision]]:
    for element, operator in product(ELEMENT_TYPES, (Operator.SUM, Operator.PRODUCT)):
        yield element, operator, Precision.DEFAULT
    yield by_name("float32"), Operator.SUM, Precision.COMPENSATED


def _of_scans() -> Iterator[PipelineKey]:
    for element, operator, precision in _arithmetic():
        for (sizes, strides, axis), float64 in product(_scan_shapes(element.itemsize), _floats(element)):
            for source, target, one_buffer in _placements(sizes, strides, element.itemsize):
                for reverse in _directions(sizes, strides, axis):
                    problem = scan_problem(
                        element, operator, source, target, axis, ScanOptions(reverse=reverse, precision=precision)
                    )
                    yield from _of_tunings(problem, replace(_LIMITS, float64=float64), one_buffer)

        others = (*_shifted(element.itemsize), *_turned())
        for (source, target, one_buffer), reverse in product(others, (False, True)):
            problem = scan_problem(
                element, operator, source, target, 1, ScanOptions(reverse=reverse, precision=precision)
            )
            for float64 in _floats(element):
                plan = plan_problem(problem, replace(_LIMITS, float64=float64), one_buffer=one_buffer)
                yield from (one.pipeline for one in plan.passes)


def _of_tunings(problem: ScanProblem, limits: Limits, one_buffer: bool) -> Iterator[PipelineKey]:
    """Yield what a plan takes, and what another one takes where `dmlgpu tune` may find that few slices are read twice.

    Other thresholds decide between kernels that all take the same pipelines somewhere.
    """
    plan = plan_problem(problem, limits, one_buffer=one_buffer)
    yield from (one.pipeline for one in plan.passes)
    if any(one.pipeline.kernel == "scan_lookback" for one in plan.passes):
        tuning = replace(limits.tuning, lookback_elements=0)
        plan = plan_problem(problem, replace(limits, tuning=tuning), one_buffer=one_buffer)
        yield from (one.pipeline for one in plan.passes)


def _directions(sizes: tuple[int, ...], strides: tuple[int, ...], axis: int) -> tuple[bool, ...]:
    """Return whether to reverse: kernels turn slices without gaps around."""
    return (False, True) if strides[0] == sizes[axis] else (False,)


def _of_maxima() -> Iterator[PipelineKey]:
    """Yield what follows the sums of monotone ones, which is always in place."""
    for element in ELEMENT_TYPES:
        for sizes, strides, axis in _scan_shapes(element.itemsize):
            packed = Layout(sizes, strides)
            for reverse in _directions(sizes, strides, axis):
                problem = scan_problem(
                    element, Operator.SUM, packed, packed, axis, ScanOptions(reverse=reverse, monotone=True)
                )
                plan = plan_problem(problem.maxima, _LIMITS, one_buffer=True)
                yield from (one.pipeline for one in plan.passes)
        for (packed, _, _), reverse in product(_shifted(element.itemsize), (False, True)):
            problem = scan_problem(
                element, Operator.SUM, packed, packed, 1, ScanOptions(reverse=reverse, monotone=True)
            )
            yield from (one.pipeline for one in plan_problem(problem.maxima, _LIMITS, one_buffer=True).passes)


def _of_totals() -> Iterator[PipelineKey]:
    """Yield what finds the records of whole tiles in chunks of Dask's arrays."""
    cubes = ((1, TILE, 1), (4, TILE, 1), (1, TILE, 4), (4, TILE, 4))
    for (element, operator, precision), sizes, reverse in product(_arithmetic(), cubes, (False, True)):
        packed = Layout(sizes, (sizes[1] * sizes[2], sizes[2], 1))
        problem = scan_problem(element, operator, packed, packed, 1, ScanOptions(reverse=reverse, precision=precision))
        for float64 in _floats(element):
            yield from (one.pipeline for one in plan_totals(problem, replace(_LIMITS, float64=float64)).plan.passes)


def _floats(element: ElementType) -> tuple[bool, ...]:
    return (False, True) if element.format == "f64" else (False,)


def _elementwise_shapes() -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    yield (300,), (1,)
    yield (301,), (1,)
    yield (20, 2), (3, 1)


def _of_roundings() -> Iterator[PipelineKey]:
    for element, (sizes, strides) in product(ELEMENT_TYPES, _elementwise_shapes()):
        if element.kind == "float":
            for source, target, one_buffer in _placements(sizes, strides, element.itemsize):
                problem = round_problem(element, RoundingMode.HALF_EVEN, source, target)
                yield from (one.pipeline for one in plan_problem(problem, _LIMITS, one_buffer=one_buffer).passes)


def _of_conversions() -> Iterator[PipelineKey]:
    pairs = [*product((*ELEMENT_TYPES, BOOL), ELEMENT_TYPES), (BOOL, BOOL)]
    for (source, target), (sizes, strides) in product(pairs, _elementwise_shapes()):
        for *layouts, one_buffer in _placements(sizes, strides, target.itemsize):
            problem = convert_problem(source, target, *layouts)
            yield from (one.pipeline for one in plan_problem(problem, _LIMITS, one_buffer=one_buffer).passes)
