"""``python -m benchmarks.gpu_report``: reports have their form wherever they run, whatever stops or fails."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.gpu_report import __main__ as command
from benchmarks.gpu_report import page, sections
from benchmarks.gpu_report.kernels import compared, ways
from benchmarks.gpu_report.rows import OTHERS, classes, fitted, groups, kernel_rows, peer_rows, sizes
from benchmarks.ledger import SHAPES, TYPES
from benchmarks.peers import resident
from benchmarks.peers.calls import MissingPeerError
from dmlgpu import reference
from dmlgpu.bench.clock import Clock
from dmlgpu.bench.rows import Row
from dmlgpu.bench.runner import Runner
from dmlgpu.bench.workloads import Data
from dmlgpu.cli.verify import default_jobs
from dmlgpu.planning.policy import policy_of
from dmlgpu.planning.windows import Limits
from dmlgpu.runtime.device import Device

ROOT = Path(__file__).resolve().parent.parent
NUMBER, TEXT, ANY_TEXT = (int, float), str, (str, type(None))
ROW = {
    "name": TEXT,
    "row": dict,
    **dict.fromkeys(("seconds", "noise", "bytes_per_s", "share", "traffic", "ledger_share", "sectors"), NUMBER),
    "serial_links": int,
    "dispatches": [TEXT],
    "difference": ANY_TEXT,
    "warnings": [TEXT],
    "copy": TEXT,
    "samples": [NUMBER],
    "copy_samples": [NUMBER],
    "class": ANY_TEXT,
    "size": bool,
}
FAILED = {"name": TEXT, "error": TEXT}
NUMBER_OR_NONE = (int, float, type(None))
WAY = {
    "kernel": TEXT,
    "seconds": NUMBER_OR_NONE,
    "times_chosen": NUMBER_OR_NONE,
    "dispatches": [{"kernel": TEXT, "seconds": NUMBER_OR_NONE}],
    "difference": ANY_TEXT,
    "failed": ANY_TEXT,
}
FOUND = {
    "verify": {
        "passed": bool,
        "device": TEXT,
        "driver": TEXT,
        "seconds": NUMBER,
        "probes": [{"name": TEXT, "finding": TEXT, "passed": (bool, type(None))}],
        "cases": int,
        "planned": int,
        "processes": int,
        "stopped": ANY_TEXT,
        "left_out": [TEXT],
        "verdicts": [{"type": TEXT, "operator": TEXT, "cases": int, "different": int}],
        "differences": [{"case": TEXT, "difference": TEXT}],
    },
    "rows": {"planned": int, "rows": [ROW], "failed": [FAILED]},
    "tune": {
        "clock": TEXT,
        "decisions": [
            {
                "threshold": TEXT,
                "default": int,
                "chosen": int,
                "gain": NUMBER,
                "rungs": [{"value": int, "within": NUMBER, "beyond": NUMBER, "lag?": NUMBER}],
            }
        ],
    },
    "kernels": {"clock": TEXT, "planned": int, "rows": [{"name": TEXT, "lag?": NUMBER, "kernels": [WAY]}]},
    "peers": {"planned": int, "rows": [dict], "missing": dict, "versions": dict},
}
REPORT = {
    "format": TEXT,
    "version": int,
    "header": {
        "device": {
            **dict.fromkeys(("summary", "driver", "backend"), TEXT),
            "software": bool,
            "limits": dict,
            "features": [TEXT],
        },
        "machine": {"processor": TEXT, "cores": int, "memory_gib": (int, type(None)), "system": TEXT},
        "versions": dict,
        "clock": TEXT,
        "clock_reason": ANY_TEXT,
        "options": {"sections": [TEXT], "most_elements": int},
        "time": TEXT,
        "tuning": dict,
    },
    "budget_seconds": NUMBER,
    "seconds": NUMBER,
    "finished": bool,
    "sections": dict,
}


def check(value: Any, form: Any, where: str = "report") -> None:
    """Assert that a value of JSON has a form: a type, types, a list of one form, or names with theirs.

    Names with a question mark are not in reports of earlier versions.
    """
    if isinstance(form, dict):
        assert isinstance(value, dict), where
        forms = {name.rstrip("?"): one for name, one in form.items()}
        assert value.keys() | {name.rstrip("?") for name in form if name.endswith("?")} == forms.keys(), where
        for name in value:
            check(value[name], forms[name], f"{where}.{name}")
    elif isinstance(form, list):
        assert isinstance(value, list), where
        for number, one in enumerate(value):
            check(one, form[0], f"{where}[{number}]")
    else:
        assert isinstance(value, form), where


def check_report(content: Any) -> None:
    check(content, REPORT)
    assert (content["format"], content["version"]) == (command.FORMAT, command.VERSION)
    for name, section in content["sections"].items():
        check(section, {"seconds": NUMBER, "given_seconds": NUMBER, "error": ANY_TEXT, "found": (dict, type(None))})
        if section["found"] is not None:
            check(section["found"], FOUND[name], name)


def written(folder: Path) -> tuple[Any, str]:
    """Return the content of a report, and its page."""
    (data,), (text,) = folder.glob("*.json"), folder.glob("*.md")
    assert data.stem == text.stem
    return json.loads(data.read_text(encoding="utf-8")), text.read_text(encoding="utf-8")


def report(folder: Path, device: Device, *options: str) -> tuple[int, Any, str]:
    """Run the command in this process; return its status, the report's content and its page."""
    index = str(device.description.index)
    status = command.main(["--device", index, "--output", str(folder), "--seconds", "1", *options])
    return status, *written(folder)


class TestReport:
    def test_a_tiny_budget(self, tmp_path: Path, device: Device, capsys: pytest.CaptureFixture[str]) -> None:
        status, content, text = report(tmp_path / "new" / "folder", device)
        assert status == 0
        check_report(content)
        assert content["finished"] is True
        assert list(content["sections"]) == ["verify", "rows", "tune", "kernels", "peers"]
        header, found = content["header"], {name: one["found"] for name, one in content["sections"].items()}
        assert header["device"]["summary"] == device.summary
        assert header["options"]["most_elements"] == command.most_elements(device.description.is_software, 1)
        assert found["verify"]["planned"] > found["verify"]["cases"] > 0
        assert found["verify"]["stopped"] == "the 0 s for them were over"
        assert found["verify"]["probes"]
        first = found["rows"]["rows"][0]
        assert first["ledger_share"] == pytest.approx(first["traffic"] * first["share"])
        assert found["rows"]["planned"] > len(found["rows"]["rows"])
        assert {one["threshold"] for one in found["tune"]["decisions"]} <= header["tuning"].keys()
        assert {*found["peers"]["missing"], *found["peers"]["versions"]} == {*resident.RESIDENT}
        out, err = capsys.readouterr()
        assert out == ""
        assert f"  rows: 0 of {found['rows']['planned']}: " in err
        assert err.count("  wrote ") == 2
        for title in (
            "The reference's bits",
            "Rows against a copy",
            "What tuning would change",
            "The same rows",
            "Other libraries",
        ):
            assert f"\n## {title}" in text
        assert ("**A software device.**" in text) == device.description.is_software
        assert f"| {first['class'] or first['name']}" in text

    def test_the_cases_of_verify_are_shared_among_processes(
        self, tmp_path: Path, device: Device, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked = []

        def verified(*_: Any, jobs: int, **__: Any) -> Any:
            asked.append(jobs)
            raise RuntimeError("enough")

        monkeypatch.setattr(sections, "verified", verified)
        report(tmp_path, device, "--sections", "verify", "--jobs", "3")
        report(tmp_path, device, "--sections", "verify")
        assert asked == [3, default_jobs(device, 10**6)]

    def test_other_processes_do_not_have_what_stands_for_wgpu_here(
        self, tmp_path: Path, device: Device, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(Device, "implementation", "Dawn")
        with pytest.raises(SystemExit):
            report(tmp_path, device, "--sections", "verify", "--jobs", "3")
        assert "--jobs 3 would not verify Dawn" in " ".join(capsys.readouterr().err.split())

    def test_a_section_that_fails_is_written_and_the_rest_goes_on(
        self, tmp_path: Path, device: Device, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def failing(task: sections.Task) -> Iterator[Any]:
            yield {"planned": 1, "rows": [], "failed": []}
            raise RuntimeError("the driver\nhas had enough")

        monkeypatch.setattr(command, "SECTIONS", {**command.SECTIONS, "rows": sections.Section(failing, 1)})
        status, content, text = report(tmp_path, device, "--sections", "rows,tune")
        assert status == 1
        check_report(content)
        assert content["sections"]["rows"]["error"] == "RuntimeError: the driver has had enough"
        assert content["sections"]["rows"]["found"]["planned"] == 1
        assert content["sections"]["tune"]["error"] is None
        assert content["sections"]["tune"]["found"]["decisions"]
        assert "**Failed**: RuntimeError: the driver has had enough" in text

    def test_a_row_that_fails_is_written_and_the_others_are_measured(
        self, tmp_path: Path, device: Device, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rows = [Row("sum", "float32", shape, 0) for shape in ((64,), (8, 8), (4, 16))]
        monkeypatch.setattr(sections, "groups", lambda most: [rows, [Row("round", "float32", (32,))]])
        monkeypatch.setattr(sections, "sizes", lambda most: rows)
        expected = Data.expected

        def failing(self: Data, row: Row) -> Any:
            if row == rows[1]:
                raise RuntimeError("lost")
            return expected(self, row)

        monkeypatch.setattr(Data, "expected", failing)
        status, content, text = report(tmp_path, device, "--sections", "rows", "--seconds", "600")
        assert status == 1
        check_report(content)
        found = content["sections"]["rows"]["found"]
        assert [row["name"] for row in found["rows"]] == [row.name for row in (rows[0], rows[2])] + ["round float32 32"]
        assert found["failed"] == [{"name": rows[1].name, "error": "RuntimeError: lost"}]
        assert [row["size"] for row in found["rows"]] == [True, True, False]
        assert f"| {rows[1].name} | RuntimeError: lost |" in text

    def test_rows_that_the_host_cannot_hold_are_not_begun(
        self, tmp_path: Path, device: Device, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        large, small = Row("sum", "float32", (2**31,), 0), Row("sum", "float32", (64,), 0)
        monkeypatch.setattr(sections, "groups", lambda most: [[large], [small]])
        monkeypatch.setattr(sections, "machine", lambda: {"memory_gib": 4})
        found = report(tmp_path, device, "--sections", "rows")[1]["sections"]["rows"]["found"]
        reason = "needs 48 GiB of the computer's memory, which has 4"
        assert found["failed"] == [{"name": large.name, "error": reason}]
        assert [row["name"] for row in found["rows"]] == [small.name]

    def test_without_copies_the_rows_of_a_size_fail_and_the_next_are_measured(
        self, tmp_path: Path, device: Device, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rows = [Row("sum", "float32", shape, 0) for shape in ((63,), (9, 7), (64,))]
        monkeypatch.setattr(sections, "groups", lambda most: [rows[:2], rows[2:]])
        copies = Runner._copies

        def failing(self: Runner, copy: Row, *rest: Any) -> Iterator[Any]:
            if copy.elements == 63:
                raise RuntimeError("no memory")
            return copies(self, copy, *rest)

        monkeypatch.setattr(Runner, "_copies", failing)
        found = report(tmp_path, device, "--sections", "rows")[1]["sections"]["rows"]["found"]
        assert found["failed"] == [{"name": row.name, "error": "RuntimeError: no memory"} for row in rows[:2]]
        assert [row["name"] for row in found["rows"]] == [rows[2].name]

    def test_wrong_bits_have_a_status_and_are_told(
        self, tmp_path: Path, device: Device, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reference, "first_difference", lambda *_: "[5]: 1 against 2")
        status, content, text = report(tmp_path, device, "--sections", "rows")
        assert status == 1
        rows = content["sections"]["rows"]["found"]["rows"]
        assert rows[0]["difference"] == "[5]: 1 against 2"
        assert "**WRONG**: [5]: 1 against 2 |" in text
        assert f"- 0 of {len(rows)} measured rows have the reference's bits\n" in text

    def test_a_stop_keeps_what_there_is(
        self, tmp_path: Path, device: Device, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def stopped(task: sections.Task) -> Iterator[Any]:
            yield {"clock": "gpu", "decisions": []}
            raise KeyboardInterrupt

        monkeypatch.setattr(command, "SECTIONS", {**command.SECTIONS, "tune": sections.Section(stopped, 1)})
        status, content, text = report(tmp_path, device, "--sections", "rows,tune,peers")
        assert status == 130
        check_report(content)
        assert content["finished"] is False
        assert content["sections"]["rows"]["found"]["rows"]
        assert content["sections"]["tune"]["found"] == {"clock": "gpu", "decisions": []}
        assert "peers" not in content["sections"]
        assert "**stopped early**" in text
        assert "interrupted; " in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (("--sections", "rows,speed"), "there is no section 'speed'; there are verify, rows, tune, kernels, peers"),
            (("--seconds", "0"), "--seconds is 0: give a number above 0"),
            (("--seconds", "nan"), "--seconds is nan: give a number above 0"),
            (("--jobs", "0"), "'0' is not a number of processes from 1 to 16"),
            (("--device", "frob"), "device 'frob' is in no adapter's summary"),
        ],
    )
    def test_bad_usage(self, options: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            command.main(options)
        assert message in " ".join(capsys.readouterr().err.split())


class TestRows:
    def test_every_class_of_the_ledger_is_measured_once(self) -> None:
        found = classes(2**28)
        assert len(found) == (len(SHAPES) + len(OTHERS)) * len(TYPES)
        assert all(row.name == name for row, name in found.items())
        every = [row for group in groups(2**28) for row in group]
        assert len(every) == len(set(every))
        assert {*found, *sizes(2**28)} == {*every}

    def test_sizes_go_from_a_million_to_what_a_report_is_for(self) -> None:
        rows = sizes(2**28)
        assert sorted({row.elements for row in rows}) == [2**20, 2**22, 2**24, 2**26, 2**28]
        assert {(row.operator, row.axis, len(row.shape)) for row in rows} == {
            *(("sum", 0, 1), ("sum", 0, 2), ("sum", 1, 2), ("round", None, 1))
        }
        assert sorted({row.elements for row in sizes(2**17)}) == [2**9, 2**11, 2**13, 2**15, 2**17]

    def test_rows_of_one_size_are_together_and_the_largest_come_last(self) -> None:
        every = groups(2**28)
        assert all(len({(row.type, row.elements) for row in group}) == 1 for group in every)
        late = [group[0].elements > 2**26 for group in every]
        assert late == sorted(late)
        assert every[0][0].type == "float32"

    @pytest.mark.parametrize("most", [2**12, 2**20, 2**28])
    def test_all_rows_fit(self, most: int) -> None:
        for row in [*classes(most), *sizes(most), *peer_rows(most)]:
            assert row.elements <= most
            assert row.axis is None or row.axis < len(row.shape)

    def test_a_cut_shape_is_still_of_its_class(self) -> None:
        assert fitted((2**22, 3), 2**14) == (2**12, 3)
        assert fitted((65_536, 256), 2**20) == (4096, 256)
        assert math.prod(fitted((256, 256, 256), 2**18)) == 2**18

    def test_less_time_has_smaller_arrays(self) -> None:
        assert command.most_elements(False, command.SECONDS) == 2**28
        assert command.most_elements(True, 1000) == 2**22
        assert command.most_elements(False, command.SECONDS / 5) == 2**25
        assert command.most_elements(True, 1e-9) == 2**12


class TestKernels:
    """The same rows by other kernels."""

    GPU = Limits(software=False)

    def test_each_way_is_another_plan(self) -> None:
        for row in kernel_rows(2**28):
            found = ways(row, self.GPU)
            assert next(iter(found)) == "chosen"
            shapes = {"strips, widest", "strips, narrowest"}
            assert {*found} - {"chosen"} <= {*policy_of(self.GPU).kernels} | shapes
            assert len({*found.values()}) == len(found)
        many = ways(Row("sum", "float32", (4096, 4096), 0), self.GPU)
        assert {*many} == {"chosen", "rows", "slices", "strips, narrowest"}  # the widest are chosen
        lanes = [dict(many[name].passes[0].pipeline.constants)["lanes"] for name in ("chosen", "strips, narrowest")]
        assert lanes == [16, 4]

    def test_what_an_invocation_would_do_alone_is_left_out(self) -> None:
        assert "slices" in ways(Row("sum", "float32", (2**9, 2**12), 1), self.GPU)
        assert "slices" not in ways(Row("sum", "float32", (2**24,), 0), self.GPU)

    def test_there_is_nothing_to_look_back_for_in_one_tile(self) -> None:
        assert "lookback" in ways(Row("sum", "float32", (512, 4097), 1), self.GPU)
        assert "lookback" not in ways(Row("sum", "float32", (512, 4096), 1), self.GPU)

    def test_rows_of_all_classes_once(self) -> None:
        rows = kernel_rows(2**28)
        assert max(row.elements for row in rows) == 2**24
        assert len(rows) == len({*rows})
        assert {row.type for row in rows} == {"float32"}
        assert all(row.elements <= 2**16 for row in kernel_rows(2**16))

    def test_the_ways_of_a_row(self, device: Device) -> None:
        clock, row = Clock(device), Row("sum", "float32", (2, 5000), 1)
        (found,) = compared(device, [row], clock)
        assert found["name"] == row.name
        assert found["lag"] == 1 or clock.is_of_gpu
        assert [way["kernel"] for way in found["kernels"]] == [*ways(row, device.limits)]
        chosen = found["kernels"][0]
        assert chosen["times_chosen"] == 1
        for way in found["kernels"]:
            check(way, WAY)
            assert (way["difference"], way["failed"]) == (None, None)
            assert way["seconds"] > 0
            assert way["dispatches"]
            assert all((part["seconds"] is not None) == (clock.kind == "gpu") for part in way["dispatches"])

    def test_a_slow_clock_is_told(self) -> None:
        way: dict[str, Any] = dict.fromkeys(WAY) | {"kernel": "chosen", "dispatches": []}
        rows = [{"name": "slow", "lag": 1.5, "kernels": [way]}, {"name": "fast", "lag": 1.1, "kernels": [way]}]
        lines = page._kernels({"clock": "gpu", "planned": 3, "rows": [*rows, {"name": "old", "kernels": [way]}]})
        assert [line.split(" | ")[0] for line in lines[-3:]] == ["| slow (slow clock: 1.50 x)", "| fast", "| old"]
        rung = {"value": 64, "within": 0.001, "beyond": 0.002}
        decision = {"threshold": "many_rows", "default": 128, "chosen": 128, "gain": 1.0}
        lines = page._tune({"clock": "gpu", "decisions": [decision | {"rungs": [rung | {"lag": 1.2}, rung]}]})
        assert lines[-1].endswith("64: 1, 2 (slow clock: 1.20 x); 64: 1, 2 |")

    def test_wrong_bits_and_failures_are_told(
        self, tmp_path: Path, device: Device, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rows = [Row("sum", "float32", (64,), 0), Row("sum", "float32", (65,), 0)]
        monkeypatch.setattr(sections, "kernel_rows", lambda most: rows)
        differences = iter(["[5]: 1 against 2", RuntimeError("no\nmemory")])

        def different(*_: object) -> str:
            found = next(differences)
            if isinstance(found, str):
                return found
            raise found

        monkeypatch.setattr(reference, "first_difference", different)
        monkeypatch.setattr(
            "benchmarks.gpu_report.kernels.ways", lambda row, limits: {"chosen": ways(row, limits)["chosen"]}
        )
        status, content, text = report(tmp_path, device, "--sections", "kernels", "--seconds", "60")
        assert status == 1
        check_report(content)
        first, second = (row["kernels"][0] for row in content["sections"]["kernels"]["found"]["rows"])
        assert (first["difference"], first["failed"]) == ("[5]: 1 against 2", None)
        assert (second["difference"], second["failed"]) == (None, "RuntimeError: no memory")
        assert second["seconds"] is None
        assert "**WRONG**: [5]: 1 against 2 |" in text
        assert "**failed**: RuntimeError: no memory |" in text

    def test_what_another_way_has_left_is_no_result(self, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
        class Lazy(Clock):
            """Runs the first way alone."""

            ran: Any = None

            def seconds(self, work: Any) -> float:
                self.ran = self.ran or work
                return super().seconds(work) if work is self.ran else 1e-9

            def each(self, work: Any) -> list[float]:
                return []

        row = Row("sum", "float32", (2, 5000), 1)
        plan = ways(row, device.limits)["chosen"]
        monkeypatch.setattr("benchmarks.gpu_report.kernels.ways", lambda *_: {"chosen": plan, "idle": plan})
        (found,) = compared(device, [row], Lazy(device))
        chosen, idle = found["kernels"]
        assert (chosen["difference"], idle["failed"]) == (None, None)
        assert idle["difference"] is not None
        content = {"rows": [found], "clock": "gpu", "planned": 1}
        about = {"finished": True, "seconds": 1.0, "budget_seconds": 1.0}
        lines = page._summary(about | {"sections": {"kernels": {"error": None, "found": content}}})
        assert "another kernel is clearly faster for 0 of 1 rows" in [*lines]


class Events:
    """A GPU's clock that takes a millisecond for everything."""

    record = synchronize = staticmethod(lambda: None)

    def __init__(self, enable_timing: bool = True) -> None:
        pass

    def elapsed_time(self, other: Events) -> float:
        return 1.0


class Tensor:
    """As much of PyTorch's as is called; the data is NumPy's."""

    def __init__(self, x: np.ndarray) -> None:
        self.x, self.dtype = x, x.dtype

    def to(self, where: str) -> Tensor:
        assert where == "cuda"
        return Tensor(self.x.copy())

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> np.ndarray:
        return self.x


def torch_of(is_there: bool = True) -> SimpleNamespace:
    return SimpleNamespace(
        cuda=SimpleNamespace(is_available=lambda: is_there, Event=Events),
        from_numpy=Tensor,
        empty_like=lambda x: Tensor(np.empty_like(x.x)),
        cumsum=lambda x, axis, dtype, out: np.cumsum(x.x, axis, dtype, out.x),
        cumprod=lambda x, axis, dtype, out: np.cumprod(x.x, axis, dtype, out.x),
        round=lambda x, out: np.rint(x.x, out.x),
    )


def cupy_of() -> SimpleNamespace:
    runtime = SimpleNamespace(getDeviceCount=lambda: 1, CUDARuntimeError=RuntimeError)
    cuda = SimpleNamespace(runtime=runtime, Event=Events, get_elapsed_time=lambda start, end: 1.0)
    functions = {name: getattr(np, name) for name in ("empty_like", "cumsum", "cumprod", "rint")}
    return SimpleNamespace(cuda=cuda, asarray=np.array, asnumpy=np.asarray, **functions)


class TestPeers:
    """That other libraries are called as they document it; none of them is here with a GPU."""

    @pytest.mark.parametrize("name", ["torch", "cupy"])
    def test_results_and_the_gpus_milliseconds(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, name, torch_of() if name == "torch" else cupy_of())
        prepare = resident.RESIDENT[f"{name}-resident"].load()
        x = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)
        for row, expected in (
            (Row("sum", "float32", x.shape, 1), np.cumsum(x, 1)),
            (Row("product", "float32", x.shape, 0), np.cumprod(x, 0)),
            (Row("round", "float32", x.shape), np.rint(x)),
        ):
            call = prepare(row, x)
            np.testing.assert_array_equal(call(), expected)
            assert isinstance(call, resident.OnDevice)
            assert call.seconds() == 1e-3

    def test_no_gpu_and_no_library_are_a_sentence(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "torch", torch_of(is_there=False))
        with pytest.raises(MissingPeerError, match="this PyTorch finds no GPU: install a build for CUDA or ROCm"):
            resident.RESIDENT["torch-resident"].load()
        for name, said in (("torch", "PyTorch is not installed"), ("cupy", "CuPy is not installed")):
            monkeypatch.setitem(sys.modules, name, None)
            with pytest.raises(MissingPeerError, match=said):
                resident.RESIDENT[f"{name}-resident"].load()

    def test_this_package_by_the_devices_clock(self, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("dmlgpu.default_device", lambda: device)
        has = "timestamp-query" in device.gpu_device.features
        if not has:
            with pytest.raises(MissingPeerError, match="the device has no timestamps"):
                resident.RESIDENT["dmlgpu-resident"].load()
            return
        prepare = resident.RESIDENT["dmlgpu-resident"].load()
        for axis in (0, 1):
            x = np.arange(600, dtype=np.int32).reshape(20, 30)
            call = prepare(Row("sum", "int32", x.shape, axis), x)
            np.testing.assert_array_equal(call(), np.cumsum(x, axis, dtype=np.int32))
            assert isinstance(call, resident.OnDevice)
            assert call.seconds() > 0

    def test_the_page_has_ratios(self) -> None:
        rows = [
            {
                "name": "sum",
                "samples": {"dmlgpu-resident": [1e-3], "torch-resident": [2e-3]},
                "failed": {"cupy-resident": "TypeError: no"},
                "times_ours": {"dmlgpu-resident": 1.0, "torch-resident": 2.0},
            }
        ]
        found = {"rows": rows, "missing": {"x": "not there"}, "versions": dict.fromkeys(resident.RESIDENT, "1")}
        lines = page._peers(found)
        assert "- x is left out: not there" in lines
        assert lines[-1] == "| sum | 1 | 2 (2.00) | TypeError: no |"


class TestKeptReports:
    def test_the_page_about_performance_names_each(self) -> None:
        said = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
        kept = sorted((ROOT / "benchmarks" / "results").glob("*.json"))
        for path in kept:
            content = json.loads(path.read_text(encoding="utf-8"))
            check_report(content)
            assert path.with_suffix(".md").exists()
            assert path.stem in said
        software = [json.loads(path.read_text(encoding="utf-8"))["header"]["device"]["software"] for path in kept]
        assert ("No GPU has been measured" in said) == all(software)
