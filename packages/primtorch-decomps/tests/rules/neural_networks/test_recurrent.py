"""Specs of LSTM layers."""

from __future__ import annotations

import pytest
import torch

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps import LIBRARY

_OPTIONS = (False, [], 2, 6, 1, True, False, False, False)


def _spec(tensor: torch.Tensor) -> TensorSpec:
    return TensorSpec(tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype, tensor.device)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_layer_and_its_backward(dtype: torch.dtype) -> None:
    layer, backward = (
        torch.ops.aten.mkldnn_rnn_layer.default,
        torch.ops.aten.mkldnn_rnn_layer_backward.default,
    )
    x, hidden, cell = torch.randn(5, 3, 4), torch.randn(3, 6), torch.randn(3, 6)
    weights = [torch.randn(24, 4), torch.randn(24, 6), torch.randn(24), torch.randn(24)]
    given = [tensor.to(dtype) for tensor in (x, *weights, hidden, cell)]
    with torch.no_grad():
        without = layer(*given, *_OPTIONS)
    specs = LIBRARY.infer(layer, [*map(_spec, given), *_OPTIONS], {}, ShapeEnv())
    assert specs == (*map(_spec, without[:3]), None)
    with torch._C._AutoDispatchBelowAutograd(), torch.enable_grad():
        found = layer(*given, *_OPTIONS)
    rest = (*found[:3], found[0], None, None, False, 2, 6, 1, True, True, False, [], False, found[3])
    expected = backward(*given, *rest)
    specs = LIBRARY.infer(
        backward, [_spec(a) if isinstance(a, torch.Tensor) else a for a in (*given, *rest)], {}, ShapeEnv()
    )
    assert specs == tuple(map(_spec, expected))
