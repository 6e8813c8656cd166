"""DirectML's descriptions of bindings, field for field, with wgpu's buffers in the place of ID3D12Resource.

Immutable values, as the descriptions of tensors; the binding table checks the rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

from ..errors import ArrayTypeError
from .constants import DML_BINDING_TYPE
from .fields import UINT64_MAX, a_kind_of, assign, frozen, to_enumerator, to_items, to_uint, with_article

if TYPE_CHECKING:
    from .objects import IDMLDispatchable

__all__ = [
    "DML_BINDING_DESC",
    "DML_BINDING_PROPERTIES",
    "DML_BINDING_TABLE_DESC",
    "DML_BUFFER_ARRAY_BINDING",
    "DML_BUFFER_BINDING",
]


def _size_of(buffer: Any) -> int:
    """Return a buffer's size; 0 for anything else, which is refused where it is bound."""
    try:
        size = buffer.size
    except Exception:  # whatever a foreign type raises
        return 0
    return size if isinstance(size, int) else 0


@frozen
@dataclass(frozen=True, init=False)
class DML_BUFFER_BINDING:
    """A range of a buffer.

    Parameters
    ----------
    Buffer : wgpu.GPUBuffer or None
        The buffer, with the usage STORAGE; None is a null pointer, which says "no binding".
    Offset : int, optional
        The first byte of the range, 0 by default.
    SizeInBytes : int, optional
        The size of the range; by default all from `Offset` to the buffer's end.

    Raises
    ------
    ArrayTypeError
        If a value has a type that the field cannot take.
    DirectMLError
        With E_INVALIDARG, if a number is negative or too large for the field.
    """

    Buffer: Any
    Offset: int
    SizeInBytes: int

    def __init__(self, Buffer: Any, Offset: SupportsIndex = 0, SizeInBytes: SupportsIndex | None = None) -> None:
        here = "DML_BUFFER_BINDING"
        offset = to_uint(Offset, f"{here}: Offset", UINT64_MAX)
        if SizeInBytes is None:
            size = max(0, _size_of(Buffer) - offset)
        else:
            size = to_uint(SizeInBytes, f"{here}: SizeInBytes", UINT64_MAX)
        assign(self, Buffer=Buffer, Offset=offset, SizeInBytes=size)


@frozen
@dataclass(frozen=True, init=False)
class DML_BUFFER_ARRAY_BINDING:
    """The bindings of an operator's inputs, for its initializer.

    Parameters
    ----------
    BindingCount : int, optional
        The number of bindings; that of `Bindings` by default.
    Bindings : sequence of DML_BUFFER_BINDING
        One for each input; where nothing is bound, ``DML_BUFFER_BINDING(None, 0, 0)``.
    """

    BindingCount: int
    Bindings: tuple[DML_BUFFER_BINDING, ...]

    def __init__(
        self, BindingCount: SupportsIndex | None = None, Bindings: Iterable[DML_BUFFER_BINDING] | None = ()
    ) -> None:
        here = "DML_BUFFER_ARRAY_BINDING"
        bindings = to_structs(Bindings, DML_BUFFER_BINDING, f"{here}: Bindings")
        count = len(bindings) if BindingCount is None else to_uint(BindingCount, f"{here}: BindingCount")
        assign(self, BindingCount=count, Bindings=bindings)


BindingStruct: TypeAlias = DML_BUFFER_BINDING | DML_BUFFER_ARRAY_BINDING


@frozen
@dataclass(frozen=True, init=False)
class DML_BINDING_DESC:
    """A binding of some kind.

    Parameters
    ----------
    Type : DML_BINDING_TYPE
        Which kind.
    Desc : DML_BUFFER_BINDING, DML_BUFFER_ARRAY_BINDING or None
        The struct that belongs to `Type`; None for DML_BINDING_TYPE_NONE.
    """

    Type: DML_BINDING_TYPE | int
    Desc: BindingStruct | None

    def __init__(self, Type: DML_BINDING_TYPE | int, Desc: BindingStruct | None = None) -> None:
        if not isinstance(Desc, BindingStruct | None):
            raise ArrayTypeError(
                f"DML_BINDING_DESC: Desc is {a_kind_of(Desc)}; give it a DML_BUFFER_BINDING or a "
                "DML_BUFFER_ARRAY_BINDING"
            )
        assign(self, Type=to_enumerator(Type, DML_BINDING_TYPE, "DML_BINDING_DESC: Type"), Desc=Desc)


@frozen
@dataclass(frozen=True, init=False)
class DML_BINDING_TABLE_DESC:
    """What a binding table is for.

    Parameters
    ----------
    Dispatchable : IDMLDispatchable
        A compiled operator, or an operator initializer.
    CPUDescriptorHandle, GPUDescriptorHandle : object, optional
        wgpu has no descriptor heaps: kept, and not looked at.
    SizeInDescriptors : int, optional
        At least the RequiredDescriptorCount of `Dispatchable`, which is also the default.
    """

    Dispatchable: IDMLDispatchable | None
    CPUDescriptorHandle: object
    GPUDescriptorHandle: object
    SizeInDescriptors: int | None

    def __init__(
        self,
        Dispatchable: IDMLDispatchable | None,
        CPUDescriptorHandle: object = None,
        GPUDescriptorHandle: object = None,
        SizeInDescriptors: SupportsIndex | None = None,
    ) -> None:
        size = None
        if SizeInDescriptors is not None:
            size = to_uint(SizeInDescriptors, "DML_BINDING_TABLE_DESC: SizeInDescriptors")
        assign(
            self,
            Dispatchable=Dispatchable,
            CPUDescriptorHandle=CPUDescriptorHandle,
            GPUDescriptorHandle=GPUDescriptorHandle,
            SizeInDescriptors=size,
        )


@frozen
@dataclass(frozen=True)
class DML_BINDING_PROPERTIES:
    """What IDMLDispatchable::GetBindingProperties returns.

    Attributes
    ----------
    RequiredDescriptorCount : int
        The bindings that a table of the dispatchable holds.
    TemporaryResourceSize, PersistentResourceSize : int
        Bytes, multiples of 256; 0 where none is needed. They hold for every legal binding.
    """

    RequiredDescriptorCount: int
    TemporaryResourceSize: int
    PersistentResourceSize: int


def to_structs(values: Any, kind: type[Any], where: str) -> tuple[Any, ...]:
    """Return the value of an array of structs: None is none, and one struct stands for an array of one."""
    if values is None:
        return ()
    if isinstance(values, kind):
        return (values,)
    structs = to_items(values, where, kind.__name__)
    for i, value in enumerate(structs):
        if not isinstance(value, kind):
            raise ArrayTypeError(f"{where}[{i}] is {a_kind_of(value)}; give it {with_article(kind.__name__)}")
    return structs
