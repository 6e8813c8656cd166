"""The canonical order and the rounding modes in NumPy: what every kernel's bits are compared with.

A slice of n elements, in traversal order and in the accumulator type, is cut into runs of 16 elements,
blocks of 16 runs, tiles of 16 blocks and spans of 16 tiles; the last of each may be partial. With ``+`` for
the operator::

    r(i)  left fold inside the run, up to and including element i
    h(j)  Hillis-Steele scan of the run totals inside the block: for stride 1, 2, 4, 8 in turn, all j at once,
          h(j) <- h(j-stride) + h(j) where j >= stride
    p(k)  left fold of the block totals inside the tile
    c(t)  left fold of the tile totals inside the span
    s(u)  left fold of the span totals over the slice

    inclusive out(i) = q + r(i)   with   q = ((s(span-1) + c(tile-1)) + p(block-1)) + h(run-1)
    exclusive out(i) = inclusive out(i-1), and the identity for the first element

Each index counts within its parent. A missing term is skipped, never replaced by the identity, so that -0
survives and the first element is copied as it is. Results are rounded to the element type once, on store.

NaN and infinity are where a sequential left fold has them, and so are a product's zeros, unless the roundings before
decide. A tile is exceptional where
the evaluation above gives any inclusive result NaN or infinity, in the accumulator type; for products of floats also
where any value that its inclusive results depend on is below twice the smallest normal number in magnitude: its
elements, r, every step of h, p, c, s and what is combined of them. The results of an exceptional tile are those of the
left fold that goes on from the result before the tile, and the next tile begins a new span whose ``s`` is this tile's
last result. In the left fold of a product, operands and results up to the smallest normal number are zeros of their
sign; a first element is copied as it is.

A monotone sum has for each inclusive result the largest one so far, after rounding: `maximum.running_maximum`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arithmetic import Arithmetic, Combine, Flushing, Products, Tracing, fold
from .compensated import Compensated, CompensatedFlushing, CompensatedTracing
from .maximum import running_maximum
from .types import CHUNK, FLOATS, Array, accumulator, checked, combination, identity

RUN, BLOCK, TILE, SPAN = 16, 256, 4096, 65536


def cumulative(
    x: Array,
    operator: str,
    *,
    axis: int,
    exclusive: bool = False,
    reverse: bool = False,
    flush: bool = False,
    compensated: bool = False,
    monotone: bool = False,
) -> Array:
    """Scan along an axis in the canonical order.

    Parameters
    ----------
    x : ndarray
        float16, float32, float64 or integers of 8 to 64 bits, of at least one dimension. The accumulator is
        float32 for float16, otherwise the element type itself; integers wrap in two's complement.
    operator : {"sum", "product"}
        What combines two values.
    axis : int
        The axis to scan.
    exclusive, reverse : bool
        Leave out each element's own value, the first getting the identity; traverse by decreasing index.
    flush : bool
        Model a device that flushes subnormal numbers of the accumulator type: in every addition, operands
        and result become zeros of the same sign. What is merely copied or stored as float16 is not flushed.
        Products are the same on all devices.
    compensated : bool
        Combine pairs of float32 that keep what rounding cuts off, see `reference.compensated`; only for sums of
        float32.
    monotone : bool
        Have the largest sum so far in the place of each sum; with `exclusive` the identity comes before these.

    Returns
    -------
    ndarray
        Shape and element type of `x`.
    """
    x, ufunc = checked(x), combination(operator)
    rows = _rows(x, axis, reverse)
    out = np.empty(np.moveaxis(x, axis, -1).shape, x.dtype)
    target = out.reshape(rows.shape)[:, :: -1 if reverse else 1]
    if exclusive:
        target[:, :1] = identity(operator, x.dtype)
    shift = int(exclusive)
    arithmetic: Arithmetic
    if compensated:
        _check_compensated(x, operator)
        arithmetic = CompensatedFlushing() if flush else Compensated()
    else:
        is_product_of_floats = x.dtype in FLOATS and ufunc is np.multiply
        arithmetic = (Products if is_product_of_floats else Flushing if flush else Arithmetic)(ufunc, accumulator(x))
    with np.errstate(all="ignore"):
        for which, start, results in _scan(rows, arithmetic):
            room = target[which, start + shift : start + shift + results.shape[1]].shape[1]
            target[which, start + shift : start + shift + room] = arithmetic.numbers(results)[:, :room]
    if monotone:
        if operator != "sum":
            raise ValueError(f"monotone is for sums, not for operator {operator!r}")
        target[:, shift:] = running_maximum(target[:, shift:])
    return np.ascontiguousarray(np.moveaxis(out, -1, axis))


def meets_subnormals(
    x: Array,
    operator: str,
    *,
    axis: int,
    exclusive: bool = False,
    reverse: bool = False,
    compensated: bool = False,
) -> NDArray[np.bool_]:
    """Tell in which slices devices that flush subnormals may differ from devices that keep them.

    In these slices some addition that a result depends on has a subnormal operand or result in the accumulator
    type. Keeping and flushing agree up to the first such addition, so following one of them is enough. Products are
    the same on all devices. Compensated sums meet subnormal numbers earlier, in what rounding cuts off, but never
    where all elements are multiples of 2^-126. Parameters are those of `cumulative`. The answer has the
    shape of `x` without `axis`; integers and products give False.
    """
    x, ufunc = checked(x), combination(operator)
    rows = _rows(x, axis, reverse)
    met = np.zeros(len(rows), np.bool_)
    if x.dtype in FLOATS and ufunc is np.add:
        asked = rows.shape[1] - int(exclusive)
        arithmetic: Arithmetic
        if compensated:
            _check_compensated(x, operator)
            arithmetic = CompensatedTracing()
        else:
            arithmetic = Tracing(ufunc, accumulator(x))
        with np.errstate(all="ignore"):
            for which, start, results in _scan(rows, arithmetic):
                met[which] |= results["met"][:, : max(0, asked - start)].any(axis=-1)
    return met.reshape(np.moveaxis(x, axis, -1).shape[:-1])


def _scan(rows: Array, arithmetic: Arithmetic) -> Iterator[tuple[Any, int, Array]]:
    """Yield inclusive results of the rows in pieces, as (index of the rows, first column, values).

    A piece holds a span of several rows, or all the rest of a row, from a span with an exceptional tile on.
    """
    n = rows.shape[1]
    height = max(1, CHUNK // max(1, min(n, SPAN)))
    for top in range(0, len(rows), height):
        which = np.arange(top, min(top + height, len(rows)))
        s = last = np.empty(len(which), arithmetic.accumulator)  # absent at the start of a slice
        for start in range(0, n, SPAN):
            if not len(which):
                break
            elements = arithmetic.admit(arithmetic.take(rows[which, start : start + SPAN]))
            results, total = _span(elements, s, start == 0, arithmetic)
            ordinary = np.isfinite(arithmetic.numbers(results)).all(axis=-1)
            for i in np.flatnonzero(~ordinary):
                rest = arithmetic.take(rows[which[i], start:])
                yield which[i : i + 1], start, _exceptional(rest, s[i : i + 1], last[i], start == 0, arithmetic)
            s = total if start == 0 else arithmetic.combine(s, total)
            which, s, last = which[ordinary], s[ordinary], results[ordinary, -1]
            yield which, start, results[ordinary]


def _span(x: Array, s: Array, is_first: bool, arithmetic: Arithmetic) -> tuple[Array, Array]:
    """Return the results of a span of each row, by the canonical order alone, and the spans' totals.

    Groups are padded with zeros. What follows from these is never used: no result needs a later element.
    """
    combine = arithmetic.combine
    r = fold(_groups(x), combine)
    h = _hillis_steele(_groups(r[..., -1]), combine)
    p = fold(_groups(h[..., -1]), combine)
    c = fold(_groups(p[..., -1]), combine)
    first = int(is_first)  # nothing is carried into the first tile, block and run of a slice
    q = _carry(s[:, None], c, first, combine)  # into each tile: s(span-1) + c(tile-1)
    q = _carry(q, p, first, combine)  # into each block: (s + c) + p(block-1)
    q = _carry(q, h, first, combine)  # into each run: ((s + c) + p) + h(run-1)
    r[:, first:] = combine(q[:, first : r.shape[1], None], r[:, first:])
    return r.reshape(len(r), -1)[:, : x.shape[1]], c[:, 0, -1]


def _exceptional(x: Array, s: Array, last: Array, is_first: bool, arithmetic: Arithmetic) -> Array:
    """Return the results of one row from a span on, `s` and the result before it given, with exceptional tiles."""
    out = np.empty((1, len(x)), arithmetic.accumulator)
    start = 0  # of the span
    while start < len(x):
        if not is_first and arithmetic.absorbed(s[0], last):
            out[0, start:] = arithmetic.absorb(np.append(last, x[start:]))[1:]
            break
        elements = arithmetic.admit(x[None, start : start + SPAN])
        results, total = _span(elements, arithmetic.admit(s), is_first, arithmetic)
        bad = ~np.isfinite(arithmetic.numbers(results[0]))
        if bad.any():
            place = int(np.argmax(bad)) // TILE * TILE
            before = results[0, place - 1] if place else last
            tile = x[start + place : start + place + TILE]
            absent = is_first and place == 0
            fold = arithmetic.left_fold(tile if absent else np.append(before, tile))[0 if absent else 1 :]
            results = np.append(results[0, :place], fold)[None]
            total = results[:, -1]
        elif not is_first:
            total = arithmetic.combine(arithmetic.admit(s), total)
        out[:, start : start + results.shape[1]] = results
        start += results.shape[1]
        s, last, is_first = total, results[0, -1], False
    return out


def _groups(x: Array) -> Array:
    """Copy (rows, members) into (rows, groups, 16), padding the last; up to 16 members are one group."""
    count, n = x.shape
    width = min(n, 16)
    padded = np.zeros((count, -(-n // width) * width), x.dtype)
    padded[:, :n] = x
    return padded.reshape(count, -1, width)


def _hillis_steele(x: Array, combine: Combine) -> Array:
    """Scan inside each group, in place, by doubling strides, all members at once."""
    for stride in (1, 2, 4, 8):
        x[..., stride:] = combine(x[..., :-stride], x[..., stride:])
    return x


def _carry(q: Array, inside: Array, first: int, combine: Combine) -> Array:
    """Carry each group's `q` into its members: alone into the first, else q + `inside` of the member before.

    If `first` is 1, the first group has no `q` and its first member gets nothing: that place has no meaning.
    """
    q = q[:, first : inside.shape[1]]
    out = np.empty_like(inside)
    out[:, first:, 0] = q
    out[..., 1:] = inside[..., :-1]
    out[:, first:, 1:] = combine(q[..., None], out[:, first:, 1:])
    return out.reshape(len(out), -1)


def _check_compensated(x: Array, operator: str) -> None:
    if operator != "sum" or x.dtype != np.float32:
        raise ValueError(f"compensated is for sums of float32, not for operator {operator!r} on {x.dtype}")


def _rows(x: Array, axis: int, reverse: bool) -> Array:
    """Return the slices along `axis`, in traversal order, as the rows of a matrix."""
    moved = np.moveaxis(x, axis, -1)
    return moved.reshape(math.prod(moved.shape[:-1]), moved.shape[-1])[:, :: -1 if reverse else 1]
