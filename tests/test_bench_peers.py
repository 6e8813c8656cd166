"""The comparison with other libraries: what can run here is measured and checked, and what cannot says why."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SMALL = ("--axis", "shape=30x40", "--axis", "axis=first", "--samples", "2")


def peers(*options: str, block: tuple[str, ...] = (), folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run the comparison in a process of its own, as if the modules `block` were not installed."""
    for name in block:
        (folder / f"{name}.py").write_text("raise ImportError")
    path = os.pathsep.join([str(folder), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.peers", *options],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_this_package_and_numpy(tmp_path: Path) -> None:
    done = peers("--peers", "dmlgpu,numpy", *SMALL, "--md", str(tmp_path / "x.md"))
    assert done.returncode == 0, done.stderr
    assert "| NumPy in, NumPy out: ms (x dmlgpu) | dmlgpu | numpy |" in done.stdout
    row = next(line for line in done.stdout.splitlines() if line.startswith("| sum float32 30x40 axis 0 | "))
    own, other = row.split(" | ")[1:]
    assert float(own) > 0
    assert other.endswith(") |")
    assert (tmp_path / "x.md").read_text() in done.stdout


def test_what_is_not_installed_is_one_sentence(tmp_path: Path) -> None:
    done = peers("--peers", "numpy,torch,cupy,ort-cpu", *SMALL, block=("torch", "cupy", "onnxruntime"), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "without torch: PyTorch is not installed: pip install torch (the CPU build is enough)\n" in done.stderr
    assert "without cupy: CuPy is not installed: where there is CUDA, pip install cupy-cuda12x\n" in done.stderr
    assert "without ort-cpu: ONNX Runtime is not installed: pip install onnx onnxruntime-webgpu\n" in done.stderr
    assert "| NumPy in, NumPy out: ms (x dmlgpu) | numpy |\n" in done.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--peers", "jax"), "error: there is no peer 'jax'; there are dmlgpu, numpy, torch, "),
        (("--axis", "colour=red"), "error: there is no axis 'colour'; there are operator, "),
        (("--peers", "numpy", "--axis", "type=float8"), "error: the axis 'type' has no value 'float8'"),
    ],
)
def test_bad_usage(options: tuple[str, ...], message: str) -> None:
    done = peers(*options)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_nothing_that_can_run(tmp_path: Path) -> None:
    done = peers("--peers", "torch", block=("torch",), folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "error: none of these peers can run here\n" in done.stderr
