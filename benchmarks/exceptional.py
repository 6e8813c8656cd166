"""Measures what handling NaN, infinity and overflow costs, and prints its tables in Markdown.

    python -m benchmarks.exceptional [--device D] [--samples N]

First each kernel on finite data, with the check against shaders without it (the constant ``EXCEPTIONS`` of the
element's piece is false, and the order is kept); then products, with the check of what is near underflow against
shaders that only look for NaN and infinity, and whose left folds have subnormal numbers; then a decay, a zero, a NaN,
and one infinity or one value near overflow early in 10^7 elements, against ordinary data. Both sides of a ratio are
taken in turn; times are wall times of a run on the device and of reading 16 elements back, or with ``--cpu`` the
processor's, which a busy machine disturbs less.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dmlgpu import shaders
from dmlgpu.conformance import Placement, ScanCase
from dmlgpu.planning.dispatch import PipelineKey
from dmlgpu.planning.problem import ScanProblem
from dmlgpu.runtime.device import Device
from dmlgpu.runtime.pipelines import Pipelines

from .options import add_count, add_device, opened

CHECKED = "const EXCEPTIONS = true;"
UNCHECKED = {CHECKED: "const EXCEPTIONS = false;", "const EXACT = !EXCEPTIONS;": "const EXACT = false;"}
WITHOUT_RANGE = {
    "const SMALL = 2u * NORMAL;": "const SMALL = 0u;",
    "magnitude(a) < least)": "false)",
    "smallest < least)": "false)",
    "return smallest - SMALL;": "return 0u;",
    "is_tiny(size))": "false)",
    "min(element, magnitude(item))": "ONE",
    "smaller(before.smallest, size)": "size_of(identity())",
    "fine_magnitude(a) <= NORMAL)": "false)",
}
SHAPES: tuple[tuple[str, tuple[int, ...], int], ...] = (  # kernel, shape, axis
    ("slices", (256, 16_384), 1),
    ("rows", (256, 16_384), 1),
    ("lookback", (256, 16_384), 1),
    ("serial", (4, 2**20), 1),
    ("slices", (4096, 1024), 0),
    ("slices", (2**17, 32), 1),
)
PRODUCTS: tuple[tuple[str | None, tuple[int, ...], int], ...] = (  # kernel (the planned one if None), shape, axis
    (None, (2**24,), 0),
    (None, (4096, 4096), 1),
    (None, (4096, 4096), 0),
    (None, (256, 256, 256), 1),
    (None, (2**20, 16), 1),
    (None, (2**22, 3), 1),
    ("rows", (256, 16_384), 1),
    ("lookback", (256, 16_384), 1),
)
TYPES = ("float32", "float16", "float64")


class Unchecked(Pipelines):
    """Pipelines whose shaders leave a check out.

    Attributes
    ----------
    changes : mapping of str to str
        What stands in the shaders for the check, and what takes its place.
    altered : int
        How many modules that made different.
    """

    altered = 0

    def __init__(self, device: Device, changes: Mapping[str, str]) -> None:
        super().__init__(device.gpu_device)
        self.changes = changes

    def _module(self, key: PipelineKey) -> tuple[shaders.Shader, Any]:
        shader = shaders.resolve(key.kernel, dict(key.slots))
        source = shader.source
        for checked, unchecked in self.changes.items():
            source = source.replace(checked, unchecked)
        self.altered += source != shader.source
        shader = replace(shader, source=source)
        return shader, self._gpu_device.create_shader_module(label=key.kernel, code=shader.source)


class Ratio(NamedTuple):
    """Medians, the times in seconds."""

    one: float
    other: float
    value: float


def scan(kind: str, shape: tuple[int, ...], axis: int, operator: str = "sum") -> ScanProblem:
    """Return an inclusive, increasing scan of packed elements."""
    return ScanCase(kind, shape, Placement(), "plain", operator, axis, False, False, "auto").problem()


def finite(kind: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return elements near 1, whose sums and products stay finite, but for long sums of float16."""
    return (1 + 1e-6 * np.random.default_rng(1).random(shape)).astype(kind)


clock = time.perf_counter


def ratio(device: Device, way: str | None, samples: int, *sides: tuple[ScanProblem, NDArray[Any], Pipelines]) -> Ratio:
    """Run two scans in turn, each through pipelines of its own, and return their times and the ratio of these.

    The first two samples of each, in which pipelines are made, do not count. Sides with the same elements have the same
    buffers: where others lie in memory can matter more than the shaders.
    """
    of_elements = {id(x): (device.allocate(x.nbytes), device.allocate(x.nbytes)) for _, x, _ in sides}
    buffers = [of_elements[id(x)] for _, x, _ in sides]
    for (source, _), (_, x, _) in zip(buffers, sides, strict=True):
        device.upload(source, 0, x)
    own, times = device._executor.pipelines, np.empty((samples + 2, len(sides)))
    try:
        for sample, side in np.ndindex(times.shape):
            problem, x, device._executor.pipelines = sides[side]
            some = np.empty(16, x.dtype)
            start = clock()
            device.run(problem, *buffers[side], kernel=way)
            device.download(buffers[side][1], 0, some)
            times[sample, side] = clock() - start
    finally:
        device._executor.pipelines = own
        for pair in of_elements.values():
            for buffer in pair:
                buffer.release()
    one, other = times[2:].T
    return Ratio(float(np.median(one)), float(np.median(other)), float(np.median(one / other)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_device(parser)
    add_count(parser, "--samples", 15)
    parser.add_argument("--cpu", action="store_true", help="measure the processor's time instead of the wall's")
    arguments = parser.parse_args()
    if arguments.cpu:
        global clock
        clock = time.process_time
    device = opened(parser, arguments.device)
    checked, unchecked = device.pipelines, Unchecked(device, UNCHECKED)
    print(f"{device.summary}\n\n| kernel, shape | axis | {' | '.join(f'{kind} sum, product' for kind in TYPES)} |")
    print("|---" * (2 + len(TYPES)) + "|")
    for way, shape, axis in SHAPES:
        cells = []
        for kind in TYPES:
            x = finite(kind, shape)
            scans = [scan(kind, shape, axis, operator) for operator in ("sum", "product")]
            prices = [ratio(device, way, arguments.samples, (one, x, checked), (one, x, unchecked)) for one in scans]
            cells.append(", ".join(f"{price.value:.2f}" for price in prices))
        name = f"`{way}`, {' x '.join(map(str, shape))}"
        print(f"| {name} | {'last' if axis == len(shape) - 1 else 'first'} | {' | '.join(cells)} |", flush=True)
    if not unchecked.altered:
        raise SystemExit(f"no shader has {CHECKED!r}: the table compares them with themselves")

    without = Unchecked(device, WITHOUT_RANGE)
    print(f"\n| products | axis | {' | '.join(TYPES)} |\n{'|---' * (2 + len(TYPES))}|")
    for kernel, shape, axis in PRODUCTS:
        cells = []
        for kind in TYPES:
            one, x = scan(kind, shape, axis, "product"), finite(kind, shape)
            cells.append(f"{ratio(device, kernel, arguments.samples, (one, x, checked), (one, x, without)).value:.2f}")
        name = f"{f'`{kernel}`' if kernel else 'as planned'}, {' x '.join(map(str, shape))}"
        which = "last" if axis == len(shape) - 1 else "first" if axis == 0 else "middle"
        print(f"| {name} | {which} | {' | '.join(cells)} |", flush=True)
    if not without.altered:
        raise SystemExit("no shader has the check of what is near underflow: the table compares them with themselves")

    decay, zero, nan = np.full(10**6, 0.999, np.float32), np.ones(10**6, np.float32), np.ones(10**6, np.float32)
    zero[0], nan[3] = 0, np.nan
    one, ordinary = scan("float32", decay.shape, 0, "product"), finite("float32", decay.shape)
    print("\n| products of 10^6 elements | 0.999 each | a zero at the start | a NaN |\n|---|---|---|---|")
    for kernel in (None, "rows", "lookback", "serial", "slices"):
        cells = []
        for x in (decay, zero, nan):
            price = ratio(device, kernel, arguments.samples, (one, x, checked), (one, ordinary, checked))
            cells.append(f"{price.value:.2f}")
        print(f"| {f'`{kernel}`' if kernel else 'as planned'} | {' | '.join(cells)} |", flush=True)

    x = finite("float32", (10**7,))
    one = scan("float32", x.shape, 0)
    for title, value in (("an infinity", np.inf), ("a value of 10^37", 1e37)):
        print(f"\n| kernel, 10^7 elements | finite | with {title} | ratio |\n|---|---|---|---|")
        other = x.copy()
        other[10] = value
        for kernel in (None, "rows", "lookback", "serial", "slices"):
            price = ratio(device, kernel, arguments.samples, (one, other, checked), (one, x, checked))
            times = f"{1000 * price.other:.1f} ms | {1000 * price.one:.1f} ms | {price.value:.2f}"
            print(f"| {f'`{kernel}`' if kernel else 'as planned'} | {times} |", flush=True)


if __name__ == "__main__":
    main()
