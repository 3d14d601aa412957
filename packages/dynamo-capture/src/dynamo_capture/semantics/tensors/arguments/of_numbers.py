"""Tensors made of lists in which there are numbers that only data tell.

torch.tensor([0, n, m])    ->    torch.stack([torch.full((), 0), torch.full((), n), torch.full((), m)])
"""

from __future__ import annotations

import torch

from dynamo_capture.values import Const, ListValue, SequenceValue, TupleValue, Value, is_none
from dynamo_capture.values.base import Context
from dynamo_capture.values.structures import sequence_leaves

NAMES = frozenset({"tensor", "as_tensor"})
_MOST_NUMBERS = 64


def stacked(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """The tensor; None for other lists."""
    given = {name: value for name, value in kwargs.items() if not is_none(value)}
    if len(args) != 1 or not given.keys() <= {"dtype", "device"} or not _has_data(tx, args[0]):
        return None
    numbers = _flat(tx, args[0])
    if not numbers or len(numbers) > _MOST_NUMBERS:
        return None
    return _made(tx, args[0], {"dtype": Const(torch.int64), **given})


def _has_data(tx: Context, value: Value) -> bool:
    return any(
        item.expr is not None and tx.env.is_from_data(item.expr) for item in sequence_leaves(tx, [value])
    )


def _flat(tx: Context, value: Value) -> list[Value] | None:
    """All numbers of a list of lists; None if there is something else than integers."""
    value = tx.force(value)
    if value.expr is not None or value.known_as(int) is not None:
        return [value]
    if not isinstance(value, SequenceValue) or not value.items:
        return None
    parts = [_flat(tx, item) for item in value.items]
    if any(part is None for part in parts) or len({len(part) for part in parts if part is not None}) != 1:
        return None
    return [number for part in parts if part is not None for number in part]


def _made(tx: Context, value: Value, options: dict[str, Value]) -> Value:
    value = tx.force(value)
    if isinstance(value, SequenceValue):
        parts: list[Value] = [_made(tx, item, options) for item in value.items]
        return tx.tensors.call_function(torch.stack, [ListValue(parts)], {})
    return tx.tensors.call_function(torch.full, [TupleValue([]), value], options)
