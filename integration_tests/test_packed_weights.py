"""Dynamic quantization through the whole stack: the packed weights' operators are calls between fused kernels."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import fxstack

pytestmark = pytest.mark.filterwarnings("ignore")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.recurrent = nn.LSTM(8, 8, batch_first=True)
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x):
        y, (h, _) = self.recurrent(x)
        return self.last(torch.relu(self.first(y * 2).sin())) + 1, h


def test_a_quantized_model_is_one_graph_and_equal():
    torch.manual_seed(0)
    module = torch.ao.quantization.quantize_dynamic(Model().eval(), {nn.Linear, nn.LSTM}, dtype=torch.qint8)
    fast = fxstack.compile(module, fullgraph=True)
    for _ in range(3):
        x = torch.randn(3, 5, 8)
        for one, other in zip(fast(x), module(x), strict=True):
            assert torch.equal(one, other)


def test_linear_layers_of_any_batch_size():
    layers = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)).eval()
    module = torch.ao.quantization.quantize_dynamic(layers, {nn.Linear}, dtype=torch.qint8)
    fast = fxstack.compile(module, fullgraph=True)
    for size in (2, 3, 5, 8):
        x = torch.randn(size, 8)
        assert torch.equal(fast(x), module(x))
