"""What Python calls where a graph ended is captured with the sizes that are known to vary: one version for all."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dynamo_capture import graph_break, optimize

primtorch_decomps = pytest.importorskip("primtorch_decomps")


def _graphs(program, *calls):
    """How many graphs each call brought; the results are eager's."""
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    compiled, brought = optimize(backend, operators=primtorch_decomps.LIBRARY)(program), []
    with torch.no_grad():
        for call in calls:
            before = len(graphs)
            assert torch.equal(compiled(*call), program(*call))
            brought.append(len(graphs) - before)
    return brought


class _Merge(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(6, 6)

    def forward(self, part, size):
        h, w = size
        return self.project(part.reshape(1, h, w, 6).mean(2)).relu()


class _Images(nn.Module):
    """The part of each image is a part of all of them, whose number varies, and so do its strides."""

    def __init__(self, merge):
        super().__init__()
        self.merge = merge

    def forward(self, x, grid):
        parts, found = torch.split(x.sin()[None], grid.prod(-1).tolist(), dim=1), []
        for (h, w), part in zip(grid.tolist(), parts, strict=False):
            found.append(self.merge(part, size=(h, w)))
        return torch.cat(found, 1)


def test_parts_given_to_a_module_in_a_loop_that_is_left_to_python():
    calls = [(torch.randn(4 * n, 6), torch.full((n, 2), 2)) for n in (2, 3, 4, 5)]
    assert _graphs(_Images(_Merge()), *calls)[2:] == [0, 0]


def test_sizes_from_data_are_left_alone():
    def program(x, mask):
        rows = x[mask]
        graph_break()
        return rows.sum() * x.size(0)

    calls = [(torch.arange(2.0 * n).view(n, 2), torch.arange(n) > 2) for n in (6, 7, 8, 9)]
    assert _graphs(program, *calls) == [2, 2, 0, 0]


def test_a_tensor_without_sizes_is_passed_on_where_a_graph_ends():
    def program(x, nested):
        y = x + 1
        print(end="")
        return y * 2, nested

    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    fast = optimize(lambda graph, inputs: graph.forward)(program)
    for length in (3, 4, 5):
        assert torch.equal(fast(torch.ones(length), nested)[0], torch.full((length,), 4.0))
