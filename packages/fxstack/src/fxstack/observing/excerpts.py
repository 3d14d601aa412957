"""The lines of the user's source that a record names, with some around them."""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Mapping
from typing import Any

AROUND = 5
"""Lines before and after each that is named."""


def excerpts(kept: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """For each file its lines by number, as far as the file can be read. ``kept``: the lists of a record."""
    wanted: dict[str, set[int]] = {}
    for file, line in _places(kept):
        wanted.setdefault(file, set()).update(range(max(1, line - AROUND), line + AROUND + 1))
    found = {}
    for file, numbers in wanted.items():
        lines = linecache.getlines(file)
        texts = {str(n): lines[n - 1].rstrip("\n") for n in sorted(numbers) if n <= len(lines)}
        if texts:
            found[file] = texts
    return found


def _places(value: Any) -> Iterator[tuple[str, int]]:
    """Every location in a record: a list of file, line and function."""
    if isinstance(value, dict):
        for item in value.values():
            yield from _places(item)
    elif isinstance(value, list):
        match value:
            case [str() as file, int() as line, str()]:
                yield file, line
            case _:
                for item in value:
                    yield from _places(item)
