"""Compiles the pipelines that its standard input names, one a line, on a driver that tells standard error about each.

Its arguments are the device's name and, if there is a limit, how many bytes of memory the process may have (Linux).

Where Mesa is asked to dump the modules of SPIR-V that it gets, spirv-val checks them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from dmlgpu.errors import ShaderError
from dmlgpu.planning.dispatch import PipelineKey
from dmlgpu.runtime.device import Device

BEGIN, END, FAILED = "=== pipeline ===", "=== compiled ===", "=== failed ==="


def to_line(key: PipelineKey) -> str:
    return json.dumps([key.kernel, key.slots, key.constants])


def from_line(line: str) -> PipelineKey:
    kernel, slots, constants = json.loads(line)
    return PipelineKey(kernel, tuple(map(tuple, slots)), tuple(map(tuple, constants)))


def _say(text: str) -> None:
    os.write(sys.stderr.fileno(), f"\n{text}\n".encode())  # at once, and in order with what the driver writes


def validate(folder: Path) -> None:
    """Check and remove the modules of a folder.

    Raises
    ------
    ShaderError
        If spirv-val does not accept one of them, or there is none.
    """
    modules = list(folder.iterdir())
    if not modules:
        raise ShaderError(f"the driver has put no module of SPIR-V into {folder}")
    for module in modules:
        environment = {"PATH": os.environ["PATH"]}  # nothing of what loads the driver
        command = ["spirv-val", "--target-env", "vulkan1.3", str(module)]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise ShaderError(f"spirv-val: {done.stdout}")
        module.unlink()


def main() -> None:
    modules = os.environ.get("MESA_SPIRV_DUMP_PATH")
    if sys.argv[2:]:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]), int(sys.argv[2])))
    device = Device(sys.argv[1])
    for line in sys.stdin:
        key = from_line(line)
        _say(BEGIN)
        try:
            device.pipelines.get(key)
            if modules:
                validate(Path(modules))
        except ShaderError as error:
            _say(f"{FAILED} {error}")
        else:
            _say(END)


if __name__ == "__main__":
    main()
