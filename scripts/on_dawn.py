"""Runs a Python module with Dawn in the place of wgpu-native: over Chrome's WebGPU and its compiler, Tint.

::

    python scripts/on_dawn.py dmlgpu verify
    python scripts/on_dawn.py pytest tests/test_scan_kernels.py

Dawn comes with the package wgpudawn, which has wgpu-py's API and is no run-time dependency. It takes the name ``wgpu``
before anything imports that, so that dmlgpu needs to know nothing about it.
"""

from __future__ import annotations

import runpy
import sys


def main() -> int:
    """Run ``python -m MODULE ARGUMENTS`` on Dawn; return the exit status for bad usage."""
    if len(sys.argv) < 2:
        print("usage: on_dawn.py MODULE [ARGUMENTS]", file=sys.stderr)
        return 2
    try:
        from wgpudawn import install_as_wgpu
    except ImportError:
        print(f"on_dawn.py: {sys.executable} has no wgpudawn; 'make setup-test' installs it", file=sys.stderr)
        return 2
    install_as_wgpu()
    sys.path[0] = ""  # as with -m: the current folder, not this script's
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
