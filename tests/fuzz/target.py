"""What is fuzzed, the corpus of it, and the search for inputs that belong in there."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import hypothesis
from hypothesis.strategies import SearchStrategy

import dmlgpu

FOLDER = Path(__file__).parents[1] / "data" / "fuzz"
"""Where the corpora are: a file for each target, an input on each line."""

_PACKAGE = Path(dmlgpu.__file__).parent

Arc = tuple[str, int, int]


@dataclass(frozen=True)
class Target:
    """Something to be fuzzed.

    Attributes
    ----------
    name : str
        The name of its corpus.
    inputs : callable
        Given the corpus, returns the strategy that draws inputs, each one line of text.
    check : callable
        Raises an AssertionError, or anything else that should not be, if an input is treated wrongly. It may return
        what is notable about the input, such as a pair of an argument and an outcome.
    watched : tuple of str
        The modules of the package, such as ``"array"``, or folders of it. An input is new if it makes a step from line
        to line in there, or has something notable, that no other has.
    drawn : int
        How many inputs the search draws at a time; the suite draws a fifth of that. Fewer where each takes long.
    """

    name: str
    inputs: Callable[[list[str]], SearchStrategy[str]]
    check: Callable[[str], set[Any] | None]
    watched: tuple[str, ...]
    drawn: int = 500

    def __post_init__(self) -> None:
        for name in self.watched:
            assert list(_PACKAGE.glob(f"{name}*")), f"the target {self.name} watches {name}, which is not there"

    @property
    def path(self) -> Path:
        """The file of the corpus."""
        return FOLDER / f"{self.name}.txt"

    def corpus(self) -> list[str]:
        """Return the inputs of the corpus; lines that begin with # are comments."""
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        return [line for line in lines if line and not line.startswith("#")]

    def search(self, seconds: float, report: Callable[[str], None]) -> None:
        """Draw inputs for a while, and add those that reach something new to the corpus.

        An input that fails is shrunk and raised.
        """
        text_before = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        corpus = self.corpus()
        known = set().union(*(self._reached(line) for line in corpus))
        seen = set(known)
        new: dict[str, set[Any]] = {}
        start, tried = time.monotonic(), 0

        def one(text: str) -> None:
            nonlocal tried
            tried += 1
            reached = self._reached(text)
            if not reached <= seen:
                seen.update(reached)
                new[text] = reached

        while time.monotonic() - start < seconds:
            # Anew for each round, as what it found is drawn from in the next.
            given = hypothesis.given(self.inputs([*corpus, *new]))
            settings = hypothesis.settings(
                max_examples=self.drawn,
                deadline=None,
                database=None,
                suppress_health_check=list(hypothesis.HealthCheck),
            )
            try:
                settings(given(one))()
            finally:
                kept = _cover(new, seen - known)
                self.path.write_text(text_before + "".join(f"{text}\n" for text in kept), encoding="utf-8")
                report(f"{self.name}: {tried} inputs tried, {len(kept)} kept, {len(seen)} things reached")

    def _reached(self, text: str) -> set[Any]:
        with _arcs(self.watched) as arcs:
            notable = self.check(text)
        return arcs | (notable or set())


def _cover(reached: dict[str, set[Any]], wanted: set[Any]) -> list[str]:
    """Return few inputs that together reach what is wanted: at each turn the one that reaches most of what is left."""
    left = set(wanted)
    chosen: list[str] = []
    while left:
        best = max(reached, key=lambda text: (len(reached[text] & left), -len(text), text))
        chosen.append(best)
        left -= reached[best]
    return chosen


@contextmanager
def _arcs(watched: tuple[str, ...]) -> Iterator[set[Arc]]:
    """Collect the steps from line to line that are made in some modules of the package."""
    prefixes = tuple(str(_PACKAGE / name) for name in watched)
    found: set[Arc] = set()

    def calls(frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(prefixes):
            return None
        last = 0

        def lines(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal last
            if event == "line":
                found.add((name, last, frame.f_lineno))
                last = frame.f_lineno
            return lines

        return lines

    previous = sys.gettrace()
    sys.settrace(calls)
    try:
        yield found
    finally:
        sys.settrace(previous)
