"""import-linter runs with contracts made from the metadata, and a wrong import fails it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import import_arrows
import workspace

pytest.importorskip("importlinter")


def test_no_package_imports_what_it_does_not_declare() -> None:
    assert import_arrows.main([]) == 0


def test_contracts_forbid_every_undeclared_sibling() -> None:
    text = import_arrows.contracts()
    guards = text.split("[importlinter:contract:fx_guards]")[1].split("[importlinter:contract")[0]
    for module in ("aot_autograd", "dynamo_capture", "fxstack", "inductor_codegen", "primtorch_decomps"):
        assert f"    {module}\n" in guards.split("forbidden_modules")[1]
    assert "fx_interface" not in guards.split("forbidden_modules")[1]


def test_a_wrong_import_is_found(tmp_path: Path) -> None:
    for package in workspace.PACKAGES:
        folder = tmp_path / package.module
        folder.mkdir()
        (folder / "__init__.py").write_text("import fxstack\n" if package.module == "fx_guards" else "")
    assert import_arrows.run_linter(import_arrows.contracts(), [tmp_path]) != 0
