"""Every argument of every public callable, given every odd kind of value: taken, or refused by an error that names it.

The callables and their parameters come from `inspect`, so a new one without a row in `TABLE` fails. What a parameter
takes is said here a second time, independently of the package.
"""

from __future__ import annotations

import asyncio
import contextlib
import decimal
import fractions
import inspect
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wgpu

import dmlgpu
from dmlgpu.dtypes import by_name
from dmlgpu.errors import ArgumentError, ArrayTypeError, DmlGpuError
from dmlgpu.layout import Layout
from dmlgpu.planning.problem import Operator, scan_problem
from dmlgpu.runtime.device import devices, select_adapter

from .samples import DTYPES

X = np.arange(6, dtype=np.float32).reshape(2, 3)
NUMBERS = [*DTYPES, "bool"]


# Odd values


class LyingInt(int):
    """An int of 0 that says it is 1."""

    def __index__(self) -> int:
        return 1


class Raising:
    """Raises in whatever it is asked for."""

    def fail(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("hostile")

    __index__ = __array__ = __len__ = __iter__ = __getitem__ = __bool__ = __eq__ = __hash__ = __repr__ = fail
    __int__ = __float__ = __str__ = fail


class RaisingSequence(Sequence[int]):
    """A sequence of 2 that cannot be read."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: Any) -> Any:
        raise RuntimeError("hostile")


class RaisingMapping(Mapping[str, int]):
    """A mapping that cannot be read."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, key: Any) -> Any:
        raise RuntimeError("hostile")

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("hostile")


class WrongArray:
    """Says it is an array and is none."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return "no array"


def released(device: dmlgpu.Device) -> dmlgpu.DeviceArray:
    array = dmlgpu.asarray([1.0, 2.0], device)
    array.release()
    return array


ODD: dict[str, Callable[[dmlgpu.Device], Any]] = {
    "None": lambda d: None,
    "True": lambda d: True,
    "False": lambda d: False,
    "numpy True": lambda d: np.True_,
    "numpy False": lambda d: np.False_,
    "0": lambda d: 0,
    "1": lambda d: 1,
    "2": lambda d: 2,
    "-1": lambda d: -1,
    "-3": lambda d: -3,
    "2**31": lambda d: 2**31,
    "2**63": lambda d: 2**63,
    "10**5000": lambda d: 10**5000,
    "-(10**5000)": lambda d: -(10**5000),
    "int8": lambda d: np.int8(1),
    "uint64": lambda d: np.uint64(2**64 - 1),
    "a lying int": lambda d: LyingInt(0),
    "0.0": lambda d: 0.0,
    "1.5": lambda d: 1.5,
    "nan": lambda d: float("nan"),
    "inf": lambda d: float("inf"),
    "float32": lambda d: np.float32(1),
    "1j": lambda d: 1j,
    "Decimal": lambda d: decimal.Decimal(1),
    "Fraction": lambda d: fractions.Fraction(1, 2),
    "no text": lambda d: "",
    "text": lambda d: "nonsense",
    "digits": lambda d: "9" * 5000,
    "text with a zero": lambda d: "float32\0",
    "half_even": lambda d: "half_even",
    "int32 by name": lambda d: "int32",
    "numpy text": lambda d: np.str_("no"),
    "no bytes": lambda d: b"",
    "bytes": lambda d: b"\x01\x02",
    "bytearray": lambda d: bytearray(b"\x01"),
    "memoryview": lambda d: memoryview(b"\x01\x02"),
    "[]": lambda d: [],
    "()": lambda d: (),
    "{}": lambda d: {},
    "set": lambda d: {1},
    "[1]": lambda d: [1],
    "[1.5]": lambda d: [1.5],
    "(None,)": lambda d: (None,),
    "(2, 3)": lambda d: (2, 3),
    "(3, -1)": lambda d: (3, -1),
    "[True, 6]": lambda d: [True, 6],
    "[10**5000]": lambda d: [10**5000, 0],
    "nine": lambda d: (1,) * 9,
    "ragged": lambda d: [[1], [1, 2]],
    "a list in itself": lambda d: itself(),
    "range": lambda d: range(1, 3),
    "slice": lambda d: slice(1, None, 2),
    "slice of step 0": lambda d: slice(None, None, 0),
    "slice of floats": lambda d: slice(0.0, 2.0),
    "slice of a huge step": lambda d: slice(None, None, 10**5000),
    "Ellipsis": lambda d: ...,
    "NotImplemented": lambda d: NotImplemented,
    "a type": lambda d: int,
    "a function": lambda d: print,
    "a generator": lambda d: (i for i in range(2)),
    "object": lambda d: object(),
    "0-d array": lambda d: np.array(1),
    "0-d bool array": lambda d: np.array(True),
    "0-d float array": lambda d: np.array(1.5),
    "array": lambda d: np.array([1, 2]),
    "empty array": lambda d: np.empty(0),
    "array of 9 dimensions": lambda d: np.zeros((1,) * 9),
    "array of too many elements": lambda d: np.broadcast_to(np.int8(1), 2**33),
    "empty array of huge sizes": lambda d: np.empty((0, 2**40)),
    "array of objects": lambda d: np.array([1, None]),
    "structured array": lambda d: np.zeros(2, "i4,f4"),
    "array of dates": lambda d: np.zeros(2, "M8[s]"),
    "array of text": lambda d: np.array(["1", "2"]),
    "array of strings": lambda d: np.array(["1", "2"], np.dtypes.StringDType()),
    "swapped array": lambda d: np.array([1, 2], ">i4"),
    "longdouble array": lambda d: np.ones(2, np.clongdouble),
    "read-only array": lambda d: np.broadcast_to(np.float32(1), (2, 3)),
    "matrix": lambda d: np.ones((1, 2)).view(np.matrix),
    "record array": lambda d: np.zeros(2, "i4,f4").view(np.recarray),
    "masked": lambda d: np.ma.masked,
    "masked array": lambda d: np.ma.masked_array([1, 2], [0, 1]),
    "masked rows": lambda d: [np.ma.masked_array([1, 2], [0, 1]), np.ma.masked_array([1, 2], [0, 1])],
    "datetime64": lambda d: np.datetime64("NaT", "s"),
    "dtype": lambda d: np.dtype("float64"),
    "swapped dtype": lambda d: np.dtype(">i4"),
    "structured dtype": lambda d: np.dtype("i4,f4"),
    "what raises": lambda d: Raising(),
    "list of what raises": lambda d: [Raising()],
    "a sequence that raises": lambda d: RaisingSequence(),
    "a mapping that raises": lambda d: RaisingMapping(),
    "a wrong array": lambda d: WrongArray(),
    "device array": lambda d: dmlgpu.asarray([1.0, 2.0], d),
    "released array": released,
    "list of released arrays": lambda d: [released(d)],
    "Device": lambda d: d,
    "gpu device": lambda d: d.gpu_device,
    "limits": lambda d: {"max-buffer-size": 2**28},
    "wrong limits": lambda d: {"max-buffer-size": -1},
    "text limits": lambda d: {"max-buffer-size": "1"},
    "huge limits": lambda d: {"max-buffer-size": 2**70},
    "unknown limits": lambda d: {"max-nonsense": 1},
    "limits without names": lambda d: {1: 2},
}


def itself() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


# What each kind of parameter takes; each rule gets the value and the device.

Rule = Callable[[Any, dmlgpu.Device], bool]


def as_int(value: Any) -> int | None:
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return operator.index(value)
    except Exception:
        return None


def as_ints(value: Any) -> tuple[int, ...] | None:
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iu" and value.size < 10:
        value = value.tolist()
    if isinstance(value, list | tuple | range | memoryview):
        items = [as_int(item) for item in value]
        return None if None in items else tuple(items)  # type: ignore[arg-type]
    one = as_int(value)
    return None if one is None else (one,)


def is_flag(value: Any, _: dmlgpu.Device) -> bool:
    return isinstance(value, bool | np.bool_)


def is_axis_of_two(value: Any, _: dmlgpu.Device) -> bool:
    return as_int(value) in (-2, -1, 0, 1)


def is_mode(value: Any, _: dmlgpu.Device) -> bool:
    return isinstance(value, str) and str(value) == "half_even"


def is_nothing(value: Any, _: dmlgpu.Device) -> bool:
    return value is None


def never(value: Any, _: dmlgpu.Device) -> bool:
    return False


def anything(value: Any, _: dmlgpu.Device) -> bool:
    return True


def dtype_rule(*, none: bool = False, boolean: bool = False, swapped: bool = True) -> Rule:
    def rule(value: Any, _: dmlgpu.Device) -> bool:
        if value is None:
            return none
        try:
            dtype = np.dtype(value)
        except Exception:
            return False
        fits = native_name(dtype) in NUMBERS and dtype.subdtype is None and (swapped or dtype.isnative)
        return fits and (boolean or dtype != np.bool_)

    return rule


def native_name(dtype: np.dtype[Any]) -> str:
    return dtype.name if dtype.kind in "biuf" else "none"


def is_numpy_dtype(value: Any, _: dmlgpu.Device) -> bool:
    try:
        X.astype(value)
    except Exception:
        return False
    return True


def array_rule(fits: Callable[[np.ndarray[Any, Any]], bool]) -> Rule:
    def rule(value: Any, _: dmlgpu.Device) -> bool:
        if isinstance(value, dmlgpu.DeviceArray):
            return not value.released and fits(value.numpy())
        if any(isinstance(part, np.ma.MaskedArray) for part in (value, *(value if isinstance(value, list) else ()))):
            return False
        if isinstance(value, np.ndarray) and (value.size > 2**32 or max(value.shape, default=0) > 2**32):
            return False
        try:
            array = np.asarray(value)
        except Exception:
            return False
        return native_name(array.dtype) in NUMBERS and array.ndim <= 8 and fits(array)

    return rule


def is_device(value: Any, device: dmlgpu.Device) -> bool:
    if value is None or value is device or value is device.gpu_device or (isinstance(value, str) and value == ""):
        return True
    return as_int(value) == device.description.index


def shape_rule(fits: Callable[[tuple[int, ...]], bool]) -> Rule:
    def rule(value: Any, _: dmlgpu.Device) -> bool:
        sizes = as_ints(value)
        return sizes is not None and fits(sizes)

    return rule


def holds_six(sizes: tuple[int, ...]) -> bool:
    known = int(np.prod([size for size in sizes if size != -1], dtype=object))
    return (
        len(sizes) <= 8
        and min(sizes, default=0) >= -1
        and sizes.count(-1) < 2
        and (known == 6 if -1 not in sizes else known > 0 and 6 % known == 0)
    )


def is_index(value: Any, _: dmlgpu.Device) -> bool:
    """Whether it selects from 2 x 3 elements, as NumPy says, but for kinds of indices that make no views."""
    parts = value if isinstance(value, tuple) else (value,)
    for part in parts:
        inner = (part.start, part.stop, part.step) if isinstance(part, slice) else (part,)
        if any(one is not None and one is not ... and as_int(one) is None for one in inner):
            return False
    try:
        return X[value].ndim <= 8
    except Exception:
        return False


def count_rule(most: int) -> Rule:
    def rule(value: Any, _: dmlgpu.Device) -> bool:
        number = as_int(value)
        return number is not None and 0 <= number <= most

    return rule


# The callables


@dataclass(frozen=True)
class Bench:
    """What the calls below need, made anew for each."""

    device: dmlgpu.Device
    array: dmlgpu.DeviceArray = field(init=False)
    buffer: Any = field(init=False)
    gpu_buffer: Any = field(init=False)
    problem: Any = field(init=False)

    def __post_init__(self) -> None:
        layout = Layout.packed((8,))
        usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
        values = {
            "array": dmlgpu.asarray(X, self.device),
            "buffer": self.device.allocate(32),
            "gpu_buffer": self.device.gpu_device.create_buffer(size=48, usage=usage),
            "problem": scan_problem(by_name("float32"), Operator.SUM, layout, layout, axis=0),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Row:
    """A public callable: how to call it with one argument replaced, and what each parameter takes.

    Attributes
    ----------
    call
        Calls it with good arguments, but for those given.
    parameters
        For each parameter the rule of what it takes, and the pattern by which errors name it, if not by its own name.
    """

    call: Callable[[Bench, dict[str, Any]], Any]
    parameters: Mapping[str, tuple[Rule] | tuple[Rule, str]] = field(default_factory=dict)


def function(name: str, **base: Any) -> Callable[[Bench, dict[str, Any]], Any]:
    """Call a function whose first parameter may be positional only."""

    def call(bench: Bench, changed: dict[str, Any]) -> Any:
        arguments = {key: value(bench) if callable(value) else value for key, value in base.items()} | changed
        called = getattr(dmlgpu, name)
        first = next(iter(inspect.signature(called).parameters))
        return called(arguments.pop(first), **arguments)

    return call


def method(owner: str, name: str, **base: Any) -> Callable[[Bench, dict[str, Any]], Any]:
    """Call a method by keywords; ``*arguments`` are one."""

    def call(bench: Bench, changed: dict[str, Any]) -> Any:
        bound = getattr(getattr(bench, owner), name)
        arguments = {key: value(bench) if callable(value) else value for key, value in base.items()} | changed
        kinds = inspect.signature(bound).parameters
        several = [arguments.pop(key) for key in list(arguments) if kinds[key].kind is inspect.Parameter.VAR_POSITIONAL]
        return bound(*several, **arguments)

    return call


def opened(bench: Bench, changed: dict[str, Any]) -> None:
    dmlgpu.Device(**({"adapter": bench.device.description} | changed)).release()


def scanned(bench: Bench, changed: dict[str, Any]) -> None:
    """Make a scan and give it a piece, which is when some arguments are looked at."""
    dmlgpu.Scan(**({"operator": "sum", "axis": 1, "device": bench.device} | changed)).push(X)


def _pushed(bench: Bench) -> dmlgpu.Scan:
    scan = dmlgpu.Scan("sum", axis=0, device=bench.device)
    scan.push(X)
    return scan


def finished(call: Callable[[Bench, dict[str, Any]], Any]) -> Callable[[Bench, dict[str, Any]], Any]:
    return lambda bench, changed: asyncio.run(call(bench, changed))


def entered(call: Callable[[Bench, dict[str, Any]], Any]) -> Callable[[Bench, dict[str, Any]], Any]:
    def enter(bench: Bench, changed: dict[str, Any]) -> None:
        with call(bench, changed):
            pass

    return enter


SCAN = {
    "axis": (is_axis_of_two,),
    "dtype": (dtype_rule(none=True),),
    "include_initial": (is_flag,),
    "exclusive": (is_flag,),
    "reverse": (is_flag,),
    "out": (is_nothing,),
    "device": (is_device,),
    "encoder": (is_nothing,),
}
ONE_DIMENSION = (array_rule(lambda x: x.ndim == 1), "x|this array")
FROM_WGPU = {"buffer": lambda b: b.gpu_buffer, "shape": (2, 3), "dtype": "float32"}
ARRAY_OF_32_BYTES = (
    lambda x, _: type(x) in (np.ndarray, np.matrix) and native_name(x.dtype) in NUMBERS and x.nbytes <= 32,
)
NO_BUFFER = (never, "buffer")

TABLE: dict[str, Row] = {
    "cumulative_sum": Row(
        function("cumulative_sum", x=X, axis=1, device=lambda b: b.device),
        SCAN | {"precision": (lambda x, _: isinstance(x, str) and str(x) == "default",), "monotone": (is_flag,)},
    ),
    "cumulative_sum of one dimension": Row(function("cumulative_sum"), {"x": ONE_DIMENSION}),
    "cumulative_prod": Row(function("cumulative_prod", x=X, axis=1, device=lambda b: b.device), SCAN),
    "cumulative_prod of one dimension": Row(function("cumulative_prod"), {"x": ONE_DIMENSION}),
    "round": Row(
        function("round", x=X),
        {
            "x": (array_rule(lambda x: x.dtype != np.bool_), "x|this array"),
            "mode": (is_mode,),
            "out": (is_nothing,),
            "device": (is_device,),
            "encoder": (is_nothing,),
        },
    ),
    "asarray": Row(
        function("asarray", x=X), {"x": (array_rule(lambda x: True), "x|this array"), "device": (is_device,)}
    ),
    "from_wgpu": Row(
        function("from_wgpu", **FROM_WGPU),
        {
            "buffer": (never,),
            "shape": (shape_rule(lambda s: len(s) <= 8 and min(s, default=0) >= 0 and _small(s, 12)), "shape|array"),
            "dtype": (dtype_rule(boolean=True, swapped=False), "dtype|elements"),
            "strides": (is_nothing,),
            "offset": (lambda x, _: as_int(x) == 0, "offset"),
            "device": (is_device, "device"),
        },
    ),
    "explain": Row(
        function("explain", operator="cumsum", shape=(2, 3), axis=1, profile="h200"),
        {
            "operator": (never,),
            "shape": (shape_rule(lambda s: len(s) == 2 and min(s) > 0), "shape|axis"),
            "axis": (is_axis_of_two,),
            "dtype": (dtype_rule(),),
            "exclusive": (is_flag,),
            "reverse": (is_flag,),
            "precision": (lambda x, _: isinstance(x, str) and str(x) == "default",),
            "monotone": (is_flag,),
            "mode": (is_mode,),
            "in_place": (is_flag,),
            "device": (is_nothing,),
            "profile": (lambda x, d: x is None,),
        },
    ),
    "Scan.__init__": Row(
        scanned,
        {
            "operator": (lambda x, _: isinstance(x, str) and str(x) in ("sum", "product"),),
            "axis": (is_axis_of_two,),
            "dtype": (dtype_rule(none=True),),
            "exclusive": (is_flag,),
            "reverse": (is_flag,),
            "precision": (lambda x, _: isinstance(x, str) and str(x) == "default",),
            "monotone": (is_flag,),
            "device": (is_device,),
        },
    ),
    "Scan.push": Row(
        lambda bench, changed: dmlgpu.Scan("sum", axis=0, device=bench.device).push(**({"block": X} | changed)),
        {"block": (array_rule(lambda x: x.ndim > 0), "block|this array|axis")},
    ),
    "Scan.finish": Row(lambda bench, changed: _pushed(bench).finish()),
    "Scan.resume": Row(
        lambda bench, changed: dmlgpu.Scan.resume(
            **({"state": _pushed(bench).state, "device": bench.device} | changed)
        ),
        {"state": (never,), "device": (lambda x, d: True,)},
    ),
    "devices": Row(lambda bench, changed: dmlgpu.devices()),
    "default_device": Row(lambda bench, changed: dmlgpu.default_device()),
    "DeviceArray.__init__": Row(lambda bench, changed: dmlgpu.DeviceArray(**changed), {"tensor": (never,)}),
    "DeviceArray.__getitem__": Row(
        method("array", "__getitem__", key=0), {"key": (is_index, "index|indices|view|slice")}
    ),
    "DeviceArray.__array__": Row(
        method("array", "__array__"),
        {
            "dtype": (is_numpy_dtype,),
            "copy": (lambda x, _: x is None or (isinstance(x, bool | np.bool_) and bool(x)),),
        },
    ),
    "DeviceArray.astype": Row(
        method("array", "astype", dtype="float32"), {"dtype": (dtype_rule(),), "copy": (is_flag,)}
    ),
    "DeviceArray.broadcast_to": Row(
        method("array", "broadcast_to", shape=(2, 3)), {"shape": (shape_rule(lambda s: s == (2, 3)), "shape|view")}
    ),
    "DeviceArray.reshape": Row(method("array", "reshape", shape=6), {"shape": (shape_rule(holds_six), "shape|view")}),
    "DeviceArray.transpose": Row(
        method("array", "transpose"),
        {
            "axes": (lambda x, _: x is None or as_ints(x) in ((0, 1), (1, 0)), "axes|axis"),
        },
    ),
    "DeviceArray.copy": Row(method("array", "copy")),
    "DeviceArray.numpy": Row(method("array", "numpy")),
    "DeviceArray.numpy_async": Row(finished(method("array", "numpy_async"))),
    "DeviceArray.tolist": Row(method("array", "tolist")),
    "DeviceArray.item": Row(lambda bench, changed: bench.array[0, 0].item()),
    "DeviceArray.to_device": Row(
        lambda bench, changed: bench.array.to_device(
            changed.get("device", bench.device), **{n: v for n, v in changed.items() if n != "device"}
        ),
        {"device": (lambda x, d: x is not None and is_device(x, d),), "stream": (is_nothing,)},
    ),
    "DeviceArray.release": Row(method("array", "release")),
    "Device.__init__": Row(
        opened,
        {
            "adapter": (lambda x, d: (x is None or isinstance(x, str) or as_int(x) is not None) and is_device(x, d),),
            "limits": (lambda x, _: x is None or (type(x) is dict and x in ({}, {"max-buffer-size": 2**28})),),
        },
    ),
    "Device.wrap": Row(
        method("device", "wrap", gpu_device=lambda b: b.device.gpu_device),
        {"gpu_device": (lambda x, d: x is d.gpu_device,)},
    ),
    "Device.allocate": Row(method("device", "allocate", nbytes=4), {"nbytes": (count_rule(2**26), "nbytes|bytes")}),
    "Device.recycled": Row(
        method("device", "recycled", nbytes=4),
        {"nbytes": (count_rule(2**26), "nbytes|bytes"), "temporary": (is_flag,)},
    ),
    "Device.allocate_filled": Row(
        method("device", "allocate_filled", data=X), {"data": (*ARRAY_OF_32_BYTES, "data|array")}
    ),
    "Device.upload": Row(
        method("device", "upload", buffer=lambda b: b.buffer, offset=0, data=X),
        {"buffer": NO_BUFFER, "offset": (lambda x, _: as_int(x) in (0, 4, 8),), "data": ARRAY_OF_32_BYTES},
    ),
    "Device.download": Row(
        method("device", "download", buffer=lambda b: b.buffer, offset=0, out=lambda b: np.zeros(4, np.float32)),
        {
            "buffer": NO_BUFFER,
            "offset": (count_rule(16),),
            "out": (lambda x, d: ARRAY_OF_32_BYTES[0](x, d) and x.flags.writeable,),
        },
    ),
    "Device.download_async": Row(
        finished(
            method(
                "device", "download_async", buffer=lambda b: b.buffer, offset=0, out=lambda b: np.zeros(4, np.float32)
            )
        ),
        {
            "buffer": NO_BUFFER,
            "offset": (count_rule(16),),
            "out": (lambda x, d: ARRAY_OF_32_BYTES[0](x, d) and x.flags.writeable,),
        },
    ),
    "Device.run": Row(
        method("device", "run", problem=lambda b: b.problem, source=lambda b: b.buffer, target=lambda b: b.buffer),
        {"problem": (never,), "source": (never,), "target": (never,), "kernel": (is_nothing,)},
    ),
    "Device.compile": Row(method("device", "compile"), {"plan": (never,)}),
    "Device.wrap_buffer": Row(method("device", "wrap_buffer"), {"gpu_buffer": NO_BUFFER}),
    "Device.fault": Row(method("device", "fault"), {"gpu_buffer": (anything,)}),
    "Device.use": Row(entered(method("device", "use")), {"buffers": NO_BUFFER}),
    "Device.check": Row(method("device", "check"), {"buffers": NO_BUFFER}),
    "Device.mark_lost": Row(lambda bench, changed: dmlgpu.Device(bench.device.description).mark_lost()),
    "Device.end_waits": Row(method("device", "end_waits")),
    "Device.lost": Row(method("device", "lost")),
    "Device.subnormals": Row(method("device", "subnormals")),
    "Device.batch": Row(entered(method("device", "batch"))),
    "Device.recording": Row(
        entered(method("device", "recording", encoder=lambda b: b.device.gpu_device.create_command_encoder())),
        {"encoder": (never,)},
    ),
    "Device.release": Row(lambda bench, changed: dmlgpu.Device(bench.device.description).release()),
}

NOT_HERE = {
    "Device.run_piece": "takes what only dmlgpu.Scan makes",
    "Device.upload_by": "the same",
    "Device.copy": "the same",
    "Device.run_totals": "takes what only dmlgpu's functions of dask arrays make",
    "Device.bind": "takes what only dmlgpu.planning.plan and the DirectML face make",
}

CASES = [(name, parameter) for name, row in TABLE.items() for parameter in row.parameters]


def _small(sizes: tuple[int, ...], most: int) -> bool:
    whole = int(np.prod([size for size in sizes if size], dtype=object))
    return whole <= most or (0 in sizes and whole < 2**32)


def signatures() -> dict[str, set[str]]:
    """Return the parameters of every public callable of the NumPy face; DirectML's has a suite of its own."""
    found: dict[str, set[str]] = {}

    def add(name: str, called: Any) -> None:
        found[name] = set(inspect.signature(called).parameters) - {"self"}

    for name in dmlgpu.__all__:
        public = getattr(dmlgpu, name)
        if inspect.isfunction(public):
            add(name, public)
        elif inspect.isclass(public) and not issubclass(public, BaseException):
            for attribute in dir(public):
                value = inspect.getattr_static(public, attribute)
                if attribute in ("__init__", "__getitem__", "__array__") or not attribute.startswith("_"):
                    if isinstance(value, property):
                        assert value.fset is None, f"{name}.{attribute} can be set: test what it takes"
                    elif callable(value) or isinstance(value, classmethod | staticmethod):
                        add(f"{name}.{attribute}", getattr(public, attribute))
    return found


def test_every_public_parameter_is_in_the_table() -> None:
    expected = {(name, parameter) for name, parameters in signatures().items() for parameter in parameters}
    expected = {(name, parameter) for name, parameter in expected if name not in NOT_HERE}
    tested = {(name.partition(" ")[0], parameter) for name, parameter in CASES}
    assert tested == expected
    assert {name.partition(" ")[0] for name in TABLE} == set(signatures()) - set(NOT_HERE)


@pytest.mark.parametrize("name", TABLE)
def test_the_call_itself_is_good(device: dmlgpu.Device, name: str) -> None:
    required = {"tensor", "plan", "gpu_buffer", "buffers"}  # no odd value is ever good, or there is none by default
    if "one dimension" not in name and not required & set(TABLE[name].parameters):
        TABLE[name].call(Bench(device), {})


@pytest.mark.parametrize(("name", "parameter"), CASES)
@pytest.mark.filterwarnings("ignore:Warning. converting a masked element:UserWarning")
def test_odd_values(device: dmlgpu.Device, name: str, parameter: str) -> None:
    row = TABLE[name]
    rule, *named = row.parameters[parameter]
    pattern = rf"\b({named[0] if named else parameter})\b"
    wrong: list[str] = []
    bench = Bench(device)
    for label, make in ODD.items():
        value = make(device)
        index = None
        if parameter in ("device", "adapter"):
            index = select_adapter("").index if isinstance(value, str) and value == "" else as_int(value)
        if index is not None and 0 <= index < len(devices()) and index != device.description.index:
            continue  # a good choice, which would open another device
        good = rule(value, device)
        try:
            row.call(bench, {parameter: value})
        except DmlGpuError as error:
            if good:
                wrong.append(f"{label}: refused: {error}")
            elif not re.search(pattern, str(error)):
                wrong.append(f"{label}: {parameter} is not named: {error}")
            elif len(str(error)) > 1000:
                wrong.append(f"{label}: {len(str(error))} characters of message")
        except Exception as error:
            wrong.append(f"{label}: foreign {type(error).__name__}: {error}")
        else:
            if not good:
                wrong.append(f"{label}: taken")
    assert not wrong, "\n".join(wrong)
    np.testing.assert_array_equal(dmlgpu.cumulative_sum(X, axis=1, device=device), np.cumsum(X, 1))


def test_the_page_has_these_figures() -> None:
    page = (Path(__file__).parents[1] / "docs" / "reliability.md").read_text(encoding="utf-8")
    assert f"each of the {len(CASES)} parameters" in page
    assert f"gets {len(ODD)} odd values" in page


FLAGS = ["include_initial", "exclusive", "reverse"]


@pytest.mark.parametrize("scan", [dmlgpu.cumulative_sum, dmlgpu.cumulative_prod])
@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("value", [2, 1, 0, None, "True", 1.0, np.array(True), np.int8(1)])
def test_flags_are_bools(device: dmlgpu.Device, scan: Any, flag: str, value: Any) -> None:
    """A value such as 2 was once half true: it computed an inclusive scan."""
    for x in (X[0], dmlgpu.asarray(X[0], device)):
        with pytest.raises(ArrayTypeError, match=rf"^{flag} is .* of type {type(value).__name__}; give True or False$"):
            scan(x, **{flag: value}, device=device)


@pytest.mark.parametrize("flag", FLAGS)
def test_numpy_bools_are_flags(device: dmlgpu.Device, flag: str) -> None:
    for value in (False, True):
        expected = dmlgpu.cumulative_sum(X[0], **{flag: value}, device=device)
        result = dmlgpu.cumulative_sum(X[0], **{flag: np.bool_(value)}, device=device)
        np.testing.assert_array_equal(result, expected)


# What a DeviceArray refuses

COMPARISONS = ["==", "!=", "<", "<=", ">", ">="]
ARITHMETIC = ["+", "-", "*", "@", "/", "//", "%", "**", "<<", ">>", "&", "|", "^"]


@pytest.mark.parametrize("sign", [*COMPARISONS, *ARITHMETIC, "divmod()"])
def test_operators_are_refused_with_a_way_out(device: dmlgpu.Device, sign: str) -> None:
    """`asarray(a) == asarray(a)` was once False."""
    use = divmod if sign == "divmod()" else eval(f"lambda left, right: left {sign} right")
    array, other, numbers = dmlgpu.asarray([1, 2], device), dmlgpu.asarray([1, 2], device), np.ones(2)
    said = f"is not compared with {sign}: compare" if sign in COMPARISONS else f"has no operator {sign}: read"
    for right in (array, other, 1, None, numbers, "text", [1, 2]):
        with pytest.raises(ArrayTypeError, match=rf"a DeviceArray {re.escape(said)}.*\.numpy\(\)"):
            use(array, right)
    for left in (1, None, numbers, [1, 2]):
        with pytest.raises(ArrayTypeError, match=r"DeviceArray.*\.numpy\(\)"):
            use(left, array)


@pytest.mark.parametrize(
    ("sign", "use"), [("-", operator.neg), ("+", operator.pos), ("~", operator.invert), ("abs()", abs)]
)
def test_operators_of_one_array_are_refused(device: dmlgpu.Device, sign: str, use: Any) -> None:
    with pytest.raises(ArrayTypeError, match=rf"has no operator {re.escape(sign)}: read .*\.numpy\(\)"):
        use(dmlgpu.asarray([1, 2], device))


@pytest.mark.parametrize(
    ("use", "text"),
    [
        (hash, r"no hash, as its elements can change: use id\(array\)"),
        (lambda a: {a: 1}, "no hash"),
        (bool, r"no truth value: test \.size"),
        (int, r"is no number: read one back with \.item\(\)"),
        (float, "is no number"),
        (complex, "is no number"),
        (operator.index, "is no number"),
        (round, r"use dmlgpu\.round"),
        (lambda a: 1 in a, r"not searched with `in`: read"),
        (lambda a: operator.setitem(a, 0, 1), r"no assignment to elements: write through out="),
        (lambda a: operator.delitem(a, 0), "fixed shape: leave elements out with a slice"),
        (lambda a: operator.iadd(a, 1), r"no operator \+: read the elements back with \.numpy\(\)"),
        (lambda a: a in [dmlgpu.asarray([1, 2], a.device)], "not compared with =="),
    ],
)
def test_what_else_is_refused(device: dmlgpu.Device, use: Any, text: str) -> None:
    array = dmlgpu.asarray([1, 2], device)
    with pytest.raises(ArrayTypeError, match=text):
        use(array)
    assert array in [array]  # Python looks for the same object first
    assert array.numpy().tolist() == [1, 2]


def test_attributes_cannot_be_set(device: dmlgpu.Device) -> None:
    array = dmlgpu.asarray([1, 2], device)
    for name in ("shape", "dtype", "T", "strides", "device", "nonsense"):
        with contextlib.suppress(AttributeError):
            setattr(array, name, None)
            raise AssertionError(f"{name} was set")


# The environment


@pytest.mark.parametrize("value", ["9" * 5000, "17", "-1", "nonsense", "\udcff", " ", "1.0", "²", "٣" * 30])
def test_wrong_adapters_in_the_environment(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("DMLGPU_ADAPTER", value)
    for call in (dmlgpu.default_device, dmlgpu.Device, lambda: dmlgpu.cumulative_sum([1])):
        if value == " ":
            continue
        with pytest.raises(dmlgpu.errors.AdapterNotFoundError, match=r"^DMLGPU_ADAPTER .*there are: 0: ") as caught:
            call()
        assert len(str(caught.value)) < 1000


def test_errors_show_any_value_in_a_few_words() -> None:
    values = (10**5000, [10**5000], Raising(), "9" * 10**6, [0] * 10**6, np.zeros((50, 50)), {"a": Raising()})
    for value in values:
        text = dmlgpu.errors.shown(value)
        assert len(text) < 400
        assert "\n" not in text
    assert dmlgpu.errors.shown(-(10**5000)) == "an integer of some 5001 digits"
    assert dmlgpu.errors.said(RuntimeError()) == "RuntimeError"


def test_an_error_of_numpys_keeps_its_kind(device: dmlgpu.Device) -> None:
    """A wrong value is a ValueError, a wrong type a TypeError, as they are in NumPy."""
    with pytest.raises(
        ArgumentError, match=r"x is \[\[1\], \[1, 2\]\] of type list, of which NumPy makes no array \(.*inhomog"
    ):
        dmlgpu.asarray([[1], [1, 2]], device)
    with pytest.raises(ArrayTypeError, match=r"NumPy makes no array \(hostile\)") as caught:
        dmlgpu.asarray(Raising(), device)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_time_limit_ends_a_conversion_as_itself(device: dmlgpu.Device) -> None:
    """Such as a signal's handler raises, at any place."""

    class Slow:
        def __array__(self, *_: object, **__: object) -> np.ndarray:
            raise TimeoutError("took too long")

    with pytest.raises(TimeoutError, match="took too long"):
        dmlgpu.asarray(Slow(), device)
