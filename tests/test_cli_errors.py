"""Bad input to the command line: one line, status 2, nothing written."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from argparse import ArgumentParser
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from dmlgpu.cli import operators

from .cli_runner import Run, one_line, process, runner


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in an empty folder of its own."""
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


BAD = {
    "no such command": ("frob x.npy", "invalid choice: 'frob'"),
    "no input": ("cumsum", "the following arguments are required: INPUT"),
    "unknown option": ("cumsum v.npy --frob", "unrecognized arguments: --frob"),
    "an option before the command": (
        "--device 0 cumsum v.npy",
        "unrecognized arguments: --device; options come behind the command",
    ),
    "abbreviated option": ("cumsum v.npy --rev", "unrecognized arguments: --rev"),
    "option of another command": ("round v.npy --exclusive", "unrecognized arguments: --exclusive"),
    "help for an option of another command": ("cumprod v.npy --monotone", "(see 'dmlgpu cumprod --help')"),
    "axis that is no integer": ("cumsum v.npy --axis 1.5", "argument --axis: invalid int value: '1.5'"),
    "axis too high": ("cumsum m.npy --axis 2", "m.npy: axis 2 is out of range for an array of 2 dimensions"),
    "axis too low": ("cumsum m.npy --axis -3", "axis -3 is out of range"),
    "axis of a table": ("cumsum t.csv --axis 2", "axis 2 is out of range"),
    "axis left out": ("cumsum m.npy", "m.npy has shape (2, 3); say along which axis to run, with --axis 0 to 1"),
    "unknown type": ("cumsum v.npy --dtype float99", "argument --dtype: invalid choice: 'float99'"),
    "rounding to integers": ("round v.npy --dtype int32", "argument --dtype: invalid choice: 'int32'"),
    "unknown mode": ("round v.npy --mode up", "argument --mode: invalid choice: 'up'"),
    "unknown device": ("cumsum v.npy --device frob", "device 'frob' is in no adapter's summary"),
    "device index too high": ("cumsum v.npy --device 99", "device 99 is not the index of an adapter"),
    "exclusive with initial": ("cumsum v.npy --exclusive --include-initial", "include_initial and exclusive"),
    "single number": ("cumsum zero.npy", "zero.npy holds a single number"),
    "nine dimensions": ("cumsum nine.npy --axis 0", "8"),
    "complex": ("cumsum complex.npy", "complex.npy has dtype complex64"),
    "text elements": ("round text.npy", "text.npy has dtype <U1"),
    "dates": ("cumsum dates.npy", "dates.npy has dtype datetime64[D]"),
    "records": ("cumsum records.npy", "records.npy has dtype"),
    "objects": ("cumsum objects.npy", "objects.npy holds Python objects, which are never loaded"),
    "rounding bool": ("round bool.npy", "error: bool.npy has dtype bool, which has nothing to round: convert it"),
    "rounding bool by blocks": ("round bool.npy -o o.npy --resume", "error: bool.npy has dtype bool, which has"),
    "rounding bool in an archive": ("round bool.npz -o o.npz", "bool.npz/b has dtype bool, which has nothing to round"),
    "missing": ("cumsum gone.npy", "gone.npy: No such file or directory"),
    "empty": ("cumsum empty.npy", "empty.npy is empty"),
    "empty table": ("cumsum empty.csv", "empty.csv is empty"),
    "folder": ("cumsum folder.npy", "folder.npy is a directory"),
    "truncated": ("cumsum truncated.npy", "truncated.npy is damaged or truncated"),
    "another format": ("cumsum wrong.npy", "wrong.npy is not a .npy file"),
    "unknown input extension": (
        "cumsum notes.txt",
        "'notes.txt' has the extension .txt; dmlgpu reads .npy, .npz, .csv",
    ),
    "a folder": ("cumsum folder", "'folder' is a folder; give a file in it"),
    "no extension": ("cumsum gone", "parquet files, or a .npy file through '-'"),
    "nothing on standard input": ("cumsum -", "standard input is empty or closed: send a .npy file through"),
    "unknown output extension": ("cumsum v.npy -o y.zip", "'y.zip' has the extension .zip; dmlgpu writes .npy"),
    "an array to an archive": ("cumsum v.npy -o y.npz", "the arrays of a .npz file go into another .npz file"),
    "output is a folder": ("cumsum v.npy -o folder.npy", "folder.npy: it exists and is not an ordinary file"),
    "output in no folder": ("cumsum v.npy -o gone/y.npy", "is not a folder; create it first"),
    "output in a file": ("cumsum v.npy -o v.npy/y.npy", "cannot write v.npy/y.npy"),
    "output name too long": (f"cumsum v.npy -o {'y' * 300}.npy", "File name too long"),
    "three dimensions as a table": ("cumsum cube.npy --axis 0 -o y.csv", "a .csv file has 1 or 2 dimensions"),
    "no rows as a table": (
        "round rowless.npy -o y.csv",
        "without a header and rows nothing of it would be in a .csv file",
    ),
    "no columns as a table": ("round nothing.npy -o y.csv", "a .csv file needs at least one column"),
    "columns of an array": ("cumsum v.npy --columns a", "--columns and --missing are for .csv and .parquet files"),
    "header of an array": ("cumsum v.npy --header no", "and --header for .csv files; v.npy is an array"),
    "missing of an array": ("cumsum v.npy --missing 0", "--columns and --missing are for .csv and .parquet files"),
    "missing that is no number": (
        "cumsum t.csv --missing NA",
        "argument --missing: 'NA' is not a number; give the one",
    ),
    "missing in another script": ("cumsum t.csv --missing \u0663", "argument --missing: '\u0663' is not a number"),
    "unknown column": ("cumsum t.csv --columns c", "--columns: t.csv has no column 'c'"),
    "column of text": ("cumsum t.csv --columns a", "t.csv, line 2, column a: 'x' is not a number"),
    "initial column": ("cumsum t.csv --axis 1 --include-initial", "would add a column"),
    "ragged table": ("cumsum ragged.csv", "ragged.csv, line 3 has 1 cell where line 1 has 2"),
    "empty cell": ("cumsum hole.csv", "hole.csv, line 3, column b: the cell is empty"),
    "bad cell": ("round word.csv", "word.csv, line 4, column b: 'n/a' is not a number"),
    "no numbers": ("round words.csv", "words.csv has no column of numbers"),
    "not UTF-8": (
        "round latin.csv",
        "line 3: not UTF-8 text but most likely Windows-1252, in which the byte 0xFC is '\u00fc'; save",
    ),
}


@pytest.fixture
def bad_files(tmp_path: Path) -> Path:
    """Fill the test's folder with what the table of bad input needs."""
    arrays: dict[str, np.ndarray] = {
        "v": np.arange(3.0, dtype=np.float32),
        "m": np.ones((2, 3), np.float32),
        "cube": np.ones((2, 2, 2), np.float32),
        "nothing": np.ones((2, 0), np.float32),
        "rowless": np.ones((0, 3), np.float32),
        "zero": np.float32(1).reshape(()),
        "nine": np.ones((1,) * 9, np.float32),
        "complex": np.ones(3, np.complex64),
        "text": np.array(["a"]),
        "dates": np.array(["2024-01-01"], "datetime64[D]"),
        "records": np.zeros(2, [("a", "f4")]),
        "objects": np.array([{}]),
        "bool": np.array([True]),
    }
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array, allow_pickle=True)
    np.savez(tmp_path / "bool.npz", b=arrays["bool"])
    tables = {
        "t": "a,b\nx,1\ny,2\n",
        "ragged": "a,b\n1,2\n3\n",
        "hole": "a,b\n1,2\n3,\n",
        "word": "a,b\n1,2\n3,4\n5,n/a\n",
        "words": "a,b\nx,y\n",
    }
    for name, text in tables.items():
        (tmp_path / f"{name}.csv").write_text(text)
    (tmp_path / "latin.csv").write_bytes("a\n1\nü\n".encode("latin-1"))
    (tmp_path / "empty.npy").touch()
    (tmp_path / "empty.csv").touch()
    (tmp_path / "notes.txt").write_text("1\n")
    (tmp_path / "wrong.npy").write_bytes(b"PK\x03\x04" + bytes(100))
    (tmp_path / "truncated.npy").write_bytes((tmp_path / "v.npy").read_bytes()[:-1])
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.npy").mkdir()
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class TestBadInput:
    @pytest.mark.parametrize("case", BAD)
    def test_one_line_and_status_2(self, bad_files: Path, run: Run, case: str) -> None:
        command, message = BAD[case]
        before = contents(bad_files)
        if "-o" not in command and not command.startswith("frob"):
            command += " -o out.npy"
        status, out, err = run(*command.split())
        assert message in one_line(err)
        assert (status, out) == (2, "")
        assert contents(bad_files) == before

    def test_a_line_break_in_a_name_makes_no_second_line(self, run: Run) -> None:
        assert "a b.npy" in one_line(run("cumsum", "a\nb.npy").err)

    def test_a_long_message_is_cut_in_its_middle(self, run: Run) -> None:
        err = one_line(run("cumsum", "x.npy", "--axis", "9" * 100_000).err)
        assert err.startswith("dmlgpu: error: argument --axis: invalid int value: '999")
        assert err.endswith("(see 'dmlgpu cumsum --help')\n")
        assert len(err) < 2100

    def test_control_characters_are_escapes(self, run: Run) -> None:
        assert "'\\x1b]0;x\\x07.txt'" in one_line(run("cumsum", "\x1b]0;x\x07.txt").err)
        Path("\x1b[2J\n.csv").write_text("1\n")
        status, out, _ = run("cumsum", "\x1b[2J\n.csv")
        assert status == 0
        assert out.startswith("cumsum along axis 0 of \\x1b[2J\\n.csv: 1 row of 1 column\n")

    def test_columns_that_name_none(self, run: Run) -> None:
        Path("x.csv").write_text("1\n")
        line = "argument --columns: '' names no column: give at least one, or leave --columns out"
        assert line in one_line(run("cumsum", "x.csv", "--columns", "").err)
        Path("x.csv").write_text('"",b\n1,2\n')
        assert run("cumsum", "x.csv", "--columns", '""').status == 0  # a name without letters, as pandas' index has it

    @pytest.mark.parametrize("names", ["a\nb", "a\rb", '"a'])
    def test_columns_that_are_no_line_of_a_table(self, run: Run, names: str) -> None:
        Path("x.csv").write_text("1\n")
        assert "argument --columns: " in one_line(run("cumsum", "x.csv", "--columns", names).err)

    def test_nothing_is_half_written(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        np.save("x.npy", np.arange(3))
        Path("y.npy").write_bytes(b"old")

        def full(file: object, array: np.ndarray) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(operators, "write_npy", full)
        status, out, err = run("cumsum", "x.npy", "-o", "y.npy")
        assert (status, out, err) == (2, "", "dmlgpu: error: cannot write y.npy: No space left on device\n")
        assert Path("y.npy").read_bytes() == b"old"
        assert sorted(os.listdir()) == ["x.npy", "y.npy"]

    @pytest.mark.parametrize(
        ("failure", "status", "line"),
        [
            (KeyboardInterrupt(), 130, "interrupted"),
            (MemoryError("7 TiB"), 2, "not enough memory: 7 TiB"),
            (MemoryError(), 2, "not enough memory"),
            (OSError("odd"), 2, "odd"),
        ],
    )
    def test_failures_of_the_system(
        self, run: Run, monkeypatch: pytest.MonkeyPatch, failure: BaseException, status: int, line: str
    ) -> None:
        np.save("x.npy", np.arange(3))

        def fail(path: Path, memory: int | None) -> np.ndarray:
            raise failure

        monkeypatch.setattr(operators, "read_npy", fail)
        assert run("cumsum", "x.npy") == (status, "", f"dmlgpu: error: {line}\n")

    def test_a_mistake_of_ours_is_not_hidden(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        np.save("x.npy", np.arange(3))
        monkeypatch.setattr(operators, "read_npy", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run("cumsum", "x.npy")

    @pytest.mark.skipif(os.name != "posix", reason="Windows removes no working directory")
    def test_without_wgpu(self, tmp_path: Path) -> None:
        np.save(tmp_path / "v.npy", np.zeros(3))
        code = "import sys; sys.modules['wgpu'] = None; from dmlgpu.cli import main; sys.exit(main(sys.argv[1:]))"
        for words in ("cumsum v.npy", "verify", "bench --quick", "tune"):
            status, out, err = process(*words.split(), folder=tmp_path, code=("-c", code))
            assert (status, out) == (2, "")
            assert "wgpu cannot be imported" in one_line(err)

    def test_a_warning_that_is_to_be_an_error(self, run: Run) -> None:
        np.save("v.npy", np.zeros(3))
        with Path("v.npy").open("ab") as file:
            file.write(b"more")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            status, out, err = run("cumsum", "v.npy", "-o", "sums.npy")
        assert (status, out) == (2, "")
        assert "v.npy goes on for 4 bytes after its array" in one_line(err)
        assert err.endswith("(a warning, which -W error or PYTHONWARNINGS makes an error)\n")
        assert not Path("sums.npy").exists()

    def test_in_a_folder_that_has_been_removed(self, run: Run, tmp_path: Path) -> None:
        np.save("x.npy", np.arange(3))
        Path("gone").mkdir()
        os.chdir("gone")
        os.rmdir(tmp_path / "gone")
        line = "cannot write y.npy: the working directory has been removed; change to another one, or give a name"
        assert line in one_line(run("cumsum", str(tmp_path / "x.npy"), "-o", "y.npy").err)
        assert run("cumsum", str(tmp_path / "x.npy"), "-o", str(tmp_path / "y.npy")).status == 0
        os.chdir(tmp_path)

    @pytest.mark.parametrize(
        "command", ["cumsum gone.npy", "cumsum x.npy --axis 5", "round x.npy --device frob", "cumsum x.npy -o /"]
    )
    def test_a_process_too(self, tmp_path: Path, command: str) -> None:
        np.save(tmp_path / "x.npy", np.arange(5, dtype=np.float32))
        status, out, err = process(*command.split(), folder=tmp_path)
        assert (status, out) == (2, "")
        one_line(err)


@pytest.mark.parametrize(
    ("missing", "problem"),
    [
        ("99999999999999999999", "99999999999999999999 does not fit in 64 bits"),
        ("1e-999", "1e-999 is too small for float64"),
        ("1e999", "1e999 is beyond float64"),
    ],
)
@pytest.mark.parametrize("is_large", [False, True])
def test_errors_in_empty_cells_name_the_option(
    run: Run, monkeypatch: pytest.MonkeyPatch, missing: str, problem: str, is_large: bool
) -> None:
    monkeypatch.setattr("dmlgpu.cli.operators._is_large", lambda *_: is_large)
    Path("x.csv").write_text("a,b\n1,\n,2\n")
    err = one_line(run("cumsum", "x.csv", "-o", "y.csv", "--missing", missing).err)
    assert f"column a: the cell is empty, and --missing {missing}: {problem}" in err


@pytest.mark.parametrize(
    ("words", "said"), [(["cumsum", ""], "INPUT is empty"), (["cumsum", "x.npy", "-o", ""], "-o is empty")]
)
def test_a_name_without_characters(run: Run, words: list[str], said: str) -> None:
    assert f"{said}: give the name of a file" in one_line(run(*words).err)


WITHOUT_NAMES = {"verify": [], "bench": [], "export": ["cumsum", "--shape", "10", "-o", "x"]}
"""Commands that write files, and what else they need."""


@pytest.mark.parametrize("command", WITHOUT_NAMES)
def test_an_output_without_characters(run: Run, command: str) -> None:
    parser = ArgumentParser()
    import_module(f"dmlgpu.cli.{command}").add_arguments(parser)
    files = [action for action in parser._actions if action.metavar in ("FILE", "FOLDER") and action.nargs is None]
    options = [action.option_strings[-1] for action in files if action.option_strings]
    named = [option for option in options if option.startswith("--")]
    assert named
    for option in named:
        err = one_line(run(command, *WITHOUT_NAMES[command], option, "").err)
        assert f"{option} is empty: give the name of a " in err


def test_a_folder_in_one_that_is_missing(run: Run) -> None:
    err = one_line(run("export", "cumsum", "--shape", "10", "-o", "missing/x").err)
    assert "--output missing/x: missing is not a folder; create it first" in err


@pytest.mark.parametrize("length", [7, 100, 140])
def test_messages_name_standard_input(tmp_path: Path, length: int) -> None:
    np.save(tmp_path / "x.npy", np.ones(10))
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:length])
    with (tmp_path / "x.npy").open("rb") as file:
        done = subprocess.run(
            [sys.executable, "-m", "dmlgpu", "cumsum", "-"], stdin=file, capture_output=True, text=True, check=False
        )
    assert one_line(done.stderr).startswith("dmlgpu: error: standard input is ")
