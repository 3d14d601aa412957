"""Checks that every relative link in the repository's Markdown pages leads to a file."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from workspace import ROOT

_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def broken_links(page: Path) -> list[str]:
    """Targets of the page's relative links that do not exist."""
    targets = (found[1] for found in _LINK.finditer(page.read_text()))
    relative = (target for target in targets if "://" not in target and not target.startswith("mailto:"))
    return [target for target in relative if not (page.parent / target).exists()]


def pages() -> list[Path]:
    """Every Markdown page that git tracks."""
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [ROOT / line for line in listed.stdout.splitlines()]


def main() -> int:
    """Print broken links; the exit status is 1 if there are any."""
    found = [f"{page.relative_to(ROOT)}: {target}" for page in pages() for target in broken_links(page)]
    print("\n".join(found) if found else "every link leads somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
