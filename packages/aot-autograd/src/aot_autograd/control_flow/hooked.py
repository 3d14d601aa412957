"""Where a program is cut so that a tensor with a hook is a result of one part and an input of the next.

    y = f(x); y.register_hook(h); z = g(y)      cut before g:  autograd calls h between the two backwards

In one part the gradient of ``y`` would be inside of a compiled backward, and the program would run again to give it.
Parts do not begin in blocks of modes: a block of autocast is left before the cut and entered again behind it.
"""

from __future__ import annotations

import operator

from torch.fx import GraphModule, Node

from aot_autograd.control_flow.buckets import possible_cuts
from fx_interface.graph import HOOKED_KEY
from fx_interface.torch_internals.modes import BLOCKS, enter_autocast

_LEAVING = frozenset(BLOCKS.values())


def hook_cuts(graph_module: GraphModule) -> frozenset[Node]:
    """The nodes that begin another part: behind each hooked tensor the first that can, if something uses it there.

    Blocks of autocast around hooked tensors are written as two, which is the same program.
    """
    hooked = [node for node in graph_module.graph.nodes if node.meta.get(HOOKED_KEY)]
    for node in hooked:
        _split_blocks(graph_module, node)
    nodes = list(graph_module.graph.nodes)
    possible = sorted(possible_cuts(nodes)) if hooked else []
    at = {node: position for position, node in enumerate(nodes)}
    found: set[Node] = set()
    for node in hooked:
        cut = next((place for place in possible if place > at[node]), None)
        if cut is not None and any(at[user] >= cut for user in node.users if user.op != "output"):
            found.add(nodes[cut])
    return frozenset(found)


def _split_blocks(graph_module: GraphModule, hooked: Node) -> None:
    """Leave the blocks that are open at a node, and enter them again, before what comes behind it."""
    blocks = _open_at(graph_module, hooked)
    if not blocks or any(block.target is not enter_autocast for block in blocks):
        return
    behind = hooked.next
    while behind.target is operator.getitem:
        behind = behind.next
    graph = graph_module.graph
    leaving = {block: [user for user in block.users if user.target in _LEAVING] for block in blocks}
    with graph.inserting_before(behind):
        for block in reversed(blocks):
            graph.call_function(BLOCKS[enter_autocast], (block,))
        for block in blocks:
            again = graph.call_function(enter_autocast, block.args, block.kwargs)
            again.meta.update(block.meta)
            for user in leaving[block]:
                user.replace_input_with(block, again)
    graph_module.recompile()


def _open_at(graph_module: GraphModule, node: Node) -> list[Node]:
    """The nodes that entered the blocks in which a node is, the outermost first."""
    found: list[Node] = []
    for one in graph_module.graph.nodes:
        if one.target in BLOCKS:
            found.append(one)
        elif one.target in _LEAVING and found:
            found.pop()
        if one is node:
            return found
    return []
