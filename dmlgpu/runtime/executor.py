"""Records plans and submits them. Holds the only ``queue.submit``: an error in there would end the process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import wgpu

from ..errors import ArgumentError, said
from ..planning.dispatch import Pass, Plan, writable_input
from .memory import create_buffer
from .pipelines import Pipeline, Pipelines

__all__ = ["Bound", "Copy", "Executor", "Step", "Zeros", "submit"]

_MAX_PASSES = 512
"""The number of passes whose uniforms the shared buffer holds."""
_KEPT_PASSES = 16
"""The most passes of a plan whose bind groups and uniforms are kept: longer plans take longer to compute anyway."""
_MAX_WRITES = 64
"""The writes after which an empty submission is made: wgpu keeps the memory of each write until a submission."""
_MAX_KEPT = 64
"""The number of plans whose bind groups and uniforms are kept."""

Copy = tuple[Any, int, Any, int, int]
"""Two wgpu buffers, each with an offset in bytes behind it, and how many bytes to copy from the first to the second."""

_UNIFORM = wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST
_SCRATCH = wgpu.BufferUsage.STORAGE


def submit(gpu_device: Any, command_buffers: Sequence[Any]) -> None:
    """Submit command buffers that were just finished. The caller knows that their buffers are alive and unmapped."""
    gpu_device.queue.submit(list(command_buffers))


@dataclass(frozen=True)
class Step:
    """A dispatch whose buffers are chosen."""

    planned: Pass
    pipeline: Any
    group: Any

    def record(self, compute: Any) -> None:
        """Record it into a compute pass."""
        compute.set_pipeline(self.pipeline)
        compute.set_bind_group(0, self.group)
        compute.dispatch_workgroups(*self.planned.grid)


@dataclass(frozen=True)
class Bound:
    """A plan whose buffers are chosen, to be recorded any number of times.

    wgpu keeps alive what recorded commands refer to, so a Bound may be dropped before they are submitted.
    """

    steps: tuple[Step, ...]

    def record(self, encoder: Any) -> None:
        """Record the dispatches into a command encoder or an open compute pass; allocates and submits nothing.

        Raises
        ------
        wgpu.GPUError
            If the encoder is finished, or a pass of its own is open; if the pass has ended.
        """
        is_pass = isinstance(encoder, wgpu.GPUComputePassEncoder)
        compute = encoder if is_pass else encoder.begin_compute_pass()
        for step in self.steps:
            step.record(compute)
        if not is_pass:
            compute.end()


class Zeros:
    """The part of a scratch buffer of which is known that it is zero once all that is recorded has run."""

    def __init__(self) -> None:
        self._begin = self._end = 0

    def forget(self) -> None:
        """Know of no part: it is a new buffer, or what was recorded does not run."""
        self._begin = self._end = 0

    def needed(self, steps: Iterable[Step]) -> Iterator[Step]:
        """Yield the dispatches, to be recorded now, without those that would only clear what is zero."""
        for step in steps:
            part, nbytes = step.planned.cleared, step.planned.state_bytes
            if step.planned.only_clears and part and self._begin <= part.offset and part.end <= self._end:
                continue
            yield step
            # It may have written to all that it binds.
            self._begin, self._end = max(self._begin, nbytes), max(self._end, nbytes)
            if part is not None:
                meets_rest = part.end == self._begin
                self._begin, self._end = part.offset, self._end if meets_rest else part.end


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
        self.elements += step.planned.elements

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


@dataclass(frozen=True)
class _Kept:
    """A Bound with what it was made of, which thus stays alive and keeps its identity."""

    bound: Bound
    plan: Plan
    source: Any
    target: Any
    scratch: Any


class Executor:
    """Runs plans on a device, under the device's lock.

    What is recorded is submitted at once, or at the end of a `batch`. In between, whoever is about to write to, map or
    destroy a buffer calls `flush` before: wgpu would write before it runs what was recorded earlier, and end the
    process over commands that refer to a mapped or destroyed buffer.
    """

    def __init__(self, gpu_device: Any) -> None:
        self._gpu_device = gpu_device
        self.pipelines = Pipelines(gpu_device)
        # Each pass finds its uniforms at a multiple of the alignment that the device asks for.
        self._stride = max(256, gpu_device.limits["min-uniform-buffer-offset-alignment"])
        self._uniforms = gpu_device.create_buffer(size=self._stride * _MAX_PASSES, usage=_UNIFORM)
        self._scratch: Any = None
        self._zeros = Zeros()
        self._token: Any = None
        self._kept: OrderedDict[tuple[int, ...], _Kept] = OrderedDict()
        self._recording: Recording | None = None
        self._written = 0
        self._batching = False
        self._encoder: Any = None

    def run(
        self,
        plan: Plan,
        source: Any,
        target: Any,
        max_elements: int,
        *,
        keep: bool = False,
        scratch: tuple[Any, int] | None = None,
        copies: tuple[Sequence[Copy], Sequence[Copy]] = ((), ()),
    ) -> None:
        """Record the passes of a plan over two wgpu buffers, which may be the same, and submit them.

        Between `begin_recording` and `end_recording` they go into the caller's encoder, and are not submitted.

        Parameters
        ----------
        plan : Plan
            What to run.
        source, target : wgpu.GPUBuffer
            Its buffers.
        max_elements : int
            Passes of together more elements go into submissions of their own.
        keep : bool
            Whether this plan object is likely to be run over these buffers again, so that what is made for it is kept
            until `forget` is called with one of them.
        scratch : (wgpu.GPUBuffer, int), optional
            A buffer and an offset in bytes, from which ``plan.state_bytes`` are for what passes leave to each other; by
            default a buffer that all share.
        copies : tuple of two sequences of tuple
            Copies before the passes and after them, each the arguments of `copy`.
        """
        first, last = copies
        if self._encoder is not None:
            self._run_in(self._encoder, plan, source, target)
            return
        try:
            state = (self._scratch_of(plan.state_bytes), 0) if scratch is None else scratch
            if keep and len(plan.passes) <= _KEPT_PASSES:
                steps = self._keep(plan, source, target, state).steps
                self._copy_all(first)
                self._record(steps, max_elements, is_shared=scratch is None)
                self._copy_all(last)
            else:
                pipelines = self._compiled(plan)
                for start in range(0, len(pipelines), _MAX_PASSES):
                    some = slice(start, start + _MAX_PASSES)
                    # All that reads the old uniforms is submitted before new ones are written.
                    self.flush(writes=False)
                    steps = self._steps(plan.passes[some], pipelines[some], source, target, state, self._uniforms)
                    self._copy_all(first if start == 0 else ())
                    self._record(steps, max_elements, is_shared=scratch is None)
                self._copy_all(last)
                self.flush()
            if not self._batching:
                self.flush()
        except BaseException:
            self._drop()  # a part of a plan or of a batch is of no use
            raise

    def begin_batch(self) -> None:
        """Let what is recorded from now on wait for `flush` or for the end of the batch. Batches don't nest."""
        self._batching = True

    def end_batch(self, *, drop: bool = False) -> None:
        """Submit what was recorded, or drop it after an error."""
        self._batching = False
        if drop:
            self._drop()
        self.flush(writes=False)

    @property
    def is_recording(self) -> bool:
        """Whether what runs goes into a caller's encoder."""
        return self._encoder is not None

    def begin_recording(self, encoder: Any) -> None:
        """Let what runs from now on go into a caller's command encoder or compute pass; submit what came before."""
        self.flush(writes=False)
        self._encoder = encoder

    def end_recording(self) -> None:
        """Let what runs from now on be submitted again."""
        self._encoder = None

    def _run_in(self, encoder: Any, plan: Plan, source: Any, target: Any) -> None:
        scratch = create_buffer(self._gpu_device, plan.scratch_bytes, _SCRATCH) if plan.scratch_bytes else None
        bound = self.bind(plan, source, target, None if scratch is None else (scratch, 0))
        try:
            bound.record(encoder)
        except wgpu.GPUError as error:
            is_pass = isinstance(encoder, wgpu.GPUComputePassEncoder)
            state = "is a pass that has ended" if is_pass else "is finished or has an open pass"
            raise ArgumentError(
                f"encoder {state}, and takes no commands: give a new one, or its open pass ({said(error)})"
            ) from error

    def write(self, gpu_buffer: Any, offset: int, data: Any) -> None:
        """Write bytes, a multiple of 4 of them, through memory of wgpu's own; suits few bytes."""
        if self._encoder is None:  # else the caller's submission is the next one
            self.flush(writes=self._written >= _MAX_WRITES)
        self._written += 1
        self._gpu_device.queue.write_buffer(gpu_buffer, offset, data)

    def copy(self, source: Any, offset: int, target: Any, target_offset: int, size: int) -> None:
        """Record a copy from buffer to buffer; offsets and size are multiples of 4 bytes."""
        try:
            self._recorder().copy(source, offset, target, target_offset, size)
        except BaseException:
            self._drop()  # an encoder that has refused a command is of no use
            raise

    def flush(self, *, writes: bool = True) -> None:
        """Submit what was recorded and, unless `writes` is false, what was only written."""
        recording, self._recording = self._recording, None
        if recording is None:
            if not (self._written and writes):
                return
            # An empty command buffer, not none: making one raises an error where the device is lost.
            recording = Recording(self._gpu_device)
        try:
            submit(self._gpu_device, [recording.finish()])
        except BaseException:
            self._zeros.forget()
            raise
        self._written = 0

    def forget(self, gpu_buffer: Any) -> None:
        """Drop what was kept for a buffer, which is about to be destroyed; submit what refers to it."""
        self.flush(writes=False)
        for key, kept in list(self._kept.items()):
            if gpu_buffer in (kept.source, kept.target, kept.scratch):
                del self._kept[key]

    def release(self) -> None:
        """Destroy the buffers and forget all that was recorded or kept; what a caller has recorded stays valid."""
        self._drop()
        self._written = 0
        self._kept.clear()
        self._uniforms.destroy()
        if self._scratch is not None:
            self._scratch.destroy()

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
        return self._bind(plan, source, target, scratch)

    def _copy_all(self, copies: Sequence[Copy]) -> None:
        for one in copies:
            self._recorder().copy(*one)

    def _recorder(self) -> Recording:
        if self._recording is None:
            self._recording = Recording(self._gpu_device)
        return self._recording

    def _drop(self) -> None:
        self._recording = None
        self._zeros.forget()

    def _record(self, steps: Sequence[Step], max_elements: int, *, is_shared: bool) -> None:
        for step in self._zeros.needed(steps) if is_shared else steps:
            if self._recording is not None and self._recording.elements + step.planned.elements > max_elements:
                self.flush()
            self._recorder().dispatch(step)

    def _compiled(self, plan: Plan) -> list[Pipeline]:
        return self.pipelines.get_all(planned.pipeline for planned in plan.passes)

    def _bind(self, plan: Plan, source: Any, target: Any, scratch: tuple[Any, int]) -> Bound:
        """Return the plan over these buffers, with uniforms of its own: as few buffers of them as they fit into."""
        pipelines = self._compiled(plan)  # which may fail: before memory is allocated
        steps: list[Step] = []
        at_once = self._gpu_device.limits["max-buffer-size"] // self._stride
        for first in range(0, len(pipelines), at_once):
            passes, some = plan.passes[first : first + at_once], pipelines[first : first + at_once]
            uniforms = self._gpu_device.create_buffer(size=self._stride * len(some), usage=_UNIFORM)
            steps += self._steps(passes, some, source, target, scratch, uniforms)
        return Bound(tuple(steps))

    def _keep(self, plan: Plan, source: Any, target: Any, scratch: tuple[Any, int]) -> Bound:
        """Return the plan over these buffers, from the kept ones if it is there."""
        key = (id(plan), id(source), id(target), id(scratch[0]), scratch[1])
        found = self._kept.get(key)
        if found is None:
            bound = self._bind(plan, source, target, scratch)
            found = self._kept[key] = _Kept(bound, plan, source, target, scratch[0])
            while len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return found.bound

    def _scratch_of(self, nbytes: int) -> Any:
        if nbytes and (self._scratch is None or self._scratch.size < nbytes):
            self.flush()
            larger = create_buffer(self._gpu_device, nbytes, _SCRATCH, size=4096)
            self._kept.clear()  # they refer to the old one
            self._zeros.forget()
            old, self._scratch = self._scratch, larger
            if old is not None:
                old.destroy()
        return self._scratch

    def _steps(
        self,
        passes: Sequence[Pass],
        pipelines: Sequence[Pipeline],
        source: Any,
        target: Any,
        scratch: tuple[Any, int],
        uniforms: Any,
    ) -> tuple[Step, ...]:
        """Write the uniforms of passes and make their bind groups."""
        contents = bytearray(self._stride * len(passes))
        for i, planned in enumerate(passes):
            contents[i * self._stride : i * self._stride + len(planned.uniforms)] = planned.uniforms
        self._gpu_device.queue.write_buffer(uniforms, 0, contents)
        steps = []
        for i, (planned, pipeline) in enumerate(zip(passes, pipelines, strict=True)):
            entries = [_entry(0, uniforms, i * self._stride, len(planned.uniforms))]
            if planned.input is not None:
                entries.append(_entry(1, source, planned.input.offset, planned.input.size))
            if planned.output is not None:
                entries.append(_entry(2, target, planned.output.offset, planned.output.size))
            if planned.state_bytes:
                entries.append(_entry(3, scratch[0], scratch[1], planned.state_bytes))
            group = self._gpu_device.create_bind_group(layout=pipeline.layout, entries=entries)
            steps.append(Step(planned, pipeline.pipeline, group))
        return tuple(steps)


def _entry(binding: int, buffer: Any, offset: int, size: int) -> dict[str, Any]:
    return {"binding": binding, "resource": {"buffer": buffer, "offset": offset, "size": size}}
