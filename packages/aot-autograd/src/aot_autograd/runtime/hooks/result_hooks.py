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


class _IfAnyGradient:
    """What torch calls with the gradients of several tensors; not where none of them has one."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, gradients: Sequence[Any]) -> Any:
        if any(gradient is not None for gradient in gradients):
            self.function(gradients)


def if_gradient(hook: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """``hook``, called with a gradient only."""
    if isinstance(hook, IfGradient) or _waits_for_several(hook):
        return hook
    return IfGradient(hook)


def _waits_for_several(hook: Any) -> bool:
    """Whether torch has registered the hook to wait for several tensors' gradients. It counts the calls, and takes None
    as what eager has for a tensor that is not reached."""
    name = getattr(hook, "__qualname__", "")
    if not name.startswith("register_multi_grad_hook.") or hook.__module__ != "torch.autograd.graph":
        return False
    cells = dict(zip(hook.__code__.co_freevars, hook.__closure__ or (), strict=True))
    if "fn" not in cells:
        return False
    if not isinstance(cells["fn"].cell_contents, _IfAnyGradient):
        cells["fn"].cell_contents = _IfAnyGradient(cells["fn"].cell_contents)
    return True


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
