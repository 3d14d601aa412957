"""A function that is one node may ask its tensors what they are."""

from typing import Any

import torch
from torch.fx import Graph, GraphModule

from aot_autograd import compile_joint
from fx_interface.tensor_spec import SPEC_KEY, spec_of


def _depends(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.requires_grad else x * 3


def test_it_requires_grad_in_a_trace_without_gradients(library: Any) -> None:
    x = torch.ones(3, requires_grad=True)
    graph = Graph()
    given = graph.placeholder("x")
    given.meta[SPEC_KEY] = spec_of(x)
    made = graph.call_function(_depends, (given,))
    graph.output((graph.call_function(torch.add, (made, given)),))
    with torch.no_grad():
        compiled = compile_joint(
            GraphModule({}, graph),
            [x],
            operators=library,
            forward_compiler=lambda gm: gm.forward,
            backward_compiler=lambda gm: gm.forward,
        )
        (result,) = compiled(x)
    assert torch.equal(result, torch.full((3,), 3.0))
    assert not result.requires_grad
