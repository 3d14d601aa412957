"""Nested tuples, lists and dicts of tensors as values: their leaves, and the same structure around other leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dynamo_capture.foundation.break_kinds import TRANSFORM, VARYING_ITERATION
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values import DictValue, Lazy, ListValue, SequenceValue, TensorValue, Value
from dynamo_capture.values.base import Context


def mapped_leaves(tx: Context, value: Value, change: Callable[[TensorValue], Value]) -> Value:
    """``value`` with ``change(tensor)`` for each tensor, in order; what holds none stays as it is."""
    value = tx.force(value)
    if isinstance(value, TensorValue):
        return change(value)
    return value.mapped(tx, lambda item: mapped_leaves(tx, item, change))


def items_of(tx: Context, value: Value) -> list[Value]:
    """All that a structure holds at its ends, tensors or not, in order."""
    value = tx.force(value)
    parts = value.parts(tx)
    return [value] if parts is None else [one for item in parts for one in items_of(tx, item)]


def sequence_leaves(tx: Context, values: Iterable[Value]) -> Iterator[Value]:
    """The values, with the items of tuples and lists among them in their place: what torch looks at for classes."""
    for value in values:
        if type(value) is Lazy:
            value = tx.force(value)
        if isinstance(value, SequenceValue):
            yield from sequence_leaves(tx, value.items)
        else:
            yield value


def kinds_of(tx: Context, values: Iterable[Value]) -> Iterator[Value]:
    """Values of the classes that are among these and the items of tuples and lists among them; none is asked for that
    nothing has asked for yet. A graph break for a list that is longer in one call and shorter in another."""
    for value in values:
        if type(value) is Lazy:
            value = tx.force(value)
        if isinstance(value, ListValue) and value.is_unread and tx.policy.is_open(value.source):
            raise GraphBreak(
                VARYING_ITERATION, f"{value.describe()} has now more and now fewer items", opens=True
            )
        if isinstance(value, SequenceValue):
            yield from kinds_of(tx, value.kinds)
        else:
            yield value


def form_of(tx: Context, value: Value) -> Any:
    """What two structures have in common that differ in their tensors only."""
    value = tx.force(value)
    if isinstance(value, TensorValue):
        return TensorValue
    parts = value.parts(tx)
    if parts is None:
        return (value.python_type(), tx.constant(value))
    keys = tuple(value.all_entries(tx)) if isinstance(value, DictValue) else ()
    return (value.python_type(), keys, *[form_of(tx, item) for item in parts])


def leaves_of(tx: Context, value: Value, *, only: bool = False) -> list[TensorValue]:
    """The tensors of a structure, in order. ``only``: anything else is a graph break."""
    found = []
    for item in items_of(tx, value):
        if isinstance(item, TensorValue):
            found.append(item)
        elif only:
            raise GraphBreak(TRANSFORM, f"{item.describe()} stands where a function transform wants tensors")
    return found
