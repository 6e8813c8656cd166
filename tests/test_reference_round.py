"""The reference's rounding modes: against the table of corners, exact fractions and NumPy's own functions."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dmlgpu import reference

MODES = ("half_even", "toward_zero", "half_away")
COLUMNS = {"half_even": "even", "toward_zero": "zero", "half_away": "inf"}
CASES = json.loads((Path(__file__).parent / "data" / "rounding_cases.json").read_text())


def expected(x: NDArray[Any], mode: str) -> NDArray[Any]:
    """Round by NumPy's functions; the difference to the truncated number is exact."""
    if mode == "half_even":
        return np.rint(x)
    whole = np.trunc(x)
    if mode == "toward_zero":
        return whole
    with np.errstate(invalid="ignore"):
        up = np.abs(x - whole) >= 0.5
    return np.where(up, whole + np.copysign(x.dtype.type(1), x), whole)


def check(x: NDArray[Any]) -> None:
    for mode in MODES:
        got = reference.round(x, mode)
        assert reference.first_difference(got, expected(x, mode)) is None, mode


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("dtype", "count"), [("float32", 52), ("float16", 35)])
def test_table(dtype: str, count: int, mode: str) -> None:
    cases = CASES[dtype]
    assert len(cases) == count
    patterns = "u4" if dtype == "float32" else "u2"
    x = np.array([int(case["input_bits"], 16) for case in cases], patterns).view(dtype)
    want = np.array([int(case[COLUMNS[mode]], 16) for case in cases], patterns).view(dtype)
    assert reference.first_difference(reference.round(x, mode), want) is None


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_official_table(dtype: str) -> None:
    x = np.array([-2.5, -1.75, -1.5, -1.25, 0, 1.25, 1.5, 1.75, 2.5], dtype)
    assert reference.round(x, "half_even").tolist() == [-2, -2, -2, -1, 0, 1, 2, 2, 2]
    assert reference.round(x, "toward_zero").tolist() == [-2, -1, -1, -1, 0, 1, 1, 1, 2]
    assert reference.round(x, "half_away").tolist() == [-3, -2, -2, -1, 0, 1, 2, 2, 3]


@pytest.mark.parametrize("mode", MODES)
def test_every_float16(mode: str) -> None:
    """Against exact fractions: Python's own round is half to even, its trunc goes toward zero."""
    bits = np.arange(65536, dtype=np.uint16)
    x = bits.view(np.float16)
    exact: dict[str, Callable[[Fraction], int]] = {
        "half_even": round,
        "toward_zero": math.trunc,
        "half_away": lambda value: math.floor(value + Fraction(1, 2)),
    }
    want = bits.copy()
    for i in range(0x7C00):  # the finite numbers without sign; all others stay
        want[i] = np.float16(exact[mode](Fraction(float(x[i])))).view(np.uint16)
    want[0x8000:0xFC00] = want[:0x7C00] | 0x8000
    assert np.array_equal(reference.round(x, mode).view(np.uint16), want)


def test_float32_sample() -> None:
    bits = np.arange(0, 2**32, 2003, dtype=np.uint32)
    x = bits.view(np.float32)
    x = x[~np.isnan(x)]
    assert x.size > 2_000_000
    check(x)


@pytest.mark.parametrize(("dtype", "bits"), [("float16", 9), ("float32", 22), ("float64", 51)])
def test_around_halves(dtype: str, bits: int) -> None:
    last_fraction = 2.0**bits
    rng = np.random.default_rng(0)
    whole = np.unique(np.floor(np.exp2(rng.uniform(0, np.log2(4 * last_fraction), 20_000))))
    whole = np.concatenate([np.arange(1024.0), whole, last_fraction * np.array([1, 2, 4])]).astype(dtype)
    half = whole + whole.dtype.type(0.5)
    points = np.concatenate([whole, half])
    infinity = points.dtype.type(np.inf)
    x = np.concatenate([points, np.nextafter(points, infinity), np.nextafter(points, -infinity)])
    check(np.concatenate([x, -x]))


def test_float64_sample() -> None:
    bits = np.random.default_rng(1).integers(0, 2**64, 500_000, np.uint64)
    exponents = np.random.default_rng(2).integers(1018, 1080, 500_000, np.uint64)
    moderate = (bits & np.uint64(0x800FFFFFFFFFFFFF)) | (exponents << np.uint64(52))
    x = np.concatenate([bits, moderate]).view(np.float64)
    x = x[~np.isnan(x)]
    check(x)
    corners = np.array([0.49999999999999994, 2.0**52 + 1])
    assert reference.round(corners, "half_away").tolist() == [0, 2**52 + 1]


@pytest.mark.parametrize("mode", MODES)
def test_nan_and_infinity_keep_their_bits(mode: str) -> None:
    for dtype, patterns in (
        ("u2", [0x7C00, 0xFC00, 0x7E00, 0xFE01, 0x7C01, 0xFFFF]),
        ("u4", [0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC12345, 0x7F800001, 0xFFFFFFFF]),
        ("u8", [0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0x7FF0000000000001, 2**64 - 1]),
    ):
        bits = np.array(patterns, dtype)
        got = reference.round(bits.view(f"f{bits.itemsize}"), mode)
        assert np.array_equal(got.view(dtype), bits)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_subnormals_become_signed_zeros(dtype: str) -> None:
    limits = np.finfo(dtype)
    x = np.array([limits.smallest_subnormal, limits.tiny / 2, limits.tiny, 0], dtype)
    for mode in MODES:
        assert reference.same_bits(reference.round(x, mode), np.zeros(4, dtype))
        assert reference.same_bits(reference.round(-x, mode), np.full(4, -0.0, dtype))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64"])
def test_integers_are_copied(dtype: str) -> None:
    x = np.array([np.iinfo(dtype).min, 5, np.iinfo(dtype).max], dtype)
    for mode in MODES:
        got = reference.round(x, mode)
        assert reference.same_bits(got, x)
        assert not np.shares_memory(got, x)


def test_shapes_and_layouts() -> None:
    base = np.linspace(-9, 9, 720, dtype=np.float32).reshape(8, 9, 10)
    before = base.copy()
    repeated = np.broadcast_to(base[0], (3, 9, 10))
    for x in (base, base[::2, ::-1, 3], base.T, repeated, base[:0], base[0, 0, 0:1]):
        got = reference.round(x, "half_even")
        assert got.flags.c_contiguous
        assert reference.same_bits(got, np.rint(x))
    scalar = reference.round(np.array(2.5), "half_away")
    assert reference.same_bits(scalar, np.array(3.0))
    assert np.array_equal(base, before)
    long = np.resize(base, 600_001)
    assert reference.same_bits(reference.round(long, "toward_zero"), np.trunc(long))


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="half_up"):
        reference.round(np.ones(3), "half_up")
    with pytest.raises(TypeError, match="complex"):
        reference.round(np.ones(3, np.complex128), "half_even")
