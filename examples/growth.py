"""What savings may grow to in forty years, in 20,000 futures: running products of a table, on the GPU.

Each future is made of five stretches of eight years, drawn at random, of what Treasury bills earned beyond inflation
from 1959 to 2009. A running product along each row says what a dollar has become, in constant prices. A running product
from the end says what a dollar that is put aside later will become.

Run ``python examples/growth.py``. The plot needs matplotlib, which the extra ``plot`` brings.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import dmlgpu

HERE = Path(__file__).resolve().parent
DATA = HERE / "data" / "us_macro.csv"
PLOT = HERE / "output" / "growth.png"
FUTURES, QUARTERS, TOGETHER = 20_000, 160, 32
SHARES = (5, 25, 50, 75, 95)
"""Of the futures, in per cent, which have grown to no more than the drawn lines."""

Floats = NDArray[np.float32]


def factors() -> Floats:
    """Return by what a dollar in Treasury bills grew in each quarter, in prices of the quarter before."""
    table = np.genfromtxt(DATA, delimiter=",", names=True)
    interest = 1 + table["tbilrate"][:-1] / 400  # per cent a year, paid for a quarter
    prices = table["cpi"][1:] / table["cpi"][:-1]
    return np.asarray(interest / prices, np.float32)


def futures(past: Floats) -> Floats:
    """Return a row of quarters for each future, made of stretches of the past; always the same."""
    rng = np.random.default_rng(1959)
    starts = rng.integers(0, len(past) - TOGETHER + 1, size=(FUTURES, QUARTERS // TOGETHER, 1))
    return np.asarray(past[(starts + np.arange(TOGETHER)).reshape(FUTURES, QUARTERS)])


def show(growth: Floats, to_come: Floats) -> None:
    print(f"what a dollar has grown to, in {FUTURES} futures")
    print("years    " + "".join(f"{share:4}%    " for share in SHARES))
    for year in (10, 20, 30, 40):
        row = np.percentile(growth[:, 4 * year - 1], SHARES)
        print(f"{year:5}    " + "".join(f"{value:5.3f}    " for value in row))
    # A dollar put aside at the end of each quarter grows by what is still to come.
    saved = to_come.sum(axis=1, dtype=np.float64)
    middle = np.median(saved)
    print(f"A dollar put aside each quarter, 160 in all, has become {middle:.0f} in half of them.")


def plot(growth: Floats, path: Path) -> bool:
    """Draw the shares of the futures into a PNG file; return False if matplotlib is not installed."""
    try:
        import matplotlib

        matplotlib.use("Agg")  # a file needs no display
        from matplotlib import pyplot
    except ImportError:
        return False
    years = np.arange(1, QUARTERS + 1) / 4
    lines = np.percentile(growth, SHARES, axis=0)
    figure, axes = pyplot.subplots(figsize=(9, 4.2), layout="constrained")
    axes.plot(years, growth[:60].T, color="#b4bac0", alpha=0.35, linewidth=0.6)
    axes.fill_between(years, lines[0], lines[-1], color="#1f5f99", alpha=0.18, linewidth=0, label="90% of the futures")
    axes.fill_between(years, lines[1], lines[-2], color="#1f5f99", alpha=0.35, linewidth=0, label="half of them")
    axes.plot(years, lines[2], color="#1f5f99", linewidth=2, label="the median")
    axes.axhline(1, color="#333333", linewidth=0.8)
    axes.set_title(f"A dollar in Treasury bills, in constant prices: {FUTURES} running products", loc="left")
    axes.set_xlabel("years")
    axes.set_xlim(0, QUARTERS / 4)
    axes.legend(loc="upper left", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return True


def main(arguments: list[str] | None = None) -> int:
    """Run the example; return the exit status."""
    parser = argparse.ArgumentParser(description="What savings may grow to, in 20,000 futures.")
    parser.add_argument("-o", "--output", type=Path, default=PLOT, help="where the plot goes (default: %(default)s)")
    path = parser.parse_args(arguments).output
    warnings.simplefilter("ignore", dmlgpu.SoftwareAdapterWarning)
    table = dmlgpu.asarray(futures(factors()))  # stays on the device for both scans
    growth = dmlgpu.cumulative_prod(table, axis=1).numpy()
    to_come = dmlgpu.cumulative_prod(table, axis=1, exclusive=True, reverse=True).numpy()
    show(growth, to_come)
    if plot(growth, path):
        print(f"Plot: {os.path.relpath(path)}")
    else:
        print("No plot, because matplotlib is not installed: python -m pip install matplotlib")
    return 0


if __name__ == "__main__":
    sys.exit(main())
