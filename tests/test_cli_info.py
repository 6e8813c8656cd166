"""``dmlgpu info``: the report, with a device and without one."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dmlgpu
from dmlgpu.cli import info, main
from dmlgpu.cli.info import DriverFile, driver_files, driver_folders, environment
from dmlgpu.errors import DeviceError
from dmlgpu.runtime import adapters, device


def icd(path: Path, library: str, **more: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"ICD": {"library_path": library, "api_version": "1.3.0", **more}}))
    return path


def report(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    status = main(["info", *arguments])
    out, err = capsys.readouterr()
    assert err == ""
    return status, out


class TestReport:
    def test_says_what_a_bug_report_needs(self, capsys: pytest.CaptureFixture[str]) -> None:
        status, out = report(capsys)
        assert status == 0
        assert f"numpy        {np.__version__}\n" in out
        for adapter in dmlgpu.devices():
            assert f" {adapter.index}  {adapter.summary}\n" in out
            assert adapter.driver in " ".join(out.split())
        assert f"* {dmlgpu.default_device().description.index}  {dmlgpu.default_device().summary}\n" in out
        for word in (*info.FEATURES, *info.LIMITS.values(), "float64  ", "subnormals survive   sum", "Vulkan"):
            assert word in " ".join(out.split()) or word in out

    def test_json_says_the_same(self, capsys: pytest.CaptureFixture[str]) -> None:
        status, out = report(capsys, "--json")
        found = json.loads(out)
        chosen = dmlgpu.default_device()
        assert status == 0
        assert found["versions"].keys() == {"dmlgpu", "wgpu", "wgpu-native", "numpy", "python", "system"}
        assert [adapter["summary"] for adapter in found["adapters"]] == [each.summary for each in dmlgpu.devices()]
        assert found["adapters"][0]["limits"].keys() >= info.LIMITS.keys()
        assert found["chosen"]["index"] == chosen.description.index
        assert found["device"]["keeps_subnormals"] == dict(chosen.subnormals())
        assert found["device"]["native_float64"] == ({"shader-f64", "shader-int64"} <= chosen.description.features)
        assert found["problems"] == []

    @pytest.mark.parametrize("backend", ["D3D12", "Vulkan"])
    def test_direct3d_has_a_note_about_its_compiler(
        self, backend: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        chosen = dmlgpu.default_device().description
        monkeypatch.setattr(adapters, "devices", lambda: [replace(chosen, backend=backend, index=0)])
        _, out = report(capsys)
        assert ("compiles for it with FXC" in " ".join(out.split())) == (backend == "D3D12")

    def test_every_adapter_can_be_asked_for(self, capsys: pytest.CaptureFixture[str]) -> None:
        for adapter in dmlgpu.devices():
            status, out = report(capsys, "--device", str(adapter.index))
            assert status == 0
            assert f"* {adapter.index}  {adapter.summary}\n     used      --device {adapter.index} names it\n" in out

    def test_the_environment_chooses(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        last = dmlgpu.devices()[-1]
        monkeypatch.setenv("DMLGPU_ADAPTER", str(last.index))
        status, out = report(capsys)
        assert status == 0
        assert f"* {last.index}  {last.summary}\n     used      DMLGPU_ADAPTER={last.index} names it\n" in out
        assert f"\n  DMLGPU_ADAPTER={last.index}\n" in out

    @pytest.mark.parametrize(
        ("count", "reason"), [(1, "it is the only one"), (2, "the best one: GPUs before software")]
    )
    def test_else_the_best_one_is_taken(self, monkeypatch: pytest.MonkeyPatch, count: int, reason: str) -> None:
        monkeypatch.delenv("DMLGPU_ADAPTER", raising=False)
        assert info._reason(None, count).startswith(reason)

    @pytest.mark.parametrize(
        ("name", "value", "text"),
        [
            ("max-buffer-size", 2**31, "2 GiB"),
            ("max-storage-buffer-binding-size", 2**27, "128 MiB"),
            ("max-compute-workgroup-storage-size", 2**14, "16 KiB"),
            ("max-buffer-size", 2**31 - 1, "2147483647 bytes"),
            ("min-storage-buffer-offset-alignment", 32, "32 bytes"),
            ("max-compute-workgroups-per-dimension", 65535, "65535"),
        ],
    )
    def test_limits_are_readable(self, name: str, value: int, text: str) -> None:
        assert info._limit(name, value) == text


class TestProblems:
    def test_no_adapter(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(adapters, "enumerate_adapters", list)
        monkeypatch.setattr(info, "vulkan_loader", lambda: "libvulkan.so.1 is missing")
        monkeypatch.setenv("VK_DRIVER_FILES", "gone.json")
        status, out = report(capsys)
        words = " ".join(out.split())
        assert status == 1
        assert "problem: no WebGPU adapter is visible to this process: " in words
        assert "problem: libvulkan.so.1 is missing: install the Vulkan loader" in words
        assert "problem: VK_DRIVER_FILES names no usable driver file: correct it or unset it" in words
        assert "adapters: none" in out
        assert "wgpu-native" in out

    def test_no_such_adapter(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DMLGPU_ADAPTER", "frob")
        status, out = report(capsys)
        assert status == 1
        assert "problem: DMLGPU_ADAPTER 'frob' is in no adapter's summary" in out
        assert dmlgpu.devices()[0].summary in out
        assert "* " not in out

    @pytest.mark.parametrize(
        ("failure", "line"),
        [(DeviceError("the adapter gives no device"), "the adapter gives no device"), (KeyError("x"), "KeyError: 'x'")],
    )
    def test_an_adapter_without_a_device(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, failure: Exception, line: str
    ) -> None:
        def fail(choice: object) -> None:
            raise failure

        monkeypatch.setattr(device, "resolve_device", fail)
        status, out = report(capsys, "--json")
        found = json.loads(out)
        assert status == 1
        assert found["problems"] == [line]
        assert found["chosen"] is not None
        assert found["device"] is None

    def test_wgpu_that_cannot_be_imported(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for module in ("dmlgpu.runtime.adapters", "dmlgpu.runtime.wgpu_private"):
            monkeypatch.setitem(sys.modules, module, None)
        status, out = report(capsys)
        assert status == 1
        assert "wgpu-native  (cannot be loaded: " in out
        assert "problem: ModuleNotFoundError: " in out


class TestDriverFiles:
    def test_a_variable_replaces_the_search(self, tmp_path: Path) -> None:
        (tmp_path / "lib.so").touch()
        good = icd(tmp_path / "good.json", "./lib.so")
        bare = icd(tmp_path / "bare.json", "libGL.so.1")
        missing = icd(tmp_path / "missing.json", "/gone/lib.so")
        (tmp_path / "bad.json").write_text("{")
        (tmp_path / "other.json").write_text('{"layer": {}}')
        places = [good, bare, missing, tmp_path / "bad.json", tmp_path / "other.json", tmp_path / "gone.json"]
        source, found = driver_files({"VK_DRIVER_FILES": info.os.pathsep.join(map(str, places)), "HOME": "/gone"})
        assert source == "VK_DRIVER_FILES"
        assert found == [
            DriverFile(str(good), "./lib.so", "1.3.0"),
            DriverFile(str(bare), "libGL.so.1", "1.3.0"),
            DriverFile(str(missing), "/gone/lib.so", "1.3.0", "its library is missing"),
            DriverFile(str(places[3]), problem="not a driver file"),
            DriverFile(str(places[4]), problem="not a driver file"),
            DriverFile(str(places[5]), problem="No such file or directory"),
        ]

    def test_the_older_variable_counts_where_the_newer_is_not_set(self, tmp_path: Path) -> None:
        old = icd(tmp_path / "old.json", "libold.so")
        assert driver_files({"VK_ICD_FILENAMES": str(old)}) == (
            "VK_ICD_FILENAMES",
            [DriverFile(str(old), "libold.so", "1.3.0")],
        )
        new = icd(tmp_path / "new.json", "libnew.so")
        assert driver_files({"VK_ICD_FILENAMES": str(old), "VK_DRIVER_FILES": str(new)})[0] == "VK_DRIVER_FILES"

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows lists drivers in its registry")
    def test_folders_are_searched_in_the_loader_s_order(self, tmp_path: Path) -> None:
        variables = {name: str(tmp_path / name) for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_DATA_DIRS")}
        second = icd(tmp_path / "XDG_DATA_DIRS" / "vulkan" / "icd.d" / "b.json", "libb.so")
        first = icd(tmp_path / "XDG_DATA_HOME" / "vulkan" / "icd.d" / "a.json", "liba.so")
        added = icd(tmp_path / "added" / "c.json", "libc.so")
        variables |= {"XDG_CONFIG_DIRS": str(tmp_path / "none"), "VK_ADD_DRIVER_FILES": str(added.parent)}
        source, found = driver_files(variables)
        mine = [file.path for file in found if file.path.startswith(str(tmp_path))]
        assert source == "standard folders"
        assert mine == [str(first), str(second), str(added)]

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows lists drivers in its registry")
    def test_standard_folders(self) -> None:
        assert [str(folder) for folder in driver_folders({"HOME": "/h"})] == [
            "/h/.config/vulkan/icd.d",
            "/etc/xdg/vulkan/icd.d",
            "/etc/vulkan/icd.d",
            "/h/.local/share/vulkan/icd.d",
            "/usr/local/share/vulkan/icd.d",
            "/usr/share/vulkan/icd.d",
        ]


class TestEnvironment:
    def test_only_what_matters_is_shown_and_no_secrets(self) -> None:
        variables = {
            "HOME": "/home/someone",
            "PATH": "/usr/bin",
            "DMLGPU_ADAPTER": "llvmpipe",
            "WGPU_BACKEND": "vulkan",
            "WGPUPY_WGPU_ADAPTER_NAME": "x",
            "MESA_LOADER_DRIVER_OVERRIDE": "zink",
            "LIBGL_ALWAYS_SOFTWARE": "1",
            "GALLIUM_DRIVER": "llvmpipe",
            "VK_DRIVER_FILES": "/a.json",
            "VK_LOADER_DEBUG": "all",
            "VK_ACCESS_TOKEN": "hush",
            "VK_GROUP": "hush",
            "MESA_SECRET": "hush",
            "GITHUB_TOKEN": "hush",
            "DISPLAY": ":0",
            "XDG_RUNTIME_DIR": "",
        }
        assert environment(variables) == {
            "DISPLAY": "(set)",
            "DMLGPU_ADAPTER": "llvmpipe",
            "GALLIUM_DRIVER": "llvmpipe",
            "LIBGL_ALWAYS_SOFTWARE": "1",
            "MESA_LOADER_DRIVER_OVERRIDE": "zink",
            "MESA_SECRET": "(set)",
            "VK_ACCESS_TOKEN": "(set)",
            "VK_DRIVER_FILES": "/a.json",
            "VK_GROUP": "(set)",
            "VK_LOADER_DEBUG": "all",
            "WGPUPY_WGPU_ADAPTER_NAME": "x",
            "WGPU_BACKEND": "vulkan",
            "XDG_RUNTIME_DIR": "(empty)",
        }
