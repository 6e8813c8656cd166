"""Files larger than the memory that the command line may take have the bits of one call, also after a kill."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dmlgpu
from dmlgpu.cli import console, operators, records, replacement, stream
from dmlgpu.cli.stream import Block, Cube, Place

from .cli_runner import Run, bits, environment, one_line, process, runner
from .faulty_os import leftovers, patch_os
from .test_pieces import data

MEMORY = 4 << 20
"""What --memory 4MiB gives; the files below have four times as many bytes."""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


def in_memory(x: np.ndarray, command: str, options: dict[str, Any], device: dmlgpu.Device) -> np.ndarray:
    """Return what one call gives, in the input's order in memory."""
    operators = {"cumsum": dmlgpu.cumulative_sum, "cumprod": dmlgpu.cumulative_prod, "round": dmlgpu.round}
    made = operators[command](x, device=device, **options)
    return np.asfortranarray(made) if x.flags.f_contiguous and not x.flags.c_contiguous else made


def words(options: dict[str, Any]) -> list[str]:
    """Return options of a call as those of a command."""
    made = []
    for name, value in options.items():
        made += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return made


def saved(array: np.ndarray) -> bytes:
    np.save("expected.npy", array)
    return Path("expected.npy").read_bytes()


CASES: dict[str, tuple[str, tuple[int, ...], str, str, dict[str, Any]]] = {
    "a slice in pieces": ("cumsum", (1 << 22,), "C", "float32", {}),
    "a slice from its end": ("cumsum", (1 << 22,), "C", "float32", {"reverse": True, "include_initial": True}),
    "rows along the first axis": ("cumsum", (1 << 18, 16), "C", "float32", {"axis": 0, "exclusive": True}),
    "some columns at a time": ("cumsum", (9_000, 466), "C", "float32", {"axis": 0, "include_initial": True}),
    "columns from their end": ("cumprod", (9_001, 466), "C", "float32", {"axis": 0, "reverse": True}),
    "short wide columns": ("cumsum", (3, 1_400_000), "C", "float32", {"axis": 0, "precision": "compensated"}),
    "monotone sums": ("cumsum", (14_000, 300), "C", "float32", {"axis": 0, "monotone": True, "include_initial": True}),
    "the middle axis": ("cumsum", (3, 14_000, 100), "C", "float32", {"axis": 1, "include_initial": True}),
    "slices of the middle axis": ("cumsum", (700, 60, 100), "C", "float32", {"axis": -2, "reverse": True}),
    "many slices": ("cumsum", (1 << 19, 8), "C", "float32", {"axis": 1}),
    "Fortran order, first": ("cumsum", (1 << 12, 1 << 10), "F", "float32", {"axis": 0}),
    "Fortran order, last": ("cumsum", (100, 14_000, 3), "F", "float32", {"axis": 2, "reverse": True}),
    "Fortran order, middle": ("cumprod", (100, 14_000, 3), "F", "float32", {"axis": 1, "include_initial": True}),
    "wide results": ("cumsum", (1 << 24,), "C", "int8", {}),
    "rounding": ("round", (1 << 21,), "C", "float64", {"mode": "half_away"}),
    "rounding in Fortran order": ("round", (1 << 10, 1 << 11), "F", "float64", {}),
}


@pytest.mark.combinations
@pytest.mark.parametrize("case", CASES)
def test_a_file_four_times_as_large_as_the_memory(run: Run, device: dmlgpu.Device, case: str) -> None:
    command, shape, order, dtype, options = CASES[case]
    x = np.asarray(data(np.random.default_rng(1), dtype, shape, command == "cumprod"), order=order)  # type: ignore[call-overload]
    assert x.nbytes >= 4 * MEMORY - (1 << 20)
    np.save("x.npy", x)
    status, out, err = run(command, "x.npy", "-o", "y.npy", "--memory", "4MiB", *words(options))
    assert (status, err) == (0, "")
    expected = in_memory(x, command, options, device)
    assert f"{expected.dtype} {expected.shape}, on {device.summary}" in out
    assert Path("y.npy").read_bytes() == saved(expected)
    assert leftovers(Path()) == []


PEAK = """
import sys
from dmlgpu.cli import main
assert main(sys.argv[1:]) == 0
(peak,) = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")]
print(int(peak) * 1024)
"""


@pytest.fixture
def one_arena(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have processes take all memory from one place: a driver's threads have places of their own, of tens of MiB."""
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")


@pytest.mark.usefixtures("one_arena")
@pytest.mark.skipif(sys.platform != "linux", reason="other systems count in other ways")
@pytest.mark.parametrize("shape", [(1 << 24,), (1 << 21, 8), (16_384, 1024)], ids=str)
def test_the_memory_stays_below_its_limit(tmp_path: Path, shape: tuple[int, ...]) -> None:
    """Against a run in the least memory, which opens the device and compiles the same kernels."""
    few = tuple(min(columns, 64) for columns in shape[1:])
    np.save(tmp_path / "small.npy", np.ones((60_000, *few), np.float32))  # blocks of so many rows take the same kernels
    np.save(tmp_path / "large.npy", np.ones(shape, np.float32))
    peaks = []
    for name, mebibytes in (("small.npy", 1), ("large.npy", 16)):
        command = ("cumsum", name, "--axis", "0", "-o", "y.npy", "--memory", f"{mebibytes}MiB")
        status, out, err = process(*command, folder=tmp_path, code=("-c", PEAK))
        assert status == 0, err
        peaks.append(int(out.splitlines()[-1]))
    assert peaks[1] - peaks[0] <= (16 - 1) << 20


@pytest.mark.parametrize("seed", range(40))
def test_any_cutting_covers_every_element_once(seed: int) -> None:
    random = np.random.default_rng(seed)
    cube = Cube(*(int(random.choice([0, 1, 2, 7, 5000])) for _ in range(3)))
    cube = Cube(cube.outer, int(random.choice([1, 4096, 4097, 13_000])), min(cube.inner, 60))
    cube = cube if cube.elements < 1 << 21 else Cube(2, cube.length, cube.inner)
    most = int(random.choice([4096, 5000, 20_000, 90_000]))
    reverse = bool(random.integers(2))
    seen, sequential = np.zeros(cube.elements, np.uint8), cube.is_sequential(most, reverse)
    place, last = Place(), 0
    while True:  # each block from the place that the one before it left
        block = next(cube.blocks(int(most), place), None)
        if block is None:
            break
        assert np.prod(block.shape) <= max(most, cube.length * cube.inner * (cube.length < 4096))
        runs = list(cube.runs(block, reverse))
        assert sum(count for _, count in runs) == np.prod(block.shape)
        assert not sequential or runs[0][0] == last
        for first, count in runs:
            seen[first : first + count] += 1
            last = first + count
        place = cube.after(block)
        assert cube.done(place) == seen.sum()
        most += int(random.integers(2)) * 5000  # another --memory
    assert (seen == 1).all()


# Going on


KILLED = """
import os, signal, sys
from dmlgpu.cli import main, records
records.CHECKPOINT_SECONDS = 0.0
at, how = int(sys.argv.pop(1)), int(sys.argv.pop(1))
real, kept = records.Output.keep, 0
def keep(output, record):
    global kept
    kept += 1
    real(output, record)
    if kept == at:
        os.kill(os.getpid(), how)
records.Output.keep = keep
sys.exit(main())
"""
SCAN = ("cumsum", "x.npy", "-o", "y.npy", "--axis", "0", "--memory", "5MiB")


KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
"""Windows, where nothing that uses it runs, has no SIGKILL."""


def killed(folder: Path, *command: str, at: int, how: signal.Signals = KILL) -> None:
    """Run a command in a process that is killed after its so many-th record."""
    status, out, err = process(str(at), str(int(how)), *command, folder=folder, code=("-c", KILLED))
    said = ["dmlgpu: error: interrupted"] if how == signal.SIGINT else []
    lines = [line for line in err.splitlines() if not line.startswith("dmlgpu: note: going on after ")]
    assert (status, out, lines) == (-how, "", said)


def columns() -> np.ndarray:
    """Return some columns of 13,000 rows, which are scanned 32 at a time in pieces of 4096 rows."""
    return data(np.random.default_rng(2), "float32", (13_000, 80), False)


@pytest.fixture
def x(run: Run) -> np.ndarray:
    """Give columns that are in the file x.npy."""
    made = columns()
    np.save("x.npy", made)
    return made


@pytest.fixture(scope="module")
def killed_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder in which a run was killed after its fourth record."""
    folder = tmp_path_factory.mktemp("killed")
    np.save(folder / "x.npy", columns())
    killed(folder, *SCAN, at=4)
    return folder


@pytest.fixture
def left(run: Run, killed_folder: Path, tmp_path: Path) -> Path:
    """Give the unfinished file of that run, in this test's own folder."""
    shutil.copytree(killed_folder, tmp_path, dirs_exist_ok=True)
    (found,) = leftovers(tmp_path)
    return found


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals")
@pytest.mark.parametrize(
    ("at", "elements", "memory"),
    [
        (1, 4096 * 32, "5MiB"),
        (6, (13_000 + 8192) * 32, "9MiB"),
        (9, 13_000 * 64 + 8192 * 16, "1MiB"),
        (10, 13_000 * 80, "5MiB"),
    ],
)
def test_a_killed_run_goes_on(
    run: Run, x: np.ndarray, device: dmlgpu.Device, tmp_path: Path, at: int, elements: int, memory: str
) -> None:
    """From the last record, also with another amount of memory; what was there is not written again."""
    killed(tmp_path, *SCAN, at=at)
    (left,) = leftovers(tmp_path)
    with left.open("r+b") as file:  # an element of the first block, which nobody looks at again
        file.seek(128 + 4 * 7)
        file.write(np.float32(-77).tobytes())
    status, _, err = run(*SCAN[:-1], memory, "--resume")
    assert (status, err) == (0, f"dmlgpu: note: going on after {100 * elements // x.size} % of x.npy\n")
    expected = in_memory(x, "cumsum", {"axis": 0}, device)
    expected[0, 7] = -77
    assert Path("y.npy").read_bytes() == saved(expected)
    assert leftovers(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_what_is_done_stays_after_a_signal_if_it_is_to_be_resumed(
    run: Run, x: np.ndarray, device: dmlgpu.Device, tmp_path: Path, how: signal.Signals
) -> None:
    Path("y.npy").write_bytes(b"old")
    killed(tmp_path, *SCAN, at=3, how=how)
    assert leftovers(tmp_path) == []
    killed(tmp_path, *SCAN, "--resume", at=3, how=how)
    assert len(leftovers(tmp_path)) == 1
    assert Path("y.npy").read_bytes() == b"old"
    assert run(*SCAN, "--resume").err.startswith("dmlgpu: note: going on after ")
    assert Path("y.npy").read_bytes() == saved(in_memory(x, "cumsum", {"axis": 0}, device))
    assert leftovers(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals")
@pytest.mark.parametrize("torn", ["the last record", "both records", "its header"])
def test_what_was_not_safely_written_is_done_again(
    run: Run, left: Path, device: dmlgpu.Device, tmp_path: Path, torn: str
) -> None:
    x = columns()
    end = 128 + x.nbytes  # the fourth record is in the first slot
    with left.open("r+b") as file:
        for place in {"the last record": [end], "both records": [end, end + records.SLOT], "its header": [0]}[torn]:
            file.seek(place + 100)
            file.write(b"\0\0")
    status, _, err = run(*SCAN, "--resume")
    said = f"dmlgpu: note: going on after {100 * 12_288 * 32 // x.size} % of x.npy\n"
    assert (status, err) == (0, said if torn == "the last record" else "")
    assert Path("y.npy").read_bytes() == saved(in_memory(x, "cumsum", {"axis": 0}, device))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--axis", "1"], "was made with axis 0, and this run has axis 1"),
        (["--axis", "0", "--reverse"], "was made with reverse False, and this run has reverse True"),
        (["--axis", "0", "--dtype", "float64"], "was made with dtype None, and this run has dtype float64"),
        (["--axis", "0", "--include-initial"], "was made with include_initial False, and this run has"),
    ],
)
def test_other_options_are_refused(
    run: Run, left: Path, device: dmlgpu.Device, tmp_path: Path, options: list[str], said: str
) -> None:
    x = columns()
    status, out, err = run("cumsum", "x.npy", "-o", "y.npy", "--memory", "4MiB", "--resume", *options)
    assert (status, out) == (2, "")
    assert said in one_line(err)
    assert "give the same options, or leave --resume out to start again" in err
    assert run(*SCAN, "--resume").status == 0  # nothing is lost
    assert Path("y.npy").read_bytes() == saved(in_memory(x, "cumsum", {"axis": 0}, device))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals")
@pytest.mark.parametrize("change", ["time", "size", "type"])
def test_a_changed_input_is_refused(run: Run, left: Path, tmp_path: Path, change: str) -> None:
    x = columns()
    np.save("x.npy", {"time": x, "size": x[:-1], "type": x.view(np.int32)}[change])
    os.utime("x.npy", (1, 1))
    status, out, err = run(*SCAN, "--resume")
    assert (status, out) == (2, "")
    assert "its input has changed since; leave --resume out to start again" in one_line(err)
    assert len(leftovers(tmp_path)) == 1
    assert run(*SCAN).status == 0  # from the start
    assert leftovers(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals")
@pytest.mark.parametrize("row", [0, -1])
def test_another_input_of_the_same_size_and_time_is_refused(run: Run, left: Path, row: int) -> None:
    x, status = columns(), os.stat("x.npy")
    x[row] += 1
    np.save("x.npy", x)
    os.utime("x.npy", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert os.stat("x.npy").st_size == status.st_size
    assert "its input has changed since; leave --resume out" in one_line(run(*SCAN, "--resume").err)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals")
def test_another_treatment_of_subnormal_numbers_is_refused(
    run: Run, left: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dmlgpu.Device, "subnormals", lambda self: {"sum": None})
    assert "made with subnormals {'sum': " in one_line(run(*SCAN, "--resume").err)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows removes no open files anyway")
@pytest.mark.parametrize("resume", [[], ["--resume"]], ids=["anew", "resumed"])
def test_two_processes_do_not_write_one_file(run: Run, x: np.ndarray, tmp_path: Path, resume: list[str]) -> None:
    with replacement.continuing(Path("y.npy"), resume=False) as file:
        file.write(b"first")
        status, _, err = run(*SCAN, *resume)
        assert status == 2
        assert "cannot write y.npy: another process is writing it in blocks; wait for its end" in one_line(err)
    assert Path("y.npy").read_bytes() == b"first"


def test_nothing_to_go_on_from_is_a_start(run: Run, x: np.ndarray, device: dmlgpu.Device) -> None:
    assert run(*SCAN, "--resume")[::2] == (0, "")
    assert Path("y.npy").read_bytes() == saved(in_memory(x, "cumsum", {"axis": 0}, device))


def test_a_foreign_file_is_not_gone_on_with(run: Run, x: np.ndarray, tmp_path: Path) -> None:
    with replacement.continuing(Path("y.npy"), resume=False):
        (name,) = leftovers(tmp_path)
    Path("elsewhere").write_bytes(b"mine")
    os.link("elsewhere", name)
    assert "is not what an earlier run left; remove it" in one_line(run(*SCAN, "--resume").err)
    assert Path("elsewhere").read_bytes() == b"mine"


# Standard input and output


@pytest.mark.parametrize(
    ("shape", "order", "options"),
    [
        ((13_000, 8), "C", ["--axis", "0", "--memory", "1MiB"]),
        ((13_000, 8), "C", ["--axis", "0", "--memory", "1MiB", "--reverse"]),
        ((13_000, 80), "F", ["--axis", "1", "--memory", "1MiB"]),
        ((0, 3), "C", ["--axis", "0", "--include-initial"]),
        ((7,), "C", []),
    ],
    ids=str,
)
def test_a_pipe_on_either_side(tmp_path: Path, device: dmlgpu.Device, shape: Any, order: Any, options: Any) -> None:
    x = np.asarray(data(np.random.default_rng(3), "float32", shape, False), order=order)
    np.save(tmp_path / "x.npy", x)
    done = subprocess.run(
        [sys.executable, "-m", "dmlgpu", "cumsum", "-", "-o", "-", *options],
        cwd=tmp_path,
        env=environment(),
        input=(tmp_path / "x.npy").read_bytes(),
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0
    assert not [line for line in done.stderr.decode().splitlines() if "computing on the CPU" not in line]
    (tmp_path / "y.npy").write_bytes(done.stdout)
    names = {"include_initial": "--include-initial" in options, "reverse": "--reverse" in options}
    axis = 0 if x.ndim == 1 else int(options[1])
    expected = dmlgpu.cumulative_sum(x, axis=axis, device=device, **names)
    found = np.load(tmp_path / "y.npy")
    assert bits(found) == bits(expected)
    assert found.flags.f_contiguous == (order == "F" or min(found.shape) <= 1 or found.ndim == 1 or not found.size)


def piped(folder: Path, *command: str, content: bytes) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "dmlgpu", *command],
        cwd=folder,
        env=environment(),
        input=content,
        capture_output=True,
        check=False,
        timeout=300,
    )
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize("columns", [8, 80])
def test_a_pipe_that_ends_early(tmp_path: Path, columns: int) -> None:
    np.save(tmp_path / "x.npy", np.ones((13_000, columns), np.float32))
    content = (tmp_path / "x.npy").read_bytes()[:-5]
    status, err = piped(tmp_path, "cumsum", "-", "-o", "y.npy", "--axis", "0", "--memory", "1MiB", content=content)
    assert status == 2
    assert re.search(r"standard input is damaged or truncated: it ends 5 bytes early", one_line(err))
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


@pytest.mark.parametrize("output", [[], ["-o", "-"], ["-o", "y.npy"]])
@pytest.mark.parametrize(
    ("array", "options", "said"),
    [
        (np.ones((2, 3)), [], "standard input has shape (2, 3); say along which axis to run"),
        (np.ones(()), [], "standard input holds a single number"),
        (np.ones(3, complex), [], "standard input has dtype complex128"),
        (np.ones((1,) * 9), [], "standard input has 9 dimensions"),
        (np.ones(3), ["--columns", "a"], "--header for .csv files; standard input is an array"),
    ],
)
def test_errors_name_standard_input(
    tmp_path: Path, array: np.ndarray, options: list[str], output: list[str], said: str
) -> None:
    np.save(tmp_path / "x.npy", array)
    status, err = piped(tmp_path, "cumsum", "-", *options, *output, content=(tmp_path / "x.npy").read_bytes())
    assert status == 2
    assert said in one_line(err)
    assert os.listdir(tmp_path) == ["x.npy"]


def test_names_that_standard_streams_do_not_have(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(3))
    for name in ("./-", "standard input", "standard output"):
        status, err = piped(tmp_path, "cumsum", name, content=b"")
        assert status == 2
        assert f"'{Path(name)}' has no extension" in one_line(err)
        status, err = piped(tmp_path, "cumsum", "x.npy", "-o", name, content=b"")
        assert f"'{Path(name)}' has no extension" in one_line(err)


def test_standard_input_has_a_summary_too(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(5))
    done = subprocess.run(
        [sys.executable, "-m", "dmlgpu", "cumsum", "-"],
        env=environment(),
        input=(tmp_path / "x.npy").read_bytes(),
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert done.stdout.startswith(b"cumsum of standard input: int64 (5,)\n")


# Archives and tables


ARCHIVE = {
    "long": ((1 << 22,), "C"),
    "columns": ((9_000, 466), "C"),
    "Fortran": ((100, 14_000, 3), "F"),
    "many": ((1 << 19, 8), "C"),
    "few": ((3, 4), "C"),
}


@pytest.mark.combinations
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize(
    ("command", "options"),
    [("cumsum", {"axis": 0}), ("cumsum", {"axis": 0, "reverse": True, "include_initial": True}), ("round", {})],
    ids=str,
)
def test_an_archive_larger_than_the_memory(
    run: Run, device: dmlgpu.Device, command: str, options: dict[str, Any], compressed: bool
) -> None:
    random = np.random.default_rng(4)
    arrays = {
        name: np.asarray(np.round(random.standard_normal(shape), 1).astype(np.float32), order=order)  # type: ignore[call-overload]
        for name, (shape, order) in ARCHIVE.items()
    }
    (np.savez_compressed if compressed else np.savez)("x.npz", **arrays)  # type: ignore[arg-type]
    status, out, err = run(command, "x.npz", "-o", "y.npz", "--memory", "4MiB", *words(options))
    assert (status, err) == (0, "")
    assert out.endswith(f"of x.npz, 5 arrays, on {device.summary}\n")
    with zipfile.ZipFile("x.npz") as before, zipfile.ZipFile("y.npz") as after:
        assert [one.filename for one in after.infolist()] == [one.filename for one in before.infolist()]
        assert {one.compress_type for one in after.infolist()} == {one.compress_type for one in before.infolist()}
        for name, array in arrays.items():
            assert after.read(f"{name}.npy") == saved(in_memory(array, command, options, device))
    assert leftovers(Path()) == []


@pytest.mark.parametrize("name", ["x.csv", "x.npz", "x.parquet"])
def test_an_error_while_the_size_is_estimated_is_said(run: Run, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A file that is then read without errors could take more memory than is allowed."""
    x = np.arange(100.0)
    np.savetxt("x.csv", x)
    np.savez("x.npz", x=x)
    pq.write_table(pa.table({"x": x}), "x.parquet")
    reads = []

    def read(descriptor: int, size: int) -> bytes:
        reads.append(size)
        if len(reads) == 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return os.read(descriptor, size)

    patch_os(monkeypatch, SimpleNamespace(**vars(os) | {"read": read}))
    assert run("cumsum", name, "-o", f"y{Path(name).suffix}") == (
        2,
        "",
        f"dmlgpu: error: cannot read {name}: Input/output error\n",
    )
    assert sorted(path.name for path in Path().iterdir()) == ["x.csv", "x.npz", "x.parquet"]


@pytest.mark.combinations
@pytest.mark.usefixtures("one_arena")
@pytest.mark.skipif(sys.platform != "linux", reason="other systems count in other ways")
@pytest.mark.parametrize("kind", ["npz", "parquet", "csv"])
def test_the_memory_stays_below_its_limit_in_other_formats(tmp_path: Path, kind: str) -> None:
    """Against a run on a few rows in blocks, too."""
    peaks = []
    for rows in (9000, 1 << 21):
        x = np.random.default_rng(1).random((rows, 8))
        source = f"x.{kind}"
        if kind == "npz":
            np.savez_compressed(tmp_path / source, x)
        elif kind == "csv":
            line = ",".join(map(repr, x[0].tolist())) + "\n"
            (tmp_path / source).write_text(line * (rows * x.itemsize * 8 // len(line)))
        else:
            pq.write_table(pa.table({str(i): x[:, i] for i in range(8)}), tmp_path / source)
        command = ("cumsum", source, "--axis", "0", "-o", f"y.{kind}", "--memory", "32MiB" if rows > 9000 else "1MiB")
        status, out, err = process(*command, folder=tmp_path, code=("-c", PEAK))
        assert status == 0, err
        peaks.append(int(out.splitlines()[-1]))
    assert x.nbytes == 4 * (32 << 20)
    pages = 8 * (4 << 20) if kind == "parquet" else 0  # that pyarrow reads and writes, of each column
    assert peaks[1] - peaks[0] <= (32 << 20) + pages


@pytest.mark.usefixtures("one_arena")
@pytest.mark.skipif(sys.platform != "linux", reason="other systems count in other ways")
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_small_file_of_many_rows_goes_block_by_block(tmp_path: Path, kind: str) -> None:
    """A dictionary makes any number of equal cells a few bytes, and a digit is a byte."""
    peaks = []
    for rows, mebibytes in ((9000, 1), (1 << 23, 64)):
        source = f"x.{kind}"
        if kind == "csv":
            (tmp_path / source).write_text("1\n" * rows)
        else:
            pq.write_table(pa.table({"x": np.ones(rows), "y": np.ones(rows)}), tmp_path / source)
            assert (tmp_path / source).stat().st_size < 1 << 20
        command = ("cumsum", source, "-o", f"y.{kind}", "--memory", f"{mebibytes}MiB")
        status, out, err = process(*command, folder=tmp_path, code=("-c", PEAK))
        assert status == 0, err
        peaks.append(int(out.splitlines()[-1]))
    assert peaks[1] - peaks[0] <= 16 * rows  # two columns of numbers, without results and copies


def test_a_damaged_archive_is_refused_late_and_leaves_nothing(run: Run) -> None:
    np.savez("x.npz", a=np.ones(1 << 21, np.float32), b=np.ones(1 << 20, np.float32))
    with open("x.npz", "r+b") as file:
        file.seek(10 << 20)
        file.write(b"?")
    status, out, err = run("cumsum", "x.npz", "-o", "y.npz", "--memory", "4MiB")
    assert (status, out) == (2, "")
    assert "x.npz is damaged, or not a .npz file that can be read: Bad CRC-32 for file 'b.npy'" in one_line(err)
    assert (leftovers(Path()), os.path.exists("y.npz")) == ([], False)


KEPT = {"who": pa.array(["a", "b,c", None]).dictionary_encode(), "day": pa.array([1, None, 3], pa.date32())}
TABLES: dict[str, tuple[str, dict[str, Any]]] = {
    "sums": ("cumsum", {}),
    "sums with an identity": ("cumsum", {"include_initial": True, "exclusive": False}),
    "exclusive products": ("cumprod", {"exclusive": True}),
    "sums of a type": ("cumsum", {"dtype": "float64"}),
    "monotone sums": ("cumsum", {"monotone": True}),
    "roundings": ("round", {"mode": "toward_zero"}),
}


def table_of(rows: int) -> pa.Table:
    random = np.random.default_rng(5)
    columns = {dtype: random.integers(-9, 9, rows).astype(dtype) for dtype in ("int8", "int64")}
    columns |= {dtype: random.standard_normal(rows).astype(dtype) for dtype in ("float16", "float32", "float64")}
    kept = {name: cells.take(np.arange(rows) % 3) for name, cells in KEPT.items()}
    made = pa.table({"who": kept["who"], **columns, "day": kept["day"], "more": columns["float32"][::-1].copy()})
    return made.replace_schema_metadata({"of": "somebody"})


@pytest.mark.combinations
@pytest.mark.parametrize("case", TABLES)
def test_a_parquet_file_four_times_as_large_as_the_memory(run: Run, case: str) -> None:
    command, options = TABLES[case]
    table = table_of(600_000)
    assert table.nbytes >= 4 * MEMORY
    pq.write_table(table, "x.parquet", row_group_size=150_000, use_dictionary=["who"])
    chosen = {name: value for name, value in options.items() if value is not False}
    whole = run(command, "x.parquet", "-o", "whole.parquet", *words(chosen))
    assert whole.status == 0
    status, out, err = run(command, "x.parquet", "-o", "y.parquet", "--memory", "4MiB", *words(chosen))
    assert (status, err) == (0, "")
    more = int("include_initial" in chosen)
    assert f"of x.parquet, {600_000 + more} rows of 8 columns, " in out
    assert out.replace("y.parquet", "whole.parquet") == whole.out  # which says how many columns are kept, too
    expected, found = pq.read_table("whole.parquet"), pq.read_table("y.parquet")
    assert found.schema.equals(expected.schema, check_metadata=True)
    for name in expected.column_names:
        one, other = expected[name].combine_chunks(), found[name].combine_chunks()
        if pa.types.is_floating(one.type):
            assert bits(one.to_numpy(zero_copy_only=False)) == bits(other.to_numpy(zero_copy_only=False)), name
        else:
            assert one.to_pylist() == other.to_pylist(), name
    assert leftovers(Path()) == []


def test_an_empty_cell_behind_the_first_block(run: Run) -> None:
    x = pa.array(np.arange(1_000_000, dtype=np.float64), mask=np.arange(1_000_000) == 700_001)
    pq.write_table(pa.table({"x": x}), "x.parquet", use_dictionary=False)
    command = ("cumsum", "x.parquet", "-o", "y.parquet", "--memory", "1MiB")
    status, out, err = run(*command)
    assert (status, out) == (2, "")
    assert "x.parquet, row 700002, column x: the cell is empty (null); --missing nan carries the gap" in one_line(err)
    assert (leftovers(Path()), os.path.exists("y.parquet")) == ([], False)
    assert run(*command, "--missing", "0").status == 0
    assert pq.read_table("y.parquet")["x"].to_numpy()[-1] == 500_000 * 999_999 - 700_001


@pytest.mark.parametrize("offset", [40_000, 3_000_000])
def test_a_damaged_parquet_file_leaves_nothing(run: Run, offset: int) -> None:
    pq.write_table(
        pa.table({"x": np.random.default_rng(1).random(500_000)}),
        "x.parquet",
        write_page_checksum=True,
        row_group_size=90_000,
    )
    with open("x.parquet", "r+b") as file:
        file.seek(offset)
        file.write(b"????")
    status, out, err = run("cumsum", "x.parquet", "-o", "y.parquet", "--memory", "1MiB")
    assert (status, out) == (2, "")
    assert "x.parquet is damaged, or not a Parquet file that pyarrow reads: " in one_line(err)
    assert (leftovers(Path()), os.path.exists("y.parquet")) == ([], False)


def csv_of(rows: int, columns: dict[str, Any], end: str = "\n", separator: str = ",", names: bool = True) -> bytes:
    """Return a .csv file whose cells are made of rows' numbers."""
    lines = [separator.join(columns)] if names else []
    lines += [separator.join(str(made(i)) for made in columns.values()) for i in range(rows)]
    return end.join([*lines, ""]).encode()


LATE = 29_000
"""A row that is in none of the first blocks, of 16 KiB each."""
TABLES_OF_TEXT: dict[str, tuple[bytes, list[str]]] = {
    "integers and decimals": (csv_of(30_000, {"a": lambda i: i, "b": lambda i: i / 7, "who": lambda i: f"n{i}"}), []),
    "a decimal late": (csv_of(30_000, {"a": lambda i: "2.5" if i == LATE else -i, "b": lambda i: -0.0}), []),
    "negative zeros": (csv_of(30_000, {"a": lambda i: "2.5" if i == LATE else "-0", "b": lambda i: "-0"}), []),
    "an unsigned one late": (csv_of(30_000, {"a": lambda i: 2**63 + 1 if i == LATE else 0}), []),
    "spaces and signs": (csv_of(30_000, {"a": lambda i: f" +{i}", "b": lambda i: f"\t{i}e-2 "}), []),
    "wide integers beside decimals": (csv_of(30_000, {"a": lambda i: 2**70 if i == LATE else 0.5}), []),
    "empty cells": (csv_of(30_000, {"a": lambda i: "" if i > 5000 else i, "b": lambda i: "x"}), ["--missing", "7"]),
    "empty cells as decimals": (
        csv_of(30_000, {"a": lambda i: "" if i < 9000 else i, "b": lambda i: 1}),
        ["--missing", "nan"],
    ),
    "words and gaps": (
        csv_of(30_000, {"a": lambda i: i, "b": lambda i: "", "c": lambda i: "x" if i == 5 else ""}),
        ["--missing", "0"],
    ),
    "line ends in names": (csv_of(30_000, {'"a\n(s)"': lambda i: i, '"b\n"': lambda i: i}, "\r\n", ";"), []),
    "no header": (csv_of(30_000, {"a": lambda i: i, "b": lambda i: i}, names=False), []),
    "another dialect": (csv_of(30_000, {"a;b": lambda i: f"{i};x,y"}, "\r\n"), []),
    "a mark": (b"\xef\xbb\xbf" + csv_of(30_000, {"a\tb": lambda i: f"{i}\tx"}), []),
    "quotes": (csv_of(30_000, {"a": lambda i: i, "t": lambda i: f'"say ""{i}"",\nplease"'}), []),
    "returns in quotes": (csv_of(30_000, {"a": lambda i: i, "t": lambda i: '"a\r\nb"' if i == LATE else "c"}), []),
    "blank lines at the end": (csv_of(30_000, {"a": lambda i: i}) + b"\n\r\n\n" * 9000, []),
    "no line feed at the end": (csv_of(30_000, {"a": lambda i: i})[:-1], []),
    "chosen columns": (csv_of(30_000, {"a": lambda i: f"00{i}", "b": lambda i: i}), ["--columns", "a"]),
    "codes": (csv_of(30_000, {"a": lambda i: f"00{i}", "b": lambda i: i}), []),
    "names of years": (csv_of(30_000, {"who": lambda i: "a", "2019": lambda i: i}), ["--header", "yes"]),
    "an identity": (csv_of(30_000, {"a": lambda i: i, "who": lambda i: "a"}), ["--include-initial"]),
    "letters": (csv_of(30_000, {"ä": lambda i: i, "who": lambda i: "žluťoučký"}), []),
}


@pytest.mark.combinations
@pytest.mark.parametrize("case", TABLES_OF_TEXT)
def test_a_csv_file_by_parts_is_as_in_memory(
    run: Run, device: dmlgpu.Device, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    content, options = TABLES_OF_TEXT[case]
    Path("x.csv").write_bytes(content)
    results = []
    for is_large in (False, True):
        monkeypatch.setattr(operators, "_is_large", lambda *_, is_large=is_large: is_large)
        status, out, err = run("cumsum", "x.csv", "-o", "y.csv", "--memory", "1MiB", *options)
        assert (status, err) == (0, "")
        results.append((out, Path("y.csv").read_bytes()))
    assert results[0] == results[1]
    assert leftovers(Path()) == []


ROWS = {"a": lambda i: i, "who": lambda i: "x"}
WRONG_TABLES: dict[str, tuple[bytes, list[str]]] = {
    "a word late": (csv_of(30_000, {"a": lambda i: "none" if i == LATE else i}), []),
    "words first": (csv_of(30_000, {"a": lambda i: "none" if i < LATE else i}), []),
    "an empty cell late": (csv_of(30_000, {"a": lambda i: "" if i == LATE else i}), []),
    "a code late": (csv_of(30_000, {"a": lambda i: "01" if i == LATE else i}), []),
    "an integer too wide": (csv_of(30_000, {"a": lambda i: 2**64 if i == LATE else i}), []),
    "an unsigned one for gaps": (csv_of(30_000, {"a": lambda i: "" if i > 9 else -i}), ["--missing", str(2**64 - 1)]),
    "unsigned and negative": (csv_of(30_000, {"a": lambda i: 2**63 if i == 5 else -i}), []),
    "an integer without a float64": (csv_of(30_000, {"a": lambda i: 2**53 + 1 if i == LATE else i / 2}), []),
    "a number beyond float64": (csv_of(30_000, {"a": lambda i: "1e999" if i == LATE else i / 2}), []),
    "a row too long": (csv_of(LATE, ROWS) + b"1,2,3\n" + csv_of(9000, ROWS, names=False), []),
    "a row too long at a block's start": (csv_of(LATE, ROWS) + b"1,2,3\n" * 9000, []),
    "a blank line": (csv_of(LATE, ROWS) + b"\n" + csv_of(9000, ROWS, names=False), []),
    "many blank lines": (csv_of(LATE, ROWS) + b"\n" * 40_000 + csv_of(9000, ROWS, names=False), []),
    "another encoding": (csv_of(30_000, {"a": lambda i: i, "who": lambda i: "x"}) + b"3,\xe4\n", []),
    "no numbers": (csv_of(30_000, {"a": lambda i: f"0{i}", "who": lambda i: "x"}), []),
    "no rows": (b"a,b\n", []),
    "nothing": (b"\n" * 40_000, []),
    "no such column": (csv_of(30_000, ROWS), ["--columns", "z"]),
    "a column of words": (csv_of(30_000, ROWS), ["--columns", "who"]),
}


@pytest.mark.combinations
@pytest.mark.parametrize("case", WRONG_TABLES)
def test_a_wrong_csv_file_by_parts_has_the_errors_of_one_in_memory(
    run: Run, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    content, options = WRONG_TABLES[case]
    Path("x.csv").write_bytes(content)
    said = []
    for is_large in (False, True):
        monkeypatch.setattr(operators, "_is_large", lambda *_, is_large=is_large: is_large)
        status, out, err = run("cumsum", "x.csv", "-o", "y.csv", "--memory", "1MiB", *options)
        assert (status, out, os.path.exists("y.csv")) == (2, "", False)
        said.append(one_line(err))
    assert said[0] == said[1]
    assert leftovers(Path()) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            csv_of(30_000, {"who": lambda i: "a", "2019": lambda i: i}),
            "x.csv: line 1 has numbers and words, and whether",
        ),
        (csv_of(30_000, {"a": lambda i: i, "b": lambda i: 'x"y'}), "x.csv has quotes within cells between lines 1 and"),
    ],
)
def test_csv_files_that_only_go_in_memory(run: Run, monkeypatch: pytest.MonkeyPatch, content: bytes, said: str) -> None:
    Path("x.csv").write_bytes(content)
    monkeypatch.setattr(operators, "_is_large", lambda *_: True)
    status, out, err = run("cumsum", "x.csv", "-o", "y.csv")
    assert (status, out) == (2, "")
    assert said in one_line(err)
    monkeypatch.setattr(operators, "_is_large", lambda *_: False)
    assert run("cumsum", "x.csv", "-o", "y.csv").status == 0


# What is shown


def test_progress_is_a_line_now_and_then(run: Run, x: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "_LINE_SECONDS", 0.0)
    status, _, err = run(*SCAN)
    assert status == 0
    lines = err.splitlines()
    assert len(lines) == 10  # one a block
    for line in lines:
        assert re.fullmatch(r"dmlgpu: note: \d of 4 MB, \d+ MB/s, about \d+ (s|min) left: x\.npy", line), line
    assert lines[-1].startswith("dmlgpu: note: 4 of 4 MB, ")


def test_progress_is_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    with console.Progress(8_000_000, "byte", 1_000_000) as progress:
        progress.show(4_000_000, "x.npy")
    assert "4.0/8.0 MB" in capsys.readouterr().err


# What does not fit


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("cumsum x.npy -o y.npy --memory 1gig", "'1gig' is no amount of memory, such as 500MB or 4GiB"),
        ("cumsum x.npy -o y.npy --memory -1", "'-1' is no amount of memory, such as 500MB or 4GiB"),
        ("cumsum x.npy -o y.npy --memory 64KiB", "'64KiB' is 65536 bytes, and 1MiB is the least"),
        ("cumsum x.npy --axis 0 --resume", "--resume goes on with a .npy or .csv file that is made of"),
        ("cumsum x.npy --axis 0 -o y.csv --resume", "--resume goes on with a .npy or .csv file that is made of"),
        ("cumsum x.npy --axis 0 --memory 2MiB", "x.npy takes 16640000 bytes with its result, and --memory allows"),
        ("cumsum x.npy --axis 2 -o y.npy --memory 2MiB", "axis 2 is out of range"),
        ("cumsum x.npy -o y.npy --memory 2MiB", "say along which axis to run, with --axis 0 to 1"),
        (
            "cumsum x.npy -o y.npy --memory 2MiB --axis 0 --header no",
            "--columns and --missing are for .csv and .parquet files",
        ),
        (
            "cumsum x.npy -o y.npy --memory 2MiB --axis 0 --precision compensated --dtype float64",
            "precision is 'compensated'",
        ),
        (
            "cumsum x.csv --memory 1MiB",
            "x.csv takes about 50000001 bytes with its result, is read whole for a summary, and --memory allows 104857",
        ),
        (
            "cumsum x.csv -o y.npy --memory 49MB",
            ".npy, and --memory allows 49000000: allow more, or give -o with a .csv file, into which it goes block by",
        ),
        (
            "cumsum x.csv -o y.csv --reverse --memory 49MB",
            "allow more, or save its numbers as .npy with the program that made it: .npy files go block by block",
        ),
        ("cumsum x.csv -o y.parquet --memory 1MiB", "is read whole on its way to another format, .parquet, and"),
        ("cumsum x.parquet -o y.csv --memory 1MiB", "is read whole on its way to another format, .csv, and --memory"),
        ("cumsum x.parquet -o y.parquet --reverse --memory 1MiB", "is read whole with --reverse, because its rows are"),
        ("cumsum x.parquet -o y.parquet --axis 1 --memory 1MiB", "is read whole along axis 1, and --memory allows"),
        ("cumsum x.parquet -o y.parquet --header no --memory 1MiB", "--header is for .csv files"),
        ("cumsum x.parquet -o y.parquet --columns z --memory 1MiB", "x.parquet has no column 'z'"),
        (
            "cumsum x.parquet -o y.parquet --resume --memory 1MiB",
            "--resume goes on with a .npy or .csv file that is",
        ),
        ("cumsum x.parquet -o y.parquet --axis 5 --memory 1MiB", "axis 5 is out of range"),
        ("cumsum x.npz -o y.npz --axis 3 --memory 1MiB", "axis 3 is out of range"),
        ("cumsum x.npz -o y.npz --memory 1MiB", "x.npz/x.npy has shape (13000, 80); say along which axis to run"),
    ],
)
def test_what_cannot_be(run: Run, x: np.ndarray, command: str, message: str) -> None:
    Path("x.csv").write_text("1\n" * 1_000_000 + "2")
    np.savez("x.npz", x=x)
    pq.write_table(pa.table({"a": x.reshape(-1).astype(np.float64)}), "x.parquet")
    status, out, err = run(*command.split())
    assert (status, out) == (2, "")
    assert message in one_line(err)
    assert leftovers(Path()) == []
    assert not list(Path().glob("y.*"))


@pytest.mark.parametrize(
    ("text", "size"),
    [("1MiB", 1 << 20), ("1.5G", 3 << 29), ("500MB", 500_000_000), ("500 mb", 500_000_000), ("2097152", 2 << 20)],
)
def test_amounts_of_memory(text: str, size: int) -> None:
    from dmlgpu.cli import parse

    assert parse(["round", "x.npy", "--memory", text]).memory == size


def test_an_input_that_shrinks_meanwhile(run: Run, x: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    real = stream._Job._compute

    def compute(self: Any, block: Block, array: np.ndarray) -> Any:
        os.truncate("x.npy", 3_000_000)
        return real(self, block, array)

    monkeypatch.setattr(stream._Job, "_compute", compute)
    status, out, err = run(*SCAN)
    assert (status, out) == (2, "")
    assert "x.npy changed while it was read; run this again once it is complete" in one_line(err)
    assert leftovers(Path()) == []


def test_a_bool_is_0_or_1(run: Run) -> None:
    x = np.zeros(3_000_000, np.uint8)
    x[2_000_001] = 9
    np.save("x.npy", x.view(np.bool_))
    status, _, err = run("cumsum", "x.npy", "-o", "y.npy", "--memory", "4MiB")
    assert status == 2
    assert "x.npy is damaged: element 2000001 in the file's order is 9, where a bool is 0 or 1" in one_line(err)
