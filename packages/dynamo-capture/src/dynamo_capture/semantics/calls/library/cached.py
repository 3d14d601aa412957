"""Calls of functions under ``functools.lru_cache``: the cache is asked, as the program asks it.

A function with a cache gives the same object each time, and runs once. So it is called for real, and what it gives is
read like any other existing object, with the call itself as its source: guards call it again, which finds the entry.

    table(3)        ->  the object at the source ``<table>(3)``; its tensors are inputs of the graph

Where something that the trace has done is not visible yet, the cache is asked all the same if it has the answer, or if
what is to be computed does not depend on that: the function, traced into, does nothing, and gives the same constant as
without the cache now. One that gives None, and does nothing but what may be deferred (it logs, say), is called with
the other effects, in its place among them. Else the graph ends. It also ends where an entry would go for the new one:
guards that call again would find it gone, and run the function more often than the program does. So what a program gets
is always what its cache gives, however old that is. ``cache_info()`` counts the questions of guards as hits too.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.semantics.regions.reachable import first_outside
from dynamo_capture.sources.sources import CallSource, known_object
from dynamo_capture.values import Const, ObjectValue, SymValue, Value
from fx_guards import constants_equal

if TYPE_CHECKING:
    from dynamo_capture.values.base import Context


def call_cached(tx: Context, owner: Const, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``owner(*args, **kwargs)``, ``owner`` being a function under a cache."""
    function = owner.value
    if tx.effects or not tx.output.is_repeatable:
        return _after_changes(tx, owner, args, kwargs)
    source = _source(tx, function, args, kwargs)
    if _is_full(function) and not _is_answered(function, source):
        raise GraphBreak("CAP230", f"{owner.describe()} has a cache that is full: another entry would go")
    try:
        real = source.step(function)
    except Exception as error:  # the program's own: nothing of it is kept
        raise GraphBreak("CAP230", f"{owner.describe()} has a cache, and raises {error!r}") from None
    return tx.wrap(real, source)


def _source(tx: Context, function: Any, args: list[Value], kwargs: dict[str, Value]) -> CallSource:
    given = tuple([_argument(tx, value) for value in args])
    return CallSource(
        known_object(function), given, tuple((name, _argument(tx, value)) for name, value in kwargs.items())
    )


def _after_changes(tx: Context, owner: Const, args: list[Value], kwargs: dict[str, Value]) -> Value:
    function = owner.value
    source = _source(tx, function, args, kwargs)
    known = tx.wrapping.read_from(source)
    if known is not None:
        return known
    if _is_answered(function, source):
        return tx.wrap(source.step(function), source)
    code = getattr(function.__wrapped__, "__code__", None)
    refusal = GraphBreak(
        "CAP230", f"{code and code.co_qualname} has a cache and is called after changes to objects"
    )
    if code is None:
        raise refusal
    result, done = _traced(tx, function, args, kwargs)
    if done is None or not tx.is_constant(result):
        raise refusal
    if tx.constant(result) is None:
        for key in done:
            del tx.effects.log[key]
        tx.effects.deferred(function, args, kwargs)
        return result
    if done or not _gives(tx, function, source, tx.constant(result)):
        raise refusal
    return tx.wrap(source.step(function), source)


def _traced(
    tx: Context, function: Any, args: list[Value], kwargs: dict[str, Value]
) -> tuple[Value, list[Any] | None]:
    """What the function gives without its cache, and the calls that it defers: None where it does more than that."""
    effects, before, drawn = tx.effects, set(tx.effects.log), len(tx.draws.log)
    watched, first, generators = effects.watching, len(effects.touched), list(tx.generators)
    effects.watching = True
    try:
        result = Const(function.__wrapped__).call(tx, args, kwargs)
    finally:
        effects.watching = watched
    touched = effects.touched[first:]
    if not watched:
        effects.touched.clear()
    done = [key for key in effects.log if key not in before]
    changed = [value for value in touched if value is not None]
    is_more = (
        any(effects.log[key][0] != "call" for key in done)
        or len(touched) - len(changed) != len(done)
        or len(tx.draws.log) > drawn
        or first_outside(tx, changed, args, generators) is not None
    )
    return result, None if is_more else done


def _is_full(function: Any) -> bool:
    """Whether an entry that is added takes the place of another, or is not kept at all."""
    info = function.cache_info()
    return info.maxsize is not None and info.currsize >= info.maxsize


def _is_answered(function: Any, source: CallSource) -> bool:
    """Whether a cache has the answer, so that asking it runs nothing."""
    if source.keywords:
        return False
    given = source.given()
    key = given[0] if len(given) == 1 and type(given[0]) in (int, str) else given
    caches = [one for one in gc.get_referents(function) if type(one) is dict and one is not vars(function)]
    return any(key in cache for cache in caches)


def _gives(tx: Context, function: Any, source: CallSource, expected: Any) -> bool:
    """Whether the function, which changes nothing, gives the constant now as well."""
    try:
        real = tx.fold(lambda: function.__wrapped__(*source.given(), **source.named()))
    except UserRaise:
        return False
    return constants_equal(expected, real)


def _argument(tx: Context, value: Value) -> Any:
    """An argument as a part of the source."""
    value = tx.force(value)
    if isinstance(value, SymValue):
        return tx.index(value)
    if tx.is_constant(value):
        known = tx.constant(value)
        return (
            known if isinstance(known, (int, float, str, bytes, type(None), tuple)) else known_object(known)
        )
    if isinstance(value, ObjectValue) and value.real is not None and value.source is not None:
        tx.guards.is_object(value.source, value.real)
        return known_object(value.real)
    raise GraphBreak("CAP230", f"{value.describe()} is passed to a function with a cache")


__all__ = ["call_cached"]
