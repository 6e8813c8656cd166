"""What compilers have said before, so that a run asks only about what has changed, or goes on where one was ended."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dmlgpu import shaders
from dmlgpu.planning.dispatch import PipelineKey

__all__ = ["Answers", "digest"]


def digest(compiler: str, key: PipelineKey) -> str:
    """Return what an answer depends on, as one string: the compiler, the source but for comments, and the constants."""
    lines = (
        line.partition("//")[0].strip() for line in shaders.resolve(key.kernel, dict(key.slots)).source.split("\n")
    )
    source = [line for line in lines if line]
    return hashlib.sha256(json.dumps([compiler, source, key.slots, key.constants]).encode()).hexdigest()


class Answers:
    """A file of answers by digest.

    Parameters
    ----------
    path : Path
        The file; a missing one has no answers.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        self._used: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def __getitem__(self, name: str) -> Any:
        self._used.add(name)
        return self._known[name]

    def add(self, answers: Iterable[tuple[str, Any]]) -> None:
        """Keep answers, in the file too."""
        self._known.update(answers)
        self._write()

    def forget_unused(self) -> None:
        """Keep only what has been looked up."""
        self._known = {name: self._known[name] for name in self._known if name in self._used}
        self._write()

    def _write(self) -> None:
        unfinished = self._path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(self._known), encoding="utf-8")
        unfinished.replace(self._path)
