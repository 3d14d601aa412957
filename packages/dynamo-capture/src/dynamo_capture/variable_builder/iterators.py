"""Existing iterators of builtin classes as values: those that draw from no other, and those that do."""

from __future__ import annotations

from typing import Any

from dynamo_capture.foundation.break_kinds import NO_LOOKAHEAD
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.runtime.iterator_lookahead import READABLE, owner_of
from dynamo_capture.sources.sources import DrawnFromSource, IteratedSource
from dynamo_capture.values import DictValue, IteratorValue, ListValue, MapIterator, Value, ZipIterator
from dynamo_capture.values.base import Context
from dynamo_capture.values.iteration.running import RunningEnumerate, RunningIterator, can_be_counted
from dynamo_capture.variable_builder.objects import wraps_once
from fx_interface.source import ItemSource, Source


@wraps_once(*READABLE)
def _readable(tx: Context, real: Any, source: Source) -> Value:
    owner, real_owner = None, owner_of(real)
    if real_owner is not None:
        owner = tx.wrap(real_owner, IteratedSource(source))
        if not isinstance(owner, (ListValue, DictValue)):
            raise GraphBreak(NO_LOOKAHEAD, f"{source} goes through {owner.describe()}")
    made = RunningIterator(real, source, owner)
    tx.running.append(made)
    return made


def _drawn_from(tx: Context, real: Any, source: Source) -> list[Value]:
    """The arguments with which the iterator would be made as it is now."""
    state = real.__reduce__()
    if len(state) != 2:
        raise GraphBreak(NO_LOOKAHEAD, f"{source} is a {type(real).__name__} with a state of its own")
    arguments = DrawnFromSource(source)
    tx.guards.length(arguments, state[1])
    return [tx.wrap(item, ItemSource(arguments, i)) for i, item in enumerate(state[1])]


def _iterators(values: list[Value], source: Source) -> list[IteratorValue]:
    found = [value for value in values if isinstance(value, IteratorValue)]
    if len(found) != len(values):
        raise GraphBreak(NO_LOOKAHEAD, f"{source} draws from an iterator that cannot be read ahead")
    return found


@wraps_once(zip)
def _zip(tx: Context, real: Any, source: Source) -> Value:
    return ZipIterator(_iterators(_drawn_from(tx, real, source), source), strict=False)


@wraps_once(map, filter)
def _map(tx: Context, real: Any, source: Source) -> Value:
    function, *drawn = _drawn_from(tx, real, source)
    return MapIterator(function, _iterators(drawn, source), keeps=type(real) is filter)


@wraps_once(enumerate)
def _enumerate(tx: Context, real: Any, source: Source) -> Value:
    inner, count = _drawn_from(tx, real, source)
    (drawn,) = _iterators([inner], source)
    if not can_be_counted(drawn):
        raise GraphBreak(NO_LOOKAHEAD, f"{source} counts what runs code of the program")
    return RunningEnumerate(real, source, drawn, count)
