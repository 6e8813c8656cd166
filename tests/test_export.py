"""Plans as data, and the page that runs them: without a browser."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wgpu

from dmlgpu import reference
from dmlgpu.conformance import Placement, ScanCase, parse
from dmlgpu.planning.dispatch import Plan
from dmlgpu.planning.export import exported_plan
from dmlgpu.planning.plan import KERNELS, plan_problem
from dmlgpu.planning.windows import Limits
from dmlgpu.runtime.device import Device
from dmlgpu.runtime.executor import submit

ROOT = Path(__file__).parent.parent
CASE = "sum.float32.2x257.axis1.inclusive.increasing.packed-to-packed.tiles.plain"


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
        assert "PASSED: 1 of 1 case have the reference's bits" in out

    def test_a_page_with_other_bits_fails(self) -> None:
        with page("--case", CASE) as one:
            one.post("/opened", json.dumps(Page.OPENED))
            path, answer = "/next", b""
            while (reply := one.post(path, answer))[0] == 200:
                path, answer = "/result", parsed(reply[1])[1]["output"]
            status, out, _ = one.end()
        assert status == 1
        assert f"{CASE}: at [0, 0] the device has " in out
        assert f"  python scripts/in_browser.py --case {CASE}\n" in out
        assert "FAILED: 0 of 1 case have" in out

    def test_an_error_in_the_page_is_a_difference(self) -> None:
        with page("--case", CASE) as one:
            one.post("/opened", json.dumps(Page.OPENED))
            reply = one.post("/next")
            while reply[0] == 200:
                reply = one.post("/error", "a shader does not compile")
            status, out, _ = one.end()
        assert status == 1
        assert f"{CASE}: PageError: a shader does not compile\n" in out

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
