"""Lists, tuples, sets and dicts whose items are symbolic values."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from fx_interface.source import Source

from dynamo_capture.graph_breaks import GraphBreak, Raised
from dynamo_capture.values.base import MISSING, Value, class_attribute
from dynamo_capture.values.constants import ConstantValue

if TYPE_CHECKING:
    from dynamo_capture.emission import Emission
    from dynamo_capture.tracer import Tracer


_BOUND = (types.FunctionType, staticmethod, classmethod)


def field_names(kind: type) -> tuple[str, ...]:
    """The names of a named tuple's items, or of a C record's such as ``torch.return_types``."""
    if hasattr(kind, "n_sequence_fields"):
        return tuple(kind.__match_args__)  # type: ignore[attr-defined]
    return tuple(getattr(kind, "_fields", ()))


class SequenceValue(Value):
    """A list, tuple, ``torch.Size`` or namedtuple. ``mutated``: an existing list was changed and must be written back."""

    __slots__ = ("items", "kind", "mutated")

    def __init__(self, items: list[Value], kind: type, source: Source | None = None) -> None:
        self.source = source
        self.items = items
        self.kind = kind
        self.mutated = False

    def python_type(self) -> type:
        return self.kind

    def truth(self, tracer: Tracer) -> bool:
        return bool(self.items)

    def length(self, tracer: Tracer) -> Value:
        return ConstantValue(len(self.items))

    def iterate(self, tracer: Tracer) -> Iterator[Value]:
        return ListIterator(self) if self.kind is list else iter(tuple(self.items))

    def getitem(self, tracer: Tracer, key: Value) -> Value:
        index = tracer.index_of(key)
        try:
            found = self.items[index]
        except (IndexError, TypeError) as error:
            raise Raised(tracer.exception(type(error)(str(error).replace("list", self.kind.__name__)))) from None
        if isinstance(found, list):
            kind = self.kind if self.kind in (list, tuple, torch.Size) else tuple
            return SequenceValue(found, kind)
        return found

    def setitem(self, tracer: Tracer, key: Value, value: Value) -> None:
        if self.kind is not list:
            name = self.kind.__name__
            raise Raised(tracer.exception(TypeError(f"'{name}' object does not support item assignment")))
        index = tracer.index_of(key)
        new = list(value.iterate(tracer)) if isinstance(index, slice) else value
        self.touch(tracer)
        try:
            self.items[index] = new  # type: ignore[index,assignment]
        except (IndexError, ValueError) as error:
            raise Raised(tracer.exception(error)) from None

    def delitem(self, tracer: Tracer, key: Value) -> None:
        index = tracer.index_of(key)
        self.touch(tracer)
        try:
            del self.items[index]
        except IndexError as error:
            raise Raised(tracer.exception(error)) from None

    def touch(self, tracer: Tracer) -> None:
        """Note that the list is about to change."""
        if self.source is not None and not self.mutated:
            self.mutated = True
            tracer.effects.append(self)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        from dynamo_capture.values.functions import ContainerMethod

        if name == "__class__":
            return tracer.of_python(self.kind)
        if self.kind not in (list, tuple, torch.Size):
            fields = field_names(self.kind)
            if name in fields:
                return self.items[fields.index(name)]
            found = class_attribute(self.kind, name)
            if type(found) is property:
                return tracer.call_python(found.fget, [self])
            if found is not MISSING and (isinstance(found, _BOUND) or not callable(found)):
                return tracer.bind(found, self, name)
        if not hasattr(self.kind, name):
            raise Raised(
                tracer.exception(AttributeError(f"'{self.kind.__name__}' object has no attribute '{name}'"))
            )
        return ContainerMethod(self, name)

    def children(self) -> Iterator[Value]:
        return iter(self.items)

    def emit(self, emission: Emission) -> None:
        if self.source is not None:
            emission.load_source(self.source)
            return
        emission.build_sequence(self)


class ListIterator(Iterator[Value]):
    """An iterator of a list, which sees what is done to the list meanwhile. ``position`` is -1 after the end."""

    __slots__ = ("position", "sequence")

    def __init__(self, sequence: SequenceValue) -> None:
        self.sequence = sequence
        self.position = 0

    def __next__(self) -> Value:
        if not 0 <= self.position < len(self.sequence.items):
            self.position = -1
            raise StopIteration
        self.position += 1
        return self.sequence.items[self.position - 1]


class DictValue(Value):
    """A dict or OrderedDict; keys are Python objects, ``items`` maps them to values."""

    __slots__ = ("items", "key_values", "kind", "mutated")

    def __init__(
        self, items: dict[Any, Value], kind: type = dict, source: Source | None = None
    ) -> None:
        self.source = source
        self.items = items
        self.kind = kind
        self.mutated = False

    def python_type(self) -> type:
        return self.kind

    def truth(self, tracer: Tracer) -> bool:
        return bool(self.items)

    def length(self, tracer: Tracer) -> Value:
        return ConstantValue(len(self.items))

    def iterate(self, tracer: Tracer) -> Iterator[Value]:
        return iter([tracer.of_key(key) for key in self.items])

    def contains(self, tracer: Tracer, item: Value) -> Value:
        return ConstantValue(tracer.key_of(item) in self.items)

    def getitem(self, tracer: Tracer, key: Value) -> Value:
        python_key = tracer.key_of(key)
        if python_key in self.items:
            return self.items[python_key]
        raise Raised(tracer.exception(KeyError(python_key)))

    def setitem(self, tracer: Tracer, key: Value, value: Value) -> None:
        self.touch(tracer)
        self.items[tracer.key_of(key)] = value

    def delitem(self, tracer: Tracer, key: Value) -> None:
        python_key = tracer.key_of(key)
        if python_key not in self.items:
            raise Raised(tracer.exception(KeyError(python_key)))
        self.touch(tracer)
        del self.items[python_key]

    def touch(self, tracer: Tracer) -> None:
        """Note that the dict is about to change."""
        if self.source is not None and not self.mutated:
            self.mutated = True
            tracer.effects.append(self)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        from dynamo_capture.values.functions import ContainerMethod

        if name == "__class__":
            return tracer.of_python(self.kind)
        if getattr(self.kind, name, None) is None:
            raise Raised(
                tracer.exception(AttributeError(f"'{self.kind.__name__}' object has no attribute '{name}'"))
            )
        return ContainerMethod(self, name)

    def children(self) -> Iterator[Value]:
        return iter(self.items.values())

    def emit(self, emission: Emission) -> None:
        if self.source is not None:
            emission.load_source(self.source)
            return
        emission.build_dict(self)


class SetValue(Value):
    """A set or frozenset of hashable Python objects."""

    __slots__ = ("items", "kind", "mutated")

    def __init__(self, items: dict[Any, Value], kind: type = set, source: Source | None = None) -> None:
        self.source = source
        self.items = items
        self.kind = kind
        self.mutated = False

    def python_type(self) -> type:
        return self.kind

    def truth(self, tracer: Tracer) -> bool:
        return bool(self.items)

    def length(self, tracer: Tracer) -> Value:
        return ConstantValue(len(self.items))

    def iterate(self, tracer: Tracer) -> Iterator[Value]:
        return iter(list(self.items.values()))

    def contains(self, tracer: Tracer, item: Value) -> Value:
        return ConstantValue(tracer.key_of(item) in self.items)

    def touch(self, tracer: Tracer) -> None:
        """Note that the set is about to change."""
        if self.source is not None and not self.mutated:
            self.mutated = True
            tracer.effects.append(self)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        from dynamo_capture.values.functions import ContainerMethod

        if name == "__class__":
            return tracer.of_python(self.kind)
        return ContainerMethod(self, name)

    def children(self) -> Iterator[Value]:
        return iter(self.items.values())

    def emit(self, emission: Emission) -> None:
        if self.source is not None:
            emission.load_source(self.source)
            return
        emission.build_set(self)


class SliceValue(Value):
    """A slice with bounds that may be symbolic."""

    __slots__ = ("bounds",)

    def __init__(self, bounds: list[Value]) -> None:
        self.source = None
        self.bounds = bounds

    def python_type(self) -> type:
        return slice

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name in ("start", "stop", "step"):
            return self.bounds[("start", "stop", "step").index(name)]
        raise GraphBreak("attribute", f"attribute {name!r} of a slice")

    def children(self) -> Iterator[Value]:
        return iter(self.bounds)

    def emit(self, emission: Emission) -> None:
        emission.build_slice(self)


class IteratorValue(Value):
    """An iterator made while tracing: a Python iterator over symbolic values."""

    __slots__ = ("iterator", "peeked")

    def __init__(self, iterator: Iterator[Value]) -> None:
        self.source = None
        self.iterator = iterator

    def iterate(self, tracer: Tracer) -> Iterator[Value]:
        return self.iterator

    def python_type(self) -> type:
        return type(iter(()))

    def describe(self) -> str:
        return "an iterator"

    def truth(self, tracer: Tracer) -> bool:
        return True

    def getattr(self, tracer: Tracer, name: str) -> Value:
        from dynamo_capture.values.functions import ContainerMethod

        if name in ("__next__", "__iter__", "send", "close", "throw"):
            return ContainerMethod(self, name)
        raise GraphBreak("attribute", f"attribute {name!r} of an iterator")

    def emit(self, emission: Emission) -> None:
        """What is left of it, as an iterator over a tuple; only at the end of a trace or at a break."""
        self.iterator = emission.build_iterator(self.iterator)
