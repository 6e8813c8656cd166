"""Records plans and submits them. Holds the only ``queue.submit``: an error in there would end the process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import wgpu

from ..passes import Pass, Plan, writable_input
from .pipelines import Pipelines

__all__ = ["Bound", "Executor", "submit"]

_MAX_PASSES = 512

_UNIFORM = wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST
_SCRATCH = wgpu.BufferUsage.STORAGE


def submit(gpu_device: Any, command_buffers: Sequence[Any]) -> None:
    """Submit freshly finished command buffers, whose buffers the caller knows to be alive and unmapped."""
    gpu_device.queue.submit(list(command_buffers))


@dataclass(frozen=True)
class _Step:
    """A dispatch whose buffers are chosen."""

    pipeline: Any
    group: Any
    grid: tuple[int, int, int]


@dataclass(frozen=True)
class Bound:
    """A plan whose buffers are chosen, to be recorded any number of times.

    wgpu keeps alive what recorded commands refer to, so a Bound may be dropped before they are submitted.
    """

    steps: tuple[_Step, ...]

    def record(self, encoder: Any) -> None:
        """Record the dispatches into a command encoder; allocates and submits nothing.

        Raises
        ------
        wgpu.GPUError
            If the encoder is finished, or a pass of its own is open.
        """
        compute = encoder.begin_compute_pass()
        for step in self.steps:
            compute.set_pipeline(step.pipeline)
            compute.set_bind_group(0, step.group)
            compute.dispatch_workgroups(*step.grid)
        compute.end()


class Executor:
    """Runs plans on a device, under the device's lock."""

    def __init__(self, gpu_device: Any) -> None:
        self._gpu_device = gpu_device
        self.pipelines = Pipelines(gpu_device)
        # Each pass finds its uniforms at a multiple of the alignment that the device asks for.
        alignment = gpu_device.limits["min-uniform-buffer-offset-alignment"]
        self._stride = max(256, alignment)
        self._uniforms = gpu_device.create_buffer(size=self._stride * _MAX_PASSES, usage=_UNIFORM)
        self._scratch: Any = None
        self._token: Any = None

    def run(self, plan: Plan, source: Any, target: Any, max_elements: int) -> None:
        """Record and submit the passes of a plan over two wgpu buffers, which may be the same.

        Passes of together more than `max_elements` elements go into submissions of their own.
        """
        scratch = self._scratch_of(plan.state_bytes)
        batch: list[Pass] = []
        elements = 0
        for one in plan.passes:
            if batch and (elements + one.elements > max_elements or len(batch) == _MAX_PASSES):
                self._submit(batch, source, target, scratch)
                batch, elements = [], 0
            batch.append(one)
            elements += one.elements
        self._submit(batch, source, target, scratch)

    def bind(self, plan: Plan, source: Any, target: Any, scratch: tuple[Any, int] | None = None) -> Bound:
        """Choose the buffers of a plan, with uniforms of its own, to record it later.

        Parameters
        ----------
        plan : Plan
            What to run.
        source, target : wgpu.GPUBuffer
            As in `run`.
        scratch : (wgpu.GPUBuffer, int), optional
            A buffer and an offset in bytes from which ``plan.scratch_bytes`` are free to use; needed only if those are
            not 0.
        """
        if not plan.scratch_bytes:
            if self._token is None:
                self._token = self._gpu_device.create_buffer(size=256, usage=_SCRATCH)
            scratch = (self._token, 0)
        assert scratch is not None
        if scratch[0] is source and source is not target:
            plan = writable_input(plan)
        pipelines = [self.pipelines.get(one.pipeline) for one in plan.passes]  # compile first, allocate then
        uniforms = self._gpu_device.create_buffer(size=self._stride * len(pipelines), usage=_UNIFORM)
        return Bound(self._steps(plan.passes, pipelines, source, target, scratch, uniforms))

    def _scratch_of(self, nbytes: int) -> Any:
        if nbytes and (self._scratch is None or self._scratch.size < nbytes):
            if self._scratch is not None:
                self._scratch.destroy()
            self._scratch = self._gpu_device.create_buffer(size=max(4096, -(-nbytes // 16) * 16), usage=_SCRATCH)
        return self._scratch

    def _submit(self, passes: Sequence[Pass], source: Any, target: Any, scratch: Any) -> None:
        # Compile first: an error then leaves nothing half recorded.
        pipelines = [self.pipelines.get(one.pipeline) for one in passes]
        # Writes and submissions take effect in order, so the last submission is done with the old uniforms.
        bound = Bound(self._steps(passes, pipelines, source, target, (scratch, 0), self._uniforms))
        encoder = self._gpu_device.create_command_encoder()
        bound.record(encoder)
        submit(self._gpu_device, [encoder.finish()])

    def _steps(
        self,
        passes: Sequence[Pass],
        pipelines: Sequence[Any],
        source: Any,
        target: Any,
        scratch: tuple[Any, int],
        uniforms: Any,
    ) -> tuple[_Step, ...]:
        """Write the uniforms of passes and make their bind groups."""
        contents = bytearray(self._stride * len(passes))
        for i, one in enumerate(passes):
            contents[i * self._stride : i * self._stride + len(one.uniforms)] = one.uniforms
        self._gpu_device.queue.write_buffer(uniforms, 0, contents)
        steps = []
        for i, (one, pipeline) in enumerate(zip(passes, pipelines, strict=True)):
            entries = [
                _entry(0, uniforms, i * self._stride, len(one.uniforms)),
                _entry(2, target, one.output.offset, one.output.size),
            ]
            if one.input is not None:
                entries.append(_entry(1, source, one.input.offset, one.input.size))
            if one.state_bytes:
                entries.append(_entry(3, scratch[0], scratch[1], one.state_bytes))
            group = self._gpu_device.create_bind_group(layout=pipeline.layout, entries=entries)
            steps.append(_Step(pipeline.pipeline, group, one.grid))
        return tuple(steps)


def _entry(binding: int, buffer: Any, offset: int, size: int) -> dict[str, Any]:
    return {"binding": binding, "resource": {"buffer": buffer, "offset": offset, "size": size}}
