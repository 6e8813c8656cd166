"""Measures what handling NaN, infinity and overflow costs, and prints two tables in Markdown.

    python -m benchmarks.exceptional [--device D] [--samples N]

First each kernel on finite data, with the check against shaders without it (the constant ``EXCEPTIONS`` of the
element's piece is false, and the order is kept), then one infinity early in 10^7 elements against finite data. Both
sides of a ratio are taken in turn; times are wall times of a run on the device and of reading 16 elements back.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import dmlgpu
from dmlgpu import shaders
from dmlgpu.conformance import Placement, ScanCase
from dmlgpu.passes import PipelineKey
from dmlgpu.problem import ScanProblem
from dmlgpu.runtime.device import Device
from dmlgpu.runtime.pipelines import Pipelines

CHECKED = "const EXCEPTIONS = true;"
UNCHECKED = {CHECKED: "const EXCEPTIONS = false;", "const EXACT = !EXCEPTIONS;": "const EXACT = false;"}
SHAPES: tuple[tuple[str, tuple[int, ...], int], ...] = (  # kernel, shape, axis
    ("slices", (256, 16_384), 1),
    ("rows", (256, 16_384), 1),
    ("tiles", (256, 16_384), 1),
    ("serial", (4, 2**20), 1),
    ("chain", (4, 2**20), 1),
    ("slices", (4096, 1024), 0),
    ("slices", (2**17, 32), 1),
)
TYPES = ("float32", "float16", "float64")


class Unchecked(Pipelines):
    """Pipelines whose shaders take every result for an ordinary one.

    Attributes
    ----------
    altered : int
        How many modules that made different.
    """

    altered = 0

    def _module(self, key: PipelineKey) -> tuple[shaders.Shader, Any]:
        shader = shaders.resolve(key.kernel, dict(key.slots))
        source = shader.source
        for checked, unchecked in UNCHECKED.items():
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


def ratio(device: Device, way: str | None, samples: int, *sides: tuple[ScanProblem, NDArray[Any], Pipelines]) -> Ratio:
    """Run two scans in turn, each through pipelines of its own, and return their times and the ratio of these.

    The first two samples of each, in which pipelines are made, do not count.
    """
    buffers = [(device.allocate(x.nbytes), device.allocate(x.nbytes)) for _, x, _ in sides]
    for (source, _), (_, x, _) in zip(buffers, sides, strict=True):
        device.upload(source, 0, x)
    own, times = device._executor.pipelines, np.empty((samples + 2, len(sides)))
    try:
        for sample, side in np.ndindex(times.shape):
            problem, x, device._executor.pipelines = sides[side]
            some = np.empty(16, x.dtype)
            start = time.perf_counter()
            device.run(problem, *buffers[side], kernel=way)
            device.download(buffers[side][1], 0, some)
            times[sample, side] = time.perf_counter() - start
    finally:
        device._executor.pipelines = own
        for pair in buffers:
            for buffer in pair:
                buffer.release()
    one, other = times[2:].T
    return Ratio(float(np.median(one)), float(np.median(other)), float(np.median(one / other)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="an adapter's index or part of its summary")
    parser.add_argument("--samples", type=int, default=15)
    arguments = parser.parse_args()
    device = dmlgpu.Device(arguments.device)
    checked, unchecked = device.pipelines, Unchecked(device.gpu_device)
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

    print("\n| kernel, 10^7 elements | finite | with an infinity | ratio |\n|---|---|---|---|")
    x = finite("float32", (10**7,))
    infinite = x.copy()
    infinite[10] = np.inf
    one = scan("float32", x.shape, 0)
    for kernel in (None, "chain", "rows", "tiles", "serial", "slices"):
        price = ratio(device, kernel, arguments.samples, (one, infinite, checked), (one, x, checked))
        times = f"{1000 * price.other:.1f} ms | {1000 * price.one:.1f} ms | {price.value:.2f}"
        print(f"| {f'`{kernel}`' if kernel else 'as planned'} | {times} |", flush=True)


if __name__ == "__main__":
    main()
