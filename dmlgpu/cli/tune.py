"""``dmlgpu tune``: measures where one kernel becomes faster than another on a device, and keeps it for later calls."""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..bench.clock import LAGGING
from ..bench.tune import QUESTIONS, Decision, tune
from ..errors import counted
from ..planning.tuning import DEFAULTS, Tuning
from .console import CommandError, columns, note, one_line, say, warn
from .locks import alone_in
from .replacement import check_replaceable, replacing

if TYPE_CHECKING:
    from ..runtime.device import Device

__all__ = ["add_arguments", "run"]

_DESCRIPTION = """\
Measure in less than a minute where one kernel becomes faster than another on
this device, and keep it in the user's cache folder. Results have the same bits
with any tuning; only their time may change.

examples:
  dmlgpu tune                       measure the default device, and keep it
  dmlgpu tune --device llvmpipe     another adapter
  dmlgpu tune --forget              back to the defaults

With DMLGPU_TUNING=off in the environment all commands leave out what was kept.
A new driver, another version of dmlgpu or, for a software device, another
number of cores makes what was kept stale; then the defaults count."""

_SECONDS = 40.0
"""After so many nothing new is measured: what is under way then, and the start, end within a minute."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = _DESCRIPTION
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--forget", action="store_true", help="measure nothing, and remove what was kept of the device")
    what.add_argument("--json", action="store_true", help="print JSON, with every time that was measured")
    parser.add_argument("--wall", action="store_true", help="use the host's clock even if the device has timestamps")


def run(arguments: Namespace) -> int:
    """Measure, keep and print the thresholds of a device."""
    from ..bench.clock import Clock
    from ..runtime.device import resolve_device
    from ..runtime.tuned import is_off

    if arguments.forget:
        return _forget(resolve_device(arguments.device))
    path = _writable_file()
    device = resolve_device(arguments.device)
    if is_off():
        note("DMLGPU_TUNING=off is set: what is kept counts once it is not")
    clock = Clock(device, timestamps=not arguments.wall)
    if clock.reason is not None:
        note(clock.reason)
    decisions = list(tune(device, clock, _SECONDS))
    tuning = replace(DEFAULTS, **{one.threshold: one.chosen for one in decisions})
    measured = [asdict(one) for one in decisions]
    _write(path, device, tuning, measured)
    if (warning := _slow_clock(decisions)) is not None:
        warn(warning)
    if arguments.json:
        found = {"device": device.summary, "clock": clock.kind, "file": str(path), "decisions": measured}
        say(json.dumps(found, indent=2))
        return 0
    say(f"{device.summary}, by {'the device' if clock.kind == 'gpu' else 'the host'}'s clock\n")
    for line in columns([("threshold", "default", "chosen", "gain", "measured"), *map(_row, decisions)], right=True):
        say(line)
    say("")
    for line in columns([(one.threshold, one.meaning) for one in QUESTIONS if one.software == device.limits.software]):
        say(line)
    say(f"\nwrote {one_line(path)}; DMLGPU_TUNING=off leaves it out")
    return 0


def _forget(device: Device) -> int:
    """Remove what was kept of a device, if anything was."""
    from ..runtime.tuned import read_file, tuning_file

    path = tuning_file()
    with suppress(OSError, ValueError, RecursionError):  # a damaged file goes as a whole
        if path is None or not os.path.exists(path) or device.summary not in read_file(path):
            say(f"nothing was kept of {device.summary}")
            return 0
    _write(_writable_file(), device, None, None)
    say(f"forgot what was measured of {device.summary}: {one_line(path)}")
    return 0


def _row(one: Decision) -> Sequence[str]:
    gain = f"{one.gain:.2f} times as fast" if one.chosen != one.default else ""
    sizes = len(one.rungs)
    measured = f"at {counted(sizes, 'size')}" if sizes else "not"
    return one.threshold, _number(one.default), _number(one.chosen), gain, measured


def _slow_clock(decisions: Sequence[Decision]) -> str | None:
    """Return a warning if the GPU had slowed down while any size was measured."""
    lags = [rung.lag for one in decisions for rung in one.rungs]
    slow = [lag for lag in lags if lag > LAGGING]
    if not slow:
        return None
    return (
        f"slow clock: at {len(slow)} of {counted(len(lags), 'size')} the GPU's processors took up to {max(slow):.2f} "
        "times as long as at their fastest, so the choice may be wrong; run this again while nothing else uses the GPU"
    )


def _number(threshold: int) -> str:
    """Return a threshold for people: nothing has 2^32 of what is counted, or more."""
    return str(threshold) if threshold < 2**32 else "any"


def _writable_file() -> Path:
    """Return the tuning file, whose folder is there and can be written to."""
    from ..runtime.tuned import cache_variable, tuning_file

    path = tuning_file()
    way_out = f"set {cache_variable()} to a folder that can be written to"
    if path is None:
        raise CommandError(f"this user has no folder for caches: {way_out}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(
            f"cannot write to the cache folder {path.parent}: {error.strerror or error}; {way_out}"
        ) from error
    try:
        check_replaceable(path)
    except CommandError as error:
        raise CommandError(f"{error}; {way_out}") from error
    return path


def _write(path: Path, device: Device, tuning: Tuning | None, measured: Any) -> None:
    """Replace the device's entry, or remove it; a damaged file is replaced as a whole."""
    from ..runtime.tuned import read_file, with_entry

    with alone_in(path.parent):
        try:
            entries = read_file(path)
        except (OSError, ValueError, RecursionError):
            entries = {}
        content = with_entry(entries, device.description, tuning or DEFAULTS, measured)
        if tuning is None:
            del content["adapters"][device.description.summary]
        with replacing(path) as file:
            file.write(json.dumps(content, indent=2).encode() + b"\n")
