"""Losses of margins: of one sign for each element, and of one class against the others."""

from __future__ import annotations

from typing import Any

import torch

from primtorch_decomps.decomps.neural_networks.losses import MEAN, NONE, per_element, reduced
from primtorch_decomps.decomps.neural_networks.normalization import wide
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.prims import PrimTensor, broadcast_to, ops
from primtorch_decomps.promotion import constant
from primtorch_decomps.registry import decomposes


@decomposes("aten.soft_margin_loss.default")
def soft_margin_loss(x: PrimTensor, target: PrimTensor, reduction: int = MEAN) -> PrimTensor:
    loss = ops.log1p(ops.exp(-wide(x) * wide(target)))
    return ops.convert_dtype(reduced(loss, reduction), x.dtype)


@decomposes("aten.soft_margin_loss_backward.default")
def soft_margin_loss_backward(
    grad: PrimTensor, x: PrimTensor, target: PrimTensor, reduction: int
) -> PrimTensor:
    """Where the exponential overflows the result is NaN, as eager's is."""
    sign = wide(target)
    slope = per_element(grad, x, reduction)
    grown = ops.exp(-sign * wide(x))
    return ops.convert_dtype(-sign * grown * slope / (grown + 1.0), x.dtype)


def _margins(
    x: PrimTensor, target: PrimTensor, margin: Any, weight: PrimTensor | None
) -> tuple[PrimTensor, PrimTensor, PrimTensor]:
    """Of scores [N, C] and targets [N]: how far each class reaches into the margin (0 for the target itself), the
    weight of each row's target, and where the target's class is.
    """
    if x.rank != 2 or target.rank != 1 or not x.dtype.is_floating_point:
        raise RuleMismatchError("margins of scores [N, C] and targets [N]")
    rows, classes = x.sizes
    picks = ops.broadcast_in_dim(ops.convert_dtype(target, torch.int64), (rows, 1), (0,))
    scores = wide(x)
    distance = scores - ops.gather(scores, 1, picks) + float(constant(margin))
    numbers = ops.broadcast_in_dim(ops.iota(classes, 0, 1, torch.int64, x.device), x.sizes, (1,))
    hit = ops.eq(numbers, broadcast_to(picks, x.sizes))
    reach = ops.where(hit, 0.0, ops.maximum(distance, 0.0))
    if weight is None:
        return reach, ops.full((rows, 1), 1.0, scores.dtype, x.device), hit
    return reach, ops.index(wide(weight), (picks,), wraps=False), hit


@decomposes("aten.multi_margin_loss.default")
def multi_margin_loss(
    x: PrimTensor,
    target: PrimTensor,
    p: Any = 1,
    margin: Any = 1,
    weight: PrimTensor | None = None,
    reduction: int = MEAN,
) -> PrimTensor:
    reach, heaviness, _ = _margins(x, target, margin, weight)
    powers = reach * reach if p == 2 else reach
    loss = ops.div(ops.sum(powers * heaviness, (1,)), x.sizes[1])
    return ops.convert_dtype(reduced(loss, reduction), x.dtype)


@decomposes("aten.multi_margin_loss_backward.default")
def multi_margin_loss_backward(
    grad: PrimTensor,
    x: PrimTensor,
    target: PrimTensor,
    p: Any,
    margin: Any,
    weight: PrimTensor | None = None,
    reduction: int = MEAN,
) -> PrimTensor:
    reach, heaviness, hit = _margins(x, target, margin, weight)
    slope = 2.0 * reach if p == 2 else ops.convert_dtype(ops.gt(reach, 0.0), reach.dtype)
    slope = ops.div(slope * heaviness, x.sizes[1])
    total = ops.broadcast_in_dim(ops.sum(slope, (1,)), x.sizes, (0,))
    slope = ops.where(hit, -total, slope)
    arriving = wide(grad)
    if reduction == NONE:
        arriving = ops.broadcast_in_dim(arriving, x.sizes, (0,))
    elif reduction == MEAN:
        arriving = ops.div(arriving, x.sizes[0])
    return ops.convert_dtype(slope * arriving, x.dtype)
