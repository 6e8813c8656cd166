"""Scans and roundings of dask arrays, with the bits of one call on the whole, whatever the chunks.

Each chunk is scanned from a carry that is predicted from records of the tiles before it, so that chunks run side by
side. A chain of short tasks then compares each prediction with what the chunk before it has led to, bit by bit. A chunk
whose prediction was wrong is scanned again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..dtypes import by_dtype
from ..errors import ArgumentError, ArrayTypeError, with_type
from ..layout import MAX_DIMENSIONS, ceil_div
from ..lazy import resolve_device
from ..planning.pieces import CARRY_WORDS
from ..planning.windows import TILE
from .host import host_empty, refuse_masked_chunk
from .pieces import DeviceCarries, PieceKind, Treatment, records_of_cube, scan_cube
from .prediction import is_same_carry, predicted

if TYPE_CHECKING:
    import dask.array

__all__ = ["check_chunks", "round_chunks", "scan_chunks"]

Words = NDArray[np.uint32]


def check_chunks(x: dask.array.Array, device: object) -> None:
    """Refuse what cannot be cut or computed, before any task runs."""
    if type(x).__name__ != "Array" or not isinstance(x.chunks, tuple):  # a delayed value has any attribute
        raise ArrayTypeError(f"x is {with_type(x)}: of dask's collections only arrays are taken")
    if np.isnan([size for sizes in x.chunks for size in sizes]).any():
        raise ArgumentError("x has chunks of unknown size (nan): call x.compute_chunk_sizes() first")
    if x.ndim > MAX_DIMENSIONS:
        raise ArgumentError(f"x has {x.ndim} dimensions; at most {MAX_DIMENSIONS} are supported: reshape or squeeze it")
    by_dtype(x.dtype, "x")
    refuse_masked_chunk(x._meta)
    if device is not None and (isinstance(device, bool) or not isinstance(device, str | int | np.integer)):
        raise ArrayTypeError(
            f"device is {with_type(device)}, which cannot be sent to dask's workers: give a part of an adapter's "
            "summary, or its index"
        )


def _checked(x: dask.array.Array) -> dask.array.Array:
    """Return the same array, whose tasks refuse chunks of other shapes than dask believes, before they are cut."""
    return x.map_blocks(_checked_chunk, dtype=x.dtype, meta=x._meta)


def _checked_chunk(chunk: Any, block_info: Any = None) -> Any:
    shape = tuple(end - begin for begin, end in block_info[0]["array-location"])
    if not isinstance(getattr(chunk, "shape", None), tuple):
        raise ArgumentError(f"chunk is {with_type(chunk)} while x.chunks says an array of shape {shape}: return arrays")
    if chunk.shape != shape:
        raise ArgumentError(
            f"chunk has shape {chunk.shape} while x.chunks says {shape}: give chunks= to map_blocks, or call "
            "compute_chunk_sizes()"
        )
    return chunk


def round_chunks(x: dask.array.Array, mode: str, out: object, device: Any) -> dask.array.Array:
    """Return the rounding of each chunk by itself."""
    check_chunks(x, device)
    _no_out(out)
    native = x.dtype.newbyteorder("=")
    meta = np.empty((0,) * x.ndim, native)
    return _checked(x).map_blocks(_round, native, mode=mode, device=device, dtype=native, meta=meta)


def _round(chunk: NDArray[Any], native: np.dtype[Any], mode: Any, device: str | int | None) -> Any:
    """Return the rounding of a chunk in the type that its dask array has, as scans do."""
    from .functions import round

    refuse_masked_chunk(chunk)
    return round(np.asarray(chunk, native), mode=mode, device=device)


def _no_out(out: object) -> None:
    if out is not None:
        raise ArrayTypeError("out cannot be given for a dask array, which is computed later: store its result instead")


def scan_chunks(
    x: dask.array.Array, kind: PieceKind, include_initial: bool, out: object, device: str | int | None
) -> dask.array.Array:
    """Return the scan of a dask array along `kind.axis`, in the chunks of `x`.

    Parameters
    ----------
    x : dask.array.Array
        What `check_chunks` accepts.
    kind : PieceKind
        What to compute.
    include_initial : bool
        Whether to put the identity first, in a chunk of its own.
    out : object
        Refused.
    device : str, int or None
        The device, by name or index as each worker knows it.
    """
    import dask.array as da
    from dask.base import tokenize
    from dask.highlevelgraph import HighLevelGraph

    _no_out(out)
    axis, options, length = kind.axis, kind.options, x.shape[kind.axis]
    if x.size == 0:
        result = da.zeros(x.shape, dtype=kind.element.dtype, chunks=x.chunks)
    else:
        aligned = _checked(x).rechunk({axis: _aligned(x.chunks[axis], length, options.reverse)}, method="tasks")
        name = f"dmlgpu-{kind.operator.value}-{tokenize(x, kind, device)}"
        # The maxima are of inclusive sums, and the identity comes before them.
        scan = replace(kind, options=options._replace(exclusive=False, monotone=False)) if options.monotone else kind
        graph = _graph(name, aligned, scan, device)
        layers = HighLevelGraph.from_collections(name, graph, dependencies=[aligned])
        result = da.Array(layers, name, aligned.chunks, dtype=kind.element.dtype)
        if options.monotone:
            result = _maxima(result, kind)
        result = result.rechunk({axis: x.chunks[axis]}, method="tasks")
    return _after_identity(result, kind) if include_initial else result


def _maxima(sums: dask.array.Array, kind: PieceKind) -> dask.array.Array:
    """Return the running maximum of sums. It needs no device: a maximum never rounds."""
    from dask.array.reductions import cumreduction

    axis, options, dtype = kind.axis, kind.options, kind.element.dtype
    whole, but_last = (slice(None),) * axis, slice(1, None) if options.reverse else slice(None, -1)
    turned = sums[(*whole, slice(None, None, -1))] if options.reverse else sums
    least = -np.inf if dtype.kind == "f" else np.iinfo(dtype).min
    result = cumreduction(_maxima_of_chunk, _larger, least, turned, axis=axis, dtype=dtype)
    if options.reverse:
        result = result[(*whole, slice(None, None, -1))]
    return _after_identity(result, kind)[(*whole, but_last)] if options.exclusive else result


def _maxima_of_chunk(chunk: NDArray[Any], axis: int) -> NDArray[Any]:
    from ..reference.maximum import running_maximum

    return np.moveaxis(running_maximum(np.moveaxis(chunk, axis, -1)), -1, axis)


def _larger(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Return the larger one of each two members."""
    from ..reference.maximum import running_maximum

    return running_maximum(np.stack(np.broadcast_arrays(a, b), axis=-1))[..., -1]


def _after_identity(x: dask.array.Array, kind: PieceKind) -> dask.array.Array:
    """Return an array with the identity before it, in a chunk of its own."""
    import dask.array as da

    axis = kind.axis
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    chunks = (*x.chunks[:axis], (1,), *x.chunks[axis + 1 :])
    first = da.full(shape, kind.operator.identity, dtype=kind.element.dtype, chunks=chunks)
    return da.concatenate([x, first] if kind.options.reverse else [first, x], axis=axis)


def _aligned(sizes: Sequence[int], length: int, reverse: bool) -> tuple[int, ...]:
    """Return chunks that begin at whole tiles, counted in traversal order, each near one of `sizes`."""
    ordered = sizes[::-1] if reverse else sizes
    ends = sorted({min(ceil_div(end, TILE) * TILE, length) for end in itertools.accumulate(ordered)} - {0})
    found = tuple(end - begin for begin, end in itertools.pairwise([0, *ends]))
    return found[::-1] if reverse else found


def _graph(name: str, x: dask.array.Array, kind: PieceKind, device: str | int | None) -> dict[Any, Any]:
    """Return the tasks of a scan of aligned chunks: records, carries, scans, checks and results."""
    axis, many = kind.axis, len(x.chunks[kind.axis])
    tasks: dict[Any, Any] = {}
    for place in itertools.product(*(range(len(sizes)) for i, sizes in enumerate(x.chunks) if i != axis)):

        def key(what: str, turn: int, place: tuple[int, ...] = place) -> tuple[Any, ...]:
            index = many - 1 - turn if kind.options.reverse else turn
            return (what, *place[:axis], index, *place[axis:])

        carries = (f"carries-{name}", *place)
        records = [key(f"tiles-{name}", turn) for turn in range(many - 1)]
        tasks[carries] = (predicted, kind, records)
        for turn in range(many):
            chunk, scan = key(x.name, turn), key(f"scan-{name}", turn)
            last = turn == many - 1
            carry = (_picked, carries, turn - 1) if turn else None
            tasks[scan] = (scan_chunk, kind, device, chunk, carry, last)
            if not last:
                tasks[records[turn]] = (records_of_chunk, kind, device, chunk)
            if turn == 0:
                tasks[key(f"end-{name}", 0)] = (_end, scan)
                tasks[key(name, 0)] = (_results, scan)
                continue
            before = key(f"end-{name}", turn - 1)
            tasks[key(name, turn)] = (settled_chunk, kind, device, chunk, scan, carry, before, last)
            if not last:
                tasks[key(f"end-{name}", turn)] = (end_of_chunk, kind, device, chunk, scan, carry, before)
    return tasks


class End(NamedTuple):
    """What a chunk leaves for the next one, and which subnormal numbers the device keeps that computed it."""

    carry: Words | None
    treatment: Treatment | None


class Scanned(NamedTuple):
    """A chunk that was scanned from a predicted carry."""

    results: NDArray[Any]
    end: End


def _cube(kind: PieceKind, chunk: NDArray[Any]) -> NDArray[Any]:
    """Return a chunk with the dimensions before and after the axis as one each; a view where it is contiguous."""
    refuse_masked_chunk(chunk)
    shape = chunk.shape
    outer, inner = math.prod(shape[: kind.axis]), math.prod(shape[kind.axis + 1 :])
    return np.asarray(chunk).reshape(outer, shape[kind.axis], inner)


def records_of_chunk(kind: PieceKind, device: str | int | None, chunk: NDArray[Any]) -> Words:
    """Return what becomes of each tile of a chunk by itself: an array of (slices, tiles in traversal order, words)."""
    records = records_of_cube(kind, resolve_device(device), _cube(kind, chunk))
    outer, inner, *rest = records.shape
    return records.reshape(outer * inner, *rest)  # of which there may be none


def scan_chunk(
    kind: PieceKind, device: str | int | None, chunk: NDArray[Any], before: Words | None, last: bool
) -> Scanned:
    """Scan a chunk from the carry before it; from the beginning of slices without one."""
    opened = resolve_device(device)
    cube = _cube(kind, chunk)
    out = host_empty(cube.shape, kind.element)
    carry = None if before is None else before.reshape(cube.shape[0], cube.shape[2], CARRY_WORDS)
    after = scan_cube(kind, opened, cube, out, carry, not last)
    assert not isinstance(after, DeviceCarries), "those of results on the host are on the host"
    return Scanned(out.reshape(chunk.shape), End(after, Treatment.of(opened, kind)))


def end_of_chunk(
    kind: PieceKind, device: str | int | None, chunk: NDArray[Any], scanned: Scanned, carry: Words, before: End
) -> End:
    """Return what a chunk leaves, after another scan if the one that was made began with a wrong carry."""
    if _is_right(kind, scanned, carry, before):
        return scanned.end
    assert before.carry is not None
    opened = resolve_device(device)
    after = scan_cube(kind, opened, _cube(kind, chunk), None, before.carry, True)
    assert not isinstance(after, DeviceCarries), "those of no results are on the host"
    end = End(after, Treatment.of(opened, kind))
    _check_alike(end, before)
    return end


def settled_chunk(
    kind: PieceKind,
    device: str | int | None,
    chunk: NDArray[Any],
    scanned: Scanned,
    carry: Words,
    before: End,
    last: bool,
) -> NDArray[Any]:
    """Return the results of a chunk, after another scan if the one that was made began with a wrong carry."""
    if _is_right(kind, scanned, carry, before):
        return scanned.results
    again = scan_chunk(kind, device, chunk, before.carry, last)
    _check_alike(again.end, before)
    return again.results


def _is_right(kind: PieceKind, scanned: Scanned, carry: Words, before: End) -> bool:
    """Whether a scan began with what the chunk before it has left."""
    assert before.carry is not None
    _check_alike(scanned.end, before)
    return is_same_carry(kind, carry, before.carry)


def _check_alike(end: End, before: End) -> None:
    """Refuse chunks of devices that give other bits."""
    if end.treatment is not None and before.treatment is not None:
        end.treatment.check_same(before.treatment)


def _picked(carries: list[Words], number: int) -> Words:
    return carries[number]


def _end(scanned: Scanned) -> End:
    return scanned.end


def _results(scanned: Scanned) -> NDArray[Any]:
    return scanned.results
