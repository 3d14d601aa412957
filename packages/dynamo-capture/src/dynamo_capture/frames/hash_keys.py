"""Keys of dictionaries and sets: the Python objects that stand for values there."""

from __future__ import annotations

from typing import Any

from dynamo_capture.foundation.errors import NotConstant
from dynamo_capture.values import Const, Value
from dynamo_capture.values.base import Context


def hash_key(tx: Context, value: Value) -> Any:
    """A hashable Python object that stands for a dictionary key."""
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
