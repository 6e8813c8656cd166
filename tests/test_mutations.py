"""The script that alters shaders, and that docs/mutations.md says what came of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dmlgpu.conformance import parse
from dmlgpu.runtime.device import Device

from .mutation.__main__ import PAGE, judge, shader_texts
from .mutation.alterations import Alteration, alterations
from .mutation.bench import Bench
from .mutation.justifications import CLASSES, Reason, entries, read
from .mutation.page import page
from .mutation.results import PATH, Results, digest
from .mutation.trials import Trial
from .mutation.worker import Progress, Watch

SOURCE = """\
override NOT_CODE = 1u + 2u;
const CODE = 1u + 2u;
var<workgroup> total: array<u32, 4>;

// a + b
fn f(a: u32, p: ptr<function, u32>) -> u32 {
    if (a < 3u && params.axis_stride != 2u) {
        workgroupBarrier();
        *p += min(a, 4u);
    }
    return select(a, -a, g(a)) + vec2<u32>(a).x;
}
"""

CHANGES = [
    ("a < 3u && params.axis_stride != 2u", "true"),
    ("a < 3u && params.axis_stride != 2u", "false"),
    ("<", "<="),
    ("<", ">="),
    ("&&", "||"),
    ("params.axis_stride", "1u"),
    ("!=", "=="),
    ("workgroupBarrier()", ""),
    ("+=", "-="),
    ("min(a, 4u)", "(a)"),
    ("min(a, 4u)", "(4u)"),
    ("g(a)", "true"),
    ("g(a)", "false"),
    ("-", ""),
    ("+", "-"),
    ("+", "-"),
]


def test_what_is_altered() -> None:
    found = [(SOURCE[one.start : one.end], one.text) for one in alterations(SOURCE, "f.wgsl")]
    assert sorted(found) == sorted(CHANGES)


def test_an_alteration_changes_its_line_alone() -> None:
    for one in alterations(SOURCE, "f.wgsl"):
        before, after = SOURCE.splitlines(), one.apply(SOURCE).splitlines()
        changed = [i for i, line in enumerate(before) if after[i] != line]
        assert changed == [one.line - 1]
        assert (before[changed[0]].strip(), after[changed[0]].strip()) == (one.original, one.altered)


def test_what_is_not_understood_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"f\.wgsl:2: '\$"):
        alterations("fn f() {\n  $x\n}", "f.wgsl")


def test_every_shader_is_understood() -> None:
    found = {name: alterations(text, name) for name, text in shader_texts().items()}
    every = [one for ones in found.values() for one in ones]
    assert len({one.key for one in every}) == len(every) > 2000
    for name, text in shader_texts().items():
        assert all(one.apply(text) != text for one in found[name])


@pytest.fixture
def bench(device: Device, tmp_path: Path) -> Bench:
    case = parse("sum.float32.3x300.axis1.inclusive.increasing.packed-to-packed.slices.plain")
    trial = Trial(case, {})
    trial.plan(device)
    return Bench(device, tmp_path / "wgsl", [trial])


def test_what_comes_of_alterations(bench: Bench) -> None:
    text = shader_texts()["lib/order/order.wgsl"]
    one = next(one for one in alterations(text, "lib/order/order.wgsl") if one.text == "true")
    unused = replace(one, file="elementwise.wgsl", start=0, end=0, text="")
    for alteration, state in (
        (one, "caught"),
        (replace(one, text="1u"), "does not compile"),
        (replace(one, text="(present)"), "survived"),
        (one, "caught"),
        (unused, "survived"),
    ):
        assert bench.try_out(alteration).state == state
    assert not any(trial.caught(bench.device) for trial in bench.every), "the shaders stay altered"


def test_a_trial_hangs_by_its_own_processor_time() -> None:
    """Neither what trials before it took nor what else the machine has to do counts."""
    watch = Watch()
    assert not watch.is_over(Progress(1000.0, begins=False)), "what was before the first trial"
    assert not watch.is_over(Progress(1059.0, begins=True))
    assert not watch.is_over(Progress(1100.0, begins=False))
    assert not watch.is_over(Progress(1130.0, begins=True)), "the trial before it has ended"
    assert not watch.is_over(Progress(1190.0, begins=False))
    assert watch.is_over(Progress(1191.0, begins=False))


def test_results_of_a_stopped_run_are_kept(tmp_path: Path, bench: Bench) -> None:
    results = Results(tmp_path / "results.json", tmp_path / "cache.json")
    every = alterations(SOURCE, "f.wgsl")
    outcome = bench.try_out(replace(every[0], file="elementwise.wgsl", start=0, end=0, text=""))
    for one in every[1:]:
        results.add(one, SOURCE, outcome)
    assert not results.complete("f.wgsl", SOURCE, every)
    results.write()
    results = Results(tmp_path / "results.json", tmp_path / "cache.json")
    assert results.get(every[0], SOURCE) is None
    assert results.get(every[1], SOURCE + "const B = 2u;") is None, "what came of another version"
    results.add(every[0], SOURCE, outcome)
    assert results.complete("f.wgsl", SOURCE, every)
    assert results.is_complete("f.wgsl", SOURCE)
    assert set(results.records["f.wgsl"].keys("f.wgsl")) == {one.key for one in every}
    results.forget("f.wgsl", SOURCE, survivors_only=True)
    assert results.get(every[0], SOURCE) is None


def test_reasons(tmp_path: Path) -> None:
    keys = [one.key for one in alterations(SOURCE, "f.wgsl")]
    path = tmp_path / "justified.toml"
    text = entries(keys)
    classified = text.replace('class = ""', 'class = "same"')
    path.write_text(classified.replace('""""""', '"None is."'), encoding="utf-8")
    assert read(path) == dict.fromkeys(keys, Reason("None is.", "same"))
    path.write_text(classified, encoding="utf-8")
    with pytest.raises(ValueError, match="no reason"):
        read(path)
    path.write_text(text.replace('""""""', '"None is."'), encoding="utf-8")
    with pytest.raises(ValueError, match=r"the class of .* is ''; it must be one of same, unused"):
        read(path)


def test_comments_are_no_part_of_a_version() -> None:
    assert digest("// A sum.\nlet a = 1u; // one\n") == digest("\nlet a = 1u;\n// The sum.\n")
    assert digest('#import "lib/params.wgsl"\nlet a = 1u;') == digest("let a = 1u;\n#import <run>\n")
    assert digest("let a = 1u;") != digest("let a = 2u;")


def test_the_page_and_the_reasons_are_of_these_results(tmp_path: Path) -> None:
    results, reasons = Results(PATH, tmp_path / "none.json"), read()
    assert PAGE.read_text(encoding="utf-8") == page(results, reasons), "make mutation MUTATION_ARGS=--page"
    assert judge(results, reasons) == []
    assert {reason.kind for reason in reasons.values()} <= set(CLASSES)
    texts = shader_texts()
    for file, record in results.records.items():
        assert record.counts.get("survived", 0) == len(record.survivors) == sum(one[1] for one in record.kinds.values())
        assert sum(record.counts.values()) == sum(one[0] for one in record.kinds.values())
        if results.is_complete(file, texts.get(file, "")):
            every: list[Alteration] = alterations(texts[file], file)
            assert sum(record.counts.values()) == len(every)
            assert {one.key for one in every} >= set(record.keys(file))
