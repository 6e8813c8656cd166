"""Archives of arrays, .npz files, on the command line."""

from __future__ import annotations

import io
import os
import re
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import dmlgpu
from dmlgpu.cli.console import CommandError
from dmlgpu.cli.npz_files import read_archive

from .cli_runner import Run, bits, one_line, runner


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


ARRAYS = {
    "a": np.arange(12, dtype=np.float32).reshape(3, 4),
    "b": np.asfortranarray(np.arange(12, dtype=np.int8).reshape(4, 3)),
    "c": np.ones((2, 0)),
}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_each_array_is_processed_and_keeps_its_name(run: Run, device: dmlgpu.Device, save: object) -> None:
    save("x.npz", **ARRAYS)  # type: ignore[operator]
    status, out, err = run("cumsum", "x.npz", "--axis", "0", "-o", "y.npz")
    assert (status, err) == (0, "")
    assert out == f"wrote y.npz: cumsum along axis 0 of x.npz, 3 arrays, on {device.summary}\n"
    with np.load("x.npz") as before, np.load("y.npz") as after:
        assert list(after) == list(before) == ["a", "b", "c"]
        for name, array in ARRAYS.items():
            expected = dmlgpu.cumulative_sum(array, axis=0, device=device)
            assert bits(after[name]) == bits(expected)
            assert after[name].flags.f_contiguous == array.flags.f_contiguous
    with zipfile.ZipFile("x.npz") as before, zipfile.ZipFile("y.npz") as after:
        assert before.infolist()[0].compress_type == after.infolist()[0].compress_type


def test_the_summary_shows_each_array(run: Run) -> None:
    np.savez("x.npz", a=ARRAYS["a"], b=np.array([0.5, 1.5]))
    out = run("round", "x.npz").out
    assert "a: float32 (3, 4)\nfirst  0  1  2\n" in out
    assert "b: float64 (2,)\nfirst  0  2\n" in out
    assert out.endswith("\n\n-o FILE writes the result.\n")


def test_every_truncation_is_an_error(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", a=np.arange(20.0), b=np.arange(3))
    whole = (tmp_path / "a.npz").read_bytes()
    for length in range(len(whole)):
        (tmp_path / "b.npz").write_bytes(whole[:length])
        with pytest.raises(CommandError, match=r"b\.npz is (empty|damaged)"):
            read_archive(tmp_path / "b.npz")


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_changed_byte_is_an_error_or_changes_nothing(tmp_path: Path, compression: int) -> None:
    x = np.random.default_rng(1).random(20)
    with zipfile.ZipFile(tmp_path / "a.npz", "w", compression) as made, made.open("a.npy", "w") as member:
        np.save(member, x)
    whole = (tmp_path / "a.npz").read_bytes()
    refused = 0
    for place in range(len(whole)):
        content = bytearray(whole)
        content[place] ^= 0x55
        (tmp_path / "b.npz").write_bytes(content)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # such as of a flag that nobody knows
                found = read_archive(tmp_path / "b.npz")
        except CommandError as error:
            refused += str(tmp_path / "b.npz") in str(error)
        else:
            assert [bits(array) for array in found.arrays.values()] == [bits(x)], place
    assert refused > x.nbytes


@pytest.mark.parametrize("place", [60, 90, 1500])
def test_damaged_bzip2_is_the_inputs(run: Run, place: int) -> None:
    x = np.random.default_rng(1).random(8000)
    with zipfile.ZipFile("x.npz", "w", zipfile.ZIP_BZIP2) as made, made.open("a.npy", "w") as member:
        np.save(member, x)
    content = bytearray(Path("x.npz").read_bytes())
    content[place : place + 8] = bytes(8)
    Path("x.npz").write_bytes(content)
    for options in ([], ["-o", "y.npz", "--memory", "1MiB"]):
        status, _, err = run("cumsum", "x.npz", *options)
        assert status == 2
        assert re.search(r"error: x\.npz\S* is damaged[^:]*: (Invalid data stream|Bad CRC-32)", one_line(err)), err
        assert os.listdir() == ["x.npz"]


def test_what_an_archive_must_not_hold(tmp_path: Path) -> None:
    def archive(name: str, content: bytes) -> Path:
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as made:
            made.writestr(name, content)
        return tmp_path / "a.npz"

    with pytest.raises(CommandError, match=r"a\.npz holds 'notes\.txt', which is no array with a name of its own"):
        read_archive(archive("notes.txt", b"x"))
    array = io.BytesIO()
    np.save(array, np.arange(5))
    with pytest.raises(CommandError, match=r"a\.npy is damaged: its header announces 40 bytes .*, and 39 are there"):
        read_archive(archive("a.npy", array.getvalue()[:-1]))
    np.savez(tmp_path / "a.npz", a=np.array([{}]), allow_pickle=True)
    with pytest.raises(CommandError, match="Python objects, which are never loaded"):
        read_archive(tmp_path / "a.npz")
    with zipfile.ZipFile(tmp_path / "a.npz", "w"):
        pass
    with pytest.raises(CommandError, match=r"a\.npz holds no array"):
        read_archive(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("cumsum x.npz", "x.npz/a has shape (3, 4); say along which axis to run, with --axis 0 to 1"),
        ("cumsum x.npz --axis 2", "axis 2 is out of range"),
        ("cumsum x.npz --axis 0 -o y.npy", "go into another .npz file, and only they; give -o a name with .npz"),
        ("cumsum x.npz --axis 0 --columns a", "--columns and --missing are for .csv and .parquet files"),
        ("cumsum x.npz --axis 0 --resume", "--resume goes on with a .npy or .csv file that is made of another one"),
        ("cumsum z.npz --axis 0 --memory 1MiB", "is read whole for a summary, and --memory allows 1048576"),
        ("cumsum p.npz --axis 0 --memory 1MiB", "is read whole for a summary, and --memory allows 1048576"),
    ],
)
def test_what_cannot_be(run: Run, command: str, message: str) -> None:
    np.savez("x.npz", **ARRAYS)  # type: ignore[arg-type]
    np.savez("z.npz", np.zeros(300_000))
    np.savez_compressed("p.npz", np.zeros(300_000))
    status, out, err = run(*command.split())
    assert (status, out) == (2, "")
    assert message in one_line(err)
