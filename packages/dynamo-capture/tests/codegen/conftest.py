"""Programs that leave made objects behind, captured whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import dynamo_capture


@pytest.fixture
def captured(fresh) -> Callable[..., Any]:
    """What the replacement code of a program gives, which is one graph."""

    def run(program: Callable[..., Any], *args: Any) -> Any:
        given = args or (torch.arange(3.0),)
        return dynamo_capture.optimize(lambda graph, examples: graph.forward, fullgraph=True)(fresh(program))(
            *given
        )

    return run
