"""Replacing files in one step."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dmlgpu.cli import replacement
from dmlgpu.cli.console import CommandError
from dmlgpu.cli.files import check_output
from dmlgpu.cli.replacement import continuing, replacing

from .faulty_os import FaultyOs, leftovers, patch_os
from .windows import Msvcrt, os_of_windows, with_locks_of_windows


class TestReplacing:
    @pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc says what the descriptors are")
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
        patch_os(monkeypatch, SimpleNamespace(**vars(os) | {name: recorded(name) for name in watched}))
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
        patch_os(monkeypatch, stand_in)
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

        patch_os(monkeypatch, FaultyOs(look))
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

        patch_os(monkeypatch, SimpleNamespace(**vars(os) | {"fstat": fstat, "fchown": fchown}))
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
        patch_os(monkeypatch, denied)
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

        patch_os(monkeypatch, SimpleNamespace(**vars(os) | {"open": refuse}))
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


class TestOnWindows:
    """Windows neither removes nor renames over a file that is open, unless it was opened for that."""

    @pytest.fixture
    def opened(self, monkeypatch: pytest.MonkeyPatch) -> set[str]:
        """Have the files that this process has open, and others that a test adds, not be removed or replaced."""
        descriptors: dict[int, str] = {}
        others: set[str] = set()

        def open_(path: str, *arguments: int) -> int:
            descriptor = os.open(path, *arguments)
            descriptors[descriptor] = os.path.basename(path)
            return descriptor

        def close(descriptor: int) -> None:
            del descriptors[descriptor]
            os.close(descriptor)

        def refuse_open(path: str) -> None:
            if os.path.basename(path) in {*descriptors.values(), *others}:
                raise PermissionError(errno.EACCES, "The process cannot access the file", path)

        def unlink(path: str) -> None:
            refuse_open(path)
            os.unlink(path)

        def replace(source: str, target: str) -> None:
            refuse_open(source)
            refuse_open(target)
            os.replace(source, target)

        with_locks_of_windows(monkeypatch, Msvcrt())
        patch_os(monkeypatch, os_of_windows(open=open_, close=close, unlink=unlink, replace=replace))
        return others

    def left(self, path: Path) -> Path:
        """Have a run in blocks fail, and return what it leaves."""

        def fail_halfway() -> None:
            with continuing(path, resume=True) as file:
                file.write(b"half")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail_halfway()
        (name,) = leftovers(path.parent)
        return name

    def test_what_an_earlier_run_left_is_removed_once_it_is_closed(self, tmp_path: Path, opened: set[str]) -> None:
        self.left(tmp_path / "a.npy")
        with continuing(tmp_path / "a.npy", resume=False) as file:
            assert file.read(9) == b""
            file.write(b"new")
        assert (tmp_path / "a.npy").read_bytes() == b"new"
        assert os.listdir(tmp_path) == ["a.npy"]

    def test_another_process_may_come_before_it_is_removed(self, tmp_path: Path, opened: set[str]) -> None:
        left = self.left(tmp_path / "a.npy")
        opened.add(left.name)
        with (
            pytest.raises(CommandError, match=r"a\.npy: another process is writing it in blocks; wait for its end"),
            continuing(tmp_path / "a.npy", resume=False),
        ):
            pass
        assert left.read_bytes() == b"half"

    @pytest.mark.parametrize("resume", [False, True])
    def test_two_runs_in_blocks_do_not_write_one_file(self, tmp_path: Path, opened: set[str], resume: bool) -> None:
        with continuing(tmp_path / "a.npy", resume=False) as file:
            with (
                pytest.raises(CommandError, match="another process is writing it in blocks"),
                continuing(tmp_path / "a.npy", resume=resume),
            ):
                pass
            file.write(b"first")
        assert (tmp_path / "a.npy").read_bytes() == b"first"

    @pytest.mark.parametrize("looks", [1, 3])
    def test_a_reader_of_the_old_file_is_waited_for(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: set[str], looks: int
    ) -> None:
        (tmp_path / "a.npy").write_bytes(b"old")
        opened.add("a.npy")
        slept: list[float] = []

        def sleep(seconds: float) -> None:
            slept.append(seconds)
            if len(slept) == looks:
                opened.remove("a.npy")

        monkeypatch.setattr(replacement, "time", SimpleNamespace(monotonic=lambda: sum(slept), sleep=sleep))
        with replacing(tmp_path / "a.npy") as file:
            file.write(b"new")
        assert (tmp_path / "a.npy").read_bytes() == b"new"
        assert len(slept) == looks

    def test_it_is_not_waited_for_ever(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: set[str]) -> None:
        (tmp_path / "a.npy").write_bytes(b"old")
        opened.add("a.npy")
        slept: list[float] = []
        monkeypatch.setattr(replacement, "time", SimpleNamespace(monotonic=lambda: sum(slept), sleep=slept.append))
        with (
            pytest.raises(CommandError, match=r"cannot write .*a\.npy: The process cannot access the file"),
            replacing(tmp_path / "a.npy"),
        ):
            pass
        assert 1.9 < sum(slept) < 2.2
        assert (tmp_path / "a.npy").read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["a.npy"]

    @pytest.mark.skipif(os.name != "posix", reason="Windows waits")
    def test_posix_is_asked_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(source: str, target: str) -> None:
            raise PermissionError(errno.EPERM, "Operation not permitted")

        patch_os(monkeypatch, SimpleNamespace(**vars(os) | {"replace": refuse}))
        monkeypatch.setattr(replacement, "time", SimpleNamespace(monotonic=lambda: 0.0))  # without a `sleep`
        with pytest.raises(CommandError, match="Operation not permitted"), replacing(tmp_path / "a.npy"):
            pass
