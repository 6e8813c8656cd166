"""Has cffi parse the C types that wgpu-py asks for by name all at once: half of what a first result takes otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["parse_c_types"]

_STRUCTS = [
    "AdapterInfo",
    "BindGroupDescriptor",
    "BindGroupEntry",
    "BindGroupLayoutDescriptor",
    "BindGroupLayoutEntry",
    "BufferBindingLayout",
    "BufferDescriptor",
    "BufferMapCallbackInfo",
    "ChainedStruct",
    "CommandBufferDescriptor",
    "CommandEncoderDescriptor",
    "ComputePassDescriptor",
    "ComputePipelineDescriptor",
    "ComputeState",
    "ConstantEntry",
    "DeviceDescriptor",
    "DeviceExtras",
    "DeviceLostCallbackInfo",
    "InstanceDescriptor",
    "Limits",
    "NativeLimits",
    "PipelineLayoutDescriptor",
    "QueueDescriptor",
    "RequestDeviceCallbackInfo",
    "ShaderModuleDescriptor",
    "ShaderSourceWGSL",
    "UncapturedErrorCallbackInfo",
]
_ARRAYS = [
    "Adapter",
    "BindGroupEntry",
    "BindGroupLayout",
    "BindGroupLayoutEntry",
    "CommandBuffer",
    "ConstantEntry",
    "FeatureName",
]
_FUNCTIONS = (
    "(WGPUDevice const *, WGPUDeviceLostReason, WGPUStringView, void *, void *)",
    "(WGPUDevice const *, WGPUErrorType, WGPUStringView, void *, void *)",
    "(WGPUMapAsyncStatus, WGPUStringView, void *, void *)",
    "(WGPURequestDeviceStatus, WGPUDevice, WGPUStringView, void *, void *)",
)


def _item(pointer: Any) -> tuple[Any, bool]:
    return pointer.item, False


def _itself(ctype: Any) -> tuple[Any, bool]:
    return ctype, False


def _function(pointer: Any) -> tuple[Any, bool]:
    return pointer, True


_TYPES: dict[str, tuple[str, Callable[[Any], tuple[Any, bool]]]] = {
    **{f"WGPU{name} *": (f"WGPU{name} *", _itself) for name in _STRUCTS},
    "WGPUChainedStruct * ": ("WGPUChainedStruct *", _itself),
    # An array as a parameter would be a pointer to its element, and a function one to itself.
    **{f"WGPU{name}[]": (f"WGPU{name}(*)[]", _item) for name in _ARRAYS},
    **{f"{name} []": (f"{name}(*)[]", _item) for name in ("char", "uint8_t", "uint32_t")},
    **{name: (name, _itself) for name in ("intptr_t", "uintptr_t", "uint8_t *")},
    **{f"void{parameters}": (f"void(*){parameters}", _function) for parameters in _FUNCTIONS},
}
"""For each type as wgpu-py writes it: a parameter that says the same, and what cffi keeps of that."""


def parse_c_types(ffi: Any) -> bool:
    """Parse, as the parameters of one function, the types that wgpu-py asks for up to a first result.

    cffi parses all of wgpu's type names anew, which takes some 12 ms, for each type that it sees for the first time.

    Parameters
    ----------
    ffi : cffi.FFI
        wgpu-py's.

    Returns
    -------
    bool
        Whether that was possible. If not, nothing has changed: a wgpu without one of the types, or a cffi that keeps
        types elsewhere, parses them one by one.
    """
    try:
        kept = ffi._parsed_types
        parameters = ffi.typeof(f"void(*)({', '.join(parameter for parameter, _ in _TYPES.values())})").args
        parsed = {name: entry(ctype) for (name, (_, entry)), ctype in zip(_TYPES.items(), parameters, strict=True)}
        for name, value in parsed.items():
            kept.setdefault(name, value)
    except Exception:  # cffi's errors for C are of many kinds, and none of them matters here
        return False
    return True
