"""Specs of reductions over segments; they are library calls."""

from __future__ import annotations

from typing import Any

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.rules.linear_algebra.matmul import fresh


@spec_rule("aten.segment_reduce.default")
def segment_reduce(
    data: TensorSpec,
    reduce: str,
    *,
    lengths: TensorSpec | None = None,
    indices: TensorSpec | None = None,
    offsets: TensorSpec | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
    env: ShapeEnv,
) -> TensorSpec:
    """One row for each length, or for each pair of neighbouring offsets."""
    if lengths is not None:
        counts = lengths.sizes
    elif offsets is not None:
        counts = (*offsets.sizes[:-1], offsets.sizes[-1] - 1)
    else:
        raise RuleMismatchError("segments without lengths or offsets")
    return fresh((*counts, *data.sizes[len(counts) :]), data)


@spec_rule("aten._segment_reduce_backward.default")
def segment_reduce_backward(
    grad: TensorSpec, output: TensorSpec, data: TensorSpec, *args: Any, env: ShapeEnv, **kwargs: Any
) -> TensorSpec:
    return fresh(data.sizes, grad)
