"""Calls of functions that are one node because the program says so: they are run on the traced tensors, and may ask
whether these require grad.

A trace without gradients has inputs that do not. What torch's own functions compute does not depend on that.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.fx import Node
from torch.utils import _pytree as pytree

from fx_interface.tensor_spec import SPEC_KEY, TensorSpec

_TORCHS = (torch._ops.OpOverload, torch._ops.OpOverloadPacket, types.BuiltinFunctionType, type)


def is_torchs(function: Any) -> bool:
    """Whether it is no function of the program's."""
    return isinstance(function, _TORCHS) or (
        isinstance(function, types.FunctionType)
        and function.__module__.startswith(("torch.", "fx_interface.", "aot_autograd."))
    )


def call(node: Node, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The call of a function of the program's, of which ``node`` is one."""
    with _requiring_grad(node, args, kwargs):
        return function(*args, **kwargs)


@contextmanager
def _requiring_grad(node: Node, args: Any, kwargs: Any) -> Iterator[None]:
    """Within, the tensors among the arguments require grad where those of the program do."""
    asked, given = (pytree.tree_leaves(one) for one in ((node.args, node.kwargs), (args, kwargs)))
    changed: list[torch.Tensor] = []
    if len(asked) == len(given) and not torch.is_grad_enabled():
        for source, value in zip(asked, given, strict=True):
            spec = source.meta.get(SPEC_KEY) if isinstance(source, Node) else None
            if isinstance(spec, TensorSpec) and spec.requires_grad and not value.requires_grad:
                changed.append(value.requires_grad_())
    try:
        yield
    finally:
        for value in changed:
            value.requires_grad_(False)
