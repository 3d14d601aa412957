"""Specs of the gradients of views: zeros in the shape of what was viewed, with the gradient in its place."""

from __future__ import annotations

from collections.abc import Sequence

from fx_interface.symbols import IntLike, ShapeEnv
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.rules.data_movement.views import index_from_front
from primtorch_decomps.rules.linear_algebra.matmul import fresh
from primtorch_decomps.shapes import canonical_dim


@spec_rule("aten.select_backward.default")
def select_backward(
    grad: TensorSpec, input_sizes: Sequence[IntLike], dim: int, index: IntLike, *, env: ShapeEnv
) -> TensorSpec:
    axis = canonical_dim(dim, len(input_sizes))
    index_from_front(index, input_sizes[axis], env)
    return fresh(input_sizes, grad)


@spec_rule("aten.slice_backward.default")
def slice_backward(
    grad: TensorSpec,
    input_sizes: Sequence[IntLike],
    dim: int,
    start: IntLike,
    end: IntLike,
    step: IntLike,
    *,
    env: ShapeEnv,
) -> TensorSpec:
    canonical_dim(dim, len(input_sizes))
    return fresh(input_sizes, grad)


@spec_rule("aten.diagonal_backward.default")
def diagonal_backward(
    grad: TensorSpec, input_sizes: Sequence[IntLike], offset: int, dim1: int, dim2: int, *, env: ShapeEnv
) -> TensorSpec:
    return fresh(input_sizes, grad)
