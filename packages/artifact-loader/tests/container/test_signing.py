"""Signed files, and what is refused of them before anything in them is used."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch

import fxstack_artifact
import fxstack_artifact.container.reading
from fxstack_artifact import ArtifactError, load, make_key, sign

pytest.importorskip("cryptography", reason="the optional package cryptography signs and checks")


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    """Files with a private and its public key."""
    return tmp_path / "key", make_key(tmp_path / "key")


def refused(path: Path, **arguments: Any) -> str:
    with pytest.raises(ArtifactError) as caught:
        load(path, **arguments)
    return caught.value.code


def test_a_signed_file_is_loaded(make: Any, keys: tuple[Path, Path]) -> None:
    path, (private, public) = make(), keys
    assert private.stat().st_mode & 0o777 == 0o600
    assert fxstack_artifact.inspect(path)["signed_by"] is None
    plain = path.read_bytes()
    sign(path, private)
    signed = path.read_bytes()
    sign(path, private)  # another signature takes its place
    assert path.read_bytes() == signed != plain
    x = torch.zeros(2, 3)
    assert torch.equal(load(path, signed_by=public)(x)["y"], load(path)(x)["y"])
    key = fxstack_artifact.inspect(path, signed_by=[public])["signed_by"]
    assert len(bytes.fromhex(key)) == 32


def test_what_is_refused(make: Any, keys: tuple[Path, Path], tmp_path: Path) -> None:
    path, (private, public) = make(), keys
    assert refused(path, signed_by=public) == "FXA111"
    sign(path, private)
    other = make_key(tmp_path / "other")
    assert refused(path, signed_by=other) == "FXA112"
    assert load(path, signed_by=[other, public])
    assert refused(path, signed_by=[]) == "FXA114"
    assert refused(path, signed_by=private) == "FXA114"
    with pytest.raises(ArtifactError, match="FXA114"):
        sign(path, public)
    with pytest.raises(FileNotFoundError):
        load(path, signed_by=tmp_path / "none")
    with pytest.raises(FileExistsError):
        make_key(private)


def test_a_signature_of_another_file(make: Any, keys: tuple[Path, Path]) -> None:
    private, public = keys
    path = make()
    sign(path, private)
    signature = fxstack_artifact.container.reading.open_archive(path).signature()
    other = make(made_by={"torch": "another"}, signature=signature)
    assert load(other)
    assert refused(other, signed_by=public) == "FXA113"
    assert refused(make(signature=b"{}"), signed_by=public) == "FXA113"


def test_signing_replaces_checksums(make: Any, keys: tuple[Path, Path]) -> None:
    """A checksum can be matched on purpose: nobody's signature is of one."""
    path, (private, public) = make(), keys
    assert (fxstack_artifact.inspect(path)["format"], checked_by(path)) == ([2, 1], "checksum")
    sign(path, private)
    assert (fxstack_artifact.inspect(path)["format"], checked_by(path)) == ([2, 0], "blake3")
    assert refused(make(kind="checksum", signature=b"{}")) == "FXA113"
    assert refused(make(kind="checksum", signature=b"{}"), signed_by=public) == "FXA113"


def checked_by(path: Path) -> Any:
    return fxstack_artifact.inspect(path)["checked_by"]


def test_a_damaged_file_is_not_signed(make: Any, keys: tuple[Path, Path]) -> None:
    path = make()
    content = path.read_bytes()
    path.write_bytes(content.replace(b"\x7fELF", b"\x7fELG"))
    with pytest.raises(ArtifactError, match="FXA103"):
        sign(path, keys[0])
    assert b"signature.json" not in path.read_bytes()


def test_nothing_is_loaded_before_the_signature_is_checked(
    make: Any, keys: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make()
    monkeypatch.setattr(
        fxstack_artifact.container.reading.Archive, "contents", lambda *_: pytest.fail("it was read")
    )
    assert refused(path, signed_by=keys[1]) == "FXA111"


def test_changes_of_a_signed_file(make: Any, keys: tuple[Path, Path], loaded_mark: Path) -> None:
    """1,000 random changes: each is refused, signature asked for or not, and nothing in it is executed."""
    private, public = keys
    path = make()
    sign(path, private)
    good, draw = path.read_bytes(), random.Random(0)
    end = len(good) - 1500  # directory, signature and digest are changed more often
    codes = set()
    for number in range(1000):
        changed = bytearray(good)
        at = draw.randrange(len(good)) if number % 2 else draw.randrange(end, len(good))
        match draw.randrange(4):
            case 0:
                changed[at] ^= 1 << draw.randrange(8)
            case 1:
                del changed[at : at + draw.randrange(1, 64)]
            case 2:
                changed[at:at] = draw.randbytes(draw.randrange(1, 64))
            case 3:
                changed[at : at + 8] = draw.randbytes(8)
        if changed == good:
            continue
        path.write_bytes(changed)
        for arguments in ({}, {"signed_by": public}):
            codes.add(refused(path, **arguments))
    assert codes <= {"FXA101", "FXA102", "FXA103"}
    assert not loaded_mark.exists()
    path.write_bytes(good)
    load(path, signed_by=public)
    assert loaded_mark.exists()
