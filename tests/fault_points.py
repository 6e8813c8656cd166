"""Count the points at which `make test-faults` lets a fault come: ``python -m tests.fault_points``.

docs/reliability.md has the table. Nothing fails here: each call is made once for each kind of point.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from unittest import mock

import dmlgpu
from dmlgpu.runtime import memory, transfers

from . import test_runtime_faults as faults
from .test_runtime_faults import Points, World


class _Named(Points):
    """Counts points that are none of some calls."""

    def __init__(self, without: tuple[str, ...] = ()) -> None:
        super().__init__(1 << 60, lambda: None)
        self.without = without

    def at(self, what: str) -> None:
        if not what.startswith(self.without or "\0"):
            super().at(what)


def count(world: World, name: str, place: Callable[[Points], AbstractContextManager[None]], points: Points) -> int:
    """Return how many points a call has that has been made before."""
    call = getattr(world, name)
    faults.settle(world, call)
    with place(points):
        call()
    return points.count


@contextmanager
def worlds() -> Iterator[list[World]]:
    """Give both kinds of device, with the sizes of memory that the tests have."""
    small = mock.patch.object(memory, "CHUNK", 4096), mock.patch.object(transfers, "_SMALL", 1024)
    devices = [faults.open_device(dmlgpu.default_device(), kind) for kind in ("own", "staged")]
    with small[0], small[1]:
        yield [World(device) for device in devices]
    for device in devices:
        device.release()


def main() -> None:
    found: Counter[str] = Counter()
    without_arrays = ("into_out", "directml_life_cycle")
    with worlds() as both:
        for world in both:
            for name in faults.CALLS:
                calls = count(world, name, faults.at_native_calls, _Named())
                found["SIGINT at a line, warm calls"] += count(world, name, faults.at_lines, _Named())
                found["SIGINT before and after a call into wgpu-native"] += 2 * calls
                found["an error of a call into wgpu-native, of two kinds"] += 2 * calls
                safe = partial(count, world, name, faults.at_native_calls)
                found["the device lost before a call into wgpu-native"] += safe(_Named(faults.FATAL))
                if name not in without_arrays:
                    arrays = count(world, name, faults.at_allocations, _Named())
                    found["no memory for a NumPy array"] += arrays
        with mock.patch.object(faults, "EVERY_INSTRUCTION", True):
            instructions = count(both[0], "numpy_in", faults.at_lines, _Named())
    found["SIGINT at each instruction of Python, for a small call on NumPy data"] = instructions
    print(f"{len(faults.CALLS)} kinds of call on two kinds of device")
    for fault, points in found.items():
        print(f"| {fault} | {points:,} |")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
