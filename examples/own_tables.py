"""An own decomposition and an own partitioner, without any capture.

python examples/own_tables.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule

from aot_autograd import aot_function
from aot_autograd.partition.min_cut import min_cut
from inductor_codegen import compile_graph
from primtorch_decomps import DECOMPOSITIONS, LIBRARY, decompose


def loss(x: Tensor, w: Tensor) -> Tensor:
    """A layer whose hardsigmoid is to be computed otherwise."""
    return torch.sigmoid(torch.tanh(x @ w)).square().sum()


def sigmoid_by_tanh(x: Tensor) -> Tensor:
    """The logistic function by another formula."""
    return 0.5 * torch.tanh(0.5 * x) + 0.5


def compiler(graph: GraphModule) -> Callable[..., Sequence[Any]]:
    """Primitives by the stack's table, and generated code."""
    print(f"{sum(node.op == 'call_function' for node in graph.graph.nodes)} operators, "
          f"{len(graph.graph.output_node().args[0])} results")  # fmt: skip
    return compile_graph(decompose(graph, DECOMPOSITIONS))


def main() -> None:
    """Gradients are eager's; the forward saves as little as it can."""
    torch.manual_seed(0)
    x, w = torch.randn(8, 4), torch.randn(4, 3, requires_grad=True)
    (wanted,) = torch.autograd.grad(loss(x, w), w)
    run = aot_function(
        loss,
        operators=LIBRARY,
        forward_compiler=compiler,
        decompositions={torch.ops.aten.sigmoid.default: sigmoid_by_tanh},
        partition=min_cut(1.0),
    )
    (found,) = torch.autograd.grad(run(x, w), w)
    torch.testing.assert_close(found, wanted)


if __name__ == "__main__":
    main()
