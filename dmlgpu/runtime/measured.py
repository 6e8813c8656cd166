"""Measurements of what wgpu does not report: a device's treatment of subnormals, its subgroups, this process's CPUs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import wgpu
from numpy.typing import NDArray

from .. import shaders
from ..dtypes import by_name
from ..layout import Layout
from ..planning.problem import Operator, scan_problem
from .executor import submit

if TYPE_CHECKING:
    from .adapters import AdapterDescription
    from .device import Device

__all__ = ["measure_subgroup_sizes", "measure_subnormals", "usable_cores"]

_SUBGROUPS = {"subgroup": "", "subgroups": "enable subgroups;\n"}
"""The feature's name, and the directive that a shader with subgroups begins with: naga knows none."""


def measure_subnormals(device: Device) -> dict[str, bool]:
    """Return for ``"sum"`` and ``"product"`` whether neither float32 operands nor results are flushed to zero."""
    smallest = np.float32(2.0**-126)
    cases = {
        "sum": np.array([[1.5 * smallest, -smallest], [0.5 * smallest, 0.5 * smallest]], np.float32),
        "product": np.array([[smallest, 0.5], [0.5 * smallest, 2.0]], np.float32),
    }
    return {name: bool(np.all(_scan_rows(device, Operator(name), x)[:, 1] != 0)) for name, x in cases.items()}


def _scan_rows(device: Device, operator: Operator, x: NDArray[np.float32]) -> NDArray[np.float32]:
    layout = Layout.packed(x.shape)
    problem = scan_problem(by_name("float32"), operator, layout, layout, axis=1)
    buffer = device.allocate(x.nbytes)
    out = np.empty_like(x)
    with device.section:
        device.upload(buffer, 0, x)
        device.run(problem, buffer, buffer)
        device.download(buffer, 0, out)
        buffer.release()
    return out


def measure_subgroup_sizes(adapter: AdapterDescription) -> list[int]:
    """Return the sizes of the subgroups of a workgroup, on a device of their own that has the feature.

    Returns
    -------
    list of int
        In ascending order; empty where the adapter has no subgroups, or opens no second device.
    """
    feature = next((name for name in _SUBGROUPS if name in adapter.features), None)
    if feature is None:
        return []
    try:
        gpu_device = adapter.adapter.request_device_sync(required_features=[feature])
    except (wgpu.GPUError, RuntimeError):  # Dawn gives an adapter's only device once
        return []
    try:
        code = _SUBGROUPS[feature] + shaders.resolve("probes/subgroup_size", {}).source
        stage = {"module": gpu_device.create_shader_module(code=code), "entry_point": "main"}
        pipeline = gpu_device.create_compute_pipeline(layout="auto", compute=stage)
        buffer = gpu_device.create_buffer(size=256, usage=wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC)
        entries = [{"binding": 0, "resource": {"buffer": buffer, "offset": 0, "size": 256}}]
        group = gpu_device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)
        encoder = gpu_device.create_command_encoder()
        compute = encoder.begin_compute_pass()
        compute.set_pipeline(pipeline)
        compute.set_bind_group(0, group)
        compute.dispatch_workgroups(1)
        compute.end()
        submit(gpu_device, [encoder.finish()])
        return [int(size) for size in np.unique(np.frombuffer(gpu_device.queue.read_buffer(buffer), np.uint32))]
    finally:
        gpu_device.destroy()


def usable_cores() -> int:
    """Return how many CPUs this process may use, at least one.

    Examples
    --------
    >>> from dmlgpu.runtime.measured import usable_cores
    >>> usable_cores() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
