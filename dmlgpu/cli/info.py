"""``dmlgpu info``: what a bug report needs."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import sys
import textwrap
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dmlgpu

from ..errors import DmlGpuError
from ..planning.tuning import DEFAULTS
from .console import say

if TYPE_CHECKING:
    from ..runtime.adapters import AdapterDescription

__all__ = ["DriverFile", "add_arguments", "collect", "driver_files", "driver_folders", "environment", "render", "run"]

LIMITS = {
    "max-buffer-size": "largest buffer",
    "max-storage-buffer-binding-size": "largest binding",
    "min-storage-buffer-offset-alignment": "binding offsets",
    "max-storage-buffers-per-shader-stage": "bindings",
    "max-compute-workgroups-per-dimension": "workgroups a dimension",
    "max-compute-invocations-per-workgroup": "invocations a workgroup",
    "max-compute-workgroup-storage-size": "workgroup memory",
}
"""The limits that plans depend on, and their names in the report."""
_FXC = (
    "by default wgpu compiles for it with FXC, which takes up to minutes for the first call of a kind; take the same "
    "GPU through Vulkan where it is listed, or name DXC's dxcompiler.dll in DMLGPU_DXC (docs/fxc.md)"
)

FEATURES = ("shader-f64", "shader-f16", "subgroup", "timestamp-query", "mappable-primary-buffers")

_BYTES = {name for name in LIMITS if "size" in name or "alignment" in name}
_WIDTH = 110

_DESCRIPTION = """\
What a bug report needs: versions, adapters, limits, features, drivers and
environment.

examples:
  dmlgpu info                     the report
  dmlgpu info --device llvmpipe   whether this adapter can be used
  dmlgpu info --json > info.json  every limit and feature of every adapter"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = _DESCRIPTION
    parser.add_argument("--json", action="store_true", help="print JSON, with every limit and feature of every adapter")


def run(arguments: Namespace) -> int:
    """Print the report; the status is 1 if no device can be used."""
    report = collect(arguments.device)
    say(json.dumps(report, indent=2) if arguments.json else render(report))
    return 1 if report["problems"] else 0


def collect(choice: str | None = None) -> dict[str, Any]:
    """Gather the report, as values that JSON can hold.

    Parameters
    ----------
    choice : str, optional
        The adapter to open, as ``device=`` takes it.
    """
    source, files = driver_files(os.environ)
    report: dict[str, Any] = {
        "versions": versions(),
        "adapters": [],
        "chosen": None,
        "device": None,
        "problems": [],
        "vulkan": {"loader": vulkan_loader(), "source": source, "driver_files": [asdict(file) for file in files]},
        "environment": environment(os.environ),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that an adapter is software is in the report
        try:
            _inspect(report, choice)
        except DmlGpuError as error:
            report["problems"] += [str(error), *([] if report["adapters"] else _causes(report["vulkan"]))]
        except Exception as error:  # whatever breaks is what the report is for
            report["problems"].append(f"{type(error).__name__}: {error}")
    return report


def _inspect(report: dict[str, Any], choice: str | None) -> None:
    """Add the adapters and the device, as far as one can get."""
    from ..runtime.adapters import devices, select_adapter
    from ..runtime.device import resolve_device

    found = devices()
    report["adapters"] = [_adapter(description) for description in found]
    chosen = select_adapter(choice)
    report["chosen"] = {"index": chosen.index, "reason": _reason(choice, len(found))}
    device = resolve_device(chosen.index)
    report["device"] = {
        "native_float64": device.limits.float64,
        "keeps_subnormals": dict(device.subnormals()),
        "tuning": {
            name: value for name, value in asdict(device.limits.tuning).items() if value != getattr(DEFAULTS, name)
        },
    }


def _causes(vulkan: Mapping[str, Any]) -> list[str]:
    """Return what Vulkan's files say about why there is no adapter."""
    causes = []
    if vulkan["loader"].endswith("missing"):
        causes.append(
            f"{vulkan['loader']}: install the Vulkan loader (Debian, Ubuntu: sudo apt-get install libvulkan1)"
        )
    if vulkan["source"].startswith("VK_") and all(file["problem"] for file in vulkan["driver_files"]):
        causes.append(f"{vulkan['source']} names no usable driver file: correct it or unset it")
    return causes


def _adapter(description: AdapterDescription) -> dict[str, Any]:
    return {
        "index": description.index,
        "summary": description.summary,
        "name": description.name,
        "backend": description.backend,
        "type": description.adapter_type,
        "software": description.is_software,
        "vendor": description.vendor,
        "driver": description.driver,
        "limits": dict(sorted(description.limits.items())),
        "features": sorted(description.features),
    }


def _reason(choice: str | None, count: int) -> str:
    """Say why this adapter is used."""
    if choice is not None:
        return f"--device {choice} names it"
    named = os.environ.get("DMLGPU_ADAPTER")
    if named:
        return f"DMLGPU_ADAPTER={named} names it"
    if count == 1:
        return "it is the only one"
    return "the best one: GPUs before software, then Vulkan and Metal before D3D12 before OpenGL"


def render(report: Mapping[str, Any]) -> str:
    """Return the report as text for people."""
    lines = [f"{name:<12} {value}" for name, value in report["versions"].items()]
    for problem in report["problems"]:
        lines += ["", *_wrapped("problem: ", problem)]
    chosen = report["chosen"]
    lines += ["", "adapters" if report["adapters"] else "adapters: none"]
    for adapter in report["adapters"]:
        lines += _render_adapter(adapter, chosen["reason"] if chosen and chosen["index"] == adapter["index"] else None)
    if report["device"]:
        kept = ", ".join(f"{name} {_yes(keeps)}" for name, keeps in report["device"]["keeps_subnormals"].items())
        native = report["device"]["native_float64"]
        lines += ["", "device"]
        lines += _wrapped("  float64              ", "native" if native else "on 32-bit words, with the same bits")
        lines += _wrapped("  subnormals survive   ", kept)
        tuned = ", ".join(f"{name} {value}" for name, value in report["device"]["tuning"].items())
        lines += _wrapped("  tuning               ", tuned or "the defaults")
    vulkan = report["vulkan"]
    lines += ["", f"Vulkan loader: {vulkan['loader']}"]
    lines += [f"Vulkan driver files, from {vulkan['source']}{'' if vulkan['driver_files'] else ': none'}"]
    for file in vulkan["driver_files"]:
        content = f"{file['library']}, Vulkan {file['api_version']}" if file["library"] else ""
        lines.append(f"  {file['path']}: {'; '.join(filter(None, [content, file['problem']]))}")
    lines += ["", "environment" if report["environment"] else "environment: nothing that matters is set"]
    lines += [f"  {name}={value}" for name, value in report["environment"].items()]
    return "\n".join(lines)


def _render_adapter(adapter: Mapping[str, Any], reason: str | None) -> list[str]:
    lines = [f"{'*' if reason else ' '} {adapter['index']}  {adapter['summary']}"]
    if reason:
        lines += _wrapped("     used      ", reason)
    kind = f"{adapter['type']}{', software' if adapter['software'] else ''}"
    lines += _wrapped("     type      ", f"{kind}; backend {adapter['backend']}")
    lines += _wrapped("     driver    ", "; ".join(filter(None, [adapter["driver"], adapter["vendor"]])) or "unknown")
    limits = adapter["limits"]
    shown = [f"{label} {_limit(name, limits[name])}" for name, label in LIMITS.items() if name in limits]
    lines += _wrapped("     limits    ", ", ".join(shown))
    lines += _wrapped("     features  ", ", ".join(f"{name} {_yes(name in adapter['features'])}" for name in FEATURES))
    if adapter["backend"] == "D3D12":
        lines += _wrapped("     note      ", _FXC)
    return lines


def _limit(name: str, value: int) -> str:
    if name not in _BYTES:
        return str(value)
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if value >= size and value % size == 0:
            return f"{value // size} {unit}"
    return f"{value} bytes"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _wrapped(label: str, text: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=label, subsequent_indent=" " * len(label), break_long_words=False
    ) or [label.rstrip()]


# What needs no device: versions, Vulkan's driver files, environment variables

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
            files += (
                sorted(place.glob("*.json")) if os.path.isdir(place) else [place] if place.suffix == ".json" else []
            )
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
    missing = is_path and not os.path.exists(path.parent / library)
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
