"""What came of all alterations, kept between runs, and the page that is made of it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path

from .alterations import Alteration, Key
from .bench import Outcome

__all__ = ["Results", "page"]


class Results:
    """Outcomes by alteration, in a file, so that a run that was stopped goes on where it was.

    An outcome counts as long as all shader files are as they were.
    """

    def __init__(self, path: Path, folder: Path) -> None:
        self._path = path
        state = hashlib.sha256()
        for file in sorted(folder.rglob("*.wgsl")):
            state.update(file.read_bytes())
        self._shaders = state.hexdigest()
        self._found: dict[str, list[object]] = {}
        if path.exists():
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["shaders"] == self._shaders:
                self._found = content["outcomes"]

    def get(self, one: Alteration) -> Outcome | None:
        found = self._found.get(json.dumps(one.key))
        return None if found is None else Outcome(*found)  # type: ignore[arg-type]

    def add(self, one: Alteration, outcome: Outcome) -> None:
        self._found[json.dumps(one.key)] = list(astuple(outcome))

    def write(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        content = {"shaders": self._shaders, "outcomes": self._found}
        self._path.write_text(json.dumps(content, indent=0), encoding="utf-8")


def page(
    device: str, outcomes: Sequence[tuple[Alteration, Outcome]], reasons: Mapping[Key, str], missing: Sequence[str]
) -> str:
    """Return docs/mutations.md: a table of files, and the survivors with their reasons."""
    return "\n".join(_lines(device, outcomes, reasons, missing)) + "\n"


_STATES = ("caught", "timed out", "ended the process", "does not compile", "survived", "unused")


def _lines(
    device: str, outcomes: Sequence[tuple[Alteration, Outcome]], reasons: Mapping[Key, str], missing: Sequence[str]
) -> Iterator[str]:
    states: dict[str, Counter[str]] = {}
    for one, outcome in outcomes:
        states.setdefault(one.file, Counter())[outcome.state] += 1
    total = sum(states.values(), Counter[str]())
    yield "# Mutations: what the suite notices"
    yield ""
    yield "Made by `make mutation`; not edited by hand. [development.md](development.md) says what it does and how to"
    yield "read it. Device: " + device + "."
    yield ""
    judged = total.total() - total["does not compile"] - total["unused"]
    noticed = judged - total["survived"]
    yield f"Of {total.total()} alterations {total['does not compile']} do not compile. Of the other {judged} the trials"
    yield f"notice {noticed} ({noticed / max(judged, 1):.1%}); {total['survived']} survive."
    if missing:
        yield ""
        yield f"Not tried yet: {', '.join(missing)}."
    yield ""
    yield "| file | alterations | caught | timed out, or ended the process | do not compile | survived |"
    yield "|---|---|---|---|---|---|"
    for file, counts in sorted(states.items()):
        ended = counts["timed out"] + counts["ended the process"]
        row = [counts.total(), counts["caught"], ended, counts["does not compile"], counts["survived"]]
        yield f"| {file} | {' | '.join(map(str, row))} |"
    yield ""
    yield "## The survivors, and why each may"
    yield ""
    by_reason: dict[tuple[str, str], list[Alteration]] = {}
    for one, outcome in outcomes:
        if outcome.state == "survived":
            by_reason.setdefault((one.file, reasons.get(one.key, "**not justified yet**")), []).append(one)
    file = ""
    for (where, reason), survivors in sorted(by_reason.items(), key=lambda item: item[0][0]):
        if where != file:
            file = where
            yield from (f"### {file}", "")
        yield reason
        yield ""
        yield "```text"
        for one in survivors:
            yield f"{one.function or 'module'}: {one.original}"
            yield f"{' ' * len(one.function or 'module')}  {one.altered}"
        yield "```"
        yield ""
