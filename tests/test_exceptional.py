"""NaN, infinity, overflow and zeros in every kernel: where a left fold has them, with the bits of the reference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dmlgpu import dtypes, reference
from dmlgpu.layout import Layout
from dmlgpu.planning import scan as scans
from dmlgpu.planning.dispatch import Plan
from dmlgpu.planning.plan import KERNELS, plan_problem
from dmlgpu.planning.problem import Operator, ScanOptions, scan_problem
from dmlgpu.planning.scan import ScanPlanner
from dmlgpu.planning.windows import SPAN, TILE
from dmlgpu.runtime.device import Device

from .harness import (
    SUSPECTS,
    Posts,
    StripPosts,
    changed,
    check_scan,
    expected_scan,
    kernel_of,
    numbers,
    run_strips_without,
    run_without,
    scan,
    without_repairs,
)

BORDERS = (0, 1, 15, 16, 17, 255, 256, 4095, 4096, 4097, 65_535, 65_536)


def strewn(length: int, operator: str, dtype: str = "float32", *, first: int = 0) -> NDArray[Any]:
    """Return slices with one event each, around every border of runs, blocks, tiles and spans from `first` on."""
    top = np.finfo(dtype).max
    events: list[list[float]] = [[np.inf], [-np.inf], [np.nan], [np.inf, -np.inf], [top, top, -top]]
    if operator == "product":
        root = float(np.sqrt(top)) * 1.5
        events = [[np.inf], [np.nan], [0.0], [-0.0], [0.0, np.inf], [root, root, 1 / root, 1 / root], [root, root, 0.0]]
    places = [place for place in BORDERS if first <= place < length]
    x = np.broadcast_to(numbers((length,), dtype, operator), (len(places) * len(events), length)).copy()
    for row, (place, event) in enumerate((place, event) for place in places for event in events):
        values = np.array(event, dtype)[: length - place]
        x[row, place : place + len(values)] = values
    return x


def strewn_with_classes(shape: tuple[int, ...], operator: str, dtype: str, often: float) -> NDArray[Any]:
    """Return slices with infinities, NaN and zeros at any place, and so far from each other; every fifth has none."""
    x, rng = numbers(shape, dtype, operator), np.random.default_rng(shape[1])
    where = rng.random(shape) < often
    where[::5] = False
    classes = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0], dtype)
    x[where] = rng.choice(classes, np.count_nonzero(where))
    return x


def cancelling(length: int) -> NDArray[np.float32]:
    """Return data whose left fold stays finite while the first two elements of every run but one overflow."""
    rng = np.random.default_rng(length)
    a, b = rng.uniform(2e38, 3e38, (2, length // 4 + 1))
    x = np.stack([a, b, -b, -a], axis=1).reshape(-1)[:length].astype(np.float32)
    x[:15] = rng.uniform(-1, 1, min(15, length))
    x[15:16] = -3e38
    return x


@pytest.mark.combinations
@pytest.mark.parametrize("operator", ["sum", "product"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_events_around_every_border(device: Device, kernel: str, operator: str) -> None:
    for length, first in ((300, 0), (4100, 0), (66_000, 4096)):
        x = strewn(length, operator, first=first)
        check_scan(device, x, operator, 1, kernel=kernel)
        check_scan(device, x, operator, 1, kernel=kernel, exclusive=True, reverse=True)


@pytest.mark.combinations
@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_events_in_other_types(device: Device, kernel: str, dtype: str) -> None:
    for operator in ("sum", "product"):
        check_scan(device, strewn(4500, operator, dtype), operator, 1, kernel=kernel)


@pytest.mark.combinations
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("kernel", ["rows", "lookback", "reduce_then_scan"])
def test_rows_of_whole_vectors(device: Device, kernel: str, dtype: str) -> None:
    """Elements and results go through workgroup memory: also where they take the elements' places."""
    for (operator, exclusive), length in product(product(("sum", "product"), (False, True)), (272, 4112)):
        x = strewn(length, operator, dtype)
        place = Layout.packed(x.shape)
        problem = {"exclusive": exclusive, "kernel": kernel, "source": place, "target": place}
        check_scan(device, x, operator, 1, **problem)


@pytest.mark.combinations
@pytest.mark.parametrize("operator", ["sum", "product"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_in_blocks(device: Device, dtype: str, operator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exceptional slice of a workgroup is a left fold; those beside it, of which it shares words, are not."""
    monkeypatch.setattr(device, "limits", replace(device.limits, software=False))
    for length, exclusive in product((16, 17, 49, 256, 304, 1024), (False, True)):
        x = np.repeat(strewn(length, operator, dtype), 8, axis=0)
        x[1::2] = numbers((len(x) // 2, length), dtype, operator)
        place = Layout.packed(x.shape)
        check_scan(device, x, operator, 1, exclusive=exclusive)
        check_scan(device, x, operator, 1, exclusive=exclusive, source=place, target=place)


@pytest.mark.combinations
@pytest.mark.parametrize("operator", ["sum", "product"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_behind_what_absorbs_in_blocks(
    device: Device, dtype: str, operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only classes count there. Others come behind it, at any distance, and signs change."""
    monkeypatch.setattr(device, "limits", replace(device.limits, software=False))
    for length, often in product((40, 256, 520, 1024), (0.003, 0.1)):
        x = strewn_with_classes((120, length), operator, dtype, often)
        check_scan(device, x, operator, 1)
        shifted = Layout.packed(x.shape, 1)  # float16 by others
        check_scan(device, x, operator, 1, source=shifted, target=shifted)
        check_scan(device, x, operator, 1, exclusive=True, reverse=True)


@pytest.mark.parametrize("length", [48, 80, 112])
def test_what_is_behind_the_slices_of_a_workgroup_does_not_count(
    device: Device, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invocations that are too few for another slice have the last one's end again, whose sum overflows."""
    monkeypatch.setattr(device, "limits", replace(device.limits, software=False))
    x = np.resize(ending(length), (100, length))
    assert np.isfinite(reference.cumulative(x, "sum", axis=1)).all()
    for exclusive in (False, True):
        check_scan(device, x, "sum", 1, exclusive=exclusive)


@pytest.mark.combinations
@pytest.mark.parametrize("kernel", KERNELS)
def test_along_the_first_axis(device: Device, kernel: str) -> None:
    for operator in ("sum", "product"):
        check_scan(device, np.ascontiguousarray(strewn(4500, operator).T), operator, 0, kernel=kernel)


def beside(length: int, operator: str, dtype: str) -> NDArray[Any]:
    """Return slices along the first axis; of neighbours in a word, one, both or neither are exceptional."""
    x = strewn(length, operator, dtype)
    rows = np.stack([x, numbers(x.shape, dtype, operator), x[::-1], x], axis=1).reshape(-1, length)
    return np.ascontiguousarray(rows.T)


def late(length: int, operator: str, dtype: str) -> NDArray[Any]:
    """Return slices along the first axis, of which some are exceptional in the fourth tile, and the last one is not.

    By an infinity; sums of float32 by a run that overflows by itself, and not behind what comes before it.
    """
    x = numbers((length, 40), dtype, operator)
    if (dtype, operator) == ("float32", "sum"):
        large, begin = np.float32(3e38), 3 * TILE
        for i, value in ((7, -large), (16, large), (17, large), (40, -large)):
            x[begin + i, 1::3] = value
    else:
        x[3 * TILE + 7, 1::3] = np.inf
    return x


def halves(length: int) -> NDArray[np.float16]:
    """Return slices along the first axis. A run in the first tile and one in the last, which is not full, overflow in
    float32 by themselves; the products up to them do not.
    """
    x = numbers((length, 160), "float16", "product")
    for run in (0, (length - 200) // 16 * 16):
        x[run : run + 8], x[run + 16 : run + 25], x[run + 30 : run + 33] = 1e-4, 6e4, 1e-4
    return x


def test_columns_go_on_behind_an_exceptional_tile(device: Device) -> None:
    x = halves(9000)
    with np.errstate(over="ignore"):
        assert np.isinf(np.prod(x[16:25], axis=0, dtype=np.float32)).all()
        assert np.isinf(np.prod(x[8816:8825], axis=0, dtype=np.float32)).all()
    assert np.isfinite(np.cumprod(x, axis=0, dtype=np.float32)).all()
    check_scan(device, x, "product", 0)
    check_scan(device, x, "product", 0, exclusive=True)


@pytest.mark.combinations
@pytest.mark.parametrize("operator", ["sum", "product"])
@pytest.mark.parametrize("less", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_in_bands(device: Device, dtype: str, less: int, operator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of whole vectors, and of rows that begin anywhere."""
    monkeypatch.setattr(device, "limits", changed(device.limits, software=True, near_elements=0, cores=2, columns=True))
    columns = np.concatenate([beside(9000, operator, dtype)] * 2, axis=1)
    columns = columns[:, : columns.shape[1] // 4 * 4 - less]
    layout = Layout.packed(columns.shape)
    problem = scan_problem(dtypes.by_dtype(columns.dtype), Operator(operator), layout, layout, axis=0)
    one = plan_problem(problem, replace(device.limits, float64=True)).passes[0]
    whole = "pairs" if dtype == "float16" else "quads"
    at_any_place = "packed" if (dtype, less) == ("float16", 1) else "words"
    assert dict(one.pipeline.slots)["fours"] == (at_any_place if less else whole)
    check_scan(device, columns, operator, 0)
    check_scan(device, columns, operator, 0, exclusive=True, reverse=True)


@pytest.mark.combinations
@pytest.mark.parametrize("operator", ["sum", "product"])
@pytest.mark.parametrize(("dtype", "odd"), [("float16", 0), ("float16", 1), ("float32", 0), ("float64", 0)])
def test_in_strips(device: Device, dtype: str, odd: int, operator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole, and in windows of a tile: a column goes on from what the second pass leaves, others from the first.

    The last window is a whole stretch of rows, which ends a tile, too.
    """
    columns = beside(2 * TILE + 1024, operator, dtype)
    columns = np.concatenate([columns] * -(-512 // columns.shape[1]), axis=1)
    columns = np.concatenate([columns, columns[:, : (columns.shape[1] + odd) % 2]], axis=1) if odd else columns
    for x, elements in ((columns[:9000], columns.size), (columns, columns.shape[1] * TILE)):
        whole_strips = replace(device.limits.tuning, tile_columns=2**32)
        limits = replace(device.limits, software=False, dispatch_elements=elements, tuning=whole_strips)
        monkeypatch.setattr(device, "limits", limits)
        layout = Layout.packed(x.shape)
        problem = scan_problem(dtypes.by_dtype(x.dtype), Operator(operator), layout, layout, axis=0)
        passes = plan_problem(problem, replace(device.limits, float64=True)).passes
        assert {kernel_of(one) for one in passes} == {"scan_strips", SUSPECTS}
        assert len(passes) == (2 if elements == columns.size else 6)
        check_scan(device, x, operator, 0)
        check_scan(device, x, operator, 0, exclusive=True, reverse=True)


@pytest.mark.combinations
@pytest.mark.parametrize("kernel", ["strips", "strip_lookback"])
@pytest.mark.parametrize("operator", ["sum", "product"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_in_staged_strips(
    device: Device, dtype: str, operator: str, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two columns, which are whole tiles in a look-back, and of some more; whole, and in windows of a tile."""
    columns = beside(2 * TILE + 1024, operator, dtype)
    for first in range(0, columns.shape[1] - 1, 2):
        x = np.ascontiguousarray(columns[:, first : first + 2 + first // 2 % 3])
        for elements in (x.size, x.shape[1] * TILE):
            monkeypatch.setattr(device, "limits", replace(device.limits, dispatch_elements=elements))
            layout = Layout.packed(x.shape)
            problem = scan_problem(dtypes.by_dtype(x.dtype), Operator(operator), layout, layout, axis=0)
            passes = plan_problem(problem, device.limits, kernel=kernel).passes
            assert "staged" in {dict(one.pipeline.slots).get("cells") for one in passes}
            check_scan(device, x, operator, 0, kernel=kernel)
            check_scan(device, x, operator, 0, exclusive=True, reverse=True, kernel=kernel)


@pytest.mark.parametrize("operator", ["sum", "product"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_later_tile_of_a_window_of_strips(
    device: Device, dtype: str, operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second pass begins with that tile, from its carry, and not with the window, and goes on in the next ones."""
    columns = late(6 * TILE + 100, operator, dtype)
    monkeypatch.setattr(device, "limits", replace(device.limits, dispatch_elements=2 * TILE * columns.shape[1]))
    element, layout = dtypes.by_name(dtype), Layout.packed(columns.shape)
    plan = plan_problem(scan_problem(element, Operator(operator), layout, layout, 0), device.limits, kernel="strips")
    assert [int(one.params["first"]) // TILE for one in plan.passes] == [0, 0, 2, 2, 4, 4, 6, 6]
    check_scan(device, columns, operator, 0, kernel="strips")


@pytest.mark.combinations
@pytest.mark.parametrize("kernel", KERNELS)
def test_tiles_that_overflow_one_after_the_other(device: Device, kernel: str) -> None:
    x = cancelling(150_000)
    with np.errstate(over="ignore"):
        assert np.isinf(x[16::16] + x[17::16]).all()
    assert np.isfinite(np.cumsum(x)).all()
    assert np.isfinite(reference.cumulative(x, "sum", axis=0)).all()
    check_scan(device, x, "sum", 0, kernel=kernel)
    rows = np.stack([cancelling(9000), numbers((9000,), np.float32), cancelling(9001)[1:]])
    check_scan(device, rows, "sum", 1, kernel=kernel, exclusive=True)


def barely(length: int) -> NDArray[np.float32]:
    """Return slices that overflow by a small part, and take it back: the large part first; the small one; neither.

    A fold of what is behind the border alone does not overflow, so that another order would come back from infinity.
    """
    x = np.zeros((3, length), np.float32)
    top = np.finfo(np.float32).max
    for row, (first, second) in enumerate(((top, 2.0**110), (2.0**110, top), (2.0**100, top))):
        x[row, 10], x[row, length - 10 : length - 8] = first, [second, -second]
    return x


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_small_part_overflows(device: Device, kernel: str) -> None:
    x = barely(5000)
    with np.errstate(over="ignore"):
        assert np.isinf(np.cumsum(x, axis=1, dtype=np.float32)[:, -1]).tolist() == [True, True, False]
    check_scan(device, x, "sum", 1, kernel=kernel)
    check_scan(device, np.append(x, -x, axis=1), "sum", 1, kernel=kernel, exclusive=True)


def peaks(length: int) -> NDArray[np.float32]:
    """Return slices of which one sum overflows and the next would come back, in each run of two blocks in turn."""
    x = np.zeros((32, length), np.float32)
    x[:, 0] = 2e38
    for row in range(32):
        peak = 256 * 9 * (row // 16) + 16 * (row % 16) + (7 * row + 3) % 15
        x[row, peak : peak + 2] += np.array([2e38, -2e38], np.float32)
    return x


@pytest.mark.parametrize("kernel", KERNELS)
def test_one_result_overflows(device: Device, kernel: str) -> None:
    for length in (4100, 4101):
        x = peaks(length)
        with np.errstate(over="ignore"):
            assert np.isinf(np.cumsum(x, axis=1)[:, -1]).all()
        check_scan(device, x, "sum", 1, kernel=kernel)


def ending(length: int) -> NDArray[np.float32]:
    """Return slices that end with an element which would overflow if it came again, as it does behind the end."""
    x = numbers((3, length), "float32", "sum")
    x[:, -1] = 2e38
    return x


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_is_behind_the_end_does_not_count(device: Device, kernel: str) -> None:
    for length in (20, *range(257, 273), 300, 4104, 4105, 4400):
        x = ending(length)
        expected = reference.cumulative(x, "sum", axis=1)
        assert np.isfinite(expected).all()
        assert not np.array_equal(np.cumsum(x, axis=1), expected)
        check_scan(device, x, "sum", 1, kernel=kernel)
        if length % 4 == 0:  # not by vectors of four
            check_scan(device, x, "sum", 1, kernel=kernel, source=Layout.packed(x.shape, 1))


@pytest.mark.parametrize("kernel", ["rows", "lookback", "reduce_then_scan", "serial"])
def test_windows_that_begin_inside_a_span(device: Device, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """21 tiles of which 11 fit: the second window begins in the first span and ends in the second."""
    monkeypatch.setattr(device, "limits", replace(device.limits, software=False, dispatch_elements=12 * TILE))
    x = numbers((21 * TILE - 5,), "float32", "sum")
    for reverse in (False, True):
        check_scan(device, x, "sum", 0, kernel=kernel, reverse=reverse)
    x[12 * TILE + 3] = np.inf
    check_scan(device, x, "sum", 0, kernel=kernel, exclusive=True)
    check_scan(device, recovering(21), "sum", 0, kernel=kernel)


def overflowing_span(tiles: int) -> NDArray[np.float32]:
    """Return a slice whose second span overflows in its last tile, though no result does: it began below zero."""
    x = np.zeros(tiles * TILE, np.float32)
    x[5] = -3e38
    x[[30 * TILE + 7, 31 * TILE + 9]] = 3e38
    x[35 * TILE] = 1e33
    return x


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_fold_of_spans_that_overflows_does_not_absorb(device: Device, kernel: str) -> None:
    x = overflowing_span(36)
    assert np.isfinite(reference.cumulative(x, "sum", axis=0)).all()
    check_scan(device, x, "sum", 0, kernel=kernel)


def recovering(tiles: int) -> NDArray[np.float32]:
    """Return a slice of -0 and numbers, one of whose runs overflows in part, while a loop comes back to 0."""
    x = numbers((tiles * TILE,), "float32", "sum")
    x[0] = -0.0
    x[111:115] = np.array([-1.5, 1, 1, -0.5]) * 2.0**127
    return x


@pytest.mark.parametrize("kernel", KERNELS)
def test_tiles_after_an_exceptional_one_are_ordinary(device: Device, kernel: str) -> None:
    x = recovering(5)
    assert np.isfinite(np.cumsum(x)).all()
    assert not np.array_equal(np.cumsum(x)[TILE:], reference.cumulative(x, "sum", axis=0)[TILE:])
    check_scan(device, x, "sum", 0, kernel=kernel)
    check_scan(device, np.stack([x, numbers(x.shape, np.float32, seed=1)]), "sum", 1, kernel=kernel, exclusive=True)


def loud(tiles: int) -> NDArray[np.float32]:
    """Return a slice that comes near overflow in its third span, and in its fourth, where nothing overflows."""
    x = numbers((tiles * TILE,), "float32", "sum")
    for place in (37 * TILE + 300, 53 * TILE + 7):
        x[place : place + 2] = 2.0**122, -(2.0**122)
    return x


@pytest.mark.parametrize("kernel", KERNELS)
def test_tiles_that_come_near_overflow_are_ordinary(device: Device, kernel: str) -> None:
    """The order goes on inside their span, from what came before them."""
    x = loud(60)
    check_scan(device, x, "sum", 0, kernel=kernel)
    check_scan(device, np.stack([x, x[::-1]]), "sum", 1, kernel=kernel, exclusive=True)


def handing_on(length: int) -> NDArray[np.float32]:
    """Return a slice whose first tile overflows in part, ends with a finite sum, and so makes the second overflow."""
    x = np.zeros(length, np.float32)
    x[15:18] = -3e38, 3e38, 2e38
    x[TILE + 2 : TILE + 4] = 2e38, -2e38
    return x


@pytest.mark.combinations
@pytest.mark.parametrize("kernel", KERNELS)
def test_what_an_exceptional_tile_hands_on_counts_in_the_next(device: Device, kernel: str) -> None:
    x = handing_on(3 * TILE)
    with np.errstate(over="ignore"):
        sums = np.cumsum(x)
    assert np.isfinite(sums[: TILE + 2]).all()
    assert np.isinf(sums[TILE + 2 :]).all()
    packed = Layout.packed(x.shape)
    check_scan(device, x, "sum", 0, kernel=kernel)
    check_scan(device, x, "sum", 0, kernel=kernel, source=packed, target=packed)
    check_scan(device, np.stack([x, numbers(x.shape, "float32")], axis=1), "sum", 0, kernel=kernel, exclusive=True)


def behind(operator: str, dtype: str) -> NDArray[Any]:
    """Return a slice that is absorbed early, by infinity or zero, and overflows in part again and again after that."""
    x = numbers((20 * TILE,), dtype, operator)
    x[10] = np.inf if operator == "sum" else -0.0
    top = np.finfo(dtype)
    large = -np.ldexp(1.0, top.maxexp - 1) if operator == "sum" else np.sqrt(top.max) * 1.5
    for place in (3 * TILE + 16, 6 * TILE + 300, 18 * TILE):
        x[place : place + 2] = large
    return x


@pytest.mark.combinations
@pytest.mark.parametrize("operator", ["sum", "product"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_what_is_behind_an_absorbing_result_does_not_overflow(
    device: Device, kernel: str, dtype: str, operator: str
) -> None:
    x = behind(operator, dtype)
    expected = reference.cumulative(x, operator, axis=0)
    assert np.all(expected[10:] == np.inf) if operator == "sum" else np.all(expected[10:] == 0)
    check_scan(device, x, operator, 0, kernel=kernel)


def nearly_zero(length: int) -> NDArray[np.float64]:
    """Return slices whose first span's product has a word, or all bits but one, as zero has them."""
    x = numbers((2, length), np.float64, "product")
    x[:, :SPAN] = 1
    x[1, 0] = 2.0**-1046
    return x


@pytest.mark.combinations
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_product_that_is_nearly_zero_absorbs_nothing(device: Device, kernel: str) -> None:
    check_scan(device, nearly_zero(SPAN + 3 * TILE + 5), "product", 1, kernel=kernel)


def twice(operator: str, dtype: str) -> NDArray[Any]:
    """Return slices that are absorbed early, by each of what absorbs, meet something else, and go on for a tile."""
    early = [[np.inf], [-np.inf], [np.nan]]
    if operator == "product":
        # By itself a zero is no exceptional result; with a run behind it whose own product overflows it is.
        large = np.sqrt(np.finfo(dtype).max) * 1.5
        early += [[0.0], [-0.0], [0.0, large, large], [-0.0, large, large]]
    late = [[np.nan], [np.inf], [-np.inf], [0.0], [-0.0], [-1.0], [2.0], [np.inf, -np.inf], [0.0, np.inf], [-1.0, -1.0]]
    if dtype == "float64":
        # The least NaN, and numbers of which one word is zero.
        late += np.array([[0x7FF0000000000001], [1], [2**31], [2**52]], np.uint64).view(np.float64).tolist()
    rows = [(one, others, 20) for one, others in product(early, late)]
    rows += [([np.inf], other, 160 + place) for other, place in product(late[:6], range(16))]
    x = np.broadcast_to(numbers((5 * TILE,), dtype, operator), (len(rows), 5 * TILE)).copy()
    for row, (one, others, place) in zip(x, rows, strict=True):
        row[10], row[20 : 19 + len(one)] = one[0], one[1:]
        row[3 * TILE + place : 3 * TILE + place + len(others)] = others
    return x


@pytest.mark.combinations
@pytest.mark.parametrize("operator", ["sum", "product"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_two_events(device: Device, kernel: str, dtype: str, operator: str) -> None:
    check_scan(device, twice(operator, dtype), operator, 1, kernel=kernel)


def edge(dtype: str) -> NDArray[Any]:
    """Return slices whose product is the smallest normal number, the next larger one, and a subnormal, then lifted."""
    smallest = np.finfo(dtype).smallest_normal
    x = np.ones((3, 20 * TILE), dtype)
    x[:, 10], x[:, 17 * TILE + 5] = (smallest, np.nextafter(smallest, 1), -smallest / 2), 4
    return x


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_product_down_to_the_smallest_normal_number_absorbs(device: Device, kernel: str, dtype: str) -> None:
    """And the next larger number does not."""
    x = edge(dtype)
    assert reference.cumulative(x, "product", axis=1)[:, -1].tolist() == [0, 4 * x[1, 10], 0]
    check_scan(device, x, "product", 1, kernel=kernel)


def early_infinity(tiles: int, operator: str) -> NDArray[np.float32]:
    """Return numbers, of either sign for a product, with an infinity in the first run, and what makes it NaN late."""
    x = numbers((tiles * TILE,), "float32", operator)
    if operator == "product":
        x[np.random.default_rng(5).integers(0, x.size, tiles)] *= -1
    x[10] = np.inf
    x[tiles * 5 // 6 * TILE + 5] = -np.inf if operator == "sum" else 0.0
    return x


@pytest.mark.parametrize("operator", ["sum", "product"])
@pytest.mark.parametrize("kernel", ["lookback", "reduce_then_scan", "serial"])
def test_many_tiles_behind_an_infinity(
    device: Device, kernel: str, operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than a workgroup has invocations, in one window."""
    monkeypatch.setattr(device, "limits", replace(device.limits, software=False))
    check_scan(device, early_infinity(600, operator), operator, 0, kernel=kernel)


@pytest.mark.parametrize("kernel", KERNELS)
def test_negative_zeros_stay_negative_at_every_level(device: Device, kernel: str) -> None:
    """Nothing is added where nothing came before: 0 + -0 is 0."""
    x = np.full(40 * TILE, -0.0, np.float32)
    for exclusive in (False, True):
        check_scan(device, x, "sum", 0, kernel=kernel, exclusive=exclusive)
        check_scan(device, x.reshape(-1, 8), "sum", 0, kernel=kernel, exclusive=exclusive)
    assert np.signbit(reference.cumulative(x, "sum", axis=0)).all()


@pytest.mark.parametrize("kernel", ["lookback", "serial", "strip_lookback"])
def test_negative_zeros_stay_negative_in_windows(device: Device, kernel: str) -> None:
    """Behind a span, inside one, and inside the first."""
    x = np.full((40 * TILE, 8), -0.0, np.float32)
    axis = 0 if kernel == "strip_lookback" else 1
    x = x if axis == 0 else x.T.copy()
    layout = Layout.packed(x.shape)
    problem = scan_problem(dtypes.by_dtype(x.dtype), Operator.SUM, layout, layout, axis, ScanOptions())
    for window in (16 * TILE, 7 * TILE):
        plan = Plan.of(ScanPlanner(problem, device.limits, chunks=(8, window)).passes(kernel))
        assert np.signbit(run_planned(device, plan, x)).all()


@pytest.mark.combinations
@pytest.mark.parametrize("way", ["lookback", "strip_lookback"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_an_integer_tile_goes_on_from_more_tiles_than_a_workgroup_has_invocations(
    device: Device, dtype: str, way: str
) -> None:
    """All keep what they have to themselves, so that the last pass folds the totals before each tile."""
    shape = (600 * TILE + 5,) if way == "lookback" else (600 * PARTS[dtype] + 5, 8)
    x = numbers(shape, dtype, "sum")
    layout = Layout.packed(shape)
    problem = scan_problem(dtypes.by_dtype(x.dtype), Operator.SUM, layout, layout, 0)
    plan = Plan.of(ScanPlanner(problem, device.limits, chunks=shape[::-1]).passes(way, 1))
    got = run_planned(device, plan, x)
    assert reference.first_difference(got, expected_scan(device, x, "sum", 0)) is None


@pytest.mark.combinations
@pytest.mark.parametrize("kernel", KERNELS)
def test_in_place(device: Device, kernel: str) -> None:
    for operator in ("sum", "product"):
        x = strewn(9000, operator)
        layout = Layout.packed(x.shape)
        check_scan(device, x, operator, 1, kernel=kernel, source=layout, target=layout)
    x = cancelling(20_000)
    layout = Layout.packed(x.shape)
    check_scan(device, x, "sum", 0, kernel=kernel, source=layout, target=layout, reverse=True)


@pytest.mark.combinations
@pytest.mark.parametrize("binding", [4096, 70_000, 1_000_000])
def test_windows(device: Device, binding: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut inside runs, inside tiles, at tiles and at spans."""
    monkeypatch.setattr(device, "limits", replace(device.limits, binding_bytes=binding))
    for operator in ("sum", "product"):
        for x, axis in ((strewn(9000, operator)[::3], 1), (strewn(9000, operator)[::3].T.copy(), 0)):
            check_scan(device, x, operator, axis)
            check_scan(device, x, operator, axis, exclusive=True, reverse=True)
            layout = Layout.packed(x.shape)
            check_scan(device, x, operator, axis, source=layout, target=layout)
    check_scan(device, cancelling(300_000), "sum", 0)
    zeros = np.full(5000, -0.0, np.float32)
    check_scan(
        device, zeros[:300, None], "sum", 0, source=Layout((300, 1), (100, 1)), target=Layout((300, 1), (130, 1))
    )
    for x in (cancelling(5000), recovering(2), zeros, *map(handing_on, (3 * TILE, TILE + 5, 2 * TILE - 1))):
        near, far = Layout((len(x), 1), (40, 1)), Layout((len(x), 1), (50, 1))
        check_scan(device, x.reshape(-1, 1), "sum", 0, source=near, target=far)
        check_scan(device, x.reshape(-1, 1), "sum", 0, source=far, target=far)


@pytest.mark.combinations
@pytest.mark.parametrize(("apart", "elements"), [(100, 8), (300, 4), (700, 2), (1100, 1)])
def test_windows_inside_runs(device: Device, apart: int, elements: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "limits", replace(device.limits, binding_bytes=4096))
    layout = Layout((4111,), (apart,))
    problem = scan_problem(dtypes.by_name("float32"), Operator.SUM, layout, layout, axis=0)
    passes = plan_problem(problem, device.limits).passes
    assert {int(one.params["length"]) for one in passes} == {elements, 4111 % elements or elements}
    for x in (cancelling(4111), recovering(2)[:4111]):
        check_scan(device, x, "sum", 0, source=layout, target=Layout((4111,), (apart,), offset=4))
        check_scan(device, x, "sum", 0, source=layout, target=layout, exclusive=True)


@pytest.mark.combinations
@pytest.mark.parametrize("kernel", ["rows", "lookback", "reduce_then_scan", "serial", "strips"])
def test_windows_of_whole_tiles(device: Device, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exceptional tile ends its span, so later windows begin anywhere in theirs."""
    monkeypatch.setattr(device, "limits", replace(device.limits, dispatch_elements=5 * TILE))
    for operator in ("sum", "product"):
        x = strewn(66_000, operator)[::5]
        for row in x:
            check_scan(device, row, operator, 0, kernel=kernel)
    check_scan(device, cancelling(100_000), "sum", 0, kernel=kernel)


@pytest.mark.parametrize("kernel", ["rows", "lookback", "reduce_then_scan", "serial"])
@pytest.mark.usefixtures("fresh_plans")
def test_turns_of_few_tiles(device: Device, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exceptional tiles, and the first absorbing result, anywhere in the turns of a window."""
    for name in ("_MAX_TILES", "_MAX_TILES_TOGETHER_ON_SOFTWARE"):
        monkeypatch.setattr(scans, name, 3)
    monkeypatch.setattr(device, "limits", replace(device.limits, software=True))
    for operator in ("sum", "product"):
        check_scan(device, strewn(66_000, operator)[::5], operator, 1, kernel=kernel)
        check_scan(device, behind(operator, "float32"), operator, 0, kernel=kernel, exclusive=True)
        check_scan(device, early_infinity(20, operator), operator, 0, kernel=kernel, reverse=True)
    for x in (cancelling(100_000), recovering(21), overflowing_span(36), handing_on(7 * TILE)):
        check_scan(device, x, "sum", 0, kernel=kernel)
    pair = np.stack([cancelling(9 * TILE), recovering(9)], axis=1)
    check_scan(
        device, pair, "sum", 0, kernel=kernel, source=Layout.packed(pair.shape), target=Layout.packed(pair.shape)
    )


@pytest.mark.combinations
@pytest.mark.parametrize("kernel", ["rows", "lookback", "reduce_then_scan", "serial"])
def test_more_exceptional_tiles_than_a_loop_may_take(device: Device, kernel: str) -> None:
    """Mesa ends the loops of an invocation after 65,535 iterations: where it takes all of these, at tile 2188."""
    check_scan(device, cancelling(2300 * TILE + 5), "sum", 0, kernel=kernel, exclusive=True)


def swinging(length: int, dtype: str) -> NDArray[Any]:
    """Return a slice all of whose tiles overflow in part, while the product of a loop goes up and down."""
    x = np.full(length, 256.0 if dtype == "float16" else 2.0**64, dtype)
    x[np.arange(length) // 16 % 2 == 0] **= -1
    x[0] = 1
    return x


@pytest.mark.combinations
@pytest.mark.parametrize("kernel", ["rows", "lookback", "reduce_then_scan", "serial"])
def test_more_exceptional_tiles_of_words_than_a_loop_may_take(
    device: Device, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run is a loop there, and a left fold takes 17 times as many iterations."""
    monkeypatch.setattr(device, "limits", replace(device.limits, float64=False))
    check_scan(device, swinging(600 * TILE + 5, "float64"), "product", 0, kernel=kernel)


@pytest.mark.combinations
@pytest.mark.parametrize("width", [128, 256])
def test_more_exceptional_tiles_in_columns_than_a_loop_may_take(device: Device, width: int) -> None:
    """A row is an iteration there, and each tile is done again for each column; fewer of them have fewer vectors."""
    x = swinging(2 * 65_536 + 5, "float16")
    columns = np.repeat(x[:, None], width, axis=1)
    columns[:, ::2] *= -1  # not all the same
    columns[1:, ::2] *= -1
    expected = reference.cumulative(columns[:, :2], "product", axis=0)
    assert np.isfinite(expected).all()
    found = scan(device, columns, "product", 0)
    np.testing.assert_array_equal(found.view(np.uint16), np.tile(expected.view(np.uint16), width // 2))


def underflow() -> NDArray[np.float32]:
    """Return a slice whose spans' product underflows where the results don't."""
    x = np.ones(140_000, np.float32)
    x[0] = 1e30
    x[5000:5003] = 1e-20
    x[70_000:70_004] = 1e15
    x[70_004:70_008] = 1e-15
    x[139_990] = np.inf
    return x


def test_an_underflow_to_zero_does_not_absorb(device: Device) -> None:
    """Only an exceptional tile goes on from the result."""
    for kernel in KERNELS:
        check_scan(device, underflow(), "product", 0, kernel=kernel)


def test_the_examples(device: Device) -> None:
    product = np.full(100_000, 1e30, np.float32)
    product[0] = 0
    for kernel in KERNELS:
        assert not scan(device, product, "product", 0, kernel=kernel).any()
        assert not scan(device, product, "product", 0, kernel=kernel, exclusive=True)[1:].any()
        small = scan(device, np.array([-3e38, 3e38, 3e38], np.float32), "sum", 0, kernel=kernel)
        assert small.tolist() == [np.float32(-3e38), 0, np.float32(3e38)]


def every_other(length: int, dtype: str) -> NDArray[Any]:
    """Return ordinary slices, each before one that is absorbed by an infinity."""
    x = numbers((4, length), dtype, "sum")
    x[1::2, 5] = np.inf
    return x


LEAVING = {
    "rising": (100, 100, 0, 0, -100),
    "sinking": (-90, -90, 0, 0, 90),
    "rising inside": (20, 60, 60, -60, -60),
    "sinking inside": (-20, -60, -60, 60, 60),
    "barely sinking": (-60, -68, 0, 0, 68),
    "barely sinking inside": (-20, -53, -55, 55, 53),
    "barely rising": (62, 68, 0, 0, -68),
    "barely rising inside": (20, 53, 57, -57, -53),
}
"""Powers of two: an element in the first span, and of the span of number 2 one in a tile, two in the next, one in the
third.
"""


SUMS_LEAVING = {"sum with what is before the span": 7, "sum inside the span": 2 * SPAN + 7}
"""Where a large element is that takes the sum of a later tile out of the range: in the first span, or in the tile's."""


def leaving(way: str, length: int) -> NDArray[np.float32]:
    """Return a slice whose product, or sum, leaves the range in one tile of a span, and would come back.

    It takes what comes before the span, and perhaps what comes before the tile inside the span; "late infinity" takes
    neither.
    """
    x = numbers((length,), "float32", "sum" if way in SUMS_LEAVING else "product")
    place = 2 * SPAN + 5 * TILE
    if way in SUMS_LEAVING:
        x[SUMS_LEAVING[way]] = 2.0**106  # by itself no other tile comes near the end of the range
        place = 2 * SPAN + 9 if SUMS_LEAVING[way] < SPAN else place
        x[[place, place + 40]] = np.finfo(np.float32).max * np.array([1, -1], np.float32)
    elif way == "late infinity":
        x[place] = np.inf
    else:
        places = [7, place, place + TILE, place + TILE + 99, place + 2 * TILE + 50]
        x[places] = np.float32(2) ** np.array(LEAVING[way], np.float32)
    return x


def scanned_by(kernel: str, device: Device, x: NDArray[Any], operator: str, window: int | None = None) -> NDArray[Any]:
    """Return the scan of a single slice by this kernel, in windows of so many elements."""
    layout = Layout.packed(x.shape)
    problem = scan_problem(dtypes.by_dtype(x.dtype), Operator(operator), layout, layout, 0, ScanOptions())
    planner = ScanPlanner(problem, device.limits, chunks=(window or len(x),))
    return run_planned(device, Plan.of(planner.passes(kernel)), x)


def run_planned(device: Device, plan: Plan, x: NDArray[Any], *, in_place: bool = False) -> NDArray[Any]:
    """Run a plan; where it writes nothing, the result is 7, or what it was in place."""
    with device.lock:
        source = device.allocate(x.nbytes)
        target = source if in_place else device.allocate(x.nbytes)
        device.upload(target, 0, np.full_like(x, 7))
        device.upload(source, 0, x)
        device._executor.run(plan, source.gpu_buffer, target.gpu_buffer, device.limits.dispatch_elements)
        got = np.empty_like(x)
        device.download(target, 0, got)
        for memory in {source, target}:
            memory.release()
    return got


@pytest.mark.combinations
@pytest.mark.parametrize("window", [None, 17 * TILE, 9 * TILE, 3 * TILE], ids=str)
@pytest.mark.parametrize("withhold_every", [1, 2, 3])
@pytest.mark.parametrize("in_place", [False, True], ids=["apart", "in place"])
def test_others_go_on_where_workgroups_keep_what_they_have_to_themselves(
    device: Device, in_place: bool, withhold_every: int, window: int | None
) -> None:
    """As if they had been stopped: the passes behind a look-back see to what is missing."""
    for x, operator, both in (
        (numbers((2, 60_000), np.float32), "sum", False),
        (numbers((2, 70_001), np.float32), "sum", True),
        (numbers((3, 50_001), np.int64), "product", True),
        (np.stack([cancelling(40_000), strewn(40_000, "sum")[33], handing_on(40_000)]), "sum", False),
        (every_other(28 * TILE, "float64"), "sum", False),
    ):
        layout = Layout.packed(x.shape)
        element = dtypes.by_dtype(x.dtype)
        problem = scan_problem(element, Operator(operator), layout, layout, 1, ScanOptions(both, both))
        chunks = (len(x), window or x.shape[1])
        planner = ScanPlanner(problem, device.limits, in_place, chunks=chunks)
        plan = Plan.of(planner.passes("lookback", withhold_every))
        assert [one.pipeline.kernel for one in plan.passes[:2]] == ["scan_tiles", "scan_lookback"]
        assert plan.passes[0].only_clears
        assert any(one.params["resume"] for one in plan.passes) or window is None or window >= x.shape[1]
        got = run_planned(device, plan, x, in_place=in_place)
        expected = expected_scan(device, x, operator, 1, exclusive=both, reverse=both)
        assert reference.first_difference(got, expected) is None


@pytest.mark.combinations
@pytest.mark.parametrize("window", [None, 17 * TILE, 3 * TILE], ids=str)
@pytest.mark.parametrize("withhold_every", [1, 2, 3, 7])
def test_others_go_on_where_workgroups_of_strips_keep_what_they_have_to_themselves(
    device: Device, withhold_every: int, window: int | None
) -> None:
    """Blocks, tiles, spans or last results are missing; of integers in place only what is not written is read again."""
    exceptional = numbers((70_001, 8), np.float32)
    exceptional[[5, 3 * TILE, 69_000], [1, 4, 4]] = np.inf
    for x, operator, both, in_place in (
        (numbers((60_000, 24), np.float32), "sum", False, False),
        (numbers((30_001, 24), np.float32), "sum", True, False),
        (exceptional, "sum", True, False),
        (numbers((20_000, 40), np.float16), "product", True, False),
        (numbers((30_000, 37), np.float16), "sum", True, False),
        (exceptional[:, [4, 0]], "sum", True, False),
        (numbers((40_001, 2), np.float16), "product", False, False),
        (numbers((30_001, 3), np.float32), "sum", True, False),
        (numbers((50_001, 5), np.uint8), "sum", False, True),
        (numbers((50_001, 8), np.int64), "product", True, True),
        (numbers((60_000, 32), np.uint8), "sum", False, True),
        (numbers((40_001, 41), np.uint8), "sum", True, True),
        (every_other(28 * TILE, "float64").reshape(-1, 4)[: 6 * TILE + 9], "sum", False, False),
    ):
        if x.dtype == np.float64 and not device.limits.float64:
            continue
        layout = Layout.packed(x.shape)
        problem = scan_problem(dtypes.by_dtype(x.dtype), Operator(operator), layout, layout, 0, ScanOptions(both, both))
        planner = ScanPlanner(problem, device.limits, in_place, chunks=(x.shape[1], window or len(x)))
        plan = Plan.of(planner.passes("strip_lookback", withhold_every))
        assert [one.pipeline.kernel for one in plan.passes[:2]] == ["scan_tiles", "scan_strip_lookback"]
        assert any(one.params["resume"] for one in plan.passes) or window is None or window >= len(x)
        got = run_planned(device, plan, x, in_place=in_place)
        assert (
            reference.first_difference(got, expected_scan(device, x, operator, 0, exclusive=both, reverse=both)) is None
        )


@pytest.mark.combinations
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "uint8", "int64"])
@pytest.mark.parametrize("operator", ["sum", "product"])
class TestStripLookback:
    """What scan_strip_lookback writes by itself: the passes behind it would hide that it writes nothing."""

    def run(self, device: Device, x: NDArray[Any], operator: str, exclusive: bool, window: int) -> NDArray[Any]:
        layout, kernel = Layout.packed(x.shape), "scan_strip_lookback"
        options = ScanOptions(exclusive=exclusive)
        problem = scan_problem(dtypes.by_dtype(x.dtype), Operator(operator), layout, layout, 0, options)
        if problem.is_in_words(device.limits.float64):
            pytest.skip("strips do not serve float64 on words")
        planner = ScanPlanner(problem, device.limits, chunks=(x.shape[1], window))
        plan = Plan.of(
            one for one in planner.passes("strip_lookback") if one.only_clears or one.pipeline.kernel == kernel
        )
        return run_planned(device, without_repairs(plan), x)

    @pytest.mark.parametrize("width", [2, 8, 40])
    def test_ordinary_parts_are_all_written(
        self, device: Device, operator: str, dtype: str, exclusive: bool, width: int
    ) -> None:
        """Each learns from others' records alone, across tiles, spans and windows, what comes before it."""
        x = numbers((35 * TILE + 9, width), dtype, operator)
        expected = expected_scan(device, x, operator, 0, exclusive=exclusive)
        for window in (len(x), 17 * TILE):
            got = self.run(device, x, operator, exclusive, window)
            assert reference.first_difference(got, expected) is None

    def test_columns_are_right_up_to_an_exceptional_tile(
        self, device: Device, operator: str, dtype: str, exclusive: bool
    ) -> None:
        """Others are right to the end."""
        x = numbers((20 * TILE, 16), dtype, operator)
        if x.dtype.kind == "f":
            x[17 * TILE + 300, 3] = np.nan
        got = self.run(device, x, operator, exclusive, len(x))
        expected = expected_scan(device, x, operator, 0, exclusive=exclusive)
        got[17 * TILE :, 3] = expected[17 * TILE :, 3]
        assert reference.first_difference(got, expected) is None


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "uint8", "int64"])
@pytest.mark.parametrize("operator", ["sum", "product"])
class TestLookback:
    """What scan_lookback writes by itself: the passes behind it would hide that it writes nothing."""

    def plan(self, device: Device, x: NDArray[Any], operator: str, exclusive: bool, window: int) -> Plan:
        layout = Layout.packed(x.shape)
        problem = scan_problem(
            dtypes.by_dtype(x.dtype), Operator(operator), layout, layout, 1, ScanOptions(exclusive=exclusive)
        )
        planner = ScanPlanner(problem, device.limits, chunks=(len(x), window))
        return Plan.of(
            one for one in planner.passes("lookback") if one.only_clears or one.pipeline.kernel == "scan_lookback"
        )

    @pytest.mark.combinations
    def test_windows_of_a_tile_are_all_written(
        self, device: Device, operator: str, dtype: str, exclusive: bool
    ) -> None:
        """None of their workgroups waits for another, and each goes on from what the one before has left."""
        x = numbers((2, 37 * TILE + 5), dtype, operator)
        got = run_planned(device, self.plan(device, x, operator, exclusive, TILE), x)
        expected = expected_scan(device, x, operator, 1, exclusive=exclusive)
        assert reference.first_difference(got, expected) is None

    def test_ordinary_tiles_are_all_written_where_none_has_to_wait(
        self, device: Device, operator: str, dtype: str, exclusive: bool
    ) -> None:
        """Each learns from others' records alone, across spans and slices, what comes before it."""
        x = numbers((2, 35 * TILE + 9), dtype, operator)
        got = run_planned(device, without_repairs(self.plan(device, x, operator, exclusive, x.shape[1])), x)
        expected = expected_scan(device, x, operator, 1, exclusive=exclusive)
        assert reference.first_difference(got, expected) is None

    @pytest.mark.combinations
    def test_a_tile_is_right_or_left(self, device: Device, operator: str, dtype: str, exclusive: bool) -> None:
        """A workgroup that has lost patience leaves its tile; the first of a slice waits for nobody."""
        x = numbers((2, 40 * TILE), dtype, operator)
        got = run_planned(device, self.plan(device, x, operator, exclusive, x.shape[1]), x)
        expected = expected_scan(device, x, operator, 1, exclusive=exclusive)
        for tile in range(40):
            for mine, right in zip(got[:, TILE * tile :][:, :TILE], expected[:, TILE * tile :][:, :TILE], strict=True):
                is_left = bool((mine == 7).all())
                assert not (is_left and tile == 0)
                assert is_left or reference.first_difference(mine, right) is None

    def test_what_may_be_exceptional_and_what_is_behind_it_is_left(
        self, device: Device, operator: str, dtype: str, exclusive: bool
    ) -> None:
        if not dtype.startswith("float"):
            dtype = "float32"
        x = numbers((2, 20 * TILE), dtype, operator)
        x[0, 3 * TILE + 9] = np.nan
        x[1, 17 * TILE + 1] = np.inf
        got = run_planned(device, self.plan(device, x, operator, exclusive, x.shape[1]), x)
        assert (got[0, 3 * TILE :] == 7).all()
        assert (got[1, 17 * TILE :] == 7).all()


def run_look_back(
    device: Device,
    x: NDArray[Any],
    operator: str,
    posts: Posts,
    *,
    repairs: bool,
    exclusive: bool = False,
    window: int | None = None,
) -> NDArray[Any]:
    """Run a look-back as `run_without` has it; what is not written is 7."""
    layout = Layout.packed(x.shape)
    problem = scan_problem(
        dtypes.by_dtype(x.dtype), Operator(operator), layout, layout, 0, ScanOptions(exclusive=exclusive)
    )
    plan = Plan.of(ScanPlanner(problem, device.limits, chunks=(window or len(x),)).passes("lookback"))
    with device.lock:
        source, target = device.allocate(x.nbytes), device.allocate(x.nbytes)
        device.upload(target, 0, np.full_like(x, 7))
        device.upload(source, 0, x)
        some = plan if repairs else without_repairs(plan, at_once=True)
        run_without(posts, device, some, source.gpu_buffer, target.gpu_buffer)
        got = np.empty_like(x)
        device.download(target, 0, got)
        source.release()
        target.release()
    return got


@pytest.mark.parametrize("operator", ["sum", "product"])
@pytest.mark.parametrize("missing", [1, 3, 4, 5, 16])
def test_a_look_back_folds_the_spans_whose_prefix_is_missing(device: Device, missing: int, operator: str) -> None:
    """First it looks at four spans, then at sixteen, then at 64."""
    x = numbers((18 * SPAN + 3 * TILE,), "float32", operator)
    got = run_look_back(device, x, operator, Posts(missing), repairs=False)
    assert reference.first_difference(got, expected_scan(device, x, operator, 0)) is None


@pytest.mark.combinations
@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_a_prefix_that_is_late_leaves_what_is_there_as_it_is(device: Device, dtype: str) -> None:
    """The first span's end comes when the second one has posted its total, which the last tile then takes."""
    x = numbers((2 * SPAN + 9,), dtype, "sum")
    posts = Posts(prefixes=1, late=2)
    left = run_look_back(device, x, "sum", posts, repairs=False)
    expected = expected_scan(device, x, "sum", 0)
    assert (left[SPAN:-9] == 7).all()
    assert reference.first_difference(left[-9:], expected[-9:]) is None
    got = run_look_back(device, x, "sum", posts, repairs=True)
    assert reference.first_difference(got, expected) is None


def check_left(device: Device, x: NDArray[Any], operator: str, posts: Posts, *, exclusive: bool = False) -> None:
    """Assert that a look-back leaves the last tile, and no other, and that the passes behind it see to that."""
    expected = expected_scan(device, x, operator, 0, exclusive=exclusive)
    rest = (len(x) - 1) % TILE + 1
    left = run_look_back(device, x, operator, posts, repairs=False, exclusive=exclusive)
    assert (left[-rest:] == 7).all()
    assert reference.first_difference(left[:-rest], expected[:-rest]) is None
    repaired = run_look_back(device, x, operator, posts, repairs=True, exclusive=exclusive)
    assert reference.first_difference(repaired, expected) is None


def test_a_look_back_gives_up_where_no_prefix_is_near(device: Device) -> None:
    """Of the 64 nearest spans it folds all but the last, which has the prefix; then its tile is left."""
    x = numbers((66 * SPAN,), "float32", "sum")
    got = run_look_back(device, x, "sum", Posts(63), repairs=False)
    assert reference.first_difference(got, expected_scan(device, x, "sum", 0)) is None
    check_left(device, x, "sum", Posts(64))


@pytest.mark.parametrize("missing", [2, 3])
@pytest.mark.parametrize("way", [*LEAVING, *SUMS_LEAVING, "late infinity"])
def test_a_look_back_suspects_tiles_of_spans_whose_prefix_is_missing(device: Device, way: str, missing: int) -> None:
    """Their bounds and what comes before them tell that one may leave the range."""
    x, operator = leaving(way, 4 * SPAN + 9), "sum" if way in SUMS_LEAVING else "product"
    posts = Posts(missing)
    assert (run_look_back(device, x, operator, posts, repairs=False)[-9:] == 7).all()
    expected = expected_scan(device, x, operator, 0)
    assert operator == "product" or expected[-1] == np.inf
    assert reference.first_difference(run_look_back(device, x, operator, posts, repairs=True), expected) is None


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("kernel", ["lookback", "reduce_then_scan"])
def test_classes_of_sums_with_gaps(device: Device, kernel: str, step: int, reverse: bool) -> None:
    """An infinity that meets the opposite one many tiles later is NaN from there on: a tile's class tells."""
    x = numbers((40 * TILE + 9,), "float32", "sum")
    x[[5 * TILE + 703, 20 * TILE + 2911]] = np.inf, -np.inf
    memory = np.full(step * len(x), 3, np.float32)
    memory[::step] = x
    layout = Layout((len(x),), (step,))
    problem = scan_problem(dtypes.by_dtype(x.dtype), Operator.SUM, layout, layout, 0, ScanOptions(reverse=reverse))
    plan = Plan.of(ScanPlanner(problem, device.limits, chunks=x.shape).passes(kernel))
    expected = expected_scan(device, x, "sum", 0, reverse=reverse)
    assert reference.first_difference(run_planned(device, plan, memory)[::step], expected) is None


@pytest.mark.parametrize("kernel", ["lookback", "serial", "reduce_then_scan"])
def test_sums_that_leave_the_range_by_many_small_steps(device: Device, kernel: str) -> None:
    """No tile comes near the end of the range by itself; what they go on from does, 60 spans later."""
    x = np.full(70 * SPAN, 1.9 * 2.0**105, np.float32)
    got = scanned_by(kernel, device, x, "sum")
    expected = expected_scan(device, x, "sum", 0)
    assert np.isfinite(expected[: 60 * SPAN]).all()
    assert np.isinf(expected[-1])
    assert reference.first_difference(got, expected) is None


@pytest.mark.parametrize(
    ("kernel", "window", "windows"),
    [("serial", 66 * SPAN + 5 * TILE, 2), ("reduce_then_scan", 258 * SPAN, 1)],
    ids=["serial", "reduce_then_scan"],
)
def test_windows_of_more_spans_than_a_workgroup_has_invocations(
    device: Device, kernel: str, window: int, windows: int
) -> None:
    """They take turns; the next window goes on from the last of them, also where it began inside a span."""
    x = numbers((windows * window + 3 * TILE,), "float32", "sum")
    got = scanned_by(kernel, device, x, "sum", window)
    assert reference.first_difference(got, expected_scan(device, x, "sum", 0)) is None


@pytest.mark.parametrize("kernel", ["lookback", "serial", "reduce_then_scan"])
def test_products_that_barely_leave_the_range_in_the_first_tile(device: Device, kernel: str) -> None:
    """A result between once and twice the smallest normal number, beside which no r, h, p or total is near it."""
    x = numbers((2 * TILE,), "float32", "product")
    x[5] = 2.0**-63
    x[20] = 1.5 * 2.0**-126 / np.prod(x[:20], dtype=np.float64)
    x[[70, 25]] = 1 / x[[5, 20]]
    got = scanned_by(kernel, device, x, "product")
    expected = expected_scan(device, x, "product", 0)
    assert 2.0**-126 < abs(expected[20]) < 2.0**-125
    assert reference.first_difference(got, expected) is None


def with_a_small_end(window: int, least: int) -> NDArray[np.float64]:
    """Return two windows of a slice; the first ends with a product between 2^least and twice that, then it rises."""
    x = np.exp2(np.random.default_rng(0).standard_normal(2 * window) * 1e-4)
    x[window - 1000 : window - 200 : 100] = np.exp2((least + 10) / 8)
    x[window - 1] = 1.4142 * 2.0**-10
    x[window : window + 300 : 100] = 2.0**10
    return x


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize(("dtype", "least"), [("float32", -126), ("float64", -1022)])
def test_a_look_back_checks_what_its_window_begins_with(
    device: Device, dtype: str, least: int, exclusive: bool
) -> None:
    """An s between once and twice the smallest normal number makes the window's first tile exceptional.

    So it does where the first span has posted its total and not yet its prefix.
    """
    window = 17 * TILE
    x = with_a_small_end(window, least).astype(dtype)
    posts = Posts(prefixes=1)
    expected = expected_scan(device, x, "product", 0, exclusive=exclusive)
    found = run_look_back(device, x, "product", posts, repairs=True, exclusive=exclusive, window=window)
    assert reference.first_difference(found, expected) is None


@pytest.mark.parametrize("exclusive", [False, True])
def test_a_look_back_of_a_strip_checks_what_its_window_begins_with(device: Device, exclusive: bool) -> None:
    """As that of a single slice does."""
    window = 17 * TILE
    x = numbers((2 * window, 16), "float32", "product")
    x[:, 2] = with_a_small_end(window, -126)
    posts = StripPosts((2,), prefixes=(0,))
    expected = expected_scan(device, x, "product", 0, exclusive=exclusive)
    found = run_strip(device, x, "product", posts, repairs=True, exclusive=exclusive, window=window)
    assert reference.first_difference(found, expected) is None


def torn_posts() -> Iterator[tuple[Posts, str, str, bool]]:
    """Yield a word that is not there yet, the last tile's place in its span, the type, and whether exclusive.

    Of float32, a tile's record is its total and bounds, and if exclusive p, h and r of its last result; a span's is the
    same, its prefix, flags, and the last result: two words each, flags one. Of int64, totals and prefixes are four.
    """
    for word in range(4):
        yield Posts(of_tile=(word,)), "middle", "float32", False
        yield Posts(of_tile=(word,)), "middle", "int64", False
        yield Posts(prefixes=1, of_span=(word,)), "middle", "float32", False
        yield Posts(prefixes=1, of_span=(word,)), "first", "int64", False
        yield Posts(of_span=(6 + word,)), "first", "int64", False
    for word in (4, 5):
        yield Posts(of_span=(word,)), "middle", "float32", False
    for word in range(4, 10):
        yield Posts(of_tile=(word,)), "middle", "float32", True
    for word in (7, 8):
        yield Posts(of_span=(word,)), "first", "float32", True


def torn_posts_of_ends() -> Iterator[tuple[Posts, int]]:
    """Yield a word of float32 that is not there yet when a span's last tile begins, and how many spans there are.

    It belongs to the span right before that, or to one so far before that an invocation reads it which drivers on CPUs
    run after the first one.
    """
    yield Posts(of_span=(4,), more=1), 2
    yield Posts(prefixes=9, of_span=(4,), back=10, more=1), 11
    yield Posts(prefixes=9, of_span=(0,), back=9, more=1), 11


@pytest.mark.parametrize(("posts", "spans"), list(torn_posts_of_ends()))
def test_a_look_back_hands_on_no_part_of_what_others_post(device: Device, posts: Posts, spans: int) -> None:
    """A span's last tile that is left posts no prefix that the next tile takes."""
    x = numbers((spans * SPAN + 9,), "float32", "sum")
    expected = expected_scan(device, x, "sum", 0)
    left = run_look_back(device, x, "sum", posts, repairs=False)
    assert (left[spans * SPAN - TILE :] == 7).all()
    assert reference.first_difference(left[: spans * SPAN - TILE], expected[: spans * SPAN - TILE]) is None
    repaired = run_look_back(device, x, "sum", posts, repairs=True)
    assert reference.first_difference(repaired, expected) is None


@pytest.mark.combinations
@pytest.mark.parametrize(("posts", "place", "dtype", "exclusive"), list(torn_posts()))
def test_a_look_back_takes_no_part_of_what_others_post(
    device: Device, posts: Posts, place: str, dtype: str, exclusive: bool
) -> None:
    """Every word tells by itself that it is there: atomics of others may arrive in any order."""
    x = numbers((2 * SPAN + (3 * TILE if place == "middle" else TILE),), dtype, "sum")
    check_left(device, x, "sum", posts, exclusive=exclusive)


PARTS = {"float32": 512, "int64": 512, "int32": 1024, "int16": 1024, "uint8": 1024}
"""Rows of a part of a strip: of integers it counts as a tile, and 16 are a span."""


def run_strip(
    device: Device,
    x: NDArray[Any],
    operator: str,
    posts: StripPosts,
    *,
    repairs: bool,
    exclusive: bool = False,
    window: int | None = None,
) -> NDArray[Any]:
    """Run a look-back of a strip as `run_strips_without` has it; what is not written is 7."""
    layout, options = Layout.packed(x.shape), ScanOptions(exclusive=exclusive)
    problem = scan_problem(dtypes.by_dtype(x.dtype), Operator(operator), layout, layout, 0, options)
    chunks = (x.shape[1], window or len(x))
    plan = Plan.of(ScanPlanner(problem, device.limits, chunks=chunks).passes("strip_lookback"))
    with device.lock:
        source, target = device.allocate(x.nbytes), device.allocate(x.nbytes)
        device.upload(target, 0, np.full_like(x, 7))
        device.upload(source, 0, x)
        some = plan if repairs else without_repairs(plan, at_once=True)
        run_strips_without(posts, device, some, source.gpu_buffer, target.gpu_buffer)
        got = np.empty_like(x)
        device.download(target, 0, got)
        source.release()
        target.release()
    return got


@pytest.mark.combinations
@pytest.mark.parametrize("operator", ["sum", "product"])
@pytest.mark.parametrize(("dtype", "span"), [("float32", SPAN), ("int32", 16 * PARTS["int32"])])
@pytest.mark.parametrize("number", [1, 2, 4, 7, 8])
def test_a_look_back_of_a_strip_folds_the_spans_whose_prefix_is_missing(
    device: Device, number: int, dtype: str, span: int, operator: str
) -> None:
    """First it looks at two spans, then at four, then at eight. Then it gives up, and others see to its part."""
    width = 16 if dtype == "float32" else 8  # of a strip
    x = numbers((9 * span + PARTS[dtype] + 5, width), dtype, operator)
    expected = expected_scan(device, x, operator, 0)
    posts = StripPosts((2, 7), prefixes=tuple(range(9 - number, 9)))
    got = run_strip(device, x, operator, posts, repairs=False)
    if number == 8:
        assert (got[-5:] == 7).all()
        assert reference.first_difference(got[:-5], expected[:-5]) is None
        got = run_strip(device, x, operator, posts, repairs=True)
    assert reference.first_difference(got, expected) is None


def torn_strips() -> Iterator[tuple[str, tuple[int, int], bool, StripPosts]]:
    """Yield a type, a shape, whether it is exclusive, and a word that the last part looks for and that is not there.

    That is a word of a block before it in its tile, of the last result before it, of a tile before it in its span, or
    of the span before, whose total and prefix are not both there.
    """
    shape, columns = (SPAN + 2 * TILE + PARTS["float32"] + 9, 16), (15,)
    for word in range(2):
        for record, number in (("block", 16 * 18 + 1), ("tile", 17), ("span", 0), ("prefix", 0)):
            other = {"span": "prefix", "prefix": "span"}.get(record)
            torn = ((record, number, word), *[(other, 0, i) for i in range(2) if other])
            yield "float32", shape, False, StripPosts(columns, torn=torn)
        end = StripPosts(columns, torn=(("end", 8 * 18, word),))
        yield "float32", shape, True, end
    for word in range(2):  # where a part is a tile
        for record in ("tile", "span"):
            torn = ((record, 17 if record == "tile" else 0, word), *[("prefix", 0, 0)] * (record == "span"))
            yield "float16", (SPAN + 2 * TILE + 9, 2), False, StripPosts((1,), torn=torn)
        yield "float32", (SPAN + 2 * TILE + 9, 2), True, StripPosts((1,), torn=(("end", 17, word),))
    for word in range(4):
        for record, number in (("tile", 17), ("span", 0), ("prefix", 0)):
            other = {"span": "prefix", "prefix": "span"}.get(record)
            torn = ((record, number, word), *[(other, 0, i) for i in range(4) if other])
            yield "int64", (18 * PARTS["int64"] + 9, 8), True, StripPosts((7,), torn=torn)


@pytest.mark.parametrize(("dtype", "shape", "exclusive", "posts"), list(torn_strips()))
def test_a_look_back_of_a_strip_takes_no_part_of_what_others_post(
    device: Device, dtype: str, shape: tuple[int, int], exclusive: bool, posts: StripPosts
) -> None:
    """It waits for all words of a column, and leaves its part if one is missing."""
    x, rest = numbers(shape, dtype), 9
    expected = expected_scan(device, x, "sum", 0, exclusive=exclusive)
    got = run_strip(device, x, "sum", posts, repairs=False, exclusive=exclusive)
    assert (got[-rest:] == 7).all()
    assert reference.first_difference(got[:-rest], expected[:-rest]) is None
    got = run_strip(device, x, "sum", posts, repairs=True, exclusive=exclusive)
    assert reference.first_difference(got, expected) is None


def left_in_a_window() -> Iterator[tuple[str, int, StripPosts]]:
    """Yield a type, its columns in a strip, and a total that the last part of the second window looks for in vain."""
    for dtype, columns in (("uint8", 32), ("int16", 16), ("int64", 8), ("float32", 16)):
        rows = TILE if dtype == "float32" else PARTS[dtype]
        first = columns - 4 // np.dtype(dtype).itemsize if dtype in ("uint8", "int16") else columns - 1
        yield dtype, columns, StripPosts((first,), torn=(("tile", TILE // rows - 1, 0),))


@pytest.mark.parametrize(("dtype", "columns", "posts"), list(left_in_a_window()))
def test_a_part_that_is_left_goes_on_from_the_window_before(
    device: Device, dtype: str, columns: int, posts: StripPosts
) -> None:
    """Each slice of a word has a carry of its own, which the look-back writes and the last pass reads."""
    x, rest = numbers((3 * TILE + 9, columns), dtype), 9
    expected = expected_scan(device, x, "sum", 0)
    left = run_strip(device, x, "sum", posts, repairs=False, window=2 * TILE)
    assert (left[-rest:] == 7).all()
    assert reference.first_difference(left[:-rest], expected[:-rest]) is None
    got = run_strip(device, x, "sum", posts, repairs=True, window=2 * TILE)
    assert reference.first_difference(got, expected) is None
