"""Specs of fused attention; the kernels are library calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from fx_interface.symbols import IntLike, ShapeEnv
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.promotion import compute_dtype
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.rules.linear_algebra.matmul import fresh
from primtorch_decomps.shapes import same, same_sizes
from primtorch_decomps.strides import preserved_strides


def heads_inside(sizes: Sequence[IntLike], dtype: torch.dtype, device: torch.device) -> TensorSpec:
    """[B, H, L, E] laid out as [B, L, H, E]."""
    batch, heads, length, width = sizes
    strides = (length * heads * width, width, heads * width, 1)
    return TensorSpec((batch, heads, length, width), strides, dtype, device)


@spec_rule("aten._scaled_dot_product_flash_attention_for_cpu.default")
def flash_for_cpu(
    query: TensorSpec,
    key: TensorSpec,
    value: TensorSpec,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: TensorSpec | None = None,
    scale: Any = None,
    env: ShapeEnv,
) -> tuple[TensorSpec, TensorSpec]:
    """Queries [B, H, L, E], values [B, H, S, E] -> result [B, H, L, E] and log of sums [B, H, L]."""
    if query.rank != 4 or dropout_p:
        raise RuleMismatchError("flash attention for CPU takes four dimensions and no dropout")
    batch, heads, length, width = query.sizes
    if not same(width, value.sizes[3], env):
        raise RuleMismatchError("flash attention for CPU takes values as wide as queries")
    strides = preserved_strides(query.sizes, query.strides, env)
    result = TensorSpec(query.sizes, strides, query.dtype, query.device)
    sums = (batch, heads, length)
    wide = compute_dtype(query.dtype)
    return result, TensorSpec(sums, (length * heads, 1, heads), wide, query.device)


@spec_rule("aten._scaled_dot_product_flash_attention_for_cpu_backward.default")
def flash_for_cpu_backward(
    grad: TensorSpec,
    query: TensorSpec,
    key: TensorSpec,
    value: TensorSpec,
    out: TensorSpec,
    logsumexp: TensorSpec,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: TensorSpec | None = None,
    scale: Any = None,
    env: ShapeEnv,
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    specs = [heads_inside(t.sizes, t.dtype, t.device) for t in (query, key, value)]
    return specs[0], specs[1], specs[2]


@spec_rule("aten._native_multi_head_attention.default")
def fast_path(
    query: TensorSpec,
    key: TensorSpec,
    value: TensorSpec,
    embed_dim: int,
    num_head: int,
    qkv_weight: TensorSpec,
    qkv_bias: TensorSpec,
    proj_weight: TensorSpec,
    proj_bias: TensorSpec,
    mask: TensorSpec | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
    *,
    env: ShapeEnv,
) -> tuple[TensorSpec, TensorSpec | None]:
    """[B, L, E] -> the same, and weights [B, L, L], or [B, H, L, L] for each head, where they are needed."""
    if query.rank != 3 or not all(same_sizes(query.sizes, t.sizes, env) for t in (key, value)):
        raise RuleMismatchError("queries, keys and values are of one shape")
    batch, length, width = query.sizes
    if not same(width, embed_dim, env):
        raise RuleMismatchError("as wide as it is said")
    result = fresh(query.sizes, query)
    if not need_weights:
        return result, None
    heads = () if average_attn_weights else (num_head,)
    return result, fresh((batch, *heads, length, length), query)


@spec_rule("aten._transformer_encoder_layer_fwd.default")
def encoder_layer(x: TensorSpec, embed_dim: int, *args: Any, env: ShapeEnv, **kwargs: Any) -> TensorSpec:
    """[B, L, E] -> the same."""
    if x.rank != 3 or not same(x.sizes[2], embed_dim, env):
        raise RuleMismatchError("a batch of sequences, as wide as it is said")
    return fresh(x.sizes, x)
