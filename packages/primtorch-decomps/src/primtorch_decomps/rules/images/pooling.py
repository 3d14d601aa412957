"""Specs of pooling and of resampling; where windows do not tile the input exactly they are library calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from fx_interface.symbols import IntLike, ShapeEnv, floordiv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.shapes import Sizes, at_most
from primtorch_decomps.strides import channels_last_order, is_strided_channels_last, ordered_strides


def suggested_strides(sizes: Sizes, like: TensorSpec, env: ShapeEnv) -> Sizes:
    """Strides of a fresh tensor in the memory format that ``like`` suggests: channels-last or row-major."""
    order = channels_last_order(len(sizes))
    if (
        order is not None
        and like.rank == len(sizes)
        and is_strided_channels_last(like.sizes, like.strides, env)
    ):
        return ordered_strides(sizes, order)
    return contiguous_strides(sizes)


def native_strides(sizes: Sizes, like: TensorSpec, env: ShapeEnv) -> Sizes:
    """Of kernels that keep the suggested memory format on a CPU only: row-major elsewhere."""
    return suggested_strides(sizes, like, env) if like.device.type == "cpu" else contiguous_strides(sizes)


def pair(values: int | Sequence[int], default: Sequence[int] = ()) -> tuple[int, int]:
    """Two numbers from one, two, or none."""
    given = [values] if isinstance(values, int) else list(values)
    if not given:
        given = list(default)
    return (given[0], given[0]) if len(given) == 1 else (given[0], given[1])


def pooled_size(
    size: IntLike, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool, env: ShapeEnv
) -> IntLike:
    """How many windows fit; with ``ceil_mode`` also one that starts inside but ends past the border."""
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    if not ceil_mode:
        return floordiv(span, stride) + 1
    count = floordiv(span + stride - 1, stride) + 1
    return count - 1 if at_most(size + padding, (count - 1) * stride, env) else count


def _pooled(
    x: TensorSpec,
    kernel: int | Sequence[int],
    stride: int | Sequence[int],
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
    ceil_mode: bool,
    env: ShapeEnv,
) -> TensorSpec:
    if x.rank not in (3, 4) or 0 in x.sizes:
        raise RuleMismatchError("pooling of another rank, or of nothing")
    kernels, pads, gaps = pair(kernel), pair(padding), pair(dilation)
    steps = pair(stride, kernels)
    if any(p > k // 2 for p, k in zip(pads, kernels, strict=True)):
        raise RuleMismatchError("padding is more than half of the window")
    windows = tuple(
        pooled_size(x.sizes[x.rank - 2 + i], kernels[i], steps[i], pads[i], gaps[i], ceil_mode, env)
        for i in range(2)
    )
    if any(isinstance(n, int) and n < 1 for n in windows):
        raise RuleMismatchError("the window is larger than the input")
    sizes = (*x.sizes[:-2], *windows)
    return TensorSpec(sizes, suggested_strides(sizes, x, env), x.dtype, x.device)


@spec_rule("aten.max_pool2d_with_indices.default")
def max_pool2d(
    x: TensorSpec,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    *,
    env: ShapeEnv,
) -> tuple[TensorSpec, TensorSpec]:
    result = _pooled(x, kernel_size, stride, padding, dilation, ceil_mode, env)
    return result, TensorSpec(result.sizes, result.strides, torch.int64, result.device)


@spec_rule("aten.max_pool2d_with_indices_backward.default")
def max_pool2d_backward(grad: TensorSpec, x: TensorSpec, *args: Any, env: ShapeEnv) -> TensorSpec:
    return TensorSpec(x.sizes, suggested_strides(x.sizes, x, env), x.dtype, x.device)


@spec_rule("aten.avg_pool2d.default")
def avg_pool2d(
    x: TensorSpec,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    env: ShapeEnv,
) -> TensorSpec:
    return _pooled(x, kernel_size, stride, padding, 1, ceil_mode, env)


@spec_rule("aten.avg_pool2d_backward.default")
def avg_pool2d_backward(grad: TensorSpec, x: TensorSpec, *args: Any, env: ShapeEnv) -> TensorSpec:
    return TensorSpec(x.sizes, suggested_strides(x.sizes, x, env), x.dtype, x.device)


@spec_rule("aten._adaptive_avg_pool2d.default")
def adaptive_avg_pool2d(x: TensorSpec, output_size: Sequence[IntLike], *, env: ShapeEnv) -> TensorSpec:
    if x.rank not in (3, 4) or 0 in x.sizes:
        raise RuleMismatchError("pooling of another rank, or of nothing")
    sizes = (*x.sizes[:-2], *output_size)
    return TensorSpec(sizes, suggested_strides(sizes, x, env), x.dtype, x.device)


@spec_rule("aten._adaptive_avg_pool2d_backward.default")
def adaptive_avg_pool2d_backward(grad: TensorSpec, x: TensorSpec, *, env: ShapeEnv) -> TensorSpec:
    return TensorSpec(x.sizes, suggested_strides(x.sizes, x, env), x.dtype, x.device)
