"""Prints the goals of plans for GPUs, as Markdown: what plans would move on a profile, worked out and not measured.

    python -m benchmarks.ledger [--profile h200] [--missed]

The exit status is 1 if a goal is missed. Needs no device. ``dmlgpu explain`` says more about each row.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import dmlgpu
from dmlgpu.bench.rows import shape_text
from dmlgpu.dtypes import by_name
from dmlgpu.planning.explain import Explanation
from dmlgpu.planning.ledger import SECTOR_BYTES
from dmlgpu.planning.profiles import PROFILES

SHAPES: Sequence[tuple[tuple[int, ...], int]] = (
    ((2**24,), 0),
    ((2**28,), 0),
    ((16, 2**20), 1),
    ((4096, 4096), 1),
    ((4096, 4096), 0),
    ((4095, 4095), 0),
    ((16_384, 1024), 0),
    ((256, 256, 256), 1),
    ((2**20, 16), 1),
    ((2**22, 3), 1),
    ((65_536, 256), 1),
    ((2**20, 2), 0),
)
TYPES = ("float32", "float16", "uint8", "int64")
MOST_TRAFFIC, MOST_DISPATCHES, MOST_SECTORS = 1.02, 3, 1.1
MANY_BYTES = 16 * 2**20
"""Of elements: from as many on, there is enough to keep all processors busy."""


@dataclass(frozen=True)
class Goal:
    """A figure, and whether it is what it should be; None where the goal is not for this row."""

    text: str
    holds: bool | None

    def __str__(self) -> str:
        return self.text if self.holds is not False else f"**{self.text}**"


def goals(found: Explanation) -> Iterator[Goal]:
    """Yield the goals of traffic, dispatches, sectors and bytes in flight."""
    yield Goal(f"{found.traffic:.3f}", found.traffic <= MOST_TRAFFIC)
    yield Goal(str(found.dispatches), found.dispatches <= MOST_DISPATCHES)
    itemsize = by_name(found.dtype).itemsize
    row_bytes = found.shape[-1] * itemsize
    is_aligned = len(found.shape) == 1 or row_bytes % SECTOR_BYTES == 0 or SECTOR_BYTES % row_bytes == 0
    sectors = found.sectors or 0.0
    yield Goal(f"{sectors:.2f}", sectors <= MOST_SECTORS if is_aligned else None)
    if found.processor_bytes is None or found.wanted_bytes is None:
        yield Goal("unknown", None)
        return
    is_large = math.prod(found.shape) * itemsize >= MANY_BYTES
    in_flight = found.processor_bytes / 1000
    yield Goal(f"{in_flight:.1f}", in_flight >= int(found.wanted_bytes / 1000) if is_large else None)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", choices=tuple(PROFILES), default="h200")
    parser.add_argument("--missed", action="store_true", help="print only rows that miss a goal")
    arguments = parser.parse_args(argv)
    wanted = PROFILES[arguments.profile].wanted_bytes
    enough = "unknown" if wanted is None else f">= {int(wanted / 1000)} (from 16 MiB on)"
    print(f"cumsum on {PROFILES[arguments.profile].summary}; bold: missed\n")
    print("| type, shape, axis | kernels | traffic | dispatches | sectors | kB in flight a processor | holds |")
    print("|---|---|---|---|---|---|---|")
    print(f"| goal | | <= {MOST_TRAFFIC} | <= {MOST_DISPATCHES} | <= {MOST_SECTORS} (aligned rows) | {enough} | |")
    rows = missed = 0
    for dtype in TYPES:
        for shape, axis in SHAPES:
            found = dmlgpu.explain("cumsum", shape, axis=axis, dtype=dtype, profile=arguments.profile)
            figures = list(goals(found))
            holds = all(goal.holds is not False for goal in figures)
            rows, missed = rows + 1, missed + (not holds)
            if holds and arguments.missed:
                continue
            kernels = ", ".join(dict.fromkeys(one.kernel for one in found.repeated))
            cells = " | ".join(map(str, figures))
            print(f"| {dtype} {shape_text(shape)}, {axis} | {kernels} | {cells} | {'yes' if holds else 'no'} |")
    print(f"\n{rows - missed} of {rows} rows hold all their goals.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
