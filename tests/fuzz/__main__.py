"""Command: python -m tests.fuzz [TARGET ...] [--minutes M]; what it finds new goes into tests/data/fuzz."""

from __future__ import annotations

import argparse
import sys
import warnings

from dmlgpu.errors import SoftwareAdapterWarning

from .targets import TARGETS


def main() -> int:
    """Fuzz each target for a while; an error ends the command, with the shrunk input."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="fuzz, guided by the lines that run")
    parser.add_argument("targets", nargs="*", help=f"of {', '.join(TARGETS)}; all by default")
    parser.add_argument("--minutes", type=float, default=5.0, help="for each target (default: %(default)s)")
    arguments = parser.parse_args()
    unknown = set(arguments.targets) - set(TARGETS)
    if unknown:
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", SoftwareAdapterWarning)
    for name in arguments.targets or TARGETS:
        TARGETS[name].search(60 * arguments.minutes, lambda line: print(line, flush=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
