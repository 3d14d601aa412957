"""What the installed package must do at least; ``nox -s release-check`` runs it outside of the repository."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Interpreter
from torch.utils import _pytree as pytree

from aot_autograd import aot_function
from fx_interface.tensor_spec import TensorSpec, spec_of


class Kernels:
    """Shape inference by running each operator on zeros: the package brings no rules of its own."""

    def infer(self, op: Any, args: Any, kwargs: Any, env: Any) -> Any:
        """Specs of what the operator gives for arguments of these specs."""

        def real(leaf: Any) -> Any:
            if not isinstance(leaf, TensorSpec):
                return leaf
            return torch.empty_strided(leaf.sizes, leaf.strides, dtype=leaf.dtype).zero_()

        with torch.no_grad():
            result = op(*pytree.tree_map(real, list(args)), **pytree.tree_map(real, dict(kwargs)))
        return pytree.tree_map(lambda leaf: spec_of(leaf) if isinstance(leaf, Tensor) else leaf, result)


def main() -> None:
    """Forward and backward become two graphs, whose gradients are eager's."""
    graphs: list[GraphModule] = []

    def compiler(graph: GraphModule) -> Any:
        graphs.append(graph)
        return Interpreter(graph).run

    def loss(x: Tensor, w: Tensor) -> Tensor:
        return torch.tanh(x @ w).square().sum()

    x, w = torch.randn(4, 3), torch.randn(3, 2, requires_grad=True)
    run = aot_function(loss, operators=Kernels(), forward_compiler=compiler)
    (found,) = torch.autograd.grad(run(x, w), w)
    (wanted,) = torch.autograd.grad(loss(x, w), w)
    torch.testing.assert_close(found, wanted)
    assert len(graphs) == 2


if __name__ == "__main__":
    main()
