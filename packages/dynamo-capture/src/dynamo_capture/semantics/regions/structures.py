"""Nested tuples, lists and dicts of tensors as values: their leaves, and the same structure around other leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values import DictValue, ListValue, TensorValue, TupleValue, Value

if TYPE_CHECKING:
    from dynamo_capture.values.base import Context


def mapped_leaves(tx: Context, value: Value, change: Callable[[TensorValue], Value]) -> Value:
    """``value`` with ``change(tensor)`` for each tensor, in order; what holds none stays as it is."""
    value = tx.force(value)
    match value:
        case TensorValue():
            return change(value)
        case TupleValue():
            return TupleValue([mapped_leaves(tx, item, change) for item in value.items], value.cls)
        case ListValue() if value.cls is list:
            return ListValue([mapped_leaves(tx, item, change) for item in value.items])
        case DictValue():
            entries = value.all_entries(tx).items()
            made = {key: [name, mapped_leaves(tx, item, change)] for key, (name, item) in entries}
            return DictValue(made, value.cls)
    return value


def items_of(tx: Context, value: Value) -> list[Value]:
    """All that a structure holds at its ends, tensors or not, in order."""
    value = tx.force(value)
    match value:
        case TupleValue():
            return [one for item in value.items for one in items_of(tx, item)]
        case ListValue() if value.cls is list:
            return [one for item in value.items for one in items_of(tx, item)]
        case DictValue():
            entries = value.all_entries(tx).values()
            return [one for _, item in entries for one in items_of(tx, item)]
    return [value]


def form_of(tx: Context, value: Value) -> Any:
    """What two structures have in common that differ in their tensors only."""
    value = tx.force(value)
    match value:
        case TensorValue():
            return TensorValue
        case TupleValue():
            return (value.cls, *[form_of(tx, item) for item in value.items])
        case ListValue() if value.cls is list:
            return (list, *[form_of(tx, item) for item in value.items])
        case DictValue():
            entries = value.all_entries(tx).items()
            return (value.cls, *[(key, form_of(tx, item)) for key, (_, item) in entries])
    return (value.python_type(), tx.constant(value))


def leaves_of(tx: Context, value: Value, *, only: bool = False) -> list[TensorValue]:
    """The tensors of a structure, in order. ``only``: anything else is a graph break."""
    value = tx.force(value)
    match value:
        case TensorValue():
            return [value]
        case TupleValue():
            return [leaf for item in value.items for leaf in leaves_of(tx, item, only=only)]
        case ListValue() if value.cls is list:
            return [leaf for item in value.items for leaf in leaves_of(tx, item, only=only)]
        case DictValue():
            entries = value.all_entries(tx).values()
            return [leaf for _, item in entries for leaf in leaves_of(tx, item, only=only)]
    if only:
        raise GraphBreak("CAP246", f"{value.describe()} stands where a function transform wants tensors")
    return []
