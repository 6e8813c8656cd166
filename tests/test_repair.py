"""Tiles that may be exceptional, and what is between them: who scans which, with the bits of the reference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dmlgpu import dtypes, reference
from dmlgpu.layout import Layout
from dmlgpu.planning import scan as scans
from dmlgpu.planning.dispatch import Plan
from dmlgpu.planning.problem import Operator, ScanOptions, scan_problem
from dmlgpu.planning.scan import ScanPlanner
from dmlgpu.planning.windows import TILE
from dmlgpu.runtime.device import Device

from .harness import check_scan, expected_scan, numbers
from .test_exceptional import run_planned

WAYS = ("lookback", "reduce_then_scan", "serial")
TILES = 90
PATTERNS: dict[str, tuple[int, ...]] = {
    "the first": (0,),
    "the last": (TILES - 1,),
    "apart": (3, 20, 21, 57, TILES - 1),
    "a burst": tuple(range(10, 31)),
    "a long burst": tuple(range(5, 75)),
    "every other": tuple(range(1, TILES, 2)),  # more of them than bases are found in a turn
    "each": tuple(range(TILES)),
}
"""Which of the tiles may be exceptional."""

EVENTS = {
    "fill": ("sum", (9.96921e36, -9.96921e36)),  # netCDF's, whose first one is in the sums that follow
    "overflow": ("sum", (-3e38, 3e38, 2e38, -2e38)),  # in a run's sum from the second element on
    "dip": ("product", (2.0**-124, 2.0**124)),
    "peak": ("product", (2.0**126, 2.0**-126)),
}
"""Elements that make a tile suspect, whose fold is nearly neutral in the end."""


def with_events(kind: str, tiles: tuple[int, ...], length: int = TILES * TILE - 3) -> NDArray[np.float32]:
    """Return a slice that has the event in each of these tiles."""
    operator, values = EVENTS[kind]
    x = numbers((length,), "float32", operator)
    for number, tile in enumerate(tiles):
        place = tile * TILE + (15 + 1000 * number) % (TILE - 8)
        x[place : place + len(values)] = values
    return x


def of_fills(number: int) -> NDArray[np.float32]:
    """Return a slice with so many values of netCDF's fill, in tiles apart from each other."""
    x = numbers((TILES * TILE,), "float32", "sum")
    x[2 * TILE * np.arange(number) + 77] = 9.96921e36
    return x


def planned(device: Device, x: NDArray[Any], operator: str, way: str) -> Plan:
    layout = Layout.packed(x.shape)
    problem = scan_problem(dtypes.by_dtype(x.dtype), Operator(operator), layout, layout, 0, ScanOptions())
    return Plan.of(ScanPlanner(problem, device.limits, chunks=x.shape).passes(way))


def have_turns_of(tiles: int, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "limits", replace(device.limits, software=True))
    for name in ("_MAX_TILES", "_MAX_TILES_TOGETHER_ON_SOFTWARE"):
        monkeypatch.setattr(scans, name, tiles)


@pytest.mark.combinations
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("kind", EVENTS)
@pytest.mark.parametrize("way", WAYS)
def test_suspect_tiles_and_what_is_between_them(device: Device, way: str, kind: str, pattern: str) -> None:
    operator, _ = EVENTS[kind]
    x = with_events(kind, PATTERNS[pattern])
    check_scan(device, x, operator, 0, kernel=way)
    check_scan(device, x, operator, 0, kernel=way, exclusive=True, reverse=True)
    packed = Layout.packed(x.shape)
    check_scan(device, x, operator, 0, kernel=way, source=packed, target=packed, exclusive=True)


@pytest.mark.parametrize("number", [1, 12, 13, 33, 34, 35, 40])
@pytest.mark.parametrize("way", WAYS)
def test_sums_that_come_ever_closer_to_overflow(device: Device, way: str, number: int) -> None:
    """34 of the values are finite together, and 35 are not."""
    x = of_fills(number)
    with np.errstate(over="ignore"):
        assert np.isinf(np.cumsum(x)[-1]) == (number > 34)
    check_scan(device, x, "sum", 0, kernel=way)
    check_scan(device, -x, "sum", 0, kernel=way, exclusive=True)


@pytest.mark.combinations
@pytest.mark.parametrize("turn", [1, 3, 7, 32])
@pytest.mark.parametrize("kind", EVENTS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("fresh_plans")
def test_turns_end_anywhere_between_suspect_tiles(
    device: Device, way: str, kind: str, turn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator, _ = EVENTS[kind]
    have_turns_of(turn, device, monkeypatch)
    for pattern in ("apart", "a burst", "every other"):
        check_scan(device, with_events(kind, PATTERNS[pattern]), operator, 0, kernel=way, exclusive=turn == 7)


@pytest.mark.combinations
@pytest.mark.parametrize("kind", EVENTS)
@pytest.mark.parametrize("way", WAYS)
def test_windows_end_anywhere_between_suspect_tiles(device: Device, way: str, kind: str) -> None:
    operator, _ = EVENTS[kind]
    layout = Layout.packed((2, TILES * TILE - 3))
    for exclusive, pattern in ((False, "apart"), (True, "a burst"), (False, "every other")):
        x = np.stack([with_events(kind, PATTERNS[pattern]), with_events(kind, ())])
        options = ScanOptions(exclusive=exclusive)
        problem = scan_problem(dtypes.by_dtype(x.dtype), Operator(operator), layout, layout, 1, options)
        for window in (7 * TILE, 21 * TILE, 32 * TILE):
            plan = Plan.of(ScanPlanner(problem, device.limits, chunks=(2, window)).passes(way))
            got = run_planned(device, plan, x)
            expected = expected_scan(device, x, operator, 1, exclusive=exclusive)
            assert reference.first_difference(got, expected) is None


@pytest.mark.combinations
@pytest.mark.parametrize("kind", EVENTS)
@pytest.mark.parametrize(("dtype", "width"), [("float16", 16), ("float32", 16), ("float64", 16), ("float32", 2)])
def test_columns_of_strips_with_suspect_tiles(device: Device, dtype: str, width: int, kind: str) -> None:
    operator, values = EVENTS[kind]
    x = numbers((40 * TILE + 5, width), dtype, operator)
    if dtype == "float32":
        for column, tiles in ((2, (0, 1, 2)), (9, (17,)), (10, (3, 39)), (15, tuple(range(8, 30)))):
            for tile in tiles:
                x[tile * TILE + 31 : tile * TILE + 31 + len(values), column % width] = values
    else:
        x[5 * TILE + 8, 3] = np.nan
    check_scan(device, x, operator, 0, kernel="strip_lookback")
    check_scan(device, x, operator, 0, kernel="strip_lookback", exclusive=True)


@pytest.mark.parametrize(
    ("kind", "pattern", "scanned"),
    [
        ("overflow", "the first", {0}),
        # Where one follows another, bases are found again after two tiles, then four, eight, and so on.
        ("fill", "apart", {3, 20, 21, 22, 57, 89}),
        ("dip", "apart", {3, 20, 21, 22, 57, 89}),
        ("overflow", "the last", {89}),
        ("fill", "a burst", {*range(10, 41)}),
    ],
)
@pytest.mark.parametrize("way", WAYS)
def test_a_workgroup_scans_no_more_than_it_has_to(
    device: Device, way: str, kind: str, pattern: str, scanned: set[int]
) -> None:
    """One workgroup for all that is behind a suspect tile takes hundreds of times as long as a GPU."""
    operator, _ = EVENTS[kind]
    x = with_events(kind, PATTERNS[pattern])
    plan = planned(device, x, operator, way)
    found = run_planned(device, Plan.of(plan.passes[:-1]), x)
    found[: min(scanned) * TILE] = 7  # the look-back's, as far as nobody has lost patience
    written = {tile for tile in range(TILES) if (found[tile * TILE :][:TILE] != 7).any()}
    assert written == scanned
    expected = expected_scan(device, x, operator, 0)
    for tile in written:
        place = slice(tile * TILE, (tile + 1) * TILE)
        assert reference.first_difference(found[place], expected[place]) is None


@pytest.mark.parametrize("pattern", ["each", "every other"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("fresh_plans")
def test_a_turn_scans_no_tile_behind_its_end(
    device: Device, way: str, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A watchdog may end what takes longer."""
    have_turns_of(5, device, monkeypatch)
    x = with_events("overflow", PATTERNS[pattern])
    passes = planned(device, x, "sum", way).passes
    first = next(number for number, one in enumerate(passes) if one.pipeline.kernel == "scan_repair")
    for turns in (1, 2, 3):
        found = run_planned(device, Plan.of(passes[: first + turns]), x)
        written = [tile for tile in range(TILES) if (found[tile * TILE :][:TILE] != 7).any()]
        assert max(written) in (5 * turns - 1, 5 * turns - 2)
