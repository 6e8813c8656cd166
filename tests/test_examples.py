"""The examples run, say what is true, and fail when a result is wrong."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import dmlgpu
from dmlgpu import reference

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"


def run(script: str, *arguments: str, cwd: Path) -> str:
    """Run an example in a process of its own; return its standard output."""
    # The examples of wgpu programs open wgpu's default device: here the one that is tested.
    adapter = dmlgpu.default_device().summary
    environment = os.environ | {"PYTHONPATH": str(ROOT), "WGPUPY_WGPU_ADAPTER_NAME": adapter}
    command = [sys.executable, str(EXAMPLES / script), *arguments]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{script}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def load(script: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"dmlgpu_{Path(script).stem}", EXAMPLES / script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def demo() -> ModuleType:
    return load("demo.py")


def test_demo_checks_draws_and_shows_what_the_readme_shows(tmp_path: Path) -> None:
    output = run("demo.py", "-o", "picture.png", cwd=tmp_path)
    assert "All checks passed.\nPlot: picture.png" in output
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    first, last = output.index("             prices,"), output.index("Mean unemployment")
    assert f"```text\n{output[first:last]}```" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_demo_runs_without_matplotlib(tmp_path: Path) -> None:
    hide = "import sys; sys.modules['matplotlib'] = None; sys.argv = ['demo.py', '-o', 'picture.png']; "
    start = f"import runpy; runpy.run_path({str(EXAMPLES / 'demo.py')!r}, run_name='__main__')"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", hide + start], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert "All checks passed.\nNo plot, because matplotlib is not installed" in done.stdout
    assert not (tmp_path / "picture.png").exists()


def test_demo_fails_on_one_wrong_bit(
    demo: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    right = demo.dmlgpu.cumulative_sum

    def wrong(x: np.ndarray, *, axis: int) -> np.ndarray:
        y = right(x, axis=axis)
        y[1, 100] = np.nextafter(y[1, 100], np.float32(np.inf))
        return y

    monkeypatch.setattr(demo.dmlgpu, "cumulative_sum", wrong)
    assert demo.main(["-o", str(tmp_path / "picture.png")]) == 1
    output = capsys.readouterr().out
    assert "A CHECK FAILED." in output
    assert "NO: [1, 100]" in output


def test_growth_shows_what_the_reference_comes_to(tmp_path: Path) -> None:
    output = run("growth.py", "-o", "picture.png", cwd=tmp_path)
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    growth = load("growth.py")
    table = growth.futures(growth.factors())
    assert table.shape == (20_000, 160)
    shares = np.percentile(reference.cumulative(table, "product", axis=1)[:, -1], growth.SHARES)
    assert "   40    " + "".join(f"{value:5.3f}    " for value in shares) in output
    to_come = reference.cumulative(table, "product", axis=1, exclusive=True, reverse=True)
    assert f"has become {np.median(to_come.sum(axis=1, dtype=np.float64)):.0f} in half of them" in output


def test_numpy_face_prints_what_numpy_would(tmp_path: Path) -> None:
    x = np.array([[1, 2, 3], [4, 5, 6]], dtype=np.float32)
    output = run("numpy_face.py", cwd=tmp_path)
    assert f"axis 1\n{np.cumsum(x, axis=1)}\n" in output
    assert f"backwards\n{np.cumsum(x[:, ::-1], axis=1)}\n" in output


def test_directml_hello_prints_what_the_gpu_summed(tmp_path: Path) -> None:
    output = run("directml_hello.py", cwd=tmp_path)
    assert "input tensor:" + " 1.618" * 24 in output
    assert "output tensor:" + " 1.618 3.236 4.854 6.472" * 6 in output


def test_directmlx_evaluates_its_expression_twice(tmp_path: Path) -> None:
    output = run("directmlx.py", cwd=tmp_path)
    assert "both accounts together\n[[10. 11. 11. 12.]\n [20. 22. 24. 23.]]\n" in output
    assert "and with double the money\n[[20. 21. 22. 23.]\n [40. 43. 48. 44.]]\n" in output


def test_wgpu_interop_sorts_in_one_submission(tmp_path: Path) -> None:
    output = run("wgpu_interop.py", cwd=tmp_path)
    assert "points sorted into cells by one submission: True\n" in output
    counts = np.bincount(
        (np.random.default_rng(0).random(50_000, dtype=np.float32) * np.float32(1000)).astype(int) // 100
    )
    assert f"points in each tenth of the grid: {' '.join(map(str, counts))}\n" in output


def test_equalise_draws_the_picture_that_numpy_computes(tmp_path: Path) -> None:
    output = run("equalise.py", "-o", "picture.png", cwd=tmp_path)
    assert output.startswith("one submission gives NumPy's picture: True\n")
    assert "Picture: picture.png\n" in output
    from matplotlib.image import imread

    picture = imread(tmp_path / "picture.png")
    before, after = np.hsplit(picture, 2)
    assert picture.shape == (512, 1024)
    assert np.ptp(before) < 0.3
    assert np.ptp(after) > 0.95
    greys = (np.bincount((after * 255).astype(int).reshape(-1), minlength=256).cumsum() / after.size)[[64, 128, 192]]
    assert np.abs(greys - [0.25, 0.5, 0.75]).max() < 0.06  # an even spread


def test_directml_structs_computes_and_shows_an_error(tmp_path: Path) -> None:
    x = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
    output = run("directml_structs.py", cwd=tmp_path)
    assert f"is\n{np.cumsum(x[:, ::-1], axis=1)[:, ::-1] - x}\n" in output
    assert f"halves\n{np.floor(x / 2 + 0.5)}\n" in output
    assert "0x80070057: " in output
    assert "FLOAT16 while tensor 'InputTensor' has DataType DML_TENSOR_DATA_TYPE_FLOAT32" in output


def test_large_file_has_the_bits_of_one_call(tmp_path: Path) -> None:
    output = run("large_file.py", "--mebibytes", "8", "--memory", "2MiB", cwd=tmp_path)
    assert output == "x.npy: 8 MiB, scanned with 2MiB of memory\ny.npy has the bits of one call: True\n"


def test_dask_cluster_has_the_bits_of_one_call(tmp_path: Path) -> None:
    output = run("dask_cluster.py", "--rows", "200000", cwd=tmp_path)
    assert "32 chunks on 2 processes have the bits of one call: True\n" in output
    assert "so has the xarray, with dimensions ('time', 'place'): True\n" in output
    assert "dask.array.cumsum differs from numpy.cumsum in " in output
