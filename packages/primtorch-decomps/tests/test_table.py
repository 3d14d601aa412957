"""The generated page of operators."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from primtorch_decomps.table import main, markdown


def test_lists_every_family() -> None:
    page = markdown()
    assert "| activations | " in page
    assert "`aten.gelu.default`" in page
    assert "| matrix products | " in page
    assert "| `where(Tensor(bool) c, Tensor" in page


def test_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "decompositions.md"
    assert main(["--check", str(file)]) == 1
    assert "out of date" in capsys.readouterr().err
    assert main([str(file)]) == 0
    assert main(["--check", str(file)]) == 0
    file.write_text(file.read_text() + "more")
    assert main(["--check", str(file)]) == 1


def test_the_page_in_the_repository_is_up_to_date() -> None:
    page = Path(__file__).parents[3] / "docs" / "decompositions.md"
    if not page.exists() or not torch.__version__.startswith("2.13"):
        pytest.skip("only for the repository, under the version of torch that the page is generated with")
    assert main(["--check", str(page)]) == 0
