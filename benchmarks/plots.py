"""Measures sums over sizes and numbers of slices, and draws them; needs matplotlib.

    python -m benchmarks.plots [--device D] [--largest LOG2] [--min-samples N] [--timeout S] [--output FILE]

Three plots: share of a copy against size, time per element against size, and time per element against the number of
slices at a constant number of elements, along the last and the first axis. By the device's own clock, bits checked.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

from dmlgpu.bench.machine import header
from dmlgpu.bench.results import Result, summarize
from dmlgpu.bench.rows import Row
from dmlgpu.bench.runner import Options, Runner

from .options import add_count, add_device, add_file, add_seconds, opened, whole_from

OUTPUT = Path(__file__).resolve().parent.parent / "docs" / "images" / "performance.png"


def nanoseconds(result: Result) -> float:
    """Return the time of an element."""
    return 1e9 * summarize(result.seconds).median / result.row.elements


def series(results: Sequence[Result], rows: Iterable[Row]) -> list[Result]:
    """Return the results of rows, in their order."""
    found = {result.row: result for result in results}
    wrong = [result.row.name for result in results if result.difference is not None]
    if wrong:
        raise SystemExit(f"not the reference's bits: {', '.join(wrong)}")
    return [found[row] for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_device(parser)
    parser.add_argument(
        "--largest", type=whole_from(10, 31), default=24, help="the largest size, as a power of two: %(default)s"
    )
    add_count(parser, "--min-samples", 7)
    add_seconds(parser, "--timeout", 5.0, help="seconds for a row")
    add_file(parser, "--output", default=OUTPUT, help="by default %(default)s")
    arguments = parser.parse_args()
    device = opened(parser, arguments.device)
    options = Options(min_samples=arguments.min_samples, timeout=arguments.timeout, whole=False)
    runner = Runner(device, options)
    about = header(device, runner.clock, vars(options))

    top = arguments.largest
    by_size = {
        kind: [Row("sum", kind, (2**exponent,), 0) for exponent in range(10, top + 1, 2)]
        for kind in ("float32", "float16", "int64")
    }
    constant = min(22, top)
    slices = range(0, constant - 1, 2)
    last = [Row("sum", "float32", (2**k, 2 ** (constant - k)), 1) for k in slices]
    first = [Row("sum", "float32", (2 ** (constant - k), 2**k), 0) for k in slices]
    wanted = [*(row for rows in by_size.values() for row in rows), *last, *first]
    results = [result for result in runner.run(dict.fromkeys(wanted)) if result.row in set(wanted)]

    figure, (shares, times, counts) = plt.subplots(1, 3, figsize=(15, 4.5), layout="constrained")
    for kind, rows in by_size.items():
        found = series(results, rows)
        sizes = [result.row.elements for result in found]
        shares.plot(sizes, [result.share for result in found], "o-", label=kind)
        times.plot(sizes, [nanoseconds(result) for result in found], "o-", label=kind)
    for name, rows in (("last axis", last), ("first axis", first)):
        found = series(results, rows)
        counts.plot([2**k for k in slices], [nanoseconds(result) for result in found], "o-", label=name)
    shares.axhline(1, color="gray", linewidth=0.8)
    shares.set(title="share of the fastest copy of the same bytes", xlabel="elements of one slice", ylim=(0, None))
    times.set(title="nanoseconds an element", xlabel="elements of one slice", yscale="log")
    counts.set(title=f"nanoseconds an element, 2^{constant} float32", xlabel="slices", yscale="log")
    for axes in (shares, times, counts):
        axes.set_xscale("log", base=2)
        axes.grid(alpha=0.3)
        axes.legend()
    figure.suptitle(f"cumulative_sum on {about['device']['summary']}; clock: {about['clock']}", fontsize=10)
    figure.savefig(arguments.output, dpi=90)
    print(f"wrote {arguments.output}")


if __name__ == "__main__":
    main()
