"""The cache as a file: taken elsewhere on somebody's word, or refused."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch

import fxstack
from fxstack.cache import CacheError
from fxstack_artifact import ArtifactError
from inductor_codegen.cache import ArtifactStore


def compiled_something(store: ArtifactStore, monkeypatch: pytest.MonkeyPatch, run: Any) -> bool:
    """Whether running the function with this cache calls the C++ compiler."""
    from inductor_codegen.native import cpu

    calls = []
    build = cpu.build_library
    monkeypatch.setattr(cpu, "build_library", lambda *args: calls.append(1) or build(*args))
    assert torch.equal(run(cache_dir=store.folder), run())
    return bool(calls)


def test_nothing_is_compiled_where_it_is_imported(
    compiled: ArtifactStore, elsewhere: ArtifactStore, tmp_path: Path, run: Any, monkeypatch: Any
) -> None:
    path = tmp_path / "cache.fxc"
    written = fxstack.cache.export(path)
    assert sorted(written) == sorted(compiled.keys())
    assert sorted(fxstack.cache.import_(path, trusted=True, cache_dir=elsewhere.folder)) == sorted(written)
    assert fxstack.cache.import_(path, trusted=True, cache_dir=elsewhere.folder) == []
    assert not compiled_something(elsewhere, monkeypatch, run)


def test_somebodys_word_is_needed(
    compiled: ArtifactStore, elsewhere: ArtifactStore, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    private, public = keys
    plain, signed = tmp_path / "plain.fxc", tmp_path / "signed.fxc"
    fxstack.cache.export(plain)
    fxstack.cache.export(signed, sign_with=private, keys=compiled.keys()[:1])
    other = fxstack.make_key(tmp_path / "other")
    for path, word, code in (
        (plain, {}, "FXS701"),
        (plain, {"signed_by": public}, "FXA111"),
        (plain, {"signed_by": public, "trusted": True}, "FXA111"),
        (signed, {"signed_by": other}, "FXA112"),
    ):
        with pytest.raises((ArtifactError, CacheError), match=code):
            fxstack.cache.import_(path, cache_dir=elsewhere.folder, **word)
    assert elsewhere.keys() == []
    assert len(fxstack.cache.import_(signed, signed_by=public, cache_dir=elsewhere.folder)) == 1


def test_other_files_are_refused(elsewhere: ArtifactStore, tmp_path: Path, monkeypatch: Any) -> None:
    artifact = fxstack.aot_compile(lambda x: x + 1, (torch.ones(3),), path=tmp_path / "m.fxa")
    with pytest.raises(ArtifactError, match="FXA101"):
        fxstack.cache.import_(artifact, trusted=True, cache_dir=elsewhere.folder)
    path = tmp_path / "cache.fxc"
    fxstack.cache.export(path)
    with pytest.raises(ArtifactError, match="FXA101"):
        fxstack.load(path)
    monkeypatch.setattr("fxstack.cache.entries.system", lambda: "plan9-mips")
    with pytest.raises(CacheError, match="FXS702"):
        fxstack.cache.import_(path, trusted=True, cache_dir=elsewhere.folder)


def test_changed_files_are_refused(
    compiled: ArtifactStore, elsewhere: ArtifactStore, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    """1,000 random changes: each is refused, whatever the word, and nothing is kept of it."""
    path = tmp_path / "cache.fxc"
    fxstack.cache.export(path, sign_with=keys[0])
    good, draw = path.read_bytes(), random.Random(0)
    codes = set()
    for number in range(1000):
        changed = bytearray(good)
        at = draw.randrange(len(good)) if number % 2 else draw.randrange(len(good) - 2500, len(good))
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
        for word in ({"trusted": True}, {"signed_by": keys[1]}):
            with pytest.raises(ArtifactError) as caught:
                fxstack.cache.import_(path, cache_dir=elsewhere.folder, **word)
            codes.add(caught.value.code)
    assert codes <= {"FXA101", "FXA102", "FXA103"}
    assert elsewhere.keys() == []


def test_what_a_writer_may_not_say(elsewhere: ArtifactStore, tmp_path: Path, monkeypatch: Any) -> None:
    """Hashes are right, and the contents are no entries: names that lead elsewhere, entries without metadata."""
    from fxstack.cache import entries

    for name in ("aa/entry.json", "zz/metadata.json", "aa/files/x/y", "metadata.json", "aa/files/x"):
        path = tmp_path / "cache.fxc"
        manifest = entries.Manifest(
            {}, entries.ENTRY_ABI, entries.torch_version(torch.__version__), entries.system(), (),
            {name: entries.content_of(b"{}", "blake3")}, "blake3", entries.version_for("blake3"), entries.FORMAT,
        )  # fmt: skip
        entries.write_sealed(path, manifest, {name: b"{}"})
        with pytest.raises(CacheError, match="FXS703"):
            fxstack.cache.import_(path, trusted=True, cache_dir=elsewhere.folder)
    assert elsewhere.keys() == []
