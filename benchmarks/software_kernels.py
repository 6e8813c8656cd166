"""Measures each kernel that only software devices take against what would run without it; prints a table in Markdown.

    python -m benchmarks.software_kernels [--device D] [--samples N] [--kernels scan_bands,scan_serial] [--md FILE]

Both plans of a row are measured in turn, on the same data, and must have the same bits. Such a kernel earns its place
if it is at least 1.3 times as fast on a row of ``dmlgpu bench``, which have a star here; the others show what else it
is for. docs/notes/software-drivers.md has the table.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from unittest import mock

import numpy as np

import dmlgpu
from dmlgpu.bench.clock import Clock, work_of
from dmlgpu.bench.results import ratios, summarize
from dmlgpu.bench.rows import Row, default_rows, quick_rows
from dmlgpu.bench.runner import problem_of
from dmlgpu.bench.workloads import elements, padded
from dmlgpu.planning import scan
from dmlgpu.planning.columns import Columns
from dmlgpu.planning.dispatch import Plan
from dmlgpu.planning.plan import plan_problem
from dmlgpu.planning.policy import SoftwarePolicy
from dmlgpu.planning.problem import ScanProblem
from dmlgpu.planning.windows import Limits

from .options import add_count, add_device, add_file, opened

ENOUGH = 1.3
NAMED = frozenset([*default_rows(), *quick_rows()])


@dataclass(frozen=True)
class Trial:
    """A kernel, and a row that it is for."""

    kernel: str
    row: Row
    in_place: bool = False

    @property
    def name(self) -> str:
        """The row's name, with a star if it is one of ``dmlgpu bench``."""
        return f"{self.row.name}{', in place' if self.in_place else ' *' if self.is_named else ''}"

    @property
    def is_named(self) -> bool:
        """Whether it is a row of ``dmlgpu bench``."""
        return self.row in NAMED and not self.in_place


def _sums(*rows: tuple[str, tuple[int, ...], int]) -> list[Row]:
    return [Row("sum", dtype, shape, axis) for dtype, shape, axis in rows]


ROWS: dict[str, list[Row]] = {
    "scan_bands": _sums(
        ("float32", (4096, 4096), 0), ("float32", (256, 256, 256), 1), ("float32", (16384, 1024), 0),
        ("float16", (4096, 4096), 0), ("float64", (2048, 4096), 0), ("float32", (4095, 4095), 0),
        ("float32", (2**16, 67), 0), ("float32", (2**16, 24), 0), ("float16", (4096, 4094), 0),
        ("float16", (768, 1366), 0), ("float16", (4095, 4095), 0), ("float16", (512, 512), 0),
    ),
    "scan_bands_exact": _sums(
        ("int32", (4096, 4096), 0), ("uint8", (4096, 4096), 0), ("int64", (4096, 4096), 0),
        ("int32", (256, 256, 256), 1), ("int32", (4095, 4095), 0), ("int32", (512, 512), 0),
        ("uint8", (4000, 3000), 0), ("uint8", (1920, 1080), 0), ("uint8", (512, 512), 0), ("uint8", (4095, 4095), 0),
        ("uint8", (2**16, 67), 0), ("int64", (4095, 4095), 0),
    ),
    "scan_short by runs": _sums(
        ("float32", (2**22, 3), 1), ("uint8", (2**22, 3), 1), ("int64", (2**22, 3), 1), ("float16", (2**22, 3), 1),
        ("float32", (2**20, 13), 1),
    ),
    "scan_serial": _sums(
        ("float32", (2**15,), 0), ("float32", (2**18,), 0), ("float32", (2**24,), 0), ("float16", (2**24,), 0),
        ("uint8", (2**24,), 0), ("int64", (2**24,), 0), ("float32", (2**20, 2), 0),
    ),
}  # fmt: skip
"""Rows that the kernels are for: those of ``dmlgpu bench`` that take them, and others."""

TRIALS = [Trial(kernel, row) for kernel, rows in ROWS.items() for row in rows]
TRIALS += [Trial("scan_serial", Row("sum", "float32", (2**24,), 0), in_place=True)]


class _Unpacked(SoftwarePolicy):
    """Without whole runs of short slices."""

    def packs(self, problem: ScanProblem) -> bool:
        return False


class _Unbanded(SoftwarePolicy):
    """Without scan_bands and scan_bands_exact."""

    def bands(self, problem: ScanProblem, chunks: Sequence[int], in_place: bool) -> Columns | None:
        return None


_POLICIES = {
    "scan_short by runs": _Unpacked,
    "scan_bands": _Unbanded,
    "scan_bands_exact": _Unbanded,
}
"""What does without these kernels; without scan_serial there is an invocation a slice."""


def plans(trial: Trial, limits: Limits) -> tuple[Plan, Plan]:
    """Return the plan of a row, and the one that there would be without the kernel."""
    problem = problem_of(trial.row)
    usual = plan_problem(problem, limits, one_buffer=trial.in_place)
    forced = "slices" if trial.kernel == "scan_serial" else None
    with mock.patch.object(scan, "policy_of", _POLICIES.get(trial.kernel, SoftwarePolicy)):
        return usual, plan_problem(problem, limits, one_buffer=trial.in_place, kernel=forced)


def kernels_of(plan: Plan) -> str:
    """Return the kernels of a plan, each once, in order."""
    by_runs = [" by runs" if dict(one.pipeline.constants).get("runs") else "" for one in plan.passes]
    return " + ".join(dict.fromkeys(one.pipeline.kernel + way for one, way in zip(plan.passes, by_runs, strict=True)))


@dataclass(frozen=True)
class Found:
    """What was measured: the plans' kernels, their milliseconds, and the other's time by the usual one's."""

    trial: Trial
    names: tuple[str, str]
    milliseconds: tuple[float, float]
    ratio: float
    noise: float

    def __str__(self) -> str:
        (one, other), (usual, instead) = self.milliseconds, self.names
        return (
            f"| `{self.trial.kernel}` | {self.trial.name} | {one:.3g} | {other:.3g} | **{self.ratio:.2f}** | "
            f"{100 * self.noise:.0f} % | {usual} | {instead} |"
        )


def measured(trial: Trial, device: dmlgpu.Device, clock: Clock, samples: int) -> Found | None:
    """Measure a row with both plans in turn; None where the plan on this device has no such kernel."""
    both = plans(trial, device.limits)
    names = (kernels_of(both[0]), kernels_of(both[1]))
    if trial.kernel not in names[0] or names[0] == names[1]:
        return None
    x = elements(trial.row.operator, trial.row.type, trial.row.elements)
    buffers = [device.allocate(padded(x.nbytes)) for _ in range(1 if trial.in_place else 2)]
    try:
        source, target = buffers[0], buffers[-1]
        works = [work_of(device, plan, source.gpu_buffer, target.gpu_buffer) for plan in both]
        results = []
        for work in works:
            device.upload(source, 0, x)
            clock.seconds(work)  # which compiles
            out = np.empty_like(x)
            device.download(target, 0, out)
            results.append(out.tobytes())
        if results[0] != results[1]:
            raise ValueError(f"{trial.name}: {names[0]} and {names[1]} have different bits")
        times: list[list[float]] = [[], []]
        for _ in range(samples):
            for work, taken in zip(works, times, strict=True):
                if trial.in_place:  # or sums of sums would grow without end
                    device.upload(source, 0, x)
                taken.append(clock.seconds(work))
    finally:
        for buffer in buffers:
            buffer.release()
    summary = summarize(ratios(times[1], times[0]))
    one, other = (1e3 * summarize(taken).median for taken in times)
    return Found(trial, names, (one, other), summary.median, summary.noise)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 if a kernel is not 1.3 times as fast on any named row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_device(parser)
    add_count(parser, "--samples", 9)
    parser.add_argument("--kernels", default=",".join(ROWS), help="by default all: %(default)s")
    add_file(parser, "--md", help="also write the table to this file")
    arguments = parser.parse_args(argv)
    chosen = arguments.kernels.split(",")
    for kernel in chosen:
        if kernel not in ROWS:
            parser.error(f"there is no kernel {kernel!r}; there are {', '.join(ROWS)}")
    device = opened(parser, arguments.device)
    if not device.limits.software:
        parser.error(f"{device.summary} is no software device, and takes none of these kernels")
    clock = Clock(device)
    lines = [
        f"{device.summary}; {device.limits.traits.cores} cores; {arguments.samples} samples in turn",
        "",
        "| kernel | row | ms | ms without it | ratio | noise | passes | passes without it |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    best: dict[str, float] = {}
    for trial in TRIALS:
        if trial.kernel not in chosen:
            continue
        found = measured(trial, device, clock, arguments.samples)
        line = f"| `{trial.kernel}` | {trial.name} | | | not taken here | | | |" if found is None else str(found)
        if found is not None and trial.is_named:
            best[trial.kernel] = max(found.ratio, best.get(trial.kernel, 0.0))
        lines.append(line)
        print(line, flush=True)
    lost = [kernel for kernel in chosen if best.get(kernel, 0.0) < ENOUGH]
    lines += ["", f"Not {ENOUGH} times as fast on any row of `dmlgpu bench` (*): {', '.join(lost) or 'none'}."]
    print("\n".join(lines[-2:]))
    if arguments.md is not None:
        arguments.md.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
