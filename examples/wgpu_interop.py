"""A scan inside a wgpu program's own frame: its device, its buffers, its encoder, one submission, no copy.

The program counts points per cell of a grid with a shader of its own, needs each cell's offset in a sorted list (an
exclusive cumulative sum of the counts), and marks the cells with another shader: how particle and rendering programs
sort into bins.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import wgpu
import wgpu.utils

import dmlgpu

CELLS = 1000
POINTS = 50_000

COUNT = """
@group(0) @binding(0) var<storage, read_write> points: array<f32>;
@group(0) @binding(1) var<storage, read_write> counts: array<atomic<u32>>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&points)) {
        atomicAdd(&counts[u32(points[id.x] * f32(arrayLength(&counts)))], 1u);
    }
}
"""

FILL = """
@group(0) @binding(0) var<storage, read_write> offsets: array<u32>;
@group(0) @binding(1) var<storage, read_write> cell_of: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= arrayLength(&offsets)) { return; }
    var end = arrayLength(&cell_of);
    if (id.x + 1u < arrayLength(&offsets)) { end = offsets[id.x + 1u]; }
    for (var i = offsets[id.x]; i < end; i += 1u) { cell_of[i] = id.x; }
}
"""


class Pass:
    """A compute pass of the program's own."""

    def __init__(self, device: Any, code: str, buffers: list[Any], invocations: int) -> None:
        module = device.create_shader_module(code=code)
        self.pipeline = device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})
        entries = [{"binding": i, "resource": {"buffer": buffer}} for i, buffer in enumerate(buffers)]
        self.group = device.create_bind_group(layout=self.pipeline.get_bind_group_layout(0), entries=entries)
        self.workgroups = -(-invocations // 64)

    def record(self, encoder: Any) -> None:
        """Record the pass into an encoder."""
        compute = encoder.begin_compute_pass()
        compute.set_pipeline(self.pipeline)
        compute.set_bind_group(0, self.group)
        compute.dispatch_workgroups(self.workgroups)
        compute.end()


def main() -> None:
    device = wgpu.utils.get_default_device()  # the program's own, or that of pygfx or another library
    points = np.random.default_rng(0).random(POINTS, dtype=np.float32)
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
    point_buffer = device.create_buffer_with_data(data=points, usage=usage)
    counts, offsets = (device.create_buffer(size=4 * CELLS, usage=usage) for _ in range(2))
    cell_of = device.create_buffer(size=4 * POINTS, usage=usage)
    count = Pass(device, COUNT, [point_buffer, counts], POINTS)
    fill = Pass(device, FILL, [offsets, cell_of], CELLS)

    # The program's buffers as arrays, without a copy.
    counted = dmlgpu.from_wgpu(counts, CELLS, "uint32")
    starts = dmlgpu.from_wgpu(offsets, CELLS, "uint32")

    # A frame.
    encoder = device.create_command_encoder()
    count.record(encoder)
    dmlgpu.cumulative_sum(counted, exclusive=True, out=starts, encoder=encoder)
    fill.record(encoder)
    device.queue.submit([encoder.finish()])

    sorted_cells = np.frombuffer(device.queue.read_buffer(cell_of), np.uint32)
    expected = np.sort((points * np.float32(CELLS)).astype(np.uint32))
    print("points sorted into cells by one submission:", bool(np.array_equal(sorted_cells, expected)))

    # Without an encoder the functions run at once, between the program's submissions.
    running = dmlgpu.cumulative_sum(counted.reshape(10, CELLS // 10), axis=1, dtype="uint32")
    print("points in each tenth of the grid:", *running[:, -1].numpy())


if __name__ == "__main__":
    main()
