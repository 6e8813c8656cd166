"""View arithmetic against NumPy's; no device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes
from numpy.typing import NDArray

from dmlgpu.arrays.host import memory_order
from dmlgpu.errors import ArgumentError, ArrayIndexError, AxisError, DmlGpuError
from dmlgpu.layout import Layout, check_sizes

from .views import view_steps


def positions(layout: Layout) -> NDArray[np.int64]:
    """The place of every element of a layout."""
    places = np.full(layout.sizes, layout.offset, np.int64)
    for axis, (size, stride) in enumerate(zip(layout.sizes, layout.strides, strict=True)):
        along = [1] * len(layout.sizes)
        along[axis] = size
        places += (np.arange(size) * stride).reshape(along)
    return places


class Shadow:
    """A layout with the methods that view steps call. A reshape that needs a copy starts from packed memory again."""

    def __init__(self, layout: Layout, values: NDArray[np.int64]) -> None:
        self.layout = layout
        self.values = values

    def __getitem__(self, key: Any) -> Shadow:
        return Shadow(self.layout.take(key), self.values)

    def transpose(self, axes: tuple[int, ...]) -> Shadow:
        return Shadow(self.layout.transpose(axes), self.values)

    def broadcast_to(self, shape: tuple[int, ...]) -> Shadow:
        return Shadow(self.layout.broadcast(shape), self.values)

    def reshape(self, shape: tuple[int, ...]) -> Shadow:
        sizes = self.elements().reshape(shape).shape
        layout = self.layout.reshape(shape)
        assert (layout is not None) == self.reshapes_without_copy(sizes)
        if layout is None:
            return Shadow(Layout.packed(sizes), self.elements())
        return Shadow(layout, self.values)

    def reshapes_without_copy(self, sizes: tuple[int, ...]) -> bool:
        if self.layout.count == 0:
            return True
        strides = tuple(8 * stride for stride in self.layout.strides)
        view = np.ndarray(self.layout.sizes, np.int64, self.values, 8 * self.layout.offset, strides)
        try:
            return np.reshape(view, sizes, copy=False).shape == sizes
        except ValueError:
            return False

    def elements(self) -> NDArray[np.int64]:
        return self.values[positions(self.layout)].reshape(-1)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_views_are_those_of_numpy(data: st.DataObject) -> None:
    shape = data.draw(array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=6))
    host = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    shadow = Shadow(Layout.packed(shape), host.reshape(-1))
    for step in data.draw(view_steps(shape, most=6)):
        host, shadow = step(host), step(shadow)
        assert shadow.layout.sizes == host.shape
        np.testing.assert_array_equal(shadow.elements().reshape(host.shape), host)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_memory_order_of_any_view(data: st.DataObject) -> None:
    shape = data.draw(array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=6))
    host = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    for step in data.draw(view_steps(shape)):
        host = step(host)
    if host.size == 0:
        host = np.arange(6).reshape(1, 2, 3).T
    view, layout = memory_order(host)
    assert view.size <= host.size
    np.testing.assert_array_equal(view.reshape(-1)[positions(layout)], host)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x,
        lambda x: x.T,
        lambda x: x[::-1, :, ::-1],
        lambda x: x.transpose(1, 2, 0)[:, ::-1],
        lambda x: np.broadcast_to(x[:, None], (4, 9, 5, 6)),
        lambda x: x[1:2],
        lambda x: np.array(7),
    ],
)
def test_memory_without_gaps_is_not_copied(make: Any) -> None:
    x = make(np.arange(120).reshape(4, 5, 6))
    view, _ = memory_order(x)
    assert view.flags.c_contiguous
    assert np.shares_memory(view, x)


LAYOUT = Layout.packed((2, 3))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: LAYOUT.take(2), ArrayIndexError, "index 2 is out of range for axis 0 of size 2"),
        (lambda: LAYOUT.take((0, -4)), ArrayIndexError, "index -4 .* axis 1 of size 3"),
        (lambda: LAYOUT.take((0, 0, 0)), ArrayIndexError, "3 indices for an array of 2 dimensions"),
        (lambda: LAYOUT.take((..., ...)), ArrayIndexError, "2 ellipses .*give one"),
        (
            lambda: LAYOUT.take([0, 1]),
            ArrayIndexError,
            r"an index is \[0, 1\] of type list; only integers, slices, .*\.numpy\(\)",
        ),
        (lambda: LAYOUT.take(np.array([True, False])), ArrayIndexError, "of type ndarray; only integers"),
        (lambda: LAYOUT.take(True), ArrayIndexError, "an index is True of type bool; only integers"),
        (lambda: LAYOUT.take(1.0), ArrayIndexError, "an index is 1.0 of type float; only integers"),
        (lambda: LAYOUT.transpose((0, 2)), AxisError, "axis 2"),
        (lambda: LAYOUT.take(slice(None, None, 0)), ArrayIndexError, "a slice's step is 0: give another"),
        (lambda: LAYOUT.take(slice(0, 1.5)), ArrayIndexError, "a slice's stop is 1.5 of type float; give an"),
        (lambda: LAYOUT.take(slice(True, 2)), ArrayIndexError, "a slice's start is True of type bool"),
        (lambda: LAYOUT.take(10**5000), ArrayIndexError, "index an integer of some 5001 digits is out"),
        (lambda: Layout((0,), (1,)).take(0), ArrayIndexError, "axis 0 of size 0: it has no element"),
        (lambda: LAYOUT.transpose((0, 0)), ArgumentError, r"axes is \(0, 0\) .* 2 dimensions: name each"),
        (lambda: LAYOUT.transpose((0,)), ArgumentError, r"axes is \(0,\) .* 2 dimensions: name each"),
        (
            lambda: Layout.packed(()).reshape((2,)),
            ArgumentError,
            "for an array of 1 element: give sizes that",
        ),
        (lambda: Layout.packed((6,)).reshape((4,)), ArgumentError, r"shape is \(4,\) for an array of 6 elements: give"),
        (lambda: Layout.packed((6,)).reshape((4, -1)), ArgumentError, "6 elements"),
        (lambda: Layout.packed((0,)).reshape((0, -1)), ArgumentError, "0 elements"),
        (lambda: Layout.packed((6,)).reshape((-1, -1)), ArgumentError, r"shape is \(-1, -1\); .*-1 for at most one"),
        (lambda: Layout.packed((6,)).reshape((-2, -3)), ArgumentError, r"shape is \(-2, -3\); give sizes of 0 or more"),
        (
            lambda: LAYOUT.broadcast((3, 3)),
            ArgumentError,
            r"shape is \(3, 3\), to which .* \(2, 3\) cannot be broadcast",
        ),
        (lambda: LAYOUT.broadcast((3,)), ArgumentError, "cannot be broadcast"),
        (lambda: check_sizes((1,) * 9), ArgumentError, "9 dimensions; at most 8"),
        (lambda: check_sizes((2**16, 2**16)), ArgumentError, "4294967296 elements; at most 2\\^32-1"),
        (lambda: check_sizes((0, 2**33)), ArgumentError, r"shape \(0, 8589934592\) has sizes other than 0"),
    ],
)
def test_errors_name_the_value_and_the_limit(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text) as caught:
        call()
    assert isinstance(caught.value, DmlGpuError)
