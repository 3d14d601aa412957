"""The conformance cases of what neural networks are made of: layers, losses, indexing and in-place updates."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.fx import Node

from fx_interface.conformance.cases import case, floats
from fx_interface.conformance.recorder import Recorder


def _normalised() -> list[Tensor]:
    (x,) = floats((4, 3, 5, 5))()
    return [x, torch.zeros(3), torch.ones(3), torch.linspace(0.5, 1.5, 3), torch.linspace(-1, 1, 3)]


def _with_labels() -> list[Tensor]:
    return [*floats((5, 7))(), torch.tensor([0, 6, 2, -100, 3])]


@case(_normalised, mutates=True)
def batch_norm_training(
    g: Recorder, x: Node, mean: Node, var: Node, weight: Node, bias: Node
) -> Sequence[Any]:
    return [g.call(F.batch_norm, x, mean, var, weight, bias, training=True, momentum=0.1, eps=1e-5)]


@case(_normalised)
def batch_norm_inference(
    g: Recorder, x: Node, mean: Node, var: Node, weight: Node, bias: Node
) -> Sequence[Any]:
    return [g.call(F.batch_norm, x, mean, var, weight, bias, training=False)]


@case(floats((2, 6, 4), (6,), (6,)))
def group_norm(g: Recorder, x: Node, weight: Node, bias: Node) -> Sequence[Any]:
    return [g.call(F.group_norm, x, 3, weight, bias, 1e-5)]


@case(floats((2, 3, 8, 8)))
def pooling(g: Recorder, x: Node) -> Sequence[Any]:
    return [
        g.call(F.max_pool2d, x, 3, 2, 1),
        g.call(F.avg_pool2d, x, 2),
        g.call(F.adaptive_avg_pool2d, x, (1, 1)),
    ]


@case(floats((2, 3, 10), (4, 3, 3)))
def convolution_1d(g: Recorder, x: Node, w: Node) -> Sequence[Any]:
    return [g.call(F.conv1d, x, w, None, stride=1, padding=2, dilation=2)]


@case(floats((2, 4, 6, 8), (2, 4, 6, 8), (2, 4, 6, 8)))
def attention(g: Recorder, q: Node, k: Node, v: Node) -> Sequence[Any]:
    return [
        g.call(F.scaled_dot_product_attention, q, k, v),
        g.call(F.scaled_dot_product_attention, q, k, v, is_causal=True),
    ]


@case(floats((2, 4, 8), (2, 4, 8)))
def attention_by_hand(g: Recorder, q: Node, k: Node) -> Sequence[Any]:
    scores = g.call(operator.mul, g.call(torch.matmul, q, g.method("transpose", k, -1, -2)), 0.35)
    allowed = g.call(torch.tril, g.call(torch.ones, 4, 4, dtype=torch.bool))
    masked = g.method("masked_fill", scores, g.call(operator.invert, allowed), float("-inf"))
    return [g.call(torch.matmul, g.call(F.softmax, masked, dim=-1), k)]


@case(floats((2, 5, 8), (5, 8), (5, 8)))
def rotary_embedding(g: Recorder, x: Node, cos: Node, sin: Node) -> Sequence[Any]:
    low = g.call(operator.getitem, x, (..., slice(None, 4)))
    high = g.call(operator.getitem, x, (..., slice(4, None)))
    turned = g.call(torch.cat, (g.call(operator.neg, high), low), dim=-1)
    return [g.call(operator.add, g.call(operator.mul, x, cos), g.call(operator.mul, turned, sin))]


@case(floats((3, 16), (16,)))
def rms_norm_in_float32(g: Recorder, x: Node, weight: Node) -> Sequence[Any]:
    wide = g.method("to", g.method("to", x, torch.bfloat16), torch.float32)
    scale = g.call(
        torch.rsqrt, g.call(operator.add, g.method("mean", g.method("pow", wide, 2), -1, keepdim=True), 1e-6)
    )
    return [g.call(operator.mul, weight, g.call(operator.mul, wide, scale))]


@case(_with_labels)
def losses(g: Recorder, logits: Node, labels: Node) -> Sequence[Any]:
    return [
        g.call(F.cross_entropy, logits, labels),
        g.call(F.log_softmax, logits, dim=-1),
        g.call(F.mse_loss, logits, g.call(torch.zeros_like, logits)),
    ]


@case(floats((6, 8)))
def activations(g: Recorder, x: Node) -> Sequence[Any]:
    return [
        g.call(F.silu, x),
        g.call(F.gelu, x, approximate="tanh"),
        g.call(F.leaky_relu, x, 0.1),
        g.call(F.elu, x),
        g.call(F.hardtanh, x),
        g.call(F.softplus, x),
    ]


@case(floats((4, 6)))
def dropout_that_keeps_all(g: Recorder, x: Node) -> Sequence[Any]:
    return [g.call(F.dropout, x, 0.5, False), g.call(F.dropout, x, p=0.0, training=True)]


@case(floats((3, 5)))
def scans_and_order(g: Recorder, x: Node) -> Sequence[Any]:
    ordered = g.call(torch.sort, x, dim=1, descending=True)
    return [
        g.call(torch.cumsum, x, 1),
        g.call(operator.getitem, ordered, 0),
        g.call(operator.getitem, ordered, 1),
    ]


@case(lambda: [*floats((4, 5))(), torch.tensor([[0, 4], [1, 1], [2, 0], [3, 2]])])
def gather_and_scatter(g: Recorder, x: Node, index: Node) -> Sequence[Any]:
    taken = g.call(torch.gather, x, 1, index)
    zeros = g.call(torch.zeros_like, x)
    return [
        taken,
        g.method("scatter_add", zeros, 1, index, taken),
        g.method("index_select", x, 1, g.method("flatten", index)),
    ]


@case(lambda: [*floats((5, 3), (2, 3))(), torch.tensor([4, 1])], mutates=True)
def assignment_by_index(g: Recorder, x: Node, rows: Node, index: Node) -> Sequence[Any]:
    g.call(operator.setitem, x, index, rows)
    return [g.call(torch.sum, x, 0)]


@case(floats((2, 6, 4)))
def shape_changes(g: Recorder, x: Node) -> Sequence[Any]:
    parts = g.call(torch.chunk, x, 3, dim=1)
    heads = g.method("transpose", g.method("view", x, 2, 6, 2, 2), 1, 2)
    return [
        g.call(operator.mul, g.call(operator.getitem, parts, 1), 2.0),
        g.method("reshape", g.call(operator.add, heads, 0.0), 2, -1),
        g.call(torch.flatten, g.method("permute", x, 2, 0, 1), 1),
        g.method("repeat", x, 1, 2, 1),
        g.method("expand", g.method("unsqueeze", x, 0), 3, -1, -1, -1),
    ]


@case(floats((2, 3, 4, 4)))
def padding_and_resizing(g: Recorder, x: Node) -> Sequence[Any]:
    return [g.call(F.pad, x, (1, 2, 0, 1)), g.call(F.interpolate, x, scale_factor=2, mode="nearest")]


@case(floats((3, 4, 5), (3, 5, 2), (3, 4, 2)))
def batched_products(g: Recorder, x: Node, y: Node, z: Node) -> Sequence[Any]:
    return [
        g.call(torch.bmm, x, y),
        g.call(torch.baddbmm, z, x, y),
        g.call(torch.einsum, "bij,bjk->bik", x, y),
    ]


@case(floats((4, 6)), mutates=True)
def chained_updates_through_views(g: Recorder, x: Node) -> Sequence[Any]:
    flat = g.method("view", x, 24)
    g.method("mul_", g.call(operator.getitem, flat, slice(None, None, 2)), 3.0)
    g.method("add_", g.method("t", x), 1.0)
    return [g.call(torch.sum, flat), g.call(F.relu, x, inplace=True)]


@case(floats((4, 6)))
def inplace_functions_on_intermediates(g: Recorder, x: Node) -> Sequence[Any]:
    y = g.call(F.relu, g.call(operator.sub, x, 0.5), inplace=True)
    z = g.call(operator.iadd, g.call(operator.mul, x, 2.0), y)
    return [y, g.method("clamp_", z, min=-1.0)]
