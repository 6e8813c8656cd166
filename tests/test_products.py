"""Products near underflow and overflow: as close to exact as a left fold's, on every device with the same bits."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dmlgpu import reference, shaders
from dmlgpu.dtypes import by_name
from dmlgpu.layout import Layout
from dmlgpu.planning.kernels import CHECK, REPAIR, TRY, WRITE
from dmlgpu.planning.plan import KERNELS, plan_problem
from dmlgpu.planning.problem import Operator, scan_problem
from dmlgpu.planning.windows import TILE
from dmlgpu.runtime.device import Device

from . import reference_slow as slow
from .harness import changed, check_scan, scan
from .mutation.alterations import alterations
from .mutation.bench import Bench
from .mutation.selection import near_underflow_trials
from .mutation.trials import Trial
from .near_underflow import (
    KINDS,
    KINDS_IN_BLOCKS,
    climbing_products,
    falling,
    in_few_blocks,
    infinity_times_small,
    kinds_of,
    lone_peaks,
    near_underflow,
    peaks_of_products,
    s_of_a_window,
    smallest_normals,
)

FLOATS = ("float16", "float32", "float64")


def wandering(dtype: str, shape: tuple[int, ...], step: float, seed: int = 0, axis: int = -1) -> NDArray[Any]:
    """Return elements whose running products wander up and down, up to 1e+-35, or as far in float64.

    `step` is how far one element takes them, in parts of that way.
    """
    rng = np.random.default_rng(seed)
    reach = 970 if dtype == "float64" else 116
    widest = 14 if dtype == "float16" else reach
    walk = np.cumsum(np.clip(rng.normal(0, step * reach, shape), -widest, widest), axis=axis)
    bounded = np.abs((walk + reach) % (4 * reach) - 2 * reach) - reach
    return np.asarray(np.exp2(np.diff(bounded, axis=axis, prepend=0)) * rng.choice([-1, 1], shape)).astype(dtype)


def exact_products(x: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return mantissas and exponents of the running products of a vector, by integers of 200 bits and more."""
    mantissas, exponents = np.empty(len(x)), np.empty(len(x), np.int64)
    product, power = 1, 0
    for i, value in enumerate(x):
        numerator, denominator = float(value).as_integer_ratio()
        product *= numerator
        power -= denominator.bit_length() - 1
        extra = max(0, product.bit_length() - 200)
        product >>= extra
        power += extra
        shift = max(0, product.bit_length() - 53)
        mantissas[i], exponents[i] = product >> shift, power + shift
    return mantissas, exponents


@pytest.mark.parametrize("step", [0.03, 0.3])
@pytest.mark.parametrize("dtype", FLOATS)
def test_random_walks_are_as_exact_as_a_left_fold(dtype: str, step: float) -> None:
    """Each multiplication adds at most a unit roundoff, in any order: none is lost by underflow on the way."""
    accumulator = np.dtype("float32" if dtype == "float16" else dtype)
    seen = []
    for seed in range(4):
        x = wandering(dtype, (12_000,), step, seed)
        mantissas, exponents = exact_products(x)
        bound = np.arange(1, len(x) + 1) * np.finfo(accumulator).eps / 2 + 2.0**-50
        got = reference.cumulative(x.astype(accumulator), "product", axis=0).astype(np.longdouble)
        error = np.abs(np.ldexp(got, -exponents) / mantissas - 1)
        assert np.all(error <= bound), f"off by {np.max(error / bound)} bounds"
        seen += [exponents.max() + 53, exponents.min() + 53]
    assert max(seen) > 110
    assert min(seen) < -110


def test_the_order_alone_would_lose_them() -> None:
    """The last two elements are of one run, whose product is zero in float32."""
    x = np.concatenate([[1e30], np.ones(15), [1e-25, 1e-25]]).astype(np.float32)
    assert x[16] * x[17] == 0
    assert reference.cumulative(x, "product", axis=0)[-1] == np.multiply.accumulate(x)[-1] > 0.9e-20


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_the_reference_is_the_rule_word_by_word(dtype: str, exclusive: bool) -> None:
    for step in (0.01, 0.05, 0.3):
        x = wandering(dtype, (3, 9000), step, seed=5)
        x[0, 4000:4200:7] *= np.finfo(dtype).smallest_normal
        right, _ = slow.scan(x, "product", 1, exclusive, exclusive)
        got = reference.cumulative(x, "product", axis=1, exclusive=exclusive, reverse=exclusive)
        assert reference.first_difference(got, right) is None


@cache
def alone(kind: str, dtype: str) -> NDArray[Any]:
    x = near_underflow(kind, dtype, 100)
    x.setflags(write=False)
    return x


ALONE = [(kind, dtype) for dtype in FLOATS for kind in kinds_of(dtype)]


@pytest.mark.combinations
@pytest.mark.parametrize(("kind", "dtype"), ALONE)
def test_each_kind_of_value_decides_alone(kind: str, dtype: str) -> None:
    """The slow version finds the same, and that the data shows it: without the rule most slices have other bits."""
    x = alone(kind, dtype)[:2]
    right, _ = slow.scan(x, "product", 1, False, False)
    assert reference.first_difference(reference.cumulative(x, "product", axis=1), right) is None


@pytest.mark.combinations
@pytest.mark.parametrize(("kind", "dtype"), ALONE)
def test_each_kind_of_value_counts(kind: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = alone(kind, dtype)
    right = reference.cumulative(x, "product", axis=1)
    monkeypatch.setattr(reference.order.Products, "admit", lambda _, values: values)
    without = reference.cumulative(x, "product", axis=1)
    assert np.count_nonzero((without != right).any(axis=1)) >= 0.9 * len(x)


@cache
def together(dtype: str) -> NDArray[Any]:
    """Return a hundred slices of each kind, but for "c of a span", which needs longer ones."""
    kinds = [alone(kind, dtype) for kind in kinds_of(dtype) if kind != "c of a span"]
    length = max(x.shape[1] for x in kinds)
    rows = [np.pad(x, ((0, 0), (0, length - x.shape[1])), constant_values=1) for x in kinds]
    return np.concatenate(rows)


@cache
def expected(dtype: str, exclusive: bool, *, of_span: bool = False) -> NDArray[Any]:
    x = alone("c of a span", dtype) if of_span else together(dtype)
    return reference.cumulative(x, "product", axis=1, exclusive=exclusive)


@pytest.mark.combinations
@pytest.mark.parametrize("dtype", FLOATS)
def test_windows_inside_tiles(device: Device, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place one phase checks and another writes; elsewhere one writes, and another what is exceptional again."""
    x = np.ascontiguousarray(together(dtype)[::4].T)
    monkeypatch.setattr(device, "limits", replace(device.limits, binding_bytes=300 + 512 * x.nbytes // len(x)))
    layout = Layout.packed(x.shape)
    problem = scan_problem(by_name(dtype), Operator.PRODUCT, layout, layout, 0)
    for one_buffer, phases in ((False, {TRY, REPAIR}), (True, {CHECK, WRITE})):
        passes = plan_problem(problem, device.limits, one_buffer=one_buffer).passes
        assert {dict(one.pipeline.constants)["phase"] for one in passes} == phases
    check_scan(device, x, "product", 0)
    check_scan(device, x, "product", 0, source=layout, target=layout)


@pytest.mark.combinations
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_each_kind_in_every_kernel(device: Device, kernel: str, dtype: str, reverse: bool) -> None:
    there = slice(None, None, -1 if reverse else 1)
    for of_span in (False, True):
        x = alone("c of a span", dtype) if of_span else together(dtype)
        got = scan(device, x[:, there], "product", 1, kernel=kernel, exclusive=reverse, reverse=reverse)
        assert reference.first_difference(got, expected(dtype, reverse, of_span=of_span)[:, there]) is None


@pytest.mark.combinations
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_each_kind_in_place(device: Device, kernel: str, dtype: str) -> None:
    x = together(dtype)[::5]
    layout = Layout.packed(x.shape)
    got = scan(device, x, "product", 1, kernel=kernel, source=layout, target=layout)
    assert reference.first_difference(got, expected(dtype, False)[::5]) is None


@pytest.mark.combinations
@pytest.mark.parametrize("kind", [*KINDS_IN_BLOCKS, "random walks", "decays"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_each_kind_in_blocks(device: Device, dtype: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices of one to eight blocks. What is out of range is in the second block, or in a later one."""
    monkeypatch.setattr(device, "limits", replace(device.limits, software=False))
    length = 1024 if dtype == "float64" else 2048
    if kind == "random walks":
        x = wandering(dtype, (100, length), 0.3, seed=7)
    elif kind == "decays":
        x = np.random.default_rng(7).uniform(-1, 1, (100, length)).astype(dtype)
    else:
        x = in_few_blocks(kind, dtype, 100, length)
    for part in (x, x[:, :1000], x[:, :480]):
        check_scan(device, np.ascontiguousarray(part), "product", 1)
        check_scan(device, np.ascontiguousarray(part[:, ::-1]), "product", 1, exclusive=True, reverse=True)


@pytest.mark.combinations
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_each_kind_in_columns(device: Device, dtype: str, reverse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kinds change from slice to slice of an invocation."""
    monkeypatch.setattr(device, "limits", changed(device.limits, near_elements=0))
    there = slice(None, None, -1 if reverse else 1)
    mixed = np.random.default_rng(1).permutation(len(together(dtype)))
    x = np.ascontiguousarray(together(dtype)[mixed, there].T)
    got = scan(device, x, "product", 0, exclusive=reverse, reverse=reverse)
    assert reference.first_difference(got.T, expected(dtype, reverse)[mixed, there]) is None


@pytest.mark.parametrize("dtype", FLOATS)
def test_spans_in_columns(device: Device, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "limits", changed(device.limits, near_elements=0))
    columns = np.concatenate([alone("c of a span", dtype).T] * 2, axis=1)
    columns = np.concatenate([columns, columns], axis=1)[:, :256]
    got = scan(device, columns, "product", 0)
    assert reference.first_difference(got[:, :100].T, expected(dtype, False, of_span=True)) is None


@pytest.mark.parametrize("binding", [4096, 70_000])
def test_each_kind_in_windows(device: Device, binding: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "limits", replace(device.limits, binding_bytes=binding))
    for kind in KINDS:
        x = alone(kind, "float32")[:3, : 6 * TILE]
        check_scan(device, x, "product", 1)
        check_scan(device, np.ascontiguousarray(x.T), "product", 0, exclusive=True)


def test_each_kind_element_by_element(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows that end inside a run."""
    monkeypatch.setattr(device, "limits", replace(device.limits, binding_bytes=4096))
    for kind in ("element", "r", "h1", "h8", "q", "result"):
        x = alone(kind, "float32")[0, : 3 * TILE]
        near, far = Layout((x.size, 1), (100, 1)), Layout((x.size, 1), (130, 1))
        check_scan(device, x.reshape(-1, 1), "product", 0, source=near, target=far)


@pytest.mark.combinations
@pytest.mark.parametrize("length", [1, 2, 3, 7, 16, 17, 100, 300])
@pytest.mark.parametrize("dtype", FLOATS)
def test_short_slices(device: Device, dtype: str, length: int) -> None:
    """From the first element on: alone it is copied as it is, and as an operand it is a zero if it is too small."""
    low = np.finfo(np.float32 if dtype == "float16" else dtype).minexp
    rng = np.random.default_rng(length)
    exponents = rng.integers(-24 if dtype == "float16" else low - 8, 15, (9000 // length * 10 + 5, length))
    exponents[::2] = rng.choice([low - 1, low, low + 1, 0, -low], exponents[::2].shape)
    if dtype == "float16":
        exponents = np.clip(exponents, -24, 14)
    x = np.ldexp(rng.uniform(1, 2, exponents.shape) * rng.choice([-1, 1], exponents.shape), exponents).astype(dtype)
    x[::7] = np.where(rng.random(x[::7].shape) < 0.3, rng.choice([np.inf, np.nan, 0.0, -0.0], x[::7].shape), x[::7])
    check_scan(device, x, "product", 1)
    check_scan(device, x, "product", 1, exclusive=True, reverse=True)
    check_scan(device, np.ascontiguousarray(x[:300].T), "product", 0)


@pytest.mark.combinations
@pytest.mark.parametrize("length", [5, 8, 16])
@pytest.mark.parametrize("dtype", FLOATS)
def test_one_of_many_short_slices_comes_near_underflow(
    device: Device, dtype: str, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An invocation has many on a CPU, and looks at a product's values when it has all of a slice's."""
    monkeypatch.setattr(device, "limits", changed(device.limits, cores=2))  # so many slices are enough for more
    rng, shape = np.random.default_rng(length), (max(5000, 2**16 // length + 100), length)
    x = (rng.uniform(1, 1.5, shape) * rng.choice([-1, 1], shape)).astype(dtype)
    tiny = 2.0**-14 if dtype == "float16" else np.finfo(dtype).tiny
    few = np.flatnonzero(rng.random(len(x)) < 0.03)
    few = few[few != 0]
    at = rng.integers(0, length - 1, few.size)
    x[few, at] = rng.choice([tiny, tiny / 8, -3 * tiny, 0, -0.0, np.inf, np.nan], few.size)
    x[few, at + 1] = rng.choice([tiny, 2.0**14, 0.5, np.inf, 1], few.size)
    x[few[::3]] *= np.dtype(dtype).type(2.0**-13)  # float16 needs many to get there
    gaps = Layout(x.shape, (20, 1))
    for layout in (Layout.packed(x.shape), gaps):
        check_scan(device, x, "product", 1, source=layout, target=Layout.packed(x.shape))
        check_scan(device, x, "product", 1, exclusive=True, source=layout, target=layout)  # in place
    check_scan(device, x, "product", 1, reverse=True)
    check_scan(device, np.ascontiguousarray(x.T), "product", 0)


@pytest.mark.parametrize("length", [6, 16])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_underflow_that_nan_follows_in_one_of_many_short_slices(
    device: Device, dtype: str, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The least magnitude of float64 is a choice between numbers, which NaN wins."""
    monkeypatch.setattr(device, "limits", changed(device.limits, cores=2))
    x = np.ones((2**16 // length + 100, length), dtype)
    low = np.finfo(dtype).minexp
    x[0, :4] = 2.0 ** (low // 2 - 90), 2.0 ** (low // 2 + 85), 2.0 ** (-low // 2), np.nan
    assert (reference.cumulative(x, "product", axis=1)[0, 1:3] == 0).all()
    for padding in (0, 4):  # with gaps no kernel takes whole runs
        check_scan(device, x, "product", 1, source=Layout(x.shape, (length + padding, 1)))


@pytest.mark.combinations
@pytest.mark.parametrize("length", [2, 3, 5, 16])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_smallest_normal_number_is_a_zero_in_left_folds(device: Device, dtype: str, length: int) -> None:
    """In slices of a run, few and so many that an invocation has several, and in runs of longer slices."""
    for slices in (2 * length, 2**16 // length + 1):
        x = smallest_normals(dtype, slices, length)
        right = reference.cumulative(x, "product", axis=1)
        got = scan(device, x, "product", 1)
        assert reference.first_difference(got, right) is None
    for number, row in enumerate(got[: 2 * length]):
        assert np.flatnonzero(row == 0).tolist() == list(range(max(1, number % length), length))
        assert (np.signbit(row) == (number >= length)).all()
    check_scan(device, np.concatenate([np.ones((2 * length, 5000), dtype), x[: 2 * length]], axis=1), "product", 1)


@pytest.mark.parametrize("kernel", KERNELS)
def test_left_folds_that_fall_stay_zero(device: Device, kernel: str) -> None:
    x = falling(30, 4200)
    right = reference.cumulative(x, "product", axis=1)
    assert right[:, 47].all()
    assert not right[:, 64:].any()
    check_scan(device, x, "product", 1, kernel=kernel)


@pytest.mark.parametrize("kernel", KERNELS)
def test_windows_behind_a_result_near_the_smallest(
    device: Device, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last result of a window is in range for left folds, and out of it for the tiles behind."""
    monkeypatch.setattr(device, "limits", replace(device.limits, dispatch_elements=2 * TILE))
    for dtype in ("float32", "float64"):
        for row in s_of_a_window(dtype, 5):
            check_scan(device, row, "product", 0, kernel=kernel)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_result_that_alone_overflows(device: Device, kernel: str, dtype: str) -> None:
    for x in (peaks_of_products(dtype), climbing_products(dtype)):
        assert np.isinf(reference.cumulative(x, "product", axis=1)[:, -1]).all()
        check_scan(device, x, "product", 1, kernel=kernel)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_products_in_range_are_no_left_folds(device: Device, kernel: str, dtype: str) -> None:
    """Though a run's own total goes into it twice where it is taken for what comes before."""
    x = lone_peaks(dtype, 64, 49)
    assert np.isfinite(reference.cumulative(x, "product", axis=1)).all()
    check_scan(device, x, "product", 1, kernel=kernel)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_run_of_a_block_goes_on_from_the_runs_before(
    device: Device, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the two tests before, with the short slices of a GPU, which share a workgroup."""
    monkeypatch.setattr(device, "limits", replace(device.limits, software=False))
    for x in (peaks_of_products(dtype), climbing_products(dtype), lone_peaks(dtype, 64, 49)):
        check_scan(device, x, "product", 1)


@pytest.mark.combinations
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_random_walks_in_every_kernel(device: Device, kernel: str, dtype: str) -> None:
    for step, both in ((0.01, False), (0.05, True), (0.2, False)):
        x = wandering(dtype, (5, 20_000), step, seed=7)
        check_scan(device, x, "product", 1, kernel=kernel, exclusive=both, reverse=both)
        across = wandering(dtype, (9000, 12), step, seed=8, axis=0)
        check_scan(device, across, "product", 0, kernel=kernel, exclusive=both)


@pytest.mark.combinations
@pytest.mark.parametrize("kernel", KERNELS)
def test_infinity_times_what_is_too_small_is_nan(device: Device, kernel: str) -> None:
    """In an absorbed slice, too, where only classes count: devices that flush and devices that don't agree."""
    x = infinity_times_small()
    got = reference.cumulative(x, "product", axis=1)
    assert np.isnan(got[:, -1]).tolist() == [True, False, True, True, False, False]
    assert np.signbit(got[4:, -1]).all()
    check_scan(device, x, "product", 1, kernel=kernel)
    check_scan(device, np.repeat(x.T, 50, axis=1), "product", 0, kernel=kernel)


def decays(length: int) -> NDArray[np.float32]:
    """Return slices that come to nothing: slowly, by a zero at once, by a zero late; and one that has a NaN."""
    x = np.full((4, length), 0.999, np.float32)
    x[1:, :] = 1
    x[1, 0], x[2, length // 2], x[3, 5] = 0, -0.0, np.nan
    return x


@pytest.mark.parametrize("kernel", KERNELS)
def test_decays(device: Device, kernel: str) -> None:
    x = decays(300_000)
    right = reference.cumulative(x[0], "product", axis=0)
    assert right[80_000] > 0
    assert not right[100_000:].any()
    for row in x:
        check_scan(device, row, "product", 0, kernel=kernel)


CHECKS = [
    one
    for path in sorted(shaders.folder().rglob("*.wgsl"))
    for one in alterations(path.read_text(encoding="utf-8"), path.relative_to(shaders.folder()).as_posix())
    if one.kind == "check"
]
"""The checks of what is out of range, each taken out."""


@pytest.mark.combinations
@pytest.mark.parametrize("number", range(0, len(CHECKS), 50))
def test_no_check_is_superfluous(device: Device, number: int, tmp_path: Path) -> None:
    """A sample of what ``make mutation`` tries: each is noticed by slices in which one kind of value decides."""
    trials = [Trial(case, changes, is_special=True) for case, changes in near_underflow_trials()]
    for trial in trials:
        trial.plan(device)
    outcome = Bench(device, tmp_path / "wgsl", trials).try_out(CHECKS[number])
    assert outcome.state == "caught", f"{CHECKS[number]}: {outcome.by}"
