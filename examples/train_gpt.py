"""Train a small GPT on text of this repository, eagerly and compiled, from the same weights.

python examples/train_gpt.py
"""

from __future__ import annotations

import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import fxstack

TEXT = (Path(__file__).parent.parent / "docs" / "tour.md").read_text()
CONTEXT, BATCH, WIDTH, HEADS, LAYERS, STEPS = 64, 16, 128, 4, 3, 40


class Block(nn.Module):
    """Attention to what came before, then two linear maps."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.project, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, length, width) to the same."""
        batch, length, _ = x.shape
        parts = self.project(self.before(x)).view(batch, length, 3, HEADS, WIDTH // HEADS)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.down(F.gelu(self.up(self.between(x))))


class GPT(nn.Module):
    """Characters to logits of the next character."""

    def __init__(self, letters: int) -> None:
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, letters)

    def forward(self, text: Tensor) -> Tensor:
        """(batch, length) of letters to (batch, length, letters)."""
        x = self.letters(text) + self.places(torch.arange(text.shape[1]))
        logits: Tensor = self.head(self.norm(self.blocks(x)))
        return logits


def train(*, compiled: bool) -> list[float]:
    """The losses of some steps."""
    torch.manual_seed(0)
    alphabet = sorted(set(TEXT))
    data = torch.tensor([alphabet.index(letter) for letter in TEXT])
    model = GPT(len(alphabet))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    run = fxstack.compile(model) if compiled else model
    losses, times = [], []
    for _ in range(STEPS):
        start = time.perf_counter()
        starts = torch.randint(0, len(data) - CONTEXT - 1, (BATCH,))
        batch = torch.stack([data[i : i + CONTEXT + 1] for i in starts])
        loss = F.cross_entropy(run(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        times.append(time.perf_counter() - start)
    name = "compiled" if compiled else "eager"
    step = sorted(times)[len(times) // 2] * 1e3
    print(
        f"{name:8} loss {losses[0]:.3f} -> {losses[-1]:.3f}, a step {step:.1f} ms, the first {times[0]:.2f} s"
    )
    return losses


def main() -> None:
    """Both losses fall, and agree to rounding that training has magnified."""
    torch.set_num_threads(1)
    eager, compiled = train(compiled=False), train(compiled=True)
    assert compiled[-1] < 0.8 * compiled[0]
    assert all(abs(a - b) < 0.02 for a, b in zip(eager, compiled, strict=True))


if __name__ == "__main__":
    main()
