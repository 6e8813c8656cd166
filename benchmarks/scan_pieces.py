"""Measures scans of an array in pieces against one call on all of it, and prints a table in Markdown.

    python -m benchmarks.scan_pieces [--mebibytes 64] [--piece 16] [--rounds 15] [--on-device] [--only NAME;...]

One call, a scan in pieces with the same bits, and a call on each piece by itself, which hands nothing on, take turns. A
figure is the median over the rounds of a time divided by that of one call, with the quartiles. Data begin and end as
NumPy arrays, or with `--on-device` as DeviceArrays.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dmlgpu
from dmlgpu.cli.bench import positive_of
from dmlgpu.reference import same_bits

from .options import add_count, add_device, opened, whole_from

GOAL = 1.1
_NAMES = {"float16": 2, "uint8": 1, "int64": 8}


def kinds(mebibytes: int) -> dict[str, tuple[str, str, tuple[int, ...], int]]:
    """Return the operator, the type, the shape and the axis of each kind of data."""
    count = mebibytes << 18
    found = {
        "one slice": ("sum", "float32", (count,), 0),
        "16 slices, last axis": ("sum", "float32", (16, count // 16), 1),
        "4 columns": ("sum", "float32", (count // 4, 4), 0),
        "1024 columns": ("sum", "float32", (count // 1024, 1024), 0),
        "one slice, product": ("product", "float32", (count,), 0),
    }
    for dtype, itemsize in _NAMES.items():
        many = (mebibytes << 20) // itemsize
        found[f"one slice, {dtype}"] = ("sum", dtype, (many,), 0)
        found[f"1024 columns, {dtype}"] = ("sum", dtype, (many // 1024, 1024), 0)
    return found


def data(operator: str, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return elements of which no result overflows."""
    random = np.random.default_rng(1)
    if dtype.startswith("float"):
        x = random.standard_normal(shape, np.float32)
        return (1 + 1e-4 * x if operator == "product" else x).astype(dtype)
    return random.integers(0, 100, shape, dtype)


def seconds(do: Callable[[], object]) -> float:
    """Return how long something takes; its result is dropped afterwards."""
    began = time.perf_counter()
    result = do()
    ended = time.perf_counter()
    del result
    return ended - began


def row(kind: tuple[str, str, tuple[int, ...], int], device: dmlgpu.Device, arguments: argparse.Namespace) -> list[Any]:
    """Return the milliseconds of one call, and the ratios of pieces and of separate calls to it."""
    operator, dtype, shape, axis = kind
    x: Any = data(operator, dtype, shape)
    step = max(1, int(arguments.piece * 2**20 * shape[axis] // x.nbytes))
    parts: list[Any] = [x[(slice(None),) * axis + (slice(i, i + step),)] for i in range(0, shape[axis], step)]
    if arguments.on_device:
        x, parts = dmlgpu.asarray(x, device), [dmlgpu.asarray(part, device) for part in parts]
    call: Any = dmlgpu.cumulative_sum if operator == "sum" else dmlgpu.cumulative_prod

    def wait(result: Any) -> Any:
        if arguments.on_device:
            result[(slice(0, 1),) * len(shape)].numpy()
        return result

    def one(block: Any) -> Any:
        return call(block, axis=axis, dtype=dtype, device=device)

    def pieces() -> list[Any]:
        scan = dmlgpu.Scan("sum" if operator == "sum" else "product", axis=axis, dtype=dtype, device=device)
        results: list[Any] = [scan.push(part) for part in parts]
        wait(results[-1])
        return [*results, scan.finish()]

    def separate() -> list[Any]:
        results = [one(part) for part in parts]
        wait(results[-1])
        return results

    if not same_bits(np.concatenate([np.asarray(part) for part in pieces()], axis), np.asarray(one(x))):
        raise SystemExit(f"scan_pieces: pieces of {dtype} of shape {shape} along axis {axis} have other bits")
    times = np.array(
        [[seconds(lambda: wait(one(x))), seconds(pieces), seconds(separate)] for _ in range(arguments.rounds + 1)]
    )[1:]
    ratios = [np.percentile(times[:, n] / times[:, 0], [50, 25, 75]) for n in (1, 2)]
    return [1e3 * np.median(times[:, 0]), *ratios]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_device(parser)
    parser.add_argument("--mebibytes", type=whole_from(1, 2**20), default=64, help="of all pieces together")
    parser.add_argument("--piece", type=positive_of, default=16, help="MiB of a piece")
    add_count(parser, "--rounds", 15)
    parser.add_argument("--on-device", action="store_true", help="DeviceArrays in and out")
    parser.add_argument("--only", default="", help="names of rows, separated by semicolons")
    arguments = parser.parse_args(argv)
    device = opened(parser, arguments.device)
    wanted = arguments.only.split(";") if arguments.only else []
    place = "on the device" if arguments.on_device else "on the host"
    print(f"{device.summary}, {arguments.mebibytes} MiB {place} in pieces of {arguments.piece:g} MiB\n")
    print("| data | one call, ms | pieces | separate calls |\n|---|---|---|---|")
    missed = 0
    for name, kind in kinds(arguments.mebibytes).items():
        if not wanted or name in wanted:
            call, *ratios = row(kind, device, arguments)
            missed += ratios[0][0] > GOAL
            figures = " | ".join(f"{middle:.2f} ({low:.2f} to {high:.2f})" for middle, low, high in ratios)
            print(f"| {name} | {call:.0f} | {figures} |", flush=True)
    print(f"\nthe goal, at most {GOAL}, is missed by {missed} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
