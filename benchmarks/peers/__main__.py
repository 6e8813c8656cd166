"""Measure this package and other libraries on the same data, in turn; print one table.

    python -m benchmarks.peers [--peers dmlgpu,numpy,torch] [--axis NAME=VALUES] [--samples N] [--timeout S]
        [--md FILE] [--plot FILE]

All begin and end with NumPy arrays, transfers included. ``--axis`` chooses rows as in ``dmlgpu bench``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from dmlgpu.bench.machine import machine
from dmlgpu.bench.results import ratios, summarize
from dmlgpu.bench.rows import Row, parse_axis, rows_of
from dmlgpu.errors import DmlGpuError

from ..options import add_count, add_file, add_seconds
from .calls import PEERS
from .team import Measured, Team

ROWS = [
    Row("sum", "float32", (16384,), 0),
    Row("sum", "float32", (2**22,), 0),
    Row("sum", "float32", (2**24,), 0),
    Row("sum", "float32", (4096, 4096), 1),
    Row("sum", "float32", (4096, 4096), 0),
    Row("sum", "float32", (256, 256, 256), 1),
    Row("sum", "float32", (2**20, 16), 1),
    Row("sum", "float32", (2**20, 2), 0),
    Row("sum", "int64", (2048, 2048), 0),
    Row("sum", "float16", (4096, 4096), 1),
    Row("round", "float32", (2**24,)),
]


def table(found: Mapping[Row, Mapping[str, Measured]], names: Sequence[str]) -> str:
    """Return the table in Markdown: milliseconds, and in brackets how many times as long as dmlgpu."""
    lines = [f"| NumPy in, NumPy out: ms (x dmlgpu) | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for row, measured in found.items():
        own = measured.get("dmlgpu")
        cells = []
        for name in names:
            one = measured[name]
            if one.failure is not None:
                cells.append(one.failure.replace("|", "/"))
                continue
            text = f"{1e3 * summarize(one.seconds).median:.3g}"
            if own is not None and own.failure is None and name != "dmlgpu":
                count = min(len(one.seconds), len(own.seconds))
                text += f" ({summarize(ratios(one.seconds[:count], own.seconds[:count])).median:.2f})"
            cells.append(text)
        lines.append(f"| {row.name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def plot(found: Mapping[Row, Mapping[str, Measured]], names: Sequence[str], path: Path) -> None:
    """Draw the time of an element by row and library."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 0.55 * len(found) + 1.5), layout="constrained")
    for number, name in enumerate(names):
        points = [
            (1e9 * summarize(measured[name].seconds).median / row.elements, place)
            for place, (row, measured) in enumerate(found.items())
            if measured[name].seconds
        ]
        if points:
            axes.plot(*zip(*points, strict=True), "o" if number == 0 else "s", label=name, alpha=0.8)
    axes.set_yticks(range(len(found)), [row.name for row in found])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("nanoseconds an element, NumPy in, NumPy out")
    axes.grid(axis="both", alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", default=",".join(PEERS), help="by default all: %(default)s")
    parser.add_argument("--axis", metavar="NAME=VALUES", action="append", help="choose rows, as in dmlgpu bench")
    add_count(parser, "--samples", 7)
    add_seconds(parser, "--timeout", 20.0, help="seconds of sampling a row, all libraries together")
    add_file(parser, "--md", help="also write the table to this file")
    add_file(parser, "--plot", help="also draw it; needs matplotlib")
    arguments = parser.parse_args(argv)
    names = list(dict.fromkeys(arguments.peers.split(",")))
    for name in names:
        if name not in PEERS:
            parser.error(f"there is no peer {name!r}; there are {', '.join(PEERS)}")
    try:
        rows = rows_of(dict(map(parse_axis, arguments.axis))) if arguments.axis else ROWS
    except DmlGpuError as error:
        parser.error(str(error))
    found: dict[Row, dict[str, Measured]] = {}
    with Team(names) as team:
        for name, reason in team.missing.items():
            print(f"without {name}: {reason}", file=sys.stderr)
        if not team.names:
            parser.error("none of these peers can run here")
        for number, row in enumerate(rows):
            print(f"{number} of {len(rows)}  {row.name}", file=sys.stderr, flush=True)
            found[row] = team.measure(row, arguments.samples, arguments.timeout)
        here = machine()
        versions = ", ".join(f"{name} {PEERS[name].version()}".strip() for name in team.names)
        text = f"{here['processor']}, {here['cores']} cores; {versions}\n\n{table(found, team.names)}"
        print(text)
        if arguments.md is not None:
            arguments.md.write_text(text, encoding="utf-8")
        if arguments.plot is not None:
            plot(found, team.names, arguments.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
