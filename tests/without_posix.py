"""Hides what only POSIX has. As a plugin of pytest it shows which tests need that, without Windows:

pytest -p tests.without_posix --collect-only
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from typing import Any

import pytest

MODULES = ("fcntl", "grp", "pwd", "resource", "termios", "tty", "pty", "syslog")
"""What Windows lacks of the standard library."""
NAMES: dict[Any, tuple[str, ...]] = {
    os: (
        *("chown", "fchown", "fork", "forkpty", "getegid", "geteuid", "getgid", "getgroups", "getuid", "killpg"),
        *("mkfifo", "mknod", "pread", "pwrite", "sched_getaffinity", "setsid", "sysconf", "uname", "wait3", "wait4"),
        *("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "WIFSIGNALED", "WTERMSIG"),
    ),
    signal: (
        *("SIGALRM", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGPOLL", "SIGPROF", "SIGQUIT", "SIGSTOP"),
        *("SIGTSTP", "SIGUSR1", "SIGUSR2", "SIGVTALRM", "SIGXCPU", "SIGXFSZ", "alarm", "setitimer", "pthread_kill"),
    ),
}
"""What its modules lack there."""
_FIRST = (
    *("asyncio", "concurrent.futures.process", "multiprocessing.spawn", "multiprocessing.synchronize"),
    *("dask.array", "distributed", "pyarrow.parquet", "wgpu.backends.wgpu_native"),
)
"""What is imported before, because here it is made for a system that has all of that."""


def hide() -> None:
    """Hide it from all that is imported from now on."""
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    for module, names in NAMES.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    for name in _FIRST:
        importlib.import_module(name)
    hide()
    sys.platform = "win32"
