"""Locks of files and folders: of this system, and those of Windows by a stand-in for its module."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dmlgpu.cli import locks
from dmlgpu.cli.locks import alone_in, lock

from .windows import Msvcrt, with_locks_of_windows

LONG = 60.0
"""Seconds after which something does not come any more."""


@pytest.fixture(params=["this system's", "Windows'"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Use the locks of this system, or of Windows."""
    if request.param == "Windows'":
        with_locks_of_windows(monkeypatch, Msvcrt())
    return str(request.param)


@contextmanager
def opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def test_one_of_two_gets_a_file(system: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    with opened(path) as one, opened(path) as other, opened(tmp_path / "y") as third:
        assert lock(one)
        assert not lock(other)
        assert lock(third)
    with opened(path) as one:
        assert lock(one)  # its end let it go


def test_the_position_stays_and_the_lock_covers_no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_locks_of_windows(monkeypatch, msvcrt := Msvcrt())
    with opened(tmp_path / "x") as one, opened(tmp_path / "x") as other:
        for descriptor in one, other:
            os.write(descriptor, b"12345")
            lock(descriptor)
            assert os.lseek(descriptor, 0, os.SEEK_CUR) == 5
    assert min(msvcrt.places) > 2**40
    assert (tmp_path / "x").stat().st_size == 5


@pytest.mark.parametrize("msvcrt", [None, Msvcrt(errno.EINVAL)], ids=["no module", "a file system without locks"])
def test_without_locks_nobody_is_kept_away(
    msvcrt: Msvcrt | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_locks_of_windows(monkeypatch, msvcrt)
    with opened(tmp_path / "x") as one, opened(tmp_path / "x") as other:
        assert lock(one)
        assert lock(other)
    with alone_in(tmp_path), alone_in(tmp_path):
        pass
    with alone_in(tmp_path / "gone"):
        pass


def test_one_waits_for_the_other_in_a_folder(system: str, tmp_path: Path) -> None:
    began, order = threading.Event(), []

    def second() -> None:
        began.set()
        with alone_in(tmp_path):
            order.append("second")

    thread = threading.Thread(target=second)
    with alone_in(tmp_path):
        thread.start()
        assert began.wait(LONG)
        thread.join(0.2)  # on any machine: it waits, or it has not come so far
        order.append("first")
    thread.join(LONG)
    assert order == ["first", "second"]
    assert os.listdir(tmp_path) == (["lock"] if system == "Windows'" or os.name != "posix" else [])


def test_windows_is_not_asked_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gives the same error for a lock that nobody ever gets."""
    with_locks_of_windows(monkeypatch, Msvcrt(errno.EACCES))
    monkeypatch.setattr(locks, "_MOST_SECONDS", 0.1)
    with alone_in(tmp_path):
        pass
