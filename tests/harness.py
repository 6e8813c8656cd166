"""Runs problems on a device with every element placed by hand, and compares bit for bit with the reference."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dmlgpu import dtypes, reference
from dmlgpu.layout import Layout
from dmlgpu.planning.dispatch import Pass, Plan
from dmlgpu.planning.kernels import LOOKBACK_HEADER_WORDS, tile_slice_words
from dmlgpu.planning.problem import (
    MODES,
    Operator,
    Precision,
    ScanOptions,
    convert_problem,
    round_problem,
    scan_problem,
)
from dmlgpu.planning.windows import SPAN, SPAN_TILES, TILE, Limits, SoftwareTraits
from dmlgpu.runtime.device import Device


def changed(limits: Limits, **changes: Any) -> Limits:
    """Return limits with other values, those of the traits of a software driver included."""
    traits = {field.name: changes.pop(field.name) for field in fields(SoftwareTraits) if field.name in changes}
    return replace(limits, traits=replace(limits.traits, **traits), **changes)


SUSPECTS = "scan_slices of suspects"
LOOK_BACKS = ("scan_lookback", "scan_strip_lookback")


def kernel_of(one: Pass) -> str:
    """Return the kernel of a pass, and of scan_slices whether it takes what others have left."""
    return SUSPECTS if ("slices", "suspects") in one.pipeline.slots else one.pipeline.kernel


def one_by_one(one: Pass) -> list[Pass]:
    """Return a dispatch for each workgroup of a look-back, so that none has to wait; other passes as they are."""
    return [replace(one, grid=(1, 1, 1))] * math.prod(one.grid) if one.pipeline.kernel in LOOK_BACKS else [one]


def without_repairs(plan: Plan, *, at_once: bool = False) -> Plan:
    """Return a plan without the passes for tiles that are exceptional, or that a look-back has left.

    Unless it is to be `at_once`, a look-back runs a workgroup a dispatch: none has to wait, so what it leaves does not
    depend on how long others take.
    """
    passes: list[Pass] = []
    for one in plan.passes:
        if one.pipeline.kernel in LOOK_BACKS and not at_once:
            passes += one_by_one(one)
        elif one.only_clears or kernel_of(one) not in ("scan_strip_totals", "scan_repair", "scan_tiles", SUSPECTS):
            passes.append(one)
    return Plan(tuple(passes), plan.state_bytes)


@dataclass(frozen=True)
class Posts:
    """Words that workgroups of a look-back have not written yet when a tile begins: the last one, unless `more`.

    Attributes
    ----------
    prefixes : int
        The spans before the tile's that have posted their totals, and not yet their prefixes.
    of_span, of_tile : tuple of int
        Single words of the records of a span before the tile's, and of the tile right before it.
    back : int
        How far before the tile's span the one of `of_span` is.
    late : int
        The workgroup that ends the span so many before the tile's runs behind all others before the tile; 0: in turn.
    more : int
        How many tiles come behind the tile.
    """

    prefixes: int = 0
    of_span: tuple[int, ...] = ()
    of_tile: tuple[int, ...] = ()
    back: int = 1
    late: int = 0
    more: int = 0


def run_without(posts: Posts, device: Device, plan: Plan, source: Any, target: Any) -> None:
    """Run a look-back over one slice in buffers of wgpu, in the last of its windows a workgroup a dispatch.

    Before the workgroup of a tile runs, what `posts` has is taken back, as if others had not come so far. The last
    window has to begin with a span.
    """
    last = max(i for i, one in enumerate(plan.passes) if one.pipeline.kernel == "scan_lookback")
    before, (clear, look_back, *others) = plan.passes[: last - 1], plan.passes[last - 1 :]
    tiles, exclusive = int(look_back.params["tiles"]), int(look_back.params["exclusive"])
    element = dict(look_back.pipeline.slots)["element"]
    is_exact, halves = element in ("int", "int64"), 4 if element in ("int64", "f64", "f64_words") else 2
    # See wgsl/lib/lookback/records.wgsl: of a tile and of a span the total and its bounds; then what else they have.
    prefix = halves + 2
    of_tile = halves if is_exact else prefix + 3 * halves * exclusive
    of_span = prefix + halves + 1 + (0 if is_exact else halves * exclusive)
    ticket = tile_slice_words(tiles, halves // 2)
    first_tile = ticket + LOOKBACK_HEADER_WORDS + (0 if is_exact else 1)
    first_span = first_tile + tiles * of_tile
    tile = tiles - 1 - posts.more
    span = tile * TILE // SPAN
    missing = {
        first_span + of_span * (span - 1 - n) + prefix + i for n in range(posts.prefixes) for i in range(halves + 1)
    }
    missing |= {first_span + of_span * (span - posts.back) + word for word in posts.of_span}
    missing |= {first_tile + of_tile * (tile - 1) + word for word in posts.of_tile}
    scratch = device.gpu_device.create_buffer(size=plan.state_bytes, usage="STORAGE|COPY_DST")
    alone, executor, limit = replace(look_back, grid=(1, 1, 1)), device._executor, device.limits.dispatch_elements
    executor.run(Plan((*before, clear), plan.state_bytes), source, target, limit, scratch=(scratch, 0))
    turns = [range(tile)]
    if posts.late:
        late = (span + 1 - posts.late) * SPAN_TILES - 1
        turns = [range(late), range(late + 1, tile), range(late, late + 1)]
    for turn in turns:
        executor.write(scratch, 4 * ticket, np.array([turn.start], np.uint32))
        executor.run(Plan((alone,) * len(turn), plan.state_bytes), source, target, limit, scratch=(scratch, 0))
    for word, value in {ticket: tile, **dict.fromkeys(sorted(missing), 0)}.items():
        executor.write(scratch, 4 * word, np.array([value], np.uint32))
    rest = (*[alone] * (1 + posts.more), *others)
    executor.run(Plan(rest, plan.state_bytes), source, target, limit, scratch=(scratch, 0))
    scratch.destroy()


@dataclass(frozen=True)
class StripRecords:
    """Where scan_strip_lookback posts, in words of its scratch memory: see wgsl/lib/strips/posts.wgsl."""

    count: int
    tiles: int
    exclusive: int
    halves: int
    is_exact: bool
    has_blocks: bool

    @classmethod
    def of(cls, one: Pass) -> StripRecords:
        """Return those of a pass."""
        element = dict(one.pipeline.slots)["element"]
        count, tiles, exclusive = (int(one.params[name]) for name in ("count", "tiles", "exclusive"))
        has_blocks = not element.startswith("int") and dict(one.pipeline.constants)["lanes"] > 1
        return cls(count, tiles, exclusive, 4 if "64" in element else 2, element.startswith("int"), has_blocks)

    @property
    def _blocks(self) -> int:
        return self.count * (1 + tile_slice_words(self.tiles, self.halves // 2)) + LOOKBACK_HEADER_WORDS

    def block(self, slice_: int, number: int) -> int:
        """Return the place of the total of a block of floats."""
        return self._blocks + (slice_ * self.tiles * 16 + number) * self.halves

    def end(self, slice_: int, number: int) -> int:
        """Return the place of the last result of a part of floats, if that matters."""
        parts = 8 if self.has_blocks else 1
        return (
            self.block(self.count if self.has_blocks else 0, 0) + (slice_ * self.tiles * parts + number) * self.halves
        )

    def tile(self, slice_: int, number: int) -> int:
        """Return the place of a tile's total."""
        has_ends = self.exclusive and not self.is_exact
        return self.end(self.count if has_ends else 0, 0) + (slice_ * self.tiles + number) * self.halves

    def span(self, slice_: int, number: int) -> int:
        """Return the place of a span's total, and of its prefix behind that."""
        spans = (self.tiles + 30) // 16
        return self.tile(self.count, 0) + (slice_ * spans + number) * 2 * self.halves


@dataclass(frozen=True)
class StripPosts:
    """Words that workgroups of a strip have not written yet when its last part begins.

    Attributes
    ----------
    columns : tuple of int
        The columns that lack them.
    prefixes : tuple of int
        The spans that have posted their totals, and not yet their prefixes.
    torn : tuple of (str, int, int)
        Single words: of the total of a ``block``, the ``end`` of a part, the total of a ``tile`` or a ``span``, or the
        ``prefix`` of one; the number of that, and of the word in it.
    """

    columns: tuple[int, ...]
    prefixes: tuple[int, ...] = ()
    torn: tuple[tuple[str, int, int], ...] = ()

    def words(self, at: StripRecords) -> list[int]:
        """Return their places in scratch memory."""
        found = []
        for column in self.columns:
            found += [at.span(column, number) + at.halves + i for number in self.prefixes for i in range(at.halves)]
            for record, number, word in self.torn:
                first = {"block": at.block, "end": at.end, "tile": at.tile, "span": at.span, "prefix": at.span}
                behind = at.halves if record == "prefix" else 0
                found.append(first[record](column, number) + behind + word)
        return found


def with_patience(plan: Plan, looks: int) -> Plan:
    """Return a plan whose workgroups, if they wait at all, look so many times for what others post."""
    passes = []
    for one in plan.passes:
        constants = dict(one.pipeline.constants)
        waits = one.pipeline.kernel in ("scan_lookback", "scan_strip_lookback")
        if waits and constants.get("patience") != 0:
            constants["patience"] = looks
        passes.append(replace(one, pipeline=replace(one.pipeline, constants=tuple(constants.items()))))
    return replace(plan, passes=tuple(passes))


def run_strips_without(posts: StripPosts, device: Device, plan: Plan, source: Any, target: Any) -> None:
    """Run a look-back over a single strip, a workgroup a dispatch.

    Before the last of the last window runs, what `posts` has is taken back, as if others had not come so far.
    """
    last = max(number for number, one in enumerate(plan.passes) if one.only_clears)
    earlier = [each for one in plan.passes[:last] for each in one_by_one(one)]
    clear, look_back, *others = plan.passes[last:]
    assert look_back.pipeline.kernel == "scan_strip_lookback"
    (alone,) = with_patience(Plan((replace(look_back, grid=(1, 1, 1)),), plan.state_bytes), 20).passes
    scratch = device.gpu_device.create_buffer(size=plan.state_bytes, usage="STORAGE|COPY_DST")
    executor, limit = device._executor, device.limits.dispatch_elements
    before = (*earlier, clear, *[alone] * (math.prod(look_back.grid) - 1))
    executor.run(Plan(before, plan.state_bytes), source, target, limit, scratch=(scratch, 0))
    for word in posts.words(StripRecords.of(look_back)):
        executor.write(scratch, 4 * word, np.array([0], np.uint32))
    executor.run(Plan((alone, *others), plan.state_bytes), source, target, limit, scratch=(scratch, 0))
    scratch.destroy()


def positions(layout: Layout) -> NDArray[np.int64]:
    """Return the position of every element, in elements."""
    result = np.full(layout.sizes, layout.offset, np.int64)
    for dimension, (size, stride) in enumerate(zip(layout.sizes, layout.strides, strict=True)):
        along = np.arange(size, dtype=np.int64) * stride
        result += along.reshape([-1 if i == dimension else 1 for i in range(len(layout.sizes))])
    return result


def buffer_for(layout: Layout, dtype: np.dtype[Any], seed: int) -> NDArray[Any]:
    """Return memory that holds a layout and some elements after it, filled with noise."""
    nbytes = -(-(layout.extent[1] + 3) * dtype.itemsize // 8) * 8
    noise = np.random.default_rng(seed).integers(0, 256, nbytes, np.uint8)
    return noise.view(dtype)


def run(
    device: Device, problem: Any, x: NDArray[Any], source: Layout, target: Layout, dtype: np.dtype[Any], **options: Any
) -> NDArray[Any]:
    """Run a problem with input and output at the given layouts; in place where they are the same object.

    Asserts that nothing but the output's elements has changed.
    """
    in_place = source is target
    host_input = buffer_for(source, x.dtype, 1)
    host_input[positions(source)] = x
    host_output = host_input.copy() if in_place else buffer_for(target, dtype, 2)
    with device.lock:
        memory_in = device.allocate(host_input.nbytes)
        device.upload(memory_in, 0, host_input)
        memory_out = memory_in
        if not in_place:
            memory_out = device.allocate(host_output.nbytes)
            device.upload(memory_out, 0, host_output)
        device.run(problem, memory_in, memory_out, **options)
        after = np.empty_like(host_output)
        device.download(memory_out, 0, after)
        if not in_place:
            input_after = np.empty_like(host_input)
            device.download(memory_in, 0, input_after)
            assert input_after.tobytes() == host_input.tobytes(), "the input was written"
            memory_out.release()
        memory_in.release()
    where = positions(target)
    result = after[where]
    after[where] = host_output[where]
    assert after.tobytes() == host_output.tobytes(), "memory outside the output's elements was written"
    return result


def scan(
    device: Device,
    x: NDArray[Any],
    operator: str,
    axis: int,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    source: Layout | None = None,
    target: Layout | None = None,
    kernel: str | None = None,
    compensated: bool = False,
    monotone: bool = False,
) -> NDArray[Any]:
    """Run a scan; layouts are packed unless given: of slices side by side where strips of tiles are to take them."""
    if kernel == "strip_lookback" and source is target is None and x.ndim < 3 and axis == x.ndim - 1:
        beside = np.ascontiguousarray(np.atleast_2d(x).T)
        order = {"exclusive": exclusive, "reverse": reverse, "compensated": compensated, "monotone": monotone}
        return scan(device, beside, operator, 0, kernel=kernel, **order).T.reshape(x.shape)
    source = source or Layout.packed(x.shape)
    target = target or Layout.packed(x.shape)
    problem = scan_problem(
        dtypes.by_dtype(x.dtype),
        Operator(operator),
        source,
        target,
        axis,
        ScanOptions(exclusive, reverse, Precision.COMPENSATED if compensated else Precision.DEFAULT, monotone),
    )
    return run(device, problem, x, source, target, x.dtype, kernel=kernel)


def expected_scan(
    device: Device,
    x: NDArray[Any],
    operator: str,
    axis: int,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    compensated: bool = False,
    monotone: bool = False,
) -> NDArray[Any]:
    """Return the reference's answer for a device: with subnormals kept or flushed, as its probe says."""
    accumulates_float32 = x.dtype in (np.float16, np.float32)  # the probe is of these; float64 keeps subnormals
    flush = accumulates_float32 and not device.subnormals()[operator]
    order = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
    options = {"flush": flush, "compensated": compensated, "monotone": monotone}
    return reference.cumulative(x, operator, **order, **options)  # type: ignore[arg-type]


def check_scan(device: Device, x: NDArray[Any], operator: str, axis: int, **options: Any) -> None:
    """Assert that a scan on the device gives the reference's bits."""
    names = ("exclusive", "reverse", "compensated", "monotone")
    semantics = {name: options[name] for name in names if name in options}
    difference = reference.first_difference(
        scan(device, x, operator, axis, **options), expected_scan(device, x, operator, axis, **semantics)
    )
    assert difference is None, f"{operator} of {x.dtype} {x.shape} along {axis} with {options}: {difference}"


def round_on(
    device: Device, x: NDArray[Any], mode: str, *, source: Layout | None = None, target: Layout | None = None
) -> NDArray[Any]:
    """Round on the device; layouts are packed unless given."""
    source = source or Layout.packed(x.shape)
    target = target or Layout.packed(x.shape)
    problem = round_problem(dtypes.by_dtype(x.dtype), MODES[mode], source, target)
    return run(device, problem, x, source, target, x.dtype)


def convert_on(
    device: Device, x: NDArray[Any], dtype: Any, *, source: Layout | None = None, target: Layout | None = None
) -> NDArray[Any]:
    """Convert on the device; layouts are packed unless given."""
    source = source or Layout.packed(x.shape)
    target = target or Layout.packed(x.shape)
    element = dtypes.by_dtype(dtype)
    problem = convert_problem(dtypes.by_dtype(x.dtype), element, source, target)
    return run(device, problem, x, source, target, element.dtype)


def numbers(shape: tuple[int, ...], dtype: Any, operator: str = "sum", seed: int = 0) -> NDArray[Any]:
    """Return test data: any integers; floats whose products neither vanish nor overflow."""
    rng = np.random.default_rng([seed, *shape])
    kind = np.dtype(dtype)
    if kind.kind != "f":
        info = np.iinfo(kind)
        return rng.integers(info.min, info.max, shape, kind, endpoint=True)
    values = rng.standard_normal(shape)
    if operator == "product":
        values = np.exp2(values / 64) * rng.choice([-1.0, 1.0], shape)
    return values.astype(kind)
