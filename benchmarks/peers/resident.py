"""Libraries whose data stays on the GPU, by the GPU's own clock: no transfer and no call from the host is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmlgpu.bench.rows import Row

from .calls import Array, MissingPeerError, Peer, Prepare, loaded_cupy

__all__ = ["RESIDENT", "OnDevice"]


@dataclass(frozen=True)
class OnDevice:
    """A computation on data that is on the GPU.

    Attributes
    ----------
    result : callable
        Computes, and returns the result as a NumPy array.
    seconds : callable
        Computes, and returns the time by the GPU's clock.
    """

    result: Callable[[], Array]
    seconds: Callable[[], float]

    def __call__(self) -> Array:
        """Return `result`, as calls of other libraries do."""
        return self.result()


def _own() -> Prepare:
    import dmlgpu
    from dmlgpu.bench.clock import Clock, work_of
    from dmlgpu.bench.runner import problem_of
    from dmlgpu.planning.plan import plan_problem

    device = dmlgpu.default_device()
    clock = Clock(device)
    if clock.reason is not None:
        raise MissingPeerError(clock.reason)
    buffers: list[Any] = []

    def prepare(row: Row, x: Array) -> OnDevice:
        while buffers:
            buffers.pop().release()
        buffers.extend(device.allocate(x.nbytes) for _ in range(2))
        source, target = buffers
        device.upload(source, 0, x)
        plan = plan_problem(problem_of(row), device.limits)
        work = work_of(device, plan, source.gpu_buffer, target.gpu_buffer)

        def result() -> Array:
            clock.seconds(work)
            out = np.empty_like(x)
            device.download(target, 0, out)
            return out

        return OnDevice(result, lambda: clock.seconds(work))

    return prepare


def _torch() -> Prepare:
    try:
        import torch
    except ImportError:
        raise MissingPeerError("PyTorch is not installed: pip install torch") from None
    if not torch.cuda.is_available():
        raise MissingPeerError("this PyTorch finds no GPU: install a build for CUDA or ROCm (pytorch.org)")

    def prepare(row: Row, x: Array) -> OnDevice:
        there = torch.from_numpy(x).to("cuda")
        out = torch.empty_like(there)
        operator = torch.cumsum if row.operator == "sum" else torch.cumprod

        def compute() -> None:
            if row.axis is None:
                torch.round(there, out=out)
            else:
                operator(there, row.axis, dtype=there.dtype, out=out)

        def seconds() -> float:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            compute()
            end.record()
            end.synchronize()
            return float(start.elapsed_time(end)) / 1e3

        def result() -> Array:
            compute()
            return np.asarray(out.cpu().numpy())

        return OnDevice(result, seconds)

    return prepare


def _cupy() -> Prepare:
    cupy = loaded_cupy()

    def prepare(row: Row, x: Array) -> OnDevice:
        there = cupy.asarray(x)
        out = cupy.empty_like(there)
        operator = cupy.cumsum if row.operator == "sum" else cupy.cumprod

        def compute() -> None:
            if row.axis is None:
                cupy.rint(there, out=out)
            else:
                operator(there, axis=row.axis, dtype=there.dtype, out=out)

        def seconds() -> float:
            start, end = cupy.cuda.Event(), cupy.cuda.Event()
            start.record()
            compute()
            end.record()
            end.synchronize()
            return float(cupy.cuda.get_elapsed_time(start, end)) / 1e3

        def result() -> Array:
            compute()
            return np.asarray(cupy.asnumpy(out))

        return OnDevice(result, seconds)

    return prepare


RESIDENT: Mapping[str, Peer] = {
    "dmlgpu-resident": Peer(_own, ("dmlgpu",)),
    "torch-resident": Peer(_torch, ("torch",)),
    "cupy-resident": Peer(_cupy, ("cupy-cuda13x", "cupy-cuda12x", "cupy")),
}
"""By name. `benchmarks.gpu_report` measures them in turn."""
