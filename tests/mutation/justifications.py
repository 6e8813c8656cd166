"""Why alterations survive: tests/mutation/justified.toml, which each survivor must be in."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

from .alterations import Alteration, Key

__all__ = ["PATH", "entry", "read", "unfounded"]

PATH = Path(__file__).with_name("justified.toml")


def read(path: Path = PATH) -> dict[Key, str]:
    """Return the reasons, by the key of the alteration.

    Raises
    ------
    ValueError
        If an entry lacks something, has no reason, or is there twice.
    """
    found: dict[Key, str] = {}
    for one in tomllib.loads(path.read_text(encoding="utf-8")).get("survivor", []):
        key = (one["file"], one.get("function", ""), one["line"], one["altered"], one.get("occurrence", 0))
        if not one.get("reason", "").strip():
            raise ValueError(f"{path}: no reason is given for {key}")
        if key in found:
            raise ValueError(f"{path}: {key} is there twice")
        found[key] = one["reason"]
    return found


def unfounded(reasons: dict[Key, str], every: Iterable[Alteration]) -> list[Key]:
    """Return the entries for which there is no alteration (any longer)."""
    there = {one.key for one in every}
    return [key for key in reasons if key not in there]


def entry(one: Alteration) -> str:
    """Return the text to put into the file for a survivor, without a reason."""
    lines = ["[[survivor]]", f"file = {_quoted(one.file)}"]
    if one.function:
        lines.append(f"function = {_quoted(one.function)}")
    lines += [f"line = {_quoted(one.original)}", f"altered = {_quoted(one.altered)}"]
    if one.occurrence:
        lines.append(f"occurrence = {one.occurrence}")
    return "\n".join([*lines, 'reason = ""', ""])


def _quoted(text: str) -> str:
    return f"'{text}'" if "'" not in text else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
