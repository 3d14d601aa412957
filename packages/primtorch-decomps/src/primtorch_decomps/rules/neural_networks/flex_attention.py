"""Specs of attention with programs for scores, the stack's own operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fx_interface.regions.attention import result_specs, working_dtype
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.strides import preserved_strides


@spec_rule("fx_interface.attention.default")
def attention(
    query: TensorSpec, key: TensorSpec, value: TensorSpec, *rest: Any, env: ShapeEnv
) -> tuple[TensorSpec, ...]:
    """Queries [B, H, L, E], values [B, H, S, V] -> results [B, H, L, V], logarithms of sums [B, H, L], maxima."""
    found = result_specs(query, value, bool(rest[-1]), env)
    if found is None:
        raise RuleMismatchError("queries whose strides have no known order")
    return found


@spec_rule("fx_interface.attention_backward.default")
def attention_backward(
    query: TensorSpec, key: TensorSpec, value: TensorSpec, *rest: Any, env: ShapeEnv
) -> list[TensorSpec]:
    """Gradients of queries, keys and values, laid out as these, and parts of the operands' gradients."""
    operands: Sequence[TensorSpec] = rest[4]
    trained: Sequence[int] = rest[-2]
    grads = [
        TensorSpec(x.sizes, preserved_strides(x.sizes, x.strides, env), x.dtype, x.device)
        for x in (query, key, value)
    ]
    for place in trained:
        like = operands[place]
        strides = contiguous_strides(like.sizes)
        grads.append(TensorSpec(like.sizes, strides, working_dtype(like.dtype), like.device))
    return grads
