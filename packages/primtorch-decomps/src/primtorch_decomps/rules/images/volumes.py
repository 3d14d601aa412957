"""Specs of pooling to a given size, of windows in three dimensions, and back; the kernels are library calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from fx_interface.symbols import IntLike, ShapeEnv
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.rules.images.pooling import pooled_size, suggested_strides
from primtorch_decomps.rules.linear_algebra.factorizations import row_major
from primtorch_decomps.shapes import Sizes

_Triple = int | Sequence[int]


def _check(x: TensorSpec, spatial: int) -> None:
    if x.rank not in (spatial + 1, spatial + 2) or 0 in x.sizes or x.device.type != "cpu":
        raise RuleMismatchError("pooling of another rank, or of nothing")


def _with_places(made: TensorSpec) -> tuple[TensorSpec, TensorSpec]:
    return made, TensorSpec(made.sizes, made.strides, torch.int64, made.device)


def _suggested(sizes: Sizes, x: TensorSpec, env: ShapeEnv) -> TensorSpec:
    return TensorSpec(sizes, suggested_strides(sizes, x, env), x.dtype, x.device)


@spec_rule("aten.adaptive_max_pool2d.default")
def adaptive_max_pool2d(
    x: TensorSpec, output_size: Sequence[IntLike], *, env: ShapeEnv
) -> tuple[TensorSpec, TensorSpec]:
    _check(x, 2)
    return _with_places(_suggested((*x.sizes[:-2], *output_size), x, env))


@spec_rule("aten.adaptive_max_pool2d_backward.default")
def adaptive_max_pool2d_backward(
    grad: TensorSpec, x: TensorSpec, indices: TensorSpec, *, env: ShapeEnv
) -> TensorSpec:
    _check(x, 2)
    return _suggested(x.sizes, x, env)


@spec_rule("aten.adaptive_max_pool3d.default")
def adaptive_max_pool3d(
    x: TensorSpec, output_size: Sequence[IntLike], *, env: ShapeEnv
) -> tuple[TensorSpec, TensorSpec]:
    return _with_places(adaptive_avg_pool3d(x, output_size, env=env))


@spec_rule("aten._adaptive_avg_pool3d.default")
def adaptive_avg_pool3d(x: TensorSpec, output_size: Sequence[IntLike], *, env: ShapeEnv) -> TensorSpec:
    _check(x, 3)
    return row_major((*x.sizes[:-3], *output_size), x)


@spec_rule(
    "aten.adaptive_max_pool3d_backward.default",
    "aten._adaptive_avg_pool3d_backward.default",
    "aten.avg_pool3d_backward.default",
    "aten.fractional_max_pool3d_backward.default",
)
def volumes_backward(grad: TensorSpec, x: TensorSpec, *args: Any, env: ShapeEnv) -> TensorSpec:
    _check(x, 3)
    return row_major(x.sizes, x)


def _three(values: _Triple) -> Sequence[int]:
    given = [values] if isinstance(values, int) else list(values)
    return given * 3 if len(given) == 1 else given


def _windows(
    x: TensorSpec,
    kernel: _Triple,
    stride: _Triple,
    padding: _Triple,
    dilation: _Triple,
    ceil_mode: bool,
    env: ShapeEnv,
) -> Sizes:
    _check(x, 3)
    kernels, pads, gaps = _three(kernel), _three(padding), _three(dilation)
    steps = _three(stride) if not isinstance(stride, Sequence) or len(stride) else kernels
    if any(pad > size // 2 for pad, size in zip(pads, kernels, strict=True)):
        raise RuleMismatchError("padding is more than half of the window")
    found = tuple(
        pooled_size(x.sizes[x.rank - 3 + i], kernels[i], steps[i], pads[i], gaps[i], ceil_mode, env)
        for i in range(3)
    )
    if any(isinstance(size, int) and size < 1 for size in found):
        raise RuleMismatchError("the window is larger than the input")
    return (*x.sizes[:-3], *found)


@spec_rule("aten.avg_pool3d.default")
def avg_pool3d(
    x: TensorSpec,
    kernel_size: _Triple,
    stride: _Triple = (),
    padding: _Triple = 0,
    ceil_mode: bool = False,
    *args: Any,
    env: ShapeEnv,
) -> TensorSpec:
    return row_major(_windows(x, kernel_size, stride, padding, 1, ceil_mode, env), x)


@spec_rule("aten.max_pool3d_with_indices.default")
def max_pool3d(
    x: TensorSpec,
    kernel_size: _Triple,
    stride: _Triple = (),
    padding: _Triple = 0,
    dilation: _Triple = 1,
    ceil_mode: bool = False,
    *,
    env: ShapeEnv,
) -> tuple[TensorSpec, TensorSpec]:
    if x.rank == 4 and not x.is_contiguous:
        raise RuleMismatchError("the kernel looks at its layout with a batch")
    sizes = _windows(x, kernel_size, stride, padding, dilation, ceil_mode, env)
    return _with_places(_suggested(sizes, x, env) if x.rank == 5 else row_major(sizes, x))


@spec_rule("aten.max_pool3d_with_indices_backward.default")
def max_pool3d_backward(grad: TensorSpec, x: TensorSpec, *args: Any, env: ShapeEnv) -> TensorSpec:
    if x.rank != 5:
        raise RuleMismatchError("the kernel looks at its layout with a batch")
    return _suggested(x.sizes, x, env)


@spec_rule("aten.max_unpool2d.default")
def max_unpool2d(
    x: TensorSpec, indices: TensorSpec, output_size: Sequence[IntLike], *, env: ShapeEnv
) -> TensorSpec:
    _check(x, 2)
    return _suggested((*x.sizes[:-2], *output_size), x, env)


@spec_rule("aten.max_unpool3d.default")
def max_unpool3d(
    x: TensorSpec, indices: TensorSpec, output_size: Sequence[IntLike], *args: Any, env: ShapeEnv
) -> TensorSpec:
    _check(x, 3)
    return row_major((*x.sizes[:-3], *output_size), x)


@spec_rule("aten.fractional_max_pool2d.default")
def fractional_max_pool2d(
    x: TensorSpec, kernel_size: Any, output_size: Sequence[IntLike], samples: TensorSpec, *, env: ShapeEnv
) -> tuple[TensorSpec, TensorSpec]:
    _check(x, 2)
    return _with_places(row_major((*x.sizes[:-2], *output_size), x))


@spec_rule("aten.fractional_max_pool2d_backward.default")
def fractional_max_pool2d_backward(grad: TensorSpec, x: TensorSpec, *args: Any, env: ShapeEnv) -> TensorSpec:
    _check(x, 2)
    return row_major(x.sizes, x)


@spec_rule("aten.fractional_max_pool3d.default")
def fractional_max_pool3d(
    x: TensorSpec, kernel_size: Any, output_size: Sequence[IntLike], samples: TensorSpec, *, env: ShapeEnv
) -> tuple[TensorSpec, TensorSpec]:
    return adaptive_max_pool3d(x, output_size, env=env)
