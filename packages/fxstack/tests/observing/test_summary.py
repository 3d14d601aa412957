"""The few lines that follow a run."""

from __future__ import annotations

from typing import Any

from fxstack.observing.summary import summary

CAUSE = {"expression": "x", "reason": "", "old": "sizes [4]", "new": "sizes [5]", "where": None}


def record(**found: Any) -> dict[str, Any]:
    """A record of one frame, in which only what is named was seen."""
    lists = ("graphs", "spans", "steps", "cache", "launches", "calls", "breaks", "recompiles", "uncompiled")
    return {name: [] for name in lists} | {"frames": [{}]} | found


def test_equal_reasons_for_compiling_again_are_one_line() -> None:
    again = {"where": ("model.py", 3, "f"), "causes": [CAUSE]}
    other = {"where": ("model.py", 9, "g"), "causes": [CAUSE]}
    lines = summary(record(recompiles=[again, again, other])).splitlines()
    assert lines[1:] == [
        "compiled again 2 times: f, x: was sizes [4], is sizes [5]",
        "compiled again: g, x: was sizes [4], is sizes [5]",
    ]
