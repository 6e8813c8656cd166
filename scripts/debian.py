"""Debian packages that are unpacked into a folder, not installed: without root, and with apt's settings untouched.

apt gets sources and a state of its own under ``.cache/apt``. The mirror's address is that of the system's sources, so
that another release of Debian (``bookworm-backports``, ``trixie``) comes from where this system's packages come from.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from system import ROOT, fail

APT = ROOT / ".cache" / "apt"
STATUS = Path("/var/lib/dpkg/status")
KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def unpack(packages: Sequence[str], target: Path, *, release: str | None = None, system: bool = True) -> None:
    """Unpack packages with what they depend on into `target`, which appears only when it is complete.

    Parameters
    ----------
    packages
        Names of packages, as apt takes them.
    target
        A folder that does not exist yet, under the checkout.
    release
        A release beside this system's own, as ``bookworm-backports``, whose versions are preferred.
    system
        Leave out what is installed here already, so that the files run with this system's C library. False unpacks
        every dependency of the packages, down to a C library of their own.
    """
    with _downloaded(packages, release, system, "install", "--download-only", "--no-install-recommends", "-y") as debs:
        unfinished = target.with_name(f"{target.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        for deb in debs:
            _run(["dpkg-deb", "--extract", str(deb), str(unfinished)])
        unfinished.rename(target)


@contextmanager
def download(package: str) -> Iterator[Path | None]:
    """Download one package of this system's release, without what it depends on, for as long as the context lasts.

    The path is None where the release has no package of that name.
    """
    with _downloaded([package], None, True, "download") as debs:
        yield debs[0] if debs else None


def libraries(root: Path) -> Path:
    """Return the folder of an unpacked package's shared libraries."""
    return root / "usr" / "lib" / f"{platform.machine()}-linux-gnu"


def library_path(root: Path) -> str:
    """Return the folders of all unpacked shared libraries, as LD_LIBRARY_PATH takes them."""
    folder = libraries(root)
    return ":".join(map(str, (folder, root / folder.relative_to(root / "usr"), folder / "pulseaudio")))


@contextmanager
def _downloaded(packages: Sequence[str], release: str | None, system: bool, *command: str) -> Iterator[list[Path]]:
    """Bring packages by an apt-get command with a state of its own; remove them when the context ends."""
    if not shutil.which("apt-get"):
        fail(f"{', '.join(packages)} would be unpacked from Debian's packages, and this system has no apt-get.")
    state = APT / (release or "system")
    archives = state / "archives"
    shutil.rmtree(archives, ignore_errors=True)
    for folder in (archives / "partial", state / "lists" / "partial", state / "parts"):
        folder.mkdir(parents=True, exist_ok=True)
    # apt's locks lie beside the list of what is installed: with a copy, no other apt is in the way, nor is root needed.
    status = state / "status"
    status.write_bytes(STATUS.read_bytes() if system else b"")
    sources = state / "sources.list"
    sources.write_text(_sources(release))
    settings = {
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": state / "parts",
        "Dir::Etc::Preferences": state / "preferences",
        "Dir::Etc::PreferencesParts": state / "parts",
        "Dir::State": state,
        "Dir::State::Lists": state / "lists",
        "Dir::State::Status": status,
        "Dir::Cache": state,
        "Dir::Cache::Archives": archives,
        "Dir::Log": state,
        "APT::Sandbox::User": "root",  # the user _apt cannot write here
        "APT::Default-Release": release or "",
        "APT::Install-Suggests": "false",
    }
    apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in settings.items())]
    try:
        _run([*apt, "update"])
        if command[0] != "download" or _has(apt, packages[0]):
            _run([*apt, *command, *packages], archives)
        yield sorted(archives.glob("*.deb"))
    finally:
        shutil.rmtree(archives)


def _has(apt: list[str], package: str) -> bool:
    """Return whether the sources have a package of that name."""
    return not subprocess.run([*apt, "download", "--print-uris", package], capture_output=True).returncode


def _sources(release: str | None) -> str:
    """Return apt sources of this system's Debian release, and of `release` from the same mirror."""
    codename = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    own = {codename, f"{codename}-updates", f"{codename}-security"}
    command = ["apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(SITE)", "Created-By: Packages"]
    found = [line.split(maxsplit=2) for line in _run(command).splitlines()]
    lines = {f"{site} {name} main": None for name, component, site in found if name in own and component == "main"}
    mirror = next((site for name, _, site in found if name == codename), None)
    if mirror is None:
        fail(f"apt's sources name no mirror of this system's release, {codename or 'which has no name'}.")
    if release is not None:
        lines[f"{mirror} {release} main"] = None
    keys = f"[signed-by={KEYS}] " if KEYS.is_file() else ""
    return "".join(f"deb {keys}{line}\n" for line in lines)


def _run(command: list[str], folder: Path = ROOT) -> str:
    """Run a command that must succeed; return what it printed."""
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        program = next(word for word in command[1:] if not word.startswith("-"))
        fail(f"{command[0]} {program} failed:\n{done.stdout}")
    return done.stdout
