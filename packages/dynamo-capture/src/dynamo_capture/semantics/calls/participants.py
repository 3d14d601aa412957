"""Which arguments make a function of torch an operation of the graph."""

from __future__ import annotations

from dynamo_capture.values import Value
from dynamo_capture.values.base import Context


def takes_part(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> bool:
    """Whether an argument makes a function of torch an operation: a tensor, or what has ``__torch_function__``."""
    return has_tensor(tx, args, kwargs) or bool(tx.tensors.overriding([tx.force(value) for value in args]))


def has_tensor(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> bool:
    """Whether a tensor is among the arguments, also inside lists, tuples and dicts."""
    return any(tx.force(value).holds_tensor(tx) for value in (*args, *kwargs.values()))
