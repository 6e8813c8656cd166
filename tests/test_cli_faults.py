"""Every call that the command line makes for its files fails in turn, with each of many errors."""

from __future__ import annotations

import errno
import os
import re
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dmlgpu.cli import csv_files, operators, records, stream

from .cli_runner import Outcome, Run, one_line, runner
from .faulty_os import ERRORS, FaultyOs, failing, leftovers, patch_os

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")

X = np.arange(1, 6, dtype=np.float32)
TABLE_2 = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
TABLE = "a,b\nx,1.5\ny,2\n"


def new(folder: Path) -> None:
    np.save(folder / "x.npy", X)
    (folder / "x.csv").write_text(TABLE)


def old(folder: Path) -> None:
    new(folder)
    (folder / "y.npy").write_bytes(b"old")
    (folder / "y.csv").write_bytes(b"old")
    (folder / "y.npy").chmod(0o604)
    if os.geteuid() == 0:
        os.chown(folder / "y.npy", 4321, 1234)


def cut(folder: Path) -> None:
    old(folder)
    np.save(folder / "x.npy", TABLE_2)


def others(folder: Path) -> None:
    np.savez(folder / "x.npz", a=X, b=TABLE_2)
    pq.write_table(pa.table({"a": X, "b": ["1", "2", None, "4", "5"]}), folder / "x.parquet")
    (folder / "x.csv").write_text(TABLE)
    (folder / "y.npz").write_bytes(b"old")


def link(folder: Path) -> None:
    new(folder)
    (folder / "there").mkdir()
    (folder / "there" / "z.npy").write_bytes(b"old")
    (folder / "y.npy").symlink_to(Path("there") / "z.npy")


SCENARIOS: Mapping[str, tuple[Callable[[Path], None], str]] = {
    "a new array": (new, "cumsum x.npy -o y.npy"),
    "an old array": (old, "cumsum x.npy -o y.npy"),
    "an array through a link": (link, "cumsum x.npy -o y.npy"),
    "the input": (new, "cumsum x.npy -o x.npy"),
    "a new table": (new, "cumsum x.csv -o y.csv"),
    "an old table": (old, "round x.csv -o y.csv"),
    "no output": (new, "cumsum x.csv"),
    "an array in blocks": (cut, "cumsum x.npy --axis 1 -o y.npy"),
    "an archive by parts": (others, "cumsum x.npz --axis 0 -o y.npz"),
    "a table by parts": (others, "cumsum x.parquet --axis 0 -o y.parquet"),
    "a table of text by parts": (others, "cumsum x.csv --axis 0 -o y.csv"),
    "a table of text by parts, resumed": (others, "round x.csv -o y.csv --resume"),
    "an array in blocks, resumed": (cut, "cumsum x.npy --axis 1 -o y.npy --resume"),
}


HARMLESS = {
    *(("fsync", code) for code in (errno.EINVAL, errno.ENOTSUP)),  # the file system cannot flush
    *(("open", code) for code in (errno.EACCES, errno.EPERM)),  # the folder may be written to, not read
    ("stat", errno.ENOENT),  # there is no old file
    ("open", errno.ENOENT),  # nor one that was not finished
    ("unlink", errno.ENOENT),  # somebody has removed it
}
"""Errors that may mean nothing, by the call."""


def contents(folder: Path) -> dict[str, bytes]:
    return {os.fspath(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def run_with(monkeypatch: pytest.MonkeyPatch, run: Run, command: str, stand_in: FaultyOs) -> Outcome:
    """Run a command with another `os`; files with --axis or --resume go in blocks of a row, each with a record."""
    with monkeypatch.context() as patch:
        patch_os(patch, stand_in)
        patch.setattr(records, "CHECKPOINT_SECONDS", 0.0)
        patch.setattr(stream, "block_elements", lambda *_: 2)
        patch.setattr(csv_files, "_LEAST_BLOCK", 4)
        patch.setattr(csv_files, "_SHARE", 1 << 40)
        patch.setattr(operators, "_is_large", lambda *_: "--axis" in command or "--resume" in command)
        return run(*command.split())


@pytest.mark.combinations
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
def test_every_call_fails_in_turn(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    scenario: str,
    lasting: bool,
) -> None:
    run = runner(capsys)
    prepare, command = SCENARIOS[scenario]
    written, resumed = "-o" in command, "--resume" in command

    def folder(name: str) -> Path:
        made = tmp_path / name
        made.mkdir()
        prepare(made)
        monkeypatch.chdir(made)
        return made

    good = folder("good")
    before = contents(good)
    counting = FaultyOs(lambda *_: None)
    assert run_with(monkeypatch, run, command, counting).status == 0
    after = contents(good)
    assert (after != before) is written
    calls = counting.calls
    assert len(calls) > (20 if written else 5)
    for number in range(len(calls)):
        for code in ERRORS:
            here = folder(f"{number}-{code}")
            descriptors = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
            last = 10**9 if lasting else number
            faulty = FaultyOs(failing(number, last, code))
            status, out, err = run_with(monkeypatch, run, command, faulty)
            call = faulty.calls[number]  # threads take turns in their own way
            what = f"{call} (call {number}) with {os.strerror(code)}"
            found = contents(here)
            left = leftovers(here)
            for path in left:  # only what the message names, because it could not be removed
                assert resumed or path.name in err, what
                del found[os.fspath(path.relative_to(here))]
            assert lasting or not left or call == "unlink" or resumed, what
            # Without a record, or without room for it, there is none, that is all.
            is_record = ("in blocks" in scenario and call in ("lseek", "write")) or (
                "of text by parts" in scenario and call in ("write", "ftruncate")
            )
            if "by parts" in scenario and call == "lseek":
                # zipfile and pyarrow ask whether one can seek, and go on, or say that it is not their file.
                assert (status, out[:5], err) == (0, "wrote", "") or (status, out, found) == (2, "", before), what
            elif status == 0 and ((call, code) in HARMLESS or is_record):
                assert (found, err) == (after, ""), what
            else:
                assert (status, out) == (2, ""), what
                message = "does not let this user give" if call == "fchown" else os.strerror(code)
                assert message in one_line(err) or os.strerror(code) in err, what
                if call == "read" and "by parts" in scenario and not lasting:
                    assert re.match("dmlgpu: error: cannot read (x[.]|a temporary file in )", one_line(err)), what
                is_written = "is written, but may not survive a power failure" in err
                assert found == (after if is_written else before), what
            if descriptors:
                assert len(os.listdir("/proc/self/fd")) == descriptors, what


@pytest.mark.combinations
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("most", [1, 7, 100])
def test_reads_and_writes_of_a_few_bytes_are_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], scenario: str, most: int
) -> None:
    """A system may read and write less than it is asked to."""
    prepare, command = SCENARIOS[scenario]
    results = []
    for stand_in in (FaultyOs(lambda *_: None), FaultyOs(lambda *_: None, most)):
        folder = tmp_path / str(len(results))
        folder.mkdir()
        prepare(folder)
        monkeypatch.chdir(folder)
        assert run_with(monkeypatch, runner(capsys), command, stand_in).status == 0
        results.append(contents(folder))
    assert results[0] == results[1]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_system_that_starts_no_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], scenario: str
) -> None:
    prepare, command = SCENARIOS[scenario]
    prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = contents(tmp_path)
    threads: list[str] = []

    def start(self: threading.Thread) -> None:
        threads.append(self.name)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    status, _, err = run_with(monkeypatch, runner(capsys), command, FaultyOs(lambda *_: None))
    if threads:
        assert status == 2
        assert "the system starts no more threads: " in one_line(err)
        found = contents(tmp_path)
        for path in leftovers(tmp_path):  # what the next run goes on from
            assert "--resume" in command
            del found[os.fspath(path.relative_to(tmp_path))]
        assert found == before
    else:
        assert status == 0


def test_a_parquet_file_without_memory_for_it_is_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    others(tmp_path)
    monkeypatch.chdir(tmp_path)

    def no_room(*_: object, **__: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 64 failed")

    monkeypatch.setattr(pq, "ParquetFile", no_room)
    status, _, err = runner(capsys)("cumsum", "x.parquet")
    assert status == 2
    assert one_line(err) == "dmlgpu: error: not enough memory: malloc of size 64 failed\n"
