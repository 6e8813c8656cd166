"""Large arrays of the host, of which a block is on the device at a time: the bits of one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dmlgpu
from dmlgpu.arrays import blocks, functions
from dmlgpu.errors import DeviceMemoryError
from dmlgpu.planning.kernels import progress_words
from dmlgpu.planning.windows import TILE
from dmlgpu.reference import first_difference
from dmlgpu.runtime import memory
from dmlgpu.runtime.device import Device

BLOCK = 4 * TILE
"""Bytes of a block here: a tile of float32."""


@pytest.mark.combinations
@pytest.mark.parametrize("seed", range(20))
def test_blocks_hold_every_element_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(50):
        sizes = tuple(int(size) for size in rng.choice([1, 2, 3, 5, 8, 33, 100], rng.integers(1, 5)))
        axis = [None, *range(len(sizes))][rng.integers(0, len(sizes) + 1)]
        monkeypatch.setattr(blocks, "_LEAST_ROW", int(rng.choice([4, 8, 64])))
        most = int(rng.choice([4, 16, 100, 1000, 5000]))
        x = np.zeros(sizes, np.int32)
        for place in blocks.blocks(sizes, axis, x.itemsize, most):
            block = x[place]
            block += 1
            if axis is not None:
                assert block.shape[axis] == sizes[axis]
            if block.nbytes > most:
                assert axis is not None
                assert block.flags.c_contiguous
                assert max(block.shape[:axis], default=1) == 1
        assert (x == 1).all()


def test_blocks_of_no_dimensions() -> None:
    assert list(blocks.blocks((), None, 4, 1)) == [()]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Have small blocks; return the bytes of the memory that is taken on devices from now on."""
    taken: list[int] = []
    real = memory.Pool.take_idle

    def take_idle(pool: memory.Pool, nbytes: int) -> Any:
        taken.append(nbytes)
        return real(pool, nbytes)

    monkeypatch.setattr(Device, "block_bytes", BLOCK)
    monkeypatch.setattr(memory.Pool, "take_idle", take_idle)
    return taken


def at_once(call: Callable[[], NDArray[Any]]) -> NDArray[Any]:
    """Do it without blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(functions, "_MAX_BLOCKS", 2**40)
        return call()


def data(shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """Return numbers of a type, and where it has them a few that make tiles exceptional."""
    rng = np.random.default_rng(sum(shape))
    if np.dtype(dtype).kind != "f":
        return rng.integers(0, 100, shape).astype(dtype)
    x = rng.standard_normal(shape).astype(dtype)
    x.flat[:: x.size // 3 + 7] = np.finfo(dtype).max
    x.flat[x.size // 2] = -np.inf
    return x


SHAPES = [
    ((70_001,), 0),
    ((9, 9001), 1),
    ((3, 30_001), 1),
    ((40_003, 3), 0),
    ((33, 2001), 0),
    ((9, 100, 101), 1),
    ((2, 1, 9001, 5), 2),
    ((1, 5000, 4, 7), 1),
    ((4097, 1, 35), 0),
]


@pytest.mark.combinations
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"exclusive": True},
        {"reverse": True},
        {"include_initial": True},
        {"include_initial": True, "reverse": True},
        {"exclusive": True, "reverse": True, "monotone": True},
        {"precision": "compensated"},
    ],
    ids=lambda options: "+".join(options) or "plain",
)
def test_scans_in_blocks_have_the_bits_of_one_call(
    device: Device, shape: tuple[int, ...], axis: int, options: dict[str, Any], small_blocks: list[int]
) -> None:
    x = data(shape, "float32")

    def call() -> NDArray[Any]:
        return dmlgpu.cumulative_sum(x, axis=axis, device=device, **options)

    expected = at_once(call)
    assert max(small_blocks) > BLOCK
    del small_blocks[:]
    result = call()
    # A tile, or what is kept of each slice; behind results the scratch memory of the slice that a block is of.
    assert 0 < max(small_blocks) <= max(BLOCK, x.size // shape[axis] * 64) + 4 * progress_words(by_carry=False)
    assert first_difference(result, expected) is None


@pytest.mark.combinations
@pytest.mark.parametrize(("shape", "axis"), SHAPES[:5])
@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint16", "int64", "bool"])
def test_every_type_in_blocks(
    device: Device, shape: tuple[int, ...], axis: int, dtype: str, small_blocks: list[int]
) -> None:
    x = data(shape, dtype)

    def call() -> NDArray[Any]:
        return dmlgpu.cumulative_prod(x, axis=axis, device=device)

    expected = at_once(call)
    assert first_difference(call(), expected) is None
    swapped = x.astype(x.dtype.newbyteorder())
    assert first_difference(dmlgpu.cumulative_prod(swapped, axis=axis, device=device), expected) is None


def test_out_and_in_place(device: Device, small_blocks: list[int]) -> None:
    x = data((9, 9001), "float32")
    expected = at_once(lambda: dmlgpu.cumulative_sum(x, axis=1, device=device))
    out = np.zeros_like(x)
    assert dmlgpu.cumulative_sum(x, axis=1, out=out, device=device) is out
    assert first_difference(out, expected) is None
    wide = np.zeros((9, 9003), np.float32)
    dmlgpu.cumulative_sum(x, axis=1, out=wide[:, 1:-1], device=device)
    assert first_difference(wide[:, 1:-1].copy(), expected) is None
    assert not wide[:, 0].any()
    assert not wide[:, -1].any()
    fortran = np.asfortranarray(x)
    assert first_difference(dmlgpu.cumulative_sum(fortran, axis=1, device=device), expected) is None
    memory_of_both = np.zeros(x.size + 5000, np.float32)
    source, target = memory_of_both[: x.size].reshape(x.shape), memory_of_both[5000:].reshape(x.shape)
    source[:] = x
    dmlgpu.cumulative_sum(source, axis=1, out=target, device=device)
    assert first_difference(target, expected) is None
    y = x.copy()
    dmlgpu.cumulative_sum(y, axis=1, out=y, device=device)
    assert first_difference(y, expected) is None


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(70_001,), (9, 9001), (3, 1, 30_001)])
def test_roundings_in_blocks(device: Device, shape: tuple[int, ...], dtype: str, small_blocks: list[int]) -> None:
    x = data(shape, dtype) / np.asarray(3.7, dtype)
    result = dmlgpu.round(x, device=device)
    assert max(small_blocks) <= BLOCK
    assert first_difference(result, np.rint(x)) is None


def test_arrays_larger_than_any_buffer(monkeypatch: pytest.MonkeyPatch, device: Device) -> None:
    """Where the device has no room for the whole, and the whole is less than a few blocks."""
    monkeypatch.setattr(Device, "block_bytes", BLOCK)
    monkeypatch.setattr(functions, "_MAX_BLOCKS", 2**40)
    x = data((9, 9001), "float32")
    expected = dmlgpu.cumulative_sum(x, axis=1, device=device)
    device._memory.trim()
    real = memory.create_buffer

    def create(gpu_device: Any, nbytes: int, *args: Any, **options: Any) -> Any:
        if nbytes > 4 * BLOCK:
            raise DeviceMemoryError("the device has no room")
        return real(gpu_device, nbytes, *args, **options)

    monkeypatch.setattr(memory, "create_buffer", create)
    assert first_difference(dmlgpu.cumulative_sum(x, axis=1, device=device), expected) is None
    with pytest.raises(DeviceMemoryError, match="no room"):
        dmlgpu.cumulative_sum(x.T, axis=0, device=device)  # of another order in memory, which is copied as a whole


def test_a_layout_that_cannot_be_cut_is_the_reason(device: Device) -> None:
    """Where the whole has no room on the device; each way out is one."""
    shape, large = (1024, 256), np.ones(2**19, np.float32)
    x = large[: 2**18].reshape(shape)
    room = np.empty((1024, 512), np.float32)
    cases: list[tuple[NDArray[Any], NDArray[Any] | None, str, NDArray[Any], NDArray[Any] | None]] = [
        (np.broadcast_to(np.float32(1), shape), None, r"x has strides of \(0, 0\) bytes", x, None),
        (np.asfortranarray(x), None, r"x has strides of \(4, 4096\) bytes", x, None),
        (x, room[:, ::2], r"out has strides of \(2048, 8\) bytes", x, np.empty_like(x)),
        (x, large[2**17 : 2**17 + 2**18].reshape(shape), "out shares memory with x", x, np.empty_like(x)),
    ]
    ways = ["numpy.ascontiguousarray\\(x\\)", "numpy.ascontiguousarray\\(x\\)", "a C-ordered out", "an out with memory"]
    with Device(device.description, limits={"max-buffer-size": 2**19}) as small:
        for (wrong, out, reason, right, right_out), way in zip(cases, ways, strict=True):
            text = rf"^an array of 1048576 bytes is larger than .*, and {reason}, so that it is not cut .*: give {way}"
            for operate, options in ((dmlgpu.round, {}), (dmlgpu.cumulative_sum, {"axis": 0})):
                with pytest.raises(DeviceMemoryError, match=text):
                    operate(wrong, out=out, device=small, **options)
                assert operate(right, out=right_out, device=small, **options).shape == shape


def test_blocks_fit_the_largest_buffer(device: Device, modest_device: Device) -> None:
    assert modest_device.block_bytes <= modest_device.gpu_device.limits["max-buffer-size"] // 4
    assert device.block_bytes >= 2**20
