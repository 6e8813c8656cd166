"""Pure: the kernels of roundings and conversions, and their passes over each window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from ..dtypes import ElementType
from .dispatch import Pass, bind, make_pass
from .problem import Dimension, ElementwiseProblem
from .windows import QUAD_BYTES, Limits, Window, windows

__all__ = ["NO_AXIS", "elementwise_passes"]

NO_AXIS: Final = Dimension(1, 0, 0)
"""Stands for the axis in windows of elementwise problems."""

_ELEMENTS_A_WORKGROUP = 64
_QUADS_A_WORKGROUP = 256
_FLOAT_FORMATS = {"float16": (10, 15), "float32": (23, 127), "float64": (52, 1023)}
"""Mantissa bits and exponent bias."""

_KINDS = {"bool": 1, "uint": 2, "int": 3, "float": 4}
"""The kinds of convert.wgsl; 0 copies bits."""


def elementwise_passes(
    problem: ElementwiseProblem, limits: Limits, chunks: Sequence[int], *, one_buffer: bool = False
) -> Iterator[Pass]:
    """Yield the passes of a rounding or a conversion, in order.

    Parameters
    ----------
    problem : ElementwiseProblem
        What to compute.
    limits : Limits
        What the device can do.
    chunks : sequence of int
        The sizes of windows that fit, as `chunk_sizes` returned them.
    one_buffer : bool
        Whether input and output are in one buffer.
    """
    offsets = (problem.input_offset, problem.output_offset)
    for window in windows(problem.dimensions, NO_AXIS, offsets, chunks):
        if problem.mode is None:
            yield _convert(problem, window, limits, one_buffer)
        else:
            yield from _round(problem, problem.mode.value, window, limits, one_buffer)


def _round(problem: ElementwiseProblem, mode: int, window: Window, limits: Limits, one_buffer: bool) -> Iterator[Pass]:
    """Yield a pass over the whole quads of neighbours in memory, if there are any, and one over what is left."""
    element = problem.source
    elements = (element, element)
    constants = _bits(problem) | ({} if element.itemsize == 8 else _float_constants(element))
    by_quads, rest = _split(problem, window, limits, one_buffer)
    if by_quads is not None:
        quads = by_quads.elements * element.itemsize // QUAD_BYTES
        yield make_pass(
            "round_quads",
            constants | {"stride": 1 if limits.software else 64},
            by_quads,
            elements,
            -(-quads // _QUADS_A_WORKGROUP),
            limits,
            one_buffer=one_buffer,
            more_slots={"reads": "quads"},
            mode=mode,
        )
    if rest is not None:
        constants["flat"] = int(len(problem.dimensions) <= 1)
        workgroups = -(-rest.elements // _ELEMENTS_A_WORKGROUP)
        yield make_pass("round", constants, rest, elements, workgroups, limits, one_buffer=one_buffer, mode=mode)


def _split(
    problem: ElementwiseProblem, window: Window, limits: Limits, one_buffer: bool
) -> tuple[Window | None, Window | None]:
    """Cut a window into one of whole quads, at places that are multiples of quads in both bindings, and the rest."""
    itemsize = problem.source.itemsize
    fold = QUAD_BYTES // itemsize
    if len(window.batch) != 1 or (window.batch[0].input_stride, window.batch[0].output_stride) != (1, 1):
        return None, window
    size = window.batch[0].size
    whole = size // fold * fold
    if whole == 0:
        return None, window
    first = replace(window, batch=(Dimension(whole, 1, 1),))
    bindings = bind(first, (problem.source, problem.target), one_buffer, limits)
    places = (
        window.input_offset * itemsize - bindings.input.offset,
        window.output_offset * itemsize - bindings.output.offset,
    )
    if any(place % QUAD_BYTES for place in places):
        return None, window
    if whole == size:
        return first, None
    offsets = (window.input_offset + whole, window.output_offset + whole)
    return first, Window((Dimension(size - whole, 1, 1),), window.axis, window.first, window.last, *offsets)


def _convert(problem: ElementwiseProblem, window: Window, limits: Limits, one_buffer: bool) -> Pass:
    source, target = problem.source, problem.target
    same = source == target
    constants = _bits(problem) | _float_constants(source, "input_") | _float_constants(target, "output_")
    constants["input_kind"] = 0 if same else _KINDS[source.kind]
    constants["output_kind"] = 0 if same else _KINDS[target.kind]
    constants["flat"] = int(len(problem.dimensions) <= 1)
    workgroups = -(-window.elements // _ELEMENTS_A_WORKGROUP)
    return make_pass("convert", constants, window, (source, target), workgroups, limits, one_buffer=one_buffer)


def _bits(problem: ElementwiseProblem) -> dict[str, int]:
    return {"input_log2_bits": problem.source.log2_bits, "output_log2_bits": problem.target.log2_bits}


def _float_constants(element: ElementType, prefix: str = "") -> dict[str, int]:
    if element.kind != "float":
        return {}
    mantissa_bits, bias = _FLOAT_FORMATS[element.name]
    return {f"{prefix}mantissa_bits": mantissa_bits, f"{prefix}exponent_bias": bias}
