"""Numbers that vary as arguments of tensor operations."""

from __future__ import annotations

import torch

from dynamo_capture import optimize


def test_an_exponent_that_a_tensor_holds_is_known_where_torch_has_a_kernel_for_it():
    def power(x, exponent):
        return x ** (1 - exponent.item())

    graphs = []
    compiled = optimize(lambda graph, _: graphs.append(graph) or graph.forward, fullgraph=True)(power)
    x = torch.linspace(0.5, 3, 7)
    for value in (0.5, 0.3, 0.5, -1.0, 0.4):
        exponent = torch.tensor(value, dtype=torch.float64)
        torch.testing.assert_close(compiled(x, exponent), power(x, exponent), rtol=1e-6, atol=0)
    exact = torch.tensor(0.5, dtype=torch.float64)
    assert torch.equal(compiled(x, exact), power(x, exact))
    assert len(graphs) == 3
