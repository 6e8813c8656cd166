"""Which pipelines a GPU can take, and how the answers of compilers are read and judged; no compiler runs here."""

from __future__ import annotations

import math
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

from dmlgpu import shaders
from dmlgpu.dtypes import BOOL, ELEMENT_TYPES
from dmlgpu.errors import ShaderError
from dmlgpu.layout import Layout, overlap
from dmlgpu.planning.dispatch import PipelineKey, Plan, writable_input
from dmlgpu.planning.pieces import plan_piece, plan_totals
from dmlgpu.planning.plan import any_placement, is_in_place, plan_problem
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
from dmlgpu.planning.tuning import Tuning
from dmlgpu.planning.windows import TILE, Limits

from .compilers import drivers, fxc, hlsl
from .compilers.__main__ import (
    FXC_PAGE,
    LOCAL_MEMORY,
    PAGE,
    chosen,
    for_fxc,
    judge,
    local_memory,
    write_local_memory,
)
from .compilers.answers import Answers, digest
from .compilers.drivers import AMD, NVIDIA, CompilerError, Driver, compile_pipelines, read_block
from .compilers.hlsl import resolve_overrides
from .compilers.page import page
from .compilers.pipelines import gpu_pipelines
from .compilers.rows import one_of_each, row_of
from .compilers.worker import BEGIN, END, FAILED, from_line, to_line, validate

DRAWS = 4000
KERNELS = {
    "elementwise",
    "elementwise_units",
    "scan_blocks",
    "scan_lookback",
    "scan_repair",
    "scan_rows",
    "scan_serial_totals",
    "scan_short",
    "scan_slices",
    "scan_strip_lookback",
    "scan_strip_totals",
    "scan_strips",
    "scan_tiles",
}
SIZES = [*range(1, 18), 20, 33, 100, 256, 257, 300, 4000, 4096, 4097, 5000, 8192, 9000, 16_384, 65_536, 70_000, 2**20]


def draw_strides(random: Random, sizes: list[int], itemsize: int) -> list[int]:
    """Return strides in any order of dimensions, with gaps of elements, up to vectors, or as far as bindings reach."""
    order = random.sample(range(len(sizes)), len(sizes)) if random.random() < 0.5 else list(range(len(sizes)))
    strides, stride = [0] * len(sizes), random.choice([1, 1, 1, 1, 2, 3])
    for i in reversed(order):
        strides[i] = stride
        stride *= sizes[i]
        gap = random.random()
        if gap < 0.2:
            stride += random.randint(1, 9)
        elif gap < 0.5:
            stride += -stride % (16 // itemsize * random.choice([1, 1, 2, 4, 16]))
        elif gap < 0.55:
            fit = random.choice([3, 9, 14, 40, 2000, 5000])
            stride = max(stride, random.choice([2**27, 2**31, 2**32]) // itemsize // fit)
    return strides


def draw_tensors(random: Random, itemsize: int) -> tuple[Layout, Layout, bool]:
    """Return an input, an output, and whether they are in one buffer."""
    while True:
        sizes = [random.choice(SIZES) for _ in range(random.choice([1, 1, 2, 2, 2, 3, 3, 4, 5]))]
        if math.prod(sizes) < 2**28:
            break
    steps = draw_strides(random, sizes, itemsize)
    others = steps if random.random() < 0.7 else draw_strides(random, sizes, itemsize)
    start = random.choice([0, 0, 0, 1, 4, 16, 64, 100])
    source, target = Layout(tuple(sizes), tuple(steps), start), Layout(tuple(sizes), tuple(others), start)
    one_buffer = random.random() < 0.6
    if one_buffer and (random.random() < 0.6 or others != steps):
        end = source.extent[1]
        gap = random.choice([0, 1, 2, 4, 8, -end % 16, -end % 64, -end % 256, -end % 256, 1000])
        target = replace(target, offset=end + gap)
    elif not one_buffer:
        target = replace(target, offset=random.choice([start, start, 0, 1, 4, 16]))
        if random.random() < 0.1:
            repeated = random.randrange(len(sizes))
            strides = tuple(0 if i == repeated else stride for i, stride in enumerate(steps))
            source = replace(source, strides=strides)
    return source, target, one_buffer


def draw_problem(random: Random) -> tuple[ScanProblem | ElementwiseProblem, bool]:
    element = random.choice(ELEMENT_TYPES)
    source, target, one_buffer = draw_tensors(random, element.itemsize)
    kind = random.random()
    if kind < 0.1:
        other = random.choice([*ELEMENT_TYPES, BOOL])
        return convert_problem(other, element, source, target), one_buffer
    if kind < 0.2 and element.kind == "float":
        return round_problem(element, RoundingMode.HALF_EVEN, source, target), one_buffer
    operator = random.choice([Operator.SUM, Operator.PRODUCT])
    can_be_compensated = element.name == "float32" and operator is Operator.SUM
    precision = Precision.COMPENSATED if can_be_compensated and random.random() < 0.4 else Precision.DEFAULT
    problem = scan_problem(
        element,
        operator,
        source,
        target,
        random.randrange(len(source.sizes)),
        ScanOptions(
            random.random() < 0.5, random.random() < 0.5, precision, operator is Operator.SUM and random.random() < 0.2
        ),
    )
    if one_buffer and not is_in_place(problem) and overlap(source, target):
        return problem, False
    return problem, one_buffer


def draw_tuning(random: Random) -> Tuning:
    """Return thresholds of which those differ that have pipelines of their own."""
    return Tuning(lookback_elements=random.choice([0, 2**32]))


def draw_plans(random: Random) -> Iterator[Plan]:
    problem, one_buffer = draw_problem(random)
    limits = Limits(
        binding_bytes=random.choice([2**27, 2**28, 2**30, 2**31 - 4, 2**32 - 4]),
        offset_alignment=random.choice([4, 16, 32, 64, 256]),
        workgroups=random.choice([65_535, 2**31 - 1]),
        float64=random.random() < 0.5,
        tuning=draw_tuning(random),
    )
    dims = (*(problem.batch if isinstance(problem, ScanProblem) else problem.dimensions),)
    dims += (problem.axis,) if isinstance(problem, ScanProblem) else ()
    reach = sum(max(abs(d.input_stride), abs(d.output_stride)) * d.size * 8 for d in dims)
    if reach > 300 * limits.binding_bytes:
        return  # thousands of windows
    plan = plan_problem(problem, limits, one_buffer=one_buffer)
    yield plan
    yield plan_problem(problem, limits, one_buffer=one_buffer, chunks=any_placement(problem, limits))
    if not one_buffer:
        yield writable_input(plan)


def draw_pieces(random: Random) -> Iterator[Plan]:
    """Plan a piece of longer slices, of sums and of maxima, and the records of its tiles."""
    problem, _ = draw_problem(random)
    is_native, tuning = random.random() < 0.5, draw_tuning(random)
    limits = Limits(binding_bytes=2**30, offset_alignment=256, float64=is_native, tuning=tuning)
    if isinstance(problem, ScanProblem):
        sizes = (random.choice([1, 1, 2, 5]), random.choice([1, 3]) * TILE, random.choice([1, 1, 3, 64, 300]))
        packed = Layout(sizes, (sizes[1] * sizes[2], sizes[2], 1))
        sums = scan_problem(
            problem.element,
            problem.operator,
            packed,
            packed,
            1,
            ScanOptions(reverse=random.random() < 0.5, precision=problem.precision),
        )
        for one_buffer in (False, True):
            yield plan_piece(sums, limits, one_buffer=one_buffer, before=None, unfinished=True).plan
        yield plan_piece(sums.maxima, limits, one_buffer=True, before=None, unfinished=True).plan
        yield plan_totals(sums, limits).plan


def test_the_pipelines_of_gpus_are_all_that_a_random_sample_of_problems_takes() -> None:
    known, taken = gpu_pipelines(), set[PipelineKey]()
    random = Random(1)
    for _ in range(DRAWS):
        for plan in (*draw_plans(random), *draw_pieces(random)):
            taken |= {one.pipeline for one in plan.passes}
    assert not taken - known, "a plan for a GPU takes pipelines that tests/compilers/pipelines.py does not find"
    assert {key.kernel for key in taken} == KERNELS
    assert len(taken) > 1200


def test_the_pipelines_of_gpus() -> None:
    keys = gpu_pipelines()
    assert {key.kernel for key in keys} == KERNELS
    pieces = {"int", "int64", "f16", "f32", "f32_compensated", "f64", "f64_words", "max", "max64"}
    others = {"elementwise", "elementwise_units", "scan_blocks"}
    others |= {"scan_strips", "scan_strip_lookback", "scan_strip_totals"}
    of_floats, of_maxima = {"scan_repair"}, {"max", "max64"}
    for kernel in KERNELS - others - of_floats:
        expected = pieces - of_maxima if kernel == "scan_serial_totals" else pieces
        assert {dict(key.slots)["element"] for key in keys if key.kernel == kernel} == expected
    lengths = {dict(key.constants)["slice_length"] for key in keys if key.kernel == "scan_short"}
    assert lengths == set(range(17))
    of_slices = [dict(key.slots) for key in keys if key.kernel == "scan_slices"]
    outputs = ("words", "packed", "quads")
    assert {(one["input"], one["output"]) for one in of_slices} == {
        *product(("separate", "shared", "in_output"), outputs)
    }


def test_a_sample_has_each_kernel_and_type() -> None:
    sample, every = chosen(sample=True), chosen()
    assert {row_of(key) for key in sample["navi31"]} == {row_of(key) for key in every["navi31"]}
    for one in (sample, every):
        for name in ("tu104", "Direct3D 12"):
            assert {key.kernel for key in one[name]} == KERNELS
            assert set(one[name]) <= set(every["navi31"])
        assert not any(("element", "f64") in key.slots for key in one["Direct3D 12"])
    assert not set(sample["tu104"]) & set(sample["Direct3D 12"])
    fewer = chosen(fewer=True)
    assert fewer["navi31"] == fewer["vega10"] == every["tu104"]
    assert {row_of(key) for key in fewer["navi21"]} == {row_of(key) for key in every["navi21"]}


def test_one_of_each_keeps_what_differs_in_more_than_bindings() -> None:
    keys = gpu_pipelines()
    some = one_of_each(keys, "flat")
    assert len(keys) / 7 < len(some) < len(keys) / 4
    by_phase = {dict(key.constants)["phase"] for key in some if key.kernel == "scan_slices"}
    assert by_phase == set(range(6))
    assert not any(dict(key.constants).get("flat") for key in some if key.kernel == "scan_rows")


def test_pipelines_survive_a_line_of_json() -> None:
    for key in chosen(sample=True)["navi31"]:
        assert from_line(to_line(key)) == key


@pytest.mark.parametrize(
    ("line", "constants", "expected"),
    [
        ("override a: bool = false;", {"a": 1}, "const a: bool = true;"),
        ("override a: u32 = 5u; // five", {"a": 7}, "const a: u32 = u32(7); // five"),
        ("override a: u32 = 5u;", {}, "const a: u32 = 5u;"),
        ("override a: u32;", {"a": 0}, "const a: u32 = u32(0);"),
        ("// override constants", {}, "// override constants"),
    ],
)
def test_override_constants_become_constants(line: str, constants: dict[str, int], expected: str) -> None:
    assert resolve_overrides(f"{line}\n", constants) == f"{expected}\n"


@pytest.mark.parametrize(
    ("line", "constants", "message"),
    [
        ("override a: u32;", {}, "a has no value"),
        ("override a: u32 = 5u;", {"b": 1}, "no override constant is named b"),
        ("@id(1) override a: u32 = 5u;", {}, "not understood"),
    ],
)
def test_override_constants_that_cannot_be_resolved(line: str, constants: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        resolve_overrides(f"{line}\n", constants)


def test_every_override_constant_of_the_shaders_is_understood() -> None:
    for key in chosen()["Direct3D 12"]:
        source = shaders.resolve(key.kernel, dict(key.slots)).source
        resolved = resolve_overrides(source, dict(key.constants))
        assert not re.search(r"^\s*override", resolved, re.MULTILINE)


SAID_BY_RADV = """\
Compute Shader:
*** SHADER STATS ***
SGPRs: 128
VGPRs: 48
Spilled SGPRs: 2
Spilled VGPRs: 0
Code size: 5060
LDS size: 3584
Scratch size: 0
Subgroups per SIMD: 32
Instructions: 1022
Pre-Sched VGPRs: 41
""".splitlines()
AMD_FIGURES = {
    "sgprs": 128,
    "vgprs": 48,
    "spilled_sgprs": 2,
    "spilled_vgprs": 0,
    "code": 5060,
    "lds": 3584,
    "scratch": 0,
    "waves": 32,
    "instructions": 1022,
}
NVIDIA_FIGURES = {"gprs": 67, "local": 0, "instructions": 2071}


def test_what_drivers_say() -> None:
    assert read_block([*SAID_BY_RADV, END], AMD[0]) == AMD_FIGURES
    said = ["Stage: compute", "Instruction count: 2071", "Num GPRs: 67", "SLM size: 0", END]
    assert read_block(said, NVIDIA) == NVIDIA_FIGURES
    with pytest.raises(CompilerError, match="does not tell Scratch size"):
        read_block([line for line in SAID_BY_RADV if "Scratch" not in line], AMD[0])
    with pytest.raises(CompilerError, match="spirv-val: error"):
        read_block([*SAID_BY_RADV, f"{FAILED} spirv-val: error"], AMD[0])


@pytest.fixture
def any_driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    """Return the device that the suite runs on in the place of a GPU's driver; it says nothing of pipelines."""

    @contextmanager
    def command(driver: Driver, spirv_val: bool) -> Iterator[tuple[list[str], None]]:
        yield [sys.executable], None

    monkeypatch.setattr(drivers, "_command", command)
    return Driver("any", "", {})


COPY = PipelineKey("scan_carries", (("element", "f32"),), (("opaque", 1), ("product", 0)))


def test_pipelines_are_compiled_in_a_process_of_their_own(any_driver: Driver) -> None:
    assert list(compile_pipelines(any_driver, [COPY, COPY])) == [{}, {}]


def test_a_pipeline_that_does_not_compile_is_named(any_driver: Driver) -> None:
    broken = replace(COPY, constants=(("nonesuch", 1),))
    compiled = compile_pipelines(any_driver, [COPY, broken, COPY])
    assert next(compiled) == {}
    with pytest.raises(CompilerError, match="nonesuch"):
        next(compiled)


def test_a_driver_that_ends_the_process_is_noticed(any_driver: Driver) -> None:
    with pytest.raises(CompilerError, match=r"the process ended with status 1 at .*scan_carries"):
        list(compile_pipelines(replace(any_driver, adapter="nonesuch"), [COPY]))
    lines = [BEGIN, "VGPRs: 1", END, BEGIN, "Assertion failed"]
    first, second = drivers._blocks(f"{line}\n" for line in lines)
    assert first == ["VGPRs: 1", END]
    with pytest.raises(CompilerError, match=r"Assertion failed\n.*ended the process"):
        read_block(second, any_driver)


@pytest.mark.skipif(sys.platform == "win32", reason="the program that stands in for spirv-val is a shell script")
@pytest.mark.parametrize("status", [0, 1])
def test_modules_are_given_to_spirv_val(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    program, modules = tmp_path / "bin" / "spirv-val", tmp_path / "modules"
    program.parent.mkdir()
    modules.mkdir()
    program.write_text(f'#!/bin/sh\necho "error in $3 for $2"\nexit {status}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(ShaderError, match="no module"):
        validate(modules)
    (modules / "one.spirv").write_bytes(b"a module")
    if status:
        with pytest.raises(ShaderError, match=r"error in .*one\.spirv for vulkan1\.3"):
            validate(modules)
    else:
        validate(modules)
        assert not list(modules.iterdir())


def test_answers_are_kept_until_the_source_the_constants_or_the_compiler_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "answers.json"
    name = digest("a compiler", COPY)
    Answers(path).add([(name, {"vgprs": 1}), ("other", 2)])
    answers = Answers(path)
    assert answers[name] == {"vgprs": 1}
    answers.forget_unused()
    assert "other" not in Answers(path)
    assert name in Answers(path)
    others = (
        digest("another compiler", COPY),
        digest("a compiler", replace(COPY, constants=(("opaque", 1), ("product", 1)))),
        digest("a compiler", replace(COPY, slots=(("element", "f16"),))),
    )
    resolve = shaders.resolve
    monkeypatch.setattr(shaders, "resolve", lambda *a: replace(resolve(*a), source=resolve(*a).source + "\n// End."))
    assert digest("a compiler", COPY) == name
    monkeypatch.setattr(
        shaders, "resolve", lambda *a: replace(resolve(*a), source=resolve(*a).source + "const X = 1u;")
    )
    assert len({name, *others, digest("a compiler", COPY)}) == 5


def key_of(kernel: str, element: str) -> PipelineKey:
    return next(key for key in gpu_pipelines() if row_of(key) == (kernel, element))


@pytest.mark.parametrize("name", ["scratch", "spilled_vgprs"])
def test_scratch_memory_and_spilled_vector_registers_are_refused(name: str) -> None:
    results = {driver.gpu: {COPY: AMD_FIGURES} for driver in AMD} | {NVIDIA.gpu: {COPY: NVIDIA_FIGURES}}
    assert judge(results, {}, complete=True) == []
    results["vega10"] = {COPY: AMD_FIGURES | {name: 4}}
    (problem,) = judge(results, {}, complete=False)
    assert problem.startswith(f"vega10: 4 {name.replace('_', ' ')}: ")
    assert "scan_carries" in problem


def test_local_memory_is_refused_unless_it_is_listed() -> None:
    rows = key_of("scan_rows", "float64 on words")
    results = {NVIDIA.gpu: {rows: NVIDIA_FIGURES | {"local": 384}, COPY: NVIDIA_FIGURES}}
    assert local_memory(results[NVIDIA.gpu]) == {"scan_rows": {"float64 on words": 384}}
    listed = {"scan_rows": {"float64 on words": 384}}
    assert judge(results, listed, complete=True) == []
    for size, refused in ((0, True), (383, True), (385, False)):
        problems = judge(results, {"scan_rows": {"float64 on words": size}}, complete=False)
        assert bool(problems) == refused
    for too_much in ({"scan_rows": {"float64 on words": 385}}, listed | {"scan_tiles": {"int8": 4}}):
        assert ["lists more than there is" in problem for problem in judge(results, too_much, complete=True)] == [True]


def test_the_list_of_local_memory_can_be_written_and_read() -> None:
    found = {"scan_rows": {"float32, compensated": 8, "int64": 16}, "scan_tiles": {"int8": 4}}
    assert tomllib.loads(write_local_memory(found)) == found
    listed = LOCAL_MEMORY.read_text(encoding="utf-8")
    assert write_local_memory(tomllib.loads(listed)) == listed
    rows = {row_of(key) for key in gpu_pipelines()}
    assert {(kernel, name) for kernel, types in tomllib.loads(listed).items() for name in types} <= rows


def test_the_page_has_the_worst_of_each_kernel_and_type() -> None:
    some = [key for key in gpu_pipelines() if row_of(key) == ("scan_rows", "float32")]
    results = {}
    for driver in (*AMD, NVIDIA):
        figures = AMD_FIGURES if driver in AMD else NVIDIA_FIGURES
        results[driver.gpu] = dict.fromkeys(some, figures)
        for key in some:
            if dict(key.constants)["product"] and dict(key.constants)["flat"]:
                worse = {"vgprs": 52, "waves": 20} if driver in AMD else {"gprs": 65, "local": 8}
                results[driver.gpu][key] = figures | worse
    results["navi21"][some[0]] = AMD_FIGURES | {"spilled_sgprs": 7, "vgprs": 47}
    text = page(results, 999, 3, {driver.gpu: "Mesa" for driver in (*AMD, NVIDIA)})
    n = len(some)
    vgprs, waves = " | ".join(["48 / 52"] * 3), " | ".join(["32 / 20"] * 3)
    spilled = "2 / 7" if dict(some[0].constants)["product"] else "7 / 2"
    assert f"| scan_rows | float32 | {n} | {vgprs} | {waves} | 128 | {spilled} | 3584 | 1022 | 5060 |\n" in text
    assert f"{n}: one of those that are alike" in text
    assert f"| all {n}, for navi31" in page(results, n, 3, {driver.gpu: "Mesa" for driver in (*AMD, NVIDIA)})
    assert f"| scan_rows | float32 | {n} | 67 | 28 | 2071 | 0 / 8 |\n" in text


def test_the_page_is_of_the_kernels_and_types_that_there_are() -> None:
    text = PAGE.read_text(encoding="utf-8")
    amd, nvidia = text.partition("\n## NVIDIA\n")[::2]
    rows = {row_of(key) for key in gpu_pipelines()}
    for table in (amd.partition("\n## AMD\n")[2], nvidia):
        cells = [line.split(" | ") for line in table.splitlines() if re.match(r"\| (scan_|elementwise)", line)]
        assert {(row[0].removeprefix("| "), row[1]) for row in cells} == rows, "run make gpu-compilers"


class TestFxc:
    def test_it_is_asked_about_each_kernel_and_type_that_direct3d_has(self) -> None:
        rows = [row_of(key) for key in for_fxc()]
        assert len(rows) == len(set(rows))
        assert set(rows) == {row_of(key) for key in gpu_pipelines() if ("element", "f64") not in key.slots}

    def test_the_page_is_of_these(self) -> None:
        lines = FXC_PAGE.read_text(encoding="utf-8").splitlines()
        cells = [line.split(" | ") for line in lines if re.match(r"\| (scan_|elementwise)", line)]
        assert [(row[0].removeprefix("| "), row[1]) for row in cells] == sorted(map(row_of, for_fxc())), (
            "run make gpu-compilers GPU_COMPILERS_ARGS=--fxc"
        )

    def test_a_row_of_the_page(self) -> None:
        key = for_fxc()[0]
        kernel, kind = row_of(key)
        text = fxc.page({key: {"milliseconds": 1249, "bytes": 1000}}, {key: {"milliseconds": 150, "bytes": 900}})
        assert text.endswith(f"|---|---|--:|--:|--:|\n| {kernel} | {kind} | 1.2 | 0.1 | 1000 |\n")

    def test_zeros_can_be_left_out(self) -> None:
        zeros = "    if (all(__local_invocation_id == uint3(0u, 0u, 0u))) {\n        a = (uint[2][256])0;\n"
        zeros += "        b = (Carry)0;\n    }\n    GroupMemoryBarrierWithGroupSync();\n"
        main = "void main()\n{\n"
        assert fxc.without_zeros(f"{main}{zeros}    a[0] = 1u;\n}}\n") == f"{main}    a[0] = 1u;\n}}\n"
        assert fxc.without_zeros(main) == main
        with pytest.raises(CompilerError, match="are not found"):
            fxc.without_zeros(f"groupshared uint a;\n{main}")

    def test_what_a_process_says(self, monkeypatch: pytest.MonkeyPatch) -> None:
        keys = for_fxc()[:2]
        lines = ['{"milliseconds": 1, "bytes": 2, "other": 3}', '{"error": "no"}']
        monkeypatch.setattr(
            hlsl.subprocess, "run", lambda *_, **__: SimpleNamespace(stdout="\n".join(lines), returncode=3)
        )
        answers = fxc.compile_with_fxc(keys)
        assert next(answers) == {"milliseconds": 1, "bytes": 2}
        with pytest.raises(CompilerError, match=r"^FXC: .*: no$"):
            next(answers)
        del lines[1]
        with pytest.raises(CompilerError, match=r"^FXC: the process ended with status 3 at PipelineKey"):
            list(fxc.compile_with_fxc(keys))


def array_types(source: str) -> dict[str, set[str]]:
    """Return the names that a shader makes arrays of a type by, for each type in words of its own."""
    aliases = dict(re.findall(r"^alias (\w+) = ([^;]+);", source, re.MULTILINE))

    def plain(text: str) -> str:
        return re.sub(r"\w+", lambda word: plain(aliases[word[0]]) if word[0] in aliases else word[0], text)

    found: dict[str, set[str]] = {}
    for name, text in aliases.items():
        if text.startswith("array<") and re.search(rf"\b{name}\(", re.sub(r"//.*", "", source)):
            found.setdefault(plain(text), set()).add(name)
    return found


def test_arrays_of_a_type_are_made_by_one_name() -> None:
    """naga writes a function for each name, which Direct3D's compilers take for the same one twice."""
    seen = set()
    for kernel, slots in sorted({(key.kernel, key.slots) for key in gpu_pipelines()}):
        for text, names in array_types(shaders.resolve(kernel, dict(slots)).source).items():
            assert len(names) == 1, (kernel, slots, text, names)
            seen.add(text)
    assert {"array<f64, 16>", "array<vec2<u32>, 16>"} <= seen


def test_arrays_that_are_made_by_two_names_are_found() -> None:
    source = "alias Word = u32;\nalias A = array<Word, 4>;\nalias B = array<u32, 4>;\nfn f() { _ = A(1u); _ = B(); }"
    assert array_types(source) == {"array<u32, 4>": {"A", "B"}}
    assert array_types(source.replace("B()", "0u // B()")) == {"array<u32, 4>": {"A"}}
