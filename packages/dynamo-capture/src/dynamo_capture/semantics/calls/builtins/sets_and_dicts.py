"""Methods of sets and frozensets; ``collections.defaultdict``, whose factory comes before what a dictionary takes."""

from __future__ import annotations

import collections
import operator
from collections.abc import Callable
from typing import Any

from dynamo_capture.foundation.break_kinds import CONTAINER_CLASS
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.runtime.calls import changed_sets
from dynamo_capture.semantics.calls.builtins.methods import method
from dynamo_capture.semantics.registry import handles
from dynamo_capture.values import (
    NONE,
    Const,
    DictValue,
    IteratorValue,
    ObjectValue,
    SetValue,
    Value,
    boolean,
    is_none,
)
from dynamo_capture.values.base import Context


@method(set.add)
def set_add(tx: Context, owner: SetValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    owner.add(tx, args[0])
    return NONE


@method(frozenset.__init__)
def frozenset_init(tx: Context, owner: SetValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``object.__init__``, which takes what ``frozenset.__new__`` has taken."""
    return NONE


@method(set.discard)
def set_discard(tx: Context, owner: SetValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    before = owner.made_by
    owner.discard(tx, tx.hash_key(args[0]))
    owner.follow(changed_sets.without_member, before, args[0])
    return NONE


@method(set.remove)
def set_remove(tx: Context, owner: SetValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    key = tx.hash_key(args[0])
    if key not in owner.items:
        raise tx.raises(KeyError, args[0])
    before = owner.made_by
    owner.discard(tx, key)
    owner.follow(changed_sets.without_member, before, args[0])
    return NONE


@method(set.pop)
def set_pop(tx: Context, owner: SetValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return owner.pop(tx)


@method(set.update)
def set_update(tx: Context, owner: SetValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    for source in args:
        if isinstance(source.base, SetValue):
            source = source.base  # however its class iterates
        if isinstance(source, SetValue):
            owner.update_with(tx, operator.ior, source)
        else:
            for item in source.one_by_one(tx):
                owner.add(tx, item)
    return NONE


@method(set.__init__)
def set_init(tx: Context, owner: SetValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    owner.clear(tx)  # before the argument is read, which may be the set itself
    return set_update(tx, owner, args, {})


@method(set.clear)
def set_clear(tx: Context, owner: SetValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    owner.clear(tx)
    return NONE


@method(set.copy, frozenset.copy)
def set_copy(tx: Context, owner: SetValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if owner.cls is frozenset:
        return owner
    copied: Value = tx.calls.as_set(owner, owner.cls)
    return copied


def _combining(operation: Callable[[Any, Any], Any]) -> Any:
    def apply(tx: Context, owner: SetValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        result = owner if args else tx.calls.as_set(owner, owner.cls)
        for other in args:
            result = result.combined(tx, operation, tx.calls.as_set(other))
        return result

    return apply


def _updating(operation: Callable[[Any, Any], Any]) -> Any:
    def apply(tx: Context, owner: SetValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if operation is operator.iand and args:  # the others are looked at before anything is taken out
            others = [tx.calls.as_set(other) for other in args]
            for other_set in others:
                owner.update_with(tx, operation, other_set)
            return NONE
        for other in args:
            if operation is operator.isub and isinstance(other, (IteratorValue, ObjectValue)):
                for item in other.one_by_one(tx):
                    owner.discard(tx, tx.hash_key(item))
            else:
                owner.update_with(tx, operation, tx.calls.as_set(other))
        return NONE

    return apply


for _name, _new, _inplace in (
    ("union", operator.or_, None),
    ("intersection", operator.and_, operator.iand),
    ("difference", operator.sub, operator.isub),
    ("symmetric_difference", operator.xor, operator.ixor),
):
    method(getattr(set, _name), getattr(frozenset, _name))(_combining(_new))
    if _inplace is not None:
        method(getattr(set, f"{_name}_update"))(_updating(_inplace))


@method(set.issubset, frozenset.issubset)
def set_issubset(tx: Context, owner: SetValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return boolean(owner.items.keys() <= tx.calls.as_set(args[0]).items.keys())


@method(set.issuperset, frozenset.issuperset)
def set_issuperset(tx: Context, owner: SetValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return boolean(owner.items.keys() >= tx.calls.as_set(args[0]).items.keys())


@method(set.isdisjoint, frozenset.isdisjoint)
def set_isdisjoint(tx: Context, owner: SetValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return boolean(not (owner.items.keys() & tx.calls.as_set(args[0]).items.keys()))


@handles(collections.defaultdict)
def make_default_dict(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    made = DictValue({}, collections.defaultdict)
    initialize_default_dict(tx, made, args, kwargs)
    return made


@method(collections.defaultdict.__init__)
def initialize_default_dict(
    tx: Context, owner: DictValue, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """Without a factory the dictionary has none from now on."""
    if args and not is_none(args[0]) and not Const(callable).call(tx, args[:1], {}).truth(tx):
        raise tx.raises(TypeError, "first argument must be callable or None")
    if owner.source is not None or owner.real is not None:
        raise GraphBreak(CONTAINER_CLASS, "a defaultdict from outside gets another factory")
    owner.factory = args[0] if args and not is_none(args[0]) else None
    return owner.call_method(tx, "update", args[1:], kwargs)
