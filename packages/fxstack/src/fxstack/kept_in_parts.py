"""Operators that are traced as several on a GPU, for kernels that are fused with a part of them.

The gradient of a logarithm of a softmax is computed from its result, which has as many elements as its argument, often
of twice the bytes. Of the largest element and the sum of a row, and the argument, a fused kernel computes it again.
torch adds the bias of a convolution by a kernel of its own, and sums up its gradient by another: as an addition both
are fused with what stands around them. Memory-efficient attention returns the state of the random numbers on the CPU,
where no CUDA graph can keep it; without dropout nothing reads it. Where the largest element of a window stands is told
by an integer of eight bytes for each window; its place in the window takes one. What a batch norm makes of its argument
and the statistics is computed again of these, which its own gradient reads anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import torch
from torch import Tensor
from torch._ops import OpOverload

_WIDE: Final = (torch.float32, torch.float64)
_GPU: Final = "cuda"
_BATCH_NORMS: Final = (torch.ops.aten.native_batch_norm.default, torch.ops.aten.cudnn_batch_norm.default)
_SMALL: Final = 127
"""Elements of a window whose places fit into eight bits."""


def _log_softmax(x: Tensor, dim: int, half_to_float: bool) -> Any:
    no_row = any(isinstance(size, int) and size == 0 for size in x.shape) or x.dim() == 0
    if no_row or not (half_to_float or x.dtype in _WIDE):
        return NotImplemented
    wide = _to(x, torch.float32) if half_to_float else x
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


def _max_pool(
    x: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
) -> Any:
    """What is kept is small: the place in the window, which ``places`` is computed of."""
    window, border, apart = _pair(kernel_size), _pair(padding), _pair(dilation)
    steps = _pair(stride) if stride else window
    fits = window[0] * window[1] <= _SMALL and isinstance(x.shape[-1], int) and window[1] <= x.shape[-1]
    if x.device.type != _GPU or apart != (1, 1) or not fits:
        return NotImplemented
    found, places = torch.ops.aten.max_pool2d_with_indices.default(x, window, steps, border, apart, ceil_mode)
    width = x.shape[-1]
    rows, columns = (
        torch.arange(found.shape[axis - 2], device=x.device) * steps[axis] - border[axis] for axis in range(2)
    )
    corners = rows.unsqueeze(1) * width + columns
    behind = places - corners
    in_window = torch.div(behind, width, rounding_mode="trunc") * window[1] + torch.fmod(behind, width)
    kept = _to(_to(in_window, torch.int8), torch.int64)
    row, column = torch.div(kept, window[1], rounding_mode="trunc"), torch.fmod(kept, window[1])
    return found, corners + row * width + column


def _batch_norm(
    norm: Callable[..., Any],
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    """The results of a batch norm in training, the first as a formula of what the norm's gradient reads."""
    if x.device.type != _GPU or not training:
        return NotImplemented
    _, mean, rstd, *rest = norm(x, weight, bias, running_mean, running_var, training, momentum, eps)
    made = (_wide(x) - _by_channel(mean, x)) * _by_channel(rstd, x)
    if weight is not None:
        made = made * _by_channel(weight, x)
    if bias is not None:
        made = made + _by_channel(bias, x)
    return (made if made.dtype is x.dtype else _to(made, x.dtype)), mean, rstd, *rest


def _by_channel(row: Tensor, x: Tensor) -> Tensor:
    """Numbers of the channels, [C], for what is computed with ``x``, [N, C, ...], in its computing dtype."""
    return _wide(row).reshape([-1] + [1] * (x.dim() - 2))


def _wide(x: Tensor) -> Tensor:
    return x if x.dtype in _WIDE else _to(x, torch.float32)


def _to(x: Tensor, dtype: torch.dtype) -> Tensor:
    """A conversion that is a copy; ``Tensor.to`` may be a view, and partitioners ask what memory one keeps."""
    converted: Tensor = torch.ops.aten._to_copy.default(x, dtype=dtype)
    return converted


def _pair(given: int | Sequence[int]) -> tuple[int, int]:
    return (given, given) if isinstance(given, int) else (given[0], given[-1])


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
        torch.ops.aten.max_pool2d_with_indices.default: _max_pool,
        **{norm: partial(_batch_norm, norm) for norm in _BATCH_NORMS},
        torch.ops.aten._scaled_dot_product_efficient_attention_backward.default: _attention_backward,
    }
)
