"""Dispatches whose buffers are chosen, and commands that are not submitted yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Bound", "Recording", "Step"]


@dataclass(frozen=True)
class Step:
    """A dispatch whose buffers are chosen."""

    pipeline: Any
    group: Any
    grid: tuple[int, int, int]
    elements: int

    def record(self, compute: Any) -> None:
        """Record it into a compute pass."""
        compute.set_pipeline(self.pipeline)
        compute.set_bind_group(0, self.group)
        compute.dispatch_workgroups(*self.grid)


@dataclass(frozen=True)
class Bound:
    """A plan whose buffers are chosen, to be recorded any number of times.

    wgpu keeps alive what recorded commands refer to, so a Bound may be dropped before they are submitted.
    """

    steps: tuple[Step, ...]

    def record(self, encoder: Any) -> None:
        """Record the dispatches into a command encoder; allocates and submits nothing.

        Raises
        ------
        wgpu.GPUError
            If the encoder is finished, or a pass of its own is open.
        """
        compute = encoder.begin_compute_pass()
        for step in self.steps:
            step.record(compute)
        compute.end()


class Recording:
    """Commands that are not submitted yet."""

    def __init__(self, gpu_device: Any) -> None:
        self._encoder: Any = gpu_device.create_command_encoder()
        self._compute: Any = None
        self.elements = 0

    def dispatch(self, step: Step) -> None:
        """Record a dispatch, after all that was recorded before."""
        if self._compute is None:
            self._compute = self._encoder.begin_compute_pass()
        step.record(self._compute)
        self.elements += step.elements

    def copy(self, source: Any, offset: int, target: Any, target_offset: int, size: int) -> None:
        """Record a copy from buffer to buffer, after all that was recorded before."""
        self._end_pass()
        self._encoder.copy_buffer_to_buffer(source, offset, target, target_offset, size)

    def finish(self) -> Any:
        """Return the command buffer."""
        self._end_pass()
        return self._encoder.finish()

    def _end_pass(self) -> None:
        if self._compute is not None:
            self._compute.end()
            self._compute = None
