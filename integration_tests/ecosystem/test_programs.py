"""The programs of libraries that are installed, captured: each equals eager, in as many graphs as its file says."""

from __future__ import annotations

import logging

import pytest
import torch
from measuring import compare_captured, same, tensors_in
from page import page, table
from programs import Program, libraries, programs_of

PROGRAMS = [program for library in libraries() for program in programs_of(library)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_program_equals_eager(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    if missing := program.missing():
        pytest.skip(f"{missing} is not installed")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(logging.root.manager, "disable", logging.WARNING)  # as the driver has it
    failure, counts = compare_captured(program)
    assert not failure
    assert (counts.graphs, counts.breaks) <= (program.graphs, program.breaks), counts.reasons


def test_a_difference_is_seen() -> None:
    expected = [list(tensors_in({"loss": torch.ones(3)}))]
    assert same([list(tensors_in({"loss": torch.ones(3)}))], expected) == (True, 0.0)
    assert not same([list(tensors_in({"loss": torch.ones(3) * 1.01}))], expected)[0]
    assert not same([list(tensors_in({"loss": torch.ones(3, dtype=torch.float64)}))], expected)[0]
    assert not same([list(tensors_in({"other": torch.ones(3)}))], expected)[0]
    assert not same([list(tensors_in({"loss": torch.full((3,), torch.nan)}))], expected)[0]


def test_the_page_names_what_is_wrong() -> None:
    counts = {"graphs": 2, "breaks": 1, "reasons": ["CAP101 at a.py:1: print"]}
    fewer = {"graphs": 1, "breaks": 0, "reasons": []}
    seconds = {"eager": 0.001, "stock": 0.001, "fxstack": 0.002}
    row = {"library": "l", "name": "slow one", "failure": "", "error": 0.0, "ours": counts, "stock": fewer}
    text = page(
        [{**row, "seconds": seconds}, {"library": "m", "name": "absent", "left_out": "m is not installed"}]
    )
    assert "more graphs than stock in: slow one" in text
    assert "slower than 0.95 of eager: slow one" in text
    assert "CAP101 at a.py:1" in text
    assert "left out: m is not installed" in table([{"name": "absent", "left_out": "m is not installed"}])
