"""``dmlgpu verify``: checks that this device gives the reference's bits."""

from __future__ import annotations

import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import dmlgpu

from ..conformance import (
    Case,
    Digests,
    Disagreement,
    Outcome,
    Probe,
    checking,
    compare,
    parse,
    probe,
    reference_outcome,
    share,
    suite,
)
from ..conformance.digests import REFERENCE
from ..errors import ArgumentError, DeviceReleasedError, counted
from ..planning.plan import KERNELS
from ..planning.policy import policy_of
from .console import CommandError, Progress, note, one_line, say, warn
from .files import check_outputs
from .raw_files import check_input
from .replacement import replacing
from .verdict import Verdict, driver_of, reproduction

if TYPE_CHECKING:
    from ..runtime.device import Device

__all__ = [
    "add_arguments",
    "chosen_cases",
    "default_jobs",
    "jobs_of",
    "jobs_on",
    "never_taken",
    "run",
    "taken_cases",
    "verified",
    "verify_device",
]

_DESCRIPTION = """\
Run the conformance cases on this device and compare every bit with the
reference, the definition of the results in NumPy; probe what devices may do
differently. The exit status is 0 if every case has the reference's bits and no
probe fails, else 1.

examples:
  dmlgpu verify                              are this device's bits right?
  dmlgpu verify --full --json report.json    all cases, for a report
  dmlgpu verify --digest here.json           on each of two machines, then
  dmlgpu verify --reference --digest reference.json
  dmlgpu verify --compare here.json there.json reference.json"""
_MOST_JOBS = 16
_SHOWN_DIGESTS = 20
_SHOWN_DISAGREEMENTS = 10
_WORTH_TWO = 500
"""The fewest cases for two processes: one is done with fewer before the second is ready."""
_NATIVE = "wgpu-native"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = _DESCRIPTION
    parser.add_argument(
        "--full", action="store_true", help="run all cases, large ones too, instead of those of a minute or so"
    )
    parser.add_argument(
        "--every-kernel",
        action="store_true",
        help="also run the cases of kernels that no plan takes on such a device, as --full and --digest do",
    )
    parser.add_argument(
        "--case",
        metavar="NAME",
        action="append",
        help="run only this case, or those of the full suite that match a pattern with *; may be given several times",
    )
    parser.add_argument(
        "--share",
        metavar="K/N",
        type=_share_of,
        help="run only the K-th of N parts of the cases, for drivers that take long to compile",
    )
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=jobs_of,
        help="share the cases among N processes; by default 2 on software adapters, which compile on one core, else 1",
    )
    parser.add_argument("--json", metavar="FILE", help="also write a report to attach to a bug report")
    parser.add_argument("--digest", metavar="FILE", help="also write the SHA-256 of every result to this file")
    parser.add_argument("--reference", action="store_true", help="write the reference's digests; uses no device")
    parser.add_argument(
        "--compare",
        metavar="FILE",
        nargs="+",
        help="compare files of digests and do nothing else; the exit status is 1 if they differ",
    )


def jobs_of(text: str) -> int:
    """Read a number of processes."""
    if text not in map(str, range(1, _MOST_JOBS + 1)):
        raise ArgumentTypeError(f"{text!r} is not a number of processes from 1 to {_MOST_JOBS}")
    return int(text)


def _share_of(text: str) -> tuple[int, int]:
    """Read which part of how many, as in 2/4."""
    number, _, shares = text.partition("/")
    if not all(part.isascii() and part.isdigit() for part in (number, shares)) or not 1 <= int(number) <= int(shares):
        raise ArgumentTypeError(f"{text!r} is no share of the cases, such as 1/4 to 4/4")
    return int(number), int(shares)


def run(arguments: Namespace) -> int:
    """Verify a device, compute the reference's digests, or compare files of digests; return the exit status."""
    _check(arguments)
    if arguments.compare is not None:
        return _compare([Path(name) for name in arguments.compare])
    cases = chosen_cases(arguments)
    if arguments.reference:
        return _reference(cases, Path(arguments.digest))
    from ..runtime.device import resolve_device

    device = resolve_device(arguments.device)
    if not _leaves_out(arguments):
        return verify_device(device, cases, arguments)
    cases = taken_cases(device, cases)
    if not cases:
        raise CommandError("the share has only cases of kernels that this device never takes: add --every-kernel")
    return verify_device(device, cases, arguments)


def _leaves_out(arguments: Namespace) -> bool:
    """Whether cases of kernels that the device never takes are left out: digests are of the same cases everywhere."""
    asked = arguments.every_kernel or arguments.full
    return not asked and arguments.case is None and arguments.digest is None


def never_taken(device: Device) -> list[str]:
    """Return the kernels that no plan takes on a device."""
    return [kernel for kernel in KERNELS if kernel not in policy_of(device.limits).kernels]


def taken_cases(device: Device, cases: Iterable[Case]) -> list[Case]:
    """Return the cases but for those of kernels that no plan takes on a device."""
    others = never_taken(device)
    return [case for case in cases if case.kernel not in others]


def verify_device(device: Device, cases: Sequence[Case], arguments: Namespace) -> int:
    """Verify a device, say what was found, and write the files that are asked for; return the exit status."""
    verdict = verified(device, cases, probing=arguments.case is None, jobs=jobs_on(device, len(cases), arguments.jobs))
    if _leaves_out(arguments):
        verdict = replace(verdict, left_out=never_taken(device))
    if arguments.case is not None and len(verdict.outcomes) <= _SHOWN_DIGESTS:
        for outcome in verdict.outcomes:
            state = "different" if outcome.difference else "the reference's bits"
            say(f"{outcome.case.name}: {state}, SHA-256 {outcome.digest or 'of a result that meets subnormals'}")
        say("")
    say(verdict.render())
    if arguments.digest is not None:
        made = Digests(
            dmlgpu.__version__,
            device.summary,
            driver_of(device),
            {outcome.case.name: outcome.digest for outcome in verdict.outcomes if outcome.digest is not None},
            {outcome.case.name: outcome.difference for outcome in verdict.outcomes if outcome.difference is not None},
        )
        _write(made, Path(arguments.digest))
    if arguments.json is not None:
        from .info import collect

        with replacing(Path(arguments.json)) as file:
            file.write(verdict.json(collect(arguments.device)).encode() + b"\n")
        say(f"wrote {one_line(arguments.json)}, to attach to a bug report")
    return 0 if verdict.passed else 1


def _check(arguments: Namespace) -> None:
    """Refuse what cannot be done, before the work."""
    others = {
        "--device": arguments.device is not None,
        "--case": arguments.case is not None,
        "--full": arguments.full,
        "--every-kernel": arguments.every_kernel,
        "--share": arguments.share is not None,
        "--jobs": arguments.jobs is not None,
        "--digest": arguments.digest is not None,
        "--json": arguments.json is not None,
        "--reference": arguments.reference,
    }
    given = [name for name, is_given in others.items() if is_given]
    if arguments.compare is not None:
        if given:
            raise CommandError(f"--compare reads files only; leave {' and '.join(given)} out")
        if len(arguments.compare) < 2:
            raise CommandError("--compare needs two files of digests or more")
    if arguments.case is not None and arguments.full:
        raise CommandError("--case chooses cases, and --full takes all: give one of the two")
    if arguments.reference:
        if arguments.digest is None:
            raise CommandError("--reference uses no device and has nothing to verify; it needs --digest FILE")
        if arguments.device is not None or arguments.json is not None or arguments.jobs is not None:
            raise CommandError("--reference uses no device: leave --device, --jobs and --json out")
    check_outputs({"--digest": arguments.digest, "--json": arguments.json})


def chosen_cases(arguments: Namespace) -> list[Case]:
    """Return the cases that the arguments ask for."""
    cases = _named(arguments.case) if arguments.case is not None else list(suite(arguments.full))
    if arguments.share is None:
        return cases
    number, shares = arguments.share
    chosen = share(cases, number - 1, shares)
    if not chosen:
        raise CommandError(f"share {number} of {shares} has no case: take fewer shares")
    return chosen


def _named(names: Sequence[str]) -> list[Case]:
    """Return the cases with these names, or of the full suite that match them."""
    cases: dict[str, Case] = {}
    for name in names:
        if any(sign in name for sign in "*?["):
            matching = {case.name: case for case in suite(full=True) if fnmatchcase(case.name, name)}
            if not matching:
                raise CommandError(f"no case of the suite matches {name!r}; docs/portability.md shows what names hold")
            cases |= matching
        else:
            cases[name] = parse(name)
    return list(cases.values())


def default_jobs(device: Device, cases: int) -> int:
    """Return how many processes share the cases by default: two where drivers compile on one core of the CPU."""
    return 2 if device.description.is_software and _is_native(device) and cases > _WORTH_TWO else 1


def _is_native(device: Device) -> bool:
    return device.implementation.startswith(_NATIVE)


def jobs_on(device: Device, cases: int, asked: int | None) -> int:
    """Return how many processes share the cases.

    Raises
    ------
    CommandError
        If several are asked for, and the device is not one that other processes can open.
    """
    if asked is None:
        return default_jobs(device, cases)
    if asked > 1 and not _is_native(device):
        raise CommandError(
            f"--jobs {asked} would not verify {device.implementation}, which this process alone has in wgpu's place; "
            "use --jobs 1"
        )
    return asked


def verified(
    device: Device, cases: Sequence[Case], *, probing: bool, jobs: int, seconds: float | None = None
) -> Verdict:
    """Return what the cases show, and the probes if these are asked for; no case begins after so many `seconds`."""
    started = time.monotonic()
    probes: list[Probe] = []
    found: dict[int, Outcome] = {}
    stopped = None
    with Progress(len(cases), "case") as progress:
        try:
            with checking(device, cases, _keeps(device), processes=jobs) as outcomes_as_they_come:
                if probing:
                    progress.show(0, "compiling and running probes", at_once=True)
                    probes = list(probe(device))
                steps = _steps(cases, jobs)
                progress.show(0, next(steps), at_once=True)
                for number, outcome in outcomes_as_they_come:
                    found[number] = outcome
                    progress.show(len(found), next(steps))
                    if seconds is not None and time.monotonic() - started > seconds and len(found) < len(cases):
                        stopped = f"the {seconds:.0f} s for them were over"
                        break
        except DeviceReleasedError as error:
            stopped = str(error)
        except BrokenProcessPool:
            stopped = "a process that verified cases ended, as if its driver had aborted it; --jobs 1 tells where"
    for one in probes:
        if one.passed is False:
            warn(f"the probe {one.name!r} failed on {device.summary}: {one.finding}")
    took = time.monotonic() - started
    outcomes = [found[number] for number in sorted(found)]
    return Verdict(device.summary, len(cases), probes, outcomes, took, stopped, driver_of(device))


def _steps(cases: Sequence[Case], jobs: int) -> Iterator[str]:
    """Yield what comes next, before each case and at the end."""
    compiled = set()
    for case in cases:
        shaders = case.column, case.dtype
        what = "running" if shaders in compiled else "compiling"  # which takes longer than to run
        compiled.add(shaders)
        yield f"{what} {case.name}" if jobs == 1 else f"compiling and running in {jobs} processes"
    yield "done"


def _keeps(device: Device) -> Mapping[str, bool]:
    """Return whether subnormals survive; where the probe cannot say, its failure is in the verdict."""
    try:
        return device.subnormals()
    except Exception:  # as in dmlgpu.conformance.probe
        return {"sum": True, "product": True}


def _reference(cases: Sequence[Case], path: Path) -> int:
    import numpy as np

    digests = {}
    with Progress(len(cases), "case") as progress:
        for number, case in enumerate(cases):
            progress.show(number, f"computing {case.name}")
            outcome = reference_outcome(case)
            if outcome.digest is not None:
                digests[case.name] = outcome.digest
    _write(Digests(dmlgpu.__version__, REFERENCE, f"NumPy {np.__version__}", digests), path)
    return 0


def _write(made: Digests, path: Path) -> None:
    with replacing(path) as file:
        made.write(file)
    say(f"wrote {one_line(path)}: {counted(len(made.digests), 'digest')} of {made.device}")


def _compare(paths: Sequence[Path]) -> int:
    """Compare files of digests and say what differs; the status is 1 if anything does."""
    for path in paths:
        check_input(path)
    files = [Digests.read(path) for path in paths]
    names = [one_line(path) for path in paths]
    width = max(map(len, names))
    for name, one in zip(names, files, strict=True):
        driver = f" ({one.driver})" if one.driver else ""
        say(f"{name:<{width}}  {counted(len(one.digests), 'digest')} of {one.device}{driver}")
    if len({one.dmlgpu for one in files}) > 1:
        note(f"the files are of several versions of dmlgpu: {', '.join(sorted({one.dmlgpu for one in files}))}")
    wrong = {name: one for name, one in zip(names, files, strict=True) if one.differences}
    found = compare(files)
    for disagreement in found[:_SHOWN_DISAGREEMENTS]:
        _tell_disagreement(disagreement, names, files)
    if len(found) > _SHOWN_DISAGREEMENTS:
        say(f"and {counted(len(found) - _SHOWN_DISAGREEMENTS, 'more case')}")
    cases = len({name for one in files for name in one.digests})
    if cases == 0:
        raise CommandError("there is nothing to compare: no file has a digest")
    if found:
        say(f"DIFFERENT: {len(found)} of {counted(cases, 'case')}")
        return 1
    # Cases that meet subnormals, or gave no result, have no digest; and all files may come from wrong devices.
    for name, one in wrong.items():
        case, difference = next(iter(one.differences.items()))
        say(f"{name}: {counted(len(one.differences), 'case')} not as the reference, the first {case}: {difference}")
    if wrong:
        say("DIFFERENT: not from each other, but from the reference")
        return 1
    say(f"EQUAL: {counted(len(files), 'file')} agree on {counted(cases, 'case')}")
    return 0


def _tell_disagreement(disagreement: Disagreement, names: Sequence[str], files: Sequence[Digests]) -> None:
    case = disagreement.case
    say(f"\n{case}")
    right = _reference_digest(case)
    for digest, positions in disagreement.groups.items():
        mark = "  (as the reference here)" if digest is not None and digest == right else ""
        said = "no digest" if digest is None else digest
        say(f"  {said}  {', '.join(names[i] for i in positions)}{mark}")
    for i, one in enumerate(files):
        if case in one.differences:
            say(f"  {names[i]}: {one.differences[case]}")
    for one in files:
        if one.device != REFERENCE and one.digests.get(case) != right:
            say(f"  {reproduction(one.device, case, one.driver)}")


def _reference_digest(case: str) -> str | None:
    """Return what the reference of this version gives; None if this version has no such case."""
    try:
        return reference_outcome(parse(case)).digest
    except ArgumentError:
        return None
