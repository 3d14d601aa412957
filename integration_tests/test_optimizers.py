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


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("name", ["Adam", "RAdam", "NAdam", "Adamax", "ASGD", "RMSprop", "Rprop", "Adadelta"])
def test_capturable_optimizers_refuse_a_cpu(name: str, foreach: bool) -> None:
    """They leave that check out where they are told that they are compiled."""
    weight = torch.ones(3, requires_grad=True)
    weight.grad = torch.ones(3)
    optimizer = getattr(torch.optim, name)([weight], capturable=True, foreach=foreach)
    messages = []
    for step in (optimizer.step, fxstack.compile(optimizer.step, backend="eager")):
        with pytest.raises(AssertionError) as refused:
            step()
        messages.append(str(refused.value))
    assert messages[0] == messages[1]
    assert torch.equal(weight, torch.ones(3))
