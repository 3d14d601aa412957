"""Results in memory of their own: decompositions and the merging of equal calls may not make two results share memory.

``x.sum(())`` of a 0-dimensional ``x`` is ``x`` as far as values go, but a new tensor to whoever writes to it.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from torch._ops import OpOverload
from torch.fx import Node

from fx_interface.dialects.prims import PrimKind, PrimOp
from primtorch_decomps.prims import Call, PrimTensor, Trace

_HIDDEN_VIEWS = frozenset({"aten::_unsafe_view", "aten::_reshape_alias", "aten::reshape"})
"""Operators that may return a view although their schema does not say so."""


def separated(
    nodes: Sequence[Any], values: Sequence[Any], inputs: Mapping[Call, Node], trace: Trace
) -> list[Any]:
    """The results ``values`` of a graph, computed for its output ``nodes``.

    Copied where they would share memory with an input or with another result although the graph's own operators do not
    make them views of one another.
    """
    owners: dict[Call, Node] = {}
    made: list[Any] = []
    for node, value in zip(nodes, values, strict=True):
        if isinstance(node, Node) and isinstance(value, PrimTensor) and value.call is not None:
            root, told = _primitive_root(value), _root(node)
            owner = inputs.get(root) or owners.setdefault(root, told)
            if owner is not told:
                value = trace.copied_anew(value)
        made.append(value)
    return made


def _root(node: Node) -> Node:
    """The node whose memory the result of ``node`` may lie in, by the operators' schemas."""
    while node.op == "call_function" and node.args and isinstance(node.args[0], Node):
        source = node.args[0]
        if not _shares_memory(source.target if node.target is operator.getitem else node.target):
            return node
        node = source
    return node


def _primitive_root(value: PrimTensor) -> Call:
    call = value.call
    assert call is not None
    while True:
        first = call.args[0] if call.args else None
        source = first.call if isinstance(first, PrimTensor) else first
        if not isinstance(source, Call):
            return call
        if not _shares_memory(source.target if call.target is operator.getitem else call.target):
            return call
        call = source


@cache
def _shares_memory(target: Any) -> bool:
    """Whether results of a call lie in the memory of its first argument."""
    if isinstance(target, PrimOp):
        return target.kind is PrimKind.VIEW
    if not isinstance(target, OpOverload):
        return False
    schema = target._schema
    return schema.name in _HIDDEN_VIEWS or any(ret.alias_info is not None for ret in schema.returns)
