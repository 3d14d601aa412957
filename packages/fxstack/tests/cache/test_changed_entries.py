"""Entries of the local cache that were changed on disk: not used, not executed, and the program runs as it should.

A thousand changes of an entry's files are read by the store in the tests. That many whole runs of a program, each with
a cache of which something was changed, take some minutes: ``nox -s damage``; the tests do forty.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import fxstack
from inductor_codegen.cache import ArtifactStore
from inductor_codegen.native import library

RUNS = 1000 if os.environ.get("FXSTACK_ALL_CHANGES") else 40
Mutated = Callable[[bytes, random.Random], bytes]


def train(folder: Path) -> list[torch.Tensor]:
    """A compiled training step: a stored program, and libraries for its forward and backward."""

    def step(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x @ weight).square().sum(0)

    fxstack.reset()
    weight = torch.arange(12.0).reshape(3, 4).div(12).requires_grad_()
    made = fxstack.compile(step, options={"cache_dir": folder})(torch.arange(6.0).reshape(2, 3), weight)
    made.sum().backward()
    assert weight.grad is not None
    return [made.detach(), weight.grad]


@pytest.fixture
def whole(tmp_path: Path) -> ArtifactStore:
    """A cache that a training step has filled."""
    train(tmp_path / "whole")
    store = ArtifactStore(tmp_path / "whole")
    assert len(store.entries()) >= 3
    return store


def test_changed_files_are_not_read(whole: ArtifactStore, tmp_path: Path, mutated: Mutated) -> None:
    """1,000 random changes of entries' files: what the store gives is what was put there, or nothing."""
    good = {entry.key: whole.content(entry.key) for entry in whole.entries()}
    store, draw = ArtifactStore(tmp_path / "changed"), random.Random(3)
    files = sorted(path.relative_to(whole.folder) for path in whole.folder.glob("??/*/*"))
    refused = 0
    for _ in range(1000):
        name = draw.choice(files)
        entry, key = store.folder / name.parent, name.parent.name
        if not store.is_whole(key):
            shutil.copytree(whole.folder / name.parent, entry)
        before = (whole.folder / name).read_bytes()
        changed = mutated(before, draw)
        (store.folder / name).write_bytes(changed)
        found = store.content(key)
        assert (found is not None) == store.is_whole(key)
        if found is None:
            refused += 1
            assert store.get(key) is None
            assert not entry.exists()
        else:
            assert found == good[key]  # as JSON: a change may be one of spaces
            shutil.rmtree(entry)
    assert refused > 950


@pytest.mark.parametrize("text", [b"[" * 200_000, b'{"a":' * 200_000, b"9" * 10_000, b'"\\ud800"', b""])
def test_records_that_no_reader_takes(whole: ArtifactStore, text: bytes) -> None:
    """JSON that is too deep or too long for the reader is damage like another."""
    key = whole.entries()[0].key
    (whole.folder / key[:2] / key / "entry.json").write_bytes(text)
    assert not whole.is_whole(key)
    assert whole.content(key) is None
    assert whole.get(key) is None
    assert key not in {entry.key for entry in whole.entries()}


def _damage(folder: Path, draw: random.Random, mutated: Mutated) -> bytes | None:
    """Change one thing in a cache; the bytes of a changed file, if that is what it was.

    Files are replaced, not written to: a library that this process has loaded stays as it is.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = draw.choice(files)
    before = path.read_bytes()
    path.unlink()
    match draw.randrange(12):
        case 0:
            return None
        case 1:
            path.mkdir()
            return None
        case 2:
            path.symlink_to(draw.choice(files))
            return None
        case 3:
            shutil.rmtree(path.parent)
            return None
        case 4:  # the content of another file
            other = draw.choice(files)
            changed = before if other == path else other.read_bytes()
        case _:
            changed = mutated(before, draw) if before else b"\x00"
    path.write_bytes(changed)
    return changed if changed != before else None


def test_programs_run_whatever_is_in_the_cache(
    whole: ArtifactStore, tmp_path: Path, mutated: Mutated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The results are those of before, and no library is loaded that was changed."""
    loaded: list[str] = []
    load = library.load

    def watched(record: Any, path: Path) -> Any:
        loaded.append(hashlib.sha256(path.read_bytes()).hexdigest())
        return load(record, path)

    monkeypatch.setattr(library, "load", watched)
    want = train(whole.folder)
    good = {hashlib.sha256(path.read_bytes()).hexdigest() for path in whole.folder.glob("??/*/*.so")}
    assert loaded
    assert good.issuperset(loaded)
    draw = random.Random(os.environ.get("FXSTACK_CHANGES_SEED", "4"))
    for number in range(RUNS):
        folder = tmp_path / f"cache{number}"
        shutil.copytree(whole.folder, folder)
        changed = _damage(folder, draw, mutated)
        loaded.clear()
        got = train(folder)
        assert all(torch.equal(one, other) for one, other in zip(got, want, strict=True))
        assert loaded
        assert changed is None or hashlib.sha256(changed).hexdigest() not in set(loaded) - good
        shutil.rmtree(folder, ignore_errors=True)
