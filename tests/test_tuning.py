"""``dmlgpu tune``: thresholds change no bits; what is measured decides; what is kept counts where it was measured."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dmlgpu import reference
from dmlgpu.bench import clock as clocks
from dmlgpu.bench import tune as tunes
from dmlgpu.bench.clock import Clock
from dmlgpu.bench.tune import QUESTIONS, Decision, Question, Rung, decide
from dmlgpu.cli import main
from dmlgpu.cli import tune as command
from dmlgpu.dtypes import by_name
from dmlgpu.errors import ArgumentError, DeviceMemoryError, TuningWarning
from dmlgpu.layout import Layout
from dmlgpu.planning.kernels import MAX_SERIAL_STEPS, check_pass, serial_steps
from dmlgpu.planning.plan import plan_problem
from dmlgpu.planning.problem import Operator, scan_problem
from dmlgpu.planning.tuning import DEFAULTS, Tuning
from dmlgpu.planning.windows import Limits
from dmlgpu.runtime import tuned
from dmlgpu.runtime.device import Buffer, Device

from .cli_runner import one_line
from .harness import changed, run

SHAPES = [((3, 9000), 1), ((40, 300), 1), ((700, 24), 1), ((300, 40), 0), ((5000, 6), 0), ((20_000,), 0)]


def random_tuning(random: Random) -> Tuning:
    """Return thresholds around the sizes of `SHAPES`, and far from them."""
    return Tuning(**{field.name: random.choice((0, 1, 2**32, 4 ** random.randrange(1, 9))) for field in fields(Tuning)})


class TestBits:
    @pytest.mark.parametrize("seed", range(6))
    def test_any_tuning_gives_the_same_bits(self, seed: int, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
        random = Random(seed)
        for software in (True, False):
            limits = replace(device.limits, tuning=random_tuning(random), software=software)
            monkeypatch.setattr(device, "limits", limits)
            for name in ("float32", "uint8"):
                shape, axis = random.choice(SHAPES)
                x = np.random.default_rng(seed).integers(0, 100, shape).astype(name)
                x[(*(0 for _ in shape[:-1]), -1)] = 1
                operator = random.choice(list(Operator))
                layout = Layout.packed(shape)
                problem = scan_problem(by_name(name), operator, layout, layout, axis=axis)
                got = run(device, problem, x, layout, replace(layout), x.dtype)
                if operator is Operator.MAXIMUM:
                    expected = np.maximum.accumulate(x, axis=axis)
                else:
                    expected = reference.cumulative(x, operator.value, axis=axis)
                assert got.tobytes() == np.ascontiguousarray(expected).tobytes(), (limits.tuning, shape, axis)

    def test_any_tuning_makes_legal_plans(self) -> None:
        random, kernels = Random(1), set()
        for _ in range(150):
            limits = changed(Limits(), software=random.random() < 0.5, cores=4, tuning=random_tuning(random))
            shape, axis = random.choice([*SHAPES, ((2**24,), 0), ((4096, 4096), 0), ((2**18, 64), 1)])
            layout = Layout.packed(shape)
            for name in ("float32", "float16", "int64"):
                problem = scan_problem(by_name(name), Operator.SUM, layout, layout, axis=axis)
                for one in plan_problem(problem, limits, one_buffer=random.random() < 0.3).passes:
                    check_pass(one)
                    assert serial_steps(one) <= MAX_SERIAL_STEPS
                    kernels.add(one.pipeline.kernel)
        assert {"scan_slices", "scan_rows", "scan_tiles", "scan_serial_tiles"} <= kernels

    def test_the_plan_reads_the_thresholds(self) -> None:
        found = [
            plan_problem(MANY.problem(64, Limits()), Limits(tuning=Tuning(many_rows=many))).passes[0]
            for many in (64, 65)
        ]
        assert [one.pipeline.kernel for one in found] == ["scan_rows", "scan_tiles"]
        assert "64 slices, at least 64" in found[0].why

    @pytest.mark.parametrize("value", [-1, 2**32 + 1, 1.5, True, "256", None])
    def test_a_threshold_is_an_integer(self, value: Any) -> None:
        with pytest.raises(ArgumentError, match=r"many_rows is .*; give an integer from 0 to"):
            Tuning(many_rows=value)


MANY = next(question for question in QUESTIONS if question.threshold == "many_rows")
SHORT = next(question for question in QUESTIONS if question.threshold == "short_slice")


def rungs(question: Question, best: int, factor: float) -> list[Rung]:
    """Return times as if `best` were the right threshold, and the other kernel so many times as slow."""
    return [
        Rung(value, *((1.0, factor) if question.takes(best, value) else (factor, 1.0))) for value in question.values
    ]


class TestDecisions:
    @pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.threshold)
    def test_the_fastest_threshold_is_chosen(self, question: Question) -> None:
        for best in question.candidates:
            found = decide(question, rungs(question, best, 2.0))
            default = getattr(DEFAULTS, question.threshold)
            is_alike = all(question.takes(best, value) == question.takes(default, value) for value in question.values)
            assert found.chosen == (default if is_alike else best)
            assert found.gain == pytest.approx(1.0 if is_alike else 2.0)

    @pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.threshold)
    def test_the_default_stays_without_a_clear_gain(self, question: Question) -> None:
        default = getattr(DEFAULTS, question.threshold)
        assert default in question.values or default > max(question.values)
        for best in question.candidates:
            assert decide(question, rungs(question, best, 1.04)).chosen == default
        assert decide(question, []) == Decision(question.threshold, default, default, 1.0, ())

    @pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.threshold)
    def test_both_sides_are_other_plans(self, question: Question) -> None:
        limits = changed(Limits(), software=question.software, cores=4)
        for value in question.values:
            problem = question.problem(value, limits)
            plans = [
                plan_problem(problem, replace(limits, tuning=replace(DEFAULTS, **{question.threshold: threshold})))
                for threshold in (value, question.beyond(value))
            ]
            assert question.takes(value, value)
            assert not question.takes(question.beyond(value), value)
            assert plans[0] != plans[1], value
            nbytes = 4 * (tunes._SOFTWARE_ELEMENTS if question.software else tunes._MOST_ELEMENTS)  # of both buffers
            for one in (*plans[0].passes, *plans[1].passes):
                assert all(part.end <= nbytes for part in (one.input, one.output) if part), value

    def test_every_threshold_has_a_question(self) -> None:
        assert {question.threshold for question in QUESTIONS} == {field.name for field in fields(Tuning)}

    @pytest.mark.parametrize("software", [True, False])
    def test_measuring(self, software: bool, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whatever the times are, a threshold is one of the candidates, and each value has a time for both kernels."""
        monkeypatch.setattr(device, "limits", replace(device.limits, software=software))
        monkeypatch.setattr(tunes, "_SAMPLES", 1)
        some = ("few_elements",) if software else ("many_rows", "lookback_elements")
        questions = [question for question in QUESTIONS if question.threshold in some]
        monkeypatch.setattr(tunes, "QUESTIONS", questions)
        for question, found in zip(questions, tunes.tune(device, Clock(device), 600), strict=True):
            assert found.threshold == question.threshold
            assert found.chosen in {*question.candidates, found.default}
            assert [rung.value for rung in found.rungs] == list(question.values)
            assert all(rung.within > 0 and rung.beyond > 0 for rung in found.rungs)

    def test_what_memory_has_no_room_for_is_not_measured(self, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
        asked, allocate = [], device.allocate

        def with_room_for_one(nbytes: int) -> Buffer:
            asked.append(nbytes)
            if nbytes > 2**24 or (nbytes == 2**24 and asked.count(nbytes) == 2):
                raise DeviceMemoryError("no room")
            return allocate(nbytes)

        question = next(question for question in QUESTIONS if question.threshold == "lookback_elements")
        monkeypatch.setattr(device, "limits", replace(device.limits, software=False))
        monkeypatch.setattr(device, "allocate", with_room_for_one)
        monkeypatch.setattr(tunes, "QUESTIONS", [question])
        monkeypatch.setattr(tunes, "_SAMPLES", 1)
        monkeypatch.setattr(tunes, "_ELEMENTS", 2**20)
        (found,) = tunes.tune(device, Clock(device), 600)
        assert asked == [2**28, 2**26, 2**24, 2**24, 2**22, 2**22]
        assert [rung.value for rung in found.rungs] == [2**18, 2**20]
        monkeypatch.setattr(tunes, "_ELEMENTS", 2**23)
        with pytest.raises(DeviceMemoryError):
            next(tunes.tune(device, Clock(device), 600))

    def test_any_number_is_shown_as_such(self) -> None:
        row = command._row(Decision("lookback_elements", 2**32, 2**20, 1.5, (Rung(2**22, 3.0, 2.0),)))
        assert row == ("lookback_elements", "any", "1048576", "1.50 times as fast", "at 1 size")

    def test_without_time_the_defaults_stay(self, device: Device) -> None:
        for found in tunes.tune(device, Clock(device), 0):
            assert (found.chosen, found.rungs) == (found.default, ())


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a cache folder of our own count, and return the tuning file in it."""
    monkeypatch.delenv("DMLGPU_TUNING")
    path = tmp_path / "cache" / "dmlgpu" / "tuning.json"
    monkeypatch.setattr(tuned, "tuning_file", lambda: path)
    return path


def keep(path: Path, device: Device, **changed: Any) -> None:
    """Write a file with a tuning of the device, some of whose entry is changed."""
    content = tuned.with_entry({}, device.description, Tuning(many_rows=77), [])
    content["adapters"][device.summary] |= changed
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


class TestFile:
    def test_what_is_kept_counts(self, cache: Path, device: Device) -> None:
        keep(cache, device)
        assert tuned.stored_tuning(device.description) == Tuning(many_rows=77)
        with Device(device.description) as fresh:
            assert fresh.limits.tuning == Tuning(many_rows=77)

    def test_no_file_means_the_defaults(self, cache: Path, device: Device) -> None:
        assert tuned.stored_tuning(device.description) == DEFAULTS

    @pytest.mark.parametrize("name", ["driver", "wgpu", "dmlgpu", "cores"])
    def test_what_is_stale_does_not_count(self, name: str, cache: Path, device: Device) -> None:
        keep(cache, device, **{name: "another"})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert tuned.stored_tuning(device.description) == DEFAULTS

    def test_another_adapter_has_its_own(self, cache: Path, device: Device) -> None:
        keep(cache, device)
        other = replace(device.description, summary="another adapter")
        assert tuned.stored_tuning(other) == DEFAULTS

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            "[]",
            '{"format": 1}',
            '{"format": 1, "adapters": []}',
            "\x00\xff",
            '{"format": 1, "adapters": {"SUMMARY": []}}',
            '{"format": 1, "adapters": {"SUMMARY": {}}}',
        ],
    )
    def test_what_is_damaged_is_left_out_with_a_warning(self, text: str, cache: Path, device: Device) -> None:
        cache.parent.mkdir(parents=True)
        cache.write_bytes(text.replace("SUMMARY", device.summary).encode("latin-1"))
        with pytest.warns(TuningWarning, match=r"is damaged .*run `dmlgpu tune` again, or set DMLGPU_TUNING=off"):
            assert tuned.stored_tuning(device.description) == DEFAULTS

    @pytest.mark.parametrize("thresholds", [None, [], {"unknown": 1}, {"many_rows": "many"}, {"many_rows": -1}])
    def test_damaged_thresholds(self, thresholds: Any, cache: Path, device: Device) -> None:
        keep(cache, device, thresholds=thresholds)
        with pytest.warns(TuningWarning):
            assert tuned.stored_tuning(device.description) == DEFAULTS

    def test_a_file_that_cannot_be_read(self, cache: Path, device: Device) -> None:
        cache.mkdir(parents=True)
        with pytest.warns(TuningWarning, match="not an ordinary file"):
            assert tuned.stored_tuning(device.description) == DEFAULTS

    def test_a_file_of_any_size_is_not_read(self, cache: Path, device: Device) -> None:
        cache.parent.mkdir(parents=True)
        with cache.open("wb") as file:
            file.truncate(2**40)  # which takes no room
        with pytest.warns(TuningWarning, match="is damaged .it has 1099511627776 bytes, and 4194304 are the most"):
            assert tuned.stored_tuning(device.description) == DEFAULTS
        assert main(["tune", "--forget"]) == 0
        assert tuned.read_file(cache) == {}

    def test_a_key_that_is_missing_is_named(self, cache: Path, device: Device) -> None:
        keep(cache, device)
        content = json.loads(cache.read_text())
        del content["adapters"][device.summary]["driver"]
        cache.write_text(json.dumps(content))
        with pytest.warns(TuningWarning, match="is damaged .it has no 'driver'.") as caught:
            tuned.stored_tuning(device.description)
        assert caught[0].filename == __file__

    def test_off_leaves_it_out(self, cache: Path, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
        keep(cache, device)
        monkeypatch.setenv("DMLGPU_TUNING", "off")
        assert tuned.stored_tuning(device.description) == DEFAULTS

    def test_another_value_is_refused(self, cache: Path, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DMLGPU_TUNING", "of")
        with pytest.raises(ArgumentError, match="DMLGPU_TUNING is 'of'; it is 'off', or not set"):
            tuned.stored_tuning(device.description)

    def test_a_folder_that_cannot_be_looked_into_has_no_file(
        self, device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Path.exists raises there, before Python 3.12, and where a name is too long."""
        monkeypatch.delenv("DMLGPU_TUNING")
        monkeypatch.setattr(tuned, "sys", SimpleNamespace(platform="linux"))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ("a" * 5000)))
        assert tuned.stored_tuning(device.description) == DEFAULTS

    def test_what_is_no_ordinary_file_is_not_read(self, cache: Path, device: Device) -> None:
        cache.parent.mkdir(parents=True)
        make_pipe: Any = getattr(os, "mkfifo", Path.mkdir)
        make_pipe(cache)
        with pytest.warns(TuningWarning, match="cannot be read .not an ordinary file.; its thresholds are left out"):
            assert tuned.stored_tuning(device.description) == DEFAULTS

    def test_deep_json_is_damaged(self, cache: Path, device: Device) -> None:
        cache.parent.mkdir(parents=True)
        cache.write_text('{"format": 1, "adapters": ' + "[" * 200_000)
        with pytest.warns(TuningWarning, match="is damaged .*; its thresholds are left out"):
            assert tuned.stored_tuning(device.description) == DEFAULTS

    def test_the_file_is_in_the_users_cache_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for variable in ("HOME", "USERPROFILE"):  # of POSIX and of Windows, whichever this is
            monkeypatch.setenv(variable, str(tmp_path))
        for platform, variable, folder in (
            ("linux", "XDG_CACHE_HOME", ".cache"),
            ("darwin", None, "Library/Caches"),
            ("win32", "LOCALAPPDATA", "AppData/Local"),
        ):
            monkeypatch.setattr(tuned, "sys", SimpleNamespace(platform=platform))
            if variable is not None:
                assert tuned.cache_variable() == variable
                monkeypatch.setenv(variable, str(tmp_path / "named"))
                assert tuned.tuning_file() == tmp_path / "named" / "dmlgpu" / "tuning.json"
                monkeypatch.delenv(variable)
            assert tuned.tuning_file() == tmp_path / folder / "dmlgpu" / "tuning.json"


def decided(device: Device, clock: Clock, seconds: float) -> Iterator[Decision]:
    yield decide(MANY, rungs(MANY, 64, 3.0))
    yield decide(SHORT, [])


class TestCommand:
    @pytest.fixture(autouse=True)
    def _decided(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(command, "tune", decided)

    def test_prints_and_keeps_what_was_decided(
        self, cache: Path, device: Device, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["tune"]) == 0
        out, _ = capsys.readouterr()
        row = next(line for line in out.splitlines() if line.startswith("many_rows"))
        assert row.split() == ["many_rows", "128", "64", "3.00", "times", "as", "fast", "at", "5", "sizes"]
        assert f"wrote {cache}; DMLGPU_TUNING=off leaves it out" in out
        assert tuned.stored_tuning(device.description) == Tuning(many_rows=64)

    @pytest.mark.parametrize("flags", [(), ("--json",)])
    def test_a_gpu_that_slowed_down_is_told(
        self, flags: tuple[str, ...], cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        slow = decide(MANY, [replace(rung, lag=1.0 + rung.value / 640) for rung in rungs(MANY, 64, 3.0)])
        monkeypatch.setattr(command, "tune", lambda *_: iter([slow]))
        assert main(["tune", *flags]) == 0
        lags = [1.0 + value / 640 for value in MANY.values]
        told = f"warning: slow clock: at {sum(lag > 1.1 for lag in lags)} of 5 sizes the GPU's processors took up to "
        assert f"{told}{max(lags):.2f} times as long as at their fastest" in capsys.readouterr().err

    def test_json(self, cache: Path, device: Device, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["tune", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["device"] == device.summary
        assert found["file"] == str(cache)
        assert [one["chosen"] for one in found["decisions"]] == [64, 256]
        assert [rung["value"] for rung in found["decisions"][0]["rungs"]] == list(MANY.values)

    def test_others_keep_theirs_and_a_damaged_file_is_replaced(self, cache: Path, device: Device) -> None:
        cache.parent.mkdir(parents=True)
        cache.write_text('{"format": 1, "adapters": {"another": {"driver": "x"}}}')
        assert main(["tune"]) == 0
        assert tuned.read_file(cache).keys() == {"another", device.summary}
        cache.write_text("{")
        assert main(["tune"]) == 0
        assert tuned.read_file(cache).keys() == {device.summary}

    def test_forget(self, cache: Path, device: Device, capsys: pytest.CaptureFixture[str]) -> None:
        keep(cache, device)
        assert main(["tune", "--forget"]) == 0
        assert "forgot what was measured" in capsys.readouterr().out
        assert tuned.stored_tuning(device.description) == DEFAULTS
        assert tuned.read_file(cache) == {}

    def test_forget_where_nothing_was_kept(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(tuned, "tuning_file", lambda: tmp_path / "dmlgpu" / "tuning.json")
        assert main(["tune", "--forget"]) == 0
        assert "nothing was kept of " in capsys.readouterr().out
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_that_cannot_be_written_to(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(command, "tune", None)  # nothing is measured before
        (tmp_path / "file").write_text("")
        monkeypatch.setattr(tuned, "tuning_file", lambda: tmp_path / "file" / "dmlgpu" / "tuning.json")
        assert main(["tune"]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert f"cannot write to the cache folder {tmp_path / 'file' / 'dmlgpu'}: " in err
        assert f"set {tuned.cache_variable()} to a folder that can be written to" in err

    def test_a_file_that_cannot_be_replaced(
        self, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(command, "tune", None)  # nothing is measured before
        cache.mkdir(parents=True)
        assert main(["tune"]) == 2
        assert f"cannot write {cache}: it exists and is not an ordinary file; set {tuned.cache_variable()}" in one_line(
            capsys.readouterr().err
        )

    def test_json_of_nothing(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["tune", "--forget", "--json"]) == 2
        assert "argument --json: not allowed with argument --forget" in one_line(capsys.readouterr().err)

    def test_two_at_a_time_keep_what_both_found(self, cache: Path, device: Device) -> None:
        adapters = [replace(device.description, summary=f"adapter {number}") for number in range(2)]
        cache.parent.mkdir(parents=True)

        def write(adapter: Any) -> None:
            for _ in range(40):
                command._write(command._writable_file(), SimpleNamespace(description=adapter), DEFAULTS, [])
                assert adapter.summary in tuned.read_file(cache)

        with ThreadPoolExecutor(2) as threads:
            list(threads.map(write, adapters))
        assert tuned.read_file(cache).keys() == {adapter.summary for adapter in adapters}

    @pytest.mark.parametrize(
        ("platform", "variable"), [("linux", "XDG_CACHE_HOME"), ("darwin", "HOME"), ("win32", "LOCALAPPDATA")]
    )
    def test_no_folder_at_all(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], platform: str, variable: str
    ) -> None:
        monkeypatch.setattr(tuned, "sys", SimpleNamespace(platform=platform))
        monkeypatch.setattr(tuned, "tuning_file", lambda: None)
        assert main(["tune"]) == 2
        assert f"this user has no folder for caches: set {variable} to a folder" in capsys.readouterr().err

    def test_without_timestamps_the_hosts_clock_counts(
        self, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(clocks, "timestamp_period", lambda gpu_device: None)
        assert main(["tune"]) == 0
        out, err = capsys.readouterr()
        assert "by the host's clock" in out
        assert err.count("the device has no timestamps: times are the host's, with submission and waiting") == 1

    def test_the_hosts_clock_can_be_asked_for(self, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["tune", "--wall"]) == 0
        out, err = capsys.readouterr()
        assert "by the host's clock" in out
        assert err.count("timestamps were not asked for: times are the host's, with submission and waiting") == 1

    def test_wrong_timestamps_keep_nothing(
        self, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def measured(device: Device, clock: Clock, seconds: float) -> Iterator[Decision]:
            yield from decided(device, clock, seconds)
            clocks.elapsed(np.zeros(2, np.uint64))

        monkeypatch.setattr(command, "tune", measured)
        assert main(["tune"]) == 2
        assert "use the host's clock (--wall)" in one_line(capsys.readouterr().err)
        assert not cache.exists()

    def test_info_shows_what_counts(
        self, cache: Path, device: Device, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["info"]) == 0
        assert "  tuning               the defaults\n" in capsys.readouterr().out
        monkeypatch.setattr(device, "limits", replace(device.limits, tuning=Tuning(many_rows=77)))
        assert main(["info"]) == 0
        assert "  tuning               many_rows 77\n" in capsys.readouterr().out
        assert main(["info", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["device"]["tuning"] == {"many_rows": 77}

    def test_off_is_said(
        self, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("DMLGPU_TUNING", "off")
        assert main(["tune"]) == 0
        assert "DMLGPU_TUNING=off is set: what is kept counts once it is not" in capsys.readouterr().err
