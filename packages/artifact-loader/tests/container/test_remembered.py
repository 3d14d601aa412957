"""Weights that were checked before are not hashed again, unless the file was touched."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from fxstack_artifact import ArtifactError, load
from fxstack_artifact.container import reading, remembered


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """The sizes of what is checked; notes are kept in the test's folder, of files however new."""
    sizes: list[int] = []
    fits = reading.fits
    monkeypatch.setattr(reading, "fits", lambda data, *stated: sizes.append(len(data)) or fits(data, *stated))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(remembered, "_SETTLED", 0)
    return sizes


def times(path: Path, hashed: list[int], **arguments: Any) -> int:
    """How many contents a load hashes."""
    hashed.clear()
    artifact = load(path, **arguments)
    assert torch.equal(artifact(torch.zeros(2, 3))["y"][0], torch.tensor([1.0, 2.0, 3.0]))
    return len(hashed)


def test_the_second_time_is_shorter(make: Any, hashed: list[int]) -> None:
    path = make()
    assert times(path, hashed) == 3
    assert times(path, hashed, remember=True) == 3
    assert times(path, hashed, remember=True) == 2
    assert times(path, hashed) == 3
    os.utime(path)
    assert times(path, hashed, remember=True) == 3
    assert times(path, hashed, remember=True) == 2


def test_changes_are_refused_as_ever(make: Any, hashed: list[int], tmp_path: Path) -> None:
    path = make()
    assert times(path, hashed, remember=True) == 3
    before = path.stat()
    good = path.read_bytes()
    at = good.index(torch.tensor([1.0, 2.0, 3.0]).numpy().tobytes())
    with open(path, "r+b") as file:  # the same inode and size, and the time that users can set
        file.seek(at)
        file.write(b"\0\0\0\1")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(ArtifactError, match="FXA103"):
        load(path, remember=True)
    native = good.index(b"\x7fELF")
    path.write_bytes(good)
    assert times(path, hashed, remember=True) == 3
    state = path.stat().st_ctime_ns
    with open(path, "r+b") as file:
        file.seek(native + 500)
        file.write(b"\xff\xff\xff")
    note = next((tmp_path / "cache").rglob("*.json"))
    note.write_text(note.read_text().replace(str(state), str(path.stat().st_ctime_ns)))
    with pytest.raises(ArtifactError, match="FXA103"):  # even a false note is not believed about code
        load(path, remember=True)


def test_notes_that_others_could_write_are_not_read(make: Any, hashed: list[int], tmp_path: Path) -> None:
    path = make()
    times(path, hashed, remember=True)
    folder = tmp_path / "cache" / "fxstack" / "checked"
    folder.chmod(0o777)
    assert times(path, hashed, remember=True) == 3
    folder.chmod(0o700)
    assert times(path, hashed, remember=True) == 2
    next(folder.iterdir()).chmod(0o666)
    assert times(path, hashed, remember=True) == 3
    next(folder.iterdir()).write_text("[")
    assert times(path, hashed, remember=True) == 3


def test_a_file_that_was_just_written_is_not_noted(make: Any, hashed: list[int], monkeypatch: Any) -> None:
    monkeypatch.setattr(remembered, "_SETTLED", 10**12)
    path = make()
    assert times(path, hashed, remember=True) == 3
    assert times(path, hashed, remember=True) == 3
