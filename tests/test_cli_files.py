"""Files of the command line, read and written without a device."""

from __future__ import annotations

import errno
import os
import socket
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dmlgpu.cli import files
from dmlgpu.cli.console import CommandError
from dmlgpu.cli.csv_files import read_table
from dmlgpu.cli.files import check_output, input_format, read_npy, replacing, write_npy

from .cli_runner import bits
from .faulty_os import FaultyOs, leftovers


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
        monkeypatch.setattr(files, "os", FaultyOs(lambda *_: None, most))
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
        monkeypatch.setattr(files, "check_input", lambda path: None)  # it was a file a moment ago
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

            monkeypatch.setattr(files, "os", SimpleNamespace(**vars(os) | {"read": read}))
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


class TestReplacing:
    def test_all_is_flushed_in_order(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The content before the name, then the folder that holds the name."""
        (tmp_path / "a.npy").write_bytes(b"old")
        calls: list[tuple[str, str]] = []

        def recorded(name: str) -> Callable[..., Any]:
            def call(*arguments: Any) -> Any:
                first = arguments[0]
                path = os.readlink(f"/proc/self/fd/{first}") if isinstance(first, int) else os.fspath(first)
                calls.append((name, "folder" if path == os.fspath(tmp_path) else Path(path).suffix))
                return getattr(os, name)(*arguments)

            return call

        watched = ("open", "write", "fsync", "fchmod", "close", "replace")
        monkeypatch.setattr(files, "os", SimpleNamespace(**vars(os) | {name: recorded(name) for name in watched}))
        (tmp_path / "a.npy").chmod(0o604)
        with replacing(tmp_path / "a.npy") as file:
            file.write(b"new")
        assert calls == [
            ("open", ".tmp"),
            ("fchmod", ".tmp"),
            ("write", ".tmp"),
            ("fsync", ".tmp"),
            ("close", ".tmp"),
            ("replace", ".tmp"),
            ("open", "folder"),
            ("fsync", "folder"),
            ("close", "folder"),
        ]

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

    def test_a_file_is_closed_before_it_is_removed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        stand_in = FaultyOs(lambda *_: None)
        monkeypatch.setattr(files, "os", stand_in)
        with pytest.raises(ZeroDivisionError), replacing(tmp_path / "a.npy"):
            raise ZeroDivisionError
        assert stand_in.calls[-2:] == ["close", "unlink"]

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

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
    def test_nobody_else_may_read_a_private_file_on_its_way(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "a.npy").write_bytes(b"old")
        (tmp_path / "a.npy").chmod(0o600)
        modes = []

        def look(number: int, name: str, made: bool) -> None:
            modes.extend(stat.S_IMODE(path.stat().st_mode) for path in leftovers(tmp_path))

        monkeypatch.setattr(files, "os", FaultyOs(look))
        umask = os.umask(0)
        try:
            with replacing(tmp_path / "a.npy") as file:
                file.write(b"new")
        finally:
            os.umask(umask)
        assert set(modes) == {0o600}

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such owners")
    @pytest.mark.parametrize("permitted", [True, False])
    def test_the_owner_stays(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, permitted: bool) -> None:
        path = tmp_path / "a.npy"
        path.write_bytes(b"old")
        given = []

        def fstat(descriptor: int) -> os.stat_result:
            status = list(os.fstat(descriptor))
            return os.stat_result([*status[:4], 4321, 1234, *status[6:]])  # as if this user were another

        def fchown(descriptor: int, user: int, group: int) -> None:
            given.append((user, group))
            if not permitted:
                raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(files, "os", SimpleNamespace(**vars(os) | {"fstat": fstat, "fchown": fchown}))
        owner = (path.stat().st_uid, path.stat().st_gid)
        if permitted:
            with replacing(path) as file:
                file.write(b"new")
            assert given == [owner]
        else:
            message = (
                f"it belongs to user {owner[0]} and group {owner[1]}, which the system does not let this user give"
            )
            with pytest.raises(CommandError, match=message):
                check_output(path)
            assert path.read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["a.npy"]

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows gives files away in other ways")
    @pytest.mark.parametrize("group", sorted({os.getegid(), *os.getgroups()}) if sys.platform != "win32" else [])
    def test_the_group_stays_in_truth(self, tmp_path: Path, group: int) -> None:
        path = tmp_path / "a.npy"
        path.write_bytes(b"old")
        user = 4321 if os.geteuid() == 0 else os.geteuid()
        os.chown(path, user, group)
        with replacing(path) as file:
            file.write(b"new")
        assert (path.stat().st_uid, path.stat().st_gid, path.read_bytes()) == (user, group, b"new")

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
    def test_a_write_protected_file_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "a.npy"
        path.write_bytes(b"old")
        path.chmod(0o444)
        # Root may write to it all the same, so the answer of another user stands in.
        denied = SimpleNamespace(**vars(os) | {"access": lambda path, mode: os.stat(path).st_mode & 0o200 != 0})
        monkeypatch.setattr(files, "os", denied)
        with pytest.raises(CommandError, match=r"cannot write .*a\.npy: it is write-protected"):
            check_output(path)

    @pytest.mark.parametrize("name", ["a.npy", "b.npy"])
    def test_a_file_with_two_names_is_refused(self, tmp_path: Path, name: str) -> None:
        (tmp_path / "a.npy").write_bytes(b"old")
        os.link(tmp_path / "a.npy", tmp_path / "b.npy")
        with pytest.raises(CommandError, match=r"it has 2 names \(hard links\), and only this one would get the new"):
            check_output(tmp_path / name)
        with pytest.raises(CommandError, match="hard links"), replacing(tmp_path / name) as file:
            file.write(b"new")
        assert (tmp_path / "a.npy").samefile(tmp_path / "b.npy")
        assert sorted(os.listdir(tmp_path)) == ["a.npy", "b.npy"]

    @pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
    @pytest.mark.parametrize("length", [1, 2, 3])
    def test_a_loop_of_links_is_refused(self, tmp_path: Path, length: int) -> None:
        for i in range(length):
            (tmp_path / f"{i}.npy").symlink_to(f"{(i + 1) % length}.npy")
        with pytest.raises(CommandError, match=r"cannot write .*0\.npy: Too many levels of symbolic links"):
            check_output(tmp_path / "0.npy")
        with pytest.raises(CommandError, match="Too many levels"), replacing(tmp_path / "0.npy"):
            pass
        assert all((tmp_path / f"{i}.npy").is_symlink() for i in range(length))

    @pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
    @pytest.mark.parametrize("exists", [True, False])
    def test_a_link_to_another_kind_of_file_is_refused(self, tmp_path: Path, exists: bool) -> None:
        if exists:
            (tmp_path / "passwords").write_bytes(b"old")
        (tmp_path / "a.npy").symlink_to("passwords")
        with pytest.raises(CommandError, match=r"it is a link to .*passwords, which is no \.npy file; remove it"):
            check_output(tmp_path / "a.npy")
        assert sorted(os.listdir(tmp_path)) == ["a.npy", *(["passwords"] if exists else [])]

    @pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
    def test_a_link_that_changes_meanwhile_is_followed_once(self, tmp_path: Path) -> None:
        for name in ("one", "other"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "a.npy").write_bytes(b"old")
        (tmp_path / "a.npy").symlink_to(Path("one") / "a.npy")
        with replacing(tmp_path / "a.npy") as file:
            file.write(b"new")
            (tmp_path / "a.npy").unlink()
            (tmp_path / "a.npy").symlink_to(Path("other") / "a.npy")
        assert (tmp_path / "one" / "a.npy").read_bytes() == b"new"
        assert (tmp_path / "other" / "a.npy").read_bytes() == b"old"
        assert not leftovers(tmp_path)

    @pytest.mark.parametrize("how", ["rehearsal", "replacing"])
    @pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EDQUOT])
    def test_a_folder_that_takes_no_files_is_found_before_the_work(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, code: int
    ) -> None:
        def refuse(path: str, flags: int, mode: int = 0) -> int:
            raise OSError(code, os.strerror(code), path)

        monkeypatch.setattr(files, "os", SimpleNamespace(**vars(os) | {"open": refuse}))
        with pytest.raises(CommandError, match=rf"cannot write .*a\.npy: {os.strerror(code)}$"):
            check_output(tmp_path / "a.npy") if how == "rehearsal" else replacing(tmp_path / "a.npy").__enter__()

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
