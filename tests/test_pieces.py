"""A scan in pieces has the bits of one call on the whole, and its state goes anywhere."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import pickle
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import prod
from random import Random
from typing import Any

import numpy as np
import pytest

import dmlgpu
from dmlgpu import reference
from dmlgpu.arrays import pieces
from dmlgpu.dtypes import by_name
from dmlgpu.errors import (
    ArgumentError,
    ArrayTypeError,
    AxisError,
    DeviceError,
    DeviceLostError,
    DeviceMemoryError,
    DeviceReleasedError,
    DmlGpuError,
)
from dmlgpu.layout import Layout
from dmlgpu.planning import pieces as planning_pieces
from dmlgpu.planning.dispatch import Pass
from dmlgpu.planning.kernels import MAX_SERIAL_STEPS, check_pass, serial_steps
from dmlgpu.planning.pieces import (
    CARRY_WORDS,
    CarryColumns,
    CarryForm,
    CarryNumbers,
    CarryRows,
    CarrySlices,
    PiecePlan,
    first_tile,
    max_bytes,
    max_length,
    max_slices,
    moves,
    plan_piece,
)
from dmlgpu.planning.problem import Operator, scan_problem
from dmlgpu.planning.windows import TILE, Limits
from dmlgpu.reference import same_bits
from dmlgpu.runtime.transfers import Transfers

from .harness import SUSPECTS, changed, kernel_of, numbers
from .test_tuning import random_tuning

DRAWS = int(os.environ.get("DMLGPU_PIECES_DRAWS", "20"))
"""Random cuttings; a thousand take some six minutes."""
FIRST_DRAW = int(os.environ.get("DMLGPU_FIRST_DRAW", "0"))
"""The first one's number: others than in an earlier run are drawn from another number on."""
DTYPES = ["int8", "uint16", "int32", "uint64", "float16", "float32", "float64"]
LENGTHS = [0, 1, 5, 100, 4000, 4096, 5000, 9000, 70_000]

Draw = tuple[np.ndarray[Any, Any], dict[str, Any], list[int], bool]


def data(random: np.random.Generator, dtype: str, shape: tuple[int, ...], product: bool) -> np.ndarray[Any, Any]:
    if np.dtype(dtype).kind != "f":
        return random.integers(0, 100, shape).astype(dtype)
    x = random.standard_normal(shape)
    x = np.exp(0.01 * x) if product else x
    kind = random.integers(4)
    if kind == 1:  # overflow, in a few tiles only
        x = x * np.where(random.random(shape) < 1e-4, 6e4 if dtype == "float16" else 1e38, 1)
    elif kind == 2:
        x[tuple(random.integers(size) for size in shape)] = random.choice([np.nan, np.inf, -np.inf, 0.0])
    with np.errstate(over="ignore"):
        return x.astype(dtype)


def draw(seed: int) -> Draw:
    """Return an array, the arguments of a scan, lengths of pieces, and whether they go to the device first."""
    random = np.random.default_rng(seed)
    operator = str(random.choice(["sum", "product"]))
    dtype = str(random.choice(DTYPES))
    length = int(random.integers(1, 150_000))
    shape: tuple[int, ...] = [(length,), (length, 3), (2, length), (2, length, 3)][random.integers(4)]
    options = {
        "operator": operator,
        "axis": shape.index(length) - (len(shape) if random.integers(2) else 0),
        "dtype": dtype,
        "exclusive": bool(random.integers(2)),
        "reverse": bool(random.integers(2)),
        "precision": "compensated" if (operator, dtype) == ("sum", "float32") and random.integers(2) else "default",
    }
    cut = []
    while sum(cut) < length:
        cut.append(min(int(random.choice(LENGTHS)), length - sum(cut)))
    return data(random, dtype, shape, operator == "product"), options, cut, bool(random.integers(2))


def whole(x: Any, device: dmlgpu.Device, **options: Any) -> np.ndarray[Any, Any]:
    if options.pop("operator") == "sum":
        return np.asarray(dmlgpu.cumulative_sum(x, device=device, **options))
    options.pop("precision")
    return np.asarray(dmlgpu.cumulative_prod(x, device=device, **options))


def parts_of(x: np.ndarray[Any, Any], axis: int, cut: list[int], reverse: bool) -> Iterator[np.ndarray[Any, Any]]:
    begin, length = 0, x.shape[axis]
    for size in cut:
        span = slice(length - begin - size, length - begin) if reverse else slice(begin, begin + size)
        yield np.moveaxis(np.moveaxis(x, axis, 0)[span], 0, axis)
        begin += size


def together(results: list[Any], axis: int, reverse: bool) -> np.ndarray[Any, Any]:
    arrays = [np.asarray(result) for result in results]
    return np.concatenate(arrays[::-1] if reverse else arrays, axis=axis)


@pytest.mark.combinations
@pytest.mark.parametrize("seed", range(FIRST_DRAW, FIRST_DRAW + DRAWS))
def test_any_cutting_has_the_bits_of_the_whole(device: dmlgpu.Device, seed: int) -> None:
    x, options, cut, on_device = draw(seed)
    axis, reverse = options["axis"], options["reverse"]
    scan = dmlgpu.Scan(**options, device=device)
    results = []
    for number, part in enumerate(parts_of(x, axis, cut, reverse)):
        result = scan.push(dmlgpu.asarray(part, device) if on_device else part)
        assert isinstance(result, dmlgpu.DeviceArray) == on_device
        results.append(result)
        assert scan.settled == sum(each.shape[axis] for each in results) == scan.length // TILE * TILE
        if number % 3 == 1:
            scan = dmlgpu.Scan.resume(scan.state, device=device)
    results.append(scan.finish())
    assert scan.finished
    assert same_bits(together(results, axis, reverse), whole(x, device, **options))


def columns_draw(seed: int) -> Draw:
    """Return wide columns, of which some have exceptional tiles, as `draw` does."""
    random = np.random.default_rng(seed)
    operator, dtype = str(random.choice(["sum", "product"])), str(random.choice(DTYPES))
    many = int(random.choice([256, 267, 320, 512, 513, 1024] if np.dtype(dtype).itemsize > 1 else [513, 1024]))
    length = int(random.integers(1, 5_000_000 // many))
    inner = next(inner for inner in (32, 27, many) if many % inner == 0)
    shape: tuple[int, ...] = (length, many) if random.integers(2) else (length, many // inner, inner)
    x = data(random, dtype, shape, operator == "product")
    if np.dtype(dtype).kind == "f":
        most = float(np.finfo(dtype if dtype != "float16" else np.float32).max)
        # Each makes a tile exceptional: for ever, or, as the left fold has it, for that tile alone.
        patterns = [{0: np.nan}, {0: most}, {0: 0.0}, {0: -0.9 * most, 20: 0.9 * most, 21: 0.9 * most, 22: -0.9 * most}]
        if operator == "product":
            patterns[3] = {0: most**0.75, 20: most**-0.7, 40: most**-0.7, 41: most**0.65}
        with np.errstate(over="ignore"):
            for column in np.argwhere(random.random(shape[1:]) < random.choice([0, 0.1, 0.9])):
                row, pattern = int(random.integers(length)), patterns[random.integers(4)]
                for behind, value in pattern.items():
                    if row + behind < length:
                        x[(row + behind, *column)] = np.float64(value).astype(dtype)
    options = {
        "operator": operator,
        "axis": 0,
        "dtype": dtype,
        "exclusive": bool(random.integers(2)),
        "reverse": bool(random.integers(2)),
        "precision": "default",
    }
    cut = []
    while sum(cut) < length:
        cut.append(min(int(random.choice([100, 4096, 5000, 9000])), length - sum(cut)))
    return x, options, cut, bool(random.integers(2))


@pytest.mark.combinations
@pytest.mark.parametrize("software", [True, False], ids=["bands", "strips"])
@pytest.mark.parametrize("seed", range(FIRST_DRAW, FIRST_DRAW + DRAWS))
def test_any_cutting_of_columns_has_the_bits_of_the_whole(
    device: dmlgpu.Device, monkeypatch: pytest.MonkeyPatch, fresh_plans: None, seed: int, software: bool
) -> None:
    """Columns that pieces scan side by side, with carries in two forms; those of the last piece are the first form."""
    x, options, cut, on_device = columns_draw(seed)
    expected = whole(x, device, **options)
    near = 2**31 if seed % 5 == 0 else 0
    limits = changed(device.limits, software=software, near_elements=near, cores=1)
    monkeypatch.setattr(device, "limits", limits)
    scan = dmlgpu.Scan(**options, device=device)
    results = []
    for number, part in enumerate(parts_of(x, options["axis"], cut, options["reverse"])):
        results.append(scan.push(dmlgpu.asarray(part, device) if on_device else part))
        if number % 3 == 1:  # another kernel goes on
            monkeypatch.setattr(device, "limits", changed(limits, near_elements=2**31 - near))
        elif number % 3 == 2:
            monkeypatch.setattr(device, "limits", limits)
    results.append(scan.finish())
    assert same_bits(together(results, options["axis"], options["reverse"]), expected)


def have_look_backs_give_up(monkeypatch: pytest.MonkeyPatch, withhold_every: int) -> set[str]:
    """Have one workgroup in so many of look-backs stop, and others not wait long; return a set for kernels' names."""
    kernels: set[str] = set()

    def changed_pass(one: Pass) -> Pass:
        kernels.add(one.pipeline.kernel)
        constants = dict(one.pipeline.constants)
        if one.pipeline.kernel not in ("scan_lookback", "scan_strip_lookback") or constants.get("patience") == 0:
            return one
        constants |= {"withhold_every": withhold_every, "patience": 20}
        return replace(one, pipeline=replace(one.pipeline, constants=tuple(sorted(constants.items()))))

    def plan(*arguments: Any, **options: Any) -> PiecePlan:
        piece = plan_piece(*arguments, **options)
        return replace(piece, plan=replace(piece.plan, passes=tuple(map(changed_pass, piece.plan.passes))))

    monkeypatch.setattr("dmlgpu.runtime.device._plan_piece", plan)
    return kernels


@pytest.mark.combinations
@pytest.mark.parametrize("seed", range(FIRST_DRAW, FIRST_DRAW + DRAWS))
def test_any_cutting_has_these_bits_where_look_backs_give_up(
    device: dmlgpu.Device, monkeypatch: pytest.MonkeyPatch, fresh_plans: None, seed: int
) -> None:
    """Whichever kernel takes a piece, it goes on from what another has left where workgroups of it have stopped."""
    random = np.random.default_rng(seed)
    operator, dtype, width = str(random.choice(["sum", "product"])), str(random.choice(DTYPES)), random.integers(1, 41)
    exclusive, reverse = (bool(random.integers(2)) for _ in range(2))
    options = {"operator": operator, "axis": 0, "dtype": dtype, "exclusive": exclusive, "reverse": reverse}
    lengths = [int(size) for size in random.choice([3000, 2 * TILE, 9000, 17 * TILE + 5], 4)]
    x = data(random, dtype, (sum(lengths), int(width)), operator == "product")
    expected = whole(x, device, precision="default", **options)
    monkeypatch.setattr("dmlgpu.planning.policy._FAR_ELEMENTS", 0)
    have_look_backs_give_up(monkeypatch, int(random.choice([2, 3, 7])))
    limits, scan, results = device.limits, dmlgpu.Scan(**options, device=device), []
    for part in parts_of(x, 0, lengths, reverse):
        tuning = random_tuning(Random(int(random.integers(2**32))))
        monkeypatch.setattr(device, "limits", changed(limits, software=False, tuning=tuning))
        results.append(scan.push(part))
    results.append(scan.finish())
    assert same_bits(together(results, 0, reverse), expected)


@pytest.mark.parametrize("software", [True, False], ids=["bands", "strips"])
def test_columns_whose_spans_begin_at_places_of_their_own(
    device: dmlgpu.Device, monkeypatch: pytest.MonkeyPatch, fresh_plans: None, software: bool
) -> None:
    """Behind a tile that overflows in the canonical order and not in a left fold; also from one kernel to another."""
    x = np.random.default_rng(9).standard_normal((7 * TILE + 100, 512)).astype(np.float32)
    most = 0.9 * np.finfo(np.float32).max
    for tile, column in ((0, 0), (1, 3), (1, 4), (2, 100), (4, 3), (5, 511)):
        x[tile * TILE + 100 : tile * TILE + 123, column] = [-most, *[0] * 19, most, most, -most]
    expected = np.asarray(dmlgpu.cumulative_sum(x, axis=0, device=device))
    assert np.isfinite(expected).all()
    limits = changed(device.limits, software=software, near_elements=0, cores=1)
    for turns in ("columns", "columns, tiles"):
        scan, results = dmlgpu.Scan("sum", axis=0, device=device), []
        for begin in range(0, len(x), TILE):
            is_columns = turns == "columns" or begin // TILE % 2 == 0
            others = changed(limits, software=True, near_elements=2**31)
            monkeypatch.setattr(device, "limits", limits if is_columns else others)
            results.append(scan.push(x[begin : begin + TILE]))
        assert same_bits(together([*results, scan.finish()], 0, False), expected)


def test_columns_of_a_piece_that_is_longer_than_all_before(
    device: dmlgpu.Device, monkeypatch: pytest.MonkeyPatch, fresh_plans: None
) -> None:
    """In bands: some row of the piece has as many of its rows before it as the pieces before have."""
    monkeypatch.setattr(device, "limits", changed(device.limits, software=True, near_elements=0, cores=1))
    x = numbers((3 * TILE, 64), "float32")
    expected = np.asarray(dmlgpu.cumulative_sum(x, axis=0, device=device))
    scan = dmlgpu.Scan("sum", axis=0, device=device)
    results = [scan.push(x[:TILE]), scan.push(x[TILE:]), scan.finish()]
    assert same_bits(together(results, 0, False), expected)


@pytest.mark.combinations
@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "int64"])
def test_pieces_of_few_columns(
    device: dmlgpu.Device, monkeypatch: pytest.MonkeyPatch, fresh_plans: None, dtype: str
) -> None:
    """Tiles of strips go on from carries, which other kernels take and leave in turn."""
    random = np.random.default_rng(11)
    x = random.integers(-3, 4, (46_000, 65)).astype(dtype)
    if x.dtype.kind == "f":
        x[random.integers(0, len(x), 9), random.integers(0, 65, 9)] = random.choice([np.inf, -np.inf, np.nan], 9)
        x[:, 3] = np.finfo(dtype).max / 3
    gpu = changed(device.limits, software=False)
    others = replace(gpu, tuning=replace(gpu.tuning, tile_columns=2**32))
    firsts = []

    def plan(*arguments: Any, **given: Any) -> PiecePlan:
        piece = plan_piece(*arguments, **given)
        firsts.extend([one.pipeline.kernel for one in piece.plan.passes if not one.only_clears][:1])
        return piece

    monkeypatch.setattr("dmlgpu.runtime.device._plan_piece", plan)
    for operator, exclusive, reverse in (("sum", False, False), ("sum", True, True), ("product", False, True)):
        options = {"operator": operator, "axis": 0, "dtype": dtype, "exclusive": exclusive, "reverse": reverse}
        expected = whole(x, device, precision="default", **options)
        scan, results = dmlgpu.Scan(**options, device=device), []
        for number, part in enumerate(parts_of(x, 0, [17_000, 9000, 20_000], reverse)):
            limits = others if number == 1 else gpu
            monkeypatch.setattr(device, "limits", limits)
            results.append(scan.push(part))
        assert same_bits(together([*results, scan.finish()], 0, reverse), expected)
        assert "scan_strip_lookback" in firsts
        assert set(firsts) - {"scan_strip_lookback"}, "another kernel went on"
        firsts.clear()


@pytest.mark.combinations
@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("shape", [(3, 8200, 40), (2, 8200, 200), (2, 400_000)])
def test_pieces_wider_than_a_binding(device: dmlgpu.Device, dtype: str, shape: tuple[int, ...]) -> None:
    """Slices, and elements along the axis, are then taken some at a time."""
    limits = {"max-storage-buffer-binding-size": 2**20, "max-buffer-size": 2**28}
    x = np.random.default_rng(4).integers(-9, 9, shape).astype(dtype)
    axis = 1
    with dmlgpu.Device(device.description, limits=limits) as small:
        assert x.nbytes > max_bytes(small.limits)
        for on_device in (False, True):
            scan = dmlgpu.Scan("sum", axis=axis, dtype=dtype, device=small)
            parts = parts_of(x, axis, [5000, shape[axis] - 5000], False)
            results = [scan.push(dmlgpu.asarray(part, small) if on_device else part) for part in parts]
            found = together([*results, scan.finish()], axis, False)
            assert same_bits(found, whole(x, device, operator="sum", axis=axis, dtype=dtype))


@pytest.mark.parametrize("device_views", [False, True])
def test_views_of_any_strides(device: dmlgpu.Device, device_views: bool) -> None:
    base = np.random.default_rng(5).standard_normal((6, 9001, 4)).astype(np.float32)
    x = base.transpose(2, 1, 0)[::-1, ::-1]
    scan = dmlgpu.Scan("sum", axis=1, device=device)
    if device_views:
        on_device = dmlgpu.asarray(base, device).transpose(2, 1, 0)[::-1, ::-1]
        results = [scan.push(on_device[:, :5000]), scan.push(on_device[:, 5000:])]
    else:
        results = [scan.push(x[:, :5000]), scan.push(x[:, 5000:])]
    found = together([*results, scan.finish()], 1, False)
    assert same_bits(found, np.asarray(dmlgpu.cumulative_sum(x, axis=1, device=device)))


def test_bits_are_the_references(device: dmlgpu.Device) -> None:
    """Not only those of the same kernels in one call."""
    x = np.random.default_rng(6).standard_normal(40_000).astype(np.float32)
    scan = dmlgpu.Scan("sum", axis=0, device=device)
    found = together([*(scan.push(part) for part in np.array_split(x, 7)), scan.finish()], 0, False)
    assert found.tobytes() == np.asarray(reference.cumulative(x, "sum", axis=0)).tobytes()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis", "steps", "expected"),
    [((20_000, 30), 0, [9000, 9000, 2000], [1, 1, 0, 1]), ((3, 200_003), 1, [80_000, 80_000, 40_003], [1, 2, 2, 1])],
)
def test_few_tiles_are_scanned_together_with_the_elements_that_wait(
    device: dmlgpu.Device,
    monkeypatch: pytest.MonkeyPatch,
    reverse: bool,
    shape: tuple[int, int],
    axis: int,
    steps: list[int],
    expected: list[int],
) -> None:
    """Of many the rest has a run of its own, and is copied as it lies; in either byte order."""
    x = np.random.default_rng(5).standard_normal(shape).astype(np.float32)
    runs = 0
    real = type(device).run_piece

    def run_piece(*args: Any, **kwargs: Any) -> Any:
        nonlocal runs
        runs += 1
        return real(*args, **kwargs)

    monkeypatch.setattr(type(device), "run_piece", run_piece)
    scan = dmlgpu.Scan("sum", axis=axis, reverse=reverse, device=device)
    parts = np.split(x, np.cumsum(steps[::-1] if reverse else steps)[:-1], axis=axis)
    results, counted = [], []
    for number, part in enumerate(parts[::-1] if reverse else parts):
        results.append(scan.push(part.astype(">f4") if number == 1 else part))
        counted.append(runs)
    results.append(scan.finish())
    assert np.diff([0, *counted, runs]).tolist() == expected
    whole = dmlgpu.cumulative_sum(x, axis=axis, reverse=reverse, device=device)
    assert same_bits(together(results, axis, reverse), np.asarray(whole))


@pytest.mark.parametrize("length", [100, 5000])
@pytest.mark.parametrize("on_device", [False, True])
def test_what_was_pushed_is_the_caller_s_again(device: dmlgpu.Device, length: int, on_device: bool) -> None:
    x = np.ones(length, np.int32)
    given = dmlgpu.asarray(x, device) if on_device else x
    scan = dmlgpu.Scan("sum", axis=0, device=device)
    settled = scan.push(given)
    if isinstance(given, dmlgpu.DeviceArray):
        dmlgpu.cumulative_sum(given, out=given)
        given.release()
    else:
        x[:] = 100
    assert scan.finish()[-1] == length
    assert settled.shape == (length // TILE * TILE,)


ON_DEVICES = [
    ("float32", (900_000,), 0, {}),
    ("int64", (200_000, 3), 0, {"reverse": True}),
    ("float32", (200_000, 3), 0, {"monotone": True}),
    ("float16", (3, 250_000), 1, {"exclusive": True}),
    ("float64", (40_000, 40), 0, {}),
    ("float32", (30_000, 512), 0, {"reverse": True}),
    ("int16", (30_000, 512), 0, {}),
    ("uint8", (30_000, 517), 0, {}),
]


@pytest.mark.combinations
@pytest.mark.parametrize("software", [True, False], ids=["software", "gpu"])
@pytest.mark.parametrize(("dtype", "shape", "axis", "options"), ON_DEVICES)
def test_pushes_of_device_arrays_do_not_wait_for_the_device(
    device: dmlgpu.Device,
    monkeypatch: pytest.MonkeyPatch,
    fresh_plans: None,
    dtype: str,
    shape: tuple[int, ...],
    axis: int,
    options: dict[str, bool],
    software: bool,
) -> None:
    """Neither for the carries nor for the elements of an unfinished tile; a state does, and finish."""
    x = np.random.default_rng(8).integers(0, 50, shape).astype(dtype)
    reverse = options.get("reverse", False)
    expected = np.asarray(dmlgpu.cumulative_sum(x, axis=axis, dtype=dtype, device=device, **options))
    monkeypatch.setattr(device, "limits", changed(device.limits, software=software, near_elements=0))
    device.subnormals()
    cut = [shape[axis] // 3 + 5] * 2 + [100]
    parts = [dmlgpu.asarray(part, device) for part in parts_of(x, axis, [*cut, shape[axis] - sum(cut)], reverse)]
    reads = 0
    read = Transfers.read

    def counted(transfers: Transfers, buffer: Any, *of: Any) -> None:
        nonlocal reads
        reads += len(of)
        read(transfers, buffer, *of)

    monkeypatch.setattr(Transfers, "read", counted)
    scan = dmlgpu.Scan("sum", axis=axis, dtype=dtype, device=device, **options)
    results: list[Any] = [scan.push(part) for part in parts]
    assert reads == 0
    later = dmlgpu.Scan.resume(scan.state, device=device)
    assert reads > 0
    last = scan.finish()
    assert same_bits(last, later.finish())
    assert same_bits(together([*results, last], axis, reverse), expected)


@pytest.mark.combinations
@pytest.mark.parametrize("seed", range(12))
def test_pieces_come_from_anywhere(device: dmlgpu.Device, seed: int) -> None:
    """From the host, from a device and from another one in turn, after which elements and carries go."""
    random = np.random.default_rng(seed)
    x, options, cut, _ = draw(seed + 1000) if seed % 2 else columns_draw(seed + 1000)
    axis, reverse = options["axis"], options["reverse"]
    scan, results = dmlgpu.Scan(**options), []
    with dmlgpu.Device(device.description) as other:
        for part in parts_of(x, axis, cut, reverse):
            place = random.choice(["host", "here", "there"])
            given = part if place == "host" else dmlgpu.asarray(part, device if place == "here" else other)
            results.append(np.asarray(scan.push(given)))
            assert scan.settled == scan.length // TILE * TILE
        results.append(scan.finish())
    assert same_bits(together(results, axis, reverse), whole(x, device, **options))


def test_columns_are_counted_anew_before_their_elements_are_too_many(
    device: dmlgpu.Device, monkeypatch: pytest.MonkeyPatch, fresh_plans: None
) -> None:
    """For which the host reads the carries once in a while; some columns are exceptional."""
    monkeypatch.setattr(planning_pieces, "_MOST_TILES", 5)
    monkeypatch.setattr(device, "limits", changed(device.limits, software=True, near_elements=0, cores=1))
    x = np.random.default_rng(9).standard_normal((40 * TILE, 256)).astype(np.float32)
    most = 0.9 * np.finfo(np.float32).max
    for tile, column in ((0, 0), (1, 3), (6, 4), (20, 100), (33, 255)):
        x[tile * TILE + 100 : tile * TILE + 123, column] = [-most, *[0] * 19, most, most, -most]
    scan = dmlgpu.Scan("sum", axis=0, device=device)
    results = [scan.push(dmlgpu.asarray(part, device)) for part in np.split(x, 20)]
    expected = dmlgpu.cumulative_sum(x, axis=0, device=device)
    assert same_bits(together([*results, scan.finish()], 0, False), np.asarray(expected))


@pytest.mark.parametrize("length", [100, 9000])
def test_what_waits_on_a_device_that_is_gone_is_gone(device: dmlgpu.Device, length: int) -> None:
    """Each call says so, and leaves the scan as it was."""
    ends = (("release", DeviceReleasedError), ("lost", DeviceLostError))
    for end, error in ends:
        used = dmlgpu.Device(device.description)
        scan = dmlgpu.Scan("sum", axis=0)
        scan.push(dmlgpu.asarray(np.ones(length, np.int32), used))
        if end == "lost":
            used.gpu_device.destroy()
        else:
            used.release()
        calls: list[Any] = [
            lambda scan=scan: scan.state,
            scan.finish,
            lambda scan=scan: scan.push(np.ones(9000, np.int32)),
        ]
        for call in calls:
            with pytest.raises(error):
                call()
        assert (scan.length, scan.settled, scan.finished) == (length, length // TILE * TILE, False)


def test_types_are_those_of_one_call(device: dmlgpu.Device) -> None:
    for dtype, expected in (("int8", "int64"), ("uint16", "uint64"), ("bool", "int64"), ("float16", "float16")):
        x = np.ones(5000, dtype)
        scan = dmlgpu.Scan("sum", axis=0, device=device)
        assert scan.push(x).dtype == scan.push(x).dtype == np.dtype(expected)
        assert scan.finish().dtype == np.dtype(expected)
    scan = dmlgpu.Scan("sum", axis=0, dtype="float64", device=device)
    assert scan.push(np.ones(5000, np.int8))[-1] == 4096.0


def test_empty_slices(device: dmlgpu.Device) -> None:
    scan = dmlgpu.Scan("sum", axis=0, device=device)
    assert scan.push(np.ones((5000, 0), np.float32)).shape == (4096, 0)
    assert scan.finish().shape == (904, 0)
    scan = dmlgpu.Scan("sum", axis=0, device=device)
    assert scan.push(np.ones((0, 4), np.float32)).shape == (0, 4)
    assert scan.finish().shape == (0, 4)


def test_pushes_of_several_threads_are_taken_one_after_the_other(
    device: dmlgpu.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one computes, another one, a finish and a state begin, and wait."""
    scan = dmlgpu.Scan("sum", axis=0, device=device)
    x = np.ones(5000, np.float32)
    compute, results, states = dmlgpu.Scan._compute, [], []
    threads = [
        threading.Thread(target=lambda: results.append(scan.push(x))),
        threading.Thread(target=lambda: states.append(dmlgpu.Scan.resume(scan.state))),
    ]

    def meanwhile(self: dmlgpu.Scan, *args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(dmlgpu.Scan, "_compute", compute)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(0.5)  # ends before that where nothing makes it wait
        return compute(self, *args, **kwargs)

    monkeypatch.setattr(dmlgpu.Scan, "_compute", meanwhile)
    results.append(scan.push(x))
    for thread in threads:
        thread.join()
    assert states[0].length in (5000, 10_000)
    assert (scan.length, scan.settled) == (10_000, 8192)
    results.append(scan.finish())
    assert np.array_equal(np.sort(np.concatenate(results)), np.arange(1, 10_001))


def test_many_pushes_of_two_threads(device: dmlgpu.Device) -> None:
    scan = dmlgpu.Scan("sum", axis=0, device=device)
    with ThreadPoolExecutor(2) as pool:
        parts = list(pool.map(lambda _: scan.push(np.ones(5000, np.float32)), range(40)))
    assert sum(map(len, [*parts, scan.finish()])) == 200_000


@pytest.mark.parametrize("error", [DeviceError("lost"), KeyboardInterrupt()])
def test_a_push_that_fails_leaves_the_scan_as_it_was(
    device: dmlgpu.Device, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    scan = dmlgpu.Scan("sum", axis=0, device=device)

    def fail(*_args: Any, **_options: Any) -> None:
        raise error

    before = scan.state
    with monkeypatch.context() as patch:
        patch.setattr(pieces, "scan_cube", fail)
        with pytest.raises(type(error)):
            scan.push(np.ones(5000, np.float32))
    assert scan.state == before
    assert scan._treatment is None
    with ThreadPoolExecutor(1) as pool:  # the section is free
        assert len(pool.submit(scan.push, np.ones(5000, np.float32)).result()) == 4096


def test_ctrl_c_leaves_a_scan_as_it_was(device: dmlgpu.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = dmlgpu.Scan("sum", axis=0, device=device)
    compute = dmlgpu.Scan._compute

    def interrupted(self: dmlgpu.Scan, *args: Any, **kwargs: Any) -> Any:
        result = compute(self, *args, **kwargs)
        signal.raise_signal(signal.SIGINT)
        return result

    with monkeypatch.context() as patch:
        patch.setattr(dmlgpu.Scan, "_compute", interrupted)
        with pytest.raises(KeyboardInterrupt):
            scan.push(np.ones(5000, np.float32))
    assert (scan.length, scan.settled) == (0, 0)
    assert len(scan.push(np.ones(5000, np.float32))) == 4096


# States


def test_a_scan_can_be_pickled_and_goes_on_elsewhere(device: dmlgpu.Device) -> None:
    x = np.random.default_rng(7).standard_normal((20_000, 3)).astype(np.float32)
    scan = dmlgpu.Scan("sum", axis=0, exclusive=True, device=device)
    first = scan.push(x[:7000])
    with dmlgpu.Device(device.description) as other:
        later = dmlgpu.Scan.resume(pickle.loads(pickle.dumps(scan.state)), device=other)
        second = [later.push(x[7000:]), later.finish()]
    expected = np.asarray(dmlgpu.cumulative_sum(x, axis=0, exclusive=True, device=device))
    assert same_bits(together([first, *second], 0, False), expected)
    copied = pickle.loads(pickle.dumps(scan))
    assert (copied.length, copied.settled) == (scan.length, scan.settled) == (7000, 4096)
    assert copied.state == scan.state


def test_copies_and_pickles_go_on_with_the_device(device: dmlgpu.Device) -> None:
    with dmlgpu.Device(device.description) as other:
        for given in (other, other.summary, device.description.index):
            scan = dmlgpu.Scan("sum", axis=0, device=given)
            scan.push(np.ones(100, np.float32))
            for twin in (copy.copy(scan), copy.deepcopy(scan)):
                assert twin._device is given
                assert twin.state == scan.state
            pickled = pickle.loads(pickle.dumps(scan))
            assert pickled._device == (None if given is other else given)
            assert pickled.state == scan.state
        twin = copy.copy(dmlgpu.Scan("sum", axis=0, device=other))
    with pytest.raises(DeviceReleasedError):  # it works there, and nowhere else
        twin.push(np.ones(5000, np.float32))


@pytest.mark.parametrize("dtype", ["float32", "int32", "float64"])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_state_has_nothing_of_what_memory_held_before(
    device: dmlgpu.Device, monkeypatch: pytest.MonkeyPatch, dtype: str, axis: int
) -> None:
    """Accumulators of a word leave one of their two words alone."""
    temporary = device._memory.temporary

    def filled(owner: dmlgpu.Device, nbytes: int) -> Any:
        buffer = temporary(owner, nbytes)
        device._transfers.write(buffer, 0, np.full(nbytes // 4, fillings[len(states)], np.uint32))
        return buffer

    monkeypatch.setattr(device._memory, "temporary", filled)
    x = numbers((3, 2 * TILE) if axis else (2 * TILE, 3), dtype)
    fillings = (0, 0x12345678)
    states: list[bytes] = []
    for _ in fillings:
        scan = dmlgpu.Scan("sum", axis=axis, dtype=dtype, device=device)
        scan.push(x)
        states.append(scan.state)
    assert states[0] == states[1]


def test_a_state_is_small() -> None:
    scan = dmlgpu.Scan("sum", axis=0)
    for _ in range(10):
        scan.push(np.ones((4096, 2), np.float32))
    assert len(scan.state) < 2 * 4 * CARRY_WORDS + 700
    scan.push(np.ones((4095, 2), np.float32))
    assert len(scan.state) < 2 * 4 * CARRY_WORDS + 700 + 4095 * 2 * 4


def test_damaged_states_are_refused() -> None:
    scan = dmlgpu.Scan("sum", axis=0)
    scan.push(np.arange(5000))
    state = scan.state
    assert dmlgpu.Scan.resume(state).settled == 4096
    for i in range(0, len(state), 97):
        changed = bytearray(state)
        changed[i] ^= 1
        with pytest.raises(ArgumentError, match=r"^state (is damaged|is none of|has version)"):
            dmlgpu.Scan.resume(bytes(changed))
        with pytest.raises(ArgumentError, match=r"^state (is damaged|is none of)"):
            dmlgpu.Scan.resume(state[:i])
    version = bytearray(state)
    version[len(pieces._MAGIC)] = 9
    with pytest.raises(ArgumentError, match=r"^state has version 9, and this dmlgpu reads version 1: resume with"):
        dmlgpu.Scan.resume(bytes(version))
    for wrong in (None, "text", 5, np.zeros(3)):
        with pytest.raises(ArrayTypeError, match=r"^state is .*; give the bytes that a Scan has as \.state$"):
            dmlgpu.Scan.resume(wrong)  # type: ignore[arg-type]


def with_header(state: bytes, header: Any, body: bytes | None = None) -> bytes:
    """Return a state with another header, maybe another body, and the checksum of its own."""
    magic, size = len(pieces._MAGIC), len(pieces._MAGIC) + 4
    text = json.dumps(header).encode()
    if body is None:
        body = state[size + 4 + int.from_bytes(state[size : size + 4], "little") : -32]
    content = state[:magic] + state[magic:size] + len(text).to_bytes(4, "little") + text + body
    return content + hashlib.sha256(content).digest()


def header_of(state: bytes) -> dict[str, Any]:
    begin = len(pieces._MAGIC) + 8
    header: dict[str, Any] = json.loads(state[begin : begin + int.from_bytes(state[begin - 4 : begin], "little")])
    return header


@pytest.mark.parametrize("pushed", [0, 100, 5000])
def test_states_of_other_options_are_refused(device: dmlgpu.Device, pushed: int) -> None:
    """Each entry that is needed is missed by name, and none that is not known is passed over."""
    scan = dmlgpu.Scan("sum", axis=0, dtype="float64", device=device)
    if pushed:
        scan.push(np.ones(pushed))
    state, header = scan.state, header_of(scan.state)
    assert dmlgpu.Scan.resume(with_header(state, header)).state == state
    expected = {"operator", "axis", "exclusive", "reverse", "precision", "monotone", "dtype", "length"}
    expected |= {"sizes", "source", "carries"} if pushed else set()
    expected |= {"device", "subnormals"} if pushed == 5000 else set()
    assert header.keys() == expected
    for name in header:
        changed = with_header(state, {each: value for each, value in header.items() if each != name})
        if name == "monotone":  # sums were not, before there was such an option
            assert dmlgpu.Scan.resume(changed).state == state
            continue
        text = rf"^state lacks '{name}', needed to go on: resume it with the dmlgpu that made it$"
        with pytest.raises(ArgumentError, match=text):
            dmlgpu.Scan.resume(changed)
    with pytest.raises(ArgumentError, match=r"^state lacks 'axis', 'length', needed to go on"):
        dmlgpu.Scan.resume(with_header(state, {k: v for k, v in header.items() if k not in ("axis", "length")}))
    with pytest.raises(ArgumentError, match=r"^state has 'modulus', unknown to this dmlgpu: resume it with"):
        dmlgpu.Scan.resume(with_header(state, header | {"modulus": 7}))


def resumed_is_refused(state: bytes, text: str) -> None:
    with pytest.raises(ArgumentError, match=rf"^state {text}.*: resume it with the dmlgpu that made it$"):
        dmlgpu.Scan.resume(state)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("operator", ["mean", None, ["sum"]]),
        ("axis", [None, 0.0, True, "0"]),
        ("exclusive", [0, None, "no"]),
        ("reverse", [1, None]),
        ("monotone", [1, {}]),
        ("precision", ["exact", None, []]),
        ("dtype", ["float128", "f8", 5, {}]),
        ("length", [-1, 5000.0, None, "5000", True]),
        ("sizes", [None, 0, [-1], [0.0], [None], "0", {}]),
        ("source", ["float128", None, [], "f4"]),
        ("carries", [1, None]),
        ("device", [None, 1]),
        ("subnormals", ["x", None, [], {"sum": 1}]),
    ],
)
def test_states_of_unknown_values_are_refused(device: dmlgpu.Device, name: str, values: list[Any]) -> None:
    scan = dmlgpu.Scan("sum", axis=0, device=device)
    scan.push(np.ones(5000, np.float32))
    state, header = scan.state, header_of(scan.state)
    for value in values:
        resumed_is_refused(with_header(state, header | {name: value}), rf"has .* as '{name}', unknown to this dmlgpu")


def test_states_whose_values_do_not_fit_each_other_are_refused(device: dmlgpu.Device) -> None:
    scan = dmlgpu.Scan("sum", axis=0, device=device)
    scan.push(np.ones((5000, 2), np.float32))
    state, header = scan.state, header_of(scan.state)
    for changes in (
        {"length": 4999},
        {"length": 100, "carries": False},
        {"carries": False},
        {"sizes": [0, 3]},
        {"sizes": [1, 2]},
        {"sizes": [0, 2**40]},
        {"sizes": [0, 2] + [1] * 7},
        {"sizes": []},
        {"axis": 2},
        {"source": "float64"},
        {"dtype": "bool"},
        {"precision": "compensated", "dtype": "float64"},
        {"monotone": True, "operator": "product"},
    ):
        resumed_is_refused(with_header(state, header | changes), r"says what this dmlgpu never writes \(.*\)")
    for body in (b"", state[-36:-32], bytes(10**4)):
        resumed_is_refused(with_header(state, header, body), "says what this dmlgpu never writes")
    nothing = dmlgpu.Scan("sum", axis=0).state
    resumed_is_refused(with_header(nothing, header_of(nothing), b"1234"), "says what this dmlgpu never writes")
    resumed_is_refused(with_header(state, [1]), r"has \[1\] of type list as its header")
    begin = len(pieces._MAGIC) + 4
    content = state[:begin] + (1).to_bytes(4, "little") + b"{"
    resumed_is_refused(content + hashlib.sha256(content).digest(), "has a header that is no JSON")


def test_a_state_of_no_slices_keeps_what_waits(device: dmlgpu.Device) -> None:
    scan = dmlgpu.Scan("sum", axis=0, device=device)
    scan.push(np.ones((5000, 0), np.float32))
    later = dmlgpu.Scan.resume(scan.state, device=device)
    assert later.settled == 4096
    assert later.finish().shape == (904, 0)


def test_a_device_that_treats_subnormals_in_another_way_is_refused(
    device: dmlgpu.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = dmlgpu.Scan("sum", axis=0, device=device)
    scan.push(np.ones(5000, np.float32))
    state = scan.state
    before = dict(device.subnormals())
    monkeypatch.setattr(type(device), "subnormals", lambda _: {name: not kept for name, kept in before.items()})
    later = dmlgpu.Scan.resume(state, device=device)
    with pytest.raises(
        DeviceError, match=r"^the scan so far was computed on '.*', which .*, and '.*', which .*: their"
    ):
        later.push(np.ones(5000, np.float32))
    whole_numbers = dmlgpu.Scan("sum", axis=0, device=device)
    whole_numbers.push(np.ones(5000, np.int32))  # integers don't care


# What does not fit


def refused(scan: dmlgpu.Scan, block: Any, error: type[DmlGpuError], text: str) -> None:
    before = scan.state
    with pytest.raises(error, match=text):
        scan.push(block)
    assert scan.state == before, "nothing is lost"


def test_pieces_that_do_not_fit(device: dmlgpu.Device) -> None:
    scan = dmlgpu.Scan("sum", axis=1, device=device)
    scan.push(np.ones((2, 5000, 3), np.float32))
    wanted = r"^block has shape \(.*\) while the pieces before it have \(2, any, 3\): cut the array along axis 1 only$"
    refused(scan, np.ones((2, 10, 4), np.float32), ArgumentError, wanted)
    refused(scan, np.ones((2, 10), np.float32), ArgumentError, wanted)
    refused(
        scan,
        np.ones((2, 10, 3)),
        ArrayTypeError,
        r"^block has dtype float64 while .* have float32: give all of them as one dtype, such as float64,",
    )
    refused(
        scan,
        np.ones((2, 10, 3), "i2"),
        ArrayTypeError,
        r"^block has dtype int16 .*: convert it with astype\('float32'\)$",
    )
    refused(scan, np.ones((2, 10, 3), complex), ArrayTypeError, r"^block has dtype complex128")
    refused(scan, "text", ArrayTypeError, r"^block ")
    along = "and the scan goes along axis 1: give pieces of at least 2 dimensions$"
    refused(scan, np.float32(1), AxisError, rf"^block has 0 dimensions, {along}")
    refused(scan, [1.0, 2.0], AxisError, rf"^block has 1 dimension, {along}")
    with dmlgpu.Device(device.description) as other:
        elsewhere = dmlgpu.asarray(np.ones((2, 9000, 3), np.float32), other)
        refused(scan, elsewhere, ArgumentError, r"^block is on the device .* while device= names")
    found = together([scan.push(np.ones((2, 10, 3), np.float32)), scan.finish()], 1, False)
    assert found[0, -1, 0] == 5010


def test_a_device_that_cannot_bind_a_tile(device: dmlgpu.Device) -> None:
    """Whole calls go in windows that end inside tiles; pieces cannot."""
    x = np.ones(40_000, np.float32)
    for binding, most in ((4096, 2**28), (1024, 2**17)):
        limits = {"max-storage-buffer-binding-size": binding, "max-buffer-size": most}
        with dmlgpu.Device(device.description, limits=limits) as small:
            message = (
                rf"^a scan in pieces or blocks binds whole tiles, .* binds {binding} at once: open it with a larger"
            )
            with pytest.raises(ArgumentError, match=message):
                dmlgpu.Scan("sum", axis=0, device=small).push(x)
            if x.nbytes > most:
                with pytest.raises(ArgumentError, match=message):
                    dmlgpu.cumulative_sum(x, device=small)
            short = x[:5000]
            expected = reference.cumulative(short, "sum", axis=0)
            assert same_bits(dmlgpu.cumulative_sum(short, device=small), expected)


def test_a_scan_ends_once(device: dmlgpu.Device) -> None:
    scan = dmlgpu.Scan("sum", axis=0, device=device)
    with pytest.raises(ArgumentError, match=r"^nothing was pushed, so there are no results and no shape: push a piece"):
        scan.finish()
    scan.push([1, 2])
    assert scan.finish().tolist() == [1, 3]
    for call in (lambda: scan.push([1]), scan.finish, lambda: scan.state, lambda: pickle.dumps(scan)):
        with pytest.raises(ArgumentError, match=r"^this scan is finished: make a new dmlgpu\.Scan for other slices$"):
            call()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"operator": "mean"}, ArgumentError, r"^operator is 'mean'; it is one of 'sum', 'product'$"),
        ({"axis": None}, ArrayTypeError, r"^axis is None"),
        ({"axis": 1.5}, ArrayTypeError, r"^axis is 1\.5"),
        ({"dtype": "text"}, ArrayTypeError, r"^dtype is 'text' of type str, which is no dtype"),
        ({"dtype": complex}, ArrayTypeError, r"^dtype is complex128, which has no element type"),
        ({"dtype": bool}, ArrayTypeError, r"^dtype is bool, which has no sums and products"),
        ({"exclusive": 2}, ArrayTypeError, r"^exclusive is 2 of type int; give True or False$"),
        ({"reverse": "no"}, ArrayTypeError, r"^reverse is 'no'"),
        ({"precision": "high"}, ArgumentError, r"^precision is 'high'"),
        ({"precision": "compensated", "dtype": int}, ArgumentError, r"a sum of int64: leave it out, as sums of i"),
        ({"precision": "compensated", "operator": "product"}, ArgumentError, r"this is a product: leave it out, or"),
    ],
)
def test_arguments(options: dict[str, Any], error: type[DmlGpuError], text: str) -> None:
    with pytest.raises(error, match=text):
        dmlgpu.Scan(**({"operator": "sum", "axis": 0} | options))


def test_arguments_that_the_first_piece_shows_to_be_wrong(device: dmlgpu.Device) -> None:
    cases: list[tuple[dict[str, Any], type[DmlGpuError], str]] = [
        ({"precision": "compensated"}, ArgumentError, r"^precision is 'compensated', which is for sums of float32"),
        (
            {"axis": 3},
            AxisError,
            r"^block has 1 dimension, and the scan goes along axis 3: give pieces of at least 4 dim",
        ),
        ({"axis": -(10**5000)}, AxisError, r"goes along axis .*: no array has more than 8 dimensions$"),
        ({"device": "no such device"}, DmlGpuError, r"no such device"),
    ]
    for options, error, text in cases:
        scan = dmlgpu.Scan(**({"operator": "sum", "axis": 0, "device": device} | options))
        with pytest.raises(error, match=text):
            scan.push(np.ones(5000))


# Plans


SOFTWARE, GPU = (
    changed(Limits(), binding_bytes=2**27, software=software, near_elements=0) for software in (True, False)
)


def planned(limits: Limits, dtype: str, sizes: tuple[int, int], strides: tuple[int, int], **options: bool) -> PiecePlan:
    """Return the plan of a piece, in the middle of slices if `continued`."""
    layout = Layout(sizes, strides)
    assert layout.count * by_name(dtype).itemsize <= max_bytes(limits)
    problem = scan_problem(by_name(dtype), Operator.SUM, layout, layout, axis=1)
    carries = np.zeros((sizes[0], CARRY_WORDS), np.uint32) if options["continued"] else None
    before = first_tile(problem, carries)
    return plan_piece(problem, limits, one_buffer=False, before=before, unfinished=options["unfinished"])


ENDS = [
    {"continued": False, "unfinished": True},
    {"continued": True, "unfinished": True},
    {"continued": True, "unfinished": False},
]


@pytest.mark.combinations
@pytest.mark.parametrize("limits", [SOFTWARE, GPU], ids=["software", "gpu"])
@pytest.mark.parametrize("side_by_side", [False, True])
@pytest.mark.parametrize("slices", [1, 3, 300, 1024, 5000])
@pytest.mark.parametrize("tiles", [1, 2, 40])
def test_plans_of_pieces(limits: Limits, side_by_side: bool, slices: int, tiles: int) -> None:
    """One box of slices, whose carries are all in the scratch memory at once; flags at the ends only."""
    for dtype in ("int8", "float16", "float32", "int64"):
        itemsize = by_name(dtype).itemsize
        many = min(slices, max_slices(limits, itemsize))
        length = min(tiles * TILE, max_length(limits, itemsize, many))
        for ends in ENDS:
            piece = planned(limits, dtype, (many, length), (1, many) if side_by_side else (length, 1), **ends)
            passes = piece.plan.passes
            assert {int(one.params["count"]) for one in passes} == {many}
            assert bool(passes[0].params["resume"]) == ends["continued"]
            assert bool(passes[-1].params["suspend"]) == ends["unfinished"]
            assert piece.plan.state_bytes >= 4 * prod(piece.form.shape)
            assert all(one.state_bytes <= piece.plan.state_bytes for one in passes)
            for one in passes:
                check_pass(one)
                assert serial_steps(one) <= MAX_SERIAL_STEPS


@pytest.mark.parametrize(
    ("limits", "dtype", "slices", "kernels"),
    [
        (SOFTWARE, "float32", 1024, {"scan_bands", SUSPECTS}),
        (SOFTWARE, "int16", 1024, {"scan_bands_exact"}),
        (SOFTWARE, "float32", 100, {"scan_bands", SUSPECTS}),
        (SOFTWARE, "float32", 102, {"scan_slices"}),
        (SOFTWARE, "float32", 1001, {"scan_bands", SUSPECTS}),
        (SOFTWARE, "float32", 22, {"scan_slices"}),
        (SOFTWARE, "int8", 507, {"scan_bands_exact"}),
        (SOFTWARE, "float32", 3, {"scan_serial_totals", "scan_carries", "scan_repair", "scan_serial_tiles"}),
        (GPU, "float32", 1024, {"scan_strips", SUSPECTS}),
        (GPU, "int16", 2048, {"scan_strips"}),
        (GPU, "int8", 5001, {"scan_strips"}),
        (GPU, "int8", 1021, {"scan_strip_lookback", "scan_tiles"}),
        (GPU, "float32", 200, {"scan_strip_lookback", "scan_strip_totals", "scan_repair", "scan_tiles"}),
        (GPU, "float32", 100, {"scan_lookback", "scan_repair", "scan_tiles"}),
    ],
)
def test_pieces_of_many_columns_have_the_kernels_of_columns(
    limits: Limits, dtype: str, slices: int, kernels: set[str]
) -> None:
    for ends in ENDS:
        piece = planned(limits, dtype, (slices, 2 * TILE), (1, slices), **ends)
        assert {kernel_of(one) for one in piece.plan.passes} == kernels


@pytest.mark.parametrize("kind", ["ordinary", "exceptional"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_pieces_that_are_read_twice(
    device: dmlgpu.Device, dtype: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `dmlgpu tune` may decide: each begins with a carry, and the last tile of each leaves one."""
    tuning = replace(device.limits.tuning, lookback_elements=0)
    monkeypatch.setattr(device, "limits", changed(device.limits, software=False, tuning=tuning))
    patience = set()

    def plan(*arguments: Any, **options: Any) -> PiecePlan:
        piece = plan_piece(*arguments, **options)
        patience.update(dict(one.pipeline.constants).get("patience") for one in piece.plan.passes)
        return piece

    monkeypatch.setattr("dmlgpu.runtime.device._plan_piece", plan)
    shape = (3, 21 * TILE + 77)
    x = np.exp(0.01 * np.random.default_rng(2).standard_normal(shape)).astype(dtype)
    if kind == "exceptional":  # near the end of the range, in tiles of two pieces
        x[1:, 10 * TILE + 5 :: 3 * TILE] = np.finfo(dtype).max * 0.6
        x[1:, 10 * TILE + 6 :: 3 * TILE] = -np.finfo(dtype).max * 0.6
    for operator in ("sum", "product"):
        scan = dmlgpu.Scan(operator, axis=1, dtype=dtype, device=device)
        results = [scan.push(part) for part in parts_of(x, 1, [9 * TILE, 5 * TILE, 7 * TILE + 77], False)]
        results.append(scan.finish())
        assert same_bits(together(results, 1, False), reference.cumulative(x, operator, axis=1))
    assert 0 in patience


@pytest.mark.parametrize(
    ("dtype", "operator", "width"), [("uint8", "sum", 32), ("int16", "sum", 32), ("uint16", "product", 24)]
)
def test_strips_go_on_from_slices_of_which_some_were_left(
    device: dmlgpu.Device, monkeypatch: pytest.MonkeyPatch, dtype: str, operator: str, width: int
) -> None:
    """A look-back that gives up in a piece's last tile leaves a carry of another form than it does for other slices.

    The strips of the next piece have several slices in a word.
    """
    monkeypatch.setattr(device, "limits", changed(device.limits, software=False))
    kernels = have_look_backs_give_up(monkeypatch, 3)
    shape = (2**21 // width + 2 * TILE, width)
    x = np.random.default_rng(1).integers(0, 1000, shape).astype(dtype) | np.dtype(dtype).type(1)
    scan = dmlgpu.Scan(operator, axis=0, dtype=dtype, device=device)  # type: ignore[arg-type]
    results = [scan.push(part) for part in (x[: 2 * TILE], x[2 * TILE :])]
    results.append(scan.finish())
    assert {"scan_lookback", "scan_strip_lookback"} <= kernels
    assert same_bits(together(results, 0, False), reference.cumulative(x, operator, axis=0))


@pytest.mark.parametrize(
    ("dtype", "shape"), [("uint8", (10_000, 519)), ("int16", (3, 9000, 173)), ("float16", (9000, 517))]
)
def test_pieces_of_unaligned_strips(
    device: dmlgpu.Device, dtype: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of which each leaves its words' carries to the next one."""
    whole_strips = replace(device.limits.tuning, tile_columns=2**32)
    monkeypatch.setattr(device, "limits", changed(device.limits, software=False, tuning=whole_strips))
    cells = set()

    def plan(*arguments: Any, **options: Any) -> PiecePlan:
        piece = plan_piece(*arguments, **options)
        cells.update(dict(one.pipeline.slots).get("cells", "none") for one in piece.plan.passes)
        return piece

    monkeypatch.setattr("dmlgpu.runtime.device._plan_piece", plan)
    x = data(np.random.default_rng(1), dtype, shape, False)
    scan = dmlgpu.Scan("sum", axis=-2, dtype=dtype, device=device)
    results = [scan.push(part) for part in parts_of(x, x.ndim - 2, [5000, shape[-2] - 5000], False)]
    results.append(scan.finish())
    assert ("unaligned_halves" if dtype == "float16" else "unaligned") in cells
    expected = whole(x, device, operator="sum", axis=-2, dtype=dtype)
    assert same_bits(together(results, x.ndim - 2, False), expected)


@pytest.mark.combinations
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", "float32", "int32", "int64"])
@pytest.mark.parametrize(("arrays", "width"), [(130, 2), (130, 3), (2, 3)])
def test_pieces_of_staged_strips(
    device: dmlgpu.Device, dtype: str, arrays: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind them comes one that is too short to be staged; of few arrays look-backs take and leave carries."""
    limits = changed(device.limits, software=False)
    monkeypatch.setattr(device, "limits", limits)
    monkeypatch.setattr("dmlgpu.planning.policy._FAR_ELEMENTS", 0)
    kernels = set()

    def plan(*arguments: Any, **options: Any) -> PiecePlan:
        piece = plan_piece(*arguments, **options)
        for one in piece.plan.passes:
            if dict(one.pipeline.slots).get("cells", "").startswith("staged"):
                kernels.add(one.pipeline.kernel)
        return piece

    monkeypatch.setattr("dmlgpu.runtime.device._plan_piece", plan)
    lengths = [TILE, TILE, 300] if arrays > 2 else [2 * TILE, 3 * TILE, 300]
    x = data(np.random.default_rng(1), dtype, (arrays, sum(lengths), width), False)
    for operator, exclusive in (("sum", False), ("product", True)):
        scan = dmlgpu.Scan(operator, axis=-2, dtype=dtype, exclusive=exclusive, device=device)
        results = [scan.push(part) for part in parts_of(x, 1, lengths, False)]
        results.append(scan.finish())
        options = {"operator": operator, "axis": -2, "dtype": dtype, "exclusive": exclusive}
        expected = whole(x, device, precision="default", **options)
        assert same_bits(together(results, 1, False), expected)
    assert kernels & {"scan_strips", "scan_strip_lookback"}


@pytest.mark.parametrize(("dtype", "kernel"), [("float32", "scan_serial_tiles"), ("int32", "scan_slices")])
def test_pieces_in_place_are_not_checked_first(dtype: str, kernel: str) -> None:
    """A phase that checks and one that writes would need a carry each; integers have but one."""
    layout = Layout((100, 2 * TILE), (2 * TILE, 1))
    problem = scan_problem(by_name(dtype), Operator.SUM, layout, layout, axis=1)
    for unfinished in (True, False):
        piece = plan_piece(problem, SOFTWARE, one_buffer=True, before=None, unfinished=unfinished)
        assert piece.plan.passes[-1].pipeline.kernel == kernel


def test_a_device_without_room_for_elements_that_wait(device: dmlgpu.Device) -> None:
    wide = dmlgpu.asarray(np.ones((1, 1), np.float64), device).broadcast_to((1, 2**28))
    scan = dmlgpu.Scan("sum", axis=0)
    with pytest.raises(DeviceMemoryError, match=r"^block has 268435456 slices, and 16 elements of each.* 34359738368 "):
        scan.push(wide)
    assert scan.length == 0
    scan.push(np.ones((1, 3)))
    assert scan.finish().tolist() == [[1, 1, 1]]


def test_few_elements_of_many_slices_wait_on_a_device(device: dmlgpu.Device) -> None:
    """There would be no room for 4096 of each."""
    x = np.arange(3 * 2**20, dtype=np.int64).reshape(3, -1)
    scan = dmlgpu.Scan("sum", axis=0)
    for row in range(3):
        assert scan.push(dmlgpu.asarray(x[row : row + 1], device)).shape[0] == 0
    assert same_bits(scan.finish(), np.cumsum(x, axis=0))


@pytest.mark.parametrize("reverse", [False, True])
def test_the_room_for_elements_that_wait_on_a_device_grows(
    device: dmlgpu.Device, monkeypatch: pytest.MonkeyPatch, reverse: bool
) -> None:
    monkeypatch.setattr(pieces, "_SMALL_ROOM", 0)
    x = np.random.default_rng(3).standard_normal((10_001, 3)).astype(np.float32)
    scan = dmlgpu.Scan("sum", axis=0, reverse=reverse)
    results = []
    for begin in range(0, len(x), 997):
        piece = x[::-1][begin : begin + 997][::-1] if reverse else x[begin : begin + 997]
        results.append(np.asarray(scan.push(dmlgpu.asarray(piece, device))))
    results.append(scan.finish())
    whole = np.concatenate(results[::-1] if reverse else results)
    assert same_bits(whole, dmlgpu.cumulative_sum(x, axis=0, reverse=reverse, device=device))


def test_a_piece_has_room_for_the_progress_of_its_slices() -> None:
    limits = changed(SOFTWARE, binding_bytes=2**25)
    slices = max_slices(limits, 2)
    for dtype in ("float16", "int8"):
        problem = scan_problem(by_name(dtype), Operator.SUM, *[Layout((slices, TILE), (TILE, 1))] * 2, axis=1)
        piece = plan_piece(problem, limits, one_buffer=False, before=1, unfinished=True)
        assert piece.plan.passes[-1].pipeline.kernel == "scan_slices"
        assert 0 < piece.plan.state_bytes <= 4 * 8 * slices


@pytest.mark.combinations
@pytest.mark.parametrize("operator", ["sum", "product"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_pieces_with_an_invocation_a_slice(
    device: dmlgpu.Device, monkeypatch: pytest.MonkeyPatch, fresh_plans: None, operator: str, dtype: str
) -> None:
    """In several windows; some tiles are exceptional, and the third piece is scanned by another kernel."""
    is_float = np.dtype(dtype).kind == "f"
    shape, axis = (16, 300_000), 1
    x = np.random.default_rng(3).standard_normal(shape)
    x = (np.exp(0.003 * x) if operator == "product" else x).astype(dtype) if is_float else (9 * x).astype(dtype)
    if is_float:  # the first ones overflow in the canonical order, and not in a left fold
        most = 0.9 * float(np.finfo(dtype).max)
        for row, column in ((1, 20), (2, 140_000), (3, 262_150)):
            x[row, column : column + 23] = np.array([-most, *[0] * 19, most, most, -most], dtype)
        x[4, 135_000], x[5, 150_000] = np.inf, np.nan
    options = {"operator": operator, "axis": axis, "dtype": dtype, "exclusive": is_float, "precision": "default"}
    expected = whole(x, device, **options)
    kernels: list[set[str]] = []

    def plan(*arguments: Any, **flags: Any) -> PiecePlan:
        piece = plan_piece(*arguments, **flags)
        kernels[-1].add(piece.plan.passes[-1].pipeline.kernel)
        return piece

    monkeypatch.setattr("dmlgpu.runtime.device._plan_piece", plan)
    near = changed(device.limits, software=True, near_elements=2**31, cores=1)
    scan, results = dmlgpu.Scan(**options, device=device), []
    for number, part in enumerate(parts_of(x, axis, [135_168, 5000, 5000, shape[axis] - 145_168], False)):
        monkeypatch.setattr(device, "limits", changed(near, software=number != 2))
        kernels.append(set())
        results.append(scan.push(part))
    results.append(scan.finish())
    assert ["scan_slices" in each for each in kernels] == [True, True, False, True]
    assert same_bits(together(results, axis, False), expected)


@pytest.mark.parametrize("before", [1, 5, 16, 31])
def test_carries_side_by_side_keep_what_they_say(before: int) -> None:
    """Also those of slices whose count of tiles began anew behind an exceptional one."""
    random = np.random.default_rng(before)
    carries = random.integers(0, 2**32, (12, CARRY_WORDS), np.uint32)
    flags = before % 16 | (0x100 if before >= 16 else 0)
    carries[:, 6:] = (flags, 0)
    carries[3, 6], carries[7, 6] = 0x103, 0x100
    for form in (CarryColumns(12, before, before), CarrySlices(12)):
        assert form.words(carries).shape == form.shape
        assert (form.carries(form.words(carries)) == carries).all()


def test_carries_move_to_where_the_next_piece_takes_them() -> None:
    random = np.random.default_rng(3)
    rows = [CarryRows(5, 16, before, after) for before in (0, 8) for after in (0, 8)]
    pairs: list[tuple[CarryForm, CarryForm]] = [(left, taken) for left in rows for taken in rows]
    pairs += [
        (CarryRows(5, 8, 0, 0), CarryRows(5, 8, 0, 0)),
        (CarryColumns(8, 3, 40), CarryColumns(8, 40, 41)),
        (CarrySlices(5), CarrySlices(5)),
        *((CarryNumbers(8, 4, strips, 8, 1), CarryNumbers(8, 4, strips, 8, 1)) for strips in (False, True)),
    ]
    for left, taken in pairs:
        words = random.integers(1, 2**31, left.shape, np.uint32)
        words[..., -1:] &= 0x10F
        if isinstance(left, CarryColumns):
            words[0] = 0  # no column is exceptional
        if isinstance(left, CarrySlices):
            words[7] = 0x103
        found = np.zeros(prod(taken.shape), np.uint32)
        copies = moves(left, taken)
        assert copies is not None
        for source, target, count in copies:
            found[target : target + count] = words.reshape(-1)[source : source + count]
        expected = taken.words(left.carries(words)).reshape(-1)
        used = taken.words(np.full((taken.slices, CARRY_WORDS), 0x10F, np.uint32)).reshape(-1) > 0
        if isinstance(taken, CarryColumns):
            used[: 2 * taken.slices] = False  # it goes by their place how many tiles there are
        assert (found[used] == expected[used]).all(), (left, taken)


def test_carries_that_copies_cannot_move() -> None:
    others: list[tuple[CarryForm, CarryForm]] = [
        (CarryRows(5, 16, 0, 8), CarryRows(5, 8, 0, 0)),
        (CarryRows(5, 16, 0, 8), CarrySlices(5)),
        (CarrySlices(5), CarryRows(5, 16, 0, 8)),
        (CarrySlices(5), CarrySlices(6)),
        (CarryColumns(8, 3, 40), CarryColumns(8, 39, 41)),
        (CarryColumns(8, 2**19 - 1, 2**19), CarryColumns(8, 2**19, 2**19 + 1)),
        (CarryColumns(8, 3, 40), CarrySlices(8)),
        (CarryNumbers(8, 4, False, 8, 1), CarryNumbers(8, 4, True, 8, 1)),
        (CarryNumbers(8, 1, True, 8, 1), CarryNumbers(8, 1, True, 8, 4)),
    ]
    for left, taken in others:
        assert moves(left, taken) is None, (left, taken)


@pytest.mark.parametrize(("in_strips", "is_packed"), [(False, False), (True, True), (True, False)])
@pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
@pytest.mark.parametrize("across", [12, 6, 3, 1])
def test_carries_of_integers_are_their_last_results(
    across: int, itemsize: int, in_strips: bool, is_packed: bool
) -> None:
    random = np.random.default_rng(itemsize)
    carries = random.integers(0, 2**32, (12, CARRY_WORDS), np.uint32)
    form = CarryNumbers(12, itemsize, in_strips, across, max(1, 4 // itemsize) if is_packed else 1)
    words = form.words(carries)
    assert words.shape == form.shape
    found = form.carries(words)
    used = np.array([2 ** (8 * min(itemsize, 4)) - 1, 2**32 - 1 if itemsize == 8 else 0], np.uint32)
    assert (found[:, 4:6] == carries[:, 4:6] & used).all()
    assert (found[:, 0:2] == found[:, 4:6]).all()
    assert (found[:, 6] == 0x100).all()
