"""The loader of WGSL files, and every shader through the compiler."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from itertools import product
from pathlib import Path

import pytest
import wgpudawn

from dmlgpu import shaders
from dmlgpu.bench.workloads import COPIES, plan_copy
from dmlgpu.dtypes import BOOL, ELEMENT_TYPES, ElementType, by_name
from dmlgpu.errors import ShaderError
from dmlgpu.layout import Layout
from dmlgpu.planning.dispatch import PipelineKey, Plan
from dmlgpu.planning.kernels import TABLE
from dmlgpu.planning.params import PARAMS
from dmlgpu.planning.plan import KERNELS, plan_problem
from dmlgpu.planning.problem import (
    Operator,
    Precision,
    RoundingMode,
    ScanOptions,
    convert_problem,
    round_problem,
    scan_problem,
)
from dmlgpu.planning.windows import Limits
from dmlgpu.runtime.device import Device

from .compilers import worker
from .compilers.pipelines import gpu_pipelines
from .compilers.rows import one_of_each
from .harness import changed

FLOAT32 = by_name("float32")
SLOTS = {
    "cells": "words",
    "function": "round",
    "slices": "windows",
    "fours": "quads",
    "input": "separate",
    "output": "words",
    "element": "f32",
    "run_access": "strided",
    "tile": "runs",
    "run": "written",
    "stage": "words",
    "units": "vectors",
    "vector": "words",
}


def test_the_kernels() -> None:
    assert shaders.kernel_names() == [
        "elementwise",
        "elementwise_units",
        "scan_bands",
        "scan_bands_exact",
        "scan_blocks",
        "scan_carries",
        "scan_lookback",
        "scan_repair",
        "scan_rows",
        "scan_serial_tiles",
        "scan_serial_totals",
        "scan_short",
        "scan_slices",
        "scan_strip_lookback",
        "scan_strip_totals",
        "scan_strips",
        "scan_tiles",
    ]


def test_imports_are_resolved_once_in_order() -> None:
    source = shaders.resolve("scan_tiles", SLOTS).source
    assert "#import" not in source
    assert source.count("struct Params") == 1
    assert source.count("fn combine(") == 1
    assert source.index("alias Accumulator") < source.index("fn main(")


def test_lines_lead_back_to_files() -> None:
    shader = shaders.resolve("scan_slices", SLOTS)
    text = shader.source.splitlines()
    assert len(text) == len(shader.lines)
    number = next(i for i, line in enumerate(text, 1) if "fn combine(" in line)
    where = shader.lines[number - 1]
    assert where.file == "lib/arithmetic/accumulate_f32.wgsl"
    assert "fn combine(" in (shaders.folder() / where.file).read_text().splitlines()[where.number - 1]
    assert shader.locate(f"error at wgsl:{number}:4") == f"error at {where.file}:{where.number}:4"
    assert shader.locate("wgsl:999999:1") == "wgsl:999999:1"


def test_a_slot_that_nothing_fills() -> None:
    with pytest.raises(ShaderError, match=r"lib/memory/elements\.wgsl:\d+: nothing fills the slot <element>"):
        shaders.resolve("scan_tiles", {"input": "separate", "output": "words"})


def test_a_file_that_is_missing() -> None:
    with pytest.raises(ShaderError, match=r"cannot read the shader file .*nonesuch\.wgsl.*reinstall"):
        shaders.resolve("nonesuch", SLOTS)


@pytest.mark.parametrize("path", sorted(shaders.folder().rglob("*.wgsl")), ids=lambda path: path.stem)
def test_house_rules(path: Path) -> None:
    text = path.read_text()
    lines = text.splitlines()
    assert lines[0].startswith("// "), "a header says what the file is for"
    assert len(lines) <= 150
    assert max(map(len, lines)) <= 120
    if path.parent == shaders.folder():
        for promise in ("// Grid:", "// Bindings:", "// Constants:", "// Bytes moved:"):
            assert promise in text
        # Those that are computed follow from others.
        given = r"\boverride (\w+): \w+(?: = (?:\d\w*|true|false))?;"
        named = set(re.findall(given, shaders.resolve(path.stem, SLOTS).source))
        everywhere = {"product", "opaque", "flat", "input_log2_bits"}
        assert all(name in text for name in named - everywhere), "the header names every constant"


def mixtures(code: str) -> list[str]:
    """Return the expressions in which a bitwise operator and a comparison meet without parentheses between them."""
    found, begin, kinds = [], [0], [set[str]()]
    for token in re.finditer(r"[()\[\]{},;]|&&|\|\|| = | [|&^] | (?:[<>]=?|[=!]=) ", code):
        text = token.group().strip()
        if text in "([{":
            begin.append(token.end())
            kinds.append(set())
        elif text in ")]}":
            begin.pop()
            kinds.pop()
        elif text in ("|", "&", "^", "<", ">", "<=", ">=", "==", "!="):
            kinds[-1].add("bits" if text in "|&^" else "comparison")
            if len(kinds[-1]) == 2:
                found.append(" ".join(code[begin[-1] : token.end()].split()))
        else:
            begin[-1], kinds[-1] = token.end(), set()
    return found


def test_comparisons_beside_bitwise_operators_have_parentheses() -> None:
    """Tint wants them, and naga does not."""
    assert mixtures("return A | b >= C;") == ["return A | b >="]
    assert mixtures("if (a & 1u == 0u || b) {") == ["a & 1u =="]
    assert not mixtures("let x = (a & 1u) == 0u; let y = p | (q < 2u); f(a | b, c < d); a || b < c")
    for path in sorted(shaders.folder().rglob("*.wgsl")):
        code = re.sub(r"//.*", "", path.read_text())
        assert not mixtures(code), path.name


@pytest.mark.parametrize("path", sorted(shaders.folder().rglob("*.wgsl")), ids=lambda path: path.stem)
def test_what_workgroups_wait_for_is_read_and_written_by_read_modify_writes(path: Path) -> None:
    """naga may make plain accesses of atomicLoad and atomicStore; workgroup memory has barriers.

    Nobody waits for an output: each element's bits belong to one invocation.
    """
    text = path.read_text()
    plain = set(re.findall(r"\batomic(?:Load|Store)\(\s*&\s*(\w+)", text))
    assert len(re.findall(r"\batomic(?:Load|Store)\b", re.sub("//.*", "", text))) == len(
        re.findall(r"\batomic(?:Load|Store)\(\s*&\s*\w+", text)
    ), "the variable is named where it is accessed, not passed as a pointer"
    assert plain <= {*re.findall(r"\bvar<workgroup> (\w+)", text), "output_units"}


@pytest.mark.parametrize("path", sorted(shaders.folder().rglob("*.wgsl")), ids=lambda path: path.stem)
def test_no_shader_uses_what_naga_translates_wrongly(path: Path) -> None:
    """firstLeadingBit of a word of ones is -1 on Metal: https://github.com/gfx-rs/wgpu/issues/9283."""
    assert "firstLeadingBit" not in re.sub("//.*", "", path.read_text())


@pytest.mark.parametrize("path", sorted(shaders.folder().rglob("*.wgsl")), ids=lambda path: path.stem)
def test_floats_are_nowhere_but_in_operations(path: Path) -> None:
    """Metal's fast math drops choices between floats of which one is NaN, and may flush floats that are only copied.

    So values are held as bits, and a constant that is NaN or infinite as a float is hidden. Metal has no float64.
    """
    text = re.sub("//.*", "", path.read_text())
    if path.stem == "f64":
        return
    floats = re.findall(r".{0,12}\bf(?:32|16)\b.{0,5}", text)
    assert all(re.search(r"bitcast<f32>\(|= bitcast<u32>\(f32\(i32|\(f32\(i32", one) for one in floats), floats
    hidden = {"exceptional": ["not_a_number"], "classes": ["of_class"]}
    for name in hidden.get(path.stem, ()):
        body = text[text.index(f"fn {name}(") :].partition("\n}")[0]
        assert "^ params.zero" in body, "the constant is hidden"


def test_the_uniforms_are_the_struct_of_the_shaders() -> None:
    """Field by field: the same names in the same order, each at the offset that WGSL gives it."""
    text = (shaders.folder() / "lib" / "params.wgsl").read_text()
    body = re.search(r"struct Params \{(.*?)\n\}", text, re.S)
    assert body
    declared, offset = [], 0
    for name, kind in re.findall(r"^    (\w+): (u32|array<vec4<u32>, 2>),", body[1], re.M):
        align, size = {"u32": (4, 4), "array<vec4<u32>, 2>": (16, 32)}[kind]
        offset = -(-offset // align) * align
        declared.append((name, offset, size))
        offset += size
    assert PARAMS.fields is not None
    assert declared == [(name, at, kind.itemsize) for name, (kind, at, *_) in PARAMS.fields.items()]
    assert PARAMS.itemsize == -(-offset // 16) * 16


OPERATORS = (Operator.SUM, Operator.PRODUCT)


def pipelines_of_maxima() -> set[PipelineKey]:
    """Return the pipelines of the second part of monotone sums, which is always in place."""
    plans: list[Plan] = []
    # Types differ in constants only, which choose among lines of two pieces: floats, signed and unsigned integers.
    elements = [by_name(name) for name in ("float16", "float32", "float64", "int8", "uint64")]
    shapes = (((5, 9008), 1), ((5, 9001), 1), ((5, 16), 1), ((16, 90), 1), ((300, 1024), 0), ((21_856, 3), 1))
    for (sizes, axis), element in product(shapes, elements):
        layout = Layout.packed(sizes)
        problem = scan_problem(element, Operator.SUM, layout, layout, axis, ScanOptions(monotone=True))
        plans.append(plan_problem(problem, Limits(software=True, float64=True)))
        plans += [plan_problem(problem, Limits(float64=True), kernel=kernel) for kernel in (None, *KERNELS)]
    far = Layout((20, 2), (1000, 1))
    for size, element in product((16_384, 80_000), elements):
        problem = scan_problem(element, Operator.SUM, far, far, 0, ScanOptions(monotone=True))
        plans.append(plan_problem(problem, Limits(binding_bytes=size)))
    every = {one.pipeline for plan in plans for one in plan.passes}
    return {key for key in every if dict(key.slots)["element"].startswith("max")}


def _elements(one_buffer: bool) -> list[ElementType]:
    """Return all types for two buffers; for one, a type of each way to store, since types differ in nothing else."""
    return [one for one in ELEMENT_TYPES if not one_buffer or one.name in ("float32", "float16", "int64")]


@cache
def every_pipeline() -> set[PipelineKey]:
    """Return every pipeline that a plan can ask for, but for the few constants that no kernel mixes with others."""
    plans = [plan_copy(copy, 2**20, Limits()) for copy in COPIES]
    variants = [
        Limits(opaque=False),
        Limits(float64=True),
        Limits(software=True),
        Limits(software=True, float64=True),
    ]
    for sizes in ((5, 9008), (5, 9001), (5, 16), (5, 3)):
        layout, apart = Layout.packed(sizes), Layout.packed(sizes, 50_000)
        targets = ((layout, False), (layout, True), (apart, True)) if sizes[1] > 9001 else ((layout, False),)
        for target, one_buffer in targets:
            for element, operator in product(_elements(one_buffer), OPERATORS):
                problem = scan_problem(element, operator, layout, target, axis=1)
                for limits, kernel in product(variants, KERNELS):
                    plans.append(plan_problem(problem, limits, one_buffer=one_buffer, kernel=kernel))
        compensated = scan_problem(
            FLOAT32, Operator.SUM, layout, layout, 1, ScanOptions(precision=Precision.COMPENSATED)
        )
        plans += [plan_problem(compensated, Limits(software=True), kernel=kernel) for kernel in KERNELS]
    layout, apart = Layout.packed((300, 1024)), Layout.packed((300, 1024), 400_000)
    for target, one_buffer in ((layout, False), (layout, True), (apart, True)):
        elements = [one for one in ELEMENT_TYPES if one.itemsize < 4 or one in _elements(one_buffer)]
        for element, operator in product(elements, OPERATORS):
            problem = scan_problem(element, operator, layout, target, axis=0)
            software = [changed(Limits(), software=True, float64=True, near_elements=near) for near in (0, 2**20)]
            for limits in (Limits(float64=True), *software):
                plans.append(plan_problem(problem, limits, one_buffer=one_buffer))
    for sizes in ((16, 3), (16, 90)):
        layout, apart = Layout.packed(sizes), Layout.packed(sizes, 4096)
        for target, one_buffer in ((layout, False), (layout, True), (apart, True)):
            for element, operator in product(_elements(one_buffer), OPERATORS):
                problem = scan_problem(element, operator, layout, target, axis=1)
                plans.append(plan_problem(problem, Limits(float64=True), one_buffer=one_buffer))
    layout, apart = Layout.packed((21_856, 3)), Layout.packed((21_856, 3), 66_000)
    for target, one_buffer in ((layout, False), (layout, True), (apart, True)):
        for element, operator in product(_elements(one_buffer), OPERATORS):
            problem = scan_problem(element, operator, layout, target, axis=1)
            plans.append(plan_problem(problem, Limits(software=True, float64=True), one_buffer=one_buffer))
    layout, apart = Layout.packed((5, 90)), Layout.packed((5, 90), 5000)
    for target, one_buffer in ((layout, False), (layout, True), (apart, True)):
        for source, element in product((*ELEMENT_TYPES, BOOL), _elements(one_buffer)):
            conversion = convert_problem(source, element, layout, target)
            plans.append(plan_problem(conversion, Limits(), one_buffer=one_buffer))
        for element in _elements(one_buffer):
            if element.kind == "float":
                wide = Layout((5, 90), (180, 2)), Layout((5, 90), (180, 2), 5000 if target is apart else 0)
                for tensors in ((layout, target), wide):
                    rounding = round_problem(element, RoundingMode.HALF_EVEN, *tensors)
                    plans.append(plan_problem(rounding, Limits(), one_buffer=one_buffer))
    far = Layout((20, 2), (1000, 1))
    problems = [scan_problem(*either, far, far, axis=0) for either in product(ELEMENT_TYPES, OPERATORS)]
    problems.append(scan_problem(FLOAT32, Operator.SUM, far, far, 0, ScanOptions(precision=Precision.COMPENSATED)))
    for problem in problems:
        plans += [plan_problem(problem, Limits(binding_bytes=size)) for size in (16_384, 80_000)]
    return {one.pipeline for plan in plans for one in plan.passes}


def test_the_pipelines_have_every_kernel_type_and_variant() -> None:
    keys = every_pipeline()
    assert {key.kernel for key in keys} == set(shaders.kernel_names())
    ways = {(slots["input"], slots["output"]) for slots in (dict(key.slots) for key in keys) if "input" in slots}
    assert ways >= set(product(("separate", "shared", "in_output"), ("words", "packed", "quads", "pairs")))
    assert {("tile", "runs"), ("run_access", "quads"), ("run_access", "strided")} <= {
        slot for key in keys for slot in key.slots
    }
    pieces = {("element", "f64"), ("element", "f64_words"), ("element", "f32_compensated")}
    assert pieces <= {slot for key in keys for slot in key.slots}


def test_metal_has_room_for_the_variables_of_a_workgroup() -> None:
    """naga hands each to the entry point as an argument, and Metal takes 31 of these (Metal Feature Set Tables)."""
    shaders_of = {(key.kernel, key.slots) for key in every_pipeline() | pipelines_of_maxima()}
    counts = {
        (kernel, slots): shaders.resolve(kernel, dict(slots)).source.count("var<workgroup>")
        for kernel, slots in shaders_of
    }
    assert max(counts.values()) > 20, "variables of workgroups are found"
    assert {one: count for one, count in counts.items() if count > 31} == {}


def test_kernels_with_workgroup_memory_begin_with_a_barrier() -> None:
    """Behind it no invocation sets that memory to zero any more (https://github.com/gfx-rs/wgpu/issues/4591)."""
    begins = {}
    for key in every_pipeline() | pipelines_of_maxima():
        source = shaders.resolve(key.kernel, dict(key.slots)).source
        main = re.search(r"^fn main\([^{]*\{\n *(.*)$", source, re.MULTILINE)
        assert main is not None
        begins[key.kernel, "var<workgroup>" in source] = main[1].startswith("workgroupBarrier();")
    assert {has_memory for _, has_memory in begins} == {False, True}
    assert {kernel: begins_so for (kernel, has_memory), begins_so in begins.items() if begins_so != has_memory} == {}


@pytest.mark.parametrize("kernel", sorted(TABLE))
def test_nothing_divides_by_a_constant_that_may_be_zero(kernel: str) -> None:
    """Tint refuses it even where it never runs."""
    texts = {key.slots for key in every_pipeline() | pipelines_of_maxima() if key.kernel == kernel}
    sources = [re.sub("//.*", "", shaders.resolve(kernel, dict(slots)).source) for slots in texts]
    divided = {name for source in sources for name in re.findall(r"[/%] *\(*(\w+)", source)}
    assert {name for name, legal in TABLE[kernel].constants.items() if 0 in legal} & divided == set()


@pytest.mark.combinations
@pytest.mark.parametrize("kernel", shaders.kernel_names())
def test_every_type_and_variant_compiles(device: Device, kernel: str) -> None:
    keys = [key for key in every_pipeline() if key.kernel == kernel]
    assert keys
    for key in keys:
        if device.limits.float64 or ("element", "f64") not in key.slots:
            assert device.pipelines.get(key).pipeline is not None


def test_every_kernel_of_maxima_compiles(device: Device) -> None:
    keys = pipelines_of_maxima()
    assert {key.kernel for key in keys} >= {"scan_short", "scan_slices", "scan_rows"}
    assert {dict(key.slots)["element"] for key in keys} == {"max", "max64"}
    for key in keys:
        assert device.pipelines.get(key).pipeline is not None


@pytest.mark.combinations
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a process to a limit of memory")
@pytest.mark.parametrize("kernel", sorted({key.kernel for key in gpu_pipelines()}))
def test_no_pipeline_of_gpus_takes_gigabytes_to_compile(device: Device, kernel: str) -> None:
    """A driver that runs out of memory ends the process; SwiftShader did, for a text that others compiled at once."""
    keys = [key for key in gpu_pipelines() if key.kernel == kernel]
    names = {name for key in keys for name, _ in key.constants} - {"columns"}
    some = [key for key in one_of_each(keys, *names) if device.limits.float64 or ("element", "f64") not in key.slots]
    assert some
    # One process of these took 0.9 GB of memory at most.
    done = subprocess.run(
        [sys.executable, "-m", worker.__name__, device.summary, str(4 * 2**30)],
        cwd=Path(__file__).parent.parent,
        input="".join(f"{worker.to_line(key)}\n" for key in some),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    assert worker.FAILED not in done.stderr, done.stderr
    compiled = done.stderr.count(worker.END)
    assert compiled == len(some), f"{some[compiled]}: {done.stderr[-500:]}"
    assert done.returncode == 0


@cache
def _dawn_device() -> wgpudawn.GPUDevice:
    adapters = wgpudawn.gpu.enumerate_adapters_sync()
    assert adapters, "Dawn needs a Vulkan driver"
    return adapters[0].request_device_sync()


@pytest.mark.tint
@pytest.mark.combinations
@pytest.mark.parametrize("kernel", shaders.kernel_names())
def test_every_type_and_variant_compiles_with_tint(kernel: str) -> None:
    """The second compiler of WGSL. Native float64 is naga's alone."""
    gpu_device = _dawn_device()
    keys = {key for key in every_pipeline() | pipelines_of_maxima() if key.kernel == kernel}
    keys = {key for key in keys if ("element", "f64") not in key.slots}
    sources = {key.slots: shaders.resolve(kernel, dict(key.slots)).source for key in keys}
    modules = {slots: gpu_device.create_shader_module(code=source) for slots, source in sources.items()}
    # Pipelines with one set of constants each, of which as many are 0 as may be, but for the long ones, which take
    # SwiftShader seconds: "make matrix" runs what it is given through Tint as well.
    long = {("element", "f64_words"), ("element", "f32_compensated"), ("element", "int64")}
    zeros = {key: sum(value == 0 for _, value in key.constants) for key in keys if not long & set(key.slots)}
    short = {key.slots: key.constants for key in sorted(zeros, key=lambda key: (zeros[key], str(key)))}
    assert short
    for slots, constants in short.items():
        stage = {"module": modules[slots], "entry_point": "main", "constants": dict(constants)}
        assert gpu_device.create_compute_pipeline(layout="auto", compute=stage) is not None


def test_a_shader_that_does_not_compile_names_its_file(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert device.subnormals() is not None
    (tmp_path / "lib").mkdir()
    (tmp_path / "broken.wgsl").write_text("// Broken.\n@compute @workgroup_size(1)\nfn main() { nonsense(); }\n")
    monkeypatch.setattr(shaders, "folder", lambda: tmp_path)
    shaders._read.cache_clear()
    with pytest.raises(ShaderError, match=r"broken does not compile(.|\n)*broken\.wgsl:3"):
        device.pipelines.get(PipelineKey("broken", (), ()))
    assert device.subnormals() is not None
