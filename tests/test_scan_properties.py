"""Random scans and roundings at random layouts against the reference, bit for bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dmlgpu import dtypes, reference
from dmlgpu.layout import Layout
from dmlgpu.planning.plan import KERNELS
from dmlgpu.runtime.device import Device

from .harness import MODES, check_scan, round_on

FLOAT_SPECIALS = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.0, 0.5]


@st.composite
def shapes(draw: st.DrawFn) -> tuple[int, ...]:
    """Draw 1 to 8 sizes with one that may be long."""
    rank = draw(st.integers(1, 8))
    sizes = [draw(st.integers(1, 3)) for _ in range(rank)]
    sizes[draw(st.integers(0, rank - 1))] = draw(st.sampled_from([1, 5, 16, 17, 40, 256, 257, 300, 4097, 9000]))
    return tuple(sizes)


@st.composite
def layouts(draw: st.DrawFn, sizes: tuple[int, ...], *, broadcast: bool) -> Layout:
    """Draw strides in any order of the dimensions, with padding, reversal and, for inputs, broadcasting."""
    strides = [0] * len(sizes)
    step, low = 1, 0
    for dimension in draw(st.permutations(range(len(sizes)))):
        if broadcast and draw(st.integers(0, 5)) == 0:
            continue
        strides[dimension] = step
        step = step * sizes[dimension] + draw(st.integers(0, 2))
        if draw(st.booleans()):
            low += (sizes[dimension] - 1) * strides[dimension]
            strides[dimension] *= -1
    return Layout(sizes, tuple(strides), low + draw(st.integers(0, 9)))


def values(layout: Layout, dtype: np.dtype[Any], operator: str, seed: int, special: bool) -> NDArray[Any]:
    """Return elements that are the same wherever the layout makes them share memory."""
    rng = np.random.default_rng(seed)
    shape = tuple(1 if stride == 0 else size for size, stride in zip(layout.sizes, layout.strides, strict=True))
    if dtype.kind != "f":
        info = np.iinfo(dtype)
        drawn = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        if special:
            drawn = rng.choice(np.array([info.min, info.max, 0, 1], dtype), shape)
        return np.broadcast_to(drawn, layout.sizes)
    drawn = rng.standard_normal(shape)
    if operator == "product":
        drawn = np.exp2(drawn / 64) * rng.choice([-1.0, 1.0], shape)
    drawn = drawn.astype(dtype)
    if special:
        extremes = [np.finfo(dtype).max, np.finfo(dtype).min, np.finfo(dtype).smallest_normal]
        where = rng.random(shape) < rng.choice([0.01, 0.5])
        drawn[where] = rng.choice(np.array(FLOAT_SPECIALS + extremes, dtype), int(where.sum()))
    return np.broadcast_to(drawn, layout.sizes)


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_any_scan(device: Device, data: st.DataObject) -> None:
    sizes = data.draw(shapes())
    element = data.draw(st.sampled_from(dtypes.ELEMENT_TYPES))
    operator = data.draw(st.sampled_from(["sum", "product"]))
    in_place = data.draw(st.booleans())
    source = data.draw(layouts(sizes, broadcast=not in_place))
    target = source if in_place else data.draw(layouts(sizes, broadcast=False))
    x = values(source, element.dtype, operator, data.draw(st.integers(0, 2**32)), data.draw(st.booleans()))
    axis = data.draw(st.integers(-len(sizes), len(sizes) - 1))
    # A workgroup for each of a million slices takes minutes, and more scratch memory than a binding holds.
    kernels = KERNELS if math.prod(sizes) // max(sizes[axis], 1) <= 300 else ("slices",)
    check_scan(
        device,
        x,
        operator,
        axis,
        exclusive=data.draw(st.booleans()),
        reverse=data.draw(st.booleans()),
        source=source,
        target=target,
        kernel=data.draw(st.sampled_from([None, *kernels])),
    )


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_any_rounding(device: Device, data: st.DataObject) -> None:
    sizes = data.draw(shapes())
    dtype = np.dtype(data.draw(st.sampled_from(["float16", "float32", "float64"])))
    in_place = data.draw(st.booleans())
    source = data.draw(layouts(sizes, broadcast=not in_place))
    target = source if in_place else data.draw(layouts(sizes, broadcast=False))
    scale = data.draw(st.sampled_from([1, 4, 1000]))
    x = values(source, dtype, "sum", data.draw(st.integers(0, 2**32)), data.draw(st.booleans()))
    with np.errstate(over="ignore"):
        x = x * dtype.type(scale)
    mode = data.draw(st.sampled_from(sorted(MODES)))
    result = round_on(device, x, mode, source=source, target=target)
    assert reference.first_difference(result, reference.round(x, mode)) is None
