"""Keys of dictionaries and sets: the Python objects that stand for values there."""

from __future__ import annotations

from typing import Any

from dynamo_capture.foundation.break_kinds import VARYING_NUMBER
from dynamo_capture.foundation.errors import GraphBreak, NotConstant
from dynamo_capture.values import Const, OpenText, Value
from dynamo_capture.values.base import Context

_MOST_KEYS = 4
"""So many keys that vary have a version each."""


def hash_key(tx: Context, value: Value) -> Any:
    """A hashable Python object that stands for a dictionary key."""
    _limit(tx, value)
    if isinstance(value, Const):
        tx.fold(lambda: hash(value.value))
        return value.value
    if value.expr is not None:
        return tx.env.specialize(value.expr)
    try:
        constant = tx.settled(value).as_constant()
    except NotConstant:
        pass
    else:
        tx.fold(lambda: hash(constant))
        return constant
    key = value.own_key(tx)
    if key is not None:
        return key
    if value.python_type().__hash__ is None:
        raise tx.raises(TypeError, f"unhashable type: {value.class_name(tx)!r}")
    return value.identity_key(tx)


def _limit(tx: Context, value: Value) -> None:
    """A number that varies, or a text with one, is fixed by being a key: each has a version, up to a few. Then the
    graph ends there: a key is mostly that of a record of each step, ``losses[step] = loss``."""
    if value.expr is not None:
        if tx.env.is_from_data(value.expr):
            return
        known: Any = tx.env.hint(value.expr)
    elif isinstance(value, OpenText) and value.is_unread:
        known = value.in_this_call()
    else:
        return
    if tx.policy.has_too_many_values(f"{tx.where()}: key", known, _MOST_KEYS):
        raise GraphBreak(VARYING_NUMBER, f"{known!r}, another one in each call, is a key of a container")
