"""What makes alterations of the shaders, and the reasons why some survive."""

from __future__ import annotations

from pathlib import Path

import pytest

from .mutation.__main__ import every_alteration
from .mutation.alterations import alterations
from .mutation.justifications import entry, read, unfounded

SOURCE = """fn kernel(a: u32, b: u32) -> u32 {
    // a + b
    workgroupBarrier();
    if (a < b) {
        return select(0u, a + 1u, b != 0u);
    }
    return load(a * params.axis_stride);
}
"""


def test_the_alterations_of_a_function() -> None:
    found = [(one.line, one.kind, one.altered) for one in alterations(SOURCE, "x.wgsl")]
    assert found == [
        (3, "barrier", ";"),
        (4, "guard", "if (true) {"),
        (4, "guard", "if (false) {"),
        (4, "comparison", "if (a <= b) {"),
        (4, "comparison", "if (a >= b) {"),
        (5, "operator", "return select(0u, a - 1u, b != 0u);"),
        (5, "choice", "return select(0u, a + 1u, true);"),
        (5, "choice", "return select(0u, a + 1u, false);"),
        (5, "comparison", "return select(0u, a + 1u, b == 0u);"),
        (7, "operator", "return load(a + params.axis_stride);"),
        (7, "stride", "return load(a * 1u);"),
    ]


def test_every_shader_file_is_understood() -> None:
    every = every_alteration()
    assert len(every) > 50
    found = [one for ones in every.values() for one in ones]
    assert len(found) > 1000
    assert len({one.key for one in found}) == len(found)
    assert {one.kind for one in found} == {"operator", "comparison", "guard", "choice", "stride", "barrier"}


def test_an_alteration_changes_one_place() -> None:
    for one in alterations(SOURCE, "x.wgsl"):
        changed = one.apply(SOURCE)
        assert changed != SOURCE
        assert sum(a != b for a, b in zip(SOURCE.splitlines(), changed.splitlines(), strict=True)) == 1


def test_what_is_no_wgsl_is_refused() -> None:
    with pytest.raises(ValueError, match=r"x\.wgsl:2: '\$' begins with no token that is known"):
        alterations("fn f() {\n$", "x.wgsl")


def test_every_reason_is_of_an_alteration() -> None:
    assert unfounded(read(), (one for ones in every_alteration().values() for one in ones)) == []


def test_a_reason_must_be_given_once(tmp_path: Path) -> None:
    path = tmp_path / "justified.toml"
    one = alterations(SOURCE, "x.wgsl")[0]
    path.write_text(entry(one))
    with pytest.raises(ValueError, match="no reason is given for"):
        read(path)
    path.write_text(entry(one).replace('reason = ""', 'reason = "why"') * 2)
    with pytest.raises(ValueError, match="is there twice"):
        read(path)
    path.write_text(entry(one).replace('reason = ""', 'reason = "why"'))
    assert read(path) == {one.key: "why"}
    assert unfounded(read(path), []) == [one.key]
