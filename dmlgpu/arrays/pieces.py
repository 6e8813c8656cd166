"""A scan over an axis that comes in pieces, with the bits of one scan over the whole."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..arguments import choice, integer
from ..dtypes import BOOL, ELEMENT_TYPES, ElementType, by_dtype, by_name
from ..errors import (
    ArgumentError,
    ArrayTypeError,
    AxisError,
    DeviceError,
    DeviceMemoryError,
    DmlGpuError,
    counted,
    said,
    shown,
    with_type,
)
from ..layout import MAX_DIMENSIONS, Layout, check_sizes, resolve_axis
from ..lazy import import_runtime, resolve_device
from ..planning.kernels import tile_record_words
from ..planning.pieces import CARRY_WORDS, max_bytes, max_length, max_slices, without_spare_words
from ..planning.problem import (
    Operator,
    Precision,
    ScanOptions,
    ScanProblem,
    accumulator_words,
    check_monotone,
    check_precision,
)
from ..planning.windows import TILE, Limits
from ..sections import Section, let_interrupts_through
from .array import DeviceArray
from .functions import PrecisionName, kept_problem, scan_dtype, scan_element
from .host import host_array, host_empty
from .tensors import Tensor, assign, copy, empty, packed, upload

if TYPE_CHECKING:
    from ..runtime.device import Carried, Device

__all__ = ["DeviceCarries", "PieceKind", "Scan", "Treatment", "cut", "records_of_cube", "scan_cube", "scan_pieces"]

_OPERATORS = {operator.value: operator for operator in (Operator.SUM, Operator.PRODUCT)}
_VERSION = 1
_FEW_TILES = 8
"""Up to so many are scanned together with the unfinished tile: those of wide arrays, of which each is large."""
_LEAST_ROOM = 16
"""For so many elements of each slice there is room on a device as soon as any wait there."""
_SMALL_ROOM = 64 * 2**20
"""So many bytes are room for whole tiles from the beginning: what grows is copied."""
_MAGIC = b"dmlgpu scan\n"
_DIGEST_BYTES = 32
_OF_ALL = frozenset({"operator", "axis", "exclusive", "reverse", "precision", "dtype", "length"})
"""What the header of every state has."""
_OF_PIECES = frozenset({"sizes", "source", "carries"})
"""What it has besides once something was pushed."""
_OF_DEVICES = frozenset({"device", "subnormals"})
"""What it has besides once something was computed whose bits depend on the device."""
_DEFAULTS = {"monotone": False}
"""Options that came later, and what a state without them means."""
_VALUES: dict[str, Callable[[Any], bool]] = {
    "operator": lambda value: type(value) is str and value in _OPERATORS,
    "axis": lambda value: type(value) is int,
    "exclusive": lambda value: type(value) is bool,
    "reverse": lambda value: type(value) is bool,
    "monotone": lambda value: type(value) is bool,
    "precision": lambda value: type(value) is str and value in [each.value for each in Precision],
    "dtype": lambda value: value is None or _is_element_type(value),
    "length": lambda value: type(value) is int and value >= 0,
    "sizes": lambda value: type(value) is list and all(type(size) is int and size >= 0 for size in value),
    "source": lambda value: _is_element_type(value),
    "carries": lambda value: type(value) is bool,
    "device": lambda value: type(value) is str,
    "subnormals": lambda value: type(value) is dict and all(type(kept) is bool for kept in value.values()),
}
"""Which values an entry of a header has."""

Array = NDArray[Any] | DeviceArray
_Computed = tuple[Array, "NDArray[np.uint32] | DeviceCarries | None", "Treatment | None"]
"""Results, the carries after them, and how the devices so far treat subnormal numbers."""
_Pending = list["NDArray[Any] | _Tile"]
"""The elements of an unfinished tile, as parts that follow each other."""


@dataclass(frozen=True)
class PieceKind:
    """What all pieces of a scan have in common."""

    operator: Operator
    options: ScanOptions
    axis: int
    sizes: tuple[int, ...]
    """Of a piece, but for the axis, which is 0 here."""
    source: ElementType
    element: ElementType

    @property
    def carry_words(self) -> int:
        """32-bit words of a slice's carry: that of its sums and, of monotone ones, that of the maximum."""
        return 2 * CARRY_WORDS if self.options.monotone else CARRY_WORDS

    @property
    def accumulator_words(self) -> int:
        """32-bit words of an accumulator."""
        return accumulator_words(self.element, self.options.precision)

    def cube(self, length: int) -> tuple[int, int, int]:
        """Return the shape of a piece that is so long, with the dimensions before and after the axis as one each."""
        return math.prod(self.sizes[: self.axis]), length, math.prod(self.sizes[self.axis + 1 :])

    def with_length(self, length: int) -> tuple[int, ...]:
        """Return the shape of a piece that is so long."""
        return (*self.sizes[: self.axis], length, *self.sizes[self.axis + 1 :])


class Scan:
    """A cumulative sum or product along an axis whose elements come piece by piece.

    The results together have the bits of one call of `cumulative_sum` or `cumulative_prod` on the whole, however it is
    cut. A result is returned as soon as it is settled: those of 4096 elements together, because a later element of
    the same tile can make all of them exceptional.

    Parameters
    ----------
    operator : {"sum", "product"}
        What to compute.
    axis : int
        The axis along which the pieces follow each other, counted from the end if negative.
    dtype : dtype, optional
        The type of the results, as in `cumulative_sum`.
    exclusive, reverse : bool, default False
        As in `cumulative_sum`. With `reverse` the pieces come from the end of the axis, each in its natural order.
    precision : {"default", "compensated"}
        As in `cumulative_sum`.
    monotone : bool, default False
        As in `cumulative_sum`; only for sums.
    device : Device, str, int or None
        As in `cumulative_sum`; where pieces are DeviceArrays, None is their device.

    Raises
    ------
    ArrayTypeError, ArgumentError
        If an argument has a type or a value that does not fit.

    Examples
    --------
    >>> import numpy as np, dmlgpu
    >>> x = np.random.default_rng(1).random(10_000, dtype=np.float32)
    >>> scan = dmlgpu.Scan("sum", axis=0)
    >>> settled = [scan.push(x[:3000]), scan.push(x[3000:9000]), scan.push(x[9000:]), scan.finish()]
    >>> [len(part) for part in settled]
    [0, 8192, 0, 1808]
    >>> bool((np.concatenate(settled) == dmlgpu.cumulative_sum(x)).all())
    True
    """

    def __init__(
        self,
        operator: Literal["sum", "product"],
        *,
        axis: SupportsIndex,
        dtype: DTypeLike | None = None,
        exclusive: bool = False,
        reverse: bool = False,
        precision: PrecisionName = "default",
        monotone: bool = False,
        device: Device | str | int | None = None,
    ) -> None:
        self._operator = choice(operator, "operator", _OPERATORS)
        self._axis = integer(axis, "axis")
        self._options = ScanOptions.checked(exclusive, reverse, precision, monotone)
        check_monotone(self._options.monotone, self._operator)
        element = None if dtype is None else scan_dtype(dtype)
        check_precision(self._options.precision, self._operator, element)
        self._dtype = None if element is None else element.name
        self._device = device
        self._kind: PieceKind | None = None
        self._length = 0
        self._carries: NDArray[np.uint32] | DeviceCarries | None = None
        self._pending: _Pending = []
        self._treatment: Treatment | None = None
        self._finished = False
        self._section = Section()  # the device's is entered inside, never the other way round

    @property
    def length(self) -> int:
        """The elements of each slice that were pushed."""
        return self._length

    @property
    def settled(self) -> int:
        """The elements of each slice whose results were returned."""
        return self._length - self._pending_length

    @property
    def _pending_length(self) -> int:
        return sum(part.shape[1] for part in self._pending)

    @property
    def finished(self) -> bool:
        """Whether `finish` was called."""
        return self._finished

    def __repr__(self) -> str:
        ended = ", finished" if self._finished else ""
        count = f"{self._length} elements, {self.settled} settled"
        return f"<dmlgpu.Scan {self._operator.value} axis={self._axis}: {count}{ended}>"

    def push(self, block: ArrayLike | DeviceArray) -> Array:
        """Take the next piece along the axis, and return the results that are settled.

        Pushes from several threads are taken one after the other, in whatever order they come.

        Parameters
        ----------
        block : array_like or DeviceArray
            Of the same type and shape as the pieces before it, but for the length along the axis, which may be
            anything, 0 included. It is free to be changed afterwards.

        Returns
        -------
        ndarray or DeviceArray
            As `block` came. The next results along the axis in traversal order, as many as are settled, in the natural
            order of the axis. For a DeviceArray nothing waits for the device.

        Raises
        ------
        ArrayTypeError, ArgumentError, AxisError
            If the piece does not fit, or `finish` was called. The scan is as it was before the call.
        DeviceError, DeviceMemoryError, HostMemoryError
            If the device was lost, treats subnormal numbers in another way than the one before, or has no room.
        """
        self._check_open()
        array = block if isinstance(block, DeviceArray) else host_array(block, "block")
        check_sizes(array.shape, "block")
        with self._section:
            return self._push(array)

    def _push(self, array: Array) -> Array:
        """Take a piece, in the section; nothing changes before all of it is done."""
        self._check_open()
        kind = self._kind_of(array)
        length = array.shape[kind.axis]
        cube = array.reshape(kind.cube(length))
        if isinstance(cube, DeviceArray):
            (result, carries, treatment), pending = self._push_device(kind, cube, array)
        else:
            (result, carries, treatment), pending = self._push_host(kind, cube, array)
        let_interrupts_through()
        self._kind, self._carries, self._length = kind, carries, self._length + length
        self._pending = [part for part in pending if part.shape[1]]
        self._treatment = treatment
        return result

    def _push_host(self, kind: PieceKind, cube: NDArray[Any], like: Array) -> tuple[_Computed, _Pending]:
        """Take elements that are on the host, where those of the unfinished tile wait then."""
        waiting, length = self._pending_length, cube.shape[1]
        whole = (waiting + length) // TILE * TILE
        parts: list[Array | _Joined] = []
        rest = 0
        if whole:
            rest = whole - waiting
            first = 0
            if waiting:
                # Many elements are copied as they lie.
                first = TILE - waiting if whole > _FEW_TILES * TILE else rest
                parts.append(_Joined.of(kind, [*self._pending, cut(kind, cube, 0, first)]))
            if first < rest:
                parts.append(cut(kind, cube, first, rest))
        computed = self._compute(kind, parts, like, None, unfinished=True)
        left = _host_copy(kind, cut(kind, cube, rest, length))
        return computed, [left] if whole else [*self._pending, left]

    def _push_device(self, kind: PieceKind, cube: DeviceArray, like: Array) -> tuple[_Computed, _Pending]:
        """Take elements that are on a device, where those of the unfinished tile stay; nothing waits for it."""
        home = self._home_of(cube)
        cube._tensor.check_live()
        waiting, length = self._pending_length, cube.shape[1]
        whole = (waiting + length) // TILE * TILE
        first = min(TILE - waiting, length) if waiting or not whole else 0
        pending = _tiles_on(kind, home, [*self._pending, cut(kind, cube, 0, first)])
        parts: list[Array | _Joined] = [tile.elements for tile in pending if isinstance(tile, _Tile)] if whole else []
        if first < whole - waiting:
            parts.append(cut(kind, cube, first, whole - waiting))
        computed = self._compute(kind, parts, like, home, unfinished=True)
        if whole:
            pending = _tiles_on(kind, home, [cut(kind, cube, whole - waiting, length)])
        return computed, pending

    def finish(self) -> NDArray[Any]:
        """Return the results that are not settled yet, and end the scan.

        Returns
        -------
        ndarray
            The last results along the axis, fewer than 4096 of each slice; an ndarray also where pieces were
            DeviceArrays.

        Raises
        ------
        ArgumentError
            If it was called before, or nothing was pushed.
        DeviceError
            If elements of DeviceArrays, or what goes on from them, are on a device that was lost or released.
        """
        with self._section:
            self._check_open()
            if self._kind is None:
                raise ArgumentError("nothing was pushed, so there are no results and no shape: push a piece first")
            device = self._device_of_state()
            parts: list[Array | _Joined] = []
            if self._pending:
                tile, *others = self._pending
                if isinstance(tile, _Tile) and tile.device is device and not others:
                    parts = [tile.elements]
                else:
                    parts = [_Joined.of(self._kind, self._pending)]
            empty_host = host_empty(self._kind.with_length(0), self._kind.source)
            result, _, _ = self._compute(self._kind, parts, empty_host, device, unfinished=False)
            let_interrupts_through()
            self._finished, self._pending, self._carries = True, [], None
        assert isinstance(result, np.ndarray)
        return result

    def _check_open(self) -> None:
        if self._finished:
            raise ArgumentError("this scan is finished: make a new dmlgpu.Scan for other slices")

    def _kind_of(self, array: Array) -> PieceKind:
        """Return what the pieces are like, by the first one; raise an error for one that is not."""
        if not -array.ndim <= self._axis < array.ndim:
            least = max(self._axis + 1, -self._axis)
            if least <= MAX_DIMENSIONS:
                way_out = f"give pieces of at least {counted(least, 'dimension')}"
            else:  # of a number that Python may not even print
                way_out = f"no array has more than {MAX_DIMENSIONS} dimensions"
            raise AxisError(
                self._axis,
                array.ndim,
                f"block has {counted(array.ndim, 'dimension')}, and the scan goes along axis {shown(self._axis)}: "
                f"{way_out}",
            )
        axis = resolve_axis(self._axis, array.ndim)
        sizes = (*array.shape[:axis], 0, *array.shape[axis + 1 :])
        source = by_dtype(array.dtype, "block")
        if self._kind is None:
            element = scan_element(self._operator, self._options.precision, source, self._dtype, None)
            return PieceKind(self._operator, self._options, axis, sizes, source, element)
        expected = self._kind
        if len(sizes) != len(expected.sizes) or sizes != expected.sizes:
            wanted = ", ".join("any" if i == expected.axis else str(n) for i, n in enumerate(expected.sizes))
            raise ArgumentError(
                f"block has shape {array.shape} while the pieces before it have ({wanted}): cut the array along axis "
                f"{expected.axis} only"
            )
        if source is not expected.source:
            common = np.promote_types(source.dtype, expected.source.dtype)
            raise ArrayTypeError(
                f"block has dtype {source} while the pieces before it have {expected.source}: "
                + (
                    f"convert it with astype('{common}')"
                    if common == expected.source.dtype
                    else f"give all of them as one dtype, such as {common}, from the first on"
                )
            )
        return expected

    def _home_of(self, array: DeviceArray) -> Device:
        """Return the device of a piece, which must be the one that was asked for."""
        home, wanted = array.device, None if self._device is None else resolve_device(self._device)
        if wanted is not None and wanted is not home:
            raise ArgumentError(
                f"block is on the device {home.label} while device= names {wanted.label}: leave device= away, "
                "or move it with to_device"
            )
        return home

    def _device_of_state(self) -> Device | None:
        """Return the device where results go on that have no piece any more; None for that of `device`."""
        if self._device is not None:
            return None
        found = [part.device for part in self._pending if isinstance(part, _Tile)]
        found += [self._carries.device] if isinstance(self._carries, DeviceCarries) else []
        return found[0] if found else None

    def _compute(
        self, kind: PieceKind, parts: Sequence[Array | _Joined], like: Array, device: Device | None, *, unfinished: bool
    ) -> _Computed:
        """Scan parts that follow each other, on a device or that of `device`; results are of the kind of `like`."""
        length = sum(part.shape[1] for part in parts)
        sizes = kind.with_length(length)
        check_sizes(sizes, "the result")
        home = like.device if isinstance(like, DeviceArray) else None
        wanted = device if device is not None or self._device is None else resolve_device(self._device)
        if math.prod(sizes) == 0:
            return _new(kind, sizes, home), self._carries, self._treatment
        used = resolve_device(None) if wanted is None else wanted
        treatment = self._treatment_on(used, kind)
        result = _new(kind, sizes, home)
        cube = result.reshape(kind.cube(length))
        carries, begin = self._carries, 0
        if isinstance(carries, DeviceCarries) and carries.device is not used:
            carries = carries.read()  # before the section, as two devices' could be entered in either order
        with used.section:
            for part in parts:
                end = begin + part.shape[1]
                carries = scan_cube(kind, used, part, cut(kind, cube, begin, end), carries, unfinished)
                begin = end
        return result, carries, treatment

    def _treatment_on(self, device: Device, kind: PieceKind) -> Treatment | None:
        """Return that of all devices so far; refuse a device that would give other bits than the one before it."""
        here = Treatment.of(device, kind)
        if here is not None and self._treatment is not None:
            here.check_same(self._treatment)
        return self._treatment or here

    @property
    def state(self) -> bytes:
        """All that `resume` needs to go on: at most 4095 elements and 32 bytes of each slice, and a checksum.

        Of monotone sums there are 64 bytes of each slice.

        It can be resumed on every system; the format has a version. What came as DeviceArrays is read from their
        device.

        Raises
        ------
        ArgumentError
            If the scan is finished.
        DeviceError
            If elements of DeviceArrays, or what goes on from them, are on a device that was lost or released.
        """
        with self._section:
            header, body = self._contents()
        text = json.dumps(header, sort_keys=True).encode()
        content = _MAGIC + _VERSION.to_bytes(4, "little") + len(text).to_bytes(4, "little") + text + body
        return content + hashlib.sha256(content).digest()

    def _contents(self) -> tuple[dict[str, Any], bytes]:
        """Return the header and the body of a state, in the section."""
        self._check_open()
        kind = self._kind
        header: dict[str, Any] = {
            "operator": self._operator.value,
            "axis": self._axis,
            **self._options._asdict(),
            "precision": self._options.precision.value,
            "dtype": self._dtype,
            "length": self._length,
        }
        body = b""
        if kind is not None:
            carries = self._carries is not None
            header |= {"sizes": kind.sizes, "source": kind.source.name, "carries": carries}
            if self._treatment is not None:
                header |= {"device": self._treatment.device, "subnormals": self._treatment.kept}
            if self._carries is not None:
                carries_now = without_spare_words(_on_host(self._carries), kind.accumulator_words)
                body += carries_now.astype("<u4", copy=False).tobytes()
            if self._pending:
                pending = np.concatenate(_Joined.of(kind, self._pending).cubes, axis=1)
                body += _little(pending).tobytes()
        return header, body

    @classmethod
    def resume(cls, state: bytes, *, device: Device | str | int | None = None) -> Self:
        """Return a scan that goes on where another one was when its `state` was read.

        Parameters
        ----------
        state : bytes
            What `state` gave, in this process or another, on this system or another.
        device : Device, str, int or None
            As for a new scan; any device that treats subnormal numbers as the one before did.

        Raises
        ------
        ArrayTypeError
            If `state` is not of bytes.
        ArgumentError
            If it is no state, of another version, or damaged, or lacks an option or has one, or a value, that is
            unknown here.

        Examples
        --------
        >>> import numpy as np, dmlgpu
        >>> x = np.arange(10_000)
        >>> scan = dmlgpu.Scan("sum", axis=0)
        >>> before = scan.push(x[:5000])
        >>> later = dmlgpu.Scan.resume(scan.state)
        >>> after = [later.push(x[5000:]), later.finish()]
        >>> bool((np.concatenate([before, *after]) == np.cumsum(x)).all())
        True
        """
        header, body = _unpacked(state)
        try:
            scan = cls(
                header["operator"],
                axis=header["axis"],
                dtype=header["dtype"],
                device=device,
                **{name: header[name] for name in ScanOptions._fields},
            )
            if "sizes" in header:
                scan._restore(header, body)
            elif body:
                raise ArgumentError(f"{len(body)} bytes follow where nothing was pushed")
        except DmlGpuError as error:
            raise ArgumentError(
                f"state says what this dmlgpu never writes ({error}): resume it with the dmlgpu that made it"
            ) from error
        return scan

    def _restore(self, header: Mapping[str, Any], body: bytes) -> None:
        """Take over what was pushed, as a state says it; values of the header have the right types."""
        source, sizes, length = by_name(header["source"]), tuple(header["sizes"]), header["length"]
        check_sizes(sizes, "sizes")
        element = scan_element(self._operator, self._options.precision, source, self._dtype, None)
        axis = resolve_axis(self._axis, len(sizes))
        kind = PieceKind(self._operator, self._options, axis, sizes, source, element)
        outer, _, inner = kind.cube(0)
        waiting = length % TILE
        settled = length >= TILE and outer * inner > 0
        words = outer * inner * kind.carry_words if settled else 0
        needed = 4 * words + outer * waiting * inner * source.itemsize
        if sizes[axis] != 0 or header["carries"] != settled or len(body) != needed:
            raise ArgumentError(
                f"length is {length}, sizes {list(sizes)}, carries {header['carries']}, and {len(body)} bytes follow"
            )
        if words:
            carries = np.frombuffer(body, "<u4", words).astype(np.uint32)
            self._carries = carries.reshape(outer, inner, kind.carry_words)
        if waiting:
            elements = np.frombuffer(body[4 * words :], _little_dtype(source)).astype(source.dtype)
            self._pending = [elements.reshape(outer, waiting, inner)]
        if "device" in header:
            self._treatment = Treatment(header["device"], header["subnormals"])
        self._kind, self._length = kind, length

    def __reduce__(self) -> tuple[Any, ...]:
        device = self._device if isinstance(self._device, str | int | np.integer) else None  # others cannot be pickled
        return partial(type(self).resume, device=device), (self.state,)

    def __copy__(self) -> Self:
        return self.resume(self.state, device=self._device)

    def __deepcopy__(self, memo: object) -> Self:
        return self.__copy__()


@dataclass(frozen=True)
class Treatment:
    """Which subnormal numbers a device keeps, on which results depend."""

    device: str
    kept: Mapping[str, bool]

    @classmethod
    def of(cls, device: Device, kind: PieceKind) -> Treatment | None:
        """Return that of a device; None where it does not matter, as for integers."""
        return cls(device.summary, dict(device.subnormals())) if kind.element.kind == "float" else None

    def check_same(self, before: Treatment) -> None:
        """Raise DeviceError if another device, on which a scan was computed so far, has another one."""
        if before.kept != self.kept:
            raise DeviceError(
                f"the scan so far was computed on {before}, and {self}: their results would differ; go on with devices "
                "that treat them alike"
            )

    def __str__(self) -> str:
        kept = [f"{'keeps' if keeps else 'flushes'} subnormal numbers in {name}s" for name, keeps in self.kept.items()]
        return f"{self.device!r}, which {' and '.join(kept)}"


def _new(kind: PieceKind, sizes: tuple[int, ...], home: Device | None) -> Array:
    return host_empty(sizes, kind.element) if home is None else DeviceArray(empty(home, kind.element, sizes))


def cut(kind: PieceKind, cube: Any, begin: int, end: int) -> Any:
    """Return elements of the axis of a cube, counted in traversal order, in their natural order."""
    length = cube.shape[1]
    return cube[:, length - end : length - begin] if kind.options.reverse else cube[:, begin:end]


def _host_copy(kind: PieceKind, cube: NDArray[Any]) -> NDArray[Any]:
    copied = host_empty(cube.shape, kind.source)
    _copy(copied, cube)
    return copied


def _copy(target: NDArray[Any], source: NDArray[Any]) -> None:
    """Copy elements by several threads."""
    import_runtime()  # by one thread at a time
    from ..runtime.transfers import copy_array

    copy_array(target, source)


@dataclass(frozen=True)
class _Tile:
    """An unfinished tile of each slice on a device: room for some elements, of which the first ones are there."""

    kind: PieceKind
    room: DeviceArray
    filled: int

    @classmethod
    def empty(cls, kind: PieceKind, device: Device, least: int) -> Self:
        """Return a tile without elements, with room for so many of each slice, and not many more if tiles are large."""
        sizes = kind.cube(TILE)
        if math.prod(sizes) * kind.source.itemsize > _SMALL_ROOM:
            sizes = kind.cube(max(_LEAST_ROOM, 1 << (least - 1).bit_length()))
        try:
            return cls(kind, DeviceArray(empty(device, kind.source, sizes)), 0)
        except DeviceMemoryError as error:
            nbytes = math.prod(sizes) * kind.source.itemsize
            raise DeviceMemoryError(
                f"block has {sizes[0] * sizes[2]} slices, and {sizes[1]} elements of each, which wait for the rest of "
                f"their tile, take {nbytes} bytes, for which the device has no room: scan some of the slices at a "
                "time, or push NumPy arrays, which wait on the host"
            ) from error

    @property
    def device(self) -> Device:
        """Where it is."""
        return self.room.device

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of the elements."""
        return self.kind.cube(self.filled)

    @property
    def elements(self) -> DeviceArray:
        """The elements, in their natural order."""
        found: DeviceArray = cut(self.kind, self.room, 0, self.filled)
        return found

    def followed_by(self, source: Array) -> _Tile:
        """Return a tile with other elements behind these, in the same memory if it has room. This one is as it was."""
        end = self.filled + source.shape[1]
        if end > self.room.shape[1]:
            larger = _Tile.empty(self.kind, self.device, end)
            return larger.followed_by(self.elements).followed_by(source)
        target: DeviceArray = cut(self.kind, self.room, self.filled, end)
        if isinstance(source, DeviceArray):
            copy(source._tensor, target._tensor)
        else:
            uploaded = upload(self.device, source, temporary=True)
            try:
                assign(uploaded, target._tensor)
            finally:
                uploaded.buffer.release()
        return replace(self, filled=end)


def _tiles_on(kind: PieceKind, device: Device, parts: Sequence[Array | _Tile]) -> _Pending:
    """Return elements that follow each other as a tile on a device; no tile if there are no elements."""
    tile: _Tile | None = None
    for part in parts:
        if tile is None and isinstance(part, _Tile) and part.device is device:
            tile = part
        elif part.shape[1]:
            before = tile or _Tile.empty(kind, device, part.shape[1])
            tile = before.followed_by(part.elements.numpy() if isinstance(part, _Tile) else part)
    return [] if tile is None else [tile]


@dataclass(frozen=True)
class _Joined:
    """Cubes of the host that follow each other along the axis. As one they are only on the device."""

    cubes: tuple[NDArray[Any], ...]

    @classmethod
    def of(cls, kind: PieceKind, parts: Sequence[NDArray[Any] | _Tile]) -> Self:
        """Join cubes that follow each other in traversal order."""
        cubes = [part.elements.numpy() if isinstance(part, _Tile) else part for part in parts]
        return cls(tuple(cubes[::-1] if kind.options.reverse else cubes))

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of all together."""
        outer, _, inner = self.cubes[0].shape
        return outer, sum(cube.shape[1] for cube in self.cubes), inner

    def __getitem__(self, key: tuple[slice, ...]) -> _Joined:
        outer, along, *inner = key
        begin, end, _ = along.indices(self.shape[1])
        parts = []
        for cube in self.cubes:
            parts.append(cube[(outer, slice(max(begin, 0), max(end, 0)), *inner)])
            begin, end = begin - cube.shape[1], end - cube.shape[1]
        return _Joined(tuple(parts))

    def upload(self, device: Device, element: ElementType) -> Tensor:
        """Return them on a device, in temporary memory."""
        shape = self.shape
        tensor = empty(device, element, shape, temporary=True)

        def write(target: NDArray[np.uint8]) -> None:
            begin, places = 0, target.view(element.dtype).reshape(shape)
            for cube in self.cubes:
                _copy(places[:, begin : begin + cube.shape[1]], cube)
                begin += cube.shape[1]

        try:
            device.upload_by(tensor.buffer, math.prod(shape) * element.itemsize, write)
        except BaseException:
            tensor.buffer.release()
            raise
        return tensor


def _little_dtype(element: ElementType) -> np.dtype[Any]:
    return element.dtype.newbyteorder("<")


def _little(x: NDArray[Any]) -> NDArray[Any]:
    return x.astype(x.dtype.newbyteorder("<"), copy=False)


def _unpacked(state: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the header and the body of a state whose checksum is right."""
    if not isinstance(state, bytes | bytearray | memoryview):
        raise ArrayTypeError(f"state is {with_type(state)}; give the bytes that a Scan has as .state")
    state = bytes(state)
    if not state.startswith(_MAGIC):
        raise ArgumentError("state is none of a dmlgpu.Scan: give the bytes that one has as .state")
    numbers = state[len(_MAGIC) : len(_MAGIC) + 8]
    version = int.from_bytes(numbers[:4], "little")
    if len(numbers) == 8 and version != _VERSION:
        raise ArgumentError(
            f"state has version {version}, and this dmlgpu reads version {_VERSION}: resume with the one that made it"
        )
    content, digest = state[:-_DIGEST_BYTES], state[-_DIGEST_BYTES:]
    if len(numbers) < 8 or hashlib.sha256(content).digest() != digest:
        raise ArgumentError(f"state is damaged: its {len(state)} bytes do not have their checksum; read it again")
    begin = len(_MAGIC) + 8
    end = begin + int.from_bytes(numbers[4:], "little")
    try:
        found = json.loads(content[begin:end])
    except (ValueError, RecursionError) as error:
        raise ArgumentError(
            f"state has a header that is no JSON ({said(error)}): resume it with the dmlgpu that made it"
        ) from error
    if not isinstance(found, dict):
        raise ArgumentError(f"state has {with_type(found)} as its header: resume it with the dmlgpu that made it")
    header: dict[str, Any] = _DEFAULTS | found
    _check_header(header)
    return header, content[end:]


def _is_element_type(name: Any) -> bool:
    return type(name) is str and name in (*(element.name for element in ELEMENT_TYPES), BOOL.name)


def _check_header(header: Mapping[str, Any]) -> None:
    """Refuse a state of this version that another dmlgpu has made with fewer options, or with more."""
    needed, known = _OF_ALL, _OF_ALL | _DEFAULTS.keys() | _OF_PIECES | _OF_DEVICES
    if header.get("length") or header.keys() & (_OF_PIECES | _OF_DEVICES):
        needed |= _OF_PIECES
    if header.keys() & _OF_DEVICES:
        needed |= _OF_DEVICES
    faults = (
        (needed - header.keys(), "lacks", "needed to go on"),
        (header.keys() - known, "has", "unknown to this dmlgpu"),
    )
    for names, verb, reason in faults:
        if names:
            listed = ", ".join(map(repr, sorted(names)))
            raise ArgumentError(f"state {verb} {listed}, {reason}: resume it with the dmlgpu that made it")
    for name, value in header.items():
        if not _VALUES[name](value):
            raise ArgumentError(
                f"state has {shown(value)} as {name!r}, unknown to this dmlgpu: resume it with the dmlgpu that made it"
            )


@dataclass(frozen=True)
class DeviceCarries:
    """Carries that wait on a device, of slices as they were scanned at once.

    Attributes
    ----------
    device : Device
        Where.
    shape : tuple of int
        That of all carries: of slices, as dimensions before and after the axis, and words.
    places : list
        The slices that were scanned at once.
    carries : list
        Those of each, of a monotone sum two.
    """

    device: Device
    shape: tuple[int, int, int]
    places: list[tuple[slice, slice]]
    carries: list[tuple[Carried, ...]]

    def read(self) -> NDArray[np.uint32]:
        """Return the carries, when the device has come so far."""
        found = np.empty(self.shape, np.uint32)
        for place, carries in zip(self.places, self.carries, strict=True):
            words = np.concatenate([one.read() for one in carries], axis=1)
            found[place] = words.reshape(found[place].shape)
        return found


def _on_host(carries: NDArray[np.uint32] | DeviceCarries) -> NDArray[np.uint32]:
    return carries.read() if isinstance(carries, DeviceCarries) else carries


def scan_cube(
    kind: PieceKind,
    device: Device,
    cube: Array | _Joined,
    out: Array | None,
    carries: NDArray[np.uint32] | DeviceCarries | None,
    unfinished: bool,
    *,
    limits: Limits | None = None,
) -> NDArray[np.uint32] | DeviceCarries | None:
    """Scan a piece of slices, as many slices and elements at a time as the device can bind.

    Parameters
    ----------
    kind : PieceKind
        What to compute; its axis and sizes don't matter.
    device : Device
        Where.
    cube : ndarray or DeviceArray
        The piece: the dimensions before the axis as one, the axis, and those after it as one.
    out : ndarray, DeviceArray or None
        Where to put the results, of the shape of `cube`; None if only the carries matter.
    carries : ndarray of uint32, DeviceCarries or None
        The carries before the piece, in the shape of slices and words, or on the same device; None at the beginning of
        slices.
    unfinished : bool
        Whether a piece follows; the axis is then a multiple of 4096 elements long.
    limits : Limits, optional
        By which the piece is cut; the device's by default.

    Returns
    -------
    ndarray of uint32, DeviceCarries or None
        The carries after the piece, on the device if `out` is there; None if it is the last.
    """
    outer, length, inner = cube.shape
    windows = list(_windows(kind, limits or device.limits, cube))
    places = [(o, i) for o, i, _ in windows]
    if isinstance(carries, DeviceCarries) and carries.places != places:
        carries = carries.read()
    stay = isinstance(out, DeviceArray)
    shape = (outer, inner, kind.carry_words)
    after = np.empty(shape, np.uint32) if unfinished and not stay else None
    staying: list[tuple[Carried, ...]] = []
    for number, (o, i, steps) in enumerate(windows):
        x, y = cube[o, :, i], None if out is None else out[o, :, i]
        carry: NDArray[np.uint32] | tuple[Carried, ...] | None
        if isinstance(carries, DeviceCarries):
            carry = carries.carries[number]
        else:
            carry = None if carries is None else carries[o, i].reshape(-1, kind.carry_words)
        for begin, end in steps:
            part, results = cut(kind, x, begin, end), None if y is None else cut(kind, y, begin, end)
            carry = _scan_window(kind, device, part, results, carry, unfinished=unfinished or end < length)
        if isinstance(carry, tuple):
            staying.append(carry)
        elif after is not None and carry is not None:
            after[o, i] = carry.reshape(x.shape[0], x.shape[2], kind.carry_words)
    return DeviceCarries(device, shape, places, staying) if unfinished and stay else after


def scan_pieces(kind: PieceKind, device: Device, x: NDArray[Any], out: NDArray[Any], most: int) -> None:
    """Scan a C-ordered array into another one, of which at most so many bytes are on the device at a time."""
    assert out.flags.c_contiguous, "results would go into a copy"
    cube = kind.cube(x.shape[kind.axis])
    elements = most // max(kind.source.itemsize, kind.element.itemsize)
    limits = replace(device.limits, dispatch_elements=min(elements, device.limits.dispatch_elements))
    scan_cube(kind, device, x.reshape(cube), out.reshape(cube), None, unfinished=False, limits=limits)


def records_of_cube(kind: PieceKind, device: Device, cube: NDArray[Any]) -> NDArray[np.uint32]:
    """Return what becomes of each tile of a piece of whole tiles by itself.

    Parameters
    ----------
    kind, device, cube
        As for `scan_cube`.

    Returns
    -------
    ndarray of uint32, shape (outer, inner, tiles, words)
        The records, of each slice in traversal order, of `tile_record_words` each.
    """
    outer, length, inner = cube.shape
    words = tile_record_words(kind.accumulator_words)
    records = np.empty((outer, inner, length // TILE, words), np.uint32)
    for o, i, steps in _windows(kind, device.limits, cube):
        x = cube[o, :, i]
        for begin, end in steps:
            found = _records_of_window(kind, device, cut(kind, x, begin, end))
            records[o, i, begin // TILE : end // TILE] = found.reshape(x.shape[0], x.shape[2], -1, words)
    return records


def _windows(
    kind: PieceKind, limits: Limits, cube: Array | _Joined
) -> Iterator[tuple[slice, slice, list[tuple[int, int]]]]:
    """Cut a piece to what the device can bind: yield some slices, and the ends of parts of them in traversal order."""
    outer, length, inner = cube.shape
    itemsize = max(kind.source.itemsize, kind.element.itemsize)
    most = max_slices(limits, itemsize)
    many = max(1, most // max(1, inner))
    for o in range(0, outer, many):
        for i in range(0, inner, most):
            slices = min(many, outer - o) * min(most, inner - i)
            step = max_length(limits, itemsize, slices)
            yield np.s_[o : o + many], np.s_[i : i + most], [(n, min(n + step, length)) for n in range(0, length, step)]


def _scan_window(
    kind: PieceKind,
    device: Device,
    x: Array | _Joined,
    y: Array | None,
    carry: NDArray[np.uint32] | tuple[Carried, ...] | None,
    *,
    unfinished: bool,
) -> NDArray[np.uint32] | tuple[Carried, ...] | None:
    """Scan what the device can bind at once; carries stay on the device if results do."""
    with ExitStack() as temporaries:

        def temporary(tensor: Tensor) -> Tensor:
            temporaries.callback(tensor.buffer.release)
            return tensor

        if isinstance(x, DeviceArray):
            source = x._tensor if _is_near(x._tensor) else temporary(packed(x._tensor, kind.source, temporary=True))
        elif isinstance(x, _Joined):
            source = temporary(x.upload(device, kind.source))
        else:
            source = temporary(upload(device, x, temporary=True))
        out = y if isinstance(y, np.ndarray) else None
        if not isinstance(y, DeviceArray) and source.element == kind.element and not kind.options.monotone:
            problem = _problem(kind, source.layout, Layout.packed(x.shape))
            return _run_pieces([problem], source, None, carry, unfinished=unfinished, out=out)
        if isinstance(y, DeviceArray) and _is_near(y._tensor):
            target = y._tensor
        else:
            target = temporary(empty(device, kind.element, x.shape, temporary=True))
        if source.element != kind.element:
            assign(source, target)
            source = target
        problem = _problem(kind, source.layout, target.layout)
        problems = [problem.sums, problem.maxima] if problem.monotone else [problem]
        stay = isinstance(y, DeviceArray)
        after = _run_pieces(problems, source, target, carry, unfinished=unfinished, out=out, stay=stay)
        if isinstance(y, DeviceArray) and target is not y._tensor:
            assign(target, y._tensor)
    return after


def _is_near(tensor: Tensor) -> bool:
    """Whether one window can hold all from the first element of a tensor to the last."""
    low, high = tensor.layout.extent
    return (high - low) * tensor.element.itemsize <= max_bytes(tensor.device.limits)


def _records_of_window(kind: PieceKind, device: Device, x: NDArray[Any]) -> NDArray[np.uint32]:
    """Return the records of whole tiles of what the device can bind at once."""
    with ExitStack() as temporaries:
        source = upload(device, x, temporary=True)
        temporaries.callback(source.buffer.release)
        if source.element != kind.element:
            converted = empty(device, kind.element, x.shape, temporary=True)
            temporaries.callback(converted.buffer.release)
            assign(source, converted)
            source = converted
        return device.run_totals(_problem(kind, source.layout, source.layout), source.buffer)


def _problem(kind: PieceKind, source: Layout, target: Layout) -> ScanProblem:
    """Return the scan of a cube."""
    return kept_problem(kind.element, kind.operator, source, target, 1, kind.options)


def _run_pieces(
    problems: Sequence[ScanProblem],
    source: Tensor,
    target: Tensor | None,
    carry: NDArray[np.uint32] | tuple[Carried, ...] | None,
    *,
    unfinished: bool,
    out: NDArray[Any] | None,
    stay: bool = False,
) -> NDArray[np.uint32] | tuple[Carried, ...] | None:
    """Run a piece, and of a monotone sum the running maximum of its results; their carries lie side by side."""
    befores: Sequence[NDArray[np.uint32] | Carried | None]
    if isinstance(carry, np.ndarray):
        befores = np.split(carry, len(problems), axis=1)
    else:
        befores = carry or [None] * len(problems)
    last = len(problems) - 1
    afters = []
    for number, (problem, before) in enumerate(zip(problems, befores, strict=True)):
        read = source if number == 0 or target is None else target
        run = partial(read.device.run_piece, problem, read.buffer, None if target is None else target.buffer, before)
        afters.append(run(unfinished=unfinished, out=out if number == last else None, stay=stay))
    on_host = [after for after in afters if isinstance(after, np.ndarray)]
    if on_host:
        return on_host[0] if len(on_host) == 1 else np.concatenate(on_host, axis=1)
    staying = tuple(after for after in afters if after is not None and not isinstance(after, np.ndarray))
    return staying or None
