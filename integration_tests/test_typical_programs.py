"""Programs as people write them around models, compiled as a whole: equal to eager, and soon no more compilations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import fxstack


class _Counting:
    """A compiled function whose compilations can be counted."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._compiled: Any = fxstack.compile(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(*args, **kwargs)

    @property
    def versions(self) -> int:
        return len(self._compiled.__fxstack_capture__.report.replacements)


class _Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(8, 24)

    def forward(self, x: torch.Tensor, cache: tuple[torch.Tensor, torch.Tensor] | None = None) -> Any:
        query, key, value = self.project(x).chunk(3, -1)
        if cache is not None:
            key, value = torch.cat([cache[0], key], 1), torch.cat([cache[1], value], 1)
        return F.scaled_dot_product_attention(query, key, value, is_causal=cache is None), (key, value)


@torch.no_grad()
def test_decoding_with_a_growing_cache() -> None:
    model = _Attention().eval()
    compiled = _Counting(model.forward)
    _, cache = compiled(torch.randn(1, 4, 8))
    for _ in range(20):
        x = torch.randn(1, 1, 8)
        expected, _ = model(x, cache)
        found, cache = compiled(x, cache)
        torch.testing.assert_close(found, expected)
    assert compiled.versions <= 4, "the prompt, the first token, the second, all others"


def test_beam_search() -> None:
    torch.manual_seed(0)
    embedding, head = nn.Embedding(10, 8), nn.Linear(8, 10)

    def step(tokens: torch.Tensor, scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits = head(embedding(tokens[:, -1])).log_softmax(-1) + scores[:, None]
        best, index = logits.view(-1).topk(3)
        return torch.cat([tokens[index // 10], (index % 10)[:, None]], 1), best

    compiled = _Counting(step)
    beams = (torch.zeros(3, 1, dtype=torch.long), torch.randn(3))
    for _ in range(12):
        found, beams = compiled(*beams), step(*beams)
        torch.testing.assert_close(found[1], beams[1])
    assert compiled.versions <= 3


@torch.no_grad()
def test_a_buffer_that_is_filled_step_by_step() -> None:
    class Filled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("kept", torch.zeros(1, 32, 8))
            self.position = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.kept[:, self.position : self.position + x.shape[1]] = x * 2
            self.position += x.shape[1]
            return self.kept[:, : self.position].sum(1)

    eager, model = Filled(), Filled()
    compiled = _Counting(model.forward)
    for _ in range(20):
        x = torch.randn(1, 1, 8)
        torch.testing.assert_close(compiled(x), eager(x))
    assert model.position == 20
    assert compiled.versions <= 5


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x.sin() + 1) * x.sum(-1, keepdim=True),
        lambda x: x.transpose(0, 1)[1:].relu(),
        lambda x: x.reshape(-1) * 2,
    ],
    ids=["reduced", "transposed", "reshaped"],
)
def test_parts_of_larger_tensors(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    compiled = _Counting(function)
    for width in (8, 9, 11, 20, 33):
        for part in (torch.randn(4, width)[:, :8], torch.randn(4, 3, width)[:, 1, :8]):
            expected, found = function(part), compiled(part)
            torch.testing.assert_close(found, expected)
            assert found.stride() == expected.stride()
    assert compiled.versions <= 4


def test_generation_as_a_whole() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(
        n_layer=2, n_embd=32, n_head=2, vocab_size=100, n_positions=64, bos_token_id=98, eos_token_id=99
    )
    model = GPT2LMHeadModel(config).eval()
    compiled = _Counting(model.generate)
    settings: dict[str, Any] = {"max_new_tokens": 8, "do_sample": False, "pad_token_id": 0}
    tokens = torch.randint(1, 98, (2, 5))
    expected = model.generate(tokens, **settings)
    assert torch.equal(compiled(tokens, **settings), expected)
    once = compiled.versions
    for _ in range(2):
        assert torch.equal(compiled(tokens, **settings), expected)
    assert compiled.versions <= once + 4, "the second call may still find what varies, the third nothing"
