"""Calls of what ``operator.itemgetter``, ``attrgetter`` and ``methodcaller`` make: followed, not run for real."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any

from dynamo_capture.polyfills.torch import substitute_for
from dynamo_capture.values import Const, Value

if TYPE_CHECKING:
    from dynamo_capture.values.base import Context

GETTERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)


def made_again(tx: Context, getter: Any) -> Value:
    """The function that stands for a getter, made of what the getter was made of."""
    maker, given = getter.__reduce__()
    named: dict[str, Any] = {}
    if isinstance(maker, functools.partial):  # of a methodcaller with keywords
        given, named = (*maker.args, *given), maker.keywords
    arguments = [tx.known(value) for value in given]
    substitute = Const(substitute_for(type(getter)))
    return tx.inliner.call_function(substitute, arguments, {k: tx.known(v) for k, v in named.items()})
