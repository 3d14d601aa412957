"""PyTorch Geometric: message passing over small random graphs, without its C libraries."""

from __future__ import annotations

from typing import Any

import torch
from programs import Compile, Program, Step, training_step
from torch import Tensor, nn
from torch.nn import functional as F


def _graph(nodes: int = 300, edges: int = 1500) -> tuple[Tensor, Tensor]:
    return torch.randn(nodes, 32), torch.randint(nodes, (2, edges))


class _Network(nn.Module):
    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        return self.second(self.first(x, edges).relu(), edges)


def _node_classifier(compile: Compile, first: nn.Module, second: nn.Module) -> Step:
    model = _Network(first, second)
    compiled, (x, edges), labels = compile(model), _graph(), torch.randint(7, (300,))
    return training_step(model, lambda: F.cross_entropy(compiled(x, edges), labels))


def gcn(compile: Compile) -> Step:
    from torch_geometric.nn import GCNConv

    return _node_classifier(compile, GCNConv(32, 64), GCNConv(64, 7))


def gat(compile: Compile) -> Step:
    from torch_geometric.nn import GATConv

    return _node_classifier(compile, GATConv(32, 16, heads=4), GATConv(64, 7))


def gat_v2(compile: Compile) -> Step:
    from torch_geometric.nn import GATv2Conv

    return _node_classifier(compile, GATv2Conv(32, 16, heads=4), GATv2Conv(64, 7, concat=False))


def sage(compile: Compile) -> Step:
    from torch_geometric.nn import SAGEConv

    return _node_classifier(compile, SAGEConv(32, 64), SAGEConv(64, 7, aggr="max"))


def gin_of_batches(compile: Compile) -> Step:
    """Whole graphs are classified; each batch has other numbers of nodes and edges."""
    from torch_geometric.data import Batch, Data
    from torch_geometric.nn import GINConv, global_mean_pool

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one = GINConv(nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64)))
            self.two = GINConv(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)))
            self.out = nn.Linear(64, 3)

        def forward(self, x: Tensor, edges: Tensor, batch: Tensor) -> Tensor:
            x = self.two(self.one(x, edges).relu(), edges).relu()
            return self.out(global_mean_pool(x, batch))

    model = Classifier()
    compiled = compile(model)
    batches = []
    for size in (40, 55, 70):
        graphs = [Data(*_graph(size + i, 4 * size)) for i in range(4)]
        batches.append(Batch.from_data_list(graphs))

    def loss() -> Any:
        results = [compiled(b.x, b.edge_index, b.batch).logsumexp(-1).mean() for b in batches]
        return torch.stack(results).sum()

    return training_step(model, loss)


NEEDS = ("torch_geometric",)
PROGRAMS = (
    Program("PyG, GCN", gcn, NEEDS),
    Program("PyG, GAT", gat, NEEDS),
    Program("PyG, GATv2", gat_v2, NEEDS),
    Program("PyG, SAGE", sage, NEEDS),
    Program("PyG, GIN over batches of graphs", gin_of_batches, NEEDS, 2),
)
