"""Pure: which rows a report measures, and in which order."""

from __future__ import annotations

from collections.abc import Sequence

from dmlgpu.bench.rows import Row

from ..ledger import SHAPES, TYPES

__all__ = ["OTHERS", "classes", "fitted", "groups", "kernel_rows", "peer_rows", "sizes"]

TABLE = (2**20, 64)
"""A table of a few columns, which GPUs read twice to touch whole sectors. No goal names it."""
OTHERS: Sequence[tuple[tuple[int, ...], int]] = ((TABLE, 0), ((2**16, 1024), 1))
"""What no goal names: the table, and rows of which a workgroup has several."""
STEP = 2
"""Sizes are a factor of 2^2 apart."""
SIZES = 5
_LATE = 2**26
"""Rows of more elements come last: their references take the host longest."""
_OF_KERNELS = 2**24
"""Elements of rows that are measured with every kernel: more tell little more about which is the fastest."""


def fitted(shape: Sequence[int], most: int) -> tuple[int, ...]:
    """Return a shape of at most so many elements: its largest size is halved until it fits.

    Examples
    --------
    >>> fitted((16, 2**20), 2**18), fitted((4096, 4096), 2**20), fitted((4095, 4095), 2**22)
    ((16, 16384), (1024, 1024), (2047, 2047))
    """
    sizes = list(shape)
    product = 1
    for size in sizes:
        product *= size
    while product > most:
        largest = sizes.index(max(sizes))
        product = product // sizes[largest] * (sizes[largest] // 2)
        sizes[largest] //= 2
    return tuple(sizes)


def classes(most: int) -> dict[Row, str]:
    """Return the rows of the problem classes of ``benchmarks.ledger`` and of `OTHERS`, cut to so many elements.

    With each goes the name of its class.
    """
    found: dict[Row, str] = {}
    for dtype in TYPES:
        for shape, axis in (*SHAPES, *OTHERS):
            name = Row("sum", dtype, shape, axis).name
            found.setdefault(Row("sum", dtype, fitted(shape, most), axis), name)
    return found


def sizes(most: int) -> list[Row]:
    """Return one slice, columns, rows and a rounding of float32, at sizes up to a power of two, 4 times apart."""
    top = most.bit_length() - 1
    found = []
    for exponent in range(max(2, top - STEP * (SIZES - 1)), top + 1, STEP):
        square = (2 ** (exponent // 2), 2 ** (exponent - exponent // 2))
        found += [Row("sum", "float32", (2**exponent,), 0), Row("round", "float32", (2**exponent,))]
        found += [Row("sum", "float32", square, axis) for axis in (0, 1)]
    return found


def groups(most: int) -> list[list[Row]]:
    """Return all rows, those of one type and size together: float32 first, the largest last."""
    found: dict[tuple[str, int], list[Row]] = {}
    for row in dict.fromkeys([*classes(most), *sizes(most)]):
        found.setdefault((row.type, row.elements), []).append(row)
    return [
        found[kind, elements]
        for kind, elements in sorted(found, key=lambda key: (key[1] > _LATE, TYPES.index(key[0]), key[1]))
    ]


def kernel_rows(most: int) -> list[Row]:
    """Return the rows that are measured with every kernel: float32 of all classes, none of them large."""
    return [row for row in classes(min(most, _OF_KERNELS)) if row.type == "float32"]


def peer_rows(most: int) -> list[Row]:
    """Return what other libraries are measured with: every kind of axis, few and many slices, and a rounding."""
    shapes = ((2**26,), 0), ((8192, 8192), 1), ((8192, 8192), 0), ((512, 512, 256), 1), ((2**22, 16), 1), (TABLE, 0)
    scans = [Row("sum", "float32", fitted(shape, most), axis) for shape, axis in shapes]
    rounding = Row("round", "float32", fitted((2**26,), most))
    return [*scans, Row("sum", "int64", fitted((8192, 4096), most), 0), rounding]
