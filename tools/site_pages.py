"""Gathers the pages of the documentation site: ``python tools/site_pages.py build/site-pages``.

Pages keep their places relative to each other, so that links between them hold, on the site as in the repository. What
they link to beside pages (sources, the licence) is copied to the same place. The reference of each package's public
names is made anew.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from workspace import ROOT

PAGES = ("README.md", "examples/README.md", "docs/**/*.md", "packages/*/README.md", "packages/*/CHANGELOG.md")
_LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


def pages() -> list[Path]:
    """All pages, relative to the root."""
    return sorted({page.relative_to(ROOT) for pattern in PAGES for page in ROOT.glob(pattern)})


def gather(target: Path) -> None:
    """Copy pages and what they link to into an empty folder."""
    shutil.rmtree(target, ignore_errors=True)
    wanted = set(pages())
    for page in sorted(wanted):
        wanted |= {found for found in linked(page) if (ROOT / found).is_file()}
    for path in sorted(wanted):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, target / path)


def linked(page: Path) -> set[Path]:
    """The files of the repository that a page links to."""
    folder = (ROOT / page).parent
    targets = [folder / link for link in _LINK.findall((ROOT / page).read_text()) if "://" not in link]
    return {path.resolve().relative_to(ROOT) for path in targets if path.resolve().is_relative_to(ROOT)}


if __name__ == "__main__":
    gather(Path(sys.argv[1]))
