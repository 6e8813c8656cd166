"""What the set-up scripts share: messages, and packages of Debian and Ubuntu."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent


def say(message: str) -> None:
    """Tell the user what happens next."""
    print(f"set-up: {message}", flush=True)


def fail(message: str) -> NoReturn:
    """End the script with a message on standard error and exit status 1."""
    sys.exit(f"set-up: {message}")


def as_root(command: list[str]) -> list[str]:
    """Return the command that runs `command` as root: itself, or through sudo."""
    return command if os.geteuid() == 0 else ["sudo", *command]


def run_as_root(command: list[str]) -> tuple[bool, str]:
    """Run a command as root without questions; return whether it succeeded, and what it printed."""
    if os.geteuid() != 0 and not shutil.which("sudo"):
        fail("this needs root, and there is no sudo here. Run the command above as root, then make again.")
    full = as_root(["env", "DEBIAN_FRONTEND=noninteractive", *command])
    # sudo asks for a password on the terminal itself, so capturing its output hides no question.
    done = subprocess.run(full, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode == 0, done.stdout


APT_UPDATE = ["apt-get", "update", "-qq"]


def apt_install(packages: list[str], reason: str) -> None:
    """Install Debian packages, after saying why and with which commands."""
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
    say(f"{reason}:")
    for command in (APT_UPDATE, install):
        say("  " + shlex.join(as_root(command)))
    # An update fails as a whole when one of the user's other package sources does, so only the installation counts.
    _, update_output = run_as_root(APT_UPDATE)
    installed, output = run_as_root(install)
    if not installed:
        fail(f"the installation failed:\n{update_output}{output}")
