"""Names of files, and files that change while they are read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dmlgpu.cli.console import CommandError
from dmlgpu.cli.csv_files import read_table
from dmlgpu.cli.files import check_output, input_format
from dmlgpu.cli.npy_files import read_npy

from .faulty_os import patch_os


class TestNames:
    @pytest.mark.parametrize(
        ("name", "kind"),
        [("a.npy", "npy"), ("a.NPY", "npy"), ("a.csv", "csv"), ("a.b.CSV", "csv"), ("a.Parquet", "parquet")],
    )
    def test_the_extension_decides(self, tmp_path: Path, name: str, kind: str) -> None:
        (tmp_path / name).write_bytes(b"x")
        assert input_format(tmp_path / name) == kind
        assert check_output(tmp_path / name) == kind

    @pytest.mark.parametrize("name", ["a", "a.zip", "a.txt", ".npy", "npy", "a.csv.gz"])
    def test_other_extensions_are_errors(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(CommandError, match=r"reads \.npy, \.npz, \.csv and \.parquet files"):
            input_format(tmp_path / name)
        with pytest.raises(CommandError, match=r"writes \.npy, \.npz, \.csv and \.parquet files"):
            check_output(tmp_path / name)


class TestChanges:
    """Files that somebody else changes while they are read."""

    @pytest.fixture
    def changed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[Path], None]], Path]:
        """Return a function that makes a file which changes between two of the reads of it."""

        def make(name: str, change: Callable[[Path], None]) -> Path:
            path = tmp_path / name
            if name.endswith(".npy"):
                np.save(path, np.ones(100_000, np.uint8))
            else:
                path.write_text("1\n" * 100_000)
            os.utime(path, (1, 1))
            reads = 0
            real = os.read

            def read(descriptor: int, size: int) -> bytes:
                nonlocal reads
                reads += 1
                if reads == 2:
                    change(path)
                return real(descriptor, min(size, 20_000))

            patch_os(monkeypatch, SimpleNamespace(**vars(os) | {"read": read}))
            return path

        return make

    @pytest.mark.parametrize("name", ["a.npy", "a.csv"])
    @pytest.mark.parametrize("size", [0, 30_000, 300_000])
    def test_a_file_that_shrinks_or_grows_is_an_error(
        self, changed: Callable[[str, Callable[[Path], None]], Path], name: str, size: int
    ) -> None:
        def cut(path: Path) -> None:
            os.truncate(path, size)
            os.utime(path, (1, 1))  # so that only its length tells

        path = changed(name, cut)
        with pytest.raises(
            CommandError, match=rf"{name} changed while it was read; run this again once it is complete"
        ):
            read_npy(path) if name == "a.npy" else read_table(path)

    @pytest.mark.parametrize("name", ["a.npy", "a.csv"])
    def test_a_file_that_is_written_is_an_error(
        self, changed: Callable[[str, Callable[[Path], None]], Path], name: str
    ) -> None:
        def write(path: Path) -> None:
            with path.open("r+b") as file:
                file.seek(50_000)
                file.write(b"2\n")

        path = changed(name, write)
        with pytest.raises(CommandError, match="changed while it was read"):
            read_npy(path) if name == "a.npy" else read_table(path)

    def test_a_file_that_is_replaced_is_read_as_it_was(
        self, changed: Callable[[str, Callable[[Path], None]], Path]
    ) -> None:
        def replace(path: Path) -> None:
            np.save(path.with_name("b.npy"), np.zeros(100_000, np.uint8))
            path.with_name("b.npy").replace(path)

        assert read_npy(changed("a.npy", replace)).tolist() == [1] * 100_000

    def test_what_is_cut_off_afterwards_does_not_matter(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.ones(5_000_000, np.float32))
        array = read_npy(tmp_path / "a.npy")
        os.truncate(tmp_path / "a.npy", 0)
        assert array.sum() == 5_000_000
