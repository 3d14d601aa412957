"""Files that cannot be written: the error names the file that was asked for, and nothing is left."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import BinaryIO

import pytest

from fxstack_artifact.container import writing


def test_no_room(tmp_path: Path) -> None:
    def full(file: BinaryIO) -> None:
        file.write(b"begun")
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "m.fxa").write_bytes(b"old")
    with pytest.raises(OSError, match=r"No space left.*m\.fxa'") as caught:
        writing._replace(tmp_path / "m.fxa", full)
    assert caught.value.errno == errno.ENOSPC
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere/m\.fxa'"):
        writing._replace(tmp_path / "nowhere" / "m.fxa", lambda file: None)
