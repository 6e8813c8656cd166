#!/usr/bin/env python3
"""Unpack Mesa 25's software Vulkan driver, a newer lavapipe, into ``.cache/mesa25``. Nothing is installed.

Debian 12 has Mesa 22; its backports have Mesa 25, whose compiler regroups arithmetic more boldly and takes 3 to 5 times
as long. Dawn accepts this lavapipe and not the older one.
"""

from __future__ import annotations

import json

from debian import libraries, unpack
from system import ROOT, fail, say

TARGET = ROOT / ".cache" / "mesa25"
ICD = TARGET / "lavapipe.json"


def main() -> None:
    """Unpack the driver unless it is there already, and name it by its full path in an ICD file."""
    library = libraries(TARGET) / "libvulkan_lvp.so"
    if not TARGET.is_dir():
        say(f"unpacking Mesa 25 from Debian's backports into {TARGET.relative_to(ROOT)} (about 40 MB to download)")
        unpack(["mesa-vulkan-drivers"], TARGET, release="bookworm-backports")
    if not library.is_file():
        fail(f"the package mesa-vulkan-drivers has no {library.relative_to(TARGET)}")
    # With its full path, where the package's own file has a name to look up. Anew each time: a checkout may have moved.
    icd = {"library_path": str(library), "api_version": "1.4"}
    ICD.write_text(json.dumps({"file_format_version": "1.0.0", "ICD": icd}))


if __name__ == "__main__":
    main()
