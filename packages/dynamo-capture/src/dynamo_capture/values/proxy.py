"""``types.MappingProxyType``: a mapping that is read, and not changed, through it."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING

from dynamo_capture.values.base import IteratorValue, Value
from dynamo_capture.values.mapping import DictValue

if TYPE_CHECKING:
    from dynamo_capture.trace import Trace
    from fx_interface.source import Source

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

    def __init__(self, mapping: DictValue, source: Source | None = None) -> None:
        self.mapping = mapping
        self.source = source

    def python_type(self) -> type:
        return types.MappingProxyType

    def call_method(self, tx: Trace, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name in _READS:
            return self.mapping.call_method(tx, name, args, kwargs)
        return super().call_method(tx, name, args, kwargs)

    def get_item(self, tx: Trace, key: Value) -> Value:
        return self.mapping.get_item(tx, key)

    def set_item(self, tx: Trace, key: Value, value: Value) -> None:
        raise tx.raises(TypeError, "'mappingproxy' object does not support item assignment")

    def del_item(self, tx: Trace, key: Value) -> None:
        raise tx.raises(TypeError, "'mappingproxy' object does not support item deletion")

    def contains(self, tx: Trace, item: Value) -> bool:
        return self.mapping.contains(tx, item)

    def length(self, tx: Trace) -> int:
        return self.mapping.length(tx)

    def truth(self, tx: Trace) -> bool:
        return self.mapping.truth(tx)

    def iterate(self, tx: Trace) -> IteratorValue:
        return self.mapping.iterate(tx)

    def unpack(self, tx: Trace) -> list[Value]:
        return self.mapping.unpack(tx)
