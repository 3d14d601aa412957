"""Specs of convolutions; they are library calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fx_interface.symbols import IntLike, ShapeEnv, floordiv, mod
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.shapes import Sizes, same
from primtorch_decomps.strides import (
    channels_last_order,
    is_contiguous,
    is_one,
    is_strided_channels_last,
    ordered_strides,
)


def _each(values: Sequence[int], count: int) -> list[int]:
    return list(values) * count if len(values) == 1 else list(values)


def convolved_sizes(
    x: Sizes,
    weight: Sizes,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Sizes:
    """[N, C, ...] with weight [M, C / groups, ...] (transposed: [C, M / groups, ...]) -> [N, M, ...]."""
    count = len(x) - 2
    steps, pads, gaps = (_each(v, count) for v in (stride, padding, dilation))
    extras = _each(output_padding, count)
    result: list[IntLike] = [x[0], weight[1] * groups if transposed else weight[0]]
    for axis in range(count):
        reach = gaps[axis] * (weight[axis + 2] - 1) + 1
        size = x[axis + 2]
        if transposed:
            result.append((size - 1) * steps[axis] - 2 * pads[axis] + reach + extras[axis])
        else:
            result.append(floordiv(size + 2 * pads[axis] - reach, steps[axis]) + 1)
    return tuple(result)


def _convolution_strides(
    x: TensorSpec, weight: TensorSpec, transposed: bool, sizes: Sizes, env: ShapeEnv
) -> Sizes:
    """Channels-last if the input or the weight suggests it, else row-major."""
    if any(_suggests_channels_last(t, env) for t in _deciding(x, weight, transposed)):
        _check_kernel(x)
        return _channels_last(sizes)
    return contiguous_strides(sizes)


def _is_left_by_cudnn(
    x: TensorSpec, transposed: bool, stride: Sequence[int], output_padding: Sequence[int]
) -> bool:
    """Whether a convolution of a GPU runs with a kernel that makes all row-major: cuDNN takes no output that is padded
    by a stride or more."""
    if not transposed or x.device.type != "cuda":
        return False
    count = x.rank - 2
    return any(
        extra >= step for extra, step in zip(_each(output_padding, count), _each(stride, count), strict=True)
    )


def _check_kernel(x: TensorSpec) -> None:
    """Of three-dimensional convolutions on a CPU one kernel keeps channels last and one does not: eager is asked."""
    if x.rank == 5 and x.device.type == "cpu":
        raise RuleMismatchError("which kernel runs depends on sizes, dtype and the number of threads")


def _deciding(x: TensorSpec, weight: TensorSpec, transposed: bool) -> Sequence[TensorSpec]:
    """Whose layouts decide: input's and weight's.

    Of three dimensions the weight's alone where eager makes the input row-major: one of a single channel, or of length
    1, may be so with the strides of channels last, which it keeps. Of five nobody's where the convolution is
    transposed and runs on a CPU, whose kernel for that knows one layout.
    """
    if len(x.sizes) == 5 and transposed and x.device.type == "cpu":
        return ()
    if len(x.sizes) == 3 and not is_contiguous(x.sizes, x.strides):
        return (weight,)
    return (x, weight)


def _suggests_channels_last(x: TensorSpec, env: ShapeEnv) -> bool:
    """Whether the layout is channels-last; that of three dimensions as eager sees them, with a height of 1."""
    sizes, strides = x.sizes, x.strides
    if len(sizes) == 3:
        sizes, strides = (*sizes[:2], 1, sizes[2]), (*strides[:2], strides[2] * sizes[2], strides[2])
    return channels_last_order(len(sizes)) is not None and is_strided_channels_last(sizes, strides, env)


def _channels_last(sizes: Sizes) -> Sizes:
    return ordered_strides(sizes, (0, 2, 1) if len(sizes) == 3 else channels_last_order(len(sizes)) or ())


def _check_parameters(
    weight: TensorSpec, bias: TensorSpec | None, transposed: bool, groups: int, env: ShapeEnv
) -> None:
    """Raise RuleMismatchError for a bias of another length than there are channels, or a weight of no whole groups."""
    if groups > 1 and not same(mod(weight.sizes[0], groups), 0, env):
        raise RuleMismatchError("a weight of no whole groups")
    channels = weight.sizes[1] * groups if transposed else weight.sizes[0]
    if bias is not None and not (bias.rank == 1 and same(bias.sizes[0], channels, env)):
        raise RuleMismatchError("a bias of another length than there are channels")


@spec_rule("aten.convolution.default")
def convolution(
    x: TensorSpec,
    weight: TensorSpec,
    bias: TensorSpec | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: IntLike,
    *,
    env: ShapeEnv,
) -> TensorSpec:
    groups = env.specialize(groups)  # kernels are chosen by it
    if x.rank != weight.rank or x.rank < 3 or x.dtype is not weight.dtype or x.device != weight.device:
        raise RuleMismatchError("convolution of unlike tensors")
    if x.device.type not in ("cpu", "cuda") or 0 in x.sizes:
        raise RuleMismatchError("convolution on another device, or of nothing")
    if not same(x.sizes[1], weight.sizes[0] if transposed else weight.sizes[1] * groups, env):
        raise RuleMismatchError("convolution needs equal channels")
    _check_parameters(weight, bias, transposed, groups, env)
    sizes = convolved_sizes(
        x.sizes, weight.sizes, stride, padding, dilation, transposed, output_padding, groups
    )
    if any(isinstance(n, int) and n < 1 for n in sizes):
        raise RuleMismatchError("convolution's kernel is larger than its input")
    if _is_left_by_cudnn(x, transposed, stride, output_padding):
        strides = contiguous_strides(sizes)
    else:
        strides = _convolution_strides(x, weight, transposed, sizes, env)
    return TensorSpec(sizes, strides, x.dtype, x.device)


def _like_input(x: TensorSpec, layouts: Sequence[TensorSpec], env: ShapeEnv) -> TensorSpec:
    channels_last = any(_suggests_channels_last(t, env) for t in layouts)
    if channels_last:
        _check_kernel(x)
    strides = _channels_last(x.sizes) if channels_last else contiguous_strides(x.sizes)
    return TensorSpec(x.sizes, strides, x.dtype, x.device)


@spec_rule("aten.convolution_backward.default")
def convolution_backward(
    grad: TensorSpec,
    x: TensorSpec,
    weight: TensorSpec,
    bias_sizes: Sequence[IntLike] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
    *,
    env: ShapeEnv,
) -> tuple[TensorSpec | None, ...]:
    if x.rank not in (3, 4, 5) or 0 in x.sizes:
        raise RuleMismatchError("layout of this convolution's gradient")
    layouts = _deciding(x, weight, transposed)
    if _is_left_by_cudnn(x, transposed, stride, output_padding):
        layouts = ()
    pointlike = all(is_one(n) for n in weight.sizes[2:]) and is_contiguous(weight.sizes, weight.strides)
    one_pixel = all(is_one(n) for n in x.sizes[2:])
    weight_grad = _like_input(weight, (x,) if pointlike and one_pixel else layouts, env)
    if pointlike and weight.device.type == "cpu":
        weight_grad = replace(weight, alias=None, requires_grad=False)
    if pointlike and weight.rank == 5:
        weight_grad = replace(weight_grad, strides=contiguous_strides(weight.sizes))
    bias = TensorSpec((grad.sizes[1],), (1,), grad.dtype, grad.device)
    return (
        _like_input(x, layouts, env) if output_mask[0] else None,
        weight_grad if output_mask[1] else None,
        bias if output_mask[2] else None,
    )
