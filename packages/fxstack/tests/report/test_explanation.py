from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

import fxstack
from fxstack.report import Explanation

SCREEN = 40


def _if(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    if y.sum() > 0:
        return y + 1.0
    return y - 1.0


def _loop(x: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        if x.sum() > 1e6:
            return x
        x = x + 1.0
    return x


def _explained(function: Any) -> Explanation:
    return fxstack.explain(function)(torch.ones(3))


def test_breaks_come_before_graphs_and_guards_are_folded() -> None:
    lines = str(_explained(_if)).splitlines()
    first = _if.__code__.co_firstlineno
    assert lines[0] == "2 graphs, 1 graph break"
    (stop,) = (n for n, line in enumerate(lines) if line.startswith("graph break [CAP201]"))
    assert lines[stop + 1] == f"  at {__file__}:{first + 2} in _if"
    assert lines[stop + 2] == "      if y.sum() > 0:"
    assert lines[stop + 3].startswith("  to do: ")
    wanted = [
        f"graph 0, {__file__}:{first + 1} to {first + 2}: 3 operations: sin, sum, gt",
        f"graph 1, {__file__}:{first + 3}: 1 operation: add",
    ]
    for line, whole in zip(lines[stop + 5 : stop + 7], wanted, strict=True):
        assert len(line) > 60
        assert whole.startswith(line.removesuffix("..."))  # lines are cut to a screen's width
    assert lines[-1].endswith("guards, and graphs as text: .details()")


def test_equal_breaks_are_one() -> None:
    text = str(_explained(_loop))
    assert text.startswith("3 graphs, 2 graph breaks at 1 line\n")
    assert text.count("graph break [") == 1
    assert "graph break [CAP201], 2 times:" in text


def _many_breaks(folder: Path, count: int) -> Any:
    """A function with so many breaks, each at a line of its own."""
    lines = "".join(
        f"    if x.sum() > 1e6 + {n}:\n        return x\n    x = x + {n}.0\n" for n in range(count)
    )
    file = folder / "many.py"
    file.write_text(f"def many(x):\n{lines}    return x\n")
    found: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), found)
    return found["many"]


def test_many_breaks_fit_one_screen_and_are_all_in_the_details(tmp_path: Path) -> None:
    told = _explained(_many_breaks(tmp_path, 20))
    text = str(told)
    assert len(told.breaks) == 20
    assert len(text.splitlines()) <= SCREEN
    shown = text.count("graph break [")
    assert f"and graph breaks at {20 - shown} more lines: .breaks" in text
    assert "more graphs: .graphs" in text
    assert text.index("graph break [") < text.index("graph 0,")
    assert told.details().count("graph break [") == 20


def test_details_have_graphs_and_guards_in_words() -> None:
    text = _explained(_if).details()
    assert text.index("graph break [") < text.index("graph(torch):") < text.index("guards of code 0")
    assert "%sin: float32[3] = %x.sin()" in text
    assert "  x: tensor_match type=<class 'torch.Tensor'> dtype=torch.float32 " in text
    assert "LocalSource" not in text


def test_what_holds_no_tensor_is_said() -> None:
    told = fxstack.explain(lambda n: n + 1)(3)
    assert str(told) == "nothing was compiled: no tensor operation was met"
    assert told.result == 4


def test_many_reasons_to_run_uncompiled_leave_room_for_breaks() -> None:
    eager = tuple((f"f{n}", f"reason {n}\n  at a line\n  to do: something") for n in range(30))
    told = _explained(_if)
    text = str(Explanation(told.graphs, told.breaks, told.guards, eager, None))
    assert len(text.splitlines()) <= SCREEN
    assert "and more that runs uncompiled: .eager" in text
    assert "graph break [CAP201]" in text
