"""``reversed``: of sequences and dictionaries, of tensors, and of objects with ``__len__`` and ``__getitem__``."""

from __future__ import annotations

import builtins
import types

import torch

from dynamo_capture.foundation.break_kinds import OBJECT_OPERATION
from dynamo_capture.foundation.class_members import has_member
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.type_names import message_name
from dynamo_capture.semantics.calls.builtins.slots import refuse
from dynamo_capture.semantics.registry import handles
from dynamo_capture.semantics.tensor_subclasses.overrides import is_asked
from dynamo_capture.values import (
    Const,
    DequeIterator,
    DictIterator,
    DictValue,
    DictView,
    IndexIterator,
    ListValue,
    ObjectValue,
    RangeIterator,
    ReversedListIterator,
    SequenceIterator,
    SequenceValue,
    SymRange,
    TensorValue,
    Value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.containers.mapping_views import ProxyValue
from dynamo_capture.values.tensors.array import ArrayValue


@handles(builtins.reversed)
def make_reversed(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:

    value = args[0]
    tx.tensors.check_special(value, "__reversed__")
    if isinstance(value, TensorValue) and is_asked(tx, [value]):
        raise GraphBreak(
            OBJECT_OPERATION,
            f"reversed() of a {value.meta.cls.__name__}, of which __torch_function__ is asked",
        )
    if isinstance(value, TensorValue):
        return tx.inliner.call_function(Const(torch.Tensor.__reversed__), [value], {})
    if isinstance(value, ObjectValue) and tx.attributes.withdraws(value, "__reversed__"):
        raise tx.raises(TypeError, f"{message_name(value.cls)!r} object is not reversible")
    if isinstance(value, ObjectValue) and tx.attributes.has_special(value, "__reversed__"):
        return tx.calls.special(value, "__reversed__", [])
    if isinstance(value, ObjectValue) and (value.base is None or _answers_by_index(tx, value)):
        if not tx.attributes.has_special(value, "__getitem__"):
            raise refuse(tx, value.cls, "__reversed__")
        if not tx.attributes.has_special(value, "__len__"):
            raise refuse(tx, value.cls, "__len__")
        return IndexIterator(value, value.length(tx))
    kind = value.python_type()
    if not has_member(kind, "__reversed__") and not (
        has_member(kind, "__len__") and has_member(kind, "__getitem__")
    ):
        raise tx.raises(TypeError, f"{value.class_name(tx)!r} object is not reversible")
    if isinstance(value, Const) and isinstance(value.value, range):
        return RangeIterator(value.value[::-1])
    if isinstance(value, SymRange):
        return RangeIterator(value.fixed(tx)[::-1])
    if isinstance(value, ArrayValue):
        rows: Value = tx.arrays.iterate(value, is_reversed=True)
        return rows
    shown = value.mapping if isinstance(value, ProxyValue) else value
    return _reversed_container(tx, shown, shown.base if isinstance(shown, ObjectValue) else shown)


def _reversed_container(tx: Context, value: Value, content: Value | None) -> Value:
    """``reversed(value)``, where ``content`` is the builtin container that it is or is made from."""
    if isinstance(content, ListValue):
        is_list = content.cls is list
        return (
            ReversedListIterator(content, value) if is_list else DequeIterator(content, value, backward=True)
        )
    if isinstance(value, DictView):
        return DictIterator(tx, value.owner, value.kind, backward=True)
    if isinstance(value, DictValue):
        return DictIterator(tx, value, "keys", backward=True)
    is_mapping = issubclass(value.python_type(), types.MappingProxyType)
    if not isinstance(value, (Const, SequenceValue, ObjectValue)) or is_mapping:
        raise GraphBreak(OBJECT_OPERATION, f"reversed() of {value.describe()}")
    return SequenceIterator(value.unpack(tx)[::-1], reversed, value)


def _answers_by_index(tx: Context, value: ObjectValue) -> bool:
    """Whether a class that is made from a builtin one has its own way to give items by their index."""
    return any(
        isinstance(tx.attributes.in_class(value.cls, name), types.FunctionType)
        for name in ("__len__", "__getitem__")
    )
