"""Hooks of inputs that a backward does not reach: eager calls none of them.

A compiled function is one node of autograd's graph. Where results are differentiated that do not depend on an input,
the node has nothing for it, and autograd's engine calls the tensor's hooks with None all the same. So the hooks of such
a tensor are made to look whether there is a gradient, before the engine comes to them. Where autograd reaches a tensor
and has no gradient for it, because an autograd function returned None, eager calls its hooks with None.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.autograd.graph import get_gradient_edge

from aot_autograd.runtime.hooks.result_hooks import if_gradient, waits_for_several
from fx_interface.python_runtime.own_references import OwnReference


class _Arrival:
    """The first hook of a leaf: notes whether there is a gradient, for the hooks that run after accumulation."""

    __slots__ = ("arrived",)

    def __init__(self) -> None:
        self.arrived = True

    def __call__(self, gradient: torch.Tensor | None) -> None:
        self.arrived = gradient is not None


class _IfAccumulated:
    """A hook on accumulated gradients that is called where one was accumulated."""

    __slots__ = ("arrival", "hook")

    def __init__(self, hook: Callable[[Any], Any], arrival: _Arrival) -> None:
        self.hook = hook
        self.arrival = arrival

    def __call__(self, tensor: torch.Tensor) -> Any:
        return self.hook(tensor) if self.arrival.arrived else None


class _IfCounted:
    """A hook of torch's that waits for several tensors and counts the calls: without a gradient it is called if the
    engine says that it comes to this one. Of a leaf whose gradient is asked for (``torch.autograd.grad``) it says
    nothing, and torch refuses such hooks."""

    __slots__ = ("hook", "tensor")

    def __init__(self, hook: Callable[[Any], Any], tensor: torch.Tensor) -> None:
        self.hook = hook
        self.tensor = OwnReference(tensor)

    def __call__(self, gradient: torch.Tensor | None) -> Any:
        tensor = self.tensor()
        if gradient is None and tensor is not None:
            try:
                _will_execute(get_gradient_edge(tensor).node)
            except RuntimeError:
                return None
        return self.hook(gradient)


_will_execute = torch._C._will_engine_execute_node
_seen = threading.local()


def guard_hooks(ctx: Any, inputs: Sequence[int], others: Iterable[Any]) -> None:
    """Before a node hands on its gradients: the hooks of these ``inputs``, which eager does not reach, are not called.

    ``others``: inputs that may be no leaves, as far as they are alive.
    """
    edges = zip(ctx._forward_cls.tensor_inputs, ctx.next_functions, strict=True)
    absent = {node for index, (node, _) in edges if node is not None and index in inputs}
    for node in absent:
        _guard_leaves(node)
    for tensor in others:
        if isinstance(tensor, torch.Tensor) and tensor._backward_hooks and tensor.grad_fn in absent:
            _guard(tensor)


def _guard_leaves(node: Any) -> None:
    """The leaves that a node leads to: without a gradient, it hands on none. Each node is looked at once a backward."""
    task = torch._C._current_graph_task_id()
    if getattr(_seen, "task", None) != task:
        _seen.task, _seen.nodes = task, set()
    pending = [node]
    while pending:
        following = pending.pop()
        if following is None or following in _seen.nodes:
            continue
        _seen.nodes.add(following)
        leaf = getattr(following, "variable", None)
        if leaf is not None:
            _guard(leaf)
        pending += [after for after, _ in following.next_functions]


def _guard(tensor: torch.Tensor) -> None:
    after: dict[int, Any] | None = getattr(tensor, "_post_accumulate_grad_hooks", None)
    if after and not all(isinstance(hook, _IfAccumulated) for hook in after.values()):
        arrival = _Arrival()
        tensor.register_hook(arrival)  # type: ignore[no-untyped-call]
        for key, hook in after.items():
            plain = hook.hook if isinstance(hook, _IfAccumulated) else hook
            after[key] = _IfAccumulated(plain, arrival)
    hooks: dict[int, Any] = tensor._backward_hooks or {}
    for key, hook in hooks.items():
        if isinstance(hook, (_Arrival, _IfCounted)):
            continue
        guarded = if_gradient(hook)
        if guarded is hook and waits_for_several(hook):
            guarded = _IfCounted(hook, tensor)
        dict.__setitem__(hooks, key, guarded)
