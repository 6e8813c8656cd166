"""Pure: limits and figures of real GPUs, to explain plans for devices that are not there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from .windows import Limits

__all__ = ["PROFILES", "Profile"]


@dataclass(frozen=True)
class Profile:
    """A GPU, as far as a plan and its ledger depend on it.

    Attributes
    ----------
    summary : str
        Which GPU it is.
    limits : Limits
        What plans know of it.
    sources : tuple of str
        Where the figures are from.
    processors : int or None
        Multiprocessors, compute units or cores, each of which holds workgroups; None where there are no figures.
    processor_lanes, processor_workgroups : int or None
        The most invocations and workgroups that one of them holds; registers and workgroup memory may allow fewer.
    bandwidth : float or None
        Bytes a second from and to memory.
    latency : float or None
        Seconds from a load to its value, on a busy device.
    """

    summary: str
    limits: Limits
    sources: tuple[str, ...]
    processors: int | None = None
    processor_lanes: int | None = None
    processor_workgroups: int | None = None
    bandwidth: float | None = None
    latency: float | None = None

    @property
    def wanted_bytes(self) -> float | None:
        """Bytes that must be in flight on each processor to use the whole bandwidth: bandwidth x latency, shared."""
        if self.bandwidth is None or self.latency is None or self.processors is None:
            return None
        return self.bandwidth * self.latency / self.processors

    def resident(self, lanes: int, workgroups: int) -> int:
        """Return how many workgroups of a dispatch there are at a time, each of `lanes` invocations."""
        if self.processors is None or self.processor_lanes is None:
            return workgroups
        most = self.processor_lanes // lanes
        if self.processor_workgroups is not None:
            most = min(most, self.processor_workgroups)
        return min(workgroups, self.processors * most)


PROFILES: Final[Mapping[str, Profile]] = {
    "h200": Profile(
        summary="NVIDIA H200 (Hopper), through Vulkan",
        limits=Limits(binding_bytes=2**31 - 1, offset_alignment=32, float64=True),
        sources=(
            "https://www.nvidia.com/en-us/data-center/h200/ (4.8 TB/s)",
            "https://docs.nvidia.com/cuda/hopper-tuning-guide/index.html (64 warps and 32 workgroups a multiprocessor)",
            "132 multiprocessors as in the H100 SXM: https://resources.nvidia.com/en-us-tensor-core",
            "the latency of 700 ns, on a busy device, is an assumption",
        ),
        processors=132,
        processor_lanes=2048,
        processor_workgroups=32,
        bandwidth=4.8e12,
        latency=700e-9,
    ),
    "rdna3": Profile(
        summary="AMD Radeon RX 7900 XTX (RDNA 3), through Vulkan",
        limits=Limits(binding_bytes=2**31 - 1, offset_alignment=32, float64=True),
        sources=(
            "https://www.amd.com/en/products/graphics/desktops/radeon/7000-series/amd-radeon-rx-7900xtx.html",
            "https://gpuopen.com/learn/occupancy-explained/ (16 waves of 32 a SIMD unit, two a compute unit)",
        ),
        processors=96,
        processor_lanes=1024,
        bandwidth=960e9,
    ),
    "m3": Profile(
        summary="Apple M3 of 10 GPU cores, through Metal",
        limits=Limits(binding_bytes=2**31 - 1, offset_alignment=32),
        sources=("https://support.apple.com/en-us/117735 (10 cores, 100 GB/s)",),
        processors=10,
        bandwidth=100e9,
    ),
    "mobile": Profile(
        summary="Arm Immortalis-G715 of 11 cores, with WebGPU's default limits",
        limits=Limits(),
        sources=(
            "https://www.w3.org/TR/webgpu/#limits (the limits)",
            "https://www.mediatek.com/products/smartphones/mediatek-dimensity-9200 (LPDDR5X-8533, 64 bits wide)",
        ),
        processors=11,
        bandwidth=68.3e9,
    ),
    "webgpu-defaults": Profile(
        summary="any GPU, with WebGPU's default limits",
        limits=Limits(),
        sources=("https://www.w3.org/TR/webgpu/#limits",),
    ),
}
"""By name. Where a figure is not known, there is none, and what follows from it is not said."""
