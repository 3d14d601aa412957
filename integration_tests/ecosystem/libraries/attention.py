"""torch's own FlexAttention and attention over nested tensors of jagged layout."""

from __future__ import annotations

from typing import Any

import torch
from programs import Compile, Program, Step
from torch import Tensor
from torch.nn import functional as F


def _heads(length: int) -> list[Tensor]:
    return [torch.randn(2, 4, length, 32) for _ in range(3)]


def flex_causal(compile: Compile) -> Step:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256, device="cpu")
    q, k, v = _heads(256)
    attend = compile(flex_attention)

    def step() -> Any:
        with torch.no_grad():
            return attend(q, k, v, block_mask=mask)

    return step


def flex_scored(compile: Compile) -> Step:
    """Scores are changed by a function that reads a tensor."""
    from torch.nn.attention.flex_attention import flex_attention

    slopes, (q, k, v) = torch.rand(4), _heads(128)

    @compile
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + slopes[h] * (j - i))

    def step() -> Any:
        with torch.no_grad():
            return attend(q, k, v)

    return step


def jagged(compile: Compile) -> Step:
    rows = [torch.randn(length, 4, 32) for length in (60, 90, 120)]

    @compile
    def attend(values: Tensor) -> Tensor:
        q = (values * 2).transpose(1, 2)
        k, v = values.transpose(1, 2), values.sin().transpose(1, 2)
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2)

    values = torch.nested.nested_tensor(rows, layout=torch.jagged, requires_grad=True)

    def step() -> Any:
        result = attend(values)
        (gradient,) = torch.autograd.grad(result.values().square().sum(), values)
        return result.values(), gradient.values()

    return step


PROGRAMS = (
    Program("FlexAttention, causal blocks", flex_causal, ("torch",)),
    Program("FlexAttention, scores", flex_scored, ("torch",)),
    Program("jagged attention", jagged, ("torch",)),
)
