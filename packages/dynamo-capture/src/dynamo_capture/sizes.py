"""Symbolic sizes as torch sees them: our algebra behind ``torch.SymInt``."""

from __future__ import annotations

from typing import Any

import torch
from fx_interface.symbols import Expr, IntLike, ShapeEnv


def as_torch(value: IntLike, env: ShapeEnv) -> Any:
    """An int, or a ``torch.SymInt`` that stands for ``value``."""
    if isinstance(value, int):
        return value
    raise NotImplementedError


def from_torch(value: Any) -> IntLike:
    """The other way."""
    if isinstance(value, torch.SymInt):
        found = value.node.expr
        assert isinstance(found, (int, Expr))
        return found
    return int(value)
