"""The examples of the documentation run as they stand, each page from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = ("joint-graphs.md",)


@pytest.mark.parametrize("page", PAGES)
def test_a_pages_examples_run(page: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    assert blocks
    script = tmp_path / "page.py"
    script.write_text("\n\n".join(blocks))
    exec(compile(script.read_text(), str(script), "exec"), {"__name__": "page"})
    assert "mm" in capsys.readouterr().out
