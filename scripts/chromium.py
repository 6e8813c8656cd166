#!/usr/bin/env python3
"""Unpack Debian's Chromium, with the libraries that it misses here, into ``.cache/chromium``. Nothing is installed."""

from __future__ import annotations

from debian import unpack
from system import ROOT, fail, say

TARGET = ROOT / ".cache" / "chromium"
PROGRAM = TARGET / "usr" / "lib" / "chromium" / "chromium"


def main() -> None:
    """Unpack the browser unless it is there already."""
    if not TARGET.is_dir():
        say(f"unpacking Debian's Chromium into {TARGET.relative_to(ROOT)} (about 110 MB to download)")
        unpack(["chromium"], TARGET)
    if not PROGRAM.is_file():
        fail(f"the package chromium has no {PROGRAM.relative_to(TARGET)}")


if __name__ == "__main__":
    main()
