"""What the installed package must do at least; ``nox -s release-check`` runs it outside of the repository."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dynamo_capture import optimize

GRAPHS: list[Any] = []
SEEN: list[float] = []


def backend(graph_module: Any, example_inputs: Any) -> Any:
    """Keeps the graph, and runs it as it is."""
    GRAPHS.append(graph_module)
    return graph_module.forward


def program(x: Tensor) -> Tensor:
    """Breaks once, where Python has to know a number."""
    y = torch.tanh(x)
    SEEN.append(y.sum().item())
    return y * len(SEEN)


def main() -> None:
    """Captured around the graph break, the program does what it does in eager; a second call compiles nothing."""
    fast, x = optimize(backend)(program), torch.randn(5)
    expected = torch.tanh(x)
    assert torch.equal(fast(x), expected)
    assert torch.equal(fast(x), expected * 2)
    count = len(GRAPHS)
    assert torch.equal(fast(x), expected * 3)
    assert count >= 2
    assert SEEN == [expected.sum().item()] * 3


if __name__ == "__main__":
    main()
