"""The ledger is true: shaders access on the device what `dmlgpu.planning.ledger` works out. See recording.py."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from dmlgpu.dtypes import by_name
from dmlgpu.layout import Layout
from dmlgpu.planning import ledger
from dmlgpu.planning.dispatch import Pass
from dmlgpu.planning.kernels import TABLE
from dmlgpu.planning.ledger import SECTOR_BYTES, SUBGROUP, figures_of
from dmlgpu.planning.plan import plan_problem
from dmlgpu.planning.problem import (
    ElementwiseProblem,
    Operator,
    Precision,
    RoundingMode,
    ScanOptions,
    ScanProblem,
    convert_problem,
    round_problem,
    scan_problem,
)
from dmlgpu.planning.windows import TILE, Limits
from dmlgpu.runtime.device import Device

from .harness import changed, with_patience
from .recording import Access, record

AT_ONCE = 64
"""An invocation's accesses for which a workgroup's cache is sure to keep a word."""
GPU = Limits(offset_alignment=32)
SOFTWARE = changed(GPU, software=True, columns=True, dispatch_elements=2**24)
FAR = changed(SOFTWARE, near_elements=0)


@dataclass(frozen=True)
class Case:
    """A plan whose accesses are recorded.

    Attributes
    ----------
    sectors : bool
        Whether the accesses of all the first subgroup's elements are as those of its first ones.
    """

    way: str
    problem: ScanProblem | ElementwiseProblem
    limits: Limits = GPU
    kernel: str | None = None
    chunks: tuple[int, ...] | None = None
    one_buffer: bool = False
    sectors: bool = True


def scan(
    name: str, shape: tuple[int, ...], axis: int, operator: Operator = Operator.SUM, strides: Sequence[int] = ()
) -> ScanProblem:
    layout = Layout(shape, tuple(strides)) if strides else Layout.packed(shape)
    return scan_problem(by_name(name), operator, layout, layout, axis, ScanOptions(exclusive=operator is Operator.SUM))


def backwards(name: str, shape: tuple[int, ...], axis: int = 1) -> ScanProblem:
    layout = Layout.packed(shape)
    return scan_problem(by_name(name), Operator.SUM, layout, layout, axis, ScanOptions(exclusive=True, reverse=True))


def cases() -> list[Case]:
    found = []
    for name in ("float32", "uint8", "float16", "int64"):
        rows, square = scan(name, (3, 2 * TILE), 1), scan(name, (96, 64), 1)
        found += [Case(f"{name} rows", rows, kernel="rows")]
        found += [Case(f"{name} lookback windows", rows, kernel="lookback", chunks=(3, TILE))]
        found += [Case(f"{name} serial", rows, SOFTWARE, "serial")]
        found += [Case(f"{name} slices windows", square, kernel="slices", chunks=(96, 32))]
        # What a run has besides is loaded again, which shows in words only where elements do not share them.
        apart = by_name(name).itemsize >= 4
        found += [Case(f"{name} inside runs", scan(name, (64, 32), 1), chunks=(64, 8), sectors=apart)]
        for length, along in ((600, 32), (TILE + 300, 512), *(((40, 2), (13, 4)) if apart else ())):
            cut = Case(f"{name} {length} by {along}", scan(name, (8, length), 1), chunks=(8, along), sectors=False)
            found += [cut, replace(cut, way=f"{cut.way} in place", one_buffer=True)]
        # Elements of less than a word begin anywhere in one; slices that share a word have it twice.
        for way, (slices, length) in (("slices", (96, 61)), ("serial", (3, 2 * TILE + 61)), ("slices", (96, 11))):
            odd = scan(name, (slices, length), 1, strides=(length + 6, 1))
            found += [Case(f"{name} odd {way} of {length}", odd, SOFTWARE, way, sectors=False)]
        found += [Case(f"{name} packed", scan(name, (2**16 // 3 + 3, 3), 1), SOFTWARE, sectors=False)]
        found += [Case(f"{name} bands", scan(name, (320, 2048 if name == "uint8" else 512), 0), FAR)]
        odd_bands = Case(f"{name} odd bands", scan(name, (320, 1003), 0), FAR, sectors=False)
        found += [odd_bands, replace(odd_bands, way=f"{name} narrow bands", problem=scan(name, (320, 36), 0))]
        found += [
            replace(odd_bands, way=f"{name} bands of slabs", problem=scan(name, (8, 300, 13), 1, strides=(5700, 19, 1)))
        ]
        found += [Case(f"{name} strips", scan(name, (320, 512), 0))]
        found += [Case(f"{name} blocks", scan(name, (336, 96), 1))]
        found += [Case(f"{name} blocks of longer slices", scan(name, (14, 600), 1))]
        if by_name(name).itemsize >= 4:
            shifted = replace(scan(name, (64, 1024), 1), input_offset=1, output_offset=1)
            found += [Case(f"{name} blocks of elements", shifted)]
        found += [Case(f"{name} blocks backwards", backwards(name, (336, 96)))]
        if name in ("uint8", "float16"):
            unaligned = Case(f"{name} unaligned strips", scan(name, (320, 513), 0), sectors=False)
            found += [
                unaligned,
                replace(unaligned, way=f"{name} unaligned strips in a row", problem=scan(name, (320, 1027), 0)),
            ]
        in_word = max(1, 4 // by_name(name).itemsize)  # and no whole vectors
        odd = Case(f"{name} odd rows", scan(name, (3, 2 * TILE + in_word), 1), kernel="rows", sectors=False)
        found += [odd]
        found += [Case(f"{name} rows backwards", backwards(name, (3, TILE)), kernel="rows")]
        found += [Case(f"{name} lookback backwards", backwards(name, (3, 2 * TILE)), kernel="lookback")]
        found += [Case(f"{name} blocks of runs", scan(name, (2**16 // 3 + 3, 3), 1), sectors=False)]
    for name in ("float32", "float16", "float64"):
        twice = Case(f"{name} read twice", scan(name, (3, 17 * TILE), 1), kernel="reduce_then_scan")
        found += [twice, replace(twice, way=f"{twice.way} in windows", chunks=(3, 9 * TILE))]
        found += [replace(twice, way=f"{twice.way} backwards", problem=backwards(name, (3, 2 * TILE)))]
    found += [Case("wide strips", scan("float32", (129, 4096), 0), sectors=False)]
    found += [Case("strips of tiles", scan("float32", (TILE + 512, 64), 0), kernel="strips")]
    for name in ("float32", "uint8", "int64"):
        windows = Case(f"{name} strips in windows", scan(name, (TILE + 256, 64), 0), GPU, "strips", (64, TILE))
        found += [replace(windows, sectors=False)]
        if by_name(name).kind != "float":
            inside = Case(f"{name} strips inside tiles", scan(name, (1000, 64), 0), GPU, "strips", (64, 512))
            found += [replace(inside, sectors=False)]
    for name in ("float32", "float16", "uint8", "int64"):
        few = Case(f"{name} tiles of strips", scan(name, (TILE + 512, 64), 0), kernel="strip_lookback")
        found += [few, replace(few, way=f"{few.way} in windows", chunks=(64, TILE))]
    for name in ("float32", "float16", "uint8", "int32", "int64"):
        width = 2 if name == "int64" else 4
        staged = Case(f"{name} staged strips", scan(name, (2, 2 * TILE, width), 1), kernel="strips")
        few = Case(f"{name} staged tiles", scan(name, (3 * TILE, 2), 0), kernel="strip_lookback")
        found += [staged, few, replace(few, way=f"{few.way} in windows", chunks=(2, TILE))]
        found += [Case(f"{name} staged tiles backwards", backwards(name, (2 * TILE, 2), 0), kernel="strip_lookback")]
    found += [
        Case("product staged tiles", scan("float32", (2 * TILE, 2), 0, Operator.PRODUCT), kernel="strip_lookback")
    ]
    product_of_few = scan("float32", (TILE + 512, 24), 0, Operator.PRODUCT)
    found += [
        *(
            Case(f"{name} tiles of unaligned strips", scan(name, shape, 0), kernel="strip_lookback", sectors=False)
            for name, shape in (("uint8", (320, 77)), ("float16", (TILE + 304, 37)))
        ),
        Case("product tiles of strips", product_of_few, kernel="strip_lookback", sectors=False),
    ]
    found += [Case("words", scan("float64", (3, 2 * TILE), 1), kernel="lookback", chunks=(3, TILE))]
    found += [Case("float64", scan("float64", (3, 2 * TILE), 1), replace(GPU, float64=True), "rows")]
    square, columns = scan("float32", (96, 64), 1, strides=(80, 1)), scan("float32", (2 * TILE, 3), 0)
    gaps = scan("int64", (3, 2 * TILE), 1, strides=(16 * TILE, 2))
    for kernel in ("rows", "lookback"):
        found += [Case(f"{kernel} with gaps", gaps, kernel=kernel)]
        found += [Case(f"{kernel} down", columns, kernel=kernel)]
        found += [Case(f"{kernel} windows", scan("float32", (3, 2 * TILE), 1), kernel=kernel, chunks=(3, TILE))]
    found += [Case("serial down", columns, SOFTWARE, "serial")]
    found += [Case("serial windows", scan("float32", (3, 2 * TILE), 1), SOFTWARE, "serial", (3, TILE))]
    found += [Case("slices", square, kernel="slices"), Case("slices in place", square, one_buffer=True)]
    found += [Case("slices down", scan("float32", (64, 96), 0), kernel="slices")]
    found += [Case("bytes down", scan("uint8", (64, 96), 0), kernel="slices")]
    found += [
        Case("short", scan("float32", (100, 16), 1, strides=(32, 1))),
        Case("shorter", scan("float32", (100, 7), 1, strides=(8, 1)), sectors=False),
    ]
    found += [Case("product tiles", scan("float32", (2, 2 * TILE), 1, Operator.PRODUCT), kernel="lookback")]
    found += [Case("many serial", scan("float32", (5, 3 * TILE), 1), SOFTWARE, "serial")]
    found += [Case("many serial down", scan("float32", (2 * TILE, 5), 0), SOFTWARE, "serial")]
    found += [Case("bands of tiles", scan("float32", (TILE + 512, 256), 0), FAR, sectors=False)]
    found += [Case("bands in windows", scan("float32", (TILE + 512, 256), 0), FAR, chunks=(256, TILE), sectors=False)]
    in_windows = Case("bands of integers in windows", scan("uint8", (64, 510), 0), SOFTWARE, chunks=(510, 32))
    found += [replace(in_windows, sectors=False)]
    found += [Case("odd columns", scan("float32", (64, 97), 0), kernel="slices")]
    found += [Case("backwards", backwards("float32", (96, 64)), kernel="slices")]
    found += [Case("gaps", scan("float32", (96, 64), 1, strides=(256, 2)), kernel="slices")]
    wide = Layout.packed((64, 40))
    turned = Layout((64, 40), (1, 64))
    for source, target in (("uint8", "float32"), ("float64", "float16"), ("int32", "int32")):
        found += [Case(f"{source} to {target}", convert_problem(by_name(source), by_name(target), wide, wide))]
    found += [Case("turned", convert_problem(by_name("float32"), by_name("int32"), wide, turned))]
    for name in ("float16", "float32", "float64"):
        flat, odd = Layout.packed((4096,)), Layout.packed((4096 + (6 if name == "float16" else 3),))
        mode = RoundingMode.HALF_EVEN
        found += [Case(f"round {name}", round_problem(by_name(name), mode, flat, flat))]
        found += [Case(f"round odd {name}", round_problem(by_name(name), mode, odd, odd), SOFTWARE)]
    found += [Case("round turned", round_problem(by_name("float32"), RoundingMode.HALF_AWAY, wide, turned))]
    for name in ("float32", "int64"):
        maxima = scan(name, (2, 2 * TILE), 1, Operator.MAXIMUM)
        found += [
            Case(f"{name} maxima", maxima, kernel="lookback"),
            Case(f"{name} maxima serial", maxima, SOFTWARE, "serial"),
        ]
    layout = Layout.packed((2, 2 * TILE))
    compensated = scan_problem(
        by_name("float32"), Operator.SUM, layout, layout, 1, ScanOptions(precision=Precision.COMPENSATED)
    )
    return [*found, Case("compensated", compensated, kernel="lookback")]


CASES = cases()


def memory_of(case: Case) -> tuple[NDArray[np.uint8], NDArray[np.uint8] | None]:
    """Return elements whose results are ordinary and change every element of the output, and what it held before."""
    problem = case.problem
    sizes = [sum((d.size - 1) * abs(d.input_stride) for d in (*problem.batch, problem.axis)) + 256]
    source = np.full(sizes, 2, problem.source.dtype)
    if isinstance(problem, ScanProblem):
        if problem.operator is Operator.PRODUCT:
            source[:] = 1
        else:
            source[first_of_slices(problem)] = 1  # sums are odd
    else:
        source[:] = 1
    if case.one_buffer:
        return source.view(np.uint8), None
    nbytes = (sum((d.size - 1) * abs(d.output_stride) for d in (*problem.batch, problem.axis)) + 256) * 8
    return source.view(np.uint8), np.full(nbytes, 0xAA, np.uint8)


def first_of_slices(problem: ScanProblem) -> NDArray[np.int64]:
    places = np.array([problem.input_offset])
    for dimension in problem.batch:
        places = np.add.outer(places, np.arange(dimension.size) * dimension.input_stride).ravel()
    return places


def tensor_bytes(accesses: Iterable[Access], kind: str, in_bands: bool) -> int:
    """Return the bytes of tensors that workgroups read or write; what one accesses again at once is in its cache."""
    clocks: dict[tuple[int, int], int] = defaultdict(int)
    last: dict[tuple[int, str, int], int] = {}
    found = 0
    for access in accesses:
        if not access.site.name:
            continue
        who = (access.workgroup, access.lane)
        # By what is loaded: a lane of a band without columns stores nothing, and loads what its neighbour does.
        clocks[who] += not in_bands or access.site.name.startswith("input")
        if access.site.name == "state" or not getattr(access.site, kind):
            continue
        for word in range(access.place, access.place + access.site.unit, 4):
            key = (access.workgroup, access.site.name, word)
            if key not in last or clocks[who] - last[key] > AT_ONCE:
                found += 4
            last[key] = clocks[who]
    return found


def state_bytes(accesses: Iterable[Access], kind: str) -> int:
    """Return the bytes of scratch memory: each word once a workgroup."""
    return 4 * len({(a.workgroup, a.place) for a in accesses if a.site.name == "state" and getattr(a.site, kind)})


def sectors(one: Pass, accesses: Iterable[Access], tensor: str, kind: str) -> float:
    """Return the sectors an access of the first subgroup, by the mean."""
    part = one.output if tensor == "output" else one.input
    assert part is not None
    times: dict[tuple[int, int], int] = defaultdict(int)
    found: dict[tuple[int, int], set[int]] = defaultdict(set)
    for access in accesses:
        site = access.site
        if access.workgroup or access.lane >= SUBGROUP or not site.name.startswith(tensor) or not getattr(site, kind):
            continue
        number = times[access.lane, site.number] = times[access.lane, site.number] + 1
        found[site.number, number].add((part.offset + access.place) // SECTOR_BYTES)
    return sum(map(len, found.values())) / len(found)


def lane_bytes(one: Pass, accesses: Iterable[Access]) -> dict[tuple[int, int], int]:
    """Return the most bytes of the input that each invocation loads before it uses any, or stores."""
    slots, itemsize = dict(one.pipeline.slots), 1 << dict(one.pipeline.constants)["input_log2_bits"] >> 3
    by_element = slots["output"] != "quads" and not slots.keys() & {"vector", "fours", "cells"}
    by_element |= slots.get("cells", "").startswith("staged")
    loaded: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    most: dict[tuple[int, int], int] = defaultdict(int)
    for access in accesses:
        who = (access.workgroup, access.lane)
        if access.site.name.startswith("input"):
            at = len(loaded[who]) if by_element and itemsize < 4 else access.place  # elements share words
            loaded[who][at] = min(access.site.unit, itemsize) if by_element else access.site.unit
        elif not access.site.name or (access.site.name.startswith("output") and access.site.writes):
            loaded[who] = {}
        most[who] = max(most[who], sum(loaded[who].values()))
    return most


def elements_of_an_invocation(one: Pass, accesses: Iterable[Access]) -> int:
    """Return the most elements of the input that an invocation loads; adjacent slices taken together are one."""
    loaded: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    for access in accesses:
        if access.site.name.startswith("input"):
            loaded[access.workgroup, access.lane][access.place] = access.site.unit
    constants = dict(one.pipeline.constants)
    itemsize = 1 << constants["input_log2_bits"] >> 3
    across = 4 if "fours" in dict(one.pipeline.slots) else 16 // itemsize
    together = constants["vectors"] * across if "vectors" in constants else 1
    return max(sum(places.values()) for places in loaded.values()) // (itemsize * together)


def never_given_up(shader: str) -> str:
    """Return a shader without the looks at whether others have given up, which depend on how long it waits."""
    return shader.replace("return state_word(left_word(slice)) == GIVEN_UP;", "return false;")


@pytest.mark.combinations
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.way)
def test_shaders_access_what_the_ledger_says(case: Case, device: Device) -> None:
    # What the device lacks, or would compile for a minute, it need not show.
    asked, able = case.limits, device.limits
    limits = changed(
        asked,
        float64=asked.float64 & able.float64,
        columns=asked.traits.columns & able.traits.columns,
        lags=able.traits.lags,
    )
    plan = plan_problem(case.problem, limits, one_buffer=case.one_buffer, kernel=case.kernel, chunks=case.chunks)
    for one, accesses in record(device, with_patience(plan, 2**31), *memory_of(case), alter=never_given_up):
        figures, kernel = figures_of(one), one.pipeline.kernel
        assert max(access.lane for access in accesses) < figures.lanes, kernel
        in_bands = "vectors" in dict(one.pipeline.constants)
        measured = {
            "read": tensor_bytes(accesses, "reads", in_bands) + state_bytes(accesses, "reads"),
            "written": tensor_bytes(accesses, "writes", in_bands) + state_bytes(accesses, "writes"),
        }
        assert measured == {"read": figures.bytes_read, "written": figures.bytes_written}, kernel
        if case.sectors and not case.one_buffer:
            for tensor, kind, said in (
                ("input", "reads", figures.read_sectors),
                ("output", "writes", figures.write_sectors),
            ):
                if said is not None:
                    assert sectors(one, accesses, tensor, kind) == said.touched, (kernel, tensor)
        if one.input is not None and figures.read_sectors is not None and case.problem.source.itemsize >= 4:
            assert elements_of_an_invocation(one, accesses) <= figures.serial_links, kernel
        if case.sectors and one.input is not None and figures.read_sectors is not None:
            of_lanes = lane_bytes(one, accesses)
            of_workgroups: dict[int, int] = defaultdict(int)
            for (workgroup, _), nbytes in of_lanes.items():
                of_workgroups[workgroup] += nbytes
            assert max(of_lanes.values()) == figures.lane_bytes, kernel
            assert figures.workgroup_bytes <= max(of_workgroups.values()), kernel


def test_every_kernel_of_a_plan_is_recorded() -> None:
    plans = [
        plan_problem(case.problem, case.limits, one_buffer=case.one_buffer, kernel=case.kernel, chunks=case.chunks)
        for case in CASES
    ]
    recorded = {one.pipeline.kernel for plan in plans for one in plan.passes}
    assert recorded == TABLE.keys()


WRONG = {
    "writes": lambda row: replace(row, writes=lambda w: 2),
    "words": lambda row: replace(row, words=lambda w: tuple(n + 1 for n in row.words(w))),
    "lanes": lambda row: replace(row, lanes=lambda w: 1),
    "starts": lambda row: replace(row, starts=lambda w: ((number, 2 * first) for number, first in row.starts(w))),
    "ahead": lambda row: replace(row, ahead=lambda w: row.ahead(w) + 1),
    "links": lambda row: replace(row, links=lambda w: 16),
}


@pytest.mark.parametrize("part", WRONG)
def test_a_wrong_row_is_found(part: str, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    (case,) = [case for case in CASES if case.way == "float32 rows"]
    row = ledger._ROWS["scan_rows"]
    monkeypatch.setitem(ledger._ROWS, "scan_rows", WRONG[part](row))  # type: ignore[arg-type]
    ledger._sectors_of.cache_clear()
    with pytest.raises(AssertionError):
        test_shaders_access_what_the_ledger_says(case, device)
    ledger._sectors_of.cache_clear()
