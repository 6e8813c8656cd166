"""Where tensors may lie, and that nothing but an output's elements is ever written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import wgpu
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import dmlgpu
from dmlgpu import directml as dml
from dmlgpu.directml.rules import validate_operator
from dmlgpu.dtypes import ELEMENT_TYPES, ElementType, by_name
from dmlgpu.errors import DirectMLError
from dmlgpu.planning.plan import any_placement, plan_problem
from dmlgpu.planning.problem import ScanProblem
from dmlgpu.planning.windows import Limits

from .directml_descriptions import PRODUCT, ROUND, SUM, arrays, structs, valid_structs
from .directml_session import STORAGE, USAGE, Place, Session, packed_after
from .harness import numbers

DRAWS = int(os.environ.get("DMLGPU_PROPERTY_DRAWS", "200"))
ODD_SIZES = [1, 3, 5, 17, 257, 4097, 9001]


@pytest.fixture(scope="module")
def session(device: dmlgpu.Device) -> Iterator[Session]:
    """Return a session with native float64, where that is to be had: in words its kernels take long to compile."""
    adapter = device.description.adapter
    features = [feature for feature in by_name("float64").features if feature in adapter.features]
    gpu = adapter.request_device_sync(required_features=features)
    yield Session(gpu, extensions=True)
    gpu.destroy()


def tensor(element: ElementType, sizes: Any, **fields: Any) -> dml.DML_BUFFER_TENSOR_DESC:
    return dml.DML_BUFFER_TENSOR_DESC(element.dml_value, Sizes=sizes, **fields)


def structs_of(element: ElementType, source: Any, target: Any, axis: int) -> list[Any]:
    both = [SUM(source, target, axis), PRODUCT(source, target, axis, 1, True)]
    return [*both, ROUND(source, target)] if element.kind == "float" else both


def room(compiled: dml.IDMLCompiledOperator) -> int:
    return compiled.GetBindingProperties().TemporaryResourceSize


@pytest.mark.combinations
@pytest.mark.parametrize("size", ODD_SIZES)
@pytest.mark.parametrize("element", ELEMENT_TYPES, ids=str)
def test_guard_bytes(session: Session, element: ElementType, size: int) -> None:
    """Two buffers, one buffer with tensors 16 bytes apart in either order, and in place; scratch among them."""
    t = tensor(element, (2, size))
    nbytes = t.TotalTensorSizeInBytes
    for i, struct in enumerate(structs_of(element, t, t, 1)):
        x = numbers((2, size), element.dtype, "product" if isinstance(struct, PRODUCT) else "sum")
        scratch = room(session.compile(struct))
        near = packed_after(48, nbytes, nbytes)
        begin = -(-(near[1] + nbytes) // 256) * 256
        end = begin + scratch + 64
        temporary = {"temporary": Place(0, begin, scratch)} if scratch else {}
        ranges = [Place(0, offset, nbytes) for offset in near]
        placements = [
            {"input": Place(0, 48, nbytes), "output": Place(1, 16, nbytes), **temporary},
            {"input": ranges[0], "output": ranges[1], **temporary},
            {"input": ranges[1], "output": ranges[0], **temporary},
            {"input": ranges[0], "output": ranges[0], **temporary},
        ]
        for places in placements[i:] if size > 5000 else placements:
            session.check(struct, x, places, [end, nbytes + 64])


@pytest.mark.parametrize("element", ELEMENT_TYPES, ids=str)
def test_guard_bytes_between_elements(session: Session, element: ElementType) -> None:
    """Gaps between elements, transposed, in one buffer and with room to spare."""
    source = tensor(element, (5, 33), Strides=(1, 7), TotalTensorSizeInBytes=4096)
    target = tensor(element, (5, 33), Strides=(67, 2), TotalTensorSizeInBytes=4000)
    for struct in structs_of(element, source, target, 1):
        x = numbers((5, 33), element.dtype, "product" if isinstance(struct, PRODUCT) else "sum")
        session.check(struct, x, {"input": Place(0, 0, 4096), "output": Place(0, 4096, 4000)}, [8192])
        session.check(struct, x, {"input": Place(0, 4016, 4096), "output": Place(0, 16, 4000)}, [8192])


@pytest.mark.parametrize("element", ELEMENT_TYPES, ids=str)
def test_inputs_owned_by_directml(session: Session, element: ElementType) -> None:
    """Copied when initialized; the source may change afterwards, and the persistent resource lies beside the output."""
    source = tensor(element, (3, 19), Flags=dml.DML_TENSOR_FLAG_OWNED_BY_DML, Strides=(21, 1))
    target = tensor(element, (3, 19))
    nbytes = target.TotalTensorSizeInBytes
    for struct in structs_of(element, source, target, 1):
        x = numbers((3, 19), element.dtype, "product" if isinstance(struct, PRODUCT) else "sum")
        size = session.compile(struct).GetBindingProperties().PersistentResourceSize
        places = {
            "source": Place(1, 16, source.TotalTensorSizeInBytes),
            "persistent": Place(0, 256, size),
            "output": Place(0, 256 + size, nbytes),
        }
        session.check(struct, x, places, [256 + size + nbytes + 20, 1024])


def test_broadcast_inputs_owned_by_directml_take_one_element(session: Session) -> None:
    source = tensor(ELEMENT_TYPES[0], (100, 100), Flags=1, Strides=(0, 0))
    struct = SUM(source, tensor(ELEMENT_TYPES[0], (100, 100)), 1)
    assert session.compile(struct).GetBindingProperties().PersistentResourceSize == 256
    places = {"source": Place(1, 0, 4), "persistent": Place(2, 0, 256), "output": Place(0, 0, 40_000)}
    session.check(struct, np.full((100, 100), np.float32(1.5)), places, [40_000, 16, 256])


@pytest.mark.parametrize("scratch_with", ["input", "output", "neither"])
@pytest.mark.parametrize("dtype", ["float32", "int8", "int64"])
def test_the_temporary_resource_lies_anywhere(session: Session, dtype: str, scratch_with: str) -> None:
    element = next(e for e in ELEMENT_TYPES if e.name == dtype)
    t = tensor(element, (40_001,))
    struct, nbytes = SUM(t, t, 0), t.TotalTensorSizeInBytes
    scratch = room(session.compile(struct))
    assert scratch > 0
    assert scratch % 256 == 0
    buffer = {"input": 0, "output": 1, "neither": 2}[scratch_with]
    for begin, tensors in ((0, scratch), (-(-nbytes // 256) * 256, 0)):
        places = {
            "input": Place(0, tensors, nbytes),
            "output": Place(1, tensors, nbytes),
            "temporary": Place(buffer, begin, scratch),
        }
        size = nbytes + 256 + scratch
        session.check(struct, numbers((40_001,), dtype), places, [size, size, size])


@pytest.mark.parametrize(("dtype", "length"), [("float32", 16), ("int32", 100)])
def test_no_scratch_where_one_pass_is_enough(session: Session, dtype: str, length: int) -> None:
    element = next(e for e in ELEMENT_TYPES if e.name == dtype)
    t = tensor(element, (7, length))
    assert {room(session.compile(struct)) for struct in structs_of(element, t, t, 1)} == {0}


# The scratch memory that is told beforehand is enough for every placement: windows do not depend on it.


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_scratch_does_not_depend_on_the_placement(data: st.DataObject) -> None:
    struct = data.draw(valid_structs())
    operator = validate_operator(struct, extensions=True)
    limits = Limits(
        binding_bytes=data.draw(st.sampled_from([1024, 4096, 40_000])) + 2 * 264,
        offset_alignment=data.draw(st.sampled_from([4, 32, 256])),
        software=data.draw(st.booleans()),
    )
    itemsize = operator.element.itemsize
    chunks = any_placement(operator.problem(), limits)
    sizes = set()
    for _ in range(4):
        offsets = [data.draw(st.integers(0, 200)) * 16 // itemsize for _ in range(2)]
        one_buffer = data.draw(st.booleans())
        if one_buffer:  # one behind the other, as near as can be
            offsets[1] = -(-(offsets[0] * itemsize + operator.input.TotalTensorSizeInBytes) // 16) * 16 // itemsize
        problem = operator.problem(input_offset=offsets[0], output_offset=offsets[1])
        plan = plan_problem(problem, limits, one_buffer=one_buffer, chunks=chunks)
        sizes.add(plan.state_bytes)
        for one in plan.passes:
            for part in (one.input, one.output):
                assert part is None or part.size <= limits.binding_bytes
    assert len(sizes) == 1


def test_tensors_larger_than_a_binding(device: dmlgpu.Device) -> None:
    """Many windows, at every placement: a device whose bindings hold 16 KiB."""
    small = {"max-storage-buffer-binding-size": 16_384}
    gpu = device.description.adapter.request_device_sync(required_limits=small)
    session = Session(gpu, extensions=True)
    for dtype in ("float32", "int8", "uint64"):
        element = next(e for e in ELEMENT_TYPES if e.name == dtype)
        sizes = (3, 60_000) if dtype == "int8" else (3, 9001)
        t = tensor(element, sizes)
        nbytes, struct = t.TotalTensorSizeInBytes, SUM(t, t, 1)
        scratch = room(session.compile(struct))
        near = packed_after(scratch + 16, nbytes, nbytes)
        x = numbers(sizes, dtype)
        temporary = {"temporary": Place(0, 0, scratch)} if scratch else {}
        for first, second in ((0, 1), (1, 0), (0, 0)):
            ranges = [Place(0, near[i], nbytes) for i in (first, second)]
            session.check(struct, x, {"input": ranges[0], "output": ranges[1], **temporary}, [near[1] + nbytes + 4])
        transposed = tensor(element, sizes, Strides=(1, 4))
        struct = SUM(transposed, t, 1)
        scratch = room(session.compile(struct))
        temporary = {"temporary": Place(2, 0, scratch)} if scratch else {}
        total = transposed.TotalTensorSizeInBytes
        places = {"input": Place(0, 16, total), "output": Place(1, 48, nbytes), **temporary}
        session.check(struct, x, places, [total + 64, nbytes + 64, scratch + 4])
    gpu.destroy()


# Beyond 2^31 and 2^32


@pytest.mark.parametrize("limits", [Limits(), Limits(binding_bytes=2**31 - 4, offset_alignment=32)])
def test_plans_past_2_to_the_32_bytes_and_elements(limits: Limits) -> None:
    """Every window's bindings lie inside the tensors and hold every element, in exact arithmetic."""
    element = next(e for e in ELEMENT_TYPES if e.name == "int64")
    cases = [
        ((2**31 + 5,), None),
        ((3, 2**20 + 1), (2**31 - 2**22, 3)),
        ((3, 60_000), (1, 2**16 + 7)),
        ((2**32 - 1,), None),
    ]
    for sizes, strides in cases:
        t = tensor(element, sizes, Strides=strides)
        assert t.TotalTensorSizeInBytes > 2**32
        operator = validate_operator(SUM(t, t, len(sizes) - 1))
        offset = 2**33
        problem = operator.problem(input_offset=offset // 8, output_offset=offset // 8)
        assert isinstance(problem, ScanProblem)
        plan = plan_problem(problem, limits, chunks=any_placement(problem, limits))
        outputs = [one.output for one in plan.passes if one.output is not None]
        low = min(output.offset for output in outputs)
        high = max(output.end for output in outputs)
        assert offset - limits.offset_alignment < low <= offset
        assert high == offset + t.TotalTensorSizeInBytes
        assert all(output.size <= limits.binding_bytes for output in outputs)
        assert all(one.output == one.input for one in plan.passes)
        last = {one.output: one.elements for one in plan.passes if one.output is not None}
        assert sum(last.values()) >= np.prod(sizes, dtype=object)


def test_strides_across_the_largest_buffer(device: dmlgpu.Device) -> None:
    """Two rows at both ends of the largest buffer that a tensor of bytes, the adapter and its memory allow."""
    gpu = device.description.adapter.request_device_sync()
    session = Session(gpu, extensions=True)
    element = next(e for e in ELEMENT_TYPES if e.name == "uint8")
    size = min(gpu.limits["max-buffer-size"], 2**32 - 1) // 16 * 16
    buffer = None
    while buffer is None:
        try:
            buffer = gpu.create_buffer(size=size, usage=USAGE)
        except wgpu.GPUError:  # not that much memory
            size //= 2
            assert size > 2**27
    stride = size - 4096
    t = tensor(element, (2, 1024), Strides=(stride, 1))
    compiled = session.compile(SUM(t, t, 0))
    x = numbers((2, 1024), "uint8")
    gpu.queue.write_buffer(buffer, 1024, x[0])
    gpu.queue.write_buffer(buffer, 1024 + stride, x[1])
    place = Place(0, 1024, t.TotalTensorSizeInBytes)
    scratch = gpu.create_buffer(size=room(compiled) + 4, usage=STORAGE)
    places = {"input": place, "output": place, "temporary": Place(1, 0, room(compiled))}
    session.submit(*session.recordings(compiled, False, [buffer, scratch], places))
    got = [np.frombuffer(gpu.queue.read_buffer(buffer, 512 + i * stride, 2048), np.uint8) for i in range(2)]
    assert [row[512:1536].tobytes() for row in got] == [x[0].tobytes(), (x[0] + x[1]).tobytes()]
    assert not any(row[:512].any() or row[1536:].any() for row in got)
    buffer.destroy()
    gpu.destroy()


def test_a_tensor_larger_than_the_largest_buffer(device: dmlgpu.Device) -> None:
    limit = 2**28
    gpu = device.description.adapter.request_device_sync(required_limits={"max-buffer-size": limit})
    session = Session(gpu, extensions=True)
    small = tensor(ELEMENT_TYPES[0], (2, 3))
    large = tensor(ELEMENT_TYPES[0], (2**13, 2**13 + 1))
    wide = tensor(ELEMENT_TYPES[0], (2, 3), Strides=(2**26, 1))
    padded = tensor(ELEMENT_TYPES[0], (2, 3), TotalTensorSizeInBytes=limit + 4)
    for struct in (SUM(large, large, 0), ROUND(large, large), PRODUCT(wide, wide, 0), ROUND(padded, padded)):
        with pytest.raises(DirectMLError, match=f"while the largest buffer of the device has {limit} bytes") as caught:
            session.compile(struct)
        assert caught.value.hresult == dml.E_OUTOFMEMORY
    session.check(
        SUM(small, small, 1), np.ones((2, 3), np.float32), {"input": Place(0, 0, 24), "output": Place(0, 32, 24)}, [64]
    )
    gpu.destroy()


@pytest.mark.parametrize("more", [0, 1])
def test_a_persistent_resource_larger_than_the_largest_buffer(device: dmlgpu.Device, more: int) -> None:
    """Its size is rounded up to 256 bytes, so that it may be larger than the tensor."""
    limits = {"max-buffer-size": 2**20 + 4, "max-storage-buffer-binding-size": 2**20}
    gpu = device.description.adapter.request_device_sync(required_limits=limits)
    session = Session(gpu, extensions=True)
    source = tensor(ELEMENT_TYPES[0], (2**18 + more,), Flags=dml.DML_TENSOR_FLAG_OWNED_BY_DML)
    struct = ROUND(source, tensor(ELEMENT_TYPES[0], (2**18 + more,)))
    if more:
        with pytest.raises(DirectMLError, match=r"persistent resource has 1048832 bytes .* 1048580 bytes") as caught:
            session.compile(struct)
        assert caught.value.hresult == dml.E_OUTOFMEMORY
    else:
        assert session.compile(struct).GetBindingProperties().PersistentResourceSize == 2**20
    gpu.destroy()


# Anything, drawn at random


@st.composite
def placements(draw: st.DrawFn, needs: dict[str, tuple[int, int]]) -> tuple[dict[str, Place], list[int]]:
    """Draw ranges near each other in up to three buffers: mostly legal, sometimes not, and the buffers' sizes."""
    ends = [draw(st.sampled_from([0, 16, 48, 256])) for _ in range(3)]
    places: dict[str, Place] = {}
    for role in draw(st.permutations(sorted(needs))):
        size, alignment = needs[role]
        buffer = draw(st.integers(0, 2))
        offset = -(-ends[buffer] // alignment) * alignment
        chance = draw(st.integers(0, 29))
        size += draw(st.sampled_from([0, 0, 0, 4, 240]))
        if chance == 0:
            offset = max(0, offset - draw(st.sampled_from([4, 8, 16, 256])))
        elif chance == 1:
            size = max(0, size - draw(st.sampled_from([1, 4, 256])))
        elif chance == 2:
            continue  # not bound
        elif chance < 9 and places:
            other = places[draw(st.sampled_from(sorted(places)))]
            buffer, offset = other.buffer, other.offset
            size = other.size if draw(st.booleans()) else size
        places[role] = Place(buffer, offset, size)
        ends[buffer] = max(ends[buffer], offset + size)
    slack = [draw(st.sampled_from([0, 4, 64])) for _ in range(3)]
    if draw(st.integers(0, 39)) == 0:
        slack[0] = -16
    return places, [max(16, -(-end // 4) * 4 + more) for end, more in zip(ends, slack, strict=True)]


def is_legal(struct: Any, places: dict[str, Place], sizes: list[int], needs: dict[str, tuple[int, int]]) -> bool:
    """Say, without the package's own checks, whether bindings keep all rules."""
    if set(places) != set(needs):
        return False
    for role, place in places.items():
        size, alignment = needs[role]
        if place.offset % alignment or place.size < size or place.end > sizes[place.buffer]:
            return False
    output = places["output"]
    if "input" in places and places["input"].meets(output):
        source, target = struct.InputTensor.Desc, struct.OutputTensor.Desc
        packed = tuple(int(np.prod(source.Sizes[i + 1 :])) for i in range(len(source.Sizes)))
        alike = (source.Strides or packed) == (target.Strides or packed)
        if places["input"] != output or not alike or source.TotalTensorSizeInBytes != target.TotalTensorSizeInBytes:
            return False
    apart = [("temporary", "input"), ("temporary", "output"), ("temporary", "persistent"), ("persistent", "output")]
    if any(a in places and b in places and places[a].meets(places[b]) for a, b in apart):
        return False
    return "source" not in places or places["source"].buffer != places["persistent"].buffer


@settings(deadline=None, max_examples=DRAWS, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_operator_over_any_bindings(session: Session, data: st.DataObject) -> None:
    """A right answer and no other byte changed, or E_INVALIDARG: never anything else."""
    struct = data.draw(valid_structs() if data.draw(st.integers(0, 3)) else structs())
    try:
        operator = validate_operator(struct, extensions=True)
    except DirectMLError:
        with pytest.raises(DirectMLError) as caught:
            session.device.CreateOperator(struct)
        assert caught.value.hresult == dml.E_INVALIDARG
        event("invalid description")
        return
    x = data.draw(arrays(struct))
    if x.shape != operator.input.Sizes:
        return
    if max(operator.input.TotalTensorSizeInBytes, operator.output.TotalTensorSizeInBytes) > 2**24:
        return
    compiled = session.compile(struct)
    properties = compiled.GetBindingProperties()
    owned = bool(operator.input.Flags)
    needs = {
        "source" if owned else "input": (
            operator.input.TotalTensorSizeInBytes,
            max(16, operator.input.GuaranteedBaseOffsetAlignment),
        ),
        "output": (operator.output.TotalTensorSizeInBytes, max(16, operator.output.GuaranteedBaseOffsetAlignment)),
    }
    if properties.TemporaryResourceSize:
        needs["temporary"] = (properties.TemporaryResourceSize, 256)
    if properties.PersistentResourceSize:
        needs["persistent"] = (properties.PersistentResourceSize, 256)
    places, sizes = data.draw(placements(needs))
    if max(sizes) > 2**24:
        return
    if is_legal(struct, places, sizes, needs):
        event("valid")
        session.check(struct, x, places, sizes, seed=data.draw(st.integers(0, 9)))
        return
    event("invalid bindings")
    images = [np.random.default_rng(i).integers(0, 256, size, np.uint8) for i, size in enumerate(sizes)]
    buffers = [session.buffer(image) for image in images]
    if "source" in needs and "source" not in places:
        places["source"] = Place(0, 8, 0)  # a range that is no range
    with pytest.raises(DirectMLError) as caught:
        session.submit(*session.recordings(compiled, owned, buffers, places))
    assert caught.value.hresult == dml.E_INVALIDARG
    for image, buffer in zip(images, buffers, strict=True):
        assert session.read(buffer).tobytes() == image.tobytes()
