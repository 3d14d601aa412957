"""Specs of fused attention on CUDA devices; the kernels are library calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from fx_interface.symbols import IntLike, ShapeEnv, floordiv
from fx_interface.tensor_spec import SymSpec, TensorSpec, contiguous_strides
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.rules.neural_networks.attention import heads_inside
from primtorch_decomps.shapes import Sizes, same
from primtorch_decomps.strides import preserved_strides

_CPU = torch.device("cpu")
_SUMS_ALIGNMENT = 32
"""The memory-efficient kernel pads the logarithms of sums to whole blocks of queries."""


def _row_major(sizes: Sizes, dtype: torch.dtype, device: torch.device) -> TensorSpec:
    return TensorSpec(sizes, contiguous_strides(sizes), dtype, device)


def _laid_out_as(x: TensorSpec, env: ShapeEnv) -> TensorSpec:
    return TensorSpec(x.sizes, preserved_strides(x.sizes, x.strides, env), x.dtype, x.device)


def _check(query: TensorSpec, value: TensorSpec, dropout_p: float, env: ShapeEnv) -> None:
    if query.rank != 4 or query.device.type != "cuda" or dropout_p:
        raise RuleMismatchError("attention of another rank, on another device, or with dropout")
    if not same(query.sizes[3], value.sizes[3], env):
        raise RuleMismatchError("values that are not as wide as queries")


@spec_rule("aten._scaled_dot_product_flash_attention.default")
def flash(
    query: TensorSpec,
    key: TensorSpec,
    value: TensorSpec,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
    env: ShapeEnv,
) -> tuple[Any, ...]:
    """Queries [B, H, L, E], keys [B, H, S, E] -> result [B, H, L, E], log of sums [B, H, L], L, S and random state."""
    _check(query, value, dropout_p, env)
    if return_debug_mask or not isinstance(query.sizes[3], int) or query.sizes[3] % 8:
        raise RuleMismatchError("flash attention with a debug mask, or of padded width")
    device = query.device
    sums = _row_major(query.sizes[:3], torch.float32, device)
    state = _row_major((2,), torch.uint64, device)
    lengths = (SymSpec(query.sizes[2]), SymSpec(key.sizes[2]))
    unused = (_row_major((), torch.uint64, device), _row_major((0,), query.dtype, device))
    return (_laid_out_as(query, env), sums, None, None, *lengths, state, *unused)


@spec_rule("aten._scaled_dot_product_flash_attention_backward.default")
def flash_backward(
    grad: TensorSpec,
    query: TensorSpec,
    key: TensorSpec,
    value: TensorSpec,
    *saved: Any,
    env: ShapeEnv,
    **options: Any,
) -> tuple[Any, ...]:
    return tuple(_laid_out_as(x, env) for x in (query, key, value))


@spec_rule("aten._scaled_dot_product_efficient_attention.default")
def efficient(
    query: TensorSpec,
    key: TensorSpec,
    value: TensorSpec,
    attn_bias: TensorSpec | None,
    compute_log_sumexp: bool,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    env: ShapeEnv,
) -> tuple[Any, ...]:
    """Queries [B, H, L, E] -> result [B, H, L, E], log of sums [B, H, L padded] (or of no length), random state."""
    _check(query, value, dropout_p, env)
    batch, heads, length, width = query.sizes
    blocks: IntLike = floordiv(length + _SUMS_ALIGNMENT - 1, _SUMS_ALIGNMENT) * _SUMS_ALIGNMENT
    sums = _row_major((batch, heads, blocks if compute_log_sumexp else 0), torch.float32, query.device)
    state = _row_major((), torch.int64, _CPU)
    return heads_inside((batch, heads, length, width), query.dtype, query.device), sums, state, state


@spec_rule("aten._scaled_dot_product_efficient_attention_backward.default")
def efficient_backward(
    grad: TensorSpec,
    query: TensorSpec,
    key: TensorSpec,
    value: TensorSpec,
    attn_bias: TensorSpec | None,
    out: TensorSpec,
    logsumexp: TensorSpec,
    philox_seed: TensorSpec,
    philox_offset: TensorSpec,
    dropout_p: float,
    grad_input_mask: Sequence[bool],
    is_causal: bool = False,
    *,
    scale: float | None = None,
    env: ShapeEnv,
) -> tuple[Any, ...]:
    if attn_bias is not None and grad_input_mask[3]:
        raise RuleMismatchError("the gradient of an attention bias")
    grads = [
        heads_inside(x.sizes, x.dtype, x.device) if wanted else None
        for x, wanted in zip((query, key, value), grad_input_mask, strict=False)
    ]
    return (*grads, None)


@spec_rule("aten._scaled_dot_product_cudnn_attention.default")
def cudnn(
    query: TensorSpec,
    key: TensorSpec,
    value: TensorSpec,
    attn_bias: TensorSpec | None,
    compute_log_sumexp: bool,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
    env: ShapeEnv,
) -> tuple[Any, ...]:
    """Queries [B, H, L, E], keys [B, H, S, E] -> result [B, H, L, E], log of sums [B, H, L, 1], L, S, random state."""
    _check(query, value, dropout_p, env)
    if return_debug_mask or not compute_log_sumexp:
        raise RuleMismatchError("cuDNN attention with a debug mask, or without sums")
    sums = _row_major((*query.sizes[:3], 1), torch.float32, query.device)
    state = _row_major((), torch.int64, query.device)
    lengths = (SymSpec(query.sizes[2]), SymSpec(key.sizes[2]))
    return (_laid_out_as(query, env), sums, None, None, *lengths, state, state, None)


@spec_rule("aten._scaled_dot_product_cudnn_attention_backward.default")
def cudnn_backward(
    grad: TensorSpec,
    query: TensorSpec,
    key: TensorSpec,
    value: TensorSpec,
    *saved: Any,
    env: ShapeEnv,
    **options: Any,
) -> tuple[Any, ...]:
    return tuple(_laid_out_as(x, env) for x in (query, key, value))
