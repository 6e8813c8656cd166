"""Windows and plans, without a device."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice, product
from math import prod

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dmlgpu.dtypes import ELEMENT_TYPES, ElementType, by_name
from dmlgpu.errors import ArgumentError
from dmlgpu.layout import Layout, ceil_div
from dmlgpu.planning.dispatch import Pass, writable_input
from dmlgpu.planning.kernels import (
    CHECK,
    MAX_SERIAL_STEPS,
    REPAIR,
    TRY,
    WRITE,
    Work,
    block_slices,
    check_pass,
    serial_steps,
)
from dmlgpu.planning.ledger import figures_of
from dmlgpu.planning.params import PARAMS
from dmlgpu.planning.plan import KERNELS, is_in_place, passes_of, plan_problem
from dmlgpu.planning.problem import (
    Dimension,
    Operator,
    Precision,
    RoundingMode,
    ScanOptions,
    ScanProblem,
    convert_problem,
    round_problem,
    scan_problem,
)
from dmlgpu.planning.tuning import Tuning
from dmlgpu.planning.windows import QUAD_BYTES, SPAN, TILE, Limits, Range, SoftwareTraits, chunk_sizes, windows

from .harness import SUSPECTS, changed, kernel_of

F32 = by_name("float32")


def packed_scan(sizes: tuple[int, ...], axis: int, element: str = "float32") -> ScanProblem:
    layout = Layout.packed(sizes)
    return scan_problem(by_name(element), Operator.SUM, layout, layout, axis=axis)


def kernels(passes: tuple[Pass, ...]) -> list[str]:
    """Return the kernels, and of scan_short whether it takes whole runs of packed slices."""
    has_runs = [dict(one.pipeline.constants).get("runs") for one in passes]
    return [f"{kernel_of(one)}{' runs' if some else ''}" for one, some in zip(passes, has_runs, strict=True)]


dimensions = st.lists(
    st.builds(Dimension, st.integers(1, 9), st.integers(-50, 50), st.integers(1, 50)), min_size=1, max_size=4
)


@given(dimensions, st.integers(64, 400))
def test_windows_cover_everything_once_and_fit(dims: list[Dimension], capacity: int) -> None:
    chunks = chunk_sizes(dims, (4, 2), capacity)
    seen: dict[tuple[int, int], int] = {}
    for window in windows(dims[:-1], dims[-1], (1000, 2000), chunks):
        inside = (*window.batch, window.axis)
        assert sum((d.size - 1) * abs(d.input_stride) for d in inside) * 4 + 4 <= capacity
        assert sum((d.size - 1) * abs(d.output_stride) for d in inside) * 2 + 2 <= capacity
        for index in product(*(range(d.size) for d in inside)):
            place = (
                window.input_offset + sum(i * d.input_stride for i, d in zip(index, inside, strict=True)),
                window.output_offset + sum(i * d.output_stride for i, d in zip(index, inside, strict=True)),
            )
            seen[place] = seen.get(place, 0) + 1
        assert window.last == (window.first + window.axis.size == dims[-1].size)
    expected: dict[tuple[int, int], int] = {}
    for index in product(*(range(d.size) for d in dims)):
        place = (
            1000 + sum(i * d.input_stride for i, d in zip(index, dims, strict=True)),
            2000 + sum(i * d.output_stride for i, d in zip(index, dims, strict=True)),
        )
        expected[place] = expected.get(place, 0) + 1
    assert seen == expected


def test_windows_of_the_same_slices_follow_each_other_along_the_axis() -> None:
    axis = Dimension(10, 7, 7)
    got = [(w.output_offset % 7, w.first, w.last) for w in windows([Dimension(7, 1, 1)], axis, (0, 0), [4, 5])]
    assert got == [(0, 0, False), (0, 5, True), (4, 0, False), (4, 5, True)]


def test_a_long_axis_is_cut_at_whole_spans() -> None:
    chunks = chunk_sizes([Dimension(10**8, 1, 1)], (4, 4), 128 * 2**20)
    assert chunks[0] % SPAN == 0
    assert 64 * 2**20 <= chunks[0] * 4 <= 128 * 2**20


def test_a_whole_problem_that_fits_is_one_window() -> None:
    n = 2**25
    plan = plan_problem(packed_scan((n,), 0), Limits(binding_bytes=4 * n))
    assert list(dict.fromkeys(kernels(plan.passes))) == [
        "scan_tiles",
        "scan_lookback",
        "scan_repair",
    ]
    assert [one.only_clears for one in plan.passes if one.pipeline.kernel == "scan_tiles"] == [True, False]
    more = plan_problem(packed_scan((n + 1,), 0), Limits(binding_bytes=4 * n))
    assert kernels(more.passes).count("scan_tiles") > 2


@pytest.mark.parametrize(
    ("sizes", "axis", "expected"),
    [
        ((10**6, 3), 1, ["scan_blocks"]),
        ((10**6 + 1, 15), 1, ["scan_blocks", "scan_short"]),
        ((10**6, 16), 1, ["scan_blocks"]),
        ((10**6 + 2, 17), 1, ["scan_blocks", "scan_rows"]),
        ((5, 3), 1, ["scan_short"]),
        ((5, 17), 1, ["scan_slices"]),
        ((16, 10**6), 0, ["scan_short"]),
        ((5, 256), 1, ["scan_blocks"]),
        ((5, 257), 1, ["scan_rows"]),
        ((1000, 257), 1, ["scan_blocks"]),
        ((1001, 512), 1, ["scan_blocks"]),
        ((1001, 513), 1, ["scan_blocks"]),  # by element: four are whole vectors, and three have room
        ((1002, 1022), 1, ["scan_blocks"]),
        ((5, 2048), 1, ["scan_blocks"]),
        ((1000, 2052), 1, ["scan_rows"]),
        ((1000, 4096), 1, ["scan_rows"]),
        ((1000, 4096), 0, ["scan_strips", SUSPECTS]),
        ((129, 512), 0, ["scan_strips", SUSPECTS]),
        ((128, 4096), 0, ["scan_slices"]),
        ((1000, 511), 0, ["scan_rows"]),
        ((1000, 10), 0, ["scan_rows"]),
        ((128, 5000), 1, ["scan_rows"]),
        ((127, 5000), 1, ["scan_tiles", "scan_lookback", "scan_repair", "scan_tiles"]),
    ],
)
def test_the_kernels_for_a_shape(sizes: tuple[int, ...], axis: int, expected: list[str]) -> None:
    assert kernels(plan_problem(packed_scan(sizes, axis), Limits()).passes) == expected


@pytest.mark.parametrize(
    ("sizes", "dtype", "in_place", "expected"),
    [
        ((2**14, 64), "float32", False, "strips"),
        ((2**14 - 1, 64), "float32", False, "lookback"),  # fewer than 2^20 elements
        ((2**14 - 1, 300), "float32", False, "strips"),
        ((4096, 511), "float32", False, "rows"),  # a single tile
        ((2**18, 8), "float32", False, "strips"),
        ((2**18, 7), "float32", False, "strips"),  # less than a sector, without gaps
        ((2**19, 2), "float32", False, "whole tiles"),
        ((2**19 - 1, 2), "float32", False, "lookback"),
        ((2**20, 1), "float32", False, "lookback"),
        ((2**18, 4), "int64", False, "strips"),
        ((2**18, 16), "float16", False, "strips"),
        ((2**18, 17), "float16", False, "strips"),
        ((2**18, 15), "float16", False, "strips"),
        ((2**19, 2), "int64", True, "strips"),
        ((2**18, 33), "uint8", True, "strips"),
        ((2**18, 31), "uint8", False, "lookback"),
        ((2**18, 16), "uint8", True, "strips"),
        ((2**18, 8), "float32", True, "lookback"),  # floats are read twice
        ((2**18, 7), "float32", True, "lookback"),
    ],
)
def test_tiles_of_few_columns(sizes: tuple[int, int], dtype: str, in_place: bool, expected: str) -> None:
    """A workgroup each, where rows are sectors and there is more than a tile."""
    passes = plan_problem(packed_scan(sizes, 0, dtype), Limits(), one_buffer=in_place).passes
    is_float = dtype.startswith("float")
    left = [*["scan_strip_totals", "scan_repair"] * is_float, "scan_tiles"]
    strips = ["scan_tiles", "scan_strip_lookback", *left]
    whole_tiles = [kernel for kernel in strips if kernel != "scan_strip_totals"]
    look_back = ["scan_tiles", "scan_lookback", *["scan_repair"] * is_float, "scan_tiles"]
    possible = {"strips": strips, "whole tiles": whole_tiles, "lookback": look_back, "rows": ["scan_rows"]}
    assert kernels(passes) == possible[expected]
    if expected == "strips":
        parts = -(-sizes[0] // (256 * 16 // dict(passes[1].pipeline.constants)["lanes"]))
        assert math.prod(passes[1].grid) % parts == 0
        assert math.prod(passes[1].grid) >= parts >= -(-sizes[0] // TILE)


def test_tuning_says_how_few_columns_are_worth_tiles_of_strips() -> None:
    problem = packed_scan((2**16, 64), 0)
    for columns, expected in ((64, "scan_strip_lookback"), (65, "scan_lookback")):
        passes = plan_problem(problem, Limits(tuning=Tuning(tile_columns=columns))).passes
        assert kernels(passes)[1] == expected


@pytest.mark.parametrize(
    ("offset", "length", "dtype", "expected"),
    [
        (0, 100, "float32", "vectors"),
        (0, 7, "float32", "vectors"),
        (1, 100, "float32", "elements"),
        (3, 7, "float64", "elements"),
        (0, 1023, "int64", "elements"),
        (1, 100, "float16", "scan_slices"),
        (0, 1023, "uint8", "scan_rows"),
    ],
)
def test_decreasing_scans_take_blocks_where_increasing_ones_do(
    offset: int, length: int, dtype: str, expected: str
) -> None:
    """By vectors or, where these do not fit, by elements of at least a word."""
    layout = Layout.packed((2**14, length), offset)
    for reverse in (False, True):
        problem = scan_problem(by_name(dtype), Operator.SUM, layout, layout, 1, ScanOptions(reverse=reverse))
        (one,) = plan_problem(problem, Limits(float64=True)).passes
        assert dict(one.pipeline.slots).get("units", one.pipeline.kernel) == expected
        assert dict(one.pipeline.constants).get("decreasing", reverse) == reverse


@pytest.mark.parametrize(
    ("sizes", "dtype", "most", "is_twice"),
    [
        ((2, 2**20), "float32", 2**21 - 1, True),
        ((2, 2**20), "float32", 2**21, False),
        ((2, 2**20), "float16", 0, True),
        ((2, 2**20), "int32", 0, False),  # each tile would fold the totals of all before
        ((2**28 + 1,), "float64", 2**32, False),
        ((2**32 - 1,), "float32", 2**32, False),
        ((2**32 - 1,), "float32", 2**32 - 2, True),
        ((128, 5000), "float32", 0, False),  # a workgroup each
    ],
)
def test_long_slices_are_read_twice_where_a_threshold_says_so(
    sizes: tuple[int, ...], dtype: str, most: int, is_twice: bool
) -> None:
    limits = Limits(float64=True, tuning=Tuning(lookback_elements=most))
    passes = plan_problem(packed_scan(sizes, len(sizes) - 1, dtype), limits).passes
    patience = {dict(one.pipeline.constants).get("patience") for one in passes if kernels([one]) == ["scan_lookback"]}
    assert (patience == {0}) == is_twice
    if is_twice:
        first, *repairs, last = passes[: kernels(passes).index("scan_tiles") + 1]
        assert not any(one.only_clears for one in passes)  # nothing is handed on
        assert f"more than {most} elements are read twice" in first.why
        assert "it works out totals alone" in first.why
        assert {one.pipeline.kernel for one in repairs} == {"scan_repair"}
        assert math.prod(last.grid) >= math.prod(sizes) // TILE // len({one.params["first"] for one in passes})
        # Less scratch memory than look-backs have.
        others = plan_problem(packed_scan(sizes, len(sizes) - 1, dtype), replace(limits, tuning=Tuning()))
        assert first.state_bytes < next(one.state_bytes for one in others.passes if one.only_clears)


def test_slices_with_gaps_are_read_once() -> None:
    """Whatever the threshold: sectors would be touched for nothing twice."""
    limits = Limits(tuning=Tuning(lookback_elements=0))
    for strides, is_twice in (((1,), True), ((-1,), True), ((2,), False), ((3,), False)):
        layout = Layout((2**20,), strides, 2**20 if strides[0] < 0 else 0)
        problem = scan_problem(by_name("float32"), Operator.SUM, layout, layout, 0)
        passes = plan_problem(problem, limits).passes
        assert any(dict(one.pipeline.constants).get("patience") == 0 for one in passes) == is_twice


def test_integers_have_nothing_to_repair() -> None:
    expected = ["scan_tiles", "scan_lookback", "scan_tiles"]
    assert kernels(plan_problem(packed_scan((5, 5000), 1, "int32"), Limits()).passes) == expected


@pytest.mark.parametrize(
    ("sizes", "in_place", "expected"),
    [
        ((8, 5000), False, ["scan_slices"]),
        ((1, 16_384), False, ["scan_slices"]),
        ((7, 16_384), False, ["scan_slices"]),
        ((1, 16_385), False, ["scan_serial_totals", "scan_carries", "scan_repair", "scan_serial_tiles"]),
        ((7, 16_385), False, ["scan_serial_totals", "scan_carries", "scan_repair", "scan_serial_tiles"]),
        ((8, 131_072), False, ["scan_slices"]),
        ((8, 131_073), False, ["scan_slices", "scan_slices"]),
        ((8, 5000), True, ["scan_slices", "scan_slices"]),
        ((7, 8192), True, ["scan_slices", "scan_slices"]),
        ((7, 8193), True, ["scan_serial_totals", "scan_carries", "scan_repair", "scan_serial_tiles"]),
        ((64, 16), True, ["scan_short"]),
        ((4096, 16), True, ["scan_short"]),
        ((21_856, 3), True, ["scan_short runs"]),
        ((21_855, 3), False, ["scan_short runs", "scan_short"]),
        ((21_840, 3), False, ["scan_short"]),
        ((65_536, 1), False, ["scan_short runs"]),
        ((16_384, 4), False, ["scan_short runs"]),
        ((8192, 8), False, ["scan_short"]),
        ((8192, 12), False, ["scan_short"]),
        ((4384, 15), False, ["scan_short runs"]),
        ((64, 32), True, ["scan_slices", "scan_slices"]),
    ],
)
def test_the_kernels_of_software(sizes: tuple[int, ...], in_place: bool, expected: list[str]) -> None:
    plan = plan_problem(packed_scan(sizes, 1), Limits(software=True), one_buffer=in_place)
    assert kernels(plan.passes) == expected


@pytest.mark.parametrize(
    ("element", "precision", "in_place", "most"),
    [
        ("int32", Precision.DEFAULT, False, 16_384),
        ("int32", Precision.DEFAULT, True, 16_384),
        ("float32", Precision.DEFAULT, True, 8192),
        ("float32", Precision.COMPENSATED, False, 8192),
        ("float32", Precision.COMPENSATED, True, 4096),
        ("float64", Precision.DEFAULT, False, 8192),
    ],
)
def test_few_slices_of_elements_that_take_long_are_cut_earlier(
    element: str, precision: Precision, in_place: bool, most: int
) -> None:
    for length, expected in ((most, "scan_slices"), (most + 1, "scan_serial_tiles")):
        layout = Layout.packed((length,))
        problem = scan_problem(by_name(element), Operator.SUM, layout, layout, 0, ScanOptions(precision=precision))
        assert kernels(plan_problem(problem, Limits(software=True), one_buffer=in_place).passes)[-1] == expected


def test_more_cores_take_more_slices() -> None:
    for slices, expected in ((31, "scan_serial_tiles"), (32, "scan_slices")):
        plan = plan_problem(packed_scan((slices, 20_000), 1), changed(Limits(), software=True, cores=8))
        assert kernels(plan.passes)[-1] == expected


@pytest.mark.parametrize(
    ("shape", "element", "on_lavapipe", "on_others"),
    [
        ((65_536, 8), "float32", "scan_slices", "scan_slices"),
        ((8192, 64), "float32", "scan_slices", "scan_slices"),
        ((65_536, 23), "float32", "scan_serial_tiles", "scan_slices"),
        ((65_536, 24), "float32", SUSPECTS, "scan_slices"),
        ((65_536, 48), "float32", SUSPECTS, SUSPECTS),
        ((65_536, 767), "float32", SUSPECTS, "scan_slices"),
        ((65_536, 769), "float32", SUSPECTS, SUSPECTS),
        ((65_537, 255), "int32", "scan_bands_exact", "scan_slices"),
        ((65_537, 23), "int32", "scan_serial_tiles", "scan_slices"),
        ((65_537, 25), "int64", "scan_bands_exact", "scan_slices"),
        ((65_537, 48), "int64", "scan_bands_exact", "scan_bands_exact"),
        ((65_537, 24), "uint8", "scan_bands_exact", "scan_bands_exact"),
        ((65_537, 50), "uint8", "scan_bands_exact", "scan_bands_exact"),
        ((65_537, 20), "uint8", "scan_slices", "scan_slices"),
        ((300, 30), "uint8", "scan_bands_exact", "scan_bands_exact"),
        ((300, 30), "float16", SUSPECTS, SUSPECTS),
        ((300, 30), "float32", "scan_slices", "scan_slices"),
        ((65_537, 50), "float16", SUSPECTS, SUSPECTS),
        ((65_537, 95), "float16", "scan_slices", "scan_slices"),
        ((65_537, 97), "float16", SUSPECTS, "scan_slices"),
        ((65_537, 769), "float16", SUSPECTS, SUSPECTS),
        ((65_537, 7), "uint8", "scan_serial_tiles", "scan_serial_tiles"),
    ],
)
def test_the_kernels_of_software_for_slices_side_by_side(
    shape: tuple[int, ...], element: str, on_lavapipe: str, on_others: str
) -> None:
    """An invocation a slice, or bands; tiles of a few on lavapipe, where rows of few words are far apart."""
    lavapipe = changed(Limits(), software=True, columns=True)
    assert kernels(plan_problem(packed_scan(shape, 0, element), lavapipe).passes)[-1] == on_lavapipe
    assert kernels(plan_problem(packed_scan(shape, 0, element), Limits(software=True)).passes)[-1] == on_others


@pytest.mark.parametrize(
    ("columns", "cores", "expected"),
    [
        (32, 4, SUSPECTS),
        (32, 5, "scan_serial_tiles"),
        (33, 8, SUSPECTS),
        (64, 9, "scan_serial_tiles"),
        (65, 9, SUSPECTS),
        (480, 64, "scan_serial_tiles"),
        (481, 64, SUSPECTS),
    ],
)
def test_many_cores_take_tiles_of_a_few_columns(columns: int, cores: int, expected: str) -> None:
    """A band of up to 32 columns of float32 keeps one core busy."""
    lavapipe = changed(Limits(), software=True, columns=True, cores=cores)
    assert kernels(plan_problem(packed_scan((65_537, columns), 0), lavapipe).passes)[-1] == expected


def test_neighbours_take_tiles_of_slices_that_are_neighbours() -> None:
    for sizes, axis, expected in (((50_000, 3), 0, 1), ((3, 50_000), 1, 0), ((50_000,), 0, 0)):
        for one in plan_problem(packed_scan(sizes, axis), Limits(), kernel="serial").passes:
            assert one.params["side_by_side"] == expected


@pytest.mark.parametrize(
    ("shape", "axis", "lags", "expected"),
    [
        ((512, 2048), 1, True, 1),
        ((512, 2047), 1, True, 0),
        ((300_000, 3), 0, True, 0),
        ((2**20,), 0, True, 1),
        ((512, 2048), 1, False, 0),
    ],
)
def test_neighbours_are_a_run_apart_where_lines_would_be_short(
    shape: tuple[int, ...], axis: int, lags: bool, expected: int
) -> None:
    """Not where their elements are neighbours, nor where few rounds are left to them."""
    limits = changed(Limits(), software=True, lags=lags)
    last = plan_problem(packed_scan(shape, axis), limits).passes[-1]
    assert last.pipeline.kernel in ("scan_slices", "scan_serial_tiles")
    assert dict(last.pipeline.constants)["lags"] == expected


def test_few_slices_go_to_small_workgroups_on_software_adapters() -> None:
    for limits, slices, expected in (
        (Limits(software=True), 2048, (8, 256)),
        (Limits(software=True), 2049, (64, 33)),
        (Limits(), 2048, (64, 32)),
    ):
        apart = Layout((slices, 50), (64, 1))
        problem = scan_problem(F32, Operator.SUM, apart, apart, axis=1)
        (one,) = plan_problem(problem, limits, kernel="slices").passes
        assert (dict(one.pipeline.constants)["lanes"], one.grid[0]) == expected


@pytest.mark.parametrize(
    ("columns", "element", "cores", "expected"),
    [
        (64, "float32", 2, (1, 2)),
        (65, "float32", 2, (2, 2)),
        (128, "float32", 2, (2, 2)),
        (129, "float32", 2, (4, 2)),
        (256, "float32", 2, (4, 2)),
        (257, "float32", 2, (4, 3)),
        (508, "float32", 2, (4, 2)),
        (513, "float32", 2, (4, 3)),
        (769, "float32", 2, (8, 2)),
        (509, "float32", 16, (1, 16)),
        (256, "uint8", 2, (1, 2)),
        (257, "uint8", 2, (2, 2)),
        (64, "int64", 4, (1, 4)),
    ],
)
def test_bands_are_as_wide_as_gives_each_core_one(
    columns: int, element: str, cores: int, expected: tuple[int, int]
) -> None:
    """Where there are enough of the widest; a group of columns at the end of a row may be in part empty."""
    limits = changed(Limits(), software=True, cores=cores, columns=True, near_elements=2**20)
    one = plan_problem(packed_scan((2**17, columns), 0, element), limits).passes[0]
    assert one.pipeline.kernel.startswith("scan_bands")
    assert (dict(one.pipeline.constants)["vectors"], one.grid[0]) == expected


@pytest.mark.parametrize(
    ("rows", "slices", "element", "constants", "workgroups"),
    [
        (2000, 8192, "float32", (16, 2), 256),
        (2000, 4096, "float32", (16, 2), 128),
        (2000, 4064, "float32", (8, 2), 254),
        (2000, 2048, "float32", (8, 2), 128),
        (2000, 2032, "float32", (4, 2), 254),
        (2000, 521, "int32", (4, 2), 66),
        (200, 2032, "float32", (4, 2), 254),
        (2000, 2048, "int64", (16, 1), 128),
        (2000, 2032, "float64", (8, 1), 254),
        (2000, 1016, "float64", (4, 1), 254),
        # With half as many bytes on their way: of 16 bits, and rows that begin inside words.
        (2000, 8192, "float16", (16, 2), 256),
        (2000, 8160, "float16", (8, 2), 510),
        (2000, 16_384, "uint8", (16, 2), 128),
        (2000, 16_256, "int8", (8, 2), 254),
        (2000, 8128, "int8", (4, 2), 254),
        (2000, 8192, "int16", (16, 2), 128),
        (2000, 16_385, "uint8", (16, 1), 257),
        (2000, 8191, "int16", (16, 1), 256),
        (2000, 8159, "int16", (8, 1), 510),
        (2000, 8159, "float16", (8, 2), 510),
        (2000, 8191, "float16", (16, 2), 256),
    ],
)
def test_the_strips_of_gpus(rows: int, slices: int, element: str, constants: tuple[int, int], workgroups: int) -> None:
    """The widest of which there are enough to keep a GPU busy."""
    one = plan_problem(packed_scan((rows, slices), 0, element), Limits(float64=True)).passes[0]
    assert one.pipeline.kernel == "scan_strips"
    found = dict(one.pipeline.constants)
    assert ((found["lanes"], found["columns"]), one.grid[0]) == (constants, workgroups)


@pytest.mark.parametrize(
    ("shape", "element", "kernel"),
    [
        ((4096, 256), "int64", "scan_strips"),
        ((4096, 256), "float64", "scan_strips"),
        ((4096, 255), "int64", "scan_rows"),
        ((4097, 256), "int64", "scan_strip_lookback"),
        ((4096, 512), "float32", "scan_strips"),
        ((4096, 511), "float32", "scan_rows"),
    ],
)
def test_short_strips_are_not_cut(shape: tuple[int, int], element: str, kernel: str) -> None:
    """Up to a tile, where there is nothing to look back for."""
    planned = plan_problem(packed_scan(shape, 0, element), Limits(float64=True)).passes
    assert next(one for one in planned if not one.only_clears).pipeline.kernel == kernel


@pytest.mark.parametrize(
    ("slices", "element", "kernel", "constants"),
    [
        (1023, "float32", "scan_strip_lookback", (8, 2)),
        (1024, "float32", "scan_strips", (4, 2)),
        (64, "float64", "scan_strip_lookback", (8, 1)),
        (64, "int64", "scan_strip_lookback", (8, 1)),
        (512, "int64", "scan_strips", (4, 1)),
        (64, "int32", "scan_strip_lookback", (4, 2)),
        (64, "float16", "scan_strip_lookback", (8, 2)),
        (8, "float32", "scan_strip_lookback", (4, 2)),
        (9, "float32", "scan_strip_lookback", (8, 2)),
        (4, "float64", "scan_strip_lookback", (4, 1)),
        (5, "float64", "scan_strip_lookback", (8, 1)),
        (2047, "uint8", "scan_strip_lookback", (8, 1)),
        (2044, "uint8", "scan_strip_lookback", (4, 2)),
        (2048, "uint8", "scan_strips", (4, 2)),
    ],
)
def test_parts_of_few_strips(slices: int, element: str, kernel: str, constants: tuple[int, int]) -> None:
    """A workgroup each, as narrow as the element's order makes it pay."""
    rows = 2**14 if slices >= 64 else 2**18  # fewer elements stay in a cache
    planned = plan_problem(packed_scan((rows, slices), 0, element), Limits(float64=True)).passes
    one = next(one for one in planned if not one.only_clears)
    found = dict(one.pipeline.constants)
    assert (one.pipeline.kernel, found["lanes"], found["columns"]) == (kernel, *constants)


@pytest.mark.parametrize(
    ("shape", "element", "expected"),
    [
        ((1080, 1920, 3), "float32", "scan_strips"),
        ((60, 1920, 3), "float32", "scan_rows"),
        ((100, 1000, 7), "float32", "scan_strips"),  # 700 of them
        ((64, 4096, 8), "uint8", "scan_strips"),
        ((1080, 1920, 4), "float32", "scan_strips"),
        ((1080, 1920, 2), "int64", "scan_strips"),
        ((4096, 600, 3), "int32", "scan_strips"),
        ((4096, 600, 3), "uint8", "scan_strips"),
        ((4096, 500, 3), "int32", "scan_rows"),
        ((4096, 600, 4), "uint8", "scan_strips"),
        ((4096, 600, 30), "uint8", "scan_slices"),
        ((4096, 600, 33), "uint8", "scan_strips"),
    ],
)
def test_few_neighbours_before_a_gap(shape: tuple[int, ...], element: str, expected: str) -> None:
    """Such as the colours of pixels: rows of memory where they are long, else slices by themselves.

    A row of a strip would touch a sector for every few of its slices.
    """
    one = plan_problem(packed_scan(shape, 1, element), Limits()).passes[0]
    assert one.pipeline.kernel == expected


@pytest.mark.parametrize(
    ("kernel", "software", "turns"),
    [
        ("serial", False, {"float32": 1024, "float64": 256, "float16": 256}),
        ("serial", True, {"float32": 1024, "float64": 256, "float16": 256}),
        ("lookback", False, {"float32": 8192, "float64": 2048, "float16": 8192}),
        ("lookback", True, {"float32": 128, "float64": 128, "float16": 128}),
    ],
)
def test_exceptional_tiles_are_repaired_in_turns(kernel: str, software: bool, turns: dict[str, int]) -> None:
    """GPUs have watchdogs, and Mesa ends long loops: what one dispatch leaves, the next one does."""
    limits = Limits(software=software, binding_bytes=2**31)
    for element, turn in turns.items():
        passes = plan_problem(packed_scan((9000 * TILE,), 0, element), limits, kernel=kernel).passes
        repairs = [one for one in passes if one.pipeline.kernel == "scan_repair"]
        assert [one.params["turn_first"] for one in repairs] == list(range(0, 9000, turn))
        assert {int(one.params["turn_tiles"]) for one in repairs} == {turn}
        assert {dict(one.pipeline.constants)["together"] for one in repairs} == {int(kernel == "lookback")}


def check_limits(one: Pass, limits: Limits) -> None:
    """A pass keeps to the limits and to its kernel's row, and vectors lie at multiples of 16 bytes of their buffers."""
    check_pass(one)
    assert 1 <= one.grid[0] <= limits.workgroups
    assert 1 <= one.grid[1] <= limits.rows
    assert one.elements <= limits.dispatch_elements
    assert 0 <= one.state_bytes <= limits.binding_bytes
    assert one.state_bytes % 4 == 0
    slots, constants = dict(one.pipeline.slots), dict(one.pipeline.constants)
    vectors = any("quads" in piece for piece in slots.values())
    places = (("input", one.input or one.output), ("output", one.output))
    for name, part in places:
        offset = int(one.params[f"{name}_offset"])
        if part is not None:
            assert part.offset % max(limits.offset_alignment, 16) == 0
            assert part.size % (16 if vectors else 4) == 0
            assert 0 < part.size <= limits.binding_bytes <= 2**32 - 4
            assert offset * 2 ** constants[f"{name}_log2_bits"] // 8 < part.size
            if vectors:
                assert offset * 2 ** constants[f"{name}_log2_bits"] % 128 == 0


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.sampled_from([1, 2, 5, 16, 48, 257, 4096, 65_536, 2**20 - 1, 2**24, 2**31]), min_size=1, max_size=4),
    st.data(),
)
def test_plans_for_the_limits_of_adapters(sizes: list[int], data: st.DataObject) -> None:
    """Of two buffers, of one in place, and of one in which input and output are neighbours or interleaved."""
    assume(prod(sizes) < 2**32)
    limits = Limits(
        binding_bytes=data.draw(st.sampled_from([2**27, 2**30, 2**31 - 1, 2**31 - 4, 2**32 - 4, 2**32, 2**40])),
        offset_alignment=data.draw(st.sampled_from([4, 16, 32, 256])),
        workgroups=data.draw(st.sampled_from([65_535, 2**31 - 1])),
        software=data.draw(st.booleans()),
        traits=SoftwareTraits(columns=data.draw(st.booleans())),
    )
    element, target_element = (
        by_name(data.draw(st.sampled_from(["uint8", "float16", "float32", "int64"]))) for _ in "io"
    )
    offset, step, gap = (
        data.draw(st.integers(0, 40)),
        data.draw(st.sampled_from([1, 1, 2, 3])),
        data.draw(st.integers(0, 99)),
    )
    packed = Layout.packed(sizes, offset)
    source = Layout(tuple(sizes), tuple(step * stride for stride in packed.strides), offset)
    after = Layout.packed(sizes, source.extent[1] + gap)
    axis, reverse = data.draw(st.integers(0, len(sizes) - 1)), data.draw(st.booleans())
    kernel = data.draw(st.sampled_from([None, *KERNELS]))
    for target, one_buffer in ((source, False), (source, True), (after, True)):
        problem = scan_problem(element, Operator.SUM, source, target, axis, ScanOptions(reverse=reverse))
        for one in islice(passes_of(problem, limits, one_buffer=one_buffer, kernel=kernel), 12):
            check_limits(one, limits)
        position = -(-source.extent[1] * element.itemsize // target_element.itemsize) + gap
        conversion = convert_problem(element, target_element, source, Layout.packed(sizes, position))
        problems = [conversion]
        if element.kind == "float":
            problems.append(round_problem(element, RoundingMode.HALF_EVEN, source, target))
        for problem in problems:
            for one in islice(passes_of(problem, limits, one_buffer=one_buffer), 4):
                check_limits(one, limits)


def test_bindings_hold_whole_elements_of_both_types() -> None:
    """At the offsets that an adapter allows, elements of 8 bytes might begin between two words of 8."""
    source, target = Layout((2,), (3,), 4), Layout.packed((2,))
    (one,) = plan_problem(
        convert_problem(by_name("uint8"), by_name("int64"), source, target), Limits(offset_alignment=4), one_buffer=True
    ).passes
    assert (one.output, one.input) == (Range(0, 16), None)


def test_no_adapter_binds_more_than_shaders_address() -> None:
    for given_bytes, expected in (
        (2**31 - 1, 2**31 - 4),
        (2**32 - 4, 2**32 - 4),
        (2**32, 2**32 - 4),
        (2**63, 2**32 - 4),
    ):
        assert Limits(binding_bytes=given_bytes).binding_bytes == expected


@pytest.mark.parametrize(
    ("name", "values", "way_out"),
    [
        ("binding_bytes", [0, 1, 4, 32, 63, 64, 511, -1], "plans need at least 768 bytes .*: allow more, or choose"),
        ("workgroups", [0, -5], "plans need at least 1 workgroups .*: allow more, or choose"),
        ("offset_alignment", [0, -16, 3, 48, 2**40, 4096], "must be a power of two up to 2048"),
        ("dispatch_elements", [0, -1], "plans need at least 1 elements"),
        ("cores", [0], "plans need at least 1 cores"),
    ],
)
def test_limits_that_no_plan_can_keep(name: str, values: list[int], way_out: str) -> None:
    for value in values:
        with pytest.raises(ArgumentError, match=rf"^{name} is {value}, and .*{way_out}"):
            changed(Limits(), **{name: value})


@pytest.mark.parametrize("size", [512, 516, 600, 1024])
@pytest.mark.parametrize("kernel", [None, *KERNELS])
@pytest.mark.parametrize("element", ["uint8", "float32", "float64"])
def test_the_smallest_limits(size: int, kernel: str | None, element: str) -> None:
    """Whatever `Limits` takes, plans keep."""
    for alignment, software in product((1, 16, 128), (False, True)):
        limits = Limits(binding_bytes=size, workgroups=30, rows=30, offset_alignment=alignment, software=software)
        for sizes, axis, one_buffer in product(((3, 700), (700, 3), (50, 5)), (0, 1), (False, True)):
            problem = packed_scan(sizes, axis, element)
            for one in islice(passes_of(problem, limits, one_buffer=one_buffer, kernel=kernel), 8):
                check_limits(one, limits)


def test_more_windows_than_can_be_planned() -> None:
    """An error, and no hour of planning."""
    layout = Layout((2**21,), (1000,))
    target = Layout.packed((2**21,))
    scan = scan_problem(F32, Operator.SUM, layout, target, axis=0)
    for problem in (scan, convert_problem(F32, F32, layout, target)):
        with pytest.raises(ArgumentError, match=r"would have to be cut into 2097152 parts .* at most 1048576"):
            plan_problem(problem, Limits(binding_bytes=1024))


def test_a_grid_that_the_device_does_not_allow() -> None:
    with pytest.raises(
        ArgumentError, match="needs 5 workgroups, and the device allows 2 times 2: open it with a larger"
    ):
        plan_problem(packed_scan((3000, 3), 1), Limits(workgroups=2, rows=2))


GPU = Limits(binding_bytes=2**32 - 4, offset_alignment=16, workgroups=2**31 - 1)
LAVAPIPE = changed(Limits(), software=True, columns=True, float64=True, dispatch_elements=2**24)


@pytest.mark.parametrize("element", ELEMENT_TYPES, ids=str)
@pytest.mark.parametrize("kernel", [None, *KERNELS])
def test_no_dispatch_comes_near_a_watchdog(kernel: str | None, element: ElementType) -> None:
    """Whatever the data: half a second at 100 ns a step."""
    limits = (GPU, replace(GPU, float64=True), Limits(), LAVAPIPE, replace(LAVAPIPE, float64=False))
    limits = (*limits, changed(LAVAPIPE, cores=1))
    shapes = [((2**32 - 1,), 0), ((2**26 + 5,), 0), ((3, 2**28), 1), ((2**28, 3), 0), ((300, 2**22), 1)]
    shapes += [((2**22, 300), 0), ((2**14, 2**14), 0), ((2**14, 2**14), 1), ((2**26, 16), 1), ((2**26, 3), 1)]
    shapes += [((2**12, 2**12 - 1), 0)]
    precisions = list(Precision) if element.name == "float32" else [Precision.DEFAULT]
    for limit, (sizes, axis), precision, one_buffer in product(limits, shapes, precisions, (False, True)):
        layout = Layout.packed(sizes)
        problem = scan_problem(element, Operator.SUM, layout, layout, axis, ScanOptions(precision=precision))
        passes = passes_of(problem, limit, one_buffer=one_buffer, kernel=kernel)
        for one in islice(passes, 10):  # of thousands that are no larger
            assert 0 < serial_steps(one) <= MAX_SERIAL_STEPS
            assert one.elements <= limit.dispatch_elements


def test_elementwise_dispatches_are_short() -> None:
    layout = Layout.packed((2**28,))
    for element in ELEMENT_TYPES:
        plans = [plan_problem(convert_problem(F32, element, layout, layout), GPU)]
        if element.kind == "float":
            plans.append(plan_problem(round_problem(element, RoundingMode.HALF_EVEN, layout, layout), GPU))
        assert all(0 < serial_steps(one) <= 64 for plan in plans for one in plan.passes)


@pytest.mark.parametrize("element", [F32, by_name("float16"), by_name("float64")], ids=str)
@pytest.mark.parametrize("more", [1, 4, 8, 12])
def test_windows_of_roundings_begin_with_vectors(element: ElementType, more: int) -> None:
    layout = Layout.packed((2**28 + more,))
    passes = plan_problem(round_problem(element, RoundingMode.HALF_EVEN, layout, layout), Limits()).passes
    assert len(passes) > 2
    rest = sum(one.elements for one in passes if one.pipeline.kernel != "elementwise_units")
    assert rest == more % (QUAD_BYTES // element.itemsize)


def test_many_slices_of_a_single_run_have_pipelines_that_know_their_length() -> None:
    for sizes, expected in (((4096, 16), 16), ((4095, 16), 0), ((21_846, 3), 3), ((21_845, 3), 0)):
        for limits, pitch in ((Limits(), 20), (Limits(software=True), sizes[1])):
            layout = Layout(sizes, (pitch, 1))
            first, *rest = plan_problem(scan_problem(F32, Operator.SUM, layout, layout, axis=1), limits).passes
            assert dict(first.pipeline.constants)["slice_length"] == expected
            assert not any(dict(one.pipeline.constants)["slice_length"] for one in rest)


@pytest.mark.parametrize(("length", "runs"), [(1, 1), (2, 1), (3, 3), (6, 3), (8, 1), (10, 5), (12, 3), (15, 15)])
def test_packed_slices_are_read_by_whole_runs(length: int, runs: int) -> None:
    """As many slices an invocation as whole runs hold; those that are over go one by one."""
    slices = 16 * runs // length
    for extra in (0, 1):
        problem = packed_scan((64 * 1100 * slices + extra, length), 1, "uint8")
        passes = plan_problem(problem, Limits(software=True)).passes
        assert kernels(passes) == ["scan_short runs", *["scan_short"] * extra]
        first, *rest = passes
        assert dict(first.pipeline.constants)["runs"] == runs
        assert dict(first.pipeline.slots)["run_access"] == "quads"
        # 128 portions of each of 8 invocations.
        assert first.grid[0] == 69
        assert [one.elements for one in rest] == [length] * extra


def test_an_invocation_takes_many_short_slices_where_they_are_enough() -> None:
    for limits, slices, expected in (
        (Limits(), 2**20, (64, 1)),
        (Limits(software=True), 4096, (8, 128)),
        (changed(Limits(), software=True, cores=3), 4096, (64, 1)),
        (Limits(software=True), 4095, (64, 1)),
    ):
        layout = Layout((slices, 16), (20, 1))
        (one,) = plan_problem(scan_problem(F32, Operator.PRODUCT, layout, layout, 1), limits).passes
        constants = dict(one.pipeline.constants)
        assert (constants["lanes"], constants["together"]) == expected
        assert one.grid[0] * math.prod(expected) >= slices > (one.grid[0] - 1) * math.prod(expected)


def test_only_packed_slices_of_little_code_are_read_by_whole_runs() -> None:
    software = Limits(software=True)
    packed, apart = Layout.packed((21_856, 3)), Layout((21_856, 3), (4, 1))
    shifted, turned = Layout.packed((21_856, 3), 1), Layout((21_856, 3), (3, -1), 2)
    for source, target in ((apart, packed), (packed, apart), (shifted, packed), (packed, shifted), (turned, packed)):
        problem = scan_problem(by_name("float32"), Operator.SUM, source, target, axis=1)
        assert kernels(plan_problem(problem, software).passes) == ["scan_short"]
    for element, limits, expected in (
        ("float32", Limits(), "scan_blocks"),
        ("float64", Limits(), "scan_short"),
        ("float64", software, "scan_short"),
        ("float64", Limits(software=True, float64=True), "scan_short runs"),
        ("int64", software, "scan_short runs"),
        ("int64", Limits(software=True, offset_alignment=8), "scan_short runs"),
    ):
        assert kernels(plan_problem(packed_scan((21_856, 3), 1, element), limits).passes) == [expected]
    for sizes in ((8193, 8), (21_845, 12)):  # whole vectors
        assert kernels(plan_problem(packed_scan(sizes, 1), software).passes) == ["scan_short"]
    compensated = scan_problem(
        by_name("float32"), Operator.SUM, packed, packed, 1, ScanOptions(precision=Precision.COMPENSATED)
    )
    assert kernels(plan_problem(compensated, software).passes) == ["scan_short"]


@pytest.mark.parametrize(
    ("length", "element", "lanes", "slices"),
    [
        (1, "float32", 128, 2048),
        (3, "float32", 128, 640),
        (9, "float32", 128, 128),
        (16, "int64", 64, 64),
        (17, "float16", 256, 128),
        (33, "uint8", 256, 80),
        (161, "float32", 128, 8),
        (250, "int64", 64, 4),
        (256, "uint8", 256, 16),
        (300, "float32", 128, 6),
        (1024, "float32", 128, 2),
        (2000, "float16", 256, 2),
        (500, "int64", 64, 2),
    ],
)
def test_blocks_are_whole_vectors(length: int, element: str, lanes: int, slices: int) -> None:
    """A workgroup takes as many slices as its invocations have runs for, and as are multiples of 16 bytes."""
    for workgroups in (1, 7):
        (one,) = plan_problem(packed_scan((workgroups * slices, length), 1, element), Limits()).passes
        assert (one.pipeline.kernel, dict(one.pipeline.constants)["lanes"]) == ("scan_blocks", lanes)
        assert one.grid == (workgroups, 1, 1)
        assert block_slices(Work.of(one)) == slices


def test_slices_with_gaps_are_no_blocks() -> None:
    packed, apart = Layout.packed((640, 96)), Layout((640, 96), (112, 1))
    shifted, turned = Layout.packed((640, 96), 1), Layout((640, 96), (96, -1), 95)
    for source, target in ((apart, packed), (packed, apart), (shifted, packed), (packed, shifted), (turned, packed)):
        problem = scan_problem(F32, Operator.SUM, source, target, axis=1)
        assert kernels(plan_problem(problem, Limits()).passes) == ["scan_slices"]


def test_windows_of_packed_slices() -> None:
    """They are of whole runs, and what is left over comes last; without room for a whole one all go one by one."""
    for limits in (Limits(software=True, binding_bytes=4096), Limits(software=True, dispatch_elements=50_000)):
        *packed, rest = plan_problem(packed_scan((65_607, 3), 1, "uint8"), limits).passes
        assert set(kernels(tuple(packed))) == {"scan_short runs"}
        assert len(packed) > 2
        assert all(one.elements % 48 == 0 for one in packed)
        assert sum(one.elements for one in packed) == 3 * 65_600
        assert (rest.pipeline.kernel, rest.elements) == ("scan_short", 21)
    tiny = Limits(software=True, binding_bytes=512, offset_alignment=16)
    assert set(kernels(plan_problem(packed_scan((4384, 15), 1, "int64"), tiny).passes)) == {"scan_short"}


@pytest.mark.parametrize("sizes", [(20, 2), (20,)])
@pytest.mark.parametrize("kernel", ["strips", "strip_lookback"])
def test_strips_without_room_for_what_they_keep_leave_slices_to_others(kernel: str, sizes: tuple[int, ...]) -> None:
    tiny = Limits(binding_bytes=512, offset_alignment=16, float64=True)
    layout = Layout.packed(sizes)
    problem = scan_problem(by_name("float64"), Operator.SUM, layout, layout, 0, ScanOptions(exclusive=True))
    passes = plan_problem(problem, tiny, kernel=kernel).passes
    assert not any(one.pipeline.kernel.startswith("scan_strip_lookback") for one in passes)
    assert sum(one.elements for one in passes) >= math.prod(sizes)


@pytest.mark.parametrize(("axis", "longest"), [(1, 2 * SPAN), (0, SPAN)])
def test_only_slices_in_windows_have_the_code_for_them(axis: int, longest: int) -> None:
    limits = changed(Limits(), binding_bytes=2**31, software=True, columns=True)
    for length, expected in ((longest, {0}), (longest + 1, {1})):
        problem = packed_scan((256, length) if axis else (length, 16), axis)
        passes = plan_problem(problem, limits, kernel="slices").passes
        assert {dict(one.pipeline.constants)["in_windows"] for one in passes} == expected


@pytest.mark.parametrize(
    ("sizes", "axis", "element", "offset", "expected"),
    [
        ((64, 64), 1, "float32", 0, "quads"),
        ((64, 60), 1, "float32", 4, "quads"),
        ((64, 62), 1, "float32", 0, "strided"),
        ((64, 64), 1, "float32", 1, "strided"),
        ((64, 64), 0, "float32", 0, "strided"),
        ((64, 24), 1, "float16", 8, "quads"),
        ((64, 20), 1, "float16", 0, "strided"),
        ((64, 32), 1, "uint8", 16, "quads"),
        ((64, 40), 1, "uint8", 0, "strided"),
        ((64, 18), 1, "int64", 2, "quads"),
    ],
)
def test_runs_are_read_16_bytes_at_a_time_where_they_are_aligned(
    sizes: tuple[int, ...], axis: int, element: str, offset: int, expected: str
) -> None:
    layout = Layout.packed(sizes, offset)
    problem = scan_problem(by_name(element), Operator.SUM, layout, layout, axis=axis)
    slots = dict(plan_problem(problem, Limits(), kernel="rows").passes[0].pipeline.slots)
    assert slots["run_access"] == expected
    assert slots["input"] == "separate"
    assert (slots["output"] == "quads") == (expected == "quads")


def test_slices_of_one_tile_need_no_scratch() -> None:
    assert plan_problem(packed_scan((100, 4096), 1), Limits()).scratch_bytes == 0
    assert plan_problem(packed_scan((100, 4097), 1), Limits()).state_bytes == 4 * (
        2 + 100 * (16 + 1 + (10 + 4) * 2 + 7 * 2)
    )


def test_scratch_is_a_small_part_of_the_data() -> None:
    n = 2**24
    for limits in (Limits(), Limits(software=True)):
        assert plan_problem(packed_scan((n,), 0), limits).scratch_bytes <= 4 * n / 240


@pytest.mark.parametrize("kernel", KERNELS)
def test_an_invocation_never_loops_longer_than_software_drivers_allow(kernel: str) -> None:
    limits = Limits(binding_bytes=2**31, software=True)
    for sizes, axis, one_buffer in (((100_000, 5000), 0, False), ((2, 500_000), 1, True)):
        plan = plan_problem(packed_scan(sizes, axis), limits, kernel=kernel, one_buffer=one_buffer)
        for one in plan.passes:
            length, turn = one.params["length"], one.params["turn_tiles"] * TILE
            looped = {"scan_slices": length, "scan_rows": length, "scan_repair": turn}
            most = {"scan_slices": 2 * SPAN, "scan_rows": 1024 * TILE, "scan_repair": 1024 * TILE}
            name = one.pipeline.kernel
            assert looped.get(name, 0) <= most.get(name, 0)


def test_progress_between_windows_stays_small() -> None:
    for width, most in ((2**26, 2**27), (2**21, 2**25)):
        plan = plan_problem(packed_scan((63, width), 0), Limits(binding_bytes=8 * 4 * width))
        assert {dict(one.pipeline.constants)["inside_runs"] for one in plan.passes} == {1}
        assert most / 2 < plan.state_bytes <= most


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize(("pitch", "inside_runs"), [(10_000, 0), (10**6, 1)])
def test_both_phases_go_through_a_tile_that_does_not_fit(pitch: int, inside_runs: int, in_place: bool) -> None:
    layout = Layout((5000, 2), (pitch, 1))
    problem = scan_problem(F32, Operator.SUM, layout, layout, axis=0)
    passes = plan_problem(problem, Limits(binding_bytes=2**25), one_buffer=in_place).passes
    assert set(kernels(passes)) == {"scan_slices"}
    assert {dict(one.pipeline.constants)["inside_runs"] for one in passes} == {inside_runs}
    first_phase, second_phase = (CHECK, WRITE) if in_place else (TRY, REPAIR)
    seen = [
        (dict(one.pipeline.constants)["phase"], int(one.params["checked_first"]), int(one.params["first"]))
        for one in passes
    ]
    for group in (0, 4096):
        phases = [phase for phase, start, _ in seen if start == group]
        half = len(phases) // 2
        assert phases == [first_phase] * half + [second_phase] * half
        firsts = [first for _, start, first in seen if start == group]
        assert firsts[:half] == firsts[half:] == sorted(firsts[:half])
    assert {start for _, start, _ in seen} == {0, 4096}


limits = st.builds(
    Limits,
    binding_bytes=st.sampled_from([2048, 5000 // 4 * 4, 2**17]),
    offset_alignment=st.sampled_from([32, 256]),
    workgroups=st.sampled_from([300, 65_535]),
)


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=4),
    st.integers(0, 3),
    st.sampled_from(["float32", "uint8", "float16", "int64"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, *KERNELS]),
    limits,
    st.integers(0, 70),
)
def test_every_pass_keeps_to_the_limits(
    sizes: list[int],
    axis: int,
    element: str,
    reverse: bool,
    one_buffer: bool,
    kernel: str | None,
    limits: Limits,
    offset: int,
) -> None:
    assume(prod(sizes) <= 60_000)
    layout = Layout.packed(sizes, offset)
    problem = scan_problem(
        by_name(element), Operator.SUM, layout, layout, axis % len(sizes), ScanOptions(reverse=reverse)
    )
    plan = plan_problem(problem, limits, one_buffer=one_buffer, kernel=kernel)
    itemsize = by_name(element).itemsize
    buffer_size = -(-(offset + layout.count) * itemsize // 4) * 4
    for one in plan.passes:
        assert all(1 <= size <= limits.workgroups for size in one.grid)
        of_state = one.pipeline.kernel == "scan_carries"
        assert (one.output is None) == of_state
        assert (one.input is None) == (one_buffer or of_state)  # in place
        for part in filter(None, (one.input, one.output)):
            assert part.offset % limits.offset_alignment == 0
            assert part.size % 4 == 0
            assert 0 < part.size <= limits.binding_bytes
            assert part.offset + part.size <= buffer_size
        assert 0 < one.state_bytes <= plan.state_bytes
        assert len(one.uniforms) == PARAMS.itemsize
    # Checking passes write nothing, and repairing ones what is written; the passes of every other kernel cover the
    # tensor once.
    last = plan.passes[-1].pipeline.kernel
    writing = [
        p.elements
        for p in plan.passes
        if p.pipeline.kernel == last and dict(p.pipeline.constants).get("phase") not in (CHECK, REPAIR)
    ]
    assert sum(writing) == layout.count


def test_two_tensors_of_one_buffer_have_two_bindings_unless_they_would_meet() -> None:
    near = convert_problem(F32, F32, Layout.packed((10,)), Layout.packed((10,), 12))
    far = convert_problem(F32, F32, Layout.packed((10,)), Layout.packed((10,), 10**6))
    same = convert_problem(F32, F32, Layout.packed((10**6,)), Layout.packed((10**6,)))
    small = Limits(binding_bytes=4096)
    assert [is_in_place(problem) for problem in (near, far, same)] == [False, False, True]
    slots = []
    for problem in (near, far, same):
        passes = plan_problem(problem, small, one_buffer=True).passes
        slots.append({dict(one.pipeline.slots)["input"] for one in passes})
    assert slots == [{"in_output"}, {"shared"}, {"in_output"}]
    assert plan_problem(near, small, one_buffer=True).passes[0].output == Range(0, 88)


@pytest.mark.parametrize(
    ("sizes", "strides", "offset", "expected"),
    [
        ((1000,), (1,), 0, {"elementwise_units": 1000}),
        ((1003,), (1,), 0, {"elementwise_units": 1000, "elementwise": 3}),
        ((10, 100), (100, 1), 64, {"elementwise_units": 1000}),
        ((1003,), (1,), 68, {"elementwise_units": 1000, "elementwise": 3}),
        ((1003,), (1,), 1, {"elementwise": 1003}),
        ((3,), (1,), 0, {"elementwise": 3}),
        ((10, 100), (104, 1), 0, {"elementwise": 1000}),
        ((1000,), (2,), 0, {"elementwise": 1000}),
        ((1000,), (0,), 0, {"elementwise": 1000}),
    ],
)
def test_neighbours_are_rounded_by_the_quad(
    sizes: tuple[int, ...], strides: tuple[int, ...], offset: int, expected: dict[str, int]
) -> None:
    problem = round_problem(F32, RoundingMode.HALF_EVEN, Layout(sizes, strides, offset), Layout.packed(sizes))
    assert {one.pipeline.kernel: one.elements for one in plan_problem(problem, Limits()).passes} == expected


@given(st.integers(1, 3000), st.integers(0, 3000), st.integers(0, 400), st.booleans())
def test_bindings_of_one_buffer_never_meet(count: int, start: int, gap: int, swap: bool) -> None:
    offsets = (start, start + count + gap)
    source, target = (Layout.packed((count,), offset) for offset in (offsets[::-1] if swap else offsets))
    limits = Limits(binding_bytes=2048)
    for one in plan_problem(convert_problem(F32, F32, source, target), limits, one_buffer=True).passes:
        assert one.output.size <= limits.binding_bytes
        if one.input is not None:
            assert one.input.size <= limits.binding_bytes
            assert one.input.end <= one.output.offset or one.output.end <= one.input.offset


def test_strides_beyond_32_bits_stay_exact() -> None:
    """Offsets and strides are exact integers until they are relative to a binding."""
    n = 2**33
    source = Layout((3,), (n,), 5)
    plan = plan_problem(convert_problem(F32, F32, source, Layout.packed((3,))), Limits())
    assert [one.input.offset for one in plan.passes if one.input] == [0, 4 * n, 8 * n]
    assert [int(one.params["input_offset"]) for one in plan.passes] == [5, 5, 5]


def test_huge_tensors_never_wrap() -> None:
    plan = plan_problem(packed_scan((2**32 - 1,), 0, "uint8"), Limits(binding_bytes=2**31 - 4))
    ends = [one.output.offset + one.output.size for one in plan.passes if one.output]
    assert max(ends) == 2**32
    assert sum(p.elements for p in plan.passes if p.pipeline.kernel == "scan_tiles") == 2**32 - 1
    assert max(p.elements for p in plan.passes) <= 2**28
    firsts = [int(p.params["first"]) for p in plan.passes if p.pipeline.kernel == "scan_tiles"]
    assert firsts == sorted(firsts)
    assert all(first % SPAN == 0 for first in firsts)


@pytest.mark.parametrize("sizes", [(3, 5000), (3, 5001)], ids=["by vectors", "by elements"])
def test_an_input_beside_the_scratch_memory_is_bound_writable(sizes: tuple[int, ...]) -> None:
    plan = writable_input(plan_problem(packed_scan(sizes, 1), Limits(), kernel="lookback"))
    assert {dict(one.pipeline.slots)["input"] for one in plan.passes if one.input is not None} == {"shared"}


@pytest.mark.parametrize(("name", "rows"), [("int32", 100), ("float32", 16)])
def test_windows_of_left_folds_hand_on_a_result_alone(name: str, rows: int) -> None:
    """Rows longer than half a binding: what is kept of each column moves once a window."""
    layout = Layout.packed((rows, 2**20))
    passes = plan_problem(scan_problem(by_name(name), Operator.SUM, layout, layout, 0), Limits(2**25)).passes
    assert sum(4 * 8 * one.params["count"] for one in passes) >= sum(one.state_bytes for one in passes) > 0
    assert len(passes) <= ceil_div(rows, 4)
    kept = 2 * 4 * 2**20 * (len(passes) - 1)
    moved = sum(figures_of(one).bytes_read + figures_of(one).bytes_written for one in passes)
    assert 2 * layout.count * 4 < moved <= 2 * layout.count * 4 + kept


@pytest.mark.parametrize("software", [False, True])
@pytest.mark.parametrize("name", ["uint8", "float32"])
def test_fewer_elements_are_not_had_by_cutting_tiles(name: str, software: bool) -> None:
    """Pictures one after the other, scanned down: more elements than a dispatch has, which a binding could hold."""
    limits = Limits(binding_bytes=2**32 - 4, software=software, dispatch_elements=2**24)
    for sizes, axis in (((100, 1080, 1920), 1), ((1000, 2**20), 0), ((3, 9000, 70_001), 1), ((5, 3, 2**26), 2)):
        layout = Layout.packed(sizes)
        passes = plan_problem(scan_problem(by_name(name), Operator.SUM, layout, layout, axis), limits).passes
        assert max(one.elements for one in passes) <= 2**24
        for one in passes:
            first, length = int(one.params["first"]), int(one.params["length"])
            assert first % TILE == 0
            assert length == sizes[axis] - first or length % TILE == 0
            if name == "uint8" and one.output is not None:
                assert int(one.params["output_offset"]) % 4 == 0 or sizes[-1] % 4


@pytest.mark.parametrize(
    ("name", "kernel"), [("uint8", "scan_strips"), ("int32", "scan_strips"), ("float16", "scan_slices")]
)
def test_strips_go_through_windows_inside_tiles_of_integers(name: str, kernel: str) -> None:
    """Which go on from their last result, wherever a window ends; others would store bytes by atomic operations."""
    element = by_name(name)
    layout = Layout.packed((4095, 2**16))
    limits = Limits(binding_bytes=2**27 * element.itemsize)
    passes = plan_problem(scan_problem(element, Operator.SUM, layout, layout, 0), limits).passes
    assert set(kernels(passes)) == {kernel}
    if kernel == "scan_strips":
        assert [int(one.params["length"]) for one in passes] == [2048, 2047]
        few = Limits(binding_bytes=2**23 * element.itemsize)  # fewer rows than a workgroup's
        assert set(kernels(plan_problem(scan_problem(element, Operator.SUM, layout, layout, 0), few).passes)) == {
            "scan_slices"
        }


def test_windows_that_begin_where_bindings_may_are_as_large_as_one() -> None:
    """A row more than would fit with room for alignment, which makes twice as many of those that fill a tile."""
    for offset, source_pitch, rows in ((0, 2**20, 32), (1, 2**20, 16), (0, 2**20 + 1, 16), (64, 2**20 - 64, 32)):
        source = Layout((100, 2**20), (source_pitch, 1), offset)
        target = Layout.packed((100, 2**20))
        passes = plan_problem(scan_problem(F32, Operator.SUM, source, target, 0), Limits()).passes
        assert max(one.params["length"] for one in passes) == rows
        for one in passes:
            assert one.input is not None
            assert max(one.input.size, one.output.size) <= 2**27
            assert one.input.offset % 256 == one.output.offset % 256 == 0


@pytest.mark.parametrize(("rows", "width", "traffic"), [(100, 2**20, 1.27), (1000, 2**20, 1.3), (60, 8_294_400, 2.1)])
def test_windows_inside_tiles_hand_on_what_has_changed(rows: int, width: int, traffic: float) -> None:
    """Pictures one after the other, of which a binding holds few: in times a copy's bytes."""
    layout = Layout.packed((rows, width))
    passes = plan_problem(scan_problem(F32, Operator.SUM, layout, layout, 0), Limits()).passes
    moved = sum(figures_of(one).bytes_read + figures_of(one).bytes_written for one in passes)
    assert moved <= traffic * 2 * layout.count * 4
