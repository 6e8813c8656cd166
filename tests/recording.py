"""Runs plans with shaders that write down every access to memory, by workgroup and invocation, in the order of each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import wgpu
from numpy.typing import NDArray

from dmlgpu import shaders
from dmlgpu.planning.dispatch import Pass, PipelineKey, Plan
from dmlgpu.runtime.device import Device
from dmlgpu.runtime.executor import submit

__all__ = ["Access", "record"]

_ACCESS = re.compile(r"(?:(atomic\w+)\(&)?\b((?:input|output)_(?:words|pairs|quads)|state)\[")
_LOADS = re.compile(r"^(fn (?:load_run|load_lane|load_rows|take_item)\(.*\{)$", re.MULTILINE)
"""Where an invocation uses what it has loaded, or is about to load the next run."""
_READS = {None, "atomicLoad", "poll", "atomicOr", "atomicAdd", "atomicMax", "atomicMin"}
_WRITES = {"=", "atomicStore", "atomicExchange", "atomicXor", "atomicAdd", "atomicMax", "atomicMin"}
_NOTES = """
@group(1) @binding(0) var<storage, read_write> noted: array<atomic<u32>>;
var<private> noted_by: vec2<u32>;
var<private> noted_barriers: u32;
fn note(site: u32, index: u32) -> u32 {
    let at = atomicAdd(&noted[0], 1u) * 3u + 1u;
    if (at + 2u < arrayLength(&noted)) {
        atomicStore(&noted[at], noted_by.x);
        atomicStore(&noted[at + 1u], (noted_barriers << 16u) | (noted_by.y << 8u) | site);
        atomicStore(&noted[at + 2u], index);
    }
    return index;
}
"""
_MOST = 2**21
_STORAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST


@dataclass(frozen=True)
class Site:
    """A place in a shader's text that accesses memory, or where an invocation goes on to the next run."""

    number: int
    name: str
    how: str | None
    """An atomic function, "=" for a store, "poll" for what reads by an atomic function, or None for a load."""

    @property
    def reads(self) -> bool:
        """Whether it reads, as far as traffic is concerned."""
        return self.how in _READS

    @property
    def writes(self) -> bool:
        """Whether it writes, as far as traffic is concerned."""
        return self.how in _WRITES

    @property
    def unit(self) -> int:
        """Bytes of an access."""
        return {"quads": 16, "pairs": 8}.get(self.name[-5:], 4)


@dataclass(frozen=True, slots=True)
class Access:
    """An access to memory, at a byte of a binding, behind so many storage barriers."""

    site: Site
    workgroup: int
    lane: int
    barriers: int
    place: int


def _end_of(text: str, begin: int) -> int:
    """Return where the bracket ends that is open at `begin`."""
    depth = 1
    for at in range(begin, len(text)):
        depth += {"[": 1, "]": -1}.get(text[at], 0)
        if depth == 0:
            return at
    raise AssertionError("an open bracket")


def noting(source: str, *, tensors: bool = True) -> tuple[str, list[Site]]:
    """Return a shader that notes what it accesses, `tensors` or not, and the sites that it notes by their numbers."""
    sites: list[Site] = [Site(0, "", "")]
    out, at = "", 0
    source = _LOADS.sub(r"\1 _ = note(0u, 0u);", source)
    source = re.sub(r"const DELAY = \d+u;", "const DELAY = 2u;", source)  # each turn of it would be noted
    source = source.replace("storageBarrier();", "storageBarrier(); noted_barriers += 1u;")
    for match in _ACCESS.finditer(source):
        if match[2] != "state" and not tensors:
            continue
        end = _end_of(source, match.end())
        rest = source[end + 1 : end + 4].lstrip()
        is_store = match[1] is None and rest.startswith("=") and not rest.startswith("==")
        how = "=" if is_store else match[1]
        if how == "atomicOr" and source.startswith(", 0u)", end + 1):
            how = "poll"
        site = Site(len(sites), match[2], how)
        assert site.reads or site.writes, match[0]
        sites.append(site)
        if match.start() < at:
            raise AssertionError("an access in the index of another")
        out += source[at : match.end()] + f"note({site.number}u, {source[match.end() : end]})"
        at = end
    out += source[at:]
    out = re.sub(r"fn main\((?!.*workgroup_id)", "fn main(@builtin(workgroup_id) workgroup: vec3<u32>, ", out)
    grid = "@builtin(num_workgroups) noted_grid: vec3<u32>, "
    out, found = re.subn(
        r"fn main\((.*)\) \{",
        rf"fn main({grid}\1) {{ noted_by = vec2<u32>(workgroup.y * noted_grid.x + workgroup.x, lane);",
        out,
    )
    assert found == 1
    return out + _NOTES, sites


def record(
    device: Device,
    plan: Plan,
    source: NDArray[np.uint8],
    target: NDArray[np.uint8] | None,
    *,
    tensors: bool = True,
) -> Iterator[tuple[Pass, list[Access]]]:
    """Run a plan over the bytes of its buffers, or of its only one; yield each pass with its accesses.

    Without `tensors`, with those to scratch memory alone.
    """
    gpu = device.gpu_device
    with device.lock:
        read = gpu.create_buffer_with_data(data=source, usage=_STORAGE)
        written = read if target is None else gpu.create_buffer_with_data(data=target, usage=_STORAGE)
        state = gpu.create_buffer(size=max(256, plan.state_bytes), usage=_STORAGE)
        for one in plan.passes:
            yield one, list(_accesses(gpu, one, {1: read, 2: written, 3: state}, tensors))
        for buffer in {id(each): each for each in (read, written, state)}.values():
            buffer.destroy()


@lru_cache(maxsize=64)
def _pipeline(gpu: Any, key: PipelineKey, tensors: bool) -> tuple[object, Sequence[Any], list[Site]]:
    code, sites = noting(shaders.resolve(key.kernel, dict(key.slots)).source, tensors=tensors)
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
    return pipeline, layouts, sites


def _accesses(gpu: Any, one: Pass, buffers: Mapping[int, Any], tensors: bool) -> Iterator[Access]:
    pipeline, layouts, sites = _pipeline(gpu, one.pipeline, tensors)
    uniforms = gpu.create_buffer_with_data(data=one.uniforms, usage=wgpu.BufferUsage.UNIFORM)
    notes = gpu.create_buffer(size=4 * (1 + 3 * _MOST), usage=_STORAGE)
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
    words = np.frombuffer(gpu.queue.read_buffer(notes, 4, 12 * count), np.uint32).tolist() if count else []
    notes.destroy()
    uniforms.destroy()
    for workgroup, who, index in zip(words[::3], words[1::3], words[2::3], strict=True):
        site = sites[who & 255]
        yield Access(site, workgroup, (who >> 8) & 255, who >> 16, index * site.unit)
