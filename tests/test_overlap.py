"""Every overlap of input and output: the result is as if the input were copied first.

In the spirit of NumPy's tests of memory overlap: views of one block of memory, with random shapes, strides of either
sign, offsets and types, so that the output lies on the input partly, reversed, shifted, interleaved or transposed.
``DMLGPU_OVERLAP_DRAWS`` sets how many are drawn.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import wgpu
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

import dmlgpu
from dmlgpu.arrays.array import DeviceArray
from dmlgpu.arrays.tensors import Tensor
from dmlgpu.dtypes import by_name
from dmlgpu.layout import Layout
from dmlgpu.runtime.device import Device

from .harness import positions

DRAWS = int(os.environ.get("DMLGPU_OVERLAP_DRAWS", "150"))
NBYTES = 2048


@dataclass(frozen=True)
class View:
    """Elements in the block; offset and strides in elements."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    def of(self, block: NDArray[np.uint8]) -> NDArray[Any]:
        """Return the view of a block in host memory."""
        elements = block.view(self.dtype)[self.offset :]
        return as_strided(elements, self.shape, tuple(stride * elements.itemsize for stride in self.strides))

    def on(self, buffer: Any) -> dmlgpu.DeviceArray:
        """Return the view of a block in a device's memory."""
        itemsize = np.dtype(self.dtype).itemsize
        strides = tuple(stride * itemsize for stride in self.strides)
        return dmlgpu.from_wgpu(buffer, self.shape, self.dtype, strides=strides, offset=self.offset * itemsize)

    @property
    def bytes(self) -> set[int]:
        itemsize = np.dtype(self.dtype).itemsize
        every = Layout((*self.shape, itemsize), (*(s * itemsize for s in self.strides), 1), self.offset * itemsize)
        return set(positions(every).reshape(-1).tolist())


def draw(rng: np.random.Generator, dtype: str, shape: tuple[int, ...], *, disjoint: bool) -> View:
    """Return a random view of a shape that lies inside the block, and whose elements share no memory if `disjoint`."""
    count = NBYTES // np.dtype(dtype).itemsize
    while True:
        if disjoint or rng.random() < 0.7:  # the axes of memory in any order, with steps and gaps
            order, strides, step = rng.permutation(len(shape)), [0] * len(shape), int(rng.integers(1, 4))
            for axis in order:
                strides[axis] = step * int(rng.choice([-1, 1]))
                step *= shape[axis] + int(rng.integers(0, 3))
        else:  # anything that an input may have
            strides = [int(stride) for stride in rng.integers(-9, 10, len(shape))]
        ends = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)]
        low, high = sum(min(0, end) for end in ends), sum(max(0, end) for end in ends)
        if high - low < count:
            return View(dtype, shape, tuple(strides), int(rng.integers(-low, count - high)))


def draw_pair(rng: np.random.Generator) -> tuple[View, View]:
    """Return an input and an output of one shape that share bytes."""
    types = [("int32", "int32"), ("float32", "float32"), ("int16", "int64"), ("uint8", "uint64"), ("int64", "int32")]
    source_type, target_type = types[rng.integers(len(types))]
    while True:
        shape = tuple(int(size) for size in rng.integers(1, 6, rng.integers(1, 4)))
        source = draw(rng, source_type, shape, disjoint=False)
        target = draw(rng, target_type, shape, disjoint=True)
        kind = rng.integers(8)
        if source_type == target_type and kind == 0:  # shifted
            source = View(source_type, shape, target.strides, source.offset)
        elif source_type == target_type and kind == 1:  # the same places
            source = target
        if not _inside(source):
            continue
        if source.bytes & target.bytes:
            return source, target


def _inside(view: View) -> bool:
    ends = [(size - 1) * stride for size, stride in zip(view.shape, view.strides, strict=True)]
    low, high = view.offset + sum(min(0, end) for end in ends), view.offset + sum(max(0, end) for end in ends)
    return low >= 0 and high < NBYTES // np.dtype(view.dtype).itemsize


def operators(axis: int, dtype: str) -> dict[str, tuple[Callable[..., Any], Callable[[NDArray[Any]], NDArray[Any]]]]:
    """Return operators of this package, and what they shall be."""
    return {
        "sum": (
            lambda x, out: dmlgpu.cumulative_sum(x, axis=axis, dtype=dtype, out=out),
            lambda x: np.cumsum(x.astype(dtype), axis=axis, dtype=dtype),
        ),
        "reverse": (
            lambda x, out: dmlgpu.cumulative_sum(x, axis=axis, dtype=dtype, reverse=True, out=out),
            lambda x: np.flip(np.cumsum(np.flip(x.astype(dtype), axis), axis=axis, dtype=dtype), axis),
        ),
    }


@pytest.mark.parametrize("where", ["host", "device"])
@pytest.mark.parametrize("seed", range(5))
def test_as_if_the_input_were_copied(device: Device, where: str, seed: int) -> None:
    rng = np.random.default_rng([seed, where == "host"])
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
    buffer = device.gpu_device.create_buffer(size=NBYTES, usage=usage)
    partly = 0
    for _ in range(DRAWS // 5):
        source, target = draw_pair(rng)
        partly += source.bytes != target.bytes
        block = rng.integers(0, 3, NBYTES, np.uint8)
        if source.dtype == "float32" or target.dtype == "float32":
            block = rng.integers(0, 50, NBYTES // 4).astype(np.float32).view(np.uint8)
        axis = int(rng.integers(len(source.shape)))
        name = str(rng.choice(["sum", "reverse"]))
        run, expect = operators(axis, target.dtype)[name]
        expected = block.copy()
        target.of(expected)[...] = expect(source.of(block).copy())
        if where == "host":
            after = block.copy()
            run(source.of(after), target.of(after))
        else:
            device.gpu_device.queue.write_buffer(buffer, 0, block)
            run(source.on(buffer), target.on(buffer))
            after = dmlgpu.from_wgpu(buffer, NBYTES, "uint8").numpy()
        np.testing.assert_array_equal(after, expected, f"{name} along {axis} of {source} into {target}")
    assert partly > DRAWS // 15


@pytest.mark.parametrize("mode", ["half_even", "toward_zero"])
def test_rounding_onto_its_input(device: Device, mode: str) -> None:
    rng = np.random.default_rng(3)
    expect = {"half_even": np.round, "toward_zero": np.trunc}[mode]
    for _ in range(DRAWS // 5):
        source, target = draw_pair(rng)
        source = View("float32", source.shape, source.strides, source.offset)
        target = View("float32", target.shape, target.strides, target.offset)
        if not (_inside(source) and _inside(target)):
            continue
        block = (rng.integers(-50, 50, NBYTES // 4) / 4).astype(np.float32).view(np.uint8)
        expected, after = block.copy(), block.copy()
        target.of(expected)[...] = expect(source.of(block).copy())
        whole = dmlgpu.asarray(after, device)._tensor.buffer
        arrays = [
            DeviceArray(Tensor(whole, by_name("float32"), Layout(view.shape, view.strides, view.offset)))
            for view in (source, target)
        ]
        dmlgpu.round(arrays[0], mode=mode, out=arrays[1])
        device.download(whole, 0, after)
        np.testing.assert_array_equal(after, expected, f"{source} into {target}")
