"""``python -m benchmarks.software_kernels``: each trial is of its kernel, and of what would run without it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import software_kernels
from benchmarks.software_kernels import TRIALS, Trial, kernels_of, main, plans
from dmlgpu.bench.rows import Row
from dmlgpu.planning.windows import Limits
from dmlgpu.runtime.device import Device

from .harness import changed

ROOT = Path(__file__).resolve().parent.parent
LAVAPIPE = changed(Limits(), offset_alignment=32, software=True, columns=True, float64=True, dispatch_elements=2**24)


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: f"{trial.kernel}: {trial.name}")
def test_one_plan_has_the_kernel_and_the_other_has_not(trial: Trial) -> None:
    usual, other = plans(trial, LAVAPIPE)
    assert any(name.startswith(trial.kernel) for name in kernels_of(usual).split(" + "))
    assert not any(name.startswith(trial.kernel) for name in kernels_of(other).split(" + "))


def test_all_kernels_for_software_alone_are_among_them() -> None:
    """Those of which wgsl/README.md says so: each is in a plan, and not in what would run instead."""
    said = (ROOT / "wgsl" / "README.md").read_text(encoding="utf-8")
    found = re.findall(r"^\| \[(scan_\w+)\].*software adapters", said, re.MULTILINE)
    assert len(found) >= 5
    measured: set[str] = set()
    for trial in TRIALS:
        usual, other = (set(kernels_of(plan).split(" + ")) for plan in plans(trial, LAVAPIPE))
        measured |= usual - other
    assert [name for name in found if name not in measured] == []


def test_a_row_is_measured_and_judged(
    device: Device, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    trials = [
        Trial("scan_serial", Row("sum", "float32", (2**19,), 0)),
        Trial("scan_serial", Row("sum", "int32", (2**19,), 0), in_place=True),
        Trial("scan_serial", Row("sum", "float32", (100,), 0)),
    ]
    monkeypatch.setattr(software_kernels, "TRIALS", trials)
    monkeypatch.setattr(software_kernels, "NAMED", {trials[0].row, trials[1].row})
    monkeypatch.setattr(software_kernels, "ENOUGH", 0.0)
    monkeypatch.setattr(device, "limits", LAVAPIPE)
    monkeypatch.setattr("dmlgpu.Device", lambda choice: device)
    path = tmp_path / "table.md"
    status = main(["--kernels", "scan_serial", "--samples", "2", "--md", str(path)])
    out = capsys.readouterr().out
    assert status == 0
    assert path.read_text() == out
    first, second, third = (line for line in out.splitlines() if line.startswith("| `scan_serial`"))
    assert "| sum float32 2^19 axis 0 * |" in first
    assert first.endswith(" | scan_slices |")
    assert "| sum int32 2^19 axis 0, in place |" in second
    assert second.endswith(" | scan_slices |")
    assert "not taken here" in third
    assert out.endswith("on any row of `dmlgpu bench` (*): none.\n")
    monkeypatch.setattr(software_kernels, "ENOUGH", 1e9)
    assert main(["--kernels", "scan_serial", "--samples", "1"]) == 1
    assert capsys.readouterr().out.endswith("on any row of `dmlgpu bench` (*): scan_serial.\n")


def test_bad_usage(device: Device, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--kernels", "scan_all"])
    assert "there is no kernel 'scan_all'; there are scan_bands, " in capsys.readouterr().err
    monkeypatch.setattr(device, "limits", Limits())
    monkeypatch.setattr("dmlgpu.Device", lambda choice: device)
    with pytest.raises(SystemExit):
        main([])
    assert "is no software device, and takes none of these kernels" in " ".join(capsys.readouterr().err.split())
