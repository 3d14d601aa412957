"""The capture layer alone: count the operators that a model calls.

pip install dynamo-capture
python examples/count_operators.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.fx import GraphModule

from dynamo_capture import optimize

COUNTED: Counter[str] = Counter()


def counting(graph_module: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Sequence[Any]]:
    """A backend that counts what is called, and runs the graph as it is."""
    for node in graph_module.graph.nodes:
        if node.op in ("call_function", "call_method"):
            COUNTED[getattr(node.target, "__name__", str(node.target))] += 1
    return graph_module.forward


def main() -> None:
    """Count the operators of a small transformer layer."""
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    x = torch.randn(2, 10, 32)
    found = optimize(counting)(layer)(x)
    assert torch.equal(found, layer(x))
    for name, count in COUNTED.most_common():
        print(f"{count:3} {name}")
    assert COUNTED["linear"] == COUNTED["layer_norm"] == 2


if __name__ == "__main__":
    main()
