#!/usr/bin/env python3
"""Run ``dmlgpu verify`` on several devices and require equal digests of all of them and of the reference.

::

    python scripts/matrix.py FOLDER [arguments of dmlgpu verify, such as --share 1/2]

Two devices are verified at a time: software devices compile on one core, which is most of what they do here. Each one's
report is printed when it ends. FOLDER gets the digests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

from system import ROOT

AT_A_TIME = 2
VERIFY = ["-m", "dmlgpu", "verify"]
JOBS = ["--jobs", "1"]  # the cores have enough to do with two devices
SWIFTSHADER = {"VK_DRIVER_FILES": str(ROOT / ".cache" / "swiftshader" / "vk_swiftshader_icd.json")}


@dataclass(frozen=True)
class Run:
    """A verification: the name of its digests, arguments of Python, and what it adds to the environment."""

    name: str
    arguments: list[str]
    environment: dict[str, str]


RUNS = (  # Vulkan last: in CI the suite, run beside, has mostly filled Mesa's cache of shaders by then
    Run("dawn", [str(ROOT / "scripts" / "on_dawn.py"), *VERIFY[1:], "--device", "SwiftShader", *JOBS], SWIFTSHADER),
    Run("swiftshader", [*VERIFY, "--device", "SwiftShader", *JOBS], SWIFTSHADER),
    Run("opengl", [*VERIFY, "--device", "OpenGL", *JOBS], {}),
    Run("vulkan", [*VERIFY, "--device", "Vulkan", *JOBS], {}),
    Run("reference", [*VERIFY, "--reference"], {}),
)


def verify(run: Run, digests: Path, cases: list[str]) -> bool:
    """Run one over the cases that arguments name, and print what it says; return whether it passed."""
    digests.unlink(missing_ok=True)
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, *run.arguments, "--digest", str(digests), *cases],
        cwd=ROOT,
        env=os.environ | run.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    end = f"{run.name}: exit status {done.returncode} after {time.monotonic() - start:.0f} s"
    print(f"{done.stdout}{end}\n", flush=True)
    return done.returncode == 0


def main() -> int:
    """Verify all devices, then compare."""
    if len(sys.argv) < 2:
        print("usage: matrix.py FOLDER [arguments of dmlgpu verify]", file=sys.stderr)
        return 2
    folder, cases = Path(sys.argv[1]).resolve(), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    digests = [folder / f"{run.name}.json" for run in RUNS]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        passed = list(pool.map(verify, RUNS, digests, repeat(cases)))
    if not all(passed):
        failed = [run.name for run, ok in zip(RUNS, passed, strict=True) if not ok]
        print(f"matrix.py: failed: {', '.join(failed)}", file=sys.stderr)
        return 1
    return subprocess.call([sys.executable, *VERIFY, "--compare", *map(str, reversed(digests))], cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main())
