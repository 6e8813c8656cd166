"""The way to Direct3D 12: naga writes HLSL, and DXC compiles it.

Run as a module, it takes pipelines as the worker does.
"""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dmlgpu import shaders
from dmlgpu.planning.dispatch import PipelineKey

from .drivers import COMPILERS, ROOT, CompilerError
from .worker import from_line, to_line

_OVERRIDE = re.compile(r"^override (?P<name>\w+): (?P<type>bool|u32|i32|f32)(?: = (?P<default>[^;]+))?;", re.MULTILINE)


TOOLS = "naga 25, DXC 1.7"
"""What scripts/compilers.py unpacks."""


def compile_hlsl(keys: Sequence[PipelineKey]) -> Iterator[int]:
    """Yield the bytes of DXIL that naga and DXC make of each pipeline, in a process of their own.

    Raises
    ------
    CompilerError
        If one of them refuses it.
    """
    for answer in said_of("tests.compilers.hlsl", "Direct3D 12", keys):
        yield answer["dxil"]


def said_of(module: str, compiler: str, keys: Sequence[PipelineKey], *words: str) -> Iterator[Mapping[str, Any]]:
    """Yield what a module, run with some words in a process of its own, says of each pipeline.

    Raises
    ------
    CompilerError
        If that is an error, or the process ends before.
    """
    names = "".join(f"{to_line(key)}\n" for key in keys)
    command = [sys.executable, "-m", module, *words]
    done = subprocess.run(command, cwd=ROOT, input=names, stdout=subprocess.PIPE, text=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    for key, answer in zip(keys, answers, strict=False):
        if "error" in answer:
            raise CompilerError(f"{compiler}: {key}: {answer['error']}")
        yield answer
    if len(answers) < len(keys):
        raise CompilerError(f"{compiler}: the process ended with status {done.returncode} at {keys[len(answers)]}")


def resolve_overrides(source: str, constants: Mapping[str, int]) -> str:
    """Return WGSL with constants in the place of override constants, which is what wgpu does before it writes HLSL.

    Raises
    ------
    ValueError
        If a constant is not in the source, or one that the source has is left without a value.
    """
    left = dict(constants)

    def replace(match: re.Match[str]) -> str:
        name, kind, value = match["name"], match["type"], match["default"]
        if name in left:
            number = left.pop(name)
            value = str(bool(number)).lower() if kind == "bool" else f"{kind}({number})"
        if value is None:
            raise ValueError(f"the override constant {name} has no value")
        return f"const {name}: {kind} = {value};"

    resolved = _OVERRIDE.sub(replace, source)
    if left:
        raise ValueError(f"no override constant is named {', '.join(left)}")
    if re.search(r"\boverride\b", re.sub(r"//.*", "", resolved)):
        raise ValueError("an override constant is declared in a way that is not understood")
    return resolved


@contextmanager
def naga() -> Iterator[subprocess.Popen[str]]:
    """Run naga, for `to_hlsl`."""
    command = ["node", str(Path(__file__).parent / "naga.mjs"), str(COMPILERS / "naga")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def to_hlsl(transpiler: subprocess.Popen[str], wgsl: str) -> str:
    """Return the HLSL that naga makes of a module.

    Raises
    ------
    CompilerError
        With naga's message.
    """
    assert transpiler.stdin is not None
    assert transpiler.stdout is not None
    transpiler.stdin.write(f"{json.dumps(wgsl)}\n")
    transpiler.stdin.flush()
    answer = json.loads(transpiler.stdout.readline())
    if "error" in answer:
        raise CompilerError(f"naga: {answer['error']}")
    hlsl: str = answer["hlsl"]
    return hlsl


class _Buffer(ctypes.Structure):
    """DxcBuffer."""

    _fields_ = (("pointer", ctypes.c_char_p), ("size", ctypes.c_size_t), ("encoding", ctypes.c_uint))


_UTF8 = 65001
_COMPILER_CLASS = uuid.UUID("73e22d93-e6ce-47f3-b5bf-f0664f39c1b0").bytes_le
_COMPILER = uuid.UUID("228b4687-5a6a-4730-900c-9702b2203f54").bytes_le
_RESULT = uuid.UUID("58346cda-dde7-4497-9461-6f87af5e0659").bytes_le

# Where methods are in their interfaces' tables. Outside Windows two slots of destructors follow the three of IUnknown.
_RELEASE = 2
_COMPILE = 5
_GET_STATUS, _GET_RESULT, _GET_ERRORS = 5, 6, 7
_GET_POINTER, _GET_SIZE = 5, 6

_POINTER, _STATUS = ctypes.c_void_p, ctypes.c_int32


def _call(this: Any, method: int, *arguments: tuple[Any, Any], result: Any = _STATUS) -> Any:
    """Call a method of a COM object with arguments and their types."""
    table = ctypes.cast(this, ctypes.POINTER(ctypes.POINTER(_POINTER)))[0]
    prototype = ctypes.CFUNCTYPE(result, _POINTER, *(kind for _, kind in arguments))
    return prototype(table[method])(this, *(value for value, _ in arguments))


def _content(blob: Any) -> bytes:
    """Return the bytes of a blob, and release it."""
    if not blob:
        return b""
    content = ctypes.string_at(
        _call(blob, _GET_POINTER, result=_POINTER) or 0, _call(blob, _GET_SIZE, result=ctypes.c_size_t)
    )
    _call(blob, _RELEASE, result=ctypes.c_uint)
    return content


class Dxc:
    """DXC, for compute shaders of shader model 6.0, the least that wgpu asks it for."""

    def __init__(self) -> None:
        library = ctypes.CDLL(str(COMPILERS / "dxc" / "libdxcompiler.so"))
        self._compiler = _POINTER()
        if library.DxcCreateInstance(_COMPILER_CLASS, _COMPILER, ctypes.byref(self._compiler)):
            raise CompilerError("DXC gives no compiler")

    def compile(self, hlsl: str) -> bytes:
        """Return the DXIL of a module.

        Raises
        ------
        CompilerError
            With DXC's message.
        """
        text = hlsl.encode()
        buffer = _Buffer(text, len(text), _UTF8)
        words = ["-E", "main", "-T", "cs_6_0"]
        result = _POINTER()
        status = _call(
            self._compiler,
            _COMPILE,
            (ctypes.byref(buffer), _POINTER),
            ((ctypes.c_wchar_p * len(words))(*words), _POINTER),
            (len(words), ctypes.c_uint32),
            (None, _POINTER),
            (_RESULT, ctypes.c_char_p),
            (ctypes.byref(result), _POINTER),
        )
        if status:
            raise CompilerError(f"DXC fails with {status & 0xFFFFFFFF:#x}")
        outcome, code, errors = _STATUS(), _POINTER(), _POINTER()
        for method, place in ((_GET_STATUS, outcome), (_GET_RESULT, code), (_GET_ERRORS, errors)):
            _call(result, method, (ctypes.byref(place), _POINTER))
        dxil, message = _content(code), _content(errors).decode(errors="replace")
        _call(result, _RELEASE, result=ctypes.c_uint)
        if outcome.value or not dxil:
            raise CompilerError(f"DXC: {message}")
        return dxil


def main() -> None:
    dxc = Dxc()
    with naga() as transpiler:
        for line in sys.stdin:
            key = from_line(line)
            try:
                source = shaders.resolve(key.kernel, dict(key.slots)).source
                answer: dict[str, Any] = {
                    "dxil": len(dxc.compile(to_hlsl(transpiler, resolve_overrides(source, dict(key.constants)))))
                }
            except CompilerError as error:
                answer = {"error": str(error)}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
