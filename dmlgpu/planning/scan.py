"""Pure: the kernels of a scan, which of them suits a problem, and its passes over each window."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from .bands import bands_of, fewest_columns
from .dispatch import Pass, PipelineKey, bind, make_pass
from .problem import Dimension, Operator, Precision, ScanProblem
from .windows import QUAD_BYTES, RUN, SPAN, TILE, Limits, Window, windows

__all__ = ["KERNELS", "scan_passes"]

KERNELS: Final = ("slices", "rows", "tiles", "serial", "chain")
"""The ways to scan: an invocation a slice; a workgroup a slice; a workgroup or an invocation a tile, in four passes; a
workgroup a tile, in one."""

_SLICES_A_WORKGROUP = 64
_WORD_BYTES = 4
_PROGRESS_WORDS = 100
"""Words a slice that scan_slices.wgsl and scan_elements.wgsl keep between windows, besides one between phases."""
_MAX_PROGRESS_BYTES = 32 * 2**20

_MAX_SERIAL = {"slices": 2 * SPAN, "columns": SPAN, "loops": 2 * TILE, "elements": 4 * TILE}
"""Elements that one invocation works through in one dispatch. Mesa's software drivers end every loop of an invocation
after 65,535 iterations, inner loops counted, and leave the rest of the results unwritten (docs/kernels.md): so it is
fewer where rows, or the elements of a run, are gone through in loops."""
_MAX_TILES = 1024
_MAX_TILES_AT_LENGTH = 256
"""For the same reason, and so that no data brings a GPU near its watchdog: the tiles that a workgroup goes through in a
dispatch, should they all be exceptional; fewer where an element takes long."""
_MAX_TILES_OF_A_CHAIN = 128
_MAX_TILES_OF_A_CHAIN_IN_LOOPS = 4
"""The same for the tiles of a slice in a chain, all of which one invocation works out if the others keep their carries
to themselves; fewer where the elements of a run are gone through in loops."""

_MANY_SHORT_ELEMENTS = 2**16
"""From as many on, slices of a single run are worth a pipeline that knows their length."""
_SHORT_SLICE = 256
"""Slices up to this length are scanned by an invocation each: a workgroup's lanes would be mostly idle."""
_MANY_SLICES = 4096
"""As many slices side by side fill a device with an invocation each, and their memory accesses coalesce."""
_MANY_ROWS = 256
"""As many slices fill a device with a workgroup each."""
_LANES_IN_SOFTWARE = 8
"""Invocations that a core of a CPU takes at a time. Half as many slices for each core are worth an invocation each,
which loses less by idle lanes than other kernels do by reading twice or waiting."""
_FEW_SLICES_IN_SOFTWARE = 32 * _SLICES_A_WORKGROUP
"""Up to as many go to workgroups of so few invocations, to reach all cores; with more, the workgroups cost more."""
_MANY_ELEMENTS_IN_SOFTWARE = 128 * TILE
"""From as many on, four passes with an invocation a tile take less time than a chain, which stores in bursts."""
_FEW_ELEMENTS_IN_SOFTWARE = 2 * TILE
"""Up to as many, a second dispatch costs more than a chain saves."""

_DIRECT, _CHECK, _WRITE = 0, 1, 2
"""The phases of scan_slices.wgsl and scan_elements.wgsl."""


def scan_passes(
    problem: ScanProblem,
    limits: Limits,
    chunks: Sequence[int],
    *,
    one_buffer: bool = False,
    in_place: bool = False,
    kernel: str | None = None,
    withhold_every: int = 0,
) -> Iterator[Pass]:
    """Yield the passes of a scan, in order.

    Parameters
    ----------
    problem : ScanProblem
        What to compute.
    limits : Limits
        What the device can do.
    chunks : sequence of int
        The sizes of windows that fit, as `chunk_sizes` returned them.
    one_buffer, in_place : bool
        Whether input and output are in one buffer, and in the same places of it.
    kernel : str, optional
        Force one of `KERNELS` where it is possible.
    withhold_every : int
        For tests: about one in so many workgroups of a chain dawdles and then keeps its carry to itself, as if it had
        been stopped; 0 for none.
    """
    length, chunks = problem.axis.size, list(chunks)
    in_tiles = chunks[-1] >= length or chunks[-1] % TILE == 0
    if not in_tiles:
        kernel = "slices"
    elif kernel is None:
        kernel = _choose(problem, limits, in_place)
    elif kernel == "chain" and in_place:
        kernel = "slices"
    if kernel == "slices":
        bands = bands_of(problem, limits, chunks, in_place)
        if bands is not None:
            yield from bands.passes(one_buffer)
        elif chunks[-1] >= length and length <= RUN:
            yield from _short(problem, limits, chunks, one_buffer)
        else:
            yield from _slices(problem, limits, chunks, one_buffer, in_place)
        return
    if kernel == "rows":
        chunks[-1] = min(chunks[-1], _max_tiles(problem, limits) * TILE)
    elif kernel == "chain":
        in_loops = _in_words(problem, limits)
        chunks[-1] = min(chunks[-1], (_MAX_TILES_OF_A_CHAIN_IN_LOOPS if in_loops else _MAX_TILES_OF_A_CHAIN) * TILE)
    tiles = -(-min(chunks[-1], length) // TILE)
    record = 6 * (problem.accumulator_size // 4) + 1 if kernel == "chain" else 12
    _make_room(chunks, 8 if kernel == "rows" else 16 + record * tiles, limits.binding_bytes - 4 * 8)
    offsets = (problem.input_offset, problem.output_offset)
    for window in windows(problem.batch, problem.axis, offsets, chunks):
        if kernel == "rows":
            yield _rows(problem, window, limits, one_buffer)
        elif kernel == "chain":
            yield from _chain(problem, window, limits, one_buffer, window.first // chunks[-1], withhold_every)
        else:
            yield from _tiles(problem, window, limits, one_buffer, window.first // chunks[-1], kernel)


def _make_room(chunks: list[int], words: int, capacity: int) -> None:
    """Cut the batch until the scratch memory of a window, so many words a slice, has no more bytes than `capacity`."""
    assert 4 * words <= capacity, "a slice's fits any binding that limits allow"
    while math.prod(chunks[:-1]) * 4 * words > capacity:
        largest = max(range(len(chunks) - 1), key=lambda i: chunks[i])
        chunks[largest] = (chunks[largest] + 1) // 2


def _choose(problem: ScanProblem, limits: Limits, in_place: bool) -> str:
    length, slices = problem.axis.size, problem.slices
    if length <= _SHORT_SLICE:
        return "slices"
    side_by_side = _is_side_by_side(problem.batch, problem.axis)
    if limits.software:
        return _choose_in_software(problem, limits, in_place, side_by_side)
    if side_by_side and slices >= _MANY_SLICES:
        return "slices"
    return "rows" if slices >= _MANY_ROWS or length <= TILE else "tiles"


def _choose_in_software(problem: ScanProblem, limits: Limits, in_place: bool, side_by_side: bool) -> str:
    slices, elements = problem.slices, problem.slices * problem.axis.size
    itemsize = problem.element.itemsize
    many = limits.cores * _LANES_IN_SOFTWARE // 2
    if side_by_side and itemsize >= _WORD_BYTES and limits.columns and elements > limits.near_elements:
        # Far apart in memory, an invocation a slice pays where it takes several of them.
        many = max(many, fewest_columns(problem))
    if slices >= many or elements <= _FEW_ELEMENTS_IN_SOFTWARE:
        return "slices"
    return "serial" if in_place or elements >= _MANY_ELEMENTS_IN_SOFTWARE else "chain"


def _is_side_by_side(batch: Sequence[Dimension], axis: Dimension) -> bool:
    """Whether neighbours in memory belong to different slices."""
    return bool(batch) and abs(batch[-1].output_stride) < abs(axis.output_stride)


def _slices(
    problem: ScanProblem, limits: Limits, chunks: list[int], one_buffer: bool, in_place: bool
) -> Iterator[Pass]:
    """Yield passes with an invocation a slice: in two phases where what is written cannot be read again."""
    length = problem.axis.size
    if chunks[-1] < min(length, TILE):
        # Windows inside a tile: as many as fill it.
        chunks[-1] = 2 ** (chunks[-1].bit_length() - 1)
    by_element = chunks[-1] < length and chunks[-1] < RUN
    side_by_side = _is_side_by_side(problem.batch, problem.axis)
    way = "loops" if _in_words(problem, limits) else "columns" if side_by_side else "slices"
    way = "elements" if by_element else way
    chunks[-1] = min(chunks[-1], _MAX_SERIAL[way])
    in_windows = chunks[-1] < length
    if in_windows:
        _make_room(chunks, 1 + _PROGRESS_WORDS, min(_MAX_PROGRESS_BYTES, limits.binding_bytes))
    can_be_exceptional = problem.element.kind == "float" and length > RUN
    two_phases = can_be_exceptional and (in_place or by_element or (in_windows and chunks[-1] < TILE))

    def group(window: Window) -> tuple[int, int, int]:
        """Return what windows have in common that go through both phases together."""
        return (
            window.input_offset - window.first * problem.axis.input_stride,
            window.output_offset - (window.first * problem.axis.output_stride),
            window.first // max(TILE, chunks[-1]),
        )

    def one(window: Window, phase: int, first: int) -> Pass:
        constants = {"phase": phase, "in_windows": int(in_windows)}
        kernel = "scan_elements" if by_element else "scan_slices"
        columns = 1 if by_element or two_phases else _columns(problem, window, limits, one_buffer)
        if columns > 1:
            state = window.slices * (1 + _PROGRESS_WORDS) if in_windows else 1
            lanes = _lanes_of_columns(window.slices // columns, limits)
            return _pass(
                "scan_columns",
                {"columns": columns, "in_windows": int(in_windows), "lanes": lanes},
                problem,
                window,
                -(-window.slices // (columns * lanes)),
                limits,
                one_buffer,
                state,
                slots={"rows": "words"},
            )
        quads = not by_element and _in_quads(problem, window, limits, one_buffer)
        lanes = _SLICES_A_WORKGROUP
        if not by_element:
            few = limits.software and window.slices <= _FEW_SLICES_IN_SOFTWARE
            lanes = constants["lanes"] = _LANES_IN_SOFTWARE if few else lanes
        state = (window.slices * (1 + (_PROGRESS_WORDS if in_windows else 0))) if two_phases or in_windows else 1
        workgroups = -(-window.slices // lanes)
        return _pass(
            kernel,
            constants,
            problem,
            window,
            workgroups,
            limits,
            one_buffer,
            state,
            quads=quads,
            checked_first=first,
        )

    offsets = (problem.input_offset, problem.output_offset)
    for _, members in groupby(windows(problem.batch, problem.axis, offsets, chunks), group):
        together = list(members)
        phases = (_CHECK, _WRITE) if two_phases else (_WRITE if by_element else _DIRECT,)
        for phase in phases:
            for window in together:
                yield one(window, phase, together[0].first)


def _short(problem: ScanProblem, limits: Limits, chunks: list[int], one_buffer: bool) -> Iterator[Pass]:
    """Yield passes over slices of a single run: one an invocation, or several where they are packed."""
    length, offsets = problem.axis.size, (problem.input_offset, problem.output_offset)
    is_many = problem.slices * length >= _MANY_SHORT_ELEMENTS
    together = RUN // math.gcd(length, RUN)
    if not (is_many and chunks[0] >= together and _is_packed(problem, limits)):
        for window in windows(problem.batch, problem.axis, offsets, chunks):
            yield _short_slices(problem, window, limits, one_buffer, length if is_many else 0)
        return
    (batch,) = problem.batch
    whole = batch.size // together * together
    constants = {"slice_length": length, "runs": together * length // RUN}
    chunks = [chunks[0] // together * together, length]
    for window in windows([replace(batch, size=whole)], problem.axis, offsets, chunks):
        workgroups = -(-window.slices // (together * _SLICES_A_WORKGROUP))
        yield _pass("scan_packed", constants, problem, window, workgroups, limits, one_buffer, 1, quads=True)
    if whole < batch.size:
        rest, after = batch.size - whole, whole * length
        offsets = (problem.input_offset + after, problem.output_offset + after)
        (window,) = windows([replace(batch, size=rest)], problem.axis, offsets, [rest, length])
        yield _short_slices(problem, window, limits, one_buffer, 0)


def _short_slices(problem: ScanProblem, window: Window, limits: Limits, one_buffer: bool, slice_length: int) -> Pass:
    quads = _in_quads(problem, window, limits, one_buffer)
    workgroups = -(-window.slices // _SLICES_A_WORKGROUP)
    constants = {"slice_length": slice_length}
    return _pass("scan_short", constants, problem, window, workgroups, limits, one_buffer, 1, quads=quads)


def _is_packed(problem: ScanProblem, limits: Limits) -> bool:
    """Whether slices follow each other in memory without gaps, and are worth several an invocation.

    Not on a GPU, where neighbours among the invocations would read far from each other; nor where slices of more than
    a few elements are whole vectors.
    """
    length, itemsize = problem.axis.size, problem.element.itemsize
    too_much = problem.precision is Precision.COMPENSATED or _in_words(problem, limits)
    if not limits.software or too_much or length >= RUN or (length > 4 and length * itemsize % QUAD_BYTES == 0):
        return False
    strides = [(d.input_stride, d.output_stride) for d in (*problem.batch, problem.axis)]
    starts = (problem.input_offset * itemsize, problem.output_offset * itemsize)
    return strides == [(length, length), (1, 1)] and all(start % QUAD_BYTES == 0 for start in starts)


def _rows(problem: ScanProblem, window: Window, limits: Limits, one_buffer: bool) -> Pass:
    state = 8 * window.slices if window.first or not window.last else 1
    slots = {"tile": "runs"}
    quads = _in_quads(problem, window, limits, one_buffer)
    return _pass("scan_rows", {}, problem, window, window.slices, limits, one_buffer, state, slots=slots, quads=quads)


def _tiles(
    problem: ScanProblem, window: Window, limits: Limits, one_buffer: bool, number: int, kernel: str
) -> Iterator[Pass]:
    """Yield the four passes over the tiles of a window, with a workgroup or an invocation a tile."""
    tiles = -(-window.axis.size // TILE)
    by_tile = window.slices * tiles
    state = 16 * window.slices + 12 * by_tile
    turn_tiles = min(tiles, _max_tiles(problem, limits))

    def one(name: str, workgroups: int, first: int = 0) -> Pass:
        return _pass(
            name,
            {},
            problem,
            window,
            workgroups,
            limits,
            one_buffer,
            state,
            slots={} if "serial" in name else {"tile": "runs"},
            quads=_in_quads(problem, window, limits, one_buffer),
            carry_side=number % 2,
            turn_first=first,
            turn_tiles=turn_tiles,
        )

    serial = kernel == "serial"
    yield one("scan_serial_totals", -(-by_tile // _LANES_IN_SOFTWARE)) if serial else one("scan_tile_totals", by_tile)
    yield _of_state(one("scan_carries", window.slices), "product", "opaque")
    if problem.element.kind == "float":
        yield from (one("scan_repair", window.slices, first) for first in range(0, tiles, turn_tiles))
    yield one("scan_serial_tiles", -(-by_tile // _LANES_IN_SOFTWARE)) if serial else one("scan_tiles", by_tile)


def _chain(
    problem: ScanProblem, window: Window, limits: Limits, one_buffer: bool, number: int, withhold_every: int
) -> Iterator[Pass]:
    by_tile = window.slices * -(-window.axis.size // TILE)
    words = problem.accumulator_size // 4
    state = 8 + 16 * window.slices + (6 * words + 1) * by_tile
    constants = {"exact_grid": int(by_tile <= limits.workgroups)}
    if withhold_every:
        constants |= {"withhold_every": withhold_every, "patience": 20}
    quads = _in_quads(problem, window, limits, one_buffer)
    yield _of_state(_pass("scan_chain_clear", {}, problem, window, -(-state // 1024), limits, one_buffer, state))
    yield _pass(
        "scan_chain",
        constants,
        problem,
        window,
        by_tile,
        limits,
        one_buffer,
        state,
        slots=_tile_of_chain(problem, limits),
        quads=quads,
        carry_side=number % 2,
    )


def _tile_of_chain(problem: ScanProblem, limits: Limits) -> dict[str, str]:
    """Return the pieces for a tile. What is too much code for a block was measured, see docs/kernels.md."""
    too_much = problem.precision is Precision.COMPENSATED or (limits.columns and _in_words(problem, limits))
    return {"tile": "blocks" if limits.blocks and not too_much else "runs"}


def _of_state(one: Pass, *constants: str) -> Pass:
    """Return a pass as it is for a kernel that reads and writes only the state, and has only these constants.

    So that there is one pipeline, wherever the elements are and however they are read.
    """
    slots = tuple(slot for slot in one.pipeline.slots if slot[0] == "element")
    values = tuple(constant for constant in one.pipeline.constants if constant[0] in constants)
    return replace(one, pipeline=PipelineKey(one.pipeline.kernel, slots, values), input=None, output=None)


def _columns(problem: ScanProblem, window: Window, limits: Limits, one_buffer: bool) -> int:
    """Return how many adjacent slices are a word for one invocation; 1 where they cannot be told apart so."""
    itemsize = problem.element.itemsize
    columns = _WORD_BYTES // itemsize
    if columns < 2 or window.slices < columns * (_SLICES_A_WORKGROUP if limits.software else _MANY_SLICES):
        return 1
    inner = window.batch[-1]
    if (inner.input_stride, inner.output_stride) != (1, 1) or inner.size % columns:
        return 1
    bindings = bind(window, (problem.element, problem.element), one_buffer, limits)
    places = (
        window.input_offset * itemsize - bindings.input.offset,
        window.output_offset * itemsize - bindings.output.offset,
        bindings.input.size,
        bindings.output.size,
        *(n * itemsize for d in (*window.batch[:-1], window.axis) for n in (d.input_stride, d.output_stride)),
    )
    return 1 if any(place % _WORD_BYTES for place in places) else columns


def _lanes_of_columns(invocations: int, limits: Limits) -> int:
    """Return the size of workgroups that walk down rows: the larger, the fewer visits to a page of memory."""
    if limits.software:
        for lanes in (4 * _SLICES_A_WORKGROUP, 2 * _SLICES_A_WORKGROUP):
            if invocations >= 2 * limits.cores * lanes:
                return lanes
    return _SLICES_A_WORKGROUP


def _max_tiles(problem: ScanProblem, limits: Limits) -> int:
    # Elements of less than a word may be stored by atomics, one after the other.
    at_length = problem.accumulator_size > problem.element.itemsize or _in_words(problem, limits)
    return _MAX_TILES_AT_LENGTH if at_length else _MAX_TILES


def _in_words(problem: ScanProblem, limits: Limits) -> bool:
    return problem.element.format == "f64" and not limits.float64


def _in_quads(problem: ScanProblem, window: Window, limits: Limits, one_buffer: bool) -> bool:
    """Whether runs are neighbours in memory that can be read and written 16 bytes at a time."""
    axis, itemsize = window.axis, problem.element.itemsize
    bindings = bind(window, (problem.element, problem.element), one_buffer, limits)
    strides = [s for d in window.batch for s in (d.input_stride, d.output_stride)]
    starts = (
        window.input_offset * itemsize - bindings.input.offset,
        window.output_offset * itemsize - bindings.output.offset,
        bindings.input.size,
        bindings.output.size,
        axis.size * itemsize,
        *(stride * itemsize for stride in strides),
    )
    return axis.input_stride == axis.output_stride == 1 and all(n % QUAD_BYTES == 0 for n in starts)


def _pass(
    kernel: str,
    constants: dict[str, int],
    problem: ScanProblem,
    window: Window,
    workgroups: int,
    limits: Limits,
    one_buffer: bool,
    state: int,
    *,
    slots: dict[str, str] | None = None,
    quads: bool = False,
    **fields: int,
) -> Pass:
    """Return a pass of a scan; `state` counts 32-bit words."""
    element = problem.element
    piece: str = "f64_words" if _in_words(problem, limits) else element.format
    if problem.precision is Precision.COMPENSATED:
        piece = "f32_compensated"  # always opaque
    access = "quads" if quads else "strided"
    run = "loops" if _in_words(problem, limits) else "written"
    more_slots = {"element": piece, "run": run, "reads": access, "writes": access}
    more_constants = {
        "input_log2_bits": element.log2_bits,
        "output_log2_bits": element.log2_bits,
        "product": int(problem.operator is Operator.PRODUCT),
        "flat": int(len(window.batch) <= 1),
    }
    if element.kind == "float" and piece == element.format:
        more_constants["opaque"] = int(limits.opaque)
    return make_pass(
        kernel,
        {**more_constants, **constants},
        window,
        (element, element),
        workgroups,
        limits,
        one_buffer=one_buffer,
        more_slots=more_slots | (slots or {}),
        tiles=-(-window.axis.size // TILE),
        exclusive=problem.exclusive,
        side_by_side=_is_side_by_side(window.batch, window.axis),
        state_bytes=4 * state,
        **fields,
    )
