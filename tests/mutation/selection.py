"""Which trials there are: the conformance cases, some of them with other limits, and cases made for more."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice, product
from typing import Any

from dmlgpu.bench.workloads import COPIES
from dmlgpu.conformance import Case, Placement, RoundCase, parse, suite
from dmlgpu.conformance.probes import hard_pairs
from dmlgpu.planning.plan import KERNELS
from dmlgpu.planning.problem import MODES
from dmlgpu.planning.windows import SPAN, TILE
from dmlgpu.runtime.device import Device

from ..harness import Posts, StripPosts
from ..near_underflow import KINDS, KINDS_IN_BLOCKS, infinity_times_small, kinds_of, near_underflow, s_of_a_window
from ..test_exceptional import LEAVING, PARTS, SUMS_LEAVING, torn_posts, torn_posts_of_ends, torn_strips, twice
from ..test_float64_words import halfway
from ..test_repair import EVENTS, PATTERNS, TILES
from .cases import OUTPUT_FIRST, PACKED, BytesCase, CopyCase, own_scan
from .trials import Trial

__all__ = ["near_underflow_trials", "trials"]

_MOST_ELEMENTS = 140_000
_OF_FULL = 15
"""One in so many cases of the full suite is tried besides the default ones: these have few pipelines."""
_OPERATORS = ("sum", "product")
_IN_PLACE = Placement.in_place("packed")

_Choice = tuple[Case, dict[str, Any]]


def trials(device: Device) -> list[Trial]:
    """Return the trials, planned for a device."""
    found = [Trial(case, changes) for case, changes in _suite(device)]
    found += [Trial(case, changes, is_special=True) for case, changes in _own(device)]
    for trial in found:
        trial.plan(device)
    return found


def _suite(device: Device) -> Iterator[_Choice]:
    everything = chain(suite(), islice(suite(full=True), 0, None, _OF_FULL))
    cases = [case for case in everything if math.prod(case.shape) <= _MOST_ELEMENTS]
    yield from ((case, {}) for case in cases)
    for number, case in enumerate(cases):
        if case.dtype == "float64" and case.column.startswith(_OPERATORS) and device.limits.float64:
            yield case, {"float64": False}
        if case.dtype.startswith("float") and case.column.startswith(_OPERATORS) and number % 7 == 0:
            yield case, {"opaque": False}
        if number % 11 == 0:
            yield case, {"workgroups": 3}
    yield from _windowed()


def _windowed() -> Iterator[_Choice]:
    """Tensors larger than a binding, as in tests/test_scan_kernels.py."""
    shapes = [
        ("150003", 0, "float32"),
        ("140001x2", 0, "int32"),
        ("2x70000", 1, "float32"),
        ("70000", 0, "uint8"),
        ("3x40001", 1, "float16"),
        ("7x30x100", 1, "int64"),
        ("70000", 0, "float64"),
    ]
    orders = ("sum inclusive.increasing", "product exclusive.decreasing", "sum exclusive.increasing")
    for (shape, axis, dtype), order, way in product(shapes, orders, KERNELS):
        operator, rest = order.split()
        for family in ("plain", "special") if dtype == "float32" else ("plain",):
            name = f"{operator}.{dtype}.{shape}.axis{axis}.{rest}.packed-to-packed.{way}.{family}"
            yield from ((parse(name), {"binding_bytes": binding}) for binding in (4096, 70_000, 300_000))
    yield parse("round.float32.half_even.4097.packed-to-packed.plain"), {"binding_bytes": 4096}
    yield parse("convert.int32-to-float16.8192.packed-to-packed.patterns"), {"binding_bytes": 4096}


def _own(device: Device) -> Iterator[_Choice]:
    for case in (*_exceptional(), *_hard(), *_compensated(), *_columns(), *_past_the_end()):
        yield case, {}
        if case.dtype == "float64" and device.limits.float64:
            yield case, {"float64": False}
    yield from near_underflow_trials()
    yield from _exceptional_windows()
    yield from _columns_of_words()
    yield from _bands()
    yield from ((case, {"software": False}) for case in _roundings_past_the_end())
    yield from _crossing()
    yield from _turns()
    yield from _short()
    yield from _packed()
    yield from _many_short()
    yield from _blocks()
    yield from _unaligned_strips()
    yield from _unaligned_runs()
    yield from _unaligned_tiles()
    yield from _many_tiles()
    yield from _exceptional_strips()
    yield from _strip_lookback()
    yield from _staged_strips()
    yield from _surplus()
    yield from _far_apart()
    yield from _withheld()
    yield from _read_twice()
    yield from _ordinary()
    yield from _missing_posts()
    for copy in COPIES:
        case = CopyCase("uint32", (65_536,), PACKED, "plain", copy)
        yield from ((case, changes) for changes in ({}, {"workgroups": 3}, {"binding_bytes": 2**16}))


def _hard() -> Iterator[Case]:
    for way in KERNELS:
        yield own_scan("ties", "float16", "product", (2047, 2), 1, way)
    for dtype, operator in product(("float32", "float64"), _OPERATORS):
        yield own_scan("hard", dtype, operator, hard_pairs(dtype, operator).shape, 1, "slices")
    yield own_scan("opposites", "float64", "sum", (1000, 2), 1, "slices")
    yield own_scan("apart", "float64", "sum", (2400, 2), 1, "slices")
    yield own_scan("halfway", "float64", "product", halfway().shape, 1, "slices")
    for to in ("int8", "uint64", "float16", "float64"):
        yield BytesCase("bool", (256,), PACKED, "bytes", to)
    for types in ("float64-to-int64", "float32-to-uint64", "float64-to-float32", "float32-to-float16"):
        yield parse(f"convert.{types}.8192.packed-to-packed.patterns")
    for types in ("int64-to-float64", "uint64-to-float32", "int32-to-float16", "float16-to-int8"):
        yield parse(f"convert.{types}.8192.packed-to-packed.patterns")


def _exceptional() -> Iterator[Case]:
    for way in KERNELS:
        yield own_scan("nearly_zero", "float64", "product", (2, 19 * TILE + 5), 1, way)
    for way, operator, both in product(KERNELS, _OPERATORS, (False, True)):
        for length in (300, 4100):
            yield own_scan("events", "float32", operator, (90, length), 1, way, both=both)
        yield own_scan("late_events", "float32", operator, (20, 9000), 1, way, both=both)
        yield own_scan("late_events", "float32", operator, (5, 66_000), 1, way, both=both)
        yield own_scan("events", "float32", operator, (90, 9000), 1, way, both=both, placement=_IN_PLACE)
        for dtype in ("float16", "float64"):
            yield own_scan("events", dtype, operator, (90, 4500), 1, way, both=both)
    for way in KERNELS:
        for dtype in ("float32", "float64"):
            yield own_scan("edge", dtype, "product", (3, 20 * TILE), 1, way)
        for dtype, operator in product(("float32", "float64"), _OPERATORS):
            yield own_scan("behind", dtype, operator, (20 * TILE,), 0, way)
            yield own_scan("twice", dtype, operator, twice(operator, dtype).shape, 1, way)
        yield own_scan("barely", "float32", "sum", (3, 5000), 1, way)
        for length in (4100, 4101):
            yield own_scan("peaks", "float32", "sum", (32, length), 1, way)
        for length in (*range(257, 273), 300, 4104, 4105):
            yield own_scan("ending", "float32", "sum", (3, length), 1, way)
        for length in (260, 264, 268, 272):  # not by vectors of four
            placement = Placement("packed", "to", "offset")
            yield own_scan("ending", "float32", "sum", (3, length), 1, way, placement=placement)
        for both in (False, True):
            yield own_scan("negative_zeros", "float32", "sum", (40 * TILE,), 0, way, both=both)
        yield own_scan("overflowing_span", "float32", "sum", (36 * TILE,), 0, way)
        yield own_scan("recovering", "float32", "sum", (5 * TILE,), 0, way)
        for placement in (PACKED, _IN_PLACE):
            yield own_scan("handing_on", "float32", "sum", (3 * TILE,), 0, way, placement=placement)
        yield own_scan("cancelling", "float32", "sum", (150_000,), 0, way)
        yield own_scan("cancelling", "float32", "sum", (4, 20_000), 1, way, both=True, placement=_IN_PLACE)
        yield own_scan("underflow", "float32", "product", (140_000,), 0, way)


def near_underflow_trials() -> Iterator[_Choice]:
    """Products in which one kind of value is out of range: in every kernel, in place, in columns, in windows."""
    for kind in KINDS:
        family = f"near {kind}"
        length = near_underflow(kind, "float32", 1).shape[1]
        for way, dtype, placement in product(KERNELS, ("float32", "float64"), (PACKED, _IN_PLACE)):
            if dtype == "float32" or placement is PACKED:
                yield own_scan(family, dtype, "product", (16, length), 1, way, placement=placement), {}
        yield own_scan(family, "float64", "product", (16, length), 1, "slices"), {"float64": False}
        yield own_scan(family, "float32", "product", (length, 256), 0, "slices"), {"near_elements": 0}
        if length <= 4 * TILE:
            case = own_scan(family, "float32", "product", (length, 4), 0, "slices", far=(100, 130))
            yield case, {"binding_bytes": 4096}
        if kind in kinds_of("float16"):
            shape = (near_underflow(kind, "float16", 1).shape[1], 256)
            yield own_scan(family, "float16", "product", shape, 0, "slices"), {}
    for way in KERNELS:
        for dtype in ("float32", "float64"):
            case = own_scan("s of a window", dtype, "product", s_of_a_window(dtype, 16).shape, 1, way)
            yield case, {"window": 2 * TILE}
        yield own_scan("falling", "float32", "product", (30, 4200), 1, way), {}
        yield own_scan("infinity_times_small", "float32", "product", infinity_times_small().shape, 1, way), {}
    far = own_scan("falling_beside", "float32", "product", (4200, 30), 0, "slices", far=(100, 130))
    yield from ((far, {"binding_bytes": binding}) for binding in (4096, 70_000))
    for dtype in ("float32", "float64"):
        for shape in ((32, 16), (2**15, 3)):
            yield own_scan("smallest_normals", dtype, "product", shape, 1, "slices"), {}
        for way in KERNELS:
            yield own_scan("peaks_of_products", dtype, "product", (16, 48), 1, way), {}
            yield own_scan("climbing_products", dtype, "product", (16, 64), 1, way), {}
            yield own_scan("lone_peaks", dtype, "product", (64, 49), 1, way), {}


def _compensated() -> Iterator[Case]:
    for way in KERNELS:
        yield own_scan("pairs", "float32", "sum", (4, 300), 1, way, compensated=True)
        for number, shape in enumerate(((3, 17), (2, 4097), (2, 9000), (1, 70_000))):
            for both in (False, True):
                yield own_scan("wide", "float32", "sum", shape, 1, way, both=both, compensated=True)
            placement = Placement("packed", "to", "offset") if number % 2 else _IN_PLACE
            yield own_scan("wide", "float32", "sum", shape, 1, way, placement=placement, compensated=True)
        yield own_scan("events", "float32", "sum", (90, 4100), 1, way, compensated=True)


def _columns() -> Iterator[Case]:
    for dtype, operator, both in product(("int8", "uint16", "float16"), _OPERATORS, (False, True)):
        for shape, axis in (((17, 512), 0), ((300, 512), 0), ((4500, 256), 0), ((2, 33, 256), 1)):
            yield own_scan("numbers", dtype, operator, shape, axis, "slices", both=both)
    for operator, both in product(_OPERATORS, (False, True)):
        yield own_scan("beside", "float16", operator, (4500, 160), 0, "slices", both=both)
    yield own_scan("halves", "float16", "product", (9000, 160), 0, "slices")


def _columns_of_words() -> Iterator[_Choice]:
    """Four words of adjacent slices an invocation, which few elements do not get."""
    changes = {"near_elements": 0}
    for dtype, operator, both in product(("float32", "int64", "float64"), _OPERATORS, (False, True)):
        for shape, axis in (((17, 512), 0), ((300, 516), 0), ((4500, 256), 0), ((2, 33, 256), 1)):
            yield own_scan("numbers", dtype, operator, shape, axis, "slices", both=both), changes
        if dtype != "int64":
            yield own_scan("beside", dtype, operator, (9000, 320), 0, "slices", both=both), changes
    for dtype in ("float32", "int64"):
        for shape, axis in (((300, 260), 0), ((2, 33, 260), 1)):
            yield own_scan("numbers", dtype, "sum", shape, axis, "slices", both=True, placement=OUTPUT_FIRST), changes
        for operator in _OPERATORS:
            case = own_scan("numbers", dtype, operator, (4500, 256), 0, "slices", both=True)
            yield case, {**changes, "binding_bytes": 70_000}
    yield own_scan("beside", "float32", "sum", (9000, 320), 0, "slices"), {**changes, "binding_bytes": 6_000_000}
    for dtype, binding in (("float32", 4_500_000), ("float16", 2_300_000)):
        for family in ("numbers", "beside"):
            case = own_scan(family, dtype, "sum", (8500, 256), 0, "slices", exclusive=dtype == "float16")
            yield case, {**changes, "binding_bytes": binding}
        yield own_scan("numbers", dtype, "sum", (4101, 256), 0, "slices"), changes
    for dtype in ("float32", "int64", "uint8"):  # in several bands a workgroup
        yield own_scan("numbers", dtype, "sum", (40, 4160), 0, "slices", both=True), {**changes, "software": True}
    for dtype, operator in product(("int8", "uint16", "float16", "int32", "int64", "float32", "float64"), _OPERATORS):
        for shape, axis in (((300, 130), 0), ((300, 133), 0), ((2, 33, 103), 1), ((40, 1047), 0)):
            case = own_scan("numbers", dtype, operator, shape, axis, "slices", both=True, placement=OUTPUT_FIRST)
            yield case, {**changes, "software": True}
        if dtype in ("int8", "uint16"):
            case = own_scan("numbers", dtype, operator, (300, 133), 0, "slices", placement=_IN_PLACE)
            yield case, {**changes, "software": True}
        padded = Placement("packed", "to", "padded")
        for width in (98, 99, 100):  # a row's last group is a word, which is a whole one of memory in some rows
            case = own_scan("numbers", dtype, operator, (40, width), 0, "slices", placement=padded)
            yield case, {**changes, "software": True}
        if dtype.startswith("f"):
            case = own_scan("beside", dtype, operator, (9000, 163), 0, "slices", both=True)
            yield case, {**changes, "software": True}


def _bands() -> Iterator[_Choice]:
    """Bands of one to eight groups at a place, the last of which are not all there, in several blocks and windows."""
    changes = {"near_elements": 0, "software": True, "cores": 1}
    two = {**changes, "cores": 2}
    for width in (25, 26, 27):  # the next row's first column lies where a last group has fewer than four
        for dtype, both in (("float32", False), ("float64", True)):
            yield own_scan("numbers", dtype, "sum", (2, 600, width), 1, "slices", both=both), two
        yield own_scan("behind others", "float32", "sum", (3, 600, width), 1, "slices"), two
    for width in (27, 60, 100):  # in one band, of which some places have no column
        yield own_scan("numbers", "float64", "sum", (4200, width), 0, "slices", both=True), changes
    yield own_scan("numbers", "float64", "sum", (20 * TILE + 100, 25), 0, "slices"), changes  # windows of ten tiles
    yield own_scan("numbers", "float16", "sum", (600, 512), 0, "slices", exclusive=True), {"software": True, "cores": 2}
    for family in ("numbers", "negative_zeros"):  # of one group at a place, of two, four and eight
        yield own_scan(family, "float32", "sum", (600, 24), 0, "slices", exclusive=True), changes
        for width in (24, 64, 128):
            yield own_scan(family, "float32", "sum", (600, width), 0, "slices"), changes
        yield own_scan(family, "float16", "sum", (600, 500), 0, "slices"), changes
    for length, windows in ((SPAN + 600, {}), (2 * TILE + 300, {"dispatch_elements": 24 * TILE})):
        for family in ("numbers", "negative_zeros"):
            yield own_scan(family, "float32", "sum", (length, 24), 0, "slices"), {**changes, **windows}
    for operator in _OPERATORS:  # what happens in a last block that ends no tile
        yield own_scan("beside", "float32", operator, (300, 196), 0, "slices"), changes
    for dtype, both in product(("uint8", "int32", "int64"), (False, True)):
        case = own_scan("odd", dtype, "product", (700, 256), 0, "slices", both=both)
        yield case, {**two, "dispatch_elements": 352 * 256}  # windows that end inside a block
    for width in (201, 512):
        yield own_scan("odd", "int32", "product", (300, width), 0, "slices", placement=_IN_PLACE), two


def _roundings_past_the_end() -> Iterator[Case]:
    lengths = (1030, 1032, 1033, 1036, 1048)  # an invocation's last vectors are not all there
    for dtype, mode, length in product(("float16", "float32", "float64"), MODES, lengths):
        yield RoundCase(dtype, (length,), OUTPUT_FIRST, "patterns", mode)


def _past_the_end() -> Iterator[Case]:
    yield from _roundings_past_the_end()
    for length in range(1, 16):  # runs of every length, and of every number of quads
        yield own_scan("lengths", "int8", "sum", (2, 16 + length, 256), 1, "slices", both=True)
        yield own_scan("lengths", "float32", "sum", (33, 16 + length), 1, "slices", both=True)
    for dtype, quad in (("float16", 8), ("float32", 4), ("int64", 2)):
        for length in range(16 + quad, 32, quad):
            yield own_scan("lengths", dtype, "sum", (33, length), 1, "slices")
    shapes = (((3, 1040), 1), ((5, 4100), 1), ((700, 8), 1), ((33, 4), 0), ((300, 12), 0), ((2, 33, 256), 1))
    for (shape, axis), way, dtype in product(shapes, ("auto", *KERNELS), ("float32", "float16", "uint8", "int64")):
        both = way in ("auto", "rows")
        yield own_scan("numbers", dtype, "sum", shape, axis, way, both=both, placement=OUTPUT_FIRST)


def _exceptional_windows() -> Iterator[_Choice]:
    for operator, both, way in product(_OPERATORS, (False, True), KERNELS):
        for number in (1, 4, 7, 10):
            case = own_scan("late_events", "float32", operator, (number, 66_000), 1, way, both=both)
            yield case, {"dispatch_elements": 5 * TILE}
    for way in KERNELS:
        yield own_scan("cancelling", "float32", "sum", (100_000,), 0, way), {"dispatch_elements": 5 * TILE}
        yield own_scan("wide", "float32", "sum", (100_000,), 0, way, compensated=True), {"dispatch_elements": 5 * TILE}
    for operator, both in product(_OPERATORS, (False, True)):
        for placement in (PACKED, _IN_PLACE):
            case = own_scan("late_events", "float32", operator, (20, 9000), 1, "slices", both=both, placement=placement)
            yield from ((case, {"binding_bytes": binding}) for binding in (4096, 70_000))
        for dtype in ("int8", "float16"):
            yield own_scan("numbers", dtype, operator, (4500, 256), 0, "slices", both=both), {"binding_bytes": 70_000}
    for both in (False, True):
        yield own_scan("beside", "float16", "sum", (9000, 160), 0, "slices", both=both), {"binding_bytes": 1_000_000}


def _crossing() -> Iterator[_Choice]:
    """Windows that begin inside a span of 16 tiles, and a slice of more spans than a workgroup has invocations."""
    for way, tiles in product(("rows", "lookback", "serial"), (3, 5)):
        changes = {"window": tiles * TILE}
        for dtype, operator in (("float32", "sum"), ("float32", "product"), ("int32", "sum"), ("int64", "product")):
            yield own_scan("numbers", dtype, operator, (2, 30 * TILE + 77), 1, way, both=tiles == 3), changes
        yield own_scan("negative_zeros", "float32", "sum", (40 * TILE,), 0, way), changes
        yield own_scan("recovering", "float32", "sum", (8 * TILE,), 0, way), changes
    yield own_scan("numbers", "float32", "sum", (1100 * TILE + 5,), 0, "lookback"), {"software": False}
    for operator, way in product(_OPERATORS, ("lookback", "serial")):
        yield own_scan("early_infinity", "float32", operator, (600 * TILE,), 0, way), {"software": False}
    yield own_scan("numbers", "int32", "sum", (2300 * TILE,), 0, "lookback"), {"window": 1100 * TILE}


def _turns() -> Iterator[_Choice]:
    """Exceptional tiles repaired by several dispatches."""
    changes = {"software": True, "_MAX_TILES": 3, "_MAX_TILES_TOGETHER_ON_SOFTWARE": 3}
    for way in ("rows", "lookback", "serial"):
        for both in (False, True):
            yield own_scan("cancelling", "float32", "sum", (100_000,), 0, way, both=both), changes
        yield own_scan("recovering", "float32", "sum", (21 * TILE,), 0, way), changes
        yield own_scan("loud", "float32", "sum", (60 * TILE,), 0, way), changes
        yield own_scan("loud", "float32", "sum", (60 * TILE,), 0, way, both=True), {"window": 21 * TILE}
        yield own_scan("overflowing_span", "float32", "sum", (36 * TILE,), 0, way), changes
        for operator in _OPERATORS:
            yield own_scan("late_events", "float32", operator, (20, 66_000), 1, way, both=True), changes
            yield own_scan("behind", "float32", operator, (20 * TILE,), 0, way), changes
        case = own_scan("cancelling", "float32", "sum", (40 * TILE,), 0, way)
        yield case, {"_MAX_TILES": 3, "_MAX_TILES_TOGETHER_ON_SOFTWARE": 3, "dispatch_elements": 7 * TILE}
    turns = {"software": True, "_MAX_TILES": 7, "_MAX_TILES_TOGETHER_ON_SOFTWARE": 7}
    for way, (kind, (operator, _)) in product(("lookback", "serial"), EVENTS.items()):
        for number, pattern in enumerate(PATTERNS):
            case = own_scan(f"{kind} in {pattern}", "float32", operator, (TILES * TILE - 3,), 0, way)
            yield case, turns if number % 2 else {}
        case = own_scan(f"{kind} in apart", "float32", operator, (TILES * TILE - 3,), 0, way, both=True)
        yield case, {"window": 21 * TILE}
    for way, number in product(("lookback", "serial"), (13, 34, 35)):
        yield own_scan(f"{number} fills", "float32", "sum", (TILES * TILE,), 0, way), {}


def _short() -> Iterator[_Choice]:
    """Single runs in pipelines that know their length, which few elements do not get."""
    changes = {"_MANY_SHORT_ELEMENTS": 0}
    for length, dtype in product(range(1, 17), ("float32", "uint8", "int64")):
        yield own_scan("numbers", dtype, "sum", (70, length), 1, "slices", both=length % 2 == 0), changes
    for shape, axis in (((65, 16), 1), ((65, 12), 1), ((7, 130), 0)):
        for placement in (OUTPUT_FIRST, _IN_PLACE):
            yield (
                own_scan("numbers", "float16", "product", shape, axis, "slices", both=True, placement=placement),
                changes,
            )


def _packed() -> Iterator[_Choice]:
    """Single runs packed without gaps, several an invocation, in two workgroups, and some left over."""
    changes = {"_MANY_SHORT_ELEMENTS": 0, "software": True}
    for dtype, operator, exclusive in product(("float32", "float16", "int64"), _OPERATORS, (False, True)):
        yield own_scan("numbers", dtype, operator, (1100, 3), 1, "slices", exclusive=exclusive), changes
    for length in range(1, 16):
        for exclusive in (False, True):
            yield own_scan("numbers", "uint8", "sum", (1100, length), 1, "slices", exclusive=exclusive), changes
    for length, operator in product((2, 3, 7, 10), _OPERATORS):
        case = own_scan("negative_zeros", "float32", operator, (1100, length), 1, "slices", exclusive=length == 3)
        yield case, changes
        for order in ("inclusive", "exclusive"):
            name = f"{operator}.float32.1100x{length}.axis1.{order}.increasing.packed-to-packed.slices.special"
            yield parse(name), changes
    for slices in (1104, 1120):  # no more than so many are written: the input is behind them
        case = own_scan("numbers", "int32", "sum", (slices, 3), 1, "slices", placement=OUTPUT_FIRST)
        yield case, {**changes, "offset_alignment": 256}
    for more in ({"workgroups": 1}, {"binding_bytes": 4096}):
        yield own_scan("numbers", "int32", "sum", (3100, 3), 1, "slices"), {**changes, **more}
        case = own_scan("numbers", "uint8", "sum", (5100, 5), 1, "slices", placement=_IN_PLACE, exclusive=True)
        yield case, {**changes, **more}


def _many_short() -> Iterator[_Choice]:
    """Single runs of which an invocation has many: the last workgroup's are not all there."""
    changes = {"software": True, "cores": 2}
    for dtype, shape in product(("float32", "float64"), ((5000, 16), (10_003, 8))):
        yield own_scan("smallest_normals", dtype, "product", shape, 1, "slices"), changes
    for slices in (4096, 4097, 5003):
        for dtype, operator in (("float32", "product"), ("int32", "sum")):
            yield own_scan("numbers", dtype, operator, (slices, 16), 1, "slices", placement=OUTPUT_FIRST), changes
        yield own_scan("numbers", "float32", "product", (slices, 16), 1, "slices", both=True), changes
    for dtype, operator in product(("float32", "float16"), _OPERATORS):  # whole runs
        yield own_scan("numbers", dtype, operator, (65_600, 3), 1, "slices"), changes
    for slices in (65_540, 16 * 4099):
        yield own_scan("numbers", "uint8", "sum", (slices, 1), 1, "slices", placement=OUTPUT_FIRST), changes


def _blocks() -> Iterator[_Choice]:
    """Slices of few blocks without gaps, as GPUs take them: whole workgroups, part of one, and some left over."""
    changes = {"software": False}
    orders = ((False, False), (True, True), (True, False), (False, True))
    for number, dtype in enumerate(("float32", "float16", "int64", "uint8", "float64")):
        for n, length in enumerate((1, 3, 5, 8, 16, 17, 32, 48, 49, 100, 161, 241, 256)):
            exclusive, reverse = orders[(number + n) % 4]
            operator = _OPERATORS[(number + n // 4) % 2]
            for slices in (16, 2**14 // length // 16 * 16 + 16):
                yield _block(dtype, operator, (slices, length), exclusive, reverse), changes
            for placement in (OUTPUT_FIRST, _IN_PLACE):
                yield _block(dtype, "sum", (48, length), exclusive, reverse, placement=placement), changes
            case = _block(dtype, "sum", (2**14 // length + 5, length), True, True)
            yield case, {**changes, "_MANY_SHORT_ELEMENTS": 0}
        for slices, length in ((350, 47), (15, 129), (130, 131), (33, 513)):  # by element, where they have a word
            yield _block(dtype, "sum", (slices, length)), {**changes, "_MANY_SHORT_ELEMENTS": 0}
        for n, length in enumerate((257, 304, 512, 1000, 1024, 2048)):
            exclusive, reverse = orders[(number + n) % 4]
            yield _block(dtype, _OPERATORS[n % 2], (48, length), exclusive, reverse), changes
        yield _block(dtype, "sum", (400, 40)), {**changes, "binding_bytes": 4096}
    for length in (5, 100, 304):  # numbers that need both words, by vectors and backwards
        yield _block("int64", "product", (32, length), reverse=True), changes
    for dtype, operator in product(("float32", "float16", "float64"), _OPERATORS):
        for length, (exclusive, reverse) in product((16, 17, 49, 256), orders):
            case = _block(dtype, operator, (640, length), exclusive, reverse, family="between")
            yield case, changes
        yield _block(dtype, operator, (640, 49), True, family="between", placement=_IN_PLACE), changes
        yield _block(dtype, operator, (256, 33), family="negative_zeros"), changes
    for dtype, operator in product(("float32", "float16", "float64"), _OPERATORS):
        for (length, family), (exclusive, reverse) in zip(
            product((304, 1000), ("between", "few classes", "many classes")), orders * 2, strict=False
        ):
            yield _block(dtype, operator, (128, length), exclusive, reverse, family=family), changes
        yield _block(dtype, operator, (16, 600), True, family="few classes", placement=_IN_PLACE), changes
        yield _block(dtype, operator, (16, 1024), family="negative_zeros"), changes
    for dtype in ("float32", "float16", "float64"):
        for kind in KINDS_IN_BLOCKS:
            yield _block(dtype, "product", (100, 1000), family=f"few blocks {kind}"), changes
    for dtype in ("float32", "float64"):
        yield _block(dtype, "product", (64, 16), family="smallest_normals"), changes
        yield _block(dtype, "product", (16, 48), family="peaks_of_products"), changes
        yield _block(dtype, "product", (16, 64), family="climbing_products"), changes
        yield _block(dtype, "product", (64, 49), family="lone_peaks"), changes
    for length in range(17, 33):
        yield _block("float32", "sum", (16, length), family="ending"), changes
    for length, exclusive in product((48, 80, 112), (False, True)):
        yield _block("float32", "sum", (100, length), exclusive, family="ending"), changes
    for dtype, slices, length in product(("float32", "uint8", "int64"), (2, 16), (16, 48, 256)):
        name = f"monotone.{dtype}.{slices}x{length}.axis1.inclusive.increasing.packed-to-packed.auto.plain"
        yield parse(name), changes


def _block(
    dtype: str,
    operator: str,
    shape: tuple[int, int],
    exclusive: bool = False,
    reverse: bool = False,
    *,
    family: str = "numbers",
    placement: Placement = PACKED,
) -> Case:
    """Return a case of slices along the last axis, in any order."""
    kernel = "slices" if shape[1] <= 256 else "auto"
    case = own_scan(family, dtype, operator, shape, 1, kernel, exclusive=exclusive, placement=placement)
    return replace(case, reverse=reverse)


def _unaligned_strips() -> Iterator[_Choice]:
    """Rows of narrow elements that begin anywhere in a word, in narrow and in wide strips, whole and in windows."""
    shapes = [((17, 33), 0), ((31, 34), 0), ((260, 129), 0), ((3, 300, 67), 1), ((TILE + 300, 35), 0)]
    shapes += [((3, 256 + more, 41), 1) for more in (1, 2, 3)]  # the next slices lie where a run of few ends
    for dtype, (shape, axis), both in product(("uint8", "int16", "float16"), shapes, (False, True)):
        for placement in (PACKED, OUTPUT_FIRST, *([] if dtype == "float16" else [_IN_PLACE])):
            yield own_scan("numbers", dtype, "sum", shape, axis, "strips", both=both, placement=placement), {}
        yield own_scan("numbers", dtype, "product", shape, axis, "strips", both=both), {"binding_bytes": 4096}
    wide = (("uint8", 16_387), ("uint8", 16_400), ("float16", 8195), ("float32", 4100), ("int32", 4097))
    for dtype, width in wide:  # the last strip is not full
        yield own_scan("numbers", dtype, "sum", (20, width), 0, "strips"), {}
    placements = ("offset-to-padded", "padded-to-offset", "offset-in-place", "padded-in-place", "reversed-to-offset")
    for placement, width in product(placements, (63, 64, 68)):
        for order in ("inclusive.increasing", "exclusive.decreasing"):
            yield parse(f"sum.int8.3x40x{width}.axis1.{order}.{placement}.strips.plain"), {}
            if "in-place" not in placement:
                yield parse(f"sum.float16.3x40x{width}.axis1.{order}.{placement}.strips.special"), {}


def _unaligned_runs() -> Iterator[_Choice]:
    """Rows of narrow elements that begin anywhere in a word, and whose last runs have any number of elements."""
    for dtype, length in product(("uint8", "int16", "float16"), range(1, 33)):
        for gap in (0, 1):
            placement = Placement("packed", "to", "padded") if gap else _IN_PLACE
            case = own_scan("numbers", dtype, "sum", (19, length), 1, "slices", exclusive=True, placement=placement)
            yield case, {"software": True}


def _unaligned_tiles() -> Iterator[_Choice]:
    """Tiles of narrow elements that begin anywhere in a word, which neighbours share, in either direction."""
    for dtype, kernel, both in product(("uint8", "int16", "float16"), ("rows", "lookback"), (False, True)):
        yield own_scan("numbers", dtype, "sum", (3, TILE + 2501), 1, kernel, both=both), {}


def _many_tiles() -> Iterator[_Choice]:
    """More spans than scan_carries has invocations; windows of whole spans; and tiles of negative zeros."""
    yield own_scan("numbers", "float32", "sum", (130 * SPAN + 5,), 0, "serial"), {}
    for kernel, both in product(("serial", "lookback"), (False, True)):
        yield own_scan("numbers", "float32", "sum", (40 * TILE + 9,), 0, kernel, both=both), {"window": SPAN}
        yield own_scan("negative_zeros", "float32", "sum", (3 * TILE,), 0, kernel, exclusive=both), {}


def _exceptional_strips() -> Iterator[_Choice]:
    """Columns of strips, some with exceptional tiles, whole and in windows of a tile; the last of whole stretches."""
    for dtype, operator, both in product(("float32", "float16", "float64"), _OPERATORS, (False, True)):
        for length in (9000, 2 * TILE + 1024):
            case = own_scan("beside", dtype, operator, (length, 320), 0, "strips", both=both)
            yield from ((case, changes) for changes in ({}, {"dispatch_elements": case.shape[1] * TILE}))
        case = own_scan("late", dtype, operator, (6 * TILE + 100, 40), 0, "strips", both=both)
        yield case, {"dispatch_elements": 2 * case.shape[1] * TILE}  # not the first tile of a window


def _strip_lookback() -> Iterator[_Choice]:
    """Tiles of narrow and of wide strips, in words of several slices and in rows that begin anywhere; in windows."""
    shapes = [((TILE + 300, width), 0) for width in (8, 24, 37, 40, 64)] + [((2, TILE + 300, 41), 1)]
    for (shape, axis), both in product(shapes, (False, True)):
        for dtype, operator in product(("float32", "float16", "uint8", "int16", "int64", "float64"), _OPERATORS):
            yield own_scan("numbers", dtype, operator, shape, axis, "strip_lookback", both=both), {}
            if dtype in ("uint8", "int64"):
                case = own_scan(
                    "numbers", dtype, operator, shape, axis, "strip_lookback", both=both, placement=_IN_PLACE
                )
                yield case, {}
    for dtype, both in product(("float32", "float16", "uint8", "int64"), (False, True)):
        case = own_scan("numbers", dtype, "sum", (3 * TILE + 5, 40), 0, "strip_lookback", both=both)
        yield case, {"window": TILE}
    for window in (2**20, 7 * TILE):  # zeros stay negative where nothing came before
        case = own_scan("negative_zeros", "float32", "sum", (18 * TILE + 5, 8), 0, "strip_lookback")
        yield case, {"window": window}


def _staged_strips() -> Iterator[_Choice]:
    """Rows of less than a sector, of a turn, a stretch and more, in either direction, in windows and between gaps."""
    shapes = [((length, 2), 0) for length in (TILE + 1100, TILE + 1024)]
    shapes += [((2048, 3), 0), ((2, 2100, 5), 1), ((1100, 7), 0), ((520, 13), 0)]
    narrow, placements = ("float16", "uint8", "int16"), ("reversed-to-offset", "offset-to-padded", "packed-to-reversed")
    for (shape, axis), kernel, both in product(shapes, ("strips", "strip_lookback"), (False, True)):
        for dtype in ("float32", "int64", *narrow) if shape[-1] < 8 else narrow:
            yield own_scan("numbers", dtype, "sum", shape, axis, kernel, both=both), {}
            if dtype in ("uint8", "int16"):
                yield own_scan("numbers", dtype, "sum", shape, axis, kernel, both=both, placement=_IN_PLACE), {}
    for placement, kernel in product(placements, ("strips", "strip_lookback")):
        for order, shape in product(
            ("inclusive.increasing", "exclusive.decreasing"), ("1100x2.axis0", "2x1100x3.axis1")
        ):
            yield parse(f"sum.uint8.{shape}.{order}.{placement}.{kernel}.plain"), {}
            yield parse(f"product.float16.{shape}.{order}.{placement}.{kernel}.special"), {}
    for dtype, operator, both in product(("float32", "float16"), _OPERATORS, (False, True)):
        for window in (2**20, TILE):
            case = own_scan("beside", dtype, operator, (3 * TILE + 100, 2), 0, "strip_lookback", both=both)
            yield case, {"window": window}
    for dtype, width in (("float32", 2), ("uint8", 3)):
        case = own_scan("numbers", dtype, "sum", (18 * TILE + 9, width), 0, "strip_lookback")
        yield from ((case, {"repairs": False, "window": window}) for window in (2**20, 17 * TILE))


def _surplus() -> Iterator[_Choice]:
    """Look-backs in grids that have more workgroups than there are tiles; carries of two words between windows."""
    for dtype, operator in (("float32", "sum"), ("int64", "product")):
        yield own_scan("numbers", dtype, operator, (2, 6 * TILE + 9), 1, "lookback"), {"workgroups": 5}
    yield own_scan("every_other", "float64", "sum", (4, 28 * TILE), 1, "lookback"), {"window": 9 * TILE}


def _far_apart() -> Iterator[_Choice]:
    """Few elements of a slice in a window: whole runs, or less."""
    for far, both in product(((40, 50), (100, 130)), (False, True)):
        for dtype, operator in (("float32", "sum"), ("int64", "product"), ("float64", "sum"), ("float16", "product")):
            case = own_scan("numbers", dtype, operator, (300, 3), 0, "slices", both=both, far=far)
            yield case, {"binding_bytes": 4096}
        for dtype, operator in (("float32", "product"), ("int64", "sum")):
            case = own_scan("numbers", dtype, operator, (4200, 1), 0, "slices", both=both, far=far)
            yield case, {"binding_bytes": 4096}
        for family, length in (("cancelling", 4500), ("negative_zeros", 5000), ("recovering", 2 * TILE)):
            case = own_scan(family, "float32", "sum", (length,), 0, "slices", both=both, far=far)
            yield case, {"binding_bytes": 4096}
        for length in (3 * TILE, TILE + 5, 2 * TILE - 1):
            case = own_scan("handing_on", "float32", "sum", (length,), 0, "slices", far=far)
            yield case, {"binding_bytes": 4096}
            case = own_scan(
                "handing_on", "float32", "sum", (length,), 0, "slices", far=far[:1] * 2, placement=_IN_PLACE
            )
            yield case, {"binding_bytes": 4096}

    for apart, both in product((300, 700, 1100), (False, True)):  # windows of four elements, of two and of one
        for dtype, operator in (("float32", "sum"), ("float32", "product"), ("int32", "sum"), ("int32", "product")):
            case = own_scan("numbers", dtype, operator, (300, 3), 0, "slices", both=both, far=(apart, apart))
            yield case, {"binding_bytes": 4096}


def _withheld() -> Iterator[_Choice]:
    """Workgroups that keep what others wait for to themselves, as in tests/test_exceptional.py."""
    for withhold_every, window in product((1, 2, 3), (9 * TILE, 3 * TILE, 2**20)):
        changes = {"withhold_every": withhold_every, "window": window}
        yield own_scan("handing_on", "float32", "sum", (40_000,), 0, "lookback"), changes
        yield own_scan("numbers", "float64", "sum", (2, 40_000), 1, "lookback"), changes
        for both in (False, True):
            yield own_scan("cancelling", "float32", "sum", (2, 40_000), 1, "lookback", both=both), changes
            yield own_scan("numbers", "float32", "product", (2, 37 * TILE), 1, "lookback", both=both), changes
            yield own_scan("numbers", "int64", "product", (3, 90_001), 1, "lookback", both=both), changes
    # As SwiftShader has it.
    yield own_scan("numbers", "float64", "sum", (2, 40_000), 1, "lookback"), {"float64": False}
    for withhold_every, window, both in product((1, 2, 3, 7), (5 * TILE, 2**20), (False, True)):
        changes = {"withhold_every": withhold_every, "window": window}
        for dtype, width, operator in (("float32", 16, "sum"), ("float16", 40, "product")):
            yield own_scan("numbers", dtype, operator, (19 * TILE + 5, width), 0, "strip_lookback", both=both), changes
        for dtype, width, operator in (("int64", 8, "sum"), ("uint8", 41, "product"), ("uint8", 32, "sum")):
            shape = (5 * TILE + 5, width)
            case = own_scan("numbers", dtype, operator, shape, 0, "strip_lookback", both=both, placement=_IN_PLACE)
            yield case, changes
    for dtype in ("uint8", "int64"):
        case = own_scan("numbers", dtype, "sum", (3 * TILE + 5, 32), 0, "strip_lookback")
        yield case, {"withhold_every": 1, "window": TILE}
    # More tiles, or parts of them, than scan_tiles has invocations that fold their totals.
    yield own_scan("numbers", "int32", "sum", (300 * TILE + 5,), 0, "lookback"), {"withhold_every": 1, "window": 2**21}
    case = own_scan("numbers", "int32", "sum", (600 * PARTS["int32"] + 5, 8), 0, "strip_lookback")
    yield case, {"withhold_every": 1, "window": 2**21}


def _read_twice() -> Iterator[_Choice]:
    """Slices of which the first pass leaves all tiles, in windows too and in grids that have surplus workgroups."""
    way = "reduce_then_scan"
    for dtype, operator, both in product(("float32", "float16", "float64"), _OPERATORS, (False, True)):
        case = own_scan("numbers", dtype, operator, (3, 19 * TILE + 9), 1, way, both=both)
        yield from ((case, {"window": window}) for window in (2**21, 9 * TILE))
        case = own_scan("numbers", dtype, operator, (2, 3 * TILE), 1, way, both=both, placement=_IN_PLACE)
        yield case, {"workgroups": 5}
    for operator, both in product(_OPERATORS, (False, True)):
        yield own_scan("late_events", "float32", operator, (10, 66_000), 1, way, both=both), {}
    yield own_scan("cancelling", "float32", "sum", (100_000,), 0, way), {"window": 7 * TILE}
    yield own_scan("early_infinity", "float32", "sum", (600 * TILE,), 0, way), {"software": False}


def _ordinary() -> Iterator[_Choice]:
    """Ordinary elements, of which no tile is left for later passes."""
    alone = {"repairs": False}
    for dtype, operator in product(("float32", "float64", "int64", "uint8"), _OPERATORS):
        for both in (False, True):
            yield own_scan("numbers", dtype, operator, (2, 35 * TILE + 9), 1, "lookback", both=both), alone
            case = own_scan("numbers", dtype, operator, (2, 7 * TILE), 1, "lookback", both=both, placement=_IN_PLACE)
            yield case, {**alone, "window": 3 * TILE}
    for both in (False, True):
        for operator in _OPERATORS:
            yield own_scan("numbers", "float32", operator, (2, 35 * TILE + 9), 1, "serial", both=both), alone
            yield own_scan("numbers", "float32", operator, (3, 1000), 1, "lookback", both=both), alone
            yield own_scan("numbers", "float32", operator, (20, 5 * TILE), 1, "lookback", both=both), alone
    of_strips = product(("float32", "float16", "float64", "int64", "uint8"), _OPERATORS, (False, True))
    for dtype, operator, both in of_strips:
        case = own_scan("numbers", dtype, operator, (18 * TILE + 9, 32), 0, "strip_lookback", both=both)
        yield from ((case, {**alone, "window": window}) for window in (2**20, 17 * TILE))


def _missing_posts() -> Iterator[_Choice]:
    """Look-backs that find less than others are about to post, as runs do by chance alone."""
    for number, operator in product((1, 3, 4, 5, 16), _OPERATORS):
        case = own_scan("numbers", "float32", operator, (18 * SPAN + 3 * TILE,), 0, "lookback")
        yield case, {"without": Posts(number), "repairs": False}
    for family, number in product((*LEAVING, *SUMS_LEAVING, "late infinity"), (2, 3)):
        operator = "sum" if family in SUMS_LEAVING else "product"
        case = own_scan(family, "float32", operator, (4 * SPAN + 9,), 0, "lookback")
        yield case, {"without": Posts(number)}
    for number, repairs in ((63, False), (64, True)):
        case = own_scan("numbers", "float32", "sum", (70 * SPAN,), 0, "lookback")
        yield case, {"without": Posts(number), "repairs": repairs}
    for dtype in ("float32", "int32", "int64"):
        yield own_scan("numbers", dtype, "sum", (2 * SPAN + 9,), 0, "lookback"), {"without": Posts(1, late=2)}
    for posts, spans in torn_posts_of_ends():
        yield own_scan("numbers", "float32", "sum", (spans * SPAN + 9,), 0, "lookback"), {"without": posts}
    for posts, place, dtype, exclusive in torn_posts():
        length = 2 * SPAN + (3 * TILE if place == "middle" else TILE)
        case = own_scan("numbers", dtype, "sum", (length,), 0, "lookback", exclusive=exclusive)
        yield case, {"without": posts}
    for dtype, operator, number in product(("float32", "int32"), _OPERATORS, (1, 2, 4, 7, 8)):
        length = 9 * (SPAN if dtype == "float32" else 16 * PARTS[dtype]) + PARTS[dtype] + 5
        width = 16 if dtype == "float32" else 8
        case = own_scan("numbers", dtype, operator, (length, width), 0, "strip_lookback")
        posts = StripPosts((2, 7), prefixes=tuple(range(9 - number, 9)))
        yield case, {"without": posts, "repairs": number == 8, "window": 2**21}
    for dtype, shape, exclusive, missing in torn_strips():
        case = own_scan("numbers", dtype, "sum", shape, 0, "strip_lookback", exclusive=exclusive)
        yield case, {"without": missing, "window": 2**21}
