"""Scans and roundings of dask arrays have the bits of one call on the whole, whatever the chunks."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import xarray
from distributed import Client, LocalCluster, Nanny, Scheduler, SpecCluster

import dmlgpu
from dmlgpu.arrays import chunked
from dmlgpu.arrays.pieces import Treatment
from dmlgpu.errors import ArgumentError, ArrayTypeError, AxisError, DeviceError, DmlGpuError
from dmlgpu.planning.windows import TILE
from dmlgpu.reference import same_bits
from dmlgpu.runtime.device import Device

from .test_pieces import FIRST_DRAW, data

DRAWS = int(os.environ.get("DMLGPU_DASK_DRAWS", "20"))
"""Random cuttings; a thousand take some ten minutes."""
DTYPES = ["int8", "int32", "uint64", "float16", "float32", "float64"]
ADAPTER = os.environ.get("DMLGPU_ADAPTER")
"""What tasks open by name: an open device cannot be sent."""


def scan(operator: str, x: Any, **options: Any) -> Any:
    if operator == "sum":
        return dmlgpu.cumulative_sum(x, **options)
    options.pop("precision")
    return dmlgpu.cumulative_prod(x, **options)


@pytest.mark.combinations
@pytest.mark.parametrize("seed", range(FIRST_DRAW, FIRST_DRAW + DRAWS))
def test_any_chunks_have_the_bits_of_the_whole(device: dmlgpu.Device, seed: int) -> None:
    random = np.random.default_rng(seed)
    operator, dtype = str(random.choice(["sum", "product"])), str(random.choice(DTYPES))
    length = int(random.integers(1, 60_000))
    shape: tuple[int, ...] = [(length,), (length, 3), (2, length), (2, length, 3)][random.integers(4)]
    axis = shape.index(length)
    exclusive = bool(random.integers(2))
    options = {
        "axis": axis,
        "dtype": dtype,
        "exclusive": exclusive,
        "include_initial": not exclusive and bool(random.integers(2)),
        "reverse": bool(random.integers(2)),
        "precision": "compensated" if (operator, dtype) == ("sum", "float32") and random.integers(2) else "default",
    }
    x = data(random, dtype, shape, operator == "product")
    cut: list[int] = []
    while sum(cut) < length:
        cut.append(min(int(random.choice([1, 100, 4096, 5000, 9000, 30_000])), length - sum(cut)))
    chunks = tuple(tuple(cut) if i == axis else int(random.integers(1, size + 1)) for i, size in enumerate(shape))
    lazy = scan(operator, da.from_array(x, chunks=chunks), **options)
    assert isinstance(lazy, da.Array)
    with dask.config.set(scheduler="threads" if seed % 2 else "synchronous"):
        found = lazy.compute()
    expected = scan(operator, x, device=device, **options)
    assert (lazy.dtype, lazy.shape) == (expected.dtype, expected.shape)
    assert same_bits(np.ascontiguousarray(found), np.ascontiguousarray(expected))


PREDICTED = {
    "random sums": ("sum", lambda x: x),
    "an overflow": ("sum", lambda x: x * 3e36),
    "a value that is not a number": ("sum", lambda x: np.where(np.arange(len(x)) == 30_000, np.nan, x)),
    "infinities of both signs": ("sum", lambda x: x + np.where(np.arange(len(x)) % 40_000 == 9, -np.inf * x, 0)),
    "random products": ("product", lambda x: np.exp(0.01 * x)),
    "products that decay": ("product", lambda x: np.exp(0.01 * x - 0.001)),
    "products that grow": ("product", lambda x: -np.exp(0.01 * x + 0.001)),
    "products with a zero": ("product", lambda x: np.where(np.arange(len(x)) == 30_000, 0, np.exp(0.01 * x))),
}


@pytest.mark.combinations
@pytest.mark.parametrize("case", PREDICTED)
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_chunks_are_scanned_once(device: dmlgpu.Device, monkeypatch: pytest.MonkeyPatch, case: str, dtype: str) -> None:
    """The carries that are predicted are the true ones."""
    operator, made = PREDICTED[case]
    with np.errstate(all="ignore"):
        x = made(np.random.default_rng(3).standard_normal(200_000)).astype(dtype)
    scanned: list[int] = []
    real = chunked.scan_cube

    def counted(kind: Any, opened: Any, cube: Any, *rest: Any) -> Any:
        scanned.append(cube.shape[1])
        return real(kind, opened, cube, *rest)

    monkeypatch.setattr(chunked, "scan_cube", counted)
    precisions = ["default", "compensated"] if (operator, dtype) == ("sum", "float32") else ["default"]
    for precision in precisions:
        for two in (x, np.stack([x, x[::-1], np.ones_like(x)])):
            scanned.clear()
            lazy = scan(operator, da.from_array(two, chunks=11_000), axis=-1, precision=precision)
            found = lazy.compute(scheduler="synchronous")
            assert same_bits(found, scan(operator, two, axis=-1, device=device, precision=precision))
            # Infinity minus infinity is NaN with the processor's sign; float64 on words has another.
            has_other_nans = case == "infinities of both signs" and dtype == "float64" and not device.limits.float64
            assert sum(scanned) == 200_000 or has_other_nans


def test_long_slices_are_scanned_once(device: dmlgpu.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many spans; and where most tiles are exceptional, of which each has a fold that is finite."""
    x = np.random.default_rng(3).standard_normal((2, 3_000_000)).astype(np.float32)
    most = 0.9 * np.finfo(np.float32).max
    for begin in range(5, 3_000_000 - 23, 9_000):
        x[1, begin : begin + 23] = [-most, *[0] * 19, most, most, -most]
    expected = dmlgpu.cumulative_sum(x, axis=1, device=device)
    wrong: list[bool] = []
    real = chunked.is_same_carry
    monkeypatch.setattr(chunked, "is_same_carry", lambda *args: wrong.append(not real(*args)) or not wrong[-1])
    for slices in (slice(0, 1), slice(0, 2)):
        wrong.clear()
        found = dmlgpu.cumulative_sum(da.from_array(x[slices], chunks=(2, 100_000)), axis=1)
        assert same_bits(found.compute(scheduler="synchronous"), expected[slices])
        assert any(wrong) == (slices.stop == 2)


def test_a_wrong_prediction_is_put_right(device: dmlgpu.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that NumPy's additions make where a device's flush subnormal numbers."""
    x = np.random.default_rng(3).standard_normal(60_000).astype(np.float32)
    real = chunked.predicted
    monkeypatch.setattr(chunked, "predicted", lambda kind, records: [np.zeros_like(s) for s in real(kind, records)])
    for dtype in ("float32", "int32"):
        found = dmlgpu.cumulative_sum(da.from_array(x, chunks=9000), dtype=dtype).compute(scheduler="synchronous")
        assert same_bits(found, dmlgpu.cumulative_sum(x, device=device, dtype=dtype))


def test_no_task_is_larger_than_a_chunk_and_a_tile_at_each_side(device: dmlgpu.Device) -> None:
    x = da.zeros(200_000, chunks=10_001, dtype="float32")
    sizes = chunked._aligned(x.chunks[0], 200_000, False)
    assert all(size <= 10_001 + 2 * TILE for size in sizes)
    assert sum(sizes) == 200_000
    assert all(size % TILE == 0 for size in sizes[:-1])
    assert all(size % TILE == 0 for size in chunked._aligned(x.chunks[0], 200_000, True)[1:])
    result = dmlgpu.cumulative_sum(x)
    assert result.chunks == x.chunks
    assert dmlgpu.cumulative_sum(x, include_initial=True).chunks == ((1, *x.chunks[0]),)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("operator", ["sum", "product"])
def test_what_each_task_does_and_waits_for(operator: str, reverse: bool) -> None:
    """In the graph that runs: a chunk's records and its scan are two tasks, and a single task folds the states."""
    many = 5
    x = da.from_array(np.ones((4, many * TILE), np.float32), chunks=(2, TILE))
    (lazy,) = dask.optimize(scan(operator, x, axis=1, reverse=reverse, precision="default"))
    tasks = {key: task for key, task in dict(lazy.dask).items() if getattr(task, "func", None) is not None}

    check = chunked._checked_chunk.__name__
    checks = {key for key in dict(lazy.dask) if str(key[0]).startswith(check)}

    def of(function: Any, row: int) -> dict[int, set[Any]]:
        """What the tasks of a function wait for, by the turn of their chunk."""
        found = {key: task.dependencies for key, task in tasks.items() if task.func is function and key[1] == row}
        return {many - 1 - key[2] if reverse else key[2]: set(waits) for key, waits in found.items()}

    def keys(function: Any, row: int) -> set[Any]:
        return {key for key, task in tasks.items() if task.func is function and key[1] == row}

    for row in range(2):
        chunk = {many - 1 - key[2] if reverse else key[2]: key for key in checks if key[1] == row}
        assert chunk.keys() == set(range(many))
        (folded,) = keys(chunked.predicted, row)
        assert set(tasks[folded].dependencies) == keys(chunked.records_of_chunk, row)
        # Neither waits for another chunk's scan, so that all run side by side.
        assert of(chunked.records_of_chunk, row) == {turn: {chunk[turn]} for turn in range(many - 1)}
        first = {0: {chunk[0]}}
        assert of(chunked.scan_chunk, row) == first | {turn: {chunk[turn], folded} for turn in range(1, many)}
        chain = of(chunked._end, row) | of(chunked.end_of_chunk, row)
        assert chain.keys() == set(range(many - 1))
        for turn in range(1, many - 1):
            before = chunk[turn - 1][1:]
            assert {key for key in chain[turn] if str(key[0]).startswith("end-")} == {(f"end-{lazy.name}", *before)}
    names = [task.func.__name__ for key, task in tasks.items() if check not in str(key[0])]
    expected = {"records_of_chunk": many - 1, "predicted": 1, "scan_chunk": many, "_end": 1, "end_of_chunk": many - 2}
    expected |= {"_results": 1, "settled_chunk": many - 1}
    assert {name: names.count(name) for name in names} == {name: 2 * count for name, count in expected.items()}


def test_nothing_is_computed_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunked, "scan_cube", None)
    monkeypatch.setattr(chunked, "records_of_cube", None)
    x = da.from_array(np.ones(50_000, np.float32), chunks=7000)
    assert dmlgpu.cumulative_sum(x).shape == (50_000,)
    assert dmlgpu.round(x, mode="half_away").dtype == np.float32


@pytest.mark.parametrize("mode", ["half_even", "toward_zero", "half_away"])
def test_rounding(device: dmlgpu.Device, mode: Any) -> None:
    x = np.random.default_rng(4).uniform(-9, 9, (300, 70)).astype(np.float32)
    found = dmlgpu.round(da.from_array(x, chunks=(100, 33)), mode=mode).compute()
    assert same_bits(found, dmlgpu.round(x, mode=mode, device=device))


@pytest.mark.parametrize(
    ("chunks", "axis"),
    [
        (((5, 5), (4, 0)), 0),
        (((4096, 4904), (0, 4)), 0),
        (((4, 0), (5000, 4000)), 1),
        (((0, 4, 0), (5000, 4000)), 1),
        (((5, 0, 5), (2, 0, 2)), 0),
    ],
)
@pytest.mark.parametrize("options", [{}, {"exclusive": True, "reverse": True}, {"precision": "compensated"}])
def test_empty_chunks(device: Device, chunks: tuple[tuple[int, ...], ...], axis: int, options: dict[str, Any]) -> None:
    """Also along other axes, as a selection of columns leaves them."""
    x = np.random.default_rng(1).standard_normal([sum(sizes) for sizes in chunks]).astype(np.float32)
    found = scan("sum", da.from_array(x, chunks=-1).rechunk(chunks), axis=axis, **options).compute()
    assert same_bits(found, scan("sum", x, axis=axis, device=device, **options))


def test_empty_arrays() -> None:
    for shape in ((0,), (0, 3), (5000, 0)):
        x = da.zeros(shape, dtype="float32")
        assert dmlgpu.cumulative_sum(x, axis=0).compute().shape == shape
    assert dmlgpu.cumulative_sum(da.zeros((0,), dtype="int8"), include_initial=True).compute().tolist() == [0]


def test_xarray_maps_it(device: dmlgpu.Device) -> None:
    x = np.random.default_rng(5).standard_normal((30_000, 4)).astype(np.float32)
    table = xarray.DataArray(x, dims=("time", "place")).chunk(time=7000)
    found = xarray.apply_ufunc(dmlgpu.cumulative_sum, table, kwargs={"axis": 0}, dask="allowed")
    assert isinstance(found.data, da.Array)
    assert found.dims == ("time", "place")
    assert same_bits(found.to_numpy(), dmlgpu.cumulative_sum(x, axis=0, device=device))


# Processes


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("workers")
    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(**options, local_directory=str(folder)) as cluster, Client(cluster) as connected:
        yield connected


@pytest.mark.filterwarnings("ignore")
def test_processes_and_a_worker_that_dies(device: dmlgpu.Device, client: Any, tmp_path: Path) -> None:
    """Its tasks are done again by another one, with the same bits."""
    x = np.random.default_rng(6).standard_normal(300_000).astype(np.float32)
    x[150_000:200_000] *= 1e37
    chunks = da.from_array(x, chunks=17_000)
    killed = tmp_path / "killed"

    def deadly(chunk: Any, block_info: Any = None) -> Any:
        """Kill the process that has the tenth chunk, once."""
        if block_info and block_info[0]["chunk-location"] == (10,) and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))  # either ends a process of Windows
        return chunk

    lazy = dmlgpu.cumulative_sum(chunks.map_blocks(deadly, dtype=x.dtype), device=ADAPTER)
    found = client.compute(lazy, retries=3).result(timeout=120)
    assert killed.exists()
    assert same_bits(found, dmlgpu.cumulative_sum(x, device=device))


@pytest.mark.filterwarnings("ignore")
def test_a_worker_for_each_device(device: dmlgpu.Device) -> None:
    """Each worker's environment names its own, as for two GPUs of one machine."""
    kept = device.subnormals()
    alike = [adapter.index for adapter in dmlgpu.devices() if dmlgpu.Device(adapter.index).subnormals() == kept]
    chosen = (alike * 2)[:2]
    options: dict[str, Any] = {"nthreads": 1}
    workers = {
        i: {"cls": Nanny, "options": options | {"env": {"DMLGPU_ADAPTER": str(index)}}}
        for i, index in enumerate(chosen)
    }
    scheduler = {"cls": Scheduler, "options": {"dashboard": False, "dashboard_address": ":0"}}
    x = np.random.default_rng(8).standard_normal(200_000).astype(np.float32)
    with SpecCluster(workers=workers, scheduler=scheduler) as cluster, Client(cluster) as connected:
        summaries = connected.run(lambda: dmlgpu.default_device().summary)
        found = connected.compute(dmlgpu.cumulative_sum(da.from_array(x, chunks=17_000))).result(timeout=240)
    assert sorted(summaries.values()) == sorted(dmlgpu.devices()[index].summary for index in chosen)
    assert same_bits(found, dmlgpu.cumulative_sum(x, device=device))


# What does not fit


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: da.zeros(9000, dtype=object, chunks=1000), ArrayTypeError, r"^x has dtype object"),
        (lambda: da.zeros(9000, dtype="complex64"), ArrayTypeError, r"^x has dtype complex64"),
        (lambda: da.ones((3, 9000)), AxisError, r"^axis=None needs an array of 1 dimension"),
        (lambda: (lambda y: y[y > 0])(da.ones(9000)), ArgumentError, r"^x has chunks of unknown size \(nan\): call"),
        (lambda: da.ones((1,) * 8 + (9000,)), ArgumentError, r"^x has 9 dimensions; at most 8 are supported: reshape"),
        (lambda: da.ma.masked_less(da.ones(9000), 0), ArrayTypeError, r"^x has chunks of masked arrays, .*: fill them"),
        (lambda: dask.delayed(np.ones)(3), ArrayTypeError, r"^x is .*: of dask's collections only arrays are taken$"),
    ],
)
def test_arrays_that_do_not_fit(make: Any, error: type[DmlGpuError], text: str) -> None:
    with pytest.raises(error, match=text):
        dmlgpu.cumulative_sum(make())


def test_masked_chunks_where_numpy_would_drop_the_masks() -> None:
    x = da.ma.masked_equal(da.arange(9, chunks=4), 2)
    for name, call in {
        "block": lambda: dmlgpu.Scan("sum", axis=0).push(x),
        "x": lambda: dmlgpu.asarray(x),
        r"x\[0\]": lambda: dmlgpu.cumulative_sum([x, x], axis=1),
    }.items():
        with pytest.raises(ArrayTypeError, match=rf"^{name} has chunks of masked arrays, .*filled\({name}, 0\)$"):
            call()


@pytest.mark.parametrize("operate", [dmlgpu.cumulative_sum, dmlgpu.round])
def test_masked_chunks_that_dask_takes_for_others(operate: Any) -> None:
    """Where only the tasks see what the chunks are."""
    chunk = dask.delayed(np.ma.masked_less)(np.arange(9000.0), 3)
    x = da.from_delayed(chunk, (9000,), meta=np.empty(0))
    with pytest.raises(ArrayTypeError, match=r"^x has chunks of masked arrays"):
        operate(x).compute(scheduler="synchronous")


@pytest.mark.parametrize("operate", [dmlgpu.cumulative_sum, dmlgpu.cumulative_prod, dmlgpu.round])
@pytest.mark.parametrize("rows", [2000, 4096])
@pytest.mark.parametrize(
    ("function", "text"),
    [
        (
            lambda b: b[b > 0],
            r"^chunk has shape \(\d+,\) while x\.chunks says \(\d+, 2\): give chunks=",
        ),
        (
            lambda b: b[:, :1],
            r"^chunk has shape \(\d+, 1\) while x\.chunks says \(\d+, 2\): give chunks= to",
        ),
        (lambda b: b[1:], r"^chunk has shape .*: give chunks= to map_blocks, or call compute_chunk_sizes\(\)$"),
        (lambda b: np.concatenate([b, b]), r"^chunk has shape .*: give chunks= to map_blocks, or call"),
        (lambda b: b.tolist(), r"^chunk is .* of type list while x\.chunks says an array of shape \(\d+, 2\): return"),
    ],
)
def test_chunks_of_other_shapes_than_dask_believes(operate: Any, rows: int, function: Any, text: str) -> None:
    x = da.zeros((9000, 2), chunks=(rows, 2)).map_blocks(function, meta=np.empty((0, 0)))
    options = {} if operate is dmlgpu.round else {"axis": 0}
    with pytest.raises(ArgumentError, match=text):
        operate(x, **options).compute(scheduler="synchronous")


@pytest.mark.parametrize("operate", [partial(dmlgpu.cumulative_sum, axis=0), dmlgpu.round])
def test_chunks_of_another_type_than_dask_believes(device: dmlgpu.Device, operate: Any) -> None:
    """They are converted to the one that it believes, so that the result has the type it promises."""
    x = da.ones((9000,), chunks=2000, dtype="float64").map_blocks(lambda b: 1.5 * b, dtype="float32")
    promised = operate(x)
    found = promised.compute(scheduler="synchronous")
    assert promised.dtype == found.dtype == np.float32
    assert found.tolist() == operate(np.full(9000, 1.5, np.float32)).tolist()


def test_chunks_whose_sizes_were_computed(device: dmlgpu.Device) -> None:
    x = da.arange(9000, chunks=2000).map_blocks(lambda b: b[b % 2 > 0], chunks=((np.nan,) * 5,))
    found = dmlgpu.cumulative_sum(x.compute_chunk_sizes()).compute(scheduler="synchronous")
    assert found.tolist() == np.cumsum(np.arange(1, 9000, 2)).tolist()
    assert dmlgpu.round(da.from_array(np.array(1.5))).compute(scheduler="synchronous") == 2


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"out": np.zeros(9000)}, ArrayTypeError, r"^out cannot be given for a dask array"),
        ({"axis": 1}, AxisError, r"^axis 1 is out of range"),
        ({"dtype": "bool"}, ArrayTypeError, r"^dtype is bool"),
        ({"precision": "compensated"}, ArgumentError, r"^precision is 'compensated'"),
        ({"exclusive": 2}, ArrayTypeError, r"^exclusive is 2"),
    ],
)
def test_arguments(options: dict[str, Any], error: type[DmlGpuError], text: str) -> None:
    with pytest.raises(error, match=text):
        dmlgpu.cumulative_sum(da.ones(9000, chunks=2000), **options)


def test_devices_that_cannot_be_sent_to_workers(device: dmlgpu.Device) -> None:
    for wrong in (device, True, 1.5):
        with pytest.raises(ArrayTypeError, match=r"^device is .*, which cannot be sent to dask's workers: give a part"):
            dmlgpu.cumulative_sum(da.ones(9000, chunks=2000), device=wrong)


def test_a_device_by_an_index_of_numpy() -> None:
    lazy = dmlgpu.cumulative_sum(da.ones(9000, chunks=2000), device=np.int64(0))
    assert lazy.compute(scheduler="synchronous")[-1] == 9000


def test_a_rounding_in_another_byte_order_says_what_it_gives() -> None:
    lazy = dmlgpu.round(da.from_array(np.array([0.5, 1.5, 2.5], ">f4"), chunks=2))
    assert lazy.dtype.isnative
    assert lazy.compute().dtype == lazy.dtype == np.float32
    assert lazy.compute().tolist() == [0, 2, 2]


def test_a_rounding_of_bool_is_refused_before_it_is_computed() -> None:
    with pytest.raises(ArrayTypeError, match=r"^x has dtype bool, which has nothing to round"):
        dmlgpu.round(da.ones(9000, dtype=bool))


def test_workers_that_treat_subnormals_in_different_ways_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = iter([True, False] * 100)
    monkeypatch.setattr(Treatment, "of", lambda *_: Treatment("a device", {"sum": next(kept)}))
    x = da.from_array(np.ones(50_000, np.float32), chunks=9000)
    with pytest.raises(
        DeviceError, match=r"^the scan so far was computed on 'a device', which .*, and 'a device', which"
    ):
        dmlgpu.cumulative_sum(x).compute(scheduler="synchronous")
