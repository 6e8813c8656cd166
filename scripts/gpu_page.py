#!/usr/bin/env python3
"""Build the page "Same bits on your GPU?": one HTML file, which needs neither a server nor a network.

::

    python scripts/gpu_page.py build/page    # or: make page

The page runs conformance cases by the browser's WebGPU and compares digests with the reference's. Below that it runs
what its reader types. It holds plans for WebGPU's default limits (dmlgpu/planning/export.py), their shaders, the cases'
inputs and the digests that their results should have.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dmlgpu
from dmlgpu.conformance import Case, Placement, ScanCase, digest, parse
from dmlgpu.dtypes import BOOL, ELEMENT_TYPES, by_name
from dmlgpu.layout import Layout
from dmlgpu.planning.export import exported_plan
from dmlgpu.planning.plan import EVERYWHERE, plan_problem
from dmlgpu.planning.problem import (
    ElementwiseProblem,
    Operator,
    RoundingMode,
    ScanOptions,
    ScanProblem,
    round_problem,
    scan_problem,
)
from dmlgpu.planning.windows import Limits

SCRIPTS = Path(__file__).resolve().parent
SOURCES = SCRIPTS / "gpu_page"
CODE = (
    SCRIPTS / "page" / "loader.js",
    *(SOURCES / f"{name}.js" for name in ("data", "check", "order", "steps", "playground", "main")),
)
MOST_BYTES = 2_000_000
"""Of the page."""

ROW = 4096
"""The longest row that a reader may type."""
STEP = 4
"""Elements in 16 bytes, which kernels read at a time where they can."""
ROUNDED_STEP = 64
"""A row is rounded with zeros after it up to a multiple of this: each element stands for itself."""
SHAPES = ((5, 7), (16, 16), (3, 4, 5), (40, 100))
"""The other shapes of the playground."""
PLAYED = ("float32", "int32")
"""The types of the playground, of 4 bytes an element."""
SPEED = (2**20, 2**24)
"""Elements of the rows whose speed is measured: for software, and for GPUs."""

_TYPES = tuple(element.name for element in ELEMENT_TYPES)
_FLOATS = tuple(element.name for element in ELEMENT_TYPES if element.kind == "float")
_OPERATORS = ("sum", "product")
_ORDERS = [(exclusive, reverse) for exclusive in (False, True) for reverse in (False, True)]
_LENGTH = 4512
"""More than a tile, and a multiple of what kernels read at a time in every type."""
_BESIDE = (("float32", "sum", 1), ("float32", "product", 1), ("uint8", "sum", 4))
"""Slices side by side for the other one: their types, operators and numbers, few enough for the page to hold."""
_PLACEMENTS = {"slices": "packed-to-offset", "rows": "packed-in-place"}
_CONVERSIONS = (
    "float64-to-float32",
    "float32-to-float16",
    "float16-to-float64",
    "float64-to-uint64",
    "int64-to-float32",
)


def cases() -> Iterator[Case]:
    """Yield the cases of the page: each kernel of any slices in each type, with few inputs and pipelines.

    The page has to hold the inputs, and drivers take longer to compile a pipeline than to run its cases.
    """
    for n, dtype in enumerate(_TYPES):
        for i, kernel in enumerate(EVERYWHERE):
            # Sums and products of integers are as many, and the same for signed and unsigned, which share pipelines.
            in_turn = _OPERATORS[(i + by_name(dtype).itemsize.bit_length()) % 2]
            for m, operator in enumerate(_OPERATORS if dtype in _FLOATS else (in_turn,)):
                placement = Placement.parse(_PLACEMENTS.get(kernel, "packed-to-packed"))
                order = _ORDERS[(n + m + i) % len(_ORDERS)]
                yield ScanCase(dtype, (_LENGTH,), placement, "plain", operator, 0, *order, kernel)
                if dtype in _FLOATS and kernel == "lookback":
                    yield ScanCase(dtype, (_LENGTH,), placement, "special", operator, 0, *order, kernel)
        order = _ORDERS[n % len(_ORDERS)]
        yield ScanCase(dtype, (200, 7), Placement(), "plain", _OPERATORS[n % 2], 1, *order, "auto")
        yield ScanCase(dtype, (3, 13, 5), Placement(), "plain", _OPERATORS[n % 2], 1, *order, "auto")
    for i, kernel in enumerate(EVERYWHERE):
        order = _ORDERS[i % len(_ORDERS)]
        yield ScanCase("float32", (_LENGTH,), Placement(), "plain", "compensated", 0, *order, kernel)
    for i, (dtype, operator, slices) in enumerate(_BESIDE):
        shape, order = (_LENGTH, slices), _ORDERS[i % len(_ORDERS)]
        yield ScanCase(dtype, shape, Placement(), "plain", operator, 0, *order, "strip_lookback")
    for operator, order in zip(_OPERATORS, (_ORDERS[0], _ORDERS[-1]), strict=True):
        yield ScanCase("float32", (_LENGTH,), Placement(), "plain", operator, 0, *order, "reduce_then_scan")
    for dtype in _FLOATS:
        for mode in ("half_even", "toward_zero", "half_away"):
            count = 65_536 if dtype == "float16" else 4096
            yield parse(f"round.{dtype}.{mode}.{count}.packed-to-packed.patterns")
    each_to_next = [f"{source}-to-{target}" for source, target in zip(_TYPES, (*_TYPES[1:], _TYPES[0]), strict=True)]
    for types in (*each_to_next, f"{BOOL.name}-to-int32", *_CONVERSIONS):
        yield parse(f"convert.{types}.1001.packed-to-offset.patterns")


def column(case: Case) -> str:
    """Return what the page's table calls a case's kernel."""
    if isinstance(case, ScanCase) and case.operator != "compensated":
        return "short" if case.way == "auto" else case.way
    return "compensated" if isinstance(case, ScanCase) else case.column


class Contents:
    """What the page holds: plans, and each shader and input once."""

    def __init__(self) -> None:
        self.shaders: dict[str, list[int]] = {}
        self.pieces: dict[str, int] = {}
        self.inputs: dict[bytes, int] = {}

    def plan(
        self,
        problem: ScanProblem | ElementwiseProblem,
        nbytes: dict[str, int],
        *,
        one_buffer: bool = False,
        kernel: str | None = None,
    ) -> dict[str, Any]:
        """Return a plan as data, and keep its shaders."""
        plan = plan_problem(problem, Limits(), one_buffer=one_buffer, kernel=kernel)
        exported, shaders = exported_plan(plan, nbytes)
        for name, text in shaders.items():
            if name not in self.shaders:
                code = bare(text).split("\n\n")
                self.shaders[name] = [self.pieces.setdefault(piece, len(self.pieces)) for piece in code]
        return exported

    def input(self, data: NDArray[Any]) -> int:
        """Keep an input; return its number."""
        return self.inputs.setdefault(data.tobytes(), len(self.inputs))

    def case(self, case: Case) -> dict[str, Any]:
        """Return a case as data.

        ``contents`` says which input the buffer "input", or "output" in place, begins with; ``result`` the bytes of the
        output that hold the results, in C order.
        """
        source, target = case.layouts()
        one_buffer = case.placement.relation != "to"
        assert not case.meets_subnormals(), f"{case.name} meets subnormals: devices may differ"
        assert target.is_packed, f"{case.name}: the page reads results that lie side by side"
        x = np.zeros(-(-source.extent[1] * case.x().itemsize // 8) * 8 // case.x().itemsize, case.x().dtype)
        source.view(x)[...] = case.x()
        itemsize = case.result_type.itemsize
        output = x.nbytes if one_buffer else -(-(target.extent[1] + 3) * itemsize // 8) * 8
        nbytes = {"output": output} if one_buffer else {"input": x.nbytes, "output": output}
        return {
            "name": case.name,
            "column": column(case),
            "type": case.dtype,
            "result_type": case.result_type.name,
            "plan": self.plan(case.problem(), nbytes, one_buffer=one_buffer, kernel=case.kernel),
            "contents": {"output" if one_buffer else "input": self.input(x)},
            "result": [target.extent[0] * itemsize, target.extent[1] * itemsize],
            "digest": digest(case.expected()),
        }


def bare(shader: str) -> str:
    """Return a shader without the lines that are comments, and without indentation: the page shows no code."""
    lines = (line.strip() for line in shader.splitlines())
    return "\n".join(line for line in lines if not line.startswith("//"))


def grown(small: Any, next_one: Any) -> Any:
    """Return by how much each number of a plan grows with the row's length, or None where none does."""
    if isinstance(small, dict):
        parts: Any = {key: grown(small[key], next_one[key]) for key in small}
        return parts if any(part is not None for part in parts.values()) else None
    if isinstance(small, list):
        parts = [grown(one, other) for one, other in zip(small, next_one, strict=True)]
        return parts if any(part is not None for part in parts) else None
    return None if small == next_one else next_one - small


def at_length(small: Any, growth: Any, more: int) -> Any:
    """Return the plan of a row that is longer: as `atLength` of data.js."""
    if growth is None:
        return small
    if isinstance(small, dict):
        return {key: at_length(small[key], growth[key], more) for key in small}
    if isinstance(small, list):
        return [at_length(one, by, more) for one, by in zip(small, growth, strict=True)]
    return (small + growth * more) % 2**32


def rows_of(made: Callable[[int], dict[str, Any]], step: int, starts: range) -> list[dict[str, Any]]:
    """Return the plans of rows up to `ROW` elements, given a function that returns the plan for a length.

    Lengths are taken in steps, from each start. Each range of lengths has its first plan, and by how much the plan's
    numbers grow from one length to the next.
    """
    found = []
    for start in starts:
        lengths = range(start, ROW + 1, step)
        first = 0
        while first < len(lengths):
            plan = made(lengths[first])
            after = made(lengths[min(first + 1, len(lengths) - 1)])
            growth = grown(plan, after) if _same_passes(plan, after) else None
            low, high = first, len(lengths)  # the range ends in between
            while high - low > 1:
                middle = (low + high) // 2
                if made(lengths[middle]) == at_length(plan, growth, middle - first):
                    low = middle
                else:
                    high = middle
            for i in np.linspace(first, low, 16, dtype=int).tolist():
                assert made(lengths[i]) == at_length(plan, growth, i - first), lengths[i]
            found.append({"from": lengths[first], "to": lengths[low], "step": step, "plan": plan, "growth": growth})
            first = low + 1
    return found


def _same_passes(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return [each["shader"] for each in one["passes"]] == [each["shader"] for each in other["passes"]]


def playground(contents: Contents) -> dict[str, Any]:
    """Return the plans of the playground by "type/operator/.../shape/axis", a row's shape being "row"."""

    def scan(dtype: str, operator: str, shape: tuple[int, ...], axis: int, exclusive: bool, reverse: bool) -> Any:
        layout = Layout.packed(shape)
        problem = scan_problem(
            by_name(dtype), Operator(operator), layout, layout, axis, ScanOptions(exclusive, reverse)
        )
        return contents.plan(problem, dict.fromkeys(("input", "output"), 4 * int(np.prod(shape))))

    def rounding(mode: RoundingMode, shape: tuple[int, ...]) -> Any:
        layout = Layout.packed(shape)
        problem = round_problem(by_name("float32"), mode, layout, layout)
        return contents.plan(problem, dict.fromkeys(("input", "output"), 4 * int(np.prod(shape))))

    def scan_row(dtype: str, operator: str, options: tuple[bool, bool], length: int) -> Any:
        return scan(dtype, operator, (length,), 0, *options)

    def rounding_of_row(mode: RoundingMode, length: int) -> Any:
        return rounding(mode, (length,))

    plans: dict[str, Any] = {}
    for dtype in PLAYED:
        for operator in _OPERATORS:
            for exclusive, reverse in _ORDERS:
                order = f"{'exclusive' if exclusive else 'inclusive'}/{'decreasing' if reverse else 'increasing'}"
                key = f"{dtype}/{operator}/{order}"
                options = (exclusive, reverse)
                plans[f"{key}/row/0"] = rows_of(partial(scan_row, dtype, operator, options), STEP, range(1, STEP + 1))
                for shape in SHAPES:
                    for axis in range(len(shape)):
                        plan = scan(dtype, operator, shape, axis, *options)
                        plans[f"{key}/{'x'.join(map(str, shape))}/{axis}"] = plan
    for mode in RoundingMode:
        name = mode.name.lower()
        plans[f"float32/round/{name}/row"] = rows_of(
            partial(rounding_of_row, mode), ROUNDED_STEP, range(ROUNDED_STEP, ROUNDED_STEP + 1)
        )
        for shape in SHAPES:
            plans[f"float32/round/{name}/{'x'.join(map(str, shape))}"] = rounding(mode, shape)
    return {"longest": ROW, "types": PLAYED, "shapes": SHAPES, "plans": plans}


def speed(contents: Contents) -> list[dict[str, Any]]:
    """Return the plans whose speed is compared with that of a copy."""
    found = []
    for count in SPEED:
        layout = Layout.packed((count,))
        element, nbytes = by_name("float32"), dict.fromkeys(("input", "output"), 4 * count)
        problems: dict[str, ScanProblem | ElementwiseProblem] = {
            "cumulative sum": scan_problem(element, Operator.SUM, layout, layout, axis=0),
            "cumulative product": scan_problem(element, Operator.PRODUCT, layout, layout, axis=0),
            "round": round_problem(element, RoundingMode.HALF_EVEN, layout, layout),
        }
        plans = {name: contents.plan(problem, nbytes) for name, problem in problems.items()}
        found.append({"elements": count, "bytes": 4 * count, "plans": plans})
    return found


def data() -> dict[str, Any]:
    """Return all that the page's code works with."""
    contents = Contents()
    made = {
        "dmlgpu": dmlgpu.__version__,
        "cases": [contents.case(case) for case in dict.fromkeys(cases())],
        "speed": speed(contents),
        "playground": playground(contents),
    }
    inputs = [base64.b64encode(one).decode() for one in contents.inputs]
    return made | {"shaders": contents.shaders, "pieces": list(contents.pieces), "inputs": inputs}


def code() -> str:
    """Return the page's code as one module: a page from a file may not import another file."""
    lines = [line for path in CODE for line in path.read_text(encoding="utf-8").splitlines()]
    return "\n".join(line.removeprefix("export ") for line in lines if not line.startswith("import "))


def page(content: dict[str, Any]) -> str:
    """Return the page."""
    text = (SOURCES / "index.html").read_text(encoding="utf-8")
    parts = {
        "STYLE": (SOURCES / "style.css").read_text(encoding="utf-8"),
        "DATA": json.dumps(content, separators=(",", ":")).replace("</", "<\\/"),
        "CODE": code(),
    }
    for name, part in parts.items():
        assert text.count(f"/*{name}*/") == 1, name
        text = text.replace(f"/*{name}*/", part)
    return text


def main(arguments: list[str]) -> int:
    """Write the page into a folder."""
    if len(arguments) != 1:
        print("gpu_page.py: give the folder that the page goes into", file=sys.stderr)
        return 2
    content = data()
    text = page(content).encode()
    assert len(text) <= MOST_BYTES, f"the page has {len(text)} bytes, and may have {MOST_BYTES}"
    target = Path(arguments[0]) / "index.html"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text)
    print(f"wrote {target}: {len(content['cases'])} cases, {len(content['shaders'])} shaders, {len(text)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
