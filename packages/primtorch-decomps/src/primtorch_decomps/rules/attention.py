"""Specs of fused attention; the kernels are library calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from fx_interface.symbols import IntLike, ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides

from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.promotion import compute_dtype
from primtorch_decomps.registry import spec_rule


def _heads_inside(sizes: Sequence[IntLike], dtype: torch.dtype, device: torch.device) -> TensorSpec:
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
    batch, heads, length, _ = query.sizes
    result = _heads_inside((batch, heads, length, value.sizes[3]), query.dtype, query.device)
    sums = (batch, heads, length)
    wide = compute_dtype(query.dtype)
    strides = (length * heads, 1, heads)
    return result, TensorSpec(sums, strides, wide, query.device)


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
    specs = [_heads_inside(t.sizes, t.dtype, t.device) for t in (query, key, value)]
    return specs[0], specs[1], specs[2]


def scalar(dtype: torch.dtype, device: torch.device) -> TensorSpec:
    """A 0-dimensional tensor."""
    return TensorSpec((), (), dtype, device)


def fresh(sizes: Sequence[IntLike], dtype: torch.dtype, device: torch.device) -> TensorSpec:
    """A row-major tensor."""
    return TensorSpec(tuple(sizes), contiguous_strides(tuple(sizes)), dtype, device)
