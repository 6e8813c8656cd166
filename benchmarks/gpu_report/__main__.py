"""Report what a GPU does with dmlgpu, in less than eight minutes: one JSON file, and one in Markdown.

    python -m benchmarks.gpu_report [--device D] [--seconds N] [--jobs N] [--output FOLDER] [--sections verify,rows,...]

``make gpu-report`` sets up the environment before. The sections:

verify   the default cases of ``dmlgpu verify``
rows     the problem classes of ``benchmarks.ledger``, and five sizes up to the largest array: each against a copy, and
         what the ledger says that it moves
tune     what ``dmlgpu tune`` would decide, and gain; nothing is kept
kernels  the classes of float32 with every kernel that plans ever take, in turn, dispatch by dispatch
peers    CuPy and PyTorch on the same GPU, if they are installed

Every row is saved as it finishes, so that Ctrl-C keeps what there is. A section that fails is written with its error.
On software devices arrays are smaller, and the report says that it is not of a GPU. benchmarks/results/README.md says
how to send one. The exit status is 1 if a result is wrong or a section failed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dmlgpu.bench.clock import Clock
from dmlgpu.bench.machine import header
from dmlgpu.cli.console import CommandError
from dmlgpu.cli.replacement import replacing
from dmlgpu.cli.verify import jobs_of, jobs_on
from dmlgpu.errors import DmlGpuError, SoftwareAdapterWarning
from dmlgpu.runtime.device import Device

from .page import is_wrong, markdown
from .sections import SECTIONS, Task

FORMAT, VERSION = "dmlgpu gpu report", 1
SECONDS = 420.0
"""A step that has begun is not stopped: with the last one it is less than eight minutes."""
_MOST = {False: 2**28, True: 2**22}
"""Elements of the largest array on GPUs, and on software devices."""
_LEAST = 2**12


def most_elements(is_software: bool, seconds: float) -> int:
    """Return the elements of the largest array, a power of two: fewer where there is less time."""
    wanted = int(_MOST[is_software] * min(1.0, seconds / SECONDS))
    return max(_LEAST, 1 << max(0, wanted.bit_length() - 1))


class Report:
    """The content of a report, and its two files.

    Parameters
    ----------
    folder : Path
        Where the files go.
    about : dict
        The header.
    seconds : float
        The budget.
    """

    def __init__(self, folder: Path, about: dict[str, Any], seconds: float) -> None:
        name = re.sub(r"[^a-z0-9]+", "-", about["device"]["summary"].lower()).strip("-")
        self.paths = folder / f"{name}.json", folder / f"{name}.md"
        self.content: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "header": about,
            "budget_seconds": seconds,
            "seconds": 0.0,
            "finished": False,
            "sections": {},
        }

    def save(self, seconds: float) -> None:
        """Write both files anew."""
        self.content["seconds"] = round(seconds, 1)
        for path, text in zip(self.paths, (json.dumps(self.content, indent=1), markdown(self.content)), strict=True):
            with replacing(path) as file:
                file.write(f"{text.rstrip()}\n".encode())


def measure(
    report: Report, index: int, most: int, names: Sequence[str], say: Callable[[str], None], jobs: int | None = None
) -> None:
    """Run sections one after the other, each on a device of its own, and save what each has found as it comes."""
    begun = time.monotonic()
    budget, sections = report.content["budget_seconds"], report.content["sections"]
    for number, name in enumerate(names):
        weights = [SECTIONS[one].weight for one in names[number:]]
        left = max(0.0, budget - (time.monotonic() - begun))
        seconds = left * weights[0] / sum(weights)
        started = time.monotonic()
        entry: dict[str, Any] = {"seconds": 0.0, "given_seconds": round(seconds, 1), "error": None, "found": None}
        sections[name] = entry
        try:
            with Device(index) as device:
                task = Task(device, most, seconds, lambda text, name=name: say(f"{name}: {text}"), jobs)  # type: ignore[misc]
                with closing(SECTIONS[name].run(task)) as steps:
                    for found in steps:
                        entry["found"], entry["seconds"] = found, round(time.monotonic() - started, 1)
                        report.save(time.monotonic() - begun)
        except Exception as error:  # whatever breaks is what the report is for
            entry["error"] = f"{type(error).__name__}: {' '.join(str(error).split())}"
            say(f"{name}: {entry['error']}")
        entry["seconds"] = round(time.monotonic() - started, 1)
        report.save(time.monotonic() - begun)
    report.content["finished"] = True
    report.save(time.monotonic() - begun)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and write both files; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu_report",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--device", help="an adapter's index or part of its summary")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="nothing begins later; %(default)g by default")
    parser.add_argument(
        "--jobs", type=jobs_of, metavar="N", help="share the cases of verify among N processes, as dmlgpu verify does"
    )
    parser.add_argument(
        "--output",
        metavar="FOLDER",
        type=Path,
        default=Path("build", "gpu-report"),
        help="where the two files go; build/gpu-report by default",
    )
    parser.add_argument("--sections", default=",".join(SECTIONS), help="by default all: %(default)s")
    arguments = parser.parse_args(argv)
    names = list(dict.fromkeys(arguments.sections.split(",")))
    for name in names:
        if name not in SECTIONS:
            parser.error(f"there is no section {name!r}; there are {', '.join(SECTIONS)}")
    if not 0 < arguments.seconds < float("inf"):
        parser.error(f"--seconds is {arguments.seconds:g}: give a number above 0")
    warnings.simplefilter("ignore", SoftwareAdapterWarning)  # the report says so
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:4.0f} s  {text}", file=sys.stderr, flush=True)

    try:
        arguments.output.mkdir(parents=True, exist_ok=True)
        with Device(arguments.device) as device:
            jobs_on(device, 0, arguments.jobs)  # refused before anything is measured
            index, is_software = device.description.index, device.description.is_software
            most = most_elements(is_software, arguments.seconds)
            about = header(device, Clock(device), {"sections": names, "most_elements": most})
            about["device"]["features"] = sorted(device.description.features)
            about["tuning"] = asdict(device.limits.tuning)
        report = Report(arguments.output, about, arguments.seconds)
        report.save(0.0)
    except (CommandError, DmlGpuError, OSError) as error:
        parser.error(str(error))
    say(f"{about['device']['summary']}{', a software device: no report from a GPU' if is_software else ''}")
    try:
        measure(report, index, most, names, say, arguments.jobs)
    except KeyboardInterrupt:
        say(f"interrupted; {report.paths[0]} has what there is")
        return 130
    for path in report.paths:
        say(f"wrote {path}")
    return 1 if is_wrong(report.content) else 0


if __name__ == "__main__":
    sys.exit(main())
