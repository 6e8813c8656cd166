"""Files of digests: the results of a device, to compare with those of devices that are elsewhere."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from ..errors import ArgumentError

__all__ = ["FORMAT_VERSION", "REFERENCE", "Digests", "Disagreement", "compare"]

FORMAT = "dmlgpu digests"
FORMAT_VERSION = 2
REFERENCE = "the reference (NumPy)"
"""The device's name in the reference's own file."""

_LARGEST_FILE = 64 * 2**20
_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Digests:
    """The results of the cases on a device.

    Attributes
    ----------
    dmlgpu : str
        The version that computed them.
    device : str
        The adapter's summary, or `REFERENCE`.
    driver : str
        Its driver, as it names itself, and the implementation of WebGPU above it.
    digests : mapping of str to str
        The SHA-256 of each case's result (`dmlgpu.conformance.digest`), by the case's name, without cases that meet a
        subnormal number.
    differences : mapping of str to str
        Cases whose results are not the reference's, each with the first element that differs, or with an error.
    """

    dmlgpu: str
    device: str
    driver: str
    digests: Mapping[str, str]
    differences: Mapping[str, str] = field(default_factory=dict)

    def write(self, file: IO[bytes]) -> None:
        """Write to an open file."""
        content = {"format": FORMAT, "version": FORMAT_VERSION, **asdict(self)}
        text = json.dumps(content | {"checksum": _checksum(content)}, indent=1)
        file.write(text.encode() + b"\n")

    @classmethod
    def read(cls, path: Path) -> Digests:
        """Read a file.

        Raises
        ------
        ArgumentError
            If it is not a file of digests, of another version of the format, or damaged.
        OSError
            If it cannot be read.
        """
        with path.open("rb") as file:
            text = file.read(_LARGEST_FILE + 1)
        again = "write it again with 'dmlgpu verify --digest'"
        try:
            if len(text) > _LARGEST_FILE:
                raise ValueError
            content = json.loads(text)
        except (ValueError, RecursionError):  # also what is not UTF-8
            raise ArgumentError(f"{path} is damaged, or no file of digests: it is not JSON; {again}") from None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ArgumentError(f"{path} is not a file of digests, which 'dmlgpu verify --digest' writes")
        if content.get("version") != FORMAT_VERSION:
            raise ArgumentError(
                f"{path} has version {content.get('version')!r} of the format, and this dmlgpu reads version "
                f"{FORMAT_VERSION}: {again}"
            )
        if content.pop("checksum", None) != _checksum(content):
            raise ArgumentError(f"{path} is damaged: its content does not fit its checksum; {again}")
        del content["format"], content["version"]
        return cls._of(content, path)

    @classmethod
    def _of(cls, content: dict[str, Any], path: Path) -> Digests:
        try:
            made = cls(**content)
            texts = [made.dmlgpu, made.device, made.driver]
            for mapping in (made.digests, made.differences):
                texts += [*mapping.keys(), *mapping.values()]
            if not all(isinstance(text, str) for text in texts):
                raise ValueError
            if not all(map(_DIGEST.fullmatch, made.digests.values())):
                raise ValueError
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ArgumentError(f"{path} is no file of digests that 'dmlgpu verify --digest' wrote") from None
        return made


@dataclass(frozen=True)
class Disagreement:
    """A case that files do not agree on.

    Attributes
    ----------
    case : str
        Its name.
    groups : mapping of str or None to list of int
        The positions of the files that have the same digest; None for those that have none.
    """

    case: str
    groups: Mapping[str | None, list[int]]


def compare(files: Sequence[Digests]) -> list[Disagreement]:
    """Return the cases on which digests differ, or which are not in all files."""
    names = dict.fromkeys(name for one in files for name in one.digests)
    found = []
    for name in names:
        groups: dict[str | None, list[int]] = {}
        for position, one in enumerate(files):
            groups.setdefault(one.digests.get(name), []).append(position)
        if len(groups) > 1:
            found.append(Disagreement(name, groups))
    return found


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
