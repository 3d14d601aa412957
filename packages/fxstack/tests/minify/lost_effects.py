"""A backend whose import takes changes of containers from the capture layer's side effects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch.fx import GraphModule

from dynamo_capture.side_effects.effects import Effects

Effects.mutates = lambda self, value: None  # type: ignore[method-assign]


def eager(graph_module: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Sequence[Any]]:
    return graph_module.forward
