"""The README's example of changing the table runs as it stands."""

from __future__ import annotations

from pathlib import Path


def test_the_example_of_changing_the_table() -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text()
    section = text[text.index("## Changing the table") :]
    code = section.partition("```python\n")[2].partition("```")[0]
    assert "decompose(graph" in code
    exec(compile(code, "README.md", "exec"), {})
