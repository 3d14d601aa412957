"""Objects of the program's own classes: those that existed before the trace, and those that it makes."""

from __future__ import annotations

import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

from dynamo_capture.foundation.break_kinds import UNKNOWN_HASH
from dynamo_capture.foundation.class_members import CLASS_OF_OBJECTS, module_of
from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.foundation.type_names import message_name
from dynamo_capture.sources.sources import ThreadDictSource
from dynamo_capture.values.base import Context, IteratorStop, IteratorValue, Value
from dynamo_capture.values.constant import Const
from dynamo_capture.values.containers.keys import HashedKey
from dynamo_capture.values.containers.mapping import DictValue
from dynamo_capture.values.objects.length_hints import ask_for_hint
from dynamo_capture.values.special_results import index_from, length_from, size_from, truth_from
from fx_interface.source import DerivedSource, InstanceDictSource, Source


def _hashes_by_identity(cls: type) -> bool:
    for base in cls.__mro__:
        if "__hash__" in base.__dict__ or "__eq__" in base.__dict__:
            return base is object or module_of(base).startswith("torch.nn.modules")
    return True


class ObjectValue(Value):
    """``real``: the object, if it existed. ``attrs``: attributes written by the trace (None: deleted), over
    ``real``'s own; ``reads``: attributes already read; ``tables``: of those that ``__getattr__`` found in a dictionary,
    which one. ``base``: the content of an instance of a subclass of list, dict, tuple or set."""

    __slots__ = (
        "_space",
        "attrs",
        "base",
        "cls",
        "is_exact",
        "is_refused_write",
        "reads",
        "real",
        "source",
        "tables",
        "type_guarded",
    )
    is_mutable = True

    def __init__(self, cls: type, real: Any = None, source: Source | None = None) -> None:
        self.cls = cls
        self.real = real
        self.source = source
        self.attrs: dict[str, Value | None] = {}
        self.reads: dict[str, Value] = {}
        self.tables: dict[str, DictValue] | None = None
        self.base: Value | None = None
        self._space: DerivedSource | None = None
        self.type_guarded = real is None
        self.is_exact = False
        """Of an exception: whether Python's own function has raised it, of what the program gives it."""
        self.is_refused_write = False
        """Of an exception: whether a write to what a custom function gives is refused by it."""

    @property
    def space(self) -> Source | None:
        """Where its dictionary of attributes is read."""
        source, found = self.source, self._space
        if source is None:
            return None
        kind = ThreadDictSource if self.cls is threading.local else InstanceDictSource
        if found is None or found.parent is not source or type(found) is not kind:
            found = self._space = kind(source)  # one object: guards on it are known to be about the same
        return found

    def read(self, name: str) -> Value | None:
        """An attribute as it was read before, if that still holds."""
        found = self.reads.get(name)
        if found is not None and self.tables is not None:
            table = self.tables.get(name)
            if table is not None and table.is_changed:
                return None
        return found

    def __repr__(self) -> str:
        return f"ObjectValue({self.cls.__name__}{'' if self.real is None else f' {self.source}'})"

    def python_type(self) -> type:
        return self.cls

    def is_callable(self, tx: Context) -> bool:
        return tx.attributes.has_special(self, "__call__")

    def has_own_hash(self, tx: Context) -> bool:
        """Whether its class says what its hash is, other than by its identity."""
        cls: Any = self.cls
        if cls.__hash__ is None or cls.__hash__ is object.__hash__ or _hashes_by_identity(cls):
            return False
        tx.attributes.guard_type(self)
        return True

    def own_key(self, tx: Context) -> Any:
        cls: Any = self.cls
        if cls.__hash__ is None:
            raise tx.raises(TypeError, f"unhashable type: {self.class_name(tx)!r}")
        if not self.has_own_hash(tx):
            return None
        if not isinstance(tx.attributes.in_class(cls, "__hash__"), types.FunctionType):
            raise GraphBreak(UNKNOWN_HASH, f"{self.describe()} with its own __hash__ is used as a key")
        for _ in range(
            2
        ):  # what the first call alone changes is not changed where the container is made again
            with tx.effects.observed() as changed:
                hashed = tx.index(tx.calls.special(self, "__hash__", []))
            if not changed:
                break
        else:
            raise GraphBreak(UNKNOWN_HASH, f"{self.describe()} has a __hash__ with effects")
        if type(hashed) is not int:
            raise tx.raises(TypeError, "__hash__ method should return an integer")
        return HashedKey(tx, self, hashed)  # as it is: Python shortens only what does not fit its word

    def class_name(self, tx: Context) -> str:
        tx.attributes.guard_type(self)
        return super().class_name(tx)

    def index(self, tx: Context) -> Any:
        if not tx.attributes.has_special(self, "__index__"):
            return super().index(tx)
        if issubclass(self.cls, int):  # is one, whatever its ``__index__`` says
            raise self.unsupported("taking the number")
        return index_from(tx, tx.calls.special(self, "__index__", []))

    def rebuilt(self, tx: Context, change: Callable[[Value], Any]) -> Any:
        return self._sequence().rebuilt(tx, change)

    def frozen(self, tx: Context, tensors: list[Any]) -> Any:
        for special in ("__iter__", "__len__", "__getitem__"):  # with which torch asks a sequence
            if isinstance(tx.attributes.in_class(self.cls, special), types.FunctionType):
                raise self.no_argument()
        if tx.attributes.in_class(self.cls, "__class__") is not CLASS_OF_OBJECTS:
            raise self.no_argument()  # code of the program says what it is an instance of
        return self._sequence().frozen(tx, tensors)

    def _sequence(self) -> Value:
        """The content of an object of a class made from ``tuple`` or ``list``."""
        if self.base is None or not issubclass(self.base.python_type(), (tuple, list)):
            raise self.no_argument()
        return self.base

    def kept_attributes(self) -> list[tuple[str, Value]]:
        """The attributes that the trace gave it, and that it still has."""
        return [(name, part) for name, part in self.attrs.items() if part is not None]

    def children(self, tx: Context) -> list[Value]:
        attributes = [part for _, part in self.kept_attributes()]
        return attributes if self.base is None else [self.base, *attributes]

    def get_attr(self, tx: Context, name: str) -> Value:
        return tx.attributes.of_object(self, name)

    def set_attr(self, tx: Context, name: str, value: Value) -> None:
        tx.attributes.set_object(self, name, value)

    def del_attr(self, tx: Context, name: str) -> None:
        tx.attributes.delete_object(self, name)

    def call(self, tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tx.calls.call_object(self, args, kwargs)

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tx.calls.call_method_of_object(self, name, args, kwargs)

    def get_item(self, tx: Context, key: Value) -> Value:
        return tx.calls.special(self, "__getitem__", [key])

    def set_item(self, tx: Context, key: Value, value: Value) -> None:
        tx.calls.special(self, "__setitem__", [key, value])

    def del_item(self, tx: Context, key: Value) -> None:
        tx.calls.special(self, "__delitem__", [key])

    def contains(self, tx: Context, item: Value) -> bool:
        if tx.attributes.withdraws(self, "__contains__"):
            raise tx.raises(TypeError, f"{message_name(self.cls)!r} object is not a container")
        if tx.attributes.has_special(self, "__contains__"):
            return tx.truth(tx.calls.special(self, "__contains__", [item]))
        if not tx.attributes.has_special(self, "__iter__") and not tx.attributes.has_special(
            self, "__getitem__"
        ):
            raise tx.raises(TypeError, f"argument of type {message_name(self.cls)!r} is not iterable")
        try:
            parts = self.iterate(tx)
        except UserRaise as raised:
            if not issubclass(raised.value.python_type(), TypeError):
                raise
            refused = True
        else:
            refused = False
        if refused:
            raise tx.raises(TypeError, f"argument of type {message_name(self.cls)!r} is not iterable")
        return parts.contains(tx, item)

    def length(self, tx: Context) -> int:
        return length_from(tx, tx.calls.special(self, "__len__", []))

    def truth(self, tx: Context) -> bool:
        if tx.attributes.has_special(self, "__bool__"):
            return truth_from(tx, tx.calls.special(self, "__bool__", []))
        if tx.attributes.has_special(self, "__len__"):
            return tx.truth(size_from(tx, tx.calls.special(self, "__len__", [])))
        tx.attributes.guard_type(self)
        return True

    def items_for_list(self, tx: Context) -> list[Value]:
        iterator = self.iterate(tx)
        ask_for_hint(tx, self, self.cls)
        return iterator.drain(tx)

    def one_by_one(self, tx: Context, hinted: bool = False) -> Iterator[Value]:
        iterator = self.iterate(tx)
        if hinted:
            ask_for_hint(tx, self, self.cls)
        return iterator.one_by_one(tx)

    def iterate(self, tx: Context) -> IteratorValue:
        if not tx.attributes.has_special(self, "__iter__"):
            if tx.attributes.has_special(self, "__getitem__"):
                return IndexIterator(self)
            raise tx.raises(TypeError, f"{message_name(self.cls)!r} object is not iterable")
        if tx.attributes.withdraws(self, "__iter__"):
            raise tx.raises(TypeError, f"{message_name(self.cls)!r} object is not iterable")
        found = tx.calls.special(self, "__iter__", [])
        if isinstance(found, IteratorValue):
            return found
        if isinstance(found, ObjectValue) and tx.attributes.has_special(found, "__next__"):
            return ObjectIterator(found)
        raise tx.raises(
            TypeError, f"iter() returned non-iterator of type {message_name(found.python_type())!r}"
        )


class ObjectIterator(IteratorValue):
    """An object of the program with ``__next__``."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def python_type(self) -> type:
        return self.value.python_type()

    def children(self, tx: Context) -> list[Value]:
        return [self.value]

    def identity(self) -> object:
        return self.value.identity()

    def next(self, tx: Context) -> Value:
        try:
            return self.value.call_method(tx, "__next__", [], {})
        except UserRaise as raised:
            if issubclass(raised.value.python_type(), StopIteration):
                raise IteratorStop from None
            raise


class IndexIterator(IteratorValue):
    """``iter`` of an object that has only ``__getitem__``, from 0 up; ``reversed`` of one with ``__len__`` too, from
    its last item down. ``position``: the next index; None: the iterator has ended."""

    __slots__ = ("is_reversed", "owner", "position")

    def __init__(self, owner: Value, length: int | None = None) -> None:
        self.owner = owner
        self.is_reversed = length is not None
        self.position: int | None = 0 if length is None else length - 1

    def python_type(self) -> type:
        return reversed if self.is_reversed else type(iter(_ByIndex()))

    def children(self, tx: Context) -> list[Value]:
        return [self.owner]

    def next(self, tx: Context) -> Value:
        position = self.position
        if position is None or position < 0:
            self.position = None
            raise IteratorStop
        try:
            found = tx.calls.special(self.owner, "__getitem__", [Const(position)])
        except UserRaise as raised:
            if issubclass(raised.value.python_type(), (IndexError, StopIteration)):
                self.position = None
                raise IteratorStop from None
            raise
        self.position = position - 1 if self.is_reversed else position + 1
        return found

    def items_for_list(self, tx: Context) -> list[Value]:
        self._ask_for_hint(tx)
        return self.drain(tx)

    def one_by_one(self, tx: Context, hinted: bool = False) -> Iterator[Value]:
        if hinted:
            self._ask_for_hint(tx)
        return super().one_by_one(tx)

    def _ask_for_hint(self, tx: Context) -> None:
        if self.position is not None:
            ask_for_hint(tx, self.owner, self.owner.python_type(), ("__len__",))


class _ByIndex:
    """A sample."""

    def __getitem__(self, index: int) -> int:
        raise IndexError
