"""The elements that cases compute with: the same bits on every system.

They come from the raw 64-bit words of PCG64, whose sequence NumPy promises not to change, through integer arithmetic
alone: floating-point numbers are put together from sign, exponent and mantissa, so that no rounding of the host takes
part.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..layout import ceil_div

__all__ = ["FAMILIES", "elements", "random_words"]

FAMILIES = ("plain", "special", "subnormal", "wandering", "patterns")
"""plain: any integers; floats whose sums and products meet no subnormal, NaN or infinity. special: zeros, extremes,
infinities and NaN among plain ones. subnormal: floats around the smallest normal number. wandering: floats whose
running products go up and down, nearly as far as the accumulator's exponents. patterns: bit patterns around
what rounding and conversion decide by, NaN and subnormals too."""

Words = NDArray[np.uint64]

_FORMATS = {2: (10, 15), 4: (23, 127), 8: (52, 1023)}
"""Mantissa bits and exponent bias by the number of bytes."""


def random_words(count: int, *seed: object) -> Words:
    """Return 64-bit words that depend on nothing but the seed, any values with a fixed text."""
    digest = hashlib.sha256(" ".join(map(str, seed)).encode()).digest()
    return np.random.PCG64(int.from_bytes(digest[:16], "big")).random_raw(count)


def elements(family: str, dtype: str, shape: tuple[int, ...], operator: str = "") -> NDArray[Any]:
    """Return the elements of a case.

    Parameters
    ----------
    family : str
        One of `FAMILIES`.
    dtype : str
        NumPy's name of an element type, or bool.
    shape : tuple of int
        The shape of the result.
    operator : {"", "sum", "product"}
        What they are for: products of plain floats stay near 1, those of integers do not vanish at once.

    Examples
    --------
    >>> from dmlgpu.conformance.elements import elements
    >>> elements("plain", "uint8", (2, 3), "sum").shape
    (2, 3)
    """
    kind = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    words = random_words(count, family, dtype, shape, operator)
    more = random_words(count, family, dtype, shape, operator, "more")
    if kind.kind == "b":
        return (words >> _u(63)).astype(np.bool_).reshape(shape)
    if kind.kind == "f":
        bits = _FLOAT_FAMILIES[family](words, more, kind.itemsize, operator)
    else:
        bits = _integers(words, more, 8 * kind.itemsize, family, operator)
    return bits.astype(f"u{kind.itemsize}").view(kind).reshape(shape)


def _u(value: int) -> np.uint64:
    return np.uint64(value)


def _integers(words: Words, more: Words, width: int, family: str, operator: str) -> Words:
    """Return the low `width` bits as two's complement; what is above them is dropped by the caller."""
    if family == "patterns":  # of every magnitude, and next to numbers with few bits
        shifted = words >> (more % _u(64))
        near = (shifted << ((more >> _u(8)) % _u(64))) + (more >> _u(16)) % _u(3) - _u(1)
        magnitude = np.where(more >> _u(63) == 0, shifted, near)
        return np.where(more >> _u(62) & _u(1) == 0, magnitude, -magnitude)
    top = words >> _u(64 - width)
    if operator == "product":  # odd, but for one in 8192: even factors leave nothing of what is carried far
        return np.where(more % _u(8192) == 0, top, top | _u(1))
    return top


def _plain(words: Words, more: Words, itemsize: int, operator: str) -> Words:
    mantissa_bits, bias = _FORMATS[itemsize]
    sign = (words >> _u(63)) << _u(8 * itemsize - 1)
    if operator == "product":  # within 1/128 of 1 on either side alike; numbers below 1 lie twice as dense
        one, distance = _u(bias << mantissa_bits), words % _u(1 << (mantissa_bits - 7))
        below = one - (distance * _u(2) + (more >> _u(1)) % _u(2))
        near_one: Words = sign | np.where(more % _u(2) == 0, one + distance, below)
        return near_one
    exponent = _u(bias - 4) + more % _u(8)
    result: Words = sign | exponent << _u(mantissa_bits) | words % _u(1 << mantissa_bits)
    return result


def _special(words: Words, more: Words, itemsize: int, operator: str) -> Words:
    """Put, in each quarter of the elements, numbers of another sort among plain ones: more and more rarely."""
    mantissa_bits, bias = _FORMATS[itemsize]
    minus = 1 << (8 * itemsize - 1)
    infinity = (2 * bias + 1) << mantissa_bits
    nan, largest, one = infinity | 1 << (mantissa_bits - 1), infinity - 1, bias << mantissa_bits
    two, half, odd_half = one + (1 << mantissa_bits), one - (1 << mantissa_bits), one | 1 << (mantissa_bits - 1)
    small = [0, minus, one, minus | odd_half] if operator == "sum" else [minus | one, two, half, minus | odd_half]
    quarters = (
        (4, small),
        (32, [largest, minus | largest, largest - 1, minus | two]),
        (256, [infinity, minus | infinity, 0, minus]),
        (1024, [nan, infinity, minus | nan, minus]),
    )
    bits = _plain(words, more, itemsize, operator)
    size = ceil_div(bits.size, 4)
    for number, (period, values) in enumerate(quarters):
        part = slice(number * size, (number + 1) * size)
        chosen = (more[part] >> _u(16)) % _u(min(period, max(4, size // 2))) == 0
        value = np.array(values, np.uint64)[(more[part] >> _u(40)) % _u(len(values))]
        bits[part] = np.where(chosen, value, bits[part])
    return bits


def _subnormal(words: Words, more: Words, itemsize: int, operator: str) -> Words:
    mantissa_bits, bias = _FORMATS[itemsize]
    sign = (words >> _u(63)) << _u(8 * itemsize - 1)
    mantissa = words % _u(1 << mantissa_bits)
    if operator == "sum":
        exponent = more % _u(4)  # 0 is a subnormal
    else:  # tiny numbers, now and then a huge one that lifts the product again
        near_one = _u(bias - 1) + more % _u(2)
        sort = (more >> _u(16)) % _u(16)
        exponent = np.where(sort == 0, more % _u(3), np.where(sort == 1, _u(2 * bias - 2), near_one))
    result: Words = sign | exponent << _u(mantissa_bits) | mantissa
    return result


def _wandering(words: Words, more: Words, itemsize: int, operator: str) -> Words:
    mantissa_bits, bias = _FORMATS[itemsize]
    reach = max(bias, 127) - 7  # float16 is multiplied in float32
    step = reach // 20
    way = np.cumsum((more >> _u(24)) % _u(2 * step + 1), dtype=np.uint64).astype(np.int64)
    way -= step * np.arange(1, way.size + 1)
    way = np.abs((way + reach) % (4 * reach) - 2 * reach) - reach
    exponents = np.diff(way, prepend=0).astype(np.uint64)  # modulo 2^64
    wandering: Words = _plain(words, more, itemsize, "product") + (exponents << _u(mantissa_bits))
    return wandering


def _patterns(words: Words, more: Words, itemsize: int, _: str) -> Words:
    mantissa_bits, bias = _FORMATS[itemsize]
    if itemsize == 2:  # every pattern once in 65,536 elements
        return np.arange(words.size, dtype=np.uint64) * _u(40_503) % _u(65_536)
    sign = (words >> _u(63)) << _u(8 * itemsize - 1)
    near = _u(bias - 3) + (more >> _u(8)) % _u(70)  # as far as the limits of 64-bit integers
    anything = (more >> _u(8)) % _u(2 * bias + 2)
    exponent = np.where(more % _u(4) == 0, anything, near)
    mantissa = words % _u(1 << mantissa_bits)
    few_bits = mantissa << ((more >> _u(32)) % _u(mantissa_bits + 1)) & _u((1 << mantissa_bits) - 1)
    step = (more >> _u(2)) % _u(4)  # 0: any mantissa; else one with few bits, or a neighbour of it
    magnitude = exponent << _u(mantissa_bits) | np.where(step == 0, mantissa, few_bits)
    magnitude = np.where((step > 1) & (magnitude > 0), magnitude + step % _u(2) * _u(2) - _u(1), magnitude)
    return sign | magnitude


_FLOAT_FAMILIES = {
    "plain": _plain,
    "special": _special,
    "subnormal": _subnormal,
    "wandering": _wandering,
    "patterns": _patterns,
}
