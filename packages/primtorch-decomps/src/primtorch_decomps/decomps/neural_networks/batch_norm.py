"""Batch normalisation and its gradient. Statistics are over all dimensions but the second (the channels)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps.decomps.arithmetic.moments import moments
from primtorch_decomps.decomps.neural_networks.normalization import by_channel, shifted, wide
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.prims import PrimTensor, ops
from primtorch_decomps.promotion import compute_dtype
from primtorch_decomps.registry import decomposes
from primtorch_decomps.rules.images.pooling import suggested_strides
from primtorch_decomps.strides import preserved_strides

Optional = PrimTensor | None


def _other_dims(x: Any) -> tuple[int, ...]:
    return tuple(axis for axis in range(x.rank) if axis != 1)


def _statistics_dtype(x: Any, weight: Any) -> torch.dtype:
    if x.device.type != "cpu":
        return compute_dtype(x.dtype)
    return x.dtype if weight is None else weight.dtype  # type: ignore[no-any-return]


def _applied(
    x: PrimTensor, mean: PrimTensor, scale: PrimTensor, weight: Optional, bias: Optional
) -> PrimTensor:
    """``(x - mean) * scale * weight + bias``, channel by channel, in the dtype of ``x``."""
    result = (wide(x) - by_channel(mean, x.rank)) * by_channel(scale, x.rank)
    if weight is not None:
        result = result * by_channel(weight, x.rank)
    result = shifted(result, None if bias is None else by_channel(bias, x.rank))
    return ops.convert_dtype(result, x.dtype)


def _moved(old: PrimTensor, new: PrimTensor, momentum: float) -> PrimTensor:
    return ops.convert_dtype(wide(old) * (1.0 - momentum) + new * momentum, old.dtype)


def _train(
    x: PrimTensor,
    weight: Optional,
    bias: Optional,
    running_mean: Optional,
    running_var: Optional,
    momentum: float,
    eps: float,
) -> tuple[PrimTensor, PrimTensor, PrimTensor, Optional, Optional]:
    if x.rank < 2 or (isinstance(x.numel, int) and x.numel == 0):
        raise RuleMismatchError("batch norm of nothing")
    dims = _other_dims(x)
    channels = (x.sizes[1],)
    variance, mean = (ops.reshape(s, channels) for s in moments(wide(x), dims, scaled=True))
    rstd = ops.rsqrt(variance + eps)
    result = _applied(x, mean, rstd, weight, bias)
    count = ops.numel(x, dims)
    if running_mean is not None:
        running_mean = _moved(running_mean, mean, momentum)
    if running_var is not None:
        running_var = _moved(running_var, ops.div(variance * count, count - 1), momentum)
    stored = _statistics_dtype(x, weight)
    return result, ops.convert_dtype(mean, stored), ops.convert_dtype(rstd, stored), running_mean, running_var


def _infer(
    x: PrimTensor, weight: Optional, bias: Optional, mean: PrimTensor, variance: PrimTensor, eps: float
) -> tuple[PrimTensor, PrimTensor, PrimTensor]:
    rstd = ops.rsqrt(wide(variance) + eps)
    result = _applied(x, mean, rstd, weight, bias)
    stored = _statistics_dtype(x, weight)
    if x.device.type != "cpu":
        return result, ops.convert_dtype(mean, stored), ops.convert_dtype(rstd, stored)
    nothing = ops.full((0,), 0.0, stored, x.device)
    return result, nothing, nothing


def _specs(x: TensorSpec, weight: TensorSpec | None, training: bool, env: ShapeEnv) -> tuple[Any, Any, Any]:
    if x.rank < 2 or 0 in x.sizes:
        raise RuleMismatchError("batch norm of nothing")
    on_cpu = x.device.type == "cpu"
    strides = suggested_strides(x.sizes, x, env) if on_cpu else preserved_strides(x.sizes, x.strides, env)
    count = (x.sizes[1],) if training or not on_cpu else (0,)
    saved = TensorSpec(count, (1,), _statistics_dtype(x, weight), x.device)
    return TensorSpec(x.sizes, strides, x.dtype, x.device), saved, saved


def _functional_spec(
    x: TensorSpec,
    weight: TensorSpec | None,
    bias: TensorSpec | None,
    running_mean: TensorSpec,
    running_var: TensorSpec,
    training: bool,
    momentum: float,
    eps: float,
    *,
    env: ShapeEnv,
) -> Any:
    copies = [TensorSpec(r.sizes, r.strides, r.dtype, r.device) for r in (running_mean, running_var)]
    return (*_specs(x, weight, training, env), *copies)


@decomposes("aten._native_batch_norm_legit_functional.default", rule=_functional_spec)
def batch_norm_functional(
    x: PrimTensor,
    weight: Optional,
    bias: Optional,
    running_mean: PrimTensor,
    running_var: PrimTensor,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Optional, ...]:
    """Also returns what the running statistics become."""
    if training:
        return _train(x, weight, bias, running_mean, running_var, momentum, eps)
    return (*_infer(x, weight, bias, running_mean, running_var, eps), running_mean, running_var)


def _spec(
    x: TensorSpec,
    weight: TensorSpec | None,
    bias: TensorSpec | None,
    running_mean: TensorSpec | None,
    running_var: TensorSpec | None,
    training: bool,
    momentum: float,
    eps: float,
    *,
    env: ShapeEnv,
) -> Any:
    return _specs(x, weight, training, env)


@decomposes("aten.native_batch_norm.default", rule=_spec)
def batch_norm(
    x: PrimTensor,
    weight: Optional,
    bias: Optional,
    running_mean: Optional,
    running_var: Optional,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    """A library call where it changes the running statistics in place."""
    if not training and running_mean is not None and running_var is not None:
        return _infer(x, weight, bias, running_mean, running_var, eps)
    if training and running_mean is None and running_var is None:
        return _train(x, weight, bias, None, None, momentum, eps)[:3]
    return NotImplemented


def _no_stats_spec(
    x: TensorSpec,
    weight: TensorSpec | None,
    bias: TensorSpec | None,
    training: bool,
    momentum: float,
    eps: float,
    *,
    env: ShapeEnv,
) -> Any:
    return _specs(x, weight, training, env)


@decomposes("aten._native_batch_norm_legit.no_stats", rule=_no_stats_spec)
def batch_norm_no_stats(
    x: PrimTensor, weight: Optional, bias: Optional, training: bool, momentum: float, eps: float
) -> Any:
    return _train(x, weight, bias, None, None, momentum, eps)[:3] if training else NotImplemented


def _no_training_spec(
    x: TensorSpec,
    weight: TensorSpec | None,
    bias: TensorSpec | None,
    running_mean: TensorSpec,
    running_var: TensorSpec,
    momentum: float,
    eps: float,
    *,
    env: ShapeEnv,
) -> Any:
    return _specs(x, weight, False, env)


@decomposes("aten._native_batch_norm_legit_no_training.default", rule=_no_training_spec)
def batch_norm_no_training(
    x: PrimTensor,
    weight: Optional,
    bias: Optional,
    running_mean: PrimTensor,
    running_var: PrimTensor,
    momentum: float,
    eps: float,
) -> Any:
    return _infer(x, weight, bias, running_mean, running_var, eps)


def _backward_spec(
    grad: TensorSpec,
    x: TensorSpec,
    weight: TensorSpec | None,
    running_mean: TensorSpec | None,
    running_var: TensorSpec | None,
    save_mean: TensorSpec | None,
    save_invstd: TensorSpec | None,
    train: bool,
    eps: float,
    output_mask: Sequence[bool],
    *,
    env: ShapeEnv,
) -> tuple[TensorSpec | None, ...]:
    dtype = x.dtype if weight is None else weight.dtype
    channel = TensorSpec((x.sizes[1],), (1,), dtype, x.device)
    strides = suggested_strides(x.sizes, x, env)
    return (
        TensorSpec(x.sizes, strides, x.dtype, x.device) if output_mask[0] else None,
        channel if output_mask[1] else None,
        channel if output_mask[2] else None,
    )


@decomposes("aten.native_batch_norm_backward.default", rule=_backward_spec)
def batch_norm_backward(
    grad: PrimTensor,
    x: PrimTensor,
    weight: Optional,
    running_mean: Optional,
    running_var: Optional,
    save_mean: Optional,
    save_invstd: Optional,
    train: bool,
    eps: float,
    output_mask: Sequence[bool],
) -> Any:
    mean, rstd = save_mean, save_invstd
    if not train:
        mean, rstd = running_mean, None if running_var is None else ops.rsqrt(wide(running_var) + eps)
    if mean is None or rstd is None:
        return NotImplemented
    dims = _other_dims(x)
    slope = wide(grad)
    scale = by_channel(rstd, x.rank)
    normal = (wide(x) - by_channel(mean, x.rank)) * scale
    total = ops.sum(slope, dims)
    tilt = ops.sum(slope * normal, dims)
    stored = x.dtype if weight is None else weight.dtype
    result: list[Optional] = [None, None, None]
    if output_mask[0]:
        if train:
            count = ops.numel(x, dims)
            drift = by_channel(ops.div(total, count), x.rank)
            slope = slope - drift - normal * by_channel(ops.div(tilt, count), x.rank)
        inner = slope * scale
        if weight is not None:
            inner = inner * by_channel(weight, x.rank)
        result[0] = ops.convert_dtype(inner, x.dtype)
    if output_mask[1]:
        result[1] = ops.convert_dtype(tilt, stored)
    if output_mask[2]:
        result[2] = ops.convert_dtype(total, stored)
    return tuple(result)
