"""Measures scans of an array in pieces against one call on all of it, and prints a table in Markdown.

    python -m benchmarks.scan_pieces [--device D] [--mebibytes 256] [--rounds 5]

Both begin and end with NumPy arrays, take turns, and must have the same bits. A figure is the median over the rounds
of the time in pieces divided by that of the call after it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import dmlgpu
from dmlgpu.reference import same_bits

PIECES = (16, 64)
"""MiB of a piece."""
GOAL = 1.1
Floats = NDArray[np.float32]


def in_pieces(x: Floats, axis: int, mebibytes: int, device: dmlgpu.Device) -> list[Floats]:
    """Scan pieces of so many bytes; return the results of each."""
    scan = dmlgpu.Scan("sum", axis=axis, device=device)
    step = max(1, (mebibytes << 20) * x.shape[axis] // x.nbytes)
    parts = [x[:, i : i + step] if axis else x[i : i + step] for i in range(0, x.shape[axis], step)]
    return [*(np.asarray(scan.push(part)) for part in parts), scan.finish()]


def ratio(x: Floats, axis: int, mebibytes: int, device: dmlgpu.Device, rounds: int) -> float:
    """Return how many times as long pieces take as one call."""

    def whole() -> Floats:
        return dmlgpu.cumulative_sum(x, axis=axis, device=device)

    def pieces() -> list[Floats]:
        return in_pieces(x, axis, mebibytes, device)

    if not same_bits(np.concatenate(pieces(), axis), whole()):  # which has also compiled what both need
        raise SystemExit(f"scan_pieces: pieces of {mebibytes} MiB of {x.shape} along axis {axis} have other bits")
    return statistics.median(seconds(pieces) / seconds(whole) for _ in range(rounds))


def seconds(do: Callable[[], object]) -> float:
    """Return how long something takes."""
    began = time.perf_counter()
    do()
    return time.perf_counter() - began


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default=None)
    parser.add_argument("--mebibytes", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args(argv)
    device = dmlgpu.Device(arguments.device)
    elements = arguments.mebibytes << 18
    shapes = [((elements,), 0), ((16, elements // 16), 1), ((elements // 4, 4), 0), ((elements // 1024, 1024), 0)]
    print(f"{device.summary}, {arguments.mebibytes} MiB of float32\n")
    print(f"| slices | {' | '.join(f'pieces of {size} MiB' for size in PIECES)} |\n|---|{'---|' * len(PIECES)}")
    worst = 0.0
    for shape, axis in shapes:
        x = np.random.default_rng(1).standard_normal(shape, np.float32)
        ratios = [ratio(x, axis, size, device, arguments.rounds) for size in PIECES]
        worst = max(worst, *ratios)
        figures = " | ".join(f"{one:.2f}" for one in ratios)
        print(f"| {' x '.join(map(str, shape))}, axis {axis} | {figures} |", flush=True)
    print(f"\nthe goal is at most {GOAL}: {'reached' if worst <= GOAL else 'missed'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
