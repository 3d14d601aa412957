"""How lists, tuples, deques, dicts, sets and views of dicts compare: by kind, then item by item."""

from __future__ import annotations

import collections
import types
from collections.abc import Callable
from typing import Any

from dynamo_capture.foundation.class_members import member
from dynamo_capture.foundation.errors import NotConstant
from dynamo_capture.values import (
    BuiltinMethod,
    Const,
    DictValue,
    DictView,
    MethodValue,
    OpaqueValue,
    SequenceValue,
    SetValue,
    TupleValue,
    Value,
    boolean,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.containers.mapping_views import ProxyValue

_EMPTY: tuple[dict[Any, Any], ...] = ({}, collections.OrderedDict())
_KINDS: tuple[tuple[type, ...], ...] = (
    (list,), (tuple,), (collections.deque,), (dict,),
    (set, frozenset, *(type(view) for empty in _EMPTY for view in (empty.keys(), empty.items()))),
)  # fmt: skip
"""Classes whose instances may be equal; instances of classes in two of these rows never are."""


def _kind(value: Value) -> tuple[type, ...] | None:
    cls = value.python_type()
    return next((row for row in _KINDS if issubclass(cls, row)), None)


def equal(tx: Context, lhs: Value, rhs: Value) -> bool:
    """``lhs == rhs``, neither being a tensor, an object of the program or a number that varies."""
    lhs, rhs = (value.mapping if isinstance(value, ProxyValue) else value for value in (lhs, rhs))
    for value in (lhs, rhs):
        own = member(value.python_type(), "__eq__") if isinstance(value, OpaqueValue) else None
        if isinstance(own, types.FunctionType):
            raise value.unsupported("comparing")
    kind = _kind(lhs)
    if kind != _kind(rhs):
        return False
    for value in (lhs, rhs):
        if isinstance(value, OpaqueValue) and member(value.python_type(), "__eq__") is not object.__eq__:
            raise value.unsupported("comparing")
    try:
        return bool(tx.fold(lambda: lhs.as_constant() == rhs.as_constant()))
    except NotConstant:
        pass
    one, other = as_sequence(lhs), as_sequence(rhs)
    if isinstance(one, SequenceValue) and isinstance(other, SequenceValue):
        return len(one.items) == len(other.items) and all(
            tx.operators.equal_or_same(tx.force(a), tx.force(b))
            for a, b in zip(one.items, other.items, strict=True)
        )
    if isinstance(one, DictValue) and isinstance(other, DictValue):
        return _equal_dicts(tx, one, other)
    if kind is _KINDS[-1]:
        return bool(tx.calls.as_set(one).items.keys() == tx.calls.as_set(other).items.keys())
    if isinstance(one, MethodValue) and isinstance(other, MethodValue):
        same = tx.operators.same
        return same(one.function, other.function) and same(one.receiver, other.receiver)
    first, second = _builtin_method(tx, one), _builtin_method(tx, other)
    if first is not None and second is not None:
        return first.name == second.name and tx.operators.same(first.receiver, second.receiver)
    return tx.operators.same(lhs, rhs)


def _builtin_method(tx: Context, value: Value) -> BuiltinMethod | None:
    """A bound method in C, known or made in the trace, by its receiver and its name."""
    if isinstance(value, Const) and isinstance(
        value.value, (types.BuiltinMethodType, types.MethodWrapperType)
    ):
        return BuiltinMethod(tx.known(value.value.__self__), value.value.__name__)
    return value if isinstance(value, BuiltinMethod) else None


def _equal_dicts(tx: Context, one: DictValue, other: DictValue) -> bool:
    mine, theirs = one.all_entries(tx), other.all_entries(tx)
    if mine.keys() != theirs.keys():
        return False
    if all(issubclass(value.cls, collections.OrderedDict) for value in (one, other)) and (
        list(mine) != list(theirs)
    ):
        return False
    return all(tx.operators.equal_or_same(tx.force(mine[k][1]), tx.force(theirs[k][1])) for k in mine)


def ordered(tx: Context, symbol: str, function: Callable[..., Any], lhs: Value, rhs: Value) -> Value | None:
    """``<`` and so on; None where it is not known."""
    kind = _kind(lhs)
    if kind != _kind(rhs):
        return None
    try:
        return tx.known(tx.fold(lambda: function(tx.calls.python_object(lhs), tx.calls.python_object(rhs))))
    except NotConstant:
        pass
    one, other = as_sequence(lhs), as_sequence(rhs)
    if isinstance(one, SequenceValue) and isinstance(other, SequenceValue):
        for a, b in zip(one.unpack(tx), other.unpack(tx), strict=False):
            if not tx.operators.equal_or_same(a, b):
                return tx.operators.compare(symbol, a, b)
        return boolean(function(len(one.items), len(other.items)))
    if isinstance(one, (SetValue, DictView)) and isinstance(other, (SetValue, DictView)):
        keys = [set(tx.calls.as_set(value).items) for value in (one, other)]
        return boolean(function(*keys))
    return None


def as_sequence(value: Value) -> Value:
    """A constant tuple as a tuple value."""
    if isinstance(value, Const) and isinstance(value.value, tuple):
        return TupleValue([Const(item) for item in value.value], type(value.value))
    return value
