"""IDMLOperator, IDMLCompiledOperator and IDMLOperatorInitializer, and what DirectML's interfaces share."""

# ruff: noqa: N802 (DirectML's names)
from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, SupportsIndex

from ..dtypes import by_name
from ..errors import ArgumentError, ArrayTypeError, DirectMLError
from ..layout import Layout, ceil_div
from ..planning.plan import any_placement, plans_of_any_placement
from ..planning.problem import convert_problem
from .bindings import (
    Need,
    Slot,
    Slots,
    array_of_one,
    buffer_slot,
    check_execution,
    check_initialization,
    check_kind,
    exactly,
    is_nothing,
    one_buffer,
    optional_buffer,
)
from .constants import (
    DML_BINDING_TYPE_NONE,
    DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE,
    DML_EXECUTION_FLAGS,
    DML_PERSISTENT_BUFFER_ALIGNMENT,
    DML_TEMPORARY_BUFFER_ALIGNMENT,
    DML_TENSOR_FLAG_OWNED_BY_DML,
)
from .fields import a_kind_of, invalid_argument, invalid_call, out_of_memory, to_counted_structs
from .rules import ValidOperator
from .structs import DML_BINDING_DESC, DML_BINDING_PROPERTIES, least_size

if TYPE_CHECKING:
    from ..runtime.executor import Bound
    from .idml_device import IDMLDevice

__all__ = [
    "IDMLCompiledOperator",
    "IDMLDeviceChild",
    "IDMLDispatchable",
    "IDMLObject",
    "IDMLOperator",
    "IDMLOperatorInitializer",
    "IDMLPageable",
]

_WORDS = 2**30
"""The most 32-bit words that one problem copies: a problem has at most 2^32-1 elements, and a buffer may hold more."""


class IDMLObject:
    """The base class of all DirectML objects.

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
    """The base class of objects that a device made."""

    def __init__(self, device: IDMLDevice) -> None:
        self._device = device

    def GetDevice(self) -> IDMLDevice:
        """Return the device that made the object."""
        return self._device


class IDMLPageable(IDMLDeviceChild):
    """An object with memory on the device. wgpu manages residency, so there are no Evict and MakeResident."""


class IDMLDispatchable(IDMLPageable):
    """An object that a command recorder can record: a compiled operator or an operator initializer."""

    def GetBindingProperties(self) -> DML_BINDING_PROPERTIES:
        """Return what a binding table of the dispatchable must hold."""
        raise NotImplementedError

    # What the binding table asks. `_version` changes when earlier bindings no longer fit; `_is_volatile` says whether
    # the caller may count on binding late.
    _version = 0
    _is_volatile = False

    def _bind_inputs(self, bindings: tuple[DML_BINDING_DESC, ...], where: str) -> tuple[Slot | None, ...]:
        raise NotImplementedError

    def _bind_outputs(self, bindings: tuple[DML_BINDING_DESC, ...], where: str) -> tuple[Slot | None, ...]:
        raise NotImplementedError

    def _bind_temporary(self, binding: DML_BINDING_DESC | None, where: str) -> Slot | None:
        size = self.GetBindingProperties().TemporaryResourceSize
        need = Need(size, "TemporaryResourceSize", DML_TEMPORARY_BUFFER_ALIGNMENT)
        return optional_buffer(self._device, binding, need, f"{where}: {self._label()}: the temporary resource")

    def _bind_persistent(self, binding: DML_BINDING_DESC | None, where: str) -> Slot | None:
        size = self.GetBindingProperties().PersistentResourceSize
        need = Need(size, "PersistentResourceSize", DML_PERSISTENT_BUFFER_ALIGNMENT)
        return optional_buffer(self._device, binding, need, f"{where}: {self._label()}: the persistent resource")

    def _check_slots(self, slots: Slots, where: str) -> None:
        """Check that everything is bound that a dispatch needs, and the rules between bindings."""
        raise NotImplementedError

    def _prepare(self, slots: Slots) -> tuple[Bound, ...]:
        """Return what to record for the bound ranges, which are checked."""
        raise NotImplementedError

    def _recorded(self, slots: Slots) -> None:
        """Note what the debug layer has to know of a dispatch that is recorded."""

    def _unbound(self, where: str, what: str, method: str) -> DirectMLError:
        late = ", as WebGPU cannot bind late (DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE)" if self._is_volatile else ""
        return invalid_argument(f"{where} has no {what} bound; call IDMLBindingTable::{method} first{late}")

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
        With E_OUTOFMEMORY, if a tensor, or a resource that the operator needs, is larger than the device's largest
        buffer.
    """

    def __init__(
        self, device: IDMLDevice, operator: ValidOperator, flags: DML_EXECUTION_FLAGS, name: str | None
    ) -> None:
        super().__init__(device)
        self.Name = name
        self._operator = operator
        self._is_volatile = bool(flags & DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE)
        source, target = operator.input, operator.output
        self._owned = source.Flags == DML_TENSOR_FLAG_OWNED_BY_DML
        self._persistent_size = 0
        if self._owned:
            size = least_size(operator.element.itemsize, source.Sizes, source.Strides)
            self._persistent_size = ceil_div(size, DML_PERSISTENT_BUFFER_ALIGNMENT) * DML_PERSISTENT_BUFFER_ALIGNMENT
        runtime = device._runtime
        limit = int(runtime.gpu_device.limits["max-buffer-size"])
        for tensor, field in ((source, "InputTensor"), (target, "OutputTensor")):
            if tensor.TotalTensorSizeInBytes > limit:
                raise out_of_memory(
                    f"IDMLDevice::CompileOperator: {self._label()}: tensor '{field}' has TotalTensorSizeInBytes "
                    f"{tensor.TotalTensorSizeInBytes} while the largest buffer of the device has {limit} bytes "
                    "(max-buffer-size); work on it in parts, or choose another device"
                )
        problem = operator.problem()
        try:
            self._chunks = any_placement(problem, runtime.limits)
            plans = plans_of_any_placement(problem, runtime.limits)
        except ArgumentError as error:
            raise out_of_memory(f"IDMLDevice::CompileOperator: {self._label()}: {error}") from error
        scratch = max(plan.scratch_bytes for plan in plans)
        self._temporary_size = ceil_div(scratch, DML_TEMPORARY_BUFFER_ALIGNMENT) * DML_TEMPORARY_BUFFER_ALIGNMENT
        for resource, size in (("persistent", self._persistent_size), ("temporary", self._temporary_size)):
            if size > limit:
                raise out_of_memory(
                    f"IDMLDevice::CompileOperator: {self._label()}: its {resource} resource has {size} bytes while the "
                    f"largest buffer of the device has {limit} bytes (max-buffer-size); work on it in parts, or choose "
                    "another device"
                )
        for plan in plans:
            runtime.compile(plan)
        # What the debug layer knows: whether an initialization was recorded, and which persistent resources it fills.
        self._initialized = False
        self._filled: list[tuple[weakref.ref[Any], int]] = []

    def GetBindingProperties(self) -> DML_BINDING_PROPERTIES:
        """Return what a binding table for executing the operator must hold."""
        # The input, or the persistent resource in its place; the output; the temporary resource.
        return DML_BINDING_PROPERTIES(2 + bool(self._temporary_size), self._temporary_size, self._persistent_size)

    def _label(self) -> str:
        return f"{self._operator.name} '{self.Name}'" if self.Name else self._operator.name

    def _bind_inputs(self, bindings: tuple[DML_BINDING_DESC, ...], where: str) -> tuple[Slot | None, ...]:
        exactly(bindings, 1, f"{where}: {self._label()}", "input")
        name = f"{where}: {self._label()}: tensor 'InputTensor'"
        if not self._owned:
            return (one_buffer(self._device, bindings[0], Need.of_tensor(self._operator.input), name),)
        if bindings[0].Type == DML_BINDING_TYPE_NONE:
            check_kind(bindings[0], (DML_BINDING_TYPE_NONE,), name)
        elif not is_nothing(bindings[0]):
            raise invalid_argument(
                f"{name} has Flags DML_TENSOR_FLAG_OWNED_BY_DML while its binding has Type {bindings[0].Type!r}; bind "
                "it to the operator's initializer, and DML_BINDING_TYPE_NONE here"
            )
        return (None,)

    def _bind_outputs(self, bindings: tuple[DML_BINDING_DESC, ...], where: str) -> tuple[Slot | None, ...]:
        exactly(bindings, 1, f"{where}: {self._label()}", "output")
        name = f"{where}: {self._label()}: tensor 'OutputTensor'"
        return (one_buffer(self._device, bindings[0], Need.of_tensor(self._operator.output), name),)

    def _check_slots(self, slots: Slots, where: str) -> None:
        label = f"{where}: {self._label()}"
        if slots.inputs is None and not self._owned:
            raise self._unbound(label, "inputs", "BindInputs")
        if slots.outputs is None:
            raise self._unbound(label, "outputs", "BindOutputs")
        if slots.temporary is None and self._temporary_size:
            raise self._unbound(label, "temporary resource", "BindTemporaryResource")
        if slots.persistent is None and self._persistent_size:
            raise self._unbound(label, "persistent resource", "BindPersistentResource")
        if self._device._debug:
            self._check_initialization(slots.persistent if self._owned else None, where)
        check_execution(slots, self._operator.difference_in_place, label)

    def _prepare(self, slots: Slots) -> tuple[Bound, ...]:
        source = (slots.inputs[0] if slots.inputs else None) or slots.persistent
        target = slots.outputs[0] if slots.outputs else None
        scratch = slots.temporary if self._temporary_size else None
        assert source is not None
        assert target is not None
        itemsize = self._operator.element.itemsize
        problem = self._operator.problem(
            input_offset=source.offset // itemsize, output_offset=target.offset // itemsize
        )
        bound = self._device._runtime.bind(
            problem,
            source.buffer,
            target.buffer,
            chunks=self._chunks,
            scratch=None if scratch is None else (scratch.buffer, scratch.offset),
        )
        return (bound,)

    def _note_initialization(self, persistent: Slot | None) -> None:
        self._initialized = True
        if not self._device._debug:
            return  # nobody asks
        self._filled = [place for place in self._filled if place[0]() is not None]
        if persistent is not None and not self._is_filled(persistent):
            self._filled.append((weakref.ref(persistent.buffer), persistent.offset))

    def _is_filled(self, persistent: Slot) -> bool:
        """Whether an initialization of this place was recorded."""
        return any(buffer() is persistent.buffer and offset == persistent.offset for buffer, offset in self._filled)

    def _check_initialization(self, persistent: Slot | None, where: str) -> None:
        """Raise what the debug layer finds wrong: no initialization, or another persistent resource."""
        if not self._initialized:
            raise invalid_call(f"{where}: {self._label()} is not initialized; record its IDMLOperatorInitializer first")
        if persistent is not None and not self._is_filled(persistent):
            raise invalid_argument(
                f"{where}: {self._label()}: {persistent.name} ({persistent.range}) is not one that an "
                "IDMLOperatorInitializer was recorded for; bind that one, or initialize this"
            )


class IDMLOperatorInitializer(IDMLDispatchable):
    """Initializes compiled operators. Made by IDMLDevice::CreateOperatorInitializer."""

    def __init__(self, device: IDMLDevice, operators: tuple[IDMLCompiledOperator, ...]) -> None:
        super().__init__(device)
        self._operators = operators

    def Reset(
        self, operatorCount: SupportsIndex, operators: Iterable[IDMLCompiledOperator] | IDMLCompiledOperator | None
    ) -> None:
        """Let the initializer initialize other operators. Binding tables made for it need a Reset too.

        Parameters
        ----------
        operatorCount : int
            The number of operators.
        operators : sequence of IDMLCompiledOperator
            The operators.

        Raises
        ------
        DirectMLError
            With E_INVALIDARG, if the count is wrong or an operator is another device's.
        """
        self._device._check("IDMLOperatorInitializer::Reset")
        self._operators = check_operators(self._device, operatorCount, operators, "IDMLOperatorInitializer::Reset")
        self._version += 1

    def GetBindingProperties(self) -> DML_BINDING_PROPERTIES:
        """Return what a binding table for initializing the operators must hold."""
        return DML_BINDING_PROPERTIES(2 * sum(one._owned for one in self._operators), 0, 0)

    def _label(self) -> str:
        return f"IDMLOperatorInitializer '{self.Name}'" if self.Name else "IDMLOperatorInitializer"

    def _named(self, where: str) -> Iterator[tuple[IDMLCompiledOperator, str]]:
        for i, one in enumerate(self._operators):
            yield one, f"{where}: {self._label()}: operator {i}, {one._label()}"

    def _bind_inputs(self, bindings: tuple[DML_BINDING_DESC, ...], where: str) -> tuple[Slot | None, ...]:
        exactly(bindings, len(self._operators), f"{where}: {self._label()}", "operator")
        slots: list[Slot | None] = []
        for binding, (operator, name) in zip(bindings, self._named(where), strict=True):
            bound = array_of_one(binding, name)
            tensor_name = f"{name}, tensor 'InputTensor'"
            slot = None
            if operator._owned:
                if bound is None:
                    raise invalid_argument(
                        f"{tensor_name} has Flags DML_TENSOR_FLAG_OWNED_BY_DML while nothing is bound; bind it in a "
                        "DML_BUFFER_ARRAY_BINDING"
                    )
                slot = buffer_slot(self._device, bound, Need.of_tensor(operator._operator.input), tensor_name)
            elif bound is not None and bound.Buffer is not None:
                raise invalid_argument(
                    f"{tensor_name} has Flags DML_TENSOR_FLAG_NONE while a buffer is bound; only a tensor with "
                    "DML_TENSOR_FLAG_OWNED_BY_DML is bound to the initializer"
                )
            slots.append(slot)
        return tuple(slots)

    def _bind_outputs(self, bindings: tuple[DML_BINDING_DESC, ...], where: str) -> tuple[Slot | None, ...]:
        exactly(bindings, len(self._operators), f"{where}: {self._label()}", "operator")
        slots: list[Slot | None] = []
        for binding, (operator, label) in zip(bindings, self._named(where), strict=True):
            name = f"{label}, its persistent resource"
            if operator._persistent_size:
                need = Need(operator._persistent_size, "PersistentResourceSize", DML_PERSISTENT_BUFFER_ALIGNMENT)
                slots.append(one_buffer(self._device, binding, need, name))
            else:
                if not is_nothing(binding):
                    check_kind(binding, (DML_BINDING_TYPE_NONE,), f"{name} (PersistentResourceSize 0)")
                slots.append(None)
        return tuple(slots)

    def _check_slots(self, slots: Slots, where: str) -> None:
        where = f"{where}: {self._label()}"
        if self.GetBindingProperties().RequiredDescriptorCount:
            if slots.inputs is None:
                raise self._unbound(where, "inputs", "BindInputs")
            if slots.outputs is None:
                raise self._unbound(where, "outputs", "BindOutputs")
        check_initialization(slots, where)

    def _prepare(self, slots: Slots) -> tuple[Bound, ...]:
        """Return what copies each bound input to its persistent resource."""
        runtime, word = self._device._runtime, by_name("uint32")
        nothing = (None,) * len(self._operators)
        bound = []
        for operator, source, target in zip(
            self._operators, slots.inputs or nothing, slots.outputs or nothing, strict=True
        ):
            if source is None or target is None:
                continue
            tensor = operator._operator.input
            words = least_size(operator._operator.element.itemsize, tensor.Sizes, tensor.Strides) // 4
            for first in range(0, words, _WORDS):
                sizes = (min(_WORDS, words - first),)
                start = [slot.offset // 4 + first for slot in (source, target)]
                problem = convert_problem(word, word, *(Layout.packed(sizes, offset) for offset in start))
                chunks = any_placement(problem, runtime.limits)
                bound.append(runtime.bind(problem, source.buffer, target.buffer, chunks=chunks))
        return tuple(bound)

    def _recorded(self, slots: Slots) -> None:
        for operator, target in zip(self._operators, slots.outputs or (None,) * len(self._operators), strict=True):
            operator._note_initialization(target)


def check_operators(
    device: IDMLDevice, count: SupportsIndex, operators: Any, where: str
) -> tuple[IDMLCompiledOperator, ...]:
    """Return the operators that an initializer is given, checked."""
    found = to_counted_structs(count, operators, IDMLCompiledOperator, f"{where}: operator")
    for i, one in enumerate(found):
        if one._device is not device:
            raise invalid_argument(f"{where}: operators[{i}] was made by another IDMLDevice; make it with this one")
    return found
