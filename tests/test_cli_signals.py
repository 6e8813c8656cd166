"""What signals do on Windows, where no process ends by one; tests/test_cli_crashes.py has those of POSIX."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from dmlgpu.cli import signals
from dmlgpu.cli.replacement import replacing
from dmlgpu.cli.signals import raise_interrupt, removed_by_signals

from .windows import os_of_windows

ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGBREAK") if hasattr(signal, name)]
pytestmark = pytest.mark.parametrize("number", ENDING, ids=lambda number: number.name)


def refuse(name: str) -> None:
    """Stand for the removal of a file that is open."""
    raise PermissionError(13, "The process cannot access the file", name)


def test_any_ends_what_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setattr(signals, "os", os_of_windows(unlink=refuse))
    (tmp_path / "a.npy").write_bytes(b"old")
    handlers = [signal.getsignal(one) for one in signals.SIGNALS]
    reached = []

    def use() -> None:
        with replacing(tmp_path / "a.npy") as file:
            file.write(b"new")
            signal.raise_signal(number)
            reached.append(file)

    with pytest.raises(KeyboardInterrupt):
        use()
    assert reached == []
    assert os.listdir(tmp_path) == ["a.npy"]
    assert (tmp_path / "a.npy").read_bytes() == b"old"
    assert [signal.getsignal(one) for one in signals.SIGNALS] == handlers
    raise_interrupt()  # it was raised, and that is all


def test_one_that_is_lost_comes_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    """C code that calls Python may lose the exception; then the file would be complete and silently wrong."""
    monkeypatch.setattr(signals, "os", os_of_windows())
    lost: list[BaseException | None] = []

    def use() -> None:
        with removed_by_signals(str(tmp_path / "x")):
            try:
                signal.raise_signal(number)
            except KeyboardInterrupt:
                lost.append(sys.exception())

    with pytest.raises(KeyboardInterrupt) as raised:
        use()
    assert len(lost) == 1
    assert raised.value is not lost[0]
