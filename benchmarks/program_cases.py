"""What ``benchmarks.programs`` measures: small programs as people write them, at any size and floating-point dtype."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isqrt
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.operator_cases import Case


@dataclass(frozen=True, slots=True)
class Size:
    """``rows`` x ``columns`` elements of ``dtype``."""

    rows: int
    columns: int
    dtype: torch.dtype

    def matrix(self) -> Tensor:
        """Numbers of all elements."""
        return torch.randn(self.rows, self.columns, dtype=self.dtype)

    def row(self) -> Tensor:
        """A number for each column."""
        return torch.randn(self.columns, dtype=self.dtype)

    def images(self) -> Tensor:
        """As many elements as images of 32 channels."""
        side = max(4, isqrt(self.rows * self.columns // 128))
        return torch.randn(
            max(1, self.rows * self.columns // (32 * side * side)), 32, side, side, dtype=self.dtype
        )


def sizes(elements: int, dtype: torch.dtype) -> Size:
    """The size of about ``elements`` elements, in rows of at most 1024."""
    columns = min(1024, max(32, 1 << (isqrt(elements).bit_length() - 1)))
    return Size(max(1, elements // columns), columns, dtype)


def cases(size: Size) -> Iterator[Case]:
    """All programs at one size."""
    for family in (_blocks, _losses, _places, _images, _cells):
        for name, function, tensors, trains in family(size):
            yield Case(name, function, tensors, trains)


_Program = tuple[str, Callable[..., Any], tuple[Tensor, ...], bool]


def _blocks(size: Size) -> Iterator[_Program]:
    x, y, w, b = size.matrix(), size.matrix(), size.row(), size.row()
    mask = torch.rand(size.rows, size.columns) > 0.5
    yield "rms norm, rotary, residual", _rms_rotary, (x, y, w, torch.randn(size.columns)), True
    yield (
        "layer norm of a sum",
        lambda x, y, w, b: F.layer_norm(x + y, x.shape[-1:], w, b),
        (x, y, w, b),
        True,
    )
    yield "gelu of a bias, gated", lambda x, y, b: F.gelu(x + b) * y, (x, y, b), True
    yield "silu, gated", lambda x, y: F.silu(x) * y, (x, y), True
    yield "softmax and dropout", lambda x: F.dropout(x.softmax(-1), 0.1), (x,), True
    yield "masked softmax", lambda x, m: x.masked_fill(m, float("-inf")).softmax(-1), (x, mask), True
    yield "transposed, added", lambda x, y: x + y.t().reshape(x.shape), (x, y), True
    yield "transposed square", lambda x: x + x.t(), (_square(size),), True
    yield "heads moved and scaled", _heads, (x,), True
    yield "cosine similarity", lambda x, y: F.cosine_similarity(x, y, -1), (x, y), True
    yield "standardized columns", lambda x: (x - x.mean(0)) / (x.std(0) + 1e-5), (x,), True
    yield "halves joined", lambda x: torch.cat([-x[:, 1::2], x[:, ::2]], -1) * 2, (x,), True
    yield "mean and variance", lambda x: (x.mean(-1), x.var(-1)), (x,), True
    yield (
        "clipped by norm",
        lambda x: x * (1.0 / (x.float().norm() + 1e-6)).clamp(max=1.0).to(x.dtype),
        (x,),
        False,
    )
    yield "moving average", lambda x, y: x * 0.99 + y * 0.01, (x, y), False
    yield "quantized", _quantized, (x,), False


def _square(size: Size) -> Tensor:
    side = isqrt(size.rows * size.columns)
    return torch.randn(side, side, dtype=size.dtype)


def _rms_rotary(x: Tensor, y: Tensor, w: Tensor, turn: Tensor) -> Tensor:
    wide = x.float()
    normed = (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w
    half = x.shape[-1] // 2
    turned = torch.cat([-normed[:, half:], normed[:, :half]], -1)
    return (normed * turn.cos() + turned * turn.sin()).to(x.dtype) + y


def _heads(x: Tensor) -> Tensor:
    return x.view(x.shape[0], 4, -1).transpose(0, 1).contiguous() * 0.125


def _quantized(x: Tensor) -> tuple[Tensor, Tensor]:
    scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-6) / 127
    return (x / scale).round().clamp(-128, 127).to(torch.int8), scale


def _losses(size: Size) -> Iterator[_Program]:
    x, y = size.matrix(), size.matrix()
    labels = torch.randint(0, size.columns, (size.rows,))
    yield "log_softmax and nll", lambda x, t: F.nll_loss(x.log_softmax(-1), t), (x, labels), True
    yield (
        "cross entropy, smoothed",
        lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1),
        (x, labels),
        True,
    )
    yield "huber", lambda x, y: F.huber_loss(x, y), (x, y), True
    yield (
        "divergence",
        lambda x, y: F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="batchmean"),
        (x, y),
        True,
    )
    yield "focal", _focal, (x, (y > 0).to(size.dtype)), True
    yield "accuracy", lambda x, t: (x.argmax(-1) == t).float().mean(), (x, labels), False
    yield "entropy", lambda x: -(x.softmax(-1) * x.log_softmax(-1)).sum(-1).mean(), (x,), True


def _focal(x: Tensor, y: Tensor) -> Tensor:
    plain = F.binary_cross_entropy_with_logits(x, y, reduction="none")
    return ((1 - torch.exp(-plain)) ** 2 * plain).mean()


def _places(size: Size) -> Iterator[_Program]:
    x, count = size.matrix(), size.columns
    rows = torch.randint(0, size.rows, (size.rows,))
    words = torch.randint(0, size.rows, (max(1, size.rows // 8), 8))
    labels = torch.randint(0, count, (size.rows,))
    places = torch.randint(0, count, (size.rows, count))
    many = torch.randint(0, count, (size.rows * count // 4,))
    yield "argmax of rows", lambda x: x.argmax(-1), (x,), False
    yield "argmax of columns", lambda x: x.argmax(0), (x,), False
    yield "topk, normalized", lambda x: x.softmax(-1).topk(4).values, (x,), True
    yield "running sums of exponentials", lambda x: (x * 0.01).exp().cumsum(-1), (x,), True
    yield "running sums of columns", lambda x: x.cumsum(0), (x,), True
    yield "one-hot, weighted", lambda t: F.one_hot(t, count).float() * 0.9 + 0.1, (labels,), False
    yield "scatter_add", lambda x, i: torch.zeros_like(x).scatter_add(1, i, x), (x, places), True
    yield "index_add", lambda x, i: torch.zeros_like(x).index_add(0, i, x), (x, rows), True
    yield "bincount", lambda i: torch.bincount(i, minlength=count), (many,), False
    yield "embedding bag", lambda i, w: F.embedding_bag(i, w, mode="mean"), (words, x), True
    yield "embedding, summed", lambda i, w: F.embedding(i, w).sum(1), (words, x), True
    yield "embedding, normalized", lambda i, w: F.layer_norm(F.embedding(i, w), (count,)), (words, x), True
    yield "gather of labels", lambda x, t: x.log_softmax(-1).gather(1, t[:, None]).sum(), (x, labels), True
    yield "rows chosen and scaled", lambda x, i: x[i] * 2 + 1, (x, rows), True


def _images(size: Size) -> Iterator[_Program]:
    x, w = size.images(), torch.randn(32, dtype=size.dtype)
    kernel = torch.randn(32, 32, 3, 3, dtype=size.dtype) * 0.1
    for name, image in (("", x), (", channels last", x.to(memory_format=torch.channels_last))):
        yield f"group norm and silu{name}", lambda x, w: F.silu(F.group_norm(x, 8, w, w)), (image, w), True
        yield (
            f"batch norm and relu{name}",
            lambda x, w: F.relu(F.batch_norm(x, None, None, w, w, True)),
            (image, w),
            True,
        )
        yield f"convolution, batch norm, relu{name}", _convolution, (image, kernel, w), True
        yield f"max pool of relu{name}", lambda x: F.max_pool2d(F.relu(x), 2), (image,), True
        yield f"global average{name}", lambda x: F.relu(x).mean((2, 3)), (image,), True


def _convolution(x: Tensor, kernel: Tensor, w: Tensor) -> Tensor:
    return F.relu(F.batch_norm(F.conv2d(x, kernel, padding=1), None, None, w, w, True))


def _cells(size: Size) -> Iterator[_Program]:
    x, y, w = size.matrix(), size.matrix(), size.row()
    yield (
        "LSTM's gates",
        _gates,
        (size.matrix(), torch.randn(size.rows, size.columns // 4, dtype=size.dtype)),
        True,
    )
    yield "LSTM cell", _lstm, (*_lstm_tensors(size),), True
    yield (
        "GRU's gates",
        lambda x, y: torch.sigmoid(x) * torch.tanh(y) + (1 - torch.sigmoid(x)) * y,
        (x, y),
        True,
    )
    yield "perceptron", _perceptron, (x[:, : min(256, size.columns)].contiguous(), *_weights(size)), True
    yield "adamw", _adamw, (x, y, size.matrix(), size.matrix().abs()), False
    yield "bias, relu, its sums", lambda x, w: F.relu(x + w).sum(0), (x, w), True


def _gates(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    i, f, g, o = gates.chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _lstm_tensors(size: Size) -> Iterator[Tensor]:
    width = max(8, size.columns // 8)
    for shape in ((size.rows, width),) * 3 + ((4 * width, width),) * 2:
        yield torch.randn(shape, dtype=size.dtype) * 0.1


def _lstm(x: Tensor, h: Tensor, c: Tensor, w: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    return _gates(F.linear(x, w) + F.linear(h, u), c)


def _weights(size: Size) -> tuple[Tensor, Tensor]:
    width = min(256, size.columns)
    return tuple(torch.randn(width, width, dtype=size.dtype) * 0.05 for _ in "ab")  # type: ignore[return-value]


def _perceptron(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return x + F.linear(F.gelu(F.linear(x, a)), b)


def _adamw(p: Tensor, g: Tensor, m: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    m, v = m.lerp(g, 0.1), v * 0.999 + g * g * 0.001
    return p * 0.999 - 0.001 * m / (v.sqrt() + 1e-8), m, v
