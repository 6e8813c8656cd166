"""Products in which exactly one kind of value comes near underflow: which kind decides whether a tile is exceptional.

Each slice is made of exponents: most elements are nearly 1, and a few powers of two take the running product up and
down, so that one value of the canonical order is below the range while all others, and all results, are in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

RUN, BLOCK, TILE = 16, 256, 4096

KINDS = (
    "element", "r", "h1", "h2", "h4", "h8", "last h of a tile", "p", "last p of a tile", "total", "c", "c of a span",
    "s", "s + c", "(s + c) + p", "q", "result", "first p", "first q",
)  # fmt: skip
"""What alone is out of range. ``h1`` is Hillis-Steele's value after the step of stride 1. "Last ... of a tile" is what
only the next tile uses, "c of a span" what only the next span does; "total" is the last p of a first tile, and what its
last result is but for rounding. So are "first p" and "first q", in the third and the fourth block."""

KINDS_IN_BLOCKS = ("r", "h1", "h2", "h4", "h8", "result", "first p", "first q")
"""Those of slices of less than a tile."""

Exponents = NDArray[np.int64]


def kinds_of(dtype: str) -> list[str]:
    """Return the kinds that the type can have: no float16 is out of float32's range, but 0, whose results are 0."""
    return [kind for kind in KINDS if kind != "element" or dtype != "float16"]


class _Scale:
    """How far exponents of an accumulator type go: `deep` is out of range, and `high` brings it back."""

    def __init__(self, dtype: str) -> None:
        accumulator = np.finfo("float32" if dtype == "float16" else dtype)
        self.low = accumulator.minexp + 1  # the exponent of twice the smallest normal number
        self.deep = self.low - 17  # so few bits are left there that even float16 shows it
        self.half = self.deep // 2
        self.high = -self.deep - 30
        self.widest = 14 if dtype == "float16" else accumulator.maxexp - 2  # of an element

    def put(self, exponents: Exponents, first: int, weight: int, members: int = RUN) -> None:
        """Spread a weight over as few elements as can have it, from `first` on."""
        count = max(1, -(-abs(weight) // self.widest))
        assert count <= members
        shares = np.full(count, weight // count)
        shares[: weight - shares.sum()] += 1
        exponents[first : first + count] += shares


def _run(rng: np.random.Generator, low: int, high: int) -> int:
    return int(rng.integers(low, high))


def _element(scale: _Scale, rng: np.random.Generator, e: Exponents, number: int) -> None:
    """At each place of a run but the first in turn."""
    place = _run(rng, 1, 3 * TILE // RUN - 1) * RUN + 1 + number % 15
    e[place - 1 : place + 2] = scale.high, rng.choice([scale.deep, scale.low - 1]), 30


def _r(scale: _Scale, rng: np.random.Generator, e: Exponents, number: int) -> None:
    """At each place of a run in turn; the first is an element, too."""
    run = _run(rng, 1, 3 * TILE // RUN - 1) * RUN
    scale.put(e, run - RUN, scale.high)
    last = number % 16
    if scale.widest < -scale.half:
        scale.put(e, run, scale.deep)
        scale.put(e, run + -(-abs(scale.deep) // scale.widest), -scale.half)
    elif last == 0:
        e[run : run + 2] = scale.low - 1, -scale.half
    else:
        e[run + _run(rng, 0, last)] = scale.half
        e[run + last : run + last + 2] = scale.half, -scale.half


def _h(stride: int) -> Callable[[_Scale, np.random.Generator, Exponents, int], None]:
    def place(scale: _Scale, rng: np.random.Generator, e: Exponents, number: int) -> None:
        """Two runs at the ends of what the value covers, and what brings results back before; each run in turn."""
        block = _run(rng, 1, 3 * TILE // BLOCK) * 16
        j = stride + number % (16 - stride)
        start = block + max(0, j - 2 * stride + 1)
        scale.put(e, (start - 1) * RUN, scale.high)
        scale.put(e, start * RUN, scale.half)
        scale.put(e, (block + j) * RUN, scale.half)
        scale.put(e, (block + j + 1) * RUN, -scale.half)

    return place


def _last_h(scale: _Scale, rng: np.random.Generator, e: Exponents, number: int) -> None:
    runs = TILE // RUN
    scale.put(e, (runs - 3) * RUN, scale.high)
    scale.put(e, (runs - 2) * RUN, scale.half)
    scale.put(e, (runs - 1) * RUN, scale.half)
    scale.put(e, runs * RUN, -scale.half)


def _p(scale: _Scale, rng: np.random.Generator, e: Exponents, number: int, *, last: bool = False) -> None:
    tile = _run(rng, 1, 2 if last else 3) * TILE
    k = 15 if last else 1 + number % 14
    scale.put(e, tile - TILE + _run(rng, 0, 256) * RUN, scale.high)
    scale.put(e, tile + _run(rng, 0, 16) * RUN, scale.half)
    scale.put(e, tile + k * BLOCK + _run(rng, 0, 16) * RUN, scale.half)
    scale.put(e, tile + (k + 1) * BLOCK, -scale.half)


def _last_p(scale: _Scale, rng: np.random.Generator, e: Exponents, number: int) -> None:
    _p(scale, rng, e, number, last=True)


def _begin_span(scale: _Scale, e: Exponents) -> None:
    """Make the first tile exceptional, as in `_r`, and its last result large."""
    scale.put(e, 5 * RUN, scale.high)
    scale.put(e, 6 * RUN, scale.deep)
    scale.put(e, 7 * RUN, 30)
    scale.put(e, 8 * RUN, scale.high)


def _c(scale: _Scale, rng: np.random.Generator, e: Exponents, number: int, *, second: int = 2) -> None:
    _begin_span(scale, e)
    scale.put(e, TILE + _run(rng, 0, 256) * RUN, scale.half)
    scale.put(e, second * TILE + _run(rng, 0, 256) * RUN, scale.half)
    scale.put(e, (second + 1) * TILE, -scale.half)


def _c_of_span(scale: _Scale, rng: np.random.Generator, e: Exponents, number: int) -> None:
    _c(scale, rng, e, number, second=16)


def _s(scale: _Scale, rng: np.random.Generator, e: Exponents, number: int) -> None:
    """A left fold ends between the smallest normal number and twice that; the next tile comes back at once."""
    _begin_span(scale, e)
    scale.put(e, _run(rng, 20, 40) * RUN, -scale.high)
    scale.put(e, _run(rng, 50, 250) * RUN, scale.low // 2)
    scale.put(e, 251 * RUN, scale.low - scale.low // 2)
    scale.put(e, TILE, scale.high)


def _result(scale: _Scale, rng: np.random.Generator, e: Exponents, number: int) -> None:
    run = _run(rng, 1, 3 * TILE // RUN - 1)
    scale.put(e, (run - 1) * RUN, scale.half)
    scale.put(e, run * RUN + 1, scale.half)
    scale.put(e, run * RUN + 1 + -(-abs(scale.half) // scale.widest), -scale.half)


_PLACES: dict[str, Callable[[_Scale, np.random.Generator, Exponents, int], None]] = {
    "element": _element,
    "r": _r,
    "h1": _h(1),
    "h2": _h(2),
    "h4": _h(4),
    "h8": _h(8),
    "last h of a tile": _last_h,
    "p": _p,
    "last p of a tile": _last_p,
    "c": _c,
    "c of a span": _c_of_span,
    "s": _s,
    "result": _result,
}


def near_underflow(kind: str, dtype: str, count: int) -> NDArray[Any]:
    """Return slices in which values of one of `KINDS` are out of range, and none of another."""
    rng = np.random.default_rng([KINDS.index(kind), count])
    if kind not in _PLACES:
        return _straddling(kind, dtype, count, rng)
    length = 18 * TILE if kind == "c of a span" else 4 * TILE - 7
    exponents = np.zeros((count, length), np.int64)
    scale = _Scale(dtype)
    for number, row in enumerate(exponents):
        _PLACES[kind](scale, rng, row, number)
        behind = np.flatnonzero(row)[-1] // RUN + 1
        scale.put(row, behind * RUN, -row.sum())  # back to 1, where float16 sees the results
    x = np.ldexp(_mantissas(exponents.shape, dtype, rng), exponents).astype(dtype)
    if kind == "s":
        x[:, TILE - 1] *= 0.75
    return x


def in_few_blocks(kind: str, dtype: str, count: int, length: int) -> NDArray[Any]:
    """Return a part of such slices that begins shortly before the block with what is out of range, or leads to it."""
    x = near_underflow(kind, dtype, count)
    if kind.startswith("first"):
        return np.ascontiguousarray(x[:, :length])
    events = np.argmax(np.abs(np.log2(np.abs(x))) > 5, axis=1)
    places = events[:, None] // BLOCK * BLOCK - (BLOCK - RUN) + np.arange(length)
    return np.take_along_axis(x, places % x.shape[1], axis=1)


def s_of_a_window(dtype: str, count: int) -> NDArray[Any]:
    """Return slices in which the s that alone is out of range is the last result of the second tile.

    What comes back behind it comes half as far in the third tile, which is then far from overflow even without the s,
    so that nothing but the s makes it exceptional.
    """
    x = near_underflow("s", dtype, count)
    x = np.concatenate([x[:, 2 * TILE : 3 * TILE], x], axis=1)
    half = _Scale(dtype).high // 2
    x[:, 2 * TILE] = np.ldexp(x[:, 2 * TILE], -half)
    x[:, 3 * TILE] = np.ldexp(x[:, 3 * TILE], half)
    return x


def _mantissas(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> NDArray[Any]:
    """Return numbers next to 1, of either sign, whose products stay next to 1 and have all bits."""
    steps = {"float16": 4, "float32": 2**9, "float64": 2**30}[dtype]
    magnitudes = 1 + rng.integers(-steps, steps, shape, endpoint=True) * np.finfo(dtype).eps
    return magnitudes * rng.choice([-1, 1], shape)


def _straddling(kind: str, dtype: str, count: int, rng: np.random.Generator) -> NDArray[Any]:
    """Return slices in which the value is what the result before it is but for rounding, and the range ends between.

    The slices begin with an exceptional tile, so that the second begins a span with an `s`; but not for what is in the
    first tile. The last elements before the value bring the result next to a power of two; slices are kept in which the
    value is just below it, and that power becomes the end of the range.
    """
    scale = _Scale(dtype)
    in_block = 3 * BLOCK + 5 * RUN
    places = {"total": TILE, "s + c": 2 * TILE, "(s + c) + p": TILE + 3 * BLOCK, "q": TILE + in_block}
    places |= {"first p": 3 * BLOCK, "first q": in_block}
    end = places[kind]
    found: list[NDArray[Any]] = []
    while sum(map(len, found)) < count:
        exponents = np.zeros((100, end + 4000), np.int64)
        for row in exponents:
            if end > TILE:
                _begin_span(scale, row)
                scale.put(row, 20 * RUN, -scale.high)
            scale.put(row, 21 * RUN, scale.half)
            scale.put(row, end + 3 * RUN, -scale.half)
        x = np.ldexp(_mantissas(exponents.shape, dtype, rng), exponents).astype(dtype)
        x[:, end - 9 : end] = 1
        value, result = _value_and_result(x, end, kind)
        for row, off in zip(x, np.frexp(np.abs(result).astype(np.longdouble))[0] * 2, strict=True):
            row[end - 9 : end] = _reciprocal(off, dtype)
        value, result = _value_and_result(x, end, kind)
        straddles = np.frexp(value)[1] == np.frexp(result)[1] - 1
        for row, exponent in zip(x[straddles], np.frexp(result[straddles])[1], strict=True):
            down = np.zeros(len(row), np.int64)
            weight = scale.low + 1 - int(exponent)
            scale.put(down, end - -(-abs(weight) // scale.widest), weight)
            scale.put(down, end, -weight)
            found.append(np.ldexp(row, down)[None])
    return np.concatenate(found)[:count]


def _reciprocal(number: np.longdouble, dtype: str) -> NDArray[Any]:
    """Return nine elements next to 1 whose product is nearly 1 / number, which is between 1/2 and 1."""
    eps = np.finfo(dtype).eps
    one = np.dtype(dtype).type(1)
    first = np.dtype(dtype).type(np.ceil(1 / number / eps) * eps)
    elements = [first]
    rest = (first * number - 1) / np.longdouble(eps) ** 2 if dtype == "float16" else 0
    for _ in range(4):  # (1 + d) * (1 - d) is 1 - d^2
        d = np.floor(np.sqrt(max(float(rest), 0)))
        rest = rest - d * d
        elements += [one + d * eps, one - d * eps]
    return np.array(elements, dtype)


def _value_and_result(x: NDArray[Any], end: int, kind: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return what the canonical order has for the last tile's value, and for the result before element `end`."""
    accumulator = np.dtype("float32" if x.dtype == np.float16 else x.dtype)
    numbers = x.astype(accumulator)
    before = 0 if end <= TILE else TILE
    s = np.multiply.reduce(numbers[:, :before], axis=1)
    r = np.multiply.accumulate(numbers[:, before:end].reshape(len(x), -1, RUN), axis=2)[:, :, -1]
    runs = r.shape[1]
    h = np.ones((len(x), -(-runs // 16) * 16), accumulator)
    h[:, :runs] = r
    h = h.reshape(len(x), -1, 16)
    for stride in (1, 2, 4, 8):
        h[:, :, stride:] = h[:, :, :-stride] * h[:, :, stride:]
    p = np.multiply.accumulate(h[:, :, 15], axis=1)
    block, run = divmod(runs - 1, 16)
    result = s if block == 0 else s * p[:, block - 1]
    value = result * h[:, block, run] if kind.endswith("q") else s * p[:, block]
    result = result if run == 0 else result * h[:, block, run - 1]
    return value, result * r[:, -1]


def falling(count: int, length: int) -> NDArray[np.float32]:
    """Return slices of a tile that is exceptional, whose left fold falls below the range and would come back at once.

    The fold falls at each place of a run but the last in turn, so each member in turn must stay 0: first far below the
    range, and then just to the smallest normal number, which devices keep that flush what is smaller.
    """
    exponents = np.zeros((count, length), np.int64)
    exponents[:, 0] = 100
    exponents[:, RUN : RUN + 2] = -70  # r is out of range and no result is: the tile is exceptional
    for number, row in enumerate(exponents):
        place = 3 * RUN + number % (RUN - 1)
        row[place : place + 2] = -100 if number < RUN - 1 else -86, 60
    return np.ldexp(np.float32(1), exponents).astype(np.float32)


def infinity_times_small() -> NDArray[np.float32]:
    """Return slices absorbed by an infinity or a zero, in which later elements are about the smallest normal number."""
    smallest = np.finfo(np.float32).smallest_normal
    x = np.ones((6, 20_000), np.float32)
    x[:3, 10], x[3:, 10] = np.inf, -smallest / 4
    x[:, 15_000] = [smallest, np.nextafter(smallest, np.float32(1)), -smallest / 2, np.inf, 3, smallest / 2]
    return x


def smallest_normals(dtype: str, slices: int, length: int) -> NDArray[Any]:
    """Return short slices in which a result is the smallest normal number, of either sign, at each place in turn.

    In a left fold it is a zero, but for a first element, and stays one when the next element lifts it.
    """
    low = np.finfo(dtype).minexp
    exponents = np.zeros((2 * length, length), np.int64)
    for number, row in enumerate(exponents):
        place = number % length
        row[0] = low // 2
        row[place] += low - row[0] if place > 0 else low - low // 2
        row[place + 1 : place + 2] = -low // 2
    x = np.ldexp(1.0, exponents)
    x[length:, 0] *= -1
    return np.resize(x, (slices, length)).astype(dtype)


def peaks_of_products(dtype: str) -> NDArray[Any]:
    """Return slices in which only one result overflows, at each place of the second run in turn, and no r does."""
    high = np.finfo(dtype).maxexp
    exponents = np.zeros((RUN, 3 * RUN), np.int64)
    for place, row in enumerate(exponents):
        row[0], row[RUN + place], row[RUN + place + 1] = high - 8, 20, -20
    return np.ldexp(1.0, exponents).astype(dtype)


def climbing_products(dtype: str) -> NDArray[Any]:
    """Return slices in which only one result overflows, at each place of the third run: two runs before rise to it."""
    high = np.finfo(dtype).maxexp
    exponents = np.zeros((RUN, 4 * RUN), np.int64)
    for place, row in enumerate(exponents):
        row[0] = row[RUN] = (high - 8) // 2
        row[2 * RUN + place], row[2 * RUN + place + 1] = 20, -20
    return np.ldexp(1.0, exponents).astype(dtype)


def lone_peaks(dtype: str, slices: int, length: int) -> NDArray[Any]:
    """Return slices whose products are in range, and the square of their first run's is not."""
    rng = np.random.default_rng(length)
    exponents = np.zeros((slices, length), np.int64)
    exponents[:, 0] = np.finfo(dtype).maxexp * 5 // 8
    exponents[:, RUN] = -exponents[:, 0]
    return np.ldexp(_mantissas(exponents.shape, dtype, rng), exponents).astype(dtype)
