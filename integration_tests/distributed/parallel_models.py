"""A small language model, and how its modules are spread over processes."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.tensor import Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel


class Block(nn.Module):
    """A layer of a transformer."""

    def __init__(self, size: int = 8, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(size), nn.LayerNorm(size)
        self.query, self.key, self.value, self.out = (nn.Linear(size, size, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(size, 2 * size), nn.Linear(2 * size, size)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        q, k, v = (
            part(y).unflatten(-1, (-1, 4)).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.second(x))))


class Model(nn.Module):
    """A small language model."""

    def __init__(self, blocks: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(16, 8)
        self.blocks = nn.Sequential(*(Block() for _ in range(blocks)))
        self.head = nn.Linear(8, 16)

    def forward(self, tokens: Tensor) -> Any:
        return self.head(self.blocks(self.embedding(tokens)))


TENSOR = {
    "query": ColwiseParallel(),
    "key": ColwiseParallel(),
    "value": ColwiseParallel(),
    "out": RowwiseParallel(),
    "up": ColwiseParallel(),
    "down": RowwiseParallel(),
}
SEQUENCE = {
    **TENSOR,
    "first": SequenceParallel(),
    "second": SequenceParallel(),
    "query": ColwiseParallel(input_layouts=Shard(1)),
    "key": ColwiseParallel(input_layouts=Shard(1)),
    "value": ColwiseParallel(input_layouts=Shard(1)),
    "out": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
    "up": ColwiseParallel(input_layouts=Shard(1)),
    "down": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
}
