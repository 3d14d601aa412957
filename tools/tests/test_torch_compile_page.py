"""The page about torch.compile says what the tables say, and is made without loading the stack."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch_compile_page


def test_every_entry_and_option_has_a_place() -> None:
    text = torch_compile_page.page()
    for _, _, entries in torch_compile_page.tables("table").TABLES:
        assert entries
        for entry in entries:
            assert f"| `{entry.name}` | {entry.state} | {entry.here} |" in text
    for family in torch_compile_page.tables("option_families").FAMILIES:
        section = text.partition(f"\n### {family.title}\n")[2].partition("\n### ")[0]
        assert family.here in section
        assert all(f"`{name}`" in section for name in family.names)


def test_a_page_that_is_out_of_date_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_compile_page, "PAGE", tmp_path / "torch-compile.md")
    monkeypatch.setattr(torch_compile_page, "ROOT", tmp_path)
    assert torch_compile_page.main(["--check"]) == 1
    assert torch_compile_page.main([]) == 0
    assert torch_compile_page.main(["--check"]) == 0
    torch_compile_page.PAGE.write_text("old")
    assert torch_compile_page.main(["--check"]) == 1


def test_the_page_in_the_repository_is_up_to_date() -> None:
    subprocess.run([sys.executable, torch_compile_page.__file__, "--check"], check=True)
