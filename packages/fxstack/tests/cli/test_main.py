from __future__ import annotations

from pathlib import Path

import pytest

from fxstack.cli import main
from inductor_codegen.cache import ArtifactStore


def test_cache_says_where_and_how_much_and_clears(
    cache_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ArtifactStore(cache_dir).put("ab", None, {"library": b"x" * 2**20})
    assert main(["cache"]) == 0
    assert "1 artifacts, 1.0 MiB" in " ".join(capsys.readouterr().out.split())
    assert main(["cache", "--clear"]) == 0
    assert "0 artifacts" in " ".join(capsys.readouterr().out.split())
    assert not list(cache_dir.rglob("library"))


def test_doctor_succeeds_where_a_compiler_is_and_fails_where_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor"]) == 0
    assert "C++ compiler" in capsys.readouterr().out
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert main(["doctor"]) == 1


def test_an_unknown_command_is_refused() -> None:
    with pytest.raises(SystemExit) as caught:
        main(["cure"])
    assert caught.value.code == 2
