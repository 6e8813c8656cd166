"""Runs libraries in processes of their own and measures them in turn."""

from __future__ import annotations

import multiprocessing
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dmlgpu import reference
from dmlgpu.bench.rows import Row
from dmlgpu.bench.workloads import elements

from .calls import PEERS, MissingPeerError, Peer
from .resident import RESIDENT, OnDevice

_START_SECONDS = 120.0
_ALL: Mapping[str, Peer] = {**PEERS, **RESIDENT}


@dataclass
class Measured:
    """What came of a row.

    Attributes
    ----------
    seconds : list of float
        Samples, in turn with the other libraries'.
    failure : str or None
        Why there are none.
    error : float
        The largest error by the largest result.
    """

    seconds: list[float] = field(default_factory=list)
    failure: str | None = None
    error: float = 0.0


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables for as long as the context lasts."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class _Member:
    """A library and its process."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._process: Any = None
        self._connection: Any = None

    def ask(self, message: object, seconds: float) -> Any:
        """Send a message and return the answer; a process that is late is ended, and one that fails says why."""
        if self._process is None:
            self._start()
        try:
            self._connection.send(message)
            if not self._connection.poll(seconds):
                raise TimeoutError(f"more than {seconds:g} s")
            kind, answer = self._connection.recv()
        except (TimeoutError, EOFError, OSError) as error:
            code = self._process.exitcode
            self.end(kill=True)
            late = isinstance(error, TimeoutError)
            raise RuntimeError(str(error) if late else f"its process ended with status {code}") from None
        if kind == "failed":
            raise RuntimeError(answer)
        return answer

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        with environment(_ALL[self.name].environment):
            self._process = context.Process(target=_serve, args=(theirs, self.name), daemon=True)
            self._process.start()
        theirs.close()

    def end(self, *, kill: bool = False) -> None:
        if self._process is not None:
            if kill:
                self._process.kill()
            self._connection.close()
            self._process.join(10)
            self._process = None


class Team:
    """Several libraries, ready to be measured in turn; a context manager.

    Parameters
    ----------
    names : sequence of str
        Keys of `PEERS` and `RESIDENT`.

    Attributes
    ----------
    missing : dict of str to str
        Which of them cannot run, and what to do about it.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.missing: dict[str, str] = {}
        self._members: list[_Member] = []
        for name in names:
            driver = _ALL[name].driver
            if driver is not None and not driver.exists():
                self.missing[name] = "SwiftShader is not there: make swiftshader"
                continue
            member = _Member(name)
            try:
                member.ask(("load", None), _START_SECONDS)
            except RuntimeError as error:
                self.missing[name] = str(error)
                member.end()
                continue
            self._members.append(member)

    @property
    def names(self) -> list[str]:
        """Those that can run."""
        return [member.name for member in self._members]

    def __enter__(self) -> Team:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self._members:
            member.end()

    def measure(self, row: Row, samples: int, timeout: float) -> dict[str, Measured]:
        """Measure a row with every library in turn, `samples` times, or until `timeout` seconds are over."""
        found = {member.name: Measured(failure=_ALL[member.name].refuses(row)) for member in self._members}
        for member in self._members:
            if found[member.name].failure is None:
                self._try(member, ("row", row), _START_SECONDS + timeout, found)
        started = time.monotonic()
        for number in range(samples):
            for member in self._members:
                if found[member.name].failure is None:
                    self._try(member, ("sample", None), _START_SECONDS + timeout, found)
            if number >= 2 and time.monotonic() - started > timeout:
                break
        return found

    @staticmethod
    def _try(member: _Member, message: tuple[str, Any], seconds: float, found: dict[str, Measured]) -> None:
        measured = found[member.name]
        try:
            answer = member.ask(message, seconds)
        except RuntimeError as error:
            measured.failure, measured.seconds = str(error), []
            return
        if message[0] == "row":
            measured.error = answer
        else:
            measured.seconds.append(answer)


def _serve(connection: Connection, name: str) -> None:
    """Do what the other end asks for, in a process of its own."""
    warnings.simplefilter("ignore")  # that a device computes in software is in the table
    prepare: Any = None
    call: Any = None
    while True:
        try:
            kind, row = connection.recv()
        except EOFError:
            return
        try:
            answer: object = None
            if kind == "load" or prepare is None:
                prepare = _ALL[name].load()
            if kind == "row":
                x = elements(row.operator, row.type, row.elements).reshape(row.shape)
                call = prepare(row, x)
                answer = _error(row, x, call())
            elif kind == "sample" and isinstance(call, OnDevice):
                answer = call.seconds()
            elif kind == "sample":
                begun = time.perf_counter()
                call()
                answer = time.perf_counter() - begun
            connection.send(("done", answer))
        except MissingPeerError as error:
            connection.send(("failed", str(error)))
        except Exception as error:  # whatever a library raises for a type that it does not have
            connection.send(("failed", f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"))


def _error(row: Row, x: NDArray[Any], found: NDArray[Any]) -> float:
    """Return the largest error by the largest result; raise if that is no rounding error."""
    if row.axis is None:
        exact: NDArray[Any] = reference.round(x, "half_even")
    elif x.dtype.kind == "f":
        accumulate: Callable[..., NDArray[Any]] = np.cumsum if row.operator == "sum" else np.cumprod
        exact = accumulate(x, axis=row.axis, dtype=np.float64)
    else:
        exact = reference.cumulative(x, row.operator, axis=row.axis)
    if found.shape != x.shape or found.dtype != x.dtype:
        raise ValueError(f"gave {found.dtype} of shape {found.shape}")
    if x.dtype.kind != "f":
        if not np.array_equal(exact, found):
            raise ValueError("gave other integers")
        return 0.0
    error = float(np.max(np.abs(found - exact)) / max(float(np.max(np.abs(exact))), 1e-30))
    if not error <= (0.3 if x.dtype.itemsize == 2 else 0.02):
        raise ValueError(f"gave results that are off by {error:.2g} of the largest")
    return error
