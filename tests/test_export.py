"""Plans as data, the command that writes them, and the pages that run them."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wgpu

from dmlgpu import reference
from dmlgpu.conformance import Placement, ScanCase, parse
from dmlgpu.dtypes import ELEMENT_TYPES, ElementType
from dmlgpu.planning.dispatch import Plan
from dmlgpu.planning.export import exported_operator, exported_plan
from dmlgpu.planning.plan import KERNELS, plan_problem
from dmlgpu.planning.windows import Limits
from dmlgpu.runtime.device import Device
from dmlgpu.runtime.executor import submit

from .browser_session import Browser, browser
from .cli_runner import Run, one_line, process, runner
from .harness import numbers

ROOT = Path(__file__).parent.parent
CASE = "sum.float32.2x257.axis1.inclusive.increasing.packed-to-packed.lookback.plain"


def run_exported(device: Device, plan: dict[str, Any], shaders: Mapping[str, str], contents: dict[str, Any]) -> bytes:
    """Do what a program without dmlgpu does: only from what was exported."""
    gpu = device.gpu_device
    usage = wgpu.BufferUsage
    buffers = {}
    for name, size in plan["buffers"].items():
        if size:
            buffers[name] = gpu.create_buffer(size=size, usage=usage.STORAGE | usage.COPY_SRC | usage.COPY_DST)
    for name, content in contents.items():
        gpu.queue.write_buffer(buffers[name], 0, content)
    encoder = gpu.create_command_encoder()
    for one in plan["passes"]:
        uniforms = gpu.create_buffer_with_data(data=np.array(one["uniforms"], np.uint32), usage=usage.UNIFORM)
        resources = {
            each["binding"]: {"buffer": uniforms}
            if each["type"] == "uniform"
            else {"buffer": buffers[each["buffer"]], "offset": each["offset"], "size": each["size"]}
            for each in one["bindings"]
        }
        layout = gpu.create_bind_group_layout(
            entries=[
                {"binding": each["binding"], "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": each["type"]}}
                for each in one["bindings"]
            ]
        )
        pipeline = gpu.create_compute_pipeline(
            layout=gpu.create_pipeline_layout(bind_group_layouts=[layout]),
            compute={
                "module": gpu.create_shader_module(code=shaders[one["shader"]]),
                "entry_point": "main",
                "constants": one["constants"],
            },
        )
        entries = [{"binding": number, "resource": resource} for number, resource in resources.items()]
        compute = encoder.begin_compute_pass()
        compute.set_pipeline(pipeline)
        compute.set_bind_group(0, gpu.create_bind_group(layout=layout, entries=entries))
        compute.dispatch_workgroups(*one["grid"])
        compute.end()
    submit(gpu, [encoder.finish()])
    return bytes(gpu.queue.read_buffer(buffers["output"]))


@pytest.mark.combinations
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("relation", ["to", "in-place"])
def test_an_exported_plan_is_all_that_it_takes(device: Device, kernel: str, relation: str) -> None:
    placement = Placement("packed", relation, "packed")
    case = ScanCase("float32", (2, 4112), placement, "plain", "sum", 1, exclusive=True, reverse=False, way=kernel)
    x = np.ascontiguousarray(case.x())
    contents = {"output": x} if relation == "in-place" else {"input": x, "output": np.zeros_like(x)}
    plan = plan_problem(case.problem(), Limits(), one_buffer=relation == "in-place", kernel=kernel)
    exported, shaders = exported_plan(plan, {name: content.nbytes for name, content in contents.items()})
    assert set(exported["buffers"]) == {*contents, "scratch"}
    result = run_exported(device, json.loads(json.dumps(exported)), shaders, contents)
    assert reference.first_difference(np.frombuffer(result, np.float32).reshape(x.shape), case.expected()) is None


def test_shaders_have_one_name_each() -> None:
    names: dict[str, str] = {}
    for kernel in KERNELS:
        problem = parse(CASE).problem()
        plan: Plan = plan_problem(problem, Limits(), kernel=kernel)
        _, shaders = exported_plan(plan, {"input": 2056, "output": 2056})
        assert {name.partition(".")[0] for name in shaders} == {one.pipeline.kernel for one in plan.passes}
        for name, text in shaders.items():
            assert names.setdefault(name, text) == text
    assert len(set(names.values())) == len(names)


class Page:
    """A stand-in for the page: speaks to the server as scripts/page/page.js does."""

    OPENED = {  # noqa: RUF012 - a constant
        "adapter": {"vendor": "a", "architecture": "b", "description": "", "isFallback": True},
        "features": [],
        "browser": "Mozilla/5.0 (X11) Firefox/200.0",
    }

    def __init__(self, process: subprocess.Popen[str], connection: HTTPConnection) -> None:
        self._process, self._connection = process, connection

    def get(self, path: str) -> tuple[int, bytes]:
        self._connection.request("GET", path)
        response = self._connection.getresponse()
        return response.status, response.read()

    def post(self, path: str, body: bytes | str = b"") -> tuple[int, bytes]:
        self._connection.request("POST", path, body)
        response = self._connection.getresponse()
        return response.status, response.read()

    def end(self) -> tuple[int, str, str]:
        out, err = self._process.communicate(timeout=60)
        return self._process.returncode, out, err


@contextmanager
def page(*arguments: str) -> Iterator[Page]:
    command = [sys.executable, str(ROOT / "scripts" / "in_browser.py"), "--by-hand", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            with closing(HTTPConnection(address_of(process), timeout=60)) as connection:
                yield Page(process, connection)
        finally:
            process.kill()


def address_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    words = process.stdout.readline().split()
    assert words[:1] == ["open"]
    return words[1].removeprefix("http://").rstrip("/")


def parsed(job: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    end = 4 + int.from_bytes(job[:4], "little")
    content = json.loads(job[4:end])
    buffers = {}
    for name in content["contents"]:
        start, end = end, end + content["plan"]["buffers"][name]
        buffers[name] = job[start:end]
    assert end == len(job)
    return content["plan"], buffers


class TestPage:
    def test_a_page_with_the_right_bits_passes(self, device: Device) -> None:
        with page("--case", CASE) as one:
            one.post("/opened", json.dumps(Page.OPENED))
            path, answer, plans = "/next", b"", 0
            while (reply := one.post(path, answer))[0] == 200:
                plan, buffers = parsed(reply[1])
                shaders = {each["shader"]: one.get(f"/shaders/{each['shader']}")[1].decode() for each in plan["passes"]}
                path, answer = "/result", run_exported(device, plan, shaders, buffers)
                plans += 1
            assert reply == (204, b"")
            status, out, err = one.end()
        assert (status, err) == (0, "")
        assert plans == 3  # two for subnormals
        assert "on a b in Firefox/200.0\ndriver: a b, through a page in Firefox/200.0\n" in out
        assert "PASSED: 1 of 1 case has the reference's bits" in out

    def test_a_page_with_other_bits_fails(self) -> None:
        with page("--case", CASE) as one:
            one.post("/opened", json.dumps(Page.OPENED))
            path, answer = "/next", b""
            while (reply := one.post(path, answer))[0] == 200:
                path, answer = "/result", parsed(reply[1])[1]["output"]
            status, out, _ = one.end()
        assert status == 1
        assert f"{CASE}\n  at [0, 0] the device has " in out
        assert f"  python scripts/in_browser.py --case {CASE}\n" in out
        assert "FAILED: 0 of 1 case has" in out

    def test_an_error_in_the_page_is_a_difference(self) -> None:
        with page("--case", CASE) as one:
            one.post("/opened", json.dumps(Page.OPENED))
            reply = one.post("/next")
            while reply[0] == 200:
                reply = one.post("/error", "a shader does not compile")
            status, out, _ = one.end()
        assert status == 1
        assert f"{CASE}\n  PageError: a shader does not compile\n" in out

    def test_a_lost_device_ends_the_run(self) -> None:
        with page("--case", CASE) as one:
            one.post("/opened", json.dumps(Page.OPENED))
            assert one.post("/next")[0] == 200
            one.post("/lost", "unknown: the GPU is gone")
            status, out, _ = one.end()
        assert status == 1
        assert "the page's device is lost: unknown: the GPU is gone" in out

    def test_a_browser_without_webgpu_is_told_in_one_line(self) -> None:
        with page("--case", CASE) as one:
            one.post("/lost", "this browser has no WebGPU: the page finds no navigator.gpu")
            status, _, err = one.end()
        assert status == 2
        assert err == "in_browser.py: this browser has no WebGPU: the page finds no navigator.gpu\n"

    @pytest.mark.parametrize("path", ["/", "/page.js", "/loader.js"])
    def test_the_page_is_served_and_nothing_else(self, path: str) -> None:
        with page("--case", CASE) as one:
            status, content = one.get(path)
            assert (status, content[:2]) in ((200, b"<!"), (200, b"//"))
            assert one.get("/../in_browser.py") == (404, b"")

    @pytest.mark.parametrize("option", [("--device", "0"), ("--jobs", "2"), ("--json", "x"), ("--reference",)])
    def test_what_is_not_for_a_page_is_refused(self, option: tuple[str, ...]) -> None:
        command = [sys.executable, str(ROOT / "scripts" / "in_browser.py"), *option]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 2
        assert done.stderr == f"in_browser.py: {option[0]} is not for a page; leave it out\n"


# dmlgpu export


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in an empty folder of its own."""
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


def read_folder(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Return an exported plan and its shaders, from all the files there are."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    plan: dict[str, Any] = json.loads(texts.pop("plan.json"))
    return plan, texts


# Arguments, the type, and what results should be.
EXPORTED: list[tuple[str, str, Callable[[Any], Any]]] = [
    ("cumsum --shape 3x5000 --axis 1", "float32", lambda x: reference.cumulative(x, "sum", axis=1)),
    (
        "cumsum --shape 40x70x3 --axis 0 --exclusive --reverse",
        "float32",
        lambda x: reference.cumulative(x, "sum", axis=0, exclusive=True, reverse=True),
    ),
    (
        "cumsum --shape 2^16 --precision compensated",
        "float32",
        lambda x: reference.cumulative(x, "sum", axis=0, compensated=True),
    ),
    (
        "cumsum --shape 3x5000 --axis 1 --monotone --exclusive",
        "float32",
        lambda x: reference.cumulative(x, "sum", axis=1, exclusive=True, monotone=True),
    ),
    (
        "cumsum --shape 300x40 --axis 0 --monotone --reverse --in-place",
        "float16",
        lambda x: reference.cumulative(x, "sum", axis=0, reverse=True, monotone=True),
    ),
    ("cumsum --shape 7x300 --axis -1 --in-place", "int64", lambda x: reference.cumulative(x, "sum", axis=1)),
    ("cumsum --shape 1001", "uint8", lambda x: reference.cumulative(x, "sum", axis=0)),
    ("cumprod --shape 3x777 --axis 1", "float64", lambda x: reference.cumulative(x, "product", axis=1)),
    ("cumprod --shape 5x33 --axis 0 --in-place", "float16", lambda x: reference.cumulative(x, "product", axis=0)),
    ("round --shape 7x13", "float16", lambda x: reference.round(x, "half_even")),
    ("round --shape 1000 --mode half-away --in-place", "float64", lambda x: reference.round(x, "half_away")),
    (
        "cumsum --shape 2^17 --limit maxStorageBufferBindingSize=65536 --limit minStorageBufferOffsetAlignment=32",
        "float32",
        lambda x: reference.cumulative(x, "sum", axis=0),
    ),
]


PLANNED = [(*one, False) for one in EXPORTED] + [(*one, True) for one in EXPORTED[:-1]]  # for a device, with its limits


@pytest.mark.combinations
@pytest.mark.parametrize(("arguments", "dtype", "expected", "for_device"), PLANNED)
def test_what_is_exported_gives_the_references_bits(
    cli: Run, device: Device, arguments: str, dtype: str, expected: Callable[[Any], Any], for_device: bool
) -> None:
    if for_device:
        arguments += f" --device {device.description.index}"
    status, out, _ = cli("export", *arguments.split(), "--type", dtype, "-o", "folder")
    assert status == 0
    plan, shaders = read_folder(Path("folder"))
    assert {one["shader"] for one in plan["passes"]} == {*shaders}
    assert out.startswith(f"wrote folder: plan.json and {len(shaders)} shader")
    x = numbers(tuple(plan["shape"]), dtype, "product" if plan["operator"] == "cumprod" else "sum")
    padded = np.zeros(-(-x.nbytes // 4) * 4, np.uint8)
    padded[: x.nbytes] = np.ascontiguousarray(x).reshape(-1).view(np.uint8)
    in_place = "--in-place" in arguments
    assert {name for name, size in plan["buffers"].items() if name != "scratch" and size == padded.nbytes} == (
        {"output"} if in_place else {"input", "output"}
    )
    result = run_exported(device, plan, shaders, {"output" if in_place else "input": padded})
    found = np.frombuffer(result, np.uint8)[: x.nbytes].view(dtype).reshape(x.shape)
    assert reference.first_difference(found, expected(x)) is None


def test_limits_say_what_a_device_needs(cli: Run) -> None:
    sizes = "maxStorageBufferBindingSize=65536"
    assert cli("export", "cumsum", "--shape", "2^17", "--limit", sizes, "-o", "small").status == 0
    assert cli("export", "cumsum", "--shape", "2^17", "-o", "large").status == 0
    small, large = (read_folder(Path(name))[0] for name in ("small", "large"))
    assert small["limits"]["maxStorageBufferBindingSize"] <= 65536 < large["limits"]["maxStorageBufferBindingSize"]
    assert len(small["passes"]) > len(large["passes"])
    assert small["limits"]["maxBufferSize"] == large["limits"]["maxBufferSize"] == 4 * 2**17
    for plan in (small, large):
        bindings = [binding for one in plan["passes"] for binding in one["bindings"] if "buffer" in binding]
        assert max(binding["size"] for binding in bindings) == plan["limits"]["maxStorageBufferBindingSize"]
        for binding in bindings:
            assert binding["offset"] % plan["limits"]["minStorageBufferOffsetAlignment"] == 0
            assert binding["offset"] + binding["size"] <= plan["buffers"][binding["buffer"]]


@pytest.mark.parametrize("element", ELEMENT_TYPES, ids=str)
def test_bindings_lie_in_the_buffers_and_shaders_need_no_feature(element: ElementType) -> None:
    for sizes in ((1,), (3,), (5, 7), (17, 4099)):
        for in_place in (False, True):
            plan, shaders = exported_operator(
                "cumsum", sizes, axis=0, dtype=element.name, in_place=in_place, limits=Limits(float64=True)
            )
            for one in plan["passes"]:
                for binding in one["bindings"]:
                    if binding["type"] != "uniform":
                        assert binding["offset"] + binding["size"] <= plan["buffers"][binding["buffer"]]
            assert not any(re.search(r"\b(f64|f16|i64|u64|enable)\b", _code(text)) for text in shaders.values())


def _code(text: str) -> str:
    return re.sub("//.*", "", text)


def test_the_page_names_every_field(cli: Run) -> None:
    page = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
    told = {
        head: [line.split("`")[1] for line in table.splitlines() if line.startswith("| `")]
        for head, table in re.findall(r"^\| (field[\w ]*) \|.*\n\|.*\n((?:\|.*\n)+)", page, re.MULTILINE)
    }
    cli("export", "cumsum", "--shape", "3", "-o", "scan")
    cli("export", "round", "--shape", "3", "-o", "round")
    plans = [read_folder(Path(name))[0] for name in ("scan", "round")]
    passes = [one for plan in plans for one in plan["passes"]]
    bindings = [binding for one in passes for binding in one["bindings"]]
    for head, found in (("field", plans), ("field of a pass", passes), ("field of a binding", bindings)):
        assert {*told[head]} == {name for one in found for name in one}
    assert (plans[0]["format"], plans[0]["version"]) == ("dmlgpu plan", 1)


def test_the_page_shows_what_the_command_says(cli: Run) -> None:
    page = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
    found = re.search(r"^\$ dmlgpu (.*)\n(wrote .*\n)", page, re.MULTILINE)
    assert found is not None
    assert cli(*found[1].split()) == (0, found[2], "")


def test_without_a_device_no_wgpu_is_imported(tmp_path: Path) -> None:
    code = (
        "import sys; from dmlgpu.cli import main; status = main(['export', 'round', '--shape', '4', '-o', 'folder']); "
        "sys.exit(status or 'wgpu' in sys.modules)"
    )
    assert process(folder=tmp_path, code=("-c", code)).status == 0


WRONG = {
    "no operator": ("cumavg --shape 3", "argument OPERATOR: invalid choice: 'cumavg' (choose from 'cumsum', 'cumprod'"),
    "no shape": ("cumsum --shape 3,4", "'3,4' is no shape: write sizes with an x between, as in 4096x4096"),
    "a negative size": ("cumsum --shape 3x-4", "'3x-4' is no shape"),
    "an empty shape": ("cumsum --shape 0x4 --axis 1", "shape is (0, 4); give sizes of 1 or more"),
    "nine dimensions": ("cumsum --shape 1x1x1x1x1x1x1x1x1 --axis 0", "has 9 dimensions; at most 8 are supported"),
    "too many elements": ("cumsum --shape 2^32", "4294967296 elements; at most 2^32-1 are supported"),
    "no type": ("cumsum --shape 3 --type float31", "argument --type: invalid choice: 'float31'"),
    "no axis": ("cumsum --shape 3x4", "--axis is missing, and --shape has 2 dimensions: give --axis 0 to 1"),
    "an axis too far": ("cumsum --shape 3x4 --axis 2", "axis 2 is out of range for an array of 2 dimensions: give -2"),
    "an axis to round": ("round --shape 3 --axis 0", "axis is for scans, and operator is 'round': leave it out"),
    "round integers": ("round --shape 3 --type int8", "dtype is int8, whose elements round to themselves"),
    "compensated products": ("cumprod --shape 3 --precision compensated", "which is for sums of float32"),
    "monotone products": ("cumprod --shape 3 --monotone", "monotone is True, which is for sums"),
    "no limit": ("cumsum --shape 3 --limit maxBindGroups=3", "'maxBindGroups=3' names no limit that plans depend on"),
    "no number": ("cumsum --shape 3 --limit maxStorageBufferBindingSize=x", "gives no number: write it as in maxStor"),
    "an odd alignment": ("cumsum --shape 3 --limit minStorageBufferOffsetAlignment=3", "must be a power of two"),
    "two limits": (
        "cumsum --shape 3 --device 0 --limit minStorageBufferOffsetAlignment=32",
        "--device and --limit are both given: a device has limits of its own",
    ),
    "a full folder": ("cumsum --shape 3 -o full", "--output full is a folder that is not empty: give a new one"),
    "a file": ("cumsum --shape 3 -o full/file", "--output full/file is a file: give a folder"),
    "a link to nothing": ("cumsum --shape 3 -o full/link", "--output full/link is a link to nothing: give a folder"),
    "no parent": ("cumsum --shape 3 -o no/folder", "--output no/folder: no is not a folder; create it first"),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_exported_is_one_line(cli: Run, arguments: str, message: str) -> None:
    Path("full").mkdir()
    Path("full", "file").write_text("mine")
    there = ["full", str(Path("full", "file"))]
    if "link" in arguments:
        Path("full", "link").symlink_to("nothing")
        there.append(str(Path("full", "link")))
    into = [] if " -o " in arguments else ["-o", "folder"]
    status, out, err = cli("export", *arguments.split(), *into)
    assert (status, out) == (2, "")
    assert message in one_line(err)
    assert [str(path) for path in sorted(Path().rglob("*"))] == there


def test_an_empty_folder_is_filled_and_a_failure_leaves_it_empty(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("folder").mkdir()
    write = Path.write_text

    def full(path: Path, *arguments: Any, **options: Any) -> int:
        if path.name == "plan.json":
            raise OSError(28, "No space left on device", str(path))
        return write(path, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        for name in ("folder", "new"):
            status, _, err = cli("export", "cumsum", "--shape", "3", "-o", name)
            assert (status, "No space left on device" in one_line(err)) == (2, True)
    assert [path.name for path in Path().rglob("*")] == ["folder"]
    assert cli("export", "cumsum", "--shape", "3", "-o", "folder").status == 0
    assert len(list(Path("folder").iterdir())) == 2


# The loader, in headless Chromium: make test-browser


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """Serve a folder with the loader and an empty page; give the folder and its address."""
    folder = tmp_path_factory.mktemp("served")
    shutil.copy(ROOT / "scripts" / "page" / "loader.js", folder)
    (folder / "index.html").write_text("<!doctype html><title>Exported plans</title>")

    class Handler(SimpleHTTPRequestHandler):
        extensions_map = {".js": "text/javascript", ".html": "text/html"}  # noqa: RUF012 - as in the base class

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(folder))

        def end_headers(self) -> None:
            self.send_header("Cache-Control", "no-store")
            super().end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def loading(served: tuple[Path, str]) -> Iterator[tuple[Path, Browser]]:
    """Give the folder, and a browser that shows its page and has a device."""
    folder, address = served
    with browser() as chromium:
        chromium.call("Page.navigate", url=address)
        chromium.wait("document.readyState === 'complete' && location.protocol === 'http:'")
        chromium.evaluate(
            """(async () => {
              Object.assign(globalThis, await import("/loader.js"));
              globalThis.device = await (await navigator.gpu.requestAdapter()).requestDevice();
              globalThis.run = async (address, name, input) => {
                const { plan, readShader } = await readExport(address, device);
                const runner = new Runner(device, readShader);
                const bytes = Uint8Array.from(atob(input), (character) => character.charCodeAt(0));
                const output = new Uint8Array(await runner.run(plan, { [name]: bytes }));
                let text = "";
                output.forEach((byte) => { text += String.fromCharCode(byte); });
                return btoa(text);
              };
            })()"""
        )
        yield folder, chromium


@pytest.mark.browser
@pytest.mark.parametrize(("arguments", "dtype", "expected"), EXPORTED[:-1], ids=[one[0] for one in EXPORTED[:-1]])
def test_the_loader_gives_the_references_bits(
    loading: tuple[Path, Browser],
    cli: Run,
    arguments: str,
    dtype: str,
    expected: Callable[[Any], Any],
    request: pytest.FixtureRequest,
) -> None:
    folder, chromium = loading
    name = re.sub(r"\W", "_", request.node.name)
    assert cli("export", *arguments.split(), "--type", dtype, "-o", str(folder / name)).status == 0
    plan, _ = read_folder(folder / name)
    x = numbers(tuple(plan["shape"]), dtype, "product" if plan["operator"] == "cumprod" else "sum")
    into = "output" if "--in-place" in arguments else "input"
    data = base64.b64encode(np.ascontiguousarray(x).tobytes()).decode()
    answer = base64.b64decode(chromium.evaluate(f"run('/{name}/', '{into}', '{data}')"))
    found = np.frombuffer(answer, np.uint8)[: x.nbytes].view(dtype).reshape(x.shape)
    assert reference.first_difference(found, expected(x)) is None


@pytest.mark.browser
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "is no plan of version 1"),
        ({"limits": {"maxStorageBufferBindingSize": 2**40}}, "needs a device with maxStorageBufferBindingSize 109951"),
        ({"limits": {"minStorageBufferOffsetAlignment": 4}}, "needs a device with minStorageBufferOffsetAlignment 4"),
        ({"passes": [{"shader": "no.wgsl", "constants": {}, "bindings": []}]}, "no.wgsl cannot be read: status 404"),
    ],
)
def test_the_loader_refuses_what_it_cannot_run(
    loading: tuple[Path, Browser], cli: Run, change: dict[str, Any], message: str
) -> None:
    folder, chromium = loading
    assert cli("export", "cumsum", "--shape", "3", "-o", str(folder / "changed")).status == 0
    plan_file = folder / "changed" / "plan.json"
    plan_file.write_text(json.dumps(json.loads(plan_file.read_text()) | change))
    said = chromium.evaluate("run('/changed/', 'input', '').then(() => 'done', (error) => error.message)")
    shutil.rmtree(folder / "changed")
    assert message in said


def test_the_loader_is_short() -> None:
    assert len((ROOT / "scripts" / "page" / "loader.js").read_text().splitlines()) <= 150
