"""Calls of objects of the program's classes, of their methods, and of special methods."""

from __future__ import annotations

import functools
import types
from collections.abc import Sequence

import torch

from dynamo_capture.foundation.break_kinds import BREAK_REQUESTED
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.type_names import message_name
from dynamo_capture.frames.left_functions import note_module_call
from dynamo_capture.runtime.replacement_calls import instance_dict
from dynamo_capture.semantics.attributes.lookup import ABSENT
from dynamo_capture.semantics.calls.builtins.slots import call_slot, refuse
from dynamo_capture.semantics.calls.signatures import METHOD_KINDS
from dynamo_capture.semantics.calls.torch_calls import lazy_modules
from dynamo_capture.semantics.calls.torch_calls.data_classes import call_allowed
from dynamo_capture.semantics.calls.torch_calls.hooks import has_no_hooks
from dynamo_capture.semantics.registry import handles
from dynamo_capture.session.controls import SKIP_MARK, is_allowed_in_graph
from dynamo_capture.values import (
    NONE,
    BuiltinMethod,
    Const,
    DictValue,
    MethodValue,
    ObjectValue,
    PartialValue,
    TupleValue,
    Value,
)
from dynamo_capture.values.base import Context

_PARTIAL_CALL = functools.partial.__call__
_MODULE_CALL = torch.nn.Module.__call__
"""As torch defines it: a program may put something else there."""


def call_object(tx: Context, owner: ObjectValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``obj(...)``: modules without hooks go straight to ``forward``."""
    if owner.real is not None and owner.source is not None and is_allowed_in_graph(owner.real):
        tx.guards.is_object(owner.source, owner.real)
        return call_allowed(tx, Const(owner.real, owner.source), args, kwargs)
    was_looked_at = owner.type_guarded
    tx.attributes.guard_type(owner)
    call = tx.attributes.in_class(owner.cls, "__call__")
    if call is _MODULE_CALL and owner.real is not None:
        if (instance_dict(owner.real) or {}).get("_modules"):
            note_module_call(tx)
        lazy_modules.initialize(tx, owner, args, kwargs, was_looked_at)
    if call is _MODULE_CALL and owner.real is not None and has_no_hooks(tx, owner):
        plain = functools.partial(_forward, tx, owner, args, kwargs)
        if owner.real._modules:
            called: Value = tx.calls.equal.call(owner, args, kwargs, plain)
            return called
        return plain()
    if isinstance(call, types.FunctionType):
        return tx.inliner.call_function(Const(call), [owner, *args], kwargs)
    if hasattr(call, "__get__") and not isinstance(call, METHOD_KINDS):
        return owner.get_attr(tx, "__call__").call(tx, args, kwargs)
    marked = (instance_dict(owner.real) or {}).get(SKIP_MARK) if owner.real is not None else None
    if marked is not None:
        raise GraphBreak(BREAK_REQUESTED, marked)
    if call is ABSENT:
        raise tx.raises(TypeError, f"{message_name(owner.cls)!r} object is not callable")
    if call is _PARTIAL_CALL:
        return partial_of(tx, owner).call(tx, args, kwargs)
    if not callable(call):
        return tx.known(call).call(tx, args, kwargs)
    raise owner.unsupported("calling")


def _forward(tx: Context, owner: ObjectValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return owner.get_attr(tx, "forward").call(tx, args, kwargs)


def partial_of(tx: Context, owner: ObjectValue) -> PartialValue:
    """What an object of a subclass of ``functools.partial`` calls."""
    if isinstance(owner.base, PartialValue):
        return owner.base
    fields = ("func", "args", "keywords")
    if owner.source is None or any(
        tx.attributes.in_class(owner.cls, name) is not vars(functools.partial)[name] for name in fields
    ):
        raise owner.unsupported("calling")
    function, given, keywords = (tx.force(owner.get_attr(tx, name)) for name in fields)
    if not isinstance(given, TupleValue) or not isinstance(keywords, DictValue):
        raise owner.unsupported("calling")
    return PartialValue(function, list(given.items), keywords)


@handles(_PARTIAL_CALL)
def call_partial(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """``super().__call__(...)`` in a subclass of ``functools.partial``."""
    owner = tx.force(args[0]) if args else None
    if not isinstance(owner, ObjectValue) or not issubclass(owner.cls, functools.partial):
        return None
    tx.attributes.guard_type(owner)
    return partial_of(tx, owner).call(tx, args[1:], kwargs)


def call_method_of_object(
    tx: Context, owner: ObjectValue, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """``obj.name(...)``."""
    found = tx.attributes.of_object(owner, name)
    if type(found) is BuiltinMethod and found.receiver is owner and found.function is None:
        return call_slot(tx, owner, tx.attributes.in_class(owner.cls, name), args, kwargs)
    return found.call(tx, args, kwargs)


def bound_special(tx: Context, owner: Value, name: str, args: Sequence[Value] = ()) -> Value:
    """A special method bound to its object. ``args``: what it is called with, for an exception's text."""
    if not isinstance(owner, ObjectValue):
        return owner.get_attr(tx, name)
    tx.attributes.guard_type(owner)
    found = tx.attributes.in_class(owner.cls, name)
    if isinstance(found, types.FunctionType):
        return MethodValue(Const(found), owner)
    if isinstance(found, METHOD_KINDS):
        return BuiltinMethod(owner, name, function=found)
    if not tx.attributes.has_special(owner, name):
        raise refuse(tx, owner.cls, name, args)
    return NONE if found is None else tx.attributes.of_class_of(owner, name)
