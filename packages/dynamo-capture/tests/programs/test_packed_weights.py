"""Modules of dynamic quantization: their weights are packed into objects of C++."""

from __future__ import annotations

import gc
import warnings
import weakref

import pytest
import torch
from torch import nn

from dynamo_capture import optimize
from primtorch_decomps import LIBRARY

pytestmark = pytest.mark.filterwarnings("ignore")


def quantized(module, dtype=torch.qint8, kinds=(nn.Linear, nn.LSTM, nn.GRU)):
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.ao.quantization.quantize_dynamic(module().eval(), set(kinds), dtype=dtype)


def layers():
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 3))


@pytest.mark.parametrize("dtype", [torch.qint8, torch.float16])
def test_linear_layers_are_one_graph_for_all_sizes(whole, dtype):
    module = quantized(layers, dtype)
    sizes = [torch.randn(n, 8) for n in (4, 7, 9, 12)]
    whole(lambda x: module(x) * 2, *[(x,) for x in sizes], operators=LIBRARY, graphs=2)
    whole(module, (torch.randn(2, 3, 8),), (torch.randn(3, 2, 8).transpose(0, 1),), operators=LIBRARY)


def test_what_eager_refuses_is_refused(same):
    module = quantized(layers)
    for x in (torch.randn(8), torch.randn(2, 7), torch.randn(2, 8).double()):
        same(lambda x: module(x), (x,))


def test_gradients_are_as_in_eager(same):
    module = quantized(layers)
    same(lambda x: module(x * 2), (torch.randn(2, 8, requires_grad=True),))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layer = kind(8, 8, batch_first=True)
        self.last = nn.Linear(8, 2)

    def forward(self, x):
        y, state = self.layer(x)
        return self.last(y.sin()), state


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_recurrent_layers_are_calls_of_known_sizes(same, kind):
    module = quantized(lambda: Recurrent(kind))
    same(lambda x: module(x), *[(torch.randn(4, 5, 8),)] * 2, graphs=1)
    same(lambda x: module(x), *[(torch.randn(4, n, 8),) for n in (5, 6, 7)])


def test_another_object_is_another_version(forward):
    module, other = quantized(layers), quantized(layers)
    other[0].set_weight_bias(other[0].weight(), torch.ones(8))
    fast = optimize(forward, fullgraph=True)(lambda x: module(x))
    x = torch.randn(3, 8)
    for layer in (module[0], other[0], module[0]):
        module[0] = layer
        assert torch.equal(fast(x), module(x))
    assert len(fast.__fxstack_capture__.report.replacements) == 2


def test_compiled_code_keeps_no_weights(forward):
    module = quantized(layers)
    optimize(forward)(module)(torch.randn(2, 8))
    held = weakref.ref(module[0]._packed_params._packed_params)
    del module
    gc.collect()
    assert held() is None
