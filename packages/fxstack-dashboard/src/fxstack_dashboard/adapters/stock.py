"""Stock ``torch.compile`` as a backend of the dashboard, and how many graphs and breaks it counts."""

from __future__ import annotations

from typing import Any

import torch


def compile_stock(target: Any, backend: str) -> Any:
    """``target`` under ``torch.compile``."""
    return torch.compile(target, backend=backend)


def stock_counts() -> tuple[int, int]:
    """How many graphs stock's capture has made in this process, and how many breaks it has met."""
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"]), sum(counters["graph_break"].values())


def stock_backends() -> list[str]:
    """The names that ``torch.compile(backend=...)`` takes."""
    from torch._dynamo import list_backends

    return [str(name) for name in list_backends()]
