from __future__ import annotations

from pathlib import Path

import pytest

from fxstack.cli.doctor import PACKAGES, checks


def test_every_package_and_backend_is_listed() -> None:
    found = {check.name: check for check in checks()}
    assert found.keys() >= {"Python", "torch", *PACKAGES, "C++ compiler", "interface", "backends", "GPU"}
    assert "fxstack-artifact" in found
    assert "aot_eager" in found["backends"].found
    assert all(check.action == "" for check in found.values())


def test_a_missing_compiler_comes_with_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    (missing,) = (check for check in checks() if check.action)
    assert missing.name == "C++ compiler"
    assert "install" in missing.action
