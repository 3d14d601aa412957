"""The catalogue's page says what the package's data say, and the package uses no code that it lacks."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import graph_breaks_page


def test_every_kind_has_a_section() -> None:
    text = graph_breaks_page.page()
    kinds = graph_breaks_page.catalogue().KINDS
    assert len(kinds) > 30
    for code, kind in kinds.items():
        section = text.partition(f"\n## {code}\n")[2].partition("\n## ")[0]
        assert kind.why in section
        assert kind.advice in section


def test_a_page_that_is_out_of_date_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_breaks_page, "PAGE", tmp_path / "graph-breaks.md")
    monkeypatch.setattr(graph_breaks_page, "ROOT", tmp_path)
    assert graph_breaks_page.main(["--check"]) == 1
    assert graph_breaks_page.main([]) == 0
    assert graph_breaks_page.main(["--check"]) == 0
    graph_breaks_page.PAGE.write_text("old")
    assert graph_breaks_page.main(["--check"]) == 1


def test_codes_that_stand_as_text_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    source = 'raise GraphBreak("CAP201", "what")\nraise GraphBreak(CONTENT_DECIDES, "CAP201 in a sentence")\n'
    assert list(graph_breaks_page.bare_codes(source)) == [(1, "CAP201")]
    monkeypatch.setattr(graph_breaks_page, "NAMING", ())
    assert graph_breaks_page.main(["--check"]) == 1


def test_names_of_codes_are_those_of_the_catalogue() -> None:
    catalogue = graph_breaks_page.catalogue()
    named = {value for value in vars(catalogue).values() if re.fullmatch(r"CAP\d{3}", str(value))}
    assert named == set(catalogue.KINDS)
