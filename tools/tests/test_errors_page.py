"""Every code in the sources has a row in its package's README, and the page lists all of them."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pytest

import errors_page


def test_the_page_is_up_to_date_and_complete() -> None:
    assert errors_page.missing() == []
    assert errors_page.PAGE.read_text() == errors_page.page()


def test_rows_of_several_codes_are_taken_apart() -> None:
    written = "IND101-IND103, IND107, 108 to 110"
    assert list(errors_page.one_by_one(written)) == [
        *("IND101", "IND102", "IND103", "IND107", "IND108", "IND109", "IND110")
    ]


def test_a_code_that_no_readme_lists_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors_page, "in_sources", lambda: {"AOT999"})
    assert errors_page.missing() == ["AOT999"]
    assert errors_page.main(["--check"]) == 1
