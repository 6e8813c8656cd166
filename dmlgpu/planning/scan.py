"""Pure: the kernels of a scan, and their passes over each window."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from ..dtypes import ElementType
from ..errors import counted
from ..layout import ceil_div
from .columns import Columns, strip_lookback_of, strips_of
from .dispatch import BoundWindow, Pass, Planner
from .kernels import (
    BEFORE_LOOKBACK,
    BEHIND_LOOKBACK,
    CHECK,
    DEAR_ELEMENTS,
    DIRECT,
    FOLD,
    LEAVES_ALL,
    LOOKBACK_HEADER_WORDS,
    OF_STRIPS,
    OF_WHOLE_TILES,
    REPAIR,
    TRY,
    WRITE,
    lookback_slice_words,
    part_rows,
    progress_words,
    tile_slice_words,
)
from .policy import policy_of
from .problem import Operator, Precision, ScanProblem, in_a_row, is_side_by_side
from .windows import BLOCK, QUAD_BYTES, RUN, SPAN, TILE, Limits, Range, Window, windows

__all__ = ["EVERYWHERE", "KERNELS", "ScanPlanner"]

KERNELS: Final = ("slices", "rows", "lookback", "serial", "strips", "strip_lookback", "reduce_then_scan")
"""The ways to scan: an invocation a slice; a workgroup a slice; a workgroup a tile, which looks back for what comes
before it; an invocation a tile, in four passes; a workgroup a strip of slices that are side by side; a workgroup a part
of such a strip, which looks back; and a workgroup a tile for its total, then another one for its results."""
EVERYWHERE: Final = tuple(kernel for kernel in KERNELS if kernel not in ("reduce_then_scan", "strip_lookback"))
"""Those that take slices however they lie, but for reduce_then_scan: it is a look-back without looks."""

_WORD_BYTES = 4
_MAX_PROGRESS_BYTES = 32 * 2**20
_PROGRESS_OF_TENSOR, _MOST_PROGRESS_BYTES = 16, 128 * 2**20
"""Beside a large tensor it may be such a part of it, up to this: fewer windows take longer than to begin each."""

_MAX_SERIAL = {"slices": 2 * SPAN, "columns": SPAN, "loops": 2 * TILE}
"""Elements that one invocation works through in one dispatch. Mesa's software drivers end every loop of an invocation
after 65,535 iterations, inner loops counted, and leave the rest of the results unwritten (docs/kernels.md): so it is
fewer where rows, or the elements of a run, are gone through in loops."""
_MAX_TILES = 1024
_MAX_TILES_AT_LENGTH = 256
"""For the same reason, and so that no data brings a GPU near its watchdog: the tiles that a workgroup goes through in a
dispatch, should they all be exceptional; fewer where an element takes long."""
_MAX_TILES_TOGETHER = 8192
_MAX_DEAR_TILES_TOGETHER = 2048
"""The same where all invocations of a workgroup bring an exceptional tile's elements to the one that folds them."""
_MAX_TILES_TOGETHER_ON_SOFTWARE = 128
"""The same on drivers that end loops after so many iterations, of which a tile takes 70, or 380 of float64 on words."""

_STAGE_BYTES = 8192
"""Of the elements of a workgroup of scan_blocks.wgsl."""
_MANY_SHORT_ELEMENTS = 2**16
"""From as many on, slices of a single run are worth a pipeline that knows their length, and packed slices another pass
over the last few."""

_ENOUGH_FOR_A_REST = 2**20
"""The same where there is a way without a rest: by element, or with a workgroup each."""

_INFINITIES: Final = {2: 0x7C00, 4: 0x7F800000, 8: 0x7FF00000}
"""The word that holds the sign, by bytes of an element."""

_WHY_CLEAR = "scratch memory may hold anything; the last pass leaves that part zero, for the next scan like this one"

_WHY_TOTALS = "it works out totals alone, and leaves all tiles"


class ScanPlanner(Planner):
    """Plans a scan; parameters as of `Planner`."""

    def __init__(
        self, problem: ScanProblem, limits: Limits, one_buffer: bool = False, chunks: Sequence[int] | None = None
    ) -> None:
        super().__init__(problem, limits, one_buffer, chunks)
        self.problem, self._policy = problem, policy_of(limits)
        self._in_words = problem.is_in_words(limits.float64)
        element = problem.element
        piece: str = "f64_words" if self._in_words else element.format
        if problem.precision is Precision.COMPENSATED:
            piece = "f32_compensated"  # always opaque
        elif problem.operator is Operator.MAXIMUM:
            piece = "max64" if element.itemsize == 8 else "max"
            self.constants |= _order_of(element)
        run = "loops" if self._in_words else "written"
        self.slots = {"element": piece, "run": run, "tile": "runs", "slices": "windows"}
        self.constants["product"] = int(problem.operator is Operator.PRODUCT)
        if not problem.is_exact and piece == element.format:
            self.constants["opaque"] = int(limits.opaque)

    def fields_of(self, window: Window) -> dict[str, int]:
        """Return the uniforms of all passes over a window."""
        return {
            "exclusive": int(self.problem.exclusive),
            "tiles": ceil_div(window.axis.size, TILE),
            "side_by_side": int(is_side_by_side(window.batch, window.axis)),
            "across": in_a_row(window.batch),
            "lookback": 0,
        }

    def passes(self, kernel: str | None = None, withhold_every: int = 0) -> Iterator[Pass]:
        """Yield the passes, in order.

        Parameters
        ----------
        kernel : str, optional
            Force one of `KERNELS` where it is possible.
        withhold_every : int
            For tests: about one in so many workgroups that others wait for takes its time and then keeps what it has to
            itself, as if it had been stopped; 0 for none.
        """
        length, along = self.problem.axis.size, self.chunks[-1]
        may_be_blocks = length <= along and (kernel is None or (kernel == "slices" and length <= BLOCK))
        if along < length and along % TILE and not self._is_by_strips_inside_tiles(kernel):
            kernel, self.why = "slices", f"windows of {along} elements end inside a tile: an invocation a slice"
        elif kernel is None:
            kernel, self.why = self._policy.kernel(self.problem, self.in_place)
        else:
            self.why = f"{kernel!r} was asked for"
        if kernel == "strips":
            strips = strips_of(self.problem, self.limits, self.chunks, self.in_place)
            if strips is not None:
                return strips.passes(self, self.problem)
            kernel, self.why = "slices", "strips do not serve these slices: an invocation a slice"
        if kernel == "strip_lookback":
            strips = strip_lookback_of(self.problem, self.limits, self.chunks, self.in_place)
            if strips is not None:
                return self._strip_lookback(strips, withhold_every)
            kernel, self.why = "rows", "strips do not serve these slices: a workgroup a slice"
        if kernel == "reduce_then_scan" and self.problem.is_exact:
            kernel, self.why = "lookback", "only sums and products of floats are read twice: a look-back"
        access = self._access_of_blocks() if may_be_blocks and kernel in ("slices", "rows") else None
        if access is not None:
            return self._blocks(access)
        if kernel == "slices":
            bands = self._policy.bands(self.problem, self.chunks, self.in_place)
            if bands is not None:
                self.why += f"; they are neighbours in memory and far in all, so bands of {bands.width} columns"
                return bands.passes(self, self.problem)
            return self._short() if along >= length and length <= RUN else self._slices()
        if kernel == "rows":
            return self._rows()
        if kernel == "lookback":
            return self._lookback(withhold_every)
        if kernel == "reduce_then_scan":
            return self._reduce_then_scan()
        return self._serial()

    def _is_by_strips_inside_tiles(self, kernel: str | None) -> bool:
        """Whether strips go through windows that end inside a tile, as they do of integers."""
        if not self.problem.is_exact:
            return False
        asked = kernel or self._policy.kernel(self.problem, self.in_place)[0]
        return asked == "strips" and strips_of(self.problem, self.limits, self.chunks, self.in_place) is not None

    def _short(self) -> Iterator[Pass]:
        """Yield passes over slices of a single run: one an invocation, or several where they are packed."""
        problem, length = self.problem, self.problem.axis.size
        is_many = problem.slices * length >= _MANY_SHORT_ELEMENTS
        together = RUN // math.gcd(length, RUN)
        is_packed = self._policy.packs(problem) and self._is_packed(together, QUAD_BYTES)
        if self._is_decreasing or not (is_many and is_packed):
            self.why = f"slices of {counted(length, 'element')} are a single run of at most {RUN}: an invocation each"
            for bound in self.windows(self.chunks):
                yield self._short_pass(bound, length if is_many else 0)
            return
        size = counted(length, "element")
        self.why = f"slices of {size} without gaps in memory: {together} fill whole runs of an invocation"
        lanes, times = self._policy.portions_of_short(problem, problem.slices // together)
        constants = {"slice_length": length, "runs": together * length // RUN, "lanes": lanes, "together": times}
        yield from self._packed("scan_short", "quads", together, constants)

    def _blocks(self, access: str) -> Iterator[Pass]:
        """Yield passes over packed slices, of which a workgroup takes as many as it has invocations for."""
        length = self.problem.axis.size
        self.why = (
            f"slices of {counted(length, 'element')} without gaps in memory: a workgroup reads and writes as many as "
            "it has room for, in the order of memory"
        )
        constants = {"lanes": self._lanes_of_blocks, "single": int(length <= RUN), "several": int(length > BLOCK)}
        constants["decreasing"] = int(self._is_decreasing)
        together = 1 if access == "stage of elements" else self._whole_vectors
        yield from self._packed("scan_blocks", access, together, constants)

    def _access_of_blocks(self) -> str | None:
        """Return how a workgroup reads packed slices: by vectors, by element where these do not fit, or not at all."""
        problem, lanes, together = self.problem, self._lanes_of_blocks, self._whole_vectors
        length, is_narrow = problem.axis.size, problem.element.itemsize < _WORD_BYTES
        if not self._policy.blocks(problem):
            return None
        elements = problem.slices * length
        enough = _MANY_SHORT_ELEMENTS if is_narrow and length <= BLOCK else _ENOUGH_FOR_A_REST
        is_worth_a_rest = problem.slices % together == 0 or elements >= enough
        has_room = length <= RUN or together * ceil_div(length, RUN) <= lanes
        if has_room and is_worth_a_rest and self._is_packed(together, QUAD_BYTES):
            return "stage of packed words" if is_narrow else "stage of words"
        is_enough = not is_narrow and elements >= _MANY_SHORT_ELEMENTS and length <= RUN * lanes
        return "stage of elements" if is_enough and self._is_packed(1, problem.element.itemsize) else None

    @property
    def _lanes_of_blocks(self) -> int:
        return min(256, _STAGE_BYTES // (RUN * self.problem.element.itemsize))

    @property
    def _whole_vectors(self) -> int:
        """The fewest packed slices that are whole vectors."""
        return QUAD_BYTES // math.gcd(self.problem.axis.size * self.problem.element.itemsize, QUAD_BYTES)

    def _packed(self, kernel: str, access: str, together: int, constants: dict[str, int]) -> Iterator[Pass]:
        """Yield passes of a kernel that takes slices `together` to whole vectors, and one over those left over."""
        problem, length = self.problem, self.problem.axis.size
        (batch,) = problem.batch
        whole = batch.size // together * together
        chunks = [self.chunks[0] // together * together, length]
        offsets = (problem.input_offset, problem.output_offset)
        for window in windows([replace(batch, size=whole)], problem.axis, offsets, chunks):
            bound = self.bind(window)
            # The kernel turns decreasing slices around, so that it is told of increasing ones at the same place.
            fields = {f"{tensor}_axis_stride": 1 for tensor in ("input", "output")}
            fields |= {name: bound.fields[name] - self._back for name in ("input_offset", "output_offset")}
            yield self.make_pass(kernel, bound, access, constants=constants, fields=fields)
        if whole < batch.size:
            rest = replace(batch, size=batch.size - whole)
            offsets = (offsets[0] + whole * length, offsets[1] + whole * length)
            for window in windows([rest], problem.axis, offsets, [rest.size, length]):
                bound = self.bind(window)
                yield self._short_pass(bound, 0) if length <= RUN else self._row_pass(bound)

    def _short_pass(self, bound: BoundWindow, slice_length: int) -> Pass:
        portions = bound.window.slices if slice_length else 0
        lanes, times = self._policy.portions_of_short(self.problem, portions)
        constants = {"slice_length": slice_length, "runs": 0, "lanes": lanes, "together": times}
        return self.make_pass("scan_short", bound, self._access_of_runs(bound), constants=constants)

    @property
    def _is_decreasing(self) -> bool:
        """Whether the elements of a slice come in the opposite order of their places."""
        return self.problem.axis.input_stride < 0

    @property
    def _back(self) -> int:
        """How far a slice without gaps reaches back in memory from its first element in traversal order."""
        return self.problem.axis.size - 1 if self._is_decreasing else 0

    def _is_packed(self, together: int, nbytes: int) -> bool:
        """Whether at least so many slices follow each other without gaps, each in either direction.

        And begin at a multiple of so many bytes.
        """
        problem, length = self.problem, self.problem.axis.size
        strides = [(d.input_stride, d.output_stride) for d in (*problem.batch, problem.axis)]
        step = -1 if self._is_decreasing else 1
        starts = (problem.input_offset - self._back, problem.output_offset - self._back)
        return (
            strides == [(length, length), (step, step)]
            and min(self.chunks[0], problem.slices) >= together
            and all(start * problem.element.itemsize % nbytes == 0 for start in starts)
        )

    def _slices(self) -> Iterator[Pass]:
        """Yield passes with an invocation a slice: in two phases where what is written cannot be read again."""
        length, along = self.problem.axis.size, self.chunks[-1]
        inside_runs = along < min(length, RUN)
        if along < min(length, TILE):
            along = 2 ** (along.bit_length() - 1)  # windows inside a tile: as many as fill it
        way = "loops" if self._in_words else "columns" if self.problem.is_side_by_side else "slices"
        along = min(along, _MAX_SERIAL[way])
        in_windows = along < length
        chunks = _cut(self.chunks, along)
        inside_tiles = in_windows and along < TILE
        can_be_exceptional = not self.problem.is_exact and length > RUN
        phases: tuple[int, ...] = (FOLD if inside_runs else DIRECT,)
        if can_be_exceptional and self.in_place:
            phases = (CHECK, WRITE)
            self.why += "; what is written cannot be read again, so one phase checks and another writes"
        elif can_be_exceptional and inside_tiles:
            phases = (TRY, REPAIR)
            self.why += "; a second phase writes those tiles again that turn out to be exceptional"
        if in_windows:
            words = progress_words(not (can_be_exceptional and inside_tiles), len(phases) == 2 and self.in_place)
            part = self.problem.slices * length * self.problem.element.itemsize // _PROGRESS_OF_TENSOR
            room = max(_MAX_PROGRESS_BYTES, min(part, _MOST_PROGRESS_BYTES))
            chunks = _with_room(chunks, words, min(room, self.limits.binding_bytes))
        for _, members in groupby(self.windows(chunks), lambda bound: self._phase_group(bound, max(TILE, along))):
            together = list(members)
            constants = {"in_windows": int(in_windows), "inside_runs": int(inside_runs)}
            for phase in phases:
                for bound in together:
                    yield self.make_pass(
                        "scan_slices",
                        bound,
                        self._access_of_runs(bound),
                        constants={
                            **constants,
                            "phase": phase,
                            "lanes": self._policy.lanes_of_slices(bound.window.slices),
                            "lags": int(self._policy.lags(bound.window)),
                        },
                        fields={"checked_first": together[0].window.first},
                    )

    def _phase_group(self, bound: BoundWindow, along: int) -> tuple[int, int, int]:
        """Return what windows have in common that go through both phases together: slices, and part of the axis."""
        window, axis = bound.window, self.problem.axis
        return (
            window.input_offset - window.first * axis.input_stride,
            window.output_offset - window.first * axis.output_stride,
            window.first // along,
        )

    def _rows(self) -> Iterator[Pass]:
        """Yield passes with a workgroup a slice."""
        chunks = _cut(self.chunks, self._max_tiles * TILE)
        for bound in self.windows(self._with_state(chunks, 8)):
            yield self._row_pass(bound)

    def _row_pass(self, bound: BoundWindow) -> Pass:
        access = self._access(bound)
        return self.make_pass("scan_rows", bound, access, slots=self._tile_of(access))

    def _serial(self) -> Iterator[Pass]:
        """Yield the four passes over the tiles of each window, with an invocation a tile."""
        tiles = ceil_div(min(self.chunks[-1], self.problem.axis.size), TILE)
        chunks = self._with_state(self.chunks, tile_slice_words(tiles, self.problem.accumulator_words))
        for bound in self.windows(chunks):
            fields = {"carry_side": bound.window.first // chunks[-1] % 2}
            access = self._access_of_runs(bound)
            yield self.make_pass("scan_serial_totals", bound, access, fields=fields)
            yield self.make_pass("scan_carries", bound, fields=fields)
            yield from self._repairs(bound, fields, together=False)
            lags = {"lags": int(self._policy.lags(bound.window))}
            yield self.make_pass("scan_serial_tiles", bound, access, constants=lags, fields=fields)

    def _strip_lookback(self, strips: Columns, withhold_every: int) -> Iterator[Pass]:
        """Yield one pass over the parts of each window of strips, and those that see to what it has left."""
        rows = part_rows(strips.constants["lanes"])
        for bound in self.windows(strips.chunks):
            fields = {"carry_side": bound.window.first // strips.chunks[-1] % 2}
            if self.problem.is_exact:
                fields["tiles"] = ceil_div(bound.window.axis.size, rows)
            of_strips = OF_STRIPS + OF_WHOLE_TILES * (rows == TILE)
            behind = {**fields, "lookback": of_strips + BEHIND_LOOKBACK}
            clear = self._clear(bound, {**fields, "lookback": of_strips + BEFORE_LOOKBACK}, rows)
            yield clear
            in_tests = _in_tests(withhold_every)
            yield self._strip_pass(strips, strips.kernel, bound, behind, {**strips.constants, **in_tests})
            if not self.problem.is_exact:
                if rows < TILE:
                    yield self._strip_pass(strips, "scan_strip_totals", bound, behind, strips.constants)
                yield from self._repairs(bound, behind, together=True)
            yield replace(self._tiles(bound, behind, rows), cleared=clear.cleared)

    def _strip_pass(
        self, strips: Columns, kernel: str, bound: BoundWindow, fields: Mapping[str, int], constants: Mapping[str, int]
    ) -> Pass:
        return self.make_pass(kernel, bound, strips.access, slots=strips.slots, constants=constants, fields=fields)

    def _lookback(self, withhold_every: int) -> Iterator[Pass]:
        """Yield one pass over the tiles of each window, and those that see to the tiles that it has left."""
        tiles = ceil_div(min(self.chunks[-1], self.problem.axis.size), TILE)
        wide = self.problem.accumulator_words
        of_slice = lookback_slice_words(tiles, wide, self.problem.is_exact, int(self.problem.exclusive))
        chunks = self._with_state(self.chunks, LOOKBACK_HEADER_WORDS + tile_slice_words(tiles, wide) + of_slice)
        for bound in self.windows(chunks):
            fields = {"carry_side": bound.window.first // chunks[-1] % 2}
            clear = self._clear(bound, {**fields, "lookback": BEFORE_LOOKBACK})
            yield clear
            access = self._access(bound)
            slots, in_tests = self._tile_of(access), _in_tests(withhold_every)
            yield self.make_pass("scan_lookback", bound, access, slots=slots, constants=in_tests, fields=fields)
            behind = {**fields, "lookback": BEHIND_LOOKBACK}
            yield from self._repairs(bound, behind, together=True)
            yield replace(self._tiles(bound, behind), cleared=clear.cleared)

    def _reduce_then_scan(self) -> Iterator[Pass]:
        """Yield one pass for the totals of each window's tiles, those over exceptional tiles, and one for results."""
        tiles = ceil_div(min(self.chunks[-1], self.problem.axis.size), TILE)
        chunks = self._with_state(self.chunks, tile_slice_words(tiles, self.problem.accumulator_words))
        for bound in self.windows(chunks):
            fields = {"carry_side": bound.window.first // chunks[-1] % 2, "lookback": LEAVES_ALL}
            access = self._access(bound)
            slots = self._tile_of(access)
            totals, results = {"patience": 0}, {"together": 1}
            yield self.make_pass(
                "scan_lookback", bound, access, slots=slots, constants=totals, fields=fields, why=_WHY_TOTALS
            )
            yield from self._repairs(bound, fields, together=True)
            yield self.make_pass("scan_tiles", bound, access, slots=slots, constants=results, fields=fields)

    def _clear(self, bound: BoundWindow, fields: Mapping[str, int], rows: int = TILE) -> Pass:
        """Return the pass that clears what workgroups hand to each other, for when scratch memory may hold anything."""
        clear = self._tiles(bound, fields, rows)
        tiles = int(clear.params["tiles"])
        kept = 4 * bound.window.slices * tile_slice_words(tiles, self.problem.accumulator_words)
        cleared = Range(kept, clear.state_bytes - kept)
        return replace(clear, elements=0, cleared=cleared, only_clears=True, why=_WHY_CLEAR)

    def _tiles(self, bound: BoundWindow, fields: Mapping[str, int], rows: int = TILE) -> Pass:
        """Return the pass over the tiles that others have left; of integers the parts of so many rows, if fewer."""
        access = self._access(bound)
        constants = {"tile_elements": rows} if self.problem.is_exact and rows < TILE else {}
        return self.make_pass(
            "scan_tiles", bound, access, slots=self._tile_of(access), constants=constants, fields=fields
        )

    def _repairs(self, bound: BoundWindow, fields: Mapping[str, int], *, together: bool) -> Iterator[Pass]:
        """Yield the turns over exceptional tiles, of floats: their left folds `together` by a workgroup, or not."""
        if self.problem.is_exact:
            return
        access, tiles = self._access(bound), ceil_div(bound.window.axis.size, TILE)
        most = self._max_tiles
        if together:
            is_dear = self.slots["element"] in DEAR_ELEMENTS or (access is None and self.problem.element.itemsize < 4)
            most = _MAX_DEAR_TILES_TOGETHER if is_dear else _MAX_TILES_TOGETHER
            if self.limits.software:
                most = _MAX_TILES_TOGETHER_ON_SOFTWARE
        slots, constants = self._tile_of(access) if together else {}, {"together": int(together)}
        for first in range(0, tiles, min(tiles, most)):
            turn = {**fields, "turn_tiles": min(tiles, most), "turn_first": first}
            yield self.make_pass("scan_repair", bound, access, slots=slots, constants=constants, fields=turn)

    @property
    def _max_tiles(self) -> int:
        # Elements of less than a word may be stored by atomics, one after the other.
        at_length = 4 * self.problem.accumulator_words > self.problem.element.itemsize or self._in_words
        return _MAX_TILES_AT_LENGTH if at_length else _MAX_TILES

    def _access(self, bound: BoundWindow) -> str | None:
        """Return "quads" where runs are neighbours in memory that can be read and written 16 bytes at a time."""
        axis, itemsize = bound.window.axis, self.problem.element.itemsize
        is_whole = axis.input_stride == axis.output_stride == 1 and axis.size * itemsize % QUAD_BYTES == 0
        return "quads" if is_whole and bound.is_aligned(QUAD_BYTES, bound.window.batch) else None

    def _access_of_runs(self, bound: BoundWindow) -> str | None:
        """Return the same where an invocation has its runs for itself: those of narrow elements at any place."""
        axis = bound.window.axis
        is_packed = axis.input_stride == axis.output_stride == 1 and self.problem.element.itemsize < _WORD_BYTES
        return self._access(bound) or ("unaligned runs" if is_packed and self._policy.unaligned_runs else None)

    def _tile_of(self, access: str | None) -> dict[str, str]:
        """Return the piece for a tile of kernels for GPUs: neighbours read neighbours, vectors where runs have them.

        Not of float64 on words, which takes longer to compute than to read: SwiftShader never finishes compiling it.
        """
        return {"tile": "runs" if self._in_words else "staged" if access == "quads" else "strided"}

    def _with_state(self, chunks: tuple[int, ...], words: int) -> tuple[int, ...]:
        return _with_room(chunks, words, self.limits.binding_bytes - 4 * 8)


def _in_tests(withhold_every: int) -> dict[str, int]:
    return {"withhold_every": withhold_every, "patience": 20} if withhold_every else {}


def _order_of(element: ElementType) -> dict[str, int]:
    """Return the constants by which elements are compared: bits of the word that holds the sign."""
    bits = 8 * min(element.itemsize, _WORD_BYTES)
    return {
        "sign_bit": 0 if element.kind == "uint" else 1 << (bits - 1),
        "infinity": _INFINITIES[element.itemsize] if element.kind == "float" else 0,
    }


def _cut(chunks: Sequence[int], along: int) -> tuple[int, ...]:
    """Return the sizes of windows with at most so many elements along the axis."""
    return (*chunks[:-1], min(chunks[-1], along))


def _with_room(chunks: Sequence[int], words: int, capacity: int) -> tuple[int, ...]:
    """Cut the batch until the scratch memory of a window, so many words a slice, has no more bytes than `capacity`."""
    assert _WORD_BYTES * words <= capacity, "a slice's fits any binding that limits allow"
    *batch, along = chunks
    while math.prod(batch) * _WORD_BYTES * words > capacity:
        largest = max(range(len(batch)), key=lambda i: batch[i])
        batch[largest] = ceil_div(batch[largest], 2)
    return (*batch, along)
