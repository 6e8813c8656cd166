"""A run on a large .csv file that ended early goes on from its last record, and ends with the same bytes."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dmlgpu
from dmlgpu.cli import operators, records

from .cli_runner import Run, one_line, runner
from .faulty_os import leftovers
from .test_cli_large import TABLES_OF_TEXT, csv_of, killed

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals, and removes no open files")

CONTENT = csv_of(30_000, {"a": lambda i: i, "b": lambda i: i / 7, "who": lambda i: f"n{i}"})
SCAN = ("cumsum", "x.csv", "-o", "y.csv", "--memory", "1MiB")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run commands in a folder with a table."""
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_bytes(CONTENT)
    return runner(capsys)


def in_memory(run: Run, *command: str) -> bytes:
    """Return the result of a command that reads its table whole."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operators, "_is_large", lambda *_: False)
        assert run(*command).status == 0
    content = Path("y.csv").read_bytes()
    Path("y.csv").unlink()
    return content


def stopped(run: Run, at: int, *command: str) -> Path:
    """Run a command that fails right after its so many-th record; return what it leaves."""
    real, made = records.Output.keep, []

    def keep(output: records.Output, record: records.Record) -> None:
        real(output, record)
        made.append(record)
        if len(made) == at:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "CHECKPOINT_SECONDS", 0.0)
        patch.setattr(records.Output, "keep", keep)
        status, out, err = run(*command, "--resume")
    assert (status, out) == (2, "")
    assert err == "dmlgpu: error: cannot write y.csv: Input/output error\n"
    (left,) = leftovers(Path())
    return left


def percent(err: str) -> int:
    """Return how much a run found done, which is all that it says."""
    found = re.fullmatch(r"dmlgpu: note: going on after (\d+) % of x\.csv\n", err)
    assert found is not None, err
    return int(found[1])


@pytest.mark.combinations
@pytest.mark.parametrize("at", [1, 3])
@pytest.mark.parametrize("case", TABLES_OF_TEXT)
def test_every_kind_of_table_goes_on(run: Run, device: dmlgpu.Device, case: str, at: int) -> None:
    content, options = TABLES_OF_TEXT[case]
    Path("x.csv").write_bytes(content)
    command = (*SCAN[:-1], "1MiB", *options)
    expected = in_memory(run, *command)
    stopped(run, at, *command)
    status, out, err = run(*SCAN[:-1], "3MiB", *options, "--resume")
    assert (status, leftovers(Path())) == (0, [])
    assert f"of x.csv, {30_000 + ('--include-initial' in options)} rows of " in out
    assert 100 * 4096 // 30_000 <= percent(err) < 100
    assert Path("y.csv").read_bytes() == expected


@pytest.mark.parametrize(
    "command",
    [
        ("round", "x.csv", "-o", "y.csv", "--columns", "b", "--memory", "1MiB"),
        (*SCAN, "--exclusive", "--header", "yes"),
        (*SCAN, "--monotone", "--dtype", "float64"),
        ("cumprod", *SCAN[1:], "--dtype", "float32"),
    ],
    ids=" ".join,
)
def test_every_operator_goes_on(run: Run, device: dmlgpu.Device, command: tuple[str, ...]) -> None:
    expected = in_memory(run, *command)
    stopped(run, 5, *command)
    assert 0 < percent(run(*command, "--resume").err) < 100
    assert Path("y.csv").read_bytes() == expected


@pytest.mark.parametrize("at", [1, 37])
def test_a_killed_run_goes_on(run: Run, device: dmlgpu.Device, at: int) -> None:
    """What is there is not written again; of several runs that are killed each goes on where the last one was."""
    expected = in_memory(run, *SCAN)
    killed(Path(), *SCAN, at=at)
    (left,) = leftovers(Path())
    row = expected.splitlines()[1]
    with left.open("r+b") as file:
        assert file.read(len(expected.splitlines()[0]) + 1 + len(row)).endswith(row)
        file.seek(-2, os.SEEK_CUR)
        file.write(b"XY")  # a cell of the first row
    killed(Path(), *SCAN, "--resume", at=2)
    before = percent(run(*SCAN, "--resume").err)
    assert before >= 100 * 4096 // 30_000
    assert Path("y.csv").read_bytes() == expected.replace(row, row[:-2] + b"XY", 1)
    assert leftovers(Path()) == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_what_is_done_stays_after_a_signal_if_it_is_to_be_resumed(
    run: Run, device: dmlgpu.Device, how: signal.Signals
) -> None:
    expected = in_memory(run, *SCAN)
    Path("y.csv").write_bytes(b"old")
    killed(Path(), *SCAN, at=3, how=how)
    assert leftovers(Path()) == []
    killed(Path(), *SCAN, "--resume", at=3, how=how)
    assert len(leftovers(Path())) == 1
    assert Path("y.csv").read_bytes() == b"old"
    assert percent(run(*SCAN, "--resume").err) > 0
    assert Path("y.csv").read_bytes() == expected


@pytest.mark.parametrize("torn", ["the last record", "both records", "the room for records"])
def test_what_was_not_safely_written_is_done_again(run: Run, device: dmlgpu.Device, torn: str) -> None:
    expected = in_memory(run, *SCAN)
    left = stopped(run, 12, *SCAN)
    slots = left.stat().st_size - 2 * records.SLOT
    places = {"the last record": [0], "both records": [0, records.SLOT]}.get(torn, [])
    with left.open("r+b") as file:
        for place in places:
            file.seek(slots + place + 100)
            file.write(b"\0\0")
        if not places:
            file.truncate(slots)
    status, _, err = run(*SCAN, "--resume")
    assert status == 0
    if torn == "the last record":
        assert percent(err) > 0
    else:
        assert err == ""
    assert Path("y.csv").read_bytes() == expected


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--exclusive"], "was made with exclusive False, and this run has exclusive True"),
        (["--columns", "a"], "was made with columns None, and this run has columns ['a']"),
        (["--missing", "0"], "was made with missing None, and this run has missing 0"),
        (["--header", "yes"], "was made with header auto, and this run has header yes"),
        (["--include-initial"], "was made with include_initial False, and this run has"),
    ],
)
def test_other_options_are_refused(run: Run, device: dmlgpu.Device, options: list[str], said: str) -> None:
    expected = in_memory(run, *SCAN)
    stopped(run, 4, *SCAN)
    status, out, err = run(*SCAN, *options, "--resume")
    assert (status, out) == (2, "")
    assert said in one_line(err)
    assert "give the same options, or leave --resume out to start again" in err
    assert run(*SCAN, "--resume").status == 0  # nothing is lost
    assert Path("y.csv").read_bytes() == expected


@pytest.mark.parametrize("change", ["time", "size", "type"])
def test_a_changed_input_is_refused(run: Run, device: dmlgpu.Device, change: str) -> None:
    stopped(run, 4, *SCAN)
    changed = {"time": CONTENT, "size": CONTENT + b"7,7,n7\n", "type": CONTENT.replace(b"\n0,", b"\n0.,", 1)}
    Path("x.csv").write_bytes(changed[change])
    os.utime("x.csv", (1, 1))
    status, out, err = run(*SCAN, "--resume")
    assert (status, out) == (2, "")
    assert "its input has changed since; leave --resume out to start again" in one_line(err)
    assert len(leftovers(Path())) == 1
    assert run(*SCAN).status == 0  # from the start
    assert leftovers(Path()) == []


@pytest.mark.parametrize(("before", "after"), [(b"\n1,", b"\n2,"), (b",n29999\n", b",n29998\n")])
def test_another_input_of_the_same_size_and_time_is_refused(
    run: Run, device: dmlgpu.Device, before: bytes, after: bytes
) -> None:
    stopped(run, 4, *SCAN)
    status = os.stat("x.csv")
    Path("x.csv").write_bytes(CONTENT.replace(before, after, 1))
    os.utime("x.csv", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert os.stat("x.csv").st_size == status.st_size
    assert "its input has changed since; leave --resume out" in one_line(run(*SCAN, "--resume").err)
    Path("x.csv").write_bytes(CONTENT)
    os.utime("x.csv", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert percent(run(*SCAN, "--resume").err) > 0


def test_another_treatment_of_subnormal_numbers_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped(run, 4, *SCAN)
    monkeypatch.setattr(dmlgpu.Device, "subnormals", lambda self: {"sum": None})
    assert "made with subnormals {'sum': " in one_line(run(*SCAN, "--resume").err)


def test_nothing_to_go_on_from_is_a_start(run: Run, device: dmlgpu.Device) -> None:
    expected = in_memory(run, *SCAN)
    assert run(*SCAN, "--resume")[::2] == (0, "")
    assert Path("y.csv").read_bytes() == expected


def test_the_room_for_records_takes_none(run: Run, device: dmlgpu.Device) -> None:
    """The unfinished file has a hole between the text and the records, which lie behind all that the text can be."""
    left = stopped(run, 30, *SCAN)
    status = left.stat()
    assert status.st_size - 2 * records.SLOT >= 2 * len(CONTENT)
    assert status.st_blocks * 512 < 4 * len(CONTENT)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            "cumsum x.csv -o y.parquet",
            "--resume goes on with a .npy or .csv file that is made of another one: give both",
        ),
        ("cumsum x.csv -o -", "--resume goes on with a .npy or .csv file that is made of another"),
        (
            "cumsum x.parquet -o y.parquet",
            ".npz and .parquet files end in a directory of what they hold, without which",
        ),
        (
            "cumsum x.npz -o y.npz",
            ".npz and .parquet files end in a directory of what they hold, without which no part",
        ),
        (
            "cumsum x.csv -o y.csv --reverse",
            "--resume goes on with what is made block by block, and x.csv is read whole",
        ),
        ("cumsum x.csv -o y.csv --axis 1", "and x.csv is read whole along axis 1"),
    ],
)
def test_what_cannot_be_gone_on_with(run: Run, command: str, said: str) -> None:
    np.savez("x.npz", x=np.arange(3))
    pq.write_table(pa.table({"a": [1, 2]}), "x.parquet")
    status, out, err = run(*command.split(), "--resume")
    assert (status, out) == (2, "")
    assert said in one_line(err)
    assert leftovers(Path()) == []
