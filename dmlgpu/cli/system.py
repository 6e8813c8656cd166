"""The part of `dmlgpu info` that needs no device: versions, Vulkan's driver files, environment variables."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import dmlgpu

__all__ = ["DriverFile", "driver_files", "driver_folders", "environment", "versions", "vulkan_loader"]

_OVERRIDES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
"""Variables that replace the search for driver files; the first one that is set counts."""

_SHOWN_PREFIXES = ("DMLGPU_", "WGPU", "MESA_", "LIBGL_", "GALLIUM_", "VK_LOADER_", "VK_LAYER_")
_SHOWN_NAMES = frozenset(
    {
        *_OVERRIDES,
        "CUDA_VISIBLE_DEVICES",
        "DRI_PRIME",
        "LP_NUM_THREADS",
        "NVIDIA_DRIVER_CAPABILITIES",
        "NVIDIA_VISIBLE_DEVICES",
        "VK_ADD_DRIVER_FILES",
        "VK_ADD_LAYER_PATH",
        "VK_INSTANCE_LAYERS",
        "__EGL_VENDOR_LIBRARY_FILENAMES",
    }
)
# VK_ also begins the variables of programs that have nothing to do with Vulkan, access tokens among them.
_NAMED_PREFIXES = ("VK_",)
_SECRET = ("TOKEN", "SECRET", "PASSW", "CREDENTIAL", "_KEY")
_PRESENCE = ("DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR")


@dataclass(frozen=True)
class DriverFile:
    """A file that tells the Vulkan loader of a driver.

    Attributes
    ----------
    path : str
        Where it is.
    library : str or None
        The driver's library, as the file names it.
    api_version : str or None
        The version of Vulkan that the driver offers.
    problem : str or None
        Why the loader cannot use it, if that is plain to see.
    """

    path: str
    library: str | None = None
    api_version: str | None = None
    problem: str | None = None


def versions() -> dict[str, str]:
    """Return the versions of Python, libraries and system, by name."""
    found = {"dmlgpu": dmlgpu.__version__, "wgpu": _package("wgpu"), "wgpu-native": _native()}
    found |= {"numpy": _package("numpy"), "python": f"{platform.python_version()} ({platform.python_implementation()})"}
    found["system"] = platform.platform()
    if sys.platform.startswith("linux"):
        with suppress(OSError, KeyError):  # some minimal systems do not say
            found["system"] += f" ({platform.freedesktop_os_release()['PRETTY_NAME']})"
    return found


def _package(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(not installed)"


def _native() -> str:
    try:
        from ..runtime.wgpu_private import native_version

        return native_version()
    except Exception as error:  # a broken library may raise anything; the report goes on
        return f"(cannot be loaded: {error})"


def vulkan_loader() -> str:
    """Say whether the library that finds Vulkan drivers is there."""
    if sys.platform == "darwin":
        return "not needed: Metal"
    name = "vulkan-1.dll" if sys.platform == "win32" else "libvulkan.so.1"
    try:
        ctypes.CDLL(name)
    except OSError:
        return f"{name} is missing"
    return f"{name} is there"


def driver_folders(variables: Mapping[str, str]) -> list[Path]:
    """Return the folders in which the Vulkan loader looks for driver files, in its order; none on Windows."""
    if sys.platform == "win32":
        return []  # the registry has them there
    home = variables.get("HOME", "")
    listed = [
        variables.get("XDG_CONFIG_HOME") or f"{home}/.config",
        *(variables.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep),
        "/etc",
        variables.get("XDG_DATA_HOME") or f"{home}/.local/share",
        *(variables.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share").split(os.pathsep),
    ]
    return list(dict.fromkeys(Path(folder) / "vulkan" / "icd.d" for folder in listed if folder))


def driver_files(variables: Mapping[str, str]) -> tuple[str, list[DriverFile]]:
    """Find the Vulkan loader's driver files.

    Parameters
    ----------
    variables : mapping
        The environment.

    Returns
    -------
    tuple of str and list of DriverFile
        What decides, a variable's name or the standard folders, and the files.
    """
    source = next((name for name in _OVERRIDES if variables.get(name)), None)
    places = variables[source].split(os.pathsep) if source else list(map(str, driver_folders(variables)))
    places += variables.get("VK_ADD_DRIVER_FILES", "").split(os.pathsep)
    files: list[Path] = []
    for place in map(Path, filter(None, places)):
        try:
            files += sorted(place.glob("*.json")) if place.is_dir() else [place] if place.suffix == ".json" else []
        except OSError:
            continue  # a folder that this user may not read is none for the loader either
    return source or "standard folders", [_driver_file(path) for path in files]


def _driver_file(path: Path) -> DriverFile:
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))["ICD"]
        library, api_version = str(entry["library_path"]), str(entry["api_version"])
    except OSError as error:
        return DriverFile(str(path), problem=error.strerror or "cannot be read")
    except (ValueError, KeyError, TypeError):
        return DriverFile(str(path), problem="not a driver file")
    # A bare name is searched for by the system; a path is relative to the driver file.
    is_path = "/" in library or "\\" in library
    missing = is_path and not (path.parent / library).exists()
    return DriverFile(str(path), library, api_version, "its library is missing" if missing else None)


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that matter to adapters; values that are none of a report's business are not.

    Parameters
    ----------
    variables : mapping
        The environment.
    """
    found = {}
    for name, value in sorted(variables.items()):
        shown = name in _SHOWN_NAMES or name.startswith(_SHOWN_PREFIXES)
        if shown and not any(word in name.upper() for word in _SECRET):
            found[name] = value
        elif shown or name in _PRESENCE or name.startswith(_NAMED_PREFIXES):
            found[name] = "(set)" if value else "(empty)"
    return found
