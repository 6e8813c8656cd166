"""The tables of docs/directml.md say what is there: every struct, method, rule and error."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dmlgpu
from dmlgpu import directml as dml
from dmlgpu.directml.rules import DIRECTML, EXTENSIONS, Source, Support

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "docs" / "directml.md").read_text(encoding="utf-8")
SOURCE = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "dmlgpu" / "directml").glob("*.py"))
STATUSES = ("implemented", "differs", "not applicable", "added")


def table(heading: str) -> list[list[str]]:
    """Return the cells of the tables below a heading, without their own."""
    body = GUIDE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in body.splitlines() if line.startswith("| ")]
    return [row for row in rows if not set("".join(row)) <= set("-|: ")]


def classes() -> dict[str, Any]:
    return {name: getattr(dml, name) for name in dml.__all__ if inspect.isclass(getattr(dml, name))}


STRUCTS = {name: kind for name, kind in classes().items() if dataclasses.is_dataclass(kind)}
INTERFACES = {name: kind for name, kind in classes().items() if name.startswith("IDML")}


def test_every_struct_is_there_field_for_field() -> None:
    documented = {row[0].strip("`"): row[1:] for row in table("Structs") if row[0].startswith("`DML_") and len(row) > 2}
    assert set(documented) == set(STRUCTS)
    for name, (fields, status) in documented.items():
        assert fields.split(", ") == [field.name for field in dataclasses.fields(STRUCTS[name])], name
        assert status.startswith(STATUSES), name


def test_every_method_is_there() -> None:
    documented = {row[0].strip("`"): row[1] for row in table("Objects and methods") if row[0].startswith("`")}
    methods = {
        f"{name}.{method}"
        for name, kind in INTERFACES.items()
        for method, value in vars(kind).items()
        if inspect.isfunction(value) and not method.startswith("_")
    }
    without = {name for name in INTERFACES if not any(method.startswith(f"{name}.") for method in methods)}
    assert set(documented) == methods | without
    assert all(status.startswith(STATUSES) for status in documented.values())


def test_what_does_not_apply_is_not_there() -> None:
    rows = [row for row in table("Objects and methods") if not row[0].startswith(("`", "method"))]
    assert rows
    for names, status in rows:
        assert status.startswith("not applicable: ")
        interface, first = names.split(", ")[0].split(".")
        for method in [first, *names.split(", ")[1:]]:
            assert not hasattr(INTERFACES.get(interface), method)


def test_every_method_is_documented_where_it_is() -> None:
    for name, kind in INTERFACES.items():
        assert inspect.getdoc(kind), name
        for method, value in vars(kind).items():
            if inspect.isfunction(value) and not method.startswith("_"):
                assert inspect.getdoc(value), f"{name}.{method}"


def test_every_error_is_there() -> None:
    documented = {row[0].strip("`"): row[1] for row in table("Functions and errors") if "0x" in row[1]}
    errors = {name: getattr(dml, name) for name in dml.__all__ if name.startswith(("S_", "E_", "DXGI_"))}
    assert {name: int(value, 16) for name, value in documented.items()} == errors


def links(text: str) -> list[str]:
    return re.findall(r"\]\[([a-z-]+)\]", text)


LINKS = dict(re.findall(r"^\[([a-z-]+)\]: (\S+)$", GUIDE, re.MULTILINE))


def test_what_is_documented_has_a_link_to_microsofts_page() -> None:
    """Every rule says whose it is, and a documented one where that is written."""
    rules = [(row[0], row[1]) for row in table("Rules")] + [(row[0], row[2]) for row in table("Rules of bindings")]
    rules = [(rule, whose) for rule, whose in rules if rule != "rule"]
    assert len(rules) > 45
    for rule, whose in rules:
        assert whose.startswith(("[documented][", "decided")), rule
        assert "documented" not in whose.replace("[documented][", ""), rule
    assert set(links(GUIDE)) == set(LINKS)
    assert all(url.startswith("https://learn.microsoft.com/windows/") for url in LINKS.values())


def test_the_table_of_types_is_the_table_that_is_used() -> None:
    """Row for row, with the place where it is written; the text names each kind of place."""
    body = GUIDE.split("\n## Types and dimension counts\n")[1].split("\n## ")[0]
    documented = []
    for operator, level, types, counts, source in table("Types and dimension counts")[1:]:
        where = re.sub(r"\[page\]\[\w+\]", "page", source)
        if where != source:
            name = LINKS[links(source)[0]].rpartition("-")[2]
            assert name == f"dml_{operator.lower()}_operator_desc"
        kinds = tuple(getattr(dml, f"DML_TENSOR_DATA_TYPE_{kind}") for kind in types.split())
        first, _, last = counts.partition(" to ")
        span = range(int(first), int(last or first) + 1)
        entry = Support(getattr(dml, f"DML_FEATURE_LEVEL_{level}"), kinds, span, Source(where))
        documented.append((getattr(dml, f"DML_OPERATOR_{operator}"), entry))
        assert f"- *{where}*: " in body
    tables = (DIRECTML, EXTENSIONS)
    assert documented == [(operator, one) for rows in tables for operator in rows for one in rows[operator]]


def test_rounds_docstring_pairs_modes_with_directmls_names() -> None:
    text = str(inspect.getdoc(dmlgpu.round)).partition("mode : ")[2].partition("out, device")[0].partition("}")[2]
    modes = re.findall(r'"(\w+)"', text)
    headers = [f"DML_ROUNDING_MODE_{name}" for name in re.findall(r"[A-Z]+(?:_[A-Z]+)+", text)]
    assert len(modes) == len(headers) == 3
    x = np.array([-2.5, -1.75, 0.5, 1.5, 2.5], np.float32)
    tensor = dml.DML_BUFFER_TENSOR_DESC(dml.DML_TENSOR_DATA_TYPE_FLOAT32, Sizes=x.shape)
    for mode, header in zip(modes, headers, strict=True):
        desc = dml.DML_ELEMENT_WISE_ROUND_OPERATOR_DESC(tensor, tensor, getattr(dml, header))
        assert dml.execute(desc, x).tolist() == dmlgpu.round(x, mode=mode).tolist(), (mode, header)


def sentences() -> str:
    """The package's messages as they are raised: neighbouring string literals joined."""
    return re.sub(r'"\s*\n\s*f?"', "", SOURCE)


@pytest.mark.parametrize("row", [row for row in table("Rules of bindings") if row[0] != "rule"], ids=lambda row: row[0])
def test_every_rules_message_is_raised(row: list[str]) -> None:
    assert len(row) == 4
    fragment = re.fullmatch(r"`(.*)`", row[1])
    assert fragment is not None
    raised = sentences() + (ROOT / "dmlgpu" / "runtime" / "foreign.py").read_text(encoding="utf-8")
    assert fragment[1] in raised.replace("{where}: ", "")
