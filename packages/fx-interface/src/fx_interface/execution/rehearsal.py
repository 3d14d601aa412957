"""Whether a graph raises, found out on copies of what it writes to.

Content can be put back after a failure, but not what autograd has noted of a tensor that required grad, nor all forms.
A graph that does one of these before an operator that may fail is run on stand-ins first. What raises there has changed
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType
from typing import Any, Final, TypeAlias

import torch
from torch._ops import OpOverload
from torch.autograd import Function
from torch.fx import Graph, GraphModule, Node

from fx_interface.backend import CompiledGraph
from fx_interface.torch_internals.graph_source import forward_of, release_source
from fx_interface.torch_internals.modes import restored
from fx_interface.torch_internals.torch_state import saved_tensors_are_watched

Rehearsal: TypeAlias = Callable[[Sequence[Any], Sequence[int]], None]
"""Runs on the inputs, those at the given positions copied, and raises what the graph would raise."""

_PLAIN: Final = frozenset({torch.Tensor, torch.nn.Parameter, torch.nn.Buffer})
_OWN: Final = ("torch", "_operator", "math", "fx_interface")
_ATEN: Final = frozenset({"aten", "prim", "prims"})


def rehearsing(run: CompiledGraph) -> Rehearsal:
    """Rehearse by a call of ``run``, which must do nothing that outlasts it but to its inputs and torch's modes."""

    def rehearse(inputs: Sequence[Any], written: Sequence[int]) -> None:
        if saved_tensors_are_watched():
            return  # the program would see what is saved twice
        given = stand_ins(inputs, written)
        if given is not None:
            with restored():
                run(*given)

    return rehearse


def rehearsal_of(module: GraphModule) -> Rehearsal | None:
    """Rehearse the whole of a graph; None if it calls what is not torch's, which may have effects."""
    return rehearsing(forward_of(module)) if all(map(_is_own, module.graph.nodes)) else None


def shortened(module: GraphModule, last: Node, unneeded: Collection[Node]) -> GraphModule | None:
    """The graph up to ``last``, without those of ``unneeded`` whose results nothing uses then; None if it calls
    what is not torch's, which may have effects."""
    graph, copies = Graph(), dict[Node, Node]()
    for node in module.graph.nodes:
        if not _is_own(node):
            return None
        copies[node] = graph.node_copy(node, copies.__getitem__)
        if node is last:
            break
    graph.output(())
    for node in reversed(copies):
        if node in unneeded and not copies[node].users:
            graph.erase_node(copies[node])
    made = GraphModule(module, graph)
    release_source(made)
    return made


def _is_own(node: Node) -> bool:
    target = node.target
    if node.op != "call_function":
        return node.op != "call_module"
    if target is getattr:  # of a tensor: ``x.mT``
        return True
    if isinstance(target, OpOverload):
        return target.namespace in _ATEN
    known = isinstance(target, (FunctionType, BuiltinFunctionType, MethodDescriptorType))
    module = getattr(target, "__module__", None) or "torch"
    return known and module.partition(".")[0] in _OWN


def stand_ins(inputs: Sequence[Any], written: Sequence[int]) -> list[Any] | None:
    """The inputs; for those at ``written``, and others in the same memory, tensors of equal content, form and kind of
    history in memory of their own. None where a tensor is not torch's own kind."""
    tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
    if not all(type(x) in _PLAIN and x.layout is torch.strided for x in tensors):
        return None
    if any(x.is_conj() or x.is_neg() for x in tensors):
        return None
    copies = _Copies([inputs[index] for index in written])
    return [copies.of(x) if isinstance(x, torch.Tensor) else x for x in inputs]


class _Copies:
    """One copy of each memory that is written to, and the tensors in it."""

    def __init__(self, written: Sequence[torch.Tensor]) -> None:
        storages = [tensor.untyped_storage() for tensor in written]
        self._storages = {storage._cdata: _copied(storage) for storage in storages}
        self._made: dict[int, torch.Tensor] = {}

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.untyped_storage()._cdata not in self._storages:
            return tensor
        made = self._made.get(id(tensor))
        if made is None:
            made = self._made[id(tensor)] = self._copy(tensor)
        return made

    def _copy(self, tensor: torch.Tensor) -> torch.Tensor:
        base = tensor._base
        if base is not None and base.dtype == tensor.dtype and base.is_inference() == tensor.is_inference():
            own = self.of(base)
            with torch.inference_mode(tensor.is_inference()), torch.set_grad_enabled(not tensor.is_leaf):
                return own.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
        with torch.inference_mode(tensor.is_inference()):
            made = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
            storage = self._storages[tensor.untyped_storage()._cdata]
            made.set_(storage, tensor.storage_offset(), tensor.shape, tensor.stride())
        if not tensor.requires_grad:
            return made
        made.requires_grad_(tensor.is_leaf)
        return made if tensor.is_leaf else _followed(made)


def _copied(storage: torch.UntypedStorage) -> torch.UntypedStorage:
    copy: torch.UntypedStorage = storage.clone()  # type: ignore[no-untyped-call]
    return copy


def _followed(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, as if an operation that autograd follows had computed it."""
    with torch.enable_grad():
        start = torch.zeros((), requires_grad=True)
        made: torch.Tensor = _Follow.apply(tensor, start)  # type: ignore[no-untyped-call]
    return made


class _Follow(Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
        ctx.mark_dirty(tensor)
        return tensor

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[None, None]:
        return None, None
