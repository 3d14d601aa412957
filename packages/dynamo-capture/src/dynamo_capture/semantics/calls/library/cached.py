"""Calls of functions under ``functools.lru_cache``: the cache is asked, as the program asks it.

A function with a cache gives the same object each time, and runs once. So it is called for real, and what it gives is
read like any other existing object, with the call itself as its source: guards call it again, which finds the entry.

    table(3)        ->  the object at the source ``<table>(3)``; its tensors are inputs of the graph

Where something that the trace has done is not visible yet, the cache is asked all the same if it has the answer, or if
what is to be computed does not depend on that: the function, traced into, does nothing, and gives the same as without
the cache now. One that gives None, and does nothing but what may be deferred (it logs, say), is called with
the other effects, in its place among them. Else the graph ends. It also ends where an entry would go for the new one:
guards that call again would find it gone, and run the function more often than the program does. So what a program gets
is always what its cache gives, however old that is. ``cache_info()`` counts the questions of guards as hits too.

A function that would run, and changes what existed before, as tracing into it shows, is left to Python, which runs it
where the program does: what was read before the call would not be so any more. So is one whose cache has a bound,
answer or not: guards that ask it decide which entry goes next. One that gives None and only defers calls, as a warning
that is said once does, is deferred itself, cache and all. Guards ask a function that may have effects only where its
cache has the answer, and fail elsewhere. Under ``fullgraph=True`` it is run for real; if it has changed what was read,
the call that is being compiled fails (CAP410).

Sizes that vary are not asked for one by one (``answers_for_sizes.py``).

A tensor or an object that the trace made has no name for a guard. There the graph ends; under ``fullgraph=True``, where
it may not, what the cache has for a tensor is read, if it has an answer. If not the function is traced into, its cache
is not filled, and a warning says so.
"""

from __future__ import annotations

import collections
import types
import warnings
from contextlib import suppress
from typing import Any

from dynamo_capture.bytecode.decoded import decoded
from dynamo_capture.foundation.break_kinds import NOT_IN_PYTHON, UNKNOWN_HASH
from dynamo_capture.foundation.class_members import hashes_by_program
from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.semantics.calls.library.answers_for_sizes import answer_for_sizes
from dynamo_capture.semantics.calls.library.cached_trials import Trial, equals, traced
from dynamo_capture.sources.cached_answers import NO_ANSWER, KeptAnswerSource, is_answered
from dynamo_capture.sources.sources import CallSource, known_object
from dynamo_capture.values import Const, ObjectValue, TensorValue, Value
from dynamo_capture.values.base import Context


def call_cached(tx: Context, owner: Const, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``owner(*args, **kwargs)``, ``owner`` being a function under a cache."""
    function = owner.value
    varying = answer_for_sizes(tx, function, args, kwargs)
    if varying is not None:
        return varying
    if tx.policy.is_fullgraph and not all(_is_nameable(tx, value) for value in (*args, *kwargs.values())):
        return _without_cache(tx, function, args, kwargs)
    if tx.effects or not tx.output.is_repeatable:
        return _after_changes(tx, owner, args, kwargs)
    is_suspect = _may_change(function.__wrapped__, set())
    source = _source(tx, function, args, kwargs, only_kept=is_suspect)
    keeps_answer = _is_answered(function, source)
    if not keeps_answer and _is_full(function):
        raise GraphBreak(
            NOT_IN_PYTHON, f"{owner.describe()} has a cache that is full: another entry would go"
        )
    matters = is_suspect and not tx.policy.is_fullgraph and (_is_bounded(function) or not keeps_answer)
    if matters:
        trial = traced(tx, function, args, kwargs)
        if trial.changes:
            if trial.only_defers(tx, None):
                return _deferred(tx, function, args, kwargs, trial)
            raise GraphBreak(NOT_IN_PYTHON, f"{owner.describe()} has a cache, and effects beside its result")
    try:
        real = source.ask(function)
    except Exception as error:  # the program's own: nothing of it is kept
        raise GraphBreak(NOT_IN_PYTHON, f"{owner.describe()} has a cache, and raises {error!r}") from None
    return tx.wrap(real, source)


def _without_cache(tx: Context, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """What the cache has for a tensor, or what the function gives, traced into once for equal arguments:
    ``fullgraph=True`` leaves nobody to run it beside the graph."""
    given = [*args, *(part for name, value in kwargs.items() for part in (Const(name), value))]
    key = (known_object(function), len(args), *(tx.hash_key(value) for value in given))
    found = tx.wrapping.without_cache.get(key)
    if found is not None:
        return found
    kept = _kept(tx, function, args) if not kwargs else None
    found = None if kept is None else kept.step(_tensor_among(args).real)
    if kept is not None and found is not NO_ANSWER:
        made = tx.wrap(found, kept)
    else:
        if kept is not None:
            tx.guards.is_object(kept, NO_ANSWER)
        name = getattr(function, "__qualname__", repr(function))
        text = f"{name} has a cache and gets a tensor or a new object: under fullgraph=True the cache is left out"
        warnings.warn(text, stacklevel=2)
        made = Const(function.__wrapped__).call(tx, args, kwargs)
    tx.wrapping.without_cache[key] = made
    return made


def _tensor_among(args: list[Value]) -> Any:
    """The only tensor of before the trace that is an argument; None where it is not one."""
    found = [value for value in args if isinstance(value, TensorValue) and value.source is not None]
    return found[0] if len(found) == 1 and found[0].real is not None else None


def _kept(tx: Context, function: Any, args: list[Value]) -> KeptAnswerSource | None:
    """Where the cache's answer for a tensor among known arguments is read."""
    tensor = _tensor_among(args)
    others = [value for value in args if value is not tensor]
    if tensor is None or not all(map(tx.is_constant, others)):
        return None
    given = tuple(None if value is tensor else tx.constant(value) for value in args)
    return KeptAnswerSource(tensor.source, function, given, args.index(tensor))


def _source(
    tx: Context, function: Any, args: list[Value], kwargs: dict[str, Value], *, only_kept: bool
) -> CallSource:
    given = tuple([_argument(tx, value) for value in args])
    named = tuple((name, _argument(tx, value)) for name, value in kwargs.items())
    return CallSource(known_object(function), given, named, only_kept and not named)


def _after_changes(tx: Context, owner: Const, args: list[Value], kwargs: dict[str, Value]) -> Value:
    function = owner.value
    source = _source(tx, function, args, kwargs, only_kept=_may_change(function.__wrapped__, set()))
    known = tx.wrapping.read_from(source)
    if known is not None:
        return known
    if _is_answered(function, source):
        return tx.wrap(source.ask(function), source)
    code = getattr(function.__wrapped__, "__code__", None)
    refusal = GraphBreak(
        NOT_IN_PYTHON, f"{code and code.co_qualname} has a cache and is called after changes to objects"
    )
    if code is None:
        raise refusal
    trial = traced(tx, function, args, kwargs)
    if trial.failure is not None:
        raise trial.failure
    if trial.only_defers(tx, None):
        return _deferred(tx, function, args, kwargs, trial)
    known = trial.result
    if trial.done or trial.done is None or known is None or not _gives(tx, function, source, known):
        raise refusal
    return tx.wrap(source.ask(function), source)


def _deferred(tx: Context, function: Any, args: list[Value], kwargs: dict[str, Value], trial: Trial) -> Value:
    """The call itself, with its cache, in the place of the calls that it defers."""
    assert trial.result is not None
    is_note = all(map(tx.effects.is_note, trial.done or ()))
    for key in trial.done or ():
        del tx.effects.log[key]
    tx.effects.deferred(function, args, kwargs, is_note=is_note)
    return trial.result


_WRITES = frozenset(
    {"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR", "STORE_SUBSCR", "DELETE_SUBSCR"}
)
_CHANGING = frozenset(
    name
    for kind in (list, dict, set, collections.deque, collections.OrderedDict)
    for name in set(vars(kind)) - set(vars(tuple)) - set(vars(frozenset)) - {"get", "keys", "values", "items"}
    if not name.startswith("__")
) | {"setattr", "delattr", "print", "write", "info", "warning", "warn"}
"""Names of methods that change containers, and of functions that have effects."""


def _may_change(function: Any, seen: set[Any]) -> bool:
    """Whether the code of a function, or of the program's functions that it names, could change something: most have
    nothing that could, and need not be traced twice."""
    code = getattr(function, "__code__", None)
    if code is None:
        # Nothing is known of what the cache is of; what that names is mostly torch's or Python's own.
        return not seen
    if code in seen:
        return False
    seen.add(code)
    if not _CHANGING.isdisjoint(code.co_names):
        return True
    if any(instruction.opname in _WRITES for instruction in decoded(code).body.instructions):
        return True
    named = [function.__globals__.get(name) for name in code.co_names]
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # nothing is bound yet
            named.append(cell.cell_contents)
    return any(type(found) is types.FunctionType and _may_change(found, seen) for found in named)


def _is_full(function: Any) -> bool:
    """Whether an entry that is added takes the place of another, or is not kept at all."""
    info = function.cache_info()
    return info.maxsize is not None and info.currsize >= info.maxsize


def _is_bounded(function: Any) -> bool:
    """Whether entries of the cache go, those first that were not asked for: guards' questions count there, too."""
    return function.cache_info().maxsize is not None


def _is_answered(function: Any, source: CallSource) -> bool:
    """Whether a cache has the answer, so that asking it runs nothing."""
    return not source.keywords and is_answered(function, source.given())


def _gives(tx: Context, function: Any, source: CallSource, expected: Value) -> bool:
    """Whether the function, which changes nothing, gives the same now as well."""
    try:
        real = tx.fold(lambda: function.__wrapped__(*source.given(), **source.named()))
    except UserRaise:
        return False
    return equals(tx, expected, real)


def _is_nameable(tx: Context, value: Value) -> bool:
    """Whether a source, which is to call the function again, can name the argument."""
    value = tx.force(value)
    existing = isinstance(value, ObjectValue) and value.real is not None and value.source is not None
    return value.expr is not None or existing or tx.is_constant(value)


def _argument(tx: Context, value: Value) -> Any:
    """An argument as a part of the source. Guards have it hashed in each call: its hash must have no effects."""
    value = tx.force(value)
    if hashes_by_program(value.python_type()) and not (isinstance(value, ObjectValue) and value.own_key(tx)):
        raise GraphBreak(UNKNOWN_HASH, f"{value.describe()} with its own __hash__ is given to a cache")
    if value.expr is not None:
        return tx.index(value)
    if tx.is_constant(value):
        known = tx.constant(value)
        return (
            known if isinstance(known, (int, float, str, bytes, type(None), tuple)) else known_object(known)
        )
    if isinstance(value, ObjectValue) and value.real is not None and value.source is not None:
        tx.guards.is_object(value.source, value.real)
        return known_object(value.real)
    raise GraphBreak(NOT_IN_PYTHON, f"{value.describe()} is passed to a function with a cache")


__all__ = ["call_cached"]
