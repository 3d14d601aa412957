"""Reference pages name what the facades export, with signatures and docstrings."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pytest

import reference_pages
from workspace import BY_NAME, PACKAGES, Package


def test_every_public_name_of_the_interface_is_described(tmp_path: Path) -> None:
    assert reference_pages.main([str(tmp_path)]) == 0
    page = (tmp_path / "fx-interface.md").read_text()
    for name, _ in reference_pages.facade(BY_NAME["fx-interface"]):
        assert f"### `{name}`" in page
    assert "def verify(graph_module: GraphModule, dialect: str | None=None) -> None" in page


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_every_public_name_has_a_docstring(package: Package) -> None:
    found = {
        name: reference_pages.definition(name, module) for name, module in reference_pages.facade(package)
    }
    assert found
    assert [name for name, known in found.items() if known is None or not known[1]] == []


def test_names_are_followed_through_facades() -> None:
    signature, text, methods = reference_pages.definition("OptimizedModule", "fxstack") or ("", "", [])
    assert signature.startswith("class CompiledModule")
    assert text
    fields = reference_pages.definition("TensorMatch", "fx_guards")
    assert fields is not None
    assert "- `dtype: torch.dtype`" in fields[2]
