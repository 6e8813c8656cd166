"""Why alterations survive: tests/mutation/justified.toml, which each survivor must be in."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .alterations import Key

__all__ = ["CLASSES", "PATH", "Reason", "entries", "read"]

PATH = Path(__file__).with_name("justified.toml")

CLASSES = {
    "same": "The altered line comes to the same bits in every case that can occur.",
    "unused": "It changes a value that nothing uses, such as what is read behind the end of a slice.",
    "repeated": "Several invocations or dispatches then do the same work, and write the same words.",
    "speed": "It changes how long a result takes, and not the result.",
    "caution": "It moves a bound that keeps a distance from overflow, by less than that distance.",
    "device": "lavapipe hides the difference: it drops accesses outside a binding, runs the invocations of a workgroup "
    "in the order of their numbers, and regroups no sums. Other devices need the line.",
    "unproven": "A difference is possible, and no data or test is known that reaches it.",
    "tests": "The line is there for tests alone.",
    "elsewhere": "Another test of the suite notices it.",
}
"""What a reason comes to, and what that means."""


@dataclass(frozen=True)
class Reason:
    """Why some alterations survive, in full and as one of `CLASSES`."""

    text: str
    kind: str


def read(path: Path = PATH) -> dict[Key, Reason]:
    """Return the reasons, by the key of the alteration.

    Raises
    ------
    ValueError
        If a reason has no text or no class, or an alteration is there twice.
    """
    found: dict[Key, Reason] = {}
    for one in tomllib.loads(path.read_text(encoding="utf-8")).get("reason", []):
        reason = Reason(" ".join(one["text"].split()), one["class"])
        for function, line, altered, *number in one["survivors"]:
            key = (one["file"], function, line, altered, number[0] if number else 0)
            if not reason.text:
                raise ValueError(f"{path}: no reason is given for {key}")
            if reason.kind not in CLASSES:
                raise ValueError(
                    f"{path}: the class of {key} is {reason.kind!r}; it must be one of {', '.join(CLASSES)}"
                )
            if key in found:
                raise ValueError(f"{path}: {key} is there twice")
            found[key] = reason
    return found


def entries(keys: Iterable[Key]) -> str:
    """Return the text to put into the file for survivors of a shader file, without class and reason."""
    lines: list[str] = []
    for file, function, line, altered, number in keys:
        if not lines:
            lines = ["[[reason]]", f'file = "{file}"', 'class = ""', 'text = """"""', "survivors = ["]
        parts = [_quoted(part) for part in (function, line, altered)] + [str(number)] * (number > 0)
        lines.append(f"    [{', '.join(parts)}],")
    return "\n".join([*lines, "]", ""])


def _quoted(text: str) -> str:
    return f"'{text}'" if "'" not in text else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
