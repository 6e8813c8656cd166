"""Runs plans with shaders that write down what they access, see noting.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import wgpu
from numpy.typing import NDArray

from dmlgpu import shaders
from dmlgpu.planning.dispatch import Pass, PipelineKey, Plan
from dmlgpu.runtime.device import Device
from dmlgpu.runtime.executor import submit

from .noting import Site, noting, noting_shared

__all__ = ["Access", "Notes", "record", "record_shared"]

_MOST = 5 * 2**20
_STORAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST


Altered = Callable[[str], tuple[str, list[Site]]]
"""Makes a shader that takes notes, and says of which sites."""
Alter = Callable[[str], str]


class Notes(NamedTuple):
    """What invocations have done, in the order of each. The arrays are as long as there were accesses."""

    sites: Sequence[Site]
    workgroups: NDArray[np.uint32]
    numbers: NDArray[np.uint32]
    """The site's number."""
    lanes: NDArray[np.uint32]
    barriers: NDArray[np.uint32]
    """How many the invocation has passed."""
    indices: NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Access:
    """An access to memory, at a byte of a binding, behind so many storage barriers."""

    site: Site
    workgroup: int
    lane: int
    barriers: int
    place: int


def record(
    device: Device,
    plan: Plan,
    source: NDArray[np.uint8],
    target: NDArray[np.uint8] | None,
    alter: Alter = str,
    *,
    tensors: bool = True,
) -> Iterator[tuple[Pass, list[Access]]]:
    """Run a plan over the bytes of its buffers, or of its only one; yield each pass with its accesses to storage.

    Without `tensors`, with those to scratch memory alone. `alter` changes the text of each shader before.
    """
    for one, notes in _notes(device, plan, source, target, lambda text: noting(alter(text), tensors=tensors)):
        sites = notes.sites
        yield (
            one,
            [
                Access(sites[number], workgroup, lane, barriers, index * sites[number].unit)
                for workgroup, number, lane, barriers, index in zip(*(part.tolist() for part in notes[1:]), strict=True)
            ],
        )


def record_shared(
    device: Device, plan: Plan, source: NDArray[np.uint8], target: NDArray[np.uint8] | None, alter: Alter = str
) -> Iterator[tuple[Pass, Notes]]:
    """Run a plan as `record` does; yield each pass with its accesses to memory of workgroups.

    `alter` changes the text of each shader before.
    """
    yield from _notes(device, plan, source, target, lambda text: noting_shared(alter(text)))


def _notes(
    device: Device, plan: Plan, source: NDArray[np.uint8], target: NDArray[np.uint8] | None, altered: Altered
) -> Iterator[tuple[Pass, Notes]]:
    gpu = device.gpu_device
    with device.lock:
        read = gpu.create_buffer_with_data(data=source, usage=_STORAGE)
        written = read if target is None else gpu.create_buffer_with_data(data=target, usage=_STORAGE)
        state = gpu.create_buffer(size=max(256, plan.state_bytes), usage=_STORAGE)
        for one in plan.passes:
            yield one, _notes_of(gpu, one, {1: read, 2: written, 3: state}, altered)
        for buffer in {id(each): each for each in (read, written, state)}.values():
            buffer.destroy()


@lru_cache(maxsize=64)
def _pipeline(gpu: Any, key: PipelineKey, code: str) -> tuple[object, Sequence[Any]]:
    stage = wgpu.ShaderStage.COMPUTE
    layouts = [
        gpu.create_bind_group_layout(
            entries=[{"binding": n, "visibility": stage, "buffer": {"type": kind}} for n, kind in bindings.items()]
        )
        for bindings in (key.bindings, {0: "storage"})
    ]
    pipeline = gpu.create_compute_pipeline(
        layout=gpu.create_pipeline_layout(bind_group_layouts=layouts),
        compute={
            "module": gpu.create_shader_module(code=code),
            "entry_point": "main",
            "constants": dict(key.constants),
        },
    )
    return pipeline, layouts


def _notes_of(gpu: Any, one: Pass, buffers: Mapping[int, Any], altered: Altered) -> Notes:
    code, sites = altered(shaders.resolve(one.pipeline.kernel, dict(one.pipeline.slots)).source)
    pipeline, layouts = _pipeline(gpu, one.pipeline, code)
    uniforms = gpu.create_buffer_with_data(data=one.uniforms, usage=wgpu.BufferUsage.UNIFORM)
    notes = gpu.create_buffer(size=4 * (1 + 4 * _MOST), usage=_STORAGE)
    parts = {0: (uniforms, 0, len(one.uniforms))}
    for number, part in ((1, one.input), (2, one.output)):
        if part is not None:
            parts[number] = (buffers[number], part.offset, part.size)
    if one.state_bytes:
        parts[3] = (buffers[3], 0, one.state_bytes)
    groups = [
        gpu.create_bind_group(
            layout=layout,
            entries=[
                {"binding": number, "resource": {"buffer": buffer, "offset": offset, "size": size}}
                for number, (buffer, offset, size) in found.items()
            ],
        )
        for layout, found in zip(layouts, (parts, {0: (notes, 0, notes.size)}), strict=True)
    ]
    encoder = gpu.create_command_encoder()
    compute = encoder.begin_compute_pass()
    compute.set_pipeline(pipeline)
    for number, group in enumerate(groups):
        compute.set_bind_group(number, group)
    compute.dispatch_workgroups(*one.grid)
    compute.end()
    submit(gpu, [encoder.finish()])
    (count,) = np.frombuffer(gpu.queue.read_buffer(notes, 0, 4), np.uint32).tolist()
    assert count <= _MOST, f"{count} accesses, of which {_MOST} can be noted"
    found_words = np.frombuffer(gpu.queue.read_buffer(notes, 4, 16 * count) if count else b"", np.uint32)
    notes.destroy()
    uniforms.destroy()
    workgroups, who, barriers, indices = found_words.reshape(-1, 4).T
    return Notes(sites, workgroups, who >> 8, who & 255, barriers, indices)
