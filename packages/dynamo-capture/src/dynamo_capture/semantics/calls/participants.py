"""Which arguments make a function of torch an operation of the graph."""

from __future__ import annotations

from dynamo_capture.values import DictValue, SequenceValue, TensorValue, Value
from dynamo_capture.values.base import Context


def takes_part(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> bool:
    """Whether an argument makes a function of torch an operation: a tensor, or what has ``__torch_function__``."""
    return has_tensor(tx, args, kwargs) or bool(tx.tensors.overriding([tx.force(value) for value in args]))


def has_tensor(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> bool:
    """Whether a tensor is among the arguments, also inside lists, tuples and dicts."""
    return any(_holds_tensor(tx, value) for value in (*args, *kwargs.values()))


def _holds_tensor(tx: Context, value: Value) -> bool:
    value = tx.force(value)
    if isinstance(value, TensorValue):
        return True
    if isinstance(value, SequenceValue):
        return any(_holds_tensor(tx, item) for item in value.items)
    if isinstance(value, DictValue):
        held = [*value.stored.values(), *value.late] if value.entries is None else value.entries.values()
        return any(_holds_tensor(tx, entry[1]) for entry in held)
    return False
