"""What ``{**value}``, ``dict(value)`` and ``f(**value)`` read: the keys and values of a mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo_capture.foundation.class_members import has_member
from dynamo_capture.foundation.type_names import message_name
from dynamo_capture.values import Const, DictValue, ObjectValue, Value
from dynamo_capture.values.containers.mapping import ProxyValue

if TYPE_CHECKING:
    from dynamo_capture.values.base import Context


def mapping_entries(tx: Context, value: Value) -> list[list[Value]]:
    """Keys and values of anything that ``{**value}`` accepts."""
    if isinstance(value, ObjectValue) and isinstance(value.base, DictValue):
        value = value.base
    if isinstance(value, ProxyValue):
        value = value.mapping
    if isinstance(value, DictValue):
        return [[key, tx.force(item)] for key, item in value.all_entries(tx).values()]
    if isinstance(value, ObjectValue) and tx.attributes.has_special(value, "keys"):
        keys = value.call_method(tx, "keys", [], {}).unpack(tx)
        return [[key, value.get_item(tx, key)] for key in keys]
    if isinstance(value, Const) and hasattr(value.value, "keys"):
        return [[tx.known(key), tx.known(value.value[key])] for key in value.value]
    if has_member(value.python_type(), "keys"):
        raise value.unsupported("reading as a mapping")
    raise tx.raises(TypeError, f"{message_name(value.python_type())!r} object is not a mapping")
