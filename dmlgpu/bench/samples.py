"""Pure: the median and the noise of samples of a time, and how far to trust them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Summary", "median_interval", "ratios", "summarize"]


@dataclass(frozen=True)
class Summary:
    """The summary of some samples.

    Attributes
    ----------
    median, minimum : float
        In the unit of the samples.
    noise : float
        The interquartile range divided by the median. Half of the samples lie within that range.
    count : int
        How many samples there are.
    """

    median: float
    minimum: float
    noise: float
    count: int


def summarize(samples: Sequence[float]) -> Summary:
    """Return the summary of samples.

    Parameters
    ----------
    samples : sequence of float
        At least one; positive.

    Examples
    --------
    >>> from dmlgpu.bench.samples import summarize
    >>> summarize([2.0, 4.0, 3.0])
    Summary(median=3.0, minimum=2.0, noise=0.3333333333333333, count=3)
    """
    low, median, high = (float(value) for value in np.quantile(samples, (0.25, 0.5, 0.75)))
    return Summary(median, float(min(samples)), (high - low) / median if median else 0.0, len(samples))


def ratios(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    """Return the ratios of samples that were taken in turn, from which a slowdown of both cancels out.

    Raises
    ------
    ValueError
        If there are not equally many.
    """
    return [a / b for a, b in zip(numerators, denominators, strict=True)]


def median_interval(samples: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Return an interval that holds the true median with at least this probability, whatever the distribution.

    Its ends are samples: the ranks come from the binomial distribution. With fewer than 6 samples no interval has a
    probability of 0.95; it is then the whole range.

    Examples
    --------
    >>> from dmlgpu.bench.samples import median_interval
    >>> median_interval([5.0, 1.0, 4.0, 2.0, 3.0, 6.0, 7.0, 8.0, 9.0])
    (2.0, 8.0)
    """
    ordered = sorted(samples)
    n = len(ordered)
    outside, tail = (1.0 - confidence) / 2.0, 0.0
    cut = 0  # samples to leave out at each end
    for k in range(n // 2):
        tail += math.comb(n, k) / 2**n
        if tail > outside:
            break
        cut = k + 1
    cut = max(0, cut - 1)
    return ordered[cut], ordered[n - 1 - cut]
