"""The cases of the suite. They are always the same, in an order in which neighbours share an expected result."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ..dtypes import BOOL, ELEMENT_TYPES, by_name
from ..planning.plan import EVERYWHERE, KERNELS
from ..planning.problem import MODES
from ..planning.windows import QUAD_BYTES
from .cases import Case, ConvertCase, RoundCase, ScanCase
from .placement import BROADCASTS, LAYOUTS, Placement

__all__ = ["suite"]

_TYPES = [element.name for element in ELEMENT_TYPES]
_FLOATS = [element.name for element in ELEMENT_TYPES if element.kind == "float"]
_OPERATORS = ("sum", "product")
_ORDERS = [(exclusive, reverse) for exclusive in (False, True) for reverse in (False, True)]
_WAYS = ("auto", *EVERYWHERE)

_BY_QUADS = {"float16": "product", "float32": "sum", "float64": "sum", 1: "sum", 2: "product", 4: "sum", 8: "product"}
"""The operator that has, by default, the slices that kernels read and write 16 bytes at a time: integers by size, as
they differ in nothing else. The other one has those that are read element by element; sums of float32 are read either
way."""
_IN_PLACE = {"float32": KERNELS, "uint8": KERNELS, "int64": ("rows",)}
_BESIDE = {"uint8": KERNELS, "int64": ("rows",)}
"""The types, with the kernels, that have input and output in one buffer by default, in sums."""
_MANY_DIMENSIONS = {"float32": "product", "uint8": "sum"}
"""The types that have more than two dimensions by default, and in which operator; one is wide and one is narrow."""

_BORDERS = (16, 256, 4096)
_LENGTHS = (1, *(border + i for border in _BORDERS for i in (-1, 0, 1)))
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
    'sum.float32.2x1.axis1.inclusive.increasing.offset-to-packed.rows.plain'
    """
    for part in (
        _lengths,
        _across,
        _strip_lookback,
        _reduce_then_scan,
        _layouts,
        _in_place,
        _shared_words,
        _many_short,
        _dimensions,
        _exceptional,
        _compensated,
        _monotone,
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
    order: int | None = None,
    *,
    placement: Placement = _PACKED,
    ways: tuple[str, ...] = EVERYWHERE,
    family: str = "plain",
) -> Iterator[ScanCase]:
    """Yield scans of one shape in both operators: in every order, or with a number in one of these, in turn."""
    orders = _ORDERS if order is None else [_ORDERS[order % len(_ORDERS)]]
    for operator, (exclusive, reverse), way in product(_OPERATORS, orders, ways):
        yield ScanCase(dtype, shape, placement, family, operator, axis, exclusive, reverse, way)


def _is_in_short(case: Case) -> bool:
    """Whether a case is among those that take about a minute.

    Drivers take longer to compile a pipeline than to run its cases. A pipeline depends on the kernel, the type, the
    operator, the way of reading elements, whether the buffers are one and whether there are several dimensions. By
    default each kernel has each of the others, and each type each operator and way of reading, instead of all
    combinations.
    """
    if not isinstance(case, ScanCase):
        return True
    in_quads, relation = _is_in_quads(case), case.placement.relation
    if case.operator == "compensated":
        return case.way == "slices" or not in_quads
    if case.operator == "monotone":
        return _is_by_quads(case, "sum") == in_quads
    if relation == "in-place":
        kernels = () if in_quads and case.dtype != "float32" else _IN_PLACE.get(case.dtype, ())
        return case.operator == "sum" and case.way in kernels
    if len(case.shape) > 2 and _MANY_DIMENSIONS.get(case.dtype) != case.operator:
        return False
    if relation == "beside":
        return case.operator == "sum" and case.way in _BESIDE.get(case.dtype, ())
    if len(case.shape) > 2:
        return case.dtype not in _BESIDE
    if _is_by_quads(case, case.operator) != in_quads and (in_quads or case.dtype != "float32"):
        return False
    if case.way in ("auto", "strip_lookback", "reduce_then_scan") or max(case.shape) > _LONG_LENGTHS[1]:
        return True
    # Half of the kernels for each order, in turn, so that each kernel has each of them.
    length = case.shape[case.axis] // (_fold(case.dtype) if in_quads else 1)
    return KERNELS.index(case.way) % 2 == (case.exclusive + case.reverse + length) % 2


def _is_by_quads(case: ScanCase, operator: str) -> bool:
    """Whether an operator has, by default, the slices of a type that kernels read 16 bytes at a time."""
    return operator == (_BY_QUADS.get(case.dtype) or _BY_QUADS[by_name(case.dtype).itemsize])


def _fold(dtype: str) -> int:
    """Return the number of elements in 16 bytes."""
    return QUAD_BYTES // by_name(dtype).itemsize


def _is_in_quads(case: ScanCase) -> bool:
    """Whether kernels read and write a slice 16 bytes at a time."""
    return (
        case.axis == len(case.shape) - 1
        and not case.reverse
        and case.placement.source == case.placement.target == "packed"
        and case.shape[-1] % _fold(case.dtype) == 0
    )


def _lengths(full: bool) -> Iterator[Case]:
    """Slices that end around the borders of runs, blocks, tiles and spans."""
    for dtype in _TYPES:
        for length in _LENGTHS:
            yield from _scans(dtype, (2, length), 1, placement=Placement("offset", "to", "packed"))
        fold = _fold(dtype)
        for length in sorted({border + i for border in _BORDERS for i in (-fold, 0, fold)} - {0}):
            yield from _scans(dtype, (2, length), 1)
        for n, length in enumerate(_LONG_LENGTHS[2:4]):
            order = None if full else 3 - n
            yield from _scans(dtype, (length,), 0, order, placement=Placement("offset", "to", "packed"))
    if full:
        for dtype, length in product(_TYPES, _MORE_LENGTHS):
            yield from _scans(dtype, (3, length), 1, ways=_WAYS)
        for dtype, length in product(_TYPES, [length for length in _LENGTHS if length not in _BORDERS]):
            yield from _scans(dtype, (2, length), 1)
        for dtype, length in product(_TYPES, _LONG_LENGTHS):
            yield from _scans(dtype, (length,), 0)


def _across(full: bool) -> Iterator[Case]:
    """Slices side by side, along the first and the middle dimension."""
    for number, (dtype, length) in enumerate(product(_TYPES, (17, 257, 4097))):
        order = None if full else number
        yield from _scans(dtype, (length, 3), 0, order, ways=_WAYS)
        placement = Placement("packed", "beside" if dtype in _BESIDE else "to", "packed")
        yield from _scans(dtype, (2, length, 5), 1, order, placement=placement, ways=_WAYS)
    for number, dtype in enumerate(("float16", "uint16", "uint8") if not full else _TYPES):
        order = None if full else number
        yield from _scans(dtype, (17, 16_384), 0, order, ways=("auto",))  # several adjacent slices an invocation
    for number, dtype in enumerate(("float32",) if not full else _TYPES):
        order = None if full else number
        yield from _scans(dtype, (145, 4096), 0, order, ways=("auto",))  # wide strips on GPUs
        if by_name(dtype).itemsize >= 4:
            yield from _scans(dtype, (145, 4097), 0, order, ways=("auto",))  # and of words that are no pairs
    for number, dtype in enumerate(("float16", "uint8") if not full else _TYPES):
        order = None if full else number
        yield from _scans(dtype, (145, 1021), 0, order, ways=("auto",))  # rows of strips that begin inside words
    if full:
        for number, (dtype, shape) in enumerate(product(_TYPES, ((16, 4096), (256, 300), (4096, 130), (65_537, 2)))):
            yield from _scans(dtype, shape, 0, number, ways=_WAYS)


def _strip_lookback(full: bool) -> Iterator[Case]:
    """Few slices side by side, of several tiles: floats in words and halves, integers that share a word, odd rows.

    And rows of less than a sector, of which two columns are whole tiles of a workgroup.
    """
    for number, dtype in enumerate(_TYPES if full else ("float32", "float16", "uint8")):
        yield from _scans(dtype, (8700, 2), 0, None if full else number, ways=("strip_lookback",))
    for dtype in ("float32", "float16"):
        yield from _scans(dtype, (9001, 2), 0, None if full else 0, family="special", ways=("strip_lookback",))
    for dtype in _TYPES:
        yield from _scans(dtype, (4400, 40), 0, ways=("strip_lookback",))
        if full or dtype in ("uint8", "float16"):
            yield from _scans(dtype, (4400, 37), 0, None if full else 0, ways=("strip_lookback",))
    for dtype, family in product(_FLOATS, ("special", "subnormal", "wandering")):
        cases = _scans(dtype, (9001, 24), 0, None if full else 0, family=family, ways=("strip_lookback",))
        yield from (case for case in cases if family != "wandering" or case.operator == "product")
    if full:
        for dtype in _TYPES:
            yield from _scans(dtype, (2, 4400, 37), 1, ways=("strip_lookback",))
            yield from _scans(dtype, (4400, 40), 0, placement=Placement.in_place("padded"), ways=("strip_lookback",))


def _reduce_then_scan(full: bool) -> Iterator[Case]:
    """Few slices of several tiles, read twice; and of several spans. Integers look back instead."""
    ways = ("reduce_then_scan",)
    for dtype in _FLOATS:
        yield from _scans(dtype, (3, 9001), 1, ways=ways)
        yield from _scans(dtype, (3, 9008), 1, None if full else 0, ways=ways)
    for number, (dtype, family) in enumerate(product(_FLOATS, ("special", "subnormal", "wandering"))):
        cases = [*_scans(dtype, (3, 12_301), 1, None if full else number, family=family, ways=ways)]
        cases += _scans(dtype, (12_301, 3), 0, None if full else number + 1, family=family, ways=ways)
        yield from (case for case in cases if family != "wandering" or case.operator == "product")
    for number, dtype in enumerate(_FLOATS):
        yield from _scans(dtype, (140_001,), 0, None if full else number, ways=ways)
        yield from _scans(dtype, (3, 9001), 1, None if full else 0, placement=Placement.in_place("padded"), ways=ways)


def _layouts(full: bool) -> Iterator[Case]:
    """Every input layout against output layouts, in two buffers and in one, along each axis."""
    sources = (*LAYOUTS, *BROADCASTS)
    for n, dtype in enumerate(_TYPES):
        for (i, source), (j, target) in product(enumerate(sources), enumerate(LAYOUTS)):
            if not full and (i + j + n) % 5 > 1:  # each input layout with two of the five
                continue
            number = n + 2 * i + 3 * j
            for axis in range(3):
                placement = Placement(source, "beside" if (i + j + axis) % 3 == 0 else "to", target)
                yield from _scans(dtype, (3, 37, 5), axis, number, placement=placement)
                if axis == 1:
                    yield from _scans(dtype, (2, 263, 4), axis, number - i + 2 * j, placement=placement)
            placement = Placement(source, "to", target)
            yield from _scans(dtype, (7, 37), (i + j) % 2, number, placement=placement)
            yield from _scans(dtype, (263, 3), 0, number + 1, placement=placement)
            if (i + j) % 3 == 0:
                placement = Placement(source, "beside", target)
                yield from _scans(dtype, (5, 41), (i + j) % 2, number, placement=placement)


def _in_place(full: bool) -> Iterator[Case]:
    for n, (dtype, layout) in enumerate(product(_TYPES, LAYOUTS)):
        placement = Placement.in_place(layout)
        for i, length in enumerate((17, 257, 4501, 4500)):
            order = None if full else 3 * n + i
            yield from _scans(dtype, (3, length), 1, order, placement=placement)
            yield from _scans(dtype, (length, 3), 0, order, placement=placement)


def _shared_words(full: bool) -> Iterator[Case]:
    """Slices of a few elements: invocations and workgroups share words."""
    narrow = [element.name for element in ELEMENT_TYPES if element.itemsize < 4]
    placement = Placement("packed", "to", "offset")
    by_slice = tuple(kernel for kernel in EVERYWHERE if kernel != "slices")  # those of a workgroup or more a slice
    for dtype, length in product(_TYPES if full else narrow, range(1, 10)):
        for count, ways in ((501, EVERYWHERE if full else ("slices",)), (65, by_slice)):
            yield from _scans(dtype, (count, length), 1, length, placement=placement, ways=ways)
            yield from _scans(dtype, (length, count), 0, length + 3, placement=placement, ways=ways)


def _many_short(full: bool) -> Iterator[Case]:
    """Slices of a single run, enough for kernels that are made for their length, and for several an invocation."""
    for number, dtype in enumerate(_TYPES):
        for length in range(1, 17) if full else (number % 15 + 1,):
            # No multiple of the slices of an invocation, so that some are left over.
            shape = (2**16 // length + 17, length)
            order = None if full else 2 * number
            yield from _scans(dtype, shape, 1, order, ways=("auto",), family="special" if dtype in _FLOATS else "plain")


def _dimensions(full: bool) -> Iterator[Case]:
    """Every axis of tensors of one to eight dimensions."""
    shapes: list[tuple[int, ...]] = [(2, 3, 1, 2, 2, 1, 2, 3)]
    if full:
        shapes += [(2, 3, 1, 4, 2, 3, 2, 5)[:ndim] for ndim in range(1, 9)]
    for (n, dtype), shape in product(enumerate(_TYPES), shapes):
        for axis, layout in product(range(len(shape)), ("transposed", "padded")):
            placement = Placement("packed", "beside" if dtype in _BESIDE else "to", layout)
            yield from _scans(dtype, shape, axis, n + axis + len(shape), placement=placement)


def _exceptional(full: bool) -> Iterator[Case]:
    """NaN, infinities, zeros and extremes; and apart from them, subnormals; products near underflow and overflow."""
    for family, dtype in product(("special", "subnormal"), _FLOATS):
        for n, length in enumerate((17, 257, 4097, 16, 264, 4104)):
            yield from _scans(dtype, (4, length), 1, None if full or family == "special" else n, family=family)
        for n, length in enumerate((3, 8, 33, 301, 304, 9001, 9008)):
            yield from _scans(dtype, (4, length), 1, None if full else n, family=family)
        for n, length in enumerate((17, 257, 4097, 3, 33, 301, 9001)):
            yield from _scans(dtype, (length, 4), 0, None if full else n + 1, family=family, ways=_WAYS)
    for dtype, (n, length) in product(_FLOATS, enumerate((16, 304, 4104, 4501, 9001, 9008))):
        both = None if full else n
        cases = [*_scans(dtype, (4, length), 1, both, family="wandering")]
        cases += _scans(dtype, (length, 4), 0, both, family="wandering", ways=_WAYS)
        yield from (case for case in cases if case.operator == "product")


def _compensated(full: bool) -> Iterator[Case]:
    """Compensated sums: around the borders of the order, across, with NaN and infinity, in place."""
    shapes: list[tuple[tuple[int, ...], int, str]] = [((2, n), 1, "plain") for n in (_LENGTHS if full else (17, 4097))]
    shapes += [((131_073,), 0, "plain"), ((4097, 3), 0, "plain")]
    shapes += [((4, n), 1, family) for family in ("special", "subnormal") for n in (300, 301, 4097)]
    for shape, axis, family in shapes:
        for (exclusive, reverse), way in product(_ORDERS if full else [_ORDERS[0], _ORDERS[-1]], EVERYWHERE):
            for placement in (_PACKED, Placement.in_place("packed")) if full else (_PACKED,):
                yield ScanCase("float32", shape, placement, family, "compensated", axis, exclusive, reverse, way)


def _monotone(full: bool) -> Iterator[Case]:
    """Monotone sums: each type with a kernel in turn, float32 with all of them; NaN, infinity and zeros."""
    offset = Placement("packed", "to", "offset")
    for number, dtype in enumerate(_TYPES):
        ways = EVERYWHERE if full or dtype == "float32" else (EVERYWHERE[number % len(EVERYWHERE)],)
        families = ("plain", "special", "subnormal") if dtype in _FLOATS else ("plain",)
        for n, (family, way) in enumerate(product(families if full else families[:2], ways)):
            for exclusive, reverse in _ORDERS if full else product([(number + n) % 2 == 1], (False, True)):
                order = "monotone", 1, exclusive, reverse, way
                yield ScanCase(dtype, (2, 4501), offset, family, *order)
                if not reverse:
                    yield ScanCase(dtype, (2, 4512), _PACKED, family, *order)
                if full:
                    yield ScanCase(dtype, (2, 300), Placement.in_place("padded"), family, *order)
                    yield ScanCase(dtype, (3, 16), Placement("broadcast", "beside", "packed"), family, *order)
    if full:
        for dtype in _TYPES:
            yield ScanCase(dtype, (300_007,), _PACKED, "plain", "monotone", 0, False, False, "auto")
            yield ScanCase(dtype, (300, 512), _PACKED, "plain", "monotone", 0, True, True, "auto")


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
    yield from _scans("uint8", (70_000, 65), 1, 0, ways=("lookback",))
    for order in (0, 3):
        yield from _scans("float32", (34_000_000,), 0, order, ways=("auto",))
    yield from _scans("float32", (34, 1_000_000), 0, 3, ways=("auto",))
    yield RoundCase("float32", (34_000_000,), _PACKED, "patterns", "half_even")
