"""Operators that are traced as several on a GPU, for kernels that are fused with a part of them.

The gradient of a logarithm of a softmax is computed from its result, which has as many elements as its argument, often
of twice the bytes. Of the largest element and the sum of a row, and the argument, a fused kernel computes it again.
torch adds the bias of a convolution by a kernel of its own, and sums up its gradient by another: as an addition both
are fused with what stands around them. Memory-efficient attention returns the state of the random numbers on the CPU,
where no CUDA graph can keep it; without dropout nothing reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import torch
from torch import Tensor
from torch._ops import OpOverload

_WIDE: Final = (torch.float32, torch.float64)
_GPU: Final = "cuda"


def _log_softmax(x: Tensor, dim: int, half_to_float: bool) -> Any:
    no_row = any(isinstance(size, int) and size == 0 for size in x.shape) or x.dim() == 0
    if no_row or not (half_to_float or x.dtype in _WIDE):
        return NotImplemented
    wide = x.to(torch.float32) if half_to_float else x
    shifted = wide - wide.amax(dim, keepdim=True)
    return shifted - shifted.exp().sum(dim, keepdim=True).log()


def _convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    if bias is None or x.device.type != _GPU or groups != 1:  # one of depth adds its bias before it rounds
        return NotImplemented
    geometry = (stride, padding, dilation, transposed, output_padding, groups)
    convolved = torch.ops.aten.convolution.default(x, weight, None, *geometry)
    return convolved + bias.reshape(-1, *([1] * (convolved.dim() - 2)))


def _convolution_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> Any:
    of_x, of_weight, of_bias = output_mask
    if not of_bias or grad.device.type != _GPU:
        return NotImplemented
    geometry = (stride, padding, dilation, transposed, output_padding, groups)
    x_grad = weight_grad = None
    if of_x or of_weight:
        x_grad, weight_grad, _ = torch.ops.aten.convolution_backward.default(
            grad, x, weight, None, *geometry, [of_x, of_weight, False]
        )
    return x_grad, weight_grad, grad.sum((0, *range(2, grad.dim())))


def _attention_backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    out: Tensor,
    logsumexp: Tensor,
    seed: Tensor,
    offset: Tensor,
    dropout_p: float,
    wanted: Sequence[bool],
    is_causal: bool = False,
    *,
    scale: float | None = None,
) -> Any:
    if dropout_p or seed.device == grad.device:
        return NotImplemented
    unread = torch.zeros((), dtype=seed.dtype, device=grad.device)
    return torch.ops.aten._scaled_dot_product_efficient_attention_backward.default(
        grad,
        query,
        key,
        value,
        bias,
        out,
        logsumexp,
        unread,
        unread,
        dropout_p,
        wanted,
        is_causal,
        scale=scale,
    )


KEPT_IN_PARTS: Final[Mapping[OpOverload, Callable[..., Any]]] = MappingProxyType(
    {
        torch.ops.aten._log_softmax.default: _log_softmax,
        torch.ops.aten.convolution.default: _convolution,
        torch.ops.aten.convolution_backward.default: _convolution_backward,
        torch.ops.aten._scaled_dot_product_efficient_attention_backward.default: _attention_backward,
    }
)
