"""Names in backticks exist, and functions have few parameters: rules for the package's own text and code."""

from __future__ import annotations

import ast
import builtins
import io
import keyword
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

import dmlgpu

PACKAGE = Path(dmlgpu.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
Function = ast.FunctionDef | ast.AsyncFunctionDef


def names_of(source: str) -> set[str]:
    """What a module defines or uses: names, attributes, arguments, imports, and strings that are a word."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        for field in ("name", "id", "attr", "arg", "asname"):
            value = getattr(node, field, None)
            found.update(value.split(".") if isinstance(value, str) else ())
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"\w+", node.value):
            found.add(node.value)
    return found


@cache
def known() -> set[str]:
    found = {*dir(builtins), *keyword.kwlist}
    for path in MODULES:
        found |= {*path.relative_to(PACKAGE.parent).with_suffix("").parts, *names_of(path.read_text(encoding="utf-8"))}
    return found


def unknown(source: str) -> set[str]:
    """The names in single backticks in comments and strings that the package does not have."""
    texts = [
        token.string
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type in (tokenize.COMMENT, tokenize.STRING)
    ]
    quoted = " ".join(re.findall(r"(?<!`)`([^`\n]+)`(?!`)", "\n".join(texts)))
    return set(re.findall(r"[^\W\d]\w+", quoted)) - known()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_names_in_backticks_exist(path: Path) -> None:
    assert not unknown(path.read_text(encoding="utf-8"))


def test_a_name_that_is_gone_is_found() -> None:
    assert unknown("# See `Device.gone_for_good`.\n") == {"gone_for_good"}


FACES = {*dmlgpu.__all__, "exported_operator", "cumulative"}
"""What users call with arguments by name: the public names, what docs/export.md names, and the reference."""


def too_many_parameters(source: str) -> list[str]:
    """The functions and methods that have more than seven parameters, without those of faces."""

    def within(node: ast.AST, outer: tuple[str, ...]) -> list[str]:
        found = []
        for child in ast.iter_child_nodes(node):
            name = (*outer, child.name) if isinstance(child, ast.ClassDef | Function) else outer
            if isinstance(child, Function) and name[0] not in FACES:
                given = [*child.args.posonlyargs, *child.args.args, *child.args.kwonlyargs]
                many = len([one for one in given if one.arg not in ("self", "cls")]) > 7
                found += [".".join(name)] if many else []
            found += within(child, name)
        return found

    return within(ast.parse(source), ())


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_functions_have_seven_parameters_at_most(path: Path) -> None:
    assert not too_many_parameters(path.read_text(encoding="utf-8"))


def test_a_function_with_eight_parameters_is_found() -> None:
    many = "def many(self, a, b, c, d, /, e, f, *, g, h): ..."
    assert too_many_parameters(many) == ["many"]
    assert too_many_parameters(f"class Inner:\n  if True:\n    {many}") == ["Inner.many"]
    assert not too_many_parameters(many.replace(", h", ""))
    assert not too_many_parameters(many.replace("many", "explain"))
