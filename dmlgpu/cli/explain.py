"""``dmlgpu explain``: the passes of an operator, why they are these, and what each moves through memory."""

from __future__ import annotations

import json
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace

import dmlgpu

from ..dtypes import ELEMENT_TYPES
from ..planning.explain import OPERATORS
from ..planning.profiles import PROFILES
from .console import CommandError, say
from .operators import MODES

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
    parser.add_argument("operator", metavar="OPERATOR", choices=tuple(OPERATORS), help=", ".join(OPERATORS))
    parser.add_argument(
        "--shape",
        metavar="S",
        type=_shape,
        required=True,
        help="sizes with an x between, as in 4096x4096 or 16x2^20; elements lie in C order without gaps",
    )
    parser.add_argument("--axis", metavar="N", type=int, help="axis to run along; needed for more than one dimension")
    parser.add_argument(
        "--type",
        metavar="T",
        choices=[element.name for element in ELEMENT_TYPES],
        default="float32",
        help="the type to compute in: %(choices)s; %(default)s by default",
    )
    parser.add_argument("--exclusive", action="store_true", help="leave each element out of its own result")
    parser.add_argument("--reverse", action="store_true", help="start from the highest index of the axis")
    parser.add_argument("--precision", choices=("default", "compensated"), default="default", help="of sums of float32")
    parser.add_argument(
        "--mode",
        type=lambda text: text.replace("-", "_"),
        choices=MODES,
        default=MODES[0],
        metavar="M",
        help="how to round: %(choices)s; %(default)s by default",
    )
    parser.add_argument("--in-place", action="store_true", help="results take the places of elements")
    parser.add_argument(
        "--profile", metavar="NAME", choices=tuple(PROFILES), help="a GPU that need not be there: %(choices)s"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with every pass")


def _shape(text: str) -> tuple[int, ...]:
    sizes = []
    for part in text.split("x"):
        match = re.fullmatch(r"(\d{1,10})(?:\^(\d{1,2}))?", part, re.ASCII)
        if match is None:
            raise ArgumentTypeError(f"{text!r} is no shape: write sizes with an x between, as in 4096x4096 or 16x2^20")
        sizes.append(int(match[1]) ** int(match[2] or 1))
    return tuple(sizes)


def run(arguments: Namespace) -> int:
    """Explain an operator and print it."""
    if arguments.profile is not None and arguments.device is not None:
        raise CommandError("--device and --profile are both given: a plan is explained for one of them, so give one")
    found = dmlgpu.explain(
        arguments.operator,
        arguments.shape,
        axis=arguments.axis,
        dtype=arguments.type,
        exclusive=arguments.exclusive,
        reverse=arguments.reverse,
        precision=arguments.precision,
        mode=arguments.mode,
        in_place=arguments.in_place,
        device=arguments.device,
        profile=arguments.profile,
    )
    say(json.dumps(found.as_dict(), indent=2) if arguments.json else str(found))
    return 0
