"""``dmlgpu bench``: a quick run from end to end, comparisons, bad usage."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dmlgpu
from dmlgpu.bench import runner as runner_module
from dmlgpu.bench.results import read_report
from dmlgpu.bench.rows import Row, quick_rows
from dmlgpu.bench.runner import BUFFER_COPY, MEMCPY
from dmlgpu.bench.workloads import COPIES
from dmlgpu.cli import bench, console
from dmlgpu.planning.plan import KERNELS
from dmlgpu.runtime.device import Device

from .cli_runner import Outcome, Run, one_line, process, runner

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
    copies = len(groups) * len(WAYS)
    expected = len(quick_rows()) + copies
    assert device.summary in out
    said = f"{len(quick_rows())} rows and {copies} ways to copy\n"
    assert out.endswith(f"wrote x.json: {said}wrote x.csv: {said}wrote x.md: {said}")
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


def test_operators_come_first_and_copies_are_a_line(run: Run) -> None:
    options = ("bench", *FEW, "--axis", "operator=sum,round", "--axis", "type=float32,int64")
    status, out, _ = run(*options)
    assert status == 0
    table, _, closing = out.partition(" ms noise   GB/s of copy whole ms x NumPy\n")[2].partition("\n\n")
    assert [line.split("  ")[0] for line in table.splitlines()] == [
        *("round float32 3000", "sum float32 3000 axis 0", "sum int64 3000 axis 0")
    ]
    assert re.match(r"copies: [\d.]+( to [\d.]+)? GB/s, the fastest for each type and size \(--show-", closing)
    words = " ".join(closing.split())
    assert "The median of 3 rows reaches " in words
    assert " of a copy's speed, whole calls " in words
    assert " times NumPy's; all have the reference's bits. The slowest by its share of a copy is " in words
    status, listed, _ = run(*options, "--show-copies")
    assert status == 0
    names = [line.split("  ")[0] for line in listed.splitlines() if line.startswith(("sum ", "round ", "copy "))]
    assert names[:3] == ["round float32 3000", "sum float32 3000 axis 0", "sum int64 3000 axis 0"]
    assert [name.split()[-1] for name in names[3:]] == [*WAYS, *WAYS]
    assert max(map(len, (out + listed).splitlines())) <= 80


def test_the_whole_call_is_that_of_the_row(run: Run) -> None:
    options = ("--axis", "direction=decreasing", "--axis", "exclusivity=exclusive", "--axis", "operator=product,round")
    assert run("bench", *FEW, *options).status == 0


def test_wall_time_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_module, "_SHORTEST", {"gpu": 0.0, "wall": 1e9})
    status, out, err = run("bench", *FEW, "--wall", "--json", "x.json")
    assert status == 0
    assert "times     wall clock: timestamps were not asked for: times are the host's" in out
    assert json.loads(Path("x.json").read_text())["header"]["clock"] == "wall"
    assert "dmlgpu: warning: too short: sum float32 3000 axis 0 (" in err
    assert err.count(" us), copy float32 3000 ") == 1  # the fastest


def test_wrong_results_are_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    right = runner_module.Data.expected

    def expected(self: Any, row: Row) -> np.ndarray:
        wrong = right(self, row).copy()
        wrong.reshape(-1)[5] += 1
        return wrong

    monkeypatch.setattr(runner_module.Data, "expected", expected)
    status, out, err = run("bench", *FEW)
    assert status == 1
    assert out.count("\n  WRONG: [5]: ") == 1
    assert "; 1 of 1 do NOT have the reference's bits." in " ".join(out.split())
    assert "dmlgpu: warning: 1 row without the reference's bits, the first sum float32 3000 axis 0: [5]: " in err


def test_warnings_give_their_reasons(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_module, "_SLOWER", 0.0)
    monkeypatch.setattr(runner_module, "LAGGING", 0.0)
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


def test_where_there_is_no_terminal_lines_say_what_is_done_and_compiled(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "_LINE_SECONDS", 0.0)
    monkeypatch.setattr(console, "_WORTH_SAYING", 0)
    lines = [line for line in run("bench", *FEW, "--device-only").err.splitlines() if " of 2 rows" in line]
    phases = ("compiling", "checking", "measuring")
    assert [re.sub(r", about \d+ (s|min) left", "", line) for line in lines] == [
        *(f"dmlgpu: note: 0 of 2 rows: {phase} copy float32 3000" for phase in phases),
        *(f"dmlgpu: note: 1 of 2 rows: {phase} sum float32 3000 axis 0" for phase in phases),
    ]
    assert all(", about " in line for line in lines[3:])


class TestAnEarlyEnd:
    """Rows are saved as they finish, and --resume measures the rest."""

    ROWS = ("--axis", "shape=3000", "--axis", "operator=sum,product", "--axis", "type=float32,int32")
    OPTIONS = ("bench", *ROWS, "--device-only", "--min-samples", "2", "--max-noise", "1e9", "--json", "x.json")

    @pytest.fixture
    def interrupted(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> Outcome:
        """Interrupt a run of four rows when two are done."""
        measure = runner_module.Runner._row
        rows = []

        def interrupt(self: Any, row: Row, *rest: Any) -> Any:
            rows.append(row)
            if len(rows) == 3:
                raise KeyboardInterrupt
            return measure(self, row, *rest)

        with monkeypatch.context() as patched:
            patched.setattr(runner_module.Runner, "_row", interrupt)
            return run(*self.OPTIONS, "--csv", "x.csv", "--md", "x.md")

    @pytest.fixture
    def measured(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Return the names of the rows that are measured from now on."""
        measure = runner_module.Runner._row
        names: list[str] = []

        def remember(self: Any, row: Row, *rest: Any) -> Any:
            names.append(row.name)
            return measure(self, row, *rest)

        monkeypatch.setattr(runner_module.Runner, "_row", remember)
        return names

    def test_ctrl_c_keeps_what_was_measured(self, interrupted: Outcome) -> None:
        status, out, err = interrupted
        assert status == 130
        assert err.endswith(
            "dmlgpu: note: x.json has 2 of 4 rows; --resume measures the others\ndmlgpu: error: interrupted\n"
        )
        for name in ("product float32 3000 axis 0", "sum float32 3000 axis 0"):
            assert f"\n{name} " in out
            assert f"| {name} |" in Path("x.md").read_text()
        assert len(read_report(Path("x.json")).results) == 2 + 2 * len(WAYS)
        assert len(Path("x.csv").read_text().splitlines()) == 1 + 2 + 2 * len(WAYS)

    def test_it_goes_on(self, run: Run, interrupted: Outcome, measured: list[str]) -> None:
        before = read_report(Path("x.json"))
        status, out, _ = run(*self.OPTIONS, "--resume")
        assert status == 0
        assert measured == ["product int32 3000 axis 0", "sum int32 3000 axis 0"]
        assert "\n2 of 4 rows are in x.json\n" in out
        assert out.count(" 3000 axis 0 ") == 4
        assert "wrote x.json: 4 rows and 14 ways to copy\n" in out
        after = read_report(Path("x.json"))
        assert len(after.results) == 4 + 2 * len(WAYS)
        kept = [result for result in before.results if result.row.type == "float32"]
        assert list(after.results[: len(kept)]) == kept

    def test_what_is_complete_is_not_measured_again(self, run: Run, interrupted: Outcome, measured: list[str]) -> None:
        assert run(*self.OPTIONS, "--resume").status == 0
        measured.clear()
        status, out, _ = run(*self.OPTIONS, "--resume")
        assert (status, measured) == (0, [])
        assert "The median of 4 rows reaches " in out

    def test_without_resume_all_is_measured_again(self, run: Run, interrupted: Outcome, measured: list[str]) -> None:
        assert run(*self.OPTIONS).status == 0
        assert len(measured) == 4

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (
                ("--wall",),
                "the unfinished run is another one: clock is 'gpu' in the one and 'wall' in the other; leave",
            ),
            (("--timeout", "3"), "the unfinished run is another one: options are {"),
            (
                ("--axis", "direction=decreasing"),
                "it has product float32 3000 axis 0, which is none of these rows; leave",
            ),
        ],
    )
    def test_another_run_is_refused(
        self,
        run: Run,
        interrupted: Outcome,
        measured: list[str],
        options: tuple[str, ...],
        message: str,
        device: Device,
    ) -> None:
        if options == ("--wall",) and "timestamp-query" not in device.gpu_device.features:
            message = "--resume: the unfinished run"
            options = ("--timeout", "4")
        before = Path("x.json").read_bytes()
        status, _, err = run(*self.OPTIONS, *options, "--resume")
        assert (status, measured) == (2, [])
        assert message in one_line(err)
        assert Path("x.json").read_bytes() == before

    def test_sigterm_keeps_what_was_measured(self, tmp_path: Path) -> None:
        """As a time-out sends it: after the first row is saved the process ends where it stands."""
        code = (
            "import os, signal, sys; from dmlgpu.cli import bench, main; save = bench._save\n"
            "def ending(report, outputs):\n"
            "    save(report, outputs)\n"
            "    if any(one.row.operator != 'copy' for one in report.results): os.kill(os.getpid(), signal.SIGTERM)\n"
            "bench._save = ending\n"
            "main(sys.argv[1:])"
        )
        status, out, _ = process(*self.OPTIONS, folder=tmp_path, code=("-c", code))
        assert status == -signal.SIGTERM
        assert "\nproduct float32 3000 axis 0 " in out
        assert len(read_report(tmp_path / "x.json").results) == 1 + len(WAYS)
        assert os.listdir(tmp_path) == ["x.json"]


class TestComparison:
    def test_a_run_against_itself(self, run: Run, device: Device) -> None:
        assert run("bench", *FEW, "--json", "x.json").status == 0
        status, out, err = run("bench", "compare", "x.json", "x.json")
        assert status == 0
        about, _, table = out.partition("\n\n")
        old, _, new = about.partition("\nnew  x.json, 20")
        assert old.startswith("old  x.json, 20")
        assert old.partition(", ")[2].split() == f"20{new}".split()
        assert f", dmlgpu {dmlgpu.__version__}, {device.summary}" in " ".join(old.split())
        heading, row, *rest = table.splitlines()
        assert heading.split() == ["verdict", "speed", "of", "copy,", "old", "->", "new"]
        assert row.startswith("sum float32 3000 axis 0 ")
        assert rest == [
            "",
            "1 SAME, 0 FASTER, 0 SLOWER: operators by their shares of a copy, which decide",
            f"{len(WAYS)} SAME, 0 FASTER, 0 SLOWER: copies by their times, which tell of the machine",
        ]
        assert max(map(len, out.splitlines())) <= 80
        assert one_line(err, "note") == (
            "dmlgpu: note: with fewer than 6 samples of a row (2 here) its verdict is less sure than 95 %\n"
        )

    def test_a_slower_row_fails(self, run: Run) -> None:
        assert run("bench", *FEW, "--json", "x.json").status == 0
        self.change("x.json", "y.json", lambda content: slow_down(content["rows"]))
        status, out, _ = run("bench", "compare", "x.json", "y.json")
        assert status == 1
        assert "\nsum float32 3000 axis 0           SLOWER    0.00 x   " in out
        assert "\n0 SAME, 0 FASTER, 1 SLOWER: operators by their shares of a copy, which decide\n" in out
        assert "\ncopy " not in out
        status, out, _ = run("bench", "compare", "y.json", "x.json", "--show-copies")
        assert status == 0
        assert out.count("\ncopy float32 3000 ") == len(WAYS)
        assert max(map(len, out.splitlines())) <= 80

    def test_rows_of_one_file_alone_are_counted(self, run: Run) -> None:
        assert run("bench", *FEW, "--json", "x.json").status == 0
        self.change("x.json", "y.json", lambda content: content["rows"].pop(0))
        out = run("bench", "compare", "x.json", "y.json").out
        assert out.endswith("\nnot compared: 1 row of old alone, 0 rows of new alone\n")

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
    "a hyphen": ("--quick --csv -", "--csv is '-', which is no file's name: give one, or ./- if that is its name"),
    "compare a pipe": ("compare pipe.json pipe.json", "pipe.json is not an ordinary file; copy it into one"),
    "compare an endless file": ("compare /dev/zero text.json", "/dev/zero is not an ordinary file"),
    "resume of nothing": ("--quick --resume", "--resume goes on with the file of --json FILE: name it"),
    "resume of no file": (
        "--quick --resume --json gone.json",
        "--resume: gone.json is not there to go on with; leave --resume out to begin",
    ),
    "resume of another file": ("--quick --resume --json text.json", "text.json is no result of 'dmlgpu bench --json'"),
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
    if hasattr(os, "mkfifo"):
        os.mkfifo("pipe.json")
    elif name in ("compare a pipe", "compare an endless file"):
        pytest.skip("this system has neither named pipes nor /dev/zero")
    options, message = BAD[name]
    status, out, err = run("bench", *options.split())
    assert (status, out) == (2, "")
    assert message in one_line(err)
