"""Problems on devices with any limits: planned for those, run on the device there is, compared with the reference.

An input is a JSON object on one line: the operator, its options, the layouts, the kernel, and what is different in the
device's `Limits` and `Tuning`. So plans for GPUs, for software, and for limits that no device here has, run from end to
end. Beside the result, the input and the memory around the output must not change.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import fields, replace
from typing import Any

import numpy as np
import wgpu
from hypothesis import strategies as st
from numpy.typing import NDArray

import dmlgpu
from dmlgpu import reference
from dmlgpu.conformance.elements import FAMILIES, elements, random_words
from dmlgpu.dtypes import ELEMENT_TYPES, by_name
from dmlgpu.errors import ArgumentError
from dmlgpu.layout import Layout
from dmlgpu.planning.dispatch import Plan
from dmlgpu.planning.kernels import check_pass
from dmlgpu.planning.plan import KERNELS, plan_problem
from dmlgpu.planning.problem import (
    MODES,
    ElementwiseProblem,
    Operator,
    Precision,
    ScanOptions,
    ScanProblem,
    convert_problem,
    round_problem,
    scan_problem,
)
from dmlgpu.planning.tuning import Tuning
from dmlgpu.planning.windows import Limits
from dmlgpu.runtime.device import Device

from ..harness import changed
from .target import Target

TYPES = [element.name for element in ELEMENT_TYPES]
FLOATS = [element.name for element in ELEMENT_TYPES if element.kind == "float"]
_TUNING = {field.name for field in fields(Tuning)}
_MOST_PASSES, _MOST_WORKGROUPS = 300, 10_000
"""A plan of more is held to the table of kernels, and does not run."""

Input = dict[str, Any]


def check(line: str) -> set[Any]:
    """Plan and run an input; return which kernels it has run, of which type, and whether several times."""
    given: Input = json.loads(line)
    device = dmlgpu.default_device()
    source, target = _layouts(given)
    problem = _problem(given, source, target)
    limits = _limits(given["limits"], device)
    try:
        plan = plan_problem(problem, limits, one_buffer=given["relation"] != "apart", kernel=given["kernel"])
    except ArgumentError as error:
        if any(reason in str(error) for reason in ("windows", "binding", "a dispatch needs")):
            return {("refused", given["kernel"])}
        raise
    for one in plan.passes:
        check_pass(one)
    workgroups = sum(math.prod(one.grid) for one in plan.passes)
    if 0 < len(plan.passes) <= _MOST_PASSES and workgroups <= _MOST_WORKGROUPS:
        _run(device, given, plan, limits, source, target)
    counts = Counter((one.pipeline.kernel, dict(one.pipeline.slots).get("element")) for one in plan.passes)
    return {(*what, count > 1) for what, count in counts.items()}


def _layout(sizes: list[int], how: Input) -> Layout:
    """Return the strides that an order of the dimensions, gaps after them, signs and repetitions make."""
    strides, step, low = [0] * len(sizes), 1, 0
    for dimension in how["order"]:
        if not how["repeated"][dimension]:
            strides[dimension] = step
            step = step * sizes[dimension] + how["gaps"][dimension]
            if how["reversed"][dimension]:
                low += (sizes[dimension] - 1) * strides[dimension]
                strides[dimension] *= -1
    return Layout(tuple(sizes), tuple(strides), low + how["offset"])


def _layouts(given: Input) -> tuple[Layout, Layout]:
    source, target = (_layout(given["sizes"], given[name]) for name in ("source", "target"))
    if given["relation"] == "in place":
        return target, target
    if given["relation"] == "before":
        return source, replace(target, offset=target.offset + source.extent[1])
    if given["relation"] == "behind":
        return replace(source, offset=source.offset + target.extent[1]), target
    return source, target


def _problem(given: Input, source: Layout, target: Layout) -> ScanProblem | ElementwiseProblem:
    element, operator = by_name(given["type"]), given["operator"]
    if operator == "round":
        return round_problem(element, MODES[given["mode"]], source, target)
    if operator == "convert":
        return convert_problem(element, by_name(given["to"]), source, target)
    precision = Precision.COMPENSATED if given["option"] == "compensated" else Precision.DEFAULT
    options = ScanOptions(given["exclusive"], given["reverse"], precision, given["option"] == "monotone")
    return scan_problem(element, Operator(operator), source, target, given["axis"], options)


def _limits(changes: Input, device: Device) -> Limits:
    """Return the device's limits with changes that it can keep to."""
    tuning = replace(device.limits.tuning, **{name: changes[name] for name in changes.keys() & _TUNING})
    others = {name: value for name, value in changes.items() if name not in _TUNING}
    if "offset_alignment" in others:
        others["offset_alignment"] = max(others["offset_alignment"], device.limits.offset_alignment)
    return changed(device.limits, tuning=tuning, **others)


def _expected(given: Input, x: NDArray[Any], device: Device) -> NDArray[Any]:
    operator = given["operator"]
    if operator == "round":
        return reference.round(x, given["mode"])
    if operator == "convert":
        return reference.convert(x, by_name(given["to"]).dtype)
    return reference.cumulative(
        x,
        operator,
        axis=given["axis"],
        exclusive=given["exclusive"],
        reverse=given["reverse"],
        flush=given["type"] in ("float16", "float32") and not device.subnormals()[operator],
        compensated=given["option"] == "compensated",
        monotone=given["option"] == "monotone",
    )


def _run(device: Device, given: Input, plan: Plan, limits: Limits, source: Layout, target: Layout) -> None:
    element = by_name(given["type"])
    result = by_name(given["to"]) if given["operator"] == "convert" else element
    shared = given["relation"] != "apart"
    ends = [source.extent[1], target.extent[1]]
    host = [_memory(given, element.dtype, max(ends) if shared else ends[0])]
    x = source.view(host[0]).copy()
    if not shared:
        host.append(_memory({**given, "family": "patterns"}, result.dtype, ends[1]))
    after = [np.empty_like(one) for one in host]
    with device.lock:
        memory = [device.allocate(one.nbytes) for one in host]
        try:
            for one, buffer in zip(host, memory, strict=True):
                device.upload(buffer, 0, one)
            buffers = memory[0].gpu_buffer, memory[-1].gpu_buffer
            scratch = _scratch(device, plan.state_bytes)
            device._executor.run(plan, *buffers, limits.dispatch_elements, scratch=(scratch, 0))
            for one, buffer in zip(after, memory, strict=True):
                device.download(buffer, 0, one)
            if scratch is not None:
                scratch.destroy()
        finally:
            for buffer in memory:
                buffer.release()
    written = target.view(after[-1])
    difference = reference.first_difference(written.copy(), _expected(given, x, device))
    assert difference is None, difference
    written[...] = target.view(host[-1])
    for one, before in zip(after, host, strict=True):
        changed_bytes = np.flatnonzero(one.view(np.uint8) != before.view(np.uint8))
        assert not changed_bytes.size, f"byte {changed_bytes[0]} beside the output has changed"


def _memory(given: Input, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    """Return elements, with some more behind them up to a whole number of words of 8 bytes."""
    whole = -(-(count + 3) * dtype.itemsize // 8) * 8 // dtype.itemsize
    operator = given["operator"] if given["operator"] in ("sum", "product") else ""
    return elements(given["family"], dtype.name, (whole,), operator).copy()


def _scratch(device: Device, size: int) -> Any:
    """Return memory full of odd words, where a plan expects nothing: the marks of what is written are lowest bits."""
    if not size:
        return None
    words = random_words(-(-size // 8), "scratch").view(np.uint32) | np.uint32(1)
    words[::3] = 1
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_DST
    return device.gpu_device.create_buffer_with_data(data=words[: -(-size // 4)], usage=usage)


# Drawing


_LENGTHS = [1, 2, 3, 7, 15, 16, 17, 31, 64, 255, 256, 257, 513, 1000, 4095, 4096, 4097, 9000, 20_000, 70_000]
_MOST_ELEMENTS = 150_000


@st.composite
def _sizes(draw: st.DrawFn) -> tuple[list[int], int]:
    """Draw sizes and an axis: anything, or slices of some length side by side, or behind each other."""
    kind = draw(st.sampled_from(["any", "beside", "behind"]))
    rank = draw(st.sampled_from([1, 2, 2, 3, 3, 4, 5]))
    sizes = [draw(st.sampled_from([1, 2, 3, 5, 8])) for _ in range(rank)]
    places = [draw(st.integers(0, rank - 1)) for _ in range(draw(st.integers(1, 2)))]
    axis = draw(st.integers(0, rank - 1))
    if kind != "any":
        sizes = [*[1, 2, 3][: draw(st.integers(0, 2))], 1, 1]
        axis = len(sizes) - (2 if kind == "beside" else 1)
        places = draw(st.permutations([len(sizes) - 2, len(sizes) - 1]))
    for place in places:
        room, more = _MOST_ELEMENTS // math.prod(sizes), draw(st.sampled_from([0, 0, 0, 1, 2]))
        sizes[place] = max(1, min(room, draw(st.sampled_from(_LENGTHS)) + more))
    return sizes, axis


def _layout_of(rank: int, repeats: bool) -> st.SearchStrategy[Input]:
    def some(odd: int) -> st.SearchStrategy[list[int]]:
        return st.one_of(st.just([0] * rank), st.lists(st.integers(0, odd), min_size=rank, max_size=rank))

    outward, none, offsets = [*range(rank)][::-1], [0] * rank, st.sampled_from([0, 0, 1, 2, 3, 4, 5, 16, 517])
    packed = {"order": st.just(outward), "gaps": st.just(none), "reversed": st.just(none), "repeated": st.just(none)}
    odd = {
        "order": st.one_of(st.just(outward), st.permutations(range(rank))),
        "gaps": some(3),
        "reversed": some(1),
        "repeated": some(1) if repeats else st.just(none),
    }
    return st.one_of(*(st.fixed_dictionaries({**one, "offset": offsets}) for one in (packed, packed, odd)))


@st.composite
def _changes(draw: st.DrawFn, nbytes: int) -> Input:
    few = st.sampled_from([1, 2, 3, 7, 64, 65_535])
    possible: dict[str, st.SearchStrategy[Any]] = {
        "binding_bytes": st.integers(max(1024, nbytes // 12), max(2048, 2 * nbytes)),
        "offset_alignment": st.sampled_from([4, 16, 32, 64, 256]),
        "workgroups": few,
        "rows": st.just(65_535),
        "dispatch_elements": st.integers(max(1, nbytes // 40), max(2, nbytes)),
        "float64": st.just(False),
        "opaque": st.just(False),
        "cores": st.sampled_from([1, 2, 8, 64]),
        "columns": st.booleans(),
        "near_elements": st.sampled_from([0, 2**31]),
        "short_slice": st.sampled_from([0, 16, 256, 5000]),
        "packed_slice": st.sampled_from([0, 16, 256, 5000]),
        "many_slices": st.sampled_from([0, 4, 64, 4096]),
        "many_rows": st.sampled_from([0, 2, 64]),
        "enough_strips": st.sampled_from([0, 4, 2**32]),
        "lookback_elements": st.sampled_from([0, 2**16, 2**32]),
        "tile_columns": st.sampled_from([0, 1, 8, 64]),
    }
    changes = {"software": draw(st.sampled_from([False, False, True]))}
    changes |= {name: draw(value) for name, value in possible.items() if draw(st.integers(0, 3)) == 0}
    return changes


@st.composite
def _fresh(draw: st.DrawFn) -> Input:
    sizes, axis = draw(_sizes())
    operator = draw(st.sampled_from(["sum", "sum", "product", "product", "round", "convert"]))
    kind = draw(st.sampled_from(FLOATS if operator == "round" else TYPES))
    relations = ["apart", "apart", "in place", "before", "behind"] if operator != "convert" else ["apart"]
    relation = draw(st.sampled_from(relations))
    options = ["", "", *["compensated"] * (kind == "float32"), "monotone"] if operator == "sum" else [""]
    given = {
        "operator": operator,
        "type": kind,
        "sizes": sizes,
        "axis": axis,
        "exclusive": draw(st.booleans()),
        "reverse": draw(st.booleans()),
        "option": draw(st.sampled_from(options)),
        "kernel": draw(st.sampled_from([None, None, None, *KERNELS])),
        "family": draw(st.sampled_from(FAMILIES)),
        "relation": relation,
        "source": draw(_layout_of(len(sizes), repeats=relation != "in place")),
        "target": draw(_layout_of(len(sizes), repeats=False)),
        "limits": draw(_changes(math.prod(sizes) * by_name(kind).itemsize)),
    }
    if operator == "round":
        given["mode"] = draw(st.sampled_from(sorted(MODES)))
    if operator == "convert":
        given["to"] = draw(st.sampled_from(TYPES))
    return given


@st.composite
def _lines(draw: st.DrawFn, corpus: list[str]) -> str:
    given = draw(_fresh())
    if corpus and draw(st.booleans()):
        # One of the corpus with some fields of another; what depends on the type or on the dimensions stays together.
        known = json.loads(draw(st.sampled_from(corpus)))
        names = ["exclusive", "reverse", "kernel", "family", "limits"]
        if len(known["sizes"]) == len(given["sizes"]):
            names += ["sizes", "axis", "target", *["source"] * (known["relation"] != "in place")]
        known |= {name: given[name] for name in names if draw(st.booleans())}
        known["sizes"] = [1] * len(known["sizes"]) if math.prod(known["sizes"]) > _MOST_ELEMENTS else known["sizes"]
        given = known
    return json.dumps(given, separators=(",", ":"))


PLANS = Target("plans", lambda corpus: _lines(corpus), check, ("planning",), drawn=100)
