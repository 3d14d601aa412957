"""Makes a failing program small: statements are left out, one by one, for as long as it fails in the same way."""

from __future__ import annotations

from collections.abc import Callable

Differences = Callable[[str], list[str]]

KEPT = "# What is above stays as it is when the program is shrunk."
"""A line that ends what a program needs to be put back after a run, say."""


def shrunk(source: str, differences: Differences) -> str:
    """The program without what its failure does not need; ``differences`` runs a program's text."""
    wanted = _kinds(differences(source))
    kept, _, rest = source.rpartition(f"{KEPT}\n")
    lines = _without_runs(kept, rest.splitlines(), wanted, differences)
    changed = True
    while changed:
        changed = False
        at = len(lines) - 1
        while at >= 0:
            for candidate in _without(lines, at):
                if _fails(kept, candidate, wanted, differences):
                    lines, changed = candidate, True
                    break
            at = min(at, len(lines)) - 1
    return kept + "\n".join(lines) + "\n"


def _without_runs(kept: str, lines: list[str], wanted: set[str], differences: Differences) -> list[str]:
    """The program without runs of lines, long ones first: most of a program goes in few attempts."""
    for size in (32, 16, 8, 4, 2):
        for at in range(len(lines) - size, -1, -size):
            candidate = [*lines[:at], *lines[at + size :]]
            if _fails(kept, candidate, wanted, differences):
                lines = candidate
    return lines


def _without(lines: list[str], at: int) -> list[list[str]]:
    """The program without a line and the block below it, with ``pass`` in their place, or with the block alone."""
    if not lines[at].strip() or lines[at].startswith(("CALLS", "WATCHED", "import")):
        return []
    depth, end = _depth(lines[at]), at + 1
    while end < len(lines) and lines[end].strip() and _depth(lines[end]) > depth:
        end += 1
    gone = [*lines[:at], *lines[end:]]
    found = [gone]
    if end > at + 1:
        found.append([*lines[:at], *[line[4:] for line in lines[at + 1 : end]], *lines[end:]])
    elif lines[at].strip() != "pass":
        found.append([*lines[:at], " " * depth + "pass", *lines[end:]])
    return found


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _fails(kept: str, lines: list[str], wanted: set[str], differences: Differences) -> bool:
    text = kept + "\n".join(lines) + "\n"
    try:
        compile(text, "<shrunk>", "exec")
        found = differences(text)
    except Exception:  # a program that is not one any more
        return False
    return bool(_kinds(found) & wanted)


def _kinds(found: list[str]) -> set[str]:
    """What differs, without the call's number and the values."""
    return {line.split(":")[1 if line.startswith("call ") else 0].strip() for line in found}
