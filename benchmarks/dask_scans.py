"""Measures scans of a dask array on a cluster of processes against `dask.array.cumsum`, and prints a table in Markdown.

    python -m benchmarks.dask_scans [--elements N] [--chunks N] [--workers N] [--rounds N]

The array stays on the workers, and so does each result. The scans are taken in turn; a time is the least of the
rounds, without a first one of each, in which workers open their devices and compile. Tasks are those of the graph that
the scheduler gets, without the array's own; bytes are what workers send to each other.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster, wait

import dmlgpu

from .options import add_count, whole_from


class Taken(NamedTuple):
    """What a scan took."""

    seconds: float
    tasks: int
    sent: int


def sent_bytes(client: Client) -> int:
    """Return what all workers have sent to each other so far."""

    def sent(dask_worker: Any) -> int:
        return int(dask_worker.transfer_outgoing_bytes_total)

    return sum(client.run(sent).values())


def taken(client: Client, x: Any, scan: Callable[[Any], Any]) -> Taken:
    """Scan an array that is on the workers, and measure it."""
    (lazy,) = dask.optimize(scan(x))
    tasks = len(dict(lazy.__dask_graph__())) - x.npartitions
    before, began = sent_bytes(client), time.perf_counter()
    result = client.persist(lazy)
    wait(result)
    return Taken(time.perf_counter() - began, tasks, sent_bytes(client) - before)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--elements", type=whole_from(1, 2**40), default=2**28)
    parser.add_argument("--chunks", type=whole_from(1, 2**20), default=64)
    parser.add_argument("--workers", type=whole_from(1, 64), default=2)
    add_count(parser, "--rounds", 3)
    arguments = parser.parse_args(argv)
    if arguments.chunks > arguments.elements:
        parser.error(f"--chunks is {arguments.chunks}: give at most one for each of the {arguments.elements} elements")
    sides: dict[str, Callable[[Any], Any]] = {
        "dmlgpu.cumulative_sum": dmlgpu.cumulative_sum,
        "dask.array.cumsum": lambda x: da.cumsum(x, axis=0),
        "dask.array.cumsum, method='blelloch'": lambda x: da.cumsum(x, axis=0, method="blelloch"),
    }
    found: dict[str, list[Taken]] = {name: [] for name in sides}
    options = {"n_workers": arguments.workers, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        random = da.random.default_rng(1)
        size = arguments.elements // arguments.chunks
        x = client.persist(random.standard_normal(arguments.elements, dtype=np.float32, chunks=size))
        wait(x)
        for _ in range(arguments.rounds + 1):
            for name, scan in sides.items():
                found[name].append(taken(client, x, scan))
    print(f"{arguments.elements} float32 in {arguments.chunks} chunks on {arguments.workers} processes of a thread\n")
    print("| scan | seconds | tasks | MB between workers |")
    print("|---|---|---|---|")
    for name, rounds in found.items():
        best = min(rounds[1:], key=lambda one: one.seconds)
        print(f"| `{name}` | {best.seconds:.2f} | {best.tasks} | {best.sent / 1e6:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
