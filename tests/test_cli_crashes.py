"""Signals at every call for a file, and full disks at every byte: the old file or the new one, never less."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from .cli_runner import environment, process
from .faulty_os import leftovers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals")

if sys.platform != "win32":
    from dmlgpu.cli.signals import SIGNALS
else:
    SIGNALS = ()

ROOT = Path(__file__).resolve().parents[1]
EVERY_POINT = os.environ.get("DMLGPU_TEST_FAULTS") == "all"
X = np.arange(1, 6, dtype=np.int64)

ARRAY = ["cumsum", "x.npy", "-o", "y.npy"]
TABLE = ["cumsum", "x.csv", "-o", "y.csv"]
BLOCKS = ["round", "x.npy", "--memory", "1MiB", "-o", "y.npy"]
TABLE_BLOCKS = ["round", "x.csv", "--memory", "1MiB", "-o", "y.csv"]
COMMANDS = {
    "a new array": (ARRAY, None),
    "an old array": (ARRAY, b"old"),
    "an old table": (TABLE, b"old"),
    "an array in blocks": (BLOCKS, b"old"),
    "a table in blocks": (TABLE_BLOCKS, b"old"),
}


PERCENTS = {"an array in blocks": (40, 80, 100), "a table in blocks": (20, 40, 60, 80, 100)}
"""How much of them can be done when a run is killed."""


class Ending(NamedTuple):
    """How a child ended, and what it left."""

    status: int
    """The exit status; a signal's number, negative, if it died of that."""
    out: str
    err: str
    output: bytes | None
    left: list[Path]
    calls: list[str]
    folder: Path


class Nursery:
    """Runs the command line in children of one process (`crash_nursery`)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash_nursery"],
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        assert self._process.wait(60) == 0

    def run(self, command: list[str], old: bytes | None, **order: Any) -> Ending:
        """Run a command in a folder with input files, and perhaps an old output."""
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        np.save(folder / "x.npy", X)
        (folder / "x.csv").write_text("a\n1\n2\n3\n4\n5\n")
        output = folder / command[-1]
        if old is not None:
            output.write_bytes(old)
            output.chmod(0o604)
        return self.run_in(folder, command, **order)

    def run_in(self, folder: Path, command: list[str], **order: Any) -> Ending:
        """Run a command in a folder as it is."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        output = folder / command[-1]
        print(
            json.dumps(order | {"folder": os.fspath(folder), "command": command}), file=self._process.stdin, flush=True
        )
        status = json.loads(self._process.stdout.readline())
        streams = [Path(f"{folder}.{number}").read_text() for number in (1, 2)]
        calls = Path(f"{folder}.calls")
        return Ending(
            status,
            *streams,
            output.read_bytes() if output.exists() else None,
            leftovers(folder),
            json.loads(calls.read_text()) if calls.exists() else [],
            folder,
        )


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    made = Nursery(tmp_path_factory.mktemp("nursery"))
    yield made
    made.close()


def points() -> list[tuple[str, int, bool]]:
    """Return commands, signals, and whether these go on; all of them, or a sample."""
    usual, rare = ("SIGINT", "SIGTERM"), ("SIGHUP", "SIGXCPU")
    return [
        (what, int(number), lasting)
        for what in COMMANDS
        for number in SIGNALS
        for lasting in (False, True)
        if EVERY_POINT
        or (number.name in usual and not lasting)
        or (number.name in (*usual, *rare) and what == "an old array")
    ]


def name_of(value: object) -> str:
    if isinstance(value, bool):
        return "from then on" if value else "once"
    return signal.Signals(value).name if isinstance(value, int) else str(value)


@pytest.mark.combinations
@pytest.mark.parametrize(("what", "number", "lasting"), points(), ids=name_of)
def test_a_signal_at_every_call(nursery: Nursery, what: str, number: int, lasting: bool) -> None:
    command, old = COMMANDS[what]
    good = nursery.run(command, old, most=100)
    assert (good.status, good.err, good.left) == (0, "", [])
    assert good.output not in (None, old)
    seen = set()
    for at, call in enumerate(good.calls):
        # After a call is nearly before the next one.
        for after in (False, True) if EVERY_POINT or at == len(good.calls) - 1 else (False,):
            ending = nursery.run(command, old, most=100, signals=[number], at=at, after=after, lasting=lasting)
            moment = f"{name_of(number)} {'after' if after else 'before'} {call} (call {at}): {ending}"
            assert ending.status == -number, moment
            assert ending.output in (old, good.output), moment
            assert ending.left == [], moment
            # A second one, while the first is dealt with, ends the process at once.
            said = "dmlgpu: error: interrupted\n"
            assert ending.err in ({said, ""} if lasting else {said}) if number == signal.SIGINT else not ending.err, (
                moment
            )
            assert not ending.out, moment
            seen.add(ending.output)
    assert seen == {old, good.output}


@pytest.mark.combinations
@pytest.mark.parametrize("what", COMMANDS)
def test_a_kill_at_every_call(nursery: Nursery, what: str) -> None:
    """SIGKILL leaves no time to remove the temporary file, which is all that it may leave."""
    command, old = COMMANDS[what]
    good = nursery.run(command, old, most=10)
    seen = set()
    for at, call in enumerate(good.calls):
        # After a call is nearly before the next one.
        for after in (False, True) if EVERY_POINT or at == len(good.calls) - 1 else (False,):
            ending = nursery.run(command, old, most=10, signals=[signal.SIGKILL], at=at, after=after)
            moment = f"{'after' if after else 'before'} {call} (call {at}): {ending}"
            assert ending.status == -signal.SIGKILL, moment
            assert ending.output in (old, good.output), moment
            assert len(ending.left) <= 1, moment
            seen.add(ending.output)
    assert seen == {old, good.output}


@pytest.mark.combinations
@pytest.mark.parametrize("what", ["an array in blocks", "a table in blocks"])
def test_a_run_that_is_killed_at_any_call_goes_on(nursery: Nursery, what: str) -> None:
    """Whatever the first run has left, the second one ends with the bytes of one that was not killed."""
    command, old = COMMANDS[what]
    command = [*command[:-2], "--resume", *command[-2:]]
    good = nursery.run(command, old)
    assert (good.status, good.left) == (0, [])
    named = good.calls.index("fsencode")  # what is left before has a name that no other run finds
    notes = set()
    for at, call in enumerate(good.calls):
        killed = nursery.run(command, old, signals=[signal.SIGKILL], at=at)
        ending = nursery.run_in(killed.folder, command)
        moment = f"before {call} (call {at}): {ending}"
        assert (ending.status, ending.output) == (0, good.output), moment
        assert ending.left == (killed.left if at < named else []), moment
        notes.add(ending.err)
    said = [f"dmlgpu: note: going on after {percent} % of {command[1]}\n" for percent in PERCENTS[what]]
    assert notes == {"", *said}


@pytest.mark.combinations
@pytest.mark.parametrize("what", COMMANDS)
def test_two_different_signals(nursery: Nursery, what: str) -> None:
    """An interrupt and the impatient signal after it."""
    command, old = COMMANDS[what]
    good = nursery.run(command, old)
    for at, call in enumerate(good.calls):
        ending = nursery.run(command, old, signals=[signal.SIGINT, signal.SIGTERM], at=at, lasting=True)
        assert ending.status in (-signal.SIGINT, -signal.SIGTERM), call
        assert ending.output in (old, good.output), call
        assert (ending.left, ending.out) == ([], ""), call
        assert "Traceback" not in ending.err, call


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM] if SIGNALS else [], ids=name_of)
def test_an_ignored_signal_stays_ignored(nursery: Nursery, number: int) -> None:
    """As under nohup."""
    good = nursery.run(ARRAY, b"old")
    for at in range(len(good.calls)):
        ending = nursery.run(ARRAY, b"old", signals=[number], ignored=number, at=at)
        assert (ending.status, ending.err, ending.left) == (0, "", [])
        assert ending.output == good.output


@pytest.mark.parametrize("what", COMMANDS)
def test_a_disk_that_is_full_at_every_byte(nursery: Nursery, what: str) -> None:
    """A limit of the process on files' lengths stands for the disk: the system itself refuses the write."""
    command, old = COMMANDS[what]
    good = nursery.run(command, old)
    assert good.output is not None
    length = len(good.output)
    every = range(length + 1) if EVERY_POINT or length < 40 else [0, 1, 64, 127, 128, 129, length - 1, length]
    for largest in every:
        ending = nursery.run(command, old, largest=largest)
        if largest >= length:
            assert (ending.status, ending.output) == (0, good.output)
            continue
        name = command[-1]
        assert (ending.status, ending.output, ending.left, ending.out) == (2, old, [], "")
        assert ending.err == f"dmlgpu: error: cannot write {name}: File too large\n"


HIT = """
import os, signal, sys
from dmlgpu.cli import main, operators
number, moment = int(sys.argv.pop(1)), sys.argv.pop(1)
real = getattr(operators, moment)
def hit(*arguments):
    result = real(*arguments)
    os.kill(os.getpid(), number)
    return result
setattr(operators, moment, hit)
sys.exit(main())
"""


@pytest.mark.parametrize("moment", ["read_npy", "_operator", "write_npy"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL] if SIGNALS else [], ids=name_of)
def test_a_whole_process(tmp_path: Path, number: int, moment: str) -> None:
    """With a device: before it is opened, after that, and when the result is written but not yet in its place."""
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "y.npy").write_bytes(b"old")
    done = subprocess.run(
        [sys.executable, "-c", HIT, str(number), moment, *ARRAY],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == -number
    assert (tmp_path / "y.npy").read_bytes() == b"old"
    assert done.stdout == ""
    assert done.stderr == ("dmlgpu: error: interrupted\n" if number == signal.SIGINT else "")
    assert len(leftovers(tmp_path)) == (number == signal.SIGKILL and moment == "write_npy")


def test_callers_see_statuses_and_no_signals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`main` with arguments is a function in somebody's process, which it does not end."""
    from dmlgpu.cli import main, operators

    np.save(tmp_path / "x.npy", X)
    monkeypatch.chdir(tmp_path)

    def interrupt(path: Path, memory: int | None) -> Any:
        raise KeyboardInterrupt

    handlers: list[Callable[..., Any] | int | None] = [signal.getsignal(number) for number in SIGNALS]
    assert main(ARRAY) == 0
    monkeypatch.setattr(operators, "read_npy", interrupt)
    assert main(ARRAY) == 130
    assert [signal.getsignal(number) for number in SIGNALS] == handlers
    assert capsys.readouterr().err.endswith("dmlgpu: error: interrupted\n")


IMPATIENT = """
import os, signal, sys
import dmlgpu.cli
from dmlgpu.cli import main, operators
def interrupt(*arguments):
    os.kill(os.getpid(), signal.SIGINT)
operators.read_npy = interrupt
dmlgpu.cli.complain = interrupt
sys.exit(main())
"""


def test_a_second_interrupt_ends_a_process_silently(tmp_path: Path) -> None:
    """While the first one is reported."""
    np.save(tmp_path / "x.npy", X)
    status, out, err = process(*ARRAY, folder=tmp_path, code=("-c", IMPATIENT))
    assert (status, out, err) == (-signal.SIGINT, "", "")
