"""Compares a function with its compiled form, in each of several processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

import fxstack
from fx_interface import INTERFACE_VERSION

Program = Callable[[int], Mapping[str, Any]]


class Counting:
    """The default backend, with a list of the graphs that it compiled."""

    interface_version = INTERFACE_VERSION

    def __init__(self, name: str = "inductor") -> None:
        self.backend = fxstack.backend(name)
        self.graphs: list[Any] = []

    def __call__(self, graph_module: Any, example_inputs: Any) -> Any:
        self.graphs.append(graph_module)
        return self.backend(graph_module, example_inputs)


def tensors(value: Any) -> list[torch.Tensor]:
    """All tensors in a result; those that torch has not waited for are."""
    found = [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]
    return [leaf.trigger_wait() if hasattr(leaf, "trigger_wait") else leaf for leaf in found]


def differences(found: Any, expected: Any, tolerance: float = 0.0) -> list[str]:
    """What differs between two results."""
    one, other = ([t.detach() for t in tensors(side)] for side in (found, expected))
    if len(one) != len(other):
        return [f"{len(one)} tensors for {len(other)}"]
    return [
        f"tensor {index}: {a.tolist()} for {b.tolist()}"
        for index, (a, b) in enumerate(zip(one, other, strict=True))
        if a.shape != b.shape or not torch.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
    ]


def compared(
    function: Callable[..., Any],
    make: Callable[[int], Sequence[Any]],
    *,
    fullgraph: bool = True,
    calls: int = 2,
) -> Mapping[str, Any]:
    """Results and arguments after each call, eager and compiled; ``make`` gives the arguments of a call."""
    counting = Counting()
    compiled = fxstack.compile(function, backend=counting, fullgraph=fullgraph)
    wrong = []
    for call in range(calls):
        given, again = list(make(call)), list(make(call))
        expected = function(*given)
        found = compiled(*again)
        wrong += differences((found, again), (expected, given), 1e-5)
    return {"wrong": wrong, "graphs": len(counting.graphs)}
