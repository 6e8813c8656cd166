"""A picture equalised in one submission: histogram, cumulative distribution, lookup.

This is a wgpu program, as one that draws with pygfx: its own device, buffers and compute pass. dmlgpu records the
cumulative sum between the program's two dispatches. The picture, fog over hills, is computed; before and after lie side
by side in the PNG.
"""

from __future__ import annotations

import argparse
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import wgpu
import wgpu.utils
from numpy.typing import NDArray

import dmlgpu

SIZE = 512
GREYS = 256
PICTURE = Path(__file__).resolve().parent / "output" / "equalised.png"

HISTOGRAM = """
@group(0) @binding(0) var<storage, read> pixels: array<u32>;  // four in each
@group(0) @binding(1) var<storage, read_write> counts: array<atomic<u32>>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= arrayLength(&pixels)) { return; }
    for (var bit = 0u; bit < 32u; bit += 8u) { atomicAdd(&counts[(pixels[id.x] >> bit) & 255u], 1u); }
}
"""

LOOKUP = """
@group(0) @binding(0) var<storage, read> pixels: array<u32>;
@group(0) @binding(1) var<storage, read> distribution: array<u32>;
@group(0) @binding(2) var<storage, read_write> equalised: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= arrayLength(&pixels)) { return; }
    let all = distribution[255];
    var greys = 0u;
    for (var bit = 0u; bit < 32u; bit += 8u) {
        greys |= (distribution[(pixels[id.x] >> bit) & 255u] * 255u / all) << bit;
    }
    equalised[id.x] = greys;
}
"""


class Dispatch:
    """A shader of the program's own, with its buffers."""

    def __init__(self, device: Any, code: str, buffers: list[Any]) -> None:
        module = device.create_shader_module(code=code)
        self.pipeline = device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})
        entries = [{"binding": i, "resource": {"buffer": buffer}} for i, buffer in enumerate(buffers)]
        self.group = device.create_bind_group(layout=self.pipeline.get_bind_group_layout(0), entries=entries)

    def record(self, compute: Any) -> None:
        """Record it into a compute pass, an invocation for four pixels."""
        compute.set_pipeline(self.pipeline)
        compute.set_bind_group(0, self.group)
        compute.dispatch_workgroups(SIZE * SIZE // 4 // 64)


def equalise(device: Any, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the picture with its greys spread evenly, computed by one submission."""
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
    pixels = device.create_buffer_with_data(data=picture, usage=usage)
    counts, distribution = (device.create_buffer(size=4 * GREYS, usage=usage) for _ in range(2))
    equalised = device.create_buffer(size=picture.nbytes, usage=usage)
    histogram = Dispatch(device, HISTOGRAM, [pixels, counts])
    lookup = Dispatch(device, LOOKUP, [pixels, distribution, equalised])

    encoder = device.create_command_encoder()
    compute = encoder.begin_compute_pass()
    histogram.record(compute)
    dmlgpu.cumulative_sum(
        dmlgpu.from_wgpu(counts, GREYS, "uint32"),
        out=dmlgpu.from_wgpu(distribution, GREYS, "uint32"),
        encoder=compute,
    )
    lookup.record(compute)
    compute.end()
    device.queue.submit([encoder.finish()])
    return np.frombuffer(device.queue.read_buffer(equalised), np.uint8).reshape(picture.shape)


def foggy_hills() -> NDArray[np.uint8]:
    """Return a picture with few greys: ridges of hills, each paler than the one before it."""
    x, y = np.meshgrid(np.linspace(0, 1, SIZE), np.linspace(0, 1, SIZE))
    picture = 150 + 12 * y
    for ridge in range(5):
        waves = np.sin((5 + 3 * ridge) * x + 2 * ridge) + 0.4 * np.sin((17 + 7 * ridge) * x + ridge)
        height = 0.35 + 0.13 * ridge + 0.05 * waves
        picture = np.where(y > height, 146 - 9 * ridge + 14 * (y - height), picture)
    noise = np.random.default_rng(0).normal(0, 1.2, picture.shape)
    return (picture + noise).clip(0, 255).astype(np.uint8)


def write_png(path: Path, picture: NDArray[np.uint8]) -> None:
    """Write a picture of greys."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = picture.shape
    lines = np.pad(picture, ((0, 0), (1, 0)))  # each begins with its filter: none
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)), chunk(b"IEND", b""))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))


def main() -> None:
    parser = argparse.ArgumentParser(description="Equalise a picture on the GPU, in one submission.")
    parser.add_argument("-o", "--output", type=Path, default=PICTURE, help="the PNG (default: %(default)s)")
    path = parser.parse_args().output
    picture = foggy_hills()
    equalised = equalise(wgpu.utils.get_default_device(), picture)

    distribution = np.cumsum(np.bincount(picture.reshape(-1), minlength=GREYS))
    expected = (distribution * 255 // distribution[-1])[picture]
    print("one submission gives NumPy's picture:", bool(np.array_equal(equalised, expected)))
    for name, greys in (("before", picture), ("after", equalised)):
        low, high = np.percentile(greys, (1, 99))
        print(f"{name}: 98 % of the pixels are between {low:.0f} and {high:.0f}")
    write_png(path, np.hstack([picture, equalised]))
    print(f"Picture: {path}")


if __name__ == "__main__":
    main()
