"""``dmlgpu cumsum``, ``cumprod`` and ``round``: read a file, run the operator, write or show the result."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import AxisError
from .console import CommandError, one_line, say
from .csv_files import read_table, write_table
from .files import check_output, input_format, output_format, read_npy, replacing, write_npy
from .summary import describe, summarize
from .table import Table, array_table

if TYPE_CHECKING:
    from ..runtime.device import Device

__all__ = ["run_operator"]

Result = NDArray[Any] | Table
_Compute = Callable[[NDArray[Any], int | None], NDArray[Any]]


def run_operator(arguments: Namespace) -> int:
    """Run ``cumsum``, ``cumprod`` or ``round`` and return the exit status."""
    source = Path(arguments.input)
    target = None if arguments.output is None else Path(arguments.output)
    kind = input_format(source)
    if target is not None:
        check_output(target)
    result: Result
    if kind == "csv":
        result, device = _run_table(source, arguments)
    else:
        result, device = _run_array(source, target, arguments)
    how = _how(arguments, kind)
    if target is None:
        say(summarize(f"{how} of {one_line(source)}", result, device.summary))
    else:
        _write(target, result)
        say(f"wrote {one_line(target)}: {how} of {one_line(source)}, {describe(result)}, on {device.summary}")
    return 0


def _run_array(source: Path, target: Path | None, arguments: Namespace) -> tuple[NDArray[Any], Device]:
    if arguments.columns is not None or arguments.header != "auto":
        raise CommandError(f"--columns and --header are for .csv files; {source} is an array")
    array = read_npy(source)
    axis = None
    if arguments.command != "round":
        axis = arguments.axis
        if array.ndim == 0:
            raise CommandError(f"{source} holds a single number, which has no axis to run along")
        if axis is None and array.ndim > 1:
            raise CommandError(
                f"{source} has shape {array.shape}; say along which axis to run, with --axis 0 to {array.ndim - 1}"
            )
    if target is not None and output_format(target) == "csv" and array.ndim not in (1, 2):
        raise CommandError(
            f"cannot write {target}: a .csv file has 1 or 2 dimensions while {source} has {array.ndim}; write .npy"
        )
    compute, device = _operator(arguments)
    return compute(array, axis), device


def _run_table(source: Path, arguments: Namespace) -> tuple[Table, Device]:
    table = read_table(source, arguments.header, arguments.columns)
    axis = getattr(arguments, "axis", None) or 0
    if not -2 <= axis < 2:
        raise AxisError(axis, 2)
    longer = getattr(arguments, "include_initial", False)
    if axis % 2 == 1:
        if longer:
            raise CommandError(f"--include-initial along axis 1 would add a column without a name to {source}")
        matrix = table.stacked(f"{source}, along axis 1", "choose columns with --columns")
        compute, device = _operator(arguments)
        return table.with_numbers(compute(matrix, axis).T), device
    arrays = [column.numbers for column in table.columns if column.numbers is not None]
    compute, device = _operator(arguments)
    results: dict[int, NDArray[Any]] = {}
    for dtype in sorted({array.dtype for array in arrays}, key=str):
        same = [i for i, array in enumerate(arrays) if array.dtype == dtype]
        results.update(zip(same, compute(np.column_stack([arrays[i] for i in same]), 0).T, strict=True))
    if longer:
        table = table.with_empty_text(first=not arguments.reverse)
    return table.with_numbers(results[i] for i in range(len(arrays))), device


def _operator(arguments: Namespace) -> tuple[_Compute, Device]:
    """Return a function of an array and an axis, and the device it runs on."""
    from ..arrays.functions import cumulative_prod, cumulative_sum, round
    from ..runtime.device import resolve_device

    device = resolve_device(arguments.device)
    dtype = None if arguments.dtype is None else np.dtype(arguments.dtype)

    def compute(array: NDArray[Any], axis: int | None) -> NDArray[Any]:
        if arguments.command == "round":
            return round(array if dtype is None else array.astype(dtype), mode=arguments.mode, device=device)
        options: dict[str, Any] = {
            "axis": axis,
            "dtype": dtype,
            "include_initial": arguments.include_initial,
            "exclusive": arguments.exclusive,
            "reverse": arguments.reverse,
            "device": device,
        }
        if arguments.command == "cumsum":
            return cumulative_sum(array, precision=arguments.precision, **options)
        return cumulative_prod(array, **options)

    return compute, device


def _write(target: Path, result: Result) -> None:
    with replacing(target) as file:
        if output_format(target) == "csv":
            write_table(file, result if isinstance(result, Table) else array_table(result))
        else:
            write_npy(
                file,
                result.stacked(f"cannot write {target}", "write .csv, or choose a type with --dtype")
                if isinstance(result, Table)
                else result,
            )


def _how(arguments: Namespace, kind: str) -> str:
    """Say what was computed, as in 'reverse cumsum along axis 1'."""
    if arguments.command == "round":
        return f"round ({arguments.mode})"
    words = [word for word in ("exclusive", "reverse") if getattr(arguments, word)]
    if getattr(arguments, "precision", "default") == "compensated":
        words.insert(0, "compensated")
    axis = arguments.axis if arguments.axis is not None or kind == "npy" else 0
    return " ".join([*words, arguments.command, *([] if axis is None else [f"along axis {axis}"])])
