"""Monotone sums: the largest sum so far, bit for bit as a plain fold has it, in every kernel and on every face."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from numpy.typing import NDArray

import dmlgpu
from dmlgpu import reference
from dmlgpu.dtypes import ELEMENT_TYPES, by_name
from dmlgpu.errors import ArgumentError
from dmlgpu.layout import Layout
from dmlgpu.planning.kernels import check_pass
from dmlgpu.planning.plan import EVERYWHERE, plan_problem
from dmlgpu.planning.problem import Operator, ScanOptions, scan_problem
from dmlgpu.planning.windows import TILE, Limits
from dmlgpu.reference.maximum import running_maximum
from dmlgpu.runtime.device import Device

from .cli_runner import runner
from .harness import changed, check_scan, run
from .samples import DTYPES, every_kind

FLOATS = [name for name in DTYPES if name.startswith("float")]
ORDERS = list(product((False, True), (False, True)))


def larger(a: Any, b: Any) -> Any:
    """Return the larger one of two numbers: NaN before all, and 0 before -0."""
    if a != a or b != b:
        return a if a != a else b
    if a == b == 0:
        return b if math.copysign(1, a) < 0 else a
    return a if a > b else b


def folded(sums: NDArray[Any], *, exclusive: bool = False, reverse: bool = False) -> NDArray[Any]:
    """Return the largest of the inclusive sums so far, of each row, by a plain loop."""
    out = np.empty_like(sums)
    for row, results in zip(out, sums, strict=True):
        found = list(results[:: -1 if reverse else 1])
        for i in range(1, len(found)):
            found[i] = larger(found[i - 1], found[i])
        found = [results.dtype.type(0), *found[:-1]] if exclusive else found
        row[:] = found[:: -1 if reverse else 1]
    return out


def uniform(shape: int | tuple[int, ...], dtype: str = "float32") -> NDArray[Any]:
    return np.random.default_rng(0).random(shape).astype(dtype)


def varied(dtype: str, shape: tuple[int, ...], seed: int = 0) -> NDArray[Any]:
    """Return numbers of both signs whose sums go up and down, and of floats now and then NaN, infinity and zeros."""
    rng = np.random.default_rng([seed, *shape])
    if np.dtype(dtype).kind != "f":
        small = rng.integers(0 if dtype.startswith("u") else -1, 2, shape)
        return np.where(rng.random(shape) < 0.99, small, 3).astype(dtype)
    x = rng.standard_normal(shape)
    x[shape[0] // 2 :] *= rng.random((shape[0] - shape[0] // 2, *shape[1:])) < 0.01
    x[-1].flat[: x[-1].size // 2] = -0.0
    x[-2].flat[2 * x[-2].size // 3 :] = rng.choice([np.inf, -np.inf, np.nan])
    return x.astype(dtype)


def check(device: Device, x: NDArray[Any], axis: int, **options: Any) -> None:
    check_scan(device, x, "sum", axis, monotone=True, **options)


class TestReference:
    @pytest.mark.combinations
    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("length", [1, 2, 17, 300, 4500])
    def test_it_is_a_fold_of_the_sums(self, dtype: str, length: int) -> None:
        for x in (every_kind(dtype, (5, length)), varied(dtype, (5, length))):
            for (exclusive, reverse), compensated in product(ORDERS, (False, True) if dtype == "float32" else (False,)):
                sums = reference.cumulative(x, "sum", axis=1, reverse=reverse, compensated=compensated)
                order: Any = {"exclusive": exclusive, "reverse": reverse}
                found = reference.cumulative(x, "sum", axis=1, monotone=True, compensated=compensated, **order)
                assert reference.first_difference(found, folded(sums, **order)) is None

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_zeros_infinities_and_nan(self, dtype: str) -> None:
        for results, expected in (
            ([-0.0, 0.0, -0.0, 0.0], [-0.0, 0.0, 0.0, 0.0]),
            ([0.0, -0.0], [0.0, 0.0]),
            ([-1.0, -0.0, -2.0], [-1.0, -0.0, -0.0]),
            ([-np.inf, -5.0, np.inf, 7.0], [-np.inf, -5.0, np.inf, np.inf]),
            ([1.0, np.nan, np.inf, 2.0], [1.0, np.nan, np.nan, np.nan]),
            ([-np.nan, 1.0], [np.nan, np.nan]),
        ):
            found = running_maximum(np.array(results, dtype))
            assert reference.first_difference(found, np.array(expected, dtype)) is None

    def test_it_is_for_sums(self) -> None:
        with pytest.raises(ValueError, match="monotone is for sums, not for operator 'product'"):
            reference.cumulative(np.ones(3), "product", axis=0, monotone=True)


class TestKernels:
    @pytest.mark.combinations
    @pytest.mark.parametrize("kernel", EVERYWHERE)
    def test_lengths_and_orders(self, device: Device, kernel: str) -> None:
        for n, length in enumerate((1, 15, 16, 17, 255, 257, 4096, 4097, 9008)):
            for dtype in ("float32", "int64"):
                exclusive, reverse = ORDERS[n % 4]
                check(device, varied(dtype, (3, length)), 1, kernel=kernel, exclusive=exclusive, reverse=reverse)
                check(device, every_kind(dtype, (3, length)), 1, kernel=kernel, reverse=not reverse)

    @pytest.mark.combinations
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_types(self, device: Device, dtype: str) -> None:
        for length in (257, 4500, 20_000):
            for exclusive, reverse in ORDERS:
                check(device, varied(dtype, (3, length)), 1, exclusive=exclusive, reverse=reverse)
                check(device, every_kind(dtype, (3, length)), 1, exclusive=exclusive, reverse=reverse)

    @pytest.mark.parametrize("kernel", EVERYWHERE)
    def test_in_place_strided_and_beside(self, device: Device, kernel: str) -> None:
        x = varied("float32", (3, 4500))
        packed, wide = Layout.packed(x.shape), Layout(x.shape, (1, 4), 3)
        backwards = Layout(x.shape, (-4500, -1), 3 * 4500 - 1)
        check(device, x, 1, kernel=kernel, source=packed, target=packed)
        check(device, x, 1, kernel=kernel, source=wide, target=packed, exclusive=True)
        check(device, x, 1, kernel=kernel, source=packed, target=wide, reverse=True)
        check(device, x, 1, kernel=kernel, source=wide, target=backwards)
        for dtype in ("float16", "uint8"):
            y = varied(dtype, (3, 4500))
            check(device, y, 1, kernel=kernel, source=packed, target=replace(wide, offset=1), exclusive=True)

    @pytest.mark.parametrize("kernel", EVERYWHERE)
    def test_long_slices(self, device: Device, kernel: str) -> None:
        check(device, uniform(140_001), 0, kernel=kernel)
        check(device, varied("float64", (2, 70_000)), 1, kernel=kernel, exclusive=True, reverse=True)
        check(device, varied("int8", (66_000, 3)), 0, kernel=kernel)

    @pytest.mark.combinations
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_slices_side_by_side(self, device: Device, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
        for near in (device.limits.traits.near_elements, 0):
            monkeypatch.setattr(device, "limits", changed(device.limits, near_elements=near))
            check(device, varied(dtype, (17, 512)), 0)
            check(device, varied(dtype, (300, 256)), 0, exclusive=True, reverse=True)
            check(device, varied(dtype, (4500, 128)), 0)

    @pytest.mark.combinations
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_many_short_slices(self, device: Device, dtype: str) -> None:
        for length in (1, 3, 16):
            check(device, varied(dtype, (2**16 // length + 17, length)), 1, exclusive=length == 3)

    @pytest.mark.parametrize("binding", [4096, 100_000])
    def test_windows(self, device: Device, binding: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """The maximum goes from window to window: cut inside tiles, and at tiles."""
        monkeypatch.setattr(device, "limits", replace(device.limits, binding_bytes=binding))
        for dtype in ("float32", "float16", "int64"):
            x, packed = varied(dtype, (2, 70_000))[0], Layout.packed((70_000,))
            check(device, x, 0)
            check(device, x, 0, exclusive=True, reverse=True, source=packed, target=packed)
            check(device, varied(dtype, (9000, 3)), 0)

    @pytest.mark.parametrize("kernel", ["rows", "lookback", "reduce_then_scan", "serial"])
    def test_windows_of_whole_tiles(self, device: Device, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(device, "limits", replace(device.limits, dispatch_elements=5 * TILE))
        check(device, varied("float32", (2, 100_000))[0], 0, kernel=kernel)
        check(device, varied("uint64", (2, 100_000))[0], 0, kernel=kernel, exclusive=True)

    @pytest.mark.parametrize("kernel", EVERYWHERE)
    def test_float64_on_words(self, device: Device, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(device, "limits", replace(device.limits, float64=False))
        check(device, varied("float64", (4, 4500)), 1, kernel=kernel)

    @pytest.mark.parametrize("kernel", EVERYWHERE)
    def test_compensated_sums(self, device: Device, kernel: str) -> None:
        x = uniform((3, 9000)) * np.float32(1e8) + uniform((3, 9000))
        check(device, x, 1, kernel=kernel, compensated=True)
        check(device, varied("float32", (4, 300)), 1, kernel=kernel, compensated=True, exclusive=True)

    @pytest.mark.combinations
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_every_pattern_is_ordered(self, device: Device, dtype: str) -> None:
        """The maximum alone, of elements that no sum gives: every float16, and the ends of each type."""
        bits = np.random.default_rng(1).permutation(2**16).astype(np.uint16)
        if np.dtype(dtype).itemsize <= 2:
            x = bits.view(dtype)
        else:
            random = np.random.default_rng(2)
            x = random.integers(0, 256, 2**16 * np.dtype(dtype).itemsize, np.uint8).view(dtype)
            ends = [0, 1] if x.dtype.kind == "u" else [0, -1, 1]
            if x.dtype.kind == "f":
                info = np.finfo(dtype)
                ends = [0.0, -0.0, info.max, info.min, info.tiny, -info.tiny, np.inf, -np.inf]
            x[random.integers(0, x.size, 9000)] = random.choice(np.array(ends, dtype), 9000)
        x = x.reshape(-1, 16)
        layout = Layout.packed(x.shape)
        problem = scan_problem(by_name(dtype), Operator.SUM, layout, layout, 1, ScanOptions(monotone=True)).maxima
        found = run(device, problem, x, layout, layout, x.dtype)
        assert reference.first_difference(found, folded(x)) is None


class TestPlans:
    @pytest.mark.parametrize("limits", [Limits(), changed(Limits(), software=True, columns=True, near_elements=0)])
    def test_sums_then_maxima_in_the_output(self, limits: Limits) -> None:
        for element, (sizes, axis) in product(
            ELEMENT_TYPES, (((5, 9008), 1), ((300, 1024), 0), ((70_000, 3), 1), ((9001,), 0))
        ):
            source, target = Layout.packed(sizes), Layout.packed(sizes, 1_000_000)
            for one_buffer, exclusive in product((False, True), (False, True)):
                problem = scan_problem(
                    element, Operator.SUM, source, target, axis, ScanOptions(exclusive=exclusive, monotone=True)
                )
                passes = plan_problem(problem, limits, one_buffer=one_buffer).passes
                of_maxima = [dict(one.pipeline.slots)["element"].startswith("max") for one in passes]
                assert of_maxima == sorted(of_maxima)
                assert any(of_maxima)
                for one, is_maximum in zip(passes, of_maxima, strict=True):
                    check_pass(one)
                    slots = dict(one.pipeline.slots)
                    if is_maximum and "input" in slots:
                        assert slots["input"].startswith("in_output")
                        assert one.params["exclusive"] == exclusive
                    elif not is_maximum:
                        assert one.params["exclusive"] == 0
                kernels = {one.pipeline.kernel for one in passes[of_maxima.index(True) :]}
                bands = {"scan_bands", "scan_bands_exact", "scan_bands_repair"}
                assert not kernels & {*bands, "scan_repair"}

    def test_other_operators_are_refused(self) -> None:
        layout = Layout.packed((3,))
        with pytest.raises(
            ArgumentError, match=r"^monotone is True, which is for sums, while operator is 'product': leave it out$"
        ):
            scan_problem(by_name("float32"), Operator.PRODUCT, layout, layout, 0, ScanOptions(monotone=True))


class TestSums:
    def test_uniform_numbers(self, device: Device) -> None:
        """What docs/numerics.md says of 2^20 uniform numbers."""
        x = np.random.default_rng(0).random(2**20, np.float32)
        plain = dmlgpu.cumulative_sum(x, device=device)
        decreases = int((np.diff(plain) < 0).sum())
        text = (Path(__file__).parent.parent / "docs" / "numerics.md").read_text(encoding="utf-8")
        assert f"decrease {decreases} times" in text
        found = dmlgpu.cumulative_sum(x, monotone=True, device=device)
        assert (np.diff(found) >= 0).all()
        assert (found >= plain).all()
        assert np.count_nonzero(found != plain) < 20 * decreases
        assert (found - plain <= np.spacing(plain)).all()

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_results_that_do_not_decrease_are_the_plain_ones(self, device: Device, dtype: str) -> None:
        x = np.random.default_rng(1).integers(0, 3, 900).astype(dtype)
        found = dmlgpu.cumulative_sum(x, monotone=True, device=device)
        assert found.tobytes() == dmlgpu.cumulative_sum(x, device=device).tobytes()

    @pytest.mark.parametrize("on_device", [False, True])
    def test_the_identity_comes_before_the_maxima(self, device: Device, on_device: bool) -> None:
        x = np.float32([-3, 1, -2, 5])
        given = dmlgpu.asarray(x, device) if on_device else x
        for options, expected in (
            ({}, [-3, -2, -2, 1]),
            ({"exclusive": True}, [0, -3, -2, -2]),
            ({"include_initial": True}, [0, -3, -2, -2, 1]),
            ({"reverse": True}, [5, 5, 5, 5]),
            ({"reverse": True, "exclusive": True}, [5, 5, 5, 0]),
            ({"reverse": True, "include_initial": True}, [5, 5, 5, 5, 0]),
        ):
            found = dmlgpu.cumulative_sum(given, monotone=True, device=device, **options)  # type: ignore[call-overload]
            assert np.asarray(found).tolist() == expected, options
        found = dmlgpu.cumulative_sum(np.float32([-0.0, -0.0]), monotone=True, exclusive=True, device=device)
        assert np.signbit(found).tolist() == [False, True]

    def test_integers_that_wrap(self, device: Device) -> None:
        x = np.full(5, 100, np.uint8)
        out = np.zeros(5, np.uint8)
        assert dmlgpu.cumulative_sum(x, out=out, monotone=True, device=device) is out
        assert out.tolist() == [100, 200, 200, 200, 244]
        assert dmlgpu.cumulative_sum(x, monotone=True, device=device).tolist() == [100, 200, 300, 400, 500]

    def test_conversion_overlap_views_and_other_axes(self, device: Device) -> None:
        x = varied("float32", (30, 40))
        sums = dmlgpu.cumulative_sum(x.astype("float16"), dtype="float64", axis=0, device=device)
        found = dmlgpu.cumulative_sum(x.astype("float16"), dtype="float64", axis=0, monotone=True, device=device)
        assert reference.first_difference(found, np.ascontiguousarray(folded(sums.T).T)) is None
        array = dmlgpu.asarray(x, device)
        expected = dmlgpu.cumulative_sum(x[:, ::-1], axis=1, monotone=True, device=device)
        dmlgpu.cumulative_sum(array[:, ::-1], axis=1, out=array, monotone=True)
        assert reference.first_difference(array.numpy(), expected) is None


class TestPieces:
    @pytest.mark.combinations
    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint64"])
    @pytest.mark.parametrize("on_device", [False, True])
    def test_any_cutting_has_the_bits_of_the_whole(self, device: Device, dtype: str, on_device: bool) -> None:
        for n, (shape, axis) in enumerate((((20_000,), 0), ((9000, 3), 0), ((2, 20_000), 1), ((300, 5000), 1))):
            exclusive, reverse = ORDERS[n]
            x = varied(dtype, shape) if len(shape) > 1 else varied(dtype, (2, *shape))[0]
            options: Any = {"axis": axis, "dtype": dtype, "exclusive": exclusive, "reverse": reverse}
            scan = dmlgpu.Scan("sum", **options, monotone=True, device=device)
            results = []
            cuts = np.split(np.flip(x, axis) if reverse else x, [1, 4000, 4100, 4990], axis)
            for number, part in enumerate(cuts):
                given = np.flip(part, axis) if reverse else part
                results.append(np.asarray(scan.push(dmlgpu.asarray(given, device) if on_device else given)))
                if number != 3:  # behind which carries stay on the device
                    scan = dmlgpu.Scan.resume(scan.state, device=device)
            results.append(scan.finish())
            found = np.concatenate(results[::-1] if reverse else results, axis)
            expected = dmlgpu.cumulative_sum(x, monotone=True, device=device, **options)
            assert reference.first_difference(found, expected) is None

    def test_products_are_refused(self) -> None:
        with pytest.raises(
            ArgumentError, match=r"^monotone is True, which is for sums, while operator is 'product': leave it out$"
        ):
            dmlgpu.Scan("product", axis=0, monotone=True)

    @pytest.mark.combinations
    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint64"])
    def test_dask_arrays(self, device: Device, dtype: str) -> None:
        x = varied(dtype, (3, 12_000))
        for (exclusive, reverse), chunks in product(ORDERS, ((2, 3000), (3, (1, 4096, 0, 4000, 3903)))):
            options: Any = {"axis": 1, "dtype": dtype, "reverse": reverse, "monotone": True}
            for more in ({"exclusive": exclusive}, {"include_initial": True}):
                lazy = dmlgpu.cumulative_sum(da.from_array(x, chunks=chunks), **options, **more)
                expected = dmlgpu.cumulative_sum(x, device=device, **options, **more)
                assert (lazy.dtype, lazy.shape) == (expected.dtype, expected.shape)
                assert reference.first_difference(lazy.compute(scheduler="synchronous"), expected) is None
        assert dmlgpu.cumulative_sum(da.zeros((0,), dtype=dtype), monotone=True).compute().shape == (0,)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, to = tmp_path / "x.npy", tmp_path / "y.npy"
    x = np.zeros(49, np.float32)
    x[[0, 16, 32]] = 1, 2**-23.7, 2**-23.9
    np.save(path, x)
    for options, decreases in (((), 1), (("--monotone",), 0)):
        done = runner(capsys)("cumsum", str(path), *options, "-o", str(to))
        assert done.status == 0, done.err
        assert ("monotone cumsum of" in done.out) == bool(options)
        assert np.count_nonzero(np.diff(np.load(to)) < 0) == decreases
