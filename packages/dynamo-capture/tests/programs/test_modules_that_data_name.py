"""Which module of a container is called depends on data, as in a mixture of experts: one version serves many modules."""

import pytest
import torch
from torch import nn

from dynamo_capture import optimize

EXPERTS = 60


def _expert():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, EXPERTS, bias=False)
        self.experts = nn.ModuleList([_expert() for _ in range(EXPERTS)])

    def forward(self, x):
        weights, chosen = torch.topk(self.gate(x).softmax(-1), 2, -1)
        return self.mixed(x, weights, chosen, torch.zeros_like(x))


class OverTensors(Mixture):
    def mixed(self, x, weights, chosen, out):
        mask = nn.functional.one_hot(chosen, EXPERTS).permute(2, 1, 0)
        for expert in mask.sum((-1, -2)).greater(0).nonzero():
            position, row = torch.where(mask[expert].squeeze(0))
            out.index_add_(0, row, self.experts[expert](x[row]) * weights[row, position, None])
        return out


class OverNumbers(Mixture):
    def mixed(self, x, weights, chosen, out):
        for expert in range(EXPERTS):
            row, position = torch.where(chosen == expert)
            if row.numel() == 0:
                continue
            out.index_add_(0, row, self.experts[expert](x[row]) * weights[row, position, None])
        return out


class OverNames(Mixture):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleDict({f"expert_{i}": _expert() for i in range(EXPERTS)})

    def mixed(self, x, weights, chosen, out):
        for expert in chosen.unique():
            row, position = torch.where(chosen == expert)
            out[row] += self.experts[f"expert_{expert}"](x[row]) * weights[row, position, None]
        return out


@pytest.mark.parametrize("kind", [OverTensors, OverNumbers, OverNames])
def test_experts_that_data_name(kind):
    torch.manual_seed(0)
    model, graphs = kind(), []
    fast = optimize(lambda graph, _: graphs.append(graph) or graph)(model)
    for _ in range(3):
        x = torch.randn(120, 4)
        outcomes = []
        for run in (model, fast):
            result = run(x)
            gradients = torch.autograd.grad(result.square().sum(), model.parameters(), allow_unused=True)
            outcomes.append((result, *[g for g in gradients if g is not None]))
        torch.testing.assert_close(outcomes[1], outcomes[0], rtol=0, atol=0)
    assert len(graphs) < EXPERTS / 2


def test_a_layer_that_an_argument_names():
    layers, graphs = nn.ModuleList([nn.Linear(4, 4) for _ in range(12)]), []

    def program(x, n):
        return layers[n](x * 2).relu() + 1

    fast = optimize(lambda graph, _: graphs.append(graph) or graph)(program)
    for _ in range(2):
        for n in range(-2, 12):
            x = torch.randn(2, 4)
            torch.testing.assert_close(fast(x, n), program(x, n), rtol=0, atol=0)
    assert len(graphs) <= 8
    with pytest.raises(IndexError, match="index 12 is out of range"):
        fast(torch.randn(2, 4), 12)


def test_a_layer_that_an_argument_names_in_one_graph():
    layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(6)])

    def program(x, n):
        return layers[n](x * 2).relu() + 1

    fast = optimize(lambda graph, _: graph, fullgraph=True)(program)
    for n in range(6):
        x = torch.randn(2, 4)
        torch.testing.assert_close(fast(x, n), program(x, n), rtol=0, atol=0)
