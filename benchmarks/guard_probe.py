"""What guards and the frame hook cost a call, without running a graph: ours and stock's, and the models measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn


class Stack(nn.Module):
    """Linear layers, one after the other."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply them all."""
        for layer in self.layers:
            x = layer(x)
        return x


class Block(nn.Module):
    """A pre-norm transformer block of 16 parameters."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.activation, self.dropout = nn.GELU(), nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attention of one head, then the feed-forward layers."""
        h = self.first(x)
        h = nn.functional.scaled_dot_product_attention(self.query(h), self.key(h), self.value(h))
        x = x + self.dropout(self.out(h))
        h = self.down(self.activation(self.up(self.second(x))))
        return x + self.dropout(h)  # type: ignore[no-any-return]


class Transformer(nn.Module):
    """Embeddings, blocks, a norm and a head: 16 parameters a block and 4 more."""

    def __init__(self, blocks: int, width: int = 4) -> None:
        super().__init__()
        self.embedding = nn.Embedding(8, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 8, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of a batch of token sequences."""
        h = self.embedding(x)
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h))  # type: ignore[no-any-return]


def _identity(x: object) -> object:
    return x


def _called(count: int) -> float:
    """Seconds a call of a Python function that does nothing: the least of many rounds."""
    best = float("inf")
    for _ in range(50):
        started = time.perf_counter()
        for _ in range(count):
            _identity(1)
        best = min(best, time.perf_counter() - started)
    return best / count


def uncompiled_call(count: int = 5000) -> float:
    """Seconds that an installed hook adds to a call of a function that it leaves alone."""
    from dynamo_capture.hook import frame_hook

    plain = _called(count)
    with frame_hook.region(lambda frame, entries: frame_hook.SKIP):
        _identity(1)
        return _called(count) - plain


def fxstack_check(module: nn.Module, x: torch.Tensor) -> Callable[[], Any]:
    """A call that evaluates the guards of ``module`` compiled with ``x``, as the frame hook does."""
    import dynamo_capture

    wrapped = dynamo_capture.optimize(lambda graph, inputs: graph.forward, fullgraph=True)(module)
    wrapped(x)
    ((_, replacement),) = wrapped.__fxstack_capture__.report.replacements
    function, evaluator = wrapped.function, replacement.evaluator
    assert evaluator.check_call(function, (x,), {})
    return lambda: evaluator.check_call(function, (x,), {})


def stock_check(module: nn.Module, x: torch.Tensor) -> Callable[[], Any]:
    """The same for stock ``torch.compile``."""
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list

    torch.compile(module, backend="eager", fullgraph=True)(x)
    code = type(module).forward.__code__
    (entry,) = _debug_get_cache_entry_list(code)
    scope = {"self": module, "x": x}
    assert entry.guard_manager.check(scope)
    return lambda: entry.guard_manager.check(scope)
