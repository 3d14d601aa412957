"""What the forward keeps for the backward."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule, symbolic_trace

from aot_autograd import TracedProgram, trace_joint
from aot_autograd.plan import SavedInput, SavedOutput
from fx_interface.errors import UnsupportedProgramError
from fx_interface.signature import OutputKind, signature_of

aten = torch.ops.aten


def traced(function: Any, library: Any, *inputs: torch.Tensor, **options: Any) -> TracedProgram:
    return trace_joint(symbolic_trace(function), list(inputs), operators=library, **options)


def kept(program: TracedProgram) -> list[Any]:
    signature = signature_of(program.forward)
    assert signature is not None
    results = program.forward.graph.output_node().args[0]
    return [r.target for r, d in zip(results, signature.outputs, strict=True) if d.kind is OutputKind.SAVED]


def grad(*sizes: int) -> torch.Tensor:
    return torch.ones(sizes, requires_grad=True)


def test_inputs_are_not_returned_to_be_kept(library: Any) -> None:
    program = traced(lambda x, y: x * y, library, grad(3), grad(3))
    assert kept(program) == []
    assert program.plan.backward is not None
    assert program.plan.backward.saved == (SavedInput(0), SavedInput(1))


def test_a_result_that_is_kept_is_returned_once(library: Any) -> None:
    program = traced(lambda x: x.exp(), library, grad(3))
    assert kept(program) == []
    assert program.plan.backward is not None
    assert program.plan.backward.saved == (SavedOutput(0),)


def test_views_are_made_again(library: Any) -> None:
    program = traced(lambda x, w: (x.t() @ w.sin().t()).sum(), library, grad(3, 4), grad(5, 3))
    assert kept(program) == [aten.sin.default]


def test_a_small_view_of_a_large_value_is_kept_itself(library: Any) -> None:
    program = traced(lambda x: (x.sin()[0] * x[1]).sum(), library, grad(100, 4))
    assert kept(program) == [aten.select.int]


def test_constants_are_made_again(library: Any) -> None:
    program = traced(lambda x: (x * torch.full((3,), 2.0)).sum(), library, grad(3))
    assert kept(program) == []


@pytest.mark.parametrize(("sizes", "again"), [((), True), ((3,), False)])
def test_numbers_that_are_computed_from_constants_are_made_again(
    library: Any, sizes: tuple[int, ...], again: bool
) -> None:
    graph = Graph()
    x = graph.placeholder("x")
    scale = graph.call_function(torch.sqrt, (graph.call_function(torch.full, (sizes, 2.0)),))
    graph.output(graph.call_function(torch.div, (x, scale)))
    program = trace_joint(GraphModule(torch.nn.Module(), graph), [grad(3)], operators=library)
    assert kept(program) == ([] if again else [aten.sqrt.default])


def test_a_number_may_be_the_last_of_a_long_chain(library: Any) -> None:
    graph = Graph()
    x, scale = graph.placeholder("x"), graph.call_function(torch.full, ((), 2.0))
    for _ in range(sys.getrecursionlimit()):
        scale = graph.call_function(torch.sqrt, (scale,))
    graph.output(graph.call_function(torch.div, (x, scale)))
    program = trace_joint(GraphModule(torch.nn.Module(), graph), [grad(3)], operators=library)
    assert kept(program) == []


def test_random_masks_are_kept(library: Any) -> None:
    program = traced(lambda x: torch.nn.functional.dropout(x, 0.5), library, grad(3))
    assert aten.div.Scalar in kept(program)
    assert program.backward is not None
    assert aten.bernoulli.p not in [node.target for node in program.backward.graph.nodes]


def test_an_overwritten_input_is_kept_as_a_copy(library: Any) -> None:
    def function(w: Any, buffer: Any) -> Any:
        y = w * buffer.clone()
        buffer.add_(1)
        return y

    program = traced(function, library, grad(3), torch.ones(3))
    assert kept(program) == [aten.clone.default]


def test_a_partitioner_may_compute_again_instead(library: Any, interpreter: Any) -> None:
    program = traced(lambda x: x.sin().exp().sum(), library, grad(3), partition=lambda gradients, env: [])
    assert kept(program) == []
    assert program.backward is not None
    assert aten.exp.default in [node.target for node in program.backward.graph.nodes]


def test_a_partitioner_may_not_draw_again(library: Any) -> None:
    with pytest.raises(UnsupportedProgramError, match="AOT115"):
        traced(
            lambda x: torch.nn.functional.dropout(x, 0.5),
            library,
            grad(3),
            partition=lambda gradients, env: [],
        )
