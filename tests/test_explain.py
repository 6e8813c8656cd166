"""``dmlgpu.explain``: what is said of a plan follows from the plan, and odd arguments are refused."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dmlgpu
from dmlgpu.errors import ArgumentError, ArrayTypeError, AxisError
from dmlgpu.planning.explain import explain_problem
from dmlgpu.planning.plan import plan_problem
from dmlgpu.planning.policy import GpuPolicy
from dmlgpu.planning.problem import OPERATORS, ScanOptions, problem_of
from dmlgpu.planning.profiles import PROFILES
from dmlgpu.runtime.device import Device

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("operator", OPERATORS)
def test_passes_are_those_of_the_plan(operator: str, profile: str) -> None:
    for shape in ((2**24,), (4096, 4096), (100, 7)):
        axis = None if operator == "round" or len(shape) == 1 else 0
        problem, sizes, _ = problem_of(operator, shape, axis=axis)
        plan = plan_problem(problem, PROFILES[profile].limits)
        found = dmlgpu.explain(operator, shape, axis=axis, profile=profile)
        assert sizes == found.shape == shape
        assert [one.kernel for one in found.passes] == [one.pipeline.kernel for one in plan.passes]
        assert [one.workgroups for one in found.passes] == [one.grid[0] * one.grid[1] for one in plan.passes]
        assert all(one.invocations == one.workgroups * one.lanes and one.why for one in found.passes)


def test_sums_follow_from_the_passes() -> None:
    found = dmlgpu.explain("cumsum", 2**24, profile="h200")
    moved = sum(one.bytes_read + one.bytes_written for one in found.passes[1:])
    assert found.traffic == moved / (2 * 4 * 2**24)
    assert 1.005 <= found.traffic < 1.01, "some 200 bytes a tile besides its elements"
    assert [one.first_time_only for one in found.passes] == [True, False, False, False]
    assert found.dispatches == 3
    assert found.serial_links == sum(one.serial_links for one in found.passes[1:])


def test_a_single_pass_over_whole_vectors() -> None:
    found = dmlgpu.explain("cumsum", (4096, 4096), axis=1, profile="h200")
    (one,) = found.passes
    assert (one.kernel, one.workgroups, one.lanes, one.invocations) == ("scan_rows", 4096, 256, 2**20)
    assert (one.bytes_read, one.bytes_written, found.traffic) == (2**26, 2**26, 1.0)
    # 16 bytes a lane beside those of the next one: a sector for two.
    assert (one.read_sectors, one.least_read_sectors, found.sectors) == (16, 16, 1.0)
    # 2048 invocations on each of 132 processors, with a run of 64 bytes.
    assert one.bytes_in_flight == 132 * 2048 * 64
    assert found.processor_bytes == 2048 * 64
    assert found.wanted_bytes == pytest.approx(25_454, abs=1)


def test_small_elements_down_the_rows_go_in_words_and_need_atomics_at_the_ends_of_rows() -> None:
    def traffic(*shape: int) -> float:
        return dmlgpu.explain("cumsum", shape, axis=-2, dtype="uint8", profile="h200").traffic

    assert traffic(4096, 16_384) == 1.0
    assert dmlgpu.explain("cumsum", (4096, 16_384), axis=0, dtype="uint8", profile="h200").sectors == 1.0
    assert 1.09 < traffic(4096, 16_383) < 1.1
    assert traffic(600, 4096, 3) == 1.0  # rows of less than a sector, which are staged
    assert traffic(600, 500, 3) == 1.5  # too short for that


def test_why_is_what_the_policy_says() -> None:
    problem, _, _ = problem_of("cumsum", (300, 5000), axis=1)
    limits = PROFILES["h200"].limits
    choice = GpuPolicy(limits).kernel(problem, False)  # type: ignore[arg-type]
    assert "300 slices" in choice.why
    assert explain_problem(problem, limits)[0].why == choice.why


def test_slices_that_are_read_twice() -> None:
    """Every pass says what it does there, and the chain is that of what tiles begin with."""
    limits = PROFILES["h200"].limits
    problem, _, _ = problem_of("cumsum", (2**24,))
    found = explain_problem(problem, replace(limits, tuning=replace(limits.tuning, lookback_elements=0)))
    assert [one.purpose for one in found] == [
        "Works out the totals of all tiles, and leaves these to the passes behind",
        "Works out what tiles begin with, and scans those that may be exceptional",
        "Scans all tiles, but those that scan_repair has written",
    ]
    assert [one.serial_links for one in found] == [32, 2 * 16 + 256, 32]
    moved = sum(one.bytes_read + one.bytes_written for one in found)
    assert 1.5 < moved / (2 * 4 * 2**24) < 1.51
    assert "works out totals alone" in found[0].why


def test_in_place_may_take_other_kernels(device: Device) -> None:
    apart, in_place = (dmlgpu.explain("cumsum", 2**20, in_place=which, device=device) for which in (False, True))
    assert in_place.device == apart.device == device.summary
    problem, _, _ = problem_of("cumsum", 2**20)
    plan = plan_problem(problem, device.limits, one_buffer=True)
    assert [one.kernel for one in in_place.passes] == [one.pipeline.kernel for one in plan.passes]


def test_a_monotone_sum_has_the_passes_of_its_maximum_too(device: Device) -> None:
    problem, _, _ = problem_of("cumsum", (300, 5000), axis=1, options=ScanOptions(exclusive=True, monotone=True))
    plan = plan_problem(problem, device.limits)
    sums = dmlgpu.explain("cumsum", (300, 5000), axis=1, device=device)
    found = dmlgpu.explain("cumsum", (300, 5000), axis=1, exclusive=True, monotone=True, device=device)
    assert [one.kernel for one in found.passes] == [one.pipeline.kernel for one in plan.passes]
    assert found.passes[: len(sums.passes)] == sums.passes
    assert found.copy_bytes == sums.copy_bytes
    assert found.traffic >= sums.traffic + 1, "the maximum reads and writes every result once more"
    maxima = found.passes[len(sums.passes) :]
    assert all(one.purpose.startswith("The running maximum of these sums: ") for one in maxima)
    assert str(found).count("does       The running maximum of these sums") == len({one.kernel for one in maxima})


def test_as_dict_is_for_json() -> None:
    found = dmlgpu.explain("cumprod", (3, 5), axis=-1, dtype="int64", profile="webgpu-defaults")
    read = json.loads(json.dumps(found.as_dict()))
    assert read["axis"] == 1
    assert read["shape"] == [3, 5]
    assert read["traffic"] == found.traffic
    assert read["passes"][0]["bytes_read"] == 3 * 5 * 8
    assert (read["processor_bytes"], read["wanted_bytes"]) == (None, None), "not known of any GPU"


def test_text_says_every_pass_and_the_sums() -> None:
    text = str(dmlgpu.explain("cumsum", 2**24, profile="h200"))
    for words in (
        "1. scan_tiles, the first time only",
        "2. scan_lookback",
        "3. scan_repair",
        "4. scan_tiles",
        "traffic       1.007",
        "dispatches    3, and 1 the first time",
        "132 processors",
    ):
        assert words in text
    assert max(map(len, text.splitlines())) <= 90
    small = str(dmlgpu.explain("round", 1, dtype="float16", profile="rdna3"))
    assert "1 sector of 32 bytes an access, 1 at least" in small
    small = str(dmlgpu.explain("cumsum", 1, dtype="uint8", profile="rdna3"))
    assert ", 1 byte written" in small


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"operator": "sum"}, ArgumentError, "operator is 'sum'; it is one of 'cumsum', 'cumprod', 'round'"),
        ({"profile": "h201"}, ArgumentError, "profile is 'h201'; it is one of 'h200', 'rdna3'"),
        ({"profile": 1}, ArrayTypeError, "profile is 1"),
        ({"dtype": "complex64"}, ArrayTypeError, "dtype is complex64, which has no element type"),
        ({"dtype": "bool"}, ArgumentError, "dtype is bool, which scans convert to int64"),
        ({"shape": (3, 0)}, ArgumentError, "give sizes of 1 or more"),
        ({"shape": ()}, ArgumentError, "shape is (), which has no axis to scan along"),
        ({"shape": "33"}, ArrayTypeError, "shape is '33'"),
        ({"shape": 2**40}, ArgumentError, "2^32-1 are supported"),
        ({"axis": None}, ArgumentError, "axis is None, and shape (4, 4) has 2 dimensions: give 0 to 1"),
        ({"axis": 2}, AxisError, "axis 2 is out of range"),
        ({"precision": "compensated", "dtype": "int32"}, ArgumentError, "precision is 'compensated'"),
        ({"monotone": 1}, ArrayTypeError, "monotone is 1"),
        ({"monotone": True, "operator": "cumprod"}, ArgumentError, "monotone is True, which is for sums"),
        (
            {"monotone": True, "operator": "round", "axis": None},
            ArgumentError,
            "monotone is for scans, and operator is",
        ),
        ({"mode": "up"}, ArgumentError, "mode is 'up'"),
        ({"mode": "half_away"}, ArgumentError, "mode is for roundings, and operator is 'cumsum': leave it out"),
        ({"exclusive": 1}, ArrayTypeError, "exclusive is 1"),
        ({"in_place": 1}, ArrayTypeError, "in_place is 1"),
        ({"device": 0}, ArgumentError, "device and profile are both given"),
        ({"operator": "round"}, ArgumentError, "axis is for scans, and operator is 'round': leave it out"),
        (
            {"operator": "round", "axis": np.array([0, 1])},
            ArgumentError,
            "axis is for scans, and operator is 'round': leave it out",
        ),
        ({"operator": "round", "dtype": "int8"}, ArgumentError, "dtype is int8, whose elements round to themselves"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_what_means_nothing_is_refused(arguments: dict[str, Any], error: type[Exception], says: str) -> None:
    given = {"operator": "cumsum", "shape": (4, 4), "axis": 0, "profile": "h200"} | arguments
    with pytest.raises(error) as caught:
        dmlgpu.explain(**given)
    assert says in str(caught.value)


def test_profiles_need_no_wgpu() -> None:
    code = (
        "import sys; sys.modules['wgpu'] = None\n"
        "import dmlgpu; print(dmlgpu.explain('cumsum', 2**20, profile='m3').dispatches)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(done.stdout) >= 1


def test_every_profile_has_sources() -> None:
    for profile in PROFILES.values():
        assert any(source.startswith("https://") for source in profile.sources)


def test_goals_are_printed_by_one_command(capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks import ledger

    status = ledger.main([])
    out = capsys.readouterr().out
    rows = [line for line in out.splitlines() if line.startswith("| ") and line.endswith(("| yes |", "| no |"))]
    assert len(rows) == len(ledger.TYPES) * len(ledger.SHAPES)
    held = sum(row.endswith("| yes |") for row in rows)
    assert f"{held} of {len(rows)} rows hold all their goals." in out
    assert status == (held < len(rows))
    assert all(("**" in row) == row.endswith("| no |") for row in rows)
