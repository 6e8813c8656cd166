"""The documentation's site: what goes into it. 'make docs' builds it and checks its links."""

from __future__ import annotations

import ast
import importlib
import json
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        return runpy.run_path(str(ROOT / "scripts" / "docs_site.py"))
    finally:
        sys.path.remove(str(ROOT / "scripts"))


def test_every_public_name_is_in_the_reference(script: dict[str, Any]) -> None:
    for name, title in script["API"].items():
        module = importlib.import_module(name)
        page = script["api_page"](name, title)
        wanted = {public for public in vars(module)["__all__"] if not public.startswith("__")}
        submodules = {f"dmlgpu.{public}" for public in wanted} & set(script["API"])
        wanted -= {name.removeprefix("dmlgpu.") for name in submodules}
        directive = r"^ *(?:\* - )?\.\. (?:autoclass|autofunction|py:data):: (?:[a-z.]+\.)?(\w+)$"
        found = re.findall(directive, page, re.MULTILINE)
        assert sorted(found) == sorted(wanted)


def test_every_page_is_in_the_contents(script: dict[str, Any], tmp_path: Path) -> None:
    site = script["Site"](tmp_path)
    site.take_pages()
    found = [path for path in tmp_path.rglob("*") if path.suffix in {".md", ".ipynb"}]
    pages = {str(path.relative_to(tmp_path).with_suffix("")) for path in found}
    listed = set(re.findall(r"^(?:[\w ]+ <)?([\w/-]+)>?$", script["contents"](), re.MULTILINE))
    assert pages - listed - {name for name in pages if name.startswith("programs/")} == {"index"}


def test_links_lead_to_what_is_in_the_site(script: dict[str, Any], tmp_path: Path) -> None:
    site = script["Site"](tmp_path)
    site.take_pages()
    site.write("check-your-gpu.md", script["CHECK"])
    site.write("gallery.md", "")
    site.show_kernels()
    site.show_programs()
    links = 0
    for path in tmp_path.rglob("*.md"):
        if path.relative_to(tmp_path).parts[0] == "programs":
            continue
        for match in script["_LINK"].finditer(path.read_text()):
            assert (path.parent / match[1]).exists(), f"{path}: {match[0]}"
            links += 1
    assert links > 100


def test_every_shader_has_a_page(script: dict[str, Any], tmp_path: Path) -> None:
    site = script["Site"](tmp_path)
    site.take_pages()
    site.show_kernels()
    site.show_programs()
    for path in (ROOT / "wgsl").rglob("*.wgsl"):
        page = (tmp_path / "programs" / f"{path.relative_to(ROOT)}.md").read_text()
        assert path.read_text() in page


def test_every_example_is_in_the_gallery(script: dict[str, Any]) -> None:
    assert set(script["GALLERY"]) == {path.stem for path in (ROOT / "examples").glob("*.py")}


def test_the_tutorial_comes_to_the_bits_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    cells = json.loads((ROOT / "docs" / "tutorial.ipynb").read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {}
    compared = 0
    for cell in cells:
        assert not cell.get("outputs"), "outputs are made where the notebook is shown"
        if cell["cell_type"] != "code":
            continue
        *statements, last = ast.parse("".join(cell["source"])).body
        exec(compile(ast.Module(statements, []), "tutorial.ipynb", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "tutorial.ipynb", "eval"), names)
            if "array_equal" in ast.unparse(last):
                assert value, ast.unparse(last)
                compared += 1
        else:
            exec(compile(ast.Module([last], []), "tutorial.ipynb", "exec"), names)
    assert compared == 4


def test_the_comparison_s_check_prints_true(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8"), re.DOTALL
    )
    exec(compile(block, "comparison.md", "exec"), {})
    assert capsys.readouterr().out == "True\nTrue\n"
