"""Tensors above 512 MiB, of which SwiftShader binds 1 GiB at once: addresses that no smaller tensor has."""

from __future__ import annotations

import numpy as np
import pytest

import dmlgpu
from dmlgpu.dtypes import by_name
from dmlgpu.layout import Layout
from dmlgpu.planning.plan import plan_problem
from dmlgpu.planning.problem import Operator, scan_problem
from dmlgpu.runtime.device import Device


def largest_binding(device: Device, shape: tuple[int, ...], dtype: str) -> int:
    """Return the most bytes that a dispatch over a tensor binds."""
    layout = Layout.packed(shape)
    plan = plan_problem(scan_problem(by_name(dtype), Operator.SUM, layout, layout, axis=0), device.limits)
    return max(one.output.size for one in plan.passes if one.output is not None)


@pytest.mark.parametrize(("shape", "dtype"), [((4000, 33_600), "float32"), ((4000, 135_000), "uint8")])
def test_scans_beyond_512_mib(device: Device, shape: tuple[int, int], dtype: str) -> None:
    """Every column of small integers, whose sums are exact in any order and in both types."""
    binds_more = device.limits.binding_bytes > 2**29
    assert (largest_binding(device, shape, dtype) > 2**29) == binds_more
    rng = np.random.default_rng(shape[0])
    x = rng.integers(0, 256, shape, np.uint8).astype(dtype, copy=False)
    # At once: data of the host would come in blocks.
    y = dmlgpu.cumulative_sum(dmlgpu.asarray(x, device), axis=0, dtype=dtype).numpy()
    total = np.zeros(shape[1], dtype)
    for i, row in enumerate(x):
        total += row
        assert np.array_equal(y[i], total), i
