"""What ``{**value}``, ``dict(value)`` and ``f(**value)`` read: the keys and values of a mapping."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType

from dynamo_capture.foundation.class_members import has_member
from dynamo_capture.foundation.errors import UserRaise
from dynamo_capture.values import Const, DictValue, ObjectValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.containers.mapping_views import ProxyValue


def spread_entries(
    tx: Context, value: Value, refusal: Callable[[str], str] = "{!r} object is not a mapping".format
) -> list[list[Value]]:
    """Keys and values of anything that ``{**value}`` accepts. Any AttributeError on the way says that it is none:
    ``refusal`` words it for the name of a class."""
    try:
        return list(mapping_entries(tx, value))
    except UserRaise as raised:
        if not issubclass(raised.value.python_type(), AttributeError):
            raise
    raise tx.raises(TypeError, refusal(value.class_name(tx)))


def mapping_entries(tx: Context, value: Value) -> Iterator[list[Value]]:
    """Keys and values as ``dict.update`` reads them, one by one: a dictionary's own, unless its class iterates in its
    own way; of another object what ``keys()`` and indexing answer."""
    if isinstance(value, ObjectValue):
        if (
            isinstance(value.base, DictValue)
            and tx.attributes.in_class(value.cls, "__iter__") is dict.__iter__
        ):
            value = value.base
        else:
            keys = _keys(tx, value)
            yield from ([key, value.get_item(tx, key)] for key in keys)
            return
    if isinstance(value, ProxyValue):
        value = value.mapping
    if isinstance(value, DictValue):
        yield from [[key, tx.force(item)] for key, item in value.all_entries(tx).values()]
    elif value.known_class() is not None:  # its ``keys`` is that of its instances
        raise value.unsupported("reading as a mapping")
    elif isinstance(value, Const) and has_member(value.python_type(), "keys"):
        yield from ([tx.known(key), tx.known(value.value[key])] for key in value.value)
    elif has_member(value.python_type(), "keys") or issubclass(value.python_type(), ModuleType):
        raise value.unsupported("reading as a mapping")
    else:
        name = value.class_name(tx)
        raise tx.raises(AttributeError, f"{name!r} object has no attribute 'keys'")


def _keys(tx: Context, value: ObjectValue) -> list[Value]:
    keys = value.get_attr(tx, "keys").call(tx, [], {})
    try:
        return keys.unpack(tx)
    except UserRaise as raised:
        if not issubclass(raised.value.python_type(), TypeError) or tx.attributes.has_special(
            keys, "__iter__"
        ):
            raise
    owner, kind = value.class_name(tx), keys.class_name(tx)
    raise tx.raises(TypeError, f"{owner}.keys() returned a non-iterable (type {kind})")


def pairs_or_entries(tx: Context, source: Value, *, ordered: bool = False) -> Iterator[list[Value]]:
    """Keys and values of a mapping or of an iterable of pairs, as they come. ``ordered``: for an ``OrderedDict``, which
    has its own words for what is no pair."""
    if _has_keys(tx, source):
        yield from mapping_entries(tx, source)
        return
    for index, pair in enumerate(source.one_by_one(tx)):
        if ordered:
            yield _unpacked_pair(tx, pair)
            continue
        what = f"dictionary update sequence element #{index}"
        try:
            items = pair.unpack(tx)
        except UserRaise as raised:
            if not issubclass(raised.value.python_type(), TypeError):
                raise
            raise tx.raises(TypeError, f"cannot convert {what} to a sequence") from None
        if len(items) != 2:
            raise tx.raises(ValueError, f"{what} has length {len(items)}; 2 is required")
        yield items


def _unpacked_pair(tx: Context, pair: Value) -> list[Value]:
    items = pair.unpack(tx)
    if len(items) < 2:
        raise tx.raises(ValueError, f"need more than {len(items)} value{'' if items else 's'} to unpack")
    if len(items) > 2:
        raise tx.raises(ValueError, "too many values to unpack (expected 2)")
    return items


def _has_keys(tx: Context, source: Value) -> bool:
    if isinstance(source, ObjectValue):
        return tx.attributes.has(source, "keys")
    return has_member(source.python_type(), "keys")


__all__ = ["mapping_entries", "pairs_or_entries", "spread_entries"]
