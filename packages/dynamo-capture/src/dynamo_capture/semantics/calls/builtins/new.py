"""``type.__call__``, and ``__new__`` of builtin classes, as the program's own classes call them.

    object.__new__(cls)   dict.__new__(cls)   tuple.__new__(cls, items)   ValueError.__new__(cls, *args)

Python decides whether such a call is allowed: it is made for real, with empty tuples for arguments, and what it gives
is thrown away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynamo_capture.foundation.break_kinds import C_OBJECT_MADE, NOT_IN_PYTHON
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.calls.builtins.construct import (
    construct_plainly,
    forbid_finalizer,
    new_instance,
    new_tuple,
)
from dynamo_capture.semantics.registry import handles
from dynamo_capture.values import Const, ListValue, SetValue, Value
from dynamo_capture.values.base import Context


def _allowed(tx: Context, maker: Callable[..., Any], args: list[Value], kwargs: dict[str, Value]) -> type:
    """The class, if Python lets ``maker`` make an instance of it; else the program raises what Python raises."""
    if not args:
        tx.fold(maker)
    cls: Any = tx.constant(args[0])
    if isinstance(cls, type):
        forbid_finalizer(tx, cls)
    tx.fold(lambda: maker(cls, *[()] * (len(args) - 1), **dict.fromkeys(kwargs)))
    assert isinstance(cls, type)
    return cls


@handles(object.__new__)
def new_object(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return new_instance(tx, _allowed(tx, object.__new__, args, kwargs), [])


@handles(dict.__new__)
def new_dict(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return new_instance(tx, _allowed(tx, dict.__new__, args, kwargs), [])


@handles(list.__new__)
def new_list(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    cls = _allowed(tx, list.__new__, args, kwargs)
    return ListValue([]) if cls is list else new_instance(tx, cls, [])


@handles(tuple.__new__)
def new_tuple_of(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    cls = _allowed(tx, tuple.__new__, args, kwargs)
    return new_tuple(cls, args[1].unpack(tx) if len(args) > 1 else [])


@handles(frozenset.__new__)
def new_frozenset(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    cls = _allowed(tx, frozenset.__new__, args, kwargs)
    if cls is not frozenset:
        raise GraphBreak(C_OBJECT_MADE, f"an instance of {cls.__qualname__} is made, a subclass of frozenset")
    return tx.calls.as_set(args[1], frozenset) if len(args) > 1 else SetValue({}, frozenset)


@handles(BaseException.__new__)
def new_base_exception(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return new_instance(tx, _allowed(tx, BaseException.__new__, args, kwargs), args[1:])


@handles(Exception.__new__)
def new_exception(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return new_instance(tx, _allowed(tx, Exception.__new__, args, kwargs), args[1:])


@handles(type.__call__)
def type_call(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    owner = args[0] if args else None
    if not isinstance(owner, Const):
        raise GraphBreak(NOT_IN_PYTHON, "type.__call__ is called on what is not a known class")
    if not isinstance(owner.value, type):
        tx.fold(lambda: type.__call__(owner.value))
    return construct_plainly(tx, owner, args[1:], kwargs)
