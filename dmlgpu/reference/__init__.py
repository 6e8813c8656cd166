"""The reference: the canonical order, the rounding modes and conversions in NumPy, independent of the kernels.

Every kernel's bits are compared with it. It is written to be read as the specification: begin with `order`.
"""

from __future__ import annotations

from .bits import first_difference, same_bits
from .conversion import convert
from .order import BLOCK, RUN, SPAN, TILE, cumulative, meets_subnormals
from .rounding import round
from .types import identity

__all__ = [
    "BLOCK",
    "RUN",
    "SPAN",
    "TILE",
    "convert",
    "cumulative",
    "first_difference",
    "identity",
    "meets_subnormals",
    "round",
    "same_bits",
]
