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
NaN and infinity are where this evaluation gives them, even where a sequential fold would give others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]
_Combine = Callable[[Array, Array], Array]

RUN, BLOCK, TILE, SPAN = 16, 256, 4096, 65536

_CHUNK = 4 * SPAN  # about so many elements are worked on at a time, which bounds memory and stays in cache
_FLOATS = [np.dtype(f"float{bits}") for bits in (16, 32, 64)]
_TYPES = _FLOATS + [np.dtype(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
_OPERATORS = {"sum": np.add, "product": np.multiply}


def cumulative(
    x: Array, operator: str, *, axis: int, exclusive: bool = False, reverse: bool = False, flush: bool = False
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
        Model a device that flushes subnormal numbers of the accumulator type: in every combination, operands
        and result become zeros of the same sign. What is merely copied or stored as float16 is not flushed.

    Returns
    -------
    ndarray
        Shape and element type of `x`.
    """
    x, combine = _checked(x), _combination(operator)
    rows = _rows(x, axis, reverse)
    out = np.empty(np.moveaxis(x, axis, -1).shape, x.dtype)
    target = out.reshape(rows.shape)[:, :: -1 if reverse else 1]
    if exclusive:
        target[:, :1] = identity(operator, x.dtype)
        rows, target = rows[:, :-1], target[:, 1:]

    def flushing(a: Array, b: Array) -> Array:
        return _flush(combine(_flush(a), _flush(b)))

    with np.errstate(all="ignore"):
        for place, results in _scan(rows, _accumulator(x), flushing if flush else combine):
            target[place] = results
    return np.ascontiguousarray(np.moveaxis(out, -1, axis))


def _scan(rows: Array, accumulator: Any, combine: _Combine) -> Iterator[tuple[Any, Array]]:
    """Yield inclusive results of the rows, a span at a time, as (place in `rows`, values).

    Groups are padded with zeros. What follows from these is never used: no result needs a later element.
    """
    count, n = rows.shape
    height = max(1, _CHUNK // max(1, min(n, SPAN)))
    for top in range(0, count, height):
        s = np.empty(len(rows[top : top + height]), accumulator)  # absent at the start of a slice
        for start in range(0, n, SPAN):
            place = slice(top, top + height), slice(start, start + SPAN)
            r = _fold(_groups(rows[place].astype(accumulator)), combine)
            h = _hillis_steele(_groups(r[..., -1]), combine)
            p = _fold(_groups(h[..., -1]), combine)
            c = _fold(_groups(p[..., -1]), combine)
            first = 1 if start == 0 else 0  # nothing is carried into the first tile, block and run of a slice
            q = _carry(s[:, None], c, first, combine)  # into each tile: s(span-1) + c(tile-1)
            q = _carry(q, p, first, combine)  # into each block: (s + c) + p(block-1)
            q = _carry(q, h, first, combine)  # into each run: ((s + c) + p) + h(run-1)
            r[:, first:] = combine(q[:, first : r.shape[1], None], r[:, first:])
            yield place, r.reshape(len(r), -1)[:, : n - start]
            span_total = c[:, 0, -1]
            s = span_total if start == 0 else combine(s, span_total)


def _groups(x: Array) -> Array:
    """Copy (rows, members) into (rows, groups, 16), padding the last; up to 16 members are one group."""
    count, n = x.shape
    width = min(n, 16)
    padded = np.zeros((count, -(-n // width) * width), x.dtype)
    padded[:, :n] = x
    return padded.reshape(count, -1, width)


def _fold(x: Array, combine: _Combine) -> Array:
    """Left fold inside each group, in place, keeping every step."""
    for j in range(1, x.shape[-1]):
        x[..., j] = combine(x[..., j - 1], x[..., j])
    return x


def _hillis_steele(x: Array, combine: _Combine) -> Array:
    """Scan inside each group, in place, by doubling strides, all members at once."""
    for stride in (1, 2, 4, 8):
        x[..., stride:] = combine(x[..., :-stride], x[..., stride:])
    return x


def _carry(q: Array, inside: Array, first: int, combine: _Combine) -> Array:
    """Carry each group's `q` into its members: alone into the first, else q + `inside` of the member before.

    If `first` is 1, the first group has no `q` and its first member gets nothing: that place has no meaning.
    """
    q = q[:, first : inside.shape[1]]
    out = np.empty_like(inside)
    out[:, first:, 0] = q
    out[..., 1:] = inside[..., :-1]
    out[:, first:, 1:] = combine(q[..., None], out[:, first:, 1:])
    return out.reshape(len(out), -1)


def _checked(x: Array) -> Array:
    if np.asarray(x).dtype not in _TYPES:
        raise TypeError(f"no element type has dtype {np.asarray(x).dtype}")
    return np.asarray(x)


def _combination(operator: str) -> np.ufunc:
    if operator not in _OPERATORS:
        raise ValueError(f"operator is {operator!r}, not 'sum' or 'product'")
    return _OPERATORS[operator]


def _accumulator(x: Array) -> np.dtype[Any]:
    return np.dtype(np.float32) if x.dtype == np.float16 else x.dtype


def _rows(x: Array, axis: int, reverse: bool) -> Array:
    """Return the slices along `axis`, in traversal order, as the rows of a matrix."""
    moved = np.moveaxis(x, axis, -1)
    return moved.reshape(math.prod(moved.shape[:-1]), moved.shape[-1])[:, :: -1 if reverse else 1]


def _subnormal(x: Array) -> Array:
    return np.asarray((np.abs(x) < np.finfo(x.dtype).smallest_normal) & (x != 0))


def _flush(x: Array) -> Array:
    return np.where(_subnormal(x), np.copysign(x.dtype.type(0), x), x) if x.dtype in _FLOATS else x


def meets_subnormals(
    x: Array, operator: str, *, axis: int, exclusive: bool = False, reverse: bool = False
) -> NDArray[np.bool_]:
    """Tell in which slices devices that flush subnormals may differ from devices that keep them.

    In these, some combination that a result depends on has a subnormal operand or result in the accumulator
    type. (Keeping and flushing agree up to the first such combination, so that following one is enough.) A
    product that only its rounding lifts to the smallest normal number counts: a device may judge it before.
    Parameters are those of `cumulative`. The answer has the shape of `x` without `axis`; integers give False.
    """
    x, ufunc = _checked(x), _combination(operator)
    rows = _rows(x, axis, reverse)[:, : -1 if exclusive else None]
    met = np.zeros(len(rows), np.bool_)
    traced = np.dtype([("value", _accumulator(x)), ("met", np.bool_)], align=True)

    def combine(a: Array, b: Array) -> Array:
        u, v, value = a["value"], b["value"], ufunc(a["value"], b["value"])
        out = np.empty(value.shape, traced)
        out["value"] = value
        out["met"] = a["met"] | b["met"] | _subnormal(u) | _subnormal(v) | _subnormal(value)
        lifted = np.abs(value) == np.finfo(value.dtype).smallest_normal
        if ufunc is np.multiply and lifted.any():  # exact only if both operands are powers of two
            out["met"] |= lifted & ~((np.abs(np.frexp(u)[0]) == 0.5) & (np.abs(np.frexp(v)[0]) == 0.5))
        return out

    if x.dtype in _FLOATS:
        values = np.zeros(rows.shape, traced)
        values["value"] = rows
        with np.errstate(all="ignore"):
            for place, results in _scan(values, traced, combine):
                met[place[0]] |= results["met"].any(axis=-1)
    return met.reshape(np.moveaxis(x, axis, -1).shape[:-1])


def round(x: Array, mode: str) -> Array:
    """Round to integers by integer arithmetic on the bit pattern.

    What rounds to zero keeps its sign. Infinities, NaN with its payload, and integers are copied.

    Parameters
    ----------
    x : ndarray
        Of any shape, otherwise as in `cumulative`.
    mode : {"half_even", "toward_zero", "half_away"}
        Halves go to the even neighbour or away from zero; "toward_zero" drops every fraction.
    """
    if mode not in ("half_even", "toward_zero", "half_away"):
        raise ValueError(f"mode is {mode!r}, not 'half_even', 'toward_zero' or 'half_away'")
    out = np.array(_checked(x), order="C")
    if out.dtype in _FLOATS:
        bits = out.reshape(-1).view(f"u{out.itemsize}")
        for start in range(0, bits.size, _CHUNK):
            piece = bits[start : start + _CHUNK]
            sign = piece & (1 << (8 * out.itemsize - 1))
            piece[:] = sign | _rounded_magnitude(piece ^ sign, np.finfo(out.dtype), mode)
    return out


def _rounded_magnitude(bits: Array, info: np.finfo[Any], mode: str) -> Array:
    """Round the bit patterns of numbers without sign."""
    width, bias = info.nmant, info.maxexp - 1
    exponent = bits >> width
    # From 1 on: add what makes the integer part one more if due (a carry may run into the exponent, rightly),
    # then drop the fraction. Between 1 and 2 the lowest bit before the fraction is the biased exponent's, 1.
    dropped = bias + width - np.clip(exponent, bias, bias + width - 1)
    unit = np.left_shift(bits.dtype.type(1), dropped)
    odd = (bits >> dropped) & 1
    more = {"half_even": (unit >> 1) - 1 + odd, "toward_zero": unit & 0, "half_away": unit >> 1}[mode]
    rounded = (bits + more) & ~(unit - 1)
    # Below 1: 0 or 1. Where no bit is a fraction, infinity and NaN included: unchanged.
    half, one = bits.dtype.type((bias - 1) << width), bits.dtype.type(bias << width)
    to_one = {"half_even": bits > half, "toward_zero": bits >= one, "half_away": bits >= half}[mode]
    return np.where(exponent < bias, to_one * one, np.where(exponent < bias + width, rounded, bits))


def convert(x: Array, dtype: DTypeLike) -> Array:
    """Convert the element type as ``astype`` would, with one answer where C leaves it open.

    Floating-point numbers beyond an integer type's limits give the limit, and NaN gives 0.

    Parameters
    ----------
    x : ndarray
        bool, where any byte but 0 counts as 1, or as in `cumulative`; of any shape.
    dtype : DTypeLike
        Any element type but bool.
    """
    x, target = np.asarray(x), np.dtype(dtype)
    if target not in _TYPES:
        raise TypeError(f"no conversion to {target}")
    x = _checked((x.view(np.uint8) != 0).astype(np.uint8) if x.dtype == np.bool_ else x)
    with np.errstate(all="ignore"):
        if x.dtype not in _FLOATS or target in _FLOATS:
            return x.astype(target)
        limits, whole = np.iinfo(target), np.trunc(x.astype(_accumulator(x)))
        below, above = whole < float(limits.min), whole >= float(limits.max + 1)
        out = np.where(below | above | np.isnan(whole), 0, whole).astype(target)
        return np.where(below, target.type(limits.min), np.where(above, target.type(limits.max), out))


def identity(operator: str, dtype: DTypeLike) -> Any:
    """Return an operator's identity, 0 or 1, as a scalar of the element type."""
    return np.dtype(dtype).type(_combination(operator).identity)


def same_bits(a: Array, b: Array) -> bool:
    """Tell whether shape, element type and bits agree. Every NaN equals every NaN; -0 and 0 differ."""
    return first_difference(a, b) is None


def first_difference(a: Array, b: Array) -> str | None:
    """Return None if `same_bits`, else one line: the first index that differs, both values and their bits."""
    a, b = np.asarray(a), np.asarray(b)
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return f"{a.dtype} of shape {a.shape} against {b.dtype} of shape {b.shape}"
    a_bits, b_bits = (np.ascontiguousarray(y).reshape(-1).view(f"u{y.itemsize}") for y in (a, b))
    differs = a_bits != b_bits
    if a.dtype.kind == "f":
        differs &= ~(np.isnan(a) & np.isnan(b)).reshape(-1)
    if not differs.any():
        return None
    i = int(differs.argmax())
    one, other = (f"{y.flat[i]!s} (0x{bits[i]:0{2 * y.itemsize}x})" for y, bits in ((a, a_bits), (b, b_bits)))
    place = [int(j) for j in np.unravel_index(i, a.shape)]
    return f"{place}: {one} against {other}; {differs.sum()} of {a.size} differ"
