"""Runs ``dmlgpu verify`` with a page's WebGPU in wgpu's place: in headless Chromium, or in a browser that you open.

::

    python scripts/in_browser.py                        # all cases, in the Chromium of 'make chromium'
    python scripts/in_browser.py --case 'sum.float32.*' # as dmlgpu verify: also --full, --digest
    python scripts/in_browser.py --by-hand              # prints an address to open in any browser on this machine

The page gets the plans that the library makes for WebGPU's default limits, with the library's shaders, and answers with
the bytes of the results. A small server on this machine hands them out, one after the other; nothing else is reached.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from chromium import PROGRAM, TARGET
from debian import library_path
from numpy.typing import NDArray

from dmlgpu.cli import parse
from dmlgpu.cli.console import CommandError
from dmlgpu.cli.verify import chosen_cases, verify_device
from dmlgpu.errors import DmlGpuError
from dmlgpu.planning.export import exported_plan
from dmlgpu.planning.plan import plan_problem
from dmlgpu.planning.problem import ElementwiseProblem, ScanProblem
from dmlgpu.planning.windows import Limits
from dmlgpu.runtime.adapters import AdapterDescription
from dmlgpu.runtime.device import Device
from dmlgpu.runtime.measured import measure_subnormals

PAGE = Path(__file__).resolve().parent / "page"
FILES = {
    "/": ("index.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/loader.js": ("loader.js", "text/javascript"),
}
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # an unpacked Chromium has no set-uid helper, and root may not use the sandbox
    "--enable-unsafe-webgpu",
    "--use-webgpu-adapter=swiftshader",
    "--disable-gpu-watchdog",  # which ends the device where a machine is too busy to answer in time
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
)
PATIENCE = 300.0
"""Seconds without an answer after which a page is given up: a kernel that never ends."""


class PageError(DmlGpuError):
    """The page, or its browser, cannot go on."""


class Post:
    """Passes jobs to the page and answers back, one at a time."""

    def __init__(self) -> None:
        self.opened: queue.Queue[dict[str, Any]] = queue.Queue()
        self.jobs: queue.Queue[bytes | None] = queue.Queue()
        self.answers: queue.Queue[bytes | str] = queue.Queue()
        self.shaders: dict[str, str] = {}
        self.lost: str | None = None


def handler(post: Post) -> type[BaseHTTPRequestHandler]:
    """Return what serves the page and its jobs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path in FILES:
                name, kind = FILES[self.path]
                self._send(200, (PAGE / name).read_bytes(), kind)
            elif self.path.removeprefix("/shaders/") in post.shaders:
                self._send(200, post.shaders[self.path.removeprefix("/shaders/")].encode(), "text/plain")
            else:
                self._send(404)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.path == "/opened":
                post.opened.put(json.loads(body))
            elif self.path == "/lost":
                post.lost = body.decode()
            else:
                if self.path == "/result":
                    post.answers.put(body)
                elif self.path == "/error":
                    post.answers.put(body.decode())
                job = post.jobs.get()
                if job is not None:
                    self._send(200, job, "application/octet-stream")
                    return
            self._send(204)

        def log_message(self, *_: Any) -> None:
            """Say nothing: a page makes thousands of requests."""

        def _send(self, status: int, body: bytes = b"", kind: str = "text/plain") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Cache-Control", "no-store")
            if status != 204:
                self.send_header("Content-Length", str(len(body)))
            with suppress(ConnectionError):  # the browser has ended: whoever waits for an answer says so
                self.end_headers()
                self.wfile.write(body)

    return Handler


@dataclass(eq=False)
class Memory:
    """Memory as the page's device sees it: kept here, and sent along with each plan."""

    data: NDArray[np.uint8]

    def release(self) -> None:
        """Do nothing: Python's memory frees itself."""


class NoAdapter:
    """What a page's adapter is to this process: nothing that a device could be opened on."""

    def request_device_sync(self, **_: Any) -> None:
        """Refuse."""
        raise RuntimeError("the adapter is the page's")


class PageDevice:
    """A page's device, with what the conformance cases use of `dmlgpu.Device`."""

    def __init__(self, post: Post, opened: Mapping[str, Any], browser: subprocess.Popen[bytes] | None) -> None:
        self._post = post
        self._browser = browser
        adapter = opened["adapter"]
        name = " ".join(filter(None, (adapter["vendor"], adapter["architecture"], adapter["description"])))
        summary = f"{name or 'unnamed adapter'} in {product(opened['browser'])}"
        features = frozenset(opened["features"])
        kind = "CPU" if adapter["isFallback"] else "Unknown"
        self.description = AdapterDescription(-1, summary, name, "", kind, "", name, {}, features, NoAdapter())
        self.summary = summary
        self.implementation = f"a page in {product(opened['browser'])}"
        self.limits = Limits()
        self.lock = self.section = nullcontext()

    def allocate(self, nbytes: int) -> Memory:
        """Return zero-filled memory; like a device's, it may be somewhat larger."""
        return Memory(np.zeros(-(-nbytes // 16) * 16, np.uint8))

    def upload(self, memory: Memory, offset: int, data: NDArray[Any]) -> None:
        """Write an array's elements to memory."""
        memory.data[offset : offset + data.nbytes] = np.ascontiguousarray(data).reshape(-1).view(np.uint8)

    def download(self, memory: Memory, offset: int, out: NDArray[Any]) -> None:
        """Fill an array with the bytes of memory."""
        out.reshape(-1).view(np.uint8)[...] = memory.data[offset : offset + out.nbytes]

    def run(
        self,
        problem: ScanProblem | ElementwiseProblem,
        source: Memory,
        target: Memory,
        *,
        kernel: str | None = None,
    ) -> None:
        """Run an operator in the page."""
        plan = plan_problem(problem, self.limits, one_buffer=source is target, kernel=kernel)
        contents = {"output": target.data} if source is target else {"input": source.data, "output": target.data}
        exported, shaders = exported_plan(plan, {name: data.nbytes for name, data in contents.items()})
        self._post.shaders |= shaders
        head = json.dumps({"plan": exported, "contents": list(contents)}).encode()
        self._post.jobs.put(b"".join([len(head).to_bytes(4, "little"), head, *map(bytes, contents.values())]))
        answer = self._answer()
        if isinstance(answer, str):
            raise PageError(answer)
        target.data[...] = np.frombuffer(answer, np.uint8)

    def lost(self) -> bool:
        """Whether the page cannot go on."""
        ended = self._browser is not None and self._browser.poll() is not None
        return ended or self._post.lost is not None

    def subnormals(self) -> Mapping[str, bool]:
        """As `dmlgpu.Device.subnormals`."""
        return self._subnormals

    @cached_property
    def _subnormals(self) -> dict[str, bool]:
        return measure_subnormals(cast(Device, self))

    def _answer(self) -> bytes | str:
        """Wait for the page."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                return self._post.answers.get(timeout=1)
            except queue.Empty:
                if self.lost():
                    raise PageError(f"the page's device is lost: {self._post.lost or 'the browser ended'}") from None
        self._post.lost = f"no answer for {PATIENCE:.0f} s"
        raise PageError(self._post.lost)


def product(user_agent: str) -> str:
    """Return the browser's name and version from what it calls itself."""
    names = ("HeadlessChrome/", "Edg/", "Chrome/", "Firefox/", "Version/")
    words = user_agent.split()
    return next((word for name in names for word in words if word.startswith(name)), user_agent)


@contextmanager
def served(post: Post) -> Iterator[str]:
    """Serve the page as long as the context lasts; give its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(post))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        post.jobs.put(None)
        server.shutdown()


@contextmanager
def browsing(address: str, log: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Show the page in headless Chromium as long as the context lasts."""
    if not PROGRAM.is_file():
        raise CommandError(f"there is no {PROGRAM}; 'make chromium' unpacks it, and --by-hand takes another browser")
    environment = os.environ | {"LD_LIBRARY_PATH": library_path(TARGET)}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [str(PROGRAM), *FLAGS, f"--user-data-dir={profile}", address]
        with subprocess.Popen(command, env=environment, stdout=log, stderr=log) as process:
            try:
                yield process
            finally:
                process.terminate()


def opened(post: Post, browser: subprocess.Popen[bytes] | None) -> dict[str, Any]:
    """Wait until the page has opened a device."""
    end = time.monotonic() + PATIENCE
    while browser is None or time.monotonic() < end:
        try:
            return post.opened.get(timeout=0.2)
        except queue.Empty:
            if post.lost is not None:
                raise PageError(post.lost) from None
            if browser is not None and browser.poll() is not None:
                raise PageError(f"the browser ended with exit status {browser.returncode}") from None
    raise PageError(f"the browser has not opened the page for {PATIENCE:.0f} s")


def verify(arguments: list[str], by_hand: bool, log: IO[bytes]) -> int:
    """Verify a page's device; return the exit status."""
    options = parse(["verify", *arguments])
    for name in ("device", "json", "jobs", "compare"):
        if getattr(options, name) is not None:
            raise CommandError(f"--{name} is not for a page; leave it out")
    if options.reference:
        raise CommandError("--reference is not for a page; leave it out")
    cases = chosen_cases(options)
    post = Post()
    with served(post) as address:
        if by_hand:
            print(f"open {address} in a browser with WebGPU", flush=True)
        with nullcontext() if by_hand else browsing(address, log) as browser:
            device = PageDevice(post, opened(post, browser), browser)
            return verify_device(cast(Device, device), cases, options)


def main(arguments: list[str]) -> int:
    """Verify; say in one line why that was not possible, with what the browser said."""
    by_hand = "--by-hand" in arguments
    arguments = [argument for argument in arguments if argument != "--by-hand"]
    with tempfile.TemporaryFile() as log:
        try:
            return verify(arguments, by_hand, log)
        except DmlGpuError as error:
            log.seek(0)
            said = log.read().decode(errors="replace").splitlines()
            told = [line for line in said if "dbus" not in line][-20:]  # it misses the desktop's bus many times
            print("\n".join([*told, f"in_browser.py: {error}"]), file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            print("in_browser.py: interrupted", file=sys.stderr)
            return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
