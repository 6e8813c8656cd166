"""The command line without the libraries of its extra, and with them on a terminal."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest

from dmlgpu.cli import console
from dmlgpu.cli.console import Progress, columns

from .cli_runner import Outcome, one_line, process

CASE = "round.float16.half_even.4097.packed-to-packed.plain"

BLOCKED = """
import sys
for name in ("pyarrow", "rich"):
    sys.modules[name] = None
from dmlgpu.cli import main
sys.exit(main(sys.argv[1:]))
"""


def without_extra(*arguments: str, folder: Path) -> Outcome:
    return process(*arguments, folder=folder, code=("-c", BLOCKED))


class TestWithoutTheExtra:
    @pytest.mark.parametrize(
        ("command", "said"),
        [
            ("--help", "usage: dmlgpu "),
            ("cumsum --help", "usage: dmlgpu cumsum "),
            ("info", "dmlgpu "),
            (f"verify --case {CASE}", "PASSED: 1 of 1 case has the reference's bits"),
            ("bench --list", "axes and their values:\n"),
            ("cumsum x.npy", "first  0  1  3\n"),
            ("round x.npy -o y.npy", "wrote y.npy: "),
        ],
    )
    def test_what_needs_it_not_works(self, tmp_path: Path, command: str, said: str) -> None:
        np.save(tmp_path / "x.npy", np.arange(4, dtype=np.float32))
        status, out, err = without_extra(*command.split(), folder=tmp_path)
        assert status == 0, err
        assert said in out

    @pytest.mark.parametrize(
        "command", ["cumsum x.csv", "cumsum x.parquet", "cumsum x.npy -o y.csv", "round x.csv -o y.npy"]
    )
    def test_what_needs_it_says_so_in_one_line(self, tmp_path: Path, command: str) -> None:
        np.save(tmp_path / "x.npy", np.arange(4, dtype=np.float32))
        for name in ("x.csv", "x.parquet"):
            (tmp_path / name).write_text("1\n2\n")
        status, out, err = without_extra(*command.split(), folder=tmp_path)
        assert (status, out) == (2, "")
        kind = "parquet" if "parquet" in command else "csv"
        assert one_line(err).startswith(
            f"dmlgpu: error: .{kind} files need the extra 'cli' of dmlgpu, which brings pyarrow"
        )
        assert err.endswith(": install it with python -m pip install 'dmlgpu[cli]'\n")
        assert not (tmp_path / "y.csv").exists()

    def test_the_package_and_arrays_import_none_of_it(self, tmp_path: Path) -> None:
        np.save(tmp_path / "x.npy", np.arange(4, dtype=np.float32))
        code = (
            "import sys; from dmlgpu.cli import main; status = main(['cumsum', 'x.npy', '-o', 'y.npy']); "
            "sys.exit(status or any(name.split('.')[0] in ('pyarrow', 'rich') for name in sys.modules))"
        )
        assert process(folder=tmp_path, code=("-c", code)).status == 0


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


ROWS = [["", "sum tiles", "round"], ["float32", "12", "-"], ["int8", "1 of 3", "4"]]


class TestTables:
    @pytest.mark.parametrize("right", [False, True])
    def test_a_wide_terminal_has_what_a_pipe_has(self, right: bool) -> None:
        assert console._folded(ROWS, right, 80) == columns(ROWS, right=right)

    def test_a_narrow_terminal_has_all_of_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdout", Terminal())
        monkeypatch.setenv("COLUMNS", "40")
        lines = columns([["column", "type"], ["x" * 100, "float64"]])
        assert max(map(len, lines)) <= 40
        assert "".join(lines).count("x") == 100
        assert "float64" in "".join(lines)

    @pytest.mark.parametrize("terminal", [False, True])
    def test_cells_are_text_and_nothing_else(self, monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
        monkeypatch.setattr(sys, "stdout", Terminal() if terminal else io.StringIO())
        monkeypatch.setenv("COLUMNS", "80")
        assert columns([["[red]a[/red]", "\x1b[2Jb\nc"]]) == ["[red]a[/red]  \\x1b[2Jb\\nc"]


def missing_library(*_: object) -> None:
    raise ImportError("rich")


class TestProgress:
    def test_a_bar_comes_and_goes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stderr", Terminal())
        monkeypatch.setenv("COLUMNS", "70")
        monkeypatch.setenv("TERM", "xterm")
        with Progress(4, "step") as progress:
            progress.show(1, "\x1b[2J[bold]case")
            shown = sys.stderr.getvalue()  # type: ignore[attr-defined]
            progress.clear()
        assert " 1 of 4 " in shown
        assert "\\x1b[2J[bold]case" in shown
        assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")  # the cursor stays, whatever ends the process
        assert "\n" not in shown.rstrip("\r\n")

    def test_colours_can_be_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stderr", Terminal())
        monkeypatch.setenv("TERM", "xterm")
        for refused in (False, True):
            if refused:
                monkeypatch.setenv("NO_COLOR", "1")
            with Progress(4, "step") as progress:
                progress.show(1, "case")
            assert ("\x1b[36m" in sys.stderr.getvalue()) is not refused  # type: ignore[attr-defined]
            monkeypatch.setattr(sys, "stderr", Terminal())

    def test_a_bar_says_at_once_what_may_take_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stderr", Terminal())
        monkeypatch.setattr(console.time, "monotonic", lambda: 100.0)
        monkeypatch.setenv("TERM", "xterm")
        with Progress(4, "step") as progress:
            for at_once in (False, False, True):
                progress.show(1, f"case {at_once}", at_once=at_once)
                progress.show(1, "not shown")
        shown = sys.stderr.getvalue()  # type: ignore[attr-defined]
        assert [text in shown for text in ("case False", "case True", "not shown")] == [True, True, False]

    @pytest.mark.parametrize("has_rich", [False, True])
    def test_lines_come_now_and_then_with_the_time_left(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], has_rich: bool
    ) -> None:
        """Where standard error is no terminal, and on terminals without rich."""
        if not has_rich:
            monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
            monkeypatch.setattr(console, "_bar", missing_library)
        monkeypatch.setattr(console, "_LINE_SECONDS", 30.0)
        now = 1000.0
        monkeypatch.setattr(console.time, "monotonic", lambda: now)
        with Progress(1000, "case") as many, Progress(10, "row") as few:
            for step in range(8):
                many.show(step, f"case {step}")
                few.show(step, f"row {step}")
                now += 10
            now += 1000
            few.show(8, "row 8")
        assert capsys.readouterr().err.splitlines() == [
            "dmlgpu: note: 0 of 1000 cases: case 0",
            "dmlgpu: note: 3 of 1000 cases, about 166 min left: case 3",
            "dmlgpu: note: 3 of 10 rows, about 70 s left: row 3",
            "dmlgpu: note: 6 of 1000 cases, about 166 min left: case 6",
            "dmlgpu: note: 6 of 10 rows, about 40 s left: row 6",
            "dmlgpu: note: 8 of 10 rows, about 4 min left: row 8",
        ]

    def test_a_terminal_that_goes_away_ends_the_bar_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Gone(Terminal):
            def write(self, text: str) -> int:
                raise OSError(5, "Input/output error")

        monkeypatch.setattr(sys, "stderr", Gone())
        with Progress(4, "step") as progress:
            progress.show(1, "case")
            progress.show(2, "case")
