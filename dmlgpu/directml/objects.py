"""IDMLOperator, IDMLCompiledOperator, and what DirectML's interfaces share."""

# ruff: noqa: N802 (DirectML's names)
from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from ..errors import ArrayTypeError
from ..planning.plan import any_placement, plans_of_any_placement
from .binding_rules import Slot, check_kind, exactly, is_nothing, one_buffer, optional_buffer
from .binding_structs import DML_BINDING_DESC, DML_BINDING_PROPERTIES
from .constants import (
    DML_BINDING_TYPE_NONE,
    DML_EXECUTION_FLAGS,
    DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT,
    DML_PERSISTENT_BUFFER_ALIGNMENT,
    DML_TEMPORARY_BUFFER_ALIGNMENT,
    DML_TENSOR_FLAG_OWNED_BY_DML,
)
from .fields import a_kind_of
from .hresults import invalid_argument, invalid_call, out_of_memory
from .mapping import operator_problem
from .operator_rules import ValidOperator
from .tensor_rules import difference_in_place
from .tensor_structs import DML_BUFFER_TENSOR_DESC, least_size

if TYPE_CHECKING:
    from ..runtime.executor import Bound
    from .device import IDMLDevice

__all__ = [
    "IDMLCompiledOperator",
    "IDMLDeviceChild",
    "IDMLDispatchable",
    "IDMLObject",
    "IDMLOperator",
    "IDMLPageable",
]


class IDMLObject:
    """What all DirectML objects have.

    Attributes
    ----------
    Name : str or None
        What `SetName` set, which messages use; DirectML itself has no way to ask for it.
    """

    Name: str | None = None

    def SetName(self, name: str | None) -> None:
        """Give the object a name for messages; None takes it away.

        Raises
        ------
        ArrayTypeError
            If `name` is no str.
        """
        if not isinstance(name, str | None):
            raise ArrayTypeError(f"SetName: name is {a_kind_of(name)}; give it a str")
        self.Name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__}{f' {self.Name!r}' if self.Name else ''}>"


class IDMLDeviceChild(IDMLObject):
    """What objects that a device made have."""

    def __init__(self, device: IDMLDevice) -> None:
        self._device = device

    def GetDevice(self) -> IDMLDevice:
        """Return the device that made the object."""
        return self._device


class IDMLPageable(IDMLDeviceChild):
    """An object with memory on the device; wgpu looks after residency, so that Evict and MakeResident are not here."""


class IDMLDispatchable(IDMLPageable):
    """What a command recorder can record: a compiled operator, or an operator initializer."""

    def GetBindingProperties(self) -> DML_BINDING_PROPERTIES:
        """Return what a binding table of the dispatchable must hold."""
        raise NotImplementedError

    # What the binding table asks. `version` changes when bindings made before no longer fit.
    _version = 0

    def _bind_inputs(self, bindings: tuple[DML_BINDING_DESC, ...], where: str) -> tuple[Slot | None, ...]:
        raise NotImplementedError

    def _bind_outputs(self, bindings: tuple[DML_BINDING_DESC, ...], where: str) -> tuple[Slot | None, ...]:
        raise NotImplementedError

    def _bind_temporary(self, binding: DML_BINDING_DESC | None, where: str) -> Slot | None:
        needed = self.GetBindingProperties().TemporaryResourceSize
        name = f"{where}: {self._label()}: the temporary resource"
        return optional_buffer(self._device, binding, name, needed, DML_TEMPORARY_BUFFER_ALIGNMENT, "Temporary")

    def _bind_persistent(self, binding: DML_BINDING_DESC | None, where: str) -> Slot | None:
        needed = self.GetBindingProperties().PersistentResourceSize
        name = f"{where}: {self._label()}: the persistent resource"
        return optional_buffer(self._device, binding, name, needed, DML_PERSISTENT_BUFFER_ALIGNMENT, "Persistent")

    def _label(self) -> str:
        raise NotImplementedError


class IDMLOperator(IDMLDeviceChild):
    """An operator whose description keeps all rules. Made by IDMLDevice::CreateOperator."""

    def __init__(self, device: IDMLDevice, operator: ValidOperator) -> None:
        super().__init__(device)
        self._operator = operator


class IDMLCompiledOperator(IDMLDispatchable):
    """An operator whose shaders are compiled. Made by IDMLDevice::CompileOperator.

    Raises
    ------
    DirectMLError
        With E_OUTOFMEMORY, if a tensor is larger than the device's largest buffer.
    """

    def __init__(
        self, device: IDMLDevice, operator: ValidOperator, flags: DML_EXECUTION_FLAGS, name: str | None
    ) -> None:
        super().__init__(device)
        self.Name = name
        self._operator = operator
        self._flags = flags
        source, target = operator.input, operator.output
        self._owned = source.Flags == DML_TENSOR_FLAG_OWNED_BY_DML
        self._persistent_size = 0
        if self._owned:
            size = least_size(operator.element.itemsize, source.Sizes, source.Strides)
            self._persistent_size = _round_up(size, DML_PERSISTENT_BUFFER_ALIGNMENT)
        runtime = device._runtime
        limit = int(runtime.gpu_device.limits["max-buffer-size"])
        for tensor, field in ((source, "InputTensor"), (target, "OutputTensor")):
            if tensor.TotalTensorSizeInBytes > limit:
                raise out_of_memory(
                    f"IDMLDevice::CompileOperator: {self._label()}: tensor '{field}' has TotalTensorSizeInBytes "
                    f"{tensor.TotalTensorSizeInBytes} while the largest buffer of the device has {limit} bytes "
                    "(max-buffer-size); split the tensor, or choose another device"
                )
        problem = operator_problem(operator)
        self._chunks = any_placement(problem, runtime.limits)
        plans = plans_of_any_placement(problem, runtime.limits)
        for plan in plans:
            runtime.compile(plan)
        scratch = max(plan.scratch_bytes for plan in plans)
        self._temporary_size = _round_up(scratch, DML_TEMPORARY_BUFFER_ALIGNMENT)
        # What the debug layer knows: whether an initialization was recorded, and which persistent resources it fills.
        self._initialized = False
        self._filled: list[tuple[weakref.ref[Any], int]] = []

    def GetBindingProperties(self) -> DML_BINDING_PROPERTIES:
        """Return what a binding table for executing the operator must hold."""
        # The input, or the persistent resource in its place; the output; the temporary resource.
        return DML_BINDING_PROPERTIES(2 + bool(self._temporary_size), self._temporary_size, self._persistent_size)

    def _label(self) -> str:
        return f"{self._operator.name} '{self.Name}'" if self.Name else self._operator.name

    def _tensor_slot(self, binding: DML_BINDING_DESC, tensor: DML_BUFFER_TENSOR_DESC, field: str, where: str) -> Slot:
        return one_buffer(
            self._device,
            binding,
            f"{where}: {self._label()}: tensor '{field}'",
            (tensor.TotalTensorSizeInBytes, "TotalTensorSizeInBytes"),
            max(DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT, tensor.GuaranteedBaseOffsetAlignment),
        )

    def _bind_inputs(self, bindings: tuple[DML_BINDING_DESC, ...], where: str) -> tuple[Slot | None, ...]:
        exactly(bindings, 1, f"{where}: {self._label()}", "input")
        if not self._owned:
            return (self._tensor_slot(bindings[0], self._operator.input, "InputTensor", where),)
        if bindings[0].Type == DML_BINDING_TYPE_NONE:
            check_kind(bindings[0], (DML_BINDING_TYPE_NONE,), f"{where}: {self._label()}: tensor 'InputTensor'")
        elif not is_nothing(bindings[0]):
            raise invalid_argument(
                f"{where}: {self._label()}: tensor 'InputTensor' has Flags DML_TENSOR_FLAG_OWNED_BY_DML while its "
                f"binding has Type {bindings[0].Type!r}; bind it to the operator's initializer, and "
                "DML_BINDING_TYPE_NONE here"
            )
        return (None,)

    def _bind_outputs(self, bindings: tuple[DML_BINDING_DESC, ...], where: str) -> tuple[Slot | None, ...]:
        exactly(bindings, 1, f"{where}: {self._label()}", "output")
        return (self._tensor_slot(bindings[0], self._operator.output, "OutputTensor", where),)

    def _prepare(self, input: Slot | None, output: Slot, temporary: Slot | None, persistent: Slot | None) -> Bound:
        """Return what executes the operator over the bound ranges."""
        source = input or persistent
        assert source is not None
        itemsize = self._operator.element.itemsize
        return self._device._runtime.bind(
            operator_problem(
                self._operator, input_offset=source.offset // itemsize, output_offset=output.offset // itemsize
            ),
            source.buffer,
            output.buffer,
            chunks=self._chunks,
            scratch=None if temporary is None else (temporary.buffer, temporary.offset),
        )

    @property
    def _difference_in_place(self) -> str | None:
        return difference_in_place(self._operator.input, self._operator.output)

    def _note_initialization(self, persistent: Slot | None) -> None:
        self._initialized = True
        self._filled = [place for place in self._filled if place[0]() is not None]
        if persistent is not None:
            self._filled.append((weakref.ref(persistent.buffer), persistent.offset))

    def _check_initialization(self, persistent: Slot | None, where: str) -> None:
        """Raise what the debug layer finds wrong: no initialization, or another persistent resource."""
        if not self._initialized:
            raise invalid_call(f"{where}: {self._label()} is not initialized; record its IDMLOperatorInitializer first")
        if persistent is not None and not any(
            buffer() is persistent.buffer and offset == persistent.offset for buffer, offset in self._filled
        ):
            raise invalid_argument(
                f"{where}: {self._label()}: {persistent.name} ({persistent.range}) is not one that an "
                "IDMLOperatorInitializer was recorded for; bind that one, or initialize this"
            )


def _round_up(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment
