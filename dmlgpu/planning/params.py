"""Pure: the uniforms of every kernel, field for field as ``wgsl/lib/params.wgsl`` declares them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

__all__ = ["PARAMS", "uniforms"]

_WORDS = 2**32

PARAMS: Final = np.dtype(
    [(name, np.uint32, 8) for name in ("sizes", "input_strides", "output_strides")]
    + [
        (name, np.uint32)
        for name in (
            "rank",
            "count",
            "input_offset",
            "output_offset",
            "length",
            "first",
            "input_axis_stride",
            "output_axis_stride",
            "tiles",
            "exclusive",
            "resume",
            "suspend",
            "grid_width",
            "mode",
            "zero",
            "carry_side",
            "checked_first",
            "turn_first",
            "turn_tiles",
            "side_by_side",
        )
    ]
)
"""What each field means stands in ``wgsl/lib/params.wgsl``; a test compares the two."""


def uniforms(**fields: int | Sequence[int]) -> bytes:
    """Return the uniforms of a dispatch. Fields that are left out are 0, and negative values two's complement.

    Examples
    --------
    >>> np.frombuffer(uniforms(sizes=(3, 5), input_axis_stride=-1), PARAMS)["input_axis_stride"]
    array([4294967295], dtype=uint32)
    """
    record = np.zeros((), PARAMS)
    for name, value in fields.items():
        if isinstance(value, int):
            record[name] = value % _WORDS
        else:
            record[name][: len(value)] = [each % _WORDS for each in value]
    return record.tobytes()
