"""Tensors that are marked as conjugated or negated, or begin at an odd place in memory, which some functions of torch
refuse: those are Python's to call.

The stand-ins of a trace have no marks, and all begin where their memory does, so that torch refuses none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from torch.fx import Node

from dynamo_capture.foundation.break_kinds import TENSOR_MEMORY
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values import Const, TensorValue, Value

_MARKING: Final = frozenset({"conj", "_conj", "adjoint", "H", "mH", "imag", "_neg_view"})
"""Functions, methods and attributes that give marked views."""

_REFUSING: Final = frozenset({"view_as_real", "numpy", "__dlpack__", "resolve_conj", "resolve_neg"})
"""What refuses a marked tensor, or gives another one for it: an unmarked tensor itself."""


def check_unmarked(name: str, args: Sequence[Value]) -> None:
    """A graph break where the function or method of this name may refuse its first argument for a mark or its place."""
    if not args or not isinstance(args[0], TensorValue):
        return
    dtype = _dtype(args[1:]) if name == "view" else None
    if (name in _REFUSING or dtype is not None) and _may_be_marked(args[0]):
        raise GraphBreak(TENSOR_MEMORY, f"{name}() of a tensor that may be marked as conjugated or negated")
    if dtype is not None and dtype.itemsize > args[0].meta.spec.dtype.itemsize and _may_begin_inside(args[0]):
        raise GraphBreak(TENSOR_MEMORY, f"view({dtype}) of a tensor that may begin inside of its memory")


def _dtype(args: Sequence[Value]) -> torch.dtype | None:
    found = args[0].value if args and isinstance(args[0], Const) else None
    return found if isinstance(found, torch.dtype) else None


def _may_begin_inside(tensor: TensorValue) -> bool:
    if tensor.memory is not tensor:
        return True
    with torch._C.DisableTorchFunctionSubclass():
        return tensor.real is not None and tensor.real.storage_offset() != 0


def _may_be_marked(tensor: TensorValue) -> bool:
    """Whether the tensor is a marked input, or a view that was taken by what may mark it."""
    node, memory = tensor.node, tensor.memory
    while node is not memory.node:
        if _name(node) in _MARKING:
            return True
        base = next((arg for arg in node.args if isinstance(arg, Node)), None)
        if base is None:
            return True
        node = base
    real = memory.real
    with torch._C.DisableTorchFunctionSubclass():
        return real is not None and (real.is_conj() or real.is_neg())


def _name(node: Node) -> str:
    if node.target is getattr:
        return str(node.args[1])
    return node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
