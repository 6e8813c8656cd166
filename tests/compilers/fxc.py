"""The way to Direct3D 12 that wgpu-py takes by default: naga writes HLSL, and FXC compiles it, here under Wine.

Run as a module, it takes pipelines as the worker does.
"""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from dmlgpu import shaders
from dmlgpu.planning.dispatch import PipelineKey

from .drivers import COMPILERS, CompilerError, Figures
from .hlsl import naga, resolve_overrides, said_of, to_hlsl
from .rows import row_of
from .worker import from_line

TOOLS = "naga 25, FXC 10 of d3dcompiler_47.dll"
_FOLDER = COMPILERS / "fxc"
_BARE = "bare"
_ZEROS = re.compile(
    r"    if \(all\(__local_invocation_id == uint3\(0u, 0u, 0u\)\)\) \{\n(?:        \w+ = \([^\n]*\)0;\n)+    \}\n"
    r"    GroupMemoryBarrierWithGroupSync\(\);\n"
)
_WINE = "/usr/lib/wine/wine64"

_HEAD = """\
# What Direct3D 12's older compiler makes of the shaders

This page says how long FXC takes to compile each kernel. wgpu-py asks for FXC by default where it runs on Direct3D 12.
dmlgpu does so only where a computer has no Vulkan, or where a program chooses such an adapter.
`make gpu-compilers GPU_COMPILERS_ARGS=--fxc` writes the page. It compiles a pipeline of each kernel and type, and
fails if FXC refuses one. **It needs no GPU and runs nothing.**

FXC is in `d3dcompiler_47.dll`, which Windows has and which the Python package `kivy_deps.angle` brings along. Wine runs
it. The HLSL is that of naga 25, which is older than the one in wgpu.

Seconds are the processor's, on a shared virtual machine. **Most of them go into zeros**: there wgpu begins each
shader with [stores of zeros](https://github.com/gfx-rs/wgpu/issues/4592) to all of its workgroup memory, one after the
other, which these shaders have no need of. The table has the seconds without them, too. wgpu-py has no way to leave
them out.

A call compiles the kernels of its passes at the same time.
What was compiled is kept as long as the device is open. DXC, the newer compiler, takes a second for most kernels.
Name its library in the environment variable `DMLGPU_DXC`: `dxcompiler.dll` is in Windows' SDK, and in
[DXC's releases](https://github.com/microsoft/DirectXShaderCompiler/releases). It counts where dmlgpu is the first in a
process to use wgpu; a program that uses wgpu before asks it for DXC itself (`set_instance_extras`).
This has not been tried on Windows yet.

| kernel | type | seconds | without zeros | bytes |
|---|---|--:|--:|--:|
"""


def compile_with_fxc(keys: Sequence[PipelineKey], *, zeros: bool = True) -> Iterator[Figures]:
    """Yield the processor time and the bytes of what naga and FXC make of each pipeline, in a process of their own.

    Parameters
    ----------
    keys : sequence of PipelineKey
        The pipelines.
    zeros : bool
        Whether workgroup memory begins with zeros, as wgpu has it.

    Raises
    ------
    CompilerError
        If one of them refuses it.
    """
    for answer in said_of("tests.compilers.fxc", "FXC", keys, *([] if zeros else [_BARE])):
        yield {name: answer[name] for name in ("milliseconds", "bytes")}


def page(results: Mapping[PipelineKey, Figures], bare: Mapping[PipelineKey, Figures]) -> str:
    """Return the text of docs/fxc.md.

    Parameters
    ----------
    results, bare : mapping of PipelineKey to Figures
        What was said of a pipeline of each row, with zeros and without.
    """
    lines = []
    for key in sorted(results, key=row_of):
        kernel, kind = row_of(key)
        seconds, without = (of[key]["milliseconds"] / 1000 for of in (results, bare))
        lines.append(f"| {kernel} | {kind} | {seconds:.1f} | {without:.1f} | {results[key]['bytes']} |\n")
    return _HEAD + "".join(lines)


def without_zeros(hlsl: str) -> str:
    """Return a module without the stores with which naga begins where there is workgroup memory.

    Raises
    ------
    CompilerError
        If there is such memory, and naga writes these in another way.
    """
    bare, found = _ZEROS.subn("", hlsl)
    if "groupshared" in hlsl and not found:
        raise CompilerError("the stores of zeros to workgroup memory are not found: see _ZEROS")
    return bare


@contextmanager
def _fxc() -> Iterator[subprocess.Popen[bytes]]:
    command = [_WINE, str(_FOLDER / "fxc.exe"), str(_FOLDER / "d3dcompiler_47.dll")]
    environment = os.environ | {"WINEPREFIX": str(COMPILERS / "wine"), "WINEDEBUG": "-all"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def _compile(fxc: subprocess.Popen[bytes], hlsl: str) -> Figures:
    assert fxc.stdin is not None
    assert fxc.stdout is not None
    text = hlsl.encode()
    fxc.stdin.write(struct.pack("<I", len(text)) + text)
    fxc.stdin.flush()
    answer = fxc.stdout.read(16)
    if len(answer) < 16:
        raise CompilerError("FXC has ended")
    status, size, milliseconds, length = struct.unpack("<4I", answer)
    message = fxc.stdout.read(length).decode(errors="replace")
    if status or not size:
        raise CompilerError(f"FXC: {message}")
    return {"milliseconds": milliseconds, "bytes": size}


def main() -> None:
    with naga() as transpiler, _fxc() as fxc:
        for line in sys.stdin:
            key = from_line(line)
            try:
                source = shaders.resolve(key.kernel, dict(key.slots)).source
                hlsl = to_hlsl(transpiler, resolve_overrides(source, dict(key.constants)))
                hlsl = without_zeros(hlsl) if _BARE in sys.argv else hlsl
                answer: dict[str, object] = {**_compile(fxc, hlsl)}
            except CompilerError as error:
                answer = {"error": str(error)}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
