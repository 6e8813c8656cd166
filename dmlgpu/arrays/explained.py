"""``dmlgpu.explain``: what a call would do on a device, or on a GPU that is not there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, SupportsIndex

from numpy.typing import DTypeLike

from ..arguments import flag
from ..errors import ArgumentError
from ..lazy import resolve_device
from ..planning.explain import Explanation, explain_problem, profile_of
from ..planning.problem import ScanOptions, problem_of

if TYPE_CHECKING:
    from ..runtime.device import Device

__all__ = ["explain"]


def explain(
    operator: str,
    shape: SupportsIndex | Sequence[SupportsIndex],
    *,
    axis: SupportsIndex | None = None,
    dtype: DTypeLike = "float32",
    exclusive: bool = False,
    reverse: bool = False,
    precision: str = "default",
    monotone: bool = False,
    mode: str = "half_even",
    in_place: bool = False,
    device: Device | str | int | None = None,
    profile: str | None = None,
) -> Explanation:
    """Return what an operator would do: its passes, why they are these, and what each moves through memory.

    The figures are worked out and not measured, for ordinary data: where NaN, infinity or a number near overflow makes
    tiles exceptional, some are read again. With `profile` no device is needed.

    Parameters
    ----------
    operator : {"cumsum", "cumprod", "round"}
        What to compute.
    shape : int or sequence of int
        Of input and output, which lie in C order without gaps.
    axis : int, optional
        The axis of a scan; only a single dimension needs none.
    dtype : DTypeLike
        The type to compute in: conversions are passes of their own, which are not counted.
    exclusive, reverse, precision, monotone
        As for `cumulative_sum`. A monotone sum has the passes of the sums, and of their running maximum.
    mode : str
        As for `round`.
    in_place : bool
        Whether results take the places of elements, as ``out=x`` has it.
    device : Device, str or int, optional
        The device to explain for, as everywhere.
    profile : {"h200", "rdna3", "m3", "mobile", "webgpu-defaults"}, optional
        A GPU that need not be there, in the place of `device`.

    Returns
    -------
    Explanation
        Printed, it is a text for people; ``as_dict()`` is for JSON.

    Raises
    ------
    ArgumentError, ArrayTypeError, AxisError
        If the arguments mean no operator, or both a device and a profile are given.

    Examples
    --------
    >>> import dmlgpu
    >>> found = dmlgpu.explain("cumsum", (4096, 4096), axis=1, profile="h200")
    >>> found.dispatches, found.traffic
    (1, 1.0)
    >>> found.passes[0].kernel
    'scan_rows'
    """
    options = ScanOptions.checked(exclusive, reverse, precision, monotone)
    problem, sizes, along = problem_of(operator, shape, axis, dtype, options, mode)
    in_place = flag(in_place, "in_place")
    if profile is None:
        found = resolve_device(device)
        summary, limits, figures = found.summary, found.limits, None
    else:
        figures = profile_of(profile)
        if device is not None:
            raise ArgumentError("device and profile are both given: a plan is explained for one of them, so give one")
        summary, limits = figures.summary, figures.limits
    return Explanation(
        operator=str(operator),
        shape=sizes,
        axis=along,
        dtype=problem.source.name,
        device=summary,
        passes=explain_problem(problem, limits, figures, in_place=in_place),
        copy_bytes=2 * math.prod(sizes) * problem.source.itemsize,
        processors=None if figures is None else figures.processors,
        wanted_bytes=None if figures is None else figures.wanted_bytes,
    )
