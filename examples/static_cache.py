"""Decode with a cache of fixed size: one graph serves each step, since the position is a tensor.

python examples/static_cache.py
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import fxstack

WIDTH, HEADS, MOST, LETTERS = 64, 4, 32, 50


class Decoder(nn.Module):
    """One attention layer with a cache of keys and values, written in place."""

    keys: Tensor
    values: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.letters, self.project = nn.Embedding(LETTERS, WIDTH), nn.Linear(WIDTH, 3 * WIDTH)
        self.head = nn.Linear(WIDTH, LETTERS)
        self.register_buffer("keys", torch.zeros(1, HEADS, MOST, WIDTH // HEADS))
        self.register_buffer("values", torch.zeros(1, HEADS, MOST, WIDTH // HEADS))

    def forward(self, letter: Tensor, place: Tensor) -> Tensor:
        """``letter`` (1, 1) and its place (1,) to logits (1, letters)."""
        q, k, v = self.project(self.letters(letter)).view(1, 1, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        self.keys.index_copy_(2, place, k)
        self.values.index_copy_(2, place, v)
        seen = (torch.arange(MOST) <= place)[None, None, None]
        mixed = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=seen)
        logits: Tensor = self.head(mixed.transpose(1, 2).reshape(1, WIDTH))
        return logits


@torch.no_grad()
def generate(model: nn.Module) -> list[int]:
    """The most likely letter after each."""
    letter, made = torch.tensor([[1]]), []
    for place in range(MOST):
        letter = model(letter, torch.tensor([place])).argmax(-1, keepdim=True)
        made.append(int(letter))
    return made


def main() -> None:
    """The compiled decoder makes the same text, in one version of one graph."""
    torch.manual_seed(0)
    model = Decoder().eval()
    wanted = generate(model)
    model.keys.zero_()
    model.values.zero_()
    with fxstack.recording() as record:
        found = generate(fxstack.compile(model, fullgraph=True))
    graphs = sum(graph["dialect"] == "torch" for graph in record.data()["graphs"])
    print(f"{MOST} letters, {graphs} graph: {found}")
    assert found == wanted
    assert graphs == 1


if __name__ == "__main__":
    main()
