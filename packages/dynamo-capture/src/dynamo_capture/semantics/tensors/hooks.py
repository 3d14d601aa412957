"""Hooks that the program puts on tensors.

    handle = y.register_hook(scale)     ->  y is a result of the graph; the hook is put on it when the graph has run

A hook is called by a backward, which runs after the graph. So registering it waits until then too, before all other
effects: on an input as on any tensor, on what the graph computes as on a result that others are computed from. What
autograd knows of the tensor must not change in between, where the hook would stay with what it was.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from dynamo_capture.foundation.break_kinds import HOOKED_TENSOR
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.tensors.methods import method
from dynamo_capture.semantics.tensors.results.hooked_copies import check_not_copied
from dynamo_capture.values import TensorValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.hooks import HookHandle
from dynamo_capture.values.tensors.tensor import PLAIN_CLASSES
from fx_interface.graph import HOOKED_KEY


def _register(name: str) -> None:
    def register(
        tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]
    ) -> Value | None:
        if len(args) != 1 or kwargs or owner.meta.cls not in PLAIN_CLASSES:
            raise GraphBreak(HOOKED_TENSOR, f"a hook is registered on {owner.describe()}")
        tx.fold(lambda: getattr(torch.Tensor, name)(_alike(tx, owner), len))
        handle = HookHandle(name, owner, args[0])
        tx.effects.hooked(handle)
        if owner.node.op != "placeholder":
            owner.node.meta[HOOKED_KEY] = True
        return handle

    method(name)(register)


def _alike(tx: Context, tensor: TensorValue) -> torch.Tensor:
    """A tensor on which torch registers a hook, or does not, as on ``tensor``."""
    with torch.enable_grad():
        leaf = torch.empty(0, device="cpu", requires_grad=tensor.meta.requires_grad)
        return leaf if tx.tensors.get_attr(tensor, "is_leaf").truth(tx) else leaf.clone()


for _name in ("register_hook", "register_post_accumulate_grad_hook"):
    _register(_name)


def check_not_hooked(tx: Context, changed: Iterable[TensorValue] | None) -> None:
    """End the graph before a tensor with such a hook becomes another one for autograd. None: any tensor may change."""
    handles = tx.effects.hooks
    if not handles:
        return
    check_not_copied(tx, changed)
    memories = None if changed is None else {id(tensor.memory) for tensor in changed}
    if memories is None or any(id(handle.tensor.memory) in memories for handle in handles):
        raise GraphBreak(HOOKED_TENSOR, "a tensor is changed after a hook was registered on it")
