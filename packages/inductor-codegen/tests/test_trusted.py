"""The gate: what others can change is neither read nor written, whichever way leads to it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inductor_codegen.trusted import UntrustedError, open_folder, passable

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="another user's files can be made by root only")


def test_files_are_written_read_and_replaced(tmp_path: Path) -> None:
    with open_folder(tmp_path / "a" / "b", create=True) as folder:
        folder.write("f", b"1")
        assert folder.read("f") == b"1"
        with pytest.raises(FileExistsError):
            folder.write("f", b"2")
        folder.replace("f", b"3")
        assert (tmp_path / "a" / "b" / "f").read_bytes() == b"3"
        assert folder.names() == ["f"]
        assert oct((tmp_path / "a").stat().st_mode) == "0o40700"
    with pytest.raises(FileNotFoundError):
        open_folder(tmp_path / "absent")


@pytest.mark.parametrize("level", ["a", "a/b", "a/b/c"])
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_folder_that_others_may_write_anywhere_on_the_way(tmp_path: Path, level: str, mode: int) -> None:
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    open_folder(tmp_path / "a" / "b" / "c").close()
    (tmp_path / level).chmod(mode)
    with pytest.raises(UntrustedError):
        open_folder(tmp_path / "a" / "b" / "c")
    with pytest.raises(UntrustedError):
        open_folder(tmp_path / "a" / "b" / "c" / "new", create=True)
    assert not (tmp_path / "a" / "b" / "c" / "new").exists()


def test_a_sticky_folder_is_for_passing_through(tmp_path: Path) -> None:
    (tmp_path / "sticky" / "own").mkdir(parents=True)
    (tmp_path / "sticky").chmod(0o1777)
    open_folder(tmp_path / "sticky" / "own").close()
    passable(tmp_path / "sticky").close()
    with pytest.raises(UntrustedError):
        open_folder(tmp_path / "sticky")


def test_files_behind_links_and_others_files_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "nowhere").symlink_to(tmp_path / "made")
    (tmp_path / "shared").write_bytes(b"x")
    (tmp_path / "shared").chmod(0o666)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "inner").mkdir()
    (tmp_path / "shelf").symlink_to(tmp_path / "inner")
    with open_folder(tmp_path) as folder:
        for name in ("link", "shared", "pipe", "inner"):
            with pytest.raises(UntrustedError):
                folder.read(name)
        with pytest.raises(UntrustedError), folder.locked("nowhere"):
            pass
        with pytest.raises(FileExistsError):
            folder.write("nowhere", b"x")
        with pytest.raises(OSError, match="shelf"):
            folder.folder("shelf")
        folder.replace("link", b"y")
    assert (tmp_path / "real").read_bytes() == b"x"
    assert not (tmp_path / "made").exists()


def test_links_on_the_way_are_followed_where_nobody_else_can_put_them(tmp_path: Path) -> None:
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "near").symlink_to("far/../far/away")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with open_folder(tmp_path / "near" / "here", create=True) as folder:
        folder.write("f", b"")
    assert (tmp_path / "far" / "away" / "here" / "f").exists()
    with pytest.raises(OSError, match="symbolic links"):
        open_folder(tmp_path / "loop")
    (tmp_path / "far").chmod(0o777)
    with pytest.raises(UntrustedError):
        open_folder(tmp_path / "near" / "here")


@needs_root
def test_others_folders_links_and_files_are_not_used(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 12345, 12345)
    (tmp_path / "own").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "own")
    os.chown(tmp_path / "link", 12345, 12345, follow_symlinks=False)
    (tmp_path / "file").write_bytes(b"")
    os.chown(tmp_path / "file", 12345, 12345)
    for name in ("theirs", "theirs/new", "link"):
        with pytest.raises(UntrustedError):
            open_folder(tmp_path / name, create=True)
    with pytest.raises(UntrustedError), open_folder(tmp_path) as folder:
        folder.read("file")


def test_scratch_folders_have_names_that_nobody_can_foretell(tmp_path: Path) -> None:
    with open_folder(tmp_path) as folder:
        with folder.scratch("s-") as one, folder.scratch("s-") as two:
            assert one.path != two.path
            folder.sweep("s-")
            one.write("f", b"")
            assert len(folder.names()) == 2
        assert folder.names() == []
        left = folder.fresh("s-")
        left.write("f", b"")
        left.close()
        folder.sweep("other-")
        assert len(folder.names()) == 1
        folder.sweep("s-")
        assert folder.names() == []
