"""IDMLCommandRecorder: records dispatches into a caller's command encoder."""

# ruff: noqa: N802 (DirectML's names)
from __future__ import annotations

from typing import Any

from ..errors import ArrayTypeError, DeviceMemoryError, DeviceReleasedError, DirectMLError, said
from .binding_table import IDMLBindingTable
from .fields import a_kind_of, with_article
from .hresults import DXGI_ERROR_DEVICE_REMOVED, invalid_argument, invalid_call, out_of_memory
from .objects import IDMLDeviceChild, IDMLDispatchable

__all__ = ["IDMLCommandRecorder"]


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

        from ..runtime.wgpu_private import owner_of

        where = "IDMLCommandRecorder::RecordDispatch"
        self._device._check(where)
        for value, kind, name in (
            (commandList, wgpu.GPUCommandEncoder, "commandList"),
            (dispatchable, IDMLDispatchable, "dispatchable"),
            (bindings, IDMLBindingTable, "bindings"),
        ):
            if value is None:
                raise invalid_argument(f"{where}: {name} is null; give it {with_article(kind.__name__)}")
            if not isinstance(value, kind):
                raise ArrayTypeError(f"{where}: {name} is {a_kind_of(value)}; give it {with_article(kind.__name__)}")
        runtime = self._device._runtime
        if owner_of(commandList) not in (None, runtime.gpu_device):
            raise invalid_argument(f"{where}: commandList belongs to another wgpu device; use an encoder of this one")
        for child, name in ((dispatchable, "dispatchable"), (bindings, "bindings")):
            if child._device is not self._device:
                raise invalid_argument(f"{where}: {name} was made by another IDMLDevice; make it with this one")
        if bindings._dispatchable is not dispatchable:
            other = "no dispatchable" if bindings._dispatchable is None else bindings._dispatchable._label()
            raise invalid_argument(
                f"{where}: dispatchable is {dispatchable._label()} while bindings was made for {other}; call "
                "IDMLBindingTable::Reset with it"
            )
        with runtime.section:
            try:
                prepared = bindings._prepare(where)
            except DeviceMemoryError as error:
                raise out_of_memory(
                    f"{where}: the device has no room for the uniforms of the dispatch: {said(error)}"
                ) from error
            except DeviceReleasedError as error:
                raise DirectMLError(DXGI_ERROR_DEVICE_REMOVED, f"{where}: {error}") from error
            for bound in prepared:
                try:
                    bound.record(commandList)
                except wgpu.GPUError as error:
                    raise invalid_call(
                        f"{where}: commandList takes no commands; it must not be finished or inside a pass: "
                        f"{said(error)}"
                    ) from error
            bindings._recorded()
