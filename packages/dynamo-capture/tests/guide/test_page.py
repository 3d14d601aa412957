"""docs/capture.md says what the stages of capture really give."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from dynamo_capture import optimize

HERE = Path(__file__).parent
PAGE = HERE.parents[3] / "docs" / "capture.md"
WRITTEN_FOR = sys.version_info[:2] == (3, 11) and torch.__version__.startswith("2.13.")


@pytest.mark.skipif(
    not WRITTEN_FOR, reason="bytecode and operators' names are those of CPython 3.11 and torch 2.13"
)
def test_the_page_is_what_its_program_gives():
    done = subprocess.run(
        [sys.executable, str(HERE / "page.py")], check=True, capture_output=True, text=True, timeout=120
    )
    assert done.stdout == PAGE.read_text(encoding="utf-8"), "write it again: page.py --write"


def test_what_the_page_says_of_later_calls():
    class State:
        def __init__(self):
            self.scale, self.calls, self.seen = 2.0, 0, []

    def program(state, x):
        y = x * state.scale
        state.calls += 1
        state.seen.append(y)
        return y.sum()

    fast, state = optimize(lambda graph_module, inputs: graph_module.forward)(program), State()
    for _ in range(6):
        fast(state, torch.ones(3))
    assert (state.calls, len(state.seen)) == (6, 6)
    assert len(fast.__fxstack_capture__.report.replacements) == 2


def test_the_places_that_the_page_names_exist():
    package = HERE.parents[1]
    named = re.findall(r"`([a-z_]+/[a-z_/]+(?:\.py|/))`", PAGE.read_text())
    assert len(named) > 8
    for place in named:
        roots = (package / "src" / "dynamo_capture", package, HERE.parents[3])
        assert any((root / place).exists() for root in roots), place
