"""Random DirectML descriptions: valid ones, and valid ones with a few fields changed."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from dmlgpu import directml as dml
from dmlgpu.directml.rules import layout
from dmlgpu.dtypes import ELEMENT_TYPES, ElementType

SUM = dml.DML_CUMULATIVE_SUMMATION_OPERATOR_DESC
PRODUCT = dml.DML_CUMULATIVE_PRODUCT_OPERATOR_DESC
ROUND = dml.DML_ELEMENT_WISE_ROUND_OPERATOR_DESC
OPERATOR_TYPES = {
    SUM: dml.DML_OPERATOR_CUMULATIVE_SUMMATION,
    PRODUCT: dml.DML_OPERATOR_CUMULATIVE_PRODUCT,
    ROUND: dml.DML_OPERATOR_ELEMENT_WISE_ROUND,
}

# No product of so few of these is subnormal.
VALUES = [0.0, -0.0, 1.0, -1.0, 2.0, 3.0, -2.0, 0.5, 1.5, -2.5, 100.25, math.inf, -math.inf, math.nan]
UINT_MAX = 2**32 - 1


@st.composite
def shapes(draw: st.DrawFn) -> tuple[int, ...]:
    """One to eight dimensions, at most one of them long."""
    sizes = draw(st.lists(st.sampled_from([1, 2, 3]), min_size=0, max_size=7))
    longest = draw(st.one_of(st.integers(1, 20), st.sampled_from([255, 257, 300])))
    sizes.insert(draw(st.integers(0, len(sizes))), longest)
    while math.prod(sizes) > 2000:
        sizes[sizes.index(min(size for size in sizes if size > 1))] = 1
    return tuple(sizes)


@st.composite
def strides_apart(draw: st.DrawFn, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Dimensions in any order, with gaps; any stride where the size is 1."""
    strides, reach = [0] * len(sizes), 0
    for dimension in draw(st.permutations(range(len(sizes)))):
        if sizes[dimension] == 1:
            strides[dimension] = draw(st.integers(0, 9))
        else:
            strides[dimension] = reach + 1 + draw(st.sampled_from([0, 0, 1, 3]))
            reach += (sizes[dimension] - 1) * strides[dimension]
    return tuple(strides)


def any_strides(sizes: tuple[int, ...]) -> st.SearchStrategy[tuple[int, ...] | None]:
    """Packed, apart, or of any kind: broadcast, overlap."""
    return st.one_of(st.none(), strides_apart(sizes), st.tuples(*[st.integers(0, 9)] * len(sizes)))


@st.composite
def buffers(
    draw: st.DrawFn, element: ElementType, sizes: tuple[int, ...], strides: tuple[int, ...] | None, flags: int = 0
) -> dml.DML_BUFFER_TENSOR_DESC:
    """A tensor, with some bytes to spare."""
    least = dml.DMLCalcBufferTensorSize(element.dml_value, len(sizes), sizes, strides)
    return dml.DML_BUFFER_TENSOR_DESC(
        element.dml_value,
        flags,
        Sizes=sizes,
        Strides=strides,
        TotalTensorSizeInBytes=least + 4 * draw(st.sampled_from([0, 0, 1, 5])),
        GuaranteedBaseOffsetAlignment=draw(st.sampled_from([0, 8, 256])),
    )


@st.composite
def valid_structs(draw: st.DrawFn) -> Any:
    """An operator's struct that keeps all rules, with this package's extensions."""
    sizes = draw(shapes())
    kind = draw(st.sampled_from([SUM, PRODUCT, ROUND]))
    element = draw(st.sampled_from([e for e in ELEMENT_TYPES if kind is not ROUND or e.kind == "float"]))
    source = draw(buffers(element, sizes, draw(any_strides(sizes)), draw(st.sampled_from([0, 0, 1]))))
    target = source
    if source.Flags or not layout(source).is_disjoint or draw(st.booleans()):
        target = draw(buffers(element, sizes, draw(strides_apart(sizes))))
    if kind is ROUND:
        return ROUND(source, target, draw(st.integers(0, 2)))
    return kind(source, target, draw(st.integers(0, len(sizes) - 1)), draw(st.integers(0, 1)), draw(st.booleans()))


def _numbers(numbers: tuple[int, ...], values: list[int]) -> st.SearchStrategy[tuple[int, ...]]:
    """One number more, one less, or one changed."""
    where = st.integers(0, max(len(numbers) - 1, 0))
    return st.builds(
        lambda at, new: numbers[:at] + tuple(new) + numbers[at + 1 :],
        where,
        st.lists(st.sampled_from(values), max_size=2),
    )


@st.composite
def _changed_buffer(draw: st.DrawFn, tensor: dml.DML_BUFFER_TENSOR_DESC) -> dml.DML_BUFFER_TENSOR_DESC:
    values: dict[str, st.SearchStrategy[Any]] = {
        "DataType": st.integers(-1, 14),
        "Flags": st.integers(0, 3),
        "DimensionCount": st.integers(0, 9),
        "Sizes": _numbers(tensor.Sizes, [0, 1, 2, 5, 2**31, UINT_MAX]),
        # Of sizes that were changed before, 0 and large ones have no strides that a field holds.
        "Strides": st.one_of(
            any_strides(tuple(min(max(size, 1), 9) for size in tensor.Sizes)),
            _numbers(tensor.Strides or (), [0, 1, 2, 5]),
        ),
        "TotalTensorSizeInBytes": st.sampled_from([-4, -1, 0, 1, 2, 4, 40]).map(
            lambda more: max(tensor.TotalTensorSizeInBytes + more, 0)
        ),
        "GuaranteedBaseOffsetAlignment": st.sampled_from([1, 2, 3, 4, 8, 12, 16, 2**31, UINT_MAX]),
    }
    field = draw(st.sampled_from(list(values)))
    changes = {field: draw(values[field])}
    if field in ("DataType", "Sizes", "Strides") and draw(st.booleans()):
        changes |= {"TotalTensorSizeInBytes": None}
        if field == "Sizes":
            changes |= {"DimensionCount": None, "Strides": None}
    return dataclasses.replace(tensor, **changes)


@st.composite
def structs(draw: st.DrawFn) -> Any:
    """An operator's struct of which none to three fields were changed."""
    struct = draw(valid_structs())
    for _ in range(draw(st.integers(0, 3))):
        field = draw(st.sampled_from([f.name for f in dataclasses.fields(struct)] + ["InputTensor", "OutputTensor"]))
        value: Any
        if field in ("InputTensor", "OutputTensor"):
            tensor = getattr(struct, field)
            if tensor is None or tensor.Desc is None:
                continue
            nulls = {8: None, 9: dml.DML_TENSOR_DESC(1, None)}
            chance = draw(st.integers(0, 9))
            value = nulls[chance] if chance in nulls else draw(_changed_buffer(tensor.Desc))
            if value is not None and draw(st.booleans()):
                struct = dataclasses.replace(struct, InputTensor=value, OutputTensor=value)
                continue
        elif field.startswith("HasExclusive"):
            value = draw(st.booleans())
        else:
            value = draw(st.integers(0 if field == "Axis" else -1, 9 if field == "Axis" else 3))
        struct = dataclasses.replace(struct, **{field: value})
    return struct


@st.composite
def arrays(draw: st.DrawFn, struct: Any) -> NDArray[Any]:
    """An array that fits the input, in bits that its strides allow, if there can be such an array."""
    tensor = struct.InputTensor and struct.InputTensor.Desc
    rng = np.random.default_rng(draw(st.integers(0, UINT_MAX)))
    if tensor is None or not 0 < math.prod(tensor.Sizes) <= 10_000:
        return np.ones(3, np.float32)
    element = next((e for e in ELEMENT_TYPES if e.dml_value == tensor.DataType), ELEMENT_TYPES[0])
    agrees = tensor.Strides is None or len(tensor.Strides) == len(tensor.Sizes)
    where = layout(tensor if agrees else dataclasses.replace(tensor, Strides=None))
    count = where.extent[1]
    if element.kind == "float":
        flat = rng.choice(np.array(VALUES[: draw(st.sampled_from([11, 14]))]), count).astype(element.dtype)
    else:
        limits = np.iinfo(element.dtype)
        flat = rng.integers(limits.min, limits.max, count, element.dtype, endpoint=True)
    return where.view(flat)


def descriptions(structures: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Structs as they are, or in a DML_OPERATOR_DESC."""
    wrapped = structures.map(lambda struct: dml.DML_OPERATOR_DESC(OPERATOR_TYPES[type(struct)], struct))
    return st.one_of(structures, wrapped)
