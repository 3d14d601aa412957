"""Links in the repository's pages lead somewhere, and a broken one is found."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import check_links


def test_all_links_lead_somewhere() -> None:
    assert check_links.main() == 0


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("[a](page.md) [b](missing.md#part) [c](https://example.org) [d](#part)")
    assert check_links.broken_links(page) == ["missing.md"]
