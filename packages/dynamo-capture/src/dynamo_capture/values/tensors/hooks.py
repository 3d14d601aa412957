"""Hooks that the program puts on tensors: what registering one gives back."""

from __future__ import annotations

from typing import Any

from torch.utils.hooks import RemovableHandle

from dynamo_capture.values.base import Context, Value
from dynamo_capture.values.constant import NONE
from dynamo_capture.values.functions import BuiltinMethod
from dynamo_capture.values.tensors.tensor import TensorValue


class HookHandle(Value):
    """What ``tensor.register_hook(hook)`` gives. ``register``: the method's name."""

    __slots__ = ("hook", "register", "tensor")
    python_class = RemovableHandle

    def __init__(self, register: str, tensor: TensorValue, hook: Value) -> None:
        self.register = register
        self.tensor = tensor
        self.hook = hook

    def existing(self) -> list[Any]:
        """The dictionaries of hooks that the tensor has already, one of which gets this one."""
        real = self.tensor.real
        if real is None:
            return []
        found = (real._backward_hooks, getattr(real, "_post_accumulate_grad_hooks", None))
        return [hooks for hooks in found if hooks is not None]

    def children(self, tx: Context) -> list[Value]:
        return [self.tensor, self.hook]

    def get_attr(self, tx: Context, name: str) -> Value:
        if name == "remove":
            return BuiltinMethod(self, name)
        raise self.unsupported(f"reading the attribute {name!r}")

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name != "remove" or args or kwargs:
            raise self.unsupported(f"calling {name}")
        tx.effects.deferred(RemovableHandle.remove, [self], {})
        return NONE
