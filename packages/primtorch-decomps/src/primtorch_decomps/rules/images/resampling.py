"""Specs of interpolation and of the gradients of resampling; they are library calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fx_interface.symbols import IntLike, ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.rules.images.pooling import native_strides, suggested_strides


@spec_rule(
    "aten.upsample_linear1d.default",
    "aten.upsample_bilinear2d.default",
    "aten.upsample_bicubic2d.default",
    "aten.upsample_trilinear3d.default",
    "aten._upsample_bilinear2d_aa.default",
    "aten._upsample_bicubic2d_aa.default",
)
def interpolated(x: TensorSpec, output_size: Sequence[IntLike], *options: Any, env: ShapeEnv) -> TensorSpec:
    """[N, C, ...] -> [N, C, *output_size]."""
    if x.rank != 2 + len(output_size) or 0 in x.sizes:
        raise RuleMismatchError("interpolation of another rank, or of nothing")
    sizes = (*x.sizes[:2], *output_size)
    return TensorSpec(sizes, suggested_strides(sizes, x, env), x.dtype, x.device)


@spec_rule(
    "aten.upsample_nearest1d_backward.default",
    "aten.upsample_nearest2d_backward.default",
    "aten._upsample_nearest_exact1d_backward.default",
    "aten._upsample_nearest_exact2d_backward.default",
    "aten.upsample_linear1d_backward.default",
    "aten.upsample_bilinear2d_backward.default",
    "aten._upsample_bilinear2d_aa_backward.default",
    "aten.upsample_trilinear3d_backward.default",
)
def interpolated_backward(
    grad: TensorSpec,
    output_size: Sequence[IntLike],
    input_size: Sequence[IntLike],
    *options: Any,
    env: ShapeEnv,
) -> TensorSpec:
    """Gradient [N, C, *output_size] -> ``input_size``."""
    sizes = tuple(input_size)
    return TensorSpec(sizes, suggested_strides(sizes, grad, env), grad.dtype, grad.device)


@spec_rule(
    "aten.upsample_nearest3d_backward.default",
    "aten._upsample_nearest_exact3d_backward.default",
    "aten.upsample_bicubic2d_backward.default",
    "aten._upsample_bicubic2d_aa_backward.default",
)
def row_major_backward(
    grad: TensorSpec,
    output_size: Sequence[IntLike],
    input_size: Sequence[IntLike],
    *options: Any,
    env: ShapeEnv,
) -> TensorSpec:
    """As ``interpolated_backward``, for kernels that take no heed of the layout."""
    sizes = tuple(input_size)
    return TensorSpec(sizes, contiguous_strides(sizes), grad.dtype, grad.device)


@spec_rule(
    "aten.reflection_pad1d_backward.default",
    "aten.reflection_pad2d_backward.default",
    "aten.reflection_pad3d_backward.default",
    "aten.replication_pad1d_backward.default",
    "aten.replication_pad2d_backward.default",
    "aten.replication_pad3d_backward.default",
)
def bordered_backward(
    grad: TensorSpec, x: TensorSpec, padding: Sequence[IntLike], *, env: ShapeEnv
) -> TensorSpec:
    return TensorSpec(x.sizes, native_strides(x.sizes, x, env), x.dtype, x.device)
