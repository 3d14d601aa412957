"""Holds docs/peer-suite.md, which says of each of torch's own capture tests why it is not credited, against a run.

    python tools/peer_suite.py BASELINE.json RUN.json

Both files are results of one runner: ``cases`` by name, each with ``status``, ``cat`` and ``graphs``. The baseline is
stock's. Fails where the page lacks a test that stock passes and the run is not credited for, or lists another.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workspace import ROOT

PAGE = ROOT / "docs" / "peer-suite.md"
_ENTRY = re.compile(r"^- `(test_[\w.]+)`")

Cases = Mapping[str, Mapping[str, Any]]


def is_credited(stock: Mapping[str, Any], ours: Mapping[str, Any] | None) -> bool:
    """Whether a test that stock passes counts: it passes, and has graphs where stock has, or asked for whole graphs."""
    if ours is None or ours["status"] != "pass":
        return False
    return not stock.get("graphs") or any(ours.get(proof) for proof in ("graphs", "opaque", "whole"))


def uncredited(stock: Cases, ours: Cases) -> tuple[int, set[str]]:
    """How many tests of behaviour stock passes, and which of them are not credited."""
    counted = {
        name: case
        for name, case in stock.items()
        if case["status"] == "pass" and case.get("cat", "behaviour") == "behaviour"
    }
    return len(counted), {name for name, case in counted.items() if not is_credited(case, ours.get(name))}


def listed(page: str) -> dict[str, list[str]]:
    """The tests of the page, under its headings."""
    found: dict[str, list[str]] = {}
    heading = ""
    for line in page.splitlines():
        if line.startswith("## "):
            heading = line[3:]
        entry = _ENTRY.match(line)
        if entry is not None:
            found.setdefault(heading, []).append(entry[1])
    return found


def faults(page: str, missing: set[str]) -> list[str]:
    """What the page says that is not so."""
    names = [name for group in listed(page).values() for name in group]
    twice = sorted({name for name in names if names.count(name) > 1})
    return [
        *(f"{name} has no reason on the page" for name in sorted(missing - set(names))),
        *(f"{name} is credited, and on the page" for name in sorted(set(names) - missing)),
        *(f"{name} is on the page twice" for name in twice),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare; print the faults and the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("baseline", type=Path)
    parser.add_argument("run", type=Path)
    chosen = parser.parse_args(arguments)
    stock, ours = (json.loads(path.read_text())["cases"] for path in (chosen.baseline, chosen.run))
    counted, missing = uncredited(stock, ours)
    page = PAGE.read_text()
    found = faults(page, missing)
    for fault in found:
        print(fault)
    for heading, names in listed(page).items():
        print(f"{len(names):4d}  {heading}")
    print(f"{counted - len(missing)} of {counted} credited")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
