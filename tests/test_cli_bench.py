"""``dmlgpu bench``: a quick run from end to end, comparisons, bad usage."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlgpu.bench import runner as runner_module
from dmlgpu.bench.rows import Row, quick_rows
from dmlgpu.bench.runner import BUFFER_COPY, MEMCPY
from dmlgpu.bench.workloads import COPIES
from dmlgpu.cli import bench
from dmlgpu.planning.plan import KERNELS
from dmlgpu.runtime.device import Device

from .cli_runner import Run, one_line, process, runner

FEW = ("--axis", "shape=3000", "--min-samples", "2", "--max-noise", "1e9", "--timeout", "60")
WAYS = [*(copy.name for copy in COPIES), BUFFER_COPY, MEMCPY]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in an empty folder of its own."""
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


def test_a_quick_run(run: Run, device: Device) -> None:
    status, out, _ = run(
        *("bench", "--quick", "--min-samples", "1", "--timeout", "0.1"),
        *("--json", "x.json", "--csv", "x.csv", "--md", "x.md"),
    )
    assert status == 0
    groups = {(row.type, row.elements) for row in quick_rows()}
    expected = len(quick_rows()) + len(groups) * len(WAYS)
    assert out.count(" same bits\n") == expected
    assert device.summary in out
    assert out.endswith(f"wrote x.json: {expected} rows\nwrote x.csv: {expected} rows\nwrote x.md: {expected} rows\n")
    content = json.loads(Path("x.json").read_text())
    header = content["header"]
    assert header["device"]["summary"] == device.summary
    assert header["device"]["software"] == device.description.is_software
    assert header["device"]["limits"]["max-buffer-size"] > 0
    assert header["clock"] == ("gpu" if "timestamp-query" in device.gpu_device.features else "wall")
    for entry in content["rows"]:
        assert min(entry["seconds"]) > 0
        assert entry["difference"] is None
        assert entry["copy"] in [copy.name for copy in COPIES]
        if entry["row"]["operator"] != "copy":
            assert len(entry["copy_seconds"]) == len(entry["seconds"])
            assert len(entry["whole"]) == len(entry["numpy"]) == len(entry["upload"]) == len(entry["download"]) >= 1
    assert [row["kernel"] for row in csv.DictReader(Path("x.csv").read_text().splitlines())][: len(WAYS)] == WAYS
    assert Path("x.md").read_text().count("\n| ") == 1 + expected


def test_every_kernel_can_be_forced(run: Run) -> None:
    kernels = ",".join(KERNELS)
    status, out, _ = run("bench", *FEW, "--axis", f"kernel={kernels}", "--device-only", "--json", "x.json")
    assert status == 0
    rows = [entry for entry in json.loads(Path("x.json").read_text())["rows"] if entry["row"]["operator"] == "sum"]
    assert [entry["row"]["kernel"] for entry in rows] == list(KERNELS)
    assert all(entry["dispatches"] and not entry["whole"] for entry in rows)
    assert out.count("\nsum float32 3000 axis 0 ") == len(KERNELS)


def test_the_whole_call_is_that_of_the_row(run: Run) -> None:
    options = ("--axis", "direction=decreasing", "--axis", "exclusivity=exclusive", "--axis", "operator=product,round")
    assert run("bench", *FEW, *options).status == 0


def test_wall_time_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_module, "_SHORTEST", {"gpu": 0.0, "wall": 1e9})
    status, out, err = run("bench", *FEW, "--wall", "--json", "x.json")
    assert status == 0
    assert "times     wall clock: timestamps were not asked for: times are the host's" in out
    assert json.loads(Path("x.json").read_text())["header"]["clock"] == "wall"
    assert "dmlgpu: warning: too short: copy float32 3000 word (" in err


def test_wrong_results_are_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    right = runner_module.Data.expected

    def expected(self: Any, row: Row) -> np.ndarray:
        wrong = right(self, row).copy()
        wrong.reshape(-1)[5] += 1
        return wrong

    monkeypatch.setattr(runner_module.Data, "expected", expected)
    status, out, err = run("bench", *FEW)
    assert status == 1
    assert out.count(" WRONG: [5]: ") == 1
    assert "dmlgpu: warning: 1 row without the reference's bits, the first sum float32 3000 axis 0: [5]: " in err


def test_warnings_give_their_reasons(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_module, "_SLOWER", 0.0)
    monkeypatch.setattr(runner_module, "_SHORTEST", {"gpu": 1e9, "wall": 1e9})
    options = ("--axis", "shape=3000", "--min-samples", "3", "--max-noise", "1e-9", "--timeout", "1e-9")
    status, _, err = run("bench", *options, "--device-only", "--json", "x.json")
    assert status == 0
    for reason, meaning in runner_module.REASONS.items():
        if reason != "noisy":  # a single sample has no noise
            assert f"dmlgpu: warning: {reason}: " in err
            assert meaning in err
    assert "sum float32 3000 axis 0 (1 of 3)" in err
    status, _, err = run("bench", "--axis", "shape=3000", "--min-samples", "3", "--max-noise", "1e-9", "--device-only")
    assert f"; {runner_module.REASONS['noisy']}\n" in err


def test_the_list_needs_no_device(tmp_path: Path) -> None:
    code = "import sys; sys.modules['wgpu'] = None; from dmlgpu.cli import main; sys.exit(main(['bench', '--list']))"
    status, out, err = process(folder=tmp_path, code=("-c", code))
    assert (status, err) == (0, "")
    assert "  exclusivity  inclusive, exclusive\n" in out
    assert "  sum float32 4096x4096 axis 0\n" in out


def test_help_is_printed(run: Run) -> None:
    for command in (("bench",), ("bench", "compare")):
        status, out, err = run(*command, "--help")
        assert (status, err) == (0, "")
        assert out.startswith("usage: dmlgpu bench ")
        assert max(map(len, out.splitlines())) <= 120


class TestComparison:
    def test_a_run_against_itself(self, run: Run) -> None:
        assert run("bench", *FEW, "--json", "x.json").status == 0
        status, out, err = run("bench", "compare", "x.json", "x.json")
        assert status == 0
        assert out.endswith(f"{len(WAYS) + 1} SAME, 0 FASTER, 0 SLOWER\n")
        assert one_line(err, "note") == (
            "dmlgpu: note: with fewer than 6 samples of a row (2 here) its verdict is less sure than 95 %\n"
        )

    def test_a_slower_row_fails(self, run: Run) -> None:
        assert run("bench", *FEW, "--json", "x.json").status == 0
        self.change("x.json", "y.json", lambda content: slow_down(content["rows"]))
        status, out, _ = run("bench", "compare", "x.json", "y.json")
        assert status == 1
        assert "\nsum float32 3000 axis 0             SLOWER   0.00 x   of copy " in out
        assert run("bench", "compare", "y.json", "x.json").status == 0

    def test_another_machine(self, run: Run) -> None:
        assert run("bench", *FEW, "--json", "x.json").status == 0
        self.change("x.json", "y.json", lambda content: content["header"]["machine"].update(cores=1000))
        status, out, err = run("bench", "compare", "x.json", "y.json")
        assert (status, out) == (2, "")
        assert "the results are of different machines: cores is " in one_line(err)
        assert run("bench", "compare", "x.json", "y.json", "--across-machines").status == 0

    @staticmethod
    def change(old: str, new: str, change: Any) -> None:
        content = json.loads(Path(old).read_text())
        change(content)
        Path(new).write_text(json.dumps(content))


def slow_down(rows: Sequence[dict[str, Any]]) -> None:
    for entry in rows:
        entry["seconds"] = [1000 * seconds for seconds in entry["seconds"]]


BAD = {
    "unknown axis": ("--axis colour=red", "there is no axis 'colour'; there are operator, type, "),
    "unknown value": ("--axis operator=max", "the axis 'operator' has no value 'max'; it has sum, product, round"),
    "no value": ("--axis operator", "'operator' has no values; write NAME=VALUE"),
    "an axis twice": (
        "--axis type=int8 --axis type=int16",
        "--axis type is given twice: separate its values by commas",
    ),
    "no row": ("--axis shape=7 --axis axis=3", "these values leave no row"),
    "axis and quick": ("--quick --axis type=int8", "--axis chooses rows, and --quick has its own"),
    "unknown device": ("--quick --device frob", "device 'frob' is in no adapter's summary"),
    "no samples": ("--min-samples 0", "argument --min-samples: '0' is not a whole number from 1 to 10000"),
    "no noise": ("--max-noise -1", "argument --max-noise: '-1' is not a number above 0"),
    "no time": ("--timeout nan", "argument --timeout: 'nan' is not a number above 0"),
    "no folder": ("--quick --json gone/x.json", "cannot write gone/x.json: gone is not a folder; create it first"),
    "a folder": ("--quick --md .", "cannot write .: it exists and is not an ordinary file"),
    "one output for two": ("--quick --csv x --md ./x", "--csv and --md both name x: give each a file of its own"),
    "compare a pipe": ("compare pipe.json pipe.json", "pipe.json is not an ordinary file; copy it into one"),
    "compare an endless file": ("compare /dev/zero text.json", "/dev/zero is not an ordinary file"),
    "nothing to compare": ("compare", "the following arguments are required: OLD, NEW"),
    "a missing file": ("compare gone.json gone.json", "gone.json: No such file or directory"),
    "compare a folder": ("compare . .", ". is a directory; give a file"),
    "another file": ("compare text.json text.json", "text.json is no result of 'dmlgpu bench --json': it is not JSON"),
    "unknown action": ("frob", "argument compare OLD NEW: invalid choice: 'frob'"),
    "unknown option": ("--frob", "unrecognized arguments: --frob"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_usage_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(bench, "_measure", lambda *_: pytest.fail("nothing may be measured"))
    Path("text.json").write_text("text")
    os.mkfifo("pipe.json")
    options, message = BAD[name]
    status, out, err = run("bench", *options.split())
    assert (status, out) == (2, "")
    assert message in one_line(err)
