"""The memory of results. Copies by several threads: every element once, and nobody at work when they end."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

from dmlgpu.arrays.host import host_empty
from dmlgpu.dtypes import by_dtype
from dmlgpu.runtime import transfers
from dmlgpu.runtime.transfers import copy_array


@pytest.fixture(params=[2, 4])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Have copies of a few bytes made by so many threads, whatever this machine has."""
    pool = ThreadPoolExecutor(request.param - 1)
    monkeypatch.setattr(transfers, "_PIECE_BYTES", 64)
    monkeypatch.setattr(transfers, "usable_cores", lambda: request.param)
    monkeypatch.setattr(transfers, "_threads", lambda: pool)
    return int(request.param)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for another thread, but not for ever."""
    for _ in range(5000):
        if condition():
            return
        time.sleep(0.001)
    raise AssertionError("the other thread did not get there")


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((1000,), (0,)),
        ((1,), (0,)),
        ((), ()),
        ((0, 5), (0, 1)),
        ((1, 300), (0, 1)),
        ((300, 1), (1, 0)),
        ((7, 40), (1, 0)),
        ((3, 17, 20), (2, 0, 1)),
        ((100, 3), (0, 1)),
    ],
)
def test_every_layout(threads: int, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).integers(-1000, 1000, shape, np.int32)
    views = [x, x.transpose(axes).copy().transpose(np.argsort(axes)), np.repeat(x[..., None], 2, -1)[..., 1]]
    if x.ndim:
        views += [np.flip(np.flip(x, 0).copy(), 0), x.astype(">i4"), np.broadcast_to(x[:1], shape)]
    for source in views:
        for target in (np.zeros_like(x), np.zeros((*shape, 3), np.int32)[..., 1], np.zeros(shape[::-1], np.int32).T):
            copy_array(target, source)
            np.testing.assert_array_equal(target, source)


def test_helpers_take_part(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[int] = set()
    real, all_here = np.copyto, threading.Barrier(threads)

    def copyto(target: Any, source: Any) -> None:
        if threading.get_ident() not in seen:
            seen.add(threading.get_ident())
            all_here.wait(10)
        real(target, source)

    monkeypatch.setattr(transfers.np, "copyto", copyto)
    x = np.arange(2000)
    target = np.zeros_like(x)
    copy_array(target, x)
    monkeypatch.undo()
    np.testing.assert_array_equal(target, x)
    assert len(seen) == threads


def test_small_arrays_are_copied_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> ThreadPoolExecutor:
        raise AssertionError("no thread is worth it")

    monkeypatch.setattr(transfers, "_threads", refuse)
    x = np.arange(2**19)
    target = np.zeros_like(x)
    copy_array(target, x)
    np.testing.assert_array_equal(target, x)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_nobody_is_at_work_after_an_interruption(
    threads: int, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is unmapped then."""
    here, started, ended = threading.get_ident(), threading.Event(), []
    real, works = np.copyto, []

    class Work(transfers._Work):
        def __init__(self, pieces: Iterable[Any]) -> None:
            super().__init__(pieces)
            works.append(self)

    def copyto(target: Any, source: Any) -> None:
        if threading.get_ident() == here:
            assert started.wait(10)
            raise error
        started.set()
        wait_until(lambda: not works[0].pieces)  # the caller has taken them away
        time.sleep(0.1)  # for a caller that does not wait to return
        real(target, source)
        ended.append(source.size)

    x = np.arange(4000)
    with monkeypatch.context() as patch:
        patch.setattr(transfers.np, "copyto", copyto)
        patch.setattr(transfers, "_Work", Work)
        with pytest.raises(error):
            copy_array(np.zeros_like(x), x)
        done = len(ended)
        assert 1 <= done <= threads - 1  # what was begun was ended, and nothing was begun after that
        time.sleep(0.25)
        assert len(ended) == done


def test_an_interruption_while_waiting_takes_effect_after_it(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    here, taken, ended = threading.get_ident(), threading.Event(), []
    real, waits = np.copyto, 0

    def copyto(target: Any, source: Any) -> None:
        if threading.get_ident() == here:
            assert taken.wait(10)
        else:
            taken.set()
            wait_until(lambda: waits >= 2)
            time.sleep(0.1)  # for a caller that does not wait to return
            ended.append(source.size)
        real(target, source)

    class Interrupted(SimpleQueue[None]):
        def get(self, *args: Any, **options: Any) -> None:
            nonlocal waits
            waits += 1
            if waits <= 2:
                raise KeyboardInterrupt
            return super().get(*args, **options)

    x = np.arange(16 * threads)
    target = np.zeros_like(x)
    with monkeypatch.context() as patch:
        patch.setattr(transfers.np, "copyto", copyto)
        patch.setattr(transfers, "SimpleQueue", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            copy_array(target, x)
    assert waits >= 2
    assert ended
    np.testing.assert_array_equal(target, x)


def test_where_no_thread_can_be_had_it_is_copied_here(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter starts none when it ends, and the system may refuse them."""
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    monkeypatch.setattr(transfers, "_threads", lambda: pool)
    x = np.arange(4000)
    target = np.zeros_like(x)
    copy_array(target, x)
    np.testing.assert_array_equal(target, x)


def test_readbacks_when_the_interpreter_ends() -> None:
    """In an exit handler, and in a thread that outlives the main one."""
    code = """
import atexit, threading, time
import numpy as np
from dmlgpu.runtime.transfers import copy_array
x = np.arange(2**22)
def copy(name):
    target = np.zeros_like(x)
    copy_array(target, x)
    print(name, bool((target == x).all()), flush=True)
def late():
    threading.main_thread().join()
    copy("thread")
atexit.register(copy, "exit")
threading.Thread(target=late).start()
copy("main")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")) == ["", "exit True", "main True", "thread True"]
    assert not done.stderr


def test_an_error_in_a_helper_is_raised(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    here, failed = threading.get_ident(), threading.Event()

    def copyto(target: Any, source: Any) -> None:
        if threading.get_ident() == here:
            assert failed.wait(10)
        else:
            failed.set()
            raise MemoryError("no")

    x = np.arange(4000)
    with monkeypatch.context() as patch:
        patch.setattr(transfers.np, "copyto", copyto)
        with pytest.raises(MemoryError, match="no"):
            copy_array(np.zeros_like(x), x)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such pages to ask for")
@pytest.mark.parametrize("shape", [(2**20,), (3, 700001), (2**20 - 1,), (0, 2**20), ()])
def test_large_arrays_begin_with_a_huge_page(shape: tuple[int, ...]) -> None:
    array = host_empty(shape, by_dtype(np.dtype(np.float32)))
    assert array.shape == shape
    assert array.dtype == np.float32
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert array.nbytes < 4 * 2**20 or array.ctypes.data % (2 * 2**20) == 0
