"""No two invocations meet in a word of memory without a barrier that orders what they do. See recording.py.

A barrier of a workgroup orders its own memory alone; only `storageBarrier` orders what is in storage. Software drivers
run the invocations of a workgroup one after the other, so that results do not show whether one is missing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from dmlgpu import shaders
from dmlgpu.dtypes import by_name
from dmlgpu.layout import Layout
from dmlgpu.planning.dispatch import Plan
from dmlgpu.planning.problem import Operator, ScanOptions, scan_problem
from dmlgpu.planning.scan import ScanPlanner
from dmlgpu.planning.windows import RUN, TILE
from dmlgpu.runtime.device import Device

from .harness import changed, with_patience
from .noting import noting
from .recording import Access, Notes, record, record_shared
from .test_ledger import FAR, GPU, SOFTWARE

_MEET = {"atomicOr", "atomicXor", "atomicAdd", "atomicMin", "atomicMax"}
"""Functions whose order among themselves is of no effect."""
_READ = {None, "poll", "atomicLoad"}
"""Those that change nothing; None is a plain read."""


class Race(NamedTuple):
    """Two invocations that do something to the same word in no order."""

    one: str | None
    other: str | None


def races(accesses: Iterable[Access]) -> Iterator[Race]:
    """Yield pairs of accesses to the same word of `state`, by others and in no order, of which one is a write.

    A barrier orders what is written behind it. What is read behind it may be old all the same, if not by an atomic
    function: wgpu makes no memory coherent, and an invocation may read from a cache of its own. What is written by
    `atomicExchange` and polled is a message: the word itself says whether it is there.
    """
    earlier: dict[int, list[Access]] = {}
    for access in accesses:
        if access.site.name != "state":
            continue
        how, reads = access.site.how, access.site.how in _READ
        for before in earlier.get(access.place, []):
            first = before.site.how
            is_same = (before.workgroup, before.lane) == (access.workgroup, access.lane)
            is_behind = before.workgroup == access.workgroup and before.barriers < access.barriers
            is_ordered = is_behind and (how is not None or first in _READ)
            is_message = {how, first} <= {"poll", "atomicExchange", *_MEET} and "poll" in (how, first)
            is_harmless = (reads and first in _READ) or (how == first and how in _MEET)
            if not (is_same or is_ordered or is_message or is_harmless):
                yield Race(first, how)
        earlier.setdefault(access.place, []).append(access)


SHAPES = {
    "rows": (3, 5 * TILE + 100),
    "lookback": (1, 35 * TILE + 100),  # of more than two spans
    "reduce_then_scan": (3, 18 * TILE + 100),
    "withheld": (3, 18 * TILE + 100),  # of more than one span, whose total some keep
    "serial": (3, 35 * TILE + 100),
    "slices": (70, 2 * TILE + 40),
    "strips": (2 * TILE + 40, 80),
    "strip_lookback": (3 * TILE + 40, 24),
    "staged": (TILE + 40, 3),
    "whole_tiles": (TILE + 40, 2),  # of floats that are parts of strips
    "withheld_strips": (8 * TILE + 40, 4),  # of integers, more than two spans, the first of which has no total
    "bands": (2 * TILE + 40, 1024),
    "blocks": (50, 90),
    "long_blocks": (5, 600),
    "elements": (129, 513),  # one by one, of blocks
    "short": (300, 9),
    "unaligned": (2 * TILE + 40, 83),
}
"""Of a scan for each way; "withheld" is a look-back some of whose workgroups keep what they have to themselves."""
OF_BLOCKS = ("blocks", "long_blocks", "elements", "short")
"""The ways of which scan_blocks is the kernel."""
WITHHELD = {"withheld": 2, "withheld_strips": 1000}
"""Of how many workgroups about one does that; the first always does."""
FIRST = {
    "reduce_then_scan": "scan_lookback",
    "withheld": "scan_lookback",
    "withheld_strips": "scan_strip_lookback",
    "staged": "scan_strips",
    "whole_tiles": "scan_strip_lookback",
    "short": "scan_blocks",
    "long_blocks": "scan_blocks",
    "elements": "scan_blocks",
    "unaligned": "scan_strips",
}
KERNELS = {
    "bands": "slices",
    "withheld": "lookback",
    "withheld_strips": "strip_lookback",
    "staged": "strips",
    "whole_tiles": "strip_lookback",
    "unaligned": "strips",
    **dict.fromkeys(OF_BLOCKS),
}
"""What to ask the planner for."""
SHARED_ONLY = ("withheld_strips", "staged", *OF_BLOCKS, "unaligned")
"""The ways without scratch memory, or whose use of it is that of others."""
DATA = ("ordinary", "absorbing", "exceptional")


def axis_of(way: str) -> int:
    """Return the axis of a way's scan: the last one, or the longest."""
    return 1 if way in OF_BLOCKS else int(np.argmax(SHAPES[way]))


def elements(family: str, dtype: str, shape: tuple[int, ...], axis: int) -> NDArray[Any]:
    """Return ones, among which those of some slices bring NaN or overflow into a tile in the middle.

    "recovering" ones overflow in a run, of sums and of products, and nowhere in a loop.
    """
    x = np.ones(shape, dtype)
    along = np.moveaxis(x, axis, -1)
    begin = TILE if along.shape[-1] > TILE else 0
    if x.dtype.kind == "f" and family == "absorbing":
        along[::2, ..., begin + 7] = np.nan
    if x.dtype.kind == "f" and family == "exceptional":  # in the canonical order, and not in a loop
        some = along[::2, ..., begin : begin + 64]
        some[...] = np.tile(np.array([1.5, -1.5]) * 2.0**127, 32)[: some.shape[-1]].astype(dtype)
    if family == "recovering":
        top, least = 2.0**127, 2.0**-126
        along[::2, ..., RUN : RUN + 3] = -top, least, 2.0**-11
        along[::2, ..., 2 * RUN : 2 * RUN + 3] = top, least, top
    return x


def plan_of(
    way: str, dtype: str, operator: Operator, options: ScanOptions, device: Device, *, windows: bool = False
) -> Plan:
    """Return the plan of a way, where it is asked for in windows of two tiles."""
    shape = SHAPES[way]
    limits = {"serial": SOFTWARE, "bands": changed(FAR, columns=device.limits.traits.columns)}.get(way, GPU)
    layout = Layout.packed(shape)
    problem = scan_problem(by_name(dtype), operator, layout, layout, axis_of(way), options)
    slices = (dimension.size for dimension in problem.batch)
    planner = ScanPlanner(problem, limits, chunks=(*slices, 2 * TILE) if windows else None)
    kernel = KERNELS.get(way, way)
    plan = Plan.of(planner.passes(kernel, withhold_every=WITHHELD.get(way, 0)))
    assert any(one.pipeline.kernel.startswith(FIRST.get(way, f"scan_{way}")) for one in plan.passes)
    return with_patience(plan, 4 if way == "withheld_strips" else 20)  # each look is noted


def memory_of(way: str, dtype: str, family: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the bytes of input and output, in whole words."""
    x = elements(family, dtype, SHAPES[way], axis_of(way)).reshape(-1).view(np.uint8)
    return np.pad(x, (0, -x.size % 4)), np.zeros(x.size + -x.size % 4, np.uint8)


@pytest.mark.combinations
@pytest.mark.parametrize("in_windows", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize(("dtype", "family"), [*(("float32", family) for family in DATA), ("uint8", "ordinary")])
@pytest.mark.parametrize("way", [way for way in SHAPES if way not in SHARED_ONLY])
def test_accesses_are_ordered(
    way: str, dtype: str, family: str, exclusive: bool, in_windows: bool, device: Device
) -> None:
    plan = plan_of(way, dtype, Operator.SUM, ScanOptions(exclusive=exclusive), device, windows=in_windows)
    for one, accesses in record(device, plan, *memory_of(way, dtype, family), tensors=False):
        found = list(accesses)
        assert not set(races(found)), one.pipeline.kernel
        places = [access.place for access in found if access.site.name == "state"]
        assert max(places, default=0) < one.state_bytes, one.pipeline.kernel


def meetings(notes: Notes) -> set[str]:
    """Return variables of a workgroup of which two invocations access the same element between the same barriers.

    Not if all of them read it, or all do the same by an atomic function, where their order is of no effect.
    """
    names = sorted({site.name for site in notes.sites})
    variables = np.array([names.index(site.name) for site in notes.sites])[notes.numbers]
    hows = ["", *sorted({site.how for site in notes.sites if not site.is_load}), "="]  # the last one is that of a store
    kinds = np.array([0 if site.is_load else hows.index(site.how) for site in notes.sites])[notes.numbers]
    order = np.lexsort((notes.indices, variables, notes.barriers, notes.workgroups))
    where = np.stack([notes.workgroups, notes.barriers, variables, notes.indices], 1)[order]
    begins = np.flatnonzero(np.append(len(where) > 0, (where[1:] != where[:-1]).any(axis=1)))
    if not begins.size:
        return set()
    lanes, kinds = notes.lanes[order], kinds[order]
    several = np.minimum.reduceat(lanes, begins) != np.maximum.reduceat(lanes, begins)
    least, most = np.minimum.reduceat(kinds, begins), np.maximum.reduceat(kinds, begins)
    return {names[where[at, 2]] for at in begins[several & ((least < most) | (most == len(hows) - 1))]}


def used(notes: Notes, way: str) -> Notes:
    """Return notes without those of what is read of other slices in scan_blocks.

    An invocation reads whole runs. Behind its slice's end others may have stored, and it uses nothing of that.
    """
    if way not in OF_BLOCKS:
        return notes
    length = SHAPES[way][1]
    word = notes.indices ^ ((notes.indices >> 5) & 31)  # as on_stage has it
    of_stage = np.array([site.name == "stage" and site.is_load for site in notes.sites])[notes.numbers]
    of_others = word // length != notes.lanes // ((length - 1) // RUN + 1)
    between = (notes.barriers > 0) & (notes.barriers < notes.barriers.max())  # the stage is filled and emptied by all
    kept = ~(of_stage & of_others & between)
    return Notes(notes.sites, *(part[kept] for part in notes[1:]))


_WITH_STATE = (
    *("rows", "serial", "withheld", "lookback", "strips", "withheld_strips", "whole_tiles", "strip_lookback"),
    "reduce_then_scan",
)
SHARED = tuple(dict.fromkeys((*_WITH_STATE, *SHARED_ONLY)))
"""The ways whose kernels have memory of workgroups."""
KINDS = [
    *(("float32", family) for family in (*DATA, "recovering")),
    ("uint8", "ordinary"),
    ("float16", "ordinary"),
    ("int64", "ordinary"),
]


def fits(way: str, dtype: str, family: str) -> bool:
    """Whether a plan takes a way for a type: rows begin inside words of narrow ones, and blocks are of wide ones.

    Spans of strips are shorter of integers, and staged rows of 64 bits have a piece of their own. Recovering slices are
    for what goes on by classes inside a workgroup.
    """
    if way == "withheld_strips" or dtype == "int64":
        return dtype == "int64" and way in ("withheld_strips", "staged")
    if way in ("whole_tiles", "reduce_then_scan"):  # integers look back
        return dtype == "float32" and family in DATA
    if family == "recovering" and (way not in OF_BLOCKS or SHAPES[way][1] < 3 * RUN):
        return False
    return (way != "unaligned" or dtype != "float32") and (way not in OF_BLOCKS or dtype == "float32")


@pytest.mark.combinations
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("operator", [Operator.SUM, Operator.PRODUCT])
@pytest.mark.parametrize(
    ("way", "dtype", "family"),
    [(way, *kind) for way, kind in product(SHARED, KINDS) if fits(way, *kind)],
)
def test_accesses_to_memory_of_workgroups_are_ordered(
    way: str, dtype: str, family: str, operator: Operator, exclusive: bool, device: Device
) -> None:
    plan = plan_of(way, dtype, operator, ScanOptions(exclusive=exclusive), device)
    for one, notes in record_shared(device, plan, *memory_of(way, dtype, family)):
        assert not meetings(used(notes, way)), one.pipeline.kernel


class Barrier(NamedTuple):
    """A barrier of a shader: its kind, its file, and its number among those of its kind there, from 1 on."""

    kind: str
    file: str
    number: int


def barriers() -> Iterator[Barrier]:
    """Yield the barriers of all shaders, but for those that kernels begin with, for which test_shaders.py asks."""
    for file, (kind, pattern) in product(sorted(shaders.folder().rglob("*.wgsl")), _BARRIERS.items()):
        text = file.read_text(encoding="utf-8")
        for number, match in enumerate(pattern.finditer(text), 1):
            if not _BEGIN.search(text[: match.end()]):
                yield Barrier(kind, file.relative_to(shaders.folder()).as_posix(), number)


_BEGIN = re.compile(r"^fn main\([^{]*\{\n *workgroupBarrier\(\);\Z", re.MULTILINE)
_BARRIERS = {kind: re.compile(rf"^ *{kind}Barrier\(\);", re.MULTILINE) for kind in ("workgroup", "storage")}
NOT_NEEDED = {
    Barrier("workgroup", *place): why
    for place, why in {
        ("scan_repair.wgsl", 1): "all types here put tiles with barriers; float64 on words has none there",
        ("scan_tiles.wgsl", 6): "the next tile's first steps use none of what the last steps of the one before it use",
    }.items()
}
"""Barriers without which nothing meets, and why they are there."""


def without(barrier: Barrier, source: str, lines: Sequence[shaders.Line]) -> str:
    """Return a resolved shader without a barrier, where it has that."""
    text = (shaders.folder() / barrier.file).read_text(encoding="utf-8")
    places = [text.count("\n", 0, match.end()) + 1 for match in _BARRIERS[barrier.kind].finditer(text)]
    wanted = shaders.Line(barrier.file, places[barrier.number - 1])
    of_source = source.split("\n")
    return "\n".join("" if i < len(lines) and lines[i] == wanted else of_source[i] for i in range(len(of_source)))


@pytest.mark.combinations
@pytest.mark.parametrize("barrier", [*barriers()], ids=lambda one: f"{one.kind}-{one.file}-{one.number}")
def test_a_barrier_that_is_left_out_is_found(barrier: Barrier, device: Device) -> None:
    assert is_found_without(barrier, device) != (barrier in NOT_NEEDED)


def test_barriers_that_are_not_needed_are_there() -> None:
    assert set(NOT_NEEDED) <= set(barriers())


def is_found_without(barrier: Barrier, device: Device) -> bool:
    """Whether two invocations of some way meet without a barrier."""
    is_shared = barrier.kind == "workgroup"
    operators = (Operator.SUM, Operator.PRODUCT) if is_shared else (Operator.SUM,)
    ways = SHARED if is_shared else ("withheld", "strips", "serial")  # they have all storage barriers
    for way, (dtype, family), operator, windows in product(ways, KINDS, operators, (False, True)):
        if not fits(way, dtype, family) or (windows and way in SHARED_ONLY):
            continue
        plan = plan_of(way, dtype, operator, ScanOptions(exclusive=True), device, windows=windows)
        resolved = [shaders.resolve(one.pipeline.kernel, dict(one.pipeline.slots)) for one in plan.passes]
        changes = {one.source: without(barrier, one.source, one.lines) for one in resolved}
        if all(source == text for source, text in changes.items()):
            continue
        memory, alter = memory_of(way, dtype, family), changes.__getitem__
        if is_shared:
            is_found = any(meetings(used(notes, way)) for _, notes in record_shared(device, plan, *memory, alter))
        else:
            recorded = record(device, plan, *memory, alter, tensors=False)
            is_found = any(next(races(accesses), None) for _, accesses in recorded)
        if is_found:
            return True
    return False


@pytest.mark.parametrize("between", ["", "workgroupBarrier();", "storageBarrier();"])
@pytest.mark.parametrize("first", ["state[0] = 1u;", "_ = state[0];"])
@pytest.mark.parametrize("then", ["state[0] = 2u;", "_ = state[0];"])
def test_a_race_is_found(first: str, between: str, then: str) -> None:
    """In a shader of two invocations."""
    is_ordered = between == "storageBarrier();"
    code, sites = noting(
        "@group(0) @binding(3) var<storage, read_write> state: array<u32>;\n"
        "@compute @workgroup_size(2)\n"
        "fn main(@builtin(local_invocation_index) lane: u32) {\n"
        f"if (lane == 0u) {{ {first} }} {between} if (lane == 1u) {{ {then} }} }}"
    )
    assert ("noted_barriers += 1u" in code) == is_ordered
    one, other = (site for site in sites if site.name)
    found = list(races([Access(one, 0, 0, 0, 0), Access(other, 0, 1, int(is_ordered), 0)]))
    writes, writes_then = "1u" in first, "2u" in then
    assert bool(found) == (not is_ordered if writes_then else writes)


@pytest.mark.parametrize(("dtype", "exclusive"), [("uint8", False), ("float32", False), ("float32", True)])
def test_nobody_in_a_strip_waits_long_once_a_part_has_given_up(dtype: str, exclusive: bool, device: Device) -> None:
    """The first workgroup keeps to itself what all others need."""
    patience, length = 500, 64 * TILE
    layout = Layout((length, 4), (8, 1))  # with gaps, so that rows are not staged
    options = ScanOptions(exclusive=exclusive)
    problem = scan_problem(by_name(dtype), Operator.SUM, layout, layout, 0, options)
    plan = Plan.of(ScanPlanner(problem, GPU, chunks=(4, length)).passes("strip_lookback", withhold_every=1000))
    memory = np.zeros(8 * length * np.dtype(dtype).itemsize, np.uint8)
    (one, accesses), *_ = islice(record(device, with_patience(plan, patience), memory, memory, tensors=False), 1, 2)
    assert one.pipeline.kernel == "scan_strip_lookback"
    looks = np.zeros(math.prod(one.grid), int)
    for access in accesses:
        looks[access.workgroup] += access.site.how == "poll"
    assert looks.size >= 256
    assert looks.max() > patience  # as those that run at the same time as the first one
    assert np.median(looks) < patience
