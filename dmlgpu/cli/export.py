"""``dmlgpu export``: an operator's plan and shaders as files, for programs in other languages on WebGPU."""

from __future__ import annotations

import json
import os
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dmlgpu

from ..errors import counted
from ..planning.export import LIMITS, exported_operator, limits_of_webgpu
from ..planning.windows import Limits
from .console import CommandError, one_line, say
from .operators import add_problem, how, problem_given

__all__ = ["DEFAULT_DEVICE", "add_arguments", "run"]

PLAN = "plan.json"
DEFAULT_DEVICE = "none: the plan is for WebGPU's default limits"

_DESCRIPTION = """\
Write what an operator does on a GPU into a folder: plan.json with its
dispatches, bindings, uniforms and grids, and a .wgsl file for each of its
shaders. A program in JavaScript, Rust or C++ that runs them by WebGPU gets the
same bits. No device is used, unless --device names one whose limits the plan is
to keep to. docs/export.md describes plan.json.

examples:
  dmlgpu export cumsum --shape 16x4096 --axis 1 -o running-sums
  dmlgpu export cumsum --shape 2^20 --type uint32 --exclusive -o offsets
  dmlgpu export round --shape 1000 --mode half_away --in-place -o rounding
  dmlgpu export cumprod --shape 2^28 -o products \\
      --limit maxStorageBufferBindingSize=2147483644"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = _DESCRIPTION
    add_problem(parser)
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", required=True, help="where the files go: a new folder, or an empty one"
    )
    parser.add_argument(
        "--limit",
        metavar="NAME=N",
        type=_limit,
        action="append",
        default=[],
        help=f"a limit of the devices that the plan is for, where it is not WebGPU's default: {', '.join(LIMITS)}; may "
        "be given several times",
    )


def _limit(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    if name not in LIMITS:
        raise ArgumentTypeError(f"{text!r} names no limit that plans depend on: give one of {', '.join(LIMITS)}")
    if re.fullmatch(r"\d{1,20}", value, re.ASCII) is None:
        raise ArgumentTypeError(f"{text!r} gives no number: write it as in {name}=65536")
    return name, int(value)


def run(arguments: Namespace) -> int:
    """Write the folder."""
    if not arguments.output:  # which is the folder one is in to Path
        raise CommandError("--output is empty: give the name of a folder")
    folder = Path(arguments.output)
    _check_folder(folder)
    limits, said = _limits(arguments)
    plan, shaders = exported_operator(**problem_given(arguments), limits=limits)
    written = {"dmlgpu": dmlgpu.__version__, **plan}
    # The plan comes last: a folder that has one is complete.
    _write(folder, {**shaders, PLAN: _as_json(written)})
    passes = len(plan["passes"])
    done = f"{how(plan['operator'], plan.get('axis'), plan)} of {plan['type']} {tuple(plan['shape'])}"
    say(
        f"wrote {one_line(folder)}: {PLAN} and {counted(len(shaders), 'shader')}, for {done} in "
        f"{'1 pass' if passes == 1 else f'{passes} passes'}, within {said}"
    )
    return 0


def _limits(arguments: Namespace) -> tuple[Limits, str]:
    """Return the limits that the plan is to keep to, and what they are called."""
    if arguments.device is None:
        given = dict(arguments.limit)
        return limits_of_webgpu(given), "the limits given" if given else "WebGPU's default limits"
    if arguments.limit:
        raise CommandError("--device and --limit are both given: a device has limits of its own, so give one of them")
    from ..runtime.device import resolve_device

    device = resolve_device(arguments.device)
    return device.limits, f"the limits of {device.summary}"


def _as_json(content: Mapping[str, Any]) -> str:
    """Return JSON with lists of numbers on one line each."""
    text = json.dumps(content, indent=1)
    return re.sub(r"\[[\s\d,]+\]", lambda numbers: " ".join(numbers[0].split()), text) + "\n"


def _check_folder(folder: Path) -> None:
    """Raise an error if something is there that would be mixed with the files, or overwritten."""
    if os.path.lexists(folder) and not os.path.isdir(folder):
        what = "a link to nothing" if os.path.islink(folder) and not os.path.exists(folder) else "a file"
        raise CommandError(f"--output {folder} is {what}: give a folder")
    if os.path.isdir(folder) and any(folder.iterdir()):
        raise CommandError(f"--output {folder} is a folder that is not empty: give a new one, or empty it")
    if not os.path.isdir(folder.parent):
        raise CommandError(f"--output {folder}: {folder.parent} is not a folder; create it first")


def _write(folder: Path, files: Mapping[str, str]) -> None:
    """Write files into a folder; after an error it is as before."""
    is_new = not os.path.exists(folder)
    if is_new:
        folder.mkdir()
    begun = []
    try:
        for name, text in files.items():
            begun.append(folder / name)
            begun[-1].write_text(text, encoding="utf-8", newline="\n")
    except BaseException:
        for path in begun:
            path.unlink(missing_ok=True)
        if is_new:
            folder.rmdir()
        raise
