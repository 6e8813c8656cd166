"""Runs the command line again and again in children of one process, each hit by a signal or a limit at another call.

A program of its own, because a process that has opened a device cannot fork. NumPy computes here in the device's place:
what is tried are the files. Reads one JSON object from standard input, and writes one a line for each child.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dmlgpu.cli import csv_files, main, operators, records, stream
from tests.faulty_os import FILE_MODULES, FaultyOs


def numpy_in_place_of_a_device(arguments: Namespace) -> tuple[Callable[..., Any], Namespace]:
    compute = np.negative if arguments.command == "round" else np.cumsum
    return lambda array, axis: compute(array, *([] if compute is np.negative else [axis])), Namespace(summary="none")


def in_blocks() -> None:
    """Have files with --memory go in blocks: arrays of two elements, each with a record, and tables of a row."""
    records.CHECKPOINT_SECONDS = 0.0
    stream.block_elements = lambda *_: 2  # type: ignore[assignment]
    csv_files._SHARE, csv_files._LEAST_BLOCK = 1 << 40, 2
    operators._is_large = lambda source, target, kind, arguments: arguments.memory is not None  # type: ignore[assignment]


def hit_by(numbers: set[int], at: int, after: bool, lasting: bool) -> Callable[[int, str, bool], None]:
    """Return a fault: signals at a call, before or after it; and the next ones at all that follow, if it lasts."""

    def fault(number: int, name: str, made: bool) -> None:
        if made == after and (number == at or (lasting and number > at)):
            for signal_number in numbers:
                os.kill(os.getpid(), signal_number)

    return fault


def limited(largest: int) -> Callable[[int, str, bool], None]:
    """Return a fault: while something is written to a file, files can have so many bytes."""

    def fault(number: int, name: str, made: bool) -> None:
        if name == "write":
            infinite = resource.RLIM_INFINITY
            resource.setrlimit(resource.RLIMIT_FSIZE, (infinite if made else largest, infinite))

    return fault


def child(order: dict[str, Any]) -> None:
    """Run the command line as a program does."""
    for number in (1, 2):
        os.dup2(os.open(f"{order['folder']}.{number}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    os.chdir(order["folder"])
    if order.get("ignored"):
        signal.signal(order["ignored"], signal.SIG_IGN)
    fault = hit_by(
        set(order.get("signals", ())), order.get("at", -1), order.get("after", False), order.get("lasting", False)
    )
    if order.get("largest") is not None:
        fault = limited(order["largest"])
    stand_in = FaultyOs(fault, order.get("most", 1 << 30))
    for module in FILE_MODULES:
        module.os = stand_in  # type: ignore[attr-defined]
    operators._operator = numpy_in_place_of_a_device  # type: ignore[assignment]
    in_blocks()
    sys.argv = ["dmlgpu", *order["command"]]
    status = main()
    Path(f"{order['folder']}.calls").write_text(json.dumps(stand_in.calls))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    for line in sys.stdin:
        wanted = json.loads(line)
        process = os.fork()
        if process == 0:
            try:
                child(wanted)
            except BaseException:
                import traceback

                traceback.print_exc()
                sys.stderr.flush()
            finally:
                os._exit(99)
        _, how = os.waitpid(process, 0)
        print(json.dumps(os.waitstatus_to_exitcode(how)), flush=True)
