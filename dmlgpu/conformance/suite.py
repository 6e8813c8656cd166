"""The cases of the suite, always the same ones, in an order in which neighbours share an expected result."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ..dtypes import BOOL, ELEMENT_TYPES
from ..plan import KERNELS
from .cases import MODES, Case, ConvertCase, RoundCase, ScanCase
from .placement import BROADCASTS, LAYOUTS, Placement

__all__ = ["suite"]

_TYPES = [element.name for element in ELEMENT_TYPES]
_FLOATS = [element.name for element in ELEMENT_TYPES if element.kind == "float"]
_OPERATORS = ("sum", "product")
_ORDERS = [(exclusive, reverse) for exclusive in (False, True) for reverse in (False, True)]
_WAYS = ("auto", *KERNELS)
_ONE_OF_EACH_SIZE = ("float32", "int64", "uint16", "uint8")
"""Kernels treat types of one size alike where elements lie elsewhere than in rows of their own buffer."""
_ONE_WIDE_ONE_NARROW = ("float32", "uint8")

_LENGTHS = (1, 15, 16, 17, 255, 256, 257, 4095, 4096, 4097)
_MORE_LENGTHS = (2, 31, 32, 33, 48, 240, 241, 511, 512, 513, 4080, 8191, 8192, 8193, 12_289)
_LONG_LENGTHS = (65_535, 65_536, 65_537, 131_073, 300_007)
_PACKED = Placement()


def suite(full: bool = False) -> Iterator[Case]:
    """Yield the cases of the suite.

    Parameters
    ----------
    full : bool
        Yield all of them, not only those that take a modest device about a minute.

    Examples
    --------
    >>> from dmlgpu.conformance import suite
    >>> next(suite()).name
    'sum.float32.2x1.axis1.inclusive.increasing.packed-to-packed.rows.plain'
    """
    for part in (
        _lengths,
        _across,
        _layouts,
        _in_place,
        _shared_words,
        _dimensions,
        _exceptional,
        _compensated,
        _roundings,
        _conversions,
    ):
        yield from (case for case in part(full) if full or _is_in_short(case))
    if full:
        yield from _large()


def _scans(
    dtype: str,
    shape: tuple[int, ...],
    axis: int,
    number: int | None = None,
    *,
    placement: Placement = _PACKED,
    ways: tuple[str, ...] = KERNELS,
    family: str = "plain",
    operators: tuple[str, ...] = _OPERATORS,
) -> Iterator[Case]:
    """Yield scans of one shape: in every operator and order, or with a number in one of these, in turn."""
    variants = list(product(operators, _ORDERS))
    for operator, (exclusive, reverse) in variants if number is None else [variants[number % len(variants)]]:
        for way in ways:
            yield ScanCase(dtype, shape, placement, family, operator, axis, exclusive, reverse, way)


def _is_in_short(case: Case) -> bool:
    """Whether a case is among those that take about a minute: half of the kernels for each operator and order.

    Which half alternates with these and the length, so that each kernel has each of them.
    """
    if not isinstance(case, ScanCase) or case.operator not in _OPERATORS:
        return True
    if len(case.shape) > 2:
        if case.dtype not in _ONE_WIDE_ONE_NARROW:
            return False
    elif case.placement.relation == "beside":
        return case.dtype == "int64"  # few, so with every kernel
    elif case.placement.relation != "to" and case.dtype not in _ONE_OF_EACH_SIZE:
        return False
    if case.way == "auto" or max(case.shape) > _LONG_LENGTHS[2]:
        return True
    half = (_OPERATORS.index(case.operator) + case.exclusive + case.reverse + case.shape[case.axis]) % 2
    return KERNELS.index(case.way) % 2 == half


def _lengths(full: bool) -> Iterator[Case]:
    """Slices that end around the borders of runs, blocks, tiles and spans."""
    for dtype, length, operator in product(_TYPES, _LENGTHS, _OPERATORS):
        # How elements are read is none of the operator's business: by default, sums alone have the pipelines for quads.
        if operator == "product" and length % 16 == 0:
            placement = Placement("offset", "to", "packed")
            yield from _scans(dtype, (2, length), 1, placement=placement, operators=(operator,))
            if not full:
                continue
        yield from _scans(dtype, (2, length), 1, operators=(operator,))
    for n, (dtype, length) in enumerate(product(_TYPES, (65_537, 131_073))):
        # Integers have the same results in any order.
        numbers = (2 * n + 1, 2 * n + 6) if dtype in _FLOATS else (n,)
        for number in numbers:
            is_sum = number % 8 < 4
            if not (full and is_sum):
                placement = _PACKED if is_sum else Placement("offset", "to", "packed")
                yield from _scans(dtype, (length,), 0, number, placement=placement)
    if full:
        for dtype, length in product(_TYPES, _MORE_LENGTHS):
            yield from _scans(dtype, (3, length), 1, ways=_WAYS)
        for dtype, length in product(_TYPES, _LONG_LENGTHS):
            yield from _scans(dtype, (length,), 0)


def _across(full: bool) -> Iterator[Case]:
    """Slices side by side, along the first and the middle dimension."""
    for number, (dtype, length) in enumerate(product(_TYPES, (17, 257, 4097))):
        for i, (shape, axis) in enumerate((((length, 3), 0), ((2, length, 5), 1))):
            yield from _scans(dtype, shape, axis, None if full else 3 * number + i, ways=_WAYS)
    if full:
        for number, (dtype, shape) in enumerate(product(_TYPES, ((16, 4096), (256, 300), (4096, 130), (65_537, 2)))):
            for i in range(4):
                yield from _scans(dtype, shape, 0, number + 3 * i, ways=_WAYS)


def _layouts(full: bool) -> Iterator[Case]:
    """Every input layout against output layouts, in two buffers and in one, along each axis.

    By default, operators that share a buffer are sums, and most types have two dimensions: with other operators or
    bindings or more dimensions a kernel is another pipeline, and drivers take longer to compile one than to run cases.
    """
    sources = (*LAYOUTS, *BROADCASTS)
    for n, dtype in enumerate(_TYPES):
        for (i, source), (j, target) in product(enumerate(sources), enumerate(LAYOUTS)):
            if not full and (i + j + n) % 5 > 1:  # each input layout with two of the five
                continue
            if dtype not in _ONE_WIDE_ONE_NARROW:
                yield from _layouts_of_two_dimensions(dtype, source, target, i + j, n + 2 * i + 3 * j)
            for axis in range(3) if full else [(i + j) % 3]:
                beside = (i + j + axis) % 3 == 0
                placement = Placement(source, "beside" if beside else "to", target)
                shapes = [((3, 37, 5), n + 2 * i + 3 * j)]
                if axis == 1:
                    shapes.append(((2, 263, 4), n + i + 5 * j))
                for shape, number in shapes:
                    numbers = [number]
                    if beside:
                        numbers = [number % 4, number % 4 + 4] if full else [number % 4]
                    for each in numbers:
                        yield from _scans(dtype, shape, axis, each, placement=placement)


def _layouts_of_two_dimensions(dtype: str, source: str, target: str, axis: int, number: int) -> Iterator[Case]:
    placement = Placement(source, "to", target)
    yield from _scans(dtype, (7, 37), axis % 2, number, placement=placement)
    if dtype == "int64" and axis % 3 == 0:  # two words an element, at an offset in a binding
        placement = Placement(source, "beside", target)
        yield from _scans(dtype, (5, 41), axis % 2, number % 4, placement=placement)
    yield from _scans(dtype, (263, 3), 0, number + 1, placement=placement)


def _in_place(full: bool) -> Iterator[Case]:
    for n, (dtype, layout) in enumerate(product(_TYPES, LAYOUTS)):
        placement = Placement.in_place(layout)
        lengths = [(0, 17), (1, 257), (2, 4501)]
        if full or dtype == "float32":
            lengths.append((2, 4500))  # quads, where elements have 4 or 8 bytes
        for i, length in lengths:
            sums_only = not full and dtype != "float32"
            number = (3 * n + i) % (4 if sums_only else 8)
            yield from _scans(dtype, (3, length), 1, None if full else number, placement=placement)
            yield from _scans(dtype, (length, 3), 0, None if full else number, placement=placement)


def _shared_words(full: bool) -> Iterator[Case]:
    """Slices of a few elements: invocations and workgroups share words."""
    narrow = [element.name for element in ELEMENT_TYPES if element.itemsize < 4]
    placement = Placement("packed", "to", "offset")
    by_slice = tuple(kernel for kernel in KERNELS if kernel != "slices")  # a workgroup or more for each slice
    for dtype, length in product(_TYPES if full else narrow, range(1, 10)):
        for count, ways in ((501, KERNELS if full else ("slices",)), (65, by_slice)):
            yield from _scans(dtype, (count, length), 1, length, placement=placement, ways=ways)
            yield from _scans(dtype, (length, count), 0, length + 3, placement=placement, ways=ways)


def _dimensions(full: bool) -> Iterator[Case]:
    """Every axis of tensors of one to eight dimensions."""
    shapes: list[tuple[int, ...]] = [(2, 3, 1, 2, 2, 1, 2, 3)]
    if full:
        shapes += [(2, 3, 1, 4, 2, 3, 2, 5)[:ndim] for ndim in range(1, 9)]
    for n, dtype in enumerate(_TYPES):
        for shape in shapes:
            for axis, layout in product(range(len(shape)), ("transposed", "padded")):
                placement = Placement("packed", "to", layout)
                yield from _scans(dtype, shape, axis, n + axis + len(shape), placement=placement)


def _exceptional(full: bool) -> Iterator[Case]:
    """NaN, infinities, zeros and extremes; and apart from them, subnormals."""
    for family, dtype in product(("special", "subnormal"), _FLOATS):
        # By default only float32 has lengths that are read as quads, which the elements' values have no part in.
        quads, none = (4, 33, 300, 9000), (3, 33, 301, 9001)
        more = sorted({*quads, *none}) if full else quads if dtype == "float32" else none
        for n, length in enumerate((17, 257, 4097, *more)):
            everything = full or length in (17, 257, 4097)
            yield from _scans(dtype, (4, length), 1, None if everything else n, family=family)
            yield from _scans(dtype, (length, 4), 0, None if full else n + 1, family=family, ways=_WAYS)


def _compensated(full: bool) -> Iterator[Case]:
    """Compensated sums: around the borders of the order, across, with NaN and infinity, in place."""
    shapes: list[tuple[tuple[int, ...], int, str]] = [((2, n), 1, "plain") for n in (_LENGTHS if full else (17, 4097))]
    shapes += [((131_073,), 0, "plain"), ((4097, 3), 0, "plain")]
    shapes += [((4, n), 1, family) for family in ("special", "subnormal") for n in (300, 4097)]
    for shape, axis, family in shapes:
        for (exclusive, reverse), way in product(_ORDERS if full else [_ORDERS[0], _ORDERS[-1]], KERNELS):
            for placement in (_PACKED, Placement.in_place("packed")) if full else (_PACKED,):
                yield ScanCase("float32", shape, placement, family, "compensated", axis, exclusive, reverse, way)


def _roundings(full: bool) -> Iterator[Case]:
    for dtype, mode in product(_FLOATS, MODES):
        yield RoundCase(dtype, (65_536,), _PACKED, "patterns", mode)
        yield RoundCase(dtype, (4097,), _PACKED, "plain", mode)
        for source, target in product((*LAYOUTS, BROADCASTS[0]), LAYOUTS if full else ("packed", "transposed")):
            for relation in ("to", "beside"):
                yield RoundCase(dtype, (7, 11, 5), Placement(source, relation, target), "patterns", mode)
        for layout in LAYOUTS:
            yield RoundCase(dtype, (7, 11, 5), Placement.in_place(layout), "patterns", mode)
        if full:
            yield RoundCase(dtype, (1 << 20,), _PACKED, "patterns", mode)


def _conversions(full: bool) -> Iterator[Case]:
    for (i, source), (j, target) in product(enumerate([*_TYPES, BOOL.name]), enumerate(_TYPES)):
        yield ConvertCase(source, (8192,), _PACKED, "patterns", target)
        # No multiple of a workgroup's invocations, so that one too many would write beside the output.
        yield ConvertCase(source, (1001,), Placement("packed", "to", "offset"), "special", target)
        if full or i == j:
            yield ConvertCase(source, (5, 7, 9), Placement("transposed", "to", "offset"), "patterns", target)
        if full:
            yield ConvertCase(source, (1 << 18,), _PACKED, "patterns", target)
            for one, other in product((*LAYOUTS, BROADCASTS[0]), LAYOUTS):
                yield ConvertCase(source, (5, 7, 9), Placement(one, "to", other), "plain", target)


def _large() -> Iterator[Case]:
    """More slices than workgroups in a dimension, and more bytes than WebGPU's default binding holds."""
    for number, dtype in enumerate(_TYPES):
        yield from _scans(dtype, (70_000, 33), 1, number, ways=("auto", "slices"))
        yield from _scans(dtype, (2, 70_001), 0, number + 1, ways=("auto",))
    yield from _scans("uint8", (70_000, 65), 1, 0, ways=("tiles",))
    for operator_and_order in (0, 3, 7):
        yield from _scans("float32", (34_000_000,), 0, operator_and_order, ways=("auto",))
    yield from _scans("float32", (34, 1_000_000), 0, 3, ways=("auto",))
    yield RoundCase("float32", (34_000_000,), _PACKED, "patterns", "half_even")
