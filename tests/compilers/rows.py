"""The rows of the page: what the pipelines of a kernel and an element type have in common. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dmlgpu.planning.dispatch import PipelineKey

from .drivers import Figures

__all__ = ["ANY", "alike", "one_of_each", "row_of", "worst"]

ANY = "any"
_TYPES = {
    "f16": "float16",
    "f32": "float32",
    "f32_compensated": "float32, compensated",
    "f64": "float64",
    "f64_words": "float64 on words",
    "int64": "int64",
    "max": "maximum, 8 to 32 bits",
    "max64": "maximum, 64 bits",
}
_LEAST_IS_WORST = {"waves"}


def row_of(key: PipelineKey) -> tuple[str, str]:
    """Return the kernel and the element type, or ANY for conversions; kinds of scan_slices that are rare apart."""
    slots, constants = dict(key.slots), dict(key.constants)
    if "function" in slots:
        kernel = f"{key.kernel}, {slots['function']}"
        return kernel, ANY if slots["function"] == "convert" else f"float{2 ** constants['input_log2_bits']}"
    bits = 2 ** constants.get("input_log2_bits", 5)
    kernel = f"{key.kernel}, inside runs" if constants.get("inside_runs") else key.kernel
    if slots.get("slices") == "suspects":
        kernel = f"{key.kernel}, of suspects"
    # What only reads and writes the state has integers of any width.
    return kernel, _TYPES.get(slots["element"], f"int{bits}" if "input" in slots else "int8 to int32")


def alike(key: PipelineKey, *constants: str) -> PipelineKey:
    """Return what a pipeline has in common with others, apart from the buffers it binds and the named constants."""
    slots = tuple((name, piece) for name, piece in key.slots if name != "input")
    return replace(key, slots=slots, constants=tuple(one for one in key.constants if one[0] not in constants))


def one_of_each(keys: Iterable[PipelineKey], *constants: str) -> list[PipelineKey]:
    """Return one pipeline of those that are alike: the one with the most code, which any number of dimensions takes."""
    found: dict[PipelineKey, PipelineKey] = {}
    for key in sorted(keys, key=lambda key: (dict(key.constants).get("flat", 0), repr(key))):
        found.setdefault(alike(key, *constants), key)
    return list(found.values())


def worst(figures: Iterable[Mapping[str, int]]) -> Figures:
    """Return the worst of each figure: the largest, but for the waves of a SIMD unit."""
    found: Figures = {}
    for one in figures:
        for name, value in one.items():
            decide = min if name in _LEAST_IS_WORST else max
            found[name] = decide(found.get(name, value), value)
    return found
