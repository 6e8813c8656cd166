#!/usr/bin/env python3
"""Make everything that the demo or the test suite needs: the environment, the package and a driver.

Run by ``make``; by hand, ``python3 scripts/set_up.py demo`` or ``... test``. Uses only the standard library, can be run
again and again, and does nothing that is already done:

1. a virtual environment in ``.venv``, of the Python that runs this script;
2. this checkout in it, editable, with the extras ``cli`` and ``plot`` and, for the tests, the dependency group ``dev``;
3. if wgpu then finds no adapter, the software driver from the system's packages (Debian, Ubuntu). A machine whose GPU
   wgpu finds gets nothing installed.

With ``DMLGPU_ADAPTER`` naming OpenGL, step 3 looks for an OpenGL adapter instead of a Vulkan one.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from typing import NoReturn

from system import ROOT, apt_install, fail, say

VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
MINIMUM = (3, 11)

TARGETS = {
    "demo": ["--editable", ".[cli,plot]"],
    "test": ["--editable", ".[cli,dask,plot]", "--group", "dev"],
}

# What makes wgpu find an adapter of each backend on a system without a GPU driver.
DEBIAN_PACKAGES = {
    "Vulkan": ["mesa-vulkan-drivers"],
    "OpenGL": ["libegl1", "libgl1-mesa-dri"],
}

LIST_ADAPTERS = "import wgpu\nfor adapter in wgpu.gpu.enumerate_adapters_sync(): print(adapter.summary)"


def make_environment() -> None:
    """Create ``.venv``, or make it anew if it belongs to another Python or does not run."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    probe = [str(PYTHON), "-c", "import pip, sys; print('%d.%d' % sys.version_info[:2])"]
    if PYTHON.exists():
        found = subprocess.run(probe, capture_output=True, text=True).stdout.strip()
        if found == version:
            return
        say(f".venv is not of Python {version}: making it anew")
    else:
        say(f"making the environment .venv with Python {version}")
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], capture_output=True, text=True)
    if made.returncode:
        fail(
            f"cannot make the environment .venv with {sys.executable}:\n{made.stdout}{made.stderr}"
            "On Debian and Ubuntu, install the package python3-venv and run the command again."
        )


def pip(*arguments: str) -> None:
    """Run pip of ``.venv`` in the checkout."""
    command = [str(PYTHON), "-m", "pip", "--quiet", "--quiet", "--disable-pip-version-check", *arguments]
    if subprocess.run(command, cwd=ROOT).returncode:
        fail(f"pip failed; the command was\n  {shlex.join(command)}\nWhat it printed above names the cause.")


def install(target: str) -> None:
    """Install the package with what `target` needs, unless that was done since the last change of pyproject.toml."""
    make_environment()
    arguments = TARGETS[target]
    # The path is part of the key because a moved checkout leaves an environment that points to its old place.
    key = hashlib.sha256((ROOT / "pyproject.toml").read_bytes() + str(ROOT).encode()).hexdigest()
    stamp = VENV / f"installed-{target}"
    if stamp.exists() and stamp.read_text() == key:
        return
    say("installing the package and what it needs with pip: " + " ".join(arguments))
    # Dependency groups need pip 25.1; Debian 12 brings 23.0.
    pip("install", "--upgrade", "pip>=25.1")
    pip("install", *arguments)
    stamp.write_text(key)


def adapters() -> list[str]:
    """Return the summaries of the adapters that wgpu finds, in a process of its own: a broken driver may crash it."""
    found = subprocess.run([str(PYTHON), "-c", LIST_ADAPTERS], capture_output=True, text=True)
    if found.returncode:
        fail(f"wgpu cannot list the adapters (exit status {found.returncode}):\n{found.stdout}{found.stderr}")
    return found.stdout.splitlines()


def no_adapter(backend: str) -> NoReturn:
    """Say what to install where this script cannot."""
    if sys.platform == "darwin":
        fail("wgpu finds no Metal adapter. Every Mac with macOS 10.13 or newer has one; a virtual machine may not.")
    if os.name == "nt":
        fail("wgpu finds no Direct3D 12 or Vulkan adapter. Install the driver of your graphics card.")
    names = {"Vulkan": "Mesa's Vulkan drivers with lavapipe", "OpenGL": "Mesa's EGL and OpenGL drivers with llvmpipe"}
    fail(
        f"wgpu finds no {backend} adapter, and this system has no apt-get. Install {names[backend]} with the system's "
        "package manager (Fedora: mesa-vulkan-drivers, mesa-libEGL, mesa-dri-drivers; Arch: vulkan-swrast, mesa; "
        "Alpine: mesa-vulkan-swrast, mesa-egl), then run the command again."
    )


def make_driver_available() -> None:
    """See to it that wgpu finds an adapter of the backend that ``DMLGPU_ADAPTER`` asks for, Vulkan by default."""
    backend = "OpenGL" if "opengl" in os.environ.get("DMLGPU_ADAPTER", "").lower() else "Vulkan"
    linux = sys.platform.startswith("linux")
    found = adapters()
    if any(f"via {backend}" in summary for summary in found) or (found and not linux):
        return
    if not linux or not shutil.which("apt-get"):
        no_adapter(backend)
    packages = DEBIAN_PACKAGES[backend]
    apt_install(packages, f"wgpu finds no {backend} adapter here, so Mesa's software one is installed")
    found = adapters()
    if not any(f"via {backend}" in summary for summary in found):
        # The Vulkan loader looks nowhere else if one of these is set.
        settings = [
            f"{name}={os.environ[name]}" for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES") if name in os.environ
        ]
        cause = f" The cause may be {' and '.join(settings)}." if settings else ""
        fail(
            f"wgpu still finds no {backend} adapter now that {' '.join(packages)} is installed. "
            f"It finds: {'; '.join(found) or 'none'}.{cause}"
        )


def main(arguments: list[str]) -> None:
    """Make what ``arguments[0]``, "demo" or "test", needs."""
    if sys.version_info < MINIMUM:
        fail(
            f"Python {MINIMUM[0]}.{MINIMUM[1]} or newer is needed, and {sys.executable} is {sys.version.split()[0]}. "
            "Name a newer one, as in: make demo PYTHON=python3.12"
        )
    if len(arguments) != 1 or arguments[0] not in TARGETS:
        fail("usage: set_up.py demo|test")
    install(arguments[0])
    make_driver_available()


if __name__ == "__main__":
    main(sys.argv[1:])
