"""The bytes around contents."""

from __future__ import annotations

import io
import random
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
import torch

from fxstack_artifact import ArtifactError, load
from fxstack_artifact.container.hashing import BLAKE3, PIECE, digest
from fxstack_artifact.container.layout import ALIGNMENT, Entry, directory, is_name, local_header, tail
from fxstack_artifact.container.manifest import NAME, Content, Manifest
from fxstack_artifact.container.reading import open_archive


def test_it_is_a_zip_file_of_aligned_contents() -> None:
    contents = {
        "manifest.json": b"{}",
        "native/0.x86-64-v3.so": bytes(100),
        "a": b"",
        "weights.safetensors": b"w" * 65,
    }
    made, entries = b"", []
    for name, data in contents.items():
        entries.append(Entry(name, len(data), zlib.crc32(data), len(made)))
        made += local_header(entries[-1]) + data
        assert entries[-1].start % ALIGNMENT == 0
        assert made[entries[-1].start :] == data
    made += tail(entries, len(made), "d" * 64)
    with zipfile.ZipFile(io.BytesIO(made)) as file:
        assert file.testzip() is None
        assert {name: file.read(name) for name in file.namelist()} == contents
        assert file.comment == b"d" * 64
    assert directory(memoryview(made)) == (entries, "d" * 64)


@pytest.mark.parametrize(
    "name", ["", "/a", "a/", "../a", "a//b", "A", "a b", "a\n", ".a", "a" * 201, "a/../b", "é"]
)
def test_names_that_lead_elsewhere_are_none(name: str) -> None:
    assert not is_name(name)


def test_the_64_bit_form(make: Any) -> None:
    path = make(wide=True)
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is None
        assert file.namelist()[0] == "manifest.json"
    x = torch.zeros(2, 3)
    assert torch.equal(load(path)(x)["y"][0], torch.tensor([1.0, 2.0, 3.0]))
    good = path.read_bytes()
    draw = random.Random(0)
    for _ in range(300):
        changed = bytearray(good)
        at = draw.choice((draw.randrange(len(good)), len(good) - 1 - draw.randrange(900)))
        changed[at] ^= 1 << draw.randrange(8)
        path.write_bytes(changed)
        with pytest.raises(ArtifactError, match=r"FXA10[123]"):
            load(path)


@pytest.mark.nightly
def test_more_than_4_gb(tmp_path: Path) -> None:
    """A sparse file: the content is zeros, of which all pieces but the last have one digest."""
    size = (4 << 30) + 5
    zero, last = digest(bytes(PIECE)), digest(bytes(size % PIECE))
    content = Content(size, (*[zero] * (size // PIECE), last))
    manifest = Manifest({}, 0, "0", "nowhere", (), {"zeros": content}, BLAKE3, (2, 0)).to_bytes()
    crc = 0
    for _ in range(size // PIECE):
        crc = zlib.crc32(bytes(PIECE), crc)
    path = tmp_path / "large"
    entries = [Entry(NAME, len(manifest), zlib.crc32(manifest), 0, True)]
    entries.append(
        Entry("zeros", size, zlib.crc32(bytes(size % PIECE), crc), entries[0].start + len(manifest), True)
    )
    with open(path, "wb") as file:
        file.write(local_header(entries[0]) + manifest + local_header(entries[1]))
        file.seek(size, 1)
        file.write(tail(entries, file.tell(), digest(manifest)))
    archive = open_archive(path)
    assert archive.entries["zeros"].size == size
    archive.contents()
    with zipfile.ZipFile(path) as file:
        assert file.getinfo("zeros").file_size == size
    with open(path, "r+b") as changed:
        changed.seek(size - 1)
        changed.write(b"\1")
    with pytest.raises(ArtifactError, match="FXA103"):
        open_archive(path).contents()
