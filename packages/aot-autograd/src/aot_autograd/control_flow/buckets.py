"""Where a program is cut so that its parameters' gradients come in buckets, one while the next is being computed.

    a = f(x, w1); b = g(a, w2)      cut before b:  autograd has w2's gradient when g's backward has run, before f's

Each part is a node of autograd's graph, so that whoever waits for gradients (``DistributedDataParallel``, which sends
them) gets those of the last part while the others' backward runs.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence

import torch
from torch._ops import OpOverload
from torch.fx import GraphModule, Node

from aot_autograd.control_flow.cut import is_size
from fx_interface.graph import placeholders
from fx_interface.signature import InputKind, signature_of
from fx_interface.symbols import product
from fx_interface.tensor_spec import SPEC_KEY, SymSpec, TensorSpec
from fx_interface.torch_internals.modes import BLOCKS, CHANGING

_LEAVING = frozenset(BLOCKS.values())
_IN_PLACE = frozenset(
    getattr(operator, name)
    for name in dir(operator)
    if name.startswith("i") and f"__{name}__" in dir(operator)
) - {operator.index, operator.invert, operator.inv}


def bucket_cuts(
    graph_module: GraphModule, trained: Sequence[bool], capacities: Sequence[int]
) -> frozenset[Node]:
    """The nodes that begin another part, so that the gradients of each part's parameters, from the last part on, are at
    least ``capacities`` bytes in sum; the last of these holds for all further parts.

    ``trained``: for each input whether it requires grad.
    """
    nodes = list(graph_module.graph.nodes)
    sizes = _bytes_by_first_use(graph_module, trained, nodes)
    possible = possible_cuts(nodes)
    cuts: list[Node] = []
    left, gathered = sum(sizes.values()), 0
    for position in range(len(nodes) - 1, 0, -1):
        gathered += sizes.get(position, 0)
        wanted = capacities[min(len(cuts), len(capacities) - 1)]
        if gathered >= wanted and left > gathered and position in possible:
            cuts.append(nodes[position])
            left, gathered = left - gathered, 0
    return frozenset(cuts)


def _bytes_by_first_use(
    graph_module: GraphModule, trained: Sequence[bool], nodes: Sequence[Node]
) -> dict[int, int]:
    """For positions of nodes the bytes of the parameters that nothing uses earlier: their gradient comes last there."""
    signature = signature_of(graph_module)
    places = placeholders(graph_module.graph)
    declared = () if signature is None else signature.inputs
    at = {node: position for position, node in enumerate(nodes)}
    found: dict[int, int] = {}
    for node, decl, is_trained in zip(places, declared, trained, strict=False):
        spec = node.meta.get(SPEC_KEY)
        if not is_trained or decl.kind is not InputKind.PARAMETER or not isinstance(spec, TensorSpec):
            continue
        count = product(spec.sizes)
        if node.users and isinstance(count, int):
            first = min(at[user] for user in node.users)
            found[first] = found.get(first, 0) + count * spec.dtype.itemsize
    return found


def possible_cuts(nodes: Sequence[Node]) -> set[int]:
    """The positions at which a part may begin: no block of a mode is open, only tensors and sizes are handed on,
    nothing that is handed on is written to, and the program differentiates nothing behind it that was computed before:
    what a part is given has no history there."""
    at = {node: position for position, node in enumerate(nodes)}
    refused = [0] * (len(nodes) + 1)

    def refuse(first: int, last: int) -> None:
        refused[first] += 1
        refused[last + 1] -= 1

    entered: list[int] = []
    for position, node in enumerate(nodes):
        if node.target in BLOCKS:
            entered.append(position)
        elif node.target in _LEAVING and entered:
            refuse(entered.pop() + 1, position)
        elif node.target in CHANGING:
            refuse(0, len(nodes) - 1)
        elif node.target is torch.autograd.grad:
            refuse(0, position)
        if node.op in ("placeholder", "get_attr", "output") or not node.users:
            continue
        is_handed_on = isinstance(node.meta.get(SPEC_KEY), TensorSpec) or is_size(node)
        if not is_handed_on and node.target not in BLOCKS:
            refuse(position + 1, max(at[user] for user in node.users))
    for node in nodes:
        for touched in _written(node):
            if touched.op != "placeholder":
                refuse(at[touched] + 1, at[node])
    begin = next((p for p, n in enumerate(nodes) if n.op not in ("placeholder", "get_attr")), len(nodes))
    depth, found = 0, set()
    for position in range(len(nodes)):
        depth += refused[position]
        if not depth and position > begin and nodes[position].op.startswith("call_"):
            found.add(position)
    return found


def _written(node: Node) -> Iterator[Node]:
    """What a node writes to, and what that may be a view of."""
    if not _writes(node):
        return
    pending = list(node.all_input_nodes)
    seen: set[Node] = set()
    while pending:
        one = pending.pop()
        if one in seen or isinstance(one.meta.get(SPEC_KEY), SymSpec):
            continue
        seen.add(one)
        yield one
        first = one.args[0] if one.args and one.op.startswith("call_") else None
        if isinstance(first, Node):
            pending.append(first)


def _writes(node: Node) -> bool:
    if not node.op.startswith("call_") or node.op == "call_module":
        return False
    target = node.target
    if isinstance(target, OpOverload):
        return target._schema.is_mutable
    if target in _IN_PLACE or "out" in node.kwargs or node.kwargs.get("inplace"):
        return True
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    return (name.endswith("_") and not name.endswith("__")) or name in ("setitem", "__setitem__")
