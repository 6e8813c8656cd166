"""What importing the package does, and does not do."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dmlgpu


def run(code: str, **environment: str) -> str:
    """Run Python code in a process of its own, where importing wgpu is an error."""
    root = Path(dmlgpu.__file__).resolve().parent.parent
    guard = "import sys; sys.modules['wgpu'] = None\n"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", guard + code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(root), **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "module",
    [
        "dmlgpu",
        "dmlgpu.directml",
        "dmlgpu.planning.plan",
        "dmlgpu.planning.problem",
        "dmlgpu.reference",
        "dmlgpu.shaders",
    ],
)
def test_importing_does_not_import_wgpu(module: str) -> None:
    assert run(f"import {module}; print({module}.__name__)") == f"{module}\n"


def test_nothing_heavy_comes_along() -> None:
    loaded = run("import numpy; before = set(sys.modules); import dmlgpu; print(*(set(sys.modules) - before))").split()
    assert "dmlgpu.arrays.functions" in loaded
    heavy = ("wgpu", "cffi", "asyncio", "importlib.metadata", "hashlib", "json")
    heavy += ("dmlgpu.runtime", "dmlgpu.directml", "dmlgpu.reference", "dmlgpu.planning.plan", "dmlgpu.arrays.pieces")
    assert not [name for name in loaded if name.startswith(heavy)]


def test_mistakes_are_found_without_a_device() -> None:
    code = """
import numpy as np, dmlgpu
from dmlgpu.errors import DmlGpuError
for call in (
    lambda: dmlgpu.cumulative_sum(np.ones((2, 2))),
    lambda: dmlgpu.cumulative_sum([1], axis=1),
    lambda: dmlgpu.cumulative_prod([1], dtype=bool),
    lambda: dmlgpu.cumulative_sum([1], include_initial=True, exclusive=True),
    lambda: dmlgpu.cumulative_sum([1.0], out=np.zeros(2)),
    lambda: dmlgpu.round([1j]),
    lambda: dmlgpu.round([1.5], mode="up"),
    lambda: dmlgpu.asarray(np.broadcast_to(1, 2**33)),
):
    try:
        call()
    except DmlGpuError as error:
        print(type(error).__name__)
"""
    assert run(code).split() == [
        "AxisError",
        "AxisError",
        "ArrayTypeError",
        "ArgumentError",
        "ArgumentError",
        "ArrayTypeError",
        "ArgumentError",
        "ArgumentError",
    ]


def test_what_needs_no_device_opens_none() -> None:
    code = "import dmlgpu; print(dmlgpu.round([1, 2]), dmlgpu.cumulative_sum([], dtype='int8'))"
    assert run(code) == "[1 2] []\n"


def test_public_names_are_there() -> None:
    for name in dmlgpu.__all__:
        assert getattr(dmlgpu, name) is not None
        assert name in dir(dmlgpu)
    with pytest.raises(AttributeError, match="no attribute 'cumulative_max'"):
        dmlgpu.cumulative_max  # noqa: B018


def test_version_is_the_distributions() -> None:
    try:
        expected = importlib.metadata.version("dmlgpu")
    except importlib.metadata.PackageNotFoundError:  # run from a source tree that is not installed
        expected = "unknown"
    assert dmlgpu.__version__ == expected


def test_errors_are_also_the_builtin_kinds() -> None:
    errors = dmlgpu.errors
    for ours, theirs in {
        errors.ArgumentError: ValueError,
        errors.ArrayTypeError: TypeError,
        errors.ArrayIndexError: IndexError,
        errors.AxisError: np.exceptions.AxisError,
        errors.DeviceMemoryError: MemoryError,
        errors.DeviceError: RuntimeError,
    }.items():
        assert issubclass(ours, theirs)
        assert issubclass(ours, dmlgpu.DmlGpuError)
