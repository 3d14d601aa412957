"""Existing containers of builtin classes as values: what a guard says of them, and when their items are read."""

from __future__ import annotations

import collections
import types
from typing import Any

import torch

from dynamo_capture._eval_frame import set_hashes
from dynamo_capture.foundation.break_kinds import (
    CONTAINER_CLASS,
    DEFINITION_CHANGED,
    UNKNOWN_HASH,
    VARYING_ITERATION,
)
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.known_objects import is_known
from dynamo_capture.frames.left_functions import leave_loop
from dynamo_capture.guard_kinds.sets import SetMembers, SetObjects
from dynamo_capture.sources.sources import ProxiedSource
from dynamo_capture.values import (
    DictValue,
    Lazy,
    ListValue,
    ObjectValue,
    SetValue,
    SliceValue,
    TupleValue,
    Value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.containers.keys import HashedKey, set_apart
from dynamo_capture.values.containers.mapping_views import VIEWS, DictView, ProxyValue
from dynamo_capture.variable_builder.objects import wraps, wraps_once
from fx_interface.source import AttrSource, ItemSource, Source


@wraps(tuple, torch.Size)
def _tuple(tx: Context, real: Any, source: Source) -> Value:
    tx.guards.type_is(source, type(real))
    tx.guards.length(source, real)
    items: list[Value] = [Lazy(item, ItemSource(source, i)) for i, item in enumerate(real)]
    return TupleValue(items, type(real), source, real)


@wraps_once(slice)
def _slice(tx: Context, real: Any, source: Source) -> Value:
    start, stop, step = (
        tx.wrap(getattr(real, name), AttrSource(source, name)) for name in ("start", "stop", "step")
    )
    return SliceValue((start, stop, step), source)


@wraps_once(list, collections.deque)
def _list(tx: Context, real: Any, source: Source) -> Value:
    is_open = tx.policy.is_open(source)

    def read() -> list[Value]:
        if is_open:
            leave_loop(tx, "a list of now more and now fewer items")
        elif made is not None and made.appended:
            _check_not_growing(tx, real, source)
        tx.guards.length(source, real)
        return [Lazy(item, ItemSource(source, i)) for i, item in enumerate(real)]

    made: ListValue | None = None
    if isinstance(real, collections.deque):
        tx.guards.equals(AttrSource(source, "maxlen"), real.maxlen)
        return ListValue(read(), type(real), source, real)
    made = ListValue([], list, source, real, read)
    made.reads_ahead = not is_open
    return made


_MOST_LENGTHS = 2
"""Lengths of one list that the code makes longer, for which there is a version each."""


def _check_not_growing(tx: Context, real: Any, source: Source) -> None:
    """A graph break where a list is read that the program makes longer in each call, such as a log."""
    if tx.policy.has_too_many_values(f"length: {source}", len(real), _MOST_LENGTHS):
        raise GraphBreak(VARYING_ITERATION, f"{source} has more items in each call", opens=True)


@wraps_once(dict, collections.OrderedDict, collections.defaultdict)
def _dict(tx: Context, real: Any, source: Source) -> Value:
    if tx.inliner.has_written(real):
        raise GraphBreak(DEFINITION_CHANGED, f"{source} is a namespace that has been changed")
    tx.attribute_dicts.check_dict(real)
    made = DictValue(None, type(real), source, real)
    if isinstance(real, collections.defaultdict):
        made.factory = tx.wrap(real.default_factory, AttrSource(source, "default_factory"))
    return made


@wraps_once(types.MappingProxyType)
def _proxy(tx: Context, real: Any, source: Source) -> Value:
    shown = tx.wrap(ProxiedSource(source).step(real), ProxiedSource(source))
    if not isinstance(shown, DictValue):
        raise GraphBreak(CONTAINER_CLASS, f"{source} shows a mapping that is no dict")
    return ProxyValue(shown, source)


@wraps_once(*VIEWS)
def _view(tx: Context, real: Any, source: Source) -> Value:
    shown = tx.wrap(ProxiedSource(source).step(real), ProxiedSource(source))
    if not isinstance(shown, DictValue):
        raise GraphBreak(CONTAINER_CLASS, f"{source} is a view of a mapping that is no dict")
    return DictView(shown, VIEWS[type(real)][1], source)


def _keys_of_members(tx: Context, real: Any, members: list[Value]) -> list[Any]:
    """What stands for the members of an existing set. It has their hashes: no ``__hash__`` of the program is asked,
    as reading a variable asks none."""
    hashes: list[int] = []
    keys = []
    for number, member in enumerate(members):
        if isinstance(member, ObjectValue) and member.has_own_hash(tx):
            hashes = hashes or set_hashes(real)
            keys.append(HashedKey(tx, member, hashes[number]))
        elif isinstance(member, TupleValue) and _asks(tx, member):
            raise GraphBreak(UNKNOWN_HASH, "a set has a tuple with an object that has its own __hash__")
        else:
            keys.append(tx.hash_key(member))
    if hashes:
        set_apart(keys)
    return keys


def _asks(tx: Context, value: Value) -> bool:
    """Whether the hash of a tuple asks code of the program, a tuple does not remember it."""
    items = map(tx.force, value.items) if isinstance(value, TupleValue) else ()
    return any(_asks(tx, one) or (isinstance(one, ObjectValue) and one.has_own_hash(tx)) for one in items)


@wraps_once(set, frozenset)
def _set(tx: Context, real: Any, source: Source) -> Value:
    plain = is_known(frozenset(real))
    guard = SetMembers if plain else SetObjects
    tx.guards.add(guard(source, tuple(real), where=tx.where()))
    members = [tx.known(item) for item in real]
    items = dict(zip(_keys_of_members(tx, real, members), members, strict=True))
    return SetValue(items, type(real), source, real, order=real if plain else None)
