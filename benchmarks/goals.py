"""Measures what this project wants to reach, and prints a table in Markdown: goals, figures, and what was missed.

    python -m benchmarks.goals [--device D] [--scale S] [--min-samples N] [--timeout S] [--md FILE]

Shares are of the fastest copy kernel of the same bytes in the same run, by the device's own clock; every row's result
is compared bit for bit with the reference. ``--scale 16`` divides the first size of each shape by 16.
PyTorch and ONNX Runtime are compared with if they are installed (``benchmarks.peers``).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import wgpu

import dmlgpu
from dmlgpu.bench.machine import header
from dmlgpu.bench.results import Result, ratios, summarize
from dmlgpu.bench.rows import Row
from dmlgpu.bench.runner import Options, Runner

from .options import add_count, add_device, add_file, add_seconds, opened, whole_from
from .peers.team import Team

LARGE = [((2**24,), 0), ((16, 2**20), 1), ((4096, 4096), 1), ((4096, 4096), 0), ((256, 256, 256), 1)]
SMALL = [((2**20, 16), 1), ((2**20, 2), 0), ((2**22, 3), 1)]
TYPES = ["float16", "int32", "uint8", "int64"]

ADD_ONE = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&x)) {
        x[id.x] += 1.0;
    }
}
"""


@dataclass(frozen=True)
class Line:
    """A line of the table."""

    what: str
    goal: str
    figure: str
    reached: bool

    def __str__(self) -> str:
        return f"| {self.what} | {self.goal} | {self.figure} | {'yes' if self.reached else 'no'} |"


def scaled(shape: tuple[int, ...], scale: int) -> tuple[int, ...]:
    return (max(1, shape[0] // scale), *shape[1:])


def described(result: Result) -> str:
    row = result.row
    axis = "" if row.axis is None else f", axis {row.axis}"
    return f"{row.operator} {row.type} {'x'.join(map(str, row.shape))}{axis}"


def of_copy(result: Result, goal: float) -> Line:
    share = result.share or 0.0
    bits = "same bits" if result.difference is None else f"WRONG BITS: {result.difference}"
    figure = f"{share:.2f} (noise {result.noise:.0%}; {' + '.join(result.dispatches)}; {bits})"
    return Line(f"{described(result)}: copy / scan", f">= {goal}", figure, share >= goal and result.difference is None)


def of_numpy(result: Result, goal: float) -> Line:
    speedup = result.speedup or 0.0
    return Line(f"{described(result)}: NumPy / whole call", f">= {goal}", f"{speedup:.2f}", speedup >= goal)


def median_ratio(one: Callable[[], object], other: Callable[[], object], samples: int) -> float:
    """Return the median of the times of `one` by those of `other`, taken in turn."""
    ratios = []
    for _ in range(samples):
        times = []
        for call in (one, other):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        ratios.append(times[0] / times[1])
    return summarize(ratios).median


def small_call(device: dmlgpu.Device) -> Line:
    """Compare a warm call on 1000 elements with wgpu's least round trip: write, one dispatch, read."""
    gpu: Any = device.gpu_device
    x = np.arange(1000, dtype=np.float32)
    usage = wgpu.BufferUsage
    data = gpu.create_buffer(size=x.nbytes, usage=usage.STORAGE | usage.COPY_DST | usage.COPY_SRC)
    staging = gpu.create_buffer(size=x.nbytes, usage=usage.MAP_READ | usage.COPY_DST)
    module = gpu.create_shader_module(code=ADD_ONE)
    pipeline = gpu.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})
    entry = {"binding": 0, "resource": {"buffer": data, "offset": 0, "size": x.nbytes}}
    group = gpu.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=[entry])

    def bare() -> bytes:
        gpu.queue.write_buffer(data, 0, x)
        encoder = gpu.create_command_encoder()
        compute = encoder.begin_compute_pass()
        compute.set_pipeline(pipeline)
        compute.set_bind_group(0, group)
        compute.dispatch_workgroups(16)
        compute.end()
        encoder.copy_buffer_to_buffer(data, 0, staging, 0, x.nbytes)
        gpu.queue.submit([encoder.finish()])
        staging.map_sync(wgpu.MapMode.READ)
        read = bytes(staging.read_mapped(copy=False))
        staging.unmap()
        return read

    def own() -> object:
        return dmlgpu.cumulative_sum(x, device=device)

    for _ in range(50):
        bare()
        own()
    ratio = median_ratio(own, bare, 500)
    return Line("warm call on 1000 elements / bare round trip", "<= 1.3", f"{ratio:.2f}", ratio <= 1.3)


def import_time() -> Line:
    """Time the import from byte code, which an installed package comes with and a checkout may lack."""
    code = "import time, numpy; a = time.perf_counter(); import dmlgpu; print(time.perf_counter() - a)"
    with TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-c", code]
        run = partial(subprocess.run, command, capture_output=True, text=True, check=True, env=environment)
        run()
        milliseconds = 1000 * summarize([float(run().stdout) for _ in range(7)]).median
    return Line("`import dmlgpu` beyond `import numpy`", "<= 30 ms", f"{milliseconds:.0f} ms", milliseconds <= 30)


def against(own: str, other: str, row: Row, goal: float, samples: int, timeout: float) -> Line:
    """Compare whole calls with those of another library, in processes of their own, in turn."""
    what = f"{row.name}: {other} / {own}, whole calls"
    with Team([own, other]) as team:
        reason = next(iter(team.missing.values()), None)
        if reason is None:
            found = team.measure(row, samples, timeout)
            reason = found[own].failure or found[other].failure
        if reason is not None:
            return Line(what, f">= {goal:g}", f"not measured: {reason}", False)
        ratio = summarize(ratios(found[other].seconds, found[own].seconds)).median
    return Line(what, f">= {goal:g}", f"{ratio:.3g}", ratio >= goal)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_device(parser)
    parser.add_argument(
        "--scale", type=whole_from(1, 2**20), default=1, help="divide the first size of each shape by this"
    )
    add_count(parser, "--min-samples", 7)
    add_seconds(parser, "--timeout", 20.0, help="seconds for a row")
    add_file(parser, "--md", help="also write the table to this file")
    arguments = parser.parse_args()
    device = opened(parser, arguments.device)
    options = Options(min_samples=arguments.min_samples, timeout=arguments.timeout)
    runner = Runner(device, options)
    about = header(device, runner.clock, vars(options))

    rows: dict[Row, float] = {}
    for shapes, goal in ((LARGE, 0.8), (SMALL, 0.5)):
        rows |= {Row("sum", "float32", scaled(shape, arguments.scale), axis): goal for shape, axis in shapes}
    for kind in TYPES:
        rows |= {Row("sum", kind, scaled((4096, 4096), arguments.scale), axis): 0.5 for axis in (1, 0)}
    rows[Row("round", "float32", scaled((2**24,), arguments.scale))] = 0.9
    lines, numpy_lines = [], []
    for result in runner.run(rows):
        if result.row in rows:
            lines.append(of_copy(result, rows[result.row]))
            if result.speedup is not None and result.row.is_scan and result.row.type == "float32":
                inner = int(np.prod(result.row.shape[(result.row.axis or 0) + 1 :]))
                numpy_lines.append(of_numpy(result, 5 if inner >= 64 else 1.5))
            print(lines[-1], file=sys.stderr, flush=True)
    del runner

    def per_element(elements: int) -> float:
        x = dmlgpu.asarray(np.ones(elements, np.float32), device)
        out = x.copy()
        times = []
        for _ in range(4):
            start = time.perf_counter()
            dmlgpu.cumulative_sum(x, out=out, device=device)
            out[-1:].numpy()
            times.append(time.perf_counter() - start)
        return min(times[1:]) / elements

    large, small = 2**28 // arguments.scale, 2**22 // arguments.scale
    ratio = per_element(large) / per_element(small)
    lines.append(Line(f"time per element, {large} against {small} elements", "<= 1.3", f"{ratio:.2f}", ratio <= 1.3))
    lines += [*numpy_lines, small_call(device), import_time()]
    limits = (arguments.min_samples, arguments.timeout)
    for shape, axis in ((4096, 4096), 0), ((256, 256, 256), 1):
        row = Row("sum", "float32", scaled(shape, arguments.scale), axis)
        lines.append(against("dmlgpu", "torch", row, 2, *limits))
    row = Row("sum", "float32", (16384,), 0)
    lines.append(against("dmlgpu-swiftshader", "ort-webgpu-swiftshader", row, 400, *limits))
    text = f"{about['device']['summary']}; clock: {about['clock']}; {about['machine']['cores']} cores\n\n"
    text += "| what | goal | measured | reached |\n|---|---|---|---|\n" + "".join(f"{line}\n" for line in lines)
    print(text)
    if arguments.md is not None:
        arguments.md.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
