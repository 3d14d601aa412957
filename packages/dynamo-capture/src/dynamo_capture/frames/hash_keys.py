"""Keys of dictionaries and sets: the Python objects that stand for values there."""

from __future__ import annotations

import types
import weakref
from types import FunctionType
from typing import Any

from dynamo_capture.foundation.errors import GraphBreak, NotConstant
from dynamo_capture.values import (
    BuiltinMethod,
    Const,
    HashedKey,
    IdentityKey,
    MethodValue,
    ObjectValue,
    SetValue,
    SliceValue,
    TextValue,
    TupleValue,
    Value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.opaque import NewReference, WeakReference


def hash_key(tx: Context, value: Value) -> Any:
    """A hashable Python object that stands for a dictionary key."""
    if isinstance(value, Const):
        tx.fold(lambda: hash(value.value))
        return value.value
    if value.expr is not None:
        return tx.env.specialize(value.expr)
    try:
        constant = tx.settled(value).as_constant()
    except NotConstant:
        pass
    else:
        tx.fold(lambda: hash(constant))
        return constant
    if isinstance(value, TupleValue):
        return tuple([hash_key(tx, tx.force(item)) for item in value.items])
    if isinstance(value, SetValue) and value.cls is frozenset:
        return frozenset(value.items)
    if isinstance(value, ObjectValue) and not _inherits_hash(value.cls):
        if value.cls.__hash__ is None:
            raise tx.raises(TypeError, f"unhashable type: {value.class_name(tx)!r}")
        if not _hashes_by_identity(value.cls):
            return _hashed_key(tx, value)
    if isinstance(value, SliceValue) and slice.__hash__ is not None:  # from CPython 3.12 on
        for bound in value.bounds:
            hash_key(tx, bound)
    if value.python_type().__hash__ is None:
        raise tx.raises(TypeError, f"unhashable type: {value.class_name(tx)!r}")
    if isinstance(value, (NewReference, WeakReference)):
        return _referent_key(tx, value)
    if isinstance(value, TextValue):
        raise value.unsupported("using as a key")
    if isinstance(value, (MethodValue, BuiltinMethod)):
        return _method_key(tx, value)
    tx.keyed[id(value)] = value
    return IdentityKey(value)


def _referent_key(tx: Context, value: NewReference | WeakReference) -> Any:
    """A weak reference is as a key what it refers to."""
    target = value.target if isinstance(value, NewReference) else value
    real = getattr(target, "real", None)
    if real is None or target.source is None:
        raise GraphBreak("CAP212", f"{value.describe()} is used as a key")
    referent: Any = real if isinstance(value, NewReference) else real()
    comparing: Any = type(referent).__eq__
    if comparing is not object.__eq__:
        raise GraphBreak("CAP212", "a weak reference to an object that compares in its own way is a key")
    tx.guards.is_object(target.source, real)
    return weakref.ref(real) if isinstance(value, NewReference) else real


def _method_key(tx: Context, value: MethodValue | BuiltinMethod) -> Any:
    """Methods are equal where they are the same function of the same object."""
    function = hash_key(tx, value.function) if isinstance(value, MethodValue) else value.name
    receiver = value.receiver
    if isinstance(receiver, Const):
        return (receiver.value, types.MethodType, function)
    tx.keyed[id(receiver)] = receiver
    return (IdentityKey(receiver), types.MethodType, function)


def _hashed_key(tx: Context, value: ObjectValue) -> Any:
    """The key for an object whose class has its own ``__hash__``, which must be written in Python."""
    tx.attributes.guard_type(value)
    if not isinstance(tx.attributes.in_class(value.cls, "__hash__"), FunctionType):
        raise GraphBreak("CAP212", f"{value.describe()} with its own __hash__ is used as a key")
    for _ in range(
        2
    ):  # what it changes in the first call only, it does not change where the container is made again
        with tx.effects.observed() as changed:
            hashed = tx.index(tx.calls.special(value, "__hash__", []))
        if not changed:
            break
    else:
        raise GraphBreak("CAP212", f"{value.describe()} has a __hash__ with effects")
    if type(hashed) is not int:
        raise tx.raises(TypeError, "__hash__ method should return an integer")
    return HashedKey(tx, value, hashed)  # as it is: Python shortens only what does not fit its word


def _inherits_hash(cls: Any) -> bool:
    return cls.__hash__ is object.__hash__


def _hashes_by_identity(cls: type) -> bool:
    for base in cls.__mro__:
        if "__hash__" in base.__dict__ or "__eq__" in base.__dict__:
            return base is object or base.__module__.startswith("torch.nn.modules")
    return True
