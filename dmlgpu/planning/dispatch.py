"""Pure: what a plan is made of, and how a window of a problem becomes a pass of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import ge

import numpy as np

from ..errors import ArgumentError
from ..layout import ceil_div
from .kernels import ACCESS, TABLE, Work
from .params import PARAMS, uniforms
from .problem import Dimension, ElementwiseProblem, ScanProblem
from .windows import Limits, Range, Window, byte_range, chunk_sizes, windows

__all__ = [
    "BoundWindow",
    "Pass",
    "PipelineKey",
    "Plan",
    "Planner",
    "any_placement",
    "grid_of",
    "is_in_place",
    "writable_input",
]

_TOKEN_BYTES = 8
"""The largest accumulator: a scan that keeps nothing between passes binds one, because its kernel names the binding."""


@dataclass(frozen=True)
class PipelineKey:
    """What a pipeline is made of.

    Attributes
    ----------
    kernel : str
        A file of ``wgsl/``.
    slots : tuple of (str, str)
        The pieces that fill its slots, see `dmlgpu.shaders.resolve`.
    constants : tuple of (str, int)
        The values of its override constants.
    """

    kernel: str
    slots: tuple[tuple[str, str], ...]
    constants: tuple[tuple[str, int], ...]

    @property
    def bindings(self) -> dict[int, str]:
        """The types of its bindings, in WebGPU's words, by number: uniforms, input, output and state."""
        slots = dict(self.slots)
        found = {0: "uniform"}
        if "input" in slots:  # else the kernel only uses the state
            if slots["input"] != "in_output":
                found[1] = "read-only-storage" if slots["input"] == "separate" else "storage"
            found[2] = "storage"
        if "element" in slots:
            found[3] = "storage"  # scans have state
        return found


@dataclass(frozen=True)
class Pass:
    """One dispatch.

    Attributes
    ----------
    pipeline : PipelineKey
        What to run.
    uniforms : bytes
        The struct Params of ``wgsl/lib/params.wgsl``.
    grid : tuple of int
        Workgroups in x, y and z.
    input, output : Range or None
        The parts of the buffers to bind; no input where it lies in the output's binding, and neither for a kernel that
        only uses the scratch buffer.
    state_bytes : int
        The part of the scratch buffer to bind, from its start; 0 for kernels without.
    elements : int
        The elements it works on.
    cleared : Range or None
        The part of the scratch buffer that is zero behind it.
    only_clears : bool
        Whether it does nothing else, so that it can be left out where that part is zero before it.
    why : str
        Why this kernel was chosen; of no effect.
    """

    pipeline: PipelineKey
    uniforms: bytes
    grid: tuple[int, int, int]
    input: Range | None
    output: Range | None
    state_bytes: int
    elements: int
    cleared: Range | None = None
    only_clears: bool = False
    why: str = field(default="", compare=False)

    @property
    def params(self) -> np.void:
        """The uniforms by name, as `PARAMS` has them."""
        record: np.void = np.frombuffer(self.uniforms, PARAMS)[0]
        return record


@dataclass(frozen=True)
class Plan:
    """The passes of an operator, to run in order.

    Attributes
    ----------
    passes : tuple of Pass
        In order.
    state_bytes : int
        The size of the scratch buffer that they share; its contents before and after don't matter.
    """

    passes: tuple[Pass, ...]
    state_bytes: int

    @classmethod
    def of(cls, passes: Iterable[Pass]) -> Plan:
        """Return the plan of these passes."""
        every = tuple(passes)
        return cls(every, max(one.state_bytes for one in every))

    @property
    def scratch_bytes(self) -> int:
        """The bytes of `state_bytes` that the passes really use: 0 where the binding is there for its name's sake."""
        return 0 if self.state_bytes <= _TOKEN_BYTES else self.state_bytes


def grid_of(workgroups: int, limits: Limits) -> tuple[int, int, int]:
    """Return a grid of at least `workgroups`, in rows where one dimension cannot hold them.

    Raises
    ------
    ArgumentError
        If two dimensions cannot hold them.
    """
    rows = ceil_div(workgroups, limits.workgroups)
    if rows > limits.rows:
        raise ArgumentError(
            f"a dispatch needs {workgroups} workgroups, and the device allows {limits.workgroups} times {limits.rows}: "
            "open it with a larger max-compute-workgroups-per-dimension, work on parts of the array, or choose another "
            "device"
        )
    return ceil_div(workgroups, rows), rows, 1


@dataclass(frozen=True)
class BoundWindow:
    """A window, and how its tensors are bound.

    Attributes
    ----------
    window : Window
        The part of the problem.
    slot : {"separate", "shared", "in_output"}
        The piece that fills the slot <input>: two buffers, two parts of one buffer, or one part for both.
    input, output : Range
        The parts of the buffers; the same for "in_output".
    itemsizes : (int, int)
        Bytes an element of input and output.
    """

    window: Window
    slot: str
    input: Range
    output: Range
    itemsizes: tuple[int, int]

    def is_aligned(self, nbytes: int, dims: Sequence[Dimension]) -> bool:
        """Whether both tensors begin at multiples of so many bytes of their bindings, and step by them along `dims`."""
        window, (read, written) = self.window, self.itemsizes
        return not any(
            place % nbytes
            for place in (
                window.input_offset * read - self.input.offset,
                window.output_offset * written - self.output.offset,
                self.input.size,
                self.output.size,
                *(dimension.input_stride * read for dimension in dims),
                *(dimension.output_stride * written for dimension in dims),
            )
        )

    @property
    def fields(self) -> dict[str, int]:
        """The uniforms that follow from the window, but for its batch dimensions."""
        window = self.window
        return {
            "rank": len(window.batch),
            "count": window.slices,
            "input_offset": window.input_offset - self.input.offset // self.itemsizes[0],
            "output_offset": window.output_offset - self.output.offset // self.itemsizes[1],
            "length": window.axis.size,
            "first": window.first,
            "input_axis_stride": window.axis.input_stride,
            "output_axis_stride": window.axis.output_stride,
            "resume": int(window.first > 0),
            "suspend": int(not window.last),
        }


class Planner:
    """What all passes of a problem have in common: the problem, the device's limits, and where the tensors lie.

    Parameters
    ----------
    problem : ScanProblem or ElementwiseProblem
        What to compute.
    limits : Limits
        What the device can do.
    one_buffer : bool
        Whether input and output are in one buffer. They must then be in place, or not overlap.
    chunks : sequence of int, optional
        The sizes of windows that `any_placement` returned; by default the largest for this placement.
    """

    why: str = ""
    """Why the passes that follow have the kernels they have."""

    def __init__(
        self,
        problem: ScanProblem | ElementwiseProblem,
        limits: Limits,
        one_buffer: bool = False,
        chunks: Sequence[int] | None = None,
    ) -> None:
        self.limits, self.one_buffer = limits, one_buffer
        self.in_place = one_buffer and is_in_place(problem)
        self._itemsizes = (problem.source.itemsize, problem.target.itemsize)
        offsets = (problem.input_offset, problem.output_offset)
        self._whole = self.bind(Window(problem.batch, problem.axis, 0, True, *offsets))
        widths = {"input_log2_bits": problem.source.log2_bits, "output_log2_bits": problem.target.log2_bits}
        self.constants: dict[str, int] = widths
        self.slots: dict[str, str] = {}
        self.chunks = tuple(self._largest_chunks() if chunks is None else chunks)

    def windows(self, chunks: Sequence[int]) -> Iterator[BoundWindow]:
        """Yield the windows of these sizes, each with its bindings."""
        whole = self._whole.window
        if all(map(ge, chunks, whole.sizes)):
            return iter([self._whole])
        offsets = (whole.input_offset, whole.output_offset)
        return map(self.bind, windows(whole.batch, whole.axis, offsets, chunks))

    def fields_of(self, window: Window) -> Mapping[str, int]:
        """Return the uniforms of all passes over a window that do not follow from it alone."""
        raise NotImplementedError

    def bind(self, window: Window) -> BoundWindow:
        """Return how to bind a window's input and output."""
        dims, align = (*window.batch, window.axis), self.limits.binding_alignment
        steps_in, steps_out = [(d.size, d.input_stride) for d in dims], [(d.size, d.output_stride) for d in dims]
        read = byte_range(window.input_offset, steps_in, self._itemsizes[0], align)
        written = byte_range(window.output_offset, steps_out, self._itemsizes[1], align)
        if not self.one_buffer:
            return BoundWindow(window, "separate", read, written, self._itemsizes)
        if read.end <= written.offset or written.end <= read.offset:
            return BoundWindow(window, "shared", read, written, self._itemsizes)
        start = min(read.offset, written.offset)
        union = Range(start, max(read.end, written.end) - start)
        return BoundWindow(window, "in_output", union, union, self._itemsizes)

    def make_pass(
        self,
        kernel: str,
        bound: BoundWindow,
        access: str | None = None,
        *,
        slots: Mapping[str, str] | None = None,
        constants: Mapping[str, int] | None = None,
        fields: Mapping[str, int] | None = None,
        why: str = "",
    ) -> Pass:
        """Return the dispatch of a kernel over a window; its row in `TABLE` says what of all this concerns it.

        Parameters
        ----------
        kernel : str
            Its name.
        bound : BoundWindow
            What to work on.
        access : str, optional
            A name in `ACCESS`; by default element by element.
        slots, constants, fields : mapping, optional
            Pieces, constants and uniforms that are not the same for all passes of the problem.
        why : str
            Why it is this kernel, behind what `why` of the planner says.
        """
        row, window = TABLE[kernel], bound.window
        way = ACCESS[access or ("packed" if self._itemsizes[1] < 4 else "words")]
        pieces = {"input": bound.slot, "output": way.output, **way.slots, **self.slots}
        pieces |= slots or {}
        values = {"flat": int(len(window.batch) <= 1), **self.constants, **(constants or {})}
        scalars = {**bound.fields, **self.fields_of(window), **(fields or {})}
        pieces = {slot: pieces[slot] for slot in row.slots}
        values = {name: value for name, value in values.items() if row.takes(name)}
        work = Work(scalars, values, pieces)
        asked = scalars.pop("grid_width", 0)
        grid = grid_of(row.workgroups(work) if row.workgroups else asked, self.limits)
        inner_first = window.batch[::-1]
        params = uniforms(
            sizes=[d.size for d in inner_first],
            input_strides=[d.input_stride for d in inner_first],
            output_strides=[d.output_stride for d in inner_first],
            grid_width=grid[0],
            **scalars,
        )
        has_tensors = "output" in pieces
        return Pass(
            PipelineKey(kernel, tuple(sorted(pieces.items())), tuple(sorted(values.items()))),
            params,
            grid,
            bound.input if has_tensors and bound.slot != "in_output" else None,
            bound.output if has_tensors else None,
            4 * row.scratch_words(work),
            window.elements,
            why=f"{self.why}; {why}" if why else self.why,
        )

    def _largest_chunks(self) -> list[int]:
        """Return the sizes of windows: the whole problem where it fits."""
        bound, whole = self._whole, self._whole.window
        dims, capacity, most = (*whole.batch, whole.axis), self.limits.binding_bytes, self.limits.dispatch_elements
        if max(bound.input.size, bound.output.size) > capacity:
            if self.one_buffer and not self.in_place:
                capacity = capacity // 8 * 4  # so that one binding holds both where two would meet
            found = chunk_sizes(dims, self._itemsizes, capacity, most)
            if self._begin_aligned(found):
                return found
            # A window's range begins and ends anywhere within the alignment.
            capacity -= self.limits.binding_alignment + 4
        return chunk_sizes(dims, self._itemsizes, capacity, most)

    def _begin_aligned(self, chunks: Sequence[int]) -> bool:
        """Whether windows of these sizes all begin where bindings may, as those of whole rows of a picture do."""
        window, align = self._whole.window, self.limits.binding_alignment
        for itemsize, tensor in zip(self._itemsizes, ("input", "output"), strict=True):
            dims = [(d.size, getattr(d, f"{tensor}_stride")) for d in (*window.batch, window.axis)]
            starts = [getattr(window, f"{tensor}_offset")]
            for (size, stride), chunk in zip(dims, chunks, strict=True):
                starts += [stride] * (chunk < size) + [(min(chunk, size) - 1) * stride] * (stride < 0)
            if any(start * itemsize % align for start in starts):
                return False
        return True


def is_in_place(problem: ScanProblem | ElementwiseProblem) -> bool:
    """Whether every element's input and output have the same position, if both are in one buffer."""
    return (
        problem.source.itemsize == problem.target.itemsize
        and problem.input_offset == problem.output_offset
        and all(
            dimension.size == 1 or dimension.input_stride == dimension.output_stride
            for dimension in (*problem.batch, problem.axis)
        )
    )


def any_placement(problem: ScanProblem | ElementwiseProblem, limits: Limits) -> list[int]:
    """Return sizes of windows that fit wherever the two tensors lie, in one buffer or two.

    Plans made with them have the same windows for every placement; see `plans_of_any_placement`.
    """
    # Half a binding for each tensor, should both lie so near that they share one.
    capacity = limits.binding_bytes // 2 - (limits.binding_alignment + 4)
    itemsizes = (problem.source.itemsize, problem.target.itemsize)
    return chunk_sizes((*problem.batch, problem.axis), itemsizes, capacity, limits.dispatch_elements)


def writable_input(plan: Plan) -> Plan:
    """Return a plan for two buffers with the input bound read_write.

    WebGPU tracks usage by buffer, so that an input needs this where its buffer holds the scratch memory too.
    """
    return Plan(tuple(_writable_input(one) for one in plan.passes), plan.state_bytes)


def _writable_input(one: Pass) -> Pass:
    slots = tuple(("input", "shared") if slot == ("input", "separate") else slot for slot in one.pipeline.slots)
    return replace(one, pipeline=replace(one.pipeline, slots=slots))
