"""Calls of functions in C for which a traceable Python function stands.

What the function in C refuses it refuses in its own words, before it does anything: ``reduce(f)`` expects at least 2
arguments, ``heappush(0, 1)`` a list. The substitute would speak of parameters that are missing, or of what it found out
half-way. So where it raises an exception of its own making, the real function is asked if its arguments are plain data.
If they are not, Python calls it where the exception is about the kinds of its arguments.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import NOT_IN_PYTHON
from dynamo_capture.foundation.class_members import member
from dynamo_capture.foundation.errors import GraphBreak, NotConstant, UserRaise
from dynamo_capture.foundation.skip_rules import is_worth_capturing
from dynamo_capture.frames import tracebacks
from dynamo_capture.semantics.calls.signatures import takes
from dynamo_capture.values import (
    NONE,
    Const,
    ObjectValue,
    Value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.traceback import TracebackValue

_UNKNOWN: Any = object()
_REFUSALS = (TypeError, AttributeError)
_PLAIN = (
    int,
    float,
    complex,
    bool,
    str,
    bytes,
    type(None),
    type(Ellipsis),
    slice,
    range,
    torch.device,
    torch.dtype,
)


def call_substitute(
    tx: Context,
    owner: Const,
    substitute: Callable[..., Any],
    args: list[Value],
    kwargs: dict[str, Value],
) -> Value:
    """The call ``owner(*args, **kwargs)``, by its substitute."""
    if takes(substitute, len(args), tuple(kwargs)):
        try:
            return tx.inliner.call_function(Const(substitute), args, kwargs)
        except UserRaise as raised:
            error = raised.value
            if not _is_its_own(tx, error):
                raise
            refuse(tx, owner, args, kwargs)
            of_an_operator = tracebacks.of(tx, error) is not NONE  # that the substitute has called
            if not issubclass(error.cls, _REFUSALS) and not of_an_operator:
                raise
    else:
        refuse(tx, owner, args, kwargs)
    raise not_taken(owner)


def check_words(
    tx: Context, owner: Const, args: list[Value], kwargs: dict[str, Value], raised: UserRaise
) -> None:
    """What a function in C refuses is said in its own words: where capture has refused the arguments, the function is
    asked if they are plain data, and else Python calls it. Returns for an exception that is not capture's."""
    error = raised.value
    if (
        type(owner.value) is types.FunctionType
        or _is_made_in_python(owner.value)
        or not issubclass(error.python_type(), TypeError)
    ):
        return
    if not error.is_exact and _is_its_own(tx, error):
        refuse(tx, owner, args, kwargs)
        raise GraphBreak(NOT_IN_PYTHON, f"{owner.describe()} refuses what it is given")


def _is_made_in_python(owner: Any) -> bool:
    """Whether a class makes its instances by code in Python, which has run as far as it goes."""
    return isinstance(owner, type) and any(
        isinstance(getattr(member(cls, name), "__func__", member(cls, name)), types.FunctionType)
        for cls, name in ((owner, "__new__"), (owner, "__init__"), (type(owner), "__call__"))
    )


def not_taken(owner: Value) -> GraphBreak:
    """The break for a call with arguments that the function does not take: it runs in Python."""
    return GraphBreak(NOT_IN_PYTHON, f"{owner.describe()} is called with arguments that it does not take")


def refuse(tx: Context, owner: Const, args: list[Value], kwargs: dict[str, Value]) -> None:
    """Raise what the function itself raises of plain arguments; returns where they are not, or it raises nothing."""
    try:
        real = [tx.calls.python_object(value) for value in args]
        named = {name: tx.calls.python_object(value) for name, value in kwargs.items()}
    except (NotConstant, GraphBreak):
        return
    if all(map(_is_plain, (*real, *named.values()))):
        try:
            tx.fold(lambda: owner.value(*real, **named))
        except UserRaise as raised:
            raised.value.is_exact = True
            raise


def refuse_names(tx: Context, function: Any, args: list[Value], kwargs: dict[str, Value]) -> None:
    """Raise what a builtin class raises of the names of arguments, whatever the arguments are."""
    if not isinstance(function, type) or function.__module__ not in ("builtins", "itertools", "collections"):
        return
    if takes(function, len(args), tuple(kwargs)):
        return
    try:
        function(*[_UNKNOWN] * len(args), **dict.fromkeys(kwargs, _UNKNOWN))
    except TypeError as error:
        if "keyword argument" in str(error):
            raised = tx.raises(TypeError, str(error))
            raised.value.is_exact = True
            raise raised from None
    except Exception:  # it has looked at the arguments
        return


def _is_its_own(tx: Context, error: Any) -> bool:
    """Whether an exception comes from the substitute, and not from a function of the program that it has called."""
    if not isinstance(error, ObjectValue) or error.real is not None or issubclass(error.cls, StopIteration):
        return False
    entry = tracebacks.of(tx, error)
    while isinstance(entry, TracebackValue):
        if is_worth_capturing(entry.code, entry.namespace):
            return False
        entry = entry.following
    return True


def _is_plain(value: Any) -> bool:
    """Whether using the value runs no code of the program."""
    kind = type(value)
    if kind is type:
        return bool(value.__module__ == "builtins")
    if kind in (list, tuple, set, frozenset):
        return all(map(_is_plain, value))
    if kind is dict:
        return all(_is_plain(key) and _is_plain(item) for key, item in value.items())
    return kind in _PLAIN
