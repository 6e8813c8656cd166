"""Validation and collapsing, without a device."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlgpu.dtypes import ELEMENT_TYPES, by_dml_value, by_dtype, by_name, result_type
from dmlgpu.errors import ArgumentError, ArrayTypeError, AxisError
from dmlgpu.layout import Layout, overlap, packed_strides
from dmlgpu.planning.problem import (
    Dimension,
    Operator,
    RoundingMode,
    ScanOptions,
    convert_problem,
    round_problem,
    scan_problem,
)

from .harness import positions

F32 = by_name("float32")


def test_packed_dimensions_collapse_to_outer_axis_inner() -> None:
    layout = Layout.packed((2, 3, 4, 5, 6))
    problem = scan_problem(F32, Operator.SUM, layout, layout, axis=2)
    assert problem.batch == (Dimension(6, 120, 120), Dimension(30, 1, 1))
    assert problem.axis == Dimension(4, 30, 30)
    assert problem.slices == 180


def test_a_decreasing_scan_begins_at_the_highest_index_with_negated_strides() -> None:
    layout = Layout.packed((4, 10), 3)
    problem = scan_problem(F32, Operator.PRODUCT, layout, layout, -1, ScanOptions(reverse=True, exclusive=True))
    assert problem.axis == Dimension(10, -1, -1)
    assert (problem.input_offset, problem.output_offset, problem.exclusive) == (12, 12, True)


def test_dimensions_merge_only_where_both_tensors_allow() -> None:
    source = Layout((3, 4), (4, 1))
    target = Layout((3, 4), (5, 1))
    assert convert_problem(F32, F32, source, target).dimensions == (Dimension(3, 4, 5), Dimension(4, 1, 1))
    assert convert_problem(F32, F32, source, source).dimensions == (Dimension(12, 1, 1),)
    assert round_problem(F32, RoundingMode.HALF_EVEN, source, source).mode is RoundingMode.HALF_EVEN


@pytest.mark.parametrize("axis", [2, -3, 100, -(2**40)])
def test_axis_out_of_range(axis: int) -> None:
    layout = Layout.packed((2, 2))
    with pytest.raises(AxisError, match=rf"axis {axis} is out of range for an array of 2 dimensions: give -2 to 1"):
        scan_problem(F32, Operator.SUM, layout, layout, axis=axis)


def test_different_sizes() -> None:
    with pytest.raises(ArgumentError, match=r"input has sizes \(2, 3\) while output has sizes \(3, 2\)"):
        convert_problem(F32, F32, Layout.packed((2, 3)), Layout.packed((3, 2)))


def test_nine_dimensions() -> None:
    with pytest.raises(ArgumentError, match="9 dimensions; at most 8"):
        convert_problem(F32, F32, Layout.packed((1,) * 9), Layout.packed((1,) * 9))


def test_too_many_elements() -> None:
    at_limit = Layout.packed((2**32 - 1,))
    assert convert_problem(F32, F32, at_limit, at_limit).dimensions[0].size == 2**32 - 1
    beyond = Layout.packed((2**16, 2**16))
    with pytest.raises(ArgumentError, match=r"4294967296 elements; at most 2\^32-1"):
        convert_problem(F32, F32, beyond, beyond)


@pytest.mark.parametrize("strides", [(0, 1), (2, 1), (-2, 1), (1, 1)])
def test_output_elements_that_share_memory(strides: tuple[int, int]) -> None:
    with pytest.raises(ArgumentError, match="elements share memory"):
        convert_problem(F32, F32, Layout.packed((3, 3)), Layout((3, 3), strides, 10))


layouts = st.integers(1, 4).flatmap(
    lambda rank: st.builds(
        Layout,
        st.tuples(*[st.integers(1, 4)] * rank),
        st.tuples(*[st.integers(-20, 20)] * rank),
        st.integers(100, 110),
    )
)


@given(layouts)
def test_disjoint_and_extent_agree_with_enumeration(layout: Layout) -> None:
    where = positions(layout)
    assert layout.extent == (where.min(), where.max() + 1)
    if layout.is_disjoint:
        assert np.unique(where).size == layout.count


@given(layouts, layouts)
def test_overlap_is_never_missed(a: Layout, b: Layout) -> None:
    if np.intersect1d(positions(a), positions(b)).size:
        assert overlap(a, b)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.randoms())
def test_transposing_and_slicing_stay_disjoint(sizes: list[int], random: object) -> None:
    x = np.empty([2 * size for size in sizes], np.uint8)[tuple(slice(None, None, 2) for _ in sizes)].T
    assert Layout(x.shape, x.strides).is_disjoint


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5))
def test_packed_strides_are_numpys(sizes: list[int]) -> None:
    layout = Layout.packed(sizes)
    assert packed_strides(sizes) == tuple(s // 8 for s in np.zeros(sizes).strides)
    assert layout.is_packed


def test_empty_layout() -> None:
    assert Layout.packed((3, 0), 5).extent == (5, 5)
    assert Layout.packed((3, 0)).count == 0


def test_the_table_of_element_types() -> None:
    assert [element.dml_value for element in ELEMENT_TYPES] == list(range(1, 12))
    for element in ELEMENT_TYPES:
        assert by_dml_value(element.dml_value) is element
        assert by_dtype(element.dtype.newbyteorder()) is element
        assert element.dtype.itemsize == element.itemsize == 1 << element.log2_bits >> 3
    assert by_dml_value(12) is None
    assert {str(result_type(by_name(name))) for name in ("bool", "int8", "int64")} == {"int64"}
    assert {str(result_type(by_name(name))) for name in ("uint8", "uint64")} == {"uint64"}
    assert result_type(by_name("float16")).name == "float16"


@pytest.mark.parametrize("dtype", ["complex64", "object", "datetime64[s]", "U3", "V4"])
def test_types_without_an_element_type(dtype: str) -> None:
    with pytest.raises(ArrayTypeError, match="has no element type on the device: give one of"):
        by_dtype(dtype)
