"""A slice's bits depend on its elements, the operator and the direction, and on nothing else.

Each test computes the same slices in two ways or more and compares the results with each other, bit for bit; that they
are also the reference's is what the tests of the kernels show. Random layouts against the reference are in
test_scan_properties.py, workgroups that stop in the middle of a look-back in test_exceptional.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dmlgpu import dtypes, reference
from dmlgpu.layout import Layout
from dmlgpu.planning.plan import KERNELS
from dmlgpu.runtime.device import Device

from .harness import numbers, scan

WAYS = (None, *KERNELS)
LENGTHS = [1, 15, 17, 255, 257, 300, 4095, 4097, 9000, 13_000]
SPECIALS = [np.nan, np.inf, -np.inf, 0.0, -0.0]


def data(dtype: Any, shape: tuple[int, ...], operator: str, seed: int, special: bool) -> NDArray[Any]:
    """Return elements; with `special` among floats, now and then, NaN, infinities, zeros and what overflows."""
    x = numbers(shape, dtype, operator, seed)
    if special and x.dtype.kind == "f":
        rng = np.random.default_rng(seed)
        largest = np.finfo(x.dtype).max
        where = rng.random(shape) < 0.002
        x[where] = rng.choice(np.array([*SPECIALS, largest, -largest, 2.0], x.dtype), int(where.sum()))
    return x


@st.composite
def scans(draw: st.DrawFn, lengths: list[int] = LENGTHS) -> tuple[NDArray[Any], str, dict[str, bool]]:
    """Draw a few slices as rows, an operator and whether the scan is exclusive, reverse and compensated."""
    dtype = draw(st.sampled_from(dtypes.ELEMENT_TYPES)).dtype
    operator = draw(st.sampled_from(["sum", "product"]))
    length = draw(st.sampled_from(lengths))
    shape = draw(st.integers(1, 5 if length <= max(LENGTHS) else 2)), length
    x = data(dtype, shape, operator, draw(st.integers(0, 2**32)), draw(st.booleans()))
    order = {"exclusive": draw(st.booleans()), "reverse": draw(st.booleans())}
    if dtype == np.float32 and operator == "sum":
        order["compensated"] = draw(st.booleans())
    return x, operator, order


def same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return reference.first_difference(np.ascontiguousarray(one), np.ascontiguousarray(other)) is None


@pytest.mark.parametrize(("dtype", "kernel"), [("uint8", None), *(("float32", kernel) for kernel in WAYS)])
def test_batch_alone_or_among_ten_thousand_at_any_position(device: Device, dtype: str, kernel: str | None) -> None:
    among = numbers((10_001, 300), dtype)
    alone = numbers((300,), dtype, seed=1)
    positions = [0, 1, 63, 64, 5000, 10_000]
    among[positions] = alone
    expected = scan(device, alone, "sum", 0, kernel=kernel)
    result = scan(device, among, "sum", 1, kernel=kernel)
    assert all(same(result[position], expected) for position in positions)
    if kernel in (None, "slices"):  # the others take a workgroup a slice either way
        side_by_side = scan(device, np.ascontiguousarray(among.T), "sum", 0, kernel=kernel)
        assert same(side_by_side.T, result)


@settings(deadline=None, max_examples=15)
@given(case=scans(), kernel=st.sampled_from(WAYS), others=st.integers(1, 40), seed=st.integers(0, 2**32))
def test_batch_of_any_others(
    device: Device, case: tuple[NDArray[Any], str, dict[str, bool]], kernel: str | None, others: int, seed: int
) -> None:
    x, operator, order = case
    rng = np.random.default_rng(seed)
    among = data(x.dtype, (others + 1, x.shape[1]), operator, seed, True)
    position = int(rng.integers(others + 1))
    among[position] = x[0]
    alone = scan(device, x[0], operator, 0, kernel=kernel, **order)
    assert same(scan(device, among, operator, 1, kernel=kernel, **order)[position], alone)


@settings(deadline=None, max_examples=10)
@given(case=scans(), kernel=st.sampled_from(WAYS), drawn=st.data())
def test_layout_axis_at_any_place_in_any_memory(
    device: Device, case: tuple[NDArray[Any], str, dict[str, bool]], kernel: str | None, drawn: st.DataObject
) -> None:
    """The axis first, in the middle, last; transposed, padded, reversed, offset, broadcast; packed is the measure."""
    rows, operator, order = case
    expected = scan(device, rows, operator, 1, kernel=kernel, **order)
    axis = drawn.draw(st.integers(0, 2))
    copies = drawn.draw(st.integers(1, 3))
    shape = [rows.shape[0], copies]
    shape.insert(axis, rows.shape[1])
    moved = np.moveaxis(np.broadcast_to(rows[:, None, :], (rows.shape[0], copies, rows.shape[1])), 2, axis)
    strides, step, low = [0, 0, 0], 1, drawn.draw(st.integers(0, 300))
    repeated = 1 if axis == 2 else 2  # the dimension of the copies, along which the input may be broadcast
    broadcast = drawn.draw(st.booleans())
    for dimension in drawn.draw(st.permutations(range(3))):
        if broadcast and dimension == repeated:
            continue
        strides[dimension] = step
        step = step * shape[dimension] + drawn.draw(st.integers(0, 9))
        if drawn.draw(st.booleans()):
            low += (shape[dimension] - 1) * strides[dimension]
            strides[dimension] *= -1
    result = scan(
        device, moved, operator, axis, source=Layout(tuple(shape), tuple(strides), low), kernel=kernel, **order
    )
    for copy in range(copies):
        assert same(np.moveaxis(result, axis, 2)[:, copy], expected)


@settings(deadline=None, max_examples=15)
@given(case=scans(), kernel=st.sampled_from(WAYS))
def test_direction_reverse_of_the_reversed(
    device: Device, case: tuple[NDArray[Any], str, dict[str, bool]], kernel: str | None
) -> None:
    x, operator, order = case
    expected = scan(device, x, operator, 1, kernel=kernel, **order)
    opposite = {**order, "reverse": not order["reverse"]}
    flipped = np.ascontiguousarray(x[:, ::-1])
    assert same(scan(device, flipped, operator, 1, kernel=kernel, **opposite)[:, ::-1], expected)
    backwards = Layout(x.shape, (x.shape[1], -1), x.shape[1] - 1)
    result = scan(device, flipped, operator, 1, source=backwards, target=backwards, kernel=kernel, **opposite)
    assert same(result[:, ::-1], expected)


@settings(deadline=None, max_examples=10)
@given(case=scans([*LENGTHS, 66_000, 140_000]), across=st.booleans())
def test_kernel_every_one_forced_in_turn(
    device: Device, case: tuple[NDArray[Any], str, dict[str, bool]], across: bool
) -> None:
    x, operator, order = case
    x = np.ascontiguousarray(x.T) if across else x
    expected = scan(device, x, operator, 0 if across else 1, **order)
    for kernel in KERNELS:
        assert same(scan(device, x, operator, 0 if across else 1, kernel=kernel, **order), expected), kernel


@pytest.mark.parametrize("kernel", WAYS)
def test_repetition_a_hundred_times(device: Device, kernel: str | None) -> None:
    x = data("float32", (3, 20_000), "sum", 5, False)
    x[1] = data("float32", x[1].shape, "sum", 6, True)
    first = scan(device, x, "sum", 1, kernel=kernel)
    for _ in range(99):
        assert same(scan(device, x, "sum", 1, kernel=kernel), first)


@settings(deadline=None, max_examples=30)
@given(
    case=scans([17, 300, 4097, 9000, 70_000]),
    kernel=st.sampled_from(WAYS),
    across=st.booleans(),
    in_place=st.booleans(),
    binding=st.sampled_from([1024, 4096, 20_000, 70_000, 300_000]),
)
def test_windows_of_any_size(
    device: Device,
    case: tuple[NDArray[Any], str, dict[str, bool]],
    kernel: str | None,
    across: bool,
    in_place: bool,
    binding: int,
) -> None:
    """With the limit lowered, so that small tensors are cut as large ones are on a device."""
    x, operator, order = case
    x = np.ascontiguousarray(x.T) if across else x
    axis = 0 if across else 1
    place = Layout.packed(x.shape)
    expected = scan(device, x, operator, axis, kernel=kernel, **order)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device, "limits", replace(device.limits, binding_bytes=binding))
        result = scan(
            device,
            x,
            operator,
            axis,
            source=place,
            target=place if in_place else Layout.packed(x.shape),
            kernel=kernel,
            **order,
        )
    assert same(result, expected)
