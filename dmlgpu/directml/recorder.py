"""IDMLBindingTable, which ranges of which buffers a dispatchable works on; IDMLCommandRecorder, which records it."""

# ruff: noqa: N802 (DirectML's names)
from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

from ..errors import ArrayTypeError, DeviceMemoryError, DeviceReleasedError, DirectMLError, said
from .bindings import Slots, check_live
from .constants import DXGI_ERROR_DEVICE_REMOVED
from .fields import a_kind_of, invalid_argument, invalid_call, out_of_memory, to_counted_structs, with_article
from .operators import IDMLCompiledOperator, IDMLDeviceChild, IDMLDispatchable, IDMLOperatorInitializer
from .structs import DML_BINDING_DESC, DML_BINDING_TABLE_DESC

if TYPE_CHECKING:
    from ..runtime.executor import Bound
    from .idml_device import IDMLDevice

__all__ = ["IDMLBindingTable", "IDMLCommandRecorder"]


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
        self._slots = Slots()
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
        self._slots.inputs = dispatchable._bind_inputs(descs, where) if descs else None
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
            As `BindInputs`.
        """
        where = "IDMLBindingTable::BindOutputs"
        descs, dispatchable = self._given(bindingCount, bindings, where)
        self._slots.outputs = dispatchable._bind_outputs(descs, where) if descs else None
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
            As `BindInputs`.
        """
        where = "IDMLBindingTable::BindTemporaryResource"
        dispatchable = self._rebindable(where)
        self._slots.temporary = dispatchable._bind_temporary(_optional(binding, where), where)
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
            As `BindInputs`.
        """
        where = "IDMLBindingTable::BindPersistentResource"
        dispatchable = self._rebindable(where)
        self._slots.persistent = dispatchable._bind_persistent(_optional(binding, where), where)
        self._bound = None

    def _set(self, desc: DML_BINDING_TABLE_DESC | None, where: str) -> None:
        dispatchable = None if desc is None else _check_desc(self._device, desc, where)
        self._dispatchable = dispatchable
        self._version = dispatchable._version if dispatchable else 0
        self._slots = Slots()
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
        if self._is_recorded and dispatchable._is_volatile:
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
        return to_counted_structs(count, bindings, DML_BINDING_DESC, f"{where}: binding"), dispatchable

    def _prepare(self, where: str) -> tuple[Bound, ...]:
        """Check everything that a dispatch needs, and return what to record. Allocates only after a change."""
        dispatchable = self._ready(where)
        for slot in self._slots:
            check_live(self._device, slot.buffer, f"{where}: {dispatchable._label()}: {slot.name}")
        dispatchable._check_slots(self._slots, where)
        if self._bound is None:
            self._bound = dispatchable._prepare(self._slots)
        return self._bound

    def _recorded(self) -> None:
        self._is_recorded = True
        if self._dispatchable is not None:
            self._dispatchable._recorded(self._slots)


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


class IDMLCommandRecorder(IDMLDeviceChild):
    """Records dispatches. Made by IDMLDevice::CreateCommandRecorder; it keeps nothing, so one is enough."""

    def RecordDispatch(self, commandList: Any, dispatchable: IDMLDispatchable, bindings: IDMLBindingTable) -> None:
        """Record an initialization or an execution; nothing is submitted.

        The dispatches are a compute pass of their own in the encoder, and wgpu orders them with what is recorded
        before and after. Bindings are those of this moment: the table can be changed at once, for what is recorded
        next, unless the operator was compiled with DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE: that asks for changes of
        what is recorded already, which WebGPU does not have, so that the table needs a Reset first. The same table can
        be recorded again, into any encoder, and takes no memory then. Until the caller's submission the buffers must
        stay alive and unmapped, or wgpu ends the process in ``queue.submit``.

        Parameters
        ----------
        commandList : wgpu.GPUCommandEncoder
            The caller's encoder, of the same wgpu device, with no pass open.
        dispatchable : IDMLCompiledOperator or IDMLOperatorInitializer
            What to record.
        bindings : IDMLBindingTable
            A table made for `dispatchable`.

        Raises
        ------
        DirectMLError
            With E_INVALIDARG if bindings are missing, break a rule or have since been destroyed or mapped, or if the
            table is another dispatchable's; with DXGI_ERROR_INVALID_CALL if the encoder is finished or has an open
            pass, the dispatchable was reset, or, on a debug device, it was never initialized; with
            DXGI_ERROR_DEVICE_REMOVED if the device is lost. Nothing is recorded then, but an encoder with an open pass
            is of no further use: wgpu refuses its finish().
        ArrayTypeError
            If an argument has another type.
        """
        import wgpu

        where = "IDMLCommandRecorder::RecordDispatch"
        self._device._check(where)
        self._check_arguments(commandList, dispatchable, bindings, where)
        with self._device._runtime.section:
            try:
                prepared = bindings._prepare(where)
            except DeviceMemoryError as error:
                raise out_of_memory(
                    f"{where}: the device has no room for the uniforms of the dispatch: {said(error)}"
                ) from error
            except DeviceReleasedError as error:
                raise DirectMLError(DXGI_ERROR_DEVICE_REMOVED, f"{where}: {error}") from error
            try:
                if not prepared:  # an empty pass shows whether the encoder takes commands
                    commandList.begin_compute_pass().end()
                for bound in prepared:
                    bound.record(commandList)
            except wgpu.GPUError as error:
                raise invalid_call(
                    f"{where}: commandList takes no commands; it must not be finished or inside a pass: {said(error)}"
                ) from error
            bindings._recorded()

    def _check_arguments(
        self, commandList: Any, dispatchable: IDMLDispatchable, bindings: IDMLBindingTable, where: str
    ) -> None:
        """Check that the arguments are what they should be, of this device, and belong together."""
        import wgpu

        from ..runtime.wgpu_private import owner_of

        for value, kind, name in (
            (commandList, wgpu.GPUCommandEncoder, "commandList"),
            (dispatchable, IDMLDispatchable, "dispatchable"),
            (bindings, IDMLBindingTable, "bindings"),
        ):
            if value is None:
                raise invalid_argument(f"{where}: {name} is null; give it {with_article(kind.__name__)}")
            if not isinstance(value, kind):
                raise ArrayTypeError(f"{where}: {name} is {a_kind_of(value)}; give it {with_article(kind.__name__)}")
        if owner_of(commandList) not in (None, self._device._runtime.gpu_device):
            raise invalid_argument(f"{where}: commandList belongs to another wgpu device; use an encoder of this one")
        for child, name in ((dispatchable, "dispatchable"), (bindings, "bindings")):
            if child._device is not self._device:
                raise invalid_argument(f"{where}: {name} was made by another IDMLDevice; make it with this one")
        if bindings._dispatchable is not dispatchable:
            other = "no dispatchable" if bindings._dispatchable is None else bindings._dispatchable._label()
            if other == dispatchable._label():
                other = f"another {other}"
            raise invalid_argument(
                f"{where}: dispatchable is {dispatchable._label()} while bindings was made for {other}; call "
                "IDMLBindingTable::Reset with it"
            )
