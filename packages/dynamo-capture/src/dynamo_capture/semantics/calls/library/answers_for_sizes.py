"""What a function with a cache gives for sizes that vary: traced into, so that one graph serves all of them.

    plan(x.shape)        ->  ``(s0 * 2, [s0, 4])``

The cache has an entry for each size, of which a trace knows one. So the function may do nothing but give numbers,
strings, what its arguments hold, and containers of these; and what it gives for the sizes of now must be what the
cache has for them, or what it gives when it is called. The containers are the cache's: whoever is handed one gets it by
the call itself, with the sizes of that moment, and whoever would change one ends the graph.
"""

from __future__ import annotations

from typing import Any

import torch

from dynamo_capture.foundation.errors import UserRaise
from dynamo_capture.semantics.calls.library.cached_trials import equals, traced
from dynamo_capture.sources.cached_answers import is_answered
from dynamo_capture.sources.sources import known_object
from dynamo_capture.values import (
    CachedPart,
    Const,
    DictValue,
    ListValue,
    ObjectValue,
    SymValue,
    TensorValue,
    TupleValue,
    Value,
)
from dynamo_capture.values.base import Context


class _Refused(Exception):
    """The call is not of this kind."""


def answer_for_sizes(tx: Context, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """``function(*args, **kwargs)``, if sizes that vary are among the arguments; None for other calls and answers."""
    if tx.policy.has_answer_for_each_size(function):
        return None
    try:
        keys = [_key(tx, value) for value in (*args, *kwargs.values())]
        if not any(_varies(tx, value) for value in (*args, *kwargs.values())):
            return None
        key = ("for sizes", known_object(function), tuple(kwargs), *keys)
        if key not in tx.wrapping.without_cache:
            tx.wrapping.without_cache[key] = _answer(tx, function, args, kwargs)
        return tx.wrapping.without_cache[key]
    except _Refused:
        return None


def _answer(tx: Context, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    trial = traced(tx, function, args, kwargs)
    if trial.changes or trial.done != []:
        tx.policy.ask_for_each_size(function)
    if trial.result is None:
        raise _Refused
    shown: list[tuple[Value, CachedPart]] = []
    _note_containers(tx, trial.result, CachedPart(function, args, kwargs, ()), shown)
    given = tuple([_now(tx, value) for value in args])
    named = {name: _now(tx, value) for name, value in kwargs.items()}
    ask = function if not named and is_answered(function, given) else function.__wrapped__
    try:
        real = tx.fold(lambda: ask(*given, **named))
    except UserRaise:
        raise _Refused from None
    if not equals(tx, trial.result, real):
        raise _Refused
    tx.effects.of_caches.update({id(value): (value, part) for value, part in shown})
    return trial.result


def _note_containers(
    tx: Context, value: Value, part: CachedPart, shown: list[tuple[Value, CachedPart]]
) -> None:
    """Every container in an answer, and which part of the answer it is."""
    value = tx.force(value)
    if isinstance(value, TensorValue):
        raise _Refused
    if isinstance(value, SymValue) or value.is_existing or tx.is_constant(value):
        return
    if isinstance(value, (TupleValue, ListValue)):
        for place, item in enumerate(value.unpack(tx)):
            _note_containers(tx, item, part.inside(place), shown)
    elif isinstance(value, DictValue):
        for name, item in value.all_entries(tx).values():
            if not tx.is_constant(name):
                raise _Refused
            _note_containers(tx, item, part.inside(tx.constant(name)), shown)
    else:
        raise _Refused
    if value.is_mutable:
        shown.append((value, part))


def _varies(tx: Context, value: Value) -> bool:
    value = tx.force(value)
    if isinstance(value, TupleValue):
        return any(_varies(tx, item) for item in value.items)
    return isinstance(value, SymValue)


def _key(tx: Context, value: Value) -> Any:
    """Two arguments are the same exactly where their keys are equal."""
    value = tx.force(value)
    if isinstance(value, SymValue):
        if tx.env.is_from_data(value.expr):
            raise _Refused
        return SymValue, value.expr
    if isinstance(value, TupleValue) and value.cls in (tuple, torch.Size):
        return value.cls, tuple([_key(tx, item) for item in value.items])
    if tx.is_constant(value) and _is_plain(tx.constant(value)):
        return Const, repr(tx.constant(value))
    if isinstance(value, ObjectValue) and value.real is not None and value.source is not None:
        return ObjectValue, known_object(value.real)
    raise _Refused


def _is_plain(constant: Any) -> bool:
    """Whether it is nothing but what its text tells."""
    if type(constant) is tuple:
        return all(map(_is_plain, constant))
    return type(constant) in (bool, int, float, str, bytes, type(None))


def _now(tx: Context, value: Value) -> Any:
    """An argument as it is in the call that is traced."""
    value = tx.force(value)
    if isinstance(value, SymValue):
        return tx.env.hint(value.expr)
    if isinstance(value, TupleValue):
        return value.cls([_now(tx, item) for item in value.items])
    if isinstance(value, ObjectValue) and value.source is not None:
        tx.guards.is_object(value.source, value.real)
        return value.real
    return tx.constant(value)
