"""Waiting for other threads, which Ctrl-C ends on every system."""

from __future__ import annotations

import ast
import concurrent.futures
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import dmlgpu
from dmlgpu import waiting
from dmlgpu.cli.pipeline import reading_ahead, writing_behind
from dmlgpu.conformance import checks
from dmlgpu.waiting import as_they_end, outcome

LONG = 60.0
"""Seconds after which something does not come any more."""


def test_outcomes_are_those_of_the_futures() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert outcome(pool.submit(lambda: 7)) == 7
        with pytest.raises(ZeroDivisionError):
            outcome(pool.submit(lambda: 1 / 0))


def test_an_error_that_a_wait_could_have_is_the_futures_own() -> None:
    future: Future[None] = Future()
    future.set_exception(TimeoutError("its own"))
    with pytest.raises(TimeoutError, match="its own"):
        outcome(future)


def test_each_comes_once_it_has_ended() -> None:
    futures: list[Future[int]] = [Future() for _ in range(4)]
    ended = as_they_end(futures)
    for number in 2, 0, 3, 1:
        futures[number].set_result(number)
        assert next(ended) is futures[number]
    assert list(ended) == list(as_they_end([])) == []


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """Have an interrupt come during each wait and be noticed at its end, as on Windows; give how long each was."""
    waits: list[float] = []

    def wait(futures: set[Future[Any]], timeout: float | None, return_when: str) -> Any:
        assert timeout is not None, "Windows would not notice Ctrl-C"
        concurrent.futures.wait(futures, timeout, return_when)
        waits.append(timeout)
        raise KeyboardInterrupt

    monkeypatch.setattr(waiting, "wait", wait)
    yield waits
    assert waits
    assert max(waits) <= 0.1


def reads(held: threading.Event) -> None:
    with reading_ahead(iter(lambda: held.wait(LONG), None), waits=False) as following:
        next(following)


def writes(held: threading.Event) -> None:
    with writing_behind(lambda _: held.wait(LONG), waits=False) as put:
        put(0)
        put(1)


def writes_the_last_block(held: threading.Event) -> None:
    with writing_behind(lambda _: held.wait(LONG), waits=False) as put:
        put(0)


def checks_cases(held: threading.Event) -> None:
    next(checks._as_they_come([Future()]))


@pytest.mark.parametrize("use", [reads, writes, writes_the_last_block, checks_cases])
def test_no_wait_lasts_for_long(use: Callable[[threading.Event], None], interrupted: list[float]) -> None:
    held = threading.Event()
    try:
        with pytest.raises(KeyboardInterrupt):
            use(held)
    finally:
        held.set()
    assert len(interrupted) == 1


def test_nothing_waits_for_a_future_in_another_way() -> None:
    found = set()
    for path in Path(dmlgpu.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.alias) and node.name == "as_completed":
                found.add(path.name)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "result":
                found.add(path.name)
    assert found == {"waiting.py", "checks.py"}  # the latter of futures that have ended
