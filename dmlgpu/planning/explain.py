"""Pure: what a plan would do on a device or on a GPU that is not there: its passes, what each moves, and why it is."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import groupby
from typing import Any, Final

from .. import shaders
from ..arguments import choice
from ..errors import counted
from .dispatch import Pass
from .kernels import LEAVES_ALL
from .ledger import SECTOR_BYTES, Figures, Sectors, figures_of
from .plan import passes_of
from .problem import ElementwiseProblem, ScanProblem
from .profiles import PROFILES, Profile
from .windows import Limits

__all__ = ["ExplainedPass", "Explanation", "explain_problem", "profile_of"]

_WIDTH: Final = 80
_CLEARS: Final = "Clears what workgroups of a look-back hand to each other"
_OF_ALL_TILES: Final = {
    "scan_lookback": "Works out the totals of all tiles, and leaves these to the passes behind",
    "scan_repair": "Works out what tiles begin with, and scans those that may be exceptional",
    "scan_tiles": "Scans all tiles, but those that scan_repair has written",
}
"""What these kernels do where no workgroup waits for another."""
_UNITS: Final = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


@dataclass(frozen=True)
class ExplainedPass:
    """A dispatch, and what it moves on ordinary data.

    Attributes
    ----------
    kernel : str
        A file of ``wgsl/``.
    purpose : str
        What the kernel does, by the first sentence of its file.
    why : str
        Why the plan takes it.
    workgroups, lanes, invocations : int
        Workgroups, invocations of one, and of all.
    bytes_read, bytes_written : int
        Of tensors and of scratch memory.
    read_sectors, write_sectors : float or None
        Sectors of 32 bytes that an access of 32 neighbouring invocations to the input, or output, touches by the mean;
        None where there is no such access.
    least_read_sectors, least_write_sectors : float or None
        As many as the bytes of these accesses would take without gaps.
    bytes_in_flight : int
        Bytes that the invocations which there are at a time load of the input before they use any of them.
    serial_links : int
        The most elements and scratch values that one invocation goes through one after the other, with those that it
        waits for in others of its workgroup.
    first_time_only : bool
        Whether it only clears scratch memory, which the passes leave so for the next scan like this one. A call that
        follows such a scan is without it, and figures of all passes are those of such a call.
    """

    kernel: str
    purpose: str
    why: str
    workgroups: int
    lanes: int
    invocations: int
    bytes_read: int
    bytes_written: int
    read_sectors: float | None
    least_read_sectors: float | None
    write_sectors: float | None
    least_write_sectors: float | None
    bytes_in_flight: int
    serial_links: int
    first_time_only: bool


@dataclass(frozen=True)
class Explanation:
    """What a plan would do. Its text is a table for people, and `as_dict` what JSON can hold.

    Attributes
    ----------
    operator, dtype : str
        What would be computed, and the type of the elements.
    shape : tuple of int
        Of input and output, which lie in C order without gaps.
    axis : int or None
        The axis of a scan, counted from 0.
    device : str
        The adapter's summary, or the profile's.
    passes : tuple of ExplainedPass
        In order.
    copy_bytes : int
        What a copy of the input moves: each element is read once and written once.
    processors : int or None
        Those of the profile.
    wanted_bytes : float or None
        Bytes in flight on each processor that its memory needs for its full speed.
    """

    operator: str
    shape: tuple[int, ...]
    axis: int | None
    dtype: str
    device: str
    passes: tuple[ExplainedPass, ...]
    copy_bytes: int
    processors: int | None
    wanted_bytes: float | None

    @property
    def repeated(self) -> tuple[ExplainedPass, ...]:
        """The passes that run each time, which the figures below are of."""
        return tuple(one for one in self.passes if not one.first_time_only)

    @property
    def traffic(self) -> float:
        """Bytes moved in all, as a multiple of those of a copy."""
        return sum(one.bytes_read + one.bytes_written for one in self.repeated) / self.copy_bytes

    @property
    def dispatches(self) -> int:
        """The number of passes."""
        return len(self.repeated)

    @property
    def serial_links(self) -> int:
        """The longest serial chain: passes wait for one another."""
        return sum(one.serial_links for one in self.repeated)

    @property
    def sectors(self) -> float | None:
        """Sectors touched as a multiple of the least, by the mean of all accesses; None where no tensor is accessed."""
        touched = least = 0.0
        for one in self.passes:
            for nbytes, found, fewest in (
                (one.bytes_read, one.read_sectors, one.least_read_sectors),
                (one.bytes_written, one.write_sectors, one.least_write_sectors),
            ):
                if found is not None and fewest is not None:
                    touched += nbytes * found / fewest
                    least += nbytes
        return touched / least if least else None

    @property
    def processor_bytes(self) -> float | None:
        """Bytes in flight on a processor, by the mean of passes by the bytes they move; None without a profile."""
        moved = [one.bytes_read + one.bytes_written for one in self.repeated]
        if self.processors is None:
            return None
        in_flight = sum(n * one.bytes_in_flight for n, one in zip(moved, self.repeated, strict=True))
        return in_flight / sum(moved) / self.processors

    def as_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {
            "operator": self.operator,
            "shape": list(self.shape),
            "axis": self.axis,
            "dtype": self.dtype,
            "device": self.device,
            "passes": [asdict(one) for one in self.passes],
            "traffic": self.traffic,
            "dispatches": self.dispatches,
            "serial_links": self.serial_links,
            "sectors": self.sectors,
            "processor_bytes": self.processor_bytes,
            "wanted_bytes": self.wanted_bytes,
        }

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def explain_problem(
    problem: ScanProblem | ElementwiseProblem,
    limits: Limits,
    profile: Profile | None = None,
    *,
    in_place: bool = False,
) -> tuple[ExplainedPass, ...]:
    """Return the passes of a problem, and what each moves.

    Parameters
    ----------
    problem : ScanProblem or ElementwiseProblem
        What to compute.
    limits : Limits
        What the device can do.
    profile : Profile, optional
        How many invocations it has at a time; by default all of a dispatch.
    in_place : bool
        Whether results take the places of elements.
    """
    profile = profile or Profile("", limits, ())
    passes = passes_of(problem, limits, one_buffer=in_place)
    return tuple(_explained(one, figures_of(one), profile) for one in passes)


def _explained(one: Pass, figures: Figures, profile: Profile) -> ExplainedPass:
    read, written = figures.read_sectors, figures.write_sectors
    return ExplainedPass(
        kernel=one.pipeline.kernel,
        purpose=_purpose(one),
        why=one.why,
        workgroups=figures.workgroups,
        lanes=figures.lanes,
        invocations=figures.invocations,
        bytes_read=figures.bytes_read,
        bytes_written=figures.bytes_written,
        read_sectors=_touched(read),
        least_read_sectors=_least(read),
        write_sectors=_touched(written),
        least_write_sectors=_least(written),
        bytes_in_flight=figures.workgroup_bytes * profile.resident(figures.lanes, figures.workgroups),
        serial_links=figures.serial_links,
        first_time_only=one.only_clears,
    )


def _touched(sectors: Sectors | None) -> float | None:
    return None if sectors is None else sectors.touched


def _least(sectors: Sectors | None) -> float | None:
    return None if sectors is None else sectors.least


@cache
def _purpose(one: Pass) -> str:
    """Return the first sentence of a kernel's file, and of the piece that says what it takes or does."""
    key = one.pipeline
    if one.only_clears:
        return _CLEARS
    if one.params["lookback"] == LEAVES_ALL:
        return _OF_ALL_TILES[key.kernel]
    pieces = [f"slots/{slot}/{piece}" for slot, piece in key.slots if slot in ("function", "slices")]
    of_maxima = ["The running maximum of these sums"] if dict(key.slots).get("element", "").startswith("max") else []
    return ": ".join([*of_maxima, *(_sentence(name) for name in (key.kernel, *pieces))])


def _sentence(name: str) -> str:
    text = (shaders.folder() / f"{name}.wgsl").read_text(encoding="utf-8")
    comment = re.match(r"(?://.*\n)+", text)
    assert comment is not None, f"{name}.wgsl begins with what it is for"
    words = " ".join(line.removeprefix("//").strip() for line in comment[0].splitlines())
    return re.split(r"[.:] ", re.sub("^Slot <.*?>: ", "", words))[0]


def profile_of(name: str) -> Profile:
    """Return the profile of this name.

    Raises
    ------
    ArgumentError, ArrayTypeError
        If there is none.
    """
    return choice(name, "profile", PROFILES)


# As text


def _lines(found: Explanation) -> Iterator[str]:
    axis = "" if found.axis is None else f", axis {found.axis}"
    yield f"{found.operator} of {found.dtype}, shape {'x'.join(map(str, found.shape)) or '()'}{axis}, on {found.device}"
    number = 0
    for _, group in groupby(found.passes, key=lambda one: (one.kernel, one.first_time_only, one.purpose)):
        same = list(group)
        numbers = f"{number + 1}" if len(same) == 1 else f"{number + 1} to {number + len(same)}"
        number += len(same)
        yield ""
        yield f"{numbers}. {same[0].kernel}{', the first time only' if same[0].first_time_only else ''}"
        yield from _of_group(same)
    wanted = "" if found.wanted_bytes is None else f" ({_bytes(found.wanted_bytes)} hide its memory's latency)"
    yield ""
    yield f"traffic       {found.traffic:.3f} of a copy's"
    more = len(found.passes) - found.dispatches
    yield f"dispatches    {found.dispatches}{f', and {more} the first time' if more else ''}"
    yield f"serial links  {found.serial_links}"
    if found.sectors is not None:
        yield f"sectors       {found.sectors:.2f} of the least"
    if found.processor_bytes is not None:
        yield f"in flight     {_bytes(found.processor_bytes)} on each of {found.processors} processors{wanted}"


def _of_group(same: Sequence[ExplainedPass]) -> Iterator[str]:
    one = same[0]
    in_all = "" if len(same) == 1 else " in all"
    yield from _wrapped("   does       ", one.purpose)
    yield from _wrapped("   why        ", one.why)
    workgroups = sum(one.workgroups for one in same)
    yield f"   runs       {workgroups} workgroup{'s' if workgroups > 1 else ''} of {one.lanes} invocations{in_all}"
    read, written = sum(one.bytes_read for one in same), sum(one.bytes_written for one in same)
    yield f"   moves      {_bytes(read)} read, {_bytes(written)} written{in_all}"
    for name, found, least in (
        ("reads", one.read_sectors, one.least_read_sectors),
        ("writes", one.write_sectors, one.least_write_sectors),
    ):
        if found is not None:
            sectors = "sector" if found == 1 else "sectors"
            yield f"   {name:10} {found:.3g} {sectors} of {SECTOR_BYTES} bytes an access, {least:.3g} at least"
    if one.bytes_in_flight:
        yield f"   in flight  {_bytes(max(one.bytes_in_flight for one in same))}"
    yield f"   links      {sum(one.serial_links for one in same)}{in_all}"


def _wrapped(label: str, text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=label, subsequent_indent=" " * len(label))


def _bytes(number: float) -> str:
    for unit, size in _UNITS:
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return counted(round(number), "byte")
