"""Files of the command line, read and written without a device."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import numpy as np
import pytest

from dmlgpu.cli import files
from dmlgpu.cli.console import CommandError
from dmlgpu.cli.files import check_output, input_format, read_npy, replacing, write_npy

from .cli_runner import bits


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

    def test_maps_large_files_and_copies_small_ones(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        array = np.arange(1000.0)
        np.save(tmp_path / "a.npy", array)
        copied = read_npy(tmp_path / "a.npy")
        monkeypatch.setattr(files, "MAP_FROM_BYTES", 8000)
        mapped = read_npy(tmp_path / "a.npy")
        assert copied.base is None
        assert mapped.base is not None
        assert type(mapped) is np.ndarray
        assert bits(mapped) == bits(copied) == bits(array)

    def test_every_truncation_is_an_error(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.arange(20.0))
        whole = (tmp_path / "a.npy").read_bytes()
        for length in range(len(whole)):
            (tmp_path / "b.npy").write_bytes(whole[:length])
            with pytest.raises(CommandError, match=r"b\.npy is (not a \.npy file|damaged or truncated)"):
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


class TestReplacing:
    def test_the_file_appears_only_when_it_is_complete(self, tmp_path: Path) -> None:
        target = tmp_path / "a.npy"
        with replacing(target) as file:
            file.write(b"new")
            assert not target.exists()
        assert target.read_bytes() == b"new"
        assert os.listdir(tmp_path) == ["a.npy"]

    @pytest.mark.parametrize("failure", [KeyboardInterrupt(), ValueError("x"), OSError(28, "No space left on device")])
    def test_a_failure_leaves_the_old_file_and_nothing_else(self, tmp_path: Path, failure: BaseException) -> None:
        target = tmp_path / "a.npy"
        target.write_bytes(b"old")

        def fail_halfway() -> None:
            with replacing(target) as file:
                file.write(b"half")
                raise failure

        with pytest.raises(CommandError if isinstance(failure, OSError) else type(failure)):
            fail_halfway()
        assert target.read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["a.npy"]

    def test_an_error_names_the_target(self, tmp_path: Path) -> None:
        with (
            pytest.raises(CommandError, match=r"cannot write .*a\.npy: No space left on device"),
            replacing(tmp_path / "a.npy"),
        ):
            raise OSError(28, "No space left on device")

    def test_a_missing_folder_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(CommandError, match=r"cannot write .*a\.npy: "), replacing(tmp_path / "gone" / "a.npy"):
            pass
        assert os.listdir(tmp_path) == []

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
    def test_permissions_are_those_of_the_umask_or_of_the_old_file(self, tmp_path: Path) -> None:
        old = os.umask(0o027)
        try:
            with replacing(tmp_path / "new.npy") as file:
                file.write(b"x")
            (tmp_path / "old.npy").write_bytes(b"x")
            (tmp_path / "old.npy").chmod(0o604)
            with replacing(tmp_path / "old.npy") as file:
                file.write(b"y")
        finally:
            os.umask(old)
        assert stat.S_IMODE((tmp_path / "new.npy").stat().st_mode) == 0o640
        assert stat.S_IMODE((tmp_path / "old.npy").stat().st_mode) == 0o604

    @pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
    def test_a_symbolic_link_stays_one(self, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        (tmp_path / "link.npy").symlink_to(Path("folder") / "real.npy")
        with replacing(tmp_path / "link.npy") as file:
            file.write(b"x")
        assert (tmp_path / "link.npy").is_symlink()
        assert (tmp_path / "folder" / "real.npy").read_bytes() == b"x"
        assert os.listdir(tmp_path / "folder") == ["real.npy"]


class TestNames:
    @pytest.mark.parametrize(
        ("name", "kind"), [("a.npy", "npy"), ("a.NPY", "npy"), ("a.csv", "csv"), ("a.b.CSV", "csv")]
    )
    def test_the_extension_decides(self, tmp_path: Path, name: str, kind: str) -> None:
        (tmp_path / name).write_bytes(b"x")
        assert input_format(tmp_path / name) == kind
        assert check_output(tmp_path / name) == kind

    @pytest.mark.parametrize("name", ["a", "a.npz", "a.txt", ".npy", "npy", "a.csv.gz"])
    def test_other_extensions_are_errors(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(CommandError, match=r"reads \.npy and \.csv files"):
            input_format(tmp_path / name)
        with pytest.raises(CommandError, match=r"writes \.npy and \.csv files"):
            check_output(tmp_path / name)
