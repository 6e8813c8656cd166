"""Run the command line and look at what it did."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import dmlgpu
from dmlgpu import reference
from dmlgpu.cli import main


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


Run = Callable[..., Outcome]


def runner(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs the command line in this process."""

    def run(*arguments: str) -> Outcome:
        capsys.readouterr()
        status = main(list(arguments))
        return Outcome(status, *capsys.readouterr())

    return run


def environment() -> dict[str, str]:
    """Return the environment for a process that imports this package; Python buffers there as it does by default."""
    source = str(Path(dmlgpu.__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
    return {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"} | {"PYTHONPATH": path}


def process(*arguments: str, folder: Path, code: Sequence[str] = ("-m", "dmlgpu")) -> Outcome:
    """Run the command line in a process of its own."""
    done = subprocess.run(
        [sys.executable, *code, *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def same(result: np.ndarray, expected: np.ndarray) -> bool:
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    return reference.first_difference(result, expected) is None


def one_line(err: str, kind: str = "error") -> str:
    assert err.startswith(f"dmlgpu: {kind}: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    return err


def bits(array: np.ndarray) -> tuple[np.dtype, tuple[int, ...], bytes]:
    """Return what tells two arrays apart."""
    return array.dtype, array.shape, array.tobytes()
