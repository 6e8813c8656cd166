"""Headless Chromium for tests, driven through a pipe by its DevTools protocol. 'make chromium' unpacks it."""

from __future__ import annotations

import base64
import itertools
import json
import os
import runpy
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PATIENCE = 1800.0
"""Seconds without an answer after which the browser is given up."""


class Browser:
    """One page of a browser."""

    def __init__(self, process: subprocess.Popen[bytes], to_browser: int, from_browser: int) -> None:
        self._process, self._to, self._from = process, to_browser, from_browser
        self._numbers = itertools.count(1)
        self._pending = b""
        self._session: str | None = None
        self.problems: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.requests: list[str] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        while (answer := self._next()).get("id") != number:
            self._heed(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    def open(self, path: Path, fragment: str = "") -> None:
        """Open a file as a page, as a person does who double-clicks it, and wait until it is there."""
        self.call("Page.navigate", url="about:blank")
        self.problems.clear()
        self.requests.clear()
        self.call("Page.navigate", url=path.resolve().as_uri() + fragment)
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page, or of the promise that it is."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, f"{expression}: {found['exceptionDetails']}"
        return found["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until an expression is true in the page."""
        end = time.monotonic() + PATIENCE
        while not self.evaluate(expression):
            assert time.monotonic() < end, f"{expression} is not true after {PATIENCE:.0f} s"
            select.select([self._from], [], [], 0.1)

    def press(self, key: str, text: str = "") -> None:
        """Press a key, named as in a KeyboardEvent."""
        code = {"Tab": 9, "Enter": 13, " ": 32}[key]
        common = {"key": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def look(self, *, width: int = 1280, scheme: str = "light", motion: str = "reduce") -> None:
        """Show pages in a width, and light or dark."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )
        features = [("prefers-color-scheme", scheme), ("prefers-reduced-motion", motion)]
        self.call("Emulation.setEmulatedMedia", features=[{"name": name, "value": value} for name, value in features])

    def screenshot(self, path: Path) -> bytes:
        """Write the whole page as a PNG."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
        data = base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return data

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._pending:
            assert select.select([self._from], [], [], PATIENCE)[0], f"the browser is silent for {PATIENCE:.0f} s"
            data = os.read(self._from, 1 << 20)
            assert data, f"the browser ended with exit status {self._process.wait()}"
            self._pending += data
        message, _, self._pending = self._pending.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def _heed(self, event: dict[str, Any]) -> None:
        parameters = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.problems.append(str(parameters["exceptionDetails"]))
        elif event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.problems.append(parameters["entry"]["text"])
        elif event.get("method") == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])


def _high(descriptor: int) -> int:
    """Return a duplicate apart from 3 and 4, and close the descriptor."""
    import fcntl  # Windows, where no test starts a browser, has none

    duplicate = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return duplicate


@contextmanager
def browser() -> Iterator[Browser]:
    """Start a browser that lasts as long as the context."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        script = runpy.run_path(str(ROOT / "scripts" / "in_browser.py"))
    finally:
        sys.path.remove(str(ROOT / "scripts"))
    program = script["PROGRAM"]
    assert program.is_file(), f"there is no {program}: 'make chromium' unpacks it"
    environment = os.environ | {"LD_LIBRARY_PATH": script["library_path"](script["TARGET"])}
    read_there, write_here, read_here, write_there = (_high(one) for one in (*os.pipe(), *os.pipe()))
    try:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            flags = [*script["FLAGS"], "--remote-debugging-pipe", f"--user-data-dir={profile}"]
            # The protocol's pipe has the numbers 3 and 4 in the browser.
            shell = f'exec 3<&{read_there} 4>&{write_there} {read_there}<&- {write_there}>&-; exec "$@"'
            with subprocess.Popen(
                ["bash", "-c", shell, "bash", str(program), *flags],
                env=environment,
                pass_fds=(read_there, write_there),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            ) as process:
                os.close(write_there)
                write_there = -1
                try:
                    yield Browser(process, write_here, read_here)
                finally:
                    process.terminate()
    finally:
        for one in (read_there, write_here, read_here, write_there):
            if one >= 0:
                os.close(one)
