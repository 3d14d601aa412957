"""Calls of what ``operator.itemgetter``, ``attrgetter`` and ``methodcaller`` make: followed, not run for real."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any

from dynamo_capture.polyfills.torch import substitute_for
from dynamo_capture.values import Const, Value

if TYPE_CHECKING:
    from dynamo_capture.values.base import Context

_BLANK = object()
GETTERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)


def call_getter(tx: Context, getter: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``getter(value)``; it refuses any other call before it looks at what it is called with."""
    if len(args) != 1 or kwargs:
        tx.fold(lambda: getter(*[_BLANK] * len(args), **dict.fromkeys(kwargs)))
    return made_again(tx, getter).call(tx, args, kwargs)


def made_again(tx: Context, getter: Any) -> Value:
    """The function that stands for a getter, made of what the getter was made of."""
    maker, given = getter.__reduce__()
    named: dict[str, Any] = {}
    if isinstance(maker, functools.partial):  # of a methodcaller with keywords
        given, named = (*maker.args, *given), maker.keywords
    arguments = [tx.known(value) for value in given]
    substitute = Const(substitute_for(type(getter)))
    return tx.inliner.call_function(substitute, arguments, {k: tx.known(v) for k, v in named.items()})
