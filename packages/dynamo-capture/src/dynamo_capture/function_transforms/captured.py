"""What a graph may hold that is captured while transforms of ``torch.func`` are at work around the function.

    torch.func.vmap(optimize(backend)(f))(x)      # ``f`` is captured with a wrapped ``x``

The graph runs as torch's own operators at the levels that are open, so each of them sees what it would see of the
function. What would be another program there is left to Python: parts with a derivative or a rule of their own, which
transforms ask in ways of their own, and what a program asks of, or does to, autograd.
"""

from __future__ import annotations

from dynamo_capture.foundation.break_kinds import OTHER_INTERPRETER
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values.base import Context
from fx_interface.regions import REGIONS, gradient, mapped, pushed

_OPEN_LEVELS = frozenset({gradient, pushed, mapped})
"""The regions that are transforms themselves."""


def check_graph(tx: Context) -> None:
    """A graph break where the finished trace may mean something else in the transforms around the function."""
    output = tx.output
    for node in output.graph.nodes:
        if node.op == "call_function" and node.target in REGIONS and node.target not in _OPEN_LEVELS:
            raise _refused(f"{REGIONS[node.target].name} is called")
    if output.makes_leaf or output.lasts:
        raise _refused("a tensor's history is changed, or gradients are asked for of a tensor that is made")
    if tx.effects.hooks:
        raise _refused("a hook is registered on a tensor")
    if tx.effects and not output.is_repeatable:
        raise _refused("objects are changed, and tensors or the random state as well")


def _refused(what: str) -> GraphBreak:
    return GraphBreak(OTHER_INTERPRETER, f"{what} in a function that a transform of torch.func is applied to")
