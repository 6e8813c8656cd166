"""What came of all alterations: of files whose trials are complete in results.json, of others in a cache."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .alterations import Alteration, Key
from .bench import Outcome

__all__ = ["PATH", "Record", "Results", "digest"]

PATH = Path(__file__).with_name("results.json")


def digest(text: str) -> str:
    """Return the first digits of the SHA-256 of a shader file's code.

    Comments, imports and the space around lines do not count: no alteration is of them.
    """
    lines = (re.sub(r"//.*|#import.*", "", line).strip() for line in text.splitlines())
    return hashlib.sha256("\n".join(filter(None, lines)).encode()).hexdigest()[:8]


@dataclass(frozen=True)
class Record:
    """What came of all alterations of a file.

    Attributes
    ----------
    text : str
        The digest of the file's code as it was then.
    counts : mapping of str to int
        How many alterations came to each state, see `Outcome`.
    kinds : mapping of str to sequence of int
        For each kind of `Alteration`: how many there are, and how many survived.
    survivors : sequence of sequence
        Function, line, altered line and number of those that survived: their keys without the file.
    """

    text: str
    counts: Mapping[str, int]
    kinds: Mapping[str, Sequence[int]]
    survivors: Sequence[Sequence[Any]]

    def keys(self, file: str) -> list[Key]:
        return [(file, *rest) for rest in self.survivors]


@dataclass
class Results:
    """Outcomes by file and alteration.

    Attributes
    ----------
    records : dict of str to Record
        Of the files that are complete.
    device : str
        The adapter's summary.
    untried : list of str
        The files that were never complete.
    """

    path: Path
    cache: Path
    records: dict[str, Record] = field(default_factory=dict)
    device: str = ""
    untried: list[str] = field(default_factory=list)
    _found: dict[str, dict[str, list[Any]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path.exists():
            content = json.loads(self.path.read_text(encoding="utf-8"))
            self.device, self.untried = content["device"], content["untried"]
            self.records = {file: Record(**one) for file, one in content["files"].items()}
        if self.cache.exists():
            self._found = json.loads(self.cache.read_text(encoding="utf-8"))

    def is_complete(self, file: str, text: str) -> bool:
        """Whether a file was tried as it is now."""
        return file in self.records and self.records[file].text == digest(text)

    def get(self, one: Alteration, text: str) -> Outcome | None:
        """Return what came of an alteration of a file with this text, if it was tried."""
        found = self._of(one.file, text).get(json.dumps(one.key))
        return None if found is None else Outcome(*found)

    def add(self, one: Alteration, text: str, outcome: Outcome) -> None:
        self._of(one.file, text)[json.dumps(one.key)] = [outcome.state, outcome.by, outcome.seconds]

    def forget(self, file: str, text: str, *, survivors_only: bool = False) -> None:
        """Drop what came of a file's alterations, or of those that survived."""
        found = self._of(file, text)
        for key in [key for key, outcome in found.items() if not survivors_only or outcome[0] == "survived"]:
            del found[key]

    def complete(self, file: str, text: str, every: Iterable[Alteration]) -> bool:
        """Keep what came of a file for good, if all its alterations were tried."""
        states: list[tuple[Alteration, str]] = []
        for one in every:
            outcome = self.get(one, text)
            if outcome is None:
                return False
            states.append((one, outcome.state))
        self.records[file] = Record(
            digest(text),
            dict(sorted(Counter(state for _, state in states).items())),
            _by_kind(states),
            [one.key[1:] for one, state in states if state == "survived"],
        )
        return True

    def write_cache(self) -> None:
        self.cache.parent.mkdir(parents=True, exist_ok=True)
        self.cache.write_text(json.dumps(self._found, indent=0), encoding="utf-8")

    def write(self) -> None:
        self.write_cache()
        files = {file: asdict(self.records[file]) for file in sorted(self.records)}
        content = {"device": self.device, "untried": self.untried, "files": files}
        self.path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    def _of(self, file: str, text: str) -> dict[str, list[Any]]:
        return self._found.setdefault(f"{file} {digest(text)}", {})


def _by_kind(states: Iterable[tuple[Alteration, str]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for one, state in states:
        counts = found.setdefault(one.kind, [0, 0])
        counts[0] += 1
        counts[1] += state == "survived"
    return dict(sorted(found.items()))
