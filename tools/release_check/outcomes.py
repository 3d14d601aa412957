"""What was tried, and how it ended; what could not be tried is a line of its own."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

Verdict = Literal["passed", "failed", "not run"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One line of the report. ``text`` is the end of the output of what failed, or why it was not run."""

    what: str
    python: str
    torch: str
    dependencies: str
    verdict: Verdict
    text: str = ""
    seconds: float = 0.0


def table(outcomes: Iterable[Outcome]) -> str:
    """All lines, as Markdown."""
    lines = ["| what | CPython | torch | dependencies | outcome | s |", "|---|---|---|---|---|---|"]
    for one in outcomes:
        said = one.verdict if one.verdict != "not run" else f"not run: {one.text}"
        columns = (one.what, one.python, one.torch, one.dependencies, said, f"{one.seconds:.0f}")
        lines.append(f"| {' | '.join(columns)} |")
    return "\n".join(lines) + "\n"


def write(outcomes: Iterable[Outcome], folder: Path) -> None:
    """``release-check.md`` and ``release-check.json`` in ``folder``."""
    rows = list(outcomes)
    (folder / "release-check.md").write_text(table(rows))
    (folder / "release-check.json").write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
