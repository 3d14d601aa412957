"""Where a program is cut so that a tensor with a hook is a result of one part and an input of the next.

    y = f(x); y.register_hook(h); z = g(y)      cut before g:  autograd calls h between the two backwards

In one part the gradient of ``y`` would be inside of a compiled backward, and the program would run again to give it.
"""

from __future__ import annotations

from torch.fx import GraphModule, Node

from aot_autograd.control_flow.buckets import possible_cuts
from fx_interface.graph import HOOKED_KEY


def hook_cuts(graph_module: GraphModule) -> frozenset[Node]:
    """The nodes that begin another part: behind each hooked tensor the first that can, if something uses it there."""
    nodes = list(graph_module.graph.nodes)
    hooked = [position for position, node in enumerate(nodes) if node.meta.get(HOOKED_KEY)]
    if not hooked:
        return frozenset()
    possible = sorted(possible_cuts(nodes))
    at = {node: position for position, node in enumerate(nodes)}
    found: set[Node] = set()
    for position in hooked:
        cut = next((place for place in possible if place > position), None)
        used = [at[user] for user in nodes[position].users if user.op != "output"]
        if cut is not None and used and max(used) >= cut:
            found.add(nodes[cut])
    return frozenset(found)
