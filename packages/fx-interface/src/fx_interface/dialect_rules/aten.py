"""The ``aten`` dialect: functional operator overloads, with views, without mutation; factories say dtype and device."""

from __future__ import annotations

import operator
from functools import cache

import torch
from torch._ops import OpOverload
from torch.fx import Node

from fx_interface.dialects.dialect import (
    Context,
    Dialect,
    broken,
    check_getitem,
    check_size_arithmetic,
    is_size_arithmetic,
)
from fx_interface.operator_facts.data_errors import is_opaque


def check_functional_call(node: Node, context: Context) -> None:
    """The rules that ``aten`` and ``prims`` share for everything but primitives."""
    if node.op != "call_function":
        broken("FXI103", node, "only call_function is allowed here", "call an operator overload instead")
    if is_size_arithmetic(node):
        check_size_arithmetic(node, context)
    elif node.target is operator.getitem:
        check_getitem(node)
    elif isinstance(node.target, OpOverload):
        _check_overload(node, node.target)
    else:
        broken("FXI103", node, "the target is neither an operator overload, nor getitem, nor size arithmetic")


def _check_overload(node: Node, op: OpOverload) -> None:
    if op._schema.is_mutable:
        broken("FXI104", node, f"{op} mutates an argument", "functionalize the graph first")
    if is_factory(op):
        for name in ("dtype", "device"):
            if node.kwargs.get(name) is None:
                broken("FXI105", node, f"the factory call leaves {name} to torch's defaults")


@cache
def is_factory(op: OpOverload) -> bool:
    """Whether the operator makes a tensor from no tensor, so that dtype and device come from its arguments alone."""
    arguments = op._schema.arguments
    if any("Tensor" in str(argument.type) for argument in arguments):
        return False
    return {"dtype", "device"} <= {argument.name for argument in arguments}


@cache
def is_pure_overload(op: OpOverload) -> bool:
    """Whether a call may be dropped when unused: a known operator with a result, no mutation, no random numbers."""
    seeded = torch.Tag.nondeterministic_seeded in op.tags
    return not op._schema.is_mutable and not seeded and bool(op._schema.returns) and not is_opaque(op)


def is_pure_functional(node: Node) -> bool:
    """Purity for everything but primitives."""
    if isinstance(node.target, OpOverload):
        return is_pure_overload(node.target)
    return node.target is operator.getitem or is_size_arithmetic(node)


ATEN = Dialect("aten", check_functional_call, is_pure_functional)
"""The dialect of forward and backward graphs."""
