"""Names of files: which format they have, and what is checked of input and output files before the work."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from .console import CommandError
from .raw_files import STANDARD_INPUT, STANDARD_OUTPUT, check_input
from .replacement import check_replaceable

__all__ = ["Format", "check_output", "check_outputs", "input_format", "output_format"]

Format = Literal["npy", "npz", "csv", "parquet"]


def input_format(path: Path) -> Format:
    """Return the format of an input file by its name, after checking that it is a file with something in it.

    Raises
    ------
    CommandError
        If it is a directory, a device, empty, or has another extension.
    OSError
        If it cannot be looked at.
    """
    kind = _format(path, "reads")
    if path is not STANDARD_INPUT:
        check_input(path)
    elif sys.stdin is not None and sys.stdin.isatty():
        raise CommandError("- reads a .npy file from standard input, which is a terminal: send one through a pipe")
    return kind


def check_output(path: Path) -> Format:
    """Return the format of an output file by its name, after checking what can be checked before the work.

    Raises
    ------
    CommandError
        If it has another extension, or as for `check_replaceable`.
    """
    kind = output_format(path)
    if path is not STANDARD_OUTPUT:
        check_replaceable(path)
    elif sys.stdout.isatty():
        raise CommandError("-o - writes a .npy file to standard output, which is a terminal: send it through a pipe")
    return kind


def output_format(path: Path) -> Format:
    """Return the format of an output file by its name; CommandError if that has another extension."""
    return _format(path, "writes")


def _format(path: Path, verb: str) -> Format:
    if path is STANDARD_INPUT or path is STANDARD_OUTPUT:
        return "npy"
    match path.suffix.lower():
        case ".npy":
            return "npy"
        case ".npz":
            return "npz"
        case ".csv":
            return "csv"
        case ".parquet":
            return "parquet"
        case suffix:
            if os.path.isdir(path):
                raise CommandError(f"{str(path)!r} is a folder; give a file in it")
            what = f"the extension {suffix}" if suffix else "no extension"
            raise CommandError(
                f"{str(path)!r} has {what}; dmlgpu {verb} .npy, .npz, .csv and .parquet files, or a .npy file through "
                "'-'"
            )


def check_outputs(options: Mapping[str, str | None]) -> dict[str, Path]:
    """Return the output files that options name, after `check_replaceable` and that none is named twice.

    Parameters
    ----------
    options : mapping of str to str or None
        The files by the options that name them.
    """
    for option, name in options.items():
        if name == "":  # which is a folder to Path
            raise CommandError(f"{option} is empty: give the name of a file")
        if name == "-":
            raise CommandError(f"{option} is '-', which is no file's name: give one, or ./- if that is its name")
    paths = {option: Path(name) for option, name in options.items() if name is not None}
    options_of: dict[str, str] = {}
    for option, path in paths.items():
        check_replaceable(path)
        other = options_of.setdefault(os.path.realpath(path), option)
        if other != option:
            raise CommandError(f"{other} and {option} both name {path}: give each a file of its own")
    return paths
