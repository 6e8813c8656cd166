"""The file in the user's cache folder that `dmlgpu tune` writes: for each adapter and driver its thresholds."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import dmlgpu

from ..errors import ArgumentError, TuningWarning, shown
from ..planning.tuning import DEFAULTS, Tuning
from .adapters import AdapterDescription, callers_level
from .measured import usable_cores
from .wgpu_private import implementation

__all__ = [
    "VARIABLE",
    "cache_variable",
    "conditions",
    "is_off",
    "read_file",
    "stored_tuning",
    "tuning_file",
    "with_entry",
]

VARIABLE = "DMLGPU_TUNING"
_FORMAT = 1
_MOST_BYTES = 2**22
"""Of a file. An adapter's entry takes some 10 KB."""
_WAY_OUT = "its thresholds are left out: run `dmlgpu tune` again, or set DMLGPU_TUNING=off"


def is_off() -> bool:
    """Whether the environment says that no tuning counts.

    Raises
    ------
    ArgumentError
        If it says something else.
    """
    value = os.environ.get(VARIABLE, "")
    if value not in ("", "off"):
        raise ArgumentError(f"{VARIABLE} is {shown(value)}; it is 'off', or not set")
    return value == "off"


def tuning_file() -> Path | None:
    """Return the file in the user's cache folder; None where the user has no folder."""
    try:
        if sys.platform == "win32":
            folder = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        elif sys.platform == "darwin":
            folder = Path.home() / "Library" / "Caches"
        else:
            folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None
    return folder / "dmlgpu" / "tuning.json"


def cache_variable() -> str:
    """Return the environment variable that says on this system where the user's cache folder is."""
    return {"win32": "LOCALAPPDATA", "darwin": "HOME"}.get(sys.platform, "XDG_CACHE_HOME")


def conditions(adapter: AdapterDescription) -> dict[str, Any]:
    """Return what a measurement holds for: another driver, version or number of cores makes it stale."""
    return {
        "driver": adapter.driver,
        "wgpu": implementation(),
        "dmlgpu": dmlgpu.__version__,
        "cores": usable_cores() if adapter.is_software else None,
    }


def stored_tuning(adapter: AdapterDescription) -> Tuning:
    """Return the thresholds measured on an adapter; the defaults where there are none, or stale ones.

    Warns
    -----
    TuningWarning
        If the file cannot be read or is damaged.
    """
    path = None if is_off() else tuning_file()
    if path is None or not os.path.exists(path):
        return DEFAULTS
    try:
        entry = read_file(path).get(adapter.summary)
        if entry is None or any(entry[name] != value for name, value in conditions(adapter).items()):
            return DEFAULTS
        return Tuning(**entry["thresholds"])
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
    except KeyError as error:
        problem = f"is damaged (it has no {error})"
    except (ValueError, TypeError, RecursionError) as error:
        problem = f"is damaged ({error})"
    warnings.warn(f"the tuning file {path} {problem}; {_WAY_OUT}", TuningWarning, stacklevel=callers_level())
    return DEFAULTS


def read_file(path: Path) -> dict[str, Any]:
    """Return the entries of a file by the adapters' summaries; those of another format are none.

    Raises
    ------
    OSError, ValueError, RecursionError
        If it cannot be read, or holds something else.
    """
    import json  # which few programs need

    if not os.path.isfile(path):  # a pipe would have its reader wait
        raise FileNotFoundError(errno.ENOENT, "not an ordinary file")
    size = os.stat(path).st_size
    if size > _MOST_BYTES:
        raise ValueError(f"it has {size} bytes, and {_MOST_BYTES} are the most that are read")
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or not isinstance(content.get("adapters"), dict):
        raise ValueError("it has no adapters")
    return content["adapters"] if content.get("format") == _FORMAT else {}


def with_entry(
    entries: Mapping[str, Any], adapter: AdapterDescription, tuning: Tuning, measured: object
) -> dict[str, Any]:
    """Return the content of a file with an adapter's entry replaced."""
    entry = {**conditions(adapter), "thresholds": asdict(tuning), "measured": measured}
    return {"format": _FORMAT, "adapters": {**entries, adapter.summary: entry}}
