"""Every command in every state of its streams: one sentence where it can be read, the right status, no traceback."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import IO, NamedTuple

import numpy as np
import pytest

from dmlgpu.cli import console, main

from .cli_runner import environment

CASE = "round.float16.half_even.4097.packed-to-packed.plain"

COMMANDS = {
    "help": ("--help", 0),
    "version": ("--version", 0),
    "list": ("bench --list --quick", 0),
    "info": ("info", 0),
    "summary": ("cumsum x.npy", 0),
    "result": ("cumsum x.npy -o y.npy", 0),
    "table": ("round x.csv -o y.csv", 0),
    "verify": (f"verify --case {CASE}", 0),
    "usage": ("cumsum x.npy --frob", 2),
    "missing": ("cumsum gone.npy", 2),
}
"""The command lines by what they do, each with the status that it has where all streams are well."""

WRITTEN = {"result": "y.npy", "table": "y.csv"}

QUICK = ("help", "list", "result", "usage")
"""The commands that the sample has in every state; the others are there where standard output is not well."""

EVERY_POINT = os.environ.get("DMLGPU_TEST_FAULTS") == "all"

STATES = {
    "stdin": ("closed", "broken"),
    "stdout": ("closed", "full", "broken"),
    "stderr": ("closed", "full", "broken"),
}


class Streams(NamedTuple):
    """The states of the streams: "well", or one of `STATES`."""

    stdin: str = "well"
    stdout: str = "well"
    stderr: str = "well"


def states() -> list[Streams]:
    """Return every combination of states, or a sample: each alone, and the same one twice or thrice."""
    if EVERY_POINT:
        return [Streams(*chosen) for chosen in product(*(("well", *states) for states in STATES.values()))]
    single = [Streams(**{stream: state}) for stream, states in STATES.items() for state in states]
    twice = [Streams("well", state, state) for state in STATES["stdout"]]
    return [Streams(), *single, *twice, Streams("closed", "closed", "closed")]


def cases() -> list[tuple[str, Streams]]:
    return [
        (name, streams)
        for name in COMMANDS
        for streams in states()
        if EVERY_POINT or name in QUICK or (streams.stdout in ("full", "broken") and streams.stderr == "well")
    ]


@contextmanager
def opened(state: str, path: Path, *, reads: bool = False) -> Iterator[int | None]:
    """Open a stream in a state; None stands for closed."""
    if state == "closed":
        yield None
        return
    if state == "broken":
        ends = os.pipe()
        os.close(ends[reads])
        descriptor = ends[not reads]
    else:
        name = {"full": "/dev/full", "well": os.devnull if reads else os.fspath(path)}[state]
        descriptor = os.open(name, os.O_RDONLY if reads else os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def run(arguments: str, streams: Streams, folder: Path, unbuffered: bool) -> tuple[int, str, str]:
    """Run the command line in a process of its own; return its status, and what it wrote where all is well."""
    outside = folder.parent / f"{folder.name}-streams"
    outside.mkdir(exist_ok=True)
    paths = [outside / name for name in ("in", "out", "err")]
    for path in paths:
        path.write_bytes(b"")
    with (
        opened(streams.stdin, paths[0], reads=True) as stdin,
        opened(streams.stdout, paths[1]) as stdout,
        opened(streams.stderr, paths[2]) as stderr,
    ):
        # A shell opens and closes the streams, because subprocess cannot start a process without one.
        redirections = " ".join(
            f"{number}{'<' if number == 0 else '>'}&{'-' if descriptor is None else descriptor}"
            for number, descriptor in enumerate((stdin, stdout, stderr))
        )
        command = f'exec "$0" -m dmlgpu {arguments} {redirections}'
        done = subprocess.run(
            ["/bin/bash", "-c", command, sys.executable],
            cwd=folder,
            env=environment() | ({"PYTHONUNBUFFERED": "1"} if unbuffered else {}),
            pass_fds=[descriptor for descriptor in (stdin, stdout, stderr) if descriptor is not None],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=300,
        )
    return done.returncode, paths[1].read_text(), paths[2].read_text()


@pytest.mark.combinations
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other streams, and no /dev/full")
@pytest.mark.parametrize(
    ("name", "streams"), cases(), ids=lambda value: "-".join(value) if value in states() else value
)
def test_every_command_in_every_state(tmp_path: Path, name: str, streams: Streams) -> None:
    if "full" in streams and sys.platform == "darwin":
        pytest.skip("macOS has no /dev/full")
    np.save(tmp_path / "x.npy", np.arange(3, dtype=np.float32))
    (tmp_path / "x.csv").write_text("a\n1.5\n")
    arguments, well = COMMANDS[name]
    before = set(os.listdir(tmp_path))
    # Python then writes at once, and where it does, argparse and others hide that they could not.
    unbuffered = len(name) % 2 == 0
    status, out, err = run(arguments, streams, tmp_path, unbuffered)
    errors = [line for line in err.splitlines() if not line.startswith(("dmlgpu: note: ", "dmlgpu: warning: "))]
    assert not any("Traceback" in text or "Exception ignored" in text for text in (out, err))
    assert not any(line.startswith("dmlgpu: ") for line in out.splitlines()), "an error was written to standard output"
    if streams.stdout == "closed":
        expected, message = 2, "standard output is closed"
    elif streams.stdout == "full" and well == 0:
        expected, message = 2, "cannot write to standard output: No space left on device"
    elif streams.stdout == "broken" and well == 0:
        expected, message = -signal.SIGPIPE, ""
    else:
        expected, message = well, "dmlgpu: error: " if well else ""
    assert status == expected
    if streams.stderr == "well":
        assert len(errors) == bool(message)
        assert not message or message in errors[0]
    if streams.stdout == "well" and well == 0:
        assert out
    else:
        assert not out
    # What is written before standard output turns out to be no good is whole.
    written = {WRITTEN[name]} if name in WRITTEN and streams.stdout != "closed" else set()
    assert set(os.listdir(tmp_path)) == before | written


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other streams")
def test_a_result_never_gets_what_a_library_prints(tmp_path: Path) -> None:
    """A file that is opened where a standard stream is missing would have the stream's number."""
    np.save(tmp_path / "x.npy", np.arange(3, dtype=np.float32))
    code = (
        "import os, sys; from dmlgpu.cli import main, npy_files; write = npy_files.write_npy\n"
        "def chatty(file, array):\n"
        "    write(file, array)\n"
        "    for stream in (1, 2):\n"
        "        try: os.write(stream, b'a driver says')\n"
        "        except OSError: pass\n"
        "from dmlgpu.cli import operators; operators.write_npy = chatty\n"
        "sys.exit(main(['cumsum', 'x.npy', '-o', 'y.npy']))"
    )
    command = 'exec "$0" -c "$1" 2>&- <&-'
    with (tmp_path / "out").open("wb") as out:
        done = subprocess.run(
            ["/bin/bash", "-c", command, sys.executable, code], cwd=tmp_path, env=environment(), stdout=out, check=False
        )
    assert done.returncode == 0
    assert np.load(tmp_path / "y.npy").tolist() == [0, 1, 3]
    assert (tmp_path / "y.npy").stat().st_size == 128 + 12


class Closed:
    """A stream that fails in a way of its own."""

    encoding = "utf-8"

    def __init__(self, error: OSError) -> None:
        self.error = error

    def write(self, text: str) -> int:
        raise self.error

    def flush(self) -> None:
        raise self.error

    def fileno(self) -> int:
        raise OSError("it has no number")


@pytest.mark.parametrize("code", ["EIO", "EAGAIN", "EFBIG", "ENOSPC"])
def test_every_error_of_standard_output_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: str
) -> None:
    number = getattr(errno, code)
    broken: IO[str] = Closed(OSError(number, os.strerror(number)))  # type: ignore[assignment]
    monkeypatch.setattr(sys, "stdout", broken)
    assert main(["--version"]) == 2
    assert capsys.readouterr().err == f"dmlgpu: error: cannot write to standard output: {os.strerror(number)}\n"


@pytest.mark.parametrize("name", ["posix", "nt"])
@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_windows_calls_a_pipe_without_a_reader_an_invalid_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str, name: str
) -> None:
    class Broken(Closed):
        def fileno(self) -> int:
            return number

    read, number = os.pipe() if kind == "pipe" else (None, os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT))
    try:
        broken: IO[str] = Broken(OSError(errno.EINVAL, os.strerror(errno.EINVAL)))  # type: ignore[assignment]
        monkeypatch.setattr(sys, "stdout", broken)
        monkeypatch.setattr(console, "os", SimpleNamespace(**vars(os) | {"name": name}))
        status = main(["--version"])
    finally:
        for descriptor in filter(None, (read, number)):
            os.close(descriptor)
    err = capsys.readouterr().err
    if (kind, name) == ("pipe", "nt"):
        assert (status, err) == (128 + 13, "")
    else:
        assert (status, err) == (2, f"dmlgpu: error: cannot write to standard output: {os.strerror(errno.EINVAL)}\n")
