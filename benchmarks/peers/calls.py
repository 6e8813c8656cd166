"""How each library computes a row, from a NumPy array to a NumPy array."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dmlgpu.bench.rows import Row
from dmlgpu.bench.workloads import numpy_call, own_call

Array = NDArray[Any]
Call = Callable[[], Array]
Prepare = Callable[[Row, Array], Call]

SWIFTSHADER = Path(__file__).resolve().parents[2] / ".cache" / "swiftshader" / "vk_swiftshader_icd.json"
_QUADRATIC = 2**29
_CPU = "CPUExecutionProvider"


class MissingPeerError(Exception):
    """A library that is not installed, or finds nothing to run on: one sentence that says what to do."""


@dataclass(frozen=True)
class Peer:
    """A library.

    Attributes
    ----------
    load : callable
        Imports it; returns what prepares a call.
    packages : tuple of str
        The packages whose version is shown, the first that is there.
    environment : mapping of str to str
        Variables of its process.
    driver : Path or None
        A Vulkan driver file that must be there.
    quadratic : bool
        Whether every result sums from the start, so that long axes are left out.
    """

    load: Callable[[], Prepare]
    packages: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    driver: Path | None = None
    quadratic: bool = False

    def version(self) -> str:
        """Return the version that is installed, or an empty text."""
        for name in self.packages:
            try:
                return version(name)
            except PackageNotFoundError:
                continue
        return ""

    def refuses(self, row: Row) -> str | None:
        """Return why a row is left out, or None."""
        if self.quadratic and row.axis is not None and row.elements * row.shape[row.axis] > _QUADRATIC:
            return "takes minutes: n^2"
        return None


def _own() -> Prepare:
    import dmlgpu

    device = dmlgpu.default_device()

    def prepare(row: Row, x: Array) -> Call:
        call = own_call(row, device)
        return lambda: np.asarray(call(x))

    return prepare


def _numpy() -> Prepare:
    def prepare(row: Row, x: Array) -> Call:
        call = numpy_call(row)
        return lambda: call(x)

    return prepare


def _torch() -> Prepare:
    try:
        import torch
    except ImportError:
        raise MissingPeerError("PyTorch is not installed: pip install torch (the CPU build is enough)") from None

    def prepare(row: Row, x: Array) -> Call:
        kind = getattr(torch, row.type)
        if row.axis is None:
            return lambda: np.asarray(torch.round(torch.from_numpy(x)).numpy())
        operator = torch.cumsum if row.operator == "sum" else torch.cumprod
        return lambda: np.asarray(operator(torch.from_numpy(x), row.axis, dtype=kind).numpy())

    return prepare


def _onnxruntime(provider: str) -> Callable[[], Prepare]:
    def load() -> Prepare:
        try:
            import onnx
            import onnxruntime
        except ImportError:
            raise MissingPeerError("ONNX Runtime is not installed: pip install onnx onnxruntime-webgpu") from None
        if provider not in onnxruntime.get_available_providers():
            raise MissingPeerError(f"this ONNX Runtime has no {provider}: pip install onnxruntime-webgpu instead of it")

        def prepare(row: Row, x: Array) -> Call:
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 3
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # the others need the cores, too
            if provider != _CPU:  # which otherwise runs what the provider has no kernel for, and says nothing
                options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
            model = _model(onnx, row).SerializeToString()
            try:
                session = onnxruntime.InferenceSession(model, options, providers=[provider])
            except Exception as error:
                if provider == _CPU:
                    raise
                why = "has no kernel for this" if "nodes that are assigned to" in str(error) else "finds no device"
                raise MissingPeerError(f"ONNX Runtime's {provider} {why}") from None
            return lambda: np.asarray(session.run(None, {"x": x})[0])

        return prepare

    return load


def _model(onnx: Any, row: Row) -> Any:
    """Return a model of one node."""
    if row.operator == "product":
        raise ValueError("ONNX has had a cumulative product only since operator set 26")
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(row.type))
    x, y = (onnx.helper.make_tensor_value_info(name, kind, row.shape) for name in "xy")
    if row.axis is None:
        node, constants = onnx.helper.make_node("Round", ["x"], ["y"]), []
    else:
        node = onnx.helper.make_node("CumSum", ["x", "axis"], ["y"])
        constants = [onnx.helper.make_tensor("axis", onnx.TensorProto.INT64, [], [row.axis])]
    graph = onnx.helper.make_graph([node], "one", [x], [y], constants)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 14)], ir_version=9)


def loaded_cupy() -> Any:
    """Return CuPy if it can run here."""
    try:
        import cupy
    except ImportError:
        raise MissingPeerError("CuPy is not installed: where there is CUDA, pip install cupy-cuda12x") from None
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise MissingPeerError(f"CuPy finds no CUDA device: {error}") from None
    return cupy


def _cupy() -> Prepare:
    cupy = loaded_cupy()

    def prepare(row: Row, x: Array) -> Call:
        if row.axis is None:
            return lambda: np.asarray(cupy.asnumpy(cupy.rint(cupy.asarray(x))))
        operator = cupy.cumsum if row.operator == "sum" else cupy.cumprod
        return lambda: np.asarray(cupy.asnumpy(operator(cupy.asarray(x), axis=row.axis, dtype=row.type)))

    return prepare


_SOFTWARE = {"VK_DRIVER_FILES": os.fspath(SWIFTSHADER), "DMLGPU_ADAPTER": "SwiftShader"}

PEERS: Mapping[str, Peer] = {
    "dmlgpu": Peer(_own, ("dmlgpu",)),
    "numpy": Peer(_numpy, ("numpy",)),
    "torch": Peer(_torch, ("torch",)),
    "ort-cpu": Peer(_onnxruntime(_CPU), ("onnxruntime-webgpu", "onnxruntime")),
    "cupy": Peer(_cupy, ("cupy-cuda13x", "cupy-cuda12x", "cupy")),
    "dmlgpu-swiftshader": Peer(_own, ("dmlgpu",), _SOFTWARE, SWIFTSHADER),
    "ort-webgpu-swiftshader": Peer(
        _onnxruntime("WebGpuExecutionProvider"), ("onnxruntime-webgpu",), _SOFTWARE, SWIFTSHADER, quadratic=True
    ),
    "ort-webgpu": Peer(_onnxruntime("WebGpuExecutionProvider"), ("onnxruntime-webgpu",), quadratic=True),
}
"""By name. Dawn, which ONNX Runtime's WebGPU provider stands on, refuses lavapipe before Mesa 23, so that on a machine
without a GPU the same software device is SwiftShader."""
