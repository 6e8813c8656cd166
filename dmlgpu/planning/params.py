"""Pure: the uniforms of every kernel, field for field as ``wgsl/lib/params.wgsl`` declares them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ..layout import ceil_div

__all__ = ["PARAMS", "scalars", "uniforms"]

_PACKED: Final = np.dtype(
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
            "lookback",
            "side_by_side",
            "across",
        )
    ]
)
_VECTOR_BYTES = 16
"""Structs that hold vectors of four words are multiples of one."""
PARAMS: Final = np.dtype(
    {
        "names": list(_PACKED.names or ()),
        "formats": [found[0] for found in (_PACKED.fields or {}).values()],
        "offsets": [int(found[1]) for found in (_PACKED.fields or {}).values()],
        "itemsize": ceil_div(_PACKED.itemsize, _VECTOR_BYTES) * _VECTOR_BYTES,
    }
)
"""What each field means stands in ``wgsl/lib/params.wgsl``; a test compares the two."""
_FIRST_WORD: Final = {name: int(found[1]) // 4 for name, found in (PARAMS.fields or {}).items()}
_SCALARS: Final = tuple(name for name, found in (PARAMS.fields or {}).items() if not found[0].shape)


def uniforms(**fields: int | Sequence[int]) -> bytes:
    """Return the uniforms of a dispatch. Fields that are left out are 0, and negative values two's complement.

    Examples
    --------
    >>> np.frombuffer(uniforms(sizes=(3, 5), input_axis_stride=-1), PARAMS)["input_axis_stride"]
    array([4294967295], dtype=uint32)
    """
    words = [0] * (PARAMS.itemsize // 4)
    for name, value in fields.items():
        first = _FIRST_WORD[name]
        if isinstance(value, int):
            words[first] = value % 2**32
        else:
            words[first : first + len(value)] = [each % 2**32 for each in value]
    return np.array(words, np.uint32).tobytes()


def scalars(params: bytes) -> dict[str, int]:
    """Return the fields that `uniforms` was given, but for the arrays."""
    words = np.frombuffer(params, np.uint32).tolist()
    return {name: words[_FIRST_WORD[name]] for name in _SCALARS}
