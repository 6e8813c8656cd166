"""The scan kernels against the reference, bit for bit: types, lengths, layouts, sizes."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dmlgpu import dtypes, reference
from dmlgpu.layout import Layout
from dmlgpu.planning import scan as scans
from dmlgpu.planning.plan import KERNELS, plan_problem
from dmlgpu.planning.problem import Operator, Precision, ScanOptions, ScanProblem, scan_problem
from dmlgpu.planning.windows import Limits
from dmlgpu.runtime.device import Device

from .harness import SUSPECTS, changed, check_scan, expected_scan, kernel_of, numbers, scan

LENGTHS = (1, 15, 16, 17, 255, 256, 257, 4095, 4096, 4097)
LONG_LENGTHS = (65_535, 65_536, 65_537, 300_007)
VARIANTS = list(product(("sum", "product"), (False, True), (False, True)))


@pytest.mark.combinations
@pytest.mark.parametrize("element", dtypes.ELEMENT_TYPES, ids=str)
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_type_and_variant(device: Device, element: dtypes.ElementType, kernel: str) -> None:
    for length, (operator, exclusive, reverse) in product(LENGTHS, VARIANTS):
        x = numbers((2, length), element.dtype, operator)
        check_scan(device, x, operator, 1, exclusive=exclusive, reverse=reverse, kernel=kernel)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
@pytest.mark.parametrize("software", [False, True])
def test_single_runs(device: Device, dtype: str, software: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In quads on a GPU, whatever the type; on a CPU only where quads hold more than four elements."""
    monkeypatch.setattr(device, "limits", replace(device.limits, software=software))
    for (operator, exclusive, reverse), length in product(VARIANTS, (4, 16)):
        x = numbers((130, length), dtype, operator)
        check_scan(device, x, operator, 1, exclusive=exclusive, reverse=reverse)


@pytest.mark.combinations
@pytest.mark.parametrize("element", dtypes.ELEMENT_TYPES, ids=str)
def test_blocks(device: Device, element: dtypes.ElementType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short slices without gaps on a GPU: whole workgroups, part of one, and a few slices that are no whole vectors."""
    monkeypatch.setattr(device, "limits", replace(device.limits, software=False))
    for length in (1, 3, 8, 16, 17, 100, 161, 256, 257, 516, 1000, 2048):
        for (operator, exclusive, reverse), slices in product(VARIANTS, (16, 2**16 // length + 5)):
            x = numbers((slices, length), element.dtype, operator)
            check_scan(device, x, operator, 1, exclusive=exclusive, reverse=reverse)
        place = Layout.packed(x.shape)
        check_scan(device, x, "sum", 1, source=place, target=place)
        check_scan(device, x, "sum", 1, monotone=True)
    monkeypatch.setattr(device, "limits", replace(device.limits, binding_bytes=2**14))
    check_scan(device, numbers((2**16 // 40 + 3, 40), element.dtype), "sum", 1)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8"])
@pytest.mark.usefixtures("fresh_plans")
def test_blocks_and_slices_that_are_left_over(device: Device, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "_ENOUGH_FOR_A_REST", 0)
    monkeypatch.setattr(scans, "_MANY_SHORT_ELEMENTS", 0)
    monkeypatch.setattr(device, "limits", replace(device.limits, software=False))
    for length, (operator, exclusive, reverse) in product((3, 17, 241, 257, 305, 511), VARIANTS):
        x = numbers((2 * 16 + 7, length), dtype, operator)
        check_scan(device, x, operator, 1, exclusive=exclusive, reverse=reverse)
    layout = Layout.packed((39, 241))
    problem = scan_problem(dtypes.by_name(dtype), Operator.SUM, layout, layout, axis=1)
    passes = plan_problem(problem, device.limits).passes
    assert [one.pipeline.kernel for one in passes] == ["scan_blocks", "scan_rows"]


@pytest.mark.combinations
@pytest.mark.parametrize("dtype", ["float32", "int32", "int64", "float64"])
def test_blocks_that_begin_anywhere(device: Device, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By element: of slices that are no whole vectors together, or that begin inside one."""
    monkeypatch.setattr(device, "limits", replace(device.limits, software=False))
    longest = 1024 if np.dtype(dtype).itemsize == 8 else 2048
    for length in (1, 3, 16, 17, 100, 129, 256, 257, 513, 1000, longest - 1, longest):
        for number, (operator, exclusive, reverse) in enumerate(VARIANTS):
            slices = 2**16 // length // 14 * 14 + 15  # a few for the last workgroup
            x = numbers((slices, length), dtype, operator)
            near, far = Layout.packed(x.shape, 1 + number % 3), Layout.packed(x.shape, 1)
            order = {"exclusive": exclusive, "reverse": reverse}
            check_scan(device, x, operator, 1, source=near, target=far, **order)
        check_scan(device, x, "sum", 1, source=far, target=far)  # in place
        check_scan(device, x, "sum", 1, source=far, target=far, monotone=True)
    monkeypatch.setattr(device, "limits", replace(device.limits, binding_bytes=2**14))
    check_scan(device, numbers((2**16 // 601 + 3, 601), dtype), "sum", 1)


@pytest.mark.combinations
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("length", LONG_LENGTHS)
def test_long_slices(device: Device, dtype: str, kernel: str, length: int) -> None:
    for operator, exclusive, reverse in VARIANTS:
        x = numbers((length,), dtype, operator)
        check_scan(device, x, operator, 0, exclusive=exclusive, reverse=reverse, kernel=kernel)


@pytest.mark.parametrize("dtype", ["float64", "int32", "uint16"])
def test_long_slices_of_the_other_widths(device: Device, dtype: str) -> None:
    check_scan(device, numbers((2, 70_001), dtype), "sum", 1)
    check_scan(device, numbers((70_001, 2), dtype, "product"), "product", 0, exclusive=True, reverse=True)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_first_element_is_copied_and_missing_terms_are_skipped(device: Device, kernel: str) -> None:
    zeros = np.full((2, 5000), -0.0, np.float32)
    check_scan(device, zeros, "sum", 1, kernel=kernel)
    assert np.all(np.signbit(scan(device, zeros, "sum", 1, kernel=kernel)))
    x = np.ones((1, 5000), np.float32)
    x[0, ::7] = -0.0
    check_scan(device, x, "product", 1, kernel=kernel)


@pytest.mark.parametrize("kernel", KERNELS)
def test_special_values(device: Device, kernel: str) -> None:
    rng = np.random.default_rng(5)
    specials = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 3.4e38, -3.4e38, 1.0, -1.5, 2.0**-126], np.float32)
    for operator in ("sum", "product"):
        for frequency in (0.001, 0.5):
            x = numbers((4, 5000), np.float32, operator)
            where = rng.random(x.shape) < frequency
            x[where] = rng.choice(specials, where.sum())
            check_scan(device, x, operator, 1, kernel=kernel)
            check_scan(device, x, operator, 1, exclusive=True, reverse=True, kernel=kernel)


@pytest.mark.parametrize("kernel", KERNELS)
def test_half_overflow_and_subnormals(device: Device, kernel: str) -> None:
    x = np.full((1, 300), 60_000.0, np.float16)
    assert np.isposinf(scan(device, x, "sum", 1, kernel=kernel)[0, 1:]).all()
    tiny = np.arange(1, 301, dtype=np.uint16).view(np.float16).reshape(1, 300)
    assert reference.same_bits(
        scan(device, tiny, "sum", 1, kernel=kernel), reference.cumulative(tiny, "sum", axis=1)
    ), "float16 subnormals are ordinary numbers in the float32 accumulator"


def half_subnormals() -> NDArray[np.float16]:
    """Return every subnormal number and 0.5, side by side: every second product is half-way between two subnormals."""
    x = np.full((2047, 2), 0.5, np.float16)
    x[:, 0] = np.arange(1, 2048, dtype=np.uint16).view(np.float16)
    return x


@pytest.mark.parametrize("kernel", KERNELS)
def test_half_subnormals_are_rounded_to_even(device: Device, kernel: str) -> None:
    """Sums of float16 are never between two subnormals; products are."""
    check_scan(device, half_subnormals(), "product", 1, kernel=kernel)


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_axis_of_eight_dimensions(device: Device, kernel: str) -> None:
    shape = (2, 3, 1, 4, 2, 3, 2, 5)
    x = numbers(shape, np.float32)
    for axis in range(8):
        check_scan(device, x, "sum", axis, kernel=kernel, reverse=axis % 2 == 1)


@pytest.mark.combinations
@pytest.mark.parametrize("dtype", ["float32", "uint8", "float16", "int64"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_layouts(device: Device, dtype: str, kernel: str) -> None:
    """Padded, transposed, reversed and offset on both sides; nothing but the elements is written."""
    shape = (3, 37, 5)
    x = numbers(shape, dtype)
    layouts = [
        Layout.packed(shape, offset=3),
        Layout(shape, (37 * 9, 9, 1), 1),
        Layout(shape, (1, 3, 3 * 37 + 2), 5),
        Layout(shape, (5, 15, 1), 0),
        Layout(shape, (-37 * 5, -5, -1), 37 * 15 - 1 + 7),
        Layout(shape, (2, 6, -6 * 37), 4 * 6 * 37 + 1),
    ]
    for (i, source), (j, target) in product(enumerate(layouts), enumerate(layouts)):
        axis, reverse = (i + j) % 3, bool(i % 2)
        check_scan(device, x, "sum", axis, reverse=reverse, source=source, target=target, kernel=kernel)


@pytest.mark.parametrize("kernel", KERNELS)
def test_broadcast_input(device: Device, kernel: str) -> None:
    base = numbers((1, 4, 1), np.float32)
    x = np.broadcast_to(base, (3, 4, 300))
    for axis in range(3):
        check_scan(device, x, "sum", axis, source=Layout((3, 4, 300), (0, 1, 0), 2), kernel=kernel)
        check_scan(device, x, "sum", axis, exclusive=True, source=Layout((3, 4, 300), (0, 1, 0)), kernel=kernel)


@pytest.mark.combinations
@pytest.mark.parametrize("dtype", ["float32", "uint8", "int16", "float16", "uint64"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_in_place(device: Device, dtype: str, kernel: str) -> None:
    for operator, exclusive, reverse in VARIANTS:
        x = numbers((3, 4500), dtype, operator)
        layout = Layout(x.shape, (4503, 1), 1)
        check_scan(
            device, x, operator, 1, exclusive=exclusive, reverse=reverse, source=layout, target=layout, kernel=kernel
        )


def test_two_tensors_of_one_buffer(device: Device) -> None:
    """Also where the binding limit makes one binding of both impossible."""
    x = numbers((3, 50), np.uint8)
    for limits in (device.limits, replace(device.limits, binding_bytes=512 + device.limits.offset_alignment)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(device, "limits", limits)
            memory = device.allocate(4000)
            everything = np.random.default_rng(0).integers(0, 256, 4000, np.uint8)
            everything[1:151] = x.reshape(-1)
            device.upload(memory, 0, everything)
            source, target = Layout.packed((3, 50), 1), Layout.packed((3, 50), 3501)
            from dmlgpu.planning.problem import Operator, scan_problem

            problem = scan_problem(dtypes.by_name("uint8"), Operator.SUM, source, target, axis=1)
            device.run(problem, memory, memory)
            after = np.empty_like(everything)
            device.download(memory, 0, after)
            everything[3501:3651] = reference.cumulative(x, "sum", axis=1).reshape(-1)
            assert after.tobytes() == everything.tobytes()
            memory.release()


@pytest.mark.combinations
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "float16"])
def test_no_neighbour_is_lost_in_a_shared_word(device: Device, dtype: str) -> None:
    """Slices of 1 to 9 elements side by side: invocations and workgroups share words everywhere."""
    for length in range(1, 10):
        x = numbers((501, length), dtype)
        for kernel in KERNELS:
            check_scan(device, x, "sum", 1, target=Layout.packed(x.shape, 1), kernel=kernel)


def test_more_slices_than_workgroups_in_a_dimension(device: Device) -> None:
    x = numbers((70_000, 65), np.uint8)
    check_scan(device, x, "sum", 1, kernel="lookback")
    check_scan(device, x, "sum", 1, kernel="serial", reverse=True)
    check_scan(device, x, "sum", 1, kernel="slices", exclusive=True)
    tall = numbers((2, 70_001), np.float32)
    check_scan(device, tall, "sum", 0)


@pytest.mark.parametrize("workgroups", [3, 4])
@pytest.mark.parametrize("kernel", KERNELS)
def test_grids_of_several_rows(device: Device, kernel: str, workgroups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last row has more workgroups than there is work, with three for slices, and with four for their tiles."""
    monkeypatch.setattr(device, "limits", replace(device.limits, workgroups=workgroups))
    check_scan(device, numbers((11, 9000), np.float32), "sum", 1, kernel=kernel)
    check_scan(device, numbers((9, 1001), np.int64), "product", 0, kernel=kernel, reverse=True)


@pytest.mark.parametrize("software", [False, True])
def test_slices_in_workgroups_of_either_size(device: Device, software: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "limits", replace(device.limits, software=software))
    for shape, axis in (((130, 300), 1), ((300, 130), 0), ((65, 4100), 1), ((3, 17, 50), 1)):
        x = numbers(shape, np.float32)
        check_scan(device, x, "sum", axis, kernel="slices")
        layout = Layout.packed(shape)
        check_scan(device, x, "product", axis, kernel="slices", exclusive=True, source=layout, target=layout)


@pytest.mark.combinations
@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "int64", "float64"])
@pytest.mark.parametrize("software", [False, True])
@pytest.mark.usefixtures("fresh_plans")
def test_many_short_slices(device: Device, software: bool, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every length, read by runs, by vectors and by element; on CPUs by pipelines that know how long they are."""
    monkeypatch.setattr(scans, "_MANY_SHORT_ELEMENTS", 0)
    monkeypatch.setattr(device, "limits", replace(device.limits, software=software))
    for length in range(1, 17):
        x = numbers((70, length), dtype)
        plan = plan_problem(
            scan_problem(dtypes.by_dtype(x.dtype), Operator.SUM, *[Layout.packed(x.shape)] * 2, axis=1), device.limits
        )
        first = plan.passes[0].pipeline
        known = dict(first.constants).get("slice_length")
        assert known == length or (not software and first.kernel == "scan_blocks")
        for exclusive in (False, True):
            check_scan(device, x, "sum", 1, exclusive=exclusive)
            check_scan(device, x, "sum", 1, exclusive=exclusive, reverse=True)
        if length in (3, 16):
            layout = Layout.packed(x.shape)
            check_scan(device, x, "product", 1, source=layout, target=layout)
            check_scan(device, numbers((length, 70), dtype), "sum", 0)


@pytest.mark.combinations
@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "int16", "int64"])
@pytest.mark.parametrize("length", [3, 4, 10])
def test_packed_slices(device: Device, dtype: str, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several an invocation, in several workgroups; what is in one slice stays there, and -0 survives."""
    monkeypatch.setattr(device, "limits", replace(device.limits, software=True))
    slices = (2**16 // length // 16 + 1) * 16 + 1
    for operator, exclusive in product(("sum", "product"), (False, True)):
        x = numbers((slices, length), dtype, operator)
        if x.dtype.kind == "f":
            x[::3] = -0.0
            some = x.reshape(-1)[5::37]
            some[:] = np.resize(np.array([np.nan, np.inf, -np.inf, 60_000, -1], dtype), some.shape)
        check_scan(device, x, operator, 1, exclusive=exclusive)
        layout = Layout.packed(x.shape, 16)
        check_scan(device, x, operator, 1, exclusive=exclusive, source=layout, target=layout)


@pytest.mark.usefixtures("fresh_plans")
def test_packed_slices_write_no_more_than_there_are(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one binding with the input, which lies behind the output."""
    monkeypatch.setattr(scans, "_MANY_SHORT_ELEMENTS", 0)
    monkeypatch.setattr(device, "limits", replace(device.limits, software=True, offset_alignment=256))
    x = numbers((1104, 3), np.int32)
    source, target = Layout.packed(x.shape, x.size), Layout.packed(x.shape)
    problem = scan_problem(dtypes.by_name("int32"), Operator.SUM, source, target, axis=1)
    (one,) = plan_problem(problem, device.limits, one_buffer=True).passes
    assert dict(one.pipeline.constants)["runs"] == 3
    assert one.input is None
    memory = device.allocate(2 * x.nbytes)
    device.upload(memory, 0, np.concatenate([np.zeros_like(x), x]))
    device.run(problem, memory, memory)
    after = np.empty((2208, 3), np.int32)
    device.download(memory, 0, after)
    memory.release()
    np.testing.assert_array_equal(after, np.concatenate([reference.cumulative(x, "sum", axis=1), x]))


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int64"])
def test_an_invocation_a_tile_of_slices_side_by_side(device: Device, dtype: str) -> None:
    """Numbers of slices and tiles that are no multiples of a workgroup's invocations."""
    for shape, axis in (((9000, 5), 0), ((2, 5000, 3), 1), ((5, 9000), 1)):
        x = numbers(shape, dtype)
        check_scan(device, x, "sum", axis, kernel="serial")
        check_scan(device, x, "product", axis, kernel="serial", exclusive=True, reverse=True)


BANDS = {
    # Shape, axis, strides and offset of the input, and of the output, with elements of one byte.
    "one_block": ((250, 1040), 0, (1040, 1), 0, (1040, 1), 16),
    "one_tile": ((3001, 1056), 0, (1056, 1), 0, (1056, 1), 0),
    "tiles": ((8500, 1024), 0, (1024, 1), 0, (1024, 1), 0),
    "slabs": ((37, 33, 48), 1, (33 * 48, 48, 1), 0, (33 * 64, 64, 1), 16),
    "reversed": ((40, 1280), 0, (-1312, 1), 39 * 1312, (1280, 1), 0),
    "wide": ((40, 8240), 0, (8240, 1), 0, (8240, 1), 0),
    "repeated": ((40, 1280), 0, (0, 1), 0, (1280, 1), 0),
    "few": ((4100, 384), 0, (384, 1), 0, (512, 1), 16),
}
"""Columns that are no whole bands, too, and rows that are whole blocks, runs, or neither."""


def bands_case(way: str, dtype: str) -> tuple[tuple[int, ...], int, Layout, Layout]:
    """Return shape, axis and layouts, with as many bytes a row whatever the type."""
    shape, axis, source, source_offset, target, target_offset = BANDS[way]
    size = 4 if dtype == "float64" else np.dtype(dtype).itemsize  # floats are taken by four
    sizes = (*shape[:-1], shape[-1] // size)
    layouts = [
        Layout(sizes, (*(stride // size for stride in strides[:-1]), 1), offset // size)
        for strides, offset in ((source, source_offset), (target, target_offset))
    ]
    return sizes, axis, layouts[0], layouts[1]


@pytest.mark.combinations
@pytest.mark.parametrize("way", BANDS)
@pytest.mark.parametrize("dtype", ["int8", "uint16", "float16", "float32", "int32", "float64", "uint64"])
def test_bands(device: Device, dtype: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices side by side on software devices, in bands of up to eight vectors."""
    shape, axis, source, target = bands_case(way, dtype)
    for many, operator, exclusive, reverse in (
        (True, "sum", False, False),
        (False, "sum", True, False),
        (True, "product", True, True),
        (False, "product", False, True),
    ):
        limits = changed(device.limits, software=True, near_elements=0, cores=1 if many else 2, columns=many)
        monkeypatch.setattr(device, "limits", limits)
        x = numbers(shape, dtype, operator)
        if way == "repeated":
            x = np.broadcast_to(x[:1], shape)
        element = dtypes.by_dtype(x.dtype)
        problem = scan_problem(element, Operator(operator), source, target, axis, ScanOptions(exclusive=exclusive))
        passes = plan_problem(problem, replace(limits, float64=True)).passes  # words of float64 take no bands
        expected = ["scan_bands", SUSPECTS] if element.kind == "float" else ["scan_bands_exact"]
        assert {kernel_of(one) for one in passes} == set(expected)
        vectors = {dict(one.pipeline.constants).get("vectors") for one in passes}
        few = 4 if many or dtype == "float16" else 2
        is_full = way in ("tiles", "slabs", "wide") or dtype == "float16"  # others would have many idle lanes
        is_wide = many and dtype != "float64" and is_full
        assert (few if way == "few" else 8 if is_wide else 4) in vectors
        check_scan(device, x, operator, axis, exclusive=exclusive, reverse=reverse, source=source, target=target)
        if element.kind != "float" and source.strides == target.strides:
            assert {one.pipeline.kernel for one in plan_problem(problem, limits, one_buffer=True).passes} == {*expected}
            check_scan(device, x, operator, axis, exclusive=exclusive, reverse=reverse, source=target, target=target)


ANY_BANDS = {
    # Shape, axis, strides and offset of the input, and of the output, in elements.
    "odd": ((4100, 67), 0, (67, 1), 0, (67, 1), 0),
    "even": ((300, 70), 0, (70, 1), 0, (70, 1), 2),
    "narrow": ((530, 25), 0, (29, 1), 3, (25, 1), 1),
    "wide": ((40, 1045), 0, (1045, 1), 0, (1045, 1), 0),
    "slabs": ((5, 33, 9), 1, (33 * 9, 9, 1), 0, (33 * 11, 11, 1), 5),
    "a word more": ((41, 100), 0, (101, 1), 0, (103, 1), 0),
    "two more": ((41, 98), 0, (99, 1), 0, (101, 1), 0),
    "columns": ((3, 40, 2, 13), 1, (40 * 40, 40, 20, 1), 7, (40 * 26, 26, 13, 1), 0),
    "reversed": ((40, 131), 0, (-133, 1), 39 * 133, (131, 1), 0),
    "repeated": ((40, 99), 0, (0, 1), 1, (99, 1), 0),
}
"""Rows that begin anywhere in vectors and words, and do not end with them."""


@pytest.mark.combinations
@pytest.mark.parametrize("way", ANY_BANDS)
@pytest.mark.parametrize("dtype", ["int8", "uint16", "float16", "float32", "int32", "float64", "uint64"])
def test_bands_of_any_width(device: Device, dtype: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With groups of columns at one place of a row, at two, at four and at eight."""
    shape, axis, strides, offset, target_strides, target_offset = ANY_BANDS[way]
    source, target = Layout(shape, strides, offset), Layout(shape, target_strides, target_offset)
    found = set()
    for cores, operator, exclusive, reverse in (
        (1, "sum", False, False),
        (2, "product", True, True),
        (2, "sum", True, False),
        (6, "product", False, True),
    ):
        limits = changed(device.limits, software=True, near_elements=0, cores=cores, columns=True)
        monkeypatch.setattr(device, "limits", limits)
        monkeypatch.setattr("dmlgpu.planning.policy._CORES_A_BAND", 6)
        monkeypatch.setattr("dmlgpu.planning.policy._FEW_UNALIGNED", 24)
        x = numbers(shape, dtype, operator)
        if way == "repeated":
            x = np.broadcast_to(x[:1], shape)
        element = dtypes.by_dtype(x.dtype)
        problem = scan_problem(element, Operator(operator), source, target, axis, ScanOptions(exclusive=exclusive))
        one, *others = plan_problem(problem, replace(limits, float64=True)).passes  # words of float64 take no bands
        assert one.pipeline.kernel == ("scan_bands" if element.kind == "float" else "scan_bands_exact")
        assert [kernel_of(other) for other in others] == [SUSPECTS] * (element.kind == "float")
        found.add(dict(one.pipeline.constants)["vectors"])
        check_scan(device, x, operator, axis, exclusive=exclusive, reverse=reverse, source=source, target=target)
        if element.kind != "float":
            check_scan(device, x, operator, axis, exclusive=exclusive, reverse=reverse, source=target, target=target)
    assert 1 in found or way == "wide" or dtype == "uint64"
    assert found & {2, 4, 8} or way not in ("odd", "wide") or dtype == "int8"


def test_bands_where_they_do_not_serve(device: Device) -> None:
    """Floats in place, whose exceptional tiles are read again; few elements, columns or neighbours."""
    limits = changed(device.limits, software=True, float64=True, near_elements=2**19, cores=2)
    many_cores = changed(limits, cores=16)

    def kernels(
        shape: tuple[int, int], dtype: str, pitch: int = 0, on: Limits = limits, step: int = 1, **options: bool
    ) -> set[str]:
        layout = Layout(shape, (pitch or shape[1], step))
        problem = scan_problem(dtypes.by_name(dtype), Operator.SUM, layout, layout, axis=0)
        return {kernel_of(one) for one in plan_problem(problem, on, **options).passes}

    for dtype in ("float32", "float16", "float64", "int32", "uint8"):
        own = {"scan_bands", SUSPECTS} if dtype.startswith("f") else {"scan_bands_exact"}
        for shape, pitch in (((600, 1024), 0), ((600, 1027), 0), ((600, 1024), 1025), ((40_000, 24), 0)):
            assert kernels(shape, dtype, pitch) == own
        is_for_far_ones_only = dtype in ("float32", "float64")
        assert (own & kernels((512, 1024), dtype) == set()) == is_for_far_ones_only
        assert not own & kernels((40_000, 23), dtype)
        assert not own & kernels((40_000, 48), dtype, on=many_cores)
        assert not own & kernels((16, 2**18), dtype)
        assert not own & kernels((600, 1024), dtype, 2048, step=2)
        if dtype.startswith("f"):
            assert not own & kernels((600, 1024), dtype, one_buffer=True)


STRIPS = {
    # Shape, axis, strides and offset of the input, and of the output, with elements of one byte.
    "one_stretch": ((200, 4144), 0, (4144, 1), 0, (4144, 1), 16),
    "one_tile": ((1100, 4128), 0, (4128, 1), 32, (4144, 1), 0),
    "tiles": ((4400, 4096), 0, (4096, 1), 0, (4096, 1), 0),
    "slabs": ((130, 263, 48), 1, (263 * 48, 48, 1), 0, (263 * 64, 64, 1), 16),
    "reversed": ((140, 4096), 0, (-4128, 1), 139 * 4128, (4096, 1), 0),
    "wide": ((140, 32_816), 0, (32_816, 1), 0, (32_816, 1), 0),
    "repeated": ((300, 4096), 0, (0, 1), 0, (4096, 1), 0),
}
"""Columns that are no whole strips, too, and rows that are whole stretches, blocks, runs, or neither."""
UNALIGNED_STRIPS = {
    # Shape, axis, strides and offset of the input, and of the output.
    "odd": ((300, 4099), 0, (4099, 1), 0, (4099, 1), 3),
    "a_column_more": ((4200, 513), 0, (513, 1), 1, (520, 1), 2),
    "shifted": ((300, 1024), 0, (1024, 1), 1, (1024, 1), 0),
    "slabs": ((9, 263, 101), 1, (263 * 101, 101, 1), 2, (264 * 103, 103, 1), 1),
    "reversed": ((140, 1021), 0, (-1021, 1), 139 * 1021, (1023, 1), 0),
    "wide": ((140, 16_447), 0, (16_447, 1), 5, (16_447, 1), 0),
}
"""Rows that begin inside a word, each at another place of one, and cells of 1 to 4 columns at their ends."""
STAGED_STRIPS = {
    # Shape, axis, strides and offset of the input, and of the output.
    "two": ((9001, 2), 0, (2, 1), 0, (2, 1), 1),
    "reversed": ((6000, 3), 0, (-3, 1), 5999 * 3 + 1, (3, 1), 2),
    "both_reversed": ((5003, 2), 0, (-2, 1), 5002 * 2 + 3, (-2, 1), 5002 * 2),
    "turns": ((5120, 2), 0, (2, 1), 1, (2, 1), 3),
    "four": ((2048, 4), 0, (4, 1), 3, (4, 1), 0),
    "slabs": ((3, 2050, 5), 1, (2051 * 5, 5, 1), 1, (2050 * 5 + 3, 5, 1), 0),
    "seven": ((2, 4130, 7), 1, (4130 * 7, 7, 1), 0, (4130 * 7, -7, 1), 4129 * 7),
    "nine": ((1100, 9), 0, (9, 1), 2, (9, 1), 1),
    "sixteen": ((2, 513, 16), 1, (513 * 16, 16, 1), 1, (514 * 16, 16, 1), 5),
}
"""Few columns without gaps, in rows that are whole turns of a stretch, stretches or neither."""


@pytest.mark.combinations
@pytest.mark.parametrize("length", [*range(1, 34), 61, 250, 2 * 4096 + 27])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16"])
def test_unaligned_runs(device: Device, dtype: str, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On software drivers, rows of narrow elements that begin anywhere in a word, of which neighbours have a part."""
    monkeypatch.setattr(device, "limits", changed(device.limits, software=True))
    sizes, element = (37 if length < 4096 else 5, length), dtypes.by_name(dtype)
    for operator, gap in product(("sum", "product"), range(4)):
        x = numbers(sizes, dtype, operator, seed=gap)
        target = Layout(sizes, (length + gap, 1), offset=gap)
        for source, kernel in product((target, Layout.packed(sizes, offset=gap + 1)), ("slices", "serial")):
            problem = scan_problem(element, Operator(operator), source, target, 1)
            one = plan_problem(problem, device.limits, kernel=kernel, one_buffer=source is target).passes[0]
            slots = dict(one.pipeline.slots)
            is_whole = all(n * element.itemsize % 16 == 0 for n in (gap, length)) and source is target
            assert slots["run_access"] == ("quads" if is_whole else "packed")
            check_scan(device, x, operator, 1, source=source, target=target, kernel=kernel, exclusive=gap % 2 == 1)


def of_whole_strips(limits: Limits) -> Limits:
    """Return limits of a GPU that takes no tiles of strips, however few these are."""
    return replace(limits, software=False, tuning=replace(limits.tuning, tile_columns=2**32))


def enough_strips(limits: Limits, problem: ScanProblem, width: str) -> Limits:
    """Return limits whose plans take the widest strips, the narrowest, or those in between."""
    enough = {"widest": 0, "narrowest": 2**32}.get(width)
    if enough is None:
        widest = enough_strips(limits, problem, "widest")
        enough = plan_problem(problem, widest, kernel="strips").passes[0].grid[0] + 1
    return replace(limits, tuning=replace(limits.tuning, enough_strips=enough))


STRIP_VARIANTS = (("sum", False, False), ("product", True, True), ("sum", True, False))
WIDTHS = ("widest", "between", "narrowest")


@pytest.mark.combinations
@pytest.mark.parametrize("way", STRIPS)
@pytest.mark.parametrize("dtype", ["int8", "uint16", "float16", "float32", "int32", "float64", "uint64"])
def test_strips(device: Device, dtype: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices side by side on GPUs, in strips of every width."""
    gpu = of_whole_strips(device.limits)
    size = np.dtype(dtype).itemsize
    shape, axis, *placed = STRIPS[way]
    shape = (*shape[:-1], shape[-1] // size)
    source, target = (
        Layout(shape, (*(stride // size for stride in strides[:-1]), 1), offset // size)
        for strides, offset in (placed[:2], placed[2:])
    )
    first = [*STRIPS].index(way)
    for number, (operator, exclusive, reverse) in enumerate(STRIP_VARIANTS):
        width = WIDTHS[(first + number) % len(WIDTHS)]
        x = numbers(shape, dtype, operator)
        if way == "repeated":
            x = np.broadcast_to(x[:1], shape)
        element = dtypes.by_dtype(x.dtype)
        problem = scan_problem(element, Operator(operator), source, target, axis, ScanOptions(exclusive=exclusive))
        monkeypatch.setattr(device, "limits", enough_strips(gpu, problem, width))
        passes = plan_problem(problem, replace(device.limits, float64=True)).passes
        is_exact = element.kind != "float"
        assert {kernel_of(one) for one in passes} == {"scan_strips", *([] if is_exact else [SUSPECTS])}
        possible = [16, 8] if dtype == "float16" else [16, 8, 4]
        expected = {"widest": possible[0], "narrowest": possible[-1]}.get(width, 8)
        assert dict(passes[0].pipeline.constants)["lanes"] == expected
        check_scan(device, x, operator, axis, exclusive=exclusive, reverse=reverse, source=source, target=target)
        if is_exact and source.strides == target.strides:
            passes = plan_problem(problem, device.limits, one_buffer=True).passes
            assert {one.pipeline.kernel for one in passes} == {"scan_strips"}
            check_scan(device, x, operator, axis, exclusive=exclusive, reverse=reverse, source=target, target=target)


@pytest.mark.combinations
@pytest.mark.parametrize("way", UNALIGNED_STRIPS)
@pytest.mark.parametrize("dtype", ["int8", "uint16", "float16"])
def test_unaligned_strips(device: Device, dtype: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words of narrow elements that begin inside words of memory, of which neighbours and other strips have parts."""
    gpu = of_whole_strips(device.limits)
    shape, axis, *placed = UNALIGNED_STRIPS[way]
    source, target = (Layout(shape, strides, offset) for strides, offset in (placed[:2], placed[2:]))
    first = [*UNALIGNED_STRIPS].index(way)
    for number, (operator, exclusive, reverse) in enumerate(STRIP_VARIANTS):
        x = numbers(shape, dtype, operator)
        element = dtypes.by_dtype(x.dtype)
        problem = scan_problem(element, Operator(operator), source, target, axis, ScanOptions(exclusive=exclusive))
        limits = enough_strips(gpu, problem, WIDTHS[(first + number) % len(WIDTHS)])
        monkeypatch.setattr(device, "limits", limits)
        cells = dict(plan_problem(problem, device.limits).passes[0].pipeline.slots)["cells"]
        assert cells == ("unaligned_halves" if dtype == "float16" else "unaligned")
        check_scan(device, x, operator, axis, exclusive=exclusive, reverse=reverse, source=source, target=target)
        if dtype != "float16" and min(source.strides) > 0:
            passes = plan_problem(replace(problem, batch=problem.batch), device.limits, one_buffer=True).passes
            assert {one.pipeline.kernel for one in passes} == {"scan_strips"}
            check_scan(device, x, operator, axis, exclusive=exclusive, reverse=reverse, source=target, target=target)


def is_staged(way: str, dtype: str) -> bool:
    """Whether rows are less than a sector."""
    return STAGED_STRIPS[way][0][-1] * np.dtype(dtype).itemsize < 32


@pytest.mark.combinations
@pytest.mark.parametrize(
    ("way", "dtype"),
    [
        (way, dtype)
        for way, dtype in product(STAGED_STRIPS, ("int8", "uint16", "float16", "float32", "int32", "int64", "float64"))
        if is_staged(way, dtype)
    ],
)
def test_staged_strips(device: Device, dtype: str, way: str) -> None:
    """Rows of less than a sector, which neighbours read and write as they lie in memory."""
    shape, axis, *placed = STAGED_STRIPS[way]
    source, target = (Layout(shape, strides, offset) for strides, offset in (placed[:2], placed[2:]))
    element = dtypes.by_name(dtype)
    first = [*STAGED_STRIPS].index(way)
    for number, (operator, exclusive, reverse) in enumerate(STRIP_VARIANTS):
        kernel = ("strips", "strip_lookback")[(first + number) % 2]
        x = numbers(shape, dtype, operator)
        problem = scan_problem(element, Operator(operator), source, target, axis, ScanOptions(exclusive=exclusive))
        passes = plan_problem(problem, replace(device.limits, float64=True), kernel=kernel).passes
        own = [one for one in passes if one.pipeline.kernel == f"scan_{kernel}"]
        cells = "staged_pairs" if element.itemsize > 4 else "staged"
        assert {dict(one.pipeline.slots)["cells"] for one in own} == {cells}
        options = {"exclusive": exclusive, "reverse": reverse, "kernel": kernel}
        check_scan(device, x, operator, axis, source=source, target=target, **options)
        if element.kind != "float":
            check_scan(device, x, operator, axis, source=target, target=target, **options)


@pytest.mark.combinations
@pytest.mark.parametrize("kernel", ["strips", "strip_lookback"])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int32", "int64"])
def test_windows_of_staged_strips(device: Device, dtype: str, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one tile and of three, and of some of the slabs."""
    of_slabs = 16_000 * np.dtype(dtype).itemsize
    for shape, axis, limits in (
        ((12_400, 2), 0, {"dispatch_elements": 8192}),
        ((14_000, 3), 0, {"dispatch_elements": 36_864}),
        ((5, 2060, 3), 1, {"binding_bytes": of_slabs // 1024 * 1024}),
    ):
        x = numbers(shape, dtype)
        monkeypatch.setattr(device, "limits", replace(device.limits, software=False, **limits))
        layout = Layout.packed(shape)
        problem = scan_problem(dtypes.by_dtype(x.dtype), Operator.SUM, layout, layout, axis=axis)
        passes = plan_problem(problem, device.limits, kernel=kernel).passes
        own = [one for one in passes if one.pipeline.kernel == f"scan_{kernel}"]
        assert len(own) > 1
        assert {dict(one.pipeline.slots)["cells"] for one in own} <= {"staged", "staged_pairs"}
        check_scan(device, x, "sum", axis, kernel=kernel)
        check_scan(device, x, "sum", axis, exclusive=True, reverse=True, kernel=kernel)


def test_where_strips_are_staged() -> None:
    """Of two columns or more, less than a sector, without gaps, as long as a part of a stretch."""

    def cells(shape: tuple[int, int], dtype: str, pitches: tuple[int, int] = (0, 0)) -> tuple[str | None, int]:
        layouts = [Layout(shape, (pitch or shape[1], 1)) for pitch in pitches]
        problem = scan_problem(dtypes.by_name(dtype), Operator.SUM, *layouts, 0)
        pipeline = plan_problem(problem, Limits(float64=True), kernel="strips").passes[0].pipeline
        return dict(pipeline.slots).get("cells"), dict(pipeline.constants).get("lanes", 0)

    for width, lanes in ((2, 1), (3, 2), (4, 2), (5, 4), (7, 4)):
        assert cells((1024, width), "float32") == ("staged", lanes)
    assert cells((1024, 8), "float32") == ("pairs", 4)
    assert cells((1024, 1), "float32")[0] != "staged"
    for width, lanes in ((8, 4), (9, 8), (15, 8)):
        assert cells((1024, width), "float16") == ("staged", lanes)
    assert cells((1024, 16), "float16") == ("halves", 8)
    assert cells((1024, 16), "uint8") == ("staged", 8)
    assert cells((1024, 17), "uint8")[0] != "staged"
    assert cells((1024, 2), "int64") == ("staged_pairs", 2)
    assert cells((1024, 3), "float64") == ("staged_pairs", 4)
    assert cells((1024, 4), "int64") == ("pairs", 4)
    assert cells((1023, 2), "uint8")[0] != "staged"
    assert cells((512, 4), "uint8") == ("staged", 2)
    assert cells((511, 4), "uint8")[0] != "staged"
    assert cells((1024, 3), "float32", (0, 4))[0] != "staged"
    assert cells((1024, 3), "float32", (4, 0))[0] != "staged"


@pytest.mark.parametrize("kernel", ["strips", "strip_lookback"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16"])
def test_windows_that_are_a_single_column_wide(
    device: Device, dtype: str, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their neighbours are far away: they lose the dimension of columns, and another one is innermost."""
    limits = changed(device.limits, software=False, dispatch_elements=17 * 4 * 128)
    monkeypatch.setattr(device, "limits", limits)
    layout, other = (Layout((17, 4, 129), (800, 200, 1), offset) for offset in (0, 1))
    problem = scan_problem(dtypes.by_name(dtype), Operator.SUM, layout, other, 0)
    passes = plan_problem(problem, limits, kernel=kernel).passes
    assert passes[int(kernel != "strips")].pipeline.kernel == f"scan_{kernel}"
    assert passes[-1].params["rank"] == 1
    assert passes[-1].params["count"] == 4
    for exclusive, reverse in product((False, True), repeat=2):
        x, order = numbers(layout.sizes, dtype), {"exclusive": exclusive, "reverse": reverse}
        check_scan(device, x, "sum", 0, source=layout, target=other, kernel=kernel, **order)


@pytest.mark.parametrize("dtype", ["float32", "int32", "float64", "int64"])
def test_strips_of_any_width(device: Device, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elements of whole words, at any stride of columns and rows."""
    gpu = replace(device.limits, software=False)
    for sizes, axis, steps in (((300, 4099), 0, (1, 1)), ((5, 260, 103), 1, (2, 3)), ((1030, 521), 0, (3, 1))):
        layouts = [Layout(sizes, tuple(stride * step for stride in Layout.packed(sizes).strides), 5) for step in steps]
        x = numbers(sizes, dtype)
        for enough in (0, 2**32):
            limits = replace(gpu, tuning=replace(gpu.tuning, enough_strips=enough))
            monkeypatch.setattr(device, "limits", limits)
            check_scan(device, x, "sum", axis, source=layouts[0], target=layouts[1])
            check_scan(device, x, "product", axis, exclusive=True, reverse=True, source=layouts[0], target=layouts[1])


def test_strips_where_they_do_not_serve() -> None:
    """Floats in place, few columns or rows, rows of less than a sector, and arithmetic that takes many registers."""

    def kernels(shape: tuple[int, int], dtype: str, pitch: int = 0, **options: bool) -> set[str]:
        layout = Layout(shape, (pitch or shape[1], 1))
        precision = Precision.COMPENSATED if options.pop("compensated", False) else Precision.DEFAULT
        limits = Limits(float64=options.pop("float64", True))
        problem = scan_problem(dtypes.by_name(dtype), Operator.SUM, layout, layout, 0, ScanOptions(precision=precision))
        return {kernel_of(one) for one in plan_problem(problem, limits, **options).passes}

    for dtype in ("float32", "float16", "float64", "int32", "uint8"):
        is_narrow = dtypes.by_name(dtype).itemsize < 4
        own = {"scan_strips", SUSPECTS} if dtype.startswith("f") else {"scan_strips"}
        assert kernels((129, 512), dtype) == own
        assert not own & kernels((129, 508), dtype)
        assert bool(own & kernels((128, 512), dtype)) == is_narrow
        assert not own & kernels((16, 512), dtype)
        assert own <= kernels((129, 513), dtype)
        assert own <= kernels((129, 512), dtype, 513)
        assert bool(own & kernels((129, 512), dtype, one_buffer=True)) != dtype.startswith("f")
    assert not own & kernels((129, 512), "float32", compensated=True)
    assert not own & kernels((129, 512), "float64", float64=False)


@pytest.mark.combinations
@pytest.mark.parametrize(
    ("dtype", "odd"),
    [
        ("uint8", False),
        ("float16", False),
        ("float32", False),
        ("int32", False),
        ("int64", False),
        ("uint8", True),
        ("float16", True),
    ],
)
def test_windows_of_strips(device: Device, dtype: str, odd: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one tile and of two."""
    x = numbers((12_400, 513 if odd else 512), dtype)
    for tiles in (1, 2):
        limits = replace(of_whole_strips(device.limits), dispatch_elements=tiles * 4096 * x.shape[1])
        monkeypatch.setattr(device, "limits", limits)
        layout = Layout.packed(x.shape)
        problem = scan_problem(dtypes.by_dtype(x.dtype), Operator.SUM, layout, layout, axis=0)
        kernels = [one.pipeline.kernel for one in plan_problem(problem, limits).passes]
        assert kernels.count("scan_strips") == {1: 4, 2: 2}[tiles]
        check_scan(device, x, "sum", 0)
        check_scan(device, x, "sum", 0, exclusive=True, reverse=True)


@pytest.mark.combinations
@pytest.mark.parametrize("columns", [False, True])
def test_more_rows_of_bands_than_a_loop_may_take(
    device: Device, columns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mesa's software drivers end loops after 65,535 iterations: each dispatch takes as many rows as plans allow."""
    limits = changed(device.limits, software=True, near_elements=0, cores=1, columns=columns)
    monkeypatch.setattr(device, "limits", limits)
    for dtype, width in (("float32", 256), ("float32", 1024), ("int64", 1024)):
        check_scan(device, numbers((41_000, width), dtype)[: 41_000 * 256 // width], "sum", 0)


@pytest.mark.combinations
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int32", "uint8"])
@pytest.mark.parametrize("kernel", ["slices", "serial"])
def test_neighbours_a_run_apart(device: Device, kernel: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on lavapipe, on every device: the last workgroup has one invocation, and the last tile of a slice is short."""
    monkeypatch.setattr(device, "limits", changed(device.limits, software=True, lags=True))
    for operator, exclusive, reverse in VARIANTS:
        x = numbers((9, 4096 + 200), dtype, operator)
        check_scan(device, x, operator, 1, exclusive=exclusive, reverse=reverse, kernel=kernel)
    place = Layout.packed(x.shape)
    check_scan(device, x, "sum", 1, source=place, target=place, kernel=kernel)


@pytest.mark.combinations
@pytest.mark.parametrize("binding", [70_000, 1_000_000, 4_500_000])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64"])
def test_windows_of_columns(device: Device, dtype: str, binding: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Floats take whole tiles, in the largest of these bindings."""
    monkeypatch.setattr(device, "limits", changed(device.limits, binding_bytes=binding, near_elements=0))
    x = numbers((30_000, 256), dtype)
    check_scan(device, x, "sum", 0)
    check_scan(device, x, "sum", 0, exclusive=True, reverse=True)


WINDOWED: list[tuple[tuple[int, ...], int, Any]] = [
    ((200_003,), 0, np.float32),
    ((3, 150_001), 1, np.float16),
    ((150_001, 3), 0, np.int32),
    ((40, 20_000), 0, np.float32),
    ((7, 30, 1000), 1, np.int64),
    ((100_000,), 0, np.uint8),
    ((2, 90_000, 2), 1, np.uint16),
]


WINDOWS = [
    # Of wide rows a quarter makes windows of the same kinds, in less than a minute.
    (binding, (40, 5000) if binding == 4096 and shape == (40, 20_000) else shape, axis, dtype)
    for binding in (4096, 70_000, 300_000)
    for shape, axis, dtype in WINDOWED
]


@pytest.mark.combinations
@pytest.mark.parametrize(("binding", "shape", "axis", "dtype"), WINDOWS, ids=str)
def test_windows(
    device: Device, binding: int, shape: tuple[int, ...], axis: int, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tensors larger than a binding, with the limit lowered so that small ones are cut."""
    monkeypatch.setattr(device, "limits", replace(device.limits, binding_bytes=binding))
    in_place = Layout.packed(shape)
    for operator, exclusive, reverse in [("sum", False, False), ("product", True, True), ("sum", True, False)]:
        x = numbers(shape, dtype, operator)
        check_scan(device, x, operator, axis, exclusive=exclusive, reverse=reverse)
    check_scan(device, numbers(shape, dtype), "sum", axis, source=in_place, target=in_place)


def test_larger_than_the_largest_binding(device: Device) -> None:
    """136 MB, where lavapipe binds 128 MiB: along the memory and across it."""
    x = numbers((34_000_000,), np.float32)
    check_scan(device, x, "sum", 0)
    check_scan(device, x.reshape(34, 1_000_000), "sum", 0, reverse=True, exclusive=True)


def test_default_limits(modest_device: Device) -> None:
    assert modest_device.limits.offset_alignment == 256
    for dtype in (element.dtype for element in dtypes.ELEMENT_TYPES):
        for kernel in KERNELS:
            check_scan(modest_device, numbers((3, 4100), dtype), "sum", 1, kernel=kernel)
            check_scan(modest_device, numbers((300, 33), dtype), "sum", 0, exclusive=True, kernel=kernel)


@pytest.mark.combinations
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_variant_that_is_not_opaque(device: Device, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "limits", replace(device.limits, opaque=False))
    for dtype, operator in product(("float16", "float32", "float64"), ("sum", "product")):
        check_scan(device, numbers((3, 9000), dtype, operator), operator, 1, kernel=kernel)


def test_the_bits_do_not_depend_on_the_batch_the_axis_or_the_run(device: Device) -> None:
    alone = numbers((6000,), np.float32)
    expected = expected_scan(device, alone, "sum", 0)
    for kernel in KERNELS:
        among = numbers((40, 6000), np.float32, seed=1)
        among[17] = alone
        assert reference.same_bits(scan(device, among, "sum", 1, kernel=kernel)[17], expected)
        assert reference.same_bits(scan(device, among.T.copy(), "sum", 0, kernel=kernel)[:, 17], expected)
    for _ in range(20):
        assert reference.same_bits(scan(device, alone, "sum", 0), expected)


def test_every_order_of_three_dimensions_gives_the_same_bits(device: Device) -> None:
    x = numbers((6, 50, 300), np.float32)
    expected = expected_scan(device, x, "sum", 1)
    for order in permutations(range(3)):
        moved = np.ascontiguousarray(x.transpose(order))
        result = scan(device, moved, "sum", order.index(1))
        assert reference.same_bits(result.transpose(np.argsort(order)), expected)
