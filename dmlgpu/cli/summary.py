"""Summaries of results, in a few lines for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import counted
from .console import columns, one_line
from .npz_files import Archive
from .table import Table, size_of_table

__all__ = ["Statistics", "describe", "statistics", "summarize"]

_SHOWN = 3
_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Statistics:
    """What the elements of an array reach.

    Attributes
    ----------
    least, greatest : scalar or None
        The extremes of the elements that are numbers; None if there is none.
    nans : int
        The number of NaN elements.
    """

    least: Any
    greatest: Any
    nans: int


def statistics(array: NDArray[Any]) -> Statistics:
    """Return the extremes of an array in pieces, so that a large one needs no second copy."""
    flat = array.reshape(-1)
    least = greatest = None
    nans = 0
    for start in range(0, flat.size, _AT_ONCE):
        part = flat[start : start + _AT_ONCE]
        missing = np.isnan(part) if part.dtype.kind == "f" else np.zeros(part.shape, np.bool_)
        nans += int(np.count_nonzero(missing))
        present = part[~missing]
        if not present.size:
            continue
        low, high = present.min(), present.max()
        least = low if least is None else min(least, low)
        greatest = high if greatest is None else max(greatest, high)
    return Statistics(least, greatest, nans)


def describe(result: NDArray[Any] | Table | Archive) -> str:
    """Return the type and shape of a result, as in 'float32 (4, 3)', or the size of a table."""
    if isinstance(result, Archive):
        return counted(len(result.arrays), "array")
    if isinstance(result, Table):
        return size_of_table(result.rows, len(result.columns), len(result.columns) - len(result.numeric))
    return f"{result.dtype} {result.shape}"


def summarize(title: str, result: NDArray[Any] | Table | Archive, device: str) -> str:
    """Return a summary of a result.

    Parameters
    ----------
    title : str
        What was computed of what.
    result : NDArray, Table or Archive
        The result.
    device : str
        The adapter that computed it.
    """
    size = describe(result)
    if isinstance(result, Table):
        size = size_of_table(result.rows, len(result.columns), 0)  # those that are kept are named below
    lines = [f"{title}: {size}", f"on {device}", ""]
    if isinstance(result, Table):
        cells = [["column", "type", "first", "last", "min", "max", "NaN"]]
        kept = []
        for column in result.columns:
            if column.numbers is None:
                kept.append(column.name)
            else:
                values, found = column.numbers, statistics(column.numbers)
                ends = [values[0], values[-1], found.least, found.greatest]
                cells.append([column.name, str(values.dtype), *map(_number, ends), str(found.nans)])
        lines += columns(cells)
        if kept:
            as_text = all(column.is_text for column in result.columns if column.numbers is None)
            lines += ["", f"kept as {'text' if as_text else 'they are'}: {', '.join(kept)}"]
    elif isinstance(result, Archive):
        for name, array in result.arrays.items():
            lines += [f"{one_line(name)}: {describe(array)}", *_array_lines(array), ""]
        lines.pop()
    else:
        lines += _array_lines(result)
    return "\n".join([*lines, "", "-o FILE writes the result."])


def _array_lines(array: NDArray[Any]) -> list[str]:
    found = statistics(array)
    flat = array.reshape(-1)
    rows = [["first", _sequence(flat[:_SHOWN])]]
    if flat.size > _SHOWN:
        rows.append(["last", _sequence(flat[-min(_SHOWN, flat.size - _SHOWN) :])])
    rows += [["min", _number(found.least)], ["max", _number(found.greatest)]]
    if found.nans:
        rows.append(["NaN", f"{found.nans} of {flat.size}"])
    return columns(rows) if flat.size else ["no elements"]


def _sequence(values: NDArray[Any]) -> str:
    return "  ".join(map(_number, values))


def _number(value: Any) -> str:
    """Write a number with the digits that its type holds reliably, up to ten."""
    if value is None:
        return "-"
    if isinstance(value, np.floating):
        return f"{float(value):.{min(np.finfo(value.dtype).precision, 10)}g}"
    return str(value)
