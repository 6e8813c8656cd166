"""No two invocations meet in a word of scratch memory without a barrier that orders what they do. See recording.py.

A barrier of a workgroup orders its own memory alone; only `storageBarrier` orders what is in storage. Software drivers
run the invocations of a workgroup one after the other, so that results do not show whether one is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from dmlgpu.dtypes import by_name
from dmlgpu.layout import Layout
from dmlgpu.planning.dispatch import Plan
from dmlgpu.planning.problem import Operator, ScanOptions, scan_problem
from dmlgpu.planning.scan import ScanPlanner
from dmlgpu.planning.windows import TILE
from dmlgpu.runtime.device import Device

from .harness import changed
from .recording import Access, noting, record
from .test_ledger import FAR, GPU, SOFTWARE

_MEET = {"atomicOr", "atomicXor", "atomicAdd", "atomicMin", "atomicMax"}
"""Functions whose order among themselves is of no effect."""


class Race(NamedTuple):
    """Two invocations that do something to the same word in no order."""

    one: str | None
    other: str | None


def races(accesses: Iterable[Access]) -> Iterator[Race]:
    """Yield pairs of a write and a later read or write of the same word of `state`, by others, without a barrier.

    What is written by `atomicExchange` and polled is a message: the word itself says whether it is there.
    """
    written: dict[int, list[Access]] = {}
    for access in accesses:
        if access.site.name != "state":
            continue
        how = access.site.how
        for before in written.get(access.place, []):
            first = before.site.how
            is_same = (before.workgroup, before.lane) == (access.workgroup, access.lane)
            is_ordered = before.workgroup == access.workgroup and before.barriers < access.barriers
            is_message = how == "poll" and first in {"atomicExchange", *_MEET}
            if not (is_same or is_ordered or is_message or (how == first and how in _MEET)):
                yield Race(first, how)
        if how not in (None, "poll", "atomicLoad"):
            written.setdefault(access.place, []).append(access)


SHAPES = {
    "rows": (3, 5 * TILE + 100),
    "lookback": (3, 5 * TILE + 100),
    "withheld": (3, 5 * TILE + 100),
    "serial": (3, 5 * TILE + 100),
    "slices": (70, 2 * TILE + 40),
    "strips": (2 * TILE + 40, 80),
    "strip_tiles": (3 * TILE + 40, 24),
    "bands": (2 * TILE + 40, 1024),
}
"""Of a scan for each way; "withheld" is a look-back some of whose workgroups keep what they have to themselves."""
FIRST = {"withheld": "scan_lookback"}
DATA = ("ordinary", "absorbing", "exceptional")


def elements(family: str, dtype: str, shape: tuple[int, ...], axis: int) -> NDArray[Any]:
    """Return ones, among which those of some slices bring NaN or overflow into a tile in the middle."""
    x = np.ones(shape, dtype)
    along = np.moveaxis(x, axis, -1)
    if x.dtype.kind == "f" and family == "absorbing":
        along[::2, TILE + 7] = np.nan
    if x.dtype.kind == "f" and family == "exceptional":  # in the canonical order, and not in a loop
        along[::2, TILE : TILE + 64] = np.tile(np.array([1.5, -1.5]) * 2.0**127, 32).astype(dtype)
    return x


@pytest.mark.combinations
@pytest.mark.parametrize("in_windows", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize(("dtype", "family"), [*(("float32", family) for family in DATA), ("uint8", "ordinary")])
@pytest.mark.parametrize("way", SHAPES)
def test_accesses_are_ordered(
    way: str, dtype: str, family: str, exclusive: bool, in_windows: bool, device: Device
) -> None:
    shape = SHAPES[way]
    axis = int(shape[0] < shape[1])
    limits = {"serial": SOFTWARE, "bands": changed(FAR, columns=device.limits.traits.columns)}.get(way, GPU)
    x, layout = elements(family, dtype, shape, axis), Layout.packed(shape)
    problem = scan_problem(by_name(dtype), Operator.SUM, layout, layout, axis, ScanOptions(exclusive=exclusive))
    slices = (dimension.size for dimension in problem.batch)
    planner = ScanPlanner(problem, limits, chunks=(*slices, 2 * TILE) if in_windows else None)
    kernel = {"bands": "slices", "withheld": "lookback"}.get(way, way)
    plan = Plan.of(planner.passes(kernel, withhold_every=2 if way == "withheld" else 0))
    assert any(one.pipeline.kernel.startswith(FIRST.get(way, f"scan_{way}")) for one in plan.passes)
    memory = x.reshape(-1).view(np.uint8), np.zeros(x.nbytes, np.uint8)
    for one, accesses in record(device, plan, *memory, tensors=False):
        assert not set(races(accesses)), one.pipeline.kernel


@pytest.mark.parametrize(
    ("between", "is_race"), [("", True), ("workgroupBarrier();", True), ("storageBarrier();", False)]
)
@pytest.mark.parametrize("then", ["state[0] = 2u;", "_ = state[0];"])
def test_a_race_is_found(between: str, is_race: bool, then: str) -> None:
    """In a shader of two invocations."""
    first = "state[0] = 1u;"
    code, sites = noting(
        "@group(0) @binding(3) var<storage, read_write> state: array<u32>;\n"
        "@compute @workgroup_size(2)\n"
        "fn main(@builtin(local_invocation_index) lane: u32) {\n"
        f"if (lane == 0u) {{ {first} }} {between} if (lane == 1u) {{ {then} }} }}"
    )
    assert ("noted_barriers += 1u" in code) != is_race
    one, other = (site for site in sites if site.name)
    barriers = int(not is_race)
    found = list(races([Access(one, 0, 0, 0, 0), Access(other, 0, 1, barriers, 0)]))
    assert bool(found) == is_race
