"""IDMLBindingTable: which ranges of which buffers a dispatchable works on."""

# ruff: noqa: N802 (DirectML's names)
from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, SupportsIndex, TypeAlias

from ..errors import ArrayTypeError
from .binding_rules import Slot, check_live
from .binding_structs import DML_BINDING_DESC, DML_BINDING_TABLE_DESC, to_structs
from .constants import DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE
from .fields import a_kind_of, to_uint
from .hazards import check_execution, check_initialization
from .hresults import invalid_argument, invalid_call
from .initializer import IDMLOperatorInitializer
from .objects import IDMLCompiledOperator, IDMLDeviceChild, IDMLDispatchable

if TYPE_CHECKING:
    from ..runtime.executor import Bound
    from .device import IDMLDevice

__all__ = ["IDMLBindingTable"]

Bindings: TypeAlias = Iterable[DML_BINDING_DESC] | DML_BINDING_DESC | None


class IDMLBindingTable(IDMLDeviceChild):
    """The bindings of a dispatchable. Made by IDMLDevice::CreateBindingTable.

    A binding that breaks a rule raises an error and leaves the table as it was. Rules between bindings are checked by
    IDMLCommandRecorder::RecordDispatch, so that they can be changed one by one.
    """

    def __init__(self, device: IDMLDevice, desc: DML_BINDING_TABLE_DESC | None) -> None:
        super().__init__(device)
        self._dispatchable: IDMLDispatchable | None = None
        self._version = 0
        self._inputs: tuple[Slot | None, ...] | None = None
        self._outputs: tuple[Slot | None, ...] | None = None
        self._temporary: Slot | None = None
        self._persistent: Slot | None = None
        self._bound: tuple[Bound, ...] | None = None
        self._is_recorded = False
        self._set(desc, "IDMLDevice::CreateBindingTable")

    def Reset(self, desc: DML_BINDING_TABLE_DESC | None = None) -> None:
        """Unbind everything, and let the table be another dispatchable's.

        What was recorded with the table is not affected.

        Parameters
        ----------
        desc : DML_BINDING_TABLE_DESC, optional
            The dispatchable; without it, the table can't be used until another Reset.

        Raises
        ------
        DirectMLError
            With E_INVALIDARG, if the dispatchable is null or another device's, or SizeInDescriptors is too small.
        """
        self._device._check("IDMLBindingTable::Reset")
        self._set(desc, "IDMLBindingTable::Reset")

    def BindInputs(self, bindingCount: SupportsIndex, bindings: Bindings) -> None:
        """Bind the inputs; a count of 0 with None unbinds them.

        Parameters
        ----------
        bindingCount : int
            The number of bindings: a compiled operator has one for each input, an initializer one for each operator.
        bindings : sequence of DML_BINDING_DESC
            For a compiled operator of type BUFFER, or NONE for an input that DirectML owns. For an initializer of type
            BUFFER_ARRAY, or NONE for an operator without inputs that DirectML owns.

        Raises
        ------
        DirectMLError
            With E_INVALIDARG, if a rule is broken; the message names it. With DXGI_ERROR_INVALID_CALL, if the table was
            recorded for an operator with DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE and not reset since.
        """
        where = "IDMLBindingTable::BindInputs"
        descs, dispatchable = self._given(bindingCount, bindings, where)
        self._inputs = dispatchable._bind_inputs(descs, where) if descs else None
        self._bound = None

    def BindOutputs(self, bindingCount: SupportsIndex, bindings: Bindings) -> None:
        """Bind the outputs; a count of 0 with None unbinds them.

        Parameters
        ----------
        bindingCount : int
            The number of bindings: a compiled operator has one for each output, an initializer one for each operator.
        bindings : sequence of DML_BINDING_DESC
            Of type BUFFER. For an initializer they are the operators' persistent resources, and NONE for an operator
            without.

        Raises
        ------
        DirectMLError
            With E_INVALIDARG, if a rule is broken; the message names it. With DXGI_ERROR_INVALID_CALL, if the table was
            recorded for an operator with DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE and not reset since.
        """
        where = "IDMLBindingTable::BindOutputs"
        descs, dispatchable = self._given(bindingCount, bindings, where)
        self._outputs = dispatchable._bind_outputs(descs, where) if descs else None
        self._bound = None

    def BindTemporaryResource(self, binding: DML_BINDING_DESC | None) -> None:
        """Bind scratch memory of TemporaryResourceSize bytes, whose contents do not matter before and after.

        Parameters
        ----------
        binding : DML_BINDING_DESC or None
            Of type BUFFER; None or NONE where TemporaryResourceSize is 0.

        Raises
        ------
        DirectMLError
            With E_INVALIDARG, if a rule is broken; the message names it. With DXGI_ERROR_INVALID_CALL, if the table was
            recorded for an operator with DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE and not reset since.
        """
        where = "IDMLBindingTable::BindTemporaryResource"
        dispatchable = self._rebindable(where)
        self._temporary = dispatchable._bind_temporary(_optional(binding, where), where)
        self._bound = None

    def BindPersistentResource(self, binding: DML_BINDING_DESC | None) -> None:
        """Bind the memory that the operator's initializer has filled.

        Parameters
        ----------
        binding : DML_BINDING_DESC or None
            Of type BUFFER; None or NONE where PersistentResourceSize is 0.

        Raises
        ------
        DirectMLError
            With E_INVALIDARG, if a rule is broken; the message names it. With DXGI_ERROR_INVALID_CALL, if the table was
            recorded for an operator with DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE and not reset since.
        """
        where = "IDMLBindingTable::BindPersistentResource"
        dispatchable = self._rebindable(where)
        self._persistent = dispatchable._bind_persistent(_optional(binding, where), where)
        self._bound = None

    def _set(self, desc: DML_BINDING_TABLE_DESC | None, where: str) -> None:
        dispatchable = None if desc is None else _check_desc(self._device, desc, where)
        self._dispatchable = dispatchable
        self._version = dispatchable._version if dispatchable else 0
        self._inputs = self._outputs = None
        self._temporary = self._persistent = None
        self._bound = None
        self._is_recorded = False

    def _ready(self, where: str) -> IDMLDispatchable:
        """Return the dispatchable that the table is for."""
        self._device._check(where)
        if self._dispatchable is None:
            raise invalid_call(f"{where}: the table has no dispatchable; call IDMLBindingTable::Reset with one")
        if self._dispatchable._version != self._version:
            raise invalid_call(
                f"{where}: {self._dispatchable._label()} was reset after the table was made for it; call "
                "IDMLBindingTable::Reset"
            )
        return self._dispatchable

    def _rebindable(self, where: str) -> IDMLDispatchable:
        """Return the dispatchable, if a new binding cannot be meant for what is recorded already."""
        dispatchable = self._ready(where)
        if self._is_recorded and _is_volatile(dispatchable):
            raise invalid_call(
                f"{where}: {dispatchable._label()} was compiled with DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE and "
                "recorded with this table, while WebGPU freezes bindings in RecordDispatch, so that what is recorded "
                "would not see a new one; call IDMLBindingTable::Reset, bind and record again, or compile without the "
                "flag"
            )
        return dispatchable

    def _given(
        self, count: SupportsIndex, bindings: Bindings, where: str
    ) -> tuple[tuple[DML_BINDING_DESC, ...], IDMLDispatchable]:
        """Return the bindings of a call, as many as it says."""
        dispatchable = self._rebindable(where)
        descs = to_structs(bindings, DML_BINDING_DESC, f"{where}: bindings")
        number = to_uint(count, f"{where}: bindingCount")
        if number != len(descs):
            raise invalid_argument(
                f"{where}: bindingCount is {number} while bindings has {len(descs)}; they must agree"
            )
        return descs, dispatchable

    def _prepare(self, where: str) -> tuple[Bound, ...]:
        """Check everything that a dispatch needs, and return what to record. Allocates only after a change."""
        dispatchable = self._ready(where)
        for slot in (*(self._inputs or ()), *(self._outputs or ()), self._temporary, self._persistent):
            if slot is not None:
                check_live(self._device, slot.buffer, f"{where}: {dispatchable._label()}: {slot.name}")
        if isinstance(dispatchable, IDMLOperatorInitializer):
            return self._prepare_initialization(dispatchable, where)
        assert isinstance(dispatchable, IDMLCompiledOperator)
        return self._prepare_execution(dispatchable, where)

    def _prepare_initialization(self, initializer: IDMLOperatorInitializer, where: str) -> tuple[Bound, ...]:
        where = f"{where}: {initializer._label()}"
        nothing = (None,) * len(initializer._operators)
        if initializer.GetBindingProperties().RequiredDescriptorCount:
            if self._inputs is None:
                raise _unbound(initializer, where, "inputs", "BindInputs")
            if self._outputs is None:
                raise _unbound(initializer, where, "outputs", "BindOutputs")
        inputs, outputs = self._inputs or nothing, self._outputs or nothing
        check_initialization(where, *([slot for slot in slots if slot] for slots in (inputs, outputs)))
        if self._bound is None:
            self._bound = initializer._prepare(inputs, outputs)
        return self._bound

    def _prepare_execution(self, operator: IDMLCompiledOperator, where: str) -> tuple[Bound, ...]:
        properties = operator.GetBindingProperties()
        label = f"{where}: {operator._label()}"
        if self._inputs is None and not operator._owned:
            raise _unbound(operator, label, "inputs", "BindInputs")
        if self._outputs is None:
            raise _unbound(operator, label, "outputs", "BindOutputs")
        if self._temporary is None and properties.TemporaryResourceSize:
            raise _unbound(operator, label, "temporary resource", "BindTemporaryResource")
        if self._persistent is None and properties.PersistentResourceSize:
            raise _unbound(operator, label, "persistent resource", "BindPersistentResource")
        if self._device._debug:
            operator._check_initialization(self._persistent if operator._owned else None, where)
        source = self._inputs[0] if self._inputs else None
        (target,) = self._outputs
        assert target is not None
        check_execution(label, source, target, self._temporary, self._persistent, operator._difference_in_place)
        if self._bound is None:
            temporary = self._temporary if properties.TemporaryResourceSize else None
            self._bound = (operator._prepare(source, target, temporary, self._persistent),)
        return self._bound

    def _recorded(self) -> None:
        self._is_recorded = True
        if isinstance(self._dispatchable, IDMLOperatorInitializer):
            self._dispatchable._recorded(self._outputs or (None,) * len(self._dispatchable._operators))


def _is_volatile(dispatchable: IDMLDispatchable) -> bool:
    return isinstance(dispatchable, IDMLCompiledOperator) and bool(
        dispatchable._flags & DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE
    )


def _unbound(dispatchable: IDMLDispatchable, where: str, what: str, method: str) -> Exception:
    late = ""
    if _is_volatile(dispatchable):
        late = ", as WebGPU cannot bind late (DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE)"
    return invalid_argument(f"{where} has no {what} bound; call IDMLBindingTable::{method} first{late}")


def _optional(binding: DML_BINDING_DESC | None, where: str) -> DML_BINDING_DESC | None:
    if not isinstance(binding, DML_BINDING_DESC | None):
        raise ArrayTypeError(f"{where}: binding is {a_kind_of(binding)}; give it a DML_BINDING_DESC")
    return binding


def _check_desc(device: IDMLDevice, desc: DML_BINDING_TABLE_DESC, where: str) -> IDMLDispatchable:
    if not isinstance(desc, DML_BINDING_TABLE_DESC):
        raise ArrayTypeError(f"{where}: desc is {a_kind_of(desc)}; give it a DML_BINDING_TABLE_DESC")
    dispatchable = desc.Dispatchable
    if dispatchable is None:
        raise invalid_argument(f"{where}: Dispatchable is null; give it a compiled operator or an initializer")
    if not isinstance(dispatchable, IDMLCompiledOperator | IDMLOperatorInitializer):
        raise ArrayTypeError(
            f"{where}: Dispatchable is {a_kind_of(dispatchable)}; give it an IDMLCompiledOperator or an "
            "IDMLOperatorInitializer"
        )
    if dispatchable._device is not device:
        raise invalid_argument(f"{where}: Dispatchable was made by another IDMLDevice; make it with this one")
    needed = dispatchable.GetBindingProperties().RequiredDescriptorCount
    if desc.SizeInDescriptors is not None and desc.SizeInDescriptors < needed:
        raise invalid_argument(
            f"{where}: SizeInDescriptors is {desc.SizeInDescriptors} while {dispatchable._label()} has "
            f"RequiredDescriptorCount {needed}; the table must be at least as large"
        )
    return dispatchable
