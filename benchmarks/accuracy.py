"""Measure how far cumulative sums are from the exact ones: dmlgpu's, NumPy's, PyTorch's, and naive ones in float16.

    python benchmarks/accuracy.py [--lengths 1000,100000,10000000] [--device D] [--plot FILE]

All add the same float32 numbers. The exact sums of every prefix are integers of 96 bits, so that each error is measured
and not estimated. docs/numerics.md says what the tables mean.
"""

from __future__ import annotations

import argparse
import platform
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dmlgpu

Floats = NDArray[np.float32]
Adder = Callable[[Floats], NDArray[Any]]
"""Returns all cumulative sums, or only the last."""

LENGTHS = (1000, 10_000, 100_000, 1_000_000, 10_000_000)
CANCELLED = 2.0**-14
"""Results below this share of the sum of magnitudes are left out where errors are in units in the last place."""


def distributions(length: int) -> dict[str, Floats]:
    """Return the data, always the same.

    uniform: from 0 to 1. normal: standard, of both signs. geometric: from 1 down to 2^-40. cancelling: uniform numbers,
    each followed by nearly its negative.
    """
    rng = np.random.default_rng(length)
    uniform = rng.random(length)
    pairs = np.stack([uniform, uniform * (2.0**-10 - 1)], axis=-1)
    return {
        "uniform": uniform.astype(np.float32),
        "normal": rng.standard_normal(length).astype(np.float32),
        "geometric": np.exp2(-40 * np.arange(length) / length).astype(np.float32),
        "cancelling": pairs.reshape(-1)[:length].astype(np.float32),
    }


@dataclass(frozen=True)
class Exact:
    """Exact sums of every prefix: (high * 2^32 + low) * 2^-places.

    Attributes
    ----------
    places : int
        Binary places after the point; all elements are multiples of 2^-places.
    high, low : ndarray of int64
        The sums, 0 <= low < 2^32.
    """

    places: int
    high: NDArray[np.int64]
    low: NDArray[np.int64]

    @classmethod
    def of(cls, x: Floats) -> Exact:
        """Add up a vector.

        Raises
        ------
        ValueError
            If the elements' sizes differ so much that integers of 96 bits could overflow.
        """
        sizes = np.abs(x[x != 0])
        # A float32 is a multiple of 2^-24 times the power of two above it.
        places = 24 - int(np.frexp(sizes.min())[1]) if sizes.size else 0
        if sizes.size and int(np.frexp(sizes.max())[1]) + places + len(x).bit_length() > 94:
            raise ValueError(f"elements from {sizes.min()} to {sizes.max()} have too many places for exact sums")
        high, low = _split(x, places)
        return cls(places, *_normal(np.cumsum(high), np.cumsum(low)))

    def values(self) -> NDArray[np.float64]:
        """Return the sums, each rounded to float64."""
        return _join(self.high, self.low, self.places)

    def errors(self, results: NDArray[Any]) -> NDArray[np.float64]:
        """Return results minus exact sums, infinite where a result is; for a single result, minus the last."""
        part = slice(-1, None) if results.size == 1 else slice(None)
        finite = np.isfinite(results)
        high, low = _split(np.where(finite, results, 0), self.places)
        return np.where(finite, _join(high - self.high[part], low - self.low[part], self.places), np.inf)


def _split(x: NDArray[Any], places: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return multiples of 2^-places as high and low parts; what is finer is cut off, less than 2^-places."""
    scaled = np.ldexp(x.astype(np.float64), places)
    high = np.floor(np.ldexp(scaled, -32))
    return high.astype(np.int64), (scaled - np.ldexp(high, 32)).astype(np.int64)


def _normal(high: NDArray[np.int64], low: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return high + (low >> 32), low & (2**32 - 1)


def _join(high: NDArray[np.int64], low: NDArray[np.int64], places: int) -> NDArray[np.float64]:
    return np.ldexp(np.ldexp(high.astype(np.float64), 32) + low, -places)


def adders(device: dmlgpu.Device) -> dict[str, Adder]:
    """Return the ways to add that are here, by name."""
    found: dict[str, Adder] = {
        "dmlgpu": lambda x: dmlgpu.cumulative_sum(x, device=device),
        "dmlgpu, compensated": lambda x: dmlgpu.cumulative_sum(x, precision="compensated", device=device),
        "NumPy cumsum": lambda x: np.cumsum(x),
        "NumPy sum": lambda x: np.atleast_1d(np.sum(x)),
        "dmlgpu, float16": lambda x: dmlgpu.cumulative_sum(x.astype(np.float16), device=device),
        "naive float16": lambda x: np.add.accumulate(x.astype(np.float16)),
    }
    try:
        import torch
    except ImportError:
        print("without PyTorch, which is not installed: pip install torch (the CPU build is enough)", file=sys.stderr)
    else:
        found["PyTorch cumsum"] = lambda x: np.asarray(torch.cumsum(torch.from_numpy(x), 0).numpy())
    return found


@dataclass(frozen=True)
class Measured:
    """The largest errors of a way to add.

    Attributes
    ----------
    relative : float
        By the sum of magnitudes of all elements.
    units : float
        In units in the last place of the exact sum as a float32, where that is not nearly cancelled; NaN if all are.
    """

    relative: float
    units: float


def measure(x: Floats, ways: Mapping[str, Adder]) -> dict[str, Measured]:
    """Return the largest errors among all prefixes of a vector."""
    exact, magnitudes = Exact.of(x), Exact.of(np.abs(x)).values()
    values = exact.values()
    usable = np.abs(values) >= CANCELLED * magnitudes
    found = {}
    for name, add in ways.items():
        results = add(x)
        part = slice(-1, None) if results.size == 1 else slice(None)
        errors = np.abs(exact.errors(results))
        relative = errors.max() / magnitudes[-1]
        chosen = usable[part]
        spacing = np.spacing(np.abs(values[part][chosen]).astype(np.float32)).astype(np.float64)
        units = np.max(errors[chosen] / spacing) if chosen.any() else np.nan
        found[name] = Measured(float(relative), float(units))
    return found


def bound(length: int) -> float:
    """Return the bound of float32 sums, by the sum of magnitudes."""
    roundings = length // 65_536 + 53
    return roundings * 2.0**-24 / (1 - roundings * 2.0**-24)


Found = dict[str, dict[int, dict[str, Measured]]]


def tables(found: Found) -> str:
    """Return the errors in Markdown: by the sum of magnitudes, then those of float32, at the longest, in units."""
    lengths = [*next(iter(found.values()))]
    names = [*next(iter(found.values()))[lengths[0]]]
    rule = "|---" * (len(names) + 2) + "|"
    lines = [f"| data | elements | {' | '.join(names)} | bound |", rule + "---|"]
    for distribution, by_length in found.items():
        for length, measured in by_length.items():
            relative = [measured[name].relative for name in names]
            cells = [f"{error:.1e}" if np.isfinite(error) else "overflow" for error in relative]
            lines.append(f"| {distribution} | {length:,} | {' | '.join(cells)} | {bound(length):.1e} |")
    names = [name for name in names if "float16" not in name]
    lines += ["", f"| data | elements | {' | '.join(names)} |", "|---" * (len(names) + 2) + "|"]
    for distribution, by_length in found.items():
        measured = by_length[lengths[-1]]
        cells = [f"{measured[name].units:,.{2 if measured[name].units < 10 else 0}f}" for name in names]
        lines.append(f"| {distribution} | {lengths[-1]:,} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def plot(found: Found, path: Path) -> None:
    """Draw the errors in relation to the magnitudes over the length, a panel a distribution."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(2, 2, figsize=(10, 7.5), sharex=True, sharey=True, layout="constrained")
    for panel, (distribution, by_length) in zip(panels.flat, found.items(), strict=True):
        lengths = [*by_length]
        for name in by_length[lengths[0]]:
            style, fill = ("o-", "full") if name.startswith("dmlgpu") else ("s--", "none")
            errors = [by_length[n][name].relative for n in lengths]
            panel.plot(lengths, errors, style, fillstyle=fill, label=name, alpha=0.8)
        panel.plot(lengths, [bound(n) for n in lengths], "k:", label="bound of dmlgpu's float32 sums")
        panel.set(title=distribution, xscale="log", yscale="log")
        panel.grid(alpha=0.3)
    for panel in panels[-1]:
        panel.set_xlabel("elements")
    for panel in panels[:, 0]:
        panel.set_ylabel("largest error / sum of magnitudes")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)), help="by default %(default)s")
    parser.add_argument("--device", help="part of an adapter's summary, or its index")
    parser.add_argument("--plot", metavar="FILE", type=Path, help="also draw it; needs matplotlib")
    arguments = parser.parse_args()
    try:
        lengths = sorted({int(part) for part in arguments.lengths.split(",")})
    except ValueError:
        parser.error(f"--lengths is {arguments.lengths!r}; it is a list of numbers, such as 1000,100000")
    if lengths[0] < 1:
        parser.error(f"--lengths has {lengths[0]}; each is at least 1")
    warnings.simplefilter("ignore", dmlgpu.SoftwareAdapterWarning)
    found: Found = {}
    try:
        opened = dmlgpu.Device(arguments.device)
    except dmlgpu.DmlGpuError as error:
        parser.error(str(error))
    with opened as device:
        ways = adders(device)
        for length in lengths:
            for distribution, x in distributions(length).items():
                found.setdefault(distribution, {})[length] = measure(x, ways)
        versions = [f"Python {platform.python_version()}", f"NumPy {np.__version__}"]
        if "PyTorch cumsum" in ways:
            versions.append(f"PyTorch {sys.modules['torch'].__version__}")
        print(f"{device.summary}; {', '.join(versions)}\n\n{tables(found)}")
    if arguments.plot is not None:
        plot(found, arguments.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
