"""What docs/numerics.md says about errors: the bounds hold, and the script that measures them measures right."""

from __future__ import annotations

import math
import os
import runpy
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import dmlgpu
from benchmarks.accuracy import LENGTHS, Exact, bound, distributions, measure
from dmlgpu.runtime.device import Device

ROOT = Path(__file__).resolve().parent.parent


def test_the_diagram_is_what_its_script_draws() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "order_diagram.py"))
    assert script["PICTURE"] == ROOT / "docs" / "images" / "order.svg"
    assert script["PICTURE"].read_text(encoding="utf-8") == script["picture"]()


def test_exact_sums() -> None:
    """Against fractions, on numbers from 2^-30 to 2^20 of both signs."""
    rng = np.random.default_rng(0)
    x = (rng.choice([-1, 1], 2000) * np.exp2(rng.uniform(-30, 20, 2000))).astype(np.float32)
    exact = Exact.of(x)
    total, wanted = Fraction(0), []
    for value in x.tolist():
        total += Fraction(value)
        wanted.append(total)
    assert exact.values().tolist() == [float(value) for value in wanted]
    results = np.cumsum(x)
    errors = [float(Fraction(float(result)) - value) for result, value in zip(results, wanted, strict=True)]
    assert exact.errors(results).tolist() == errors
    assert exact.errors(results[-1:]).tolist() == errors[-1:]
    assert exact.errors(np.float32([np.inf, *results[1:]]))[0] == np.inf


def test_exact_sums_of_what_has_too_many_places() -> None:
    with pytest.raises(ValueError, match=r"elements from 1\.0\d*e-30 to 1\.0 have too many places"):
        Exact.of(np.float32([1, 1e-30]))


@pytest.mark.combinations
@pytest.mark.parametrize("distribution", distributions(1))
@pytest.mark.parametrize("length", [1, 255, 4097, 300_000])
def test_sums_are_within_their_bounds(device: Device, distribution: str, length: int) -> None:
    x = distributions(length)[distribution]
    exact, magnitudes = Exact.of(x), Exact.of(np.abs(x)).values()
    plain = dmlgpu.cumulative_sum(x, device=device)
    assert (np.abs(exact.errors(plain)) <= bound(length) * magnitudes).all()
    half = dmlgpu.cumulative_sum(x.astype(np.float16), device=device)
    of_half = Exact.of(x.astype(np.float16).astype(np.float32))
    finite = np.isfinite(half)
    allowed = 2.0**-11 * np.abs(of_half.values()) + 1.001 * bound(length) * magnitudes + 2.0**-25
    assert (np.abs(of_half.errors(half)) <= allowed)[finite].all()
    assert finite.all() or np.abs(of_half.values()).max() > 65_000
    unit = 3 * 2.0**-48 / (1 - 2.0**-22)
    compensated = dmlgpu.cumulative_sum(x, precision="compensated", device=device)
    allowed = 2.0**-24 * np.abs(exact.values()) + 1.001 * (length // 65_536 + 53) * unit * magnitudes
    assert (np.abs(exact.errors(compensated)) <= allowed).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_are_within_their_bound(device: Device, dtype: str) -> None:
    x = np.exp2(np.random.default_rng(1).uniform(-1e-2, 1e-2, 3000)).astype(dtype)
    results = dmlgpu.cumulative_prod(x, device=device)
    unit = Fraction(float(np.finfo(dtype).epsneg))
    places = 400
    low = high = 1 << places  # the exact product lies between low and high, in units of 2^-places
    for n, (value, result) in enumerate(zip(x.tolist(), results.tolist(), strict=True)):
        numerator, denominator = value.as_integer_ratio()
        low, high = low * numerator // denominator, -(-high * numerator // denominator)
        error = abs(Fraction(result) - Fraction(low, 1 << places)) + Fraction(high - low, 1 << places)
        assert error <= n * unit / (1 - n * unit) * Fraction(high, 1 << places) + Fraction(high - low, 1 << places)


def test_the_largest_errors(device: Device) -> None:
    x = distributions(20_000)["uniform"]
    ways = {
        "compensated": lambda v: dmlgpu.cumulative_sum(v, precision="compensated", device=device),
        "last": lambda v: np.atleast_1d(np.float32(math.fsum(v.tolist()))),
        "nothing": lambda v: np.zeros_like(v),
    }
    found = measure(x, ways)
    assert found["compensated"].units <= 1
    assert found["last"].units <= 0.5
    assert found["nothing"].relative == 1


def test_the_script_and_its_plot(tmp_path: Path) -> None:
    picture = tmp_path / "accuracy.png"
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "accuracy.py"), "--lengths", "20,10", "--plot", str(picture)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "| uniform | 10 |" in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("given", "message"), [("ten", "--lengths is 'ten'"), ("0", "--lengths has 0")])
def test_the_script_says_what_is_wrong(given: str, message: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "accuracy.py"), "--lengths", given],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 2
    assert message in done.stderr


def test_the_page_has_the_figures_of_the_script() -> None:
    page = (ROOT / "docs" / "numerics.md").read_text(encoding="utf-8")
    for length in LENGTHS:
        assert page.count(f" {length:,} |") >= 4
        assert f"{bound(length):.1e} |" in page
