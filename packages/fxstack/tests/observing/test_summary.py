"""The few lines that follow a run."""

from __future__ import annotations

from typing import Any

from fxstack.observing.summary import summary

CAUSE = {"expression": "x", "reason": "", "old": "sizes [4]", "new": "sizes [5]", "where": None}


def record(**found: Any) -> dict[str, Any]:
    """A record of one frame, in which only what is named was seen."""
    lists = ("graphs", "spans", "steps", "cache", "launches", "calls", "breaks", "recompiles", "uncompiled")
    return {name: [] for name in lists} | {"frames": [{}]} | found


def test_a_value_that_changes_in_each_call_is_one_line() -> None:
    causes = [
        CAUSE | {"old": f"length {n}", "new": str(n + 1), "where": ("model.py", 7, "f")} for n in range(4)
    ]
    recompiles = [{"where": ("model.py", 3, "f"), "causes": [cause]} for cause in causes]
    _, line, advice = summary(record(recompiles=recompiles)).splitlines()
    assert line == (
        "compiled again 4 times: f, x: was length 0, is 1; ... was length 3, is 4 (relied on at model.py:7 in f)"
    )
    assert "to do: " in advice
    elsewhere = {"where": ("model.py", 3, "f"), "causes": [causes[0] | {"where": ("model.py", 8, "f")}]}
    assert len(summary(record(recompiles=[*recompiles[:2], elsewhere])).splitlines()) == 3


def test_equal_reasons_for_compiling_again_are_one_line() -> None:
    again = {"where": ("model.py", 3, "f"), "causes": [CAUSE]}
    other = {"where": ("model.py", 9, "g"), "causes": [CAUSE]}
    lines = summary(record(recompiles=[again, again, other])).splitlines()
    assert lines[1:] == [
        "compiled again 2 times: f, x: was sizes [4], is sizes [5]",
        "compiled again: g, x: was sizes [4], is sizes [5]",
    ]
