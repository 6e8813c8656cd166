"""Arrays in .npy files, read and written without a device."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import numpy as np
import pytest

from dmlgpu.cli import raw_files
from dmlgpu.cli.console import CommandError
from dmlgpu.cli.npy_files import read_npy, write_npy

from .cli_runner import bits
from .faulty_os import FaultyOs, patch_os


class TestNpy:
    @pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
    @pytest.mark.parametrize("order", ["C", "F"])
    @pytest.mark.parametrize("dtype", ["<f4", ">i2", "|u1", "|b1"])
    def test_reads_every_version_order_and_byte_order(
        self, tmp_path: Path, version: tuple[int, int], order: str, dtype: str
    ) -> None:
        array = np.arange(24).reshape(2, 3, 4).astype(dtype, order=order)  # type: ignore[call-overload]
        with (tmp_path / "a.npy").open("wb") as file:
            np.lib.format.write_array(file, array, version=version)
        assert bits(read_npy(tmp_path / "a.npy")) == bits(array)

    @pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,) * 8])
    def test_reads_unusual_shapes(self, tmp_path: Path, shape: tuple[int, ...]) -> None:
        np.save(tmp_path / "a.npy", np.full(shape, 2.5))
        assert bits(read_npy(tmp_path / "a.npy")) == bits(np.full(shape, 2.5))

    def test_every_truncation_is_an_error(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.arange(20.0))
        whole = (tmp_path / "a.npy").read_bytes()
        for length in range(len(whole)):
            (tmp_path / "b.npy").write_bytes(whole[:length])
            with pytest.raises(CommandError, match=r"b\.npy is (empty|not a \.npy file|damaged or truncated)"):
                read_npy(tmp_path / "b.npy")

    @pytest.mark.parametrize(
        "header",
        [
            b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }",
            b"{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775807, 9223372036854775807), }",
            b"{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }",
            b"{'descr': '<f8', 'fortran_order': 7, 'shape': (3,), }",
            b"{'descr': 'nonsense', 'fortran_order': False, 'shape': (3,), }",
            b"{'shape': (3,), }",
            b"__import__('os').getcwd()",
            b"((((((((((",
            b"\xff\xfe\x00",
        ],
    )
    def test_a_damaged_header_is_an_error(self, tmp_path: Path, header: bytes) -> None:
        padded = header + b" " * (117 - len(header)) + b"\n"
        content = b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded + bytes(64)
        (tmp_path / "a.npy").write_bytes(content)
        with pytest.raises(CommandError, match=r"a\.npy is damaged or truncated"):
            read_npy(tmp_path / "a.npy")

    @pytest.mark.parametrize(
        ("head", "message"),
        [
            (b"\x93NUMPY\x01\x00\xff\xff", "its header has 65535 bytes, and those of arrays of numbers have 10000"),
            (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "its header has 4294967295 bytes"),
            (b"\x93NUMPY\x04\x00\x10\x00{}{}", "has version 4.0 of the .npy format; dmlgpu reads 1.0, 2.0 and 3.0"),
            (b"\x93NUMPY\x01\x01\x10\x00{}{}", "has version 1.1 of the .npy format"),
            (b"\x93NUMPY\x01", "it ends within its header"),
            (b"\x93NUMPY\x03\x00\x76\x00\x00\x00" + b"\xff" * 30, "it ends within its header"),
        ],
    )
    def test_a_head_that_cannot_be_is_an_error(self, tmp_path: Path, head: bytes, message: str) -> None:
        (tmp_path / "a.npy").write_bytes(head)
        os.truncate(
            tmp_path / "a.npy", max(len(head), 2**33 if b"\xff\xff" in head[8:12] else 0)
        )  # nothing is read of it
        with pytest.raises(CommandError) as caught:
            read_npy(tmp_path / "a.npy")
        assert message in str(caught.value)

    @pytest.mark.parametrize(
        ("shape", "message"),
        [
            ((-3, -2), r"its shape is \(-3, -2\)"),
            ((0, 10**30), "damaged"),
            ((0, 2**62, 2**62), "damaged"),
            ((1,) * 9, "has 9 dimensions; dmlgpu takes up to 8"),
            ((1,) * 3000, "has 3000 dimensions"),
            ((2**32 - 1,), "announces 34359738360 bytes of elements, and 48 are there"),
        ],
    )
    def test_a_shape_that_cannot_be_is_an_error(self, tmp_path: Path, shape: tuple[int, ...], message: str) -> None:
        header = repr({"descr": "<f8", "fortran_order": False, "shape": shape}).encode() + b"\n"
        (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(48))
        with pytest.raises(CommandError, match=message):
            read_npy(tmp_path / "a.npy")

    def test_more_elements_than_a_device_takes_are_not_read(self, tmp_path: Path) -> None:
        header = repr({"descr": "|u1", "fortran_order": False, "shape": (2**16, 2**16)}).encode() + b"\n"
        (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
        os.truncate(tmp_path / "a.npy", 10 + len(header) + 2**32)
        with pytest.raises(
            CommandError, match="has 4294967296 elements, and 4294967295 at most can be in memory at once: give -o"
        ):
            read_npy(tmp_path / "a.npy")

    @pytest.mark.parametrize("most", [1, 5_000, 70_000, 1 << 30])
    def test_an_array_that_comes_in_pieces(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
        array = np.random.default_rng(1).random(20_000 if most > 1 else 2_000)
        np.save(tmp_path / "a.npy", array)
        patch_os(monkeypatch, FaultyOs(lambda *_: None, most))
        assert bits(read_npy(tmp_path / "a.npy")) == bits(array)

    def test_what_follows_the_array_is_said(self, tmp_path: Path) -> None:
        with (tmp_path / "a.npy").open("wb") as file:
            np.save(file, np.arange(3))
            np.save(file, np.arange(4))
        with pytest.warns(UserWarning, match=r"a\.npy goes on for 160 bytes after its array, which are not read"):
            assert read_npy(tmp_path / "a.npy").tolist() == [0, 1, 2]

    def test_a_bool_is_0_or_1(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.array([0, 1, 7], np.uint8).view(np.bool_))
        with pytest.raises(CommandError, match=r"element 2 in the file's order is 7, where a bool is 0 or 1"):
            read_npy(tmp_path / "a.npy")

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither")
    @pytest.mark.parametrize("kind", ["fifo", "/dev/zero", "/dev/stdin", "socket"])
    def test_only_ordinary_files_are_opened(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
        path = tmp_path / "a.npy"
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "socket":
            monkeypatch.chdir(tmp_path)  # their names are short
            with socket.socket(socket.AF_UNIX) as one:
                one.bind("a.npy")
        else:
            path.symlink_to(kind)
        with pytest.raises(CommandError, match="is not an ordinary file"):
            read_npy(path)

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes in folders")
    def test_a_file_that_becomes_a_pipe_does_not_hang(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "a.npy"
        os.mkfifo(path)
        monkeypatch.setattr(raw_files, "check_input", lambda path: None)  # it was a file a moment ago
        with pytest.raises(CommandError, match="is not an ordinary file"):
            read_npy(path)

    def test_objects_are_never_unpickled(self, tmp_path: Path) -> None:
        class Trap:
            def __reduce__(self) -> tuple[object, ...]:
                return Path.touch, (tmp_path / "sprung",)

        np.save(tmp_path / "a.npy", np.array([Trap()]), allow_pickle=True)
        with pytest.raises(CommandError, match="Python objects, which are never loaded"):
            read_npy(tmp_path / "a.npy")
        assert not (tmp_path / "sprung").exists()

    @pytest.mark.parametrize("shape", [(), (0, 3), (2, 3, 4)])
    def test_write_keeps_shape_and_bits(self, tmp_path: Path, shape: tuple[int, ...]) -> None:
        array = np.full(shape, -0.0, np.float16)
        with (tmp_path / "a.npy").open("wb") as file:
            write_npy(file, array)
        assert bits(np.load(tmp_path / "a.npy", allow_pickle=False)) == bits(array)
