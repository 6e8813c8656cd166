"""The command line from end to end, on the device that the environment chooses."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

import dmlgpu
from dmlgpu import dtypes, reference
from dmlgpu.cli import _COMMANDS

from .cli_runner import Run, one_line, process, runner, same

PARTS = ("positional arguments", "commands", "other uses")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in an empty folder of its own."""
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


class TestHelp:
    @pytest.mark.parametrize("command", ["", *_COMMANDS, "bench compare"])
    def test_help_has_one_width_and_examples_first(
        self, run: Run, monkeypatch: pytest.MonkeyPatch, command: str
    ) -> None:
        helps = []
        for width in ("40", "200"):
            monkeypatch.setenv("COLUMNS", width)
            status, out, err = run(*command.split(), "--help")
            assert (status, err) == (0, "")
            helps.append(out)
        assert helps[0] == helps[1]
        assert out.startswith(f"usage: dmlgpu {command}")
        assert max(map(len, out.splitlines())) <= 80
        examples = out.index(f"\nexamples:\n  dmlgpu {command}")
        assert examples < min(out.index("\noptions:\n"), *(out.find(f"\n{part}:\n") % len(out) for part in PARTS))

    def test_help_is_what_no_command_prints(self, run: Run) -> None:
        assert run() == run("--help") == run("-h")

    def test_version(self, run: Run) -> None:
        assert run("--version") == (0, f"dmlgpu {dmlgpu.__version__}\n", "")

    def test_help_and_usage_errors_import_no_wgpu(self, tmp_path: Path) -> None:
        code = (
            "import sys; from dmlgpu.cli import main; "
            "print([main(['--version']), main(['cumsum', '--help']), main(['cumsum', 'x.npy', '--axis', 'z'])]); "
            "sys.exit('wgpu' in sys.modules)"
        )
        status, out, err = process(folder=tmp_path, code=("-c", code))
        assert status == 0
        assert out.splitlines()[-1] == "[0, 0, 2]"
        assert "invalid int value: 'z'" in one_line(err)


class TestArrays:
    @pytest.mark.parametrize("flags", [[], ["--exclusive"], ["--reverse"], ["--exclusive", "--reverse"]])
    @pytest.mark.parametrize(("command", "operator"), [("cumsum", "sum"), ("cumprod", "product")])
    @pytest.mark.parametrize("axis", [0, 1, -1])
    def test_scans_give_the_reference_bits(
        self, run: Run, command: str, operator: str, axis: int, flags: list[str]
    ) -> None:
        x = np.random.default_rng(7).uniform(0.9, 1.1, (40, 300)).astype(np.float32)
        np.save("x.npy", x)
        status, out, _ = run(command, "x.npy", "-o", "y.npy", "--axis", str(axis), *flags)
        expected = reference.cumulative(
            x, operator, axis=axis, exclusive="--exclusive" in flags, reverse="--reverse" in flags
        )
        assert status == 0
        assert same(np.load("y.npy"), expected)
        words = [flag.removeprefix("--") for flag in flags] + [command, f"along axis {axis} of x.npy"]
        assert out == f"wrote y.npy: {' '.join(words)}, float32 (40, 300), on {dmlgpu.default_device().summary}\n"

    @pytest.mark.parametrize("source", ["int8", "uint16", "int64", "float16", "bool", ">f4"])
    @pytest.mark.parametrize("dtype", [None, "float32", "int16", "uint64"])
    def test_types(self, run: Run, source: str, dtype: str | None) -> None:
        x = np.arange(50).astype(source)
        np.save("x.npy", x)
        assert run("cumsum", "x.npy", "--output", "y.npy", *([] if dtype is None else ["--dtype", dtype])).status == 0
        result = np.dtype(dtype) if dtype else dtypes.result_type(dtypes.by_dtype(x.dtype)).dtype
        assert same(np.load("y.npy"), reference.cumulative(x.astype(result), "sum", axis=0))

    def test_include_initial(self, run: Run) -> None:
        np.save("x.npy", np.array([[2, 3], [4, 5]], np.int32))
        assert run("cumprod", "x.npy", "--axis", "1", "--include-initial", "--reverse", "-o", "y.npy").status == 0
        assert np.load("y.npy").tolist() == [[6, 3, 1], [20, 5, 1]]

    @pytest.mark.parametrize(
        ("options", "mode"),
        [
            ([], "half_even"),
            (["--mode", "half_even"], "half_even"),
            (["--mode", "half-away"], "half_away"),
            (["--mode", "toward_zero"], "toward_zero"),
        ],
    )
    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
    def test_rounding_gives_the_reference_bits(self, run: Run, dtype: str, options: list[str], mode: str) -> None:
        x = np.array([[-2.5, -0.4, -0.0], [0.5, 1.5, np.nan], [np.inf, 2.5, 1e4]], dtype)
        np.save("x.npy", x)
        assert run("round", "x.npy", "-o", "y.npy", *options).status == 0
        assert same(np.load("y.npy"), reference.round(x, mode))

    def test_rounding_in_another_type(self, run: Run) -> None:
        np.save("x.npy", np.array([0.5, 2**24 + 1.0]))
        assert run("round", "x.npy", "-o", "y.npy", "--dtype", "float32").status == 0
        assert same(np.load("y.npy"), np.array([0, 2**24], np.float32))

    @pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 2, 1, 2, 1, 2, 1, 2)])
    def test_rounding_keeps_unusual_shapes(self, run: Run, shape: tuple[int, ...]) -> None:
        np.save("x.npy", np.full(shape, 1.5, np.float32))
        assert run("round", "x.npy", "-o", "y.npy").status == 0
        assert same(np.load("y.npy"), np.full(shape, 2, np.float32))

    def test_fortran_order(self, run: Run) -> None:
        x = np.asfortranarray(np.arange(12, dtype=np.float32).reshape(3, 4))
        np.save("x.npy", x)
        assert run("cumsum", "x.npy", "--axis", "0", "-o", "y.npy").status == 0
        found = np.load("y.npy")
        assert same(found, reference.cumulative(x, "sum", axis=0))
        assert found.flags.f_contiguous

    def test_the_input_may_be_the_output(self, run: Run) -> None:
        x = np.random.default_rng(3).random(5_000_000, np.float32)
        np.save("x.npy", x)
        assert run("cumsum", "x.npy", "-o", "x.npy").status == 0
        assert same(np.load("x.npy"), reference.cumulative(x, "sum", axis=0))

    def test_the_summary_shows_what_matters(self, run: Run) -> None:
        np.save("x.npy", np.arange(1, 7, dtype=np.float32).reshape(2, 3))
        status, out, _ = run("cumsum", "x.npy", "--axis", "-1")
        assert status == 0
        assert out.splitlines() == [
            "cumsum along axis -1 of x.npy: float32 (2, 3)",
            f"on {dmlgpu.default_device().summary}",
            "",
            "first  1  3  6",
            "last   4  9  15",
            "min    1",
            "max    15",
            "",
            "-o FILE writes the result.",
        ]
        assert os.listdir() == ["x.npy"]

    def test_the_output_may_be_a_table(self, run: Run) -> None:
        np.save("x.npy", np.array([[1.5, 2], [3, 4]], np.float32))
        assert run("cumsum", "x.npy", "--axis", "0", "-o", "y.csv").status == 0
        assert Path("y.csv").read_bytes() == b"1.5,2.0\n4.5,6.0\n"

    def test_devices_are_chosen_by_name_and_index(self, run: Run) -> None:
        np.save("x.npy", np.arange(3))
        for adapter in dmlgpu.devices():
            for choice in (str(adapter.index), adapter.summary):
                status, out, _ = run("cumsum", "x.npy", "--device", choice)
                assert status == 0
                assert out.splitlines()[1] == f"on {adapter.summary}"


TABLE = 'day,rain,n\n"Mon, 1",0.25,1\n"Tue, 2",0.5,2\n"Wed, 3",4,3\n'


class TestTables:
    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            (["cumsum", "--dtype", "float32"], "0.25,1.0 0.75,3.0 4.75,6.0"),
            (["cumprod", "--reverse", "--dtype", "float32"], "0.5,6.0 2.0,6.0 4.0,3.0"),
            (["cumsum", "--exclusive", "--dtype", "int64"], "0,0 0,1 0,3"),
            (["cumsum", "--axis", "1", "--dtype", "float16"], "0.25,1.25 0.5,2.5 4.0,7.0"),
            (["cumsum", "--axis", "-2", "--columns", "n"], "0.25,1 0.5,3 4,6"),
            (["round"], "0.0,1 0.0,2 4.0,3"),
            (["round", "--dtype", "float16", "--mode", "half_away"], "0.0,1.0 1.0,2.0 4.0,3.0"),
        ],
    )
    def test_numbers_change_and_the_rest_stays(self, run: Run, arguments: list[str], expected: str) -> None:
        Path("x.csv").write_text(TABLE)
        command, *options = arguments
        status, out, _ = run(command, "x.csv", "-o", "y.csv", *options)
        assert status == 0
        assert out.startswith("wrote y.csv: ")
        lines = [
            f"{day},{cells}" for day, cells in zip(['"Mon, 1"', '"Tue, 2"', '"Wed, 3"'], expected.split(), strict=True)
        ]
        assert Path("y.csv").read_text() == "\n".join(["day,rain,n", *lines, ""])

    @pytest.mark.parametrize(
        ("options", "expected"), [([], ",0 x,1 y,3"), (["--reverse"], "x,3 y,2 ,0")], ids=["forward", "reverse"]
    )
    def test_include_initial_adds_a_row(self, run: Run, options: list[str], expected: str) -> None:
        Path("x.csv").write_text("a,b\nx,1\ny,2\n")
        assert run("cumsum", "x.csv", "-o", "y.csv", "--include-initial", *options).status == 0
        assert Path("y.csv").read_text().split() == ["a,b", *expected.split()]

    def test_names_may_have_spaces_around_them(self, run: Run) -> None:
        Path("x.csv").write_text('a, b,"c, d",e\n1,2,3,4\n1,2,3,4\n')
        assert run("cumsum", "x.csv", "-o", "y.csv", "--columns", 'a , b, "c, d"').status == 0
        assert Path("y.csv").read_text() == 'a, b,"c, d",e\n1,2,3,4\n2,4,6,4\n'

    @pytest.mark.filterwarnings("default:x.csv")
    def test_numbers_may_be_names(self, run: Run) -> None:
        Path("x.csv").write_text("id,2019,2020\n1,10,0.5\n2,20,1\n")
        status, _, err = run("cumsum", "x.csv", "-o", "y.csv")
        assert status == 0
        assert Path("y.csv").read_text() == "id,2019,2020\n1,10,0.5\n3,30,1.5\n"
        assert (
            "dmlgpu: note: x.csv: line 1 is taken for a header, with the names id, 2019, 2020; --header no takes it "
            "for data\n"
        ) in err
        assert run("cumsum", "x.csv", "--columns", "2019, 2020").status == 0

    @pytest.mark.parametrize(("missing", "expected"), [("0", "1 1 3"), ("nan", "1.0 nan nan"), ("-1", "1 0 2")])
    def test_missing_numbers(self, run: Run, missing: str, expected: str) -> None:
        Path("x.csv").write_text("a,b\nx,1\n,\ny,2\n")
        assert run("cumsum", "x.csv", "-o", "y.csv", "--missing", missing).status == 0
        lines = [f"{name},{number}" for name, number in zip(["x", "", "y"], expected.split(), strict=True)]
        assert Path("y.csv").read_text().split() == ["a,b", *lines]

    def test_the_output_may_be_an_array(self, run: Run) -> None:
        Path("x.csv").write_text(TABLE)
        status, out, _ = run("round", "x.csv", "-o", "y.npy")
        assert status == 0
        assert same(np.load("y.npy"), np.array([[0, 1], [0, 2], [4, 3]], np.float64))
        assert "float64 (3, 2), without column" in out

    def test_fractions_are_float64(self, run: Run) -> None:
        Path("x.csv").write_text("x\n0.1\n0.2\n0.3\n")
        assert run("cumsum", "x.csv", "-o", "y.csv").status == 0
        assert Path("y.csv").read_text() == "x\n0.1\n0.30000000000000004\n0.6000000000000001\n"

    def test_the_input_may_be_the_output(self, run: Run) -> None:
        Path("x.csv").write_text("1\n2\n3\n")
        assert run("cumsum", "x.csv", "-o", "x.csv").status == 0
        assert Path("x.csv").read_text() == "1\n3\n6\n"
        assert os.listdir() == ["x.csv"]

    def test_the_summary_has_a_line_a_column(self, run: Run) -> None:
        Path("x.csv").write_text(TABLE)
        status, out, _ = run("cumsum", "x.csv", "--dtype", "float32")
        assert status == 0
        assert [line.split() for line in out.splitlines()[3:6]] == [
            ["column", "type", "first", "last", "min", "max", "NaN"],
            ["rain", "float32", "0.25", "4.75", "0.25", "4.75", "0"],
            ["n", "float32", "1", "6", "1", "6", "0"],
        ]


class TestProcess:
    def test_success_and_the_note_on_software(self, tmp_path: Path) -> None:
        np.save(tmp_path / "x.npy", np.arange(5, dtype=np.float32))
        status, out, err = process("cumsum", "x.npy", "-o", "y.npy", folder=tmp_path)
        assert status == 0
        assert out.startswith("wrote y.npy: cumsum of x.npy, float32 (5,), on ")
        assert np.load(tmp_path / "y.npy").tolist() == [0, 1, 3, 6, 10]
        if dmlgpu.default_device().description.is_software:
            assert "software adapter" in one_line(err, "note")
        else:
            assert err == ""

    def test_a_reader_that_stops_ends_the_process_quietly(self, tmp_path: Path) -> None:
        np.save(tmp_path / "x.npy", np.arange(5, dtype=np.float32))
        # Standard output is a pipe that nobody reads any longer.
        code = (
            "import os, sys; from dmlgpu.cli import main; "
            "read, write = os.pipe(); os.close(read); os.dup2(write, 1); os.close(write); "
            "sys.exit(main(sys.argv[1:]))"
        )
        status, out, err = process("cumsum", "x.npy", folder=tmp_path, code=("-c", code))
        assert (status, out, err) == (128 + getattr(signal, "SIGPIPE", 13), "", "")
