"""Hooks of results: called where a gradient arrives, although the results of a compiled function share one node.

In a backward of some results autograd calls the node of all of them, and what is registered there for each of them,
with None where no gradient arrives. Eager reaches no such tensor and calls none of its hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch


class IfGradient:
    """A hook that is called with a gradient only."""

    __slots__ = ("hook",)

    def __init__(self, hook: Callable[[Any], Any]) -> None:
        self.hook = hook

    def __call__(self, gradient: torch.Tensor | None) -> Any:
        return None if gradient is None else self.hook(gradient)


def if_gradient(hook: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """``hook``, called with a gradient only. What torch itself registers to wait for several tensors' gradients counts
    the calls, and takes None as what eager has for a tensor that is not reached."""
    name = getattr(hook, "__qualname__", "")
    waits = name.startswith("register_multi_grad_hook.") and hook.__module__ == "torch.autograd.graph"
    return hook if waits or isinstance(hook, IfGradient) else IfGradient(hook)


class ResultHooks(dict[int, Any]):
    """The hooks of one result, by the numbers of their handles."""

    __slots__ = ("__weakref__",)

    def __setitem__(self, key: int, hook: Callable[[Any], Any]) -> None:
        dict.__setitem__(self, key, if_gradient(hook))


def prepare_hooks(results: Sequence[Any], indices: Sequence[int], node: Any) -> None:
    """Before anybody has registered a hook: as the first ``register_hook`` does, which then finds the dictionary."""
    register = node._register_hook_dict
    for index in indices:
        result = results[index]
        result._backward_hooks = ResultHooks()
        register(result)
