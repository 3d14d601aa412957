"""Specs of bags of embeddings on a CPU: sums, means or maxima of rows of a table."""

from __future__ import annotations

from typing import Any

import torch

from fx_interface.symbols import IntLike, ShapeEnv
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.rules.linear_algebra.factorizations import nothing, row_major

_SUM, _MEAN, _MAX = 0, 1, 2


@spec_rule("aten._embedding_bag.default")
def bags(
    weight: TensorSpec,
    indices: TensorSpec,
    offsets: TensorSpec,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: TensorSpec | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
    *,
    env: ShapeEnv,
) -> tuple[TensorSpec, TensorSpec, TensorSpec, TensorSpec]:
    """Bags [B, E], the bag of each index (where the kernel notes it), sizes of bags, places of maxima."""
    if weight.rank != 2 or indices.rank != 1 or offsets.rank != 1 or weight.device.type != "cpu":
        raise RuleMismatchError("a table of rows, and indices in one row")
    if indices.dtype is not offsets.dtype or 0 in (*indices.sizes, *offsets.sizes):
        raise RuleMismatchError("indices and offsets of one dtype, and some of them")
    packed = weight.strides[1] == 1 and (per_sample_weights is None or per_sample_weights.strides[0] == 1)
    if mode not in (_SUM, _MEAN, _MAX) or not packed:
        raise RuleMismatchError("another mode or layout")
    count = offsets.sizes[0] - 1 if include_last_offset else offsets.sizes[0]
    made = row_major((count, weight.sizes[1]), weight)
    noted = mode != _SUM or padding_idx >= 0 or weight.dtype is torch.float64
    of_indices = row_major(indices.sizes, indices) if noted else nothing(indices)
    sizes = row_major((count,), indices)
    return made, of_indices, sizes, row_major(made.sizes, indices) if mode == _MAX else sizes


@spec_rule("aten._embedding_bag_forward_only.default")
def bags_without_gradients(
    weight: TensorSpec, indices: TensorSpec, offsets: TensorSpec, *options: Any, env: ShapeEnv, **named: Any
) -> tuple[TensorSpec, TensorSpec, TensorSpec, TensorSpec]:
    """As with gradients, but sums note a size for the last offset too."""
    found = bags(weight, indices, offsets, *options, env=env, **named)
    mode = options[1] if len(options) > 1 else named.get("mode", _SUM)
    if mode != _SUM:
        return found
    sizes = row_major(offsets.sizes, indices)
    return *found[:2], sizes, sizes


@spec_rule("aten._embedding_bag_dense_backward.default")
def bags_backward(
    grad: TensorSpec,
    indices: TensorSpec,
    offset2bag: TensorSpec,
    bag_size: TensorSpec,
    maximum_indices: TensorSpec,
    num_weights: IntLike,
    *options: Any,
    env: ShapeEnv,
) -> TensorSpec:
    return row_major((num_weights, grad.sizes[1]), grad)


@spec_rule("aten._embedding_bag_backward.default")
def any_bags_backward(
    grad: TensorSpec,
    indices: TensorSpec,
    offsets: TensorSpec,
    offset2bag: TensorSpec,
    bag_size: TensorSpec,
    maximum_indices: TensorSpec,
    num_weights: IntLike,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    *options: Any,
    env: ShapeEnv,
) -> TensorSpec:
    if sparse:
        raise RuleMismatchError("a sparse gradient")
    return row_major((num_weights, grad.sizes[1]), grad)


@spec_rule("aten._embedding_bag_per_sample_weights_backward.default")
def weights_backward(
    grad: TensorSpec, weight: TensorSpec, indices: TensorSpec, *options: Any, env: ShapeEnv
) -> TensorSpec:
    """One number for each index."""
    return row_major(indices.sizes, grad)
