"""``dmlgpu verify --compare``: whether devices gave the same bits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..conformance import Digests, Disagreement, compare, oracle_outcome, parse
from ..conformance.digests import ORACLE
from ..errors import ArgumentError
from .console import CommandError, count, note, one_line, say
from .files import check_input
from .verdict import reproduction

__all__ = ["run_compare"]

_SHOWN = 10


def run_compare(paths: Sequence[Path]) -> int:
    """Compare files of digests and say what differs; the status is 1 if anything does."""
    for path in paths:
        check_input(path)
    files = [Digests.read(path) for path in paths]
    names = [one_line(path) for path in paths]
    width = max(map(len, names))
    for name, one in zip(names, files, strict=True):
        driver = f" ({one.driver})" if one.driver else ""
        lacking = f", without {', '.join(one.lacking)}" if one.lacking else ""
        say(f"{name:<{width}}  {count(len(one.digests), 'digest')} of {one.device}{driver}{lacking}")
    if len({one.dmlgpu for one in files}) > 1:
        note(f"the files are of several versions of dmlgpu: {', '.join(sorted({one.dmlgpu for one in files}))}")
    wrong = {name: one for name, one in zip(names, files, strict=True) if one.differences}
    found = compare(files)
    for disagreement in found[:_SHOWN]:
        _tell(disagreement, names, files)
    if len(found) > _SHOWN:
        say(f"and {count(len(found) - _SHOWN, 'more case')}")
    cases = len({name for one in files for name in one.digests})
    if cases == 0:
        raise CommandError("there is nothing to compare: no file has a digest")
    if found:
        say(f"DIFFERENT: {len(found)} of {count(cases, 'case')}")
        return 1
    # Cases that meet subnormals, or gave no result, have no digest; and all files may come from wrong devices.
    for name, one in wrong.items():
        case, difference = next(iter(one.differences.items()))
        say(f"{name}: {count(len(one.differences), 'case')} not as the oracle, the first {case}: {difference}")
    if wrong:
        say("DIFFERENT: not from each other, but from the oracle")
        return 1
    say(f"EQUAL: {count(len(files), 'file')} agree on {count(cases, 'case')}")
    return 0


def _tell(disagreement: Disagreement, names: Sequence[str], files: Sequence[Digests]) -> None:
    case = disagreement.case
    say(f"\n{case}")
    right = _oracle_digest(case)
    for digest, positions in disagreement.groups.items():
        mark = "  (as the oracle here)" if digest is not None and digest == right else ""
        said = "no digest" if digest is None else digest
        say(f"  {said}  {', '.join(names[i] for i in positions)}{mark}")
    for i, one in enumerate(files):
        if case in one.differences:
            say(f"  {names[i]}: {one.differences[case]}")
    for one in files:
        if one.device != ORACLE and one.digests.get(case) != right:
            say(f"  {reproduction(one.device, case, one.driver)}")


def _oracle_digest(case: str) -> str | None:
    """Return what the oracle of this version gives; None if this version has no such case."""
    try:
        return oracle_outcome(parse(case)).digest
    except ArgumentError:
        return None
