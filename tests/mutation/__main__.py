"""``make mutation``: alter the shaders, try the alterations, write docs/mutations.md, and judge."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from dmlgpu import shaders

from .alterations import Alteration, alterations
from .justifications import PATH, entry, read, unfounded
from .results import Results, page
from .worker import Worker

_ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Return 0 if every survivor is justified and every justification is of a survivor, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=main.__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help="shader files, relative to wgsl/; default: all")
    parser.add_argument("--again", action="store_true", help="try again what was tried before with the same shaders")
    parser.add_argument("--survivors", action="store_true", help="try again only what survived before")
    arguments = parser.parse_args()
    every = every_alteration()
    wrong = [name for name in arguments.files if name not in every]
    if wrong:
        parser.error(f"no shader file is named {', '.join(wrong)}; there are {', '.join(every)}")
    results = Results(_ROOT / ".cache" / "mutations.json", shaders.folder())
    chosen = [one for name in arguments.files or every for one in every[name]]
    with Worker() as worker:
        for number, one in enumerate(chosen):
            before = results.get(one)
            again = arguments.again or (arguments.survivors and before is not None and before.state == "survived")
            if before is not None and not again:
                continue
            started = time.monotonic()
            outcome = worker.try_out(one)
            results.add(one, outcome)
            if outcome.state != "caught":
                seconds = f"{time.monotonic() - started:.1f} s"
                print(f"[{number + 1} of {len(chosen)}] {outcome.state} ({seconds}): {one}", flush=True)
            if number % 20 == 0 or outcome.state == "survived":
                results.write()
        results.write()
        device = worker.device
    return _judge(every, results, device)


def every_alteration() -> dict[str, list[Alteration]]:
    """Return the alterations of every shader file, by its name."""
    folder = shaders.folder()
    files = sorted(folder.rglob("*.wgsl"), key=lambda path: (path.parent != folder, path.name))
    names = [path.relative_to(folder).as_posix() for path in files]
    return {name: alterations((folder / name).read_text(encoding="utf-8"), name) for name in names}


def _judge(every: dict[str, list[Alteration]], results: Results, device: str) -> int:
    reasons = read()
    outcomes = [(one, found) for ones in every.values() for one in ones if (found := results.get(one)) is not None]
    untried = [name for name, ones in every.items() if any(results.get(one) is None for one in ones)]
    survivors = {one.key: one for one, found in outcomes if found.state == "survived"}
    (_ROOT / "docs" / "mutations.md").write_text(page(device, outcomes, reasons, untried), encoding="utf-8")
    status = 0
    for key, one in survivors.items():
        if key not in reasons:
            status = 1
            print(f"survives without a reason in {PATH.name}:\n{entry(one)}")
    tried = {one.key for one, _ in outcomes}
    stale = [key for key in reasons if key in tried and key not in survivors]
    for key in [*stale, *unfounded(reasons, (one for ones in every.values() for one in ones))]:
        status = 1
        print(f"{PATH.name} has a reason for what does not survive, or is no alteration: {key}")
    print(f"{len(outcomes)} alterations tried, {len(survivors)} survive; docs/mutations.md has the table")
    return status


if __name__ == "__main__":
    sys.exit(main())
