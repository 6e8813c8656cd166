"""float64 computed on 32-bit words, on every device: IEEE 754's sums and products, and the scans made of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dmlgpu import reference
from dmlgpu.dtypes import by_name
from dmlgpu.layout import Layout
from dmlgpu.planning.plan import EVERYWHERE, plan_problem
from dmlgpu.planning.problem import Operator, scan_problem
from dmlgpu.planning.windows import Limits
from dmlgpu.runtime.device import Device

from .harness import check_scan, numbers, scan

Bits = NDArray[np.uint64]

VARIANTS = list(product(("sum", "product"), (False, True), (False, True)))
UFUNCS = {"sum": np.add, "product": np.multiply}
PATTERNS = (0, 1, 2, 2**30, 0x5555555555555, 2**51 - 1, 2**51, 2**51 + 1, 2**52 - 2, 2**52 - 1)
"""Mantissas: a tie's two sides, sticky bits in each word, and carries through all digits."""


@pytest.fixture
def words(device: Device, monkeypatch: pytest.MonkeyPatch) -> Device:
    """Return the device, made to compute float64 on words even where it has 64-bit floats."""
    monkeypatch.setattr(device, "limits", replace(device.limits, float64=False))
    return device


def bits(sign: Any, field: Any, mantissa: Any) -> Bits:
    """Return all combinations of sign bits, exponent fields and mantissas."""
    parts = np.meshgrid(*(np.atleast_1d(np.asarray(part, np.uint64)) for part in (sign, field, mantissa)))
    return ((parts[0] << np.uint64(63)) | (parts[1] << np.uint64(52)) | parts[2]).reshape(-1)


def every_pair(a: Bits, b: Bits) -> tuple[Bits, Bits]:
    return np.repeat(a, b.size), np.tile(b, a.size)


def without_small(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.abs(x) <= 2.0**-1022, np.copysign(0, x), x)


def check_pairs(device: Device, operator: str, a: Bits, b: Bits) -> NDArray[np.float64]:
    """Assert that every a[i] combined with b[i] has NumPy's bits, and return the results.

    A scan over two elements is one sum or product. In products, numbers up to the smallest normal one are zeros.
    """
    x = np.stack([a, b], axis=-1).view(np.float64)
    with np.errstate(all="ignore"):
        if operator == "sum":
            expected = x[:, 0] + x[:, 1]
        else:
            expected = without_small(without_small(x[:, 0]) * without_small(x[:, 1]))
    result = scan(device, x, operator, 1, kernel="slices")
    assert reference.same_bits(result[:, 0], x[:, 0])
    difference = reference.first_difference(np.ascontiguousarray(result[:, 1]), expected)
    assert difference is None, f"{operator}: {difference}"
    return expected


def test_words_are_chosen_where_the_device_has_no_64_bit_floats() -> None:
    layout = Layout.packed((3, 5000))
    for operator, kernel in product((Operator.SUM, Operator.PRODUCT), EVERYWHERE):
        problem = scan_problem(by_name("float64"), operator, layout, layout, axis=1)
        for native, piece in ((False, "f64_words"), (True, "f64")):
            for one in plan_problem(problem, Limits(float64=native, opaque=True), kernel=kernel).passes:
                assert ("element", piece) in one.pipeline.slots
                assert ("opaque" in dict(one.pipeline.constants)) == native


@pytest.mark.parametrize("operator", UFUNCS)
def test_special_values(words: Device, operator: str) -> None:
    """Zeros, subnormals, infinities and NaN of both signs, each with each."""
    fields = [0, 1, 1022, 1023, 1024, 2045, 2046, 2047]
    values = bits([0, 1], fields, [*PATTERNS, 2**51 + 7])
    results = check_pairs(words, operator, *every_pair(values, values))
    assert np.isnan(results).any()
    assert np.isposinf(results).any()
    assert np.isneginf(results).any()
    assert (np.signbit(results) & (results == 0)).any()


@pytest.mark.parametrize("operator", UFUNCS)
def test_nan_is_always_the_same(words: Device, operator: str) -> None:
    """Of NaN operands no sign and no payload is left, and invalid operations give the same quiet NaN."""
    nans = bits([0, 1], 2047, [1, 2**51, 2**52 - 1])
    a, b = every_pair(np.concatenate([nans, bits([0, 1], [1, 1023], 7)]), nans)
    invalid = {"sum": [np.inf, -np.inf, -np.inf, np.inf], "product": [0.0, -np.inf, np.inf, -0.0]}[operator]
    pairs = np.concatenate(
        [np.stack([a, b], -1), np.stack([b, a], -1), np.array(invalid).view(np.uint64).reshape(2, 2)]
    )
    result = scan(words, pairs.view(np.float64), operator, 1)
    assert (result[:, 1].copy().view(np.uint64) == 0x7FF8000000000000).all()


def test_signs_of_zero(words: Device) -> None:
    values = bits(0, [0, 0, 1, 1023, 2046], PATTERNS)
    negative = values | np.uint64(1 << 63)
    for a, b in ((values, negative), (negative, values)):
        cancelled = check_pairs(words, "sum", a, b)
        assert not np.signbit(cancelled).any(), "x + -x is +0"
        assert not cancelled.any()
    minus_zero = np.array([-0.0]).view(np.uint64)
    assert np.signbit(check_pairs(words, "sum", minus_zero, minus_zero)).all(), "-0 + -0 is -0"


def apart(field: int, distance: int) -> tuple[Bits, Bits]:
    """Return pairs of numbers, bit patterns, whose exponents are so far from each other."""
    return every_pair(bits([0, 1], field, np.array(PATTERNS)), bits([0, 1], field - distance, np.array(PATTERNS)))


@pytest.mark.parametrize("field", [0, 1, 2, 60, 1023, 1100, 2045, 2046])
def test_sums_at_every_distance(words: Device, field: int) -> None:
    """Ties, sticky bits and carries: two numbers from equal exponents to too far apart to matter."""
    for distance in (*range(70), 100, 127, 128, 500, 1024, 2046):
        if distance > field:
            break
        a, b = apart(field, distance)
        assert check_pairs(words, "sum", np.concatenate([a, b]), np.concatenate([b, a])).size == 8 * len(PATTERNS) ** 2


def test_cancellation_at_every_exponent(words: Device) -> None:
    """Neighbours, whose difference is exact and near the bottom of the range subnormal or zero."""
    a = bits(0, np.arange(2046), [0, 1, 2, 0x5555555555555, 2**52 - 2, 2**52 - 1])
    for steps in (0, 1, 2, 3, 1023, 2**51 + 1):
        b = (a + np.uint64(steps)) | np.uint64(1 << 63)
        difference = check_pairs(words, "sum", a, b)
        check_pairs(words, "sum", b, a)
        assert (difference <= 0).all()


def test_products_near_both_ends_of_the_range(words: Device) -> None:
    """Down to the smallest normal number and below, and overflow."""
    mantissas = np.array(PATTERNS)
    for total in (*range(1023 - 56, 1023 + 3), 1023 + 2045, 1023 + 2046, 1023 + 2047):
        for field in (1, 2, 300, 1023):
            other = total - field
            if 0 <= other <= 2046:
                a, b = every_pair(bits([0, 1], field, mantissas), bits(0, other, mantissas))
                assert check_pairs(words, "product", a, b).size == 2 * len(PATTERNS) ** 2


def halfway() -> NDArray[np.float64]:
    """Return pairs whose products are multiples of half the least number and of parts of it."""
    factors = np.ldexp(np.arange(1.0, 130.0), -540).view(np.uint64)
    return np.stack(every_pair(factors, factors), axis=1).view(np.float64)


def test_products_of_the_smallest_numbers(words: Device) -> None:
    """i * 2^-1074 * 2^-k for all small i, and what is as small but for its factors."""
    subnormals = np.arange(520, dtype=np.uint64)
    powers = np.ldexp(1.0, -np.arange(1, 12)).view(np.uint64)
    assert not check_pairs(words, "product", *every_pair(subnormals, powers)).any()
    assert not check_pairs(words, "product", *halfway().view(np.uint64).T).any()


def test_products_of_subnormals_at_every_exponent(words: Device) -> None:
    """From one digit to 52, by numbers of any size: they are zeros."""
    subnormals = np.concatenate(
        [[np.uint64(1) << np.uint64(k), (np.uint64(2) << np.uint64(k)) - np.uint64(1)] for k in range(52)]
    ).astype(np.uint64)
    for pattern in PATTERNS:
        results = check_pairs(words, "product", *every_pair(subnormals, bits([0, 1], np.arange(0, 2047, 3), pattern)))
        assert not results.any()


@pytest.mark.parametrize("operator", UFUNCS)
def test_two_million_random_pairs(words: Device, operator: str) -> None:
    """Any bits, and exponents drawn so that the terms meet, or the product is near the ends of the range."""
    rng = np.random.default_rng(7)
    count = 2**20
    a, b = rng.integers(0, 2**64, (2, count), np.uint64)
    check_pairs(words, operator, a, b)
    field = ((a >> np.uint64(52)) & np.uint64(2047)).astype(np.int64)
    if operator == "sum":
        wanted = field + rng.integers(-60, 61, count)
    else:
        wanted = np.where(rng.random(count) < 0.7, rng.integers(-60, 10, count), rng.integers(2040, 2050, count))
        wanted += 1023 - field
    fields = np.clip(wanted, 0, 2046).astype(np.uint64)
    close = (b & ~np.uint64(2047 << 52)) | (fields << np.uint64(52))
    results = check_pairs(words, operator, a, close)
    assert np.isinf(results).any()
    assert (np.abs(results) < 2.0**-1022).any()


@pytest.mark.parametrize("kernel", EVERYWHERE)
@pytest.mark.parametrize("length", [1, 15, 16, 17, 255, 256, 257, 4095, 4096, 4097])
def test_scans(words: Device, kernel: str, length: int) -> None:
    for operator, exclusive, reverse in VARIANTS:
        x = numbers((2, length), np.float64, operator)
        check_scan(words, x, operator, 1, exclusive=exclusive, reverse=reverse, kernel=kernel)


@pytest.mark.parametrize("kernel", EVERYWHERE)
@pytest.mark.parametrize("length", [65_535, 65_536, 65_537, 300_007])
def test_long_scans(words: Device, kernel: str, length: int) -> None:
    for operator, exclusive, reverse in (("sum", False, False), ("product", True, True)):
        x = numbers((length,), np.float64, operator)
        check_scan(words, x, operator, 0, exclusive=exclusive, reverse=reverse, kernel=kernel)


def test_windows_and_strides(words: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "limits", replace(words.limits, binding_bytes=600_000))
    check_scan(words, numbers((2, 150_001), np.float64), "sum", 1)
    check_scan(words, numbers((70_001, 3), np.float64, "product"), "product", 0, exclusive=True, reverse=True)
    layout = Layout((3, 9000), (9005, 1), 2)
    check_scan(words, numbers((3, 9000), np.float64), "sum", 1, source=layout, target=layout)


@pytest.mark.parametrize("kernel", EVERYWHERE)
def test_scans_of_special_values(words: Device, kernel: str) -> None:
    """Sums keep subnormals on every device: no rule for floats applies to integers."""
    rng = np.random.default_rng(5)
    specials = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.7e308, -1.7e308, 1.0, 2.0**-1074, -(2.0**-1023)])
    for operator, frequency in product(UFUNCS, (0.001, 0.5)):
        x = numbers((4, 5000), np.float64, operator)
        where = rng.random(x.shape) < frequency
        x[where] = rng.choice(specials, where.sum())
        check_scan(words, x, operator, 1, kernel=kernel)
        check_scan(words, x, operator, 1, exclusive=True, reverse=True, kernel=kernel)
    tiny = rng.integers(0, 2**52, (3, 5000), np.uint64).view(np.float64)
    check_scan(words, tiny, "sum", 1, kernel=kernel)
    check_scan(words, np.where(rng.random(tiny.shape) < 0.01, tiny, 1.5), "product", 1, kernel=kernel)
    assert (scan(words, tiny[:, :2], "sum", 1, kernel=kernel)[:, 1] > 0).all()


def test_minus_zero_survives(words: Device) -> None:
    zeros = np.full((2, 5000), -0.0)
    for kernel in EVERYWHERE:
        assert np.signbit(scan(words, zeros, "sum", 1, kernel=kernel)).all()


def test_the_device_s_own_floats_give_the_same_bits(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it has none both are computed on words, and compared with the reference all the same."""
    cases = [(numbers((3, 70_000), np.float64, operator), operator) for operator in UFUNCS]
    chosen = [scan(device, x, operator, 1) for x, operator in cases]
    monkeypatch.setattr(device, "limits", replace(device.limits, float64=False))
    for (x, operator), result in zip(cases, chosen, strict=True):
        assert reference.same_bits(scan(device, x, operator, 1), result)
        assert reference.same_bits(reference.cumulative(x, operator, axis=1), result)
