"""The rounding and conversion kernels against the reference, bit for bit."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dmlgpu import dtypes, reference
from dmlgpu.layout import Layout
from dmlgpu.runtime.device import Device

from .harness import MODES, convert_on, numbers, round_on

CASES = json.loads((Path(__file__).parent / "data" / "rounding_cases.json").read_text())
NAMES = {"half_even": "even", "toward_zero": "zero", "half_away": "inf"}


def float32_sample() -> NDArray[np.float32]:
    """Return every sign and exponent with mantissas at and around what matters, and a million random patterns."""
    edges = [0, 1, 2, *(1 << b for b in range(2, 23)), *((1 << b) - 1 for b in range(2, 24))]
    edges += [(1 << 23) - (1 << b) for b in range(23)] + [0x400001, 0x600000, 0x600001, 0x5FFFFF]
    mantissas = np.array(sorted(set(edges)), np.uint32)
    tops = np.arange(512, dtype=np.uint32) << 23
    structured = (tops[:, None] | mantissas).reshape(-1)
    random = np.random.default_rng(0).integers(0, 2**32, 2**20, np.uint32)
    return np.concatenate([structured, random]).view(np.float32)


def float64_sample() -> NDArray[np.float64]:
    rng = np.random.default_rng(1)
    tops = np.arange(4096, dtype=np.uint64) << np.uint64(52)
    mantissas = np.concatenate(
        [
            (np.uint64(1) << np.arange(52, dtype=np.uint64)),
            (np.uint64(1) << np.arange(1, 53, dtype=np.uint64)) - np.uint64(1),
            [np.uint64(0)],
        ]
    )
    near_one = tops[(tops >> np.uint64(52) & np.uint64(2047)) // np.uint64(64) == np.uint64(16)]
    structured = (near_one[:, None] | mantissas).reshape(-1)
    return np.concatenate([structured, tops, rng.integers(0, 2**64, 2**18, np.uint64)]).view(np.float64)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("dtype", "bits"), [("float32", np.uint32), ("float16", np.uint16)])
def test_the_listed_cases(device: Device, mode: str, dtype: str, bits: Any) -> None:
    cases = CASES[dtype]
    x = np.array([int(case["input_bits"], 16) for case in cases], bits).view(dtype)
    expected = np.array([int(case[NAMES[mode]], 16) for case in cases], bits).view(dtype)
    assert reference.first_difference(round_on(device, x, mode), expected) is None


@pytest.mark.parametrize("mode", MODES)
def test_every_float16(device: Device, mode: str) -> None:
    x = np.arange(65_536, dtype=np.uint16).view(np.float16)
    result = round_on(device, x, mode)
    assert reference.first_difference(result, reference.round(x, mode)) is None
    assert np.array_equal(result.view(np.uint16)[np.isnan(x)], x.view(np.uint16)[np.isnan(x)])


@pytest.mark.parametrize("mode", MODES)
def test_a_dense_sample_of_float32(device: Device, mode: str) -> None:
    x = float32_sample()
    assert reference.first_difference(round_on(device, x, mode), reference.round(x, mode)) is None


@pytest.mark.combinations
@pytest.mark.parametrize("software", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_any_number_of_neighbours_at_any_place(
    device: Device, dtype: str, software: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole vectors of 16 bytes take another kernel than what is left. An invocation's are neighbours on a CPU only."""
    monkeypatch.setattr(device, "limits", replace(device.limits, software=software))
    x = (np.arange(1100) / 4 - 137).astype(dtype)
    for size in (*range(1, 20), 255, 1024, 1027, 1100):
        for offset in (0, 1, 2, 4, 8, 128):
            source, target = Layout((size,), (1,), offset), Layout((size,), (1,), 8 - offset % 3)
            for place in (target, source):
                result = round_on(device, x[:size], "half_even", source=source, target=place)
                assert reference.first_difference(result, np.rint(x[:size])) is None, (size, offset, place is source)


@pytest.mark.parametrize("mode", MODES)
def test_a_sample_of_float64_without_float64_hardware(device: Device, mode: str) -> None:
    x = float64_sample()
    assert reference.first_difference(round_on(device, x, mode), reference.round(x, mode)) is None


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_round_strided_and_in_place(device: Device, dtype: str) -> None:
    shape = (7, 11, 5)
    x = (numbers(shape, dtype) * 8).astype(dtype)
    expected = reference.round(x, "half_even")
    transposed = Layout(shape, (1, 7, 80), 3)
    reversed_ = Layout(shape, (-55, 5, -1), 55 * 7)
    for source, target in product([Layout.packed(shape, 1), transposed, reversed_], repeat=2):
        assert (
            reference.first_difference(round_on(device, x, "half_even", source=source, target=target), expected) is None
        )
    broadcast = np.broadcast_to(x[:1], shape)
    result = round_on(device, broadcast, "toward_zero", source=Layout(shape, (0, 5, 1), 0))
    assert reference.first_difference(result, reference.round(broadcast.copy(), "toward_zero")) is None


def special_values(dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        edges = {0, 1, info.max, info.min, info.max // 2, 3, info.max - 1}
        edges |= {1 << b for b in range(dtype.itemsize * 8 - 1)} | {(1 << b) - 1 for b in range(dtype.itemsize * 8 - 1)}
        edges |= {(1 << b) + 1 for b in range(dtype.itemsize * 8 - 1)}
        if info.min < 0:
            edges |= {-e for e in edges}
        return np.array(sorted(e for e in edges if info.min <= e <= info.max), dtype)
    if dtype == np.float16:
        return np.arange(65_536, dtype=np.uint16).view(np.float16)
    if dtype == np.float32:
        return float32_sample()[::7]
    return float64_sample()[::5]


@pytest.mark.parametrize("source", [*dtypes.ELEMENT_TYPES, dtypes.BOOL], ids=str)
def test_every_conversion(device: Device, source: dtypes.ElementType) -> None:
    rng = np.random.default_rng(3)
    random = (
        rng.integers(0, 256, 8000, np.uint8).view(source.dtype) if source.name != "bool" else np.array([True, False])
    )
    x = np.concatenate([special_values(source.dtype), random])
    for target in dtypes.ELEMENT_TYPES:
        result = convert_on(device, x, target.dtype)
        difference = reference.first_difference(result, reference.convert(x, target.dtype))
        assert difference is None, f"{source} to {target}: {difference}"
        if source == target:
            assert result.tobytes() == x.tobytes(), "a copy keeps every bit"


def test_floats_near_the_rounding_borders_of_narrower_floats(device: Device) -> None:
    """Ties and their neighbours between float16 and float32 values, from wider formats."""
    half = np.arange(0, 0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    ties = (half[:-1] + half[1:]) / 2
    x = np.concatenate([ties, np.nextafter(ties, 0), np.nextafter(ties, np.inf), -ties])
    assert reference.first_difference(convert_on(device, x, np.float16), x.astype(np.float16)) is None
    single = np.concatenate([ties, -ties]).astype(np.float32)
    assert reference.first_difference(convert_on(device, single, np.float16), single.astype(np.float16)) is None
    patterns = np.random.default_rng(2).integers(0, 0x7F800000, 5000, np.uint32).view(np.float32).astype(np.float64)
    nexts = np.nextafter(patterns.astype(np.float32), np.float32(np.inf)).astype(np.float64)
    middle = patterns + (nexts - patterns) / 2
    with np.errstate(over="ignore"):
        expected = middle.astype(np.float32)
    assert reference.first_difference(convert_on(device, middle, np.float32), expected) is None


def test_windows_and_grids(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    x = numbers((40_001,), np.float32)
    table = numbers((30, 500), np.uint8)
    monkeypatch.setattr(device, "limits", replace(device.limits, binding_bytes=4096, workgroups=5))
    assert reference.first_difference(round_on(device, x, "half_away"), reference.round(x, "half_away")) is None
    assert convert_on(device, x, np.int64).tobytes() == reference.convert(x, np.int64).tobytes()
    moved = convert_on(
        device, table, np.uint8, source=Layout((30, 500), (1, 30), 0), target=Layout((30, 500), (503, 1), 2)
    )
    assert moved.tobytes() == table.tobytes()


def test_more_elements_than_one_row_of_workgroups(device: Device) -> None:
    x = np.arange(5_000_000, dtype=np.uint32)
    assert np.array_equal(convert_on(device, x, np.uint8), x.astype(np.uint8))


def test_every_byte_but_zero_is_true(device: Device) -> None:
    """NumPy writes 0 and 1; what others have left in memory counts as in C."""
    every = np.arange(256, dtype=np.uint8)
    for dtype in ("int8", "uint64", "float16", "float64"):
        result = convert_on(device, every.view(np.bool_), dtype)
        assert np.array_equal(result, (every != 0).astype(dtype))
