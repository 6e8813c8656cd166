"""docs/mutations.md: made of results.json and justified.toml, and of nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from .alterations import Key
from .justifications import CLASSES, Reason
from .results import Results

__all__ = ["KINDS", "page"]

_HEAD = """\
# Mutations: what the tests notice when a shader is altered

This page says how many small alterations of the shaders the tests notice, and why the others may stay unnoticed. `make
mutation` writes it.

The command alters the shaders, one small change at a time. It then runs trials until a result differs from the
reference, or a byte beside the result has changed. A trial is a case like those of `dmlgpu verify`; up to some 300 that
use the altered file are tried. A trial that takes 60 seconds of processor time hangs, which is noticed, too; what else
the machine has to do does not count. An alteration that no trial notices *survives*. Each survivor needs a reason, or
the command fails.

```sh
make mutation                                          # the files whose code has changed since; all of them take hours
make mutation MUTATION_ARGS="lib/order/run.wgsl scan_rows.wgsl"  # these again
make mutation MUTATION_ARGS="--kind check"             # the alterations of one kind, of all files that have changed
make mutation MUTATION_ARGS="--survivors --patience 4" # what survived, on four times as much code
make mutation MUTATION_ARGS=--page                     # try nothing: judge, and write this page again
```

A run can be stopped; the next one goes on where it was. Mend a survivor by a trial that notices it
([selection.py](../tests/mutation/selection.py)) and a test, or give its reason in
[justified.toml](../tests/mutation/justified.toml), which lists every survivor with its line.
[results.json](../tests/mutation/results.json) has the counts of every file.
"""

KINDS = {
    "operator": "`+` becomes `-`, `*` becomes `+`, `&` becomes `|`, and so on",
    "comparison": "`<` becomes `<=` and `>=`, `==` becomes `!=`, and so on",
    "guard": "the condition of an `if` or `while` becomes true or false",
    "choice": "`select`, `min`, `max` and atomic functions take the other way",
    "check": "the functions that look for values out of range are left out",
    "stride": "a stride becomes 1",
    "barrier": "a barrier is left out",
}
"""What an alteration can be, and what it does."""


def page(results: Results, reasons: Mapping[Key, Reason]) -> str:
    """Return the page."""
    return "\n".join(_lines(results, reasons)) + "\n"


def _lines(results: Results, reasons: Mapping[Key, Reason]) -> Iterator[str]:
    yield from _HEAD.splitlines()
    records = results.records
    total = sum((Counter(record.counts) for record in records.values()), Counter[str]())
    judged = total.total() - total["does not compile"]
    noticed = judged - total["survived"]
    yield ""
    yield f"On {results.device}, of {total.total()} alterations {total['does not compile']} do not compile."
    share = noticed / max(judged, 1)
    yield f"Of the other {judged}, {noticed} are noticed ({share:.1%}) and {total['survived']} survive."
    if results.untried:
        yield f"Not tried yet: {', '.join(results.untried)}."
    yield from ("", "## By kind", "")
    yield "| kind | what is altered | alterations | survive |"
    yield "|---|---|--:|--:|"
    for kind, what in KINDS.items():
        counts = [record.kinds[kind] for record in records.values() if kind in record.kinds]
        tried = sum(one[0] for one in counts) or "none yet"
        yield f"| {kind} | {what} | {tried} | {sum(one[1] for one in counts)} |"
    yield from ("", "## Why survivors may stay", "")
    yield "| class | what it means | survivors |"
    yield "|---|---|--:|"
    survivors = [key for file, record in records.items() for key in record.keys(file)]
    classes = Counter(reasons[key].kind if key in reasons else "none yet" for key in survivors)
    for kind, what in (CLASSES | {"none yet": "It needs a reason, or a trial that notices it."}).items():
        if classes[kind]:
            yield f"| {kind} | {what} | {classes[kind]} |"
    yield from ("", "## By shader", "")
    yield "The version is the beginning of the SHA-256 of the code that was altered, without comments and imports."
    yield "Files without anything to alter are left out. A file whose code has changed since is tried again by the next"
    yield "`make mutation`; `make mutation MUTATION_ARGS=--page` names such files."
    yield ""
    yield "| file | version | alterations | noticed by results | by time-out or crash | do not compile | survive |"
    yield "|---|---|--:|--:|--:|--:|--:|"
    for file, record in sorted(records.items()):
        counts = Counter(record.counts)
        ended = counts["timed out"] + counts["ended the process"]
        row = [counts.total(), counts["caught"], ended, counts["does not compile"], counts["survived"]]
        if counts.total():
            yield f"| {file} | `{record.text}` | {' | '.join(map(str, row))} |"
