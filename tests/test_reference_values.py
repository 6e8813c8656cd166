"""The reference's conversions and comparisons, and its notice of subnormal numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dmlgpu import reference

from . import reference_slow as slow

# Conversions


def value_as_integer(value: float, dtype: str) -> int:
    limits = np.iinfo(dtype)
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return int(limits.max) if value > 0 else int(limits.min)
    return min(max(math.trunc(value), int(limits.min)), int(limits.max))


@pytest.mark.parametrize("target", slow.DTYPES)
@pytest.mark.parametrize("source", slow.DTYPES)
def test_in_range_as_astype(source: str, target: str) -> None:
    x = slow.ordinary(source, "sum", (50, 60))
    if source in slow.FLOATS and target in slow.INTEGERS:
        span = min(float(np.iinfo(target).max), 30_000) * 0.99
        low = 0 if target.startswith("u") else -span
        x = np.random.default_rng(0).uniform(low, span, (50, 60)).astype(source)
    with np.errstate(over="ignore"):
        want = x.astype(target)
    got = reference.convert(x, target)
    assert reference.first_difference(got, want) is None
    assert not np.shares_memory(got, x)


@pytest.mark.parametrize("target", slow.INTEGERS)
@pytest.mark.parametrize("source", slow.FLOATS)
def test_out_of_range_saturates(source: str, target: str) -> None:
    values = [math.nan, -math.nan, math.inf, -math.inf, 0.0, -0.0, 0.99, -0.99, -1.0, -1.5]
    for power in (7, 8, 15, 16, 31, 32, 63, 64, 100):
        values += [2.0**power + off for off in (-1.5, -1, -0.5, 0, 0.5, 1)]
        values += [math.nextafter(2.0**power, 0), float(np.nextafter(np.float32(2.0**power), np.float32(0)))]
    values += [float(np.finfo(source).max), float(np.finfo(source).tiny)]
    with np.errstate(over="ignore"):
        x = np.array([*values, *(-value for value in values)]).astype(source)
    want = np.array([value_as_integer(float(value), target) for value in x], target)
    got = reference.convert(x, target)
    assert got.dtype == target
    assert np.array_equal(got, want)


@pytest.mark.parametrize("target", slow.INTEGERS)
@pytest.mark.parametrize("source", slow.INTEGERS)
def test_integers_wrap(source: str, target: str) -> None:
    limits = np.iinfo(source)
    x = np.array([limits.min, limits.min + 1, 0, 1, 127, limits.max // 2, limits.max - 1, limits.max], source)
    low, modulus = int(np.iinfo(target).min), 2 ** (8 * np.dtype(target).itemsize)
    want = [(int(value) - low) % modulus + low for value in x]
    assert reference.convert(x, target).tolist() == want


def test_floats_to_smaller_floats() -> None:
    x = np.array([1e300, -1e300, 65519.9, 65520.0, 2.0**-25, 2.0**-25 * 1.01, math.nan, -0.0])
    want = [math.inf, -math.inf, 65504.0, math.inf, 0.0, 2.0**-24, math.nan, -0.0]
    assert reference.same_bits(reference.convert(x, "float16"), np.array(want, np.float16))
    assert reference.convert(x[:2], "float32").tolist() == [math.inf, -math.inf]


@pytest.mark.parametrize("target", slow.DTYPES)
def test_bool_is_one_for_any_nonzero_byte(target: str) -> None:
    x = np.array([0, 1, 2, 128, 255], np.uint8).view(np.bool_)
    got = reference.convert(x, target)
    assert got.dtype == target
    assert got.tolist() == [0, 1, 1, 1, 1]


@pytest.mark.parametrize("target", ["int16", "float16"])
def test_convert_shapes(target: str) -> None:
    base = np.arange(24, dtype=np.float32).reshape(2, 3, 4) * 1e4
    for x in (base[..., 0:2], base.T, base[:0], base[0, 0, 1], np.array(1e9, np.float32)):
        got = reference.convert(np.asarray(x), target)
        want = np.clip(x, -32768, 32767) if target == "int16" else np.where(x < 65520, x, np.inf)
        assert got.shape == x.shape
        assert np.array_equal(got, np.asarray(want).astype(target))


def test_convert_bad_types() -> None:
    x = np.ones(3, np.float32)
    for target in (np.bool_, np.complex64, np.object_):
        with pytest.raises(TypeError, match="no conversion to"):
            reference.convert(x, target)
    with pytest.raises(TypeError, match="complex"):
        reference.convert(x.astype(np.complex64), "float32")


@pytest.mark.parametrize("dtype", slow.DTYPES)
def test_identity(dtype: str) -> None:
    for operator, value in (("sum", 0), ("product", 1)):
        got = reference.identity(operator, dtype)
        assert type(got) is np.dtype(dtype).type
        assert got == value
        assert not np.signbit(np.float64(got))
    with pytest.raises(ValueError, match="max"):
        reference.identity("max", dtype)


# Comparisons


@pytest.mark.parametrize("dtype", [*slow.DTYPES, "bool"])
def test_same_bits(dtype: str) -> None:
    x = np.arange(6).reshape(2, 3).astype(dtype)
    y = x.copy()
    assert reference.same_bits(x, y)
    assert reference.same_bits(x.T, y.T)
    assert reference.same_bits(x[:, ::-2], y[:, ::-2])
    y[1, 2] = 0
    assert not reference.same_bits(x, y)
    assert not reference.same_bits(x, x.reshape(3, 2))
    assert not reference.same_bits(x, x.reshape(-1))
    assert not reference.same_bits(x, x.astype("int64" if dtype != "int64" else "uint64"))
    assert reference.same_bits(x[:0], y[:0])
    assert reference.same_bits(x[0, 0], y[0, 0])


@pytest.mark.parametrize("dtype", slow.FLOATS)
def test_same_bits_of_special_values(dtype: str) -> None:
    nan, zero = np.array([math.nan], dtype), np.zeros(1, dtype)
    other_nan = (nan.view(f"u{nan.itemsize}") | 1).view(dtype)
    assert other_nan.tobytes() != nan.tobytes()
    assert reference.same_bits(nan, other_nan)
    assert reference.same_bits(nan, np.negative(nan))
    assert not reference.same_bits(zero, -zero)
    assert not reference.same_bits(zero, nan)
    assert not reference.same_bits(np.array([math.inf], dtype), nan)


def test_first_difference_is_one_readable_line() -> None:
    x = np.ones((2, 3), np.float32)
    y = x.copy()
    assert reference.first_difference(x, y) is None
    y[1, 1], y[1, 2] = np.nextafter(np.float32(1), np.float32(2)), 5
    line = reference.first_difference(x, y)
    assert line == "[1, 1]: 1.0 (0x3f800000) against 1.0000001 (0x3f800001); 2 of 6 differ"
    line = reference.first_difference(np.array(-0.0, np.float16), np.array(0.0, np.float16))
    assert line == "[]: -0.0 (0x8000) against 0.0 (0x0000); 1 of 1 differ"
    line = reference.first_difference(np.array([1, -1], np.int8), np.array([1, 1], np.int8))
    assert line == "[1]: -1 (0xff) against 1 (0x01); 1 of 2 differ"
    line = reference.first_difference(x, x[0])
    assert line == "float32 of shape (2, 3) against float32 of shape (3,)"
    line = reference.first_difference(x, x.astype(np.float64))
    assert line == "float32 of shape (2, 3) against float64 of shape (2, 3)"


def test_first_difference_follows_index_order_in_any_layout() -> None:
    x = np.zeros((3, 4), np.int32)
    y = x.copy()
    y[2, 0] = y[0, 3] = 7
    for a, b in ((x, y), (np.asfortranarray(x), y), (x, np.asfortranarray(y))):
        line = reference.first_difference(a, b)
        assert line is not None
        assert line.startswith("[0, 3]: 0 ")


# Subnormal numbers

TINY = float(np.finfo(np.float32).tiny)


@pytest.mark.parametrize(
    ("operator", "values", "met"),
    [
        ("sum", [TINY / 2], False),  # merely copied
        ("sum", [TINY / 2, 1], True),
        ("sum", [1, -TINY / 2], True),
        ("sum", [TINY * 1.5, -TINY], True),
        ("sum", [TINY, -TINY, 0, -0.0], False),
        ("sum", [math.nan, TINY / 2], True),
        ("product", [TINY, 0.5, 2], False),  # products are the same on all devices
        ("product", [TINY * 1.5, 1 / 1.5], False),
        ("product", [1, 2, 3, math.inf], False),
    ],
)
def test_meets_subnormals(operator: str, values: list[float], met: bool) -> None:
    x = np.array(values, np.float32)
    got = reference.meets_subnormals(x, operator, axis=0)
    assert (got.shape, got.dtype) == ((), np.bool_)
    assert bool(got) is met
    assert bool(reference.meets_subnormals(x[::-1], operator, axis=0, reverse=True)) is met


@pytest.mark.parametrize("n", [2, 16, 17, 256, 257, 4097, 65537])
def test_an_exclusive_scan_leaves_the_last_element_out(n: int) -> None:
    x = np.ones((2, n), np.float32)
    x[1, -1] = TINY / 2
    for reverse, y in ((False, x), (True, x[:, ::-1])):
        met = [
            reference.meets_subnormals(y, "sum", axis=1, exclusive=exclusive, reverse=reverse).tolist()
            for exclusive in (False, True)
        ]
        assert met == [[False, True], [False, False]]


@pytest.mark.parametrize("n", [16, 32, 256, 4096, 65536])
def test_totals_carried_nowhere_do_not_count(n: int) -> None:
    """The last run's total alone would make a subnormal with what follows it in no output."""
    x = np.zeros((1, n + 1), np.float32)
    x[0, n] = TINY / 2  # first in its run, block, tile or span, and the end of the slice
    x[0, 0] = -0.0
    assert reference.meets_subnormals(x, "sum", axis=1).tolist() == [True]  # 0 + it is an output
    assert reference.meets_subnormals(x[:, n:], "sum", axis=1).tolist() == [False]
    assert reference.meets_subnormals(x[:, :n], "sum", axis=1).tolist() == [False]


def test_meets_subnormals_by_slice_of_any_axis() -> None:
    x = np.ones((3, 70_000, 2), np.float32)
    x[1, 69_999, 0] = TINY / 2
    x[2, 5, 1] = -TINY / 2
    want = np.zeros((3, 2), np.bool_)
    want[1, 0] = want[2, 1] = True
    assert np.array_equal(reference.meets_subnormals(x, "sum", axis=1), want)
    assert np.array_equal(reference.meets_subnormals(x.transpose(1, 0, 2), "sum", axis=-3), want)


@pytest.mark.parametrize("dtype", ["float16", *slow.INTEGERS])
def test_types_without_subnormal_accumulators(dtype: str) -> None:
    x = np.array([[1, 0, 2, 1]], dtype)
    if dtype == "float16":
        x *= np.float16(2.0**-24)
    for operator in slow.OPERATORS:
        assert reference.meets_subnormals(x, operator, axis=1).tolist() == [False]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_unmet_slices_agree_with_and_without_flushing(dtype: str) -> None:
    rng = np.random.default_rng(4)
    low = int(np.log2(float(np.finfo(dtype).tiny)))
    exponents = rng.uniform(low, low + 4, (500, 40))
    x: Any = (np.exp2(exponents) * rng.choice([-1, 1], exponents.shape)).astype(dtype)
    x[::2] *= 2.0**24
    met = reference.meets_subnormals(x, "sum", axis=1)
    assert 50 < met.sum() < 450
    kept, flushed = (reference.cumulative(x, "sum", axis=1, flush=flush) for flush in (False, True))
    assert reference.same_bits(kept[~met], flushed[~met])
    assert not reference.same_bits(kept[met], flushed[met])
