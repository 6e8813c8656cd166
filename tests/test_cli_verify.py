"""``dmlgpu verify``: verdicts, reports, digests and their comparison, bad usage."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dmlgpu
from dmlgpu.cli import console, verdict, verify
from dmlgpu.cli.verdict import Verdict, driver_of, reproduction
from dmlgpu.conformance import Digests, Outcome, Probe, checks, parse, suite
from dmlgpu.errors import ShaderError
from dmlgpu.planning.plan import KERNELS
from dmlgpu.planning.policy import policy_of
from dmlgpu.runtime import wgpu_private
from dmlgpu.runtime.device import Device
from dmlgpu.runtime.wgpu_private import implementation

from .cli_runner import Run, one_line, process, runner

ONE = "sum.float32.2x257.axis1.inclusive.increasing.packed-to-packed.lookback.plain"
OTHER = "round.float16.half_even.4097.packed-to-packed.plain"
TINY = "sum.float32.4x17.axis1.inclusive.increasing.packed-to-packed.lookback.subnormal"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in an empty folder of its own."""
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace the suite by a few cases; return their names."""
    names = [ONE, OTHER, TINY]
    monkeypatch.setattr(verify, "suite", lambda full=False: iter([*map(parse, names)]))
    return names


@pytest.fixture
def broken(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the device change the last bit of the first element of everything read from it."""
    original = device.download

    def wrong(buffer: Any, offset: int, out: np.ndarray) -> None:
        original(buffer, offset, out)
        out.reshape(-1).view(np.uint8)[0] ^= 1

    device.subnormals()  # measured before, and kept
    monkeypatch.setattr(device, "download", wrong)


def end(*_: Any) -> None:
    """End the process that is asked to check cases."""
    os._exit(3)


class TestVerdict:
    def test_a_right_device_passes(self, run: Run, few: list[str], device: Device) -> None:
        status, out, err = run("verify", "--every-kernel")
        assert (status, err) == (0, "")
        assert out.startswith(f"dmlgpu {dmlgpu.__version__} on {device.summary}\ndriver: ")
        assert f", through {implementation()} " in " ".join(out.split())
        words = " ".join(out.split())
        for name in ("subnormals", "float32 addition correctly rounded in all of", "atomics no byte is lost"):
            assert name in words
        assert "sum lookback float32 2 round float16 1 PASSED" in words
        assert "PASSED: 3 of 3 cases have the reference's bits" in words
        assert max(map(len, out.splitlines())) <= 80

    @pytest.mark.parametrize("wrong", [False, True])
    def test_a_verdict_fits_a_terminal_whatever_the_device_is_called(self, wrong: bool) -> None:
        """Commands to copy and names of cases stay whole."""
        summary = (
            "A Graphics Card of the Ninth Generation, Workstation Edition (RTX) with 96 GB (DiscreteGPU) via Vulkan"
        )
        difference = (
            f"at [0, 0] the device has {1 / 3!r} (0x3fd5555555555555), the reference 0 (0x0)" if wrong else None
        )
        cases = list(suite())
        outcomes = [Outcome(case, None, difference if i % 2 else None) for i, case in enumerate(cases)]
        finding = "one of some thousand hard cases, and a sentence that goes on for longer than a line has room"
        verdict = Verdict(
            *(summary, 10**6, [Probe("float32 multiplication", finding, not wrong)] * 9, outcomes, 12_345.6),
            *(f"the device was lost in the case {cases[0].name}" if wrong else None, f"{summary} 550.1, through wgpu"),
        )
        text = verdict.render()
        names = {case.name for case in cases}
        long = [line for line in text.splitlines() if len(line) > 80 and line not in names]
        assert all(line.startswith("  ") and "dmlgpu verify --device " in line for line in long)
        assert len(long) == (10 if wrong else 0)
        every = verdict.cells()
        for dtype, cells in every.items():
            in_rows = [line.split()[1:] for line in text.splitlines() if line.startswith(f"{dtype} ")]
            written = " ".join(" ".join(row) for row in in_rows)
            assert all((str(n) if m == n else f"{m} of {n}") in written for m, n in cells.values())

    def test_a_wrong_device_fails_and_says_where(
        self, run: Run, few: list[str], device: Device, broken: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("VK_DRIVER_FILES", raising=False)
        status, out, err = run("verify", "--every-kernel", "--json", "report.json")
        assert status == 1
        assert f"\n{ONE}\n  at [0, 0] the device has " in out
        assert f"  {reproduction(device.summary, ONE)}\n" in out
        assert "failed probes: float32 addition, float32 multiplication, " in out
        assert "FAILED: 0 of 3 cases have the reference's bits" in out
        assert f"dmlgpu: warning: the probe 'float32 addition' failed on {device.summary}: 1 of" in " ".join(
            err.split()
        )
        report = json.loads(Path("report.json").read_text())
        assert report["passed"] is False
        assert report["device"] == device.summary
        assert report["driver"] == driver_of(device)
        assert [one["case"] for one in report["differences"]] == few
        assert "(0x" in report["differences"][0]["difference"]
        assert report["differences"][0]["reproduce"].endswith(f"--case {ONE}")
        assert {"type": "float32", "operator": "sum lookback", "cases": 2, "different": 2} in report["verdicts"]
        assert {one["name"]: one["passed"] for one in report["probes"]}["float32 addition"] is False
        assert report["info"]["versions"]["dmlgpu"] == dmlgpu.__version__

    def test_the_reproduction_is_a_line_for_this_systems_shell(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("VK_DRIVER_FILES", "my driver.json")
        for name, prefix, quote in ("posix", "VK_DRIVER_FILES='my driver.json' ", "'"), ("nt", "", '"'):
            monkeypatch.setattr(verdict, "os", SimpleNamespace(name=name, environ=os.environ))
            options = f"--device {quote}A GPU (x){quote} --case {ONE}"
            assert reproduction("A GPU (x)", ONE) == f"{prefix}dmlgpu verify {options}"
            assert reproduction("x", "a b", ", through a page in y").endswith(f" --case {quote}a b{quote}")

    @pytest.mark.skipif(os.name != "posix", reason="a line for Windows does not begin with a variable")
    def test_the_driver_file_is_part_of_the_reproduction(
        self, run: Run, broken: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("VK_DRIVER_FILES", "my driver.json")
        assert "  VK_DRIVER_FILES='my driver.json' dmlgpu verify --device " in run("verify", "--case", ONE).out

    def test_a_failed_probe_alone_fails(self, run: Run, few: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        probes = [Probe("a", "fine", True), Probe("b", "broken", False), Probe("c", "a fact", None)]
        monkeypatch.setattr(verify, "probe", lambda device: iter(probes))
        status, out, err = run("verify", "--every-kernel")
        assert status == 1
        assert "PASSED" not in out
        assert "failed probes: b\nFAILED: 3 of 3 cases" in out
        assert one_line(err, "warning").startswith("dmlgpu: warning: the probe 'b' failed on ")

    def test_a_shader_that_does_not_compile_is_a_difference(
        self, run: Run, device: Device, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: Any, **__: Any) -> None:
            raise ShaderError("scan_tiles.wgsl does not compile")

        monkeypatch.setattr(device, "run", fail)
        monkeypatch.setattr(device, "_subnormals", None)
        status, out, _ = run("verify", "--case", ONE)
        assert status == 1
        assert f"{ONE}\n  ShaderError: scan_tiles.wgsl does not compile\n" in out

    def test_a_lost_device_ends_the_run(
        self, run: Run, few: list[str], device: Device, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: Any, **__: Any) -> None:
            raise RuntimeError("gone")

        device.subnormals()
        monkeypatch.setattr(device, "run", fail)
        monkeypatch.setattr(device, "lost", lambda: True)
        status, out, _ = run("verify", "--every-kernel")
        assert status == 1
        assert f"the device was lost in the case {ONE}; 2 of 3 cases did not run " in f"{' '.join(out.split())} "

    @pytest.mark.parametrize(("taken", "ran"), [(("slices",), 1), (("slices", "lookback"), 3)])
    def test_kernels_that_are_never_taken_are_left_out(
        self,
        run: Run,
        few: list[str],
        device: Device,
        monkeypatch: pytest.MonkeyPatch,
        taken: tuple[str, ...],
        ran: int,
    ) -> None:
        """By default; two of the three cases are of `lookback`."""
        monkeypatch.setattr(type(policy_of(device.limits)), "kernels", taken)
        others = ", ".join(kernel for kernel in KERNELS if kernel not in taken)
        said = f"not run: kernels that are never taken on this device ({others}): --every-kernel"
        for options in ((), ("--every-kernel",), ("--full",), ("--digest", "here.json")):
            status, out, _ = run("verify", *options)
            words = " ".join(out.split())
            assert status == 0
            assert f"PASSED: {3 if options else ran} of " in words
            assert (said in words) == (not options)
            assert max(map(len, out.splitlines())) <= 80
        assert run("verify", "--json", "report.json").status == 0
        assert ", ".join(json.loads(Path("report.json").read_text())["left_out"]) == others

    def test_a_share_without_kernels_that_are_taken_is_refused(
        self, run: Run, few: list[str], device: Device, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(type(policy_of(device.limits)), "kernels", ())
        ends = [run("verify", "--share", f"{number}/2") for number in (1, 2)]
        assert sorted(end.status for end in ends) == [0, 2]
        (refused,) = (end for end in ends if end.status == 2)
        assert "the share has only cases of kernels that this device never takes: add --every-kernel" in one_line(
            refused.err
        )

    def test_processes_find_the_same(self, run: Run, few: list[str]) -> None:
        status, out, _ = run("verify", "--jobs", "3", "--digest", "several.json")
        assert status == 0
        assert "PASSED: 3 of 3 cases have the reference's bits" in out
        assert run("verify", "--jobs", "1", "--digest", "one.json").status == 0
        several, one = (Digests.read(Path(name)) for name in ("several.json", "one.json"))
        assert list(several.digests.items()) == list(one.digests.items())

    def test_shares_are_the_whole(self, run: Run, few: list[str]) -> None:
        for number, done in ((1, 1), (2, 2)):  # two of the three cases have their shaders in common
            status, out, _ = run("verify", "--share", f"{number}/2", "--digest", f"{number}.json")
            assert status == 0
            assert f"PASSED: {done} of {done} case" in out
        parts = [Digests.read(Path(name)).digests for name in ("1.json", "2.json")]
        assert run("verify", "--digest", "all.json").status == 0
        assert parts[0] | parts[1] == Digests.read(Path("all.json")).digests

    def test_a_process_that_ends_fails_the_run(self, run: Run, few: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(checks, "_check_group", end)
        status, out, _ = run("verify", "--every-kernel", "--jobs", "2")
        assert status == 1
        said = " ".join(out.split())
        assert (
            "a process that verified cases ended, as if its driver had aborted it; --jobs 1 tells where; 3 of 3" in said
        )

    def test_processes_verify_what_wgpu_is(self, run: Run, few: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(wgpu_private, "implementation", lambda: "Dawn 1")
        status, out, err = run("verify", "--jobs", "2")
        assert (status, out) == (2, "")
        assert "--jobs 2 would not verify Dawn 1, which this process alone has" in one_line(err)

    def test_a_lost_device_is_told_by_its_process(
        self, few: list[str], device: Device, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: Any, **__: Any) -> None:
            raise RuntimeError("gone")

        keeps = device.subnormals()
        monkeypatch.setattr(device, "run", fail)
        monkeypatch.setattr(device, "lost", lambda: True)
        stop = get_context("spawn").Event()
        monkeypatch.setattr(checks, "_worker", checks._Worker(device, stop))
        group = [(7, parse(ONE)), (8, parse(OTHER))]
        found, is_lost = checks._check_group(group, keeps)
        assert ([number for number, _ in found], is_lost) == ([7], True)
        stop.set()
        assert checks._check_group(group, keeps) == ([], False)

    def test_cases_are_chosen_by_name_and_pattern(self, run: Run) -> None:
        status, out, err = run("verify", "--case", ONE, "--case", "round.float16.*.4097.*")
        assert (status, err) == (0, "")
        assert out.count(": the reference's bits, SHA-256 ") == 4
        assert f"{ONE}: the reference's bits" in out
        assert "PASSED: 4 of 4 cases" in out
        assert "float32 addition" not in out

    def test_a_case_that_meets_subnormals_is_verified_too(self, run: Run) -> None:
        status, out, _ = run("verify", "--case", TINY)
        assert status == 0
        assert f"{TINY}: the reference's bits, SHA-256 of a result that meets subnormals" in out

    def test_a_case_beyond_the_suite_can_be_asked_for(self, run: Run) -> None:
        name = "product.uint16.2x3x4x5.axis2.exclusive.decreasing.reversed-beside-padded.slices.plain"
        assert run("verify", "--case", name).status == 0

    def test_the_bar_is_for_terminals(
        self, few: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        monkeypatch.setenv("COLUMNS", "60")
        monkeypatch.setenv("TERM", "xterm")
        assert verify.run(arguments("--case", ONE)) == 0
        _, err = capsys.readouterr()
        first, _, rest = err.partition("\n")
        assert " 0 of 1 " in first
        assert " compiling sum.float32" in first
        assert re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", rest) == ""  # the bar is erased
        assert rest.endswith("\x1b[1A\x1b[2K")

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_where_there_is_no_terminal_lines_say_what_is_done_and_compiled(
        self, run: Run, few: list[str], monkeypatch: pytest.MonkeyPatch, jobs: int
    ) -> None:
        assert run("verify", "--every-kernel").err == ""  # it has few cases
        monkeypatch.setattr(console, "_WORTH_SAYING", 3)
        monkeypatch.setattr(console, "_LINE_SECONDS", 0.0)
        status, _, err = run("verify", "--every-kernel", "--jobs", str(jobs))
        assert status == 0
        lines = [re.sub(r", about \d+ (s|min) left", "", line) for line in err.splitlines()]
        steps = [f"compiling {ONE}", f"compiling {OTHER}", f"running {TINY}"]
        said = ["compiling and running in 2 processes"] * 3 if jobs == 2 else steps
        expected = ["0 of 3 cases: compiling and running probes"]
        expected += [f"{i} of 3 cases: {step}" for i, step in enumerate([*said, "done"])]
        assert lines == [f"dmlgpu: note: {line}" for line in expected]
        monkeypatch.setattr(console, "_LINE_SECONDS", float("inf"))
        assert run("verify", "--every-kernel").err == "dmlgpu: note: 0 of 3 cases: compiling and running probes\n"


def arguments(*options: str) -> Any:
    from dmlgpu.cli import parse as parse_arguments

    return parse_arguments(["verify", *options])


class TestDigests:
    def test_the_device_and_the_reference_agree(self, run: Run, few: list[str], device: Device) -> None:
        status, out, _ = run("verify", "--digest", "device.json")
        assert status == 0
        assert out.endswith(f"wrote device.json: 2 digests of {device.summary}\n")
        assert run("verify", "--reference", "--digest", "reference.json") == (
            0,
            "wrote reference.json: 2 digests of the reference (NumPy)\n",
            "",
        )
        one, other = (Digests.read(Path(name)) for name in ("device.json", "reference.json"))
        assert one.digests == other.digests
        assert (one.dmlgpu, one.device, one.driver) == (dmlgpu.__version__, device.summary, driver_of(device))
        assert set(one.digests) == {ONE, OTHER}
        status, out, err = run("verify", "--compare", "device.json", "reference.json")
        assert (status, err) == (0, "")
        assert out.endswith("EQUAL: 2 files agree on 2 cases\n")

    def test_the_reference_needs_no_device(self, tmp_path: Path) -> None:
        code = (
            "import sys; sys.modules['wgpu'] = None; from dmlgpu.cli import main; "
            f"sys.exit(main(['verify', '--reference', '--digest', 'x.json', '--case', '{ONE}']))"
        )
        status, _, err = process(folder=tmp_path, code=("-c", code))
        assert (status, err) == (0, "")
        assert set(Digests.read(tmp_path / "x.json").digests) == {ONE}

    def test_a_difference_is_told_in_full(
        self, run: Run, few: list[str], device: Device, broken: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("VK_DRIVER_FILES", raising=False)
        run("verify", "--reference", "--digest", "reference.json")
        assert run("verify", "--digest", "wrong.json").status == 1
        status, out, _ = run("verify", "--compare", "reference.json", "wrong.json")
        assert status == 1
        right = Digests.read(Path("reference.json")).digests[ONE]
        assert f"\n{ONE}\n  {right}  reference.json  (as the reference here)\n" in out
        assert "  wrong.json: at [0, 0] the device has " in out
        assert out.count("(0x") == 4
        assert f"  {reproduction(device.summary, ONE)}\n" in out
        assert out.endswith("DIFFERENT: 2 of 2 cases\n")

    def test_agreeing_on_what_is_wrong_is_no_equality(self, run: Run, few: list[str], broken: None) -> None:
        run("verify", "--digest", "a.json")
        run("verify", "--digest", "b.json")
        status, out, _ = run("verify", "--compare", "a.json", "b.json")
        assert status == 1
        assert f"a.json: 3 cases not as the reference, the first {ONE}: at [0, 0] " in out
        assert out.endswith("DIFFERENT: not from each other, but from the reference\n")

    def test_missing_cases_and_other_versions_are_told(self, run: Run) -> None:
        for name, version, cases in (("a.json", "1", [ONE, OTHER]), ("b.json", "2", [ONE])):
            with Path(name).open("wb") as file:
                Digests(version, "d", "", dict.fromkeys(cases, "0" * 64)).write(file)
        status, out, err = run("verify", "--compare", "a.json", "b.json")
        assert status == 1
        assert f"\n{OTHER}\n  {'0' * 64}  a.json\n  no digest  b.json\n" in out
        assert "DIFFERENT: 1 of 2 cases" in out
        assert one_line(err, "note") == "dmlgpu: note: the files are of several versions of dmlgpu: 1, 2\n"

    def test_cases_of_other_versions_can_be_compared(self, run: Run) -> None:
        for name, digit in (("a.json", "0"), ("b.json", "1")):
            with Path(name).open("wb") as file:
                Digests("1", "d", "", {f"case.of.old.times.{i}": digit * 64 for i in range(12)}).write(file)
        status, out, _ = run("verify", "--compare", "a.json", "b.json")
        assert status == 1
        assert "and 2 more cases\nDIFFERENT: 12 of 12 cases\n" in out


class TestThroughDawn:
    SCRIPT = str(Path(__file__).parent.parent / "scripts" / "on_dawn.py")

    @pytest.mark.tint
    def test_cases_have_the_references_bits_and_the_digest_says_what_computed_them(self, tmp_path: Path) -> None:
        chosen = [option for name in (ONE, OTHER, TINY) for option in ("--case", name)]
        ran = process(folder=tmp_path, code=(self.SCRIPT, "dmlgpu", "verify", "--digest", "dawn.json", *chosen))
        assert ran.status == 0, ran
        assert "PASSED: 3 of 3 cases have the reference's bits" in ran.out
        assert ", through Dawn " in Digests.read(tmp_path / "dawn.json").driver

    def test_the_script_is_part_of_the_reproduction(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("VK_DRIVER_FILES", raising=False)
        line = reproduction("a device", ONE, "a driver, through Dawn 1")
        assert line == f"python scripts/on_dawn.py {reproduction('a device', ONE)}"

    def test_bad_usage_of_the_script_is_one_line(self, tmp_path: Path) -> None:
        hide = "import sys, runpy; sys.modules['wgpudawn'] = None; sys.argv = sys.argv[1:]; "
        hide += "runpy.run_path(sys.argv[0], run_name='__main__')"
        for code, message in (
            ((self.SCRIPT,), "usage: on_dawn.py MODULE [ARGUMENTS]\n"),
            (("-c", hide, self.SCRIPT, "dmlgpu"), "has no wgpudawn; 'make setup-test' installs it\n"),
        ):
            status, out, err = process(folder=tmp_path, code=code)
            assert (status, out) == (2, "")
            assert err.endswith(message)
            assert err.count("\n") == 1


BAD = {
    "unknown device": ("--device frob", "device 'frob' is in no adapter's summary"),
    "unknown case": ("--case sum.float32", "there is no case 'sum.float32': "),
    "pattern of nothing": (
        "--case frob*",
        "no case of the suite matches 'frob*'; docs/portability.md shows what names hold",
    ),
    "case and full": (f"--full --case {ONE}", "--case chooses cases, and --full takes all"),
    "reference without a file": ("--reference", "it needs --digest FILE"),
    "reference with a device": ("--reference --digest x.json --device 0", "leave --device, --jobs and --json out"),
    "reference with a report": ("--reference --digest x.json --json y.json", "leave --device, --jobs and --json out"),
    "one file": ("--compare good.json", "--compare needs two files of digests or more"),
    "no file": ("--compare", "argument --compare: expected at least one argument"),
    "compare and more": (
        "--compare a b --full --device 0",
        "--compare reads files only; leave --device and --full out",
    ),
    "share of too many": ("--share 5/4", "argument --share: '5/4' is no share of the cases, such as 1/4 to 4/4"),
    "no share": ("--share 0/4", "argument --share: '0/4' is no share of the cases"),
    "half a share": ("--share 1", "argument --share: '1' is no share of the cases"),
    "empty share": (f"--share 2/2 --case {ONE}", "share 2 of 2 has no case: take fewer shares"),
    "no jobs": ("--jobs 0", "argument --jobs: '0' is not a number of processes from 1 to 16"),
    "too many jobs": ("--jobs 17", "argument --jobs: '17' is not a number of processes from 1 to 16"),
    "jobs of the reference": ("--reference --digest x --jobs 2", "leave --device, --jobs and --json out"),
    "nothing in them": ("--compare empty.json empty.json", "there is nothing to compare: no file has a digest"),
    "missing file": ("--compare good.json gone.json", "gone.json: No such file or directory"),
    "folder": ("--compare good.json .", "."),
    "damaged file": (
        "--compare good.json damaged.json",
        "damaged.json is damaged: its content does not fit its checksum",
    ),
    "no JSON": ("--compare good.json text.json", "text.json is damaged, or no file of digests: it is not JSON"),
    "other JSON": ("--compare good.json other.json", "other.json is not a file of digests"),
    "another version": ("--compare good.json later.json", "later.json has version 3 of the format"),
    "digest in no folder": ("--digest gone/x.json", "cannot write gone/x.json: gone is not a folder; create it first"),
    "digest is a folder": ("--digest .", "cannot write .: it exists and is not an ordinary file"),
    "report in no folder": ("--json gone/x.json", "cannot write gone/x.json"),
    "one output for two": (
        "--digest x.json --json ./x.json",
        "--digest and --json both name x.json: give each a file of its own",
    ),
    "no name": ("--digest=", "--digest is empty: give the name of a file"),
    "pipe": ("--compare good.json pipe.json", "pipe.json is not an ordinary file; copy it into one"),
    "endless": ("--compare good.json /dev/zero", "/dev/zero is not an ordinary file; copy it into one"),
    "unknown option": ("--frob", "unrecognized arguments: --frob"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_usage_is_one_line(run: Run, tmp_path: Path, name: str) -> None:
    with (tmp_path / "good.json").open("wb") as file:
        Digests("1", "d", "", {ONE: "0" * 64}).write(file)
    with (tmp_path / "empty.json").open("wb") as file:
        Digests("1", "d", "", {}).write(file)
    good = (tmp_path / "good.json").read_text()
    (tmp_path / "damaged.json").write_text(good.replace("0" * 64, "0" * 63 + "1"))
    (tmp_path / "later.json").write_text(good.replace('"version": 2', '"version": 3'))
    (tmp_path / "text.json").write_text("text")
    (tmp_path / "other.json").write_text("{}")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.json")
    elif name in ("pipe", "endless"):
        pytest.skip("this system has neither named pipes nor /dev/zero")
    before = sorted(tmp_path.iterdir())
    options, message = BAD[name]
    status, out, err = run("verify", *options.split())
    assert status == 2
    assert not out or "--compare" in options  # which lists the files that it could read
    assert message in one_line(err)
    assert sorted(tmp_path.iterdir()) == before


KILLED = """
import os, signal, sys
from dmlgpu.cli import main
from dmlgpu.cli.console import Progress
shown = Progress.show
def show(self, done, what, **options):
    shown(self, done, what, **options)
    if done == 1:  # both processes are at work, on hundreds of cases
        os.kill(os.getpid(), int(sys.argv[1]))
Progress.show = show
if __name__ == "__main__":
    sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL] if sys.platform != "win32" else [])
def test_no_process_outlives_the_one_that_started_it(tmp_path: Path, number: int) -> None:
    """They share its standard streams, so that this waits for all of them to end, and sees what Python says of it."""
    (tmp_path / "killed.py").write_text(KILLED)
    arguments = (str(int(number)), "verify", "--jobs", "2", "--case", "round.float32.*", "--case", "round.float16.*")
    done = process(*arguments, folder=tmp_path, code=("killed.py",))
    assert done.status == -number
    assert "resource_tracker" not in done.err
