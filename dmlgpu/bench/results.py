"""Pure: the results of a benchmark, and their files."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError
from .rows import OPERATORS, Row, shape_text

__all__ = [
    "Report",
    "Result",
    "Summary",
    "median_interval",
    "ratios",
    "read_report",
    "summarize",
]

_FORMAT = "dmlgpu bench"
_VERSION = 1
_LARGEST_FILE = 256 * 2**20


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
    >>> from dmlgpu.bench.results import summarize
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


def median_interval(samples: Sequence[float]) -> tuple[float, float]:
    """Return an interval that holds the true median with a probability of 0.95 or more, whatever the distribution.

    Its ends are samples: the ranks come from the binomial distribution. With fewer than 6 samples no interval has
    this probability; it is then the whole range.

    Examples
    --------
    >>> from dmlgpu.bench.results import median_interval
    >>> median_interval([5.0, 1.0, 4.0, 2.0, 3.0, 6.0, 7.0, 8.0, 9.0])
    (2.0, 8.0)
    """
    ordered = sorted(samples)
    n = len(ordered)
    tail = 0.0
    cut = 0  # samples to leave out at each end
    for k in range(n // 2):
        tail += math.comb(n, k) / 2**n
        if tail > 0.025:
            break
        cut = k + 1
    cut = max(0, cut - 1)
    return ordered[cut], ordered[n - 1 - cut]


@dataclass(frozen=True)
class Result:
    """The measurements of a row. All times are in seconds, samples in the order they were taken.

    Attributes
    ----------
    row : Row
        What was measured.
    seconds : list of float
        The time on the device.
    copy : str
        The way to copy that was the fastest for these bytes.
    copy_seconds : list of float
        Its time, taken in turn with `seconds`.
    dispatches : list of str
        The kernels that ran, in order; a count where one ran several times in a row.
    upload, download, whole, numpy : list of float
        The time to bring the input to the device, to bring the result back, and of the whole call, NumPy in and NumPy
        out, with NumPy's for the same taken in turn; empty where that was not measured.
    difference : str or None
        Where the result differs from the reference's, or None.
    warnings : list of str
        Reasons not to trust the times: a word of `dmlgpu.bench.runner.REASONS`, a colon, and how much.
    """

    row: Row
    seconds: list[float]
    copy: str = ""
    copy_seconds: list[float] = field(default_factory=list)
    dispatches: list[str] = field(default_factory=list)
    upload: list[float] = field(default_factory=list)
    download: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    numpy: list[float] = field(default_factory=list)
    difference: str | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def time(self) -> Summary:
        """The time on the device."""
        return summarize(self.seconds)

    @property
    def shares(self) -> list[float]:
        """The copy's time divided by this row's, pair by pair: 1 is as fast as a copy."""
        return ratios(self.copy_seconds, self.seconds) if self.copy_seconds else []

    @property
    def share(self) -> float | None:
        """The median of `shares`."""
        return summarize(self.shares).median if self.copy_seconds else None

    @property
    def speedup(self) -> float | None:
        """NumPy's time divided by that of the whole call, the median of pairs."""
        return summarize(ratios(self.numpy, self.whole)).median if self.whole else None

    @property
    def noise(self) -> float:
        """The noise of `shares`, or of `seconds` where there is no copy: interquartile range / median."""
        return summarize(self.shares).noise if self.copy_seconds else self.time.noise


@dataclass(frozen=True)
class Report:
    """A run.

    Attributes
    ----------
    header : mapping
        The machine, the device, versions and options, as values that JSON can hold.
    results : sequence of Result
        In the order they were measured.
    """

    header: Mapping[str, Any]
    results: Sequence[Result]

    def json(self) -> str:
        """Return the file that `read_report` reads."""
        rows = [asdict(result) for result in self.results]
        return json.dumps({"format": _FORMAT, "version": _VERSION, "header": self.header, "rows": rows}, indent=1)

    def csv(self) -> str:
        """Return a table for spreadsheets: plain numbers, times in seconds."""
        out = io.StringIO(_CSV)
        out.seek(0, io.SEEK_END)
        writer = csv.writer(out, lineterminator="\n")
        for result in self.results:
            row, time = result.row, result.time
            measured = [
                *(row.operator, row.type, shape_text(row.shape), "" if row.axis is None else row.axis),
                *(row.direction, row.exclusivity, row.kernel, row.elements, row.bytes_moved),
                *(time.median, time.minimum, result.noise, time.count),
                *(row.elements / time.median, row.bytes_moved / time.median),
                *(result.copy, result.share),
            ]
            ends = [summarize(x).median if x else "" for x in (result.whole, result.upload, result.download)]
            end = [result.speedup, result.difference or "same bits", "; ".join(result.warnings)]
            writer.writerow(["" if value is None else value for value in (*measured, *ends, *end)])
        return out.getvalue()


_CSV = (
    "operator,type,shape,axis,direction,exclusivity,kernel,elements,bytes_moved,median_s,minimum_s,noise,samples,"
    "elements_per_s,bytes_per_s,copy,share_of_copy,whole_s,upload_s,download_s,speedup_over_numpy,result,warnings\n"
)


def read_report(path: Path) -> Report:
    """Read a file that ``dmlgpu bench --json`` wrote.

    Raises
    ------
    ArgumentError
        If it is no such file, or of another version.
    OSError
        If it cannot be read.
    """
    with path.open("rb") as file:
        text = file.read(_LARGEST_FILE + 1)
    try:
        if len(text) > _LARGEST_FILE:
            raise ValueError
        content = json.loads(text)
    except (ValueError, RecursionError):  # also what is not UTF-8
        raise ArgumentError(f"{path} is no result of 'dmlgpu bench --json': it is not JSON") from None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise ArgumentError(f"{path} is no result of 'dmlgpu bench --json'")
    if content.get("version") != _VERSION:
        raise ArgumentError(
            f"{path} has version {content.get('version')} of the format, and this dmlgpu reads version {_VERSION}: "
            "measure again, or compare with the dmlgpu that wrote it"
        )
    try:
        header = {name: content["header"][name] for name in ("device", "machine", "versions", "clock", "clock_reason")}
        device, machine = header["device"], header["machine"]
        if not isinstance(device["summary"], str) or not isinstance(machine, dict):
            raise TypeError("its header does not say which device and machine it is of")
        return Report(content["header"] | header, [_result(entry) for entry in content["rows"]])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ArgumentError(f"{path} is damaged: {type(error).__name__}: {error}; measure again") from None


def _result(entry: Mapping[str, Any]) -> Result:
    known = {one.name for one in fields(Result)} - {"row"}
    row = Row(**(entry["row"] | {"shape": tuple(entry["row"]["shape"])}))
    _check_row(row)
    result = Result(row, **{name: value for name, value in entry.items() if name in known})
    for name in _SAMPLES:
        samples = getattr(result, name)
        if not isinstance(samples, list) or not all(
            type(one) in (int, float) and 0 < one < math.inf for one in samples
        ):
            raise ValueError(f"{name} of {row.name} are no times")
    for name in ("dispatches", "warnings"):
        texts = getattr(result, name)
        if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
            raise ValueError(f"{name} of {row.name} are no texts")
    values: list[object] = [result.copy, result.difference or ""]
    if not all(isinstance(value, str) for value in values):
        raise ValueError(f"copy or difference of {row.name} is no text")
    has_copy = bool(result.copy_seconds) or row.operator != "copy"
    if not result.seconds or (has_copy and len(result.copy_seconds) != len(result.seconds)):
        raise ValueError(f"{row.name} has {len(result.seconds)} samples and {len(result.copy_seconds)} of the copy")
    return result


def _check_row(row: Row) -> None:
    """Raise ValueError unless a row is one that can be measured, as far as its types go."""
    texts = (row.operator, row.type, row.direction, row.exclusivity, row.kernel)
    if not all(isinstance(text, str) for text in texts) or row.operator not in (*OPERATORS, "copy"):
        raise ValueError("a row has no operator or type")
    if not row.shape or not all(type(size) is int and 0 < size < 2**32 for size in row.shape):
        raise ValueError("a row has no shape")
    if type(row.axis) not in (int, type(None)):
        raise ValueError("a row has no axis")


_SAMPLES = ("seconds", "copy_seconds", "upload", "download", "whole", "numpy")
