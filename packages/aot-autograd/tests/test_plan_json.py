"""A stored plan equals the plan, and a program runs from it without tracing."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from aot_autograd.pipeline import trace
from aot_autograd.plan_json import plan_from_data, plan_to_data
from aot_autograd.runtime import finish
from fx_interface.errors import CorruptArtifactError
from fx_interface.signature import InputDecl, InputKind
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import spec_of


def program(recorder: Any, inputs: Any) -> list[Any]:
    x, w, counter = inputs
    counter.add_(1).unsqueeze_(0)
    y = x * w * torch.tensor([1.0, float("inf"), 2.5], dtype=torch.float64).clamp(max=3)
    return [y, y[0], x.t(), x, w.sum(), counter, None, 7]


def traced(library: Any) -> tuple[Any, list[torch.Tensor]]:
    inputs = [torch.randn(2, 3, dtype=torch.float64), torch.randn(3, dtype=torch.float64), torch.zeros(())]
    inputs[1].requires_grad_()
    declared = [InputDecl(f"x{i}", InputKind.USER, spec_of(t)) for i, t in enumerate(inputs)]
    return trace(program, declared, inputs, operators=library, env=ShapeEnv()), inputs


def test_a_plan_survives_json(library: Any) -> None:
    made, _ = traced(library)
    again = plan_from_data(json.loads(json.dumps(plan_to_data(made.plan), allow_nan=False)))
    (constant,), (stored,) = made.plan.constants, again.constants
    assert torch.equal(constant, stored)
    assert plan_to_data(again) == plan_to_data(made.plan)
    assert again.recipes == made.plan.recipes
    assert again.backward == made.plan.backward


def test_a_stored_program_runs_without_tracing(library: Any, interpreter: Any) -> None:
    made, inputs = traced(library)
    stored = json.dumps(plan_to_data(made.plan))
    run = finish(plan_from_data(json.loads(stored)), interpreter(made.forward), interpreter(made.backward))
    results = run(*inputs)
    assert inputs[2].item() == 1
    expected = program(None, [inputs[0], inputs[1], torch.zeros(())])
    for one, two in zip(results, expected, strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=0) if isinstance(one, torch.Tensor) else None
    (gradient,) = torch.autograd.grad(results[0].sum() + results[4], [inputs[1]])
    (wanted,) = torch.autograd.grad(expected[0].sum() + expected[4], [inputs[1]])
    torch.testing.assert_close(gradient, wanted, rtol=0, atol=0)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"format": "aot-autograd plan 1", "plan": {"FromGraph": [1]}},
        {"format": "aot-autograd plan 1", "plan": {"JointPlan": [1]}},
        {"format": "aot-autograd plan 1", "plan": {"Unknown": []}},
    ],
)
def test_other_data_is_corrupt(data: Any) -> None:
    with pytest.raises(CorruptArtifactError):
        plan_from_data(data)
