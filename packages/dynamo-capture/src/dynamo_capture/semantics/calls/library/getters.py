"""Calls of what ``operator.itemgetter``, ``attrgetter`` and ``methodcaller`` make: followed, not run for real."""

from __future__ import annotations

import functools
import operator
from typing import Any

from dynamo_capture.foundation.break_kinds import NOT_IN_PYTHON
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.polyfills.torch import substitute_for
from dynamo_capture.values import Const, Value
from dynamo_capture.values.base import Context

_BLANK = object()
GETTERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)


def call_getter(tx: Context, getter: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``getter(value)``."""
    _check_call(tx, getter, args, kwargs)
    return made_again(tx, getter).call(tx, args, kwargs)


class GetterValue(Value):
    """One that the trace makes of what it does not know."""

    __slots__ = ("args", "kind", "kwargs")

    def __init__(self, kind: type, args: list[Value], kwargs: dict[str, Value]) -> None:
        self.kind = kind
        self.args = args
        self.kwargs = kwargs

    def python_type(self) -> type:
        return self.kind

    def children(self, tx: Context) -> list[Value]:
        return [*self.args, *self.kwargs.values()]

    def call(self, tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        sample = self.kind("_" if self.kind is not operator.itemgetter else 0)
        _check_call(tx, sample, args, kwargs)
        made = tx.inliner.call_function(Const(substitute_for(self.kind)), self.args, self.kwargs)
        return made.call(tx, args, kwargs)


def new_getter(tx: Context, kind: type, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``kind(*args, **kwargs)``."""
    names = args if kind is operator.attrgetter else args[:1] if kind is operator.methodcaller else []
    if not all(isinstance(name, Const) and isinstance(name.value, str) for name in names):
        raise GraphBreak(NOT_IN_PYTHON, f"{kind.__qualname__} is made with what is not known")
    return GetterValue(kind, args, kwargs)


def _check_call(tx: Context, getter: Any, args: list[Value], kwargs: dict[str, Value]) -> None:
    """A getter refuses any call but one with one argument before it looks at what that is."""
    if len(args) != 1 or kwargs:
        tx.fold(lambda: getter(*[_BLANK] * len(args), **dict.fromkeys(kwargs)))


def made_again(tx: Context, getter: Any) -> Value:
    """The function that stands for a getter, made of what the getter was made of."""
    maker, given = getter.__reduce__()
    named: dict[str, Any] = {}
    if isinstance(maker, functools.partial):  # of a methodcaller with keywords
        given, named = (*maker.args, *given), maker.keywords
    arguments = [tx.known(value) for value in given]
    substitute = Const(substitute_for(type(getter)))
    return tx.inliner.call_function(substitute, arguments, {k: tx.known(v) for k, v in named.items()})
