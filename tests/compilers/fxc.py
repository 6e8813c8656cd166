"""The way to Direct3D 12 that wgpu-py takes by default: naga writes HLSL, and FXC compiles it, here under Wine.

Run as a module, it takes pipelines as the worker does.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from dmlgpu import shaders
from dmlgpu.planning.dispatch import PipelineKey

from .drivers import COMPILERS, CompilerError, Figures
from .hlsl import naga, resolve_overrides, said_of, to_hlsl
from .rows import row_of, worst
from .worker import from_line

TOOLS = "naga 25, FXC 10 of d3dcompiler_47.dll"
_FOLDER = COMPILERS / "fxc"
_WINE = "/usr/lib/wine/wine64"

_HEAD = """\
# What Direct3D 12's older compiler makes of the shaders

This page says how long FXC takes to compile each kernel. wgpu-py asks for FXC by default where it runs on Direct3D 12.
dmlgpu does so only where a computer has no Vulkan, or where a program chooses such an adapter.
`make gpu-compilers GPU_COMPILERS_ARGS=--fxc` writes the page. It compiles a pipeline of each kernel and type, and
fails if FXC refuses one. **It needs no GPU and runs nothing.**

FXC is in `d3dcompiler_47.dll`, which Windows has and which the Python package `kivy_deps.angle` brings along. Wine runs
it. The HLSL is that of naga 25, which is older than the one in wgpu.

Seconds are the processor's, on a shared virtual machine. A call compiles the kernels of its passes at the same time.
What was compiled is kept as long as the device is open. DXC, the newer compiler, takes a second for most kernels. Ask
for it before the first device is opened, with the path of `dxcompiler.dll`:

```py
from wgpu.backends.wgpu_native.extras import set_instance_extras

set_instance_extras(dx12_compiler="Dxc", dxc_path=r"C:\\path\\to\\dxcompiler.dll")
```

| kernel | type | seconds | bytes |
|---|---|--:|--:|
"""


def compile_with_fxc(keys: Sequence[PipelineKey]) -> Iterator[Figures]:
    """Yield the processor time and the bytes of what naga and FXC make of each pipeline, in a process of their own.

    Raises
    ------
    CompilerError
        If one of them refuses it.
    """
    for answer in said_of("tests.compilers.fxc", "FXC", keys):
        yield {name: answer[name] for name in ("milliseconds", "bytes")}


def page(results: Mapping[PipelineKey, Figures]) -> str:
    """Return the text of docs/fxc.md."""
    rows: dict[tuple[str, str], list[Figures]] = {}
    for key, figures in results.items():
        rows.setdefault(row_of(key), []).append(figures)
    lines = []
    for (kernel, kind), group in sorted(rows.items()):
        figures = worst(group)
        lines.append(f"| {kernel} | {kind} | {figures['milliseconds'] / 1000:.1f} | {figures['bytes']} |\n")
    return _HEAD + "".join(lines)


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
                answer: dict[str, object] = {**_compile(fxc, hlsl)}
            except CompilerError as error:
                answer = {"error": str(error)}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
