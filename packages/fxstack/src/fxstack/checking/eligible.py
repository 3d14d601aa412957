"""Which calls of a graph can be run again without anybody noticing, and why others cannot."""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch._ops import OpOverload, OpOverloadPacket
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree
from torch.utils._device import DeviceContext

_OWN = ("torch", "_operator", "operator", "math", "builtins", "fx_interface")
"""Packages whose functions do nothing but compute."""
_NAMESPACES = ("aten", "prims", "prim", "inductor")
"""Operator libraries likewise: what a custom operator does beside computing is not known."""
_PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


def reason_of_graph(graph_module: GraphModule) -> str | None:
    """Why no call of this graph may be run twice; None if it may."""
    for module in _bodies(graph_module):
        for node in module.graph.nodes:
            found = _reason_of_node(node)
            if found is not None:
                return found
    return None


def reason_of_call(inputs: Sequence[Any]) -> str | None:
    """Why this call may not be run twice, or cannot be copied; None if it may and can."""
    if torch._C._len_torch_dispatch_stack() > 0:
        return "a dispatch mode is active"
    if torch._C._functorch.maybe_current_level() is not None:
        return "a function transform is active"
    if torch.is_anomaly_enabled():
        return "anomaly detection is on"
    for index in range(torch._C._len_torch_function_stack()):
        mode = torch._C._get_function_stack_at(index)
        if not isinstance(mode, DeviceContext):
            return f"the mode {type(mode).__name__} is active"
    return next((found for value in inputs if (found := _reason_of_input(value)) is not None), None)


def _bodies(graph_module: GraphModule) -> Iterator[GraphModule]:
    yield graph_module
    for child in graph_module.modules():
        if isinstance(child, GraphModule) and child is not graph_module:
            yield child


def _reason_of_node(node: Node) -> str | None:
    if node.op == "call_module":
        return f"it calls the module {node.target}"
    if node.op == "call_function" and not _only_computes(node.target):
        return f"it calls {torch.typename(node.target)}"
    for value in pytree.tree_leaves((node.args, node.kwargs)):
        if isinstance(value, (types.FunctionType, types.MethodType)) and not _only_computes(value):
            return f"it passes the function {value.__qualname__} on"
        if isinstance(value, torch.Generator):
            return "it draws from a generator of its own"
    return None


def _only_computes(target: Any) -> bool:
    if isinstance(target, OpOverload):
        return target.namespace in _NAMESPACES
    if isinstance(target, OpOverloadPacket):
        return target._qualified_op_name.split("::")[0] in _NAMESPACES
    module = getattr(target, "__module__", None)
    if module is None:  # methods of builtin classes
        module = getattr(getattr(target, "__objclass__", None), "__module__", "builtins")
    return str(module).split(".")[0] in _OWN


def _reason_of_input(value: Any) -> str | None:
    if not isinstance(value, torch.Tensor):
        plain = isinstance(value, (int, float, complex, bool, str, type(None), torch.dtype, torch.device))
        return None if plain else f"an input is a {torch.typename(type(value))}"
    if type(value) not in _PLAIN:
        return f"an input is a {torch.typename(type(value))}"
    if value.layout is not torch.strided or value.is_quantized:
        return f"an input has the layout {value.layout}"
    if value.device.type not in ("cpu", "cuda"):
        return f"an input is on {value.device}"
    return None
