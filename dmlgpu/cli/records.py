"""Records of how far a result is done, which lie in its unfinished file behind all that the result can come to."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .console import CommandError
from .raw_files import RawFile, filled, flush_file

__all__ = ["SLOT", "Keeper", "Output", "Record"]

CHECKPOINT_SECONDS = 5.0
"""Between two records of how far the result is safely written."""
SLOT = 1 << 22
"""Bytes from a record to the other one."""

_MAGIC = b"dmlgpu records 1"
_DIGEST_BYTES = 32


@dataclass(frozen=True)
class Record:
    """How far a result is done, and where that is written."""

    offset: int
    content: bytes


class Output:
    """A file that is written, in any order if one can seek in it.

    Parameters
    ----------
    file : file
        Where to write.
    head : bytes, optional
        What is written now; offsets count from its end.
    waits : bool, optional
        Whether what is being written ends by itself, as on a disk, and not as in a pipe.
    """

    def __init__(self, file: Any, head: bytes = b"", *, waits: bool = True) -> None:
        self.waits = waits
        if head:
            file.write(head)
        self._file, self._start = file, len(head)
        self._position = len(head) or -1  # where the file is, if that is known

    def write(self, offset: int, data: memoryview) -> None:
        """Write bytes at their place."""
        if self._start + offset != self._position:
            self._file.seek(self._start + offset)
        self._file.write(data)
        self._position = self._start + offset + len(data)

    def keep(self, record: Record) -> None:
        """Have all that was written on the disk, and then a record of it."""
        flush_file(self._file)
        self._position = -1
        with suppress(OSError):  # as where the disk has room for the result, and for nothing else
            self._file.seek(record.offset)
            self._file.write(record.content)
        flush_file(self._file)


class Keeper:
    """Makes records of how far a result is done, and finds the last one.

    A record is written once all that it tells of is on the disk, and never over the one before it.

    Parameters
    ----------
    fingerprint : mapping
        What must be the same for a process that goes on: the input, the output and the options.
    end : int
        Where the first of the two records lies in the unfinished file.
    """

    def __init__(self, fingerprint: Mapping[str, Any], end: int) -> None:
        self._fingerprint = json.loads(json.dumps(fingerprint))
        self._end, self._number = end, 0
        self._next = time.monotonic() + CHECKPOINT_SECONDS

    def is_due(self) -> bool:
        """Whether it is time for a record; then the next one is not due for a while."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + CHECKPOINT_SECONDS
        return True

    def record(self, place: Mapping[str, Any], state: bytes) -> Record | None:
        """Return a record of a place and the state of scans there; None if it has no room."""
        self._number += 1
        told = {"number": self._number, "place": place, "state": len(state), **self._fingerprint}
        body = json.dumps(told).encode() + b"\n" + state
        content = _MAGIC + len(body).to_bytes(8, "little") + body
        if len(content) + _DIGEST_BYTES > SLOT:
            return None
        return Record(self._end + self._number % 2 * SLOT, content + hashlib.sha256(content).digest())

    def last(self, target: Path, file: RawFile, end: int) -> tuple[dict[str, Any], bytes] | None:
        """Return the place and the state of the last record of an unfinished file, whose records lie there; or None.

        Raises
        ------
        CommandError
            If it is of another input or of other options.
        """
        found = []
        for slot in range(2):
            file.seek(end + slot * SLOT)
            found += _unpacked(file)
        if not found:
            return None
        told, state = max(found, key=lambda one: int(one[0]["number"]))
        self._check(target, told)
        self._number = told["number"]
        return told["place"], state

    def _check(self, target: Path, told: Mapping[str, Any]) -> None:
        for name, value in self._fingerprint["options"].items():
            before = told["options"].get(name)
            if before != value:
                raise CommandError(
                    f"--resume cannot go on with {target}: what is there of it was made with {name} {before}, and this "
                    f"run has {name} {value}; give the same options, or leave --resume out to start again"
                )
        if told["input"] != self._fingerprint["input"] or told["output"] != self._fingerprint["output"]:
            raise CommandError(
                f"--resume cannot go on with {target}: its input has changed since; leave --resume out to start again"
            )


def _unpacked(file: RawFile) -> list[tuple[dict[str, Any], bytes]]:
    """Return the record at a file's position, or none."""
    content = bytearray(SLOT)
    filled(file, memoryview(content))
    head = len(_MAGIC) + 8
    end = head + int.from_bytes(content[len(_MAGIC) : head], "little")
    digest = bytes(content[end : end + _DIGEST_BYTES])
    if not content.startswith(_MAGIC) or hashlib.sha256(content[:end]).digest() != digest:
        return []
    told, _, state = bytes(content[head:end]).partition(b"\n")
    return [(json.loads(told), state)]
