"""The bytes around contents."""

from __future__ import annotations

import io
import zipfile
import zlib

import pytest

from fxstack_artifact.container.layout import ALIGNMENT, Entry, directory, is_name, local_header, tail


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
