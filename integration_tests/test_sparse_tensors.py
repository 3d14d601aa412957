"""Sparse tensors through the whole stack: a graph convolution is one graph, and so is what trains tables sparsely."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import fxstack


class _Convolutions(nn.Module):
    def __init__(self, adjacency: Tensor) -> None:
        super().__init__()
        self.register_buffer("adjacency", adjacency)
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x: Tensor, places: Tensor, weights: Tensor) -> Tensor:
        h = torch.sparse.mm(self.adjacency, self.first(x)).relu()
        attention = torch.sparse_coo_tensor(places, weights.sigmoid(), self.adjacency.shape)
        return (attention.coalesce() @ self.second(h)).log_softmax(1)


def test_a_graph_convolution() -> None:
    torch.manual_seed(0)
    places, x = torch.randint(0, 20, (2, 60)), torch.randn(20, 8)
    weights = torch.randn(60, requires_grad=True)
    model = _Convolutions(torch.sparse_coo_tensor(places, torch.rand(60), (20, 20)).coalesce())
    compiled = fxstack.compile(model, fullgraph=True)
    found = []
    for run in (model, compiled, compiled):
        model.zero_grad()
        weights.grad = None
        result = run(x, places, weights)
        result.square().sum().backward()
        found.append([result.detach(), weights.grad, *(p.grad for p in model.parameters())])
    for other in found[1:]:
        torch.testing.assert_close(other, found[0])


def _trained(compile: bool) -> list[Tensor]:
    """Parameters, and parts of the tables' gradients, along four steps."""
    torch.manual_seed(0)
    table, bags = nn.Embedding(10, 3, padding_idx=2, sparse=True), nn.EmbeddingBag(10, 3, sparse=True)
    head, found = nn.Linear(3, 2), []
    tables = torch.optim.SparseAdam([table.weight, bags.weight], lr=0.1)
    rest = torch.optim.SGD(head.parameters(), lr=0.1)

    def loss(picks: Tensor) -> Tensor:
        return F.gelu(head(table(picks)).sin() + head(bags(picks)).unsqueeze(1)).sum()

    run = fxstack.compile(loss, fullgraph=True) if compile else loss
    for step, rows in enumerate((2, 2, 2, 3)):
        picks = torch.arange(3 * rows).view(rows, 3) * (step + 1) % 7
        for optimizer in (tables, rest):
            optimizer.zero_grad()
        for _ in range(1 + step % 2):
            run(picks).backward()
        for module in (table, bags):
            gradient = module.weight.grad
            assert gradient is not None
            assert gradient.is_sparse
            assert not gradient.is_coalesced()
            found += [gradient._indices().clone(), gradient._values().clone()]
        for optimizer in (tables, rest):
            optimizer.step()
        found += [table.weight.detach().clone(), bags.weight.detach().clone(), head.weight.detach().clone()]
    return found


def test_tables_with_sparse_gradients() -> None:
    torch.testing.assert_close(_trained(compile=True), _trained(compile=False))
