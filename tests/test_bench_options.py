"""Bad options of the benchmarks: one sentence each, and nothing is measured."""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path

import pytest

from benchmarks.options import add_count, add_file, add_seconds, whole_from

ROOT = Path(__file__).resolve().parent.parent


def parser() -> ArgumentParser:
    """Return a parser of one option of each kind."""
    made = ArgumentParser()
    add_count(made, "--samples", 7)
    add_seconds(made, "--timeout", 2.0)
    add_file(made, "--md")
    made.add_argument("--scale", type=whole_from(1, 64), default=1)
    return made


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--samples", "0"), "--samples: '0' is not a whole number from 1 to 10000"),
        (("--timeout", "nan"), "--timeout: 'nan' is not a number above 0"),
        (("--scale", "0"), "--scale: '0' is not a whole number from 1 to 64"),
        (("--scale", "9" * 5000), "is not a whole number from 1 to 64"),
        (("--md", str(ROOT / "nowhere" / "x.md")), "is in no folder that there is"),
        (("--md", str(ROOT)), "is a folder; give a file"),
    ],
)
def test_bad_values(options: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(options)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_good_values(tmp_path: Path) -> None:
    options = ("--samples", "3", "--timeout", "0.5", "--scale", "64", "--md", str(tmp_path / "x.md"))
    found = parser().parse_args(options)
    assert (found.samples, found.timeout, found.scale, found.md) == (3, 0.5, 64, tmp_path / "x.md")


@pytest.mark.parametrize("name", ["accuracy", "exceptional", "goals", "scan_pieces", "software_kernels"])
def test_no_such_device(name: str) -> None:
    command = [sys.executable, "-m", f"benchmarks.{name}", "--device", "nope"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(
        f"{name}.py: error: device 'nope' is in no adapter's summary; there are"
    )
    assert "Traceback" not in done.stderr
