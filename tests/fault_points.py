"""Count the points at which `make test-faults` lets a fault come: ``python -m tests.fault_points``.

docs/reliability.md has the tables. Nothing fails here: each call or command is made once for each kind of point.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pytest

import dmlgpu
from dmlgpu.cli import main as command_line
from dmlgpu.runtime import memory, transfers

from . import test_cli_crashes as crashes
from . import test_cli_faults as files
from . import test_cli_streams as streams
from . import test_runtime_faults as faults
from .cli_runner import Outcome
from .faulty_os import ERRORS, FaultyOs
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


def of_device_calls() -> Counter[str]:
    """Count the faults of calls in Python."""
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
    return found


def of_files() -> Counter[str]:
    """Count the faults of the command line's files and streams, of which runs in blocks have rows of their own."""
    found: Counter[str] = Counter()
    for what, (prepare, command) in files.SCENARIOS.items():
        with TemporaryDirectory() as name, contextlib.chdir(name), pytest.MonkeyPatch.context() as patch:
            prepare(Path(name))
            counting = FaultyOs(lambda *_: None)
            assert files.run_with(patch, _silent, command, counting).status == 0
            found[f"an error of a call for a file{_in_blocks(what)}"] += 2 * len(ERRORS) * len(counting.calls)
    with TemporaryDirectory() as name, contextlib.closing(crashes.Nursery(Path(name))) as nursery:
        for what, (command, old) in crashes.COMMANDS.items():
            good, of_a_hundred, of_ten = (
                nursery.run(command, old, **most) for most in ({}, {"most": 100}, {"most": 10})
            )
            blocks = _in_blocks(what)
            found[f"a signal before or after a call{blocks}"] += 4 * len(crashes.SIGNALS) * len(of_a_hundred.calls)
            found[f"SIGKILL before or after a call{blocks}"] += 2 * len(of_ten.calls)
            found[f"two signals at a call{blocks}"] += len(good.calls)
            assert good.output is not None
            found[f"a length beyond which a file cannot grow{blocks}"] += len(good.output) + 1
    with mock.patch.object(streams, "EVERY_POINT", True):
        found["a command with its streams in one of 48 states"] = len(streams.cases())
    return found


def _in_blocks(what: str) -> str:
    return ", in blocks" if "in blocks" in what or "by parts" in what else ""


def _silent(*arguments: str) -> Outcome:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        return Outcome(command_line(list(arguments)), out.getvalue(), err.getvalue())


def main() -> None:
    for title, count_all in (
        (f"{len(files.SCENARIOS)} commands on files", of_files),
        (f"{len(faults.CALLS)} kinds of call on two kinds of device", of_device_calls),
    ):
        print(title)
        for fault, points in count_all().items():
            print(f"| {fault} | {points:,} |")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
