"""Why alterations survive: tests/mutation/justified.toml, which each survivor must be in."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

from .alterations import Key

__all__ = ["PATH", "entries", "read"]

PATH = Path(__file__).with_name("justified.toml")


def read(path: Path = PATH) -> dict[Key, str]:
    """Return the reasons, by the key of the alteration.

    Raises
    ------
    ValueError
        If there is no reason, or an alteration is there twice.
    """
    found: dict[Key, str] = {}
    for one in tomllib.loads(path.read_text(encoding="utf-8")).get("reason", []):
        text = " ".join(one["text"].split())
        for function, line, altered, *number in one["survivors"]:
            key = (one["file"], function, line, altered, number[0] if number else 0)
            if not text:
                raise ValueError(f"{path}: no reason is given for {key}")
            if key in found:
                raise ValueError(f"{path}: {key} is there twice")
            found[key] = text
    return found


def entries(keys: Iterable[Key]) -> str:
    """Return the text to put into the file for survivors of a shader file, without a reason."""
    lines: list[str] = []
    for file, function, line, altered, number in keys:
        if not lines:
            lines = ["[[reason]]", f'file = "{file}"', 'text = """"""', "survivors = ["]
        parts = [_quoted(part) for part in (function, line, altered)] + [str(number)] * (number > 0)
        lines.append(f"    [{', '.join(parts)}],")
    return "\n".join([*lines, "]", ""])


def _quoted(text: str) -> str:
    return f"'{text}'" if "'" not in text else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
