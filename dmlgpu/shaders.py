"""Finds the WGSL files, resolves their imports, and keeps a map from lines back to files.

A file is valid WGSL plus lines ``#import "lib/order/carry.wgsl"`` and ``#import <slot>``. A slot is a piece that
the plan chooses, such as the element type; each piece is included once, before the text that asks for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .errors import ShaderError

__all__ = ["Line", "Shader", "folder", "kernel_names", "resolve"]

_IMPORT = re.compile(r'#import\s+(?:"([^"]+)"|<(\w+)>)\s*$')


@dataclass(frozen=True)
class Line:
    """Where a line of a resolved shader comes from."""

    file: str
    number: int


@dataclass(frozen=True)
class Shader:
    """A kernel with all it imports.

    Attributes
    ----------
    name : str
        The kernel's name, such as ``"scan_tiles"``.
    source : str
        The whole WGSL text.
    lines : tuple of Line
        For each line of `source` the file and line it was written in.
    """

    name: str
    source: str
    lines: tuple[Line, ...]

    def locate(self, message: str) -> str:
        """Return a compiler's message with ``wgsl:LINE:COLUMN`` turned into ``FILE:LINE:COLUMN``."""

        def place(match: re.Match[str]) -> str:
            number = int(match[1])
            if not 1 <= number <= len(self.lines):
                return match[0]
            line = self.lines[number - 1]
            return f"{line.file}:{line.number}:{match[2]}"

        return re.sub(r"\bwgsl:(\d+):(\d+)", place, message)


@cache
def folder() -> Path:
    """Return the folder of the WGSL files: inside the installed package, else beside it in a checkout.

    Raises
    ------
    ShaderError
        If neither is there.
    """
    package = Path(__file__).resolve().parent
    for candidate in (package / "wgsl", package.parent / "wgsl"):
        if os.path.isdir(candidate / "lib"):
            return candidate
    raise ShaderError(f"no wgsl folder in {package} or beside it; reinstall dmlgpu")


def kernel_names() -> list[str]:
    """Return the names of all kernels, in alphabetical order."""
    return sorted(path.stem for path in folder().glob("*.wgsl"))


@cache
def _read(name: str) -> tuple[str, ...]:
    path = folder() / name
    try:
        return tuple(path.read_text(encoding="utf-8").splitlines())
    except OSError as error:
        raise ShaderError(f"cannot read the shader file {path}: {error.strerror}; reinstall dmlgpu") from error


def resolve(kernel: str, slots: Mapping[str, str]) -> Shader:
    """Return a kernel with its imports in place.

    Parameters
    ----------
    kernel : str
        A name from `kernel_names`.
    slots : mapping of str to str
        For each slot the piece that fills it: ``{"element": "f32"}`` makes ``#import <element>`` include
        ``slots/element/f32.wgsl``. Slots that the kernel does not ask for are ignored.

    Raises
    ------
    ShaderError
        If a file is missing or an import names a slot that `slots` does not fill.
    """
    text: list[str] = []
    lines: list[Line] = []
    included: set[str] = set()

    def include(name: str) -> None:
        if name in included:
            return
        included.add(name)
        for number, content in enumerate(_read(name), 1):
            match = _IMPORT.match(content)
            if match is None:
                text.append(content)
                lines.append(Line(name, number))
            elif match[1]:
                include(match[1])
            elif match[2] in slots:
                include(f"slots/{match[2]}/{slots[match[2]]}.wgsl")
            else:
                raise ShaderError(f"{name}:{number}: nothing fills the slot <{match[2]}>")

    include(f"{kernel}.wgsl")
    return Shader(kernel, "\n".join(text) + "\n", tuple(lines))
