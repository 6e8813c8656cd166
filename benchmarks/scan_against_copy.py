"""How fast sums are, as shares of a copy of the same bytes in the same run.

A row's time is the wall time of one call on data that is on the device, up to the readback of one element; the fastest
of ``--samples`` runs that alternate with the copy. The last column compares the whole way, NumPy in and NumPy out, with
NumPy itself. Every row's result is compared with the oracle, bit for bit.

    python benchmarks/scan_against_copy.py [--device D] [--elements 4194304] [--samples 5]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

import numpy as np

import dmlgpu
from dmlgpu import reference

Shape = tuple[int, ...]


def shapes(elements: int) -> list[tuple[str, Shape, int]]:
    """Return shapes of about `elements` elements: a label, the shape, the axis."""
    side = math.isqrt(elements)
    cube = round(elements ** (1 / 3))
    return [
        ("one slice", (elements,), 0),
        ("few long rows", (16, elements // 16), 1),
        ("square, last", (side, side), 1),
        ("square, first", (side, side), 0),
        ("cube, middle", (cube, cube, cube), 1),
        ("short rows", (elements // 16, 16), 1),
        ("two tall columns", (elements // 2, 2), 0),
    ]


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def row(label: str, shape: Shape, axis: int, dtype: str, device: dmlgpu.Device, samples: int) -> str:
    rng = np.random.default_rng(0)
    x = rng.integers(-100, 100, shape).astype(dtype)
    here = dmlgpu.asarray(x, device)
    scanned = here.copy()

    def finished(array: dmlgpu.DeviceArray) -> None:
        array.reshape(-1)[:1].numpy()

    def scan() -> None:
        finished(dmlgpu.cumulative_sum(here, axis=axis, dtype=dtype, out=scanned))

    def copy() -> None:
        finished(here.copy())

    scan()
    copy()
    pairs = [(seconds(scan), seconds(copy)) for _ in range(samples)]
    scan_time, copy_time = (min(times) for times in zip(*pairs, strict=True))
    whole = min(
        seconds(lambda: dmlgpu.cumulative_sum(x, axis=axis, dtype=dtype, device=device)) for _ in range(samples)
    )
    numpy_time = min(seconds(lambda: np.cumsum(x, axis=axis, dtype=dtype)) for _ in range(samples))
    difference = reference.first_difference(scanned.numpy(), reference.cumulative(x, "sum", axis=axis))
    verdict = "same bits" if difference is None else f"WRONG: {difference}"
    rate = x.size / scan_time / 1e6
    return (
        f"{label:17} {'x'.join(map(str, shape)):>14} {dtype:8} {rate:8.0f} {copy_time / scan_time:8.2f} "
        f"{numpy_time / whole:8.2f}  {verdict}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="an adapter's index or part of its summary")
    parser.add_argument("--elements", type=int, default=2**22)
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--dtypes", default="float32", help="comma-separated")
    arguments = parser.parse_args()
    device = dmlgpu.Device(arguments.device)
    print(device.summary)
    print(f"{'':17} {'shape':>14} {'type':8} {'10^6/s':>8} {'of copy':>8} {'of NumPy':>8}")
    for dtype in arguments.dtypes.split(","):
        for label, shape, axis in shapes(arguments.elements):
            print(row(label, shape, axis, dtype, device, arguments.samples), flush=True)


if __name__ == "__main__":
    main()
