"""Backward graphs without the gradients that most likely never arrive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from aot_autograd.joint.split import TracedProgram
from aot_autograd.partition.absent_gradients import absent_tangents, without_tangents
from aot_autograd.pipeline import trace
from fx_interface.graph import placeholders
from fx_interface.signature import InputDecl, InputKind, signature_of
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import spec_of

aten = torch.ops.aten


def traced(library: Any, program: Callable[..., Any], *examples: Tensor) -> TracedProgram:
    """The graphs of a program."""
    declared = [InputDecl(f"x{n}", InputKind.USER, spec_of(one)) for n, one in enumerate(examples)]

    def run(recorder: Any, given: list[Any]) -> tuple[Any, ...]:
        made = program(*given)
        return made if isinstance(made, tuple) else (made,)

    return trace(run, declared, examples, operators=library, env=ShapeEnv())


def narrowed(made: TracedProgram) -> Any:
    assert made.plan.backward is not None
    assert made.backward is not None
    first = len(made.plan.backward.symbols) + len(made.plan.backward.saved)
    return without_tangents(made.backward, [first + number for number in absent_tangents(made.plan)])


def targets(module: Any) -> list[Any]:
    """What a graph calls."""
    return [node.target for node in module.graph.nodes if node.op == "call_function"]


def with_loss(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    scores = x @ w
    return scores.square().mean(), scores


def test_nothing_is_added_for_an_absent_gradient(library: Any) -> None:
    made = traced(library, with_loss, *(torch.randn(3, 3, requires_grad=True) for _ in range(2)))
    narrow = narrowed(made)
    assert aten.add.Tensor in targets(made.backward)
    assert aten.add.Tensor not in targets(narrow)
    assert targets(narrow).count(aten.mm.default) == 2
    before, after = placeholders(made.backward.graph), placeholders(narrow.graph)
    assert [node.name for node in before] == [node.name for node in after]
    signature = signature_of(narrow)
    assert signature is not None
    assert sum(given.spec is None for given in signature.inputs) == 1


def test_a_gradient_that_needs_an_absent_one_is_none(library: Any) -> None:
    def program(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x.square().sum(), y.relu() @ y

    made = traced(library, program, *(torch.randn(3, 3, requires_grad=True) for _ in range(2)))
    narrow = narrowed(made)
    (output,) = (node for node in narrow.graph.nodes if node.op == "output")
    assert output.args[0][1] is None
    assert aten.mm.default not in targets(narrow)


def test_zeros_where_there_is_no_rule(library: Any) -> None:
    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.sum(), x.cumsum(0)

    made = traced(library, program, torch.randn(3, 3, requires_grad=True))
    assert aten.full.default in targets(narrowed(made))


def no_number(x: Tensor) -> tuple[Tensor, Tensor]:
    return x * 2, x * 3


def two_numbers(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return x.sum(), x.mean(), x * 3


def a_number_alone(x: Tensor) -> Tensor:
    return x.sum()


def written(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 1
    y.mul_(2)
    return y.sum(), y


@pytest.mark.parametrize("program", [no_number, two_numbers, a_number_alone])
def test_without_one_number_among_several_all_may_arrive(library: Any, program: Callable[..., Any]) -> None:
    assert absent_tangents(traced(library, program, torch.randn(3, requires_grad=True)).plan) == ()


def test_a_result_that_the_program_has_written_to(library: Any) -> None:
    assert absent_tangents(traced(library, written, torch.randn(3, requires_grad=True)).plan) == (1,)


def test_a_written_input_may_get_its_gradient_another_way(library: Any) -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        y.mul_(x)
        return y.sum()

    examples = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True) * 1
    assert absent_tangents(traced(library, program, *examples).plan) == ()
