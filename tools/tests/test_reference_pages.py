"""Reference pages name what the facades export, with signatures and docstrings."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import reference_pages
from workspace import BY_NAME


def test_every_public_name_of_the_interface_is_described(tmp_path: Path) -> None:
    assert reference_pages.main([str(tmp_path)]) == 0
    page = (tmp_path / "fx-interface.md").read_text()
    for name, _ in reference_pages.facade(BY_NAME["fx-interface"]):
        assert f"### `{name}`" in page
    assert "(no description)" not in page
    assert "def verify(graph_module: GraphModule, dialect: str | None=None) -> None" in page
