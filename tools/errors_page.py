"""Generates docs/errors.md: every code of every package, with its meaning, out of the tables of the packages' READMEs.

python tools/errors_page.py           # writes the page
python tools/errors_page.py --check   # fails if the page, or a table, is out of date
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from workspace import PACKAGES, ROOT, Package

PAGE = ROOT / "docs" / "errors.md"
BREAKS = "CAP2"  # codes of graph breaks are in a catalogue of their own
_ROW = re.compile(r"^\| ([A-Z]{3}\d{3}[^|]*)\|(.*)\|$")
_CODE = re.compile(r"([A-Z]{3})?(\d{3})(?:\s*(?:-|to)\s*(?:[A-Z]{3})?(\d{3}))?")
_IN_SOURCE = re.compile(r"[\"\[]([A-Z]{3}\d{3})[\"\]]")
_HEAD = """# Errors, by code

Every error has a code, says what happened, where in the code, and what to do. This page lists all codes of all
packages but those of graph breaks (`CAP2xx`), which [graph-breaks.md](graph-breaks.md) explains one by one. It is made
of the tables in the packages' READMEs (`python tools/errors_page.py`). A test holds that each code in the sources has a
row.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table: the codes as written, the codes one by one, and the meaning."""

    written: str
    codes: tuple[str, ...]
    meaning: str


def rows(package: Package) -> Iterator[Row]:
    """The rows about codes in a package's README."""
    for line in (package.folder / "README.md").read_text().splitlines():
        found = _ROW.match(line)
        if found:
            meaning = " ".join(cell.strip() for cell in found[2].split(" | ")).strip()
            yield Row(found[1].strip(), tuple(one_by_one(found[1])), meaning)


def one_by_one(written: str) -> Iterator[str]:
    """``FXI100-102, 104`` -> FXI100, FXI101, FXI102, FXI104."""
    prefix = ""
    for found in _CODE.finditer(written):
        prefix = found[1] or prefix
        for number in range(int(found[2]), int(found[3] or found[2]) + 1):
            yield f"{prefix}{number:03d}"


def in_sources() -> set[str]:
    """Every code that stands as text in the sources of a package, graph breaks left out."""
    known = {code[:3] for package in PACKAGES for row in rows(package) for code in row.codes}
    files = (path for package in PACKAGES for path in package.source.rglob("*.py"))
    found = {code for path in files for code in _IN_SOURCE.findall(path.read_text())}
    return {code for code in found if code[:3] in known and not code.startswith(BREAKS)}


def missing() -> list[str]:
    """Codes in the sources that no README lists."""
    listed = {code for package in PACKAGES for row in rows(package) for code in row.codes}
    return sorted(in_sources() - listed)


def page() -> str:
    """The text of the page."""
    lines = [_HEAD]
    for package in PACKAGES:
        own = sorted(rows(package), key=lambda row: row.codes[0])
        if own:
            readme = f"../{(package.folder / 'README.md').relative_to(ROOT)}"
            lines += [f"## {package.name}", "", f"[README]({readme})", "", "| code | meaning |", "|---|---|"]
            lines += [f"| {row.written} | {_moved(row.meaning, package)} |" for row in own]
            lines.append("")
    return "\n".join(lines)


def _moved(meaning: str, package: Package) -> str:
    """Links that were relative to the README, relative to the page."""
    return meaning.replace("](../../docs/", "](")


def main(argv: Sequence[str]) -> int:
    """Write or check the page; 1 where something is out of date."""
    undescribed = missing()
    if undescribed:
        print(f"no README says what these mean: {', '.join(undescribed)}")
    if "--check" not in argv:
        PAGE.write_text(page())
        return 1 if undescribed else 0
    if not PAGE.exists() or PAGE.read_text() != page():
        print(f"{PAGE.relative_to(ROOT)} is out of date: python tools/errors_page.py")
        return 1
    return 1 if undescribed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
