"""Stock's compiler in the same process does not disturb ours."""

from __future__ import annotations

import torch
from torch import nn

from dynamo_capture import optimize


def test_modules_made_while_tracing_after_stock_has_run() -> None:
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))

    def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return nn.CrossEntropyLoss()(x, y)

    x, y = torch.randn(4, 3), torch.tensor([0, 1, 2, 0])
    compiled = optimize(lambda graph, inputs: graph.forward, fullgraph=True)(loss)
    torch.testing.assert_close(compiled(x, y), loss(x, y))
