"""The benchmark of operators: its cases run and are told apart, and a turn measures what it says."""

from __future__ import annotations

import time

import pytest
import torch

from benchmarks.operator_cases import Case, cases
from benchmarks.operators import Timing, measure, timings


def test_names_are_unique() -> None:
    names = [case.name for case in cases()]
    assert len(names) == len(set(names))
    assert len(names) > 150


@pytest.mark.parametrize(
    "name", ["clamp", "add, a row", "cat of six, dim 1", "slice written to", "embedding", "l1_loss"]
)
def test_cases_run(name: str) -> None:
    (case,) = (case for case in cases() if case.name == name)
    results = case.function(*case.tensors)
    assert isinstance(results, torch.Tensor)


def test_the_least_of_each_is_taken() -> None:
    def busy() -> None:
        end = time.process_time() + 0.004
        while time.process_time() < end:
            pass

    found = measure("busy", lambda: None, busy, turns=2)
    assert found.eager < 1 < 3.9 < found.compiled
    assert found.ratio > 4


def test_training_has_a_timing_of_its_own() -> None:
    x = torch.randn(30)
    assert [t.name for t in timings(Case("sine", torch.sin, (x,), True), turns=1)] == [
        "sine",
        "sine, training",
    ]
    assert [t.name for t in timings(Case("sine", torch.sin, (x,), False), turns=1)] == ["sine"]


def test_stock_takes_the_place_of_eager(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[object] = []

    def compile_(function: object, dynamic: bool) -> object:
        compiled.append(function)
        return function

    monkeypatch.setattr(torch, "compile", compile_)
    case = Case("sine", torch.sin, (torch.randn(30),), True)
    assert len(list(timings(case, turns=1, stock=True))) == 2
    assert compiled == [torch.sin] * 2
    assert len(list(timings(case, turns=1))) == len(compiled)


def test_a_timing_is_one_line() -> None:
    assert str(Timing("sine", 2.0, 3.0)).split() == ["1.50", "sine", "eager", "2.000", "compiled", "3.000"]
