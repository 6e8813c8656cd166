"""The page "Same bits on your GPU?" in headless Chromium, from a file, as its readers open it: make test-browser.

Screenshots go into ``.cache/screenshots``.
"""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlgpu import reference
from dmlgpu.conformance import parse
from dmlgpu.dtypes import ELEMENT_TYPES
from dmlgpu.planning.plan import EVERYWHERE, KERNELS

from .browser_session import ROOT, Browser, browser

pytestmark = pytest.mark.browser
SCREENSHOTS = ROOT / ".cache" / "screenshots"
PARTS = [*(f".{element.name}." for element in ELEMENT_TYPES), "convert."]
"""What the names of the page's cases have: a part of them each."""
DONE = "!document.getElementById('after').hidden || document.getElementById('verdict').className === 'bad'"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    subprocess.run([sys.executable, str(ROOT / "scripts" / "gpu_page.py"), str(folder)], cwd=ROOT, check=True)
    return folder / "index.html"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as one:
        yield one


def content_of(text: str) -> dict[str, Any]:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert match is not None
    found: dict[str, Any] = json.loads(match[1])
    return found


def verdict_of(chromium: Browser) -> str:
    chromium.wait("!document.getElementById('run').disabled")
    chromium.evaluate("document.getElementById('run').click()")
    chromium.wait(DONE)
    return str(chromium.evaluate("document.getElementById('verdict').textContent"))


def cells(chromium: Browser) -> dict[str, str]:
    """Return the class of each cell of the table of verdicts, by "type/column"."""
    found: dict[str, str] = chromium.evaluate(
        "Object.fromEntries([...document.querySelectorAll('#verdicts td')]"
        ".map((td) => [td.dataset.name, td.className]))"
    )
    return found


def test_the_page_holds_every_operator_type_and_kernel(page: Path) -> None:
    assert page.stat().st_size < 2_000_000
    content = content_of(page.read_text())
    assert 100 <= len(content["cases"]) <= 300
    kernels = (*EVERYWHERE, "short", "convert")
    wanted = {(element.name, kernel) for element in ELEMENT_TYPES for kernel in kernels} | {("uint8", "strip_lookback")}
    wanted |= {(name, "round") for name in ("float16", "float32", "float64")} | {("float32", "compensated")}
    assert wanted <= {(case["type"], case["column"]) for case in content["cases"]}
    operators = {(case["name"].split(".")[0], case["column"]) for case in content["cases"]}
    assert {(operator, kernel) for operator in ("sum", "product") for kernel in KERNELS} <= operators
    assert {sum(part in case["name"] for part in PARTS) for case in content["cases"]} == {1}
    sizes = [size for case in content["cases"] for size in case["plan"]["buffers"].values()]
    assert max(sizes) <= 128 * 2**20


def count_of(page: Path, part: str) -> int:
    return sum(part in case["name"] for case in content_of(page.read_text())["cases"])


@pytest.mark.combinations
@pytest.mark.parametrize("part", [*PARTS, ""], ids=lambda part: part or "all")
def test_the_verdict_is_the_same_bits(page: Path, chromium: Browser, part: str) -> None:
    chromium.open(page, *([f"#only={part}"] if part else []))
    count = count_of(page, part)
    assert count > 1
    assert verdict_of(chromium) == f"✓ The same bits: all {count} cases have the reference's digests."
    assert "good" in set(cells(chromium).values()) <= {"good", "none"}
    assert chromium.problems == []


def test_a_report_of_what_was_run(page: Path, chromium: Browser) -> None:
    chromium.look()
    chromium.open(page, "#only=.int32.")
    count = count_of(page, ".int32.")
    assert verdict_of(chromium).startswith("✓")
    assert [url for url in chromium.requests if not url.startswith(("file:", "about:"))] == []
    report = json.loads(chromium.evaluate("document.getElementById('report').textContent"))
    assert (report["passed"], report["cases"], report["differences"]) == (True, count, {})
    assert report["adapter"]["vendor"]
    assert report["speed"]["copy_seconds"] > 0
    assert set(report["speed"]["operators"]) == {"cumulative sum", "cumulative product", "round"}
    compute(chromium, "3 1 4 1 5 9 2 6 5 3 5 8 9 7 9 3", operator="sum", type="float32", shape="row")
    chromium.evaluate("document.getElementById('step').click()")
    chromium.evaluate("document.getElementById('step').click()")
    images = {}
    for name, width, scheme in (("light", 1280, "light"), ("dark", 1280, "dark"), ("narrow", 390, "light")):
        chromium.look(width=width, scheme=scheme)
        images[name] = chromium.screenshot(SCREENSHOTS / f"gpu-page-{name}.png")
        assert images[name][:4] == b"\x89PNG"
    assert len(set(images.values())) == len(images)


def test_the_page_is_no_wider_than_the_window(page: Path, chromium: Browser) -> None:
    chromium.open(page, "#only=int32.200x7")
    assert verdict_of(chromium).startswith("✓ The same bits: all 2 cases")
    compute(chromium, " ".join(["0.1"] * 4000), operator="sum", type="float32", shape="40x100")
    root = "document.documentElement"
    for width in (320, 390, 1280):
        chromium.look(width=width)
        assert chromium.evaluate(f"{root}.clientWidth") <= width
        assert chromium.evaluate(f"{root}.scrollWidth - {root}.clientWidth") <= 0, width
        chromium.screenshot(SCREENSHOTS / f"gpu-page-{width}.png")


@pytest.mark.parametrize(
    ("broken", "only"), [("shader", ".int32.4512"), ("digest", ".int8.4512"), ("syntax", ".int16.4512")]
)
def test_what_is_broken_makes_the_verdict_fail(page: Path, chromium: Browser, broken: str, only: str) -> None:
    """A shader that computes something else, one that does not compile, and a digest that is another's."""
    text = page.read_text()
    content = content_of(text)
    before = json.dumps(content)
    cases = [case for case in content["cases"] if only in case["name"] and case["column"] == "rows"]
    (case,) = cases
    if broken == "digest":
        case["digest"] = "0" * 64
    else:
        pieces = content["shaders"][case["plan"]["passes"][0]["shader"]]
        entry = next(i for i in pieces if "fn main(" in content["pieces"][i])
        changed = content["pieces"][entry]
        changed += "\nfn broken( {" if broken == "syntax" else ""
        if broken == "shader":
            changed = re.sub(r"(fn main\([^{]*\{)", r"\1 if (true) { return; }", changed)
        assert changed != content["pieces"][entry]
        content["pieces"].append(changed)
        content["shaders"][case["plan"]["passes"][0]["shader"]] = [
            len(content["pieces"]) - 1 if i == entry else i for i in pieces
        ]
    assert json.dumps(content) != before
    start = text.index('id="data">') + len('id="data">')
    altered = page.with_name(f"{broken}.html")
    data = json.dumps(content).replace("</", "<\\/")
    altered.write_text(text[:start] + data + text[text.index("</script>", start) :])
    chromium.look()
    chromium.open(altered, f"#only={only}")
    assert verdict_of(chromium).startswith("✗ Other bits: 1 of ")
    found = cells(chromium)
    assert [name for name, kind in found.items() if kind == "bad"] == [f"{case['type']}/rows"]
    assert "good" in found.values()
    report = json.loads(chromium.evaluate("document.getElementById('report').textContent"))
    assert report["passed"] is False
    assert list(report["differences"]) == [case["name"]]


def compute(chromium: Browser, numbers: str, **choices: Any) -> str:
    """Compute in the playground; return what it says of the results."""
    for name, value in choices.items():
        what = "checked" if name == "exclusive" else "value"
        chromium.evaluate(
            f"(() => {{ const field = document.getElementById('{name}'); field.{what} = {json.dumps(value)};"
            " field.dispatchEvent(new Event('change', { bubbles: true })); })()"
        )
    chromium.evaluate(
        "(() => { const field = document.getElementById('numbers');"
        f" field.value = {json.dumps(numbers)}; field.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()"
    )
    chromium.wait("!document.getElementById('compute').disabled")
    chromium.evaluate("document.getElementById('agrees').textContent = ''")
    chromium.evaluate("document.getElementById('compute').click()")
    chromium.wait("document.getElementById('agrees').textContent || document.getElementById('input-error').textContent")
    return str(chromium.evaluate("document.getElementById('agrees').textContent"))


def results(chromium: Browser) -> list[float]:
    shown = chromium.evaluate("document.getElementById('results').textContent")
    words = re.sub(r"^ *\d+: |[\[\]]", " ", shown, flags=re.MULTILINE).split()
    return [float(word.replace("Infinity", "inf")) for word in words]


SAMPLES = [
    ("float32", "sum", "row", 0, 1),
    ("float32", "sum", "row", 0, 4096),
    ("float32", "product", "row", 0, 257),
    ("int32", "product", "row", 0, 300),
    ("float32", "sum", "40x100", 0, 4000),
    ("int32", "sum", "3x4x5", 1, 60),
]


class TestPlayground:
    @pytest.mark.parametrize(("dtype", "operator", "shape", "axis", "count"), SAMPLES)
    @pytest.mark.parametrize("exclusive", [False, True])
    def test_results_are_the_reference_s(
        self,
        page: Path,
        chromium: Browser,
        dtype: str,
        operator: str,
        shape: str,
        axis: int,
        count: int,
        exclusive: bool,
    ) -> None:
        chromium.open(page)
        sizes = (count,) if shape == "row" else tuple(map(int, shape.split("x")))
        x = np.random.default_rng(count).uniform(0.5, 1.5, count)
        x = (x if dtype == "float32" else x * 1000).astype(dtype)
        said = compute(
            chromium, " ".join(map(str, x.tolist())), operator=operator, type=dtype, shape=shape, axis=str(axis),
            direction="decreasing" if axis == 0 else "increasing", exclusive=exclusive,
        )  # fmt: skip
        assert said.startswith("Every bit is")
        expected = reference.cumulative(
            x.reshape(sizes), operator, axis=axis, exclusive=exclusive, reverse=axis == 0
        ).reshape(-1)
        assert reference.first_difference(np.array(results(chromium)).astype(dtype), expected) is None

    @pytest.mark.parametrize("mode", ["half_even", "toward_zero", "half_away"])
    def test_rounding(self, page: Path, chromium: Browser, mode: str) -> None:
        chromium.open(page)
        numbers = "0.5 1.5 2.5 -0.5 -1.5 -2.5 0.49999997 8388607.5 nan -inf -0.2"
        assert compute(chromium, numbers, operator="round", mode=mode).startswith("Every bit is")
        x = np.array(numbers.split(), np.float32)
        assert reference.first_difference(np.array(results(chromium), np.float32), reference.round(x, mode)) is None

    @pytest.mark.parametrize("operator", ["sum", "product"])
    def test_exceptional_numbers(self, page: Path, chromium: Browser, operator: str) -> None:
        chromium.open(page)
        numbers = "1e20 1e30 -3e38 inf 2 1e-30 -inf 1e-38 3 nan 1"
        assert compute(chromium, numbers, operator=operator, type="float32", shape="row").startswith("Every bit is")
        expected = reference.cumulative(np.array(numbers.split(), np.float32), operator, axis=0)
        assert reference.first_difference(np.array(results(chromium), np.float32), expected) is None

    @pytest.mark.parametrize(
        ("numbers", "message"),
        [
            ("1 two 3", "Number 2 is two, which is no number of float32."),
            (" ".join(["1"] * 4097), "There are 4097 numbers, and a row holds 4096: leave some out."),
            ("", "Type a number."),
        ],
    )
    def test_what_is_no_row_is_refused(self, page: Path, chromium: Browser, numbers: str, message: str) -> None:
        chromium.open(page)
        compute(chromium, numbers, operator="sum", type="float32", shape="row")
        assert chromium.evaluate("document.getElementById('input-error').textContent") == message
        assert chromium.evaluate("document.activeElement.id") == "numbers"


def test_the_steps_are_hillis_and_steele_s(page: Path, chromium: Browser) -> None:
    chromium.open(page)
    texts = []
    for _ in range(5):
        texts.append(chromium.evaluate("document.getElementById('step-text').textContent"))
        chromium.evaluate("document.getElementById('step').click()")
    numbers = [np.array(text.split("Now: ")[1].rstrip(".").split(", "), int) for text in texts]
    x = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3])
    for step, found in enumerate(numbers):
        window = 2**step
        assert found.tolist() == [x[max(0, i - window + 1) : i + 1].sum() for i in range(16)]
    assert "stride 8: each number adds the one 8 to its left" in texts[4]


def test_the_keyboard_reaches_everything_and_everything_has_a_name(page: Path, chromium: Browser) -> None:
    chromium.open(page)
    chromium.wait("!document.getElementById('run').disabled")
    reached = []
    for _ in range(40):
        chromium.press("Tab")
        reached.append(chromium.evaluate("document.activeElement.id"))
    assert {
        "run",
        "operator",
        "type",
        "shape",
        "axis",
        "direction",
        "exclusive",
        "numbers",
        "compute",
        "step",
        "play",
    } <= {*reached}
    chromium.evaluate("document.getElementById('step').focus()")
    chromium.press("Enter", "\r")
    assert chromium.evaluate("document.getElementById('step-text').textContent").startswith("Step 1 of 4")
    nodes = chromium.call("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "combobox", "checkbox", "textbox", "image", "progressbar", "table", "region"}
    named = [node for node in nodes if not node["ignored"] and node.get("role", {}).get("value") in roles]
    assert len(named) >= 12
    assert [node for node in named if not node.get("name", {}).get("value")] == []


def test_a_browser_without_webgpu_is_told_what_to_enable(page: Path, chromium: Browser) -> None:
    hide = chromium.call(
        "Page.addScriptToEvaluateOnNewDocument",
        source="delete Navigator.prototype.gpu; delete globalThis.GPUBufferUsage;",
    )
    try:
        chromium.open(page)
        said = chromium.evaluate("document.getElementById('no-webgpu').textContent")
        assert said.startswith("This browser has no WebGPU. Use Chrome or Edge 113")
        assert "chrome://flags" in said
        assert chromium.evaluate("document.getElementById('no-webgpu').hidden") is False
        assert chromium.evaluate("document.getElementById('run').disabled") is True
        assert chromium.problems == []
        chromium.screenshot(SCREENSHOTS / "gpu-page-without-webgpu.png")
    finally:
        chromium.call("Page.removeScriptToEvaluateOnNewDocument", identifier=hide["identifier"])


def test_cases_are_the_suite_s_own(page: Path) -> None:
    names = [case["name"] for case in content_of(page.read_text())["cases"]]
    assert [parse(name).name for name in names] == names
    assert len(set(names)) == len(names)


def test_a_plan_for_each_length_is_the_planner_s() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "gpu_page.py"))
    contents = script["Contents"]()
    plans = script["playground"](contents)["plans"]["float32/sum/exclusive/decreasing/row/0"]
    by_length = {}
    for one in plans:
        for i, length in enumerate(range(one["from"], one["to"] + 1, one["step"])):
            by_length[length] = script["at_length"](one["plan"], one["growth"], i)
    assert sorted(by_length) == list(range(1, script["ROW"] + 1))
    for length in [*range(1, 300), *range(300, 4097, 41), 4095, 4096]:
        layout = script["Layout"].packed((length,))
        element, options = script["by_name"]("float32"), script["ScanOptions"](exclusive=True, reverse=True)
        problem = script["scan_problem"](element, script["Operator"].SUM, layout, layout, 0, options)
        assert by_length[length] == contents.plan(problem, {"input": 4 * length, "output": 4 * length})
