"""A backend whose import takes guards on constants and on the identity of objects from the capture layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch.fx import GraphModule

from dynamo_capture.guard_kinds.guard_log import GuardLog

GuardLog.equals = lambda self, source, expected: None  # type: ignore[method-assign]
GuardLog.is_object = lambda self, source, expected: None  # type: ignore[method-assign]


def eager(graph_module: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Sequence[Any]]:
    return graph_module.forward
