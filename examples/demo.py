"""Fifty years of the US economy in three operators: a running product, a running sum and a rounding, on the GPU.

Run ``make demo``, or ``python examples/demo.py`` where dmlgpu is installed. Every result is compared with NumPy in
float64 and, bit for bit, with the order of operations that the package promises. The exit status is 1 if any differs.
The plot needs matplotlib, which the extra ``plot`` brings.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import dmlgpu
from dmlgpu import reference

HERE = Path(__file__).resolve().parent
DATA = HERE / "data" / "us_macro.csv"
PLOT = HERE / "output" / "demo.png"
MODES: Final = ("half_even", "toward_zero", "half_away")

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Economy:
    """The inputs, one column a quarter.

    Attributes
    ----------
    quarters : list of str
        Such as ``"1959 Q1"``.
    years : ndarray
        The start of each quarter in years.
    factors : ndarray, shape (2, n)
        By what prices and a deposit in Treasury bills grew since the quarter before; 1 for the first.
    output : ndarray, shape (2, n)
        Gross domestic product and consumption of the quarter, in 10^12 dollars of 2005.
    unemployment : ndarray, shape (n,)
        Unemployment rate in per cent.
    """

    quarters: list[str]
    years: NDArray[np.float64]
    factors: Floats
    output: Floats
    unemployment: Floats


@dataclass(frozen=True)
class Results:
    """What the GPU made of them, in the same shapes.

    Attributes
    ----------
    growth : ndarray, shape (2, n)
        Running product of `factors`: what prices and a deposit have grown to since the first quarter.
    to_come : ndarray, shape (n,)
        Exclusive running product of the price factors from the end: how many dollars of the last quarter buy what
        one dollar bought in this one.
    total : ndarray, shape (2, n)
        Running sum of `output`.
    rounded : dict of str to ndarray, each of shape (n,)
        `unemployment` rounded in the three modes.
    """

    growth: Floats
    to_come: Floats
    total: Floats
    rounded: dict[str, Floats]


def load() -> Economy:
    """Read the data set."""
    table = np.genfromtxt(DATA, delimiter=",", names=True)
    growth = np.ones((2, len(table)))
    growth[0, 1:] = table["cpi"][1:] / table["cpi"][:-1]
    growth[1, 1:] = 1 + table["tbilrate"][:-1] / 400  # per cent a year, paid for a quarter
    output = np.stack([table["realgdp"], table["realcons"]]) / 4000  # from 10^9 a year to 10^12 a quarter
    return Economy(
        [f"{year:.0f} Q{quarter:.0f}" for year, quarter in zip(table["year"], table["quarter"], strict=True)],
        table["year"] + (table["quarter"] - 1) / 4,
        growth.astype(np.float32),
        output.astype(np.float32),
        table["unemp"].astype(np.float32),
    )


def compute(data: Economy) -> Results:
    """Run the three operators on the GPU."""
    return Results(
        dmlgpu.cumulative_prod(data.factors, axis=1),
        dmlgpu.cumulative_prod(data.factors[0], exclusive=True, reverse=True),
        dmlgpu.cumulative_sum(data.output, axis=1),
        {mode: dmlgpu.round(data.unemployment, mode=mode) for mode in MODES},
    )


def check(data: Economy, results: Results) -> bool:
    """Compare every result with NumPy in float64 and with the promised bits; print a line each."""
    prices = data.factors[0].astype(np.float64)
    x = data.unemployment.astype(np.float64)
    half_away = np.copysign(np.floor(np.abs(x) + 0.5), x)  # exact here: float64 has room for a float32 and its half
    exact = np.stack([np.rint(x), np.trunc(x), half_away])
    modes = [reference.round(data.unemployment, mode) for mode in MODES]
    # Each float32 operation is off by a factor of 1 + 2**-24 at most. A product takes on the error of each of its n - 1
    # multiplications. A sum of positive terms takes on only those on the longest way from a term to the result, of
    # which the order of operations allows n / 65,536 + 53. (One more covers what such factors make among themselves.)
    product_limit = len(x) * 2.0**-24
    sum_limit = 54 * 2.0**-24
    rows: list[tuple[str, float, Any, Any, Any]] = [
        (
            "running product",
            product_limit,
            results.growth,
            np.cumprod(data.factors, axis=1, dtype=np.float64),
            reference.cumulative(data.factors, "product", axis=1),
        ),
        (
            "  exclusive, from the end",
            product_limit,
            results.to_come,
            np.append(np.cumprod(prices[:0:-1])[::-1], 1),
            reference.cumulative(data.factors[0], "product", axis=0, exclusive=True, reverse=True),
        ),
        (
            "running sum",
            sum_limit,
            results.total,
            np.cumsum(data.output, axis=1, dtype=np.float64),
            reference.cumulative(data.output, "sum", axis=1),
        ),
        ("rounding, three modes", 0.0, np.stack([results.rounded[mode] for mode in MODES]), exact, np.stack(modes)),
    ]
    print("                                    largest relative error     same bits as")
    print("check                      values   against NumPy (limit)      the reference")
    passed = True
    for name, limit, got, expected, promised in rows:
        error = float(np.max(np.abs(got - expected) / np.abs(expected)))
        difference = reference.first_difference(got, promised)
        passed &= error <= limit and difference is None
        verdict = " " if error <= limit else "!"
        bits = "yes" if difference is None else f"NO: {difference}"
        print(f"{name:26} {got.size:6}   {error:7.1e} ({limit:7.1e}) {verdict}        {bits}")
    return passed


def show(data: Economy, results: Results) -> None:
    """Print the results for a few quarters; several have an unemployment rate halfway between two whole numbers."""
    print("             prices,    a dollar   one dollar of     output since     unemployment, per cent")
    print("             1959 Q1    saved in   then, in those    1959 Q1, 10^12   as     half  toward  half")
    print("quarter      = 1        bills      of 2009 Q3        dollars of 2005  is     even  zero    away")
    for quarter in ("1959 Q1", "1968 Q3", "1975 Q3", "1984 Q2", "1995 Q1", "2001 Q4", "2007 Q2", "2009 Q3"):
        i = data.quarters.index(quarter)
        even, zero, away = (results.rounded[mode][i] for mode in MODES)
        print(
            f"{quarter:11} {results.growth[0, i]:8.4f} {results.growth[1, i]:11.4f} {results.to_come[i]:15.4f} "
            f"{results.total[0, i]:19.3f}  {data.unemployment[i]:6.1f} {even:8.0f} {zero:7.0f} {away:5.0f}"
        )
    means = [f"{results.rounded[mode].mean(dtype=np.float64):.3f} ({mode})" for mode in MODES]
    mean = data.unemployment.mean(dtype=np.float64)
    print(f"Mean unemployment of all {len(data.quarters)} quarters: {mean:.3f}; rounded: {', '.join(means)}.")


def plot(data: Economy, results: Results, path: Path) -> bool:
    """Draw the results into a PNG file; return False if matplotlib is not installed."""
    try:
        import matplotlib

        matplotlib.use("Agg")  # a file needs no display
        from matplotlib import pyplot
    except ImportError:
        return False
    blue, orange, green, grey = "#1f5f99", "#d9822b", "#3f8f4f", "#b4bac0"
    style: dict[Any, Any] = {
        "font.size": 9,
        "axes.titlesize": 11,
        "axes.axisbelow": True,
        "axes.grid": True,
        "grid.color": "#e6e6e6",
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with pyplot.rc_context(style):
        figure, (left, middle, right) = pyplot.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
        for row, name, colour in ((1, "a dollar in Treasury bills", blue), (0, "prices", orange)):
            growth = results.growth[row]
            left.plot(data.years, growth, color=colour, label=f"{name}: {growth[-1]:.1f} times")
        left.legend(loc="upper left", frameon=False)
        left.set_title("Running product: growth since 1959", loc="left")
        left.set_ylim(0)

        names = ("gross domestic product", "consumption")
        for row, colour, name in zip((0, 1), (grey, blue), names, strict=True):
            middle.fill_between(data.years, results.total[row], color=colour, alpha=0.85, linewidth=0, label=name)
        middle.legend(loc="upper left", frameon=False)
        middle.set_title("Running sum: output since 1959", loc="left")
        middle.set_ylabel("10$^{12}$ dollars of 2005")
        middle.set_ylim(0)

        even, zero, away = (results.rounded[mode] for mode in MODES)
        half = data.unemployment % 1 == 0.5
        right.step(data.years, even, where="mid", color=blue, alpha=0.45, linewidth=1, label="half_even")
        right.plot(data.years, data.unemployment, color="#333333", linewidth=1, label="unemployment rate")
        right.plot(data.years[half], away[half], "^", color=orange, markersize=4, label="half_away, of halves")
        right.plot(data.years[half], zero[half], "v", color=green, markersize=4, label="toward_zero, of halves")
        right.legend(loc="upper left", frameon=False, ncols=2, columnspacing=1, handlelength=1.4)
        right.set_title("Rounding: unemployment to whole per cent", loc="left")
        right.set_ylim(2.5, 13.5)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110)
        pyplot.close(figure)
    return True


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; return the exit status."""
    parser = argparse.ArgumentParser(description="Fifty years of the US economy in three operators on the GPU.")
    parser.add_argument("-o", "--output", type=Path, default=PLOT, help="where the plot goes (default: %(default)s)")
    path = parser.parse_args(arguments).output
    warnings.simplefilter("ignore", dmlgpu.SoftwareAdapterWarning)  # the first line names the device
    data = load()
    print(f"The US economy, {data.quarters[0]} to {data.quarters[-1]}, on {dmlgpu.default_device().summary}\n")
    results = compute(data)
    show(data, results)
    print()
    passed = check(data, results)
    print("\nAll checks passed." if passed else "\nA CHECK FAILED.")
    if plot(data, results, path):
        print(f"Plot: {os.path.relpath(path)}")
    else:
        print("No plot, because matplotlib is not installed: python -m pip install matplotlib")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
