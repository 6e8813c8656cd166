"""`execute`: one operator over one NumPy array, without bindings and command lists."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.host import host_array
from ..errors import ArrayTypeError
from ..layout import Layout
from ..lazy import resolve_device
from .constants import DML_TENSOR_DATA_TYPE
from .fields import a_kind_of, invalid_argument
from .rules import Description, ValidOperator, layout, validate_operator

if TYPE_CHECKING:
    from ..runtime.device import Buffer, Device

__all__ = ["execute"]


def execute(desc: Description, array: NDArray[Any], *, device: Device | str | int | None = None) -> NDArray[Any]:
    """Compute an operator over an array.

    Parameters
    ----------
    desc : DML_OPERATOR_DESC or ``DML_..._OPERATOR_DESC``
        The operator. Everything of DirectML's highest feature level is allowed, and this package's extensions.
    array : NDArray, shape ``Sizes`` of the input tensor
        The input's elements, of exactly the tensor's type: DirectML never promotes. Where the input's strides make
        elements share memory, they must have the same bits.
    device : Device, str, int, optional
        Where to compute; by default as everywhere in this package.

    Returns
    -------
    NDArray, shape ``Sizes``
        A new packed array of the same dtype. Strides describe only the tensors on the device.

    Raises
    ------
    DirectMLError
        With E_INVALIDARG, if the description breaks a rule or the array does not fit it.
    ArrayTypeError
        If `desc` is no description or `array` no NumPy array.
    DeviceMemoryError
        If a tensor is larger than a buffer of the device can be.
    DeviceLostError
        If the device was destroyed, or its driver gave it up.

    Examples
    --------
    >>> import numpy as np
    >>> from dmlgpu import directml as dml
    >>> t = dml.DML_BUFFER_TENSOR_DESC(dml.DML_TENSOR_DATA_TYPE_INT32, Sizes=(2, 3))
    >>> d = dml.DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(InputTensor=t, OutputTensor=t, Axis=1)
    >>> dml.execute(d, np.array([[1, 2, 3], [4, 5, 6]], dtype=np.int32)).tolist()
    [[1, 3, 6], [4, 9, 15]]
    """
    operator = validate_operator(desc, extensions=True)
    elements = _check_array(array, operator)
    gpu = resolve_device(device)
    source, target = layout(operator.input), layout(operator.output)
    with gpu.section, ExitStack() as stack:

        def allocate(nbytes: int) -> Buffer:
            buffer = gpu.allocate(nbytes)
            stack.callback(buffer.release)
            return buffer

        input_size, output_size = operator.input.TotalTensorSizeInBytes, operator.output.TotalTensorSizeInBytes
        if source == target:  # two tensors with the same layout need one buffer only
            input_buffer = output_buffer = allocate(max(input_size, output_size))
        else:
            input_buffer, output_buffer = allocate(input_size), allocate(output_size)
        gpu.upload(input_buffer, 0, image(elements, source, f"{operator.name}: tensor 'InputTensor'"))
        gpu.run(operator.problem(), input_buffer, output_buffer)
        flat = np.empty(target.extent[1], operator.element.dtype)
        gpu.download(output_buffer, 0, flat)
    return flat.reshape(target.sizes) if target.is_packed else target.view(flat).copy()


def _check_array(array: NDArray[Any], operator: ValidOperator) -> NDArray[Any]:
    """Check that the array is what the input tensor describes, and return it without its subclass."""
    if not isinstance(array, np.ndarray):
        raise ArrayTypeError(
            f"array is {a_kind_of(array)}; give a NumPy array, such as numpy.asarray(x, dtype='{operator.element}')"
        )
    where = f"{operator.name}: array has"
    expected = operator.element.dtype
    if array.dtype != expected:
        raise invalid_argument(
            f"{where} dtype {array.dtype} while tensor 'InputTensor' has DataType "
            f"{DML_TENSOR_DATA_TYPE(operator.element.dml_value)!r}, which is dtype {expected}; convert it with astype"
        )
    if array.shape != operator.input.Sizes:
        raise invalid_argument(
            f"{where} shape {array.shape} while tensor 'InputTensor' has Sizes {operator.input.Sizes}; they must be "
            "the same"
        )
    return host_array(array, "array")


def image(array: NDArray[Any], layout: Layout, where: str) -> NDArray[Any]:
    """Return the contents of a buffer, up to the tensor's last element, that make the tensor hold an array.

    Parameters
    ----------
    array : NDArray, shape ``layout.sizes``
        The elements.
    layout : Layout
        Where they lie. Elements that share a place, as along a dimension with stride 0, must have the same bits.
    where : str
        The operator and the tensor, for messages.

    Returns
    -------
    NDArray, 1-D
        A contiguous array of the same dtype; gaps hold zeros.

    Raises
    ------
    DirectMLError
        With E_INVALIDARG, if elements that share a place differ.
    """
    if layout.is_packed:
        return np.ascontiguousarray(array).reshape(-1)
    flat = np.zeros(layout.extent[1], array.dtype)
    placed = layout.view(flat)
    placed[...] = array
    if not layout.is_disjoint:
        bits = np.dtype(f"u{array.itemsize}")
        differs = placed.view(bits) != array.view(bits)
        if differs.any():
            index = tuple(map(int, np.unravel_index(int(differs.argmax()), differs.shape)))
            raise invalid_argument(
                f"{where} has Sizes {layout.sizes} and Strides {layout.strides}, with which elements share memory, "
                f"while array holds different values there: {array[index]!s} at {index} and {placed[index]!s}; give "
                "elements that share memory the same value"
            )
    return flat
