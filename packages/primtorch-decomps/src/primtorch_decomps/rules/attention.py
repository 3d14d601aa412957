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
from primtorch_decomps.shapes import same
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
