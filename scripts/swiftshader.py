#!/usr/bin/env python3
"""Unpack SwiftShader, a second software Vulkan driver, into ``.cache/swiftshader``. Nothing is installed.

It has no f16 and no f64, 4-wide subgroups and coarser alignment than lavapipe, and flushes subnormal numbers, which
makes it a good second opinion. The driver lies inside Debian's Chromium packages, which ``apt-get download`` brings.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

from debian import download
from system import ROOT, fail, say

TARGET = ROOT / ".cache" / "swiftshader"
# The ICD file names the library beside it by a relative path, so the two only have to stay together.
FILES = frozenset({"libvk_swiftshader.so", "vk_swiftshader_icd.json"})
PACKAGES = ("chromium-common", "chromium")


def unpack(package: Path) -> bool:
    """Take SwiftShader's files out of a Debian package; return whether all were in it."""
    found = set()
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
            for member in archive:
                name = os.path.basename(member.name)
                content = archive.extractfile(member) if name in FILES else None
                if content is not None:
                    (TARGET / name).write_bytes(content.read())
                    found.add(name)
        process.stdout.read()  # what follows the archive's end, so that dpkg-deb can finish
    return found == FILES


def bring(package: str) -> bool:
    """Download a package and unpack the driver; return whether the package contained it."""
    with download(package) as path:
        return path is not None and unpack(path)


def main() -> None:
    """Unpack the driver unless it is there already."""
    if all((TARGET / name).is_file() for name in FILES):
        return
    by_hand = "Set VK_DRIVER_FILES to the ICD file of a SwiftShader of your own, and DMLGPU_ADAPTER=SwiftShader."
    if not shutil.which("apt-get"):
        fail(f"SwiftShader is taken from a Debian package, and this system has no apt-get. {by_hand}")
    say(f"unpacking SwiftShader from Debian's Chromium into {TARGET.relative_to(ROOT)} (about 30 MB to download)")
    TARGET.mkdir(parents=True, exist_ok=True)
    if not any(map(bring, PACKAGES)):
        fail(f"no package named {' or '.join(PACKAGES)} of this system's sources contains SwiftShader. {by_hand}")


if __name__ == "__main__":
    main()
