"""IDMLOperatorInitializer: copies the inputs that DirectML owns into operators' persistent resources."""

# ruff: noqa: N802 (DirectML's names)
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, SupportsIndex

from ..dtypes import by_name
from ..layout import Layout
from ..planning.plan import any_placement
from ..planning.problem import convert_problem
from .binding_rules import Slot, array_of_buffers, buffer_slot, check_kind, exactly, is_nothing, one_buffer
from .binding_structs import DML_BINDING_DESC, DML_BINDING_PROPERTIES, to_structs
from .constants import (
    DML_BINDING_TYPE_NONE,
    DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT,
    DML_PERSISTENT_BUFFER_ALIGNMENT,
)
from .fields import to_uint
from .hresults import invalid_argument
from .objects import IDMLCompiledOperator, IDMLDispatchable
from .tensor_structs import least_size

if TYPE_CHECKING:
    from ..runtime.executor import Bound
    from .device import IDMLDevice

__all__ = ["IDMLOperatorInitializer"]

_WORDS = 2**30
"""32-bit words that one problem copies: a problem counts at most 2^32-1 elements, and a buffer may hold more."""


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
            array = array_of_buffers(binding, 1, name)
            tensor_name = f"{name}, tensor 'InputTensor'"
            slot = None
            if operator._owned:
                if array is None:
                    raise invalid_argument(
                        f"{tensor_name} has Flags DML_TENSOR_FLAG_OWNED_BY_DML while nothing is bound; bind it in a "
                        "DML_BUFFER_ARRAY_BINDING"
                    )
                tensor = operator._operator.input
                alignment = max(DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT, tensor.GuaranteedBaseOffsetAlignment)
                needed = (tensor.TotalTensorSizeInBytes, "TotalTensorSizeInBytes")
                slot = buffer_slot(self._device, array[0], tensor_name, needed, alignment)
            elif array is not None and array[0].Buffer is not None:
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
                needed = (operator._persistent_size, "PersistentResourceSize")
                slots.append(one_buffer(self._device, binding, name, needed, DML_PERSISTENT_BUFFER_ALIGNMENT))
            else:
                if not is_nothing(binding):
                    check_kind(binding, (DML_BINDING_TYPE_NONE,), f"{name} (PersistentResourceSize 0)")
                slots.append(None)
        return tuple(slots)

    def _prepare(self, inputs: tuple[Slot | None, ...], outputs: tuple[Slot | None, ...]) -> tuple[Bound, ...]:
        """Return what copies each bound input to its persistent resource."""
        runtime, word = self._device._runtime, by_name("uint32")
        bound = []
        for operator, source, target in zip(self._operators, inputs, outputs, strict=True):
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

    def _recorded(self, outputs: tuple[Slot | None, ...]) -> None:
        """Note for the debug layer which operators are initialized, and where."""
        for operator, target in zip(self._operators, outputs, strict=True):
            operator._note_initialization(target)


def check_operators(
    device: IDMLDevice, count: SupportsIndex, operators: Any, where: str
) -> tuple[IDMLCompiledOperator, ...]:
    """Return the operators that an initializer is given, checked."""
    found: tuple[IDMLCompiledOperator, ...] = to_structs(operators, IDMLCompiledOperator, f"{where}: operators")
    number = to_uint(count, f"{where}: operatorCount")
    if number != len(found):
        raise invalid_argument(f"{where}: operatorCount is {number} while operators has {len(found)}; they must agree")
    for i, one in enumerate(found):
        if one._device is not device:
            raise invalid_argument(f"{where}: operators[{i}] was made by another IDMLDevice; make it with this one")
    return found
