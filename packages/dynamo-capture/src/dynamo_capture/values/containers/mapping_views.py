"""What shows a mapping without being one: its keys, values or items, and ``types.MappingProxyType``."""

from __future__ import annotations

import collections
import types
from typing import Any

from dynamo_capture.values.base import Context, IteratorValue, Value
from dynamo_capture.values.containers.mapping import DictIterator, DictValue
from dynamo_capture.values.containers.sequences import TupleValue
from fx_interface.source import Source


class DictView(Value):
    """``d.keys()``, ``d.values()`` or ``d.items()``."""

    __slots__ = ("kind", "owner", "source")

    def __init__(self, owner: DictValue, kind: str, source: Source | None = None) -> None:
        self.owner = owner
        self.kind = kind
        self.source = source

    @property
    def _is_ordered(self) -> bool:
        return issubclass(self.owner.cls, collections.OrderedDict)

    def python_type(self) -> type:
        return type(getattr(collections.OrderedDict() if self._is_ordered else {}, self.kind)())

    def python_object(self, tx: Context) -> Any:
        return self.like([item.python_object(tx) for item in self.unpack(tx)])

    def children(self, tx: Context) -> list[Value]:
        return [self.owner]

    def like(self, items: list[Any]) -> Any:
        """A real view of this kind, of these items."""
        made: dict[Any, Any] = collections.OrderedDict() if self._is_ordered else {}
        made.update(dict.fromkeys(items) if self.kind == "keys" else enumerate(items))
        if self.kind == "items":
            made = type(made)(items)
        return getattr(made, self.kind)()

    def unpack(self, tx: Context) -> list[Value]:
        entries = list(self.owner.all_entries(tx).values())
        if self.kind == "keys":
            return [key for key, _ in entries]
        if self.kind == "values":
            return [tx.force(value) for _, value in entries]
        return [TupleValue([key, value]) for key, value in entries]

    def iterate(self, tx: Context) -> IteratorValue:
        return DictIterator(tx, self.owner, self.kind)

    def length(self, tx: Context) -> int:
        return self.owner.length(tx)

    def truth(self, tx: Context) -> bool:
        return self.owner.truth(tx)

    def contains(self, tx: Context, item: Value) -> bool:
        if self.kind == "keys":
            return self.owner.contains(tx, item)
        return any(tx.operators.equal_or_same(part, item) for part in self.unpack(tx))

    def own_attribute(self, tx: Context, name: str) -> Value | None:
        return ProxyValue(self.owner) if name == "mapping" else None

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if self.kind == "keys" and name in ("isdisjoint",):
            return tx.calls.set_of(self.unpack(tx)).call_method(tx, name, args, kwargs)
        return super().call_method(tx, name, args, kwargs)


VIEWS: dict[type, tuple[type, str]] = {
    type(getattr(owner(), kind)()): (owner, kind)
    for owner in (dict, collections.OrderedDict)
    for kind in ("keys", "values", "items")
}
"""What views of a mapping are of: the mapping's class, and the kind of the view."""


_READS = frozenset(
    {
        "get",
        "keys",
        "values",
        "items",
        "copy",
        "__getitem__",
        "__contains__",
        "__iter__",
        "__len__",
        "__reversed__",
    }
)


class ProxyValue(Value):
    """Shows ``mapping``, as it is when it is asked."""

    __slots__ = ("mapping", "source")
    python_class = types.MappingProxyType

    def __init__(self, mapping: DictValue, source: Source | None = None) -> None:
        self.mapping = mapping
        self.source = source

    def children(self, tx: Context) -> list[Value]:
        return [self.mapping]

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name in _READS:
            return self.mapping.call_method(tx, name, args, kwargs)
        return super().call_method(tx, name, args, kwargs)

    def get_item(self, tx: Context, key: Value) -> Value:
        return self.mapping.get_item(tx, key)

    def set_item(self, tx: Context, key: Value, value: Value) -> None:
        raise tx.raises(TypeError, "'mappingproxy' object does not support item assignment")

    def del_item(self, tx: Context, key: Value) -> None:
        raise tx.raises(TypeError, "'mappingproxy' object does not support item deletion")

    def contains(self, tx: Context, item: Value) -> bool:
        return self.mapping.contains(tx, item)

    def length(self, tx: Context) -> int:
        return self.mapping.length(tx)

    def truth(self, tx: Context) -> bool:
        return self.mapping.truth(tx)

    def iterate(self, tx: Context) -> IteratorValue:
        return self.mapping.iterate(tx)

    def unpack(self, tx: Context) -> list[Value]:
        return self.mapping.unpack(tx)
