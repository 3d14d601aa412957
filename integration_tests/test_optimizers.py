"""Optimizer steps through the whole stack: parameters and state follow eager's, nothing is compiled after the third."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import fxstack

CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("AdamW", {}),
    ("AdamW", {"foreach": True}),
    ("Adafactor", {}),
]


def _parts(name: str, options: dict[str, Any]) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    return model, getattr(torch.optim, name)(model.parameters(), **options)


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_training_with_a_compiled_step(name: str, options: dict[str, Any]) -> None:
    (plain, eager), (model, optimizer) = _parts(name, options), _parts(name, options)
    forward, step = fxstack.compile(model), fxstack.compile(optimizer.step)
    report = step.__fxstack_capture__.report
    counts = []
    for number in range(6):
        x = torch.randn(3, 4, generator=torch.Generator().manual_seed(number))
        for run, one, advance in ((plain, eager, eager.step), (forward, optimizer, step)):
            for group in one.param_groups:
                group["lr"] = 0.1 / (number + 1)
            one.zero_grad()
            run(x).square().sum().backward()
            advance()
        counts.append(len(report.replacements))
        for expected, actual in zip(plain.parameters(), model.parameters(), strict=True):
            torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-6)
    assert counts[-1] == counts[2] <= 3
    assert not report.eager
    assert not any(replacement.stopped for _, replacement in report.replacements)
