"""Sections: signals wait for their end, threads for each other, and forked children for nobody."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

import dmlgpu
from dmlgpu import sections
from dmlgpu.sections import Section, let_interrupts_through

CTRL_C = signal.SIGINT


@pytest.fixture(autouse=True)
def _handlers_stay() -> Iterator[None]:
    before = [signal.getsignal(signum) for signum in sections._SIGNALS]
    yield
    assert [signal.getsignal(signum) for signum in sections._SIGNALS] == before
    assert sections._depth == 0


def free(section: Section) -> bool:
    """Whether another thread can enter a section."""
    result = []

    def enter() -> None:
        result.append(section.lock.acquire(timeout=20))
        if result[0]:
            section.lock.release()

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    return result[0]


def test_ctrl_c_waits_for_the_end() -> None:
    outer, inner, steps = Section(), Section(), []

    def work() -> None:
        with outer:
            with inner, inner:
                signal.raise_signal(CTRL_C)
                signal.raise_signal(CTRL_C)
                steps.append("inside")
            steps.append("still inside")
        steps.append("never")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert steps == ["inside", "still inside"]
    assert free(outer)
    assert free(inner)
    with outer:
        steps.append("once")
    assert steps[-1] == "once"


def test_ctrl_c_comes_through_where_it_may() -> None:
    section = Section()
    let_interrupts_through()

    def work() -> None:
        with section:
            signal.raise_signal(CTRL_C)
            with section:
                let_interrupts_through()
            pytest.fail("it was not let through")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert free(section)


def test_an_error_is_the_context_of_the_interrupt() -> None:
    def work() -> None:
        with Section():
            signal.raise_signal(CTRL_C)
            raise ValueError("first")

    with pytest.raises(KeyboardInterrupt) as caught:
        work()
    assert isinstance(caught.value.__context__, ValueError)


def test_handlers_of_the_caller_run_once_each_and_may_return() -> None:
    calls: list[tuple[int, bool]] = []

    def handler(signum: int, frame: FrameType | None) -> None:
        calls.append((signum, frame is not None))

    signals = [signum for signum in (signal.SIGINT, signal.SIGTERM) if signum in sections._SIGNALS]
    before = {signum: signal.signal(signum, handler) for signum in signals}
    try:
        section = Section()
        with section:
            for signum in (*signals, *signals):
                signal.raise_signal(signum)
            assert calls == []
        assert sorted(calls) == sorted((signum, True) for signum in signals)
        assert [signal.getsignal(signum) for signum in signals] == [handler] * len(signals)
    finally:
        for signum, old in before.items():
            signal.signal(signum, old)


def test_all_handlers_run_even_if_one_raises() -> None:
    calls = []
    before = signal.signal(signal.SIGTERM, lambda *_: calls.append("term"))

    def work() -> None:
        with Section():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)

    try:
        with pytest.raises(KeyboardInterrupt):
            work()
        assert calls == ["term"]
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("action", [signal.SIG_IGN, signal.SIG_DFL])
def test_signals_that_python_does_not_handle_are_left_alone(action: signal.Handlers) -> None:
    before = signal.signal(signal.SIGTERM, action)
    try:
        with Section():
            assert signal.getsignal(signal.SIGTERM) == action
    finally:
        signal.signal(signal.SIGTERM, before)


def test_waiting_for_another_thread_can_be_interrupted() -> None:
    section, entered, leave = Section(), threading.Event(), threading.Event()

    def hold() -> None:
        with section:
            entered.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait()
    real = section.lock.acquire

    class Lock:
        """The section's lock; Ctrl-C comes while it is waited for."""

        def acquire(self, *args: object, **options: float) -> bool:
            if options:
                signal.raise_signal(CTRL_C)
            return real(*args, **options)  # type: ignore[arg-type]

    lock, section.lock = section.lock, Lock()  # type: ignore[assignment]
    try:
        with pytest.raises(KeyboardInterrupt), section:
            pytest.fail("it was entered")
    finally:
        section.lock = lock
        leave.set()
        thread.join()
    with section:
        pass
    assert free(section)


def interrupt_at(line: int, function: Callable[[], object]) -> bool:
    """Call a function with Ctrl-C at its n-th line in `sections`; return whether there were as many."""
    count = 0

    def trace(frame: FrameType, event: str, _arg: object) -> Callable[..., object] | None:
        nonlocal count
        if frame.f_code.co_filename != sections.__file__:
            return None
        if event == "line":
            count += 1
            if count == line:
                signal.raise_signal(CTRL_C)
        return trace

    sys.settrace(trace)
    try:
        function()
    except KeyboardInterrupt:
        pass
    else:
        assert count < line, "the interrupt was lost"
    finally:
        sys.settrace(None)
    return count >= line


def test_an_interrupt_at_any_line_of_a_section_leaves_it_free() -> None:
    section, line = Section(), 1

    def twice() -> None:
        with section, section:
            pass

    while interrupt_at(line, twice):
        assert sections._depth == 0
        assert signal.getsignal(CTRL_C) is signal.default_int_handler
        assert free(section)
        line += 1
    assert line > 20


def test_every_lock_of_the_package_is_a_sections() -> None:
    """Others would stay taken in a forked child, and after an interrupt."""
    root = Path(dmlgpu.__file__).parent
    found = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if re.search(r"\b(Lock|RLock|Condition|Semaphore|Barrier)\(|\.acquire\(", path.read_text())
    }
    assert found == {"sections.py"}


FORK = """
import os, threading
from dmlgpu.sections import Section
mine, others = Section(), Section()
held, leave = threading.Event(), threading.Event()
def hold():
    with others:
        held.set()
        leave.wait()
threading.Thread(target=hold).start()
held.wait()
with mine:
    child = os.fork()
    if child == 0:
        with others, mine:
            pass
if child == 0:
    with mine, others:
        os._exit(7)
leave.set()
with mine, others:
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="os.fork exists on POSIX systems only")
def test_a_forked_child_finds_all_sections_free() -> None:
    run = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True, timeout=120)
    assert run.stdout.strip() == "7"


INTERRUPTED_FORK = """
import os, signal, threading
from dmlgpu.sections import Section
def child_works():
    child = os.fork()
    if child == 0:
        try:
            with Section():
                signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            os._exit(7)
        os._exit(8)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
codes = []
with Section():
    thread = threading.Thread(target=child_works)  # its child's only thread takes the place of the main thread
    thread.start()
    thread.join()
print(codes)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="os.fork exists on POSIX systems only")
def test_a_child_of_another_thread_gets_its_own_interrupts() -> None:
    run = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_FORK], capture_output=True, text=True, check=True, timeout=120
    )
    assert run.stdout.strip() == "[7]"
