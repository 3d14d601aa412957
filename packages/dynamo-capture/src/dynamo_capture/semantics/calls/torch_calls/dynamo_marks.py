"""Marks that stock's compiler needs in torch's own code: passed over there, obeyed in the user's.

Torch's optimizers end the graph around each step and, once stock's compiler has run, disable what is too much for it;
neither is a limit of ours.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from torch._compile import _disable_dynamo

from dynamo_capture.foundation.break_kinds import BREAK_REQUESTED
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values import Const, Value
from dynamo_capture.values.base import Context

_DISABLING = _disable_dynamo.__code__.co_qualname + ".<locals>.inner"
"""What torch leaves of a function that its compiler's capture is to leave alone, so that its next stage traces it: the
constructors of tensors that dispatch in Python. Here both are one stage."""

_ENDING = ("graph_break", "skip_frame", "step_unsupported")
"""Functions of stock's that end a graph; they do nothing else."""


def without_stock_marks(
    tx: Context, function: Any, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    """The result of a call that is such a mark, or that one stands before; None for any other function."""
    module, name = function.__module__, function.__name__
    if module == "torch._dynamo.mutation_guard" and name == "tag":
        # where stock's compiler has run, it counts new modules; one that only the trace has made does not count
        return Const(None)
    if module == "torch._dynamo.decorators" and name in _ENDING:
        if is_torchs_own_code(tx):
            return Const(None)
        raise GraphBreak(BREAK_REQUESTED, f"torch._dynamo.{name}() was called")
    if function in tx.policy.silenced:
        return Const(None)
    if tx.tensors.below and function.__code__.co_qualname == _DISABLING and hasattr(function, "__wrapped__"):
        return tx.calls.call_known(Const(function.__wrapped__), args, kwargs)
    compiled = _compiled_by_stock(function)
    if compiled is not None:
        return tx.known(compiled).call(tx, args, kwargs)
    original = getattr(function, "_torchdynamo_orig_callable", None)
    if original is not None and str(getattr(original, "__module__", "")).startswith("torch.optim."):
        return tx.inliner.call_function(Const(original), args, kwargs)
    return None


def may_be_marked(tx: Context, function: FunctionType) -> bool:
    """Whether a function is one of stock's, or has attributes, which is where marks are left, or is silenced."""
    return (
        bool(vars(function))
        or str(function.__module__).startswith("torch._dynamo.")
        or function in tx.policy.silenced
    )


def _compiled_by_stock(function: Any) -> Any:
    """The function that stock's compiler would compile where this one, which ``torch.compile`` has made, is called: a
    part of a program that is compiled as a whole. None for others, also for such as have been given its attributes."""
    held = vars(function)
    if held.get("_torchdynamo_wrapper_id") != id(function) or held.get("_torchdynamo_disable"):
        return None
    return held.get("_torchdynamo_inline")


def is_torchs_own_code(tx: Context) -> bool:
    """Whether the code that is being traced is part of torch."""
    return str(tx.frames[-1].globals.real.get("__name__", "")).partition(".")[0] == "torch"
