"""DeviceArray: data on the device, its views, and the ways in and out."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import re
from collections import UserList, deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes

import dmlgpu
from dmlgpu import reference
from dmlgpu.errors import (
    ArgumentError,
    ArrayIndexError,
    ArrayTypeError,
    AxisError,
    DeviceReleasedError,
    EventLoopError,
    ReleasedArrayError,
)

from .samples import DTYPES
from .samples import every_kind as sample
from .views import view_steps

ALL_DTYPES = [*DTYPES, "bool"]


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (3, 0, 2), (3, 5), (2, 1, 3, 1, 2, 1, 2, 3)])
def test_there_and_back(device: dmlgpu.Device, dtype: str, shape: tuple[int, ...]) -> None:
    x = sample(dtype, shape)
    array = dmlgpu.asarray(x, device)
    assert (array.shape, array.dtype, array.ndim, array.size) == (x.shape, x.dtype, x.ndim, x.size)
    assert (array.nbytes, array.itemsize) == (x.nbytes, x.itemsize)
    assert array.strides == x.strides or x.size == 0
    assert array.device is device
    assert reference.first_difference(array.numpy(), x) is None
    assert array.numpy().flags.c_contiguous


@pytest.mark.parametrize("dtype", ["uint8", "float16", "int32", "float64"])
@pytest.mark.parametrize("side", [5, 300])  # below and above what is read back with its gaps
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.T,
        lambda x: x[::-1, ::-1],
        lambda x: x[1:, 1:],
        lambda x: x[1:],
        lambda x: x[:, 3],
        lambda x: x[::2, ::-3],
        lambda x: x[-1, 1:],
        lambda x: x[2, 3],
        lambda x: x[None, ..., None],
    ],
)
def test_readback_of_views(device: dmlgpu.Device, dtype: str, side: int, view: Any) -> None:
    x = sample(dtype, (side, side + 1))
    result = view(dmlgpu.asarray(x, device)).numpy()
    assert reference.first_difference(result, np.asarray(view(x))) is None
    assert result.flags.c_contiguous
    assert result.flags.aligned
    assert result.flags.writeable


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_random_views(device: dmlgpu.Device, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(ALL_DTYPES))
    x = sample(dtype, data.draw(array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=6)))
    array = dmlgpu.asarray(x, device)
    for step in data.draw(view_steps(x.shape)):
        x, array = step(x), step(array)
    assert reference.first_difference(array.numpy(), x) is None
    assert reference.first_difference(array.copy().numpy(), x) is None
    assert array.copy().strides == np.empty(x.shape, x.dtype).strides or x.size == 0


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_random_ndarrays(device: dmlgpu.Device, data: st.DataObject) -> None:
    x = sample("int16", data.draw(array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=6)))
    for step in data.draw(view_steps(x.shape)):
        x = step(x)
    assert reference.first_difference(dmlgpu.asarray(x, device).numpy(), x) is None


@pytest.mark.parametrize(
    ("x", "strides"),
    [
        (np.zeros((3, 4), np.int16, order="F"), (2, 6)),
        (np.zeros((3, 4), np.int16)[::-1], (-8, 2)),
        (np.broadcast_to(np.int16(7), (3, 4)), (0, 0)),
        (np.zeros((3, 8), np.int16)[:, ::2], (8, 2)),
    ],
)
def test_memory_order_is_kept(device: dmlgpu.Device, x: np.ndarray[Any, Any], strides: tuple[int, ...]) -> None:
    array = dmlgpu.asarray(x, device)
    assert array.strides == strides
    np.testing.assert_array_equal(array.numpy(), x)


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ([[1, 2], [3, 4]], np.array([[1, 2], [3, 4]])),
        (2.5, np.array(2.5)),
        (True, np.array(True)),
        (range(3), np.arange(3)),
        (np.float16(1.5), np.array(1.5, np.float16)),
        (np.arange(3, dtype=">i4"), np.arange(3, dtype=np.int32)),
        (np.array([1.5, -2], ">f8"), np.array([1.5, -2])),
        (np.ma.masked_array([1, 2], [False, False]), np.array([1, 2])),
    ],
)
def test_array_likes(device: dmlgpu.Device, x: Any, expected: np.ndarray[Any, Any]) -> None:
    assert reference.first_difference(dmlgpu.asarray(x, device).numpy(), expected) is None


def test_asarray_of_a_device_array_is_itself(device: dmlgpu.Device) -> None:
    array = dmlgpu.asarray([1, 2], device)
    assert dmlgpu.asarray(array) is array
    assert dmlgpu.asarray(array, device) is array


def test_views_share_memory_and_copies_do_not(device: dmlgpu.Device) -> None:
    array = dmlgpu.asarray(np.arange(6, dtype=np.float32), device)
    view, copied = array.reshape(2, 3).T, array.copy()
    dmlgpu.cumulative_sum(array, out=array)
    np.testing.assert_array_equal(view.numpy(), np.cumsum(np.arange(6)).reshape(2, 3).T)
    np.testing.assert_array_equal(copied.numpy(), np.arange(6))
    for copier in (copy.copy, copy.deepcopy):
        assert copier(array).device is device


def test_reshape_copies_only_where_it_must(device: dmlgpu.Device) -> None:
    array = dmlgpu.asarray(np.arange(12, dtype=np.int32).reshape(3, 4), device)
    viewed, copied = array.reshape(-1), array.T.reshape(-1)
    assert viewed.strides == (4,)
    array.release()
    assert viewed.released
    np.testing.assert_array_equal(copied.numpy(), np.arange(12).reshape(3, 4).T.reshape(-1))


def test_transpose_and_reshape_take_integers_or_a_tuple(device: dmlgpu.Device) -> None:
    array = dmlgpu.asarray(np.zeros((2, 3, 4), np.int8), device)
    assert array.T.shape == array.transpose().shape == array.transpose(None).shape == (4, 3, 2)
    assert array.transpose(0, -1, 1).shape == array.transpose((0, 2, 1)).shape == (2, 4, 3)
    assert array.reshape(4, -1).shape == array.reshape([4, 6]).shape == (4, 6)
    assert array[0, 0, 0].reshape(()).shape == array[0, 0, 0].T.shape == ()
    assert array[0, 0, 0].broadcast_to(5).shape == (5,)


@pytest.mark.parametrize("source", ALL_DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_astype(device: dmlgpu.Device, source: str, target: str) -> None:
    x = sample(source, (5, 40))
    if np.dtype(source).kind == "f":
        edges = [v for dtype in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8") for v in _limits(dtype)]
        with np.errstate(over="ignore"):
            x = np.concatenate([x.ravel(), np.array(edges).astype(source)])
    result = dmlgpu.asarray(x, device).astype(target).numpy()
    assert reference.first_difference(result, reference.convert(x, target)) is None


def _limits(dtype: str) -> list[float]:
    info = np.iinfo(dtype)
    return [step for limit in (float(info.min), float(info.max)) for step in (limit - 1, limit - 0.5, limit, limit + 1)]


def test_astype_of_a_strided_view(device: dmlgpu.Device) -> None:
    x = sample("int16", (300, 7))
    result = dmlgpu.asarray(x, device)[::-3, 1:].T.astype("float32").numpy()
    assert reference.first_difference(result, x[::-3, 1:].T.astype(np.float32)) is None


def test_astype_copies_unless_told_otherwise(device: dmlgpu.Device) -> None:
    array = dmlgpu.asarray([1, 2], device)
    assert array.astype("int64") is not array
    assert array.astype("int64", copy=False) is array
    assert array.astype(">i8", copy=False) is array
    flags = dmlgpu.asarray([True, False], device)
    assert flags.astype(bool).numpy().tolist() == [True, False]


def test_array_protocol(device: dmlgpu.Device) -> None:
    array = dmlgpu.asarray([1.5, 2.5], device)
    assert np.asarray(array).tolist() == [1.5, 2.5]
    assert np.asarray(array, np.float32).dtype == np.float32
    assert np.array(array[::-1]).tolist() == [2.5, 1.5]
    with pytest.raises(ArgumentError, match="copy is False"):
        np.asarray(array, copy=False)


def test_sequence_protocol(device: dmlgpu.Device) -> None:
    array = dmlgpu.asarray([[1, 2], [3, 4]], device)
    assert len(array) == 2
    assert [row.numpy().tolist() for row in array] == [[1, 2], [3, 4]]


def test_numpy_async(device: dmlgpu.Device) -> None:
    x = np.arange(300 * 300, dtype=np.int16).reshape(300, 300)
    array = dmlgpu.asarray(x, device)
    empty = array[:0]

    async def several() -> list[Any]:
        return await asyncio.gather(
            *(part.numpy_async() for part in (array, array.T, array[::7, 5], empty, array[1, 1:]))
        )

    for result, expected in zip(asyncio.run(several()), (x, x.T, x[::7, 5], x[:0], x[1, 1:]), strict=True):
        assert reference.first_difference(result, expected) is None


def test_memory_is_allocated_only_where_needed(device: dmlgpu.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    array = dmlgpu.asarray(np.ones((400, 100), np.float32), device)
    row = array[0]
    sizes: list[int] = []

    def count(name: str) -> None:
        allocate = getattr(type(device), name)

        def counted(self: Any, nbytes: int, **kwargs: Any) -> Any:
            sizes.append(nbytes)
            return allocate(self, nbytes, **kwargs)

        monkeypatch.setattr(type(device), name, counted)

    count("allocate")
    count("recycled")
    uses: list[tuple[list[int], Any]] = [
        ([], lambda: dmlgpu.cumulative_sum(array, axis=0, out=array)),
        ([], lambda: dmlgpu.round(array[:, ::2][1:2, ::-1], out=array[:, ::2][1:2, ::-1])),
        ([], lambda: dmlgpu.cumulative_sum(array[:200], axis=1, out=array[200:])),
        ([1200], lambda: dmlgpu.cumulative_sum(array[:3], axis=1, out=array[1:4])),
        ([16], lambda: dmlgpu.cumulative_sum(array[:4, 0])),
        ([], lambda: array[200:].numpy()),
        ([], lambda: array[:, 99].reshape(20, 20)[:2].numpy()),
        ([], lambda: row.broadcast_to((10000, 100)).numpy()),
        ([160000], lambda: array.T.numpy()),
        ([4000], lambda: dmlgpu.round(np.ones(1000, np.float32), device=device)),
        ([4000, 4000], lambda: dmlgpu.cumulative_sum(np.ones(1000, np.float32), device=device)),
        ([4000, 8000], lambda: dmlgpu.cumulative_sum(np.ones(1000, np.int32), device=device)),
    ]
    for expected, use in uses:
        sizes.clear()
        use()
        assert sizes == expected


def test_release(device: dmlgpu.Device) -> None:
    with dmlgpu.asarray([1, 2, 3], device) as array:
        view = array[1:]
        assert not array.released
    assert array.released
    assert view.released
    assert array.shape == (3,)
    array.release()  # again
    uses: list[Any] = [
        array.numpy,
        view.numpy,
        array.copy,
        lambda: array[0],
        lambda: array.T,
        lambda: np.asarray(array),
        lambda: asyncio.run(array.numpy_async()),
        lambda: dmlgpu.cumulative_sum(array),
        lambda: dmlgpu.round(view),
        lambda: dmlgpu.cumulative_sum(dmlgpu.asarray([1, 2], device), out=view),
    ]
    for use in uses:
        with pytest.raises(ReleasedArrayError, match="released"):
            use()
    assert dmlgpu.cumulative_sum([1, 2], device=device).tolist() == [1, 3]


class Holder:
    """An object in a cycle, which the garbage collector ends; its finalizers come before ``__del__``."""

    def __init__(self, array: dmlgpu.DeviceArray, end: Callable[[dmlgpu.DeviceArray], None]) -> None:
        self.array, self.end, self.me = array, end, self

    def __del__(self) -> None:
        self.end(self.array)


def test_memory_goes_back_once(device: dmlgpu.Device) -> None:
    """However an array in a cycle is released: two arrays with the same memory would change each other."""
    x = np.ones(100_000, np.float32)
    for end in (lambda array: array.release(), lambda array: None):
        Holder(dmlgpu.asarray(x, device), end)
        gc.collect()
        a, b = dmlgpu.asarray(x, device), dmlgpu.asarray(2 * x, device)
        assert (a.numpy() == 1).all()
        assert (b.numpy() == 2).all()


def test_an_array_whose_memory_went_back_says_so(device: dmlgpu.Device) -> None:
    found: list[str] = []

    def use(array: dmlgpu.DeviceArray) -> None:
        try:
            found.append(str(dmlgpu.cumulative_sum(array)))
        except ReleasedArrayError as error:
            found.append(str(error))

    Holder(dmlgpu.asarray(np.ones(100_000, np.float32), device), use)
    gc.collect()
    assert len(found) == 1
    assert "was released" in found[0]


def test_entering_what_is_released(device: dmlgpu.Device) -> None:
    array = dmlgpu.asarray([1], device)
    array.release()
    with pytest.raises(ReleasedArrayError, match="released"), array:
        pass
    with dmlgpu.Device(device.description) as other:
        there = dmlgpu.asarray([1], other)
    with pytest.raises(DeviceReleasedError, match=r"open another with dmlgpu\.Device\(\)"), other:
        pass
    with pytest.raises(DeviceReleasedError, match="cannot be used"):
        dmlgpu.asarray(there)


def test_awaiting_without_an_event_loop(device: dmlgpu.Device) -> None:
    array = dmlgpu.asarray([1, 2], device)
    coroutine = array.numpy_async()
    with pytest.raises(EventLoopError, match=r"no event loop runs to wait in: use asyncio\.run, or"):
        coroutine.send(None)
    assert asyncio.run(array.numpy_async()).tolist() == [1, 2]


def test_formats(device: dmlgpu.Device) -> None:
    array = dmlgpu.asarray([1, 2], device)
    assert f"{array}" == repr(array)
    with pytest.raises(ArrayTypeError, match=r"no format '\.2f': read the elements back with \.numpy\(\)"):
        f"{array:.2f}"


@pytest.mark.parametrize(
    "options",
    [
        {"threshold": 2, "edgeitems": 1},
        {"threshold": 0, "edgeitems": 0},
        {"linewidth": 5},
        {"sign": " "},
        {"formatter": {"int": lambda value: f"{value} m"}},
        {"formatter": {"int": lambda value: f"({value}, 0)"}},
    ],
)
def test_what_is_written_of_elements_with_numpy_s_print_options(device: dmlgpu.Device, options: Any) -> None:
    few = dmlgpu.asarray([[1, 2, 3], [4, 5, 6]], device)
    many = dmlgpu.asarray(np.arange(1, 21), device)
    write = options.get("formatter", {"int": str})["int"]
    one, two, three, four, five, six, *_, before, nearly, last = map(write, range(1, 21))
    with np.printoptions(**options):
        assert (
            re.sub(r"\s+", " ", repr(few))
            .replace("[ ", "[")
            .startswith(f"DeviceArray([[{one}, {two}, {three}], [{four}, {five}, {six}]], shape=")
        )
        assert repr(many).startswith(f"DeviceArray([{one}, {two}, {three}, ..., {before}, {nearly}, {last}], shape=")


def test_a_released_device(device: dmlgpu.Device) -> None:
    with dmlgpu.Device(device.description) as other:
        array = dmlgpu.asarray([1.0, 2.0], other)
        none = dmlgpu.asarray(np.empty(0), other)
    uses: list[Any] = [
        array.numpy,
        array.copy,
        none.copy,
        lambda: asyncio.run(array[::-1].numpy_async()),
        lambda: dmlgpu.round(array),
        lambda: dmlgpu.round(array, out=array),
        lambda: dmlgpu.asarray([1], other),
        lambda: dmlgpu.cumulative_sum([1], device=other),
    ]
    for use in uses:
        with pytest.raises(DeviceReleasedError, match=r"dmlgpu\.Device\(\)"):
            use()
    array.release()
    assert dmlgpu.cumulative_sum([1, 2], device=device).tolist() == [1, 3]


def test_arrays_of_two_devices(device: dmlgpu.Device) -> None:
    with dmlgpu.Device(device.description) as other:
        here, there = dmlgpu.asarray([1, 2], device), dmlgpu.asarray([3, 4], other)
        assert dmlgpu.asarray(there, device).device is device
        assert dmlgpu.asarray(there, device).numpy().tolist() == [3, 4]
        assert dmlgpu.cumulative_sum(there).device is other
        for call in (
            lambda: dmlgpu.cumulative_sum(here, device=other),
            lambda: dmlgpu.round(here, device=other),
            lambda: dmlgpu.cumulative_sum(here, out=there),
        ):
            with pytest.raises(ArgumentError, match="device"):
                call()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda a: a[6], ArrayIndexError, "index 6"),
        (lambda a: a[[0, 1]], ArrayIndexError, r"\.numpy\(\)"),
        (lambda a: a[a], ArrayIndexError, "an index is DeviceArray.* of type DeviceArray; only integers"),
        (lambda a: a[(None,) * 8], ArgumentError, "at most 8"),
        (lambda a: a.reshape(4), ArgumentError, "6 elements"),
        (lambda a: a.reshape("6"), ArrayTypeError, "shape"),
        (lambda a: a.transpose(0, 1), AxisError, "axis 1 is out of range for an array of 1 dimension: give -1 to 0$"),
        (lambda a: a.broadcast_to((6, 2)), ArgumentError, "broadcast"),
        (lambda a: a.broadcast_to((2**30, 6)), ArgumentError, r"2\^32-1"),
        (lambda a: a.astype(bool), ArrayTypeError, "bool"),
        (lambda a: a.astype("complex64"), ArrayTypeError, "complex64"),
        (lambda a: pickle.dumps(a), ArrayTypeError, "pickled"),
        (lambda a: bool(a), ArrayTypeError, "truth value"),
        (lambda a: len(a[0]), ArrayTypeError, "len"),
        (lambda a: iter(a[0]), ArrayTypeError, "iterated"),
        (lambda a: np.ones(6) + a, ArrayTypeError, "numpy.add"),
        (lambda a: np.equal(a, a), ArrayTypeError, "numpy.equal"),
        (lambda a: np.ones(6) == a, ArrayTypeError, "numpy.equal"),
        (lambda a: a + 1, ArrayTypeError, r"a DeviceArray has no operator \+: read .*\.numpy\(\)"),
        (lambda a: dmlgpu.asarray([1j], a.device), ArrayTypeError, "x has dtype complex128"),
        (lambda a: dmlgpu.asarray([None], a.device), ArrayTypeError, "x has dtype object"),
        (lambda a: dmlgpu.asarray("one", a.device), ArrayTypeError, "x has dtype <U3"),
        (lambda a: dmlgpu.asarray(np.zeros(2, "m8[s]"), a.device), ArrayTypeError, "timedelta64"),
        (lambda a: dmlgpu.asarray(np.zeros((1,) * 9), a.device), ArgumentError, "9 dimensions"),
        (lambda a: dmlgpu.asarray(np.broadcast_to(1, 2**32), a.device), ArgumentError, r"2\^32-1"),
        (
            lambda a: dmlgpu.asarray(np.ma.masked_array([1, 2], [True, False]), a.device),
            ArrayTypeError,
            r"1 masked element, .*filled\(0\)",
        ),
        (lambda a: dmlgpu.asarray([1], 1.5), ArrayTypeError, "device"),
    ],
)
def test_bad_use(device: dmlgpu.Device, call: Any, error: type[Exception], text: str) -> None:
    array = dmlgpu.asarray(np.arange(6, dtype=np.int32), device)
    with pytest.raises(error, match=text):
        call(array)
    assert dmlgpu.cumulative_sum(array).numpy().tolist() == [0, 1, 3, 6, 10, 15]


MASKED = np.ma.masked_array([3, 4], [False, True])


@pytest.mark.parametrize(
    ("x", "where"),
    [
        ([MASKED, [1, 2]], r"x\[0\]"),
        ([[1, 2], MASKED], r"x\[1\]"),
        (([1, 2], (3, 4), MASKED), r"x\[2\]"),
        ([np.array([1, 2]), MASKED], r"x\[1\]"),
        ([[MASKED]], r"x\[0\]\[0\]"),
        ([[[1, 2], [3, 4]], [[1, 2], MASKED]], r"x\[1\]\[1\]"),
        ([1.0, np.ma.masked], r"x\[1\]"),
        ([1, np.ma.masked_array(3, True)], r"x\[1\]"),
        ([[1.0, 2.0], [3.0, np.ma.masked_array(3.0, True)]], r"x\[1\]\[1\]"),
        ([1, 2, MASKED], r"x\[2\]"),
        (deque([MASKED, [1, 2]]), r"x\[0\]"),
        (UserList([[1, 2], UserList([3, np.ma.masked])]), r"x\[1\]\[1\]"),
        ([[1, 2], deque([MASKED])], r"x\[1\]\[0\]"),
        (deque([1.0, np.ma.masked]), r"x\[1\]"),
    ],
)
@pytest.mark.filterwarnings("ignore:Warning. converting a masked element:UserWarning")
def test_masked_elements_in_lists_are_refused(x: Any, where: str) -> None:
    text = rf"^{where} is a masked array with 1 masked element, .*{where}\.filled\(0\)$"
    with pytest.raises(ArrayTypeError, match=text):
        dmlgpu.cumulative_sum(x, axis=0)


class Made(Sequence[Any]):
    """Makes its members as they are asked for."""

    def __init__(self, masked: int) -> None:
        self.masked = masked

    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: Any) -> Any:
        if i >= 4:
            raise IndexError
        return [np.ma.masked_array([1, 2], [i == self.masked, False])]


class Untrue(UserList[Any]):
    """Is neither true nor false, which NumPy never asks."""

    def __bool__(self) -> bool:
        raise RuntimeError


def test_masked_elements_of_what_an_object_turns_into_are_refused() -> None:
    class Masked:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.ma.masked_array([1, 2], [False, True])

    with pytest.raises(ArrayTypeError, match=r"^x is a masked array with 1 masked element"):
        dmlgpu.cumulative_sum(Masked())


@pytest.mark.parametrize("masked", range(4))
def test_masked_elements_of_members_that_are_made_are_refused(masked: int) -> None:
    with pytest.raises(ArrayTypeError, match=rf"^x\[{masked}\]\[0\] is a masked array with 1 masked element"):
        dmlgpu.cumulative_sum(Made(masked), axis=0)


def test_odd_sequences_hide_no_masks() -> None:
    for x, where in (([Untrue([1, 2]), MASKED], 1), ([Untrue([MASKED]), MASKED], 0), (Untrue([[1, 2], MASKED]), 1)):
        with pytest.raises(ArrayTypeError, match=rf"^x\[{where}\].* is a masked array with 1 masked element"):
            dmlgpu.cumulative_sum(x, axis=0)


def test_lists_without_masked_elements_are_taken(device: dmlgpu.Device) -> None:
    unmasked = np.ma.masked_array([3, 4], [False, False])
    assert dmlgpu.cumulative_sum([[1, 2], unmasked], axis=0, device=device).tolist() == [[1, 2], [4, 6]]
    assert np.isnan(dmlgpu.cumulative_sum([[1.0], (np.nan,)], axis=0, device=device)).tolist() == [[False], [True]]
    endless: list[Any] = []
    endless.append(endless)
    deep: Any = [1]
    for _ in range(3000):
        deep = [deep]
    for x in (endless, deep):
        with pytest.raises((ArgumentError, ArrayTypeError), match=r"^x "):
            dmlgpu.cumulative_sum(x, axis=0)
