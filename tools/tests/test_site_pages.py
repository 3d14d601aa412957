"""The site has every page that it lists, and what pages link to."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import site_pages
from workspace import PACKAGES, ROOT


def test_pages_and_what_they_link_to_keep_their_places(tmp_path: Path) -> None:
    site_pages.gather(tmp_path / "pages")
    made = {
        path.relative_to(tmp_path / "pages") for path in (tmp_path / "pages").rglob("*") if path.is_file()
    }
    assert {
        Path("README.md"),
        Path("docs/tour.md"),
        Path("packages/guards/README.md"),
        Path("LICENSE"),
    } <= made
    for page in site_pages.pages():
        assert (tmp_path / "pages" / page).read_text() == (ROOT / page).read_text()


def test_the_listed_pages_exist() -> None:
    listed = re.findall(r"- (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    reference = {f"reference/{package.name}.md" for package in PACKAGES}
    assert reference <= set(listed)
    missing = [page for page in listed if page not in reference and not (ROOT / page).is_file()]
    assert missing == []
