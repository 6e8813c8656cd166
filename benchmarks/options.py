"""Options that several benchmarks have, and one sentence for each bad one, before anything is measured."""

from __future__ import annotations

from argparse import Action, ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dmlgpu
from dmlgpu.cli.bench import count_of, positive_of

__all__ = ["add_count", "add_device", "add_file", "add_seconds", "opened", "whole_from"]


def add_device(parser: ArgumentParser) -> None:
    """Add the option that chooses a device."""
    parser.add_argument("--device", help="an adapter's index or part of its summary")


def opened(parser: ArgumentParser, device: str | None) -> dmlgpu.Device:
    """Return the device that the option chooses, or end with what is wrong with it."""
    try:
        return dmlgpu.Device(device)
    except dmlgpu.DmlGpuError as error:
        parser.error(str(error))


def add_count(parser: ArgumentParser, name: str, default: int, **more: Any) -> Action:
    """Add an option that is a number of samples."""
    return parser.add_argument(name, type=count_of, default=default, **more)


def add_seconds(parser: ArgumentParser, name: str, default: float, **more: Any) -> Action:
    """Add an option that is a time."""
    return parser.add_argument(name, type=positive_of, default=default, **more)


def whole_from(least: int, most: int) -> Callable[[str], int]:
    """Return what reads a whole number of a range."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdecimal() or len(text) > 20 or not least <= int(text) <= most:
            raise ArgumentTypeError(f"{text!r} is not a whole number from {least} to {most}")
        return int(text)

    return read


def add_file(parser: ArgumentParser, name: str, **more: Any) -> Action:
    """Add an option that is a file to write, in a folder that there is."""
    return parser.add_argument(name, metavar="FILE", type=_file, **more)


def _file(text: str) -> Path:
    path = Path(text)
    if not path.parent.is_dir():
        raise ArgumentTypeError(f"{text!r} is in no folder that there is")
    if path.is_dir():
        raise ArgumentTypeError(f"{text!r} is a folder; give a file")
    return path
