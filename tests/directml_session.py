"""DirectML's life cycle over buffers full of noise, in which nothing but an output's elements may change."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import wgpu
from numpy.typing import NDArray

from dmlgpu import directml as dml
from dmlgpu import reference
from dmlgpu.directml.rules import layout
from dmlgpu.dtypes import by_dml_value

from .directml_descriptions import ROUND, SUM

STORAGE = wgpu.BufferUsage.STORAGE
USAGE = STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
MODES = ("half_even", "toward_zero", "half_away")
NONE = dml.DML_BINDING_DESC(dml.DML_BINDING_TYPE_NONE, None)


def buffer_binding(buffer: Any, offset: int = 0, size: int | None = None) -> dml.DML_BINDING_DESC:
    return dml.DML_BINDING_DESC(dml.DML_BINDING_TYPE_BUFFER, dml.DML_BUFFER_BINDING(buffer, offset, size))


def array_binding(*bindings: dml.DML_BUFFER_BINDING) -> dml.DML_BINDING_DESC:
    return dml.DML_BINDING_DESC(
        dml.DML_BINDING_TYPE_BUFFER_ARRAY, dml.DML_BUFFER_ARRAY_BINDING(len(bindings), bindings)
    )


def slips(message: str) -> list[str]:
    """Return what is wrong with the English of a message: articles, plurals, and None where a word belongs."""
    things = "inputs|outputs|operators|values|bytes|elements|dimensions|bindings|levels|are"
    patterns = (
        r"\ba (?:[AEIOaeio]\w+|ndarray)",
        r"\ban (?!ndarray)[^AEIOaeio]\w*",
        rf"(?<![-^\d])1 (?:{things})\b",
        r"(?<!is )\bNone\b",
    )
    return [found for pattern in patterns for found in re.findall(pattern, message)]


def expected_result(struct: Any, x: NDArray[Any]) -> NDArray[Any]:
    """Return what a valid struct asks for."""
    if isinstance(struct, ROUND):
        return reference.round(x, MODES[struct.RoundingMode])
    name, exclusive = (
        ("sum", struct.HasExclusiveSum) if isinstance(struct, SUM) else ("product", struct.HasExclusiveProduct)
    )
    return reference.cumulative(x, name, axis=struct.Axis, exclusive=exclusive, reverse=struct.AxisDirection == 1)


@dataclass(frozen=True)
class Place:
    """A binding: a buffer's number, and the range in it."""

    buffer: int
    offset: int
    size: int

    @property
    def end(self) -> int:
        return self.offset + self.size

    def meets(self, other: Place) -> bool:
        return self.buffer == other.buffer and self.offset < other.end and other.offset < self.end


class Session:
    """A DirectML device on a caller's wgpu device."""

    def __init__(self, gpu: Any, flags: int = dml.DML_CREATE_DEVICE_FLAG_DEBUG, **options: Any) -> None:
        self.gpu = gpu
        self.device = dml.DMLCreateDevice(gpu, flags, **options)
        self.recorder = self.device.CreateCommandRecorder()

    def buffer(self, data: NDArray[np.uint8], usage: int = USAGE) -> Any:
        buffer = self.gpu.create_buffer(size=data.nbytes, usage=usage)
        self.gpu.queue.write_buffer(buffer, 0, data)
        return buffer

    def read(self, buffer: Any) -> NDArray[np.uint8]:
        return np.frombuffer(self.gpu.queue.read_buffer(buffer), np.uint8)

    def compile(self, desc: Any, flags: int = 0) -> dml.IDMLCompiledOperator:
        return self.device.CompileOperator(self.device.CreateOperator(desc), flags)

    def table(self, dispatchable: dml.IDMLDispatchable) -> dml.IDMLBindingTable:
        return self.device.CreateBindingTable(dml.DML_BINDING_TABLE_DESC(dispatchable))

    def submit(self, *recordings: tuple[dml.IDMLDispatchable, dml.IDMLBindingTable]) -> None:
        """Record dispatches into one encoder and submit them."""
        encoder = self.gpu.create_command_encoder()
        for dispatchable, table in recordings:
            self.recorder.RecordDispatch(encoder, dispatchable, table)
        self.gpu.queue.submit([encoder.finish()])

    def recordings(
        self, compiled: dml.IDMLCompiledOperator, owned: bool, buffers: list[Any], places: dict[str, Place]
    ) -> list[tuple[dml.IDMLDispatchable, dml.IDMLBindingTable]]:
        """Bind an operator's initialization and execution. `places` has "source", the input of an initialization."""

        def binding(role: str) -> dml.DML_BINDING_DESC:
            if role not in places:
                return NONE
            place = places[role]
            return buffer_binding(buffers[place.buffer], place.offset, place.size)

        initializer = self.device.CreateOperatorInitializer(1, [compiled])
        first = self.table(initializer)
        if owned:
            source = places["source"]
            first.BindInputs(
                1, array_binding(dml.DML_BUFFER_BINDING(buffers[source.buffer], source.offset, source.size))
            )
            first.BindOutputs(1, binding("persistent"))
        second = self.table(compiled)
        second.BindInputs(1, NONE if owned else binding("input"))
        second.BindOutputs(1, binding("output"))
        second.BindTemporaryResource(binding("temporary"))
        second.BindPersistentResource(binding("persistent"))
        return [(initializer, first), (compiled, second)]

    def check(self, struct: Any, x: NDArray[Any], places: dict[str, Place], sizes: list[int], seed: int = 0) -> None:
        """Run an operator over buffers full of noise; assert the reference's bits, and that no other byte changed."""
        compiled = self.compile(struct)
        properties = compiled.GetBindingProperties()
        source, target = struct.InputTensor.Desc, struct.OutputTensor.Desc
        owned = bool(source.Flags)
        rng = np.random.default_rng(seed)
        images = [rng.integers(0, 256, size, np.uint8) for size in sizes]
        place = places["source" if owned else "input"]
        put(images[place.buffer], place.offset, source, x)
        buffers = [self.buffer(image) for image in images]
        self.submit(*self.recordings(compiled, owned, buffers, places))
        after = [self.read(buffer) for buffer in buffers]
        elements = get(after[places["output"].buffer], places["output"].offset, target)
        difference = reference.first_difference(elements, expected_result(struct, x))
        assert difference is None, f"{struct} with {places}: {difference}"
        put(images[places["output"].buffer], places["output"].offset, target, elements)
        for role, size in (
            ("temporary", properties.TemporaryResourceSize),
            ("persistent", properties.PersistentResourceSize),
        ):
            if role in places and size:
                begin = places[role].offset
                images[places[role].buffer][begin : begin + size] = 0
                after[places[role].buffer] = after[places[role].buffer].copy()
                after[places[role].buffer][begin : begin + size] = 0
        for i, (image, now) in enumerate(zip(images, after, strict=True)):
            changed = np.flatnonzero(image != now)
            assert changed.size == 0, f"{struct} with {places}: buffer {i} changed at {changed[:8]}"


def _view(memory: NDArray[np.uint8], offset: int, tensor: dml.DML_BUFFER_TENSOR_DESC) -> NDArray[Any]:
    element = by_dml_value(int(tensor.DataType))
    assert element is not None
    end = offset + layout(tensor).extent[1] * element.itemsize
    return layout(tensor).view(memory[offset:end].view(element.dtype))


def put(memory: NDArray[np.uint8], offset: int, tensor: dml.DML_BUFFER_TENSOR_DESC, x: NDArray[Any]) -> None:
    _view(memory, offset, tensor)[...] = x


def get(memory: NDArray[np.uint8], offset: int, tensor: dml.DML_BUFFER_TENSOR_DESC) -> NDArray[Any]:
    return _view(memory, offset, tensor).copy()


def packed_after(start: int, *sizes: int, alignment: int = 16) -> list[int]:
    """Return the offsets of ranges of these sizes, one behind the other, as near as alignment allows."""
    offsets = []
    for size in sizes:
        start = -(-start // alignment) * alignment
        offsets.append(start)
        start += size
    return offsets
