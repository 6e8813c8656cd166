"""A dispatch that does next to nothing, for passes that are there for their timestamps."""

from __future__ import annotations

from typing import Any

import wgpu

__all__ = ["Touch"]

_SHADER = """\
@group(0) @binding(0) var<storage, read_write> word: atomic<u32>;

@compute @workgroup_size(1)
fn main() {
    atomicOr(&word, 0u);
}
"""
"""It leaves the word as it is, by an operation that no compiler leaves out."""


class Touch:
    """Writes the first word of a buffer back, in one invocation.

    On Metal a pass without a dispatch writes 0 for its timestamps. As the dispatch writes to the buffer, a copy to that
    begins after it and ends before the next one on every backend.

    Parameters
    ----------
    gpu_device : wgpu.GPUDevice
        The device.
    """

    def __init__(self, gpu_device: Any) -> None:
        self._gpu_device = gpu_device
        self._pipeline: Any = None

    def record(self, compute: Any, gpu_buffer: Any) -> None:
        """Record it into a compute pass; the first time it is compiled."""
        if self._pipeline is None:
            module = self._gpu_device.create_shader_module(label="touch", code=_SHADER)
            self._pipeline = self._gpu_device.create_compute_pipeline(
                layout=wgpu.AutoLayoutMode.auto, compute={"module": module, "entry_point": "main"}
            )
        group = self._gpu_device.create_bind_group(
            layout=self._pipeline.get_bind_group_layout(0),
            entries=[{"binding": 0, "resource": {"buffer": gpu_buffer, "offset": 0, "size": 4}}],
        )
        compute.set_pipeline(self._pipeline)
        compute.set_bind_group(0, group)
        compute.dispatch_workgroups(1)
