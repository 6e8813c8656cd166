"""The reference's compensated sums: against a slow version, against exact arithmetic, and in the corners."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from dmlgpu import reference
from dmlgpu.reference.compensated import Compensated

from . import reference_slow as slow

Floats = NDArray[np.float32]
Pair = tuple[np.float32, np.float32]

UNIT = Fraction(1, 2**24)
BOUND = 3 * UNIT**2 / (1 - 4 * UNIT)


def wide(shape: int | tuple[int, ...], seed: int = 0) -> Floats:
    """Return numbers of very different sizes, whose plain sums round often and far."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * np.exp2(rng.uniform(-30, 30, shape))).astype(np.float32)


def exact(pair: Pair) -> Fraction:
    return Fraction(float(pair[0])) + Fraction(float(pair[1]))


def slow_combine(a: Pair, b: Pair) -> Pair:
    """Add (hi, lo) pairs, with the error of each sum from fractions. Without subnormals and overflow."""

    def two_sum(x: np.float32, y: np.float32) -> Pair:
        total = x + y
        return total, np.float32(float(exact((x, y)) - Fraction(float(total))))

    s, s_error = two_sum(a[0], b[0])
    t, t_error = two_sum(a[1], b[1])
    v, v_error = two_sum(s, s_error + t)
    return two_sum(v, t_error + v_error)


def pairs(x: Floats, y: Floats) -> NDArray[np.void]:
    """Return the pairs that stand for x + y."""
    arithmetic = Compensated()
    return arithmetic.combine(arithmetic.take(x), arithmetic.take(y))


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 255, 256, 257, 4097, 66_000])
def test_against_the_slow_version(n: int) -> None:
    x = wide(n, seed=n)
    expected = [
        p[0] for p in slow.inclusive([(v, np.float32(0)) for v in x], slow_combine, lambda p: np.isfinite(p[0]))
    ]
    got = reference.cumulative(x, "sum", axis=0, compensated=True)
    assert reference.first_difference(got, np.array(expected, np.float32)) is None
    assert n < 256 or not np.array_equal(got, reference.cumulative(x, "sum", axis=0))


def test_the_error_of_one_sum_is_below_its_bound() -> None:
    """Also where the high parts cancel, wholly or but for a few digits; and pairs come out normalised."""
    rng = np.random.default_rng(1)
    x, y = wide(6000, seed=2), wide(6000, seed=3)
    y[:3000] = x[:3000] * rng.uniform(2**-25, 2**-20, 3000).astype(np.float32)
    a = pairs(x, y)
    b = pairs(wide(6000, seed=4), wide(6000, seed=5))
    b[:1000] = pairs(-x[:1000], wide(1000, seed=6))
    b["hi"][1000:2000] = -a["hi"][1000:2000]
    b["lo"][1000:2000] = a["lo"][1000:2000] * rng.uniform(-1, 1, 1000).astype(np.float32)
    b["hi"][2000:3000] = np.nextafter(-a["hi"][2000:3000], np.float32(0))
    b["lo"][2000:3000] = 0
    result = Compensated().combine(a, b)
    worst = Fraction(0)
    for one, other, total in zip(a.tolist(), b.tolist(), result.tolist(), strict=True):
        wanted = exact(one) + exact(other)
        assert wanted == 0 or abs(exact(total) - wanted) <= BOUND * abs(wanted)
        worst = max(worst, abs(exact(total) - wanted) / abs(wanted) if wanted else worst)
    assert worst > UNIT**2 / 2, "the data is hard enough to come near the bound"
    assert np.array_equal(result["hi"] + result["lo"], result["hi"])


def test_zeros() -> None:
    x = np.array([-0.0, -0.0, 0.0, -0.0, 1.5, -1.5, -0.0], np.float32)
    got = reference.cumulative(x, "sum", axis=0, compensated=True)
    assert got.tolist() == [0, 0, 0, 0, 1.5, 0, 0]
    assert np.signbit(got).tolist() == [True, True, False, False, False, False, False]
    total = pairs(np.float32([1, 2**-30, -0.0]), np.float32([-1, -(2.0**-30), -0.0]))
    assert not total["lo"].view(np.uint32).any(), "lo is +0 beside a zero"


def test_nan_and_infinity_where_a_left_fold_has_them() -> None:
    top = np.finfo(np.float32).max
    for event in ([np.inf], [-np.inf, 1, np.inf], [np.nan], [top, top, -top], [-top, top, top], [top, top * 2**-25]):
        for place in (0, 20, 5000, 66_000):
            x = np.ones(70_000, np.float32)
            x[place : place + len(event)] = event
            with np.errstate(all="ignore"):
                plain = np.add.accumulate(x)
            got = reference.cumulative(x, "sum", axis=0, compensated=True)
            assert np.array_equal(np.isnan(got), np.isnan(plain))
            assert np.array_equal(np.isposinf(got), np.isposinf(plain))
            assert np.array_equal(np.isneginf(got), np.isneginf(plain))


def test_pairs_near_overflow_are_finite_or_infinite_but_not_nan() -> None:
    top = np.finfo(np.float32).max
    values = np.float32([top, np.nextafter(top, np.float32(0)), top / 2, 2.0**103, 2.0**102, 2.0**78, 1])
    values = np.concatenate([values, -values])
    with np.errstate(all="ignore"):
        first = pairs(*(part.ravel() for part in np.meshgrid(values, values)))
        first = first[np.isfinite(first["hi"])]
        i, j = np.indices((first.size, first.size)).reshape(2, -1)
        total = Compensated().combine(first[i], first[j])
        wanted = first["hi"][i].astype(float) + first["hi"][j] + first["lo"][i] + first["lo"][j]
        assert not np.isnan(total["hi"]).any()
        assert np.isinf(total["hi"]).any()
    assert np.isfinite(total["hi"][np.abs(wanted) < float(top) * (1 - 2**-23)]).all()
    beyond = np.abs(wanted) >= 2.0**128
    assert np.array_equal(total["hi"][beyond], np.copysign(np.float32(np.inf), wanted[beyond]))
    assert not total["lo"][np.isinf(total["hi"])].view(np.uint32).any()


def test_subnormals_are_met_in_what_rounding_cuts_off() -> None:
    integers = np.random.default_rng(0).integers(-(2**24), 2**24, (2, 9000)).astype(np.float32)
    small = np.float32(2.0**-126)
    x = np.stack([integers[0] * small, np.abs(integers[1]) * small + np.float32(2.0**-100), wide(9000)])
    x = np.concatenate([x, wide((9, 9000), seed=9) * np.exp2(np.arange(-100, -60, 4.5))[:, None].astype(np.float32)])
    met = reference.meets_subnormals(x, "sum", axis=1, compensated=True)
    assert not met[:3].any(), "multiples of 2^-126 make nothing but multiples of it"
    assert met[3:].any()
    assert not reference.meets_subnormals(x[3:], "sum", axis=1)[met[3:]].all(), "where plain sums meet none"
    kept, flushed = (reference.cumulative(x, "sum", axis=1, compensated=True, flush=flush) for flush in (False, True))
    for row in np.flatnonzero(~met):
        assert reference.same_bits(kept[row], flushed[row])
    assert not reference.same_bits(kept, flushed)


def test_only_for_sums_of_float32() -> None:
    for x, operator in ((np.ones(3), "sum"), (np.ones(3, np.float32), "product"), (np.ones(3, np.int32), "sum")):
        with pytest.raises(ValueError, match="compensated is for sums of float32, not for operator"):
            reference.cumulative(x, operator, axis=0, compensated=True)
