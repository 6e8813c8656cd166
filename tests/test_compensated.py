"""Compensated sums: bit for bit as the reference says in every kernel, and near the exact sums."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dmlgpu
from dmlgpu import reference
from dmlgpu.errors import ArgumentError, ArrayTypeError
from dmlgpu.layout import Layout
from dmlgpu.planning.plan import EVERYWHERE
from dmlgpu.runtime.device import Device

from .cli_runner import runner
from .harness import check_scan, expected_scan, scan

Floats = NDArray[np.float32]

ORDERS = list(product((False, True), (False, True)))


def wide(shape: tuple[int, ...], seed: int = 0) -> Floats:
    """Return numbers of very different sizes, whose plain sums round often and far."""
    rng = np.random.default_rng([seed, *shape])
    return (rng.standard_normal(shape) * np.exp2(rng.uniform(-30, 30, shape))).astype(np.float32)


def check(device: Device, x: Floats, axis: int, **options: Any) -> None:
    check_scan(device, x, "sum", axis, compensated=True, **options)


def borders(length: int = 300) -> Floats:
    """Return slices whose pairs cancel but for their low parts, overflow by these alone, or are negative zeros."""
    x = np.zeros((4, length), np.float32)
    x[0, :3] = 1, 2.0**-30, -1
    x[1, [0, 20, 40]] = 1, 2.0**-30, -1
    x[2, :3] = np.finfo(np.float32).max, 2.0**102, 2.0**102
    x[3] = -0.0
    return x


@pytest.mark.parametrize("kernel", EVERYWHERE)
def test_the_borders_of_pairs(device: Device, kernel: str) -> None:
    x = borders()
    expected = reference.cumulative(x, "sum", axis=1, compensated=True)
    assert expected[:2, -1].tolist() == [2.0**-30] * 2
    assert np.isinf(expected[2, 2:]).all()
    assert np.signbit(expected[3]).all()
    for exclusive in (False, True):
        check(device, x, 1, kernel=kernel, exclusive=exclusive)


@pytest.mark.combinations
@pytest.mark.parametrize("kernel", EVERYWHERE)
def test_lengths_and_orders(device: Device, kernel: str) -> None:
    for length in (1, 16, 17, 255, 257, 4096, 4097):
        for exclusive, reverse in ORDERS:
            check(device, wide((2, length)), 1, kernel=kernel, exclusive=exclusive, reverse=reverse)


@pytest.mark.parametrize("kernel", EVERYWHERE)
def test_long_slices(device: Device, kernel: str) -> None:
    x = wide((140_001,))
    check(device, x, 0, kernel=kernel)
    check(device, x, 0, kernel=kernel, exclusive=True, reverse=True)
    check(device, wide((66_000, 3)), 0, kernel=kernel)
    assert not np.array_equal(scan(device, x, "sum", 0), expected_scan(device, x, "sum", 0, compensated=True))


@pytest.mark.combinations
@pytest.mark.parametrize("kernel", EVERYWHERE)
def test_nan_infinity_overflow_and_zeros(device: Device, kernel: str) -> None:
    """One event a slice, around the borders of runs, blocks, tiles and spans."""
    top = np.finfo(np.float32).max
    events: list[list[float]] = [[np.inf, -np.inf], [np.nan], [-np.inf], [top, top, -top], [-top, top, top]]
    for length in (300, 66_000):
        places = [place for place in (0, 15, 4096, 65_535) if place < length]
        x = np.broadcast_to(wide((length,)), (len(places) * len(events), length)).copy()
        for row, (place, event) in enumerate(product(places, events)):
            x[row, place : place + len(event)] = event
        check(device, x, 1, kernel=kernel)
        check(device, x[::4], 1, kernel=kernel, exclusive=True, reverse=True)
    swinging = np.repeat(np.linspace(2e38, 3e38, 5000, dtype=np.float32), 2) * np.tile(np.float32([-1, 1]), 5000)
    check(device, np.append(np.float32(1), swinging), 0, kernel=kernel)
    zeros = np.full((2, 5000), -0.0, np.float32)
    zeros[1, 4500] = 0
    check(device, zeros, 1, kernel=kernel)


@pytest.mark.parametrize("kernel", EVERYWHERE)
def test_subnormals(device: Device, kernel: str) -> None:
    """Error terms become subnormal long before sums do: kept or flushed, as the probe says."""
    x = wide((5, 5000)) * np.exp2(np.float32([-60, -80, -90, -100, -120]))[:, None]
    check(device, x, 1, kernel=kernel)


@pytest.mark.parametrize("kernel", EVERYWHERE)
def test_in_place_and_strided(device: Device, kernel: str) -> None:
    x = wide((3, 4500))
    packed, wider = Layout.packed(x.shape), Layout(x.shape, (1, 4), 3)
    check(device, x, 1, kernel=kernel, source=packed, target=packed)
    check(device, x, 1, kernel=kernel, source=wider, target=packed, exclusive=True)


@pytest.mark.parametrize("binding", [4096, 100_000])
def test_windows(device: Device, binding: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both words of what is carried go from window to window: cut inside tiles, and at tiles."""
    monkeypatch.setattr(device, "limits", replace(device.limits, binding_bytes=binding))
    x, packed = wide((70_000,)), Layout.packed((70_000,))
    check(device, x, 0)
    check(device, x, 0, exclusive=True, reverse=True, source=packed, target=packed)
    check(device, wide((9000, 3)), 0)


@pytest.mark.parametrize("kernel", ["rows", "lookback", "reduce_then_scan", "serial"])
def test_windows_of_whole_tiles(device: Device, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "limits", replace(device.limits, dispatch_elements=5 * 4096))
    x = wide((100_000,))
    check(device, x, 0, kernel=kernel)
    x[50_000] = np.inf
    check(device, x, 0, kernel=kernel, exclusive=True)


def distributions(length: int) -> dict[str, Floats]:
    rng = np.random.default_rng(length)
    uniform = rng.uniform(0, 1, length)
    return {
        "uniform": uniform.astype(np.float32),
        "normal": rng.standard_normal(length).astype(np.float32),
        "geometric": np.exp2(-40 * np.arange(length) / length).astype(np.float32),
        "cancelling": np.stack([uniform, uniform * (2**-10 - 1)], -1).reshape(-1)[:length].astype(np.float32),
    }


@pytest.mark.parametrize("distribution", ["uniform", "normal", "geometric", "cancelling"])
def test_within_two_units_in_the_last_place(device: Device, distribution: str) -> None:
    """Wherever the exact sum is at least 2^-14 of the sum of magnitudes, and more often than not elsewhere."""
    x = distributions(1_000_000)[distribution]
    results = dmlgpu.cumulative_sum(x, precision="compensated", device=device)
    plain = dmlgpu.cumulative_sum(x, device=device)
    last = np.unique(np.concatenate([np.geomspace(1, x.size, 40).astype(int), [x.size]])) - 1
    start, exact, magnitude, far, plain_far = 0, 0.0, 0.0, [], []
    parts: list[float] = []
    for place in last.tolist():
        parts += x[start : place + 1].astype(np.float64).tolist()
        start = place + 1
        exact, magnitude = math.fsum(parts), math.fsum(map(abs, parts))
        if abs(exact) >= magnitude * 2**-14:
            unit = float(np.spacing(np.abs(np.float32(exact))))
            far.append(abs(float(results[place]) - exact) / unit)
            plain_far.append(abs(float(plain[place]) - exact) / unit)
    assert len(far) >= 30
    assert max(far) <= 1
    assert max(plain_far) > max(far)


def test_what_rounding_cut_off_comes_back(device: Device) -> None:
    x = np.float32([1e8, 1, 1, -1e8])
    assert dmlgpu.cumulative_sum(x, device=device)[-1] == 0
    assert dmlgpu.cumulative_sum(x, precision="compensated", device=device)[-1] == 2
    on_device = dmlgpu.asarray(x[::-1].copy(), device)[::-1]
    assert dmlgpu.cumulative_sum(on_device, precision="compensated").numpy()[-1] == 2
    wider = dmlgpu.cumulative_sum(
        np.int8([3, 4]), dtype="float32", precision="compensated", include_initial=True, device=device
    )
    assert (wider.dtype, wider.tolist()) == (np.float32, [0, 3, 7])


@pytest.mark.parametrize(
    ("dtype", "way_out"),
    [
        ("float16", "add dtype='float32', or leave it out"),
        ("float64", "leave it out, as float64 has more digits than float32 has with it"),
        ("int32", "leave it out, as sums of integers are exact"),
    ],
)
def test_other_types(dtype: str, way_out: str) -> None:
    with pytest.raises(
        ArgumentError, match=rf"^precision is 'compensated', which is for sums of float32, .*: {way_out}$"
    ):
        dmlgpu.cumulative_sum(np.ones(3, dtype), precision="compensated")


@pytest.mark.parametrize(
    ("value", "error"), [("double", ArgumentError), (None, ArrayTypeError), (["compensated"], ArrayTypeError)]
)
def test_no_precision(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^precision is .*; it is one of 'default', 'compensated'$"):
        dmlgpu.cumulative_sum(np.ones(3, np.float32), precision=value)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, to = tmp_path / "x.npy", tmp_path / "y.npy"
    np.save(path, np.float32([1e8, 1, 1, -1e8]))
    done = runner(capsys)("cumsum", str(path), "--precision", "compensated", "-o", str(to))
    assert done.status == 0, done.err
    assert "compensated cumsum of" in done.out
    assert np.load(to)[-1] == 2
    np.save(path, np.ones(3))
    done = runner(capsys)("cumsum", str(path), "--precision", "compensated", "-o", str(to))
    assert done.status == 2
    assert "leave it out, as float64" in done.err
