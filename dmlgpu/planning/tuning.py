"""Pure: the thresholds between kernels that `dmlgpu tune` measures. Results never depend on them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from ..errors import ArgumentError, shown

__all__ = ["DEFAULTS", "Tuning"]

_MOST = 2**32


@dataclass(frozen=True)
class Tuning:
    """The thresholds of a device.

    Attributes
    ----------
    short_slice : int
        Slices up to this length are scanned by an invocation each: a workgroup's lanes would be mostly idle.
    packed_slice : int
        Of slices up to this length that follow each other without gaps, a workgroup scans as many as it has room for,
        by way of its memory. Longer ones fill most of a workgroup each.
    many_slices : int
        As many slices side by side fill a GPU with an invocation each, and their memory accesses coalesce.
    many_rows : int
        As many slices fill a GPU with a workgroup each.
    enough_strips : int
        As many strips of columns keep a GPU busy with a workgroup each, so that wider ones, which touch more of a row
        at once, are better than more. Twice as many of 16-bit floats, and where rows begin inside words: such strips
        have half as many bytes on their way, 16 KiB. Rows of less than a sector have a strip for each array.
    tile_columns : int
        As many columns of 32 bits side by side, where they are too few strips to fill a GPU, are worth workgroups that
        take parts of several and read them row by row. Others touch a sector for each element. Rows of less than a
        sector, without gaps, count as 8.
    lookback_elements : int
        Of slices of floats without gaps, too few for a workgroup each, up to so many elements in all are read once, by
        workgroups that look back for what comes before their tiles. More are read twice, first for the totals of tiles,
        so that no workgroup waits for another. 2^32 for any number. Integers and maxima are always read once.
    slices_a_core : int
        On a CPU, as many slices for each core are worth an invocation each, which loses less by idle lanes (a core
        takes 8 at a time) than other kernels do by reading twice or waiting.
    few_slices : int
        On a CPU, up to as many go to workgroups of 8 invocations, to reach all cores; with more, the workgroups cost
        more.
    few_elements : int
        On a CPU, slices of up to as many are scanned by an invocation each however few they are: an invocation a tile
        takes several dispatches, which cost more than the cores that would otherwise be idle. Half as many of floats in
        place, of compensated sums and of float64 on words.

    Raises
    ------
    ArgumentError
        If one is no integer from 0 to 2^32.
    """

    short_slice: int = 256
    packed_slice: int = 2048
    many_slices: int = 4096
    many_rows: int = 128
    enough_strips: int = 128
    tile_columns: int = 8
    lookback_elements: int = _MOST
    slices_a_core: int = 4
    few_slices: int = 2048
    few_elements: int = 2**14

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if type(value) is not int or not 0 <= value <= _MOST:
                raise ArgumentError(f"{field.name} is {shown(value)}; give an integer from 0 to 2^32")


DEFAULTS: Final = Tuning()
"""For GPUs from what plans move and an H200 (docs/performance.md), for software drivers measured
(docs/notes/software-drivers.md)."""
