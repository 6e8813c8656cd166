"""Pure: the kernels of roundings and conversions, and their passes over each window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..dtypes import ElementType
from .dispatch import BoundWindow, Pass, Planner
from .policy import policy_of
from .problem import Dimension, ElementwiseProblem
from .windows import QUAD_BYTES, Limits, Window

__all__ = ["ElementwisePlanner"]

_FLOAT_FORMATS = {"float16": (10, 15), "float32": (23, 127), "float64": (52, 1023)}
"""Mantissa bits and exponent bias."""

_KINDS = {"bool": 1, "uint": 2, "int": 3, "float": 4}
"""The kinds of slots/function/convert.wgsl; 0 copies bits."""


class ElementwisePlanner(Planner):
    """Plans a rounding or a conversion; parameters as of `Planner`."""

    def __init__(
        self,
        problem: ElementwiseProblem,
        limits: Limits,
        one_buffer: bool = False,
        chunks: Sequence[int] | None = None,
    ) -> None:
        super().__init__(problem, limits, one_buffer, chunks)
        self.problem = problem
        # Cut where vectors end: a window that begins inside one goes element by element.
        inner = len(problem.batch) - 1
        if inner >= 0 and QUAD_BYTES <= self.chunks[inner] < problem.batch[inner].size:
            whole = self.chunks[inner] // QUAD_BYTES * QUAD_BYTES
            self.chunks = (*self.chunks[:inner], whole, *self.chunks[inner + 1 :])
        self.slots = {"function": "convert" if problem.mode is None else "round"}
        if problem.mode is None:
            self.constants |= _conversion_constants(problem.source, problem.target)
            return
        self.constants |= {"stride": policy_of(limits).copy_stride, "units": 4}
        if problem.source.itemsize < 8:
            self.constants |= _float_constants(problem.source)

    def fields_of(self, window: Window) -> dict[str, int]:
        """Return the uniforms of all passes over a window."""
        return {"mode": 0 if self.problem.mode is None else self.problem.mode.value}

    def passes(self) -> Iterator[Pass]:
        """Yield the passes, in order."""
        for bound in self.windows(self.chunks):
            if self.problem.mode is None:
                self.why = "conversions take an invocation an element"
                yield self.make_pass("elementwise", bound)
                continue
            by_quads, rest = self._split(bound)
            if by_quads is not None:
                self.why = "the elements are neighbours in memory, in whole vectors of 16 bytes"
                yield self.make_pass("elementwise_units", by_quads, "quads")
            if rest is not None:
                self.why = "what is no whole vector of 16 bytes goes element by element"
                yield self.make_pass("elementwise", rest)

    def _split(self, bound: BoundWindow) -> tuple[BoundWindow | None, BoundWindow | None]:
        """Cut a window into one of whole quads, at multiples of quads in both bindings, and the rest."""
        window = bound.window
        if len(window.batch) != 1 or (window.batch[0].input_stride, window.batch[0].output_stride) != (1, 1):
            return None, bound
        size, fold = window.batch[0].size, QUAD_BYTES // self.problem.source.itemsize
        whole = size // fold * fold
        if whole == 0:
            return None, bound
        first = self.bind(replace(window, batch=(Dimension(whole, 1, 1),)))
        if not first.is_aligned(QUAD_BYTES, ()):
            return None, bound
        if whole == size:
            return first, None
        offsets = (window.input_offset + whole, window.output_offset + whole)
        rest = Window((Dimension(size - whole, 1, 1),), window.axis, window.first, window.last, *offsets)
        return first, self.bind(rest)


def _conversion_constants(source: ElementType, target: ElementType) -> dict[str, int]:
    same = source == target
    kinds = {"input_kind": 0 if same else _KINDS[source.kind], "output_kind": 0 if same else _KINDS[target.kind]}
    return kinds | _float_constants(source, "input_") | _float_constants(target, "output_")


def _float_constants(element: ElementType, prefix: str = "") -> dict[str, int]:
    if element.kind != "float":
        return {}
    mantissa_bits, bias = _FLOAT_FORMATS[element.name]
    return {f"{prefix}mantissa_bits": mantissa_bits, f"{prefix}exponent_bias": bias}
