"""What ``benchmarks.operators`` measures: functions of torch on about a million elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

N = 1000


@dataclass(frozen=True, slots=True)
class Case:
    """A function with its arguments; ``trains`` if its gradients are measured too."""

    name: str
    function: Callable[..., Any]
    tensors: tuple[Tensor, ...]
    trains: bool


def _case(name: str, function: Callable[..., Any], *tensors: Tensor, trains: bool = True) -> Case:
    return Case(name, function, tensors, trains)


def cases() -> Iterator[Case]:
    """All cases, family by family."""
    for family in (
        _unary,
        _binary,
        _dtypes,
        _reductions,
        _normalizations,
        _borders,
        _joins,
        _copies,
        _lookups,
        _images,
        _losses,
    ):
        yield from family()


_UNARY = (
    "exp", "log", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "sigmoid", "abs", "neg", "floor", "round", "sign",
    "reciprocal", "log1p", "expm1", "erf", "erfc", "atan", "log2", "exp2", "square", "lgamma",
)  # fmt: skip
_ACTIVATIONS = (
    "relu", "gelu", "silu", "elu", "selu", "leaky_relu", "hardtanh", "hardswish", "hardsigmoid", "softplus", "mish",
    "logsigmoid", "softsign", "relu6", "tanhshrink", "hardshrink", "softshrink", "glu",
)  # fmt: skip


def _unary() -> Iterator[Case]:
    positive, x = torch.rand(N, N) + 0.1, torch.randn(N, N)
    for name in _UNARY:
        smooth = name in ("exp", "log", "sqrt", "rsqrt", "sin", "tanh", "sigmoid", "erf")
        yield _case(name, getattr(torch, name), positive, trains=smooth)
    for name in _ACTIVATIONS:
        yield _case(name, getattr(F, name), x)
    yield _case("gelu, tanh", lambda x: F.gelu(x, approximate="tanh"), x)
    yield _case("clamp", lambda x: x.clamp(-1, 1), x)


def _binary() -> Iterator[Case]:
    x, y, row = torch.rand(N, N) + 0.1, torch.rand(N, N) + 0.1, torch.randn(N)
    for name in ("add", "mul", "div", "maximum", "pow", "atan2"):
        yield _case(name, getattr(torch, name), x, y)
    for name in ("fmod", "remainder", "floor_divide", "eq", "lt", "hypot"):
        yield _case(name, getattr(torch, name), x, y, trains=False)
    yield _case("add, a row", torch.add, x, row)
    yield _case("add, a column", torch.add, x, row[:, None])
    yield _case("add, transposed", torch.add, x, y.t())
    yield _case("where", lambda x, y: torch.where(x > 0.5, x, y), x, y)
    yield _case("lerp", lambda x, y: torch.lerp(x, y, 0.3), x, y)
    yield _case("masked_fill", lambda x, y: x.masked_fill(y > 0.5, 0.0), x, y)


def _dtypes() -> Iterator[Case]:
    x = torch.randn(N, N)
    kinds = (torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32, torch.uint8)
    for dtype in kinds:
        y, name = (x * 10).abs().to(dtype), str(dtype).removeprefix("torch.")
        trains = dtype.is_floating_point
        yield _case(f"x * 2 + 1, {name}", lambda x: x * 2 + 1, y, trains=trains)
        yield _case(f"sum of all, {name}", lambda x: x.sum(), y, trains=trains)
        yield _case(f"sum of rows, {name}", lambda x: x.sum(-1), y, trains=trains)
        yield _case(f"sum of columns, {name}", lambda x: x.sum(0), y, trains=trains)
        yield _case(f"amax of rows, {name}", lambda x: x.amax(-1), y, trains=False)
        yield _case(f"to float, {name}", lambda x: x.float() * 2, y, trains=False)
        yield _case(f"transposed copy, {name}", lambda x: x.t().contiguous(), y, trains=False)
        if trains:
            for function in (F.gelu, F.relu, torch.sigmoid):
                yield _case(f"{function.__name__}, {name}", function, y)
            yield _case(f"softmax, {name}", lambda x: x.softmax(-1), y)
            yield _case(f"layer_norm, {name}", lambda x: F.layer_norm(x, (N,)), y)


def _reductions() -> Iterator[Case]:
    x, cube = torch.randn(N, N), torch.randn(16, 128, 512)
    for name in ("sum", "mean", "var", "logsumexp"):
        for dim in (0, 1):
            yield _case(f"{name}, dim {dim}", _along(getattr(torch, name), dim), x)
    for name in ("amax", "argmax", "prod", "any"):
        for dim in (0, 1):
            yield _case(f"{name}, dim {dim}", _along(getattr(torch, name), dim), x, trains=False)
    yield _case("sum, middle", lambda x: x.sum(1), cube)
    yield _case("sum, ends", lambda x: x.sum((0, 2)), cube)
    yield _case("max with places", lambda x: x.max(-1), x)
    yield _case("cumsum", lambda x: x.cumsum(-1), x)
    yield _case("sort", lambda x: x.sort(-1), x)
    yield _case("topk", lambda x: x.topk(10), x)


def _along(function: Callable[..., Any], dim: int) -> Callable[[Tensor], Any]:
    return lambda x: function(x, dim=dim)


def _normalizations() -> Iterator[Case]:
    x, row, image = torch.randn(N, N), torch.randn(N), torch.randn(4, 32, 64, 64)
    last, channel = image.to(memory_format=torch.channels_last), torch.randn(32)
    for dim in (0, 1):
        yield _case(f"softmax, dim {dim}", lambda x, dim=dim: x.softmax(dim), x)
        yield _case(f"log_softmax, dim {dim}", lambda x, dim=dim: x.log_softmax(dim), x)
        yield _case(f"normalize, dim {dim}", lambda x, dim=dim: F.normalize(x, dim=dim), x)
    yield _case("softmax, short rows", lambda x: x.softmax(-1), torch.randn(100_000, 10))
    yield _case("layer_norm", lambda x, w, b: F.layer_norm(x, (N,), w, b), x, row, row)
    yield _case("rms_norm", lambda x, w: F.rms_norm(x, (N,), w), x, row)
    for name, each in (("", image), (", channels last", last)):
        yield _case(f"group_norm{name}", lambda x: F.group_norm(x, 8), each)
        yield _case(f"batch_norm{name}", lambda x, w: F.batch_norm(x, None, None, w, w, True), each, channel)


def _borders() -> Iterator[Case]:
    image, cube = torch.randn(4, 32, 64, 64), torch.randn(16, 128, 512)
    for mode in ("constant", "reflect", "replicate", "circular"):
        yield _case(f"pad an image, {mode}", lambda x, mode=mode: F.pad(x, (3, 3, 3, 3), mode=mode), image)
        yield _case(f"pad rows, {mode}", lambda x, mode=mode: F.pad(x, (5, 2), mode=mode), cube)
    x = torch.randn(N, N)
    yield _case("roll along rows", lambda x: x.roll(7, -1), x)
    yield _case("roll both", lambda x: x.roll((3, 7), (0, 1)), x)
    yield _case("flip", lambda x: x.flip(-1), x)
    yield _case("tril", lambda x: x.tril(), x)
    yield _case("eye", lambda x: torch.eye(N) + x, x)


def _joins() -> Iterator[Case]:
    x, y, heads, turn = torch.randn(N, N), torch.randn(N, N), torch.randn(16, 128, 512), torch.randn(128, 512)
    for dim in (0, 1):
        yield _case(f"cat, dim {dim}", lambda x, y, dim=dim: torch.cat([x, y], dim), x, y)
        yield _case(f"cat of computed, dim {dim}", lambda x, y, dim=dim: torch.cat([x * 2, y + 1], dim), x, y)
        yield _case(
            f"cat of six, dim {dim}",
            lambda x, y, dim=dim: torch.cat([x * 2, y + 1] * 3, dim),
            x[:300],
            y[:300],
        )
        yield _case(
            f"cat, then relu, dim {dim}", lambda x, y, dim=dim: torch.cat([x, y], dim).relu() * 2, x, y
        )
        yield _case(f"stack, dim {dim}", lambda x, y, dim=dim: torch.stack([x, y], dim), x, y)
    yield _case("chunk", lambda x: [part * 2 for part in x.chunk(4, -1)], x)
    yield _case("rotary embedding", _rotary, heads, turn, trains=False)
    yield _case("slice written to", _slice_written, x)


def _rotary(x: Tensor, turn: Tensor) -> Tensor:
    return x * turn.cos() + torch.cat([-x[..., 256:], x[..., :256]], -1) * turn.sin()


def _slice_written(x: Tensor) -> Tensor:
    copy = x.clone()
    copy[:, 10:20] = 0
    return copy


def _copies() -> Iterator[Case]:
    x, image, cube = torch.randn(N, N), torch.randn(4, 32, 64, 64), torch.randn(16, 128, 512)
    yield _case("repeat", lambda x: x.repeat(2, 2), x[:500])
    yield _case("repeat_interleave", lambda x: x.repeat_interleave(2, dim=-1), x[:500])
    yield _case("permute", lambda x: x.permute(2, 0, 1).contiguous(), cube)
    yield _case("to channels last", lambda x: x.contiguous(memory_format=torch.channels_last), image)
    yield _case("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), image)
    yield _case("strided", lambda x: x[:, ::2] * 2, x)


def _lookups() -> Iterator[Case]:
    x, rows, places = torch.randn(N, N), torch.randint(0, N, (N,)), torch.randint(0, N, (N, N))
    table, words = torch.randn(5000, 256), torch.randint(0, 5000, (16, 250))
    for dim in (0, 1):
        yield _case(f"gather, dim {dim}", lambda x, i, dim=dim: x.gather(dim, i), x, places)
        yield _case(f"index_select, dim {dim}", lambda x, i, dim=dim: x.index_select(dim, i), x, rows)
        yield _case(
            f"scatter_add, dim {dim}", lambda x, i, dim=dim: x.scatter_add(dim, i, x), x, places, trains=False
        )
    yield _case("embedding", lambda i, w: F.embedding(i, w), words, table)
    yield _case("index_add", lambda x, i: x.index_add(0, i, x), x, rows, trains=False)


def _images() -> Iterator[Case]:
    image, w = torch.randn(4, 32, 64, 64), torch.randn(32, 32, 3, 3) * 0.1
    for name, x in (("", image), (", channels last", image.to(memory_format=torch.channels_last))):
        yield _case(f"conv2d and relu{name}", lambda x, w: F.relu(F.conv2d(x, w, padding=1)), x, w)
        yield _case(f"max_pool2d{name}", lambda x: F.max_pool2d(x, 2), x)
        yield _case(f"max_pool2d, overlapping{name}", lambda x: F.max_pool2d(x, 3, 2, 1), x)
        yield _case(f"avg_pool2d{name}", lambda x: F.avg_pool2d(x, 3, 1, 1), x)
        yield _case(f"avg_pool2d, side by side{name}", lambda x: F.avg_pool2d(x, 2), x)
        for mode in ("nearest", "bilinear", "bicubic"):
            yield _case(
                f"interpolate, {mode}{name}",
                lambda x, mode=mode: F.interpolate(x, scale_factor=2, mode=mode),
                x,
            )
    yield _case("max_pool1d", lambda x: F.max_pool1d(x, 3), torch.randn(16, 128, 512))
    yield _case(
        "linear and gelu", lambda x, w: F.gelu(F.linear(x, w)), torch.randn(N, N), torch.randn(256, N)
    )
    yield _case("attention", lambda q: F.scaled_dot_product_attention(q, q, q), torch.randn(4, 8, 128, 64))
    yield _case(
        "attention, written out", lambda q: (q @ q.mT / 8).softmax(-1) @ q, torch.randn(4, 8, 128, 64)
    )


def _losses() -> Iterator[Case]:
    x, y, labels = torch.randn(N, N), torch.rand(N, N), torch.randint(0, N, (N,))
    for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "binary_cross_entropy_with_logits", "kl_div"):
        yield _case(name, getattr(F, name), x, y)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        yield _case(f"cross_entropy, {dtype}", F.cross_entropy, x.to(dtype), labels)
