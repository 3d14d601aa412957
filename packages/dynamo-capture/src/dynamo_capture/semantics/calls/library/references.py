"""Weak references that the program makes, and ``functools.singledispatch``, which keeps its functions by them."""

from __future__ import annotations

import functools
import types
import weakref
from typing import Any

from dynamo_capture.foundation.break_kinds import C_OBJECT_MADE
from dynamo_capture.foundation.class_members import has_weak_references
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.registry import handles
from dynamo_capture.sources.sources import known_object
from dynamo_capture.values import Const, DictValue, ListValue, ObjectValue, SetValue, TensorValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.opaque import NewReference
from fx_interface.source import AttrSource, ItemSource


@handles(weakref.ref)
def make_reference(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    target = args[0]
    if len(args) > 1 or kwargs:
        raise GraphBreak(C_OBJECT_MADE, "a weak reference with a callback is made")
    existing = isinstance(target, (ObjectValue, DictValue, ListValue, SetValue, TensorValue))
    if type(target) is TensorValue and target.source is None:
        return _reference(tx, target)
    if not existing or target.source is None:
        raise GraphBreak(C_OBJECT_MADE, f"a weak reference to {target.describe()} is made")
    if not has_weak_references(target.python_type()):
        name = target.python_type().__name__
        raise tx.raises(TypeError, f"cannot create weak reference to {name!r} object")
    tx.weakly_referenced.add(target.source)
    return _reference(tx, target)


def _reference(tx: Context, target: Value) -> Value:
    """The one weak reference without a callback that an object has, as long as somebody holds it."""
    return tx.new_references.setdefault(id(target), NewReference(target))


def _counted(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    raise GraphBreak(C_OBJECT_MADE, "an object's weak references are asked for, which may have changed")


for _function in (weakref.getweakrefcount, weakref.getweakrefs):
    handles(_function)(_counted)


@functools.singledispatch
def _sample(value: Any) -> None:
    return None


DISPATCH: types.CodeType = _sample.dispatch.__code__
"""The code of every ``function.dispatch`` under ``functools.singledispatch``."""


def call_dispatch(tx: Context, function: types.FunctionType, args: list[Value]) -> Value:
    """``function.dispatch(cls)``: the implementation for a class, as long as the table of implementations stays."""
    (cls,) = (tx.constant(arg) for arg in args)
    free = function.__code__.co_freevars.index("registry")
    assert function.__closure__ is not None
    registry = function.__closure__[free].cell_contents
    found = tx.fold(lambda: function(cls))
    cell = ItemSource(AttrSource(known_object(function), "__closure__"), free)
    source = AttrSource(cell, "cell_contents")
    tx.guards.length(source, registry)
    for key, implementation in registry.items():
        if implementation is found:
            tx.guards.is_object(ItemSource(source, key), found)
    tx.attributes.guard_bases(cls)
    return Const(found)
