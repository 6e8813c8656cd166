"""docs/mutations.md: made of results.json and justified.toml, and of nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from .alterations import Key
from .results import Results

__all__ = ["page"]

_HEAD = """\
# Mutations: what the suite notices

`make mutation` alters the shaders, one small change at a time: every operator, comparison, `if`, `select`, `min` and
`max`, every stride in an index (becomes 1), every barrier (is left out). Each altered shader runs up to some 300 trials
that use it, up to the first result, or byte beside the results, that differs: first those on data made for exceptional
values, windows, chains, columns and hard roundings, then conformance cases, some with other limits, so that each kernel
and as many types and layouts are among them as compile in a few seconds.
What differs for none of them survives, and must have a reason in `tests/mutation/justified.toml`, without which
`make mutation` fails. This page is made of that file and `tests/mutation/results.json`, and a test checks that it is.

```sh
make mutation                                          # the files that have changed since; all of them take hours
make mutation MUTATION_ARGS="lib/run.wgsl round.wgsl"  # these again
make mutation MUTATION_ARGS="--survivors --patience 4" # what survived, on four times as much code
```

A run can be stopped and goes on where it was. Which version of a file was tried, the digits beside its name tell (the
first of its SHA-256). A case that should have caught a survivor goes into `tests/mutation/selection.py`, with a test.
"""


def page(results: Results, reasons: Mapping[Key, str]) -> str:
    """Return the page."""
    return "\n".join(_lines(results, reasons)) + "\n"


def _lines(results: Results, reasons: Mapping[Key, str]) -> Iterator[str]:
    yield from _HEAD.splitlines()
    records = results.records
    total = sum((Counter(record.counts) for record in records.values()), Counter[str]())
    judged = total.total() - total["does not compile"]
    yield ""
    noticed = judged - total["survived"]
    yield f"On {results.device}, of {total.total()} alterations {total['does not compile']} do not compile."
    share = noticed / max(judged, 1)
    yield f"Of the other {judged}, {noticed} are noticed ({share:.1%}) and {total['survived']} survive."
    if results.untried:
        yield ""
        yield f"Not complete yet: {', '.join(results.untried)}."
    yield ""
    yield "| file | version | alterations | noticed by results | by time-out or crash | do not compile | survive |"
    yield "|---|---|---|---|---|---|---|"
    for file, record in sorted(records.items()):
        counts = Counter(record.counts)
        ended = counts["timed out"] + counts["ended the process"]
        row = [counts.total(), counts["caught"], ended, counts["does not compile"], counts["survived"]]
        yield f"| {file} | `{record.text}` | {' | '.join(map(str, row))} |"
    yield ""
    yield "## The survivors, and why each may"
    for file, record in sorted(records.items()):
        by_reason: dict[str, list[Key]] = {}
        for key in record.keys(file):
            by_reason.setdefault(reasons.get(key, "**Not justified yet.**"), []).append(key)
        if by_reason:
            yield from ("", f"### {file}")
        for reason, keys in by_reason.items():
            yield from ("", reason, "", "```text")
            for _, function, line, altered, _number in keys:
                where = function or "module"
                yield from (f"{where}: {line}", f"{' ' * len(where)}  {altered}")
            yield "```"
