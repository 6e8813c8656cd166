"""The loader of WGSL files, and every shader through the compiler."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

from dmlgpu import shaders
from dmlgpu.dtypes import BOOL, ELEMENT_TYPES
from dmlgpu.errors import ShaderError
from dmlgpu.plan import KERNELS, plan_elementwise, plan_scan
from dmlgpu.problem import Layout, Operator, RoundingMode, convert_problem, round_problem, scan_problem
from dmlgpu.runtime.device import Device
from dmlgpu.windows import Limits

SLOTS = {"input": "separate", "output": "words", "element": "f32"}


def test_the_kernels() -> None:
    assert shaders.kernel_names() == [
        "convert",
        "round",
        "scan_carries",
        "scan_slices",
        "scan_tile_totals",
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
    assert where.file == "lib/accumulate_f32.wgsl"
    assert "fn combine(" in (shaders.folder() / where.file).read_text().splitlines()[where.number - 1]
    assert shader.locate(f"error at wgsl:{number}:4") == f"error at {where.file}:{where.number}:4"
    assert shader.locate("wgsl:999999:1") == "wgsl:999999:1"


def test_a_slot_that_nothing_fills() -> None:
    with pytest.raises(ShaderError, match=r"scan_tiles\.wgsl:\d+: nothing fills the slot <element>"):
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
        named = set(re.findall(r"\boverride (\w+)", shaders.resolve(path.stem, SLOTS).source)) - {"product", "opaque"}
        assert all(name in text for name in named), "the header names every constant"


def test_every_kernel_type_and_variant_compiles(device: Device) -> None:
    """Every pipeline that a plan can ask for, through the device's own compiler."""
    layout = Layout.packed((5, 9000))
    plans = []
    for limits, one_buffer in product((Limits(), Limits(opaque=True)), (False, True)):
        for element, operator, kernel in product(ELEMENT_TYPES, Operator, KERNELS):
            if device.supports(element):
                problem = scan_problem(element, operator, layout, layout, axis=1)
                plans.append(plan_scan(problem, limits, one_buffer=one_buffer, kernel=kernel))
    for one_buffer in (False, True):
        for element in ELEMENT_TYPES:
            for source in (*ELEMENT_TYPES, BOOL):
                problem = convert_problem(source, element, layout, layout)
                plans.append(plan_elementwise(problem, Limits(), one_buffer=one_buffer))
            if element.kind == "float":
                rounding = round_problem(element, RoundingMode.HALF_EVEN, layout, layout)
                plans.append(plan_elementwise(rounding, Limits(), one_buffer=one_buffer))
    keys = {one.pipeline for plan in plans for one in plan.passes}
    for key in keys:
        assert device.pipelines.get(key).pipeline is not None
    assert len(keys) > 200


def test_a_shader_that_does_not_compile_names_its_file(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "broken.wgsl").write_text("// Broken.\n@compute @workgroup_size(1)\nfn main() { nonsense(); }\n")
    monkeypatch.setattr(shaders, "folder", lambda: tmp_path)
    shaders._read.cache_clear()
    from dmlgpu.plan import PipelineKey

    with pytest.raises(ShaderError, match=r"broken does not compile(.|\n)*broken\.wgsl:3"):
        device.pipelines.get(PipelineKey("broken", (), ()))
    assert device.subnormals() is not None
