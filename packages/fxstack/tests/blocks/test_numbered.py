"""Programs by number: names that say nothing, and back."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import fxstack.pipeline as pipeline
from aot_autograd.plan import JointPlan
from fxstack.blocks.numbered import named_program, numbered_plan, numbered_program, plan_of_numbers
from fxstack.options import Options
from inductor_codegen import plan
from inductor_codegen.ir.program import Buffer, Program


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> tuple[JointPlan, Program, Program]:
    """Plan and programs of a function with two results that is trained."""
    found: list[tuple[JointPlan, Program, Program]] = []
    whole = pipeline._compile

    def asked(graph, examples, *rest):  # type: ignore[no-untyped-def]
        traced = pipeline.primitive_graphs(graph, examples, Options())
        assert traced.backward is not None
        programs = plan(traced.forward, traced.layouts), plan(traced.backward, traced.backward_layouts)
        found.append((traced.plan, *programs))
        return whole(graph, examples, *rest)

    monkeypatch.setattr(pipeline, "_compile", asked)

    def f(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.tanh(x @ w).softmax(-1)
        return y, (y @ w).sum()

    import fxstack

    given = [torch.randn(4, 4, requires_grad=True) for _ in range(2)]
    fxstack.compile(f, options={"cache": False})(*given)
    return found[0]


def test_names_do_not_matter(planned: tuple[JointPlan, Program, Program]) -> None:
    for program in planned[1:]:
        numbered = numbered_program(program)
        named = named_program(numbered, program.kernels)
        assert numbered_program(named) == numbered
        for made, kernel in zip(named.kernels, program.kernels, strict=True):
            assert (made.name, made.comments, made.passes) == (kernel.name, kernel.comments, kernel.passes)
        defined = [one.name for one in program.inputs if isinstance(one, Buffer)]
        assert defined
        assert not {*named.buffers()} & {*defined}
        assert len(named.buffers()) == len(program.buffers())


def test_another_order_of_operands_is_another_program(planned: tuple[JointPlan, Program, Program]) -> None:
    program = planned[1]
    first = next(i for i, step in enumerate(program.steps) if len(getattr(step, "buffers", ())) > 1)
    turned = replace(program.steps[first], buffers=program.steps[first].buffers[::-1])  # type: ignore[union-attr]
    steps = (*program.steps[:first], turned, *program.steps[first + 1 :])
    assert numbered_program(replace(program, steps=steps)) != numbered_program(program)


def test_a_plan_comes_back(planned: tuple[JointPlan, Program, Program]) -> None:
    made = planned[0]
    assert made.backward is not None
    assert made.backward.needed_by
    assert made.backward.saving
    assert plan_of_numbers(numbered_plan(made)) == made
    assert numbered_plan(made) != made
