"""Loss functions and their gradients."""

from __future__ import annotations

import torch

from primtorch_decomps.decomps.neural_networks.normalization import wide
from primtorch_decomps.prims import PrimTensor, broadcast_to, current_trace, ops
from primtorch_decomps.registry import decomposes

NONE, MEAN, SUM = 0, 1, 2
"""How a loss is reduced over its elements, as ATen numbers it."""


def _class_axis(x: PrimTensor) -> int:
    return 1 if x.rank > 1 else 0


def _ignored(target: PrimTensor, ignore_index: int) -> PrimTensor:
    return ops.eq(target, ignore_index)


def _weights(x: PrimTensor, safe: PrimTensor, ignored: PrimTensor, weight: PrimTensor | None) -> PrimTensor:
    """Each target's weight in the computing dtype: its class's, 1 without weights, 0 where ignored."""
    if weight is None:
        return ops.convert_dtype(ops.logical_not(ignored), wide(x).dtype)
    return ops.where(ignored, 0.0, ops.index(wide(weight), (safe,), wraps=False))


@decomposes("aten.nll_loss_forward.default", "aten.nll_loss2d_forward.default")
def nll_loss_forward(
    x: PrimTensor, target: PrimTensor, weight: PrimTensor | None, reduction: int, ignore_index: int
) -> tuple[PrimTensor, PrimTensor]:
    """Of log probabilities [N, C, ...] or [C] and targets [N, ...] or []: the loss and the sum of weights."""
    axis = _class_axis(x)
    ignored = _ignored(target, ignore_index)
    safe = ops.where(ignored, 0, target)
    picks = ops.reshape(safe, (*safe.sizes[:axis], 1, *safe.sizes[axis:]))
    picked = ops.reshape(ops.gather(x, axis, ops.convert_dtype(picks, torch.int64)), target.sizes)
    loss = ops.where(ignored, 0.0, ops.neg(wide(picked)))
    weights = _weights(x, safe, ignored, weight)
    if weight is not None:
        loss = loss * weights
    dims = tuple(range(target.rank))
    if reduction == NONE and target.rank:
        return ops.convert_dtype(loss, x.dtype), ops.full((), 0.0, x.dtype, x.device)
    total = ops.sum(weights, dims) if dims else weights
    result = ops.sum(loss, dims) if dims else loss + 0.0  # eager adds up from 0: a loss of -0.0 is 0.0
    if reduction == MEAN:
        result = result / total
    return ops.convert_dtype(result, x.dtype), ops.convert_dtype(total, x.dtype)


@decomposes("aten.nll_loss_backward.default", "aten.nll_loss2d_backward.default")
def nll_loss_backward(
    grad: PrimTensor,
    x: PrimTensor,
    target: PrimTensor,
    weight: PrimTensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: PrimTensor,
) -> PrimTensor:
    """Minus the scaled gradient where the class is the target's, 0 elsewhere: pointwise over [N, C, ...]."""
    axis = _class_axis(x)
    ignored = _ignored(target, ignore_index)
    slope = ops.neg(wide(grad))
    if reduction == MEAN:
        slope = slope / wide(total_weight)
    slope = broadcast_to(slope, target.sizes)
    if weight is not None:
        slope = slope * _weights(x, ops.where(ignored, 0, target), ignored, weight)
    rows = tuple(d for d in range(x.rank) if d != axis)
    slope = ops.broadcast_in_dim(ops.where(ignored, 0.0, slope), x.sizes, rows)
    classes = ops.iota(x.sizes[axis], 0, 1, target.dtype, x.device)
    hit = ops.eq(ops.broadcast_in_dim(classes, x.sizes, (axis,)), ops.broadcast_in_dim(target, x.sizes, rows))
    return ops.convert_dtype(ops.where(hit, slope, 0.0), x.dtype)


def reduced(loss: PrimTensor, reduction: int) -> PrimTensor:
    """A loss of each element, reduced as asked."""
    if reduction == NONE or not loss.rank:
        return loss
    total = ops.sum(loss, tuple(range(loss.rank)))
    return ops.div(total, loss.numel) if reduction == MEAN else total


def per_element(grad: PrimTensor, x: PrimTensor, reduction: int) -> PrimTensor:
    """The gradient that arrives at the loss of each element of ``x``."""
    slope = broadcast_to(wide(grad), x.sizes)
    return ops.div(slope, x.numel) if reduction == MEAN else slope


@decomposes("aten.mse_loss.default")
def mse_loss(x: PrimTensor, target: PrimTensor, reduction: int = MEAN) -> PrimTensor:
    difference = wide(x) - wide(target)
    return ops.convert_dtype(reduced(difference * difference, reduction), x.dtype)


@decomposes("aten.mse_loss_backward.default")
def mse_loss_backward(grad: PrimTensor, x: PrimTensor, target: PrimTensor, reduction: int) -> PrimTensor:
    slope = per_element(grad, x, reduction)
    return ops.convert_dtype(2.0 * (wide(x) - wide(target)) * slope, x.dtype)


@decomposes("aten.smooth_l1_loss.default")
def smooth_l1_loss(x: PrimTensor, target: PrimTensor, reduction: int = MEAN, beta: float = 1.0) -> PrimTensor:
    distance = ops.abs(wide(x) - wide(target))
    if beta != 0:
        distance = ops.where(ops.lt(distance, beta), 0.5 * distance * distance / beta, distance - 0.5 * beta)
    return ops.convert_dtype(reduced(distance, reduction), x.dtype)


@decomposes("aten.smooth_l1_loss_backward.default")
def smooth_l1_loss_backward(
    grad: PrimTensor, x: PrimTensor, target: PrimTensor, reduction: int, beta: float
) -> PrimTensor:
    difference = wide(x) - wide(target)
    slope = per_element(grad, x, reduction)
    if beta != 0:  # the order of the cases lets NaN through
        inside = ops.where(ops.ge(difference, beta), 1.0, difference / beta)
        direction = ops.where(ops.le(difference, -beta), -1.0, inside)
    else:
        direction = ops.where(ops.ne(difference, difference), difference, ops.sign(difference))
    return ops.convert_dtype(direction * slope, x.dtype)


@decomposes("aten.huber_loss.default")
def huber_loss(x: PrimTensor, target: PrimTensor, reduction: int = MEAN, delta: float = 1.0) -> PrimTensor:
    distance = ops.abs(wide(x) - wide(target))
    loss = ops.where(ops.le(distance, delta), 0.5 * distance * distance, delta * (distance - 0.5 * delta))
    return ops.convert_dtype(reduced(loss, reduction), x.dtype)


@decomposes("aten.huber_loss_backward.default")
def huber_loss_backward(
    grad: PrimTensor, x: PrimTensor, target: PrimTensor, reduction: int, delta: float
) -> PrimTensor:
    difference = wide(x) - wide(target)
    slope = ops.minimum(ops.maximum(difference, -delta), delta)
    return ops.convert_dtype(slope * per_element(grad, x, reduction), x.dtype)


def _expect_chances(x: PrimTensor, name: str) -> None:
    """Eager's kernel refuses what is no probability, and NaN."""
    inside = ops.bitwise_and(ops.ge(x, 0.0), ops.le(x, 1.0))
    whole = ops.all(inside, tuple(range(x.rank))) if x.rank else inside
    current_trace().check(whole, f"all elements of {name} should be between 0 and 1")


@decomposes("aten.binary_cross_entropy.default")
def binary_cross_entropy(
    x: PrimTensor, target: PrimTensor, weight: PrimTensor | None = None, reduction: int = MEAN
) -> PrimTensor:
    """Logarithms are held above -100, as eager holds them."""
    chance, truth = wide(x), wide(target)
    _expect_chances(chance, "input")
    _expect_chances(truth, "target")
    log_chance = ops.maximum(ops.log(chance), -100.0)
    log_rest = ops.maximum(ops.log1p(-chance), -100.0)
    loss = (truth - 1.0) * log_rest - truth * log_chance
    if weight is not None:
        loss = loss * wide(weight)
    return ops.convert_dtype(reduced(loss, reduction), x.dtype)


@decomposes("aten.binary_cross_entropy_backward.default")
def binary_cross_entropy_backward(
    grad: PrimTensor,
    x: PrimTensor,
    target: PrimTensor,
    weight: PrimTensor | None = None,
    reduction: int = MEAN,
) -> PrimTensor:
    chance, truth = wide(x), wide(target)
    floor = ops.maximum((1.0 - chance) * chance, 1e-12)
    result = per_element(grad, x, reduction) * (chance - truth) / floor
    if weight is not None:
        result = result * wide(weight)
    return ops.convert_dtype(result, x.dtype)


@decomposes("aten.binary_cross_entropy_with_logits.default")
def binary_cross_entropy_with_logits(
    x: PrimTensor,
    target: PrimTensor,
    weight: PrimTensor | None = None,
    pos_weight: PrimTensor | None = None,
    reduction: int = MEAN,
) -> PrimTensor:
    logits, truth = wide(x), wide(target)
    tail = ops.log1p(ops.exp(-ops.abs(logits))) + ops.maximum(-logits, 0.0)
    if pos_weight is not None:
        tail = tail * ((wide(pos_weight) - 1.0) * truth + 1.0)
    loss = (1.0 - truth) * logits + tail
    if weight is not None:
        loss = loss * wide(weight)
    return ops.convert_dtype(reduced(loss, reduction), x.dtype)
