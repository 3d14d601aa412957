"""Models that need no other library and are compiled in a second or two: for trying, and for tests."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fxstack_dashboard.suites.workload import Workload


class GatedBlocks(nn.Module):
    """Layer norm, gated GELU and residuals: little matrix work, much pointwise."""

    def __init__(self, width: int = 64, depth: int = 2) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.ups = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(depth))
        self.downs = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(depth))

    def forward(self, x: Tensor) -> Tensor:
        """(batch, width) -> (batch, width)."""
        for norm, up, down in zip(self.norms, self.ups, self.downs, strict=True):
            value, gate = up(norm(x)).chunk(2, dim=-1)
            x = x + down(value * nn.functional.gelu(gate))
        return x


def _convolutions() -> nn.Module:
    layers: list[nn.Module] = []
    for given, made in ((3, 16), (16, 32)):
        layers += [
            nn.Conv2d(given, made, 3, padding=1, bias=False),
            nn.BatchNorm2d(made),
            nn.SiLU(),
            nn.MaxPool2d(2),
        ]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * 8 * 8, 10))


class Attention(nn.Module):
    """Embedding, one layer of causal self-attention, and logits."""

    def __init__(self, vocabulary: int = 100, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, vocabulary)
        self.heads = heads

    def forward(self, tokens: Tensor) -> Tensor:
        """(batch, length) -> (batch, length, vocabulary)."""
        x = self.embed(tokens)
        batch, length, width = x.shape
        parts = self.mix(self.norm(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        logits: Tensor = self.out(x + mixed.transpose(1, 2).reshape(batch, length, width))
        return logits


def workloads() -> list[Workload]:
    """The suite."""
    return [
        Workload("gated", GatedBlocks, lambda: (torch.randn(128, 64),)),
        Workload("convolutions", _convolutions, lambda: (torch.randn(4, 3, 32, 32),)),
        Workload("attention", Attention, lambda: (torch.randint(0, 100, (4, 48)),)),
    ]
