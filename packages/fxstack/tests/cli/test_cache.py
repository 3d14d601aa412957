from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from fxstack.cli import main
from inductor_codegen.cache import ArtifactStore


@pytest.fixture
def store(cache_dir: Path) -> ArtifactStore:
    """Three entries of a MiB each; ``a0`` was used last, ``c0`` 40 days ago."""
    made = ArtifactStore(cache_dir)
    for age, key in ((0, "a0"), (20, "b0"), (40, "c0")):
        made.put(key, None, {"library": bytes(2**20)})
        used = time.time() - age * 86400
        os.utime(cache_dir / key / key / "entry.json", (used, used))
    return made


def _json(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> Any:
    assert main(["cache", *arguments, "--json"]) == status
    return json.loads(capsys.readouterr().out)


def test_show_says_where_how_many_and_how_much(
    store: ArtifactStore, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cache"]) == 0
    text = capsys.readouterr().out
    assert f"{store.folder}: 3 entries, 3.0 MiB of 4096.0 MiB" in text
    assert "between 40 d and 0 s ago" in text
    assert _json(capsys, "show")["entries"] == 3


def test_clear_drops_everything(store: ArtifactStore, capsys: pytest.CaptureFixture[str]) -> None:
    assert sorted(_json(capsys, "clear")["dropped"]) == ["a0", "b0", "c0"]
    assert not list(store.folder.rglob("library"))


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (("--max-size", "2.5M"), ["a0", "b0"]),
        (("--max-size", "1G"), ["a0", "b0", "c0"]),
        (("--older-than", "30d"), ["a0", "b0"]),
        (("--older-than", "12h", "--max-size", "1GiB"), ["a0"]),
        (("--max-size", "0"), []),
    ],
)
def test_prune_drops_what_was_used_least_recently(
    store: ArtifactStore, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], left: list[str]
) -> None:
    dropped = _json(capsys, "prune", *arguments)["dropped"]
    assert store.keys() == left
    assert sorted([*left, *dropped]) == ["a0", "b0", "c0"]


def test_verify_drops_what_was_changed_and_nothing_else(
    store: ArtifactStore, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _json(capsys, "verify")["dropped"] == []
    used = [entry.used for entry in store.entries()]
    (store.folder / "b0" / "b0" / "library").write_bytes(b"other")
    assert _json(capsys, "verify", status=1)["dropped"] == ["b0"]
    assert store.keys() == ["a0", "c0"]
    assert [entry.used for entry in store.entries()] == [used[0], used[2]]  # looking is no use
    assert _json(capsys, "verify")["dropped"] == []
