"""Every place that a shader computes is right up to the last byte that it can bind, by its own text: see wgsl.py."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import cycle, islice, product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from dmlgpu import shaders
from dmlgpu.dtypes import by_name
from dmlgpu.layout import Layout
from dmlgpu.planning.dispatch import Pass
from dmlgpu.planning.kernels import serial_steps
from dmlgpu.planning.plan import EVERYWHERE
from dmlgpu.planning.plan import passes_of as planned
from dmlgpu.planning.problem import (
    ElementwiseProblem,
    Operator,
    Precision,
    RoundingMode,
    ScanOptions,
    ScanProblem,
    convert_problem,
    round_problem,
    scan_problem,
)
from dmlgpu.planning.windows import MAX_BINDING_BYTES, RUN, TILE, Limits

from . import wgsl
from .harness import changed

GPU = Limits(binding_bytes=2**40, offset_alignment=16)
SOFTWARE = changed(GPU, software=True, columns=True, float64=True, dispatch_elements=2**24)
MOST_PASSES = 24
"""Of a case that has more the first ones are looked at."""
TYPES = ("uint8", "float16", "float32", "int64", "float64")


@dataclass(frozen=True)
class Case:
    """A problem whose tensors reach to the end of the largest binding.

    Attributes
    ----------
    way : str
        How: where the elements are, and the limits.
    """

    way: str
    problem: ScanProblem | ElementwiseProblem
    limits: Limits
    one_buffer: bool = False
    kernel: str | None = None


def to_the_end(sizes: tuple[int, ...], axis: int, itemsize: int, unit: int) -> Layout:
    """Return a layout of an axis whose elements lie far apart, which ends at the last `unit` bytes of a binding."""
    room = MAX_BINDING_BYTES // unit * unit // itemsize
    inner = int(np.prod([size for i, size in enumerate(sizes) if i != axis]))
    strides = list(Layout.packed(tuple(1 if i == axis else size for i, size in enumerate(sizes))).strides)
    step = unit // itemsize if unit > itemsize else 1
    strides[axis] = (room - inner) // (sizes[axis] - 1) // step * step
    left = room - inner - strides[axis] * (sizes[axis] - 1)
    return Layout(sizes, tuple(strides), left // step * step)


def scans() -> Iterator[Case]:
    for name in TYPES:
        element, random = by_name(name), Random(name)
        for kernel in EVERYWHERE:
            # Few slices, far apart, of vectors or not; then many; then elements far apart, in both directions.
            whole = 0 if kernel == "slices" else TILE
            for length, unit in ((whole + 48, 16), (whole + 35, element.itemsize)):
                rows = to_the_end((3, length), 0, element.itemsize, unit)
                problem = scan_problem(element, Operator.SUM, rows, rows, axis=1)
                apart = scan_problem(element, Operator.SUM, rows, replace(rows, offset=2**33), axis=1)
                yield Case(f"{name} rows {kernel} {unit}", problem, GPU, kernel=kernel)
                if name in ("uint8", "float32"):
                    yield Case(f"{name} rows {kernel} {unit} in place", problem, GPU, True, kernel)
                    yield Case(f"{name} rows {kernel} {unit} apart", apart, GPU, True, kernel)
                if name in ("float32", "float64") or element.itemsize < 4:
                    yield Case(f"{name} rows {kernel} {unit} software", problem, SOFTWARE, kernel=kernel)
            many = to_the_end((2**19, 24), 0, element.itemsize, element.itemsize)
            down = to_the_end((40, 3), 0, element.itemsize, element.itemsize)
            for layout, axis in ((many, 1), (down, 0)):
                problem = scan_problem(element, Operator.PRODUCT, layout, layout, axis, ScanOptions(exclusive=True))
                yield Case(f"{name} far {kernel} {axis}", problem, GPU, kernel=kernel)
                problem = scan_problem(element, Operator.SUM, layout, layout, axis, ScanOptions(reverse=True))
                yield Case(f"{name} backwards {kernel} {axis}", problem, GPU, True, kernel)
        # Adjacent slices, taken by the word or by the vector.
        columns = to_the_end((36, 2**14), 0, element.itemsize, 16)
        for limits in (GPU, changed(SOFTWARE, near_elements=2**24), changed(SOFTWARE, near_elements=0)):
            problem = scan_problem(element, Operator.SUM, columns, columns, axis=0)
            yield Case(f"{name} columns", problem, limits)
            yield Case(f"{name} columns in place", problem, limits, True)
            apart = scan_problem(element, Operator.SUM, columns, replace(columns, offset=2**33), axis=0)
            yield Case(f"{name} columns apart", apart, limits, True)
        # Rows of whole words, and rows that begin anywhere, on a software device.
        for way, width, unit in (("columns of words", 2**10 + 4, 4), ("odd columns", 2**10 + 3, 1)):
            layout = to_the_end((36, width), 0, element.itemsize, unit)
            problem = scan_problem(element, Operator.SUM, layout, layout, 0)
            yield Case(f"{name} {way}", problem, SOFTWARE)
            if element.kind != "float":
                yield Case(f"{name} {way} in place", problem, SOFTWARE, True)
        for width in (2**14, 520):  # of strips with more than a tile; 40 rows are too few for wide elements
            down = to_the_end((TILE + 36, width), 0, element.itemsize, 16)
            for exclusive in (False, True):
                problem = scan_problem(element, Operator.SUM, down, down, 0, ScanOptions(exclusive=exclusive))
                yield Case(f"{name} strips of tiles", problem, replace(GPU, float64=True), kernel="strips")
        if element.itemsize < 4:  # rows that begin anywhere in a word
            for sizes, axis in (((TILE + 36, 521), 0), ((7, 40, 101), 1)):
                down = to_the_end(sizes, axis, element.itemsize, element.itemsize)
                for exclusive in (False, True):
                    problem = scan_problem(element, Operator.SUM, down, down, axis, ScanOptions(exclusive=exclusive))
                    yield Case(f"{name} unaligned strips", problem, GPU, kernel="strips")
                    yield Case(f"{name} unaligned strips in place", problem, GPU, True, "strips")
        for width, kernel in product((2, 3, 7), ("strips", "strip_lookback")):
            if width * element.itemsize >= 32:
                continue
            down = to_the_end((2 * TILE + 36, width), 0, element.itemsize, element.itemsize)
            for exclusive in (False, True):
                problem = scan_problem(element, Operator.SUM, down, down, 0, ScanOptions(exclusive, exclusive))
                yield Case(f"{name} staged {kernel}", problem, replace(GPU, float64=True), kernel=kernel)
                yield Case(f"{name} staged {kernel} in place", problem, GPU, True, kernel)
        for width in (40, 77):  # tiles of strips: words, halves, and rows that begin anywhere in a word
            down = to_the_end((2 * TILE + 36, width), 0, element.itemsize, element.itemsize if width == 77 else 16)
            for exclusive in (False, True):
                problem = scan_problem(element, Operator.SUM, down, down, 0, ScanOptions(exclusive=exclusive))
                yield Case(f"{name} tiles of strips", problem, replace(GPU, float64=True), kernel="strip_lookback")
            yield Case(f"{name} tiles of strips in place", problem, GPU, True, "strip_lookback")
        # Single runs, which are packed on software devices, and windows inside tiles and runs.
        short = to_the_end((3, 11), 0, element.itemsize, element.itemsize)
        yield Case(f"{name} short", scan_problem(element, Operator.SUM, short, short, axis=1), SOFTWARE)
        packed = Layout.packed((2**28 // 3, 3))
        yield Case(f"{name} packed", scan_problem(element, Operator.SUM, packed, packed, axis=1), SOFTWARE)
        for length in (3, 90):
            blocks = Layout.packed((MAX_BINDING_BYTES // element.itemsize // length, length))
            problem = scan_problem(element, Operator.SUM, blocks, blocks, axis=1)
            yield Case(f"{name} blocks", problem, replace(GPU, float64=True))
            if name in ("uint8", "float32"):
                yield Case(f"{name} blocks in place", problem, GPU, True)
        for length in (3, 16):
            short = to_the_end((2**16, length), 0, element.itemsize, 16)
            yield Case(f"{name} short", scan_problem(element, Operator.SUM, short, short, axis=1), GPU)
        for size, pitch in (
            (3 * TILE, 2**20 + 7),
            (300, 2**26 // element.itemsize),
            (40, 2**29 // element.itemsize - 1),
        ):
            far = Layout((size, 2), (pitch, 1))
            yield Case(f"{name} windows {size}", scan_problem(element, Operator.SUM, far, far, axis=0), GPU)
        # Up to eight dimensions, at random.
        for number in range(12):
            sizes = [random.choice((1, 2, 3, 5, 17)) for _ in range(random.randrange(2, 9))]
            order = random.sample(range(len(sizes)), len(sizes))
            strides, extent = [0] * len(sizes), 1
            for i in order:
                stride = extent * random.choice((1, 1, 2, 9))
                strides[i] = stride
                extent += (sizes[i] - 1) * stride
            factor = max(1, MAX_BINDING_BYTES // element.itemsize // extent)
            layout = Layout(tuple(sizes), tuple(stride * factor for stride in strides))
            axis, reverse = random.randrange(len(sizes)), random.random() < 0.5
            problem = scan_problem(element, Operator.SUM, layout, layout, axis, ScanOptions(reverse=reverse))
            yield Case(f"{name} random {number}", problem, random.choice((GPU, SOFTWARE)), number % 3 == 0)
    rows = to_the_end((3, TILE + 48), 0, 4, 16)
    problem = scan_problem(
        by_name("float32"), Operator.SUM, rows, rows, 1, ScanOptions(precision=Precision.COMPENSATED)
    )
    yield from (Case(f"compensated {kernel}", problem, GPU, kernel=kernel) for kernel in EVERYWHERE)
    for name, kernel in [*zip(cycle(TYPES), EVERYWHERE, strict=False), *product(("float32",), EVERYWHERE)]:
        element = by_name(name)
        for length, unit in ((TILE + 48, 16), (TILE + 35, element.itemsize)):
            rows = to_the_end((3, length), 0, element.itemsize, unit)
            problem = scan_problem(
                element, Operator.SUM, rows, rows, 1, ScanOptions(exclusive=unit == 16, monotone=True)
            )
            yield Case(f"monotone {name} {kernel} {unit}", problem, GPU, kernel=kernel)


def slices_of_all_elements() -> Iterator[Case]:
    """Return slices of nearly 2^32 elements, whose last windows are short."""
    for kernel in EVERYWHERE:
        length = 2**32 - 2**17 + 37
        layout = Layout.packed((length,))
        problem = scan_problem(by_name("uint8"), Operator.SUM, layout, layout, axis=0)
        yield Case(f"long {kernel}", problem, replace(GPU, binding_bytes=2**27 + 2**17), kernel=kernel)


def elementwise() -> Iterator[Case]:
    for name in TYPES:
        element, random = by_name(name), Random(name)
        flat = Layout.packed((2**28,), 3 * 2**28 if element.itemsize == 4 else 0)
        far = to_the_end((2**20, 4), 0, element.itemsize, element.itemsize)
        tall = to_the_end((5, 3, 7), 1, element.itemsize, element.itemsize)
        for source in (flat, far, tall):
            for target_name in TYPES:
                target = by_name(target_name)
                # The output may have larger elements than the input.
                scale = max(1, target.itemsize // element.itemsize)
                strides = tuple(stride // scale if stride > 8 * scale else stride for stride in source.strides)
                output = Layout(source.sizes, strides if source is far or source is tall else source.strides)
                if output.is_disjoint:
                    yield Case(f"{name} to {target_name}", convert_problem(element, target, source, output), GPU)
            if element.kind == "float":
                for one_buffer in (False, True):
                    for limits in (GPU, SOFTWARE):
                        problem = round_problem(element, random.choice(list(RoundingMode)), source, source)
                        yield Case(f"{name} round", problem, limits, one_buffer)
                apart = replace(source, offset=2**33)
                yield Case(f"{name} apart", round_problem(element, RoundingMode.TOWARD_ZERO, source, apart), GPU, True)


def passes_of(case: Case) -> Iterator[Pass]:
    return planned(case.problem, case.limits, one_buffer=case.one_buffer, kernel=case.kernel)


def state_of(one: Pass, number: int, random: Random) -> Callable[[Mapping[str, Any]], Any]:
    """Return scratch memory as earlier passes may have left it."""
    count, tiles, first, turn = (int(one.params[name]) for name in ("count", "tiles", "turn_first", "turn_tiles"))

    def found(names: Mapping[str, Any]) -> Any:
        if "BEFORE_TILE" in names:  # of columns of bands, word by word
            exceptional = random.choice([1, 1 + int(one.params["length"] - 1) // TILE])
            known = {names["SUSPECT"]: exceptional, names["FLAGS"]: random.choice([0, 0x100, 0x107])}
            return {}, lambda index: known.get(index // count, wgsl.DATA)
        if "SUSPECT" not in names:
            return {}, lambda _: wgsl.DATA
        nowhere = names["NO_TILE"]
        is_repair = one.pipeline.kernel == "scan_repair"
        suspect = random.choice(
            [first, max(first, min(tiles, first + turn) - 1)] if is_repair else [0, tiles - 1, nowhere]
        )
        absorbed = nowhere if is_repair else random.choice([0, nowhere])
        tiles_and_more = random.choice([0, 0x100, 0x107, 15])

        def unknown(index: int) -> Any:
            if index >= count * names["SLICE_WORDS"]:
                return wgsl.DATA
            place = index % names["SLICE_WORDS"]
            return {names["SUSPECT"]: suspect, names["ABSORBED"]: absorbed}.get(
                place, tiles_and_more if place % 8 == 6 else wgsl.DATA
            )

        if one.pipeline.kernel in ("scan_lookback", "scan_strip_lookback"):
            header = count * (names["SLICE_WORDS"] + tiles * names["TILE_WORDS"])
            return {header + names["TICKET"]: number}, unknown
        return {}, unknown

    return found


@cache
def tried(
    case: Case, last: bool = False
) -> tuple[frozenset[tuple[str, tuple[tuple[str, str], ...]]], frozenset[tuple[str, int]], int]:
    """Run a case; return the shaders, the lines of accesses, and the last byte of a tensor that was accessed."""
    random, shaders_run, sites, highest = Random(case.way), set(), set(), 0
    passes = list(passes_of(case)) if last else list(islice(passes_of(case), MOST_PASSES))
    # Of each kernel the first dispatch and the last.
    chosen = {one.pipeline: one for one in reversed(passes)} | {(one.pipeline, 1): one for one in passes}
    for one in dict.fromkeys([passes[-1]] if last else chosen.values()):
        workgroups = one.grid[0] * one.grid[1]
        numbers = {0, workgroups - 1, workgroups - one.grid[1], random.randrange(workgroups)}
        for number in sorted(numbers)[-3:]:
            done = wgsl.run_workgroup(
                one,
                case.problem,
                number,
                lambda size: [lane for lane in (0, 2, 5, size - 1) if lane < size],
                random,
                state_of(one, number, random),
            )
            itemsize = (case.problem.element if isinstance(case.problem, ScanProblem) else case.problem.source).itemsize
            for invocation in done:
                # The last run of a slice is read as a whole, whatever is there of it.
                elements = invocation.loaded[16] * 16 // itemsize + invocation.loaded[8] * 8 // max(4, itemsize)
                elements += invocation.loaded[4] * 4 // max(4, itemsize)
                assert elements <= serial_steps(one) + 4 * RUN, case.way
            shaders_run.add((one.pipeline.kernel, one.pipeline.slots))
            for invocation in done:
                sites |= invocation.sites
                highest = max([highest, *(end for name, end in invocation.highest.items() if name != "state")])
    return frozenset(shaders_run), frozenset(sites), highest


CASES = [*scans(), *elementwise()]


@pytest.mark.combinations
@pytest.mark.parametrize("name", [*TYPES, "compensated", "monotone"])
def test_tensors_up_to_the_end_of_the_largest_binding(name: str) -> None:
    found = [(case, tried(case)[2]) for case in CASES if case.way.startswith(name)]
    assert len(found) >= len(EVERYWHERE)
    for case, highest in found:
        if any(word in case.way for word in ("rows", "far", "backwards", "columns", "compensated", "monotone")):
            assert MAX_BINDING_BYTES - 2**14 <= highest <= MAX_BINDING_BYTES, case.way


@pytest.mark.parametrize("case", [*slices_of_all_elements()], ids=lambda case: case.way)
def test_slices_of_all_elements_there_may_be(case: Case) -> None:
    """In windows; the last ones begin near element 2^32."""
    *_, last = passes_of(case)
    assert last.params["first"] > 2**32 - 2**27 - 2**18
    assert tried(case, last=True)[2] > 0


def test_every_access_of_every_kernel_is_tried() -> None:
    """A kernel, or an access, that no case runs could be wrong."""
    ran, sites, expected = set(), set(), set()
    for case in CASES:
        pipelines = {(one.pipeline.kernel, one.pipeline.slots) for one in islice(passes_of(case), MOST_PASSES)}
        ran |= pipelines
        its_sites = {site for kernel, slots in pipelines for site in wgsl.accesses(kernel, slots)}
        expected |= its_sites
        if its_sites - sites:  # other cases may try it, too; what none does is missing in the end
            sites |= tried(case)[1]
    assert {kernel for kernel, _ in ran} == set(shaders.kernel_names())
    pieces = {piece for _, slots in ran for piece in slots}
    assert {("output", "packed"), ("output", "words"), ("output", "pairs"), ("output", "quads")} <= pieces
    assert {("tile", "runs"), ("tile", "staged"), ("tile", "strided")} <= pieces
    assert {("stage", "words"), ("stage", "packed")} <= pieces
    ways = {(dict(slots)["input"], dict(slots)["output"] == "quads") for _, slots in ran if "input" in dict(slots)}
    assert set(product(("separate", "shared", "in_output"), (False, True))) <= ways
    assert [site for site in sorted(expected - sites) if not is_unused(*site)] == []


def is_unused(file: str, number: int) -> bool:
    """Whether nobody runs a line: delays, which tests ask for."""
    line = (shaders.folder() / file).read_text(encoding="utf-8").splitlines()[number - 1].strip()
    return line == "atomicAdd(&state[word], 1u);"


MISTAKES = [
    (
        "slots/run_access/quads.wgsl",
        "place >> (7u - input_log2_bits)",
        "(place << input_log2_bits) >> 7u",
        "uint8 short",
    ),
    (
        "slots/run_access/quads.wgsl",
        "place >> (7u - output_log2_bits)",
        "(place << output_log2_bits) >> 7u",
        "float32 rows slices 16",
    ),
    (
        "slots/tile/staged.wgsl",
        "output >> (7u - output_log2_bits)",
        "(output << output_log2_bits) >> 7u",
        "float32 rows rows 16",
    ),
    ("lib/tiles/turn_words.wgsl", "let first = low >> in_word", "let first = (low << 3u) >> 5u", "uint8 rows rows 1"),
    (
        "lib/memory/load_bits.wgsl",
        "element >> (5u - min(input_log2_bits, 5u))",
        "(element << input_log2_bits) >> 5u",
        "float16 far lookback 1",
    ),
    (
        "slots/output/packed.wgsl",
        "element >> (5u - min(output_log2_bits, 5u))",
        "(element << 3u) >> 5u",
        "uint8 far slices 1",
    ),
    ("slots/fours/quads.wgsl", "set_output_unit(place >> 2u", "set_output_unit((place * 32u) >> 7u", "float32 columns"),
    ("slots/fours/pairs.wgsl", "place >> 2u", "(place * 16u) >> 6u", "float16 columns"),
    ("slots/vector/quads.wgsl", "place >> (7u - output_log2_bits)", "(place * 8u) >> 7u", "uint8 columns"),
    (
        "slots/vector/words.wgsl",
        "let index = words_of(place);",
        "let index = words_of(place << 3u) >> 3u;",
        "uint8 columns of words",
    ),
    ("slots/vector/packed.wgsl", "let index = place >> in_word", "let index = (place * 8u) >> 5u", "uint8 odd columns"),
    ("lib/memory/put_words.wgsl", "place >> (5u - output_log2_bits)", "(place * 16u) >> 5u", "float16 odd columns"),
    (
        "slots/fours/words.wgsl",
        "let first = input_word(place >> 1u)",
        "let first = input_word((place << 4u) >> 5u)",
        "float16 columns of words",
    ),
    (
        "lib/params.wgsl",
        "+= index * params.input_strides",
        "+= ((index << 14u) >> 14u) * params.input_strides",
        "uint8 far rows 1",
    ),
    (
        "slots/run_access/strided.wgsl",
        "load(place + min(15u, last) * stride)",
        "load(place + 15u * stride)",
        "float32 far slices 1",
    ),
    ("elementwise.wgsl", "load_bits(place.input)", "load_bits((place.input << 3u) >> 3u)", "float32 round"),
    ("scan_rows.wgsl", "place.input + begin *", "(place.input << 4u >> 4u) + begin *", "uint8 rows rows 1"),
]


@pytest.mark.parametrize(("file", "right", "wrong", "way"), MISTAKES, ids=[mistake[0] for mistake in MISTAKES])
def test_mistakes_are_found(
    file: str, right: str, wrong: str, way: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first two were made: tensors from 512 MiB on were read and written at wrong places."""
    folder = Path(shutil.copytree(shaders.folder(), tmp_path / "wgsl"))
    text = (folder / file).read_text(encoding="utf-8")
    assert right in text
    (folder / file).write_text(text.replace(right, wrong), encoding="utf-8")
    cases = [case for case in CASES if case.way.startswith(way)]
    with fresh_shaders(), monkeypatch.context() as patch:
        patch.setattr(shaders, "folder", lambda: folder)
        with pytest.raises(wgsl.AddressError):
            [tried.__wrapped__(case) for case in cases]


@contextmanager
def fresh_shaders() -> Iterator[None]:
    """Have the files read again, within and after."""

    def forget() -> None:
        shaders._read.cache_clear()
        wgsl._program.cache_clear()

    forget()
    try:
        yield
    finally:
        forget()
