"""Specs of loss functions and their gradients: one number, or one for each element."""

from __future__ import annotations

from typing import Any

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.pointwise import pointwise_spec
from primtorch_decomps.promotion import category, result_type
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.rules.linear_algebra.factorizations import row_major
from primtorch_decomps.shapes import same_sizes
from primtorch_decomps.strides import any_zero, preserved_strides

NONE, MEAN = 0, 1
Optional = TensorSpec | None


def _loss(tensors: list[TensorSpec], reduction: int, env: ShapeEnv) -> TensorSpec:
    dtype = result_type(tensors)
    if category(dtype) != 2:
        raise RuleMismatchError("a loss of integers or complex numbers")
    spec = pointwise_spec(tensors, dtype, env)
    return spec if reduction == NONE else TensorSpec((), (), dtype, spec.device)


@spec_rule("aten.mse_loss.default", "aten.soft_margin_loss.default")
def mse_loss(x: TensorSpec, target: TensorSpec, reduction: int = MEAN, *, env: ShapeEnv) -> TensorSpec:
    return _loss([x, target], reduction, env)


@spec_rule("aten.smooth_l1_loss.default", "aten.huber_loss.default")
def smooth_l1_loss(
    x: TensorSpec,
    target: TensorSpec,
    reduction: int = MEAN,
    scale: float = 1.0,
    *,
    env: ShapeEnv,
    **named: Any,
) -> TensorSpec:
    return _loss([x, target], reduction, env)


def _nll_sizes(x: TensorSpec, target: TensorSpec, weight: Optional, env: ShapeEnv) -> None:
    rest = (*x.sizes[:1], *x.sizes[2:]) if x.rank > 1 else ()
    if category(x.dtype) != 2 or not x.rank or not same_sizes(rest, target.sizes, env):
        raise RuleMismatchError("classes and targets do not go together")
    if weight is not None and not same_sizes(weight.sizes, x.sizes[:2][-1:], env):
        raise RuleMismatchError("not one weight for each class")


@spec_rule("aten.nll_loss_forward.default", "aten.nll_loss2d_forward.default")
def nll_loss_forward(
    x: TensorSpec, target: TensorSpec, weight: Optional, reduction: int, ignore_index: int, *, env: ShapeEnv
) -> tuple[TensorSpec, TensorSpec]:
    _nll_sizes(x, target, weight, env)
    scalar = TensorSpec((), (), x.dtype, x.device)
    if reduction != NONE or not target.rank:
        return scalar, scalar
    return TensorSpec(target.sizes, contiguous_strides(target.sizes), x.dtype, x.device), scalar


@spec_rule("aten.nll_loss_backward.default", "aten.nll_loss2d_backward.default")
def nll_loss_backward(
    grad: TensorSpec,
    x: TensorSpec,
    target: TensorSpec,
    weight: Optional,
    reduction: int,
    ignore_index: int,
    total_weight: TensorSpec,
    *,
    env: ShapeEnv,
) -> TensorSpec:
    _nll_sizes(x, target, weight, env)
    return TensorSpec(x.sizes, contiguous_strides(x.sizes), x.dtype, x.device)


def _element(x: TensorSpec, target: TensorSpec, env: ShapeEnv) -> None:
    if category(x.dtype) != 2 or x.dtype is not target.dtype or not same_sizes(x.sizes, target.sizes, env):
        raise RuleMismatchError("a loss of unlike tensors")


@spec_rule("aten.mse_loss_backward.default", "aten.soft_margin_loss_backward.default")
def mse_loss_backward(
    grad: TensorSpec, x: TensorSpec, target: TensorSpec, reduction: int, *, env: ShapeEnv
) -> TensorSpec:
    _element(x, target, env)
    return TensorSpec(x.sizes, contiguous_strides(x.sizes), x.dtype, x.device)


@spec_rule("aten.smooth_l1_loss_backward.default", "aten.huber_loss_backward.default")
def smooth_l1_loss_backward(
    grad: TensorSpec, x: TensorSpec, target: TensorSpec, reduction: int, scale: float, *, env: ShapeEnv
) -> TensorSpec:
    return mse_loss_backward(grad, x, target, reduction, env=env)


def _of_each(x: TensorSpec, env: ShapeEnv) -> TensorSpec:
    return TensorSpec(x.sizes, preserved_strides(x.sizes, x.strides, env), x.dtype, x.device)


@spec_rule("aten.binary_cross_entropy.default")
def binary_cross_entropy(
    x: TensorSpec, target: TensorSpec, weight: Optional = None, reduction: int = MEAN, *, env: ShapeEnv
) -> TensorSpec:
    _element(x, target, env)
    return _of_each(x, env) if reduction == NONE else TensorSpec((), (), x.dtype, x.device)


@spec_rule("aten.binary_cross_entropy_backward.default")
def binary_cross_entropy_backward(
    grad: TensorSpec,
    x: TensorSpec,
    target: TensorSpec,
    weight: Optional = None,
    reduction: int = MEAN,
    *,
    env: ShapeEnv,
) -> TensorSpec:
    _element(x, target, env)
    return _of_each(x, env)


@spec_rule("aten.binary_cross_entropy_with_logits.default")
def binary_cross_entropy_with_logits(
    x: TensorSpec,
    target: TensorSpec,
    weight: Optional = None,
    pos_weight: Optional = None,
    reduction: int = MEAN,
    *,
    env: ShapeEnv,
) -> TensorSpec:
    _element(x, target, env)
    if reduction != NONE:
        return TensorSpec((), (), x.dtype, x.device)
    return pointwise_spec([target], x.dtype, env, numbers=True)  # eager begins with 1 - target


def _of_rows(x: TensorSpec, reduction: int) -> TensorSpec:
    """One number for each row of [n, c]; for [c], or reduced, one number."""
    if x.rank not in (1, 2) or not x.dtype.is_floating_point or any_zero(x.sizes):
        raise RuleMismatchError("rows of numbers")
    return row_major(x.sizes[:-1] if reduction == NONE else (), x)


@spec_rule("aten.multi_margin_loss.default")
def multi_margin_loss(
    x: TensorSpec,
    target: TensorSpec,
    p: Any = 1,
    margin: Any = 1,
    weight: Optional = None,
    reduction: int = MEAN,
    *,
    env: ShapeEnv,
) -> TensorSpec:
    if x.rank != 2:
        raise RuleMismatchError("rows of numbers")
    return _of_rows(x, reduction)


@spec_rule("aten.multilabel_margin_loss_forward.default")
def multilabel_margin_loss(
    x: TensorSpec, target: TensorSpec, reduction: int, *, env: ShapeEnv
) -> tuple[TensorSpec, TensorSpec]:
    """The loss, and where the targets are."""
    return _of_rows(x, reduction), row_major(target.sizes, x)


@spec_rule("aten.multi_margin_loss_backward.default", "aten.multilabel_margin_loss_backward.default")
def margin_loss_backward(
    grad: TensorSpec, x: TensorSpec, *args: Any, env: ShapeEnv, **kwargs: Any
) -> TensorSpec:
    return row_major(x.sizes, x)
