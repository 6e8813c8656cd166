"""Random views, made alike from anything that is indexed, transposed and reshaped as NumPy arrays are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import basic_indices

View = Callable[[Any], Any]


def _factors(count: int) -> list[int]:
    found, divisor = [], 2
    while count > 1:
        while count % divisor == 0:
            found.append(divisor)
            count //= divisor
        divisor += 1
    return found


@st.composite
def reshapes(draw: st.DrawFn, count: int, most: int = 6) -> tuple[int, ...]:
    """Draw a shape of `count` elements, with -1 for one of its sizes now and then."""
    if count == 0:
        sizes = [0, *draw(st.lists(st.integers(0, 3), max_size=most - 1))]
        return tuple(draw(st.permutations(sizes)))
    sizes = [1] * draw(st.integers(0 if count == 1 else 1, most))
    for factor in draw(st.permutations(_factors(count))):
        sizes[draw(st.integers(0, len(sizes) - 1))] *= factor
    if sizes and draw(st.booleans()):
        sizes[draw(st.integers(0, len(sizes) - 1))] = -1
    return tuple(sizes)


@st.composite
def view_steps(draw: st.DrawFn, shape: tuple[int, ...], most: int = 4, broadcast: bool = True) -> list[View]:
    """Draw up to `most` view operations that can follow one another from `shape` on; reshapes may copy."""
    shadow = np.empty(shape, np.int8)
    steps: list[View] = []
    for _ in range(draw(st.integers(0, most))):
        step = draw(_steps(shadow.shape, broadcast and shadow.size < 2000))
        after = step(shadow)
        if after.ndim <= 8:
            shadow = after
            steps.append(step)
    return steps


@st.composite
def _steps(draw: st.DrawFn, shape: tuple[int, ...], broadcast: bool) -> View:
    kind = draw(st.sampled_from(["index", "transpose", "reshape", "broadcast"]))
    if kind == "transpose":
        axes = draw(st.permutations(range(len(shape))))
        return lambda x: x.transpose(tuple(axes))
    if kind == "reshape":
        sizes = draw(reshapes(math.prod(shape)))
        return lambda x: x.reshape(sizes)
    if kind == "broadcast" and broadcast:
        grown = [draw(st.integers(0, 3)) if size == 1 else size for size in shape]
        target = (*draw(st.lists(st.integers(1, 3), max_size=2)), *grown)
        return lambda x: x.broadcast_to(target) if hasattr(x, "broadcast_to") else np.broadcast_to(x, target)
    key = draw(basic_indices(shape, allow_newaxis=len(shape) < 8, allow_ellipsis=True))
    # A 0-d result must stay an array on NumPy's side.
    return lambda x: x[(*(key if isinstance(key, tuple) else (key,)), *(() if _has_ellipsis(key) else (...,)))]


def _has_ellipsis(key: Any) -> bool:
    return any(item is Ellipsis for item in (key if isinstance(key, tuple) else (key,)))
