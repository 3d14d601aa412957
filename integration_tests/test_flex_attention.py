"""``flex_attention`` through the whole stack, with float64 as referee; the result of a program is eager's."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import fxstack

Tensors = tuple[torch.Tensor, ...]
LENGTH = 200
SLOPES = torch.tensor([0.5, 0.25, 0.125, 0.0625])
TABLE = torch.linspace(-1, 1, 4 * (2 * LENGTH - 1)).sin().view(4, -1)
DOCUMENTS = torch.tensor([0] * 50 + [1] * 90 + [2] * 60)


def causal(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return q >= kv


def window(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return (q >= kv) & (q - kv < 40)


def document(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return (DOCUMENTS[q] == DOCUMENTS[kv]) & (q >= kv)


def some_rows_of_some_heads(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return (b == h % 2) & (q != 5)


def alibi(s: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
    return s + (kv - q) * SLOPES[h]


def soft_cap(s: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
    return 5 * torch.tanh(s / 5)


def relative(s: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
    return s + TABLE[h, q - kv + LENGTH - 1]


def relative_in_steps(s: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
    return s + TABLE[h][q - kv + LENGTH - 1]


MASKS = [None, causal, window, document, some_rows_of_some_heads]
SCORES = [None, alibi, soft_cap, relative, relative_in_steps]


def inputs(dtype: torch.dtype = torch.float32, length: int = LENGTH, heads: int = 4) -> Tensors:
    shapes = [(2, 4, length, 32), (2, heads, length, 32), (2, heads, length, 48)]
    return tuple(torch.randn(shape).to(dtype) for shape in shapes)


def by_hand(given: Tensors, score_mod: Any, mask_mod: Any) -> Tensors:
    """What attention is, with functions called for all points at once."""
    query, key, value = given
    group = query.shape[1] // key.shape[1]
    scores = query @ key.repeat_interleave(group, 1).transpose(-2, -1) / math.sqrt(query.shape[-1])
    points = torch.meshgrid(*(torch.arange(size) for size in scores.shape), indexing="ij")
    if score_mod is relative_in_steps:
        score_mod = relative
    if score_mod is not None:
        scores = score_mod(scores, *points)
    if mask_mod is not None:
        scores = scores.masked_fill(~mask_mod(*points), -math.inf)
    sums = scores.logsumexp(-1)
    weights = torch.where(sums.isneginf().unsqueeze(-1), 0.0, scores.softmax(-1))
    return weights @ value.repeat_interleave(group, 1), sums


def program(score_mod: Any, mask_mod: Any, length: int = LENGTH) -> Callable[..., Any]:
    block_mask = None
    if mask_mod is not None:
        block_mask = create_block_mask(mask_mod, 2, 4, length, length, device="cpu")

    def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> Any:
        return flex_attention(
            query, key, value, score_mod=score_mod, block_mask=block_mask, enable_gqa=True, return_lse=True
        )

    return attend


@pytest.fixture(autouse=True)
def _no_scores_in_memory(caplog: pytest.LogCaptureFixture) -> Any:
    """No part of the stack may say that it keeps all scores."""
    with caplog.at_level(logging.WARNING):
        yield
    assert "keeps all scores" not in caplog.text


def close(found: torch.Tensor, exact: torch.Tensor, roundings: float = 40) -> None:
    seen = ~exact.isneginf()
    assert torch.equal(found.isneginf(), ~seen)
    error = (found.double() - exact)[seen].norm() / exact[seen].norm()
    assert error < roundings * torch.finfo(found.dtype).eps, error


@pytest.mark.parametrize("mask_mod", MASKS)
@pytest.mark.parametrize("score_mod", SCORES)
def test_values_are_those_of_float64(score_mod: Any, mask_mod: Any) -> None:
    run = fxstack.compile(program(score_mod, mask_mod), fullgraph=True)
    given = inputs()
    for found, exact in zip(
        run(*given), by_hand(tuple(map(torch.Tensor.double, given)), score_mod, mask_mod), strict=True
    ):
        close(found, exact)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("heads", [4, 2, 1])
def test_dtypes_and_groups_of_heads(dtype: torch.dtype, heads: int) -> None:
    run = fxstack.compile(program(alibi, window), fullgraph=True)
    given = inputs(dtype, heads=heads)
    out, sums = run(*given)
    exact, exact_sums = by_hand(tuple(map(torch.Tensor.double, given)), alibi, window)
    close(out, exact, 4 if dtype.itemsize == 2 else 40)
    close(sums, exact_sums)
    expected, expected_sums = program(alibi, window)(*given)
    assert (out.dtype, out.stride()) == (expected.dtype, expected.stride())
    assert (sums.dtype, sums.stride()) == (expected_sums.dtype, expected_sums.stride())


def test_transposed_heads_give_transposed_results() -> None:
    run = fxstack.compile(program(None, causal), fullgraph=True)
    given = [torch.randn(2, LENGTH, 4, 32).transpose(1, 2) for _ in range(3)]
    out, _ = run(*given)
    expected, _ = program(None, causal)(*given)
    assert out.stride() == expected.stride()
    torch.testing.assert_close(out, expected)


def test_lengths_that_vary_and_a_mask_made_inside() -> None:
    def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, reach: int) -> Any:
        def mask(b: Any, h: Any, q: Any, kv: Any) -> Any:
            return (q >= kv) & (q - kv < reach)

        block_mask = create_block_mask(mask, None, None, query.shape[2], key.shape[2], device="cpu")
        return flex_attention(query, key, value, block_mask=block_mask, enable_gqa=True)

    run = fxstack.compile(attend, fullgraph=True)
    for length, reach in ((200, 30), (333, 7), (270, 200), (401, 64)):
        given = inputs(length=length)
        torch.testing.assert_close(run(*given, reach), attend(*given, reach), atol=2e-6, rtol=1e-5)


class Block(nn.Module):
    """Attention whose queries, keys and values are views of one projection."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(32, 96)
        self.bias = nn.Parameter(torch.randn(2, 2 * LENGTH - 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """What a transformer's layer does."""
        query, key, value = self.project(x).view(*x.shape[:2], 3, 2, 16).permute(2, 0, 3, 1, 4)
        block_mask = create_block_mask(causal, None, None, x.shape[1], x.shape[1], device="cpu")
        found = flex_attention(query, key, value, score_mod=self.score, block_mask=block_mask)
        return found.transpose(1, 2).flatten(2)

    def score(self, s: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
        """A bias by distance."""
        return s + self.bias[h, q - kv + LENGTH - 1]


def test_a_layer_is_trained_at_lengths_that_vary() -> None:
    block = Block()
    run = fxstack.compile(block, fullgraph=True)
    for length in (100, 80, 90, 150):
        x = torch.randn(2, length, 32)
        run(x).square().mean().backward()
        found = block.bias.grad
        assert found is not None
        query, key, value = block.project(x).view(2, length, 3, 2, 16).permute(2, 0, 3, 1, 4)
        loss = by_hand((query, key, value), block.score, causal)[0].square().mean()
        torch.testing.assert_close(found, torch.autograd.grad(loss, block.bias)[0])
        block.zero_grad()


@pytest.mark.parametrize("size", [16, (64, 32), (40, 24), (128, 256)])
def test_blocks_of_any_size(size: Any) -> None:
    block_mask = create_block_mask(document, None, None, LENGTH, LENGTH, device="cpu", BLOCK_SIZE=size)
    run = fxstack.compile(
        lambda query, key, value: flex_attention(query, key, value, block_mask=block_mask), fullgraph=True
    )
    given = inputs()
    exact, _ = by_hand(tuple(map(torch.Tensor.double, given)), None, document)
    close(run(*given), exact)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("mask_mod", [None, document, some_rows_of_some_heads])
def test_gradients_of_queries_keys_values_and_what_a_score_reads(mask_mod: Any, backend: str) -> None:
    slopes, cap = torch.rand(4, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    table = torch.randn(4, 2 * LENGTH - 1, requires_grad=True)

    def score(s: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
        s = s + (kv - q) * slopes.to(s.dtype)[h] * 0.1 + table.to(s.dtype)[h, q - kv + LENGTH - 1]
        return cap.to(s.dtype) * torch.tanh(s / cap.to(s.dtype))

    def score_as_read(s: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
        s = s + (kv - q) * slopes[h] * 0.1 + table[h, q - kv + LENGTH - 1]
        return cap * torch.tanh(s / cap)

    def gradients(run: Any, given: Tensors) -> Tensors:
        out, sums = run(*given)
        reached = ~sums.isneginf()
        loss = (out * torch.linspace(-1, 1, out.numel()).view(out.shape)).sum() + sums[reached].sin().sum()
        return torch.autograd.grad(loss, [*given, slopes, cap, table])

    given = tuple(tensor.requires_grad_() for tensor in inputs(heads=2))
    doubled = tuple(tensor.detach().double().requires_grad_() for tensor in given)
    exact = gradients(lambda *args: by_hand(args, score, mask_mod), doubled)
    run = fxstack.compile(program(score_as_read, mask_mod), fullgraph=True, backend=backend)
    for found, one in zip(gradients(run, given), exact, strict=True):
        error = (found.double() - one.double()).norm() / one.double().norm()
        assert error < 1e-5, error


def test_second_derivatives() -> None:
    run = fxstack.compile(program(soft_cap, causal), fullgraph=True)
    given = tuple(tensor.double().requires_grad_() for tensor in inputs(length=LENGTH))

    def twice(attend: Any) -> Tensors:
        out, _ = attend(*given)
        first = torch.autograd.grad(out.square().sum(), given, create_graph=True)
        return torch.autograd.grad(sum(grad.square().sum() for grad in first), given)

    for found, exact in zip(twice(run), twice(lambda *a: by_hand(a, soft_cap, causal)), strict=True):
        torch.testing.assert_close(found, exact)


def test_autocast_casts_queries_keys_and_values() -> None:
    attend = program(None, causal)

    def in_half(*given: torch.Tensor) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return attend(*given)[0]

    given = inputs()
    out = fxstack.compile(in_half, fullgraph=True)(*given)
    assert out.dtype is torch.bfloat16
    close(out, by_hand(tuple(map(torch.Tensor.double, given)), None, causal)[0], 6)


def test_a_function_that_is_no_program_of_points_is_reported_and_right(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def of_a_row(s: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
        return s + (TABLE * 2)[h].sum()

    given = inputs()
    out, _ = fxstack.compile(program(of_a_row, causal), fullgraph=True)(*given)
    doubled = tuple(map(torch.Tensor.double, given))
    exact, _ = by_hand(doubled, lambda s, b, h, q, kv: s + (TABLE.double() * 2).sum(-1)[h], causal)
    eager, _ = program(of_a_row, causal)(*given)  # scores of some hundreds, of which either loses digits
    assert (out - exact).norm() <= 3 * (eager - exact).norm()
    assert "keeps all scores" in caplog.text
    caplog.clear()


def test_an_index_out_of_range_is_an_error() -> None:
    short = torch.randn(LENGTH - 1)
    run = fxstack.compile(program(lambda s, b, h, q, kv: s + short[kv], None))
    with pytest.raises(IndexError):
        run(*inputs())
