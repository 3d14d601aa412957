"""Specs of oneDNN's LSTM layers. A compiled graph runs with gradients off, where they make no workspace."""

from __future__ import annotations

from typing import Any

import torch

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps.registry import spec_rule


@spec_rule("aten.mkldnn_rnn_layer.default")
def layer(
    x: TensorSpec,
    weight0: TensorSpec,
    weight1: TensorSpec,
    weight2: TensorSpec,
    weight3: TensorSpec,
    hidden: TensorSpec,
    cell: TensorSpec,
    reverse: bool,
    batch_sizes: Any,
    mode: int,
    hidden_size: int,
    *options: Any,
    env: ShapeEnv,
) -> tuple[TensorSpec, TensorSpec, TensorSpec, None]:
    """[T, N, C], states of [N, H] -> outputs of [T, N, H], and the states after the last step."""
    sizes = (*x.sizes[:2], hidden_size)
    output = TensorSpec(sizes, contiguous_strides(sizes), x.dtype, x.device)
    return output, _packed(hidden), _packed(cell), None


@spec_rule("aten.mkldnn_rnn_layer_backward.default")
def layer_backward(
    x: TensorSpec,
    weight0: TensorSpec,
    weight1: TensorSpec,
    weight2: TensorSpec,
    weight3: TensorSpec,
    hidden: TensorSpec,
    cell: TensorSpec,
    *rest: Any,
    env: ShapeEnv,
) -> tuple[TensorSpec, ...]:
    """Gradients of the input, of the weights, of the one bias that stands for both, and of the states: float32,
    whatever the layer's dtype. Autograd converts them."""
    rows = weight0.sizes[:1]
    bias = TensorSpec(rows, (1,), torch.float32, weight0.device)
    of_states = (_packed(state, torch.float32) for state in (hidden, cell))
    return (*(_packed(given, torch.float32) for given in (x, weight0, weight1)), bias, bias, *of_states)


def _packed(spec: TensorSpec, dtype: torch.dtype | None = None) -> TensorSpec:
    return TensorSpec(spec.sizes, contiguous_strides(spec.sizes), dtype or spec.dtype, spec.device)
