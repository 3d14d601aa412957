"""The few lines that follow a run."""

from __future__ import annotations

from typing import Any

import torch

from fxstack.observing.summary import summary

CAUSE = {"expression": "x", "reason": "", "old": "sizes [4]", "new": "sizes [5]", "where": None}


def record(**found: Any) -> dict[str, Any]:
    """A record of one frame, in which only what is named was seen."""
    lists = ("graphs", "spans", "steps", "cache", "launches", "calls", "breaks", "recompiles", "uncompiled")
    return {name: [] for name in lists} | {"frames": [{}], "sources": {}} | found


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


def _stop(code: str, what: str, file: str, line: int) -> dict[str, Any]:
    return {"code": code, "what": what, "where": (file, line, "f"), "advice": "leave it out"}


def test_breaks_at_one_line_are_one_and_show_its_text() -> None:
    stops = [_stop("CAP217", f"the value of u{n} decides", "model.py", 7) for n in range(3)]
    lines = summary(record(breaks=stops, sources={"model.py": {"7": "    if len(rows) == 0:"}})).splitlines()
    assert lines[1:] == [
        "graph break [CAP217], 3 times: the value of u0 decides",
        "    at model.py:7 in f",
        "        if len(rows) == 0:",
        "    to do: leave it out",
    ]


def test_a_break_in_torchs_code_counts_where_the_user_called_it() -> None:
    stops = [
        _stop("CAP230", "a call", "model.py", 7),
        _stop("CAP230", "a call", torch.nn.modules.__file__, 9),
    ]
    text = summary(record(breaks=stops))
    assert "graph break [CAP230], 2 times: a call\n    at model.py:7 in f" in text
    assert text.count("graph break") == 1


def test_what_differed_most_often_comes_first_and_the_rest_is_counted() -> None:
    recompiles = [
        {"where": ("model.py", 3, f"f{n}"), "causes": [CAUSE]} for n in range(10) for _ in range(n + 1)
    ]
    lines = summary(record(recompiles=recompiles)).splitlines()
    assert lines[1].startswith("compiled again 10 times: f9,")
    assert lines[6].startswith("compiled again 5 times: f4,")
    assert lines[7:] == ["compiled again because of 4 more values"]


def test_functions_of_torch_are_one_line() -> None:
    again = {"where": (torch.nn.modules.__file__, 3, "Module.__call__"), "causes": [CAUSE]}
    left = [
        {"where": (torch.nn.modules.__file__, 3, "Module.__call__"), "reason": "the program raises KeyError"},
        {"where": ("model.py", 3, "f"), "reason": "the program raises KeyError"},
    ]
    lines = summary(record(recompiles=[again, again], uncompiled=left)).splitlines()
    assert lines[1:] == [
        "compiled again 2 times: functions of torch that the program calls",
        "runs uncompiled: model.py:3 in f and 1 more function",
        "    the program raises KeyError",
    ]
