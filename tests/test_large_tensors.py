"""Tensors above 512 MiB, of which SwiftShader binds 1 GiB at once: addresses that no smaller tensor has."""

from __future__ import annotations

import numpy as np
import pytest

import dmlgpu
from dmlgpu.dtypes import by_name
from dmlgpu.layout import Layout
from dmlgpu.planning.plan import plan_problem
from dmlgpu.planning.problem import Operator, RoundingMode, round_problem, scan_problem
from dmlgpu.runtime.device import Device


def largest_binding(device: Device, shape: tuple[int, ...], dtype: str, mode: RoundingMode | None = None) -> int:
    """Return the most bytes that a dispatch over a tensor binds."""
    layout, element = Layout.packed(shape), by_name(dtype)
    if mode is None:
        plan = plan_problem(scan_problem(element, Operator.SUM, layout, layout, axis=1), device.limits)
    else:
        plan = plan_problem(round_problem(element, mode, layout, layout), device.limits)
    return max(one.output.size for one in plan.passes if one.output is not None)


@pytest.mark.parametrize(("shape", "dtype"), [((2049, 65_536), "float32"), ((514, 2**20), "uint8")])
def test_scans_beyond_512_mib(device: Device, shape: tuple[int, int], dtype: str) -> None:
    """Every row of small integers, whose sums are exact in any order and in both types."""
    binds_more = device.limits.binding_bytes > 2**29
    assert (largest_binding(device, shape, dtype) > 2**29) == binds_more
    rng = np.random.default_rng(shape[0])
    x = rng.integers(0, 256, shape, np.uint8).astype(dtype, copy=False)
    # At once: data of the host would come in blocks.
    y = dmlgpu.cumulative_sum(dmlgpu.asarray(x, device), axis=1, dtype=dtype).numpy()
    for i, row in enumerate(x):
        assert np.array_equal(y[i], np.cumsum(row, dtype=dtype)), i
