"""``make mutation``: alter the shaders, try the alterations, write docs/mutations.md, and judge."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from dmlgpu import shaders

from .alterations import Alteration, Key, alterations
from .justifications import PATH as REASONS
from .justifications import Reason, entries, read
from .page import KINDS, page
from .results import PATH as RESULTS
from .results import Results
from .worker import Worker

_ROOT = Path(__file__).resolve().parents[2]
PAGE = _ROOT / "docs" / "mutations.md"


def main() -> int:
    """Return 0 if every survivor is justified and every justification is of a survivor, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=main.__doc__)
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="shader files, relative to wgsl/; default: those that have changed"
    )
    parser.add_argument("--survivors", action="store_true", help="try again only what survived before")
    parser.add_argument(
        "--patience",
        type=float,
        default=1.0,
        metavar="X",
        help="have the driver compile X times as much for an alteration",
    )
    parser.add_argument(
        "--kind",
        choices=KINDS,
        help="try alterations of one kind only; the next run tries the others",
    )
    parser.add_argument("--page", action="store_true", help="try nothing; write the page again, after justifying")
    arguments = parser.parse_args()
    texts = shader_texts()
    wrong = [name for name in arguments.files if name not in texts]
    if wrong:
        parser.error(f"no shader file is named {', '.join(wrong)}; there are {', '.join(texts)}")
    results = Results(RESULTS, _ROOT / ".cache" / "mutations.json")
    for name in [name for name in results.records if name not in texts]:
        del results.records[name]
    if not arguments.page:
        names = arguments.files or list(texts)
        if arguments.survivors:
            for name in names:
                results.forget(name, texts[name], survivors_only=True)
        else:
            # What was tried of a file that is not complete is kept.
            for name in arguments.files:
                if results.is_complete(name, texts[name]):
                    results.forget(name, texts[name])
            names = [name for name in names if name in arguments.files or not results.is_complete(name, texts[name])]
        _try_out({name: texts[name] for name in names}, results, arguments.patience, arguments.kind)
    return _judge(results, texts)


def shader_texts() -> dict[str, str]:
    """Return the text of every shader file, by its name; kernels first."""
    folder = shaders.folder()
    files = sorted(folder.rglob("*.wgsl"), key=lambda path: (path.parent != folder, path.name))
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in files}


def _try_out(texts: Mapping[str, str], results: Results, patience: float, kind: str | None) -> None:
    if not texts:
        return
    with Worker(patience) as worker:
        results.device = worker.device
        for name, text in texts.items():
            every = alterations(text, name)
            for number, one in enumerate(every, 1):
                if results.get(one, text) is None and kind in (None, one.kind):
                    _try_one(worker, one, text, results, f"{number} of {len(every)}")
                if number % 20 == 0:
                    results.write_cache()
            if results.complete(name, text, every):
                results.write()


def _try_one(worker: Worker, one: Alteration, text: str, results: Results, place: str) -> None:
    started = time.monotonic()
    outcome = worker.try_out(one)
    results.add(one, text, outcome)
    if outcome.state != "caught":
        print(f"{one}\n    {place}: {outcome.state} ({time.monotonic() - started:.1f} s; {outcome.by})", flush=True)


def _judge(results: Results, texts: Mapping[str, str]) -> int:
    reasons = read()
    results.untried = [name for name in texts if name not in results.records]
    results.write()
    PAGE.write_text(page(results, reasons), encoding="utf-8")
    problems = judge(results, reasons)
    print("\n".join(problems))
    changed = [name for name in texts if not results.is_complete(name, texts[name])]
    if changed:
        print(f"not tried as they are now: {', '.join(changed)}")
    print("docs/mutations.md has the counts")
    return 1 if problems else 0


def judge(results: Results, reasons: Mapping[Key, Reason]) -> list[str]:
    """Return a line for each survivor without a reason and each reason without a survivor."""
    problems = []
    for file, record in results.records.items():
        missing = [key for key in record.keys(file) if key not in reasons]
        if missing:
            problems.append(f"# {len(missing)} survive without a reason in {REASONS.name}:\n{entries(missing)}")
    survivors = {key for file, record in results.records.items() for key in record.keys(file)}
    for key in reasons:
        if key not in survivors:
            problems.append(f"{REASONS.name} has a reason for what does not survive: {key}")
    return problems


if __name__ == "__main__":
    sys.exit(main())
