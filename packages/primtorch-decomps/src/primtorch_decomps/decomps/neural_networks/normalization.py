"""Layer, group and RMS normalisation with their gradients; statistics of half types in float32, in two passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch

from fx_interface.symbols import IntLike, ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps.decomps.arithmetic.moments import moments
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.prims import PrimTensor, broadcast_to, current_trace, ops
from primtorch_decomps.promotion import compute_dtype, parameters_dtype, statistics_dtype
from primtorch_decomps.registry import decomposes
from primtorch_decomps.shapes import same_sizes
from primtorch_decomps.strides import is_strided_channels_last

Optional = PrimTensor | None


def wide(x: PrimTensor) -> PrimTensor:
    """``x`` in the dtype that it is computed in."""
    return ops.convert_dtype(x, compute_dtype(x.dtype))


def shifted(normal: PrimTensor, bias: Optional) -> PrimTensor:
    """``normal + bias``. Without a bias kernels on a CPU add 0, so that they give no negative zero: what is divided by
    the result has the sign of the numerator."""
    if bias is not None:
        return normal + bias
    return normal + 0.0 if normal.device.type == "cpu" else normal


def _inner_dims(x: PrimTensor, normalized_shape: Sequence[IntLike]) -> tuple[int, ...]:
    start = x.rank - len(normalized_shape)
    if start < 0 or not same_sizes(x.sizes[start:], normalized_shape, current_trace().env):
        raise RuleMismatchError("normalized_shape is not the tail of the input's shape")
    return tuple(range(start, x.rank))


def _layer_norm_spec(
    x: TensorSpec,
    normalized_shape: Sequence[IntLike],
    weight: TensorSpec | None,
    bias: TensorSpec | None,
    eps: float,
    *,
    env: ShapeEnv,
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    start = x.rank - len(normalized_shape)
    parameters = [p.sizes for p in (weight, bias) if p is not None]
    for shape in (tuple(normalized_shape), *parameters):
        if start < 0 or not same_sizes(x.sizes[start:], shape, env):
            raise RuleMismatchError("normalized_shape is not the tail of the input's shape")
    kept = (*x.sizes[:start], *(1,) * len(normalized_shape))
    stored = TensorSpec(kept, contiguous_strides(kept), statistics_dtype(x, weight, bias), x.device)
    return TensorSpec(x.sizes, contiguous_strides(x.sizes), x.dtype, x.device), stored, stored


@decomposes("aten.native_layer_norm.default", rule=_layer_norm_spec)
def native_layer_norm(
    x: PrimTensor, normalized_shape: Sequence[IntLike], weight: Optional, bias: Optional, eps: float
) -> tuple[PrimTensor, PrimTensor, PrimTensor]:
    dims = _inner_dims(x, normalized_shape)
    source = wide(x)
    variance, mean = moments(source, dims)
    rstd = ops.rsqrt(variance + eps)
    result = (source - mean) * rstd
    if weight is not None:
        result = result * wide(weight)
    result = shifted(result, None if bias is None else wide(bias))
    stored = statistics_dtype(x, weight, bias)
    return (
        ops.convert_dtype(result, x.dtype),
        ops.convert_dtype(mean, stored),
        ops.convert_dtype(rstd, stored),
    )


def _sum(x: PrimTensor, dims: Sequence[int]) -> PrimTensor:
    return ops.sum(x, tuple(dims)) if dims else x


def _kept_sum(x: PrimTensor, dims: Sequence[int]) -> PrimTensor:
    sizes = tuple(1 if axis in dims else size for axis, size in enumerate(x.sizes))
    return ops.reshape(_sum(x, dims), sizes)


def _spread_over_row(
    inner: PrimTensor,
    x: PrimTensor,
    mean: PrimTensor,
    scale: PrimTensor,
    total: Callable[[PrimTensor], PrimTensor],
    number: IntLike,
) -> PrimTensor:
    """What a row's normalisation makes of the gradients ``inner``, which are those of ``(x - mean) * scale``. ``total``
    gives the sum of a row's ``number`` elements, in a form that is broadcast to them.

    Where one of a row's sums is not finite, eager's kernels on a CPU have other infinities and NaN: they add up three
    terms, each of which may be infinite. Generated code skips the pass over a row that has none.
    """
    normal = (x - mean) * scale
    drift = ops.div(total(inner), number)
    tilt = ops.div(total(inner * normal), number)
    if x.device.type != "cpu":
        return scale * (inner - drift - normal * tilt)
    both = drift + tilt
    broken = ops.ne(both - both, 0.0)
    along = total(ops.where(broadcast_to(broken, x.sizes), inner * x, 0.0))
    per_x = (drift * mean - ops.div(along, number)) * (scale * scale * scale)
    factor = ops.where(broken, per_x, -tilt * scale * scale)
    origin = ops.where(broken, 0.0, mean)
    shift = ops.where(broken, -per_x * mean - drift * scale, -drift * scale)
    return scale * inner + factor * (x - origin) + shift


@decomposes("aten.native_layer_norm_backward.default")
def native_layer_norm_backward(
    grad: PrimTensor,
    x: PrimTensor,
    normalized_shape: Sequence[IntLike],
    mean: PrimTensor,
    rstd: PrimTensor,
    weight: Optional,
    bias: Optional,
    output_mask: Sequence[bool],
) -> tuple[Optional, Optional, Optional]:
    dims = _inner_dims(x, normalized_shape)
    outer = tuple(range(dims[0]))
    slope, scale = wide(grad), wide(rstd)
    normal = (wide(x) - wide(mean)) * scale
    inner = slope if weight is None else slope * wide(weight)
    grads: list[Optional] = [None, None, None]
    if output_mask[0]:
        total = partial(_kept_sum, dims=dims)
        spread = _spread_over_row(inner, wide(x), wide(mean), scale, total, ops.numel(x, dims))
        grads[0] = ops.convert_dtype(spread, x.dtype)
    if output_mask[1] and weight is not None:
        grads[1] = ops.convert_dtype(_sum(slope * normal, outer), weight.dtype)
    if output_mask[2] and (bias is not None or weight is not None):
        stored = bias.dtype if bias is not None else x.dtype
        grads[2] = ops.convert_dtype(_sum(slope, outer), stored)
    return grads[0], grads[1], grads[2]


@decomposes("aten._fused_rms_norm.default")
def fused_rms_norm(
    x: PrimTensor, normalized_shape: Sequence[IntLike], weight: Optional, eps: float | None
) -> tuple[PrimTensor, PrimTensor]:
    dims = _inner_dims(x, normalized_shape)
    source = wide(x)
    epsilon = torch.finfo(source.dtype).eps if eps is None else eps
    rstd = ops.rsqrt(ops.div(_kept_sum(source * source, dims), ops.numel(x, dims)) + epsilon)
    result = source * rstd
    if weight is not None:
        result = result * wide(weight)
    return ops.convert_dtype(result, x.dtype), rstd


@decomposes("aten._fused_rms_norm_backward.default")
def fused_rms_norm_backward(
    grad: PrimTensor,
    x: PrimTensor,
    normalized_shape: Sequence[IntLike],
    rstd: PrimTensor,
    weight: Optional,
    output_mask: Sequence[bool],
) -> tuple[Optional, Optional]:
    dims = _inner_dims(x, normalized_shape)
    slope, scale = wide(grad), wide(rstd)
    normal = wide(x) * scale
    inner = slope if weight is None else slope * wide(weight)
    grads: list[Optional] = [None, None]
    if output_mask[0]:
        tilt = ops.div(_kept_sum(inner * normal, dims), ops.numel(x, dims))
        grads[0] = ops.convert_dtype(scale * (inner - normal * tilt), x.dtype)
    if output_mask[1] and weight is not None:
        grads[1] = ops.convert_dtype(_sum(slope * normal, tuple(range(dims[0]))), weight.dtype)
    return grads[0], grads[1]


def by_channel(parameter: PrimTensor, rank: int) -> PrimTensor:
    """A channel's value at dimension 1 of ``rank``."""
    sizes = (1, *parameter.sizes, *(1,) * (rank - 2))
    return ops.broadcast_in_dim(wide(parameter), sizes, (1,))


def _moments_of_groups(x: PrimTensor, group: int) -> tuple[PrimTensor, PrimTensor]:
    """Variance and mean of groups of channels, ``x`` being (batch, channel, place), from those of each channel.

    A group's variance is the mean of its channels' and the variance of their means (Chan, Golub and LeVeque). Memory
    with channels last, where a group is many small pieces, is read in its order then, a vector of channels at a time.
    """
    batch, channels, _ = x.sizes
    shape = (batch, group, channels // group)
    variances, means = (ops.reshape(each, shape) for each in moments(x, (2,)))
    between, mean = moments(means, (2,))
    within = ops.div(_kept_sum(variances, (2,)), channels // group)
    return within + between, mean


def _of_channels(statistic: PrimTensor, channels: IntLike) -> PrimTensor:
    """A group's number for each of its channels."""
    batch, group, _ = statistic.sizes
    return ops.reshape(broadcast_to(statistic, (batch, group, channels // group)), (batch, channels, 1))


def _sum_of_channels(x: PrimTensor, group: int) -> PrimTensor:
    """A group's sum for each of its channels, made of those of its channels: as in ``_moments_of_groups``."""
    batch, channels = x.sizes[:2]
    sums = ops.reshape(_kept_sum(x, tuple(range(2, x.rank))), (batch, group, channels // group))
    return ops.reshape(_of_channels(_kept_sum(sums, (2,)), channels), (batch, channels, *(1,) * (x.rank - 2)))


@decomposes("aten.native_group_norm.default")
def native_group_norm(
    x: PrimTensor,
    weight: Optional,
    bias: Optional,
    N: IntLike,
    C: IntLike,
    HxW: IntLike,
    group: int,
    eps: float,
) -> tuple[PrimTensor, PrimTensor, PrimTensor]:
    by_channels = is_strided_channels_last(x.sizes, x.strides, current_trace().env)
    source = ops.reshape(wide(x), (N, C, HxW) if by_channels else (N, group, (C // group) * HxW))
    variance, mean = _moments_of_groups(source, group) if by_channels else moments(source, (2,))
    rstd = ops.rsqrt(variance + eps)
    centre, scale = (_of_channels(each, C) if by_channels else each for each in (mean, rstd))
    result = ops.reshape((source - centre) * scale, x.sizes)
    if weight is not None:
        result = result * by_channel(weight, x.rank)
    result = shifted(result, None if bias is None else by_channel(bias, x.rank))
    stored = parameters_dtype(x, weight, bias)
    return (
        ops.convert_dtype(broadcast_to(result, x.sizes), x.dtype),
        ops.convert_dtype(ops.reshape(mean, (N, group)), stored),
        ops.convert_dtype(ops.reshape(rstd, (N, group)), stored),
    )


@decomposes("aten.native_group_norm_backward.default")
def native_group_norm_backward(
    grad: PrimTensor,
    x: PrimTensor,
    mean: PrimTensor,
    rstd: PrimTensor,
    weight: Optional,
    N: IntLike,
    C: IntLike,
    HxW: IntLike,
    group: int,
    output_mask: Sequence[bool],
) -> tuple[Optional, Optional, Optional]:
    if is_strided_channels_last(x.sizes, x.strides, current_trace().env):
        shape, rest = x.sizes, (0, *range(2, x.rank))
        ones = (1,) * (x.rank - 2)
        centre, scale = (
            ops.reshape(_of_channels(ops.reshape(wide(each), (N, group, 1)), C), (N, C, *ones))
            for each in (mean, rstd)
        )
        parameter, total = (1, C, *ones), partial(_sum_of_channels, group=group)
    else:
        shape, rest = (N, group, C // group, HxW), (0, 3)
        centre, scale = (ops.reshape(wide(each), (N, group, 1, 1)) for each in (mean, rstd))
        parameter, total = (1, group, C // group, 1), partial(_kept_sum, dims=(2, 3))
    slope, row = ops.reshape(wide(grad), shape), ops.reshape(wide(x), shape)
    normal = (row - centre) * scale
    grads: list[Optional] = [None, None, None]
    if output_mask[0]:
        inner = slope if weight is None else slope * ops.reshape(wide(weight), parameter)
        spread = _spread_over_row(inner, row, centre, scale, total, (C // group) * HxW)
        grads[0] = ops.convert_dtype(ops.reshape(spread, x.sizes), x.dtype)
    stored = x.dtype if weight is None else weight.dtype
    if output_mask[1]:
        grads[1] = ops.convert_dtype(ops.reshape(_sum(slope * normal, rest), (C,)), stored)
    if output_mask[2]:
        grads[2] = ops.convert_dtype(ops.reshape(_sum(slope, rest), (C,)), stored)
    return grads[0], grads[1], grads[2]


def _outer_sum(x: PrimTensor, dim: int) -> PrimTensor:
    """The sum over all dimensions but ``dim``, which are kept as size 1."""
    return _kept_sum(x, tuple(axis for axis in range(x.rank) if axis != dim))


@decomposes("aten._weight_norm_interface.default")
def weight_norm(v: PrimTensor, g: PrimTensor, dim: int = 0) -> tuple[PrimTensor, PrimTensor]:
    """``v`` scaled so that its slices along ``dim`` have norm ``g``; and the norms that they had."""
    source = wide(v)
    norms = ops.sqrt(_outer_sum(source * source, dim))
    result = source * (wide(g) / norms)
    stored = compute_dtype(g.dtype) if v.device.type != "cpu" else g.dtype
    return ops.convert_dtype(result, v.dtype), ops.convert_dtype(norms, stored)


@decomposes("aten._weight_norm_interface_backward.default")
def weight_norm_backward(
    grad: PrimTensor, v: PrimTensor, g: PrimTensor, norms: PrimTensor, dim: int
) -> tuple[PrimTensor, PrimTensor]:
    slope, source, size = wide(grad), wide(v), wide(norms)
    along = _outer_sum(slope * source, dim)
    result = (wide(g) / size) * (slope - source * (along / (size * size)))
    return ops.convert_dtype(result, v.dtype), ops.convert_dtype(along / size, g.dtype)
