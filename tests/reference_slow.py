"""The canonical order once more, one scalar at a time: slow, and as close to its wording as Python gets."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

FLOATS = ("float16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
DTYPES = FLOATS + INTEGERS
OPERATORS = ("sum", "product")


Combine = Callable[[Any, Any], Any]


def order(x: list[Any], carried: list[Any], combine: Combine) -> Callable[[int], Any]:
    """Return the canonical order's results as a function of the index.

    `carried` holds what the first span goes on from, or nothing at the start of a slice. The indices of runs, blocks,
    tiles and spans count from the start of `x` here.
    """

    @cache
    def r(i: int) -> Any:
        return x[i] if i % 16 == 0 else combine(r(i - 1), x[i])

    @cache
    def h(run: int, stride: int = 8) -> Any:
        """After the step of that stride."""
        if stride == 0:
            return r(16 * run + 15)
        before = h(run, stride // 2)
        return combine(h(run - stride, stride // 2), before) if run % 16 >= stride else before

    @cache
    def p(block: int) -> Any:
        total = h(16 * block + 15)
        return total if block % 16 == 0 else combine(p(block - 1), total)

    @cache
    def c(tile: int) -> Any:
        total = p(16 * tile + 15)
        return total if tile % 16 == 0 else combine(c(tile - 1), total)

    @cache
    def s(span: int) -> list[Any]:
        """The fold of the spans up to this one as a list of one, or empty if there is none."""
        if span < 0:
            return carried
        before, total = s(span - 1), c(16 * span + 15)
        return [combine(before[0], total)] if before else [total]

    @cache
    def q(run: int) -> list[Any]:
        """The carry as a list of one, or empty at the start of the slice."""
        block, tile, span = run // 16, run // 256, run // 4096
        terms = list(s(span - 1))
        if tile % 16 > 0:
            terms.append(c(tile - 1))
        if block % 16 > 0:
            terms.append(p(block - 1))
        if run % 16 > 0:
            terms.append(h(run - 1))
        while len(terms) > 1:
            terms[:2] = [combine(terms[0], terms[1])]
        return terms

    def out(i: int) -> Any:
        carry = q(i // 16)
        return combine(carry[0], r(i)) if carry else r(i)

    return out


def inclusive(
    x: list[Any], combine: Combine, is_ordinary: Callable[[Any], bool], fold: Combine | None = None
) -> list[Any]:
    """Return all results; exceptional tiles, in which some result is not ordinary, are left folds, and end their span.

    `fold` is what left folds combine by, where that differs.
    """
    fold = fold or combine
    results: list[Any] = []
    origin = 0
    out = order(x, [], combine)
    for start in range(0, len(x), 4096):
        elements = x[start : start + 4096]
        tile = [out(start - origin + i) for i in range(len(elements))]
        if not all(is_ordinary(value) for value in tile):
            tile, last = [], results[-1:]
            for element in elements:
                last = [fold(last[0], element)] if last else [element]
                tile += last
            origin = start + len(elements)
            out = order(x[origin:], last, combine)
        results += tile
    return results


def is_subnormal(x: Any) -> bool:
    return bool(0 < abs(x) < np.finfo(x.dtype).tiny)


def flushed(x: Any) -> Any:
    return np.copysign(type(x)(0), x) if is_subnormal(x) else x


def float_sum(flush: bool) -> Combine:
    """Add float scalars, each paired with whether devices may disagree about it because of subnormals."""

    def combine(left: tuple[Any, bool], right: tuple[Any, bool]) -> tuple[Any, bool]:
        (a, met_before), (b, met_beside) = left, right
        met = met_before or met_beside or is_subnormal(a) or is_subnormal(b)
        if flush:
            a, b = flushed(a), flushed(b)
        value = a + b
        met |= is_subnormal(value)
        return flushed(value) if flush else value, met

    return combine


class Factor:
    """A number in a product, and all the numbers that it depends on, itself included: the least magnitude of them."""

    def __init__(self, value: Any, *others: Factor) -> None:
        self.value = value
        self.least = min(abs(value), *(other.least for other in others)) if others else abs(value)

    @staticmethod
    def multiply(a: Factor, b: Factor) -> Factor:
        return Factor(a.value * b.value, a, b)

    @staticmethod
    def fold(a: Factor, b: Factor) -> Factor:
        """Multiply as left folds do: numbers up to the smallest normal one are zeros of their sign."""
        tiny = np.finfo(a.value.dtype).tiny

        def normal(x: Any) -> Any:
            return np.copysign(type(x)(0), x) if abs(x) <= tiny else x

        return Factor(normal(normal(a.value) * normal(b.value)))

    def is_ordinary(self) -> bool:
        return bool(np.isfinite(self.value) and self.least >= 2 * np.finfo(self.value.dtype).tiny)


def scan_slice(
    x: NDArray[Any], operator: str, exclusive: bool, reverse: bool, flush: bool = False
) -> tuple[NDArray[Any], bool]:
    """Scan one slice; also tell whether a combination that a result depends on met a subnormal."""
    met = False
    count = len(x) - exclusive
    backward = -1 if reverse else 1
    with np.errstate(all="ignore"):
        if x.dtype.kind == "f":
            accumulator = np.float64 if x.dtype == np.float64 else np.float32
            numbers = [accumulator(value) for value in x[::backward]]
            if operator == "sum":
                elements = [(number, False) for number in numbers]
                pairs = inclusive(elements, float_sum(flush), lambda pair: bool(np.isfinite(pair[0])))[:count]
                met = any(pair[1] for pair in pairs)
                results = [x.dtype.type(pair[0]) for pair in pairs]
            else:
                factors = [Factor(number) for number in numbers]
                products = inclusive(factors, Factor.multiply, Factor.is_ordinary, Factor.fold)[:count]
                results = [x.dtype.type(factor.value) for factor in products]
        else:
            width, low = 8 * x.itemsize, int(np.iinfo(x.dtype).min)

            def wrapping(a: int, b: int) -> int:
                return ((a + b if operator == "sum" else a * b) - low) % 2**width + low

            results = inclusive([int(value) for value in x[::backward]], wrapping, lambda value: True)[:count]
    if exclusive:
        results.insert(0, 0 if operator == "sum" else 1)
    return np.array(results, x.dtype)[::backward], met


def scan(
    x: NDArray[Any], operator: str, axis: int, exclusive: bool, reverse: bool, flush: bool = False
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Scan every slice along an axis."""
    moved = np.moveaxis(x, axis, -1)
    out, met = np.empty(moved.shape, x.dtype), np.zeros(moved.shape[:-1], np.bool_)
    for place in np.ndindex(moved.shape[:-1]):
        out[place], met[place] = scan_slice(moved[place], operator, exclusive, reverse, flush)
    return np.moveaxis(out, -1, axis), met


def ordinary(dtype: str, operator: str, shape: int | tuple[int, ...], seed: int = 0) -> NDArray[Any]:
    """Return data whose results stay interesting: floats don't overflow, integer products don't end at 0."""
    rng = np.random.default_rng(seed)
    if dtype in INTEGERS:
        limits = np.iinfo(dtype)
        x = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        return x | np.array(1, dtype) if operator == "product" else x
    if operator == "sum":
        return (rng.standard_normal(shape) * 10 ** rng.uniform(-3, 1, shape)).astype(dtype)
    return (np.exp2(rng.uniform(-0.1, 0.1, shape)) * rng.choice([-1, 1], shape)).astype(dtype)
