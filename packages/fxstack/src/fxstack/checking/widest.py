"""Programs in float64, which is the referee's own dtype: how far roundings move what they compute.

Nothing is more exact than eager there, so that its distance is 0, and other code that is as good is farther off. Runs
in which each operator's result is moved by a rounding tell how far.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils import _pytree as pytree

from fx_interface.torch_internals.dispatch_mode import DispatchMode
from fxstack.verification.compare import nudge_

_WIDEST = (torch.float64, torch.complex128)


def is_widest(value: Any) -> bool:
    """Whether a value has as many digits as the referee."""
    return isinstance(value, Tensor) and value.dtype in _WIDEST


class Rounding(DispatchMode):
    """While it is active, what operators compute in float64 is moved by a rounding, up or down by ``generator``."""

    exact = None
    """It tells of nothing more exact."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self._generator = generator

    def dispatch(self, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run ``func``; what it only shows, or has made without arithmetic, stays."""
        result = func(*args, **kwargs)
        given = {id(x) for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, Tensor)}
        reads = any(is_widest(x) for x in pytree.tree_leaves((args, kwargs)))
        if reads and all(returned.alias_info is None for returned in func._schema.returns):
            for made in pytree.tree_leaves(result):
                if is_widest(made) and id(made) not in given and made.layout is torch.strided:
                    nudge_(made, self._generator)
        return result
