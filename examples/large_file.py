"""Scan a file that is larger than the memory that may be used; the bits are those of one call.

The command keeps what is done if it is killed, and goes on from there when it is given again.

python examples/large_file.py [--mebibytes 64] [--memory 16MiB]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import dmlgpu

ROWS = 8


def command(folder: Path, memory: str) -> list[str]:
    """Return what one would type, `dmlgpu cumsum ...`, for this interpreter."""
    options = ["--axis", "1", "--memory", memory, "--resume"]
    return [sys.executable, "-m", "dmlgpu", "cumsum", str(folder / "x.npy"), "-o", str(folder / "y.npy"), *options]


def write_large_file(path: Path, mebibytes: int) -> NDArray[np.float32]:
    """Write random steps, eight rows of them, without having all of them in memory."""
    length = mebibytes * 2**20 // (4 * ROWS)
    file = np.lib.format.open_memmap(path, "w+", np.float32, (ROWS, length))
    random = np.random.default_rng(1)
    for row in file:
        row[:] = random.standard_normal(length, np.float32)
    file.flush()
    return np.asarray(file)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--mebibytes", type=int, default=64)
    parser.add_argument("--memory", default="16MiB")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        x = write_large_file(folder / "x.npy", arguments.mebibytes)
        print(f"x.npy: {arguments.mebibytes} MiB, scanned with {arguments.memory} of memory")
        subprocess.run(command(folder, arguments.memory), check=True, stdout=subprocess.DEVNULL)
        y = np.load(folder / "y.npy", mmap_mode="r")
        same = all(np.array_equal(y[i], dmlgpu.cumulative_sum(x[i])) for i in range(ROWS))
        print(f"y.npy has the bits of one call: {same}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
