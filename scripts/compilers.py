#!/usr/bin/env python3
"""Unpack the compilers of GPUs into ``.cache/compilers``: AMD's, NVIDIA's and Direct3D 12's, and naga's HLSL.

- ``radv``: Mesa's driver of AMD's GPUs, of Debian's backports; ``nvk``: its driver of NVIDIA's, of Debian 13, with the
  C library that it needs. With each comes a shim that makes it believe in a GPU that is not there.
- ``dxc``: DXC, the compiler of HLSL, which the source archive of the Python package compushady brings along.
- ``naga``: naga, wgpu's compiler of WGSL, as WebAssembly: the npm package wgsl-wasm-transpiler-bundler. Node runs it.
- ``fxc``, with the argument ``fxc`` only: the older compiler of HLSL, which the Python package kivy_deps.angle brings
  along for Windows. Wine runs it, by a program that MinGW compiles.

These are unpacked, not installed. What runs and checks them is: Node, npm and spirv-val, and for FXC Wine and MinGW,
from the system's packages.
Uses only the standard library, needs ``.venv``, and does nothing that is already done.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from debian import libraries, unpack
from set_up import PYTHON
from system import ROOT, apt_install, fail, say

TARGET = ROOT / ".cache" / "compilers"
PROGRAMS = {"spirv-val": "spirv-tools", "node": "nodejs", "npm": "npm"}
DRIVERS = ["mesa-vulkan-drivers", "mesa-drm-shim"]
COMPUSHADY = "compushady==0.17.5"
NAGA = "wgsl-wasm-transpiler-bundler@0.0.1"
ANGLE = "kivy_deps.angle==0.5.0"
WINE, MINGW = "/usr/lib/wine/wine64", "x86_64-w64-mingw32-gcc"


def install_programs() -> None:
    """Install what is missing of the programs."""
    packages = [package for program, package in PROGRAMS.items() if not shutil.which(program)]
    if packages:
        apt_install(packages, f"the compilers' output is made and checked with {', '.join(packages)}")


def unpack_radv(folder: Path) -> None:
    """Unpack the driver of AMD's GPUs and its shim."""
    unpack(DRIVERS, folder, release="bookworm-backports")


def unpack_nvk(folder: Path) -> None:
    """Unpack the driver of NVIDIA's GPUs, its shim, and all that they need: this system's C library may be too old."""
    unpack(DRIVERS, folder, release="trixie", system=False)


def unpack_dxc(folder: Path) -> None:
    """Take DXC out of compushady's source archive."""
    with tempfile.TemporaryDirectory() as name:
        run([str(PYTHON), "-m", "pip", "download", "-qq", "--no-deps", "--no-binary", ":all:", "-d", name, COMPUSHADY])
        with tarfile.open(next(Path(name).glob("*.tar.gz"))) as archive:
            wanted = f"libdxcompiler_{platform.machine()}.so"
            member = next((one for one in archive if wanted in one.name), None)
            content = member and archive.extractfile(member)
            if not content:
                fail(f"{COMPUSHADY} has no {wanted}: it is made for x86_64, aarch64 and armv7l")
            (folder / "libdxcompiler.so").write_bytes(content.read())


def unpack_naga(folder: Path) -> None:
    """Take the WebAssembly and its JavaScript out of the npm package."""
    with tempfile.TemporaryDirectory() as name:
        run(["npm", "pack", "--silent", "--pack-destination", name, NAGA])
        with tarfile.open(next(Path(name).glob("*.tgz"))) as archive:
            for member in archive:
                content = archive.extractfile(member)
                if content is not None:
                    (folder / Path(member.name).name).write_bytes(content.read())


def install_wine() -> None:
    """Install what is missing of what compiles and runs a program for Windows."""
    wanted = {WINE: "wine64", MINGW: "gcc-mingw-w64-x86-64-win32"}
    packages = [package for program, package in wanted.items() if not shutil.which(program)]
    if packages:
        apt_install(packages, "FXC runs on Windows, or on what stands in for it")


def unpack_fxc(folder: Path) -> None:
    """Take FXC out of the package for Windows, and compile the program that asks it."""
    with tempfile.TemporaryDirectory() as name:
        of_windows = ["--platform", "win_amd64", "--python-version", "3.11", "--only-binary", ":all:"]
        run([str(PYTHON), "-m", "pip", "download", "-qq", "--no-deps", *of_windows, "-d", name, ANGLE])
        with zipfile.ZipFile(next(Path(name).glob("*.whl"))) as archive:
            member = next(one for one in archive.namelist() if one.endswith("d3dcompiler_47.dll"))
            (folder / "d3dcompiler_47.dll").write_bytes(archive.read(member))
    source = ROOT / "tests" / "compilers" / "fxc.c"
    run([MINGW, "-O2", "-static", "-o", str(folder / "fxc.exe"), str(source)])


def run(command: list[str]) -> None:
    """Run a command that must succeed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        fail(f"{' '.join(command)} failed:\n{done.stdout}")


PARTS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "radv": ("Mesa's driver of AMD's GPUs from Debian's backports (15 MB to download)", unpack_radv),
    "nvk": ("Mesa's driver of NVIDIA's GPUs from Debian 13 (60 MB)", unpack_nvk),
    "dxc": ("DXC from compushady's source archive (67 MB)", unpack_dxc),
    "naga": ("naga as WebAssembly (1 MB)", unpack_naga),
}
ON_REQUEST: dict[str, tuple[str, Callable[[Path], None]]] = {
    "fxc": ("FXC from the package kivy_deps.angle (9 MB)", unpack_fxc),
}
ICDS = {"radv": "libvulkan_radeon.so", "nvk": "libvulkan_nouveau.so"}


def main() -> None:
    """Make what is missing, and name the drivers by their full paths in ICD files."""
    asked = sys.argv[1:]
    if unknown := [name for name in asked if name not in ON_REQUEST]:
        fail(f"compilers.py takes {', '.join(ON_REQUEST)}, or nothing; not {' '.join(unknown)}")
    install_programs()
    if "fxc" in asked:
        install_wine()
    for name, (what, make) in (PARTS | {name: ON_REQUEST[name] for name in asked}).items():
        folder = TARGET / name
        if folder.is_dir():
            continue
        say(f"unpacking {what} into {folder.relative_to(ROOT)}")
        if name in ICDS:
            make(folder)
            continue
        unfinished = TARGET / f"{name}.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        make(unfinished)
        unfinished.rename(folder)
    for name, library in ICDS.items():
        path = libraries(TARGET / name) / library
        if not path.is_file():
            fail(f"the package mesa-vulkan-drivers has no {library}; remove {TARGET / name} to unpack it again")
        icd = {"library_path": str(path), "api_version": "1.4"}
        (TARGET / f"{name}.json").write_text(json.dumps({"file_format_version": "1.0.0", "ICD": icd}))


if __name__ == "__main__":
    main()
