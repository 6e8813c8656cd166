"""``dmlgpu explain``: the passes of an operator, why they are these, and what each moves through memory."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace

import dmlgpu

from ..planning.profiles import PROFILES
from .console import CommandError, say
from .operators import add_problem, problem_given

__all__ = ["add_arguments", "run"]

_DESCRIPTION = """\
What an operator would do on a device, or on a GPU that is not there: its passes
with kernel, reason, workgroups, bytes, 32-byte sectors and serial links.
Nothing is run or measured; the figures are those of ordinary data.

examples:
  dmlgpu explain cumsum --shape 4096x4096 --axis 0      on the default device
  dmlgpu explain cumsum --shape 2^28 --profile h200     by a GPU's figures
  dmlgpu explain round --shape 2^24 --type float16 --profile m3 --json"""

_EPILOG = """\
profiles:
{profiles}

Traffic is the bytes moved, by those of a copy. An access is that of 32
neighbouring invocations. Bytes in flight are those that are loaded before the
first of them is used, by as many invocations as there are at a time; registers
and workgroup memory may allow fewer. docs/kernels.md says more."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    names = max(map(len, PROFILES))
    listed = "\n".join(f"  {name:{names}}  {profile.summary}" for name, profile in PROFILES.items())
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG.format(profiles=listed)
    add_problem(parser)
    parser.add_argument(
        "--profile", metavar="NAME", choices=tuple(PROFILES), help="a GPU that need not be there: %(choices)s"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with every pass")


def run(arguments: Namespace) -> int:
    """Explain an operator and print it."""
    if arguments.profile is not None and arguments.device is not None:
        raise CommandError("--device and --profile are both given: a plan is explained for one of them, so give one")
    found = dmlgpu.explain(**problem_given(arguments), device=arguments.device, profile=arguments.profile)
    say(json.dumps(found.as_dict(), indent=2) if arguments.json else str(found))
    return 0
