"""The ``torch`` dialect, as captured: calls of public torch functions, operators and tensor methods; may mutate."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from fx_interface.dialects.dialect import Context, Dialect, broken, check_size_arithmetic, is_size_arithmetic
from fx_interface.errors import UnsupportedProgramError
from fx_interface.serialization.target_names import target_name

_PURE_FUNCTIONS: frozenset[Callable[..., Any]] = frozenset(
    {
        operator.add,
        operator.sub,
        operator.mul,
        operator.truediv,
        operator.floordiv,
        operator.mod,
        operator.neg,
        operator.getitem,
        operator.eq,
        operator.ne,
        operator.lt,
        operator.le,
        operator.gt,
        operator.ge,
        getattr,
    }
)
_PURE_METHODS = frozenset(
    {
        "size",
        "stride",
        "dim",
        "numel",
        "view",
        "reshape",
        "transpose",
        "permute",
        "expand",
        "unsqueeze",
        "squeeze",
        "t",
    }
)


def _check_call(node: Node, context: Context) -> None:
    match node.op:
        case "call_method":
            if not callable(getattr(torch.Tensor, str(node.target), None)):
                broken("FXI103", node, "tensors have no such method")
        case "call_function":
            if is_size_arithmetic(node):
                check_size_arithmetic(node, context)
            try:
                target_name(node.target)
            except UnsupportedProgramError:
                broken(
                    "FXI103", node, "the target is not a public torch function, operator or custom operator"
                )


def _is_pure(node: Node) -> bool:
    """Only what surely has no effect: a function of torch may mutate, draw random numbers, or fail on purpose."""
    if node.op == "call_method":
        return node.target in _PURE_METHODS
    return is_size_arithmetic(node) or node.target in _PURE_FUNCTIONS


TORCH = Dialect("torch", _check_call, _is_pure)
"""The dialect that capture emits."""
