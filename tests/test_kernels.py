"""The table of kernels: it agrees with the shaders, every plan keeps to it, and what does not is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from dmlgpu import shaders
from dmlgpu.bench.workloads import COPIES, plan_copy
from dmlgpu.conformance import suite
from dmlgpu.dtypes import by_name
from dmlgpu.errors import ShaderError
from dmlgpu.layout import Layout
from dmlgpu.planning.dispatch import Pass, writable_input
from dmlgpu.planning.export import exported_plan
from dmlgpu.planning.kernels import TABLE, check_pass
from dmlgpu.planning.params import PARAMS, uniforms
from dmlgpu.planning.plan import KERNELS, any_placement, plan_problem
from dmlgpu.planning.policy import GpuPolicy, SoftwarePolicy, policy_of
from dmlgpu.planning.problem import Operator, scan_problem
from dmlgpu.planning.windows import Limits

from .harness import changed

LIMITS = {
    "gpu": Limits(float64=True),
    "lavapipe": changed(Limits(), software=True, columns=True, lags=True, float64=True, near_elements=0, cores=1),
    "opengl": changed(Limits(), software=True, cores=8),
    "windows": Limits(binding_bytes=2**14, offset_alignment=32, opaque=False),
}


def texts(kernel: str, slots: dict[str, str]) -> str:
    return shaders.resolve(kernel, slots).source


def plan(kernel: str | None = None, limits: Limits = LIMITS["gpu"]) -> tuple[Pass, ...]:
    layout = Layout.packed((70, 9008))
    problem = scan_problem(by_name("float32"), Operator.SUM, layout, layout, axis=1)
    return plan_problem(problem, limits, kernel=kernel).passes


def changed(one: Pass, slots: dict[str, str] | None = None, constants: dict[str, int] | None = None) -> Pass:
    """Return a pass with other slots or constants."""
    found, values = dict(one.pipeline.slots) | (slots or {}), dict(one.pipeline.constants) | (constants or {})
    pipeline = replace(one.pipeline, slots=tuple(found.items()), constants=tuple(values.items()))
    return replace(one, pipeline=pipeline)


_OF_GPUS = {"scan_rows", "scan_lookback", "scan_tiles", "scan_strips", "scan_strip_lookback", "scan_blocks"}
_OF_SOFTWARE = {
    "scan_serial_totals",
    "scan_serial_tiles",
    "scan_bands",
    "scan_bands_exact",
}
ONLY_BY = {GpuPolicy: _OF_SOFTWARE, SoftwarePolicy: _OF_GPUS}
"""Kernels that are never in a plan of a policy's choice."""


def test_there_is_a_row_for_every_kernel() -> None:
    assert sorted(TABLE) == shaders.kernel_names()


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
def test_every_plan_of_the_conformance_cases_keeps_to_the_table(limits: Limits) -> None:
    """And the table to the shaders: each slot of a row is asked for, and each constant that a plan sets is declared."""
    pipelines, passes = {}, 0
    for case in suite():
        problem, one_buffer = case.problem(), case.placement.relation != "to"
        plans = [plan_problem(problem, limits, one_buffer=one_buffer, kernel=case.kernel)]
        if limits is LIMITS["gpu"] and not one_buffer:
            plans.append(plan_problem(problem, limits, chunks=any_placement(problem, limits)))
            plans.append(writable_input(plans[0]))
        for one in (one for found in plans for one in found.passes):
            check_pass(one)
            key = one.pipeline
            pipelines[key.kernel, key.slots, tuple(name for name, _ in key.constants)] = key
            passes += 1
    assert passes > 5000
    assert {kernel for kernel, *_ in pipelines} >= {
        "scan_slices",
        "scan_rows",
        "scan_tiles",
        "scan_repair",
        "elementwise",
    }
    for key in pipelines.values():
        slots = dict(key.slots)
        declared = set(re.findall(r"\boverride (\w+)", texts(key.kernel, slots)))
        assert {name for name, _ in key.constants} <= declared, key
        for slot in slots.keys() - ({"element"} if key.kernel == "scan_bands_exact" else set()):
            # Without it the shader cannot be put together.
            with pytest.raises(ShaderError, match=f"nothing fills the slot <{slot}>"):
                texts(key.kernel, {name: piece for name, piece in slots.items() if name != slot})


@pytest.mark.parametrize("name", ["gpu", "lavapipe", "opengl"])
def test_no_way_is_taken_but_those_that_the_policy_names(name: str) -> None:
    """`dmlgpu verify` leaves out the others: neither their kernels nor those behind them are in a plan."""
    limits = LIMITS[name]
    policy, taken = policy_of(limits), set[str]()
    read_twice = policy_of(replace(limits, tuning=replace(limits.tuning, lookback_elements=2**20)))
    for length, slices in product((1, 16, 17, 256, 257, 4096, 4097, 20_000, 2**20, 2**24), (1, 2, 64, 600, 5000)):
        for shape, axis in (((slices, length), 1), ((length, slices), 0)):
            for element, one_buffer in product(("uint8", "float16", "float32", "int64", "float64"), (False, True)):
                if slices * length <= 2**26:
                    layout = Layout.packed(shape)
                    problem = scan_problem(by_name(element), Operator.SUM, layout, layout, axis)
                    taken |= {each.kernel(problem, one_buffer).kernel for each in (policy, read_twice)}
                    taken |= set(policy.kernels_of_pieces(problem, one_buffer)) - {"bands"}
                    passes = plan_problem(problem, limits, one_buffer=one_buffer).passes
                    kernels = {one.pipeline.kernel for one in passes}
                    assert not kernels & ONLY_BY[type(policy)]
    assert taken == set(policy.kernels)


@pytest.mark.parametrize("element", ["uint8", "float16", "float32", "int64"])
def test_plans_keep_to_the_table_however_they_are_cut(element: str) -> None:
    """Also where a window is a single column or row wide, and so has a dimension less."""
    random, passes = np.random.default_rng(4), 0
    for _ in range(400):
        sizes = ([1, 2, 3], [17, 130], [1, 3, 65, 513, 1025, 2049])
        shape = tuple(int(random.choice(some)) for some in sizes)
        axis, one_buffer = int(random.choice([0, 1, 1, 1, 2])), bool(random.integers(2))
        most = max(2**12, int(random.uniform(0.2, 1.1) * np.prod(shape)))
        limits = replace(LIMITS["gpu" if random.integers(2) else "lavapipe"], dispatch_elements=most)
        layout = Layout.packed(shape)
        problem = scan_problem(by_name(element), Operator.SUM, layout, layout, axis)
        kernel = None if random.integers(2) else str(random.choice(KERNELS))
        for one in plan_problem(problem, limits, one_buffer=one_buffer, kernel=kernel).passes:
            check_pass(one)
            passes += 1
    assert passes > 800


def test_the_copies_keep_to_the_table() -> None:
    for copy in COPIES:
        for one in plan_copy(copy, 2**20, Limits(workgroups=300)).passes:
            check_pass(one)


@pytest.mark.parametrize(
    ("kernel", "slots", "constants", "message"),
    [
        ("rows", {"tile": "words"}, {}, "scan_rows with words in <tile>"),
        ("rows", {"vector": "words"}, {}, "scan_rows with slots .* instead of"),
        ("rows", {"run_access": "strided"}, {}, "pieces that do not belong together"),
        ("rows", {"run_access": "strided"}, {}, "a staged tile of runs that are strided"),
        ("rows", {"tile": "strided"}, {}, "a strided tile of runs that are quads"),
        ("rows", {"output": "packed"}, {}, "pieces that do not belong together"),
        ("rows", {"output": "words"}, {}, "pieces that do not belong together"),
        ("rows", {"input": "words"}, {}, "pieces that do not belong together"),
        ("rows", {"element": "f64"}, {}, r"elements of 2\^5 bits as f64"),
        ("rows", {"element": "f65"}, {}, r"elements of 2\^5 bits as f65"),
        ("rows", {"run": "loops"}, {}, "a run of f32 that is loops"),
        ("rows", {}, {"product": 2}, "product = 2"),
        ("rows", {}, {"lanes": 64}, "lanes = 64"),
        ("slices", {}, {"phase": 6}, "phase = 6"),
        ("slices", {}, {"lanes": 8}, "grid"),
        ("slices", {}, {"in_windows": 1}, "4 bytes of scratch memory instead of 2240"),
        ("slices", {"element": "f32_compensated"}, {}, "opaque = 1"),
        ("lookback", {}, {"opaque": 7}, "opaque = 7"),
    ],
)
def test_what_no_shader_is_for_is_refused(
    kernel: str, slots: dict[str, str], constants: dict[str, int], message: str
) -> None:
    one = plan(kernel)[-1]
    check_pass(one)
    with pytest.raises(ValueError, match=message):
        check_pass(changed(one, slots, constants))


def test_a_constant_that_is_left_out_is_refused() -> None:
    one = plan("rows")[0]
    for name, _ in one.pipeline.constants:
        constants = tuple(each for each in one.pipeline.constants if each[0] != name)
        with pytest.raises(ValueError, match=f"no constant {name}"):
            check_pass(replace(one, pipeline=replace(one.pipeline, constants=constants)))


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_grid_and_scratch_memory_that_do_not_fit_the_work_are_refused(kernel: str) -> None:
    """As if the planner had written another field than the grid and the scratch memory were made for."""
    for one in plan(kernel):
        fields = {name: one.params[name].tolist() for name in PARAMS.names or ()}
        for change in ({"count": 40_000}, {"grid_width": one.grid[0] + 1}):
            other = replace(one, uniforms=uniforms(**(fields | change)))
            with pytest.raises(ValueError, match="grid"):
                check_pass(other)
        with pytest.raises(ValueError, match="scratch memory"):
            check_pass(replace(one, state_bytes=one.state_bytes + 4))
        with pytest.raises(ValueError, match="grid"):
            check_pass(replace(one, grid=(one.grid[0], one.grid[1] + 1, 1)))


def test_an_export_holds_plans_to_the_table() -> None:
    layout = Layout.packed((5, 9008))
    good = plan_problem(scan_problem(by_name("float32"), Operator.SUM, layout, layout, axis=1), Limits())
    exported_plan(good, {"input": 4 * 5 * 9008, "output": 4 * 5 * 9008})
    bad = replace(good, passes=(changed(good.passes[0], constants={"product": 2}),))
    with pytest.raises(ValueError, match="product = 2"):
        exported_plan(bad, {"input": 4 * 5 * 9008, "output": 4 * 5 * 9008})
