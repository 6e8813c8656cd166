"""Measures how long a .csv file takes to read against pyarrow alone, and prints a table in Markdown.

    python -m benchmarks.csv_reading [--rows 1000000] [--rounds 9] [--only NAME,...]

A file of each kind is written to a temporary folder. `read_table` of the command line and `pyarrow.csv.read_csv`, which
makes none of its checks, take turns. A figure is the median over the rounds of one time divided by the other: of wall
time, and of processor time.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow.csv

from dmlgpu.cli.csv_files import read_table

from .options import add_count, whole_from

GOAL = 1.1
Cells = Sequence[str]


def kinds(rows: int) -> dict[str, tuple[Sequence[Cells], str, str]]:
    """Return the columns of each kind of file, and its delimiter and line end."""
    random = np.random.default_rng(1)
    small, wide = (list(map(str, random.integers(-n, n, rows).tolist())) for n in (1000, 10**6))
    short, thousandths = ([f"{x:.{n}f}" for x in random.normal(0, 10, rows).tolist()] for n in (2, 3))
    long = [list(map(repr, random.normal(0, 1, rows).tolist())) for _ in range(3)]
    flags = list(map(str, random.integers(0, 2, rows).tolist()))
    words = [f"id{i}" for i in range(rows)]
    days = [f"20{i % 89 + 10}-{i % 12 + 1:02}-{i % 28 + 1:02}" for i in range(rows)]
    cities = ["New York", "Berlin", "Nice", "San Juan"] * (rows // 4 + 1)
    codes = [f"{i:07}" for i in range(rows)]
    quoted = [f'"word {i}, of them"' for i in range(rows)]
    return {
        "two integers": ([small, wide], ",", "\n"),
        "two integers, one 0 or 1": ([flags, wide], ",", "\n"),
        "two numbers with 2 decimals": ([short, short[::-1]], ",", "\n"),
        "three numbers with 17 digits": (long, ",", "\n"),
        "words, an integer, 3 decimals": ([words, small, thousandths], ",", "\n"),
        "dates, 2 decimals": ([days, short], ",", "\n"),
        "cities, 2 decimals": ([cities[:rows], short], ",", "\n"),
        "codes such as 0012345, an integer": ([codes, wide], ",", "\n"),
        "quoted words, 2 decimals": ([quoted, short], ",", "\n"),
        "semicolons: words, 2 decimals, 0 or 1": ([words, short, flags], ";", "\n"),
        "lines that end in \\r\\n: an integer, 2 decimals": ([wide, short], ",", "\r\n"),
        "2 decimals, one in 1000 NaN": ([["nan", *short[1:1000]] * (rows // 1000), short], ",", "\n"),
    }


def seconds(do: Callable[[], object]) -> tuple[float, float]:
    """Return how long something takes, and how long processors do."""
    began, busy = time.perf_counter(), time.process_time()
    do()
    return time.perf_counter() - began, time.process_time() - busy


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=whole_from(1000, 10**8), default=10**6)
    add_count(parser, "--rounds", 9)
    parser.add_argument("--only", default="", help="kinds to measure: words that their names begin with")
    arguments = parser.parse_args(argv)
    print(f"{arguments.rows} rows, pyarrow {pyarrow.__version__}, {pyarrow.cpu_count()} cores\n")
    print("| columns | MiB | pyarrow ms | wall time | processor time |\n|---|---|---|---|---|")
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        for name, (columns, delimiter, end) in kinds(arguments.rows).items():
            if not name.startswith(tuple(arguments.only.split(","))):
                continue
            lines = [delimiter.join("abc"[: len(columns)]), *map(delimiter.join, zip(*columns, strict=False))]
            path.write_text(end.join([*lines, ""]), newline="")
            options = pyarrow.csv.ParseOptions(delimiter=delimiter)
            one = [
                (
                    seconds(lambda: pyarrow.csv.read_csv(path, parse_options=options)),  # noqa: B023
                    seconds(lambda: read_table(path)),
                )
                for _ in range(arguments.rounds + 1)
            ][1:]
            wall, busy = (statistics.median(ours[i] / theirs[i] for theirs, ours in one) for i in (0, 1))
            alone = statistics.median(theirs[0] for theirs, _ in one)
            if wall > GOAL:
                missed.append(name)
            figures = f"{path.stat().st_size / 2**20:.0f} | {1000 * alone:.0f} | {wall:.2f} | {busy:.2f}"
            print(f"| {name} | {figures} |", flush=True)
    print(f"\nthe goal is at most {GOAL} of wall time: {f'missed by {len(missed)}' if missed else 'reached'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
