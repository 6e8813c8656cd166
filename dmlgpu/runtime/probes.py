"""What is measured on a device because it does not say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..dtypes import by_name
from ..problem import Layout, Operator, scan_problem

if TYPE_CHECKING:
    from .device import Device

__all__ = ["measure_subnormals"]


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
    with device.lock:
        device.upload(buffer, 0, x)
        device.run(problem, buffer, buffer)
        device.download(buffer, 0, out)
        buffer.release()
    return out
