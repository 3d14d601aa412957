"""Specs of variances and of the gradients of normalisations: running the formula on stand-ins takes longer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from fx_interface.symbols import IntLike, ShapeEnv, mod
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.promotion import parameters_dtype
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.rules.images.pooling import native_strides
from primtorch_decomps.rules.linear_algebra.matmul import fresh
from primtorch_decomps.shapes import canonical_dims, reduced_sizes, same, same_sizes

Optional = TensorSpec | None


def _as(spec: TensorSpec, dtype: torch.dtype) -> TensorSpec:
    return TensorSpec(spec.sizes, spec.strides, dtype, spec.device)


@spec_rule("aten.native_layer_norm_backward.default")
def native_layer_norm_backward(
    grad: TensorSpec,
    x: TensorSpec,
    normalized_shape: Sequence[IntLike],
    mean: TensorSpec,
    rstd: TensorSpec,
    weight: Optional,
    bias: Optional,
    output_mask: Sequence[bool],
    *,
    env: ShapeEnv,
) -> tuple[Optional, Optional, Optional]:
    inner = tuple(normalized_shape)
    if not inner or not same_sizes(x.sizes[x.rank - len(inner) :], inner, env) or len(inner) > x.rank:
        raise RuleMismatchError("layer norm over other sizes than its input's last")
    shifted = output_mask[2] and (bias is not None or weight is not None)
    parameters = fresh(inner, x)
    return (
        fresh(x.sizes, x) if output_mask[0] else None,
        _as(parameters, weight.dtype) if output_mask[1] and weight is not None else None,
        _as(parameters, x.dtype if bias is None else bias.dtype) if shifted else None,
    )


def _grouped(
    x: TensorSpec, images: IntLike, channels: IntLike, pixels: IntLike, groups: int, env: ShapeEnv
) -> None:
    if not same(x.numel, images * channels * pixels, env) or not same(mod(channels, groups), 0, env):
        raise RuleMismatchError("group norm over other sizes than its input's")


def _in_memory_format(x: TensorSpec, env: ShapeEnv) -> TensorSpec:
    return TensorSpec(x.sizes, native_strides(x.sizes, x, env), x.dtype, x.device)


@spec_rule("aten.native_group_norm.default")
def native_group_norm(
    x: TensorSpec,
    weight: Optional,
    bias: Optional,
    N: IntLike,
    C: IntLike,
    HxW: IntLike,
    group: int,
    eps: float,
    *,
    env: ShapeEnv,
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    _grouped(x, N, C, HxW, group, env)
    parameters = [p for p in (weight, bias) if p is not None]
    if not all(same_sizes(p.sizes, (C,), env) for p in parameters):
        raise RuleMismatchError("parameters of another length than there are channels")
    statistics = _as(fresh((N, group), x), parameters_dtype(x, weight, bias))
    return _in_memory_format(x, env), statistics, statistics


@spec_rule("aten.native_group_norm_backward.default")
def native_group_norm_backward(
    grad: TensorSpec,
    x: TensorSpec,
    mean: TensorSpec,
    rstd: TensorSpec,
    weight: Optional,
    N: IntLike,
    C: IntLike,
    HxW: IntLike,
    group: int,
    output_mask: Sequence[bool],
    *,
    env: ShapeEnv,
) -> tuple[Optional, Optional, Optional]:
    _grouped(x, N, C, HxW, group, env)
    parameters = _as(fresh((C,), x), x.dtype if weight is None else weight.dtype)
    return (
        _in_memory_format(x, env) if output_mask[0] else None,
        parameters if output_mask[1] else None,
        parameters if output_mask[2] else None,
    )


def _variance(x: TensorSpec, dim: Any, keepdim: bool) -> TensorSpec:
    if not x.dtype.is_floating_point:
        raise RuleMismatchError("variance of integers or complex numbers")
    return fresh(reduced_sizes(x.sizes, canonical_dims(dim, x.rank), keepdim), x)


@spec_rule("aten.var.correction", "aten.std.correction")
def variance(
    x: TensorSpec, dim: Any = None, *, correction: Any = None, keepdim: bool = False, env: ShapeEnv
) -> TensorSpec:
    return _variance(x, dim, keepdim)


@spec_rule("aten.var_mean.correction", "aten.std_mean.correction")
def variance_and_mean(
    x: TensorSpec, dim: Any = None, *, correction: Any = None, keepdim: bool = False, env: ShapeEnv
) -> tuple[TensorSpec, TensorSpec]:
    spec = _variance(x, dim, keepdim)
    return spec, spec
