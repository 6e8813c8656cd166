"""The node tests that the `onnx` package carries for CumSum, CumProd and Round, through the NumPy face.

Inputs and expected values are integers and short decimals whose results are exact, so that they are compared bit for
bit.
"""

from __future__ import annotations

import importlib
from typing import Any
from unittest import mock

import numpy as np
import onnx.backend.test.case.node as node_cases
import pytest
from numpy.typing import NDArray
from onnx import NodeProto
from onnx.helper import get_attribute_value

import dmlgpu
from dmlgpu import reference

Case = tuple[NodeProto, list[Any], NDArray[Any]]


def collect() -> dict[str, Case]:
    """Return the cases by name. Their modules hand each to `expect` while they are imported."""
    cases: dict[str, Case] = {}

    def keep(node: NodeProto, inputs: list[Any], outputs: list[Any], name: str) -> None:
        cases[name] = node, inputs, outputs[0]

    with mock.patch.object(node_cases, "expect", keep):
        for module in ("cumsum", "cumprod", "round"):
            importlib.import_module(f"{node_cases.__name__}.{module}")
    return cases


CASES = collect()


def test_all_cases_are_found() -> None:
    kinds = [node.op_type for node, _, _ in CASES.values()]
    assert {kind: kinds.count(kind) for kind in kinds} == {"CumSum": 9, "CumProd": 9, "Round": 1}


@pytest.mark.parametrize("kind", [np.asarray, dmlgpu.asarray])
@pytest.mark.parametrize("name", CASES)
def test_node(device: dmlgpu.Device, name: str, kind: Any) -> None:
    node, (x, *axis), expected = CASES[name]
    given = x if kind is np.asarray else dmlgpu.asarray(x, device)
    if node.op_type == "Round":
        result = dmlgpu.round(given, device=device)
    else:
        options = {attribute.name: bool(get_attribute_value(attribute)) for attribute in node.attribute}
        scan = {"CumSum": dmlgpu.cumulative_sum, "CumProd": dmlgpu.cumulative_prod}[node.op_type]
        result = scan(given, axis=axis[0], dtype=x.dtype, device=device, **options)
    assert reference.first_difference(np.asarray(result), expected) is None
