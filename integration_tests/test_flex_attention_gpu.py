"""``flex_attention`` on a CUDA device: kernels in Triton, forward and backward, with float64 as referee."""

from __future__ import annotations

import logging
import math
from typing import Any

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import fxstack

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
Tensors = tuple[torch.Tensor, ...]
LENGTH = 300


def causal(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return q >= kv


def window(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return (q >= kv) & (q - kv < 70)


def document(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return (q // 90 == kv // 90) & (q != 7)


class Scores:
    """Functions of scores that read tensors to be trained."""

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        made = torch.Generator("cuda").manual_seed(0)
        self.slopes = torch.rand(4, device="cuda", generator=made).to(dtype).requires_grad_()
        self.table = torch.randn(4, 2 * LENGTH - 1, device="cuda", generator=made).to(dtype).requires_grad_()
        self.cap = torch.tensor(5.0, device="cuda", dtype=dtype).requires_grad_()

    def alibi(self, s: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
        return s + (kv - q) * self.slopes[h] * 0.1

    def relative(self, s: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
        return s + self.table[h, q - kv + LENGTH - 1]

    def soft_cap(self, s: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
        return self.cap * torch.tanh(s / self.cap)


def by_hand(given: Tensors, score_mod: Any, mask_mod: Any) -> Tensors:
    query, key, value = given
    group = query.shape[1] // key.shape[1]
    scores = query @ key.repeat_interleave(group, 1).transpose(-2, -1) / math.sqrt(query.shape[-1])
    points = torch.meshgrid(*(torch.arange(size, device="cuda") for size in scores.shape), indexing="ij")
    scores = scores if score_mod is None else score_mod(scores, *points)
    scores = scores if mask_mod is None else scores.masked_fill(~mask_mod(*points), -math.inf)
    sums = scores.logsumexp(-1)
    weights = torch.where(sums.isneginf().unsqueeze(-1), 0.0, scores.softmax(-1))
    return weights @ value.repeat_interleave(group, 1), sums


def gradients(attend: Any, given: Tensors, read: Tensors) -> Any:
    out, sums = attend(*given)
    weight = torch.linspace(-1, 1, out.numel(), device="cuda").view(out.shape)
    loss = (out * weight.to(out.dtype)).sum() + sums[~sums.isneginf()].sin().sum()
    return out, sums, *torch.autograd.grad(loss, [*given, *read], allow_unused=True)


@pytest.mark.parametrize(("dtype", "heads"), [(torch.float32, 2), (torch.bfloat16, 4)])
@pytest.mark.parametrize("mask_mod", [None, causal, window, document])
@pytest.mark.parametrize("name", [None, "alibi", "relative", "soft_cap"])
def test_values_and_gradients(
    name: str | None, mask_mod: Any, heads: int, dtype: torch.dtype, caplog: pytest.LogCaptureFixture
) -> None:
    scores, exact = Scores(), Scores(torch.float64)
    block_mask = None
    if mask_mod is not None:
        block_mask = create_block_mask(mask_mod, None, None, LENGTH, LENGTH, device="cuda")
    score_mod = None if name is None else getattr(scores, name)

    def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> Any:
        return flex_attention(
            query, key, value, score_mod=score_mod, block_mask=block_mask, enable_gqa=True, return_lse=True
        )

    shapes = [(2, 4, LENGTH, 64), (2, heads, LENGTH, 64), (2, heads, LENGTH, 64)]
    given = tuple(torch.randn(shape, device="cuda").to(dtype).requires_grad_() for shape in shapes)
    with caplog.at_level(logging.WARNING):
        found = gradients(
            fxstack.compile(attend, fullgraph=True), given, (scores.slopes, scores.table, scores.cap)
        )
    assert "keeps all scores" not in caplog.text
    doubled = tuple(tensor.detach().double().requires_grad_() for tensor in given)
    read = (exact.slopes, exact.table, exact.cap)
    with torch.no_grad():
        for one, other in zip(read, (scores.slopes, scores.table, scores.cap), strict=True):
            one.copy_(other)
    expected = gradients(
        lambda *args: by_hand(args, None if name is None else getattr(exact, name), mask_mod), doubled, read
    )
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            seen = ~other.isneginf()
            error = (one.double() - other)[seen].norm() / other[seen].norm()
            assert error < (1e-2 if dtype is torch.bfloat16 else 1e-4), error


def test_a_backward_of_odd_widths_and_lengths_that_vary() -> None:
    def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> Any:
        return flex_attention(query, key, value)

    run = fxstack.compile(attend, fullgraph=True)
    for length in (33, 130, 257, 200):
        given = tuple(
            torch.randn(1, 2, length, width, device="cuda", requires_grad=True) for width in (40, 40, 24)
        )
        doubled = tuple(tensor.detach().double().requires_grad_() for tensor in given)
        found = torch.autograd.grad(run(*given).square().sum(), given)
        exact = torch.autograd.grad(by_hand(doubled, None, None)[0].square().sum(), doubled)
        for one, other in zip(found, exact, strict=True):
            assert (one.double() - other).norm() / other.norm() < 1e-4
