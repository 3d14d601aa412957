"""Sparse tensors through the whole stack: a graph convolution is one graph; Python looks up with sparse gradients."""

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


def test_tables_with_sparse_gradients() -> None:
    """What the tables give is computed by Python, and the rest of the function is compiled."""
    torch.manual_seed(0)
    table, bags, head = (
        nn.Embedding(10, 3, sparse=True),
        nn.EmbeddingBag(10, 3, sparse=True),
        nn.Linear(3, 2),
    )

    def loss(picks: Tensor) -> Tensor:
        return F.gelu(head(table(picks)).sin() + head(bags(picks)).unsqueeze(1)).sum()

    picks, found = torch.tensor([[1, 2, 2], [3, 4, 5]]), []
    with fxstack.recording() as record:
        compiled = fxstack.compile(loss)
        for run in (loss, compiled, compiled):
            for module in (table, bags, head):
                module.zero_grad()
            result = run(picks)
            result.backward()
            found.append([result.detach(), table.weight.grad, bags.weight.grad, head.weight.grad])
    data = record.data()
    assert not data["uncompiled"]
    assert {one["code"] for one in data["breaks"]} == {"CAP216"}
    for other in found[1:]:
        assert [one.layout for one in other] == [one.layout for one in found[0]]
        torch.testing.assert_close([one.to_dense() for one in other], [one.to_dense() for one in found[0]])
