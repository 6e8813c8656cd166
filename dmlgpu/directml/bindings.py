"""The rules of bindings: kind, buffer and range of one binding; which ranges of all bindings may meet.

The former are checked when something is bound, the latter when a dispatch is recorded, with all of them there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import ArrayTypeError, DirectMLError, counted
from .constants import (
    DML_BINDING_TYPE,
    DML_BINDING_TYPE_BUFFER,
    DML_BINDING_TYPE_BUFFER_ARRAY,
    DML_BINDING_TYPE_NONE,
    DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT,
    DXGI_ERROR_DEVICE_REMOVED,
)
from .fields import a_kind_of, invalid_argument, with_article
from .structs import DML_BINDING_DESC, DML_BUFFER_ARRAY_BINDING, DML_BUFFER_BINDING, DML_BUFFER_TENSOR_DESC

if TYPE_CHECKING:
    from .idml_device import IDMLDevice

__all__ = [
    "Need",
    "Slot",
    "Slots",
    "array_of_one",
    "buffer_slot",
    "check_execution",
    "check_initialization",
    "check_kind",
    "check_live",
    "exactly",
    "is_nothing",
    "one_buffer",
    "optional_buffer",
]


@dataclass(frozen=True)
class Slot:
    """A range of a buffer that keeps all rules of a single binding.

    Attributes
    ----------
    name : str
        The name of the binding, for messages.
    buffer : wgpu.GPUBuffer
        The buffer.
    offset, size : int
        The range, in bytes.
    """

    name: str
    buffer: Any
    offset: int
    size: int

    @property
    def range(self) -> str:
        """The range, for messages."""
        return f"bytes {self.offset} to {self.offset + self.size}"

    def meets(self, other: Slot) -> bool:
        """Whether the ranges of two slots share a byte."""
        return (
            self.buffer is other.buffer
            and self.offset < other.offset + other.size
            and other.offset < self.offset + self.size
        )

    def same_range(self, other: Slot) -> bool:
        """Whether two slots are the same range of the same buffer."""
        return (self.offset, self.size) == (other.offset, other.size) and self.buffer is other.buffer


@dataclass(frozen=True)
class Need:
    """The needs that a range of a buffer must meet.

    Attributes
    ----------
    size : int
        Its least size, in bytes.
    called : str
        The name of that size, for messages: ``"TotalTensorSizeInBytes"``.
    alignment : int
        The number of bytes that its offset is a multiple of.
    """

    size: int
    called: str
    alignment: int

    @classmethod
    def of_tensor(cls, tensor: DML_BUFFER_TENSOR_DESC) -> Need:
        """Return the needs of a tensor."""
        alignment = max(DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT, tensor.GuaranteedBaseOffsetAlignment)
        return cls(tensor.TotalTensorSizeInBytes, "TotalTensorSizeInBytes", alignment)


@dataclass
class Slots:
    """The bindings of a table; None where nothing is bound.

    Attributes
    ----------
    inputs, outputs : tuple of (Slot or None), or None
        One for each tensor of an operator, or for each operator of an initializer.
    temporary, persistent : Slot or None
        The resources of an operator.
    """

    inputs: tuple[Slot | None, ...] | None = None
    outputs: tuple[Slot | None, ...] | None = None
    temporary: Slot | None = None
    persistent: Slot | None = None

    def __iter__(self) -> Iterator[Slot]:
        for slot in (*(self.inputs or ()), *(self.outputs or ()), self.temporary, self.persistent):
            if slot is not None:
                yield slot


def check_live(device: IDMLDevice, buffer: Any, name: str) -> None:
    """Refuse a buffer that is not the device's, has no usage STORAGE, is mapped or destroyed."""
    from ..runtime.foreign import FaultKind

    fault = device._runtime.fault(buffer)
    if fault is None:
        return
    if fault.kind is FaultKind.TYPE:
        raise ArrayTypeError(f"{name}: Buffer is {a_kind_of(buffer)}; give it a wgpu.GPUBuffer")
    message = f"{name}: Buffer {fault.text}"
    if fault.kind is FaultKind.LOST:
        raise DirectMLError(DXGI_ERROR_DEVICE_REMOVED, message)
    raise invalid_argument(message)


def exactly(bindings: Sequence[Any], expected: int, where: str, what: str) -> None:
    """Check that there are as many bindings as tensors or operators."""
    if len(bindings) != expected:
        bound = f"{len(bindings)} {'is' if len(bindings) == 1 else 'are'} bound"
        raise invalid_argument(f"{where} has {counted(expected, what)} while {bound}; they must be as many")


def check_kind(binding: DML_BINDING_DESC, allowed: Sequence[DML_BINDING_TYPE], name: str) -> None:
    """Check a binding's Type, and that its Desc fits it."""
    structs = {
        DML_BINDING_TYPE_NONE: type(None),
        DML_BINDING_TYPE_BUFFER: DML_BUFFER_BINDING,
        DML_BINDING_TYPE_BUFFER_ARRAY: DML_BUFFER_ARRAY_BINDING,
    }
    if not isinstance(binding.Type, DML_BINDING_TYPE) or binding.Type not in allowed:
        raise invalid_argument(f"{name} has a binding of Type {binding.Type!r}; it must be {_or(allowed)}")
    expected = structs[binding.Type]
    if not isinstance(binding.Desc, expected):
        found = "null" if binding.Desc is None else a_kind_of(binding.Desc)
        needed = "null" if expected is type(None) else with_article(expected.__name__)
        raise invalid_argument(f"{name} has a binding of Type {binding.Type!r} while its Desc is {found}, not {needed}")


def is_nothing(binding: DML_BINDING_DESC) -> bool:
    """Whether a binding that fits says "no binding": by its Type, or by a null buffer."""
    if binding.Type == DML_BINDING_TYPE_NONE:
        return binding.Desc is None
    return (
        binding.Type == DML_BINDING_TYPE_BUFFER
        and isinstance(binding.Desc, DML_BUFFER_BINDING)
        and binding.Desc.Buffer is None
    )


def _or(kinds: Sequence[DML_BINDING_TYPE]) -> str:
    return " or ".join(map(repr, kinds))


def one_buffer(device: IDMLDevice, binding: DML_BINDING_DESC, need: Need, name: str) -> Slot:
    """Check a binding that must be a buffer.

    Parameters
    ----------
    device : IDMLDevice
        Whose buffer it must be.
    binding : DML_BINDING_DESC
        The binding.
    need : Need
        What the range must be.
    name : str
        The call and what is bound, for messages.
    """
    check_kind(binding, (DML_BINDING_TYPE_BUFFER,), name)
    assert isinstance(binding.Desc, DML_BUFFER_BINDING)
    return buffer_slot(device, binding.Desc, need, name)


def buffer_slot(device: IDMLDevice, binding: DML_BUFFER_BINDING, need: Need, name: str) -> Slot:
    """Check a range of a buffer; parameters as for `one_buffer`."""
    if binding.Buffer is None:
        raise invalid_argument(f"{name} has a binding with a null Buffer; give it a wgpu.GPUBuffer")
    check_live(device, binding.Buffer, name)
    offset, size, whole = binding.Offset, binding.SizeInBytes, binding.Buffer.size
    if offset % need.alignment:
        raise invalid_argument(f"{name} has a binding with Offset {offset}; it must be a multiple of {need.alignment}")
    if offset + size > whole:
        raise invalid_argument(
            f"{name} has a binding with Offset {offset} and SizeInBytes {size}, which end at {offset + size}, while "
            f"its Buffer has {whole} bytes"
        )
    if size < need.size:
        raise invalid_argument(
            f"{name} has a binding with SizeInBytes {size} while its {need.called} is {need.size}; the range must be "
            "at least as large"
        )
    return Slot(name.split(": ")[-1], binding.Buffer, offset, size)


def optional_buffer(device: IDMLDevice, binding: DML_BINDING_DESC | None, need: Need, name: str) -> Slot | None:
    """Check the binding of a temporary or persistent resource, which may be absent where none is needed."""
    if binding is None or binding.Type == DML_BINDING_TYPE_NONE:
        if binding is not None:
            check_kind(binding, (DML_BINDING_TYPE_NONE,), name)
        if need.size:
            raise invalid_argument(
                f"{name} has no binding while {need.called} is {need.size}; bind a buffer with at least as many bytes"
            )
        return None
    check_kind(binding, (DML_BINDING_TYPE_NONE, DML_BINDING_TYPE_BUFFER), name)
    if not need.size and is_nothing(binding):
        return None
    return one_buffer(device, binding, need, name)


def array_of_one(binding: DML_BINDING_DESC, name: str) -> DML_BUFFER_BINDING | None:
    """Check an initializer's binding of one operator's input; None if nothing is bound."""
    check_kind(binding, (DML_BINDING_TYPE_NONE, DML_BINDING_TYPE_BUFFER_ARRAY), name)
    if binding.Desc is None:
        return None
    assert isinstance(binding.Desc, DML_BUFFER_ARRAY_BINDING)
    bindings = binding.Desc.Bindings
    if binding.Desc.BindingCount != len(bindings):
        raise invalid_argument(
            f"{name} has a DML_BUFFER_ARRAY_BINDING with BindingCount {binding.Desc.BindingCount} while Bindings has "
            f"{len(bindings)}; they must agree"
        )
    if not bindings:
        return None
    exactly(bindings, 1, name, "input")
    return bindings[0]


def check_execution(slots: Slots, difference: str | None, where: str) -> None:
    """Check the ranges of an operator's execution.

    Parameters
    ----------
    slots : Slots
        What is bound, with an output.
    difference : str or None
        The reason why the operator cannot work in place, for messages; None if it can.
    where : str
        The call and the operator, for messages.
    """
    (input,), (output,) = slots.inputs or (None,), slots.outputs or (None,)
    assert output is not None
    if input is not None and input.meets(output):
        if not input.same_range(output):
            raise _meet(where, output, input, "they must be identical, for work in place, or share no byte")
        if difference is not None:
            raise invalid_argument(
                f"{where}: {output.name} and {input.name} are bound to the same range ({output.range} of one buffer) "
                f"while {difference}; work in place needs the same Strides and TotalTensorSizeInBytes: make them the "
                "same, or bind two ranges"
            )
    temporary, persistent = slots.temporary, slots.persistent
    for slot in (temporary, persistent):
        for other in (output, temporary, input if slot is temporary else None):
            if slot is not None and other is not None and slot is not other and slot.meets(other):
                raise _meet(where, slot, other, f"{slot.name} must not share a byte with it")


def check_initialization(slots: Slots, where: str) -> None:
    """Check the buffers of an initialization: none is input and output, and persistent resources lie apart."""
    inputs, outputs = ([slot for slot in bound or () if slot] for bound in (slots.inputs, slots.outputs))
    for i, output in enumerate(outputs):
        for source in inputs:
            if source.buffer is output.buffer:
                raise invalid_argument(
                    f"{where}: {output.name} and {source.name} are bound to one buffer ({output.range} and "
                    f"{source.range}); an initializer's inputs and outputs must be in different buffers"
                )
        for other in outputs[:i]:
            if output.meets(other):
                raise _meet(where, output, other, "persistent resources must not share a byte")


def _meet(where: str, one: Slot, other: Slot, rule: str) -> Exception:
    return invalid_argument(
        f"{where}: {one.name} is bound to {one.range} while {other.name} is bound to {other.range} of the same buffer; "
        f"{rule}"
    )
