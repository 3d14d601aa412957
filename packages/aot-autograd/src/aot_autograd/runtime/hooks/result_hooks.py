"""Hooks of results: called where a gradient arrives, although the results of a compiled function share one node.

In a backward of some results autograd calls the node of all of them, and what is registered there for each of them,
with None where no gradient arrives. Eager reaches no such tensor and calls none of its hooks. Nor does it call those of
a result that leads to no tensor which a backward is to find the gradient of (``chosen_tensors.py``).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from aot_autograd.runtime.hooks.chosen_tensors import is_reached_at


class _InPlaceOfHook:
    """What is registered in the place of a hook, under its name, which torch puts into messages."""

    __slots__ = ()
    hook: Callable[[Any], Any]

    @property
    def __name__(self) -> str:
        name: str = self.hook.__name__
        return name


class IfGradient(_InPlaceOfHook):
    """A hook that is called with a gradient only, of a tensor that the backward reaches."""

    __slots__ = ("hook", "is_reached")

    def __init__(self, hook: Callable[[Any], Any], is_reached: Callable[[], bool] | None = None) -> None:
        self.hook = hook
        self.is_reached = is_reached

    def __call__(self, gradient: torch.Tensor | None) -> Any:
        if gradient is None or not (self.is_reached is None or self.is_reached()):
            return None
        return self.hook(gradient)


class _NoneIfNotReached(_InPlaceOfHook):
    """A hook of torch's that waits for several tensors: None is what it takes for one that is not reached."""

    __slots__ = ("hook", "is_reached")

    def __init__(self, hook: Callable[[Any], Any], is_reached: Callable[[], bool]) -> None:
        self.hook = hook
        self.is_reached = is_reached

    def __call__(self, gradient: torch.Tensor | None) -> Any:
        return self.hook(gradient if gradient is None or self.is_reached() else None)


class _IfAnyGradient:
    """What torch calls with the gradients of several tensors; not where none of them has one."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, gradients: Sequence[Any]) -> Any:
        if any(gradient is not None for gradient in gradients):
            self.function(gradients)


def if_gradient(
    hook: Callable[[Any], Any], is_reached: Callable[[], bool] | None = None
) -> Callable[[Any], Any]:
    """``hook``, called with a gradient only; ``is_reached`` is asked during a backward."""
    if isinstance(hook, (IfGradient, _NoneIfNotReached)):
        return hook
    if waits_for_several(hook):
        return hook if is_reached is None else _NoneIfNotReached(hook, is_reached)
    return IfGradient(hook, is_reached)


def waits_for_several(hook: Any) -> bool:
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
    """The hooks of one result, by the numbers of their handles; ``node`` and ``place`` are where its gradient arrives,
    if that is a node of ours; ``on_first`` is called before the first hook is there, if it is set. Without an
    initializer in Python, which would take most of a call's time."""

    __slots__ = ("__weakref__", "node", "on_first", "place")
    node: weakref.ref[Any] | None
    place: int
    on_first: Callable[[], None]

    def __setitem__(self, key: int, hook: Callable[[Any], Any]) -> None:
        if not self and hasattr(self, "on_first"):
            self.on_first()
        is_reached = None if self.node is None else partial(is_reached_at, self.node, self.place)
        dict.__setitem__(self, key, if_gradient(hook, is_reached))


def prepare_hooks(results: Sequence[Any] | Mapping[int, Any], places: Sequence[int], node: Any) -> None:
    """Before anybody has registered a hook on those of a node's ``results``: as the first ``register_hook`` does, which
    then finds the dictionary."""
    register = node._register_hook_dict
    alive = weakref.ref(node) if hasattr(node, "_forward_cls") else None
    for place in places:
        result = results[place]
        result._backward_hooks = hooks = ResultHooks()
        hooks.node, hooks.place = alive, place
        register(result)


def prepare_hooks_of(tensor: Any) -> None:
    """The same for one tensor with a history."""
    prepare_hooks({tensor.output_nr: tensor}, (tensor.output_nr,), tensor.grad_fn)
