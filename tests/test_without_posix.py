"""The package and the tests can be imported where there is nothing that only POSIX has, as on Windows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
IMPORT_ALL = """
import importlib, pkgutil
# These are made for this system, and need what it has.
import concurrent.futures.process, dask.array, pyarrow.parquet, rich.progress, wgpu.backends.wgpu_native
from tests.without_posix import hide
hide()
import dmlgpu
for module in pkgutil.walk_packages(dmlgpu.__path__, "dmlgpu."):
    if module.name != "dmlgpu.__main__":
        importlib.import_module(module.name)
"""
HELP = """
import runpy, sys
import numpy  # made for this system
from tests.without_posix import hide
hide()
sys.argv = ["dmlgpu", *sys.argv[1:]]
runpy.run_module("dmlgpu", run_name="__main__")
"""


def ran(*arguments: str) -> str:
    """Run Python in a process of its own; return what it printed."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    return done.stdout


def test_every_test_is_collected() -> None:
    out = ran("-m", "pytest", "-p", "tests.without_posix", "-p", "no:cacheprovider", "--collect-only", "-q")
    collected = {line.partition("::")[0] for line in out.splitlines() if "::" in line}
    every = {f"tests/{path.name}" for path in ROOT.glob("tests/test_*.py")}
    # Whose tests are all left out by their marks, if nobody asks for them.
    assert every - collected <= {"tests/test_gpu_page.py"}


def test_every_module_of_the_package_is_imported() -> None:
    ran("-c", IMPORT_ALL)


@pytest.mark.parametrize("command", ["", "cumsum", "info", "verify", "bench", "tune", "explain", "export"])
def test_help(command: str) -> None:
    assert ran("-c", HELP, *command.split(), "--help").startswith("usage: dmlgpu")
