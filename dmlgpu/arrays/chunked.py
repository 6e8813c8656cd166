"""Scans and roundings of dask arrays, with the bits of one call on the whole, whatever the chunks.

Each chunk is scanned from a carry that is predicted from the totals of the tiles before it, so that chunks run side by
side. A chain of short tasks then scans only the first tile of each chunk from the carry that is true. If what follows
the tile is what the prediction led to, the rest of the chunk is right as it is; otherwise it is scanned again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..dtypes import by_dtype
from ..errors import ArgumentError, ArrayTypeError, with_type
from ..layout import MAX_DIMENSIONS, ceil_div
from ..lazy import resolve_device
from ..planning.pieces import CARRY_WORDS
from ..planning.problem import Operator, Precision
from ..planning.windows import SPAN, TILE
from .pieces import PieceKind, Treatment, cut, scan_cube

if TYPE_CHECKING:
    import dask.array

__all__ = ["check_chunks", "round_chunks", "scan_chunks"]

_S, _C, _LAST, _FLAGS = 0, 2, 4, 6
"""The words of a carry, as ``wgsl/lib/carry_state.wgsl`` has them."""
_HAS_S = 0x100
_TILES_A_SPAN = SPAN // TILE

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
    if device is not None and (isinstance(device, bool) or not isinstance(device, str | int)):
        raise ArrayTypeError(
            f"device is {with_type(device)}, which cannot be sent to dask's workers: give a part of an adapter's "
            "summary, or its index"
        )


def round_chunks(x: dask.array.Array, mode: str, out: object, device: Any) -> dask.array.Array:
    """Return the rounding of each chunk by itself."""
    check_chunks(x, device)
    _no_out(out)
    return x.map_blocks(_round, mode=mode, device=device, dtype=x.dtype, meta=np.empty((0,) * x.ndim, x.dtype))


def _round(chunk: NDArray[Any], mode: Any, device: str | int | None) -> Any:
    from .functions import round

    return round(np.asarray(chunk), mode=mode, device=device)


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
    axis, length = kind.axis, x.shape[kind.axis]
    if x.size == 0:
        result = da.zeros(x.shape, dtype=kind.element.dtype, chunks=x.chunks)
    else:
        aligned = x.rechunk({axis: _aligned(x.chunks[axis], length, kind.reverse)}, method="tasks")
        name = f"dmlgpu-{kind.operator.value}-{tokenize(x, kind, device)}"
        # The maxima are of inclusive sums, and the identity comes before them.
        scan = replace(kind, exclusive=False, monotone=False) if kind.monotone else kind
        graph = _graph(name, aligned, scan, device)
        layers = HighLevelGraph.from_collections(name, graph, dependencies=[aligned])
        result = da.Array(layers, name, aligned.chunks, dtype=kind.element.dtype)
        if kind.monotone:
            result = _maxima(result, kind)
        result = result.rechunk({axis: x.chunks[axis]}, method="tasks")
    return _after_identity(result, kind) if include_initial else result


def _maxima(sums: dask.array.Array, kind: PieceKind) -> dask.array.Array:
    """Return the running maximum of sums. It needs no device: a maximum never rounds."""
    from dask.array.reductions import cumreduction

    axis, dtype = kind.axis, kind.element.dtype
    whole, but_last = (slice(None),) * axis, slice(1, None) if kind.reverse else slice(None, -1)
    turned = sums[(*whole, slice(None, None, -1))] if kind.reverse else sums
    least = -np.inf if dtype.kind == "f" else np.iinfo(dtype).min
    result = cumreduction(_maxima_of_chunk, _larger, least, turned, axis=axis, dtype=dtype)
    if kind.reverse:
        result = result[(*whole, slice(None, None, -1))]
    return _after_identity(result, kind)[(*whole, but_last)] if kind.exclusive else result


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
    return da.concatenate([x, first] if kind.reverse else [first, x], axis=axis)


def _aligned(sizes: Sequence[int], length: int, reverse: bool) -> tuple[int, ...]:
    """Return chunks that begin at whole tiles, counted in traversal order, each near one of `sizes`."""
    ordered = sizes[::-1] if reverse else sizes
    ends = sorted({min(ceil_div(end, TILE) * TILE, length) for end in itertools.accumulate(ordered)} - {0})
    found = tuple(end - begin for begin, end in itertools.pairwise([0, *ends]))
    return found[::-1] if reverse else found


def _graph(name: str, x: dask.array.Array, kind: PieceKind, device: str | int | None) -> dict[Any, Any]:
    """Return the tasks of a scan of aligned chunks: totals, states, scans, ends and results."""
    axis, many = kind.axis, len(x.chunks[kind.axis])
    tasks: dict[Any, Any] = {}
    for place in itertools.product(*(range(len(sizes)) for i, sizes in enumerate(x.chunks) if i != axis)):

        def key(what: str, turn: int, place: tuple[int, ...] = place) -> tuple[Any, ...]:
            index = many - 1 - turn if kind.reverse else turn
            return (what, *place[:axis], index, *place[axis:])

        states = (f"states-{name}", *place)
        totals = [key(f"totals-{name}", turn) for turn in range(many - 1)]
        tasks[states] = (predicted, kind, totals)
        for turn in range(many):
            chunk, scan, end = key(x.name, turn), key(f"scan-{name}", turn), key(f"end-{name}", turn)
            last = turn == many - 1
            state = (_picked, states, turn - 1) if turn else None
            if not last:
                tasks[key(f"totals-{name}", turn)] = (tile_totals, kind, device, chunk)
            tasks[scan] = (scan_chunk, kind, device, chunk, state, last)
            tasks[key(f"scanned-{name}", turn)] = (_scanned, scan)
            if turn == 0:
                tasks[key(f"carry-{name}", 0)] = (_after, key(f"scanned-{name}", 0))
                tasks[key(name, 0)] = (_result, scan)
                continue
            before = key(f"carry-{name}", turn - 1)
            tasks[end] = (end_chunk, kind, device, chunk, key(f"scanned-{name}", turn), before, last)
            tasks[key(f"carry-{name}", turn)] = (_after, end)
            tasks[key(name, turn)] = (_settled, kind, scan, end)
    return tasks


@dataclass(frozen=True)
class Carry:
    """What a chunk leaves for the next one, and which subnormal numbers the device keeps that computed it."""

    words: Words | None
    treatment: Treatment | None


class Scanned(NamedTuple):
    """A chunk that was scanned from a predicted carry: the carries after its first tile, and after all of it."""

    first: Words | None
    carry: Carry


class End(NamedTuple):
    """What is right about a chunk: its first tile, or all of it where the prediction was wrong."""

    results: NDArray[Any]
    whole: bool
    carry: Carry


def _cube(kind: PieceKind, chunk: NDArray[Any]) -> NDArray[Any]:
    """Return a chunk with the dimensions before and after the axis as one each; a view where it is contiguous."""
    shape = chunk.shape
    outer, inner = math.prod(shape[: kind.axis]), math.prod(shape[kind.axis + 1 :])
    return np.asarray(chunk).reshape(outer, shape[kind.axis], inner)


def tile_totals(kind: PieceKind, device: str | int | None, chunk: NDArray[Any]) -> Words:
    """Return the carry that each tile leaves by itself: an array of (tiles in traversal order, slices, words)."""
    cube = _cube(kind, chunk)
    outer, length, inner = cube.shape
    tiles = length // TILE
    carries = scan_cube(kind, resolve_device(device), cube.reshape(outer * tiles, TILE, inner), None, None, True)
    assert carries is not None
    ordered = np.moveaxis(carries.reshape(outer, tiles, inner, CARRY_WORDS), 1, 0)
    return (ordered[::-1] if kind.reverse else ordered).reshape(tiles, outer * inner, CARRY_WORDS)


def predicted(kind: PieceKind, totals: list[Words]) -> list[Words]:
    """Return the carry after each chunk, all but its last result, which totals do not tell.

    A prediction that is wrong costs time only, so it takes NumPy's own additions.
    """
    found: list[Words] = []
    state: Words | None = None
    for chunk in totals:
        for tile in chunk:
            state = tile.copy() if state is None else _carry_on(kind, state, tile)
        assert state is not None
        found.append(state.copy())
    return found


def _carry_on(kind: PieceKind, state: Words, tile: Words) -> Words:
    """Return the carries of slices after one more tile; lib/carry.wgsl has the same."""
    tiles, has_s = state[:, _FLAGS] & 0xFF, state[:, _FLAGS] & _HAS_S != 0
    own = tile[:, _FLAGS] & _HAS_S != 0  # exceptional by itself: a new span begins with its last result
    c = np.where((tiles > 0)[:, None], _append(kind, state[:, _C:_LAST], tile[:, _C:_LAST]), tile[:, _C:_LAST])
    s = np.where(has_s[:, None], _append(kind, state[:, _S:_C], c), c)
    full = tiles + 1 == _TILES_A_SPAN
    after = state.copy()
    after[:, _C:_LAST] = c
    after[:, _S:_C] = np.where(full[:, None], s, state[:, _S:_C])
    after[:, _FLAGS] = np.where(full, _HAS_S, (tiles + 1) | np.where(has_s, _HAS_S, 0))
    after[own] = tile[own]
    return after


def _append(kind: PieceKind, a: Words, b: Words) -> Words:
    """Combine accumulators of two words each."""
    if kind.precision is Precision.COMPENSATED:
        from ..reference.compensated import Compensated

        pairs = Compensated()
        left, right = (np.ascontiguousarray(x).view(pairs.accumulator)[:, 0] for x in (a, b))
        with np.errstate(all="ignore"):
            return pairs.combine(left, right).view(np.uint32).reshape(a.shape)
    wide = kind.element.accumulator_size == 8
    dtype = np.dtype(("f" if kind.element.kind == "float" else "u") + ("8" if wide else "4"))
    left, right = (np.ascontiguousarray(x if wide else x[:, :1]).view(dtype)[:, 0] for x in (a, b))
    with np.errstate(all="ignore"):
        folded = left + right if kind.operator is Operator.SUM else left * right
    words = np.zeros(a.shape, np.uint32)
    words[:, : 2 if wide else 1] = folded[:, None].view(np.uint32)
    return words


def scan_chunk(
    kind: PieceKind, device: str | int | None, chunk: NDArray[Any], before: Words | None, last: bool
) -> tuple[NDArray[Any], Scanned]:
    """Scan a chunk from its predicted carry."""
    opened = resolve_device(device)
    cube = _cube(kind, chunk)
    outer, length, inner = cube.shape
    out = np.empty(cube.shape, kind.element.dtype)
    split = min(TILE, length)
    parts = [(0, split), (split, length)] if split < length else [(0, length)]
    first: Words | None = None
    carry = None if before is None else before.reshape(outer, inner, CARRY_WORDS)
    for begin, end in parts:
        more = not last or end < length
        carry = scan_cube(kind, opened, cut(kind, cube, begin, end), cut(kind, out, begin, end), carry, more)
        first = carry if begin == 0 else first
    return out.reshape(chunk.shape), Scanned(first, Carry(carry, Treatment.of(opened, kind)))


def end_chunk(
    kind: PieceKind, device: str | int | None, chunk: NDArray[Any], scanned: Scanned, before: Carry, last: bool
) -> End:
    """Scan the first tile of a chunk from the true carry, and the rest if it turns out to depend on it."""
    opened = resolve_device(device)
    here = Treatment.of(opened, kind)
    for there in (before.treatment, scanned.carry.treatment):
        if here is not None and there is not None:
            here.check_same(there)
    cube = _cube(kind, chunk)
    length = cube.shape[1]
    split = min(TILE, length)
    tile = np.empty((cube.shape[0], split, cube.shape[2]), kind.element.dtype)
    first = scan_cube(kind, opened, cut(kind, cube, 0, split), tile, before.words, not last or split < length)
    if first is None or (scanned.first is not None and _same(first, scanned.first)):
        words = first if split == length else scanned.carry.words
        return End(tile, split == length, Carry(words, here))
    out = np.empty(cube.shape, kind.element.dtype)
    cut(kind, out, 0, split)[...] = tile
    carry: Words | None = first
    if split < length:
        carry = scan_cube(kind, opened, cut(kind, cube, split, length), cut(kind, out, split, length), first, not last)
    return End(out, True, Carry(carry, here))


def _same(a: Words, b: Words) -> bool:
    """Whether two carries lead to the same results: words that are not in use may differ."""
    if not np.array_equal(a[..., _FLAGS], b[..., _FLAGS]):
        return False
    used_c, used_s = a[..., _FLAGS] & 0xFF != 0, a[..., _FLAGS] & _HAS_S != 0
    return bool(
        np.array_equal(a[..., _LAST:_FLAGS], b[..., _LAST:_FLAGS])
        and np.array_equal(a[used_c][:, _C:_LAST], b[used_c][:, _C:_LAST])
        and np.array_equal(a[used_s][:, _S:_C], b[used_s][:, _S:_C])
    )


def _picked(states: list[Words], number: int) -> Words:
    return states[number]


def _scanned(scan: tuple[NDArray[Any], Scanned]) -> Scanned:
    return scan[1]


def _result(scan: tuple[NDArray[Any], Scanned]) -> NDArray[Any]:
    return scan[0]


def _after(done: Scanned | End) -> Carry:
    return done.carry


def _settled(kind: PieceKind, scan: tuple[NDArray[Any], Scanned], end: End) -> NDArray[Any]:
    """Return the results of a chunk: what was scanned, with what the end put right."""
    results = scan[0]
    if end.whole:
        return end.results.reshape(results.shape)
    out = results.copy()  # tasks don't change what other tasks were given
    cube = _cube(kind, out)
    cut(kind, cube, 0, end.results.shape[1])[...] = end.results
    return out
