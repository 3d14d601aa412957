"""Inputs that are gone when a program is to run again: results of earlier compiled programs, which run again first.

After a graph break, what one compiled function computed is another's input, and nobody may hold it any more. Autograd's
graph still leads to the node of the function that made it, and that node remembers its own inputs.
"""

from __future__ import annotations

from typing import Any

import torch

from aot_autograd.runtime.hooks.chosen_tensors import edges_of_inputs

_OWN_NODES = frozenset({"_BetweenBackward", "_SpreadBackward"})
"""Nodes between a compiled function's result and the compiled function's node: each hands on its first gradient."""


def made_again(node: Any, index: int, version: int) -> torch.Tensor | None:
    """Input ``index`` of a compiled function's ``node``, as it was at that version; None where that cannot be told.

    Where gradients are on, it has the history that it had.
    """
    edge: Any = edges_of_inputs(node).get(index)
    while edge is not None and edge[0].name() in _OWN_NODES:
        edge = edge[0].next_functions[0]
    if edge is None or edge[0] is None:
        return None
    maker = getattr(getattr(edge[0], "_forward_cls", None), "result_again", None)
    if maker is None:
        return None
    made: torch.Tensor | None = maker(*edge)
    if made is None or made._version != version:
        return None
    return made if torch.is_grad_enabled() else made.detach().requires_grad_()
